"""Losses and metrics of groups again, in NumPy: pairs and orders written out, sums in
the core's order.

In: the scores, labels and gains of one group. Out: gradients and hessians, or the
measure of a list.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec.reference import real

Floats = NDArray[np.float64]
PLACES = 64
# score, gain, first place, rows, first place of its score
Block = tuple[float, float, int, int, int]


def discounts(n: int) -> Floats:
    """1 / log2(place + 2)."""
    return real.LN2 / real.log(np.arange(n) + 2.0)


def lane_sum(values: Floats) -> float:
    """A sum in eight lanes."""
    lanes = np.zeros(8)
    for at in range(0, len(values), 8):
        part = values[at : at + 8]
        lanes[: len(part)] = lanes[: len(part)] + part
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + (
        (lanes[1] + lanes[5]) + (lanes[3] + lanes[7])
    )


def blocks(
    score: Floats, label: Floats, gain: Floats
) -> tuple[NDArray[np.intp], list[Block]]:
    """Rows by falling score, then rising label, and the blocks of equal ones."""
    order = np.lexsort((label, -score))
    found: list[Block] = []
    for at, row in enumerate(order):
        same = at > 0 and score[row] == score[order[at - 1]]
        if same and label[row] == label[order[at - 1]]:
            s, g, first, rows, tie = found[-1]
            found[-1] = s, g, first, rows + 1, tie
        else:
            found.append((score[row], gain[row], at, 1, found[-1][4] if same else at))
    return order, found


def swap(metric: str, gain: Floats, i: int, j: int) -> float:
    """What swapping two places changes in a metric, by measuring both lists."""
    other = gain.copy()
    other[[i, j]] = gain[[j, i]]
    return abs(measure(metric, gain, len(gain)) - measure(metric, other, len(gain)))


def measure(metric: str, gain: Floats, top: int) -> float:
    """A metric of a list without ties; for err, gains are probabilities."""
    hits = gain > 0
    places = np.arange(1, len(gain) + 1)
    first = places <= top
    if metric == "ndcg":
        ideal = np.sort(gain)[::-1] * discounts(len(gain))
        return float((gain * discounts(len(gain)))[first].sum() / ideal[first].sum())
    if metric == "map":
        return float(
            (hits * np.cumsum(hits) / places)[first].sum() / min(hits.sum(), top)
        )
    if metric == "mrr":
        return float(1 / (np.argmax(hits) + 1)) if hits[first].any() else 0.0
    if metric == "err":
        left = np.cumprod(np.append(1.0, 1.0 - gain))[:-1]
        return float((left * gain / places)[first].sum())
    if metric == "precision":
        return float(hits[first].sum() / min(top, len(gain)))
    return float(hits[first].sum() / hits.sum())


def expected(metric: str, score: Floats, gain: Floats, top: int) -> float:
    """The mean of a metric over all orders of rows of equal score."""
    values = [measure(metric, gain[list(order)], top) for order in _orders(score)]
    return float(np.mean(values))


def _orders(score: Floats) -> Iterator[tuple[int, ...]]:
    for order in permutations(range(len(score))):
        if (np.diff(score[list(order)]) <= 0).all():
            yield order


def pairs(
    score: Floats,
    label: Floats,
    gain: Floats,
    *,
    metric: str,
    truncation: int,
    sigma: float,
    norm: bool,
    score_norm: bool,
) -> tuple[Floats, Floats]:
    """Lambdarank, or pair_logit where metric is 'unit': every pair of blocks."""
    order, found = blocks(score, label, gain)
    n = len(score)
    placed = gain[order]
    d = discounts(n)
    best = np.sort(gain)[::-1]
    ideal = 0.0
    for place in range(min(n, truncation)):
        ideal = ideal + best[place] * d[place]
    g = np.zeros(len(found))
    h = np.zeros(len(found))
    size = 0.0
    if gain.min() == gain.max():
        return np.zeros(n), np.zeros(n)
    s = np.array([one[0] for one in found])
    e = real.exp(np.maximum(sigma * (s - s[0]), -600.0))
    count = np.array([float(one[3]) for one in found])
    tie = np.array([one[4] for one in found])
    ends = [next((t for t in tie if t > mine), n) for mine in tie]
    mean = np.array(
        [_mean(d, first, end) for first, end in zip(tie, ends, strict=True)]
    )
    worth = np.array([one[1] for one in found])
    for a, (_, _, first, rows, mine) in enumerate(found):
        if mine >= truncation:
            break
        tied = np.flatnonzero(tie == mine)
        parts = [np.arange(a + 1, tied[-1] + 1), np.arange(tied[-1] + 1, len(found))]
        parts = parts if metric == "ndcg" else [np.arange(a + 1, len(found))]
        for which, others in enumerate(parts):
            if len(others) == 0:
                continue
            diff = worth[a] - worth[others]
            if metric == "ndcg" and which == 0:
                w = (diff * _within(d, mine, ends[a])) * (1.0 / ideal)
            elif metric == "ndcg":
                w = (diff * (mean[a] - mean[others])) * (1.0 / ideal)
            else:
                weight = (
                    np.ones(len(others))
                    if metric == "unit"
                    else np.array(
                        [
                            _swaps(
                                metric,
                                placed,
                                (first, rows),
                                found[b][2:4],
                                worth[a] == worth[b],
                            )
                            for b in others
                        ]
                    )
                )
                w = np.sign(diff) * weight
            both = e[a] + e[others]
            inverse = 1.0 / both
            if score_norm and metric != "unit" and s[0] != s[-1]:
                far = 0.01 + (s[a] - s[others])
                t = 1.0 / (both * far)
                inverse = t * far
                w = w * (t * both)
            p = np.where(diff > 0, e[others], e[a]) * inverse
            push = (sigma * w) * p
            bend = (sigma * np.abs(push)) * (1.0 - p)
            g[others] = g[others] + count[a] * push
            h[others] = h[others] + count[a] * bend
            g[a] = g[a] - lane_sum(count[others] * push)
            h[a] = h[a] + lane_sum(count[others] * bend)
            size = size + 2.0 * count[a] * lane_sum(count[others] * np.abs(push))
    factor = 1.0
    if norm and metric != "unit" and size > 0:
        factor = float(real.log1p(np.array([size]))[0] / (real.LN2 * size))
    out_g = np.zeros(n)
    out_h = np.zeros(n)
    for one, (_, _, first, rows, _) in enumerate(found):
        out_g[order[first : first + rows]], out_h[order[first : first + rows]] = (
            g[one] * factor,
            h[one] * factor,
        )
    return out_g, out_h


def loss(score: Floats, weights: Any, sigma: float) -> float:
    """Sum of weight * log(1 + e^(-sigma (s_high - s_low))) over pairs (high, low,
    weight).
    """
    return float(
        sum(
            w * np.logaddexp(0.0, -sigma * (score[i] - score[j])) for i, j, w in weights
        )
    )


def pair_weights(
    score: Floats, gain: Floats, truncation: int, score_norm: bool
) -> Iterator[tuple[int, int, float]]:
    """NDCG's pairs by definition: the mean change over all orders of equal scores; for
    small groups.
    """
    n = len(score)
    d = discounts(len(score))
    ideal = float((np.sort(gain)[::-1] * d)[:truncation].sum())
    for i in range(n):
        for j in range(n):
            if gain[i] <= gain[j]:
                continue
            best = [int((score > score[row]).sum()) for row in (i, j)]
            if min(best) >= truncation:
                continue
            places = [
                range(b, b + int((score == score[row]).sum()))
                for b, row in zip(best, (i, j), strict=True)
            ]
            changes = [abs(d[a] - d[b]) for a in places[0] for b in places[1] if a != b]
            w = (gain[i] - gain[j]) * float(np.mean(changes)) / ideal
            if score_norm and score.min() != score.max():
                w /= 0.01 + abs(score[i] - score[j])
            yield i, j, w


def _mean(d: Floats, first: int, end: int) -> float:
    if end - first == 1:
        return float(d[first])
    total = 0.0
    for place in range(first, end):
        total = total + d[place]
    return float(total / (end - first))


def _within(d: Floats, first: int, end: int) -> float:
    length = end - first
    total = 0.0
    for t in range(length):
        total = total + d[first + t] * float(length - 1 - 2 * t)
    return 2.0 * total / (float(length) * float(length - 1))


def _swaps(
    metric: str, gain: Floats, own: tuple[int, int], other: tuple[int, int], equal: bool
) -> float:
    if equal:
        return 0.0
    ka = min(own[1], PLACES)
    kb = min(other[1], PLACES)
    total = 0.0
    for i in range(ka):
        for j in range(kb):
            total = total + swap(
                metric, gain, own[0] + i * own[1] // ka, other[0] + j * other[1] // kb
            )
    return total / (float(ka) * float(kb))
