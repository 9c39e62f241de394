"""Times and events of a target, read and checked: for the metrics of survival, and for
its estimator.

In: what a user gives: arrays, lists, columns of a frame, scikit-survival's structured
arrays. Out: numbers.
"""

from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError

Floats = NDArray[np.float64]
EVENTS = "events are True or False, or 0 (censored) and the number of the cause: 1, or 1, 2, ... where causes compete"


def numbers(given: Any, what: str) -> Floats:
    """Numbers of any kind; dates and durations are refused, for their unit is not
    known.
    """
    array = np.asarray(given)
    first = array.flat[0] if array.dtype == object and array.size else None
    if array.dtype.kind in "mM" or isinstance(first, date | timedelta):
        raise DataError(
            f"{what} are dates or durations; give numbers in a unit of your choice, such as days since the start: "
            "(end - start).dt.total_seconds() / 86400 in pandas, (end - start) / np.timedelta64(1, 'D') in NumPy."
        )
    try:
        if array.dtype.kind not in "biufO":
            raise TypeError(f"they are of type {array.dtype}")
        return array.astype(np.float64)
    except (TypeError, ValueError) as cause:
        raise DataError(f"{what} are not numbers: {cause}.") from cause


def lasting(given: Any, what: str = "times") -> Floats:
    """(n_rows,) finite times of at least 0."""
    found = numbers(given, what)
    if found.ndim != 1:
        raise DataError(f"{what} have the shape {found.shape}; give one for each row.")
    refuse_rows(
        ~(np.isfinite(found) & (found >= 0)),
        found,
        f"{what} must be finite and at least 0",
    )
    return found


def causes(given: NDArray[Any]) -> NDArray[np.int64]:
    """(n_rows,) events: 0 where a row is censored, else the number of the cause."""
    array = given
    if array.dtype == object:
        known = [
            one if isinstance(one, int | float | np.bool_ | np.number) else np.nan
            for one in array
        ]
        array = np.array(known, np.float64)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{EVENTS}; these are of type {array.dtype}. Write event == 'yes', say."
        )
    with np.errstate(invalid="ignore"):
        bad = ~((array >= 0) & (array == np.floor(array)) & (array < 2.0**31))
    refuse_rows(bad, given, EVENTS)
    return array.astype(np.int64)


def are_flags(given: Any) -> bool:
    """Whether values are only True and False, or only 0 and 1."""
    array = np.asarray(given)
    if array.dtype == object:
        return all(isinstance(one, bool | np.bool_) for one in array.flat)
    return array.dtype.kind == "b" or (
        array.dtype.kind in "iuf" and bool(((array == 0) | (array == 1)).all())
    )


def times_and_events(time: Any, event: Any) -> tuple[Floats, NDArray[np.int64]]:
    """(n_rows,) times and events, of arguments that may have been swapped."""
    first = np.asarray(time)
    second = np.asarray(event)
    same = first.shape == second.shape and first.size > 0
    if same and are_flags(first) and second.dtype.kind in "iuf" and (second > 1).any():
        raise DataError(
            "the times are only 0 and 1 and the events are not: they are swapped. The time comes first."
        )
    if first.ndim != 1 or second.shape != first.shape:
        raise DataError(
            f"times {first.shape} and events {second.shape} must have one value for each row."
        )
    return lasting(first), causes(second)


def pair_of(y: Any) -> tuple[Any, Any] | None:
    """Time and event of a structured array (event, time), or the two of a pair; None
    where y is neither.
    """
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        if len(names) != 2 or y.dtype[names[0]].kind not in "biu":
            raise DataError(
                "a structured y has two fields, the event (boolean, or the cause) and the time."
            )
        return y[names[1]], y[names[0]]
    return (y[0], y[1]) if isinstance(y, tuple | list) and len(y) == 2 else None


def refuse_rows(bad: NDArray[np.bool_], values: NDArray[Any], rule: str) -> None:
    """Raise an error that names the first row that breaks a rule."""
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{rule}; first in row {row}: {values[row : row + 1].tolist()[0]!r}."
        )
