import dataclasses
import errno
import hashlib
import io as stdio
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sapwood.data import container
from sapwood.errors import DataError, ModelFormatError
from sapwood.model import Booster, load
from sapwood.model.io import ARRAYS, FIELDS
from sapwood.model.trees import DTYPES, SETS, Trees

Parts = tuple[dict[str, np.ndarray], dict[str, Any]]


def parts(booster: Booster) -> Parts:
    """What the file holds, free to be changed."""
    arrays, fields = container.unpack(booster.to_bytes(), "model", 1, ModelFormatError)
    return {name: array.copy() for name, array in arrays.items()}, fields


def test_bytes_are_the_same_every_time(regressor: Booster, classifier: Booster) -> None:
    for model in (regressor, classifier):
        raw = model.to_bytes()
        assert load(raw).to_bytes() == model.to_bytes() == raw
        assert model.fingerprint() == hashlib.sha256(raw).hexdigest()
    assert regressor.fingerprint() != classifier.fingerprint()


def test_bytes_depend_on_the_model_alone(regressor: Booster) -> None:
    """Neither the order of dicts nor the history reaches the file."""
    turned = dict(reversed(regressor.params.items()))
    twin = dataclasses.replace(regressor, params=turned, history={"other": [1.0]})
    assert twin.to_bytes() == regressor.to_bytes()
    assert (
        dataclasses.replace(regressor, base=[10.5]).to_bytes() != regressor.to_bytes()
    )


def test_format_is_the_one_that_was_released(
    regressor: Booster, classifier: Booster
) -> None:
    """Other bytes for the same model would break fingerprints; only a new format
    version may change this.
    """
    assert (
        regressor.fingerprint()
        == "dfdfabcea214436b965f528b781401db9135d9b2e9ecdf7050f5fe5cba21c03e"
    )
    assert (
        classifier.fingerprint()
        == "83a12c19cbff1c1e15f5d4e48ee93701f74fb85931a408a996113318f60f9b5f"
    )


def test_files_of_the_first_format_load_and_stay_as_they_are(
    regressor: Booster, X, answers
) -> None:
    raw = (Path(__file__).parents[2] / "golden" / "model-1.sapwood").read_bytes()
    old = load(raw)
    assert old.to_bytes() == raw == regressor.to_bytes()
    np.testing.assert_array_equal(old.predict(X), answers)


def test_everything_comes_back(
    regressor: Booster, classifier: Booster, X, answers
) -> None:
    for model in (regressor, classifier):
        back = load(model.to_bytes())
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
        for name in ARRAYS:
            kept, got = (
                getattr(b if name == "base" else b.trees, name) for b in (model, back)
            )
            np.testing.assert_array_equal(kept, got, strict=True)
            assert not got.flags.writeable
    np.testing.assert_array_equal(load(regressor.to_bytes()).predict(X), answers)


def test_load_from_path_bytes_and_file(regressor: Booster, tmp_path: Path) -> None:
    path = tmp_path / "модель ☃.sapwood"
    regressor.save(path)
    raw = path.read_bytes()
    assert raw == regressor.to_bytes()
    for source in (
        path,
        str(path),
        raw,
        bytearray(raw),
        memoryview(raw),
        stdio.BytesIO(raw),
    ):
        assert load(source).to_bytes() == raw
    with open(path, "rb") as file:
        assert load(file).to_bytes() == raw
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(ModelFormatError, match="gave str where bytes"):
        load(stdio.StringIO("text"))
    with pytest.raises(ModelFormatError, match="Cannot load a int"):
        load(3)


CLASSES = [
    np.array([False, True]),
    np.array([-5, 2**62]),
    np.array([0, 2**64 - 1], np.uint64),
    np.array([1, 2], np.int8),
    np.array([0.1, 1e300]),
    np.array([0.1, 2.5], np.float32),
    np.array(["no", "yes"]),
    np.array(["", 'ünï \x00\U0001f333\udc80 \\" {}']),
    np.array(["no", "yes"], object),
    np.array([2**100, -(2**100)], object),
    np.array([np.str_("no"), np.int64(3)], object),
    np.array(["0" * 64, "1" * 64]),
]


@pytest.mark.parametrize("classes", CLASSES, ids=repr)
def test_classes_round_trip_exactly(classes: np.ndarray, classifier: Booster) -> None:
    trees = classifier.trees.slice(0, 1)
    base = classifier.base[:1]
    model = dataclasses.replace(
        classifier,
        trees=trees,
        base=base,
        objective="logistic",
        link="sigmoid",
        classes=classes,
    )
    back = load(model.to_bytes())
    assert back.classes.dtype == classes.dtype
    assert back.classes.tolist() == classes.tolist()
    assert back.to_bytes() == model.to_bytes()


def test_classes_that_json_cannot_hold_raise(classifier: Booster) -> None:
    for classes in (
        np.array(["2001-01-01", "2002-01-01", "2003-01-01"], "M8[D]"),
        np.array([b"a", b"b", b"c"]),
    ):
        with pytest.raises(
            DataError, match="cannot be saved; use strings, booleans or numbers"
        ):
            dataclasses.replace(classifier, classes=classes).to_bytes()


def test_width_and_byte_order_of_classes_do_not_reach_the_file(
    classifier: Booster,
) -> None:
    wide = dataclasses.replace(classifier, classes=classifier.classes.astype(">U40"))
    assert wide.to_bytes() == classifier.to_bytes()


# Damage: the digest


def test_every_truncation_raises(regressor: Booster) -> None:
    raw = regressor.to_bytes()
    for length in range(len(raw)):
        with pytest.raises(ModelFormatError):
            load(raw[:length])
    for more in (b"\0", b" ", raw):
        with pytest.raises(ModelFormatError):
            load(raw + more)


@pytest.mark.parametrize("model", ["regressor", "classifier"])
def test_every_single_byte_change_raises(
    model: str, request: pytest.FixtureRequest
) -> None:
    raw = bytearray(request.getfixturevalue(model).to_bytes())
    for place, byte in enumerate(raw):
        others = {byte ^ (1 << bit) for bit in range(8)} | {
            0,
            9,
            10,
            13,
            32,
            34,
            48,
            92,
            255,
        }
        for other in others - {byte}:
            raw[place] = other
            with pytest.raises(ModelFormatError):
                load(raw)
        raw[place] = byte
    load(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 8,
        b"\0" * 100,
        b"\xff" * 100,
        b"PK\x03\x04" + b"\0" * 60,
        b"tree\nversion=v4\n",
    ],
)
def test_other_files_raise(raw: bytes) -> None:
    with pytest.raises(ModelFormatError):
        load(raw)


# Lies: the digest made anew


def sealed(header: bytes, body: bytes) -> bytes:
    """A container of any header, with a digest that is right."""
    raw = len(header).to_bytes(8, "little") + header + body
    return raw.replace(
        container.BLANK.encode(), hashlib.sha256(raw).hexdigest().encode(), 1
    )


def opened(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a container, its digest blank, and the bytes after it."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    entry = json.loads(header["__metadata__"]["sapwood"])
    header["__metadata__"]["sapwood"] = json.dumps(entry | {"digest": container.BLANK})
    return header, raw[8 + length :]


def padded(header: Any) -> bytes:
    text = json.dumps(header).encode()
    return text + b" " * (-len(text) % 8)


def entry_change(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        entry = json.loads(header["__metadata__"]["sapwood"]) | changes
        header["__metadata__"]["sapwood"] = json.dumps(entry)

    return change


def tensor_change(name: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header[name].update(changes)


HEADER_LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no metadata": lambda h: h.pop("__metadata__"),
    "metadata of others": lambda h: h["__metadata__"].update(format="pt"),
    "version 10": entry_change(version=10),
    "version 0": entry_change(version=0),
    "version true": entry_change(version=True),
    "version text": entry_change(version="1"),
    "a dataset": entry_change(kind="dataset"),
    "more in the entry": entry_change(more=1),
    "fields a list": entry_change(fields=[]),
    "offsets overlap": tensor_change("value", data_offsets=[0, 64]),
    "offsets overflow": tensor_change("value", data_offsets=[2**64 - 8, 2**64]),
    "offsets negative": tensor_change("value", data_offsets=[-8, 56]),
    "offsets beyond the file": tensor_change("value", data_offsets=[2**40, 2**40 + 64]),
    "shape too large": tensor_change("value", shape=[9]),
    "shape overflows": tensor_change("value", shape=[2**62, 2**62]),
    "shape negative": tensor_change("value", shape=[-8]),
    "shape of two dimensions": tensor_change("value", shape=[2, 4]),
    "a dtype numpy has not": tensor_change("value", dtype="BF16", shape=[32]),
    "an unknown dtype": tensor_change("value", dtype="F63"),
    "another dtype": tensor_change("value", dtype="I64"),
    "base a scalar": tensor_change("base", shape=[]),
    "more about an array": tensor_change("value", strides=[8]),
}


@pytest.mark.parametrize("lie", HEADER_LIES)
def test_lies_in_the_header_raise(regressor: Booster, lie: str) -> None:
    header, body = opened(regressor.to_bytes())
    load(sealed(padded(header), body))
    HEADER_LIES[lie](header)
    with pytest.raises(ModelFormatError):
        load(sealed(padded(header), body))


@pytest.mark.parametrize("name", ["column", "left", "value", "offset", "output"])
def test_one_number_in_place_of_an_array_raises(regressor: Booster, name: str) -> None:
    nodes = {
        one: np.zeros(1, DTYPES[one]) for one in DTYPES if one not in ("offset", *SETS)
    } | {"column": [-1]}
    leaf = Trees(
        offset=np.array([0, 1]),
        **{one: np.array(value, DTYPES[one]) for one, value in nodes.items()},
    )
    header, body = opened(
        dataclasses.replace(regressor, trees=leaf, best_round=None).to_bytes()
    )
    load(sealed(padded(header), body))
    if name == "offset":  # the only one of two numbers
        first = header[name]["data_offsets"][0]
        tensor_change(name, dtype="I64", shape=[], data_offsets=[first, first + 8])(
            header
        )
    else:
        tensor_change(name, shape=[])(header)
    with pytest.raises(ModelFormatError):
        load(sealed(padded(header), body))


def test_lies_about_the_header_raise(regressor: Booster) -> None:
    header, body = opened(regressor.to_bytes())
    text = padded(header)
    raw = sealed(text, body)
    for length in (0, len(text) - 1, len(text) + 8, len(raw), 2**31, 2**63, 2**64 - 1):
        with pytest.raises(ModelFormatError):
            load(length.to_bytes(8, "little") + raw[8:])
    with pytest.raises(ModelFormatError):
        load(sealed(text, body + b"\0" * 8))  # bytes that belong to no array
    with pytest.raises(ModelFormatError):
        load(sealed(text, body[:-1]))
    deep = b"[" * 200_000 + b"]" * 200_000
    with pytest.raises(ModelFormatError):
        load(sealed(b'{"a":' + deep + b"}", b""))
    with pytest.raises(ModelFormatError):
        # not UTF-8
        load(sealed(text.replace(b'"__metadata__"', b'"\xff_metadata__"'), body))


def test_duplicate_keys_raise(regressor: Booster) -> None:
    header, body = opened(regressor.to_bytes())
    text = padded(header).rstrip()
    again = json.dumps({"value": header["value"]}).encode()
    with pytest.raises(ModelFormatError):
        load(sealed(text[:-1] + b", " + again[1:], body))
    entry = header["__metadata__"]["sapwood"]
    header["__metadata__"]["sapwood"] = entry.replace(
        '"kind"', '"kind": "model", "kind"'
    )
    with pytest.raises(ModelFormatError):
        load(sealed(padded(header), body))


def test_misaligned_arrays_raise(classifier: Booster) -> None:
    """A valid container in all but the order of its arrays: six bytes first, so that
    the others start at odd places.
    """
    header, body = opened(classifier.to_bytes())
    order = sorted(
        (name for name in header if name != "__metadata__"),
        key=lambda name: header[name]["dtype"],
        reverse=True,
    )
    assert order[0] == "missing_left"
    moved = b""
    for name in order:
        first, last = header[name]["data_offsets"]
        header[name]["data_offsets"] = [len(moved), len(moved) + last - first]
        moved += body[first:last]
    assert (len(moved), header["missing_left"]["data_offsets"]) == (len(body), [0, 6])
    with pytest.raises(ModelFormatError):
        load(sealed(padded(header), moved))


def field(name: str, value: Any) -> Callable[[Parts], None]:
    return lambda p: p[1].update({name: value})


def array(name: str, value: Any) -> Callable[[Parts], None]:
    return lambda p: p[0].update({name: np.array(value)})


def put(name: str, index: int, value: float) -> Callable[[Parts], None]:
    return lambda p: p[0][name].__setitem__(index, value)


def classes(dtype: Any, values: Any, **more: Any) -> Callable[[Parts], None]:
    return field("classes", {"dtype": dtype, "values": values, **more})


# What is no JSON value of the kind a field wants; test_trees.py has every lie about the
# trees themselves.
WRONG = {
    "objective": [None, 1, [], "", "logistic", "quantile"],
    "fields": [None, [], "x", {"alpha": 0.5}],
    "link": [None, 0, "", "sigmoid", "softmax", "exp", "custom", "cosine"],
    "feature_names": [
        None,
        "ab",
        {},
        [],
        ["age"],
        ["age", "age"],
        ["age", 1],
        ["age", None],
        ["age", ["x"]],
        ["age", "\ud800"],
    ],
    "named": [None, 0, 1, "true"],
    "params": [
        None,
        [],
        "x",
        {"monotone_constraints": 5},
        {"learning_rate": "fast"},
        {"max_depth": [1]},
    ],
    "classes": [[], "x", {}, 3],
    "best_round": ["1", 1.0, True, -1, 3, 2**70],
    "data_fingerprint": [None, 1, []],
}
LIES: dict[str, Callable[[Parts], Any]] = {
    **{
        f"{name} is {value!r}": field(name, value)
        for name, values in WRONG.items()
        for value in values
    },
    **{f"no field {name}": lambda p, name=name: p[1].pop(name) for name in FIELDS},
    **{
        f"no array {name}": lambda p, name=name: p[0].pop(name)
        for name in sorted(ARRAYS)
    },
    "another field": field("pickle", "cos\nsystem"),
    "another array": array("more", [1.0]),
    "base of no output": array("base", np.zeros(0)),
    "base of two outputs": array("base", np.zeros(2)),
    "base of two dimensions": array("base", np.zeros((1, 1))),
    "base of integers": array("base", [10]),
    "base NaN": array("base", [np.nan]),
    "base infinite": array("base", [np.inf]),
    "a cycle": put("left", 2, 1),
    "two parents": put("left", 0, 3),
    "child out of range": put("left", 0, 2**31 - 1),
    "column out of range": put("column", 0, 2),
    "threshold NaN": put("threshold", 0, np.nan),
    "output out of range": put("output", 0, 7),
    "a leaf so large that scores overflow": put("value", -1, 1e308),
    "a regressor with classes": classes("int64", [0, 1]),
}
CLASS_LIES = {
    "too few": classes("int64", [0, 1]),
    "too many": classes("int64", [0, 1, 2, 3]),
    "twice the same": classes("int64", [0, 1, 1]),
    "too large": classes("int8", [0, 1, 128]),
    "negative": classes("uint8", [0, 1, -1]),
    "rounded": classes("float32", [0.1, 0.5, 1.0]),
    "infinite": classes("float32", [1.5, 0.5, 1e300]),
    "mixed": classes("int64", [0, 1, "2"]),
    "booleans as integers": classes("int64", [0, 1, True]),
    "numbers as text": classes("str", ["a", "b", 1]),
    "lost zeros at the end": classes("str", ["a", "b", "c\0"]),
    "null": classes("object", ["a", "b", None]),
    "lists": classes("object", ["a", "b", []]),
    "nested": classes("int64", [[0], [1], [2]]),
    "no list": classes("str", "abc"),
    "dtype of code": classes("O", ["a", "b", "c"]),
    "dtype of a record": classes("i8,i8", [0, 1, 2]),
    "dtype huge": classes("U1000000000", ["a", "b", "c"]),
    "dtype no text": classes(["int64"], [0, 1, 2]),
    "more": classes("int64", [0, 1, 2], more=1),
}


def assert_raises(model: Booster, lie: Callable[[Parts], Any]) -> None:
    changed = parts(model)
    assert load(container.pack("model", 1, *changed)).to_bytes() == model.to_bytes()
    lie(changed)
    with pytest.raises(ModelFormatError):
        load(container.pack("model", 1, *changed))


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_the_content_raise(regressor: Booster, lie: str) -> None:
    assert_raises(regressor, LIES[lie])


@pytest.mark.parametrize("lie", CLASS_LIES)
def test_lies_about_classes_raise(classifier: Booster, lie: str) -> None:
    assert_raises(classifier, CLASS_LIES[lie])


def test_errors_say_what_is_wrong(regressor: Booster) -> None:
    arrays, fields = parts(regressor)
    for message, version, changed in (
        ("version 10; this Sapwood reads versions 1..9. Upgrade", 10, fields),
        ("'named' is a int, not a bool", 1, fields | {"named": 1}),
        (
            r"fields {} are not the finite \['quantile_alpha'\]",
            1,
            fields | {"objective": "quantile"},
        ),
        (
            "squared_error has link identity, not 'sigmoid'",
            1,
            fields | {"link": "sigmoid"},
        ),
        ("best_round=3 is beyond the 2 rounds", 1, fields | {"best_round": 3}),
    ):
        with pytest.raises(ModelFormatError, match=message):
            load(container.pack("model", version, arrays, changed))


# Saving


def failing(code: int) -> Callable[..., None]:
    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("call", "code"),
    [("fsync", errno.EIO), ("fsync", errno.ENOSPC), ("replace", errno.EACCES)],
)
@pytest.mark.parametrize("existing", [True, False])
def test_a_save_that_fails_leaves_everything_as_it_was(
    regressor: Booster,
    classifier: Booster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    code: int,
    existing: bool,
) -> None:
    path = tmp_path / "model.sapwood"
    if existing:
        classifier.save(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(code))
        with pytest.raises(OSError, match=os.strerror(code)):
            regressor.save(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    regressor.save(path)
    assert load(path).to_bytes() == regressor.to_bytes()


def test_a_full_disk_leaves_everything_as_it_was(
    regressor: Booster, tmp_path: Path
) -> None:
    path = tmp_path / "model.sapwood"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal, so that the write fails
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            regressor.save(path, force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [file.name for file in tmp_path.iterdir()] == ["model.sapwood"]
    assert path.read_bytes() == b"old"


def test_save_refuses_a_folder_and_a_missing_one(
    regressor: Booster, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match=r"directory|folder"):
        regressor.save(folder)
    with pytest.raises(FileNotFoundError):
        regressor.save(tmp_path / "none" / "model.sapwood")
    assert list(tmp_path.rglob("*")) == [folder]


def test_a_saved_file_has_the_permissions_of_any_other(
    regressor: Booster, tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        regressor.save(tmp_path / "model.sapwood")
    finally:
        os.umask(before)
    assert (tmp_path / "model.sapwood").stat().st_mode & 0o777 == 0o640
