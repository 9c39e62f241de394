"""Curves and tables behind the plots and the report: what a single number hides.

In: labels 0 and 1 (or class indices) and predictions. Out: points of curves, counts of
tables.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError

Floats = NDArray[np.float64]
Z = 1.959963984540054  # of a two-sided 95 % interval


@dataclass(frozen=True, eq=False)
class Calibration:
    """Bins of predicted probabilities: what was predicted in each, what was observed,
    and its 95 % interval.
    """

    predicted: Floats  # (n_bins) mean probability
    observed: Floats  # (n_bins) share of label 1
    low: Floats  # (n_bins) Wilson's interval of the share
    high: Floats
    count: NDArray[np.int64]  # (n_bins) rows


def _ranked(y: Any, prediction: Any) -> tuple[Floats, Floats, Floats]:
    """Rows with label 1 and with label 0 at or above each distinct score, falling, and
    the scores.
    """
    label = np.asarray(y, np.float64)
    score = np.asarray(prediction, np.float64)
    if label.ndim != 1 or label.shape != score.shape:
        raise DataError(
            f"a curve needs one score for each label; there are {score.shape} and {label.shape}."
        )
    if not np.isin(label, (0, 1)).all() or label.min(initial=1) == label.max(initial=0):
        raise DataError(
            "a curve of two classes needs labels 0 and 1, and both of them."
        )
    order = np.argsort(-score, kind="stable")
    label = label[order]
    score = score[order]
    # the last row of each distinct score
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)
    ones = np.cumsum(label)[last]
    return ones, last + 1.0 - ones, score[last]


def roc(y: Any, prediction: Any) -> tuple[Floats, Floats, Floats]:
    """False positive rate, true positive rate and threshold of every point, from (0, 0)
    to (1, 1).
    """
    ones, zeros, score = _ranked(y, prediction)
    start = np.zeros(1)
    return (
        np.concatenate([start, zeros / zeros[-1]]),
        np.concatenate([start, ones / ones[-1]]),
        np.concatenate([[np.inf], score]),
    )


def precision_recall(y: Any, prediction: Any) -> tuple[Floats, Floats, Floats]:
    """Recall, precision and threshold of every point, with rising recall."""
    ones, zeros, score = _ranked(y, prediction)
    return ones / ones[-1], ones / (ones + zeros), score


def calibration(y: Any, prediction: Any, n_bins: int = 10) -> Calibration:
    """Bins with (nearly) the same number of rows; rows of one probability stay
    together.
    """
    label, p = np.asarray(y, np.float64), np.asarray(prediction, np.float64)
    edges = (
        np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)[1:-1]))
        if len(p)
        else np.empty(0)
    )
    place = np.searchsorted(edges, p, side="left")
    count = np.bincount(place, minlength=len(edges) + 1)
    kept = count > 0
    n = count[kept]
    predicted, ones = (
        np.bincount(place, by, len(edges) + 1)[kept] for by in (p, label)
    )
    low, high = wilson(ones, n)
    return Calibration(predicted / n, ones / n, low, high, n)


def confusion(y: Any, prediction: Any, n_classes: int) -> NDArray[np.int64]:
    """How many rows of each class (first axis) were predicted as each class; classes
    are indices.
    """
    pair = np.asarray(y, np.int64) * n_classes + np.asarray(prediction, np.int64)
    return np.bincount(pair, minlength=n_classes * n_classes).reshape(
        n_classes, n_classes
    )


def wilson(hits: Any, n: Any) -> tuple[Floats, Floats]:
    """Wilson's 95 % interval of a share: `hits` of `n`."""
    n = np.asarray(n, np.float64)
    share = np.asarray(hits, np.float64) / n
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * np.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)


def standard_error(values: Any) -> float:
    """Standard error of a mean."""
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        return 0.0
    # a power of two, so that no square overflows
    unit = np.ldexp(1.0, int(np.frexp(np.abs(values).max())[1]) - 1)
    return float(unit * (values / unit).std(ddof=1) / sqrt(len(values)))
