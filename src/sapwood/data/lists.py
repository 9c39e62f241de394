"""Columns of lists of one length, such as embeddings: each place of the lists is a
column.

In: a column of lists, arrays or None. Out: columns of numbers; the length, a model
keeps.

The first number has the name and the place of the column; the others follow the table,
as ``embedding.1``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import ColumnTypeError

Floats = NDArray[np.float64]
MAX_LENGTH = 10_000


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists of numbers, (n_rows, length); NaN in rows without a list."""

    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, rows: list[Any], where: str) -> "Lists":
        """The column of a list of lists; None and NaN have no numbers."""
        rows = [
            None if one is None or (isinstance(one, float) and one != one) else one
            for one in rows
        ]
        if odd := [
            one for one in rows if one is not None and not hasattr(one, "__len__")
        ]:
            raise ColumnTypeError(
                f"{where} has lists, and {type(odd[0]).__name__} values too; use one of them."
            )
        sizes = {len(one) for one in rows if one is not None}
        if len(sizes) > 1:
            raise ColumnTypeError(
                f"{where} has lists of {min(sizes)} to {max(sizes)} values; only lists of one length become columns."
            )
        length = next(iter(sizes), 0)
        if sizes and not 0 < length <= MAX_LENGTH:
            raise ColumnTypeError(
                f"{where} has lists of {length} values; 1 to {MAX_LENGTH:,} can be columns."
            )
        found = np.full((len(rows), length), np.nan)
        for row, one in enumerate(rows):
            if one is not None:
                try:
                    found[row] = np.asarray(one, np.float64)
                except (TypeError, ValueError) as cause:
                    raise ColumnTypeError(
                        f"{where} has a list in row {row} that is not of numbers: {cause}."
                    ) from cause
        return cls(found)


@dataclass(frozen=True)
class ListColumn:
    """What a model knows of a column of lists."""

    column: int
    length: int

    word = "lists"

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the columns after the first."""
        return tuple(str(place) for place in range(1, self.length))

    def fits(self, column: Any) -> bool:
        """Whether a column of a table is such a column; one without any list is."""
        if isinstance(column, Lists):
            return column.values.shape[1] in (0, self.length)
        return (
            isinstance(column, np.ndarray)
            and column.dtype.kind == "f"
            and bool(np.isnan(column).all())
        )

    def numbers(self, column: Any, n_rows: int) -> list[Floats]:
        """The columns of a column of lists."""
        if not isinstance(column, Lists) or column.values.shape[1] != self.length:
            return [np.full(n_rows, np.nan) for _ in range(self.length)]
        return [np.ascontiguousarray(one) for one in column.values.T]


def is_list(value: Any) -> bool:
    """Whether a cell of a table is a list of numbers, not text."""
    return isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )
