"""Linear leaves: a ridge regression on the columns of each leaf's branch, beside the leaf's value.

In: a tree with its values, and the values behind the bins. Out: its terms, and what they add to the scores of rows.

Shi, Li and Li (2018), with the choices of LightGBM; NUMERICS (Linear leaves) has the arithmetic.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import Trainer, Tree, host

Floats = NDArray[np.float64]


def fit(trainer: Trainer, output: int, tree: Tree, rate: float, params: Mapping[str, Any]) -> None:
    """Fit the linear terms of the leaves of a tree, whose values are shrunk already.

    The trainer has the leaf of every row and the values behind its bins. ``linear`` is set where a leaf has terms.
    """
    leaf = tree["left"] == 0
    offset, column = branches(tree)
    penalty = [params[name] for name in ("reg_lambda", "linear_lambda", "linear_smooth")]
    terms = trainer.fit_linear(output, offset, column, tree["value"][leaf], rate, *penalty)
    if len(terms[2]):
        counts = np.zeros(len(leaf), np.int64)
        counts[leaf] = np.diff(terms[0])
        tree["linear"] = np.cumsum(np.append(0, counts)), *terms[1:]


def branches(tree: Tree) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The numeric columns split above each leaf, ascending: (n_leaves + 1) offsets, and the columns."""
    left = tree["left"]
    above: list[frozenset[int]] = [frozenset()] * len(left)
    for node in np.flatnonzero(left).tolist():  # children come after their parents
        own = [] if tree["set"][node] >= 0 else [int(tree["column"][node])]  # categories are not numbers
        above[left[node]] = above[left[node] + 1] = above[node].union(own)
    found = [sorted(above[node]) for node in np.flatnonzero(left == 0).tolist()]
    return np.cumsum([0, *map(len, found)], dtype=np.int64), np.array([c for one in found for c in one], np.int32)


def tree_output(tree: Mapping[str, Any], node: NDArray[Any], table: NDArray[Any] | None, n_threads: int) -> Floats:
    """What a tree adds to the score of every row, given the leaf (node) of the row.

    ``tree``: a tree, or its values and terms alone. ``table``: the values of the rows, which terms need.
    """
    if "linear" not in tree:
        value: Floats = tree["value"][node]
        return value
    assert table is not None
    offset, column, coef = tree["linear"]
    return host.linear_values(table, node.astype(np.int32), tree["value"], offset, column, coef, n_threads)


def scaled(tree: Mapping[str, Any], by: float) -> dict[str, Any]:
    """A tree whose values, and terms if it has any, are multiplied."""
    other = {**tree, "value": by * tree["value"]}
    if "linear" in tree:
        offset, column, coef = tree["linear"]
        other["linear"] = offset, column, by * coef
    return other
