"""The executable specification of linear leaves: NUMERICS, Linear leaves, in plain
NumPy and Python's integers.

A table, labels, parameters and weights enter `train`; trees with the terms of leaves,
start scores and scores leave.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spec import reference
from spec.reference import BITS, Floats, Ints, Quantised, Tree, Weights, ensembles

DEFAULTS: dict[str, Any] = ensembles.DEFAULTS | {
    "linear_smooth": 20.0,
    "linear_units": "raw",
}
LAMBDA = {"raw": 0.0, "standard": 1.0}
DEPENDENT = 2.0**-30
# leaf -> columns (-1: the constant) and coefficients
Terms = dict[int, tuple[list[int], list[float]]]


class Units(NamedTuple):
    """The columns as linear leaves in standard units read them."""

    bounds: Floats  # (n_columns, 3) low, high, mean
    unit: Floats  # (n_columns) 0: no coefficient
    quantum: list[float]  # of the fixed point of each column
    value: Floats  # (n_rows, n_columns) as they enter lines
    q: Ints  # (n_rows, n_columns) in fixed point


def standard(X: Floats, table: list[Ints], cut: list[Floats], w: Weights) -> Units:
    """NUMERICS, Linear leaves: bounds, means, deviations and fixed point of every
    column.
    """
    bounds = np.zeros((X.shape[1], 3))
    unit = np.zeros(X.shape[1])
    quantum = [1.0] * X.shape[1]
    value = np.zeros_like(X)
    q = np.zeros(X.shape, np.int64)
    for j, (x, code) in enumerate(zip(X.T, table, strict=True)):
        live = ~np.isnan(x) & (w.count > 0)
        count = [
            int(w.count[live & np.isfinite(x) & (code == k)].sum())
            for k in range(len(cut[j]) + 1)
        ]
        last = -1
        first = len(count)
        while 512 * sum(count[: last + 1]) < sum(count):
            last += 1
        while 512 * sum(count[first:]) < sum(count):
            first -= 1
        outer = [
            live & np.isfinite(x) & inside for inside in (code <= last, code >= first)
        ]
        if not all(rows.any() for rows in outer):
            continue
        low, high = (mean_of(x[rows], w.count[rows]) for rows in outer)
        if not low < high:
            continue
        c = 0.5 * low + 0.5 * high
        e = reference.exponent(max(high - c, c - low))
        steps = [
            int(v)
            for v in np.rint(
                (np.clip(x[live], low, high) - c) * math.ldexp(1.0, 30 - e)
            )
        ]
        weight = [int(v) for v in w.count[live]]
        n = float(sum(weight))
        mean = float(sum(a * b for a, b in zip(steps, weight, strict=True))) / n
        variance = (
            float(sum(a * a * b for a, b in zip(steps, weight, strict=True))) / n
            - mean * mean
        )
        deviation = (
            math.sqrt(variance) * math.ldexp(1.0, e - 30) if variance > 0 else 0.0
        )
        if deviation == 0:
            continue
        mean = min(max(c + mean * math.ldexp(1.0, e - 30), low), high)
        bounds[j] = low, high, mean
        value[:, j] = np.where(np.isnan(x), mean, np.clip(x, low, high))
        with np.errstate(over="ignore"):
            far = max(high - mean, mean - low)
        if math.isfinite(far):
            e, unit[j] = reference.exponent(far), deviation
            quantum[j] = math.ldexp(1.0, e - 13)
            q[:, j] = np.rint((value[:, j] - mean) * math.ldexp(1.0, 13 - e)).astype(
                np.int64
            )
    return Units(bounds, unit, quantum, value, q)


def mean_of(x: Floats, count: Ints) -> float:
    """The mean by counts, of values in fixed point."""
    e = reference.exponent(np.abs(x).max())
    total = sum(
        int(a) * int(b)
        for a, b in zip(np.rint(x * math.ldexp(1.0, 62 - e)), count, strict=True)
    )
    return float(total) / float(int(count.sum())) * math.ldexp(1.0, e - 62)


def train(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> tuple[list[tuple[Tree, Terms]], Floats, Floats]:
    """All trees (round by round, copy by copy, output by output), start scores, and
    scores (n_outputs, n_rows).
    """
    w, p, cut, table, label, base = ensembles.begin(X, y, DEFAULTS | params, weight)
    p = {"linear_lambda": LAMBDA[p["linear_units"]]} | p
    units = standard(X, table, cut, w) if p["linear_units"] == "standard" else None
    Z = X if units is None else units.value
    start = np.repeat(base[:, None], len(X), axis=1)
    rounds: list[list[tuple[Tree, Terms]]] = []
    factors: list[float] = []
    for m in range(p["n_estimators"]):
        dropped = ensembles.drops(p, m, factors) if p["boosting"] == "dart" else []
        kept = [i for i in range(m) if i not in dropped]
        before = start
        if p["boosting"] != "forest":
            before = total(
                start, [rounds[i] for i in kept], [factors[i] for i in kept], X, Z
            )
        rate = (
            1.0 if p["boosting"] == "forest" else reference.rate(p["learning_rate"], m)
        )
        n_copies = p["n_parallel_trees"]
        first = 0 if p["boosting"] == "forest" else 1
        rounds.append(
            [
                pair
                for copy in range(n_copies)
                for pair in grow(
                    X,
                    table,
                    cut,
                    label,
                    y,
                    before,
                    w,
                    p,
                    m * n_copies + copy,
                    rate / n_copies,
                    m >= first,
                    units,
                )
            ]
        )
        k = len(dropped)
        for i in dropped:
            factors[i] *= k / (k + rate)
        factors.append(1.0 / (k + rate) if dropped else 1.0)
    if p["boosting"] == "forest":
        scores = start + total(np.zeros_like(start), rounds, factors, X, Z) / len(
            rounds
        )
    else:
        scores = total(start, rounds, factors, X, Z)
    return (
        [
            scaled(*pair, f)
            for f, one in zip(factors, rounds, strict=True)
            for pair in one
        ],
        base,
        scores,
    )


def grow(
    X: Floats,
    table: list[Ints],
    cut: list[Floats],
    label: Floats,
    y: Floats,
    scores: Floats,
    w: Weights,
    p: dict[str, Any],
    number: int,
    rate: float,
    linear: bool,
    units: Units | None,
) -> list[tuple[Tree, Terms]]:
    """A tree for every output at some scores; `number` stands for the round in all
    draws.
    """
    every_g, every_h = reference.gradients(p["objective"], (), scores, label)
    times = reference.sample(p, number, every_g, w, y)
    rows = np.arange(len(X)) if times is None else np.flatnonzero(times)
    weighed = times is not None and p["sampling"] != "uniform"
    trees = []
    for output, (g, h) in enumerate(zip(every_g, every_h, strict=True)):
        h = np.ones_like(h) if p["leaf_estimation"] == "gradient" else h
        plain = w
        if weighed and times is not None:
            g, h = reference.counted(g, h, w, times)
            plain = w._replace(
                repeat=np.where(times > 0, w.repeat, 0), factor=np.ones(len(X))
            )
        wide = reference.quantise(g, h, plain, BITS["wide"])
        q = reference.quantise(
            g, h, plain, BITS[reference.search_precision(g, h, plain, p["precision"])]
        )
        tree = reference.grow(
            rows, table, cut, q, wide, p, number * len(label) + output
        )
        tree["value"] = rate * tree["value"]
        inside = rows[w.repeat[rows] > 0]
        trees.append(
            (tree, fit(tree, X, inside, wide, p, rate, units) if linear else {})
        )
    return trees


def total(
    start: Floats,
    rounds: list[list[tuple[Tree, Terms]]],
    factors: list[float],
    X: Floats,
    Z: Floats,
) -> Floats:
    """Scores after some rounds: each row adds what its leaves give it, in tree order.
    Z: values as they enter lines.
    """
    scores = start.copy()
    for trees, factor in zip(rounds, factors, strict=True):
        for index, pair in enumerate(trees):
            scores[index % len(start)] += values(*scaled(*pair, factor), X, Z)
    return scores


def scaled(tree: Tree, terms: Terms, by: float) -> tuple[Tree, Terms]:
    """Values and coefficients times a factor."""
    more = {
        leaf: (columns, [by * c for c in coefs])
        for leaf, (columns, coefs) in terms.items()
    }
    return tree | {"value": by * tree["value"]}, more


def values(tree: Tree, terms: Terms, X: Floats, Z: Floats) -> Floats:
    """What a tree gives every row: a sum in the order of terms; the leaf's value where
    that is not finite.
    """
    out = np.empty(len(X))
    for i, node in enumerate(reference.leaves(tree, X).tolist()):
        out[i] = tree["value"][node]
        if node in terms:
            columns, coefs = terms[node]
            with np.errstate(all="ignore"):
                s = np.float64(coefs[0])
                for column, coef in zip(columns[1:], coefs[1:], strict=True):
                    s = s + coef * Z[i, column]
            out[i] = s if np.isfinite(s) else out[i]
    return out


def fit(
    tree: Tree,
    X: Floats,
    rows: Ints,
    wide: Quantised,
    p: dict[str, Any],
    rate: float,
    units: Units | None,
) -> Terms:
    """The terms of every leaf from its rows in use."""
    node = reference.leaves(tree, X[rows])
    found = {}
    above: dict[int, set[int]] = {0: set()}
    for parent in np.flatnonzero(tree["left"]).tolist():
        for child in (tree["left"][parent], tree["left"][parent] + 1):
            above[int(child)] = above[parent] | {int(tree["column"][parent])}
    for leaf in np.flatnonzero(tree["left"] == 0).tolist():
        inside = rows[node == leaf]
        value = float(tree["value"][leaf])
        terms = fit_leaf(X, inside, sorted(above[leaf]), value, wide, p, rate, units)
        if terms is not None:
            found[leaf] = terms
    return found


def fit_leaf(
    X: Floats,
    rows: Ints,
    columns: list[int],
    value: float,
    wide: Quantised,
    p: dict[str, Any],
    rate: float,
    units: Units | None,
) -> tuple[list[int], list[float]] | None:
    """Constant and coefficients of one leaf, or None where it keeps its value alone."""
    # all values are finite, and columns without a unit have one value
    if units is not None:
        X = units.q.astype(np.float64)
    finite = {
        column: x[np.isfinite(x)] for column in columns for x in [X[rows, column]]
    }
    columns = [column for column, x in finite.items() if len(x) and x.min() < x.max()]
    k = len(columns)
    whole = rows[np.isfinite(X[np.ix_(rows, columns)]).all(axis=1)]
    if (
        k == 0
        or len(whole) == 0
        or float(wide.sums[whole, 2].sum()) < (k + 1) * p["count_unit"]
    ):
        return None
    g, h = (wide.sums[whole, i].astype(object) for i in (0, 1))
    if h.sum() == 0:
        return None
    G = float(g.sum())
    H = float(h.sum())
    centre = []
    unit = []
    step = []
    q = []
    for column in columns:
        if units is not None:
            centre.append(float(units.bounds[column, 2]))
            unit.append(units.quantum[column])
            step.append(unit[-1] / float(units.unit[column]))
            q.append(np.array([int(v) for v in units.q[whole, column]], object))
            continue
        low = finite[column].min()
        high = finite[column].max()
        c = 0.5 * low + 0.5 * high
        e = reference.exponent(max(high - c, c - low))
        centre.append(float(c))
        unit.append(math.ldexp(1.0, e - 30))
        step.append(unit[-1])
        q.append(
            np.array(
                [
                    int(v)
                    for v in np.rint((X[whole, column] - c) * math.ldexp(1.0, 30 - e))
                ],
                object,
            )
        )
    mean = [float((h * a).sum()) for a in q]
    b = [float((g * q[i]).sum()) - (mean[i] * G) / H for i in range(k)]
    a = [
        [float((h * q[i] * q[j]).sum()) - (mean[i] * mean[j]) / H for j in range(i + 1)]
        for i in range(k)
    ]
    for i in range(k):
        ridge = ((p["linear_lambda"] * wide.hs) / step[i]) / step[i]
        a[i][i] = a[i][i] + (ridge + ((p["linear_smooth"] * wide.hs) * a[i][i]) / H)
    all_g = float(wide.sums[rows, 0].sum())
    all_h = float(wide.sums[rows, 1].sum())
    shift = (
        -(G - all_g * (H / all_h))
        / (H + p["reg_lambda"] * wide.hs)
        * (wide.hs / wide.gs)
    )
    constant = value + rate * shift
    kept = [-1]
    coefs = [0.0]
    for column, c, u, m, x in zip(
        columns, centre, unit, mean, solve(a, b), strict=True
    ):
        coef = rate * ((-x / u) * (wide.hs / wide.gs))
        if coef != 0:
            constant = constant - coef * (c + (m / H) * u)
            kept.append(column)
            coefs.append(coef)
    coefs[0] = constant
    return (kept, coefs) if len(kept) > 1 and all(map(math.isfinite, coefs)) else None


def solve(a: list[list[float]], b: list[float]) -> list[float]:
    """A x = b by A = L D L', the lower triangle of A given; a column that depends on
    those before it gets 0.
    """
    k = len(b)
    d = []
    low = [[0.0] * k for _ in range(k)]
    for i in range(k):
        pivot = a[i][i]
        for j in range(i):
            if d[j] == 0:
                continue
            rest = a[i][j]
            for m in range(j):
                rest = rest - (low[i][m] * low[j][m]) * d[m]
            low[i][j] = rest / d[j]
            pivot = pivot - (low[i][j] * low[i][j]) * d[j]
        d.append(pivot if pivot > DEPENDENT * a[i][i] else 0.0)
    x = list(b)
    for i in range(k):
        for j in range(i):
            x[i] = x[i] - low[i][j] * x[j]
    for i in reversed(range(k)):
        x[i] = x[i] / d[i] if d[i] else 0.0
        for j in range(i + 1, k):
            x[i] = x[i] - low[j][i] * x[j]
    return x
