"""Categories by ordered statistics: the reference bit for bit, rows that are watched,
the law, what is refused.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Booster, Dataset
from sapwood.boost import splits
from sapwood.errors import ParameterError
from sapwood.model.trees import Trees
from spec.helpers import assert_bits

Floats = NDArray[np.float64]
N = 300
BORDERS: dict[str, list[float]] = {
    "logistic": [0.5],
    "softmax": [0.5, 1.5],
    "squared_error": [],
}
SMALL: dict[str, Any] = {
    "n_estimators": 6,
    "max_depth": 4,
    "min_child_weight": 0.0,
    "learning_rate": 0.3,
    "min_samples_leaf": 1,
    "category_encoding": "ordered",
    "n_permutations": 2,
}


def rows(objective: str, seed: int = 0) -> tuple[NDArray[Any], Floats]:
    """A number; text of 40 values, some missing; of 3 values, which stay as they are;
    of 12.
    """
    rng = np.random.default_rng(seed)
    x, many, three, dozen = (
        rng.normal(size=N),
        rng.integers(0, 40, N),
        rng.integers(0, 3, N),
        rng.integers(0, 12, N),
    )
    z = x + np.sin(many) + (dozen % 3) - (three == 1) + 0.3 * rng.normal(size=N)
    X = np.array(
        [x, *([f"v{code}" for code in codes] for codes in (many, three, dozen))], object
    ).T
    X[rng.random(N) < 0.1, 1] = None
    labels = {"logistic": z > 1, "softmax": np.digitize(z, [0, 2]), "squared_error": z}
    return X, labels[objective].astype(np.float64)


def data_of(X: Any, y: Any, weight: Any = None) -> Dataset:
    return Dataset(X, y, weight, categorical_features=[1, 2, 3], min_samples_bin=1)


def fitted(objective: str = "logistic", weight: Any = None, **params: Any) -> Booster:
    X, y = rows(objective)
    return sapwood.train(
        {**SMALL, "objective": objective, **params}, data_of(X, y, weight)
    )


@pytest.mark.parametrize("boosting", ["plain", "ordered"])
@pytest.mark.parametrize("objective", BORDERS)
def test_watched_rows_are_predicted_alike(objective: str, boosting: str) -> None:
    """What validation rows were measured by in training is what the model says of them,
    here and from a file.
    """
    X, y = rows(objective)
    data = data_of(X[:200], y[:200])
    valid = Dataset(X[200:], y[200:], reference=data)
    metric = "rmse" if objective == "squared_error" else None
    params = SMALL | {
        "objective": objective,
        "boosting": boosting,
        "eval_metric": metric,
        "n_classes": None,
    }
    booster = sapwood.train(
        {k: v for k, v in params.items() if v is not None}, data, valid=valid
    )
    again = booster.history["valid"]
    score = booster.predict(X[200:])
    if objective == "squared_error":
        loss = np.sqrt(np.mean((score - y[200:]) ** 2))
    elif objective == "logistic":
        loss = -np.mean(np.where(y[200:] == 1, np.log(score), np.log(1 - score)))
    else:
        loss = -np.mean(np.log(score[np.arange(100), y[200:].astype(int)]))
    assert next(iter(again.values()))[-1] == pytest.approx(loss, rel=1e-12)


def test_rows_that_are_held_out_are_strangers() -> None:
    """No label of theirs reaches a tree; what they are measured by is the model's own
    prediction.
    """
    X, y = rows("squared_error")
    params = SMALL | {"early_stopping_rounds": 50, "validation_fraction": 0.3}
    first = sapwood.train(params, data_of(X, y))
    held = splits.holdout(0, 0.3, N, None, None)
    other = sapwood.train(params, data_of(X, np.where(held, y[::-1], y)))
    rounds = min(first.n_rounds, other.n_rounds)
    assert rounds > 0
    assert_bits(
        first.predict(X, rounds=rounds), other.predict(X, rounds=rounds), "predictions"
    )
    measured = first.history["holdout"]["rmse"][first.n_rounds - 1]
    assert measured == pytest.approx(
        np.sqrt(np.mean((first.predict(X) - y)[held] ** 2)), rel=1e-12
    )


def test_cross_validation() -> None:
    X, y = rows("squared_error")
    curves = sapwood.cv(SMALL | {"n_estimators": 30}, data_of(X, y), n_folds=3)
    assert curves["rmse_mean"][-1] < 0.6 * y.std()


def test_new_rows(tmp_path: Path) -> None:
    """Missing is a category, one that training did not see has the prior; explanations
    know of no statistic.
    """
    X, _ = rows("logistic")
    booster = fitted()
    odd = X[:4].copy()
    odd[:, 1] = "new", "newer", None, float("nan")
    odd[:, [0, 2, 3]] = X[0, [0, 2, 3]]
    new, newer, missing, nan = booster.predict(odd).tolist()
    assert new == newer != missing == nan
    booster.save(tmp_path / "model.sapwood")
    assert_bits(
        sapwood.load(tmp_path / "model.sapwood").predict(X),
        booster.predict(X),
        "loaded",
    )
    found = booster.explain(X)
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base_values,
        booster.predict(X, raw=True),
        atol=1e-12,
    )


def test_which_columns_and_how() -> None:
    X, y = rows("logistic")
    data = data_of(X, y)

    def sets(**params: Any) -> dict[int, set[int]]:
        """Sizes of the sets that columns are split by."""
        booster = sapwood.train(
            SMALL | {"n_estimators": 20, "objective": "logistic"} | params, data
        )
        trees = booster.trees
        first = [column for ((column, _),) in booster.combinations.sources()]
        # some are missing in the first
        column = np.array([0, 1, 2, 3, *first, -1])[trees.column]
        nodes = np.flatnonzero(trees.set >= 0).tolist()
        return {
            j: {len(trees.codes(node)) for node in nodes if column[node] == j}
            for j in (1, 2, 3)
        }

    # of at most max_cat_to_onehot values: one against the rest
    assert sets()[2] == {1} and max(sets()[1]) > 1
    assert max(sets(max_cat_to_onehot=2)[2]) > 1
    assert sets(category_encoding="onehot", n_permutations=1) != sets()
    assert all(
        sizes <= {0, 1}
        for sizes in sets(category_encoding="onehot", n_permutations=1).values()
    )
    assert (
        sapwood.train({"recipe": "catboost", "n_estimators": 2}, data).params[
            "category_encoding"
        ]
        == "ordered"
    )
    sets_alone = sapwood.train(
        {"n_estimators": 2, "recipe": "lightgbm", "min_samples_bin": 1}, data
    )
    assert "category_encoding" not in sets_alone.params  # old models keep their bytes


def test_equal_sets_are_one() -> None:
    trees = fitted(n_estimators=30).trees
    sets = [
        trees.set_code[a:b].tobytes()
        for a, b in zip(trees.set_offset, trees.set_offset[1:], strict=False)
    ]
    assert len(set(sets)) == len(sets) < np.count_nonzero(trees.set >= 0)
    none = Trees.of([]).with_shared_sets()
    assert none.set_offset.tolist() == [0] and len(none.set) == 0


def test_time_is_an_order() -> None:
    """The first rows know nothing of their categories, whatever the seed: there is only
    one order.
    """
    one, two = (
        fitted(has_time=True, n_permutations=1, random_state=seed).trees
        for seed in (1, 2)
    )
    assert_bits(one.value, two.value, "values")
    X, y = rows("logistic")
    short = {
        "recipe": "catboost",
        "n_estimators": 2,
        "has_time": True,
        "objective": "logistic",
    }
    # the recipe's own number gives way
    assert sapwood.train(short, data_of(X, y)).params.get("n_permutations", 1) == 1


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "groups": (
        {"interaction_constraints": [[0, 1]]},
        "interaction_constraints is not for",
    ),
    "penalties": ({"first_use_penalties": {1: 1.0}}, "first_use_penalties is not for"),
    "copies": ({"n_parallel_trees": 2}, "n_parallel_trees is not for"),
    "line": ({"line_search": "tree"}, "line_search is not for"),
    "pruning": ({"ccp_alpha": 0.1}, "ccp_alpha is not for"),
    "dart": (
        {"boosting": "dart", "n_permutations": 1},
        "boosting='plain' and 'ordered', not 'dart'",
    ),
    "smooth": ({"path_smooth": 1.0}, "no ordered statistics"),
    "time": (
        {"has_time": True},
        "has_time leaves one order; n_permutations=2 asks for more",
    ),
    "no order": (
        {"category_encoding": "partition"},
        "n_permutations is for boosting='ordered'",
    ),
    "a word": ({"category_encoding": "woe"}, "category_encoding='woe'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    (params, text), (X, y) = REFUSED[name], rows("logistic")
    data = Dataset(X, y, categorical_features=[1, 2, 3])
    with pytest.raises(ParameterError, match=text):
        sapwood.train(SMALL | params, data)


def test_no_second_training() -> None:
    X, y = rows("squared_error")
    data = data_of(X, y)
    with pytest.raises(ParameterError, match="cannot go on from init_model"):
        sapwood.train(
            SMALL,
            data,
            init_model=sapwood.train(
                {"n_estimators": 1, "category_encoding": "partition"}, data
            ),
        )


def test_linear_leaves_are_not_boosted_in_order() -> None:
    X, y = rows("squared_error")
    data = Dataset(X[:, :1].astype(np.float64), y, linear_leaves=True)
    with pytest.raises(
        ParameterError, match="linear_leaves=True is not for boosting='ordered'"
    ):
        sapwood.train({"boosting": "ordered"}, data)


def test_noise_is_not_learnt() -> None:
    """Labels that have nothing to do with 200 categories: sets that are chosen by them
    overfit, ordered ones little.
    """
    rng = np.random.default_rng(3)
    X = np.array([f"c{code}" for code in rng.integers(0, 200, 2000)], object)[:, None]
    y = (rng.random(2000) < 0.5).astype(np.float64)
    data = Dataset(X[:1000], y[:1000], categorical_features=[0])
    valid = Dataset(X[1000:], y[1000:], reference=data)
    loss = {}
    for encoding in ("partition", "ordered"):
        params = {
            "objective": "logistic",
            "n_estimators": 50,
            "category_encoding": encoding,
            "cat_smooth": 1.0,
        }
        booster = sapwood.train(params | {"min_data_per_group": 1}, data, valid=valid)
        loss[encoding] = next(iter(booster.history["valid"].values()))[-1]
    assert loss["ordered"] < np.log(2) + 0.1 < loss["partition"]
