"""Kill trainings at random moments, again and again: what is resumed must end with the right bytes.

In: how many runs. Out: a line for each kind of run, or the first run that ended with other bytes; exit status 1 then.

    python tools/soak.py --runs 100
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sapwood

MAX_KILLS = 4  # of a run; then it may end


def table(seed: int) -> tuple[Any, Any]:
    """Rows of numbers and their labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5_000, 8))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X))


def kinds() -> dict[str, dict[str, Any]]:
    """Trainings whose states differ."""
    return {
        "plain": {"subsample": 0.7, "colsample_bytree": 0.7},
        "goss": {"sampling": "goss", "learning_rate": 0.3},
        "dart": {"boosting": "dart"},
        "ordered": {"boosting": "ordered"},
        "stopped": {"early_stopping_rounds": 5, "learning_rate": 0.3},
    }


def forked(work: Callable[[], str], seconds: float | None) -> str | None:
    """What a forked process returned, or None where it was killed after some seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.write(writing, work().encode())
        os._exit(0)
    os.close(writing)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as file:
        found = file.read()
    os.waitpid(child, 0)
    return found or None


def killed_and_resumed(runs: int, seed: int) -> int:
    """Local trainings with a checkpoint; how many kills there were."""
    rng, kills = random.Random(seed), 0
    X, y = table(seed)
    wanted: dict[str, tuple[str, float]] = {}
    for run in range(runs):
        kind = list(kinds())[run % len(kinds())]
        params = {"n_estimators": 60, "max_depth": 4, "n_jobs": 2, **kinds()[kind]}

        def work(params: dict[str, Any] = params, **more: Any) -> str:
            return sapwood.train(params, sapwood.Dataset(X, label=y), **more).fingerprint()

        if kind not in wanted:
            start = time.monotonic()
            found = forked(work, None)
            assert found is not None
            wanted[kind] = found, time.monotonic() - start
        hash, seconds = wanted[kind]
        with tempfile.TemporaryDirectory() as folder:
            more: dict[str, Any] = {"checkpoint": Path(folder) / "run", "every": rng.randint(1, 7)}
            found = None
            for _ in range(MAX_KILLS):
                found = found or forked(lambda: work(**more), rng.uniform(0, 1.2 * seconds))  # noqa: B023
                kills += found is None
            found = found or forked(lambda: work(**more), None)  # noqa: B023
            left = os.listdir(folder)
        if found != hash or any(name not in ("run",) and not name.endswith(".part") for name in left):
            sys.exit(f"run {run} ({kind}) ended with {found}, not with {hash}; files: {left}")
    return kills


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kills = killed_and_resumed(given.runs, given.seed)
    print(
        f"{given.runs} trainings with a checkpoint, killed {kills} times: all ended with the bytes of undisturbed ones"
    )
