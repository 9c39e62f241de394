"""The seam where other rows come in: integer sums and maxima over the holders of rows.

In: what one holder found in its rows. Out: the same over all rows, the same integers
for every holder.

Every holder trains on its own rows, calls these verbs in the same order, and takes the
same decisions from the same integers. So nothing else has to be sent, and the model
does not depend on how the rows are dealt. A process that holds all rows has no
`Reduce`: None.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Reduce(Protocol):
    """Adds up over the holders of rows. Each verb returns when all holders have called
    it.
    """

    rank: int  # which holder this is
    size: int  # how many there are

    def sum(self, values: NDArray[np.int64]) -> None:
        """Replace integers by their sums over all holders."""

    def sum_blocks(
        self, values: NDArray[np.int64], ends: Sequence[int]
    ) -> tuple[int, int]:
        """Replace integers of some blocks by their sums; what becomes of the other
        blocks is not said.

        ``ends`` says where each block ends. Returns which ones this holder owns: the
        first, and the one after the last. Each block has one owner.
        """

    def max(self, values: NDArray[np.uint64]) -> None:
        """Replace integers by their maxima over all holders."""

    def gather(self, mine: bytes) -> list[bytes]:
        """What every holder gave, in the order of holders."""

    def exchange(self, parts: Sequence[bytes]) -> list[bytes]:
        """What every holder gave to this one, in their order; ``parts`` has one for
        each holder.
        """
