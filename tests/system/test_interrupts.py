"""SIGINT at random moments: KeyboardInterrupt, no abort, no hang, and the next call
gives the same bytes.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "faults" / "interrupts.py"


@pytest.mark.nightly
@pytest.mark.skipif(
    sys.platform == "win32", reason="Windows sends no SIGINT to one process"
)
def test_signals_at_random_moments() -> None:
    run = [sys.executable, "-W", "ignore", str(PROGRAM), "100"]
    ended = subprocess.run(
        run, capture_output=True, text=True, timeout=1800, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert (
        ended.stdout.count("100 signals") == 5 and ended.stdout.count(" 0 lost") == 5
    ), ended.stdout
