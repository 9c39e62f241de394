"""Elementary functions with the same bits on every machine.

In: numbers or arrays. Out: float64 of the same shape, from the core's own expressions and never from libm.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.device import host

__all__ = ["exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh"]


def exp(x: ArrayLike) -> NDArray[np.float64]:
    """e to the power x."""
    return _call("exp", x)


def expm1(x: ArrayLike) -> NDArray[np.float64]:
    """e to the power x, minus 1, exact near 0."""
    return _call("expm1", x)


def log(x: ArrayLike) -> NDArray[np.float64]:
    """Natural logarithm."""
    return _call("log", x)


def log1p(x: ArrayLike) -> NDArray[np.float64]:
    """Natural logarithm of 1 + x, exact near 0."""
    return _call("log1p", x)


def sigmoid(x: ArrayLike) -> NDArray[np.float64]:
    """1 / (1 + e^-x)."""
    return _call("sigmoid", x)


def softplus(x: ArrayLike) -> NDArray[np.float64]:
    """log(1 + e^x)."""
    return _call("softplus", x)


def tanh(x: ArrayLike) -> NDArray[np.float64]:
    """Hyperbolic tangent."""
    return _call("tanh", x)


def _call(name: str, x: Any) -> NDArray[np.float64]:
    values = np.asarray(x, np.float64)
    return host.math(name, np.ascontiguousarray(values).ravel()).reshape(values.shape)
