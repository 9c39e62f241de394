"""Coverage of 90 % intervals: shares of new rows inside, on ten tables and five seeds.

In: a folder with tables as quality.py wants them. Out: a line for each table and kind
of interval, in per cent.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sapwood import SapwoodRegressor

TABLES = (
    "abalone",
    "ames",
    "bike_sharing",
    "california_housing",
    "concrete",
    "diamonds",
    "employee_salaries",
    "kin40k",
    "protein",
    "wine_quality",
)
KINDS: dict[str, dict[str, Any]] = {
    "split": {"conformal": "split"},
    "cross": {"conformal": "cross"},
    "cv+": {"conformal": "cv+"},
    "split, quantiles": {"conformal": "split", "quantiles": [0.05, 0.95]},
}
WANTED = 0.9


def covered(
    frame: pd.DataFrame, seed: int, n_rows: int, n_rounds: int, kind: dict[str, Any]
) -> float:
    """The share of the rows that are left out whose target lies in its interval."""
    order = np.random.default_rng(seed).permutation(len(frame))
    n_train = min(n_rows, len(frame) * 2 // 3)
    parts = frame.iloc[order[:n_train]], frame.iloc[order[n_train : 6 * n_train]]
    model = SapwoodRegressor(n_estimators=n_rounds, random_state=seed, **kind)
    model.fit(parts[0].drop(columns="target"), parts[0]["target"].to_numpy(float))
    low, high = model.interval(parts[1].drop(columns="target"), coverage=WANTED).T
    target = parts[1]["target"].to_numpy(float)
    return float(((low <= target) & (target <= high)).mean())


def main() -> None:
    """Measure every kind of interval on every table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--tables", nargs="*", default=TABLES)
    arguments.add_argument("--kinds", nargs="*", default=list(KINDS))
    arguments.add_argument("--rows", type=int, default=4000)
    arguments.add_argument("--rounds", type=int, default=60)
    arguments.add_argument("--seeds", type=int, default=5)
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    for name in given.tables:
        frame = pd.read_parquet(given.folder / f"{name}.parquet")
        for called in given.kinds:
            shares = [
                covered(frame, seed, given.rows, given.rounds, KINDS[called])
                for seed in range(given.seeds)
            ]
            off = 100 * (np.mean(shares) - WANTED)
            each = " ".join(f"{100 * one:.1f}" for one in shares)
            print(
                f"{name:20} {called:18} {100 * np.mean(shares):.2f} ({off:+.2f}); seeds {each}",
                flush=True,
            )


if __name__ == "__main__":
    main()
