"""A model into a format of somebody else, chosen by the name of the file.

In: a booster and a path. Out: a file, whole or not at all.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sapwood.errors import ParameterError
from sapwood.model.booster import Booster
from sapwood.model.convert import c_source, onnx_graph, xgboost_json
from sapwood.system import kinds, writing

FORMATS: dict[str, Callable[..., bytes]] = {  # suffix -> writer
    ".c": lambda booster, **options: c_source.write(booster, **options).encode(),
    ".json": lambda booster: xgboost_json.write(booster).encode(),
    ".onnx": onnx_graph.write,
}


KINDS = {".c": kinds.C_SOURCE, ".json": kinds.XGBOOST_JSON, ".onnx": kinds.ONNX}


def export(booster: Booster, path: str | os.PathLike[str], *, force: bool = False, **options: Any) -> None:
    """Write a file of the kind that the suffix of its path says; the options are those of its writer."""
    refuse_untold(booster)
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ParameterError(f"{Path(path).name!r} has no suffix that says what to write; choose {', '.join(FORMATS)}.")
    kinds.check(path, KINDS[suffix], force=force)
    writing.write(path, FORMATS[suffix](booster, **options))


def refuse_untold(booster: Booster) -> None:
    """Raise if a model has parts that none of these formats can express."""
    if booster.zero_as_missing:
        raise ParameterError(
            "the model has zeros as missing values, which no format written here can say; only .save keeps it."
        )
