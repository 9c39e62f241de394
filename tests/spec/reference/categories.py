"""The executable specification of categories: docs/NUMERICS.md, categories, in plain
NumPy.

Sums and codes of the rows of some nodes enter; sets of codes that may go left, and what
they sum to, leave.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULTS: dict[str, Any] = {
    "category_encoding": None,
    "max_cat_to_onehot": 4,
    "max_cat_threshold": 32,
    "cat_smooth": 10.0,
    "cat_l2": 10.0,
    "min_data_per_group": 100,
}


def many(p: dict[str, Any], column: int) -> int:
    """Categories of a column, 0 where it holds numbers; the parameters may have them as
    `n_categories`.
    """
    return p["n_categories"][column] if "n_categories" in p else 0


def penalty(p: dict[str, Any], n_bins: int) -> dict[str, Any]:
    """The parameters, with the penalty that splits by sets have."""
    return (
        p
        if n_bins <= p["max_cat_to_onehot"]
        else p | {"reg_lambda": p["reg_lambda"] + p["cat_l2"]}
    )


def candidates(
    sums: list[Ints], codes: list[Ints], n_bins: int, q: Any, p: dict[str, Any], u: int
) -> tuple[Ints, list[Ints], list[bool]]:
    """Left sums (n_nodes, n_candidates, 3) of sets in the order that settles ties, the
    sets, and missing sides.

    `sums` (n_rows, 3) and `codes` (n_rows) are of every node of a level; u: a draw, for
    extra trees.
    """
    histogram = np.zeros((len(sums), n_bins + 1, 3), np.int64)
    for node, (own, code) in enumerate(zip(sums, codes, strict=True)):
        np.add.at(histogram[node], code, own)
    level = histogram.sum(axis=0)
    populated = np.flatnonzero(level[:, 1] > 0)
    if n_bins <= p["max_cat_to_onehot"]:
        sets = [np.array([code]) for code in populated]
        sets = (
            sets if not p["extra_trees"] or not sets else [sets[(u * len(sets)) >> 64]]
        )
    else:
        sets = prefixes(level, populated, q, p, u)
    left = np.array([histogram[:, s].sum(axis=1) for s in sets], np.int64).reshape(
        len(sets), len(sums), 3
    )
    inside = [bool(np.isin(n_bins, s)) for s in sets]
    if level[n_bins, 1] == 0:  # nobody saw a missing value: the larger side
        inside = [bool(2 * level[s, 1].sum() >= level[:, 1].sum()) for s in sets]
    return left.swapaxes(0, 1), [np.sort(s[s < n_bins]) for s in sets], inside


def prefixes(
    level: Ints, populated: Ints, q: Any, p: dict[str, Any], u: int
) -> list[Ints]:
    """The first codes and the last codes in the order of their ratios, as far as limits
    let them be.
    """
    total = level.sum(axis=0)
    least = p["min_samples_leaf"] if p["min_samples_leaf"] > 1 else 0
    rows = total[2] / p["count_unit"]
    least_hessian = p["min_child_weight"] * q.hs
    each = rows / float(total[1]) if total[1] > 0 else 0.0
    count = [int(h * each + 0.5) for h in level[:, 1].astype(np.float64)]
    used = [code for code in populated if count[code] >= p["cat_smooth"]]
    ratio = level[:, 0] / (level[:, 1] + p["cat_smooth"] * q.hs + (level[:, 1] == 0))
    order = sorted(used, key=lambda code: (ratio[code], code))
    most = min(p["max_cat_threshold"], (len(order) + 1) // 2)
    found = []
    for line in (order, order[::-1]):
        group = 0
        hessian = 0
        left = 0
        for size in range(1, most + 1):
            code = line[size - 1]
            hessian = hessian + level[code, 1]
            left = left + count[code]
            group = group + count[code]
            if left < least or hessian < least_hessian:
                continue
            right = rows - left
            if (
                right < least
                or right < p["min_data_per_group"]
                or total[1] - hessian < least_hessian
            ):
                break
            if group < p["min_data_per_group"]:
                continue
            group = 0
            if not p["extra_trees"] or size - 1 == (u * most) >> 64:
                found.append(np.array(line[:size]))
    return found


def collect(sets: Mapping[int, Ints]) -> tuple[dict[int, int], dict[str, NDArray[Any]]]:
    """The number of every node's set, in the order of nodes, and the sets as flat
    arrays.

    Nodes that were split together share theirs, which is then the same array.
    """
    number: dict[int, int] = {}
    own: list[Ints] = []
    for node in sorted(sets):
        same = [k for k, s in enumerate(own) if s is sets[node]]
        number[node] = same[0] if same else len(own)
        own += [] if same else [sets[node]]
    offset = np.cumsum([0, *map(len, own)], dtype=np.int64)
    return number, {
        "set_offset": offset,
        "set_code": np.concatenate([np.empty(0, np.int32), *own]).astype(np.int32),
    }


def renumbered(
    tree: Mapping[str, NDArray[Any]], nodes: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Nodes that are left of a tree, with the sets they have."""
    own = np.split(tree["set_code"], tree["set_offset"][1:-1])
    number, arrays = collect({i: own[k] for i, k in enumerate(nodes["set"]) if k >= 0})
    return (
        nodes
        | {
            "set": np.array(
                [number.get(i, -1) for i in range(len(nodes["set"]))], np.int32
            )
        }
        | arrays
    )


def among(
    tree: Mapping[str, NDArray[Any]],
    node: Ints,
    x: Floats,
    otherwise: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Whether each row's code is in the set of its node; `otherwise` where the node has
    none.
    """
    inside = otherwise.copy()
    own = tree["set"][node]
    for k, (first, last) in enumerate(pairwise(tree["set_offset"])):
        inside[own == k] = np.isin(x[own == k], tree["set_code"][first:last])
    return inside
