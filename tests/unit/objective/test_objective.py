"""Objectives by name, and the labels each of them takes."""

from typing import Any

import numpy as np
import pytest

from sapwood import objective
from sapwood.device import host
from sapwood.errors import DataError, ParameterError
from sapwood.metric import METRICS


def goal(name: str) -> objective.Objective:
    return objective.resolve({"objective": name})


@pytest.mark.parametrize("name", host.objectives())
def test_every_objective_of_the_core_can_be_measured(name: str) -> None:
    found = goal(name)
    assert found.name == name and found.link in METRICS[found.metric].links


def test_an_unknown_objective_names_the_nearest() -> None:
    with pytest.raises(
        ParameterError,
        match="objective='logistics' is unknown; did you mean 'logistic'",
    ):
        goal("logistics")


def test_fields_are_checked_against_their_own_objective() -> None:
    assert objective.field_aliases()["tweedie_variance_power"] == "tweedie_power"
    assert goal("tweedie").fields == {"tweedie_power": 1.5}
    assert objective.resolve({"objective": "focal", "focal_gamma": 0}).fields == {
        "focal_gamma": 0.0,
        "focal_alpha": 0.25,
    }
    with pytest.raises(
        ParameterError,
        match="tweedie_power=2 is too large; choose a number above 1 and below 2",
    ):
        objective.resolve({"objective": "tweedie", "tweedie_power": 2})
    with pytest.raises(
        ParameterError,
        match=r"quantile_alpha=0\.5 is not a parameter of objective='huber'",
    ):
        objective.resolve({"objective": "huber", "quantile_alpha": 0.5})


@pytest.mark.parametrize(
    ("name", "label", "n_classes", "expected"),
    [
        ("squared_error", [-1.5, 1e150], None, 1),
        ("logistic", [0, 1, 1], None, 1),
        ("logistic", [0, 0], None, 1),
        ("softmax", [0, 2, 1], None, 3),
        ("softmax", [0, 1], 5, 5),
        ("softmax", [0, 0], None, 2),
        ("one_vs_all", [0, 2, 1], None, 3),
        ("poisson", [[0, 2], [1, 0]], None, 2),
    ],
)
def test_outputs(name: str, label: Any, n_classes: int | None, expected: int) -> None:
    assert objective.outputs(goal(name), np.array(label, float), n_classes) == expected


@pytest.mark.parametrize(
    ("name", "label", "n_classes", "message"),
    [
        ("squared_error", [0, np.inf], None, "label inf in row 1 is not a number, as"),
        ("squared_error", [0, -1e151], None, "label -1e\\+151 in row 1"),
        (
            "logistic",
            [0, 1, 2],
            None,
            "label 2 in row 2 is not 0 or 1, as objective='logistic' needs",
        ),
        ("logistic", [0.5], None, "label 0.5 in row 0 is not 0 or 1"),
        ("softmax", [0, 1.5], None, r"label 1.5 in row 1 is not one of 0\.\.1"),
        ("softmax", [0, -1], None, "label -1 in row 1"),
        ("softmax", [0, 3], 3, r"label 3 in row 1 is not one of 0\.\.2"),
        ("softmax", [0, np.nan], None, "label nan in row 1"),
        (
            "softmax",
            [1, 3, 2],
            None,
            "labels run from 1 to 3, but no row has class 0; number .* n_classes=4",
        ),
        ("one_vs_all", [0, 1, 4], None, "but no row has class 2, 3; number"),
        (
            "softmax",
            [0, 1, 1e6],
            None,
            r"labels run from 0 to 1e\+06, but no row has class 2, 3, 4, 5, 6, \.\.\.;",
        ),
        (
            "softmax",
            [[0, 1]],
            None,
            "takes one class per row; for a 2-D target use 'multilabel'",
        ),
        ("poisson", [1, -1], None, "label -1 in row 1 is not a number of at least 0"),
        (
            "gamma",
            [[1, 1], [1, 0]],
            None,
            "label 0 in row 1, column 1 is not a number above 0",
        ),
        (
            "adaptive_huber",
            [[1, 1]],
            None,
            "adapts to one target; the label has 2 columns",
        ),
    ],
)
def test_labels_that_do_not_suit(
    name: str, label: Any, n_classes: int | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        objective.outputs(goal(name), np.array(label, float), n_classes)
