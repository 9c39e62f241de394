"""core/objective/*.h again, in NumPy: the same operations in the same order, so the
same bits.

Scores, labels and field values enter; losses, gradients and hessians, knots and start
scores leave.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spec.reference.real import LN2, exp, log, log1p, sigmoid, softplus, tanh

Floats = NDArray[np.float64]
Fields = tuple[float, ...]
Knots = tuple[Floats, Floats, Floats]  # at, mass, level


class Objective(NamedTuple):
    """What core/math/loss.h asks of an objective; f holds the values of its fields."""

    loss: Callable[[Floats, Floats, Fields], Floats]
    grad_hess: Callable[[Floats, Floats, Fields], tuple[Floats, Floats]]
    knot: Callable[[Floats, Floats, Fields], Knots] | None = None
    start: Callable[[Floats], Floats] | None = None  # of the mean label; None: a search
    fields: Mapping[str, float] = MappingProxyType({})
    labels: str = "a number"
    link: str = "identity"
    leaf: str = "newton"
    steps: int = 100
    convex: bool = True
    adaptive: bool = False  # one more field: the first field's quantile of |knot|


def between(low: float, x: Floats, high: float) -> Floats:
    """x cut to low..high."""
    return np.where(x < low, low, np.where(x > high, high, x))


def at_label(s: Floats, y: Floats, mass: Floats | float, level: float) -> Knots:
    """The knot of |s - y| and its kin."""
    return y - s, np.broadcast_to(mass, s.shape), np.full(s.shape, level)


def median(s: Floats, y: Floats, f: Fields) -> Knots:
    return at_label(s, y, 1.0, 0.5)


# ---- Regression ----------------------------------------------------------------------


def squared_error(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    return s - y, np.ones_like(s)


def absolute_error(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    return np.where(s > y, 1.0, -1.0), np.ones_like(s)


def huber_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    (delta,) = f
    r = s - y
    a = np.abs(r)
    return np.where(a > delta, delta * (a - 0.5 * delta), 0.5 * r * r)


def huber(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    return between(-f[0], s - y, f[0]), np.ones_like(s)


def quantile_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    return np.where(y > s, f[0] * (y - s), (1.0 - f[0]) * (s - y))


def quantile(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    return np.where(y >= s, -f[0], 1.0 - f[0]), np.ones_like(s)


def expectile_weight(s: Floats, y: Floats, f: Fields) -> Floats:
    return np.where(y > s, f[0], 1.0 - f[0])


def expectile_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    return 0.5 * expectile_weight(s, y, f) * (s - y) * (s - y)


def expectile(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    h = expectile_weight(s, y, f)
    return h * (s - y), h


def log_cosh_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    a = np.abs(s - y)
    return a + (softplus(-2.0 * a) - LN2)


def log_cosh(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    r = s - y
    g = tanh(r)
    return g, np.where(r == 0.0, 1.0, g / r)


def fair_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    (c,) = f
    a = np.abs(s - y)
    u = a / c
    series = (a * a) * (0.5 - u * (1.0 / 3.0 - u * (0.25 - u * 0.2)))
    return np.where(u < 1e-3, series, c * (a - c * log1p(u)))


def fair(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    h = f[0] / (f[0] + np.abs(s - y))
    return h * (s - y), h


def mape_mass(y: Floats) -> Floats:
    return 1.0 / np.maximum(np.abs(y), 1.0)


def mape_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    return mape_mass(y) * np.abs(s - y)


def mape(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    m = mape_mass(y)
    return np.where(s > y, m, -m), np.ones_like(s)


def squared_log_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    r = s - log1p(y)
    return 0.5 * r * r


def squared_log(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    return s - log1p(y), np.ones_like(s)


def poisson(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    m = exp(s)
    return m - y, np.maximum(m, 1e-16)


def gamma(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    m = y * exp(-s)
    return 1.0 - m, np.maximum(m, 1e-16)


def tweedie_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    a = f[0] - 1.0
    b = 2.0 - f[0]
    return y * exp(-a * s) / a + exp(b * s) / b


def tweedie(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    a = f[0] - 1.0
    b = 2.0 - f[0]
    low = y * exp(-a * s)
    high = exp(b * s)
    return high - low, np.maximum(a * low + b * high, 1e-16)


def log_mean(mean: Floats) -> Floats:
    return log(np.where(mean > 0.0, mean, 1e-15))


# ---- Classification ------------------------------------------------------------------


def logistic_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    return softplus(s) - y * s


def logistic(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    p = sigmoid(s)
    return p - y, np.maximum(p * (1.0 - p), 1e-16)


def log_odds(mean: Floats) -> Floats:
    p = between(1e-15, mean, 1.0 - 1e-15)
    return log(p / (1.0 - p))


def exponential_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    return exp((1.0 - 2.0 * y) * s)


def exponential(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    t = 2.0 * y - 1.0
    h = exp(-t * s)
    return -t * h, h


def focal_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    z = (2.0 * y - 1.0) * s
    a = np.where(y > 0.5, f[1], 1.0 - f[1])
    return a * exp(-f[0] * softplus(z)) * softplus(-z)


def focal(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    t = 2.0 * y - 1.0
    c = f[0]
    a = np.where(y > 0.5, f[1], 1.0 - f[1])
    z = t * s
    p = sigmoid(z)
    q = sigmoid(-z)
    cost = softplus(-z)
    w = a * exp(-c * softplus(z))
    v = w * p * (c * c * p * cost + q * (1.0 + 2.0 * c))
    return -t * w * (c * p * cost + q), np.maximum(v, 1e-16)


def hinge_loss(s: Floats, y: Floats, f: Fields) -> Floats:
    return np.maximum(1.0 - (2.0 * y - 1.0) * s, 0.0)


def hinge(s: Floats, y: Floats, f: Fields) -> tuple[Floats, Floats]:
    t = 2.0 * y - 1.0
    return np.where(t * s < 1.0, -t, 0.0), np.ones_like(s)


def hinge_knot(s: Floats, y: Floats, f: Fields) -> Knots:
    return (2.0 * y - 1.0) - s, np.ones_like(s), y


def softmax(s: Floats, hit: Floats) -> tuple[Floats, Floats]:
    """NUMERICS 7: gradients and hessians (n_outputs, n_rows); the outputs are added in
    their order.
    """
    z = exp(s - s.max(axis=0))
    t = z[0]
    for k in range(1, len(z)):
        t = t + z[k]
    p = z / t
    n = len(s)
    return p - hit, np.maximum(n / (n - 1) * (p * (1.0 - p)), 1e-16)


def margin(s: Floats, k: int) -> Floats:
    """NUMERICS 8: along its score k, softmax is the logistic loss of [y = k] at this
    score.
    """
    others = np.delete(s, k, axis=0)
    top = others.max(axis=0)
    total = np.zeros(s.shape[1])
    for z in exp(others - top):
        total = total + z
    return (s[k] - top) - log(total)


# ---- The shelf -----------------------------------------------------------------------

COUNT = "a number of at least 0"
SOFT = "a number from 0 to 1"
LOGISTIC = Objective(
    logistic_loss, logistic, start=log_odds, labels="0 or 1", link="sigmoid"
)
LINEAR = Objective(
    lambda s, y, f: np.abs(s - y), absolute_error, median, leaf="exact", steps=0
)
OBJECTIVES = {
    "squared_error": Objective(
        lambda s, y, f: 0.5 * (s - y) * (s - y),
        squared_error,
        start=lambda m: m,
        steps=1,
    ),
    "absolute_error": LINEAR,
    "mape": LINEAR._replace(
        loss=mape_loss,
        grad_hess=mape,
        knot=lambda s, y, f: at_label(s, y, mape_mass(y), 0.5),
    ),
    "quantile": LINEAR._replace(
        loss=quantile_loss,
        grad_hess=quantile,
        knot=lambda s, y, f: at_label(s, y, 1.0, f[0]),
        fields={"quantile_alpha": 0.5},
    ),
    "huber": LINEAR._replace(
        loss=huber_loss,
        grad_hess=huber,
        leaf="friedman",
        steps=1,
        fields={"huber_delta": 1.0},
    ),
    "adaptive_huber": LINEAR._replace(
        loss=lambda s, y, f: huber_loss(s, y, f[1:]),
        grad_hess=lambda s, y, f: huber(s, y, f[1:]),
        fields={"huber_quantile": 0.9},
        leaf="friedman",
        steps=1,
        adaptive=True,
    ),
    "expectile": Objective(expectile_loss, expectile, fields={"expectile_alpha": 0.5}),
    "log_cosh": Objective(log_cosh_loss, log_cosh),
    "fair": Objective(fair_loss, fair, fields={"fair_c": 1.0}),
    "squared_log": Objective(
        squared_log_loss, squared_log, labels=COUNT, link="expm1", steps=1
    ),
    "poisson": Objective(
        lambda s, y, f: exp(s) - y * s,
        poisson,
        start=log_mean,
        labels=COUNT,
        link="exp",
    ),
    "gamma": Objective(
        lambda s, y, f: y * exp(-s) + s,
        gamma,
        start=log,
        labels="a number above 0",
        link="exp",
    ),
    "tweedie": Objective(
        tweedie_loss,
        tweedie,
        start=log_mean,
        fields={"tweedie_power": 1.5},
        labels=COUNT,
        link="exp",
    ),
    "logistic": LOGISTIC,
    "cross_entropy": LOGISTIC._replace(labels=SOFT),
    "multilabel": LOGISTIC,
    "one_vs_all": LOGISTIC._replace(labels="a class index", link="one_vs_all"),
    "softmax": LOGISTIC._replace(
        start=lambda m: log(np.maximum(m, 1e-15)),
        labels="a class index",
        link="softmax",
    ),
    "exponential": LOGISTIC._replace(
        loss=exponential_loss,
        grad_hess=exponential,
        start=lambda m: 0.5 * log_odds(m),
        link="sigmoid2",
    ),
    "focal": LOGISTIC._replace(
        loss=focal_loss,
        grad_hess=focal,
        start=None,
        fields={"focal_gamma": 2.0, "focal_alpha": 0.25},
        convex=False,
    ),
    "hinge": LINEAR._replace(
        loss=hinge_loss, grad_hess=hinge, knot=hinge_knot, labels="0 or 1", link="step"
    ),
}
