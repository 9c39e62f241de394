"""Messages between holders of rows: bytes with a length and a checksum, which are
checked and never unpickled.

In: integers or bytes. Out: a message; from a message of anyone, the same integers or
bytes, or an error.

    magic  verb  width  call    length   checksum  body
    4      1     1      4       8        8         length bytes

Sums travel in the narrowest integers that hold them: 1, 2, 4 or 8 bytes each, in the
byte order of the machine. One of another order computes another checksum, and is
refused.
"""

import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sapwood.device import host
from sapwood.errors import MessageError

HEAD = struct.Struct("<4sBBIQQ")
MAGIC = b"SWH2"
VERBS = ("sum", "max", "gather", "exchange")
BEGIN = {verb: MAGIC + bytes([index]) for index, verb in enumerate(VERBS)}
WIDTHS = (1, 2, 4, 8)
Integers = NDArray[np.int64] | NDArray[np.uint64]


def message(verb: str, call: int, body: bytes | memoryview, width: int = 0) -> bytes:
    """A message of the call with this number."""
    head = HEAD.pack(
        MAGIC,
        VERBS.index(verb),
        width,
        call & 0xFFFFFFFF,
        len(body),
        host.checksum(body),
    )
    return head + body


def message_of(verb: str, call: int, values: Integers) -> bytes:
    """A message of integers: in as few bytes each as hold all of them, or all bits
    where they stand for floats.
    """
    if values.dtype == np.uint64:
        return message(verb, call, values.tobytes(), 8)
    return host.message_of(BEGIN[verb], call & 0xFFFFFFFF, values.view(np.int64))


def body(
    raw: bytes | memoryview, verb: str, call: int, source: int
) -> tuple[memoryview, int]:
    """The body and the width of a holder's message, which must be of this verb and
    call.
    """
    whole = memoryview(raw)
    if len(whole) < HEAD.size:
        raise MessageError(
            f"holder {source} sent {len(whole)} bytes, which are no message."
        )
    magic, found, width, number, length, checksum = HEAD.unpack_from(whole)
    content = whole[HEAD.size :]
    if magic != MAGIC or length != len(content) or host.checksum(content) != checksum:
        raise MessageError(
            f"holder {source} sent a message whose length or checksum is wrong."
        )
    if found >= len(VERBS) or (VERBS[found], number) != (verb, call & 0xFFFFFFFF):
        said = VERBS[found] if found < len(VERBS) else found
        raise MessageError(
            f"holder {source} is at call {number} ({said}), and this one at call {call} ({verb})."
        )
    return content, width


def widened(content: memoryview, width: int, like: Integers, source: int) -> Integers:
    """The integers that `message_of` made bytes of; there must be as many as in an
    array of this holder.
    """
    _check_size(content, width, like, source)
    kind = "u8" if like.dtype == np.uint64 else f"i{width}"
    found: Integers = np.frombuffer(content, kind)
    return found


def add(content: memoryview, width: int, values: Integers, source: int) -> None:
    """Add the integers that `message_of` made bytes of to as many others, in place."""
    _check_size(content, width, values, source)
    host.add_narrow(values.view(np.int64), content, width)


def _check_size(content: memoryview, width: int, like: Integers, source: int) -> None:
    if (
        width not in WIDTHS
        or len(content) != width * len(like)
        or (like.dtype == np.uint64 and width != 8)
    ):
        raise MessageError(
            f"holder {source} sent {len(content)} bytes for {len(like)} integers of {width} bytes."
        )


def listed(parts: Sequence[bytes]) -> bytes:
    """Several pieces of bytes as one."""
    sizes = np.array([len(parts), *map(len, parts)], "<u8").tobytes()
    return b"".join([sizes, *parts])


def parted(content: memoryview, n: int, source: int) -> list[bytes]:
    """The pieces that `listed` joined; there must be n."""
    if len(content) < 8 * (n + 1):
        raise MessageError(f"holder {source} sent a list that is too short.")
    count, *sizes = np.frombuffer(content[: 8 * (n + 1)], "<u8").tolist()
    if count != n or 8 * (n + 1) + sum(sizes) != len(content):
        raise MessageError(f"holder {source} sent a list whose lengths are wrong.")
    ends = np.cumsum([8 * (n + 1), *sizes]).tolist()
    return [bytes(content[first:last]) for first, last in pairwise(ends)]
