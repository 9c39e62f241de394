"""Float32 columns side by side are read sixteen at a time: the same codes, cuts and
predictions as column by column.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Dataset

ROWS = (1, 15, 16, 17, 127, 128, 129, 700)
WIDTHS = (3, 15, 16, 17, 28, 32, 41)


def table(n_rows: int, width: int) -> NDArray[np.float32]:
    """Numbers with what is special among them: missing, infinite, few values, both
    zeros.
    """
    rng = np.random.default_rng(n_rows * width)
    X = rng.normal(size=(n_rows, width)).astype(np.float32)
    X[rng.random(X.shape) < 0.02] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    X[rng.random(X.shape) < 0.01] = -np.inf
    X[:, ::5] = np.round(X[:, ::5])  # and some -0.0
    return X


def kinds(X: NDArray[np.float32]) -> dict[str, Any]:
    """The same values, not side by side, or not from the first byte on."""
    wide = np.zeros((len(X), X.shape[1] + 3), np.float32)
    wide[:, 2:-1] = X
    return {
        "columns": np.asfortranarray(X),
        "float64": X.astype(np.float64),
        "window": wide[:, 2:-1],
    }


@pytest.mark.pairwise
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n_rows", ROWS)
def test_codes(n_rows: int, width: int, isa: str) -> None:
    X = table(n_rows, width)
    data = Dataset(X, n_jobs=2)
    codes = np.stack([data.binned.codes(j) for j in range(width)], axis=1)
    # by the definition: cuts below, and a bin for what is missing
    for j in range(width):
        below = np.searchsorted(data.cuts[j], X[:, j].astype(np.float64), side="left")
        np.testing.assert_array_equal(
            codes[:, j], np.where(np.isnan(X[:, j]), data.n_bins[j], below)
        )
    for name, same in kinds(X).items():
        assert Dataset(same, n_jobs=2).fingerprint() == data.fingerprint(), name


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("weights", [False, True])
def test_cuts_of_a_sample(weights: bool, isa: str) -> None:
    n = 210_000  # more than the sample has
    X = table(n, 18)
    w = np.random.default_rng(0).integers(0, 3, n).astype(float) if weights else None
    whole = Dataset(X, weight=w, n_jobs=2)
    alone = Dataset(np.asfortranarray(X), weight=w, n_jobs=1)
    assert whole.fingerprint() == alone.fingerprint()
    assert all(len(cuts) > 200 for j, cuts in enumerate(whole.cuts) if j % 5)


@pytest.mark.parametrize("width", [17, 40])
def test_models_and_predictions(width: int, isa: str) -> None:
    X = table(1500, width)
    y = np.nan_to_num(X[:, 1], posinf=2, neginf=-2) + np.nan_to_num(
        X[:, width - 2], posinf=2, neginf=-2
    )
    params = {"objective": "squared_error", "n_estimators": 8, "n_jobs": 2}
    booster = sapwood.train(params, Dataset(X, label=y))
    assert len(booster.importance("split")) == width
    for n in (1, 60, 64, 100, 511, 512, 1500):
        expected = booster.predict(X[:n].astype(np.float64))
        np.testing.assert_array_equal(booster.predict(X[:n]), expected)
        for name, same in kinds(X[:n]).items():
            np.testing.assert_array_equal(booster.predict(same), expected, err_msg=name)
    for name, same in kinds(X).items():
        assert (
            sapwood.train(params, Dataset(same, label=y)).fingerprint()
            == booster.fingerprint()
        ), name
