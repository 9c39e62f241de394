"""The dictionary of a column of categories, in plain Python (NUMERICS,
dictionaries).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import reference

MAX_BINS = 65_534


def dictionary(values: Sequence[Any], weight: NDArray[np.float64] | None) -> list[Any]:
    """The values, None apart, by what they count: the largest first, equal ones in
    order.
    """
    counts = reference.weights(weight, len(values)).count
    total: dict[Any, int] = {}
    for value, count in zip(values, counts.tolist(), strict=True):
        if value is not None and count > 0:
            total[value] = total.get(value, 0) + int(count)
    return sorted(total, key=lambda value: (-total[value], value))


def codes(values: Sequence[Any], known: Sequence[Any]) -> list[int]:
    """The code of every row; missing values, and those that are not known, have that of
    missing ones.
    """
    n_bins = max(1, min(len(known), MAX_BINS))
    place = {value: min(rank, n_bins - 1) for rank, value in enumerate(known)}
    return [place.get(value, n_bins) for value in values]
