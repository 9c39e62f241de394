"""Metrics by name, with their parameters, and a user's own functions.

In: `eval_metric`. Out: metrics, each with its parameter, its name, and whether higher
is better.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import signature
from numbers import Real
from statistics import fmean
from typing import Any

import numpy as np

from sapwood.device import elementary
from sapwood.errors import (
    DataError,
    ObjectiveError,
    ParameterError,
    SapwoodError,
    suggest,
)
from sapwood.metric import functions as formulas
from sapwood.metric import ranking
from sapwood.metric.functions import Floats, Function, Holders, Weight
from sapwood.params.functions import in_our_order
from sapwood.params.peers import IMPLIED
from sapwood.params.types import Integer, Number, as_number

# Links by what their predictions are.
VALUE = ("identity", "exp", "expm1", "ascending")
BINARY = ("sigmoid", "sigmoid2")
CLASSES = ("softmax", "one_vs_all")
STEP = ("step",)


@dataclass(frozen=True)
class Parameter:
    """The number after "@": the argument it sets, its range, and the objective's field
    that is its default.
    """

    name: str
    range: Number | Integer
    field: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric, and which way is better."""

    name: str
    function: Function
    higher_is_better: bool = False
    # the predictions that it takes
    links: tuple[str, ...] = (*VALUE, *BINARY, *CLASSES, *STEP)
    parameter: Parameter | None = None
    own: bool = False  # a user's function
    sure: bool = True  # whether it is known which way is better
    called: str = ""  # the name that the user has for it, where it is another one
    ranks: bool = False  # it takes the group of every row too

    def __call__(
        self,
        y: Floats,
        prediction: Floats,
        weight: Weight,
        reduce: Holders = None,
        group: Any = None,
    ) -> float:
        if self.own and reduce is not None:
            raise ParameterError(
                f"metric {self.name!r} is a function, which cannot see the rows of other holders; choose one of "
                f"{', '.join(METRICS)}."
            )
        if self.ranks and reduce is not None:
            raise ParameterError(
                f"metric {self.name!r} needs whole groups, and rows are dealt to several holders."
            )
        more = (
            {"group": group}
            if self.ranks
            else {}
            if reduce is None
            else {"reduce": reduce}
        )
        try:
            value: Any = self.function(y, prediction, weight, **more)
        except (ValueError, IndexError) as cause:
            # a value that is not finite, or a label that is not a class
            if self.own or (
                isinstance(cause, SapwoodError)
                and not isinstance(cause, formulas.NotFinite)
            ):
                raise
            raise DataError(
                f"{self.name} cannot be measured: {cause}; check the validation rows."
            ) from cause
        if self.own and isinstance(value, tuple | list):
            value = self._named(value)
        if not isinstance(value, Real) or value != value:
            what = "NaN" if isinstance(value, Real) else f"a {type(value).__name__}"
            raise ObjectiveError(f"metric {self.name!r} returned {what}, not a number.")
        return float(value)

    @property
    def known(self) -> tuple[str, Mapping[str, Any]] | None:
        """The name in the table of metrics, and the parameter; None of any other
        function.
        """
        name = self.name.partition("@")[0]
        function = self.function
        more = function.keywords if isinstance(function, partial) else {}
        plain = function.func if isinstance(function, partial) else function
        return (
            (name, more)
            if name in METRICS and plain is METRICS[name].function
            else None
        )

    def _named(self, value: Any) -> Any:
        """The number of a peer's (name, value) or (name, value, higher_is_better),
        which name the metric too.
        """
        match value:
            case (str() as name, number):
                higher = (
                    PEERS.get(name.lower(), name.lower()) in HIGHER
                    or self.higher_is_better
                )
            case (str() as name, number, bool() | np.bool_() as higher):
                pass
            case _:
                raise ParameterError(
                    f"metric {self.name!r} returned {value!r}; return a number, (name, value) or (name, value, "
                    "higher_is_better); for several metrics give several functions."
                )
        for what, known in (
            ("name", name),
            ("higher_is_better", bool(higher)),
            ("sure", True),
        ):
            object.__setattr__(self, what, known)  # as the first call has said
        return number


def _by_column(metric: Metric) -> Metric:
    """A metric that also takes labels of several columns: the mean of the metric over
    the columns.
    """
    function, of_classes = metric.function, "softmax" in metric.links

    @wraps(function)
    def measured(y: Floats, prediction: Floats, weight: Weight, **named: Any) -> float:
        if y.ndim == 1 and (
            prediction.ndim == 1 or (of_classes and prediction.shape[1] > 1)
        ):
            return function(y, prediction, weight, **named)
        if prediction.size != y.size:
            raise ParameterError(
                f"{metric.name} needs one prediction for each label; predictions are {prediction.shape}, labels "
                f"{y.shape}; give eval_metric=your own function (y, prediction, weight)."
            )
        columns = zip(
            y.reshape(len(y), -1).T, prediction.reshape(len(y), -1).T, strict=True
        )
        return fmean(function(*column, weight, **named) for column in columns)

    return replace(metric, function=measured)


def _by_level(metric: Metric, name: str, levels: list[float]) -> Function:
    """The metric of several predictions of one label, each at its own level: their
    mean.
    """

    def measured(y: Floats, prediction: Floats, weight: Weight, **named: Any) -> float:
        columns = zip(prediction.T, levels, strict=True)
        return fmean(
            metric.function(y, column, weight, **{name: level}, **named)
            for column, level in columns
        )

    return measured


_FRACTION = Number(0, 1, low_open=True, high_open=True)
THRESHOLD = Parameter("threshold", _FRACTION)
QUANTILE = Parameter("alpha", _FRACTION, "quantile_alpha")
EXPECTILE = Parameter("alpha", _FRACTION, "expectile_alpha")
DELTA = Parameter("delta", Number(0, low_open=True), "huber_delta")
POWER = Parameter("power", Number(1, 2, low_open=True, high_open=True), "tweedie_power")
PLACES = Parameter("at", Integer(1))
AT = 10  # places that count where a metric of ranks does not say
_LABELS = (*BINARY, *CLASSES, *STEP)
_RANKED = ("identity", *BINARY, *CLASSES)  # any score can be ranked
METRICS = {
    metric.name: _by_column(metric)
    for metric in (
        Metric("rmse", formulas.rmse, links=(*VALUE, *BINARY)),
        Metric("mse", formulas.mse, links=(*VALUE, *BINARY)),
        Metric("mae", formulas.mae, links=(*VALUE, *BINARY)),
        Metric("r2", formulas.r2, higher_is_better=True, links=(*VALUE, *BINARY)),
        Metric("mape", formulas.mape, links=VALUE),
        Metric("smape", formulas.smape, links=VALUE),
        Metric("rmsle", formulas.rmsle, links=VALUE),
        Metric("msle", formulas.msle, links=VALUE),
        Metric(
            "median_absolute_error",
            formulas.median_absolute_error,
            links=(*VALUE, *BINARY),
        ),
        Metric("pinball", formulas.pinball, links=VALUE, parameter=QUANTILE),
        Metric("expectile", formulas.expectile, links=VALUE, parameter=EXPECTILE),
        Metric("huber", formulas.huber, links=VALUE, parameter=DELTA),
        Metric("poisson", formulas.poisson, links=VALUE),
        Metric("gamma", formulas.gamma, links=VALUE),
        Metric("tweedie", formulas.tweedie, links=VALUE, parameter=POWER),
        Metric("logloss", formulas.logloss, links=(*BINARY, *CLASSES)),
        Metric("multi_logloss", formulas.logloss, links=CLASSES),
        Metric("brier", formulas.brier, links=(*BINARY, *CLASSES)),
        Metric("auc", formulas.auc, higher_is_better=True, links=_RANKED),
        Metric(
            "average_precision",
            formulas.average_precision,
            higher_is_better=True,
            links=_RANKED,
        ),
        Metric("error", formulas.error, links=_LABELS, parameter=THRESHOLD),
        Metric(
            "accuracy",
            formulas.accuracy,
            higher_is_better=True,
            links=_LABELS,
            parameter=THRESHOLD,
        ),
        Metric(
            "balanced_accuracy",
            formulas.balanced_accuracy,
            higher_is_better=True,
            links=_LABELS,
            parameter=THRESHOLD,
        ),
        Metric(
            "f1", formulas.f1, higher_is_better=True, links=_LABELS, parameter=THRESHOLD
        ),
        Metric(
            "precision",
            formulas.precision,
            higher_is_better=True,
            links=_LABELS,
            parameter=THRESHOLD,
        ),
        Metric(
            "recall",
            formulas.recall,
            higher_is_better=True,
            links=_LABELS,
            parameter=THRESHOLD,
        ),
        Metric(
            "kappa",
            formulas.kappa,
            higher_is_better=True,
            links=_LABELS,
            parameter=THRESHOLD,
        ),
        Metric(
            "mcc",
            formulas.mcc,
            higher_is_better=True,
            links=_LABELS,
            parameter=THRESHOLD,
        ),
    )
}
RANKS = {
    name: Metric(
        name,
        function,
        higher_is_better=True,
        links=(*VALUE, *BINARY),
        parameter=PLACES,
        ranks=True,
    )
    for name, function in ranking.FUNCTIONS.items()
}
HIGHER = {name for name, metric in (METRICS | RANKS).items() if metric.higher_is_better}
# Names in LightGBM, XGBoost, CatBoost and scikit-learn. Theirs may add a constant to a
# deviance, halve it, or interpolate a precision-recall curve differently.
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
        "average_precision": "aucpr prauc average_precision_score",
        "error": "binary_error merror multi_error zero_one zerooneloss zero_one_loss hammingloss hamming_loss",
        "balanced_accuracy": "balancedaccuracy",
        "f1": "totalf1:average=macro",
        "kappa": "cohen_kappa_score",
        "mcc": "matthews_corrcoef",
        "ndcg": "ndcg_score lambdarank rank_xendcg xendcg rank:ndcg",
        "map": "mean_average_precision rank:map",
        "precision_at": "pre precisionat",
        "recall_at": "recallat",
    }.items()
    for peer in peers.split()
}
ABSENT = {
    **dict.fromkeys(("dcg", "pfound"), "use ndcg, err or mrr"),
    **dict.fromkeys(
        ("hingeloss", "hinge_loss"),
        "it needs raw scores; use error, or logloss of probabilities",
    ),
}
SCORES = {
    "score",
    "auc",
    "accuracy",
    "acc",
    "f1",
    "r2",
    "precision",
    "recall",
    "gini",
    "ndcg",
    "map",
    "kappa",
    "mcc",
    "corr",
    "correlation",
    "spearman",
    "pearson",
    "profit",
    "gain",
    "lift",
}
LOSSES = {"loss", "error", "err", "neg", "negative", "minus", "one"}
# CatBoost's names of parameters
_KEYS = {"variance_power": "power", "proba_border": "threshold", "top": "at"}


def resolve(
    given: Any,
    *,
    default: Any,
    link: str | None,
    fields: Mapping[str, float | list[float]] | None = None,
) -> tuple[Metric, ...]:
    """Turn ``eval_metric`` into metrics.

    given: str, callable, (name, callable, higher_is_better), list of these, or None;
    None, alone or in a list, is the
      default, and so is an empty list. A name may have a parameter: ``"pinball@0.9"``,
      or ``"Quantile:alpha=0.9"`` as CatBoost writes it. A callable takes (y,
      prediction, weight), or a peer's (preds, data), known by the names of its
      arguments; it returns a number, (name, value) or (name, value, higher_is_better).
    default, link, fields: the objective's own metric; its link, which tells what a
    prediction is, or None where every
      metric is allowed; its fields, which are defaults of parameters:
      ``quantile_alpha`` for pinball, and so on. With several levels each prediction is
      measured at its own, and the metric is the mean.
    """
    asked = given if isinstance(given, list) and given else [given or None]
    found = [
        _one(default if metric is None else metric, link, fields or {})
        for metric in asked
    ]
    own = {one.name for one in found if one.own}
    found = [
        one
        for metric, one in zip(asked, found, strict=True)
        if metric is not None or one.own or one.name not in own
    ]
    metrics = tuple(
        one
        for at, one in enumerate(found)
        if one.own or one.name not in [had.name for had in found[:at]]
    )
    if len({metric.name for metric in metrics}) < len(metrics):
        raise ParameterError(
            f"{given!r} has two metrics of one name; name them (name, callable, higher_is_better)."
        )
    return metrics


def _one(
    given: Any, link: str | None, fields: Mapping[str, float | list[float]]
) -> Metric:
    """One metric, by name or by value."""
    match given:
        case str():
            return replace(_named(given, link, fields), called=given)
        case (str() as name, function, bool() as higher) if callable(function):
            return Metric(name, _taking_three(function), higher, own=True)
        case scorer if hasattr(scorer, "_score_func") and hasattr(scorer, "_sign"):
            # make_scorer of scikit-learn
            function = partial(scorer._score_func, **scorer._kwargs)
            return Metric(
                scorer._score_func.__name__,
                _taking_three(function),
                scorer._sign > 0,
                own=True,
            )
        case custom if hasattr(custom, "evaluate") and hasattr(
            custom, "is_max_optimal"
        ):
            # CatBoost's
            return Metric(
                type(custom).__name__,
                _of_catboost(custom, link),
                bool(custom.is_max_optimal()),
                own=True,
            )
        case function if callable(function):
            name = getattr(function, "__name__", type(function).__name__)
            higher, sure = _direction(function, name)
            return Metric(name, _taking_three(function), higher, own=True, sure=sure)
    raise ParameterError(
        f"{given!r} is not a metric; give a name or (name, callable, higher_is_better)."
    )


def _direction(function: Any, name: str) -> tuple[bool, bool]:
    """Whether higher values of a user's metric are better, and whether that is known.

    scikit-learn says it by the names of its functions. Any other function is lower
    where it is better, as documented, unless its name is one of a score.
    """
    inner = getattr(function, "func", function)  # of a partial one
    if str(getattr(inner, "__module__", "")).startswith("sklearn."):
        name = inner.__name__
        return name.endswith("_score") or name == "matthews_corrcoef", True
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    return False, not words & SCORES or bool(words & LOSSES)


def _log_odds(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return elementary.log(p) - elementary.log1p(-p)


# raw scores of predictions, by link
RAW: dict[str | None, Callable[[Floats], Floats]] = {
    "sigmoid": _log_odds,
    "sigmoid2": lambda p: 0.5 * _log_odds(p),
    "exp": elementary.log,
    "softmax": elementary.log,
    "one_vs_all": _log_odds,
}


def _of_catboost(custom: Any, link: str | None) -> Function:
    """CatBoost's metric object, which is given raw scores, as a function (y,
    prediction, weight).
    """
    scores = RAW.get(link, np.asarray)

    def measured(y: Floats, prediction: Floats, weight: Weight) -> float:
        approxes = [
            column.tolist()
            for column in scores(prediction).reshape(len(prediction), -1).T
        ]
        rows = None if weight is None else weight.tolist()
        error, total = custom.evaluate(approxes, y.tolist(), rows)
        final = getattr(
            custom, "get_final_error", lambda error, total: error / (total or 1.0)
        )
        return float(final(error, total))

    return measured


def _taking_three(function: Function) -> Function:
    """A user's metric as a function (y, prediction, weight); scikit-learn's take the
    weight by name.
    """
    function, three = in_our_order(function, f"metric {function!r}")
    if three:
        return function
    try:
        about = signature(function)
    except ValueError:  # some built-in functions have no signature
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
    if "sample_weight" in about.parameters:
        return lambda y, prediction, weight: function(
            y, prediction, sample_weight=weight
        )
    return lambda y, prediction, weight: function(y, prediction)


def _ranked(metric: Metric, given: str, parts: list[str]) -> Metric:
    """A metric of ranks with its places: "ndcg@5", XGBoost's "ndcg@5-", or CatBoost's
    "NDCG:top=5;type=Exp".
    """
    more: dict[str, Any] = {"at": AT}
    for part in filter(None, parts):
        key, _, text = part.rpartition("=")
        if key in ("", "top", "at"):
            if text.endswith("-"):  # XGBoost's: a group without a relevant row counts 0
                text, more["empty"] = text[:-1], 0
            number = as_number(text)
            number = (
                int(number)
                if isinstance(number, float) and number == int(number)
                else number
            )
            more["at"] = PLACES.range.check(f"metric {given!r}", number)
        elif (key, text) in (("type", "exp"), ("type", "base")):
            more["gain"] = "exp" if text == "exp" else "linear"
        elif (key, text) != ("denominator", "logposition"):
            raise ParameterError(
                f"metric {given!r} has {part!r}; {metric.name} takes places: {metric.name}@number."
            )
    name = f"{metric.name}@{more['at']}" + ("-" if "empty" in more else "")
    return replace(metric, name=name, function=partial(metric.function, **more))


def with_gain(metric: Metric, rule: Any, top: float) -> Metric:
    """A metric of ranks that has the gains of a training, unless it has its own; `top`:
    the largest label.
    """
    if (
        not metric.ranks
        or not isinstance(metric.function, partial)
        or "gain" in metric.function.keywords
    ):
        return metric
    # others ask whether a row is relevant
    if metric.function.func not in (ranking.ndcg, ranking.err):
        return metric
    more = {"gain": rule} | (
        {"top": top} if metric.function.func is ranking.err else {}
    )
    return replace(metric, function=partial(metric.function, **more))


def _named(
    given: str, link: str | None, fields: Mapping[str, float | list[float]]
) -> Metric:
    """One metric by our name or a peer's, with the given parameter or the
    objective's.
    """
    text = given.lower().removeprefix("neg_")  # scikit-learn's scorers
    text = text.partition("hints=")[0].rstrip(":;")  # CatBoost's: which rows to measure
    head, mark, rest = PEERS.get(text, text).replace(":", "@", 1).partition("@")
    kept = [part for part in rest.split(";") if part not in IMPLIED]
    rest = ";".join(kept)
    mark = mark if kept else ""
    name = PEERS.get(head, head)
    known = METRICS | RANKS
    fitting = {
        metric.name: metric
        for metric in known.values()
        if link is None or link in metric.links
    }
    if name in ABSENT:
        raise ParameterError(f"metric {given!r} is not available: {ABSENT[name]}.")
    if name not in known:
        raise ParameterError(f"metric {given!r} is unknown; {suggest(name, fitting)}")
    if name not in fitting:
        choices = ", ".join(sorted(fitting))
        raise ParameterError(
            f"metric {given!r} does not suit the objective; choose one of {choices}."
        )
    metric = fitting[name]
    parameter = fitting[name].parameter
    if metric.ranks:
        return _ranked(metric, given, kept)
    if parameter is THRESHOLD and link in (*CLASSES, *STEP):
        # the most probable class, or the prediction itself, is the predicted class
        parameter = None
    if mark:
        key, _, text = rest.rpartition("=")
        if parameter is None or (key and _KEYS.get(key, key) != parameter.name):
            takes = (
                "no parameter with this objective"
                if parameter is None
                else f"{parameter.name}: {name}@number"
            )
            raise ParameterError(
                f"metric {given!r} has {rest!r}, but {name} takes {takes}."
            )
        value = parameter.range.check(f"metric {given!r}", as_number(text))
        metric = replace(metric, name=f"{name}@{text}")
    elif parameter is None or parameter.field not in fields:
        return metric
    elif isinstance(levels := fields[parameter.field], list):
        return replace(metric, function=_by_level(metric, parameter.name, levels))
    else:
        value = levels
    return replace(metric, function=partial(metric.function, **{parameter.name: value}))
