"""Mutators: from a good file to a bad one, for each kind of structure that files have.

In: bytes, and a source of random numbers. Out: bytes. The same numbers give the same
bytes, on every machine.
"""

import io
import json
import re
import struct
import zipfile
from random import Random
from typing import Any

import numpy as np

from sapwood.data import container

INTEGERS = [
    0,
    1,
    -1,
    2,
    7,
    255,
    256,
    65535,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-310,
    1e308,
    -1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    0.5,
    1e150,
]
TEXTS = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "null",
    "é",
    "\ud800",
    "a" * 3_000,
    "sum",
    "regression",
    "binary:logistic",
    "{}",
]
DTYPES = ["<f8", "<f4", "<i8", "<i4", "<u2", "u1", "<u8", "?"]
NUMBER = re.compile(rb"-?\d+(\.\d+)?(e[-+]?\d+)?")


def raw(data: bytes, rng: Random) -> bytes:
    """Bits, bytes and blocks changed, left out, doubled and moved."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        n = len(out)
        if not n:
            break
        at = rng.randrange(n)
        size = min(n, 1 << rng.randrange(9))
        what = rng.randrange(7)
        if what == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif what == 2:
            del out[at : at + size]
        elif what == 3:
            out[at:at] = out[at : at + size]
        elif what == 4:
            out[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif what == 5:
            other = rng.randrange(n)
            out[at : at + size] = out[other : other + size]
        else:
            out[at : at + 8] = struct.pack(rng.choice("<>") + "q", rng.choice(INTEGERS))
    return (
        bytes(out[: rng.randrange(len(out) + 1)]) if rng.random() < 0.1 else bytes(out)
    )


def scalar(rng: Random) -> Any:
    """A value that a reader may not expect."""
    small: list[Any] = [
        None,
        True,
        False,
        [],
        {},
        [[]],
        [0] * 40,
        {"": 0},
        [None],
        [1, "a"],
        [1e308] * 3,
    ]
    return rng.choice(rng.choice((INTEGERS, INTEGERS, FLOATS, TEXTS, small)))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a document: a list or an object, and the key in it."""
    found = []
    stack = [value]
    while stack:
        one = stack.pop()
        keys = (
            one
            if isinstance(one, dict)
            else range(len(one))
            if isinstance(one, list)
            else ()
        )
        for key in keys:
            found.append((one, key))
            stack.append(one[key])
    return found


def document(value: Any, rng: Random) -> Any:
    """A document of lists and objects, parts of which are changed, left out, doubled,
    exchanged or nested.
    """
    for _ in range(rng.choice((1, 1, 2, 4))):
        known = places(value)
        if not known:
            return scalar(rng)
        inside, key = rng.choice(known)
        what = rng.randrange(8)
        if what <= 2:
            old = inside[key]
            near = (
                isinstance(old, int)
                and not isinstance(old, bool)
                and rng.random() < 0.5
            )
            inside[key] = (
                old + rng.choice((-1, 1, 2, -old - 1)) if near else scalar(rng)
            )
        elif what == 3:
            del inside[key]
        elif what == 4 and isinstance(inside, list):
            inside.insert(key, json.loads(json.dumps(inside[key])))
        elif what == 5:
            other, name = rng.choice(known)
            inside[key] = (
                json.loads(json.dumps(other[name]))
                if len(json.dumps(other[name])) < 20_000
                else 0
            )
        elif what == 6 and isinstance(inside, dict):
            inside[rng.choice(TEXTS)] = scalar(rng)
        else:
            for _ in range(rng.choice((1, 3, 70))):
                inside[key] = [inside[key]]
    return value


def of_json(data: bytes, rng: Random) -> bytes:
    """A JSON text with its structure changed, or its bytes."""
    if rng.random() < 0.3:
        return raw(data, rng)
    return json.dumps(
        document(json.loads(data), rng), ensure_ascii=rng.random() < 0.9
    ).encode(errors="surrogatepass")


def ubjson(value: Any, rng: Random) -> bytes:
    """A document as UBJSON; lists of numbers as typed arrays, mostly."""
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int):
        return (
            b"L" + struct.pack(">q", value)
            if -(2**63) <= value < 2**63
            else b"D" + struct.pack(">d", float(value))
        )
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode(errors="surrogatepass")
        return b"SL" + struct.pack(">q", len(text)) + text
    if isinstance(value, dict):
        pairs = (
            ubjson(str(key), rng)[1:] + ubjson(one, rng) for key, one in value.items()
        )
        return b"{" + b"".join(pairs) + b"}"
    kinds = {type(one) for one in value}
    if (
        value
        and kinds <= {int}
        and all(-(2**31) <= one < 2**31 for one in value)
        and rng.random() < 0.9
    ):
        return (
            b"[$l#L" + struct.pack(">q", len(value)) + np.array(value, ">i4").tobytes()
        )
    if value and kinds == {float} and rng.random() < 0.9:
        return (
            b"[$D#L" + struct.pack(">q", len(value)) + np.array(value, ">f8").tobytes()
        )
    return b"[" + b"".join(ubjson(one, rng) for one in value) + b"]"


def of_ubjson(data: bytes, rng: Random) -> bytes:
    """UBJSON with the structure of its document changed, or its bytes; the seed is the
    JSON text.
    """
    if rng.random() < 0.5:
        return raw(ubjson(json.loads(data), rng), rng)
    return ubjson(document(json.loads(data), rng), rng)


def of_lines(data: bytes, rng: Random) -> bytes:
    """A text of lines ``key=numbers``: numbers, lists and lines changed."""
    if rng.random() < 0.3:
        return raw(data, rng)
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        what = rng.randrange(6)
        key, equals, values = lines[at].partition(b"=")
        if what <= 2 and equals:
            found = values.split(b" ")
            spot = rng.randrange(len(found))
            new = str(rng.choice(INTEGERS + FLOATS)).encode()
            if what == 0:
                found[spot] = new
            elif what == 1:
                found[spot:spot] = [new] * rng.choice((1, 2, 50))
            else:
                del found[spot]
            lines[at] = key + equals + b" ".join(found)
        elif what == 3:
            del lines[at]
        elif what == 4:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        else:
            lines[at] = NUMBER.sub(
                lambda _: str(rng.choice(INTEGERS)).encode(), lines[at], count=1
            )
        if not lines:
            return b""
    return b"\n".join(lines)


def array(values: Any, rng: Random) -> Any:
    """An array with other values, of another length, shape or type."""
    out = values.copy()
    what = rng.randrange(8)
    if what <= 4 and out.size:
        flat = out.reshape(-1)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(flat.size)
            if what <= 1 and out.dtype.kind in "iu":
                near = int(flat[at]) + rng.choice((-1, 1, 2))
            else:
                near = rng.choice(FLOATS if out.dtype.kind == "f" else INTEGERS)
            with np.errstate(all="ignore"):
                flat[at] = (
                    near
                    if out.dtype.kind == "f"
                    else np.array([near & (2**64 - 1)], np.uint64).astype(out.dtype)[0]
                )
        return out
    if what == 5:
        return np.resize(
            out, rng.choice((0, 1, max(0, out.size - 1), out.size + 1, 2 * out.size))
        ).astype(out.dtype)
    if what == 6:
        with np.errstate(all="ignore"):
            return out.astype(rng.choice(DTYPES))
    return (
        out.reshape(rng.choice(((-1, 1), (1, -1), (1, 1, -1))))
        if out.size
        else np.array(5, out.dtype)
    )


def signed(data: bytes) -> bytes:
    """The same container with a digest that fits its bytes, if its beginning still
    shows where the digest is.
    """
    found = re.search(rb'digest\\":\\"([0-9a-f]{64})', data)
    if found is None:
        return data
    blank = data[: found.start(1)] + container.BLANK.encode() + data[found.end(1) :]
    import hashlib

    return (
        blank[: found.start(1)]
        + hashlib.sha256(blank).hexdigest().encode()
        + blank[found.end(1) :]
    )


def of_container(data: bytes, rng: Random) -> bytes:
    """A file of Sapwood: bytes changed, with or without a new digest; or arrays and
    fields, always with one.
    """
    if (what := rng.random()) < 0.25:
        return raw(data, rng)
    if what < 0.5:
        return signed(raw(data, rng))
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    entry = json.loads(header.pop("__metadata__")[container.ENTRY])
    arrays = container._parted(data, 8 + size, header)
    fields = entry["fields"]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.randrange(6)
        if kind <= 2 and arrays:
            name = rng.choice(sorted(arrays))
            arrays[name] = array(arrays[name], rng)
        elif kind == 3 and arrays:
            one = arrays.pop(rng.choice(sorted(arrays)))
            if rng.random() < 0.5:
                arrays[rng.choice([*sorted(arrays), "set", "linear.coef", "x"])] = one
        else:
            fields = document(fields, rng)
    version = rng.choice(INTEGERS) if rng.random() < 0.02 else entry["version"]
    kind = rng.choice(TEXTS) if rng.random() < 0.02 else entry["kind"]
    try:
        return container.pack(kind, version, arrays, fields)
    except ValueError:  # NaN is not JSON, and half of a pair of surrogates is not UTF-8
        return raw(data, rng)


def files_of(data: bytes) -> dict[str, bytes]:
    """The files of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in sorted(archive.namelist())}


def archive_of(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Files as an archive: the same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def of_store(data: bytes, rng: Random) -> bytes:
    """The files of a store: one of them changed, or gone."""
    files = files_of(data)
    name = "dataset" if rng.random() < 0.7 else rng.choice(list(files))
    if rng.random() < 0.03:
        del files[name]
    else:
        files[name] = (of_container if name == "dataset" else raw)(files[name], rng)
    return archive_of(files)


def of_every_file(data: bytes, rng: Random) -> bytes:
    """The files of a store: some of them changed, each as what it is."""
    files = files_of(data)
    for name in rng.sample(sorted(files), rng.choice((1, 1, 2, len(files)))):
        content = files[name]
        if name == "dataset":
            files[name] = of_container(content, rng)
        elif rng.random() < 0.5 and len(content) % 8 == 0:
            files[name] = array(
                np.frombuffer(content, rng.choice(("<f8", "<i4"))), rng
            ).tobytes()
        else:
            files[name] = raw(content, rng)
    return archive_of(files)


def of_records(data: bytes, rng: Random) -> bytes:
    """A file of records, each a length and a container: bytes, records and what they
    hold changed.
    """
    if rng.random() < 0.3:
        return raw(data, rng)
    records = []
    at = 0
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 8], "little")
        records.append(data[at + 8 : end])
        at = end
    place = rng.randrange(len(records))
    what = rng.randrange(6)
    if what <= 3:
        records[place] = of_container(records[place], rng)
    elif what == 4:
        del records[place]
    else:
        records.insert(rng.randrange(len(records) + 1), records[place])
    return b"".join(len(one).to_bytes(8, "little") + one for one in records)
