"""Linear leaves in blocks of rows, as tables of slopes: the bits of single rows, on
every instruction set.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sapwood
from sapwood import Booster, Dataset
from sapwood.model.trees import Trees

RNG = np.random.default_rng(0)
X = RNG.lognormal(0.0, 0.8, (1100, 40)).astype(np.float32)
Y = (
    np.log(X[:, 0]) * X[:, 1]
    + np.sqrt(X[:, 2:]).sum(axis=1)
    + 0.1 * RNG.normal(size=len(X))
)
X[RNG.random(X.shape) < 0.03] = np.nan
FEW = X[:, :6]
SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {  # the table, and how trees grow
    "symmetric": (FEW, {"grow_policy": "symmetric", "max_depth": 6}),
    "symmetric, few leaves": (FEW, {"grow_policy": "symmetric", "max_depth": 3}),
    "leafwise": (FEW, {"max_leaves": 31}),
    "200 leaves": (FEW, {"max_leaves": 200, "min_samples_leaf": 2}),
    "more columns than tables": (X, {"max_leaves": 100, "min_samples_leaf": 2}),
    "raw": (FEW, {"linear_units": "raw"}),
}


def trained(table: Any, **params: Any) -> Booster:
    given = {
        "n_estimators": 5,
        "linear_units": "standard",
        "linear_smooth": 1.0,
        **params,
    }
    booster = sapwood.train(given, Dataset(table, Y, linear_leaves=True))
    assert booster.linear
    return booster


def one_by_one(booster: Booster, table: Any) -> Any:
    return np.concatenate(
        [booster.predict(table[i : i + 40], raw=True) for i in range(0, len(table), 40)]
    )


@pytest.mark.pairwise
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_are_rows(shape: str, isa: str) -> None:
    table, params = SHAPES[shape]
    booster = trained(table, **params)
    if shape == "more columns than tables":
        assert booster.trees.linear is not None
        first, last = booster.trees.offset[4:6]
        columns = booster.trees.linear.slice(int(first), int(last)).linear_column
        assert len(np.unique(columns)) > 33
    wanted = one_by_one(booster, table)
    for n_jobs in (1, 2, 3, 7):
        assert_array_equal(booster.predict(table, raw=True, n_jobs=n_jobs), wanted)
    assert_array_equal(booster.predict(np.asfortranarray(table), raw=True), wanted)
    far = np.where(table > 1, np.float32(np.inf), -table)
    assert_array_equal(booster.predict(far, raw=True), one_by_one(booster, far))


def test_blocks_that_share_a_pass() -> None:
    """Many tables: four blocks go through the trees together."""
    booster = trained(FEW, grow_policy="symmetric", max_depth=6)
    booster = replace(booster, trees=Trees.concat([booster.trees] * 60))
    many = np.tile(FEW, (9, 1))[:9500]  # 19 blocks, the last in part
    wanted = np.tile(one_by_one(booster, FEW), 9)[:9500]
    for n_jobs in (1, 2, 3):
        assert_array_equal(booster.predict(many, raw=True, n_jobs=n_jobs), wanted)


def test_sums_that_might_be_infinite_take_the_value() -> None:
    """Bounds so wide that a line can overflow: its leaf's value stands, in blocks as in
    single rows.
    """
    booster = trained(FEW, max_leaves=8)
    linear = booster.trees.linear
    assert linear is not None
    bounds = linear.linear_bounds.copy()
    bounds[0::3], bounds[1::3] = -1e308, 1e308
    wide = replace(linear, linear_bounds=bounds, linear_coef=linear.linear_coef * 50)
    other = replace(booster, trees=replace(booster.trees, linear=wide))
    far = np.where(FEW > 1, 1e308, -1e308)
    wanted = one_by_one(other, far)
    assert np.isfinite(wanted).all()
    assert_array_equal(other.predict(far, raw=True), wanted)


GROUPS: dict[str, tuple[int, dict[str, Any]]] = {  # classes, and how trees grow
    "symmetric": (3, {"grow_policy": "symmetric", "max_depth": 6}),
    "leafwise": (6, {"max_leaves": 31}),
    "more classes than lanes": (10, {"max_leaves": 20}),
    "two classes too few": (2, {"max_leaves": 20, "objective": "softmax"}),
}


def trained_groups(n_classes: int, **params: Any) -> Booster:
    """Trees of a round have the same splits, one tree for each class."""
    place = np.argsort(np.argsort(Y)) * n_classes // len(Y)
    given = {
        "objective": "softmax",
        "num_class": n_classes,
        "multi_strategy": "multi_output_tree",
        **params,
    }
    booster = sapwood.train(
        {"n_estimators": 5, "linear_units": "standard", "linear_smooth": 1.0, **given},
        Dataset(FEW, place, linear_leaves=True),
    )
    assert booster.linear
    return booster


@pytest.mark.pairwise
@pytest.mark.parametrize("shape", GROUPS)
def test_groups_are_rows(shape: str, isa: str) -> None:
    n_classes, params = GROUPS[shape]
    booster = trained_groups(n_classes, **params)
    wanted = one_by_one(booster, FEW)
    for n_jobs in (1, 2, 3, 7):
        assert_array_equal(booster.predict(FEW, raw=True, n_jobs=n_jobs), wanted)
    for i, stage in enumerate(booster.staged_predict(FEW, raw=True), 1):
        assert_array_equal(stage, booster.predict(FEW, raw=True, rounds=i))
    assert_array_equal(
        booster.predict(FEW, raw=True, rounds=(1, 4))[7:47],
        booster.predict(FEW[7:47], raw=True, rounds=(1, 4)),
    )


def test_parts_of_a_group() -> None:
    """A range of trees that begins and ends within groups, and groups between trees of
    other splits.
    """
    booster = trained_groups(3, max_leaves=31)
    other = trained_groups(3, max_leaves=31, multi_strategy="one_tree_per_output")
    booster = replace(
        booster, trees=Trees.concat([booster.trees, other.trees, booster.trees])
    )
    forest = booster._forest
    table = np.ascontiguousarray(FEW, np.float64)
    for first, last in ((0, 45), (1, 44), (2, 4), (14, 31)):
        parts = [
            forest.predict(table[i : i + 40], first, last, True, None, 1)
            for i in range(0, len(table), 40)
        ]
        assert_array_equal(
            forest.predict(table, first, last, True, None, 1), np.concatenate(parts)
        )


@pytest.mark.parametrize("leaves", [2, 31, 64, 200])
def test_splits_that_trees_share(leaves: int, isa: str) -> None:
    """Many trees of few splits: blocks answer each split once, missing values on both
    sides, and sets of categories.
    """
    table = FEW.copy()
    table[:, 5] = RNG.integers(0, 12, len(table))
    for linear in (True, False):
        data = Dataset(table, Y, linear_leaves=linear, categorical_feature=[5])
        params = {
            "n_estimators": 8,
            "max_leaves": leaves,
            "min_samples_leaf": 2,
            "max_bin": 16,
        }
        booster = sapwood.train(params, data)
        booster = replace(booster, trees=Trees.concat([booster.trees] * 4))
        for n_jobs in (1, 3):
            assert_array_equal(
                booster.predict(table, raw=True, n_jobs=n_jobs),
                one_by_one(booster, table),
            )
