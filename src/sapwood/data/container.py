"""The file format of everything saved: the safetensors container with one digest over every byte.

In: named arrays and a JSON object. Out: bytes, or a file that is either the old one or the new one, whole.
"""

import json
import os
import secrets
import stat
import time
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

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

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
    """Replace a file as a whole: after a crash at any moment there is the old content or the new one.

    The file keeps its permissions. A pipe or a device is written to, not replaced.
    """
    target = Path(os.path.realpath(path))  # a link stays, what it points to is replaced
    try:
        old = os.stat(target) if target.exists() else None
        if old is not None and not stat.S_ISREG(old.st_mode) and not stat.S_ISDIR(old.st_mode):
            with open(target, "wb") as file:
                file.write(raw)
            return
        _replace(target, raw, old)
    except OSError as cause:  # about the file that was asked for
        raise OSError(cause.errno, cause.strerror or str(cause), os.fspath(path)) from cause


def _replace(target: Path, raw: bytes, old: os.stat_result | None) -> None:
    """Write a new file beside the old one, then give it the name of the old one."""
    _remove_unfinished(target.parent)
    beside = target.with_name(f".sapwood-{secrets.token_hex(8)}.part")
    try:
        with open(beside, "xb") as file:
            if fcntl is not None:  # for as long as the file is open: no other process takes it for left behind
                fcntl.flock(file, fcntl.LOCK_EX)
            if old is not None:
                os.chmod(beside, stat.S_IMODE(old.st_mode))
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # elsewhere an open file cannot be renamed
                os.replace(beside, target)
        if os.name != "posix":
            os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    if os.name == "posix":  # the rename itself is on disk only after its folder is
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed while it saved has left in a folder: its files are locked by nobody."""
    for left in folder.glob(".sapwood-*.part") if fcntl is not None else ():
        with suppress(OSError), open(left, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(file.fileno()).st_mtime > 60:  # a new file is locked only after it is made
                left.unlink()
