"""Tables with columns of categories, for the specification of their splits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import helpers

Floats = NDArray[np.float64]

COUNTS = [0, 3, 12, 40, 0, 300]  # categories by column; 0: numbers
BYTES = [0, 3, 12, 40, 0, 255]  # leaves are then numbered by masks
LIGHT = {
    "cat_smooth": 2.0,
    "cat_l2": 1.5,
    "min_data_per_group": 5,
    "max_depth": 4,
    "max_leaves": 11,
}
BESIDE = {
    "depthwise": ("squared_error", "none"),
    "leafwise": ("logistic", "real"),
    "symmetric": ("logistic", "whole"),
}


def table(
    rng: np.random.Generator, n: int, missing: float = 0.1, counts: list[int] = COUNTS
) -> Floats:
    """Numbers and codes, the larger the rarer, some missing."""
    X = np.column_stack(
        [
            rng.normal(size=n) if k == 0 else np.floor(k * rng.random(n) ** 2)
            for k in counts
        ]
    )
    X[:, 1:][rng.random((n, len(counts) - 1)) < missing] = np.nan
    return X


def labels(rng: np.random.Generator, X: Floats, objective: str) -> Floats:
    """An effect of every category, and of missing ones."""
    effect = [np.append(rng.normal(size=max(count, 1)), 1.0) for count in COUNTS]
    code = np.where(np.isnan(X), -1, X).astype(np.int64)
    signal = (
        sum(effect[c][code[:, c]] for c, count in enumerate(COUNTS) if count > 0)
        + X[:, 0]
    )
    if objective == "squared_error":
        return signal
    n_classes = 2 if objective == "logistic" else 3
    return np.searchsorted(
        np.quantile(signal, np.arange(1, n_classes) / n_classes), signal
    ).astype(np.float64)


def assert_same(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> list[Any]:
    """Core and reference agree on trees with categories in the columns of COUNTS; the
    trees.
    """
    given = (
        LIGHT
        | {"n_categories": COUNTS, "learning_rate": 0.3, "n_estimators": 2}
        | params
    )
    return helpers.assert_same(X, y, given, weight)


def n_sets(trees: list[Any]) -> int:
    """How many sets the trees have."""
    return sum(len(tree["set_offset"]) - 1 for tree in trees)
