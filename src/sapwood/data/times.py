"""Columns of dates and times: the time that has passed, and parts of the calendar as further columns.

In: columns of times, as microseconds. Out: columns of numbers; which parts there are, a model keeps.

A column of times becomes the seconds since the start of 1970, on the clock of its own time zone, under its own name and
in its own place. Its parts follow after all columns of the table, as ``date.month``.
"""

from collections.abc import Mapping, Sequence
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
SECOND, DAY = 1_000_000, 86_400_000_000  # in microseconds
USUAL = ("month", "day", "weekday", "hour")  # the parts of "auto", those that differ between rows


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times: microseconds since 1970 on the clock of its zone, `MISSING` where there is none."""

    microseconds: NDArray[np.int64]
    zone: str | None = None

    @classmethod
    def of(cls, values: NDArray[Any], zone: str | None = None) -> "Times":
        """The column of an array of datetime64 in any unit; what is finer than a microsecond is cut off."""
        return cls(values.astype("M8[us]").view(np.int64), zone)

    def elapsed(self) -> Floats:
        """Seconds since the start of 1970."""
        return self._numbers(self.microseconds, SECOND)

    def part(self, name: str) -> Floats:
        """A part of the calendar: hours from 0, weekdays from 0 (Monday), all others from 1."""
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
    parts: tuple[str, ...]


Plan = tuple[TimeColumn, ...]


def learn(chunks: "Sequence[Columns]", wanted: Any, names: Sequence[str], reduce: Reduce | None = None) -> Plan:
    """Find the columns of times of a table in chunks, and which of the wanted parts they get.

    wanted: "auto", None, or a list of parts. "auto" takes those of `USUAL` that differ between rows.
    names: of the columns, for errors.
    """
    tables: list[list[Any]] = [list(chunk.table) if isinstance(chunk.table, list) else [] for chunk in chunks]
    found = dealt.union(reduce, {j for table in tables for j, one in enumerate(table) if isinstance(one, Times)})
    plan = []
    for j in found:
        columns = [table[j] for table in tables if table]
        if odd := [one for one in columns if not isinstance(one, Times) and len(one)]:
            raise ColumnTypeError(f"column {names[j]!r} has times in one chunk, and {kind_of(odd[0])} in another.")
        own = [one for one in columns if isinstance(one, Times)]
        zones = {zone for some in dealt.gather(reduce, sorted({str(one.zone or "") for one in own})) for zone in some}
        if len(zones) > 1:
            raise ColumnTypeError(f"column {names[j]!r} has several time zones, {sorted(zones)}; use one of them.")
        parts = tuple(wanted or ())
        if wanted == "auto":
            parts = tuple(part for part in USUAL if _differs([one.part(part) for one in own], reduce))
        plan.append(TimeColumn(j, next(iter(zones)) or None, parts))
    return tuple(plan)


def _differs(pieces: Sequence[Floats], reduce: Reduce | None) -> bool:
    """Whether the numbers of all pieces, of all holders, are not all the same."""
    ends = {float(end) for piece in pieces if not np.isnan(piece).all() for end in (np.nanmin(piece), np.nanmax(piece))}
    return len({end for some in dealt.gather(reduce, sorted(ends)) for end in some}) > 1


def n_parts(plan: Plan) -> int:
    """How many columns the parts of all columns of times are."""
    return sum(len(one.parts) for one in plan)


def names_of(plan: Plan, names: Sequence[str]) -> tuple[str, ...]:
    """The names of the parts, ``date.month``; with more dots where a column has that name already."""
    made: list[str] = []
    taken = set(names)
    for one in plan:
        for part in one.parts:
            dots = "."
            while (name := f"{names[one.column]}{dots}{part}") in taken:
                dots += "."
            taken.add(name)
            made.append(name)
    return tuple(made)


def expand(columns: "Columns", plan: Plan) -> "Columns":
    """A table whose columns of times are numbers, with the parts after all others."""
    if not plan:
        return columns
    table = columns.as_columns()
    parts: list[Floats] = []
    for one in plan:
        own = table[one.column]
        if not isinstance(own, Times):  # a chunk without rows, or without a value
            own = Times(np.full(columns.n_rows, MISSING, np.int64))
        table[one.column] = own.elapsed()
        parts += [own.part(part) for part in one.parts]
    return replace(columns, table=[*table, *parts], names=None, n_columns=len(table) + len(parts))


def shares(plan: Plan, n_columns: int) -> Floats:
    """What belongs to each column of the table, (n_columns, n_given): its parts go to a column of times."""
    first = n_columns - n_parts(plan)
    sources = [one.column for one in plan for _ in one.parts]
    return np.eye(first)[[*range(first), *sources]]


def kind_of(column: Any) -> str:
    """What a column has, for errors."""
    if isinstance(column, Times):
        return "times" + (f" of the zone {column.zone}" if column.zone else "")
    return "categories" if hasattr(column, "codes") else "numbers"


def flaw(plan: Plan, n_columns: int, categories: Mapping[int, Any]) -> str | None:
    """The rule that a plan from a file breaks, for a model of so many columns, parts included."""
    places = [one.column for one in plan]
    if places != sorted(set(places)) or (places and not 0 <= places[0] <= places[-1] < n_columns - n_parts(plan)):
        return "columns of times rise, and are columns of the table"
    if set(places) & set(categories):
        return "a column of times has no categories"
    known = all(set(one.parts) <= set(DATE_PARTS) and len(set(one.parts)) == len(one.parts) for one in plan)
    return None if known else f"parts of times are some of {', '.join(DATE_PARTS)}"


def encode(plan: Plan) -> list[list[Any]]:
    """A plan as JSON has it."""
    return [[one.column, one.zone, list(one.parts)] for one in plan]


def decode(given: Any) -> Plan:
    """The plan of a file; raises ValueError where it is none. `flaw` must look at it."""
    plan = []
    for one in given if isinstance(given, list) else [None]:
        match one:
            case [int() as column, (str() | None) as zone, list() as parts] if all(isinstance(p, str) for p in parts):
                plan.append(TimeColumn(column, zone, tuple(parts)))
            case _:
                raise ValueError("columns of times are not as they are saved")
    return tuple(plan)
