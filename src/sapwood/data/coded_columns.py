"""Datasets with other columns, whose codes are known: nothing is binned, and no column
is kept beside its bins.

In: a dataset, and codes that come column by column. Out: a dataset of the same rows.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sapwood.data.crosses import NONE
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import BIN_PARAMS, ROW_VECTORS
from sapwood.device.threads import threads

Codes = NDArray[np.uint8] | NDArray[np.uint16]


def replaced(
    data: Dataset,
    gone: Collection[int],
    codes: Iterable[Codes],
    cuts: Sequence[NDArray[np.float64]],
    grows: bool,
) -> Dataset:
    """The bins of these rows with other columns; labels and all else stay behind.

    The columns of `gone` are left out; those of `codes` follow the others. Their cuts
    lie between the codes.
    ``grows``: trees will grow on the dataset; without that it takes half the memory.
    """
    of_codes = getattr(data.device.Binned, "of_codes", None)
    if (
        of_codes is None
        or data.reduce is not None
        or data.binned.has_lists
        or data.tree_method == "exact"
    ):
        return data.with_columns(gone, list(codes), cuts)
    kept = [j for j in range(data.n_columns) if j not in gone]
    known = {
        place: data.categories[j]
        for place, j in enumerate(kept)
        if j in data.categories
    }
    all_cuts = [*(data.cuts[j] for j in kept), *cuts]
    n_categories = [known[j].n_bins if j in known else 0 for j in range(len(all_cuts))]
    has_missing = data.binned.has_missing
    missing = [has_missing[j] for j in kept] + [False] * len(cuts)
    columns = chain((data.binned.codes(j) for j in kept), codes)
    n_threads = threads(None)
    other = Dataset.__new__(Dataset)
    vars(other).update(
        {
            name: getattr(data, name)
            for name in (*BIN_PARAMS, "n_rows", "n_total", "device")
        },
        binned=of_codes(
            columns, all_cuts, n_categories, missing, data.n_rows, grows, n_threads
        ),
        n_columns=len(all_cuts),
        feature_names=tuple(f"f{j}" for j in range(len(all_cuts))),
        named=False,
        linear_leaves=False,
        categories=known,
        cuts=all_cuts,
        n_bins=[
            n or len(own) + 1 for n, own in zip(n_categories, all_cuts, strict=True)
        ],
        unseen={
            place: data.unseen[j] for place, j in enumerate(kept) if j in data.unseen
        },
        crosses=NONE,
        reduce=None,
        positions=(),
        _n_threads=n_threads,
        **dict.fromkeys((*ROW_VECTORS, "values")),
    )
    return other
