"""How near the machine's limit the kernels run: one thread, 1,000,000 rows x 28
columns, each instruction set.

    python benchmarks/kernels.py              every instruction set this machine has
    python benchmarks/kernels.py --rows 100000 --turns 3

Figures are the best of `--turns` calls. The root histogram is measured from outside, as
a whole tree that may not
split: histogram, search, and the sums of its one leaf; the histogram alone is a little
less. One store a cycle, about 0.32 ns at 3.2 GHz, is the limit of one update per row
and column.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sapwood
from sapwood import params
from sapwood.boost.round import growth
from sapwood.device import cpu, host

COLUMNS = 28
LEAVES = 63
TREES = 20
FIGURES = {
    "binning": "ns per value",
    "gradients": "ns per row",
    "root histogram": "ns per row and column",
    "tree of 63 leaves": "ms",
    "prediction": "ns per row and tree",
    "fit": "ms per round",
}


def best(turns: int, call: Callable[[], Any]) -> float:
    """Seconds of the quickest call."""
    seconds = []
    for _ in range(turns):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure(X: np.ndarray, y: np.ndarray, turns: int) -> dict[str, float]:
    """The figures of the instruction set in use, in the units of FIGURES."""
    rows = len(y)
    data = sapwood.Dataset(X, y, n_jobs=1)
    trainer = cpu.Trainer(data.binned, y[None], None, "logistic", {}, 1, 1)
    trainer.fill_scores(trainer.start())
    trainer.gradients("narrow")

    def tree(**more: float) -> None:
        policy, limits = growth.limits(params.resolve({"max_leaves": LEAVES, **more}))
        trainer.grow(policy, {**limits, "learning_rate": 0.1}, 0, 0)

    wanted = {
        "objective": "logistic",
        "max_leaves": LEAVES,
        "n_estimators": TREES,
        "n_jobs": 1,
    }
    booster = sapwood.train(wanted, data)
    return {
        "binning": best(turns, lambda: sapwood.Dataset(X, n_jobs=1)) / X.size * 1e9,
        "gradients": best(turns, lambda: trainer.gradients("narrow")) / rows * 1e9,
        "root histogram": best(turns, lambda: tree(min_split_gain=1e300))
        / X.size
        * 1e9,
        "tree of 63 leaves": best(turns, tree) * 1e3,
        "prediction": best(turns, lambda: booster.predict(X, n_jobs=1))
        / rows
        / TREES
        * 1e9,
        "fit": best(1, lambda: sapwood.train(wanted, data)) / TREES * 1e3,
    }


def main() -> None:
    """Print one column for each instruction set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((args.rows, COLUMNS), dtype=np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.logistic(size=args.rows) > 0).astype(
        np.float64
    )
    found: dict[str, dict[str, float]] = {}
    for isa in ("avx512", "avx2", "portable"):
        try:
            host.set_isa(isa)
        except ValueError:
            print(f"this machine has no {isa}")
            continue
        found[isa] = measure(X, y, args.turns)
    print(f"{args.rows:,} rows x {COLUMNS} columns, one thread")
    print(f"{'':42}" + "".join(f"{isa:>10}" for isa in found))
    for name, unit in FIGURES.items():
        print(
            f"{name:20}{unit:22}"
            + "".join(f"{figures[name]:10.3f}" for figures in found.values())
        )
    fastest = min(figures["fit"] for figures in found.values())
    print(
        f"{'fit':20}{'times the fastest':22}"
        + "".join(f"{f['fit'] / fastest:10.2f}" for f in found.values())
    )


if __name__ == "__main__":
    main()
