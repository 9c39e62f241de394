"""The executable specification of ordered boosting: docs/NUMERICS.md in plain NumPy, on the parts of reference.py.

A table, labels, parameters and weights enter `train`; trees and start scores leave. No row sample, no pruning.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reference as ref
import reference_encode
from reference_objectives import OBJECTIVES, margin

Floats = NDArray[np.float64]
TURN = 42


class Order:
    """The models of one order: model k has learnt from the first 2^k / 2 rows and knows the first 2^k."""

    def __init__(self, order: NDArray[np.int64], start: Floats) -> None:
        n = len(order)
        self.known = [order[: 2**k] for k in range((n - 1).bit_length() + 1)]
        self.learnt = [order[: 2**k // 2] for k in range(len(self.known))]
        self.scores = [start.copy() for _ in self.known]

    def judge(self, others: Floats) -> Floats:
        """The score of every row by the first model that knows it: it has not learnt from it."""
        at = others.copy()
        for known, learnt, scores in zip(self.known, self.learnt, self.scores, strict=True):
            rows = np.setdiff1d(known, learnt)
            at[:, rows] = scores[:, rows]
        return at

    def follow(self, trees: list[Any], X: Floats, rate: float, values: Any) -> None:
        """Every model adds every tree with values of its own; leaves of all models are found together."""
        rows = np.concatenate(self.known)
        model = np.repeat(np.arange(len(self.known)), [len(known) for known in self.known])
        learns = np.concatenate([np.isin(k, r) for k, r in zip(self.known, self.learnt, strict=True)])
        before = np.concatenate([s[:, k] for s, k in zip(self.scores, self.known, strict=True)], axis=1)
        for output, tree in enumerate(trees):
            n_leaves, number = int((tree["column"] < 0).sum()), (np.cumsum(tree["column"] < 0) - 1)[ref.leaves(tree, X)]
            leaf = model * n_leaves + number[rows]
            value = rate * values(before, output, rows, leaf, n_leaves * len(self.known), learns)
            for k, known in enumerate(self.known):
                self.scores[k][output, known] += value[leaf[model == k]]


def train(X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None) -> tuple[list[ref.Tree], Floats]:
    """All trees and the start scores (n_outputs)."""
    w = ref.weights(weight, len(X))
    p = ref.DEFAULTS | {"n_permutations": 1} | params | {"count_unit": math.ldexp(1.0, w.shift)}
    cut = [ref.cuts(x, w, p["max_bins"], p["min_samples_bin"]) for x in X.T]
    table = [ref.codes(x, c) for x, c in zip(X.T, cut, strict=True)]
    goal, label = OBJECTIVES[p["objective"]], ref.planes(p["objective"], y)
    f = tuple(p.get(name, default) for name, default in goal.fields.items())
    method = goal.leaf if p["leaf_estimation"] == "auto" else p["leaf_estimation"]

    def values(s: Floats, output: int, rows: Any, leaf: Any, n_leaves: int, learns: Any) -> Floats:
        inside = w._replace(repeat=w.repeat[rows] * learns, factor=w.factor[rows], count=w.count[rows])
        along = margin(s, output) if p["objective"] == "softmax" else s[output]
        r = ref.Rows(goal, f, along, label[output, rows], leaf, n_leaves, inside)
        if method == "exact":
            return ref.exact_values(r, p)
        if p["leaf_iterations"] > 1:
            return ref.newton(r, np.zeros(n_leaves), p["leaf_iterations"], ref.penalty_of(p), method == "gradient")
        _, G, H = ref.leaf_sums(r, np.zeros(n_leaves))
        b = (ref.sum_by_leaf(inside.factor, r) if method == "gradient" else H) + p["reg_lambda"]
        with np.errstate(all="ignore"):
            v = np.where(b == 0, 0.0, -ref.soft(G, p["reg_alpha"]) / b)
        return np.where(v > 0, 1.0, -1.0) if method == "sign" else v

    base = ref.start(goal, f, label, w)
    scores = np.repeat(base[:, None], len(X), axis=1)
    orders = [Order(reference_encode.order(p["seed"], k, weight, len(X)), scores) for k in range(p["n_permutations"])]
    every, trees = np.arange(len(X)), []
    for round in range(p["n_estimators"]):
        turn = int(ref.draw(p["seed"], TURN, round, 0, np.array([0]))[0]) % len(orders)
        grown = []
        for output, (g, h) in enumerate(
            zip(*ref.gradients(p["objective"], f, orders[turn].judge(scores), label), strict=True)
        ):
            h = np.ones_like(h) if method == "gradient" else h
            q = ref.quantise(g, h, w, ref.BITS[ref.search_precision(g, h, w, p["precision"])])
            grown.append(ref.grow(every, table, cut, q, ref.quantise(g, h, w, 30), p, round * len(label) + output))
        for order in orders:
            order.follow(grown, X, p["learning_rate"], values)
        before = scores.copy()
        for output, tree in enumerate(grown):
            ends = tree["column"] < 0
            number = (np.cumsum(ends) - 1)[ref.leaves(tree, X)]
            tree["value"][ends] = p["learning_rate"] * values(before, output, every, number, int(ends.sum()), 1)
            scores[output] += tree["value"][ref.leaves(tree, X)]
        trees += grown
    return trees, base
