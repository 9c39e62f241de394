"""Linear leaves: the constant and the coefficients that some leaves of a model have
beside their value.

In: terms of grown trees, or arrays from a file. Out: read-only arrays over the nodes of
all trees, checked before use.
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ParameterError
from sapwood.model.validate import check_types, freeze, require, sealed

if TYPE_CHECKING:
    from sapwood.device import Terms

DTYPES: dict[str, np.dtype[Any]] = {
    "linear_offset": np.dtype(np.int64),
    "linear_column": np.dtype(np.int32),
    "linear_coef": np.dtype(np.float64),
}
BOUNDS = "linear_bounds"  # in the file of a model whose leaves have standard units


@dataclass(frozen=True, eq=False)
class Linear:
    """Terms one after the other; a node without any is a split, or a leaf that has its
    value only.

    ::

        node             0    1              2    3
        linear_offset    0    0              3    3   5
        linear_column         -1    0    4        -1   4       -1: the constant, which comes first
        linear_coef           0.5   2  -0.1       0.1  3
    """

    # (n_nodes + 1) where the terms of each node begin, and the end
    linear_offset: NDArray[np.int64]
    linear_column: NDArray[np.int32]  # (n_terms)
    linear_coef: NDArray[np.float64]  # (n_terms)
    # Of every column: the lowest and the highest value of a line, and what a missing
    # one counts as. Empty in raw units: nothing is bounded, and a row with a missing
    # value has the leaf's value.
    # (3 * n_columns)
    linear_bounds: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        freeze(self, [*DTYPES, BOUNDS])

    @property
    def terms(self) -> "Terms":
        """The four arrays, as the core takes them."""
        return (
            self.linear_offset,
            self.linear_column,
            self.linear_coef,
            self.linear_bounds,
        )

    @classmethod
    def of(cls, parts: Sequence["tuple[Terms | None, int]"]) -> "Linear | None":
        """Join the terms of trees, each with its number of nodes; None if no tree has
        any.
        """
        bounds = [terms[3] for terms, _ in parts if terms is not None and len(terms[2])]
        if not bounds:
            return None
        if not all(
            one is bounds[0] or np.array_equal(one, bounds[0]) for one in bounds
        ):
            raise ParameterError(
                "the linear leaves of these trees have different units or bounds; train them anew."
            )
        empty = np.empty(0, np.int32), np.empty(0)
        column, coef = zip(
            *(empty if terms is None else terms[1:3] for terms, _ in parts), strict=True
        )
        offset = joined_offsets(
            [
                np.zeros(n + 1, np.int64) if terms is None else terms[0]
                for terms, n in parts
            ]
        )
        return cls(
            offset,
            sealed(np.concatenate(column)),
            sealed(np.concatenate(coef)),
            bounds[0],
        )

    def slice(self, first: int, last: int) -> "Linear":
        """The terms of the nodes ``first .. last - 1``."""
        offset = self.linear_offset[first : last + 1]
        inside = slice(offset[0], offset[-1])
        return Linear(
            offset - offset[0],
            self.linear_column[inside],
            self.linear_coef[inside],
            self.linear_bounds,
        )

    def times(self, factor: NDArray[np.float64]) -> "Linear":
        """The terms of each node multiplied by its factor."""
        return replace(
            self,
            linear_coef=np.repeat(factor, np.diff(self.linear_offset))
            * self.linear_coef,
        )

    def validate(
        self, leaf: NDArray[np.bool_], n_columns: int, categories: Sequence[int] = ()
    ) -> None:
        """Check that the arrays are terms, whatever wrote them; leaves alone have
        terms, and categories are in none.
        """
        check_types(self, DTYPES)
        offset, column, coef, bounds = self.terms
        rises = (
            len(offset) == len(leaf) + 1
            and offset[0] == 0
            and bool((offset[1:] >= offset[:-1]).all())
        )
        require(
            rises and len(column) == len(coef) == offset[-1],
            "offsets rise from 0 to the number of terms",
        )
        require(len(coef) > 0, "some leaf has terms")
        first = np.zeros(len(column), np.bool_)
        first[offset[:-1][np.diff(offset) > 0]] = True
        require(leaf | (np.diff(offset) == 0), "only leaves have terms")
        require(
            (column == -1) == first,
            "the first term of a leaf, and only that, is its constant",
        )
        require((column >= -1) & (column < n_columns), f"columns are below {n_columns}")
        require(
            not np.isin(column, categories).any(),
            "columns of categories have no coefficient",
        )
        require((np.diff(column) > 0) | first[1:], "the columns of a leaf rise")
        require(bool(np.isfinite(coef).all()), "every coefficient is finite")
        require(bounds.dtype == np.float64 and bounds.ndim == 1, "bounds are float64")
        if len(bounds):
            require(
                len(bounds) % 3 == 0 and int(column.max()) < len(bounds) // 3,
                "every column of a line has bounds",
            )
            require(bool(np.isfinite(bounds).all()), "every bound is finite")
            low, high, mean = bounds.reshape(-1, 3).T
            require(
                (low <= mean) & (mean <= high),
                "the mean of a column lies between its bounds",
            )


def joined_offsets(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Offsets of several parts, each from 0 to its end, counted over all parts."""
    joined = np.zeros(1 + sum(len(one) - 1 for one in parts), np.int64)
    at = 0
    for one in parts:
        np.add(one[1:], joined[at], out=joined[at + 1 : at + len(one)])
        at += len(one) - 1
    return sealed(joined)


def encode(linear: Linear | None) -> dict[str, NDArray[Any]]:
    """The terms as arrays of a file; empty if there are none."""
    if linear is None:
        return {}
    names = [*DTYPES, BOUNDS] if len(linear.linear_bounds) else [*DTYPES]
    return {name: getattr(linear, name) for name in names}


def decode(arrays: MutableMapping[str, NDArray[Any]]) -> Linear | None:
    """The terms among the arrays of a file, if it has any, taken out of them."""
    if not DTYPES.keys() <= arrays.keys():
        return None
    offset, column, coef = (arrays.pop(name) for name in DTYPES)
    return Linear(offset, column, coef, arrays.pop(BOUNDS, np.empty(0)))
