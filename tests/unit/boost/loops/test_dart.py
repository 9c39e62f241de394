"""Dart: factors by hand, scores that are what prediction gives, early stopping,
refusals.
"""

from typing import Any

import numpy as np
import pytest

import datasets
import sapwood
from sapwood import Dataset
from sapwood.boost.loops import dart
from sapwood.errors import ParameterError

DART: dict[str, Any] = {
    "boosting": "dart",
    "rate_drop": 0.4,
    "skip_drop": 0.2,
    "n_estimators": 12,
    "max_leaves": 6,
}


def halves() -> tuple[Dataset, Dataset]:
    X, y, _ = datasets.california_housing()
    data = Dataset(X[:1000], label=y[:1000])
    return data, Dataset(X[1000:], label=y[1000:], reference=data)


@pytest.mark.parametrize(
    ("rule", "n_dropped", "expected"),
    [
        ("tree", 0, (1.0, 1.0)),
        ("tree", 2, (2 / 2.5, 1 / 2.5)),
        ("forest", 2, (1 / 1.5, 1 / 1.5)),
        ("paper", 3, (3 / 4, 1 / 4)),
    ],
)
def test_factors(rule: str, n_dropped: int, expected: tuple[float, float]) -> None:
    assert dart.factors(rule, n_dropped, 0.5) == expected


def test_one_tree_is_replaced_by_half_of_two() -> None:
    """The second round forgets the first, so it is the same tree, and both are
    halved.
    """
    data, _ = halves()
    forgets = DART | {
        "n_estimators": 2,
        "rate_drop": 1.0,
        "skip_drop": 0.0,
        "normalize_type": "paper",
    }
    booster = sapwood.train(forgets, data)
    first, second = (booster.trees.slice(i, i + 1) for i in range(2))
    assert (
        first.value.tolist() == second.value.tolist()
        and first.threshold.tolist() == second.threshold.tolist()
    )
    alone = sapwood.train(DART | {"n_estimators": 1}, data).trees
    assert (2 * first.value).tolist() == alone.value.tolist()


def test_nothing_dropped_is_plain_boosting() -> None:
    data, valid = halves()
    for nothing in ({"rate_drop": 0.0}, {"skip_drop": 1.0}):
        booster = sapwood.train(DART | nothing, data, valid=valid)
        plain = sapwood.train({"n_estimators": 12, "max_leaves": 6}, data, valid=valid)
        assert booster.trees.value.tobytes() == plain.trees.value.tobytes()
        assert booster.history == plain.history


@pytest.mark.parametrize(
    "params",
    [{}, {"n_parallel_trees": 2, "subsample": 0.7}, {"objective": "poisson"}],
    ids=str,
)
def test_scores_are_what_prediction_gives(params: dict[str, Any]) -> None:
    """After every round, of held-out training rows and of validation sets: to the last
    bit.
    """
    data, valid = halves()
    seen: list[np.ndarray] = []

    def keep(y: np.ndarray, prediction: np.ndarray, weight: Any) -> float:
        seen.append(prediction.copy())
        return 0.0

    X = datasets.california_housing().X
    rounds: list[np.ndarray] = []
    sapwood.train(
        DART | params | {"eval_metric": ("kept", keep, False)},
        data,
        valid=valid,
        callbacks=[lambda view: rounds.append(view.booster.predict(X[1000:]))],
    )
    assert len(seen) == 12
    for measured, predicted in zip(seen, rounds, strict=True):
        assert measured.tobytes() == predicted.tobytes()


@pytest.mark.parametrize("held_out", [False, True])
def test_early_stopping_keeps_the_factors_of_the_best_round(held_out: bool) -> None:
    data, valid = halves()
    models: list[sapwood.Booster] = []
    booster = sapwood.train(
        DART | {"n_estimators": 60, "learning_rate": 0.9, "early_stopping_rounds": 4},
        data,
        valid=None if held_out else valid,
        callbacks=[lambda view: models.append(view.booster)],
    )
    best = booster.best_round
    assert best is not None and best < len(models)  # it stopped, and went back
    assert booster.trees.value.tobytes() == models[best - 1].trees.value.tobytes()
    assert (
        booster.trees.value.tobytes() != models[-1].trees.slice(0, best).value.tobytes()
    )


def test_cross_validation() -> None:
    data, _ = halves()
    found = sapwood.cv(DART | {"objective": "squared_error"}, data, n_folds=3)
    assert found["rmse_mean"][-1] < found["rmse_mean"][0]


def test_seeds_differ_and_repeat() -> None:
    data, _ = halves()
    one, again, other = (
        sapwood.train(DART | {"seed": seed}, data).fingerprint() for seed in (1, 1, 2)
    )
    assert one == again != other


def test_refusals() -> None:
    data, _ = halves()
    booster = sapwood.train(DART, data)
    with pytest.raises(ParameterError, match="init_model is for boosting='plain'"):
        sapwood.train(DART, data, init_model=booster)
    with pytest.raises(ParameterError, match="init_model is for boosting='plain'"):
        sapwood.train({}, data, init_model=booster)
    with pytest.raises(
        ParameterError,
        match=r"rate_drop=0\.4 is for boosting='dart' only; this is boosting='plain'",
    ):
        sapwood.train({"rate_drop": 0.4}, data)
    with pytest.raises(ParameterError, match="normalize_type='trees' is unknown"):
        sapwood.train(DART | {"normalize_type": "trees"}, data)
