"""The kernels of core/cuda on the host: compiled as C++ and run through an emulation of
blocks and threads.

In: the sources. Out: a runtime, and a device "emulated" made of it.
"""

import ctypes
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import cuda
from sapwood.device.cuda.binned import find_cuts
from sapwood.device.cuda.job import CORE
from sapwood.device.cuda.plan import ROUNDED
from sapwood.device.cuda.runtime import ROW_KERNELS, SETTINGS, digest, row_defines

HERE = Path(__file__).resolve().parent
SMALL = {  # threads and blocks, few of both
    **dict.fromkeys(("partition", "histogram"), (64, 3)),
    **dict.fromkeys(("choose_level", "choose_columns"), (64, 0)),
    **dict.fromkeys(("gradient_pass", "add_values"), (32, 2)),
    "draw_rows": (64, 2),
    **dict.fromkeys(("count_norms", "reweigh"), (64, 2)),
    "choose_norm": (64, 0),
    "begin": (64, 1),
    **dict.fromkeys(("take_level", "begin_sketch", "end_sketch"), (64, 0)),
    **dict.fromkeys(("sketch_rows", "sum_noise"), (64, 2)),
    "find_leaves": (64, 2),
    "score_whole_level": (256, 12),
    "finish_tree": (32, 0),
    **dict.fromkeys(("fill_entries", "explain", "add_tree"), (64, 0)),
    **dict.fromkeys(("predict_rows_there", "measure_rows"), (64, 2)),
    **dict.fromkeys(
        (
            "count_lines",
            "group_lines",
            "range_lines",
            "total_lines",
            "sum_lines",
            "add_lines",
        ),
        (64, 2),
    ),
    **dict.fromkeys(("begin_lines", "fix_lines", "solve_lines"), (32, 1)),
    "place_lines": (64, 0),
}


@cache
def library(objective: str) -> ctypes.CDLL:
    """All kernels for one objective and one sampler, by their names."""
    folder = Path(tempfile.gettempdir()) / f"sapwood-emulated-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    made = (
        folder
        / f"{objective.replace(' ', '-')}-{digest()[:16]}-{hash_of_emulation()}.so"
    )
    with (folder / "lock").open("w") as lock:
        # the workers of a test run want the same kernels
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            compile_kernels(objective, made)
    return ctypes.CDLL(str(made))


def compile_kernels(objective: str, made: Path) -> None:
    """Compile them with the C++ compiler of this machine."""
    with tempfile.TemporaryDirectory(dir=made.parent) as room:
        source = Path(room) / "kernels.cpp"
        target = Path(room) / "kernels.so"
        source.write_text(
            '#include "cuda/rows.cu"\n#include "cuda/grow.cu"\n#include "cuda/predict.cu"\n#include "cuda/prepare.cu"\n'
            '#include "cuda/lines.cu"\n'
        )
        flags = [
            "-std=c++20",
            "-O1",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-shared",
            "-fPIC",
        ]
        flags += [
            "-w",
            "-DSAPWOOD_ISA=emulated",
            f"-I{CORE}",
            f'-DSAPWOOD_EMULATED="{HERE / "emulation.h"}"',
        ]
        flags += row_defines(objective)
        subprocess.run(
            [os.environ.get("CXX", "c++"), *flags, str(source), "-o", str(target)],
            check=True,
        )
        target.rename(made)


@cache
def hash_of_emulation() -> str:
    """So that a change of the emulation builds anew."""
    return hashlib.sha256((HERE / "emulation.h").read_bytes()).hexdigest()[:8]


class Emulated:
    """Device memory is that of this process."""

    name = "emulated"
    n_processors = 2
    max_shared = 200_000
    settings = SETTINGS | SMALL
    objective = "logistic uniform"

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.array(values, order="C")

    def zeros(self, shape: Any, kind: Any) -> NDArray[Any]:
        return np.zeros(shape, kind)

    def get(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.copy()

    def put(self, into: NDArray[Any], values: NDArray[Any]) -> None:
        assert into.shape == values.shape  # CuPy wants that
        into[...] = values

    def fill(self, into: NDArray[Any], value: float) -> None:
        into.fill(value)

    def foreign(self, values: Any) -> NDArray[Any]:
        return values if isinstance(values, np.ndarray) else values.get()

    def take(self, values: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(values[rows])

    def ranked(
        self, values: NDArray[Any], *weights: NDArray[Any]
    ) -> list[NDArray[Any]]:
        order = np.argsort(values)
        return [values[order], *(np.cumsum(one[order]) for one in weights)]

    def copy(self, into: NDArray[Any], values: NDArray[Any]) -> None:
        into[...] = values

    def distinct(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.unique(values[np.isfinite(values)])

    def wait(self) -> None:
        pass

    def lane(self, owner: object) -> "Emulated":
        return self

    def free(self) -> int:
        return 1 << 40

    def describe(self) -> str:
        return "an emulation"

    def address(self, values: NDArray[Any]) -> int:
        return int(values.ctypes.data)

    def launch(
        self,
        kernel: str,
        variant: str,
        grid: tuple[int, ...],
        shared: int,
        job: NDArray[Any],
        a: int,
        b: int,
        threads: int | None = None,
    ) -> None:
        self.objective = variant if kernel in ROW_KERNELS else self.objective
        found = library(self.objective)  # growth is compiled for all rules at once
        threads = threads or self.settings[kernel][0]
        address = ctypes.c_void_p(job.ctypes.data)
        sizes = *grid, *(1,) * (3 - len(grid)), threads
        found.emulate(
            getattr(found, kernel),
            *sizes,
            ctypes.c_uint64(shared),
            address,
            int(a),
            int(b),
        )

    def capture(self, work: Callable[[], None]) -> None:
        return None


class Counted(Emulated):
    """Device memory that is counted."""

    total = 0
    most = 1 << 40

    def zeros(self, shape: Any, kind: Any) -> NDArray[Any]:
        found = super().zeros(shape, kind)
        self.total += -(-found.nbytes // ROUNDED) * ROUNDED
        return found

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        found = self.zeros(values.shape, values.dtype)
        found[...] = values
        return found

    def free(self) -> int:
        return self.most


def device(kind: type[Emulated] = Emulated) -> SimpleNamespace:
    """The device "emulated"."""
    runtime = kind()
    verbs = cuda.make(runtime)
    verbs["Forest"].min_rows = verbs["Explainer"].min_rows = 0
    found = SimpleNamespace(
        name="emulated", cuts=partial(find_cuts, runtime), apply=cuda.apply, **verbs
    )
    sys.modules["sapwood.device.emulated"] = found  # type: ignore[assignment]
    return found
