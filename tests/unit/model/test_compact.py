"""Files of large models: every bit comes back, they are small, and lies in them are
found.
"""

import dataclasses
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cover import examples
from sapwood import Dataset, load, train
from sapwood.data import container
from sapwood.errors import ModelFormatError
from sapwood.model import Booster, Trees, compact
from sapwood.model.io import KIND, VERSION
from unit.model.handmade import grown, leaf, split

Parts = tuple[dict[str, np.ndarray], dict[str, Any]]

GOLDEN = Path(__file__).parents[2] / "golden" / "model-8.sapwood"
SAID = "0x1.32dc95fa37d26p-1 0x1.09ab95e3df38bp-1 0x1.1f04525c87361p-2"
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4)).round(1)
X[::9, 1] = np.nan
Y = X[:, 0] + X[:, 2] * X[:, 3] + rng.normal(0, 0.1, 400)
THREE = np.digitize(Y, [-0.5, 0.5])
WEIGHT = rng.random(400) + 0.1
TOWN = pd.DataFrame(X, columns=list("abcd")).assign(
    t=rng.choice(["Bern", "Lyon", "Oslo", "Rome"], 400)
)
TOWN["t"] = TOWN["t"].astype("category")
VECTOR = {"objective": "softmax", "multi_strategy": "multi_output_tree"}
STANDARD = {
    "linear_leaves": True,
    "linear_units": "standard",
    "grow_policy": "symmetric",
}

KINDS: dict[str, Callable[[], Dataset]] = {
    "numbers": lambda: Dataset(X, Y),
    "weights": lambda: Dataset(X, Y, weight=WEIGHT),
    "classes": lambda: Dataset(X, THREE),
    "categories": lambda: Dataset(TOWN, Y),
    "categories and classes": lambda: Dataset(TOWN, THREE),
    "lines": lambda: Dataset(X, Y, linear_leaves=True),
    "lines and classes": lambda: Dataset(X, THREE, linear_leaves=True),
}
PARAMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "symmetric": {"grow_policy": "symmetric", "max_depth": 4},
    "forest": {"boosting": "forest", "subsample": 0.6},
    "copies": {"n_parallel_trees": 3, "subsample": 0.5},
    "dart": {"boosting": "dart", "rate_drop": 0.5},
    "no splits": {"min_split_gain": 1e30},
    "joined": {"category_encoding": "ordered", "max_combination": 2},
}


def model(kind: str, params: str = "plain") -> Booster:
    """A model of a dozen rounds; trees of classes have vectors in their leaves."""
    more = (VECTOR if "classes" in kind else {}) | (STANDARD if "lines" in kind else {})
    return train(
        {"n_estimators": 12, "max_leaves": 9, **more, **PARAMS[params]}, KINDS[kind]()
    )


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models and very small files are compact too."""
    monkeypatch.setattr(compact, "MIN_BYTES", 0)
    monkeypatch.setattr(compact, "MAX_TIMES", 1000)


def assert_same(back: Booster, booster: Booster) -> None:
    for name in compact.DTYPES:
        one, other = (
            getattr(b.trees.linear if "linear" in name else b.trees, name, None)
            for b in (back, booster)
        )
        if other is None:
            assert one is None
            continue
        assert (
            one.dtype == other.dtype
            and one.tobytes() == other.tobytes()
            and not one.flags.writeable
        ), name


def unpacked(raw: bytes) -> Parts:
    return container.unpack(raw, KIND, VERSION, ModelFormatError)


def assert_comes_back(booster: Booster) -> Parts:
    raw = booster.to_bytes()
    back = load(raw)
    assert_same(back, booster)
    assert back.to_bytes() == raw
    arrays, fields = unpacked(raw)
    assert fields["compact"]["nodes"] == booster.trees.n_nodes
    return arrays, fields


@pytest.mark.pairwise
@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_comes_back(kind: str, params: str, always: None) -> None:
    arrays, fields = assert_comes_back(model(kind, params))
    assert not fields["compact"]["whole"]
    if "classes" in kind and params != "no splits":
        assert "threshold.same" in arrays and "column.same" in arrays


def test_the_file_is_small_and_old_libraries_say_why_they_cannot_read_it() -> None:
    booster = train(
        {"n_estimators": 60, **VECTOR, **STANDARD}, KINDS["lines and classes"]()
    )
    raw = booster.to_bytes()
    plain = sum(
        getattr(booster.trees, name).nbytes
        for name in compact.DTYPES
        if "linear" not in name and name != "set"
    )
    assert (
        len(raw)
        < (plain + sum(part.nbytes for part in booster.trees.linear.terms)) / 2.5
    )
    assert raw == load(raw).to_bytes()
    with pytest.raises(
        ModelFormatError,
        match=r"has version 8; this Sapwood reads versions 1..7. Upgrade Sapwood",
    ):
        container.unpack(raw, KIND, 7, ModelFormatError)
    # too small
    assert (
        b"compact"
        not in booster.trees.slice(0, 3).value.tobytes() + model("classes").to_bytes()
    )


def test_files_stay_as_they_were_released(always: None) -> None:
    raw = GOLDEN.read_bytes()
    assert load(raw).to_bytes() == raw
    assert load(raw).predict(X[:3])[:, 1].tolist() == [
        float.fromhex(one) for one in SAID.split()
    ]


def test_plain_files_of_any_size_load(monkeypatch: pytest.MonkeyPatch) -> None:
    booster = train({"n_estimators": 100, **VECTOR}, KINDS["classes"]())
    small = booster.to_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(compact, "MIN_BYTES", 1 << 60)
        plain = booster.to_bytes()  # as it was written before
    assert len(small) < len(plain) / 3 and "compact" not in unpacked(plain)[1]
    assert load(plain).to_bytes() == small


def test_a_model_that_would_be_too_small_is_stored_plain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compact, "MIN_BYTES", 0)
    one = model("numbers")
    equal = dataclasses.replace(
        one, trees=Trees.concat([one.trees.slice(0, 1)] * 500), best_round=None
    )
    assert "compact" not in unpacked(equal.to_bytes())[1]
    assert_same(load(equal.to_bytes()), equal)


def changed(booster: Booster, **arrays: Any) -> Booster:
    return dataclasses.replace(
        booster, trees=dataclasses.replace(booster.trees, **arrays)
    )


def test_numbers_that_do_not_follow_are_stored(always: None) -> None:
    """Covers of other libraries need not be sums, and zeros have a sign."""
    booster = model("numbers")
    trees = booster.trees
    for name in ("cover", "count"):
        other = np.random.default_rng(1).random(trees.n_nodes)
        assert assert_comes_back(changed(booster, **{name: other}))[1]["compact"][
            "whole"
        ] == [name]
    signed = np.where(trees.left > 0, -0.0, trees.value)
    assert assert_comes_back(changed(booster, value=signed))[1]["compact"]["whole"] == [
        "value"
    ]
    signed = np.where(trees.left == 0, -0.0, trees.gain)
    assert assert_comes_back(changed(booster, gain=signed))[1]["compact"]["whole"] == [
        "gain"
    ]


def chain(n_levels: int) -> Booster:
    """One tree whose right children are split again and again."""
    nodes: list[Any] = [split(0, 0.0, left=1, gain=1.0, cover=n_levels + 1.0)]
    for level in range(1, n_levels):
        nodes += [
            leaf(level),
            split(
                0,
                float(level),
                left=2 * level + 1,
                gain=1.0,
                cover=n_levels + 1.0 - level,
            ),
        ]
    return dataclasses.replace(
        model("numbers"), trees=Trees.of([(grown(*nodes, leaf(7.0), leaf(8.0)), 0)])
    )


@pytest.mark.parametrize(("n_levels", "whole"), [(255, []), (256, ["count", "cover"])])
def test_sums_of_deep_trees_are_stored(
    n_levels: int, whole: list[str], always: None
) -> None:
    assert assert_comes_back(chain(n_levels))[1]["compact"]["whole"] == whole


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_any_array_comes_back(data: st.DataObject) -> None:
    """Numbers of trees of any sizes, from few different ones to all different, some
    trees as the one before.
    """
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    name = data.draw(st.sampled_from(sorted(compact.DTYPES)))
    dtype = compact.DTYPES[name]
    n_trees = data.draw(st.integers(1, 40))
    pool = draw.integers(
        0, 2**63, data.draw(st.sampled_from([1, 2, 3, 17, 300, 70_000])), np.uint64
    )
    pool = pool.view(np.uint8)[: len(pool) * dtype.itemsize].view(dtype)
    parts: list[np.ndarray] = []
    for _ in range(n_trees):
        again = parts and draw.random() < 0.5
        parts.append(
            parts[-1] if again else draw.choice(pool, draw.choice([0, 1, 5, 60, 3000]))
        )
    array = np.concatenate(parts)
    ends = np.cumsum([0, *map(len, parts)])
    coded = {}
    compact._put(coded, name, array, ends)
    assert sum(one.nbytes for one in coded.values()) <= array.nbytes + 20
    assert compact._get(coded, name, ends).tobytes() == array.tobytes()
    assert not coded


# Lies


def put(name: str, at: int, value: Any) -> Callable[[Parts], Any]:
    return lambda p: p[0][name].__setitem__(at, value)


def array(name: str, make: Callable[[np.ndarray], Any]) -> Callable[[Parts], Any]:
    return lambda p: p[0].__setitem__(name, make(p[0][name]))


def said(**changes: Any) -> Callable[[Parts], Any]:
    return lambda p: p[1]["compact"].update(changes)


def new(name: str, value: Any) -> Callable[[Parts], Any]:
    return lambda p: p[0].__setitem__(name, np.array(value))


LIES: dict[str, Callable[[Parts], Any]] = {
    "not an object": lambda p: p[1].update(compact=[1]),
    "nothing said": lambda p: p[1].update(compact={}),
    "more is said": said(more=1),
    **{
        f"{value!r} {name}": said(**{name: value})
        for name in ("trees", "nodes", "terms")
        for value in (-1, 0, 1, 2**20, 2**39, 2**64, True, 3.0, "3", None)
    },
    "whole is a name": said(whole="cover"),
    "whole has what is no array": said(whole=["base"]),
    "whole has what is no name": said(whole=[1]),
    "whole, but leaves only": said(whole=["cover"]),
    **{
        f"no {name}": lambda p, name=name: p[0].pop(name)
        for name in (
            "offset.table",
            "offset.code",
            "left.table",
            "left.code",
            "column.same",
            "threshold.table",
            "threshold.code",
            "threshold.same",
            "gain",
            "value.some",
            "value.most",
            "cover",
            "linear_offset.table",
            "linear_column.table",
            "linear_coef",
            "output.table",
            "value",
        )
    },
    "a table of nothing": array("threshold.table", lambda a: a[:0]),
    "a table too large": array("threshold.table", lambda a: np.arange(2**16 + 1.0)),
    "a table of another type": array("threshold.table", lambda a: a.astype(np.float32)),
    "a table of two dimensions": array("threshold.table", lambda a: a[None]),
    "a table with a number": new("threshold.table", 5),
    "a longer table": array("threshold.table", lambda a: np.append(a, a)),
    "a shorter table": array("left.table", lambda a: a[:1]),
    "codes beyond the table": array("left.code", lambda a: np.full_like(a, 255)),
    "codes too few": array("left.code", lambda a: a[:-1]),
    "codes too many": array("left.code", lambda a: np.append(a, a[:1])),
    "codes of another type": array("left.code", lambda a: a.astype(np.int8)),
    "numbers too few": array("gain", lambda a: a[:-1]),
    "numbers too many": array("gain", lambda a: np.append(a, 1.0)),
    "numbers of another type": array("gain", lambda a: a.astype(np.float32)),
    "some bits more": array("value.some", lambda a: np.full_like(a, 255)),
    "some bits too few": array("value.some", lambda a: a[:-1]),
    "two most frequent": array("value.most", lambda a: np.append(a, a)),
    "a most frequent of another type": array(
        "value.most", lambda a: a.astype(np.float32)
    ),
    "the first tree as before": put("column.same", 0, 255),
    "all trees as before": array("column.same", lambda a: np.full_like(a, 255)),
    "too few bits of trees": array("column.same", lambda a: a[:-1]),
    "trees of no node": put("offset.table", 0, 0),
    "trees of negative size": put("offset.table", 0, -3),
    "trees that wrap around": array("offset.table", lambda a: np.full_like(a, 2**62)),
    "trees that are too large": put("offset.table", -1, 10_000),
    "a cycle": put("left.table", -1, 1),
    "children beyond the tree": put("left.table", -1, 2**31 - 1),
    "negative children": put("left.table", -1, -1),
    "negative terms": put("linear_offset.table", 0, -1),
    "terms that wrap around": array(
        "linear_offset.table", lambda a: np.full_like(a, 2**62)
    ),
    "cover infinite": array("cover", lambda a: np.full_like(a, 1e308)),
    "an array twice": new("left", [1, 0, 0]),
    "an unknown entry": new("value.rest", [1.0]),
    "another array": new("more.table", [1.0]),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_raise(lie: str, always: None) -> None:
    arrays, fields = unpacked(GOLDEN.read_bytes())
    load(container.pack(KIND, VERSION, arrays, fields))
    lied = {name: array.copy() for name, array in arrays.items()}, fields
    LIES[lie](lied)
    with pytest.raises(ModelFormatError):
        load(container.pack(KIND, VERSION, *lied))


def test_levels_are_counted_before_sums_are_made(always: None) -> None:
    arrays, fields = unpacked(chain(256).to_bytes())
    arrays = {
        name: array
        for name, array in arrays.items()
        if name.partition(".")[0] not in compact.SUMS
    }
    arrays |= {name: np.ones(257) for name in compact.SUMS}
    fields["compact"]["whole"] = []
    with pytest.raises(ModelFormatError, match="at most 256 levels"):
        load(container.pack(KIND, VERSION, arrays, fields))


def test_memory_is_bounded_by_the_size_of_the_file() -> None:
    """A file that says as much as it may of its size is loaded within the bound of
    docs/promise.md.
    """
    few = np.random.default_rng(0).random(60_000) * (np.arange(60_000) < 25_000)
    leaves = Trees.of([(grown(leaf(value, 0.0)), 0) for value in few])
    booster = dataclasses.replace(model("numbers"), trees=leaves, best_round=None)
    raw = booster.to_bytes()
    assert (
        12
        < sum(
            getattr(leaves, name).nbytes
            for name in compact.DTYPES
            if "linear" not in name
        )
        / len(raw)
        < 19
    )
    tracemalloc.start()
    try:
        load(raw)
        assert tracemalloc.get_traced_memory()[1] < 64 * len(raw)
    finally:
        tracemalloc.stop()
    arrays, fields = unpacked(raw)
    fields["compact"]["nodes"] *= 2
    with pytest.raises(ModelFormatError, match="too many for its size"):
        load(container.pack(KIND, VERSION, arrays, fields))
