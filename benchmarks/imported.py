"""Predictions of models read from the peers, against the peers that trained them: the
same trees, the same rows.

    python benchmarks/imported.py [--rows 200000] [--columns 30] [--rounds 200] [--turns
    5] [--threads 2]

In: nothing. Out: the best wall time of each, the ratio, and the largest difference of
their predictions.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn import ensemble
from threadpoolctl import threadpool_limits

import sapwood

TRAINED_ON = 20_000  # rows: prediction does not ask how many there were
Predict = Callable[[np.ndarray], np.ndarray]


def rows(n: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and classes that depend on five of the columns."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, n_columns)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] - 0.3 * X[:, 4] ** 2
    return X, (score + rng.normal(size=n) > 0).astype(int)


def models(
    X: np.ndarray, y: np.ndarray, trees: int, threads: int
) -> dict[str, tuple[Any, Predict, type]]:
    """Name -> a fitted model, how it predicts fastest, and the floats that it converts
    none of.
    """
    extreme: dict[str, Any] = {"objective": "binary:logistic", "nthread": threads}
    leaves = {"grow_policy": "lossguide", "max_depth": 0, "max_leaves": 63}
    data = xgboost.DMatrix(X, y)
    deep, leafwise = (
        xgboost.train({**extreme, **size}, data, trees)
        for size in ({"max_depth": 6}, leaves)
    )
    light = {
        "objective": "binary",
        "num_leaves": 63,
        "verbose": -1,
        "num_threads": threads,
    }
    boosted = lightgbm.train(light, lightgbm.Dataset(X, y), trees)
    histogram = ensemble.HistGradientBoostingClassifier(
        max_iter=trees, max_leaf_nodes=63, early_stopping=False
    )
    forest = ensemble.RandomForestClassifier(
        max(1, trees // 4), max_leaf_nodes=500, n_jobs=threads
    )
    friedman = ensemble.GradientBoostingClassifier(
        n_estimators=max(1, trees // 4), max_depth=6, max_features=5
    )
    for model in (histogram, forest, friedman):
        model.fit(X, y)

    def of_sklearn(model: Any) -> Predict:
        return lambda rows: model.predict_proba(rows)[:, 1]

    return {
        "xgboost, depth 6": (deep, deep.inplace_predict, np.float32),
        "xgboost, 63 leaves": (leafwise, leafwise.inplace_predict, np.float32),
        "lightgbm, 63 leaves": (
            boosted,
            lambda rows: boosted.predict(rows, num_threads=threads),
            np.float32,
        ),
        "sklearn, histograms": (histogram, of_sklearn(histogram), np.float64),
        "sklearn, a forest": (forest, of_sklearn(forest), np.float32),
        "sklearn, depth 6": (friedman, of_sklearn(friedman), np.float32),
    }


def main() -> None:
    """Run the race."""
    parser = argparse.ArgumentParser()
    for name, default in {
        "rows": 200_000,
        "columns": 30,
        "rounds": 200,
        "turns": 5,
        "threads": 2,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    X, y = rows(args.rows, args.columns)
    print(
        f"{args.rows} rows, {args.columns} columns, {args.rounds} trees (sklearn's last two a quarter of these)"
    )
    with threadpool_limits(args.threads):
        for name, (model, predict, dtype) in models(
            X[:TRAINED_ON], y[:TRAINED_ON], args.rounds, args.threads
        ).items():
            ours = sapwood.load(model)
            table = X.astype(dtype)
            apart = np.abs(ours.predict(table) - predict(table)).max()
            best = np.full((2, 2), np.inf)
            for _ in range(args.turns):
                for k, run in enumerate(
                    (partial(ours.predict, n_jobs=args.threads), predict)
                ):
                    start = time.perf_counter(), time.process_time()
                    run(table)
                    spent = (
                        time.perf_counter() - start[0],
                        time.process_time() - start[1],
                    )
                    best[k] = np.minimum(best[k], spent)
            wall, processor = best[1] / best[0]
            print(
                f"{name:22}{best[1, 0]:8.3f} s   ours{best[0, 0]:8.3f} s{wall:7.1f}x "
                f"({processor:.1f}x by processor time)   apart by {apart:.0e}"
            )


if __name__ == "__main__":
    main()
