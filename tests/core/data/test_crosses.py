"""The numbers of crosses: NumPy's, for tables of any type and stride; what is not a
cross raises.
"""

from typing import Any

import numpy as np
import pytest

from sapwood import _core

RNG = np.random.default_rng(0)
TYPES = [
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
]
KINDS = np.array([0, 1, 2, 3], np.uint8)
LEFT, RIGHT = np.array([0, 1, 0, 1], np.int32), np.array([1, 1, 1, 2], np.int32)
OFFSET, MEAN = np.array([0, 0, 0, 0, 5]), np.array([0.5, -1.0, 1e40, 7.0, 8.0])


@pytest.mark.tiny
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 3000])
def test_numpy_says_the_same(kind: Any, n: int) -> None:
    a, b = (RNG.integers(0, 90, 3 * n).astype(kind)[::3] for _ in range(2))
    code = RNG.integers(-2, 4, n).astype(np.int32)
    x = a.astype(np.float64)
    z = b.astype(np.float64)
    place = np.select([(code >= 0) & (code < 3), code == -1], [code, 3], 4)
    with np.errstate(all="ignore"):
        wanted = np.array([x - z, z * z, x / z, z - MEAN[place]]).astype(np.float32)
    wanted[~np.isfinite(wanted)] = np.nan
    for n_threads in (1, 2, 3, 7):
        found = _core.cross([a, b, code], KINDS, LEFT, RIGHT, OFFSET, MEAN, n_threads)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, wanted)


def test_one_zero() -> None:
    found = _core.cross(
        np.array([[-1.0, 0.0]]),
        KINDS[1:2],
        LEFT[:1],
        RIGHT[:1],
        OFFSET[:2],
        MEAN[:0],
        1,
    )
    assert not np.signbit(found).any()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": KINDS + np.uint8(1)},
        {"kind": KINDS[:3]},
        {"left": LEFT - np.int32(1)},
        {"right": RIGHT + np.int32(1)},
        {"left": LEFT[:3]},
        {"right": RIGHT[1:]},
        {"offset": OFFSET[:4]},
        {"offset": OFFSET[::-1].copy()},
        {"offset": OFFSET + 1},
        {"mean": MEAN[:4]},
        {"mean": np.append(MEAN, 0.0)},
        {"n_threads": 0},
        {"offset": np.array([0, 4, 4, 4, 5])},
        {"offset": np.array([0, 9, 0, 0, 5])},
    ],
)
def test_no_such_cross(change: dict[str, Any]) -> None:
    given = {
        "kind": KINDS,
        "left": LEFT,
        "right": RIGHT,
        "offset": OFFSET,
        "mean": MEAN,
        "n_threads": 1,
    }
    with pytest.raises(ValueError, match=r"cross|means|threads"):
        _core.cross(np.zeros((4, 3)), **(given | change))
