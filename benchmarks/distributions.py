"""Distributions: likelihood, CRPS, coverage and time of Sapwood, NGBoost and
xgboost-distribution.

In: a folder of tables with an index (benchmarks/README.md). Out: a line for each table
and model, means over splits.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit

from sapwood import SapwoodDistribution, metric
from sapwood.objective.distributions import Distribution, family_of

TABLES = (
    "concrete",
    "wine_quality",
    "protein",
    "abalone",
    "ames",
    "kin40k",
    "california_housing",
    "bike_sharing",
    "diamonds",
    "employee_salaries",
    "nyc_flights",
)


def read(folder: Path, name: str, n_rows: int) -> tuple[Any, Any]:
    """A table of numbers and its target; categories are counted, and at most so many
    rows are kept.
    """
    about = json.loads((folder / "index.json").read_text())[name]
    frame = pd.read_parquet(folder / f"{name}.parquet")
    target = about.get("target", "target")
    target = target if target in frame else frame.columns[-1]
    frame = frame.sample(min(n_rows, len(frame)), random_state=1)
    y = frame.pop(target).to_numpy(float)
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = pd.factorize(frame[column])[0]
    X = frame.to_numpy(float)
    # NGBoost takes no missing values
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), y


def sapwood(X: Any, y: Any, new: Any, dist: str = "auto") -> Distribution:
    """The default, whichever family it chooses."""
    return SapwoodDistribution(dist, n_jobs=1).fit(X, y).predict_dist(new)


def ngboost(X: Any, y: Any, new: Any) -> Distribution:
    """NGBoost's default: normal, 500 rounds."""
    from ngboost import NGBRegressor

    found = NGBRegressor(verbose=False, random_state=0).fit(X, y).pred_dist(new)
    return Distribution(
        family_of("normal"), np.column_stack([found.loc, np.log(found.scale)])
    )


def xgboost_distribution(X: Any, y: Any, new: Any) -> Distribution:
    """As in its documentation: a tenth of the rows for early stopping."""
    from xgboost_distribution import XGBDistribution

    held = np.random.default_rng(0).random(len(y)) < 0.1
    model = XGBDistribution(
        distribution="normal", n_estimators=500, early_stopping_rounds=10, n_jobs=1
    )
    found = model.fit(
        X[~held], y[~held], eval_set=[(X[held], y[held])], verbose=False
    ).predict(new)
    return Distribution(
        family_of("normal"), np.column_stack([found.loc, np.log(found.scale)])
    )


RIVALS = {
    "sapwood": sapwood,
    "sapwood normal": lambda X, y, new: sapwood(X, y, new, "normal"),
    "ngboost": ngboost,
    "xgboost-distribution": xgboost_distribution,
}


def main() -> None:
    """Split every table, train every model, and print the means. Seconds are those of
    the processor.
    """
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--tables", nargs="*", default=TABLES)
    arguments.add_argument("--only", nargs="*", default=list(RIVALS))
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--splits", type=int, default=5)
    asked = arguments.parse_args()
    warnings.filterwarnings("ignore")
    for name in asked.tables:
        X, y = read(asked.data, name, asked.rows)
        for who in asked.only:
            rows = []
            for train, test in ShuffleSplit(
                asked.splits, test_size=0.1, random_state=0
            ).split(X):
                start = time.process_time()
                try:
                    dist = RIVALS[who](X[train], y[train], X[test])
                except ModuleNotFoundError:
                    break
                spent = time.process_time() - start
                there = y[test]
                scores = (
                    metric.nll(there, dist),
                    metric.crps(there, dist),
                    metric.coverage(there, dist),
                )
                rows.append((*scores, spent))
            if rows:
                nll, crps, covered, seconds = np.mean(rows, axis=0)
                print(
                    f"{name:18s} {who:21s} NLL {nll:8.4f} +- {np.std([one[0] for one in rows]):.3f}  CRPS {crps:10.4f}"
                    f"  coverage {covered:.3f}  {seconds:7.2f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
