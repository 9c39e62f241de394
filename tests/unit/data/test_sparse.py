"""Sparse tables: what is read, in which order, what zeros mean, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sapwood
from sapwood import Dataset
from sapwood.data import container, ingest, sparse
from sapwood.data.ingest import arrays
from sapwood.errors import DataError, ParameterError
from sapwood.system import writing

TABLE = np.array(
    [[0.0, 2.0, 0.0], [np.nan, 0.0, 0.0], [3.0, -1.0, 0.0], [0.0, 2.0, 5.0]]
)


def dense(table: Any) -> Any:
    """What a sparse table says, value by value."""
    out = np.full((table.n_rows, table.n_columns), table.absent)
    for i in range(len(table.offset) - 1):
        for k in range(table.offset[i], table.offset[i + 1]):
            at = (i, table.index[k]) if table.by_rows else (table.index[k], i)
            out[at] = table.values[k]
    return out


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("make", [sp.coo_array, sp.coo_matrix])
def test_formats(make: Any, kind: str, by_rows: bool) -> None:
    given = make(TABLE).asformat(kind)
    read = ingest.read(given, by_rows=by_rows)
    assert (read.n_rows, read.n_columns, read.names) == (4, 3, None)
    np.testing.assert_array_equal(dense(read.table), TABLE)
    np.testing.assert_array_equal(given.toarray(), TABLE)  # what was given is as it was


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64, np.longdouble]
)
def test_number_types(dtype: Any) -> None:
    values = np.nan_to_num(np.abs(TABLE)).astype(dtype)
    read = ingest.read(sp.csc_array(values.astype(np.float64)).astype(dtype))
    np.testing.assert_array_equal(dense(read.table), values.astype(np.float64))


def test_no_copy_where_none_is_needed() -> None:
    given = sp.csc_array(TABLE)
    read = ingest.read(given).table
    assert np.shares_memory(read.values, given.data)
    assert np.shares_memory(read.index, given.indices)
    rows = sp.csr_array(TABLE)
    assert np.shares_memory(ingest.read(rows, by_rows=True).table.values, rows.data)


def test_entries_of_one_place_add_up_in_their_order() -> None:
    parts = np.array([1e16, 1.0, -1e16, 1.0, 7.0])  # another order has another sum
    given = sp.csr_array((parts, [1, 1, 1, 1, 0], [0, 5]), shape=(1, 2))
    for table in (given, given.tocsc()):
        for by_rows in (False, True):
            np.testing.assert_array_equal(
                dense(ingest.read(table, by_rows=by_rows).table), [[7.0, 1.0]]
            )
    assert given.toarray()[0, 1] == 1.0


def test_zero_as_missing() -> None:
    # one zero is stored
    given = sp.csr_array((np.array([0.0, 4.0]), [0, 1], [0, 2, 2]), shape=(2, 2))
    read = ingest.read(given, zero_as_missing=True).table
    np.testing.assert_array_equal(dense(read), [[np.nan, 4.0], [np.nan, np.nan]])
    whole = ingest.read(np.array([[0, 4]]), zero_as_missing=True).table
    np.testing.assert_array_equal(whole, [[np.nan, 4.0]])


def test_zero_as_missing_is_kept_with_the_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 3)) < 0.5, 0.0, rng.integers(-2, 3, (300, 3)))
    y = np.where(X[:, 0] == 0, 3.0, X[:, 0])
    data = Dataset(sp.csr_array(X), y, zero_as_missing=True)
    booster = sapwood.train({"n_estimators": 5}, data)
    bare = sapwood.train({"n_estimators": 5}, Dataset(np.where(X == 0, np.nan, X), y))
    wanted = bare.predict(np.where(X == 0, np.nan, X))
    booster.save(tmp_path / "model")
    loaded = sapwood.load(tmp_path / "model")
    for table in (X, sp.csr_array(X), sp.csc_array(X), X[:3], pd.DataFrame(X)):
        np.testing.assert_array_equal(loaded.predict(table), wanted[: table.shape[0]])
    with pytest.raises(
        ParameterError, match="zero_as_missing=False, but the data was made with True"
    ):
        sapwood.train({"zero_as_missing": False}, data)
    assert Dataset(X, y, reference=data).zero_as_missing


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "a": [1.0, 2.0, 3.0],
            "b": pd.arrays.SparseArray([0, 0, 7]),
            "c": pd.arrays.SparseArray([np.nan, 2.0, np.nan]),
        }
    )
    read = ingest.read(frame)
    assert [type(column) for column in read.table] == [
        np.ndarray,
        sparse.SparseColumn,
        sparse.SparseColumn,
    ]
    assert Dataset(frame).fingerprint() == Dataset(frame.astype(float)).fingerprint()
    booster = sapwood.train({"n_estimators": 2}, Dataset(frame, [1, 2, 3]))
    turned = frame[["c", "b", "a"]]
    np.testing.assert_array_equal(
        booster.predict(turned), booster.predict(frame.astype(float))
    )


def test_columns_by_name() -> None:
    data = Dataset(sp.csr_array(TABLE), feature_names=["a", "b", "c"])
    turned = Dataset(
        sp.csr_array(TABLE[:, [2, 0, 1]]), feature_names=["c", "a", "b"], reference=data
    )
    assert turned.fingerprint() == data.fingerprint()
    rows = ingest.rename(
        ingest.read(sp.csr_array(TABLE[:, [2, 0, 1]]), by_rows=True), ["c", "a", "b"]
    )
    np.testing.assert_array_equal(
        dense(ingest.align(rows, ["a", "b", "c"], 3).table), TABLE
    )


def test_save(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = np.where(rng.random((2000, 40)) < 0.03, rng.normal(size=(2000, 40)), 0.0)
    X[:, 7], X[3, 8] = rng.normal(size=2000), np.nan
    one = Dataset(sp.csr_array(X), X[:, 0], zero_as_missing=False)
    other = Dataset(X, X[:, 0])
    one.save(tmp_path / "one"), other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert (tmp_path / "one").stat().st_size < X.size
    loaded = Dataset.load(tmp_path / "one")
    assert loaded.fingerprint() == one.fingerprint()
    assert loaded.binned.n_bytes == one.binned.n_bytes


@pytest.mark.parametrize(
    "lie",
    [
        {"row": lambda row: row[::-1].copy()},
        {"row": lambda row: row + np.uint32(5000)},
        {"code": lambda code: code + np.uint16(3000)},
        {"usual": lambda usual: usual + np.uint16(3000)},
        {"usual": lambda usual: usual[1:]},
        {"offset": lambda offset: offset[::-1].copy()},
        {"column": lambda column: column[::-1].copy()},
        {"column": lambda column: column - np.int32(1)},
        {"row": lambda row: row.astype(np.int64)},
    ],
    ids=lambda lie: next(iter(lie)),
)
def test_lists_that_lie(lie: dict[str, Any], tmp_path: Path) -> None:
    X = np.zeros((500, 5))
    X[::50] = np.arange(1, 6)
    Dataset(X).save(tmp_path / "true")
    arrays, fields = container.unpack(
        (tmp_path / "true").read_bytes(), "dataset", 2, DataError
    )
    for name, change in lie.items():
        arrays[f"listed.{name}"] = change(arrays[f"listed.{name}"])
    writing.write(tmp_path / "lie", container.pack("dataset", 2, arrays, fields))
    with pytest.raises(DataError, match="not a valid dataset"):
        Dataset.load(tmp_path / "lie")


@pytest.mark.parametrize(
    "make",
    [
        lambda X: setattr(X, "indices", X.indices + 9),
        lambda X: setattr(X, "indptr", X.indptr[::-1].copy()),
        lambda X: setattr(X, "data", X.data[:1]),
        lambda X: setattr(X, "indices", X.indices - 5),
    ],
)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_broken_tables_raise(kind: Any, make: Any) -> None:
    table = kind(TABLE)
    assert table.has_canonical_format  # scipy remembers it
    booster = sapwood.train({"n_estimators": 1}, Dataset(TABLE, [1, 2, 3, 4]))
    make(table)
    with pytest.raises((ValueError, IndexError)):
        Dataset(table)
    with pytest.raises((ValueError, IndexError)):
        booster.predict(table)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"exact.*sparse.*toarray"):
        Dataset(sp.csr_array(TABLE), tree_method="exact")
    with pytest.raises(DataError, match=r"sparse.*categories.*data frame"):
        Dataset(sp.csr_array(TABLE), categorical_features=[1])
    mixed = pd.DataFrame({"c": ["u", "v", "u", "v"], "x": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(DataError, match=r"sparse.*categories"):
        sapwood.train({"n_estimators": 1}, Dataset(mixed, [1, 2, 3, 4])).predict(
            sp.csr_array(TABLE[:, :2])
        )
    with pytest.raises(DataError, match="label is sparse"):
        Dataset(TABLE, sp.csr_array(TABLE[:, :1]))
    with pytest.raises(DataError, match="Complex"):
        Dataset(sp.csr_array(TABLE.astype(complex)))
    with pytest.raises(DataError, match="float64 cannot hold"):
        Dataset(sp.csr_array(np.array([[2**53 + 1]])))
    with pytest.raises(DataError, match="minimum of 1 is required"):
        Dataset(sp.csr_array((0, 3)))
    with pytest.raises(DataError, match="2 features, but Sapwood is expecting 3"):
        sapwood.train({"n_estimators": 1}, Dataset(TABLE, [1, 2, 3, 4])).predict(
            sp.csr_array(TABLE[:, :2])
        )


def test_estimators() -> None:
    rng = np.random.default_rng(2)
    X = np.where(rng.random((400, 30)) < 0.1, rng.normal(size=(400, 30)), 0.0)
    y = np.where(X.sum(axis=1) > 0, "yes", "no")
    model = sapwood.SapwoodClassifier(n_estimators=5)
    wanted = model.fit(X, y).predict_proba(X)
    for table in (sp.csr_array(X), sp.csc_matrix(X)):
        fitted = sapwood.SapwoodClassifier(n_estimators=5).fit(
            table, y, eval_set=[(table, y)]
        )
        np.testing.assert_array_equal(fitted.predict_proba(table), wanted)
        np.testing.assert_array_equal(fitted.apply(table), model.apply(X))
        np.testing.assert_array_equal(
            list(fitted.staged_predict_proba(table))[-1], wanted
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("most", [255, 256])
def test_counts_are_copied_in_a_byte_each(dtype: type, most: int) -> None:
    """A table that must be turned around keeps its values; -1, fractions and NaN
    too.
    """
    rng = np.random.default_rng(0)
    whole = (rng.random((300, 5)) < 0.2) * rng.integers(1, most + 1, (300, 5))
    whole[0, 0] = most
    rows = sp.csr_array(whole.astype(dtype))
    table = sparse.read(rows, "X", False, arrays.readable)
    assert table.values.dtype == (np.uint8 if most == 255 else dtype)
    for odd in (-1, 0.5, np.nan) if dtype != np.int64 else (-1,):
        other = whole.astype(dtype)
        other[1, 1] = odd
        assert (
            sparse.read(sp.csr_array(other), "X", False, arrays.readable).values.dtype
            == dtype
        )
    label = rng.integers(0, 2, 300)
    assert (
        Dataset(rows, label).fingerprint()
        == Dataset(rows.toarray(), label).fingerprint()
    )
