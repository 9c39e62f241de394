"""The executable specification: docs/NUMERICS.md in plain NumPy, section by section,
clear before fast.

A table, labels, parameters and weights enter `train`; trees (dicts of arrays, as the
core's) and start scores leave.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spec.reference import categories, samplers
from spec.reference import constraints as rules
from spec.reference import split_ranker as judging
from spec.reference.losses import OBJECTIVES, Fields, Objective, margin, softmax

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tree = dict[str, NDArray[Any]]

CUTS, ROWS, TREE_COLUMNS, LEVEL_COLUMNS, NODE_COLUMNS, HOLDOUT, FOLDS = range(1, 8)
SAMPLE = 200_000  # rows that cuts are taken from
BITS = {"narrow": 14, "wide": 30}
# Newton steps up to this are not tested: the loss is too flat there to tell
CLOSE = 1e-7
DEFAULTS: dict[str, Any] = {
    "objective": "squared_error",
    "n_estimators": 3,
    "learning_rate": 0.1,
    "grow_policy": "depthwise",
    "max_bins": 255,
    "min_samples_bin": 1,
    "max_depth": None,
    "max_leaves": None,
    "reg_lambda": 1.0,
    "reg_alpha": 0.0,
    "min_split_gain": 0.0,
    "max_delta_step": 0.0,
    "path_smooth": 0.0,
    "min_child_weight": 0.0,
    "min_samples_leaf": 1,
    "subsample": 1.0,
    "colsample_bytree": 1.0,
    "colsample_bylevel": 1.0,
    "colsample_bynode": 1.0,
    "precision": "auto",
    "seed": 0,
    "leaf_estimation": "auto",
    "leaf_iterations": 1,
    "hessian": "auto",
    "start": "auto",
    "line_search": "none",
    "ccp_alpha": 0.0,
    "pruning": "pre",
    "sampling": "uniform",
    "subsample_freq": 1,
    "subsample_by_class": None,
    "top_rate": 0.2,
    "other_rate": 0.1,
    "mvs_reg": "auto",
    "bagging_temperature": 1.0,
    **rules.DEFAULTS,
    **categories.DEFAULTS,
    **judging.DEFAULTS,
}


# ---- 1. Randomness -------------------------------------------------------------------


def fold(h: NDArray[np.uint64], v: Any) -> NDArray[np.uint64]:
    """NUMERICS 1: one more coordinate into a hash (arrays, because NumPy's scalars warn
    when they wrap).
    """
    x = h + np.uint64(0x9E3779B97F4A7C15) * (
        np.atleast_1d(np.asarray(v, np.uint64)) + np.uint64(1)
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw(seed: int, purpose: int, a: int, b: int, i: Ints) -> NDArray[np.uint64]:
    """NUMERICS 1: draw(key(seed, purpose, a, b), i)."""
    key = np.zeros(1, np.uint64)
    for coordinate in (seed, purpose, a, b):
        key = fold(key, coordinate)
    return fold(key, i)


def sample_columns(
    columns: Ints, fraction: float, seed: int, purpose: int, a: int, b: int
) -> Ints:
    """NUMERICS 6: the columns with the smallest draws, in ascending order."""
    k = max(1, math.floor(fraction * len(columns) + 0.5))
    order = np.lexsort((columns, draw(seed, purpose, a, b, columns)))
    return np.sort(columns[order[:k]])


# ---- 2. Weights ----------------------------------------------------------------------


class Weights(NamedTuple):
    """What a weight does to a row; rows of weight 0 have repeat = count = 0."""

    repeat: Ints  # W: multiplies quantised gradients
    factor: Floats  # multiplies gradients before quantisation
    count: Ints  # C: counts read C / 2^shift
    shift: int
    total: float  # the sum of weights


def weights(weight: Floats | None, n: int) -> Weights:
    """NUMERICS 2: whole weights repeat a row, real ones scale its gradient."""
    w = np.ones(n) if weight is None else np.asarray(weight, np.float64)
    live = (w > 0).astype(np.int64)
    if np.all(w == np.rint(w)) and w.max() <= 2**20 and w.sum() <= 2**31:
        return Weights(
            w.astype(np.int64), np.ones(n), w.astype(np.int64), 0, float(w.sum())
        )
    shift = 30 - exponent(w.max())
    count = np.maximum(np.rint(np.ldexp(w, shift)), 1).astype(np.int64) * live
    plain = Weights(live, np.ones(n), live, 0, math.nan)
    return Weights(live, w, count, shift, exact_sum(w, plain))


# ---- 3. Cuts -------------------------------------------------------------------------


def cuts(x: Floats, w: Weights, max_bins: int, min_samples_bin: int) -> Floats:
    """NUMERICS 3: the cut points of one column."""
    usable = ~np.isnan(x) & (w.count > 0)
    values = np.unique(x[usable])
    last = np.arange(len(values) - 1)  # the bins end after these values
    if len(values) > max_bins:
        rows = np.flatnonzero(w.count > 0)
        rows = rows[np.lexsort((rows, draw(0, CUTS, 0, 0, rows)))[:SAMPLE]]
        rows = rows[usable[rows]]
        values, inverse = np.unique(x[rows], return_inverse=True)
        mass = np.zeros(len(values), np.int64)
        np.add.at(mass, inverse, w.count[rows])
        if len(values) > max_bins:
            n = int(w.repeat[rows].sum())
            last = walk(mass.tolist(), min(max_bins, max(128, n // min_samples_bin)))
        else:
            last = np.arange(len(values) - 1)
    a = values[last]
    b = values[last + 1]
    with np.errstate(invalid="ignore"):
        middle = 0.5 * a + 0.5 * b
    return np.maximum(
        np.where((middle >= a) & (middle < b), middle, a), np.finfo(np.float64).min
    )


def walk(mass: list[int], max_bins: int) -> Ints:
    """NUMERICS 3: quantiles by a greedy walk; which values end a bin."""
    rest = sum(mass)
    bins = max_bins
    acc = 0
    last = []
    for j in range(len(mass) - 1):
        acc += mass[j]
        if bins > 1 and (acc * bins >= rest or mass[j + 1] * bins >= rest):
            last.append(j)
            rest = rest - acc
            bins = bins - 1
            acc = 0
    return np.array(last, np.int64)


def codes(x: Floats, cut: Floats) -> Ints:
    """NUMERICS 3: the number of cuts below each value; n_cuts + 1 where it is
    missing.
    """
    return np.where(np.isnan(x), len(cut) + 1, np.searchsorted(cut, x, side="left"))


# ---- 4. Fixed point ------------------------------------------------------------------


def exponent(m: float) -> int:
    """NUMERICS 4: e(m), the smallest integer with m <= 2^e."""
    if m == 0:
        return 0
    fraction, e = math.frexp(m)
    return max(e - (fraction == 0.5), -960)


def exact_sum(x: Floats, w: Weights) -> float:
    """NUMERICS 4: a 62-bit fixed-point sum, rounded once."""
    x = (x * w.factor)[w.repeat > 0]
    e = exponent(np.abs(x).max())
    q = np.rint(x * math.ldexp(1.0, 62 - e)).astype(np.int64)
    total = sum(int(a) * int(b) for a, b in zip(q, w.repeat[w.repeat > 0], strict=True))
    return float(total) * math.ldexp(1.0, e - 62)


class Quantised(NamedTuple):
    """Gradients in fixed point: (n_rows, 3) int64 of W*qg, W*qh, C, and the scales."""

    sums: Ints
    gs: float
    hs: float


def quantise(g: Floats, h: Floats, w: Weights, bits: int) -> Quantised:
    """NUMERICS 4: power-of-two scales from the maxima; h > 0 never becomes 0."""
    g = np.where(w.repeat > 0, g * w.factor, 0.0)
    h = np.where(w.repeat > 0, h * w.factor, 0.0)
    gs = math.ldexp(1.0, bits - exponent(np.abs(g).max()))
    hs = math.ldexp(1.0, bits - exponent(h.max()))
    qg = np.rint(g * gs).astype(np.int64)
    qh = np.rint(h * hs).astype(np.int64)
    qh[(h > 0) & (qh == 0)] = 1
    return Quantised(np.stack([w.repeat * qg, w.repeat * qh, w.count], axis=1), gs, hs)


def search_precision(g: Floats, h: Floats, w: Weights, precision: str) -> str:
    """NUMERICS 4: auto is narrow unless the narrow numbers would be small on average
    (heavy tails).
    """
    if precision != "auto":
        return precision
    narrow = np.abs(quantise(g, h, w, BITS["narrow"]).sums[:, :2]).sum(axis=0)
    return "narrow" if np.all(narrow >= 64 * w.repeat.sum()) else "wide"


# ---- 5. Gain -------------------------------------------------------------------------


def soft(g: Any, a: float) -> Any:
    """NUMERICS 5: S, the soft threshold; a zero is +0.0."""
    return np.where(g > a, g - a, np.where(g < -a, g + a, 0.0))


class Split(NamedTuple):
    """A rule, and what it gains in all and in each of its nodes."""

    gain: float
    column: int
    bin: int
    missing_left: bool
    gains: Floats
    forced: bool = False
    set: Ints | None = None  # the codes that go left, of a category split


def best_split(
    group: list[Ints],
    ids: list[int],
    columns: Ints,
    table: list[Ints],
    n_bins: list[int],
    q: Quantised,
    p: dict[str, Any],
    guard: rules.Guard,
    index: int,
    judge: judging.Judge,
) -> Split | None:
    """NUMERICS 5 and 6: the best rule for the rows of a group of nodes, if one is worth
    it.

    A symmetric level of one node follows the rules of the other growers, so one search
    serves all three.
    """
    # what it is compared by, its score, the split
    best: tuple[float, float, int, int, bool, Floats] | None = None
    sets: list[Ints] = []  # of the best column, if it is one of categories
    forced = guard.marks[ids[0]].forced
    found = False
    # (n_nodes, 1, 3)
    total = np.array([q.sums[rows].sum(axis=0) for rows in group])[:, None]
    own = (
        guard.scores(total, guard.weights(total, ids))
        if guard.ordered
        else score_of_nodes(total, q, p)
    )
    node_score = np.where(total[..., 1] == 0, 0.0, own)
    parent = judge.level(total)[0] if judge.cosine else in_order(node_score)[0]
    for column in columns:
        if categories.many(p, column):
            u = int(
                draw(p["seed"], rules.RANDOM_CUT, index, ids[0], np.array([column]))[0]
            )
            left, own, missing_left = categories.candidates(
                [q.sums[rows] for rows in group],
                [table[column][rows] for rows in group],
                n_bins[column],
                q,
                p,
                u,
            )
            penalty = categories.penalty(p, n_bins[column])
            every = np.arange(len(own))
            heavier = guard.under(penalty)
            under = (
                heavier.splits(left, total - left, ids, column, every)
                if guard.ordered
                else None
            )
            scores = score_of_splits(left, total, node_score, q, penalty, under)
            level = in_order(scores)
            if judge.cosine:
                level = judge.level(left, total - left, scores, penalty["reg_lambda"])
            if not len(level):
                continue
            top = int(np.argmax(level))
            rank = judge.favour(level[top], parent, ids[0], int(column))
            if best is None or rank > best[0]:
                sets = own
                best = (
                    rank,
                    level[top],
                    int(column),
                    top,
                    bool(missing_left[top]),
                    scores[:, top],
                )
            continue
        left, bins, missing_left = candidates(group, table[column], n_bins[column], q)
        if not len(bins):
            continue
        under = (
            guard.splits(left, total - left, ids, column, bins)
            if guard.ordered
            else None
        )
        scores = score_of_splits(left, total, node_score, q, p, under)
        level = (
            judge.level(left, total - left, scores)
            if judge.cosine
            else in_order(scores)
        )
        # NUMERICS, constraints: before all others
        if forced is not None and column == forced["feature"]:
            told = np.searchsorted(guard.cut[column], forced["threshold"])
            both = (left[0, :, 1] > 0) & (left[0, :, 1] < total[0, 0, 1])
            level = np.where((bins == told) & both, level, -np.inf)
            found = True
            if level.max() > -np.inf:
                top = int(np.argmax(level))
                best = (
                    np.inf,
                    level[top],
                    int(column),
                    int(bins[top]),
                    bool(missing_left[top]),
                    scores[:, top],
                )
                break
            level = (
                judge.level(left, total - left, scores)
                if judge.cosine
                else in_order(scores)
            )
            found = False
        if p["extra_trees"]:
            populated = np.unique(
                np.concatenate(
                    [table[column][rows[q.sums[rows, 1] > 0]] for rows in group]
                )
            )
            u = int(
                draw(p["seed"], rules.RANDOM_CUT, index, ids[0], np.array([column]))[0]
            )
            level = np.where(
                bins == guard.random_bin(populated.tolist(), n_bins[column], u),
                level,
                -np.inf,
            )
        top = int(np.argmax(level))  # the first of equals: lower bin, then missing left
        rank = judge.favour(level[top], parent, ids[0], int(column))
        if best is None or rank > best[0]:
            best = (
                rank,
                level[top],
                int(column),
                int(bins[top]),
                bool(missing_left[top]),
                scores[:, top],
            )
    if best is None or best[0] == -np.inf:
        return None
    _, score, column, bin, missing, scores = best
    unit = q.hs / (q.gs * q.gs)
    shares = 0.5 * (scores - node_score[:, 0]) * unit
    gain = (
        in_order(shares[:, None])[0] if judge.cosine else 0.5 * (score - parent) * unit
    )
    by_cosine = (
        judge.cosine and p["grow_policy"] == "symmetric" and p["min_split_gain"] == 0
    )
    enough = by_cosine or gain > p["min_split_gain"]
    if not found and not (score > parent + abs(parent) * 2.0**-40 and enough):
        return None
    gains = shares if p["grow_policy"] == "symmetric" else np.array([gain])
    if categories.many(p, column):
        return Split(gain, column, -1, missing, gains, found, sets[bin])
    return Split(gain, column, bin, missing, gains, found)


def in_order(scores: Floats) -> Floats:
    """NUMERICS 6: the sum over nodes in the order of their ids, from 0.0."""
    level = np.zeros(scores.shape[1])
    for node in scores:
        level = level + node
    return level


def candidates(
    group: list[Ints], code: Ints, n_bins: int, q: Quantised
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """NUMERICS 5: left sums (n_nodes, n_candidates, 3), bins and missing sides, in the
    order that settles ties.
    """
    histogram = np.zeros((len(group), n_bins + 1, 3), np.int64)
    for node, rows in enumerate(group):
        np.add.at(histogram[node], code[rows], q.sums[rows])
    below = np.cumsum(histogram[:, :-1], axis=1)
    missing = histogram[:, -1:]
    bins = np.arange(n_bins - 1)
    if missing[..., 1].sum() == 0:
        hessian = below[..., 1].sum(axis=0)
        return below[:, bins], bins, 2 * hessian[bins] >= hessian[-1]
    bins = np.append(np.repeat(bins, 2), n_bins - 1)
    missing_left = np.arange(len(bins)) % 2 == 0
    missing_left[-1] = False
    return below[:, bins] + missing * missing_left[:, None], bins, missing_left


def score_of_nodes(sums: Ints, q: Quantised, p: dict[str, Any]) -> Floats:
    """NUMERICS 5: p, or score(G, H) under max_delta_step."""
    t = soft(sums[..., 0].astype(np.float64), p["reg_alpha"] * q.gs)
    b = sums[..., 1] + p["reg_lambda"] * q.hs
    # empty nodes, replaced by the caller
    with np.errstate(divide="ignore", invalid="ignore"):
        if p["max_delta_step"] > 0:
            limit = p["max_delta_step"] * q.gs / q.hs
            step = np.clip(-t / b, -limit, limit)
            return -(2 * (t * step) + b * (step * step))
        return (t * t) / b


def score_of_splits(
    left: Ints,
    total: Ints,
    node_score: Floats,
    q: Quantised,
    p: dict[str, Any],
    under: Floats | None = None,
) -> Floats:
    """NUMERICS 5 and 6: s of every node and candidate, `under` bounds where given; -inf
    where a limit forbids it.
    """
    right = total - left
    if under is not None:
        s = under
    elif p["max_delta_step"] > 0:
        s = score_of_nodes(left, q, p) + score_of_nodes(right, q, p)
    else:
        tL, tR = (
            soft(side[..., 0].astype(np.float64), p["reg_alpha"] * q.gs)
            for side in (left, right)
        )
        bL, bR = (side[..., 1] + p["reg_lambda"] * q.hs for side in (left, right))
        # empty sides, replaced below
        with np.errstate(divide="ignore", invalid="ignore"):
            s = ((tL * tL) * bR + (tR * tR) * bL) / (bL * bR)
    least_hessian = p["min_child_weight"] * q.hs
    least_count = (
        p["min_samples_leaf"] * p["count_unit"] if p["min_samples_leaf"] > 1 else 0
    )
    for side in (left, right):
        s = np.where(
            (side[..., 1] < least_hessian) | (side[..., 2] < least_count), -np.inf, s
        )
    return np.where((left[..., 1] == 0) | (right[..., 1] == 0), node_score, s)


# ---- 6. Trees ------------------------------------------------------------------------

NODE = np.dtype(
    [
        ("column", "i4"),
        ("bin", "i4"),
        ("threshold", "f8"),
        ("missing_left", "u1"),
        ("left", "i4"),
        ("value", "f8"),
        ("gain", "f8"),
        ("cover", "f8"),
        ("count", "f8"),
        ("set", "i4"),
    ]
)


class Group(NamedTuple):
    """Nodes that are split by one rule: one node, or a whole level of a symmetric
    tree.
    """

    ids: list[int]
    depth: int
    split: Split


def grow(
    rows: Ints,
    table: list[Ints],
    cut: list[Floats],
    q: Quantised,
    wide: Quantised,
    p: dict[str, Any],
    index: int,
    search: Callable[..., Split | None] = best_split,
) -> Tree:
    """NUMERICS 6: one tree on the sampled rows, its values not yet shrunk.

    A frontier of groups; the policy says which is split next.
    """
    # without luck, on a model without trees
    p = {"deviation": 0.0, "used": frozenset()} | p
    n_bins = [categories.many(p, column) or len(c) + 1 for column, c in enumerate(cut)]
    tree_columns = sample_columns(
        np.arange(len(cut)), p["colsample_bytree"], p["seed"], TREE_COLUMNS, index, 0
    )
    members = [rows]  # of every node
    nodes: list[dict[str, Any]] = [{"column": -1, "bin": -1, "set": -1}]
    sets: dict[int, Ints] = {}  # by node
    frontier: list[Group] = []
    guard, judge = (
        rules.Guard(p, cut, n_bins, q.gs, q.hs),
        judging.Judge(p, q.gs, q.hs, index, draw, fold),
    )

    def meet(ids: list[int], depth: int) -> None:
        if p["max_depth"] is not None and depth >= p["max_depth"]:
            return
        columns = sample_columns(
            tree_columns, p["colsample_bylevel"], p["seed"], LEVEL_COLUMNS, index, depth
        )
        columns = guard.company(columns, ids[0])
        columns = sample_columns(
            columns, p["colsample_bynode"], p["seed"], NODE_COLUMNS, index, ids[0]
        )
        split = search(
            [members[i] for i in ids],
            ids,
            columns,
            table,
            n_bins,
            q,
            p,
            guard,
            index,
            judge,
        )
        if split is not None:
            frontier.append(Group(ids, depth, split))

    meet([0], 0)
    n_leaves = 1
    while frontier:
        best_first = p["grow_policy"] == "leafwise"
        rank = [
            math.inf if group.split.forced else group.split.gain for group in frontier
        ]
        nth = min(
            range(len(frontier)),
            key=lambda i: (-rank[i] if best_first else 0.0, frontier[i].ids),
        )
        ids, depth, split = frontier.pop(nth)
        n_leaves += len(ids)
        if p["max_leaves"] is not None and n_leaves > p["max_leaves"]:
            break
        for i, gain in zip(ids, split.gains, strict=True):
            code = table[split.column][members[i]]
            inside = (
                code <= split.bin if split.set is None else np.isin(code, split.set)
            )
            goes_left = np.where(
                code == n_bins[split.column], split.missing_left, inside
            )
            threshold = (
                np.append(cut[split.column], np.inf)[split.bin]
                if split.set is None
                else 0.0
            )
            if split.set is not None:
                sets[i] = split.set
            nodes[i] = {
                "column": split.column,
                "bin": split.bin,
                "threshold": threshold,
                "missing_left": split.missing_left,
                "left": len(nodes),
                "gain": gain,
                "l2": nodes[i].get("l2", p["reg_lambda"]),
            }
            members += [members[i][goes_left], members[i][~goes_left]]
            guard.inherit(
                i,
                len(nodes),
                split,
                *(q.sums[rows].sum(axis=0) for rows in members[-2:]),
            )
            judge.paths[len(nodes)] = judge.paths[len(nodes) + 1] = judge.paths[i] | {
                split.column
            }
            l2 = (
                categories.penalty(p, n_bins[split.column])["reg_lambda"]
                if split.set is not None
                else p["reg_lambda"]
            )
            nodes += [{"column": -1, "bin": -1, "set": -1, "l2": l2} for _ in range(2)]
        children = list(range(len(nodes) - 2 * len(ids), len(nodes)))
        if p["grow_policy"] == "symmetric":
            guard.settle(children)
        for group in (
            [children]
            if p["grow_policy"] == "symmetric"
            else [[child] for child in children]
        ):
            meet(group, depth + 1)
        if guard.intermediate:
            others = [
                i
                for i, node in enumerate(nodes)
                if node["column"] < 0 and i not in children
            ]
            for i in guard.tighten(others, children):
                stale = [group for group in frontier if group.ids == [i]]
                frontier = [group for group in frontier if group.ids != [i]]
                for group in stale:
                    meet([i], group.depth)

    smooth = p["path_smooth"]
    steps = {}
    for i, (node, inside) in enumerate(zip(nodes, members, strict=True)):
        G, H, C = (float(v) for v in wide.sums[inside].sum(axis=0))
        node["cover"], node["count"] = H / wide.hs, C / p["count_unit"]
        step = leaf_value(
            G, H, wide, p | {"reg_lambda": node.get("l2", p["reg_lambda"])}
        )
        if i > 0 and smooth > 0:
            step = (step * node["count"] + node["above"] * smooth) / (
                node["count"] + smooth
            )
        if node["column"] < 0:
            steps[i] = step
        else:
            nodes[node["left"]]["above"] = nodes[node["left"] + 1]["above"] = step
    for i, value in guard.cut_leaves(steps).items():
        nodes[i]["value"] = value
    number, arrays = categories.collect(sets)
    for i, node in enumerate(nodes):
        node["set"] = number.get(i, -1)
    return {
        name: np.array([node.get(name, 0) for node in nodes], NODE[name])
        for name in NODE.names or ()
    } | arrays


def leaf_value(G: float, H: float, wide: Quantised, p: dict[str, Any]) -> float:
    """NUMERICS 6: the Newton step from wide sums, before shrinkage."""
    b = H + p["reg_lambda"] * wide.hs
    if b == 0:
        return 0.0
    v = -float(soft(G, p["reg_alpha"] * wide.gs)) / b * (wide.hs / wide.gs)
    d = p["max_delta_step"]
    return min(max(v, -d), d) if d > 0 else v


# ---- 7. Objectives -------------------------------------------------------------------


def planes(objective: str, y: Floats) -> Floats:
    """NUMERICS 7: labels (n_outputs, n_rows): the columns of y or, for each class,
    whether it is the row's.
    """
    if OBJECTIVES[objective].labels == "a class index":
        return (y == np.arange(int(y.max()) + 1)[:, None]).astype(np.float64)
    return np.atleast_2d(y.T)


def start(goal: Objective, f: Fields, y: Floats, w: Weights) -> Floats:
    """NUMERICS 7: the constant scores (n_outputs) that minimise the loss."""
    base = np.array([exact_sum(label, w) / w.total for label in y])
    if goal.start is not None:
        return goal.start(base)
    for output, label in enumerate(y):
        all_rows = Rows(
            goal, f, np.zeros_like(label), label, np.zeros(len(label), np.int64), 1, w
        )
        d = (
            knot_quantiles(all_rows)
            if goal.knot
            else base[[output]] * (goal.link == "identity")
        )
        base[output] = (
            newton(all_rows, d, 100) if goal.steps > 0 and not goal.adaptive else d
        )[0]
    return base


def gradients(objective: str, f: Fields, s: Floats, y: Floats) -> tuple[Floats, Floats]:
    """NUMERICS 7: gradients and hessians, shaped as the scores (n_outputs, n_rows)."""
    return (
        softmax(s, y)
        if objective == "softmax"
        else OBJECTIVES[objective].grad_hess(s, y, f)
    )


# ---- 8. Leaf values ------------------------------------------------------------------


class Rows(NamedTuple):
    """One output of the rows in use (w.repeat > 0), by leaf; leaves are numbered in the
    order of nodes.
    """

    goal: Objective
    f: Fields
    score: Floats
    label: Floats
    leaf: Ints
    n_leaves: int
    w: Weights


def leaf_sums(r: Rows, d: Floats, losses: bool = True) -> tuple[Floats, Floats, Floats]:
    """NUMERICS 8: exact sums of loss, gradient and hessian at score + d[leaf]; a row
    not finite costs its leaf.
    """
    s = r.score + d[r.leaf]
    with np.errstate(all="ignore"):
        loss = r.goal.loss(s, r.label, r.f) if losses else np.zeros(len(s))
        x = np.stack([loss, *r.goal.grad_hess(s, r.label, r.f)]) * r.w.factor
    used = r.w.repeat > 0
    finite = np.isfinite(x).all(axis=0)
    sums = np.array([sum_by_leaf(np.where(finite, v, 0.0), r) for v in x])
    sums[0, r.leaf[used & ~finite]] = np.inf
    return sums[0], sums[1], sums[2]


def sum_by_leaf(x: Floats, r: Rows) -> Floats:
    """NUMERICS 8: the sums of section 4, with one scale for all leaves."""
    used = r.w.repeat > 0
    e = exponent(np.abs(x[used]).max(initial=0.0))
    totals = [0] * r.n_leaves
    for leaf, q, repeat in zip(
        r.leaf, np.rint(x * math.ldexp(1.0, 62 - e)), r.w.repeat, strict=True
    ):
        totals[leaf] += int(q) * int(repeat) if repeat else 0
    return np.array([float(total) * math.ldexp(1.0, e - 62) for total in totals])


def newton(
    r: Rows,
    d: Floats,
    iterations: int,
    penalty: Sequence[float] = (0.0, 0.0, 0.0),
    by_count: bool = False,
) -> Floats:
    """NUMERICS 8: Newton steps with backtracking from d; `by_count` has sums of weights
    in the place of hessians.
    """
    lam, alpha, limit, *damps = penalty  # damps: lam is no part of what is minimised
    draw = 0.0 if damps else lam
    slopes = bool(damps) and alpha == 0 and r.goal.convex
    count = sum_by_leaf(r.w.factor, r)
    here, *sums = leaf_sums(r, d, not slopes)
    for _ in range(iterations):
        G = sums[0]
        H = count if by_count else sums[1]
        with np.errstate(all="ignore"):
            to = np.where(
                H + lam == 0,
                d,
                -soft(G - (H + lam if damps else H) * d, alpha) / (H + lam),
            )
        to = np.clip(to, -limit, limit) if limit > 0 else to
        close = np.abs(to - d) <= CLOSE * np.maximum(1.0, np.abs(to))
        if close.all():
            return to
        there, *sums = leaf_sums(r, to, not slopes)
        tested = ~close & (to != d)
        if slopes:
            tested &= ~((there < np.inf) & (sums[0] * (to - d) <= 0))
            if tested.any():
                here = leaf_sums(r, d)[0]
                there, *sums = leaf_sums(r, to)
        worth = here + 0.5 * draw * d * d + alpha * np.abs(d)
        for halvings in range(11):
            worse = (
                tested
                & ~(there + 0.5 * draw * to * to + alpha * np.abs(to) <= worth)
                & (to != d)
            )
            if not worse.any():
                break
            to = np.where(worse, 0.5 * (d + to) if halvings < 10 else d, to)
            there, *sums = leaf_sums(r, to)
        d = to
        here = there
    return d


def knot_quantiles(r: Rows) -> Floats:
    """NUMERICS 8: of each leaf the step that minimises a piecewise linear loss."""
    assert r.goal.knot is not None
    at, mass, level = r.goal.knot(r.score, r.label, r.f)
    return weighted_quantiles(at, mass * r.w.factor, level, r)


def weighted_quantiles(
    at: Floats, mass: Floats, level: Floats, r: Rows, mirrored: Any = np.False_
) -> Floats:
    """NUMERICS 8: of each leaf the smallest `at` whose cumulated mass reaches the sum
    of mass * level.

    The level is 1 - level where `mirrored`. Levels other than 0 and 1 are one constant
    of the loss.
    """
    used = (r.w.repeat > 0) & (mass > 0)
    e = exponent(mass[used].max(initial=0.0))
    q = np.where(
        used,
        np.maximum(1, np.rint(mass * math.ldexp(1.0, 30 - e))).astype(np.int64)
        * r.w.repeat,
        0,
    )
    part = level[used & (level < 1)].max(initial=0.0)
    found = np.zeros(r.n_leaves)
    for leaf in np.unique(r.leaf[used]):
        inside = used & (r.leaf == leaf)
        whole = int(q[inside & (level == np.where(mirrored, 0, 1))].sum())
        between = inside & (level > 0) & (level < 1)
        share = part * float(q[between & ~mirrored].sum()) + (1 - part) * float(
            q[between & mirrored].sum()
        )
        order = np.flatnonzero(inside)[np.argsort(at[inside])]
        nth = np.searchsorted(np.cumsum(q[order]), max(1, whole + math.ceil(share)))
        found[leaf] = at[order][nth] + 0.0
    return found


def knot_spread(
    goal: Objective, f: Fields, score: Floats, label: Floats, w: Weights
) -> float:
    """NUMERICS 7: what an adaptive objective knows of this round, the f[0]-quantile of
    |knot| over all rows.
    """
    assert goal.knot is not None
    at, mass, _ = goal.knot(score, label, f)
    r = Rows(goal, f, score, label, np.zeros(len(label), np.int64), 1, w)
    level = np.full(len(label), f[0])
    size = np.abs(at)
    spread = float(weighted_quantiles(size, mass * w.factor, level, r)[0])
    return spread or float(
        weighted_quantiles(size, np.where(size == 0, 0.0, mass * w.factor), level, r)[0]
    )


def exact_values(r: Rows, p: dict[str, Any]) -> Floats:
    """NUMERICS 8: leaf_estimation="exact"."""
    if r.goal.knot is None:
        return newton(r, np.zeros(r.n_leaves), r.goal.steps, penalty_of(p))
    d = newton(r, knot_quantiles(r), r.goal.steps)
    limit = p["max_delta_step"]
    return np.clip(d, -limit, limit) if limit > 0 else d


def line_search(r: Rows, v: Floats) -> float:
    """NUMERICS 8: the factor on the leaf values v that minimises the loss."""
    if r.goal.knot is not None and r.goal.steps == 0:
        at, mass, level = r.goal.knot(r.score, r.label, r.f)
        step = v[r.leaf]
        with np.errstate(all="ignore"):  # rows of step 0 have no mass
            at = at / step
            mass = mass * r.w.factor * np.abs(step)
        one = r._replace(leaf=np.zeros_like(r.leaf), n_leaves=1)
        return float(weighted_quantiles(at, mass, level, one, step < 0)[0])

    def look(rho: float) -> tuple[float, float, float]:
        loss = slope = bend = 0.0
        for L, G, H, value in zip(*leaf_sums(r, rho * v), v, strict=True):
            loss = loss + L
            slope = slope + value * G
            bend = bend + (value * value) * H
        return float(loss), float(slope), float(bend)

    rho, (loss, slope, bend) = 0.0, look(0.0)
    for _ in range(100):
        to = rho if bend == 0 else rho - slope / bend
        if abs(to - rho) <= CLOSE * max(1.0, abs(to)):
            return to
        for halvings in range(12):
            there, *derivatives = look(to)
            if there <= loss or to == rho:
                break
            to = 0.5 * (rho + to) if halvings < 10 else rho
        rho, loss, (slope, bend) = to, there, derivatives
    return rho


def penalty_of(p: dict[str, Any]) -> tuple[float, ...]:
    return p["reg_lambda"], p["reg_alpha"], p["max_delta_step"]


def steps_of(p: dict[str, Any]) -> tuple[float, ...]:
    """The penalty of several steps, which reg_lambda damps."""
    return (*penalty_of(p), True) if p["leaf_iterations"] > 1 else penalty_of(p)


def leaf_values(step: Floats, r: Rows, tree: Tree, p: dict[str, Any]) -> Floats:
    """NUMERICS 8: by leaf, from the one-step values of section 6; before shrinkage."""
    method = r.goal.leaf if p["leaf_estimation"] == "auto" else p["leaf_estimation"]
    if method == "friedman":
        method = "exact" if p["hessian"] == "none" else "newton"
    if method == "exact":
        v = exact_values(r, p)
    elif p["leaf_iterations"] > 1 or p["ccp_alpha"] > 0:
        v = newton(
            r,
            np.zeros(r.n_leaves),
            p["leaf_iterations"],
            steps_of(p),
            by_count=method == "gradient",
        )
    else:
        v = step
    v = np.where(v > 0, 1.0, -1.0) if method == "sign" else v
    monotone = any(p["monotone_constraints"] or ())
    if monotone:
        refits = (
            method in ("exact", "sign")
            or p["leaf_iterations"] > 1
            or p["ccp_alpha"] > 0
        )
        if refits or p["monotone_method"] == "basic":
            v = rules.ordered(tree, v, p["monotone_constraints"], refits)
    if p["line_search"] == "none":
        return v
    return (max(line_search(r, v), 0.0) if monotone else line_search(r, v)) * v


# ---- 9. Pruning ----------------------------------------------------------------------


def prune(tree: Tree, alpha: float) -> Tree:
    """NUMERICS 9: cut the weakest link while it is no stronger than alpha; nodes keep
    their order.
    """
    left = tree["left"]
    split = left > 0
    alive = np.ones(len(left), np.bool_)
    while True:
        cost = np.where(split, 2.0 * tree["gain"] / tree["count"][0], 0.0)
        n_leaves = np.ones(len(left))
        for node in np.flatnonzero(split)[::-1]:
            both = slice(left[node], left[node] + 2)
            cost[node], n_leaves[node] = (
                cost[node] + cost[both].sum(),
                n_leaves[both].sum(),
            )
        strength = np.where(split, cost / np.maximum(n_leaves - 1, 1), np.inf)
        weakest = strength.argmin()
        if strength[weakest] > alpha:
            break
        split[weakest] = False
        for node in np.flatnonzero(left):
            alive[left[node] : left[node] + 2] = alive[node] & split[node]
        split &= alive
    place = np.cumsum(alive) - 1
    blank = {
        "column": -1,
        "bin": -1,
        "threshold": 0,
        "missing_left": 0,
        "left": 0,
        "gain": 0,
        "set": -1,
    }
    pruned = tree | {"left": place[left].astype(left.dtype)}
    for name, value in blank.items():
        pruned[name] = np.where(
            split, pruned[name], np.array(value, pruned[name].dtype)
        )
    return categories.renumbered(
        tree, {name: pruned[name][alive] for name in NODE.names or ()}
    )


# ---- 10. Samplers --------------------------------------------------------------------


def sample(
    p: dict[str, Any], round: int, g: Floats, w: Weights, y: Floats
) -> Floats | None:
    """NUMERICS 10: how often every row counts, from gradients (n_outputs, n_rows);
    None: nobody was drawn.
    """
    if p["sampling"] == "goss" and round < int(1 / rate(p["learning_rate"], round)):
        return None
    once = w._replace(repeat=(w.repeat > 0).astype(np.int64))
    outputs = []
    for one in g:
        wide, narrow = (quantise(one, one, once, bits) for bits in (30, 14))
        outputs.append(
            samplers.Output(wide.sums[:, 0], narrow.sums[:, 0], 30 - exponent(wide.gs))
        )
    turn = round - round % p["subsample_freq"]
    return samplers.ask(
        {"group": None} | p,
        outputs,
        w.repeat,
        lambda b, i: draw(p["seed"], ROWS, turn, b, i),
        exponent,
        y,
    )


def counted(g: Floats, h: Floats, w: Weights, times: Floats) -> tuple[Floats, Floats]:
    """NUMERICS 10: what wide gradients say, times how often their rows count; weights
    are in them.
    """
    once = quantise(
        g, h, w._replace(repeat=(w.repeat > 0).astype(np.int64)), BITS["wide"]
    )
    return once.sums[:, 0] * times / once.gs, once.sums[:, 1] * times / once.hs


# ---- The loop ------------------------------------------------------------------------


class Ready(NamedTuple):
    """What the tree of one output grows from; deviation: of its luck, in the units of
    q; w: of the rows in use.
    """

    q: Quantised
    wide: Quantised
    deviation: float
    w: Weights


def train(
    X: Floats,
    y: Floats,
    params: dict[str, Any],
    weight: Floats | None = None,
    join: Callable[[list[Ready]], list[Any]] | None = None,
) -> tuple[list[Tree], Floats]:
    """All trees (round by round, output by output) and the start scores (n_outputs).

    `join`: for every output a search in the place of `best_split`, from what all of
    them grow from.
    """
    w = weights(weight, len(X))
    p = DEFAULTS | params | {"count_unit": math.ldexp(1.0, w.shift)}
    numbers = [not categories.many(p, column) for column in range(X.shape[1])]
    cut = [
        cuts(x, w, p["max_bins"], p["min_samples_bin"]) if n else x[:0]
        for x, n in zip(X.T, numbers, strict=True)
    ]
    table = [
        codes(x, c)
        if n
        else np.where(np.isnan(x), categories.many(p, column), x).astype(np.int64)
        for column, (x, c, n) in enumerate(zip(X.T, cut, numbers, strict=True))
    ]
    goal, label = OBJECTIVES[p["objective"]], planes(p["objective"], y)
    f = tuple(p.get(name, default) for name, default in goal.fields.items())
    base = (
        start(goal, f, label, w)
        if p["start"] == "auto"
        else np.broadcast_to(np.float64(p["start"]), len(label))
    )
    scores = np.repeat(base[:, None], len(X), axis=1)
    trees: list[Tree] = []
    used: set[int] = set()  # columns
    for round in range(p["n_estimators"]):
        if goal.adaptive:
            f = (*f[: len(goal.fields)], knot_spread(goal, f, scores[0], label[0], w))
        before = scores.copy()
        every_g, every_h = gradients(p["objective"], f, before, label)
        times = sample(p, round, every_g, w, y)
        rows = np.arange(len(X)) if times is None else np.flatnonzero(times)
        weighed = times is not None and p["sampling"] != "uniform"
        asked = (
            w
            if times is None
            else w._replace(
                repeat=np.where(times > 0, w.repeat, 0), factor=w.factor * times
            )
        )
        plain = asked._replace(factor=np.ones(len(X))) if weighed else w
        ready: list[Ready] = []
        for g, h in zip(every_g, every_h, strict=True):
            leaf_h = np.ones_like(h) if p["leaf_estimation"] == "gradient" else h
            search_h = np.ones_like(h) if p["hessian"] == "none" else leaf_h
            search_g = leaf_g = g
            all_rows = quantise(
                g,
                search_h,
                w._replace(repeat=(w.repeat > 0).astype(np.int64)),
                BITS["wide"],
            )
            chance = judging.deviation(
                p, round, rate(p["learning_rate"], round), all_rows.sums, w.repeat
            )
            if weighed and times is not None:
                search_g, search_h = counted(g, search_h, w, times)
                leaf_g, leaf_h = counted(g, leaf_h, w, times)
            wide = quantise(leaf_g, leaf_h, plain, BITS["wide"])
            q = quantise(
                search_g,
                search_h,
                plain,
                BITS[search_precision(search_g, search_h, plain, p["precision"])],
            )
            chance = chance * math.sqrt(
                (q.gs / all_rows.gs) * (q.gs / all_rows.gs) / (q.hs / all_rows.hs)
            )
            ready.append(Ready(q, wide, chance, plain))
        searches = [best_split] * len(ready) if join is None else join(ready)
        for output, (q, wide, chance, _) in enumerate(ready):
            now = p | {"deviation": chance, "used": used}
            index = round * len(label) + (output if join is None else 0)
            tree = grow(rows, table, cut, q, wide, now, index, searches[output])
            tree = prune(tree, p["ccp_alpha"]) if p["ccp_alpha"] > 0 else tree
            number = np.cumsum(tree["column"] < 0) - 1  # of every leaf
            along = (
                margin(before, output)
                if p["objective"] == "softmax"
                else before[output]
            )
            r = Rows(
                goal,
                f,
                along,
                label[output],
                number[leaves(tree, X)],
                number[-1] + 1,
                asked,
            )
            step = tree["value"][tree["column"] < 0]
            tree["value"][tree["column"] < 0] = rate(
                p["learning_rate"], round
            ) * leaf_values(step, r, tree, p)
            scores[output] += tree["value"][leaves(tree, X)]
            trees.append(tree)
        used = used | {
            int(column)
            for tree in trees[-len(label) :]
            for column in tree["column"]
            if column >= 0
        }
    return trees, base


def rate(learning_rate: Any, round: int) -> float:
    """A number, one a round, or a function of the round."""
    if callable(learning_rate):
        return float(learning_rate(round))
    return float(
        learning_rate[round] if isinstance(learning_rate, Sequence) else learning_rate
    )


def leaves(tree: Tree, X: Floats) -> Ints:
    """NUMERICS 3: the leaf of every row, from thresholds."""
    node = np.zeros(len(X), np.int64)
    while np.any(inner := tree["column"][node] >= 0):
        x = X[np.arange(len(X)), tree["column"][node]]
        inside = categories.among(tree, node, x, x <= tree["threshold"][node])
        goes_left = np.where(np.isnan(x), tree["missing_left"][node] == 1, inside)
        node = np.where(inner, tree["left"][node] + ~goes_left, node)
    return node


def predict_raw(trees: Sequence[Tree], base: Floats, X: Floats) -> Floats:
    """NUMERICS 7: (n_rows, n_outputs) scores; each row adds leaf values in tree
    order.
    """
    scores = np.repeat(base[None, :], len(X), axis=0)
    for index, tree in enumerate(trees):
        scores[:, index % len(base)] += tree["value"][leaves(tree, X)]
    return scores
