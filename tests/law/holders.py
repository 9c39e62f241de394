"""Holders of rows as threads of one process: the communicator that the law of dealt rows is tested with.

In: a function of one holder. Out: what it returned for each of them.
"""

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
TIMEOUT = 120  # seconds: a holder that makes one call fewer than the others must not hang a test


class Holder:
    """One of `size` holders; a `sapwood.reduce.Reduce` whose verbs wait for the other holders."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, table: list[Any]) -> None:
        self.rank, self.size = rank, size
        self.calls: list[str] = []  # verbs and sizes so far: the same for all holders
        self._barrier, self._table = barrier, table

    def sum(self, values: NDArray[np.int64]) -> None:
        """Replace integers by their sums over all holders."""
        assert values.dtype == np.int64
        values[:] = sum(self._exchange(f"sum {len(values)}", values.copy()))

    def max(self, values: NDArray[np.uint64]) -> None:
        """Replace integers by their maxima over all holders."""
        assert values.dtype == np.uint64
        values[:] = np.max(self._exchange(f"max {len(values)}", values.copy()), axis=0)

    def gather(self, mine: bytes) -> list[bytes]:
        """What every holder gave, in the order of holders."""
        assert isinstance(mine, bytes)
        return self._exchange("gather", mine)

    def _exchange(self, verb: str, mine: T) -> list[T]:
        self.calls.append(verb)
        self._table[self.rank] = (verb, mine)
        self._barrier.wait()
        given = list(self._table)
        self._barrier.wait()  # nobody writes the next one before all have read this one
        verbs = {one for one, _ in given}
        assert len(verbs) == 1, f"holders are at different calls: {verbs}"
        return [one for _, one in given]


def run(n: int, f: Callable[[Holder], T]) -> list[T]:
    """Call f(holder) in n threads; the results in the order of holders, or the error of the first that failed."""
    barrier: threading.Barrier = threading.Barrier(n, timeout=TIMEOUT)
    table: list[Any] = [None] * n
    holders = [Holder(rank, n, barrier, table) for rank in range(n)]
    results: list[Any] = [None] * n
    errors: list[BaseException | None] = [None] * n

    def work(rank: int) -> None:
        try:
            results[rank] = f(holders[rank])
        except BaseException as error:
            errors[rank] = error
            barrier.abort()  # the others must not wait for this one

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own = [error for error in errors if error is not None and not isinstance(error, threading.BrokenBarrierError)]
    if own or any(errors):
        raise (own or [error for error in errors if error is not None])[0]
    assert all(holder.calls == holders[0].calls for holder in holders)
    return results


def deal(n_rows: int, n_holders: int) -> list[slice]:
    """Consecutive rows for each holder, as equal as can be."""
    ends = [n_rows * k // n_holders for k in range(n_holders + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]
