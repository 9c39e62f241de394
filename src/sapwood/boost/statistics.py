"""Columns of categories as ordered target statistics: trees grow on numbers, and are read as splits by sets.

In: data with categories, the labels and weights of a training. Out: bins to grow on; trees over the data's own columns.

In prediction a statistic is the same for all rows of a category, so that a split `statistic <= threshold` is a set of
categories. The model needs nothing else: it predicts and explains like any other. NUMERICS: Categories by statistics.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import encode
from sapwood.data.dataset import Dataset
from sapwood.data.encode import Floats, Statistic, Target
from sapwood.device import cpu
from sapwood.errors import ParameterError
from sapwood.objective import Objective
from sapwood.params import by_hand

MAX_BINS = 255  # of a statistic
PRIORS = (0.0, 0.5, 1.0)
REFUSED: Mapping[str, Any] = {
    "linear_leaves": False,
    "interaction_constraints": None,
    "first_use_penalties": None,
}


def chosen(params: Mapping[str, Any], data: Dataset) -> list[int]:
    """The columns that statistics are made of: those of more categories than are split one by one.

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
    if params["category_encoding"] not in ("ordered", "both"):
        return []
    return [j for j, known in data.categories.items() if known.n_bins > params["max_cat_to_onehot"]]


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
    if params["boosting"] != "ordered" and params["category_encoding"] not in ("ordered", "both"):
        if "has_time" in by_hand(params):
            raise ParameterError(
                "has_time is for boosting='ordered' and category_encoding='ordered' or 'both'; leave it out."
            )
        return
    if not chosen(params, data):
        return
    encoding = f"category_encoding={params['category_encoding']!r}"
    for name, usual in REFUSED.items():
        if params[name] != usual:
            raise ParameterError(
                f"{name} is not for {encoding}; leave it out, or choose category_encoding='partition'."
            )
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
    """Training rows whose columns of categories stand as numbers.

    Parameters
    ----------
    data : Dataset
        Training rows.
    params : mapping
        Resolved parameters.
    objective : Objective
        What labels are.
    label : (n_rows) float64
    weight : (n_rows) float64 or None
        Rows of weight 0 have the statistics of new rows: no label of theirs counts.

    Attributes
    ----------
    data : Dataset
        What trees grow on.
    origin : list of int
        The column of the given data behind each of its columns.
    """

    def __init__(
        self, data: Dataset, params: Mapping[str, Any], objective: Objective, label: Floats, weight: Floats | None
    ) -> None:
        columns, n_threads = chosen(params, data), cpu.threads(params["n_jobs"])
        target, kinds = _target(objective, label, weight)
        order = encode.permutation(params["random_state"], 0, data.n_rows, weight, params["has_time"])
        sizes = [data.n_bins[j] for j in columns]
        codes = [_codes(data, j) for j in columns]
        values = [one for block in encode.ordered(codes, sizes, target, kinds, order, n_threads) for one in block]
        cuts = cpu.cuts([values], weight, MAX_BINS, 1, n_threads)
        tables = [encode.table(*of, target, kinds).values() for of in zip(codes, sizes, strict=True)]
        gone = columns if params["category_encoding"] == "ordered" else []
        kept = [j for j in range(data.n_columns) if j not in gone]
        self.data = data.exchanged(gone, values, cuts)
        self.origin = kept + [j for j, table in zip(columns, tables, strict=True) for _ in table]
        self._values = [None] * len(kept) + [one for table in tables for one in table]  # of every category, or None
        self._sets: dict[tuple[int, float], tuple[NDArray[np.int32], bool]] = {}

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
        column, threshold, bins, missing = (tree[n].copy() for n in ("column", "threshold", "bin", "missing_left"))  # type: ignore[literal-required]
        number, own = tree["set"].copy(), np.split(tree["set_code"], tree["set_offset"][1:-1])
        own = own[: len(tree["set_offset"]) - 1]  # no set at all: split gives one empty part
        place: dict[tuple[int, float], int] = {}
        for node in np.flatnonzero(tree["left"]).tolist():
            key = int(column[node]), float(threshold[node])
            column[node] = self.origin[key[0]]
            if self._values[key[0]] is None:
                continue
            codes, missing[node] = self._set(key)
            number[node] = place.setdefault(key, len(own))
            own += [codes] if number[node] == len(own) else []
            threshold[node], bins[node] = 0.0, -1
        offset = np.cumsum([0, *map(len, own)], dtype=np.int64)
        sets = {"set": number, "set_offset": offset, "set_code": np.concatenate([np.empty(0, np.int32), *own])}
        return {**tree, "column": column, "threshold": threshold, "bin": bins, "missing_left": missing, **sets}  # type: ignore[typeddict-item]

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


def _target(objective: Objective, label: Floats, weight: Floats | None) -> tuple[Target, list[Statistic]]:
    """The labels, and what is said of them: of every class; of numbers, their mean. And how frequent a category is."""
    counter = Statistic("counter", (0.0,))
    if objective.labels in ("0 or 1", "a class index"):
        borders = np.arange(0.5, max(1.0, float(label.max())), dtype=np.float64)
        return Target(label, borders, weight), [Statistic("borders", PRIORS), counter]
    return Target(label, np.empty(0), weight), [Statistic("mean", PRIORS), counter]
