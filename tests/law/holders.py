"""Holders of rows as threads of one process: the communicator that the law of dealt
rows is tested with.

In: a function of one holder. Out: what it returned for each of them.
"""

from itertools import pairwise

from sapwood.holders import Communicator as Holder
from sapwood.holders.threads import run

__all__ = ["Holder", "deal", "run"]


def deal(n_rows: int, n_holders: int) -> list[slice]:
    """Consecutive rows for each holder, as equal as can be."""
    ends = [n_rows * k // n_holders for k in range(n_holders + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]
