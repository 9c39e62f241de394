"""The law over containers: one model, byte for byte, whatever holds the table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sapwood
from law.rows import numbers
from law.tasks import SHAPE
from sapwood import Dataset
from spec.cases import OBJECTIVES

Floats = NDArray[np.float64]
NAMES = ["height", "width", "depth", "colour", "taste"]


def strided(X: Floats) -> Floats:
    """The same values in every second row and third column, backwards."""
    room = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    view = room[::-2, ::-3]
    view[...] = X
    return view


def arrow(X: Floats) -> pa.Table:
    """An Arrow table of two chunks, missing values as nulls."""
    columns = {
        name: [pa.array(x[:50], from_pandas=True), pa.array(x[50:], from_pandas=True)]
        for name, x in zip(NAMES, X.T, strict=True)
    }
    return pa.table(
        {name: pa.chunked_array(chunks) for name, chunks in columns.items()}
    )


CONTAINERS: dict[str, Callable[[Floats], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": strided,
    "float32": lambda X: X.astype(np.float32),
    "float32, F": lambda X: np.asfortranarray(X.astype(np.float32)),
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas, float32": lambda X: pd.DataFrame(X.astype(np.float32), columns=NAMES),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars, nulls": lambda X: pl.DataFrame(X, schema=NAMES).with_columns(
        pl.all().fill_nan(None)
    ),
    "arrow": arrow,
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_containers(container: str, objective: str) -> None:
    params, (X, y, _) = SHAPE | {"objective": objective}, numbers(objective, 1000)
    expected = sapwood.train(params, Dataset(X, label=y, feature_names=NAMES))
    given = CONTAINERS[container](X)
    names = None if hasattr(given, "columns") else NAMES
    actual = sapwood.train(params, Dataset(given, label=y, feature_names=names))
    assert actual.to_bytes() == expected.to_bytes()
    assert actual.predict(given).tobytes() == expected.predict(X).tobytes()


def test_names_are_part_of_the_model() -> None:
    params, (X, y, _) = SHAPE, numbers("squared_error", 500)
    named = sapwood.train(params, Dataset(X, label=y, feature_names=NAMES))
    assert (
        named.fingerprint() != sapwood.train(params, Dataset(X, label=y)).fingerprint()
    )
