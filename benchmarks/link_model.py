"""What a round costs on 10 to 1,000 workers: messages and bytes as the code counts
them, times by a model of links.

In: rows, columns, a bandwidth and a latency. Out: a line for each number of workers.

The calls of a round come from a real training of few rows on three holders. They depend
neither on the number of rows nor on that of holders, but for the width of sums, which
is taken at its widest. The time of the rows is that of a core, measured by
benchmarks/kernels.py.

    python benchmarks/link_model.py --rows 1e9 --columns 100
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import sapwood
from sapwood.holders import Communicator, communicator, threads

NS_A_CELL = 0.35  # of a histogram update, one core (benchmarks/kernels.py)
# passes over all rows that the histograms of 31 leaves take; a child's sibling is a
# difference
PASSES = 3.5
WIDTH = 8  # bytes of a sum at most


Call = tuple[str, int]  # verb, and integers, or bytes / 8


class Logged:
    """A communicator that keeps the number of integers of every call, and the bytes
    that are exchanged.
    """

    def __init__(self, holder: Communicator) -> None:
        self.rank, self.size, self._holder, self.calls = (
            holder.rank,
            holder.size,
            holder,
            list[Call](),
        )
        self.n_exchanged = 0

    def sum(self, values: Any) -> None:
        """As `Reduce.sum`."""
        self.calls.append(("sum", len(values)))
        self._holder.sum(values)

    def sum_blocks(self, values: Any, ends: Sequence[int]) -> tuple[int, int]:
        """As `Reduce.sum_blocks`."""
        self.calls.append(("sum_blocks", len(values)))
        return self._holder.sum_blocks(values, ends)

    def max(self, values: Any) -> None:
        """As `Reduce.max`."""
        self.calls.append(("sum", len(values)))
        self._holder.max(values)

    def gather(self, mine: bytes) -> list[bytes]:
        """As `Reduce.gather`."""
        self.calls.append(("gather", len(mine) // WIDTH))
        return self._holder.gather(mine)

    def exchange(self, parts: Sequence[bytes]) -> list[bytes]:
        """As `Reduce.exchange`."""
        self.n_exchanged += sum(map(len, parts))
        self.calls.append(("exchange", max(map(len, parts)) // WIDTH))
        return self._holder.exchange(parts)


def calls_of_a_round(columns: int, policy: dict[str, Any]) -> tuple[list[Call], float]:
    """The calls of a round, of any of some holders; their number does not matter.

    And the bytes of a row that are exchanged for the fingerprint.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21_000, columns)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2]

    def train(holder: Communicator) -> tuple[list[list[Call]], float]:
        own = slice(7_000 * holder.rank, 7_000 * holder.rank + 7_000)
        log = Logged(holder)
        data = sapwood.Dataset.dealt([(X[own], y[own])], log, [own.start], n_jobs=1)
        log.n_exchanged = 0
        data.fingerprint()
        exchanged = log.n_exchanged
        found = []
        for rounds in (1, 2):
            log.calls.clear()
            sapwood.train({"n_estimators": rounds, "n_jobs": 1, **policy}, data)
            found.append(sorted(log.calls))
        return found, exchanged / data.n_rows

    (one, two), a_row = threads.run(3, train)[0]
    for call in one:
        two.remove(call)
    return two, a_row


def cost(call: Call, workers: int) -> tuple[int, int, float]:
    """Messages that a worker sends, those that it waits for one after the other, and
    bytes that it sends.
    """
    (verb, n), steps = call, int(np.ceil(np.log2(workers)))
    direct = workers <= communicator.MAX_DIRECT
    share = WIDTH * n * (workers - 1) / workers
    if verb == "sum" and n <= communicator.FEW:
        return steps, steps, WIDTH * n * steps
    if verb == "sum":  # each block to its owner, and the sums back
        return (
            (2 * (workers - 1), 2, 2 * share)
            if direct
            else (2 * steps, 2 * steps, 2 * share)
        )
    if verb == "sum_blocks":
        return (workers - 1, 1, share) if direct else (steps, steps, share)
    if verb == "exchange" and direct:  # what is sent at once waits once
        return workers - 1, 1, WIDTH * n * (workers - 1)
    return steps, steps, WIDTH * n * (workers - 1)


def main(
    rows: float, columns: int, cores: int, gigabits: float, latency_us: float
) -> None:
    """Print the table."""
    link = f"{gigabits:g} Gbit/s, {latency_us:g} us a message"
    print(
        f"{rows:.0e} rows x {columns} columns, {cores} cores a worker, {link}; by round"
    )
    print(
        f"{'trees':>12}{'workers':>9}{'messages':>10}{'MB sent':>9}{'rows s':>9}{'links s':>9}{'share':>7}"
    )
    policies = {
        "31 leaves": {"grow_policy": "leafwise", "max_leaves": 31},
        "depth 6": {"grow_policy": "depthwise", "max_depth": 6},
    }
    for name, policy in policies.items():
        calls, a_row = calls_of_a_round(columns, policy)
        for workers in (10, 30, 100, 300, 1000):
            sent, waits, data = (
                sum(part)
                for part in zip(*(cost(call, workers) for call in calls), strict=True)
            )
            work = rows * columns * PASSES * NS_A_CELL * 1e-9 / (workers * cores)
            links = waits * latency_us * 1e-6 + data * 8 / (gigabits * 1e9)
            share = links / (work + links)
            print(
                f"{name:>12}{workers:9}{sent:10.0f}{data / 1e6:9.1f}{work:9.3f}{links:9.3f}{share:7.0%}"
            )
    for workers in (10, 100, 1000):
        once = rows / workers * a_row * (workers - 1) / workers
        print(
            f"once, for the fingerprint: {once / 1e9:.2f} GB by each of {workers} workers, "
            f"{once * 8 / (gigabits * 1e9):.2f} s"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--gigabits", type=float, default=10.0)
    parser.add_argument(
        "--latency",
        type=float,
        default=300.0,
        help="microseconds from worker to worker over Dask",
    )
    given = parser.parse_args()
    main(given.rows, given.columns, given.cores, given.gigabits, given.latency)
