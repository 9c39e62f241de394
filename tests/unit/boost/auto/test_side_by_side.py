"""Trainings side by side: the same results in the same order; one that fails, or
Ctrl-C, ends all of them.
"""

import subprocess
import sys
import threading
import time

import pytest

from sapwood.boost.auto.side_by_side import together
from sapwood.data.progress import tell, watching
from sapwood.device import host


def train_on() -> None:
    """Rounds for half a minute, unless something ends them."""
    for n in range(3000):
        tell("training", n, 3000, {})
        time.sleep(0.01)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_results_come_in_the_order_of_the_jobs(n_threads):
    assert together(
        [lambda at=at: time.sleep(0.01 * (5 - at)) or at for at in range(5)], n_threads
    ) == [*range(5)]
    assert host.share_threads(0) == 0


@pytest.mark.parametrize("n_threads", [1, 2])
def test_each_takes_its_part_of_the_threads(n_threads):
    both, seen = threading.Barrier(n_threads, timeout=30), list[int]()

    def look() -> None:
        both.wait()
        seen.append(host.share_threads(0))
        both.wait()

    together([look, look], n_threads)
    assert seen == [0, 0] if n_threads == 1 else [2, 2]


@pytest.mark.parametrize("failing", [0, 1])
def test_one_that_fails_ends_the_others(failing):
    jobs = [train_on, train_on, train_on]
    jobs[failing] = lambda: time.sleep(0.1) or 1 / 0
    start = time.monotonic()
    if failing:  # results are asked for in order: the first is waited for
        jobs[0] = lambda: None
    with pytest.raises(ZeroDivisionError):
        together(jobs, 2)
    assert time.monotonic() - start < 5
    assert host.share_threads(0) == 0


PROGRAM = """
import os, signal, threading, time
from sapwood.boost.auto.side_by_side import together
from sapwood.data.progress import tell
from sapwood.device import host

def train_on():
    for n in range(3000):
        tell("training", n, 3000, {})
        time.sleep(0.01)

threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
start = time.monotonic()
try:
    together([train_on, train_on], 2)
except KeyboardInterrupt:
    print("stopped", time.monotonic() - start < 1.3, host.share_threads(0))
"""


@pytest.mark.skipif(
    sys.platform == "win32", reason="Windows sends no SIGINT to one process"
)
def test_interrupts_end_all_of_them():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout == "stopped True 0\n", ended.stderr[-2000:]


def test_who_watches_sees_the_first():
    seen: list[str] = []
    with watching(lambda sight: seen.append(sight.stage)):
        together(
            [lambda name=name: tell(name, 1, 1, {}) for name in ("first", "second")], 2
        )
        tell("after", 1, 1, {})
    assert seen == ["first", "after"]
