"""How many threads: what the user asked for, and what the operating system allows.

In: `n_jobs`. Out: a number of threads.
"""

import os
from functools import cache
from operator import index
from pathlib import Path, PurePosixPath

from sapwood.errors import ParameterError
from sapwood.system.address_space import free_bytes

MAX_THREADS = 256  # the size of the core's pool
THREAD_BYTES = 72 << 20  # of address space: the stack of a thread, and its heap


def threads(n_jobs: int | None) -> int:
    """Turn ``n_jobs`` into a number of threads from 1 to 256.

    None and -1 mean every CPU this process may use, -2 all but one, and so on. At most
    four times as many are allowed.
    """
    try:
        n_jobs = None if n_jobs is None else index(n_jobs)
    except TypeError as cause:
        raise ParameterError(
            f"n_jobs={n_jobs!r} is not an integer; choose 1 or more, or None for every CPU."
        ) from cause
    if n_jobs == 0:
        raise ParameterError(
            "n_jobs=0 asks for no thread; choose 1 or more, or None for every available CPU."
        )
    cpus = available()
    if n_jobs is None:
        return within_address_space(min(cpus, MAX_THREADS))
    wanted = n_jobs if n_jobs > 0 else max(1, cpus + 1 + n_jobs)
    return within_address_space(min(wanted, 4 * cpus, MAX_THREADS))


def within_address_space(n_threads: int) -> int:
    """Fewer threads where the address space is limited: the C library ends a process in
    which a new thread gets no memory.
    """
    free = free_bytes()
    return n_threads if free is None else max(1, min(n_threads, free // THREAD_BYTES))


def available() -> int:
    """CPUs this process may use: those of its affinity, as far as the quota of its
    cgroup allows.
    """
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cpus = os.cpu_count() or 1
    return max(1, min(cpus, quota()))


@cache  # once a process: a prediction of one row cannot wait for a dozen small files
def quota(
    own: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> int:
    """The whole CPUs that every cgroup from ours up to the root grants; `MAX_THREADS`
    where none sets a limit.

    ::

        0::/a/b                v2: mount/a/b/cpu.max               "max 100000" or "150000 100000"
        4:cpu,cpuacct:/a/b     v1: mount/cpu,cpuacct/a/b/cpu.cfs_quota_us (-1 = none) and cpu.cfs_period_us
    """
    granted = float(MAX_THREADS)
    for line in _text(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        group = PurePosixPath(path)
        # a container may see only the root of the path its host knows
        for level in (group, *group.parents):
            room = mount / controllers / str(level).lstrip("/")
            limit = (
                _text(room / "cpu.max")
                or f"{_text(room / 'cpu.cfs_quota_us')} {_text(room / 'cpu.cfs_period_us')}"
            )
            match limit.split():
                case [amount, period] if (
                    amount.isdigit() and period.isdigit() and int(period) > 0
                ):
                    granted = min(granted, int(amount) / int(period))
    return int(granted)


def _text(path: Path) -> str:
    """The content of a small system file, empty where there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""
