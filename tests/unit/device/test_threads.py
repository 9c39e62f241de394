"""How many threads: what was asked for, the affinity, and the quota of the cgroup; how
many tasks for them.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from sapwood import _core
from sapwood.device import host, threads
from sapwood.errors import ParameterError


@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [
        (None, 8),
        (-1, 8),
        (-2, 7),
        (-7, 2),
        (-8, 1),
        (-100, 1),
        (1, 1),
        (5, 5),
        (9, 9),
        (32, 32),
        (33, 32),
        (10**6, 32),
    ],
)
def test_threads_of_eight_cpus(
    monkeypatch: pytest.MonkeyPatch, n_jobs: int | None, expected: int
) -> None:
    monkeypatch.setattr(threads, "available", lambda: 8)
    assert threads.threads(n_jobs) == expected


def test_never_more_threads_than_the_pool_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available", lambda: 1000)
    assert threads.threads(None) == threads.threads(-1) == threads.threads(999) == 256


def test_no_thread_is_an_error() -> None:
    with pytest.raises(ParameterError, match="n_jobs=0"):
        threads.threads(0)


def test_affinity_and_quota_both_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    for quota, expected in ((256, 6), (4, 4), (0, 1)):
        monkeypatch.setattr(threads, "quota", lambda quota=quota: quota)
        assert threads.available() == expected


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_quota_of_version_2_is_the_least_along_the_path(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    mount = tmp_path / "fs"
    write(own, "0::/pod/box\n")
    write(mount / "pod/box/cpu.max", "max 100000\n")
    assert threads.quota(own, mount) == 256
    write(mount / "pod/cpu.max", "350000 100000\n")
    assert threads.quota.__wrapped__(own, mount) == 3
    write(mount / "pod/box/cpu.max", "50000 100000\n")
    # half a CPU: `available` makes one of it
    assert threads.quota.__wrapped__(own, mount) == 0
    write(mount / "pod/box/cpu.max", "100000 0\n")  # means nothing
    assert threads.quota.__wrapped__(own, mount) == 3


def test_quota_of_version_1(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    mount = tmp_path / "fs"
    write(own, "5:memory:/pod\n4:cpu,cpuacct:/pod\n3:cpuset:/pod\n")
    write(mount / "cpu,cpuacct/pod/cpu.cfs_quota_us", "-1\n")
    write(mount / "cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n")
    assert threads.quota.__wrapped__(own, mount) == 256
    write(mount / "cpu,cpuacct/pod/cpu.cfs_quota_us", "200000\n")
    assert threads.quota.__wrapped__(own, mount) == 2


def test_a_container_that_sees_only_the_root_of_its_group(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    mount = tmp_path / "fs"
    write(own, "0::/docker/0123456789abcdef\n")
    write(mount / "cpu.max", "200000 100000\n")
    assert threads.quota.__wrapped__(own, mount) == 2


def test_no_cgroup_is_no_limit(tmp_path: Path) -> None:
    assert threads.quota.__wrapped__(tmp_path / "none", tmp_path) == 256


def test_more_tasks_than_a_run_may_have() -> None:
    # a task a column; 2^18 - 1 in a run
    X = np.random.default_rng(0).normal(size=(2, 263_000)).astype(np.float32)
    by_threads = [np.concatenate(_core.cuts([X], None, 255, 1, n)) for n in (1, 2, 3)]
    assert len(by_threads[0]) == X.shape[1]
    np.testing.assert_array_equal(
        by_threads[0], 0.5 * X[0].astype(np.float64) + 0.5 * X[1]
    )
    for found in by_threads[1:]:
        np.testing.assert_array_equal(found, by_threads[0])


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "float32", "float64"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 90])
@pytest.mark.parametrize("late", [False, True])
def test_distinct_values_are_those_of_numpy(
    kind: str, n_classes: int, late: bool
) -> None:
    rng = np.random.default_rng(n_classes)
    # -0.0 is 0.0
    values = rng.integers(0, n_classes, 5000).astype(kind) * (
        -1 if kind.startswith("float") else 1
    )
    if late:  # most are not among the first
        values[:2000] = values[0]
    found, index = host.distinct(values, 1000)
    expected, at = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(index, at)
    assert not np.signbit(found[found == 0]).any()


def test_distinct_values_beyond_the_limit_or_not_a_number_are_given_up() -> None:
    gap = np.ones(3000)
    gap[2500] = np.nan
    assert (
        host.distinct(gap, 10) is None and host.distinct(np.arange(9.0) % 3, 2) is None
    )


def test_fewer_threads_start_where_the_address_space_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sapwood.device.threads.available", lambda: 8)
    monkeypatch.setattr("sapwood.device.threads.free_bytes", lambda: 40 << 20)
    assert threads.threads(None) == threads.threads(4) == 1
    monkeypatch.setattr("sapwood.device.threads.free_bytes", lambda: 150 << 20)
    assert threads.threads(None) == 2
    monkeypatch.setattr("sapwood.device.threads.free_bytes", lambda: None)
    assert threads.threads(None) == 8
