"""Verdicts on constraints: proofs for models that keep them, rows for those that do
not.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Booster, Dataset
from sapwood.errors import ParameterError
from sapwood.model.trees import Trees

Floats = NDArray[np.float64]


def stump(
    column: int, threshold: float, left: float, right: float, missing_left: int = 0
) -> dict[str, Any]:
    """A tree of one split."""
    zeros = np.zeros(3)
    return {
        "column": np.array([column, -1, -1], np.int32),
        "threshold": np.array([threshold, 0, 0]),
        "missing_left": np.array([missing_left, 0, 0], np.uint8),
        "left": np.array([1, 0, 0], np.int32),
        "value": np.array([0, left, right]),
        "gain": zeros,
        "cover": zeros,
        "count": zeros,
    }


def model(trees: list[Any], **params: Any) -> Booster:
    """A model of such trees over two columns."""
    no_sets = {"set_offset": np.zeros(1, np.int64), "set_code": np.empty(0, np.int32)}
    blank = [
        no_sets | {"set": np.full(len(tree["column"]), -1, np.int32)} for tree in trees
    ]
    return Booster(
        Trees.of([(some | tree, 0) for some, tree in zip(blank, trees, strict=True)]),
        base=np.zeros(1),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=["a", "b"],
        named=False,
        params=params,
    )


RISING = {"monotone_constraints": {"a": 1}}


def test_a_rising_stump() -> None:
    verdicts = model([stump(0, 1.0, -1.0, 1.0)], **RISING).check_constraints()
    assert verdicts
    assert verdicts.monotone["a"].holds is True
    assert verdicts.interaction is None


def test_a_falling_stump_is_refuted_by_two_rows() -> None:
    booster = model([stump(0, 1.0, 1.0, -1.0)], **RISING)
    verdict = booster.check_constraints().monotone["a"]
    assert verdict.holds is False
    assert verdict.rows is not None
    low, high = booster.predict(verdict.rows)
    assert verdict.rows[0, 0] < verdict.rows[1, 0]
    assert verdict.rows[0, 1] == verdict.rows[1, 1]
    assert low > high
    assert model(
        [stump(0, 1.0, 1.0, -1.0)], monotone_constraints={"a": -1}
    ).check_constraints()


def test_a_tree_that_falls_in_a_sum_that_rises_is_not_proven() -> None:
    verdict = (
        model([stump(0, 1.0, 0.5, 0.0), stump(0, 1.0, -1.0, 1.0)], **RISING)
        .check_constraints()
        .monotone["a"]
    )
    assert verdict.holds is None
    assert not verdict
    assert "1 trees" in verdict.why


def test_values_against_missing_have_no_order() -> None:
    assert model([stump(0, np.inf, 5.0, -5.0)], **RISING).check_constraints()


def test_leaves_that_no_change_of_the_column_can_lead_to_may_cross() -> None:
    """Split by b first: where b is low, a goes from 5 to 6; where it is high, from 0 to
    1.
    """
    tree = {
        "column": np.array([1, 0, 0, -1, -1, -1, -1], np.int32),
        "threshold": np.array([0.5, 1, 2, 0, 0, 0, 0.0]),
        "missing_left": np.zeros(7, np.uint8),
        "left": np.array([1, 3, 5, 0, 0, 0, 0], np.int32),
        "value": np.array([0, 0, 0, 5.0, 6.0, 0.0, 1.0]),
        **{name: np.zeros(7) for name in ("gain", "cover", "count")},
    }
    assert model([tree], **RISING).check_constraints()
    tree["value"] = np.array([0, 0, 0, 5.0, 6.0, 1.0, 0.0])
    verdict = model([tree], **RISING).check_constraints().monotone["a"]
    assert verdict.holds is False
    assert verdict.rows is not None
    assert verdict.rows[0, 1] > 0.5


def test_what_is_below_a_column_is_compared_only_where_the_rest_is_alike() -> None:
    """Split by a, then both sides by b: 0 and 8 on the left, 6 and 10 on the right
    cross but never along a.
    """
    tree = {
        "column": np.array([0, 1, 1, -1, -1, -1, -1], np.int32),
        "threshold": np.array([0.5, 0.5, 0.5, 0, 0, 0, 0]),
        "missing_left": np.zeros(7, np.uint8),
        "left": np.array([1, 3, 5, 0, 0, 0, 0], np.int32),
        "value": np.array([0, 0, 0, 0.0, 8.0, 6.0, 10.0]),
        **{name: np.zeros(7) for name in ("gain", "cover", "count")},
    }
    assert model([tree], **RISING).check_constraints()
    # between 0.5 and 0.7 it falls from 8 to 6
    tree["threshold"] = np.array([0.5, 0.5, 0.7, 0, 0, 0, 0])
    verdict = model([tree], **RISING).check_constraints().monotone["a"]
    assert verdict.holds is False
    assert verdict.rows is not None
    assert 0.5 < verdict.rows[0, 1] <= 0.7


@pytest.mark.parametrize(
    ("groups", "holds"),
    [
        ([["a", "b"]], True),
        ("pairwise", True),
        ([["a"]], False),
        ("no_interactions", False),
    ],
)
def test_groups(groups: Any, holds: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    booster = sapwood.train(
        {"n_estimators": 2},
        Dataset(X, label=X[:, 0] * X[:, 1], feature_names=["a", "b"]),
    )
    verdict = replace(
        booster, params={**booster.params, "interaction_constraints": groups}
    ).check_constraints()
    assert bool(verdict) == holds
    assert verdict.interaction is not None
    assert holds or "a, b" in verdict.interaction.why


def test_a_free_model_is_found_out() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=500)
    booster = sapwood.train({"n_estimators": 20}, Dataset(X, label=y))
    claims = {"monotone_constraints": dict.fromkeys(booster.feature_names[:1], 1)}
    verdict = (
        replace(booster, params={**booster.params, **claims})
        .check_constraints()
        .monotone[booster.feature_names[0]]
    )
    assert verdict.holds is False
    assert verdict.rows is not None
    assert np.diff(booster.predict(verdict.rows)) < 0


def test_no_constraints_are_kept() -> None:
    assert model(
        [stump(0, 1.0, 1.0, -1.0)], monotone_constraints=None
    ).check_constraints()


def test_constraints_that_were_not_read_are_unknown_until_they_are_given() -> None:
    foreign = model([stump(0, 1.0, 1.0, -1.0)])
    verdicts = foreign.check_constraints()
    assert not verdicts
    assert not verdicts.monotone
    assert "give them" in verdicts.unknown
    assert foreign.check_constraints(monotone_constraints={"a": -1})
    assert foreign.check_constraints(monotone_constraints=[0, 1])
    assert foreign.check_constraints({0: 1}).monotone["a"].holds is False
    assert foreign.check_constraints(
        interaction_constraints="no_interactions"
    ).interaction
    with pytest.raises(ParameterError, match="names the column 'q'"):
        foreign.check_constraints({"q": 1})


def test_given_constraints_are_judged_instead_of_the_models_own() -> None:
    rising = model([stump(0, 1.0, -1.0, 1.0)], **RISING)
    assert rising.check_constraints()
    assert not rising.check_constraints({"a": -1})


def test_a_model_of_another_library() -> None:
    xgboost = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(200, 2))
    params = {"monotone_constraints": "(1,0)", "nthread": 1, "max_depth": 3}
    read = sapwood.load(xgboost.train(params, xgboost.DMatrix(X, X[:, 0] + X[:, 1]), 5))
    assert read.check_constraints().unknown
    assert sapwood.load(read.to_bytes()).check_constraints().unknown
    assert read.check_constraints({"f0": 1})
