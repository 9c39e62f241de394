"""A failed allocation of the core raises MemoryError, and the next training has the
same bytes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "faults"


@pytest.mark.parametrize("times", [25, pytest.param(0, marks=pytest.mark.nightly)])
def test_a_failed_allocation_raises_memory_error(tmp_path: Path, times: int) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler, "the core was built, so there is a compiler"
    shim = tmp_path / "fail_new.so"
    subprocess.run(
        [
            compiler,
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            shim,
            HERE / "fail_new.cpp",
            "-ldl",
        ],
        check=True,
    )
    env = {**os.environ, "LD_PRELOAD": str(shim), "OPENBLAS_NUM_THREADS": "1"}
    run = [
        sys.executable,
        "-W",
        "ignore",
        str(HERE / "allocations.py"),
        str(shim),
        str(times),
    ]
    ended = subprocess.run(
        run, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count("MemoryError") == 7, ended.stdout
