"""The file format of everything saved: the safetensors container with one digest over every byte.

In: named arrays and a JSON object. Out: bytes, or a file that is either the old one or the new one, whole.
"""

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from sapwood.errors import SapwoodError

ENTRY = "sapwood"  # one entry only: the library writes several in random order
BLANK = "0" * 64  # stands where the digest goes while the digest is made
ARRAY = {"dtype", "shape", "data_offsets"}  # what the header says about an array


def pack(kind: str, version: int, arrays: Mapping[str, NDArray[Any]], fields: Mapping[str, Any]) -> bytes:
    """Put arrays and fields (JSON values) of a kind and version into one container: the same bytes, always."""
    # "digest" sorts before everything a user can name, so that its blank is the first one in the file.
    entry = {"digest": BLANK, "fields": fields, "kind": kind, "version": version}
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), allow_nan=False)
    raw = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {ENTRY: text})
    return raw.replace(BLANK.encode(), sha256(raw).hexdigest().encode(), 1)


def unpack(
    raw: bytes, kind: str, newest: int, error: type[SapwoodError]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and fields of a container of this kind, up to version `newest`; any changed byte raises `error`."""
    try:
        length = int.from_bytes(raw[:8], "little")
        header = _parse(raw[8 : 8 + length])
        metadata = header.pop("__metadata__")
        entry = _parse(metadata.pop(ENTRY))
        digest, fields, found, version = (entry.pop(key) for key in ("digest", "fields", "kind", "version"))
        place = raw.index(digest.encode())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise error("not a file that Sapwood saved, or its beginning is damaged.") from cause
    check = sha256(raw[:place])
    check.update(BLANK.encode())
    check.update(memoryview(raw)[place + len(BLANK) :])
    if check.hexdigest() != digest:
        raise error("the file is damaged: its digest does not match its content. Save it anew.")
    if found != kind:
        raise error(f"the file holds a {found!r}, not a {kind!r}.")
    if type(version) is not int or not 1 <= version <= newest:
        raise error(f"the file has version {version!r}; this Sapwood reads versions 1..{newest}. Upgrade Sapwood.")
    try:
        arrays = load(raw)
        aligned = all(header[name]["data_offsets"][0] % array.itemsize == 0 for name, array in arrays.items())
    except (SafetensorError, ValueError, KeyError, TypeError) as cause:
        raise error(f"the arrays of the file cannot be read: {cause}") from cause
    # The library overlooks these, and a file that we saved never has them.
    if not aligned or length % 8:
        raise error("the arrays of the file are not aligned.")
    if metadata or entry or not isinstance(fields, dict) or any(set(array) != ARRAY for array in header.values()):
        raise error("the header of the file has parts that do not belong there.")
    return arrays, fields


def _parse(text: bytes | str) -> dict[str, Any]:
    """JSON as the standard has it: no key twice, no NaN or infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key occurs twice")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    parsed: dict[str, Any] = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    return parsed


def write(path: str | os.PathLike[str], raw: bytes) -> None:
    """Replace a file as a whole: after a crash at any moment there is the old content or the new one."""
    target = Path(os.path.realpath(path))  # a link stays, what it points to is replaced
    beside = target.with_name(f".sapwood-{secrets.token_hex(8)}.part")
    try:
        with open(beside, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as cause:  # about the file that was asked for
        with suppress(OSError):
            beside.unlink()
        raise OSError(cause.errno, cause.strerror or str(cause), os.fspath(path)) from cause
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the rename itself is on disk only after its folder is
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
