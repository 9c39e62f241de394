"""`multi_strategy="multi_output_tree"` against XGBoost's: the same row partitions and
scores, round by round.

In: real sets with two or three columns of labels. Out: trees that agree, under limits
and penalties too.
"""

from typing import Any

import numpy as np
import pytest
import xgboost
from numpy.typing import NDArray

import datasets
import sapwood

Array = NDArray[np.float64]
ROUNDS = 4
FLOAT32 = 4 * 2.0**-23  # of scores of size 1, as in test_xgboost.py
SETTINGS: dict[str, dict[str, Any]] = {  # names that both know
    "default": {},
    "penalties": {"reg_lambda": 3.0, "reg_alpha": 2.0, "max_depth": 5},
    "heavy": {"min_child_weight": 40.0},
    "gamma": {"gamma": 0.5, "max_depth": 5},
    "leaves": {"max_leaves": 9, "max_depth": 0, "grow_policy": "lossguide"},
}


OLD = xgboost.__version__.startswith(("3.0", "3.1", "3.2"))


def rows(name: str) -> tuple[Array, Array]:
    """Columns of 40 values at most, which are bins of both, and labels of size 1 that
    are exact in float32.
    """
    X, y, _ = getattr(datasets, name)()
    X = np.nan_to_num(X)
    Y = np.column_stack([y, X[:, 0], X[:, 1]])
    Y = np.float32(Y / 2.0 ** np.round(np.log2(np.abs(Y).max(axis=0)))).astype(
        np.float64
    )
    cuts = np.quantile(X[:, 2:], np.linspace(0, 1, 41)[1:-1], axis=0)
    return np.stack(
        [np.searchsorted(c, x) for c, x in zip(cuts.T, X[:, 2:].T, strict=True)], axis=1
    ) * 1.0, Y


def same_parts(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two numberings of leaves put the same rows together."""
    return (
        len(np.unique(a))
        == len(np.unique(b))
        == len(np.unique(np.stack([a, b]), axis=1).T)
    )


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["california_housing", "protein"])
def test_same_trees(name: str, setting: str) -> None:
    if setting == "heavy" and OLD:
        pytest.skip("min_child_weight of vector leaves has another rule in XGBoost 3.2")
    X, Y = rows(name)
    given = SETTINGS[setting]
    vector = {"multi_strategy": "multi_output_tree"}
    fixed = {"tree_method": "hist", "base_score": 0.0, "max_bin": 64, "nthread": 1}
    theirs = xgboost.train({**vector, **fixed, **given}, xgboost.DMatrix(X, Y), ROUNDS)
    ours = {
        "recipe": "xgboost",
        "objective": "squared_error",
        "precision": "wide",
        "start": 0.0,
        "pruning": "pre",
    }
    booster = sapwood.train(
        {**vector, **ours, **given, "n_estimators": ROUNDS, "n_jobs": 1},
        sapwood.Dataset(X, Y, recipe="xgboost"),
    )
    leaves = booster.predict_leaves(X)
    expected = theirs.predict(xgboost.DMatrix(X), pred_leaf=True)
    for index in range(ROUNDS):
        for output in range(Y.shape[1]):
            assert same_parts(
                leaves[:, index * Y.shape[1] + output], expected[:, index]
            ), f"round {index}"
        scores = theirs.predict(
            xgboost.DMatrix(X), output_margin=True, iteration_range=(0, index + 1)
        )
        np.testing.assert_allclose(
            booster.predict(X, raw=True, rounds=index + 1), scores, rtol=0, atol=FLOAT32
        )
