"""Quantiles and histograms of numbers of any size: no difference between two of them
overflows.

In: finite numbers. Out: their quantiles; how many of them are between edges.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGE = 2.0**1020  # the difference of two numbers of this size is finite
UNIT = 0.125  # what larger ones are multiplied with, exactly


def quantiles(values: Floats, levels: float | Sequence[float] | Floats) -> Any:
    """The quantiles of `numpy.quantile`."""
    unit = _unit(values)
    return np.quantile(unit * values, levels) / unit


def histogram(values: Floats, n: int) -> tuple[NDArray[np.int64], Floats]:
    """How many values lie in each of `n` intervals of one width, and the n + 1 edges;
    one interval if all are equal.
    """
    low = float(values.min())
    high = float(values.max())
    unit = _unit(values)
    width = unit * high - unit * low
    if width == 0:
        return np.array([len(values)]), np.array([low, high])
    place = np.floor((unit * values - unit * low) / width * n).astype(np.int64)
    counts = np.bincount(np.minimum(place, n - 1), minlength=n)
    share = np.arange(n + 1) / n
    return counts, low * (1 - share) + high * share


def _unit(values: Floats) -> float:
    return UNIT if np.abs(values).max(initial=0.0) > LARGE else 1.0
