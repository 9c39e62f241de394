"""Workers that are killed, stopped or added: the training goes on, and ends with the
same bytes or with an error.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood import Dataset
from sapwood.errors import SapwoodError

distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

import sapwood.dask as on_dask  # noqa: E402
from sapwood.dask.training import start_training  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 5))
Y = (X[:, 0] > X[:, 1] * X[:, 2]).astype(float)
PARAMS: dict[str, Any] = {
    "objective": "logistic",
    "n_estimators": 12,
    "max_leaves": 8,
    "subsample": 0.7,
    "n_jobs": 1,
}


@contextmanager
def cluster(n: int, **more: Any) -> Iterator[Any]:
    """Workers that are processes."""
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=1, dashboard_address=None, **more
        ) as one,
        distributed.Client(one) as client,
    ):
        yield client


def rows(*sizes: int) -> tuple[Any, Any]:
    return da.from_array(X, chunks=(sizes, 5)), da.from_array(Y, chunks=(sizes,))


def whole(**more: Any) -> bytes:
    return sapwood.train({**PARAMS, **more}, Dataset(X, label=Y)).to_bytes()


class Signals:
    """A callback that sends a signal to its own process, once, in some round; a file
    remembers that it has.
    """

    def __init__(self, path: Path, index: int, number: int) -> None:
        self.path = path
        self.index = index
        self.number = number

    def __call__(self, view: Any) -> None:
        if view.index == self.index:
            try:
                self.path.touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), self.number)


def test_killed_worker(tmp_path: Path) -> None:
    with cluster(2) as client:
        kill = Signals(tmp_path / "killed", 7, signal.SIGKILL)
        model = on_dask.train(
            PARAMS, *rows(*[100] * 9), client=client, callbacks=[kill], timeout=20
        )
        assert (tmp_path / "killed").exists()
        assert model.to_bytes() == whole()


@pytest.mark.nightly
def test_stopped_worker(tmp_path: Path) -> None:
    """A process that does not answer counts as lost after the timeout; its rows are
    read again elsewhere.

    When it goes on, it ends, and its nanny starts another one.
    """
    with cluster(3) as client:
        stop = Signals(tmp_path / "stopped", 7, signal.SIGSTOP)
        start = time.monotonic()
        before = client.run(os.getpid)
        model = on_dask.train(
            PARAMS, *rows(*[100] * 9), client=client, callbacks=[stop], timeout=5
        )
        assert model.to_bytes() == whole()
        assert time.monotonic() - start < 60
        for pid in before.values():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
        client.wait_for_workers(3, timeout=120)
        assert on_dask.train(
            {**PARAMS, "random_state": 1}, *rows(*[100] * 9), client=client
        ).to_bytes() == whole(random_state=1)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [1, 2, 7])
def test_numbers_of_workers(n: int, tmp_path: Path) -> None:
    with cluster(n) as client:
        for seed, sizes in enumerate(
            [(900,), (450, 450), (1, 17, 882), (100,) * 9, (0, 300, 0, 600)]
        ):
            own = {"random_state": seed}
            assert on_dask.train(
                {**PARAMS, **own}, *rows(*sizes), client=client
            ).to_bytes() == whole(**own)
        kill = Signals(tmp_path / "killed", 5, signal.SIGKILL)
        model = on_dask.train(
            {**PARAMS, "random_state": 9},
            *rows(*[100] * 9),
            client=client,
            callbacks=[kill],
            timeout=20,
        )
        assert model.to_bytes() == whole(random_state=9)


@pytest.mark.nightly
def test_worker_added_and_client_gone_and_back() -> None:
    with cluster(2) as client:
        long = {**PARAMS, "n_estimators": 400}
        address = client.scheduler.address
        data = rows(*[100] * 9)
        gone = distributed.Client(address, set_as_default=False)
        held = client.persist(list(data))  # the rows stay when the other client is gone

        async def begin() -> None:
            await start_training(gone, long, *held, None, None, None, None, 20)

        task = asyncio.run_coroutine_threadsafe(begin(), gone.loop.asyncio_loop)
        time.sleep(2)
        client.cluster.scale(3)
        task.cancel()
        gone.close()
        assert on_dask.train(long, *held, client=client).to_bytes() == whole(
            n_estimators=400
        )


@pytest.mark.nightly
def test_killed_before_and_after() -> None:
    """Rows that were lost before the training are computed again; a model and its
    predictions need no worker of it.
    """
    with cluster(2) as client:
        data = client.persist(list(rows(*[100] * 9)))
        distributed.wait(data)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        model = on_dask.train(PARAMS, *data, client=client, timeout=20)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        assert model.to_bytes() == whole()
        np.testing.assert_array_equal(
            on_dask.predict(model, data[0]).compute(), model.predict(X)
        )


def pause(dask_worker: Any) -> None:
    dask_worker.status = distributed.core.Status.paused


class Pauses:
    """A callback that pauses its worker in some round, as one does that runs out of
    memory.
    """

    def __call__(self, view: Any) -> None:
        if view.index == 3:
            worker = distributed.get_worker()
            worker.loop.add_callback(pause, worker)


@pytest.mark.nightly
def test_paused_worker() -> None:
    """A worker that is paused in the training goes on with it; one that was paused
    before it gives its rows away.
    """
    with cluster(2) as client:
        data = client.persist(list(rows(*[100] * 9)))
        distributed.wait(data)
        address = sorted(client.scheduler_info()["workers"])[0]
        client.run(pause, workers=[address])
        assert (
            on_dask.train(PARAMS, *data, client=client, timeout=20).to_bytes()
            == whole()
        )
    with cluster(2) as client:
        found = on_dask.train(
            PARAMS, *rows(*[100] * 9), client=client, callbacks=[Pauses()], timeout=20
        )
        assert found.to_bytes() == whole()


@pytest.mark.nightly
@pytest.mark.parametrize("event", ["restart", "close"])
def test_scheduler_restarted_or_gone(event: str) -> None:
    """The training raises in bounded time, or ends with the right bytes; it never
    hangs.
    """
    with cluster(2, silence_logs=50) as client:
        long = {**PARAMS, "n_estimators": 3000}
        task = (
            client.restart
            if event == "restart"
            else lambda: client.cluster.sync(client.cluster.scheduler.close)
        )
        timer = threading.Timer(3, task)
        timer.start()
        start = time.monotonic()
        with pytest.raises((SapwoodError, OSError, asyncio.CancelledError)):
            on_dask.train(long, *rows(*[100] * 9), client=client, timeout=10)
        assert time.monotonic() - start < 60
        timer.join(60)


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_tls(tmp_path: Path) -> None:
    """Messages go through Dask's own TLS, and a killed worker is noticed."""
    key = tmp_path / "key.pem"
    certificate = tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run(
        [*made, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    files = {
        f"tls_{role}_{what}": str(path)
        for role in ("client", "scheduler", "worker")
        for what, path in (("key", key), ("cert", certificate))
    }
    security = distributed.Security(
        tls_ca_file=str(certificate), require_encryption=True, **files
    )
    with cluster(2, security=security, protocol="tls://") as client:
        kill = Signals(tmp_path / "killed", 7, signal.SIGKILL)
        model = on_dask.train(
            PARAMS, *rows(*[100] * 9), client=client, callbacks=[kill], timeout=20
        )
        assert (tmp_path / "killed").exists() and model.to_bytes() == whole()


def test_what_cannot_recover_raises(tmp_path: Path) -> None:
    with cluster(1, silence_logs=50) as client:
        parts = [client.scatter(X), client.scatter(Y)]
        kill = Signals(tmp_path / "killed", 3, signal.SIGKILL)
        start = time.monotonic()
        # where no other starts in time
        with pytest.raises(SapwoodError, match=r"lost|no running worker"):
            on_dask.train(
                PARAMS, parts[:1], parts[1:], client=client, callbacks=[kill], timeout=5
            )
        assert time.monotonic() - start < 60
