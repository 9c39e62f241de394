"""Conformal prediction: intervals and sets that hold with a stated probability,
whatever the model.

In: predictions and targets of rows that the model was not trained on. Out: how far
predictions must be widened.

The guarantee needs rows that are exchangeable: the order in which calibration rows and
new rows came must not matter. Only order statistics are taken, so the order of rows
changes no bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError, ParameterError

Floats = NDArray[np.float64]
SIGN = np.uint64(1 << 63)


def rank(n: int, coverage: float) -> int:
    """Which of n sorted scores to take: ceil((n + 1) coverage); above n the interval is
    infinite.
    """
    return ceil((n + 1) * coverage - 1e-9)


def threshold(scores: Floats, coverage: float) -> float:
    """The order statistic that new scores stay below with at least this probability;
    inf where there are too few.
    """
    at = rank(len(scores), coverage)
    return inf if at > len(scores) else float(np.sort(scores)[at - 1])


@dataclass(frozen=True)
class Calibration:
    """Scores of rows that were not trained on: the larger, the worse the prediction."""

    # of each model, on the rows that it has not seen; one model: split conformal
    scores: tuple[Floats, ...]
    groups: tuple[NDArray[Any], ...] | None  # the group of each of these rows

    def widths(self, coverage: float, group: Any, n_rows: int) -> Floats:
        """Split conformal: by how much to widen the prediction of every row."""
        (scores,) = self.scores
        pooled = threshold(scores, coverage)
        if group is None:
            return np.full(n_rows, pooled)
        if self.groups is None:
            raise ParameterError(
                "the calibration has no groups; call calibrate with group first, or leave group out."
            )
        own = np.asarray(group)
        if own.shape != (n_rows,):
            raise DataError(
                f"group has the shape {own.shape}; it needs one value for each of {n_rows} rows."
            )
        known = self.groups[0]
        texts = own.dtype.kind in "US", known.dtype.kind in "US"
        if own.dtype.kind != "O" and known.dtype.kind != "O" and texts[0] != texts[1]:
            raise DataError(
                f"group has the type {own.dtype}, but calibrate had {known.dtype}: 1 is not '1'."
            )
        # groups that calibration has not met, or of which it has too few rows
        found = np.full(n_rows, pooled)
        for one in dict.fromkeys(own.tolist()):
            mine = scores[self.groups[0] == one]
            if rank(len(mine), coverage) <= len(mine):
                found[own == one] = threshold(mine, coverage)
        return found

    def cross(
        self, low: Sequence[Floats], high: Sequence[Floats], coverage: float
    ) -> tuple[Floats, Floats]:
        """CV+ (Barber, Candes, Ramdas and Tibshirani 2021): ends from every model's
        prediction and its own scores.
        """
        n = sum(map(len, self.scores))
        at = rank(n, coverage)
        if at > n:
            return np.full(len(low[0]), -inf), np.full(len(low[0]), inf)
        return -_select([-one for one in low], self.scores, at), _select(
            high, self.scores, at
        )


def _select(centres: Sequence[Floats], scores: Sequence[Floats], at: int) -> Floats:
    """For every row, the `at`-th smallest of all sums of a model's centre and one of
    its scores, by bisection.
    """
    ordered = [np.sort(one) for one in scores]
    ends = [
        np.array(
            [centre + own[place] for centre, own in zip(centres, ordered, strict=True)]
        ).min(0)
        if place == 0
        else np.array(
            [centre + own[place] for centre, own in zip(centres, ordered, strict=True)]
        ).max(0)
        for place in (0, -1)
    ]
    low, high = (_as_integers(one) for one in ends)
    while (low < high).any():
        middle = low + (high - low) // np.uint64(2)
        value = _as_numbers(middle)
        count = np.zeros(len(value), np.int64)
        for centre, own in zip(centres, ordered, strict=True):
            count += np.searchsorted(own, value - centre, side="right")
        enough = count >= at
        high, low = (
            np.where(enough, middle, high),
            np.where(enough, low, np.minimum(middle + np.uint64(1), high)),
        )
    return _as_numbers(high)


def _as_integers(values: Floats) -> NDArray[np.uint64]:
    """Integers in the order of the numbers."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def _as_numbers(integers: NDArray[np.uint64]) -> Floats:
    """The numbers of `_as_integers`."""
    return np.where(integers & SIGN, integers & ~SIGN, ~integers).view(np.float64)
