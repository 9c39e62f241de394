"""The fingerprint of a `Dataset`: a digest of what training sees.

In: a dataset, in memory, dealt to several holders, or in a store. Out: SHA-256 as
hexadecimal digits.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, dealt, fingerprint
from sapwood.data import crosses as crossing
from sapwood.data.dataset_file import LISTED
from sapwood.data.fingerprint import Pieces
from sapwood.device import host

LARGE = 1 << 22  # cells from which threads share the work
PIECE_ROWS = 1 << 18  # of a store that are read together


def fingerprint_of(data: Any) -> str:
    """The digest of codes, values where they are kept, cuts, categories, vectors by row
    and all names.
    """
    stored = data.store is not None
    listed = lists(data.binned) if stored else data._listed()
    vectors = data._vectors()
    column: Any = partial(codes, data.binned) if stored else data._column
    rows: list[Any] = [partial(column, j) for j in data._alone(listed)]
    if data.values is not None:
        rows += [
            partial(fingerprint.one_zero, data.values[:, j])
            for j in range(data.n_columns)
        ]
    rows += [
        partial(_pieces_of if stored else np.asarray, values)
        for values in vectors.values()
    ]
    order = None
    if data.reduce is not None:
        order = dealt.Order.of(data.reduce, data.positions, data.binned.chunk_sizes)
        listed = order.lists(listed) if listed else listed
    sizes = np.array([len(cuts) for cuts in data.cuts], np.int64)
    rest = {
        "cuts": np.concatenate(data.cuts),
        "sizes": sizes,
        **listed,
        **categories.pack(data.categories),
    }
    rest |= (crosses := crossing.encode(data.crosses))
    others = [partial(_itself, values) for values in rest.values()]
    if order is None:
        n_threads = data._n_threads if data.n_rows * data.n_columns >= LARGE else 1
        work = [data.n_rows] * len(rows) + [values.nbytes for values in rest.values()]
        found = fingerprint.digests([*rows, *others], work, n_threads)
    else:
        found = [
            *order.digests(rows),
            *fingerprint.digests(others, [1] * len(others), 1),
        ]
    known = dict(zip([*vectors, *rest], found[len(rows) - len(vectors) :], strict=True))
    names = [*(name for name in rest if name not in crosses), *vectors, *crosses]
    digests = [*found[: len(rows) - len(vectors)], *(known[name] for name in names)]
    return fingerprint.digest([data.feature_names, *names], digests)


def codes(binned: Any, j: int) -> Pieces:
    """The codes of a column of a store."""
    kind = binned.codes_of_rows(j, 0, 0).dtype
    return Pieces(kind, (binned.n_rows,), lambda: (own for _, own in _read(binned, j)))


def lists(binned: Any) -> dict[str, Any]:
    """What `Dataset._listed` has, of a store: lists of rows are made of the codes as
    often as they are read.
    """
    default_code = np.array(binned.listed_defaults(), np.int64)
    column = np.flatnonzero(default_code >= 0)
    if not len(column):
        return {}

    def unusual() -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        for j in column.tolist():
            for first, own in _read(binned, j):
                rows = np.flatnonzero(own != default_code[j])
                yield j, (rows + first).astype(np.uint32), own[rows].astype(np.uint16)

    counts = np.zeros(len(default_code), np.int64)
    for j, rows, _ in unusual():
        counts[j] += len(rows)
    n = int(counts.sum())
    found = (
        column.astype(np.int32),
        default_code[column].astype(np.uint16),
        np.cumsum([0, *counts[column]], dtype=np.int64),
        Pieces(np.dtype(np.uint32), (n,), lambda: (rows for _, rows, _ in unusual())),
        Pieces(np.dtype(np.uint16), (n,), lambda: (own for _, _, own in unusual())),
    )
    return {
        f"listed.{name}": values for name, values in zip(LISTED, found, strict=True)
    }


def _read(binned: Any, j: int) -> Iterator[tuple[int, NDArray[Any]]]:
    for first in range(0, binned.n_rows, PIECE_ROWS):
        yield (
            first,
            binned.codes_of_rows(j, first, min(PIECE_ROWS, binned.n_rows - first)),
        )


def _pieces_of(values: NDArray[Any]) -> Pieces:
    """A vector that is mapped from a file."""

    def read() -> Iterator[NDArray[Any]]:
        for first in range(0, len(values), PIECE_ROWS):
            piece = values[first : first + PIECE_ROWS]
            host.touch(piece.nbytes)
            yield piece

    return Pieces(values.dtype, values.shape, read)


def _itself(values: Any) -> Any:
    return values
