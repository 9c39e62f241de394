"""Tables of the command line that are damaged, hostile or in another encoding: an
error, not a crash.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa
from pyarrow import feather

import sapwood as sw
from sapwood.cli import nesting, subject, tables
from sapwood.cli.settings import parameter, settings_of
from sapwood.errors import DataError, ParameterError

DEEP = 100_000


@pytest.mark.parametrize(
    "line",
    [
        "[" * DEEP,
        '{"a":' + "[" * DEEP + "]" * DEEP + "}",
        '{"a":' * DEEP + "1" + "}" * DEEP,
        '"\n{"a":' + "[" * DEEP,
    ],
)
def test_deep_nesting_is_an_error_of_the_program(line: str, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text(line + "\n")
    command = [
        sys.executable,
        "-m",
        "sapwood",
        "train",
        str(tmp_path / "deep.json"),
        "-t",
        "y",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "deep.json has values that are nested deeper than 64 levels" in ended.stderr


def test_deep_nesting_is_an_error_in_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a":' + b"[" * DEEP))
    with pytest.raises(DataError, match="nested deeper than 64 levels"):
        tables.read(path)


def test_brackets_inside_of_strings_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "flat.jsonl"
    rows = [{"a": "[" * DEEP, "y": 1}, {"a": '\\"' + "{" * DEEP, "y": 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert tables.read(path).column("a").to_pylist() == [row["a"] for row in rows]


def slow_depth(text: bytes) -> int:
    """The deepest nesting, byte by byte."""
    depth = deepest = at = 0
    in_string = False
    while at < len(text):
        byte = text[at : at + 1]
        if byte in b"\r\n":
            in_string = False
        elif text[at : at + 2] in (rb"\\", rb"\""):
            at += 1
        elif byte == b'"':
            in_string = not in_string
        elif not in_string and byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not in_string and byte in b"]}":
            depth = max(0, depth - 1)
        at += 1
    return deepest


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_the_depth_of_a_file_does_not_depend_on_the_chunks(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nesting, "CHUNK", chunk)
    rng = Random(chunk)
    path = tmp_path / "some.json"
    for _ in range(200):
        text = bytes(
            rng.choice(b'[[{{]}"\\\n\r a') for _ in range(rng.randrange(1, 50))
        )
        path.write_bytes(text)
        depth = slow_depth(text)
        monkeypatch.setattr(nesting, "MAX_DEPTH", depth)
        nesting.check_depth(path)
        monkeypatch.setattr(nesting, "MAX_DEPTH", depth - 1)
        with pytest.raises(DataError):
            nesting.check_depth(path)


def test_names_in_another_encoding_are_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("größe,y\n1,2\n".encode("latin-1"))
    for read in (tables.read, lambda path: list(tables.batches(path, 10))):
        with pytest.raises(
            DataError,
            match=r"latin.csv: the names of its columns are not UTF-8; save the file as UTF-8",
        ):
            read(path)
    with pytest.raises(DataError, match=r"latin\.csv cannot be read as csv"):
        sw.Dataset.from_files(path)


def test_text_in_another_encoding_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("a,y\nfür,2\n".encode("latin-1"))
    with pytest.raises(
        DataError,
        match=r"column 'a' has text that is not UTF-8; save the file as UTF-8",
    ):
        tables.read(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_a_name_given_twice_is_an_error_that_names_it(
    suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"twice{suffix}"
    table = pa.table([pa.array([1, 2])] * 3, names=["a", "y", "a"])
    tables.write(path, [table])
    for read in (tables.read, lambda path: list(tables.batches(path, 10))):
        with pytest.raises(
            DataError, match="has several columns with the name 'a'; rename them"
        ):
            read(path)


@pytest.mark.parametrize("value", [{"b": 1}, [1, 2]])
def test_a_nested_target_is_an_error_that_says_what_to_do(
    value: object, tmp_path: Path
) -> None:
    path = tmp_path / "nested.jsonl"
    path.write_text((json.dumps({"a": 1, "y": value}) + "\n") * 5)
    with pytest.raises(
        DataError,
        match="column 'y' cannot be the target: its cells are lists or objects",
    ):
        subject.refuse_nested(tables.read(path), "y", "the target")


def test_a_file_whose_offsets_lead_outside_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.feather"
    offsets = pa.py_buffer(
        b"".join(n.to_bytes(4, "little") for n in (0, 2, 2_000_000_000, 6))
    )
    column = pa.Array.from_buffers(
        pa.string(), 3, [None, offsets, pa.py_buffer(b"abcdef")]
    )
    feather.write_feather(pa.table({"a": column}), path, compression="uncompressed")
    with pytest.raises(DataError, match=r"broken\.feather is damaged"):
        tables.read(path)
    with pytest.raises(DataError, match=r"broken\.feather cannot be read as feather"):
        sw.Dataset.from_files(path)


def test_json_whose_text_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(b'{"a":"\xd6x","y":1}\n')
    with pytest.raises(DataError, match=r"bytes.jsonl (is damaged|cannot be read)"):
        tables.read(path)


def test_settings_that_are_nested_deep_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("target = " + "[" * DEEP)
    with pytest.raises(ParameterError, match=r"deep\.toml is not TOML"):
        settings_of(path, {})
    assert parameter("forced_splits=" + "[" * DEEP) == ("forced_splits", "[" * DEEP)


def test_forced_splits_that_are_nested_deep_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"left":' * DEEP)
    data = sw.Dataset([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(ParameterError, match="is not a file of forced splits"):
        sw.train({"forced_splits": path}, data)
    with pytest.raises(ParameterError, match="is not a list of groups"):
        sw.train({"interaction_constraints": "[" * DEEP}, data)
