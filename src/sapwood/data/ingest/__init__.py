"""From any table to columns of numbers; the only package that knows table libraries.

In: arrays, lists, data frames, Arrow. Out: `Columns` that the core reads in place, and
checked labels, weights, scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import sparse
from sapwood.data.categories import (
    Categorical,
    Coded,
    ColumnTypeError,
    Dictionary,
    declared,
    of_numbers,
)
from sapwood.data.ingest.arrays import TIMES, as_array, column_of, from_fields, readable
from sapwood.data.ingest.columns import Columns, is_sparse
from sapwood.data.ingest.frames import frame_of, from_frame, take_column
from sapwood.data.ingest.records import of_records
from sapwood.data.ingest.refusals import INSTEAD, check_names, check_shape, names_differ
from sapwood.data.ingest.vectors import (
    check_label_size,
    floats,
    group,
    init_score,
    label,
    part_of_vector,
    weight,
)
from sapwood.data.lists import Lists
from sapwood.data.times import Times
from sapwood.device.arrays import is_there, to_host
from sapwood.errors import DataError

__all__ = [
    "Columns",
    "align",
    "as_categories",
    "check_label_size",
    "check_names",
    "check_shape",
    "encode",
    "floats",
    "group",
    "init_score",
    "is_sparse",
    "label",
    "one_row",
    "part_of_vector",
    "read",
    "rename",
    "take_column",
    "weight",
]


def read(
    X: Any,
    *,
    what: str = "X",
    min_rows: int = 1,
    categorical: Categorical = None,
    names: Sequence[str] | None = None,
    by_rows: bool = False,
    zero_as_missing: bool = False,
    wanted: Sequence[str] | None = None,
) -> Columns:
    """Read a table, without a copy wherever the core can use its memory.

    X : array, list of rows, sparse matrix (scipy), data frame (pandas, polars, pyarrow, ...) or Arrow stream
        Numbers, booleans, categories, or fields of a structured array. None, NaN, nulls
        and masked values are missing.
    what : what errors call it; min_rows : fewer rows raise
    categorical : "auto", None, sequence of str, int or bool, or mapping of str to int
        Columns of categories: those of text and of categorical types, none, or those
        named, counted or marked. A mapping has the names and places of columns that a
        model knows; places count where the table has no names.
    names : by which `categorical` names the columns of a table without names
    by_rows : a sparse matrix is wanted by rows, for prediction; else by columns
    zero_as_missing : zeros are missing values, too
    wanted : the columns that a model knows, by name; what a named table lacks or has besides is one error
    """
    columns = _read(X, what, min_rows, by_rows, categorical, names, wanted)
    if not zero_as_missing:
        return columns
    table = columns.table
    if isinstance(table, sparse.Sparse | np.ndarray):
        return replace(columns, table=_no_zeros(table))
    return replace(columns, table=[_no_zeros(one) for one in table])


def _no_zeros(part: Any) -> Any:
    """A table or column in which zeros are missing; a category is not a zero, whatever
    its name.
    """
    if isinstance(part, sparse.Sparse | sparse.SparseColumn):
        return sparse.zeros_missing(part)
    return part if isinstance(part, Coded | Times) else sparse.no_zeros(part)


def _read(
    X: Any,
    what: str,
    min_rows: int,
    by_rows: bool,
    categorical: Categorical,
    names: Sequence[str] | None,
    wanted: Sequence[str] | None,
) -> Columns:
    """A table as it is."""
    if is_there(X):
        return _of_device(X, what, min_rows, categorical, names)
    X = of_records(X, what)
    if isinstance(X, np.ndarray) and X.dtype.names and X.ndim == 1:
        return from_fields(X, what, min_rows, categorical)
    table = X
    if not isinstance(X, np.ndarray):
        if sparse.is_sparse(X) and X.ndim == 2:
            check_shape(X.shape, min_rows)
            if categorical is not None and any(
                declared(categorical, names, X.shape[1], what)
            ):
                raise DataError(
                    f"{what} is sparse, and a sparse matrix has no categories; use a data frame."
                )
            return Columns(sparse.read(X, what, by_rows, readable), None, *X.shape)
        frame = None if isinstance(X, list | tuple) else frame_of(X, what)
        if frame is not None:
            return from_frame(frame, what, min_rows, categorical, names, wanted)
        X = X if sparse.is_sparse(X) else as_array(X, what)
        if X.dtype.kind == "U":  # NumPy has made text of the numbers too
            X = np.array(table, object)
        if X.ndim == 0:
            raise DataError(
                f"{what} is a {type(table).__name__}, which is not a table; give an array, a list of rows, a data "
                f"frame or an Arrow table{INSTEAD.get(type(table).__name__, '')}."
            )
    if X.ndim == 3 and isinstance(table, list | tuple):
        raise DataError(
            f"{what} is a list of {len(table)} tables; Dataset.from_chunks puts them one below the other."
        )
    if X.ndim != 2:
        how = "reshape(-1, 1) if it is one column, or with reshape(1, -1) if it is one row"
        how = (
            how
            if X.ndim < 2
            else "reshape(len(X), -1), which makes columns of all that a row has"
        )
        raise DataError(
            f"Expected a 2-D table as {what}, got a {X.ndim}-D array of shape {X.shape}. Reshape your data with {how}."
        )
    check_shape(X.shape, min_rows)
    categories = declared(categorical, names, X.shape[1], what)
    if (
        any(categories)
        or (X.dtype.kind in "OUT" and None in categories)
        or X.dtype.kind in "Mm"
        or _has_times(X)
    ):
        table = [
            column_of(X[:, j], f"column {j} of {what}", category)
            for j, category in enumerate(categories)
        ]
        return Columns(table, None, *X.shape)
    return Columns(readable(X, what), None, *X.shape)


def _of_device(
    X: Any,
    what: str,
    min_rows: int,
    categorical: Categorical,
    names: Sequence[str] | None,
) -> Columns:
    """A table in the memory of a GPU, which stays there unless it has categories."""
    own = (
        tuple(map(str, X.columns))
        if hasattr(X, "to_cupy") and hasattr(X, "columns")
        else None
    )
    if len(X.shape) != 2:
        raise DataError(
            f"Expected a 2-D table as {what}, got one of shape {tuple(X.shape)} in the memory of a GPU."
        )
    check_shape(tuple(X.shape), min_rows)
    if any(declared(categorical, own or names, X.shape[1], what)):
        return replace(
            _read(to_host(X), what, min_rows, False, categorical, own or names, None),
            names=own,
        )
    return Columns(X, own, *X.shape)


def _has_times(X: NDArray[Any]) -> bool:
    """Whether an array of objects has dates or times in its first rows."""
    return X.dtype.kind == "O" and any(isinstance(one, TIMES) for one in X[:100].flat)


def one_row(row: Any) -> Any:
    """A single row of a table as a table: a series of pandas by its index, a dict, a
    list or an array of numbers.
    """
    if isinstance(row, Mapping) and not any(
        hasattr(one, "__len__") and not isinstance(one, str) for one in row.values()
    ):
        return [row]
    if (
        hasattr(row, "index")
        and hasattr(row, "to_dict")
        and getattr(row, "ndim", 2) == 1
    ):
        named = row.to_dict()
        return (
            [named]
            if all(isinstance(name, str) for name in named)
            else [list(named.values())]
        )
    if isinstance(row, list | tuple) and row and not hasattr(row[0], "__len__"):
        return [list(row)]
    return (
        row[None]
        if isinstance(row, np.ndarray) and row.ndim == 1 and not row.dtype.names
        else row
    )


def align(columns: Columns, names: Sequence[str] | None, n_columns: int) -> Columns:
    """Put columns in the order of a model or a dataset: by `names` where both sides
    have names, else by position.
    """
    if names is None or columns.names is None:
        if columns.n_columns != n_columns:
            raise DataError(
                f"X has {columns.n_columns} features, but Sapwood is expecting {n_columns} features as input."
            )
        return columns
    if columns.names == tuple(names):
        return columns
    place = {name: j for j, name in enumerate(columns.names)}
    if differences := names_differ(columns.names, names):
        raise DataError(differences)
    order = [place[name] for name in names]
    if isinstance(columns.table, sparse.Sparse):
        return replace(
            columns, table=sparse.choose(columns.table, order), names=tuple(names)
        )
    table = columns.as_columns()
    return replace(columns, table=[table[j] for j in order], names=tuple(names))


def encode(
    columns: Columns,
    categories: Mapping[int, Dictionary],
    what: str,
    names: Sequence[str] | None = None,
    wrong: Sequence[str] = (),
) -> Columns:
    """Turn categories into the codes of their dictionaries (by position), so that the
    core can read all columns.

    One error lists all that is `wrong` already, and every column that does not fit its
    dictionary.
    """
    if not categories and not wrong:
        return columns
    table = columns.as_columns()
    found = list(wrong)
    names = columns.names or names
    for column, dictionary in categories.items():
        where = (
            f"column {names[column]!r} of {what}"
            if names
            else f"column {column} of {what}"
        )
        try:
            table[column] = dictionary.encode(
                as_categories(table[column], where), where
            )
        except ColumnTypeError as cause:
            found.append(str(cause))
    if found:
        raise ColumnTypeError(*found)
    return replace(columns, table=table)


def as_categories(column: NDArray[Any] | Coded, where: str) -> Coded:
    """A column that was read as numbers, because nothing in it said otherwise, as
    categories.
    """
    if isinstance(column, sparse.SparseColumn):
        raise ColumnTypeError(
            f"{where} is sparse, and of categories elsewhere; make it dense."
        )
    if isinstance(column, Times):
        raise ColumnTypeError(
            f"{where} has dates or times, and categories elsewhere; use one of them."
        )
    if isinstance(column, Lists):
        raise ColumnTypeError(
            f"{where} has lists, and categories elsewhere; use one of them."
        )
    return column if isinstance(column, Coded) else of_numbers(column, None, where)


def rename(columns: Columns, names: Sequence[str]) -> Columns:
    """Give unique names to columns that have none, or already have these."""
    given = tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise ColumnTypeError(
            f"feature_names must be a sequence of strings, got {names!r}."
        )
    if len(given) != columns.n_columns:
        raise DataError(
            f"feature_names has {len(given)} names, but there are {columns.n_columns} columns."
        )
    if len(set(given)) < len(given):
        twice = next(name for j, name in enumerate(given) if name in given[:j])
        raise DataError(
            f"feature_names has {twice!r} more than once; names must be unique."
        )
    if columns.names not in (None, given):
        raise DataError(
            "feature_names differ from the names of the table; rename the columns of the table instead."
        )
    return replace(columns, names=given)
