"""Trees with vector leaves against the executable specification, bit for bit."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from spec import reference
from spec.cases import POLICIES, WEIGHTS
from spec.helpers import assert_bits, assert_trees, labels, table, weight_of
from spec.reference import multi_output

Floats = NDArray[np.float64]
SMALL = {
    "max_depth": 4,
    "max_leaves": 11,
    "learning_rate": 0.3,
    "min_child_weight": 0.0,
    "n_estimators": 3,
}
SETS = ("", "_offset", "_code")
CHANGES: list[dict[str, Any]] = [
    {"reg_alpha": 1.5},
    {"max_delta_step": 0.2},
    {"min_split_gain": 1.0},
    {"reg_lambda": 0.0},
    {"min_child_weight": 3.0},
    {"min_samples_leaf": 9},
    {"path_smooth": 5.0},
    {"extra_trees": True},
    {
        "subsample": 0.6,
        "colsample_bytree": 0.7,
        "colsample_bylevel": 0.8,
        "colsample_bynode": 0.7,
    },
    {"sampling": "mvs", "subsample": 0.6},
    {"interaction_constraints": [[0, 1], [2, 3, 5]]},
    {"score_function": "cosine", "hessian": "none"},
    {"random_strength": 2.0},
    {"leaf_iterations": 3},
    {
        "feature_weights": [0.2, 1.0, 0.5, 1.0, 1.0, 3.0],
        "first_use_penalties": [3.0, 0.0, 5.0, 0.5, 0.0, 2.0],
    },
    {
        "score_function": "cosine",
        "random_strength": 0.5,
        "min_samples_leaf": 9,
        "min_split_gain": 0.5,
    },
]


def sets_of(
    number: NDArray[Any], offset: NDArray[Any], code: NDArray[Any]
) -> list[list[int]]:
    """The categories that go left, of every node that has some."""
    return [code[offset[k] : offset[k + 1]].tolist() for k in number if k >= 0]


def assert_specified(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> sapwood.Booster:
    """Core and reference agree on every tree, and on scores; the model, for further
    questions.
    """
    given = SMALL | {"seed": 3} | params
    expected, base = multi_output.train(X, y, given, weight)
    names = {name: value for name, value in given.items() if name != "n_categories"}
    columns = [column for column, n in enumerate(given.get("n_categories", ())) if n]
    data = sapwood.Dataset(
        X, y, weight=weight, min_samples_bin=1, categorical_features=columns or None
    )
    settings = {
        "multi_strategy": "multi_output_tree",
        "path_smooth": 0.0,
        "n_jobs": 2,
    } | names
    booster = sapwood.train(settings, data)
    assert_trees(booster, expected, base)
    for index, other in enumerate(expected):
        got = booster.trees.slice(index, index + 1)
        assert sets_of(got.set, got.set_offset, got.set_code) == sets_of(
            *(other[f"set{x}"] for x in SETS)
        )
    raw = booster.predict(X, raw=True)
    assert_bits(
        np.ascontiguousarray(raw), reference.predict_raw(expected, base, X), "scores"
    )
    return booster


def goals(rng: np.random.Generator, X: Floats, objective: str) -> Floats:
    """Classes, or three columns of different sizes."""
    y = labels(rng, X, objective)
    if objective == "softmax":
        return y
    return np.column_stack(
        [y, 1e-3 * X[:, 0] * X[:, 2], 1e4 * (X[:, 2] > 1) * rng.random(len(X))]
    )


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", ["softmax", "squared_error"])
@pytest.mark.parametrize("policy", POLICIES)
def test_trees(policy: str, objective: str, weights: str) -> None:
    rng = np.random.default_rng(61)
    X = table(rng, 110)
    y = goals(rng, X, objective)
    w = weight_of(rng, weights, 110)
    for precision in ("narrow", "wide"):
        given = {
            "grow_policy": policy,
            "objective": objective,
            "precision": precision,
            "n_estimators": 2,
        }
        booster = assert_specified(X, y, given, w)
        assert booster.trees.n_nodes > 7 * booster.trees.n_trees


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_beside_other_parameters(change: dict[str, Any]) -> None:
    rng = np.random.default_rng(62)
    X = table(rng, 120)
    for objective, policies in {
        "softmax": POLICIES[1:],
        "squared_error": POLICIES[:1],
    }.items():
        y = goals(rng, X, objective)
        for policy in policies:
            assert_specified(
                X,
                y,
                {"grow_policy": policy, "objective": objective, "n_estimators": 2}
                | change,
            )


@pytest.mark.parametrize("policy", POLICIES)
def test_single_categories(policy: str) -> None:
    rng = np.random.default_rng(63)
    X = table(rng, 150)
    # ranks are codes
    X[:, 2] = rng.permutation(
        np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [60, 40, 25, 15, 10])
    )
    y = goals(rng, np.where(X == 1, 8.0, X), "softmax")
    X[rng.random(150) < 0.1, 2] = np.nan
    given = {
        "grow_policy": policy,
        "objective": "softmax",
        "max_cat_to_onehot": 5,
        "n_categories": [0, 0, 5, 0, 0, 0],
    }
    given |= {"n_estimators": 2}
    for more in (
        {},
        {"min_samples_leaf": 12},
        {"score_function": "cosine"},
        {"extra_trees": True},
    ):
        booster = assert_specified(X, y, given | more)
        assert (booster.trees.column == 2).any()


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", ["softmax", "squared_error"])
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
def test_sketched_splits(policy: str, size: int, objective: str, weights: str) -> None:
    rng = np.random.default_rng(66)
    X = table(rng, 110)
    y = goals(rng, X, objective)
    w = weight_of(rng, weights, 110)
    given = {
        "grow_policy": policy,
        "objective": objective,
        "sketch_outputs": size,
        "n_estimators": 2,
    }
    for more in (
        {},
        {"precision": "wide", "min_samples_leaf": 9},
        {"sampling": "mvs", "subsample": 0.6},
    ):
        booster = assert_specified(X, y, given | more, w)
        assert booster.trees.n_nodes > 5 * booster.trees.n_trees


def test_trees_of_a_sketch_with_more_leaves_than_a_byte_counts() -> None:
    """Scores of all outputs follow from the leaves of 257 and more: the second tree
    depends on them.
    """
    rng = np.random.default_rng(68)
    X = rng.normal(size=(600, 4))
    y = goals(rng, X, "softmax")
    given = {
        "grow_policy": "symmetric",
        "objective": "softmax",
        "sketch_outputs": 1,
        "n_estimators": 2,
    }
    given |= {"max_depth": 10, "max_leaves": 1024, "min_samples_leaf": 1}
    booster = assert_specified(X, y, given)
    assert (booster.trees.slice(0, 1).left == 0).sum() > 256


def test_a_sketch_of_all_outputs_is_the_full_search() -> None:
    rng = np.random.default_rng(67)
    X = table(rng, 110)
    y = goals(rng, X, "softmax")
    given = {**SMALL, "objective": "softmax", "multi_strategy": "multi_output_tree"}
    full = sapwood.train(given, sapwood.Dataset(X, y))
    for size, alike in ((1, False), (3, True), (9, True)):
        sketched = sapwood.train(
            given | {"sketch_outputs": size}, sapwood.Dataset(X, y)
        )
        assert (
            np.array_equal(full.predict(X, raw=True), sketched.predict(X, raw=True))
            == alike
        )


def test_every_instruction_set(isa: str) -> None:
    rng = np.random.default_rng(64)
    X = table(rng, 140)
    for policy in POLICIES:
        for more in ({}, {"score_function": "cosine"}):
            given = {
                "grow_policy": policy,
                "objective": "softmax",
                "n_estimators": 1,
            } | more
            assert_specified(X, goals(rng, X, "softmax"), given)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("reg_lambda", [0.0, 3.0])
def test_joint_values(reg_lambda: float, weights: str) -> None:
    rng = np.random.default_rng(65)
    X = table(rng, 140)
    y = goals(rng, X, "softmax")
    weight = weight_of(rng, weights, 140)
    given = {
        "objective": "softmax",
        "multi_strategy": "multi_output_tree",
        "leaf_estimation": "joint",
        "n_jobs": 2,
    }
    given |= {
        "reg_lambda": reg_lambda,
        "max_depth": 3,
        "n_estimators": 3,
        "learning_rate": 0.5,
        "max_delta_step": 2.0,
    }
    booster = sapwood.train(given, sapwood.Dataset(X, y, weight=weight))
    leaves = booster.predict_leaves(X)[:, ::3]  # by round
    for index, scores in enumerate(
        [np.tile(booster.base, (140, 1)), *booster.staged_predict(X, raw=True)][:3]
    ):
        ends = np.flatnonzero(booster.trees.slice(3 * index, 3 * index + 1).left == 0)
        hit = reference.planes("softmax", y)
        leaf = np.searchsorted(ends, leaves[:, index])
        w = reference.weights(weight, 140)
        expected = multi_output.joint_values(
            scores.T.copy(), hit, leaf, len(ends), w, reg_lambda
        )
        for output in range(3):
            got = booster.trees.slice(3 * index + output, 3 * index + output + 1).value[
                ends
            ]
            assert_bits(
                np.asarray(got),
                0.5 * np.clip(expected[output], -2.0, 2.0),
                f"round {index}, {output}",
            )
