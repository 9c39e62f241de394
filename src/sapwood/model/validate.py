"""The rules that the arrays of a model keep, whoever wrote them.

In: arrays, and what must hold of them. Out: nothing, or a ModelFormatError that names the rule and the first place.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError


def hold(law: NDArray[np.bool_] | bool, text: str) -> None:
    """Raise unless the law, which the text says, holds for every element."""
    if not np.all(law):
        where = f", first at position {np.argmin(law)}" if np.ndim(law) else ""
        raise ModelFormatError(f"The trees of the model break the rule '{text}'{where}.")


def check_types(arrays: Any, dtypes: Mapping[str, np.dtype[Any]]) -> None:
    """Raise unless the attributes of these names are 1-d arrays of these types."""
    for name, dtype in dtypes.items():
        array = getattr(arrays, name)
        if array.ndim != 1 or array.dtype != dtype:
            raise ModelFormatError(f"'{name}' is a {array.ndim}-d array of {array.dtype}; expected 1-d {dtype}.")
