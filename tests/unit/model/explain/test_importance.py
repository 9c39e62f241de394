"""Importances: small trees by hand, CatBoost's figures on its own trees, and what must
hold of each kind.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Booster
from sapwood.errors import DataError, ParameterError
from sapwood.model.trees import Trees
from unit.model.handmade import grown, leaf, split

Floats = NDArray[np.float64]


def made(
    *trees: dict[str, Any],
    n_columns: int = 2,
    link: str = "identity",
    objective: str = "squared_error",
) -> Booster:
    return Booster(
        Trees.of([(tree, 0) for tree in trees]),
        base=np.zeros(1),
        objective=objective,
        fields={},
        link=link,
        feature_names=[f"f{j}" for j in range(n_columns)],
        named=False,
        params={},
    )


# f0 <= 0 ? (f1 <= 0 ? 1 : 3) : (f1 <= 0 ? 5 : 6), with 1, 3, 2, 2 rows: a symmetric
# tree
SQUARE = grown(
    split(0, 0.0, left=1, gain=1.0, cover=8.0),
    split(1, 0.0, left=3, gain=1.0, cover=4.0),
    split(1, 0.0, left=5, gain=1.0, cover=4.0),
    leaf(1.0, 1.0),
    leaf(3.0, 3.0),
    leaf(5.0, 2.0),
    leaf(6.0, 2.0),
)
# the same without its last split: the right side is a leaf of 5.5
LOPSIDED = grown(
    split(0, 0.0, left=1, gain=1.0, cover=8.0),
    split(1, 0.0, left=3, gain=1.0, cover=4.0),
    leaf(5.5, 4.0),
    leaf(1.0, 1.0),
    leaf(3.0, 3.0),
)


def pair(v1: float, c1: float, v2: float, c2: float) -> float:
    mean = (v1 * c1 + v2 * c2) / (c1 + c2)
    return (v1 - mean) ** 2 * c1 + (v2 - mean) ** 2 * c2


def test_prediction_values_change_by_hand() -> None:
    symmetric = made(SQUARE).importance("prediction_values_change")
    expected = [
        pair(1, 1, 5, 2) + pair(3, 3, 6, 2),
        pair(1, 1, 3, 3) + pair(5, 2, 6, 2),
    ]
    np.testing.assert_allclose(symmetric, expected, rtol=1e-15)
    np.testing.assert_allclose(
        made(SQUARE).importance("internal"), expected, rtol=1e-15
    )
    other = made(LOPSIDED).importance("PredictionValuesChange")
    np.testing.assert_allclose(
        other, [pair(2.5, 4, 5.5, 4), pair(1, 1, 3, 3)], rtol=1e-15
    )


def test_interaction_by_hand() -> None:
    # |1 + 6 - 3 - 5|
    np.testing.assert_array_equal(
        made(SQUARE, SQUARE).importance("interaction"), [[0, 2], [2, 0]]
    )
    with pytest.raises(ParameterError, match="symmetric"):
        made(LOPSIDED).importance("interaction")


def test_prediction_difference_by_hand() -> None:
    # scores 1 and 6: the first may rise, the second fall
    rows = np.array([[-1.0, -1.0], [1.0, 1.0]])
    expected = [(5 - 1) + (6 - 3), (3 - 1) + (6 - 5)]
    for kind in ("prediction_difference", "catboost_prediction_difference"):
        np.testing.assert_array_equal(made(SQUARE).importance(kind, rows), expected)
    with pytest.raises(ParameterError, match="two rows"):
        made(SQUARE).importance("prediction_difference", rows[:1])


def task(n: int = 500, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] * 2 + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def booster() -> Booster:
    X, y = task()
    return sapwood.train(
        {"n_estimators": 60, "max_depth": 4, "learning_rate": 0.2},
        sapwood.Dataset(X, label=y),
    )


@pytest.mark.parametrize(
    "kind", ["shap", "loss_function_change", "permutation", "sage"]
)
def test_errors_and_answers_find_the_columns(booster: Booster, kind: str) -> None:
    X, y = task(150, seed=1)
    given = {"y": y} if kind != "shap" else {}
    found = booster.importance(kind, X, n_jobs=1, **given)
    assert found.argmax() == 0
    assert found[:3].min() > 3 * np.abs(found[3:]).max()
    np.testing.assert_array_equal(booster.importance(kind, X, n_jobs=3, **given), found)
    assert booster.importance(kind, X, percent=True, **given).sum() == pytest.approx(
        100
    )


def test_loss_function_change_by_definition(booster: Booster) -> None:
    X, y = task(80, seed=2)
    values = booster.explain(X).values
    raw = booster.predict(X)
    whole = np.sqrt(((raw - y) ** 2).mean())
    expected = [
        np.sqrt(((raw - values[:, j] - y) ** 2).mean()) - whole for j in range(5)
    ]
    np.testing.assert_allclose(
        booster.importance("loss_function_change", X, y, metric="rmse"),
        expected,
        rtol=1e-9,
    )


def test_permutation_takes_groups_metrics_and_weights(booster: Booster) -> None:
    X, y = task(200, seed=3)
    whole = booster.importance(
        "permutation", X, y, groups=[["f1", "f2"], 0, [3, 4]], n_repeats=3
    )
    assert whole.shape == (3,)
    assert whole[1] > whole[0] > whole[2]
    # higher is better, and still more is worse
    r2 = booster.importance("permutation", X, y, metric="r2")
    assert r2.argmax() == 0 and r2[0] > 0
    own = booster.importance(
        "permutation",
        X,
        y,
        metric=("mine", lambda y, p, w: float(((y - p) ** 2).mean()), False),
    )
    np.testing.assert_allclose(
        own, booster.importance("permutation", X, y, metric="mse"), rtol=1e-9
    )
    half = np.repeat([1.0, 0.0], 100)
    weighted = booster.importance("permutation", X, y, sample_weight=half)
    assert weighted.argmax() == 0 and not np.array_equal(
        weighted, booster.importance("permutation", X, y)
    )
    other = booster.importance("permutation", X, y, random_state=1)
    assert not np.array_equal(other, booster.importance("permutation", X, y))


def test_permutation_is_that_of_scikit_learn_on_average(booster: Booster) -> None:
    """The same quantity by other draws: with 60 repeats each they differ by a few of
    their standard errors.
    """
    from sklearn.inspection import permutation_importance

    X, y = task(300, seed=4)
    model = sapwood.SapwoodRegressor(
        n_estimators=60, max_depth=4, learning_rate=0.2
    ).fit(*task())
    theirs = permutation_importance(
        model, X, y, scoring="neg_mean_squared_error", n_repeats=60, random_state=0
    )
    ours = model.booster_.importance("permutation", X, y, metric="mse", n_repeats=60)
    error = theirs.importances_std / np.sqrt(60) * np.sqrt(2)
    assert (np.abs(ours - theirs.importances_mean) <= 5 * error + 1e-12).all()


def test_sage_adds_up(booster: Booster) -> None:
    """The values are what the metric gains from no column known to all of them."""
    X, y = task(60, seed=5)
    others = task(20, seed=6)[0]
    found = booster.importance(
        "sage", X, y, background=others, metric="mse", n_repeats=2
    )
    nothing = ((booster.predict(others).mean() - y) ** 2).mean()
    assert found.sum() == pytest.approx(
        nothing - ((booster.predict(X) - y) ** 2).mean(), abs=1e-9
    )


def test_by_class() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 1] > 0, "left", "right"))
    model = sapwood.SapwoodClassifier(n_estimators=10).fit(X, y)
    booster = model.booster_
    assert booster.importance("total_gain", output="high").argmax() == 0
    parts = sum(booster.importance("total_gain", output=k) for k in range(3))
    np.testing.assert_allclose(parts, booster.importance("total_gain"), rtol=1e-12)
    assert booster.importance("shap", X, output="high").argmax() == 0
    assert booster.importance("prediction_values_change", output="high").argmax() == 0
    assert booster.importance("permutation", X, y, n_repeats=1).shape == (3,)
    with pytest.raises(DataError, match="does not know"):
        booster.importance("permutation", X, np.full(400, "low"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "gian"}, "gain"),
        ({"kind": "permutation"}, "give X"),
        ({"kind": "permutation", "X": np.zeros((2, 5))}, "give y"),
        (
            {"kind": "permutation", "X": np.zeros((2, 5)), "y": [0, 1], "n_repeats": 0},
            "n_repeats=0",
        ),
        ({"kind": "gain", "X": np.zeros((2, 5))}, "does not look at X"),
        ({"kind": "shap", "X": np.zeros((2, 5)), "y": [0, 1]}, "does not look at y"),
        (
            {
                "kind": "permutation",
                "X": np.zeros((2, 5)),
                "y": [0, 1],
                "groups": [["f9"]],
            },
            "no column 'f9'",
        ),
        (
            {"kind": "permutation", "X": np.zeros((2, 5)), "y": [0, 1], "groups": [9]},
            "no column 9",
        ),
    ],
)
def test_refusals(booster: Booster, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        booster.importance(**given)


@pytest.mark.parametrize("output", ["yes", "no", 1])
def test_a_model_of_one_output_has_no_other(output: Any) -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = (
        sapwood.SapwoodClassifier(n_estimators=2)
        .fit(X, np.where(X[:, 0] > 0, "yes", "no"))
        .booster_
    )
    for ask in (
        lambda: model.importance("gain", output=output),
        lambda: model.importance("shap", X, output=output),
        lambda: model.why(X[:1], output=output),
    ):
        with pytest.raises(
            ParameterError, match="does not exist: the model has one output"
        ):
            ask()
