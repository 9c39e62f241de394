"""The first pass over a source: cuts, dictionaries, labels and weights, in bounded
memory.

In: batches. Out: `Learned`, all that the codes of the second pass need; vectors by row
go to files at once.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, derived, ingest, text, times
from sapwood.data.categories import Coded, Dictionary, Tally
from sapwood.data.derived import Plan
from sapwood.data.ingest.sources import Restart
from sapwood.data.streaming.limits import below, make_room
from sapwood.data.streaming.reading import WORK, Batch, Reader, Request, time_zones
from sapwood.data.streaming.vectors import VectorFiles
from sapwood.data.times import TimeColumn
from sapwood.device import host
from sapwood.errors import DataError

Floats = NDArray[np.float64]
# of a column of numbers, while its cuts are found
SAMPLE_BYTES = int(1.4 * host.SAMPLE_ROWS) * 8
KEY_BYTES = 192  # of a value while distinct ones are counted
CATEGORY_BYTES = 160  # of a category, while its dictionary grows


@dataclass
class Learned:
    """What the first pass has found."""

    names: tuple[str, ...]  # of all columns, parts of times included
    named: bool
    n_rows: int
    cuts: list[Floats]
    categories: dict[int, Dictionary]
    missing: list[bool]  # (columns) whether some value is
    times: Plan
    shapes: dict[str, list[int]]  # of the vectors by row, by name
    # of the content, where nothing else tells that it changed
    digests: dict[str, int] = field(default_factory=dict)


def learn(request: Request, folder: Any) -> Learned:
    """Read all batches once, or again where their types turn out to be wider."""
    coded: set[int] = set()
    while True:
        with VectorFiles(folder) as vectors:
            one = _Pass(request, vectors, coded)
            try:
                for batch in one.reader.batches("reading rows"):
                    try:
                        one.add(batch)
                    except categories.ColumnTypeError as cause:
                        raise categories.ColumnTypeError(
                            f"{batch.what}: {cause}"
                        ) from cause
                return one.learned()
            except Restart:
                coded |= one.coded


class _Pass:
    """One reading of all batches."""

    def __init__(self, request: Request, vectors: VectorFiles, coded: set[int]) -> None:
        self.request, self.vectors, self.reader = request, vectors, Reader(request)
        self.coded = set(coded)  # columns that have categories in some batch
        self.known = request.reference
        self.zones: dict[int, str | None] | None = None
        self.plan: Plan = ()
        self.sketch: Any = None
        self.tally: dict[int, Tally] = {}
        # columns of categories: whether some row has none
        self.gone: dict[int, bool] = {}
        # of each, the first batch that has numbers, and text
        self.places: dict[int, dict[bool, str]] = {}
        self.spare: dict[int, set[Any]] = {}  # their values in rows that count nothing
        self.numeric: list[int] = []
        self.together = 0  # columns of numbers that are looked at in one pass
        # smallest and largest value of each candidate part of times
        self.ends: dict[int, list[float]] = {}
        self.digests: dict[str, int] = {}
        self.n_rows = 0

    def add(self, batch: Batch) -> None:
        """Take a batch in."""
        columns, weight = batch.columns, batch.vectors.get("weight")
        names = self.reader.names or tuple(f"f{j}" for j in range(columns.n_columns))
        if self.known is not None:
            if wrong := derived.kinds_differ(
                [columns], self.known.times, self.known.categories, names
            ):
                raise categories.ColumnTypeError(wrong[0])
            self.plan = self.known.times
        else:
            self.zones = time_zones(columns, names, self.zones)
            wanted = self.request.bins["date_features"]
            parts = times.USUAL if wanted == "auto" else tuple(wanted or ())
            found = [
                TimeColumn(j, zone, parts) for j, zone in sorted(self.zones.items())
            ]
            self.plan = tuple(
                times.with_differences(found) if wanted == "auto" else found
            )
            derived.refuse_lists(columns, names)
        given = columns.n_columns
        columns = derived.expand(columns, self.plan)
        self._watch_types(columns)
        if self.sketch is None:
            self.numeric = [j for j in range(columns.n_columns) if j not in self.coded]
            self.together = _at_a_time(
                self.request, len(self.numeric), columns.n_rows * columns.n_columns
            )
            self.sketch = host.CutSketch(self.together, self.request.bins["max_bins"])
        self._sketch(self.sketch, columns, weight, self.numeric[: self.together])
        n_known = sum(len(one.total) for one in self.tally.values())
        make_room(
            self.request.memory_limit, CATEGORY_BYTES * n_known, "counting categories"
        )
        for j in sorted(self.coded):
            self._count(j, columns.as_columns()[j], weight, names, batch.what)
        for j in range(given, columns.n_columns):
            self._measure(j, columns.as_columns()[j])
        if self.request.source.identity is None:
            digest(self.digests, batch.columns, batch)
        self.vectors.add(batch.vectors)
        self.n_rows += columns.n_rows

    def _sketch(
        self,
        sketch: Any,
        columns: ingest.Columns,
        weight: Floats | None,
        wanted: list[int],
    ) -> None:
        """Look at some columns of a batch for their cuts."""
        table = columns.table
        if not isinstance(table, np.ndarray) or len(wanted) < columns.n_columns:
            every = columns.as_columns()
            table = [every[j] for j in wanted]
        if wanted:
            sketch.add(table, weight, self.request.n_threads)

    def _found(self) -> Iterator[tuple[int, bool, Floats]]:
        """Of every column of numbers its place, whether values are missing, and its
        cuts.

        Under a limit of memory, some columns are looked at in each of several passes.
        """
        least = self.request.bins["min_samples_bin"]
        n_threads = self.request.n_threads
        first = self.sketch
        self.sketch = None
        yield from zip(
            self.numeric[: self.together],
            first.missing,
            first.cuts(least, n_threads),
            strict=True,
        )
        del first
        for at in range(self.together, len(self.numeric), max(1, self.together)):
            wanted = self.numeric[at : at + self.together]
            sketch = host.CutSketch(len(wanted), self.request.bins["max_bins"])
            for batch in Reader(self.request).batches(
                "reading rows again", self.n_rows
            ):
                columns = derived.expand(batch.columns, self.plan)
                self._sketch(sketch, columns, batch.vectors.get("weight"), wanted)
            yield from zip(
                wanted, sketch.missing, sketch.cuts(least, n_threads), strict=True
            )

    def _watch_types(self, columns: ingest.Columns) -> None:
        """A column that has categories for the first time, after others without, makes
        the pass begin again.
        """
        if self.known is not None:
            self.coded = set(self.known.categories)
            return
        table = columns.table if isinstance(columns.table, list) else []
        found = {
            j for j, one in enumerate(table) if isinstance(one, Coded)
        } - self.coded
        self.coded |= found
        if found and self.sketch is not None:
            raise Restart

    def _count(
        self,
        j: int,
        column: Any,
        weight: Floats | None,
        names: Sequence[str],
        what: str,
    ) -> None:
        where = f"column {names[j]!r}, which has categories in a batch,"
        own = ingest.as_categories(column, where)
        if self.known is not None:
            codes = self.known.categories[j].encode(own, f"column {names[j]!r} of data")
            self.gone[j] = self.gone.get(j, False) or bool((codes < 0).any())
            return
        for is_text in {isinstance(value, str) for value in own.values}:
            self.places.setdefault(j, {}).setdefault(is_text, what)
        # Weights that are not integers are counted in a pass of their own.
        counts = (
            None
            if weight is None
            else np.clip(np.rint(weight), 0, 1 << 20).astype(np.int32)
        )
        self.spare.setdefault(j, set()).update(
            self.tally.setdefault(j, Tally()).add(own, counts)
        )
        self.gone[j] = self.gone.get(j, False) or bool((own.codes < 0).any())

    def _measure(self, j: int, part: Floats) -> None:
        if not np.isnan(part).all():
            low = float(np.nanmin(part))
            high = float(np.nanmax(part))
            ends = self.ends.setdefault(j, [low, high])
            self.ends[j] = [min(ends[0], low), max(ends[1], high)]

    def learned(self) -> Learned:
        """What all batches have in common."""
        reader = self.reader
        base = reader.names or tuple(f"f{j}" for j in range(reader.n_columns))
        known = (
            self.known.categories
            if self.known is not None
            else self._dictionaries(base)
        )
        if self.known is None and self.request.bins["text_features"]:
            self._refuse_text(known, base)
        n_columns = reader.n_columns + derived.n_parts(self.plan)
        missing = [False] * n_columns
        cuts = [np.empty(0)] * n_columns
        for place, gone, own in self._found():
            missing[place], cuts[place] = gone, own
        for j in self.coded:
            missing[j] = self.gone[j] or any(
                value not in known[j].place for value in self.spare.get(j, ())
            )
        if self.known is not None:
            cuts = list(self.known.cuts)
        plan, kept = self._chosen_parts(reader.n_columns)
        if "group" in reader.given:
            make_room(
                self.request.memory_limit, 24 * self.n_rows, "a group of each row"
            )
        return Learned(
            base + derived.names_of(plan, base),
            reader.names is not None,
            self.n_rows,
            [cuts[j] for j in kept],
            dict(known),
            [missing[j] for j in kept],
            plan,
            self.vectors.close(),
            self.digests,
        )

    def _refuse_text(
        self, known: Mapping[int, Dictionary], names: Sequence[str]
    ) -> None:
        """Raise where a column has text: what its words say of the label needs all rows
        at once.
        """
        wanted = self.request.bins["text_features"]
        for j, dictionary in known.items():
            by_name = wanted != "auto" and (j in wanted or names[j] in wanted)
            if by_name or (
                wanted == "auto" and text.reads_as_text(dictionary.values, self.n_rows)
            ):
                raise DataError(
                    f"column {names[j]!r} has text, of which only a Dataset in memory makes columns; set "
                    "text_features=None to read it as categories."
                )

    def _chosen_parts(self, n_given: int) -> tuple[Plan, list[int]]:
        """The parts of times that differ between rows, and the columns that stay with
        them.
        """
        kept = list(range(n_given))
        if self.known is not None or self.request.bins["date_features"] != "auto":
            return self.plan, list(range(n_given + derived.n_parts(self.plan)))
        plan = []
        at = n_given
        for one in self.plan:
            ends = [self.ends.get(at + k, [0.0, 0.0]) for k in range(len(one.parts))]
            # these stay in any case
            since = [part.startswith(times.SINCE) for part in one.parts]
            differ = [
                low != high or stays
                for (low, high), stays in zip(ends, since, strict=True)
            ]
            kept += [at + k for k, does in enumerate(differ) if does]
            parts = tuple(
                part for part, does in zip(one.parts, differ, strict=True) if does
            )
            assert isinstance(one, TimeColumn)
            plan.append(TimeColumn(one.column, one.zone, parts))
            at += len(one.parts)
        return tuple(plan), kept

    def _dictionaries(self, names: Sequence[str]) -> dict[int, Dictionary]:
        """The dictionaries of all columns of categories."""
        tally = self.tally
        if tally and "weight" in self.reader.given and not self._integral():
            tally = self._counted_again()
        for j, one in tally.items():
            if len({isinstance(value, str) for value in one.total}) > 1:
                text = self.places[j][True]
                numbers = self.places[j][False]
                raise categories.ColumnTypeError(
                    f"column {names[j]!r} is text in {text}, and numbers in {numbers}; make text of all."
                )
        return {
            j: one.dictionary(f"column {names[j]!r}")
            for j, one in sorted(tally.items())
        }

    def _integral(self) -> bool:
        make_room(
            self.request.memory_limit,
            16 * self.n_rows,
            "counting categories by weights",
        )
        counts, integral, _ = host.integer_weights(self.vectors.view("weight"))
        del counts
        return integral

    def _counted_again(self) -> dict[int, Tally]:
        """Counts by weights in fixed point, whose unit all weights decide."""
        counts = host.integer_weights(self.vectors.view("weight"))[0]
        tally: dict[int, Tally] = {j: Tally() for j in self.tally}
        for batch in Reader(self.request).batches("counting categories", self.n_rows):
            own = counts[batch.first : batch.first + batch.columns.n_rows]
            columns = batch.columns.as_columns()
            for j, one in tally.items():
                one.add(ingest.as_categories(columns[j], f"column {j}"), own)
        return tally


def _at_a_time(request: Request, n_columns: int, n_values: int) -> int:
    """Columns whose samples fit in memory together; n_values: of a batch."""
    limit = request.memory_limit
    if limit is None or n_columns == 0:
        return n_columns
    sample = min(SAMPLE_BYTES, 16 * (request.source.n_rows or SAMPLE_BYTES))
    each = sample + KEY_BYTES * int(request.bins["max_bins"])
    batch = (WORK + 1) * request.source.batch_bytes or 16 * n_values
    # draws and weights of the sample, and for sorting
    fixed = batch + 4 * SAMPLE_BYTES * (1 + request.n_threads)
    make_room(limit, fixed + each, "reading rows")
    return int(min(n_columns, (below(limit) - host.resident_bytes() - fixed) // each))


def digest(digests: dict[str, int], columns: ingest.Columns, batch: Batch) -> None:
    """Checksums of the columns of numbers and of the vectors, over all batches so far:
    batches may be of any size.
    """
    for j, one in enumerate(columns.as_columns()):
        if isinstance(one, np.ndarray):
            digests[str(j)] = zlib.crc32(
                np.ascontiguousarray(one).data, digests.get(str(j), 0)
            )
    for name, values in batch.vectors.items():
        if values.dtype != object:
            digests[name] = zlib.crc32(
                np.ascontiguousarray(values).data, digests.get(name, 0)
            )
