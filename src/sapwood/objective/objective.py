"""An objective: the loss to minimise with its own parameters, checked against the
labels.

In: resolved parameters and labels. Out: an `Objective`, label planes for the core, and
gradients into a trainer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import Trainer, host
from sapwood.errors import DataError, DivergedError, ParameterError, near, suggest
from sapwood.objective.custom import CORE, Custom
from sapwood.objective.ranking import LOSSES, GroupLoss
from sapwood.params import OBJECTIVES
from sapwood.params.types import Number

Floats = NDArray[np.float64]
MAX_LABEL = 1e150  # squares of labels must stay finite in float64
# may have several values: one label, and an output for each value
LEVELS = ("quantile_alpha", "expectile_alpha")
# beginnings of the peers' names of objectives that are something else here, or near to
# something
INSTEAD = {
    "survival:aft": "times are for SapwoodSurvival(model='aft')",
    "survival": "times are for SapwoodSurvival(model='cox')",
    "cox": "times are for SapwoodSurvival(model='cox')",
    "rmsewithuncertainty": "use SapwoodDistribution(family='normal'), a mean and a deviation for every row",
    "binary:logitraw": "use 'logistic' and predict(raw=True)",
    "reg:pseudohubererror": "'huber' and 'log_cosh' are near to it",
    "cross_entropy_lambda": "use 'cross_entropy', with sample_weight for the weights of rows",
    "xentlambda": "use 'cross_entropy', with sample_weight for the weights of rows",
    "query": "'query_rmse' and 'rank_xendcg' are losses of groups",
    "stochasticrank": "'lambdarank' and 'yetirank' are near to it",
    "yetirankpairwise": "use 'yetirank'",
    "pairlogitpairwise": "use 'pair_logit'",
}
GRADES = "a number of at least 0"  # labels of ranking
MAX_SHOWN = 5  # classes in an error message


@dataclass(frozen=True)
class Objective:
    """An objective and the values of its own fields."""

    name: str
    # its name in the core; for a user's objective, one that only carries the labels
    core: str
    # from raw scores to predictions; "custom" where a user's function does that
    link: str
    metric: Any  # the default metric: a name, or a user's function
    labels: str  # the allowed labels, in words
    leaf: str  # the meaning of leaf_estimation="auto"
    path_smooth: float  # the meaning of path_smooth="auto"
    pointwise: bool
    fields: Mapping[str, float | list[float]]  # a list: a level for each output
    custom: Custom | GroupLoss | None = None

    def at(self, output: int) -> dict[str, float]:
        """The values of the fields for one output."""
        return {
            name: one[output] if isinstance(one, list) else one
            for name, one in self.fields.items()
        }

    def predict(self, raw: Floats, n_threads: int) -> Floats:
        """Predictions from raw scores (n_rows, n_outputs); (n_rows) where there is
        one.
        """
        if isinstance(self.custom, Custom) and self.custom.transform is not None:
            return self.custom.predict(raw[:, 0] if raw.shape[1] == 1 else raw)
        prediction = host.link(self.link, raw, n_threads)
        return prediction[:, 0] if raw.shape[1] == 1 else prediction


@cache
def field_aliases() -> Mapping[str, str]:
    """Our name of every parameter that belongs to an objective and not to the table, by
    every name it has.
    """
    names: dict[str, str] = {}
    for entry in host.objectives().values():
        for field, (*_, aliases) in entry["fields"].items():
            names |= dict.fromkeys([field, *filter(None, aliases.split(","))], field)
    return names


def resolve(params: Mapping[str, Any]) -> Objective:
    """Find the ``objective`` of resolved parameters, by name or a user's own, and check
    its fields among them.
    """
    known = host.objectives()
    name = params["objective"]
    if isinstance(name, GroupLoss) or (isinstance(name, str) and name in LOSSES):
        loss = name if isinstance(name, GroupLoss) else GroupLoss(name)
        _refuse_fields(params, loss.name, ())
        return Objective(
            loss.name,
            CORE,
            "identity",
            loss.metric,
            GRADES,
            "newton",
            0.0,
            True,
            {},
            loss,
        )
    if not isinstance(name, str):
        own = Custom.of(name)
        _refuse_fields(params, own.name, ())
        return Objective(
            own.name,
            CORE,
            own.link,
            own.metric,
            "a number",
            "newton",
            0.0,
            True,
            {},
            own,
        )
    if name not in known:
        if other := [what for head, what in INSTEAD.items() if name.startswith(head)]:
            raise ParameterError(f"objective={name!r} is not available; {other[0]}.")
        hint = near(name, [*known, *LOSSES, *OBJECTIVES]) or suggest(
            name, [*known, *LOSSES]
        )
        raise ParameterError(f"objective={name!r} is unknown; {hint}")
    entry = known[name]
    _refuse_fields(params, name, entry["fields"])
    fields: dict[str, float | list[float]] = {}
    for field, (low, high, is_open, default, _) in entry["fields"].items():
        kind = Number(low, high, low_open=is_open, high_open=is_open)
        value = params.get(field, default)
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(value, list | tuple) and len(value) and field in LEVELS:
            levels = [
                kind.check(f"{field}={value!r}, in which {one!r}", one) for one in value
            ]
            fields[field] = levels if len(levels) > 1 else levels[0]
        else:
            fields[field] = kind.check(f"{field}={value!r}", value)
    words = {
        what: entry[what]
        for what in ("link", "metric", "labels", "leaf", "path_smooth", "pointwise")
    }
    if params.get("quantiles") is not None and len(params["quantiles"]) > 1:
        words["link"] = "ascending"  # quantiles of a row are sorted
    return Objective(name, name, fields=fields, **words)


def _refuse_fields(params: Mapping[str, Any], name: str, own: Any) -> None:
    """Raise on a field of another objective."""
    for other in sorted(set(field_aliases().values()) - set(own)):
        if other in params:
            raise ParameterError(
                f"{other}={params[other]!r} is not a parameter of objective={name!r}; leave it out."
            )


def outputs(objective: Objective, label: Floats, n_classes: int | None = None) -> int:
    """Check the labels, (n_rows) or (n_rows, n_outputs), against the objective, and
    count the scores of a row.

    It is the number of classes, by default the largest label plus 1; of levels; of
    label columns; or what a custom objective says.
    """
    if isinstance(objective.custom, GroupLoss):
        if label.ndim != 1:
            raise DataError(
                f"objective={objective.name!r} takes one label per row; the label has {label.shape[1]}."
            )
        _require((label >= 0) & np.isfinite(label), label, objective, objective.labels)
        return 1
    if objective.custom is not None:
        own = objective.custom.n_outputs
        if own is not None and n_classes not in (None, own):
            raise ParameterError(
                f"n_classes={n_classes}, but the objective has n_outputs={own}; leave n_classes out."
            )
        return own or n_classes or (label.shape[1] if label.ndim == 2 else 1)
    finite = np.isfinite(label)
    if objective.labels == "a class index":
        if label.ndim == 2:
            raise DataError(
                f"objective={objective.name!r} takes one class per row; for a 2-D target use 'multilabel'."
            )
        top = (
            n_classes
            if n_classes is not None
            else max(2, int(label.max(where=finite, initial=0)) + 1)
        )
        whole = finite & (label == np.floor(label))
        _require(
            whole & (label >= 0) & (label < top),
            label,
            objective,
            f"one of 0..{top - 1}",
        )
        if n_classes is None:
            _require_every_class(label, top)
        return top
    valid: dict[str, Callable[[], NDArray[np.bool_]]] = {
        "a number": lambda: finite,
        "a number of at least 0": lambda: label >= 0,
        "a number above 0": lambda: label > 0,
        "a number from 0 to 1": lambda: (label >= 0) & (label <= 1),
        "0 or 1": lambda: (label == 0) | (label == 1),
    }
    _require(valid[objective.labels]() & finite, label, objective, objective.labels)
    _require(
        (label >= -MAX_LABEL) & (label <= MAX_LABEL),
        label,
        objective,
        f"a number up to {MAX_LABEL:g} in size",
    )
    n_outputs = label.shape[1] if label.ndim == 2 else 1
    if levels := [
        (name, one) for name, one in objective.fields.items() if isinstance(one, list)
    ]:
        if n_outputs > 1:
            raise DataError(
                f"{levels[0][0]} with several values takes one target; the label has {n_outputs} columns."
            )
        return len(levels[0][1])
    if n_outputs > 1 and host.objectives()[objective.core]["adaptive"]:
        raise DataError(
            f"objective={objective.name!r} adapts to one target; the label has {n_outputs} columns."
        )
    return n_outputs


def _require(
    valid: NDArray[np.bool_], label: Floats, objective: Objective, allowed: str
) -> None:
    """Raise an error that names the first label that is not allowed."""
    if not valid.all():
        at = np.unravel_index(int(valid.argmin()), label.shape)
        where = f"row {at[0]}" if label.ndim == 1 else f"row {at[0]}, column {at[1]}"
        hint = " Give label == c for a class c." if objective.labels == "0 or 1" else ""
        if objective.labels in ("0 or 1", "a class index"):
            hint += " SapwoodClassifier takes classes of any kind."
        raise DataError(
            f"label {label[at]:g} in {where} is not {allowed}, as objective={objective.name!r} needs.{hint}"
        )


def _require_every_class(label: Floats, n_classes: int) -> None:
    """Raise if a class has no row: labels that count from 1 would train a class 0 for
    nothing.
    """
    found = host.distinct(label, 65_535)
    occur = np.unique(label) if found is None else found[0]
    if len(occur) <= occur[-1]:
        gaps = np.setdiff1d(np.arange(min(n_classes, len(occur) + MAX_SHOWN)), occur)[
            :MAX_SHOWN
        ]
        named = ", ".join(map(str, gaps)) + (
            ", ..." if n_classes - len(occur) > len(gaps) else ""
        )
        raise DataError(
            f"labels run from {occur[0]:g} to {occur[-1]:g}, but no row has class {named}; number the classes from 0 "
            f"without gaps (SapwoodClassifier does), or confirm their number: n_classes={n_classes}."
        )


def planes(objective: Objective, label: Floats, n_outputs: int) -> Floats:
    """Labels as the core takes them: (1, n_rows), or (n_outputs, n_rows) if outputs
    have labels of their own.
    """
    if objective.custom is not None:
        return np.zeros((1, len(label)))  # the core does not read them
    # each class against the rest
    if objective.labels == "a class index" and objective.pointwise:
        return np.equal(label, np.arange(n_outputs)[:, None]).astype(np.float64)
    return np.ascontiguousarray(label.reshape(len(label), -1).T)


def start(
    objective: Objective,
    trainer: Trainer,
    given: Any,
    n_outputs: int,
    label: Floats,
    weight: Any,
) -> Floats:
    """The start scores (n_outputs): those given, or the constants that minimise the
    loss.
    """
    if isinstance(given, str):  # "auto"
        if objective.custom is not None:
            return objective.custom.start(label, weight, n_outputs)
        return trainer.start()
    values = np.atleast_1d(np.asarray(given, np.float64))
    if values.shape not in ((1,), (n_outputs,)):
        raise ParameterError(
            f"start={given!r} has {len(values)} values; give one, or one for each of {n_outputs} scores."
        )
    return np.ascontiguousarray(np.broadcast_to(values, (n_outputs,)))


def gradients(
    objective: Objective,
    trainer: Trainer,
    params: Mapping[str, Any],
    index: int,
    label: Floats,
    weight: Floats | None,
) -> None:
    """Compute the gradients of round `index` in a trainer, by the core's objective or
    by a user's.

    label, weight: (n_rows) or (n_rows, n_outputs), and (n_rows) or None, float64; only
    a user's objective reads them.
    """
    own: tuple[Any, ...] = ()
    # of a device whose arrays are not those of the host
    there = getattr(trainer, "arrays_there", None)
    if (
        there is not None
        and isinstance(objective.custom, Custom)
        and objective.custom.device_arrays
    ):
        own = objective.custom.gradients_there(*there(label, weight))
    elif objective.custom is not None:
        own = objective.custom.gradients(label, trainer.scores(), weight, index)
    unit_leaf = params["leaf_estimation"] == "gradient"
    try:
        trainer.gradients(
            params["precision"],
            unit_leaf or params["hessian"] == "none",
            unit_leaf,
            *own,
        )
    except OverflowError as cause:
        raise DivergedError(f"in round {index + 1} the gradients are") from cause
