"""Combinations: columns that a model makes of others before its trees look at a row.

In: columns of categories as codes, and of numbers. Out: one more column of categories
for each combination.

A combination has sources: categories, whose states are their codes, then missing; and
numbers, whose states are at
most a threshold, above it, and missing. The states of a row make one key; its rank
among those of training is its code.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import MAX_BINS, Dictionary
from sapwood.data.ingest import Columns
from sapwood.device import host
from sapwood.model.validate import check_types, freeze, require

# a column, and the threshold where it is one of numbers; 0 where it is one of
# categories
Source = tuple[int, float]
Keys = NDArray[np.int64]

MAX_KEYS = 2**62  # states of a combination: keys are int64
STATES_OF_NUMBER = 3
DTYPES: dict[str, np.dtype[Any]] = {
    "combination_offset": np.dtype(np.int64),
    "combination_column": np.dtype(np.int32),
    "combination_threshold": np.dtype(np.float64),
    "combination_key_offset": np.dtype(np.int64),
    "combination_key": np.dtype(np.int64),
}


def join(states: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Keys:
    """One number for the states of each row, (n_rows); those of the first source count
    most.

    The states of a source, (n_rows), are 0 .. size - 1; for an unseen category they are
    negative, and the number is -1.
    """
    key = np.zeros(len(states[0]), np.int64)
    for state, size in zip(states, sizes, strict=True):
        key = np.where((key < 0) | (state < 0), -1, key * size + state)
    return key


def find(key: Keys, known: Keys) -> NDArray[np.int32]:
    """The rank of each key among those known, which rise; -1 for other keys."""
    at = np.searchsorted(known, key)
    return np.where(np.append(known, -2)[at] == key, at, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Combinations:
    """Combinations of one source or more; the column of number i follows those of the
    table, at n_columns + i.

    ::

        combination_offset        0          2              5       first source of each, and the end
        combination_column        1    3     1    3    0            categories 1 and 3; the same and a number
        combination_threshold     0    0     0    0    2.5
        combination_key_offset    0          4              9       first key of each, and the end
    """

    combination_offset: NDArray[np.int64]  # (n + 1)
    combination_column: NDArray[np.int32]  # (n_sources)
    combination_threshold: NDArray[np.float64]  # (n_sources)
    combination_key_offset: NDArray[np.int64]  # (n + 1)
    combination_key: NDArray[np.int64]  # of all, rising within each

    def __post_init__(self) -> None:
        freeze(self, DTYPES)

    def __len__(self) -> int:
        return max(0, len(self.combination_offset) - 1)

    @classmethod
    def of(cls, found: Sequence[tuple[Sequence[Source], Keys]]) -> "Combinations":
        """Freeze combinations, each with its sources and the keys seen in training,
        rising.
        """
        sources = [source for own, _ in found for source in own]
        return cls(
            np.cumsum([0, *(len(own) for own, _ in found)], dtype=np.int64),
            np.array([column for column, _ in sources], np.int32),
            np.array([threshold for _, threshold in sources], np.float64),
            np.cumsum([0, *(len(keys) for _, keys in found)], dtype=np.int64),
            np.concatenate([np.empty(0, np.int64), *(keys for _, keys in found)]),
        )

    def sources(self) -> Iterator[list[Source]]:
        """The sources of each combination, in order."""
        every = list(
            zip(
                self.combination_column.tolist(),
                self.combination_threshold.tolist(),
                strict=True,
            )
        )
        for first, last in pairwise(self.combination_offset.tolist()):
            yield every[first:last]

    def keys(self) -> Iterator[Keys]:
        """The keys of each combination that training has seen."""
        for first, last in pairwise(self.combination_key_offset.tolist()):
            yield self.combination_key[first:last]

    def n_bins(self, n_columns: int) -> dict[int, int]:
        """The bins of each combination's column, by its position."""
        return {n_columns + i: len(keys) for i, keys in enumerate(self.keys())}

    def names(
        self, feature_names: Sequence[str], categories: Mapping[int, Dictionary]
    ) -> list[str]:
        """Readable names: ``city+kind``, ``city+age>42.5``."""

        def word(column: int, threshold: float) -> str:
            return feature_names[column] + (
                "" if column in categories else f">{threshold!r}"
            )

        return ["+".join(word(*source) for source in own) for own in self.sources()]

    def labelled(
        self, n_columns: int, categories: Mapping[int, Dictionary]
    ) -> dict[int, "Labels"]:
        """The meaning of codes, by the position of the combination's column."""
        pairs = zip(self.sources(), self.keys(), strict=True)
        return {
            n_columns + i: Labels(own, known, categories)
            for i, (own, known) in enumerate(pairs)
        }

    def shares(self, n_columns: int) -> NDArray[np.float64]:
        """The share of each column of the table in each internal column; sources share
        equally, as in CatBoost.
        """
        shares = np.eye(n_columns + len(self), n_columns)
        for row, own in zip(shares[n_columns:], self.sources(), strict=True):
            columns = sorted({column for column, _ in own})
            row[columns] = 1 / len(columns)
        return shares

    def added(
        self, columns: Columns, categories: Mapping[int, Dictionary], n_threads: int = 1
    ) -> Columns:
        """A table of codes and numbers with the columns of all combinations; the same
        where there are none.
        """
        if not len(self):
            return columns
        table = columns.dense().as_columns()
        n_codes = [
            categories[j].n_bins if j in categories else 0
            for j in self.combination_column.tolist()
        ]
        sources = (
            self.combination_offset,
            self.combination_column,
            np.array(n_codes, np.int32),
        )
        keys = self.combination_key_offset, self.combination_key
        new = host.combine(
            table, *sources, self.combination_threshold, *keys, n_threads
        )
        return replace(
            columns, table=[*table, *new], n_columns=columns.n_columns + len(new)
        )

    def validate(self, n_columns: int, categories: Mapping[int, Dictionary]) -> None:
        """Check that the arrays are combinations of the columns of a table, whatever
        wrote them.
        """
        check_types(self, DTYPES)
        column, threshold = self.combination_column, self.combination_threshold
        ends = (
            (self.combination_offset, len(column)),
            (self.combination_key_offset, len(self.combination_key)),
        )
        for offset, end in ends:
            fits = (
                len(offset) == len(self.combination_offset) > 0
                and offset[0] == 0
                and offset[-1] == end
            )
            require(fits, "offsets of combinations go from 0 to the end")
            require(offset[1:] > offset[:-1], "offsets of combinations rise strictly")
        require(
            len(column) == len(threshold),
            "every source of a combination has a threshold",
        )
        require(
            (column >= 0) & (column < n_columns),
            f"sources of combinations are below {n_columns}",
        )
        by_code = np.isin(column, list(categories))
        require(np.isfinite(threshold), "thresholds of combinations are finite")
        require(
            ~by_code | (threshold == 0),
            "categories in combinations have the threshold 0",
        )
        for own, keys in zip(self.sources(), self.keys(), strict=True):
            size = prod(sizes_of(own, categories))
            require(
                any(column in categories for column, _ in own),
                "a combination has categories",
            )
            require(len(set(own)) == len(own), "a combination has no source twice")
            require(
                size <= MAX_KEYS and len(keys) <= MAX_BINS,
                "a combination is not too large",
            )
            require(
                (keys >= 0) & (keys < size), "keys of combinations are those of states"
            )
            require(keys[1:] > keys[:-1], "the keys of a combination rise")


@dataclass(frozen=True)
class Labels:
    """The meaning of one combination's codes."""

    sources: Sequence[Source]
    known: Keys
    categories: Mapping[int, Dictionary]
    none: ClassVar[str] = "new"  # the meaning of codes below 0

    def label(self, code: int, write: Callable[[Any], str] = str) -> str:
        """The text for a code: ``('Bern', > 42.5)``."""
        words = []
        key = int(self.known[code])
        states = list(
            zip(self.sources, sizes_of(self.sources, self.categories), strict=True)
        )
        for (column, threshold), size in reversed(states):
            key, state = divmod(key, size)
            if state == size - 1:
                words.append("missing")
            elif column in self.categories:
                words.append(self.categories[column].label(state, write))
            else:
                words.append(f"{('<=', '>')[state]} {threshold!r}")
        return f"({', '.join(reversed(words))})" if len(words) > 1 else words[0]


Labelled = Dictionary | Labels  # codes that have a meaning


def sizes_of(
    sources: Sequence[Source], categories: Mapping[int, Dictionary]
) -> list[int]:
    """How many states each source has."""
    return [
        categories[column].n_bins + 1 if column in categories else STATES_OF_NUMBER
        for column, _ in sources
    ]


def encode(combinations: Combinations) -> dict[str, NDArray[Any]]:
    """Combinations as arrays of a file; empty if there are none."""
    return (
        {name: getattr(combinations, name) for name in DTYPES}
        if len(combinations)
        else {}
    )


def decode(arrays: MutableMapping[str, NDArray[Any]]) -> Combinations:
    """The combinations among the arrays of a file, if it has any, taken out of them."""
    if not DTYPES.keys() <= arrays.keys():
        return Combinations.of([])
    found = Combinations(*(arrays.pop(name) for name in DTYPES))
    check_types(found, DTYPES)  # before anything is counted
    require(len(found) > 0, "the arrays of combinations hold some")
    return found
