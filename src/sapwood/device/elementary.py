"""Elementary functions with the same bits on every machine.

In: numbers or arrays. Out: float64 of the same shape, from the core's own expressions and never from libm.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.device import host

__all__ = ["exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh"]


def _elementary(name: str, doc: str) -> Callable[[ArrayLike], NDArray[np.float64]]:
    """A function of the core, for arrays of any shape."""

    def function(x: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(x, np.float64)
        return host.math(name, np.ascontiguousarray(values).ravel()).reshape(values.shape)

    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return function


exp = _elementary("exp", "e to the power x.")
expm1 = _elementary("expm1", "e to the power x, minus 1, exact near 0.")
log = _elementary("log", "Natural logarithm.")
log1p = _elementary("log1p", "Natural logarithm of 1 + x, exact near 0.")
sigmoid = _elementary("sigmoid", "1 / (1 + e^-x).")
softplus = _elementary("softplus", "log(1 + e^x).")
tanh = _elementary("tanh", "Hyperbolic tangent.")
