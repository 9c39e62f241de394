"""What commands may write where: the kind of each output, and what `--force` is for.

In: the path of an output. Out: nothing, or an error before any work is done and before
anything is replaced.
"""

import filecmp
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from sapwood.cli import tables
from sapwood.errors import DataError
from sapwood.system import kinds
from sapwood.system.folders import own_folder
from sapwood.system.kinds import Endings, Kind
from sapwood.system.writing import is_written_into

ENDINGS = tuple(tables.FORMATS)


def check(path: Path | None, kind: Kind, force: bool) -> None:
    """Raise if a command may not write a file of this kind to a path; None writes
    nothing.
    """
    if path is not None:
        kinds.check(path, kind, force=force, endings=Endings.OF_KIND)


def check_table_name(path: Path | None, force: bool) -> None:
    """Raise if the name of a file is not that of a table; what the file holds is
    checked when the columns are known.
    """
    check(path, Kind("a table", ENDINGS, lambda _: True, is_named=True), force)


def write_table(path: Path, what: str, parts: Iterable[Any], force: bool) -> int:
    """Write the parts of a table into a file, and return the number of rows.

    An existing table is replaced only if it has the same columns: then it is an earlier
    result of the same command.
    """
    rest = iter(parts)
    first = next(rest, None)
    if first is None:
        raise DataError("there are no rows to write.")
    names = list(first.column_names)
    check(
        path,
        Kind(what, ENDINGS, lambda existing: tables.column_names(existing) == names),
        force,
    )
    return tables.write(path, chain([first], rest))


def write_rows(path: Path, what: str, table: Any, force: bool) -> int:
    """Write rows of a user into a file; an existing file with other content is not
    replaced.
    """
    if path.exists() and not is_written_into(path) and not force:
        with own_folder() as folder:
            new = folder / path.name
            tables.write(new, [table])
            check(
                path,
                Kind(
                    what,
                    ENDINGS,
                    lambda existing: filecmp.cmp(existing, new, shallow=False),
                ),
                force,
            )
    return tables.write(path, [table])
