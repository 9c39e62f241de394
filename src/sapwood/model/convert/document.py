"""Documents from anywhere: JSON and UBJSON with limits, and values of the kind they
must be.

In: bytes that nobody vouches for. Out: a `Document`, or ModelFormatError; nothing
recurses deeper than `MAX_DEPTH`.
"""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError

# levels of nesting: peers need ten, and the trees of CatBoost, at most 16 deep, one for
# each level
MAX_DEPTH = 64
# The types of numbers in UBJSON.
_WORDS = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
_NUMBERS: dict[bytes, np.dtype[Any]] = {
    kind: np.dtype(word) for kind, word in _WORDS.items()
}


class Document(dict[str, Any]):
    """An object of a document; a missing part, or one of another type, raises and says
    where.
    """

    def part(self, name: str) -> "Document":
        """An object within."""
        return Document(self._of(name, dict))

    def parts(self, name: str) -> "list[Document]":
        """A list of objects."""
        found = self.items_of(name)
        if not all(isinstance(one, dict) for one in found):
            raise ModelFormatError(
                f"'{name}' of the model holds a value that is not an object."
            )
        return [Document(one) for one in found]

    def text(self, name: str) -> str:
        """A string."""
        return str(self._of(name, str))

    def items_of(self, name: str) -> list[Any]:
        """A list of anything."""
        return list(self._of(name, list | np.ndarray))

    def array(self, name: str, dtype: Any) -> NDArray[Any]:
        """A list of numbers, as a 1-d array; whole ones where the dtype is of
        integers.
        """
        values = self._of(name, list | np.ndarray)
        try:
            found = np.asarray(values, None if len(values) else dtype)
            if found.ndim != 1 or found.dtype.kind not in "biuf":
                raise ValueError
            with np.errstate(over="raise", invalid="raise"):
                cast = found.astype(dtype)
            if np.issubdtype(dtype, np.integer) and not np.array_equal(cast, found):
                raise ValueError
        except (ValueError, FloatingPointError, OverflowError) as cause:
            raise ModelFormatError(
                f"'{name}' is not a list of {np.dtype(dtype).name} numbers."
            ) from cause
        return cast

    def number(self, name: str) -> float:
        """A number, or a string of one."""
        value = self._of(name, int | float | str)
        try:
            return float(value)
        except (ValueError, OverflowError) as cause:
            raise ModelFormatError(
                f"'{name}' is not a number: {str(value)[:60]!r}."
            ) from cause

    def count(self, name: str, end: int = 2**31) -> int:
        """A number that is whole, not negative and below the end."""
        value = self.number(name)
        if not value.is_integer() or not 0 <= value < end:
            raise ModelFormatError(f"'{name}' is not a count: {value}.")
        return int(value)

    def _of(self, name: str, kind: Any) -> Any:
        if name not in self:
            raise ModelFormatError(f"the model has no '{name}'.")
        if not isinstance(self[name], kind) or isinstance(self[name], bool):
            raise ModelFormatError(
                f"'{name}' of the model is a {type(self[name]).__name__}."
            )
        return self[name]


def of_json(raw: bytes) -> Document:
    """Read JSON in UTF-8."""
    return _checked(parsed(raw))


def parsed(raw: bytes) -> Any:
    """The value of a JSON text from an untrusted source."""
    depth = deepest = 0
    for byte in raw.translate(None, bytes(set(range(256)) - set(b"[{]}"))):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ModelFormatError(
            f"the document is nested {deepest} levels deep; at most {MAX_DEPTH} are read."
        )
    try:
        return json.loads(raw)
    except ValueError as cause:
        raise ModelFormatError(f"not valid JSON: {cause}.") from cause


def of_ubjson(raw: bytes) -> Document:
    """Read Universal Binary JSON, draft 12, with typed arrays."""
    try:
        found, end = _value(raw, raw[:1], 1, 0)
    except ModelFormatError:
        raise
    except (
        IndexError,
        struct.error,
        KeyError,
        UnicodeDecodeError,
        ValueError,
    ) as cause:
        raise ModelFormatError(
            "the file is not valid UBJSON, or ends too early."
        ) from cause
    if raw[end:].strip(b"N"):
        raise ModelFormatError("the file goes on after its end.")
    return _checked(found)


def _checked(found: Any) -> Document:
    if not isinstance(found, dict):
        raise ModelFormatError(
            f"the document is a {type(found).__name__}, not an object."
        )
    return Document(found)


def _value(raw: bytes, kind: bytes, at: int, depth: int) -> tuple[Any, int]:
    """The value of this kind at a position, and the position after it."""
    if depth > MAX_DEPTH:
        raise ModelFormatError(
            f"the document is nested more than {MAX_DEPTH} levels deep."
        )
    match kind:
        case b"{":
            return _object(raw, at, depth)
        case b"[":
            return _array(raw, at, depth)
        case b"S" | b"H":
            return _string(raw, at)
        case b"C":
            return chr(raw[at]), at + 1
        case b"T" | b"F":
            return kind == b"T", at
        case b"Z":
            return None, at
    dtype = _NUMBERS[kind]
    return np.frombuffer(raw, dtype, 1, at)[0].item(), at + dtype.itemsize


def _string(raw: bytes, at: int) -> tuple[str, int]:
    length, at = _length(raw, at)
    return raw[at : at + length].decode(), at + length


def _length(raw: bytes, at: int) -> tuple[int, int]:
    """A length, which cannot exceed the bytes of the file."""
    if raw[at : at + 1] not in _NUMBERS:
        raise IndexError
    length, at = _value(raw, raw[at : at + 1], at + 1, 0)
    if type(length) is not int or not 0 <= length <= len(raw):
        raise IndexError
    return length, at


def _object(raw: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found = {}
    while raw[at : at + 1] != b"}":
        name, at = _string(raw, at)
        found[name], at = _value(raw, raw[at : at + 1], at + 1, depth + 1)
    return found, at + 1


def _array(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    kind = None
    if raw[at : at + 1] == b"$":
        kind = raw[at + 1 : at + 2]
        at = at + 2
    if raw[at : at + 1] == b"#":
        length, at = _length(raw, at + 1)
        # values that take no room: lists of lists of them would take any memory
        if kind in (b"T", b"F", b"Z"):
            raise IndexError
        if kind is not None and kind in _NUMBERS:
            dtype = _NUMBERS[kind]
            return np.frombuffer(raw, dtype, length, at).astype(
                dtype.newbyteorder("=")
            ), at + length * dtype.itemsize
        found = []
        for _ in range(length):
            one, at = _value(
                raw, kind or raw[at : at + 1], at if kind else at + 1, depth + 1
            )
            found.append(one)
        return found, at
    found = []
    while raw[at : at + 1] != b"]":
        one, at = _value(raw, raw[at : at + 1], at + 1, depth + 1)
        found.append(one)
    return found, at + 1
