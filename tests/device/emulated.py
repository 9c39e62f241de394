"""The kernels of core/cuda on the host: compiled as C++ and run through an emulation of blocks and threads.

In: the sources. Out: a runtime, and a device "emulated" made of it.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood._core import Explainer, Forest, cuts
from sapwood.device import cuda
from sapwood.device.cuda.job import CORE
from sapwood.device.cuda.runtime import SETTINGS, digest

HERE = Path(__file__).resolve().parent
SMALL = {"partition": (64, 3), "histogram": (64, 3), "search": (64, 0), "score_level": (64, 0), "choose_level": (64, 0), "choose_columns": (64, 0), "find_leaves": (64, 2), "finish_tree": (32, 0),
         "gradient_pass": (32, 2), "add_values": (32, 2), "draw_rows": (64, 2), "begin": (64, 1)}  # fmt: skip


@cache
def library(objective: str) -> ctypes.CDLL:
    """All kernels for one objective."""
    folder = Path(tempfile.gettempdir()) / f"sapwood-emulated-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    made = folder / f"{objective}-{digest()[:16]}-{hash_of_emulation()}.so"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=folder) as room:
            source, target = Path(room) / "kernels.cpp", Path(room) / "kernels.so"
            source.write_text('#include "cuda/rows.cu"\n#include "cuda/grow.cu"\n')
            flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared"]
            flags += ["-fPIC", "-w", "-DSAPWOOD_EMULATED", "-DSAPWOOD_ISA=emulated", f"-I{CORE}", f"-I{HERE}"]
            flags += [f'-DSAPWOOD_OBJECTIVE_HEADER="objective/{objective}.h"']
            flags += [f"-DSAPWOOD_OBJECTIVE=objective_{objective}"]
            subprocess.run([os.environ.get("CXX", "c++"), *flags, str(source), "-o", str(target)], check=True)
            target.rename(made)
    return ctypes.CDLL(str(made))


@cache
def hash_of_emulation() -> str:
    """So that a change of the emulation builds anew."""
    import hashlib

    return hashlib.sha256((HERE / "emulation.h").read_bytes()).hexdigest()[:8]


class Emulated:
    """Device memory is that of this process."""

    name, n_processors, max_shared = "emulated", 2, 200_000
    settings = SETTINGS | SMALL

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.array(values, order="C")

    def zeros(self, shape: Any, kind: Any) -> NDArray[Any]:
        return np.zeros(shape, kind)

    def get(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.copy()

    def put(self, into: NDArray[Any], values: NDArray[Any]) -> None:
        into[...] = values.reshape(into.shape)

    def address(self, values: NDArray[Any]) -> int:
        return int(values.ctypes.data)

    def launch(self, kernel: str, objective: str, grid: tuple[int, int], shared: int, *arguments: int) -> None:
        job, a, b = arguments
        found = library(objective)
        threads = self.settings[kernel][0]
        found.emulate(
            getattr(found, kernel), *grid, threads, ctypes.c_uint64(shared), ctypes.c_void_p(int(job)), int(a), int(b)
        )

    def capture(self, work: Callable[[], None]) -> None:
        return None


def device() -> SimpleNamespace:
    """The device "emulated"."""
    binned, trainer = cuda.make(Emulated())
    found = SimpleNamespace(
        name="emulated", cuts=cuts, Binned=binned, Trainer=trainer, apply=cuda.apply, Forest=Forest, Explainer=Explainer
    )
    sys.modules["sapwood.device.emulated"] = found  # type: ignore[assignment]
    return found
