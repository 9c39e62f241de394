"""Incomplete gamma and beta functions and their inverses, with the same bits on every
machine.

In: arrays of float64 that are broadcast. Out: arrays, by + - * / and the core's own
`log` and `exp`.

Each element has its own number of steps, so that it does not depend on the others.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.objective.distributions.special import (
    HALF_LOG_TWO_PI,
    SHIFT,
    log_gamma,
    normal_quantile,
)
from sapwood.objective.survival import normal_cdf

Floats = NDArray[np.float64]
# a function and 1 minus it, of which the smaller one is no difference of large numbers
Both = tuple[Floats, Floats]
EPSILON = 2.0**-52
TINY = 1e-300
TWO_PI = 6.283185307179586
MAX_STEPS = 20_000
# shapes from which on the incomplete gamma function is a normal one and a correction
LARGE = 1e4
MAX_ETA = 0.45  # beyond, the tails at LARGE are below 1e-300
# of the series in eta that belong to 1, 1 / a, 1 / a^2 and 1 / a^3
TERMS = (20, 16, 12, 8)
STIRLING = (Fraction(1), Fraction(1, 12), Fraction(1, 288), Fraction(-139, 51840))
MAX_NEWTON = 80
# the longest steps where the log of a tail is nearly a line, and where it bends
FAR_LEFT = 1e3
FAR_RIGHT = 4.0
VANISHING = -40.0  # the log of arguments below which the gamma function has one term


def gamma_shares(a: Floats, x: Floats) -> Both:
    """P(a, x) and Q(a, x) for a > 0 and x >= 0."""
    a, x = (np.array(one, np.float64) for one in np.broadcast_arrays(a, x))
    lower = np.array(np.where((x > 0) & (a < np.inf), 1.0, 0.0))
    upper = np.array(1.0 - lower)
    inside = (x > 0) & (x < np.inf) & (a < np.inf)
    regimes = (
        (inside & (a >= LARGE), _gamma_of_large_shapes),
        (inside & (a < LARGE) & (x < a + 1.0), _gamma_by_series),
        (inside & (a < LARGE) & (x >= a + 1.0), _gamma_by_fraction),
    )
    for chosen, function in regimes:
        if chosen.any():
            lower[chosen], upper[chosen] = function(a[chosen], x[chosen])
    unknown = np.isnan(a) | np.isnan(x)
    return np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper)


def beta_shares(a: Floats, b: Floats, x: Floats, y: Floats) -> Both:
    """I_x(a, b) and 1 minus it, for a, b > 0 and x + y = 1, of which the smaller one
    has all of its digits.
    """
    a, b, x, y = (np.array(one, np.float64) for one in np.broadcast_arrays(a, b, x, y))
    lower = np.array(np.where((y > 0) & ((b < np.inf) | (x <= 0)), 0.0, 1.0))
    upper = np.array(1.0 - lower)
    inside = (x > 0) & (y > 0) & (a < np.inf) & (b < np.inf)
    swapped = inside & (x * (a + b + 2.0) >= a + 1.0)
    direct = inside & ~swapped
    if direct.any():
        at = a[direct], b[direct], x[direct], y[direct]
        lower[direct] = beta_term(*at) / at[0] * _beta_fraction(*at[:3])
        upper[direct] = 1.0 - lower[direct]
    if swapped.any():
        at = b[swapped], a[swapped], y[swapped], x[swapped]
        upper[swapped] = beta_term(*at) / at[0] * _beta_fraction(*at[:3])
        lower[swapped] = 1.0 - upper[swapped]
    unknown = np.isnan(a) | np.isnan(b) | np.isnan(x) | np.isnan(y)
    return np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper)


def gamma_term(a: Floats, x: Floats) -> Floats:
    """x^a e^-x / Gamma(a), without the difference of large numbers."""
    return np.sqrt(a / TWO_PI) * elementary.exp(
        -a * _gap((x - a) / a, x / a) - _stirling(a)
    )


def beta_term(a: Floats, b: Floats, x: Floats, y: Floats) -> Floats:
    """x^a y^b / B(a, b) for x + y = 1, without the difference of large numbers."""
    away = b * x - a * y
    power = a * _gap(away / a, x * ((a + b) / a)) + b * _gap(
        -away / b, y * ((a + b) / b)
    )
    rest = _stirling(a + b) - _stirling(a) - _stirling(b)
    return np.sqrt(a / TWO_PI * (b / (a + b))) * elementary.exp(rest - power)


def gamma_inverse(a: Floats, p: Floats) -> Floats:
    """The x with P(a, x) = p."""
    a, p = (np.array(one, np.float64) for one in np.broadcast_arrays(a, p))
    with np.errstate(divide="ignore", invalid="ignore"):
        # below the log of x, and near it where x is small
        least = (elementary.log(p) + log_gamma(a + 1.0)) / a
        # Wilson and Hilferty
        cube = 1.0 - 1.0 / (9.0 * a) + normal_quantile(p) / (3.0 * np.sqrt(a))
        near = elementary.log(a * cube * cube * cube)
    near = np.where(cube > 0, np.maximum(near, least), least)
    top = elementary.log(a)
    start = np.where(p <= 0.5, np.minimum(near, top), np.maximum(near, top))

    def shares(t: Floats, at: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        x = elementary.exp(t)
        return *gamma_shares(a.ravel()[at], x), gamma_term(a.ravel()[at], x)

    found = elementary.exp(_inverse(shares, start, p, least >= VANISHING, FAR_RIGHT))
    found = np.where(least < VANISHING, elementary.exp(least), found)
    return np.where(p <= 0, 0.0, np.where(p >= 1, np.inf, found))


def beta_inverse(a: Floats, b: Floats, p: Floats) -> Floats:
    """log(x / (1 - x)) of the x with I_x(a, b) = p."""
    a, b, p = (np.array(one, np.float64) for one in np.broadcast_arrays(a, b, p))
    middle = elementary.log(a / b)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(1.0 / a + 1.0 / b)
        near = middle + np.clip(normal_quantile(p), -30.0, 30.0) * np.minimum(
            spread, 1.0
        )
    start = np.where(p <= 0.5, np.minimum(near, middle), np.maximum(near, middle))

    def shares(t: Floats, at: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        x = elementary.sigmoid(t)
        y = elementary.sigmoid(-t)
        one = a.ravel()[at], b.ravel()[at], x, y
        return *beta_shares(*one), beta_term(*one)

    t = _inverse(shares, start, p, np.ones(p.shape, np.bool_), FAR_LEFT)
    return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, t))


def _inverse(
    shares: Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats, Floats]],
    start: Floats,
    p: Floats,
    wanted: NDArray[np.bool_],
    most: float,
) -> Floats:
    """Newton's steps on the log of the smaller tail, which is concave on the scale of
    `start`.

    ``shares``: of some elements, the lower tail, the upper one, and the derivative of
    the lower one.
    """
    place = start.ravel().copy()
    level = p.ravel()
    at = np.flatnonzero(wanted.ravel() & (level > 0) & (level < 1))
    before = np.full(len(place), np.inf)
    for _ in range(MAX_NEWTON):
        if not len(at):
            break
        lower, upper, slope = shares(place[at], at)
        below = level[at] <= 0.5
        tail = np.maximum(np.where(below, lower, upper), TINY)
        target = np.where(below, level[at], 1.0 - level[at])
        step = elementary.log(target / tail) * tail / np.maximum(slope, TINY)
        step = np.clip(np.where(below, step, -step), -FAR_LEFT, most)
        place[at] += step
        size = np.abs(step)
        close = size < 1e-6
        done = (size <= 2.0 * EPSILON * (1.0 + np.abs(place[at]))) | (
            close & (size >= before[at])
        )
        before[at] = np.where(close, size, np.inf)
        at = at[~done]
    return place.reshape(start.shape)


def _gap(m: Floats, whole: Floats) -> Floats:
    """m - log(1 + m) for m > -1, without the difference of two large numbers;
    ``whole``: 1 + m, with all digits.
    """
    near = np.abs(m) < 0.5
    r = np.where(near, m / (2.0 + np.where(near, m, 0.0)), 0.0)
    square = r * r
    series = np.zeros(np.shape(m))
    for odd in range(39, 1, -2):
        series = series * square + 1.0 / odd
    with np.errstate(divide="ignore"):
        far = m - elementary.log(whole)
    return np.asarray(np.where(near, r * m - 2.0 * r * square * series, far))


def _stirling(x: Floats) -> Floats:
    """log Gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2."""
    raised = np.maximum(x, SHIFT)
    r = 1.0 / (raised * raised)
    series = 1 / 12 - r * (
        1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360))))
    )
    low = np.minimum(x, SHIFT)
    rest = log_gamma(low) - ((low - 0.5) * elementary.log(low) - low + HALF_LOG_TWO_PI)
    return np.asarray(np.where(x >= SHIFT, series / raised, rest))


def _gamma_by_series(a: Floats, x: Floats) -> Both:
    """The sum of x^n / ((a + 1) ... (a + n))."""
    total = np.ones(len(a))
    term = np.ones(len(a))
    at = np.arange(len(a))
    for n in range(1, MAX_STEPS):
        term[at] *= x[at] / (a[at] + n)
        total[at] += term[at]
        at = at[term[at] > 0.25 * EPSILON * total[at]]
        if not len(at):
            break
    lower = np.minimum(gamma_term(a, x) / a * total, 1.0)
    return lower, 1.0 - lower


def _gamma_by_fraction(a: Floats, x: Floats) -> Both:
    """Legendre's continued fraction of the upper tail."""
    b = x + 1.0 - a
    d = 1.0 / b
    value = d.copy()
    c = np.full(len(a), 1.0 / TINY)
    at = np.arange(len(a))
    for n in range(1, MAX_STEPS):
        factor = -n * (n - a[at])
        b[at] += 2.0
        d[at] = 1.0 / _not_zero(factor * d[at] + b[at])
        c[at] = _not_zero(b[at] + factor / c[at])
        change = d[at] * c[at]
        value[at] *= change
        at = at[np.abs(change - 1.0) > EPSILON]
        if not len(at):
            break
    upper = np.minimum(gamma_term(a, x) * value, 1.0)
    return 1.0 - upper, upper


def _gamma_of_large_shapes(a: Floats, x: Floats) -> Both:
    """Temme's uniform expansion (1979; DLMF 8.12): the normal tail, and a series in 1 /
    a.
    """
    ratio = (x - a) / a
    size = np.sqrt(2.0 * _gap(ratio, x / a))
    eta = np.copysign(np.minimum(size, MAX_ETA), ratio)
    rest = np.zeros(len(a))
    for coefficients in _temme()[::-1]:
        series = np.zeros(len(a))
        for one in coefficients[::-1]:
            series = series * eta + one
        rest = rest / a + series
    z = np.copysign(size, ratio) * np.sqrt(a)
    rest = rest * elementary.exp(-0.5 * z * z) / np.sqrt(TWO_PI * a)
    upper = np.clip(normal_cdf(-z) + rest, 0.0, 1.0)
    lower = np.clip(normal_cdf(z) - rest, 0.0, 1.0)
    return lower, upper


@cache
def _temme() -> tuple[tuple[float, ...], ...]:
    """The coefficients of the powers of eta, for each power of 1 / a, by their
    recurrences in fractions.
    """
    n_terms = TERMS[0] + 2 * len(TERMS)
    # lambda - 1 as a series in eta: its square is the solution of a recurrence
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, n_terms + 3):
        known = sum((j * alpha[n + 1 - j] * alpha[j] for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - known) / (n + 1))
    first = [Fraction(-1, 3), *((n + 2) * alpha[n + 2] for n in range(1, n_terms))]
    rows = [first]
    for k in range(1, len(TERMS)):
        sign = (-1) ** k * STIRLING[k]
        above = rows[-1]
        rows.append(
            [sign * first[n] + (n + 2) * above[n + 2] for n in range(len(above) - 2)]
        )
    return tuple(tuple(map(float, row[:n])) for row, n in zip(rows, TERMS, strict=True))


def _beta_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """The continued fraction of the incomplete beta function, for x below about its
    mean (DLMF 8.17.22).
    """
    d = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d.copy()
    c = np.ones(len(a))
    at = np.arange(len(a))
    for n in range(1, MAX_STEPS):
        own = a[at]
        other = b[at]
        z = x[at]
        even = n * (other - n) / (own + 2 * n - 1.0) * (z / (own + 2 * n))
        odd = -(own + n) / (own + 2 * n) * ((own + other + n) / (own + 2 * n + 1.0)) * z
        change = np.ones(len(at))
        for factor in (even, odd):
            d[at] = 1.0 / _not_zero(1.0 + factor * d[at])
            c[at] = _not_zero(1.0 + factor / c[at])
            change = d[at] * c[at]
            value[at] *= change
        at = at[np.abs(change - 1.0) > EPSILON]
        if not len(at):
            break
    return value


def _not_zero(x: Floats) -> Floats:
    """Denominators of a continued fraction: a tiny number instead of 0."""
    return np.where(np.abs(x) < TINY, TINY, x)
