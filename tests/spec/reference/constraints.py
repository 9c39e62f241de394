"""The executable specification of rules: docs/NUMERICS.md 10 in plain NumPy.

The splits of a tree enter one by one; scores under bounds, columns and cuts that a node
may use, and leaf bounds leave.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# of columns on the path: codes, and whether missing values are inside
Box = dict[int, tuple[set[int], bool]]

RANDOM_CUT = 20
DEFAULTS: dict[str, Any] = {
    "monotone_constraints": None,
    "monotone_method": "basic",
    "interaction_constraints": None,
    "extra_trees": False,
    "forced_splits": None,
}


@dataclass
class Mark:
    """What the rules say of one node; values in the units of the search."""

    low: float = -math.inf
    high: float = math.inf
    out: float = 0.0
    groups: list[set[int]] | None = None  # None: all
    box: Box = field(default_factory=dict)
    forced: dict[str, Any] | None = None
    empty: bool = False  # without rows


def all_groups(p: dict[str, Any], n_columns: int) -> list[set[int]] | None:
    """Columns that may share a path; a column in no group is one by itself."""
    given = p["interaction_constraints"]
    if given is None:
        return None
    if given == "pairwise":
        return [set(pair) for pair in combinations(range(n_columns), 2)]
    groups = [] if given == "no_interactions" else [set(group) for group in given]
    return groups + [
        {column}
        for column in range(n_columns)
        if not any(column in group for group in groups)
    ]


class Guard:
    """The marks of a tree's nodes."""

    def __init__(
        self,
        p: dict[str, Any],
        cut: list[Floats],
        n_bins: Sequence[int],
        gs: float,
        hs: float,
    ) -> None:
        self.p = p
        self.cut = cut
        self.n_bins = n_bins
        self.gs = gs
        self.hs = hs
        self.direction: Sequence[int] = p["monotone_constraints"] or ()
        self.ordered = any(self.direction)
        self.intermediate = self.ordered and p["monotone_method"] == "intermediate"
        self.marks = {
            0: Mark(groups=all_groups(p, len(cut)), forced=p["forced_splits"])
        }

    def towards(self, column: int, bin: int) -> int:
        """The direction of a split: none where values stand against missing ones."""
        return self.direction[column] if bin < len(self.cut[column]) else 0

    def weights(self, sums: Ints, ids: Sequence[int]) -> Floats:
        """The best value of sums (n_nodes, n_candidates, 3) within the bounds of their
        nodes.
        """
        low, high = (
            np.array([[getattr(self.marks[i], name)] for i in ids])
            for name in ("low", "high")
        )
        a = self.p["reg_alpha"] * self.gs
        step = self.p["max_delta_step"] * self.gs / self.hs
        G = sums[..., 0].astype(np.float64)
        b = sums[..., 1] + self.p["reg_lambda"] * self.hs
        t = np.where(G > a, G - a, np.where(G < -a, G + a, 0.0))  # noqa: SIM300
        # empty sides, replaced by the caller
        with np.errstate(divide="ignore", invalid="ignore"):
            w = -t / b
        w = np.clip(w, -step, step) if step > 0 else w
        return np.where(w < low, low, np.where(w > high, high, w))

    def scores(self, sums: Ints, w: Floats) -> Floats:
        """NUMERICS, constraints: what the value w takes off the loss, twice."""
        G = sums[..., 0].astype(np.float64)
        b = sums[..., 1] + self.p["reg_lambda"] * self.hs
        return -(2 * (G * w + self.p["reg_alpha"] * self.gs * np.abs(w)) + b * (w * w))

    def splits(
        self, left: Ints, right: Ints, ids: Sequence[int], column: int, bins: Ints
    ) -> Floats:
        """Scores of candidates; -inf where the sides would be in the wrong order."""
        wL = self.weights(left, ids)
        wR = self.weights(right, ids)
        d = np.array([self.towards(column, b) for b in bins])
        s = self.scores(left, wL) + self.scores(right, wR)
        return np.where(((d > 0) & (wL > wR)) | ((d < 0) & (wL < wR)), -np.inf, s)

    def under(self, p: dict[str, Any]) -> "Guard":
        """The same marks, another penalty."""
        other = copy(self)
        other.p = p
        return other

    def company(self, columns: Ints, id: int) -> Ints:
        """The columns that share a group with the whole path."""
        groups = self.marks[id].groups
        return (
            columns
            if groups is None
            else columns[[any(c in group for group in groups) for c in columns]]
        )

    def random_bin(self, populated: Sequence[int], n_bins: int, u: int) -> int:
        """One of the cuts between populated codes, or of values against missing ones;
        -1 for none.
        """
        values = [code for code in populated if code < n_bins]
        bins = list(range(values[0], values[-1])) if values else []
        bins += [n_bins - 1] * (bool(values) and n_bins in populated)
        return bins[(u * len(bins)) >> 64] if bins else -1

    def inherit(self, id: int, child: int, split: Any, left: Ints, right: Ints) -> None:
        """Marks of the children, child and child + 1, from the sums of their rows."""
        mark = self.marks[id]
        lt = replace(mark, box=dict(mark.box))
        rt = replace(mark, box=dict(mark.box))
        for m, side in ((lt, "left"), (rt, "right")):
            m.forced = (
                mark.forced.get(side)
                if split.forced and mark.forced is not None
                else None
            )
            if mark.groups is not None:
                m.groups = [group for group in mark.groups if split.column in group]
        for m, sums in zip((lt, rt), (left, right), strict=True):
            m.empty = bool(sums[1] == 0)
            if self.ordered and not m.empty:
                m.out = float(self.weights(sums[None, None], [id])[0, 0])
        if self.ordered and not lt.empty and not rt.empty:
            d = self.towards(split.column, split.bin)
            below, above = (lt, rt) if d > 0 else (rt, lt)
            middle = 0.5 * (lt.out + rt.out)
            if d:
                below.high = above.out if self.intermediate else middle
                above.low = below.out if self.intermediate else middle
        self.marks[child], self.marks[child + 1] = lt, rt
        codes, missing = mark.box.get(
            split.column, (set(range(self.n_bins[split.column])), True)
        )
        inside = {
            c
            for c in codes
            if (c <= split.bin if split.set is None else c in split.set)
        }
        lt.box[split.column] = inside, missing and bool(split.missing_left)
        rt.box[split.column] = codes - inside, missing and not split.missing_left

    def order(self, a: int, b: int) -> int:
        """-1: a's value must not exceed b's; 1: b's must not exceed a's; 0: neither."""
        one = self.marks[a].box
        two = self.marks[b].box
        apart = [
            c
            for c in one
            if c in two and not one[c][0] & two[c][0] and not (one[c][1] and two[c][1])
        ]
        ways = {
            self.direction[c] * (-1 if max(one[c][0]) < min(two[c][0]) else 1)
            if one[c][0] and two[c][0]
            else 0
            for c in apart
        }
        return ways.pop() if len(ways) == 1 else 0

    def tighten(self, leaves: Sequence[int], children: Sequence[int]) -> list[int]:
        """Bound leaves by the outputs of new ones; those whose bounds changed."""
        changed = []
        for other in leaves:
            mark = self.marks[other]
            before = mark.low, mark.high
            for child in children:
                if self.order(child, other) < 0:
                    mark.low = max(mark.low, self.marks[child].out)
                if self.order(child, other) > 0:
                    mark.high = min(mark.high, self.marks[child].out)
            if before != (mark.low, mark.high):
                changed.append(other)
        return changed

    def settle(self, leaves: Sequence[int]) -> None:
        """Intermediate bounds by midpoints with all leaves that one with rows is
        ordered with.
        """
        full = (
            [leaf for leaf in leaves if not self.marks[leaf].empty]
            if self.intermediate
            else []
        )
        for leaf in full:
            mark = self.marks[leaf]
            order = {other: self.order(leaf, other) for other in full}
            middle = {other: 0.5 * (mark.out + self.marks[other].out) for other in full}
            mark.low = max(
                (middle[other] for other in full if order[other] > 0), default=-math.inf
            )
            mark.high = min(
                (middle[other] for other in full if order[other] < 0), default=math.inf
            )

    def cut_leaves(self, v: dict[int, float]) -> dict[int, float]:
        """Values of leaves within their last bounds; those of leaves without rows
        between the others.
        """
        if not self.ordered:
            return v
        self.settle(list(v))
        unit = self.hs / self.gs
        cut = {}
        for leaf, value in v.items():
            low = self.marks[leaf].low * unit
            high = self.marks[leaf].high * unit
            cut[leaf] = low if value < low else high if value > high else value
        full = [leaf for leaf in v if not self.marks[leaf].empty]
        for leaf in v if self.intermediate else ():
            if self.marks[leaf].empty:
                low = max(
                    (cut[other] for other in full if self.order(leaf, other) > 0),
                    default=-math.inf,
                )
                high = min(
                    (cut[other] for other in full if self.order(leaf, other) < 0),
                    default=math.inf,
                )
                cut[leaf] = low if low > 0 else high if high < 0 else 0.0
        return cut


def ordered(
    tree: dict[str, NDArray[Any]], v: Floats, direction: Sequence[int], cut: bool
) -> Floats:
    """NUMERICS, constraints: values found after growth within own bounds; leaves
    without rows take a neighbour's.
    """
    left, count, value = tree["left"], tree["count"], np.zeros(len(tree["left"]))
    value[left == 0] = v

    def towards(i: int) -> int:
        return direction[tree["column"][i]] if tree["threshold"][i] < np.inf else 0

    def inside(i: int) -> list[int]:
        return [i] if left[i] == 0 else inside(left[i]) + inside(left[i] + 1)

    def mean(i: int) -> tuple[float, float]:
        if left[i] == 0:
            return value[i], count[i]
        (a, m), (b, n) = mean(left[i]), mean(left[i] + 1)
        return (a * m + b * n) / (m + n) if m + n > 0 else 0.5 * (a + b), m + n

    def bound(i: int, low: float, high: float) -> None:
        if left[i] == 0:
            # of two zeros, the bound
            value[i] = (
                low if value[i] <= low else high if value[i] >= high else value[i]
            )
            return
        lt = left[i]
        rt = left[i] + 1
        d = towards(i)
        bounds = {lt: [low, high], rt: [low, high]}
        if d and (count[lt] > 0) == (count[rt] > 0):
            middle = min(max(0.5 * (means[lt] + means[rt]), low), high)
            bounds[lt][d > 0] = bounds[rt][d < 0] = middle
        bound(lt, *bounds[lt])
        bound(rt, *bounds[rt])

    if cut:
        means = [mean(i)[0] for i in range(len(left))]
        bound(0, -math.inf, math.inf)
    for i in range(len(left) - 1, -1, -1):
        if left[i] and (d := towards(i)):
            lt = left[i]
            rt = left[i] + 1
            for empty, full, is_lower in ((lt, rt, d > 0), (rt, lt, d < 0)):
                if count[empty] == 0 and count[full] > 0:
                    value[inside(empty)] = (min if is_lower else max)(
                        value[j] for j in inside(full)
                    )
    return value[left == 0]
