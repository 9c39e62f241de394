"""Families of a location and a scale: normal, its logarithm, Student's t and Laplace.

In: labels and scores. Out: what `Family` states. Scores are the location and the log of
the scale.
"""

from collections.abc import Sequence

import numpy as np

from sapwood.device import elementary
from sapwood.errors import ParameterError
from sapwood.objective.distributions.family import (
    Floats,
    Located,
    Mask,
    exponential,
    weighted_mean,
    weighted_quantile,
)
from sapwood.objective.distributions.incomplete import beta_inverse, beta_shares
from sapwood.objective.distributions.special import (
    HALF_LOG_TWO_PI,
    log_gamma,
    normal_quantile,
)
from sapwood.objective.survival import normal_cdf

# standardised residuals beyond count as this in gradients: their squares would hide all
# others
MAX_Z = 100.0
ROOT_PI = 0.5641895835477563  # 1 / sqrt(pi)
# 95 % quantiles of Student's t
REACH = {
    3.0: 2.3533634348018233,
    4.0: 2.1318467863266495,
    6.0: 1.9431802805153042,
    10.0: 1.8124611228116756,
    30.0: 1.697260886593957,
    100.0: 1.6602343260853392,
}
MIN_RATIO = 1e-9  # the least factor of a scale in one leaf


class Normal(Located):
    """Gradient -z / scale and 1 - z^2; Fisher information 1 / scale^2 and 2."""

    name = "normal"
    reach = 1.6448536269514722

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        location, scale = self.parts(score)
        z = np.clip((y - location) / scale, -MAX_Z, MAX_Z)
        return (-z / scale, 1.0 / (scale * scale)), (1.0 - z * z, np.full(len(y), 2.0))

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        mean = weighted_mean(y, weight)
        spread = np.sqrt(weighted_mean((y - mean) ** 2, weight))
        return mean, float(elementary.log(max(spread, floor(y))))

    def leaf_values(self, output: int, value: Floats) -> Floats:
        """For the scale, log of the root mean square of z: a Newton step of v is (mean
        z^2 - 1) / 2.
        """
        return (
            value
            if output == 0
            else 0.5 * elementary.log(np.maximum(1.0 + 2.0 * value, MIN_RATIO))
        )

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        location, scale = parts
        z = (y - location) / scale
        return np.asarray(-0.5 * z * z - elementary.log(scale) - HALF_LOG_TWO_PI)

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return parts[1] * parts[1]

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return normal_cdf((y - parts[0]) / parts[1])

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        return np.asarray(parts[0] + parts[1] * normal_quantile(p))

    def crps(self, y: Floats, *parts: Floats) -> Floats:
        z = (y - parts[0]) / parts[1]
        density = elementary.exp(-0.5 * z * z - HALF_LOG_TWO_PI)
        return np.asarray(
            parts[1] * (z * (2.0 * normal_cdf(z) - 1.0) + 2.0 * density - ROOT_PI)
        )


class LogNormal(Normal):
    """The logarithm of the label is normal."""

    name = "lognormal"
    support = "a number above 0"
    moved = ()
    hint = " dist='hurdle_lognormal' takes zeros too."

    def allowed(self, y: Floats) -> Mask:
        return y > 0

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        return super().derivatives(elementary.log(y), score)

    def distances(self, y: Floats, score: Floats) -> Floats:
        return super().distances(elementary.log(y), score)

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        return super().guess(elementary.log(y), weight)

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        log = safe_log(y)
        return np.where(y > 0, super().log_density(log, *parts) - log, -np.inf)

    def mean(self, *parts: Floats) -> Floats:
        return exponential(parts[0] + 0.5 * parts[1] * parts[1])

    def variance(self, *parts: Floats) -> Floats:
        spread = parts[1] * parts[1]
        return elementary.expm1(np.minimum(spread, 700.0)) * exponential(
            2.0 * parts[0] + spread
        )

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        return np.where(y > 0, super().cdf(safe_log(y), *parts), 0.0)

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        return elementary.exp(super().quantile(p, *parts))

    def crps(self, y: Floats, *parts: Floats) -> Floats:
        return Located.crps(self, y, *parts)


class StudentT(Located):
    """Student's t with `df` degrees of freedom, the same for all rows; w = (df + 1) /
    (df + z^2).
    """

    name = "student_t"

    def __init__(self, df: float = 4.0) -> None:
        if not 1.0 <= df <= 1e6:
            raise ParameterError(f"df={df!r} of dist='student_t' is not from 1 to 1e6.")
        self.df = float(df)

    @property
    def spec(self) -> str:
        return f"student_t:{self.df:g}"

    @property
    def reach(self) -> float | None:
        return REACH.get(self.df)

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        location, scale = self.parts(score)
        z = (y - location) / scale
        df = self.df
        w = (df + 1.0) / (df + z * z)
        h = (df + 1.0) / ((df + 3.0) * scale * scale)
        return (-w * z / scale, h), (
            1.0 - w * z * z,
            np.full(len(y), 2.0 * df / (df + 3.0)),
        )

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        middle = weighted_quantile(y, weight, 0.5)
        spread = weighted_quantile(np.abs(y - middle), weight, 0.5) * 1.4
        return middle, float(elementary.log(max(spread, floor(y))))

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        location, scale = parts
        z = (y - location) / scale
        df = np.asarray(self.df)
        constant = (
            log_gamma((df + 1.0) / 2.0)
            - log_gamma(df / 2.0)
            - 0.5 * elementary.log(df * np.pi)
        )
        return np.asarray(
            constant
            - elementary.log(scale)
            - 0.5 * (df + 1.0) * elementary.log1p(z * z / df)
        )

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return (
            parts[1]
            * parts[1]
            * (self.df / (self.df - 2.0) if self.df > 2.0 else np.inf)
        )

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        t = (y - parts[0]) / parts[1]
        with np.errstate(divide="ignore", over="ignore"):
            square = t * t / self.df
            both_tails, _ = beta_shares(
                np.asarray(0.5 * self.df),
                np.asarray(0.5),
                1.0 / (1.0 + square),
                1.0 / (1.0 + 1.0 / square),
            )
        return np.where(t < 0, 0.5 * both_tails, 1.0 - 0.5 * both_tails)

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        p = np.asarray(p, np.float64)
        # rows often have the same levels
        tails, place = np.unique(np.minimum(p, 1.0 - p), return_inverse=True)
        logit = beta_inverse(np.asarray(0.5 * self.df), np.asarray(0.5), 2.0 * tails)
        size = (np.sqrt(self.df) * elementary.exp(-0.5 * logit))[place].reshape(p.shape)
        return np.asarray(parts[0] + parts[1] * np.where(p < 0.5, -size, size))


class Laplace(Located):
    """Gradient -sign(z) / scale and 1 - |z|; Fisher information 1 / scale^2 and 1."""

    name = "laplace"
    reach = 2.302585092994046

    def derivatives(self, y: Floats, score: Floats) -> Sequence[tuple[Floats, Floats]]:
        location, scale = self.parts(score)
        z = np.clip((y - location) / scale, -MAX_Z * MAX_Z, MAX_Z * MAX_Z)
        return (-np.sign(z) / scale, 1.0 / (scale * scale)), (
            1.0 - np.abs(z),
            np.ones(len(y)),
        )

    def guess(self, y: Floats, weight: Floats) -> Sequence[float]:
        middle = weighted_quantile(y, weight, 0.5)
        return middle, float(
            elementary.log(max(weighted_mean(np.abs(y - middle), weight), floor(y)))
        )

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The median, and the mean distance from it."""
        share = np.ones(len(y)) if weight is None else weight
        return np.array(self.guess(y[share > 0], share[share > 0]))

    def leaf_values(self, output: int, value: Floats) -> Floats:
        """For the scale, the log of the mean of |z|: a Newton step is that mean minus
        1.
        """
        return (
            value if output == 0 else elementary.log(np.maximum(1.0 + value, MIN_RATIO))
        )

    def log_density(self, y: Floats, *parts: Floats) -> Floats:
        return np.asarray(
            -np.abs(y - parts[0]) / parts[1] - elementary.log(2.0 * parts[1])
        )

    def mean(self, *parts: Floats) -> Floats:
        return parts[0]

    def variance(self, *parts: Floats) -> Floats:
        return 2.0 * parts[1] * parts[1]

    def cdf(self, y: Floats, *parts: Floats) -> Floats:
        z = (y - parts[0]) / parts[1]
        tail = 0.5 * elementary.exp(-np.abs(z))
        return np.where(z < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats, *parts: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            far = elementary.log(2.0 * np.minimum(p, 1.0 - p))
        return np.asarray(parts[0] + parts[1] * np.where(p < 0.5, far, -far))


def floor(y: Floats) -> float:
    """The least scale that a start may have: labels that are all the same have none."""
    least = 1e-6 * float(np.abs(y).max(initial=0.0))
    spread = float(y.max(initial=-np.inf) - y.min(initial=np.inf))
    if spread > 0:  # labels far from 0 have a scale of their own
        least = min(least, 1e-3 * spread)
    return max(least, 1e-12)


def safe_log(y: Floats) -> Floats:
    """The log of what is above 0; 0 elsewhere."""
    return elementary.log(np.where(y > 0, y, 1.0))
