"""What is saved comes back whole, and nothing else comes back."""

import json
import tracemalloc
from hashlib import sha256

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sapwood.data import container
from sapwood.errors import DataError, ModelFormatError

ARRAYS = {
    "codes": np.array([1, 2, 3], dtype=np.uint8),
    "none": np.zeros(0),
    "table": np.arange(6.0).reshape(2, 3).T,
}
FIELDS = {"names": ["å", "b"], container.BLANK: container.BLANK, "n": 3}
RAW = container.pack("thing", 2, ARRAYS, FIELDS)


def unpack(raw, kind="thing", newest=2, error=DataError):
    return container.unpack(raw, kind, newest, error)


def test_round_trip():
    arrays, fields = unpack(RAW)
    assert fields == FIELDS
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert_array_equal(arrays[name], array)


def test_same_bytes_for_the_same_content():
    assert (
        container.pack(
            "thing", 2, dict(reversed(ARRAYS.items())), dict(reversed(FIELDS.items()))
        )
        == RAW
    )


def test_same_bytes_for_numbers_of_another_byte_order():
    assert (
        container.pack(
            "thing",
            2,
            {
                name: array.astype(array.dtype.newbyteorder(">"))
                for name, array in ARRAYS.items()
            },
            FIELDS,
        )
        == RAW
    )


def test_every_truncation_raises():
    for length in range(len(RAW)):
        with pytest.raises(DataError):
            unpack(RAW[:length])
    with pytest.raises(DataError):
        unpack(RAW + b" ")


def test_every_changed_bit_raises():
    for place in range(len(RAW)):
        for bit in range(8):
            changed = bytearray(RAW)
            changed[place] ^= 1 << bit
            with pytest.raises(DataError):
                unpack(bytes(changed))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"PK\x03\x04 something else",
        (10).to_bytes(8, "little") + b'{"a": 1}  ',
        (2**63).to_bytes(8, "little") + b"{}",
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
    ],
    ids=["empty", "zip", "no entry", "long header", "deep header"],
)
def test_foreign_files_raise(raw):
    with pytest.raises(DataError, match="not a file that Sapwood saved"):
        unpack(raw)


def test_other_kinds_and_newer_versions_raise_the_error_asked_for():
    with pytest.raises(ModelFormatError, match="holds a 'thing', not a 'model'"):
        unpack(RAW, kind="model", error=ModelFormatError)
    with pytest.raises(
        DataError, match=r"version 2; this Sapwood reads versions 1\.\.1"
    ):
        unpack(RAW, newest=1)


def json_digest(raw):
    """The digest of a container, as bytes."""
    length = int.from_bytes(raw[:8], "little")
    return json.loads(json.loads(raw[8 : 8 + length])["__metadata__"]["sapwood"])[
        "digest"
    ].encode()


def forged(change):
    """The container with another header, under a digest that is right."""
    length = int.from_bytes(RAW[:8], "little")
    header = json.loads(RAW[8 : 8 + length])
    digest = json.loads(header["__metadata__"]["sapwood"])["digest"]
    text = change(json.dumps(header).replace(digest, container.BLANK)).encode()
    text += b" " * (-len(text) % 8)
    raw = len(text).to_bytes(8, "little") + text + RAW[8 + length :]
    return raw.replace(container.BLANK.encode(), sha256(raw).hexdigest().encode(), 1)


def test_a_forged_header_can_pass_the_digest():
    assert unpack(forged(lambda text: text))[1] == FIELDS


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '{"__metadata__": {',
            '{"__metadata__": {"more": "1", ',
            "parts that do not belong",
        ),
        (r"\"version\":2", r"\"version\":2,\"more\":1", "parts that do not belong"),
        ('"dtype": "U8"', '"dtype": "U8", "more": 1', "parts that do not belong"),
        (
            '"dtype": "U8"',
            '"dtype": "U8", "dtype": "U8"',
            "not a file that Sapwood saved",
        ),
        (
            r"\"version\":2",
            r"\"version\":2,\"version\":2",
            "not a file that Sapwood saved",
        ),
        (r"\"version\":2", r"\"version\":NaN", "not a file that Sapwood saved"),
        (r"\"version\":2", r"\"version\":true", "version True"),
        ('"dtype": "U8"', '"dtype": "U9"', "arrays of the file cannot be read"),
        ('"shape": [3]', '"shape": [4]', "arrays of the file cannot be read"),
        (
            '"data_offsets": [48, 51]',
            '"data_offsets": [47, 50]',
            "arrays of the file cannot be read",
        ),
        ('"data_offsets": [48, 51]', '"data_offsets": [0, 3]', "overlap"),
        ('"data_offsets": [48, 51]', '"data_offsets": [49, 52]', "leave gaps"),
        (
            '"data_offsets": [48, 51]',
            '"data_offsets": [true, 4]',
            "not described as an array",
        ),
        ('"shape": [3]', '"shape": [3.0]', "not described as an array"),
        ('"shape": [3]', '"shape": [-3]', "not described as an array"),
        (
            '"shape": [3]',
            '"shape": [9223372036854775807, 0]',
            "another size than its shape",
        ),
        (
            '"shape": [0]',
            '"shape": [0, 9223372036854775807]',
            "arrays of the file cannot be read",
        ),
        ('"shape": [3]', f'"shape": {[1] * 33}', "not described as an array"),
        ('"shape": [3]', f'"shape": {[2**62] * 100_000}', "not described as an array"),
    ],
)
def test_lies_under_a_right_digest_raise(old, new, message):
    def change(text):
        assert old in text
        return text.replace(old, new, 1)

    with pytest.raises(DataError, match=message):
        unpack(forged(change))


def test_arrays_that_are_not_aligned_raise():
    odd = {
        "one byte": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "the rest": {"dtype": "U16", "shape": [25], "data_offsets": [1, 51]},
    }
    with pytest.raises(DataError, match="not aligned"):
        unpack(
            forged(
                lambda text: json.dumps(
                    {"__metadata__": json.loads(text)["__metadata__"], **odd}
                )
            )
        )


def test_the_library_reads_and_writes_the_same_bytes():
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        f"{kind}{n}": np.ones((n, 2), kind)
        for kind in container.TYPES.values()
        for n in (0, 1, 3)
    }
    text = 'a "quoted" text,\n\x7f å'
    raw = container._joined(arrays, text)
    assert library.save(arrays, {container.ENTRY: text}) == raw
    found = library.load(raw)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert_array_equal(found[name], array)


def test_arrays_on_the_same_bytes_take_no_memory():
    """A header of 200 kB that names 1 MB of values 4,000 times: 4 GB, if the arrays
    were made first.
    """
    raw = container.pack("thing", 2, {"x": np.zeros(1_000_000, np.uint8)}, {})
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(
        raw[8 : 8 + length].replace(json_digest(raw), container.BLANK.encode())
    )
    header |= {f"x{k}": header["x"] for k in range(4_000)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    lie = len(text).to_bytes(8, "little") + text + raw[8 + length :]
    lie = lie.replace(container.BLANK.encode(), sha256(lie).hexdigest().encode(), 1)
    tracemalloc.start()
    with pytest.raises(DataError, match="overlap"):
        unpack(lie)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_numbers_that_json_has_not_raise():
    with pytest.raises(ValueError, match="JSON"):
        container.pack("thing", 1, {}, {"x": float("nan")})
