"""Two boosted models side by side on their training rows, tree by tree.

In: parameters of Sapwood and a fitted model of a rival. Out: how many trees a tie decided; an AssertionError where
the trees part the rows otherwise, or the scores differ.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.model import Booster

Array = NDArray[np.float64]
Side = NDArray[np.bool_] | None  # which rows of a node go left; None in a leaf

# Two splits tie when their gains differ by less than this share of the larger: ours are those of 30-bit gradients.
TIE = 1e-5
# A gain below this share of the node's sum of squares is none: scikit-learn splits equal targets on rounding errors.
NOTHING = 1e-12


class Tree(NamedTuple):
    """A tree of either library: rows with ``X[:, column] <= threshold`` go left."""

    column: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]  # -1 in leaves
    right: NDArray[Any]

    @classmethod
    def of_sapwood(cls, booster: Booster, index: int) -> "Tree":
        """The tree of this index, counted from 0 over all rounds and outputs."""
        tree = booster.trees.slice(index, index + 1)
        left = np.where(tree.column < 0, -1, tree.left)
        return cls(tree.column, tree.threshold, left, left + 1)

    @classmethod
    def of_sklearn(cls, estimator: Any) -> "Tree":
        """The tree of a fitted decision tree."""
        tree = estimator.tree_
        return cls(tree.feature, tree.threshold, tree.children_left, tree.children_right)

    def side(self, node: int, X: Array) -> Side:
        """Which of the rows of a node go left."""
        return None if self.left[node] < 0 else X[:, self.column[node]] <= self.threshold[node]


class Rival(NamedTuple):
    """A fitted model of scikit-learn or XGBoost."""

    trees: list[list[Tree]]  # by round and output
    scores: list[Array]  # (n_rows, n_outputs) before the first round, and after each
    target: Callable[[Array], Array]  # scores -> what the trees of the next round are fitted to, (n_rows, n_outputs)
    weight: Callable[[Array], Array] | None = None  # scores -> weights of that fit; 1 by default

    @classmethod
    def of(cls, model: Any, scores: Sequence[Array], target: Callable[[Array], Array]) -> "Rival":
        """A model of gradient boosting."""
        trees = [[Tree.of_sklearn(tree) for tree in one] for one in model.estimators_]
        return cls(trees, [each.reshape(len(each), -1) for each in scores], target)


def compare(params: Mapping[str, Any], X: Array, y: Array, rival: Rival, tolerance: float) -> int:
    """Train the model of a rival and hold both side by side.

    After a round with a tie the two models go different ways, so training begins anew from the rival's scores there.

    Parameters
    ----------
    params : mapping
        Parameters of Sapwood.
    X : (n_rows, n_columns) float64
        The training rows, of values that are exact in float32.
    y : (n_rows) float64
        Their labels.
    rival : Rival
        What to agree with.
    tolerance : float
        Largest difference of a score.

    Returns
    -------
    int
        How many rounds had a tie; every tree of all others parts the rows as the rival's does.
    """
    done = ties = 0
    while done < len(rival.trees):
        start = rival.scores[done] if done else None  # at first both find their own start
        # Every distinct value has its own bin: the rival's splitter looks between all of them.
        every = {"tree_method": "exact"} if params.get("tree_method") == "exact" else {"max_bins": 65535}
        data = sapwood.Dataset(X, label=y, init_score=start, **every)
        own = {name: value for name, value in params.items() if start is None or name != "start"}  # one start, not two
        booster = sapwood.train({**own, "n_estimators": len(rival.trees) - done}, data)
        tree = count()
        for scores in booster.staged_predict(X, raw=True, init_score=start):
            before = rival.scores[done]
            target = rival.target(before)
            weight = np.ones_like(target) if rival.weight is None else rival.weight(before)
            same = [
                agree(X, Tree.of_sapwood(booster, next(tree)), theirs, target[:, k], weight[:, k])
                for k, theirs in enumerate(rival.trees[done])
            ]
            done += 1
            if not all(same):
                ties += 1
                break
            np.testing.assert_allclose(scores.reshape(len(X), -1), rival.scores[done], rtol=0, atol=tolerance)
    return ties


def agree(X: Array, ours: Tree, theirs: Tree, target: Array, weight: Array) -> bool:
    """Whether two trees part the rows alike; raise unless each node where they do not is a tie of two splits.

    A tree is fitted to the target, (n_rows), by weighted least squares.
    """
    same = True
    for rows, mine, other in differences(X, ours, theirs):
        t, w = target[rows], weight[rows]
        a, b = gain(t, w, mine), gain(t, w, other)
        tie = abs(a - b) < TIE * max(a, b) or max(a, b) < NOTHING * (w * t * t).sum()
        assert tie, f"{len(rows)} rows are split with a gain of {a!r}, by the rival with {b!r}"
        same = False
    return same


def differences(X: Array, ours: Tree, theirs: Tree) -> Iterator[tuple[NDArray[np.intp], Side, Side]]:
    """Yield the nodes that hold the same rows in both trees and part them otherwise: the rows, our side, their side."""
    pairs = [(np.arange(len(X)), 0, 0)]
    while pairs:
        rows, a, b = pairs.pop()
        mine, other = ours.side(a, X[rows]), theirs.side(b, X[rows])
        if mine is None and other is None:
            continue
        if mine is None or other is None or not (np.array_equal(mine, other) or np.array_equal(mine, ~other)):
            yield rows, mine, other
            continue
        left, right = theirs.left[b], theirs.right[b]
        if mine[0] != other[0]:  # the same parts with left and right exchanged, by another column
            left, right = right, left
        pairs += [(rows[mine], ours.left[a], left), (rows[~mine], ours.right[a], right)]


def gain(target: Array, weight: Array, side: Side) -> float:
    """Fall of the weighted sum of squares about the mean by a split; 0 for none."""
    if side is None:
        return 0.0
    left, right = weight[side].sum(), weight[~side].sum()
    step = np.average(target[side], weights=weight[side]) - np.average(target[~side], weights=weight[~side])
    return float(left * right / (left + right) * step**2)
