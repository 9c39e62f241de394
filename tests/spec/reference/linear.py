"""The executable specification of linear leaves: NUMERICS, Linear leaves, in plain NumPy and Python's integers.

A table, labels, parameters and weights enter `train`; trees with the terms of leaves, start scores and scores leave.
"""

import math
from typing import Any

import numpy as np

from spec import reference
from spec.reference import BITS, Floats, Ints, Quantised, Tree, Weights, ensembles

DEFAULTS: dict[str, Any] = ensembles.DEFAULTS | {"linear_lambda": 0.0, "linear_smooth": 20.0}
DEPENDENT = 2.0**-30
Terms = dict[int, tuple[list[int], list[float]]]  # leaf -> columns (-1: the constant) and coefficients


def train(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> tuple[list[tuple[Tree, Terms]], Floats, Floats]:
    """All trees (round by round, copy by copy, output by output), start scores, and scores (n_outputs, n_rows)."""
    w, p, cut, table, label, base = ensembles.begin(X, y, DEFAULTS | params, weight)
    start = np.repeat(base[:, None], len(X), axis=1)
    rounds: list[list[tuple[Tree, Terms]]] = []
    factors: list[float] = []
    for m in range(p["n_estimators"]):
        dropped = ensembles.drops(p, m, factors) if p["boosting"] == "dart" else []
        kept = [i for i in range(m) if i not in dropped]
        before = start
        if p["boosting"] != "forest":
            before = total(start, [rounds[i] for i in kept], [factors[i] for i in kept], X)
        rate = 1.0 if p["boosting"] == "forest" else reference.rate(p["learning_rate"], m)
        n_copies, first = p["n_parallel_trees"], 0 if p["boosting"] == "forest" else 1
        rounds.append(
            [
                pair
                for copy in range(n_copies)
                for pair in grow(
                    X, table, cut, label, y, before, w, p, m * n_copies + copy, rate / n_copies, m >= first
                )
            ]
        )
        k = len(dropped)
        for i in dropped:
            factors[i] *= k / (k + rate)
        factors.append(1.0 / (k + rate) if dropped else 1.0)
    if p["boosting"] == "forest":
        scores = start + total(np.zeros_like(start), rounds, factors, X) / len(rounds)
    else:
        scores = total(start, rounds, factors, X)
    return [scaled(*pair, f) for f, one in zip(factors, rounds, strict=True) for pair in one], base, scores


def grow(
    X: Floats, table: list[Ints], cut: list[Floats], label: Floats, y: Floats, scores: Floats, w: Weights,
    p: dict[str, Any], number: int, rate: float, linear: bool,
) -> list[tuple[Tree, Terms]]:  # fmt: skip
    """A tree for every output at some scores; `number` stands for the round in all draws."""
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
            plain = w._replace(repeat=np.where(times > 0, w.repeat, 0), factor=np.ones(len(X)))
        wide = reference.quantise(g, h, plain, BITS["wide"])
        q = reference.quantise(g, h, plain, BITS[reference.search_precision(g, h, plain, p["precision"])])
        tree = reference.grow(rows, table, cut, q, wide, p, number * len(label) + output)
        tree["value"] = rate * tree["value"]
        inside = rows[w.repeat[rows] > 0]
        trees.append((tree, fit(tree, X, inside, wide, p, rate) if linear else {}))
    return trees


def total(start: Floats, rounds: list[list[tuple[Tree, Terms]]], factors: list[float], X: Floats) -> Floats:
    """Scores after some rounds: each row adds what its leaves give it, in tree order."""
    scores = start.copy()
    for trees, factor in zip(rounds, factors, strict=True):
        for index, pair in enumerate(trees):
            scores[index % len(start)] += values(*scaled(*pair, factor), X)
    return scores


def scaled(tree: Tree, terms: Terms, by: float) -> tuple[Tree, Terms]:
    """Values and coefficients times a factor."""
    more = {leaf: (columns, [by * c for c in coefs]) for leaf, (columns, coefs) in terms.items()}
    return tree | {"value": by * tree["value"]}, more


def values(tree: Tree, terms: Terms, X: Floats) -> Floats:
    """What a tree gives every row: a sum in the order of terms; the leaf's value where that is not finite."""
    out = np.empty(len(X))
    for i, node in enumerate(reference.leaves(tree, X).tolist()):
        out[i] = tree["value"][node]
        if node in terms:
            columns, coefs = terms[node]
            with np.errstate(all="ignore"):
                s = np.float64(coefs[0])
                for column, coef in zip(columns[1:], coefs[1:], strict=True):
                    s = s + coef * X[i, column]
            out[i] = s if np.isfinite(s) else out[i]
    return out


def fit(tree: Tree, X: Floats, rows: Ints, wide: Quantised, p: dict[str, Any], rate: float) -> Terms:
    """The terms of every leaf from its rows in use."""
    node, found = reference.leaves(tree, X[rows]), {}
    above: dict[int, set[int]] = {0: set()}
    for parent in np.flatnonzero(tree["left"]).tolist():
        for child in (tree["left"][parent], tree["left"][parent] + 1):
            above[int(child)] = above[parent] | {int(tree["column"][parent])}
    for leaf in np.flatnonzero(tree["left"] == 0).tolist():
        terms = fit_leaf(X, rows[node == leaf], sorted(above[leaf]), float(tree["value"][leaf]), wide, p, rate)
        if terms is not None:
            found[leaf] = terms
    return found


def fit_leaf(
    X: Floats, rows: Ints, columns: list[int], value: float, wide: Quantised, p: dict[str, Any], rate: float
) -> tuple[list[int], list[float]] | None:
    """Constant and coefficients of one leaf, or None where it keeps its value alone."""
    finite = {column: x[np.isfinite(x)] for column in columns for x in [X[rows, column]]}
    columns = [column for column, x in finite.items() if len(x) and x.min() < x.max()]
    k = len(columns)
    whole = rows[np.isfinite(X[np.ix_(rows, columns)]).all(axis=1)]
    if k == 0 or len(whole) == 0 or float(wide.sums[whole, 2].sum()) < (k + 1) * p["count_unit"]:
        return None
    g, h = (wide.sums[whole, i].astype(object) for i in (0, 1))
    if h.sum() == 0:
        return None
    G, H = float(g.sum()), float(h.sum())
    centre, unit, q = [], [], []
    for column in columns:
        low, high = finite[column].min(), finite[column].max()
        c = 0.5 * low + 0.5 * high
        e = reference.exponent(max(high - c, c - low))
        centre.append(float(c))
        unit.append(math.ldexp(1.0, e - 30))
        q.append(np.array([int(v) for v in np.rint((X[whole, column] - c) * math.ldexp(1.0, 30 - e))], object))
    mean = [float((h * a).sum()) for a in q]
    b = [float((g * q[i]).sum()) - (mean[i] * G) / H for i in range(k)]
    a = [[float((h * q[i] * q[j]).sum()) - (mean[i] * mean[j]) / H for j in range(i + 1)] for i in range(k)]
    for i in range(k):
        ridge = ((p["linear_lambda"] * wide.hs) / unit[i]) / unit[i]
        a[i][i] = a[i][i] + (ridge + ((p["linear_smooth"] * wide.hs) * a[i][i]) / H)
    all_g, all_h = float(wide.sums[rows, 0].sum()), float(wide.sums[rows, 1].sum())
    shift = -(G - all_g * (H / all_h)) / (H + p["reg_lambda"] * wide.hs) * (wide.hs / wide.gs)
    constant, kept, coefs = value + rate * shift, [-1], [0.0]
    for column, c, u, m, x in zip(columns, centre, unit, mean, solve(a, b), strict=True):
        coef = rate * ((-x / u) * (wide.hs / wide.gs))
        if coef != 0:
            constant = constant - coef * (c + (m / H) * u)
            kept.append(column)
            coefs.append(coef)
    coefs[0] = constant
    return (kept, coefs) if len(kept) > 1 and all(map(math.isfinite, coefs)) else None


def solve(a: list[list[float]], b: list[float]) -> list[float]:
    """A x = b by A = L D L', the lower triangle of A given; a column that depends on those before it gets 0."""
    k, d = len(b), []
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
