"""The door: devices by name; a second device gets every call, and gives the same
bytes.
"""

import pickle
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sapwood as sw
from sapwood import device
from sapwood.device import cpu
from sapwood.errors import ParameterError
from sapwood.params import types

VERBS = ("cuts", "Binned", "Trainer", "apply", "Forest", "Explainer")
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(300, 3)), RNG.integers(0, 5, 300)])
Y = (X[:, 0] + X[:, 3] > RNG.normal(size=300) + 2).astype(float)
TASKS: dict[str, dict[str, Any]] = {
    "plain": {"objective": "logistic"},
    "boosting": {
        "objective": "logistic",
        "boosting": "ordered",
        "grow_policy": "symmetric",
        "max_depth": 3,
    },
    "categories": {"objective": "logistic", "category_encoding": "ordered"},
    "combinations": {
        "objective": "squared_error",
        "category_encoding": "ordered",
        "max_combination": 2,
    },
    "linear": {"objective": "squared_error", "linear_leaves": True},
    "dart": {"objective": "squared_error", "boosting": "dart", "rate_drop": 0.5},
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of a device "toy", which has the CPU's verbs; the CPU itself has none
    left.
    """
    found: Counter[str] = Counter()

    def counting(verb: str) -> Any:
        own = getattr(cpu, verb)

        def call(*args: Any, **named: Any) -> Any:
            found[verb] += 1
            return own(*args, **named)

        return call

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the CPU was called, not the device of the data")

    toy = SimpleNamespace(name="toy", **{verb: counting(verb) for verb in VERBS})
    for verb in VERBS:
        monkeypatch.setattr(cpu, verb, refuse)
    monkeypatch.setitem(sys.modules, "sapwood.device.toy", toy)  # type: ignore[arg-type]
    monkeypatch.setattr(types, "DEVICES", ("cpu", "toy"))
    return found


def everything(name: str, task: dict[str, Any]) -> list[bytes]:
    """What a device makes of a task: the model, its evaluation, predictions and
    explanations.
    """
    kind = (
        {"linear_leaves": True}
        if "linear_leaves" in task
        else {"categorical_features": [3]}
    )
    data = sw.Dataset(X, label=Y, device=name, n_jobs=2, **kind)
    valid = sw.Dataset(X[::2], label=Y[::2], reference=data, n_jobs=2)
    params = {
        **task,
        "n_estimators": 8,
        "max_leaves": None if "max_depth" in task else 7,
        "n_jobs": 2,
    }
    booster = sw.train(params, data, valid=valid)
    found = [
        booster.to_bytes(),
        repr(booster.history).encode(),
        data.fingerprint().encode(),
    ]
    found += [
        booster.predict(X, n_jobs=2).tobytes(),
        booster.predict_leaves(X).tobytes(),
    ]
    if "linear_leaves" not in task:
        found.append(np.asarray(booster.explain(X[:20]).values).tobytes())
    if task["objective"] == "logistic":
        found += [one.tobytes() for one in sw.cv(params, data, n_folds=2).values()]
    return found


@pytest.mark.parametrize("name", TASKS)
def test_a_second_device_gets_every_call(
    name: str, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = everything("toy", TASKS[name])
    assert set(calls) == set(VERBS) - ({"Explainer"} if name == "linear" else set())
    before = calls.total()
    monkeypatch.undo()
    assert everything("cpu", TASKS[name]) == second
    assert calls.total() == before


def test_estimators_and_copies_stay_on_a_device(calls: Counter[str]) -> None:
    model = sw.SapwoodRegressor(n_estimators=3, device="toy").fit(X, Y)
    model.predict(X)
    assert {"Binned", "Trainer", "Forest"} <= set(calls)
    data = sw.Dataset(X, label=Y, device="toy")
    assert pickle.loads(pickle.dumps(data)).device.name == "toy"
    assert sw.Dataset(X, reference=data).device.name == "toy"


def test_training_takes_the_device_of_the_data(calls: Counter[str]) -> None:
    data = sw.Dataset(X, label=Y, device="toy")
    assert sw.train({"device": "toy"}, data, 1).device.name == "toy"
    with pytest.raises(
        ParameterError,
        match="device='cpu', but the data was made with 'toy'; give it to Dataset too",
    ):
        sw.train({"device": "cpu"}, data, 1)


def test_an_unknown_device_is_an_error_that_lists_those_there_are() -> None:
    assert device.get() is device.get("cpu") is cpu
    for make in (lambda: device.get("abacus"), lambda: sw.Dataset(X, device="abacus")):
        with pytest.raises(
            ParameterError, match="device='abacus' is unknown; choose 'cpu'"
        ):
            make()
