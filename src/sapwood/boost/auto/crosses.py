"""Which crosses of columns are worth a try.

In: the trees of a candidate. Out: crosses of the columns that its splits gained most
from.
"""

from itertools import combinations

import numpy as np

from sapwood.data.dataset import Dataset
from sapwood.model.trees import Trees

N_PAIRED = 6  # columns of numbers whose differences and products are tried
N_KEPT = 12  # crosses that stay after a race, and as many more as it takes for
KEPT_GAIN = 0.95  # this part of the gain of all of them
N_CENTRED = 4, 3  # columns of numbers, and of categories by whose mean each is centred


def propose(trees: Trees, data: Dataset, pairs: bool) -> list[tuple[str, int, int]]:
    """Crosses of the columns with the largest gains, by kind and positions of both
    columns; two numbers by `pairs`.
    """
    split = (trees.column >= 0) & (trees.column < data.n_columns)
    gain = np.bincount(trees.column[split], trees.gain[split], data.n_columns)
    ranked = np.argsort(-gain, kind="stable").tolist()
    numbers = [column for column in ranked if column not in data.categories]
    groups = [column for column in ranked if column in data.categories]
    paired = combinations(numbers[:N_PAIRED] if pairs else [], 2)
    found = [(kind, a, b) for a, b in paired for kind in ("difference", "product")]
    return found + [
        ("centred", a, b)
        for a in numbers[: N_CENTRED[0]]
        for b in groups[: N_CENTRED[1]]
    ]


def best(
    trees: Trees, found: list[tuple[str, int, int]], n_columns: int
) -> list[tuple[str, int, int]]:
    """The crosses that trees over them gain most from; they are the columns from
    `n_columns` on.
    """
    split = trees.column >= n_columns
    gain = np.bincount(trees.column[split] - n_columns, trees.gain[split], len(found))[
        : len(found)
    ]
    order = np.argsort(-gain, kind="stable")
    enough = int(np.searchsorted(np.cumsum(gain[order]), KEPT_GAIN * gain.sum())) + 1
    return [
        found[at]
        for at in sorted(order[: max(N_KEPT, enough)].tolist())
        if gain[at] > 0
    ]
