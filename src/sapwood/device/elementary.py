"""Elementary functions and products of matrices with the same bits on every machine.

In: numbers or arrays. Out: float64, from the core's own expressions and never from
libm, NumPy's vector code or BLAS.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.device import host

__all__ = ["exp", "expm1", "log", "log1p", "matmul", "sigmoid", "softplus", "tanh"]


def _elementary(name: str, doc: str) -> Callable[[ArrayLike], NDArray[np.float64]]:
    """A function of the core, for arrays of any shape."""

    def function(x: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(x, np.float64)
        return host.math(name, np.ascontiguousarray(values).ravel()).reshape(
            values.shape
        )

    function.__name__ = name
    function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _elementary("exp", "e to the power x.")
expm1 = _elementary("expm1", "e to the power x, minus 1, exact near 0.")
log = _elementary("log", "Natural logarithm.")
log1p = _elementary("log1p", "Natural logarithm of 1 + x, exact near 0.")
sigmoid = _elementary("sigmoid", "1 / (1 + e^-x).")
softplus = _elementary("softplus", "log(1 + e^x).")
tanh = _elementary("tanh", "Hyperbolic tangent.")


def matmul(left: ArrayLike, right: ArrayLike) -> NDArray[np.float64]:
    """The product of an array (..., n) and a matrix (n, m): (..., m).

    Its terms are added one after the other in the order of the n. BLAS chooses the
    order by the CPU.
    """
    rows = np.asarray(left, np.float64)
    matrix = np.asarray(right, np.float64)
    product = np.zeros((*rows.shape[:-1], matrix.shape[1]))
    for position, coefficients in enumerate(matrix):
        columns = np.flatnonzero(coefficients)
        product[..., columns] += rows[..., position, np.newaxis] * coefficients[columns]
    return product
