"""Sparse tables in plain NumPy: what zeros mean, how cuts are found without visiting
them, and how codes are listed.

Values, rows and codes enter; cuts and lists leave (NUMERICS, sparse tables).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import reference
from spec.reference import Floats, Ints

LISTED = 21  # the purpose of the draws
SAMPLE = 256


def cuts(
    values: Floats,
    rows: Ints,
    absent: float,
    w: reference.Weights,
    max_bins: int,
    least: int,
) -> Floats:
    """The cuts of a column of which only some rows are stored: the others are a count
    and a weight.
    """
    live = np.flatnonzero(w.count > 0)
    known = np.unique(values[(w.count[rows] > 0) & ~np.isnan(values)])
    if not np.isnan(absent) and len(live) > np.count_nonzero(w.count[rows] > 0):
        known = np.union1d(known, [absent])
    if len(known) <= max_bins:
        return between(known, np.arange(len(known) - 1))
    chosen = live[
        np.lexsort((live, reference.draw(0, reference.CUTS, 0, 0, live)))[
            : reference.SAMPLE
        ]
    ]
    inside = np.isin(rows, chosen)
    n_rest = len(chosen) - np.count_nonzero(inside)
    usable = inside & ~np.isnan(values)
    known, place = np.unique(
        np.append(values[usable], absent if n_rest else values[usable][:1]),
        return_inverse=True,
    )
    mass = np.zeros(len(known), np.int64)
    repeat = int(w.repeat[rows[usable]].sum())
    np.add.at(mass, place[:-1], w.count[rows[usable]])
    if n_rest and not np.isnan(absent):
        mass[place[-1]] += w.count[chosen].sum() - w.count[rows[inside]].sum()
        repeat += int(w.repeat[chosen].sum() - w.repeat[rows[inside]].sum())
    known = known[mass > 0]
    mass = mass[mass > 0]
    if len(known) <= max_bins:
        return between(known, np.arange(len(known) - 1))
    return between(
        known, reference.walk(mass.tolist(), min(max_bins, max(128, repeat // least)))
    )


def between(values: Floats, last: Ints) -> Floats:
    """NUMERICS 3: cuts after some values."""
    a = values[last]
    b = values[last + 1]
    with np.errstate(invalid="ignore"):
        middle = 0.5 * a + 0.5 * b
    return np.maximum(
        np.where((middle >= a) & (middle < b), middle, a), np.finfo(np.float64).min
    )


def listed(codes: list[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Columns in which 7 of 8 rows of a sample have one code, that code, and the rows
    that have another.
    """
    n = len(codes[0])
    draws = reference.draw(0, LISTED, 0, 0, np.arange(SAMPLE)) % np.uint64(n)
    sample = np.arange(n) if n < SAMPLE else draws.astype(np.int64)
    column = []
    usual = []
    offset = [0]
    row = []
    code = []
    for j, own in enumerate(codes):
        found, count = np.unique(own[sample], return_counts=True)
        if 8 * count.max() < 7 * len(sample):
            continue
        most = found[count.argmax()]
        others = np.flatnonzero(own != most)
        (
            column.append(j),
            usual.append(most),
            row.append(others),
            code.append(own[others]),
        )
        offset.append(offset[-1] + len(others))
    return (
        np.array(column, np.int32),
        np.array(usual, np.uint16),
        np.array(offset, np.int64),
        np.concatenate([*row, []]).astype(np.uint32),
        np.concatenate([*code, []]).astype(np.uint16),
    )
