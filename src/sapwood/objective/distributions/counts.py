"""Families of counts: Poisson and negative binomial, and both with additional zeros.

In: labels and scores. Out: what `Family` states. Scores are the log of the mean, the log of the size, a logit of zeros.
"""

from collections.abc import Sequence

import numpy as np

from sapwood.device import elementary
from sapwood.objective.distributions.family import Family, Floats, Mask, Parts, weighted_mean
from sapwood.objective.distributions.special import digamma, log_gamma, trigamma_excess

SIZE = (-5.0, 12.0)  # logs of the size are cut here; the upper end is a Poisson distribution


class Counts(Family):
    """What all families of counts share."""

    support, discrete = "a whole number of at least 0", True
    hint = " Counts are 0, 1, 2 and so on; amounts have dist='gamma', 'lognormal' or a hurdle form."

    def allowed(self, y: Floats) -> Mask:
        return np.asarray((y >= 0) & (y == np.floor(y)) & (y < 2.0**52))

    def log_zero(self, *parts: Floats) -> Floats:
        """The log of the probability of 0."""
        raise NotImplementedError

    def above(self, y: Floats, *parts: Floats) -> Floats:
        """The probability of more than y, which is at least 0: all digits of it, however small it is."""
        raise NotImplementedError

    def near(self, p: Floats, *parts: Floats) -> Floats:
        """A real number near the least count with a probability of at most it of at least p."""
        raise NotImplementedError

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        return searched(self, self.near(p, *parts), p, parts)


class Poisson(Counts):
    """Score: the log of the mean. It has no scale of its own to be recalibrated."""

    name, parameters, scale_at = "poisson", ("log_mean",), None

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
        from scipy import special

        return np.where(y < 0, 0.0, special.pdtr(np.maximum(np.floor(y), 0.0), parts[0]))

    def above(self, y: Floats, *parts: Floats) -> Floats:
        from scipy import special

        return np.asarray(special.pdtrc(np.floor(y), parts[0]))

    def near(self, p: Floats, *parts: Floats) -> Floats:
        from scipy import special

        return np.asarray(special.pdtrik(np.clip(p, 1e-300, 1 - 1e-16), parts[0]))

    def log_zero(self, *parts: Floats) -> Floats:
        return -parts[0]


class NegativeBinomial(Counts):
    """Scores: logs of the mean m and of the size r; the variance is m + m^2 / r.

    The hessian of the size is a bound of the Fisher information, which has the right limits.
    """

    name, parameters = "negative_binomial", ("log_mean", "log_size")

    def parts(self, score: Floats) -> Parts:
        return elementary.exp(np.clip(score[..., 0], -30.0, 30.0)), elementary.exp(np.clip(score[..., 1], *SIZE))

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        m, r = self.parts(score)
        share = m / (r + m)
        log_rest = -elementary.log1p(m / r)
        slope = -r * (digamma(y + r) - digamma(r) + log_rest + 1.0 - (y + r) / (r + m))
        return (r * (m - y) / (r + m), r * share), (slope, share * share * r * r * trigamma_excess(r))

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        mean = max(weighted_mean(y, weight), 1e-6)
        spread = weighted_mean((y - mean) ** 2, weight)
        size = mean * mean / max(spread - mean, 1e-3 * mean)
        return float(elementary.log(mean)), float(np.clip(elementary.log(size), -3.0, 8.0))

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
        from scipy import special

        m, r = parts
        return np.where(y < 0, 0.0, special.betainc(r, np.maximum(np.floor(y), 0.0) + 1.0, r / (r + m)))

    def above(self, y: Floats, *parts: Floats) -> Floats:
        from scipy import special

        m, r = parts
        return np.asarray(special.betainc(np.floor(y) + 1.0, r, m / (r + m)))

    def near(self, p: Floats, *parts: Floats) -> Floats:
        from scipy import special

        m, r = parts
        return np.asarray(special.nbdtrik(np.clip(p, 1e-300, 1 - 1e-16), r, r / (r + m)))

    def log_zero(self, *parts: Floats) -> Floats:
        return -parts[1] * elementary.log1p(parts[0] / parts[1])


def searched(family: Family, near: Floats, p: Floats, parts: Parts) -> Floats:
    """The least count with a probability of at most it of at least p, near a real number that solves the equation."""
    near = np.where(np.isfinite(near), near, 0.0)
    found = np.maximum(np.ceil(near) - 2.0, 0.0)
    for _ in range(5):
        found = np.where(family.cdf(found, *parts) < p, found + 1.0, found)
    return np.where(np.asarray(p) >= 1.0, np.inf, np.where(np.isnan(p), np.nan, found))
