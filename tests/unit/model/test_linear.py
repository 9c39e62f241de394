"""Terms of linear leaves in a model: arrays, files that lie, text and frames."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sapwood.data import container
from sapwood.errors import ModelFormatError, ParameterError
from sapwood.model import Booster, Trees, load
from unit.model.handmade import FIRST, SECOND

Parts = tuple[dict[str, np.ndarray], dict[str, Any]]
NAN = float("nan")
# In FIRST, nodes 1, 3 and 4 are leaves. Node 3 (value -2): 1 + 0.5 age - 0.25 income.
TERMS = (
    np.array([0, 0, 0, 0, 3, 3]),
    np.array([-1, 0, 1], np.int32),
    np.array([1.0, 0.5, -0.25]),
)
RAW = np.empty(0)
# low, high and mean of age and income
BOUNDS = np.array([20.0, 35.0, 28.0, 60.0, 150.0, 80.0])


def booster(bounds: Any = RAW) -> Booster:
    trees = Trees.of([({**FIRST, "linear": (*TERMS, bounds)}, 0), (SECOND, 0)])
    return Booster(
        trees,
        base=[10.0],
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=["age", "income"],
        named=True,
        params={},
    )


def test_predictions_by_hand() -> None:
    X = np.array(
        [[31.0, 100.0], [40.0, 200.0], [31.0, NAN], [np.inf, 100.0], [25.0, 50.0]]
    )
    # node 3 of the first tree where age > 30 and income is there, then 0.25 or -0.5 of
    # the second
    answers = [
        10 + (1 + 15.5 - 25) + 0.25,
        10 + (1 + 20 - 50) - 0.5,
        13.5,
        10 - 2 + 0.25,
        11.75,
    ]
    for n in (1, 60):  # row by row, and in blocks
        table = np.tile(X, (n, 1))
        np.testing.assert_array_equal(booster().predict(table), np.tile(answers, n))


def test_bounded_predictions_by_hand() -> None:
    """The same splits; a line reads clipped values, and the mean where one is
    missing.
    """
    X = np.array(
        [
            [31.0, 100.0],
            [40.0, 200.0],
            [31.0, NAN],
            [np.inf, 100.0],
            [25.0, 50.0],
            [1e300, 1e300],
        ]
    )
    plain = booster().predict(X)
    answers = [
        plain[0],
        10 + (1 + 17.5 - 37.5) - 0.5,
        plain[2],
        10 + (1 + 17.5 - 25) + 0.25,
        plain[4],
    ]
    answers.append(10 + (1 + 17.5 - 37.5) - 0.5)
    for n in (1, 60):
        np.testing.assert_array_equal(
            booster(BOUNDS).predict(np.tile(X, (n, 1))), np.tile(answers, n)
        )
    for row, answer in zip(X, answers, strict=True):
        assert booster(BOUNDS).predict(row[None])[0] == answer


def test_joined_and_cut_apart() -> None:
    trees = booster().trees
    assert trees.slice(1, 2).linear is not None  # no term, but of a linear model
    twice = Trees.concat([trees, trees.slice(1, 2), trees])
    assert (
        twice.linear is not None
        and twice.linear.linear_coef.tolist() == [1.0, 0.5, -0.25] * 2
    )
    again = twice.slice(3, 5)
    assert again.linear is not None
    for mine, other in zip(
        again.linear.terms, trees.linear.terms if trees.linear else (), strict=True
    ):
        np.testing.assert_array_equal(mine, other)
    assert Trees.of([(FIRST, 0), (SECOND, 0)]).linear is None
    bounded = booster(BOUNDS).trees
    with pytest.raises(ParameterError, match="different units or bounds"):
        Trees.concat([trees, bounded])
    whole = Trees.concat([bounded, bounded.slice(1, 2)]).linear
    assert whole is not None and whole.linear_bounds.tolist() == BOUNDS.tolist()


def test_text_and_frames() -> None:
    assert (
        "3: 1.0 + 0.5 * age + -0.25 * income, or where a value is missing value -2.0"
        in booster().to_text(0)
    )
    frame = booster().to_frame()
    assert frame["linear"].notna().tolist() == [
        False,
        False,
        False,
        True,
        False,
        False,
        False,
        False,
    ]
    assert frame["linear"][3] == "1.0 + 0.5 * age + -0.25 * income"
    clipped = "0.5 * clip(age, 20.0, 35.0, missing=28.0) + -0.25 * clip(income, 60.0, 150.0, missing=80.0)"
    assert f"3: 1.0 + {clipped}, at the mean row value -2.0" in booster(BOUNDS).to_text(
        0
    )
    assert booster(BOUNDS).to_frame()["linear"][3] == f"1.0 + {clipped}"


def parts(bounds: Any = RAW) -> Parts:
    """What the file holds, free to be changed."""
    version = 5 if len(bounds) else 2
    arrays, fields = container.unpack(
        booster(bounds).to_bytes(), "model", version, ModelFormatError
    )
    return {name: array.copy() for name, array in arrays.items()}, fields


def put(name: str, at: int, value: float) -> Callable[[Parts], Any]:
    return lambda p: p[0][name].__setitem__(at, value)


def array(name: str, values: Any) -> Callable[[Parts], Any]:
    return lambda p: p[0].__setitem__(name, np.array(values))


LIES: dict[str, Callable[[Parts], Any]] = {
    **{
        f"no {name}": lambda p, name=name: p[0].pop(name)
        for name in ("linear_offset", "linear_column", "linear_coef")
    },
    "offsets of another type": lambda p: p[0].update(
        linear_offset=p[0]["linear_offset"].astype(np.int32)
    ),
    "coefficients of float32": lambda p: p[0].update(
        linear_coef=p[0]["linear_coef"].astype(np.float32)
    ),
    "columns of two dimensions": lambda p: p[0].update(
        linear_column=p[0]["linear_column"][None]
    ),
    "an offset too few": lambda p: p[0].update(
        linear_offset=p[0]["linear_offset"][:-1]
    ),
    "offsets from 1": put("linear_offset", 0, 1),
    "offsets that fall": put("linear_offset", 5, 1),
    "offsets beyond the end": put("linear_offset", 8, 2**62),
    "negative offsets": put("linear_offset", 2, -1),
    "terms of a split": put("linear_offset", 3, 3),
    "no constant": put("linear_column", 0, 0),
    "two constants": put("linear_column", 1, -1),
    "a column beyond": put("linear_column", 2, 2),
    "a negative column": put("linear_column", 2, -2),
    "a column twice": put("linear_column", 2, 0),
    "coefficient NaN": put("linear_coef", 1, NAN),
    "coefficient infinite": put("linear_coef", 0, np.inf),
    "one coefficient too many": array("linear_coef", [1.0, 0.5, -0.25, 1.0]),
    "no term at all": lambda p: p[0].update(
        linear_offset=np.zeros(9, np.int64),
        linear_column=np.zeros(0, np.int32),
        linear_coef=np.zeros(0),
    ),
}


BOUND_LIES: dict[str, Callable[[Parts], Any]] = {
    "bounds alone": lambda p: [
        p[0].pop(name) for name in ("linear_offset", "linear_column", "linear_coef")
    ],
    "bounds of float32": lambda p: p[0].update(
        linear_bounds=p[0]["linear_bounds"].astype(np.float32)
    ),
    "bounds of two dimensions": lambda p: p[0].update(
        linear_bounds=p[0]["linear_bounds"].reshape(2, 3)
    ),
    "bounds of too few columns": lambda p: p[0].update(
        linear_bounds=p[0]["linear_bounds"][:3]
    ),
    "a bound too many": lambda p: p[0].update(
        linear_bounds=np.append(p[0]["linear_bounds"], 1.0)
    ),
    "a bound NaN": put("linear_bounds", 2, NAN),
    "a bound infinite": put("linear_bounds", 1, np.inf),
    "bounds that cross": put("linear_bounds", 0, 36.0),
    "a mean outside": put("linear_bounds", 5, 151.0),
}


@pytest.mark.parametrize("lie", BOUND_LIES)
def test_lies_about_bounds_raise(lie: str) -> None:
    changed = parts(BOUNDS)
    assert (
        load(container.pack("model", 5, *changed)).to_bytes()
        == booster(BOUNDS).to_bytes()
    )
    BOUND_LIES[lie](changed)
    with pytest.raises(ModelFormatError):
        load(container.pack("model", 5, *changed))


def test_a_file_comes_back() -> None:
    again = load(container.pack("model", 2, *parts()))
    assert again.linear and again.to_bytes() == booster().to_bytes()
    assert all(
        not array.flags.writeable
        for array in (again.trees.linear.terms if again.trees.linear else ())
    )


@pytest.mark.parametrize("lie", LIES)
def test_lies_raise(lie: str) -> None:
    changed = parts()
    LIES[lie](changed)
    with pytest.raises(ModelFormatError):
        load(container.pack("model", 2, *changed))
