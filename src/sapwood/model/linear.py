"""Linear leaves: the constant and the coefficients that some leaves of a model have beside their value.

In: terms of grown trees, or arrays from a file. Out: read-only arrays over the nodes of all trees, checked before use.
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.model.validate import check_types, freeze, require

if TYPE_CHECKING:
    from sapwood.device import Terms

DTYPES: dict[str, np.dtype[Any]] = {
    "linear_offset": np.dtype(np.int64),
    "linear_column": np.dtype(np.int32),
    "linear_coef": np.dtype(np.float64),
}


@dataclass(frozen=True, eq=False)
class Linear:
    """Terms one after the other; a node without any is a split, or a leaf that has its value only.

    ::

        node             0    1              2    3
        linear_offset    0    0              3    3   5
        linear_column         -1    0    4        -1   4       -1: the constant, which comes first
        linear_coef           0.5   2  -0.1       0.1  3
    """

    linear_offset: NDArray[np.int64]  # (n_nodes + 1) where the terms of each node begin, and the end
    linear_column: NDArray[np.int32]  # (n_terms)
    linear_coef: NDArray[np.float64]  # (n_terms)

    def __post_init__(self) -> None:
        freeze(self, DTYPES)

    @property
    def terms(self) -> "Terms":
        """The three arrays, as the core takes them."""
        return self.linear_offset, self.linear_column, self.linear_coef

    @classmethod
    def of(cls, parts: Sequence["tuple[Terms | None, int]"]) -> "Linear | None":
        """Join the terms of trees, each with its number of nodes; None if no tree has any."""
        if all(terms is None or not len(terms[2]) for terms, _ in parts):
            return None
        empty = np.empty(0, np.int32), np.empty(0)
        counts = [np.zeros(n, np.int64) if terms is None else np.diff(terms[0]) for terms, n in parts]
        column, coef = zip(*(empty if terms is None else terms[1:] for terms, _ in parts), strict=True)
        offset = np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64)
        return cls(offset, np.concatenate(column), np.concatenate(coef))

    def slice(self, first: int, last: int) -> "Linear":
        """The terms of the nodes ``first .. last - 1``."""
        offset = self.linear_offset[first : last + 1]
        inside = slice(offset[0], offset[-1])
        return Linear(offset - offset[0], self.linear_column[inside], self.linear_coef[inside])

    def times(self, factor: NDArray[np.float64]) -> "Linear":
        """The terms of each node multiplied by its factor."""
        return replace(self, linear_coef=np.repeat(factor, np.diff(self.linear_offset)) * self.linear_coef)

    def validate(self, leaf: NDArray[np.bool_], n_columns: int, categories: Sequence[int] = ()) -> None:
        """Check that the arrays are terms, whatever wrote them; leaves alone have terms, and categories are in none."""
        check_types(self, DTYPES)
        offset, column, coef = self.terms
        rises = len(offset) == len(leaf) + 1 and offset[0] == 0 and bool((offset[1:] >= offset[:-1]).all())
        require(rises and len(column) == len(coef) == offset[-1], "offsets rise from 0 to the number of terms")
        require(len(coef) > 0, "some leaf has terms")
        first = np.zeros(len(column), np.bool_)
        first[offset[:-1][np.diff(offset) > 0]] = True
        require(leaf | (np.diff(offset) == 0), "only leaves have terms")
        require((column == -1) == first, "the first term of a leaf, and only that, is its constant")
        require((column >= -1) & (column < n_columns), f"columns are below {n_columns}")
        require(not np.isin(column, categories).any(), "columns of categories have no coefficient")
        require((np.diff(column) > 0) | first[1:], "the columns of a leaf rise")
        require(bool(np.isfinite(coef).all()), "every coefficient is finite")


def encode(linear: Linear | None) -> dict[str, NDArray[Any]]:
    """The terms as arrays of a file; empty if there are none."""
    return {} if linear is None else {name: getattr(linear, name) for name in DTYPES}


def decode(arrays: MutableMapping[str, NDArray[Any]]) -> Linear | None:
    """The terms among the arrays of a file, if it has any, taken out of them."""
    return Linear(*(arrays.pop(name) for name in DTYPES)) if DTYPES.keys() <= arrays.keys() else None
