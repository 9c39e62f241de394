"""Constraints and split rules against the executable specification: every array of
every tree, bit for bit.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from spec.cases import BOTH, FIELDS, LEAVES, POINTWISE, POLICIES, RULES, WEIGHTS
from spec.helpers import assert_same_model, labels, table, weight_of
from spec.reference.losses import OBJECTIVES as SHELF

Floats = NDArray[np.float64]


# Symmetric trees have no splits of single nodes.
PAIRS = [
    (policy, name)
    for policy in POLICIES
    for name in RULES
    if (policy, name) != ("symmetric", "forced")
]


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", ["squared_error", "logistic"])
@pytest.mark.parametrize(("policy", "rule"), PAIRS)
def test_rules(policy: str, rule: str, objective: str, weights: str) -> None:
    rng = np.random.default_rng(30)
    X = table(rng, 180)
    y = labels(rng, X, objective)
    w = weight_of(rng, weights, 180)
    for precision in ("narrow", "wide"):
        params = RULES[rule] | {
            "grow_policy": policy,
            "objective": objective,
            "precision": precision,
        }
        booster = assert_same_model(
            X, y, params | {"max_depth": 5, "max_leaves": 14, "n_estimators": 3}, w
        )
        assert booster.trees.n_nodes >= 5 * booster.trees.n_trees


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "limit",
    [{"min_samples_leaf": 9}, {"reg_alpha": 0.5}, {"max_delta_step": 0.2}],
    ids=str,
)
@pytest.mark.parametrize(("policy", "rule"), PAIRS)
def test_every_instruction_set(
    isa: str, policy: str, rule: str, limit: dict[str, Any]
) -> None:
    rng = np.random.default_rng(31)
    X = table(rng, 150)
    for objective in ("squared_error", "logistic"):
        params = (
            RULES[rule]
            | limit
            | {
                "grow_policy": policy,
                "objective": objective,
                "max_leaves": 12,
                "max_depth": 5,
            }
        )
        assert_same_model(X, labels(rng, X, objective), params)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("objective", POINTWISE)
@pytest.mark.parametrize("policy", POLICIES)
def test_values_found_after_growth(policy: str, objective: str, leaf: str) -> None:
    rng = np.random.default_rng(32)
    X = table(rng, 120)
    y = labels(rng, X, objective)
    w = weight_of(rng, "real", 120)
    params = {
        "objective": objective,
        "grow_policy": policy,
        "leaf_estimation": leaf,
        "monotone_constraints": BOTH,
    }
    assert_same_model(
        X, y, params | {"subsample": 0.8, "max_depth": 4, "max_leaves": 16}, w
    )
    assert_same_model(
        X,
        y,
        params
        | {"line_search": "tree", "ccp_alpha": 0.01, "max_depth": 4, "max_leaves": 16},
        w,
    )


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Floats, Floats, dict[str, Any], Floats | None]:
    """Any rules on any small task."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(6, 90))
    X = table(rng, n)
    X = np.round(X) if draw(st.booleans()) else X
    fields = draw(
        st.sampled_from([*FIELDS, *({"objective": name} for name in POINTWISE)])
    )
    leaf = draw(st.sampled_from(["newton", "newton", *LEAVES]))
    policy = draw(st.sampled_from(POLICIES))
    method = SHELF[fields["objective"]].leaf if leaf == "auto" else leaf
    params = fields | {
        "monotone_constraints": draw(
            st.none() | st.lists(st.integers(-1, 1), min_size=6, max_size=6)
        ),
        "monotone_method": draw(st.sampled_from(["basic", "intermediate"])),
        "interaction_constraints": draw(
            st.sampled_from([None, None, [[0, 1, 2], [2, 3, 5]], [[0, 1, 2, 3, 4, 5]]])
        ),
        "extra_trees": draw(st.sampled_from([False, False, True])),
        "leaf_estimation": leaf,
        "leaf_iterations": draw(st.sampled_from([1, 1, 3]))
        if method in ("newton", "gradient")
        else 1,
        "line_search": draw(st.sampled_from(["none", "none", "tree"])),
        "ccp_alpha": draw(st.sampled_from([0.0, 0.0, 0.01])),
        "hessian": draw(st.sampled_from(["auto", "none"])),
        "grow_policy": policy,
        "max_depth": draw(st.integers(1, 6)),
        "max_leaves": draw(st.sampled_from([None, 4, 9, 20])),
        "min_samples_leaf": draw(st.sampled_from([1, 1, 4])),
        "min_split_gain": draw(st.sampled_from([0.0, 0.0, 0.05])),
        "reg_lambda": draw(st.sampled_from([0.3, 1.0])),
        "reg_alpha": draw(st.sampled_from([0.0, 0.0, 0.7])),
        "max_delta_step": draw(st.sampled_from([0.0, 0.0, 0.3])),
        "subsample": draw(st.sampled_from([1.0, 0.6])),
        "colsample_bylevel": draw(st.sampled_from([1.0, 1.0, 0.6])),
        "colsample_bynode": draw(st.sampled_from([1.0, 1.0, 0.6])),
        "seed": draw(st.integers(0, 2**63 - 1)),
    }
    after = (
        method in ("exact", "sign", "friedman")
        or params["leaf_iterations"] > 1
        or params["ccp_alpha"] > 0
    )
    if not after and params["line_search"] == "none":
        params["path_smooth"] = draw(st.sampled_from([0.0, 3.5]))
    y = np.round(labels(rng, X, fields["objective"]), draw(st.integers(1, 9)))
    return X, y, params, weight_of(rng, draw(st.sampled_from(WEIGHTS)), n)


@settings(max_examples=examples(200))
@given(tasks())
def test_any_rules(task: tuple[Floats, Floats, dict[str, Any], Floats | None]) -> None:
    assert_same_model(*task)


def test_basic_bounds_by_hand() -> None:
    """Left 0 and 8 about 4, right 6 and 10 about 8: the midpoint 6 parts them, so that
    8 becomes 6.
    """
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = np.array([0.0, 8.0, 6.0, 10.0])
    params = {
        "monotone_constraints": [1, 0],
        "reg_lambda": 0.0,
        "start": 0.0,
        "learning_rate": 1.0,
        "n_estimators": 1,
    }
    params |= {
        "forced_splits": {"feature": 0, "threshold": 0.5},
        "max_depth": 2,
        "max_leaves": None,
    }
    assert list(assert_same_model(X, y, params).predict(X)) == [0, 6, 6, 10]
    # Alike in column 1, 0 < 6 and 8 < 10: nothing has to be cut.
    assert list(
        assert_same_model(X, y, params | {"monotone_method": "intermediate"}).predict(X)
    ) == [0, 8, 6, 10]


def test_forced_splits_by_hand() -> None:
    """A split that gains nothing is made where it was told, and what follows it."""
    X = np.array(
        [[a, b, c] for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0)]
    )
    told = {"feature": 1, "threshold": 0.5, "right": {"feature": 2, "threshold": 0.5}}
    params = {
        "forced_splits": told,
        "n_estimators": 1,
        "max_leaves": 4,
        "max_depth": None,
        "grow_policy": "leafwise",
    }
    booster = assert_same_model(X, X[:, 0], params)
    # the last split is the left side's own
    assert list(booster.trees.column) == [1, 0, 2, -1, -1, -1, -1]
    assert booster.trees.gain[0] == 0.0


def test_forced_split_that_parts_nothing_is_left_out() -> None:
    X = np.column_stack([np.arange(8.0), np.arange(8.0) > 3])
    # below, column 1 is constant
    told = {"feature": 0, "threshold": 3.5, "left": {"feature": 1, "threshold": 0.5}}
    booster = assert_same_model(
        X, np.arange(8.0), {"forced_splits": told, "n_estimators": 1}
    )
    assert booster.trees.column[0] == booster.trees.column[1] == 0


def test_extra_trees_draw_again_for_every_node() -> None:
    X = np.arange(64.0)[:, None]
    params = {
        "extra_trees": True,
        "max_depth": 6,
        "max_leaves": None,
        "reg_lambda": 0.0,
    }
    booster = sapwood.train(
        params | {"n_estimators": 30, "min_child_weight": 0.0},
        sapwood.Dataset(X, label=X[:, 0]),
    )
    roots = booster.trees.threshold[booster.trees.offset[:-1]]
    assert len(np.unique(roots)) > 15
    assert roots.min() < 16 < 48 < roots.max()
