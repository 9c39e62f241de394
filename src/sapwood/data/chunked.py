"""Tables that come in chunks of rows: read alike, joined, and what they tell together.

In: tables, or their columns. Out: columns that agree on which are categorical;
dictionaries, cuts and values of all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, dealt, ingest
from sapwood.data.categories import Coded, Dictionary
from sapwood.data.crosses import Crosses
from sapwood.device import Device, host
from sapwood.device.arrays import is_there, to_host
from sapwood.errors import DataError, ParameterError
from sapwood.reduce import Reduce

Floats = NDArray[np.float64]


def read(
    tables: Sequence[Any], what: Sequence[str], categorical: Any, **how: Any
) -> list[ingest.Columns]:
    """The chunks as `ingest.read` has them, but they agree on which columns are
    categorical.
    """
    chunks: list[ingest.Columns] = []
    for table, name in zip(tables, what, strict=True):
        chunks.append(ingest.read(table, what=name, categorical=categorical, **how))
        # places are those of the first chunk
        if isinstance(categorical, list) and chunks[0].names is not None:
            places = [
                j
                for j, one in enumerate(chunks[0].as_columns())
                if isinstance(one, Coded)
            ]
            categorical = {chunks[0].names[j]: j for j in places}
    return chunks


def part(chunk: Any) -> tuple[Any, Any, Any]:
    """Table, label and weight of a chunk."""
    if not isinstance(chunk, tuple):
        return chunk, None, None
    if not 1 <= len(chunk) <= 3:
        raise DataError(
            f"a chunk is a table, (table, label) or (table, label, weight), not {len(chunk)} things."
        )
    table, label, weight = (*chunk, None, None)[:3]
    return table, label, weight


def join(pieces: list[Any], rows: list[int], what: str) -> Floats | None:
    """One vector of the pieces that came with chunks of so many rows; labels may have
    several columns.
    """
    if all(piece is None for piece in pieces):
        return None
    joined: list[Floats] = []
    for i, (piece, n_rows) in enumerate(zip(pieces, rows, strict=True)):
        if piece is None:
            raise DataError(
                f"chunk {i} has no {what}, but others have; give all of them one, or none."
            )
        values = ingest.floats(piece, f"{what} of chunk {i}")
        wanted = (
            (n_rows, *(joined[0] if joined else values).shape[1:])
            if what == "label"
            else (n_rows,)
        )
        if values.shape != wanted:
            raise DataError(
                f"the {what} of chunk {i} must be of shape {wanted}, got {values.shape}."
            )
        joined.append(values)
    return np.concatenate(joined)


def learn(
    chunks: Sequence[ingest.Columns],
    names: Sequence[str],
    weight: Floats | None,
    reduce: Reduce | None = None,
) -> dict[int, Dictionary]:
    """The dictionaries of all columns that are of categories in some chunk, of any
    holder.
    """
    tables = [chunk.table for chunk in chunks if isinstance(chunk.table, list)]
    found = dealt.union(
        reduce,
        {
            j
            for table in tables
            for j, one in enumerate(table)
            if isinstance(one, Coded)
        },
    )
    counts = (
        host.integer_weights(weight, reduce)[0]
        if found and weight is not None
        else None
    )
    learned = {}
    for j in found:
        where = f"column {names[j]!r}, which has categories in a chunk,"
        parts = [ingest.as_categories(chunk.as_columns()[j], where) for chunk in chunks]
        learned[j] = categories.learn(parts, counts, f"column {names[j]!r}", reduce)
    return learned


def unseen(
    tables: Sequence[Any], known: Mapping[int, Dictionary], reduce: Reduce | None = None
) -> dict[int, NDArray[np.int64]]:
    """The rows whose value is not in the dictionary, by column; columns that have such
    rows at any holder.
    """
    found = {
        j: np.flatnonzero(
            np.concatenate([table[j] for table in tables]) == categories.UNSEEN
        )
        for j in known
    }
    return (
        {
            j: found[j]
            for j in dealt.union(reduce, (j for j, rows in found.items() if len(rows)))
        }
        if known
        else {}
    )


def tables(
    chunks: Sequence[ingest.Columns],
    known: Mapping[int, Dictionary],
    crosses: Crosses,
    n_columns: int,
    n_threads: int,
) -> list[Any]:
    """The tables of all chunks as the core reads them, with all columns; a chunk may
    lack those of crosses.
    """
    coded = [ingest.encode(chunk, known, "data") for chunk in chunks]
    whole = [one.n_columns == n_columns or ingest.is_sparse(one.table) for one in coded]
    return [
        one.table if all_there else crosses.added(one, n_threads).table
        for one, all_there in zip(coded, whole, strict=True)
    ]


def check_kept(
    tables: Sequence[Any], bins: Mapping[str, Any], categories: Sequence[str]
) -> None:
    """Raise where every value of every row is to be kept, and the tables do not allow
    that.
    """
    exact = bins["tree_method"] == "exact"
    linear_leaves = bins["linear_leaves"]
    if bins["device"] == "cpu" and any(map(is_there, tables)):
        raise DataError(
            "the table is in the memory of a GPU; train with device='cuda', or copy it to the host."
        )
    if exact and categories:
        name = categories[0]
        raise ParameterError(
            f"tree_method='exact' knows no categories, and {name!r} has some; use 'hist'."
        )
    if (exact or linear_leaves) and any(map(ingest.is_sparse, tables)):
        what, instead = (
            ("tree_method='exact'", " (max_bins=65535)")
            if exact
            else ("linear_leaves=True", "")
        )
        raise ParameterError(
            f"{what} keeps every value of every row, and data is sparse; leave it out{instead}, or pass data.toarray()."
        )


def cuts(
    device: Device,
    tables: Sequence[Any],
    weight: Floats | None,
    bins: tuple[int, int],
    n_threads: int,
    known: Mapping[int, Dictionary],
    holders: Mapping[str, Any],
) -> list[Floats]:
    """Cuts of the columns of numbers; none of the others. `holders`: reduce and
    positions of dealt rows.
    """
    if not known:
        return device.cuts(tables, weight, *bins, n_threads, **holders)
    all_cuts: list[Floats] = [np.empty(0)] * len(tables[0])
    numeric = [j for j in range(len(all_cuts)) if j not in known]
    if numeric:
        found = device.cuts(
            [[table[j] for j in numeric] for table in tables],
            weight,
            *bins,
            n_threads,
            **holders,
        )
        for j, own in zip(numeric, found, strict=True):
            all_cuts[j] = own
    return all_cuts


def values(
    tables: Sequence[Any],
    n_rows: int,
    n_columns: int,
    categories: Mapping[int, Dictionary],
    reduce: Reduce | None = None,
    copy: bool = True,
) -> NDArray[np.float32 | np.float64]:
    """The tables of all chunks as one, row by row, in float32 where that holds every
    type in them; 0 for categories.

    One table of such numbers is taken as it is, unless it is to be copied.
    """
    only = (
        tables[0]
        if len(tables) == 1 and not categories and reduce is None and not copy
        else None
    )
    if (
        isinstance(only, np.ndarray)
        and only.flags.c_contiguous
        and only.dtype in (np.float32, np.float64)
    ):
        return only.view()
    numeric = [j for j in range(n_columns) if j not in categories]
    tables = [to_host(table) for table in tables]
    chunks = [
        [table[:, j] if isinstance(table, np.ndarray) else table[j] for j in numeric]
        for table in tables
    ]
    kinds = dealt.union(
        reduce, {column.dtype.str for chunk in chunks for column in chunk}
    )
    table = np.zeros(
        (n_rows, n_columns), np.result_type(np.float32, *map(np.dtype, kinds))
    )
    first = 0
    for chunk in chunks:
        for j, column in zip(numeric, chunk, strict=True):
            table[first : first + len(column), j] = column
        first += len(chunk[0]) if chunk else 0
    return table
