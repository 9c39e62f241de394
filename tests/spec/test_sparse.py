"""Sparse tables against the executable specification, bit for bit: cuts, trees, and
what is listed.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import sapwood
from sapwood import Dataset
from spec import reference
from spec.cases import POLICIES, WEIGHTS
from spec.helpers import Floats, assert_bits, assert_same_model, weight_of
from spec.reference import sparse as sparse_spec


def thin(rng: np.random.Generator, n: int) -> Floats:
    """Blocks of exclusive columns, columns that meet, one with missing values, a full
    one, an empty one.
    """
    X = np.zeros((n, 32))
    X[np.arange(n), rng.integers(0, 12, n)] = 1.0
    X[:, 12:30] = np.where(
        rng.random((n, 18)) < 0.1, np.round(rng.normal(size=(n, 18)), 1), 0.0
    )
    X[rng.random(n) < 0.05, 13] = np.nan
    X[:, 30] = rng.normal(size=n)
    return X


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("zero_as_missing", [False, True])
def test_trees(policy: str, weights: str, zero_as_missing: bool) -> None:
    rng = np.random.default_rng(3)
    X = thin(rng, 300)
    y = X[:, :12] @ rng.normal(size=12) + np.nan_to_num(X[:, 12:]).sum(axis=1)
    w = weight_of(rng, weights, 300)
    dense = np.where(X == 0, np.nan, X) if zero_as_missing else X
    params = {
        "grow_policy": policy,
        "precision": "narrow",
        "min_samples_leaf": 3,
        "max_depth": 4,
        "max_leaves": 15,
    }
    expected = assert_same_model(dense, y, params, w)
    data = Dataset(
        sp.csr_array(X), y, w, min_samples_bin=1, zero_as_missing=zero_as_missing
    )
    booster = sapwood.train(
        reference.DEFAULTS | {"learning_rate": 0.3, "n_estimators": 2} | params, data
    )
    assert booster.trees.n_nodes > 10
    for name in (
        "column",
        "threshold",
        "missing_left",
        "left",
        "value",
        "gain",
        "cover",
        "count",
    ):
        assert_bits(getattr(booster.trees, name), getattr(expected.trees, name), name)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("absent", [0.0, np.nan])
def test_cuts(weights: str, absent: float) -> None:
    rng = np.random.default_rng(4)
    n = 250_000  # more than the sample
    rows = np.flatnonzero(rng.random(n) < 0.1)
    values = rng.normal(size=len(rows))
    values[:5] = np.nan, np.inf, -np.inf, 0.0, 0.0
    weight = weight_of(rng, weights, n)
    w = reference.weights(weight, n)
    dense = np.full(n, absent)
    dense[rows] = values
    table = sp.csc_array((values, rows, [0, len(rows)]), shape=(n, 1))
    missing = np.isnan(absent)
    data = Dataset(
        table, weight=weight, max_bins=60, min_samples_bin=1, zero_as_missing=missing
    )
    if missing:
        values = np.where(values == 0, np.nan, values)
        dense = np.where(dense == 0, np.nan, dense)
    assert_bits(data.cuts[0], reference.cuts(dense, w, 60, 1), "as dense")
    assert_bits(
        data.cuts[0], sparse_spec.cuts(values, rows, absent, w, 60, 1), "as sparse"
    )


@pytest.mark.parametrize("n", [40, 256, 3000])
def test_lists(n: int) -> None:
    X = thin(np.random.default_rng(n), n)
    X[:, 31] = np.nan  # most are missing
    sparse = Dataset(sp.csr_array(X))
    dense = Dataset(X)
    codes = [dense.binned.codes(j) for j in range(X.shape[1])]
    wanted = sparse_spec.listed(codes)
    assert 20 < len(wanted[0]) < 32
    for data in (sparse, dense):
        for n_threads in (1, 3):
            for mine, theirs in zip(data.binned.listed(n_threads), wanted, strict=True):
                np.testing.assert_array_equal(mine, theirs, strict=True)
        for j, code in enumerate(codes):
            np.testing.assert_array_equal(data.binned.codes(j), code, strict=True)
