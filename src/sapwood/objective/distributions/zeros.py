"""Families with zeros of their own: counts with additional zeros, and amounts behind a
hurdle.

In: labels and scores. Out: what `Family` states. The last score is the logit of a
probability of zeros.
"""

from collections.abc import Sequence

import numpy as np

from sapwood.device import elementary
from sapwood.objective.distributions.counts import (
    Counts,
    NegativeBinomial,
    Poisson,
    searched,
)
from sapwood.objective.distributions.family import (
    Family,
    Floats,
    Mask,
    Parts,
    total,
    weighted_mean,
)

MAX_LOGIT = 30.0


class WithZeros(Family):
    """A family of other numbers, and a probability of zeros."""

    scale_at = None

    def __init__(self, base: Family) -> None:
        self.base = base
        self.name, self.discrete = f"{self.prefix}_{base.name}", base.discrete  # type: ignore[misc]
        self.parameters = (*base.parameters, "logit_zero")  # type: ignore[misc]
        self.scale_at = base.scale_at

    prefix = ""

    def parts(self, score: Floats) -> Parts:
        zero = elementary.sigmoid(np.clip(score[..., -1], -MAX_LOGIT, MAX_LOGIT))
        return *self.base.parts(score[..., :-1]), zero

    def precision(self, *parts: Floats) -> Floats | float:
        return self.base.precision(*parts[:-1])

    def leaf_values(self, output: int, value: Floats) -> Floats:
        return (
            value
            if output == len(self.base.parameters)
            else self.base.leaf_values(output, value)
        )

    def mean(self, *parts: Floats) -> Floats:
        return (1.0 - parts[-1]) * self.base.mean(*parts[:-1])

    def variance(self, *parts: Floats) -> Floats:
        zero = parts[-1]
        mean = self.base.mean(*parts[:-1])
        return (1.0 - zero) * (self.base.variance(*parts[:-1]) + zero * mean * mean)


class ZeroInflated(WithZeros):
    """Counts, some of which are zeros for another reason (with the probability of the
    last score).

    Hessians are those of the complete data, which are above the Fisher information.
    """

    prefix = "zero_inflated"

    def __init__(self, base: Counts) -> None:
        super().__init__(base)
        self.support, self.hint = base.support, base.hint  # type: ignore[misc]
        self.counts = base

    def allowed(self, y: Floats) -> Mask:
        return self.base.allowed(y)

    def _share(self, y: Floats, parts: Parts) -> Floats:
        """The probability that a zero is one of the additional ones."""
        zero = parts[-1]
        usual = (1.0 - zero) * elementary.exp(self.counts.log_zero(*parts[:-1]))
        return np.where(y == 0, zero / np.maximum(zero + usual, 1e-300), 0.0)

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        parts = self.parts(score)
        q = self._share(y, parts)
        zero = parts[-1]
        own = self.base.derivatives(y, score[:, :-1])
        scaled = [((1.0 - q) * g, np.maximum((1.0 - q) * h, 1e-6)) for g, h in own]
        return *scaled, (zero - q, np.maximum(zero * (1.0 - zero), 1e-6))

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        share = np.clip(
            weighted_mean((y == 0).astype(np.float64), weight), 1e-3, 1 - 1e-3
        )
        some = y > 0
        base = (
            self.base.guess(y[some], weight[some])
            if some.any()
            else self.base.guess(y, weight)
        )
        return *base, float(elementary.log(0.5 * share / (1.0 - 0.5 * share)))

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        zero = parts[-1]
        own = parts[:-1]
        at_zero = zero + (1.0 - zero) * elementary.exp(self.counts.log_zero(*own))
        other = elementary.log(np.maximum(1.0 - zero, 1e-300)) + self.base.log_density(
            y, *own
        )
        return np.where(y == 0, elementary.log(np.maximum(at_zero, 1e-300)), other)

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return np.where(
            y < 0, 0.0, parts[-1] + (1.0 - parts[-1]) * self.base.cdf(y, *parts[:-1])
        )

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        zero = parts[-1]
        rest = np.clip((p - zero) / np.maximum(1.0 - zero, 1e-300), 0.0, 1.0)
        found = self.base.quantile(rest, *parts[:-1])
        near = np.where(np.isfinite(found), found, 0.0)
        return np.where(
            np.isinf(found), found, searched(self, near, np.asarray(p), parts)
        )


class Hurdle(WithZeros):
    """Zeros with a probability of their own, and another family above; both are learned
    apart.
    """

    prefix = "hurdle"

    def __init__(self, base: Family) -> None:
        super().__init__(base)
        self.support = f"0 or {base.support}"  # type: ignore[misc]

    def allowed(self, y: Floats) -> Mask:
        return np.asarray(
            (y == 0) | self.base.allowed(np.where(y == 0, inside(self.base), y))
        )

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        is_zero = y == 0
        zero = self.parts(score)[-1]
        own = self.base.derivatives(
            np.where(is_zero, inside(self.base), y), score[:, :-1]
        )
        kept = [(np.where(is_zero, 0.0, g), np.where(is_zero, 0.0, h)) for g, h in own]
        return *kept, (zero - is_zero, np.maximum(zero * (1.0 - zero), 1e-6))

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        share = np.ones(len(y)) if weight is None else weight
        is_zero = y == 0
        zero = total(share * is_zero) / total(share)
        zero = min(max(zero, 1e-6), 1.0 - 1e-6)
        some = ~is_zero & (share > 0)
        base = (
            self.base.start(y[some], share[some])
            if some.any()
            else np.zeros(len(self.base.parameters))
        )
        return np.append(base, elementary.log(zero / (1.0 - zero)))

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        zero = parts[-1]
        is_zero = y == 0
        other = self.base.log_density(
            np.where(is_zero, inside(self.base), y), *parts[:-1]
        )
        other = elementary.log(np.maximum(1.0 - zero, 1e-300)) + other
        return np.where(is_zero, elementary.log(np.maximum(zero, 1e-300)), other)

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return np.where(
            y < 0, 0.0, parts[-1] + (1.0 - parts[-1]) * self.base.cdf(y, *parts[:-1])
        )

    def below(self, y: Floats, *parts: Floats) -> Floats:
        own = parts[-1] + (1.0 - parts[-1]) * self.base.below(y, *parts[:-1])
        return np.where(y <= 0, 0.0, own)

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        zero = parts[-1]
        rest = np.clip((p - zero) / np.maximum(1.0 - zero, 1e-300), 0.0, 1.0)
        return np.where(
            p <= zero,
            0.0,
            self.base.quantile(np.where(rest > 0, rest, 0.5), *parts[:-1]),
        )


class AboveZero(Counts):
    """Counts without zeros, for the hurdle: goes before a family of counts among the
    bases of a class.
    """

    support = "a whole number above 0"

    def allowed(self, y: Floats) -> Mask:
        return np.asarray((y >= 1) & super().allowed(y))

    def some(self, *parts: Floats) -> Floats:
        """The probability of a count above 0, before zeros are left out."""
        return -elementary.expm1(self.log_zero(*parts))

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        usual = super().log_density(y, *parts) - elementary.log(self.some(*parts))
        return np.where(y >= 1, usual, -np.inf)

    def mean(self, *parts: Floats) -> Floats:
        return super().mean(*parts) / self.some(*parts)

    def variance(self, *parts: Floats) -> Floats:
        usual = super().mean(*parts)
        mean = usual / self.some(*parts)
        return mean * (super().variance(*parts) / usual + usual - mean)

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return np.where(
            y < 1, 0.0, 1.0 - self.above(np.maximum(y, 1.0), *parts) / self.some(*parts)
        )

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        level = elementary.exp(self.log_zero(*parts)) + p * self.some(*parts)
        return np.maximum(
            searched(self, self.near(level, *parts), np.asarray(p), parts), 1.0
        )


class PoissonAboveZero(AboveZero, Poisson):
    """The gradient is mean - y, the Fisher information the variance."""

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        parts = self.parts(score)
        return ((self.mean(*parts) - y, np.maximum(self.variance(*parts), 1e-9)),)

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        return (float(elementary.log(max(weighted_mean(y, weight) - 1.0, 0.1))),)


class NegativeBinomialAboveZero(AboveZero, NegativeBinomial):
    """Gradients are those of all counts, and those of log(1 - probability of 0).

    The hessian of the size is that of all counts, divided by the probability of a count
    above 0, which is a bound.
    """

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        m, r = self.parts(score)
        rest = r / (r + m)
        some = self.some(m, r)
        _, (slope, bend) = super().derivatives(y, score)
        odds = elementary.exp(self.log_zero(m, r)) / some
        slope = slope + odds * r * (elementary.log1p(m / r) - m / (r + m))
        first = (
            rest * (self.mean(m, r) - y),
            np.maximum(rest * rest * self.variance(m, r), 1e-9),
        )
        return first, (slope, np.maximum(bend / some, 1e-9))

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        _, size = super().guess(y, weight)
        return float(elementary.log(max(weighted_mean(y, weight) - 1.0, 0.1))), size


def inside(family: Family) -> float:
    """A label that a family can have, in the place of zeros."""
    return 0.5 if family.name == "beta" else 1.0
