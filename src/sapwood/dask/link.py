"""Messages between Dask workers, over Dask's own comms: with TLS where the cluster has it.

In: the workers of one attempt at a training. Out: a `sapwood.holders.Link`, which notices workers that are gone.

A training runs in a thread of a task. Messages go through the worker's event loop, which also answers the question
whether the training is still running while its thread computes.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any

from distributed.comm import connect

from sapwood.errors import HolderLostError
from sapwood.version import VERSION

MESSAGE, STATE = "sapwood_message", "sapwood_state"  # operations of a worker
POLL = 0.5  # seconds between two questions while nothing comes
MAX_ENDED = 1000  # names of ended attempts that are kept, so that late messages are dropped


class Mail:
    """What the workers of this process have received for the attempts that run on them.

    The name of a box has the attempt and the rank of the holder: several workers may share a process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[tuple[str, int], SimpleQueue[bytes]] = {}
        self._running: set[str] = set()
        self._ended: deque[str] = deque(maxlen=MAX_ENDED)

    def queue(self, name: str, source: int) -> "SimpleQueue[bytes]":
        """The messages of one holder; they may come before this worker's own task has started."""
        with self._lock:
            return self._queues.setdefault((name, source), SimpleQueue())

    def put(self, name: str, source: int, message: bytes) -> None:
        """Take in a message, unless the attempt has ended here."""
        if name not in self._ended:
            self.queue(name, source).put(message)

    def state(self, name: str) -> str:
        """What this worker does for an attempt: 'waiting' for its task to start, 'running' or 'ended'."""
        return "running" if name in self._running else "ended" if name in self._ended else "waiting"

    def begin(self, name: str) -> None:
        """An attempt runs here."""
        self._running.add(name)

    def end(self, name: str) -> None:
        """An attempt has ended here."""
        with self._lock:
            self._running.discard(name)
            self._ended.append(name)
            self._queues = {key: queue for key, queue in self._queues.items() if key[0] != name}


MAIL = Mail()


def _on_message(name: str, source: int, message: bytes) -> None:
    MAIL.put(name, source, message)


def _on_state(name: str) -> str:
    return MAIL.state(name)


def install(dask_worker: Any) -> dict[str, str]:
    """Make a worker ready to receive messages; what it runs."""
    dask_worker.handlers[MESSAGE], dask_worker.handlers[STATE] = _on_message, _on_state
    return {"sapwood": VERSION}


class DaskLink:
    """The link of one attempt on one worker.

    worker: the Dask worker; key: the key of the task that trains.
    addresses: of the workers of all holders, by rank.
    timeout: seconds after which a worker that does not answer, or has not started its task, counts as lost.
    """

    def __init__(self, worker: Any, key: Any, name: str, rank: int, addresses: Sequence[str], timeout: float) -> None:
        self.rank, self.size, self._addresses = rank, len(addresses), addresses
        self._boxes = [f"{name}:{one}" for one in range(self.size)]
        self._worker, self._key, self._timeout = worker, key, timeout
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._outboxes = {to: _Outbox(self._loop, worker, address) for to, address in enumerate(addresses)}
        self._queues = [MAIL.queue(self._boxes[rank], source) for source in range(self.size)]
        MAIL.begin(self._boxes[rank])

    def send(self, to: int, message: bytes) -> None:
        """Hand a message to the event loop."""
        self._outboxes[to].put(
            {"op": MESSAGE, "reply": False, "name": self._boxes[to], "source": self.rank, "message": message}
        )

    def receive(self, source: int) -> bytes:
        """Wait for the next message; the other's event loop is asked from time to time whether it is still there."""
        self.check_cancelled()
        start, silent = time.monotonic(), False
        while True:
            try:
                message = self._queues[source].get(timeout=POLL)
            except Empty:
                self.check_cancelled()
                if silent:
                    raise HolderLostError(f"worker {self._addresses[source]} has ended its part.") from None
                silent = self._has_ended(source, start)  # what it has sent before may still be on its way
            else:
                if not isinstance(message, bytes | bytearray | memoryview):
                    raise HolderLostError(f"worker {self._addresses[source]} sent no bytes.")
                return bytes(message)

    def check_cancelled(self) -> None:
        """Raise where Dask has taken the task back: it was cancelled, or its client is gone."""
        task = self._worker.state.tasks.get(self._key)
        if task is None or task.state in ("cancelled", "released", "forgotten"):
            raise HolderLostError(f"the task {self._key} was cancelled.")

    def close(self) -> None:
        """Leave the attempt."""
        for outbox in self._outboxes.values():
            outbox.close(self._timeout)
        MAIL.end(self._boxes[self.rank])

    def _has_ended(self, source: int, start: float) -> bool:
        """Whether another has ended its part; raises where it does not answer, or does not start."""
        address = self._addresses[source]
        asked = asyncio.run_coroutine_threadsafe(self._ask(address, self._boxes[source]), self._loop)
        try:
            state = asked.result(self._timeout + 1)
        except Exception as cause:
            asked.cancel()
            raise HolderLostError(f"worker {address} does not answer.") from cause
        if state == "waiting" and time.monotonic() - start > self._timeout:
            raise HolderLostError(f"worker {address} has not started its part for {self._timeout:g} seconds.")
        return bool(state == "ended")

    async def _ask(self, address: str, box: str) -> Any:
        async def ask() -> Any:
            comm = await connect(address, timeout=self._timeout, **self._worker.connection_args)
            try:
                await comm.write({"op": STATE, "name": box})
                return await comm.read()
            finally:
                await comm.close()

        return await asyncio.wait_for(ask(), self._timeout)


class _Outbox:
    """Messages for one worker, written in their order by the event loop over one comm."""

    def __init__(self, loop: asyncio.AbstractEventLoop, worker: Any, address: str) -> None:
        self._loop, self._worker, self._address = loop, worker, address
        self._waiting: deque[dict[str, Any]] = deque()
        self._comm: Any = None
        self._task: asyncio.Task[None] | None = None

    def put(self, message: dict[str, Any]) -> None:
        self._waiting.append(message)
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._write())

    async def _write(self) -> None:
        try:
            if self._comm is None:
                self._comm = await connect(self._address, **self._worker.connection_args)
            while self._waiting:
                await self._comm.write(self._waiting.popleft())
        except (TimeoutError, OSError):  # receive() finds out that the other is gone
            self._waiting.clear()

    def close(self, timeout: float) -> None:
        """Write what waits, and close the comm."""

        async def close() -> None:
            if self._task is not None:
                await asyncio.wait({self._task}, timeout=timeout)
            if self._comm is not None:
                await self._comm.close()

        asyncio.run_coroutine_threadsafe(close(), self._loop)
