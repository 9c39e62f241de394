"""How messages leave a worker of Dask: by the socket of a comm, by the event loop, or
inside one process.

In: messages for one worker, in their order. Out: the same messages in its mail.

A message that goes through Dask's event loops wakes two of them, and two threads: half
a millisecond, and a tree needs one for each split. So a comm without TLS is opened by
Dask, with its handshake, and then gives its socket to the
training: the thread that trains writes and reads it. Comms of other kinds stay with the
event loop.

    Line      8 bytes of length, and the message, over the socket of a comm
    Looped    a message of Dask over a comm; TLS, and whatever has no plain socket
    Local     nothing but a queue: the other worker is in this process
"""

import asyncio
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np

from sapwood.errors import MessageError

# operations of a worker
MESSAGE = "sapwood_message"
STATE = "sapwood_state"
LINK = "sapwood_link"
READY = b"\x06"  # what a worker says when it has taken the socket over
LENGTH = 8  # bytes before a message
MAX_MESSAGE = 1 << 36  # bytes; a longer one is not ours
# bytes of room for a message of which nothing has come; then as much again as has come
MAX_AHEAD = 1 << 24
# bytes of room that is kept for the next message: Dask's heap gives memory back, and
# takes it anew
MAX_KEPT = 1 << 22
CAN_SPIN = hasattr(select, "poll") and hasattr(os, "sched_yield")  # not on Windows
# seconds in which a thread looks again and again before it sleeps: to be woken takes
# longer
SPIN = 2e-4


class Outbox(Protocol):
    """Messages for one worker."""

    failed: bool  # a message could not be sent: the other is gone

    def put(self, message: bytes) -> None:
        """Send a message; it is under way when this returns. Whoever waits for an
        answer looks at `failed`.
        """

    def close(self, timeout: float) -> None:
        """Let what was sent arrive, and end."""


def can_take_over(comm: Any) -> bool:
    """Whether a comm is a plain socket."""
    return type(getattr(getattr(comm, "stream", None), "socket", None)) is socket.socket


def taken_over(comm: Any) -> socket.socket:
    """The socket of a comm, which Dask forgets. Nothing may be under way to it."""
    stream = comm.stream
    if stream.writing():
        raise OSError("the comm is still writing.")
    line: socket.socket = stream.socket.dup()
    comm.abort()  # closes Dask's own descriptor; the connection stays
    line.settimeout(None)
    return line


class Line:
    """Writes to a socket. What the system does not take at once is written by a
    thread.
    """

    def __init__(self, line: socket.socket) -> None:
        self.failed = False
        self._line = line
        self._rest: SimpleQueue[memoryview | None] = SimpleQueue()
        self._writer: threading.Thread | None = None
        # pieces that the thread was given, and that it has written
        self._n_given = self._n_written = 0

    def put(self, message: bytes) -> None:
        """Write a message, or as much of it as fits, and leave the rest to a thread."""
        head = len(message).to_bytes(LENGTH, "little")
        sent = 0
        if self._n_given == self._n_written:
            try:
                sent = self._line.sendmsg([head, message], [], socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass
            except OSError:
                self.failed = True
                return
        if sent < LENGTH:
            self._later(memoryview(head)[sent:])
        if sent < LENGTH + len(message):
            self._later(memoryview(message)[max(0, sent - LENGTH) :])

    def close(self, timeout: float) -> None:
        """Write the rest, and close the socket."""
        if self._writer is not None:
            self._rest.put(None)
            self._writer.join(timeout)
        self._line.close()

    def _later(self, piece: memoryview) -> None:
        if self._writer is None:
            self._writer = threading.Thread(
                target=self._write, name="sapwood-writer", daemon=True
            )
            self._writer.start()
        self._n_given += 1
        self._rest.put(piece)

    def _write(self) -> None:
        while (piece := self._rest.get()) is not None:
            try:
                self._line.sendall(piece)
            except OSError:
                self.failed = True
                return
            self._n_written += 1


class Inlet:
    """Reads the messages that a `Line` has written."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._seconds = -1.0
        self._head = bytearray(LENGTH)
        self._n_head = 0
        self._body: memoryview | None = None
        self._n_body = 0
        self._kept = memoryview(b"")
        self._poll = select.poll() if CAN_SPIN else None
        if self._poll is not None:
            self._poll.register(line, select.POLLIN)

    def read(self, seconds: float) -> memoryview:
        """The next message; raises `TimeoutError` where it is not complete in some
        seconds, and goes on later.

        The next call may overwrite it.
        Raises `MessageError` where the length before a message cannot be one of ours,
        and `OSError` at the end.
        """
        if seconds != self._seconds:
            self._line.settimeout(seconds)
            self._seconds = seconds
        if self._n_head == 0:
            self._spin()
        while self._n_head < LENGTH:
            self._n_head += self._some(memoryview(self._head)[self._n_head :])
        length = int.from_bytes(self._head, "little")
        if self._body is None:
            if length > MAX_MESSAGE:
                raise MessageError(
                    f"a message of {length} bytes was announced; the longest has {MAX_MESSAGE}."
                )
            self._body = self._room_for(length)
            self._n_body = 0
        while self._n_body < length:
            # who announces much, and sends little, takes little memory
            if self._n_body == len(self._body):
                more = _room(min(length, 2 * self._n_body))
                more[: self._n_body] = self._body
                self._body = more
            self._n_body += self._some(self._body[self._n_body :])
        body = self._body
        self._body = None
        self._n_head = 0
        return body

    def close(self) -> None:
        """Close the socket."""
        self._line.close()

    def _room_for(self, n: int) -> memoryview:
        if n > MAX_KEPT:
            return _room(min(n, MAX_AHEAD))
        if len(self._kept) < n:
            self._kept = _room(n)
        return self._kept[:n]

    def _spin(self) -> None:
        """Return when something has come, or after a short time; other threads may run
        meanwhile.
        """
        end = time.perf_counter() + SPIN
        while (
            self._poll is not None
            and not self._poll.poll(0)
            and time.perf_counter() < end
        ):
            os.sched_yield()

    def _some(self, room: memoryview) -> int:
        n = self._line.recv_into(room)
        if n == 0:
            raise OSError("the other side has closed.")
        return n


def _room(n: int) -> memoryview:
    """Memory for a message, which is taken as it is filled."""
    try:
        return np.empty(n, np.uint8).data
    except MemoryError as cause:
        raise MessageError(f"there is no memory for a message of {n} bytes.") from cause


class Looped:
    """Messages that the event loop writes over one comm."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, comm: Any, head: dict[str, Any]
    ) -> None:
        self.failed = False
        self._loop = loop
        self._comm = comm
        self._head = head
        self._waiting: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, message: bytes) -> None:
        """Hand a message to the event loop."""
        self._waiting.append(message)
        self._loop.call_soon_threadsafe(self._start)

    def close(self, timeout: float) -> None:
        """Write what waits, and close the comm."""

        async def close() -> None:
            if self._task is not None:
                await asyncio.wait({self._task}, timeout=timeout)
            await self._comm.close()

        asyncio.run_coroutine_threadsafe(close(), self._loop)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._waiting:
                await self._comm.write(
                    {**self._head, "message": self._waiting.popleft()}
                )
        except (TimeoutError, OSError):
            self.failed = True


class Local:
    """Messages to a worker of this process."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self.failed = False
        self.put = put

    def close(self, timeout: float) -> None:
        """Nothing is under way."""
