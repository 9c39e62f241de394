"""Monotone constraints on leaf values that were found after a tree had grown.

In: a tree, the values of its leaves, the direction of every column. Out: values with
which the tree is monotone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sapwood.device import Tree

Floats = NDArray[np.float64]


def clip_to_monotone(
    tree: Tree, value: Floats, direction: Sequence[int], cut: bool
) -> Floats:
    """Clip the (n_leaves) values of leaves so that a tree is monotone (NUMERICS,
    constraints).

    ``direction`` is -1, 0 or 1 for every column; combinations, which follow, have none.
    Without ``cut`` only empty leaves get values, which the core has not bounded.
    """
    left = tree["left"]
    count = tree["count"]
    is_leaf = left == 0
    side = [
        direction[c] if 0 <= c < len(direction) and t < np.inf else 0
        for c, t in zip(tree["column"], tree["threshold"], strict=True)
    ]
    values = np.zeros(len(left))
    values[is_leaf] = value
    if cut:
        low, high = _bounds(left, side, count, values)
        # zeros as their bounds have them
        values = np.where(values <= low, low, np.where(values >= high, high, values))
    low = values.copy()
    high = values.copy()
    for node in np.flatnonzero(left)[::-1].tolist():
        lower, upper = (
            (left[node], left[node] + 1)
            if side[node] > 0
            else (left[node] + 1, left[node])
        )
        if side[node] and (count[lower] == 0) != (count[upper] == 0):
            empty, fill = (
                (lower, low[upper]) if count[lower] == 0 else (upper, high[lower])
            )
            for below in _below(left, empty):
                values[below] = low[below] = high[below] = fill
        low[node], high[node] = (
            min(low[lower], low[upper]),
            max(high[lower], high[upper]),
        )
    cut_values: Floats = values[is_leaf]
    return cut_values


def _bounds(
    left: NDArray[np.int32], side: Sequence[int], count: Floats, values: Floats
) -> tuple[Floats, Floats]:
    """Basic bounds: the midpoint of the means of two children bounds the values below
    them.
    """
    mean = values.copy()
    low = np.full(len(left), -np.inf)
    high = np.full(len(left), np.inf)
    splits = np.flatnonzero(left).tolist()
    for node in splits[::-1]:
        a = left[node]
        b = left[node] + 1
        rows = count[a] + count[b]
        mean[node] = (
            (mean[a] * count[a] + mean[b] * count[b]) / rows
            if rows > 0
            else 0.5 * (mean[a] + mean[b])
        )
    for node in splits:
        a = left[node]
        b = left[node] + 1
        low[a], low[b], high[a], high[b] = low[node], low[node], high[node], high[node]
        # refitted values may have rows where the tree had none
        if side[node] and (count[a] > 0) == (count[b] > 0):
            middle = min(max(0.5 * (mean[a] + mean[b]), low[node]), high[node])
            high[a if side[node] > 0 else b] = low[b if side[node] > 0 else a] = middle
    return low, high


def _below(left: NDArray[np.int32], node: int) -> list[int]:
    """A node and all nodes below it."""
    found = [node]
    for one in found:
        if left[one]:
            found += [left[one], left[one] + 1]
    return found
