"""What 'auto' makes of columns of categories: by how many there are, and how many rows
each has.
"""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.boost.categories.category_encoding import choose_encoding
from sapwood.errors import ParameterError
from spec.helpers import assert_bits

N = 3400


def data_of(weight: Any = None) -> sapwood.Dataset:
    """Columns of 4, 32, 34 and 40 categories: 850, 106, 100 and 85 rows each."""
    codes = np.array([np.arange(N) % n for n in (4, 32, 34, 40)]).T
    y = np.sin(codes[:, 3]) + 0.1 * np.random.default_rng(0).normal(size=N)
    return sapwood.Dataset(
        codes.astype(str).astype(object), y, weight, categorical_features="auto"
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            "auto",
            {"f0": "partition", "f1": "partition", "f2": "partition", "f3": "ordered"},
        ),
        (
            {"f1": "auto", "f3": "auto", "f2": "both"},
            {"f1": "partition", "f3": "ordered", "f2": "both"},
        ),
        ("both", "both"),
        (None, {"f3": "ordered"}),
    ],
    ids=str,
)
def test_rule(asked: Any, expected: Any) -> None:
    assert (
        choose_encoding(
            {"category_encoding": asked, "recipe": None}, data_of(), True, False
        )
        == expected
    )


@pytest.mark.parametrize("recipe", ["xgboost", "lightgbm", "catboost", "classic"])
def test_a_recipe_has_its_own(recipe: str) -> None:
    assert (
        choose_encoding(
            {"category_encoding": None, "recipe": recipe}, data_of(), True, False
        )
        is None
    )


def test_very_many_categories_whatever_their_rows() -> None:
    codes = (
        np.array([np.arange(30_000) % n for n in (255, 256)])
        .T.astype(str)
        .astype(object)
    )
    data = sapwood.Dataset(codes, np.arange(30_000) % 7, categorical_features="auto")
    assert choose_encoding(
        {"category_encoding": None, "recipe": None}, data, True, False
    ) == {"f1": "ordered"}


def test_where_sets_or_statistics_cannot_be_had() -> None:
    params: dict[str, Any] = {"category_encoding": None, "recipe": None}
    assert choose_encoding(params, data_of(), False, False) is None
    assert choose_encoding(params, data_of(), True, True) == dict.fromkeys(
        ("f0", "f1", "f2", "f3"), "ordered"
    )
    assert choose_encoding(params, data_of(), False, True) == dict.fromkeys(
        ("f0", "f1", "f2", "f3"), "onehot"
    )


def test_rows_of_weight_0_do_not_count() -> None:
    params: dict[str, Any] = {"category_encoding": "auto", "recipe": None}
    found = choose_encoding(
        params, data_of(np.r_[np.ones(3200), np.zeros(200)]), True, False
    )
    # 32 are not many
    assert found == {
        "f0": "partition",
        "f1": "partition",
        "f2": "ordered",
        "f3": "ordered",
    }


def test_a_model_keeps_what_was_decided() -> None:
    ways: list[Any] = ["auto", {3: "ordered"}]
    models = [
        sapwood.train({"category_encoding": how, "n_estimators": 3}, data_of())
        for how in ways
    ]
    assert models[0].params["category_encoding"]["f3"] == "ordered"
    for name in ("column", "value", "set_code"):
        assert_bits(
            getattr(models[0].trees, name), getattr(models[1].trees, name), name
        )


@pytest.mark.parametrize("params", [{}, {"recipe": "catboost"}], ids=str)
def test_sets_where_asked(params: dict[str, Any]) -> None:
    data = data_of()
    sets, asked = (
        sapwood.train({"n_estimators": 2, "random_state": 1} | more, data)
        for more in ({"category_encoding": "partition"} | params, params)
    )
    X = np.array([[f"{row % n}" for n in (4, 32, 34, 40)] for row in range(N)], object)
    model = sapwood.SapwoodRegressor(
        n_estimators=2, random_state=1, category_encoding="partition", **params
    )
    assert_bits(
        model.fit(X, data.label).booster_.trees.value, sets.trees.value, "values"
    )
    assert sets.trees.value.tobytes() != asked.trees.value.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"pruning": "post"},
        {"boosting": "dart"},
        {"interaction_constraints": [["f0"]]},
        {"path_smooth": 1.0},
        {"objective": lambda y, score: (score - y, np.ones(len(y)))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_gives_way_to_what_statistics_refuse(change: dict[str, Any]) -> None:
    few = {"n_estimators": 2} | change
    models = [
        sapwood.train(few | {"category_encoding": how}, data_of())
        for how in (None, "auto", "partition")
    ]
    assert len({one.trees.value.tobytes() for one in models}) == 1
    with pytest.raises(ParameterError):
        sapwood.train(few | {"category_encoding": "ordered"}, data_of())


def test_a_model_can_be_continued_by_sets() -> None:
    first = sapwood.train({"n_estimators": 2}, data_of())
    assert first.params["category_encoding"] == {"f3": "ordered"}
    more = sapwood.train({"n_estimators": 2}, data_of(), init_model=first)
    assert more.n_rounds == 4
