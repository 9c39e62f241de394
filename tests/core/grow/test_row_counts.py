"""Rows counted slot by slot, where none has a weight, against rows counted one by one,
where all weigh 1.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sapwood

N = 9_000


def table(kind: str, rng: np.random.Generator) -> Any:
    """Columns that share slots, of many codes, with missing values, or thin ones in
    bundles and lists.
    """
    few = rng.integers(0, 12, (N, 9)).astype(np.float64)
    if kind == "few codes":
        return few
    if kind == "many codes":
        return np.column_stack(
            [few[:, :3] + rng.random((N, 3)), few[:, 3:], rng.permutation(N)]
        )
    if kind == "missing":
        return np.where(rng.random(few.shape) < 0.1, np.nan, few)
    one_hot = np.equal.outer(few[:, 0], np.arange(12)) * 1.0
    thin = np.where(rng.random((N, 300)) < 0.02, rng.integers(1, 4, (N, 300)), 0)
    return sp.csr_array(np.column_stack([one_hot, thin, few[:, 1:4]]))


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "more",
    [{}, {"subsample": 0.6, "colsample_bynode": 0.7, "precision": "wide"}],
    ids=str,
)
@pytest.mark.parametrize("policy", ["leafwise", "depthwise"])
@pytest.mark.parametrize("kind", ["few codes", "many codes", "missing", "thin"])
def test_same_trees(kind: str, policy: str, more: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    X = table(kind, rng)
    signal = (
        np.nan_to_num(X[:, :6])
        if kind != "thin"
        else X[:, [0, 1, 2, 15, 16, -1]].toarray()
    ) @ np.arange(1, 7)
    y = np.searchsorted(
        np.quantile(signal, [0.03, 0.3, 0.5, 0.98]), signal + rng.normal(size=N)
    )
    params = {
        "objective": "softmax",
        "num_class": 5,
        "grow_policy": policy,
        "learning_rate": 0.5,
        "n_estimators": 8,
    }
    params |= {
        "max_leaves": 31,
        "max_depth": 7,
        "min_child_weight": 0.0,
        "min_samples_leaf": 25,
    } | more
    one_by_one = sapwood.train(
        params, sapwood.Dataset(X, y, np.ones(N), max_bins=400)
    ).trees
    assert one_by_one.count[one_by_one.column < 0].min() in (25, 26)  # the limit binds
    for n_jobs in (1, 3):
        trees = sapwood.train(
            params | {"n_jobs": n_jobs}, sapwood.Dataset(X, y, max_bins=400)
        ).trees
        for name in (
            "column",
            "threshold",
            "missing_left",
            "left",
            "value",
            "gain",
            "count",
        ):
            assert (
                getattr(trees, name).tobytes() == getattr(one_by_one, name).tobytes()
            ), name
