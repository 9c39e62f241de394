"""Messages between Dask workers, over Dask's own comms: with TLS where the cluster has
it.

In: the workers of one attempt at a training. Out: a `sapwood.holders.Link`, which
notices workers that are gone.

A training runs in a thread of a task. `outbox.py` has the three ways in which a message
leaves it. The worker's event loop answers the question whether the training is still
running while its thread computes.
"""

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from concurrent.futures import wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from distributed.comm import connect
from distributed.core import Status

from sapwood.dask import outbox
from sapwood.dask.outbox import LINK, MESSAGE, READY, STATE
from sapwood.errors import HolderLostError, MessageError
from sapwood.version import VERSION

POLL = 0.5  # seconds between two questions while nothing comes
# names of ended attempts that are kept, so that late messages are dropped
MAX_ENDED = 1000


class Mail:
    """What the workers of this process have received for the attempts that run on them:
    messages, or sockets.

    The name of a box has the attempt and the rank of the holder: several workers may
    share a process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[tuple[str, int], SimpleQueue[Any]] = {}
        self._running: set[str] = set()
        self._ended: deque[str] = deque(maxlen=MAX_ENDED)

    def queue(self, name: str, source: int) -> "SimpleQueue[Any]":
        """What comes from one holder; it may come before this worker's own task has
        started.
        """
        with self._lock:
            return self._queues.setdefault((name, source), SimpleQueue())

    def put(self, name: str, source: int, item: Any) -> None:
        """Take in a message or a socket, unless the attempt has ended here."""
        if name not in self._ended:
            self.queue(name, source).put(item)
        elif isinstance(item, socket.socket):
            item.close()

    def state(self, name: str) -> str:
        """What this worker does for an attempt: 'waiting' for its task to start,
        'running' or 'ended'.
        """
        return (
            "running"
            if name in self._running
            else "ended"
            if name in self._ended
            else "waiting"
        )

    def begin(self, name: str) -> None:
        """An attempt runs here."""
        self._running.add(name)

    def end(self, name: str) -> None:
        """An attempt has ended here."""
        with self._lock:
            self._running.discard(name)
            self._ended.append(name)
            gone = [queue for key, queue in self._queues.items() if key[0] == name]
            self._queues = {
                key: queue for key, queue in self._queues.items() if key[0] != name
            }
        for queue in gone:
            while not queue.empty():
                item = queue.get()
                if isinstance(item, socket.socket):
                    item.close()


MAIL = Mail()


def _on_message(name: str, source: int, message: bytes) -> None:
    MAIL.put(name, source, message)


def _on_state(name: str) -> str:
    return MAIL.state(name)


def _on_link(comm: Any, name: str, source: int) -> Any:
    """Take the socket of a comm over from Dask; the other side waits for the answer
    before it sends.
    """
    line = outbox.taken_over(comm)
    with suppress(OSError):  # the other may be gone already
        line.send(READY)
    MAIL.put(name, source, line)
    return Status.dont_reply


def install(dask_worker: Any) -> dict[str, str]:
    """Make a worker ready to receive messages; what it runs."""
    dask_worker.handlers.update(
        {MESSAGE: _on_message, STATE: _on_state, LINK: _on_link}
    )
    return {"sapwood": VERSION}


class DaskLink:
    """The link of one attempt on one worker.

    worker: the Dask worker; key: the key of the task that trains.
    addresses: of the workers of all holders, by rank.
    timeout: seconds after which a worker that does not answer, or has not started its
    task, counts as lost.
    """

    def __init__(
        self,
        worker: Any,
        key: Any,
        name: str,
        rank: int,
        addresses: Sequence[str],
        timeout: float,
    ) -> None:
        self.rank = rank
        self.size = len(addresses)
        self._addresses = addresses
        self._boxes = [f"{name}:{one}" for one in range(self.size)]
        self._worker = worker
        self._key = key
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._outboxes: dict[int, outbox.Outbox] = {}
        self._queues = [
            MAIL.queue(self._boxes[rank], source) for source in range(self.size)
        ]
        # by holder: where its messages come in, if over a socket
        self._lines: dict[int, outbox.Inlet] = {}
        MAIL.begin(self._boxes[rank])

    def send(self, to: int, message: bytes) -> None:
        """Hand over a message; it is under way when this returns."""
        if to not in self._outboxes:
            self._outboxes[to] = self._outbox(to)
        self._outboxes[to].put(message)

    def receive(self, source: int) -> bytes | memoryview:
        """Wait for the next message; the other's event loop is asked from time to time
        whether it is still there.
        """
        self.check_cancelled()
        start = time.monotonic()
        silent = False
        while True:
            try:
                if source in self._lines:
                    return self._lines[source].read(POLL)
                item = self._queues[source].get(timeout=POLL)
            except (Empty, TimeoutError):
                self.check_cancelled()
                self._check_sent()
                if silent:
                    raise self._ended(source) from None
                # what it has sent before may still be on its way
                silent = self._has_ended(source, start)
            except OSError:
                raise self._ended(source) from None
            except MessageError as cause:
                raise MessageError(
                    f"worker {self._addresses[source]} sent what is no message: {cause}"
                ) from None
            else:
                if isinstance(item, socket.socket):
                    self._lines[source] = outbox.Inlet(item)
                elif isinstance(item, bytes | bytearray | memoryview):
                    return bytes(item)
                else:
                    raise HolderLostError(
                        f"worker {self._addresses[source]} sent no bytes."
                    )

    def check_cancelled(self) -> None:
        """Raise where Dask has taken the task back: it was cancelled, or its client is
        gone.
        """
        task = self._worker.state.tasks.get(self._key)
        if task is None or task.state in ("cancelled", "released", "forgotten"):
            raise HolderLostError(f"the task {self._key} was cancelled.")

    def close(self) -> None:
        """Leave the attempt."""
        for one in self._outboxes.values():
            one.close(self._timeout)
        for line in self._lines.values():
            line.close()
        MAIL.end(self._boxes[self.rank])

    def _outbox(self, to: int) -> outbox.Outbox:
        address = self._addresses[to]
        box = self._boxes[to]
        if address.startswith("inproc://"):
            return outbox.Local(lambda message: MAIL.put(box, self.rank, message))
        found = self._of_loop(self._open(address, box), address)
        if not isinstance(found, socket.socket):
            return found  # type: ignore[no-any-return]
        try:
            found.settimeout(self._timeout)
            if found.recv(1) != READY:
                raise self._ended(to)
            found.settimeout(None)
        except OSError as cause:
            raise HolderLostError(f"worker {address} does not answer.") from cause
        return outbox.Line(found)

    async def _open(self, address: str, box: str) -> Any:
        comm = await connect(
            address, timeout=self._timeout, **self._worker.connection_args
        )
        head = {"name": box, "source": self.rank, "reply": False}
        if not outbox.can_take_over(comm):
            return outbox.Looped(self._loop, comm, {"op": MESSAGE, **head})
        await comm.write({"op": LINK, **head})
        return outbox.taken_over(comm)

    def _ended(self, source: int) -> HolderLostError:
        return HolderLostError(f"worker {self._addresses[source]} has ended its part.")

    def _has_ended(self, source: int, start: float) -> bool:
        """Whether another has ended its part; raises where it does not answer, or does
        not start.
        """
        address = self._addresses[source]
        state = self._of_loop(self._ask(address, self._boxes[source]), address)
        if state == "waiting" and time.monotonic() - start > self._timeout:
            raise HolderLostError(
                f"worker {address} has not started its part for {self._timeout:g} seconds."
            )
        return bool(state == "ended")

    async def _ask(self, address: str, box: str) -> Any:
        comm = await connect(
            address, timeout=self._timeout, **self._worker.connection_args
        )
        try:
            await comm.write({"op": STATE, "name": box})
            return await comm.read()
        finally:
            await comm.close()

    def _of_loop(self, question: Coroutine[Any, Any, Any], address: str) -> Any:
        """What the event loop finds out about another worker, in bounded time."""
        asked = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(question, self._timeout), self._loop
        )
        try:
            while not asked.done():
                wait({asked}, POLL)
                self.check_cancelled()
            return asked.result()
        except HolderLostError:
            asked.cancel()
            raise
        except Exception as cause:
            raise HolderLostError(f"worker {address} does not answer.") from cause

    def _check_sent(self) -> None:
        for to, one in self._outboxes.items():
            if one.failed:
                raise self._ended(to)
