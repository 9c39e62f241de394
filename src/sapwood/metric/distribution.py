"""Metrics of predicted distributions: likelihood, CRPS, coverage, and the probability
integral transform.

In: labels and what `SapwoodDistribution.predict_dist` returns. Out: a number, or a
number for each row.
"""

from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.errors import DataError

Floats = NDArray[np.float64]

__all__ = ["coverage", "crps", "nll", "pit"]


def nll(y: ArrayLike, dist: Any, weight: ArrayLike | None = None) -> float:
    """The mean negative log likelihood; lower is better. It has the unit of log(1 /
    label).
    """
    return _mean(-_checked(dist).logpdf(y), weight)


def crps(y: ArrayLike, dist: Any, weight: ArrayLike | None = None) -> float:
    """The mean continuous ranked probability score, in the unit of the label; lower is
    better.

    It is the absolute error of a distribution: of a single value with probability 1 it
    is just that. In closed form for 'normal', else from 512 quantiles.
    """
    return _mean(_checked(dist).crps(y), weight)


def coverage(
    y: ArrayLike, dist: Any, level: float = 0.9, weight: ArrayLike | None = None
) -> float:
    """The share of labels inside of the central intervals that hold each with a
    probability of `level`.

    Ends belong to the interval, so counts are covered more often than `level` says.
    """
    label = np.asarray(y, np.float64)
    ends = _checked(dist).interval(level)
    return _mean(
        ((label >= ends[:, 0]) & (label <= ends[:, 1])).astype(np.float64), weight
    )


def pit(y: ArrayLike, dist: Any, seed: int = 0) -> Floats:
    """(n_rows,) the probability of less than the label: evenly spread from 0 to 1 where
    distributions are right.
    """
    return np.asarray(_checked(dist).pit(y, seed))


def _checked(dist: Any) -> Any:
    """What `predict_dist` returned, not one of its numbers."""
    if not hasattr(dist, "logpdf"):
        raise DataError(
            f"dist is a {type(dist).__name__}; give what SapwoodDistribution.predict_dist returns."
        )
    return dist


def _mean(values: Floats, weight: ArrayLike | None) -> float:
    """A mean, whatever the order of rows."""
    share = np.ones(len(values)) if weight is None else np.asarray(weight, np.float64)
    if share.shape != values.shape:
        raise DataError(
            f"weight has the shape {share.shape}; there are {len(values)} rows."
        )
    kept = share > 0
    return (
        fsum((values * share)[kept]) / fsum(share[kept]) if kept.any() else float("nan")
    )
