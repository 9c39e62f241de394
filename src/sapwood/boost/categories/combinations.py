"""Combinations of categorical columns: pairs that occur on the paths of trees are
joined greedily.

In: trees as they have grown, and the columns behind their splits. Out: combinations to
add, and those to drop.

NUMERICS: Combinations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import MAX_BINS, MISSING, UNSEEN, Coded
from sapwood.data.dataset import Dataset
from sapwood.data.target_statistics import Codes
from sapwood.device import Tree, elementary
from sapwood.model.combinations import MAX_KEYS, Source, find, join, sizes_of
from sapwood.params.constraints import encodings, numbers

Sources = tuple[Source, ...]  # rising; one is a column as it is
Live = slice | NDArray[np.bool_]  # rows that count
Found = tuple[Sources, NDArray[np.int64]]  # a combination, and the keys of its codes

MANY = 2**31  # more than there are sources
MAX_LISTED = 2**20  # keys that are marked in a list of all
# combinations that trees may grow on at a time; with 16 the loss of ten fits was 0.7 %
# higher
PLACES = 8


def live_rows(weight: NDArray[np.float64] | None) -> Live:
    """The rows of positive weight."""
    return slice(None) if weight is None else weight > 0


@dataclass(frozen=True, eq=False)
class CombinedColumn:
    """A column of codes to make statistics of."""

    sources: Sources
    read: Callable[[], Codes]
    size: int
    # of a combination: the states behind each code
    keys: NDArray[np.int64] | None = None

    @property
    def codes(self) -> Codes:
        """(n_rows) or MISSING, or UNSEEN; of combinations MISSING where no row that
        counts has its states.
        """
        return self.read()


class CombinationPool:
    """Combinations that trees may grow on, and the gains that speak for them.

    data: Dataset; training rows.
    weight: (n_rows) float64 or None; rows of weight 0 make no code.
    params: mapping; resolved parameters.
    """

    def __init__(
        self,
        data: Dataset,
        weight: NDArray[np.float64] | None,
        params: Mapping[str, Any],
    ) -> None:
        self._data, self._live = data, live_rows(weight)
        self._most, self._tried = params["max_combination"], set[Sources]()
        words = encodings(params, data.feature_names)
        apart = {j for j in data.categories if words[j] not in ("ordered", "both")}
        bound = numbers(params["monotone_constraints"], data.feature_names, 0)
        self._never = apart | {j for j, direction in enumerate(bound) if direction}
        self._trees: list[tuple[Any, ...]] = []  # since the last refresh

    def add_tree(self, tree: Tree) -> None:
        """Keep what a tree says until the next `refresh`; after the last one nothing is
        asked of it.
        """
        self._trees.append(
            tuple(dict(tree)[name] for name in ("left", "gain", "column", "threshold"))
        )

    def refresh(
        self, present: Sequence[Sources], sources_of: Callable[[int, float], Sources]
    ) -> tuple[list[Sources], list[CombinedColumn]]:
        """Replace combinations by what the trees have done since the last call, given
        those that trees grow on now.

        ``sources_of``: those of a split, by its column and threshold. Returns those
        that stay, which were used (at most half of all places if new ones need the
        rest), and the new ones: columns that met on paths with the largest gains.
        """
        gain, credit = self._gains(sources_of)
        used = sorted(
            (one for one in present if gain.get(one, 0.0) > 0),
            key=lambda one: (-gain[one], one),
        )
        new: list[CombinedColumn] = []
        for sources in sorted(credit, key=lambda one: (-credit[one], one)):
            if len(new) + min(len(used), PLACES // 2) == PLACES:
                break
            if sources not in self._tried:
                self._tried.add(sources)
                new += joined(self._data, sources, self._live)
        self._trees = []
        return used[: PLACES - len(new)], new

    def _gains(
        self, sources_of: Callable[[int, float], Sources]
    ) -> tuple[dict[Sources, float], dict[Sources, float]]:
        """Gains of the trees: of what they split, and, for what may be joined, of
        splits below the other part.
        """
        meetings = _Meetings(sources_of)
        for tree in self._trees:
            meetings.add(*tree)
        every = list(meetings.number)
        gain = dict(
            zip(every, np.bincount(meetings.own, meetings.gain).tolist(), strict=True)
        )
        joins: dict[Sources, int] = {}  # what may be joined of two, numbered
        pairs, which = np.unique(np.array(meetings.pair, np.int64), return_inverse=True)
        place = np.full(len(pairs), -1)
        own, other = np.divmod(pairs, MANY)
        by_code = np.array(
            [
                any(column in self._data.categories for column, _ in one)
                for one in every
            ],
            np.bool_,
        )
        # two numbers are not joined
        some = np.flatnonzero(by_code[own] | by_code[other])
        for at, first, second in zip(
            some.tolist(), own[some].tolist(), other[some].tolist(), strict=True
        ):
            both = tuple(sorted({*every[first], *every[second]}))
            if both in joins or self._fits(both):
                place[at] = joins.setdefault(both, len(joins))
        which = place[which]
        sums = np.bincount(which[which >= 0], np.array(meetings.pair_gain)[which >= 0])
        return gain, dict(zip(joins, sums.tolist(), strict=True))

    def _fits(self, sources: Sources) -> bool:
        """Whether columns may be joined: not too many, no column twice, at least one
        categorical.

        Columns with a monotone constraint are excluded, and categorical columns that
        are not encoded.
        """
        columns = [column for column, _ in sources]
        return (
            2 <= len(sources) <= self._most
            and len(set(columns)) == len(columns)
            and any(column in self._data.categories for column in columns)
            and not self._never.intersection(columns)
            and prod(sizes_of(sources, self._data.categories)) <= MAX_KEYS
        )


def joined(data: Dataset, sources: Sources, live: Live) -> list[CombinedColumn]:
    """Give a code to every combination of states that live rows have; no column if
    there are too many codes.
    """
    key = _keys(data, sources)
    size = prod(sizes_of(sources, data.categories))
    if size > MAX_LISTED or key.min() < 0:
        known = np.unique(key[live])
        codes = find(key, known) if len(known) <= MAX_BINS else None
    else:  # the same without a search
        seen = np.zeros(size, np.bool_)
        seen[key[live]] = True
        known = np.flatnonzero(seen)
        codes = np.where(seen, np.cumsum(seen) - 1, -1).astype(np.int32)[key]
    if len(known) > MAX_BINS:
        return []
    assert codes is not None
    return [CombinedColumn(sources, lambda: codes, len(known), known)]


def single(data: Dataset, column: int) -> CombinedColumn:
    """A categorical column, for statistics of its own; its codes are read whenever they
    are needed.
    """
    size = data.n_bins[column]

    def read() -> Codes:
        code = data.binned.codes(column).astype(np.int32)
        code[code == size] = MISSING
        code[data.unseen.get(column, [])] = UNSEEN  # of weight 0
        return code

    return CombinedColumn(((column, 0.0),), read, size)


def extended(data: Dataset, combinations: Sequence[Found]) -> Dataset:
    """A dataset in the bins of training, with combinations of its columns appended."""
    found = [
        Coded(find(_keys(data, sources), keys), range(len(keys)))
        for sources, keys in combinations
    ]
    return data.with_columns([], found, [np.empty(0)] * len(found))


def size_weight(size: int, largest: int, reg: float) -> float:
    """Factor on the gain of a combination that no tree has used: (1 + size / largest) ^
    -reg, as in CatBoost.

    ``size``: codes of the combination. ``largest``: codes of the largest encoded
    column. ``reg``: `model_size_reg`.
    """
    return float(elementary.exp(-reg * elementary.log(1.0 + size / largest)))


class _Meetings:
    """Every split of trees: alone, and with each of the different sources above it.

    Gains are added in the order of trees and nodes.
    """

    def __init__(self, sources_of: Callable[[int, float], Sources]) -> None:
        self._sources_of = sources_of
        # by column and threshold; -1 for no sources
        self._known: dict[tuple[int, float], int] = {}
        self.number: dict[Sources, int] = {}  # in the order in which they are met
        # of every split that has sources
        self.own, self.gain = list[int](), list[float]()
        self.pair, self.pair_gain = list[int](), list[float]()  # MANY * own + other

    def add(self, left: Any, gain: Any, column: Any, threshold: Any) -> None:
        """Add the splits of a tree."""
        above: dict[int, tuple[int, ...]] = {0: ()}  # by node
        for node in np.flatnonzero(left).tolist():
            own = self._of(int(column[node]), float(threshold[node]))
            first = int(left[node])
            before = above[node]
            after = before if own < 0 or own in before else (*before, own)
            above[first] = above[first + 1] = after
            if own >= 0:
                value = float(gain[node])
                self.own.append(own)
                self.gain.append(value)
                self.pair += [MANY * own + other for other in before]
                self.pair_gain += [value] * len(before)

    def _of(self, column: int, threshold: float) -> int:
        """The number of a split's sources, or -1."""
        key = column, threshold
        if key not in self._known:
            sources = self._sources_of(column, threshold)
            self._known[key] = (
                self.number.setdefault(sources, len(self.number)) if sources else -1
            )
        return self._known[key]


def _keys(data: Dataset, sources: Sources) -> NDArray[np.int64]:
    """The key of every row."""
    return join(
        [_states(data, *source) for source in sources],
        sizes_of(sources, data.categories),
    )


def _states(data: Dataset, column: int, threshold: float) -> NDArray[np.int64]:
    """The state of every row in a source, from its bins; negative for an unseen
    category.
    """
    code = data.binned.codes(column).astype(np.int64)
    if column in data.categories:
        code[data.unseen.get(column, [])] = UNSEEN
        return code  # missing comes last
    above = code > np.searchsorted(data.cuts[column], threshold)
    return np.where(code == data.n_bins[column], 2, above)
