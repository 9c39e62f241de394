"""Shapley values and metrics that the device finds have the bits of the CPU's, through
the emulation.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest

import sapwood as sw
from sapwood.device import get
from sapwood.device.cuda import evaluating, explainer

MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "depth-wise": ({}, {}),
    "symmetric": ({"grow_policy": "symmetric", "max_depth": 4}, {}),
    "deep": ({"max_leaves": 60, "min_samples_leaf": 1}, {}),
    "categories": (
        {"min_data_per_group": 5},
        {"categorical_features": [8, 9], "category_encoding": "partition"},
    ),
    "classes": ({"objective": "softmax"}, {}),
    "one column": ({"interaction_constraints": [[3]]}, {}),
}


def table(n_rows: int = 400) -> tuple[Any, Any]:
    """Numbers, categories and missing values; labels 0, 1, 2."""
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [
            rng.normal(size=(n_rows, 8)),
            rng.integers(0, 9, n_rows),
            rng.integers(0, 200, n_rows),
        ]
    )
    z = X[:, 0] * X[:, 1] + X[:, 8] % 2 + X[:, 3] * X[:, 4]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.digitize(z, [-0.3, 0.7]).astype(np.float64)


@pytest.mark.parametrize("name", MODELS)
def test_shapley_values(
    name: str, device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    params, how = MODELS[name]
    given = {key: value for key, value in how.items() if key == "categorical_features"}
    model = sw.train(
        {"n_estimators": 4, "max_leaves": 25, **params, **how},
        sw.Dataset(X, label=y, **given),
    )
    there = dataclasses.replace(model, device=get("emulated"))
    wanted = model.explain(X)
    for rows in (X, np.asfortranarray(X)):
        found = there.explain(rows)
        assert found.values.tobytes() == wanted.values.tobytes()
    assert found.base_values.tobytes() == wanted.base_values.tobytes()
    core: Any = there._explainer
    assert core._job is not None
    # tree after tree, few rows at a time
    monkeypatch.setattr(explainer, "MAX_ENTRIES", 1)
    monkeypatch.setattr(explainer, "MAX_SUMS", 97)
    monkeypatch.setattr(explainer, "TABLE_BITS", 2)
    monkeypatch.setattr(core.runtime, "max_shared", 0, raising=False)
    again = dataclasses.replace(model, device=get("emulated")).explain(
        X[:50].astype(np.float32)
    )
    assert (
        again.values.tobytes()
        == model.explain(X[:50].astype(np.float32)).values.tobytes()
    )


def test_what_the_host_explains(device: None) -> None:
    X, y = table(120)
    model = sw.train({"n_estimators": 3, "max_leaves": 9}, sw.Dataset(X, label=y))
    there = dataclasses.replace(model, device=get("emulated"))
    for more in ({"interactions": True}, {"background": X[:9]}):
        assert (
            there.explain(X[:20], **more).values.tobytes()
            == model.explain(X[:20], **more).values.tobytes()
        )
    linear = sw.train(
        {"n_estimators": 3, "linear_leaves": True},
        sw.Dataset(X, label=y, linear_leaves=True),
    )
    there = dataclasses.replace(linear, device=get("emulated"))
    assert there.explain(X).values.tobytes() == linear.explain(X).values.tobytes()


# by objective; whether the device finds all of them
METRICS: dict[str, tuple[list[str], bool]] = {
    "squared_error": (["rmse", "mse", "mae"], True),
    "absolute_error": (["pinball@0.3", "r2"], False),
    "logistic": (["logloss", "error", "accuracy@0.4", "brier", "auc"], True),
    "softmax": (["multi_logloss", "error", "accuracy"], True),
    "poisson": (["poisson", "rmse"], True),
    "gamma": (["gamma", "pinball"], True),
    "quantile": (["pinball"], True),
}
WEIGHTS = ("none", "whole", "real", "zeros")
SHOWN = (("logistic", "real"), ("softmax", "whole"))
CASES = [
    pytest.param(
        objective, kind, marks=() if (objective, kind) in SHOWN else pytest.mark.nightly
    )
    for objective in METRICS
    for kind in WEIGHTS
]


@pytest.mark.filterwarnings("ignore:early stopping watches:UserWarning")
@pytest.mark.parametrize(("objective", "kind"), CASES)
def test_metrics_of_validation_rows(
    objective: str, kind: str, device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, classes = table(300)
    y = {"logistic": (classes > 0) * 1.0, "gamma": classes + 0.5}.get(
        objective, classes
    )
    draws = np.random.default_rng(5).random(300)
    found: list[bool] = []
    measured = evaluating.Measured.__call__

    def spy(self: Any, *given: Any) -> Any:
        values = measured(self, *given)
        found.append(values is not None)
        return values

    monkeypatch.setattr(evaluating.Measured, "__call__", spy)
    metrics, all_there = METRICS[objective]
    w = {
        "none": None,
        "whole": np.floor(4 * draws) + 1,
        "real": draws + 0.5,
        "zeros": np.floor(3 * draws),
    }[kind]
    first, rest = (None, None) if w is None else (w[:200], w[200:])
    seen = []
    for name in ("cpu", "emulated"):
        given: dict[str, Any] = {
            "device": name,
            "max_bins": 32,
            "categorical_features": [8, 9],
        }
        data = sw.Dataset(X[:200], label=y[:200], weight=first, **given)
        valid = sw.Dataset(X[200:], label=y[200:], weight=rest, reference=data)
        params = {
            "objective": objective,
            "max_depth": 3,
            "n_estimators": 3,
            "eval_metric": metrics,
        }
        params |= {"category_encoding": "partition", "min_data_per_group": 5}
        booster = sw.train(params, data, valid=valid)
        held = sw.train(
            {**params, "early_stopping_rounds": 2},
            sw.Dataset(X, label=y, weight=w, **given),
        )
        seen.append(
            (
                booster.to_bytes(),
                repr(booster.history),
                held.to_bytes(),
                repr(held.history),
            )
        )
    assert seen[0] == seen[1]
    assert found
    assert all(found) == all_there


def test_predictions_that_are_not_finite_are_told_in_words(device: None) -> None:
    X, y = table(120)
    messages = []
    for name in ("cpu", "emulated"):
        data = sw.Dataset(X[:80], label=y[:80], device=name, max_bins=16)
        valid = sw.Dataset(
            X[80:], label=y[80:], init_score=np.full(40, 800.0), reference=data
        )
        with pytest.raises(sw.errors.SapwoodError) as told:
            sw.train(
                {"objective": "poisson", "n_estimators": 2, "max_depth": 2},
                data,
                valid=valid,
            )
        messages.append(str(told.value))
    assert messages[0] == messages[1]
