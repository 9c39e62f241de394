"""Thresholds of libraries that compare in single precision, as ours."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sapwood.model.convert.nodes import below, rounded_up_to

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


def neighbours(x: float) -> np.ndarray:
    """Doubles around one: itself, its float32 neighbours, the middles between them, and
    a step to each side.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.float32(x)
        near = [np.nextafter(single, np.float32(s)) for s in (-np.inf, np.inf)]
        middles = [(np.float64(single) + np.float64(n)) / 2 for n in near]
    marks = np.array([x, single, *near, *middles], np.float64)
    marks = marks[np.isfinite(marks)]
    return np.concatenate(
        [marks, np.nextafter(marks, -np.inf), np.nextafter(marks, np.inf)]
    )


@given(st.floats(-1e39, 1e39))
@example(0.0)
@example(3.4028234663852886e38)
def test_at_most(limit):
    x = neighbours(limit)
    with np.errstate(over="ignore"):
        # a Python float would be rounded first
        wanted = x.astype(np.float32) <= np.float64(limit)
    np.testing.assert_array_equal(x <= rounded_up_to(np.array([limit])), wanted)


@given(singles)
def test_below(limit):
    x = neighbours(limit)
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float32) < np.float32(limit)
    np.testing.assert_array_equal(x <= below(np.array([limit])), wanted)
