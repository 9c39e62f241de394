"""Slots: columns of any width side by side, those with few codes fused; no byte of a
model knows of it.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from law.rows import LEVELS, fused
from law.rows import few_values as table
from law.rows import of_few_values as label
from law.tasks import SHAPE, TASKS, expected, train
from sapwood import Dataset, _core
from sapwood.device import cpu
from spec.helpers import assert_same, core_train

Floats = NDArray[np.float64]

POLICIES = ["depthwise", "leafwise", "symmetric"]
OBJECTIVES = ["squared_error", "logistic", "softmax"]


def binned(X: Floats, fuse: bool | None, max_bins: int = 255) -> _core.Binned:
    return _core.Binned([X], _core.cuts([X], None, max_bins, 32, 2), 2, fuse=fuse)


# ---- Layout --------------------------------------------------------------------------


def test_slots_of_a_table() -> None:
    """The largest first, each into the first slot that has room; then wider columns;
    missing values take room too.
    """
    X = table(np.random.default_rng(0), 2000, missing=0.0)
    # the last has 128 bins
    assert [len(np.unique(x)) for x in X.T] == [653, *LEVELS, 2000]
    assert binned(X, fuse=False, max_bins=1000).slots == [
        *([j] for j in range(1, 13)),
        [0],
    ]
    slots = binned(X, fuse=True, max_bins=1000).slots
    assert slots == [[12, 1, 7], [6, 5, 2], [10, 4, 3, 8], [11, 9], [0]]
    X[0] = np.nan
    assert binned(X, fuse=True, max_bins=1000).slots != slots


def test_constant_columns_share() -> None:
    X = np.ones((30, 19))
    assert [len(slot) for slot in binned(X, fuse=True).slots] == [8, 8, 3]
    assert not binned(X, fuse=True).codes(18).any()


def test_few_rows_are_not_fused() -> None:
    """A row saves an update for every column that joins a slot, and a node has more
    sums to unfold.
    """
    X = np.random.default_rng(1).integers(0, 4, (20_000, 12)).astype(np.float64)
    lengths = [len(binned(X[:n], None).slots) for n in (1000, 1600, 5000, 20_000)]
    assert lengths == [12, 6, 4, 3]  # 1, 2, 3, 4 columns a slot


@pytest.mark.parametrize("max_bins", [16, 255, 1000])
def test_codes_are_those_of_the_columns(max_bins: int) -> None:
    X = table(np.random.default_rng(2), 5000)
    plain = binned(X, False, max_bins)
    fused = binned(X, True, max_bins)
    for j in range(X.shape[1]):
        assert (
            plain.codes(j).dtype
            == fused.codes(j).dtype
            == (np.uint16 if plain.codes(j).max() > 255 else np.uint8)
        )
        np.testing.assert_array_equal(plain.codes(j), fused.codes(j))


def test_a_wide_column_costs_its_own_size() -> None:
    """Two bytes twice a row for itself, one byte twice for every other; 40 binary
    columns take 5 bytes, not 40.
    """
    rng = np.random.default_rng(3)
    n = 50_000
    wide = np.arange(n) % 20_000
    rest = rng.integers(0, 200, (n, 11))
    X = np.column_stack([rest[:, :5], wide, rest[:, 5:]]).astype(np.float64)
    assert binned(X, None, 65_535).n_bytes < n * 2 * (2 + 12) + 20_000
    # rows of whole words
    assert (
        binned(rng.integers(0, 2, (n, 40)) * 1.0, None).n_bytes < n * (5 + 8) + 10_000
    )


# ---- The same trees ------------------------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("precision", ["narrow", "wide"])
@pytest.mark.parametrize(
    ("policy", "objective"), list(zip(POLICIES, OBJECTIVES, strict=True))
)
def test_reference(policy: str, objective: str, precision: str, weights: str) -> None:
    rng = np.random.default_rng(4)
    X = table(rng, 400, many=300)
    params = {
        "objective": objective,
        "grow_policy": policy,
        "precision": precision,
        "n_estimators": 3,
    }
    params |= {
        "max_depth": 4,
        "max_bins": 500,
        "min_samples_leaf": 3,
        "colsample_bynode": 0.7,
        "subsample": 0.9,
    }
    w = {
        "none": None,
        "whole": rng.integers(1, 4, len(X)) * 1.0,
        "real": rng.random(len(X)),
    }[weights]
    trees = assert_same(X, label(rng, X, objective), params | {"fuse": True}, w)
    assert len({column for tree in trees for column in tree["column"]}) > 5


@pytest.mark.parametrize("name", [name for name in TASKS if name.startswith("fused-")])
def test_fused_or_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = expected(name)
    monkeypatch.setattr(cpu, "Binned", partial(_core.Binned, fuse=False))
    assert train(name).fingerprint() == fused


def test_held_out_rows_come_to_the_same_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with other missing values has other slots; what a tree says of it
    stays.
    """
    X, y, _ = fused("logistic", 10_000)
    params = SHAPE | {
        "objective": "logistic",
        "grow_policy": "leafwise",
        "n_estimators": 5,
    }
    losses = []
    for way in (None, False):
        monkeypatch.setattr(cpu, "Binned", partial(_core.Binned, fuse=way))
        data = Dataset(X[:5000], label=y[:5000], max_bins=500)
        held = Dataset(
            np.where(X[5000:] == 1, np.nan, X[5000:]), label=y[5000:], reference=data
        )
        assert way is False or held.binned.slots != data.binned.slots
        losses.append(sapwood.train(params, data, valid=[held]).history)
    assert losses[0] == losses[1]


@st.composite
def tables(draw: st.DrawFn) -> Floats:
    """Columns of 1 to 20 values, missing ones among them, and perhaps one of many."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.lists(st.integers(1, 20), min_size=2, max_size=24))
    X = np.stack([rng.integers(0, k, 300).astype(np.float64) for k in levels], axis=1)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.001, 0.3]))] = np.nan
    return np.column_stack([X, rng.permutation(300)]) if draw(st.booleans()) else X


@given(
    tables(),
    st.sampled_from(POLICIES),
    st.sampled_from(["narrow", "wide"]),
    st.sampled_from([1, 5]),
)
@settings(max_examples=examples(60))
def test_any_table(X: Floats, policy: str, precision: str, least: int) -> None:
    y = np.nan_to_num(X) @ (np.arange(X.shape[1]) % 3 - 1.0) > 0
    params = {
        "objective": "logistic",
        "grow_policy": policy,
        "precision": precision,
        "min_samples_leaf": least,
    }
    params |= {
        "n_estimators": 2,
        "max_depth": 4,
        "max_bins": 500,
        "colsample_bynode": 0.9,
        "min_samples_bin": 1,
    }
    grown = []
    for way in (False, True):
        trees, _, scores = core_train(X, y.astype(np.float64), params | {"fuse": way})
        grown.append(
            [
                scores.tobytes(),
                *(
                    np.asarray(values).tobytes()
                    for tree in trees
                    for values in tree.values()
                ),
            ]
        )
    assert grown[0] == grown[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("absent", [0.0, np.nan])
def test_fused_slots_of_columns_that_came_sparse(dtype: type, absent: float) -> None:
    """Columns with few codes, too full to stay sparse: the search for missing values
    sees what is not stored.
    """
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x: NDArray[np.floating] = rng.integers(0, 3, (20_000, 4)).astype(dtype)
    x[rng.random(x.shape) < 0.4] = absent
    y = np.nan_to_num(x.astype(float)).sum(1) + 2.0 * np.isnan(x[:, 0])
    dense = pd.DataFrame(x)
    sparse = dense.astype(pd.SparseDtype(dtype, absent))
    one, other = (
        sapwood.train({"n_estimators": 3}, sapwood.Dataset(t, y))
        for t in (dense, sparse)
    )
    assert np.array_equal(one.predict(dense), other.predict(dense))
