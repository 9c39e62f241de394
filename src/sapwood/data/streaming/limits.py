"""Sizes of memory: what a user writes, what the process has.

In: numbers of bytes, text such as "2GB". Out: bytes.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sapwood.data.ingest.sources import BATCH_BYTES, Thrift, release_unused
from sapwood.device import host
from sapwood.errors import MemoryLimitError, ParameterError

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def size_of(given: Any) -> int | None:
    """A number of bytes: an integer, or text with a unit; None stays None."""
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    found = (
        re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", given)
        if isinstance(given, str)
        else None
    )
    if found is None or found[2].upper() not in UNITS or float(found[1]) == 0:
        raise ParameterError(
            f"memory_limit={given!r} is no size; give bytes, or text such as '2GB' or '512MiB'."
        )
    return int(float(found[1]) * UNITS[found[2].upper()])


def limit_of(given: Any) -> int | None:
    """A `memory_limit`; one that the process has exceeded already raises."""
    limit = size_of(given)
    if limit is None or limit >= host.resident_bytes():
        return limit
    release_unused()
    host.release_pages()
    if limit < (now := host.resident_bytes()):
        raise MemoryLimitError(
            f"memory_limit={given!r} is {text_of(limit)}, and this process has {text_of(now)} already; it needs at "
            "least that. Raise it, and give a unit if it lacks one: '500MB'."
        )
    return limit


def below(limit: int) -> int:
    """What is left of a limit for resident memory: a twentieth is for what comes
    between two looks at it.
    """
    return limit - limit // 20


def make_room(limit: int | None, n_bytes: int, what: str) -> None:
    """Let go of what can go where less than so many bytes are left under a limit; raise
    where that is not enough.
    """
    if limit is None or below(limit) - host.resident_bytes() >= n_bytes:
        return
    release_unused()
    host.release_pages()
    least = host.resident_bytes() + n_bytes
    if least > below(limit):
        raise MemoryLimitError(
            f"a memory_limit of {text_of(limit)} is too small: {what} needs at least {text_of(least * 20 / 19)}. "
            "Raise it, or use a process that holds nothing else."
        )


def thrift(limit: int | None) -> Thrift:
    """How files are read under a limit."""
    if limit is None:
        return Thrift()
    batch = min(BATCH_BYTES, max(1 << 20, (limit - host.resident_bytes()) // 32))
    return Thrift(batch, partial(make_room, limit))


@contextmanager
def resident_below(limit: int | None) -> Iterator[None]:
    """Let mapped pages go before the process has so many bytes of resident memory,
    while this block lasts.
    """
    try:
        host.set_resident_limit(below(limit) if limit else 0)
        yield
    finally:
        host.set_resident_limit(0)


def text_of(n_bytes: float) -> str:
    """A size as people read it."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
