"""Estimators: every scikit-learn check, then what those leave open.

In: small tables. Out: the same conventions as scikit-learn's own estimators, and the same models as `sapwood.train`.
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
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, parametrize_with_checks

import sapwood
from sapwood import Dataset, SapwoodClassifier, SapwoodRegressor
from sapwood.errors import DataError, ParameterError
from sapwood.params import TABLE

BOTH = [SapwoodClassifier, SapwoodRegressor]
FEW = {"n_estimators": 10, "max_leaves": 7}


@pytest.fixture(scope="module")
def binary() -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    return load_diabetes(return_X_y=True)


@parametrize_with_checks(
    [
        estimator(**params)
        for estimator in BOTH
        for params in (
            {},
            {"grow_policy": "depthwise", "precision": "wide"},
            {"grow_policy": "symmetric", "precision": "narrow"},
            {"max_bins": 1000, "min_samples_leaf": 2, "n_jobs": 2},
        )
    ]
)
def test_scikit_learn_check(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or one of the checks skips itself
    check(estimator)


@pytest.mark.parametrize("estimator", BOTH)
def test_scikit_learn_check_of_column_names(estimator):
    # scikit-learn runs this one on its own estimators only.
    check_dataframe_column_names_consistency(estimator.__name__, estimator())


# The table of parameters


@pytest.mark.parametrize("estimator", BOTH)
def test_signature_is_the_table(estimator):
    parameters = inspect.signature(estimator).parameters
    wanted = {row.name: row.default for row in TABLE if row.estimator}
    assert {name: one.default for name, one in parameters.items()} == wanted
    assert all(one.kind is one.KEYWORD_ONLY for one in parameters.values())
    assert estimator().get_params() == wanted
    for row in TABLE:
        assert (f"    {row.name} : {row.kind}, default={row.default!r}\n" in estimator.__doc__) is row.estimator
    assert "{parameters}" not in estimator.__doc__


@pytest.mark.parametrize("set_it", [lambda e, **p: e(**p), lambda e, **p: e().set_params(**p)])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num_leaves", "max_leaves"),
        ("eta", "learning_rate"),
        ("max_leafs", "max_leaves"),
        ("n_estimator", "n_estimators"),
    ],
)
def test_unknown_parameter_names_the_nearest(set_it, name, meant):
    with pytest.raises(ParameterError, match=rf"SapwoodRegressor has no parameter '{name}'; did you mean '{meant}'"):
        set_it(SapwoodRegressor, **{name: 5})


def test_values_are_checked_in_fit_only():
    model = SapwoodRegressor(max_bins=1)
    with pytest.raises(ParameterError, match="max_bins=1 is too small"):
        model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert model.set_params(max_bins=2).fit([[0.0], [1.0]], [0.0, 1.0]).booster_.n_rounds == 100


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
    np.testing.assert_array_equal(model.decision_function(X), booster.predict(X, raw=True))
    np.testing.assert_array_equal(model.predict(X), np.where(p > 0.5, "good", "bad"))
    np.testing.assert_array_equal(model.booster_.classes, ["bad", "good"])


def test_multiclass_classifier_is_train(iris):
    X, y = iris
    booster = sapwood.train({"objective": "softmax", "n_classes": 3, **FEW}, Dataset(X, y))
    model = SapwoodClassifier(**FEW).fit(X, y * 10)
    np.testing.assert_array_equal(model.predict_proba(X), booster.predict(X))
    np.testing.assert_array_equal(model.decision_function(X), booster.predict(X, raw=True))
    np.testing.assert_array_equal(model.predict(X), booster.predict(X).argmax(1) * 10)
    assert model.n_classes_ == 3


def test_objective_by_hand(iris, binary):
    X, y = binary
    model = SapwoodClassifier(objective="softmax", **FEW).fit(X, y)
    assert model.predict_proba(X).shape == model.decision_function(X).shape == (len(X), 2)
    assert model.score(X, y) > 0.95
    with pytest.raises(ParameterError, match=r"objective='squared_error' does not suit .* logistic, softmax"):
        SapwoodClassifier(objective="squared_error").fit(X, y)
    with pytest.raises(ParameterError, match=r"objective='softmax' does not suit .* squared_error"):
        SapwoodRegressor(objective="softmax").fit(X, y)
    with pytest.raises(ParameterError, match="objective='logistics' is unknown; did you mean 'logistic'"):
        SapwoodClassifier(objective="logistics").fit(X, y)
    with pytest.raises(ParameterError, match=r"objective='logistic' does not suit .* softmax"):
        SapwoodClassifier(objective="logistic").fit(*iris)


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
    right = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, wanted)]
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
    assert [stage.tolist() for stage in model.staged_predict_proba(X)] == [[[1.0]] * 6] * 3
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == [label] * 6


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, np.nan, 1], "Input y contains NaN, first in row 2"),
        ([0, 1, np.inf, 1], "Input y contains infinity, first in row 2"),
        (np.array(["a", None, "b", "a"], object), "cannot be sorted"),
        (np.array([None] * 4), "missing"),
        (np.array([1.0, np.nan, 0.0, 1.0], object), "missing"),
        ([0.0, 0.5, 1.0, 0.0], "continuous"),
        (np.array([0.0, 0.5, 1.0, 0.0], np.float16), "continuous"),
        (np.array([0.0, 1.0, -np.inf, 0.0], np.float16), "Input y contains infinity, first in row 2"),
        (np.ma.masked_equal([0, 1, 9, 1], 9), "masked"),
        (np.array([0, 1, 1j, 1]), "Complex"),
        ([[0, 1]] * 4, "1d array"),
        ([0, 1, 0], r"\[4, 3\]"),
        (None, "requires y"),
    ],
)
def test_bad_labels_raise_and_leave_no_model(y, message):
    model = SapwoodClassifier(**FEW).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0], [2.0], [3.0]], y)
    assert vars(model).keys() == model.get_params().keys()
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
    assert column.booster_.fingerprint() == SapwoodClassifier(**FEW).fit(X, y).booster_.fingerprint()


# Tables


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(columns)], ids=["pandas", "polars", "arrow"]
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
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            method(turned)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.fit(table, y, X_val=turned, y_val=y)
    assert not hasattr(model, "booster_")
    # A refit without names forgets them.
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_width_is_checked(binary):
    X, y = binary
    model = SapwoodClassifier(**FEW).fit(X, y)
    for method in (model.predict, model.predict_proba, model.decision_function, model.apply, model.staged_predict):
        with pytest.raises(ValueError, match="X has 2 features, but Sapwood is expecting 30"):
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
    assert not model.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("estimator", BOTH)
def test_later_changes_of_the_data_change_nothing(binary, estimator):
    X, y = (part.copy() for part in binary)
    weight = np.ones(len(y))
    model = estimator(**FEW).fit(X, y, weight)
    before, fingerprint = model.predict(binary[0]), model.booster_.fingerprint()
    X[:], y[:], weight[:] = 0, 0, 0
    np.testing.assert_array_equal(model.predict(binary[0]), before)
    assert model.booster_.fingerprint() == fingerprint


@pytest.mark.parametrize("estimator", BOTH)
def test_weights_are_repetition(iris, estimator):
    X, y = iris
    weight = np.arange(len(y)) % 4
    weighted = estimator(**FEW).fit(X, y, weight)
    repeated = estimator(**FEW).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_array_equal(weighted.booster_.predict(X, raw=True), repeated.booster_.predict(X, raw=True))


# Validation


def test_validation_rows_three_ways(binary):
    X, y = binary
    names = np.where(y, "good", "bad")
    model = SapwoodClassifier(n_estimators=200, early_stopping_rounds=5, learning_rate=0.3)
    train, valid = slice(0, 300), slice(300, None)
    data = Dataset(X[train], y[train])
    booster = sapwood.train(
        {"objective": "logistic", "n_estimators": 200, "early_stopping_rounds": 5, "learning_rate": 0.3},
        data,
        valid=[Dataset(X[valid], y[valid], reference=data)],
    )
    one_set = [
        {"X_val": X[valid], "y_val": names[valid]},
        {"X_val": X[valid], "y_val": names[valid], "sample_weight_val": np.ones(len(X) - 300)},
        {"eval_set": (X[valid], names[valid])},
        {"eval_set": [(X[valid], names[valid])]},
    ]
    two_sets = [
        {"eval_set": [(X[train], names[train]), (X[valid], names[valid])]},  # the last one steers
        {"eval_set": ((X[train], names[train]), (X[valid], names[valid]))},
    ]
    for call in one_set + two_sets:
        model.fit(X[train], names[train], **call)
        assert model.best_iteration_ == booster.best_round
        assert model.n_iter_ == booster.n_rounds < 200
        np.testing.assert_array_equal(model.decision_function(X), booster.predict(X, raw=True))
        watched = ["valid"] if any(call is one for one in one_set) else ["valid_0", "valid_1"]
        assert list(model.evals_result_) == watched
        assert len(model.evals_result_[watched[-1]]["logloss"]) == model.n_iter_ + 5


def test_validation_split_inside(binary):
    X, y = binary
    model = SapwoodClassifier(n_estimators=200, early_stopping_rounds=5, learning_rate=0.3).fit(X, y)
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
    with pytest.raises(DataError, match="eval_set is neither"):
        model.fit(X, y, eval_set=[(X, y, y)])
    with pytest.raises(DataError, match="eval_set is neither"):
        model.fit(X, y, eval_set=[X, y])


def test_unseen_class_in_validation(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    with pytest.raises(DataError, match=r"classes that y has not: \['c'\]; y has \['a', 'b'\]"):
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
        np.testing.assert_array_equal(second.decision_function(X), whole.decision_function(X))
    with pytest.raises(DataError, match=r"init_model knows the classes \['bad', 'good'\], but y has \[0, 1\]"):
        SapwoodClassifier(n_estimators=8).fit(X, y, init_model=first)
    one = SapwoodClassifier(n_estimators=1).fit(X, ["good"] * len(y))
    with pytest.raises(DataError, match="init_model knows the classes"):
        SapwoodClassifier(n_estimators=8).fit(X, names, init_model=one)
    with pytest.raises(NotFittedError):
        SapwoodClassifier().fit(X, names, init_model=SapwoodClassifier())
    first.set_params(n_estimators=8).fit(X, names, init_model=first)
    np.testing.assert_array_equal(first.decision_function(X), whole.decision_function(X))


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
    stages, probabilities = list(model.staged_predict(X)), list(model.staged_predict_proba(X))
    assert len(stages) == len(probabilities) == 4
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(probabilities[-1], model.predict_proba(X))
    np.testing.assert_array_equal(probabilities[0], model.booster_.predict(X, rounds=1))
    np.testing.assert_array_equal(model.apply(X), model.booster_.predict_leaves(X))
    assert model.apply(X).shape == (150, 12)
    X, y = numbers
    model = SapwoodRegressor(n_estimators=4).fit(X, y)
    assert model.apply(X).shape == (len(X), 4)
    np.testing.assert_array_equal(np.array(list(model.staged_predict(X)))[-1], model.predict(X))


@pytest.mark.parametrize("estimator", BOTH)
def test_before_fit(estimator):
    model = estimator()
    for method in ("predict", "apply", "staged_predict"):
        with pytest.raises(NotFittedError):
            getattr(model, method)([[0.0]])
    for name in ("booster_", "feature_importances_", "n_iter_", "evals_result_", "best_iteration_", "n_features_in_"):
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
    search = GridSearchCV(pipe, {"sapwoodclassifier__max_leaves": [2, 7]}, cv=2).fit(X, y)
    assert search.best_params_["sapwoodclassifier__max_leaves"] in (2, 7)
    assert search.best_score_ > 0.9
    assert cross_val_score(SapwoodClassifier(**FEW), X, y, cv=3, scoring="roc_auc").min() > 0.95


def test_calibration_and_permutation(binary):
    X, y = binary
    calibrated = CalibratedClassifierCV(SapwoodClassifier(**FEW), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(X), 2)
    model = SapwoodClassifier(**FEW).fit(X, y)
    assert permutation_importance(model, X, y, n_repeats=1, random_state=0).importances_mean.max() > 0


@pytest.mark.parametrize("estimator", BOTH)
def test_metadata_routing(iris, estimator):
    X, y = iris
    weight = np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, estimator(**FEW).set_fit_request(sample_weight=True))
        pipe.fit(X, y, sample_weight=weight)
    direct = estimator(**FEW).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    assert pipe[-1].booster_.fingerprint() == direct.booster_.fingerprint()


def test_random_state_of_numpy(binary):
    X, y = binary
    one, same, other = (
        SapwoodClassifier(subsample=0.5, random_state=np.random.RandomState(seed), **FEW).fit(X, y)
        for seed in (1, 1, 2)
    )
    assert one.booster_.fingerprint() == same.booster_.fingerprint()
    assert one.booster_.fingerprint() != other.booster_.fingerprint()
