"""Gradient-based one-side sampling, held against LightGBM's.

In: proteins (numbers) and telescope showers (two classes), 20 divisions into 1,400 rows
and 600 unseen ones. Out: what sampling costs in loss, equal to LightGBM's within three
standard errors, and a loss at most 1 % above LightGBM's.

Both grow 100 trees of 15 leaves with 20 rows at least, at rate 0.1, on 255 bins with L2
= 1. LightGBM ranks rows by
|gradient * hessian|, we by |gradient|: the same for squared error, not for logistic loss.
"""

from typing import Any

import lightgbm
import numpy as np
import pytest
from sklearn import metrics

import datasets
import sapwood
from peers.side_by_side import Array

SEEDS = 20
SAME: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 20,
    "lambda_l2": 1.0,
    "min_sum_hessian_in_leaf": 1e-3,
    "path_smooth": 0.0,
}
SETS = {
    "protein": (
        datasets.protein,
        "squared_error",
        "regression",
        metrics.root_mean_squared_error,
    ),
    "magic": (datasets.magic, "logistic", "binary", metrics.log_loss),
}


def losses(name: str, seed: int) -> Array:
    """On unseen rows: ours and LightGBM's, each with all rows and with goss."""
    read, ours, theirs, measure = SETS[name]
    data = read()
    order = np.random.default_rng(seed).permutation(len(data.y))
    (X, y), (X_new, y_new) = (
        (data.X[rows], data.y[rows]) for rows in (order[:1400], order[1400:])
    )
    found = []
    for sampling in ("all", "goss"):
        change = {"sampling": "goss"} if sampling == "goss" else {}
        booster = sapwood.train(
            {**SAME, "objective": ours, "random_state": seed, **change},
            sapwood.Dataset(X, label=y),
        )
        found.append(measure(y_new, booster.predict(X_new)))
        change = {"data_sample_strategy": "goss"} if sampling == "goss" else {}
        quiet = {"verbosity": -1, "num_threads": 1, "seed": seed}
        rival = lightgbm.train(
            {**SAME, "objective": theirs, **quiet, **change}, lightgbm.Dataset(X, y)
        )
        found.append(measure(y_new, np.asarray(rival.predict(X_new))))
    return np.array(found).reshape(2, 2).T


@pytest.mark.nightly
@pytest.mark.parametrize("name", SETS)
def test_goss_costs_what_it_costs_lightgbm(name: str) -> None:
    (full, goss), (their_full, their_goss) = np.array(
        [losses(name, seed) for seed in range(SEEDS)]
    ).transpose(1, 2, 0)
    difference = goss / full - their_goss / their_full
    assert abs(difference.mean()) <= 3 * difference.std(ddof=1) / np.sqrt(SEEDS)
    assert goss.mean() <= 1.01 * their_goss.mean()
    assert (goss != full).all()  # rows were drawn indeed
