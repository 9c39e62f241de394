"""Categories: a column as codes into values of its own, and the dictionary that gives
every value one code for good.

In: text or 64-bit integers, by row or already coded, in chunks. Out: dictionaries, and
int32 codes for the core.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood.data import dealt
from sapwood.device import host
from sapwood.errors import DataError, SapwoodError, suggest, warn
from sapwood.reduce import Reduce

# codes of a missing value, and of a category that training has not seen
MISSING, UNSEEN = -1, host.UNSEEN
_NUMBER = re.compile(r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf)")
MAX_BINS = 65_534  # codes of two bytes, and one of them means missing
ADVICE = "categories are text, numbers, or values that text can stand for; make text of it with astype(str)."

Codes = NDArray[Any]  # signed integers; -1 is missing
# Which columns are of categories: by their types ("auto"), none, those of these names
# or positions, or of a mask; or names with their positions, of which a table with names
# goes by the names.
Categorical = (
    str | Sequence[str] | Sequence[int] | Sequence[bool] | Mapping[str, int] | None
)


class ColumnTypeError(DataError, TypeError):
    """A column, or its name, is of a type that cannot be used; a TypeError too because
    scikit-learn raises that.
    """


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of categories as it came: for each row a place among values of its own,
    -1 for missing.

    The order of the values, repeated ones and those that no row has do not matter.
    """

    codes: Codes  # (n_rows)
    # a dictionary has numbers that are no int64 as text
    values: Sequence[str] | Sequence[int | float]

    @classmethod
    def of(cls, codes: Codes, values: Iterable[Any], where: str) -> "Coded":
        """Check the values that rows have; None and NaN among them are missing.

        `codes` (n_rows) are places among the values, -1 for missing. Values are text,
        booleans (0 and 1), numbers, or of any type that has a text: intervals, times.
        Where there are both text and numbers, all become text, with a warning. `where`:
        what errors call the column.
        """
        listed = list(values)
        mixed = len(set(map(type, listed))) > 1
        # look at those that rows have only
        if mixed or len(listed) > len(codes) or not all(map(_plain, listed)):
            seen = np.bincount(codes.astype(np.intp) + 1, minlength=len(listed) + 1)[
                1:
            ].tolist()
            listed = [
                _checked(value, where) if n else None
                for value, n in zip(listed, seen, strict=True)
            ]
            kept = np.array([value is not None for value in listed], bool)
            codes = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)[codes]
            listed = [value for value in listed if value is not None]
        if mixed and len({isinstance(value, str) for value in listed}) > 1:
            number = next(value for value in listed if not isinstance(value, str))
            warn(
                f"{where} has both text and numbers: they are read as categories, {number!r} as {text_of(number)!r}. "
                "If the text means a missing value, replace it; if text is meant, use astype(str)."
            )
            listed = [text_of(value) for value in listed]
        return cls(codes, listed)


def declared(
    categorical: Categorical, names: Sequence[str] | None, n_columns: int, what: str
) -> Sequence[bool | None]:
    """Whether each column of a table is of categories; None where its type decides.
    `what`: for errors.
    """
    if categorical is None or isinstance(categorical, str):
        return [False if categorical is None else None] * n_columns
    if len(categorical) == 0:  # at once: there may be very many columns, and one row
        return [False] * n_columns
    if isinstance(categorical, Mapping):
        chosen: set[Any] = set(categorical.values() if names is None else categorical)
        return [(j if names is None else names[j]) in chosen for j in range(n_columns)]
    given: list[Any] = list(categorical)
    if given and all(isinstance(one, bool) for one in given):
        if len(given) != n_columns:
            raise DataError(
                f"categorical_features marks {len(given)} columns; {what} has {n_columns}."
            )
        return given
    known = {name: j for j, name in enumerate(names or ())}
    for one in given:
        if isinstance(one, str) and one not in known:
            hint = (
                suggest(one, known)
                if known
                else "the table has no names, so give positions."
            )
            raise DataError(
                f"categorical_features names a column {one!r}, which {what} has not; {hint}"
            )
        if not isinstance(one, str) and not 0 <= one < n_columns:
            raise DataError(
                f"categorical_features has column {one}; {what} has columns 0..{n_columns - 1}."
            )
    places = {known[one] if isinstance(one, str) else one for one in given}
    return [j in places for j in range(n_columns)]


def of_objects(values: Sequence[Any], where: str) -> Coded:
    """Code a list of Python objects, (n_rows); for `where` see `Coded.of`."""
    try:
        place = {value: code for code, value in enumerate(dict.fromkeys(values))}
    except TypeError as cause:
        raise ColumnTypeError(
            f"{where} has something that is not a category ({cause}): {ADVICE}"
        ) from cause
    return Coded.of(
        np.fromiter(map(place.__getitem__, values), np.int32, len(values)), place, where
    )


def of_numbers(
    values: NDArray[Any], missing: NDArray[np.bool_] | None, where: str
) -> Coded:
    """Code numbers, (n_rows), of which NaN and those marked are missing; for `where`
    see `Coded.of`.
    """
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
        missing = np.isnan(values) | (False if missing is None else missing)
    if missing is not None:
        values = np.where(missing, values.dtype.type(0), values)
    with np.errstate(invalid="ignore"):
        whole = values.astype(np.int64)
    if values.dtype.kind == "f":
        beyond = (whole != values) | (np.abs(values) >= 2.0**63)
    else:
        beyond = (whole < 0) & (values > 0)  # unsigned, and wrapped around
    if beyond.any():
        distinct, code = np.unique(values, return_inverse=True)
        return Coded.of(
            np.where(False if missing is None else missing, -1, code),
            distinct.tolist(),
            where,
        )
    found = host.distinct(whole, max(1, len(whole)))
    assert found is not None  # there is no NaN, and no more values than rows
    codes = found[1].astype(np.int32)
    if missing is not None:
        codes[missing] = -1
    return Coded(codes, found[0].tolist() if (codes >= 0).any() else [])


@dataclass(frozen=True)
class Dictionary:
    """The categories of a column, the most frequent first: all text, or all
    integers.
    """

    values: tuple[str, ...] | tuple[int, ...]
    none: ClassVar[str] = "missing"  # what people read for a code below 0

    @property
    def n_bins(self) -> int:
        """Bins of the column; one where no row has a value, and the rarest values share
        the last where it is full.
        """
        return max(1, min(len(self.values), MAX_BINS))

    @cached_property
    def place(self) -> Mapping[Any, int]:
        """The code of every value."""
        return {
            value: min(rank, MAX_BINS - 1) for rank, value in enumerate(self.values)
        }

    @cached_property
    def has_numbers(self) -> bool:
        """Whether a value is the text of a number, as fractions and numbers beside text
        are kept.
        """
        return any(
            isinstance(value, str) and _NUMBER.fullmatch(value) for value in self.values
        )

    def encode(self, column: Coded, where: str) -> NDArray[np.int32]:
        """Match a column by value: codes 0 .. n_bins - 1, `MISSING`, or `UNSEEN` for
        values not in the dictionary.

        The core takes both for missing. `where`: what errors call the column.
        """
        values: Sequence[Any] = column.values
        given, known = (
            isinstance(some[0], str) if some else None for some in (values, self.values)
        )
        # numbers that were read as text in training: fractions, or beside text
        if known and given is False:
            values = [text_of(value) for value in values]
        differ = (
            None not in (given, known)
            and given != known
            and not (known and self.has_numbers)
        )
        if differ and (column.codes >= 0).any():
            raise ColumnTypeError(
                f"{where} has {'text' if given else 'numbers'}, such as {column.values[0]!r}, but its categories are "
                f"{'text' if known else 'numbers'}, such as {self.values[0]!r}; convert it with "
                f"astype({'str' if known else 'int'})."
            )
        # the last is where -1 points to
        place = np.full(len(values) + 1, MISSING, np.int32)
        place[:-1] = [self.place.get(value, UNSEEN) for value in values]
        return place[column.codes]

    def label(self, code: int, write: Callable[[Any], str] = str) -> str:
        """What people read for a code."""
        full = code == MAX_BINS - 1 and len(self.values) > MAX_BINS
        return "(rare ones)" if full else write(self.values[code])


def known(
    dictionaries: Mapping[int, Dictionary], names: Sequence[str] | None
) -> Categorical:
    """Say which columns are of categories, for a table that will be matched by `names`,
    or by position for None.
    """
    return (
        sorted(dictionaries)
        if names is None
        else {names[column]: column for column in dictionaries}
    )


def learn(
    chunks: Sequence[Coded],
    counts: NDArray[np.int32] | None,
    where: str,
    reduce: Reduce | None = None,
) -> Dictionary:
    """Make the dictionary of a column: values by falling count, equal counts in the
    order of the values.

    `chunks` are consecutive rows. `counts` (n_rows) is what every row counts (NUMERICS
    2): rows of 0 are left out;
    None: each counts once. `reduce` adds up the counts of all holders of rows.
    """
    tally = Tally()
    first = 0
    for chunk in chunks:
        end = first + len(chunk.codes)
        tally.add(chunk, None if counts is None else counts[first:end])
        first = end
    return tally.dictionary(where, reduce)


class Tally:
    """How often the values of a column occur, batch by batch."""

    def __init__(self) -> None:
        self.total: dict[Any, int] = {}

    def add(self, chunk: Coded, counts: NDArray[np.int32] | None) -> list[Any]:
        """Count some rows, `counts` (n_rows) as `learn` has it; the values that only
        rows of 0 have.
        """
        total = self.total
        spare = []
        here = (
            None
            if counts is None
            else np.bincount(
                chunk.codes.astype(np.intp) + 1, minlength=len(chunk.values) + 1
            )
        )
        for k, (value, count) in enumerate(
            zip(chunk.values, _sums(chunk, counts).tolist(), strict=True), 1
        ):
            if count:
                total[value] = total.get(value, 0) + count
            elif here is not None and here[k]:
                spare.append(value)
        return spare

    def dictionary(self, where: str, reduce: Reduce | None = None) -> Dictionary:
        """The values by falling count, equal counts in the order of the values."""
        total = self.total
        if reduce is not None:
            mine = total
            total = {}
            for value, count in (
                one for some in dealt.gather(reduce, list(mine.items())) for one in some
            ):
                total[value] = total.get(value, 0) + count
        if len({isinstance(value, str) for value in total}) > 1:
            raise ColumnTypeError(
                f"{where} is text in one chunk and numbers in another; make text of all."
            )
        if not all(map(_plain, total)):  # numbers, of which some are no int64
            total = {text_of(value): count for value, count in total.items()}
        values = sorted(total)
        # stable, so that equal counts stay sorted
        values.sort(key=total.__getitem__, reverse=True)
        return Dictionary(tuple(values))


def _sums(chunk: Coded, counts: NDArray[np.int32] | None) -> NDArray[np.int64]:
    """What the rows of every value count together."""
    codes, n = chunk.codes.astype(np.intp) + 1, len(chunk.values) + 1  # missing is 0
    if counts is None:
        return np.bincount(codes, minlength=n)[1:].astype(np.int64)
    # bincount adds in float64, which holds sums of 2^31 numbers of 15 bits exactly
    high, low = (
        np.bincount(codes, part, n)[1:].astype(np.int64)
        for part in (counts >> 15, counts & 0x7FFF)
    )
    return (high << 15) + low


def pack(dictionaries: Mapping[int, Dictionary]) -> dict[str, NDArray[Any]]:
    """Write dictionaries, by column, as arrays for a file.

    ``category.j`` has the integers of column j, int64; or the bytes of all its texts,
    uint8, and ``category.j.end`` where each of them ends, int64.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for column, dictionary in dictionaries.items():
        if dictionary.values and isinstance(dictionary.values[0], str):
            texts = [
                str(value).encode(errors="surrogatepass") for value in dictionary.values
            ]
            arrays[f"category.{column}"] = np.frombuffer(b"".join(texts), np.uint8)
            arrays[f"category.{column}.end"] = np.cumsum(
                [len(text) for text in texts], dtype=np.int64
            )
        else:
            arrays[f"category.{column}"] = np.array(dictionary.values, np.int64)
    return arrays


def unpack(
    arrays: dict[str, NDArray[Any]], n_columns: int, error: type[SapwoodError]
) -> dict[int, Dictionary]:
    """Take dictionaries out of the arrays of a file; what `pack` did not write raises
    `error`.
    """
    found = {}
    for column in range(n_columns):
        flat = arrays.pop(f"category.{column}", None)
        if flat is None:
            continue
        end = arrays.pop(f"category.{column}.end", None)
        try:
            found[column] = Dictionary(_values(flat, end))
        except ValueError as cause:  # one of them is a text that is not UTF-8
            raise error(
                f"The categories of column {column} are damaged: {cause}."
            ) from cause
    return found


def _values(
    flat: NDArray[Any], end: NDArray[Any] | None
) -> tuple[str, ...] | tuple[int, ...]:
    """The values of a dictionary from its arrays."""
    values: tuple[Any, ...]
    if end is None:
        if flat.ndim != 1 or flat.dtype != np.int64:
            raise ValueError(f"integers are a {flat.ndim}-d array of {flat.dtype}")
        values = tuple(flat.tolist())
    else:
        if (
            flat.ndim != 1
            or flat.dtype != np.uint8
            or end.ndim != 1
            or end.dtype != np.int64
            or not len(end)
        ):
            raise ValueError("text is not as it is saved")
        ends = [0, *end.tolist()]
        if ends[-1] != len(flat) or ends != sorted(ends):
            raise ValueError("ends of texts do not rise up to their last byte")
        raw = flat.tobytes()
        values = tuple(
            raw[a:b].decode(errors="surrogatepass") for a, b in pairwise(ends)
        )
    if len(set(values)) < len(values):
        raise ValueError("a value occurs twice")
    return values


def _plain(value: Any) -> bool:
    """Whether a value is a category as it is."""
    return type(value) is str or (type(value) is int and -(2**63) <= value < 2**63)


def text_of(value: Any) -> str:
    """A value of a category as text: 1 and 1.0 are "1"."""
    return (
        str(int(value))
        if isinstance(value, float) and value.is_integer()
        else str(value)
    )


def _checked(value: Any, where: str) -> str | int | float | None:
    """A value as text or number; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    ):
        return None
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) or value.is_integer() else value
    if isinstance(
        value, bytes | complex | list | tuple | set | frozenset | dict | np.ndarray
    ):
        raise ColumnTypeError(
            f"{where} has {value!r} of type {type(value).__name__}: {ADVICE}"
        )
    return str(value)  # an interval, a time, a decimal
