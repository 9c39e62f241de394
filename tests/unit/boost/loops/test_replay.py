"""Replay: splits stay, leaves get the values of the training's rows."""

import dataclasses

import numpy as np
import pytest

import sapwood as sw
from sapwood.boost.loops.replay import replay
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import Session
from sapwood.boost.spec import make_spec

RNG = np.random.default_rng(7)
N = 900
X = np.column_stack([RNG.normal(size=(N, 4)), RNG.integers(0, 12, N)])
X[RNG.random(N) < 0.1, 1] = np.nan
SCORE = (
    X[:, 0] * X[:, 2] + np.where(X[:, 4] > 6, 1.0, -0.5) + RNG.normal(scale=0.3, size=N)
)
LABELS = {
    "squared_error": SCORE,
    "logistic": (SCORE > 0).astype(float),
    "poisson": RNG.poisson(np.exp(0.4 * SCORE)).astype(float),
    "softmax": np.digitize(SCORE, [-0.5, 0.8]).astype(float),
    "absolute_error": SCORE,
}
KINDS: dict[str, dict] = {
    "leafwise": {},
    "symmetric": {"grow_policy": "symmetric", "max_depth": 4},
    "smoothed": {"path_smooth": 30.0, "reg_alpha": 0.5, "max_delta_step": 0.3},
    "categories": {"categorical_features": [4], "max_cat_to_onehot": 2},
    "weights": {"weight": RNG.integers(0, 4, N).astype(float)},
    "real weights": {"weight": RNG.random(N)},
    "linear": {"linear_leaves": True},
    "standard": {"linear_leaves": True, "linear_units": "standard"},
    "shared splits": {
        "multi_strategy": "multi_output_tree",
        "grow_policy": "symmetric",
        "max_depth": 3,
    },
}


def replayed(params, data, trees, n_threads=1):
    spec = make_spec({**params, "n_jobs": n_threads}, data, None, watched=False)
    store = TreeStore(spec.n_outputs)
    for step in replay(Session(spec, data).training(), trees):
        store.add(step)
    return store.trees(store.n_rounds)


def make(kind, objective):
    params = {
        "objective": objective,
        "n_estimators": 6,
        "max_leaves": 12,
        "n_jobs": 1,
        **KINDS[kind],
    }
    bins = {
        name: params.pop(name)
        for name in ("categorical_features", "weight")
        if name in params
    }
    if "max_depth" in params:
        params.pop("max_leaves")
    data = sw.Dataset(
        X, LABELS[objective], linear_leaves="linear_leaves" in params, n_jobs=1, **bins
    )
    return params, data


CASES = [
    (kind, objective)
    for kind in KINDS
    for objective in LABELS
    # one output has nothing to share
    if (kind != "shared splits" or objective == "softmax")
    # its leaves are medians
    and (
        objective != "absolute_error" or kind not in ("linear", "standard", "smoothed")
    )
]


@pytest.mark.parametrize(("kind", "objective"), CASES)
def test_on_the_rows_of_growth_every_bit_comes_back(kind, objective):
    """Growth and replay sum the same integers, and make the same values of them."""
    params, data = make(kind, objective)
    trees = sw.train(params, data).trees
    again = replayed(params, data, trees)
    for name in ("value", "cover", "count", "gain", "threshold", "left"):
        np.testing.assert_array_equal(
            getattr(again, name), getattr(trees, name), err_msg=name
        )
    if trees.linear is not None:
        np.testing.assert_array_equal(
            again.linear.linear_coef, trees.linear.linear_coef
        )


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_threads_do_not_matter(n_threads):
    params, data = make("categories", "logistic")
    trees = sw.train({**params, "subsample": 0.5}, data).trees
    one = replayed(params, data, trees)
    many = replayed(params, data, trees, n_threads)
    np.testing.assert_array_equal(one.value, many.value)


@pytest.mark.parametrize("weights", [None, "zero and one", "integers", "real"])
def test_many_outputs_with_linear_leaves(weights):
    """Ten outputs, and leaves of more rows than a task has: the same bits on any
    threads, and in a replay.
    """
    rng = np.random.default_rng(3)
    n = 20_000
    table = rng.normal(size=(n, 4))
    label = np.minimum(
        np.digitize(table[:, 0] + table[:, 1] * table[:, 2], np.linspace(-2, 2, 9)), 9
    ).astype(float)
    drawn = {
        "zero and one": rng.integers(0, 2, n),
        "integers": rng.integers(0, 4, n),
        "real": rng.random(n),
    }
    data = sw.Dataset(
        table, label, weight=drawn.get(weights), linear_leaves=True, n_jobs=1
    )
    params = {
        "objective": "softmax",
        "grow_policy": "symmetric",
        "max_depth": 2,
        "n_estimators": 3,
    }
    params |= {
        "multi_strategy": "multi_output_tree",
        "sketch_outputs": 3,
        "min_child_weight": 0.0,
    }
    params |= {"linear_leaves": True, "linear_units": "standard"}
    one, *others = (
        sw.train({**params, "n_jobs": n_jobs}, data).trees for n_jobs in (1, 2, 3, 7)
    )
    again = replayed(params, data, one, 3)
    for other in (*others, again):
        for name in ("value", "cover", "count", "gain"):
            np.testing.assert_array_equal(
                getattr(other, name), getattr(one, name), err_msg=name
            )
        np.testing.assert_array_equal(other.linear.linear_coef, one.linear.linear_coef)


def test_values_are_those_of_the_new_rows():
    """By hand: one split, squared error, no penalty; a leaf's value is the mean of what
    its rows lack, shrunk.
    """
    params = {
        "n_estimators": 1,
        "max_leaves": 2,
        "reg_lambda": 0.0,
        "path_smooth": 0.0,
        "learning_rate": 0.5,
    }
    params |= {"min_samples_leaf": 1, "min_child_weight": 0.0}
    first = sw.Dataset(np.arange(8.0)[:, None], np.repeat([0.0, 1.0], 4))
    trees = sw.train(params, first).trees
    label = np.array([3.0, 1, 1, 3, 10, 10, 14, 14])
    second = sw.Dataset(np.arange(8.0)[:, None], label, reference=first)
    value = replayed(params, second, trees).value
    np.testing.assert_allclose(
        value[1:], 0.5 * (np.array([2.0, 12.0]) - label.mean()), rtol=1e-6
    )


def test_a_monotone_model_stays_monotone():
    params, data = make("leafwise", "squared_error")
    params |= {"monotone_constraints": [1, 0, 0, 0, 0]}
    trees = sw.train(params, data).trees
    other = sw.Dataset(X, -LABELS["squared_error"], reference=data)
    booster = sw.train(params, data)
    table = np.repeat(X[:1], 50, axis=0)
    table[:, 0] = np.linspace(-3, 3, 50)
    again = dataclasses.replace(booster, trees=replayed(params, other, trees))
    assert (np.diff(again.predict(table, raw=True)) >= 0).all()
