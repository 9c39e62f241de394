"""NUMERICS, Target statistics, in NumPy: row by row, from the rows before it.

Codes, labels, borders, weights and an order enter; the values of one statistic leave.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import reference

Floats = NDArray[np.float64]
PERMUTATION = 40


def order(seed: int, which: int, weight: Floats | None, n: int) -> NDArray[np.int64]:
    """The rows of positive weight by their draws."""
    rows = np.arange(n) if weight is None else np.flatnonzero(weight)
    return rows[np.lexsort((rows, reference.draw(seed, PERMUTATION, which, 0, rows)))]


def masses(
    kind: str, y: Floats, borders: Floats, w: reference.Weights
) -> tuple[NDArray[np.int64], float]:
    """What each row adds to the numerators, and the unit."""
    unit = 2.0**-w.shift
    if kind == "mean":
        low = y[w.count > 0].min()
        high = y[w.count > 0].max()
        place = (
            np.clip((y - low) / (high - low), 0, 1) if high > low else np.zeros(len(y))
        )
        whole = np.all(w.factor == 1)
        q = np.rint(place * 2.0**30) * w.count if whole else np.rint(place * w.count)
        return q.astype(np.int64)[None], 2.0**-30 if whole else unit
    bucket = (y[:, None] > borders).sum(axis=1)
    if kind == "borders":
        return np.array(
            [(bucket > j) * w.count for j in range(len(borders))], np.int64
        ), unit
    return np.array(
        [(bucket == j) * w.count for j in range(len(borders) + 1)], np.int64
    ), unit


def statistic(
    code: NDArray[np.int32],
    y: Floats,
    kind: str,
    prior: float,
    borders: Floats,
    weight: Floats | None,
    rows: Any,
) -> Floats:
    """(n_masses, n_rows): (countInClass + prior) / (totalCount + 1), each row from
    those before it in the order.
    """
    w = reference.weights(weight, len(y))
    mass, unit = masses(kind, y, borders, w)
    values = np.empty(mass.shape)
    place = {row: i for i, row in enumerate(rows)}
    for row in range(len(y)):
        # a row of weight 0 comes after all
        before = np.array(rows[: place.get(row, len(rows))], np.intp)
        same = before[code[before] == code[row]]
        total = float(w.count[same].sum()) * 2.0**-w.shift
        values[:, row] = (
            unit * mass[:, same].sum(axis=1).astype(np.float64) + prior
        ) / (total + 1)
    return values
