"""Monotone models are monotone, whatever grows the trees: methods, growers, categories,
missing values, exact trees.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from sapwood import Dataset
from sapwood.errors import DivergedError
from spec.cases import LEAVES, POINTWISE, POLICIES, WEIGHTS
from spec.helpers import (
    along,
    assert_like_histograms,
    few_values,
    labels,
    table,
    weight_of,
)

Floats = NDArray[np.float64]

METHODS = ["basic", "intermediate"]
CATEGORIES = [2, 5]  # columns, where there are some
ONE: dict[str, Any] = {
    "n_estimators": 1,
    "learning_rate": 1.0,
    "start": 0.0,
    "reg_lambda": 0.0,
    "path_smooth": 0.0,
    "min_child_weight": 0.0,
    "max_leaves": None,
}


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Floats, Floats, dict[str, Any], dict[str, Any]]:
    """Data, a training with constraints on some columns (any objective, grower, leaf
    rule and sample), and bins.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = table(rng, draw(st.integers(20, 150)))
    objective = draw(st.sampled_from(POINTWISE))
    leaf = draw(st.sampled_from(["newton", "newton", *LEAVES]))
    direct = leaf in ("newton", "gradient")
    kind = draw(st.sampled_from(["hist", "exact", "categories", "categories"]))
    directions = draw(st.lists(st.integers(-1, 1), min_size=6, max_size=6))
    params = {
        "objective": objective,
        "monotone_constraints": directions,
        "monotone_method": draw(st.sampled_from(METHODS)),
        "grow_policy": draw(st.sampled_from(POLICIES)),
        "leaf_estimation": leaf,
        "leaf_iterations": draw(st.sampled_from([1, 1, 3])) if direct else 1,
        "line_search": draw(st.sampled_from(["none", "none", "tree"])),
        "ccp_alpha": draw(st.sampled_from([0.0, 0.0, 0.01])),
        "extra_trees": kind != "exact" and draw(st.booleans()),
        "max_depth": draw(st.integers(2, 6)),
        "max_leaves": draw(st.sampled_from([None, 31])),
        "min_child_weight": 0.0,
        "precision": draw(st.sampled_from(["narrow", "wide"])),
        "subsample": draw(st.sampled_from([1.0, 0.6])),
        "learning_rate": 0.5,
        "n_estimators": 4,
        "n_jobs": 1,
        "random_state": draw(st.integers(0, 99)),
    }
    if (
        direct
        and params["leaf_iterations"] == 1
        and params["ccp_alpha"] == 0
        and params["line_search"] == "none"
    ):
        params["path_smooth"] = draw(st.sampled_from([0.0, 5.0]))
    y = labels(rng, X, objective)
    bins = {"tree_method": kind} if kind == "exact" else {}
    if kind == "categories":
        X[:, 5] = np.where(np.isnan(X[:, 5]), np.nan, rng.integers(0, 12, len(X)))
        bins = {"categorical_features": CATEGORIES}
        params["monotone_constraints"] = [
            0 if j in CATEGORIES else d for j, d in enumerate(directions)
        ]
        params |= {
            "min_data_per_group": draw(st.integers(1, 9)),
            "cat_smooth": draw(st.sampled_from([0.0, 2.0])),
        }
    return X, y, params, bins


@settings(max_examples=examples(300))
@given(tasks())
def test_monotone_models_are_monotone(
    task: tuple[Floats, Floats, dict[str, Any], dict[str, Any]],
) -> None:
    X, y, params, bins = task
    try:
        booster = sapwood.train(params, Dataset(X, label=y, n_jobs=1, **bins))
    except DivergedError:
        # signs for leaves, exponential loss and a step along them can run away
        reject()
    for column, sign in enumerate(params["monotone_constraints"]):
        if sign:
            assert (sign * np.diff(along(booster, X, column), axis=1)).min() >= 0
    verdicts = booster.check_constraints()
    assert verdicts, verdicts


@pytest.mark.parametrize(
    "bins",
    [{}, {"tree_method": "exact"}, {"categorical_features": CATEGORIES}],
    ids=str,
)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_constraint_bends_what_would_be_crooked(
    policy: str, method: str, bins: dict[str, Any]
) -> None:
    """Without it the same trees are not monotone, so the property above is no
    accident.
    """
    rng = np.random.default_rng(0)
    X = table(rng, 400)
    y = labels(rng, X, "squared_error")
    params = {"grow_policy": policy, "n_estimators": 10, "max_depth": 4}
    free = sapwood.train(params, Dataset(X, label=y, **bins))
    assert np.diff(along(free, X, 0), axis=1).min() < 0
    rule = {"monotone_constraints": {0: 1}, "monotone_method": method}
    bent = sapwood.train(params | rule, Dataset(X, label=y, **bins))
    assert np.diff(along(bent, X, 0), axis=1).min() >= 0
    assert 0 in bent.trees.column  # the column is still used


@pytest.mark.parametrize("seed", [10, 26, 30, 59])
def test_values_of_rows_in_another_order_where_a_tree_had_none(seed: int) -> None:
    """Ordered statistics: rows that give leaves their values may come to leaves that
    had none while the tree grew.
    """
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=(60, 2)), rng.integers(0, 9, 60), rng.integers(0, 12, 60)]
    )
    y = (X[:, 1] + rng.normal(size=60) > 0).astype(np.float64)
    params = {
        "objective": "logistic",
        "monotone_constraints": [1, 0, 0, 0],
        "grow_policy": "symmetric",
        "max_depth": 6,
    }
    params |= {
        "n_estimators": 3,
        "min_child_weight": 0.0,
        "category_encoding": "ordered",
        "learning_rate": 0.5,
    }
    assert sapwood.train(
        params, Dataset(X, y, categorical_features=[2, 3])
    ).check_constraints()


# ---- Exact trees ---------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(
    data=few_values(),
    policy=st.sampled_from(POLICIES),
    method=st.sampled_from(METHODS),
    directions=st.lists(st.integers(-1, 1), min_size=3, max_size=3),
    objective=st.sampled_from(["squared_error", "logistic"]),
    weights=st.sampled_from(WEIGHTS),
    limit=st.sampled_from(
        [
            {},
            {"min_samples_leaf": 3},
            {"reg_alpha": 0.5, "max_delta_step": 0.3},
            {"subsample": 0.7},
        ]
    ),
)
def test_exact_trees_equal_hist_where_every_value_has_its_bin(
    data: tuple[np.random.Generator, Floats],
    policy: str,
    method: str,
    directions: list[int],
    objective: str,
    weights: str,
    limit: dict[str, Any],
) -> None:
    rng, X = data
    y = np.round(np.nan_to_num(X, nan=1.0).sum(axis=1) + rng.normal(size=len(X)), 1)
    y = (y > np.median(y)).astype(np.float64) if objective == "logistic" else y
    params = {
        "objective": objective,
        "grow_policy": policy,
        "monotone_constraints": directions,
        "n_estimators": 3,
        "monotone_method": method,
        "max_depth": 4,
        "min_child_weight": 0.0,
    }
    assert_like_histograms(X, y, params | limit, weight_of(rng, weights, len(X)))


@pytest.mark.parametrize("policy", POLICIES)
def test_exact_trees_hold_values_against_missing_ones_at_the_last_cut_only(
    policy: str,
) -> None:
    """Where d is 0, x has not its largest value; missing values are low there, which no
    cut below that one may say.
    """
    X = np.array([[0.0, 0.0], [1.0, 0.0], [np.nan, 0.0], [2.0, 1.0], [3.0, 1.0]])
    y = np.array([5.0, 5.0, 1.0, 30.0, 30.0])
    params = ONE | {
        "grow_policy": policy,
        "monotone_constraints": [1, 0],
        "max_depth": 2,
    }
    tree = assert_like_histograms(X, y, params).trees
    assert list(tree.column[tree.left > 0][:2]) == [0, 0]
    assert np.inf in tree.threshold


# ---- Intermediate bounds by hand -----------------------------------------------------


def test_leaves_that_a_set_parts_have_no_order() -> None:
    """Below x, the categories p and q have 0 and 8, then 6 and 10: 8 need not give way
    to 6.
    """
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    data = Dataset(X, label=[0.0, 8.0, 6.0, 10.0], categorical_features=[1])
    params = ONE | {
        "monotone_constraints": [1, 0],
        "forced_splits": {"feature": 0, "threshold": 0.5},
        "max_depth": 2,
    }
    assert list(sapwood.train(params, data).predict(X)) == [0, 6, 6, 10]
    assert list(
        sapwood.train(params | {"monotone_method": "intermediate"}, data).predict(X)
    ) == [0, 8, 6, 10]


def test_a_symmetric_level_moves_the_bounds_of_the_next() -> None:
    """x parts 4 and 9.5 at 6.75, which bounds the 8 that z finds next; but in the end 8
    has to be below 10 only.
    """
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    data = Dataset(X, label=[0.0, 8.0, 9.0, 10.0])
    params = ONE | {
        "monotone_constraints": [1, 0],
        "grow_policy": "symmetric",
        "max_depth": 2,
    }
    assert list(sapwood.train(params, data).predict(X)) == [0, 6.75, 9, 10]
    assert list(
        sapwood.train(params | {"monotone_method": "intermediate"}, data).predict(X)
    ) == [0, 8, 9, 10]


@pytest.mark.parametrize(("sign", "between"), [(1, 5.0), (-1, -5.0)])
def test_a_leaf_without_rows_lies_between_its_neighbours(
    sign: int, between: float
) -> None:
    """Nobody has x = 1 where z is 0; beside it along x are 5 and 7, wherever x = 1 and
    x = 2 come to where z is 1.
    """
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    params = ONE | {
        "monotone_constraints": [sign, 0],
        "monotone_method": "intermediate",
        "grow_policy": "symmetric",
    }
    data = Dataset(X, label=sign * np.array([5.0, 7.0, -8.0, -4.0, -3.0]))
    booster = sapwood.train(params | {"max_depth": 3}, data)
    assert list(booster.predict(X)) == [sign * value for value in (5, 7, -8, -4, -3)]
    assert booster.predict([[1.0, 0.0]]) == between
    assert booster.check_constraints()
