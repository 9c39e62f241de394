"""Effects along a column, the influence of training rows, and scikit-learn's own tools
on our estimators.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Booster
from sapwood.errors import DataError, ParameterError

Floats = NDArray[np.float64]


def task(n: int = 400) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(n) < 0.1, 0] = np.nan
    return X, 2 * np.nan_to_num(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def booster() -> Booster:
    X, y = task()
    return sapwood.train(
        {"n_estimators": 30, "max_depth": 4}, sapwood.Dataset(X, label=y)
    )


def test_partial_dependence_by_definition(booster: Booster) -> None:
    X, _ = task()
    found = booster.partial_dependence(X, "f1", n_jobs=2)
    np.testing.assert_array_equal(found.grid[0], np.unique(X[:, 1]))
    curves = booster.partial_dependence(X, 1, individual=True).values
    assert curves.shape == (400, len(found.grid[0]))
    for k, value in enumerate(found.grid[0]):
        changed = X.copy()
        changed[:, 1] = value
        np.testing.assert_array_equal(curves[:, k], booster.predict(changed))
        assert found.values[k] == pytest.approx(
            booster.predict(changed).mean(), abs=1e-12
        )
    surface = booster.partial_dependence(
        X, ["f0", "f1"], grid=([-1.0, 1.0], [0.0, 2.0, 3.0])
    )
    assert surface.values.shape == (2, 3)
    assert (np.diff(surface.values, axis=0) > 0).all()


def test_accumulated_effects_of_a_sum_are_its_parts() -> None:
    """Without interactions every row takes the same steps, so ALE and partial
    dependence differ by a constant.
    """
    X, y = task()
    booster = sapwood.train(
        {"n_estimators": 30, "max_depth": 1}, sapwood.Dataset(X, label=y)
    )
    known = X[~np.isnan(X[:, 0])]
    local = booster.accumulated_effects(X, "f0", grid=20)
    average = booster.partial_dependence(known, "f0", grid=local.grid[0])
    np.testing.assert_allclose(
        np.diff(local.values), np.diff(average.values), atol=1e-12
    )
    cell = np.maximum(np.searchsorted(local.grid[0], known[:, 0]) - 1, 0)
    share = np.bincount(cell) / len(known)
    assert share @ (local.values[1:] + local.values[:-1]) == pytest.approx(
        0.0, abs=1e-12
    )


def test_accumulated_effects_by_hand() -> None:
    """Two cells: steps are averaged over the rows of each, and only those."""
    X, y = task()
    booster = sapwood.train({"n_estimators": 10}, sapwood.Dataset(X[:, 1:], label=y))
    rows = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.5], [2.0, 0.0]])
    found = booster.accumulated_effects(rows, 0)
    np.testing.assert_array_equal(found.grid[0], [0.0, 1.0, 2.0])

    def f(value: float, row: int) -> float:
        return float(booster.predict(np.array([[value, rows[row, 1]]]))[0])

    first = np.mean([f(1.0, i) - f(0.0, i) for i in (0, 1, 2)])
    second = f(2.0, 3) - f(1.0, 3)
    np.testing.assert_allclose(np.diff(found.values), [first, second], atol=1e-12)


def test_several_outputs_and_refusals(booster: Booster) -> None:
    X, y = task()
    three = sapwood.train(
        {"objective": "softmax", "n_estimators": 3},
        sapwood.Dataset(X, label=np.digitize(y, [0, 2])),
    )
    assert three.partial_dependence(X, 1).values.shape == (len(np.unique(X[:, 1])), 3)
    assert three.partial_dependence(X[:5], 0, grid=4, individual=True).values.shape == (
        5,
        4,
        3,
    )
    assert three.accumulated_effects(X, 0, grid=9).values.shape == (9, 3)
    with pytest.raises(ParameterError, match="no column 'f7'"):
        booster.partial_dependence(X, "f7")
    with pytest.raises(ParameterError, match="grid=1"):
        booster.partial_dependence(X, 0, grid=1)
    with pytest.raises(ParameterError, match="one column, or two"):
        booster.partial_dependence(X, [0, 1, 2])
    with pytest.raises(DataError, match="one value only"):
        booster.accumulated_effects(np.zeros((4, 3)), 0)


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "poisson"])
@pytest.mark.parametrize(
    "extra", [{}, {"path_smooth": 7.0}, {"reg_alpha": 0.3}], ids=str
)
def test_influence_is_the_derivative(objective: str, extra: dict[str, Any]) -> None:
    """One round: the score moves with a row's weight as the influence says. Central
    differences of 2^-7 leave 1e-4.
    """
    X, y = task(150)
    y = {
        "squared_error": y,
        "logistic": (y > 1).astype(float),
        "poisson": np.round(np.abs(y)),
    }[objective]
    params = {
        "n_estimators": 1,
        "max_leaves": 6,
        "objective": objective,
        "start": 0.5,
        "precision": "wide",
    } | extra
    params["min_samples_leaf"] = 1  # else a weight a little above 1 may allow a split

    def trained(weight: Floats) -> Booster:
        return sapwood.train(params, sapwood.Dataset(X, label=y, weight=weight))

    ones = np.full(150, 1.0)
    booster = trained(ones)
    found = booster.influence(X[:20], X, y)
    assert found.shape == (20, 150)
    compared = 0
    for i in range(0, 150, 30):
        step = 2.0**-7
        plus, minus = (
            trained(ones + sign * step * (np.arange(150) == i)) for sign in (1, -1)
        )
        if not np.array_equal(plus.trees.column, minus.trees.column):
            continue
        slope = (plus.predict(X[:20], raw=True) - minus.predict(X[:20], raw=True)) / (
            2 * step
        )
        np.testing.assert_allclose(found[:, i], slope, atol=1e-4 * np.abs(found).max())
        compared += 1
    assert compared >= 3


def test_influence_under_sets_of_categories() -> None:
    """Their leaves have a penalty of their own."""
    rng = np.random.default_rng(1)
    town = rng.integers(0, 9, 300)
    X, y = (
        pl.DataFrame({"town": [f"t{k}" for k in town]}),
        rng.permutation(9)[town] + rng.normal(size=300),
    )
    params = {
        "n_estimators": 1,
        "max_leaves": 4,
        "start": 0.0,
        "precision": "wide",
        "min_data_per_group": 5,
    }

    def score(weight: Floats) -> Floats:
        return sapwood.train(
            params, sapwood.Dataset(X, label=y, weight=weight)
        ).predict(X[:20], raw=True)

    booster = sapwood.train(params, sapwood.Dataset(X, label=y))
    assert (booster.trees.set >= 0).any()
    found = booster.influence(X[:20], X, y)
    step = 2.0**-7
    for i in (0, 7, 40):
        bump = step * (np.arange(300) == i)
        slope = (score(1.0 + bump) - score(1.0 - bump)) / (2 * step)
        np.testing.assert_allclose(found[:, i], slope, atol=1e-4 * np.abs(found).max())


def test_influence_of_several_rounds_finds_the_planted_row() -> None:
    X, y = task(200)
    X = np.nan_to_num(X)
    y[11] += 40.0  # an outlier: it drags its own neighbourhood up
    booster = sapwood.train(
        {"n_estimators": 20, "max_leaves": 8}, sapwood.Dataset(X, label=y)
    )
    found = booster.influence(X[11:12], X, y)[0]
    assert found.argmax() == 11
    with pytest.raises(ParameterError, match="no sampling"):
        sapwood.train(
            {"n_estimators": 2, "subsample": 0.5}, sapwood.Dataset(X, label=y)
        ).influence(X[:1], X, y)


def test_scikit_learn_inspection() -> None:
    from sklearn.inspection import partial_dependence

    X, y = task()
    X = np.nan_to_num(X)
    model = sapwood.SapwoodRegressor(n_estimators=20).fit(X, y)
    theirs = partial_dependence(
        model, X, [1], kind="average", grid_resolution=200, percentiles=(0, 1)
    )
    ours = model.booster_.partial_dependence(X, 1)
    np.testing.assert_allclose(theirs["average"][0], ours.values, atol=1e-12)
    classifier = sapwood.SapwoodClassifier(n_estimators=5).fit(X, y > 1)
    assert partial_dependence(classifier, X, [0], grid_resolution=5)[
        "average"
    ].shape == (1, 5)


def test_the_shap_package_takes_our_estimators() -> None:
    """Its explainer for any function goes through all coalitions of few columns: an
    independent count.
    """
    shap = pytest.importorskip("shap")
    X, y = task(60)
    X = np.nan_to_num(X)
    model = sapwood.SapwoodRegressor(n_estimators=5).fit(X, y)
    theirs = shap.explainers.Exact(model.predict, shap.maskers.Independent(X[:10]))(
        X[:6]
    )
    ours = model.booster_.explain(X[:6], background=X[:10])
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-9)
    np.testing.assert_allclose(ours.base_values, theirs.base_values, atol=1e-9)
