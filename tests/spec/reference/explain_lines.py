"""The game behind explanations of linear leaves (docs/NUMERICS.md, "Explanations"), in
plain Python.

In: a model, one of its trees, a row. Out: the worth of every set of known columns.
"""

from collections.abc import Callable
from itertools import pairwise
from math import inf, isfinite, isnan

from sapwood import Booster
from spec.reference.explain import Coalition, Floats, Tree

# column -> slope, and what the term is on average in the leaf
Line = dict[int, tuple[float, float]]


def path_game(
    booster: Booster, index: int, row: Floats, by: str = "count"
) -> Callable[[Coalition], float]:
    """The expected value of a tree where some columns are known: a term of a leaf
    counts if its column is.
    """
    tree = Tree(booster.trees, index, by)
    lines = {
        leaf: line_of(booster, index, tree, leaf)
        for leaf, left in enumerate(tree.left)
        if not left
    }

    def at_leaf(leaf: int, known: Coalition) -> float:
        seen = [
            (*lines[leaf][c], entered(booster, c, float(row[c])))
            for c in lines[leaf]
            if c in known
        ]
        if not all(isfinite(x) for *_, x in seen):
            return tree.value[leaf]
        return tree.value[leaf] + sum(slope * x - mean for slope, mean, x in seen)

    def go(u: int, known: Coalition) -> float:
        left = tree.left[u]
        if not left:
            return at_leaf(u, known)
        if tree.column[u] in known:
            return go(left if tree.goes_left(u, row) else left + 1, known)
        return tree.share[left] * go(left, known) + tree.share[left + 1] * go(
            left + 1, known
        )

    return lambda known: go(0, known)


def entered(booster: Booster, column: int, x: float) -> float:
    """A value as it enters lines."""
    assert booster.trees.linear is not None
    bounds = booster.trees.linear.linear_bounds
    if not len(bounds):
        return x
    low, high, mean = bounds[3 * column : 3 * column + 3].tolist()
    return mean if isnan(x) else min(max(x, low), high)


def line_of(booster: Booster, index: int, tree: Tree, leaf: int) -> Line:
    """The terms of a leaf: each starts at its column's centre, then all go towards one
    end of the leaf's box.
    """
    linear = booster.trees.linear
    assert linear is not None
    node = int(booster.trees.offset[index]) + leaf
    offset, column, coef, bounds = linear.terms
    span = slice(int(offset[node]), int(offset[node + 1]))
    terms = list(zip(column[span].tolist(), coef[span].tolist(), strict=True))
    if not terms:
        return {}
    start = {}
    room_up = {}
    room_down = {}
    for c, slope in terms[1:]:
        low, high, centre = (
            bounds[3 * c : 3 * c + 3].tolist() if len(bounds) else cuts_of(booster, c)
        )
        for child, parent in pairwise([*tree.way(leaf), 0]):
            cut = tree.threshold[parent]
            if tree.column[parent] != c or cut == inf:
                continue
            if child == tree.left[parent]:
                high = min(high, max(low, cut))
            else:
                low = max(low, min(high, cut))
        start[c] = slope * min(max(centre, low), high)
        room_up[c] = max(slope * low, slope * high) - start[c]
        room_down[c] = start[c] - min(slope * low, slope * high)
    rest = tree.value[leaf] - terms[0][1] - sum(start.values())
    room = room_up if rest >= 0 else room_down
    total = sum(room.values())
    share = {c: room[c] / total if total > 0 else 1 / len(room) for c in room}
    return {c: (slope, start[c] + rest * share[c]) for c, slope in terms[1:]}


def cuts_of(booster: Booster, column: int) -> tuple[float, float, float]:
    """In raw units: the outer thresholds of a column in the model, and the middle
    one.
    """
    trees = booster.trees
    cuts = sorted(
        {x for x in trees.threshold[trees.column == column].tolist() if isfinite(x)}
    )
    return (cuts[0], cuts[-1], cuts[len(cuts) // 2]) if cuts else (0.0, 0.0, 0.0)
