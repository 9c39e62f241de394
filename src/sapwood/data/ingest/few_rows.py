"""A few rows of a pandas data frame, read in microseconds: what serving a model one row
at a time needs.

In: a small data frame whose types are the usual ones. Out: the same numbers and codes
as `read` and `encode` give, or None, and then those do it.

It looks at the blocks in which pandas keeps its columns, which are no public interface.
So everything is checked, and whatever is not as expected is left to `read`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import MISSING, UNSEEN, Dictionary
from sapwood.data.ingest.arrays import MAX_EXACT

MAX_ROWS = 64
MAX_KNOWN = 1024  # indices of columns and of categories that are remembered
NUMBERS = {
    np.dtype(kind) for kind in ("f8", "f4", "i4", "i2", "i1", "u4", "u2", "u1", "?")
}
WHOLE = np.dtype("i8")


class FewRows:
    """Reads small data frames for one model. What it has seen it remembers by identity:
    names, categories.

    names: the columns, in order.
    categories: the dictionary of every column of categories, by position.
    """

    def __init__(
        self, names: Sequence[str], categories: Mapping[int, Dictionary]
    ) -> None:
        self._names = tuple(names)
        self._categories = categories
        self._columns: dict[int, tuple[Any, NDArray[np.intp] | None]] = {}
        self._types: dict[int, type | None] = {}
        self._codes: dict[tuple[int, int], tuple[Any, NDArray[np.float64]]] = {}

    def knows(self, X: Any) -> bool:
        """Whether something is a data frame of pandas with these names in their
        order.
        """
        return hasattr(X, "_mgr") and X.ndim == 2 and self._place(X.columns) is not None

    def read(self, X: Any) -> NDArray[np.float64] | None:
        """The table as numbers and codes, (n_rows, n_columns); None where `read` must
        look at it.
        """
        manager = getattr(X, "_mgr", None)
        if manager is None:
            return None
        try:
            n_rows = len(X.index)
            place = self._place(X.columns)
            if place is None or not 0 < n_rows <= MAX_ROWS:
                return None
            table = np.empty((n_rows, len(self._names)))
            for block in manager.blocks:
                columns = place[block.mgr_locs.as_array]
                values = block.values
                if type(values) is np.ndarray:
                    if not self._numbers(values, columns, table):
                        return None
                elif not self._coded(values, int(columns[0]), table):
                    return None
        except (AttributeError, TypeError, IndexError, ValueError):  # another pandas
            return None
        return table

    def _place(self, columns: Any) -> NDArray[np.intp] | None:
        """The position in the model of every column of a table; None where names
        differ.
        """
        known = self._columns.get(id(columns))
        if known is None:
            same = tuple(columns) == self._names
            if len(self._columns) >= MAX_KNOWN:
                self._columns.clear()
            known = self._columns[id(columns)] = (
                columns,
                np.arange(len(self._names)) if same else None,
            )
        return known[1]

    def _numbers(
        self,
        values: NDArray[Any],
        columns: NDArray[np.intp],
        table: NDArray[np.float64],
    ) -> bool:
        """Put a block of numbers, (n, n_rows), into the table; whether that was
        possible.
        """
        if values.dtype == WHOLE:
            if values.max() > MAX_EXACT or values.min() < -MAX_EXACT:
                return False
        elif values.dtype not in NUMBERS:
            return False
        if self._categories and not self._categories.keys().isdisjoint(
            columns.tolist()
        ):
            return values.dtype.kind in "iu" and self._whole(
                values, columns.tolist(), table
            )
        table[:, columns] = values.T
        return True

    def _whole(
        self, values: NDArray[Any], columns: list[int], table: NDArray[np.float64]
    ) -> bool:
        """Put a block of integers, some of them categories, into the table; whether
        that was possible.
        """
        for column, row in zip(columns, values.tolist(), strict=True):
            dictionary = self._categories.get(column)
            if dictionary is None:
                table[:, column] = row
            elif self._type_of(column) is int:
                table[:, column] = [dictionary.place.get(one, UNSEEN) for one in row]
            else:
                return False
        return True

    def _type_of(self, column: int) -> type | None:
        """The type of all values of a dictionary, text or integers; None where there is
        another among them.
        """
        if column not in self._types:
            types = {type(one) for one in self._categories[column].values}
            self._types[column] = (
                types.pop() if len(types) == 1 and types <= {str, int} else None
            )
        return self._types[column]

    def _coded(self, values: Any, column: int, table: NDArray[np.float64]) -> bool:
        """Put the codes of a column of categories or of text into the table; whether
        that was possible.
        """
        dtype = values.dtype
        codes = getattr(values, "_codes", None)  # `codes` makes a view every time
        if (
            codes is not None
            and (known := self._codes.get((id(dtype), column))) is not None
        ):
            if len(codes) == 1:
                table[0, column] = known[1].item(codes[0])
            else:
                table[:, column] = known[1][codes]
            return True
        dictionary = self._categories.get(column)
        if dictionary is None or self._type_of(column) is None:
            return False
        if codes is not None:
            table[:, column] = self._lookup(dtype, column, dictionary)[codes]
            return True
        usual = (
            dtype.kind in "OUT"
            and getattr(dtype, "na_value", None) is not NotImplemented
        )
        if not usual or self._type_of(column) is not str:
            return False
        for row, value in enumerate(values):
            code = dictionary.place.get(value)
            if code is None:
                if type(value) is not str and value == value and value is not None:
                    return False  # NA of another kind, or no text
                code = UNSEEN if type(value) is str else MISSING
            table[row, column] = code
        return True

    def _lookup(
        self, dtype: Any, column: int, dictionary: Dictionary
    ) -> NDArray[np.float64]:
        """Our codes by those of a categorical type; the last is that of a missing
        value.
        """
        values = dtype.categories
        # types are made anew more often than their categories
        known = self._codes.get((id(values), column))
        if known is None:
            listed, kind = values.tolist(), self._type_of(column)
            if not all(type(one) is kind for one in listed):
                raise TypeError(
                    "categories of another type than those of training are for `read`"
                )
            if len(self._codes) >= MAX_KNOWN:
                self._codes.clear()
            found = np.array(
                [*(dictionary.place.get(one, UNSEEN) for one in listed), MISSING],
                np.float64,
            )
            known = self._codes[id(values), column] = values, found
        self._codes[id(dtype), column] = dtype, known[1]
        return known[1]
