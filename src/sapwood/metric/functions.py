"""The formulas of all metrics.

In: labels, predictions (after the link) and weights. Out: one number that does not
depend on the order of rows.

Every metric takes ``(y, prediction, weight)``. Predictions (n) are values,
probabilities of class 1, or classes 0 and
1. Predictions (n, K) are probabilities of the classes 0..K-1 that `y` holds. A row of weight 2 equals the row twice, to
the last bit. With ``reduce`` the rows are those of one of several holders; the metric
is that of the rows of all.
"""

from collections.abc import Callable
from math import frexp, inf, sqrt
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary, host
from sapwood.errors import DataError
from sapwood.reduce import Reduce

__all__ = [
    "accuracy",
    "auc",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "error",
    "expectile",
    "f1",
    "gamma",
    "huber",
    "kappa",
    "logloss",
    "mae",
    "mape",
    "mcc",
    "mean",
    "median_absolute_error",
    "mse",
    "msle",
    "pinball",
    "poisson",
    "precision",
    "r2",
    "recall",
    "rmse",
    "rmsle",
    "smape",
    "tweedie",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Weight = Floats | None
Holders = Reduce | None
# (y, prediction, weight), and by name `reduce` and the metric's own parameter
Function = Callable[..., float]


class NotFinite(DataError):
    """A loss of a row is NaN, infinite or beyond the largest number."""


def mean(
    values: Floats | NDArray[np.bool_], weight: Weight, reduce: Holders = None
) -> float:
    """Weighted mean, the same for any order of rows (NUMERICS 4)."""
    values = np.ascontiguousarray(values, np.float64)
    try:
        total = host.exact_sum(values, weight, reduce=reduce)
    except ValueError as cause:
        raise NotFinite(str(cause)) from cause
    return total / _total(weight, len(values), reduce)


def _squares(values: Floats) -> Floats:
    """Squares; one that overflows is infinite, and no mean has it."""
    with np.errstate(over="ignore"):
        return np.square(values)


# --------------------------------------------------------------------------------------
# values
def mse(y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None) -> float:
    """Mean squared error."""
    return mean(_squares(prediction - y), weight, reduce)


def rmse(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Root mean squared error."""
    return _root_mean_square(prediction - y, weight, reduce)


def rmsle(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Root mean squared error of log(1 + value); predictions of -1 count as slightly
    larger.
    """
    return _root_mean_square(_log_error(y, prediction, "rmsle"), weight, reduce)


def msle(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Mean squared error of log(1 + value); predictions of -1 count as slightly
    larger.
    """
    return mean(_log_error(y, prediction, "msle") ** 2, weight, reduce)


def mae(y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None) -> float:
    """Mean absolute error."""
    return mean(np.abs(prediction - y), weight, reduce)


def mape(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Mean absolute error relative to the label; labels within -1..1 count as 1 (as in
    LightGBM and CatBoost).
    """
    return mean(np.abs(prediction - y) / np.maximum(1.0, np.abs(y)), weight, reduce)


def smape(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Mean absolute error relative to the mean size of label and prediction, from 0 to
    2; 0 where both are 0.
    """
    size = (np.abs(y) + np.abs(prediction)) / 2
    return mean(np.abs(prediction - y) / np.where(size > 0, size, 1.0), weight, reduce)


def median_absolute_error(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Median of the absolute errors; with two medians, their mean."""
    errors, weight = _gather(reduce, np.abs(prediction - y), weight)
    size = np.sort(errors)
    below = np.cumsum(_integer_weights(weight, len(errors))[np.argsort(errors)])
    half = int(below[-1]) // 2
    low, high = size[np.searchsorted(below, [half + int(below[-1]) % 2, half + 1])]
    return float((low + high) / 2)


def r2(y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None) -> float:
    """Explained fraction of the labels' variance: 1 at best, 0 for predicting their
    mean, negative for worse.
    """
    centre = mean(y, weight, reduce)
    low, high = _range(y if weight is None else y[weight > 0], reduce)
    if low == high:
        raise DataError(
            "r2 needs validation labels that differ; add rows or choose another eval_metric."
        )
    return 1.0 - mse(y, prediction, weight, reduce) / mean(
        _squares(y - centre), weight, reduce
    )


def pinball(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    alpha: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Loss of the `alpha`-quantile: alpha (y - p) where y > p, else (1 - alpha) (p -
    y).
    """
    short = y - prediction
    return mean(np.maximum(alpha * short, (alpha - 1.0) * short), weight, reduce)


def expectile(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    alpha: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Squared error, times alpha where y > p, else times 1 - alpha."""
    return mean(
        np.where(y > prediction, alpha, 1.0 - alpha) * _squares(y - prediction),
        weight,
        reduce,
    )


def huber(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    delta: float = 1.0,
    reduce: Holders = None,
) -> float:
    """Half the squared error up to an error of `delta`, delta (|error| - delta / 2)
    beyond.
    """
    size = np.abs(prediction - y)
    near = np.minimum(size, delta)
    return mean(near * (size - 0.5 * near), weight, reduce)


def poisson(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Poisson deviance, 2 (y log(y / p) - y + p)."""
    _require(y >= 0, y, "poisson needs labels of 0 or more")
    p = _rate(prediction, "poisson")
    # y log y is 0 at 0
    return 2.0 * mean(
        y * elementary.log(np.where(y > 0, y, p) / p) - y + p, weight, reduce
    )


def gamma(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Gamma deviance, 2 (y / p - log(y / p) - 1)."""
    _require(y > 0, y, "gamma needs labels above 0")
    ratio = y / _rate(prediction, "gamma")
    return 2.0 * mean(ratio - elementary.log(ratio) - 1.0, weight, reduce)


def tweedie(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    power: float = 1.5,
    reduce: Holders = None,
) -> float:
    """Tweedie deviance, variance p^power: 2 (y^b / (a b) - y p^a / a + p^b / b) with a
    = 1 - power, b = 2 - power.
    """
    _require(y >= 0, y, "tweedie needs labels of 0 or more")
    a = 1.0 - power
    b = 2.0 - power
    log_p = elementary.log(_rate(prediction, "tweedie"))
    best = np.where(
        y > 0, elementary.exp(b * elementary.log(np.where(y > 0, y, 1.0))), 0.0
    ) / (a * b)
    return 2.0 * mean(
        best - y * elementary.exp(a * log_p) / a + elementary.exp(b * log_p) / b,
        weight,
        reduce,
    )


# --------------------------------------------------------------------------------------
# probabilities
def logloss(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Cross-entropy of K classes, or of labels from 0 to 1; probabilities are at least
    1e-15.
    """
    if prediction.ndim == 2:
        return mean(
            _cost(np.take_along_axis(prediction, y.astype(np.intp)[:, None], 1)[:, 0]),
            weight,
            reduce,
        )
    # the same bits with one logarithm per row, which takes most of the time
    if _is_class(y).all():
        return mean(
            _cost(np.where(y > 0, prediction, 1.0 - prediction)), weight, reduce
        )
    return mean(
        y * _cost(prediction) + (1.0 - y) * _cost(1.0 - prediction), weight, reduce
    )


def brier(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Mean squared error of the probability of class 1; summed over the classes where
    there are several.
    """
    if prediction.ndim == 1:
        return mse(y, prediction, weight, reduce)
    total = np.zeros(len(y))
    for k in range(prediction.shape[1]):
        total += (prediction[:, k] - (y == k)) ** 2
    return mean(total, weight, reduce)


def auc(y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None) -> float:
    """Probability that a row of class 1 ranks above one of class 0, ties counting half;
    several classes: the mean of each against the rest."""
    if prediction.ndim == 2:
        return _each_class(auc, y, prediction, weight, reduce)
    ones, zeros = _ranked(y, prediction, weight, "auc", reduce)
    pairs = float(ones.sum()) * float(zeros.sum())
    if pairs == 0:
        raise DataError(
            "auc needs validation rows of every class; add some or choose another eval_metric."
        )
    below = np.cumsum(zeros) - zeros
    return host.exact_sum(
        ones.astype(np.float64) * (2 * below + zeros).astype(np.float64), None
    ) / (2 * pairs)


def average_precision(
    y: Floats, prediction: Floats, weight: Weight, reduce: Holders = None
) -> float:
    """Mean precision over the rows of class 1, each at its own rank; several classes:
    the mean of each against the rest."""
    if prediction.ndim == 2:
        return _each_class(average_precision, y, prediction, weight, reduce)
    ranked = _ranked(y, prediction, weight, "average_precision", reduce)
    ones, zeros = (counts[::-1] for counts in ranked)  # highest first
    found = np.cumsum(ones)
    if found[-1] == 0:
        raise DataError(
            "average_precision needs validation rows of class 1, or of every class where there are several; "
            "add some or choose another eval_metric."
        )
    # 0 while all rows so far have weight 0
    precision = found / np.maximum(found + np.cumsum(zeros), 1)
    return host.exact_sum(ones * precision, None) / float(found[-1])


# --------------------------------------------------------------------------------------
# labels
def accuracy(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Fraction of rows whose class is predicted: 1 above the threshold; of several
    classes the first most probable.
    """
    return mean(_predicted(y, prediction, threshold) == y, weight, reduce)


def error(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Fraction of rows whose class is not predicted."""
    return mean(_predicted(y, prediction, threshold) != y, weight, reduce)


def balanced_accuracy(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Mean recall over the classes that have rows."""
    table = _confusion(y, prediction, weight, threshold, reduce)
    return fmean(
        hit / size
        for hit, size in zip(table.diagonal(), table.sum(1), strict=True)
        if size
    )


def f1(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Harmonic mean of precision and recall of class 1; several: the mean over classes
    with rows or predictions.
    """
    table = _confusion(y, prediction, weight, threshold, reduce)
    return _hit_rate(table, (table.sum(0) + table.sum(1)) / 2, prediction, "f1")


def precision(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Fraction of the predictions of class 1 that are right, 0 if there are none;
    several classes: as f1.
    """
    table = _confusion(y, prediction, weight, threshold, reduce)
    return _hit_rate(table, table.sum(0), prediction, "precision")


def recall(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Fraction of the rows of class 1 that are predicted; several classes: as f1."""
    table = _confusion(y, prediction, weight, threshold, reduce)
    return _hit_rate(table, table.sum(1), prediction, "recall")


def kappa(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Cohen's kappa: accuracy above that of chance, 1 at best."""
    hits, classes, predicted, total = _margins(
        _confusion(y, prediction, weight, threshold, reduce), "kappa"
    )
    chance = classes @ predicted
    return float((total * hits - chance) / (total**2 - chance))


def mcc(
    y: Floats,
    prediction: Floats,
    weight: Weight,
    threshold: float = 0.5,
    reduce: Holders = None,
) -> float:
    """Matthews' correlation of classes and predictions (Gorodkin's R_K); 0 if all
    predictions are the same.
    """
    hits, classes, predicted, total = _margins(
        _confusion(y, prediction, weight, threshold, reduce), "mcc"
    )
    variance = (total**2 - classes @ classes) * (total**2 - predicted @ predicted)
    return (
        float((total * hits - classes @ predicted) / sqrt(variance))
        if variance
        else 0.0
    )


# -------------------------------------------------------------------------------------
# what formulas share
def _total(weight: Weight, n_rows: int, reduce: Holders = None) -> float:
    """Sum of the weights; 0 is an error."""
    if weight is not None:
        total = host.weight_sum(weight, reduce=reduce)
    else:
        count = np.array([n_rows], np.int64)
        if reduce is not None:
            reduce.sum(count)
        total = float(count[0])
    if total == 0:
        raise DataError(
            "a validation set without rows of positive weight cannot be measured; check its weights."
        )
    return total


def _integer_weights(weight: Weight, n_rows: int, reduce: Holders = None) -> Integers:
    """Weights as integers that sum to about 2^61: their sums have no order, and whole
    weights are exact.
    """
    if weight is not None and np.shape(weight) != (n_rows,):
        raise DataError(
            f"weights {np.shape(weight)} must have one value for each of {n_rows} rows."
        )
    shift = 61 - frexp(_total(weight, n_rows, reduce))[1]
    return np.rint(
        np.ldexp(np.ones(n_rows) if weight is None else weight, shift)
    ).astype(np.int64)


def _gather(reduce: Holders, values: Floats, *others: Weight) -> tuple[Any, ...]:
    """Arrays by row, of the rows of all holders."""
    if reduce is None:
        return values, *others
    parts = (
        None if one is None else b"".join(reduce.gather(one.tobytes()))
        for one in (values, *others)
    )
    return tuple(
        None if part is None else np.frombuffer(part, np.float64) for part in parts
    )


def _range(values: Floats, reduce: Holders) -> tuple[float, float]:
    """The smallest and the largest value."""
    ends = np.array([values.min(initial=inf), values.max(initial=-inf)])
    (ends,) = _gather(reduce, ends)
    return float(ends[::2].min()), float(ends[1::2].max())


def _require(valid: NDArray[np.bool_], values: Floats, what: str) -> None:
    """Raise an error that names the first row that is not valid."""
    if not valid.all():
        row = int(valid.argmin())
        raise DataError(
            f"{what}, and validation row {row} has {values[row]:g}; choose another eval_metric."
        )


def _root_mean_square(values: Floats, weight: Weight, reduce: Holders) -> float:
    """In units of a power of two near the largest value: no square overflows, and no
    bit changes.
    """
    unit = np.ldexp(1.0, int(np.frexp(_range(np.abs(values), reduce)[1])[1]) - 1)
    return float(unit * sqrt(mean(_squares(values / unit), weight, reduce)))


def _log_error(y: Floats, prediction: Floats, name: str) -> Floats:
    """Errors of log(1 + value)."""
    _require(y > -1, y, f"{name} needs labels above -1")
    _require(prediction >= -1, prediction, f"{name} needs predictions of -1 or more")
    return elementary.log1p(
        np.maximum(prediction, np.nextafter(-1.0, 0.0))
    ) - elementary.log1p(y)


def _rate(prediction: Floats, name: str) -> Floats:
    """Predictions of 0 or more, at least 1e-100: e^score underflows to 0 for low
    scores.
    """
    _require(prediction >= 0, prediction, f"{name} needs predictions of 0 or more")
    return np.maximum(prediction, 1e-100)


def _cost(probability: Floats) -> Floats:
    """Minus the logarithm of a probability, which counts as at least 1e-15."""
    return -elementary.log(np.maximum(probability, 1e-15))


def _is_class(y: Floats) -> NDArray[np.bool_]:
    """Which labels are 0 or 1."""
    return np.asarray((y == 0) | (y == 1))


def _predicted(y: Floats, prediction: Floats, threshold: float) -> NDArray[Any]:
    """The predicted class of every row."""
    if prediction.ndim == 2:
        return np.asarray(prediction.argmax(1))
    _require(
        _is_class(y),
        y,
        "a metric of predicted classes needs labels 0 or 1 (logloss takes those between)",
    )
    return prediction > threshold


def _confusion(
    y: Floats, prediction: Floats, weight: Weight, threshold: float, reduce: Holders
) -> Integers:
    """Total weight of the rows of every class (down) and predicted class (across)."""
    n_classes = 2 if prediction.ndim == 1 else prediction.shape[1]
    cell = n_classes * y.astype(np.intp) + _predicted(y, prediction, threshold)
    table = np.zeros(n_classes * n_classes, np.int64)
    np.add.at(table, cell, _integer_weights(weight, len(y), reduce))
    if reduce is not None:
        reduce.sum(table)
    return table.reshape(n_classes, n_classes)


def _margins(table: Integers, name: str) -> tuple[Any, Any, Any, Any]:
    """Weights of hits, of every class, of every predicted class, and of all rows, as
    integers that do not overflow.
    """
    whole = table.astype(object)
    classes = whole.sum(1)
    total = whole.sum()
    if (classes == total).any():
        raise DataError(
            f"{name} needs validation rows of two classes; add some or choose another eval_metric."
        )
    return whole.trace(), classes, whole.sum(0), total


def _hit_rate(
    table: Integers, sizes: NDArray[Any], prediction: Floats, name: str
) -> float:
    """Hits divided by a size, of class 1 or as the mean over classes with rows or
    predictions; 0 without any.
    """
    rates = table.diagonal() / np.maximum(sizes, 1)
    if prediction.ndim == 2:
        return fmean(rates[(table.sum(0) + table.sum(1)) > 0])
    if not table[1].any():
        raise DataError(
            f"{name} needs validation rows of class 1; add some or choose another eval_metric."
        )
    return float(rates[1])


def _ranked(
    y: Floats, prediction: Floats, weight: Weight, name: str, reduce: Holders
) -> tuple[Integers, Integers]:
    """Total weight of class 1 and of class 0 at every distinct prediction, lowest
    first.
    """
    if np.shape(y) != np.shape(prediction):
        raise DataError(
            f"labels {np.shape(y)} and predictions {np.shape(prediction)} must have one value for each row."
        )
    _require(
        _is_class(y), y, f"{name} needs labels 0 or 1 (logloss takes those between)"
    )
    prediction, y, weight = _gather(reduce, np.ascontiguousarray(prediction), y, weight)
    weights = _integer_weights(weight, len(y))
    order = np.argsort(prediction)
    ranked = prediction[order]
    first = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    ones = np.add.reduceat(np.where(y > 0, weights, 0)[order], first)
    zeros = np.add.reduceat(np.where(y > 0, 0, weights)[order], first)
    return ones, zeros


def _each_class(
    function: Function, y: Floats, prediction: Floats, weight: Weight, reduce: Holders
) -> float:
    """Mean over the classes of a metric of each against the rest."""
    return fmean(
        function((y == k) * 1.0, column, weight, reduce=reduce)
        for k, column in enumerate(prediction.T)
    )
