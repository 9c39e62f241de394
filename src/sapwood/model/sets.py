"""Sets of categories in a model file: those of many codes as bits, a thirty-second of the room.

In: offsets and codes of all sets. Out: arrays of a file; and back, with nothing believed before it is checked.
"""

from collections.abc import MutableMapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model.validate import require

MAX_LISTED = 512  # sets of up to so many codes are stored as lists: bits would save little
DTYPES = {"set_offset": np.int64, "set_code": np.int32, "set_bits_offset": np.int64, "set_bits": np.uint8}


def encode(offset: NDArray[np.int64], code: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """Sets, as `Trees` has them, as arrays of a file: ``set_offset`` and ``set_code``.

    Where some sets are bits, these have no codes there, and ``set_bits_offset``, (n_sets + 1) int64, says which bytes
    of ``set_bits`` are theirs: the lowest bit of the first is that of code 0.
    """
    sets = [code[first:last] for first, last in pairwise(offset.tolist())]
    dense = [len(one) > MAX_LISTED and one[-1] < 32 * len(one) for one in sets]
    if not any(dense):
        return {"set_offset": offset, "set_code": code}
    listed = [one[:0] if packed else one for one, packed in zip(sets, dense, strict=True)]
    others = [one if packed else one[:0] for one, packed in zip(sets, dense, strict=True)]
    bits = [np.packbits(np.bincount(one).astype(bool), bitorder="little") for one in others]
    return {
        "set_offset": np.cumsum([0, *map(len, listed)], dtype=np.int64),
        "set_code": np.concatenate(listed),
        "set_bits_offset": np.cumsum([0, *map(len, bits)], dtype=np.int64),
        "set_bits": np.concatenate(bits),
    }


def decode(arrays: MutableMapping[str, NDArray[Any]]) -> None:
    """Put all codes into the lists of the arrays of a file, in place of bits if it has any."""
    if not {"set_bits", "set_bits_offset"} & arrays.keys():
        return
    for name, dtype in DTYPES.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise ModelFormatError(f"'{name}' is not a list of {np.dtype(dtype).name}, which sets of many codes need.")
    offset, code, place, packed = (arrays.pop(name) for name in DTYPES)
    for ends, size in ((offset, len(code)), (place, len(packed))):
        fits = len(ends) == len(offset) > 0 and ends[0] == 0 and ends[-1] == size
        require(fits and bool((ends[1:] >= ends[:-1]).all()), "offsets of sets rise from 0 to the end")
    require((offset[1:] == offset[:-1]) | (place[1:] == place[:-1]), "a set has codes or bits")
    spans = zip(pairwise(offset.tolist()), pairwise(place.tolist()), strict=True)
    sets = [
        np.flatnonzero(np.unpackbits(packed[a:b], bitorder="little")).astype(np.int32) if a < b else code[first:last]
        for (first, last), (a, b) in spans
    ]
    arrays["set_offset"] = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    arrays["set_code"] = np.concatenate([code[:0], *sets])
    arrays["set_code"].flags.writeable = False  # read-only, so that Trees does not copy it
