"""The executable specification of comparing splits: docs/NUMERICS.md in plain NumPy.

Sums of sides and the scores of columns' best splits enter; cosine scores and what
columns are compared by leave.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec.reference.real import exp, log

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LUCK = 41
DEFAULTS: dict[str, Any] = {
    "score_function": "l2",
    "random_strength": 0.0,
    "feature_weights": None,
    "first_use_penalties": None,
}


def deviation(
    p: dict[str, Any], round: int, rate: float, sums: Ints, repeat: Ints
) -> float:
    """Of the luck of a round, in the wide numbers (qg, qh) of all rows."""
    if p["random_strength"] == 0:
        return 0.0
    strength = p["random_strength"] / (
        1.0 + float(exp(np.array([round * rate]))[0]) / np.count_nonzero(repeat)
    )
    square = sum(int(w) * int(g) ** 2 for g, w in zip(sums[:, 0], repeat, strict=True))
    bend = sum(int(w) * int(h) for h, w in zip(sums[:, 1], repeat, strict=True))
    return strength * math.sqrt(float(square) / float(bend))


class Judge:
    """What splits of one tree are compared by."""

    def __init__(
        self,
        p: dict[str, Any],
        gs: float,
        hs: float,
        index: int,
        draw: Callable[..., Any],
        fold: Callable[..., Any],
    ) -> None:
        self.p = p
        self.index = index
        self.draw = draw
        self.fold = fold
        self.cosine = p["score_function"] == "cosine"
        self.paths: dict[int, set[int]] = {0: set()}  # columns above every node
        unit = hs / (gs * gs)
        self.hs, self.l, self.price = (
            hs,
            p["reg_lambda"] * hs,
            1.0 / math.sqrt(unit) if self.cosine else 2.0 / unit,
        )

    def angle(
        self, sums: Ints, reg_lambda: float | None = None
    ) -> tuple[Floats, Floats]:
        """The parts of N and D that (..., 3) sums of a side have; none where it is
        empty.
        """
        more = self.l if reg_lambda is None else reg_lambda * self.hs
        g = sums[..., 0].astype(np.float64)
        h = sums[..., 1].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            a = g / (h + more)
            return np.where(h == 0, 0.0, a * g), np.where(h == 0, 0.0, (a * a) * h)

    def level(
        self,
        left: Ints,
        right: Ints | None = None,
        scores: Floats | None = None,
        reg_lambda: float | None = None,
    ) -> Floats:
        """N / sqrt(D) of every candidate, both summed over nodes in order; a veto of
        the l2 scores holds here too.

        Sets of categories have a `reg_lambda` of their own.
        """
        along, square = self.angle(left, reg_lambda)
        if right is not None:
            total, (n, d) = self.angle(left + right), self.angle(right, reg_lambda)
            empty = (left[..., 1] == 0) | (right[..., 1] == 0)
            along = np.where(empty, total[0], along + n)
            square = np.where(empty, total[1], square + d)
        N = D = np.zeros(along.shape[1])
        for n, d in zip(along, square, strict=True):
            N = N + n
            D = D + d
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.where(D > 0, N / np.sqrt(D), N)
        return (
            s
            if scores is None
            else np.where(np.any(scores == -np.inf, axis=0), -np.inf, s)
        )

    def favour(self, s: float, parent: float, node: int, column: int) -> float:
        """What a column's best score is worth to the user, and luck; -inf: not its
        price.
        """
        p = self.p
        if (
            all(p[name] is None for name in ("feature_weights", "first_use_penalties"))
            and p.get("deviation", 0.0) == 0
        ):
            return s
        if not s > parent + abs(parent) * 2.0**-40:
            return -math.inf
        if p["feature_weights"] is not None:
            s = parent + p["feature_weights"][column] * (s - parent)
        if (
            p["first_use_penalties"] is not None
            and column not in p.get("used", frozenset()) | self.paths[node]
        ):
            s = s - p["first_use_penalties"][column] * self.price
        if not s > parent + abs(parent) * 2.0**-40:
            return -math.inf
        if p.get("deviation", 0.0) == 0:
            return s
        u = self.draw(p["seed"], LUCK, self.index, node, np.array([column]))
        return (s if self.cosine else math.sqrt(max(s, 0.0))) + p.get(
            "deviation", 0.0
        ) * self.normal(u)

    def normal(self, u: NDArray[np.uint64]) -> float:
        """Marsaglia's polar method: a point of the square, drawn until it lies in the
        circle.
        """
        for t in range(100):
            h = int(self.fold(u, t)[0])
            x, y = (
                float((v ^ 0x80000000) - 0x80000000) * 2.0**-31
                for v in (h >> 32, h & 0xFFFFFFFF)
            )
            s = x * x + y * y
            if 0 < s < 1:
                return x * math.sqrt(-2.0 * float(log(np.array([s]))[0]) / s)
        raise AssertionError("a hundred points outside the circle")
