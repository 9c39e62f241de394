"""Training on Dask: the bytes of a fit in memory, however the rows are partitioned and
whoever holds them.
"""

import asyncio
import gc
import threading
import time
from contextlib import nullcontext
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood
from sapwood import Dataset
from sapwood.errors import DataError, HolderLostError, ParameterError, SapwoodError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

import sapwood.dask as on_dask  # noqa: E402
from sapwood.dask import coordinate, link  # noqa: E402

N = 900
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 5)), columns=list("abcde"))
X["k"] = pd.Categorical(RNG.choice(["x", "y", "z", "w"], N))
X.loc[:400, "c"] = np.nan  # not in every partition
Y = pd.Series((X.a + X.b * X.d > 0).astype(float))
Y3 = pd.Series(np.digitize(X.a + X.b, [-0.5, 0.5]).astype(float))
W = pd.Series(RNG.integers(1, 4, N).astype(float))
PARAMS: dict[str, Any] = {"objective": "logistic", "n_estimators": 6, "max_leaves": 8}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "sampled": {"subsample": 0.6, "colsample_bytree": 0.7},
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "stopped": {"early_stopping_rounds": 2, "learning_rate": 0.9, "n_estimators": 20},
    "softmax": {"objective": "softmax"},
    "quantile": {"objective": "quantile"},
    "weights": {"class_weight": "balanced"},
    "symmetric": {
        "grow_policy": "symmetric",
        "max_depth": 3,
        "max_leaves": None,
        "max_bins": 20,
    },
}
PARTITIONS = {
    "one": [N],
    "halves": [450, 450],
    "skewed": [1, 17, 882],
    "many": [100] * 9,
    "empty": [0, 300, 0, 600, 0],
}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as one,
    ):
        yield one


def cut(table: Any, sizes: list[int]) -> list[Any]:
    """A table in pieces of some rows, as delayed objects."""
    ends = np.cumsum([0, *sizes])
    make = dask.delayed(lambda one, a, b: one.iloc[a:b])
    return [make(table, a, b) for a, b in pairwise(ends.tolist())]


def frame(table: Any, sizes: list[int]) -> Any:
    """The same as a collection of unknown divisions."""
    bounds = list(pairwise(np.cumsum([0, *sizes]).tolist()))
    return dd.from_map(
        lambda own, one: one.iloc[slice(*own)], bounds, one=table, meta=table.iloc[:0]
    )


def whole(params: dict[str, Any], y: Any = Y, weight: Any = None) -> bytes:
    bins = {name: params[name] for name in ("max_bins",) if name in params}
    return sapwood.train(params, Dataset(X, label=y, weight=weight, **bins)).to_bytes()


def check_bytes(case: str, sizes: str, client: Any, **more: Any) -> None:
    """A training of rows in some partitions has the bytes of a fit in memory."""
    params = {**PARAMS, **CASES[case], **more}
    y = Y3 if case == "softmax" else Y
    weight = W if case in ("weights", "goss") else None
    own = PARTITIONS[sizes]
    given = {} if weight is None else {"weight": frame(weight, own)}
    found = on_dask.train(params, frame(X, own), frame(y, own), client=client, **given)
    assert found.to_bytes() == whole(params, y, weight), (case, sizes)


@pytest.mark.filterwarnings("ignore:sampling='goss' takes all rows")
@pytest.mark.pairwise(1)
@pytest.mark.parametrize("sizes", PARTITIONS)
@pytest.mark.parametrize("case", CASES)
def test_same_bytes(case: str, sizes: str, client: Any) -> None:
    check_bytes(case, sizes, client)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:sampling='goss' takes all rows")
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_same_bytes_of_processes(n: int) -> None:
    """Every case in every partitioning, on workers that are processes. A seed of its
    own keeps others' rounds out.
    """
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as own,
    ):
        for seed, (case, sizes) in enumerate(product(CASES, PARTITIONS)):
            check_bytes(case, sizes, own, random_state=seed)


@pytest.mark.parametrize("fails", [False, True])
def test_a_training_leaves_nothing_on_the_cluster(fails: bool, client: Any) -> None:
    """Its parts go at once, after an error too: they would be computed again whenever a
    worker is lost.
    """
    gc.disable()
    try:
        failing = [lambda view: 1 / 0] if fails else []
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            on_dask.train(
                {**PARAMS, "n_estimators": 2},
                frame(X, [450, 450]),
                frame(Y, [450, 450]),
                client=client,
                valid=(frame(X, [900]), frame(Y, [900])),
                callbacks=failing,
            )
        deadline = time.monotonic() + 20
        ours = lambda dask_scheduler: [  # noqa: E731
            str(key) for key in dask_scheduler.tasks if "sapwood" in str(key)
        ]
        while left := client.run_on_scheduler(ours):
            assert time.monotonic() < deadline, left
            time.sleep(0.05)
    finally:
        gc.enable()


def test_arrays_and_lists(client: Any) -> None:
    table, labels = X[list("abde")].to_numpy(), Y.to_numpy()
    want = sapwood.train(PARAMS, Dataset(table, label=labels)).to_bytes()
    array = da.from_array(table, chunks=(200, 2))
    assert (
        on_dask.train(
            PARAMS, array, da.from_array(labels, chunks=300), client=client
        ).to_bytes()
        == want
    )
    parts = [
        client.submit(lambda k=k: table[300 * k : 300 * k + 300], key=f"rows-{k}")
        for k in range(3)
    ]
    y = [dask.delayed(labels[300 * k : 300 * k + 300]) for k in range(3)]
    assert on_dask.train(PARAMS, parts, y, client=client).to_bytes() == want


def test_partitions_of_one_class_and_with_other_categories(client: Any) -> None:
    order = np.argsort(Y.to_numpy(), kind="stable")
    table = X.iloc[order].reset_index(drop=True)
    y = Y.iloc[order].reset_index(drop=True)
    want = sapwood.train(PARAMS, Dataset(table, label=y)).to_bytes()
    sizes = [200, 250, 450]
    pieces = []
    for k, (a, b) in enumerate([(0, 200), (200, 450), (450, 900)]):
        own = table.iloc[a:b].copy()
        own["k"] = (
            own["k"].astype(str)
            if k == 1
            else own["k"].cat.reorder_categories(["w", "z", "y", "x"])
        )
        pieces.append(dask.delayed(own))
    assert (
        on_dask.train(PARAMS, pieces, cut(y, sizes), client=client).to_bytes() == want
    )


def test_validation_sets(client: Any) -> None:
    params = {
        **PARAMS,
        "n_estimators": 30,
        "early_stopping_rounds": 2,
        "learning_rate": 0.8,
        "eval_metric": "auc",
    }
    data = Dataset(X[:600], label=Y[:600])
    want = sapwood.train(
        params, data, valid=Dataset(X[600:], label=Y[600:], reference=data)
    )
    # most workers have no validation rows
    rest = frame(X[600:], [300]), frame(Y[600:], [300])
    found = on_dask.train(
        params,
        frame(X[:600], [250, 350]),
        frame(Y[:600], [250, 350]),
        valid=rest,
        client=client,
    )
    assert found.to_bytes() == want.to_bytes() and found.history == want.history


@pytest.mark.parametrize("weighted", ["rows", "validation rows"])
def test_weights_of_one_set_only(weighted: str, client: Any) -> None:
    """A worker without validation rows knows whether the others have weights for
    theirs.
    """
    w, v = (W[:600], None) if weighted == "rows" else (None, W[600:])
    data = Dataset(X[:600], label=Y[:600], weight=w)
    want = sapwood.train(
        PARAMS, data, valid=Dataset(X[600:], label=Y[600:], weight=v, reference=data)
    )
    rest = (
        frame(X[600:], [300]),
        frame(Y[600:], [300]),
        *(() if v is None else (frame(v, [300]),)),
    )
    given = {} if w is None else {"weight": frame(w, [250, 350])}
    rows = frame(X[:600], [250, 350]), frame(Y[:600], [250, 350])
    found = on_dask.train(PARAMS, *rows, valid=rest, client=client, **given)
    assert found.to_bytes() == want.to_bytes() and found.history == want.history


def test_continued_model_and_progress(
    client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    first = on_dask.train(PARAMS, frame(X, [900]), frame(Y, [900]), client=client)
    more = on_dask.train(
        {**PARAMS, "verbose": 2},
        frame(X, [400, 500]),
        frame(Y, [400, 500]),
        init_model=first,
        client=client,
    )
    assert more.to_bytes() == whole({**PARAMS, "n_estimators": 12})
    assert "[12]" in capsys.readouterr().out


def test_names_of_tasks(client: Any) -> None:
    """What the dashboard groups tasks by; also while the training runs."""
    running: set[str] = set()

    def look(event: Any) -> None:
        running.update(client.cluster.scheduler.task_prefixes)

    class Says:
        def __call__(self, view: Any) -> None:
            distributed.get_worker().log_event("names", view.index)

    client.subscribe_topic("names", look)
    on_dask.train(
        {**PARAMS, "random_state": 8},
        frame(X, [900]),
        frame(Y, [900]),
        client=client,
        callbacks=[Says()],
    )
    client.unsubscribe_topic("names")
    assert {"sapwood-part", "sapwood-rows", "sapwood-train"} <= set(
        client.cluster.scheduler.task_prefixes
    )
    assert "sapwood-train" in running


def test_two_trainings_at_once(client: Any) -> None:
    found: dict[int, bytes] = {}

    def work(seed: int) -> None:
        params = {**PARAMS, "random_state": seed, "subsample": 0.5, "n_estimators": 15}
        found[seed] = on_dask.train(
            params, frame(X, [300] * 3), frame(Y, [300] * 3), client=client
        ).to_bytes()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed in (1, 2):
        assert found[seed] == whole(
            {**PARAMS, "random_state": seed, "subsample": 0.5, "n_estimators": 15}
        )


def test_inside_a_task(client: Any) -> None:
    def work() -> bytes:
        return on_dask.train(
            PARAMS, frame(X, [300] * 3), frame(Y, [300] * 3)
        ).to_bytes()

    assert client.submit(work, pure=False).result(60) == whole(PARAMS)


def test_async_client_and_cancelling(client: Any) -> None:
    async def work() -> tuple[bytes, set[str]]:
        async with distributed.Client(
            client.scheduler.address, asynchronous=True
        ) as own:
            params = {**PARAMS, "random_state": 77}
            model = await on_dask.train(
                params, frame(X, [300] * 3), frame(Y, [300] * 3), client=own
            )
            long = {**PARAMS, "n_estimators": 100_000}
            task = asyncio.ensure_future(
                on_dask.train(
                    long, frame(X, [300] * 3), frame(Y, [300] * 3), client=own
                )
            )
            while not link.MAIL._running:
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(200):
                if not link.MAIL._running:
                    break
                await asyncio.sleep(0.05)
            return model.to_bytes(), set(link.MAIL._running)

    found, running = asyncio.run(work())
    assert found == whole({**PARAMS, "random_state": 77})
    assert not running  # the workers are free


def test_hostile_bytes_are_refused_and_the_training_goes_on(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {**PARAMS, "random_state": 5}
    put = link.Mail.put
    bad = [b"garbage of nobody", b""]

    def spoiled(self: Any, name: str, source: int, message: bytes) -> None:
        put(self, name, source, bad.pop() if bad else message)

    monkeypatch.setattr(link.Mail, "put", spoiled)
    assert on_dask.train(
        params, frame(X, [300] * 3), frame(Y, [300] * 3), client=client
    ).to_bytes() == whole(params)
    assert not bad


class Fails:
    """A callback that fails once, in some round of one holder; a file remembers that it
    has.
    """

    def __init__(self, path: Path, index: int) -> None:
        self.path = path
        self.index = index

    def __call__(self, view: Any) -> None:
        if view.index == self.index and not self.path.exists():
            self.path.touch()
            raise HolderLostError("a test")


def test_lost_in_the_middle(
    client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One holder leaves in the ninth round: the others notice, and the next attempt
    goes on from what they know.
    """
    params = {**PARAMS, "random_state": 6, "n_estimators": 12}
    real = coordinate._attempt
    known = []

    async def seen(*given: Any) -> Any:
        known.append(0)
        found = await real(*given)
        known.append(found[0]["n_known"])
        return found

    monkeypatch.setattr(coordinate, "_attempt", seen)
    found = on_dask.train(
        params,
        frame(X, [300] * 3),
        frame(Y, [300] * 3),
        client=client,
        callbacks=[Fails(tmp_path / "x", 8)],
        timeout=5,
    )
    assert found.to_bytes() == whole(params)
    assert known[:2] == [0, 0] and known[2] in (8, 9)


class Complains:
    """A callback that says some times that a worker does not answer; files remember how
    often it has.
    """

    def __init__(self, folder: Path, address: str, times: int) -> None:
        self.folder = folder
        self.address = address
        self.times = times

    def __call__(self, view: Any) -> None:
        n = len(list(self.folder.iterdir()))
        if (
            view.index == 2 + n
            and n < self.times
            and distributed.get_worker().address != self.address
        ):
            (self.folder / str(n)).touch()
            raise HolderLostError(f"worker {self.address} does not answer.")


@pytest.mark.parametrize("times", [1, 2])
def test_a_slow_worker_is_not_closed(
    times: int, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that answers the client stays in the cluster; it takes part again, unless
    others complain twice.
    """
    before, plans, real = (
        sorted(client.scheduler_info()["workers"]),
        [],
        coordinate._attempt,
    )

    async def seen(plan: Any, *given: Any) -> Any:
        plans.append(plan)
        return await real(plan, *given)

    monkeypatch.setattr(coordinate, "_attempt", seen)
    params = {**PARAMS, "random_state": 60 + times}
    slow = Complains(tmp_path, before[0], times)
    rows = frame(X, [100] * 9), frame(Y, [100] * 9)
    assert on_dask.train(
        params, *rows, client=client, callbacks=[slow], timeout=10
    ).to_bytes() == whole(params)
    assert len(list(tmp_path.iterdir())) == times and len(plans) == times + 1
    assert sorted(client.scheduler_info()["workers"]) == before
    assert (before[0] in plans[-1].common["addresses"]) == (times == 1)


@pytest.mark.parametrize("wrong", [[300, 300, 299], [300, 301, 300]])
def test_rows_lost_or_counted_twice_are_refused(
    wrong: list[int], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sizes(*given: Any) -> list[int]:
        return wrong

    monkeypatch.setattr(coordinate, "_sizes", sizes)
    with pytest.raises(DataError, match="rows"):
        on_dask.train(PARAMS, frame(X, [300] * 3), frame(Y, [300] * 3), client=client)


def test_other_versions_are_refused(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinate, "VERSION", "9.9")
    with pytest.raises(
        SapwoodError, match=r"has Sapwood .*, and the client 9\.9; install one version"
    ):
        on_dask.train(PARAMS, frame(X, [N]), frame(Y, [N]), client=client)


def broken() -> None:
    raise KeyError("no such file")


@pytest.mark.parametrize(
    ("error", "message", "change"),
    [
        (KeyError, "no such file", {"X": lambda: [dask.delayed(broken)()]}),
        (
            DataError,
            "X is a DataFrame; give a DataFrame or Array of Dask",
            {"X": lambda: X},
        ),
        (DataError, "y has 2 partitions and X 1", {"y": lambda: frame(Y, [400, 500])}),
        (
            DataError,
            "there are no rows",
            {"X": lambda: cut(X, [0]), "y": lambda: cut(Y, [0])},
        ),
        (DataError, "chunk 0", {"y": lambda: cut(Y[:10], [10])}),
        (
            ParameterError,
            "needs one order of all rows, which are on several workers",
            {"boosting": lambda: "ordered"},
        ),
        (
            ParameterError,
            "objective='logistik' is unknown",
            {"params": lambda: {"objective": "logistik"}},
        ),
        (
            ParameterError,
            "quality is for an automatic fit",
            {"quality": lambda: "fast"},
        ),
        (ParameterError, "checkpoint is for a process", {"checkpoint": lambda: "x"}),
        (ParameterError, "unknown parameter", {"params": lambda: {"max_leafs": 3}}),
        (DataError, "validation set 'valid_0' is not a tuple", {"valid": lambda: [3]}),
    ],
)
def test_errors(
    error: type[Exception],
    message: str,
    change: dict[str, Any],
    client: Any,
    caplog: Any,
) -> None:
    given = {"params": PARAMS, "X": frame(X, [N]), "y": frame(Y, [N])} | {
        name: make() for name, make in change.items()
    }
    with pytest.raises(error, match=message):
        on_dask.train(**given, client=client)
    assert error is KeyError or not [
        one for one in caplog.records if one.levelname == "ERROR"
    ]


def test_many_categories(client: Any) -> None:
    table = X[["a", "b"]].assign(k=RNG.choice([f"v{i}" for i in range(50)], N))
    parts = frame(table, [300, 600]), frame(Y, [300, 600])
    with pytest.warns(
        UserWarning,
        match=r"'partition' is used for 'k', .* which are on several workers",
    ) as said:
        found = on_dask.train(PARAMS, *parts, client=client)
    assert [one.filename for one in said] == [__file__]
    same = {**PARAMS, "category_encoding": "partition"}
    own = sapwood.train(same, Dataset(table, label=Y))
    assert on_dask.train(same, *parts, client=client).to_bytes() == own.to_bytes()
    np.testing.assert_array_equal(found.predict(table), own.predict(table))


def test_predict_and_explain(client: Any) -> None:
    model = sapwood.train(PARAMS, Dataset(X, label=Y))
    rows = frame(X, [0, 300, 600])
    np.testing.assert_array_equal(
        on_dask.predict(model, rows, raw=True).compute(), model.predict(X, raw=True)
    )
    np.testing.assert_array_equal(
        on_dask.explain(model, rows).compute(), np.asarray(model.explain(X).values)
    )
    numbers = sapwood.train(PARAMS, Dataset(X[list("abde")].to_numpy(), label=Y))
    array = da.from_array(X[list("abde")].to_numpy(), chunks=(350, 4))
    found = on_dask.predict(numbers, array)
    assert found.shape == (N,) and found.chunks == ((350, 350, 200),)
    np.testing.assert_array_equal(
        found.compute(), numbers.predict(X[list("abde")].to_numpy())
    )
    listed = dask.compute(*on_dask.predict(model, cut(X, [400, 500])))
    np.testing.assert_array_equal(np.concatenate(listed), model.predict(X))
