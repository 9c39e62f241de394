"""Holders of rows as threads of one process.

In: a function of one holder's communicator. Out: what it returned for each of them.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from sapwood.errors import HolderLostError
from sapwood.holders.communicator import Communicator

T = TypeVar("T")
TIMEOUT = 120.0  # seconds that a holder waits for another


class ThreadLink:
    """A `Link` of one of several threads; `queues` has a queue for each pair of sender
    and receiver.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        queues: list[list["SimpleQueue[bytes | None]"]],
        timeout: float,
    ) -> None:
        self.rank = rank
        self.size = size
        self._queues = queues
        self._timeout = timeout

    def send(self, to: int, message: bytes) -> None:
        """Put a message into the queue of a pair."""
        self._queues[self.rank][to].put(message)

    def receive(self, source: int) -> bytes:
        """Take the next message out of the queue of a pair."""
        try:
            found = self._queues[source][self.rank].get(timeout=self._timeout)
        except Empty as cause:
            raise HolderLostError(
                f"holder {source} sent nothing for {self._timeout:g} seconds."
            ) from cause
        if found is None:
            raise HolderLostError(f"holder {source} has ended.")
        return found

    def end(self) -> None:
        """Let the others know that nothing more will come."""
        for to in range(self.size):
            self._queues[self.rank][to].put(None)


def run(n: int, f: Callable[[Communicator], T], timeout: float = TIMEOUT) -> list[T]:
    """Call f(communicator) in n threads; the results in the order of holders, or the
    error of the first that failed.
    """
    queues: list[list[SimpleQueue[bytes | None]]] = [
        [SimpleQueue() for _ in range(n)] for _ in range(n)
    ]
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def work(rank: int) -> None:
        link = ThreadLink(rank, n, queues, timeout)
        try:
            results[rank] = f(Communicator(link))
        except BaseException as error:
            errors.append(error)
        finally:
            link.end()

    threads = [
        threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(n)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next(
            (error for error in errors if not isinstance(error, HolderLostError)),
            errors[0],
        )
    return [results[rank] for rank in range(n)]
