"""Splits by a set of codes: the kernels against NumPy, on every path and width of
codes.
"""

import numpy as np
import pytest

from sapwood.device import cpu


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("n_bins", [3, 255, 256, 1000])
# few: masks of 512 rows; many: row by row
@pytest.mark.parametrize("n_leaves", [4, 300])
@pytest.mark.parametrize("missing_left", [0, 1])
def test_apply_follows_sets(n_bins: int, n_leaves: int, missing_left: int) -> None:
    rng = np.random.default_rng(n_bins + n_leaves)
    x = rng.integers(0, n_bins, (1300, 2)).astype(np.float64)
    x[rng.random(x.shape) < 0.1] = np.nan
    binned = cpu.Binned([x], [np.arange(n_bins - 1) + 0.5] * 2, n_threads=2)
    n_splits = n_leaves - 1  # a chain: every right child is split again
    left = np.zeros(2 * n_splits + 1, np.int32)
    node = 0
    for split in range(n_splits):
        left[node] = 2 * split + 1
        node = 2 * split + 2
    inner = left > 0
    column = np.where(inner, np.arange(len(left)) // 2 % 2, -1).astype(np.int32)
    sets = [
        np.flatnonzero(rng.random(n_bins) < 1 / n_leaves).astype(np.int32)
        for _ in range(n_splits)
    ]
    index = np.where(inner, np.cumsum(inner) - 1, -1).astype(np.int32)
    offset = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    sides = np.full(len(left), missing_left, np.uint8) * inner
    bins = np.full(len(left), -1, np.int32)
    found = cpu.apply(
        binned, column, bins, sides, left, index, offset, np.concatenate(sets), 2
    )
    expected = np.zeros(len(x), np.int64)
    for u in np.flatnonzero(inner):
        value = x[:, column[u]]
        goes_left = np.where(
            np.isnan(value), missing_left == 1, np.isin(value, sets[index[u]])
        )
        expected = np.where(expected == u, left[u] + ~goes_left, expected)
    np.testing.assert_array_equal(found, expected)
