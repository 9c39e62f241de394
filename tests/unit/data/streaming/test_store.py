"""Stores: opened again without their source, checked, and never there half-written."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sapwood
from sapwood import Dataset
from sapwood.data.streaming import build, store
from sapwood.errors import DataError, ParameterError

N = 20_000


def write_parts(folder: Path) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for k in range(4):
        X = rng.normal(size=(N // 4, 3))
        columns = {
            "a": X[:, 0],
            "b": X[:, 1],
            "c": np.round(X[:, 2]),
            "y": X[:, 0] * X[:, 1],
        }
        parquet.write_table(pa.table(columns), folder / f"{k}.parquet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_parts(folder / "parts")
    Dataset.from_files(folder / "parts", "y", store=folder / "store")
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "store", tmp_path / "store")
    return tmp_path / "store"


def test_opened_without_the_source(made: Path, copied: Path) -> None:
    table = parquet.read_table(made / "parts")
    whole = Dataset(table.drop_columns("y"), label=table["y"])
    data = Dataset.open(copied)
    assert data.fingerprint() == whole.fingerprint() and data.store == copied
    assert "20,000 rows" in repr(data)
    params = {"n_estimators": 3}
    assert (
        sapwood.train(params, data).to_bytes()
        == sapwood.train(params, whole).to_bytes()
    )
    assert not data.label.flags.writeable  # type: ignore[union-attr]
    assert sorted(one.name for one in copied.iterdir()) == [
        ".sapwood-store",
        "codes",
        "dataset",
        "label",
    ]


def test_saved_and_pickled(copied: Path, tmp_path: Path) -> None:
    data = Dataset.open(copied)
    data.save(tmp_path / "saved")
    assert Dataset.load(tmp_path / "saved").fingerprint() == data.fingerprint()


def test_the_same_store_is_used_again(made: Path) -> None:
    before = (made / "store" / "codes").stat().st_mtime_ns
    assert Dataset.from_files(made / "parts", "y", store=made / "store").n_rows == N
    assert (made / "store" / "codes").stat().st_mtime_ns == before
    with pytest.raises(DataError, match="made from other data or arguments"):
        Dataset.from_files(made / "parts", "y", store=made / "store", max_bins=15)


@pytest.mark.parametrize("name", ["codes", "dataset", "label"])
@pytest.mark.parametrize("how", ["changed", "shorter", "longer", "gone", "foreign"])
def test_damage(copied: Path, name: str, how: str) -> None:
    path = copied / name
    raw = bytearray(path.read_bytes())
    if how == "changed":
        raw[len(raw) // 3] ^= 1
    elif how == "shorter":
        del raw[-100:]
    elif how == "longer":
        raw += b"more"
    elif how == "foreign":
        raw = bytearray(b"PK\x03\x04 something else")
    path.unlink()
    if how != "gone":
        path.write_bytes(raw)
    with pytest.raises(
        DataError, match=r"damaged|not a store|not a file that Sapwood saved|digest"
    ):
        Dataset.open(copied)


def test_damage_between_codes(made: Path, copied: Path) -> None:
    head = store.read_head(copied)
    places, size = head.encoder(1).places(N)
    ends = [offset + N * row_bytes for offset, row_bytes in sorted(places)]
    gaps = [
        end
        for end, after in zip(
            ends, [*(offset for offset, _ in sorted(places)[1:]), size], strict=True
        )
        if end < after
    ]
    assert gaps
    for at in gaps:
        raw = bytearray((made / "store" / "codes").read_bytes())
        raw[at] = 1
        (copied / "codes").write_bytes(raw)
        with pytest.raises(DataError, match="has bytes between its codes"):
            Dataset.open(copied)


@pytest.mark.parametrize("name", ["tree_method", "linear_leaves"])
def test_what_a_store_cannot_give(made: Path, name: str) -> None:
    value = {"tree_method": "exact", "linear_leaves": True}[name]
    with pytest.raises(
        ParameterError,
        match="needs all rows in memory, and those of this data are read from a store",
    ):
        sapwood.train({name: value}, Dataset.open(made / "store", verify=False))


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a store of Sapwood"):
        Dataset.open(tmp_path / "nothing")
    with pytest.raises(DataError, match="is not a store of Sapwood"):
        Dataset.open(tmp_path)
    with pytest.raises(DataError, match="there is no folder"):
        Dataset.from_batches(
            [(np.ones((3, 1)), np.ones(3))], store=tmp_path / "no" / "store"
        )
    for wrong in (5, b"store", ["store"]):
        with pytest.raises(ParameterError, match="is not a path"):
            Dataset.from_batches([(np.ones((3, 1)), np.ones(3))], store=wrong)  # type: ignore[arg-type]
    for wrong in (5, b"table.csv"):
        with pytest.raises(DataError, match="takes paths"):
            Dataset.from_files(wrong)


# Builds a store and dies in its second pass, when the given batch comes.
CHILD = """
import os, signal, sys
from sapwood import Dataset
from sapwood.data.streaming import store
store.GROUP_BYTES = 1  # groups of 4,096 rows
from sapwood.data.progress import watching
def see(sight):
    if sight.stage == "coding rows" and sight.round >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
with watching(see):
    Dataset.from_files(sys.argv[1], "y", store=sys.argv[2])
"""


def test_an_interrupted_build_goes_on(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    died = subprocess.run(
        [sys.executable, "-c", CHILD, str(made / "parts"), str(path), "15000"]
    )
    assert died.returncode == -signal.SIGKILL and not path.exists()
    left = build.unfinished(path)
    # groups of 4,096 of 15,000 rows
    assert len((left / "journal").read_text().split()) == 3
    passes: list[str] = []
    monkeypatch.setattr("sapwood.data.streaming.store.GROUP_BYTES", 1)
    monkeypatch.setattr(
        "sapwood.data.streaming.reading.tell", lambda stage, *_: passes.append(stage)
    )
    written: list[int] = []
    flush = build._Writer._flush
    monkeypatch.setattr(
        build._Writer,
        "_flush",
        lambda self: (written.append(self.done), flush(self))[1],
    )
    data = Dataset.from_files(made / "parts", "y", store=path)
    # the first pass was complete
    assert set(passes) == {"coding rows"} and written == [12288, 16384]
    assert (
        data.fingerprint() == Dataset.open(made / "store").fingerprint()
        and not left.exists()
    )


@pytest.mark.nightly
def test_a_build_of_other_data_starts_anew(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    subprocess.run(
        [sys.executable, "-c", CHILD, str(made / "parts"), str(path), "15000"]
    )
    write_parts(tmp_path / "parts")
    data = Dataset.from_files(tmp_path / "parts", "y", store=path, max_bins=31)
    assert data.max_bins == 31 and not build.unfinished(path).exists()


def test_a_file_that_changes_between_passes(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parts(tmp_path / "parts")

    def see(stage: str, done: int, *_: Any) -> None:
        if stage == "coding rows" and done == N // 4:
            table = parquet.read_table(tmp_path / "parts" / "3.parquet")
            parquet.write_table(table.slice(1), tmp_path / "parts" / "3.parquet")

    monkeypatch.setattr("sapwood.data.streaming.reading.tell", see)
    with pytest.raises(DataError, match="changed"):
        Dataset.from_files(tmp_path / "parts", "y", store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("how", ["more", "fewer", "missing", "values", "category"])
def test_batches_that_change_between_passes(tmp_path: Path, how: str) -> None:
    calls = []

    def batches() -> Iterator[Any]:
        calls.append(1)
        X = np.arange(40.0).reshape(20, 2)
        y = np.arange(20.0)
        if len(calls) > 1:
            X[3, 0] = {"missing": np.nan, "values": 99.0}.get(how, X[3, 0])
            n = {"more": 21, "fewer": 19}.get(how, 20)
            X = np.vstack([X, X])[:n]
            y = np.append(y, y)[:n]
        import pandas as pd

        frame = pd.DataFrame(X, columns=["a", "b"])
        frame["c"] = "new" if len(calls) > 1 and how == "category" else "old"
        yield frame, y

    with pytest.raises(DataError, match="has changed between two passes"):
        Dataset.from_batches(batches, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    X = np.random.default_rng(0).normal(size=(5000, 2))
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(
            OSError, match=r"the disk is full: the store .* is not complete"
        ):
            Dataset.from_batches([(X, X[:, 0])], store=tmp_path / "store")
    assert not (tmp_path / "store").exists()
    assert Dataset.from_batches([(X, X[:, 0])], store=tmp_path / "store").n_rows == 5000


def test_two_builds_at_once(tmp_path: Path) -> None:
    X = np.ones((10, 1))

    def batches() -> Iterator[Any]:
        with pytest.raises(DataError, match="another process builds"):
            Dataset.from_batches([(X, X[:, 0])], store=tmp_path / "store")
        yield X, X[:, 0]

    assert Dataset.from_batches(batches, store=tmp_path / "store").n_rows == 10


def test_a_temporary_store_goes_with_its_data() -> None:
    data = Dataset.from_batches([(np.arange(30.0).reshape(-1, 1), np.arange(30.0))])
    folder = data.store
    assert folder is not None and folder.exists()
    other = data.with_weight(np.ones(30))
    del data
    assert folder.exists() and other.fingerprint()
    del other
    assert not folder.exists()
