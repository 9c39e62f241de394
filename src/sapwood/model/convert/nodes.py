"""Trees as other libraries number them, and thresholds as they compare: turned into
ours.

In: children by id in any order; the peer's own comparison. Out: arrays in which the
right child follows the left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError, ParameterError
from sapwood.model.trees import DTYPES, Trees

Floats = NDArray[np.float64]
Terms = tuple[NDArray[np.int32], Floats]
ROUNDS_TO_INFINITY = 2.0**128 - 2.0**103  # in float32, and everything above


@dataclass(frozen=True)
class Nodes:
    """One foreign tree, its nodes in the order of its library; node 0 is the root."""

    left: NDArray[Any]  # (n) ids of children; negative in leaves
    right: NDArray[Any]
    column: NDArray[Any]  # whatever in leaves, from here on
    threshold: Floats  # x <= threshold goes left
    missing_left: NDArray[Any]
    value: Floats  # (n), or (n, n_outputs) for a tree with several outputs
    gain: Floats
    cover: Floats
    count: Floats
    # category splits: the codes that go left
    sets: Mapping[int, NDArray[np.int32]] = field(default_factory=dict)
    # linear leaves: columns, -1 for the constant, and factors
    terms: Mapping[int, Terms] = field(default_factory=dict)

    def trees(self) -> list[dict[str, Any]]:
        """One tree for each output, as `Trees.of` takes them."""
        order, left = _breadth_first(self.left, self.right)
        leaf = left == 0
        nodes = {
            "column": np.where(leaf, -1, self.column[order]),
            "left": left,
            **{
                name: np.where(leaf, 0, getattr(self, name)[order])
                for name in ("threshold", "missing_left", "gain")
            },
            **{name: getattr(self, name)[order] for name in ("cover", "count")},
        }
        nodes |= self._sets(order)
        values = self.value.reshape(len(self.value), -1)[order]
        plain: dict[str, Any] = {
            name: np.asarray(array).astype(DTYPES[name])
            for name, array in nodes.items()
        }
        if self.terms:
            plain["linear"] = self._linear(order)
        return [
            {**plain, "value": np.where(leaf, values[:, k], 0.0)}
            for k in range(values.shape[1])
        ]

    def _sets(self, order: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """The sets of category splits, for nodes in this order; nodes with the same
        array share its set.
        """
        place = np.full(len(order), -1)
        codes: list[NDArray[np.int32]] = []
        number: dict[int, int] = {}
        for at, node in enumerate(order.tolist()):
            own = self.sets.get(node)
            if own is not None:
                place[at] = number.setdefault(id(own), len(codes))
                if place[at] == len(codes):
                    codes.append(np.sort(own))
        return {
            "set": place,
            "set_offset": np.cumsum([0, *map(len, codes)]),
            "set_code": np.concatenate([np.empty(0, np.int32), *codes]),
        }

    def _linear(
        self, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats, Floats]:
        """The terms of linear leaves, for nodes in this order."""
        nothing: Terms = np.empty(0, np.int32), np.empty(0)
        own = [self.terms.get(node, nothing) for node in order.tolist()]
        ends = np.cumsum([0, *(len(columns) for columns, _ in own)])
        columns, factors = (np.concatenate([one[k] for one in own]) for k in (0, 1))
        return ends, columns, factors, np.empty(0)


def _breadth_first(
    left: NDArray[Any], right: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes in our order, and in that order where the left child went; 0 in
    leaves.
    """
    n = len(left)
    if n == 0 or len(right) != n:
        raise ModelFormatError(
            "a tree of the model has no nodes, or children that do not pair."
        )
    parts = [np.zeros(1, np.int64)]
    children = []
    level = np.zeros(1, np.int64)
    seen = 1
    while len(level):
        split = left[level] >= 0
        kids = np.stack([left[level[split]], right[level[split]]], axis=1).astype(
            np.int64
        )
        place = np.zeros(len(level), np.int64)
        place[split] = seen + 2 * np.arange(len(kids))
        level = kids.ravel()
        seen += len(level)
        if seen > n or (len(level) and not (level.min() > 0 and level.max() < n)):
            raise ModelFormatError(
                "a tree of the model has children outside the tree, or a cycle."
            )
        children.append(place)
        parts.append(level)
    order = np.concatenate(parts)
    if len(np.unique(order)) != len(order):
        raise ModelFormatError("a node of the model has two parents.")
    return order, np.concatenate(children)


def frozen(grown: Sequence[tuple[Mapping[str, Any], int]], n_outputs: int) -> Trees:
    """Trees of ours from those of `Nodes.trees` and the output of each: by round, in
    the order of each output.
    """
    if n_outputs > max(1, len(grown)):
        raise ModelFormatError(
            f"{len(grown)} trees are too few for {n_outputs} outputs."
        )
    by_output: list[list[Any]] = [[] for _ in range(n_outputs)]
    for tree, output in grown:
        if not 0 <= output < n_outputs:
            raise ModelFormatError(f"a tree is for output {output} of {n_outputs}.")
        by_output[output].append((tree, output))
    if len({len(own) for own in by_output}) > 1:
        raise ModelFormatError(
            "the outputs of the model have different numbers of trees."
        )
    rounds = zip(*by_output, strict=True)
    # levels share a set
    return Trees.of(
        [pair for one_round in rounds for pair in one_round]
    ).with_shared_sets()


def rounded_up_to(limit: Floats) -> Floats:
    """The largest float64 that rounds to a float32 of at most the limit.

    ``float32(x) <= limit`` holds exactly where ``x <= rounded_up_to(limit)``, so a
    library that compares in single precision is followed to the last bit. It is the
    midpoint to the next float32, or just below it if that rounds up.
    """
    limit = np.asarray(limit, np.float64)
    with np.errstate(over="ignore"):
        low = limit.astype(np.float32)
        low = np.where(
            low.astype(np.float64) > limit, np.nextafter(low, np.float32(-np.inf)), low
        )
        top = np.nextafter(low, np.float32(np.inf))
        finite = np.where(np.isfinite(low), low, np.float32(0)).astype(np.float64)
    above = np.where(np.isinf(top), 2.0**128, top.astype(np.float64))
    middle = finite + (above - finite) / 2
    found = np.where(low.view(np.int32) % 2 == 0, middle, np.nextafter(middle, -np.inf))
    return np.where(
        np.isfinite(low), found, np.where(low > 0, np.inf, -ROUNDS_TO_INFINITY)
    )


def at_most(threshold: Floats) -> NDArray[np.float32]:
    """The largest float32 that is not above each threshold, so that both give the same
    answer for every float32.
    """
    largest = np.finfo(np.float32).max
    near = np.clip(threshold, -largest, largest).astype(np.float32)
    # there is none that is finite below the smallest one
    with np.errstate(over="ignore"):
        lower = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > threshold, lower, near)


def check_single(values: Floats, whose: str) -> None:
    """Raise if leaves have values that the float32 of a format cannot hold."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > float(np.finfo(np.float32).max):
        raise ParameterError(
            f"the model adds {largest:.3g} in a leaf, and {whose} holds numbers up to 3.4e38. Train on labels of a "
            "smaller unit, or export to C."
        )


def below(limit: Floats) -> Floats:
    """The same for ``float32(x) < limit``, where the limit is a float32."""
    single = np.asarray(limit, np.float32)
    with np.errstate(over="ignore"):
        return rounded_up_to(
            np.nextafter(single, np.float32(-np.inf)).astype(np.float64)
        )
