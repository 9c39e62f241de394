"""Checks of the arrays of a model, whoever wrote them.

In: arrays and the rules they must satisfy. Out: nothing, or a ModelFormatError that names the rule and the position.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError


def require(holds: NDArray[np.bool_] | bool, rule: str) -> None:
    """Raise unless the rule holds for every element."""
    if not np.all(holds):
        where = f", first at position {np.argmin(holds)}" if np.ndim(holds) else ""
        raise ModelFormatError(f"The trees of the model break the rule '{rule}'{where}.")


def freeze(owner: Any, names: Iterable[str]) -> None:
    """Make array attributes of a frozen dataclass read-only; an array that the caller may write to is copied."""
    for name in names:
        array = np.asarray(getattr(owner, name), order="C")
        if array.flags.writeable:
            array = array.copy()
            array.flags.writeable = False
        object.__setattr__(owner, name, array)


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """An array that nothing else has, made read-only, so that `freeze` need not copy it."""
    array.flags.writeable = False
    return array


def check_types(arrays: Any, dtypes: Mapping[str, np.dtype[Any]]) -> None:
    """Raise unless these attributes are 1-d arrays of these types."""
    for name, dtype in dtypes.items():
        array = getattr(arrays, name)
        if array.ndim != 1 or array.dtype != dtype:
            raise ModelFormatError(f"'{name}' is a {array.ndim}-d array of {array.dtype}; expected 1-d {dtype}.")
