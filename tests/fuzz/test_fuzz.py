"""A short run of the fuzzer; `make fuzz` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")


SEEDS = """
import sys
sys.path.insert(0, sys.argv[1])
from formats import FORMATS, content
from mutators import ubjson
import json, random
for name, one in FORMATS.items():
    for seed in one.seeds if name not in ("messages", "communicator", "inlet") else ():
        raw = content(seed)
        one.use(ubjson(json.loads(raw), random.Random(0)) if name == "xgboost-ubjson" else raw)
        print(name, seed)
"""


def test_every_seed_is_taken() -> None:
    """A seed of an older format is refused, and so are all of its mutants, at their
    first field.
    """
    pytest.importorskip("pyarrow")
    ended = subprocess.run(
        [sys.executable, "-c", SEEDS, RUN.parent],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.count("\n") >= 16


@pytest.mark.parametrize("n", [60, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_mutants_are_taken_or_refused(n: int) -> None:
    pytest.importorskip("pyarrow")
    line = [sys.executable, str(RUN), "--mutants", str(n), "--workers", "2"]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "0 finds" in ended.stdout, (
        ended.stdout[-3000:] + ended.stderr[-3000:]
    )
