"""The law for sparse tables: the model of the dense table, byte for byte, in memory
that follows what is stored.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from sapwood import Dataset

Floats = NDArray[np.float64]
FORMATS = [
    sp.csr_array,
    sp.csc_array,
    sp.csr_matrix,
    sp.csc_matrix,
    sp.coo_array,
    sp.lil_matrix,
]


def onehot(rng: np.random.Generator, n: int, width: int) -> Floats:
    """Columns of which every row has one."""
    X = np.zeros((n, width))
    X[np.arange(n), rng.integers(0, width, n)] = rng.choice([1.0, -2.0])
    return X


def words(rng: np.random.Generator, n: int, width: int) -> Floats:
    """Columns that meet in many rows; how many rows each has differs."""
    found = rng.random((n, width)) < 0.3 * rng.random(width)
    return np.where(
        found, np.round(rng.normal(size=(n, width)), int(rng.integers(0, 4))), 0.0
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[Floats, Floats, Floats | None, dict[str, Any]]:
    """Blocks side by side, labels, weights and parameters."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([9, 300, 2000, 5000]))
    kinds = draw(
        st.lists(st.sampled_from(["onehot", "words", "full"]), min_size=1, max_size=4)
    )
    make = {
        "onehot": onehot,
        "words": words,
        "full": lambda rng, n, width: rng.normal(size=(n, 1)),
    }
    X = np.concatenate(
        [make[kind](rng, n, int(rng.choice([2, 7, 150, 300]))) for kind in kinds],
        axis=1,
    )
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.003] = np.nan
    y = np.nan_to_num(X, nan=2.0) @ rng.normal(size=X.shape[1]) + 0.1 * rng.normal(
        size=n
    )
    w = draw(
        st.sampled_from([None, rng.integers(0, 3, n) + np.eye(1, n)[0], rng.random(n)])
    )
    sampler = draw(
        st.sampled_from(
            [
                {},
                {"subsample": 0.7},
                {"sampling": "goss", "learning_rate": 1.0},
                {"sampling": "mvs", "subsample": 0.5},
                {"sampling": "bayesian"},
            ]
        )
    )
    more = draw(
        st.sampled_from(
            [
                {},
                {"colsample_bytree": 0.6, "colsample_bynode": 0.7},
                {"extra_trees": True},
                {"reg_alpha": 0.1},
                {"max_delta_step": 0.3},
                {"min_samples_leaf": 1},
            ]
        )
    )
    params = {
        "n_estimators": 3,
        "grow_policy": draw(st.sampled_from(["depthwise", "leafwise", "symmetric"])),
        "precision": draw(st.sampled_from(["narrow", "wide"])),
        "objective": draw(st.sampled_from(["squared_error", "logistic"])),
        "max_depth": draw(st.sampled_from([4, 8])),
    }
    if params["objective"] == "logistic":
        y = (y > np.median(y)).astype(np.float64)
    return X, y, w, params | sampler | more


@pytest.mark.filterwarnings("ignore:no tree was split")  # where weights are small
@given(tables(), st.integers(0, 2**32), st.booleans())
@settings(max_examples=examples(40))
def test_as_dense(given: tuple[Any, ...], seed: int, zero_as_missing: bool) -> None:
    X, y, w, params = given
    rng = np.random.default_rng(seed)
    n = len(y)
    vectors = {"label": y, "weight": w}
    dense = Dataset(X, **vectors, zero_as_missing=zero_as_missing)
    wanted = sapwood.train(params | {"n_jobs": 1}, dense)
    cut = np.sort(rng.integers(0, n + 1, 2))
    rows = [slice(0, cut[0]), slice(cut[0], cut[1]), slice(cut[1], n)]
    parts = [
        (
            X[some] if k == 1 else sp.csr_array(X[some]),
            y[some],
            w if w is None else w[some],
        )
        for k, some in enumerate(rows)
    ]
    chunks = Dataset.from_chunks(parts, zero_as_missing=zero_as_missing)
    for n_jobs in (1, 2, 7):
        table = rng.choice(FORMATS)(shuffled(X, rng)) if n_jobs < 7 else None
        data = (
            chunks
            if table is None
            else Dataset(
                table, **vectors, zero_as_missing=zero_as_missing, n_jobs=n_jobs
            )
        )
        assert data.fingerprint() == dense.fingerprint()
        booster = sapwood.train(params | {"n_jobs": n_jobs}, data)
        assert booster.to_bytes() == wanted.to_bytes()
    scores = wanted.predict(X, raw=True)
    for table in (sp.csr_array(X), sp.csc_array(X), sp.csr_array(X)[:5]):
        assert (booster.predict(table, raw=True) == scores[: table.shape[0]]).all()
        assert (
            booster.predict_leaves(table) == wanted.predict_leaves(X)[: table.shape[0]]
        ).all()


def shuffled(X: Floats, rng: np.random.Generator) -> sp.csr_array:
    """The table with its entries in any order, some in two parts that add up, zeros
    stored, 32- or 64-bit indices.
    """
    row, column = np.nonzero(X)
    zero = np.argwhere(X == 0)[: rng.integers(0, 4)]
    row = np.append(row, zero[:, 0])
    column = np.append(column, zero[:, 1])
    value = X[row, column]
    twice = np.flatnonzero(rng.random(len(row)) < 0.1)
    row = np.append(row, row[twice])
    column = np.append(column, column[twice])
    value[twice] *= 0.5  # exactly half
    value = np.append(value, value[twice])
    order = rng.permutation(len(row))
    order = order[np.argsort(row[order], kind="stable")]
    offset = np.searchsorted(row[order], np.arange(len(X) + 1))
    made = sp.csr_array((value[order], column[order], offset), shape=X.shape)
    kind = rng.choice([np.int32, np.int64])
    made.indices, made.indptr = made.indices.astype(kind), made.indptr.astype(kind)
    return made


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", ["depthwise", "leafwise", "symmetric"])
@pytest.mark.parametrize("weights", [False, True])
def test_every_path(policy: str, weights: bool, isa: str) -> None:
    rng = np.random.default_rng(8)
    X = np.concatenate(
        [onehot(rng, 9000, 120), words(rng, 9000, 40), onehot(rng, 9000, 700)], axis=1
    )
    y = X @ rng.normal(size=X.shape[1])
    w = rng.integers(0, 3, 9000).astype(np.float64) if weights else None
    params = {
        "n_estimators": 4,
        "grow_policy": policy,
        "max_depth": 7,
        "reg_lambda": 0.5,
    }
    wanted = sapwood.train(params, Dataset(X, y, w)).to_bytes()
    assert sapwood.train(params, Dataset(sp.csr_array(X), y, w)).to_bytes() == wanted


def test_several_outputs() -> None:
    rng = np.random.default_rng(9)
    X = np.concatenate([onehot(rng, 9000, 30), words(rng, 9000, 9)], axis=1)
    y = np.digitize(X @ rng.normal(size=39), [-1.0, -0.5, 0.0, 0.5, 1.0])
    params = {
        "objective": "softmax",
        "n_classes": 6,
        "n_estimators": 3,
        "max_leaves": 9,
    }
    one, other = (
        sapwood.train(params, Dataset(table, y)) for table in (X, sp.csc_array(X))
    )
    assert one.to_bytes() == other.to_bytes()
    # bundles only: roots of several outputs are counted at once
    alone = sp.csr_array(X[:, :30])
    assert len(Dataset(alone, y).binned.slots) == 1
    one, other = (
        sapwood.train(params, Dataset(table, y)) for table in (X[:, :30], alone)
    )
    assert one.to_bytes() == other.to_bytes()


def test_rules() -> None:
    rng = np.random.default_rng(10)
    X = np.concatenate([np.abs(onehot(rng, 3000, 20)), words(rng, 3000, 9)], axis=1)
    y = X @ rng.normal(size=29)
    names = [f"c{j}" for j in range(29)]
    rules = [
        {"monotone_constraints": {"c3": 1, "c22": -1}},
        {
            "monotone_constraints": {"c21": 1},
            "monotone_method": "intermediate",
            "grow_policy": "leafwise",
        },
        {"interaction_constraints": [names[:15], names[15:]]},
        {
            "forced_splits": {
                "feature": "c25",
                "threshold": 0.3,
                "left": {"feature": "c2", "threshold": 0.25},
            }
        },
    ]
    for rule in rules:
        params = {"n_estimators": 3, "max_leaves": 12, **rule}
        one, other = (
            sapwood.train(params, Dataset(t, y, feature_names=names))
            for t in (X, sp.csr_array(X))
        )
        assert one.to_bytes() == other.to_bytes()


def test_bundles() -> None:
    rng = np.random.default_rng(11)
    X = np.concatenate(
        [onehot(rng, 4000, 30), rng.normal(size=(4000, 1)), onehot(rng, 4000, 900)],
        axis=1,
    )
    order = rng.permutation(931)
    slots = Dataset(sp.csr_array(X[:, order])).binned.slots
    kinds = [
        {0 if order[j] < 30 else 1 if order[j] == 30 else 2 for j in slot}
        for slot in slots
    ]
    # one slot each, though their columns are mixed
    assert sorted(map(min, kinds)) == [0, 1, 2]
    assert all(len(kind) == 1 for kind in kinds)
    X[7, :2] = 1.0  # one row in which two columns meet: they cannot share a bundle
    slots = Dataset(sp.csr_array(X)).binned.slots
    assert not any({0, 1} <= set(slot) for slot in slots)


def test_memory_follows_what_is_stored() -> None:
    rng = np.random.default_rng(12)
    n = 20_000
    width = 5_000
    each = 60
    column = np.minimum(
        np.floor(np.exp(rng.random(n * each) * np.log(width))), width - 1
    ).astype(np.int32)
    values = np.round(rng.random(n * each), 2) + 0.01
    X = sp.csr_array(
        (values, column, np.arange(0, n * each + 1, each)), shape=(n, width)
    )
    X.sum_duplicates()
    n_bytes = Dataset(X).binned.n_bytes
    # lists take 8 a value, and 4 a row and slot; the dense table 200 million
    assert n_bytes < 12 * X.nnz
    # one value a row
    deep = sp.csr_array((values[:n], column[:n], np.arange(n + 1)), shape=(n, 40_000))
    # a bundle takes 4 a row at most, and fills one row in eight at least
    assert Dataset(deep).binned.n_bytes < 32 * n
