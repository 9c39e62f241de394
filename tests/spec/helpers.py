"""What the tests of the specification share: tables, labels and weights; the core's
verbs in a row; comparisons.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from sapwood import Booster, Dataset, _core
from sapwood.boost.round import growth
from spec import reference
from spec.reference.losses import OBJECTIVES as SHELF

Floats = NDArray[np.float64]
ARRAYS = (
    "column",
    "threshold",
    "missing_left",
    "left",
    "value",
    "gain",
    "cover",
    "count",
)


# ---- Rows ----------------------------------------------------------------------------


def table(rng: np.random.Generator, n: int) -> Floats:
    """Six columns: smooth, missing values, ties, zeros and a heavy tail, a constant,
    two values or missing.
    """
    return np.column_stack(
        [
            rng.normal(size=n),
            np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            rng.integers(0, 5, n),
            np.where(rng.random(n) < 0.6, 0.0, rng.standard_cauchy(n)),
            np.full(n, 7.5),
            rng.choice([-1.0, 1.0, np.nan], n),
        ]
    )


@st.composite
def few_values(draw: st.DrawFn) -> tuple[np.random.Generator, Floats]:
    """A generator, and three columns of so few distinct values, some missing, that each
    can have a bin of its own.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(1, 60)), (draw(st.integers(2, 120)), 3)) / 7
    return rng, np.where(
        rng.random(X.shape) < draw(st.sampled_from([0.0, 0.05, 0.5])), np.nan, X
    )


def labels(rng: np.random.Generator, X: Floats, objective: str) -> Floats:
    """Labels that suit an objective and depend on four of the columns, on one through
    its missing values.
    """
    signal = (
        X[:, 0]
        + np.isnan(X[:, 1])
        + 0.5 * X[:, 2]
        + np.clip(X[:, 3], -2, 2)
        + 0.3 * rng.normal(size=len(X))
    )
    allowed = SHELF[objective].labels
    if allowed == "a number of at least 0":
        return np.round(np.maximum(signal, 0), 1)  # zeros among them
    if allowed == "a number above 0":
        return np.exp(0.5 * signal)
    if allowed == "a number from 0 to 1":
        return np.clip(0.5 + 0.2 * signal, 0, 1)  # both ends among them
    if allowed == "a number":
        return signal
    n_classes = 2 if allowed == "0 or 1" else 3
    y = np.searchsorted(
        np.quantile(signal, np.arange(1, n_classes) / n_classes), signal
    ).astype(np.float64)
    y[:n_classes] = np.arange(n_classes)[: len(y)]
    return y


def weight_of(rng: np.random.Generator, kind: str, n: int) -> Floats | None:
    """No weights, integers from 0 to 3, or positive numbers over four orders of
    magnitude with a few zeros.
    """
    if kind == "none":
        return None
    whole = rng.integers(0, 4, n).astype(np.float64)
    w = (
        whole
        if kind == "whole"
        else np.where(rng.random(n) < 0.05, 0.0, np.exp(rng.normal(0, 2, n)))
    )
    w[:3] = w[:3] + 1  # at least one row, and every class, has a weight
    return w


def columns_of(X: Floats, counts: list[int]) -> list[NDArray[Any]]:
    """The table as the core takes it: category columns as int32, missing ones
    negative.
    """
    return [
        x if k == 0 else np.where(np.isnan(x), -1, x).astype(np.int32)
        for x, k in zip(X.T, counts, strict=True)
    ]


# ---- Two trainings -------------------------------------------------------------------


def core_train(
    X: Floats,
    y: Floats,
    params: dict[str, Any],
    weight: Floats | None = None,
    exact: bool = False,
    n_threads: int = 2,
    n_chunks: int = 1,
) -> tuple[list[Any], Floats, Floats]:
    """What `reference.train` does, by the core's verbs; the scores (n_outputs, n_rows)
    of the training rows too.
    """
    p = reference.DEFAULTS | {"n_categories": [0] * X.shape[1], "fuse": None} | params
    n_outputs = int(y.max()) + 1 if p["objective"] == "softmax" else 1
    bounds = np.linspace(0, len(X), n_chunks + 1).astype(int)
    numbers = not any(p["n_categories"])
    chunks = [
        X[a:b] if numbers else columns_of(X[a:b], p["n_categories"])
        for a, b in pairwise(bounds)
    ]
    bins = (_core.EVERY_VALUE, 1) if exact else (p["max_bins"], p["min_samples_bin"])
    cuts = _core.cuts(chunks, weight, *bins, n_threads)
    cuts = [
        cut if count == 0 else cut[:0]
        for cut, count in zip(cuts, p["n_categories"], strict=True)
    ]
    binned = _core.Binned(
        chunks, cuts, n_threads, exact, n_categories=p["n_categories"], fuse=p["fuse"]
    )
    trainer = _core.Trainer(
        binned, y[None], weight, p["objective"], {}, n_outputs, n_threads
    )
    base = trainer.start()
    trainer.fill_scores(base)
    if p["sampling"] != "uniform":
        fields = {
            "goss": ("top_rate", "other_rate"),
            "mvs": ("mvs_reg",),
            "bayesian": ("bagging_temperature",),
        }
        trainer.set_sampler(
            p["sampling"], {name: p[name] for name in fields[p["sampling"]]}
        )
    direction = p["monotone_constraints"] or []
    groups = p["interaction_constraints"] or []
    trainer.set_constraints(
        direction,
        p["monotone_method"] == "intermediate",
        groups,
        p["extra_trees"],
        [],
        [],
    )
    trainer.set_split_preference(
        p["score_function"] == "cosine",
        p["feature_weights"] or [],
        p["first_use_penalties"] or [],
        [],
    )
    n_live = len(X) if weight is None else int(np.count_nonzero(weight))
    policy, limits = growth.limits(p)
    limits["learning_rate"] = p["learning_rate"]
    trees = []
    for round in range(p["n_estimators"]):
        trainer.gradients(p["precision"])
        warm = p["sampling"] == "goss" and round < int(1 / p["learning_rate"])
        trainer.sample(p["seed"], round, None if warm else p["subsample"])
        luck = growth.random_strength(p, round, p["learning_rate"], n_live)
        trees += trainer.grow(policy, limits, p["seed"], round * n_outputs, luck)
        for output in range(n_outputs):
            trainer.add_scores(output)
    return trees, base, trainer.scores()


def assert_bits(actual: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Equal dtype, shape and bytes: 0.0 is not -0.0."""
    assert actual.dtype == expected.dtype, what
    if actual.tobytes() != expected.tobytes():
        raise AssertionError(f"{what}: core {actual!r}, reference {expected!r}")


def assert_same(
    X: Floats,
    y: Floats,
    params: dict[str, Any],
    weight: Floats | None = None,
    exact: bool = False,
) -> list[Any]:
    """The core's verbs and the reference agree on start scores, trees and raw scores;
    the trees.
    """
    trees, base, scores = core_train(X, y, params, weight, exact)
    limit = {"max_bins": 2**31 - 1} if exact else {}
    expected, expected_base = reference.train(X, y, params | limit, weight)
    assert_bits(base, expected_base, "start")
    for index, (tree, other) in enumerate(zip(trees, expected, strict=True)):
        assert set(tree) == set(other)
        for name in ("column", *other):  # the column first: it tells most
            assert_bits(np.asarray(tree[name]), other[name], f"tree {index}, {name}")
    assert_bits(
        scores.T.copy(), reference.predict_raw(expected, expected_base, X), "scores"
    )
    return trees


def assert_trees(booster: Booster, expected: list[Any], base: Floats) -> None:
    """A model has the start scores and the trees of the reference."""
    assert_bits(np.asarray(booster.base), base, "start")
    assert booster.trees.n_trees == len(expected)
    for index, tree in enumerate(expected):
        nodes = slice(booster.trees.offset[index], booster.trees.offset[index + 1])
        for name in ARRAYS:
            assert_bits(
                np.asarray(getattr(booster.trees, name)[nodes]),
                tree[name],
                f"tree {index}, {name}",
            )


def assert_same_model(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> Booster:
    """`sapwood.train` and the reference agree on start scores, trees and raw scores;
    the model.
    """
    small = {"max_depth": 3, "max_leaves": 7, "learning_rate": 0.3, "n_estimators": 2}
    params = reference.DEFAULTS | small | params
    expected, base = reference.train(X, y, params, weight)
    booster = sapwood.train(
        params, Dataset(X, y, weight, max_bins=params["max_bins"], min_samples_bin=1)
    )
    assert_trees(booster, expected, base)
    raw = reference.predict_raw(expected, base, X)
    assert_bits(booster.predict(X, raw=True).reshape(raw.shape), raw, "raw scores")
    return booster


# ---- Two models ----------------------------------------------------------------------


def assert_equal(a: Booster, b: Booster) -> None:
    """Two models of the same trees."""
    for name in ARRAYS:
        assert_bits(getattr(a.trees, name), getattr(b.trees, name), name)


def assert_like_histograms(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> Booster:
    """Exact trees equal histogram trees with a bin for every value; the former, for
    further questions.
    """
    exact = sapwood.train(
        params, Dataset(X, label=y, weight=weight, tree_method="exact")
    )
    assert_equal(
        exact, sapwood.train(params, Dataset(X, label=y, weight=weight, max_bins=65535))
    )
    return exact


def along(booster: Booster, X: Floats, column: int) -> Floats:
    """Raw scores (n_rows, n_steps, n_outputs) of rows while one column goes through
    every value a tree can tell.
    """
    cuts = np.unique(booster.trees.threshold[booster.trees.column == column])
    values = np.unique(
        np.concatenate([[-1e9], cuts[np.isfinite(cuts)], np.linspace(-3, 3, 40), [1e9]])
    )
    grid = np.repeat(X[:, None], len(values), axis=1)
    grid[:, :, column] = values
    return booster.predict(grid.reshape(-1, X.shape[1]), raw=True).reshape(
        len(X), len(values), -1
    )
