"""Crosses: columns of numbers that a dataset, and the model of it, makes of two others.

In: columns of numbers, and of categories as codes. Out: one more column of float32
numbers for each cross.

A cross is a difference, product or ratio of two numbers, or a number less its mean in
the row's category. It is computed in float64 and rounded to float32; what is not finite
is missing.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import MISSING, UNSEEN, Coded, Dictionary
from sapwood.data.ingest import Columns
from sapwood.device import host
from sapwood.errors import DataError, ParameterError, suggest

if TYPE_CHECKING:
    from sapwood.data.dataset import Dataset

Floats = NDArray[np.float64]
# kind, left and right column by name or position
Given = tuple[str, int | str, int | str]

KINDS = {
    "difference": "{a} - {b}",
    "product": "{a} * {b}",
    "ratio": "{a} / {b}",
    "centred": "{a} - mean({a} by {b})",
}
CENTRED = list(KINDS).index("centred")
# up to so many, one table row by row is read faster than a list of columns
FEW_ROWS = 256
# of a value in a sum; three limbs, whose sums over 2^33 rows are exact in float64
BITS = 60
LIMB = 20
DTYPES: dict[str, np.dtype[Any]] = {
    "cross_kind": np.dtype(np.uint8),
    "cross_left": np.dtype(np.int32),
    "cross_right": np.dtype(np.int32),
    "cross_offset": np.dtype(np.int64),
    "cross_mean": np.dtype(np.float64),
}


@dataclass(frozen=True, eq=False)
class Crosses:
    """Crosses of columns of a table; the column of number i follows those of the table,
    at n_columns + i.

    ::

        cross_kind      0    1    3         the place of its kind in KINDS
        cross_left      2    2    0         a column of numbers
        cross_right     5    2    4         a column of numbers; where the kind is centred, of categories
        cross_offset    0    0    0    7    first mean of each, and the end
        cross_mean      those of 5 categories by code, of missing ones, of unseen ones (that of all rows)
    """

    cross_kind: NDArray[np.uint8]  # (n)
    cross_left: NDArray[np.int32]  # (n)
    cross_right: NDArray[np.int32]  # (n)
    cross_offset: NDArray[np.int64]  # (n + 1)
    cross_mean: Floats

    def __post_init__(self) -> None:
        for name in DTYPES:
            array = np.array(getattr(self, name), order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.cross_kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Crosses) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in DTYPES
        )

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, found: Sequence[tuple[int, int, int, Floats]]) -> "Crosses":
        """Freeze crosses: kind, left and right column, and means."""
        means = [np.asarray(mean, np.float64) for *_, mean in found]
        return cls(
            np.array([kind for kind, *_ in found], np.uint8),
            np.array([left for _, left, _, _ in found], np.int32),
            np.array([right for _, _, right, _ in found], np.int32),
            np.cumsum([0, *map(len, means)], dtype=np.int64),
            np.concatenate([np.empty(0), *means]),
        )

    @property
    def parts(self) -> tuple[Any, Any, Any, Any, Any]:
        """The five arrays, as the core takes them."""
        return (
            self.cross_kind,
            self.cross_left,
            self.cross_right,
            self.cross_offset,
            self.cross_mean,
        )

    def sources(self) -> Iterator[tuple[int, int, int]]:
        """Kind, left and right column of each cross, in order."""
        yield from zip(
            self.cross_kind.tolist(),
            self.cross_left.tolist(),
            self.cross_right.tolist(),
            strict=True,
        )

    def names(self, feature_names: Sequence[str]) -> tuple[str, ...]:
        """Readable names, ``age - mean(age by city)``; in parentheses where a column
        has that name already.
        """
        names = []
        taken = set(feature_names)
        formulas = list(KINDS.values())
        for kind, left, right in self.sources():
            name = formulas[kind].format(a=feature_names[left], b=feature_names[right])
            while name in taken:
                name = f"({name})"
            taken.add(name)
            names.append(name)
        return tuple(names)

    def shares(self, n_columns: int) -> Floats:
        """How what is said of all columns is divided among those of the table,
        (n_columns + n, n_columns).

        A cross's part goes to its columns in equal shares.
        """
        shares = np.zeros((n_columns + len(self), n_columns))
        shares[:n_columns] = np.eye(n_columns)
        for row, (_, left, right) in zip(
            shares[n_columns:], self.sources(), strict=True
        ):
            row[left] += 0.5
            row[right] += 0.5
        return shares

    def values(self, table: Any, n_threads: int = 1) -> NDArray[np.float32]:
        """The numbers of all crosses, (n, n_rows), from a table of numbers and
        codes.
        """
        return host.cross(table, *self.parts, n_threads)

    def added(self, columns: Columns, n_threads: int = 1) -> Columns:
        """A table of numbers and codes with the columns of all crosses; the same where
        there are none.
        """
        if not len(self):
            return columns
        table: Any = columns.dense().table
        new = self.values(table, n_threads)
        n = columns.n_columns + len(new)
        if isinstance(table, np.ndarray) and len(table) <= FEW_ROWS:
            return replace(
                columns,
                table=np.concatenate([table, new.T], axis=1),
                names=None,
                n_columns=n,
            )
        return replace(
            columns,
            table=[*(table.T if isinstance(table, np.ndarray) else table), *new],
            n_columns=n,
        )

    def flaw(self, n_columns: int, categories: Mapping[int, Dictionary]) -> str | None:
        """The rule that the arrays break, whatever wrote them; None where they are
        crosses of columns of a table.
        """
        arrays = {name: getattr(self, name) for name in DTYPES}
        if any(
            array.ndim != 1 or array.dtype != DTYPES[name]
            for name, array in arrays.items()
        ):
            return "arrays of crosses are of one dimension and of their types"
        kind, left, right, offset, mean = arrays.values()
        if not len(kind) == len(left) == len(right) == len(offset) - 1:
            return "every cross has a kind, two columns and means"
        if (kind >= len(KINDS)).any():
            return f"kinds of crosses are below {len(KINDS)}"
        if any(
            ((column < 0) | (column >= n_columns)).any() for column in (left, right)
        ):
            return f"sources of crosses are below {n_columns}"
        known = list(categories)
        if np.isin(left, known).any() or not np.array_equal(
            np.isin(right, known), kind == CENTRED
        ):
            return "crosses are of numbers; those of the kind 'centred' of a number by a category"
        sizes = [
            categories[one].n_bins + 2 if one in categories else 0
            for one in right.tolist()
        ]
        if not np.array_equal(offset, np.cumsum([0, *sizes])) or offset[-1] != len(
            mean
        ):
            return "a centred cross has a mean for each category, for missing and for unseen ones; others have none"
        if not np.isfinite(mean).all():
            return "means of crosses are finite"
        return (
            None if len(set(self.sources())) == len(self) else "no cross is there twice"
        )


NONE = Crosses.of([])


def make(
    given: "Crosses | Sequence[Given]", data: "Dataset", n_threads: int
) -> tuple[Crosses, Columns, NDArray[np.float32]]:
    """The crosses asked for, the table of a dataset with their columns, and these
    alone, (n, n_rows).
    """
    table: list[Any] = _table(data)
    made = _learn(given, data, table)
    new = made.values(table, n_threads)
    for j, known in data.categories.items():
        table[j] = Coded(np.maximum(table[j], MISSING), known.values[: known.n_bins])
    return made, Columns([*table, *new], None, data.n_rows, len(table) + len(new)), new


def _learn(
    given: "Crosses | Sequence[Given]", data: "Dataset", table: Sequence[NDArray[Any]]
) -> Crosses:
    """Crosses with their means over the rows of a table."""
    if not isinstance(given, Crosses):
        wanted = [_checked(one, data) for one in given]
        limbs = {
            left: _limbs(table[left])
            for left in {left for _, left, right in wanted if right in data.categories}
        }
        means = [
            _means(*limbs[left], table[right], data.n_bins[right])
            if right in data.categories
            else np.empty(0)
            for _, left, right in wanted
        ]
        given = Crosses.of(
            [(*one, mean) for one, mean in zip(wanted, means, strict=True)]
        )
    if (flaw := given.flaw(data.n_columns, data.categories)) is not None:
        raise ParameterError(f"these are no crosses of the data: {flaw}.")
    return given


def _table(data: "Dataset") -> list[NDArray[Any]]:
    """The numbers that a dataset has kept, and its categories as codes, column by
    column.
    """
    if data.reduce is not None:
        raise ParameterError(
            "with_crosses needs all rows, which are dealt to several holders; hold them in one place."
        )
    if data.tree_method == "exact":
        raise ParameterError("with_crosses is not for tree_method='exact'; use 'hist'.")
    if len(data.crosses):
        raise DataError(
            "the data has crosses already; call with_crosses on the data that has none."
        )
    if data.values is None:
        raise DataError(
            "with_crosses needs the values of the table; make the data with linear_leaves=True."
        )
    table: list[NDArray[Any]] = list(data.values.T)
    for j in data.categories:
        code = data.binned.codes(j).astype(np.int32)
        code[code == data.n_bins[j]] = MISSING
        code[data.unseen.get(j, [])] = UNSEEN
        table[j] = code
    return table


def encode(crosses: Crosses) -> dict[str, NDArray[Any]]:
    """Crosses as arrays of a file; empty if there are none."""
    return {name: getattr(crosses, name) for name in DTYPES} if len(crosses) else {}


def decode(arrays: MutableMapping[str, NDArray[Any]]) -> Crosses:
    """The crosses among the arrays of a file, if it has any, taken out of them;
    `Crosses.flaw` must look at them.
    """
    return (
        Crosses(*(arrays.pop(name) for name in DTYPES))
        if DTYPES.keys() <= arrays.keys()
        else NONE
    )


def _checked(one: Any, data: "Dataset") -> tuple[int, int, int]:
    """The kind and the columns of a cross as given."""
    try:
        kind, left, right = one
    except (TypeError, ValueError):
        raise ParameterError(
            f"{one!r} is no cross; give (kind, left, right), such as ('ratio', 'a', 'b')."
        ) from None
    if kind not in KINDS:
        raise ParameterError(
            f"a cross of the kind {kind!r} is unknown; {suggest(str(kind), list(KINDS))}"
        )
    places = []
    for column in (left, right):
        if isinstance(column, str) and column not in data.feature_names:
            raise ParameterError(
                f"a cross names the column {column!r}; {suggest(column, data.feature_names)}"
            )
        place = data.feature_names.index(column) if isinstance(column, str) else column
        if not isinstance(place, int | np.integer) or not 0 <= place < data.n_columns:
            raise ParameterError(
                f"a cross names column {column!r}; the data has columns 0..{data.n_columns - 1}."
            )
        places.append(int(place))
    return list(KINDS).index(kind), places[0], places[1]


def _limbs(x: NDArray[Any]) -> tuple[list[NDArray[Any]], int]:
    """Which numbers are finite, the limbs of these as integers of 60 bits, highest
    first, and their exponent.
    """
    finite = np.isfinite(x)
    x = np.where(finite, x, 0.0).astype(np.float64)
    exponent = int(np.frexp(np.abs(x).max())[1])
    whole = np.rint(np.ldexp(x, BITS - exponent)).astype(np.int64)
    low = (1 << LIMB) - 1
    return [finite, whole >> 2 * LIMB, whole >> LIMB & low, whole & low], exponent


def _means(
    parts: Sequence[NDArray[Any]], exponent: int, code: NDArray[np.int32], n_codes: int
) -> Floats:
    """The mean of the finite numbers in each category, (n_codes + 2); where there are
    none, that of all rows.

    Their limbs are summed exactly in float64, so the order of the rows does not matter.
    """
    # missing: n_codes, unseen: n_codes + 1
    group = np.where(code >= 0, code, n_codes - 1 - code)
    sums = np.array([np.bincount(group, part, n_codes + 2) for part in parts])
    sums[:, -1] = sums.sum(axis=1)
    count, *limbs = sums
    total = np.ldexp(limbs[0], 2 * LIMB) + np.ldexp(limbs[1], LIMB) + limbs[2]
    mean: Floats = np.ldexp(total / np.maximum(count, 1.0), exponent - BITS)
    mean[count == 0] = mean[-1]
    return mean
