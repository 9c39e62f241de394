"""Pruning by gain: a tree by hand, what stays, and what it costs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from cover import examples
from sapwood import Dataset
from sapwood.boost.leaves import prune
from unit.model.handmade import grown, leaf, split


def tree() -> Any:
    """0 (gain 1) -> 1 (gain 3) -> leaves 3, 4; 2 (gain 2) -> leaf 5, 6 (gain 1) ->
    leaves 7, 8.
    """
    return grown(
        split(0, 0.0, 1, 1.0, 8.0),
        split(1, 0.0, 3, 3.0, 4.0),
        split(1, 1.0, 5, 2.0, 4.0),
        leaf(1.0),
        leaf(2.0),
        leaf(3.0),
        split(2, 0.0, 7, 1.0, 2.0),
        leaf(4.0),
        leaf(5.0),
    )


@pytest.mark.parametrize(
    ("least", "gone"),
    [
        (0.5, []),
        (1.0, []),  # a gain that is just the least stays, as in XGBoost
        (1.5, [6]),  # the root gains less, but has a child that pays for it
        (2.5, [2, 6]),
        (3.5, [0, 1, 2, 6]),
    ],
)
def test_by_hand(least: float, gone: list[int]) -> None:
    assert np.flatnonzero(prune.by_gain(tree(), least)).tolist() == gone


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10**6),
    least=st.floats(0.01, 5.0),
    policy=st.sampled_from(["depthwise", "leafwise", "symmetric"]),
    objective=st.sampled_from(["squared_error", "logistic"]),
)
def test_what_stays_is_worth_it_and_pruning_costs(
    seed: int, least: float, policy: str, objective: str
) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=120),
            rng.integers(0, 4, 120),
            np.where(rng.random(120) < 0.2, np.nan, 1.0),
        ]
    )
    y = (X[:, 0] * X[:, 1] + rng.normal(size=120) > 0).astype(float)
    data = Dataset(X, label=y)
    params = {
        "grow_policy": policy,
        "max_depth": 5,
        "reg_lambda": 0.0,
        "objective": objective,
        "path_smooth": 0.0,
    }
    params |= {
        "n_estimators": 1,
        "learning_rate": 1.0,
        "min_child_weight": 0.0,
        "precision": "wide",
    }
    whole, pruned = (
        sapwood.train({**params, "pruning": "post", "min_split_gain": x}, data)
        for x in (0.0, least)
    )
    trees = pruned.trees
    for node in np.flatnonzero(trees.left):
        if not trees.left[trees.left[node]] and not trees.left[trees.left[node] + 1]:
            assert trees.gain[node] >= least
    # Every split that goes is one of the whole tree: rows that parted stay together,
    # never the other way round.
    pairs = {
        (a, b)
        for a, b in zip(
            whole.predict_leaves(X)[:, 0], pruned.predict_leaves(X)[:, 0], strict=True
        )
    }
    assert len(pairs) == len(np.unique(whole.predict_leaves(X)))
    if objective == "squared_error":
        losses = [np.mean((model.predict(X) - y) ** 2) for model in (whole, pruned)]
        assert losses[0] <= losses[1] * (1 + 1e-9)  # fixed point: 30 bits


def test_a_loss_survives_where_a_child_pays() -> None:
    """Exclusive or: the first split gains nothing much, the second everything. Growth
    that asks at once ends there.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 2)).astype(float)
    y = np.where(X[:, 0] == X[:, 1], 1.0, 0.0) + 0.01 * X[:, 0]
    params = {
        "n_estimators": 1,
        "max_depth": 2,
        "max_leaves": None,
        "min_split_gain": 5.0,
        "reg_lambda": 0.0,
    }
    before, after = (
        sapwood.train({**params, "pruning": kind}, Dataset(X, label=y))
        for kind in ("pre", "post")
    )
    assert before.trees.n_nodes == 1
    assert after.trees.n_nodes == 7
    assert after.trees.gain[0] < 5.0 < after.trees.gain[1]
