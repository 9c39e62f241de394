"""Training time by the number of threads, ours and that of LightGBM and XGBoost where
they are installed.

In: nothing. Out: seconds for each number of threads, and how many times faster the last
is than the first. The first line is a loop without memory, a process a thread: how far
the machine itself scales.
"""

import argparse
import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np

import sapwood
from gpu import PARAMS, seconds, table

STEPS = 10_000_000  # of the loop
LIMITS = {"learning_rate": 0.1, "verbose": -1}


def spin(_: int) -> int:
    """Work of about a second that touches no memory."""
    x = 0
    for i in range(STEPS):
        x += i
    return x


def ours(
    X: Any, y: Any, leaves: int, rounds: int, n_threads: int
) -> Callable[[], object]:
    """A training of this library, its data made before."""
    data = sapwood.Dataset(X, label=y, max_bins=255, n_jobs=n_threads)
    more = {
        "grow_policy": "leafwise",
        "max_leaves": leaves,
        "n_estimators": rounds,
        "n_jobs": n_threads,
    }
    return lambda: sapwood.train({**PARAMS, **more}, data)


def lightgbm(
    X: Any, y: Any, leaves: int, rounds: int, n_threads: int
) -> Callable[[], object]:
    """The same with LightGBM, gradients quantised."""
    import lightgbm as lgb

    params = {
        "objective": "binary",
        "num_leaves": leaves,
        "max_bin": 255,
        "num_threads": n_threads,
        "lambda_l2": 1.0,
    }
    params |= {
        **LIMITS,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 1.0,
        "use_quantized_grad": True,
    }
    data = lgb.Dataset(X, y, params=params).construct()
    return lambda: lgb.train(params, data, rounds)


def xgboost(
    X: Any, y: Any, leaves: int, rounds: int, n_threads: int
) -> Callable[[], object]:
    """The same with XGBoost."""
    import xgboost as xgb

    data = xgb.QuantileDMatrix(X, y, max_bin=256, nthread=n_threads)
    params = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
    }
    params |= {
        "max_leaves": leaves,
        "eta": 0.1,
        "lambda": 1.0,
        "min_child_weight": 1.0,
        "nthread": n_threads,
    }
    return lambda: xgb.train(params, data, rounds)


def line(name: str, threads: list[int], took: list[float]) -> None:
    """Print one row of the table."""
    print(
        f"| {name} | {' | '.join(f'{one:.3f}' for one in took)} | {took[0] / took[-1]:.1f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="of the large table"
    )
    parser.add_argument("--peers", default="lightgbm,xgboost")
    given = parser.parse_args()
    threads = [int(one) for one in given.threads.split(",")]
    print(
        f"| | {' | '.join(map(str, threads))} | times |\n|{'---|' * (len(threads) + 2)}",
        flush=True,
    )
    took = []
    for n in threads:
        with multiprocessing.Pool(n) as pool:
            pool.map(abs, range(n))
            took.append(
                seconds(lambda pool=pool, n=n: pool.map(spin, range(n), chunksize=1), 1)
                / n
            )  # type: ignore[misc]
    line(
        "a loop without memory, a process a thread: seconds of one process's work",
        threads,
        took,
    )
    peers: dict[str, Callable[..., Any]] = {"lightgbm": lightgbm, "xgboost": xgboost}
    for n_rows, leaves, rounds in (
        (20_000, 63, 100),
        (given.rows, 63, 20),
        (given.rows, 255, 20),
    ):
        X, y = table(n_rows, 28)
        for name, make in (
            ("sapwood", ours),
            *((one, peers[one]) for one in given.peers.split(",") if one),
        ):
            turns = given.turns if name == "sapwood" else 1
            try:
                took = [
                    seconds(make(X, y.astype(np.float32), leaves, rounds, n), turns)
                    for n in threads
                ]
            except ImportError:
                print(f"| {name} is not installed |", flush=True)
                continue
            line(
                f"{name}, {n_rows} rows, {leaves} leaves, {rounds} rounds",
                threads,
                took,
            )


if __name__ == "__main__":
    main()
