"""Messages over a socket: whole, in their order, of any size; what is no message, or
ends early, is noticed.
"""

import socket
import threading

import pytest

pytest.importorskip("distributed")

from sapwood.dask import outbox
from sapwood.dask.outbox import LENGTH, MAX_MESSAGE, Inlet, Line
from sapwood.errors import MessageError

# some fill every buffer
MESSAGES = [b"", b"one", bytes(range(256)) * 40_000, b"two", b"x" * 3_000_000, b"last"]


def test_both_sides_send_at_once_what_no_buffer_holds():
    ends = socket.socketpair()
    lines, inlets = [Line(end) for end in ends], [Inlet(end) for end in ends]
    for line in lines:
        for message in MESSAGES:
            line.put(message)  # returns before the other has read anything
    for inlet in inlets:
        assert [bytes(inlet.read(10)) for _ in MESSAGES] == MESSAGES
    assert not any(line.failed for line in lines)
    for line in lines:
        line.close(10)


def test_a_message_that_comes_in_pieces():
    here, there = socket.socketpair()
    inlet = Inlet(there)
    raw = (5).to_bytes(LENGTH, "little") + b"hello"
    for piece in (raw[:3], raw[3:9]):
        here.sendall(piece)
        with pytest.raises(TimeoutError):
            inlet.read(0.01)
    here.sendall(raw[9:])
    assert bytes(inlet.read(1)) == b"hello"
    here.close(), there.close()


@pytest.mark.parametrize("raw", [b"", b"abc", (9).to_bytes(8, "little") + b"short"])
def test_what_ends_early(raw):
    here, there = socket.socketpair()
    here.sendall(raw)
    here.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError, match="closed"):
        Inlet(there).read(1)
    here.close(), there.close()


@pytest.mark.parametrize("length", [MAX_MESSAGE + 1, 1 << 40, (1 << 64) - 1])
def test_a_length_that_is_none_of_ours(length):
    here, there = socket.socketpair()
    here.sendall(length.to_bytes(LENGTH, "little"))
    with pytest.raises(
        MessageError,
        match=f"a message of {length} bytes was announced; the longest has {MAX_MESSAGE}",
    ):
        Inlet(there).read(1)
    here.close(), there.close()


def test_who_announces_much_and_sends_little_takes_little_memory(monkeypatch):
    asked, room = [], outbox._room
    monkeypatch.setattr(outbox, "_room", lambda n: asked.append(n) or room(n))
    here, there = socket.socketpair()
    here.sendall(MAX_MESSAGE.to_bytes(LENGTH, "little") + b"x" * 1000)
    with pytest.raises(TimeoutError):
        Inlet(there).read(0.05)
    assert asked == [outbox.MAX_AHEAD]
    here.close(), there.close()


def test_no_memory_for_a_message(monkeypatch):
    def refuse(*given):
        raise MemoryError

    monkeypatch.setattr(outbox.np, "empty", refuse)
    here, there = socket.socketpair()
    here.sendall((5).to_bytes(LENGTH, "little") + b"hello")
    with pytest.raises(
        MessageError, match="there is no memory for a message of 5 bytes"
    ):
        Inlet(there).read(1)
    here.close(), there.close()


def test_a_message_longer_than_its_first_room(monkeypatch):
    monkeypatch.setattr(outbox, "MAX_AHEAD", 1000)
    here, there = socket.socketpair()
    line = Line(here)
    inlet = Inlet(there)
    for message in MESSAGES:
        line.put(message)
    assert [bytes(inlet.read(10)) for _ in MESSAGES] == MESSAGES
    line.close(10), inlet.close()


@pytest.mark.parametrize("size", [10, 10_000_000])
def test_the_other_side_is_gone(size):
    here, there = socket.socketpair()
    line = Line(here)
    if size > 10:
        line.put(b"x" * size)  # a thread still writes when the other goes
    there.close()
    for _ in range(3):
        line.put(b"x" * size)
    line.close(10)
    assert line.failed
    assert not any(thread.name == "sapwood-writer" for thread in threading.enumerate())
