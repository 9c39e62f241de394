"""Symmetric trees against CatBoost: the same splits, level by level, and the same leaf
values.

In: real sets of numbers, in CatBoost's own borders. Out: trees that agree; none of its
randomness is on.

CatBoost chooses splits by gradients alone (hessian="none") and has labels in float32;
ours are exact in it here. Its trees have a vector in every leaf, ours are one for each
output with the same splits (multi_strategy). Its Newton steps of 2, 3, 7 and 26 classes
have the whole hessian: those are our leaf_estimation="joint".
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import datasets
import sapwood

catboost = pytest.importorskip("catboost")
Array = NDArray[np.float64]
ROUNDS = 10
DEPTH = 5
# of leaf values, in labels of size 1: CatBoost's float32. The worst of all results is
# 0.2 of it.
TOLERANCE = 2.0**-23
GOALS = {
    "RMSE": "squared_error",
    "MultiRMSE": "squared_error",
    "Logloss": "logistic",
    "MultiClass": "softmax",
}
ONE = [
    ("california_housing", "RMSE"),
    ("protein", "RMSE"),
    ("bike_sharing", "RMSE"),
    ("magic", "Logloss"),
]
CASES = [
    (name, loss, leaf)
    for name, loss in [*ONE, ("magic", "MultiClass")]
    for leaf in ("Newton", "Gradient")
]
CASES += [
    (name, "MultiClass", leaf)
    for name in ("protein_thirds", "wine_quality")
    for leaf in ("Newton", "Gradient")
]
CASES += [("letter", "MultiClass", "Newton"), ("protein_pairs", "MultiRMSE", "Newton")]


def rows(name: str, loss: str) -> tuple[Array, Array]:
    """A table without missing values; classes from 0, or numbers of size 1 that are
    exact in float32.
    """
    X, y, _ = getattr(
        datasets, name.split("_")[0] if name.startswith("protein") else name
    )()
    X = np.nan_to_num(X, nan=-1e6)
    if name == "protein_thirds":
        return X, np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y).astype(np.float64)
    if name == "protein_pairs":
        X, y = X[:, 2:], np.column_stack([y, X[:, 0] / 2.0**10, X[:, 1] / 2.0**8])
    if loss == "MultiClass":
        return X, np.unique(y, return_inverse=True)[1].astype(np.float64)
    y = np.float32(y).astype(np.float64)
    return X, y / 2.0 ** round(np.log2(np.abs(y).max()))


def fit(
    X: Array, y: Array, tmp_path: Path, **more: Any
) -> tuple[list[dict[str, Any]], list[Array]]:
    """CatBoost's trees as its JSON has them, and its borders of every column."""
    bare: dict[str, Any] = {
        "random_strength": 0,
        "bootstrap_type": "No",
        "boosting_type": "Plain",
        "rsm": 1,
    }
    bare |= {
        "leaf_estimation_iterations": 1,
        "leaf_estimation_backtracking": "No",
        "boost_from_average": False,
    }
    size = {"iterations": ROUNDS, "depth": DEPTH, "border_count": 40}
    model = catboost.CatBoost(
        bare
        | size
        | {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        | more
    )
    model.fit(X, y)
    model.save_model(str(tmp_path / "model.json"), format="json")
    found = json.loads((tmp_path / "model.json").read_text())
    borders = [
        np.array(one["borders"] or [])
        for one in found["features_info"]["float_features"]
    ]
    return found["oblivious_trees"], borders


@pytest.mark.pairwise
@pytest.mark.parametrize("score", ["Cosine", "L2"])
@pytest.mark.parametrize(
    ("name", "loss", "leaf", "steps"),
    [(*case, 1) for case in CASES]
    + [(*case, 10) for case in CASES if case[1] == "Logloss"],
)
def test_same_trees(
    name: str, loss: str, leaf: str, steps: int, score: str, tmp_path: Path
) -> None:
    X, y = rows(name, loss)
    wanted = {
        "loss_function": loss,
        "score_function": score,
        "leaf_estimation_method": leaf,
        "learning_rate": 0.3,
    }
    theirs, borders = fit(X, y, tmp_path, leaf_estimation_iterations=steps, **wanted)
    codes = np.stack(
        [np.searchsorted(b, x) for x, b in zip(X.T, borders, strict=True)], axis=1
    ).astype(np.float64)
    params = {
        "recipe": "catboost",
        "objective": GOALS[loss],
        "score_function": score,
        "leaf_estimation": leaf,
    }
    params |= {
        "max_depth": DEPTH,
        "n_estimators": ROUNDS,
        "learning_rate": 0.3,
        "start": 0.0,
        "leaf_iterations": steps,
    }
    params |= {
        "random_strength": 0,
        "sampling": "none",
        "subsample": 1.0,
        "precision": "wide",
        "n_jobs": 1,
    }
    params |= {"multi_strategy": "multi_output_tree"}
    params |= (
        {"leaf_estimation": "joint"} if (loss, leaf) == ("MultiClass", "Newton") else {}
    )
    params |= {"max_bins": 65535}
    trees = sapwood.train(params, sapwood.Dataset(codes, y, params=params)).trees
    n_outputs = int(y.max()) + 1 if loss == "MultiClass" else y[0].size
    assert trees.n_trees == n_outputs * len(theirs) == n_outputs * ROUNDS
    for index in range(trees.n_trees):
        other = theirs[index // n_outputs]
        nodes = slice(trees.offset[index], trees.offset[index + 1])
        column = trees.column[nodes]
        threshold = trees.threshold[nodes]
        value = trees.value[nodes]
        first = 2 ** np.arange(DEPTH) - 1  # node of every level
        ours = [
            (int(c), int(t))
            for c, t in zip(column[first], threshold[first], strict=True)
        ]
        place = [(s["float_feature_index"], s["border"]) for s in other["splits"]]
        assert ours == [
            (c, int(np.argmin(np.abs(borders[c] - b)))) for c, b in place
        ], f"tree {index}"
        # CatBoost's number of a leaf has the first level in its lowest bit, ours
        # highest
        at = np.zeros(2**DEPTH, np.intp)
        for level in range(DEPTH):
            at = at | (np.arange(2**DEPTH) >> level & 1) << (DEPTH - 1 - level)
        np.testing.assert_allclose(
            value[-(2**DEPTH) :][at],
            other["leaf_values"][index % n_outputs :: n_outputs],
            rtol=0,
            atol=TOLERANCE,
        )
