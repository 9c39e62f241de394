"""Linear leaves that the device fits have the bytes of the CPU's, through the
emulation.
"""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sapwood as sw
from device import tasks
from sapwood.boost.loops.replay import replay
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import Session
from sapwood.boost.spec import make_spec
from sapwood.device.cuda import lines

LINEAR = {"linear_leaves": True}
PARAMS = {**LINEAR, "objective": "logistic", "max_depth": 3, "n_estimators": 4}
UNITS = [{"linear_units": "raw"}, {"linear_units": "standard"}]


def table(n_rows: int = 400) -> tuple[Any, Any]:
    """Columns of several sizes, with missing and infinite values; labels 0 and 1."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n_rows, 5)) * [1.0, 1e6, 1e-6, 1e12, 1.0] + [
        0.0,
        1e7,
        0.0,
        0.0,
        3.0,
    ]
    X[:, 4] = np.rint(X[:, 4])
    y = (X[:, 0] + (X[:, 1] - 1e7) / 1e6 + rng.normal(size=n_rows) > 0).astype(
        np.float64
    )
    X[rng.random(X.shape) < 0.03] = np.nan
    X[5, 0], X[9, 0], X[11, 2] = np.inf, -np.inf, np.inf
    return X, y


def both(X: Any, y: Any, params: dict[str, Any], **how: Any) -> list[sw.Booster]:
    """The model of either device, which has lines."""
    found = []
    for name in ("cpu", "emulated"):
        with warnings.catch_warnings():
            # nothing is left to the CPU
            warnings.simplefilter("error" if name == "emulated" else "ignore")
            warnings.filterwarnings("ignore", "early stopping has no validation set")
            data = sw.Dataset(X, label=y, device=name, max_bins=32, **LINEAR)
            found.append(sw.train({**PARAMS, **params}, data, **how))
    assert found[0].trees.linear is not None
    assert found[0].to_bytes() == found[1].to_bytes()
    return found


@pytest.mark.parametrize("units", UNITS, ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_values_of_all_sizes_and_kinds(
    units: dict[str, Any], kind: Any, device: None
) -> None:
    X, y = table()
    X = X.astype(kind)
    both(X, y, units)
    both(X, y, {**units, "grow_policy": "symmetric", "subsample": 0.6})


@pytest.mark.parametrize("tile", [(32 * (16 + 4 * 5), 32, True), (32 * 16, 32, False)])
def test_small_tiles_and_columns_that_do_not_fit(
    tile: tuple[int, int, bool], device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines.Lines, "_tile", lambda self, n_columns: tile)
    for units in UNITS:
        both(*table(), {**units, "max_depth": 4, "subsample": 0.7})


def test_rows_of_a_tile() -> None:
    rows = SimpleNamespace(runtime=SimpleNamespace(max_shared=200_000))
    found = [lines.Lines._tile(rows, n)[1:] for n in (6, 40, 90, 300, 600, 5000)]  # type: ignore[arg-type]
    assert found == [
        (256, True),
        (128, True),
        (64, True),
        (32, True),
        (32, True),
        (32, False),
    ]


@pytest.mark.parametrize("units", UNITS, ids=str)
def test_rows_that_are_held_out(units: dict[str, Any], device: None) -> None:
    models = both(*table(), {**units, "early_stopping_rounds": 2, "n_estimators": 6})
    assert repr(models[0].history) == repr(models[1].history)


@pytest.mark.parametrize("units", UNITS, ids=str)
def test_a_model_goes_on(units: dict[str, Any], device: None) -> None:
    X, y = table()
    before = sw.train(
        {**PARAMS, **units}, sw.Dataset(X, label=y, max_bins=32, **LINEAR)
    )
    models = []
    for name in ("cpu", "emulated"):
        data = sw.Dataset(
            X[:300],
            label=y[:300],
            device=name,
            reference=sw.Dataset(X, label=y, max_bins=32, **LINEAR),
        )
        models.append(
            sw.train(
                {**PARAMS, **units, "n_estimators": 2}, data, init_model=before
            ).to_bytes()
        )
    assert models[0] == models[1]


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
@pytest.mark.parametrize("units", UNITS, ids=str)
def test_trees_get_new_values(units: dict[str, Any], device: None) -> None:
    X, y = table()
    known = sw.Dataset(X, label=y, max_bins=32, **LINEAR)
    found = []
    before = sw.train({**PARAMS, **units}, known).trees
    for name in ("cpu", "emulated"):
        data = sw.Dataset(X[:300], label=1 - y[:300], device=name, reference=known)
        spec = make_spec({**PARAMS, **units}, data, None, watched=False)
        store = TreeStore(spec.n_outputs)
        for step in replay(Session(spec, data).training(), before):
            store.add(step)
        trees = store.trees(store.n_rounds)
        assert trees.linear is not None
        found.append(
            [trees.value.tobytes(), *(own.tobytes() for own in trees.linear.terms)]
        )
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "more", [{}, {"n_parallel_trees": 3}, {"boosting": "forest"}], ids=str
)
def test_a_training_goes_on_from_its_checkpoint(
    more: dict[str, Any], device: None, tmp_path: Path
) -> None:
    X, y = table()
    params = {
        **PARAMS,
        **more,
        "subsample": 0.6,
        "n_estimators": 6,
        "linear_units": "standard",
    }
    wanted = sw.train(params, sw.Dataset(X, label=y, max_bins=32, **LINEAR)).to_bytes()
    data = sw.Dataset(X, label=y, device="emulated", max_bins=32, **LINEAR)
    follow = {**params, "checkpoint": str(tmp_path / "training"), "checkpoint_every": 2}
    sw.train(follow, data, callbacks=[lambda view: view.index == 3])
    assert sw.train(follow, data).to_bytes() == wanted


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
@pytest.mark.parametrize(
    "name",
    [
        "depthwise/lines standard",
        "symmetric/lines mvs",
        "leafwise/lines goss",
        "depthwise/lines vector standard",
        "leafwise/lines raw whole",
        "leafwise/lines ordered",
        "depthwise/lines partition",
        "symmetric/lines copies",
        "leafwise/lines dart",
        "depthwise/lines pruned",
    ],
)
def test_tasks(name: str, device: None) -> None:
    task = tasks.small(name)
    found, wanted = (tasks.train(task, one) for one in ("emulated", "cpu"))
    assert wanted.trees.linear is not None
    assert found.to_bytes() == wanted.to_bytes()


def test_memory_of_lines_is_told_ahead(counted: Any) -> None:
    X, y = table(3000)
    data = sw.Dataset(X, label=y, device="emulated", **LINEAR)
    told = sw.estimate_cost(PARAMS, data).device
    counted.total = 0
    sw.train(PARAMS, data)
    assert counted.total == pytest.approx(told, rel=0.03)
