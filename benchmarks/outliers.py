"""What gross outliers among the training labels do to predictions of clean rows, loss
by loss.

    python benchmarks/outliers.py                                  the table of docs/losses/regression.md
    python benchmarks/outliers.py --plot docs/plots/outliers.svg   its figure (needs matplotlib)
    python benchmarks/outliers.py --rows 1000                      with so many rows of each data set

The rule: of three quarters of the rows, 1 % drawn at random, have their labels
multiplied by 10, as where a decimal point has slipped; the other quarter, untouched, is
for testing. Each figure is the mean over five seeds, which decide both draws. Real data
of the tests; everything is a default but `huber_delta`, which has the unit of the
label: half the interquartile range of the training labels, outliers among them.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sapwood

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import datasets

# and the unit of errors
SETS = {"california_housing": 1e3, "bike_sharing": 1.0, "protein": 1.0}
LOSSES = ("squared_error", "huber", "adaptive_huber", "absolute_error")
SHARE = 0.01
FACTOR = 10.0
SEEDS = range(5)


@cache
def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a data set."""
    X, y, _ = getattr(datasets, name)()
    return X, y


def errors(
    name: str, loss: str, factor: float, seed: int, rows: int | None
) -> np.ndarray:
    """Mean absolute and root mean squared error on clean rows; a factor of 1 leaves the
    training labels as they are.
    """
    X, y = (part[:rows] for part in read(name))
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [len(y) * 3 // 4])
    spoilt = y.copy()
    spoilt[rng.choice(train, round(SHARE * len(train)), replace=False)] *= factor
    params: dict[str, Any] = {"objective": loss}
    if loss == "huber":
        params["huber_delta"] = 0.5 * float(
            np.subtract(*np.quantile(spoilt[train], [0.75, 0.25]))
        )
    off = (
        sapwood.train(params, sapwood.Dataset(X[train], spoilt[train])).predict(X[test])
        - y[test]
    )
    return np.array([np.abs(off).mean(), np.sqrt((off**2).mean())]) / SETS[name]


def mean_errors(
    name: str, loss: str, factor: float, rows: int | None = None
) -> np.ndarray:
    """The mean of `errors` over the seeds."""
    return np.mean([errors(name, loss, factor, seed, rows) for seed in SEEDS], axis=0)


def table(rows: int | None) -> None:
    """Print the errors of models from clean labels, and from those with outliers."""
    print("| labels |", " | ".join(LOSSES), "|\n" + "|---" * (len(LOSSES) + 1) + "|")
    for name in SETS:
        for factor, labels in ((1.0, "clean"), (FACTOR, "1 % outliers")):
            cells = (mean_errors(name, loss, factor, rows) for loss in LOSSES)
            print(
                f"| {name}, {labels} |",
                " | ".join(f"{mae:.3g} / {rmse:.3g}" for mae, rmse in cells),
                "|",
            )


def plot(path: str, rows: int | None) -> None:
    """Draw the error against the factor on the outliers' labels."""
    import matplotlib.pyplot as plt

    # the same ids, and so the same file, every time
    plt.rcParams["svg.hashsalt"] = "sapwood"
    figure, axes = plt.subplots(
        1, len(SETS), figsize=(10.2, 3.2), sharey=True, layout="constrained"
    )
    factors = [1.0, 3.0, 10.0, 30.0, 100.0]
    for axis, name in zip(axes, SETS, strict=True):
        clean = mean_errors(name, "squared_error", 1.0, rows)[0]
        for loss, style in zip(LOSSES, ("-", "-", "--", "-."), strict=True):
            mae = [
                mean_errors(name, loss, factor, rows)[0] / clean for factor in factors
            ]
            axis.plot(factors, mae, style, marker="o", markersize=4, label=loss)
        axis.set(
            title=name,
            xscale="log",
            yscale="log",
            xlabel="1 % of the training labels, times",
        )
        axis.set_xticks(factors, [f"{factor:g}" for factor in factors])
        axis.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(
        "mean absolute error on clean rows,\nof squared error's on clean labels"
    )
    axes[0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the table, or draw the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plot", metavar="FILE")
    parser.add_argument("--rows", type=int, help="of each data set; all by default")
    args = parser.parse_args()
    table(args.rows) if args.plot is None else plot(args.plot, args.rows)


if __name__ == "__main__":
    main()
