"""Small real data for tests: a table with its labels comes out. Origins and licences: data_files/ATTRIBUTION.md."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FILES = Path(__file__).parent / "data_files"


class Extract(NamedTuple):
    """2,000 rows of a public data set (5,000 of motor_claims, where claims are rare)."""

    X: NDArray[np.float64]  # values are exact in float32
    y: NDArray[np.float64]
    names: tuple[str, ...]


def _read(name: str) -> Extract:
    with np.load(FILES / f"{name}.npz") as file:
        arrays: dict[str, NDArray[Any]] = dict(file)
    return Extract(arrays["X"].astype(np.float64), arrays["y"].astype(np.float64), tuple(map(str, arrays["names"])))


def california_housing() -> Extract:
    """Regression, 8 columns, a few missing values; y is a house price in dollars."""
    return _read("california_housing")


def wine_quality() -> Extract:
    """Regression on few distinct labels, 12 columns, many ties."""
    return _read("wine_quality")


def adult() -> Extract:
    """Two classes (0, 1), 6 columns with spikes of zeros."""
    return _read("adult")


def letter() -> Extract:
    """Twenty-six classes (0 .. 25), 16 columns of small integers."""
    return _read("letter")


def bike_sharing() -> Extract:
    """Regression on counts of at least 1, 12 columns with few distinct values; y is the bicycles hired in an hour."""
    return _read("bike_sharing")


def protein() -> Extract:
    """Regression, 9 columns of continuous values; y is a deviation in angstrom, 0 in a few rows."""
    return _read("protein")


def magic() -> Extract:
    """Two classes (0, 1), 10 columns of continuous values."""
    return _read("magic")


def motor_claims() -> Extract:
    """Claims of a motor policy (0 .. 3), 6 columns; the first is its exposure in years, no cause but a duration."""
    return _read("motor_claims")
