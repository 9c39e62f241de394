"""Two boosted models side by side on their training rows, tree by tree.

In: parameters of Sapwood and a fitted model of a rival. Out: how many trees a tie
decided; an AssertionError where
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

# Two splits tie when their gains differ by less than this share of the larger: ours are
# those of 30-bit gradients.
TIE = 1e-5
# A gain below this share of the node's sum of squares is none: scikit-learn splits
# equal targets on rounding errors.
NOTHING = 1e-12


class Tree(NamedTuple):
    """A tree of any library."""

    column: NDArray[Any]
    threshold: NDArray[Any]
    strict: bool  # x < threshold goes left, else x <= threshold
    missing_left: NDArray[Any]
    left: NDArray[Any]  # -1 in leaves
    right: NDArray[Any]
    value: NDArray[Any]  # of leaves
    sets: Mapping[int, Any] = {}  # by node, of category splits: the values that go left

    @classmethod
    def of_sapwood(cls, booster: Booster, index: int) -> "Tree":
        """The tree of this index, counted from 0 over all rounds and outputs."""
        tree = booster.trees.slice(index, index + 1)
        left = np.where(tree.column < 0, -1, tree.left)
        sets = {}
        for node in np.flatnonzero(tree.set >= 0).tolist():
            first, last = tree.set_offset[tree.set[node] :][:2]
            sets[node] = np.array(booster.categories[int(tree.column[node])].values)[
                tree.set_code[first:last]
            ]
        return cls(
            tree.column,
            tree.threshold,
            False,
            tree.missing_left > 0,
            left,
            left + 1,
            tree.value,
            sets,
        )

    @classmethod
    def of_sklearn(cls, estimator: Any) -> "Tree":
        """The tree of a fitted decision tree."""
        tree = estimator.tree_
        none = np.zeros(tree.node_count)
        return cls(
            tree.feature,
            tree.threshold,
            False,
            none > 0,
            tree.children_left,
            tree.children_right,
            none,
        )

    @classmethod
    def of_xgboost(cls, tree: Mapping[str, Any]) -> "Tree":
        """A tree of its JSON."""
        names = (
            "split_indices",
            "split_conditions",
            "default_left",
            "left_children",
            "right_children",
        )
        column, threshold, missing, left, right = (
            np.array(tree[name]) for name in names
        )
        # a decimal stands for the float32 next to it
        threshold = threshold.astype(np.float32).astype(np.float64)
        return cls(column, threshold, True, missing > 0, left, right, threshold)

    @classmethod
    def of_lightgbm(cls, tree: Mapping[str, Any]) -> "Tree":
        """A tree of `dump_model`."""
        rows: list[tuple[Any, ...]] = []
        sets = {}

        def walk(node: Mapping[str, Any]) -> int:
            at = len(rows)
            rows.append((-1, 0.0, False, -1, -1, node.get("leaf_value", 0.0)))
            if "left_child" in node:
                threshold = node["threshold"]
                if node["decision_type"] == "==":
                    sets[at], threshold = (
                        [float(value) for value in threshold.split("||")],
                        0.0,
                    )
                rows[at] = (
                    node["split_feature"],
                    threshold,
                    node["default_left"],
                    walk(node["left_child"]),
                    walk(node["right_child"]),
                    0.0,
                )
            return at

        walk(tree["tree_structure"])
        column, threshold, missing, left, right, value = map(
            np.array, zip(*rows, strict=True)
        )
        return cls(column, threshold, False, missing, left, right, value, sets)

    def side(self, node: int, X: Array) -> Side:
        """Which of the rows of a node go left."""
        if self.left[node] < 0:
            return None
        x = X[:, self.column[node]]
        at = self.threshold[node]
        if node in self.sets:
            return np.where(
                np.isnan(x), self.missing_left[node], np.isin(x, self.sets[node])
            )
        return np.where(
            np.isnan(x), self.missing_left[node], x < at if self.strict else x <= at
        )

    def values(self, X: Array) -> Array:
        """The value of every row's leaf."""
        out = np.empty(len(X))
        open_nodes = [(0, np.arange(len(X)))]
        while open_nodes:
            node, rows = open_nodes.pop()
            side = self.side(node, X[rows])
            if side is None:
                out[rows] = self.value[node]
            else:
                open_nodes += [
                    (self.left[node], rows[side]),
                    (self.right[node], rows[~side]),
                ]
        return out


class Rival(NamedTuple):
    """A fitted model of scikit-learn or XGBoost."""

    trees: list[list[Tree]]  # by round and output
    scores: list[Array]  # (n_rows, n_outputs) before the first round, and after each
    # scores -> what the trees of the next round are fitted to, (n_rows, n_outputs)
    target: Callable[[Array], Array]
    # scores -> weights of that fit; 1 by default
    weight: Callable[[Array], Array] | None = None

    @classmethod
    def of(
        cls, model: Any, scores: Sequence[Array], target: Callable[[Array], Array]
    ) -> "Rival":
        """A model of gradient boosting."""
        trees = [[Tree.of_sklearn(tree) for tree in one] for one in model.estimators_]
        return cls(trees, [each.reshape(len(each), -1) for each in scores], target)


def compare(
    params: Mapping[str, Any], X: Array, y: Array, rival: Rival, tolerance: float
) -> int:
    """Train the model of a rival and hold both side by side.

    After a round with a tie the two models go different ways, so training begins anew
    from the rival's scores there.

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
        How many rounds had a tie; every tree of all others parts the rows as the
        rival's does.
    """
    done = ties = 0
    while done < len(rival.trees):
        # at first both find their own start
        start = rival.scores[done] if done else None
        # Every distinct value has its own bin: the rival's splitter looks between all
        # of them.
        every = (
            {"tree_method": "exact"}
            if params.get("tree_method") == "exact"
            else {"max_bins": 65535}
        )
        data = sapwood.Dataset(X, label=y, init_score=start, **every)
        # one start, not two
        own = {
            name: value
            for name, value in params.items()
            if start is None or name != "start"
        }
        booster = sapwood.train({**own, "n_estimators": len(rival.trees) - done}, data)
        tree = count()
        for scores in booster.staged_predict(X, raw=True, init_score=start):
            before = rival.scores[done]
            target = rival.target(before)
            weight = (
                np.ones_like(target) if rival.weight is None else rival.weight(before)
            )
            same = [
                agree(
                    X,
                    Tree.of_sapwood(booster, next(tree)),
                    theirs,
                    target[:, k],
                    weight[:, k],
                )
                for k, theirs in enumerate(rival.trees[done])
            ]
            done += 1
            if not all(same):
                ties += 1
                break
            np.testing.assert_allclose(
                scores.reshape(len(X), -1), rival.scores[done], rtol=0, atol=tolerance
            )
    return ties


def agree(X: Array, ours: Tree, theirs: Tree, target: Array, weight: Array) -> bool:
    """Whether two trees part the rows alike; raise unless each node where they do not
    is a tie of two splits.

    A tree is fitted to the target, (n_rows), by weighted least squares.
    """
    same = True
    for rows, mine, other, *_ in differences(X, ours, theirs):
        t = target[rows]
        w = weight[rows]
        a = gain(t, w, mine)
        b = gain(t, w, other)
        tie = abs(a - b) < TIE * max(a, b) or max(a, b) < NOTHING * (w * t * t).sum()
        assert tie, (
            f"{len(rows)} rows are split with a gain of {a!r}, by the rival with {b!r}"
        )
        same = False
    return same


class Difference(NamedTuple):
    """A node that holds the same rows in both trees, which part them otherwise."""

    rows: NDArray[np.intp]
    mine: Side
    other: Side
    node: int  # of our tree
    rival: int  # of theirs
    # the rows of the nodes above it, from the root on
    above: tuple[NDArray[np.intp], ...]


def differences(X: Array, ours: Tree, theirs: Tree) -> Iterator[Difference]:
    """Walk two trees side by side, as far as they part the rows alike."""
    pairs: list[tuple[Any, ...]] = [(np.arange(len(X)), 0, 0, ())]
    while pairs:
        rows, a, b, above = pairs.pop()
        mine = ours.side(a, X[rows])
        other = theirs.side(b, X[rows])
        if mine is None and other is None:
            continue
        if (
            mine is None
            or other is None
            or not (np.array_equal(mine, other) or np.array_equal(mine, ~other))
        ):
            yield Difference(rows, mine, other, a, b, above)
            continue
        left = theirs.left[b]
        right = theirs.right[b]
        # the same parts with left and right exchanged, by another column
        if mine[0] != other[0]:
            left, right = right, left
        above = (*above, rows)
        pairs += [
            (rows[mine], ours.left[a], left, above),
            (rows[~mine], ours.right[a], right, above),
        ]


def gain(target: Array, weight: Array, side: Side) -> float:
    """Fall of the weighted sum of squares about the mean by a split; 0 for none."""
    if side is None:
        return 0.0
    left = weight[side].sum()
    right = weight[~side].sum()
    step = np.average(target[side], weights=weight[side]) - np.average(
        target[~side], weights=weight[~side]
    )
    return float(left * right / (left + right) * step**2)
