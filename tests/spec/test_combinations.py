"""Statistics of categories and of their combinations: the reference bit for bit."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Booster, Dataset
from spec import reference
from spec.cases import POLICIES, WEIGHTS
from spec.encoded_rows import BORDERS, SMALL, N, rows
from spec.helpers import assert_bits, weight_of
from spec.reference import combinations as combinations_spec
from spec.reference import encoded_training, target_statistics
from spec.reference.combinations import Sources

Floats = NDArray[np.float64]
# Every policy with every objective; weights and the length of combinations in turn.
CASES = [
    (*one, WEIGHTS[i % 3], (2, 1, 4, 3)[i % 4])
    for i, one in enumerate(product(POLICIES, BORDERS))
]


class Spec:
    """What trees grow on, round by round, by the reference."""

    def __init__(
        self,
        X: Any,
        data: Dataset,
        y: Floats,
        objective: str,
        weight: Any,
        most: int,
        reg: float,
    ) -> None:
        self.y = y
        self.borders = BORDERS[objective]
        self.weight = weight
        self.most = most
        self.w = reference.weights(weight, N)
        self.seen = 0
        self.x = X[:, 0].astype(np.float64)
        columns = [
            self.x,
            *(data.binned.codes(j).astype(np.float64) for j in (1, 2, 3)),
        ]
        live = np.ones(N, bool) if weight is None else weight > 0
        self.combining = combinations_spec.Combining(
            columns, [0, *data.n_bins[1:]], live, most, reg
        )
        self.orders = [
            target_statistics.order(7, which, weight, N) for which in range(3)
        ]
        self.three = np.where(columns[2] == data.n_bins[2], np.nan, columns[2])
        self.n_three, self.sizes = data.n_bins[2], [data.n_bins[1], data.n_bins[3]]
        self.origin: list[Sources] = []
        self.asked: list[list[Sources]] = []  # by tree, what its columns are

    def __call__(self, round: int, trees: list[reference.Tree]) -> encoded_training.Now:
        self.asked += [self.origin] * (len(trees) - len(self.asked))
        combining = self.combining
        for tree, origin in zip(trees, self.asked, strict=True):
            combining.used |= {
                origin[c] for c in tree["column"] if c >= 0 and len(origin[c]) > 1
            }
        if self.most > 1 and round and round & (round - 1) == 0:
            combining.renew(trees[self.seen :], self.origin)
            self.seen = len(trees)
        stand_for: list[Sources] = [((1, 0.0),), ((3, 0.0),), *combining.present]
        tables = []
        for which in range(len(self.orders)):
            blocks = [self.statistics(one, which) for one in stand_for]
            n = len(blocks[0])
            tables.append(
                np.array(
                    [self.x, self.three, *(one for block in blocks for one in block)]
                ).T
            )
        self.origin = [
            ((0, 0.0),),
            ((2, 0.0),),
            *(one for one in stand_for for _ in range(n)),
        ]
        cut = [reference.cuts(self.x, self.w, 255, 1), np.empty(0)]
        if self.borders:
            cut += [np.arange(1, 16) / 16] * (tables[0].shape[1] - 2)
        else:
            cut += [reference.cuts(x, self.w, 255, 1) for x in tables[0].T[2:]]
        weights = combining.weights(self.sizes, n, 2 + 2 * n)
        kinds = [0, self.n_three] + [0] * (tables[0].shape[1] - 2)
        return tables, cut, {"n_categories": kinds, "feature_weights": weights}

    @cache  # noqa: B019  (it is slow, and asked for every round)
    def statistics(self, sources: Sources, which: int) -> list[Floats]:
        """What stands for sources in one of the orders."""
        codes = self.combining.codes(sources)
        order = self.orders[which]
        return encoded_training.statistics(
            codes, self.y, self.borders, self.weight, order
        )

    def later(self, sources: Sources, which: int) -> Floats:
        """The `which`-th statistic of every tuple, and of what was never met, from all
        rows: of rows of weight 0.
        """
        codes = self.combining.codes(sources)
        n = len(self.combining.known(sources)) + 1
        given = np.append(
            np.ones(N) if self.weight is None else self.weight, np.zeros(n)
        )
        label = np.append(self.y, np.full(n, self.y[given[:N] > 0].mean()))
        code = np.append(codes, np.arange(n, dtype=np.int32))
        return encoded_training.statistics(
            code, label, self.borders, given, np.flatnonzero(given)
        )[which][N:]


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(("policy", "objective", "weights", "most"), CASES)
def test_reference(policy: str, objective: str, weights: str, most: int) -> None:
    """Trees over numbers by the reference, whose splits by a statistic are read as sets
    of tuples, are the model's.
    """
    (X, y), weight = rows(objective), weight_of(np.random.default_rng(5), weights, N)
    data = Dataset(X, y, weight, categorical_features=[1, 2, 3], min_samples_bin=1)
    params = SMALL | {
        "objective": objective,
        "grow_policy": policy,
        "max_combination": most,
    }
    if most == 1:
        del params["model_size_reg"]
    booster = sapwood.train(params, data)
    spec = Spec(X, data, y, objective, weight, most, 0.5)
    told = {
        name: value for name, value in params.items() if name in reference.DEFAULTS
    } | {"seed": 7}
    expected, base = encoded_training.train(spec, y, told, weight)
    spec(0, expected)  # what the last trees have asked

    assert_bits(np.asarray(booster.base), base, "start")
    for name in ("left", "value", "gain", "cover", "count"):
        assert_bits(
            getattr(booster.trees, name),
            np.concatenate([tree[name] for tree in expected]),
            name,
        )
    longest = max(
        check_splits(booster, spec, at, tree) for at, tree in enumerate(expected)
    )
    assert min(most, 2) <= longest <= most


def check_splits(booster: Booster, spec: Spec, at: int, tree: reference.Tree) -> int:
    """The sets of one tree, tuple by tuple; how many columns a split of it joins at
    most.
    """
    own = booster.trees.slice(at, at + 1)
    found = list(booster.combinations.sources())
    longest = 0
    keys = list(booster.combinations.keys())
    origin = spec.asked[at]
    sizes = [3, *(n + 1 for n in spec.combining.n_categories[1:])]
    for node in np.flatnonzero(tree["left"]).tolist():
        sources = origin[tree["column"][node]]
        longest = max(longest, len(sources))
        column = int(own.column[node])
        assert sources == (
            tuple(found[column - 4]) if column >= 4 else ((column, 0.0),)
        )
        if tree["column"][node] < 2:
            continue
        assert (column < 4) == (len(sources) == 1)
        known = spec.combining.known(sources)
        which = (tree["column"][node] - 2) - origin[2:].index(sources)
        left = spec.later(sources, which) <= tree["threshold"][node]
        if column >= 4:
            radix = [
                int(np.prod([sizes[c] for c, _ in sources[i + 1 :]]))
                for i in range(len(sources))
            ]
            numbers = [
                sum(state * step for state, step in zip(one, radix, strict=True))
                for one in known
            ]
            assert keys[column - 4].tolist() == numbers
            assert own.codes(node).tolist() == np.flatnonzero(left[:-1]).tolist()
            assert own.missing_left[node] == left[-1]  # what no row that counts has
        else:
            side = dict(zip((code for (code,) in known), left[:-1], strict=True))
            # the state of missing values; what no row that counts has: the prior
            n = booster.categories[column].n_bins
            assert own.codes(node).tolist() == [
                code for code in range(n) if side.get(code, left[-1])
            ]
            assert (
                own.missing_left[node] & 1 == side.get(n, left[-1])
                and own.new_left[node] == left[-1]
            )
    return longest
