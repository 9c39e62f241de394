"""Holders of rows as processes of one machine, joined by pipes of `multiprocessing`.

In: a function of one holder's communicator that returns bytes. Out: these bytes for
each of them.
"""

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from sapwood.errors import HolderLostError, SapwoodError
from sapwood.holders.communicator import Communicator

TIMEOUT = 120.0  # seconds that a holder waits for another
MAX_MESSAGE = 1 << 31  # bytes; a longer one is not ours
DONE = b"0"
FAILED = b"1"


class PipeLink:
    """A `Link` over pipes, one to each other holder; a thread writes, so that two
    holders can send at once.
    """

    def __init__(self, rank: int, pipes: Sequence[Any], timeout: float) -> None:
        self.rank = rank
        self.size = len(pipes)
        self._pipes = pipes
        self._timeout = timeout
        self._queue: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def send(self, to: int, message: bytes) -> None:
        """Queue a message for another holder."""
        self._queue.put((to, message))

    def receive(self, source: int) -> bytes:
        """Read the next message of another holder."""
        pipe: Connection = self._pipes[source]
        try:
            if not pipe.poll(self._timeout):
                raise HolderLostError(
                    f"holder {source} sent nothing for {self._timeout:g} seconds."
                )
            return pipe.recv_bytes(MAX_MESSAGE)
        except (EOFError, OSError) as cause:
            raise HolderLostError(
                f"holder {source} has ended, or sent what is no message."
            ) from cause

    def close(self) -> None:
        """Send what is queued, and end."""
        self._queue.put(None)
        self._writer.join(self._timeout)

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._pipes[item[0]].send_bytes(item[1])
            except OSError:  # the other has ended; receive() tells
                return


def _work(
    rank: int,
    mesh: list[list[Any]],
    back: Any,
    timeout: float,
    f: Callable[..., bytes],
    args: Any,
) -> None:
    """What one process does. It closes the ends of the others' pipes, so that a holder
    that ends is noticed.
    """
    for other, row in enumerate(mesh):
        for pipe in row if other != rank else ():
            if pipe is not None:
                pipe.close()
    link = PipeLink(rank, mesh[rank], timeout)
    try:
        message = DONE + f(Communicator(link), *args)
    except Exception as error:
        lost = b"lost " if isinstance(error, HolderLostError) else b""
        message = (
            FAILED
            + lost
            + f"{type(error).__name__}: {error}".encode(errors="backslashreplace")
        )
    link.close()
    back.send_bytes(message)


def run(
    n: int,
    f: Callable[..., bytes],
    *args: Any,
    timeout: float = TIMEOUT,
    method: str | None = "spawn",
) -> list[bytes]:
    """Call f(communicator, *args) in n processes; what they return, in the order of
    holders.

    Where one fails, or is killed, an error says which; the others end by themselves.
    """
    context = multiprocessing.get_context(method)
    mesh: list[list[Any]] = [[None] * n for _ in range(n)]
    for a in range(n):
        for b in range(a):
            mesh[a][b], mesh[b][a] = context.Pipe()
    results = [context.Pipe(duplex=False) for _ in range(n)]
    workers = [
        context.Process(  # type: ignore[attr-defined]
            target=_work,
            args=(rank, mesh, results[rank][1], timeout, f, args),
            daemon=True,
        )
        for rank in range(n)
    ]
    for worker in workers:
        worker.start()
    for pipe in [pipe for row in mesh for pipe in row if pipe is not None] + [
        end for _, end in results
    ]:
        pipe.close()
    found: dict[int, bytes] = {}
    waiting: dict[Any, int] = {
        reading: rank for rank, (reading, _) in enumerate(results)
    }
    while waiting:
        ready: list[Any] = wait(list(waiting))
        for pipe in ready:
            rank = waiting.pop(pipe)
            try:
                found[rank] = pipe.recv_bytes()
            except (EOFError, OSError):
                found[rank] = FAILED + b"the process was killed"
    for worker in workers:
        worker.join()
    failed = {rank: raw[1:] for rank, raw in found.items() if raw[:1] == FAILED}
    if failed:
        rank = min(failed, key=lambda rank: (failed[rank].startswith(b"lost "), rank))
        raise SapwoodError(
            f"holder {rank} failed: {failed[rank].removeprefix(b'lost ').decode()}"
        )
    return [found[rank][1:] for rank in range(n)]
