"""Linear leaves against LightGBM's `linear_tree`, tree by tree, with its penalties.

In: real sets, whole and with missing values. Out: the same leaves, and the same scores.

Columns are standardised: LightGBM solves its systems as they come, and where one column
is in millions and another in fractions it takes the small one for dependent. Sets of
continuous columns: it keeps a column that has one value in a leaf, with a coefficient
of rounding errors, and so takes rows that lack it for incomplete; we leave it out.
"""

from typing import Any

import lightgbm
import numpy as np
import pytest
from scipy.special import logit

import datasets
import sapwood

ROUNDS = 5
# LightGBM has gradients in float32: scores are off by a few 2^-24 of their spread.
# Chosen after seeing results, of which the worst is 1.5 of 2^-24.
FLOAT32 = 2.0**-21


@pytest.mark.parametrize("linear_lambda", [0.0, 0.1])
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize(
    "name", ["california_housing", "wine_quality", "protein", "magic"]
)
def test_same_leaves(name: str, missing: float, linear_lambda: float) -> None:
    X, y, _ = getattr(datasets, name)()
    X = (
        ((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))
        .astype(np.float32)
        .astype(np.float64)
    )
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    classes = name == "magic"
    start = np.full(len(y), logit(y.mean()) if classes else y.mean())
    both: dict[str, Any] = {
        "num_leaves": 8,
        "learning_rate": 0.3,
        "min_data_in_leaf": 20,
    }
    both |= {
        "linear_lambda": linear_lambda,
        "objective": "binary" if classes else "regression",
    }
    both |= {"max_bin": 65535, "min_data_in_bin": 1, "linear_tree": True}
    settings = {"verbose": -1, "num_threads": 1, **both}
    data = lightgbm.Dataset(X, y, init_score=start, params={"linear_tree": True})
    theirs = lightgbm.train(settings, data, ROUNDS)
    own = sapwood.Dataset(X, y, init_score=start, params=both)
    ours = sapwood.train(
        {"recipe": "lightgbm", "precision": "wide", "n_estimators": ROUNDS, **both}, own
    )
    assert ours.linear
    mine = ours.predict_leaves(X)
    other = theirs.predict(X, pred_leaf=True)
    for tree in range(ROUNDS):
        pairs = set(zip(mine[:, tree].tolist(), other[:, tree].tolist(), strict=True))
        assert len(pairs) == len(set(mine[:, tree])) == len(set(other[:, tree])) == 8
    scores = start + theirs.predict(X, raw_score=True)
    worst = np.abs(ours.predict(X, raw=True, init_score=start) - scores).max()
    assert worst <= FLOAT32 * scores.std()
