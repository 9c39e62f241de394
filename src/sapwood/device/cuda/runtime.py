"""The GPU through CuPy: memory, kernels compiled by NVRTC, graphs of launches.

In: arrays of this process, names of kernels. Out: arrays in device memory. The only
module that imports CuPy.
"""

import hashlib
from collections.abc import Callable
from copy import copy
from functools import cache, wraps
from threading import RLock
from typing import Any, Protocol, TypeVar, cast
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from sapwood.device.cuda.job import CORE
from sapwood.errors import DataError, ParameterError

OPTIONS = (
    "--std=c++20",
    "-default-device",
    "--fmad=false",
    f"-I{CORE}",
    f"-I{CORE}/cuda/nvrtc",
    "-DSAPWOOD_ISA=cuda",
)
SHARING = (  # kernels whose shared memory the host sets
    "histogram",
    "find_leaves",
    "predict",
    "predict_plain",
    "explain",
    "count_lines",
    "group_lines",
    "sum_lines",
)
MAX_LANES = 8  # streams of trainings that run side by side
# the NVRTC that compiles the kernels of a unit in several threads
SPLIT_COMPILE = (13, 0)
# kernel: threads of a block, blocks of a grid for every multiprocessor
SETTINGS: dict[str, tuple[int, int]] = {
    "gradient_pass": (256, 4),
    "add_values": (256, 8),
    "draw_rows": (256, 4),
    "forget_sample": (1, 0),
    "forget_gradients": (1, 0),
    "count_norms": (512, 2),
    "choose_norm": (512, 0),
    "reweigh": (256, 4),
    "end_reweigh": (1, 0),
    "begin": (256, 1),
    "partition": (128, 8),
    "histogram": (1024, 1),
    "search": (256, 0),
    "score_level": (256, 0),
    "score_whole_level": (256, 4),
    "choose_level": (64, 0),
    "choose_columns": (256, 0),
    "find_leaves": (1024, 2),
    "finish_tree": (512, 0),
    "search_joint": (256, 0),
    "score_joint": (256, 0),
    "add_joint": (64, 0),
    "choose_joint": (64, 0),
    "take_level": (256, 0),
    "begin_sketch": (256, 0),
    "sketch_rows": (256, 4),
    "end_sketch": (256, 0),
    "sum_noise": (256, 4),
    "predict": (512, 0),
    "predict_plain": (512, 0),
    "apply_link": (256, 0),
    "bin_values": (256, 0),
    "fill_entries": (128, 0),
    "explain": (128, 0),
    "add_tree": (256, 0),
    "predict_rows_there": (256, 8),
    "measure_rows": (256, 4),
    "begin_lines": (256, 4),
    "count_lines": (512, 2),
    "place_lines": (512, 0),
    "group_lines": (512, 2),
    "range_lines": (256, 8),
    "fix_lines": (64, 4),
    "total_lines": (256, 4),
    "sum_lines": (256, 8),
    "solve_lines": (32, 8),
    "add_lines": (256, 8),
}


RULES = (
    "plain",
    "counts",
    "columns",
    "categories",
    "joint",
    "ranked",
    "narrow",
    "beside",
    "copies",
)  # what kernels of growth are compiled for
# by the numbers that core/cuda/job.h gives them
POLICIES = ("depthwise", "symmetric", "leafwise")


Method = TypeVar("Method", bound=Callable[..., Any])


def alone(method: Method) -> Method:
    """One thread at a time: what another one launches in our stream would be recorded
    in a graph with ours.
    """

    @wraps(method)
    def locked(self: Any, *arguments: Any, **named: Any) -> Any:
        with self.lock:
            return method(self, *arguments, **named)

    return cast(Method, locked)


class Runtime(Protocol):
    """Where kernels run: a GPU, or their emulation in tests."""

    name: str
    n_processors: int
    max_shared: int  # bytes of shared memory that a block may have
    settings: dict[str, tuple[int, int]]

    def array(self, values: NDArray[Any]) -> Any: ...
    def zeros(self, shape: Any, kind: Any) -> Any: ...
    def get(self, values: Any) -> NDArray[Any]: ...
    def put(self, into: Any, values: NDArray[Any]) -> None: ...
    def fill(self, into: Any, value: float) -> None: ...
    def address(self, values: Any) -> int: ...
    def foreign(self, values: Any) -> Any: ...
    def distinct(self, values: Any) -> NDArray[Any]: ...
    def take(self, values: Any, rows: NDArray[Any]) -> NDArray[Any]: ...
    def ranked(self, values: Any, *weights: Any) -> list[Any]: ...
    def copy(self, into: Any, values: Any) -> None: ...
    def wait(self) -> None: ...
    def lane(self, owner: object) -> "Runtime": ...
    def free(self) -> int: ...
    def describe(self) -> str: ...
    def launch(
        self,
        kernel: str,
        variant: str,
        grid: tuple[int, ...],
        shared: int,
        job: Any,
        a: int,
        b: int,
        threads: int | None = None,
    ) -> None: ...
    def capture(self, work: Callable[[], None]) -> Callable[[], None] | None: ...


class Cuda:
    """A GPU."""

    name = "cuda"

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError as cause:
            raise ParameterError(
                "device='cuda' needs CuPy, which is not installed; install sapwood[cuda], or use device='cpu'."
            ) from cause
        try:
            n_devices = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError:
            n_devices = 0
        if n_devices == 0:
            raise ParameterError(
                "device='cuda' needs an NVIDIA GPU with its driver; none was found. Use device='cpu'."
            )
        self.cupy = cupy
        facts = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.n_processors = int(facts["multiProcessorCount"])
        self.max_shared = int(facts["sharedMemPerBlockOptin"])
        self.gpu = facts["name"].decode()
        self.settings = SETTINGS
        self.stream = cupy.cuda.Stream(non_blocking=True)
        # lanes, and how many owners each has
        self._streams = [self.stream]
        self._n_owners = [0]
        self.lock = RLock()
        many = tuple(cupy.cuda.nvrtc.getVersion()) >= SPLIT_COMPILE
        self.options = (*OPTIONS, "--split-compile=0") if many else OPTIONS
        self.kernel = cache(self._kernel)

    @alone
    def lane(self, owner: object) -> "Cuda":
        """This GPU with a stream that no other owner has, while there are any: the work
        of owners runs side by side.

        Memory that was filled before is ready there. The first of them has the stream
        that all else runs in.
        """
        self.wait()
        if min(self._n_owners) > 0 and len(self._streams) < MAX_LANES:
            self._streams.append(self.cupy.cuda.Stream(non_blocking=True))
            self._n_owners.append(0)
        at = self._n_owners.index(min(self._n_owners))
        self._n_owners[at] += 1
        finalize(owner, self._leave, at)
        found = copy(self)
        found.stream = self._streams[at]
        return found

    @alone
    def _leave(self, at: int) -> None:
        self._n_owners[at] -= 1

    @alone
    def array(self, values: NDArray[Any]) -> Any:
        """Copy an array to the device."""
        made = self._allocate(
            lambda: self.cupy.empty(values.shape, values.dtype), values.nbytes
        )
        made.set(np.ascontiguousarray(values), stream=self.stream)
        return made

    def zeros(self, shape: Any, kind: Any) -> Any:
        """A new array of zeros."""
        n_bytes = int(np.prod(shape)) * np.dtype(kind).itemsize
        return self._allocate(lambda: self.cupy.zeros(shape, kind), n_bytes)

    def free(self) -> int:
        """Bytes of device memory that can be had: what the driver has left, and what
        CuPy keeps for later.
        """
        return int(self.cupy.cuda.runtime.memGetInfo()[0]) + int(
            self.cupy.get_default_memory_pool().free_bytes()
        )

    def describe(self) -> str:
        """What this GPU is, in a line."""
        total = self.cupy.cuda.runtime.memGetInfo()[1]
        driver = self.cupy.cuda.runtime.driverGetVersion()
        return (
            f"{self.gpu}, {self.n_processors} multiprocessors, {self.free() / 2**30:.1f} of {total / 2**30:.1f} GiB "
            f"free, driver for CUDA {driver // 1000}.{driver % 1000 // 10}, CuPy {self.cupy.__version__}"
        )

    @alone
    def _allocate(self, make: Callable[[], Any], n_bytes: int) -> Any:
        """Make an array, or say in words that it does not fit."""
        try:
            with self.stream:
                return make()
        except self.cupy.cuda.memory.OutOfMemoryError as cause:
            free, total = self.cupy.cuda.runtime.memGetInfo()
            raise DataError(
                f"the GPU has {free / 2**30:.1f} of {total / 2**30:.1f} GiB free, and {n_bytes / 2**30:.1f} GiB more "
                "are needed; train on fewer rows or smaller trees, or use device='cpu'."
            ) from cause

    @alone
    def get(self, values: Any) -> NDArray[Any]:
        """Copy an array to this process, once all work so far is done."""
        return np.asarray(values.get(stream=self.stream))

    @alone
    def put(self, into: Any, values: NDArray[Any]) -> None:
        """Overwrite an array on the device."""
        into.set(values, stream=self.stream)

    @alone
    def fill(self, into: Any, value: float) -> None:
        """Overwrite all of an array on the device by one value."""
        with self.stream:
            into.fill(value)

    def address(self, values: Any) -> int:
        """The address of an array."""
        return int(values.data.ptr)

    def foreign(self, values: Any) -> Any:
        """An array of any library in device memory as it is, once the work of its
        stream is done.
        """
        self.cupy.cuda.get_current_stream().synchronize()
        if hasattr(values, "__cuda_array_interface__"):
            return self.cupy.asarray(values)
        return self.cupy.from_dlpack(values)

    @alone
    def take(self, values: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Some rows of an array on the device, as an array of this process."""
        there = self.array(rows)
        with self.stream:  # work of another stream would not wait for that of this one
            found = values[there]
        return self.get(found)

    @alone
    def copy(self, into: Any, values: Any) -> None:
        """Overwrite an array on the device by another one there."""
        with self.stream:
            into[...] = values

    @alone
    def distinct(self, values: Any) -> NDArray[Any]:
        """The finite values of an array on the device, each once, as an array of this
        process.
        """
        with self.stream:
            found = self.cupy.unique(values[self.cupy.isfinite(values)])
        return self.get(found)

    @alone
    def ranked(self, values: Any, *weights: Any) -> list[Any]:
        """Values on the device in rising order, and the sums of each kind of weights up
        to each of them.
        """
        with self.stream:
            order = self.cupy.argsort(values)
            return [values[order], *(self.cupy.cumsum(one[order]) for one in weights)]

    @alone
    def wait(self) -> None:
        """Wait until all work so far is done."""
        self.stream.synchronize()

    @alone
    def _kernel(self, name: str, variant: str) -> Any:
        """A compiled kernel; those of rows know their objective, those of growth what
        the search must look at.
        """
        module = self._module(SOURCES.get(name, "grow"), variant)
        kernel = module.get_function(name)
        if name in SHARING:
            kernel.max_dynamic_shared_size_bytes = (
                self.max_shared - kernel.shared_size_bytes
            )
        return kernel

    @cache  # noqa: B019 one runtime lives as long as the process
    def _module(self, source: str, variant: str) -> Any:
        words, defines = variant.split(), tuple[str, ...]()
        if source == "rows":
            defines = tuple(row_defines(variant))
        elif source == "grow":
            defines = tuple(
                f"-DSAPWOOD_{name.upper()}={int(name in words)}" for name in RULES
            )
            defines += (f"-DSAPWOOD_POLICY={POLICIES.index(words[-1])}",)
        text = f'// {digest()}\n#include "cuda/{source}.cu"\n'
        return self.cupy.RawModule(
            code=text, options=(*self.options, *defines), backend="nvrtc"
        )

    @alone
    def launch(
        self,
        kernel: str,
        variant: str,
        grid: tuple[int, ...],
        shared: int,
        job: Any,
        a: int,
        b: int,
        threads: int | None = None,
    ) -> None:
        """Run a kernel: its job by value, then two integers."""
        threads = threads or self.settings[kernel][0]
        with self.stream:
            self.kernel(kernel, variant)(
                grid, (threads,), (job, np.int32(a), np.int32(b)), shared_mem=shared
            )

    @alone
    def capture(self, work: Callable[[], None]) -> Callable[[], None] | None:
        """Record launches as a graph; calling it repeats them."""
        self.stream.synchronize()
        with self.stream:
            self.stream.begin_capture()
            work()
            graph = self.stream.end_capture()

        def replay() -> None:
            with self.lock:
                graph.launch(self.stream)

        return replay


ROOMS = ("math", "objective", "sampler", "cuda")
PREDICT_KERNELS = (
    "predict",
    "predict_plain",
    "apply_link",
    "bin_values",
    "fill_entries",
    "explain",
    "add_tree",
    "predict_rows_there",
    "measure_rows",
)
ROW_KERNELS = (
    "gradient_pass",
    "add_values",
    "draw_rows",
    "forget_gradients",
    "forget_sample",
    "count_norms",
    "choose_norm",
    "reweigh",
    "end_reweigh",
)
LINE_KERNELS = (
    "begin_lines",
    "count_lines",
    "place_lines",
    "group_lines",
    "range_lines",
    "fix_lines",
    "total_lines",
    "sum_lines",
    "solve_lines",
    "add_lines",
)
SOURCES = {
    **dict.fromkeys(ROW_KERNELS, "rows"),
    **dict.fromkeys(
        ("begin_sketch", "sketch_rows", "end_sketch", "sum_noise"), "prepare"
    ),
    **dict.fromkeys(PREDICT_KERNELS, "predict"),
    **dict.fromkeys(LINE_KERNELS, "lines"),
}  # of kernels that do not grow trees: the unit that compiles them


def row_defines(variant: str) -> list[str]:
    """What kernels of rows are compiled for: an objective and a sampler."""
    found = []
    for kind, name in zip(("objective", "sampler"), variant.split(), strict=True):
        found.append(f'-DSAPWOOD_{kind.upper()}_HEADER="{kind}/{name}.h"')
        found.append(f"-DSAPWOOD_{kind.upper()}={kind}_{name}")
    return found


@cache
def digest() -> str:
    """A hash of the kernels' sources: CuPy keeps compiled kernels by the text that it
    is given.
    """
    found = sorted(path for room in ROOMS for path in (CORE / room).rglob("*.*"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()


@cache
def cuda() -> Cuda:
    """The GPU of this process; raises in one sentence where there is none."""
    return Cuda()
