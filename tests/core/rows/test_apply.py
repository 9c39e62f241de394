"""Rows of binned tables find the leaves that prediction finds, where columns of bytes,
wide and listed ones mix.
"""

import numpy as np
import pytest
from scipy import sparse

import sapwood as sw

RNG = np.random.default_rng(0)
N = 3_000


def wide_table():
    """A column of more than 255 bins beside columns of few values, some missing."""
    table = np.column_stack(
        [RNG.normal(size=N), RNG.integers(0, 5, N), RNG.integers(0, 9, N)]
    ).astype(float)
    table[RNG.random(N) < 0.1, 1] = np.nan
    return table, np.sin(3 * table[:, 0]) + table[:, 2]


def listed_table():
    """Columns of few values that are not 0, which are kept as lists, beside one of
    many.
    """
    table = np.where(RNG.random((N, 6)) < 0.02, RNG.normal(size=(N, 6)), 0.0)
    table[:, 0] = RNG.normal(size=N)
    return sparse.csr_matrix(table), table[:, 0] + 3 * table[:, 1] - 2 * table[:, 2]


@pytest.mark.parametrize("make", [wide_table, listed_table])
@pytest.mark.parametrize("leaves", [31, 400])
def test_validation_rows_find_the_leaves_of_prediction(make, leaves):
    X, y = make()
    data = sw.Dataset(X[:2000], y[:2000], max_bins=1000)
    held = sw.Dataset(X[2000:], y[2000:], reference=data)
    params = {
        "max_leaves": leaves,
        "n_estimators": 8,
        "eval_metric": "mse",
        "n_jobs": 2,
    }
    booster = sw.train(params, data, valid={"held": held})
    told = booster.history["held"]["mse"]
    for at in range(8):
        error = booster.predict(X[2000:], rounds=at + 1) - y[2000:]
        assert told[at] == pytest.approx(np.mean(error**2), rel=1e-12)
