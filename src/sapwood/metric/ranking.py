"""Metrics of ranked groups: NDCG, MAP, MRR, ERR, precision and recall among the first
places.

In: labels, scores, weights, the group of every row. Out: the mean over groups, whatever
the order of rows and groups.

A group's weight is the mean weight of its rows. Rules that libraries do not share have
names: `gain`, `ties`, `empty`; `convention` sets those of a library. By default rows of
equal score count with the mean over all their orders, and groups without a relevant row
are left out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import host
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.params.gains import RELEVANT, gain_rule, gains, satisfaction
from sapwood.params.types import Integer
from sapwood.params.types import gain as gain_type

__all__ = ["err", "map_at", "mrr", "ndcg", "precision_at", "recall_at"]

Floats = NDArray[np.float64]
CONVENTIONS: dict[str, dict[str, Any]] = {
    "lightgbm": {"gain": "exp", "ties": "input", "empty": 1},
    "xgboost": {"gain": "exp", "ties": "input", "empty": 1},
    "xgboost-": {"gain": "exp", "ties": "input", "empty": 0},
    "catboost": {
        "gain": "linear",
        "ties": "pessimistic",
        "empty": {"ndcg": 1, "recall": 1},
    },
    "sklearn": {"gain": "linear", "ties": "average", "empty": 0},
}
GRADED = ("ndcg", "err")  # measures in which a label has a worth
TIES = ("average", "pessimistic", "input")


def ndcg(
    y: Any,
    prediction: Any,
    weight: Any = None,
    *,
    group: Any,
    at: int | None = 10,
    gain: Any = None,
    ties: str | None = None,
    empty: Any = None,
    convention: str | None = None,
) -> float:
    """Discounted cumulative gain among the first `at` places, relative to the best
    order of the group.

    Parameters
    ----------
    y : (n_rows,) array-like
        Labels of at least 0: how relevant a row is.
    prediction : (n_rows,) array-like
        Scores; a higher one ranks first.
    weight : (n_rows,) array-like, optional
    group : (n_rows,) or (n_groups,) array-like
        The group of every row by any name, in any order; or sizes of groups of
        consecutive rows.
    at : int, optional
        Places that count; None means all.
    gain : {'auto', 'exp', 'linear'} or sequence of float, optional
        2^label - 1, the label, or a list by label. 'auto' is 'exp' for whole labels up
        to 5, else 'linear'.
    ties : {'average', 'pessimistic', 'input'}, optional
        Rows of equal score: the mean over all their orders, the worst of them, or the
        order of the rows.
    empty : {'skip', 0, 1}, optional
        What a group without a relevant row counts as.
    convention : {'lightgbm', 'xgboost', 'xgboost-', 'catboost', 'sklearn'}, optional
        What a library does, where `gain`, `ties` and `empty` are not given.
    """
    return _measure(
        "ndcg", y, prediction, weight, group, at, gain, ties, empty, convention
    )


def map_at(
    y: Any,
    prediction: Any,
    weight: Any = None,
    *,
    group: Any,
    at: int | None = 10,
    gain: Any = None,
    ties: str | None = None,
    empty: Any = None,
    convention: str | None = None,
) -> float:
    """Mean average precision among the first `at` places: over the relevant rows (label
    above 0.5), at most `at`.
    """
    return _measure(
        "map", y, prediction, weight, group, at, gain, ties, empty, convention
    )


def mrr(
    y: Any,
    prediction: Any,
    weight: Any = None,
    *,
    group: Any,
    at: int | None = 10,
    gain: Any = None,
    ties: str | None = None,
    empty: Any = None,
    convention: str | None = None,
) -> float:
    """Mean of 1 / place of the first relevant row (label above 0.5); 0 where it is not
    among the first `at`.
    """
    return _measure(
        "mrr", y, prediction, weight, group, at, gain, ties, empty, convention
    )


def err(
    y: Any,
    prediction: Any,
    weight: Any = None,
    *,
    group: Any,
    at: int | None = 10,
    gain: Any = None,
    ties: str | None = None,
    empty: Any = None,
    convention: str | None = None,
    top: float | None = None,
) -> float:
    """Expected reciprocal rank: 1 / place at which a reader is satisfied who goes down
    the list.

    A row satisfies with the probability (2^label - 1) / 2^top ('exp'), or label / top
    ('linear', 1 at least), with `top` the largest label there can be; by default that
    of `y`.
    """
    return _measure(
        "err", y, prediction, weight, group, at, gain, ties, empty, convention, top
    )


def precision_at(
    y: Any,
    prediction: Any,
    weight: Any = None,
    *,
    group: Any,
    at: int | None = 10,
    gain: Any = None,
    ties: str | None = None,
    empty: Any = None,
    convention: str | None = None,
) -> float:
    """Share of relevant rows (label above 0.5) among the first `at` places, or all
    where the group has fewer.
    """
    return _measure(
        "precision", y, prediction, weight, group, at, gain, ties, empty, convention
    )


def recall_at(
    y: Any,
    prediction: Any,
    weight: Any = None,
    *,
    group: Any,
    at: int | None = 10,
    gain: Any = None,
    ties: str | None = None,
    empty: Any = None,
    convention: str | None = None,
) -> float:
    """Share of a group's relevant rows (label above 0.5) that are among the first `at`
    places.
    """
    return _measure(
        "recall", y, prediction, weight, group, at, gain, ties, empty, convention
    )


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "ndcg": ndcg,
    "map": map_at,
    "mrr": mrr,
    "err": err,
    "precision_at": precision_at,
    "recall_at": recall_at,
}


def number_groups(group: Any, n_rows: int) -> NDArray[np.int32]:
    """Groups as numbers from 0, from names of every row or sizes of consecutive
    groups.
    """
    if group is None:
        raise DataError(
            "a metric of ranks needs groups; give group, the group of every row."
        )
    values = np.asarray(group)
    if values.ndim != 1 or len(values) > n_rows:
        raise DataError(
            f"group must have a name for each of {n_rows} rows, or sizes; got shape {values.shape}."
        )
    if len(values) == n_rows:
        return np.unique(values, return_inverse=True)[1].astype(np.int32)
    if (
        not np.issubdtype(values.dtype, np.integer)
        or (values < 0).any()
        or values.sum() != n_rows
    ):
        raise DataError(
            f"group has {len(values)} values for {n_rows} rows; sizes must be integers that add up to it."
        )
    return np.repeat(
        np.arange(len(values[values > 0]), dtype=np.int32), values[values > 0]
    )


def _measure(
    name: str,
    y: Any,
    prediction: Any,
    weight: Any,
    group: Any,
    at: int | None,
    gain: Any,
    ties: str | None,
    empty: Any,
    convention: str | None,
    top: float | None = None,
) -> float:
    """The mean of a measure over groups."""
    label, score = (np.ascontiguousarray(one, np.float64) for one in (y, prediction))
    if label.ndim != 1 or score.shape != label.shape:
        raise DataError(
            f"labels {label.shape} and scores {score.shape} must have one value for each row."
        )
    if not np.isfinite(score).all() or not np.isfinite(label).all():
        raise DataError("labels and scores must be finite numbers.")
    if convention is not None and convention not in CONVENTIONS:
        raise ParameterError(
            f"convention={convention!r} is unknown; {suggest(convention, CONVENTIONS)}"
        )
    rules = {"gain": "auto", "ties": "average", "empty": "skip"} | CONVENTIONS.get(
        convention or "", {}
    )
    rules |= {
        key: one
        for key, one in (("gain", gain), ("ties", ties), ("empty", empty))
        if one is not None
    }
    if isinstance(rules["empty"], dict):
        rules["empty"] = rules["empty"].get(name, 0)
    if rules["ties"] not in TIES:
        raise ParameterError(
            f"ties={rules['ties']!r} is unknown; {suggest(str(rules['ties']), TIES)}"
        )
    if rules["empty"] not in ("skip", 0, 1):
        raise ParameterError(f"empty={rules['empty']!r} is neither 'skip' nor 0 nor 1.")
    if at is not None:
        at = Integer(1).check(f"at={at!r}", at)
    if gain is not None and name not in GRADED:
        raise ParameterError(
            f"gain={gain!r} is for ndcg and err; {name} asks whether a label is above {RELEVANT:g}."
        )
    rules["gain"] = gain_type.check(f"gain={rules['gain']!r}", rules["gain"])
    numbers = number_groups(group, len(label))
    values = host.Groups(numbers).measure(
        name,
        _gain(name, label, rules["gain"], top),
        score,
        len(label) if at is None else at,
        rules["ties"],
    )
    share = np.ones(len(values))
    if weight is not None:
        whole = np.ascontiguousarray(weight, np.float64)
        if whole.shape != label.shape:
            raise DataError(
                f"weights {whole.shape} must have one value for each of {len(label)} rows."
            )
        share = _group_means(whole, numbers, len(values))
    is_empty = np.isnan(values)
    if rules["empty"] == "skip":
        share = np.where(is_empty, 0.0, share)
    values = np.where(
        is_empty, 0.0 if rules["empty"] == "skip" else float(rules["empty"]), values
    )
    total = host.exact_sum(share, None)
    if total == 0:
        raise DataError(
            f"no group has a relevant row, so {name} cannot be measured; check the labels and weights."
        )
    return host.exact_sum(values * share, None) / total


def _gain(name: str, label: Floats, rule: Any, top: float | None) -> Floats:
    """What a label is worth in a measure."""
    if label.min(initial=0.0) < 0:
        raise DataError(
            f"label {label.min():g} is below 0; the label of a ranking says how relevant a row is."
        )
    if name in ("map", "mrr", "precision", "recall"):
        return (label > RELEVANT).astype(np.float64)
    rule = gain_rule(rule, label)
    if name == "err":
        return satisfaction(label, rule, float(label.max()) if top is None else top)
    return np.ascontiguousarray(gains(label, rule))


def _group_means(weight: Floats, numbers: NDArray[np.int32], n_groups: int) -> Floats:
    """The mean weight of the rows of every group: of integers, so that the order of
    rows does not matter.
    """
    peak = float(weight.max(initial=0.0))
    if peak == 0:
        return np.zeros(n_groups)
    shift = 30 - int(np.frexp(peak)[1])
    whole = np.rint(np.ldexp(weight, shift)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    first = np.searchsorted(numbers[order], np.arange(n_groups))
    sums = np.add.reduceat(whole[order], first).astype(np.float64)
    return np.ldexp(sums, -shift) / np.bincount(numbers, minlength=n_groups)
