"""Rows that are dealt to several holders: what the holders agree on, and arrays of all rows in their global order.

In: what one holder knows, and its `Reduce`; None where this process holds all rows. Out: the same for every holder.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError, ParameterError
from sapwood.reduce import Reduce


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


def facts(bins: Mapping[str, Any], vectors: Mapping[str, Any], n_columns: int) -> dict[str, Any]:
    """What all holders of rows must have in common; what cannot be dealt raises."""
    if bins["tree_method"] == "exact":
        raise ParameterError("tree_method='exact' sorts all rows, and rows are dealt to several holders; use 'hist'.")
    if vectors.get("group") is not None:
        raise DataError("group cannot be dealt to several holders of rows; leave it out.")
    given = {name: np.shape(values)[1:] for name, values in vectors.items() if values is not None}
    return {"columns": n_columns, "parameters": dict(bins), "shapes of vectors": {k: list(v) for k, v in given.items()}}


def total(reduce: Reduce | None, n: int) -> int:
    """A sum over all holders."""
    sums = np.array([n], np.int64)
    if reduce is not None:
        reduce.sum(sums)
    return int(sums[0])


def union(reduce: Reduce | None, some: Iterable[Any]) -> list[Any]:
    """What is among the things of some holder, sorted."""
    return sorted({one for mine in gather(reduce, sorted(some)) for one in mine})


@dataclass(frozen=True)
class Order:
    """The global order of rows: the positions and sizes of all holders' chunks."""

    reduce: Reduce
    chunks: list[list[list[int]]]  # by holder: position and size of each chunk

    @classmethod
    def of(cls, reduce: Reduce, positions: Sequence[int], sizes: Sequence[int]) -> "Order":
        """Learn it from all holders; chunks that overlap, or leave a gap, raise."""
        chunks = gather(reduce, list(zip(positions, sizes, strict=True)))
        at = 0
        for position, size in sorted(chunk for mine in chunks for chunk in mine if chunk[1]):
            if position != at:
                raise DataError(f"a chunk begins at row {position} of all rows, and the one before it ends at {at}.")
            at += size
        return cls(reduce, chunks)

    def whole(self, mine: NDArray[Any]) -> NDArray[Any]:
        """The rows of all holders, given those of this one; arrays of any dimension, rows first."""
        pieces = []
        for chunks, raw in zip(self.chunks, self.reduce.gather(np.ascontiguousarray(mine).tobytes()), strict=True):
            rows = np.frombuffer(raw, mine.dtype).reshape(-1, *mine.shape[1:])
            first = 0
            for position, size in chunks:
                pieces.append((position, rows[first : first + size]))
                first += size
        return np.concatenate([rows for _, rows in sorted(pieces, key=lambda piece: (piece[0], len(piece[1])))])

    def lists(self, mine: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The listed codes of all holders (`Dataset._listed`), given those of this one."""
        offset, row, code = (mine[f"listed.{name}"] for name in ("offset", "row", "code"))
        ends, rows, codes = (
            [np.frombuffer(raw, one.dtype) for raw in self.reduce.gather(one.tobytes())] for one in (offset, row, code)
        )
        found: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for k in range(len(offset) - 1):
            own = [slice(end[k], end[k + 1]) for end in ends]
            place = np.concatenate([one[part] for one, part in zip(rows, own, strict=True)])
            order = np.argsort(place)
            found.append((place[order], np.concatenate([c[part] for c, part in zip(codes, own, strict=True)])[order]))
        return {
            **mine,
            "listed.offset": np.sum(ends, axis=0),
            "listed.row": np.concatenate([place for place, _ in found]),
            "listed.code": np.concatenate([own for _, own in found]),
        }
