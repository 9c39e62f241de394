"""Small real data for tests: a table with its labels comes out.

Origins and licences: data_files/ATTRIBUTION.md and examples/README.md.
"""

import csv
import gzip
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FILES = Path(__file__).parent / "data_files"
EXAMPLES = Path(__file__).parents[1] / "examples"
# The columns of examples/bike_sharing.csv.gz as the tests know them: the name in the
# source, and the codes of words.
DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
BIKE_COLUMNS: dict[str, tuple[str, dict[str, int]]] = {
    "season": ("season", {"winter": 1, "spring": 2, "summer": 3, "autumn": 4}),
    "year": ("yr", {"2011": 0, "2012": 1}),
    "month": ("mnth", {}),
    "hour": ("hr", {}),
    "holiday": ("holiday", {"no": 0, "yes": 1}),
    "weekday": ("weekday", {day: code for code, day in enumerate(DAYS)}),
    "working_day": ("workingday", {"no": 0, "yes": 1}),
    "weather": (
        "weathersit",
        {"clear": 1, "misty": 2, "light rain or snow": 3, "heavy rain or snow": 4},
    ),
    "temperature": ("temp", {}),
    "felt_temperature": ("atemp", {}),
    "humidity": ("hum", {}),
    "wind_speed": ("windspeed", {}),
}


class Extract(NamedTuple):
    """2,000 rows of a public data set (5,000 of motor_claims, where claims are
    rare).
    """

    X: NDArray[np.float64]  # values are exact in float32
    y: NDArray[np.float64]
    names: tuple[str, ...]


def _read(name: str) -> Extract:
    with np.load(FILES / f"{name}.npz") as file:
        arrays: dict[str, NDArray[Any]] = dict(file)
    return Extract(
        arrays["X"].astype(np.float64),
        arrays["y"].astype(np.float64),
        tuple(map(str, arrays["names"])),
    )


def example(name: str) -> dict[str, list[str]]:
    """A table of examples/, column by column, as text."""
    with gzip.open(EXAMPLES / f"{name}.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    columns = [list(column) for column in zip(*rows, strict=True)]
    return dict(zip(header, columns, strict=True))


@cache
def _bikes() -> Extract:
    table = example("bike_sharing")
    n_rows = len(table["rentals"])
    rows = np.sort(np.random.default_rng(2026).choice(n_rows, 2000, replace=False))
    X = np.empty((len(rows), len(BIKE_COLUMNS)))
    for place, (column, (_, codes)) in enumerate(BIKE_COLUMNS.items()):
        values = [codes.get(value, value) for value in table[column]]
        X[:, place] = np.array(values, dtype=np.float32)[rows]
    y = np.array(table["rentals"], dtype=np.float64)[rows]
    return Extract(X, y, tuple(name for name, _ in BIKE_COLUMNS.values()))


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
    """Regression on counts of at least 1, 12 columns with few distinct values; y is the
    bicycles hired in an hour.
    """
    X, y, names = _bikes()
    return Extract(X.copy(), y.copy(), names)


def protein() -> Extract:
    """Regression, 9 columns of continuous values; y is a deviation in angstrom, 0 in a
    few rows.
    """
    return _read("protein")


def magic() -> Extract:
    """Two classes (0, 1), 10 columns of continuous values."""
    return _read("magic")


def motor_claims() -> Extract:
    """Claims of a motor policy (0 .. 3), 6 columns; the first is its exposure in years,
    no cause but a duration.
    """
    return _read("motor_claims")
