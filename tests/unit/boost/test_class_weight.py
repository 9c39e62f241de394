"""Weights of classes: what weights of rows would do, in training and in metrics."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

import sapwood as sw
from sapwood.boost import class_weight
from sapwood.errors import ParameterError

RNG = np.random.default_rng(3)
# few values: cuts do not depend on weights
X = RNG.integers(0, 20, size=(600, 4)).astype(float)
TWO = (X[:, 0] + 4 * RNG.normal(size=600) > 17).astype(float)
THREE = np.searchsorted([8.0, 16.0], X[:, 1] + RNG.normal(size=600)).astype(float)
PARAMS = {"objective": "logistic", "n_estimators": 5}


def same(one: sw.Booster, other: sw.Booster) -> bool:
    """Whether two models are the same but for what they were asked for."""
    trees = all(
        np.array_equal(getattr(one.trees, name), getattr(other.trees, name))
        for name in ("column", "threshold", "value", "cover")
    )
    return (
        trees
        and one.base.tolist() == other.base.tolist()
        and one.history == other.history
    )


def weights(
    y: NDArray[np.float64], by_class: dict[float, float]
) -> NDArray[np.float64]:
    return np.vectorize(lambda one: by_class.get(one, 1.0), otypes=[float])(y)


@pytest.mark.parametrize(
    ("given", "y", "objective", "by_hand"),
    [
        ({"class_weight": {0: 1, 1: 3}}, TWO, "logistic", weights(TWO, {1: 3})),
        ({"scale_pos_weight": 2.5}, TWO, "hinge", weights(TWO, {1: 2.5})),
        (
            {"class_weights": [1, 2, 0.5]},
            THREE,
            "softmax",
            weights(THREE, {1: 2, 2: 0.5}),
        ),
        ({"class_weight": {2: 0}}, THREE, "one_vs_all", weights(THREE, {2: 0})),
        (
            {"is_unbalance": True},
            TWO,
            "logistic",
            compute_sample_weight("balanced", TWO),
        ),
        (
            {"auto_class_weights": "Balanced"},
            THREE,
            "softmax",
            compute_sample_weight("balanced", THREE),
        ),
        (
            {"auto_class_weights": "SqrtBalanced"},
            THREE,
            "softmax",
            compute_sample_weight("balanced", THREE) ** 0.5,
        ),
    ],
)
def test_it_is_the_weights_of_rows(
    given: Any, y: Any, objective: str, by_hand: NDArray[np.float64]
) -> None:
    rows = RNG.integers(1, 4, len(y)).astype(float) if "class_weight" in given else None
    held = slice(400, None)
    data = sw.Dataset(X, y, rows)
    valid = sw.Dataset(X[held], y[held], reference=data)
    params = {"objective": objective, "n_estimators": 5, "early_stopping_rounds": 3}
    both = by_hand if rows is None else by_hand * rows
    heavy = sw.Dataset(X, y, both)
    judged = sw.Dataset(X[held], y[held], by_hand[held], reference=heavy)
    assert same(
        sw.train(params | given, data, valid=valid),
        sw.train(params, heavy, valid=judged),
    )
    assert same(sw.train(params | given, data), sw.train(params, heavy))
    folds, by = (
        sw.cv(params | more, one, n_folds=3)
        for more, one in ((given, data), ({}, heavy))
    )
    assert {name: values.tolist() for name, values in folds.items()} == {
        n: v.tolist() for n, v in by.items()
    }


def test_balanced_counts_weights() -> None:
    rows = np.where(TWO > 0, 5.0, 1.0)
    # the third class has no rows
    found = class_weight.factors("balanced", TWO, rows, 3)
    heavy = [(600 - TWO.sum()), 5 * TWO.sum()]
    assert found is not None and found.tolist() == [
        sum(heavy) / 2 / heavy[0],
        sum(heavy) / 2 / heavy[1],
        1.0,
    ]


def test_whole_weights_of_classes_repeat_rows() -> None:
    twice = np.append(np.arange(600), np.flatnonzero(TWO))
    repeated = sw.train(PARAMS, sw.Dataset(X[twice], TWO[twice]))
    assert same(
        sw.train({**PARAMS, "class_weight": {1: 2}}, sw.Dataset(X, TWO)), repeated
    )


def test_an_estimator_has_classes_of_its_own() -> None:
    names = np.array(["fair", "good", "bad"])[THREE.astype(int)]
    model = sw.SapwoodClassifier(n_estimators=5, class_weight={"bad": 4.0}).fit(
        X, names
    )
    assert same(
        model.booster_,
        sw.SapwoodClassifier(n_estimators=5)
        .fit(X, names, weights(THREE, {2: 4}))
        .booster_,
    )
    with pytest.raises(
        ParameterError, match="class_weight has a class 'bat'; did you mean 'bad'"
    ):
        model.set_params(class_weight={"bat": 1.0}).fit(X, names)
    assert sw.SapwoodClassifier(scale_pos_weight=3).class_weight == {1: 3}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"class_weight": {1: -1.0}},
            "in which -1.0 is too small; choose a number of at least 0",
        ),
        (
            {"class_weight": {7: 1.0}},
            "class_weight has a class '7'; choose one of 0, 1",
        ),
        ({"class_weight": {0: 0, 1: 0}}, "sample_weight of all rows is zero"),
        ({"class_weight": 3}, r"is not a dict of weights; give {class: weight}"),
        (
            {"class_weight": "even"},
            "class_weight='even' is unknown; choose one of balanced",
        ),
        (
            {"class_weight": {1: 2}, "scale_pos_weight": 3},
            "are both class_weight; give one of them",
        ),
        (
            {"class_weight": {1: 2}, "objective": "squared_error"},
            "needs one class a row; weigh rows by sample_weight",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sw.train(PARAMS | given, sw.Dataset(X, TWO))


def test_a_switch_that_is_off_changes_nothing() -> None:
    off = {"scale_pos_weight": 1, "is_unbalance": False, "auto_class_weights": "None"}
    assert (
        sw.train(PARAMS | off, sw.Dataset(X, TWO)).to_bytes()
        == sw.train(PARAMS, sw.Dataset(X, TWO)).to_bytes()
    )


@pytest.mark.parametrize(
    "name",
    ["class_weights", "class_weight", "sample_rate_per_class", "subsample_by_class"],
)
@pytest.mark.parametrize(
    "given", [[0.5, 1], (0.5, 1), np.array([0.5, 1, 1, 1]), [1]], ids=str
)
def test_a_list_has_a_number_for_every_class(name: str, given: Any) -> None:
    text = np.array(["a", "b", "c"])[THREE.astype(int)]
    with pytest.raises(
        ParameterError, match="numbers for 3 classes; give one for each class"
    ):
        sw.train(
            {"objective": "softmax", name: given, "n_estimators": 1},
            sw.Dataset(X, THREE),
        )
    with pytest.raises(
        ParameterError, match="numbers for 3 classes; give one for each class"
    ):
        sw.SapwoodClassifier(n_estimators=1, **{name: given}).fit(X, text)


@pytest.mark.parametrize("name", ["class_weight", "subsample_by_class"])
def test_a_list_is_a_dict_in_the_order_of_classes_of_any_kind(name: str) -> None:
    text = np.array(["a", "b", "c"])[THREE.astype(int)]
    by_name = sw.SapwoodClassifier(
        n_estimators=2, **{name: {"a": 0.25, "b": 1, "c": 0.5}}
    ).fit(X, text)
    for given in ([0.25, 1, 0.5], (0.25, 1, 0.5), np.array([0.25, 1, 0.5])):
        in_order = sw.SapwoodClassifier(n_estimators=2, **{name: given}).fit(X, text)
        assert in_order.booster_.to_bytes() == by_name.booster_.to_bytes()
