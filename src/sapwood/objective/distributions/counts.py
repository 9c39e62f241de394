"""Families of counts: Poisson and negative binomial, and both with additional zeros.

In: labels and scores. Out: what `Family` states. Scores are the log of the mean, the
log of the size, a logit of zeros.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.objective.distributions.family import (
    Family,
    Floats,
    Mask,
    Parts,
    weighted_mean,
)
from sapwood.objective.distributions.incomplete import beta_shares, gamma_shares
from sapwood.objective.distributions.special import (
    digamma,
    log_gamma,
    normal_quantile,
    trigamma_excess,
)

MAX_COUNT = 2.0**53  # no quantile below 1 is larger
MAX_Z = 38.0  # standard deviations from the mean at which a search begins at most
# logs of the size are cut here; the upper end is a Poisson distribution
SIZE = (-5.0, 12.0)


class Counts(Family):
    """What all families of counts share."""

    support = "a whole number of at least 0"
    discrete = True
    hint = " Counts are 0, 1, 2 and so on; amounts have dist='gamma', 'lognormal' or a hurdle form."

    def allowed(self, y: Floats) -> Mask:
        return np.asarray((y >= 0) & (y == np.floor(y)) & (y < 2.0**52))

    def log_zero(self, *parts: Floats) -> Floats:
        """The log of the probability of 0."""
        raise NotImplementedError

    def above(self, y: Floats, *parts: Floats) -> Floats:
        """The probability of more than y, which is at least 0: all digits of it,
        however small it is.
        """
        raise NotImplementedError

    def near(self, p: Floats, *parts: Floats) -> Floats:
        """A number near the least count with a probability of at most it of at least p:
        the search begins there.
        """
        raise NotImplementedError

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        return searched(self, self.near(p, *parts), p, parts)


class Poisson(Counts):
    """Score: the log of the mean. It has no scale of its own to be recalibrated."""

    name = "poisson"
    parameters = ("log_mean",)
    scale_at = None

    def parts(self, score: Floats) -> Parts:
        return (elementary.exp(np.clip(score[..., 0], -30.0, 30.0)),)

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        (m,) = self.parts(score)
        return ((m - y, m),)

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        return (float(elementary.log(max(weighted_mean(y, weight), 1e-6))),)

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        (m,) = parts
        good = self.allowed(y)
        k = np.where(good, y, 0.0)
        return np.where(good, k * elementary.log(m) - m - log_gamma(k + 1.0), -np.inf)

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return parts[0]

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return np.where(
            y < 0, 0.0, gamma_shares(np.maximum(np.floor(y), 0.0) + 1.0, parts[0])[1]
        )

    def above(self, y: Floats, *parts: Floats) -> Floats:
        return gamma_shares(np.floor(y) + 1.0, parts[0])[0]

    def near(self, p: Floats, *parts: Floats) -> Floats:
        (m,) = parts
        return _near(p, m, m, np.asarray(1.0))

    def log_zero(self, *parts: Floats) -> Floats:
        return -parts[0]


class NegativeBinomial(Counts):
    """Scores: logs of the mean m and of the size r; the variance is m + m^2 / r.

    The hessian of the size is a bound of the Fisher information, which has the right
    limits.
    """

    name = "negative_binomial"
    parameters = ("log_mean", "log_size")

    def parts(self, score: Floats) -> Parts:
        return elementary.exp(np.clip(score[..., 0], -30.0, 30.0)), elementary.exp(
            np.clip(score[..., 1], *SIZE)
        )

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        m, r = self.parts(score)
        share = m / (r + m)
        log_rest = -elementary.log1p(m / r)
        slope = -r * (digamma(y + r) - digamma(r) + log_rest + 1.0 - (y + r) / (r + m))
        return (r * (m - y) / (r + m), r * share), (
            slope,
            share * share * r * r * trigamma_excess(r),
        )

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        mean = max(weighted_mean(y, weight), 1e-6)
        spread = weighted_mean((y - mean) ** 2, weight)
        size = mean * mean / max(spread - mean, 1e-3 * mean)
        return float(elementary.log(mean)), float(
            np.clip(elementary.log(size), -3.0, 8.0)
        )

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        m, r = parts
        good = self.allowed(y)
        k = np.where(good, y, 0.0)
        inner = log_gamma(k + r) - log_gamma(r) - log_gamma(k + 1.0)
        inner = inner - r * elementary.log1p(m / r) - k * elementary.log1p(r / m)
        return np.where(good, inner, -np.inf)

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return parts[0] + parts[0] * parts[0] / parts[1]

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        m, r = parts
        n_more = np.maximum(np.floor(y), 0.0) + 1.0
        return np.where(y < 0, 0.0, beta_shares(r, n_more, r / (r + m), m / (r + m))[0])

    def above(self, y: Floats, *parts: Floats) -> Floats:
        m, r = parts
        return beta_shares(np.floor(y) + 1.0, r, m / (r + m), r / (r + m))[0]

    def near(self, p: Floats, *parts: Floats) -> Floats:
        m, r = parts
        return _near(p, m, m + m * m / r, 1.0 + 2.0 * m / r)

    def log_zero(self, *parts: Floats) -> Floats:
        return -parts[1] * elementary.log1p(parts[0] / parts[1])


def searched(family: Family, near: Floats, p: Floats, parts: Parts) -> Floats:
    """The least count with a probability of at most it of at least p; the search begins
    near a number.
    """
    level = np.where(np.asarray(p) < 1.0, p, 0.0)
    start = np.where(np.isfinite(near), np.clip(np.ceil(near), 0.0, MAX_COUNT), 0.0)
    shape = np.broadcast_shapes(level.shape, start.shape, *(one.shape for one in parts))
    level, start, *each = (
        np.broadcast_to(one, shape).ravel() for one in (level, start, *parts)
    )

    def reaches(count: Floats, at: NDArray[np.intp]) -> Mask:
        return np.asarray(family.cdf(count, *(one[at] for one in each)) >= level[at])

    low, high = _bracket(reaches, start)
    at = np.flatnonzero(high - low > 1.0)
    while len(at):
        middle = np.floor(0.5 * (low[at] + high[at]))
        reached = reaches(middle, at)
        high[at] = np.where(reached, middle, high[at])
        low[at] = np.where(reached, low[at], middle)
        at = at[high[at] - low[at] > 1.0]
    found = high.reshape(shape)
    return np.where(np.asarray(p) >= 1.0, np.inf, np.where(np.isnan(p), np.nan, found))


def _bracket(
    reaches: Callable[[Floats, NDArray[np.intp]], Mask], start: Floats
) -> tuple[Floats, Floats]:
    """Counts that do not reach their level and counts that do, of which a start is
    one.
    """
    at = np.arange(len(start))
    reached = reaches(start, at)
    low = np.where(reached, start - 1.0, start)
    high = np.where(reached, start, start + 1.0)
    upwards = at[~reached]
    downwards = at[reached & (low >= 0)]
    step = 1.0
    while len(upwards) or len(downwards):
        upwards = upwards[
            ~reaches(high[upwards], upwards) & (high[upwards] < MAX_COUNT)
        ]
        low[upwards] = high[upwards]
        high[upwards] = np.minimum(high[upwards] + step, MAX_COUNT)
        downwards = downwards[reaches(low[downwards], downwards)]
        high[downwards] = low[downwards]
        low[downwards] = np.maximum(low[downwards] - step, -1.0)
        downwards = downwards[low[downwards] >= 0]
        step *= 2.0
    return low, high


def _near(p: Floats, mean: Floats, variance: Floats, skew: Floats) -> Floats:
    """The quantile of a normal distribution, corrected for skewness (Cornish and
    Fisher).
    """
    z = np.clip(normal_quantile(p), -MAX_Z, MAX_Z)
    return np.asarray(mean + z * np.sqrt(variance) + skew * (z * z - 1.0) / 6.0)
