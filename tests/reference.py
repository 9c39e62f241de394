"""The executable specification: docs/NUMERICS.md in plain NumPy, section by section, clear before fast.

A table, labels, parameters and weights enter `train`; trees (dicts of arrays, as the core's) and start scores leave.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference_real import exp, log, sigmoid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tree = dict[str, NDArray[Any]]

CUTS, ROWS, TREE_COLUMNS, LEVEL_COLUMNS, NODE_COLUMNS, HOLDOUT, FOLDS = range(1, 8)
SAMPLE = 200_000  # rows that cuts are taken from
BITS = {"narrow": 14, "wide": 30}
DEFAULTS: dict[str, Any] = {
    "objective": "squared_error", "n_estimators": 3, "learning_rate": 0.1, "grow_policy": "depthwise", "max_bins": 255,
    "min_samples_bin": 1, "max_depth": None, "max_leaves": None, "reg_lambda": 1.0, "reg_alpha": 0.0,
    "min_split_gain": 0.0, "max_delta_step": 0.0, "path_smooth": 0.0, "min_child_weight": 0.0, "min_samples_leaf": 1,
    "subsample": 1.0, "colsample_bytree": 1.0, "colsample_bylevel": 1.0, "colsample_bynode": 1.0, "precision": "auto",
    "seed": 0,
}  # fmt: skip


# ---- 1. Randomness --------------------------------------------------------------------------------------------------


def fold(h: NDArray[np.uint64], v: Any) -> NDArray[np.uint64]:
    """NUMERICS 1: one more coordinate into a hash (arrays, because NumPy's scalars warn when they wrap)."""
    x = h + np.uint64(0x9E3779B97F4A7C15) * (np.atleast_1d(np.asarray(v, np.uint64)) + np.uint64(1))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw(seed: int, purpose: int, a: int, b: int, i: Ints) -> NDArray[np.uint64]:
    """NUMERICS 1: draw(key(seed, purpose, a, b), i)."""
    key = np.zeros(1, np.uint64)
    for coordinate in (seed, purpose, a, b):
        key = fold(key, coordinate)
    return fold(key, i)


def sample_rows(seed: int, round: int, subsample: float, n: int) -> Ints:
    """NUMERICS 6: the rows of a round."""
    rows = np.arange(n)
    if subsample == 1:
        return rows
    return rows[draw(seed, ROWS, round, 0, rows) < np.uint64(math.floor(subsample * 2.0**64))]


def sample_columns(columns: Ints, fraction: float, seed: int, purpose: int, a: int, b: int) -> Ints:
    """NUMERICS 6: the columns with the smallest draws, in ascending order."""
    k = max(1, math.floor(fraction * len(columns) + 0.5))
    order = np.lexsort((columns, draw(seed, purpose, a, b, columns)))
    return np.sort(columns[order[:k]])


# ---- 2. Weights -----------------------------------------------------------------------------------------------------


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
        return Weights(w.astype(np.int64), np.ones(n), w.astype(np.int64), 0, float(w.sum()))
    shift = 30 - exponent(w.max())
    count = np.maximum(np.rint(np.ldexp(w, shift)), 1).astype(np.int64) * live
    plain = Weights(live, np.ones(n), live, 0, math.nan)
    return Weights(live, w, count, shift, exact_sum(w, plain))


# ---- 3. Cuts --------------------------------------------------------------------------------------------------------


def cuts(x: Floats, w: Weights, max_bins: int, min_samples_bin: int) -> Floats:
    """NUMERICS 3: the cut points of one column."""
    usable = np.isfinite(x) & (w.count > 0)
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
            last = walk(mass.tolist(), min(max_bins, max(16, n // min_samples_bin)))
        else:
            last = np.arange(len(values) - 1)
    a, b = values[last], values[last + 1]
    middle = 0.5 * a + 0.5 * b
    return np.where((middle < a) | (middle >= b), a, middle)


def walk(mass: list[int], max_bins: int) -> Ints:
    """NUMERICS 3: quantiles by a greedy walk; which values end a bin."""
    rest, bins, acc, last = sum(mass), max_bins, 0, []
    for j in range(len(mass) - 1):
        acc += mass[j]
        if bins > 1 and (acc * bins >= rest or mass[j + 1] * bins >= rest):
            last.append(j)
            rest, bins, acc = rest - acc, bins - 1, 0
    return np.array(last, np.int64)


def codes(x: Floats, cut: Floats) -> Ints:
    """NUMERICS 3: the number of cuts below each value; n_cuts + 1 where it is missing."""
    return np.where(np.isnan(x), len(cut) + 1, np.searchsorted(cut, x, side="left"))


# ---- 4. Fixed point -------------------------------------------------------------------------------------------------


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
    g, h = np.where(w.repeat > 0, g * w.factor, 0.0), np.where(w.repeat > 0, h * w.factor, 0.0)
    gs, hs = math.ldexp(1.0, bits - exponent(np.abs(g).max())), math.ldexp(1.0, bits - exponent(h.max()))
    qg, qh = np.rint(g * gs).astype(np.int64), np.rint(h * hs).astype(np.int64)
    qh[(h > 0) & (qh == 0)] = 1
    return Quantised(np.stack([w.repeat * qg, w.repeat * qh, w.count], axis=1), gs, hs)


def search_precision(g: Floats, h: Floats, w: Weights, precision: str) -> str:
    """NUMERICS 4: auto is narrow unless the narrow numbers would be small on average (heavy tails)."""
    if precision != "auto":
        return precision
    narrow = np.abs(quantise(g, h, w, BITS["narrow"]).sums[:, :2]).sum(axis=0)
    return "narrow" if np.all(narrow >= 64 * w.repeat.sum()) else "wide"


# ---- 5. Gain --------------------------------------------------------------------------------------------------------


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


def best_split(
    group: list[Ints], columns: Ints, table: list[Ints], n_bins: list[int], q: Quantised, p: dict[str, Any]
) -> Split | None:
    """NUMERICS 5 and 6: the best rule for the rows of a group of nodes, if one is worth it.

    A symmetric level of one node follows the rules of the other growers, so one search serves all three.
    """
    best: tuple[float, int, int, bool, Floats] | None = None
    total = np.array([q.sums[rows].sum(axis=0) for rows in group])[:, None]  # (n_nodes, 1, 3)
    node_score = np.where(total[..., 1] == 0, 0.0, score_of_nodes(total, q, p))
    for column in columns:
        left, bins, missing_left = candidates(group, table[column], n_bins[column], q)
        if not len(bins):
            continue
        scores = score_of_splits(left, total, node_score, q, p)
        level = in_order(scores)
        top = int(np.argmax(level))  # the first of equals: lower bin, then missing left
        if best is None or level[top] > best[0]:
            best = level[top], int(column), int(bins[top]), bool(missing_left[top]), scores[:, top]
    if best is None:
        return None
    score, column, bin, missing, scores = best
    parent = in_order(node_score)[0]
    unit = q.hs / (q.gs * q.gs)
    gain = 0.5 * (score - parent) * unit - p["min_split_gain"]
    if not (score > parent * (1 + 2.0**-40) and gain > 0):
        return None
    shares = 0.5 * (scores - node_score[:, 0]) * unit
    return Split(gain, column, bin, missing, shares if p["grow_policy"] == "symmetric" else np.array([gain]))


def in_order(scores: Floats) -> Floats:
    """NUMERICS 6: the sum over nodes in the order of their ids, from 0.0."""
    level = np.zeros(scores.shape[1])
    for node in scores:
        level = level + node
    return level


def candidates(group: list[Ints], code: Ints, n_bins: int, q: Quantised) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """NUMERICS 5: left sums (n_nodes, n_candidates, 3), bins and missing sides, in the order that settles ties."""
    histogram = np.zeros((len(group), n_bins + 1, 3), np.int64)
    for node, rows in enumerate(group):
        np.add.at(histogram[node], code[rows], q.sums[rows])
    below, missing = np.cumsum(histogram[:, :-1], axis=1), histogram[:, -1:]
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
    t, b = soft(sums[..., 0].astype(np.float64), p["reg_alpha"] * q.gs), sums[..., 1] + p["reg_lambda"] * q.hs
    with np.errstate(divide="ignore", invalid="ignore"):  # empty nodes, replaced by the caller
        if p["max_delta_step"] > 0:
            limit = p["max_delta_step"] * q.gs / q.hs
            step = np.clip(-t / b, -limit, limit)
            return -(2 * (t * step) + b * (step * step))
        return (t * t) / b


def score_of_splits(left: Ints, total: Ints, node_score: Floats, q: Quantised, p: dict[str, Any]) -> Floats:
    """NUMERICS 5 and 6: s of every node and candidate; -inf where a limit forbids it."""
    right = total - left
    if p["max_delta_step"] > 0:
        s = score_of_nodes(left, q, p) + score_of_nodes(right, q, p)
    else:
        tL, tR = (soft(side[..., 0].astype(np.float64), p["reg_alpha"] * q.gs) for side in (left, right))
        bL, bR = (side[..., 1] + p["reg_lambda"] * q.hs for side in (left, right))
        with np.errstate(divide="ignore", invalid="ignore"):  # empty sides, replaced below
            s = ((tL * tL) * bR + (tR * tR) * bL) / (bL * bR)
    least_hessian = p["min_child_weight"] * q.hs
    least_count = p["min_samples_leaf"] * p["count_unit"] if p["min_samples_leaf"] > 1 else 0
    for side in (left, right):
        s = np.where((side[..., 1] < least_hessian) | (side[..., 2] < least_count), -np.inf, s)
    return np.where((left[..., 1] == 0) | (right[..., 1] == 0), node_score, s)


# ---- 6. Trees -------------------------------------------------------------------------------------------------------

NODE = np.dtype([("column", "i4"), ("bin", "i4"), ("threshold", "f8"), ("missing_left", "u1"), ("left", "i4"),
                 ("value", "f8"), ("gain", "f8"), ("cover", "f8"), ("count", "f8")])  # fmt: skip


class Group(NamedTuple):
    """Nodes that are split by one rule: one node, or a whole level of a symmetric tree."""

    ids: list[int]
    depth: int
    split: Split


def grow(
    rows: Ints, table: list[Ints], cut: list[Floats], q: Quantised, wide: Quantised, p: dict[str, Any], index: int
) -> Tree:
    """NUMERICS 6: one tree on the sampled rows. A frontier of groups; the policy says which is split next."""
    n_bins = [len(c) + 1 for c in cut]
    tree_columns = sample_columns(np.arange(len(cut)), p["colsample_bytree"], p["seed"], TREE_COLUMNS, index, 0)
    members = [rows]  # of every node
    nodes: list[dict[str, Any]] = [{"column": -1, "bin": -1}]
    frontier: list[Group] = []

    def meet(ids: list[int], depth: int) -> None:
        if p["max_depth"] is not None and depth >= p["max_depth"]:
            return
        columns = sample_columns(tree_columns, p["colsample_bylevel"], p["seed"], LEVEL_COLUMNS, index, depth)
        columns = sample_columns(columns, p["colsample_bynode"], p["seed"], NODE_COLUMNS, index, ids[0])
        split = best_split([members[i] for i in ids], columns, table, n_bins, q, p)
        if split is not None:
            frontier.append(Group(ids, depth, split))

    meet([0], 0)
    n_leaves = 1
    while frontier:
        best_first = p["grow_policy"] == "leafwise"
        nth = min(range(len(frontier)), key=lambda i: (-frontier[i].split.gain if best_first else 0.0, frontier[i].ids))
        ids, depth, split = frontier.pop(nth)
        n_leaves += len(ids)
        if p["max_leaves"] is not None and n_leaves > p["max_leaves"]:
            break
        for i, gain in zip(ids, split.gains, strict=True):
            code = table[split.column][members[i]]
            goes_left = np.where(code == n_bins[split.column], split.missing_left, code <= split.bin)
            threshold = np.append(cut[split.column], np.inf)[split.bin]
            nodes[i] = {"column": split.column, "bin": split.bin, "threshold": threshold,
                        "missing_left": split.missing_left, "left": len(nodes), "gain": gain}  # fmt: skip
            members += [members[i][goes_left], members[i][~goes_left]]
            nodes += [{"column": -1, "bin": -1}, {"column": -1, "bin": -1}]
        children = list(range(len(nodes) - 2 * len(ids), len(nodes)))
        for group in [children] if p["grow_policy"] == "symmetric" else [[child] for child in children]:
            meet(group, depth + 1)

    smooth = p["path_smooth"]
    for i, (node, inside) in enumerate(zip(nodes, members, strict=True)):
        G, H, C = (float(v) for v in wide.sums[inside].sum(axis=0))
        node["cover"], node["count"] = H / wide.hs, C / p["count_unit"]
        step = leaf_value(G, H, wide, p)
        if i > 0 and smooth > 0:
            step = (step * node["count"] + node["above"] * smooth) / (node["count"] + smooth)
        if node["column"] < 0:
            node["value"] = p["learning_rate"] * step
        else:
            nodes[node["left"]]["above"] = nodes[node["left"] + 1]["above"] = step
    return {name: np.array([node.get(name, 0) for node in nodes], NODE[name]) for name in NODE.names or ()}


def leaf_value(G: float, H: float, wide: Quantised, p: dict[str, Any]) -> float:
    """NUMERICS 6: the Newton step from wide sums, before shrinkage."""
    b = H + p["reg_lambda"] * wide.hs
    if b == 0:
        return 0.0
    v = -float(soft(G, p["reg_alpha"] * wide.gs)) / b * (wide.hs / wide.gs)
    d = p["max_delta_step"]
    return min(max(v, -d), d) if d > 0 else v


# ---- 7. Objectives --------------------------------------------------------------------------------------------------


def start(objective: str, y: Floats, w: Weights, n_outputs: int) -> Floats:
    """NUMERICS 7: the constant scores (n_outputs) that minimise the loss."""
    if objective == "softmax":
        shares = [exact_sum((y == k).astype(np.float64), w) / w.total for k in range(n_outputs)]
        return log(np.maximum(np.array(shares), 1e-15))
    mean = np.array([exact_sum(y, w) / w.total])
    if objective == "squared_error":
        return mean
    p = np.clip(mean, 1e-15, 1 - 1e-15)
    return log(p / (1 - p))


def gradients(objective: str, s: Floats, y: Floats) -> tuple[Floats, Floats]:
    """NUMERICS 7: gradients and hessians, shaped as the scores (n_outputs, n_rows)."""
    if objective == "squared_error":
        return s - y, np.ones_like(s)
    if objective == "logistic":
        p = sigmoid(s)
        return p - y, np.maximum(p * (1 - p), 1e-16)
    p, n_outputs = softmax(s), len(s)
    hit = (y == np.arange(n_outputs)[:, None]).astype(np.float64)
    return p - hit, np.maximum(n_outputs / (n_outputs - 1) * (p * (1 - p)), 1e-16)


def softmax(s: Floats) -> Floats:
    """NUMERICS 7: shares of the outputs, added in their order."""
    z = exp(s - s.max(axis=0))
    t = z[0]
    for k in range(1, len(z)):
        t = t + z[k]
    return z / t


# ---- The loop -------------------------------------------------------------------------------------------------------


def train(X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None) -> tuple[list[Tree], Floats]:
    """All trees (round by round, output by output) and the start scores (n_outputs)."""
    w = weights(weight, len(X))
    p = DEFAULTS | params | {"count_unit": math.ldexp(1.0, w.shift)}
    cut = [cuts(x, w, p["max_bins"], p["min_samples_bin"]) for x in X.T]
    table = [codes(x, c) for x, c in zip(X.T, cut, strict=True)]
    n_outputs = int(y.max()) + 1 if p["objective"] == "softmax" else 1
    base = start(p["objective"], y, w, n_outputs)
    scores = np.repeat(base[:, None], len(X), axis=1)
    trees: list[Tree] = []
    for round in range(p["n_estimators"]):
        rows = sample_rows(p["seed"], round, p["subsample"], len(X))
        for output, (g, h) in enumerate(zip(*gradients(p["objective"], scores, y), strict=True)):
            wide = quantise(g, h, w, BITS["wide"])
            q = quantise(g, h, w, BITS[search_precision(g, h, w, p["precision"])])
            trees.append(grow(rows, table, cut, q, wide, p, round * n_outputs + output))
            scores[output] += trees[-1]["value"][leaves(trees[-1], X)]
    return trees, base


def leaves(tree: Tree, X: Floats) -> Ints:
    """NUMERICS 3: the leaf of every row, from thresholds."""
    node = np.zeros(len(X), np.int64)
    while np.any(inner := tree["column"][node] >= 0):
        x = X[np.arange(len(X)), tree["column"][node]]
        goes_left = np.where(np.isnan(x), tree["missing_left"][node] == 1, x <= tree["threshold"][node])
        node = np.where(inner, tree["left"][node] + ~goes_left, node)
    return node


def predict_raw(trees: Sequence[Tree], base: Floats, X: Floats) -> Floats:
    """NUMERICS 7: (n_rows, n_outputs) scores; each row adds leaf values in tree order."""
    scores = np.repeat(base[None, :], len(X), axis=0)
    for index, tree in enumerate(trees):
        scores[:, index % len(base)] += tree["value"][leaves(tree, X)]
    return scores
