"""Whether the libraries that Sapwood needs can be loaded, where the address space or
the threads are limited.

In: which libraries. Out: nothing, or a MemoryError in one sentence, before a library
would end the process.

OpenBLAS, in NumPy and in SciPy, takes memory for each of its threads when it is loaded.
Where it gets none it ends the process, sends it SIGINT, or waits for ever, so the space
is measured before (`ulimit -v`, RLIMIT_AS).
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Bytes of address space that imports take with one thread of OpenBLAS, and for each
# further thread. Measured with NumPy 2.4, SciPy 1.17 and scikit-learn 1.9 on Linux:
# 112, 379 and 43 MB.
NUMPY_BYTES = 130_000_000
SKLEARN_BYTES = 420_000_000
THREAD_BYTES = 46_000_000
MAX_BLAS_THREADS = 64  # as the wheels of NumPy and SciPy are built
# in the order that OpenBLAS reads them
THREAD_NAMES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
# What the loader says where it gets no memory.
LOADER_WORDS = (
    "failed to map segment",
    "cannot allocate memory",
    "cannot apply additional memory protection",
)


def free_bytes() -> int | None:
    """How far the address space may still grow; None where it is not limited, or where
    that is not known.
    """
    try:
        import resource  # there is none on Windows
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            n_pages = int(file.read().split()[0])
    except OSError:
        return None
    return max(0, limit - n_pages * resource.getpagesize())


def blas_threads() -> int:
    """The threads that OpenBLAS has when it is loaded."""
    for name in THREAD_NAMES:
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value) > 0:
            return min(int(value), _n_cores())
    return _n_cores()


def needed_bytes(estimators: bool, n_threads: int) -> int:
    """The address space that the libraries take which are not loaded yet; `estimators`:
    SciPy and scikit-learn too.
    """
    further = (n_threads - 1) * THREAD_BYTES
    n_bytes = 0
    if "numpy" not in sys.modules:
        n_bytes += NUMPY_BYTES + further
    if estimators and "sklearn.base" not in sys.modules:
        n_bytes += SKLEARN_BYTES
        n_bytes += 0 if "scipy.linalg" in sys.modules else further
    return n_bytes


@contextmanager
def loading(estimators: bool = False) -> Iterator[None]:
    """Load libraries in this block: a MemoryError says so where the address space is
    too small for them.

    Where there is room for one thread of OpenBLAS, but not for all, OpenBLAS gets one:
    it computes no model.
    """
    free = free_bytes()
    n_threads = blas_threads()
    if free is None:
        single = n_threads > 1 and not threads_can_start(n_threads)
    else:  # threads that were tried would leave less of it
        single = n_threads > 1 and free < needed_bytes(estimators, n_threads)
        _check(estimators, free, 1 if single else n_threads)
    before = os.environ.get(THREAD_NAMES[0])
    if single:
        os.environ[THREAD_NAMES[0]] = "1"
    try:
        yield
    except (ImportError, SystemError, OSError) as cause:
        if not _is_lack_of_memory(cause):
            raise
        raise MemoryError(
            "a library cannot be loaded, since the address space is limited (ulimit -v, RLIMIT_AS); raise the limit."
        ) from cause
    finally:
        if single:
            _restore(before)


def threads_can_start(n_threads: int) -> bool:
    """Whether the system starts as many threads now; it is tried only where their
    number is limited.
    """
    try:
        import resource  # there is none on Windows
    except ImportError:
        return True
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if "numpy" in sys.modules or limit == resource.RLIM_INFINITY:
        return True
    done = threading.Event()
    started = []
    try:
        for _ in range(n_threads):
            thread = threading.Thread(target=done.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        done.set()
        for thread in started:
            thread.join()
    return True


def _check(estimators: bool, free: int, n_threads: int) -> None:
    """Raise where what is not loaded yet takes more than is free."""
    needed = needed_bytes(estimators, n_threads)
    if free < needed:
        raise MemoryError(
            f"the libraries that Sapwood loads first need {needed / 1e6:.0f} MB of address space, and "
            f"{free / 1e6:.0f} MB are left; raise the limit (ulimit -v, RLIMIT_AS)."
        )


def _is_lack_of_memory(cause: BaseException | None) -> bool:
    """Whether the loader, or what it loaded, got no memory."""
    while cause is not None:
        if isinstance(cause, MemoryError) or any(
            words in str(cause).lower() for words in LOADER_WORDS
        ):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _n_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # which Linux has
    n_cores = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    return min(MAX_BLAS_THREADS, n_cores)


def _restore(before: str | None) -> None:
    """Set the number of threads back to what the user has."""
    if before is None:
        del os.environ[THREAD_NAMES[0]]
    else:
        os.environ[THREAD_NAMES[0]] = before
