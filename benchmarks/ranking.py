"""Rankings: NDCG of Sapwood and the peers on two tables.

In: a folder with {web,example}_{train,test}.parquet (query, relevance, f0, ...). Out: a
line for each model. With --made N and no folder: seconds of whole fits on a made-up
table of N rows, shaped as MSLR-WEB30K.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sapwood import SapwoodRanker, metric

ROUNDS = 100
LEAVES = 31


def tables(folder: Path, name: str) -> list[tuple[Any, Any, Any]]:
    """Features, labels 0..4 and groups of the training and the test rows."""
    found = []
    for part in ("train", "test"):
        frame = pd.read_parquet(folder / f"{name}_{part}.parquet")
        label = frame["relevance"].to_numpy(np.float64)
        label = (
            np.digitize(label, [0.07, 0.14, 0.41, 0.61]).astype(float)
            if name == "web"
            else label
        )
        found.append((frame.filter(regex="^f[0-9]"), label, frame["query"].to_numpy()))
    return found


def made(n_rows: int) -> tuple[Any, Any, Any]:
    """A table of 136 columns (counts, many zeros, numbers), labels 0..4, and groups of
    120 rows.
    """
    rng = np.random.default_rng(0)
    group = np.arange(n_rows) // 120
    X = rng.normal(size=(136, n_rows)).astype(np.float32)
    X[::3] = np.floor(np.exp(X[::3]))
    X[1::3] = np.where(rng.random(X[1::3].shape, np.float32) < 0.4, 0, np.abs(X[1::3]))
    signal = (
        rng.normal(size=12) @ X[:12] + 2 * np.sin(3 * X[2]) + rng.normal(0, 2, n_rows)
    )
    signal = signal + rng.normal(size=group[-1] + 1)[group]
    label = np.digitize(
        signal, np.quantile(signal, np.cumsum([0.52, 0.32, 0.13, 0.018]))
    ).astype(float)
    return np.ascontiguousarray(X.T), label, group


def peers(n_rounds: int, n_jobs: int) -> dict[str, Any]:
    """Rankers of the peers of 31 leaves, or 32 where trees are symmetric."""
    import catboost
    import lightgbm
    import xgboost

    def sizes(group: Any) -> Any:
        return np.diff(
            np.flatnonzero(np.append(True, np.append(group[1:] != group[:-1], True)))
        )

    lgb = {
        "n_estimators": n_rounds,
        "num_leaves": LEAVES,
        "n_jobs": n_jobs,
        "verbose": -1,
    }
    xgb = {
        "n_estimators": n_rounds,
        "max_leaves": LEAVES,
        "max_depth": 0,
        "grow_policy": "lossguide",
        "eta": 0.1,
    }
    cat = {
        "iterations": n_rounds,
        "depth": 5,
        "learning_rate": 0.1,
        "verbose": 0,
        "thread_count": n_jobs,
    }
    made = {
        f"lightgbm {one}": lambda X, y, q, one=one: lightgbm.LGBMRanker(
            objective=one, **lgb
        ).fit(X, y, group=sizes(q))
        for one in ("lambdarank", "rank_xendcg")
    }
    made |= {
        f"xgboost {one}": lambda X, y, q, one=one: xgboost.XGBRanker(
            objective=one, n_jobs=n_jobs, **xgb
        ).fit(X, y, qid=q)
        for one in ("rank:ndcg", "rank:pairwise")
    }
    return made | {
        f"catboost {one}": lambda X, y, q, one=one: catboost.CatBoostRanker(
            loss_function=one, **cat
        ).fit(X, y, group_id=q)
        for one in ("YetiRank", "QueryRMSE", "PairLogit")
    }


def measured(y: Any, score: Any, q: Any) -> list[float]:
    """NDCG of 1, 3, 5 and 10 places; the last by CatBoost's convention."""
    values = [metric.ndcg(y, score, group=q, at=at) for at in (1, 3, 5)]
    return [
        *values,
        metric.ndcg(y, score, group=q, at=10, gain="exp", ties="pessimistic", empty=1),
    ]


def folded(fit: Any, X: Any, y: Any, q: Any, seed: int) -> Any:
    """Scores of all rows by models that have not seen their groups."""
    names, numbers = np.unique(q, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(names)) % 5)[numbers]
    score = np.zeros(len(y))
    for one in range(5):
        a = fold != one
        score[~a] = fit(X[a], y[a], q[a]).predict(X[~a])
    return score


def by_group(y: Any, score: Any, q: Any) -> Any:
    """NDCG of 1, 3 and 5 places, (n_groups, 3); groups without a relevant row have
    none.
    """
    rows = [np.flatnonzero(q == one) for one in np.unique(q)]
    found = [
        [metric.ndcg(y[at], score[at], group=q[at], at=k) for k in (1, 3, 5)]
        for at in rows
        if y[at].any()
    ]
    return np.array(found)


def bootstrap(scores: dict[str, Any], y: Any, q: Any) -> None:
    """Print by how much the first model is better than each other one, and 95 % of
    10,000 draws of the groups.
    """
    values = {who: by_group(y, score, q) for who, score in scores.items()}
    first, *others = values
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(values[first]), (10_000, len(values[first])))
    for who in others:
        gap = values[first] - values[who]
        low, high = np.quantile(gap[drawn].mean(axis=1), [0.025, 0.975], axis=0)
        parts = [
            f"{a:+.3f} ({b:+.3f} to {c:+.3f})"
            for a, b, c in zip(gap.mean(axis=0), low, high, strict=True)
        ]
        print(f"{first} minus {who:22}", *parts, flush=True)


def main() -> None:
    """Train every ranker on both tables."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path, nargs="?")
    arguments.add_argument("--made", type=int, default=0)
    arguments.add_argument("--n-jobs", type=int, default=2)
    arguments.add_argument("--no-peers", action="store_true")
    arguments.add_argument(
        "--folds",
        type=int,
        default=0,
        help="judge by five folds of training groups, so many times",
    )
    arguments.add_argument(
        "--bootstrap",
        action="store_true",
        help="differences on test groups of example, with bounds",
    )
    given = arguments.parse_args()
    plain = {"n_estimators": ROUNDS, "max_leaves": LEAVES, "n_jobs": given.n_jobs}
    ours = {
        f"sapwood {one}": lambda X, y, q, one=one: SapwoodRanker(
            objective=one, **plain
        ).fit(X, y, q)
        for one in ("lambdarank", "rank_xendcg", "query_rmse", "pair_logit", "yetirank")
    }
    ours["sapwood"] = lambda X, y, q: SapwoodRanker(n_jobs=given.n_jobs).fit(X, y, q)
    rankers = ours | ({} if given.no_peers else peers(ROUNDS, given.n_jobs))
    if given.made:
        X, y, q = made(given.made)
        for who in [one for one in rankers if one != "sapwood"]:
            wall = time.perf_counter()
            cpu = time.process_time()
            model = rankers[who](X, y, q)
            wall = time.perf_counter() - wall
            cpu = time.process_time() - cpu
            value = metric.ndcg(y, model.predict(X), group=q)
            print(
                f"made     {who:24} {wall:7.2f} s, {cpu:7.2f} of CPU; NDCG@10 {value:.4f}",
                flush=True,
            )
    for name in ("example", "web") if given.folder else ():
        (X, y, q), (X_test, y_test, q_test) = tables(given.folder, name)
        order = np.argsort(q, kind="stable")
        X = X.iloc[order]
        y = y[order]
        q = q[order]
        if given.bootstrap:
            for one in ("sapwood", "sapwood lambdarank"):
                others = {
                    who: fit
                    for who, fit in rankers.items()
                    if not who.startswith("sapwood")
                }
                kept = {one: rankers[one]} | others
                bootstrap(
                    {who: fit(X, y, q).predict(X_test) for who, fit in kept.items()},
                    y_test,
                    q_test,
                )
            return
        for who, fit in rankers.items():
            start = time.perf_counter()
            if given.folds:
                values = np.mean(
                    [
                        measured(y, folded(fit, X, y, q, seed), q)
                        for seed in range(given.folds)
                    ],
                    axis=0,
                )
            else:
                values = measured(y_test, fit(X, y, q).predict(X_test), q_test)
            seconds = time.perf_counter() - start
            print(
                f"{name:8} {who:24}",
                *(f"{one:.4f}" for one in values),
                f"{seconds:6.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
