"""Targets far from 0: as exact as float64 has them, whatever is trained, and a warning
where that is not much.
"""

import ctypes
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood as sw
from sapwood import metric
from sapwood.boost import offset
from sapwood.errors import ParameterError
from sapwood.objective.distributions import Likelihood, family_of

Floats = NDArray[np.float64]
OFFSETS = [0.0, 1e6, 1e9, 1e12, 1e15]
FAR = 1e15
# what R2 may lose beside the same labels near 0: trees are others, and those rows are
# few
WORSE = 0.03
N_TRAIN = 1000
TRAINED = slice(0, N_TRAIN)
HELD_OUT = slice(N_TRAIN, None)


def table() -> tuple[Floats, Floats]:
    """Rows, and labels of a spread of 1."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(2000, 5))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + rng.normal(0, 0.2, len(X))
    return X, y / y.std()


X, Y = table()


def quiet(call: Callable[[], Any]) -> Any:
    """What a call returns, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def r2(label: Floats, prediction: Floats) -> float:
    return metric.r2(label, prediction, None)


def held_out_r2(model: Any, label: Floats, start: float) -> float:
    """R2 on rows that were not trained on; predictions are compared near 0."""
    prediction = quiet(lambda: model.fit(X[TRAINED], label[TRAINED])).predict(
        X[HELD_OUT]
    )
    return r2(label[HELD_OUT] - start, prediction - start)


MODELS: dict[str, Callable[[], Any]] = {
    "plain": lambda: sw.SapwoodRegressor(n_estimators=60),
    "early stopping": lambda: sw.SapwoodRegressor(
        n_estimators=200, learning_rate=0.05, early_stopping_rounds=10
    ),
    "absolute_error": lambda: sw.SapwoodRegressor(
        n_estimators=60, objective="absolute_error"
    ),
    "quantile": lambda: sw.SapwoodRegressor(n_estimators=60, objective="quantile"),
    "huber": lambda: sw.SapwoodRegressor(n_estimators=60, objective="huber"),
    "log_cosh": lambda: sw.SapwoodRegressor(n_estimators=60, objective="log_cosh"),
    "dart": lambda: sw.SapwoodRegressor(n_estimators=60, boosting="dart"),
    "forest": lambda: sw.SapwoodRegressor(
        n_estimators=60, boosting="forest", subsample=0.7, max_leaves=255
    ),
    "ordered": lambda: sw.SapwoodRegressor(n_estimators=60, boosting="ordered"),
    "linear leaves": lambda: sw.SapwoodRegressor(n_estimators=60, linear_leaves=True),
    "normal": lambda: sw.SapwoodDistribution("normal", n_estimators=60),
    "student_t": lambda: sw.SapwoodDistribution("student_t", n_estimators=60),
}


@pytest.mark.parametrize("start", OFFSETS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_labels_far_from_0_is_as_good_as_one_of_the_same_labels_near_0(
    name: str, start: float
) -> None:
    far = Y + start
    near = far - start  # what float64 has left of the labels
    assert (
        held_out_r2(MODELS[name](), far, start)
        > held_out_r2(MODELS[name](), near, 0.0) - WORSE
    )


@pytest.mark.parametrize("start", [1e12, FAR, -FAR])
def test_an_automatic_fit_of_labels_far_from_0_is_as_good_as_one_near_0(
    start: float,
) -> None:
    far = Y + start
    found = held_out_r2(sw.SapwoodRegressor(quality="fast"), far, start)
    assert (
        found
        > held_out_r2(sw.SapwoodRegressor(quality="fast"), far - start, 0.0) - WORSE
    )


def trained(start: float = FAR, **params: Any) -> tuple[sw.Booster, Floats]:
    """A model of labels far from 0, and the labels."""
    label = Y + start
    given = {"n_estimators": 30, "learning_rate": 0.05, **params}
    return quiet(lambda: sw.train(given, sw.Dataset(X, label))), label


def test_predictions_are_the_base_and_then_the_sum_of_the_trees() -> None:
    booster, _ = trained()
    trees = booster.predict(X, init_score=np.zeros(len(X)))
    assert booster.base_last
    assert (booster.predict(X) == booster.base[0] + trees).all()
    assert np.abs(trees).max() < 10


def test_a_saved_model_of_labels_far_from_0_predicts_the_same_bits() -> None:
    booster, _ = trained()
    again = sw.load(booster.to_bytes())
    assert again.base_last
    assert (again.predict(X) == booster.predict(X)).all()
    assert (booster.predict(X[:3]) == booster.predict(X)[:3]).all()


def test_stages_end_with_the_prediction() -> None:
    booster, _ = trained()
    stages = list(booster.staged_predict(X))
    assert (stages[-1] == booster.predict(X)).all()
    assert (stages[9] == booster.predict(X, rounds=10)).all()


def test_the_c_source_adds_the_base_last(tmp_path: Path) -> None:
    booster, _ = trained()
    booster.export(tmp_path / "model.c")
    library = tmp_path / "model.so"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "model.c", "-lm"],
        check=True,
    )
    predict = ctypes.CDLL(str(library)).model_predict
    found = np.empty(1)
    expected = booster.predict(X[:20])
    for row, one in zip(X[:20], expected, strict=True):
        numbers = np.ascontiguousarray(row)
        predict(
            numbers.ctypes.data_as(ctypes.c_void_p),
            found.ctypes.data_as(ctypes.c_void_p),
        )
        assert found[0] == one


def test_explanations_add_up_to_the_score() -> None:
    booster, _ = trained()
    told = booster.explain(X[:50])
    whole = told.base_values + told.values.sum(axis=1)
    assert np.abs(whole - booster.predict(X[:50])).max() <= 2 * np.spacing(FAR)


def test_metrics_of_validation_rows_are_those_of_predictions() -> None:
    label = Y + FAR
    data = sw.Dataset(X[TRAINED], label[TRAINED])
    valid = sw.Dataset(X[HELD_OUT], label[HELD_OUT], reference=data)
    booster = quiet(
        lambda: sw.train(
            {"n_estimators": 20, "eval_metric": ["rmse", "mape"]}, data, valid=valid
        )
    )
    (history,) = booster.history.values()
    prediction = booster.predict(X[HELD_OUT])
    assert history["rmse"][-1] == pytest.approx(
        metric.rmse(label[HELD_OUT], prediction, None), rel=1e-12
    )
    assert history["mape"][-1] == pytest.approx(
        metric.mape(label[HELD_OUT], prediction, None), rel=1e-12
    )


def test_folds_are_measured_as_near_0() -> None:
    far = Y + FAR
    params = {"n_estimators": 30, "learning_rate": 0.1}
    found = quiet(lambda: sw.cv(params, sw.Dataset(X, far)))["rmse_mean"]
    near = sw.cv(params, sw.Dataset(X, far - FAR))["rmse_mean"]
    assert found[-1] == pytest.approx(near[-1], rel=0.05)


def test_training_goes_on_from_a_model_far_from_0() -> None:
    first, label = trained(n_estimators=20)
    data = sw.Dataset(X, label)
    more = {"n_estimators": 10, "learning_rate": 0.05}
    whole = quiet(lambda: sw.train(more, data, init_model=first))
    assert whole.base_last
    assert (whole.predict(X, rounds=20) == first.predict(X)).all()
    assert metric.rmse(label, whole.predict(X), None) < metric.rmse(
        label, first.predict(X), None
    )


def test_each_of_several_targets_has_its_own_offset() -> None:
    label = np.stack([Y + FAR, Y], axis=1)
    booster = quiet(lambda: sw.train({"n_estimators": 40}, sw.Dataset(X, label)))
    prediction = booster.predict(X)
    assert r2(label[:, 0] - FAR, prediction[:, 0] - FAR) > 0.8
    assert r2(label[:, 1], prediction[:, 1]) > 0.8
    assert abs(booster.base[1]) < 1


def test_quantiles_of_labels_far_from_0_are_those_near_0() -> None:
    model = sw.SapwoodRegressor(quantiles=[0.1, 0.5, 0.9], n_estimators=40)
    far = quiet(lambda: model.fit(X, Y + FAR)).predict(X) - FAR
    near = model.fit(X, (Y + FAR) - FAR).predict(X)
    assert (np.diff(far, axis=1) >= 0).all()
    assert far.mean(axis=0) == pytest.approx(near.mean(axis=0), abs=0.05)


def test_a_distribution_far_from_0_has_the_spread_of_one_near_0() -> None:
    far = Y + 1e12
    model = quiet(lambda: sw.SapwoodDistribution("normal", n_estimators=40).fit(X, far))
    near = sw.SapwoodDistribution("normal", n_estimators=40).fit(X, far - 1e12)
    assert model.predict_dist(X).std().mean() == pytest.approx(
        near.predict_dist(X).std().mean(), rel=0.05
    )


@pytest.mark.parametrize("start", [1e6, 1e9])
@pytest.mark.parametrize("family", ["normal", "laplace", "student_t"])
def test_a_distribution_of_labels_far_from_0_is_as_likely_as_one_near_0(
    family: str, start: float
) -> None:
    far = Y + start
    losses = []
    for label in (far, far - start):
        model = sw.SapwoodDistribution(family, n_estimators=40).fit(
            X[TRAINED], label[TRAINED]
        )
        losses.append(metric.nll(label[HELD_OUT], model.predict_dist(X[HELD_OUT])))
    assert losses[0] == pytest.approx(losses[1], abs=0.05)


def test_labels_of_huge_size_and_spread_are_not_centred() -> None:
    booster, _ = trained(start=0.0)
    scaled = sw.train(
        {"n_estimators": 30, "learning_rate": 0.05}, sw.Dataset(X, np.ldexp(Y, 400))
    )
    assert not scaled.base_last
    assert (scaled.predict(X) == np.ldexp(booster.predict(X), 400)).all()


@pytest.mark.parametrize("start", [0.0, 1e3, 1e6, 1e9])
def test_ordinary_labels_are_not_centred(start: float) -> None:
    booster, _ = trained(start=start)
    assert not booster.base_last
    assert "base_last" not in booster.params


@pytest.mark.parametrize(
    "objective", ["poisson", "mape", "gamma", Likelihood(family_of("lognormal"))]
)
def test_losses_that_depend_on_the_size_of_labels_are_not_centred(
    objective: Any,
) -> None:
    booster, _ = trained(objective=objective, n_estimators=2)
    assert not booster.base_last


def test_constant_labels_are_not_centred() -> None:
    booster = sw.train({"n_estimators": 2}, sw.Dataset(X, np.full(len(X), FAR)))
    assert not booster.base_last
    assert (booster.predict(X) == FAR).all()


@pytest.mark.parametrize(
    "model", [sw.SapwoodRegressor(quality="fast"), sw.SapwoodRegressor(n_estimators=5)]
)
def test_labels_that_float64_has_rounded_are_named_once(model: Any) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, Y + FAR)
    said = [str(one.message) for one in found if "rounded" in str(one.message)]
    assert len(said) == 1
    assert "steps of 0.125" in said[0]


@pytest.mark.parametrize("start", [0.0, 1e6, 1e9, 1e12])
def test_labels_that_float64_has_hardly_rounded_give_no_warning(start: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.train({"n_estimators": 2}, sw.Dataset(X, Y + start))


def test_the_step_that_is_named_is_more_than_a_thousandth_of_the_range() -> None:
    assert offset.COARSE == 1e-3
    spread = float((Y + FAR).max() - (Y + FAR).min())
    assert np.spacing(FAR) > 1e-3 * spread


@pytest.mark.parametrize("ending", [".json", ".onnx"])
def test_formats_of_32_bits_refuse_labels_far_from_0(tmp_path, ending):
    X = np.arange(100.0).reshape(50, 2)
    model = sw.train({"n_estimators": 2}, sw.Dataset(X, X[:, 0] + 1e15))
    with pytest.raises(ParameterError, match="32 bits"):
        model.export(tmp_path / f"model{ending}")
    assert list(tmp_path.iterdir()) == []
