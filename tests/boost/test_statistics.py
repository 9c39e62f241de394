"""Categories by ordered statistics: the numbers they stand for, bit for bit; watched rows; the law; what is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reference_encode
import sapwood
from sapwood import Booster, Dataset
from sapwood.errors import ParameterError
from sapwood.model.trees import Trees

N = 400
OBJECTIVES = ("logistic", "softmax", "squared_error")
SMALL: dict[str, Any] = {
    "n_estimators": 5, "max_depth": 4, "min_child_weight": 0.0, "min_data_per_group": 5, "category_encoding": "ordered",
}  # fmt: skip


def rows(objective: str, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """A number, text of 40 values with missing ones, and text of 3 and of 12 values, by position."""
    rng = np.random.default_rng(seed)
    x, many, three, dozen = rng.normal(size=N), rng.integers(0, 40, N), rng.integers(0, 3, N), rng.integers(0, 12, N)
    z = x + np.sin(many) + (dozen % 3) - (three == 1) + 0.3 * rng.normal(size=N)
    y = {"logistic": z > 1, "softmax": np.digitize(z, [0, 2]), "squared_error": z}[objective].astype(np.float64)
    X = np.empty((N, 4), object)
    X[:, 0] = x
    for j, (letter, codes) in enumerate((("m", many), ("t", three), ("d", dozen)), 1):
        X[:, j] = [f"{letter}{code}" for code in codes]
    X[rng.random(N) < 0.1, 1] = None
    return X, y


def data_of(X: NDArray[Any], y: Any, weight: Any = None) -> Dataset:
    return Dataset(X, y, weight, categorical_features=[1, 2, 3], min_samples_bin=1)


def by_hand(
    X: NDArray[Any], y: NDArray[np.float64], objective: str, weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The table that trees grow on, from the reference, and the one that new rows have: here the same rows."""
    live = np.ones(N) if weight is None else weight
    borders = {"logistic": [0.5], "softmax": [0.5, 1.5], "squared_error": []}[objective]
    kind = "mean" if objective == "squared_error" else "borders"
    order = reference_encode.order(7, 0, weight, N)
    now, later = [X[:, 0].astype(np.float64)], [X[:, 0].astype(np.float64)]
    three = data_of(X, y, weight).binned.codes(2)
    for j in (1, 3):
        code = np.unique([str(x) for x in X[:, j]], return_inverse=True)[1].astype(np.int32)
        blocks = []
        for rows_first, mass in ((order, np.arange(N)), (order, np.arange(N))):
            del mass
            blocks.append([
                reference_encode.statistic(code, y, kind, prior, np.array(borders), weight, rows_first)
                for prior in (0.0, 0.5, 1.0)
            ])  # fmt: skip
        total = np.bincount(code, live)
        counter = total[code] / (total.max() + 1.0)
        now += [*np.concatenate(np.array(blocks[0]).swapaxes(0, 1)), counter]
        whole = [every_row(code, y, kind, prior, np.array(borders), weight) for prior in (0.0, 0.5, 1.0)]
        later += [*np.concatenate(np.array(whole).swapaxes(0, 1)), counter]
    del three
    return np.array(now).T, np.array(later).T


def every_row(
    code: NDArray[np.int32], y: Any, kind: str, prior: float, borders: Any, weight: Any
) -> NDArray[np.float64]:
    """The statistic of new rows: those of weight 0 that come after all the others have it."""
    twice = np.concatenate([np.ones(N) if weight is None else weight, np.zeros(N)])
    order = np.flatnonzero(twice)
    both = reference_encode.statistic(np.tile(code, 2), np.tile(y, 2), kind, prior, borders, twice, order)
    return both[:, N:]
