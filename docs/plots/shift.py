"""Draw prediction shift, and what ordering does about it: python docs/plots/shift.py
(needs matplotlib).

In: nothing. Out: shift.svg beside this file, the same bytes every time.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.data import target_statistics as ts

Floats = NDArray[np.float64]
ROWS = 1000
NEW = 20_000
CATEGORIES = 300
ROUNDS = 200
PARAMS = {
    "objective": "logistic",
    "max_leaves": 8,
    "n_estimators": ROUNDS,
    "path_smooth": 0,
}


def statistics(seed: int) -> dict[str, Floats]:
    """Loss of new rows by round, with a column of noise encoded in three ways."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, CATEGORIES, ROWS + NEW).astype(np.int32)
    x = rng.normal(size=(ROWS + NEW, 3))
    y = (rng.random(ROWS + NEW) < 1 / (1 + np.exp(-x[:, 0]))).astype(np.float64)
    target = ts.Target(y[:ROWS], np.array([0.5]))
    wanted = (ts.Statistic(),)
    table = ts.table(code[:ROWS], CATEGORIES, target, wanted)
    (ordered,) = ts.ordered(
        [code[:ROWS]], [CATEGORIES], target, wanted, ts.permutation(seed, 0, ROWS), 1
    )
    columns = {
        "greedy": table(code[:ROWS])[0],
        "ordered": ordered[0],
        "left out": np.zeros(ROWS),
    }
    found = {}
    for name, column in columns.items():
        data = sapwood.Dataset(np.c_[column, x[:ROWS]], y[:ROWS])
        new = sapwood.Dataset(
            np.c_[table(code[ROWS:])[0], x[ROWS:]], y[ROWS:], reference=data
        )
        found[name] = np.array(
            sapwood.train(PARAMS, data, valid=new).history["valid"]["logloss"]
        )
    return found


def boosting(seed: int) -> dict[str, Floats]:
    """Loss of new rows by round, with splits judged by the rows that give values, and
    by others.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS + NEW, 30))
    y = (
        rng.random(ROWS + NEW) < 1 / (1 + np.exp(-x[:, 0] - 0.7 * x[:, 1] * x[:, 2]))
    ).astype(np.float64)
    data = sapwood.Dataset(x[:ROWS], y[:ROWS])
    new = sapwood.Dataset(x[ROWS:], y[ROWS:], reference=data)
    params = PARAMS | {"score_function": "cosine"}
    return {
        way: np.array(
            sapwood.train(params | {"boosting": way}, data, valid=new).history["valid"][
                "logloss"
            ]
        )
        for way in ("plain", "ordered")
    }


if __name__ == "__main__":
    # the same ids, and so the same file, every time
    plt.rcParams["svg.hashsalt"] = "sapwood"
    axes = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")[1]
    for axis, make, title in zip(
        axes,
        (statistics, boosting),
        ("a column of noise, encoded", "boosting"),
        strict=True,
    ):
        runs = [make(seed) for seed in range(5)]
        for name in runs[0]:
            axis.plot(
                np.arange(1, ROUNDS + 1),
                np.mean([run[name] for run in runs], axis=0),
                label=name,
            )
        axis.set(title=title, xlabel="round", ylabel="log loss of new rows")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="x-small")
    axes[0].figure.savefig(
        Path(__file__).resolve().parent / "shift.svg", metadata={"Date": None}
    )
