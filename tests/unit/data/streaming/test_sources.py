"""Files, readers, lazy frames, queries and iterators give the same data set as one
table in memory.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from sapwood import Dataset
from sapwood.data.ingest import sources
from sapwood.errors import DataError, ParameterError


def table(n: int = 600) -> pd.DataFrame:
    """Numbers, integers, text with missing values, times, and a label."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "k": rng.integers(0, 9, n),
            "c": rng.choice(["a", "b", "d"], n),
        }
    )
    frame["t"] = pd.Timestamp("2025-03-01") + pd.to_timedelta(
        rng.integers(0, 10**7, n), unit="s"
    )
    frame.loc[rng.random(n) < 0.1, "c"] = None
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    frame["w"] = rng.integers(0, 3, n).astype(float)
    frame["y"] = frame.k + (frame.c == "a") + rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def whole() -> Dataset:
    frame = table()
    return Dataset(frame.drop(columns=["w", "y"]), label=frame.y, weight=frame.w)


def pieces(frame: pd.DataFrame) -> list[pa.Table]:
    return [
        pa.Table.from_pandas(frame.iloc[a:b], preserve_index=False)
        for a, b in ((0, 100), (100, 101), (101, 600))
    ]


TAKEN = {"label": "y", "weight": "w"}


@pytest.mark.parametrize("form", ["parquet", "feather", "csv", "csv.gz"])
@pytest.mark.parametrize("how", ["folder", "pattern", "list"])
def test_files(tmp_path: Path, whole: Dataset, form: str, how: str) -> None:
    for k, piece in enumerate(pieces(table())):
        path = tmp_path / f"part-{k}.{form}"
        if form == "parquet":
            parquet.write_table(piece, path, row_group_size=70)
        elif form == "feather":
            feather.write_feather(piece, path)
        elif form == "csv":
            csv.write_csv(piece, path)
        else:
            with gzip.open(path, "wb") as file:
                csv.write_csv(piece, file)
    (tmp_path / "_SUCCESS").write_text("")
    paths = sorted(tmp_path.glob("part-*"))
    given = {"folder": tmp_path, "pattern": str(tmp_path / "part-*"), "list": paths}[
        how
    ]
    data = Dataset.from_files(given, **TAKEN)
    assert data.fingerprint() == whole.fingerprint()
    assert data.times == whole.times and data.categories == whole.categories


def test_chosen_columns(tmp_path: Path) -> None:
    frame = table()
    frame.to_parquet(tmp_path / "rows.parquet")
    data = Dataset.from_files(tmp_path / "rows.parquet", "y", columns=["k", "x"])
    assert data.fingerprint() == Dataset(frame[["k", "x"]], label=frame.y).fingerprint()
    with pytest.raises(DataError, match="has no column 'z'"):
        Dataset.from_files(tmp_path / "rows.parquet", "y", columns=["z"])


def batches_of(kind: str) -> Any:
    frame = table()
    tables = pieces(frame)
    if kind == "polars":
        import polars

        return polars.from_pandas(frame).lazy()
    if kind == "duckdb":
        import duckdb

        rows = pa.Table.from_pandas(frame, preserve_index=False)
        return duckdb.connect().from_arrow(rows)
    if kind == "generator":
        return (one for one in tables)
    if kind == "function":
        return lambda: iter(tables)
    if kind == "reader":
        joined = pa.concat_tables(tables)
        return pa.RecordBatchReader.from_batches(joined.schema, joined.to_batches())
    if kind == "dataset":
        from pyarrow import dataset

        return dataset.dataset(pa.concat_tables(tables))
    return {
        "list": tables,
        "pandas": [one.to_pandas() for one in tables],
        "table": frame,
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "list",
        "pandas",
        "table",
        "generator",
        "function",
        "reader",
        "dataset",
        "polars",
        "duckdb",
    ],
)
def test_batches(whole: Dataset, kind: str) -> None:
    data = Dataset.from_batches(batches_of(kind), **TAKEN)
    assert data.fingerprint() == whole.fingerprint()


def test_a_csv_column_that_becomes_wider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = csv.ReadOptions(block_size=256)
    monkeypatch.setattr(csv, "ReadOptions", lambda **_: small)
    n = 300
    frame = pd.DataFrame(
        {
            "a": np.arange(n, dtype=float),
            "b": ["7"] * (n - 1) + ["seven"],
            "y": np.arange(n) % 5,
        }
    )
    frame["a"] = [str(k) if k < 200 else f"{k}.5" for k in range(n)]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    data = Dataset.from_files(tmp_path / "rows.csv", "y")
    assert list(data.categories) == [1] and len(data.cuts[0]) > 100
    assert set(data.categories[1].values) == {"7", "seven"}


def test_numbers_before_text_are_categories() -> None:
    X = [np.array([[k] for k in (1, 2, 1)], object), np.array([["x"], ["1"]], object)]
    y = np.arange(5.0)
    frames = [pd.DataFrame({"c": one[:, 0]}) for one in X]
    frames[0] = frames[0].astype(str).astype(float).astype(int)
    with pytest.raises(DataError, match="is text in batch 1, and numbers in batch 0"):
        Dataset.from_batches([(frames[0], y[:3]), (frames[1], y[3:])])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("no/such/file.parquet", "there is no file"),
        ("*.nothing", "no file is called"),
        ([], "got no file"),
    ],
)
def test_files_that_are_not_there(wrong: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset.from_files(wrong, "y")


def test_what_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"this is no Parquet file")
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as parquet"):
        Dataset.from_files(tmp_path / "a.parquet", "y")
    (tmp_path / "b.feather").write_bytes(b"ARROW1 but no more")
    with pytest.raises(DataError, match=r"b\.feather cannot be read as feather"):
        Dataset.from_files(tmp_path / "b.feather", "y")
    (tmp_path / "rows.xyz").write_text("1")
    with pytest.raises(DataError, match="the name does not say the format"):
        Dataset.from_files(tmp_path / "rows.xyz", "y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no files that end in"):
        Dataset.from_files(tmp_path / "empty", "y")
    with pytest.raises(DataError, match="from_batches got a int"):
        Dataset.from_batches(3)
    with pytest.raises(DataError, match="there are no rows"):
        Dataset.from_batches([])


def test_files_of_other_columns(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"a": [1.0, 2.0], "y": [0.0, 1.0]}), tmp_path / "a.parquet"
    )
    parquet.write_table(
        pa.table({"b": [1.0, 2.0], "y": [0.0, 1.0]}), tmp_path / "b.parquet"
    )
    with pytest.raises(
        DataError,
        match=r"b\.parquet has other columns than .*a\.parquet: they differ in \['a', 'b'\]",
    ):
        Dataset.from_files(tmp_path, "y")


def test_what_cannot_stream(tmp_path: Path) -> None:
    rows = [(np.ones((3, 1)), np.ones(3))]
    for wrong in ({"tree_method": "exact"}, {"linear_leaves": True}):
        with pytest.raises(ParameterError, match="rows are streamed"):
            Dataset.from_batches(rows, **wrong)
    with pytest.raises(DataError, match="differ in weight"):
        Dataset.from_batches(
            [(np.ones((3, 1)), np.ones(3)), (np.ones((3, 1)), np.ones(3), np.ones(3))]
        )
    with pytest.raises(DataError, match=r"is nan|must be finite|NaN"):
        Dataset.from_batches([(np.ones((3, 1)), np.array([1.0, np.nan, 0.0]))])


def test_order_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", ".c.parquet", "sub"):
        if name == "sub":
            (tmp_path / name).mkdir()
            name = "sub/d.parquet"
        parquet.write_table(pa.table({"a": [1.0]}), tmp_path / name)
    names = [str(path.relative_to(tmp_path)) for path in sources.expand(tmp_path)]
    assert names == ["a.parquet", "b.parquet", "sub/d.parquet"]


def test_progress_of_every_pass() -> None:
    from sapwood.data.progress import Sight, watching

    seen: list[Sight] = []
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.zeros(90)

    def rows() -> Iterator[Any]:
        yield from ((X[k : k + 30], y[k : k + 30]) for k in (0, 30, 60))

    with watching(seen.append):
        Dataset.from_batches(rows())
    done = {
        stage: [one.round for one in seen if one.stage == stage]
        for stage in dict.fromkeys(s.stage for s in seen)
    }
    assert list(done) == ["copying rows", "reading rows", "coding rows"]
    assert done["coding rows"] == [30, 60, 90]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"label": pd.Series([1.0, 2.0])},
            "label is the name of a column of the files, not a Series",
        ),
        ({"label": ["y", 3]}, "label is the name of a column of the files, not a list"),
        (
            {"weight": ["a", "y"]},
            "weight is the name of a column of the files, not a list",
        ),
        ({"label": "targt"}, r"0\.parquet has no column 'targt'"),
    ],
)
def test_names_of_columns_that_are_none(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    pd.DataFrame({"a": [1.0, 2.0], "y": [0.0, 1.0]}).to_parquet(tmp_path / "0.parquet")
    with pytest.raises(DataError, match=message):
        Dataset.from_files(tmp_path, **given)


def test_errors_name_the_batch(tmp_path: Path) -> None:
    one = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(
        DataError,
        match=r"batch 1 has other columns than the batches before it: it lacks \['b'\]",
    ):
        Dataset.from_batches([one, one[["a"]]])
    with pytest.raises(
        DataError, match="batch 1 has 1 columns, and the batches before it 2"
    ):
        Dataset.from_batches([one.to_numpy(), one[["a"]].to_numpy()])
    with pytest.raises(
        DataError,
        match="label is the name of a column of the batches, not a Series; batches may be",
    ):
        Dataset.from_batches([one], label=one.a)
    one.to_parquet(tmp_path / "0.parquet")
    one.assign(a=pd.Timestamp("2024-01-01")).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(
        DataError, match=r"1\.parquet: column 'a' has times in one batch"
    ):
        Dataset.from_files(tmp_path)
    one.assign(a="x").to_parquet(tmp_path / "1.parquet")
    with pytest.raises(
        DataError,
        match=r"column 'a' is text in .*1\.parquet, and numbers in .*0\.parquet",
    ):
        Dataset.from_files(tmp_path)
