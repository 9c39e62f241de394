"""Checkpoints: a training that was interrupted goes on and ends with the same bytes;
anything else is refused.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood
from sapwood import Dataset, SapwoodRegressor
from sapwood.boost.round import grown
from sapwood.data import container
from sapwood.errors import CheckpointError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5))
Y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=600)
CITY = np.char.add("city ", (np.arange(600) * 7919 % 23).astype(str))
PARAMS: dict[str, Any] = {
    "n_estimators": 12,
    "max_depth": 3,
    "learning_rate": 0.3,
    "n_jobs": 2,
}


class Killed(Exception):
    """Stands for kill -9; `test_kill` has the real one."""


def dies(after: int) -> Callable[[Any], None]:
    """A callback that ends the process, so to speak, after some rounds."""

    def stop(view: Any) -> None:
        if view.index + 1 == after:
            raise Killed

    return stop


def interrupted(
    path: Path,
    params: dict[str, Any],
    data: Dataset,
    *after: int,
    every: int = 2,
    **more: Any,
) -> None:
    """Trainings that die after some rounds, each resumed by the next."""
    for rounds in after:
        with pytest.raises(Killed):
            sapwood.train(
                params,
                data,
                checkpoint=path,
                every=every,
                callbacks=[dies(rounds)],
                **more,
            )


def numbers(**more: Any) -> Dataset:
    return Dataset(X, label=Y, **more)


def classes() -> Dataset:
    return Dataset(X, label=np.digitize(Y, [-0.5, 0.5]).astype(float))


def categories() -> Dataset:
    table = pd.DataFrame(X).add_prefix("x").assign(city=pd.Categorical(CITY))
    return Dataset(table, label=Y)


CASES: dict[str, tuple[Callable[[], Dataset], dict[str, Any]]] = {
    "plain": (numbers, {}),
    "sampled": (
        numbers,
        {"subsample": 0.6, "colsample_bynode": 0.5, "random_strength": 1.0},
    ),
    "goss": (numbers, {"sampling": "goss"}),
    "copies": (numbers, {"n_parallel_trees": 2, "subsample": 0.6}),
    "dart": (numbers, {"boosting": "dart", "skip_drop": 0.2}),
    "forest": (numbers, {"boosting": "forest", "subsample": 0.6, "learning_rate": 1}),
    "ordered": (numbers, {"boosting": "ordered"}),
    "stopped": (numbers, {"early_stopping_rounds": 2, "learning_rate": 0.9}),
    "pruned": (
        classes,
        {
            "objective": "softmax",
            "prune_by_validation": True,
            "early_stopping_rounds": 3,
        },
    ),
    "softmax": (classes, {"objective": "softmax", "class_weight": "balanced"}),
    "vector": (
        classes,
        {"objective": "softmax", "multi_strategy": "multi_output_tree"},
    ),
    "quantile": (numbers, {"objective": "quantile"}),
    "linear": (lambda: numbers(linear_leaves=True), {}),
    "exact": (lambda: numbers(tree_method="exact"), {}),
    "first use": (numbers, {"first_use_penalties": {"f0": 5.0, "f3": 1.0}}),
    "sets": (categories, {}),
    "statistics": (categories, {"category_encoding": "ordered", "max_combination": 2}),
    "own": (numbers, {"objective": lambda y, score: (score - y, np.ones_like(y))}),
    "scheduled": (numbers, {"learning_rate": lambda index: 0.5 / (1 + index)}),
}


@pytest.mark.parametrize("name", CASES)
def test_resumed_training_ends_with_the_same_bytes(name: str, tmp_path: Path) -> None:
    make, more = CASES[name]
    data = make()
    params = {**PARAMS, **more}
    whole = sapwood.train(params, data)
    interrupted(tmp_path / "run", params, data, 1, 3, 4)
    resumed = sapwood.train(params, data, checkpoint=tmp_path / "run", every=2)
    assert resumed.to_bytes() == whole.to_bytes()
    assert resumed.history == whole.history
    assert (
        sapwood.train(params, data, checkpoint=tmp_path / "run").to_bytes()
        == whole.to_bytes()
    )
    assert os.listdir(tmp_path) == ["run"]


def test_stored_trees_are_not_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = numbers()
    calls = []
    interrupted(tmp_path / "run", PARAMS, data, 9, every=4)
    add = grown.GrownTrees.add
    monkeypatch.setattr(
        grown.GrownTrees, "add", lambda self, trees: (calls.append(1), add(self, trees))
    )
    sapwood.train(PARAMS, data, checkpoint=tmp_path / "run")
    assert len(calls) == 4  # 8 of 12 rounds were stored


def test_more_and_fewer_rounds_threads_and_other_harmless_changes(
    tmp_path: Path,
) -> None:
    data = numbers()
    path = tmp_path / "run"
    sapwood.train(PARAMS, data, checkpoint=path)
    for rounds in (20, 5):
        whole = sapwood.train({**PARAMS, "n_estimators": rounds}, data)
        other = {**PARAMS, "n_estimators": rounds, "n_jobs": 1, "eval_metric": "mae"}
        assert (
            sapwood.train(other, data, checkpoint=path, every=3).to_bytes()
            == whole.to_bytes()
        )
    # nothing was lost
    assert sapwood.train(PARAMS, data, checkpoint=path).n_rounds == 12


def test_continued_model(tmp_path: Path) -> None:
    data = numbers()
    first = sapwood.train(PARAMS, data)
    interrupted(tmp_path / "run", PARAMS, data, 17, init_model=first)
    resumed = sapwood.train(PARAMS, data, checkpoint=tmp_path / "run", init_model=first)
    assert (
        resumed.to_bytes() == sapwood.train(PARAMS, data, init_model=first).to_bytes()
    )
    with pytest.raises(CheckpointError, match="fingerprint of init_model"):
        sapwood.train(PARAMS, data, checkpoint=tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"reg_lambda": 3.0}, "reg_lambda 1.0, 3.0"),
        ({"random_state": 1, "max_depth": 4}, "max_depth 3, 4; random_state 0, 1"),
        ({"learning_rate": 0.2}, "learning_rate of round 0 0.3, 0.2"),
        ({"objective": "huber"}, "objective 'squared_error', 'huber'"),
        ({"max_cat_to_onehot": 5}, "max_cat_to_onehot 4, 5"),
    ],
)
def test_other_parameters_are_refused(
    change: dict[str, Any], what: str, tmp_path: Path
) -> None:
    data = numbers()
    path = tmp_path / "run"
    sapwood.train(PARAMS, data, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=f"There and here: .*{what}"):
        sapwood.train({**PARAMS, **change}, data, checkpoint=path)
    assert path.read_bytes() == before


def test_other_data_and_versions_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    sapwood.train(PARAMS, numbers(), checkpoint=path)
    for data in (
        Dataset(X, label=Y + 1),
        Dataset(X, label=Y, weight=np.full(600, 2.0)),
        Dataset(X[:-1], label=Y[:-1]),
    ):
        with pytest.raises(CheckpointError, match="fingerprint of the data"):
            sapwood.train(PARAMS, data, checkpoint=path)
    monkeypatch.setattr("sapwood.version.VERSION", "9.9")
    with pytest.raises(CheckpointError, match=r"version of Sapwood '.*', '9\.9'"):
        sapwood.train(PARAMS, numbers(), checkpoint=path)


def test_half_written_and_damaged_files(tmp_path: Path) -> None:
    data = numbers()
    path = tmp_path / "run"
    whole = sapwood.train(PARAMS, data, checkpoint=path, every=3).to_bytes()
    raw = path.read_bytes()
    header = 8 + int.from_bytes(raw[:8], "little")
    for end in (header, header + 3, header + 8, header + 500, len(raw) - 1, len(raw)):
        path.write_bytes(raw[:end])
        assert (
            sapwood.train(PARAMS, data, checkpoint=path, every=3).to_bytes() == whole
        ), end
        assert path.read_bytes() == raw
    # a machine that stopped: the file has its length, not its content
    path.write_bytes(raw[:-400] + bytes(400))
    assert sapwood.train(PARAMS, data, checkpoint=path, every=3).to_bytes() == whole
    for at in (20, header + 700):  # not in the last record
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(CheckpointError, match="no checkpoint that can be resumed"):
            sapwood.train(PARAMS, data, checkpoint=path)
    path.write_bytes(b"")
    assert sapwood.train(PARAMS, data, checkpoint=path).to_bytes() == whole


@pytest.mark.parametrize(
    ("name", "value"), [("bin", 999), ("column", 77), ("left", 10**6), ("set", 5)]
)
def test_trees_of_a_file_that_someone_has_signed_anew(
    tmp_path: Path, name: str, value: int
) -> None:
    data = numbers()
    path = tmp_path / "run"
    sapwood.train(PARAMS, data, checkpoint=path, every=3)
    raw = path.read_bytes()
    header = 8 + int.from_bytes(raw[:8], "little")
    record = raw[
        header + 8 : header + 8 + int.from_bytes(raw[header : header + 8], "little")
    ]
    arrays, fields = container.unpack(record, "checkpoint rounds", 1, CheckpointError)
    arrays[name] = arrays[name].copy()
    arrays[name][0] = value
    record = container.pack("checkpoint rounds", 1, arrays, fields)
    path.write_bytes(raw[:header] + len(record).to_bytes(8, "little") + record)
    with pytest.raises(CheckpointError, match="a tree that does not fit the data"):
        sapwood.train(PARAMS, data, checkpoint=path)


@pytest.mark.parametrize("parameters", [[], [1], None, "x"])
def test_parameters_that_are_none(tmp_path: Path, parameters: Any) -> None:
    path = tmp_path / "run"
    sapwood.train(PARAMS, numbers(), checkpoint=path)
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    _, fields = container.unpack(raw[8:end], "checkpoint", 1, CheckpointError)
    record = container.pack("checkpoint", 1, {}, {**fields, "parameters": parameters})
    path.write_bytes(len(record).to_bytes(8, "little") + record + raw[end:])
    with pytest.raises(CheckpointError, match="its parameters have no names"):
        sapwood.train(PARAMS, numbers(), checkpoint=path)


def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    data = numbers()
    path = tmp_path / "model"
    sapwood.train(PARAMS, data).save(path)
    before = path.read_bytes()
    for raw in (before, b"abc", b"a text about checkpoints, of some length"):
        path.write_bytes(raw)
        with pytest.raises(CheckpointError):
            sapwood.train(PARAMS, data, checkpoint=path)
        assert path.read_bytes() == raw


def test_one_training_at_a_time(tmp_path: Path) -> None:
    data = numbers()
    path = tmp_path / "run"

    def second(view: Any) -> None:
        with pytest.raises(CheckpointError, match="in use by another training"):
            sapwood.train(PARAMS, data, checkpoint=path)

    sapwood.train(
        {**PARAMS, "n_estimators": 2}, data, checkpoint=path, callbacks=[second]
    )


FULL = """
import resource, signal, sys, numpy, sapwood
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
X = numpy.random.default_rng(0).normal(size=(600, 5))
data, params = sapwood.Dataset(X, label=X[:, 0] * X[:, 1]), {"n_estimators": 30, "n_jobs": 1}
whole = sapwood.train(params, data).to_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
try:
    sapwood.train(params, data, checkpoint=sys.argv[1], every=3)
except OSError as error:
    assert error.filename == sys.argv[1], error
else:
    raise AssertionError
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert sapwood.train(params, data, checkpoint=sys.argv[1]).to_bytes() == whole
"""


def test_full_disk(tmp_path: Path) -> None:
    assert hasattr(resource, "RLIMIT_FSIZE")
    subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "run")], check=True, timeout=120
    )


def test_kill() -> None:
    soak = Path(__file__).parents[3] / "tools" / "soak.py"
    found = subprocess.run(
        [sys.executable, str(soak), "--runs", "3", "--only", "checkpoint"],
        check=True,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert "all ended with the right bytes" in found.stdout


def test_estimator(tmp_path: Path) -> None:
    plain = SapwoodRegressor(quality=None, n_estimators=8)
    model = SapwoodRegressor(
        quality=None, n_estimators=8, checkpoint=tmp_path / "run", checkpoint_every=3
    )
    assert model.fit(X, Y).booster_.to_bytes() == plain.fit(X, Y).booster_.to_bytes()
    assert model.fit(X, Y).booster_.to_bytes() == plain.booster_.to_bytes()
    with pytest.raises(ParameterError, match="an automatic fit makes several"):
        SapwoodRegressor(checkpoint=tmp_path / "other").fit(
            np.tile(X, (4, 1)), np.tile(Y, 4)
        )
    assert not (tmp_path / "other").exists()


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="checkpoint follows a single training"):
        sapwood.cv(PARAMS, numbers(), checkpoint=tmp_path / "run")
    with pytest.raises(
        ParameterError, match=r"every=5 \(checkpoint_every\) is for a checkpoint"
    ):
        sapwood.train(PARAMS, numbers(), every=5)
    with pytest.raises(ParameterError, match="checkpoint=3 is not a path"):
        sapwood.train(PARAMS, numbers(), checkpoint=3)


def test_arrays_that_do_not_fit() -> None:
    calls = [
        [
            {
                name: np.zeros(2, kind)
                for name, kind in (grown.OF_NODES | grown.OF_SETS).items()
            }
        ]
    ]
    arrays = grown.pack(calls)
    assert grown.unpack(arrays, 1)[0][0].keys() == calls[0][0].keys()
    wrong = {
        "other arrays": {
            name: values for name, values in arrays.items() if name != "bin"
        },
        "do not fit": arrays | {"bin": np.zeros(3, np.int32)},
        "lacks trees": arrays,
    }
    for message, given in (
        *wrong.items(),
        ("other arrays", arrays | {"value": np.zeros((1, 2))}),
    ):
        with pytest.raises(ValueError, match=message):
            grown.unpack(given, 2)
