"""The executable specification of splits that tails judge: docs/NUMERICS.md, ordered
boosting, in plain NumPy.

The rows of all models enter, one after the other, and in which part of which model each
is; a split leaves.
"""

from functools import partial
from typing import Any

import numpy as np

from spec.reference import Floats, Ints, Quantised, Ready, Split, categories, soft
from spec.reference import constraints as rules
from spec.reference import split_ranker as judging
from spec.reference.multi_output import together, unit_of

Parts = list[Floats]  # N and D


def join(ready: list[Ready], part: Ints, n_parts: int) -> list[Any]:
    """Of every output: the search for all of them, from which it takes its own
    gains.
    """
    # by the first node of a group
    found: dict[int, tuple[Split, list[Floats]] | None] = {}

    def search(
        output: int, group: list[Ints], ids: list[int], *rest: Any
    ) -> Split | None:
        if ids[0] not in found:
            found[ids[0]] = best_split(ready, part, n_parts, group, ids, *rest)
        one = found[ids[0]]
        return None if one is None else one[0]._replace(gains=one[1][output])

    return [partial(search, output) for output in range(len(ready))]


def best_split(
    ready: list[Ready],
    part: Ints,
    n_parts: int,
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
    """The best rule for a group of nodes by the tails of all models and outputs, if one
    is worth it; its gains.
    """
    qs, share, judge = together(ready, p, index)

    def histograms(code: Ints, n: int) -> list[Ints]:
        """(n_nodes, n_parts, n, 3) of every output."""
        found = [np.zeros((len(group), n_parts, n, 3), np.int64) for _ in qs]
        for one, q in zip(found, qs, strict=True):
            for node, rows in enumerate(group):
                np.add.at(one[node], (part[rows], code[rows]), q.sums[rows])
        return found

    def score(
        sides: list[list[Ints]], penalties: list[dict[str, Any]]
    ) -> tuple[Floats, list[Floats]]:
        """Of candidates with these sides, (n_nodes, n_parts, n, 3) by output; and how
        far loss falls in each node.
        """
        n = sides[0][0].shape[2]
        all_n = np.zeros(n)
        all_d = np.zeros(n)
        falls = []
        for s, q, own, penalty in zip(share, qs, sides, penalties, strict=True):
            one_n = np.zeros(n)
            one_d = np.zeros(n)
            fall = np.zeros((len(group), n))
            for node in range(len(group)):
                node_n = np.zeros(n)
                node_d = np.zeros(n)
                for body in range(0, n_parts, 2):
                    fits = [
                        fit(side[node, body], side[node, body + 1], q, penalty)
                        for side in own
                    ]
                    N, D = (
                        fits[0][i] + fits[1][i] if len(fits) > 1 else fits[0][i]
                        for i in (0, 1)
                    )
                    one_n = one_n + N
                    one_d = one_d + D
                    node_n = node_n + N
                    node_d = node_d + D
                fall[node] = 2.0 * node_n - node_d
            all_n = all_n + s * one_n
            all_d = all_d + s * one_d
            falls.append(fall)
        if not judge.cosine:
            return 2.0 * all_n - all_d, falls
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(all_d > 0, all_n / np.sqrt(all_d), all_n), falls

    whole = histograms(np.zeros(len(part), np.int64), 1)
    score_now, fall_now = score([[one] for one in whole], [p] * len(qs))
    parent = float(score_now[0])
    best: tuple[float, float, int, int, bool, list[Floats]] | None = None
    sets: list[Ints] = []
    for column in columns:
        histogram = histograms(table[column], n_bins[column] + 1)
        own_sets = []
        missing = any(one[:, :, -1, 1].sum() > 0 for one in histogram)
        if categories.many(p, column):
            all_rows = [rows[part[rows] >= n_parts - 2] for rows in group]
            first = [qs[0].sums[rows] for rows in all_rows]
            codes = [table[column][rows] for rows in all_rows]
            _, own_sets, among = categories.candidates(
                first, codes, n_bins[column], qs[0], p, 0
            )
            inside = np.array([side and missing for side in among], np.bool_)
            bins = np.arange(len(own_sets))
            chosen = [
                np.append(own, n_bins[column]) if side else own
                for own, side in zip(own_sets, inside, strict=True)
            ]
            lefts = [
                np.stack([one[:, :, own].sum(axis=2) for own in chosen], axis=2)
                if chosen
                else one[:, :, :0]
                for one in histogram
            ]
        else:
            bins = np.arange(n_bins[column] - 1)
            inside = np.zeros(len(bins), np.bool_)
            if missing:
                bins = np.append(np.repeat(bins, 2), n_bins[column] - 1)
                inside = np.append(np.arange(len(bins) - 1) % 2 == 0, False)
            lefts = [
                np.cumsum(one[:, :, :-1], axis=2)[:, :, bins]
                + one[:, :, -1:] * inside[:, None]
                for one in histogram
            ]
        if not len(bins):
            continue
        sides = [[left, total - left] for left, total in zip(lefts, whole, strict=True)]
        penalty = (
            categories.penalty(p, n_bins[column]) if categories.many(p, column) else p
        )
        level, falls = score(sides, [penalty] * len(qs))
        level = np.where(forbidden(sides, qs, p), -np.inf, level)
        top = int(np.argmax(level))
        side = bool(inside[top])
        # the side with more weight, of all rows as the last model has them
        if not missing:
            here, there = (
                sum(
                    s[i][:, -2:, top, 1].sum() / q.hs
                    for s, q in zip(sides, qs, strict=True)
                )
                for i in (0, 1)
            )
            side = bool(here >= there)
        rank = judge.favour(float(level[top]), parent, ids[0], int(column))
        if best is None or rank > best[0]:
            best = (
                rank,
                float(level[top]),
                int(column),
                int(bins[top]),
                side,
                [fall[:, top] for fall in falls],
            )
            sets = own_sets
    if (
        best is None
        or best[0] == -np.inf
        or not best[1] > parent + abs(parent) * 2.0**-40
    ):
        return None
    _, _, column, bin, side, falls = best
    gains = [
        0.5 * (fall - now[:, 0]) * unit_of(q)
        for fall, now, q in zip(falls, fall_now, qs, strict=True)
    ]
    gain = 0.0
    for one in gains:
        total = 0.0
        for share_of_node in one:
            total = total + float(share_of_node)
        gain = gain + total
    if not gain > p["min_split_gain"]:
        return None
    if categories.many(p, column):
        return Split(gain, column, -1, side, gains[0], False, sets[bin]), gains
    return Split(gain, column, bin, side, gains[0]), gains


def fit(
    body: Ints, tail: Ints, q: Quantised, p: dict[str, Any]
) -> tuple[Floats, Floats]:
    """The value of a body's (n, 3) sums on the sums of a tail: N and D."""
    g = soft(body[:, 0].astype(np.float64), p["reg_alpha"] * q.gs)
    b = body[:, 1] + p["reg_lambda"] * q.hs
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(b > 0, g / b, 0.0)
    if p["max_delta_step"] > 0:
        limit = p["max_delta_step"] * q.gs / q.hs
        a = np.clip(a, -limit, limit)
    return a * tail[:, 0], (a * a) * tail[:, 1]


def forbidden(sides: list[list[Ints]], qs: list[Quantised], p: dict[str, Any]) -> Any:
    """(n_candidates): a side that holds rows of a node has too few, or too little
    weight, in the last model.
    """
    all_rows = [[side[:, -2:].sum(axis=1) for side in own] for own in sides]
    mean = [
        sum(own[i][..., 1] / q.hs for own, q in zip(all_rows, qs, strict=True))
        / len(qs)
        for i in (0, 1)
    ]
    least = p["min_samples_leaf"] * p["count_unit"] if p["min_samples_leaf"] > 1 else 0
    poor = np.zeros_like(mean[0], np.bool_)
    for i in (0, 1):
        poor |= (mean[i] < p["min_child_weight"]) | (all_rows[0][i][..., 2] < least)
    return ((mean[0] > 0) & (mean[1] > 0) & poor).any(axis=0)
