"""Bad data and odd data: what must be refused is refused by name, what is only odd
trains to finite numbers.
"""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.errors import DataError

X = np.random.default_rng(0).standard_normal((40, 3))
Y = X[:, 0] + (X[:, 1] > 0)
CLASSES = (Y > 0).astype(np.int64)

ESTIMATORS = [sapwood.SapwoodRegressor, sapwood.SapwoodClassifier]


def with_value(values: Any, row: int, value: float) -> Any:
    """A float copy with one value replaced."""
    changed = np.array(values, np.float64)
    changed[row] = value
    return changed


def fit(estimator: Any, X: Any, y: Any, weight: Any = None) -> Any:
    return estimator(n_estimators=3).fit(X, y, sample_weight=weight)


# --------------------------------------------------------------------------------------
# refused
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_label_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match="17"):
        sapwood.Dataset(X, with_value(Y, 17, value))
    with pytest.raises(ValueError, match=r"(?i)\by\b|label"):
        fit(sapwood.SapwoodRegressor, X, with_value(Y, 17, value))
    with pytest.raises(ValueError, match=r"(?i)\by\b|label|nan|infinity"):
        fit(sapwood.SapwoodClassifier, X, with_value(CLASSES, 17, value))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_weight_must_be_finite_and_not_negative(value: float) -> None:
    weight = with_value(np.ones(40), 5, value)
    with pytest.raises(DataError, match="weight"):
        sapwood.Dataset(X, Y, weight=weight)
    for estimator in ESTIMATORS:
        with pytest.raises(DataError, match="weight"):
            fit(estimator, X, CLASSES, weight)


@pytest.mark.parametrize(
    "weight",
    [np.zeros(40), np.ones(39), np.ones((40, 2))],
    ids=["zero", "short", "2-D"],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_that_say_nothing(estimator: Any, weight: Any) -> None:
    with pytest.raises(ValueError, match="weight"):
        fit(estimator, X, CLASSES, weight)


@pytest.mark.parametrize(
    "table", [X[:0], X[:, :0], X[:, 0], X[None], np.float64(3), [[1, 2], [3]], X * 1j]
)
def test_a_table_has_rows_and_columns(table: Any) -> None:
    with pytest.raises(ValueError):
        sapwood.Dataset(table, Y)
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError):
            fit(estimator, table, CLASSES)


@pytest.mark.parametrize("y", [Y[:-1], np.stack([Y, Y], axis=1)[:-1], None])
def test_one_label_a_row(y: Any) -> None:
    with pytest.raises(ValueError):
        fit(sapwood.SapwoodRegressor, X, y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_failed_fit_leaves_nothing_behind(estimator: Any) -> None:
    model = fit(estimator, X, CLASSES)
    with pytest.raises(DataError):
        model.fit(X, CLASSES, sample_weight=-np.ones(40))
    assert not hasattr(model, "booster_")
    assert (
        model.fit(X, CLASSES).booster_.fingerprint()
        == fit(estimator, X, CLASSES).booster_.fingerprint()
    )


def test_a_class_unseen_in_training() -> None:
    model = sapwood.SapwoodClassifier(n_estimators=2)
    with pytest.raises(ValueError, match="7"):
        model.fit(X, CLASSES, X_val=X, y_val=np.full(40, 7))


@pytest.mark.parametrize("y", [with_value(CLASSES, 3, 2), with_value(CLASSES, 3, 0.5)])
def test_a_label_that_is_no_class(y: Any) -> None:
    with pytest.raises(DataError):
        sapwood.train(
            {"objective": "logistic", "n_estimators": 1}, sapwood.Dataset(X, y)
        )


@pytest.mark.parametrize(
    "y",
    [
        with_value(CLASSES, 3, -1),
        with_value(CLASSES, 3, 0.5),
        with_value(CLASSES, 3, 3),
    ],
)
def test_a_label_that_is_none_of_the_classes(y: Any) -> None:
    with pytest.raises(DataError):
        sapwood.train(
            {"objective": "softmax", "n_classes": 3, "n_estimators": 1},
            sapwood.Dataset(X, y),
        )


# --------------------------------------------------------------------------------------
# odd but right
@pytest.mark.parametrize("n_rows", [1, 2])
def test_very_few_rows(n_rows: int) -> None:
    model = fit(sapwood.SapwoodRegressor, X[:n_rows, :1], Y[:n_rows])
    assert np.isfinite(model.predict(X[:, :1])).all()


def test_one_class() -> None:
    try:
        model = fit(sapwood.SapwoodClassifier, X, np.full(40, "only"))
    except ValueError as error:
        assert "class" in str(error)
    else:
        assert (model.predict(X) == "only").all()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e300])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_columns_that_say_nothing(estimator: Any, value: float) -> None:
    blank = np.full((40, 2), value)
    nothing = fit(estimator, blank, CLASSES).booster_
    assert nothing.trees.column.max() == -1  # no split
    assert nothing.predict(blank) == pytest.approx(np.full(40, CLASSES.mean()))
    beside = fit(estimator, np.hstack([blank, X]), CLASSES).booster_
    np.testing.assert_array_equal(
        beside.predict(np.hstack([blank, X])),
        fit(estimator, X, CLASSES).booster_.predict(X),
    )


def test_infinities_are_no_missing_values() -> None:
    column = np.array([-np.inf, -1.0, 1.0, np.inf, np.nan] * 20)[:, None]
    y = np.array([0.0, 1.0, 2.0, 2.0, 9.0] * 20)
    model = sapwood.SapwoodRegressor(n_estimators=1, learning_rate=1, reg_lambda=0).fit(
        column, y
    )
    # and have bins of their own
    assert model.predict(column[:5]) == pytest.approx([0, 1, 2, 2, 9], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_labels_of_any_size(scale: float) -> None:
    model = sapwood.SapwoodRegressor(n_estimators=50, learning_rate=0.5).fit(
        X, Y * scale
    )
    assert np.corrcoef(model.predict(X) / scale, Y)[0, 1] > 0.9


def test_labels_whose_squares_overflow_are_refused_or_predicted() -> None:
    try:
        model = fit(sapwood.SapwoodRegressor, X, Y * 1e300)
    except DataError as error:
        assert "label" in str(error) or "y" in str(error)
    else:
        assert np.isfinite(model.predict(X)).all()


def test_a_weight_of_zero_is_a_row_left_out() -> None:
    weight = np.ones(40)
    weight[::3] = 0
    kept = weight > 0
    left_out, dropped = (
        sapwood.Dataset(X, Y, weight=weight),
        sapwood.Dataset(X[kept], Y[kept], weight=weight[kept]),
    )
    one, other = (
        sapwood.train({"n_estimators": 5}, data) for data in (left_out, dropped)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_what_the_caller_changes_afterwards_does_not_matter() -> None:
    table = X.copy()
    y = Y.copy()
    weight = np.ones(40)
    params = {"n_estimators": 3}
    data = sapwood.Dataset(table, y, weight=weight)
    before = sapwood.train(params, data).fingerprint()
    table[:], y[:], weight[:] = 0, 0, 0
    assert sapwood.train(params, data).fingerprint() == before
    assert params == {"n_estimators": 3}
