"""Special functions with the same bits on every machine: gamma functions and the normal
distribution.

In: arrays of float64. Out: arrays of the same shape, by + - * / and the core's own
`log` and `exp`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary

Floats = NDArray[np.float64]
HALF_LOG_TWO_PI = 0.9189385332046727
# arguments are raised to at least this; the series below then have an error near 1e-16
SHIFT = 8


def _raised(
    x: Floats, first: float, gather: Callable[[Floats, Floats], Floats]
) -> tuple[Floats, Floats]:
    """Numbers raised by 1 until they are at least SHIFT, and what is gathered on the
    way, from `first` on.
    """
    raised = np.array(x, np.float64).ravel()
    gathered = np.full(len(raised), first)
    at = np.flatnonzero(raised < SHIFT)
    for _ in range(SHIFT):
        low = raised[at]
        gathered[at] = gather(gathered[at], low)
        raised[at] = low = low + 1.0
        at = at[low < SHIFT]
    return raised.reshape(np.shape(x)), gathered.reshape(np.shape(x))


def log_gamma(x: Floats) -> Floats:
    """log Gamma(x) for x > 0: Stirling's series, after the recurrence."""
    x, product = _raised(x, 1.0, lambda product, x: product * x)
    r = 1.0 / (x * x)
    series = 1 / 12 - r * (
        1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360))))
    )
    return np.asarray(
        (x - 0.5) * elementary.log(x)
        - x
        + HALF_LOG_TWO_PI
        + series / x
        - elementary.log(product)
    )


def log_minus_digamma(x: Floats) -> Floats:
    """log x - psi(x) for x > 0, without the difference of two large numbers."""
    start = np.asarray(x, np.float64)
    x, total = _raised(x, 0.0, lambda total, x: total + 1.0 / x)
    r = 1.0 / (x * x)
    series = 1 / 12 - r * (
        1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760))))
    )
    return np.asarray(total + 0.5 / x + r * series - elementary.log(x / start))


def digamma(x: Floats) -> Floats:
    """The derivative of log Gamma for x > 0."""
    return np.asarray(elementary.log(x) - log_minus_digamma(x))


def trigamma_excess(x: Floats) -> Floats:
    """psi'(x) - 1 / x for x > 0, without the difference of two large numbers."""
    start = np.asarray(x, np.float64)
    x, total = _raised(x, 0.0, lambda total, x: total + 1.0 / (x * x))
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (
        1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * (691 / 2730))))
    )
    return np.asarray(total + r * (0.5 + series / x) + (1.0 / x - 1.0 / start))


def trigamma(x: Floats) -> Floats:
    """The derivative of digamma for x > 0."""
    return np.asarray(trigamma_excess(x) + 1.0 / x)


def normal_quantile(p: Floats) -> Floats:
    """The inverse of the normal distribution function (Wichura 1988, AS 241, to about
    1e-16).
    """
    p = np.asarray(p, np.float64)
    q = p - 0.5
    r = 0.180625 - q * q
    middle = q * _ratio(r, CENTRE)
    tail = np.minimum(p, 1.0 - p)
    with np.errstate(divide="ignore"):
        t = np.sqrt(-elementary.log(np.maximum(tail, 1e-300)))
    outer = np.where(t <= 5.0, _ratio(t - 1.6, NEAR), _ratio(t - 5.0, FAR))
    outer = np.where(q < 0, -outer, outer)
    found = np.where(np.abs(q) <= 0.425, middle, outer)
    found = np.where(p <= 0.0, -np.inf, np.where(p >= 1.0, np.inf, found))
    return np.asarray(np.where(np.isnan(p), np.nan, found))


def _ratio(r: Floats, both: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    """The quotient of two polynomials, coefficients from the highest power down."""
    above = np.zeros(np.shape(r))
    below = np.zeros(np.shape(r))
    for a, b in zip(*both, strict=True):
        above = above * r + a
        below = below * r + b
    return np.asarray(above / below)


CENTRE = (
    (
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.387132872796366608,
    ),
    (
        5226.495278852854561,
        28729.085735721942674,
        39307.89580009271061,
        21213.794301586595867,
        5394.1960214247511077,
        687.1870074920579083,
        42.313330701600911252,
        1.0,
    ),
)
NEAR = (
    (
        7.7454501427834140764e-4,
        0.0227238449892691845833,
        0.24178072517745061177,
        1.27045825245236838258,
        3.64784832476320460504,
        5.7694972214606914055,
        4.6303378461565452959,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.475938084995344946e-4,
        0.0151986665636164571966,
        0.14810397642748007459,
        0.68976733498510000455,
        1.6763848301838038494,
        2.05319162663775882187,
        1.0,
    ),
)
FAR = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.0012426609473880784386,
        0.026532189526576123093,
        0.29656057182850489123,
        1.7848265399172913358,
        5.4637849111641143699,
        6.6579046435011037772,
    ),
    (
        2.04426310338993978564e-15,
        1.4215117583164458887e-7,
        1.8463183175100546818e-5,
        7.868691311456132591e-4,
        0.0148753612908506148525,
        0.13692988092273580531,
        0.59983220655588793769,
        1.0,
    ),
)
