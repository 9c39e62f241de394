"""Rows with columns of text, for the specification of target statistics and
combinations.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
N = 160
BORDERS: dict[str, list[float]] = {
    "logistic": [0.5],
    "softmax": [0.5, 1.5],
    "squared_error": [],
}
SMALL: dict[str, Any] = {
    "n_estimators": 6,
    "max_depth": 3,
    "min_child_weight": 0.0,
    "learning_rate": 0.3,
    "min_samples_leaf": 1,
    "category_encoding": "ordered",
    "n_permutations": 2,
    "random_state": 7,
    "model_size_reg": 0.5,
}


def rows(objective: str) -> tuple[NDArray[Any], Floats]:
    """A number, some missing; text of 9 values, some missing; of 3 values, which stay
    as they are; of 7 values.
    """
    rng = np.random.default_rng(1)
    x, many, three, week = (
        rng.normal(size=N),
        rng.integers(0, 9, N),
        rng.integers(0, 3, N),
        rng.integers(0, 7, N),
    )
    z = (
        (x > 0) * (many % 2)
        + ((many + week) % 3)
        - (three == 1)
        + 0.3 * rng.normal(size=N)
    )
    X = np.array(
        [x, *([f"v{code}" for code in codes] for codes in (many, three, week))], object
    ).T
    X[rng.random(N) < 0.1, 1] = None
    X[rng.random(N) < 0.1, 0] = np.nan
    labels = {"logistic": z > 1, "softmax": np.digitize(z, [0, 2]), "squared_error": z}
    return X, labels[objective].astype(np.float64)
