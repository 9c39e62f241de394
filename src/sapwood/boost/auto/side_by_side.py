"""Trainings side by side, each in a thread of its own.

In: functions that train. Out: their results in this order, the same as if they were
called one after the other.

Rounds on few rows are too short to be divided among threads: with two threads, two
trainings side by side take 0.66 to 1.04 of the time that they take one after the other
(docs/defaults_evidence.md).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from sapwood.data.progress import Sight, watching
from sapwood.device import host

T = TypeVar("T")
MOST = 4  # trainings at a time: each has scores and gradients of its own


class _Halted(Exception):
    """Another training has failed, or the user pressed Ctrl-C."""


def together(jobs: Sequence[Callable[[], T]], n_threads: int) -> list[T]:
    """Call functions side by side, at most so many at a time; who watches progress sees
    the first.

    Where one raises, the others end with the round that they are in.
    """
    n_workers = min(len(jobs), n_threads, MOST)
    if n_workers < 2:
        return [job() for job in jobs]
    halt = Event()

    def see(_: Sight) -> None:
        if halt.is_set():
            raise _Halted

    def watched(job: Callable[[], T], alone: bool) -> T:
        host.share_threads(1)
        try:
            with watching(see, alone):
                return job()
        finally:
            host.share_threads(-1)

    with ThreadPoolExecutor(n_workers) as pool:
        try:
            try:
                futures = [
                    pool.submit(copy_context().run, watched, job, at > 0)
                    for at, job in enumerate(jobs)
                ]
            except RuntimeError as cause:
                raise MemoryError(
                    "no thread can be started for a training; set n_jobs=1."
                ) from cause
            return [future.result() for future in futures]
        except BaseException:
            halt.set()
            # the block waits for those that have begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
