"""From data frames and Arrow streams of any library, through narwhals, to columns that
the core reads.

In: data frames, series. Out: arrays, sparse columns, coded categories.
"""

from collections.abc import Sequence
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import sparse
from sapwood.data.categories import Categorical, Coded, ColumnTypeError, declared
from sapwood.data.ingest.arrays import (
    column_of,
    has_text,
    of_times,
    readable,
    with_missing,
)
from sapwood.data.ingest.columns import Columns
from sapwood.data.ingest.refusals import check_shape, names_differ, refusal
from sapwood.data.lists import Lists, is_list
from sapwood.data.times import Times
from sapwood.errors import DataError, suggest, warn

if TYPE_CHECKING:
    import narwhals as nw

NUMBERS = frozenset("biuf")  # kinds of numpy's types
SMALL_FRAME = 1 << 20  # cells up to which a frame may be copied into one array


def wrap(X: Any, what: str) -> Any:
    """What narwhals makes of a data frame or series of any library; anything else as it
    is.
    """
    import narwhals as nw

    try:
        return nw.from_native(X, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as cause:
        twice = ", ".join(str(cause).split("\n- ")[1:]) or "not"
        raise DataError(
            f"The names of the columns of {what} must be unique: {twice}. Rename such columns, or leave them out."
        ) from cause


def frame_of(X: Any, what: str) -> "nw.DataFrame[Any] | None":
    """A data frame of any library, or of an Arrow stream; None for what is neither."""
    import narwhals as nw

    found = wrap(X, what)
    if isinstance(found, nw.LazyFrame):
        warn(f"{what} is lazy ({type(X).__name__}) and is collected into memory.")
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
        frame = nw.from_arrow(
            X,
            backend="pyarrow"
            if find_spec("pyarrow") or not find_spec("polars")
            else "polars",
        )
    except ModuleNotFoundError as cause:
        raise DataError(
            f"{what} is an Arrow stream ({type(X).__name__}); install pyarrow to read it."
        ) from cause
    except Exception as cause:  # whatever the producer of the stream throws
        raise DataError(
            f"{what} ({type(X).__name__}) cannot be read as a stream of Arrow tables: {cause}"
        ) from cause
    if not len(frame):
        raise DataError(
            f"{what} ({type(X).__name__}) is an Arrow stream without rows; a stream can be read once. Give a new one, "
            "or a table (read_all of pyarrow makes one)."
        )
    return frame


def from_frame(
    frame: "nw.DataFrame[Any]",
    what: str,
    min_rows: int,
    categorical: Categorical = None,
    spare: Sequence[str] | None = None,
    wanted: Sequence[str] | None = None,
) -> Columns:
    """The columns of a data frame, each in its own array; one error lists all that
    cannot be read, or differ.
    """
    labels: list[Any] = frame.columns  # pandas' may be of any type
    check_shape(frame.shape, min_rows)
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
    differences = "" if wanted is None or names is None else names_differ(names, wanted)
    whole = None if differences else _whole_array(frame, categories)
    if whole is not None:
        return Columns(list(whole.T), names, *frame.shape)
    table = []
    wrong = [differences] if differences else []
    for name, column, category in zip(
        labels, frame.iter_columns(), categories, strict=True
    ):
        try:
            table.append(_from_column(column, f"column {name!r} of {what}", category))
        except ColumnTypeError as cause:
            if not differences or name in set(wanted or ()):
                wrong.append(str(cause))
    if wrong:
        raise (DataError if wrong == [differences] else ColumnTypeError)(*wrong)
    return Columns(table, names, *frame.shape)


def _whole_array(
    frame: "nw.DataFrame[Any]", categories: Sequence[bool | None]
) -> NDArray[Any] | None:
    """A small pandas frame of one type of floats, at once: column by column it takes 40
    us each. None for any other.
    """
    if (
        not frame.implementation.is_pandas()
        or any(categories)
        or frame.shape[0] * frame.shape[1] > SMALL_FRAME
    ):
        return None
    kinds = set(frame.to_native().dtypes)
    return (
        frame.to_native().to_numpy()
        if kinds in ({np.dtype("f4")}, {np.dtype("f8")})
        else None
    )


def _factorized(native: Any) -> tuple[NDArray[Any], list[Any]] | None:
    """Codes and values of a pandas series; None where a value has no hash, so that it
    is not a category.
    """
    try:
        codes, values = native.factorize()
    except TypeError:
        return None
    return codes, values.tolist()


def _coded(series: "nw.Series[Any]", where: str) -> Coded:
    """A column of text or of a categorical type, by the codes that its library has or
    makes.
    """
    native = series.to_native()
    if series.implementation.is_pandas_like():
        held: Any = getattr(native, "array", None)
        codes, values = (
            (held.codes, held.categories)
            if hasattr(held, "categories")
            else native.factorize()
        )
        # a few rows out of a large table: no need to look at all it knows
        if len(values) > len(codes):
            used, codes = np.unique(codes, return_inverse=True)
            values = values[used[used >= 0]]
            codes = codes - np.count_nonzero(used < 0)
        return Coded.of(codes, values.tolist(), where)
    if series.implementation.is_polars():
        import narwhals as nw

        if series.dtype == nw.String:
            native = series.cast(nw.Categorical).to_native()
        # Codes are places in a table that other columns may share, so values are looked
        # up by the codes that occur.
        found = native.unique().drop_nulls()
        numbers = native.to_physical()
        known = found.to_physical().to_numpy()
        place = np.full(int(known.max(initial=0)) + 1, -1, np.int32)
        place[known] = np.arange(len(known))
        codes = place[numbers.fill_null(0).to_numpy()]
        if numbers.null_count():
            codes[numbers.is_null().to_numpy()] = -1
        return Coded.of(codes, found.cast(str).to_list(), where)
    arrow = (
        native.unify_dictionaries()
        if hasattr(native.type, "index_type")
        else native.dictionary_encode()
    )
    array = arrow.combine_chunks()
    return Coded.of(
        array.indices.cast("int32").fill_null(-1).to_numpy(),
        array.dictionary.to_pylist(),
        where,
    )


def _times(series: "nw.Series[Any]") -> NDArray[Any] | Times:
    """A column of dates and times, or in seconds one of durations or of times of the
    day.
    """
    import narwhals as nw

    zone = series.dtype.time_zone if isinstance(series.dtype, nw.Datetime) else None
    if zone is not None:
        series = series.dt.replace_time_zone(None)  # the time on the clock of the zone
    values = series.to_numpy()
    # dates or times of the day as objects, missing ones as None or NA
    if values.dtype.kind == "O":
        listed = [
            None if gone else one
            for one, gone in zip(
                values.tolist(), series.is_null().to_list(), strict=True
            )
        ]
        if isinstance(series.dtype, nw.Time):
            day = timedelta(0)
            listed = [
                one
                and day
                + timedelta(
                    hours=one.hour,
                    minutes=one.minute,
                    seconds=one.second,
                    microseconds=one.microsecond,
                )
                for one in listed
            ]
        values = np.array(
            listed, "m8[us]" if isinstance(series.dtype, nw.Time) else "M8[us]"
        )
    found = of_times(values)
    assert found is not None
    return Times(found.microseconds, zone) if isinstance(found, Times) else found


def _from_column(
    series: "nw.Series[Any]", where: str, category: bool | None
) -> NDArray[Any] | Coded | Times | Lists | sparse.SparseColumn:
    """One column of a data frame, sparse where pandas has it so."""
    native = series.to_native()
    kind = (
        getattr(native.dtype, "kind", "")
        if not category and series.implementation.is_pandas()
        else ""
    )
    # nothing else to ask, which takes 30 us
    if kind in NUMBERS and isinstance(native.dtype, np.dtype):
        return readable(native.to_numpy(), where)
    stored = (
        None
        if category
        else sparse.of_series(getattr(native, "array", None), where, readable)
    )
    return from_series(series, where, category) if stored is None else stored


def take_column(X: Any, name: str, what: str = "X") -> tuple[NDArray[Any], Any]:
    """A column of a data frame by name, and the frame without it; errors call the frame
    ``what``.
    """
    import narwhals as nw

    found = wrap(X, what)
    if not isinstance(found, nw.DataFrame):
        raise DataError(
            f"{name!r} names a column of {what}, which has no names; give the values themselves."
        )
    if name not in found.columns:
        raise DataError(
            f"{what} has no column {name!r}; {suggest(name, found.columns)}"
        )
    return found[name].to_numpy(), found.drop(name).to_native()


def from_series(
    series: "nw.Series[Any]", where: str, category: bool | None
) -> NDArray[Any] | Coded | Times | Lists:
    """One column of a data frame."""
    import narwhals as nw

    dtype = series.dtype
    if category is not True and isinstance(
        dtype, nw.Datetime | nw.Date | nw.Duration | nw.Time
    ):
        return _times(series)
    stored = getattr(series.to_native(), "dtype", None)
    nested = isinstance(dtype, nw.List | nw.Array)
    if category is not True and (
        nested or (isinstance(stored, np.dtype) and stored.kind == "O")
    ):
        rows = series.to_list()
        if nested or any(is_list(one) for one in rows[:100]):
            return Lists.of(rows, where)
    if isinstance(stored, np.dtype):
        found = (
            _factorized(series.to_native())
            if stored.kind == "O" and category is not False
            else None
        )
        if found is not None and (category or has_text(found[1])):
            return Coded.of(*found, where)
        values = series.to_numpy()
        if stored.kind == "O":  # pandas' NA is not a number, unlike None
            values = values.copy()
            values[series.is_null().to_numpy()] = None
        return column_of(values, where, category)
    if category is not False and (
        isinstance(dtype, nw.String | nw.Categorical | nw.Enum)
    ):
        return _coded(series, where)
    if category and (dtype == nw.Boolean or dtype.is_numeric()):
        full = series.fill_null(False if dtype == nw.Boolean else 0).to_numpy()
        return column_of(
            np.ma.MaskedArray(full, series.is_null().to_numpy()), where, True
        )
    if dtype == nw.Boolean or (
        dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)
    ):
        if not series.null_count():
            return readable(series.to_numpy(), where)
        # Not through the library's own floats: they round large integers in silence.
        filled = series.fill_null(False if dtype == nw.Boolean else 0).to_numpy()
        return with_missing(filled, series.is_null().to_numpy(), where)
    if dtype.is_float() or dtype.is_decimal():
        return readable(series.to_numpy(), where)
    # a null type: Arrow, polars
    if dtype == nw.Unknown and series.null_count() == len(series):
        return column_of(np.full(len(series), np.nan), where, category)
    raise refusal(where, stored or getattr(series.to_native(), "type", dtype))
