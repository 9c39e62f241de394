"""Checks of the arrays of a model, whoever wrote them.

In: arrays and the rules they must satisfy. Out: nothing, or a ModelFormatError that
names the rule and the position.
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
        raise ModelFormatError(
            f"The trees of the model break the rule '{rule}'{where}."
        )


def freeze(owner: Any, names: Iterable[str]) -> None:
    """Make array attributes of a frozen dataclass read-only; an array that the caller
    may write to is copied.
    """
    for name in names:
        array = np.asarray(getattr(owner, name), order="C")
        if array.flags.writeable:
            array = array.copy()
            array.flags.writeable = False
        object.__setattr__(owner, name, array)


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """An array that nothing else has, made read-only, so that `freeze` need not copy
    it.
    """
    array.flags.writeable = False
    return array


def check_types(arrays: Any, dtypes: Mapping[str, np.dtype[Any]]) -> None:
    """Raise unless these attributes are 1-d arrays of these types."""
    for name, dtype in dtypes.items():
        array = getattr(arrays, name)
        if array.ndim != 1 or array.dtype != dtype:
            raise ModelFormatError(
                f"'{name}' is a {array.ndim}-d array of {array.dtype}; expected 1-d {dtype}."
            )


def check_links(offset: NDArray[np.int64], left: NDArray[np.int32]) -> None:
    """Children follow their parent within its tree, and every node but the root has
    exactly one parent.

    offset: (n_trees + 1), rising from 0 to the number of nodes; left: of every node its
    left child, 0 in leaves.
    """
    sizes = np.diff(offset)
    root = np.repeat(offset[:-1], sizes)
    end = np.repeat(offset[1:], sizes)
    node = np.arange(len(left))
    child = root + left  # int64: cannot overflow
    leaf = left == 0
    require(leaf | (child > node), "children follow their parent")
    require(leaf | (child + 1 < end), "children lie within their tree")
    children = np.concatenate([child[~leaf], child[~leaf] + 1])
    require(
        np.bincount(children, minlength=len(left)) == (node != root),
        "a node has one parent, a root none",
    )
