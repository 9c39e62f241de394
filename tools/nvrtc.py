"""One source of mathematics: core/math and the objectives give the same bits from NVRTC
as from the host's compiler.

In: the headers of core/math and core/objective, a GPU with CuPy, a C++ compiler. Out:
one line for each function with the number of inputs whose bits differ; exit status 1
where there are some. It needs a GPU, so no other target runs it.
"""

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CORE = Path(__file__).resolve().parent.parent / "src" / "sapwood" / "core"
N = 1 << 20
UNARY = ("exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh")
OPTIONS = (
    "--std=c++20",
    "-default-device",
    "--fmad=false",
    f"-I{CORE}",
    f"-I{CORE}/cuda/nvrtc",
    "-DSAPWOOD_ISA=cuda",
)
ARGUMENTS = "(int n, const double* a, const double* b, const double* c, const double* f, double* o)"
ROW = "const double x = a[i], y = b[i], z = c[i]; double* out = o + 3 * i; (void)x, (void)y, (void)z;"
HEAD = "\n".join(
    [
        '#include "math/gain.h"',
        '#include "math/hash.h"',
        '#include "math/sample.h"',
        '#include "math/split.h"',
    ]
    + [
        f'#include "objective/{path.name}"'
        for path in sorted((CORE / "objective").glob("*.h"))
    ]
    + ["using namespace sapwood;"]
)


def bodies() -> Iterator[tuple[str, str]]:
    """Name and body of every function that is compared."""
    for name in UNARY:
        yield name, f"out[0] = sapwood::{name}(x), out[1] = out[2] = 0.0;"
    yield (
        "quantise",
        "out[0] = quantise_g(y, 0x1p20), out[1] = quantise_h(y * y, 0x1p9), out[2] = (double)rounded62(y);",
    )
    yield (
        "draw",
        "out[0] = of_bits(draw(key(1, 2, 3, 4), bits_of(x)) >> 12), out[1] = out[2] = 0.0;",
    )
    yield (
        "gain",
        "const Sums l{(int64_t)(y * 1e6), (int64_t)(y * y * 1e6) + 1}, r{(int64_t)(y * 7e5), 12345};"
        "const Penalty p{1.5, 2.0}; out[0] = split_score(l, r, p), out[1] = node_score(l, p);"
        "out[2] = leaf_value(l, Scale{30, 1, 2}, 1.0, 0.1, 0.7);",
    )
    for path in sorted((CORE / "objective").glob("*.h")):
        loss = f"objective_{path.stem}"
        yield (
            path.stem,
            f"out[0] = {loss}::loss(y, z, f); {loss}::grad_hess(y, z, f, out[1], out[2]);",
        )


def host(name: str, body: str, folder: Path) -> ctypes.CDLL:
    """The function as the host's compiler makes it, over arrays."""
    source = folder / f"{name}.cpp"
    library = folder / f"{name}.so"
    loop = f"for (int i = 0; i < n; i++) {{ {ROW} {body} }}"
    source.write_text(
        f'#define SAPWOOD_ISA base\n{HEAD}\nextern "C" void run{ARGUMENTS} {{ {loop} }}\n'
    )
    flags = [
        "-std=c++20",
        "-O2",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-shared",
        "-fPIC",
        f"-I{CORE}",
    ]
    subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def device_source(body: str) -> str:
    """The same function as a CUDA kernel."""
    start = f"const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; {ROW}"
    return f'{HEAD}\nextern "C" __global__ void run{ARGUMENTS} {{ {start} {body} }}\n'


def inputs() -> tuple[NDArray[np.float64], ...]:
    """Any bits, moderate scores, labels of 0 and 1, and the objectives' fields."""
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 1 << 63, N, dtype=np.int64).view(
        np.float64
    ) * rng.choice([-1.0, 1.0], N)
    anything[: N // 2] = rng.normal(size=N // 2) * 10.0 ** rng.uniform(-8, 3, N // 2)
    anything[:7] = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1.0]
    return (
        anything,
        rng.normal(size=N) * 4,
        rng.integers(0, 2, N).astype(np.float64),
        np.array([0.7, 1.3, 1.1, 0.9]),
    )


def main() -> int:
    """Compare every function and print the table."""
    import cupy

    arrays = inputs()
    on_device = [cupy.asarray(one) for one in arrays]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, body in bodies():
            module = cupy.RawModule(
                code=device_source(body), options=OPTIONS, backend="nvrtc"
            )
            found = cupy.full((N, 3), 1.25)
            module.get_function("run")(
                (N // 256,), (256,), (np.int32(N), *on_device, found)
            )
            wanted = np.full((N, 3), 2.5)
            pointers = [
                one.ctypes.data_as(ctypes.c_void_p) for one in (*arrays, wanted)
            ]
            host(name, body, Path(folder)).run(N, *pointers)
            ours = found.get()
            same = (ours.view(np.int64) == wanted.view(np.int64)) | (
                np.isnan(ours) & np.isnan(wanted)
            )
            differ = int((~same).any(axis=1).sum())
            bad += differ > 0
            print(f"{name:20}{differ:8} of {N} differ", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
