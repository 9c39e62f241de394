"""The executable specification of ensembles: NUMERICS, Ensembles and pruning by gain,
in plain NumPy.

A table, labels, parameters and weights enter `train`; trees with their final values,
start scores and scores leave.
"""

import math
from typing import Any

import numpy as np

from spec import reference
from spec.reference import BITS, Floats, Ints, Rows, Tree, Weights, categories
from spec.reference.losses import OBJECTIVES, margin
from spec.reference.samplers import under

DROPS = 16
DEFAULTS: dict[str, Any] = reference.DEFAULTS | {
    "boosting": "plain",
    "n_parallel_trees": 1,
    "rate_drop": 0.1,
    "skip_drop": 0.5,
    "max_drop": 50,
    "one_drop": False,
    "sample_type": "uniform",
    "normalize_type": "tree",
}


def begin(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None
) -> tuple[Any, ...]:
    """What is there before the first round: weights, parameters, cuts, codes, labels,
    start scores (n_outputs).
    """
    w = reference.weights(weight, len(X))
    p = params | {"count_unit": math.ldexp(1.0, w.shift)}
    cut = [reference.cuts(x, w, p["max_bins"], p["min_samples_bin"]) for x in X.T]
    table = [reference.codes(x, c) for x, c in zip(X.T, cut, strict=True)]
    label = reference.planes(p["objective"], y)
    return (
        w,
        p,
        cut,
        table,
        label,
        reference.start(OBJECTIVES[p["objective"]], (), label, w),
    )


def train(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> tuple[list[Tree], Floats, Floats]:
    """All trees (round by round, copy by copy, output by output), start scores, and
    scores (n_outputs, n_rows).
    """
    w, p, cut, table, label, base = begin(X, y, DEFAULTS | params, weight)
    start = np.repeat(base[:, None], len(X), axis=1)
    rounds: list[list[Tree]] = []
    factors: list[float] = []
    for m in range(p["n_estimators"]):
        dropped = drops(p, m, factors) if p["boosting"] == "dart" else []
        before = start
        if p["boosting"] != "forest":
            before = total(
                start,
                [trees for i, trees in enumerate(rounds) if i not in dropped],
                [f for i, f in enumerate(factors) if i not in dropped],
                X,
            )
        rate = (
            1.0 if p["boosting"] == "forest" else reference.rate(p["learning_rate"], m)
        )
        rounds.append(
            [
                tree
                for copy in range(p["n_parallel_trees"])
                for tree in grow(
                    X,
                    table,
                    cut,
                    label,
                    before,
                    w,
                    p,
                    m * p["n_parallel_trees"] + copy,
                    rate,
                )
            ]
        )
        k = len(dropped)
        over = {"tree": k + rate, "forest": 1.0 + rate, "paper": k + 1.0}[
            p["normalize_type"]
        ]
        for i in dropped:
            factors[i] *= (1.0 if p["normalize_type"] == "forest" else k) / over
        factors.append(1.0 / over if dropped else 1.0)
    if p["boosting"] == "forest":
        scores = start + total(np.zeros_like(start), rounds, factors, X) / len(rounds)
    else:
        scores = total(start, rounds, factors, X)
    trees = [
        tree | {"value": f * tree["value"]}
        for f, one in zip(factors, rounds, strict=True)
        for tree in one
    ]
    return trees, base, scores


def total(
    start: Floats, rounds: list[list[Tree]], factors: list[float], X: Floats
) -> Floats:
    """Scores after some rounds: each row adds its leaf values in tree order."""
    scores = start.copy()
    for trees, factor in zip(rounds, factors, strict=True):
        for index, tree in enumerate(trees):
            scores[index % len(start)] += (
                factor * tree["value"][reference.leaves(tree, X)]
            )
    return scores


def drops(p: dict[str, Any], m: int, factors: list[float]) -> list[int]:
    """The rounds that round m is grown without."""
    skip, one = (int(x) for x in reference.draw(p["seed"], DROPS, m, 1, np.arange(2)))
    if m == 0 or skip < p["skip_drop"] * 2.0**64:
        return []
    most = m if p["max_drop"] is None else p["max_drop"]
    sums = 0.0
    shares = [1.0] * m
    for factor in factors:
        sums += factor
    if p["sample_type"] == "weighted":
        shares = [m * factor / sums for factor in factors]
    rate = min(p["rate_drop"], most / m)
    draws = [int(x) for x in reference.draw(p["seed"], DROPS, m, 0, np.arange(m))]
    chosen = [i for i in range(m) if draws[i] < rate * shares[i] * 2.0**64]
    if not chosen and p["one_drop"]:
        reached = []
        acc = 0.0
        for share in shares:
            acc += share
            reached.append(acc * (2.0**64 / m))
        chosen = [next((i for i in range(m) if reached[i] > float(one)), m - 1)]
    return chosen[:most]


def grow(
    X: Floats,
    table: list[Ints],
    cut: list[Floats],
    label: Floats,
    scores: Floats,
    w: Weights,
    p: dict[str, Any],
    number: int,
    rate: float,
) -> list[Tree]:
    """A tree for every output at some scores; `number` stands for the round in all
    draws.
    """
    draws = reference.draw(p["seed"], reference.ROWS, number, 0, np.arange(len(X)))
    rows = np.flatnonzero(under(draws, np.full(len(X), p["subsample"])))
    sample = w._replace(repeat=np.where(np.isin(np.arange(len(X)), rows), w.repeat, 0))
    trees = []
    for output, (g, h) in enumerate(
        zip(*reference.gradients(p["objective"], (), scores, label), strict=True)
    ):
        wide = reference.quantise(g, h, w, BITS["wide"])
        q = reference.quantise(
            g, h, w, BITS[reference.search_precision(g, h, w, p["precision"])]
        )
        post = p["pruning"] == "post" and p["min_split_gain"] > 0
        growth = p | {"min_split_gain": 0.0 if post else p["min_split_gain"]}
        tree = reference.grow(
            rows, table, cut, q, wide, growth, number * len(label) + output
        )
        leaf = tree["column"] < 0
        step = tree["value"][leaf]
        if post:
            tree = prune(tree, p["min_split_gain"])
            leaf = tree["column"] < 0
            place = np.cumsum(leaf) - 1
            along = (
                margin(scores, output)
                if p["objective"] == "softmax"
                else scores[output]
            )
            r = Rows(
                OBJECTIVES[p["objective"]],
                (),
                along,
                label[output],
                place[reference.leaves(tree, X)],
                int(leaf.sum()),
                sample,
            )
            step = reference.newton(r, np.zeros(r.n_leaves), 1, reference.penalty_of(p))
        tree["value"][leaf] = rate / p["n_parallel_trees"] * step
        trees.append(tree)
    return trees


def prune(tree: Tree, least: float) -> Tree:
    """NUMERICS 9: from the last split to the root; nodes that stay keep their order."""
    names = reference.NODE.names or ()
    nodes = [{name: tree[name][i] for name in names} for i in range(len(tree["left"]))]
    blank = {
        "column": -1,
        "bin": -1,
        "threshold": 0.0,
        "missing_left": 0,
        "left": 0,
        "gain": 0.0,
        "set": -1,
    }
    for node in reversed(nodes):
        children = (
            [nodes[node["left"]], nodes[node["left"] + 1]] if node["left"] else []
        )
        if (
            children
            and not any(child["left"] for child in children)
            and node["gain"] < least
        ):
            node |= blank
    kept = [0]
    for i in kept:  # parents come before their children
        kept += [nodes[i]["left"], nodes[i]["left"] + 1] if nodes[i]["left"] else []
    kept.sort()
    for i in kept:
        nodes[i]["left"] = kept.index(nodes[i]["left"])
    kept_nodes = {
        name: np.array([nodes[i][name] for i in kept], tree[name].dtype)
        for name in names
    }
    return categories.renumbered(tree, kept_nodes)
