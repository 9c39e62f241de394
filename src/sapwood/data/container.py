"""The file format of everything saved: the safetensors container with one digest over
every byte.

In: named arrays and a JSON object. Out: bytes, and back.

    length     header                                                        values
    8 bytes    JSON: of every array dtype, shape, data_offsets; spaces       of one array after the other

The library safetensors reads these files too. It is not used here: it has no build for
Python without a GIL.
"""

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError

ENTRY = "sapwood"  # the one entry of the header that is not of an array
BLANK = "0" * 64  # stands where the digest goes while the digest is made
MAX_DIMENSIONS = 32
# The names of types in a file, in the order in which their arrays follow each other:
# from wide ones to narrow ones.
TYPES = {
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "F32": "<f4",
    "U32": "<u4",
    "I32": "<i4",
    "F16": "<f2",
    "U16": "<u2",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
NAMES = {
    np.dtype(kind): (order, name) for order, (name, kind) in enumerate(TYPES.items())
}


def pack(
    kind: str,
    version: int,
    arrays: Mapping[str, NDArray[Any]],
    fields: Mapping[str, Any],
) -> bytes:
    """Put arrays and fields (JSON values) of a kind and version into one container: the
    same bytes, always.
    """
    # "digest" sorts before everything a user can name, so that its blank is the first
    # one in the file.
    entry = {"digest": BLANK, "fields": fields, "kind": kind, "version": version}
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), allow_nan=False)
    raw = _joined(arrays, text)
    return raw.replace(BLANK.encode(), sha256(raw).hexdigest().encode(), 1)


def unpack(
    raw: bytes, kind: str, newest: int, error: type[SapwoodError]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and fields of a container of this kind, up to version `newest`; any
    changed byte raises `error`.
    """
    try:
        length = int.from_bytes(raw[:8], "little")
        header = _parse(raw[8 : 8 + length])
        metadata = header.pop("__metadata__")
        entry = _parse(metadata.pop(ENTRY))
        digest, fields, found, version = (
            entry.pop(key) for key in ("digest", "fields", "kind", "version")
        )
        place = raw.index(digest.encode())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise error(
            "not a file that Sapwood saved, or its beginning is damaged."
        ) from cause
    check = sha256(raw[:place])
    check.update(BLANK.encode())
    check.update(memoryview(raw)[place + len(BLANK) :])
    if check.hexdigest() != digest:
        raise error(
            "the file is damaged: its digest does not match its content. Save it anew."
        )
    if found != kind:
        raise error(f"the file holds a {found!r}, not a {kind!r}.")
    if type(version) is not int or not 1 <= version <= newest:
        raise error(
            f"the file has version {version!r}; this Sapwood reads versions 1..{newest}. Upgrade Sapwood."
        )
    if metadata or entry or not isinstance(fields, dict):
        raise error("the header of the file has parts that do not belong there.")
    try:
        arrays = _parted(raw, 8 + length, header)
    except ValueError as cause:
        raise error(f"the arrays of the file cannot be read: {cause}.") from cause
    return arrays, fields


def _joined(arrays: Mapping[str, NDArray[Any]], text: str) -> bytes:
    """The container of arrays and of the text of the entry."""
    header: dict[str, Any] = {"__metadata__": {ENTRY: text}}
    given = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    end = 0
    order = sorted(given, key=lambda name: (NAMES[given[name].dtype][0], name))
    for name in order:
        start = end
        end = end + given[name].nbytes
        said = {
            "dtype": NAMES[given[name].dtype][1],
            "shape": list(given[name].shape),
            "data_offsets": [start, end],
        }
        header[name] = said
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % 8)
    return b"".join(
        [len(head).to_bytes(8, "little"), head, *(given[name].data for name in order)]
    )


def _parted(
    raw: bytes, start: int, header: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """The arrays that a header describes, from a place on; raises ValueError where it
    lies.
    """
    if start % 8:
        raise ValueError("they are not aligned")
    found: dict[str, tuple[int, int, np.dtype[Any], list[int]]] = {}
    for name, said in header.items():
        match said:
            case {
                "dtype": str() as kind,
                "shape": list() as shape,
                "data_offsets": [int() as first, int() as last],
            }:
                numbers = [first, last, *shape]
            case _:
                raise ValueError(f"{name!r} is not described as an array")
        if len(said) != 3:
            raise ValueError(f"{name!r} has parts that do not belong there")
        whole = len(shape) <= MAX_DIMENSIONS and all(
            type(n) is int and 0 <= n < 2**63 for n in numbers
        )
        if kind not in TYPES or not whole:
            raise ValueError(f"{name!r} is not described as an array")
        dtype = np.dtype(TYPES[kind])
        if first % dtype.itemsize:
            raise ValueError("they are not aligned")
        if last - first != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name!r} has another size than its shape")
        found[name] = first, last, dtype, shape
    # Nothing is copied before it is known that each byte belongs to one array.
    places = sorted((first, last) for first, last, _, _ in found.values())
    if [0, *(last for _, last in places)] != [
        *(first for first, _ in places),
        len(raw) - start,
    ]:
        raise ValueError("they overlap, leave gaps or do not end with the file")
    return {
        name: np.frombuffer(raw, dtype, math.prod(shape), start + first)
        .reshape(shape)
        .astype(dtype.newbyteorder("="))
        for name, (first, _, dtype, shape) in found.items()
    }


def _parse(text: bytes | str) -> dict[str, Any]:
    """JSON as the standard has it: no key twice, no NaN or infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key occurs twice")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    parsed: dict[str, Any] = json.loads(
        text, object_pairs_hook=unique, parse_constant=refuse
    )
    return parsed
