"""The memory of one training on the device, and the launches of its kernels.

In: arrays, names of kernels. Out: the job that every kernel takes, with the addresses
of the arrays in it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import ROW_KERNELS, Runtime

ALIGNED = 256  # bytes


class Records:
    """The job of a training, its turn, and the graphs of its launches."""

    runtime: Runtime

    def _start_records(self, n_rows: int, objective: str) -> None:
        self._n = n_rows
        self._objective = objective
        self._arrays: dict[str, Any] = {}
        self._job = np.zeros((), record("Job"))
        # the same bytes: CuPy need not read fields
        self._raw_job = np.ndarray((), f"V{self._job.nbytes}", self._job)
        self._turn = np.zeros((), record("Turn"))
        self._last: dict[Any, Any] = {
            "sampler": ("uniform", {}, None, None),
            "onehot": [],
        }
        self._graphs: dict[Any, Any] = {}
        self._rules = "plain"  # what the search must look at

    def _keep(self, name: str, values: Any) -> None:
        """Keep an array alive, and its address in the job."""
        self._arrays[name] = values
        self._job[name] = 0 if values is None else self.runtime.address(values)

    def _make(self, name: str, shape: Any, kind: Any) -> None:
        self._keep(name, self.runtime.zeros(shape, kind))

    def _make_records(self, name: str, n: int, kind: str) -> None:
        self._make(name, n * record(kind).itemsize, np.uint8)

    def _make_each(self, parts: Mapping[str, int], n: int) -> None:
        """What each of n trees has of its own, by bytes: one array, in which trees are
        a stride apart.
        """
        ends = np.cumsum(
            [-(-size // ALIGNED) * ALIGNED for size in parts.values()], dtype=np.int64
        )
        self._job["tree_stride"] = ends[-1]
        self._arrays.pop("of_trees", None)  # before the new ones are there
        self._arrays["of_trees"] = self.runtime.zeros(n * int(ends[-1]), np.uint8)
        first = self.runtime.address(self._arrays["of_trees"])
        for name, begin in zip(parts, (0, *ends[:-1]), strict=True):
            self._job[name] = first + begin

    def _upload(self) -> None:
        """Send the turn, where it has changed."""
        raw = self._turn.tobytes()
        if self._last.get("turn") != raw:
            self.runtime.put(self._arrays["turn"], np.frombuffer(raw, np.uint8))
            self._last["turn"] = raw

    def _launch(
        self,
        kernel: str,
        a: int = 0,
        b: int = 0,
        grid: tuple[int, int] | None = None,
        shared: int = 0,
        n_beside: int = 1,
        n_groups: int = 1,
        n_more: int = 0,
    ) -> None:
        """Launch a kernel, of n_beside trees at once. n_groups: of threads; n_more:
        blocks besides those of rows
        """
        run = self.runtime
        threads, each = run.settings[kernel]
        if grid is None:
            most = max(1, -(-run.n_processors * each // n_beside), n_more + 1)
            grid = (
                max(1, min(most, -(-self._n // threads) + n_more)) if each else 1,
                1,
            )
        variant = (
            f"{self._objective} {self._last['sampler'][0]}"
            if kernel in ROW_KERNELS
            else self._rules
        )
        run.launch(
            kernel,
            variant,
            (*grid, n_beside),
            shared,
            self._raw_job,
            a,
            b,
            threads * n_groups,
        )

    def _repeat(self, key: Any, work: Callable[[], None]) -> None:
        """Do some launches: as they are the first time, then captured as a graph, which
        is replayed.
        """
        self._upload()
        key = key, self._job.tobytes()  # a graph has the job in it
        found = self._graphs.get(key, 0)
        if callable(found):
            found()
        elif found == 0:
            work()
            self._graphs[key] = 1
        else:
            graph = self.runtime.capture(work)
            self._graphs[key] = graph or work
            (graph or work)()


def key(*coordinates: int) -> int:
    """core/math/hash.h's key, or its beginning."""
    mask = (1 << 64) - 1
    h = 0
    for value in coordinates:
        x = (h + 0x9E3779B97F4A7C15 * (value + 1)) & mask
        x ^= x >> 30
        x = x * 0xBF58476D1CE4E5B9 & mask
        x ^= x >> 27
        x = x * 0x94D049BB133111EB & mask
        h = x ^ x >> 31
    return h
