"""Huber and absolute loss resist gross outliers among the training labels; `benchmarks/outliers.py` measures."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
SEEDS = range(3)


@pytest.fixture
def outliers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("outliers")


def mean_errors(outliers: ModuleType, *args: Any, **params: Any) -> NDArray[np.float64]:
    """Mean absolute and root mean squared error on clean rows."""
    return np.mean([outliers.errors(*args, seed, **params) for seed in SEEDS], axis=0)


@pytest.mark.parametrize("name", ["california_housing", "bike_sharing", "protein"])
def test_outliers_spoil_squared_error_only(outliers: ModuleType, name: str) -> None:
    """With 20 rows in every leaf, whose median one outlier does not move."""
    squared = mean_errors(outliers, name, "squared_error", 10.0, min_samples_leaf=20)
    for loss in ("huber", "adaptive_huber", "absolute_error"):
        clean = mean_errors(outliers, name, loss, 1.0, min_samples_leaf=20)
        spoilt = mean_errors(outliers, name, loss, 10.0, min_samples_leaf=20)
        assert (spoilt < 0.85 * squared).all(), (loss, spoilt / squared)
        assert (spoilt < 1.05 * clean).all(), (loss, spoilt / clean)


@pytest.mark.parametrize("name", ["california_housing", "bike_sharing", "protein"])
def test_they_beat_squared_error_with_default_leaves_too(outliers: ModuleType, name: str) -> None:
    squared = mean_errors(outliers, name, "squared_error", 10.0)
    for loss in ("huber", "adaptive_huber", "absolute_error"):
        spoilt = mean_errors(outliers, name, loss, 10.0)
        assert (spoilt < 0.95 * squared).all(), (loss, spoilt / squared)
