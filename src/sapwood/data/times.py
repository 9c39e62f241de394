"""Columns of dates and times: the time that has passed, and parts of the calendar as
further columns.

In: columns of times, as microseconds. Out: columns of numbers; which parts there are, a
model keeps.

A column of times becomes the seconds since the start of 1970, on the clock of its own
time zone, under its own name and in its own place. Its parts follow after all columns
of the table, as ``date.month``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import dealt
from sapwood.data.categories import ColumnTypeError
from sapwood.params.types import DATE_PARTS
from sapwood.reduce import Reduce

if TYPE_CHECKING:
    from sapwood.data.ingest import Columns

Floats = NDArray[np.float64]
MISSING = np.iinfo(np.int64).min  # NumPy's NaT
# in microseconds
SECOND = 1_000_000
DAY = 86_400_000_000
# of so many columns of times, each has the time since every earlier one
SINCE = "since:"
MAX_DIFFERENCES = 6
# the parts of "auto", those that differ between rows
USUAL = ("month", "day", "weekday", "hour")


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times: microseconds since 1970 on the clock of its zone, `MISSING`
    where there is none.
    """

    microseconds: NDArray[np.int64]
    zone: str | None = None

    @classmethod
    def of(cls, values: NDArray[Any], zone: str | None = None) -> "Times":
        """The column of an array of datetime64 in any unit; what is finer than a
        microsecond is cut off.
        """
        return cls(values.astype("M8[us]").view(np.int64), zone)

    def elapsed(self) -> Floats:
        """Seconds since the start of 1970."""
        return self._numbers(self.microseconds, SECOND)

    def part(self, name: str) -> Floats:
        """A part of the calendar: hours from 0, weekdays from 0 (Monday), all others
        from 1.
        """
        known = np.where(self.microseconds == MISSING, 0, self.microseconds)
        day = known // DAY
        date = day.astype("M8[D]")
        match name:
            case "year":
                value = date.astype("M8[Y]").astype(np.int64) + 1970
            case "month":
                value = date.astype("M8[M]").astype(np.int64) % 12 + 1
            case "day":
                value = (date - date.astype("M8[M]")).astype(np.int64) + 1
            case "dayofyear":
                value = (date - date.astype("M8[Y]")).astype(np.int64) + 1
            case "weekday":
                value = (day + 3) % 7  # 1970 began on a Thursday
            case "hour":
                value = (known - day * DAY) // (3600 * SECOND)
            case _:  # "minute"
                value = (known - day * DAY) // (60 * SECOND) % 60
        return self._numbers(value, 1)

    def _numbers(self, whole: NDArray[np.int64], unit: int) -> Floats:
        return np.where(self.microseconds == MISSING, np.nan, whole / unit)


@dataclass(frozen=True)
class TimeColumn:
    """What a model knows of a column of times."""

    column: int
    zone: str | None
    # of the calendar, or 'since:3', the seconds since the time of column 3
    parts: tuple[str, ...]

    @property
    def word(self) -> str:
        """What the column has, for errors."""
        return "times" + (f" of the zone {self.zone}" if self.zone else "")

    def fits(self, column: Any) -> bool:
        """Whether a column of a table has times of this zone; one without a value
        does.
        """
        if isinstance(column, Times):
            return column.zone == self.zone
        return (
            isinstance(column, np.ndarray)
            and column.dtype.kind == "f"
            and bool(np.isnan(column).all())
        )

    def numbers(self, table: Sequence[Any], n_rows: int) -> list[Floats]:
        """The time that has passed, and the parts; ``table``: all columns as they
        came.
        """
        own = _times_of(table[self.column], n_rows)
        found = [own.elapsed()]
        for part in self.parts:
            if part.startswith(SINCE):
                other = _times_of(table[int(part[len(SINCE) :])], n_rows)
                found.append(own.elapsed() - other.elapsed())
            else:
                found.append(own.part(part))
        return found


def _times_of(column: Any, n_rows: int) -> Times:
    """A column of times; one without a value, or of a chunk without rows, may be of
    another type.
    """
    return (
        column
        if isinstance(column, Times)
        else Times(np.full(n_rows, MISSING, np.int64))
    )


Plan = tuple[TimeColumn, ...]


def learn(
    chunks: "Sequence[Columns]",
    wanted: Any,
    names: Sequence[str],
    reduce: Reduce | None = None,
) -> Plan:
    """Find the columns of times of a table in chunks, and which of the wanted parts
    they get.

    wanted: "auto", None, or a list of parts. "auto" takes those of `USUAL` that differ
    between rows.
    names: of the columns, for errors.
    """
    tables: list[list[Any]] = [
        list(chunk.table) if isinstance(chunk.table, list) else [] for chunk in chunks
    ]
    found = dealt.union(
        reduce,
        {
            j
            for table in tables
            for j, one in enumerate(table)
            if isinstance(one, Times)
        },
    )
    plan = []
    for j in found:
        columns = [table[j] for table in tables if table]
        if odd := [
            one
            for one in columns
            if not isinstance(one, Times) and len(getattr(one, "codes", one))
        ]:
            other = "categories" if hasattr(odd[0], "codes") else "numbers"
            raise ColumnTypeError(
                f"column {names[j]!r} has times in one chunk, and {other} in another."
            )
        own = [one for one in columns if isinstance(one, Times)]
        zones = {
            zone
            for some in dealt.gather(
                reduce, sorted({str(one.zone or "") for one in own})
            )
            for zone in some
        }
        if len(zones) > 1:
            raise ColumnTypeError(
                f"column {names[j]!r} has several time zones, {sorted(zones)}; use one of them."
            )
        parts = tuple(wanted or ())
        if wanted == "auto":
            parts = tuple(
                part
                for part in USUAL
                if _differs([one.part(part) for one in own], reduce)
            )
        plan.append(TimeColumn(j, next(iter(zones)) or None, parts))
    if wanted == "auto":
        plan = with_differences(plan)
    return tuple(plan)


def with_differences(plan: list[TimeColumn]) -> list[TimeColumn]:
    """Columns of times with the time since each earlier column of the same zone."""
    found = []
    for at, one in enumerate(plan):
        others = [
            other
            for other in plan[: min(at, MAX_DIFFERENCES)]
            if other.zone == one.zone
        ]
        since = (
            tuple(f"{SINCE}{other.column}" for other in others)
            if at < MAX_DIFFERENCES
            else ()
        )
        found.append(replace(one, parts=one.parts + since))
    return found


def _differs(pieces: Sequence[Floats], reduce: Reduce | None) -> bool:
    """Whether the numbers of all pieces, of all holders, are not all the same."""
    ends = {
        float(end)
        for piece in pieces
        if not np.isnan(piece).all()
        for end in (np.nanmin(piece), np.nanmax(piece))
    }
    return len({end for some in dealt.gather(reduce, sorted(ends)) for end in some}) > 1


def flaw(one: TimeColumn, columns: set[int]) -> str | None:
    """The rule that a column of times from a file breaks; ``columns``: all columns of
    times.
    """
    calendar = [part for part in one.parts if not part.startswith(SINCE)]
    others = [part[len(SINCE) :] for part in one.parts if part.startswith(SINCE)]
    known = set(calendar) <= set(DATE_PARTS) and len(set(one.parts)) == len(one.parts)
    known = known and set(others) <= {str(column) for column in columns - {one.column}}
    return (
        None
        if known
        else f"parts of times are some of {', '.join(DATE_PARTS)}, or the time since another column"
    )
