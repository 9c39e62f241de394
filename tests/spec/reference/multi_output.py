"""The executable specification of vector leaves: docs/NUMERICS.md, vector leaves, in
plain NumPy.

As `reference.train`, but the outputs of a round share their splits.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec.reference import (
    BITS,
    Floats,
    Ints,
    Quantised,
    Ready,
    Split,
    Tree,
    Weights,
    candidates,
    categories,
    draw,
    exponent,
    fold,
    in_order,
    quantise,
    score_of_nodes,
    score_of_splits,
    search_precision,
)
from spec.reference import constraints as rules
from spec.reference import split_ranker as judging
from spec.reference import train as train_apart
from spec.reference.linear import solve
from spec.reference.losses import softmax

SKETCH = 43  # the purpose of its draws


def train(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> tuple[list[Tree], Floats]:
    """All trees (round by round, output by output) and the start scores (n_outputs)."""
    return train_apart(X, y, params, weight, join)


def join(ready: list[Ready]) -> list[Any]:
    """Of every output: the search for all of them, from which it takes its own
    gains.
    """
    # by the first node of a group
    found: dict[int, tuple[Split, list[Floats]] | None] = {}
    searched: list[Ready] = []

    def search(
        output: int,
        group: list[Ints],
        ids: list[int],
        columns: Ints,
        table: list[Ints],
        *rest: Any,
    ) -> Any:
        _, _, p, _, index, _ = rest
        sketched = 0 < (p.get("sketch_outputs") or 0) < len(ready)
        if not searched:
            searched.extend(sketch(ready, p, index) if sketched else ready)
        if ids[0] not in found:
            found[ids[0]] = best_split(searched, group, ids, columns, table, *rest)
        one = found[ids[0]]
        if one is None:
            return None
        gains = (
            gains_of(ready[output], group, table, rest[0], one[0], p)
            if sketched
            else one[1][output]
        )
        return one[0]._replace(gains=gains)

    return [partial(search, output) for output in range(len(ready))]


def sketch(ready: list[Ready], p: dict[str, Any], index: int) -> list[Ready]:
    """Random sums of the gradients of all outputs, each with the mean of their
    hessians, as further outputs.
    """
    w = ready[0].w
    n_sums = p["sketch_outputs"]
    alone = w._replace(factor=np.ones_like(w.factor))  # weights are in the wide numbers
    times = np.maximum(w.repeat, 1)
    g = [r.wide.sums[:, 0] // times for r in ready]
    h = np.zeros(len(times))
    for r in ready:
        h = h + (r.wide.sums[:, 1] // times) * (1.0 / r.wide.hs)
    h = h / len(ready)
    share = 1.0 / math.sqrt(n_sums)
    found = []
    for i in range(n_sums):
        signs = draw(p["seed"], SKETCH, index, i, np.arange(len(ready)))
        total = np.zeros(len(times))
        for own, sign, r in zip(g, signs, ready, strict=True):
            total = total + own * (
                (share if sign & np.uint64(1) else -share) * (1.0 / r.wide.gs)
            )
        q = quantise(
            total, h, alone, BITS[search_precision(total, h, alone, p["precision"])]
        )
        found.append(Ready(q, quantise(total, h, alone, BITS["wide"]), 0.0, w))
    return found


def gains_of(
    own: Ready,
    group: list[Ints],
    table: list[Ints],
    n_bins: list[int],
    split: Split,
    p: dict[str, Any],
) -> Floats:
    """What a split takes off the loss of one output in every node, from its wide
    numbers; 0 with an empty side.
    """
    gains = []
    for rows in group:
        code = table[split.column][rows]
        inside = code <= split.bin if split.set is None else np.isin(code, split.set)
        goes_left = np.where(code == n_bins[split.column], split.missing_left, inside)
        total = own.wide.sums[rows].sum(axis=0)
        left = own.wide.sums[rows[goes_left]].sum(axis=0)
        bare = p | {"min_child_weight": 0.0, "min_samples_leaf": 1}
        alone = score_of_nodes(total[None, None], own.wide, bare)
        score = score_of_splits(
            left[None, None], total[None, None], alone, own.wide, bare
        )
        empty = left[1] == 0 or total[1] == left[1]
        gains.append(
            0.0
            if empty
            else float(0.5 * (score[0, 0] - alone[0, 0]) * unit_of(own.wide))
        )
    return np.array(gains)


def unit_of(q: Quantised) -> float:
    return q.hs / (q.gs * q.gs)


def together(
    ready: list[Ready], p: dict[str, Any], index: int
) -> tuple[list[Quantised], list[float], judging.Judge]:
    """The gradients of all outputs, their scores' units as shares of the largest, and
    who compares their sums.
    """
    qs = [r.q for r in ready]
    unit = max(unit_of(r.q) for r in ready)
    share = [unit_of(q) / unit for q in qs]
    luck = math.sqrt(
        sum(s * (r.deviation * r.deviation) for s, r in zip(share, ready, strict=True))
    )
    return (
        qs,
        share,
        judging.Judge(p | {"deviation": luck}, 1.0, unit, index, draw, fold),
    )


def best_split(
    ready: list[Ready],
    group: list[Ints],
    ids: list[int],
    columns: Ints,
    table: list[Ints],
    n_bins: list[int],
    _: Quantised,
    p: dict[str, Any],
    guard: rules.Guard,
    index: int,
    path: judging.Judge,
) -> tuple[Split, list[Floats]] | None:
    """The best rule for a group of nodes by the scores of all outputs, if one is worth
    it; its gains by output.
    """
    qs, share, judge = together(ready, p, index)
    judge.paths = path.paths
    angles = [judging.Judge(p, q.gs, q.hs, index, draw, fold) for q in qs]
    # limits are for all outputs together
    bare = p | {"min_child_weight": 0.0, "min_samples_leaf": 1}
    # (n_nodes, 1, 3) each
    totals = [
        np.array([q.sums[rows].sum(axis=0) for rows in group])[:, None] for q in qs
    ]
    owns = [
        np.where(total[..., 1] == 0, 0.0, score_of_nodes(total, q, bare))
        for total, q in zip(totals, qs, strict=True)
    ]

    def joint(parts: list[tuple[Floats, Floats]]) -> Floats:
        """Scores from what every output has of them (and of their squares): node by
        node, then output by output.
        """
        along = square = np.zeros(parts[0][0].shape[1])
        for s, (n, d) in zip(share, parts, strict=True):
            along = along + s * in_order(n)
            square = square + s * in_order(d)
        if not judge.cosine:
            return along
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(square > 0, along / np.sqrt(square), along)

    def angle(one: judging.Judge, left: Ints, total: Ints) -> tuple[Floats, Floats]:
        (a, b), (c, d), own = one.angle(left), one.angle(total - left), one.angle(total)
        empty = (left[..., 1] == 0) | (total[..., 1] == left[..., 1])
        return np.where(empty, own[0], a + c), np.where(empty, own[1], b + d)

    alone = zip(angles, totals, owns, strict=True)
    parent = joint(
        [
            one.angle(total) if judge.cosine else (own, 0.0 * own)
            for one, total, own in alone
        ]
    )[0]
    best: tuple[float, float, int, int, bool, list[Floats]] | None = None
    sets: list[Ints] = []
    for column in columns:
        u = int(draw(p["seed"], rules.RANDOM_CUT, index, ids[0], np.array([column]))[0])
        codes = [table[column][rows] for rows in group]
        if categories.many(p, column):
            found = [
                categories.candidates(
                    [q.sums[r] for r in group], codes, n_bins[column], q, p, u
                )
                for q in qs
            ]
            lefts = [one[0] for one in found]
            own_sets = found[0][1]
            inside = np.array(found[0][2], np.bool_)
            bins = np.arange(len(own_sets))
        else:
            parts = [candidates(group, table[column], n_bins[column], q) for q in qs]
            lefts = [one[0] for one in parts]
            bins = parts[0][1]
            inside = parts[0][2]
            own_sets = []
        if not len(bins):
            continue
        scores = [
            score_of_splits(*of, bare)
            for of in zip(lefts, totals, owns, qs, strict=True)
        ]
        if judge.cosine:
            level = joint(
                [angle(*of) for of in zip(angles, lefts, totals, strict=True)]
            )
        else:
            level = joint([(s, 0.0 * s) for s in scores])
        level = np.where(forbidden(lefts, totals, qs, p), -np.inf, level)
        if p["extra_trees"] and not categories.many(p, column):
            populated = np.unique(np.concatenate(codes)).tolist()
            level = np.where(
                bins == guard.random_bin(populated, n_bins[column], u), level, -np.inf
            )
        top = int(np.argmax(level))
        side = bool(inside[top])
        # nobody saw a missing value: the heavier side
        if not any(np.any(code == n_bins[column]) for code in codes):
            sides = [left[:, top].sum(axis=0) for left in lefts]
            others = [
                total[:, 0].sum(axis=0) - side
                for total, side in zip(totals, sides, strict=True)
            ]
            side = bool(mean(sides, qs) >= mean(others, qs))
        rank = judge.favour(level[top], parent, ids[0], int(column))
        if best is None or rank > best[0]:
            best = (
                rank,
                level[top],
                int(column),
                int(bins[top]),
                side,
                [s[:, top] for s in scores],
            )
            sets = own_sets
    if (
        best is None
        or best[0] == -np.inf
        or not best[1] > parent + abs(parent) * 2.0**-40
    ):
        return None
    _, _, column, bin, side, tops = best
    shares = [
        0.5 * (s - own[:, 0]) * unit_of(q)
        for s, own, q in zip(tops, owns, qs, strict=True)
    ]
    gain = float(in_order(np.array([in_order(one[:, None]) for one in shares]))[0])
    freely = (
        judge.cosine and p["grow_policy"] == "symmetric" and p["min_split_gain"] == 0
    )
    if not (freely or gain > p["min_split_gain"]):
        return None
    if categories.many(p, column):
        return Split(gain, column, -1, side, shares[0], False, sets[bin]), shares
    return Split(gain, column, bin, side, shares[0]), shares


def mean(sums: list[Ints], qs: list[Quantised]) -> Floats:
    """Of the hessians in (..., 3) sums, over outputs."""
    total = np.zeros(sums[0].shape[:-1])
    for one, q in zip(sums, qs, strict=True):
        total = total + one[..., 1] / q.hs
    return total / len(qs)


def forbidden(
    lefts: list[Ints], totals: list[Ints], qs: list[Quantised], p: dict[str, Any]
) -> NDArray[np.bool_]:
    """(n_candidates): a side that holds rows of a node has too few, or too little
    weight.
    """
    rights = [total - left for total, left in zip(totals, lefts, strict=True)]
    both = (mean(lefts, qs) > 0) & (mean(rights, qs) > 0)
    least_count = (
        p["min_samples_leaf"] * p["count_unit"] if p["min_samples_leaf"] > 1 else 0
    )
    poor = np.zeros_like(both)
    for sides in (lefts, rights):
        poor = (
            poor
            | (mean(sides, qs) < p["min_child_weight"])
            | (sides[0][..., 2] < least_count)
        )
    return np.asarray((both & poor).any(axis=0))


def joint_values(
    s: Floats, hit: Floats, leaf: Ints, n_leaves: int, w: Weights, reg_lambda: float
) -> Floats:
    """(n_outputs, n_leaves) Newton steps by the whole hessian, before shrinkage; s, hit
    (n_outputs, n_rows).
    """
    p = softmax(s, np.zeros_like(s))[0]
    k = len(s)
    scale = math.ldexp(1.0, 30 - exponent(w.factor[w.repeat > 0].max()))

    def sums(x: Floats) -> list[float]:
        total = np.zeros(n_leaves, np.int64)
        np.add.at(
            total, leaf, np.rint(w.factor * x * scale).astype(np.int64) * w.repeat
        )
        return [int(one) / scale for one in total]

    g = [sums(p[i] - hit[i]) for i in range(k)]
    pairs = [
        [sums(p[i] * (1.0 - p[i]) if i == j else p[i] * p[j]) for j in range(i + 1)]
        for i in range(k)
    ]
    values = np.zeros((k, n_leaves))
    for one in range(n_leaves):
        a = [
            [
                pairs[i][j][one] + reg_lambda if i == j else -pairs[i][j][one]
                for j in range(i + 1)
            ]
            for i in range(k)
        ]
        values[:, one] = 0.0 - np.array(solve(a, [g[i][one] for i in range(k)]))
    return values
