"""Exact values of predictions and losses, against Shapley's definition over every
coalition.
"""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.errors import ParameterError
from spec.reference import explain as reference

NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-12}
RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
Z = np.nan_to_num(X)
SCORE = Z[:, 0] * Z[:, 1] * 2 + Z[:, 2]
ROWS = X[:6]
OTHERS = X[100:112]


def train(y: Any, objective: str, **more: Any) -> sapwood.Booster:
    params = {
        "objective": objective,
        "n_estimators": 12,
        "learning_rate": 0.3,
        "max_leaves": 12,
        **more,
    }
    return sapwood.train(params, sapwood.Dataset(X, label=y.astype(float)))


def test_probabilities_are_the_games() -> None:
    """Values along chords, here off by up to a fifth of the largest, add up to the same
    but are not.
    """
    booster = train(SCORE > 0, "logistic")
    told = booster.explain(ROWS, background=OTHERS, space="probability", exact=True)
    for i, row in enumerate(ROWS):
        game = reference.background_game(booster.predict, row, OTHERS)
        np.testing.assert_allclose(
            told.values[i], reference.enumerate_values(game, 5), **NEAR
        )
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(ROWS), **NEAR
    )
    chords = booster.explain(ROWS, background=OTHERS, space="probability")
    np.testing.assert_allclose(chords.base_values, told.base_values, **NEAR)
    assert (
        1e-3
        < np.abs(chords.values - told.values).max()
        < 0.2 * np.abs(told.values).max()
    )


def test_losses_are_the_games() -> None:
    booster = train(SCORE, "squared_error")
    y = SCORE[:6]
    told = booster.explain(ROWS, background=OTHERS, space="loss", y=y, exact=True)
    for i, row in enumerate(ROWS):
        game = reference.background_game(
            lambda rows, i=i: (booster.predict(rows) - y[i]) ** 2 / 2, row, OTHERS
        )  # type: ignore[misc]
        np.testing.assert_allclose(
            told.values[i], reference.enumerate_values(game, 5), **NEAR
        )


def test_classes_that_share_their_scores_effect() -> None:
    booster = train(np.digitize(SCORE, [-1, 1]), "softmax", n_estimators=4)
    told = booster.explain(ROWS, background=OTHERS, space="probability", exact=True)
    for k in range(3):
        game = reference.background_game(
            lambda rows, k=k: booster.predict(rows)[:, k], ROWS[1], OTHERS
        )  # type: ignore[misc]
        np.testing.assert_allclose(
            told.values[1, :, k], reference.enumerate_values(game, 5), **NEAR
        )


def test_a_column_that_no_split_asks_for_has_no_value() -> None:
    booster = train(
        np.where(Z[:, 2] > 0, 1, 0), "logistic", n_estimators=1, max_leaves=2
    )
    told = booster.explain(
        ROWS, background=OTHERS, space="prediction", exact=True, n_jobs=2
    )
    np.testing.assert_array_equal(np.flatnonzero(told.values.any(axis=0)), [2])


def test_refusals() -> None:
    booster = train(SCORE > 0, "logistic", n_estimators=1)
    with pytest.raises(ParameterError, match="exact as they are"):
        booster.explain(ROWS, background=OTHERS, exact=True)
    wide = RNG.normal(size=(200, 13))
    many = sapwood.train(
        {"n_estimators": 60}, sapwood.Dataset(wide, label=np.abs(wide).sum(axis=1))
    )
    with pytest.raises(ParameterError, match="reads 13 columns; at most 12"):
        many.explain(wide[:1], background=wide[1:3], space="prediction", exact=True)
