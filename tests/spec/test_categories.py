"""Category splits against the executable specification: every array of every tree, bit
for bit.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import _core
from sapwood.boost.round import growth
from spec import reference
from spec.cases import OBJECTIVES, POLICIES, WEIGHTS
from spec.category_tables import (
    BESIDE,
    BYTES,
    COUNTS,
    LIGHT,
    assert_same,
    labels,
    n_sets,
    table,
)
from spec.helpers import assert_bits, core_train, weight_of

Floats = NDArray[np.float64]


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("policy", POLICIES)
def test_trees(policy: str, objective: str, weights: str) -> None:
    rng = np.random.default_rng(40)
    X = table(rng, 200)
    y = labels(rng, X, objective)
    w = weight_of(rng, weights, 200)
    precision = "wide" if weights == "whole" else "narrow"
    trees = assert_same(
        X, y, {"grow_policy": policy, "objective": objective, "precision": precision}, w
    )
    assert n_sets(trees) >= len(trees)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "limit",
    [
        {"max_cat_to_onehot": 1},
        {"max_cat_to_onehot": 50},
        {"max_cat_threshold": 1},
        {"max_cat_threshold": 3},
        {"cat_smooth": 0.0},
        {"cat_smooth": 25.0},
        {"cat_l2": 0.0},
        {"min_data_per_group": 40},
        {"min_samples_leaf": 17},
        {"min_child_weight": 9.0},
        {"min_samples_leaf": 30, "min_data_per_group": 1},
        {"min_split_gain": 1.5},
        {"reg_alpha": 1.5},
        {"max_delta_step": 0.2},
        {"path_smooth": 7.0},
        {"max_leaves": 70, "max_depth": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("policy", POLICIES)
def test_limits(policy: str, limit: dict[str, Any]) -> None:
    rng = np.random.default_rng(41)
    X = table(rng, 200)
    objective, weights = BESIDE[policy]
    if policy == "symmetric" and limit.get("max_depth", 4) is None:
        limit = limit | {"max_depth": 6}
    params = limit | {"grow_policy": policy, "objective": objective}
    assert_same(X, labels(rng, X, objective), params, weight_of(rng, weights, 200))


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("policy", POLICIES)
def test_missing(policy: str, missing: float) -> None:
    rng = np.random.default_rng(42)
    X = table(rng, 300, missing)
    trees = assert_same(X, labels(rng, X, "squared_error"), {"grow_policy": policy})
    sides = np.concatenate([tree["missing_left"][tree["set"] >= 0] for tree in trees])
    assert set(sides.tolist()) == {0, 1}


RULES: list[dict[str, Any]] = [
    {"monotone_constraints": [1, 0, 0, 0, -1, 0]},
    {"monotone_constraints": [1, 0, 0, 0, -1, 0], "monotone_method": "intermediate"},
    {"interaction_constraints": [[0, 1, 2], [2, 3, 4, 5]]},
    {"extra_trees": True},
    {"extra_trees": True, "monotone_constraints": [-1, 0, 0, 0, 1, 0]},
    {"colsample_bytree": 0.7, "colsample_bylevel": 0.8, "colsample_bynode": 0.7},
    {"subsample": 0.6},
    {"sampling": "goss", "learning_rate": 1.0},
    {"sampling": "mvs", "subsample": 0.5, "mvs_reg": 0.3},
    {"sampling": "bayesian"},
]


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_rules_and_samples(policy: str, rule: dict[str, Any]) -> None:
    if (
        policy == "symmetric"
        and "monotone_constraints" in rule
        and "monotone_method" not in rule
    ):
        pytest.skip("leaves without rows get their values in boost/order.py")
    rng = np.random.default_rng(43)
    X = table(rng, 200)
    objective, weights = BESIDE[policy]
    params = {"grow_policy": policy, "objective": objective} | rule
    assert_same(X, labels(rng, X, objective), params, weight_of(rng, weights, 200))


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "change",
    [
        {"monotone_constraints": [1, 0, 0, 0, -1, 0]},
        {"ccp_alpha": 0.02},
        {"leaf_iterations": 3},
        {"line_search": "tree"},
        {"hessian": "none"},
        {"leaf_estimation": "gradient"},
        {
            "monotone_constraints": [1, 0, 0, 0, -1, 0],
            "monotone_method": "intermediate",
            "extra_trees": True,
        },
    ],
    ids=str,
)
@pytest.mark.parametrize("policy", POLICIES)
def test_whole_models(policy: str, change: dict[str, Any]) -> None:
    """By `sapwood.train`: what comes after growth knows sets too."""
    rng = np.random.default_rng(47)
    X = table(rng, 200)
    y = labels(rng, X, "logistic")
    counts = list(COUNTS)
    # codes are ranks, the most frequent category first
    for column in np.flatnonzero(COUNTS):
        values, inverse, count = np.unique(
            X[:, column], return_inverse=True, return_counts=True
        )
        there = ~np.isnan(values)
        rank = np.full(len(values), np.nan)
        rank[np.lexsort((values, -count, ~there))[: there.sum()]] = np.arange(
            there.sum()
        )
        X[:, column], counts[column] = rank[inverse], int(there.sum())
    params = (
        reference.DEFAULTS
        | LIGHT
        | {"objective": "logistic", "grow_policy": policy, "n_estimators": 3}
        | change
    )
    expected, base = reference.train(X, y, params | {"n_categories": counts})
    data = sapwood.Dataset(
        X, y, categorical_features=np.flatnonzero(COUNTS).tolist(), min_samples_bin=1
    )
    booster = sapwood.train(params | {"category_encoding": "partition"}, data)
    assert_bits(booster.base, base, "start")
    for index, tree in enumerate(expected):
        own = booster.trees.slice(index, index + 1)
        for name in (
            "column",
            "threshold",
            "missing_left",
            "left",
            "value",
            "gain",
            "cover",
            "count",
        ):
            assert_bits(getattr(own, name), tree[name], f"tree {index}, {name}")
        for node in np.flatnonzero(tree["column"] >= 0):
            assert (own.set[node] < 0) == (tree["set"][node] < 0)
            if own.set[node] >= 0:
                sets = [
                    arrays["set_code"][
                        slice(*arrays["set_offset"][arrays["set"][node] :][:2])
                    ]
                    for arrays in (vars(own), tree)
                ]
                assert_bits(sets[0], sets[1], f"tree {index}, set of node {node}")
    raw = reference.predict_raw(expected, base, X)
    assert_bits(booster.predict(X, raw=True), raw[:, 0].copy(), "raw scores")


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_instruction_set(isa: str, policy: str) -> None:
    rng = np.random.default_rng(44)
    limits: list[dict[str, Any]] = [
        {
            "objective": "logistic",
            "min_samples_leaf": 9,
            "n_categories": BYTES,
            "fuse": True,
        },
        {"reg_alpha": 0.5, "n_categories": COUNTS},
    ]
    for limit in limits:
        X = table(rng, 600, counts=limit["n_categories"])  # more than a block
        y = labels(rng, X, limit.get("objective", "squared_error"))
        assert_same(X, y, limit | {"grow_policy": policy, "n_estimators": 1})


@pytest.mark.pairwise
@pytest.mark.parametrize(
    ("weights", "counts"),
    [("none", BYTES), ("none", COUNTS), ("whole", BYTES), ("real", COUNTS)],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_law(isa: str, policy: str, weights: str, counts: list[int]) -> None:
    """Threads, chunks, and columns that share slots or not: one model."""
    rng = np.random.default_rng(45)
    X = table(rng, 6000, counts=counts)
    y = labels(rng, X, "logistic")
    w = weight_of(rng, weights, 6000)
    params = {
        "objective": "logistic",
        "grow_policy": policy,
        "max_depth": 6,
        "max_leaves": 40,
        "n_estimators": 3,
    }
    seen = set()
    for n_threads, n_chunks, fuse in (
        (1, 1, False),
        (2, 3, True),
        (3, 1, True),
        (7, 5, True),
    ):
        shape = {"n_categories": counts, "fuse": fuse}
        trees, _, scores = core_train(
            X, y, params | shape, w, n_threads=n_threads, n_chunks=n_chunks
        )
        seen.add(
            b"".join(tree[name].tobytes() for tree in trees for name in tree)
            + scores.tobytes()
        )
    assert len(seen) == 1 and n_sets(trees) > 3


def test_as_many_categories_as_there_may_be() -> None:
    codes = np.random.default_rng(46).integers(0, 65534, 3000).astype(np.int32)
    codes[:200], codes[200:300] = 65533, -1
    binned = _core.Binned([[codes]], [np.empty(0)], 2, n_categories=[65534])
    np.testing.assert_array_equal(binned.codes(0), np.where(codes < 0, 65534, codes))
    trainer = _core.Trainer(
        binned,
        (codes == 65533)[None].astype(np.float64),
        None,
        "squared_error",
        {},
        1,
        2,
    )
    trainer.fill_scores(trainer.start())
    trainer.gradients("auto")
    policy, limits = growth.limits(reference.DEFAULTS | {"max_depth": 1})
    tree = trainer.grow(policy, limits | {"learning_rate": 1.0}, 0, 0)[0]
    assert tree["set_code"].tolist() == [65533] and tree["missing_left"][0] == 0
    assert tree["count"].tolist() == [3000, 200, 2800]


def test_codes_are_checked() -> None:
    codes = np.array([0, 2, -5], np.int32)
    assert _core.Binned([[codes]], [np.empty(0)], 1, n_categories=[3]).codes(
        0
    ).tolist() == [0, 2, 3]
    for columns, counts, message in (
        ([codes], [2], "code must be below"),
        ([codes.astype(np.int64)], [3], "must be int32"),
        ([codes], [65535], "at most 65534"),
        ([codes], [3, 1], "one number a column"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.Binned([columns], [np.empty(0)], 1, n_categories=counts)
    with pytest.raises(ValueError, match="no cuts"):
        _core.Binned([[codes]], [np.empty(0)], 1, exact=True, n_categories=[3])
