"""Digests of arrays: what fingerprints of datasets are made of.

In: arrays, or functions that make them. Out: SHA-256 as hexadecimal digits.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pieces:
    """An array that is too large to be in memory whole: `read` begins to read it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    read: Callable[[], Iterable[NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        """Its bytes, as an array has them."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


Part = Callable[[], NDArray[Any]]
Parts = Sequence[Callable[[], NDArray[Any] | Pieces]]


def digest(names: Any, digests: Sequence[str]) -> str:
    """Digest of names (JSON values) and of the digests of all parts."""
    return sha256(json.dumps([names, *digests]).encode()).hexdigest()


def digests(parts: Parts, work: Sequence[int], n_threads: int) -> list[str]:
    """SHA-256 of each of some arrays, with its type and its shape; `work` (parts) is
    what each of them costs.
    """
    done = np.cumsum(work)
    ends = np.searchsorted(
        done, [done[-1] * k // n_threads for k in range(1, n_threads)]
    ).tolist()
    tasks = [
        parts[first:end]
        for first, end in zip([0, *ends], [*ends, len(parts)], strict=True)
    ]
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            found = list((map if n_threads == 1 else pool.map)(_digests, tasks))
        except RuntimeError:  # no thread can be had
            found = [_digests(parts)]
    return list(chain.from_iterable(found))


def begin(dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
    """A digest of an array of this type and shape, to which its bytes, little-endian,
    are added next.
    """
    return sha256(f"{dtype.newbyteorder('<').str}{tuple(shape)}".encode())


def one_zero(values: NDArray[Any]) -> NDArray[np.float64]:
    """A column as float64 in which equal values, and missing ones, have equal bits."""
    return np.where(np.isnan(values), np.nan, values.astype(np.float64) + 0.0)


def _digests(parts: Parts) -> list[str]:
    found = []
    for part in parts:
        values = part()
        one = begin(values.dtype, values.shape)
        for piece in values.read() if isinstance(values, Pieces) else (values,):
            one.update(
                np.ascontiguousarray(piece, dtype=piece.dtype.newbyteorder("<")).data
            )
        found.append(one.hexdigest())
    return found
