"""Datasets with other columns, of known codes: the same bins as those that are binned
from numbers.
"""

import numpy as np
import pandas as pd
import pytest

from sapwood import Dataset
from sapwood.data import coded_columns
from sapwood.device import get

RNG = np.random.default_rng(0)
N = 3000
BETWEEN = np.arange(0.5, 15)


def table(sparse: bool) -> Dataset:
    """Numbers with and without missing values, categories, and a column that is mostly
    zero.
    """
    x = RNG.normal(size=N)
    frame = pd.DataFrame(
        {
            "x": np.where(RNG.random(N) < 0.1, np.nan, x),
            "c": pd.Categorical(RNG.integers(0, 9, N)),
        }
    )
    frame["whole"], frame["many"] = (
        RNG.integers(0, 3, N),
        pd.Categorical(RNG.integers(0, 700, N)),
    )
    if sparse:
        frame["zero"] = (RNG.random(N) < 0.02) * x
    return Dataset(frame)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("grows", [False, True])
def test_codes_are_those_of_binned_columns(sparse: bool, grows: bool) -> None:
    data = table(sparse)
    codes = [RNG.integers(0, 16, N).astype(np.uint8) for _ in range(5)]
    found = coded_columns.replaced(data, [1], iter(codes), [BETWEEN] * 5, grows)
    wanted = data.with_columns([1], codes, [BETWEEN] * 5)
    assert found.fingerprint() == wanted.fingerprint()
    assert (found.n_bins, found.categories.keys()) == (
        wanted.n_bins,
        wanted.categories.keys(),
    )
    for j in range(found.n_columns):
        np.testing.assert_array_equal(found.binned.codes(j), wanted.binned.codes(j))
    if not sparse:
        assert (found.binned.n_bytes < wanted.binned.n_bytes) == (not grows)


def test_codes_are_checked() -> None:
    of_codes = get("cpu").Binned.of_codes
    code = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="too large"):
        of_codes([code + 2], [np.array([0.5])], [0], [0], 4, True, 1)
    assert (
        of_codes([code + 2], [np.array([0.5])], [0], [1], 4, True, 1).codes(0).tolist()
        == [2] * 4
    )
    for columns in ([], [code, code], [code[:3]]):
        with pytest.raises(ValueError, match="one code a row"):
            of_codes(columns, [np.array([0.5])], [0], [0], 4, True, 1)
    with pytest.raises(ValueError, match="uint8 or uint16"):
        of_codes([code.astype(np.int64)], [np.array([0.5])], [0], [0], 4, True, 1)
