"""Types of parameters: each checks a value, and describes itself in the docs.

In: the value that a user gave. Out: the value in its plain Python type, or an error
that says what is allowed.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.random  # NumPy loads it late otherwise, where memory may be short

from sapwood.errors import ParameterError, suggest

# the modules of sapwood.device that compute, the default first
DEVICES = ("cpu", "cuda")
DATE_PARTS = ("year", "month", "day", "weekday", "dayofyear", "hour", "minute")
NO_METRIC = ("none", "na", "null", "custom")  # LightGBM's words for it
PRIORS = (0.0, 0.5, 1.0)  # of target statistics, CatBoost's
MAX_SCORE = 1e150  # squares of raw scores must stay finite in float64


class ParameterType(Protocol):
    """The values that a parameter takes. ``str(type)`` describes them in the docs."""

    def check(self, given: str, value: Any) -> Any:
        """The value in its plain Python type, or a `ParameterError` that begins with
        ``given`` ("name=value").
        """


# ---- Types with limits or words of their own -----------------------------------------


@dataclass(frozen=True)
class Integer:
    """An integer from low to high, or one of the values in `or_one_of`."""

    low: int
    high: int = 2**31 - 1
    or_one_of: tuple[Any, ...] = ()
    # other values that aliases convert to one of these, for the error message
    note: str = ""

    def __str__(self) -> str:
        return either("int", self.or_one_of)

    def check(self, given: str, value: Any) -> Any:
        if any(
            value is other or value == other
            for other in self.or_one_of
            if type(value) is type(other)
        ):
            return value
        allowed = (
            f"{self.low} or more"
            if self.high == 2**31 - 1
            else f"{self.low}..{self.high}"
        )
        choose = f"choose {either(allowed, self.or_one_of)}{self.note}."
        if not is_integer(value):
            raise ParameterError(f"{given} is not an integer; {choose}")
        if not self.low <= value <= self.high:
            raise ParameterError(
                f"{given} is too {'small' if value < self.low else 'large'}; {choose}"
            )
        return int(value)


@dataclass(frozen=True)
class Number:
    """A finite number from low to high, or a word in `or_one_of`. An open limit is
    itself not allowed.
    """

    low: float
    high: float = inf
    low_open: bool = False
    high_open: bool = False
    or_one_of: tuple[str | None, ...] = ()

    def __str__(self) -> str:
        return either("float", self.or_one_of)

    def check(self, given: str, value: Any) -> Any:
        if (value is None or isinstance(value, str)) and value in self.or_one_of:
            return value
        choose = f"choose a number {'above' if self.low_open else 'of at least'} {self.low:g}"
        if self.high < inf:
            choose += f" and {'below' if self.high_open else 'at most'} {self.high:g}"
        choose += "".join(f", or {word!r}" for word in self.or_one_of)
        if (
            isinstance(value, bool)
            or not isinstance(value, Real)
            or not isfinite(value)
        ):
            raise ParameterError(f"{given} is not a finite number; {choose}.")
        number = float(value)
        if number < self.low or (self.low_open and number == self.low):
            raise ParameterError(f"{given} is too small; {choose}.")
        if number > self.high or (self.high_open and number == self.high):
            raise ParameterError(f"{given} is too large; {choose}.")
        return number


RATE = Number(0, low_open=True)  # a learning rate
FRACTION = Number(0, 1, low_open=True)


@dataclass(frozen=True)
class Choice:
    """One of a few words, or a peer's word for one of them, in upper or lower case."""

    words: tuple[str, ...]
    peers: Mapping[str, str] = field(default_factory=dict)
    # a shelf of the core may hold other words too; the caller checks those
    more: bool = False
    # a peer's words without an equal here, and what to do
    absent: Mapping[str, str] = field(default_factory=dict)
    or_none: bool = False

    def __str__(self) -> str:
        words = (
            "str"
            if self.more
            else "{" + ", ".join(repr(word) for word in self.words) + "}"
        )
        return f"{words} or None" if self.or_none else words

    def check(self, given: str, value: Any) -> Any:
        if value is None and self.or_none:
            return None
        if not isinstance(value, str):
            raise ParameterError(
                f"{given} is not a string; choose one of {', '.join(self.words)}."
            )
        lower = value.lower()
        word = self.peers.get(lower, lower)
        if not self.more and word not in self.words:
            if word in self.absent:
                raise ParameterError(f"{given} is not available: {self.absent[word]}")
            raise ParameterError(f"{given} is unknown; {suggest(word, self.words)}")
        return word


ENCODINGS = Choice(("auto", "partition", "onehot", "ordered", "both"))


@dataclass(frozen=True)
class ObjectiveType:
    """A loss: its name, a peer's name for it, or a user's own. `sapwood.objective`
    knows their names.
    """

    words: Choice

    def __str__(self) -> str:
        return "str, callable or object"

    def check(self, given: str, value: Any) -> Any:
        if isinstance(value, str):
            return self.words.check(given, value)
        if not (
            callable(value)
            or any(
                hasattr(value, name)
                for name in ("loss", "grad_hess", "calc_ders_range")
            )
        ):
            raise ParameterError(
                f"{given} is not an objective; give a name such as 'squared_error' or 'logistic', a function "
                "(y, score) -> (gradient, hessian), or an object with grad_hess or loss."
            )
        return value


# ---- Types that are one function -----------------------------------------------------


@dataclass(frozen=True)
class CheckedBy:
    """A type that is a function like `ParameterType.check`, with a text for the
    docs.
    """

    text: str
    function: Callable[[str, Any], Any]
    or_none: bool

    def __str__(self) -> str:
        return self.text

    def check(self, given: str, value: Any) -> Any:
        return None if value is None and self.or_none else self.function(given, value)


def described(
    text: str, or_none: bool = False
) -> Callable[[Callable[[str, Any], Any]], CheckedBy]:
    """Make a type of the function below; with ``or_none`` the function is not asked
    about None, which is allowed.
    """
    return lambda function: CheckedBy(text, function, or_none)


@described("bool")
def flag(given: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{given} is neither True nor False.")
    return bool(value)


@described("bool or int")
def verbosity(given: str, value: Any) -> Any:
    """When to print progress: False or 0 never, n every n rounds, True in a single line
    that is updated.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    # -1 is LightGBM's silence
    return Integer(0).check(given, 0 if value == -1 else value)


@described("{" + ", ".join(map(repr, DEVICES)) + "}")
def device(given: str, value: Any) -> str:
    """The name of a device. No other device takes its place in silence."""
    name = value.lower() if isinstance(value, str) else value
    name = "cuda" if name == "gpu" else name
    if name in DEVICES:
        return str(name)
    hint = (
        " A process sees several GPUs in the order of CUDA_VISIBLE_DEVICES."
        if str(name).startswith("cuda:")
        else ""
    )
    raise ParameterError(
        f"{given} is unknown; choose {' or '.join(map(repr, DEVICES))}.{hint}"
    )


@described("str, path-like or None", or_none=True)
def path(given: str, value: Any) -> str:
    """The path of a file."""
    try:
        name = os.fspath(value)
    except TypeError:
        name = b""
    if not isinstance(name, str) or not name:
        raise ParameterError(
            f"{given} is not a path; give a str or a path-like object."
        )
    return name


@described("int or None", or_none=True)
def jobs(given: str, value: Any) -> int:
    """A number of threads: 1 or more; negative numbers count down from the number of
    available CPUs.
    """
    if not is_integer(value) or value == 0:
        raise ParameterError(
            f"{given} is not a number of threads; choose 1 or more, or None for every CPU."
        )
    return int(value)


@described("int, numpy.random.RandomState, numpy.random.Generator or None")
def seed(given: str, value: Any) -> Any:
    """A seed: an int, None (0, so that fits are repeatable), or a generator of NumPy,
    which gives one draw.
    """
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**31))
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    return Integer(0, 2**63 - 1).check(given, 0 if value is None else value)


@described(
    "str, callable, (name, callable, higher_is_better), list of these, or None",
    or_none=True,
)
def metrics(given: str, value: Any) -> Any:
    """Metrics of the validation rows. `sapwood.metric` knows their names."""
    if isinstance(value, str):  # LightGBM's "auc,logloss", "" and "None"
        none = value.lower() in NO_METRIC
        return "none" if none else value.split(",") if "," in value else value or None
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        value = list(value)
    if (
        isinstance(value, list)
        and len(value) == 1
        and isinstance(value[0], str)
        and value[0].lower() in NO_METRIC
    ):
        return "none"
    for one in value if isinstance(value, list) else [value]:
        if not (
            one is None
            or isinstance(one, str | tuple)
            or callable(one)
            or hasattr(one, "is_max_optimal")
        ):
            raise ParameterError(f"{given} is not a metric; choose {metrics}.")
    return list(value) if isinstance(value, list) else value


@described("float, sequence of float, callable or 'auto'")
def rate(given: str, value: Any) -> Any:
    """A number above 0, a number for each round, a function of the round (counted from
    0), or 'auto'.
    """
    if callable(value) or (isinstance(value, str) and value == "auto"):
        return value
    # an array without dimensions is a number
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, list | tuple):
        return [RATE.check(f"{given}, in which {one!r}", one) for one in value]
    return RATE.check(given, value)


@described("'auto', float or sequence of float")
def start(given: str, value: Any) -> Any:
    """The raw score before the first tree: 'auto', a number, or one for each output."""
    if isinstance(value, str) and value == "auto":
        return value
    value = value.tolist() if isinstance(value, np.ndarray) else value
    for one in value if isinstance(value, list | tuple) else [value]:
        # nor NaN
        if (
            isinstance(one, bool)
            or not isinstance(one, Real)
            or not abs(float(one)) <= MAX_SCORE
        ):
            raise ParameterError(
                f"{given} is not a raw score; choose 'auto', a number up to {MAX_SCORE:g} in size, or one such "
                "number for each output."
            )
    return (
        [float(one) for one in value]
        if isinstance(value, list | tuple)
        else float(value)
    )


# ---- Values by class: classes are text, as in files; 1, 1.0 and "1" are the same class


class PerClass(dict[str, float]):
    """Numbers of a list, one for each class in the order of classes, by the index of
    the class as text.
    """

    def check_length(self, name: str, n_classes: int) -> None:
        """Raise unless every class has a number, and every number a class."""
        if len(self) != n_classes:
            raise ParameterError(
                f"{name} has {len(self)} numbers for {n_classes} classes; give one for each class, or a dict of some."
            )


def _in_order(value: Any) -> Any:
    """A list as the numbers of classes by their indices; anything else as it is."""
    return (
        PerClass(zip(map(str, range(len(value))), value, strict=True))
        if is_list(value)
        else value
    )


def is_list(value: Any) -> bool:
    """Whether a value is a list, a tuple or an array of one dimension or more."""
    return isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def _by_class(
    value: Mapping[Any, Any], check: Callable[[Any], float]
) -> dict[str, float]:
    """Checked numbers by the text of the class."""
    checked = {class_name(one): check(number) for one, number in value.items()}
    return PerClass(checked) if isinstance(value, PerClass) else checked


@described("dict of class to float, sequence of float or None", or_none=True)
def class_fractions(given: str, value: Any) -> dict[str, float]:
    """Fractions of rows by class."""
    value = _in_order(value)
    if not isinstance(value, Mapping) or not value:
        raise ParameterError(
            f"{given} is not a dict of fractions; give {{class: fraction}}, such as {{0: 0.1, 1: 1.0}}."
        )
    return _by_class(
        value, lambda part: FRACTION.check(f"{given}, in which {part!r}", part)
    )


@described(
    "dict of class to float, sequence of float, 'balanced', 'sqrt_balanced' or None",
    or_none=True,
)
def class_weights(given: str, value: Any) -> dict[str, float] | str | None:
    """Weights by class, or the rule that gives them."""
    if isinstance(value, str) and "," in value:  # "1,3", in the order of classes
        value = [as_number(one) for one in value.split(",")]
    if isinstance(value, str):
        rules = Choice(
            ("balanced", "sqrt_balanced", "none"), {"sqrtbalanced": "sqrt_balanced"}
        )
        word = rules.check(given, value)
        return None if word == "none" else word
    value = _in_order(value)  # CatBoost's lists
    if not isinstance(value, Mapping) or not value:
        raise ParameterError(
            f"{given} is not a dict of weights; give {{class: weight}}, such as {{0: 1, 1: 10}}."
        )
    return _by_class(
        value, lambda weight: Number(0).check(f"{given}, in which {weight!r}", weight)
    )


# ---- Values by column: columns have names or positions -------------------------------


@described("dict, sequence of int, str or None", or_none=True)
def directions(given: str, value: Any) -> Any:
    """Monotone constraints: -1 falling, 0 free, 1 rising; for every column, or for
    some.
    """
    if isinstance(value, str):  # XGBoost's "(1,0,-1)", CatBoost's "age:1,hours:-1"
        parts = [
            one.rpartition(":") for one in value.strip("() ").split(",") if one.strip()
        ]
        keys = [int(key) if key.isdecimal() else key for key, _, _ in parts]
        try:
            signs = [int(sign) for _, _, sign in parts]
        except ValueError:
            raise ParameterError(
                f"{given} is not a list of directions; write it as (1,0,-1) or age:1,hours:-1."
            ) from None
        value = dict(zip(keys, signs, strict=True)) if ":" in value else signs

    def direction(sign: Any) -> int:
        if not is_integer(sign) or sign not in (-1, 0, 1):
            raise ParameterError(
                f"{given} has a direction that is not -1 (falling), 0 (free) or 1 (rising)."
            )
        return int(sign)

    return _by_column(given, value, "direction", direction)


@described("dict, sequence of float or None", or_none=True)
def number_by_column(given: str, value: Any) -> Any:
    """A number of at least 0 for every column, or for some."""
    return _by_column(given, value, "number", lambda one: Number(0).check(given, one))


@described(f"{ENCODINGS}, dict or None", or_none=True)
def encoding(given: str, value: Any) -> Any:
    """How categories become numbers: a word for all columns, or a dict of words for
    some.
    """
    if isinstance(value, Mapping):
        return {
            column: ENCODINGS.check(given, value[column])
            for column in _columns(given, value)
        }
    return ENCODINGS.check(given, value)


@described("sequence, dict or None", or_none=True)
def statistics(given: str, value: Any) -> Any:
    """Target statistics of categories: a list of kinds for all columns, or a dict of
    lists for some.

    A kind is a word, or a pair of a word and its priors.
    """

    def listed(value: Any) -> list[list[Any]]:
        kinds = ("borders", "buckets", "mean", "counter")
        if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
            raise ParameterError(
                f"{given} is not a list of statistics; give some of {', '.join(kinds)}."
            )
        found: list[list[Any]] = []
        for one in value:
            kind, priors = (
                one if isinstance(one, list | tuple) and len(one) == 2 else (one, None)
            )
            word = Choice(kinds).check(f"{given}: {kind!r}", kind)
            if priors is None:
                priors = (0.0,) if word == "counter" else PRIORS
            if (
                not isinstance(priors, list | tuple)
                or not priors
                or word in (other for other, _ in found)
            ):
                raise ParameterError(
                    f"{given}: give every kind once, with a list of priors or without."
                )
            found.append(
                [
                    word,
                    [
                        Number(0, 1).check(f"{given}: prior {prior!r}", prior)
                        for prior in priors
                    ],
                ]
            )
        return found

    if isinstance(value, Mapping):
        return {column: listed(value[column]) for column in _columns(given, value)}
    return listed(value)


@described("'auto', sequence of str, int or bool, or None", or_none=True)
def categorical(given: str, value: Any) -> list[Any] | str:
    """Categorical columns: 'auto' by their types, None, or some by name, position or
    mask.
    """
    if isinstance(value, str):  # LightGBM's "0,1,2" and "name:a,b"
        # the second is scikit-learn's, the third LightGBM's
        if value in ("auto", "from_dtype", ""):
            return "auto"
        if value.startswith("name:"):
            return value.removeprefix("name:").split(",")
        if not all(one.strip().isdecimal() for one in value.split(",")):
            raise ParameterError(
                f"{given} is unknown; choose 'auto', None, or a list of names or positions."
            )
        value = [int(one) for one in value.split(",")]
    # an array of NumPy, or an index of pandas
    value = value.tolist() if hasattr(value, "tolist") else value
    value = [value] if is_integer(value) else value
    if not isinstance(value, list | tuple | set | frozenset | range):
        raise ParameterError(
            f"{given} is not a list of columns; give names or positions, 'auto' or None."
        )
    if value and all(isinstance(one, bool | np.bool_) for one in value):
        return [bool(one) for one in value]
    columns = _columns(given, value)
    return sorted(columns, key=str) if isinstance(value, set | frozenset) else columns


@described("'auto', sequence of str, or None", or_none=True)
def date_parts(given: str, value: Any) -> list[str] | str:
    """Parts of the calendar that columns of times get: 'auto', None, or some by
    name.
    """
    if isinstance(value, str) and value == "auto":
        return value
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise ParameterError(
            f"{given} is unknown; choose 'auto', None, or some of {', '.join(DATE_PARTS)}."
        )
    words = [Choice(DATE_PARTS).check(f"{given}: {one!r}", one) for one in value]
    return [part for part in DATE_PARTS if part in words]


@described("'auto', sequence of str or int, or None", or_none=True)
def text_columns(given: str, value: Any) -> list[str | int] | str:
    """Columns of text or of lists: 'auto', None, or some by name or position."""
    if isinstance(value, str):
        if value == "auto":
            return value
        value = [value]
    if not isinstance(value, list | tuple | set | frozenset):
        raise ParameterError(
            f"{given} is not a list of columns; give names or positions, 'auto' or None."
        )
    return _columns(given, value)


@described(
    "list of lists of str or int, 'pairwise', 'no_interactions' or None", or_none=True
)
def column_groups(given: str, value: Any) -> list[list[str | int]] | str:
    """Interaction constraints: groups of columns by name or position, or a word for a
    set of groups.
    """
    if isinstance(value, str):  # XGBoost's "[[0,1],[2,3]]" and LightGBM's "[0,1],[2,3]"
        if value in ("pairwise", "no_interactions"):
            return value
        try:
            value = json.loads(
                value if value.replace(" ", "").startswith("[[") else f"[{value}]"
            )
        except (ValueError, RecursionError):
            raise ParameterError(
                f"{given} is not a list of groups; write it as [[0,1],[2,3]]."
            ) from None
    sets = (list, tuple, set, frozenset, np.ndarray)
    if not isinstance(value, sets) or not all(
        isinstance(group, sets) and len(group) for group in value
    ):
        raise ParameterError(
            f"{given} is not a list of groups of columns; write it as [['a', 'b'], ['c', 'd']]."
        )
    return [sorted(_columns(given, group), key=str) for group in value]


@described("dict, path or None", or_none=True)
def forced_splits(given: str, value: Any) -> dict[str, Any] | None:
    """Splits at the top of every tree: {feature, threshold, left, right}, or the path
    of a JSON file with them.
    """

    def checked(split: Any) -> dict[str, Any]:
        known = {"feature", "threshold", "left", "right"}
        if (
            not isinstance(split, Mapping)
            or not {"feature", "threshold"} <= set(split) <= known
        ):
            raise ParameterError(
                f"{given}: a split has feature, threshold and perhaps left and right, not {split!r}."
            )
        (feature,) = _columns(given, [split["feature"]])
        below = {
            side: checked(split[side])
            for side in ("left", "right")
            if split.get(side) not in (None, {})
        }
        return {
            "feature": feature,
            "threshold": Number(-inf).check(given, split["threshold"]),
            **below,
        }

    if isinstance(value, str | os.PathLike):
        if value == "":  # LightGBM's default
            return None
        try:
            value = json.loads(Path(value).read_text())
        except (OSError, ValueError, RecursionError) as cause:
            raise ParameterError(
                f"{given} is not a file of forced splits: {cause}."
            ) from cause
    if value is None or value == {}:
        return None
    try:
        return checked(value)
    except RecursionError as cause:
        raise ParameterError(
            "forced_splits is nested too deep; a tree needs some ten levels."
        ) from cause


def _by_column(
    given: str, value: Any, what: str, check: Callable[[Any], Any]
) -> dict[str | int, Any] | list[Any]:
    """A checked number for every column, or a dict of those of some columns."""
    keyed = isinstance(value, Mapping)
    if not keyed and not isinstance(value, list | tuple | np.ndarray):
        raise ParameterError(
            f"{given} is neither a dict nor a sequence; give a {what} for each column."
        )
    numbers = [check(one) for one in (value.values() if keyed else value)]
    return dict(zip(_columns(given, value), numbers, strict=True)) if keyed else numbers


def _columns(given: str, columns: Collection[Any]) -> list[Any]:
    """Columns by name or position, in plain types."""
    for one in columns:
        if not isinstance(one, str) and not is_integer(one):
            raise ParameterError(
                f"{given} names a column {one!r}; give a name or a position."
            )
    return [str(one) if isinstance(one, str) else int(one) for one in columns]


# ---- Words and numbers ---------------------------------------------------------------


def class_name(one: Any) -> str:
    """The text of a class where classes are keys: 1, 1.0 and "1" are the same class."""
    number = isinstance(one, int | float | np.integer | np.floating) and not isinstance(
        one, bool
    )
    return str(int(one)) if number and float(one).is_integer() else str(one)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@described("str or sequence of float")
def gain(given: str, value: Any) -> Any:
    """What labels are worth: a word, or a number for each label."""
    if isinstance(value, str) and "," in value:  # LightGBM's list in a string
        value = [as_number(one) for one in value.split(",")]
    if isinstance(value, str):
        words = ("auto", "exp", "linear")
        if value.lower() not in words:
            raise ParameterError(
                f"{given} is neither 'auto', 'exp', 'linear' nor a list of numbers."
            )
        return value.lower()
    values = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(values, list | tuple) or not values:
        raise ParameterError(
            f"{given} is neither 'auto', 'exp', 'linear' nor a list of numbers."
        )
    return [Number(0).check(f"{given}, in which {one!r}", one) for one in values]


@described("sequence of float", or_none=True)
def levels(given: str, value: Any) -> Any:
    """Levels of quantiles, each once; they are sorted."""
    values = value.tolist() if hasattr(value, "tolist") else value
    values = [values] if isinstance(values, float) else values
    if not isinstance(values, list | tuple) or not values:
        raise ParameterError(
            f"{given} is not a list of levels; give numbers between 0 and 1, such as [0.1, 0.5, 0.9]."
        )
    inside = Number(0, 1, low_open=True, high_open=True)
    found = sorted(inside.check(f"{given}, in which {one!r}", one) for one in values)
    if len(set(found)) < len(found):
        raise ParameterError(f"{given} has a level twice; give each once.")
    return found


@described("int or sequence of int", or_none=True)
def places(given: str, value: Any) -> Any:
    """Places that metrics of ranks look at."""
    values = value.tolist() if hasattr(value, "tolist") else value
    values = [values] if is_integer(values) else values
    if not isinstance(values, list | tuple) or not values:
        raise ParameterError(f"{given} is neither an integer nor a list of integers.")
    return [Integer(1).check(f"{given}, in which {one!r}", one) for one in values]


def as_number(text: str) -> float | str:
    """The number that a text holds, or the text itself."""
    try:
        return float(text)
    except ValueError:
        return text


def either(first: str, others: tuple[Any, ...]) -> str:
    """Join alternatives as prose: "int, 'auto' or None"."""
    words = [first, *(repr(other) for other in others)]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
