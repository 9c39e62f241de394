"""The automatic learning rate: CatBoost's own numbers."""

import numpy as np
import pytest

import sapwood
from sapwood.boost.auto_learning_rate import automatic

catboost = pytest.importorskip("catboost")
LOSSES = {"logistic": "Logloss", "squared_error": "RMSE", "softmax": "MultiClass"}


@pytest.mark.parametrize("from_mean", [True, False])
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("objective", LOSSES)
def test_catboost(objective: str, watched: bool, from_mean: bool) -> None:
    """At one of the smallest of trainings; the formula is one of powers, so that a few
    points tell it.
    """
    if objective == "softmax" and from_mean:
        pytest.skip("CatBoost starts no classes at their shares")
    for n_rows, n_rounds in ((60, 2), (700, 5)):
        y = np.arange(n_rows) % 3 / (2 if objective == "squared_error" else 1)
        y = np.minimum(y, 1) if objective == "logistic" else y
        X = np.arange(n_rows, dtype=np.float64)[:, None]
        model = catboost.CatBoost(
            {
                "loss_function": LOSSES[objective],
                "iterations": n_rounds,
                "depth": 1,
                "verbose": 0,
                "boost_from_average": from_mean,
                "thread_count": 1,
                "allow_writing_files": False,
            }
        )
        model.fit(X, y, eval_set=(X, y) if watched else None)
        theirs = model.get_all_params()["learning_rate"]
        assert automatic(
            objective, n_rows, n_rounds, watched, from_mean
        ) == pytest.approx(theirs, abs=1e-6)


def test_in_training() -> None:
    """The model keeps the number; what CatBoost's authors did not fit has their
    default.
    """
    X = np.arange(200.0)[:, None]
    data = sapwood.Dataset(X, X[:, 0])
    booster = sapwood.train({"learning_rate": "auto", "n_estimators": 10}, data)
    assert booster.params["learning_rate"] == automatic(
        "squared_error", 200, 10, False, True
    )
    held = sapwood.train(
        {"learning_rate": "auto", "n_estimators": 10, "early_stopping_rounds": 3}, data
    )
    assert held.params["learning_rate"] == automatic(
        "squared_error", 200, 10, True, True
    )
    assert automatic("poisson", 200, 10, False, True) == 0.03


def test_estimators_have_the_rate_of_train() -> None:
    """Without validation rows there is none to watch."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    ours = (
        sapwood.SapwoodRegressor(learning_rate="auto", n_estimators=50)
        .fit(X, X[:, 0])
        .booster_
    )
    plain = sapwood.train(
        {"learning_rate": "auto", "n_estimators": 50}, sapwood.Dataset(X, X[:, 0])
    )
    assert ours.params["learning_rate"] == plain.params["learning_rate"]
