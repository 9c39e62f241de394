"""Tables in files: CSV, TSV, Parquet, Feather (Arrow), JSON lines; whole or in batches.

In: a path. Out: Arrow tables; and back.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from sapwood.cli.nesting import check_depth
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.system import folders, writing

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
STDIN = (Path("-"), Path("/dev/stdin"))
MAX_NAMED = 5  # columns in a message
MISSING = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "#N/A", "<NA>"]


def format_of(path: Path) -> str:
    """The format of a file, by the end of its name; standard input is CSV."""
    if path in STDIN:
        return "csv"
    suffixes = [
        suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED
    ]
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    raise DataError(
        f"{path}: the name does not say the format; it must end in one of {', '.join(FORMATS)}."
    )


def looks_like_rows(path: Path) -> bool:
    """Whether the end of the name is that of a table, and of nothing else that commands
    read.
    """
    try:
        return format_of(path) != "jsonl" or path.suffix.lower() != ".json"
    except DataError:
        return False


# the copy of standard input, if a command has asked for it
_spool: list[folders.TemporaryCopy] = []


def _local(path: Path) -> Path:
    """The file to read: the path, or a temporary copy of standard input, which can be
    read more than once.
    """
    if path not in STDIN:
        check_file(path)
        return path
    if not _spool:
        if sys.stdin is None or sys.stdin.isatty():
            raise DataError(
                f"{path} means CSV from standard input, but nothing is piped into it."
            )
        _spool.append(folders.temporary_copy(sys.stdin.buffer, ".csv"))
    return _spool[0].path


def forget_stdin() -> None:
    """Remove the copy of standard input."""
    while _spool:
        _spool.pop().remove()


def check_paths(
    inputs: dict[str, Path | None], outputs: dict[str, Path | None]
) -> None:
    """Raise if an output has no folder, is an input, or is another output; by what is
    said for each.
    """
    read_ = [
        (what, path)
        for what, path in inputs.items()
        if path is not None and path not in STDIN
    ]
    reads_stdin = any(path in STDIN for path in inputs.values())
    if sum(path in STDIN for path in inputs.values()) > 1:
        raise ParameterError("standard input can be only one of the files.")
    for what, path in outputs.items():
        if path is None:
            continue
        for other, taken in read_:
            if _same(path, taken):
                raise ParameterError(
                    f"{what} {path} is {other} too, and would be overwritten; choose another name."
                )
        if reads_stdin and _is_standard_input(path):
            raise ParameterError(
                f"{what} {path} is standard input too, and would be overwritten; choose another name."
            )
        check_folder(path)
        read_.append((what, path))


def _is_standard_input(path: Path) -> bool:
    """Whether standard input is read from the file of a path."""
    try:
        return os.path.samestat(os.fstat(0), os.stat(path))
    except OSError:
        return False


def _same(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file, through links too."""
    if os.path.realpath(a) == os.path.realpath(b):
        return True
    return a.exists() and b.exists() and os.path.samefile(a, b)


def check_file(path: Path) -> None:
    """Raise if there is no such file, with the names that are like it."""
    if not path.exists():
        near = (
            [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        )
        hint = suggest(path.name, near) if near else ""
        raise DataError(
            f"there is no file {path}"
            + (f"; {hint}" if hint.startswith("did") else ".")
        )
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a file.")


def check_folder(path: Path) -> None:
    """Raise if there is no folder for a file that will be written."""
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent} to write {path.name} into.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file to write.")


def read(path: Path) -> Any:
    """A whole file as an Arrow table, whose columns have names that are text, and
    differ.
    """
    table = _read(path)
    check_names(path, table.schema)
    _check_text(path, table.schema)
    _check_values(path, table)
    return table


def _read(path: Path) -> Any:
    import pyarrow as pa

    file = _local(path)
    kind = format_of(path)
    try:
        if kind in ("csv", "tsv"):
            from pyarrow import csv

            return csv.read_csv(file, **_csv_options(kind))
        if kind == "parquet":
            from pyarrow import parquet

            check_names(path, parquet.read_schema(file))
            return parquet.read_table(file)
        if kind == "feather":
            from pyarrow import feather

            return feather.read_table(file)
        from pyarrow import json

        check_depth(file)
        return json.read_json(file)
    except (pa.ArrowException, OSError) as cause:
        raise DataError(
            f"{path} cannot be read as {kind}: {str(cause).splitlines()[0]}"
        ) from cause


def check_names(path: Path, schema: Any) -> None:
    """Raise if the names of columns cannot be read, or are not unique."""
    try:
        names = schema.names
    except UnicodeDecodeError as cause:
        raise DataError(
            f"{path}: the names of its columns are not UTF-8; save the file as UTF-8."
        ) from cause
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        shown = ", ".join(map(repr, twice[:MAX_NAMED]))
        raise DataError(
            f"{path} has several columns with the name {shown}; rename them, or leave all but one out."
        )


def _check_text(path: Path, schema: Any) -> None:
    """Raise if a text file has a column of bytes, which is what Arrow makes of text in
    another encoding.
    """
    import pyarrow as pa

    if format_of(path) not in ("csv", "tsv"):
        return
    for field in schema:
        if pa.types.is_binary(field.type):
            raise DataError(
                f"{path}: column {field.name!r} has text that is not UTF-8; save the file as UTF-8."
            )


def _check_values(path: Path, table: Any) -> None:
    """Raise if offsets or codes of a file lead outside of its values, or text is none:
    Arrow reads without a look.
    """
    import pyarrow as pa

    try:
        table.validate(full=True)
    except pa.ArrowException as cause:
        raise DataError(f"{path} is damaged: {str(cause).splitlines()[0]}") from cause


def _csv_options(kind: str, types: Any = None) -> dict[str, Any]:
    from pyarrow import csv

    convert = csv.ConvertOptions(
        null_values=MISSING, strings_can_be_null=True, column_types=types
    )
    return {
        "parse_options": csv.ParseOptions(delimiter="\t" if kind == "tsv" else ","),
        "convert_options": convert,
    }


def batches(
    path: Path, size: int, text: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Iterator[Any]:
    """A file as Arrow tables of at most `size` rows, of which few are in memory at
    once.

    `text` and `numbers`: columns of a CSV file whose types are known; the others are
    inferred from its beginning.
    """
    import pyarrow as pa

    local = _local(path)
    kind = format_of(path)
    try:
        if kind in ("csv", "tsv"):
            from pyarrow import csv

            with csv.open_csv(local, **_csv_options(kind)) as reader:
                check_names(path, reader.schema)
                names, inferred = (
                    reader.schema.names,
                    dict(zip(reader.schema.names, reader.schema.types, strict=True)),
                )
            wanted = set(numbers)
            whole = [name for name in names if not pa.types.is_boolean(inferred[name])]
            types = {
                name: pa.float64()
                for name in whole
                if name in wanted or pa.types.is_integer(inferred[name])
            }
            types |= dict.fromkeys(text, pa.string())
            with csv.open_csv(local, **_csv_options(kind, types)) as reader:
                yield from _resized(
                    (pa.Table.from_batches([one]) for one in reader), size
                )
        elif kind == "parquet":
            from pyarrow import parquet

            with parquet.ParquetFile(local) as file:
                check_names(path, file.schema_arrow)
                for batch in file.iter_batches(size):
                    table = pa.Table.from_batches([batch])
                    _check_values(path, table)
                    yield table
        else:
            yield from _resized([read(path)], size)
    except (pa.ArrowException, OSError) as cause:
        raise DataError(
            f"{path} cannot be read as {kind}: {str(cause).splitlines()[0]}"
        ) from cause


def _resized(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """The same rows in tables of at most `size` rows."""
    for table in tables:
        for first in range(0, table.num_rows, size):
            yield table.slice(first, size)


def column_names(path: Path) -> list[str]:
    """The names of the columns of a file; none where it cannot be read as a table."""
    try:
        first = next(batches(path, 1), None)
    except DataError:
        return []
    return [] if first is None else list(first.column_names)


def values(table: Any, name: str) -> Any:
    """A column as a NumPy array; text as objects, missing as None or NaN."""
    column = table.column(name)
    return column.to_numpy()


def write(path: Path | None, tables: Iterable[Any], out: Any = None) -> int:
    """Write tables one after the other into a file, or as CSV to `out`; the number of
    rows.
    """
    if path is None:
        return _write_csv(out, tables, ",")
    kind = format_to_write(path)
    check_folder(path)
    with writing.replacing(path) as file:
        if kind in ("csv", "tsv"):
            return _write_csv(file, tables, "," if kind == "csv" else "\t")
        if kind == "jsonl":
            return _write_lines(file, tables)
        return _write_arrow(file, tables, kind)


def format_to_write(path: Path) -> str:
    """The format of a table that will be written; a pipe or a device whose name says
    nothing gets CSV.
    """
    if path.suffix.lower() in FORMATS:
        return FORMATS[path.suffix.lower()]
    if writing.is_written_into(path):
        return "csv"
    raise DataError(
        f"{path}: a table is written to a file whose name ends in one of {', '.join(FORMATS)}."
    )


def _write_csv(file: Any, tables: Iterable[Any], delimiter: str) -> int:
    from pyarrow import csv

    rows = 0
    for table in tables:
        csv.write_csv(
            table, file, csv.WriteOptions(include_header=rows == 0, delimiter=delimiter)
        )
        rows += table.num_rows
    file.flush()
    return rows


def _write_lines(file: BinaryIO, tables: Iterable[Any]) -> int:
    import json

    rows = 0
    for table in tables:
        for row in table.to_pylist():
            file.write(json.dumps(row, default=str).encode() + b"\n")
        rows += table.num_rows
    return rows


def _write_arrow(file: BinaryIO, tables: Iterable[Any], kind: str) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    rows = 0
    writer = None
    try:
        for table in tables:
            if writer is None:
                writer = (
                    parquet.ParquetWriter(file, table.schema)
                    if kind == "parquet"
                    else pa.ipc.new_file(file, table.schema)
                )
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise DataError("there are no rows to write.")
    return rows
