"""Finished trees in device memory, and as the host reads them.

In: the store of a trainer. Out: trees that are copied once someone looks at them, all
that wait at once.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device.cuda.binned import Binned
from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import Runtime
from sapwood.errors import DivergedError

FIELDS = ("column", "bin", "left", "value", "gain", "cover", "count", "missing_left")


class DeviceTree(dict[str, Any]):
    """A tree whose arrays are read from the device at the first look."""

    def __init__(self, store: "Finished") -> None:
        super().__init__()
        self._store: Finished | None = store

    def _look(self) -> None:
        if self._store is not None:
            store = self._store
            self._store = None
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
    """The ring of finished trees; it does not know the trainer, so that nothing keeps
    device memory alive.
    """

    def __init__(
        self,
        runtime: Runtime,
        arrays: Mapping[str, Any],
        binned: Binned,
        size: int,
        shares_sets: bool,
    ) -> None:
        self._runtime = runtime
        self._arrays = arrays
        self._size = size
        self._is_category, self._n_bins = (
            np.array(binned.is_category, bool),
            binned.n_bins,
        )
        # the last cut is above all values
        ends = [np.append(own, np.inf) for own in binned.cuts]
        self._thresholds = np.concatenate([*ends, np.zeros(1)])
        # of a column among them; behind the last one is 0
        self._first = np.cumsum([0, *map(len, ends)])
        self._shares_sets = shares_sets  # all nodes of a level have the same
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
        run = self._runtime
        arrays = self._arrays
        waiting = self._waiting
        if not waiting:
            return
        sizes = run.get(arrays["tree_sizes"])
        node = record("TreeNode")
        rows = np.arange(self._n_taken, self._n_taken + len(waiting)) % self._size
        raw = arrays["trees"].reshape(self._size, -1)
        nodes = self._rows(raw, rows).view(node)
        sets = (
            self._rows(arrays["tree_sets"], rows) if self._is_category.any() else None
        )
        fields = {name: np.ascontiguousarray(nodes[name]) for name in FIELDS}
        column = fields["column"]
        by_set = (column >= 0) & self._is_category[column]
        plain = (column >= 0) & ~by_set
        fields["threshold"] = self._thresholds[
            np.where(plain, self._first[column] + fields["bin"], -1)
        ]
        fields["missing_left"] = fields["missing_left"].astype(np.uint8)
        for at, (tree, row) in enumerate(zip(waiting, rows, strict=True)):
            tree._store, n = None, int(sizes[row])
            for name, values in fields.items():
                tree[name] = values[at, :n].copy()
            self._fill_sets(
                tree, np.flatnonzero(by_set[at, :n]), None if sets is None else sets[at]
            )
        self._n_taken += len(waiting)
        self._waiting = []
        output = run.get(arrays["output"]).view(record("Output"))
        if output["failed"].any():
            raise DivergedError("in some round the gradients are")

    def _rows(self, ring: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows of an array that follow each other, the first after the last."""
        run = self._runtime
        first = int(rows[0])
        last = int(rows[-1])
        if first <= last:
            return run.get(ring[first : last + 1])
        return np.concatenate([run.get(ring[first:]), run.get(ring[: last + 1])])

    def _fill_sets(self, tree: DeviceTree, by_set: NDArray[Any], sets: Any) -> None:
        """The sets of the splits by categories, which these nodes have."""
        n = len(tree["column"])
        tree["set"], codes = np.full(n, -1, np.int32), [np.empty(0, np.int32)]
        known: dict[int, int] = {}
        # sets are numbered in the order of the first nodes that have them
        for at in by_set:
            key = (int(at) + 1).bit_length() if self._shares_sets else int(at)
            if key not in known:
                known[key] = len(known)
                right = np.unpackbits(sets[at].view(np.uint8), bitorder="little")[
                    : self._n_bins[tree["column"][at]]
                ]
                codes.append(np.flatnonzero(right == 0).astype(np.int32))
            tree["set"][at], tree["bin"][at] = known[key], -1
        tree["set_offset"] = np.cumsum([len(one) for one in codes], dtype=np.int64)
        tree["set_code"] = np.concatenate(codes)
