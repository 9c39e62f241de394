"""Bad tables, one by one: each of twenty cases does what is written beside it, and leaves the estimator reusable."""

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import sapwood as sw
from sapwood import SapwoodClassifier, SapwoodRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
C = (Y > 0).astype(int)
FEW = {"n_estimators": 4, "min_samples_leaf": 2}


def raises(call: Callable[[SapwoodRegressor], Any], words: str) -> None:
    model = SapwoodRegressor(**FEW)
    with pytest.raises(ValueError, match=words):
        call(model)
    assert not hasattr(model, "booster_")
    model.fit(X, Y)  # it can be used again


def same(table: Any, other: Any = X, **fit: Any) -> None:
    one, two = (SapwoodRegressor(**FEW).fit(given, Y, **fit) for given in (table, other))
    np.testing.assert_array_equal(one.booster_.trees.threshold, two.booster_.trees.threshold)
    np.testing.assert_array_equal(one.predict(table), two.predict(other))


def with_value(values: Any, row: int, value: Any) -> Any:
    changed = np.array(values, float)
    changed[row] = value
    return changed


def labels_1_to_3() -> None:
    raises(lambda m: m.fit(X, with_value(Y, 7, np.nan)), "contains NaN, first in row 7")
    raises(lambda m: m.fit(X, with_value(Y, 3, np.inf)), "contains infinity, first in row 3")
    raises(lambda m: m.fit(X, with_value(Y, 3, -np.inf)), "contains infinity")
    assert np.isfinite(SapwoodRegressor(**FEW).fit(X, Y * 1e100).predict(X)).all()
    raises(lambda m: m.fit(X, Y * 1e300), r"is not a number up to 1e\+150 in size")


def weights_4_5_20() -> None:
    for value, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-1, "must not be negative")):
        raises(lambda m, value=value: m.fit(X, Y, with_value(np.ones(60), 5, value)), words)
    raises(lambda m: m.fit(X, Y, np.zeros(60)), "at least one weight must be positive")
    raises(lambda m: m.fit(X, Y, np.ones(59)), "inconsistent numbers of samples")
    raises(lambda m: m.fit(X, Y, np.ones((60, 2))), "1-D array")
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    exact = {**FEW, "max_bins": 1000, "min_samples_bin": 1}
    kept = SapwoodRegressor(**exact).fit(X[:40], Y[:40]).predict(X[:40])
    np.testing.assert_allclose(SapwoodRegressor(**exact).fit(X, Y, weight).predict(X[:40]), kept, rtol=1e-12)
    for given in (weight.tolist(), pd.Series(weight), weight[:, None]):
        np.testing.assert_array_equal(SapwoodRegressor(**exact).fit(X, Y, given).predict(X[:40]), kept)


def features_6_7() -> None:
    table = X.copy()
    table[:10, 0], table[10:20, 0], table[20:30, 0] = np.inf, -np.inf, np.nan
    y = np.repeat([5.0, -5.0, 1.0, 0.0, 0.0, 0.0], 10)
    found = SapwoodRegressor(n_estimators=30, min_samples_leaf=2, min_samples_bin=1).fit(table, y).predict(table)
    assert np.isfinite(found).all() and len({*found[[0, 10, 20]]}) == 3  # infinite, missing: all told apart
    for empty in (np.full((60, 1), np.nan), np.ones((60, 2))):
        model = SapwoodRegressor(**FEW).fit(empty, Y)
        assert model.booster_.trees.n_nodes == model.booster_.trees.n_trees
        np.testing.assert_allclose(model.predict(empty), Y.mean())


def shapes_8_9() -> None:
    raises(lambda m: m.fit(np.empty((0, 3)), []), "0 sample")
    raises(lambda m: m.fit(np.empty((60, 0)), Y), r"0 feature\(s\)")
    for n in (1, 2):
        assert SapwoodRegressor(**FEW).fit(X[:n, :1], Y[:n]).predict(X[:n, :1]).shape == (n,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (SapwoodClassifier(**FEW).fit(X, np.ones(60)).predict(X) == 1).all()


def classes_10_11() -> None:
    for values in (["no", "yes"], [False, True], [-(2**62), 2**62], [-3, 7]):
        y = np.array(values)[C]
        for given in (y, pd.Series(y), pd.Series(y).astype("category") if y.dtype.kind == "U" else y.tolist()):
            model = SapwoodClassifier(**FEW).fit(X, given)
            again = sw.load(model.booster_.to_bytes())
            assert model.classes_.tolist() == again.classes.tolist() == sorted(values)
            assert set(model.predict(X).tolist()) <= set(values)
    with pytest.raises(ValueError, match=r"classes that y has not: .*2"):
        SapwoodClassifier(**FEW).fit(X, C, X_val=X[:3], y_val=[0, 1, 2])


def arrays_12() -> None:
    room = np.zeros((120, 6))
    room[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    file = io.BytesIO()
    np.save(file, X)
    for table in (np.asfortranarray(X), room[::2, ::2], frozen, X.astype(">f8"), np.ma.MaskedArray(X), X.tolist()):
        same(table)
    half = X.astype(np.float16)
    same(half, half.astype(float))
    big = np.arange(60, dtype=np.uint64)[:, None] + np.uint64(2**53)
    raises(lambda m: m.fit(big, Y), "float64 cannot hold exactly")
    raises(lambda m: m.fit(X * 1j, Y), "Complex data not supported")
    raises(lambda m: m.fit([[1.0], [1.0, 2.0]], [0, 1]), "cannot be read as an array")
    raises(lambda m: m.fit(5.0, Y), "not a table")
    when = np.datetime64("2020-01-01") + np.arange(60)
    assert SapwoodRegressor(**FEW).fit(when[:, None], Y).predict(when[:, None]).shape == (60,)


def sparse_13() -> None:
    dense = np.where(np.abs(X) < 0.7, 0.0, X)
    rows, columns = np.nonzero(dense)
    twice = sp.coo_array(
        (np.repeat(dense[rows, columns] / 2, 2), (np.repeat(rows, 2), np.repeat(columns, 2))), dense.shape
    )
    wide = sp.csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    stored = sp.csc_array(dense)
    stored.data[:3] = 0.0
    for make in (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array):
        same(make(dense), dense)
    same(wide, dense)
    same(twice, dense)
    same(stored, stored.toarray())


def arrow_14() -> None:
    names = list("abc")
    plain = pa.table(dict(zip(names, X.T, strict=True)))
    padded = pa.concat_tables([plain[:0], plain[:20], plain[20:]])
    longer = pa.concat_tables([plain[:5], plain]).slice(5)
    frame = plain.to_pandas()
    for table in (plain, padded, longer):
        same(table, frame)
    values = RNG.choice(["u", "v"], 60)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        text = plain.append_column("t", pa.array(values, pa.string()).cast(kind))
        same(text, frame.assign(t=values))
    unused = pa.DictionaryArray.from_arrays(pa.array([int(v == "v") * 2 for v in values]), ["u", "unused", "v"])
    same(plain.append_column("t", unused), frame.assign(t=values))
    same(plain.append_column("n", pa.nulls(60)), frame.assign(n=np.nan))


def pandas_15() -> None:
    frame = pd.DataFrame(X, columns=list("abc")).assign(i=np.arange(60) % 5, b=X[:, 0] > 0, t=np.array(["u", "v"])[C])
    same(frame.convert_dtypes(), frame)
    same(frame.astype({"t": "category"}), frame)
    same(frame.astype({"t": pd.CategoricalDtype(["v", "u", "w"], ordered=True)}), frame)
    same(frame.astype({"i": pd.SparseDtype("int64", 0)}).drop(columns="t"), frame.drop(columns="t"))
    missing = frame.assign(t=frame["t"].where(frame.index != 3, None))
    same(missing.astype({"t": "category"}), missing)


def lazy_16() -> None:
    frame = pl.DataFrame(X, schema=list("abc"))
    with pytest.warns(UserWarning, match="collected into memory"):
        same(frame.lazy(), frame)
    duckdb = pytest.importorskip("duckdb")
    with pytest.warns(UserWarning, match="collected into memory"):
        same(duckdb.from_arrow(frame.to_arrow()), frame)
    reader = frame.to_arrow().to_reader()
    booster = sw.train({"n_estimators": 2}, sw.Dataset(reader, Y))
    assert len(booster.predict(frame)) == 60
    with pytest.raises(ValueError, match="a stream can be read once"):
        sw.Dataset(reader, Y)  # consumed


def names_17() -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    model = SapwoodRegressor(**FEW).fit(frame, Y)
    np.testing.assert_array_equal(model.booster_.predict(frame[list("cab")]), model.predict(frame))
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[list("cab")])  # as scikit-learn does
    with pytest.raises(ValueError, match=r"Missing: 'c'\. Unknown: 'd'"):
        model.booster_.predict(frame.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="unique"):
        SapwoodRegressor(**FEW).fit(frame.set_axis(list("aab"), axis=1), Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def categories_18() -> None:
    values = RNG.integers(0, 5, 60)
    for codes in (values - 3, values + 2**40, values.astype(float) / 2, values * 1_000_003):
        table = np.column_stack([X[:, 0], codes])
        model = SapwoodRegressor(**FEW, categorical_features=[1]).fit(table, Y)
        assert len(model.booster_.categories[1].values) == 5
        unseen, missing = (np.column_stack([X[:, 0], np.full(60, one)]) for one in (77.0, np.nan))
        np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))
    text = np.array(list("vwxyz"))[values]
    kinds = [pd.CategoricalDtype(list(order)) for order in ("vwxyz", "zyxwv")]
    same(pd.DataFrame({"t": pd.Series(text, dtype=kinds[0])}), pd.DataFrame({"t": pd.Series(text, dtype=kinds[1])}))
    many = np.arange(100_000)
    data = sw.Dataset(many[:, None], categorical_features=[0])
    assert len(data.categories[0].values) == len(many)


def changes_19() -> None:
    x, y, w, params = X.copy(), Y.copy(), np.ones(60), dict(FEW)
    data = sw.Dataset(x, y, weight=w)
    before = sw.train(params, data)
    x[:], y[:], w[:] = 0, 0, 0
    params["n_estimators"] = 1
    np.testing.assert_array_equal(sw.train(FEW, data).predict(X), before.predict(X))
    assert before.n_rounds == 4


CASES = [
    labels_1_to_3, weights_4_5_20, features_6_7, shapes_8_9, classes_10_11, arrays_12, sparse_13, arrow_14, pandas_15,
    lazy_16, names_17, categories_18, changes_19,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_fault(case: Callable[[], None]) -> None:
    case()
