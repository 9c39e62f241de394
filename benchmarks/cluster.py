"""Two Dask workers of one thread each against two threads of one process, lightgbm.dask
and xgboost.dask.

In: the number of rows. Out: seconds of a training on rows that lie on the workers
already, and ratios to two threads.

    python benchmarks/cluster.py --rows 1000000 --rounds 100
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# it has a sparse.py
sys.path = [
    one for one in sys.path if Path(one).resolve() != Path(__file__).resolve().parent
]
import dask.array  # noqa: E402
from distributed import Client, LocalCluster, wait  # noqa: E402

import sapwood  # noqa: E402
import sapwood.dask  # noqa: E402

COLUMNS = 28
REPEATS = 3


def table(rows: int) -> tuple[Any, Any]:
    """Numbers, and two classes that depend on some of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows) > 0).astype(
        np.float64
    )


def best(work: Callable[[int], Any], repeats: int) -> tuple[float, Any]:
    """The least time of some runs, each with a seed of its own, and what the last
    returned.
    """
    times = []
    found = None
    for seed in range(repeats):
        start = time.perf_counter()
        found = work(seed)
        times.append(time.perf_counter() - start)
    return min(times), found


def peers(
    client: Client, X: Any, y: Any, rounds: int
) -> dict[str, Callable[[int], Any]]:
    """Trainings of the peers with 31 leaves and 255 bins."""
    found: dict[str, Callable[[int], Any]] = {}
    try:
        from lightgbm import DaskLGBMClassifier

        found["lightgbm.dask"] = lambda seed: DaskLGBMClassifier(
            n_estimators=rounds,
            num_leaves=31,
            verbose=-1,
            n_jobs=1,
            random_state=seed,
            client=client,
        ).fit(X, y)
    except ImportError as why:
        print(f"lightgbm.dask is not there: {why}")
    try:
        import xgboost
        import xgboost.dask

        how = {
            "objective": "binary:logistic",
            "grow_policy": "lossguide",
            "max_leaves": 31,
            "max_depth": 0,
            "nthread": 1,
        }
        found["xgboost.dask"] = lambda seed: xgboost.dask.train(
            client,
            {**how, "max_bin": 255, "seed": seed},
            xgboost.dask.DaskQuantileDMatrix(client, X, y, max_bin=255),
            rounds,
        )
    except ImportError as why:
        print(f"xgboost.dask is not there: {why}")
    return found


def main(rows: int, rounds: int, repeats: int, alone: bool) -> None:
    """Print a line for each way to train."""
    X, y = table(rows)

    def params(seed: int) -> dict[str, Any]:
        return {
            "objective": "logistic",
            "n_estimators": rounds,
            "max_leaves": 31,
            "random_state": seed,
        }

    local, model = best(
        lambda seed: sapwood.train(
            {**params(seed), "n_jobs": 2}, sapwood.Dataset(X, label=y, n_jobs=2)
        ),
        repeats,
    )
    print(
        f"{rows} x {COLUMNS}, {rounds} rounds, seconds with binning\n{'two threads':16}{local:8.2f}"
    )
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=not alone,
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        chunk = -(-rows // 2)
        rows_, labels = (
            client.persist(dask.array.from_array(one, chunks=(chunk, *one.shape[1:])))
            for one in (X, y)
        )
        wait([rows_, labels])
        # workers import
        sapwood.dask.train(
            {**params(99), "n_estimators": 1}, rows_, labels, client=client
        )
        seconds, found = best(
            lambda seed: sapwood.dask.train(params(seed), rows_, labels, client=client),
            repeats,
        )
        same = found.to_bytes() == model.to_bytes()
        print(
            f"{'sapwood.dask':16}{seconds:8.2f}  {seconds / local:.2f} x two threads; same bytes: {same}"
        )
        for name, work in (
            {} if alone else peers(client, rows_, labels, rounds)
        ).items():
            other, _ = best(work, repeats)
            print(f"{name:16}{other:8.2f}  {other / seconds:.2f} x sapwood.dask")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--alone",
        action="store_true",
        help="without the peers, and with workers that are threads",
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    main(given.rows, given.rounds, given.repeats, given.alone)
