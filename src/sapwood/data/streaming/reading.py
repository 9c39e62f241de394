"""Batches of a source as columns and vectors: read alike in every pass.

In: tables, or tuples of a table, its label and its weight. Out: `Columns` in one order,
labels, weights and groups.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import chunked, derived, ingest
from sapwood.data.categories import Coded, ColumnTypeError
from sapwood.data.ingest.sources import Source
from sapwood.data.progress import tell
from sapwood.data.streaming.limits import make_room
from sapwood.data.times import Times
from sapwood.errors import DataError

VECTORS = ("label", "weight", "init_score", "group")
WORK = 2  # what is made of a batch, as a multiple of its size


@dataclass
class Request:
    """What a user wants of a source."""

    source: Source
    # names of the columns that are label, weight, init_score or group
    taken: Mapping[str, str | Sequence[str]]
    feature_names: Sequence[str] | None
    # parameters of `BIN_PARAMS`, device and what columns of dates, text and lists
    # become
    bins: Mapping[str, Any]
    categorical: Any
    reference: Any  # a `Dataset`, or None
    n_threads: int
    memory_limit: int | None = None


@dataclass
class Batch:
    """Some consecutive rows."""

    first: int  # the place of the first one among all
    columns: ingest.Columns  # in the order of the first batch, or of the reference
    vectors: dict[str, NDArray[Any]]
    what: str  # what errors call it: the file that it is of, or its number


@dataclass
class Kept:
    """A batch that was read before."""

    columns: ingest.Columns
    vectors: dict[str, NDArray[Any]]


@dataclass
class Reader:
    """Reads all batches of a source; what the first ones say about columns holds for
    the others.
    """

    request: Request
    names: tuple[str, ...] | None = None
    n_columns: int = -1  # -1: no batch has come
    categorical: Any = None
    # the vectors that batches have
    given: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        self.categorical = self.request.categorical
        reference = self.request.reference
        if reference is not None:
            self.n_columns = reference.n_given
            self.names = (
                reference.feature_names[: self.n_columns] if reference.named else None
            )

    def batches(self, stage: str, n_rows: int | None = None) -> Iterator[Batch]:
        """All batches that have rows; `stage` and `n_rows` are for progress."""
        first = 0
        source = self.request.source
        for k, given in enumerate(source.read()):
            make_room(
                self.request.memory_limit, WORK * source.batch_bytes, "reading rows"
            )
            batch = self._read(given, source.where() or f"batch {k}", first)
            if batch.columns.n_rows == 0 and self.n_columns >= 0:
                continue
            yield batch
            first += batch.columns.n_rows
            tell(stage, first, n_rows or source.n_rows or 0, {})
        if first == 0:
            raise DataError(f"{source.what}: there are no rows.")

    def _read(self, given: Any, what: str, first: int) -> Batch:
        request = self.request
        if isinstance(given, Kept):  # it was read before
            if self.n_columns < 0:
                self.names, self.n_columns = (
                    given.columns.names,
                    given.columns.n_columns,
                )
            self.given = frozenset(given.vectors)
            return Batch(first, given.columns, given.vectors, what)
        table, label, weight = chunked.part(given)
        vectors: dict[str, Any] = {"label": label, "weight": weight}
        for name, column in request.taken.items():
            if vectors.get(name) is not None:
                raise DataError(
                    f"{what} is a tuple that has a {name}, and {name} names a column; give one of them."
                )
            if isinstance(column, str):
                vectors[name], table = ingest.take_column(table, column, what)
            else:
                several = []
                for one in column:
                    values, table = ingest.take_column(table, one, what)
                    several.append(values)
                vectors[name] = np.column_stack(several)
        vectors = {
            name: values for name, values in vectors.items() if values is not None
        }
        how = {
            "names": request.feature_names,
            "zero_as_missing": request.bins["zero_as_missing"],
        }
        columns = ingest.read(
            table, what=what, min_rows=0, categorical=self.categorical, **how
        )
        if request.feature_names is not None:
            columns = ingest.rename(columns, request.feature_names)
        if self.n_columns < 0:
            ingest.check_names(columns.names)
            self.names, self.n_columns = columns.names, columns.n_columns
            self.given = frozenset(vectors)
        if (
            isinstance(self.categorical, list)
            and self.names is not None
            and request.reference is None
        ):
            places = [
                j
                for j, one in enumerate(columns.as_columns())
                if isinstance(one, Coded)
            ]
            self.categorical = {self.names[j]: j for j in places}
        if request.reference is not None and not self.given:
            self.given = frozenset(vectors)
        if frozenset(vectors) != self.given:
            other = sorted(self.given ^ frozenset(vectors))
            raise DataError(
                f"{what} and the batches before it differ in {', '.join(other)}; give all of them the same."
            )
        self._check_columns(columns, what)
        columns = ingest.align(columns, self.names, self.n_columns)
        checked = {
            name: _checked(name, values, columns.n_rows, f"{name} of {what}")
            for name, values in vectors.items()
        }
        return Batch(first, columns, checked, what)

    def _check_columns(self, columns: ingest.Columns, what: str) -> None:
        """Raise where a batch has other columns than those before it, or than the
        reference.
        """
        others = (
            "the batches before it"
            if self.request.reference is None
            else "the reference"
        )
        if self.names is None or columns.names is None:
            if columns.n_columns != self.n_columns:
                raise DataError(
                    f"{what} has {columns.n_columns} columns, and {others} {self.n_columns}; give the same."
                )
            return
        expected = set(self.names)
        present = set(columns.names)
        lacks = [name for name in self.names if name not in present]
        besides = [name for name in columns.names if name not in expected]
        if lacks or besides:
            said = [f"it lacks {lacks[:5]}"] * bool(lacks) + [
                f"it has {besides[:5]} besides"
            ] * bool(besides)
            raise DataError(
                f"{what} has other columns than {others}: {', and '.join(said)}."
            )


def _checked(name: str, values: Any, n_rows: int, what: str) -> NDArray[Any]:
    """A vector of a batch."""
    if name == "group":
        return np.asarray(values)
    found = ingest.floats(values, what)
    if name == "init_score":
        found = found[:, np.newaxis] if found.ndim == 1 else found
    elif found.ndim == 2 and found.shape[1] == 1:
        found = found.ravel()
    return ingest.part_of_vector(name, found, n_rows, what)


def time_zones(
    columns: ingest.Columns, names: Sequence[str], known: dict[int, str | None] | None
) -> dict[int, Any]:
    """The columns of times and their zones; batches must agree."""
    table = columns.table if isinstance(columns.table, list) else []
    found = {j: one.zone for j, one in enumerate(table) if isinstance(one, Times)}
    if known is None or known == found or not columns.n_rows:
        return found if known is None else known
    for j in sorted(set(known) | set(found)):
        if (j in known) != (j in found):
            raise ColumnTypeError(
                f"column {names[j]!r} has times in one batch, and {_other(table, j)} in another."
            )
        if known[j] != found[j]:
            zones = sorted(str(zone or "") for zone in (known[j], found[j]))
            raise ColumnTypeError(
                f"column {names[j]!r} has several time zones, {zones}; use one of them."
            )
    return known


def _other(table: Sequence[Any], j: int) -> str:
    return (
        derived.kind_of(table[j])
        if j < len(table) and not isinstance(table[j], Times)
        else "numbers"
    )
