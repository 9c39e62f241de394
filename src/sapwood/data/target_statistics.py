"""Categories as numbers: target statistics, ordered in training so that no row's own
label reaches its value.

In: codes of categories, labels, weights. Out: float64 columns for training, and tables
that give those of new rows.

Prokhorenkova et al. (2018), CatBoost; NUMERICS (Target statistics) has the arithmetic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapwood.device import host
from sapwood.errors import DataError, ParameterError, suggest

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Bins = NDArray[np.uint8]

KINDS = ("borders", "buckets", "mean", "counter")
_BITS = 30  # of a label's place between the lowest and the highest one


@dataclass(frozen=True)
class Statistic:
    """One way to turn a category into numbers: (countInClass + prior) / (totalCount +
    1), one for each prior.

    Parameters
    ----------
    kind : {'borders', 'buckets', 'mean', 'counter'}
        What is counted among the rows of the category: labels above each border; labels
        between each two borders; labels themselves, placed between the lowest (0) and
        the highest (1); or the rows, whatever their labels, against those of the most
        frequent category.
    priors : sequence of float
        From 0 to 1: what a category is taken for before it has rows.
    """

    kind: str = "borders"
    priors: tuple[float, ...] = (0.5,)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(
                f"statistic {self.kind!r} is unknown; {suggest(str(self.kind), KINDS)}"
            )
        object.__setattr__(self, "priors", tuple(map(float, self.priors)))
        if not self.priors or not all(0 <= prior <= 1 for prior in self.priors):
            raise ParameterError(
                f"priors={self.priors!r} of statistic {self.kind!r}; give numbers from 0 to 1."
            )


class Target:
    """Labels as integers, ready to be counted.

    label: (n_rows) float64; numbers or class indices.
    borders: (n_borders) float64; labels fall into buckets between them: 0.5, 1.5, ...
    for classes (`label_borders`).
    weight: (n_rows) float64 or None; as repetition (NUMERICS 2). Rows of weight 0 add
    nothing, and have the values of
      new rows.
    """

    def __init__(
        self, label: Floats, borders: Floats, weight: Floats | None = None
    ) -> None:
        self.label = label
        self.borders = borders
        self.n_rows = len(label)
        live = label if weight is None else label[weight > 0]
        if not len(live):
            raise DataError(
                "every weight is zero; target statistics need a row that counts."
            )
        if not np.isfinite(live).all():
            raise DataError(
                "some labels are NaN or infinite; target statistics need finite labels."
            )
        self.span = float(live.min()), float(live.max())
        # what rows count for, as integers in a unit (NUMERICS 2); None is 1
        self.count: Codes | None = None
        self._whole = True
        self.count_unit = 1.0
        if weight is not None:
            self.count, self._whole, shift = host.integer_weights(weight)
            self.count_unit = float(np.ldexp(1.0, -shift))
        self._masses: dict[str, tuple[Counts, float]] = {}

    def n_masses(self, kind: str) -> int:
        """How many numbers a statistic of this kind counts for each category."""
        return {
            "borders": len(self.borders),
            "buckets": len(self.borders) + 1,
            "mean": 1,
            "counter": 0,
        }[kind]

    def masses(self, kind: str) -> tuple[Counts, float]:
        """What every row adds to the numerator, (n_masses, n_rows), and the unit of
        that; kept until `free`.
        """
        if kind not in self._masses:
            self._masses[kind] = self._find_masses(kind)
        return self._masses[kind]

    def free(self) -> None:
        """Free the memory of masses."""
        self._masses = {}

    def _find_masses(self, kind: str) -> tuple[Counts, float]:
        repeat = (
            np.ones(1, np.int64) if self.count is None else self.count.astype(np.int64)
        )
        if kind == "mean":
            low, high = self.span
            place = (
                np.clip((self.label - low) / (high - low), 0.0, 1.0)
                if high > low
                else np.zeros(self.n_rows)
            )
            if self._whole:
                return (np.rint(place * 2.0**_BITS).astype(np.int64) * repeat)[
                    None
                ], 2.0**-_BITS
            return np.rint(place * repeat).astype(np.int64)[None], self.count_unit
        if kind == "counter":
            return np.empty((0, self.n_rows), np.int64), self.count_unit
        bucket = np.searchsorted(self.borders, self.label, side="left")
        number = np.arange(self.n_masses(kind))[:, None]
        return (
            bucket > number if kind == "borders" else bucket == number
        ) * repeat, self.count_unit


@dataclass(frozen=True)
class Table:
    """What new rows of one column are looked up in."""

    statistics: tuple[Statistic, ...]
    # of each statistic, (n_masses, n_codes + 1); the missing category comes last
    mass: tuple[Counts, ...]
    mass_unit: tuple[float, ...]
    count: Counts  # (n_codes + 1)
    count_unit: float

    @property
    def n_codes(self) -> int:
        """Categories, the missing one not counted."""
        return len(self.count) - 1

    def values(self) -> Floats:
        """(n_values, n_codes + 2) float64: of every category, the missing one, and one
        that was never met.
        """
        rows: list[Floats] = []
        total = np.append(self.count, 0) * self.count_unit
        for statistic, mass, unit in zip(
            self.statistics, self.mass, self.mass_unit, strict=True
        ):
            if statistic.kind == "counter":
                rows += [
                    (total + prior) / (total.max() + 1.0) for prior in statistic.priors
                ]
            for one in mass:
                rows += [
                    (np.append(one, 0) * unit + prior) / (total + 1.0)
                    for prior in statistic.priors
                ]
        return np.array(rows)

    def __call__(self, codes: Codes) -> Floats:
        """Encode new rows: (n_values, n_rows), from all rows of training.

        Codes are 0 .. n_codes - 1, `categories.MISSING` or `categories.UNSEEN`.
        """
        found: Floats = self.values()[:, self.places(codes)]
        return found

    def places(self, codes: Codes) -> Codes:
        """Where the values of codes are: those of missing values come after all codes,
        then those of unseen ones.
        """
        return np.where(codes >= 0, codes, self.n_codes - 1 - codes)

    def bins(self, codes: Codes, cuts: Sequence[Floats]) -> Bins:
        """The same as codes, (n_values, n_rows): of each value the number of its cuts
        below it.
        """
        found = [
            np.searchsorted(own, values)
            for own, values in zip(cuts, self.values(), strict=True)
        ]
        return np.array(found, np.uint8)[:, self.places(codes)]


def label_borders(
    label: Floats, n_borders: int, weight: Floats | None = None
) -> Floats:
    """Find at most n_borders borders that divide labels into buckets of about one size:
    the cuts of NUMERICS 3.
    """
    return host.cuts([[np.ascontiguousarray(label)]], weight, n_borders + 1, 1, 1)[0]


def permutation(
    seed: int,
    which: int,
    n_rows: int,
    weight: Floats | None = None,
    has_time: bool = False,
) -> Codes:
    """Order the rows of positive weight by a draw of each one's position; `which`
    numbers the permutation.

    has_time: rows came one after the other, and keep their order.
    """
    live = None if weight is None else (weight > 0).astype(np.int32)
    if has_time:
        return (np.arange(n_rows) if live is None else np.flatnonzero(live)).astype(
            np.int32
        )
    return host.hash_order(seed, which, live, n_rows)


def table(
    codes: Codes, n_codes: int, target: Target, statistics: Sequence[Statistic]
) -> Table:
    """Count the labels of every category of a column.

    Codes are 0 .. n_codes - 1 or `categories.MISSING`; `categories.UNSEEN` in rows of
    weight 0 only.
    """
    masses = [target.masses(one.kind) for one in (*statistics, Statistic("counter"))]
    *mass, counts = (
        host.sum_by_code(codes, n_codes, rows, target.count) for rows, _ in masses
    )
    units = tuple(unit for _, unit in masses[:-1])
    return Table(
        tuple(statistics),
        tuple(one[:-1] for one in mass),
        units,
        counts[-1],
        target.count_unit,
    )


def ordered(
    codes: Sequence[Codes],
    n_codes: Sequence[int],
    target: Target,
    statistics: Sequence[Statistic],
    order: Codes,
    n_threads: int,
) -> Iterator[Floats]:
    """Encode training rows, each from those before it in `order`: (n_values, n_rows),
    column by column.

    Codes are as in `table`. A counter does not look at labels, so it counts all rows.
    """
    kinds = {one.kind for one in statistics} - {"counter"}
    masses = {kind: target.masses(kind) for kind in kinds}
    found = {
        one: host.encode(
            codes,
            n_codes,
            masses[one.kind][0],
            target.count,
            order,
            masses[one.kind][1],
            target.count_unit,
            one.priors,
            n_threads,
        )
        for one in statistics
        if one.kind != "counter"
    }
    for column, (code, n) in enumerate(zip(codes, n_codes, strict=True)):
        blocks = [
            table(code, n, target, [one])(code)
            if one.kind == "counter"
            else found[one][column].reshape(-1, len(code))
            for one in statistics
        ]
        yield blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def ordered_bins(
    codes: Sequence[Codes],
    n_codes: Sequence[int],
    target: Target,
    statistic: Statistic,
    order: Codes,
    cuts: Sequence[Sequence[Floats]],
    n_threads: int,
) -> Iterator[Bins]:
    """The same for one statistic as codes, (n_values, n_rows): of each value the number
    of its column's cuts below it.

    There are at most 254 cuts of each value.
    """
    if statistic.kind == "counter":
        for code, n, own in zip(codes, n_codes, cuts, strict=True):
            yield table(code, n, target, [statistic]).bins(code, own)
        return
    mass, unit = target.masses(statistic.kind)
    every = [one for own in cuts for one in own]
    units = unit, target.count_unit
    found = host.encode(
        codes,
        n_codes,
        mass,
        target.count,
        order,
        *units,
        statistic.priors,
        n_threads,
        every,
    )
    yield from found.reshape(len(codes), -1, len(codes[0]))
