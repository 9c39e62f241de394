"""Rows that are dealt to several holders: what the holders agree on, and arrays of all
rows in their global order.

In: what one holder knows, and its `Reduce`; None where this process holds all rows.
Out: the same for every holder.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood.data import fingerprint
from sapwood.device import host
from sapwood.errors import DataError, ParameterError
from sapwood.reduce import Reduce

T = TypeVar("T")
MAX_DISTINCT = 4096  # labels of a holder that are told to all
BLOCK_ROWS = 1 << 22  # rows of an array over all holders that one of them has at a time


def gather(reduce: Reduce | None, fact: Any) -> list[Any]:
    """What every holder says, in the order of holders: JSON values."""
    if reduce is None:
        return [fact]
    return [json.loads(one) for one in reduce.gather(json.dumps(fact).encode())]


def agree(reduce: Reduce | None, facts: Mapping[str, Any]) -> None:
    """Raise on all holders if they differ in one of some facts, JSON values by name."""
    first, *others = gather(reduce, facts)
    for rank, other in enumerate(others, 1):
        for name in facts:
            if other[name] != first[name]:
                raise DataError(
                    f"holders of rows differ in {name}: holder 0 has {first[name]!r}, holder {rank} {other[name]!r}; "
                    "give all of them the same."
                )


def facts(
    bins: Mapping[str, Any], vectors: Mapping[str, Any], n_columns: int
) -> dict[str, Any]:
    """What all holders of rows must have in common; what cannot be dealt raises."""
    if bins["tree_method"] == "exact":
        raise ParameterError(
            "tree_method='exact' sorts all rows, and rows are dealt to several holders; use 'hist'."
        )
    if vectors.get("group") is not None:
        raise DataError(
            "group cannot be dealt to several holders of rows; leave it out."
        )
    given = {
        name: np.shape(values)[1:]
        for name, values in vectors.items()
        if values is not None
    }
    return {
        "columns": n_columns,
        "parameters": dict(bins),
        "shapes of vectors": {k: list(v) for k, v in given.items()},
    }


def total(reduce: Reduce | None, n: int) -> int:
    """A sum over all holders."""
    sums = np.array([n], np.int64)
    if reduce is not None:
        reduce.sum(sums)
    return int(sums[0])


def decisive(
    reduce: Reduce, label: NDArray[np.float64], every: bool
) -> NDArray[np.float64] | None:
    """Few labels that stand for those of all holders in a check by value: the distinct
    ones, or extremes and odd ones.

    None where ``every`` distinct one matters, and some holder has too many.
    """
    flat = label.ravel()
    found = host.distinct(flat, MAX_DISTINCT)
    if total(reduce, every and found is None):
        return None
    odd = (
        [flat[~np.isfinite(flat)][:1], flat[flat != np.floor(flat)][:1]]
        if found is None
        else []
    )
    mine = (
        np.concatenate([[flat.min()], [flat.max()], *odd])
        if found is None
        else found[0]
    )
    few = np.concatenate(
        [np.frombuffer(one, "<f8") for one in reduce.gather(little(mine).tobytes())]
    )
    return few if label.ndim == 1 else np.repeat(few[:, None], label.shape[1], 1)


def check_labels(data: Any, check: Callable[[Any], T], every: bool) -> T:
    """What a check of labels finds out, by value, about those of all holders of a
    `Dataset`; every: by all values.

    Its error names a row of all: only then the labels are gathered.
    """
    few = None if data.reduce is None else decisive(data.reduce, data.label, every)
    if few is not None:
        with suppress(DataError):
            return check(few)
    return check(data.of_all_holders(data.label))


def union(reduce: Reduce | None, some: Iterable[Any]) -> list[Any]:
    """What is among the things of some holder, sorted."""
    return sorted({one for mine in gather(reduce, sorted(some)) for one in mine})


def little(values: NDArray[Any]) -> NDArray[Any]:
    """An array whose bytes are little-endian and in the order of its rows."""
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))


def _clip(block: slice, position: int, size: int) -> tuple[int, int]:
    """The rows of a chunk that lie in a block of positions: from, to."""
    low = max(block.start - position, 0)
    high = min(block.stop - position, size)
    return (low, high) if low < high else (0, 0)


@dataclass(frozen=True)
class Order:
    """The global order of rows: the positions and sizes of all holders' chunks."""

    reduce: Reduce
    chunks: list[list[list[int]]]  # by holder: position and size of each chunk

    @classmethod
    def of(
        cls, reduce: Reduce, positions: Sequence[int], sizes: Sequence[int]
    ) -> "Order":
        """Learn it from all holders; chunks that overlap, or leave a gap, raise."""
        chunks = gather(reduce, list(zip(positions, sizes, strict=True)))
        at = 0
        for position, size in sorted(
            chunk for mine in chunks for chunk in mine if chunk[1]
        ):
            if position != at:
                raise DataError(
                    f"a chunk begins at row {position} of all rows, and the one before it ends at {at}."
                )
            at += size
        return cls(reduce, chunks)

    def whole(self, mine: NDArray[Any]) -> NDArray[Any]:
        """The rows of all holders, given those of this one; arrays of any dimension,
        rows first.
        """
        pieces = []
        for chunks, raw in zip(
            self.chunks,
            self.reduce.gather(np.ascontiguousarray(mine).tobytes()),
            strict=True,
        ):
            rows = np.frombuffer(raw, mine.dtype).reshape(-1, *mine.shape[1:])
            first = 0
            for position, size in chunks:
                pieces.append((position, rows[first : first + size]))
                first += size
        return np.concatenate(
            [
                rows
                for _, rows in sorted(
                    pieces, key=lambda piece: (piece[0], len(piece[1]))
                )
            ]
        )

    def digests(self, parts: Sequence[fingerprint.Part]) -> list[str]:
        """SHA-256 of arrays over the rows of all holders (`fingerprint.digests`), each
        given for the rows of this one.

        Each holder digests every size-th array, and has some of its rows at a time.
        """
        n_holders = self.reduce.size
        rank = self.reduce.rank
        n_rows = sum(size for chunks in self.chunks for _, size in chunks)
        mine = []
        for at in range(0, len(parts), n_holders):
            group = [little(part()) for part in parts[at : at + n_holders]]
            own = group[rank] if rank < len(group) else None
            digest = (
                None
                if own is None
                else fingerprint.begin(own.dtype, (n_rows, *own.shape[1:]))
            )
            for first in range(0, n_rows, BLOCK_ROWS):
                block = slice(first, first + BLOCK_ROWS)
                given = [self._rows_in(block, values) for values in group]
                pieces = self.reduce.exchange(given + [b""] * (n_holders - len(given)))
                if digest is not None:
                    for piece in self._in_order(block, pieces):
                        digest.update(piece)
            mine += [] if digest is None else [digest.hexdigest()]
        found = gather(self.reduce, mine)
        return [found[k % n_holders][k // n_holders] for k in range(len(parts))]

    def _rows_in(self, block: slice, mine: NDArray[Any]) -> bytes:
        """The rows of this holder whose positions are in a block, chunk by chunk."""
        first = 0
        pieces = []
        for position, size in self.chunks[self.reduce.rank]:
            low, high = _clip(block, position, size)
            pieces.append(mine[first + low : first + high].tobytes())
            first += size
        return b"".join(pieces)

    def _in_order(self, block: slice, pieces: Sequence[bytes]) -> list[memoryview]:
        """What `_rows_in` made of all holders' rows, in the order of the rows."""
        found = []
        for chunks, raw in zip(self.chunks, pieces, strict=True):
            sizes = [
                high - low for low, high in (_clip(block, *chunk) for chunk in chunks)
            ]
            # bytes of a row
            width = len(raw) // max(1, sum(sizes))
            first = 0
            for (position, _), size in zip(chunks, sizes, strict=True):
                if size:
                    found.append(
                        (position, memoryview(raw)[first : first + width * size])
                    )
                first += width * size
        return [piece for _, piece in sorted(found, key=lambda one: one[0])]

    def lists(self, mine: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The listed codes of all holders (`Dataset._listed`), given those of this
        one.
        """
        offset, row, code = (
            mine[f"listed.{name}"] for name in ("offset", "row", "code")
        )
        ends, rows, codes = (
            [np.frombuffer(raw, one.dtype) for raw in self.reduce.gather(one.tobytes())]
            for one in (offset, row, code)
        )
        found: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for k in range(len(offset) - 1):
            own = [slice(end[k], end[k + 1]) for end in ends]
            place = np.concatenate(
                [one[part] for one, part in zip(rows, own, strict=True)]
            )
            order = np.argsort(place)
            found.append(
                (
                    place[order],
                    np.concatenate(
                        [c[part] for c, part in zip(codes, own, strict=True)]
                    )[order],
                )
            )
        return {
            **mine,
            "listed.offset": np.sum(ends, axis=0),
            "listed.row": np.concatenate([place for place, _ in found]),
            "listed.code": np.concatenate([own for _, own in found]),
        }
