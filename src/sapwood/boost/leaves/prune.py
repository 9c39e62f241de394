"""Pruning: splits of little gain, weakest links, or splits that do not help unseen rows
become leaves.

In: a grown tree. Out: which of its splits become leaves, and the smaller tree.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.dealt import total
from sapwood.device import Tree
from sapwood.reduce import Reduce

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def by_gain(tree: Tree, min_gain: float) -> Mask:
    """Pruning by gamma (Chen and Guestrin 2016): from the leaves up, splits into two
    leaves become leaves.

    Returns (n_nodes): splits that become leaves, since they gain less than
    ``min_gain``.
    """
    left, gone = tree["left"], np.zeros(len(tree["left"]), np.bool_)
    for node in np.flatnonzero(left)[::-1]:  # children come after their parents
        ends = all(
            left[child] == 0 or gone[child] for child in (left[node], left[node] + 1)
        )
        gone[node] = ends and tree["gain"][node] < min_gain
    return gone


def weakest_links(tree: Tree, alpha: float) -> Mask:
    """Minimal cost-complexity pruning (Breiman et al. 1984): while the weakest link
    costs at most alpha, cut it.

    The cost of a node is the squared error that its splits remove, per row of the tree:
    twice the gain. The strength of a link is that cost over the leaves it adds. Returns
    (n_nodes): splits that become leaves.
    """
    left = tree["left"]
    gone = np.zeros(len(tree["left"]), np.bool_)
    while True:
        cost = 2.0 * tree["gain"] / tree["count"][0]
        leaves = np.ones(len(left))
        is_split = (left > 0) & ~gone
        cost[~is_split] = 0.0
        for node in np.flatnonzero(is_split)[::-1]:  # children come after their parents
            children = left[node], left[node] + 1
            cost[node] += cost[children[0]] + cost[children[1]]
            leaves[node] = leaves[children[0]] + leaves[children[1]]
        strength = np.full(len(left), np.inf)
        reached = is_split & _reached(left, gone)
        strength[reached] = cost[reached] / (leaves[reached] - 1)
        weakest = int(strength.argmin())
        if not strength[weakest] <= alpha:
            return gone
        gone[weakest] = True


def by_validation(
    tree: Tree,
    step: Floats,
    node: NDArray[np.int32],
    loss: Callable[[Floats], Floats],
    reduce: Reduce | None = None,
) -> Mask:
    """Reduced-error pruning (Quinlan 1987): a split stays only if it lowers the loss of
    unseen rows.

    ``step``: what each node would add to the score if it were a leaf. ``node``: the
    leaf of each unseen row. ``loss``: weighted losses of the rows after adding (n_rows)
    steps. Returns (n_nodes): splits that become leaves.
    """
    left = tree["left"]
    parent = np.zeros(len(left), np.int32)
    splits = np.flatnonzero(left)
    parent[left[splits]] = parent[left[splits] + 1] = splits
    # loss of each node's rows if it were a leaf; sums of integers do not depend on
    # their order
    own = [0] * len(left)
    at = node.copy()
    rows = np.arange(len(node))
    unit = None
    n_rows = total(reduce, len(node))
    while total(reduce, len(rows)):
        steps = np.zeros(len(node))
        steps[rows] = step[at[rows]]
        losses = loss(steps)
        if unit is None:  # scale that leaves room for the sum over all rows
            top = np.abs(losses).max(initial=0.0, keepdims=True)
            if reduce is not None:
                # the bits of numbers from 0 upwards are in their order
                reduce.max(top.view(np.uint64))
            unit = 2.0 ** (50 - int(np.frexp(top[0])[1]) - n_rows.bit_length())
        q = np.rint(np.minimum(losses[rows] * unit, 2.0**55)).astype(np.int64)
        sums = np.zeros(len(left), np.int64)
        np.add.at(sums, at[rows], q)
        if reduce is not None:
            reduce.sum(sums)
        own = [mine + int(more) for mine, more in zip(own, sums, strict=True)]
        rows = rows[at[rows] > 0]
        at[rows] = parent[at[rows]]
    best = list(own)
    gone = np.zeros(len(left), np.bool_)
    for i in splits[::-1]:
        below = best[left[i]] + best[left[i] + 1]
        gone[i] = own[i] <= below
        best[i] = min(own[i], below)
    return gone


def cut(tree: Tree, gone: Mask) -> tuple[Tree, NDArray[np.int32]]:
    """Turn splits into leaves: the smaller tree, its nodes in their old order, and the
    new number of each old leaf.
    """
    left = tree["left"]
    stays = _reached(tree["left"], gone)
    kept = np.flatnonzero(stays)
    place = np.cumsum(stays) - 1
    is_leaf = (left == 0) | gone
    arrays: Any = tree
    smaller: Any = {
        name: arrays[name][kept]
        for name in arrays
        if name not in ("set_offset", "set_code")
    }
    ends = is_leaf[kept]
    smaller["left"] = np.where(ends, 0, place[left[kept]]).astype(np.int32)
    for name, blank in (
        ("column", -1),
        ("bin", -1),
        ("threshold", 0),
        ("missing_left", 0),
        ("gain", 0),
        ("set", -1),
    ):
        smaller[name][ends] = blank
    used, inverse = np.unique(smaller["set"][smaller["set"] >= 0], return_inverse=True)
    sets = [
        tree["set_code"][tree["set_offset"][i] : tree["set_offset"][i + 1]]
        for i in used
    ]
    smaller["set"][smaller["set"] >= 0] = inverse
    smaller["set_offset"] = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    smaller["set_code"] = np.concatenate([np.empty(0, np.int32), *sets], dtype=np.int32)
    leaf_number = np.cumsum(ends) - 1
    # for every node, the nearest node at or above it that stays
    owner = np.arange(len(left))
    for node in np.flatnonzero(left):
        for child in (left[node], left[node] + 1):
            owner[child] = child if stays[child] else owner[node]
    return smaller, leaf_number[place[owner[np.flatnonzero(left == 0)]]].astype(
        np.int32
    )


def _reached(left: NDArray[np.int32], gone: Mask) -> Mask:
    """Nodes that are not below a split which becomes a leaf."""
    reached = np.ones(len(left), np.bool_)
    for node in np.flatnonzero(left):
        reached[left[node]] = reached[left[node] + 1] = reached[node] and not gone[node]
    return reached
