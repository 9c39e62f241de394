"""A table as codes on the device: tiles of 32 columns, row by row.

In: a table and its cuts. Out: the core's own codes, and their copy in device memory.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.runtime import Runtime
from sapwood.errors import ParameterError

LANES = 32
MAX_CODES = 256  # of a byte


class Binned:
    """The core's `Binned`, and what kernels read of it."""

    runtime: Runtime

    def __init__(self, chunks: Any, cuts: Any, n_threads: int, exact: bool = False, *more: Any, **named: Any) -> None:
        if exact:
            raise ParameterError(
                f"tree_method='exact' does not run on device={self.runtime.name!r}; use 'hist', or device='cpu'."
            )
        if named.get("reduce") is not None:
            raise ParameterError(
                f"rows that are dealt to several holders do not train on device={self.runtime.name!r}; use "
                "device='cpu'."
            )
        self.host = _core.Binned(chunks, cuts, n_threads, exact, *more, **named)
        n_categories = more[0] if more else named.get("n_categories")
        self.cuts = [np.asarray(one) for one in cuts]
        self.is_category = [bool(n) for n in n_categories or [0] * len(self.cuts)]
        self.n_bins = [n or len(own) + 1 for n, own in zip(n_categories or [0] * len(cuts), cuts, strict=True)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """The column at each place of the tiles, -1 behind the last."""
        n = -(-len(self.cuts) // LANES) * LANES
        return np.where(np.arange(n) < len(self.cuts), np.arange(n), -1).astype(np.int32)

    @cached_property
    def tiles(self) -> Any:
        """(n_tiles, n_rows, 32) byte codes in device memory."""
        for column, n in enumerate(self.n_bins):
            if n >= MAX_CODES:
                raise ParameterError(
                    f"column {column} has {n} bins, and device={self.runtime.name!r} takes at most {MAX_CODES - 1}; "
                    "set max_bins=255, or use device='cpu'."
                )
        n_rows, n_tiles = self.host.n_rows, len(self.places) // LANES
        tiles = self.runtime.zeros((n_tiles, n_rows, LANES), np.uint8)
        for column in range(len(self.cuts)):
            tiles[column // LANES, :, column % LANES] = self.planes[column]
        return tiles

    @cached_property
    def planes(self) -> Any:
        """(n_places, n_rows) the same, column by column."""
        planes = self.runtime.zeros((len(self.places), self.host.n_rows), np.uint8)
        for column in range(len(self.cuts)):
            self.runtime.put(planes[column], self.host.codes(column).astype(np.uint8, copy=False))
        return planes
