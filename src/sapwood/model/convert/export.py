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


def export(
    booster: Booster,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    **options: Any,
) -> None:
    """Write a file of the kind that the suffix of its path says; the options are those
    of its writer.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ParameterError(
            f"{Path(path).name!r} has no suffix that says what to write; choose {', '.join(FORMATS)}."
        )
    refuse_untold(booster, is_narrow=suffix != ".c")
    kinds.check(path, KINDS[suffix], force=force)
    writing.write(path, FORMATS[suffix](booster, **options))


def refuse_untold(booster: Booster, is_narrow: bool = True) -> None:
    """Raise if a model has parts that a format cannot express; a narrow one has numbers
    of 32 bits.
    """
    if booster.base_last and is_narrow:
        raise ParameterError(
            "the labels of the model are far from 0 for their spread, and this format has numbers of 32 bits; export "
            "C, or subtract a constant from the labels before training."
        )
    if booster.zero_as_missing:
        raise ParameterError(
            "the model has zeros as missing values, which no format written here can say; only .save keeps it."
        )
