"""Linear leaves on the device: the sums of their lines, the lines, and what they add to
scores.

In: leaves of rows, gradients, the table behind the bins. Out: the terms of leaves, with
the bits of the core; they come to the host, and stay on the device until they are
added.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.binned import Binned
from sapwood.device.cuda.copies import Sample
from sapwood.device.cuda.job import record
from sapwood.device.cuda.records import ALIGNED, Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Terms = tuple[NDArray[np.int64], Ints, Floats]
STEPS = (
    "begin_lines",
    "count_lines",
    "place_lines",
    "group_lines",
    "range_lines",
    "fix_lines",
    "total_lines",
    "sum_lines",
    "solve_lines",
)
# of rows whose products are added at a time
TILE_ROWS = (256, 128, 64, 32)
TILE_BYTES = 40_000
ROW_BYTES = 16
BY_LEAF = ("count_lines", "group_lines")  # a number of every leaf in shared memory


class Lines(Records):
    """The part of a trainer that has linear leaves; `_core.pyi` says what each method
    takes and returns.
    """

    _binned: Binned
    _host_arguments: tuple[Any, ...]
    _n_outputs: int
    _copy: int

    def _start_lines(self) -> None:
        self._table: NDArray[Any] | None = None
        # jobs of trees whose leaves have terms
        self._lines: list[Any] = [None] * self._n_outputs

    # What the trainer has.
    def _leaf_nodes(self, output: int) -> Ints | None:
        raise NotImplementedError

    def _place(self, output: int) -> int:
        raise NotImplementedError

    def _draw(self, samples: list[Sample]) -> None:
        raise NotImplementedError

    def set_table(self, table: NDArray[Any]) -> None:
        self._table = table

    def standardise(self, bounds: Floats | None) -> Floats:
        """The core finds bounds and units, once in a training."""
        assert self._table is not None
        core = _core.Trainer(self._binned.host, *self._host_arguments)
        core.set_table(self._table)
        found = core.standardise(bounds)
        self._arrays["line_bounds"] = self.runtime.array(found)
        self._arrays["line_unit"] = self.runtime.array(core.units())
        return found

    def fit_linear(
        self,
        first: int,
        offset: NDArray[np.int64],
        column: Ints,
        value: Floats,
        rate: float,
        reg_lambda: float,
        linear_lambda: float,
        linear_smooth: float,
    ) -> list[Terms]:
        # a sample of trees that have grown before
        waits = self._last.pop("waits", None)
        if waits is not None:
            self._draw([waits])
        if self._last.get("unused"):  # gradients that no tree has used
            self._launch("forget_gradients", 1)
            self._last["unused"] = False
        penalty = {
            "reg_lambda": reg_lambda,
            "linear_lambda": linear_lambda,
            "linear_smooth": linear_smooth,
        }
        return [
            self._fit_lines(first + k, offset, column, own, {"rate": rate, **penalty})
            for k, own in enumerate(value)
        ]

    def _fit_lines(
        self,
        output: int,
        offset: NDArray[np.int64],
        column: Ints,
        value: Floats,
        rule: Mapping[str, float],
    ) -> Terms:
        """The terms of the leaves of an output's tree."""
        job = self._line_job(output)
        n = len(value)
        n_terms = len(column) + len(value)
        self._set_gradients(job, output)
        size = np.diff(offset)  # columns of each leaf
        sums = np.cumsum([0, *(size * (size + 5) // 2)], dtype=np.int64)
        space = np.cumsum([0, *(size * (size + 3))], dtype=np.int64)
        sent: dict[str, NDArray[Any]] = {
            "column_at": offset.astype(np.int32),
            "column": column,
            "sum_at": sums,
            "space_at": space,
            "value": value,
            "number": self._leaf_numbers(output, n),
        }
        there = self._send(f"leaves of lines {output}", sent)
        job["number"], job["of"]["n_leaves"] = there.pop("number"), n
        there |= self._buffer(
            "lines",
            {
                "n_kept": 4 * n,
                "row_at": 4 * (n + 1),
                "cursor": 4 * n,
                "rows": 4 * self._n,
                "range": 16 * len(column),
                "fixed": record("FixedColumn").itemsize * len(column),
                "totals": record("LineSums").itemsize * n,
                "sums": 32 * int(sums[-1]),
                "space": 8 * int(space[-1]),
            },
        )
        for name, address in there.items():
            job["of"][name] = address
        for name, number in rule.items():
            job[name] = number
        parts = {"coef": 8 * n_terms, "column": 4 * n_terms, "at": 4 * n, "n": 4 * n}
        for name, address in self._buffer(f"terms of lines {output}", parts).items():
            job["terms"][name] = address
        job["terms"]["value"], job["terms"]["bounds"] = (
            job["of"]["value"],
            job["table"]["bounds"],
        )
        tile, n_rows, has_columns = self._tile(int(size.max(initial=0)))
        for kernel in STEPS:
            if kernel == "sum_lines":
                self._launch_lines(kernel, job, tile, n_rows, has_columns)
            else:
                self._launch_lines(kernel, job, 4 * n if kernel in BY_LEAF else 0)
        found = self._read_terms(output, parts)
        self._lines[output] = job if len(found[2]) else None
        return found

    def _read_terms(self, output: int, parts: Mapping[str, int]) -> Terms:
        """The terms of an output's tree, those of a leaf after those of the one
        before.
        """
        raw = self.runtime.get(self._arrays[f"terms of lines {output}"])
        kinds = {"coef": np.float64, "column": np.int32, "at": np.int32, "n": np.int32}
        ends = _places(parts)
        coef, column, at, n = (
            raw[ends[name] : ends[name] + size].view(kinds[name])
            for name, size in parts.items()
        )
        offset = np.cumsum([0, *n], dtype=np.int64)
        own = np.arange(offset[-1]) - np.repeat(offset[:-1], n) + np.repeat(at, n)
        return offset, column[own], coef[own]

    def set_linear(
        self,
        output: int,
        offset: NDArray[np.int64],
        column: Ints,
        coef: Floats,
        bounds: Floats,
    ) -> None:
        if not len(coef):
            self._lines[output] = None
            return
        job = self._line_job(output)
        value = self._last["values", output]
        sent = {
            "at": offset[:-1].astype(np.int32),
            "n": np.diff(offset).astype(np.int32),
            "column": column,
            "coef": coef,
            "value": value,
            "number": self._leaf_numbers(output, len(value)),
            "bounds": bounds,
        }
        there = self._send(f"terms of lines {output}", sent)
        job["number"] = there.pop("number")
        for name, address in there.items():
            job["terms"][name] = address
        if not len(bounds):
            job["terms"]["bounds"] = 0
        self._lines[output] = job

    def _add_lines(self, output: int, score: Any) -> None:
        """Add the lines of an output's tree to scores (n_outputs, n_rows)."""
        job = self._lines[output]
        job["score"] = self.runtime.address(score[output])
        self._launch_lines("add_lines", job)

    def _line_job(self, output: int) -> NDArray[Any]:
        """The rows of an output's tree, and their values."""
        if self._arrays.get("line_table") is None:
            assert self._table is not None
            self._arrays["line_table"] = self.runtime.array(self._table)
        job = np.zeros((), record("LineJob"))
        arrays = self._arrays
        address = self.runtime.address
        job["n"], job["leaf"] = self._n, address(arrays["leaf"][self._place(output)])
        for name in ("repeats", "repeated", "weight_shift"):
            job[name] = self._job[name]
        table = job["table"]
        table["data"], table["is_double"] = (
            address(arrays["line_table"]),
            arrays["line_table"].dtype == np.float64,
        )
        table["n_columns"] = arrays["line_table"].shape[1]
        for name in ("bounds", "unit"):
            table[name] = (
                address(arrays[f"line_{name}"]) if f"line_{name}" in arrays else 0
            )
        return job

    def _set_gradients(self, job: NDArray[Any], output: int) -> None:
        """The sample of the output's tree, and the gradients that its leaf values came
        from.
        """
        arrays = self._arrays
        address = self.runtime.address
        place = self._place(output)
        if not self._job["all_rows"]:
            job["in_sample"] = address(arrays["in_sample"][self._copy])
        reweighted = self._last.get("reweighted", False)
        size = record("Output").itemsize
        pairs, of, at = (
            ("reweighted_leaf", "reweighted", place)
            if reweighted
            else ("leaf_pairs", "output", output)
        )
        job["pairs"], job["output"] = (
            address(arrays[pairs][at]),
            address(arrays[of]) + at * size,
        )

    def _leaf_numbers(self, output: int, n_leaves: int) -> Ints:
        """The number of the leaf that each node is."""
        nodes = self._leaf_nodes(output)
        number = np.zeros(max(int(self._job["max_nodes"]), n_leaves), np.int32)
        number[np.arange(n_leaves) if nodes is None else nodes] = np.arange(
            n_leaves, dtype=np.int32
        )
        return number

    def _buffer(self, name: str, parts: Mapping[str, int]) -> dict[str, int]:
        """Memory for parts of so many bytes, in one array that is kept; their
        addresses.
        """
        places = _places(parts)
        size = places[""]
        known = self._arrays.get(name)
        if known is None or known.size < size:
            self._arrays[name] = self.runtime.zeros(
                size if known is None else size * 3 // 2, np.uint8
            )
        first = self.runtime.address(self._arrays[name])
        return {part: first + places[part] for part in parts}

    def _send(self, name: str, values: Mapping[str, NDArray[Any]]) -> dict[str, int]:
        """The same for arrays, which are copied to the device at once."""
        parts = {part: own.nbytes for part, own in values.items()}
        places = _places(parts)
        addresses = self._buffer(name, parts)
        raw = np.zeros(places[""], np.uint8)
        for part, own in values.items():
            raw[places[part] : places[part] + own.nbytes] = np.ascontiguousarray(
                own
            ).view(np.uint8)
        self.runtime.put(self._arrays[name][: len(raw)], raw)
        return addresses

    def _launch_lines(
        self, kernel: str, job: NDArray[Any], shared: int = 0, a: int = 0, b: int = 0
    ) -> None:
        run = self.runtime
        threads, each = run.settings[kernel]
        n_blocks = (
            max(1, min(run.n_processors * each, -(-self._n // threads))) if each else 1
        )
        run.launch(
            kernel,
            "",
            (n_blocks, 1, 1),
            shared,
            np.ndarray((), f"V{job.nbytes}", job),
            a,
            b,
        )

    def _tile(self, n_columns: int) -> tuple[int, int, bool]:
        """Shared memory of the sums of leaves of so many columns: bytes, rows of a
        tile, whether columns are in it.
        """
        for n_rows in TILE_ROWS:
            size = n_rows * (ROW_BYTES + 4 * n_columns)
            if size <= (
                TILE_BYTES if n_rows > TILE_ROWS[-1] else self.runtime.max_shared // 2
            ):
                return size, n_rows, True
        return TILE_ROWS[-1] * ROW_BYTES, TILE_ROWS[-1], False


def _places(parts: Mapping[str, int]) -> dict[str, int]:
    """Where parts of so many bytes begin; "": where the last ends."""
    found = {}
    end = 0
    for name, size in parts.items():
        found[name] = end
        end += -(-size // ALIGNED) * ALIGNED
    return {**found, "": max(end, 1)}
