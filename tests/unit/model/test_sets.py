"""Sets of many codes in files: bits, and what is no set."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cover import examples
from sapwood import Dataset, load, train
from sapwood.data import container
from sapwood.errors import ModelFormatError
from sapwood.model import sets


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2000), st.integers(1, 65534), st.integers(0, 2**32 - 1)
        ),
        max_size=6,
    )
)
def test_codes_come_back(drawn: list[tuple[int, int, int]]) -> None:
    parts = [
        np.sort(
            np.random.default_rng(seed).choice(top, min(size, top), replace=False)
        ).astype(np.int32)
        for size, top, seed in drawn
    ]
    offset = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    code = np.concatenate([np.empty(0, np.int32), *parts])
    arrays = sets.encode(offset, code)
    assert (
        sum(array.nbytes for array in arrays.values())
        <= 2 * offset.nbytes + code.nbytes
    )
    sets.decode(arrays)
    assert list(arrays) == ["set_offset", "set_code"]
    for name, given_ in (("set_offset", offset), ("set_code", code)):
        np.testing.assert_array_equal(arrays[name], given_, strict=True)


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, bytes]:
    """A model whose sets are of hundreds of codes, and some rows."""
    rng = np.random.default_rng(0)
    code = np.append(np.arange(1500), rng.integers(0, 1500, 1500))
    X = np.array([f"v{c}" for c in code], object)[:, None]
    y = np.sin(code) + rng.normal(size=len(code))
    params = {"category_encoding": "ordered", "n_estimators": 4, "max_leaves": 6}
    return X, train(params, Dataset(X, y)).to_bytes()


def test_files(many: tuple[np.ndarray, bytes]) -> None:
    X, raw = many
    booster = load(raw)
    assert booster.to_bytes() == raw
    assert len(raw) < booster.trees.set_code.nbytes
    arrays, fields = container.unpack(raw, "model", 4, ModelFormatError)
    listed = dict(arrays) | {
        "set_offset": booster.trees.set_offset,
        "set_code": booster.trees.set_code,
    }
    del listed["set_bits"], listed["set_bits_offset"]
    old = load(container.pack("model", 2, listed, fields))  # as it was written before
    np.testing.assert_array_equal(old.predict(X), booster.predict(X))
    # row by row
    np.testing.assert_array_equal(booster.predict(X)[:40], booster.predict(X[:40]))
    with pytest.raises(ModelFormatError, match="version 4"):
        container.unpack(raw, "model", 3, ModelFormatError)


LIES: dict[str, Any] = {
    "no bits": lambda a: a.pop("set_bits"),
    "no offsets": lambda a: a.pop("set_bits_offset"),
    "bits of another type": lambda a: a.update(set_bits=a["set_bits"].astype(np.int32)),
    "two axes": lambda a: a.update(set_bits=a["set_bits"][None]),
    "fewer offsets": lambda a: a.update(set_bits_offset=a["set_bits_offset"][1:]),
    "no offset at all": lambda a: a.update(
        set_bits_offset=a["set_bits_offset"][:0], set_offset=a["set_offset"][:0]
    ),
    "offsets that fall": lambda a: a.update(
        set_bits_offset=a["set_bits_offset"][::-1].copy()
    ),
    "offsets beyond the end": lambda a: a["set_bits_offset"].__setitem__(-1, 10**9),
    "codes beyond the column": lambda a: a.update(
        set_bits=np.append(a["set_bits"], np.full(99, 255, np.uint8)),
        set_bits_offset=np.append(a["set_bits_offset"][:-1], len(a["set_bits"]) + 99),
    ),
    "codes and bits": lambda a: a.update(
        set_offset=np.arange(len(a["set_offset"])),
        set_code=np.zeros(len(a["set_offset"]) - 1, np.int32),
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_hostile_files_raise(lie: str, many: tuple[np.ndarray, bytes]) -> None:
    arrays, fields = container.unpack(many[1], "model", 4, ModelFormatError)
    arrays = {name: array.copy() for name, array in arrays.items()}
    LIES[lie](arrays)
    with pytest.raises(ModelFormatError):
        load(container.pack("model", 4, arrays, fields))
