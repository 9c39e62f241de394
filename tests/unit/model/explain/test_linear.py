"""Explanations of linear leaves: against games played out coalition by coalition, and
the laws of Shapley values.
"""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import sapwood
from sapwood import Booster, Dataset
from sapwood.errors import ParameterError
from spec.reference import explain as reference
from spec.reference.explain_lines import line_of, path_game

Floats = NDArray[np.float64]
NEAR = {"rtol": 0, "atol": 1e-9}
UNITS = ("raw", "standard")
POLICIES = ("leafwise", "symmetric", "depthwise")


def rows(
    n: int = 400, width: int = 5, seed: int = 1, missing: float = 0.08
) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0.0, 0.7, (n, width))
    X[:, 1] = np.round(2 * X[:, 1])
    y = X[:, 0] * X[:, 1] + (X[:, 2] > 1) * X[:, 3] + 0.2 * rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def train(X: Any, y: Any, units: str, **params: Any) -> Booster:
    given = {
        "n_estimators": 4,
        "max_depth": 4,
        "learning_rate": 0.4,
        "linear_units": units,
        "linear_smooth": 2.0,
    }
    booster = sapwood.train(given | params, Dataset(X, y, linear_leaves=True))
    assert booster.linear
    return booster


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("policy", POLICIES)
def test_path_dependent_values_are_the_games(policy: str, units: str) -> None:
    X, y = rows()
    booster = train(X, y, units, grow_policy=policy)
    told = booster.explain(X)
    assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(X, raw=True), **NEAR
    )
    complete = int(np.flatnonzero(~np.isnan(X).any(axis=1))[0])
    for i in (0, 1, complete):
        wanted = np.zeros(5)
        for index in range(booster.trees.n_trees):
            wanted += reference.enumerate_values(path_game(booster, index, X[i]), 5)
        assert_allclose(told.values[i], wanted, **NEAR)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("policy", POLICIES)
def test_background_values_are_the_games(policy: str, units: str) -> None:
    """Of predictions themselves: a missing value of the row or of the background
    switches lines off in raw units.
    """
    X, y = rows()
    booster = train(X, y, units, grow_policy=policy)
    others = X[200:213]
    told = booster.explain(X[:60], background=others)
    for i in range(3):
        game = reference.background_game(
            lambda mixed: booster.predict(mixed, raw=True), X[i], others
        )
        assert_allclose(told.values[i], reference.enumerate_values(game, 5), **NEAR)
        assert told.base_values[i] == pytest.approx(game(frozenset()), abs=1e-9)


@pytest.mark.parametrize("against", [False, True], ids=["path", "background"])
@pytest.mark.parametrize("units", UNITS)
def test_interactions_are_the_games(units: str, against: bool) -> None:
    X, y = rows()
    booster = train(X, y, units, n_estimators=2)  # the first tree has no lines
    others = X[200:213] if against else None
    told = booster.explain(X[:40], background=others, interactions=True)
    for i in range(3):
        first, second = (path_game(booster, index, X[i]) for index in (0, 1))
        game = lambda known: first(known) + second(known)  # noqa: B023, E731
        if others is not None:
            game = reference.background_game(
                lambda mixed: booster.predict(mixed, raw=True), X[i], others
            )
        assert_allclose(
            told.values[i], reference.enumerate_interactions(game, 5), **NEAR
        )
    assert_allclose(
        told.values.sum(axis=2),
        booster.explain(X[:40], background=others).values,
        **NEAR,
    )


def test_the_mean_of_a_line_of_one_column_is_that_of_its_rows() -> None:
    """Squared error: a leaf's value is the line at the mean of its rows, and nothing
    known is the mean prediction.
    """
    X, y = rows(missing=0.0)
    booster = train(X[:, :1], y, "standard", max_depth=2)
    assert booster.trees.linear is not None
    leaves = booster.predict_leaves(X[:, :1])
    low, high, _ = booster.trees.linear.linear_bounds
    seen = 0
    for index in range(1, 4):
        tree = reference.Tree(booster.trees, index, "count")
        for leaf in np.unique(leaves[:, index]).tolist():
            for slope, mean in line_of(booster, index, tree, leaf).values():
                inside = np.clip(X[leaves[:, index] == leaf, 0], low, high)
                assert mean == pytest.approx(slope * inside.mean(), rel=1e-3)
                seen += 1
    assert seen > 6
    assert booster.explain(X[:1, :1]).base_values[0] == pytest.approx(
        booster.predict(X[:, :1]).mean(), rel=1e-5
    )


def test_paths_of_many_columns() -> None:
    """More columns than a pattern has bits: every row has its own entry, with and
    without missing values.
    """
    rng = np.random.default_rng(4)
    n = 20
    X = rng.normal(size=(4000, n))
    X[rng.random(4000) < 0.2, 3] = np.nan
    y = np.where(
        (X[:, : n - 1] > -1.2).all(axis=1),
        5 * X[:, n - 1],
        -np.nansum(X > -1.2, axis=1),
    )
    for units in UNITS:
        given = {
            "max_leaves": 60,
            "max_depth": None,
            "min_samples_leaf": 1,
            "min_child_weight": 0,
        }
        booster = train(X, y, units, n_estimators=3, **given)
        assert booster._explainer.max_path_columns > 16
        told = booster.explain(X[:30])
        pairs = booster.explain(X[:3], interactions=True)
        assert_allclose(
            told.values.sum(axis=1) + told.base_values,
            booster.predict(X[:30], raw=True),
            **NEAR,
        )
        assert_allclose(pairs.values.sum(axis=2), told.values[:3], **NEAR)
        against = booster.explain(X[:20], background=X[30:35])
        assert_allclose(
            against.values.sum(axis=1) + against.base_values,
            booster.predict(X[:20]),
            **NEAR,
        )


@pytest.mark.pairwise
def test_bytes_do_not_depend_on_threads_or_company(isa: str) -> None:
    X, y = rows(1300, 7)
    for units, policy in (("raw", "leafwise"), ("standard", "symmetric")):
        booster = train(X, y, units, grow_policy=policy, max_depth=6)
        first = booster.explain(X, n_jobs=1).values
        pairs = booster.explain(X[:300], interactions=True, n_jobs=1).values
        others = booster.explain(X[:70], background=X[500:520], n_jobs=1).values
        for n_jobs in (2, 3, 7):
            assert_array_equal(booster.explain(X, n_jobs=n_jobs).values, first)
            assert_array_equal(
                booster.explain(X[:300], interactions=True, n_jobs=n_jobs).values, pairs
            )
            assert_array_equal(
                booster.explain(X[:70], background=X[500:520], n_jobs=n_jobs).values,
                others,
            )
        assert_array_equal(booster.explain(X[5:6]).values, first[5:6])
        assert_array_equal(booster.explain(X[100:700]).values, first[100:700])
        assert_array_equal(
            booster.explain(X[7:8], background=X[500:520]).values, others[7:8]
        )


def test_importances(tmp_path: Any) -> None:
    X, y = rows(500)
    booster = train(X, y, "standard", grow_policy="symmetric", n_estimators=10)
    told = booster.explain(X).values
    assert_allclose(
        booster.importance("shap", X), np.abs(told).mean(axis=0), rtol=1e-12
    )
    for kind, given in (
        ("loss_function_change", (X, y)),
        ("permutation", (X, y)),
        ("prediction_values_change", ()),
    ):
        found = booster.importance(kind, *given)
        assert found[:2].min() > 10 * np.abs(found[4])
    pair = X[:2]
    apart = booster.importance("prediction_difference", pair)
    scores = booster.predict(pair)
    up = scores[0] <= scores[1]
    # no value moves the two rows further than it says, and some move them nearly so far
    for j in range(5):
        change = np.tile(pair[:, None], (1, 3000, 1))
        change[:, :, j] = np.linspace(-1.0, 30.0, 3000)
        moved = booster.predict(change.reshape(-1, 5)).reshape(2, -1) - scores[:, None]
        rise, fall = (moved[0], moved[1]) if up else (moved[1], moved[0])
        seen = max(0.0, rise.max()) + max(0.0, -fall.min())
        assert 0.9 * apart[j] - 1e-9 <= seen <= apart[j] + 1e-9


def test_what_looks_at_splits_alone_is_refused() -> None:
    X, y = rows(300)
    booster = train(X, y, "raw", grow_policy="symmetric")
    for ask, message in (
        (lambda: booster.to_shap(), "no place for linear leaves; booster.explain"),
        (
            lambda: booster.importance("interaction"),
            "'interaction' knows no linear leaves",
        ),
        (
            lambda: booster.importance("catboost_prediction_difference", X[:2]),
            "knows no linear leaves",
        ),
        (lambda: booster.importance("prediction_difference", X[:2]), "no limit"),
        (
            lambda: booster.influence(X, X, y),
            "influence of training rows knows no linear leaves",
        ),
    ):
        with pytest.raises(ParameterError, match=message):
            ask()  # type: ignore[no-untyped-call]
