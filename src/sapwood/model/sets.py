"""Sets of categories in a model file: those of many codes as bits, a thirty-second of
the room.

In: offsets and codes of all sets. Out: arrays of a file; and back, with nothing
believed before it is checked.
"""

from collections.abc import MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model.validate import require

# sets of up to so many codes are stored as lists: bits would save little
MAX_LISTED = 512
DTYPES = {
    "set_offset": np.int64,
    "set_code": np.int32,
    "set_bits_offset": np.int64,
    "set_bits": np.uint8,
}


def encode(
    offset: NDArray[np.int64], code: NDArray[np.int32]
) -> dict[str, NDArray[Any]]:
    """Sets, as `Trees` has them, as arrays of a file: ``set_offset`` and ``set_code``.

    Where some sets are bits, these have no codes there, and ``set_bits_offset``,
    (n_sets + 1) int64, says which bytes of ``set_bits`` are theirs: the lowest bit of
    the first is that of code 0.
    """
    size = np.diff(offset)
    last = np.zeros(len(size), np.int64)  # the largest code, since codes rise
    last[size > 0] = code[offset[1:][size > 0] - 1]
    dense = (size > MAX_LISTED) & (last < 32 * size)
    if not dense.any():
        return {"set_offset": offset, "set_code": code}
    place = np.concatenate([[0], np.cumsum(np.where(dense, last // 8 + 1, 0))])
    packed = np.empty(place[-1], np.uint8)
    bits = np.zeros(int(last.max()) + 8, np.bool_)
    which = np.flatnonzero(dense)
    spans = zip(
        *(ends[which + k].tolist() for ends in (offset, place) for k in (0, 1)),
        strict=True,
    )
    for first, end, start, stop in spans:
        own = code[first:end]
        bits[own] = True
        packed[start:stop] = np.packbits(bits[: (stop - start) * 8], bitorder="little")
        bits[own] = False
    return {
        "set_offset": np.concatenate([[0], np.cumsum(np.where(dense, 0, size))]),
        "set_code": code[np.repeat(~dense, size)],
        "set_bits_offset": place,
        "set_bits": packed,
    }


def decode(arrays: MutableMapping[str, NDArray[Any]]) -> None:
    """Put all codes into the lists of the arrays of a file, in place of bits if it has
    any.
    """
    if not {"set_bits", "set_bits_offset"} & arrays.keys():
        return
    for name, dtype in DTYPES.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise ModelFormatError(
                f"'{name}' is not a list of {np.dtype(dtype).name}, which sets of many codes need."
            )
    offset, code, place, packed = (arrays.pop(name) for name in DTYPES)
    for ends, size in ((offset, len(code)), (place, len(packed))):
        fits = len(ends) == len(offset) > 0 and ends[0] == 0 and ends[-1] == size
        require(
            fits and bool((ends[1:] >= ends[:-1]).all()),
            "offsets of sets rise from 0 to the end",
        )
    require(
        (offset[1:] == offset[:-1]) | (place[1:] == place[:-1]),
        "a set has codes or bits",
    )
    dense = place[1:] > place[:-1]
    which = np.flatnonzero(dense)
    n_codes = np.diff(offset)
    spans = zip(place[which].tolist(), place[which + 1].tolist(), strict=True)
    sets = [
        np.flatnonzero(np.unpackbits(packed[first:end], bitorder="little"))
        for first, end in spans
    ]
    n_codes[which] = [len(one) for one in sets]
    ends = np.concatenate([[0], np.cumsum(n_codes)])
    whole = np.empty(ends[-1], np.int32)
    whole[np.repeat(~dense, n_codes)] = code
    for first, one in zip(ends[which].tolist(), sets, strict=True):
        whole[first : first + len(one)] = one
    whole.flags.writeable = False  # so that Trees does not copy it
    arrays["set_offset"], arrays["set_code"] = ends, whole
