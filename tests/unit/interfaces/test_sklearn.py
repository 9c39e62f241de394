"""Estimators: every scikit-learn check, then what those leave open.

In: small tables. Out: the same conventions as scikit-learn's own estimators, and the
same models as `sapwood.train`.
"""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    make_multilabel_classification,
)
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_classifier_multioutput,
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

import sapwood
from sapwood import Dataset, SapwoodClassifier, SapwoodRegressor, math
from sapwood.device import host
from sapwood.errors import DataError, ParameterError
from sapwood.params import TABLE

BOTH = [SapwoodClassifier, SapwoodRegressor]
FEW = {"n_estimators": 10, "max_leaves": 7}
LABELS = {name: about["labels"] for name, about in host.objectives().items()}
OF_CLASSES = [
    name for name, labels in LABELS.items() if labels in ("0 or 1", "a class index")
]
OF_LABELS = [name for name in OF_CLASSES if LABELS[name] == "0 or 1"]
# labels are shares for the regressor, 0 and 1 for the classifier
SOFT = "cross_entropy"
OF_NUMBERS = [name for name in LABELS if name not in (*OF_CLASSES, SOFT)]
FIELDS = {
    field: spec
    for about in host.objectives().values()
    for field, spec in about["fields"].items()
}


@pytest.fixture(scope="module")
def binary() -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def labels() -> tuple[np.ndarray, np.ndarray]:
    return make_multilabel_classification(200, 6, n_classes=4, random_state=0)


def not_ours(estimator) -> dict[str, str]:
    """Checks that forget what an estimator says of itself, or what its method is."""
    if estimator.__sklearn_tags__().target_tags.positive_only:
        return {
            "check_regressor_multioutput": "gives negative targets to an estimator tagged positive_only"
        }
    if estimator.recipe == "classic":
        return {
            "check_class_weight_classifiers": "a row of weight 0.0001 has a leaf that no penalty draws"
        }
    return {}


@parametrize_with_checks(
    [SapwoodClassifier(), SapwoodRegressor()], expected_failed_checks=not_ours
)
def test_scikit_learn_check(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or one of the checks skips itself
    check(estimator)


@pytest.mark.pairwise(1)  # by day every estimator and every check once
@parametrize_with_checks(
    [
        estimator(**params)
        for estimator in BOTH
        for params in (
            {"grow_policy": "depthwise", "precision": "wide"},
            {"grow_policy": "symmetric", "precision": "narrow"},
            {"max_bins": 1000, "min_samples_leaf": 2, "n_jobs": 2},
            {"recipe": "classic"},
        )
    ]
    + [SapwoodClassifier(objective=name) for name in (*OF_CLASSES, SOFT)]
    + [SapwoodRegressor(objective=name) for name in OF_NUMBERS]
    + [SapwoodClassifier(recipe="adaboost")],
    expected_failed_checks=not_ours,
)
def test_scikit_learn_check_with_parameters(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


@pytest.mark.parametrize("estimator", BOTH)
def test_scikit_learn_check_of_column_names(estimator):
    # scikit-learn runs this one on its own estimators only.
    check_dataframe_column_names_consistency(estimator.__name__, estimator())


@pytest.mark.parametrize("objective", ["auto", *OF_LABELS, SOFT])
def test_scikit_learn_check_of_several_labels(objective):
    # scikit-learn runs this one on classifiers only that take several targets of many
    # classes, too.
    check_classifier_multioutput(
        "SapwoodClassifier", SapwoodClassifier(objective=objective)
    )


# The table of parameters


@pytest.mark.parametrize("estimator", BOTH)
def test_signature_is_the_table(estimator):
    parameters = inspect.signature(estimator).parameters
    wanted = {
        row.name: row.default for row in TABLE if row.estimator and not row.ranking
    } | dict.fromkeys(FIELDS)
    wanted |= {"quality": "balanced", "max_depth": None}
    wanted |= {"n_classes": None} if estimator is SapwoodClassifier else {}
    assert {name: one.default for name, one in parameters.items()} == wanted
    assert all(one.kind is one.KEYWORD_ONLY for one in parameters.values())
    assert estimator().get_params() == wanted
    for row in TABLE:
        default = wanted.get(row.name)
        there = row.name in wanted
        assert (
            f"    {row.name} : {row.type}, default={default!r}\n" in estimator.__doc__
        ) is there
    assert "{parameters}" not in estimator.__doc__
    assert "    tweedie_power : float, default=None\n" in estimator.__doc__
    assert (
        "Parameter of objective='tweedie', above 1 and below 2; None is 1.5.\n"
        in estimator.__doc__
    )
    assert (
        "Parameter of objective='focal', at least 0 and at most 100; None is 2.\n"
        in estimator.__doc__
    )
    assert "Parameter of objective='huber', above 0; None is 1.\n" in estimator.__doc__


@pytest.mark.parametrize(
    "set_it", [lambda e, **p: e(**p), lambda e, **p: e().set_params(**p)]
)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_leafs", "max_leaves"),
        ("n_estimator", "n_estimators"),
        ("tweedie_powers", "tweedie_power"),
    ],
)
def test_unknown_parameter_names_the_nearest(set_it, name, meant):
    with pytest.raises(
        ParameterError,
        match=rf"SapwoodRegressor has no parameter '{name}'; did you mean '{meant}'",
    ):
        set_it(SapwoodRegressor, **{name: 5})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("alpha", "ambiguous, .* use reg_alpha, quantile_alpha"),
        ("warm_start", "continue a model with init_model"),
    ],
)
def test_what_is_no_parameter_here_has_another_place(name, advice):
    with pytest.raises(ParameterError, match=f"{name}.*{advice}"):
        SapwoodClassifier(**{name: 1})


def test_fields_of_objectives(numbers):
    X, y = numbers
    model = SapwoodRegressor(objective="quantile", quantile_alpha=0.9, **FEW)
    assert clone(model).get_params() == model.get_params()
    assert model.fit(X, y).booster_.fields == {"quantile_alpha": 0.9}
    assert (y <= model.predict(X)).mean() > 0.8
    assert model.set_params(quantile_alpha=None).fit(X, y).booster_.fields == {
        "quantile_alpha": 0.5
    }
    with pytest.raises(
        ParameterError,
        match="quantile_alpha=2 is too large; choose a number above 0 and below 1",
    ):
        model.set_params(quantile_alpha=2).fit(X, y)
    with pytest.raises(
        ParameterError,
        match="quantile_alpha=2 is not a parameter of objective='huber'; leave it out",
    ):
        model.set_params(objective="huber").fit(X, y)


def test_a_recipe_sets_what_is_left_out(numbers):
    X, y = numbers
    classic = SapwoodRegressor(recipe="classic", n_estimators=5).fit(X, y).booster_
    by_hand = sapwood.train(
        {"recipe": "classic", "n_estimators": 5}, Dataset(X, y, recipe="classic")
    )
    assert classic.fingerprint() == by_hand.fingerprint()
    assert (
        classic.params["reg_lambda"],
        classic.params["max_depth"],
        classic.params["max_bins"],
    ) == (0.0, 3, 65535)
    mixed = (
        SapwoodRegressor(recipe="classic", max_depth=2, reg_lambda=0.5, max_bins=20)
        .fit(X, y)
        .booster_
    )
    assert (
        mixed.params["reg_lambda"],
        mixed.params["max_depth"],
        mixed.params["max_bins"],
    ) == (0.5, 2, 20)
    stumps = SapwoodClassifier(recipe="adaboost", n_estimators=5)
    # 0.1 is the default
    for given, used in (
        ({}, 1.0),
        ({"learning_rate": 0.1}, 0.1),
        ({"learning_rate": 0.2}, 0.2),
    ):
        model = clone(SapwoodClassifier(recipe="adaboost", n_estimators=5, **given))
        again = pickle.loads(pickle.dumps(clone(stumps).set_params(**given)))
        assert model.get_params() == again.get_params() == stumps.get_params() | given
        for one in (model, again):
            assert one.fit(X, y > 150).booster_.params["learning_rate"] == used
    search = GridSearchCV(stumps, {"learning_rate": [0.1]}, cv=2).fit(X, y > 150)
    assert search.best_estimator_.booster_.params["learning_rate"] == 0.1
    with pytest.raises(
        DataError,
        match="label 151 in row 0 is not 0 or 1, as objective='exponential' needs",
    ):
        SapwoodRegressor(recipe="adaboost").fit(X, y)


def test_a_recipe_whose_objective_does_not_suit(iris):
    message = "objective='exponential', which recipe='adaboost' sets, .*binary.* by it; choose one of one_vs_all, softm"
    with pytest.raises(ParameterError, match=message):
        SapwoodClassifier(recipe="adaboost").fit(*iris)
    assert (
        SapwoodClassifier(recipe="adaboost", objective="softmax")
        .fit(*iris)
        .score(*iris)
        > 0.9
    )


def test_values_are_checked_in_fit_only():
    model = SapwoodRegressor(max_bins=1)
    with pytest.raises(ParameterError, match="max_bins=1 is too small"):
        model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert (
        model.set_params(max_bins=2).fit([[0.0], [1.0]], [0.0, 1.0]).booster_.n_rounds
        == 100
    )


def test_clone_and_params_round_trip():
    model = SapwoodClassifier(max_leaves=5, learning_rate=0.3)
    assert clone(model).get_params() == model.get_params()
    assert SapwoodClassifier(**model.get_params()).get_params() == model.get_params()
    assert repr(model) == "SapwoodClassifier(learning_rate=0.3, max_leaves=5)"


# The same model as sapwood.train


def test_regressor_is_train(numbers):
    X, y = numbers
    booster = sapwood.train({"objective": "squared_error", **FEW}, Dataset(X, y))
    model = SapwoodRegressor(**FEW).fit(X, y)
    assert model.booster_.fingerprint() == booster.fingerprint()
    np.testing.assert_array_equal(model.predict(X), booster.predict(X))


def test_binary_classifier_is_train(binary):
    X, y = binary
    booster = sapwood.train({"objective": "logistic", **FEW}, Dataset(X, y))
    model = SapwoodClassifier(**FEW).fit(X, np.where(y, "good", "bad"))
    p = booster.predict(X)
    np.testing.assert_array_equal(model.predict_proba(X), np.column_stack([1 - p, p]))
    np.testing.assert_array_equal(
        model.decision_function(X), booster.predict(X, raw=True)
    )
    np.testing.assert_array_equal(model.predict(X), np.where(p > 0.5, "good", "bad"))
    np.testing.assert_array_equal(model.booster_.classes, ["bad", "good"])


def test_multiclass_classifier_is_train(iris):
    X, y = iris
    booster = sapwood.train(
        {"objective": "softmax", "n_classes": 3, **FEW}, Dataset(X, y)
    )
    model = SapwoodClassifier(**FEW).fit(X, y * 10)
    np.testing.assert_array_equal(model.predict_proba(X), booster.predict(X))
    np.testing.assert_array_equal(
        model.decision_function(X), booster.predict(X, raw=True)
    )
    np.testing.assert_array_equal(model.predict(X), booster.predict(X).argmax(1) * 10)
    assert model.n_classes_ == 3


@pytest.mark.parametrize("objective", OF_CLASSES)
def test_every_objective_of_two_classes(binary, objective):
    X, y = binary
    booster = sapwood.train({"objective": objective, **FEW}, Dataset(X, y))
    model = SapwoodClassifier(objective=objective, **FEW).fit(
        X, np.where(y, "good", "bad")
    )
    raw = booster.predict(X, raw=True)
    p = booster.predict(X)
    if raw.ndim == 2:
        raw = raw[:, 1] - raw[:, 0]
        p = p[:, 1]
    np.testing.assert_array_equal(model.decision_function(X), raw)
    np.testing.assert_array_equal(model.predict(X), np.where(p > 0.5, "good", "bad"))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    assert model.score(X, np.where(y, "good", "bad")) > 0.94
    if objective != "hinge":
        np.testing.assert_allclose(
            model.predict_proba(X), np.column_stack([1 - p, p]), rtol=1e-12
        )


@pytest.mark.parametrize("objective", ["softmax", "one_vs_all"])
def test_every_objective_of_many_classes(iris, objective):
    X, y = iris
    booster = sapwood.train({"objective": objective, **FEW}, Dataset(X, y))
    model = SapwoodClassifier(objective=objective, **FEW).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), booster.predict(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, rtol=1e-15)
    np.testing.assert_array_equal(
        model.decision_function(X), booster.predict(X, raw=True)
    )
    assert model.score(X, y) > 0.96


def test_hinge_has_no_probabilities(binary):
    X, y = binary
    for name in ("hinge", "binary:hinge"):
        model = SapwoodClassifier(objective=name, **FEW)
        for _ in range(2):  # before fit and after
            for method in (
                "predict_proba",
                "predict_log_proba",
                "staged_predict_proba",
            ):
                assert not hasattr(model, method)
                with pytest.raises(
                    AttributeError, match=f"no attribute '{method}'"
                ) as raised:
                    getattr(model, method)
                assert (
                    "gives no probabilities (its link is 'step'); use decision_function"
                    in str(raised.value.__cause__)
                )
            model.fit(X, y)
    one = SapwoodClassifier(objective="hinge", **FEW).fit(X, ["good"] * len(y))
    assert set(one.predict(X)) == {"good"}
    stacked = StackingClassifier([("hinge", model)], LogisticRegression(), cv=2).fit(
        X, y
    )
    assert stacked.stack_method_ == ["decision_function"]


@pytest.mark.parametrize("objective", OF_NUMBERS)
def test_every_objective_of_numbers(numbers, objective):
    X, y = numbers
    booster = sapwood.train({"objective": objective, **FEW}, Dataset(X, y))
    model = SapwoodRegressor(objective=objective, **FEW).fit(X, y)
    assert model.booster_.fingerprint() == booster.fingerprint()
    np.testing.assert_array_equal(model.predict(X), booster.predict(X))
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.6


def test_shares_are_numbers(numbers):
    X, y = numbers
    model = SapwoodRegressor(objective="cross_entropy", **FEW).fit(X, y / y.max())
    assert model.score(X, y / y.max()) > 0.3
    assert 0 < model.predict(X).min() < model.predict(X).max() < 1


@pytest.mark.parametrize("objective", ["logistic", "exponential", "focal", SOFT])
def test_probabilities_are_numbers(binary, objective):
    X, y = binary
    booster = sapwood.train({"objective": objective, **FEW}, Dataset(X, y))
    model = SapwoodRegressor(objective=objective, **FEW).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), booster.predict(X))
    assert 0 < model.predict(X).min() < model.predict(X).max() < 1


def test_cross_entropy_of_classes_is_logistic_loss(binary, labels):
    for X, y in (binary, labels):
        models = [
            SapwoodClassifier(objective=name, **FEW).fit(X, y).booster_
            for name in ("logistic", SOFT)
        ]
        assert models[0].to_bytes() == models[1].to_bytes()


def test_objective_that_does_not_suit(iris, binary, labels):
    X, y = binary
    for name in OF_NUMBERS:
        with pytest.raises(
            ParameterError,
            match=rf"objective='{name}' does not suit .* hinge, logistic, .* softmax\.",
        ):
            SapwoodClassifier(objective=name).fit(X, y)
    for name in ("softmax", "one_vs_all", "hinge"):
        with pytest.raises(
            ParameterError, match=rf"objective='{name}' does not suit .* squared_error"
        ):
            SapwoodRegressor(objective=name).fit(X, y)
    with pytest.raises(
        ParameterError,
        match="objective='logistics' is unknown; did you mean 'logistic'",
    ):
        SapwoodClassifier(objective="logistics").fit(X, y)
    for name in ("logistic", SOFT):
        message = rf"'{name}' does not suit .*binary.* by it; choose 'auto' or one of one_vs_all, softmax\."
        with pytest.raises(ParameterError, match=message):
            SapwoodClassifier(objective=name).fit(*iris)
    with pytest.raises(
        ParameterError,
        match=r"'softmax' does not suit this target; .* one of exponential, .*multilabel\.",
    ):
        SapwoodClassifier(objective="softmax").fit(*labels)


# Objectives of users


def of_two(y, score):
    p = math.sigmoid(score)
    return p - y, p * (1 - p)


def of_many(y, score):
    p = math.exp(score - score.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - (y[:, None] == np.arange(score.shape[1])), 1.5 * p * (1 - p) + 1e-16


def sigmoid(score):
    return math.sigmoid(score)


class Own:
    def __init__(self, grad_hess, **more):
        self.grad_hess = grad_hess
        vars(self).update(more)


def test_own_objective_of_two_classes(binary):
    X, y = binary
    names = np.where(y, "good", "bad")
    bare = SapwoodClassifier(objective=of_two, **FEW).fit(X, names)
    assert bare.score(X, names) > 0.95
    np.testing.assert_array_equal(
        bare.predict(X), np.where(bare.decision_function(X) > 0, "good", "bad")
    )
    np.testing.assert_array_equal(list(bare.staged_predict(X))[-1], bare.predict(X))
    for model in (bare, SapwoodClassifier(objective=of_two)):
        assert not hasattr(model, "predict_proba")
    raw = bare.decision_function(X)
    for link in ("sigmoid", sigmoid):
        model = SapwoodClassifier(objective=Own(of_two, link=link), **FEW)
        assert hasattr(model, "predict_proba")
        again = pickle.loads(pickle.dumps(clone(model).fit(X, names)))
        np.testing.assert_array_equal(again.decision_function(X), raw)
        np.testing.assert_array_equal(again.predict_proba(X)[:, 1], sigmoid(raw))
        np.testing.assert_array_equal(
            again.predict(X), np.where(sigmoid(raw) > 0.5, "good", "bad")
        )


def test_own_objective_of_many_classes(iris, binary):
    X, y = iris
    bare = SapwoodClassifier(objective=of_many, **FEW).fit(X, y)
    assert bare.decision_function(X).shape == (len(X), 3)
    np.testing.assert_array_equal(bare.predict(X), bare.decision_function(X).argmax(1))
    assert bare.score(X, y) > 0.95
    linked = SapwoodClassifier(objective=Own(of_many, link="softmax"), **FEW).fit(X, y)
    np.testing.assert_allclose(linked.predict_proba(X).sum(1), 1, rtol=1e-15)
    np.testing.assert_array_equal(
        linked.decision_function(X), bare.decision_function(X)
    )
    two = SapwoodClassifier(objective=Own(of_many, link="softmax"), **FEW).fit(*binary)
    assert two.predict_proba(binary[0]).shape == (len(binary[0]), 2)
    assert two.score(*binary) > 0.95


def test_own_objective_of_numbers(numbers):
    X, y = numbers
    mean = float(y.mean())
    own = SapwoodRegressor(
        objective=lambda y, score: (score - y, np.ones_like(score)), start=mean, **FEW
    ).fit(X, y)
    np.testing.assert_array_equal(
        own.predict(X), SapwoodRegressor(start=mean, **FEW).fit(X, y).predict(X)
    )


# Several targets


@pytest.mark.parametrize(
    "objective", [name for name in OF_NUMBERS if name != "adaptive_huber"]
)
def test_several_targets(numbers, objective):
    X, y = numbers
    both = np.column_stack([y, y.max() + 1 - y])
    model = SapwoodRegressor(objective=objective, **FEW).fit(X, both)
    assert model.predict(X).shape == both.shape
    for k in range(2):
        alone = SapwoodRegressor(objective=objective, **FEW).fit(X, both[:, k])
        np.testing.assert_array_equal(model.predict(X)[:, k], alone.predict(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))


@pytest.mark.parametrize(
    "make",
    [
        list,
        pd.DataFrame,
        pl.DataFrame,
        lambda y: pa.table({"a": y[:, 0], "b": y[:, 1]}),
    ],
)
def test_several_targets_in_any_container(numbers, make):
    X, y = numbers
    both = np.column_stack([y, -y])
    model = SapwoodRegressor(**FEW).fit(X, make(both))
    assert (
        model.booster_.fingerprint()
        == SapwoodRegressor(**FEW).fit(X, both).booster_.fingerprint()
    )


def test_several_targets_are_watched(numbers):
    X, y = numbers
    both = np.column_stack([y, -y])
    model = SapwoodRegressor(n_estimators=200, early_stopping_rounds=5)
    assert model.fit(X[:300], both[:300], X_val=X[300:], y_val=both[300:]).n_iter_ < 200
    assert model.fit(X, both).n_iter_ < 200
    for wrong in (y, np.column_stack([both, y])):
        with pytest.raises(
            DataError,
            match=r"A validation target has the shape \(442.*but y has \(442, 2\)",
        ):
            model.fit(X, both, X_val=X, y_val=wrong)
    with pytest.raises(
        DataError, match="objective='adaptive_huber' adapts to one target"
    ):
        SapwoodRegressor(objective="adaptive_huber").fit(X, both)


@pytest.mark.parametrize("objective", OF_LABELS)
def test_several_labels(labels, objective):
    X, y = labels
    model = SapwoodClassifier(objective=objective, **FEW).fit(X, y)
    assert model.outputs_2d_
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.booster_.classes is None
    assert model.predict(X).shape == y.shape
    assert model.predict(X).dtype == np.int64
    for k in range(4):
        alone = SapwoodClassifier(objective=objective, **FEW).fit(X, y[:, k])
        assert not alone.outputs_2d_
        np.testing.assert_array_equal(model.predict(X)[:, k], alone.predict(X))
        np.testing.assert_array_equal(
            model.decision_function(X)[:, k], alone.decision_function(X)
        )
        if objective != "hinge":
            np.testing.assert_array_equal(
                model.predict_proba(X)[:, k], alone.predict_proba(X)[:, 1]
            )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_several_labels_are_multilabel(labels):
    X, y = labels
    model = SapwoodClassifier(**FEW).fit(X, y)
    assert model.booster_.objective == "multilabel"
    for same in (
        y.astype(bool),
        y.astype(float),
        y.tolist(),
        pd.DataFrame(y),
        pl.DataFrame(y),
    ):
        assert (
            SapwoodClassifier(**FEW).fit(X, same).booster_.fingerprint()
            == model.booster_.fingerprint()
        )
    watched = SapwoodClassifier(n_estimators=100, early_stopping_rounds=5).fit(
        X[:150], y[:150], eval_set=(X[150:], y[150:])
    )
    assert watched.n_iter_ < 100
    assert list(watched.evals_result_["valid"]) == ["logloss"]
    more = SapwoodClassifier(**FEW).fit(X, y, init_model=model)
    assert more.n_iter_ == 20
    for wrong in (y[:, 0], y[:, :3]):
        with pytest.raises(DataError, match="A validation target has the shape"):
            model.fit(X, y, X_val=X, y_val=wrong)
    with pytest.raises(DataError, match="label 2 in row 0, column 1 is not 0 or 1"):
        model.fit(X, y + 1)


# Scores to start from


def test_init_score(numbers, binary):
    X, y = numbers
    start = y / 2
    shifted = SapwoodRegressor(**FEW).fit(
        X, y, init_score=start, X_val=X, y_val=y, init_score_val=start
    )
    booster = sapwood.train({**FEW}, Dataset(X, y, init_score=start))
    np.testing.assert_array_equal(
        shifted.predict(X, init_score=start), booster.predict(X, init_score=start)
    )
    np.testing.assert_array_equal(
        list(shifted.staged_predict(X, start))[-1], shifted.predict(X, start)
    )
    rmse = np.sqrt(np.mean((shifted.predict(X, start) - y) ** 2))
    assert shifted.evals_result_["valid"]["rmse"][-1] == pytest.approx(rmse)
    X, y = binary
    start = np.linspace(-1, 1, len(y))
    model = SapwoodClassifier(**FEW).fit(X, y, init_score=start)
    raw = model.decision_function(X, init_score=start)
    np.testing.assert_array_equal(
        raw, model.booster_.predict(X, raw=True, init_score=start)
    )
    np.testing.assert_array_equal(
        model.predict_proba(X, start)[:, 1], math.sigmoid(raw)
    )
    np.testing.assert_array_equal(
        model.predict_log_proba(X, start), math.log(model.predict_proba(X, start))
    )
    np.testing.assert_array_equal(model.predict(X, start), math.sigmoid(raw) > 0.5)
    np.testing.assert_array_equal(
        list(model.staged_predict(X, start))[-1], model.predict(X, start)
    )
    np.testing.assert_array_equal(
        list(model.staged_predict_proba(X, start))[-1], model.predict_proba(X, start)
    )
    with pytest.raises(
        DataError, match="init_score_val belongs to X_val, which was not given"
    ):
        model.fit(X, y, init_score=start, init_score_val=start)
    with pytest.raises(DataError, match="must both have an init_score, or neither"):
        model.fit(X, y, init_score=start, eval_set=(X.copy(), y))


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a"]),
        np.array(["b", "a"], object),
        np.array([True, False]),
        np.array([-7, 2**60]),
        np.array([2**64 - 1, 3], np.uint64),
        np.array([5, -5], np.int8),
        np.array([2.0, -1.0], np.float32),
        np.array([2.0, -1.0], np.float16),
        np.array([3, 1], ">i4"),
        np.array([3, 1], object),
    ],
    ids=lambda labels: f"{labels.dtype.str}",
)
def test_any_labels(binary, labels):
    X, y = binary
    wanted = labels[y]
    model = SapwoodClassifier(**FEW).fit(X, wanted)
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert model.classes_.dtype == labels.dtype
    assert model.predict(X).dtype == labels.dtype
    assert (model.predict(X) == wanted).mean() > 0.95
    right = model.predict_proba(X)[
        np.arange(len(y)), np.searchsorted(model.classes_, wanted)
    ]
    assert (right > 0.5).mean() > 0.95
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    loaded = sapwood.load(model.booster_.to_bytes())
    assert loaded.classes.tolist() == model.classes_.tolist()


@pytest.mark.parametrize(
    "make",
    [
        list,
        pd.Series,
        lambda y: pd.Series(y, dtype="category"),
        lambda y: pd.Series(y, dtype="string"),
        pl.Series,
        lambda y: pa.chunked_array([y]),
    ],
    ids=["list", "pandas", "category", "string", "polars", "arrow"],
)
def test_labels_in_any_container(iris, make):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SapwoodClassifier(**FEW).fit(X, make(names))
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert (model.predict(X) == names).mean() > 0.95


@pytest.mark.parametrize("label", ["only", 3, True, 2.0])
@pytest.mark.parametrize("params", [{}, {"objective": "softmax"}])
def test_one_class(label, params):
    X = np.arange(6.0).reshape(-1, 1)
    model = SapwoodClassifier(n_estimators=3, **params).fit(X, [label] * 6)
    assert model.predict(X).tolist() == [label] * 6
    assert model.predict_proba(X).tolist() == [[1.0]] * 6
    assert [stage.tolist() for stage in model.staged_predict_proba(X)] == [
        [[1.0]] * 6
    ] * 3
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == [label] * 6


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, np.nan, 1], "Input y contains NaN, first in row 2"),
        ([0, 1, np.inf, 1], "Input y contains infinity, first in row 2"),
        (
            np.array(["a", None, "b", "a"], object),
            "y contains missing values, the first in row 1; drop those rows",
        ),
        (
            np.array(["a", "b", pd.NA, "a"], object),
            "y contains missing values, the first in row 2; drop those rows",
        ),
        (np.array(["a", "b", 3, "a"], object), "cannot be sorted .*; use one type"),
        (np.array([None] * 4), "missing"),
        (np.array([1.0, np.nan, 0.0, 1.0], object), "missing"),
        (
            [0.0, 0.5, 1.0, 0.0],
            "continuous.* Use SapwoodRegressor, which predicts numbers; .*'cross_entropy'",
        ),
        (np.array([0.0, 0.5, 1.0, 0.0], np.float16), "continuous"),
        (
            np.array([0.0, 1.0, -np.inf, 0.0], np.float16),
            "Input y contains infinity, first in row 2",
        ),
        (np.ma.masked_equal([0, 1, 9, 1], 9), "masked"),
        (
            np.array([0, 1, 1j, 1]),
            "^y has dtype complex128, .*Complex data not supported; pass the real",
        ),
        ([[0, 2]] * 4, "label 2 in row 0, column 1 is not 0 or 1"),
        ([["a", "b"]] * 4, "y has dtype <U1"),
        (np.ones((4, 2, 1)), "dim 3"),
        (
            np.array([b"a", b"b", b"a", b"b"]),
            "cannot be saved; use strings, booleans or numbers",
        ),
        (
            np.array(["2001-01-01", "2002-01-01"] * 2, "M8[D]"),
            "cannot be saved; use strings, booleans or numbers",
        ),
        (
            np.array([0, 1, 1, 0], np.longdouble),
            "cannot be saved; use strings, booleans or numbers",
        ),
        ([0, 1, 0], r"\[4, 3\]"),
        (None, "requires y"),
    ],
)
def test_bad_labels_raise_and_leave_no_model(y, message):
    model = SapwoodClassifier(**FEW).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0], [2.0], [3.0]], y)
    assert vars(model).keys() == FEW.keys()
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    assert model.fit([[0.0], [1.0]], ["a", "b"]).classes_.tolist() == ["a", "b"]


def test_more_numbers_than_classes():
    n = 70_000
    with pytest.raises(DataError, match="Unknown label type: continuous"):
        SapwoodClassifier().fit(np.zeros((n, 1)), np.arange(n))


def test_column_of_labels_warns(iris):
    X, y = iris
    with pytest.warns(DataConversionWarning):
        column = SapwoodClassifier(**FEW).fit(X, y[:, None])
    assert (
        column.booster_.fingerprint()
        == SapwoodClassifier(**FEW).fit(X, y).booster_.fingerprint()
    )


# Tables


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(columns)],
    ids=["pandas", "polars", "arrow"],
)
def test_named_tables(binary, estimator, make):
    X, y = binary
    names = [f"c{j}" for j in range(X.shape[1])]
    table = make(dict(zip(names, X.T.copy(), strict=True)))
    model = estimator(**FEW).fit(table, y)
    plain = estimator(**FEW).fit(X, y)
    assert model.feature_names_in_.tolist() == names
    assert not hasattr(plain, "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(table), plain.predict(X))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    with pytest.warns(UserWarning, match="X has feature names, but"):
        np.testing.assert_array_equal(plain.predict(table), plain.predict(X))
    turned = make(dict(zip(names[::-1], X.T[::-1].copy(), strict=True)))
    for method in (model.predict, model.apply, model.staged_predict):
        with pytest.raises(
            ValueError, match="must be in the same order as they were in fit"
        ):
            method(turned)
    with pytest.raises(
        ValueError, match="must be in the same order as they were in fit"
    ):
        model.fit(table, y, X_val=turned, y_val=y)
    assert not hasattr(model, "booster_")
    # A refit without names forgets them.
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_width_is_checked(binary):
    X, y = binary
    model = SapwoodClassifier(**FEW).fit(X, y)
    for method in (
        model.predict,
        model.predict_proba,
        model.decision_function,
        model.apply,
        model.staged_predict,
    ):
        with pytest.raises(
            ValueError, match="X has 2 features, but Sapwood is expecting 30"
        ):
            method(X[:, :2])
        with pytest.raises(ValueError, match="Reshape your data"):
            method(X[0])


@pytest.mark.parametrize("estimator", BOTH)
def test_missing_values(estimator):
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]] * 5)
    y = np.array([0, 0, 1, 1] * 5)
    model = estimator(n_estimators=50, learning_rate=0.5).fit(X, y)
    assert np.round(model.predict(X)).tolist() == y.tolist()
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert model.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("estimator", BOTH)
def test_later_changes_of_the_data_change_nothing(binary, estimator):
    X, y = (part.copy() for part in binary)
    weight = np.ones(len(y))
    model = estimator(**FEW).fit(X, y, weight)
    before = model.predict(binary[0])
    fingerprint = model.booster_.fingerprint()
    X[:], y[:], weight[:] = 0, 0, 0
    np.testing.assert_array_equal(model.predict(binary[0]), before)
    assert model.booster_.fingerprint() == fingerprint


@pytest.mark.parametrize("estimator", BOTH)
def test_weights_are_repetition(iris, estimator):
    X, y = iris
    weight = np.arange(len(y)) % 4
    weighted = estimator(**FEW).fit(X, y, weight)
    repeated = estimator(**FEW).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_array_equal(
        weighted.booster_.predict(X, raw=True), repeated.booster_.predict(X, raw=True)
    )


# Validation


def test_validation_rows_three_ways(binary):
    X, y = binary
    names = np.where(y, "good", "bad")
    model = SapwoodClassifier(
        n_estimators=200, early_stopping_rounds=5, learning_rate=0.3
    )
    train = slice(0, 300)
    valid = slice(300, None)
    data = Dataset(X[train], y[train])
    booster = sapwood.train(
        {
            "objective": "logistic",
            "n_estimators": 200,
            "early_stopping_rounds": 5,
            "learning_rate": 0.3,
        },
        data,
        valid=[Dataset(X[valid], y[valid], reference=data)],
    )
    one_set = [
        {"X_val": X[valid], "y_val": names[valid]},
        {
            "X_val": X[valid],
            "y_val": names[valid],
            "sample_weight_val": np.ones(len(X) - 300),
        },
        {"eval_set": (X[valid], names[valid])},
        {"eval_set": [(X[valid], names[valid])]},
    ]
    two_sets = [
        # the last one steers
        {"eval_set": [(X[train], names[train]), (X[valid], names[valid])]},
        {"eval_set": ((X[train], names[train]), (X[valid], names[valid]))},
    ]
    for call in one_set + two_sets:
        model.fit(X[train], names[train], **call)
        assert model.best_iteration_ == booster.best_round
        assert model.n_iter_ == booster.n_rounds < 200
        np.testing.assert_array_equal(
            model.decision_function(X), booster.predict(X, raw=True)
        )
        watched = (
            ["valid"] if any(call is one for one in one_set) else ["valid_0", "valid_1"]
        )
        assert list(model.evals_result_) == watched
        assert len(model.evals_result_[watched[-1]]["logloss"]) == model.n_iter_ + 5


def test_validation_split_inside(binary):
    X, y = binary
    model = SapwoodClassifier(
        n_estimators=200, early_stopping_rounds=5, learning_rate=0.3
    ).fit(X, y)
    assert model.n_iter_ < 200
    assert model.best_iteration_ <= model.n_iter_
    assert model.evals_result_
    quiet = SapwoodClassifier(**FEW).fit(X, y)
    assert not hasattr(quiet, "best_iteration_")
    assert not quiet.evals_result_


def test_validation_set_given_twice_or_by_half(binary):
    X, y = binary
    model = SapwoodClassifier(**FEW)
    with pytest.raises(DataError, match="two ways"):
        model.fit(X, y, X_val=X, y_val=y, eval_set=[(X, y)])
    with pytest.raises(DataError, match="both or neither"):
        model.fit(X, y, X_val=X)
    with pytest.raises(DataError, match="sample_weight_val"):
        model.fit(X, y, eval_set=[(X, y)], sample_weight_val=np.ones(len(y)))
    for odd in (
        [(X, y, y)],
        [X, y],
        (X, y, y),
        (X,),
        X,
        5,
        "X",
        {"X": X, "y": y},
        [None],
        ((X, y), y),
    ):
        with pytest.raises(DataError, match="eval_set is neither"):
            model.fit(X, y, eval_set=odd)


def test_unseen_class_in_validation(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    with pytest.raises(
        DataError, match=r"classes that y has not: \['c'\]; y has \['a', 'b'\]"
    ):
        SapwoodClassifier(**FEW).fit(X[:100], names[:100], X_val=X, y_val=names)
    with pytest.raises(DataError, match=r"classes that y has not: \[3\]"):
        SapwoodClassifier(**FEW).fit(X, y, X_val=X, y_val=y + 1)
    # Fewer classes are fine, and a float 1.0 is the class 1.
    SapwoodClassifier(**FEW).fit(X, y, X_val=X[50:], y_val=y[50:].astype(float))


def test_continue_from_a_model(binary):
    X, y = binary
    names = np.where(y, "good", "bad")
    whole = SapwoodClassifier(n_estimators=20).fit(X, names)
    first = SapwoodClassifier(n_estimators=12).fit(X, names)
    for model in (first, first.booster_):
        second = SapwoodClassifier(n_estimators=8).fit(X, names, init_model=model)
        assert second.n_iter_ == 20
        np.testing.assert_array_equal(
            second.decision_function(X), whole.decision_function(X)
        )
    with pytest.raises(
        DataError,
        match=r"init_model knows the classes \['bad', 'good'\], but y has \[0, 1\]",
    ):
        SapwoodClassifier(n_estimators=8).fit(X, y, init_model=first)
    one = SapwoodClassifier(n_estimators=1).fit(X, ["good"] * len(y))
    with pytest.raises(DataError, match="init_model knows the classes"):
        SapwoodClassifier(n_estimators=8).fit(X, names, init_model=one)
    with pytest.raises(NotFittedError):
        SapwoodClassifier().fit(X, names, init_model=SapwoodClassifier())
    first.set_params(n_estimators=8).fit(X, names, init_model=first)
    np.testing.assert_array_equal(
        first.decision_function(X), whole.decision_function(X)
    )


def test_a_model_keeps_classes_that_have_no_rows():
    X = np.arange(40.0)[:, None] % 4
    names = np.array(["a", "b", "c", "d"])[X[:, 0].astype(int)]
    first = SapwoodClassifier(**FEW).fit(X, names)
    some = names != "b"
    # the value of the others, so that cuts stay
    X = np.r_[X[some], [[1.0]]]
    y = [*names[some], "a"]
    for before in (first, first.booster_):
        model = SapwoodClassifier(**FEW).fit(X, y, init_model=before)
        assert model.classes_.tolist() == ["a", "b", "c", "d"]
        assert model.predict(X[:3]).tolist() == ["a", "c", "d"]
        assert (model.predict_proba(X)[:, 1] < first.predict_proba(X)[:, 1]).all()


def test_callbacks_stop(binary):
    seen = []

    def stop(state):
        seen.append(state)
        return len(seen) == 3

    assert SapwoodClassifier(**FEW).fit(*binary, callbacks=[stop]).n_iter_ == 3


# Attributes and further methods


def test_importances(iris):
    X, y = iris
    model = SapwoodClassifier(**FEW).fit(np.column_stack([np.zeros(len(y)), X]), y)
    shares = model.feature_importances_
    assert shares.shape == (5,)
    assert shares[0] == 0
    assert shares.sum() == pytest.approx(1)
    assert shares.argmax() in (3, 4)  # the petals


def test_stages_and_leaves(iris, numbers):
    X, y = iris
    model = SapwoodClassifier(n_estimators=4).fit(X, y)
    stages = list(model.staged_predict(X))
    probabilities = list(model.staged_predict_proba(X))
    assert len(stages) == len(probabilities) == 4
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(probabilities[-1], model.predict_proba(X))
    np.testing.assert_array_equal(probabilities[0], model.booster_.predict(X, rounds=1))
    np.testing.assert_array_equal(model.apply(X), model.booster_.predict_leaves(X))
    assert model.apply(X).shape == (150, 12)
    X, y = numbers
    model = SapwoodRegressor(n_estimators=4).fit(X, y)
    assert model.apply(X).shape == (len(X), 4)
    np.testing.assert_array_equal(
        np.array(list(model.staged_predict(X)))[-1], model.predict(X)
    )


@pytest.mark.parametrize("estimator", BOTH)
def test_before_fit(estimator):
    model = estimator()
    for method in ("predict", "apply", "staged_predict"):
        with pytest.raises(NotFittedError):
            getattr(model, method)([[0.0]])
    for name in (
        "booster_",
        "feature_importances_",
        "n_iter_",
        "evals_result_",
        "best_iteration_",
        "n_features_in_",
    ):
        assert not hasattr(model, name)


@pytest.mark.parametrize("estimator", BOTH)
def test_pickle(binary, estimator):
    X, y = binary
    model = estimator(**FEW, n_jobs=1).fit(pd.DataFrame(X).add_prefix("c"), y)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert again.booster_.fingerprint() == model.booster_.fingerprint()


# In scikit-learn's company


def test_pipeline_search_and_scores(binary):
    X, y = binary
    pipe = make_pipeline(StandardScaler(), SapwoodClassifier(n_estimators=5))
    search = GridSearchCV(pipe, {"sapwoodclassifier__max_leaves": [2, 7]}, cv=2).fit(
        X, y
    )
    assert search.best_params_["sapwoodclassifier__max_leaves"] in (2, 7)
    assert search.best_score_ > 0.9
    assert (
        cross_val_score(SapwoodClassifier(**FEW), X, y, cv=3, scoring="roc_auc").min()
        > 0.95
    )


def test_calibration_and_permutation(binary):
    X, y = binary
    calibrated = CalibratedClassifierCV(SapwoodClassifier(**FEW), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(X), 2)
    model = SapwoodClassifier(**FEW).fit(X, y)
    assert (
        permutation_importance(
            model, X, y, n_repeats=1, random_state=0
        ).importances_mean.max()
        > 0
    )


@pytest.mark.parametrize("estimator", BOTH)
def test_metadata_routing(iris, estimator):
    X, y = iris
    weight = np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(
            scaler, estimator(**FEW).set_fit_request(sample_weight=True)
        )
        pipe.fit(X, y, sample_weight=weight)
    direct = estimator(**FEW).fit(
        StandardScaler().fit_transform(X), y, sample_weight=weight
    )
    assert pipe[-1].booster_.fingerprint() == direct.booster_.fingerprint()


def test_random_state_of_numpy(binary):
    X, y = binary
    one, same, other = (
        SapwoodClassifier(
            subsample=0.5, random_state=np.random.RandomState(seed), **FEW
        ).fit(X, y)
        for seed in (1, 1, 2)
    )
    assert one.booster_.fingerprint() == same.booster_.fingerprint()
    assert one.booster_.fingerprint() != other.booster_.fingerprint()


# The number of classes


@pytest.mark.parametrize("name", ["n_classes", "num_class", "classes_count"])
def test_a_number_of_classes_is_compared_with_those_of_y(iris, name):
    X, y = iris
    plain = SapwoodClassifier(**FEW).fit(X, y)
    model = SapwoodClassifier(**FEW, **{name: 3}).fit(X, y)
    assert model.booster_.to_bytes() == plain.booster_.to_bytes()
    for wrong in (2, 4):
        with pytest.raises(
            ParameterError, match=f"n_classes={wrong}, but y has 3 classes"
        ):
            SapwoodClassifier(**FEW, **{name: wrong}).fit(X, y)
    with pytest.raises(ParameterError, match="n_classes=3, but y has 2 labels"):
        SapwoodClassifier(**FEW, **{name: 3}).fit(X, np.column_stack([y > 0, y > 1]))


@pytest.mark.parametrize("name", ["n_classes", "num_class", "classes_count"])
def test_a_number_of_classes_is_refused_where_there_are_none(name):
    with pytest.raises(ParameterError, match="it is for SapwoodClassifier"):
        SapwoodRegressor(**{name: 3})
    SapwoodRegressor(**{name: None})
