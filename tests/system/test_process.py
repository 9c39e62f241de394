"""How the library behaves in someone else's process: signals, forks, threads, limits,
memory.

What may hang or kill its process runs in one of its own, under a time limit.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.device import threads
from sapwood.errors import ParameterError

LINUX = sys.platform == "linux"

# What every script below begins with: a task whose fingerprint is known, and large
# enough to wake the pool.
PREAMBLE = """
import os, resource, signal, sys, threading, time
import numpy as np
import sapwood
from sapwood.device import host, threads

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 10)).astype(np.float32)
y = X[:, 0] * X[:, 1] + X[:, 2]

def fit(n_jobs=2, n_estimators=5):
    data = sapwood.Dataset(X, y, n_jobs=n_jobs)
    return sapwood.train({"n_estimators": n_estimators, "n_jobs": n_jobs}, data)

def n_threads():
    return len(os.listdir("/proc/self/task"))
"""


def run(script: str, *arguments: str, seconds: float = 120) -> str:
    """Run a script in its own process; what it printed. It must end in time and with
    status 0.
    """
    command = [sys.executable, "-W", "ignore", "-c", PREAMBLE + script, *arguments]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env=env
    )
    assert done.returncode == 0, (
        f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def expected() -> str:
    """The fingerprint of the preamble's task, from a process that does nothing else."""
    return run("print(fit().fingerprint())")


# --------------------------------------------------------------------------------------
# interruption
LONG_CALLS = {
    "a fit": "lambda: fit(n_estimators=1_000_000)",
    "binning": "lambda: sapwood.Dataset(np.broadcast_to(rng.random((200_000, 1)), (200_000, 1000)), n_jobs=2)",
    "a prediction": "lambda: model.predict(np.broadcast_to(X[:1], (8_000_000, 10)), n_jobs=2)",
}


@pytest.mark.parametrize("call", LONG_CALLS.values(), ids=LONG_CALLS)
def test_ctrl_c_ends_it_within_a_second(call: str, expected: str) -> None:
    script = f"""
model = fit(n_estimators=400)
call = {call}
before = n_threads()
def interrupt():
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)
timer = threading.Timer(0.4, interrupt)
timer.start()
try:
    call()
except KeyboardInterrupt:
    waited = time.perf_counter() - sent
else:
    sys.exit("over before the signal came: the test needs more work")
timer.join()
assert waited < 1, f"took {{waited:.2f}} s"
end = time.perf_counter() + 2  # the system may list the timer's thread a moment longer than Python does
while n_threads() > before and time.perf_counter() < end:
    time.sleep(0.01)
assert n_threads() <= before, "threads leaked"
print(fit().fingerprint())
"""
    assert run(script) == expected


@pytest.mark.parametrize("where", ["callback", "metric"])
def test_an_error_in_user_code_comes_out_as_it_is(where: str) -> None:
    class Own(Exception):
        pass

    def fail(*_: Any) -> float:
        raise Own("from the user")

    X = np.arange(20.0).reshape(10, 2)
    data = sapwood.Dataset(X, X[:, 0])
    params: dict[str, Any] = {
        "n_estimators": 2,
        **({"eval_metric": fail} if where == "metric" else {}),
    }
    with pytest.raises(Own, match="from the user"):
        sapwood.train(
            params,
            data,
            valid=[data],
            callbacks=[fail] if where == "callback" else None,
        )


# --------------------------------------------------------------------------------------
# processes
def test_fork_then_train_in_the_child(expected: str) -> None:
    script = """
fit()
for _ in range(3):
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
    else:
        signal.alarm(60)
        print(fit().fingerprint(), host.n_workers(), flush=True)
        os._exit(0)
print(fit().fingerprint(), host.n_workers())
"""
    assert run(script).splitlines() == [f"{expected} 1"] * 4


def test_fork_while_another_thread_fits(expected: str) -> None:
    script = """
fit()  # the rooms that are imported late are imported now: a fork in the middle of an import deadlocks any package
stop = threading.Event()
def keep_fitting():
    while not stop.is_set():
        fit()
thread = threading.Thread(target=keep_fitting)
thread.start()
for _ in range(10):
    time.sleep(0.05)
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
    else:
        signal.alarm(60)
        print(fit().fingerprint(), flush=True)
        os._exit(0)
stop.set()
thread.join()
"""
    assert run(script).splitlines() == [expected] * 10


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver", "loky"])
def test_worker_processes(method: str, expected: str, tmp_path: Path) -> None:
    script = """
def work(_):
    return fit().fingerprint()

if __name__ == "__main__":
    first = work(0)
    if sys.argv[1] == "loky":
        from joblib import Parallel, delayed
        prints = Parallel(2, backend="loky")(delayed(work)(i) for i in range(3))
    else:
        import multiprocessing
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            prints = pool.map(work, range(3))
    print(*{first, *prints})
"""
    path = tmp_path / "script.py"
    path.write_text(PREAMBLE + script)
    command = [sys.executable, "-W", "ignore", path, method]
    assert (
        subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True
        ).stdout.strip()
        == expected
    )


@pytest.mark.parametrize("use", ["a daemon thread at exit", "an exit handler"])
def test_use_while_the_interpreter_goes_away(use: str) -> None:
    daemon = """
threading.Thread(target=lambda: fit(n_estimators=1_000_000), daemon=True).start()
time.sleep(0.5)
"""
    handler = (
        "import atexit; fit(); atexit.register(lambda: print(fit().fingerprint()))"
    )
    run(daemon if "daemon" in use else handler)


# --------------------------------------------------------------------------------------
# threads
def task(seed: int, n_rows: int = 5_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 8))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def fingerprint(seed: int, n_jobs: int) -> str:
    X, y = task(seed)
    data = sapwood.Dataset(X, y, n_jobs=n_jobs)
    return sapwood.train(
        {"n_estimators": 10, "subsample": 0.8, "n_jobs": n_jobs}, data
    ).fingerprint()


@pytest.mark.threads
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_that_fit_do_not_meet(n_jobs: int) -> None:
    alone = [fingerprint(seed, 1) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(fingerprint, range(4), [n_jobs] * 4)) == alone


@pytest.mark.threads
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_sixteen_threads_predict_with_one_model(n_jobs: int) -> None:
    X, y = task(0)
    booster = sapwood.train({"n_estimators": 20}, sapwood.Dataset(X, y))
    alone = booster.predict(X, n_jobs=1)
    gate = threading.Barrier(16)

    def predict(_: int) -> bool:
        gate.wait()
        return all(
            np.array_equal(booster.predict(X, n_jobs=n_jobs), alone) for _ in range(3)
        )

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(predict, range(16)))


@pytest.mark.threads
def test_a_fit_and_predictions_at_the_same_time() -> None:
    X, y = task(0)
    booster = sapwood.train({"n_estimators": 20}, sapwood.Dataset(X, y))
    alone, expected = booster.predict(X), fingerprint(1, 2)
    with ThreadPoolExecutor(3) as threads:
        fits = [threads.submit(fingerprint, 1, 2) for _ in range(3)]
        outputs = [threads.submit(booster.predict, X, n_jobs=2) for _ in range(9)]
        assert {fit.result() for fit in fits} == {expected}
        assert all(np.array_equal(output.result(), alone) for output in outputs)


@pytest.mark.threads
def test_two_threads_fit_the_same_estimator() -> None:
    X, y = task(0)
    model = sapwood.SapwoodRegressor(n_estimators=10, n_jobs=2)
    expected = (
        sapwood.SapwoodRegressor(n_estimators=10, n_jobs=1)
        .fit(X, y)
        .booster_.fingerprint()
    )
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: model.fit(X, y), range(4)))
    assert model.booster_.fingerprint() == expected


@pytest.mark.threads
def test_datasets_are_shared_between_fits() -> None:
    X, y = task(0)
    data = sapwood.Dataset(X, y)
    with ThreadPoolExecutor(3) as threads:
        fits = threads.map(
            lambda n: sapwood.train(
                {"n_estimators": 5, "n_jobs": n}, data
            ).fingerprint(),
            (1, 2, 3),
        )
        assert len(set(fits)) == 1


# --------------------------------------------------------------------------------------
# limits
@pytest.mark.skipif(not LINUX, reason="counts threads in /proc")
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_n_jobs_is_the_number_of_threads(n_jobs: int, expected: str) -> None:
    script = """
n_jobs = int(sys.argv[1])
before = n_threads()
model = fit(n_jobs)
model.predict(X, n_jobs=n_jobs)
print(model.fingerprint(), n_threads() - before, host.n_workers())
"""
    workers = n_jobs - 1  # the caller is the other thread
    if n_jobs > 4 * threads.available():
        pytest.skip("more than four threads a CPU are never started")
    assert run(script, str(n_jobs)) == f"{expected} {workers} {workers}"


@pytest.mark.skipif(not LINUX, reason="sets the affinity of a process")
def test_an_affinity_of_one_cpu_is_one_thread(expected: str) -> None:
    script = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(threads.threads(None), fit(None).fingerprint(), host.n_workers())
"""
    assert run(script) == f"1 {expected} 0"


def test_n_jobs_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available", lambda: 8)
    assert [threads.threads(n) for n in (None, -1, -2, -100, 1, 8, 9, 1000)] == [
        8,
        8,
        7,
        1,
        1,
        8,
        9,
        32,
    ]
    monkeypatch.setattr(threads, "available", lambda: 128)
    assert threads.threads(1000) == 256
    with pytest.raises(ParameterError, match="n_jobs=0"):
        threads.threads(0)


V1 = {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}
QUOTAS: dict[str, tuple[str, dict[str, str], int]] = {
    "two and a half CPUs": ("0::/", {"cpu.max": "250000 100000"}, 2),
    "half a CPU": ("0::/", {"cpu.max": "50000 100000"}, 1),
    "no limit": ("0::/", {"cpu.max": "max 100000"}, 64),
    "a period of 0": ("0::/", {"cpu.max": "100000 0"}, 64),
    "no file": ("0::/a/b", {}, 64),
    "the tightest of the path": (
        "0::/a/b",
        {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"},
        3,
    ),
    "version 1": (
        "4:cpu:/a",
        {**V1, "cpu/a/cpu.cfs_quota_us": "400000", "cpu/a/cpu.cfs_period_us": "100000"},
        4,
    ),
    "version 1, no limit": ("4:cpu:/", V1, 64),
}


@pytest.mark.parametrize(("own", "files", "cpus"), QUOTAS.values(), ids=QUOTAS)
def test_the_quota_of_the_cgroup(
    own: str,
    files: dict[str, str],
    cpus: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own").write_text(own + "\n")
    for name, text in files.items():
        path = tmp_path / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    quota: Callable[..., int] = threads.quota
    monkeypatch.setattr(
        threads, "quota", lambda: quota(tmp_path / "own", tmp_path / "mount")
    )
    monkeypatch.setattr(
        os, "sched_getaffinity", lambda _: set(range(64)), raising=False
    )
    assert threads.available() == cpus


@pytest.mark.skipif(not LINUX, reason="limits of Linux")
def test_fewer_threads_where_no_more_can_be_started(expected: str) -> None:
    script = """
fit(1)  # everything that is imported late is imported now
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)  # root has no such limit
try:
    threading.Thread(target=int).start()
except RuntimeError:
    print(fit(2).fingerprint(), host.n_workers())
else:
    print("no limit")
"""
    printed = run(script)
    if printed == "no limit":
        pytest.skip("this system does not enforce RLIMIT_NPROC")
    assert printed == f"{expected} 0"


@pytest.mark.skipif(not LINUX, reason="limits of Linux")
def test_out_of_memory_is_an_error_and_the_next_fit_works(expected: str) -> None:
    script = """
fit()
unlimited = resource.getrlimit(resource.RLIMIT_AS)
page, refused = resource.getpagesize(), 0
big = np.broadcast_to(rng.random((100_000, 1), dtype=np.float32), (100_000, 200))
def attempt():
    data = sapwood.Dataset(big, big[:, 0], n_jobs=2)
    return sapwood.train({"n_estimators": 2, "n_jobs": 2}, data).predict(big, n_jobs=2)
for megabytes in (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 4096):
    used = int(open("/proc/self/statm").read().split()[0]) * page
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, unlimited[1]))
    try:
        attempt()
    except MemoryError:
        refused += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
assert 3 < refused < 18, refused
print(fit().fingerprint())
"""
    assert run(script) == expected
