"""`sapwood.TreeExplainer` returns what shap's explainer returns, in its shapes; what
`dir` and `help` show.
"""

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.errors import ParameterError

N = 300


def _table() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"size": rng.uniform(20, 120, N), "floor": rng.integers(0, 9, N) * 1.0}
    )
    X["city"] = rng.choice(["Bern", "Lyon", "Oslo"], N)
    return X, X["size"] + 9 * X["floor"] * (X["city"] == "Bern") + rng.normal(0, 5, N)


def test_values_of_every_model_add_up_to_its_scores() -> None:
    X, y = _table()
    X["when"] = pd.date_range("2024-01-01", periods=N)
    model = sw.SapwoodRegressor(n_estimators=10, linear_leaves=True).fit(X, y)
    explainer = sw.TreeExplainer(model)
    values = explainer.shap_values(X[:40], check_additivity=False)
    assert values.shape == (40, 4) and isinstance(explainer.expected_value, float)
    np.testing.assert_allclose(
        values.sum(axis=1) + explainer.expected_value, model.predict(X[:40])
    )
    pairs = explainer.shap_interaction_values(X[:9])
    np.testing.assert_allclose(pairs.sum(axis=2), values[:9], atol=1e-9)
    other = sw.TreeExplainer(model.booster_, X[:50])
    np.testing.assert_allclose(other.expected_value, model.predict(X[:50]).mean())
    assert not np.allclose(other.shap_values(X[:40]), values)


def test_classes_probabilities_and_losses() -> None:
    X, _ = _table()
    model = sw.SapwoodClassifier(n_estimators=10).fit(X[["size", "floor"]], X["city"])
    explainer = sw.TreeExplainer(model)
    assert explainer.shap_values(X[["size", "floor"]]).shape == (
        N,
        2,
        3,
    ) and explainer.expected_value.shape == (3,)
    two = sw.SapwoodClassifier(n_estimators=10).fit(
        X[["size", "floor"]], X["city"] == "Bern"
    )
    rows = X[["size", "floor"]][:50]
    shares = sw.TreeExplainer(two, rows, model_output="probability")
    total = shares.shap_values(rows).sum(axis=1) + shares.expected_value
    np.testing.assert_allclose(total, two.predict_proba(rows)[:, 1])
    losses = sw.TreeExplainer(two, rows, model_output="log_loss").shap_values(
        rows, X["city"][:50] == "Bern"
    )
    assert losses.shape == (50, 2) and np.isfinite(losses).all()


def test_the_same_as_shap() -> None:
    shap = pytest.importorskip("shap")
    X, y = _table()
    X = X[["size", "floor"]]
    model = sw.SapwoodRegressor(n_estimators=20).fit(X, y)
    ours = sw.TreeExplainer(model)
    theirs = shap.TreeExplainer(model.booster_.to_shap())
    np.testing.assert_allclose(
        ours.shap_values(X), theirs.shap_values(X.to_numpy()), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(ours.expected_value, theirs.expected_value)
    told = ours(X)
    assert isinstance(told, shap.Explanation) and told.feature_names == [
        "size",
        "floor",
    ]
    np.testing.assert_array_equal(told.data, X.to_numpy())


def test_what_it_cannot_do() -> None:
    X, y = _table()
    model = sw.SapwoodRegressor(n_estimators=2).fit(X, y)
    for wrong, words in [
        ({"model_output": "proba"}, "did you mean .probability"),
        ({"feature_perturbation": "interventional"}, "give data="),
        ({"feature_perturbation": "causal"}, "unknown"),
        ({"model_output": "probability"}, "needs rows to compare with"),
    ]:
        with pytest.raises(ParameterError, match=words):
            sw.TreeExplainer(model, **wrong)
    with pytest.raises(ParameterError, match="tree_limit=3"):
        sw.TreeExplainer(model).shap_values(X, tree_limit=3)
    with pytest.raises(ParameterError, match="no model of Sapwood"):
        sw.TreeExplainer(object())


def test_dir_lists_no_internals_and_help_has_short_types() -> None:
    model = sw.SapwoodRegressor(n_estimators=2)
    for one in (model, model.fit(*_table()), model.booster_, sw.Dataset(*_table())):
        assert not [
            name
            for name in dir(one)
            if name.startswith("_") and not name.endswith("__")
        ]
    for function in (
        sw.train,
        sw.cv,
        sw.Dataset,
        sw.Booster.predict,
        sw.SapwoodClassifier.fit,
        sw.SapwoodRanker.fit,
    ):
        assert "_NestedSequence" not in str(inspect.signature(function))
