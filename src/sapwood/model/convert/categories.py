"""Categories of a foreign column: the numbers its library split by, the values behind
them, and our codes.

In: the numbers, and values where the library kept some. Out: a dictionary of ours, and
codes into it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import MAX_BINS, Dictionary, text_of
from sapwood.errors import ModelFormatError


class Categories:
    """One column.

    numbers: iterable of int; what the library splits by; each once, not negative.
    values: sequence, optional; by number, text or integers; without them the numbers
    are the values.
    """

    def __init__(
        self, numbers: Iterable[int], values: Sequence[Any] | None = None
    ) -> None:
        self.numbers = np.fromiter(sorted(set(numbers)), np.int64)
        if values is not None and len(self.numbers) and self.numbers[-1] >= len(values):
            raise ModelFormatError(
                f"category {self.numbers[-1]} has no value among {len(values)}."
            )
        own = self.numbers.tolist()
        named = own if values is None else [_plain(values[number]) for number in own]
        if any(isinstance(value, float) for value in named):
            # as the dictionaries of ours have fractions
            named = [text_of(value) for value in named]
        self.values: tuple[Any, ...] = tuple(named)
        if (
            len(self.values) > MAX_BINS
            or len({type(value) for value in self.values}) > 1
        ):
            raise ModelFormatError(
                "a column has more than 65,534 categories, or both text and numbers."
            )

    def codes(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """The codes of some of the numbers; numbers without training rows are
        ignored.
        """
        wanted = np.unique(numbers)
        place = np.searchsorted(self.numbers, wanted)
        known = np.append(self.numbers, -1)[place] == wanted
        return np.asarray(place[known], np.int32)


def dictionaries(columns: Mapping[int, Categories]) -> dict[int, Dictionary]:
    """The values of every column of categories, as a `Booster` takes them."""
    return {column: Dictionary(own.values) for column, own in columns.items()}


def _plain(value: Any) -> str | int | float:
    """A value of a document as text or a number."""
    if isinstance(value, str):
        return value
    if (
        not isinstance(value, int | float | np.number)
        or not -(2.0**63) <= value < 2.0**63
    ):
        raise ModelFormatError(
            f"category {str(value)[:60]!r} is neither text nor a number."
        )
    return int(value) if value == int(value) else float(value)
