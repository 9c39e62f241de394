"""Forests: averages by hand, parallel trees, what measured scores are, refusals."""

import pickle
from typing import Any

import numpy as np
import pytest

import datasets
import sapwood
from sapwood import Dataset
from sapwood.boost import splits
from sapwood.errors import ParameterError

FOREST: dict[str, Any] = {
    "boosting": "forest",
    "subsample": 0.6,
    "n_estimators": 8,
    "max_leaves": 12,
}


def halves() -> tuple[Dataset, Dataset]:
    X, y, _ = datasets.bike_sharing()
    data = Dataset(X[:1000], label=y[:1000])
    return data, Dataset(X[1000:], label=y[1000:], reference=data)


@pytest.mark.parametrize("objective", ["squared_error", "poisson"])
def test_a_prediction_is_the_average_of_trees(objective: str) -> None:
    data, _ = halves()
    X = datasets.bike_sharing().X
    booster = sapwood.train(
        FOREST | {"objective": objective, "n_parallel_trees": 2}, data
    )
    assert (booster.n_rounds, booster.trees.n_trees, booster.averaged) == (8, 16, True)
    leaves = booster.predict_leaves(X)
    trees = [booster.trees.slice(i, i + 1).value for i in range(16)]
    total = np.zeros(len(X))
    for stage, predicted in enumerate(booster.staged_predict(X, raw=True), 1):
        for i in (2 * stage - 2, 2 * stage - 1):
            total = total + trees[i][leaves[:, i]]
        assert (booster.base + total / stage).tobytes() == predicted.tobytes()
        assert (
            booster.predict(X, raw=True, rounds=stage).tobytes() == predicted.tobytes()
        )
    assert booster.predict(X, raw=True).tobytes() == predicted.tobytes()
    # one row, no shortcut
    assert booster.predict(X[:1]).tobytes() == booster.predict(X)[:1].tobytes()
    assert booster.predict(X, raw=True, rounds=0).tolist() == [booster.base[0]] * len(X)
    start = np.full(len(X), 3.0)
    assert (start + total / 8).tobytes() == booster.predict(
        X, raw=True, init_score=start
    ).tobytes()


DRAWS = [
    {"subsample": 0.6},
    {"sampling": "bayesian"},
    {"sampling": "goss"},
    {"extra_trees": True},
]


@pytest.mark.parametrize("draws", DRAWS, ids=str)
def test_every_tree_is_grown_at_the_start(draws: dict[str, Any]) -> None:
    """The first tree of plain boosting with the same draws, unshrunk, whatever its
    number; and each is another.
    """
    data, _ = halves()
    params = {"max_leaves": 12, **draws}
    forest = sapwood.train(
        {**params, "boosting": "forest", "n_estimators": 3}, data
    ).trees
    many = sapwood.train(
        {**params, "n_estimators": 1, "n_parallel_trees": 3, "eta": 3.0}, data
    ).trees
    assert forest.value.tobytes() == many.value.tobytes()
    assert len({forest.slice(i, i + 1).value.tobytes() for i in range(3)}) == 3
    if draws.get("sampling") == "goss":  # no round of a forest takes all rows
        assert max(forest.count[forest.offset[:-1]]) < 400


def test_a_saved_forest_predicts_the_same() -> None:
    data, _ = halves()
    X = datasets.bike_sharing().X
    booster = sapwood.train(FOREST | {"n_parallel_trees": 2}, data)
    again = pickle.loads(pickle.dumps(booster))
    assert again.predict(X).tobytes() == booster.predict(X).tobytes()
    assert again.n_rounds == 8


@pytest.mark.parametrize(
    "params",
    [FOREST, {"n_parallel_trees": 3, "subsample": 0.5, "n_estimators": 8}],
    ids=str,
)
@pytest.mark.parametrize("held_out", [False, True])
def test_scores_are_what_prediction_gives(
    params: dict[str, Any], held_out: bool
) -> None:
    X, y, _ = datasets.bike_sharing()
    data, valid = halves()
    seen: list[np.ndarray] = []

    def keep(label: np.ndarray, prediction: np.ndarray, weight: Any) -> float:
        seen.append(np.column_stack([label, prediction]))
        return float(len(seen))

    extra: dict[str, Any] = {
        "eval_metric": ("kept", keep, True),
        "early_stopping_rounds": 50,
    }
    booster = sapwood.train(params | extra, data, valid=None if held_out else valid)
    held = splits.holdout(0, 0.1, 1000)
    rows = np.flatnonzero(held) if held_out else np.arange(1000, len(y))
    for measured, predicted in zip(seen, booster.staged_predict(X[rows]), strict=True):
        assert measured[:, 0].tolist() == y[rows].tolist()
        assert measured[:, 1].tobytes() == predicted.tobytes()


def test_parallel_trees_continue_and_judge() -> None:
    """10 + 10 rounds are 20, and validation rows judge trees at the scores before the
    round.
    """
    data, valid = halves()
    params = {"n_parallel_trees": 2, "subsample": 0.5, "n_estimators": 3}
    half = sapwood.train(params, data)
    both = sapwood.train(params, data, init_model=half)
    assert (
        both.fingerprint()
        == sapwood.train(params | {"n_estimators": 6}, data).fingerprint()
    )
    with pytest.raises(
        ParameterError, match="n_parallel_trees=1, but init_model has 2 a round"
    ):
        sapwood.train({}, data, init_model=half)
    for kind in (params, FOREST):
        pruned = sapwood.train(kind | {"prune_by_validation": True}, data, valid=valid)
        assert (
            pruned.trees.n_nodes < sapwood.train(kind, data, valid=valid).trees.n_nodes
        )


def test_rounds_in_text_and_frame() -> None:
    data, _ = halves()
    booster = sapwood.train(
        {"n_parallel_trees": 2, "subsample": 0.5, "n_estimators": 2}, data
    )
    assert "tree 3 (round 1, output 0)" in booster.to_text(3)
    assert booster.to_frame()["round"].max() == 1


def test_refusals() -> None:
    data, _ = halves()
    for idle in (
        {},
        {"sampling": "bayesian", "bagging_temperature": 0},
        {"sampling": "goss", "top_rate": 0.9},
    ):
        with pytest.raises(
            ParameterError,
            match="would grow one tree again and again; set subsample or a colsample",
        ):
            sapwood.train({"boosting": "forest", **idle}, data)
    with pytest.raises(
        ParameterError, match=r"learning_rate=0\.3 is not for boosting='forest'"
    ):
        sapwood.train(FOREST | {"learning_rate": 0.3}, data)
    with pytest.raises(ParameterError, match="init_model is for boosting='plain'"):
        sapwood.train(FOREST, data, init_model=sapwood.train(FOREST, data))
