"""Categorical columns as ordered target statistics: trees grow on numbers, and become
splits by sets.

In: data with categories, the labels and weights of a training. Out: bins to grow on;
trees over the data's own columns.

In prediction a statistic is the same for all rows of a category, so that a split
`statistic <= threshold` is a set of categories. The model needs nothing else: it
predicts and explains like any other. NUMERICS: Categories by statistics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import objective
from sapwood.boost.categories.category_encoding import encoded_columns
from sapwood.boost.categories.combinations import (
    CombinationPool,
    CombinedColumn,
    Found,
    Sources,
    single,
    size_weight,
)
from sapwood.boost.leaves import leaf, linear
from sapwood.boost.round import growth, sampling
from sapwood.boost.round.grown import SPLITS
from sapwood.data import coded_columns, target_statistics
from sapwood.data.dataset import Dataset
from sapwood.data.target_statistics import Floats, Statistic, Target
from sapwood.device import Trainer, Tree, host
from sapwood.device.threads import threads
from sapwood.objective import Objective
from sapwood.params.constraints import encodings
from sapwood.params.types import PRIORS

# Statistics of classes are cut at sixteenths, as CatBoost does; finer cuts part rows by
# their places in an order, which was worse on four of five sets. Means of numbers lie
# close together where few labels are extreme: they have quantiles.
SIXTEENTHS = np.arange(1, 16) / 16
MAX_BINS = 255  # of means
MANY_ROWS = 100_000
# values of statistics that are computed at a time, unless there are more threads than
# that
TOGETHER = 1 << 21


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column that trees grow on: one of the data, or (with values) a statistic of the
    codes of its sources.
    """

    sources: Sources
    # (n_codes + 2) of every code, of missing values and of what was never met
    values: Floats | None = None
    keys: NDArray[np.int64] | None = None  # of a combination
    # of values; trees grow on codes, and have thresholds between these
    cuts: Floats | None = None


@dataclass(frozen=True, eq=False)
class NewStatistic:
    """A statistic of one label in a column: one number or several."""

    column: CombinedColumn
    label: int
    kind: Statistic
    values: Floats  # (n_values, n_codes + 2) for new rows, as in `EncodedColumn`


class EncodedTraining:
    """Training rows whose categorical columns stand as numbers, under several
    permutations.

    Splits are chosen under one permutation and leaf values computed under another, so a
    tree cannot profit from noise in the statistics that comes from a row's place in its
    permutation. As in CatBoost every permutation has scores of its own.

    label: (n_rows) or (n_rows, n_labels) float64; each label has statistics of its own.
    classes: (n_rows) float64 or None; the class of every row, where labels are classes.
    weight: (n_rows) float64 or None; rows of weight 0 have the statistics of new rows:
    their labels are not counted.
    scores: (n_outputs, n_rows) float64; at the start.
    growers: list of Trainer; one for each permutation; trees grow on them.
    """

    def __init__(
        self,
        data: Dataset,
        params: Mapping[str, Any],
        plan: leaf.LeafPlan,
        label: Floats,
        classes: Floats | None,
        weight: Floats | None,
        scores: Floats,
    ) -> None:
        self._given = data
        self._params = params
        self._plan = plan
        self._weight = weight
        self._row_classes = classes
        self._n_threads = threads(params["n_jobs"])
        self._targets, self._classes = _targets(plan.objective, label, weight)
        self._planes = objective.planes(plan.objective, label, plan.n_outputs)
        self._orders = [
            target_statistics.permutation(
                params["random_state"], which, data.n_rows, weight, params["has_time"]
            )
            for which in range(params["n_permutations"] + 1)
        ]
        # of grown trees
        self._splits: dict[
            tuple[int, float], tuple[int, int, NDArray[np.int32] | None]
        ] = {}
        # combinations in trees, in the order of their first splits
        self._used: dict[Sources, NDArray[np.int64]] = {}
        self._pool = (
            CombinationPool(data, weight, params)
            if params["max_combination"] > 1
            else None
        )
        self._stale = False
        columns = encoded_columns(params, data)
        words = encodings(params, data.feature_names)
        gone = [j for j in columns if words[j] == "ordered"]
        self._grown = [EncodedColumn(((j, 0.0),)) for j in range(data.n_columns)]
        self._data = [data] * len(self._orders)
        self.growers: list[Trainer] = []
        self._rebuild(
            gone, [single(data, j) for j in columns], [scores] * len(self._orders[:-1])
        )
        self._n_single = len(self._grown)

    @property
    def tables(self) -> list[Dataset]:
        """The data of the growers."""
        return self._data[:-1]

    @property
    def combinations(self) -> list[Found]:
        """Combinations that trees have used, in the order of their first use, and their
        keys.
        """
        return list(self._used.items())

    @property
    def known(self) -> list[Found]:
        """The same, and those that trees may use next."""
        return list(
            (
                self._used
                | {one.sources: one.keys for one in self._grown if one.keys is not None}
            ).items()
        )

    def refresh(self, index: int) -> None:
        """Before round 1, 2, 4, ...: replace combinations that no tree has used."""
        if self._pool is None:
            return
        if index and index & (index - 1) == 0:
            present = list(
                dict.fromkeys(one.sources for one in self._grown[self._n_single :])
            )
            stay, new = self._pool.refresh(present, self._sources_of)
            gone = [
                j
                for j, one in enumerate(self._grown)
                if j >= self._n_single and one.sources not in stay
            ]
            if gone or new:
                self._rebuild(gone, new, [grower.scores() for grower in self.growers])
        if self._stale:
            self._configure()

    def assign_rows(
        self, trees: Sequence[Tree], grower: Trainer, trainer: Trainer
    ) -> list[Tree]:
        """Set the leaf of every row under every permutation, for trees just grown, one
        for each output.

        ``grower`` is the one that they have grown on. ``trainer``, that of the model,
        has its rows under the last permutation. Returns the trees over the columns of
        the given data, and combinations of them.
        """
        others = [
            pair
            for pair in zip((*self.growers, trainer), self._data, strict=True)
            if pair[0] is not grower
        ]
        for output, tree in enumerate(trees):
            splits: dict[str, Any] = {name: dict(tree)[name] for name in SPLITS}
            for one, data in others:
                one.assign_rows(output, data.binned, *splits.values())
            if self._pool is not None:
                self._pool.add_tree(tree)
        return [self.to_category_splits(tree) for tree in trees]

    def update_scores(
        self, plan: leaf.LeafPlan, rate: float, trees: Sequence[Tree]
    ) -> None:
        """Add the trees to the scores of every permutation, whose own rows give the
        leaf values, but not the slopes.
        """
        for grower in self.growers:
            grower.sample(0, 0, None)  # all rows
            # at the scores before
            values = [
                leaf.refit(grower, output, plan) for output in range(plan.n_outputs)
            ]
            for output, value in enumerate(values):
                grower.relabel_leaves(output, None, rate * value)
                if "linear" in trees[output]:
                    grower.set_linear(
                        output, *linear.with_values(trees[output], rate * value)
                    )
                grower.add_scores(output)

    def to_category_splits(self, tree: Tree) -> Tree:
        """A grown tree over the columns of the given data and combinations of them:
        statistics become sets.
        """
        old: dict[str, Any] = dict(tree)
        names = ("column", "threshold", "bin", "missing_left", "set")
        column, threshold, bins, missing, number = (old[name].copy() for name in names)
        sets = [
            tree["set_code"][first:last]
            for first, last in pairwise(tree["set_offset"].tolist())
        ]
        splits = np.flatnonzero(tree["left"])
        # of different splits: a level of a symmetric tree has one
        place: dict[tuple[int, float], int] = {}
        keys = zip(column[splits].tolist(), threshold[splits].tolist(), strict=True)
        which = [place.setdefault(key, len(place)) for key in keys]
        # column, side of missing values, and set or -1
        found: list[tuple[int, int, int]] = []
        for key in place:
            own, side, codes = self._category_split(key)
            found.append((own, side, -1 if codes is None else len(sets)))
            sets += [] if codes is None else [codes]
        of_column, sides, places = np.array(found, np.int32).reshape(-1, 3)[which].T
        column[splits] = of_column
        nodes = splits[places >= 0]
        missing[nodes], number[nodes] = sides[places >= 0], places[places >= 0]
        threshold[nodes], bins[nodes] = 0.0, -1
        new: Any = old | dict(
            zip(names, (column, threshold, bins, missing, number), strict=True)
        )
        new["set_offset"] = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        new["set_code"] = np.concatenate([np.empty(0, np.int32), *sets])
        return new  # type: ignore[no-any-return]

    def _category_split(
        self, key: tuple[int, float]
    ) -> tuple[int, int, NDArray[np.int32] | None]:
        """The model's column behind a split, and where it is one by a set: the side of
        missing values, and the codes.

        The codes are those whose statistic is at most the threshold.
        """
        if key not in self._splits:
            grown = self._grown[key[0]]
            codes = None
            side = 0
            if grown.values is not None and grown.cuts is not None:
                left = grown.values <= grown.cuts[int(key[1])]
                missing, new = map(int, left[-2:])
                codes = np.flatnonzero(left[:-2]).astype(np.int32)
                side = missing + 2 * (new != missing)
            self._splits[key] = self._column(grown), side, codes
        return self._splits[key]

    def _column(self, grown: EncodedColumn) -> int:
        """The model's column behind one that trees grow on."""
        if grown.keys is None:
            return grown.sources[0][0]
        if grown.sources not in self._used:
            self._used[grown.sources], self._stale = grown.keys, True
        return self._given.n_columns + list(self._used).index(grown.sources)

    def _sources_of(self, column: int, threshold: float) -> Sources:
        """The sources of a split; none where missing values are separated from
        numbers.
        """
        grown = self._grown[column]
        if grown.values is not None or grown.sources[0][0] in self._given.categories:
            return grown.sources
        return () if threshold == np.inf else ((grown.sources[0][0], threshold),)

    def _rebuild(
        self,
        gone: Sequence[int],
        new: Sequence[CombinedColumn],
        scores: Sequence[Floats],
    ) -> None:
        """Replace columns to grow on: all trainers are made again, with these
        scores.
        """
        goal = self._plan
        self._grown = [one for j, one in enumerate(self._grown) if j not in gone]
        added = [list(self._statistics(one)) for one in new]
        self._splits = {}
        cuts = self._cuts(added)
        between = [np.arange(0.5, len(own)) for own in cuts]
        # the last first: trees do not grow on it
        for which in reversed(range(len(self._orders))):
            codes = self._codes(added, cuts, self._orders[which])
            grows = which < len(self._orders) - 1
            self._data[which] = coded_columns.replaced(
                self._data[which], gone, codes, between, grows
            )
            if self._given.n_rows > MANY_ROWS:
                host.trim_heap()  # of hundreds of short-lived arrays
        for target in self._targets:
            target.free()
        values = (
            (one.column, own)
            for column in added
            for one in column
            for own in one.values
        )
        found = zip(values, cuts, strict=True)
        self._grown += [
            EncodedColumn(one.sources, own, one.keys, of) for (one, own), of in found
        ]
        self.growers = [
            one.device.Trainer(
                one.binned,
                self._planes,
                self._weight,
                goal.objective.core,
                goal.objective.fields,
                goal.n_outputs,
                self._n_threads,
            )
            for one in self._data[:-1]
        ]
        for grower, own in zip(self.growers, scores, strict=True):
            grower.set_scores(own)
            if self._given.values is not None:
                grower.set_table(self._given.values)
        self._configure()

    def _kinds(self, one: CombinedColumn, which: int) -> tuple[Statistic, ...]:
        """The statistics of one label in a column; the counter of rows belongs to the
        first label.
        """
        given = self._params["statistics"]
        if isinstance(given, dict):
            given = (
                given.get(self._given.feature_names[one.sources[0][0]])
                if len(one.sources) == 1
                else None
            )
        usual = [("borders" if self._classes else "mean", PRIORS), ("counter", (0.0,))]
        kinds = [Statistic(kind, tuple(priors)) for kind, priors in given or usual]
        return tuple(kind for kind in kinds if which == 0 or kind.kind != "counter")

    def _statistics(self, one: CombinedColumn) -> Iterator[NewStatistic]:
        """The statistics of a column, label after label, in the order of `Table`."""
        codes = one.codes
        for label, target in enumerate(self._targets):
            for kind in self._kinds(one, label):
                yield NewStatistic(
                    one,
                    label,
                    kind,
                    target_statistics.table(codes, one.size, target, [kind]).values(),
                )

    def _together(
        self, added: Sequence[list[NewStatistic]]
    ) -> Iterator[list[NewStatistic]]:
        """The statistics of some columns at a time."""
        each = max(
            self._n_threads, TOGETHER // (self._given.n_rows * (len(PRIORS) + 1))
        )
        for first in range(0, len(added), each):
            yield [one for column in added[first : first + each] for one in column]

    def _cuts(self, added: Sequence[list[NewStatistic]]) -> list[Floats]:
        """The cuts of all values of statistics: of numbers, those of the values under
        the first permutation.
        """
        if self._classes:
            return [
                SIXTEENTHS for column in added for one in column for _ in one.values
            ]

        def values(
            label: int, kind: Statistic, codes: Any, sizes: Any, _: Any
        ) -> Iterator[Floats]:
            given = self._targets[label], [kind], self._orders[0], self._n_threads
            return target_statistics.ordered(codes, sizes, *given)

        tables = ([*_by_kind(some, values)] for some in self._together(added))
        how = self._weight, MAX_BINS, 1, self._n_threads
        return [
            own for table in tables for own in self._given.device.cuts([table], *how)
        ]

    def _codes(
        self,
        added: Sequence[list[NewStatistic]],
        cuts: Sequence[Floats],
        order: target_statistics.Codes,
    ) -> Iterator[NDArray[np.uint8]]:
        """The codes of all values of statistics in training, each row from the rows
        before it.
        """
        every = iter(cuts)
        for some in self._together(added):
            own = [[next(every) for _ in one.values] for one in some]

            def bins(
                label: int,
                kind: Statistic,
                codes: Any,
                sizes: Any,
                places: Any,
                own: Any = own,
            ) -> Iterator[NDArray[np.uint8]]:
                given = (
                    self._targets[label],
                    kind,
                    order,
                    [own[place] for place in places],
                    self._n_threads,
                )
                return target_statistics.ordered_bins(codes, sizes, *given)

            yield from _by_kind(some, bins)

    def _configure(self) -> None:
        """Configure the splits of all trainers."""
        names = [
            self._given.feature_names[one.sources[0][0]]
            for one in self._grown
            if len(one.sources) == 1
        ]
        sizes = [
            0 if one.values is None else len(one.values) - 2 for one in self._grown
        ]
        weights = [
            1.0
            if one.sources in self._used
            else size_weight(size, max(sizes), self._params["model_size_reg"])
            for one, size in zip(self._grown, sizes, strict=True)
            if len(one.sources) > 1
        ]
        for grower in self.growers:
            categories = self._data[0].categories
            cuts = [
                own if one.cuts is None else one.cuts
                for one, own in zip(self._grown, self._data[0].cuts, strict=True)
            ]
            growth.configure_splits(
                grower, self._params, names, categories, cuts, weights=weights
            )
            sampling.prepare(grower, self._params, self._given, self._row_classes)
        self._stale = False


def _by_kind(
    some: Sequence[NewStatistic], encode: Callable[..., Iterator[Any]]
) -> Iterator[Any]:
    """The columns of all statistics in their order; those of one label and kind are
    encoded together.

    ``encode``: takes label, kind, the codes of columns, how many each has, and their
    places in `some`.
    """
    alike: dict[tuple[int, Statistic], list[int]] = {}
    for place, one in enumerate(some):
        alike.setdefault((one.label, one.kind), []).append(place)
    blocks: dict[int, Any] = {}
    for (label, kind), places in alike.items():
        columns = [some[place].column for place in places]
        found = encode(
            label,
            kind,
            [one.codes for one in columns],
            [one.size for one in columns],
            places,
        )
        blocks |= zip(places, found, strict=True)
    return (values for place in range(len(some)) for values in blocks[place])


def _targets(
    goal: Objective, label: Floats, weight: Floats | None
) -> tuple[list[Target], bool]:
    """The labels as targets, and whether they are classes; numbers have one border, as
    in CatBoost.
    """
    classes = goal.labels in ("0 or 1", "a class index")
    targets = []
    for one in np.ascontiguousarray(label.T).reshape(-1, len(label)):
        if classes:
            borders = np.arange(0.5, max(1.0, float(one.max())), dtype=np.float64)
        else:
            borders = target_statistics.label_borders(one, 1, weight)
            # all labels are equal: none is above
            borders = borders if len(borders) else one[:1]
        targets.append(Target(one, borders, weight))
    return targets, classes
