"""A frozen model on the device: predictions.

In: the arrays of a model. Out: the core's predictions, bit for bit. Where a table is
sparse or has few rows, the core on the host predicts.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.job import links, record
from sapwood.device.cuda.runtime import Runtime

# thresholds of a column: codes have 16 bits, and missing values one more
MAX_CUTS = 0xFFFE
MAX_NODES = 1 << 16  # of a tree
MAX_USED = 0x7FFF  # columns that splits test: those by a set have a bit more
MAX_SET_WORDS = 1 << 28  # of all sets, one bit a code
CHUNK_NODES = 2048  # of the trees that are in shared memory at a time
NODE_BYTES = 16  # of a node and its value
MAX_CODE_BYTES = 64 * 1024  # of the codes of a block's rows in shared memory
# of the rows that are predicted at a time, where their codes do not fit there
MAX_CODES = 1 << 28
BY_SET = 0x8000


class Forest:
    """`_core.pyi` says what each method takes and returns."""

    runtime: Runtime
    min_rows = 2048  # of a table on the host: with fewer rows the core there is faster

    def __init__(
        self,
        n_columns: int,
        offset: Any,
        output: Any,
        column: Any,
        threshold: Any,
        missing_left: Any,
        left: Any,
        value: Any,
        set: Any,
        set_offset: Any,
        set_code: Any,
        base: Any,
        link: str,
        *linear: Any,
    ) -> None:
        arguments = (
            offset,
            output,
            column,
            threshold,
            missing_left,
            left,
            value,
            set,
            set_offset,
            set_code,
        )
        self.host = _core.Forest(n_columns, *arguments, base, link, *linear)
        self._nodes = [
            np.asarray(one)
            for one in (offset, output, column, threshold, missing_left, left, value)
        ]
        self._sets = [np.asarray(one) for one in (set, set_offset, set_code)]
        self._linear = [np.asarray(one) for one in linear]
        self._base = np.asarray(base)
        self._link = link
        self._n_outputs = len(base)
        self._n_columns = n_columns

    def leaves(self, *arguments: Any) -> Any:
        return self.host.leaves(*arguments)

    def predict(
        self,
        table: Any,
        first: int = 0,
        last: int = -1,
        raw: bool = False,
        init_score: Any = None,
        n_threads: int = 1,
    ) -> Any:
        dense = self._dense(table)
        if dense is None or self._job is None:
            return self.host.predict(table, first, last, raw, init_score, n_threads)
        there = self.runtime.array(dense.T if dense.flags.f_contiguous else dense)
        strides = there.strides[::-1] if dense.flags.f_contiguous else there.strides
        scores = self.runtime.get(
            self._walk(there, strides, len(dense), first, last, raw, init_score)
        )
        return scores[:, 0] if self._n_outputs == 1 else scores

    def predict_array(
        self,
        table: Any,
        first: int,
        last: int,
        raw: bool,
        init_score: Any = None,
        crosses: Any = (),
    ) -> Any:
        """The same for an array in device memory, of this device or another library;
        None: not this model.

        crosses: kinds, left and right columns, offsets and means, of the columns that
        follow those of the table.
        """
        if self._job is None:
            return None
        there = self.runtime.foreign(table)
        scores = self._walk(
            there,
            there.strides,
            len(there),
            first,
            last,
            raw,
            init_score,
            self._crosses(crosses),
        )
        self.runtime.wait()
        return scores[:, 0] if self._n_outputs == 1 else scores

    def _dense(self, table: Any) -> NDArray[Any] | None:
        """A table of the host as one array of floats; None where the host predicts
        it.
        """
        if (
            isinstance(table, np.ndarray)
            and table.ndim == 2
            and table.dtype in (np.float32, np.float64)
        ):
            return table if table.size and len(table) >= self.min_rows else None
        columns = table if isinstance(table, list) else []
        plain = all(
            isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "fiu"
            for one in columns
        )
        if not columns or not plain or len(columns[0]) < max(1, self.min_rows):
            return None
        narrow = all(
            one.dtype.itemsize <= (4 if one.dtype.kind == "f" else 2) for one in columns
        )
        dense = np.empty(
            (len(columns), len(columns[0])), np.float32 if narrow else np.float64
        )
        for row, one in zip(dense, columns, strict=True):
            row[:] = one
        return dense.T

    def _point(self, job: Any, arrays: dict[str, Any]) -> None:
        """Give the job the addresses of arrays, by field, or by record and field."""
        for name, one in arrays.items():
            outer, _, inner = name.rpartition(".")
            (job[outer] if outer else job)[inner] = self.runtime.address(one)

    def _crosses(self, crosses: Any) -> dict[str, Any]:
        """The arguments of crosses, whose arrays are in device memory."""
        if not len(crosses) or not len(crosses[0]):
            return {}
        kind, left, right, offset, mean = map(np.asarray, crosses)
        n_codes = np.maximum(np.diff(offset) - 2, 0)
        own = np.stack([kind, left, right, offset[:-1], n_codes], 1).astype(np.int64)
        return {
            "crosses.own": self.runtime.array(own),
            "crosses.mean": self.runtime.array(np.append(mean, 0.0)),
        }

    def _walk(
        self,
        table: Any,
        strides: Any,
        n_rows: int,
        first: int,
        last: int,
        raw: bool,
        init_score: Any,
        more: dict[str, Any] | None = None,
    ) -> Any:
        """Scores or predictions (n_rows, n_outputs) in device memory."""
        # several threads may predict at a time
        run = self.runtime
        job = self._job.copy()
        scores = run.zeros((n_rows, self._n_outputs), np.float64)
        if init_score is not None:
            run.put(
                scores,
                np.ascontiguousarray(init_score, np.float64).reshape(scores.shape),
            )
        for k in range(self._n_outputs if init_score is None else 0):
            run.fill(scores[:, k], float(self._base[k]))
        job["row_stride"], job["column_stride"] = strides
        job["is_double"] = table.dtype == np.float64
        job["n_columns"] = table.shape[1] if more else self._n_columns
        self._point(job, more or {})
        end = len(self._nodes[0]) - 1 if last < 0 else last
        threads = run.settings["predict"][0]
        n_used = max(1, int(job["n_used"]))
        while threads > 32 and 4 * n_used * threads > MAX_CODE_BYTES:
            threads //= 2
        shared = CHUNK_NODES * NODE_BYTES + 4 * n_used * threads
        step = n_rows
        if shared > run.max_shared:
            threads = run.settings["predict"][0]
            shared = CHUNK_NODES * NODE_BYTES
            step = max(1, MAX_CODES // n_used)
            codes = run.zeros((n_used, min(step, n_rows)), np.uint32)
            job["codes"] = run.address(codes)
        job["link"] = links().index(self._link)
        kernel = (
            "predict_plain"
            if self._plain and not more and not job["codes"]
            else "predict"
        )
        for at in range(0, n_rows, max(1, step)):
            job["n_rows"] = min(step, n_rows - at)
            job["table"] = run.address(table) + at * int(job["row_stride"])
            job["score"] = run.address(scores) + 8 * at * self._n_outputs
            raw_job = np.ndarray((), f"V{job.nbytes}", job).copy()
            blocks = -(-int(job["n_rows"]) // threads)
            run.launch(kernel, "", (blocks, 1), shared, raw_job, first, end, threads)
            if not raw and self._link != "identity":
                run.launch("apply_link", "", (blocks, 1), 0, raw_job, 0, 0, threads)
        return scores

    @cached_property
    def _job(self) -> Any:
        """The arguments of the kernel, whose arrays are in device memory; None where it
        does not take this model.
        """
        offset, output, column, threshold, missing_left, left, value = self._nodes
        sizes = np.diff(offset)
        inner = left > 0
        number = self._sets[0]
        by_set = inner & (number >= 0) if len(number) else np.zeros(len(left), np.bool_)
        used = np.unique(column[inner])
        cuts = [np.unique(threshold[(column == one) & inner & ~by_set]) for one in used]
        if not len(sizes) or sizes.max() >= MAX_NODES or len(used) > MAX_USED:
            return None
        if max(map(len, cuts), default=0) > MAX_CUTS:
            return None
        limits = self._limits(used, column, by_set)
        nodes = np.zeros(len(left), record("WalkNode"))
        for at, (one, own) in enumerate(zip(used, cuts, strict=True)):
            here = np.flatnonzero((column == one) & inner & ~by_set)
            nodes["column"][here], nodes["low"][here] = (
                at,
                np.searchsorted(own, threshold[here]) + 1,
            )
        local = np.arange(len(left)) - np.repeat(offset[:-1], sizes)
        nodes["left"] = np.where(inner, left, local)
        nodes["length"] = np.where(
            inner, 0xFFFF - nodes["low"].astype(np.int64) + ((missing_left & 1) == 0), 0
        )
        sets = self._set_bits(nodes, np.flatnonzero(by_set), used, limits)
        if sets is None:
            return None
        self._plain = not by_set.any() and not self._linear
        self._splits = nodes
        more = {"code_limit": limits, "sets": sets}
        return self._make(
            nodes,
            value,
            (used, cuts),
            self._trees(sizes, inner, left, output),
            offset,
            more,
        )

    def _limits(self, used: Any, column: Any, by_set: Any) -> NDArray[np.int32]:
        """By used column: above all codes of its sets; -1 where thresholds split it."""
        number, set_offset, set_code = self._sets
        limits = np.full(len(used), -1, np.int32)
        here = np.flatnonzero(by_set)
        empty = set_offset[number[here]] == set_offset[number[here] + 1]
        last = np.where(
            empty, -1, np.append(set_code, -1)[set_offset[number[here] + 1] - 1]
        )
        np.maximum.at(
            limits, np.searchsorted(used, column[here]), last.astype(np.int32) + 1
        )
        return limits

    def _set_bits(
        self, nodes: Any, here: Any, used: Any, limits: Any
    ) -> NDArray[np.uint32] | None:
        """A bit a code: those that go right at splits by sets, whose places the nodes
        get; None: they are too many.
        """
        number, set_offset, set_code = self._sets
        column = self._nodes[2]
        sides = self._nodes[4]
        place: dict[tuple[int, int, int], int] = {}
        words: list[NDArray[np.uint32]] = []
        n_words = 0
        for node in here:
            at = int(np.searchsorted(used, column[node]))
            key = int(number[node]), int(sides[node]), at
            if key not in place:
                limit = int(limits[at])
                right = np.ones(-(-(limit + 3) // 32) * 32, np.uint8)
                right[set_code[set_offset[key[0]] : set_offset[key[0] + 1]]] = 0
                right[limit + 1] = not key[1] & 1  # missing values, then unseen ones
                right[limit + 2] = not (key[1] ^ key[1] >> 1) & 1
                place[key] = n_words
                words.append(np.packbits(right, bitorder="little").view(np.uint32))
                n_words += len(words[-1])
                if n_words > MAX_SET_WORDS:
                    return None
            nodes["column"][node] = at | BY_SET
            nodes["low"][node], nodes["length"][node] = (
                place[key] & 0xFFFF,
                place[key] >> 16,
            )
        return np.concatenate([*words, np.zeros(1, np.uint32)])

    def _trees(self, sizes: Any, inner: Any, left: Any, output: Any) -> NDArray[Any]:
        """The trees, those of an output after those of the one before."""
        depth = np.zeros(len(left), np.int32)
        first = np.repeat(self._nodes[0][:-1], sizes)
        at = self._nodes[0][:-1]
        level = 0
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

    def _make(
        self,
        nodes: Any,
        value: Any,
        columns: Any,
        trees: NDArray[Any],
        offset: Any,
        more: dict[str, Any],
    ) -> Any:
        run = self.runtime
        job = np.zeros((), record("PredictJob"))
        order = np.concatenate(
            [np.arange(offset[t], offset[t + 1]) for t in trees["index"][:-1]]
        )
        chunks = [0]
        start = 0
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
            "values": np.where(
                np.asarray(self._nodes[5])[order] > 0, 0.0, np.asarray(value)[order]
            ),
            "trees": trees.view(np.uint8),
            "chunk_at": np.array([*chunks, len(trees) - 1], np.int32),
            **more,
        }
        if self._linear:
            begin, term, coef, bounds = self._linear
            self._arrays |= {
                "lines.at": np.stack([begin[:-1], np.diff(begin)], 1)[order],
                "lines.column": term,
            }
            self._arrays |= {"lines.coef": coef} | (
                {"lines.bounds": bounds} if len(bounds) else {}
            )
        self._arrays = {name: run.array(one) for name, one in self._arrays.items()}
        self._point(job, self._arrays)
        job["n_used"], job["n_chunks"], job["n_outputs"] = (
            len(used),
            len(chunks),
            self._n_outputs,
        )
        return job
