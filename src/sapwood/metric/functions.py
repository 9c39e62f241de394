"""How good is it: metrics by name, any function by value.

In: labels, predictions (after the link) and weights. Out: one number that does not depend on the order of rows.

Every metric takes ``(y, prediction, weight)``. One prediction a row, (n): a value, the probability of class 1, or 0 and
1 themselves. One a class, (n, K): probabilities of the classes 0..K-1 that `y` holds. Labels of several columns,
(n, K), are measured column by column, and the metric is the mean. A weight of 2 is the row twice, to the last bit.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import signature
from math import frexp, sqrt
from numbers import Real
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary, host
from sapwood.errors import DataError, ParameterError, SapwoodError, suggest
from sapwood.params.peers import IMPLIED
from sapwood.params.types import Number, as_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Function = Callable[..., float]  # (y, prediction, weight), and a number by name where the metric has a parameter

# What a prediction is, by the link it comes from.
VALUE = ("identity", "exp", "expm1")
BINARY = ("sigmoid", "sigmoid2")
CLASSES = ("softmax", "one_vs_all")
STEP = ("step",)


@dataclass(frozen=True)
class Parameter:
    """The number after "@": the argument it is, its range, and the objective's field that is its default."""

    name: str
    range: Number
    field: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric, and which way is better."""

    name: str
    function: Function
    higher_is_better: bool = False
    links: tuple[str, ...] = (*VALUE, *BINARY, *CLASSES, *STEP)  # the predictions it understands
    parameter: Parameter | None = None
    own: bool = False  # a user's function

    def __call__(self, y: Floats, prediction: Floats, weight: Floats | None) -> float:
        try:
            value: Any = self.function(y, prediction, weight)
        except (ValueError, IndexError) as cause:  # what is not finite cannot be summed; a label may be no class
            if self.own or isinstance(cause, SapwoodError):
                raise
            raise DataError(f"{self.name} cannot be measured: {cause}; check the validation rows.") from cause
        if not isinstance(value, Real) or value != value:
            what = "NaN" if isinstance(value, Real) else f"a {type(value).__name__}"
            raise ParameterError(f"metric {self.name!r} returned {what}, not a number.")
        return float(value)


def mean(values: Floats | NDArray[np.bool_], weight: Floats | None) -> float:
    """Weighted mean, the same whatever the order of rows (NUMERICS 4)."""
    return host.exact_sum(np.ascontiguousarray(values, np.float64), weight) / _total(weight, len(values))


# ------------------------------------------------------------------------------------------------ values
def mse(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean squared error."""
    return mean((prediction - y) ** 2, weight)


def rmse(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Root mean squared error."""
    return _root_mean_square(prediction - y, weight)


def rmsle(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Root mean squared error of log(1 + value); predictions are kept off -1."""
    return _root_mean_square(_log_error(y, prediction, "rmsle"), weight)


def msle(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean squared error of log(1 + value); predictions are kept off -1."""
    return mean(_log_error(y, prediction, "msle") ** 2, weight)


def mae(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean absolute error."""
    return mean(np.abs(prediction - y), weight)


def mape(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean absolute error in shares of the label, labels within -1..1 counting as 1 (as LightGBM and CatBoost do)."""
    return mean(np.abs(prediction - y) / np.maximum(1.0, np.abs(y)), weight)


def smape(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean absolute error in shares of the mean size of label and prediction, from 0 to 2; 0 where both are 0."""
    size = (np.abs(y) + np.abs(prediction)) / 2
    return mean(np.abs(prediction - y) / np.where(size > 0, size, 1.0), weight)


def median_absolute_error(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """The middle of the absolute errors, or of the two in the middle their mean."""
    size = np.sort(errors := np.abs(prediction - y))
    below = np.cumsum(_whole(weight, len(y))[np.argsort(errors)])
    half = int(below[-1]) // 2
    low, high = size[np.searchsorted(below, [half + int(below[-1]) % 2, half + 1])]
    return float((low + high) / 2)


def r2(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Share of the labels' variance that is explained: 1 at best, 0 for their mean, below 0 for worse."""
    centre = mean(y, weight)
    kept = y if weight is None else y[weight > 0]
    if kept.min() == kept.max():
        raise DataError("r2 needs validation labels that differ; add rows or choose another eval_metric.")
    return 1.0 - mse(y, prediction, weight) / mean((y - centre) ** 2, weight)


def pinball(y: Floats, prediction: Floats, weight: Floats | None, alpha: float = 0.5) -> float:
    """Loss of the `alpha`-quantile: alpha (y - p) where y is above p, (1 - alpha) (p - y) elsewhere."""
    short = y - prediction
    return mean(np.maximum(alpha * short, (alpha - 1.0) * short), weight)


def expectile(y: Floats, prediction: Floats, weight: Floats | None, alpha: float = 0.5) -> float:
    """Squared error, times alpha where y is above p and 1 - alpha elsewhere."""
    return mean(np.where(y > prediction, alpha, 1.0 - alpha) * (y - prediction) ** 2, weight)


def huber(y: Floats, prediction: Floats, weight: Floats | None, delta: float = 1.0) -> float:
    """Half the squared error where it is within `delta`, delta (|error| - delta / 2) beyond."""
    size = np.abs(prediction - y)
    near = np.minimum(size, delta)
    return mean(near * (size - 0.5 * near), weight)


def poisson(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Poisson deviance, 2 (y log(y / p) - y + p)."""
    _need(y >= 0, y, "poisson needs labels of 0 or more")
    p = _rate(prediction, "poisson")
    return 2.0 * mean(y * elementary.log(np.where(y > 0, y, p) / p) - y + p, weight)  # y log y is 0 at 0


def gamma(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Gamma deviance, 2 (y / p - log(y / p) - 1)."""
    _need(y > 0, y, "gamma needs labels above 0")
    ratio = y / _rate(prediction, "gamma")
    return 2.0 * mean(ratio - elementary.log(ratio) - 1.0, weight)


def tweedie(y: Floats, prediction: Floats, weight: Floats | None, power: float = 1.5) -> float:
    """Tweedie deviance, variance p^power: 2 (y^b / (a b) - y p^a / a + p^b / b) with a = 1 - power, b = 2 - power."""
    _need(y >= 0, y, "tweedie needs labels of 0 or more")
    a, b = 1.0 - power, 2.0 - power
    log_p = elementary.log(_rate(prediction, "tweedie"))
    best = np.where(y > 0, elementary.exp(b * elementary.log(np.where(y > 0, y, 1.0))), 0.0) / (a * b)
    return 2.0 * mean(best - y * elementary.exp(a * log_p) / a + elementary.exp(b * log_p) / b, weight)


# ----------------------------------------------------------------------------------------- probabilities
def logloss(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Cross-entropy of K classes, or of labels from 0 to 1; probabilities are kept off 0."""
    if prediction.ndim == 2:
        return mean(_cost(np.take_along_axis(prediction, y.astype(np.intp)[:, None], 1)[:, 0]), weight)
    if _hard(y).all():  # one logarithm a row, which is where the time goes
        return mean(_cost(np.where(y > 0, prediction, 1.0 - prediction)), weight)
    return mean(y * _cost(prediction) + (1.0 - y) * _cost(1.0 - prediction), weight)


def brier(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean squared error of the probability of class 1; summed over the classes where there are several."""
    if prediction.ndim == 1:
        return mse(y, prediction, weight)
    total = np.zeros(len(y))
    for k in range(prediction.shape[1]):
        total += (prediction[:, k] - (y == k)) ** 2
    return mean(total, weight)


def auc(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Chance that a row of class 1 ranks above one of class 0, equals counting half; several: each against the rest."""
    if prediction.ndim == 2:
        return _each_class(auc, y, prediction, weight)
    ones, zeros = _ranked(y, prediction, weight, "auc")
    pairs = float(ones.sum()) * float(zeros.sum())
    if pairs == 0:
        raise DataError("auc needs validation rows of every class; add some or choose another eval_metric.")
    below = np.cumsum(zeros) - zeros
    return host.exact_sum(ones.astype(np.float64) * (2 * below + zeros).astype(np.float64), None) / (2 * pairs)


def average_precision(y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean precision over the rows of class 1, each at its own rank; several classes: each against the rest."""
    if prediction.ndim == 2:
        return _each_class(average_precision, y, prediction, weight)
    ones, zeros = (counts[::-1] for counts in _ranked(y, prediction, weight, "average_precision"))  # the highest first
    found = np.cumsum(ones)
    if found[-1] == 0:
        raise DataError(
            "average_precision needs validation rows of class 1, or of every class where there are several; "
            "add some or choose another eval_metric."
        )
    precision = found / np.maximum(found + np.cumsum(zeros), 1)  # nothing but rows of weight 0 so far: 0
    return host.exact_sum(ones * precision, None) / float(found[-1])


# ------------------------------------------------------------------------------------------------ labels
def accuracy(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Share of rows whose class is guessed: above the threshold 1, or the most probable, of equals the first."""
    return mean(_guess(y, prediction, threshold) == y, weight)


def error(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Share of rows whose class is not guessed."""
    return mean(_guess(y, prediction, threshold) != y, weight)


def balanced_accuracy(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Mean over the classes that have rows of the share of their rows that is guessed."""
    table = _confusion(y, prediction, weight, threshold)
    return fmean(hit / size for hit, size in zip(table.diagonal(), table.sum(1), strict=True) if size)


def f1(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Harmonic mean of precision and recall of class 1; several: the mean over those with rows or guesses (macro)."""
    table = _confusion(y, prediction, weight, threshold)
    return _hit_rate(table, (table.sum(0) + table.sum(1)) / 2, prediction, "f1")


def precision(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Share of the guesses of class 1 that are right, 0 where there is none; several classes: as f1."""
    table = _confusion(y, prediction, weight, threshold)
    return _hit_rate(table, table.sum(0), prediction, "precision")


def recall(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Share of the rows of class 1 that are guessed; several classes: as f1."""
    table = _confusion(y, prediction, weight, threshold)
    return _hit_rate(table, table.sum(1), prediction, "recall")


def kappa(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Cohen's kappa: how far the share of right guesses exceeds that of chance, 1 at best."""
    table = _confusion(y, prediction, weight, threshold).astype(object)  # Python's integers: products do not overflow
    classes, guesses, total = table.sum(1), table.sum(0), table.sum()
    if (classes == total).any():
        raise DataError("kappa needs validation rows of two classes; add some or choose another eval_metric.")
    chance = classes @ guesses
    return float((total * table.trace() - chance) / (total**2 - chance))


def mcc(y: Floats, prediction: Floats, weight: Floats | None, threshold: float = 0.5) -> float:
    """Matthews' correlation of classes and guesses (Gorodkin's R_K); 0 where all guesses are the same."""
    table = _confusion(y, prediction, weight, threshold).astype(object)  # Python's integers: products do not overflow
    classes, guesses, total = table.sum(1), table.sum(0), table.sum()
    if (classes == total).any():
        raise DataError("mcc needs validation rows of two classes; add some or choose another eval_metric.")
    spread = (total**2 - classes @ classes) * (total**2 - guesses @ guesses)
    return float((total * table.trace() - classes @ guesses) / sqrt(spread)) if spread else 0.0


# --------------------------------------------------------------------------------------------- the table
def _by_column(metric: Metric) -> Metric:
    """The metric of labels of one column or of several, where it is the mean."""
    function, of_classes = metric.function, "softmax" in metric.links

    @wraps(function)
    def measured(y: Floats, prediction: Floats, weight: Floats | None, **parameter: float) -> float:
        if y.ndim == 1 and (prediction.ndim == 1 or (of_classes and prediction.shape[1] > 1)):
            return function(y, prediction, weight, **parameter)
        if prediction.size != y.size:
            raise ParameterError(
                f"{metric.name} needs one prediction for each label; predictions are {prediction.shape}, labels "
                f"{y.shape}; give eval_metric=your own function (y, prediction, weight)."
            )
        columns = zip(y.reshape(len(y), -1).T, prediction.reshape(len(y), -1).T, strict=True)
        return fmean(function(*column, weight, **parameter) for column in columns)

    return replace(metric, function=measured)


def _by_level(metric: Metric, name: str, levels: list[float]) -> Function:
    """The metric of several predictions of one label, each at its own level: their mean."""

    def measured(y: Floats, prediction: Floats, weight: Floats | None) -> float:
        columns = zip(prediction.T, levels, strict=True)
        return fmean(metric.function(y, column, weight, **{name: level}) for column, level in columns)

    return measured


_SHARE = Number(0, 1, low_open=True, high_open=True)
THRESHOLD = Parameter("threshold", _SHARE)
QUANTILE, EXPECTILE = Parameter("alpha", _SHARE, "quantile_alpha"), Parameter("alpha", _SHARE, "expectile_alpha")
DELTA = Parameter("delta", Number(0, low_open=True), "huber_delta")
POWER = Parameter("power", Number(1, 2, low_open=True, high_open=True), "tweedie_power")
_LABELS = (*BINARY, *CLASSES, *STEP)
METRICS = {
    metric.name: _by_column(metric)
    for metric in (
        Metric("rmse", rmse, links=(*VALUE, *BINARY)),
        Metric("mse", mse, links=(*VALUE, *BINARY)),
        Metric("mae", mae, links=(*VALUE, *BINARY)),
        Metric("r2", r2, higher_is_better=True, links=(*VALUE, *BINARY)),
        Metric("mape", mape, links=VALUE),
        Metric("smape", smape, links=VALUE),
        Metric("rmsle", rmsle, links=VALUE),
        Metric("msle", msle, links=VALUE),
        Metric("median_absolute_error", median_absolute_error, links=(*VALUE, *BINARY)),
        Metric("pinball", pinball, links=VALUE, parameter=QUANTILE),
        Metric("expectile", expectile, links=VALUE, parameter=EXPECTILE),
        Metric("huber", huber, links=VALUE, parameter=DELTA),
        Metric("poisson", poisson, links=VALUE),
        Metric("gamma", gamma, links=VALUE),
        Metric("tweedie", tweedie, links=VALUE, parameter=POWER),
        Metric("logloss", logloss, links=(*BINARY, *CLASSES)),
        Metric("multi_logloss", logloss, links=CLASSES),
        Metric("brier", brier, links=(*BINARY, *CLASSES)),
        Metric("auc", auc, higher_is_better=True, links=("identity", *BINARY, *CLASSES)),  # any score has ranks
        Metric("average_precision", average_precision, higher_is_better=True, links=("identity", *BINARY, *CLASSES)),
        Metric("error", error, links=_LABELS, parameter=THRESHOLD),
        Metric("accuracy", accuracy, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
        Metric("balanced_accuracy", balanced_accuracy, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
        Metric("f1", f1, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
        Metric("precision", precision, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
        Metric("recall", recall, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
        Metric("kappa", kappa, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
        Metric("mcc", mcc, higher_is_better=True, links=_LABELS, parameter=THRESHOLD),
    )
}
# What LightGBM, XGBoost, CatBoost and scikit-learn call them (theirs may add a constant to a deviance, halve it, or
# join the points of a precision-recall curve by another line).
PEERS = {
    peer: name
    for name, peers in {
        "rmse": "l2_root root_mean_squared_error",
        "mse": "l2 mean_squared_error regression regression_l2",
        "mae": "l1 mean_absolute_error regression_l1",
        "mape": "mean_absolute_percentage_error",
        "rmsle": "root_mean_squared_log_error",
        "msle": "mean_squared_log_error",
        "median_absolute_error": "medianabsoluteerror",
        "pinball": "quantile mean_pinball_loss",
        "poisson": "poisson-nloglik poisson_deviance mean_poisson_deviance",
        "gamma": "gamma-nloglik gamma-deviance gamma_deviance mean_gamma_deviance",
        "tweedie": "tweedie-nloglik tweedie_deviance mean_tweedie_deviance",
        "logloss": "binary_logloss log_loss binary cross_entropy crossentropy xentropy multilogloss multicrossentropy",
        "multi_logloss": "mlogloss multiclass softmax multiclassova multiclass_ova ova ovr",
        "brier": "brierscore brier_score brier_score_loss",
        "auc": "roc_auc roc_auc_ovr",
        "average_precision": "aucpr prauc",
        "error": "binary_error merror multi_error zero_one zerooneloss zero_one_loss hammingloss hamming_loss",
        "balanced_accuracy": "balancedaccuracy",
        "f1": "totalf1:average=macro",
        "kappa": "cohen_kappa_score",
        "mcc": "matthews_corrcoef",
    }.items()
    for peer in peers.split()
}
ABSENT = {
    **dict.fromkeys(("ndcg", "dcg", "map", "mrr", "pfound", "err"), "ranking is not there yet"),
    **dict.fromkeys(("hingeloss", "hinge_loss"), "it is of raw scores; use error, or logloss of probabilities"),
}
_KEYS = {"variance_power": "power", "proba_border": "threshold"}  # CatBoost's names of parameters


def resolve(
    given: Any, *, default: Any, link: str | None, fields: Mapping[str, float | list[float]] | None = None
) -> tuple[Metric, ...]:
    """Turn ``eval_metric`` into metrics.

    Parameters
    ----------
    given : str, callable, (name, callable, higher_is_better), list of these, or None
        What the user asked for; None, alone or in a list, is the default, and so is an empty list. A name may bring a
        parameter: ``"pinball@0.9"``, or ``"Quantile:alpha=0.9"`` as CatBoost writes it. A callable takes (y,
        prediction, weight).
    default : str or callable
        The objective's own metric.
    link : str or None
        The objective's link, which says what a prediction is; None for a function, after which every metric is allowed.
    fields : mapping, optional
        The objective's own fields: ``quantile_alpha`` is the parameter of a pinball without "@", and so on;
        of several levels, each of the predictions is measured at its own, and the metric is the mean.

    Returns
    -------
    tuple of Metric
    """
    asked = given if isinstance(given, list) and given else [given or None]
    found = [_one(default if metric is None else metric, link, fields or {}) for metric in asked]
    metrics = tuple(one for at, one in enumerate(found) if one.own or one.name not in [had.name for had in found[:at]])
    if len({metric.name for metric in metrics}) < len(metrics):
        raise ParameterError(f"{given!r} has two metrics of one name; name them (name, callable, higher).")
    return metrics


def _one(given: Any, link: str | None, fields: Mapping[str, float | list[float]]) -> Metric:
    """One metric, by name or by value."""
    match given:
        case str():
            return _named(given, link, fields)
        case (str() as name, function, bool() as higher) if callable(function):
            return Metric(name, _taking_three(function), higher, own=True)
        case function if callable(function):
            return Metric(getattr(function, "__name__", type(function).__name__), _taking_three(function), own=True)
    raise ParameterError(f"{given!r} is no metric; give a name or (name, callable, higher_is_better).")


def _taking_three(function: Function) -> Function:
    """A user's metric as one that is called as ours are; those of scikit-learn take the weight by name."""
    try:
        about = signature(function)
    except ValueError:  # some built-in functions hide theirs
        return function
    with suppress(TypeError):
        about.bind(None, None, None)
        return function
    try:
        about.bind(None, None)
    except TypeError as cause:
        raise ParameterError(
            f"metric {function!r} must take (y, prediction, weight), or (y, prediction), and return a float."
        ) from cause
    if next(iter(about.parameters)).startswith(("pred", "y_pred")):  # LightGBM's (preds, data)
        raise ParameterError(f"metric {function!r} takes predictions first; make it (y, prediction, weight).")
    if "sample_weight" in about.parameters:
        return lambda y, prediction, weight: function(y, prediction, sample_weight=weight)
    return lambda y, prediction, weight: function(y, prediction)


def _named(given: str, link: str | None, fields: Mapping[str, float | list[float]]) -> Metric:
    """One metric by our name or a peer's, with the parameter it was given or the objective's."""
    text = given.lower().removeprefix("neg_")  # scikit-learn's scorers
    text = text.partition("hints=")[0].rstrip(":;")  # CatBoost's: where else to measure it
    head, mark, rest = PEERS.get(text, text).replace(":", "@", 1).partition("@")
    kept = [part for part in rest.split(";") if part not in IMPLIED]
    rest, mark = ";".join(kept), mark if kept else ""
    name = PEERS.get(head, head)
    fitting = {metric.name: metric for metric in METRICS.values() if link is None or link in metric.links}
    if name in ABSENT:
        raise ParameterError(f"metric {given!r} is not available: {ABSENT[name]}.")
    if name not in METRICS:
        raise ParameterError(f"metric {given!r} is unknown; {suggest(name, fitting)}")
    if name not in fitting:
        choices = ", ".join(sorted(fitting))
        raise ParameterError(f"metric {given!r} does not suit the objective; choose one of {choices}.")
    metric, parameter = fitting[name], fitting[name].parameter
    if parameter is THRESHOLD and link in (*CLASSES, *STEP):
        parameter = None  # the most probable class is guessed, or the prediction is the guess
    if mark:
        key, _, text = rest.rpartition("=")
        if parameter is None or (key and _KEYS.get(key, key) != parameter.name):
            takes = "no parameter with this objective" if parameter is None else f"{parameter.name}: {name}@number"
            raise ParameterError(f"metric {given!r} has {rest!r}, but {name} takes {takes}.")
        value = parameter.range.check(f"metric {given!r}", as_number(text))
        metric = replace(metric, name=f"{name}@{text}")
    elif parameter is None or parameter.field not in fields:
        return metric
    elif isinstance(levels := fields[parameter.field], list):
        return replace(metric, function=_by_level(metric, parameter.name, levels))
    else:
        value = levels
    return replace(metric, function=partial(metric.function, **{parameter.name: value}))


# ----------------------------------------------------------------------------------------- what they share
def _total(weight: Floats | None, n_rows: int) -> float:
    """Sum of the weights, which is not 0."""
    total = float(n_rows) if weight is None else host.weight_sum(weight)
    if total == 0:
        raise DataError("a validation set without rows of positive weight cannot be measured; check its weights.")
    return total


def _whole(weight: Floats | None, n_rows: int) -> Integers:
    """Weights as integers that sum to about 2^61: their sums have no order, and whole weights stay exact."""
    unit = 61 - frexp(_total(weight, n_rows))[1]
    return np.rint(np.ldexp(np.ones(n_rows) if weight is None else weight, unit)).astype(np.int64)


def _need(valid: NDArray[np.bool_], values: Floats, what: str) -> None:
    """Name the first row that a metric cannot measure."""
    if not valid.all():
        row = int(valid.argmin())
        raise DataError(f"{what}, and validation row {row} has {values[row]:g}; choose another eval_metric.")


def _root_mean_square(values: Floats, weight: Floats | None) -> float:
    """In units of a power of two near the largest value: no square overflows, and no bit changes."""
    unit = np.ldexp(1.0, int(np.frexp(np.abs(values).max())[1]) - 1)
    return float(unit * sqrt(mean((values / unit) ** 2, weight)))


def _log_error(y: Floats, prediction: Floats, name: str) -> Floats:
    """Errors of log(1 + value)."""
    _need(y > -1, y, f"{name} needs labels above -1")
    _need(prediction >= -1, prediction, f"{name} needs predictions of -1 or more")
    return elementary.log1p(np.maximum(prediction, np.nextafter(-1.0, 0.0))) - elementary.log1p(y)


def _rate(prediction: Floats, name: str) -> Floats:
    """Predictions of 0 or more, kept off 0, where e^score ends when scores run low."""
    _need(prediction >= 0, prediction, f"{name} needs predictions of 0 or more")
    return np.maximum(prediction, 1e-100)


def _cost(probability: Floats) -> Floats:
    """Minus the logarithm of a probability kept off 0."""
    return -elementary.log(np.maximum(probability, 1e-15))


def _hard(y: Floats) -> NDArray[np.bool_]:
    """Which labels are 0 or 1."""
    return np.asarray((y == 0) | (y == 1))


def _guess(y: Floats, prediction: Floats, threshold: float) -> NDArray[Any]:
    """The class that every row is taken for."""
    if prediction.ndim == 2:
        return np.asarray(prediction.argmax(1))
    _need(_hard(y), y, "a metric of guessed classes needs labels 0 or 1 (logloss takes those between)")
    return prediction > threshold


def _confusion(y: Floats, prediction: Floats, weight: Floats | None, threshold: float) -> Integers:
    """Weight of the rows of every class (down) and guess (across)."""
    n_classes = 2 if prediction.ndim == 1 else prediction.shape[1]
    cell = n_classes * y.astype(np.intp) + _guess(y, prediction, threshold)
    table = np.zeros(n_classes * n_classes, np.int64)
    np.add.at(table, cell, _whole(weight, len(y)))
    return table.reshape(n_classes, n_classes)


def _hit_rate(table: Integers, sizes: NDArray[Any], prediction: Floats, name: str) -> float:
    """Right guesses over some size of class 1, or the mean over classes with rows or guesses; 0 where nothing is."""
    rates = table.diagonal() / np.maximum(sizes, 1)
    if prediction.ndim == 2:
        return fmean(rates[(table.sum(0) + table.sum(1)) > 0])
    if not table[1].any():
        raise DataError(f"{name} needs validation rows of class 1; add some or choose another eval_metric.")
    return float(rates[1])


def _ranked(y: Floats, prediction: Floats, weight: Floats | None, name: str) -> tuple[Integers, Integers]:
    """Weight of class 1 and of class 0 at every distinct prediction, the lowest first."""
    _need(_hard(y), y, f"{name} needs labels 0 or 1 (logloss takes those between)")
    whole = _whole(weight, len(y))
    order = np.argsort(prediction)
    ranked = prediction[order]
    first = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    ones = np.add.reduceat(np.where(y > 0, whole, 0)[order], first)
    zeros = np.add.reduceat(np.where(y > 0, 0, whole)[order], first)
    return ones, zeros


def _each_class(function: Function, y: Floats, prediction: Floats, weight: Floats | None) -> float:
    """Mean over the classes of a metric of each against the rest."""
    return fmean(function((y == k) * 1.0, column, weight) for k, column in enumerate(prediction.T))
