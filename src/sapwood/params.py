"""THE table of parameters: every name, kind, range, default, doc, and what the peers call it.

In: the mapping a user gave, in our names or in those of XGBoost, LightGBM and CatBoost. Out: every parameter, checked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from sapwood.errors import ParameterError, suggest


class Kind(Protocol):
    """What values a parameter takes: ``str(kind)`` for the docs, ``check`` for everything else."""

    def check(self, given: str, value: Any) -> Any:
        """The value in its plain Python type, or a `ParameterError` that begins with ``given`` ("name=value")."""


@dataclass(frozen=True)
class Integer:
    """A whole number in low..high, or one of the values in `also`."""

    low: int
    high: int = 2**31 - 1
    also: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return _either("int", self.also)

    def check(self, given: str, value: Any) -> Any:
        if any(value is other or value == other for other in self.also if type(value) is type(other)):
            return value
        allowed = f"{self.low} or more" if self.high == 2**31 - 1 else f"{self.low}..{self.high}"
        choose = f"choose {_either(allowed, self.also)}."
        if not _whole(value):
            raise ParameterError(f"{given} is not an integer; {choose}")
        if not self.low <= value <= self.high:
            raise ParameterError(f"{given} is too {'small' if value < self.low else 'large'}; {choose}")
        return int(value)


@dataclass(frozen=True)
class Number:
    """A finite number from low to high, or a word in `also`; a limit that is itself excluded is marked open."""

    low: float
    high: float = inf
    low_open: bool = False
    high_open: bool = False
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _either("float", self.also)

    def check(self, given: str, value: Any) -> Any:
        if isinstance(value, str) and value in self.also:
            return value
        choose = f"choose a number {'above' if self.low_open else 'of at least'} {self.low:g}"
        if self.high < inf:
            choose += f" and {'below' if self.high_open else 'at most'} {self.high:g}"
        choose += "".join(f", or {word!r}" for word in self.also)
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise ParameterError(f"{given} is not a finite number; {choose}.")
        number = float(value)
        if number < self.low or (self.low_open and number == self.low):
            raise ParameterError(f"{given} is too small; {choose}.")
        if number > self.high or (self.high_open and number == self.high):
            raise ParameterError(f"{given} is too large; {choose}.")
        return number


@dataclass(frozen=True)
class Choice:
    """One of a few words; a peer's word for one of them is taken too, in upper or lower case."""

    words: tuple[str, ...]
    peers: Mapping[str, str] = field(default_factory=dict)
    more: bool = False  # a shelf of the core may hold more words than these; whoever asks the core checks them

    def __str__(self) -> str:
        return "str" if self.more else "{" + ", ".join(repr(word) for word in self.words) + "}"

    def check(self, given: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ParameterError(f"{given} is not a string; choose one of {', '.join(self.words)}.")
        lower = value.lower()
        word = self.peers.get(lower, lower)
        if not self.more and word not in self.words:
            raise ParameterError(f"{given} is unknown; {suggest(word, self.words)}")
        return word


@dataclass(frozen=True)
class Device:
    """Where training runs. Only the CPU so far, and nothing falls back in silence."""

    def __str__(self) -> str:
        return "{'cpu'}"

    def check(self, given: str, value: Any) -> str:
        if isinstance(value, str) and value.lower() == "cpu":
            return "cpu"
        if isinstance(value, str) and value.lower().split(":")[0] in ("cuda", "gpu"):
            raise ParameterError(f"{given} is not available in this version of Sapwood; choose 'cpu'.")
        raise ParameterError(f"{given} is unknown; choose 'cpu'.")


@dataclass(frozen=True)
class Jobs:
    """How many threads: counted from 1, or from every available CPU downwards with negative numbers."""

    def __str__(self) -> str:
        return "int or None"

    def check(self, given: str, value: Any) -> int | None:
        if value is None:
            return None
        if not _whole(value) or value == 0:
            raise ParameterError(f"{given} is not a number of threads; choose 1 or more, or None for every CPU.")
        return int(value)


@dataclass(frozen=True)
class Seed:
    """The seed of every draw: an int; None is 0, so that a fit repeats; a generator of NumPy gives one draw."""

    def __str__(self) -> str:
        return "int, numpy.random.RandomState, numpy.random.Generator or None"

    def check(self, given: str, value: Any) -> int:
        if value is None:
            return 0
        if isinstance(value, np.random.Generator):
            return int(value.integers(2**31))
        if isinstance(value, np.random.RandomState):
            return int(value.randint(2**31 - 1))
        checked: int = Integer(0, 2**63 - 1).check(given, value)
        return checked


@dataclass(frozen=True)
class Metrics:
    """What to measure on validation rows. Names are looked up in `sapwood.metric`."""

    def __str__(self) -> str:
        return "str, callable, (name, callable, higher_is_better), list of these, or None"

    def check(self, given: str, value: Any) -> Any:
        for one in value if isinstance(value, list) else [value]:
            if not (one is None or isinstance(one, str | tuple) or callable(one)):
                raise ParameterError(f"{given} is not a metric; choose {self}.")
        return list(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Goal:
    """A loss by name, a peer's name for it, or a user's own; names are looked up in `sapwood.objective`."""

    words: Choice

    def __str__(self) -> str:
        return "str, callable or object"

    def check(self, given: str, value: Any) -> Any:
        own = callable(value) or hasattr(value, "loss") or hasattr(value, "grad_hess")
        return value if own and not isinstance(value, str) else self.words.check(given, value)


@dataclass(frozen=True)
class Rate:
    """A number above 0, one for each round, or a function of the round, counted from 0."""

    def __str__(self) -> str:
        return "float, sequence of float, or callable"

    def check(self, given: str, value: Any) -> Any:
        if callable(value):
            return value
        if isinstance(value, list | tuple | np.ndarray):
            return [_rate.check(f"{given}, in which {one!r}", one) for one in value]
        return _rate.check(given, value)


@dataclass(frozen=True)
class Start:
    """Where scores start: 'auto', a number, or one for each output."""

    def __str__(self) -> str:
        return "'auto', float or sequence of float"

    def check(self, given: str, value: Any) -> Any:
        if isinstance(value, str) and value == "auto":
            return value
        for one in value if isinstance(value, list | tuple | np.ndarray) else [value]:
            Number(-inf).check(given, one)
        return [float(one) for one in value] if isinstance(value, list | tuple | np.ndarray) else float(value)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def __str__(self) -> str:
        return "bool"

    def check(self, given: str, value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(f"{given} is neither True nor False.")
        return bool(value)


@dataclass(frozen=True)
class Verbosity:
    """How often to print: False or 0 never, n every n rounds, True one line that is kept up to date."""

    def __str__(self) -> str:
        return "bool or int"

    def check(self, given: str, value: Any) -> bool | int:
        if isinstance(value, bool | np.bool_):
            return bool(value)
        checked: int = Integer(0).check(given, 0 if value == -1 else value)  # -1 is LightGBM's silence
        return checked


@dataclass(frozen=True)
class Recipe:
    """A method by name."""

    def __str__(self) -> str:
        return _either("{" + ", ".join(map(repr, RECIPES)) + "}", (None,))

    def check(self, given: str, value: Any) -> str | None:
        return None if value is None else Choice(tuple(RECIPES)).check(given, value)


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    kind: Kind
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()
    means: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # alias -> what its value is in ours
    model: bool = False  # two values of it can give two models
    estimator: bool = True  # an argument of the estimators; False where they work it out themselves


def _whole(value: Any) -> bool:
    """Whether a value is an integer, of Python or NumPy, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _either(first: str, also: tuple[Any, ...]) -> str:
    """Join alternatives as prose: "int, 'auto' or None"."""
    words = [first, *(repr(other) for other in also)]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _instead(old: Collection[Any], new: Any) -> Callable[[Any], Any]:
    """A value mapping that replaces a peer's special integers and leaves the rest alone."""
    return lambda value: new if _whole(value) and value in old else value


_no_limit = _instead((0, -1), None)  # depth and leaves: XGBoost's 0 and LightGBM's -1

_OBJECTIVES = {  # XGBoost's names, LightGBM's, CatBoost's, scikit-learn's, in lower case
    **dict.fromkeys(("reg:squarederror", "reg:linear", "regression", "regression_l2", "l2", "mse"), "squared_error"),
    **dict.fromkeys(("rmse", "mean_squared_error", "squaredloss", "gaussian", "ls"), "squared_error"),
    **dict.fromkeys(("l2_root", "root_mean_squared_error", "multirmse"), "squared_error"),
    **dict.fromkeys(
        ("reg:absoluteerror", "regression_l1", "l1", "mae", "mean_absolute_error", "lad"), "absolute_error"
    ),
    **dict.fromkeys(("reg:quantileerror", "pinball"), "quantile"),
    **dict.fromkeys(("mean_absolute_percentage_error",), "mape"),
    **dict.fromkeys(("reg:squaredlogerror", "msle"), "squared_log"),
    **dict.fromkeys(("count:poisson",), "poisson"),
    **dict.fromkeys(("reg:gamma",), "gamma"),
    **dict.fromkeys(("reg:tweedie",), "tweedie"),
    **dict.fromkeys(("reg:expectileerror",), "expectile"),
    **dict.fromkeys(("logcosh",), "log_cosh"),
    **dict.fromkeys(("binary:logistic", "binary", "logloss", "log_loss", "binary_logloss", "bernoulli"), "logistic"),
    **dict.fromkeys(("reg:logistic", "crossentropy", "xentropy"), "cross_entropy"),
    **dict.fromkeys(("binary:hinge",), "hinge"),
    **dict.fromkeys(("multi:softprob", "multi:softmax", "multiclass", "multinomial"), "softmax"),
    **dict.fromkeys(("multiclassova", "multiclass_ova", "ova", "ovr", "multiclassonevsall"), "one_vs_all"),
    **dict.fromkeys(("multilogloss",), "multilabel"),
}
_POLICIES = {"lossguide": "leafwise", "symmetrictree": "symmetric"}
_fraction = Number(0, 1, low_open=True)
_rate = Number(0, low_open=True)
_positive = Number(0)

TABLE: tuple[Parameter, ...] = (
    Parameter(
        "n_estimators", Integer(1), 100,
        "Rounds of boosting; each grows one tree per output.",
        ("num_boost_round", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round",
         "num_rounds", "nrounds", "iterations", "max_iter", "ntrees"),
    ),
    Parameter(
        "learning_rate", Rate(), 0.1,
        "Factor on the values of every tree: a number, one for each round, or a function of the round (from 0).",
        ("eta", "shrinkage_rate", "shrinkage", "learn_rate", "lr"),
        model=True,
    ),
    Parameter(
        "recipe", Recipe(), None,
        "A method by name, 'classic' (Friedman's gradient boosting) or 'adaboost': it sets the parameters that make it "
        "up, unless they are given too. None is Sapwood's own defaults.",
    ),
    Parameter(
        "objective", Goal(Choice(("auto",), _OBJECTIVES, more=True)), "auto",
        "Loss to minimise, by name or your own: a function (y, score) -> (gradient, hessian) or an object with a loss. "
        "'auto' is what the estimator's target needs, and squared_error in `sapwood.train`.",
        ("loss", "loss_function", "application", "app", "objective_type"),
        model=True,
    ),
    Parameter(
        "grow_policy", Choice(("leafwise", "depthwise", "symmetric"), _POLICIES, more=True), "leafwise",
        "Order in which nodes are split: best first, level by level, or one split for a whole level.",
        ("growing_strategy",),
        model=True,
    ),
    Parameter(
        "max_leaves", Integer(2, also=("auto", None)), "auto",
        "Most leaves of a tree; None for no limit; 'auto' is 31 for leafwise, no limit for the others or where "
        "max_depth is set.",
        ("num_leaves", "num_leaf", "max_leaf", "max_leaf_nodes"),
        dict.fromkeys(("max_leaves", "num_leaves", "num_leaf", "max_leaf"), _no_limit),
        model=True,
    ),
    Parameter(
        "max_depth", Integer(1, also=("auto", None)), "auto",
        "Most splits from the root to a leaf; None for no limit; 'auto' is 6 for depthwise and symmetric, no limit for "
        "leafwise or where max_leaves is set. Symmetric trees need a depth, at most 16.",
        ("depth",),
        {"max_depth": _no_limit, "depth": _no_limit},
        model=True,
    ),
    Parameter(
        "tree_method", Choice(("hist", "exact"), {"auto": "hist"}), "hist",
        "Where a column may be split: between its bins, or ('exact') between any two of its values, of which there may "
        "be any number: slower, and the same model where every value has its bin.",
        model=True,
    ),
    Parameter(
        "max_bins", Integer(2, 65535), 255,
        "Most bins of a column, besides the one for missing values; 255 is the most that fits one byte a value.",
        ("max_bin", "border_count"),
        {"border_count": lambda borders: borders + 1 if _whole(borders) else borders},  # b borders part b + 1 bins
        model=True,
    ),
    Parameter(
        "min_samples_bin", Integer(1), 32,
        "Least rows of a bin, on average, where a column has more than max_bins different values: small data gets "
        "fewer bins (128 at least), which is faster and no less accurate.",
        ("min_data_in_bin",),
        model=True,
    ),
    Parameter(
        "min_child_weight", _positive, 1.0,
        "Least sum of hessians in a leaf.",
        ("min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian"),
        model=True,
    ),
    Parameter(
        "min_samples_leaf", Integer(1, also=("auto",)), "auto",
        "Least rows in a leaf; a weight counts as that many rows. 'auto' is 1, but for losses whose leaves are "
        "quantiles 4 over the thinner tail: 8 for absolute_error, 40 for a quantile_alpha of 0.9; 20 for mape.",
        ("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples"),
        dict.fromkeys(("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples"), _instead((0,), 1)),
        model=True,
    ),
    Parameter(
        "reg_lambda", _positive, 1.0,
        "L2 penalty on leaf values.",
        ("lambda", "lambda_l2", "l2_leaf_reg", "l2_regularization"),
        model=True,
    ),
    Parameter(
        "reg_alpha", _positive, 0.0,
        "L1 penalty on leaf values.",
        ("lambda_l1", "l1_regularization"),
        model=True,
    ),
    Parameter(
        "min_split_gain", _positive, 0.0,
        "Least fall of the penalised loss that is worth a split.",
        ("gamma", "min_split_loss", "min_gain_to_split"),
        model=True,
    ),
    Parameter(
        "max_delta_step", _positive, 0.0,
        "Largest leaf value before the learning rate; 0 for no limit.",
        ("max_tree_output", "max_leaf_output"),
        model=True,
    ),
    Parameter(
        "path_smooth", Number(0, also=("auto",)), "auto",
        "Draws a leaf's value towards its parent's: a leaf of as many rows as this lies half-way. 'auto' is 40 for "
        "logistic loss, else 0.",
        model=True,
    ),
    Parameter(
        "start", Start(), "auto",
        "Score before the first tree: a number, one for each output, or 'auto', the constant that minimises the loss.",
        model=True,
    ),
    Parameter(
        "hessian", Choice(("auto", "none")), "auto",
        "Curvature in the choice of splits: that of the loss, or 'none', which fits the negative gradient by least "
        "squares.",
        model=True,
    ),
    Parameter(
        "leaf_estimation", Choice(("auto", "newton", "gradient", "exact", "sign")), "auto",
        "Value of a leaf: a Newton step, a gradient step (the mean negative gradient), 'exact' (what minimises the "
        "loss: a median, a quantile, or Newton steps until they end; reg_lambda does not draw medians and quantiles), "
        "or 'sign' (+1 or -1). 'auto' is exact for absolute_error, quantile, mape, hinge and, with hessian='none', "
        "huber; else newton.",
        ("leaf_estimation_method",),
        model=True,
    ),
    Parameter(
        "leaf_iterations", Integer(1), 1,
        "Newton or gradient steps for a leaf's value, each with backtracking.",
        ("leaf_estimation_iterations",),
        model=True,
    ),
    Parameter(
        "line_search", Choice(("none", "tree")), "none",
        "'tree' multiplies all values of a tree by the one factor that minimises the loss, before the learning rate.",
        model=True,
    ),
    Parameter(
        "ccp_alpha", _positive, 0.0,
        "Cost-complexity pruning: of every tree the links that take off no more than this, by row and added leaf.",
        model=True,
    ),
    Parameter(
        "prune_by_validation", Flag(), False,
        "Take back the splits of every tree that do not lower the loss of the (last) validation rows.",
        model=True,
    ),
    Parameter(
        "subsample", _fraction, 1.0,
        "Share of the rows drawn, without replacement, for each round.",
        ("bagging_fraction", "sub_row", "bagging", "sample_rate"),
        model=True,
    ),
    Parameter(
        "colsample_bytree", _fraction, 1.0,
        "Share of the columns drawn for each tree.",
        ("feature_fraction", "sub_feature"),
        model=True,
    ),
    Parameter(
        "colsample_bylevel", _fraction, 1.0,
        "Share of the tree's columns drawn for each level.",
        ("rsm",),
        model=True,
    ),
    Parameter(
        "colsample_bynode", _fraction, 1.0,
        "Share of the level's columns drawn for each node.",
        ("feature_fraction_bynode", "sub_feature_bynode"),
        model=True,
    ),
    Parameter(
        "precision", Choice(("auto", "narrow", "wide")), "auto",
        "Fixed-point width of gradients: 14 bits, 30 bits, or chosen for each round (heavy tails go wide).",
        model=True,
    ),
    Parameter(
        "early_stopping_rounds", Integer(1, also=(None,)), None,
        "Stop after so many rounds without a better validation score, and keep the best; None never stops.",
        ("early_stopping_round", "early_stopping", "n_iter_no_change", "od_wait", "stopping_rounds"),
        {"early_stopping_round": _instead((0, -1), None)},
        model=True,
    ),
    Parameter(
        "validation_fraction", Number(0, 1, low_open=True, high_open=True), 0.1,
        "Share of the rows held out for early stopping where no validation set is given.",
        ("eval_fraction", "validation_ratio"),
        model=True,
    ),
    Parameter(
        "eval_metric", Metrics(), None,
        "What to measure on validation rows; early stopping watches the first. None is the objective's own. A callable "
        "takes (y, prediction, weight) and returns a float, lower being better unless the tuple says otherwise.",
        ("metric", "metrics", "metric_types", "custom_metric"),
    ),
    Parameter(
        "n_jobs", Jobs(), None,
        "Threads; None or -1 for every CPU this process may use, -2 for all but one. Never changes the model.",
        ("nthread", "nthreads", "n_threads", "num_thread", "num_threads", "thread_count"),
        dict.fromkeys(("nthread", "nthreads", "n_threads", "num_thread", "num_threads"), _instead((0,), None)),
    ),
    Parameter(
        "random_state", Seed(), None,
        "Seed of every draw; None is 0, so that a fit repeats.",
        ("seed", "random_seed"),
        model=True,
    ),
    Parameter(
        "verbose", Verbosity(), 0,
        "Print progress every so many rounds; True keeps one line up to date; 0 is silent.",
        ("verbose_eval", "metric_period", "verbosity"),
        {"verbosity": lambda level: int(level > 1) if _whole(level) else level},  # up to 1 the peers only warn
    ),
    Parameter(
        "device", Device(), "cpu",
        "Where training runs.",
        ("device_type", "task_type"),
    ),
    Parameter(
        "n_classes", Integer(2, also=(None,)), None,
        "Number of classes of softmax; None for the largest label plus 1.",
        ("num_class", "num_classes", "classes_count"),
        estimator=False,
    ),
)  # fmt: skip

_EVERY_VALUE = {"max_bins": 65535, "min_samples_bin": 1, "precision": "wide"}
_BARE = {
    "reg_lambda": 0.0,
    "min_child_weight": 0.0,
    "min_samples_leaf": 1,
    "path_smooth": 0.0,
    "grow_policy": "depthwise",
}
RECIPES: dict[str, dict[str, Any]] = {
    # Friedman (2001): trees of 8 leaves fit the negative gradient by least squares; leaf values minimise the loss.
    "classic": {"hessian": "none", "max_depth": 3, **_BARE, **_EVERY_VALUE},
    # Freund and Schapire (1997), as Friedman, Hastie and Tibshirani (2000) read it: stumps on exponential loss.
    "adaboost": {
        "objective": "exponential",
        "learning_rate": 1.0,
        "start": 0.0,
        "max_depth": 1,
        **_BARE,
        **_EVERY_VALUE,
    },
}
_ROWS = {row.name: row for row in TABLE}
_NAMES = {alias: row for row in TABLE for alias in (row.name, *row.aliases)}
# Switches of the peers that say what Sapwood does anyway: name -> the values that do. Any other value is an error.
_ANYWAY: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("boosting", "boosting_type", "booster"), ("gbdt", "gbrt", "gbtree", "plain")),
    **dict.fromkeys(("force_col_wise", "force_row_wise", "deterministic", "feature_pre_filter"), (True, False)),
    **dict.fromkeys(("allow_writing_files", "use_best_model", "validate_parameters"), (True, False)),
    "bagging_freq": (1,),
    "subsample_freq": (1,),
    "sampling_method": ("uniform",),
    "use_label_encoder": (False,),
}
_AMBIGUOUS = {
    "alpha": "L1 penalty in XGBoost, level of a quantile or Huber loss elsewhere; use reg_alpha, quantile_alpha, "
    "expectile_alpha, huber_quantile or huber_delta",
}


def defaults() -> dict[str, Any]:
    """Every parameter's default, by its name, in the order of the table."""
    return {row.name: row.default for row in TABLE}


def resolve(given: Mapping[str, Any], *, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Check a mapping of parameters and complete it.

    Parameters
    ----------
    given : mapping of str to object
        Parameters in our names or a peer's. Not changed.
    fields : mapping of str to str, optional
        Names that belong to objectives, and ours for them; their values are passed on as they are.

    Returns
    -------
    dict
        Every parameter of the table in our names and plain Python types, then the fields that were given.

    Raises
    ------
    ParameterError
        For a name that is unknown, ambiguous or given twice, and for a value of the wrong type or range.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(f"params is a {type(given).__name__}; give a dict of names and values.")
    found: dict[str, tuple[str, Any]] = {}
    own: dict[str, Any] = {}
    fields = {} if fields is None else fields
    for name, value in given.items():
        if name in fields:
            if fields[name] in own:
                raise ParameterError(f"{name}={value!r} gives {fields[name]} a second time; give it once.")
            own[fields[name]] = value
            continue
        if name in _ANYWAY:
            if (value.lower() if isinstance(value, str) else value) not in _ANYWAY[name]:
                allowed = ", ".join(map(repr, _ANYWAY[name]))
                raise ParameterError(f"{name}={value!r} is not available; Sapwood knows {name} as {allowed} only.")
            continue
        row = _row(name, fields)
        ours = row.means.get(name, lambda same: same)(value)
        text = f"{name}={value!r}" if ours is value else f"{name}={value!r} ({row.name}={ours!r})"
        checked = row.kind.check(text, ours)
        if row.name in found and found[row.name][1] != checked:
            raise ParameterError(f"{found[row.name][0]} and {text} are both {row.name}; give one of them.")
        found[row.name] = text, checked
    complete = {row.name: row.kind.check(row.name, row.default) for row in TABLE}
    complete |= _recipe(found["recipe"][1] if "recipe" in found else None, found)
    complete |= {name: checked for name, (_, checked) in found.items()}
    for name in ("max_bins", "min_samples_bin") if complete["tree_method"] == "exact" else ():
        if name in found and found[name][1] != _ROWS[name].default:
            raise ParameterError(f"{found[name][0]} is not for tree_method='exact', which has no bins; leave it out.")
        complete[name] = _ROWS[name].default  # whatever a recipe says
    return complete | own


def _recipe(name: str | None, found: Collection[str]) -> dict[str, Any]:
    """What a recipe sets. Given max_leaves, trees grow best first to that many, so it has nothing to say of depth."""
    sets = RECIPES[name] if name is not None else {}
    return {
        one: value
        for one, value in sets.items()
        if "max_leaves" not in found or one not in ("max_depth", "grow_policy")
    }


def rates(given: float | Sequence[float] | Callable[[int], float]) -> Callable[[int], float]:
    """The learning rate of a round, whatever form `learning_rate` was given in."""
    if callable(given):
        return lambda index: _rate.check(f"learning_rate({index})={given(index)!r}", given(index))
    if isinstance(given, Sequence):
        return lambda index: given[index]
    return lambda _: given


def given_names(given: Mapping[str, Any]) -> set[str]:
    """Our names of the parameters a mapping sets."""
    return {_NAMES[name].name for name in given if name in _NAMES}


def model_params(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the parameters that can change predictions.

    The number of rounds is not among them: the trees themselves say it, and 10 + 10 rounds are 20. Neither is
    `eval_metric`, which may be a function: `best_round` has what it decided. Learning rates that change from round to
    round are in the trees, and a user's objective is known by its name.
    """
    kept = {name: value for name, value in resolved.items() if name not in _ROWS or _ROWS[name].model}
    if not isinstance(kept.get("learning_rate"), float):
        kept["learning_rate"] = "scheduled"
    return kept


def _row(name: str, fields: Collection[str]) -> Parameter:
    """The row of a name, or the error that helps."""
    if name in _NAMES:
        return _NAMES[name]
    if name in _AMBIGUOUS:
        raise ParameterError(f"parameter {name!r} is ambiguous: {_AMBIGUOUS[name]}.")
    raise ParameterError(f"unknown parameter {name!r}; {suggest(str(name), [*_NAMES, *fields], listed=_ROWS)}")
