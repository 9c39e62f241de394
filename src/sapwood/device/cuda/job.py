"""The records that kernels share with the host, with the fields that `core/cuda/job.h`
gives them.

In: the header. Out: NumPy types of the same layout.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np

CORE = Path(__file__).resolve().parents[2] / "core"
_TYPES = {
    "int64_t": "<i8",
    "uint64_t": "<u8",
    "int32_t": "<i4",
    "uint32_t": "<u4",
    "double": "<f8",
    "uint16_t": "<u2",
}
_TYPES |= {"int16_t": "<i2"}


@cache
def record(name: str) -> "np.dtype[np.void]":
    """The layout of a struct of the header; pointers are unsigned integers."""
    text = (CORE / "cuda" / "job.h").read_text() + (
        CORE / "math" / "types.h"
    ).read_text()
    body = re.sub(
        r"//[^\n]*",
        "",
        text[text.index(f"struct {name} {{") :].split("\n};")[0].split("{", 1)[1],
    )
    fields: list[tuple[str, object] | tuple[str, object, tuple[int, ...]]] = []
    for statement in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        kind, names = re.fullmatch(r"(?:const )?(\w+\*?) (.*)", statement).groups()  # type: ignore[union-attr]
        for one in names.split(","):
            word, _, size = one.split("=")[0].strip().partition("[")
            if kind.endswith("*"):
                fields.append((word, "<u8"))
            elif size:
                fields.append((word, _TYPES[kind], (int(size.rstrip("]")),)))
            else:
                fields.append(
                    (
                        word,
                        _TYPES.get(kind) or ("<i4" if kind == "int" else record(kind)),
                    )
                )
    return np.dtype(fields, align=True)


@cache
def links() -> list[str]:
    """The links by their numbers."""
    text = (CORE / "math" / "types.h").read_text()
    return re.findall(r'"(\w+)"', text[text.index("LINKS[]") :].split(";")[0])
