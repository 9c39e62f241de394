"""Whether the data has the bins that a training asks for: they were made with the data, and stay.

In: what was given, and the data. Out: nothing, an error, or a warning where a recipe alone would have other bins.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood.data.dataset import BY_RECIPE, Dataset
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.device import host
from sapwood.errors import ParameterError
from sapwood.params import called, given_names

SAMPLE = 200_000  # rows that cuts come from, where there are more


def check(params: Mapping[str, Any], given: Mapping[str, Any], data: Dataset) -> None:
    """Raise where the data was made with other bins than were given; warn where a recipe has others.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    given : mapping
        What the user gave.
    data : Dataset
        Training rows.
    """
    by_hand, recipe = given_names(given), f"recipe={params['recipe']!r}"
    for name in BIN_PARAMS:
        if name in by_hand and params[name] != getattr(data, name):
            raise ParameterError(
                f"{called(name, given)}, but the data was made with {getattr(data, name)!r}; give it to Dataset too."
            )
    if "device" in by_hand and params["device"] != data.device.name:
        raise ParameterError(
            f"{called('device', given)}, but the data was made with {data.device.name!r}; give it to Dataset too."
        )
    wanted, made = ({name: of[name] for name in BY_RECIPE} for of in (params, vars(data)))
    others = [name for name in BY_RECIPE if name not in by_hand and wanted[name] != made[name]]
    if params["recipe"] is None or not others or data.tree_method == "exact":
        return
    if _width(data, **wanted) != _width(data, **made):
        theirs, ours = (" and ".join(f"{name}={bins[name]}" for name in others) for bins in (wanted, made))
        warnings.warn(
            f"{recipe} has {theirs}, but the data was made with {ours}; make it with Dataset(..., {recipe}), or give "
            f"{ours} here too if that is meant.",
            UserWarning,
            stacklevel=4,
        )


def _width(data: Dataset, max_bins: int, min_samples_bin: int) -> tuple[int, int] | None:
    """What the bins of a column depend on (NUMERICS 3); None where every value has its own."""
    if data.n_rows <= max_bins or len(data.categories) == data.n_columns:
        return None
    rows = data.n_rows
    if data.weight is not None:
        counts, whole, _ = host.integer_weights(data.weight)
        rows = int(counts.sum()) if whole else int(np.count_nonzero(counts))
    rows = int(rows * min(1.0, SAMPLE / data.n_rows))
    return max_bins, min(max_bins, max(128, rows // min_samples_bin))
