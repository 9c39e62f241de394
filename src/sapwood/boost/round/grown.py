"""Trees as the core grew them, before their leaf values are finished: what a resumed
training need not search again.

In: the trees of each call of `Trainer.grow`. Out: the same trees, as arrays for a file,
and back.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import Tree

OF_NODES: dict[str, Any] = {
    "column": np.int32,
    "bin": np.int32,
    "left": np.int32,
    "set": np.int32,
    "missing_left": np.uint8,
    "threshold": np.float64,
    "value": np.float64,
    "gain": np.float64,
    "cover": np.float64,
    "count": np.float64,
}
OF_SETS: dict[str, Any] = {"set_offset": np.int64, "set_code": np.int32}
SIZES = ("n_nodes", "n_sets", "n_codes")  # (n_trees) int64 of each tree
# arrays of a tree
SPLITS = ("column", "bin", "missing_left", "left", "set", "set_offset", "set_code")


class GrownTrees:
    """The calls of `Trainer.grow` in a training, in their order: those of an earlier
    run first, then new ones.
    """

    def __init__(self, known: Sequence[list[Tree]] = ()) -> None:
        self._known, self._fresh = deque(known), list[list[Tree]]()

    def next_known(self) -> list[Tree] | None:
        """The trees of the next call, where an earlier run has made it; each is given
        once.
        """
        return self._known.popleft() if self._known else None

    def add(self, trees: Sequence[Tree]) -> None:
        """Keep the trees of a new call; later changes of their arrays do not matter."""
        names = (*OF_NODES, *OF_SETS)
        self._fresh.append(
            [{name: np.array(dict(tree)[name]) for name in names} for tree in trees]  # type: ignore[misc]
        )

    def take_fresh(self) -> list[list[Tree]]:
        """The new calls since this was last called."""
        fresh = self._fresh
        self._fresh = []
        return fresh


def pack(calls: Sequence[Sequence[Tree]]) -> dict[str, NDArray[Any]]:
    """The trees of some calls as arrays."""
    trees: list[Mapping[str, Any]] = [tree for call in calls for tree in call]
    arrays = {
        name: np.concatenate([np.empty(0, kind), *(tree[name] for tree in trees)])
        for name, kind in (OF_NODES | OF_SETS).items()
    }
    sizes = ("column", "set_offset", "set_code")
    counts = {
        name: [len(tree[of]) for tree in trees]
        for name, of in zip(SIZES, sizes, strict=True)
    }
    return arrays | {
        name: np.array(values, np.int64) for name, values in counts.items()
    }


def unpack(arrays: Mapping[str, NDArray[Any]], per_call: int) -> list[list[Tree]]:
    """The calls that `pack` made arrays of; ValueError where the arrays do not fit
    together.
    """
    kinds = OF_NODES | OF_SETS | dict.fromkeys(SIZES, np.int64)
    if set(arrays) != set(kinds) or any(
        arrays[name].dtype != kind or arrays[name].ndim != 1
        for name, kind in kinds.items()
    ):
        raise ValueError("other arrays than those of grown trees")
    ends = {name: np.cumsum(arrays[name]) for name in SIZES}
    n_trees = len(ends["n_nodes"])
    parts: dict[str, list[NDArray[Any]]] = {}
    for names, size in (
        ((*OF_NODES,), "n_nodes"),
        (("set_offset",), "n_sets"),
        (("set_code",), "n_codes"),
    ):
        end = ends[size]
        fits = len(end) == n_trees and bool((arrays[size] >= 0).all())
        if not fits or any(
            len(arrays[name]) != (end[-1] if n_trees else 0) for name in names
        ):
            raise ValueError("sizes of trees do not fit")
        parts |= {name: np.split(arrays[name], end[:-1]) for name in names}
    if per_call < 1 or n_trees % per_call:
        raise ValueError("a call lacks trees")
    trees: list[Any] = [
        {name: part[t] for name, part in parts.items()} for t in range(n_trees)
    ]
    return [trees[first : first + per_call] for first in range(0, n_trees, per_call)]
