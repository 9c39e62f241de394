"""Families of positive amounts and of shares: gamma, Weibull, beta.

In: labels and scores. Out: what `Family` states. Scores are logs of a mean or scale, a
logit, and logs of shapes.
"""

from collections.abc import Sequence

import numpy as np

from sapwood.device import elementary
from sapwood.objective.distributions.family import (
    Family,
    Floats,
    Mask,
    Parts,
    exponential,
    weighted_mean,
)
from sapwood.objective.distributions.incomplete import (
    beta_inverse,
    beta_shares,
    gamma_inverse,
    gamma_shares,
)
from sapwood.objective.distributions.located import safe_log
from sapwood.objective.distributions.special import (
    digamma,
    log_gamma,
    log_minus_digamma,
    trigamma,
    trigamma_excess,
)

EULER = 0.5772156649015329
# Fisher information of the log of the shape
WEIBULL_BEND = np.pi * np.pi / 6.0 + (1.0 - EULER) ** 2
MAX_POWER = 30.0  # logarithms of (y / scale)^shape are cut here


class Gamma(Family):
    """Scores: logs of the mean m and of the shape k. Both are orthogonal. t = log(y /
    m).
    """

    name = "gamma"
    support = "a number above 0"
    parameters = ("log_mean", "log_shape")
    hint = " dist='hurdle_gamma' takes zeros too."

    def allowed(self, y: Floats) -> Mask:
        return y > 0

    def parts(self, score: Floats) -> Parts:
        return exponential(score[..., 0]), elementary.exp(
            np.clip(score[..., 1], -12.0, 18.0)
        )

    def precision(self, *parts: Floats) -> Floats | float:
        return parts[1]

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        _, k = self.parts(score)
        t = elementary.log(y) - score[:, 0]
        ratio = elementary.exp(np.minimum(t, MAX_POWER))
        slope = -k * (log_minus_digamma(k) + (1.0 + t - ratio))
        return (k * (1.0 - ratio), k), (slope, k * k * trigamma_excess(k))

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        top = float(y.max())
        mean = float(elementary.log(weighted_mean(y / top, weight))) + float(
            elementary.log(top)
        )
        gap = max(mean - weighted_mean(elementary.log(y), weight), 1e-8)
        shape = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
        return mean, min(float(elementary.log(shape)), 14.0)

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        m, k = parts
        inside = (y > 0) & (y < np.inf)
        log = safe_log(np.where(inside, y, 1.0))
        t = log - elementary.log(m)
        inner = k * (t - elementary.exp(t)) + k * elementary.log(k) - log_gamma(k) - log
        return np.where(inside, inner, -np.inf)

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return parts[0] * parts[0] / parts[1]

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return gamma_shares(parts[1], np.maximum(y, 0.0) / parts[0] * parts[1])[0]

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        return np.asarray(gamma_inverse(parts[1], p) / parts[1] * parts[0])


class Weibull(Family):
    """Scores: logs of the scale and of the shape c; u = (y / scale)^c. The cross term
    is left out.
    """

    name = "weibull"
    support = "a number above 0"
    parameters = ("log_scale", "log_shape")
    hint = " dist='hurdle_weibull' takes zeros too."

    def allowed(self, y: Floats) -> Mask:
        return y > 0

    def parts(self, score: Floats) -> Parts:
        return exponential(score[..., 0]), elementary.exp(
            np.clip(score[..., 1], -5.0, 10.0)
        )

    def precision(self, *parts: Floats) -> Floats | float:
        return parts[1] * parts[1]

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        _, c = self.parts(score)
        power = np.minimum(c * (elementary.log(y) - score[:, 0]), MAX_POWER)
        u = elementary.exp(power)
        return (c * (1.0 - u), c * c), (
            -(1.0 + power * (1.0 - u)),
            np.full(len(y), WEIBULL_BEND),
        )

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        log = elementary.log(y)
        mean = weighted_mean(log, weight)
        spread = max(float(np.sqrt(weighted_mean((log - mean) ** 2, weight))), 1e-4)
        shape = 1.2825498301618641 / spread  # pi / sqrt(6)
        return mean + EULER / shape, float(elementary.log(shape))

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        scale, c = parts
        log = safe_log(y)
        power = np.minimum(c * (log - elementary.log(scale)), 700.0)
        return np.where(
            y > 0, elementary.log(c) - log + power - elementary.exp(power), -np.inf
        )

    def mean(self, *parts: Floats) -> Floats:
        return parts[0] * elementary.exp(log_gamma(1.0 + 1.0 / parts[1]))

    def variance(self, *parts: Floats) -> Floats:
        first = log_gamma(1.0 + 1.0 / parts[1])
        second = log_gamma(1.0 + 2.0 / parts[1])
        return (
            parts[0] ** 2
            * elementary.exp(2.0 * first)
            * elementary.expm1(np.maximum(second - 2.0 * first, 0.0))
        )

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        power = np.minimum(
            parts[1] * (safe_log(y) - elementary.log(parts[0])), MAX_POWER
        )
        return np.where(y > 0, -elementary.expm1(-elementary.exp(power)), 0.0)

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            inner = -elementary.log1p(-np.asarray(p, np.float64))
            return np.asarray(
                parts[0] * elementary.exp(elementary.log(inner) / parts[1])
            )


class Beta(Family):
    """Scores: the logit of the mean and the log of the precision; a = mean * precision,
    b = precision - a.
    """

    name = "beta"
    support = "a number between 0 and 1, neither 0 nor 1"
    parameters = ("logit_mean", "log_precision")
    hint = " dist='hurdle_beta' takes zeros too; labels of 0 and 1 can be drawn inside: (y * (n - 1) + 0.5) / n."

    def allowed(self, y: Floats) -> Mask:
        return (y > 0) & (y < 1)

    def parts(self, score: Floats) -> Parts:
        mean = elementary.sigmoid(np.clip(score[..., 0], -30.0, 30.0))
        return mean, elementary.exp(np.clip(score[..., 1], -5.0, 16.0))

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        mean, f = self.parts(score)
        other = elementary.sigmoid(-np.clip(score[:, 0], -30.0, 30.0))
        a = mean * f
        b = other * f
        psi_a = digamma(a)
        psi_b = digamma(b)
        bend_a = trigamma(a)
        bend_b = trigamma(b)
        log = elementary.log(y)
        log_other = elementary.log1p(-y)
        spread = f * mean * other
        g_mean = -spread * ((log - log_other) - (psi_a - psi_b))
        g_precision = -f * (
            digamma(f) - mean * psi_a - other * psi_b + mean * log + other * log_other
        )
        h_precision = (
            f * f * (mean * mean * bend_a + other * other * bend_b - trigamma(f))
        )
        return (g_mean, spread * spread * (bend_a + bend_b)), (g_precision, h_precision)

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        mean = weighted_mean(y, weight)
        spread = max(weighted_mean((y - mean) ** 2, weight), 1e-9)
        precision = max(mean * (1.0 - mean) / spread - 1.0, 0.1)
        return float(elementary.log(mean / (1.0 - mean))), float(
            elementary.log(precision)
        )

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        mean, f = parts
        a = mean * f
        b = (1.0 - mean) * f
        inside = (y > 0) & (y < 1)
        x = np.where(inside, y, 0.5)
        constant = log_gamma(f) - log_gamma(a) - log_gamma(np.maximum(b, 1e-300))
        return np.where(
            inside,
            constant + (a - 1.0) * elementary.log(x) + (b - 1.0) * elementary.log1p(-x),
            -np.inf,
        )

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return parts[0] * (1.0 - parts[0]) / (1.0 + parts[1])

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        mean, f = parts
        x = np.clip(y, 0.0, 1.0)
        return beta_shares(mean * f, (1.0 - mean) * f, x, 1.0 - x)[0]

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        return elementary.sigmoid(
            beta_inverse(parts[0] * parts[1], (1.0 - parts[0]) * parts[1], p)
        )
