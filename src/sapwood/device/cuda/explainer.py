"""Shapley values of a frozen model on the device.

In: the arrays of a model, then tables of the host. Out: the core's values, bit for bit.
Against a background, of pairs, of linear leaves, of few rows and of paths of many
columns the core on the host finds them.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.forest import Forest
from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import Runtime

MAX_FACTORS = 32  # columns on the path of a leaf, as in core/cuda/explain.h
MAX_BITS = 30  # of a pattern
TABLE_BITS = 10  # of the patterns of a group whose entries are made ahead
MAX_ENTRIES = 1 << 25  # of the trees that are explained at a time
MAX_SUMS = 1 << 27  # of the rows that are explained at a time
MAX_BLOCK_BYTES = 96 * 1024  # of the codes and sums of a block's rows in shared memory


class Explainer:
    """`_core.pyi` says what each method takes and returns."""

    runtime: Runtime
    min_rows = 256  # with fewer rows the core on the host is faster

    def __init__(self, n_columns: int, n_outputs: int, *arrays: Any) -> None:
        self.host = _core.Explainer(n_columns, n_outputs, *arrays)
        self._n_columns = n_columns
        self._n_outputs = n_outputs
        *self._trees, _ = arrays[:11]  # all but the weights of nodes
        self._has_lines = len(arrays) > 11
        self.max_path_columns = self.host.max_path_columns

    def expected(self) -> NDArray[np.float64]:
        return self.host.expected()

    def explain(
        self,
        table: Any,
        background: Any,
        pairs: bool,
        first: int,
        last: int,
        n_threads: int,
    ) -> NDArray[np.float64]:
        there = background is None and not pairs and not self._has_lines
        dense = self._forest._dense(table) if there else None
        if dense is None or self._job is None:
            return self.host.explain(table, background, pairs, first, last, n_threads)
        values = np.zeros((len(dense), self._n_outputs, self._n_columns))
        used = self._used
        step = max(1, MAX_SUMS // max(1, self._n_outputs * len(self._used)))
        for at in range(0, len(dense), step):
            rows = dense[at : at + step]
            by_column = rows.flags.f_contiguous and not rows.flags.c_contiguous
            placed = self.runtime.array(rows.T if by_column else rows)
            strides = placed.strides[::-1] if by_column else placed.strides
            found = self._explain(placed, strides, len(rows), first, last)
            if len(used) == self._n_columns:
                values[at : at + step] = found
            else:
                values[at : at + step, :, used] = found
        return values

    @cached_property
    def _forest(self) -> Forest:
        made: Forest = type(
            "Forest", (Forest,), {"runtime": self.runtime, "min_rows": self.min_rows}
        )(self._n_columns, *self._trees, np.zeros(self._n_outputs), "identity")
        return made

    @cached_property
    def _job(self) -> Any:
        """The arguments of the kernels, whose arrays are in device memory; None where
        they do not take this model.
        """
        paths = self.host.paths()
        walk = self._forest._job
        ranges = {
            name: np.diff(paths[f"{name}_at"])
            for name in ("bit", "leaf", "slot", "factor")
        }
        few = (
            ranges["bit"].max(initial=0) <= MAX_BITS
            and ranges["slot"].max(initial=0) <= MAX_FACTORS
        )
        if walk is None or not few or not len(ranges["bit"]):
            return None
        left = self._trees[5]
        self._used = np.unique(self._trees[2][left > 0])
        groups = np.zeros(len(ranges["bit"]), record("ExplainGroup"))
        for name, count in (
            ("bit", "n_bits"),
            ("leaf", "n_leaves"),
            ("slot", "n_slots"),
        ):
            groups[name], groups[count] = paths[f"{name}_at"][:-1], ranges[name]
        sizes = np.where(
            ranges["bit"] <= TABLE_BITS,
            ranges["slot"].astype(np.int64) << ranges["bit"],
            0,
        )
        self._entry_at = np.append(0, np.cumsum(sizes))
        groups["entry"] = np.where(ranges["bit"] <= TABLE_BITS, self._entry_at[:-1], -1)
        leaves = np.zeros(len(ranges["factor"]), record("ExplainLeaf"))
        leaves["value"], leaves["factor"] = paths["leaf_value"], paths["factor_at"][:-1]
        leaves["n_factors"] = ranges["factor"]
        factors = np.zeros(len(paths["factor_slot"]), record("ExplainFactor"))
        for name in ("slot", "mask", "want"):
            factors[name] = paths[f"factor_{name}"].view(factors[name].dtype)
        factors["weight_fraction"] = paths["weight_fraction"]
        literals = self._forest._splits[paths["literal_node"]]
        literals["left"] = paths["literal_left"]
        self._group_at = paths["group_at"]
        arrays = {
            "tree_output": np.asarray(self._trees[1]),
            "group_at": paths["group_at"],
            "literal_at": paths["literal_at"],
            "slot_column": np.searchsorted(self._used, paths["slot_column"]).astype(
                np.int32
            ),
            "points": paths["points"],
            "point_weights": paths["point_weights"],
            **{
                name: one.view(np.uint8)
                for name, one in {
                    "groups": groups,
                    "leaves": leaves,
                    "factors": factors,
                    "literals": literals,
                }.items()
            },
        }
        self._arrays = {
            name: self.runtime.array(one) for name, one in arrays.items() if one.size
        }
        job = np.zeros((), record("ExplainJob"))
        job["walk"], job["n_columns"] = walk, len(self._used)
        for name, one in self._arrays.items():
            job[name] = self.runtime.address(one)
        return job

    def _explain(
        self, table: Any, strides: Any, n_rows: int, first: int, last: int
    ) -> NDArray[np.float64]:
        """(n_rows, n_outputs, n_used) values of some rows, of the columns that splits
        test.
        """
        run = self.runtime
        job = self._job.copy()
        walk = job["walk"]
        shape = (n_rows, self._n_outputs, len(self._used))
        walk["n_rows"], walk["table"], walk["n_columns"] = (
            n_rows,
            run.address(table),
            self._n_columns,
        )
        walk["row_stride"], walk["column_stride"] = strides
        walk["is_double"] = table.dtype == np.float64
        sums = run.zeros(shape, np.float64)
        job["out"] = run.address(sums)
        threads = run.settings["explain"][0]
        n_used = len(self._used)
        while threads > 32 and 12 * n_used * threads > MAX_BLOCK_BYTES:
            threads //= 2
        shared = 12 * n_used * threads
        kept = []
        if shared > run.max_shared:
            threads = run.settings["explain"][0]
            shared = 0
            kept = [
                run.zeros((n_used, n_rows), kind) for kind in (np.float64, np.uint32)
            ]
            job["sums"], walk["codes"] = map(run.address, kept)
        entries = None
        end = first
        while end < last:
            start = end
            group = int(self._group_at[end])
            while end < last and (
                end == start or self._entries(start, end + 1) <= MAX_ENTRIES
            ):
                end += 1
            n_groups = int(self._group_at[end]) - group
            if entries is None or entries.size < self._entries(start, end):
                entries = run.zeros(max(1, self._entries(start, end)), np.float64)
            # groups know their absolute places
            job["entries"] = run.address(entries) - 8 * int(self._entry_at[group])
            raw_job = np.ndarray((), f"V{job.nbytes}", job).copy()
            run.launch("fill_entries", "", (n_groups, 1), 0, raw_job, group, 0)
            run.launch(
                "explain",
                "",
                (-(-n_rows // threads), 1),
                shared,
                raw_job,
                start,
                end,
                threads,
            )
        return run.get(sums)

    def _entries(self, first: int, last: int) -> int:
        """Of the tables of some trees."""
        return int(
            self._entry_at[self._group_at[last]] - self._entry_at[self._group_at[first]]
        )
