"""Explanations against the peers' own: each explains its own model of the same shape,
on the same rows, taking turns.

    python benchmarks/explain.py [--rows 10000] [--columns 30] [--rounds 500] [--turns
    3] [--threads 2] [--share 10]

In: nothing. Out: the best processor and wall time of each, and the ratios. LightGBM
explains a `share`-th of the rows only, and its time is multiplied.
"""

import argparse
import time
from collections.abc import Callable

import catboost
import lightgbm
import numpy as np
import xgboost

import sapwood

RATE = 0.05
SHAPES = {
    "depth 6": {"grow_policy": "depthwise", "max_depth": 6, "max_leaves": None},
    "63 leaves": {"grow_policy": "leafwise", "max_depth": None, "max_leaves": 63},
    "symmetric, depth 6": {
        "grow_policy": "symmetric",
        "max_depth": 6,
        "max_leaves": None,
    },
}


def rows(n: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and classes that depend on seven of the columns."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, n_columns)).astype(np.float32)
    score = (
        X[:, 0] * X[:, 1]
        + np.sin(2 * X[:, 2])
        + X[:, 3]
        - 0.3 * X[:, 4] ** 2
        + 0.5 * X[:, 5] * X[:, 6]
    )
    return X, (score + rng.normal(size=n) > 0).astype(np.float64)


def runners(
    shape: str, X: np.ndarray, y: np.ndarray, rounds: int, threads: int
) -> dict[str, Callable[[int], object]]:
    """Name -> a function that explains the first so many rows."""
    params = {
        "objective": "logistic",
        "n_estimators": rounds,
        "learning_rate": RATE,
        "min_child_weight": 1e-3,
    }
    ours = sapwood.train(
        {**params, **SHAPES[shape], "n_jobs": threads}, sapwood.Dataset(X, label=y)
    )
    found: dict[str, Callable[[int], object]] = {
        "sapwood": lambda n: ours.explain(X[:n], n_jobs=threads)
    }
    if shape.startswith("symmetric"):
        symmetric = catboost.CatBoostClassifier(
            iterations=rounds,
            depth=6,
            learning_rate=RATE,
            thread_count=threads,
            verbose=0,
            allow_writing_files=False,
        ).fit(X, y)
        found["catboost"] = lambda n: symmetric.get_feature_importance(
            catboost.Pool(X[:n]), type="ShapValues", thread_count=threads
        )
        return found
    deep = shape == "depth 6"
    leaves = (
        {"max_depth": 6, "num_leaves": 64, "min_data_in_leaf": 1}
        if deep
        else {"num_leaves": 63}
    )
    light = {
        "objective": "binary",
        "learning_rate": RATE,
        "verbose": -1,
        "num_threads": threads,
        **leaves,
    }
    leafwise = lightgbm.train(light, lightgbm.Dataset(X, y), rounds)
    found["lightgbm"] = lambda n: leafwise.predict(
        X[:n], pred_contrib=True, num_threads=threads
    )
    size = (
        {"max_depth": 6}
        if deep
        else {"grow_policy": "lossguide", "max_depth": 0, "max_leaves": 63}
    )
    extreme = {
        "objective": "binary:logistic",
        "eta": RATE,
        "nthread": threads,
        "tree_method": "hist",
        **size,
    }
    boosted = xgboost.train(extreme, xgboost.DMatrix(X, y), rounds)
    found["xgboost"] = lambda n: boosted.predict(
        xgboost.DMatrix(X[:n]), pred_contribs=True
    )
    return found


def main() -> None:
    """Run the race."""
    parser = argparse.ArgumentParser()
    defaults = {
        "rows": 10_000,
        "columns": 30,
        "rounds": 500,
        "turns": 3,
        "threads": 2,
        "share": 10,
    }
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    X, y = rows(args.rows, args.columns)
    for shape in SHAPES:
        explain = runners(shape, X, y, args.rounds, args.threads)
        best = {name: np.full(2, np.inf) for name in explain}
        for _ in range(args.turns):
            for name, run in explain.items():
                share = args.share if name == "lightgbm" else 1
                start = time.process_time(), time.perf_counter()
                run(args.rows // share)
                spent = time.process_time() - start[0], time.perf_counter() - start[1]
                best[name] = np.minimum(best[name], share * np.array(spent))
        print(
            f"{shape}: {args.rows} rows, {args.columns} columns, {args.rounds} trees, {args.threads} threads"
        )
        for name, (processor, wall) in best.items():
            ratio = processor / best["sapwood"][0]
            print(
                f"  {name:10}{processor:8.2f} s of processors{wall:8.2f} s{ratio:8.1f}x ours"
            )


if __name__ == "__main__":
    main()
