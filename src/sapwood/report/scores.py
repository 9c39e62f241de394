"""Scores of a model with 95 % intervals, beside those of a guess that looks at no
column.

In: labels and predictions. Out: a list of `Score`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric as metrics
from sapwood.device import elementary
from sapwood.metric.curves import Z, standard_error
from sapwood.model.booster import Booster
from sapwood.model.explain.shapley import labels_of

Floats = NDArray[np.float64]
N_BOOTSTRAP = 60  # for metrics without a formula of their error

OF_BINARY = ("logloss", "auc", "average_precision", "brier", "accuracy", "f1")
OF_CLASSES = ("logloss", "accuracy", "balanced_accuracy", "f1", "auc")
OF_VALUES = ("rmse", "mae", "r2", "median_absolute_error")


@dataclass(frozen=True)
class Score:
    """A metric on some rows."""

    name: str
    value: float
    low: float  # of a 95 % interval
    high: float
    # of a guess that looks at no column; None where it has no meaning
    baseline: float | None
    higher_is_better: bool


def metrics_of(booster: Booster) -> tuple[str, ...]:
    """The metrics that suit a model, the one that training minimised first."""
    from sapwood.device import host

    own = host.objectives().get(booster.objective, {}).get("metric", "")
    usual: tuple[str, ...] = OF_VALUES
    if booster.link in metrics.BINARY:
        usual = OF_BINARY
    elif booster.link in metrics.CLASSES:
        usual = OF_CLASSES
    elif booster.link in metrics.STEP:
        usual = ("accuracy", "f1")
    return tuple(dict.fromkeys(name for name in (own, *usual) if name))


def scores(
    booster: Booster, y: Any, prediction: Floats, names: tuple[str, ...] = ()
) -> list[Score]:
    """Every metric of `names`, by default those that suit the model; one that cannot be
    measured is left out.
    """
    label = labels_of(booster, y, len(prediction))
    label = label[:, 0] if label.ndim == 2 and label.shape[1] == 1 else label
    guess = _guess(booster, label, prediction)
    found = []
    for name in names or metrics_of(booster):
        link = None if booster.link == "custom" else booster.link
        one = metrics.resolve(name, default=name, link=link, fields=booster.fields)[0]
        try:
            value = one(label, prediction, None)
        except ValueError:
            if names:
                raise
            continue  # AUC of rows of one class
        error = _error(one, label, prediction, value)
        try:
            baseline = one(label, guess, None)
        except ValueError:
            baseline = None
        found.append(
            Score(
                one.name,
                value,
                value - Z * error,
                value + Z * error,
                baseline,
                one.higher_is_better,
            )
        )
    return found


def _guess(booster: Booster, label: Floats, prediction: Floats) -> Floats:
    """The best constant prediction: shares of classes, or the mean (the median for
    absolute errors).
    """
    if booster.link in metrics.CLASSES:
        share = np.bincount(label.astype(np.int64), minlength=booster.n_outputs) / max(
            1, len(label)
        )
        return np.tile(share, (len(label), 1))
    if booster.objective in ("absolute_error", "mape"):
        middle = np.median(label, axis=0)
    elif booster.objective == "quantile" and not isinstance(
        level := booster.fields["quantile_alpha"], list
    ):
        # labels are far from the largest numbers
        middle = np.quantile(label, level, axis=0)
    else:
        middle = label.mean(axis=0)
    return (
        np.broadcast_to(middle, prediction.shape).astype(np.float64)
        if np.ndim(middle) in (0, 1)
        else label
    )


def _error(
    one: metrics.Metric, label: Floats, prediction: Floats, value: float
) -> float:
    """The standard error of a metric over the draw of rows."""
    rows = ROWS.get(one.name)
    flat = label.ndim == 1
    if (
        rows is not None
        and flat
        and (
            prediction.ndim == 1 or one.name in ("logloss", "multi_logloss", "accuracy")
        )
    ):
        per_row = rows(label, prediction)
        error = standard_error(per_row)
        if one.name == "rmse":  # the root of a mean: the delta method
            return error / (2 * value) if value > 0 else 0.0
        if one.name == "r2":
            spread = float(label.var())
            return error / spread if spread > 0 else 0.0
        return error
    if one.name == "auc" and flat and prediction.ndim == 1:
        return _auc_error(label, prediction)
    draws = []
    rng = np.random.default_rng(0)
    for _ in range(N_BOOTSTRAP):
        # integers: draws of counts would go through libm
        drawn = rng.integers(0, len(label), len(label))
        weight = np.bincount(drawn, minlength=len(label)).astype(np.float64)
        try:
            draws.append(one(label, prediction, weight))
        except ValueError:
            continue
    return float(np.std(draws, ddof=1)) if len(draws) > 2 else 0.0


def _log_loss(label: Floats, prediction: Floats) -> Floats:
    tiny = np.finfo(np.float64).tiny
    if prediction.ndim == 1:
        return -elementary.log(
            np.maximum(np.where(label == 1, prediction, 1 - prediction), tiny)
        )
    return -elementary.log(
        np.maximum(prediction[np.arange(len(label)), label.astype(np.int64)], tiny)
    )


def _hits(label: Floats, prediction: Floats) -> Floats:
    chosen = (prediction > 0.5) if prediction.ndim == 1 else prediction.argmax(axis=1)
    return np.asarray(chosen == label, np.float64)


# metrics that are means over rows, or a function of such
ROWS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "logloss": _log_loss,
    "multi_logloss": _log_loss,
    "accuracy": _hits,
    "error": _hits,
    "brier": lambda y, p: (p - y) ** 2,
    "mse": lambda y, p: (p - y) ** 2,
    "rmse": lambda y, p: (p - y) ** 2,
    "r2": lambda y, p: (p - y) ** 2,
    "mae": lambda y, p: np.abs(p - y),
    "mape": lambda y, p: np.abs(p - y) / np.maximum(1.0, np.abs(y)),
}


def _auc_error(label: Floats, prediction: Floats) -> float:
    """DeLong's standard error of the area under the ROC curve, through mid-ranks."""
    ones = prediction[label == 1]
    zeros = prediction[label == 0]
    if len(ones) < 2 or len(zeros) < 2:
        return 0.0
    sorted_zeros = np.sort(zeros)
    sorted_ones = np.sort(ones)
    place = (
        np.searchsorted(sorted_zeros, ones, "left")
        + np.searchsorted(sorted_zeros, ones, "right")
    ) / 2
    v1 = place / len(zeros)  # of each positive row: the share of negative rows below it
    place = (
        np.searchsorted(sorted_ones, zeros, "left")
        + np.searchsorted(sorted_ones, zeros, "right")
    ) / 2
    v0 = 1 - place / len(ones)
    return sqrt(float(v1.var(ddof=1)) / len(ones) + float(v0.var(ddof=1)) / len(zeros))
