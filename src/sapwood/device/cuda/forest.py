"""A frozen model on the device: predictions of tables of numbers.

In: the arrays of a model. Out: the core's predictions, bit for bit. Where a model has sets of categories or linear
leaves, or a table is no array of floats or has few rows, the core on the host predicts.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import Runtime

MAX_CUTS = 0xFFFE  # thresholds of a column: codes have 16 bits, and missing values one more
MAX_NODES = 1 << 16  # of a tree
CHUNK_NODES = 2048  # of the trees that are in shared memory at a time
NODE_BYTES = 16  # of a node and its value
MAX_CODE_BYTES = 64 * 1024  # of the codes of a block's rows in shared memory


class Forest:
    """`_core.pyi` says what each method takes and returns."""

    runtime: Runtime
    min_rows = 2048  # of a table on the host: with fewer rows the core there is faster

    def __init__(self, n_columns: int, offset: Any, output: Any, column: Any, threshold: Any, missing_left: Any,
                 left: Any, value: Any, set: Any, set_offset: Any, set_code: Any, base: Any, link: str,
                 *linear: Any) -> None:  # fmt: skip
        arguments = (offset, output, column, threshold, missing_left, left, value, set, set_offset, set_code)
        self.host = _core.Forest(n_columns, *arguments, base, link, *linear)
        self._plain = not len(set_code) and not linear
        self._nodes = [np.asarray(one) for one in (offset, output, column, threshold, missing_left, left, value)]
        self._base, self._link, self._n_outputs = np.asarray(base), link, len(base)

    def leaves(self, *arguments: Any) -> Any:
        return self.host.leaves(*arguments)

    def predict(self, table: Any, first: int = 0, last: int = -1, raw: bool = False, init_score: Any = None,
                n_threads: int = 1) -> Any:  # fmt: skip
        fits = isinstance(table, np.ndarray) and table.dtype in (np.float32, np.float64) and table.size > 0
        if not fits or len(table) < self.min_rows or self._job is None:
            return self.host.predict(table, first, last, raw, init_score, n_threads)
        there = self.runtime.array(table.T if table.flags.f_contiguous else table)
        strides = there.strides[::-1] if table.flags.f_contiguous else there.strides
        scores = self.runtime.get(self._walk(there, strides, len(table), first, last, init_score))
        if not raw and self._link != "identity":
            scores = _core.link(self._link, scores, n_threads)
        return scores[:, 0] if self._n_outputs == 1 else scores

    def predict_array(self, table: Any, first: int, last: int, raw: bool, n_threads: int = 1) -> Any:
        """The same for an array in device memory, of this device or another library; None: not this model."""
        if self._job is None:
            return None
        there = self.runtime.foreign(table)
        scores = self._walk(there, there.strides, len(there), first, last, None)
        if not raw and self._link != "identity":
            scores = self.runtime.array(_core.link(self._link, self.runtime.get(scores), n_threads))
        self.runtime.wait()
        return scores[:, 0] if self._n_outputs == 1 else scores

    def _walk(self, table: Any, strides: Any, n_rows: int, first: int, last: int, init_score: Any) -> Any:
        """Raw scores (n_rows, n_outputs) in device memory."""
        run, job = self.runtime, self._job.copy()  # several threads may predict at a time
        scores = run.zeros((n_rows, self._n_outputs), np.float64)
        if init_score is not None:
            run.put(scores, np.ascontiguousarray(init_score, np.float64).reshape(scores.shape))
        for k in range(self._n_outputs if init_score is None else 0):
            run.fill(scores[:, k], float(self._base[k]))
        job["n_rows"], job["table"], job["score"] = n_rows, run.address(table), run.address(scores)
        job["row_stride"], job["column_stride"] = strides
        job["is_double"] = table.dtype == np.float64
        threads, n_used = run.settings["predict"][0], max(1, int(job["n_used"]))
        while threads > 32 and 4 * n_used * threads > MAX_CODE_BYTES:
            threads //= 2
        shared = CHUNK_NODES * NODE_BYTES + 4 * n_used * threads
        raw_job = np.ndarray((), f"V{job.nbytes}", job)
        end = len(self._nodes[0]) - 1 if last < 0 else last
        run.launch("predict", "", (-(-n_rows // threads), 1), shared, raw_job, first, end, threads)
        return scores

    @cached_property
    def _job(self) -> Any:
        """The arguments of the kernel, whose arrays are in device memory; None where it does not take this model."""
        offset, output, column, threshold, missing_left, left, value = self._nodes
        sizes = np.diff(offset)
        used = np.unique(column[left > 0])
        cuts = [np.unique(threshold[(column == one) & (left > 0)]) for one in used]
        shared = CHUNK_NODES * NODE_BYTES + 4 * 32 * len(used)
        if not self._plain or not len(sizes) or sizes.max() >= MAX_NODES or shared > self.runtime.max_shared:
            return None
        if max(map(len, cuts), default=0) > MAX_CUTS:
            return None
        nodes = np.zeros(len(left), record("WalkNode"))
        for at, (one, own) in enumerate(zip(used, cuts, strict=True)):
            here = np.flatnonzero((column == one) & (left > 0))
            nodes["column"][here], nodes["low"][here] = at, np.searchsorted(own, threshold[here]) + 1
        inner = left > 0
        local = np.arange(len(left)) - np.repeat(offset[:-1], sizes)
        nodes["left"] = np.where(inner, left, local)
        nodes["length"] = np.where(inner, 0xFFFF - nodes["low"].astype(np.int64) + ((missing_left & 1) == 0), 0)
        return self._make(nodes, value, (used, cuts), self._trees(sizes, inner, left, output), offset)

    def _trees(self, sizes: Any, inner: Any, left: Any, output: Any) -> NDArray[Any]:
        """The trees, those of an output after those of the one before."""
        depth = np.zeros(len(left), np.int32)
        first = np.repeat(self._nodes[0][:-1], sizes)
        at, level = self._nodes[0][:-1], 0
        while len(at):
            depth[at], level = level, level + 1
            children = (first + left)[at[inner[at]]]
            at = np.concatenate([children, children + 1])
        trees = np.zeros(len(sizes) + 1, record("WalkTree"))
        order = np.argsort(output, kind="stable")
        trees["depth"][:-1] = np.maximum.reduceat(depth, self._nodes[0][:-1])[order]
        trees["output"][:-1], trees["index"][:-1] = np.asarray(output)[order], order
        trees["first_node"][1:] = np.cumsum(sizes[order])
        return trees

    def _make(self, nodes: Any, value: Any, columns: Any, trees: NDArray[Any], offset: Any) -> Any:
        run, job = self.runtime, np.zeros((), record("PredictJob"))
        order = np.concatenate([np.arange(offset[t], offset[t + 1]) for t in trees["index"][:-1]])
        chunks, start = [0], 0
        for t in range(len(trees) - 1):
            if trees["first_node"][t + 1] - start > CHUNK_NODES and t > chunks[-1]:
                chunks.append(t)
                start = trees["first_node"][t]
        used, cuts = columns
        self._arrays = {
            "used": used.astype(np.int32),
            "cut_at": np.cumsum([0, *map(len, cuts)], dtype=np.int32),
            "cuts": np.concatenate([np.zeros(0), *cuts, np.zeros(1)]),
            "nodes": nodes[order].view(np.uint8),
            "values": np.where(np.asarray(self._nodes[5])[order] > 0, 0.0, np.asarray(value)[order]),
            "trees": trees.view(np.uint8),
            "chunk_at": np.array([*chunks, len(trees) - 1], np.int32),
        }
        self._arrays = {name: run.array(one) for name, one in self._arrays.items()}
        for name, one in self._arrays.items():
            job[name] = run.address(one)
        job["n_used"], job["n_chunks"], job["n_outputs"] = len(used), len(chunks), self._n_outputs
        return job
