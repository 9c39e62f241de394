"""What LightGBM looks at in a node: fewer candidates than we do (feature_histogram.hpp,
FindBestThresholdSequentially).

In: rows of a node and of those above it, gradients, hessians, LightGBM's limits. Out:
the best score it can find there.

A column that had no split worth `min_gain_to_split` in a node is not looked at in the
nodes below it. And a side's rows are not counted but guessed, each value's from its
share of the hessians: a scan ends where the guess leaves the other side too few, which
may be below 0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.side_by_side import Array

Rows = NDArray[np.intp]
# share of a score: where `max_delta_step` cuts both sides alike, a split gains a
# rounding error
NOTHING = 1e-12


def score(g: Any, h: Any, params: Mapping[str, Any]) -> Any:
    """What the best step of a leaf takes off twice the penalised loss."""
    t = np.maximum(np.abs(g) - params.get("lambda_l1", 0.0), 0.0)
    b = h + params.get("lambda_l2", 0.0)
    step = np.minimum(t / b, params.get("max_delta_step", 0.0) or np.inf)
    return step * (2 * t - b * step)


def scan(
    x: Array, g: Array, h: Array, missing: bool, params: Mapping[str, Any]
) -> float:
    """The best score of a column's candidates; `missing`: whether it has missing values
    anywhere in the table.
    """
    seen = ~np.isnan(x)
    _, place = np.unique(x[seen], return_inverse=True)
    if len(place) == 0:
        return -np.inf
    G = np.bincount(place, g[seen])
    H = np.bincount(place, h[seen])
    count = np.floor(H * (len(x) / h.sum()) + 0.5)
    best = -np.inf
    for values in (
        [slice(None, None, -1), slice(None)] if missing else [slice(None, None, -1)]
    ):
        # One side takes value after value, from the top or the bottom; the other has
        # the rest and what is missing. Those are alone where one side has all values:
        # only looked at from the bottom.
        last = len(G) if missing and values.step is None else len(G) - 1
        sums = [np.cumsum(each[values])[:last] for each in (G, H, count)]
        rest = [
            total - each
            for total, each in zip((g.sum(), h.sum(), len(x)), sums, strict=True)
        ]
        least_h = params.get("min_sum_hessian_in_leaf", 1e-3)
        least_n = params["min_data_in_leaf"]
        ends = (rest[2] < least_n) | (rest[1] < least_h)
        enough = (sums[2] >= least_n) & (sums[1] >= least_h)
        looked = enough & (np.cumsum(ends & enough) == 0)
        if looked.any():
            total = score(sums[0][looked], sums[1][looked], params) + score(
                rest[0][looked], rest[1][looked], params
            )
            best = max(best, float(total.max()))
    return best


def best(
    X: Array,
    g: Array,
    h: Array,
    above: Sequence[Rows],
    rows: Rows,
    params: Mapping[str, Any],
) -> float:
    """The best score of a node below some others; its own where no split is worth
    it.
    """
    missing = np.isnan(X).any(axis=0)

    def found(rows: Rows, column: int) -> float:
        """The best score of a column, or that of the node."""
        own = score(g[rows].sum(), h[rows].sum(), params)
        split = scan(X[rows, column], g[rows], h[rows], bool(missing[column]), params)
        return (
            split
            if split > own * (1 + NOTHING) + params.get("min_gain_to_split", 0.0)
            else float(own)
        )

    def worth(rows: Rows, column: int) -> bool:
        return found(rows, column) > score(g[rows].sum(), h[rows].sum(), params)

    columns = [
        column
        for column in range(X.shape[1])
        if all(worth(one, column) for one in above)
    ]
    return max(
        [
            float(score(g[rows].sum(), h[rows].sum(), params)),
            *(found(rows, column) for column in columns),
        ]
    )
