"""How splits are judged, against the executable specification: bit for bit."""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.boost.round import growth
from sapwood.errors import ParameterError
from spec import category_tables
from spec.cases import OBJECTIVES, POLICIES, PREFERENCES, WEIGHTS
from spec.helpers import assert_same_model, labels, table, weight_of

each_preference = pytest.mark.parametrize(
    "preference", PREFERENCES, ids=lambda one: "-".join(map(str, one))
)


@pytest.mark.pairwise
@pytest.mark.parametrize(
    ("objective", "weights"), list(zip(OBJECTIVES, WEIGHTS, strict=True))
)
@pytest.mark.parametrize("policy", POLICIES)
@each_preference
def test_trees(
    preference: dict[str, Any], policy: str, objective: str, weights: str
) -> None:
    rng = np.random.default_rng(51)
    X = table(rng, 160)
    params = {
        "grow_policy": policy,
        "objective": objective,
        "n_estimators": 3,
    } | preference
    booster = assert_same_model(
        X, labels(rng, X, objective), params, weight_of(rng, weights, 160)
    )
    assert booster.trees.n_nodes > 3 * booster.trees.n_trees


CHANGES: list[dict[str, Any]] = [
    {"precision": "wide"},
    {"min_samples_leaf": 9},
    {"min_child_weight": 4.0},
    {"min_split_gain": 1.0},
    {"extra_trees": True},
    {"sampling": "bayesian"},
    {"sampling": "mvs", "subsample": 0.6},
    {"reg_lambda": 0.0},
    {"leaf_estimation": "gradient"},
    {"interaction_constraints": [[0, 1], [2, 3, 5]]},
]


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("preference", [0, 2, 5])
def test_beside_other_parameters(preference: int, change: dict[str, Any]) -> None:
    rng = np.random.default_rng(52)
    X = table(rng, 170)
    for policy in ("leafwise", "symmetric"):
        params = (
            {"objective": "logistic", "grow_policy": policy, "n_estimators": 2}
            | PREFERENCES[preference]
            | change
        )
        assert_same_model(X, labels(rng, X, "logistic"), params)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@each_preference
def test_categories(preference: dict[str, Any], policy: str) -> None:
    rng = np.random.default_rng(57)
    X = category_tables.table(rng, 200)
    objective, weights = category_tables.BESIDE[policy]
    for more in ({}, {"min_samples_leaf": 12}):
        y = category_tables.labels(rng, X, objective)
        w = weight_of(rng, weights, 200)
        params = (
            {"grow_policy": policy, "objective": objective}
            | preference
            | {"hessian": "auto"}
            | more
        )
        trees = category_tables.assert_same(X, y, params, w)
        assert category_tables.n_sets(trees)


@pytest.mark.pairwise(1)
@each_preference
def test_every_instruction_set(isa: str, preference: dict[str, Any]) -> None:
    rng = np.random.default_rng(53)
    X = table(rng, 700)
    for policy in ("depthwise", "symmetric"):
        params = {
            "objective": "logistic",
            "grow_policy": policy,
            "n_estimators": 2,
        } | preference
        assert_same_model(X, labels(rng, X, "logistic"), params)


def test_a_weight_of_0_is_never_split_and_a_price_is_paid_once() -> None:
    rng = np.random.default_rng(55)
    X = rng.normal(size=(500, 3))
    y = X @ [1.0, 0.9, 0.8]
    data = sapwood.Dataset(X, y, feature_names=["a", "b", "c"])

    def columns(**more: Any) -> list[int]:
        return sapwood.train(
            {"max_depth": 3, "n_estimators": 5} | more, data
        ).trees.column.tolist()

    assert set(columns()) == {-1, 0, 1, 2}
    assert set(columns(feature_weights={"b": 0})) == {-1, 0, 2}
    assert set(columns(first_feature_use_penalties={"a": 1e9, 2: 1e9})) == {-1, 1}
    dear = sapwood.train(
        {"max_depth": 3, "n_estimators": 5, "first_use_penalties": [0, 30, 0]}, data
    ).trees
    gains = dear.gain[dear.column == 1]
    # after the first split, which was worth it, the column is free
    assert len(gains) > 1 and gains[0] > 30 > gains[1]


@each_preference
def test_ten_and_ten_rounds_are_twenty(preference: dict[str, Any]) -> None:
    rng = np.random.default_rng(58)
    X = table(rng, 300)
    data = sapwood.Dataset(X, labels(rng, X, "squared_error"))
    params = {"n_estimators": 4, "max_depth": 3} | preference
    once = sapwood.train(params, data)
    twice = sapwood.train(
        params | {"n_estimators": 2},
        data,
        init_model=sapwood.train(params | {"n_estimators": 2}, data),
    )
    assert once.fingerprint() == twice.fingerprint()


def test_luck_fades() -> None:
    """n / (n + 1) of the strength at first, half of it once rounds times rate are the
    logarithm of the rows.
    """
    params = {"random_strength": 3.0}
    assert growth.random_strength(params, 0, 0.1, 99) == pytest.approx(
        3.0 * 99 / 100, rel=1e-15
    )
    assert growth.random_strength(params, 40, 0.1, round(np.exp(4.0))) == pytest.approx(
        1.5, rel=0.01
    )
    assert growth.random_strength(params, 10**6, 0.1, 99) == 0.0


def test_luck_chooses_among_columns() -> None:
    rng = np.random.default_rng(56)
    X = rng.normal(size=(60, 8))
    y = X[:, 0] + 0.95 * X[:, 1]

    def first_splits(strength: float) -> set[int]:
        params = {"max_depth": 1, "n_estimators": 1, "random_strength": strength}
        boosters = (
            sapwood.train(params | {"random_state": s}, sapwood.Dataset(X, y))
            for s in range(12)
        )
        return {int(booster.trees.column[0]) for booster in boosters}

    assert len(first_splits(0.0)) == 1
    assert len(first_splits(3.0)) > 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"score_function": "cosine", "reg_alpha": 1.0},
            "reg_alpha is not for score_function='cosine'",
        ),
        (
            {"score_function": "cosine", "monotone_constraints": [1, 0]},
            "monotone_constraints is not for",
        ),
        (
            {"random_strength": 1.0, "tree_method": "exact"},
            "not for tree_method='exact'",
        ),
        (
            {"feature_weights": [1.0]},
            "feature_weights has 1 numbers, the data 2 columns",
        ),
        ({"feature_weights": {"f0": -1}}, "too small"),
        ({"first_use_penalties": {"z": 1}}, "names the column 'z'"),
        ({"penalties_coefficient": 2}, "multiply first_use_penalties"),
    ],
)
def test_refuses(params: dict[str, Any], message: str) -> None:
    method = {"tree_method": params["tree_method"]} if "tree_method" in params else {}
    data = sapwood.Dataset(np.arange(12.0).reshape(6, 2), np.arange(6.0), **method)
    with pytest.raises(ParameterError, match=message):
        sapwood.train(params, data)
