"""The fingerprint of a dataset: a digest of what training sees.

In: a dataset, all of it or one holder's rows. Out: SHA-256 as hexadecimal digits.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sapwood.data import categories, dealt, digests
from sapwood.data import crosses as crossing

if TYPE_CHECKING:
    from sapwood.data.dataset import Dataset

LARGE = 1 << 22  # cells from which threads share the work of a digest


def of_dataset(data: "Dataset") -> str:
    """The digest of what training sees: codes, values, cuts, categories and vectors, in any chunks."""
    listed, vectors = data._listed(), data._vectors()
    rows: list[digests.Part] = [partial(data._column, j) for j in data._alone(listed)]
    if data.values is not None:
        rows += [partial(digests.one_zero, data.values[:, j]) for j in range(data.n_columns)]
    rows += [partial(np.asarray, values) for values in vectors.values()]
    order = None
    if data.reduce is not None:
        order = dealt.Order.of(data.reduce, data.positions, data.binned.chunk_sizes)
        listed = order.lists(listed) if listed else listed
    sizes = np.array([len(cuts) for cuts in data.cuts], np.int64)
    rest = {"cuts": np.concatenate(data.cuts), "sizes": sizes, **listed, **categories.pack(data.categories)}
    rest |= (crosses := crossing.encode(data.crosses))
    others = [partial(np.asarray, values) for values in rest.values()]
    if order is None:
        n_threads = data._n_threads if data.n_rows * data.n_columns >= LARGE else 1
        work = [data.n_rows] * len(rows) + [values.nbytes for values in rest.values()]
        found = digests.digests([*rows, *others], work, n_threads)
    else:
        found = [*order.digests(rows), *digests.digests(others, [1] * len(others), 1)]
    known = dict(zip([*vectors, *rest], found[len(rows) - len(vectors) :], strict=True))
    names = [*(name for name in rest if name not in crosses), *vectors, *crosses]
    of_parts = [*found[: len(rows) - len(vectors)], *(known[name] for name in names)]
    return digests.digest([data.feature_names, *names], of_parts)
