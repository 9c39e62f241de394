"""Exact trees against XGBoost's: the same rows, rounds, depth and threads; whole fits,
taking turns.

    python benchmarks/exact.py [--rows 100000] [--rounds 20] [--turns 3] [--threads 2]

In: nothing. Out: the best wall and processor time of each, their log loss on fresh
rows, and the ratios.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import xgboost
from sklearn.metrics import log_loss

import sapwood

COLUMNS = 28
DEPTH = 6
RATE = 0.1


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that hardly ever repeat, and classes that depend on four of the
    columns.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + rng.normal(size=n)
    return X, (score > 0).astype(np.float64)


def main() -> None:
    """Run the race."""
    parser = argparse.ArgumentParser()
    for name, default in (
        ("rows", 100_000),
        ("rounds", 20),
        ("turns", 3),
        ("threads", 2),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    (X, y), (fresh, truth) = rows(args.rows, 0), rows(20_000, 1)

    def ours() -> np.ndarray:
        data = sapwood.Dataset(X, label=y, tree_method="exact", n_jobs=args.threads)
        params = {
            "objective": "logistic",
            "grow_policy": "depthwise",
            "max_depth": DEPTH,
            "learning_rate": RATE,
            "path_smooth": 0.0,
            "n_estimators": args.rounds,
            "n_jobs": args.threads,
        }
        return sapwood.train(params, data).predict(fresh)

    def theirs() -> np.ndarray:
        params = {
            "objective": "binary:logistic",
            "tree_method": "exact",
            "max_depth": DEPTH,
            "eta": RATE,
            "nthread": args.threads,
        }
        model = xgboost.train(
            params, xgboost.DMatrix(X, label=y, nthread=args.threads), args.rounds
        )
        return np.asarray(model.predict(xgboost.DMatrix(fresh)))

    runners: dict[str, Callable[[], np.ndarray]] = {"sapwood": ours, "xgboost": theirs}
    best = {name: np.full(2, np.inf) for name in runners}
    loss = {}
    for _ in range(args.turns):
        for name, fit in runners.items():
            start = time.perf_counter(), time.process_time()
            predicted = fit()
            spent = time.perf_counter() - start[0], time.process_time() - start[1]
            best[name], loss[name] = (
                np.minimum(best[name], spent),
                log_loss(truth, predicted),
            )
    for name, (wall, processor) in best.items():
        print(
            f"{name:10}{wall:8.2f} s{processor:8.2f} s of processors   log loss {loss[name]:.5f}"
        )
    wall, processor = best["xgboost"] / best["sapwood"]
    print(f"ratio     {wall:8.2f}  {processor:8.2f}")


if __name__ == "__main__":
    main()
