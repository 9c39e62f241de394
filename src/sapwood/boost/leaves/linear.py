"""Linear leaves: a ridge regression on the columns of each leaf's branch, beside the
leaf's value.

In: a tree with its values, and the values behind the bins. Out: its terms, and what
they add to the scores of rows.

Shi, Li and Li (2018), with the choices of LightGBM; NUMERICS (Linear leaves) has the
arithmetic.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import Terms, Trainer, Tree, host

Floats = NDArray[np.float64]


def fit(
    trainer: Trainer,
    first: int,
    trees: Sequence[Tree],
    rate: float,
    params: Mapping[str, Any],
    bounds: Floats,
) -> None:
    """Fit the linear terms of the leaves of trees with the same splits, whose values
    are shrunk already.

    ``first``: the output of the first tree; the others are those of the outputs that
    follow. The trainer has the leaf of every row and the values behind its bins.
    ``linear`` is set where a leaf has terms. ``bounds``: those of the columns, where
    the trainer has standard units, else empty.
    """
    leaves = np.flatnonzero(trees[0]["left"] == 0)
    offset, column = host.branches(
        trees[0]["left"], trees[0]["column"], trees[0]["set"]
    )
    ridge = params["linear_lambda"]
    ridge = float(params["linear_units"] == "standard") if ridge == "auto" else ridge
    penalty = params["reg_lambda"], ridge, params["linear_smooth"]
    values = np.array([tree["value"][leaves] for tree in trees])
    found = trainer.fit_linear(first, offset, column, values, rate, *penalty)
    ends = np.zeros((len(trees), len(trees[0]["left"]) + 1), np.int64)
    ends[:, leaves + 1] = np.diff([terms[0] for terms in found])
    for tree, own, terms in zip(trees, np.cumsum(ends, axis=1), found, strict=True):
        if len(terms[2]):
            tree["linear"] = own, *terms[1:], bounds


def tree_output(
    tree: Mapping[str, Any],
    node: NDArray[Any],
    table: NDArray[Any] | None,
    n_threads: int,
) -> Floats:
    """What a tree adds to the score of every row, given the leaf (node) of the row.

    ``tree``: a tree, or its values and terms alone. ``table``: the values of the rows,
    which terms need.
    """
    if "linear" not in tree:
        value: Floats = tree["value"][node]
        return value
    assert table is not None
    offset, column, coef, bounds = tree["linear"]
    return host.linear_values(
        table,
        node.astype(np.int32),
        tree["value"],
        offset,
        column,
        coef,
        bounds,
        n_threads,
    )


def with_values(tree: Tree, value: Floats) -> Terms:
    """The terms of the leaves of a tree, moved so that its leaves have other values
    (n_leaves).
    """
    leaf = tree["left"] == 0
    offset, column, coef, bounds = tree["linear"]
    offset = np.append(offset[:-1][leaf], offset[-1])
    moved = coef.copy()
    several = np.diff(offset) > 0
    moved[offset[:-1][several]] += (value - tree["value"][leaf])[several]
    return offset, column, moved, bounds


def scaled(tree: Mapping[str, Any], by: float) -> dict[str, Any]:
    """A tree whose values, and terms if it has any, are multiplied."""
    other = {**tree, "value": by * tree["value"]}
    if "linear" in tree:
        offset, column, coef, bounds = tree["linear"]
        other["linear"] = offset, column, by * coef, bounds
    return other
