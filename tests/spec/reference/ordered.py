"""The executable specification of ordered boosting: docs/NUMERICS.md in plain NumPy, on
the parts of reference.py.

A table, labels, parameters and weights enter `train`; trees and start scores leave. No
row sample, no luck, no pruning.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import reference as ref
from spec.reference import categories, ordered_growth, target_statistics
from spec.reference.losses import OBJECTIVES, margin

Floats = NDArray[np.float64]
TURN = 42


def sizes(n: int) -> list[tuple[int, int]]:
    """Rows that every model learns from, its body, and rows that it knows, with its
    tail.
    """
    body = 1 if n <= 500 else min(100, n // 50)
    bodies = [body]
    while 2 * bodies[-1] < n:
        bodies.append(2 * bodies[-1])
    return [(body, min(2 * body, n)) for body in bodies]


class Order:
    """The models of one order."""

    def __init__(self, order: NDArray[np.int64], start: Floats) -> None:
        self.known = [order[:end] for _, end in sizes(len(order))]
        self.learnt = [order[:body] for body, _ in sizes(len(order))]
        self.scores = [start.copy() for _ in self.known]
        self.part = np.concatenate(
            [
                2 * model + ~np.isin(k, r)
                for model, (k, r) in enumerate(
                    zip(self.known, self.learnt, strict=True)
                )
            ]
        )

    def follow(self, trees: list[Any], X: Floats, rate: float, values: Any) -> None:
        """Every model adds every tree with values of its own; leaves of all models are
        found together.
        """
        rows = np.concatenate(self.known)
        model = np.repeat(
            np.arange(len(self.known)), [len(known) for known in self.known]
        )
        learns = np.concatenate(
            [np.isin(k, r) for k, r in zip(self.known, self.learnt, strict=True)]
        )
        before = np.concatenate(
            [s[:, k] for s, k in zip(self.scores, self.known, strict=True)], axis=1
        )
        for output, tree in enumerate(trees):
            n_leaves = int((tree["column"] < 0).sum())
            number = (np.cumsum(tree["column"] < 0) - 1)[ref.leaves(tree, X)]
            leaf = model * n_leaves + number[rows]
            value = rate * values(
                before, output, rows, leaf, n_leaves * len(self.known), learns
            )
            for k, known in enumerate(self.known):
                self.scores[k][output, known] += value[leaf[model == k]]


def train(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> tuple[list[ref.Tree], Floats]:
    """All trees and the start scores (n_outputs)."""
    w = ref.weights(weight, len(X))
    p = (
        ref.DEFAULTS
        | {"n_permutations": 1}
        | params
        | {"count_unit": math.ldexp(1.0, w.shift)}
    )
    sizes_of = [categories.many(p, column) for column in range(X.shape[1])]
    cut = [
        x[:0] if n else ref.cuts(x, w, p["max_bins"], p["min_samples_bin"])
        for x, n in zip(X.T, sizes_of, strict=True)
    ]
    table = [
        np.where(np.isnan(x), n, x).astype(np.int64) if n else ref.codes(x, c)
        for x, c, n in zip(X.T, cut, sizes_of, strict=True)
    ]
    goal, label = OBJECTIVES[p["objective"]], ref.planes(p["objective"], y)
    f = tuple(p.get(name, default) for name, default in goal.fields.items())
    method = goal.leaf if p["leaf_estimation"] == "auto" else p["leaf_estimation"]

    def values(
        s: Floats, output: int, rows: Any, leaf: Any, n_leaves: int, learns: Any
    ) -> Floats:
        inside = w._replace(
            repeat=w.repeat[rows] * learns, factor=w.factor[rows], count=w.count[rows]
        )
        along = margin(s, output) if p["objective"] == "softmax" else s[output]
        r = ref.Rows(goal, f, along, label[output, rows], leaf, n_leaves, inside)
        if method == "exact":
            return ref.exact_values(r, p)
        if p["leaf_iterations"] > 1:
            return ref.newton(
                r,
                np.zeros(n_leaves),
                p["leaf_iterations"],
                ref.steps_of(p),
                method == "gradient",
            )
        _, G, H = ref.leaf_sums(r, np.zeros(n_leaves))
        b = (ref.sum_by_leaf(inside.factor, r) if method == "gradient" else H) + p[
            "reg_lambda"
        ]
        with np.errstate(all="ignore"):
            v = np.where(b == 0, 0.0, -ref.soft(G, p["reg_alpha"]) / b)
        limit = p["max_delta_step"]
        v = np.clip(v, -limit, limit) if limit > 0 else v
        return np.where(v > 0, 1.0, -1.0) if method == "sign" else v

    base = ref.start(goal, f, label, w)
    scores = np.repeat(base[:, None], len(X), axis=1)
    orders = [
        Order(target_statistics.order(p["seed"], k, weight, len(X)), scores)
        for k in range(p["n_permutations"])
    ]
    every = np.arange(len(X))
    trees = []
    for round in range(p["n_estimators"]):
        turn = int(ref.draw(p["seed"], TURN, round, 0, np.array([0]))[0]) % len(orders)
        models = orders[turn]
        rows = np.concatenate(models.known)
        at = np.concatenate(
            [own[:, k] for own, k in zip(models.scores, models.known, strict=True)],
            axis=1,
        )
        wr = ref.weights(None if weight is None else weight[rows], len(rows))
        ready = []
        for g, h in zip(
            *ref.gradients(p["objective"], f, at, label[:, rows]), strict=True
        ):
            h = np.ones_like(h) if method == "gradient" or p["hessian"] == "none" else h
            q = ref.quantise(
                g, h, wr, ref.BITS[ref.search_precision(g, h, wr, p["precision"])]
            )
            ready.append(ref.Ready(q, q, 0.0, wr))
        together = p.get("multi_strategy") == "multi_output_tree"
        codes = [code[rows] for code in table]
        n_parts = 2 * len(models.known)
        searches = (
            ordered_growth.join(ready, models.part, n_parts)
            if together
            else [ordered_growth.join([one], models.part, n_parts)[0] for one in ready]
        )
        grown = [
            ref.grow(
                np.arange(len(rows)),
                codes,
                cut,
                one.q,
                one.wide,
                p,
                round * len(label) + output * (not together),
                search,
            )
            for output, (one, search) in enumerate(zip(ready, searches, strict=True))
        ]
        for order in orders:
            order.follow(grown, X, p["learning_rate"], values)
        before = scores.copy()
        for output, tree in enumerate(grown):
            ends = tree["column"] < 0
            number = (np.cumsum(ends) - 1)[ref.leaves(tree, X)]
            n_leaves = int(ends.sum())
            tree["value"][ends] = p["learning_rate"] * values(
                before, output, every, number, n_leaves, 1
            )
            along = (
                margin(before, output)
                if p["objective"] == "softmax"
                else before[output]
            )
            tree["cover"][ends] = ref.leaf_sums(
                ref.Rows(goal, f, along, label[output], number, n_leaves, w),
                np.zeros(n_leaves),
            )[2]
            tree["count"][ends] = [
                w.count[number == leaf].sum() / p["count_unit"]
                for leaf in range(n_leaves)
            ]
            for node in np.flatnonzero(~ends)[::-1]:
                for name in ("cover", "count"):
                    tree[name][node] = (
                        tree[name][tree["left"][node]]
                        + tree[name][tree["left"][node] + 1]
                    )
            scores[output] += tree["value"][ref.leaves(tree, X)]
        trees += grown
    return trees, base
