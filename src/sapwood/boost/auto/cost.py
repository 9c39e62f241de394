"""What a round of a candidate costs, before any is trained.

In: rows, columns, bins, leaves and outputs. Out: whether there are too many classes for
so few rows, how many rounds are within a budget, and about how many seconds a round
takes.

Rounds are counted in operations, so that every machine makes the same plan. Seconds
matter under a time limit alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

# from here on a tree for each class costs as much as all other candidates
MANY_CLASSES = 10
# rows whose gradients cost as much as making, joining and checking the tree of one
# output
TREE_ROWS = 2000
# operations of a round, from which there must be enough rows in each class to be worth
# them
HEAVY = 10_000_000
FEW_A_CLASS = 100  # training rows of a class, below which rounds are limited
# training rows of a class, below which trees are small, and leaves constant
VERY_FEW_A_CLASS = 10
# Operations of all rounds. On two cores 1e9 of them take 10 to 25 s, and a second
# training takes as long again.
BUDGET = {"fast": 300_000_000, "balanced": 600_000_000, "best": 2_400_000_000}
MIN_ROUNDS = 4  # that are trained however long each takes
# columns whose histograms cost as much as gradients and scores, in a tree for each
# class
TREE_COLUMNS = 10
# of a tree for each class, below which these learn too little to be tried
MIN_TREE_ROUNDS = 12
# Seconds of two cores, measured: 200 x 20,000 and 200 x 100,000 numbers, 2,000 to
# 20,000 rows of 1,000 to 10,000 classes.
SEARCH_SECONDS = 1e-9  # of a bin of a column, in a leaf
CELL_SECONDS = 2e-9  # of a code, in all levels of a tree
OUTPUT_SECONDS = 2e-8  # of an operation of `round_operations`
# of a node, while a model is made of the trees, checked and scaled
NODE_SECONDS = 1.5e-7
# part of the time of the first round that the second takes; measured: 0.05 to 1
LATER_ROUNDS = 0.3
# that candidates must be able to train within their part of a time limit
ROUNDS_IN_TIME = 30


class Shape(Protocol):
    """What is known of the training rows."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...


@dataclass(frozen=True)
class Rows:
    """The training rows of a plain fit."""

    n_rows: int
    n_outputs: int


@dataclass
class Pace:
    """The seconds of a training so far."""

    setup: float = 0.0
    first_round: float = 0.0
    all_rounds: float = 0.0
    next_round: float = 0.0  # that the next round is expected to take

    def add(self, seconds: float) -> None:
        """Note a round."""
        self.all_rounds += seconds
        if self.first_round:
            self.next_round = seconds
        else:
            self.first_round = seconds
            self.next_round = LATER_ROUNDS * seconds


def round_operations(shape: Shape) -> int:
    """The operations of a round: gradients and scores of all rows, and a tree, for each
    output.
    """
    return shape.n_outputs * (shape.n_rows + TREE_ROWS)


def has_too_many_classes(shape: Shape) -> bool:
    """Whether rounds take so long, for so few rows of each class, that they are
    limited.
    """
    few = shape.n_rows < FEW_A_CLASS * shape.n_outputs
    return few and shape.n_outputs >= MANY_CLASSES and round_operations(shape) > HEAVY


def affordable_rounds(shape: Shape, quality: str) -> int:
    """The rounds that are within the budget of a quality."""
    return max(MIN_ROUNDS, BUDGET[quality] // round_operations(shape))


def affordable_tree_rounds(shape: Shape, n_columns: int, quality: str) -> int:
    """The rounds of a tree for each class that are within the budget of a quality."""
    rows = shape.n_rows * max(TREE_COLUMNS, n_columns) // TREE_COLUMNS
    return BUDGET[quality] // (shape.n_outputs * (rows + TREE_ROWS))


def n_leaves(params: Mapping[str, Any]) -> int:
    """The most leaves of a tree, as far as resolved parameters limit them."""
    depth = params["max_depth"]
    leaves = params["max_leaves"]
    by_depth = 2**depth if isinstance(depth, int) and depth < 30 else None
    limits = [
        limit for limit in (by_depth, leaves) if isinstance(limit, int) and limit > 0
    ]
    return min(limits, default=31)


def round_seconds(shape: Shape, n_columns: int, n_bins: int, leaves: int) -> float:
    """About how long a round takes, of one training; `n_bins`: of all columns
    together.
    """
    outputs = OUTPUT_SECONDS * round_operations(shape)
    return (
        SEARCH_SECONDS * n_bins * leaves
        + CELL_SECONDS * shape.n_rows * n_columns
        + outputs
    )
