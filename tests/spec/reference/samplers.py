"""NUMERICS 10 in NumPy: who is asked, and how often each row counts.

Parameters, the wide and narrow numbers of a round and weights enter; a factor for every
row leaves, 0 if it stays out.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spec.reference.real import exp, log

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# b of key(seed, ROWS, round, b), coordinates
Draw = Callable[[int, Ints], NDArray[np.uint64]]
MOST = 900  # binary orders of magnitude between outputs


class Output(NamedTuple):
    """One output's gradients in fixed point, whole weights left out."""

    wide: Ints  # (n_rows) qg of 30 bits
    narrow: Ints  # ... and of 14
    e: int  # e(g_max)


def under(draws: NDArray[np.uint64], p: Floats) -> NDArray[np.bool_]:
    """Whether a draw lies under a probability."""
    limit = np.array(
        [min(math.floor(one * 2.0**64), 2**64 - 1) for one in p], np.uint64
    )
    return (p >= 1) | (draws < limit)


def sizes(
    outputs: list[Output],
    repeat: Ints,
    exponent: Callable[[float], int],
    reg: Any = None,
) -> Ints:
    """The size of every row's gradients, of 30 bits: sums of |g|, or sqrt(sum of g^2 +
    reg).
    """
    top = max(one.e for one in outputs)
    units = [math.ldexp(1.0, max(one.e - top, -MOST)) for one in outputs]
    total = np.zeros(len(repeat))
    times = float(repeat.max())
    for one, unit in zip(outputs, units, strict=True):
        g = (one.wide * repeat).astype(np.float64) * (unit * 2.0**-30)
        total = total + (np.abs(g) if reg is None else g * g)
    most = len(outputs) * times
    if reg is not None:
        if reg == "auto":
            means = [
                float((np.abs(one.narrow) * repeat).sum()) / float(repeat.sum())
                for one in outputs
            ]
            value = 0.0
            for mean, unit in zip(means, units, strict=True):
                value = value + (mean * (unit * 2.0**-14)) ** 2
        else:
            value = (
                reg
                * math.ldexp(1.0, max(-top, -1000))
                * math.ldexp(1.0, max(-top, -1000))
            )
        value = min(value, 2.0**60)
        total = np.sqrt(total + value)
        most = math.sqrt(len(outputs) * (times * times) + value)
    return np.rint(total * math.ldexp(1.0, 30 - exponent(most))).astype(np.int64)


def goss(
    size: Ints, live: NDArray[np.bool_], draw: Draw, top_rate: float, other_rate: float
) -> Floats:
    """The largest sizes, ties by a draw of their own, and some of the rest."""
    rows = np.arange(len(size))
    count = math.floor(top_rate * live.sum() + 0.5)
    tie = (draw(1, rows) >> np.uint64(32)).astype(np.int64)
    order = np.lexsort((-tie, -size, ~live))  # live rows first, then large ones
    top = np.zeros(len(size), np.bool_)
    if count:
        last = order[count - 1]
        top = live & ((size > size[last]) | ((size == size[last]) & (tie >= tie[last])))
    rest = under(draw(0, rows), np.full(len(size), other_rate / (1.0 - top_rate)))
    return np.where(top, 1.0, np.where(rest, (1.0 - top_rate) / other_rate, 0.0))


def mvs(size: Ints, live: NDArray[np.bool_], draw: Draw, subsample: float) -> Floats:
    """Probabilities min(1, size / mu) that add up to the share asked for."""
    n = int(live.sum())
    expected = math.floor(subsample * live.sum() + 0.5)
    if expected >= n:
        return np.ones(len(size))
    expected = max(expected, 1)
    inside = size[live]

    def enough(m: int) -> bool:
        return (
            int((inside >= m).sum()) * m + int(inside[inside < m].sum()) > expected * m
        )

    # the largest m that is enough, by halving
    low = 0
    high = 2**31
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    below = int(inside[inside <= low].sum())
    rest = expected - int((inside > low).sum())
    mu = below / rest if below > 0 and rest > 0 else 1.0
    drawn = under(draw(0, np.arange(len(size))), size / mu)
    with np.errstate(divide="ignore"):
        return np.where(size > low, 1.0, np.where(drawn, mu / size, 0.0))


def ask(
    p: dict[str, Any],
    outputs: list[Output],
    repeat: Ints,
    draw: Draw,
    exponent: Callable[[float], int],
    y: Floats,
) -> Floats:
    """NUMERICS 10: how often every row counts in this round."""
    live = repeat > 0
    rows = np.arange(len(repeat))
    unit = rows if p["group"] is None else np.asarray(p["group"])
    if p["sampling"] == "goss":
        times = goss(
            sizes(outputs, repeat, exponent), live, draw, p["top_rate"], p["other_rate"]
        )
    elif p["sampling"] == "mvs":
        times = mvs(
            sizes(outputs, repeat, exponent, p["mvs_reg"]), live, draw, p["subsample"]
        )
    elif p["sampling"] == "bayesian":
        u = ((draw(0, unit) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        times = exp(p["bagging_temperature"] * log(-log(u)))
    else:
        share = np.full(len(rows), p["subsample"])
        for one, part in (p["subsample_by_class"] or {}).items():
            share[y == one] = part
        times = under(draw(0, unit), share).astype(np.float64)
    return np.where(live, times, 0.0)
