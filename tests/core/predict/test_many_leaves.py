"""Trees of more leaves or cuts than fit masks: rows go down abreast, and get what their
leaves hold.
"""

import numpy as np
import pytest

import sapwood

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize(
    "shape", [{"max_leaves": 400}, {"max_leaves": 40, "n_estimators": 40}]
)
@pytest.mark.parametrize("missing", [False, True])
def test_rows_abreast(shape: dict[str, object], missing: bool) -> None:
    train = np.where(RNG.random(X.shape) < 0.1, np.nan, X) if missing else X
    params = {
        "n_estimators": 3,
        "min_samples_leaf": 1,
        "min_child_weight": 0.0,
        **shape,
    }
    booster = sapwood.train(
        params, sapwood.Dataset(train, label=Y, max_bins=1000, min_samples_bin=1)
    )
    trees = booster.trees
    cuts = max(len(np.unique(trees.threshold[trees.column == j])) for j in range(3))
    assert cuts > 254 or np.diff(trees.offset).max() > 511  # else masks do it
    rows = np.vstack(
        [
            train[:203],
            np.full((1, 3), np.nan),
            np.full((1, 3), np.inf),
            np.full((1, 3), -np.inf),
        ]
    )
    wanted = np.full(len(rows), booster.base[0])
    # which follows one row after the other
    for t, leaf in enumerate(booster.predict_leaves(rows).T):
        wanted = wanted + trees.value[trees.offset[t] + leaf]
    np.testing.assert_array_equal(booster.predict(rows, raw=True), wanted)
    for few in (1, 7, 8, 9, 129):
        np.testing.assert_array_equal(
            booster.predict(rows[:few], raw=True), wanted[:few]
        )
