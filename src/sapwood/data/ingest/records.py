"""Tables that are neither an array nor a data frame: dicts of columns, lists of dicts,
Arrow datasets, duckdb.

In: any object. Out: a data frame or an Arrow table that has the same values, or the
object itself.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sapwood.data.categories import ColumnTypeError
from sapwood.data.sparse import is_sparse
from sapwood.errors import DataError, warn


def of_records(X: Any, what: str) -> Any:
    """A table with names, where X is one in another form."""
    if isinstance(X, Mapping) and not is_sparse(X):  # a dok_array is both
        columns = {str(name): values for name, values in X.items()}
        if len(columns) < len(X) or "" in columns:
            raise ColumnTypeError(
                f"{what} is a dict with two keys of one name, or an empty one; name every column."
            )
        return _of_columns(columns, what)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        names = dict.fromkeys(name for row in X for name in row)
        if not all(isinstance(name, str) and name for name in names):
            raise ColumnTypeError(
                f"{what} is a list of dicts with keys that are empty or no text; name the columns."
            )
        return _of_columns({name: [row.get(name) for row in X] for name in names}, what)
    kind = f"{type(X).__module__}.{type(X).__name__}".lower()
    if "duckdb" in kind and hasattr(X, "to_arrow_table"):
        return _collected(X.to_arrow_table(), X, what)
    if "pyarrow" in kind and hasattr(X, "to_table"):  # a dataset or scanner
        return _collected(X.to_table(), X, what)
    return X


def _collected(table: Any, X: Any, what: str) -> Any:
    warn(f"{what} is a {type(X).__name__}, which is collected into memory.")
    return table


def _of_columns(columns: Mapping[str, Any], what: str) -> Any:
    """A structured array of columns by name: numbers as they are, anything else as
    objects.
    """
    if not columns:
        raise DataError(f"{what} is a dict without columns; give names and values.")
    arrays = {
        name: _column(values, f"column {name!r} of {what}")
        for name, values in columns.items()
    }
    sizes = {len(one) for one in arrays.values()}
    if len(sizes) > 1:
        longest = ", ".join(
            f"{name!r} {len(one)}" for name, one in list(arrays.items())[:5]
        )
        raise DataError(
            f"the columns of {what} have different numbers of values: {longest}."
        )
    table = np.empty(sizes.pop(), [(name, one.dtype) for name, one in arrays.items()])
    for name, one in arrays.items():
        table[name] = one
    return table


def _column(values: Any, where: str) -> Any:
    """The values of one column as an array of one dimension."""
    if hasattr(values, "to_numpy"):  # a series
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ColumnTypeError(
                f"{where} has {values.ndim} dimensions; give one value a row."
            )
        return values
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ColumnTypeError(
            f"{where} is {str(values)[:40]!r}; give a list with a value for every row."
        )
    listed = list(values)
    kinds = {type(one) for one in listed}
    if kinds and kinds <= {int, float, bool} and len(kinds) == 1:
        try:
            return np.array(listed)
        except OverflowError:
            pass
    array = np.empty(len(listed), object)
    array[:] = listed
    return array
