"""What every objective on the shelf must keep: the registered ones, at their default
fields and at others.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import math
from sapwood.device import host
from sapwood.errors import DataError, ParameterError

Floats = NDArray[np.float64]

SHELF = host.objectives()
# around a minimum, near and far
STEPS = np.concatenate([[10.0**e, -(10.0**e)] for e in np.arange(-7, 1.5, 0.25)])


class Case(NamedTuple):
    """An objective and values for its fields."""

    name: str
    fields: dict[str, float]

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{value:g}" for value in self.fields.values())])

    @property
    def about(self) -> dict[str, Any]:
        return SHELF[self.name]


def cases() -> list[Case]:
    """Every objective with its default fields, and where it has some, with fields
    half-way to their lower limits.
    """
    found = []
    for name, about in SHELF.items():
        defaults = {
            field: default for field, (_, _, _, default, _) in about["fields"].items()
        }
        lower = {
            field: 0.5 * (low + default)
            for field, (low, _, _, default, _) in about["fields"].items()
        }
        found += [Case(name, defaults)] + [Case(name, lower)] * bool(lower)
    return found


every_case = pytest.mark.parametrize("case", cases(), ids=str)


@cache
def table(n: int) -> Floats:
    return np.random.default_rng(30).normal(size=(n, 3))


@cache
def labels(allowed: str, n: int) -> Floats:
    """Labels of a kind, noisy enough that every leaf of some size has labels of both
    sides.
    """
    rng = np.random.default_rng(31)
    signal = table(n)[:, 0] + 0.5 * table(n)[:, 1] ** 2 + rng.normal(size=n)
    return {
        "a number": 3 * signal,
        "a number of at least 0": np.floor(np.maximum(2 * signal, 0)),
        "a number above 0": np.exp(0.7 * signal),
        "a number from 0 to 1": np.clip(0.5 + 0.2 * signal, 0, 1),
        "0 or 1": (signal > 0.5).astype(np.float64),
        "a class index": np.digitize(signal, [0.0, 1.0]).astype(np.float64),
    }[allowed]


def rows(case: Case, n: int = 300) -> tuple[Floats, Floats]:
    return table(n), labels(case.about["labels"], n)


def evaluate(case: Case, score: Floats, label: Floats) -> tuple[Floats, Floats, Floats]:
    return host.evaluate(case.name, case.fields, score, label)


def fit(
    case: Case, X: Floats, y: Floats, weight: Floats | None = None, **params: Any
) -> sapwood.Booster:
    params = {"objective": case.name, "n_estimators": 1, **case.fields, **params}
    return sapwood.train(params, sapwood.Dataset(X, label=y, weight=weight))


def losses(case: Case, score: Floats, y: Floats) -> Floats:
    """Of every row, at scores (n_outputs, n_rows); what adapts its own loss is judged
    by the absolute error.
    """
    if case.about["adaptive"]:
        return np.abs(score[0] - y)
    if not case.about["pointwise"]:  # softmax
        top = score.max(axis=0)
        return (
            top
            + np.log(np.exp(score - top).sum(axis=0))
            - np.take_along_axis(score, y[None].astype(int), 0)[0]
        )
    label = (
        np.array([y == k for k in range(len(score))], np.float64)
        if case.about["labels"] == "a class index"
        else [y]
    )
    return np.sum(
        [evaluate(case, s, one)[0] for s, one in zip(score, label, strict=True)], axis=0
    )


def assert_minimum(
    case: Case, score: Floats, output: int, y: Floats, weight: Floats
) -> None:
    """No step of one output, the same for all rows, lowers the loss by more than its
    rounding.
    """
    here = (weight * losses(case, score, y)).sum()
    for step in STEPS:
        there = score.copy()
        there[output] += step
        assert (weight * losses(case, there, y)).sum() >= here - 1e-13 * abs(here), step


def pointwise_labels(case: Case) -> Floats:
    """Labels of single outputs: those of a class index are whether it is the class."""
    y = rows(case)[1]
    return (y == 1).astype(np.float64) if case.about["labels"] == "a class index" else y


# ---- Derivatives ---------------------------------------------------------------------


@every_case
def test_derivatives(case: Case) -> None:
    """Central differences. Their error: eps |loss| / step + step^2 times a third
    derivative, of the size of h.
    """
    y = pointwise_labels(case)
    step = 2.0**-16
    s = np.random.default_rng(32).normal(size=len(y)) * 2
    ahead, behind, (loss, g, h) = (
        evaluate(case, s + step, y),
        evaluate(case, s - step, y),
        evaluate(case, s, y),
    )
    slope = (ahead[0] - behind[0]) / (2 * step)
    bend = (ahead[1] - behind[1]) / (2 * step)
    smooth = np.abs(bend) < 100 * (1 + h)  # no kink between: there the gradient leaps
    assert smooth.mean() > 0.98
    room = 1e-8 * (1 + np.abs(loss) + np.abs(g) + h)[smooth]
    assert np.all(np.abs(slope - g)[smooth] <= room)
    assert np.all((bend - h)[smooth] <= room)
    assert case.about["hessian_is_bound"] or np.all((h - bend)[smooth] <= room)
    assert np.all(h > 0)


@every_case
def test_far_scores_have_numbers(case: Case) -> None:
    y = pointwise_labels(case)
    for far in (-700.0, 700.0):
        for values in evaluate(case, np.full(len(y), far), y):
            assert np.isfinite(values).all()


def test_softmax_gradients() -> None:
    """One row grows no split, and its leaf by gradient steps is -g, to 30 bits; all
    classes have a tree.
    """
    score = [0.3, -1.2, 0.9]
    step = 1e-5
    case = Case("softmax", {})
    for label in range(3):
        X = np.zeros((1, 1))
        y = np.array([float(label)])
        params = {
            "start": score,
            "n_classes": 3,
            "learning_rate": 1.0,
            "reg_lambda": 0.0,
        }
        g = -fit(case, X, y, leaf_estimation="gradient", **params).trees.value
        h = g / -fit(case, X, y, path_smooth=0.0, **params).trees.value
        for k in range(3):
            ahead = np.array([score]).T
            behind = np.array([score]).T
            ahead[k] += step
            behind[k] -= step
            slope = (losses(case, ahead, y) - losses(case, behind, y)) / (2 * step)
            assert g[k] == pytest.approx(slope[0], abs=1e-8)
        p = np.exp(score) / np.exp(score).sum()
        # K / (K - 1) of the second derivative
        assert h == pytest.approx(1.5 * p * (1 - p), rel=1e-8)


@every_case
def test_the_perfect_prediction_is_the_minimum(case: Case) -> None:
    """The loss falls towards the score whose prediction is the label; of a class, that
    is far off on its side.
    """
    y = pointwise_labels(case)
    about = case.about
    if about["labels"] in ("0 or 1", "a class index"):
        g = evaluate(case, np.random.default_rng(33).normal(size=len(y)), y)[1]
        assert np.all(g * (2 * y - 1) <= 0)
        return
    inside = (
        (y > 0) & (y < 1)
        if about["link"] == "sigmoid"
        else y > 0
        if about["link"] == "exp"
        else np.isfinite(y)
    )
    y = y[inside]
    s = INVERSE[about["link"]](y[:, None])[:, 0]
    assert np.all(evaluate(case, s - 1e-6, y)[1] < 0)
    assert np.all(evaluate(case, s + 1e-6, y)[1] > 0)


# ---- Minima --------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_minimises(case: Case, weighted: bool) -> None:
    X, y = rows(case)
    weight = (
        np.random.default_rng(34).exponential(size=len(y))
        if weighted
        else np.ones(len(y))
    )
    base = fit(case, X, y, weight if weighted else None).base
    for output in range(len(base)):
        assert_minimum(
            case, np.repeat(base[:, None], len(y), axis=1), output, y, weight
        )


@every_case
@pytest.mark.parametrize("weighted", [False, True])
def test_the_exact_leaf_minimises(case: Case, weighted: bool) -> None:
    X, y = rows(case)
    weight = (
        np.random.default_rng(35).exponential(size=len(y))
        if weighted
        else np.ones(len(y))
    )
    params = {
        "max_depth": 2,
        "min_samples_leaf": 25,
        "learning_rate": 1.0,
        "reg_lambda": 0.0,
        "path_smooth": 0.0,
    }
    model = fit(
        case, X, y, weight if weighted else None, leaf_estimation="exact", **params
    )
    leaf = model.predict_leaves(X)
    base = model.base
    assert model.trees.n_nodes > model.trees.n_trees
    for output, (first, node) in enumerate(
        zip(model.trees.offset[:-1], leaf.T, strict=True)
    ):
        for number in np.unique(node):
            inside = node == number
            score = np.repeat(base[:, None], len(y), axis=1)
            value = model.trees.value[first + number]
            if case.about["knots"] and case.about["steps"]:
                assert_friedman(case, value, y - base[0], inside, weight)
                continue
            score[output] += value
            assert_minimum(case, score[:, inside], output, y[inside], weight[inside])


def assert_friedman(
    case: Case,
    value: float,
    residual: Floats,
    inside: NDArray[np.bool_],
    weight: Floats,
) -> None:
    """Huber's leaf (Friedman 1999, section 4.4): the median, and from there the mean of
    what is cut at delta.
    """
    level = next(iter(case.fields.values()))
    delta = (
        lower_quantile(np.abs(residual), weight, level)
        if case.about["adaptive"]
        else level
    )
    residual = residual[inside]
    weight = weight[inside]
    median = lower_quantile(residual, weight, 0.5)
    step = np.average(np.clip(residual - median, -delta, delta), weights=weight)
    assert value == pytest.approx(median + step, rel=1e-12)


def lower_quantile(x: Floats, weight: Floats, level: float) -> float:
    """The smallest x up to which at least this share of the weight lies."""
    order = np.argsort(x)
    below = np.cumsum(weight[order])
    return float(x[order][np.searchsorted(below, level * below[-1])])


@every_case
def test_the_loss_falls(case: Case) -> None:
    X, y = rows(case)
    model = fit(case, X, y, n_estimators=12, max_leaves=8)
    stages = [
        np.broadcast_to(model.base, (len(y), model.n_outputs)),
        *model.staged_predict(X, raw=True),
    ]
    sums = [
        losses(case, score.reshape(len(y), -1).T.copy(), y).sum() for score in stages
    ]
    assert np.all(np.diff(sums) < 0)


# ---- Weights, threads ----------------------------------------------------------------

LEAVES = ["auto", "exact"]


@every_case
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_weight_is_repetition(case: Case, leaf: str) -> None:
    X, y = rows(case)
    weight = np.random.default_rng(36).integers(0, 4, len(y))
    params = {
        "leaf_estimation": leaf,
        "line_search": "tree",
        "n_estimators": 3,
        "max_leaves": 8,
    }
    weighted = fit(case, X, y, weight.astype(np.float64), **params)
    repeated = fit(case, np.repeat(X, weight, axis=0), np.repeat(y, weight), **params)
    assert weighted.base.tobytes() == repeated.base.tobytes()
    assert all(
        np.array_equal(a, b)
        for a, b in zip(arrays(weighted), arrays(repeated), strict=True)
    )


@every_case
@pytest.mark.parametrize("leaf", LEAVES)
def test_only_ratios_of_weights_count(case: Case, leaf: str) -> None:
    """Without penalties; a power of two changes no rounding."""
    X, y = rows(case)
    weight = np.random.default_rng(37).exponential(size=len(y))
    params = {
        "leaf_estimation": leaf,
        "reg_lambda": 0.0,
        "min_child_weight": 0.0,
        "path_smooth": 0.0,
        "max_leaves": 8,
    }
    params["min_samples_leaf"] = 1  # a count is no ratio
    one, four = (fit(case, X, y, factor * weight, **params) for factor in (1.0, 4.0))
    assert one.base.tobytes() == four.base.tobytes()
    assert one.predict(X, raw=True).tobytes() == four.predict(X, raw=True).tobytes()


def arrays(model: sapwood.Booster) -> list[NDArray[Any]]:
    names = (
        "column",
        "threshold",
        "missing_left",
        "left",
        "value",
        "gain",
        "cover",
        "count",
    )
    return [getattr(model.trees, name) for name in names]


@cache
def many_rows(allowed: str) -> sapwood.Dataset:
    """Three tasks of 16,384 rows, so that threads have some to share."""
    return sapwood.Dataset(table(40_000), label=labels(allowed, 40_000))


@every_case
def test_threads_change_no_byte(case: Case) -> None:
    params = {
        "objective": case.name,
        **case.fields,
        "n_estimators": 2,
        "max_leaves": 8,
        "subsample": 0.7,
    }
    # order statistics; the others have sums
    knots = {"leaf_estimation": "exact", "line_search": "tree"}
    params |= (
        knots
        if case.about["knots"]
        else {"leaf_estimation": "newton", "leaf_iterations": 3}
    )
    data = many_rows(case.about["labels"])
    assert (
        len(
            {
                sapwood.train(params | {"n_jobs": n_jobs}, data).to_bytes()
                for n_jobs in (1, 2, 3, 7)
            }
        )
        == 1
    )


# ---- Labels, links, fields -----------------------------------------------------------

WRONG = {
    "a number": [np.inf, np.nan, -1e200],
    "a number of at least 0": [-0.5, np.nan, 1e200],
    "a number above 0": [0.0, -1.0],
    "a number from 0 to 1": [-1e-9, 1.5, np.nan],
    "0 or 1": [0.5, 2.0, -1.0],
    "a class index": [1.5, -1.0, np.inf],
}


@pytest.mark.parametrize("name", SHELF)
def test_a_wrong_label_is_named_with_its_row(name: str) -> None:
    case = Case(name, {})
    X, y = rows(case, 40)
    for wrong in WRONG[case.about["labels"]]:
        bad = y.copy()
        bad[7] = wrong
        with pytest.raises(DataError, match="row 7"):
            fit(case, X, bad)


INVERSE = {
    "identity": lambda p: p,
    "sigmoid": lambda p: math.log(p / (1 - p)),
    "sigmoid2": lambda p: 0.5 * math.log(p / (1 - p)),
    "exp": math.log,
    "expm1": math.log1p,
    "softmax": lambda p: math.log(p / p[:, :1]),  # up to a constant of the row
}


@pytest.mark.parametrize("name", SHELF)
def test_the_link_has_an_inverse(name: str) -> None:
    link = SHELF[name]["link"]
    raw = np.random.default_rng(38).normal(size=(50, 3))
    raw[:, 0] = 0.0 if link == "softmax" else raw[:, 0]
    p = host.link(link, raw)
    if link == "step":
        assert np.array_equal(p, raw > 0)
    elif link == "one_vs_all":
        each = host.link("sigmoid", raw)
        assert p == pytest.approx(each / each.sum(axis=1, keepdims=True), rel=1e-15)
    else:
        assert INVERSE[link](p) == pytest.approx(raw, rel=1e-13, abs=1e-15)


@every_case
def test_predictions_are_what_the_labels_are(case: Case) -> None:
    """After the link, predictions lie in the range of the labels; of classes they are
    classes or probabilities.
    """
    X, y = rows(case)
    p = fit(case, X, y, n_estimators=5).predict(X)
    low, high = {
        "identity": (-np.inf, np.inf),
        "exp": (0, np.inf),
        "expm1": (-1, np.inf),
    }.get(case.about["link"], (0, 1))
    assert np.all((p >= low) & (p <= high))
    if case.about["labels"] == "a class index":
        assert p.shape == (len(y), 3)
        assert p.sum(axis=1) == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize("case", [case for case in cases() if case.fields], ids=str)
def test_fields_have_limits(case: Case) -> None:
    X, y = rows(case, 40)
    for field, (low, high, is_open, _, _) in case.about["fields"].items():
        outside = [low, high] if is_open else [low - 1, high + 1]
        for value in [*outside, np.nan, "much"]:
            with pytest.raises(ParameterError, match=field):
                fit(case, X, y, **{field: value})


@pytest.mark.parametrize("name", SHELF)
def test_the_shelf_speaks(name: str) -> None:
    about = SHELF[name]
    assert (
        about["doc"]
        and about["labels"] in WRONG
        and about["leaf"] in ("newton", "exact", "friedman")
    )
    assert about["leaf"] != "newton" if about["knots"] else about["steps"] > 0
