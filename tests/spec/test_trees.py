"""The core against the executable specification: every array of every tree, bit for
bit.
"""

import decimal
import math
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import datasets
from cover import examples
from sapwood import _core
from spec import reference
from spec.cases import (
    FIELDS,
    LEAVES,
    OBJECTIVES,
    ODD,
    POLICIES,
    PRECISIONS,
    SMALL,
    WEIGHTS,
)
from spec.helpers import (
    assert_bits,
    assert_same,
    assert_same_model,
    labels,
    table,
    weight_of,
)
from spec.reference import real as real_spec
from spec.reference.losses import OBJECTIVES as SHELF

Floats = NDArray[np.float64]


# ---- Trees ---------------------------------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("policy", POLICIES)
def test_trees(policy: str, objective: str, precision: str, weights: str) -> None:
    rng = np.random.default_rng(1)
    X = table(rng, 180)
    y = labels(rng, X, objective)
    w = weight_of(rng, weights, 180)
    trees = assert_same(
        X,
        y,
        SMALL | {"grow_policy": policy, "objective": objective, "precision": precision},
        w,
    )
    assert max(len(tree["column"]) for tree in trees) >= 15


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("policy", POLICIES)
def test_sampling(policy: str, objective: str) -> None:
    rng = np.random.default_rng(2)
    X = table(rng, 300)
    sampling = {
        "subsample": 0.6,
        "colsample_bytree": 0.7,
        "colsample_bylevel": 0.8,
        "colsample_bynode": 0.7,
    }
    params = (
        SMALL
        | sampling
        | {
            "grow_policy": policy,
            "objective": objective,
            "seed": 2**63 - 5,
            "n_estimators": 4,
        }
    )
    assert_same(X, labels(rng, X, objective), params, weight_of(rng, "whole", 300))


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "limit",
    [
        {"reg_alpha": 2.5},
        {"reg_alpha": 1e9},
        {"reg_lambda": 0.0},
        {"max_delta_step": 0.2},
        {"path_smooth": 7.0},
        {"path_smooth": 0.5, "max_delta_step": 0.2, "reg_lambda": 0.0},
        {"max_delta_step": 0.1, "reg_alpha": 0.5, "reg_lambda": 0.0},
        {"min_samples_leaf": 17},
        {"min_child_weight": 9.0},
        {"min_samples_leaf": 8, "min_child_weight": 4.0, "min_split_gain": 0.3},
        {"min_split_gain": 1.5},
        {"max_leaves": 2},
        {"max_leaves": None, "max_depth": 5},
        {"max_depth": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_limits(policy: str, weights: str, limit: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    X = table(rng, 150)
    w = weight_of(rng, weights, 150)
    for objective in ("squared_error", "logistic"):
        params = (
            SMALL
            | limit
            | {"grow_policy": policy, "objective": objective, "n_estimators": 2}
        )
        assert_same(X, labels(rng, X, objective), params, w)


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "limit",
    [{}, {"reg_alpha": 0.5}, {"max_delta_step": 0.2}, {"min_samples_leaf": 9}],
    ids=str,
)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_instruction_set(
    isa: str, policy: str, objective: str, limit: dict[str, Any]
) -> None:
    rng = np.random.default_rng(16)
    X = table(rng, 170)
    for precision in ("narrow", "wide"):
        params = (
            SMALL
            | limit
            | {"grow_policy": policy, "objective": objective, "precision": precision}
        )
        assert_same(X, labels(rng, X, objective), params)


@pytest.mark.parametrize("policy", ["depthwise", "leafwise"])
def test_no_limits_at_all(policy: str) -> None:
    rng = np.random.default_rng(4)
    X = table(rng, 120)
    trees = assert_same(
        X, labels(rng, X, "squared_error"), {"grow_policy": policy, "reg_lambda": 0.0}
    )
    # nearly every row has its own leaf
    assert trees[0]["count"][trees[0]["column"] < 0].max() <= 3


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("max_bins", [2, 3, 16, 255, 256, 1000])
@pytest.mark.parametrize("policy", POLICIES)
def test_bins(policy: str, max_bins: int) -> None:
    rng = np.random.default_rng(5)
    X = table(rng, 400)
    assert_same(
        X,
        labels(rng, X, "logistic"),
        SMALL | {"grow_policy": policy, "objective": "logistic", "max_bins": max_bins},
    )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_heavy_tail(policy: str, precision: str) -> None:
    rng = np.random.default_rng(6)
    X = table(rng, 200)
    y = labels(rng, X, "squared_error")
    y[::67] *= 1e6
    assert_same(
        X, y, SMALL | {"grow_policy": policy, "precision": precision, "n_estimators": 4}
    )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ODD)
def test_odd_tables(name: str, policy: str) -> None:
    X, y = ODD[name]
    assert_same(X, y, SMALL | {"grow_policy": policy})


@pytest.mark.parametrize("policy", POLICIES)
def test_a_label_where_the_weight_is_zero_is_nowhere(policy: str) -> None:
    rng = np.random.default_rng(7)
    X = table(rng, 100)
    y = labels(rng, X, "squared_error")
    w = np.ones(100)
    y[10:14], w[10:14] = 1e30, 0
    assert_same(X, y, SMALL | {"grow_policy": policy}, w)
    assert_same(X, y, SMALL | {"grow_policy": policy}, w * 0.7)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "name", ["california_housing", "wine_quality", "adult", "letter"]
)
def test_real_data(name: str, policy: str) -> None:
    X, y, _ = getattr(datasets, name)()
    objective = {"adult": "logistic", "letter": "softmax"}.get(name, "squared_error")
    y = y % 4 if name == "letter" else y
    assert_same(
        X,
        y,
        SMALL
        | {
            "grow_policy": policy,
            "objective": objective,
            "n_estimators": 2,
            "max_bins": 100,
        },
    )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("weights", ["none", "real"])
def test_more_rows_than_a_packed_word_can_sum(policy: str, weights: str) -> None:
    rng = np.random.default_rng(14)
    X = table(rng, 140_000)[:, :4]
    y = labels(rng, X, "logistic")
    w = weight_of(rng, weights, len(X))
    params = {
        "grow_policy": policy,
        "objective": "logistic",
        "precision": "narrow",
        "max_bins": 40,
        "max_depth": 3,
    }
    assert_same(X, y, params | {"n_estimators": 1, "min_samples_leaf": 2000}, w)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(("rows", "classes"), [(8_192, 4), (9_000, 11), (131_072, 5)])
def test_outputs_whose_roots_are_counted_together(
    isa: str, rows: int, classes: int
) -> None:
    rng = np.random.default_rng(15)
    X = table(rng, rows)
    y = np.clip(
        np.floor(np.nan_to_num(X[:, 1]) + X[:, 2] + rng.normal(size=rows)),
        0,
        classes - 1,
    )
    assert_same(
        X,
        y,
        SMALL
        | {
            "objective": "softmax",
            "n_estimators": 1,
            "max_leaves": 4,
            "precision": "narrow",
        },
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_more_columns_than_a_tile_holds(policy: str) -> None:
    rng = np.random.default_rng(15)
    X = np.column_stack([table(rng, 250) for _ in range(15)])
    params = SMALL | {
        "grow_policy": policy,
        "colsample_bytree": 0.6,
        "colsample_bynode": 0.5,
        "max_bins": 50,
    }
    assert_same(X, labels(rng, X, "squared_error"), params)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Floats, Floats, dict[str, Any], Floats | None]:
    """Any small table, objective, weights and parameters."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, 120))
    X = table(rng, n)
    X = np.round(X) if draw(st.booleans()) else X  # whole numbers make equal scores
    objective = draw(st.sampled_from(OBJECTIVES))
    fraction = st.sampled_from([1.0, 1.0, 0.7, 0.3])
    params = {
        "objective": objective,
        "grow_policy": draw(st.sampled_from(POLICIES)),
        "precision": draw(st.sampled_from(PRECISIONS)),
        "max_bins": draw(st.sampled_from([2, 5, 30, 255, 300])),
        "min_samples_bin": draw(st.sampled_from([1, 1, 8])),
        "max_depth": draw(st.integers(1, 6)),
        "max_leaves": draw(st.one_of(st.none(), st.integers(2, 20))),
        "learning_rate": draw(st.sampled_from([0.1, 0.5, 1.0])),
        "reg_lambda": draw(st.sampled_from([0.0, 1.0, 0.3])),
        "reg_alpha": draw(st.sampled_from([0.0, 0.0, 0.7])),
        "max_delta_step": draw(st.sampled_from([0.0, 0.0, 0.3])),
        "path_smooth": draw(st.sampled_from([0.0, 0.0, 3.5])),
        "min_split_gain": draw(st.sampled_from([0.0, 0.0, 0.05])),
        "min_child_weight": draw(st.sampled_from([0.0, 1.0, 2.5])),
        "min_samples_leaf": draw(st.sampled_from([1, 1, 4])),
        "subsample": draw(fraction),
        "colsample_bytree": draw(fraction),
        "colsample_bylevel": draw(fraction),
        "colsample_bynode": draw(fraction),
        "seed": draw(st.integers(0, 2**63 - 1)),
    }
    y = np.round(labels(rng, X, objective), draw(st.integers(0, 9)))
    w = weight_of(rng, draw(st.sampled_from(WEIGHTS)), n)
    return X[:, draw(st.permutations(range(6)))], y, params, w


@settings(max_examples=examples(300))
@given(tasks())
def test_any_task(task: tuple[Floats, Floats, dict[str, Any], Floats | None]) -> None:
    assert_same(*task)


def test_a_tree_by_hand() -> None:
    X = np.array([[1.0], [2.0], [3.0], [np.nan]])
    y = np.array([0.0, 0.0, 10.0, 10.0])
    trees = assert_same(
        X,
        y,
        {"n_estimators": 1, "learning_rate": 0.5, "reg_lambda": 0.0, "max_depth": 1},
    )
    tree = {
        name: list(array)
        for name, array in trees[0].items()
        if not name.startswith("set")
    }
    assert tree == {
        "column": [0, -1, -1],
        "bin": [1, -1, -1],
        "threshold": [2.5, 0, 0],
        "missing_left": [0, 0, 0],
        "left": [1, 0, 0],
        "value": [0, -2.5, 2.5],  # half of the way from the mean, 5
        "gain": [50, 0, 0],  # 1/2 (10^2/2 + 10^2/2 - 0)
        "cover": [4, 2, 2],
        "count": [4, 2, 2],
    }


# ---- Objectives and leaf values ------------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("hessian", ["auto", "none"])
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("objective", SHELF)
@pytest.mark.parametrize("policy", POLICIES)
def test_objectives(policy: str, objective: str, leaf: str, hessian: str) -> None:
    rng = np.random.default_rng(20)
    X = table(rng, 100)
    y = labels(rng, X, objective)
    w = weight_of(rng, "real", 100)
    params = {
        "objective": objective,
        "grow_policy": policy,
        "leaf_estimation": leaf,
        "hessian": hessian,
    }
    booster = assert_same_model(X, y, params | {"subsample": 0.8}, w)
    assert booster.trees.n_nodes >= 5 * booster.trees.n_trees


@pytest.mark.pairwise
@pytest.mark.parametrize("leaf", ["newton", "exact"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", SHELF)
def test_objectives_with_weights(objective: str, weights: str, leaf: str) -> None:
    rng = np.random.default_rng(21)
    X = table(rng, 90)
    y = labels(rng, X, objective)
    w = weight_of(rng, weights, 90)
    limits = {"reg_alpha": 0.3, "max_delta_step": 0.7, "min_samples_leaf": 3}
    for hessian, precision in (("auto", "wide"), ("none", "narrow"), ("none", "wide")):
        params = {
            "objective": objective,
            "precision": precision,
            "leaf_estimation": leaf,
            "hessian": hessian,
        }
        assert_same_model(X, y, params | limits, w)


@pytest.mark.pairwise
@pytest.mark.parametrize("search", ["none", "tree"])
@pytest.mark.parametrize("leaf", ["newton", "exact", "sign"])
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_fields(fields: dict[str, Any], leaf: str, search: str) -> None:
    rng = np.random.default_rng(22)
    X = table(rng, 100)
    y = labels(rng, X, fields["objective"])
    w = weight_of(rng, "whole", 100)
    assert_same_model(
        X, y, fields | {"leaf_estimation": leaf, "line_search": search}, w
    )


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "penalty",
    [{}, {"reg_lambda": 0.0, "reg_alpha": 0.2}, {"max_delta_step": 0.3}],
    ids=str,
)
@pytest.mark.parametrize("leaf", ["newton", "gradient"])
@pytest.mark.parametrize("objective", SHELF)
def test_leaf_iterations(objective: str, leaf: str, penalty: dict[str, float]) -> None:
    rng = np.random.default_rng(23)
    X = table(rng, 100)
    y = labels(rng, X, objective)
    w = weight_of(rng, "real", 100)
    params = {
        "objective": objective,
        "leaf_estimation": leaf,
        "leaf_iterations": 4,
    } | penalty
    assert_same_model(X, y, params | {"subsample": 0.7}, w)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("objective", SHELF)
def test_line_search(objective: str, leaf: str) -> None:
    rng = np.random.default_rng(24)
    X = table(rng, 100)
    y = labels(rng, X, objective)
    w = weight_of(rng, "whole", 100)
    assert_same_model(
        X,
        y,
        {"objective": objective, "leaf_estimation": leaf, "line_search": "tree"},
        w,
    )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "objective",
    [
        name
        for name, goal in SHELF.items()
        if goal.labels != "a class index" and not goal.adaptive
    ],
)
def test_two_targets(objective: str) -> None:
    rng = np.random.default_rng(25)
    X = table(rng, 100)
    y = np.column_stack([labels(rng, X, objective), labels(rng, X[::-1], objective)])
    assert_same_model(
        X,
        y,
        {"objective": objective, "leaf_estimation": "exact"},
        weight_of(rng, "real", 100),
    )
    booster = assert_same_model(X, y, {"objective": objective, "subsample": 0.7})
    assert booster.predict(X).shape == (100, 2)


@pytest.mark.pairwise
@pytest.mark.parametrize("alpha", [1e-4, 0.02, 0.1, 1e9])
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("policy", POLICIES)
def test_pruning(policy: str, leaf: str, alpha: float) -> None:
    rng = np.random.default_rng(26)
    X = table(rng, 150)
    sizes = []
    for objective in ("squared_error", "logistic", "absolute_error", "softmax"):
        params = {
            "objective": objective,
            "grow_policy": policy,
            "leaf_estimation": leaf,
            "ccp_alpha": alpha,
        }
        booster = assert_same_model(
            X, labels(rng, X, objective), params | {"subsample": 0.8}
        )
        sizes.append(booster.trees.n_nodes / booster.trees.n_trees)
    assert (max(sizes) == 1) == (alpha == 1e9)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "rate",
    [0.4, [0.5, 0.25, 0.1], lambda round: 0.5 / (1 + round)],
    ids=["one", "list", "function"],
)
@pytest.mark.parametrize("leaf", LEAVES)
def test_learning_rates(leaf: str, rate: Any) -> None:
    rng = np.random.default_rng(27)
    X = table(rng, 100)
    params = {"learning_rate": rate, "leaf_estimation": leaf, "n_estimators": 3}
    for objective in ("squared_error", "logistic"):
        assert_same_model(
            X, labels(rng, X, objective), params | {"objective": objective}
        )


@pytest.mark.parametrize("start", [0.25, [0.1, -0.2, 0.3]])
@pytest.mark.parametrize("objective", ["softmax", "one_vs_all"])
def test_given_start(objective: str, start: Any) -> None:
    rng = np.random.default_rng(28)
    X = table(rng, 100)
    assert_same_model(
        X, labels(rng, X, objective), {"objective": objective, "start": start}
    )


@st.composite
def goals(draw: st.DrawFn) -> tuple[Floats, Floats, dict[str, Any], Floats | None]:
    """Any objective and leaf rule on any small task."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, 80))
    X = table(rng, n)
    fields = draw(st.sampled_from([*FIELDS, *({"objective": name} for name in SHELF)]))
    leaf = draw(st.sampled_from(LEAVES))
    method = SHELF[fields["objective"]].leaf if leaf == "auto" else leaf
    params = fields | {
        "leaf_estimation": leaf,
        "leaf_iterations": draw(st.sampled_from([1, 2, 6]))
        if method in ("newton", "gradient")
        else 1,
        "hessian": draw(st.sampled_from(["auto", "none"])),
        "line_search": draw(st.sampled_from(["none", "none", "tree"])),
        "ccp_alpha": draw(st.sampled_from([0.0, 0.0, 0.01])),
        "grow_policy": draw(st.sampled_from(POLICIES)),
        "precision": draw(st.sampled_from(PRECISIONS)),
        "max_depth": draw(st.integers(1, 4)),
        "learning_rate": draw(st.sampled_from([0.1, 0.5])),
        "reg_lambda": draw(st.sampled_from([0.3, 1.0])),
        "reg_alpha": draw(st.sampled_from([0.0, 0.0, 0.7])),
        "max_delta_step": draw(st.sampled_from([0.0, 0.0, 0.3])),
        "subsample": draw(st.sampled_from([1.0, 0.6])),
        "seed": draw(st.integers(0, 2**63 - 1)),
    }
    y = np.round(labels(rng, X, fields["objective"]), draw(st.integers(1, 9)))
    return X, y, params, weight_of(rng, draw(st.sampled_from(WEIGHTS)), n)


@settings(max_examples=examples(200))
@given(goals())
def test_any_goal(task: tuple[Floats, Floats, dict[str, Any], Floats | None]) -> None:
    assert_same_model(*task)


@pytest.mark.parametrize("objective", SHELF)
def test_losses(objective: str, isa: str) -> None:
    """Far scores too: losses, gradients and hessians have the bits of the specification
    and stay numbers.
    """
    goal = SHELF[objective]
    rng = np.random.default_rng(29)
    y = labels(rng, table(rng, 400), objective)
    y = np.minimum(y, 1) if goal.labels == "a class index" else y
    s = np.concatenate([y[:50], rng.normal(size=150) * 3, rng.uniform(-700, 700, 200)])
    for fields in [{}] + [other for other in FIELDS if other["objective"] == objective]:
        values = {
            name: fields.get(name, default) for name, default in goal.fields.items()
        }
        f = (*values.values(), math.inf) if goal.adaptive else tuple(values.values())
        with np.errstate(over="ignore", invalid="ignore"):
            expected = goal.loss(s, y, f), *goal.grad_hess(s, y, f)
        for what, actual, value in zip(
            ("loss", "g", "h"),
            _core.evaluate(objective, values, s, y),
            expected,
            strict=True,
        ):
            assert_bits(actual, np.asarray(value), what)
            assert np.isfinite(actual).all()
            assert what != "h" or actual.min() > 0


# ---- The parts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [(0, 1, 0, 0), (42, 2, 7, 0), (2**63 - 1, 5, 999, 12), (2**64 - 1, 3, 2**40, 1)],
)
def test_draw(key: tuple[int, int, int, int]) -> None:
    assert_bits(_core.draw(*key, 1000), reference.draw(*key, np.arange(1000)), "draw")


def test_draws_by_hand() -> None:
    assert [int(v) for v in reference.fold(np.zeros(1, np.uint64), 0)] == [
        0xE220A8397B1DCDAF
    ]  # SplitMix64's first, seed 0


@pytest.mark.pairwise
@pytest.mark.parametrize("max_bins", [2, 3, 7, 64, 255, 1000])
@pytest.mark.parametrize("least", [1, 10, 32])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_cuts_and_codes(max_bins: int, weights: str, least: int) -> None:
    rng = np.random.default_rng(9)
    X = table(rng, 700)
    w = weight_of(rng, weights, 700)
    cuts = _core.cuts([X], w, max_bins, least, 2)
    binned = _core.Binned([X], cuts, 2)
    for column, x in enumerate(X.T):
        expected = reference.cuts(x, reference.weights(w, 700), max_bins, least)
        assert len(expected) < max_bins
        assert_bits(cuts[column], expected, f"cuts of column {column}")
        assert_bits(
            binned.codes(column).astype(np.int64),
            reference.codes(x, expected),
            f"codes of column {column}",
        )


@pytest.mark.parametrize("weights", WEIGHTS)
def test_cuts_of_a_sample(weights: str) -> None:
    rng = np.random.default_rng(10)
    n = reference.SAMPLE + 30_000
    smooth = rng.normal(size=n)
    few = np.round(
        np.where(rng.random(n) < 0.01, np.nan, rng.normal(size=n)), 3
    )  # distinct values: more, and fewer in the sample
    X = np.column_stack([smooth, few, np.where(rng.random(n) < 0.7, 0.0, smooth)])
    w = weight_of(rng, weights, n)
    for column, actual in enumerate(_core.cuts([X], w, 255, 1, 2)):
        assert_bits(
            actual,
            reference.cuts(X[:, column], reference.weights(w, n), 255, 1),
            f"cuts of column {column}",
        )


def test_cuts_by_hand() -> None:
    def cut(values: list[float], max_bins: int) -> list[float]:
        return list(_core.cuts([np.array(values)[:, None]], None, max_bins, 1, 1)[0])

    assert cut([3, 1, 2, 1], 3) == [1.5, 2.5]
    assert cut([1, 2, 3, 4, 5, 6], 3) == [2.5, 4.5]
    # the spike has a bin of its own
    assert cut([0, 0, 0, 0, 0, 0, 1, 2, 3], 3) == [0.5, 2.5]
    assert cut([16777216.0, 16777217.0], 255) == [16777216.5]
    assert cut([1.0, math.nextafter(1.0, 2.0)], 255) == [1.0]
    assert cut([-math.inf, math.nan, 5.0, math.inf], 255) == [-sys.float_info.max, 5.0]
    assert cut([-math.inf, math.inf], 255) == [-sys.float_info.max]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e17, 1e290])
def test_exact_sum(scale: float, weights: str) -> None:
    rng = np.random.default_rng(11)
    x = rng.standard_cauchy(500) * scale
    w = weight_of(rng, weights, 500)
    expected = reference.exact_sum(x, reference.weights(w, 500))
    assert _core.exact_sum(x, w, 2) == expected
    # 62 bits of the largest term
    assert expected == pytest.approx(math.fsum(x if w is None else x * w), rel=1e-9)


def test_exact_sum_is_rounded_once() -> None:
    x = np.array([1.0, 2.0**-53, 2.0**-60])
    # float64 additions in this order give 1
    assert _core.exact_sum(x, None, 1) == 1 + 2.0**-52
    assert _core.exact_sum(np.zeros(3), None, 1) == 0.0


@pytest.mark.parametrize("weights", ["whole", "real"])
def test_weight_sum(weights: str) -> None:
    w = weight_of(np.random.default_rng(12), weights, 500)
    assert w is not None
    assert _core.weight_sum(w, 2) == reference.weights(w, 500).total


@pytest.mark.parametrize(
    ("weight", "whole"),
    [
        ([2.0**20, 1.0], True),
        ([2.0**20 + 1, 1.0], False),
        ([0.5, 1.0], False),
        ([0.0, 3.0], True),
        ([2.0**20] * 2049, False),
    ],
)
def test_whole_weights(weight: list[float], whole: bool) -> None:
    w = reference.weights(np.array(weight), len(weight))
    assert (w.shift == 0 and bool(np.all(w.factor == 1))) == whole
    assert whole or 2**29 <= w.count.max() <= 2**30


def test_exponent_by_hand() -> None:
    assert [reference.exponent(m) for m in (0.0, 1.0, 1.5, 2.0, 0.75, 0.5, 1e-300)] == [
        0,
        0,
        1,
        1,
        0,
        -1,
        -960,
    ]


# ---- Functions -----------------------------------------------------------------------

# As core/math/real.h states them.
MAX_ULP = {
    "exp": 1,
    "log": 1,
    "log1p": 1,
    "expm1": 2,
    "softplus": 2,
    "sigmoid": 3,
    "tanh": 3,
}


def truth(name: str, x: float) -> Decimal:
    """The value to 60 digits."""
    d = Decimal(x)
    if name == "exp":
        return d.exp()
    if name == "expm1":
        return d.exp() - 1
    if name == "sigmoid":
        return 1 / (1 + (-d).exp())
    if name == "tanh":
        return ((2 * d).exp() - 1) / ((2 * d).exp() + 1)
    if name == "softplus":
        return (1 + d.exp()).ln() if d > -50 else d.exp() * (1 - d.exp() / 2)
    return d.ln() if name == "log" else (1 + d).ln()


def arguments(name: str) -> Floats:
    """Ordinary ones, those where cancellation bites, and the ends of the range."""
    rng = np.random.default_rng(13)
    small = np.exp(rng.uniform(-40, 0, 300)) * rng.choice([-1.0, 1.0], 300)
    if name == "log":
        return np.concatenate(
            [
                np.exp(rng.uniform(-740, 709, 500)),
                rng.uniform(0.5, 2, 1500),
                1 + small / 2,
                [5e-324, 1.7e308],
            ]
        )
    if name == "log1p":
        return np.concatenate(
            [
                rng.uniform(-0.999, 3, 1500),
                np.exp(rng.uniform(0, 700, 300)),
                small * 0.9,
            ]
        )
    ends = {
        "exp": (-744.0, 709.7),
        "expm1": (-50.0, 709.7),
        "softplus": (-700.0, 700.0),
        "sigmoid": (-700.0, 40.0),
        "tanh": (-25.0, 25.0),
    }[name]
    return np.concatenate([rng.uniform(*ends, 500), rng.uniform(-2, 2, 1500), small])


@pytest.mark.parametrize("name", MAX_ULP)
def test_functions(name: str) -> None:
    x = arguments(name)
    y = _core.math(name, x)
    assert_bits(y, getattr(real_spec, name)(x), name)
    with decimal.localcontext(decimal.Context(prec=60, Emin=-9999, Emax=9999)):
        for argument, value in zip(x, y, strict=True):
            exact = truth(name, float(argument))
            ulp = Decimal(float(np.spacing(abs(float(exact)))))
            assert abs(Decimal(float(value)) - exact) <= MAX_ULP[name] * ulp, argument


@pytest.mark.parametrize("name", ["exp", "sigmoid"])
def test_functions_of_blocks(name: str, isa: str) -> None:
    edges = [
        -np.inf,
        -746.5,
        -745.2,
        -708.5,
        -0.0,
        0.0,
        5e-324,
        709.8,
        710.5,
        np.inf,
        np.nan,
    ]
    x = np.concatenate([arguments(name), edges, np.linspace(-746, -700, 997)])
    assert_bits(_core.link(name, x[:, None])[:, 0], getattr(real_spec, name)(x), name)
    for n in (1, 7, 8, 9, 511, 513):
        assert_bits(
            _core.link(name, x[:n, None])[:, 0],
            getattr(real_spec, name)(x[:n]),
            f"{n} values",
        )


def test_functions_at_the_edges() -> None:
    assert list(_core.math("exp", np.array([-np.inf, -746.0, 0.0, 710.0, np.inf]))) == [
        0,
        0,
        1,
        np.inf,
        np.inf,
    ]
    assert list(_core.math("log", np.array([0.0, 1.0, np.inf]))) == [-np.inf, 0, np.inf]
    assert list(_core.math("log1p", np.array([-1.0, 0.0, np.inf]))) == [
        -np.inf,
        0,
        np.inf,
    ]
    assert list(_core.math("expm1", np.array([-np.inf, 0.0, np.inf]))) == [
        -1,
        0,
        np.inf,
    ]
    assert list(_core.math("sigmoid", np.array([-np.inf, 0.0, np.inf]))) == [0, 0.5, 1]
    assert list(_core.math("softplus", np.array([-np.inf, 0.0, np.inf]))) == [
        0,
        math.log(2),
        np.inf,
    ]
    assert list(_core.math("tanh", np.array([-np.inf, -0.0, 0.0, 30.0, np.inf]))) == [
        -1,
        0,
        0,
        1,
        1,
    ]
    assert np.isnan(_core.math("log", np.array([-1.0]))[0])


@pytest.mark.parametrize("name", MAX_ULP)
def test_there_is_one_nan(name: str) -> None:
    """Compilers differ in the sign and the digits of a NaN: signalling, quiet,
    negative, with digits.
    """
    bits = np.array(
        [
            0x7FF0000000000001,
            0x7FF8000000000000,
            0xFFF8000000000000,
            0x7FF8000000000123,
        ],
        np.uint64,
    )
    assert (_core.math(name, bits.view(np.float64)).view(np.uint64) == bits[1]).all()
