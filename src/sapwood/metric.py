"""How good is it: a few metrics by name, any function by value.

In: labels, predictions (after the link) and weights. Out: one number that does not depend on the order of rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import math
from sapwood.device import cpu
from sapwood.errors import DataError, ParameterError, suggest

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats, Floats | None], float]  # (y, prediction, weight)


@dataclass(frozen=True)
class Metric:
    """A metric, and which way is better."""

    name: str
    function: Function
    higher_is_better: bool = False
    links: tuple[str, ...] = ("identity", "sigmoid", "softmax")  # the objectives whose predictions it understands

    def __call__(self, y: Floats, prediction: Floats, weight: Floats | None) -> float:
        value: Any = self.function(y, prediction, weight)
        if not isinstance(value, Real):
            raise ParameterError(f"eval_metric {self.name!r} returned a {type(value).__name__}, not a number.")
        return float(value)


def mean(values: Floats, weight: Floats | None) -> float:
    """Weighted mean, the same whatever the order of rows (NUMERICS 4)."""
    total = float(len(values)) if weight is None else cpu.weight_sum(weight)
    if total == 0:
        raise DataError("a validation set without rows of positive weight cannot be measured; check its weights.")
    return cpu.exact_sum(np.ascontiguousarray(values, np.float64), weight) / total


def rmse(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Root mean squared error."""
    error = prediction - y
    # In units of a power of two near the largest error: no square overflows, and no bit changes.
    unit = np.ldexp(1.0, int(np.frexp(np.abs(error).max())[1]) - 1)
    return float(unit * sqrt(mean((error / unit) ** 2, weight)))


def mae(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean absolute error."""
    return mean(np.abs(prediction - y), weight)


def logloss(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Cross-entropy of labels 0 and 1."""
    return _cross_entropy(np.where(y > 0, prediction, 1.0 - prediction), weight)


def multi_logloss(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Cross-entropy of K classes."""
    return _cross_entropy(np.take_along_axis(prediction, y.astype(np.intp)[:, None], 1)[:, 0], weight)


def accuracy(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Share of rows whose most probable class is theirs; of equals, the first."""
    guess = prediction > 0.5 if prediction.ndim == 1 else prediction.argmax(1)
    return mean(guess == y, weight)


def error(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Share of rows whose most probable class is not theirs."""
    guess = prediction > 0.5 if prediction.ndim == 1 else prediction.argmax(1)
    return mean(guess != y, weight)


def auc(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Probability that a row of class 1 is ranked above one of class 0, equals counting half."""
    whole = np.ones(len(y), np.int64) if weight is None else _whole(weight)
    order = np.argsort(prediction)
    first = np.flatnonzero(np.diff(prediction[order], prepend=-1.0))  # predictions are in 0..1
    ones = np.add.reduceat(np.where(y > 0, whole, 0)[order], first)
    zeros = np.add.reduceat(np.where(y > 0, 0, whole)[order], first)
    pairs = float(ones.sum()) * float(zeros.sum())
    if pairs == 0:
        raise DataError("auc needs validation rows of both classes; add some or choose another eval_metric.")
    below = np.cumsum(zeros) - zeros
    return cpu.exact_sum(ones.astype(np.float64) * (2 * below + zeros).astype(np.float64), None) / (2 * pairs)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("rmse", rmse, links=("identity",)),
        Metric("mae", mae, links=("identity",)),
        Metric("logloss", logloss, links=("sigmoid",)),
        Metric("multi_logloss", multi_logloss, links=("softmax",)),
        Metric("accuracy", accuracy, higher_is_better=True, links=("sigmoid", "softmax")),
        Metric("error", error, links=("sigmoid", "softmax")),
        Metric("auc", auc, higher_is_better=True, links=("sigmoid",)),
    )
}
PEERS = {
    **dict.fromkeys(("l2_root", "root_mean_squared_error"), "rmse"),
    **dict.fromkeys(("l1", "mean_absolute_error"), "mae"),
    **dict.fromkeys(("binary_logloss", "log_loss"), "logloss"),
    **dict.fromkeys(("mlogloss", "multiclass", "softmax"), "multi_logloss"),
    **dict.fromkeys(("binary_error", "merror", "multi_error"), "error"),
}


def resolve(given: Any, *, default: str, link: str) -> tuple[Metric, ...]:
    """Turn ``eval_metric`` into metrics.

    Parameters
    ----------
    given : str, callable, (name, callable, higher_is_better), list of these, or None
        What the user asked for; None or an empty list is the default.
    default : str
        The objective's own metric.
    link : str
        The objective's link, which says what a prediction is.

    Returns
    -------
    tuple of Metric
    """
    asked = given if isinstance(given, list) else [] if given is None else [given]
    metrics = tuple(_one(metric, link) for metric in asked or [default])
    if len({metric.name for metric in metrics}) < len(metrics):
        raise ParameterError(f"eval_metric={given!r} has two metrics of one name; name them (name, callable, higher).")
    return metrics


def _one(given: Any, link: str) -> Metric:
    """One metric, by name or by value."""
    match given:
        case str():
            name = PEERS.get(given.lower(), given.lower())
            fitting = {metric.name: metric for metric in METRICS.values() if link in metric.links}
            if name not in fitting:
                why = "does not suit the objective" if name in METRICS else "is unknown"
                raise ParameterError(f"eval_metric={given!r} {why}; {suggest(name, fitting)}")
            return fitting[name]
        case (str() as name, function, bool() as higher) if callable(function):
            return Metric(name, function, higher)
        case function if callable(function):
            return Metric(getattr(function, "__name__", type(function).__name__), function)
    raise ParameterError(f"eval_metric={given!r} is no metric; give a name or (name, callable, higher_is_better).")


def _cross_entropy(probability: Floats, weight: Floats | None) -> float:
    """Mean of -log p, with p kept off 0."""
    return -mean(math.log(np.maximum(probability, 1e-15)), weight)


def _whole(weight: Floats) -> NDArray[np.int64]:
    """Weights as integers, the largest near 2^30: sums of them do not depend on order, and whole weights stay exact."""
    return np.rint(np.ldexp(weight, 30 - int(np.frexp(weight.max())[1]))).astype(np.int64)
