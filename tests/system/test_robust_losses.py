"""Huber and absolute loss resist gross outliers among the training labels;
`benchmarks/outliers.py` measures.
"""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def outliers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("outliers")


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("factor", [10.0, 100.0])
@pytest.mark.parametrize("name", ["california_housing", "bike_sharing", "protein"])
def test_outliers_spoil_squared_error_only(
    outliers: ModuleType, name: str, factor: float
) -> None:
    """Mean absolute and root mean squared error: 10 % lower than squared error's, 5 %
    above clean labels' at most.
    """
    squared = outliers.mean_errors(name, "squared_error", factor)
    for loss in ("huber", "adaptive_huber", "absolute_error"):
        clean = outliers.mean_errors(name, loss, 1.0)
        spoilt = outliers.mean_errors(name, loss, factor)
        assert (spoilt < 0.9 * squared).all(), (loss, spoilt / squared)
        assert (spoilt < 1.05 * clean).all(), (loss, spoilt / clean)
