"""What is minimised: the objectives of the core by name, checked against the labels.

In: resolved parameters and labels. Out: an `Objective`, and how many scores a row has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import cpu
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.params import Number

LARGEST = 1e150  # squares of labels must stay finite in float64


@dataclass(frozen=True)
class Objective:
    """An objective and the values of its own fields."""

    name: str
    link: str  # identity | sigmoid | softmax: from raw scores to predictions
    metric: str  # what to measure where nobody says
    fields: Mapping[str, float]


def field_names() -> frozenset[str]:
    """Parameters that belong to some objective rather than to the table."""
    return frozenset(name for entry in cpu.objectives().values() for name in entry["fields"])


def resolve(params: Mapping[str, Any]) -> Objective:
    """Look an objective up and check its fields.

    Parameters
    ----------
    params : mapping
        Resolved parameters: ``objective`` and the fields that were given.

    Returns
    -------
    Objective
    """
    known, name = cpu.objectives(), params["objective"]
    if name not in known:
        raise ParameterError(f"objective={name!r} is unknown; {suggest(name, known)}")
    entry = known[name]
    for other in field_names() - entry["fields"].keys():
        if other in params:
            raise ParameterError(f"{other}={params[other]!r} is not a parameter of objective={name!r}; leave it out.")
    fields = {
        field: Number(low, high).check(f"{field}={params.get(field, default)!r}", params.get(field, default))
        for field, (low, high, default) in entry["fields"].items()
    }
    return Objective(name, entry["link"], entry["metric"], fields)


def outputs(objective: Objective, label: NDArray[np.float64], n_classes: int | None = None) -> int:
    """Check that the labels suit the objective, and count the scores of a row.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    label : (n_rows) float64
        0 or 1 for a sigmoid link, class indices for a softmax link, any finite number otherwise.
    n_classes : int, optional
        The number of classes of a softmax; the largest label plus 1 by default.

    Returns
    -------
    int
        The number of classes for a softmax link, else 1.
    """
    finite = np.isfinite(label)
    if objective.link == "sigmoid":
        _require(finite & ((label == 0) | (label == 1)), label, objective, "0 or 1")
    elif objective.link == "softmax":
        top = n_classes if n_classes is not None else max(2, int(label.max(where=finite, initial=0)) + 1)
        whole = finite & (label == np.floor(label))
        _require(whole & (label >= 0) & (label < top), label, objective, f"one of 0..{top - 1}")
        return top
    else:
        _require(np.abs(label) <= LARGEST, label, objective, f"a number up to {LARGEST:g} in size")
    return 1


def _require(valid: NDArray[np.bool_], label: NDArray[np.float64], objective: Objective, allowed: str) -> None:
    """Name the first label that is not allowed."""
    if not valid.all():
        row = int(valid.argmin())
        raise DataError(f"label {label[row]:g} in row {row} is not {allowed}, as objective={objective.name!r} needs.")
