import sys

import numpy as np
import pytest

from sapwood.errors import ParameterError
from sapwood.model import Booster

FIRST = """\
tree 0 (round 0, output 0)
  0: age <= 30.0 or missing  [gain 8.0, cover 6.0, count 6.0]
    1: value 1.5  [cover 2.0, count 2.0]
    2: income is not missing  [gain 2.0, cover 4.0, count 4.0]
      3: value -2.0  [cover 3.0, count 3.0]
      4: value 4.0  [cover 1.0, count 1.0]
"""
SECOND = """\
tree 1 (round 1, output 0)
  0: income <= 100.0  [gain 1.0, cover 6.0, count 6.0]
    1: value 0.25  [cover 4.0, count 4.0]
    2: value -0.5  [cover 2.0, count 2.0]
"""
FRAME = {
    "tree": [0, 0, 0, 0, 0, 1, 1, 1],
    "round": [0, 0, 0, 0, 0, 1, 1, 1],
    "output": [0] * 8,
    "node": [0, 1, 2, 3, 4, 0, 1, 2],
    "depth": [0, 1, 1, 2, 2, 0, 1, 1],
    "feature": ["age", None, "income", None, None, "income", None, None],
    "threshold": [30.0, np.nan, np.inf, np.nan, np.nan, 100.0, np.nan, np.nan],
    "missing": ["left", None, "right", None, None, "right", None, None],
    "left": [1, -1, 3, -1, -1, 1, -1, -1],
    "right": [2, -1, 4, -1, -1, 2, -1, -1],
    "value": [np.nan, 1.5, np.nan, -2.0, 4.0, np.nan, 0.25, -0.5],
    "gain": [8.0, np.nan, 2.0, np.nan, np.nan, 1.0, np.nan, np.nan],
    "cover": [6.0, 2.0, 4.0, 3.0, 1.0, 6.0, 4.0, 2.0],
    "count": [6.0, 2.0, 4.0, 3.0, 1.0, 6.0, 4.0, 2.0],
}


def test_text(regressor: Booster) -> None:
    assert regressor.to_text() == FIRST + "\n" + SECOND
    assert regressor.to_text(0) == FIRST
    assert regressor.to_text(1) == SECOND
    for bad in (2, -1):
        with pytest.raises(
            ParameterError, match=f"tree={bad} does not exist; choose 0..1"
        ):
            regressor.to_text(bad)


def test_text_says_which_round_and_output(classifier: Booster) -> None:
    assert classifier.to_text(5).splitlines()[0] == "tree 5 (round 1, output 2)"


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frame(regressor: Booster, backend: str) -> None:
    frame = regressor.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert list(frame.columns) == list(FRAME)
    for name, expected in FRAME.items():
        got = list(frame[name])
        if name in ("feature", "missing"):
            # pandas may say NaN for None
            assert [None if value != value else value for value in got] == expected
        else:
            np.testing.assert_array_equal(got, expected, err_msg=name)


def test_frame_counts_rounds_and_outputs(classifier: Booster) -> None:
    frame = classifier.to_frame()
    assert frame["round"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["output"].tolist() == [0, 1, 2, 0, 1, 2]


def test_frame_without_a_library_says_what_to_do(
    regressor: Booster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ParameterError, match="'panda' is unknown; did you mean 'pandas'"
    ):
        regressor.to_frame("panda")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ParameterError, match="'polars' is not installed; install it"):
        regressor.to_frame("polars")
