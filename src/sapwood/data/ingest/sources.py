"""Rows that come in batches and can be read again: files, folders, Arrow readers, lazy
frames, queries, iterators.

In: what a user has. Out: a `Source`, whose batches are tables, or tuples of a table,
its label and its weight.
"""

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sapwood.errors import DataError, suggest

BATCH_BYTES = 16 << 20  # of a table that is read at a time, roughly
# bytes of a CSV file that are parsed together
CSV_BLOCK = 4 << 20
SMALL_CSV_BLOCK = 1 << 20
PAGE_BYTES = 1 << 20  # of a page of a Parquet file, as all usual writers make them
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
# in CSV
MISSING = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "#N/A", "<NA>"]
# the types that a column of a CSV file gets where its own does not fit
WIDER = {"null": "int64", "int64": "double"}


@dataclass(frozen=True)
class Thrift:
    """How little memory the reading of files takes."""

    batch_bytes: int = BATCH_BYTES
    # raises where so many bytes for something are too many
    room: Callable[[int, str], None] | None = None


class Restart(Exception):
    """The types of a source have changed while it was read: a pass over it must begin
    again.
    """


@dataclass
class Source:
    """Batches of consecutive rows, the same in every reading."""

    read: Callable[[], Iterator[Any]]
    what: str  # what errors and progress call it
    # a JSON value that other content would change; None: only the content itself tells
    identity: Any = None
    once: bool = False  # it can be read only once
    # raises where it has changed
    check: Callable[[], None] = field(default=lambda: None)
    n_rows: int | None = None  # where that is known ahead
    batch_bytes: int = 0  # of a batch, where that is known ahead
    # what errors call the last batch, where it has a name
    where: Callable[[], str] = field(default=lambda: "")


def files(paths: Any, columns: Sequence[str] | None, thrift: Thrift) -> Source:
    """The rows of files, in the order of the files; `columns`: those that are read,
    None for all.
    """
    found = expand(paths)
    before = [_state(path) for path in found]
    types: dict[str, Any] = {}
    now = ""  # the file that is read

    def check() -> None:
        for path, state in zip(found, before, strict=True):
            if _state(path) != state:
                raise DataError(
                    f"{path} has changed since the first pass over it; start again when it is complete."
                )

    def read() -> Iterator[Any]:
        check()
        nonlocal now
        names: list[str] | None = None
        for path in found:
            now = str(path)
            for table in _read_file(path, columns, types, thrift):
                if names is None:
                    names = table.column_names
                elif sorted(table.column_names) != sorted(names):
                    other = set(table.column_names) ^ set(names)
                    raise DataError(
                        f"{path} has other columns than {found[0]}: they differ in {sorted(other)[:5]}."
                    )
                yield table
        release_unused()
        check()

    what = str(found[0]) if len(found) == 1 else f"{len(found)} files"
    identity = {"files": before, "columns": columns and list(columns)}
    return Source(
        read,
        what,
        identity,
        False,
        check,
        _count(found),
        thrift.batch_bytes,
        lambda: now,
    )


def expand(paths: Any) -> list[Path]:
    """The files of a path, a folder, a pattern, or several of them, in order."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise DataError(f"from_files takes paths, not a {type(paths).__name__}.")
    found: list[Path] = []
    for one in paths:
        path = Path(one)
        if path.is_dir():
            inside = sorted(
                p
                for p in path.rglob("*")
                if p.is_file() and not _hidden(p.relative_to(path))
            )
            inside = [p for p in inside if _format(p) is not None]
            if not inside:
                raise DataError(
                    f"the folder {path} has no files that end in {', '.join(FORMATS)}."
                )
            found += inside
        elif path.is_file():
            found.append(path)
        elif glob.has_magic(str(one)):
            some = sorted(
                Path(p)
                for p in glob.glob(str(one), recursive=True)
                if Path(p).is_file()
            )
            if not some:
                raise DataError(f"no file is called {one}.")
            found += some
        else:
            near = (
                [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            )
            hint = suggest(path.name, near) if near else ""
            raise DataError(
                f"there is no file {path}"
                + (f"; {hint}" if hint.startswith("did") else ".")
            )
    if not found:
        raise DataError("from_files got no file; give at least one.")
    for path in found:
        if _format(path) is None:
            raise DataError(
                f"{path}: the name does not say the format; it must end in one of {', '.join(FORMATS)}."
            )
    return found


def batches(given: Any) -> Source:
    """The batches of a reader, a lazy frame, a query, an iterable, or of a function
    that returns one of them.
    """
    kind = type(given).__name__
    if callable(given) and not hasattr(given, "__iter__"):
        return Source(lambda: _iterate(given()), "batches of a function")
    if hasattr(given, "collect_schema") and hasattr(given, "sink_parquet"):  # polars
        if not hasattr(given, "collect_batches"):
            raise DataError(
                "this polars cannot collect in batches; upgrade it, or give from_files a sink_parquet."
            )
        return Source(lambda: _iterate(given), "a lazy frame")
    # duckdb
    if hasattr(given, "to_arrow_reader") or hasattr(given, "fetch_record_batch"):
        return Source(lambda: _iterate(given), "a query")
    if hasattr(given, "to_batches"):  # Arrow tables and data sets
        return Source(lambda: _iterate(given), f"a {kind}")
    if hasattr(given, "read_next_batch") or isinstance(given, Iterator):
        return Source(lambda: _iterate(given), f"a {kind}", once=True)
    if hasattr(given, "columns") or hasattr(given, "shape"):  # a table in memory
        return Source(lambda: iter([given]), f"a {kind}")
    if hasattr(given, "__arrow_c_stream__"):
        return Source(
            lambda: _iterate(_arrow().RecordBatchReader.from_stream(given)),
            f"a {kind}",
            once=True,
        )
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return Source(lambda: _iterate(given), "batches")
    raise DataError(
        f"from_batches got a {kind}; give an iterable of tables, a function that returns one, an Arrow reader, a lazy "
        "frame or a query."
    )


def _iterate(given: Any) -> Iterator[Any]:
    """The batches of something, as tables that `read` knows."""
    if hasattr(given, "collect_batches"):
        given = given.collect_batches(maintain_order=True)
    elif hasattr(given, "to_arrow_reader"):
        given = given.to_arrow_reader(1 << 16)
    elif hasattr(given, "fetch_record_batch"):
        given = given.fetch_record_batch(1 << 16)
    elif hasattr(given, "to_batches"):
        given = given.to_batches()
    for batch in given:
        table, *rest = batch if isinstance(batch, tuple) else (batch,)
        if type(table).__name__ == "RecordBatch":
            table = _arrow().Table.from_batches([table])
        yield (table, *rest) if rest else table


def release_unused() -> None:
    """Give memory that Arrow has freed back to the system."""
    if "pyarrow" in sys.modules:
        _arrow().default_memory_pool().release_unused()


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as cause:
        raise DataError("reading files and Arrow needs pyarrow; install it.") from cause
    return pyarrow


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _format(path: Path) -> str | None:
    """The format of a file, by the end of its name."""
    suffixes = [
        suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED
    ]
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _state(path: Path) -> list[Any]:
    """What changes with a file: its size and its time."""
    try:
        found = path.stat()
    except OSError as cause:
        raise DataError(f"{path} cannot be read: {cause.strerror}.") from cause
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]


def _count(paths: Sequence[Path]) -> int | None:
    """The rows of all files, where their formats tell."""
    if any(_format(path) != "parquet" for path in paths):
        return None
    _arrow()
    from pyarrow import parquet

    return sum(
        int(_opened(path, "parquet", lambda path: parquet.read_metadata(path).num_rows))
        for path in paths
    )


def _opened(path: Path, kind: str, how: Callable[[Path], Any]) -> Any:
    """What a library makes of a file; its errors as ours."""
    try:
        return how(path)
    except (_arrow().ArrowException, OSError, UnicodeDecodeError) as cause:
        raise DataError(
            f"{path} cannot be read as {kind}: {(str(cause).splitlines() or ['?'])[0]}"
        ) from cause


def _read_file(
    path: Path, columns: Sequence[str] | None, types: dict[str, Any], thrift: Thrift
) -> Iterator[Any]:
    """The batches of a file, as Arrow tables."""
    pa = _arrow()
    kind = _format(path)
    read = {"parquet": _parquet, "feather": _feather}.get(str(kind))
    try:
        yield from (
            _csv(path, str(kind), columns, types, thrift)
            if read is None
            else read(path, columns, thrift)
        )
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as cause:
        raise DataError(
            f"{path} cannot be read as {kind}: {(str(cause).splitlines() or ['?'])[0]}"
        ) from cause


def batch_rows(schema: Any, columns: Sequence[str] | None, thrift: Thrift) -> int:
    """Rows of a batch of a file."""
    # bytes of a value of text, or of no plain type
    least, text = (4096, 8) if thrift.room is None else (256, 80)
    wanted = None if columns is None else set(columns)
    kinds = [field.type for field in schema if wanted is None or field.name in wanted]
    width = sum(8 if _arrow().types.is_primitive(kind) else text for kind in kinds)
    return max(least, min(1 << 17, thrift.batch_bytes // max(8, width)))


def _check_columns(
    path: Path, columns: Sequence[str] | None, names: Sequence[str]
) -> None:
    names_of_file = set(names)
    for name in columns or ():
        if name not in names_of_file:
            raise DataError(f"{path} has no column {name!r}; {suggest(name, names)}")


def _parquet(
    path: Path, columns: Sequence[str] | None, thrift: Thrift
) -> Iterator[Any]:
    pa = _arrow()
    from pyarrow import parquet

    buffer = 1 << (18 if thrift.room is None else 16)  # of each column
    with parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False) as file:
        names = file.schema_arrow.names
        _check_columns(path, columns, names)
        if thrift.room is not None:
            thrift.room(
                _parquet_bytes(file.metadata, columns, buffer), f"reading {path}"
            )
        rows = batch_rows(file.schema_arrow, columns, thrift)
        for batch in file.iter_batches(
            rows, columns=columns and list(columns), use_threads=False
        ):
            batch.validate(full=True)
            yield pa.Table.from_batches([batch])


def _parquet_bytes(metadata: Any, columns: Sequence[str] | None, buffer: int) -> int:
    """What a reader holds of the columns of the largest row group: a buffer, a page and
    a dictionary of each.
    """
    if not metadata.num_row_groups:
        return 0
    group = max(
        (metadata.row_group(k) for k in range(metadata.num_row_groups)),
        key=lambda one: one.total_byte_size,
    )
    total = 0
    for one in (group.column(j) for j in range(metadata.num_columns)):
        if columns is None or one.path_in_schema.split(".")[0] in columns:
            known = (
                one.data_page_offset - one.dictionary_page_offset
                if one.has_dictionary_page
                else 0
            )
            page = min(one.total_uncompressed_size, PAGE_BYTES)
            total += (
                min(buffer, one.total_compressed_size)
                + page * 6 // 5
                + 2 * max(0, known)
            )
    return int(total)


def _feather(
    path: Path, columns: Sequence[str] | None, thrift: Thrift
) -> Iterator[Any]:
    pa = _arrow()
    with pa.OSFile(str(path)) as source:
        file = pa.ipc.open_file(source)
        _check_columns(path, columns, file.schema.names)
        if thrift.room is not None:
            # each is read whole
            record = source.size() // max(1, file.num_record_batches)
            thrift.room(
                2 * record,
                f"reading {path}, which has record batches of {record / 1e6:.0f} MB,",
            )
        rows = batch_rows(file.schema, columns, thrift)
        for k in range(file.num_record_batches):
            table = pa.Table.from_batches([file.get_batch(k)])
            # else offsets that lead outside of the values would be followed
            table.validate(full=True)
            table = table if columns is None else table.select(list(columns))
            for first in range(0, table.num_rows, rows):
                yield table.slice(first, rows)


def _csv(
    path: Path,
    kind: str,
    columns: Sequence[str] | None,
    types: dict[str, Any],
    thrift: Thrift,
) -> Iterator[Any]:
    pa = _arrow()
    from pyarrow import csv

    convert = csv.ConvertOptions(
        null_values=MISSING,
        strings_can_be_null=True,
        column_types=types,
        include_columns=columns and list(columns),
    )
    parse = csv.ParseOptions(delimiter="\t" if kind == "tsv" else ",")
    known: dict[str, Any] = {}
    try:
        with pa.input_stream(str(path), compression="detect") as source:
            if thrift.room is None:
                reader = csv.open_csv(
                    source, csv.ReadOptions(block_size=CSV_BLOCK), parse, convert
                )
            else:
                # smaller blocks, of which Arrow holds 40, and the types that larger
                # ones would have
                thrift.room(48 * SMALL_CSV_BLOCK, f"reading {path}")
                with pa.input_stream(str(path), compression="detect") as start:
                    head = start.read(CSV_BLOCK)
                whole = pa.BufferReader(
                    head[: head.rfind(b"\n") + 1] if len(head) == CSV_BLOCK else head
                )
                first = csv.open_csv(
                    whole, csv.ReadOptions(block_size=CSV_BLOCK), parse, convert
                )
                convert.column_types = {one.name: one.type for one in first.schema}
                del first, whole, head
                how = csv.ReadOptions(block_size=SMALL_CSV_BLOCK, use_threads=False)
                reader = csv.open_csv(source, how, parse, convert)
            known = {one.name: one.type for one in reader.schema}
            for name, found in known.items():
                types.setdefault(name, found)
            for batch in reader:
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as cause:
        if not _widen(str(cause), known or types, types):
            raise
        raise Restart from cause


def _widen(message: str, known: dict[str, Any], types: dict[str, Any]) -> bool:
    """Give the column that an error of conversion names a wider type; False where there
    is none.
    """
    pa = _arrow()
    if "CSV conversion error" not in message or "In CSV column #" not in message:
        return False
    place = int(message.split("In CSV column #")[1].split(":")[0])
    names = list(known)
    name = names[place] if place < len(names) else ""
    if name not in known or str(known[name]) == "string":
        return False
    types[name] = pa.type_for_alias(
        WIDER.get(str(types.get(name, known[name])), "string")
    )
    return True
