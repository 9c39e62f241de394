"""A table as codes on the device: tiles of 32 columns, row by row.

In: a table, on the host or in device memory, and its cuts. Out: its codes in device
memory, and the core's own.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.arrays import is_there, to_host
from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import Runtime
from sapwood.errors import ParameterError

LANES = 32
MAX_CODES = 256  # of a byte
CUTS = 1  # purpose of core/math/hash.h


def find_cuts(
    runtime: Runtime, tables: Any, weight: Any, max_bins: int, *more: Any
) -> list[NDArray[np.float64]]:
    """The core's cuts. Of a table in device memory only its sample, and columns of few
    values, come to the host.

    A column of more than max_bins values is cut by `SAMPLE_ROWS` rows: those with the
    smallest draws.
    """
    there = is_there(tables[0])
    n_rows = len(tables[0]) if there else 0
    if len(tables) > 1 or weight is not None or n_rows <= _core.SAMPLE_ROWS:
        return _core.cuts([to_host(one) for one in tables], weight, max_bins, *more)
    table = floats(runtime, tables[0])
    sample = runtime.take(table, sampled_rows(n_rows))
    cuts = _core.cuts([sample], None, max_bins, *more)
    for column, own in enumerate(cuts):
        few = all(
            len(np.unique(sample[:n, column])) <= max_bins + 1
            for n in (8 * max_bins, len(sample))
        )
        if few and len(own) < max_bins:  # perhaps all rows have few values
            values = runtime.distinct(table[:, column])
            if len(values) <= max_bins:
                cuts[column] = _core.cuts([values[:, None]], None, max_bins, *more)[0]
    return cuts


def sampled_rows(n_rows: int) -> NDArray[np.int64]:
    """The rows that the core cuts columns of many values by."""
    draws = _core.draw(0, CUTS, 0, 0, n_rows)
    n = _core.SAMPLE_ROWS
    near = np.flatnonzero(
        draws <= np.uint64(min(1.0, 1.1 * n / n_rows) * (2**64 - 2**12))
    )
    if len(near) < n:
        near = np.arange(n_rows)
    return np.sort(near[np.argpartition(draws[near], n - 1)[:n]])


def floats(runtime: Runtime, table: Any) -> Any:
    """A table in device memory as float32 or float64."""
    if hasattr(table, "to_cupy"):
        table = table.to_cupy()
    found = runtime.foreign(table)
    return (
        found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    )


class Binned:
    """The core's `Binned`, and what kernels read of it."""

    runtime: Runtime

    def __init__(
        self,
        chunks: Any,
        cuts: Any,
        n_threads: int,
        exact: bool = False,
        *more: Any,
        **named: Any,
    ) -> None:
        if exact:
            raise ParameterError(
                f"tree_method='exact' does not run on device={self.runtime.name!r}; use 'hist', or device='cpu'."
            )
        if named.get("reduce") is not None:
            raise ParameterError(
                f"rows that are dealt to several holders do not train on device={self.runtime.name!r}; use "
                "device='cpu'."
            )
        n_categories = more[0] if more else named.get("n_categories")
        self.cuts = [np.asarray(one) for one in cuts]
        self.is_category = [bool(n) for n in n_categories or [0] * len(self.cuts)]
        self.n_bins = [
            n or len(own) + 1
            for n, own in zip(n_categories or [0] * len(cuts), cuts, strict=True)
        ]
        self._n_threads = n_threads
        self._table = chunks[0] if len(chunks) == 1 and is_there(chunks[0]) else None
        if self._table is None:
            self.host = _core.Binned(
                [to_host(one) for one in chunks], cuts, n_threads, exact, *more, **named
            )
        else:
            self.n_rows = len(self._table)
            self._check_bins()
            self.planes = self._bin(floats(self.runtime, self._table))
            self._table = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "n_bins" not in self.__dict__:
            raise AttributeError(name)
        if name == "host":  # of a table in device memory
            self.host = self._codes_there()
            return self.host
        return getattr(self.host, name)

    def _check_bins(self) -> None:
        for column, n in enumerate(self.n_bins):
            if n >= MAX_CODES:
                raise ParameterError(
                    f"column {column} has {n} bins, and device={self.runtime.name!r} takes at most {MAX_CODES - 1}; "
                    "set max_bins=255, or use device='cpu'."
                )

    def _bin(self, table: Any) -> Any:
        """(n_places, n_rows) codes of a table in device memory."""
        run = self.runtime
        job = np.zeros((), record("BinJob"))
        planes = run.zeros((len(self.places), self.n_rows), np.uint8)
        ends = run.array(np.cumsum([0, *map(len, self.cuts)], dtype=np.int32))
        cuts = run.array(np.concatenate([*self.cuts, np.zeros(1)]))
        job["n_rows"], job["table"], job["planes"] = (
            self.n_rows,
            run.address(table),
            run.address(planes),
        )
        job["row_stride"], job["column_stride"] = table.strides
        job["is_double"] = table.dtype == np.float64
        job["cut_at"], job["cuts"] = run.address(ends), run.address(cuts)
        threads = run.settings["bin_values"][0]
        raw_job = np.ndarray((), f"V{job.nbytes}", job)
        run.launch(
            "bin_values",
            "",
            (-(-self.n_rows // threads), len(self.cuts)),
            0,
            raw_job,
            0,
            0,
        )
        run.wait()  # the table and the cuts may go now
        return planes

    def codes(self, column: int) -> Any:
        """The codes of a column, as the core's."""
        if "host" in self.__dict__:
            return self.host.codes(column)
        return self.runtime.get(self.planes[column])

    def listed(self, n_threads: int) -> Any:
        """Columns that the core lists: those of sparse tables."""
        return (
            self.host.listed(n_threads) if "host" in self.__dict__ else (np.empty(0),)
        )

    def _codes_there(self) -> _core.Binned:
        """The core's `Binned` of codes that are in device memory."""
        columns: list[NDArray[Any]] = []
        for column, n in enumerate(self.n_bins):
            codes = self.codes(column)
            missing = codes == n
            columns.append(
                np.where(missing, np.nan, codes).astype(np.float32)
                if missing.any()
                else codes
            )
        between = [np.arange(0.5, len(own), dtype=np.float64) for own in self.cuts]
        return _core.Binned([columns], between, self._n_threads, False)

    @property
    def for_start(self) -> _core.Binned:
        """Any `Binned` of as many rows, where codes do not matter."""
        if "host" in self.__dict__:
            return self.host
        return _core.Binned([[np.zeros(self.n_rows, np.uint8)]], [np.empty(0)], 1)

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """The column at each place of the tiles, -1 behind the last."""
        n = -(-len(self.cuts) // LANES) * LANES
        return np.where(np.arange(n) < len(self.cuts), np.arange(n), -1).astype(
            np.int32
        )

    @cached_property
    def tiles(self) -> Any:
        """(n_tiles, n_rows, 32) byte codes in device memory."""
        n_tiles = len(self.places) // LANES
        tiles = self.runtime.zeros((n_tiles, self.n_rows, LANES), np.uint8)
        for column in range(len(self.cuts)):
            self.runtime.copy(
                tiles[column // LANES, :, column % LANES], self.planes[column]
            )
        return tiles

    @cached_property
    def planes(self) -> Any:
        """(n_places, n_rows) the same, column by column."""
        self._check_bins()
        planes = self.runtime.zeros((len(self.places), self.n_rows), np.uint8)
        for column in range(len(self.cuts)):
            self.runtime.put(
                planes[column], self.host.codes(column).astype(np.uint8, copy=False)
            )
        return planes
