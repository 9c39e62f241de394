"""Metrics: values worked out by hand, weights as repetition, names and callables."""

import math
from typing import Any

import numpy as np
import pytest

from sapwood import metric
from sapwood.errors import DataError, ParameterError

Y = np.array([0.0, 0.0, 1.0, 1.0])
P = np.array([0.1, 0.6, 0.5, 0.8])
CLASSES = np.array([0.0, 2.0, 1.0])
SHARES = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])


@pytest.mark.parametrize(
    ("name", "y", "prediction", "weight", "expected"),
    [
        ("rmse", [1, 2], [1, 4], None, math.sqrt(2)),
        ("rmse", [1, 2], [1, 4], [3, 1], 1.0),
        ("rmse", [5, 5], [5, 5], None, 0.0),
        ("rmse", [0, 0], [3e300, 4e300], None, math.sqrt(12.5) * 1e300),
        ("rmse", [0, 0], [3e-300, 4e-300], None, math.sqrt(12.5) * 1e-300),
        ("mae", [1, 2], [0, 4], None, 1.5),
        ("mae", [1, 2], [0, 4], [1, 0], 1.0),
        ("logloss", Y, P, None, -(math.log(0.9) + math.log(0.4) + math.log(0.5) + math.log(0.8)) / 4),
        ("logloss", [0, 1], [1, 0], None, -math.log(1e-15)),
        ("multi_logloss", CLASSES, SHARES, None, -(math.log(0.5) + math.log(0.25) + math.log(0.5)) / 3),
        ("accuracy", Y, P, None, 0.5),  # 0.5 is class 0, the first of two equals
        ("error", Y, P, [1, 1, 1, 5], 2 / 8),
        ("accuracy", CLASSES, SHARES, None, 2 / 3),
        ("error", CLASSES, SHARES, None, 1 / 3),
        ("auc", Y, P, None, 3 / 4),
        ("auc", Y, [0.1, 0.5, 0.5, 0.8], None, 3.5 / 4),
        ("auc", Y, P, [1, 2, 1, 1], (1 + 0 + 1 + 2) / 6),
        ("auc", Y, [0.0, 0.0, 0.0, 0.0], None, 0.5),
    ],
)
def test_by_hand(name: str, y: Any, prediction: Any, weight: Any, expected: float) -> None:
    args = np.array(y, float), np.array(prediction, float), None if weight is None else np.array(weight, float)
    assert metric.METRICS[name](*args) == pytest.approx(expected, rel=1e-14)  # a few roundings of the last bit


@pytest.mark.parametrize("one", metric.METRICS.values(), ids=lambda one: one.name)
def test_the_order_of_rows_and_how_often_they_are_written_do_not_matter(one: metric.Metric) -> None:
    rng = np.random.default_rng(3)
    if one.links == ("softmax",):
        y, prediction = rng.integers(0, 3, 500).astype(float), rng.dirichlet([1, 1, 1], 500)
    else:
        y, prediction = rng.integers(0, 2, 500).astype(float), rng.random(500).round(2)
    order = rng.permutation(500)
    real = rng.random(500) + 0.1
    assert one(y, prediction, None) == one(y[order], prediction[order], None)
    assert one(y, prediction, real) == one(y[order], prediction[order], real[order])
    whole = rng.integers(0, 4, 500)
    repeated = np.repeat(np.arange(500), whole)
    assert one(y, prediction, whole.astype(float)) == one(y[repeated], prediction[repeated], None)


@pytest.mark.parametrize("one", metric.METRICS.values(), ids=lambda one: one.name)
def test_the_direction_is_the_one_of_better_predictions(one: metric.Metric) -> None:
    if "sigmoid" in one.links:
        y, good, bad = Y, np.array([0.1, 0.2, 0.9, 0.8]), np.array([0.8, 0.9, 0.2, 0.1])
    elif "softmax" in one.links:
        y, good, bad = CLASSES, np.eye(3)[[0, 2, 1]], np.eye(3)[[1, 1, 0]]
    else:
        y, good, bad = Y, Y, Y + 1
    assert (one(y, good, None) > one(y, bad, None)) == one.higher_is_better


def test_what_cannot_be_measured() -> None:
    with pytest.raises(DataError, match="both classes"):
        metric.auc(np.ones(3), np.full(3, 0.5), None)
    with pytest.raises(DataError, match="positive weight"):
        metric.mae(Y, P, np.zeros(4))


def resolve(given: Any, link: str = "sigmoid") -> tuple[metric.Metric, ...]:
    return metric.resolve(given, default="logloss", link=link)


def test_by_name() -> None:
    assert [one.name for one in resolve(None)] == ["logloss"]
    assert [one.name for one in resolve([])] == ["logloss"]
    assert [one.name for one in resolve(["AUC", "binary_error"])] == ["auc", "error"]
    assert [one.name for one in resolve(["l1", "RMSE"], "identity")] == ["mae", "rmse"]
    assert [one.name for one in resolve(["mlogloss", "merror"], "softmax")] == ["multi_logloss", "error"]


def test_by_value() -> None:
    def profit(y: Any, prediction: Any, weight: Any) -> float:
        return np.float32(prediction[0] - y[0])

    by_itself, with_name = resolve([profit, ("gain", profit, True)])
    assert (by_itself.name, by_itself.higher_is_better) == ("profit", False)
    assert (with_name.name, with_name.higher_is_better) == ("gain", True)
    assert type(with_name(Y, P, None)) is float and with_name(Y, P, None) == np.float32(0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("aucc", "'aucc' is unknown; did you mean 'auc'"),
        ("rmse", "'rmse' does not suit the objective; choose one of accuracy, auc, error, logloss."),
        (["auc", "AUC"], "two metrics of one name"),
        (("gain", metric.auc), "is no metric"),
        ([3], "is no metric"),
    ],
)
def test_errors(given: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        resolve(given)


def test_a_callable_returns_a_number() -> None:
    (one,) = resolve(lambda y, prediction, weight: "good")
    with pytest.raises(ParameterError, match="returned a str, not a number"):
        one(Y, P, None)
