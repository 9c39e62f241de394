"""Tables of which only some values are stored; all others are one and the same.

In: scipy's sparse matrices and arrays, pandas' sparse columns. Out: `Sparse` tables and
`SparseColumn`s for the core.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError

# as in LightGBM: where zeros are missing values, so are numbers up to this size
ZERO = 1e-35
# values of any type, and what errors call them -> numbers
Reader = Callable[[NDArray[Any], str], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class SparseColumn:
    """One column: values (n_stored) of some rows (n_stored), which rise; all other rows
    have the value `absent`.
    """

    values: NDArray[Any]
    rows: NDArray[np.int32]
    n_rows: int
    absent: float


@dataclass(frozen=True, slots=True)
class Sparse:
    """A table, row by row (CSR) or column by column (CSC).

    Entries offset[i] .. offset[i + 1] - 1 are of row (or column) i, and `index` has
    their columns (or rows, rising).
    """

    values: NDArray[Any]
    index: NDArray[np.int32]
    offset: NDArray[np.int64]
    n_rows: int
    n_columns: int
    by_rows: bool
    absent: float


_T = TypeVar("_T", bound=SparseColumn | Sparse)


def is_sparse(X: Any) -> bool:
    """Whether something is a sparse matrix or array of scipy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def read(X: Any, what: str, by_rows: bool, reader: Reader) -> Sparse:
    """Read a sparse matrix of any format, by rows or by columns; without a copy where
    it has that order already.

    Entries of one place are added up. `reader` makes numbers for the core of the stored
    values; `what`: for errors.
    """
    wanted = "csr" if by_rows else "csc"
    if X.format not in ("csr", "csc"):
        X = X.tocsr()
    try:
        X.check_format(full_check=True)  # scipy's own loops trust it
    except ValueError as cause:
        raise DataError(
            f"{what} ({type(X).__name__}) is not what it should be: {cause}."
        ) from cause
    if not X.has_canonical_format:
        # The other order sorts, and leaves entries of one place in theirs: they are
        # added as toarray() adds them.
        X = X.tocsc() if X.format == "csr" else X.tocsr()
        X.sum_duplicates()
    if X.format != wanted:
        X = _narrowed(X).asformat(wanted)
    end = int(X.indptr[-1])
    n_rows, n_columns = X.shape
    index = X.indices[:end].astype(np.int32, copy=False)
    offset = X.indptr.astype(np.int64, copy=False)
    return Sparse(
        reader(X.data[:end], what), index, offset, n_rows, n_columns, by_rows, 0.0
    )


def _narrowed(X: Any) -> Any:
    """A table that is about to be copied, with its values in a byte each where they are
    integers that have room there.

    Most sparse tables are ones, or counts: the copy takes 5 bytes for each value
    instead of 8 or 12.
    """
    if X.dtype.kind not in "fiu" or X.dtype.itemsize < 2:
        return X
    with np.errstate(invalid="ignore"):
        # tables of real numbers are known by their first ones
        for some in (X.data[:4096], X.data):
            small = some.astype(np.uint8)
            if not np.array_equal(small, some):
                return X
    return type(X)((small, X.indices, X.indptr), shape=X.shape)


def of_series(values: Any, where: str, reader: Reader) -> SparseColumn | None:
    """Read pandas' sparse array; None for any other."""
    if not hasattr(values, "sp_index"):
        return None
    fill = reader(np.array([values.fill_value]), where)
    rows = values.sp_index.to_int_index().indices
    return SparseColumn(
        reader(values.sp_values, where), rows, len(values), float(fill[0])
    )


def choose(table: Sparse, order: Sequence[int]) -> Sparse | list[SparseColumn]:
    """Some or all columns of a table, in another order; entry i of `order` is the place
    of the new column i.
    """
    if table.by_rows:
        place = np.empty(table.n_columns, np.int32)
        place[list(order)] = np.arange(len(order), dtype=np.int32)
        return replace(table, index=place[table.index])
    columns = as_columns(table)
    return [columns[j] for j in order]


def as_columns(table: Sparse) -> list[SparseColumn]:
    """The columns of a table, one by one."""
    if table.by_rows:
        rows = np.repeat(np.arange(table.n_rows, dtype=np.int32), np.diff(table.offset))
        order = np.argsort(table.index, kind="stable")
        offset = np.concatenate(
            [[0], np.cumsum(np.bincount(table.index, minlength=table.n_columns))]
        )
        table = replace(
            table,
            values=table.values[order],
            index=rows[order],
            offset=offset,
            by_rows=False,
        )
    ends = zip(table.offset[:-1].tolist(), table.offset[1:].tolist(), strict=True)
    return [
        SparseColumn(table.values[a:b], table.index[a:b], table.n_rows, table.absent)
        for a, b in ends
    ]


def dense(column: SparseColumn) -> NDArray[np.float64]:
    """A column with all its values."""
    values = np.full(column.n_rows, column.absent)
    values[column.rows] = column.values
    return values


def zeros_missing(table: _T) -> _T:
    """Zeros, stored or not, become missing values."""
    # 0 alone is false
    return replace(table, values=no_zeros(table.values), absent=table.absent or np.nan)


def no_zeros(values: NDArray[Any]) -> NDArray[Any]:
    """An array with NaN for 0; itself where it has none."""
    zero = np.abs(values) <= ZERO if values.dtype.kind == "f" else values == 0
    if not zero.any():
        return values
    return np.where(zero, np.nan, values).astype(
        values.dtype if values.dtype.kind == "f" else np.float64, copy=False
    )
