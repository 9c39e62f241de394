"""The executable specification of explanations (docs/NUMERICS.md, "Explanations"), in
plain Python and NumPy.

In: the arrays of a model, and rows. Out: Shapley values, bit for bit those of the core;
and games by enumeration.
"""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Coalition = frozenset[int]
GROUP_BITS = 8


@cache
def gauss(n: int) -> tuple[tuple[float, float], ...]:
    """Points and masses of Gauss's rule on 0..1; between the points of one rule lie
    those of the rule before it.
    """
    if n == 0:
        return ()

    def legendre(x: float) -> tuple[float, float]:
        p = 1.0
        q = 0.0
        for k in range(1, n + 1):
            p, q = ((2 * k - 1) * x * p - (k - 1) * q) / k, p
        return p, n * (x * p - q) / (x * x - 1.0)

    fewer = [2.0 * t - 1.0 for t, _ in gauss(n - 1)]
    rule = []
    for i, (low, high) in enumerate(zip([-1.0, *fewer], [*fewer, 1.0], strict=True)):
        rises = (n - i) % 2 == 1
        for _ in range(64):
            middle = 0.5 * low + 0.5 * high
            low, high = (
                (middle, high)
                if (legendre(middle)[0] < 0.0) == rises
                else (low, middle)
            )
        x = 0.5 * low + 0.5 * high
        slope = legendre(x)[1]
        rule.append((0.5 + 0.5 * x, 1.0 / ((1.0 - x * x) * slope * slope)))
    return tuple(rule)


class Tree:
    """One tree of a model: links, shares of weight, and which way a row goes."""

    def __init__(self, trees: Any, index: int, by: str) -> None:
        span = slice(trees.offset[index], trees.offset[index + 1])
        self.column, self.left, self.value = (
            getattr(trees, name)[span].tolist() for name in ("column", "left", "value")
        )
        self.threshold, self.missing_left = (
            trees.threshold[span].tolist(),
            trees.missing_left[span].tolist(),
        )
        self.set, self.sets = (
            trees.set[span].tolist(),
            np.split(trees.set_code, trees.set_offset[1:-1]),
        )
        weight = getattr(trees, by)[span].tolist()
        self.parent = [-1] * len(self.left)
        self.share = [1.0] * len(self.left)
        for u, left in enumerate(self.left):
            for v in (left, left + 1) if left else ():
                self.parent[v] = u
                both = weight[left] + weight[left + 1]
                self.share[v] = weight[v] / both if both > 0 else 0.5

    def goes_left(self, u: int, row: Floats) -> bool:
        x = row[self.column[u]]
        if self.set[u] >= 0:  # categories are codes, and what is missing is negative
            return (
                self.missing_left[u] in ((1, 2) if x == -2 else (1, 3))
                if x < 0
                else x in self.sets[self.set[u]]
            )
        return (
            bool(self.missing_left[u]) if np.isnan(x) else bool(x <= self.threshold[u])
        )

    def question(self, u: int) -> tuple[Any, ...]:
        return self.column[u], self.threshold[u], self.missing_left[u], self.set[u]

    def way(self, u: int) -> Iterable[int]:
        """Nodes from `u` up to below the root."""
        while self.parent[u] >= 0:
            yield u
            u = self.parent[u]

    def above(self, u: int) -> list[int]:
        """Different columns on the way to a node, from the root down."""
        return list(
            dict.fromkeys(reversed([self.column[self.parent[v]] for v in self.way(u)]))
        )

    def groups(self) -> list[list[int]]:
        """Leaves by group: those under the highest nodes whose columns above and
        questions below are few enough.
        """
        under: list[set[Any]] = [set() for _ in self.left]
        for u in reversed(range(len(self.left))):
            if self.left[u]:
                under[u] = (
                    {self.question(u)} | under[self.left[u]] | under[self.left[u] + 1]
                )
        group: dict[int, int] = {}
        leaves: list[list[int]] = []
        for u, left in enumerate(self.left):
            if self.parent[u] in group:
                group[u] = group[self.parent[u]]
            elif not left or len(under[u]) + len(self.above(u)) <= GROUP_BITS:
                group[u] = len(leaves)
                leaves.append([])
            if not left:
                leaves[group[u]].append(u)
        return leaves


def values(trees: Any, n_outputs: int, rows: Floats, by: str = "count") -> Floats:
    """Path-dependent values, (n_rows, n_outputs, n_columns)."""
    result = np.zeros((len(rows), n_outputs, rows.shape[1]))
    for index in range(len(trees.output)):
        tree = Tree(trees, index, by)
        for leaves in tree.groups():
            for i, row in enumerate(rows):
                entry = dict.fromkeys(range(rows.shape[1]), 0.0)
                for leaf in leaves:
                    add_leaf(tree, leaf, row, entry)
                for column, value in entry.items():
                    result[i, trees.output[index], column] += value
    return result


def add_leaf(tree: Tree, leaf: int, row: Floats, entry: dict[int, float]) -> None:
    """What one leaf adds for one row, by Gauss's rule."""
    share: dict[int, float] = {}
    kept: dict[int, bool] = {}
    for v in tree.way(leaf):
        u = tree.parent[v]
        c = tree.column[tree.parent[v]]
        share[c] = share.get(c, 1.0) * tree.share[v]
        kept[c] = kept.get(c, True) and tree.goes_left(u, row) == (v == tree.left[u])
    columns = sorted(share)
    total = dict.fromkeys(columns, 0.0)
    for t, mass in gauss((len(columns) + 1) // 2):
        factor = {
            c: t + (1.0 - t) * share[c] if kept[c] else (1.0 - t) * share[c]
            for c in columns
        }
        before = {}
        after = {}
        run = mass * tree.value[leaf]
        for c in columns:
            before[c], run = run, run * factor[c]
        run = 1.0
        for c in reversed(columns):
            after[c], run = run, run * factor[c]
        for c in columns:
            total[c] += before[c] * after[c]
    for c in columns:
        entry[c] += total[c] * (1.0 - share[c] if kept[c] else -share[c])


def path_game(tree: Tree, row: Floats) -> Callable[[Coalition], float]:
    """The expected value of a tree where some columns are known: down both branches of
    the others, by their weight.
    """

    def go(u: int, known: Coalition) -> float:
        left = tree.left[u]
        if not left:
            return tree.value[u]
        if tree.column[u] in known:
            return go(left if tree.goes_left(u, row) else left + 1, known)
        return tree.share[left] * go(left, known) + tree.share[left + 1] * go(
            left + 1, known
        )

    return lambda known: go(0, known)


def background_game(
    score: Callable[[Floats], Floats], row: Floats, rows: Floats
) -> Callable[[Coalition], float]:
    """The mean score of background rows of which some columns are overwritten by a
    row's own.
    """

    def value(known: Coalition) -> float:
        mixed = rows.copy()
        mixed[:, list(known)] = row[list(known)]
        return float(score(mixed).mean())

    return value


def enumerate_values(value: Callable[[Coalition], float], n: int) -> Floats:
    """Shapley values by their definition, over all 2^n coalitions."""
    every = {
        frozenset(s): value(frozenset(s))
        for k in range(n + 1)
        for s in combinations(range(n), k)
    }
    result = np.zeros(n)
    for known, without in every.items():
        for i in set(range(n)) - known:
            chance = (
                factorial(len(known)) * factorial(n - len(known) - 1) / factorial(n)
            )
            result[i] += chance * (every[known | {i}] - without)
    return result


def enumerate_interactions(value: Callable[[Coalition], float], n: int) -> Floats:
    """Shapley interaction values by their definition: half of each pair's index on both
    sides of the diagonal.
    """
    every = {
        frozenset(s): value(frozenset(s))
        for k in range(n + 1)
        for s in combinations(range(n), k)
    }
    result = np.zeros((n, n))
    for known, without in every.items():
        for i, j in combinations(sorted(set(range(n)) - known), 2):
            chance = (
                factorial(len(known))
                * factorial(n - len(known) - 2)
                / (2 * factorial(n - 1))
            )
            result[i, j] += chance * (
                every[known | {i, j}]
                - every[known | {i}]
                - every[known | {j}]
                + without
            )
    result = result + result.T
    result[np.diag_indices(n)] = enumerate_values(value, n) - result.sum(axis=1)
    return result
