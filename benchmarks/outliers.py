"""What gross outliers among the training labels do to predictions of clean rows, loss by loss.

    python benchmarks/outliers.py                                  the table of docs/losses/regression.md
    python benchmarks/outliers.py --plot docs/plots/outliers.svg   its figure (needs matplotlib)

The rule: of three quarters of the rows, 1 % drawn at random, have their labels multiplied by 10, as where a decimal
point has slipped; the other quarter, untouched, is for testing. Each figure is the mean over five seeds, which decide
both draws. Real data of the tests; 200 rounds of 15 leaves at a rate of 0.1. `huber_delta` is half the interquartile
range of the training labels, outliers among them; everything else is a default.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sapwood

FILES = Path(__file__).resolve().parent.parent / "tests" / "data_files"
SETS = {"california_housing": 1e3, "bike_sharing": 1.0, "protein": 1.0}  # and the unit of errors
LOSSES = ("squared_error", "huber", "adaptive_huber", "absolute_error")
SHARE, FACTOR, SEEDS = 0.01, 10.0, range(5)
PARAMS = {"n_estimators": 200, "max_leaves": 15, "learning_rate": 0.1}


@cache
def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a data set."""
    with np.load(FILES / f"{name}.npz") as file:
        return file["X"], file["y"].astype(np.float64)


def errors(name: str, loss: str, factor: float, seed: int, **params: Any) -> np.ndarray:
    """Mean absolute and root mean squared error on clean rows; a factor of 1 leaves the training labels as they are."""
    X, y = read(name)
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [len(y) * 3 // 4])
    spoilt = y.copy()
    spoilt[rng.choice(train, round(SHARE * len(train)), replace=False)] *= factor
    given = {"objective": loss, **PARAMS, **params}
    if loss == "huber":
        given["huber_delta"] = 0.5 * float(np.subtract(*np.quantile(spoilt[train], [0.75, 0.25])))
    booster = sapwood.train(given, sapwood.Dataset(X[train], spoilt[train]))
    off = booster.predict(X[test]) - y[test]
    return np.array([np.abs(off).mean(), np.sqrt((off**2).mean())]) / SETS[name]


def mean_errors(name: str, loss: str, factor: float, **params: Any) -> np.ndarray:
    """The mean of `errors` over the seeds."""
    return np.mean([errors(name, loss, factor, seed, **params) for seed in SEEDS], axis=0)


def table(rows_in_leaf: int) -> None:
    """Print the errors of models from clean labels, and from those with outliers."""
    print(f"\nmin_samples_leaf={rows_in_leaf}; mean absolute error / root mean squared error on clean rows\n")
    print("| labels |", " | ".join(LOSSES), "|\n" + "|---" * (len(LOSSES) + 1) + "|")
    for name in SETS:
        for factor, labels in ((1.0, "clean"), (FACTOR, "1 % outliers")):
            cells = (mean_errors(name, loss, factor, min_samples_leaf=rows_in_leaf) for loss in LOSSES)
            print(f"| {name}, {labels} |", " | ".join(f"{mae:.3g} / {rmse:.3g}" for mae, rmse in cells), "|")


def plot(path: str) -> None:
    """Draw the error against the factor on the outliers' labels, for small leaves and for large ones."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "sapwood"  # the same ids, and so the same file, every time
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    factors = [1.0, 3.0, 10.0, 30.0, 100.0]
    for axis, rows_in_leaf in zip(axes, (1, 20), strict=True):
        for loss in LOSSES:
            mae = [mean_errors("california_housing", loss, one, min_samples_leaf=rows_in_leaf)[0] for one in factors]
            axis.plot(factors, mae, marker="o", markersize=4, label=loss)
        axis.set(xscale="log", yscale="log", xlabel="1 % of the training labels, times", xticks=factors)
        axis.set(title=f"min_samples_leaf={rows_in_leaf}", xticklabels=[f"{one:g}" for one in factors])
        axis.minorticks_off()
        axis.set_yticks([40, 80, 160, 320], ["40", "80", "160", "320"])
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean absolute error\non clean rows, 1000 $")
    axes[0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the tables, or draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", metavar="FILE")
    path = parser.parse_args().plot
    if path is not None:
        return plot(path)
    for rows_in_leaf in (1, 20):
        table(rows_in_leaf)


if __name__ == "__main__":
    main()
