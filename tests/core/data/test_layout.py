"""Slots: columns of any width side by side, those with few codes fused; no byte of a model knows of it."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from law.test_law import Task, chunked, model, portable
from sapwood import Dataset, _core
from sapwood.device import cpu
from spec.test_trees import assert_same, core_train

Floats = NDArray[np.float64]

POLICIES = ["depthwise", "leafwise", "symmetric"]
OBJECTIVES = ["squared_error", "logistic", "softmax"]
LEVELS = [2, 2, 3, 4, 8, 16, 1, 2, 5, 7, 40]


def table(rng: np.random.Generator, n: int, missing: float = 0.1, many: int = 700) -> Floats:
    """Columns of few values, some with missing ones, between one of `many` values and one of up to 255 bins."""
    few = [rng.integers(0, levels, n).astype(np.float64) for levels in LEVELS]
    X = np.stack([rng.integers(0, many, n).astype(np.float64), *few, rng.normal(size=n)], axis=1)
    for j in (2, 4, 6):
        X[rng.random(n) < missing, j] = np.nan
    return X


def label(rng: np.random.Generator, X: Floats, objective: str) -> Floats:
    """A label that many columns of few values speak of."""
    Z = np.nan_to_num(X, nan=1.5)
    y = Z[:, 1] * Z[:, 3] + np.isin(Z[:, 6], (3, 7, 11)) + 0.01 * Z[:, 0] + Z[:, 9] * Z[:, 2] + rng.normal(size=len(X))
    if objective == "squared_error":
        return y
    parts = 2 if objective == "logistic" else 5  # from 4 outputs on, root histograms are counted together
    return np.digitize(y, np.quantile(y, np.arange(1, parts) / parts)).astype(np.float64)


def binned(X: Floats, fuse: bool | None, max_bins: int = 255) -> _core.Binned:
    return _core.Binned([X], _core.cuts([X], None, max_bins, 32, 2), 2, fuse=fuse)


# ---- Layout ---------------------------------------------------------------------------------------------------------


def test_slots_of_a_table() -> None:
    """The largest first, each into the first slot that has room; then wider columns; missing values take room too."""
    X = table(np.random.default_rng(0), 2000, missing=0.0)
    assert [len(np.unique(x)) for x in X.T] == [653, *LEVELS, 2000]  # the last has 128 bins
    assert binned(X, fuse=False, max_bins=1000).slots == [*([j] for j in range(1, 13)), [0]]
    slots = binned(X, fuse=True, max_bins=1000).slots
    assert slots == [[12, 1, 7], [6, 5, 2], [10, 4, 3, 8], [11, 9], [0]]
    X[0] = np.nan
    assert binned(X, fuse=True, max_bins=1000).slots != slots


def test_constant_columns_share() -> None:
    X = np.ones((30, 19))
    assert [len(slot) for slot in binned(X, fuse=True).slots] == [8, 8, 3]
    assert not binned(X, fuse=True).codes(18).any()


def test_few_rows_are_not_fused() -> None:
    """A row saves an update for every column that joins a slot, and a node has more sums to unfold."""
    X = np.random.default_rng(1).integers(0, 4, (20_000, 12)).astype(np.float64)
    lengths = [len(binned(X[:n], None).slots) for n in (1000, 1600, 5000, 20_000)]
    assert lengths == [12, 6, 4, 3]  # 1, 2, 3, 4 columns a slot


@pytest.mark.parametrize("max_bins", [16, 255, 1000])
def test_codes_are_those_of_the_columns(max_bins: int) -> None:
    X = table(np.random.default_rng(2), 5000)
    plain, fused = binned(X, False, max_bins), binned(X, True, max_bins)
    for j in range(X.shape[1]):
        assert plain.codes(j).dtype == fused.codes(j).dtype == (np.uint16 if plain.codes(j).max() > 255 else np.uint8)
        np.testing.assert_array_equal(plain.codes(j), fused.codes(j))


def test_a_wide_column_costs_its_own_size() -> None:
    """Two bytes twice a row for itself, one byte twice for every other; 40 binary columns take 5 bytes, not 40."""
    rng = np.random.default_rng(3)
    n = 50_000
    wide, rest = np.arange(n) % 20_000, rng.integers(0, 200, (n, 11))
    X = np.column_stack([rest[:, :5], wide, rest[:, 5:]]).astype(np.float64)
    assert binned(X, None, 65_535).n_bytes < n * 2 * (2 + 12) + 20_000
    assert binned(rng.integers(0, 2, (n, 40)) * 1.0, None).n_bytes < n * (5 + 8) + 10_000  # rows of whole words


# ---- The same trees -------------------------------------------------------------------------------------------------


@pytest.fixture
def fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is fused, however few its rows."""
    monkeypatch.setattr(_core, "Binned", partial(_core.Binned, fuse=True))


@pytest.mark.usefixtures("fuse")
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("precision", ["narrow", "wide"])
@pytest.mark.parametrize(("policy", "objective"), list(zip(POLICIES, OBJECTIVES, strict=True)))
def test_reference(policy: str, objective: str, precision: str, weights: str) -> None:
    rng = np.random.default_rng(4)
    X = table(rng, 400, many=300)
    params = {"objective": objective, "grow_policy": policy, "precision": precision, "n_estimators": 3}
    params |= {"max_depth": 4, "max_bins": 500, "min_samples_leaf": 3, "colsample_bynode": 0.7, "subsample": 0.9}
    w = {"none": None, "whole": rng.integers(1, 4, len(X)) * 1.0, "real": rng.random(len(X))}[weights]
    trees = assert_same(X, label(rng, X, objective), params, w)
    assert len({column for tree in trees for column in tree["column"]}) > 5


def task(objective: str, n: int, weights: str = "none", **params: Any) -> tuple[dict[str, Any], Floats, Floats, Any]:
    """As `test_law.task`, of columns with few values."""
    rng = np.random.default_rng(n)
    X = table(rng, n).astype(np.float32).astype(np.float64)
    w = {"none": None, "whole": rng.integers(0, 4, n).astype(float), "real": rng.random(n)}[weights]
    shape = {"n_estimators": 3, "max_depth": 5, "max_leaves": 24, "max_bins": 500}
    return {"objective": objective} | shape | params, X, label(rng, X, objective), w


SAMPLED = {"subsample": 0.7, "colsample_bytree": 0.5, "colsample_bylevel": 0.8, "colsample_bynode": 0.8}
KINDS = [
    pytest.param(partial(task, *args, **params), id=f"{'-'.join(map(str, args))}-{'-'.join(map(str, params.values()))}")
    for args, params in (
        (("squared_error", 12_000), {"grow_policy": "leafwise", "precision": "narrow"}),
        (("squared_error", 140_000), {"grow_policy": "leafwise", "max_bins": 255}),
        (("logistic", 12_000, "real"), {"grow_policy": "depthwise"} | SAMPLED),
        (("logistic", 12_000), {"grow_policy": "depthwise", "sampling": "goss"}),
        (("logistic", 12_000), {"grow_policy": "symmetric", "sampling": "mvs", "subsample": 0.5}),
        (("squared_error", 12_000, "whole"), {"grow_policy": "symmetric"} | SAMPLED),
        (("squared_error", 12_000), {"grow_policy": "symmetric", "max_bins": 255, "extra_trees": True}),
        (("softmax", 12_000), {"grow_policy": "leafwise", "max_bins": 255, "max_depth": None, "max_leaves": 300}),
        (("softmax", 12_000), {"grow_policy": "depthwise", "precision": "wide", "min_samples_leaf": 40}),
        (("logistic", 12_000), {"grow_policy": "leafwise", "monotone_constraints": [1, 1, 0, -1, *[0] * 9]}),
        (("logistic", 12_000, "real"), {"grow_policy": "leafwise", "sampling": "bayesian"}),
    )
]


@pytest.mark.parametrize("given", KINDS)
def test_fused_or_not(given: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = model(given)
    assert [model(given, n_jobs) for n_jobs in (1, 3, 7)] == [fused] * 3
    monkeypatch.setattr(cpu, "Binned", partial(_core.Binned, fuse=False))
    assert model(given) == fused


@pytest.mark.parametrize("given", KINDS)
def test_instruction_sets(given: Task, isa: str) -> None:
    assert model(given) == portable(given)


@pytest.mark.parametrize("given", KINDS)
def test_chunks(given: Task) -> None:
    assert chunked(given, [1, 700, 702, 9_999]) == model(given)


def test_held_out_rows_come_to_the_same_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with other missing values has other slots; what a tree says of it stays."""
    params, X, y, _ = task("logistic", 10_000, grow_policy="leafwise", n_estimators=5)
    losses = []
    for way in (None, False):
        monkeypatch.setattr(cpu, "Binned", partial(_core.Binned, fuse=way))
        data = Dataset(X[:5000], label=y[:5000], max_bins=500)
        held = Dataset(np.where(X[5000:] == 1, np.nan, X[5000:]), label=y[5000:], reference=data)
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


@given(tables(), st.sampled_from(POLICIES), st.sampled_from(["narrow", "wide"]), st.sampled_from([1, 5]))
@settings(max_examples=60)
def test_any_table(X: Floats, policy: str, precision: str, least: int) -> None:
    y = np.nan_to_num(X) @ (np.arange(X.shape[1]) % 3 - 1.0) > 0
    params = {"objective": "logistic", "grow_policy": policy, "precision": precision, "min_samples_leaf": least}
    params |= {"n_estimators": 2, "max_depth": 4, "max_bins": 500, "colsample_bynode": 0.9, "min_samples_bin": 1}
    grown = []
    for way in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_core, "Binned", partial(_core.Binned, fuse=way))
            trees, _, scores = core_train(X, y.astype(np.float64), params)
        grown.append([scores.tobytes(), *(np.asarray(values).tobytes() for tree in trees for values in tree.values())])
    assert grown[0] == grown[1]
