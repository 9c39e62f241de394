"""Tables for the tasks of the law: numbers, columns of few values, categories as codes,
categories as text.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import category_tables, helpers

Floats = NDArray[np.float64]
Rows = tuple[NDArray[Any], Floats, Floats | None]  # a table, labels, weights


def weight_of(rng: np.random.Generator, kind: str, n: int) -> Floats | None:
    """No weights, integers from 0 to 3, or numbers from 0 to 1."""
    return {
        "none": None,
        "whole": rng.integers(0, 4, n).astype(float),
        "real": rng.random(n),
    }[kind]


def classes(y: Floats, objective: str, parts: int = 3) -> Floats:
    """Numbers for regression; else two classes, or `parts`, of nearly equal size."""
    if objective not in ("logistic", "softmax"):
        return y
    n = 2 if objective == "logistic" else parts
    return np.digitize(y, np.quantile(y, np.arange(1, n) / n)).astype(np.float64)


def numbers(objective: str, n: int, weights: str = "none", width: int = 5) -> Rows:
    """Normal values, ties, missing values, many zeros; every value is exact in
    float32.
    """
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, width)).astype(np.float32).astype(np.float64)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = np.where(rng.random(n) < 0.2, np.nan, X[:, 2])
    X[:, 3] = np.where(rng.random(n) < 0.7, 0.0, X[:, 3])
    y = X[:, 0] + X[:, 1] * np.nan_to_num(X[:, 2]) + X[:, 3] + rng.normal(size=n)
    if objective in ("logistic", "softmax"):
        y = np.searchsorted(
            [0.0] if objective == "logistic" else [-1.0, 1.0], y
        ).astype(np.float64)
    return X, y, weight_of(rng, weights, n)


def far(objective: str, n: int, weights: str = "none") -> Rows:
    """The same with labels far from 0, which are centred before they are learned."""
    X, y, weight = numbers(objective, n, weights)
    return X, y + 1e12, weight


def mixed(objective: str, n: int, weights: str = "none") -> Rows:
    """The six columns of the specification's tests."""
    rng = np.random.default_rng(5)
    X = helpers.table(rng, n)
    return X, helpers.labels(rng, X, objective), helpers.weight_of(rng, weights, n)


LEVELS = [2, 2, 3, 4, 8, 16, 1, 2, 5, 7, 40]


def few_values(
    rng: np.random.Generator, n: int, missing: float = 0.1, many: int = 700
) -> Floats:
    """Columns of few values, some with missing ones, between one of `many` values and
    one of up to 255 bins.
    """
    few = [rng.integers(0, levels, n).astype(np.float64) for levels in LEVELS]
    X = np.stack(
        [rng.integers(0, many, n).astype(np.float64), *few, rng.normal(size=n)], axis=1
    )
    for j in (2, 4, 6):
        X[rng.random(n) < missing, j] = np.nan
    return X


def of_few_values(rng: np.random.Generator, X: Floats, objective: str) -> Floats:
    """A label that many columns of few values speak of; from 4 classes on, root
    histograms are counted together.
    """
    Z = np.nan_to_num(X, nan=1.5)
    y = (
        Z[:, 1] * Z[:, 3]
        + np.isin(Z[:, 6], (3, 7, 11))
        + 0.01 * Z[:, 0]
        + Z[:, 9] * Z[:, 2]
        + rng.normal(size=len(X))
    )
    return classes(y, objective, 5)


def fused(objective: str, n: int, weights: str = "none") -> Rows:
    """Columns of few values, which share slots."""
    rng = np.random.default_rng(n)
    X = few_values(rng, n).astype(np.float32).astype(np.float64)
    w = weight_of(rng, weights, n)
    return X, of_few_values(rng, X, objective), w


def codes(
    objective: str,
    n: int,
    weights: str = "none",
    counts: list[int] = category_tables.COUNTS,
) -> Rows:
    """Four columns of categories between numbers."""
    rng = np.random.default_rng(45)
    X = category_tables.table(rng, n, counts=counts)
    return (
        X,
        category_tables.labels(rng, X, objective),
        helpers.weight_of(rng, weights, n),
    )


def rising(objective: str, n: int) -> Rows:
    """The six columns, of which two can be categories."""
    X, y, _ = mixed(objective, n)
    X[:, 5] = np.random.default_rng(6).integers(0, 40, n)
    return X, y, None


def text(objective: str, n: int, weights: str = "none") -> Rows:
    """A number; text of 40 values, some missing; of 3 values; two columns of 8 that
    matter together only.
    """
    rng = np.random.default_rng(0)
    x, many, three, a, b = (
        rng.normal(size=n),
        *(rng.integers(0, k, n) for k in (40, 3, 8, 8)),
    )
    z = (
        x
        + np.sin(many)
        - (three == 1)
        + 2.0 * ((5 * a + 3 * b) % 7 < 3)
        + 0.3 * rng.normal(size=n)
    )
    X = np.array(
        [x, *([f"v{code}" for code in column] for column in (many, three, a, b))],
        object,
    ).T
    X[rng.random(n) < 0.1, 1] = None
    return X, classes(z, objective), weight_of(rng, weights, n)
