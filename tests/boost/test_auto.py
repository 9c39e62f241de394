"""What 'auto' makes of columns of categories: by how many there are, and how many rows each has."""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.boost.encoding import decided
from sapwood.errors import ParameterError
from test_reference import assert_bits

N = 3400


def data_of(weight: Any = None) -> sapwood.Dataset:
    """Columns of 4, 32, 34 and 40 categories: 850, 106, 100 and 85 rows each."""
    codes = np.array([np.arange(N) % n for n in (4, 32, 34, 40)]).T
    y = np.sin(codes[:, 3]) + 0.1 * np.random.default_rng(0).normal(size=N)
    return sapwood.Dataset(codes.astype(str).astype(object), y, weight, categorical_features="auto")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("auto", {"f0": "partition", "f1": "partition", "f2": "partition", "f3": "ordered"}),
        ({"f1": "auto", "f3": "auto", "f2": "both"}, {"f1": "partition", "f3": "ordered", "f2": "both"}),
        ("both", "both"),
        (None, None),
    ],
    ids=str,
)
def test_rule(asked: Any, expected: Any) -> None:
    assert decided(asked, data_of()) == expected


def test_rows_of_weight_0_do_not_count() -> None:
    found = decided("auto", data_of(np.r_[np.ones(3200), np.zeros(200)]))
    assert found == {"f0": "partition", "f1": "partition", "f2": "ordered", "f3": "ordered"}  # 32 are not many


def test_a_model_keeps_what_was_decided() -> None:
    ways: list[Any] = ["auto", {3: "ordered"}]
    models = [sapwood.train({"category_encoding": how, "n_estimators": 3}, data_of()) for how in ways]
    assert models[0].params["category_encoding"]["f3"] == "ordered"
    for name in ("column", "value", "set_code"):
        assert_bits(getattr(models[0].trees, name), getattr(models[1].trees, name), name)


@pytest.mark.parametrize("params", [{}, {"recipe": "catboost"}], ids=str)
def test_sets_unless_asked(params: dict[str, Any]) -> None:
    """An estimator takes what differs from the default: sets can be asked for beside a recipe that has statistics."""
    data = data_of()
    sets, asked = (
        sapwood.train({"n_estimators": 2, "random_state": 1} | more, data)
        for more in ({"category_encoding": "partition"} | params, params)
    )
    X = np.array([[f"{row % n}" for n in (4, 32, 34, 40)] for row in range(N)], object)
    model = sapwood.SapwoodRegressor(n_estimators=2, random_state=1, category_encoding="partition", **params)
    assert_bits(model.fit(X, data.label).booster_.trees.value, sets.trees.value, "values")
    assert (sets.trees.value.tobytes() == asked.trees.value.tobytes()) == (not params)


def test_refuses_what_statistics_refuse() -> None:
    with pytest.raises(ParameterError, match="pruning is not for category_encoding="):
        sapwood.train({"category_encoding": "auto", "pruning": "post", "n_estimators": 1}, data_of())


def test_bytes_over_threads_and_chunks() -> None:
    data = data_of()
    X = np.array([[f"{row % n}" for n in (4, 32, 34, 40)] for row in range(N)], object)
    chunks = [(X[first:last], data.label[first:last]) for first, last in ((0, 7), (7, 2000), (2000, N))]
    params = {"category_encoding": "auto", "n_estimators": 3}
    models = {sapwood.train(params | {"n_jobs": n}, one).fingerprint()
              for n in (1, 2, 3, 7) for one in (data, sapwood.Dataset.from_chunks(chunks))}  # fmt: skip
    assert len(models) == 1
