"""The law over machines: what users see beside predictions has the same bits on every
CPU.

Child processes stand for machines: NumPy without its vector code, kernels of BLAS for
other CPUs, libm without FMA, and the core's portable code.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

SCRIPT = Path(__file__).with_name("machine_outputs.py")
DISPATCHED = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
VECTOR_CODE = " ".join(DISPATCHED)
WIDE_VECTOR_CODE = " ".join(
    name for name in DISPATCHED if name not in ("X86_V3", "AVX2", "FMA3")
)
# Each child is NumPy's, BLAS's and libm's choice on some CPU; few children, as each
# imports scikit-learn.
MACHINES = {
    "an old CPU": {
        "NPY_DISABLE_CPU_FEATURES": VECTOR_CODE,
        "OPENBLAS_CORETYPE": "Prescott",
        "SAPWOOD_ISA": "portable",
    },
    "a CPU without FMA and AVX-512": {
        "NPY_DISABLE_CPU_FEATURES": WIDE_VECTOR_CODE,
        "OPENBLAS_CORETYPE": "Haswell",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX,-AVX512F",
    },
    "a server of Intel": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "a server of AMD": {"OPENBLAS_CORETYPE": "Zen"},
}


@cache
def outputs(machine: str) -> dict[str, str]:
    """The hash of every output by its name, on one of the machines or as this one
    is.
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **MACHINES[machine]}
    child = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    hashes: dict[str, str] = json.loads(child.stdout)
    return hashes


@pytest.mark.parametrize("machine", list(MACHINES)[1:])
def test_outputs_have_the_same_bits_on_every_machine(machine: str) -> None:
    old = outputs("an old CPU")
    new = outputs(machine)
    assert len(old) > 200
    assert [name for name in old if new[name] != old[name]] == []
