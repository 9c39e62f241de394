"""Columns of categories as ordered target statistics: trees grow on numbers, and are read as splits by sets.

In: data with categories, the labels and weights of a training. Out: bins to grow on; trees over the data's own columns.

In prediction a statistic is the same for all rows of a category, so that a split `statistic <= threshold` is a set of
categories. The model needs nothing else: it predicts and explains like any other. NUMERICS: Categories by statistics.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import objective
from sapwood.boost import leaf
from sapwood.boost.encoding import of_columns
from sapwood.boost.watch import apply
from sapwood.data import encode
from sapwood.data.dataset import Dataset
from sapwood.data.encode import Floats, Statistic, Target
from sapwood.device import cpu
from sapwood.errors import ParameterError
from sapwood.objective import Objective
from sapwood.params import by_hand

# Statistics of classes are cut at sixteenths, as CatBoost does; finer cuts part rows by their places in an order, which
# was worse on four of five sets. Means of numbers lie close together where few labels are extreme: they have quantiles.
SIXTEENTHS = np.arange(1, 16) / 16
MAX_BINS = 255  # of means
PRIORS = (0.0, 0.5, 1.0)
REFUSED: Mapping[str, Any] = {  # and the values that they must have
    "linear_leaves": False, "interaction_constraints": None, "first_use_penalties": None, "n_parallel_trees": 1,
    "line_search": "none", "pruning": "pre", "ccp_alpha": 0.0, "prune_by_validation": False,
}  # fmt: skip


def chosen(params: Mapping[str, Any], data: Dataset) -> list[int]:
    """The columns that statistics are made of.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    data : Dataset
        Training rows.

    Returns
    -------
    list of int
    """
    return [j for j, how in of_columns(params, data).items() if how in ("ordered", "both")]


def check(params: Mapping[str, Any], data: Dataset, label: Floats, continued: bool) -> None:
    """Raise where statistics cannot be had with what else was asked for.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    data : Dataset
        Training rows.
    label : (n_rows) or (n_rows, n_outputs) float64
    continued : bool
        There is a model to go on from.
    """
    if params["boosting"] != "ordered" and params["category_encoding"] in ("partition", "onehot"):
        for name in sorted(by_hand(params) & {"has_time", "n_permutations"}):
            raise ParameterError(
                f"{name} is for boosting='ordered' and category_encoding='ordered', 'both' or 'auto'; leave it out."
            )
        return
    if params["has_time"] and params["n_permutations"] > 1:
        raise ParameterError(f"has_time leaves one order; n_permutations={params['n_permutations']} asks for more.")
    if not chosen(params, data):
        return
    encoding = f"category_encoding={params['category_encoding']!r}"
    for name, usual in REFUSED.items():
        if params[name] != usual:
            raise ParameterError(
                f"{name} is not for {encoding}; leave it out, or choose category_encoding='partition'."
            )
    if params["boosting"] not in ("plain", "ordered"):
        raise ParameterError(f"{encoding} is for boosting='plain' and 'ordered', not {params['boosting']!r}.")
    if continued:
        raise ParameterError(
            f"{encoding} cannot go on from init_model: it knows more of its training rows than the trees do; choose "
            "category_encoding='partition'."
        )
    if label.ndim > 1:
        raise ParameterError(
            f"{encoding} needs one label a row, and there are {label.shape[1]}; choose category_encoding='partition'."
        )


class Statistics:
    """Training rows whose columns of categories stand as numbers, in several orders.

    The splits of a tree are chosen in one of `n_permutations` orders, its values in one more: what a row's statistic
    owes to its place in an order is of no use to a tree then. As in CatBoost every order has scores of its own.

    Parameters
    ----------
    data : Dataset
        Training rows.
    params : mapping
        Resolved parameters.
    rule : Rule
        The objective.
    label : (n_rows) float64
    weight : (n_rows) float64 or None
        Rows of weight 0 have the statistics of new rows: no label of theirs counts.
    scores : (n_outputs, n_rows) float64
        At the start.

    Attributes
    ----------
    growers : list of Trainer
        One for each order; trees grow on them.
    names : list of str
        Of the column behind each of the columns that trees grow on.
    cuts : list of (n_cuts) float64
        Of these columns.
    """

    def __init__(
        self,
        data: Dataset,
        params: Mapping[str, Any],
        rule: leaf.Rule,
        label: Floats,
        weight: Floats | None,
        scores: Floats,
    ) -> None:
        columns, self._n_threads = chosen(params, data), cpu.threads(params["n_jobs"])
        n_threads, goal, (target, kinds) = self._n_threads, rule.objective, _target(rule.objective, label, weight)
        codes, sizes = [_codes(data, j) for j in columns], [data.n_bins[j] for j in columns]
        tables = [encode.table(*of, target, kinds).values() for of in zip(codes, sizes, strict=True)]
        gone = [j for j, how in of_columns(params, data).items() if how == "ordered"]
        kept = [j for j in range(data.n_columns) if j not in gone]
        self._origin = kept + [j for j, table in zip(columns, tables, strict=True) for _ in table]
        self._values = [None] * len(kept) + [one for table in tables for one in table]  # of every category, or None
        self._sets: dict[tuple[int, float], tuple[NDArray[np.int32], bool]] = {}
        self.names = [data.feature_names[j] for j in self._origin]
        self._data: list[Dataset] = []
        cuts: list[Floats] | None = None
        planes = objective.planes(goal, label, rule.n_outputs)
        for which in range(params["n_permutations"] + 1):
            order = encode.permutation(params["random_state"], which, data.n_rows, weight, params["has_time"])
            blocks = encode.ordered(codes, sizes, target, kinds, order, n_threads)
            values = [one for block in blocks for one in block]
            if cuts is None:
                by_rows = cpu.cuts([values], weight, MAX_BINS, 1, n_threads) if kinds[0].kind == "mean" else None
                cuts = by_rows or [SIXTEENTHS] * len(values)
            self._data.append(data.exchanged(gone, values, cuts))
        self.cuts = self._data[0].cuts
        self.growers = [
            cpu.Trainer(one.binned, planes, weight, goal.core, goal.fields, rule.n_outputs, n_threads)
            for one in self._data[:-1]
        ]
        for grower in self.growers:
            grower.set_scores(scores)

    def settle(self, trees: Sequence[cpu.Tree], grower: cpu.Trainer, trainer: cpu.Trainer) -> list[cpu.Tree]:
        """Put rows into the leaves of trees just grown, one for each output, in every order.

        Parameters
        ----------
        trees : sequence of Tree
            As they have grown.
        grower : Trainer
            The one of `growers` that they have grown on: its rows are in their leaves.
        trainer : Trainer
            Of the model: its rows are where the last order has them.

        Returns
        -------
        list of Tree
            Over the columns of the given data.
        """
        others = [pair for pair in zip((*self.growers, trainer), self._data, strict=True) if pair[0] is not grower]
        for output, tree in enumerate(trees):
            is_leaf = tree["left"] == 0
            number, n_leaves = np.cumsum(is_leaf, dtype=np.int32) - 1, int(is_leaf.sum())
            for one, data in others:
                one.assign(output, number[apply(data, tree, self._n_threads)], n_leaves)
        return [self.read(tree) for tree in trees]

    def follow(self, rule: leaf.Rule, rate: float) -> None:
        """Take the trees into the scores of every order, with the values that its own rows give the leaves.

        Parameters
        ----------
        rule : Rule
            How values are found.
        rate : float
            The learning rate.
        """
        for grower in self.growers:
            grower.sample(0, 0, None)  # all rows
            values = [leaf.refit(grower, output, rule) for output in range(rule.n_outputs)]  # at the scores before
            for output, value in enumerate(values):
                grower.set_leaves(output, None, rate * value)
                grower.add_scores(output)

    def read(self, tree: cpu.Tree) -> cpu.Tree:
        """A tree over the columns of the given data.

        Parameters
        ----------
        tree : Tree
            As it has grown.

        Returns
        -------
        Tree
            In which splits by statistics are splits by sets.
        """
        old: dict[str, Any] = dict(tree)
        names = ("column", "threshold", "bin", "missing_left", "set")
        column, threshold, bins, missing, number = (old[name].copy() for name in names)
        sets = [tree["set_code"][first:last] for first, last in pairwise(tree["set_offset"].tolist())]
        place: dict[tuple[int, float], int] = {}
        for node in np.flatnonzero(tree["left"]).tolist():
            key = int(column[node]), float(threshold[node])
            column[node] = self._origin[key[0]]
            if self._values[key[0]] is None:
                continue
            codes, missing[node] = self._set(key)
            number[node] = place.setdefault(key, len(sets))
            sets += [codes] if number[node] == len(sets) else []
            threshold[node], bins[node] = 0.0, -1
        new: Any = old | dict(zip(names, (column, threshold, bins, missing, number), strict=True))
        new["set_offset"] = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        new["set_code"] = np.concatenate([np.empty(0, np.int32), *sets])
        return new  # type: ignore[no-any-return]

    def _set(self, key: tuple[int, float]) -> tuple[NDArray[np.int32], bool]:
        """The codes whose statistic is at most a threshold, and whether that of missing values is."""
        if key not in self._sets:
            values = self._values[key[0]]
            assert values is not None
            left = values <= key[1]
            self._sets[key] = np.flatnonzero(left[:-2]).astype(np.int32), bool(left[-2])
        return self._sets[key]


def _codes(data: Dataset, column: int) -> encode.Codes:
    """The codes of a column of categories; missing ones are negative."""
    code = data.binned.codes(column).astype(np.int32)
    return np.where(code == data.n_bins[column], np.int32(encode.MISSING), code)


def _target(goal: Objective, label: Floats, weight: Floats | None) -> tuple[Target, list[Statistic]]:
    """The labels, and what is said of them: of every class; of numbers, their mean. And how frequent a category is."""
    counter = Statistic("counter", (0.0,))
    if goal.labels in ("0 or 1", "a class index"):
        borders = np.arange(0.5, max(1.0, float(label.max())), dtype=np.float64)
        return Target(label, borders, weight), [Statistic("borders", PRIORS), counter]
    return Target(label, np.empty(0), weight), [Statistic("mean", PRIORS), counter]
