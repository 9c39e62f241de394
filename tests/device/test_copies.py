"""Copies of a round side by side: the trees of forests and of `n_parallel_trees`, each
copy with its own sample.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood as sw
from device import tasks
from sapwood.boost.round import growth
from sapwood.device import get
from sapwood.device.cuda import growing
from sapwood.device.cuda.copies import Copies, even
from sapwood.params import resolve

FOREST = {"boosting": "forest", "subsample": 0.5, "max_depth": 3}


@pytest.fixture
def beside(device: None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many trees each launch of growth had."""
    runtime = get("emulated").Trainer.runtime  # type: ignore[attr-defined]
    found: list[int] = []
    launch = runtime.launch

    def launch_and_note(
        kernel: str, variant: str, grid: tuple[int, ...], *more: Any
    ) -> None:
        if kernel == "begin":
            found.append(grid[2])
            assert "beside" in variant.split() or "copies" not in variant.split()
        launch(kernel, variant, grid, *more)

    monkeypatch.setattr(runtime, "launch", launch_and_note, raising=False)
    return found


def both(task: tasks.Task) -> bool:
    """Whether a task has the same bytes on both devices."""
    return tasks.train(task, "emulated").to_bytes() == tasks.train(task).to_bytes()


@pytest.mark.parametrize(
    ("name", "most", "wanted"),
    [
        ("depthwise/forest columns", 3, [3, 3, 1]),
        ("leafwise/forest goss", 4, [4, 3]),
        ("symmetric/forest bayesian", 32, [7]),
        ("depthwise/forest classes", 8, [8, 8, 8, 4]),  # four classes
        ("symmetric/forest mvs classes", 3, [2, 2] * 7),  # no copy fits whole
        ("leafwise/forest categories", 5, [4, 3]),
        ("depthwise/forest zeros", 2, [2, 2, 2, 1]),
        ("symmetric/forest", 1, [1] * 7),
        ("leafwise/forest copies", 6, [5, 5, 4]),  # seven rounds of two
    ],
)
def test_forests_in_batches(
    name: str,
    most: int,
    wanted: list[int],
    beside: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "MAX_BESIDE", most)
    assert both(dataclasses.replace(tasks.small(name), rounds=7))
    assert beside == wanted


@pytest.mark.parametrize(
    ("name", "most", "wanted"),
    [
        ("depthwise/copies mvs", 3, [2, 2]),
        ("leafwise/copies classes", 8, [8, 4]),  # three copies of four classes
        ("symmetric/copies noise", 2, [2, 1]),
        ("depthwise/copies goss", 32, [3]),
        ("leafwise/copies steps", 2, [2, 1]),
        ("depthwise/copies dart", 32, [2]),
        ("symmetric/copies linear", 32, [2]),
        # a copy pays for the columns of those before it
        ("leafwise/copies first use", 32, [1, 1]),
        ("depthwise/copies vector", 32, [1, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore:on device:UserWarning")
def test_copies_of_a_round_in_batches(
    name: str,
    most: int,
    wanted: list[int],
    beside: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "MAX_BESIDE", most)
    task = dataclasses.replace(tasks.small(name), rounds=3)
    assert both(task)
    assert beside == wanted * 3


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
def test_rounds_of_a_forest_whose_noise_differs_grow_apart(beside: list[int]) -> None:
    assert both(dataclasses.replace(tasks.small("depthwise/forest noise"), rounds=3))
    assert beside == [1, 1, 1]


def test_a_custom_objective_is_asked_for_every_copy(beside: list[int]) -> None:
    X, y, _ = tasks.rows(tasks.small("depthwise/logistic"))
    params = {
        **FOREST,
        "objective": lambda label, score: (score - label, np.ones_like(score)),
        "n_estimators": 3,
    }
    models = [
        sw.train(params, sw.Dataset(X, label=y, device=one, max_bins=32))
        for one in ("cpu", "emulated")
    ]
    assert models[0].to_bytes() == models[1].to_bytes()
    assert beside == [1, 1, 1]


@pytest.mark.parametrize("more", [{}, {"boosting": "plain", "n_parallel_trees": 3}])
def test_validation_rows_and_early_stopping(
    more: dict[str, Any], beside: list[int]
) -> None:
    X, y, _ = tasks.rows(tasks.small("depthwise/logistic"))
    params = {
        **FOREST,
        "objective": "logistic",
        "n_estimators": 6,
        "early_stopping_rounds": 2,
        **more,
    }
    found = []
    for name in ("cpu", "emulated"):
        data = sw.Dataset(X[:200], label=y[:200], device=name, max_bins=32)
        valid = sw.Dataset(X[200:], label=y[200:], reference=data)
        booster = sw.train(params, data, valid=valid)
        held = sw.train({**params, "validation_fraction": 0.2}, data)
        found.append(
            (
                booster.to_bytes(),
                repr(booster.history),
                held.to_bytes(),
                repr(held.history),
            )
        )
    assert found[0] == found[1]
    assert max(beside) == (3 if more else 6)


@pytest.mark.parametrize("more", [{}, {"boosting": "plain", "n_parallel_trees": 3}])
def test_a_training_goes_on_from_its_checkpoint(
    more: dict[str, Any], beside: list[int], tmp_path: Path
) -> None:
    X, y, _ = tasks.rows(tasks.small("depthwise/logistic"))
    params = {**FOREST, "objective": "logistic", "n_estimators": 7, **more}
    wanted = sw.train(params, sw.Dataset(X, label=y, max_bins=32)).to_bytes()
    path = tmp_path / "training"
    data = sw.Dataset(X, label=y, device="emulated", max_bins=32)

    def stop(view: Any) -> bool:
        return bool(view.index == 2)

    follow = {**params, "checkpoint": str(path), "checkpoint_every": 2}
    sw.train(follow, data, callbacks=[stop])
    assert sw.train(follow, data).to_bytes() == wanted


def test_memory_of_copies_is_told_ahead(counted: Any) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 4))
    y = np.digitize(X[:, 0], [0.0])
    told = []
    for more in (
        {"n_estimators": 1},
        {},
        {"sampling": "mvs"},
        {"boosting": "plain", "n_parallel_trees": 5},
    ):
        params = {**FOREST, "objective": "logistic", "n_estimators": 10, **more}
        data = sw.Dataset(X, label=y, device="emulated")
        told.append(sw.estimate_cost(params, data).device)
        counted.total = 0
        sw.train(params, data)
        assert counted.total == pytest.approx(told[-1], rel=0.02)
    assert told[0] < told[3] < told[1] < told[2]
    # half of it is for trees side by side
    counted.total = 0
    counted.most = 4 * told[0]
    params = {**FOREST, "objective": "logistic", "n_estimators": 10}
    found, wanted = (
        sw.train(params, sw.Dataset(X, label=y, device=one))
        for one in ("emulated", "cpu")
    )
    assert told[0] < counted.total < told[1]
    assert found.to_bytes() == wanted.to_bytes()


def test_what_was_told_and_is_not_asked_for_changes_nothing(device: None) -> None:
    X, y, _ = tasks.rows(tasks.small("depthwise/logistic"))
    limits = growth.limits(resolve({"max_depth": 3}))[1] | {"learning_rate": 0.1}
    found = []
    for name in ("cpu", "emulated"):
        data = sw.Dataset(X, label=y, device=name, max_bins=32)
        trainer: Any = get(name).Trainer(
            data.binned, y[None, :], None, "logistic", {}, 1, 1
        )
        trainer.fill_scores(np.zeros(1))
        values = []

        def grow(
            turn: int,
            tree: int,
            trainer: Any = trainer,
            values: Any = values,
            **more: float,
        ) -> None:
            trainer.gradients("auto")
            trainer.sample(7, turn, 0.5)
            values.append(
                trainer.grow("depthwise", limits | more, 7, tree)[0]["value"].tobytes()
            )

        def expect(
            *samples: tuple[int, int, float], trainer: Any = trainer, name: str = name
        ) -> None:
            if name == "emulated":
                trainer.expect(samples, 0)

        expect((7, 0, 0.5), (7, 1, 0.5), (7, 2, 0.5))
        grow(0, 0)
        grow(1, 9)  # another tree
        grow(2, 2)
        expect((7, 0, 0.5), (7, 1, 0.5), (7, 2, 0.5), (7, 3, 0.5))
        grow(0, 0)
        grow(5, 1)  # another sample
        expect((7, 0, 0.5), (7, 1, 0.5), (7, 2, 0.5))
        grow(0, 0)
        grow(1, 1, learning_rate=0.7)  # other values
        grow(2, 2)
        expect((7, 0, 0.5), (7, 1, 0.5), (7, 2, 0.5))
        grow(0, 0)
        trainer.add_scores(0)  # other gradients
        grow(1, 1)
        expect((7, 0, 0.5), (7, 1, 0.5))
        grow(0, 0)
        grow(1, 1)
        trainer.add_scores(0)  # of the second copy
        values.append(trainer.scores().tobytes())
        expect((7, 0, 0.5), (7, 1, 0.9), (7, 2, 0.5))  # no batch of one share
        grow(0, 0)
        found.append(values)
    assert found[0] == found[1]


def test_copies_know_what_comes() -> None:
    assert [
        even(n, most) for n, most in ((7, 3), (7, 7), (45, 32), (64, 32), (1, 5))
    ] == [3, 7, 23, 32, 1]
    copies = Copies(2)
    samples = [(0, turn, 0.5) for turn in range(4)]
    copies.expect(samples, 10)
    assert not copies.have_gradients(("auto",))
    assert copies.next_is(samples[0])
    assert copies.batch(10, 3) == samples[:3]
    copies.keep([["a"], ["b"], ["c"]], ("depthwise",))
    assert copies.take(10, ("depthwise",)) == (0, ["a"])
    assert copies.have_gradients(("auto",))
    assert copies.next_is(samples[1])
    assert copies.take(12, ("leafwise",)) is None
    assert copies.take(14, ("depthwise",)) is None
    assert copies.take(12, ("depthwise",)) == (1, ["b"])
    assert not copies.have_gradients(None)  # those of someone else
    assert not copies.next_is(samples[2])
    assert copies.most == 4
