"""Kill trainings at random moments, again and again: what is resumed must end with the
right bytes.

In: how many runs. Out: a line for each kind of run, or the first run that ended with
other bytes; exit status 1 then.

    python tools/soak.py --runs 100
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
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
        "stopped": {
            "early_stopping_rounds": 5,
            "validation_fraction": 0.1,
            "learning_rate": 0.3,
        },
    }


def forked(work: Callable[[], str], seconds: float | None) -> str | None:
    """What a forked process returned, or None where it was killed after some
    seconds.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, work().encode())
        finally:
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
    rng = random.Random(seed)
    kills = 0
    X, y = table(seed)
    # loaded here, so that a killed process has trained
    train, Dataset = sapwood.train, sapwood.Dataset
    wanted: dict[str, tuple[str, float]] = {}
    for run in range(runs):
        kind = list(kinds())[run % len(kinds())]
        params = {"n_estimators": 60, "max_depth": 4, "n_jobs": 2, **kinds()[kind]}

        def work(params: dict[str, Any] = params, **more: Any) -> str:
            return train(params, Dataset(X, label=y), **more).fingerprint()

        if kind not in wanted:
            start = time.monotonic()
            found = forked(work, None)
            assert found is not None
            wanted[kind] = found, time.monotonic() - start
        hash, seconds = wanted[kind]
        with tempfile.TemporaryDirectory() as folder:
            more: dict[str, Any] = {
                "checkpoint": Path(folder) / "run",
                "every": rng.randint(1, 7),
            }
            found = None
            for _ in range(MAX_KILLS):
                found = found or forked(
                    lambda: work(**more),  # noqa: B023
                    rng.uniform(0, 1.2 * seconds),
                )
                kills += found is None
            found = found or forked(lambda: work(**more), None)  # noqa: B023
            left = os.listdir(folder)
        if found != hash or any(
            name not in ("run",) and not name.endswith(".part") for name in left
        ):
            sys.exit(
                f"run {run} ({kind}) ended with {found}, not with {hash}; files: {left}"
            )
    return kills


def workers_killed(runs: int, seed: int) -> int:
    """Trainings on three Dask workers, until one of them was killed in so many; how
    many trainings there were.
    """
    import dask
    import dask.array
    import distributed

    import sapwood.dask

    rng = random.Random(seed)
    run = 0
    kills = 0
    seconds = 3.0
    X, y = table(seed)
    # a busy machine restarts a worker slowly
    dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"})
    rows = (
        dask.array.from_array(X, chunks=(len(X) // 6, X.shape[1])),
        dask.array.from_array(y, chunks=len(X) // 6),
    )
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        while kills < runs:
            run += 1
            params = {
                "n_estimators": 30,
                "max_leaves": 8,
                "subsample": 0.7,
                "random_state": run,
                "n_jobs": 1,
            }
            victim = rng.choice(sorted(client.run(os.getpid).values()))
            stop = threading.Event()
            killer = threading.Thread(
                target=_kill_later, args=(victim, rng.uniform(0, seconds), stop)
            )
            start = time.monotonic()
            killer.start()
            found = sapwood.dask.train(
                params, *rows, client=client, timeout=30
            ).fingerprint()
            took = time.monotonic() - start
            stop.set()
            killer.join()
            if _alive(victim):
                seconds = took
            else:
                kills += 1
            if (
                found
                != sapwood.train(params, sapwood.Dataset(X, label=y)).fingerprint()
            ):
                sys.exit(f"run {run} on Dask ended with other bytes")
            client.wait_for_workers(3, timeout=600)
            while any(
                nanny.status.name != "running" for nanny in cluster.workers.values()
            ):
                # a nanny that still starts a worker would not start it again
                time.sleep(0.1)
            if run % 10 == 0:
                print(f"{run} trainings on Dask, {kills} workers killed", flush=True)
    return run


def _kill_later(pid: int, seconds: float, stop: threading.Event) -> None:
    if not stop.wait(seconds):
        os.kill(pid, signal.SIGKILL)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", choices=["checkpoint", "dask"], help="one kind of run"
    )
    given = parser.parse_args()
    if given.only != "dask":  # it forks, so it goes before Dask starts threads
        kills = killed_and_resumed(given.runs, given.seed)
        print(
            f"{given.runs} trainings with a checkpoint, killed {kills} times: all ended with the right bytes"
        )
    if given.only != "checkpoint":
        n_trainings = workers_killed(given.runs, given.seed)
        print(
            f"{n_trainings} trainings on Dask, a worker killed in {given.runs}: all ended with the right bytes"
        )
