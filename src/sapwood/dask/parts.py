"""Dask collections as lists of parts, which stay where they lie.

In: a DataFrame, Series or Array of Dask, or a list of delayed tables or futures. Out: a
list of futures, one for each block of rows, in the order of the rows.
"""

from collections.abc import Sequence
from typing import Any

import dask
import dask.array
from dask.delayed import Delayed
from distributed import Client, Future

from sapwood.dask import rows
from sapwood.errors import DataError


def on_cluster(collection: Any) -> bool:
    """Whether something is a Dask collection, or a list of delayed objects or futures;
    else it is in memory.
    """
    listed = isinstance(collection, list | tuple) and len(collection) > 0
    return hasattr(collection, "dask") or (
        listed and isinstance(collection[0], Delayed | Future)
    )


def blocks(collection: Any, what: str, like: Any = None) -> list[Any]:
    """The blocks of rows of a collection: delayed objects or futures. ``like``: an
    array with the wanted blocks.
    """
    if isinstance(collection, dask.array.Array):
        if collection.ndim > 1 and collection.numblocks[1] > 1:
            collection = collection.rechunk({1: -1})
        if isinstance(like, dask.array.Array) and _differ(
            collection.chunks[0], like.chunks[0]
        ):
            collection = collection.rechunk({0: like.chunks[0]})
        return list(collection.to_delayed().ravel())
    if hasattr(collection, "to_delayed"):
        return list(collection.to_delayed())
    if isinstance(collection, list | tuple) and collection:
        odd = [one for one in collection if not isinstance(one, Delayed | Future)]
        if not odd:
            return list(collection)
        raise DataError(
            f"{what} is a list with a {type(odd[0]).__name__}; give delayed tables or futures."
        )
    raise DataError(
        f"{what} is a {type(collection).__name__}; give a DataFrame or Array of Dask, or a list of delayed tables. "
        "Data in memory is for sapwood.train."
    )


def _differ(own: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two arrays have other blocks of rows; unknown sizes (NaN) are compared
    when the rows are there.
    """
    known = all(size == size for size in (*own, *other))
    return known and tuple(own) != tuple(other)


def start(client: Client, name: str, X: Any, y: Any, weight: Any) -> list[Future]:
    """Compute the parts (table, label, weight) on the cluster, each where its table
    lies.
    """
    tables = blocks(X, "X")
    columns = [tables]
    for what, values in (("y", y), ("weight", weight)):
        found = [None] * len(tables) if values is None else blocks(values, what, X)
        if len(found) != len(tables):
            raise DataError(
                f"{what} has {len(found)} partitions and X {len(tables)}; give both the same ones."
            )
        columns.append(found)
    make = dask.delayed(rows.part, pure=False)
    made = [
        make(*one, dask_key_name=f"sapwood-part-{name}-{index}")
        for index, one in enumerate(zip(*columns, strict=True))
    ]
    futures: list[Future] = client.compute(made)
    return futures
