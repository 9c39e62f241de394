"""Predictions and explanations of Dask collections, partition by partition.

In: a model, and rows that lie on a cluster. Out: arrays of Dask; nothing is computed
yet.
"""

import uuid
from collections.abc import Mapping
from typing import Any

import dask
import dask.array
import numpy as np

from sapwood.dask import parts


def predict(model: Any, X: Any, **options: Any) -> Any:
    """Predict the rows of a Dask collection, partition by partition, where they lie.

    Parameters
    ----------
    model : Booster, or fitted estimator
        What `predict` is called of.
    X : dask DataFrame, dask Array, or list of delayed tables or futures
        The rows.
    **options
        As in `Booster.predict`: ``raw``, ``rounds``.

    Returns
    -------
    dask Array
        One block for each partition; a list of delayed arrays where X is a list.
    """
    return mapped(model, "predict", X, options)


def explain(model: Any, X: Any, **options: Any) -> Any:
    """Compute the Shapley values of the rows of a Dask collection, partition by
    partition, where they lie.

    Parameters
    ----------
    model : Booster, or fitted estimator
        What to explain.
    X : dask DataFrame, dask Array, or list of delayed tables or futures
        The rows.
    **options
        As in `Booster.explain`.

    Returns
    -------
    dask Array
        One block for each partition; a list of delayed arrays where X is a list.
    """
    return mapped(getattr(model, "booster_", model), "explain", X, options)


def mapped(model: Any, method: str, X: Any, options: Mapping[str, Any]) -> Any:
    """A method of a model for every block of rows."""
    tables = parts.blocks(X, "X")
    shared = dask.delayed(model, pure=True)  # sent to a worker once
    call = dask.delayed(_call)
    name = f"sapwood-{method}-{uuid.uuid4().hex[:8]}"
    done = [
        call(shared, method, one, dict(options), dask_key_name=f"{name}-{index}")
        for index, one in enumerate(tables)
    ]
    if isinstance(X, list | tuple):
        return done
    like = np.asarray(_call(model, method, _meta(X), dict(options)))
    sizes = X.chunks[0] if isinstance(X, dask.array.Array) else [np.nan] * len(done)
    arrays = [
        dask.array.from_delayed(
            one, (size, *like.shape[1:]), dtype=like.dtype, meta=like[:0]
        )
        for one, size in zip(done, sizes, strict=True)
    ]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


def _call(model: Any, method: str, table: Any, options: Mapping[str, Any]) -> Any:
    n_rows = table.shape[0] if hasattr(table, "shape") else len(table)
    if n_rows == 0:  # a model wants rows; the shape of its answer is that of one row
        return np.asarray(_call(model, method, _one_row(table), options))[:0]
    found = getattr(model, method)(table, **options)
    return np.asarray(getattr(found, "values", found))


def _one_row(table: Any) -> Any:
    """A row of missing values in the columns of a table without rows."""
    return (
        table.reindex([0])
        if hasattr(table, "reindex")
        else np.full((1, table.shape[1]), np.nan)
    )


def _meta(X: Any) -> Any:
    """A table without rows that has the columns of a collection."""
    return np.empty((0, X.shape[1])) if isinstance(X, dask.array.Array) else X._meta
