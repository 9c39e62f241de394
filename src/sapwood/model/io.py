"""The model file: a booster to bytes and back, byte for byte, with nothing believed
before it is checked.

In: a booster; or a path, bytes or an open file from anywhere. Out: bytes, a file, or a
valid booster.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from types import NoneType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, container, crosses, derived
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.model import combinations, compact, convert, linear, sets
from sapwood.model.booster import Booster, Link
from sapwood.model.trees import DTYPES, SETS, Trees
from sapwood.params import check_model_params

KIND = "model"
# 1: without categories and linear leaves, 2: without combinations, 3: without splits
# that tell new categories from missing ones and without sets as bits, 4: without
# crosses and linear leaves in standard units, 5: without columns of times, 6: without
# text and lists, 7: without arrays of few bytes, 8: without a base that is added last;
# as models that have none are still written
VERSION = 9
COMPACT = 8

# Everything of a booster that is not an array, with the JSON types it may have.
# `history` cannot change a prediction.
FIELDS: dict[str, tuple[type, ...]] = {
    "objective": (str,),
    "fields": (dict,),
    "link": (str,),
    "feature_names": (list,),
    "named": (bool,),
    "params": (dict,),
    "classes": (dict, NoneType),
    "best_round": (int, NoneType),
    "data_fingerprint": (str,),
}
ARRAYS = {*DTYPES, "base"} - {*SETS}

# dtype of classes in the file -> the JSON type of each; numpy strings get the width
# they need
CLASS_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    **{f"{kind}{bits}": (int,) for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (float,) for bits in (16, 32, 64)},
    "str": (str,),
    "object": (bool, int, float, str),
}


def encode(booster: Booster) -> bytes:
    """The content of a model file: the same bytes for the same model, on every machine
    and in every process.
    """
    fields = {name: getattr(booster, name) for name in FIELDS}
    fields |= {name: dict(fields[name]) for name in ("fields", "params")}
    fields["feature_names"] = list(booster.feature_names)
    if booster.classes is not None:
        fields["classes"] = encode_classes(booster.classes)
    _check_fields(fields)
    trees, by_code = (
        booster.trees,
        sets.encode(booster.trees.set_offset, booster.trees.set_code),
    )
    arrays = (
        {name: getattr(trees, name) for name in DTYPES}
        | {"base": booster.base}
        | by_code
    )
    extra = linear.encode(booster.trees.linear) | categories.pack(booster.categories)
    joined = combinations.encode(booster.combinations)
    crossed = crosses.encode(booster.crosses)
    late = "set_bits" in by_code or (trees.missing_left > 1).any()
    if booster.times:
        fields["times"] = derived.encode(booster.times)
    version = (
        7
        if derived.is_late(booster.times)
        else 6
        if booster.times
        else 5
        if crossed or linear.BOUNDS in extra
        else 4
        if late
        else 3
        if joined
        else 2
        if extra
        else 1
    )
    kept = (
        {**DTYPES, **by_code}
        if booster.categories
        else [name for name in DTYPES if name not in SETS]
    )
    stored = {name: arrays[name] for name in (*kept, "base")} | extra | joined | crossed
    if (small := compact.encode(stored)) is not None:
        stored, fields["compact"] = small
        version = COMPACT
    if booster.base_last:
        version = VERSION
    return container.pack(KIND, version, stored, fields)


def decode(
    raw: bytes,
    history: Mapping[str, Any] | None = None,
    transform: Link | None = None,
    chosen: Any = None,
) -> Booster:
    """The booster of a file's content, or an error; `history`, `transform` and `chosen`
    are not in the file.
    """
    arrays, fields = container.unpack(raw, KIND, VERSION, ModelFormatError)
    try:
        plan = derived.decode(fields.pop("times", []))
    except ValueError as cause:
        raise ModelFormatError(f"The file is not a model: {cause}.") from cause
    said = fields.pop("compact", None)
    if set(fields) != set(FIELDS):
        raise ModelFormatError(
            f"The file has other fields than a model: {sorted(fields)}."
        )
    _check_fields(fields)
    if fields["classes"] is not None:
        fields["classes"] = _decode_classes(fields["classes"])
    for name, array in arrays.items():
        if not array.ndim:
            raise ModelFormatError(
                f"'{name}' is one number where an array is expected."
            )
    if said is not None:
        compact.decode(arrays, said)
    known = categories.unpack(arrays, len(fields["feature_names"]), ModelFormatError)
    terms = linear.decode(arrays)
    joined = combinations.decode(arrays)
    crossed = crosses.decode(arrays)
    sets.decode(arrays)
    if set(arrays) != (ARRAYS | {*SETS} if known else ARRAYS):
        raise ModelFormatError(
            f"The file has other arrays than a model: {sorted(arrays)}."
        )
    base = arrays.pop("base")
    if base.dtype != np.float64:
        raise ModelFormatError(f"'base' is an array of {base.dtype}; expected float64.")
    trees = Trees(**arrays, linear=terms)
    fields |= {
        "categories": known,
        "times": plan,
        "crosses": crossed,
        "combinations": joined,
    }
    return Booster(
        trees,
        base=base,
        history=history or {},
        transform=transform,
        chosen=chosen,
        **fields,
    )


def _check_fields(fields: Mapping[str, Any]) -> None:
    """Raise unless a model file may hold these fields; the writer and the reader both
    ask.
    """
    for name, types in FIELDS.items():
        value = fields[name]
        is_bool = isinstance(value, bool)
        if not isinstance(value, types) or (is_bool and bool not in types):
            raise ModelFormatError(
                f"'{name}' is a {type(value).__name__}, not a {types[0].__name__}."
            )
    if not all(
        isinstance(name, str) and _is_text(name) for name in fields["feature_names"]
    ):
        raise ModelFormatError(
            "'feature_names' holds a value that is not a string of Unicode characters."
        )
    own = [
        one
        for value in fields["fields"].values()
        for one in (value if isinstance(value, list) else [value])
    ]
    if not all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in own
    ):
        raise ModelFormatError("'fields' holds a value that is not a number.")
    try:
        check_model_params(fields["params"])
    except ParameterError as cause:
        raise ModelFormatError(f"'params' of the model: {cause}") from cause


def _is_text(name: str) -> bool:
    """Whether every character can be written as UTF-8; half of a surrogate pair
    cannot.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | Any,
) -> Booster:
    """Load a model. Nothing in a file is run, and a damaged or hostile one raises.

    Parameters
    ----------
    source : path, bytes, file opened for binary reading, or fitted model
        What `Booster.save` wrote or `Booster.to_bytes` returned, or a model of XGBoost
        (JSON, UBJSON), LightGBM (text) or CatBoost (JSON; .cbm where catboost is
        installed); it is read fully before it is looked at. Or a fitted
        model of one of these or of scikit-learn. docs/convert.md says what is read.

    Returns
    -------
    Booster

    Raises
    ------
    ModelFormatError
        If it is not a model, damaged, of a later format, or not consistent in every
        detail.
    """
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            raw = file.read()
    elif isinstance(source, bytes | bytearray | memoryview):
        raw = bytes(source)
    elif hasattr(source, "read"):
        raw = source.read()
        if not isinstance(raw, bytes):
            raise ModelFormatError(
                f"The file gave {type(raw).__name__} where bytes were expected; open it with 'rb'."
            )
    else:
        return convert.of_object(source)
    return convert.of_bytes(raw) or decode(raw)


def encode_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """The classes of a classifier as JSON, exactly; raises on those that no file can
    hold.
    """
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = [
        value.item() if isinstance(value, np.generic) else value
        for value in classes.tolist()
    ]
    if any(type(value) not in CLASS_TYPES.get(dtype, ()) for value in values):
        raise DataError(
            f"Classes {values} ({classes.dtype}) cannot be saved; use strings, booleans or numbers."
        )
    return {"dtype": dtype, "values": values}


def _decode_classes(classes: dict[str, Any]) -> NDArray[Any]:
    """The classes as they were; raises if the values are not of their dtype."""
    match classes:
        case {"dtype": str(dtype), "values": list(values)} if (
            len(classes) == 2 and dtype in CLASS_TYPES
        ):
            if all(type(value) in CLASS_TYPES[dtype] for value in values):
                with suppress(OverflowError), np.errstate(over="ignore"):
                    array = np.array(values, object).astype(dtype)
                    if array.tolist() == values:
                        return array
    raise ModelFormatError(
        f"'classes' are not labels of one known dtype: {str(classes)[:200]}."
    )
