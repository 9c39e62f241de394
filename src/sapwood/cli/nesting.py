"""How deep the values of a JSON file are nested: readers that call themselves for every
level end the process.

In: a path. Out: an error where the nesting is deeper than a table needs.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError

MAX_DEPTH = 64
CHUNK = 1 << 20  # bytes that are looked at together
ESCAPES = (rb"\\", rb"\"")  # what neither ends a string nor escapes what follows it
QUOTE = b'"'
LINE_ENDS = b"\n\r"
OPENING = b"[{"
CLOSING = b"]}"
# bytes that say nothing of the nesting
OTHER = bytes(set(range(256)) - set(QUOTE + LINE_ENDS + OPENING + CLOSING))
CHANGE = np.zeros(256, np.int8)  # of the depth, by byte
CHANGE[list(OPENING)] = 1
CHANGE[list(CLOSING)] = -1


class _Depth:
    """The nesting at the end of the bytes so far."""

    def __init__(self) -> None:
        self.depth = 0
        self.in_string = False

    def deepest(self, chunk: bytes) -> int:
        """The deepest nesting inside of some more bytes, which end at the end of an
        escape.
        """
        for escape in ESCAPES:
            chunk = chunk.replace(escape, b"")
        codes = np.frombuffer(chunk.translate(None, OTHER), np.uint8)
        if not len(codes):
            return self.depth
        height = self.depth + np.cumsum(
            CHANGE[codes] * self._outside(codes), dtype=np.int64
        )
        # A bracket that closes nothing does not count: its line is an error, and the
        # next one begins anew.
        height -= np.minimum(np.minimum.accumulate(height), 0)
        self.depth = int(height[-1])
        return int(height.max())

    def _outside(self, codes: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which bytes are outside of strings; a string ends with its line at the
        latest, as JSON has it.
        """
        n_quotes = np.cumsum(codes == QUOTE[0], dtype=np.int64) + int(self.in_string)
        line_ends = (codes == LINE_ENDS[0]) | (codes == LINE_ENDS[1])
        before_line = np.maximum.accumulate(np.where(line_ends, n_quotes, 0))
        inside = (n_quotes - before_line) & 1
        self.in_string = bool(inside[-1])
        return np.asarray(inside == 0)


def check_depth(path: Path) -> None:
    """Raise if the values of a JSON file are nested deeper than `MAX_DEPTH`; the file
    may be compressed.
    """
    import pyarrow as pa

    state = _Depth()
    rest = b""
    with pa.input_stream(str(path), compression="detect") as file:
        while chunk := _next(file, rest):
            chunk, rest = _without_half_escape(chunk)
            if state.deepest(chunk) > MAX_DEPTH:
                raise DataError(
                    f"{path} has values that are nested deeper than {MAX_DEPTH} levels; a table has a value for each "
                    "column. Make it flat."
                )


def _next(file: Any, rest: bytes) -> bytes:
    more = bytes(file.read(CHUNK))
    return rest + more if more else b""


def _without_half_escape(chunk: bytes) -> tuple[bytes, bytes]:
    """The chunk, and the backslash at its end if what it escapes comes with the next
    one.
    """
    n_backslashes = len(chunk) - len(chunk.rstrip(b"\\"))
    if n_backslashes % 2 == 0:
        return chunk, b""
    return chunk[:-1], chunk[-1:]
