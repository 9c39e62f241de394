"""The kernels of core/cuda give the bytes of the CPU: here through the emulation, on a
GPU by `make gpu`.
"""

import dataclasses
import re
import sys
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import sapwood as sw
from device import tasks
from sapwood.boost.round import growth
from sapwood.device import get
from sapwood.device.cuda import forest, growing, runtime
from sapwood.device.cuda.job import CORE, record
from sapwood.errors import DataError, ObjectiveError, ParameterError
from sapwood.params import resolve

HASHES = Path(__file__).parent / "hashes.txt"
SHOWN = [  # all growers, rules and kinds of rows, at the price of two objectives
    "depthwise/softmax",
    "symmetric/logistic",
    "leafwise/penalties",
    "depthwise/rows",
    "symmetric/rows",
    "leafwise/wide",
    "depthwise/columns",
    "symmetric/columns",
    "leafwise/monotone",
    "depthwise/groups",
    "depthwise/whole",
    "leafwise/zeros",
    "depthwise/extra",
    "symmetric/extra",
    "depthwise/parallel",
    "leafwise/steps",
    "depthwise/categories sets",
    "symmetric/categories rows",
    "leafwise/categories onehot",
    "symmetric/categories auto",
    "leafwise/linear",
    "depthwise/vector limits",
    "symmetric/vector whole",
    "leafwise/vector sketch of one",
    "symmetric/vector sketch",
    "depthwise/vector categories extra",
    "leafwise/cosine noise",
    "symmetric/cosine gain",
    "leafwise/forced rows",
    "symmetric/vector noise",
    "depthwise/classes noise",
    "leafwise/classes columns",
    "symmetric/classes categories",
    "depthwise/forest classes",
    "symmetric/forest mvs classes",
    "leafwise/copies goss",
    "leafwise/forest categories",
    "symmetric/copies noise",
    "depthwise/copies many",
]


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
@pytest.mark.parametrize("name", SHOWN)
def test_the_emulated_device_gives_the_bytes_of_the_cpu(
    name: str, device: None
) -> None:
    assert (
        tasks.train(tasks.small(name), "emulated").to_bytes()
        == tasks.train(tasks.small(name)).to_bytes()
    )


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:on device:UserWarning")
@pytest.mark.parametrize("name", sorted(set(tasks.TASKS) - set(SHOWN)))
def test_every_task_on_the_emulated_device(name: str, device: None) -> None:
    wanted = tasks.train(tasks.small(name)).to_bytes()
    try:
        found = tasks.train(tasks.small(name), "emulated").to_bytes()
    except ParameterError as refusal:
        assert re.search(
            "does not run on device='emulated' yet; use device='cpu'", str(refusal)
        )
        return
    assert found == wanted


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize(
    "name", ["depthwise/classes noise", "leafwise/softmax", "symmetric/classes columns"]
)
def test_trees_side_by_side_in_batches(
    name: str, most: int, device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks.small(name)
    X, y, _ = tasks.rows(task)
    # five classes: batches of three and of two
    y = np.minimum(4 * y / 3 + (X[:, 0] > 0.8), 4).round()
    runtime = get("emulated").Trainer.runtime  # type: ignore[attr-defined]
    launched: list[tuple[str, int]] = []
    launch = runtime.launch
    monkeypatch.setattr(
        runtime,
        "launch",
        lambda *a: (launched.append((a[0], a[2][2])), launch(*a)),
        raising=False,
    )
    monkeypatch.setattr(growing, "MAX_BESIDE", most)
    models = [
        sw.train(
            {**task.params, "n_estimators": 3},
            sw.Dataset(X, label=y, device=one, max_bins=32),
        )
        for one in ("cpu", "emulated")
    ]
    assert models[1].n_outputs == 5
    assert models[0].to_bytes() == models[1].to_bytes()
    assert [n for kernel, n in launched if kernel == "begin"] == {
        1: [1] * 5,
        3: [3, 2],
    }[most] * 3


def test_norms_beside_that_of_the_threshold_count_once(device: None) -> None:
    """A row whose norm was in the next 1,024 above the last digit's range was counted
    there as well.
    """
    task = tasks.Task(
        {"max_depth": 4, "sampling": "mvs", "subsample": 0.8},
        missing=0.1,
        weight="whole",
        rounds=2,
    )
    assert tasks.train(task, "emulated").to_bytes() == tasks.train(task).to_bytes()


@pytest.mark.parametrize("name", ["depthwise/logistic", "depthwise/softmax"])
def test_rows_that_are_held_out(name: str, device: None) -> None:
    task = tasks.small(name)
    X, y, _ = tasks.rows(task)
    params = {**task.params, "n_estimators": 5, "early_stopping_rounds": 2}
    models = [
        sw.train(params, sw.Dataset(X, label=y, device=one, max_bins=32))
        for one in ("cpu", "emulated")
    ]
    assert models[0].to_bytes() == models[1].to_bytes()
    assert repr(models[0].history) == repr(models[1].history)


def test_validation_rows_and_early_stopping(device: None) -> None:
    task = tasks.small("depthwise/logistic")
    X, y, _ = tasks.rows(task)
    found = []
    for name in ("cpu", "emulated"):
        data = sw.Dataset(X[:200], label=y[:200], device=name, max_bins=32)
        valid = sw.Dataset(X[200:], label=y[200:], reference=data)
        booster = sw.train(
            {**task.params, "n_estimators": 6, "early_stopping_rounds": 2},
            data,
            valid=valid,
        )
        found.append(
            (booster.to_bytes(), repr(booster.history), booster.predict(X).tobytes())
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["depthwise/softmax", "leafwise/large"])
def test_predictions_have_the_bits_of_the_cpu(name: str, device: None) -> None:
    task = tasks.TASKS[name]
    X, y, _ = tasks.rows(tasks.Task(task.params, 1500, task.n_columns, 0.1))
    params = {
        **task.params,
        "n_estimators": 6,
        "max_leaves": 60 if "softmax" in name else 1400,
        "max_depth": 0,
    }
    found, wanted = (
        sw.train(params | {"min_samples_leaf": 1}, sw.Dataset(X, label=y, device="cpu"))
        for _ in "ab"
    )
    found = dataclasses.replace(found, device=get("emulated"))
    for table in (X, X.astype(np.float32), np.asfortranarray(X), X[:7], X[::2, :]):
        for how in ({}, {"raw": True}, {"rounds": (1, 4)}):
            assert (
                found.predict(table, **how).tobytes()
                == wanted.predict(table, **how).tobytes()
            )
    start = np.ones((len(X), found.n_outputs))
    assert (
        found.predict(X, init_score=start) == wanted.predict(X, init_score=start)
    ).all()
    there = found._forest.predict_array(X, 0, -1, True)
    assert there.tobytes() == wanted.predict(X, raw=True).tobytes()


class There:
    """An array "in device memory"."""

    __cuda_array_interface__: ClassVar[dict[str, object]] = {}

    def __init__(self, values: np.ndarray) -> None:
        self.get = lambda: values
        self.shape = values.shape
        self.dtype = values.dtype
        self.ndim = values.ndim

    def __len__(self) -> int:
        return int(self.shape[0])


# parameters, and how the data set is made
MODELS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "linear": ({"linear_leaves": True}, {"linear_leaves": True}),
    "raw units": (
        {"linear_leaves": True, "linear_units": "raw"},
        {"linear_leaves": True},
    ),
    "categories": (
        {"linear_leaves": True},
        {"categorical_features": [3, 4], "linear_leaves": True},
    ),
    "statistics": (
        {"recipe": "catboost"},
        {"categorical_features": [3, 4], "recipe": "catboost"},
    ),
    "vector": ({"objective": "softmax", "multi_strategy": "multi_output_tree"}, {}),
    "one_vs_all": ({"objective": "one_vs_all"}, {}),
    "quantiles": ({"objective": "quantile", "quantile_alpha": [0.2, 0.8]}, {}),
    "poisson": ({"objective": "poisson"}, {}),
    "forest": ({"boosting": "forest", "subsample": 0.6}, {}),
    "crosses": ({}, {"linear_leaves": True}),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_predicts_with_the_bits_of_the_cpu(name: str, device: None) -> None:
    params, how = MODELS[name]
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [rng.normal(size=(700, 3)), rng.integers(0, 9, 700), rng.integers(0, 300, 700)]
    )
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 3] % 2, [-0.3, 0.7]).astype(float)
    data = sw.Dataset(X, label=y, **how)
    if name == "crosses":
        data = data.with_crosses(
            [("difference", 0, 1), ("ratio", 2, 0), ("product", 1, 4)]
        )
    wanted = sw.train({**params, "n_estimators": 4, "max_leaves": 9}, data)
    found = dataclasses.replace(wanted, device=get("emulated"))
    assert found._forest._job is not None  # type: ignore[attr-defined]
    odd = X.copy()
    odd[:6, 1], odd[3:9, 3], odd[8:12, 4] = (
        np.nan,
        [np.nan, 77, -1, 3, np.nan, 2],
        [np.nan, 1e9, -2, 0],
    )
    for table in (X, odd.astype(np.float32), np.asfortranarray(odd)):
        for more in (
            {},
            {"raw": True},
            {"rounds": (1, 3)},
            {"init_score": np.ones((700, wanted.n_outputs))},
        ):
            bits = wanted.predict(table, **more).tobytes()
            assert found.predict(table, **more).tobytes() == bits
            assert (
                np.ascontiguousarray(found.predict(There(table), **more)).tobytes()
                == bits
            )


def test_codes_that_do_not_fit_in_shared_memory(
    device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(1).normal(size=(90, 70))
    wanted = sw.train(
        {"n_estimators": 40, "max_leaves": 8, "min_samples_leaf": 1},
        sw.Dataset(X, label=X.sum(1)),
    )
    found = dataclasses.replace(wanted, device=get("emulated"))
    monkeypatch.setattr(type(found._forest).runtime, "max_shared", 40_000)  # type: ignore[attr-defined]
    monkeypatch.setattr(forest, "MAX_CODES", 70 * 32)  # some rows at a time
    assert found.predict(X).tobytes() == wanted.predict(X).tobytes()


def test_a_table_in_device_memory_gives_the_bytes_of_the_host(device: None) -> None:
    task = tasks.small("depthwise/logistic")
    X, y, _ = tasks.rows(dataclasses.replace(task, missing=0.1))
    X[3, 0] = np.inf
    known = sw.Dataset(X, label=y, max_bins=32)
    wanted = sw.train({**task.params, "n_estimators": 2}, known).to_bytes()
    for table in (X, np.asfortranarray(X)):
        data = sw.Dataset(There(table), label=There(y), device="emulated", max_bins=32)
        assert sw.train({**task.params, "n_estimators": 2}, data).to_bytes() == wanted
        assert data.fingerprint() == known.fingerprint()
        assert (data.binned.host.codes(0) == known.binned.codes(0)).all()
    with pytest.raises(DataError, match="train with device='cuda', or copy it"):
        sw.Dataset(There(X), label=y)


def test_cuts_of_a_table_in_device_memory(device: None) -> None:
    rng = np.random.default_rng(0)
    few = rng.integers(0, 300, 200_400).astype(float)
    # all rows have more values than the sample
    rare = np.where(rng.random(200_400) < 1e-5, rng.random(200_400), 1.0)
    X = np.column_stack(
        [rng.normal(size=200_400), few, np.where(few < 9, np.nan, few % 5), rare]
    )
    wanted = get("cpu").cuts([X], None, 255, 32, 1)
    found = get("emulated").cuts([There(X)], None, 255, 32, 1)
    assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted]


@pytest.mark.nightly
@pytest.mark.parametrize("weighted", [False, True])
def test_an_objective_of_the_user_on_arrays_of_the_device(
    weighted: bool, device: None
) -> None:
    task = tasks.small("depthwise/logistic")
    X, y, _ = tasks.rows(task)
    w = np.arange(len(y)) % 3 + 0.5
    seen: list[object] = []

    def plain(label: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(score)
        return score - label, 1.0 + 0.0 * score

    def by_weight(
        label: np.ndarray, score: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        seen.append(score)
        return (score - label) * weight, weight * (1.0 + 0.0 * score)

    function = by_weight if weighted else plain
    found = []
    for name, there in (("cpu", False), ("emulated", False), ("emulated", True)):
        function.device_arrays = there  # type: ignore[attr-defined]
        data = sw.Dataset(X, label=y, weight=w, device=name, max_bins=32)
        found.append(
            sw.train(
                {"objective": function, "max_depth": 3, "n_estimators": 3}, data
            ).to_bytes()
        )
    assert found[0] == found[1] == found[2]
    assert seen[-1] is not seen[-2] and np.shares_memory(seen[-1], seen[-2])  # type: ignore[arg-type] the device's own
    for wrong in (
        lambda y, s: (s[:1], s),
        lambda y, s: (s - y, s * np.nan),
        lambda y, s: (s, -1.0 - s * s),
    ):
        wrong.device_arrays = True  # type: ignore[attr-defined]
        with pytest.raises(
            ObjectiveError, match=r"of shape|not finite|negative hessian"
        ):
            sw.train({"objective": wrong, "n_estimators": 1}, data)


def test_the_cpu_has_the_hashes_that_a_gpu_gave() -> None:
    kept = dict(
        reversed(line.split(" ", 1)) for line in HASHES.read_text().splitlines()
    )
    assert set(kept) == set(tasks.TASKS)
    for name in (
        "depthwise/logistic",
        "leafwise/poisson",
        "symmetric/softmax",
        "depthwise/columns",
        "leafwise/real",
    ):
        assert tasks.train(tasks.TASKS[name]).fingerprint() == kept[name], name


@pytest.mark.nightly
@pytest.mark.parametrize("name", tasks.TASKS)
def test_every_hash_that_a_gpu_gave(name: str) -> None:
    kept = dict(
        reversed(line.split(" ", 1)) for line in HASHES.read_text().splitlines()
    )
    assert tasks.train(tasks.TASKS[name]).fingerprint() == kept[name]


@pytest.mark.parametrize(
    "params",
    [
        {"boosting": "ordered"},
        {"monotone_constraints": [1, 0], "monotone_method": "intermediate"},
    ],
)
def test_what_is_not_there_is_refused_in_words(
    params: dict[str, object], device: None
) -> None:
    data = sw.Dataset(
        np.arange(40.0).reshape(20, 2), label=np.arange(20.0), device="emulated"
    )
    with pytest.raises(
        ParameterError, match="not run on device='emulated' yet; use device='cpu'"
    ):
        sw.train(params, data, 20)
    many = sw.Dataset(
        np.arange(800.0)[:, None],
        label=np.arange(800.0),
        device="emulated",
        max_bins=700,
        min_samples_bin=1,
    )
    with pytest.raises(
        ParameterError, match="device='emulated' takes at most 255 bins or categories"
    ):
        sw.train({}, many, 20)


def test_a_machine_without_a_gpu_gets_one_sentence() -> None:
    try:
        runtime.cuda()
    except ParameterError:
        with pytest.raises(ParameterError, match=r"device='cuda' needs .*device='cpu'"):
            sw.Dataset(np.ones((3, 1)), device="cuda")
        assert "cuda: device='cuda' needs" in sw.doctor()
    else:
        assert "the same bytes" in sw.doctor()


@pytest.mark.parametrize("broken", ["no CuPy", "no driver", "no GPU"])
def test_what_is_missing_is_said_in_one_sentence(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CUDARuntimeError(RuntimeError):
        pass

    def count() -> int:
        if broken == "no driver":
            raise CUDARuntimeError("cudaErrorInsufficientDriver")
        return 0

    calls = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=calls))
    monkeypatch.setitem(sys.modules, "cupy", None if broken == "no CuPy" else fake)  # type: ignore[arg-type]
    wanted = (
        "needs CuPy, which is not installed"
        if broken == "no CuPy"
        else "needs an NVIDIA GPU with its driver"
    )
    with pytest.raises(ParameterError, match=wanted):
        runtime.Cuda()


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
@pytest.mark.parametrize(
    ("params", "weighted"),
    [
        ({"max_depth": 4, "objective": "logistic"}, False),
        ({"grow_policy": "leafwise", "max_leaves": 9, "subsample": 0.5}, True),
        (
            {
                "max_depth": 3,
                "objective": "softmax",
                **tasks.TOGETHER,
                "sketch_outputs": 2,
            },
            False,
        ),
        (
            {
                "grow_policy": "symmetric",
                "max_depth": 3,
                "objective": "softmax",
                "sampling": "mvs",
                "subsample": 0.8,
            },
            False,
        ),
    ],
)
def test_device_memory_is_told_ahead(
    params: dict[str, object], weighted: bool, counted: Any
) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 4))
    y = np.digitize(
        X[:, 0], [0.0, 1.0] if params.get("objective") == "softmax" else [0.0]
    ).astype(float)
    data = sw.Dataset(
        X, label=y, weight=1.0 + X[:, 1] ** 2 if weighted else None, device="emulated"
    )
    told = sw.estimate_cost(params, data)
    assert "in the memory of the GPU" in str(told)
    counted.total = 0
    sw.train({**params, "n_estimators": 2}, data)
    assert counted.total == pytest.approx(told.device, rel=0.02)
    counted.most = told.device // 4
    with pytest.raises(
        DataError, match=r"GPU memory, and .* are free; train on fewer rows"
    ):
        sw.train(params, sw.Dataset(X, label=y, device="emulated"), 2)


def test_trees_grow_one_after_the_other_where_little_memory_is_free(
    counted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 4))
    data = sw.Dataset(
        X, label=np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.0, 0.5]), device="emulated"
    )
    params = {
        "grow_policy": "leafwise",
        "max_leaves": 9,
        "objective": "softmax",
        "n_estimators": 1,
    }
    told = sw.estimate_cost(params, data).device
    with monkeypatch.context() as patch:
        patch.setattr(growing, "MAX_BESIDE", 1)
        apart = sw.estimate_cost(params, data).device
    assert told > 1.5 * apart
    counted.total = 0
    counted.most = apart
    sw.train(params, data)
    assert counted.total == pytest.approx(apart, rel=0.02)


def test_device_memory_of_a_table_that_is_not_read_yet() -> None:
    sizes = [
        sw.estimate_cost(
            {"device": "cuda", "max_depth": 6}, n_rows=n, n_columns=28
        ).device
        for n in (10**6, 10**7)
    ]
    assert 9 < sizes[1] / sizes[0] < 10
    assert 0.8e9 < sizes[1] < 1.5e9
    assert sw.estimate_cost({}, n_rows=10**6, n_columns=28).device == 0


class Stream:
    """A stream that counts how often it was waited for."""

    n_waits = 0

    def __init__(self, non_blocking: bool) -> None:
        assert non_blocking

    def synchronize(self) -> None:
        self.n_waits += 1


class Owner:
    """Something that has a stream of its own."""


def test_trainings_have_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "MAX_LANES", 3)
    gpu = runtime.Cuda.__new__(runtime.Cuda)
    gpu.cupy, gpu.lock, gpu.stream = (
        SimpleNamespace(cuda=SimpleNamespace(Stream=Stream)),
        RLock(),
        Stream(True),
    )
    gpu._streams = [gpu.stream]
    gpu._n_owners = [0]
    owners = [Owner() for _ in range(4)]
    streams = [gpu.lane(one).stream for one in owners]
    assert streams[0] is gpu.stream is streams[3]
    assert len(set(streams)) == 3
    assert gpu.stream.n_waits == 4  # what was filled before is ready in every lane
    del owners[1]
    assert gpu.lane(owners[0]).stream is streams[1]
    owners.clear()
    assert gpu._n_owners == [0, 0, 0]


def test_folds_have_the_bits_of_the_cpu(device: None) -> None:
    task = tasks.small("leafwise/softmax")
    X, y, _ = tasks.rows(task)
    params = {**task.params, "n_estimators": 3, "eval_metric": ["logloss", "error"]}
    found = [
        sw.cv(params, sw.Dataset(X, label=y, device=one, max_bins=32), n_folds=3)
        for one in ("cpu", "emulated")
    ]
    assert list(found[0]) == list(found[1])
    assert all(
        found[0][name].tobytes() == found[1][name].tobytes() for name in found[0]
    )


def test_records_have_the_fields_of_the_header() -> None:
    text = (CORE / "cuda" / "job.h").read_text()
    for name in re.findall(r"struct (\w+) \{", text):
        assert record(name).itemsize % 8 == 0 or name == "Listed"
    assert record("Job").itemsize == 8 * len(record("Job").names or ())


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:on device:UserWarning")
@pytest.mark.parametrize("n_classes", [0, 2])
def test_an_automatic_fit_has_the_bytes_of_the_cpu(
    n_classes: int, device: None
) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1300, 3))
    y = X[:, 0] * X[:, 1]
    estimator = sw.SapwoodClassifier if n_classes else sw.SapwoodRegressor
    given = {
        "quality": "fast",
        "learning_rate": 0.9,
        "n_estimators": 8,
        "max_bins": 15,
        "time_limit": 10_000,
    }
    models = [
        estimator(device=one, **given).fit(X, y > 0 if n_classes else y)
        for one in ("cpu", "emulated")
    ]
    assert [one.name for one in models[1].chosen_.tried] == [
        "symmetric trees, linear leaves"
    ]
    assert models[1].chosen_.refitted
    assert models[0].booster_.to_bytes() == models[1].booster_.to_bytes()


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
def test_an_automatic_fit_leaves_out_what_the_device_has_not(device: None) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(130, 2))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.0, 0.3])
    model = sw.SapwoodClassifier(
        device="emulated", quality="fast", learning_rate=0.9, n_estimators=2, max_bins=7
    )
    assert model.fit(X, y).chosen_.refitted


@pytest.mark.filterwarnings("ignore:on device:UserWarning")
def test_gradients_that_no_tree_has_used_leave_nothing(device: None) -> None:
    task = tasks.small("depthwise/logistic")
    X, y, _ = tasks.rows(task)
    found = []
    for name in ("cpu", "emulated"):
        data = sw.Dataset(X, label=y, device=name, max_bins=32)
        trainer = get(name).Trainer(data.binned, y[None, :], None, "logistic", {}, 1, 1)
        trainer.fill_scores(np.array([9.0]))
        trainer.gradients("auto")
        trainer.fill_scores(np.array([0.0]))
        trainer.gradients("auto")
        trainer.sample(0, 0, None)
        limits = growth.limits(resolve({"max_depth": 3}))[1] | {"learning_rate": 0.1}
        found.append(trainer.grow("depthwise", limits, 0, 0)[0]["value"])
    assert found[0].tobytes() == found[1].tobytes()
