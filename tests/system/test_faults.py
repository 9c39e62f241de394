"""Fifty faults: what must happen is what happens.

1 to 20 are bad tables: each does what is written beside it, and leaves the estimator
reusable. 21 to 50 are scale, interruption, files and clusters: a case below, or tests
elsewhere. What no test can cover has its reason at the end.
"""

import importlib.util
import io
import mmap
import os
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
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
    one, two = (
        SapwoodRegressor(**FEW).fit(given, Y, **fit) for given in (table, other)
    )
    np.testing.assert_array_equal(
        one.booster_.trees.threshold, two.booster_.trees.threshold
    )
    np.testing.assert_array_equal(one.predict(table), two.predict(other))


def with_value(values: Any, row: int, value: Any) -> Any:
    changed = np.array(values, float)
    changed[row] = value
    return changed


def labels_1_to_3() -> None:
    raises(lambda m: m.fit(X, with_value(Y, 7, np.nan)), "contains NaN, first in row 7")
    raises(
        lambda m: m.fit(X, with_value(Y, 3, np.inf)),
        "contains infinity, first in row 3",
    )
    raises(lambda m: m.fit(X, with_value(Y, 3, -np.inf)), "contains infinity")
    assert np.isfinite(SapwoodRegressor(**FEW).fit(X, Y * 1e100).predict(X)).all()
    raises(lambda m: m.fit(X, Y * 1e300), r"is not a number up to 1e\+150 in size")


def weights_4_5_20() -> None:
    for value, words in (
        (np.nan, "NaN"),
        (np.inf, "infinity"),
        (-1, "must not be negative"),
    ):
        raises(
            lambda m, value=value: m.fit(X, Y, with_value(np.ones(60), 5, value)), words
        )
    raises(lambda m: m.fit(X, Y, np.zeros(60)), "at least one weight must be positive")
    raises(lambda m: m.fit(X, Y, np.ones(59)), "inconsistent numbers of samples")
    raises(lambda m: m.fit(X, Y, np.ones((60, 2))), "1-D array")
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    exact = {**FEW, "max_bins": 1000, "min_samples_bin": 1}
    kept = SapwoodRegressor(**exact).fit(X[:40], Y[:40]).predict(X[:40])
    np.testing.assert_allclose(
        SapwoodRegressor(**exact).fit(X, Y, weight).predict(X[:40]), kept, rtol=1e-12
    )
    for given in (weight.tolist(), pd.Series(weight), weight[:, None]):
        np.testing.assert_array_equal(
            SapwoodRegressor(**exact).fit(X, Y, given).predict(X[:40]), kept
        )


def features_6_7() -> None:
    table = X.copy()
    table[:10, 0], table[10:20, 0], table[20:30, 0] = np.inf, -np.inf, np.nan
    y = np.repeat([5.0, -5.0, 1.0, 0.0, 0.0, 0.0], 10)
    found = (
        SapwoodRegressor(n_estimators=30, min_samples_leaf=2, min_samples_bin=1)
        .fit(table, y)
        .predict(table)
    )
    # infinite, missing: all told apart
    assert np.isfinite(found).all() and len({*found[[0, 10, 20]]}) == 3
    for empty in (np.full((60, 1), np.nan), np.ones((60, 2))):
        model = SapwoodRegressor(**FEW).fit(empty, Y)
        assert model.booster_.trees.n_nodes == model.booster_.trees.n_trees
        np.testing.assert_allclose(model.predict(empty), Y.mean())


def shapes_8_9() -> None:
    raises(lambda m: m.fit(np.empty((0, 3)), []), "0 sample")
    raises(lambda m: m.fit(np.empty((60, 0)), Y), r"0 feature\(s\)")
    for n in (1, 2):
        assert SapwoodRegressor(**FEW).fit(X[:n, :1], Y[:n]).predict(
            X[:n, :1]
        ).shape == (n,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (SapwoodClassifier(**FEW).fit(X, np.ones(60)).predict(X) == 1).all()


def classes_10_11() -> None:
    for values in (["no", "yes"], [False, True], [-(2**62), 2**62], [-3, 7]):
        y = np.array(values)[C]
        for given in (
            y,
            pd.Series(y),
            pd.Series(y).astype("category") if y.dtype.kind == "U" else y.tolist(),
        ):
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
    for table in (
        np.asfortranarray(X),
        room[::2, ::2],
        frozen,
        X.astype(">f8"),
        np.ma.MaskedArray(X),
        X.tolist(),
    ):
        same(table)
    half = X.astype(np.float16)
    same(half, half.astype(float))
    big = np.arange(60, dtype=np.uint64)[:, None] + np.uint64(2**53)
    raises(lambda m: m.fit(big, Y), "float64 cannot hold exactly")
    raises(lambda m: m.fit(X * 1j, Y), "Complex data not supported")
    raises(lambda m: m.fit([[1.0], [1.0, 2.0]], [0, 1]), "cannot be read as an array")
    raises(lambda m: m.fit(5.0, Y), "not a table")
    when = np.datetime64("2020-01-01") + np.arange(60)
    assert SapwoodRegressor(**FEW).fit(when[:, None], Y).predict(
        when[:, None]
    ).shape == (60,)


def sparse_13() -> None:
    dense = np.where(np.abs(X) < 0.7, 0.0, X)
    rows, columns = np.nonzero(dense)
    twice = sp.coo_array(
        (
            np.repeat(dense[rows, columns] / 2, 2),
            (np.repeat(rows, 2), np.repeat(columns, 2)),
        ),
        dense.shape,
    )
    wide = sp.csr_array(dense)
    wide.indices, wide.indptr = (
        wide.indices.astype(np.int64),
        wide.indptr.astype(np.int64),
    )
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
    unused = pa.DictionaryArray.from_arrays(
        pa.array([int(v == "v") * 2 for v in values]), ["u", "unused", "v"]
    )
    same(plain.append_column("t", unused), frame.assign(t=values))
    same(plain.append_column("n", pa.nulls(60)), frame.assign(n=np.nan))


def pandas_15() -> None:
    frame = pd.DataFrame(X, columns=list("abc")).assign(
        i=np.arange(60) % 5, b=X[:, 0] > 0, t=np.array(["u", "v"])[C]
    )
    same(frame.convert_dtypes(), frame)
    same(frame.astype({"t": "category"}), frame)
    same(frame.astype({"t": pd.CategoricalDtype(["v", "u", "w"], ordered=True)}), frame)
    same(
        frame.astype({"i": pd.SparseDtype("int64", 0)}).drop(columns="t"),
        frame.drop(columns="t"),
    )
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
    np.testing.assert_array_equal(
        model.booster_.predict(frame[list("cab")]), model.predict(frame)
    )
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
    for codes in (
        values - 3,
        values + 2**40,
        values.astype(float) / 2,
        values * 1_000_003,
    ):
        table = np.column_stack([X[:, 0], codes])
        model = SapwoodRegressor(**FEW, categorical_features=[1]).fit(table, Y)
        assert len(model.booster_.categories[1].values) == 5
        unseen, missing = (
            np.column_stack([X[:, 0], np.full(60, one)]) for one in (77.0, np.nan)
        )
        np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))
    text = np.array(list("vwxyz"))[values]
    kinds = [pd.CategoricalDtype(list(order)) for order in ("vwxyz", "zyxwv")]
    same(
        pd.DataFrame({"t": pd.Series(text, dtype=kinds[0])}),
        pd.DataFrame({"t": pd.Series(text, dtype=kinds[1])}),
    )
    many = np.arange(100_000)
    data = sw.Dataset(many[:, None], categorical_features=[0])
    assert len(data.categories[0].values) == len(many)


def changes_19() -> None:
    x = X.copy()
    y = Y.copy()
    w = np.ones(60)
    params = dict(FEW)
    data = sw.Dataset(x, y, weight=w)
    before = sw.train(params, data)
    x[:], y[:], w[:] = 0, 0, 0
    params["n_estimators"] = 1
    np.testing.assert_array_equal(sw.train(FEW, data).predict(X), before.predict(X))
    assert before.n_rounds == 4


def sizes_21_23() -> None:
    with pytest.raises(ValueError, match="a table may have 2147483647 rows"):
        sw.Dataset(np.broadcast_to(np.float32(1), (2**31, 1)))
    half = np.broadcast_to(np.float32(1), (2**30, 2))
    with pytest.raises(ValueError, match="a table may have 2147483647 rows"):
        sw.Dataset.from_chunks([(half, None), (half, None)])
    # 100,000 bins in all
    many = np.column_stack(
        [np.random.default_rng(k).permutation(5_000) for k in range(20)]
    )
    y = (many[:, 0] > 2_000) + 1e-3 * many[:, 7]
    for max_bins in (2, 65_535):
        data = sw.Dataset(many, y, max_bins=max_bins, min_samples_bin=1)
        for limits in (
            {"max_leaves": 2},
            {"max_leaves": 2**31 - 1},
            {"max_depth": 2**31 - 1, "max_leaves": 40},
        ):
            model = sw.train(
                {"n_estimators": 1, "min_samples_leaf": 40, **limits}, data
            )
            assert np.isfinite(model.predict(many)).all() and model.trees.n_nodes > 1
    for name, value in (
        ("max_leaves", 2**31),
        ("max_depth", 2**63),
        ("max_bins", 65_536),
        ("max_bins", 1),
    ):
        with pytest.raises(ValueError, match=name):
            SapwoodRegressor(**{name: value}).fit(X, Y)


def cells_21() -> None:
    """More than 2^31 cells: a sparse table, predictions of a dense one, and training on
    one of few values a column.
    """
    rng = np.random.default_rng(0)
    few = {"n_estimators": 2, "max_leaves": 5}
    rows = rng.choice(3_000_000, 100_000, replace=False)
    columns = rng.choice([0, 500, 999], 100_000)
    wide = sp.csr_array(
        (rng.integers(1, 50, 100_000).astype(np.float32), (rows, columns)),
        shape=(3_000_000, 1_000),
    )
    narrow = wide[:, [0, 500, 999]]
    y = wide[:, [999]].toarray().ravel() + rng.integers(0, 2, wide.shape[0])
    large, small = (sw.train(few, sw.Dataset(table, y)) for table in (wide, narrow))
    assert set(large.trees.column.tolist()) == {-1, 999}
    np.testing.assert_array_equal(large.predict(wide), small.predict(narrow))
    table = np.lib.stride_tricks.sliding_window_view(
        rng.integers(0, 3, 22_000_099).astype(np.float32), 100
    )
    assert table.size > 2**31
    y = 2 * table[:, 99] + table[:, 3]
    y[-1] += 100  # which the last cell alone can say
    large = sw.train(few, sw.Dataset(table, y, max_bins=4))
    small = sw.train(few, sw.Dataset(table[:, [3, 99]], y, max_bins=4))
    assert set(large.trees.column.tolist()) == {-1, 3, 99}
    for name in ("threshold", "value", "left"):
        np.testing.assert_array_equal(
            getattr(large.trees, name), getattr(small.trees, name)
        )
    np.testing.assert_array_equal(
        large.predict(table), small.predict(table[:, [3, 99]])
    )


PREDICTIONS = """
import resource, numpy as np, sapwood as sw
X = np.arange(60.0)[:, None] % 7
model = sw.train({"n_estimators": 2, "objective": "softmax"}, sw.Dataset(X, X[:, 0] % 3))
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
for rows in (2**31 - 1, 2**30, 3 * 2**28):
    try:
        model.predict(np.broadcast_to(np.float32(1), (rows, 1)))
    except MemoryError:
        print("MemoryError", model.predict(X).shape)
"""


def outputs_22() -> None:
    """Rows times classes beyond 2^31, more than memory holds: an error, and the process
    goes on.
    """
    done = subprocess.run(
        [sys.executable, "-c", PREDICTIONS], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:-1] == ["MemoryError (60, 3)"] * 3, (
        done.stdout + done.stderr
    )


MEMORY = """
import resource, sys, numpy as np, sapwood as sw
kind, rows = sys.argv[1], 400_000
def table(n):
    values = np.random.default_rng(0).normal(size=(n, 20)).astype(np.float32)
    if kind == "numpy":
        return values
    import pyarrow as pa
    arrow = pa.table({f"c{j}": np.ascontiguousarray(values[:, j]) for j in range(20)})
    return arrow if kind == "arrow" else arrow.to_pandas()
def fit(X, n):
    sw.train({"n_estimators": 2, "n_jobs": 2}, sw.Dataset(X, np.arange(n, dtype=np.float32), n_jobs=2))
fit(table(1_000), 1_000)
X = table(rows)
with open("/proc/self/clear_refs", "w") as file:  # the peak from here on
    file.write("5")
def now(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024
before = now("VmRSS")
fit(X, rows)
print((now("VmHWM") - before) / (rows * 80))
"""


def memory_25() -> None:
    for kind in ("numpy", "arrow", "pandas"):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, kind],
            capture_output=True,
            text=True,
            check=False,
        )
        if "clear_refs" in done.stderr:
            pytest.skip("this system does not let a process reset its peak")
        assert done.returncode == 0, done.stderr
        # of the bytes of the table
        assert float(done.stdout) < 1.5, (kind, done.stdout)


NEIGHBOURS = """
import importlib, sys, numpy as np
names = sys.argv[1:]
X = np.random.default_rng(0).normal(size=(2000, 4))
for name in names:
    importlib.import_module(name)
import lightgbm, sapwood as sw, xgboost
from sklearn.ensemble import HistGradientBoostingRegressor
for _ in range(2):
    lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, X[:, 0])
    xgboost.XGBRegressor(n_estimators=3).fit(X, X[:, 0])
    HistGradientBoostingRegressor(max_iter=3).fit(X, X[:, 0])
    print(sw.train({"n_estimators": 3}, sw.Dataset(X, X[:, 0])).fingerprint())
"""


def neighbours_29() -> None:
    found = set()
    for order in (
        ["sapwood", "lightgbm", "xgboost", "sklearn"],
        ["sklearn", "xgboost", "lightgbm", "sapwood"],
    ):
        if importlib.util.find_spec("torch"):
            order.insert(2, "torch")
        done = subprocess.run(
            [sys.executable, "-c", NEIGHBOURS, *order],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found |= {*done.stdout.split()}
    assert len(found) == 1


def clocks_36() -> None:
    """The wall clock jumps by a year in every round: nothing happens. The other one
    jumps: training ends well.
    """
    rounds, now, clock = [], time.time, time.monotonic
    jump = [0.0, 0.0]

    def watch(view: Any) -> None:
        rounds.append(view.index)
        jump[0] += (-1) ** view.index * 365 * 86_400
        jump[1] += 3_600 * (view.index == 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: now() + jump[0])
        patch.setattr("time.monotonic", lambda: clock() + jump[1])
        params = {"n_estimators": 6, "min_samples_leaf": 2}
        free = sw.train(params, sw.Dataset(X, Y), callbacks=[watch])
        assert len(rounds) == free.n_rounds == 6 and free.predict(X).shape == (60,)
        jump[1] = 0.0
        rounds.clear()
        limited = sw.train(
            params, sw.Dataset(X, Y), callbacks=[watch, sw.callback.time_limit(600)]
        )
    assert limited.n_rounds == 3
    np.testing.assert_array_equal(limited.predict(X), free.predict(X, rounds=3))


# What models of older formats predict for these rows, bit for bit.
GOLDEN = Path(__file__).parent.parent / "golden"
OLD_ROWS = pd.DataFrame(
    {
        "a": [0.5, np.nan, -1.25],
        "b": [-0.5, 0.75, 1.5],
        "c": [0.1, -0.2, np.nan],
        "t": ["Rome", "Oslo", None],
        "u": ["x", "y", "x"],
        "when": pd.to_datetime(["2024-02-29 13:00:00", None, "1969-12-31 00:00:00"]),
        "said": ["red wine", "", None],
        "place": [[0.5, -0.5], [1.0, 2.0], [0.0, 0.0]],
    }
)
OLD = {
    2: ("a b t u", "0x1.7ab6f77a28644p-2 0x1.0358df8b54c58p-3 0x1.a2dfafdf13506p-3"),
    5: ("a b", "0x1.10f2b646aa6dep-3 0x1.f36bdfc09f16bp-3 -0x1.8332ec1247a68p-4"),
    6: (
        "a b t u when",
        "0x1.671735b0c7c71p+2 0x1.ed41f23efed7ap+2 0x1.cec5061d33884p+2",
    ),
    7: (
        "a b c t said when place",
        "-0x1.415f189073a42p-4 -0x1.e17411595031fp-4 -0x1.0acd1348ea7d2p-1",
    ),
}
OLD_ESTIMATOR = "0x1.792ed6076fea2p-4 0x1.0d396762395f6p-2 0x1.c97a4b38165aep-4"


def formats_41() -> None:
    for version, (names, right) in OLD.items():
        raw = (GOLDEN / f"model-{version}.sapwood").read_bytes()
        model = sw.load(raw)
        assert model.to_bytes() == raw
        assert model.predict(OLD_ROWS[names.split()]).tolist() == [
            float.fromhex(one) for one in right.split()
        ]


def saving_38() -> None:
    """Two processes save to one path, again and again: a reader finds a whole model of
    one of them, always.
    """
    script = "import sys, sapwood as sw\nb = sw.load(sys.argv[1])\nfor _ in range(60): b.save(sys.argv[2])"
    with tempfile.TemporaryDirectory() as folder:
        models = [
            sw.train({**FEW, "random_state": k}, sw.Dataset(X, Y + k)) for k in (1, 2)
        ]
        paths = [Path(folder, f"{k}.sapwood") for k in range(2)]
        target = Path(folder, "both.sapwood")
        for model, path in zip(models, paths, strict=True):
            model.save(path)
        models[0].save(target)
        writers = [
            subprocess.Popen([sys.executable, "-c", script, path, target])
            for path in paths
        ]
        right = {model.to_bytes() for model in models}
        n = 0
        while any(one.poll() is None for one in writers):
            assert target.read_bytes() in right
            n += 1
        assert n > 5 and [one.returncode for one in writers] == [0, 0]
        assert sorted(path.name for path in Path(folder).iterdir()) == [
            "0.sapwood",
            "1.sapwood",
            "both.sapwood",
        ]


def sources_40() -> None:
    """Bytes, views, a mapped file, a pipe, a member of an archive; a file that shrinks
    later does no harm.
    """
    booster = sw.train(FEW, sw.Dataset(X, Y))
    raw = booster.to_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model", raw)
    reading, writing = os.pipe()
    os.write(writing, raw)
    os.close(writing)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "größe 模型.sapwood")
        booster.save(path)
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        ):
            found = [
                sw.load(one)
                for one in (
                    path,
                    str(path),
                    raw,
                    bytearray(raw),
                    memoryview(raw),
                    mapped,
                )
            ]
        os.truncate(path, 10)
        with (
            zipfile.ZipFile(packed).open("model") as member,
            os.fdopen(reading, "rb") as pipe,
        ):
            found += [sw.load(member), sw.load(pipe)]
    assert {one.to_bytes() for one in found} == {raw}
    np.testing.assert_array_equal(found[0].predict(X), booster.predict(X))


def pickles_42() -> None:
    with warnings.catch_warnings():
        # scikit-learn says that the file is of another version of it
        warnings.simplefilter("ignore")
        old = pickle.loads((GOLDEN / "estimator-1.pickle").read_bytes())
    assert old.predict(OLD_ROWS[["a", "b"]]).tolist() == [
        float.fromhex(one) for one in OLD_ESTIMATOR.split()
    ]
    model = SapwoodRegressor(**FEW).fit(X, Y)
    right = model.booster_.to_bytes()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(model, protocol)).booster_.to_bytes() == right
    file = io.BytesIO()
    joblib.dump(model, file)
    assert joblib.load(io.BytesIO(file.getvalue())).booster_.to_bytes() == right
    cloudpickle = pytest.importorskip("cloudpickle")
    assert cloudpickle.loads(cloudpickle.dumps(model)).booster_.to_bytes() == right
    skops = pytest.importorskip("skops.io")
    kept = skops.dumps(model)
    assert (
        skops.loads(
            kept, trusted=skops.get_untrusted_types(data=kept)
        ).booster_.to_bytes()
        == right
    )


def command_line_43() -> None:
    """`sapwood inspect` of a hostile file, with 2 GB and 10 s: one line and a status,
    no traceback.
    """
    pytest.importorskip("typer")
    raw = sw.train(FEW, sw.Dataset(X, Y)).to_bytes()
    deep = b'{"learner":' + b"[" * 100_000
    for content in (
        b"",
        raw[:200],
        raw[:-1],
        bytes(1_000),
        deep,
        b"tree\nversion=v4\nnum_class=1000000000\n",
    ):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))  # noqa: E731
            line = [sys.executable, "-m", "sapwood", "inspect", file.name]
            done = subprocess.run(
                line,
                capture_output=True,
                text=True,
                preexec_fn=limit,
                timeout=60,
                check=False,
            )
        assert (
            done.returncode not in (0, -6, -9, -11) and "Traceback" not in done.stderr
        ), done.stderr
        assert done.stderr.strip().count("\n") <= 2, done.stderr


# Faults whose tests stand elsewhere.
ELSEWHERE = {
    24: [
        "system/test_allocations.py::test_a_failed_allocation_raises_memory_error",
        "system/test_process.py::test_out_of_memory_is_an_error_and_the_next_fit_works",
    ],
    26: [
        "system/test_process.py::test_n_jobs_is_the_number_of_threads",
        "system/test_process.py::test_the_quota_of_the_cgroup",
        "system/test_process.py::test_an_affinity_of_one_cpu_is_one_thread",
        "system/test_process.py::test_n_jobs_of_every_kind",
    ],
    27: ["system/test_process.py::test_fewer_threads_where_no_more_can_be_started"],
    28: [
        "system/test_process.py::test_fork_then_train_in_the_child",
        "system/test_process.py::test_fork_while_another_thread_fits",
        "system/test_process.py::test_worker_processes",
        "system/test_process.py::test_use_while_the_interpreter_goes_away",
    ],
    30: [
        "system/test_process.py::test_sixteen_threads_predict_with_one_model",
        "system/test_process.py::test_a_fit_and_predictions_at_the_same_time",
    ],
    31: ["system/test_process.py::test_two_threads_fit_the_same_estimator"],
    32: [
        "system/test_process.py::test_ctrl_c_ends_it_within_a_second",
        "system/test_interrupts.py::test_signals_at_random_moments",
    ],
    33: ["system/test_process.py::test_an_error_in_user_code_comes_out_as_it_is"],
    34: [
        "unit/boost/test_checkpoint.py::test_kill",
        "unit/boost/test_checkpoint.py::test_resumed_training_ends_with_the_same_bytes",
    ],
    35: [
        "unit/boost/test_checkpoint.py::test_other_parameters_are_refused",
        "unit/boost/test_checkpoint.py::test_other_data_and_versions_are_refused",
        "unit/boost/test_checkpoint.py::test_more_and_fewer_rounds_threads_and_other_harmless_changes",
    ],
    36: [
        "unit/boost/round/test_callback.py::test_time_limit",
        "unit/boost/auto/test_auto.py::test_time_limit_is_kept",
    ],
    37: [
        "unit/model/test_io.py::test_a_save_that_fails_leaves_everything_as_it_was",
        "unit/model/test_io.py::test_a_full_disk_leaves_everything_as_it_was",
        "unit/system/test_writing.py::test_what_a_killed_process_left_is_removed",
        "system/test_writing_faults.py::test_a_killed_command_leaves_the_old_file",
    ],
    39: [
        "unit/model/test_io.py::test_every_truncation_raises",
        "unit/data/test_container.py::test_every_changed_bit_raises",
        "unit/model/test_io.py::test_lies_in_the_content_raise",
        "unit/model/test_io.py::test_lies_about_the_header_raise",
        "fuzz/test_fuzz.py::test_mutants_are_taken_or_refused",
    ],
    41: [
        "unit/model/test_io.py::test_files_of_the_first_format_load_and_stay_as_they_are"
    ],
    44: [
        "unit/dask/test_faults.py::test_killed_worker",
        "unit/dask/test_faults.py::test_stopped_worker",
        "unit/dask/test_faults.py::test_killed_before_and_after",
        "unit/dask/test_faults.py::test_paused_worker",
        "unit/dask/test_faults.py::test_scheduler_restarted_or_gone",
        "unit/dask/test_faults.py::test_worker_added_and_client_gone_and_back",
        "unit/dask/test_faults.py::test_what_cannot_recover_raises",
        "unit/holders/test_communicator.py::test_a_holder_that_does_not_answer",
    ],
    45: [
        "unit/dask/test_training.py::test_same_bytes",
        "unit/dask/test_training.py::test_partitions_of_one_class_and_with_other_categories",
    ],
    46: ["unit/dask/test_training.py::test_rows_lost_or_counted_twice_are_refused"],
    47: ["unit/dask/test_training.py::test_other_versions_are_refused"],
    48: [
        "unit/dask/test_training.py::test_two_trainings_at_once",
        "unit/dask/test_training.py::test_async_client_and_cancelling",
        "unit/dask/test_training.py::test_inside_a_task",
    ],
    49: [
        "unit/dask/test_training.py::test_hostile_bytes_are_refused_and_the_training_goes_on",
        "unit/dask/test_outbox.py::test_a_length_that_is_none_of_ours",
        "unit/holders/test_messages.py::test_every_damage_is_refused",
        "fuzz/test_fuzz.py::test_mutants_are_taken_or_refused",
    ],
    50: [
        "unit/dask/test_faults.py::test_numbers_of_workers",
        "unit/dask/test_training.py::test_same_bytes",
        "law/test_holders.py::test_holders",
    ],
}
# What of a fault no test here covers, and why.
REASONS = {
    21: "Rows are at most 2^31 - 1, and more are refused. More than 2^31 stored entries of a sparse table need 24 GB.",
    22: "Predictions that memory does hold are 16 GB here: their sizes are 64-bit in the core, and no test has them.",
    29: "macOS has no machine here. torch is tried where it is installed.",
    30: "Python without a GIL is built from Debian's sources by `make free-threaded`, not for every commit. The "
    "interpreter of `make tsan` has one.",
    36: "Nobody may set the clock of this machine: the test changes what Python says of it.",
    41: "There is one release. Models of aarch64 have the same bytes (`make arm`). Big-endian arrays are written as "
    "others are (unit/data/test_container.py), but no such machine was at hand.",
    42: "Pickles hold the bytes of a .sapwood file, which is read on every machine; a 32-bit one was not at hand.",
}


def test_every_fault_has_a_test() -> None:
    here = {int(n) for case in CASES for n in covered(case.__name__)}
    assert here | ELSEWHERE.keys() == {*range(1, 51)}
    for where in (one for tests in ELSEWHERE.values() for one in tests):
        path, _, name = where.partition("::")
        assert f"\ndef {name}(" in (Path(__file__).parent.parent / path).read_text(), (
            where
        )
    assert all(reason.endswith(".") for reason in REASONS.values())


def covered(name: str) -> list[int]:
    """The numbers in the name of a case: ``weights_4_5_20``, ``sizes_21_23``."""
    if found := re.search(r"(\d+)_to_(\d+)$", name):
        return [*range(int(found[1]), int(found[2]) + 1)]
    return [int(n) for n in re.findall(r"_(\d+)", name)]


CASES = [
    labels_1_to_3,
    weights_4_5_20,
    features_6_7,
    shapes_8_9,
    classes_10_11,
    arrays_12,
    sparse_13,
    arrow_14,
    pandas_15,
    lazy_16,
    names_17,
    categories_18,
    changes_19,
    sizes_21_23,
    cells_21,
    outputs_22,
    memory_25,
    neighbours_29,
    clocks_36,
    saving_38,
    sources_40,
    formats_41,
    pickles_42,
    command_line_43,
]


# processes that import much
NIGHTLY = (cells_21, outputs_22, memory_25, neighbours_29, saving_38, command_line_43)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.nightly if case in NIGHTLY else ())
        for case in CASES
    ],
    ids=lambda case: case.__name__,
)
def test_fault(case: Callable[[], None]) -> None:
    case()
