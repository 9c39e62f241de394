"""A short run of the fuzzer; `make fuzz` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")


@pytest.mark.parametrize("n", [60, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_mutants_are_taken_or_refused(n: int) -> None:
    pytest.importorskip("pyarrow")
    line = [sys.executable, str(RUN), "--mutants", str(n), "--workers", "2"]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "0 finds" in ended.stdout, ended.stdout[-3000:] + ended.stderr[-3000:]
