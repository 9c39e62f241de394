"""Finished trees in device memory, and as the host reads them.

In: the store of a trainer. Out: trees that are copied once someone looks at them, all that wait at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import Runtime
from sapwood.errors import DivergedError


class DeviceTree(dict[str, Any]):
    """A tree whose arrays are read from the device at the first look."""

    def __init__(self, store: "Finished") -> None:
        super().__init__()
        self._store: Finished | None = store

    def _look(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            store.read()

    def __missing__(self, name: str) -> Any:
        if self._store is None:
            raise KeyError(name)
        self._look()
        return self[name]

    def __iter__(self) -> Iterator[str]:  # dict(tree) and {**tree} come here
        self._look()
        return super().__iter__()

    def keys(self) -> Any:
        self._look()
        return super().keys()

    def __contains__(self, name: object) -> bool:
        self._look()
        return super().__contains__(name)


class Finished:
    """The ring of finished trees; it does not know the trainer, so that nothing keeps device memory alive."""

    def __init__(
        self, runtime: Runtime, arrays: Mapping[str, Any], cuts: Sequence[NDArray[np.float64]], size: int
    ) -> None:
        self._runtime, self._arrays, self._cuts, self._size = runtime, arrays, cuts, size
        self._waiting: list[DeviceTree] = []
        facts = runtime.get(arrays["growth"]).view(record("Growth"))
        self._n_taken = int(facts["n_finished"][0])

    def make_room(self, n: int) -> None:
        """Read the trees that would be overwritten by n more."""
        if len(self._waiting) + n > self._size:
            self.read()

    def take(self) -> DeviceTree:
        """The tree that finishes next."""
        self._waiting.append(DeviceTree(self))
        return self._waiting[-1]

    def read(self) -> None:
        """Read all trees that wait."""
        run, arrays, waiting = self._runtime, self._arrays, self._waiting
        if not waiting:
            return
        sizes = run.get(arrays["tree_sizes"])
        node = record("TreeNode")
        rows = np.arange(self._n_taken, self._n_taken + len(waiting)) % self._size
        raw = arrays["trees"].reshape(self._size, -1)
        first, last = int(rows[0]), int(rows[-1])
        if first <= last:
            nodes = run.get(raw[first : last + 1]).view(node)
        else:
            nodes = np.concatenate([run.get(raw[first:]), run.get(raw[: last + 1])]).view(node)
        for tree, row, own in zip(waiting, rows, nodes, strict=True):
            self._fill(tree, own[: sizes[row]])
        self._n_taken += len(waiting)
        self._waiting = []
        output = run.get(arrays["output"]).view(record("Output"))
        if output["failed"].any():
            raise DivergedError("in some round the gradients are")

    def _fill(self, tree: DeviceTree, nodes: Any) -> None:
        cuts = self._cuts
        tree._store = None
        for name in ("column", "bin", "left"):
            tree[name] = np.ascontiguousarray(nodes[name])
        for name in ("value", "gain", "cover", "count"):
            tree[name] = np.ascontiguousarray(nodes[name])
        tree["missing_left"] = nodes["missing_left"].astype(np.uint8)
        threshold = np.zeros(len(nodes))
        for at in np.flatnonzero(tree["column"] >= 0):
            own, b = cuts[tree["column"][at]], tree["bin"][at]
            threshold[at] = own[b] if b < len(own) else np.inf
        tree["threshold"] = threshold
        tree["set"] = np.full(len(nodes), -1, np.int32)
        tree["set_offset"], tree["set_code"] = np.zeros(1, np.int64), np.empty(0, np.int32)
