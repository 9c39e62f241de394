"""The same rows, otherwise: with other columns, crosses or weights, without values, or
some of the rows.

In: a `Dataset`. Out: another one over the same rows and bins, which shares what it can;
or codes of some rows.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, dataset_file, ingest
from sapwood.data import crosses as crossing
from sapwood.data.categories import Coded, Dictionary
from sapwood.data.crosses import Crosses
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.device import Binned

if TYPE_CHECKING:
    from sapwood.data.dataset import Dataset


def with_columns(
    data: "Dataset",
    gone: Collection[int],
    columns: Sequence[NDArray[Any] | Coded],
    cuts: Sequence[NDArray[np.float64]],
) -> "Dataset":
    """The bins of these rows with other columns; labels and all else stay behind.

    The columns of `gone` are left out; `columns`, numbers or categories known by their
    codes, follow the others.
    """
    listed = data._listed()
    apart = {
        int(name[6:]): code
        for name, code in data._codes(listed)
        if name.startswith("codes.")
    }
    lists = tuple(listed.values()) or dataset_file.NO_LISTS
    table = dataset_file.columns(
        data.cuts, apart, lists, data.n_rows, data.categories
    ).as_columns()
    kept = [j for j in range(data.n_columns) if j not in gone]
    known = {
        place: data.categories[j]
        for place, j in enumerate(kept)
        if j in data.categories
    }
    coded = {
        place: one
        for place, one in enumerate(columns, len(kept))
        if isinstance(one, Coded)
    }
    known |= {
        place: Dictionary(tuple(range(len(one.values)))) for place, one in coded.items()
    }
    other = _empty()
    n = len(kept) + len(columns)
    other._fill(
        [ingest.Columns([*(table[j] for j in kept), *columns], None, data.n_rows, n)],
        ([*(data.cuts[j] for j in kept), *cuts], known),
        tuple(f"f{j}" for j in range(n)),
        False,
        {name: getattr(data, name) for name in BIN_PARAMS}
        | {"linear_leaves": False, "device": data.device.name},
        None,
        {},
        {place: data.unseen[j] for place, j in enumerate(kept) if j in data.unseen},
    )
    return other


def with_crosses(
    data: "Dataset",
    crosses: Crosses | Sequence[tuple[str, int | str, int | str]],
    *,
    linear_leaves: bool = True,
) -> "Dataset":
    """The same rows with columns made of others, which the model will make itself of
    tables to predict.

    Parameters
    ----------
    crosses : list of (kind, left, right), or Crosses of other data
        Columns by name or position. ``difference``: left - right, ``product``,
        ``ratio``; ``centred``: a number
        less its mean in the category that the row has in the right column.
    linear_leaves : bool
        Whether trees will have linear leaves. The data must have been made with
        linear_leaves=True in any case.

    Returns
    -------
    Dataset
    """
    made, columns, new = crossing.make(crosses, data, data._n_threads)
    bins = {name: getattr(data, name) for name in BIN_PARAMS} | {
        "device": data.device.name
    }
    limits = data.max_bins, data.min_samples_bin
    cuts = (
        data.device.cuts([list(new)], data.weight, *limits, data._n_threads)
        if len(new)
        else []
    )
    values = (
        np.concatenate([data.values, new.T], axis=1)
        if linear_leaves and data.values is not None
        else None
    )
    other = _empty()
    other._fill(
        [columns],
        ([*data.cuts, *cuts], data.categories),
        (*data.feature_names, *made.names(data.feature_names)),
        data.named,
        bins | {"linear_leaves": linear_leaves},
        data._n_threads,
        data._vectors() | {"values": values},
        data.unseen,
        crosses=made,
    )
    other.times = data.times
    other.derived_as = data.derived_as
    return other


def take_codes(data: "Dataset", rows: NDArray[np.int64]) -> Binned:
    """The codes of some rows, in any order and as often as they are given; cuts lie
    between the codes.
    """
    columns = _taken(data, rows)
    n_categories = [
        data.n_bins[j] if j in data.categories else 0 for j in range(data.n_columns)
    ]
    between = [np.arange(0.5, len(own), dtype=np.float64) for own in data.cuts]
    return data.device.Binned([columns], between, data._n_threads, False, n_categories)


def unseen_rows(data: "Dataset") -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    """The rows that have a category which training has not met, and their codes by
    column, such ones UNSEEN.
    """
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *data.unseen.values()]))
    columns = _taken(data, rows)
    for j, new in data.unseen.items():
        columns[j][np.searchsorted(rows, new)] = categories.UNSEEN
    return rows, columns


def _taken(data: "Dataset", rows: NDArray[np.int64]) -> list[NDArray[Any]]:
    """The codes of some rows, column by column: negative where a category is missing,
    NaN where a number is.
    """
    columns: list[NDArray[Any]] = []
    for j, n in enumerate(data.n_bins):
        code: NDArray[Any] = data.binned.codes(j)[rows]
        if j in data.categories:
            code = np.where(code == n, -1, code.astype(np.int32))
        elif (code == n).any():
            code = np.where(code == n, np.nan, code).astype(np.float32)
        columns.append(code)
    return columns


def with_weight(data: "Dataset", weight: NDArray[np.float64]) -> "Dataset":
    """The same rows in the same bins under other weights; everything else is shared."""
    other = _with(data, weight=ingest.weight(weight, data.n_rows, reduce=data.reduce))
    other._vectors()["weight"].flags.writeable = False
    return other


def without_values(data: "Dataset") -> "Dataset":
    """The same rows in the same bins, for trees with constant leaves; everything else
    is shared.
    """
    return _with(data, values=None, linear_leaves=False)


def _with(data: "Dataset", **changed: Any) -> "Dataset":
    """The same dataset with other attributes; nothing is copied."""
    other = _empty()
    vars(other).update(vars(data), _fingerprint=None, kept=None, **changed)
    return other


def _empty() -> "Dataset":
    from sapwood.data.dataset import Dataset  # which is built on this module

    return Dataset.__new__(Dataset)
