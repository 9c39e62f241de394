"""Columns with few values in slots of their own, and sharing them by product: the same
trees, taking turns.

    python benchmarks/slots.py [--rows 2500 5000 20000 200000] [--rounds 10] [--turns 3]
    [--leaves 63]

In: nothing. Out: for every kind of table, processor time a tree each way, the ratio,
slots and bytes a row.
"""

import argparse
import time

import numpy as np

from sapwood.boost.round import growth
from sapwood.device import cpu
from sapwood.params import resolve

COLUMNS = 40
KINDS = {
    "2 values": [2],
    "3 values": [3],
    "16 values": [16],
    "2 to 16 values": [2, 2, 3, 4, 8, 16],
}


def table(rows: int, levels: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Columns of so many values, and classes that depend on ten of them."""
    rng = np.random.default_rng(0)
    X = (rng.random((rows, COLUMNS)) * rng.choice(levels, COLUMNS)).astype(np.int8)
    Z = (X - X.mean(0)) / X.std(0)
    score = (
        Z[:, 0] * Z[:, 1]
        + Z[:, 2] * Z[:, 3]
        + Z[:, 4:10].sum(1)
        + rng.logistic(size=rows)
    )
    return X, (score > 0).astype(np.float64)


def grow(binned: cpu.Binned, y: np.ndarray, leaves: int, rounds: int) -> float:
    """Processor seconds a tree, on one thread."""
    policy, limits = growth.limits(
        resolve({"grow_policy": "leafwise", "max_leaves": leaves})
    )
    trainer = cpu.Trainer(binned, y[None], None, "logistic", {}, 1, 1)
    trainer.fill_scores(trainer.start())
    spent = 0.0
    for round in range(rounds):
        trainer.gradients("narrow")
        start = time.process_time()
        trainer.grow(policy, limits | {"learning_rate": 0.1}, 0, round)
        spent += time.process_time() - start
        trainer.add_scores(0)
    return spent / rounds


def main() -> None:
    """Run the table of kinds and rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[2_500, 5_000, 20_000, 200_000]
    )
    for name, default in (("rounds", 10), ("turns", 3), ("leaves", 63)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    for name, levels in KINDS.items():
        for rows in args.rows:
            X, y = table(rows, levels)
            cuts = cpu.cuts([X], None, 255, 32, 1)
            ways = [cpu.Binned([X], cuts, 1, fuse=fuse) for fuse in (False, None)]
            turns = [
                [grow(way, y, args.leaves, args.rounds) for way in ways]
                for _ in range(args.turns)
            ]
            alone, shared = np.min(turns, axis=0)
            times = f"alone {1e3 * alone:7.3f} ms  shared {1e3 * shared:7.3f} ms {alone / shared:5.2f}x"
            size = f"{len(ways[1].slots):3} slots  {ways[1].n_bytes / rows:5.1f} bytes a row"
            print(f"{name:16}{rows:8} rows  {times}  {size}")


if __name__ == "__main__":
    main()
