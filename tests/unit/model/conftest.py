"""Tiny models whose every answer is known."""

import numpy as np
import pytest

from sapwood.data.categories import Dictionary
from sapwood.model import Booster, Trees
from unit.model.handmade import (
    BY_AGE,
    BY_CITY,
    FIRST,
    LOG2,
    LOG4,
    LOG5,
    ROWS,
    SECOND,
    grown,
    leaf,
)


@pytest.fixture
def X() -> np.ndarray:
    return np.array([row[:2] for row in ROWS])


@pytest.fixture
def leaves() -> np.ndarray:
    return np.array([row[2:4] for row in ROWS])


@pytest.fixture
def answers() -> np.ndarray:
    return np.array([row[4] for row in ROWS])


@pytest.fixture
def regressor() -> Booster:
    return Booster(
        Trees.of([(FIRST, 0), (SECOND, 0)]),
        base=np.array([10.0]),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=["age", "income"],
        named=True,
        params={"learning_rate": 0.1, "max_leaves": 31, "seed": 7},
        best_round=1,
        data_fingerprint="ab" * 32,
        history={"train": {"rmse": [2.0, 1.0]}},
    )


@pytest.fixture
def classifier() -> Booster:
    """Three classes in two rounds; the scores of every row are log 1, log 2 and log 5
    after the second.
    """
    values = [(0.0, 0), (LOG4, 1), (LOG5, 2), (0.0, 0), (-LOG2, 1), (0.0, 2)]
    return Booster(
        Trees.of([(grown(leaf(value)), output) for value, output in values]),
        base=np.zeros(3),
        objective="softmax",
        fields={},
        link="softmax",
        feature_names=["f0", "f1"],
        named=False,
        params={},
        classes=np.array(["grün", "blau", "rot"]),
    )


@pytest.fixture
def chooser() -> Booster:
    """Splits by text, by integers as categories, and by a number."""
    return Booster(
        Trees.of([(BY_CITY, 0), (BY_AGE, 0)]),
        base=np.array([10.0]),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=["age", "city", "size"],
        named=True,
        params={},
        categories={
            1: Dictionary(("Rom", "Bern", "Oslo", "Zürich")),
            2: Dictionary((7, -1, 2**60)),
        },
    )
