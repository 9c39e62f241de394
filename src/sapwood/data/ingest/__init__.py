"""From any table to columns of numbers; the only file that knows table libraries.

In: arrays, lists, data frames, Arrow. Out: `Columns` that the core reads in place, and checked labels, weights, scores.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from importlib.util import find_spec
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import dealt, sparse
from sapwood.data.categories import (
    Categorical,
    Coded,
    ColumnTypeError,
    Dictionary,
    declared,
    of_numbers,
    of_objects,
)
from sapwood.errors import DataError
from sapwood.params.types import MAX_SCORE
from sapwood.reduce import Reduce

if TYPE_CHECKING:
    import narwhals as nw

LARGEST = 2**53  # float64 holds every integer up to here
LARGEST_WEIGHT = 1e100  # weights are multiplied with losses and summed, and both must stay finite
# What to do about a column that is no number, by a word in the name of its dtype; the first that fits.
ADVICE = {
    "complex": "Complex data not supported; pass the real and the imaginary part as two columns.",
    "sparse": "make it dense first.",
    "categor|enum|dictionary": "it can only be of categories, as categorical_features must say in training.",
    "bytes|binary": "bytes are not supported; decode them to text.",
    "str(?!uct)": "text can only be of categories, as categorical_features must say in training.",
    "date|time|duration|period": "dates and times are not supported; convert them to numbers, such as seconds.",
    "void|record": "a structured array is a table if it is 1-D and its fields are numbers or text.",
    "": "convert it to numbers.",
}
# What to give in place of some things that are no tables, by the name of their type.
INSTEAD = {
    "dict": ": of a dict of columns, pandas.DataFrame makes one",
    "Dataset": ": a Dataset keeps bins only, so the one it was made of",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """A table that the core can read in place, but for its columns of categories.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_columns), list of n_columns columns, or Sparse
        float32, float64, integer or bool in native byte order, any strides; NaN is missing. It may share memory with
        what was read. The columns of a list are ndarrays of shape (n_rows,), `SparseColumn` where they are sparse,
        `Coded` where they are of categories.
    names : tuple of str or None
        Unique; None where the table has no names, or names that are not text.
    n_rows, n_columns : int
    """

    table: NDArray[Any] | Sequence[Any] | sparse.Sparse
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
            table=[sparse.dense(one) if isinstance(one, sparse.SparseColumn) else one for one in self.as_columns()],
        )


def read(
    X: Any,
    *,
    what: str = "X",
    min_rows: int = 1,
    categorical: Categorical = None,
    names: Sequence[str] | None = None,
    by_rows: bool = False,
    zero_as_missing: bool = False,
) -> Columns:
    """Read a table, without a copy wherever the core can use its memory.

    Parameters
    ----------
    X : array, list of rows, sparse matrix (scipy), data frame (pandas, polars, pyarrow, ...) or Arrow stream
        Numeric and boolean columns, or fields of a structured array; None, NaN, nulls and masked values are missing.
    what : str
        What errors call it.
    min_rows : int
        Fewer rows raise.
    categorical : "auto", None, sequence of str, int or bool, or mapping of str to int
        Columns of categories: those of text and of categorical types, none, or those that are named, counted or marked.
        A mapping has the names and the places of columns that a model knows; places count where the table has no names.
    names : sequence of str, optional
        By which `categorical` names the columns of a table without names.
    by_rows : bool
        The order in which a sparse matrix is wanted: by rows for prediction, by columns for everything else.
    zero_as_missing : bool
        Whether zeros are missing values, too.

    Returns
    -------
    Columns
    """
    columns = _read(X, what, min_rows, by_rows, categorical, names)
    if not zero_as_missing:
        return columns
    table = columns.table
    if isinstance(table, sparse.Sparse):
        return replace(columns, table=sparse.zeros_missing(table))
    if isinstance(table, np.ndarray):
        return replace(columns, table=sparse.no_zeros(table))
    return replace(
        columns,
        table=[_no_zeros(one) for one in table],
    )


def _no_zeros(column: NDArray[Any] | Coded | sparse.SparseColumn) -> NDArray[Any] | Coded | sparse.SparseColumn:
    """A column in which zeros are missing; a category is none, whatever its name."""
    if isinstance(column, Coded):
        return column
    return sparse.zeros_missing(column) if isinstance(column, sparse.SparseColumn) else sparse.no_zeros(column)


def is_sparse(table: Any) -> bool:
    """Whether a table of `Columns`, or one of its columns, is sparse."""
    if isinstance(table, list):
        return any(isinstance(one, sparse.SparseColumn) for one in table)
    return isinstance(table, sparse.Sparse)


def _read(
    X: Any, what: str, min_rows: int, by_rows: bool, categorical: Categorical, names: Sequence[str] | None
) -> Columns:
    """A table as it is."""
    if isinstance(X, np.ndarray) and X.dtype.names and X.ndim == 1:
        return _from_fields(X, what, min_rows, categorical)
    if not isinstance(X, np.ndarray):
        if sparse.is_sparse(X) and X.ndim == 2:
            _check_shape(X.shape, min_rows)
            if categorical is not None and any(declared(categorical, names, X.shape[1], what)):
                raise DataError(f"{what} is sparse, and a sparse matrix has no categories; use a data frame.")
            return Columns(sparse.read(X, what, by_rows, _readable), None, *X.shape)
        frame = None if isinstance(X, list | tuple) else _frame(X, what)
        if frame is not None:
            return _from_frame(frame, what, min_rows, categorical, names)
        table, X = X, X if sparse.is_sparse(X) else _as_array(X, what)
        if X.dtype.kind == "U":  # NumPy has made text of the numbers too
            X = np.array(table, object)
        if X.ndim == 0:
            raise DataError(
                f"{what} is a {type(table).__name__}, which is no table; give an array, a list of rows, a data frame "
                f"or an Arrow table{INSTEAD.get(type(table).__name__, '')}."
            )
    if X.ndim != 2:
        how = "reshape(-1, 1) if it is one column, or with reshape(1, -1) if it is one row"
        how = how if X.ndim < 2 else "reshape(len(X), -1), which makes columns of all that a row has"
        raise DataError(
            f"Expected a 2-D table as {what}, got a {X.ndim}-D array of shape {X.shape}. Reshape your data with {how}."
        )
    _check_shape(X.shape, min_rows)
    categories = declared(categorical, names, X.shape[1], what)
    if any(categories) or (X.dtype.kind in "OUT" and None in categories):
        table = [_column(X[:, j], f"column {j} of {what}", category) for j, category in enumerate(categories)]
        return Columns(table, None, *X.shape)
    return Columns(_readable(X, what), None, *X.shape)


def align(columns: Columns, names: Sequence[str] | None, n_columns: int) -> Columns:
    """Put columns in the order that a model or a dataset knows.

    Parameters
    ----------
    columns : Columns
        What was read.
    names : sequence of str or None
        The known names in their order. Where one side has no names, columns match by position.
    n_columns : int
        The known number of columns.

    Returns
    -------
    Columns
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
    wanted = dict.fromkeys(names)
    missing = [name for name in names if name not in place]
    unknown = [name for name in place if name not in wanted]
    if missing or unknown:
        raise DataError(
            "The columns of X are not those seen in training. "
            + "".join(
                f"{kind}: {', '.join(map(repr, some[:5]))}{', ...' if len(some) > 5 else ''}. "
                for kind, some in (("Missing", missing), ("Unknown", unknown))
                if some
            )
            + "Pass the columns of the training data, in any order."
        )
    order = [place[name] for name in names]
    if isinstance(columns.table, sparse.Sparse):
        return replace(columns, table=sparse.choose(columns.table, order), names=tuple(names))
    table = columns.as_columns()
    return replace(columns, table=[table[j] for j in order], names=tuple(names))


def encode(columns: Columns, categories: Mapping[int, Dictionary], what: str) -> Columns:
    """Turn categories into the codes of their dictionaries, so that the core can read all columns.

    Parameters
    ----------
    columns : Columns
        In the order that the positions are of.
    categories : mapping of int to Dictionary
        By position: every column that is `Coded`, and any others.
    what : str
        What errors call the table.

    Returns
    -------
    Columns
    """
    if not categories:
        return columns
    table = columns.as_columns()
    for column, dictionary in categories.items():
        where = f"column {columns.names[column]!r} of {what}" if columns.names else f"column {column} of {what}"
        table[column] = dictionary.encode(as_categories(table[column], where), where)
    return replace(columns, table=table)


def as_categories(column: NDArray[Any] | Coded, where: str) -> Coded:
    """A column that was read as numbers, because nothing in it said otherwise, as categories."""
    if isinstance(column, sparse.SparseColumn):
        raise ColumnTypeError(f"{where} is sparse, and of categories elsewhere; make it dense.")
    return column if isinstance(column, Coded) else of_numbers(column, None, where)


def rename(columns: Columns, names: Sequence[str]) -> Columns:
    """Give names to columns that have none.

    Parameters
    ----------
    columns : Columns
        Unnamed, or already of these names.
    names : sequence of str
        One for each column, unique.

    Returns
    -------
    Columns
    """
    given = tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise ColumnTypeError(f"feature_names must be a sequence of strings, got {names!r}.")
    if len(given) != columns.n_columns:
        raise DataError(f"feature_names has {len(given)} names, but there are {columns.n_columns} columns.")
    if len(set(given)) < len(given):
        twice = next(name for j, name in enumerate(given) if name in given[:j])
        raise DataError(f"feature_names has {twice!r} more than once; names must be unique.")
    if columns.names not in (None, given):
        raise DataError("feature_names differ from the names of the table; rename the columns of the table instead.")
    return replace(columns, names=given)


def label(y: Any, n_rows: int, what: str = "y") -> NDArray[np.float64]:
    """Check labels.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Finite numbers.
    n_rows : int
        How many rows there must be.
    what : str
        What errors call them.

    Returns
    -------
    ndarray of shape (n_rows,), or (n_rows, n_outputs) for several outputs, float64, C order
        A copy.
    """
    if y is None:
        raise DataError(f"Sapwood requires {what} to be passed, but the target {what} is None.")
    values = floats(y, what)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise DataError(
            f"{what} should be a 1d array, or a 2d one with a column for each target; got one of shape {values.shape}."
        )
    _check_length(values, n_rows, what)
    _check_finite(values, what)
    return values


def weight(
    w: Any, n_rows: int, what: str = "sample_weight", reduce: Reduce | None = None
) -> NDArray[np.float64] | None:
    """Check sample weights.

    Parameters
    ----------
    w : array-like of shape (n_rows,) or None
        From 0 to 1e100, not all zero. None means that all rows count once.
    n_rows : int
        How many there must be.
    what : str
        What errors call them.
    reduce : Reduce, optional
        Over the holders of rows; one of them must have a positive weight.

    Returns
    -------
    ndarray of shape (n_rows,), float64, or None
        A copy.
    """
    if w is None:
        return None
    values = floats(w, what)
    if values.ndim != 1:
        raise DataError(f"{what} must be a 1-D array of length {n_rows}, got one of shape {values.shape}.")
    _check_length(values, n_rows, what)
    _check_finite(values, what)
    if values.min(initial=0.0) < 0:
        row = int(np.argmax(values < 0))
        raise DataError(f"{what} is {values[row]} in row {row}; weights must not be negative.")
    _check_size(values, LARGEST_WEIGHT, what)
    if not dealt.total(reduce, int(values.any())):
        raise DataError(f"The {what} of all rows is zero; at least one weight must be positive.")
    return values


def init_score(scores: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Check the raw scores that training starts from.

    Parameters
    ----------
    scores : array-like of shape (n_rows,) or (n_rows, n_outputs), or None
        Numbers up to 1e150 in size.
    n_rows : int
        How many rows there must be.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs), float64, C order, or None
        A copy.
    """
    if scores is None:
        return None
    values = floats(scores, "init_score")
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"init_score must be of shape (n_rows,) or (n_rows, n_outputs), got {values.shape}.")
    _check_length(values, n_rows, "init_score")
    _check_finite(values, "init_score")
    _check_size(values, MAX_SCORE, "init_score")
    return values


def group(groups: Any, n_rows: int) -> NDArray[np.int32] | None:
    """Number the groups of rows.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or (n_groups,), or None
        The group of every row, by any name; or fewer numbers, the sizes of groups of consecutive rows.
    n_rows : int
        How many rows there are.

    Returns
    -------
    ndarray of shape (n_rows,), int32, or None
        From 0, in the order of first rows.
    """
    if groups is None:
        return None
    values = _as_array(groups.to_numpy() if hasattr(groups, "to_numpy") else groups, "group")
    if values.ndim != 1 or len(values) > n_rows:
        raise DataError(f"group must be a 1-D array of {n_rows} names or of sizes, got one of shape {values.shape}.")
    if len(values) == n_rows:
        if n_rows > 1 and np.issubdtype(values.dtype, np.integer) and (values == 1).all():
            raise DataError(f"group has {n_rows} ones: one group, or as many as rows? Give names, such as 0, 1, 2, ...")
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first)).astype(np.int32)[inverse]
    if not np.issubdtype(values.dtype, np.integer) or (values < 0).any() or values.sum() != n_rows:
        raise DataError(f"group has {len(values)} values for {n_rows} rows; sizes must be integers that add up to it.")
    return np.repeat(np.arange(len(values[values > 0]), dtype=np.int32), values[values > 0])


def floats(values: Any, what: str) -> NDArray[np.float64]:
    """Read something that is not a table of columns: labels, weights, scores.

    Parameters
    ----------
    values : array-like, series or data frame
        Numbers; missing ones become NaN.
    what : str
        What errors call it.

    Returns
    -------
    ndarray, float64, C order
        A copy, of the shape that was given.
    """
    if not isinstance(values, np.ndarray | list | tuple):
        import narwhals as nw

        _no_sparse(values, what)
        found = _wrap(values, what)
        if isinstance(found, nw.Series):
            values = _from_series(found, what, False)
        elif isinstance(found, nw.DataFrame):
            numbers: list[Any] = [_from_series(column, what, False) for column in found.iter_columns()]
            values = np.column_stack(numbers)
    return np.array(_readable(_as_array(values, what), what), dtype=np.float64, order="C")


def _as_array(values: Any, what: str) -> NDArray[Any]:
    """NumPy's reading of lists and of whatever else says it is an array."""
    try:
        # Keep masks: np.asarray would drop them and let the values beneath through.
        return np.asanyarray(values)
    except ValueError as cause:
        raise DataError(f"{what} cannot be read as an array: {cause}. All rows must have the same length.") from cause


def _wrap(X: Any, what: str) -> Any:
    """What narwhals makes of a data frame or series of any library; anything else as it is."""
    import narwhals as nw

    try:
        return nw.from_native(X, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as cause:
        raise DataError(f"The names of the columns of {what} must be unique. {cause}") from cause


def _frame(X: Any, what: str) -> "nw.DataFrame[Any] | None":
    """A data frame of any library, or of an Arrow stream; None for what is neither."""
    import narwhals as nw

    found = _wrap(X, what)
    if isinstance(found, nw.LazyFrame):
        warnings.warn(f"{what} is lazy ({type(X).__name__}) and is collected into memory.", stacklevel=4)
        return found.collect()
    if isinstance(found, nw.Series):
        raise DataError(
            f"Expected a 2-D table as {what}, got a series ({type(X).__name__}). Reshape your data: to_frame() "
            "makes one column of it, to_frame().T one row."
        )
    if isinstance(found, nw.DataFrame):
        return found
    if not hasattr(X, "__arrow_c_stream__"):
        return None
    try:
        return nw.from_arrow(X, backend="pyarrow" if find_spec("pyarrow") or not find_spec("polars") else "polars")
    except ModuleNotFoundError as cause:
        raise DataError(f"{what} is an Arrow stream ({type(X).__name__}); install pyarrow to read it.") from cause
    except Exception as cause:  # whatever the producer of the stream throws
        raise DataError(f"{what} ({type(X).__name__}) cannot be read as a stream of Arrow tables: {cause}") from cause


def _from_frame(
    frame: "nw.DataFrame[Any]",
    what: str,
    min_rows: int,
    categorical: Categorical = None,
    spare: Sequence[str] | None = None,
) -> Columns:
    """The columns of a data frame, each in its own array."""
    labels: list[Any] = frame.columns  # pandas' may be of any type
    _check_shape(frame.shape, min_rows)
    texts = sum(isinstance(name, str) for name in labels)
    if 0 < texts < len(labels):
        kinds = sorted({type(name).__name__ for name in labels})
        raise ColumnTypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types. Rename the columns, for example with "
            "X.columns = X.columns.astype(str)."
        )
    names = tuple(map(str, labels)) if texts else None
    categories = declared(categorical, names or spare, len(labels), what)
    table = [
        _from_column(column, f"column {name!r} of {what}", category)
        for name, column, category in zip(labels, frame.iter_columns(), categories, strict=True)
    ]
    return Columns(table, names, *frame.shape)


def _from_fields(X: NDArray[Any], what: str, min_rows: int, categorical: Categorical) -> Columns:
    """The fields of a structured array, each a column."""
    names = X.dtype.names or ()
    _check_shape((len(X), len(names)), min_rows)
    categories = declared(categorical, names, len(names), what)
    table = []
    for name, category in zip(names, categories, strict=True):
        if X[name].ndim != 1:
            raise ColumnTypeError(
                f"column {name!r} of {what} has {X[name].shape[1:]} values a row; part it into columns."
            )
        table.append(_column(X[name], f"column {name!r} of {what}", category))
    return Columns(table, names, len(X), len(names))


def _column(values: NDArray[Any], where: str, category: bool | None) -> NDArray[Any] | Coded:
    """One column of an array."""
    if category is None:  # text, and nothing else, is of categories
        category = values.dtype.kind in "UT" or (values.dtype.kind == "O" and _has_text(values.tolist()))
    if not category:
        return _readable(values, where)
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    if plain.dtype.kind in "OUT":
        listed = plain.tolist()
        if mask is not None:
            listed = [None if gone else value for value, gone in zip(listed, mask.tolist(), strict=True)]
        return of_objects(listed, where)
    if plain.dtype.kind not in "biuf":
        raise _refusal(where, plain.dtype)
    return of_numbers(plain, mask, where)


def _has_text(values: Iterable[Any]) -> bool:
    return any(issubclass(one, str) for one in set(map(type, values)))


def _factorized(native: Any) -> tuple[NDArray[Any], list[Any]] | None:
    """Codes and values of a pandas series; None where a value has no hash, so that it is no category."""
    try:
        codes, values = native.factorize()
    except TypeError:
        return None
    return codes, values.tolist()


def _coded(series: "nw.Series[Any]", where: str) -> Coded:
    """A column of text or of a categorical type, by the codes that its library has or makes."""
    native = series.to_native()
    if series.implementation.is_pandas_like():
        held: Any = getattr(native, "array", None)
        codes, values = (held.codes, held.categories) if hasattr(held, "categories") else native.factorize()
        if len(values) > len(codes):  # a few rows out of a large table: no need to look at all it knows
            used, codes = np.unique(codes, return_inverse=True)
            values, codes = values[used[used >= 0]], codes - np.count_nonzero(used < 0)
        return Coded.of(codes, values.tolist(), where)
    if series.implementation.is_polars():
        import narwhals as nw

        if series.dtype == nw.String:
            native = series.cast(nw.Categorical).to_native()
        # Codes are places in a table that other columns may share, so values are looked up by the codes that occur.
        found, numbers = native.unique().drop_nulls(), native.to_physical()
        known = found.to_physical().to_numpy()
        place = np.full(int(known.max(initial=0)) + 1, -1, np.int32)
        place[known] = np.arange(len(known))
        codes = place[numbers.fill_null(0).to_numpy()]
        if numbers.null_count():
            codes[numbers.is_null().to_numpy()] = -1
        return Coded.of(codes, found.cast(str).to_list(), where)
    arrow = native.unify_dictionaries() if hasattr(native.type, "index_type") else native.dictionary_encode()
    array = arrow.combine_chunks()
    return Coded.of(array.indices.cast("int32").fill_null(-1).to_numpy(), array.dictionary.to_pylist(), where)


def _from_column(
    series: "nw.Series[Any]", where: str, category: bool | None
) -> NDArray[Any] | Coded | sparse.SparseColumn:
    """One column of a data frame, sparse where pandas has it so."""
    stored = None if category else sparse.of_series(getattr(series.to_native(), "array", None), where, _readable)
    return _from_series(series, where, category) if stored is None else stored


def _from_series(series: "nw.Series[Any]", where: str, category: bool | None) -> NDArray[Any] | Coded:
    """One column of a data frame."""
    import narwhals as nw

    dtype = series.dtype
    stored = getattr(series.to_native(), "dtype", None)
    if isinstance(stored, np.dtype):
        found = _factorized(series.to_native()) if stored.kind == "O" and category is not False else None
        if found is not None and (category or _has_text(found[1])):
            return Coded.of(*found, where)
        values = series.to_numpy()
        if stored.kind == "O":  # pandas' NA is no number, unlike None
            values = values.copy()
            values[series.is_null().to_numpy()] = None
        return _column(values, where, category)
    if category is not False and (isinstance(dtype, nw.String | nw.Categorical | nw.Enum)):
        return _coded(series, where)
    if category and (dtype == nw.Boolean or dtype.is_numeric()):
        full = series.fill_null(False if dtype == nw.Boolean else 0).to_numpy()
        return _column(np.ma.MaskedArray(full, series.is_null().to_numpy()), where, True)
    if dtype == nw.Boolean or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)):
        if not series.null_count():
            return _readable(series.to_numpy(), where)
        # Not through the library's own floats: they round large integers in silence.
        filled = series.fill_null(False if dtype == nw.Boolean else 0).to_numpy()
        return _with_missing(filled, series.is_null().to_numpy(), where)
    if dtype.is_float() or dtype.is_decimal():
        return _readable(series.to_numpy(), where)
    if dtype == nw.Unknown and series.null_count() == len(series):  # a null type: Arrow, polars
        return _column(np.full(len(series), np.nan), where, category)
    raise _refusal(where, stored or getattr(series.to_native(), "type", dtype))


def _readable(values: NDArray[Any], where: str) -> NDArray[Any]:
    """An array of any shape as one the core can read; itself where it is one already."""
    dtype = values.dtype
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        filled = np.array(values.data)
        filled[mask] = np.zeros((), dtype)
        return _with_missing(filled, mask, where)
    if dtype.kind == "O":
        return _from_objects(values, where)
    if dtype.kind not in "biuf":
        raise _refusal(where, dtype)
    values = np.asarray(values)
    if not (dtype.isnative and values.flags.aligned):
        values = values.astype(dtype.newbyteorder("="))
    if dtype.kind in "iu" and dtype.itemsize == 8:
        if values.size and (values.max() > LARGEST or (dtype.kind == "i" and values.min() < -LARGEST)):
            _check_exact(values, where)
    elif dtype.kind == "f" and dtype.itemsize == 2:
        return values.astype(np.float32)
    elif dtype.kind == "f" and dtype.itemsize > 8:
        _check_exact(values, where)
        return values.astype(np.float64)
    return values


def _with_missing(filled: NDArray[Any], mask: NDArray[np.bool_], where: str) -> NDArray[np.float64]:
    """Numbers with some of them missing; what is filled in at those is of no matter."""
    values = np.array(_readable(filled, where), dtype=np.float64)
    values[mask] = np.nan
    return values


def _from_objects(values: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Python objects as float64, None as NaN; column by column, to name the one that has something else."""
    if values.ndim == 2:
        columns = [_from_objects(values[:, j], f"column {j} of {where}") for j in range(values.shape[1])]
        return np.column_stack(columns)
    strange = str | bytes | complex | date | time | timedelta
    odd = next((value for value in values.flat if isinstance(value, strange)), None)
    if odd is not None:
        raise _refusal(where, f"object with {type(odd).__name__}")
    try:
        out = values.astype(np.float64)
        exact = all(int(v) == int(f) for v, f in zip(values.flat, out.flat, strict=True) if isinstance(v, Integral))
    except (TypeError, ValueError, OverflowError) as cause:
        raise ColumnTypeError(f"{where} has dtype object, and not all of it is numbers: {cause}.") from cause
    if not exact:
        raise _inexact(where)
    return out


def _check_exact(values: NDArray[Any], where: str) -> None:
    """Raise if float64, in which cuts and thresholds live, cannot hold a value."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float64)
    if values.dtype.kind == "f":
        bad = (rounded != values) & ~np.isnan(values)
    else:
        end = rounded == 2.0 ** (64 if values.dtype.kind == "u" else 63)  # up, beyond what the integers hold
        bad = end | (np.where(end, 0, rounded).astype(values.dtype) != values)
    if bad.any():
        raise _inexact(f"column {np.argwhere(bad)[0][1]} of {where}" if values.ndim == 2 else where)


def _inexact(where: str) -> DataError:
    return DataError(
        f"{where} has numbers that float64 cannot hold exactly, such as integers beyond 2**53. Convert them yourself: "
        "astype('float64') to round them, or smaller codes if they are identifiers."
    )


def _refusal(where: str, dtype: Any) -> DataError:
    name = str(dtype.name if isinstance(dtype, np.dtype) else dtype).lower()
    advice = next(text for words, text in ADVICE.items() if re.search(words, name))
    if where in ("y", "label") and "of categories" in advice:
        advice = (
            f"labels are numbers, classes their indices, such as numpy.unique({where}, return_inverse=True)[1]; "
            "SapwoodClassifier takes classes of any kind."
        )
    return ColumnTypeError(f"{where} has dtype {dtype}, which is neither numeric nor boolean: {advice}")


def _no_sparse(X: Any, what: str) -> None:
    if sparse.is_sparse(X):
        raise ColumnTypeError(f"{what} is sparse ({type(X).__name__}), but it must be dense; pass {what}.toarray().")


def _check_shape(shape: tuple[int, ...], min_rows: int) -> None:
    n_rows, n_columns = shape
    if n_rows < min_rows:
        raise DataError(
            f"Found array with {n_rows} sample(s) (shape={shape}) while a minimum of {min_rows} is required."
        )
    if n_columns < 1:
        raise DataError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _check_length(values: NDArray[Any], n_rows: int, what: str) -> None:
    if len(values) != n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(values)}]. "
            f"{what} must have one value for each row."
        )


def _check_finite(values: NDArray[np.float64], what: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        kind = "NaN" if np.isnan(values[row]).any() else "infinity"
        raise DataError(f"Input {what} contains {kind}, first in row {row}; it must be finite. Drop or mend such rows.")


def _check_size(values: NDArray[np.float64], largest: float, what: str) -> None:
    beyond = np.abs(values) > largest
    if beyond.any():
        at = tuple(np.argwhere(beyond)[0])
        raise DataError(f"{what} is {values[at]:g} in row {at[0]}; numbers beyond {largest:g} overflow. Scale them.")
