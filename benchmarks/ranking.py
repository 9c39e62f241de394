"""Rankings: NDCG of Sapwood and the peers on two tables.

In: a folder with {web,example}_{train,test}.parquet (query, relevance, f0, ...). Out: a line for each model.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sapwood import SapwoodRanker, metric

ROUNDS, LEAVES = 100, 31


def tables(folder: Path, name: str) -> list[tuple[Any, Any, Any]]:
    """Features, labels 0..4 and groups of the training and the test rows."""
    found = []
    for part in ("train", "test"):
        frame = pd.read_parquet(folder / f"{name}_{part}.parquet")
        label = frame["relevance"].to_numpy(np.float64)
        label = np.digitize(label, [0.07, 0.14, 0.41, 0.61]).astype(float) if name == "web" else label
        found.append((frame.filter(regex="^f[0-9]"), label, frame["query"].to_numpy()))
    return found


def peers(n_rounds: int, n_jobs: int) -> dict[str, Any]:
    """Rankers of the peers of 31 leaves, or 32 where trees are symmetric."""
    import catboost
    import lightgbm
    import xgboost

    def sizes(group: Any) -> Any:
        return np.diff(np.flatnonzero(np.append(True, np.append(group[1:] != group[:-1], True))))

    lgb = {"n_estimators": n_rounds, "num_leaves": LEAVES, "n_jobs": n_jobs, "verbose": -1}
    xgb = {"n_estimators": n_rounds, "max_leaves": LEAVES, "max_depth": 0, "grow_policy": "lossguide", "eta": 0.1}
    cat = {"iterations": n_rounds, "depth": 5, "learning_rate": 0.1, "verbose": 0, "thread_count": n_jobs}
    made = {
        f"lightgbm {one}": lambda X, y, q, one=one: lightgbm.LGBMRanker(objective=one, **lgb).fit(X, y, group=sizes(q))
        for one in ("lambdarank", "rank_xendcg")
    }
    made |= {
        f"xgboost {one}": lambda X, y, q, one=one: xgboost.XGBRanker(objective=one, n_jobs=n_jobs, **xgb).fit(
            X, y, qid=q
        )
        for one in ("rank:ndcg", "rank:pairwise")
    }
    return made | {
        f"catboost {one}": lambda X, y, q, one=one: catboost.CatBoostRanker(loss_function=one, **cat).fit(
            X, y, group_id=q
        )
        for one in ("YetiRank", "QueryRMSE", "PairLogit")
    }


def main() -> None:
    """Train every ranker on both tables."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--n-jobs", type=int, default=2)
    arguments.add_argument("--no-peers", action="store_true")
    given = arguments.parse_args()
    plain = {"n_estimators": ROUNDS, "max_leaves": LEAVES, "n_jobs": given.n_jobs}
    ours = {
        f"sapwood {one}": lambda X, y, q, one=one: SapwoodRanker(objective=one, **plain).fit(X, y, q)
        for one in ("lambdarank", "rank_xendcg", "query_rmse", "pair_logit", "yetirank")
    }
    ours["sapwood"] = lambda X, y, q: SapwoodRanker(n_jobs=given.n_jobs).fit(X, y, q)
    rankers = ours | ({} if given.no_peers else peers(ROUNDS, given.n_jobs))
    for name in ("example", "web"):
        (X, y, q), (X_test, y_test, q_test) = tables(given.folder, name)
        order = np.argsort(q, kind="stable")
        X, y, q = X.iloc[order], y[order], q[order]
        for who, fit in rankers.items():
            start = time.perf_counter()
            model = fit(X, y, q)
            seconds = time.perf_counter() - start
            score = model.predict(X_test)
            values = [metric.ndcg(y_test, score, group=q_test, at=at) for at in (1, 3, 5)]
            values.append(metric.ndcg(y_test, score, group=q_test, at=10, gain="exp", ties="pessimistic", empty=1))
            print(f"{name:8} {who:24}", *(f"{one:.4f}" for one in values), f"{seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
