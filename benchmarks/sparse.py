"""Sparse tables against LightGBM and XGBoost, on one thread, taking turns: words of
texts, and one-hot columns.

    python benchmarks/sparse.py [--rows 100000] [--rounds 50] [--turns 2] [--only
    sapwood lightgbm xgboost]

In: nothing. Out: processor time of a fit, loss on held-out rows, and the ratio to the
fastest peer.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

HELD_OUT = 5_000


def words(rows: int, columns: int, each: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of about so many words, the k-th most frequent 1 / k as often as the first,
    weighed as tf-idf does.
    """
    rng = np.random.default_rng(0)
    share = np.cumsum(1 / np.arange(1, columns + 1))
    row = np.repeat(np.arange(rows), rng.poisson(each, rows))
    column = np.searchsorted(share, rng.random(len(row)) * share[-1])
    X = sp.csr_array(
        (np.ones(len(row), np.float32), (row, column)), shape=(rows, columns)
    )
    X.data *= (
        np.log(rows / np.bincount(X.indices, minlength=columns))[X.indices].astype(
            np.float32
        )
        + 1
    )
    X.data /= np.repeat(
        np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr)
    )
    return X, labels(X @ (rng.normal(size=columns) * (rng.random(columns) < 0.1)), rng)


def onehot(rows: int, columns: int, each: int) -> tuple[sp.csr_array, np.ndarray]:
    """So many blocks of one-hot columns."""
    rng = np.random.default_rng(1)
    width = columns // each
    column = rng.integers(0, width, (rows, each)) + width * np.arange(each)
    X = sp.csr_array(
        (
            np.ones(rows * each, np.float32),
            column.ravel(),
            np.arange(0, rows * each + 1, each),
        )
    )
    return X, labels(X @ rng.normal(size=columns), rng)


def labels(score: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Classes that depend on a score."""
    return (
        2 * (score - score.mean()) / score.std() + rng.logistic(size=len(score)) > 0
    ).astype(np.float64)


def model(name: str, rounds: int) -> Any:
    """A contender with 31 leaves, best first."""
    shared = {
        "n_estimators": rounds,
        "learning_rate": 0.1,
        "reg_lambda": 1.0,
        "n_jobs": 1,
    }
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(num_leaves=31, verbose=-1, **shared)
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(
            max_leaves=31,
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            **shared,
        )
    from sapwood import SapwoodClassifier

    return SapwoodClassifier(
        max_leaves=31, max_depth=None, grow_policy="leafwise", **shared
    )


def main() -> None:
    """Run every table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--rows",
        type=int,
        default=100_000,
        help="most rows of a table; that of words has 20,000",
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=["sapwood", "lightgbm", "xgboost"])
    args = parser.parse_args()
    shapes: list[tuple[Callable[..., Any], int, int, int]] = [
        (words, 20_000, 5_000, 150),
        (onehot, 100_000, 1_000, 10),
    ]
    for make, most, columns, each in shapes:
        rows = min(most, args.rows)
        X, y = make(rows + HELD_OUT, columns, each)
        best = dict.fromkeys(args.only, np.inf)
        for name in args.only * args.turns:
            fitted = model(name, args.rounds)
            start = time.process_time()
            fitted.fit(X[:rows], y[:rows])
            best[name] = min(best[name], time.process_time() - start)
            p = np.clip(fitted.predict_proba(X[rows:])[:, 1], 1e-9, 1 - 1e-9)
            loss = -np.mean(y[rows:] * np.log(p) + (1 - y[rows:]) * np.log(1 - p))
            print(
                f"{make.__name__:8}{rows} x {columns}  {name:10}{best[name]:8.2f} s  loss {loss:.5f}",
                flush=True,
            )
        peers = [spent for name, spent in best.items() if name != "sapwood"]
        if peers and "sapwood" in best:
            print(
                f"{make.__name__:8}{min(peers) / best['sapwood']:.2f} times as fast as the fastest peer"
            )


if __name__ == "__main__":
    main()
