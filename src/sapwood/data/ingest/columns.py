"""A table as the core reads it: `Columns`.

In: arrays, sparse tables, coded categories. Out: the same, with names and sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import sparse


@dataclass(frozen=True, slots=True)
class Columns:
    """A table that the core can read in place, but for its columns of categories.

    Arrays are float32, float64, integer or bool in native byte order, with any strides;
    NaN is missing. They may share memory with what was read. The columns of a list are
    arrays of shape (n_rows,), `SparseColumn`, `Coded` or
    `Times`.
    """

    # (n_rows, n_columns), or a list of columns
    table: NDArray[Any] | Sequence[Any] | sparse.Sparse
    # unique; None where the table has no names, or names that are not text
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int

    def as_columns(self) -> list[Any]:
        """The columns one by one; sparse ones stay so."""
        if isinstance(self.table, sparse.Sparse):
            return sparse.as_columns(self.table)
        return list(self.table.T if isinstance(self.table, np.ndarray) else self.table)

    def dense(self) -> "Columns":
        """The same table with nothing sparse in it."""
        if not is_sparse(self.table):
            return self
        return replace(
            self,
            table=[
                sparse.dense(one) if isinstance(one, sparse.SparseColumn) else one
                for one in self.as_columns()
            ],
        )


def is_sparse(table: Any) -> bool:
    """Whether a table of `Columns`, or one of its columns, is sparse."""
    if isinstance(table, list):
        return any(isinstance(one, sparse.SparseColumn) for one in table)
    return isinstance(table, sparse.Sparse)
