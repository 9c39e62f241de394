"""How splits are judged, against the executable specification: bit for bit."""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.boost.round import growth
from sapwood.errors import ParameterError
from spec import test_categories as test_reference_categories
from spec.test_trees import OBJECTIVES, POLICIES, WEIGHTS, assert_same_model, labels, table, weight_of

TASTES: list[dict[str, Any]] = [
    {"score_function": "cosine"},
    {"random_strength": 2.0},
    {"score_function": "cosine", "random_strength": 1.0, "hessian": "none"},
    {"feature_weights": [0.2, 1.0, 0.0, 1.0, 1.0, 3.0]},
    {"first_use_penalties": [3.0, 0.0, 5.0, 0.5, 0.0, 2.0]},
    {"score_function": "cosine", "first_use_penalties": [0.5, 0.0, 1.0, 0.5, 0.0, 0.2], "random_strength": 0.3,
     "feature_weights": [1.0, 0.5, 1.0, 1.0, 1.0, 2.0]},
]  # fmt: skip
each_taste = pytest.mark.parametrize("taste", TASTES, ids=lambda one: "-".join(map(str, one)))


@pytest.mark.parametrize(("objective", "weights"), list(zip(OBJECTIVES, WEIGHTS, strict=True)))
@pytest.mark.parametrize("policy", POLICIES)
@each_taste
def test_trees(taste: dict[str, Any], policy: str, objective: str, weights: str) -> None:
    rng = np.random.default_rng(51)
    X = table(rng, 160)
    params = {"grow_policy": policy, "objective": objective, "n_estimators": 3} | taste
    booster = assert_same_model(X, labels(rng, X, objective), params, weight_of(rng, weights, 160))
    assert booster.trees.n_nodes > 3 * booster.trees.n_trees


CHANGES: list[dict[str, Any]] = [
    {"precision": "wide"}, {"min_samples_leaf": 9}, {"min_child_weight": 4.0}, {"min_split_gain": 1.0},
    {"extra_trees": True}, {"sampling": "bayesian"}, {"sampling": "mvs", "subsample": 0.6}, {"reg_lambda": 0.0},
    {"leaf_estimation": "gradient"}, {"interaction_constraints": [[0, 1], [2, 3, 5]]},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("taste", [0, 2, 5])
def test_beside_other_parameters(taste: int, change: dict[str, Any]) -> None:
    rng = np.random.default_rng(52)
    X = table(rng, 170)
    for policy in ("leafwise", "symmetric"):
        params = {"objective": "logistic", "grow_policy": policy, "n_estimators": 2} | TASTES[taste] | change
        assert_same_model(X, labels(rng, X, "logistic"), params)


@pytest.mark.parametrize("policy", POLICIES)
@each_taste
def test_categories(taste: dict[str, Any], policy: str) -> None:
    rng = np.random.default_rng(57)
    X = test_reference_categories.table(rng, 200)
    objective, weights = test_reference_categories.BESIDE[policy]
    for more in ({}, {"min_samples_leaf": 12}):
        y, w = test_reference_categories.labels(rng, X, objective), weight_of(rng, weights, 200)
        params = {"grow_policy": policy, "objective": objective} | taste | {"hessian": "auto"} | more
        trees = test_reference_categories.assert_same(X, y, params, w)
        assert test_reference_categories.n_sets(trees)


@each_taste
def test_every_instruction_set(isa: str, taste: dict[str, Any]) -> None:
    rng = np.random.default_rng(53)
    X = table(rng, 700)
    for policy in ("depthwise", "symmetric"):
        params = {"objective": "logistic", "grow_policy": policy, "n_estimators": 2} | taste
        assert_same_model(X, labels(rng, X, "logistic"), params)


@each_taste
def test_threads_and_chunks(taste: dict[str, Any]) -> None:
    rng = np.random.default_rng(54)
    X = table(rng, 4000)
    y = labels(rng, X, "logistic")
    parts = [(X[:1], y[:1]), (X[1:1700], y[1:1700]), (X[1700:], y[1700:])]
    whole, chunked = sapwood.Dataset(X, y), sapwood.Dataset.from_chunks(parts)
    for policy in POLICIES:
        params = {"objective": "logistic", "grow_policy": policy, "n_estimators": 4, "max_depth": 5} | taste
        models = {sapwood.train(params | {"n_jobs": n}, data).fingerprint()
                  for n in (1, 2, 3, 7) for data in (whole, chunked)}  # fmt: skip
        assert len(models) == 1, policy


def test_a_weight_of_0_is_never_split_and_a_price_is_paid_once() -> None:
    rng = np.random.default_rng(55)
    X = rng.normal(size=(500, 3))
    y = X @ [1.0, 0.9, 0.8]
    data = sapwood.Dataset(X, y, feature_names=["a", "b", "c"])

    def columns(**more: Any) -> list[int]:
        return sapwood.train({"max_depth": 3, "n_estimators": 5} | more, data).trees.column.tolist()

    assert set(columns()) == {-1, 0, 1, 2}
    assert set(columns(feature_weights={"b": 0})) == {-1, 0, 2}
    assert set(columns(first_feature_use_penalties={"a": 1e9, 2: 1e9})) == {-1, 1}
    dear = sapwood.train({"max_depth": 3, "n_estimators": 5, "first_use_penalties": [0, 30, 0]}, data).trees
    gains = dear.gain[dear.column == 1]
    assert len(gains) > 1 and gains[0] > 30 > gains[1]  # after the first split, which was worth it, the column is free


@each_taste
def test_ten_and_ten_rounds_are_twenty(taste: dict[str, Any]) -> None:
    rng = np.random.default_rng(58)
    X = table(rng, 300)
    data = sapwood.Dataset(X, labels(rng, X, "squared_error"))
    params = {"n_estimators": 4, "max_depth": 3} | taste
    once = sapwood.train(params, data)
    twice = sapwood.train(
        params | {"n_estimators": 2}, data, init_model=sapwood.train(params | {"n_estimators": 2}, data)
    )
    assert once.fingerprint() == twice.fingerprint()


def test_luck_fades() -> None:
    """n / (n + 1) of the strength at first, half of it once rounds times rate are the logarithm of the rows."""
    params = {"random_strength": 3.0}
    assert growth.luck(params, 0, 0.1, 99) == pytest.approx(3.0 * 99 / 100, rel=1e-15)
    assert growth.luck(params, 40, 0.1, round(np.exp(4.0))) == pytest.approx(1.5, rel=0.01)
    assert growth.luck(params, 10**6, 0.1, 99) == 0.0


def test_luck_chooses_among_columns() -> None:
    rng = np.random.default_rng(56)
    X = rng.normal(size=(60, 8))
    y = X[:, 0] + 0.95 * X[:, 1]

    def first_splits(strength: float) -> set[int]:
        params = {"max_depth": 1, "n_estimators": 1, "random_strength": strength}
        boosters = (sapwood.train(params | {"random_state": s}, sapwood.Dataset(X, y)) for s in range(12))
        return {int(booster.trees.column[0]) for booster in boosters}

    assert len(first_splits(0.0)) == 1
    assert len(first_splits(3.0)) > 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"score_function": "cosine", "reg_alpha": 1.0}, "reg_alpha is not for score_function='cosine'"),
        ({"score_function": "cosine", "monotone_constraints": [1, 0]}, "monotone_constraints is not for"),
        ({"random_strength": 1.0, "tree_method": "exact"}, "not for tree_method='exact'"),
        ({"feature_weights": [1.0]}, "feature_weights has 1 numbers, the data 2 columns"),
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
