"""From NumPy arrays, lists and Python objects to numbers that the core reads, without a
copy where that is possible.

In: arrays of any type. Out: float32, float64, integers or booleans in native byte
order; or coded categories.
"""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import (
    Categorical,
    Coded,
    ColumnTypeError,
    declared,
    of_numbers,
    of_objects,
)
from sapwood.data.ingest.columns import Columns
from sapwood.data.ingest.refusals import check_shape, inexact, refusal
from sapwood.data.times import SECOND, Times
from sapwood.errors import DataError

TIMES = (date, datetime, timedelta, np.datetime64, np.timedelta64)
MAX_EXACT = 2**53  # float64 holds every integer up to here


def as_array(values: Any, what: str) -> NDArray[Any]:
    """NumPy's reading of lists and of whatever else says it is an array."""
    try:
        # Keep masks: np.asarray would drop them and let the values beneath through.
        return np.asanyarray(values)
    except ValueError as cause:
        several = (
            isinstance(values, list)
            and values
            and all(hasattr(one, "shape") for one in values)
        )
        hint = (
            "Tables of consecutive rows are one by Dataset.from_chunks."
            if several
            else "All rows must have the same length."
        )
        raise DataError(
            f"{what} cannot be read as an array: {cause}. {hint}"
        ) from cause


def from_fields(
    X: NDArray[Any], what: str, min_rows: int, categorical: Categorical
) -> Columns:
    """The fields of a structured array, each a column."""
    names = X.dtype.names or ()
    check_shape((len(X), len(names)), min_rows)
    categories = declared(categorical, names, len(names), what)
    table = []
    for name, category in zip(names, categories, strict=True):
        if X[name].ndim != 1:
            raise ColumnTypeError(
                f"column {name!r} of {what} has {X[name].shape[1:]} values a row; part it into columns."
            )
        table.append(column_of(X[name], f"column {name!r} of {what}", category))
    return Columns(table, names, len(X), len(names))


def column_of(
    values: NDArray[Any], where: str, category: bool | None
) -> NDArray[Any] | Coded | Times:
    """One column of an array."""
    values = _without_na(values)
    if category is None:  # text, and nothing else, is of categories
        category = values.dtype.kind in "UT" or (
            values.dtype.kind == "O" and has_text(values.tolist())
        )
    if not category:
        times = of_times(values)
        return readable(values, where) if times is None else times
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    if plain.dtype.kind in "OUT":
        listed = plain.tolist()
        if mask is not None:
            listed = [
                None if gone else value
                for value, gone in zip(listed, mask.tolist(), strict=True)
            ]
        return of_objects(listed, where)
    if plain.dtype.kind not in "biuf":
        raise refusal(where, plain.dtype)
    return of_numbers(plain, mask, where)


def _without_na(values: NDArray[Any]) -> NDArray[Any]:
    """The same column, with None for what pandas writes where a value is missing: it is
    no number, and not compared.
    """
    if values.dtype.kind != "O" or not any(
        one.__name__ == "NAType" for one in set(map(type, values.flat))
    ):
        return values
    out = values.copy()
    out[[type(one).__name__ == "NAType" for one in values.flat]] = None
    return out


def of_times(values: NDArray[Any]) -> NDArray[Any] | Times | None:
    """A column of dates and times, or of durations in seconds; None for a column of
    anything else.
    """
    if values.dtype.kind == "O":
        if any(isinstance(one, np.ndarray) for one in values):
            return None
        plain: list[Any] = [
            None if one is None or one != one else one for one in values.tolist()
        ]
        types = {type(one) for one in plain if one is not None}
        if not types or not all(issubclass(one, TIMES) for one in types):
            return None
        zones = {
            str(one.tzinfo) for one in plain if getattr(one, "tzinfo", None) is not None
        }
        naive_too = any(
            getattr(one, "tzinfo", None) is None for one in plain if one is not None
        )
        if len(zones) > 1 or (zones and naive_too):
            return None
        if all(issubclass(one, timedelta) for one in types):
            values = np.array(plain, "m8[us]")
        elif any(issubclass(one, timedelta | time) for one in types):
            return None
        else:
            naive = [
                one.replace(tzinfo=None) if isinstance(one, datetime) else one
                for one in plain
            ]
            return Times.of(np.array(naive, "M8[us]"), next(iter(zones), None))
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "Mm":
        values = values.filled(values.dtype.type("NaT"))
    if values.dtype.kind == "m":
        whole = np.asarray(values).astype("m8[us]")
        return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / SECOND)
    return Times.of(np.asarray(values)) if values.dtype.kind == "M" else None


def has_text(values: Iterable[Any]) -> bool:
    return any(issubclass(one, str) for one in set(map(type, values)))


def readable(values: NDArray[Any], where: str) -> NDArray[Any]:
    """An array of any shape as one the core can read; itself where it is one
    already.
    """
    dtype = values.dtype
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        filled = np.array(values.data)
        filled[mask] = np.zeros((), dtype)
        return with_missing(filled, mask, where)
    if dtype.kind == "O":
        return _from_objects(values, where)
    if dtype.kind not in "biuf":
        raise refusal(where, dtype)
    values = np.asarray(values)
    if not (dtype.isnative and values.flags.aligned):
        values = values.astype(dtype.newbyteorder("="))
    if dtype.kind in "iu" and dtype.itemsize == 8:
        if values.size and (
            values.max() > MAX_EXACT
            or (dtype.kind == "i" and values.min() < -MAX_EXACT)
        ):
            _check_exact(values, where)
    elif dtype.kind == "f" and dtype.itemsize == 2:
        return values.astype(np.float32)
    elif dtype.kind == "f" and dtype.itemsize > 8:
        _check_exact(values, where)
        return values.astype(np.float64)
    return values


def with_missing(
    filled: NDArray[Any], mask: NDArray[np.bool_], where: str
) -> NDArray[np.float64]:
    """Numbers with some of them missing; what is filled in at those is of no matter."""
    values = np.array(readable(filled, where), dtype=np.float64)
    values[mask] = np.nan
    return values


def _from_objects(values: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Python objects as float64, None as NaN; column by column, to name the one that
    has something else.
    """
    if values.ndim == 2:
        columns = [
            _from_objects(values[:, j], f"column {j} of {where}")
            for j in range(values.shape[1])
        ]
        return np.column_stack(columns)
    values = _without_na(values)
    strange = str | bytes | complex | date | time | timedelta
    odd = next((value for value in values.flat if isinstance(value, strange)), None)
    if odd is not None:
        raise refusal(where, f"object with {type(odd).__name__}")
    try:
        out = values.astype(np.float64)
        exact = all(
            int(v) == int(f)
            for v, f in zip(values.flat, out.flat, strict=True)
            if isinstance(v, Integral)
        )
    except (TypeError, ValueError, OverflowError) as cause:
        why = str(cause).rstrip(".")
        raise ColumnTypeError(
            f"{where} has dtype object, and not all of it is numbers: {why}."
        ) from cause
    if not exact:
        raise inexact(where)
    return out


def _check_exact(values: NDArray[Any], where: str) -> None:
    """Raise if float64, in which cuts and thresholds live, cannot hold a value."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float64)
    if values.dtype.kind == "f":
        bad = (rounded != values) & ~np.isnan(values)
    else:
        # up, beyond what the integers hold
        end = rounded == 2.0 ** (64 if values.dtype.kind == "u" else 63)
        bad = end | (np.where(end, 0, rounded).astype(values.dtype) != values)
    if bad.any():
        raise inexact(
            f"column {np.argwhere(bad)[0][1]} of {where}" if values.ndim == 2 else where
        )
