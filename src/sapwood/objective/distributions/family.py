"""What every family of distributions states: a likelihood in scores, its derivatives,
and what is asked of it.

In: labels and scores (n_rows, n_outputs). Out: losses, gradients, Fisher hessians;
means, quantiles, probabilities.

A family is an objective of its own: `objective=` takes an object of it. Scores are
those of a parameterisation whose Fisher information has small or no terms off the
diagonal, so that a tree for each score is a step of Fisher scoring.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.errors import DataError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
# the parameters of a family, each of the shape that is asked for
Parts = tuple[Floats, ...]
MAX_EXPONENT = 60.0  # logarithms of scales are cut here
MIN_HESSIAN = 1e-12
LEVELS = 512  # of quantiles, in a numerical CRPS
LEVELS_AT_ONCE = 32


class Family:
    """The base of all families; `parts` gives the parameters of scores, and the other
    methods take these.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]  # what the scores are, in order
    support: ClassVar[str] = "a number"  # what a label may be
    discrete: ClassVar[bool] = False
    hint: ClassVar[str] = ""  # what to do with labels that are not in the support
    # whether each score moves by as much as the labels; empty: none does
    moved: ClassVar[tuple[bool, ...]] = ()
    # the score that recalibration shifts: the log of a scale, or of a precision
    scale_at: ClassVar[int | None] = 1

    link = "identity"

    @property
    def spec(self) -> str:
        """The name, with the constants of the family: `family_of` reads it."""
        return self.name

    @property
    def bounded(self) -> Mask:
        """The scores that are logarithms or logits, of which no step needs to be above
        1.
        """
        return np.array([one != "location" for one in self.parameters])

    @property
    def n_outputs(self) -> int:
        """Scores of a row."""
        return len(self.parameters)

    @property
    def metric(self) -> Any:
        """The mean negative log likelihood, as a metric."""
        return "nll", self.mean_loss, False

    # ---- Training --------------------------------------------------------------------

    def allowed(self, y: Floats) -> Mask:
        """Which labels the family can have."""
        return np.isfinite(y)

    def check(self, y: Floats) -> None:
        """Raise unless the family can have every label."""
        if y.ndim != 1:
            raise DataError(
                f"a distribution has one target; y has the shape {y.shape}."
            )
        good = self.allowed(y) & np.isfinite(y) & (np.abs(y) <= 1e150)
        if not good.all():
            row = int(good.argmin())
            raise DataError(
                f"label {y[row]:g} in row {row} is not {self.support}, as dist={self.name!r} needs.{self.hint}"
            )

    def parts(self, score: Floats) -> Parts:
        """The parameters of scores (n_rows, n_outputs)."""
        raise NotImplementedError

    def loss(self, y: Floats, score: Floats) -> Floats:
        """The negative log likelihood of each row."""
        return -self.log_density(y, *self.parts(two_dimensional(score)))

    def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
        """The derivatives of the loss in each score, and the diagonal of the Fisher
        information, or a bound of it.
        """
        pairs = self.derivatives(y, two_dimensional(score))
        g = np.column_stack([pair[0] for pair in pairs])
        h = np.maximum(np.column_stack([pair[1] for pair in pairs]), MIN_HESSIAN)
        return (g, h) if score.ndim == 2 else (g[:, 0], h[:, 0])

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        """Gradient and hessian of each score in turn."""
        raise NotImplementedError

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        """Scores near those that fit all rows best."""
        raise NotImplementedError

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The scores that fit all rows best: Fisher scoring from the guess. Sums are of
        integers.
        """
        share = np.ones(len(y)) if weight is None else weight
        live = share > 0
        y = y[live]
        share = share[live]
        score = np.array(self.guess(y, share), np.float64)
        for _ in range(60):
            g, h = self.grad_hess(y, np.tile(score, (len(y), 1)))
            step = np.array(
                [
                    -signed_total(share * g[:, k]) / total(share * h[:, k])
                    for k in range(len(score))
                ]
            )
            score = score + np.where(self.bounded, np.clip(step, -1.0, 1.0), step)
            if np.abs(step).max() < 1e-9 * (1.0 + np.abs(score).max()):
                break
        return score

    def precision(self, *parts: Floats) -> Floats | float:
        """The factor of the Fisher information of the first score that is not about its
        own size.

        Training divides gradient and hessian of the first score by it (NUMERICS,
        distributions).
        """
        return 1.0

    def leaf_values(self, output: int, value: Floats) -> Floats:
        """Leaf values from the Newton steps of one score: where the best one has a
        closed form, that.
        """
        return value

    def mean_loss(
        self, y: Floats, prediction: Floats, weight: Floats | None = None
    ) -> float:
        """The mean negative log likelihood of rows; predictions are scores."""
        loss = self.loss(y, prediction)
        share = np.ones(len(y)) if weight is None else weight
        whole = total(share)
        return signed_total(share * loss) / whole if whole > 0 else float("nan")

    # ---- Predictions -----------------------------------------------------------------

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        """The log of the density, or of the probability of a count."""
        raise NotImplementedError

    def mean(self, *parts: Floats) -> Floats:
        raise NotImplementedError

    def variance(self, *parts: Floats) -> Floats:
        raise NotImplementedError

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        """The probability of at most y."""
        raise NotImplementedError

    def below(self, y: Floats, *parts: Floats) -> Floats:
        """The probability of less than y; another one than `cdf` where values have a
        probability of their own.
        """
        return (
            self.cdf(np.ceil(y) - 1.0, *parts) if self.discrete else self.cdf(y, *parts)
        )

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        """The least value with a probability of at most it of at least p."""
        raise NotImplementedError

    def crps(self, y: Floats, *parts: Floats) -> Floats:
        """The continuous ranked probability score: twice the mean pinball loss over all
        levels, here 512 of them.
        """
        sum_of: Floats = np.zeros(len(y))
        by_row = tuple(one.reshape(-1, 1) for one in parts)
        for several in ((np.arange(LEVELS) + 0.5) / LEVELS).reshape(-1, LEVELS_AT_ONCE):
            quantiles = self.quantile(
                np.broadcast_to(several, (len(y), LEVELS_AT_ONCE)), *by_row
            )
            for level, quantile in zip(several, quantiles.T, strict=True):
                gap = y - quantile
                sum_of = sum_of + np.where(gap > 0, level * gap, (level - 1.0) * gap)
        return sum_of * (2.0 / LEVELS)


class Located(Family):
    """A family with a location and the log of a scale: z = (y - location) / scale."""

    parameters: ClassVar[tuple[str, ...]] = ("location", "log_scale")
    moved: ClassVar[tuple[bool, ...]] = (True, False)

    @property
    def reach(self) -> float | None:
        """The 95 % quantile of z; None where none is known that is the same on every
        machine.
        """
        return None

    def distances(self, y: Floats, score: Floats) -> Floats:
        """|z| of every row."""
        location, scale = self.parts(score)
        return np.abs((y - location) / scale)

    def parts(self, score: Floats) -> Parts:
        return score[..., 0], exponential(score[..., 1])

    def precision(self, *parts: Floats) -> Floats | float:
        return 1.0 / (parts[1] * parts[1])


def two_dimensional(score: Floats) -> Floats:
    """Scores as (n_rows, n_outputs)."""
    return score if score.ndim == 2 else score[:, None]


def exponential(x: Floats) -> Floats:
    """e^x, of logarithms that are cut."""
    return elementary.exp(np.clip(x, -MAX_EXPONENT, MAX_EXPONENT))


def whole(values: Floats) -> tuple[NDArray[np.int64], int]:
    """Numbers as integers whose sum fits 62 bits, and the power of 2 of their unit."""
    top = float(np.abs(values).max(initial=0.0))
    if top == 0.0:
        return np.zeros(len(values), np.int64), 0
    shift = 61 - int(np.frexp(top)[1]) - len(values).bit_length()
    return np.rint(np.ldexp(values, shift)).astype(np.int64), -shift


def signed_total(values: Floats) -> float:
    """A sum that does not depend on the order of the numbers."""
    integers, power = whole(values)
    return float(np.ldexp(float(integers.sum()), power))


def total(values: Floats) -> float:
    """A sum of weights or hessians, at least a tiny number, by which can be divided."""
    return max(signed_total(values), 1e-300)


def weighted_mean(values: Floats, weight: Floats) -> float:
    """A mean that does not depend on the order of rows."""
    return signed_total(values * weight) / total(weight)


def weighted_quantile(values: Floats, weight: Floats, level: float) -> float:
    """The least value with a share of at least `level` of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    integers, _ = whole(weight)
    reached = np.cumsum(integers[order])
    return float(
        values[order[int(np.searchsorted(reached, level * float(reached[-1])))]]
    )
