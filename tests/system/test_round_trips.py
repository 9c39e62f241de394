"""Nothing is lost: a model of every kind is saved, pickled, copied and read again, byte
for byte.
"""

import copy
import dataclasses
import io
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.base import clone

import sapwood as sw
from kinds import (
    BINARY,
    DATASETS,
    ESTIMATORS,
    FRAME,
    LEAST,
    MODELS,
    REFUSED,
    SCORE,
    UNSAVABLE,
    Stopper,
    X,
    few,
    trained,
    watched,
)
from sapwood.boost.round.peer_makers import NAMES
from sapwood.data import container
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.model import Booster
from sapwood.model.io import VERSION
from sapwood.params import TABLE

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def predictions(model: Booster, table: Any) -> Any:
    """Raw scores, which a model gives without the function of its link."""
    return model.predict(table, raw=True)


def check_copies(model: Booster, table: Any, folder: Path) -> None:
    """Compare a model with what files, pickles and copies make of it."""
    raw = model.to_bytes()
    before = predictions(model, table)
    path = folder / "model.sapwood"
    model.save(path)
    dumped = folder / "model.joblib"
    joblib.dump(model, dumped)
    file = io.BytesIO(raw)
    copies = {
        "load": sw.load(path),
        "bytes": sw.load(raw),
        "file": sw.load(file),
        "joblib": joblib.load(dumped),
        "copy": copy.copy(model),
        "deepcopy": copy.deepcopy(model),
    }
    if model.transform is None:
        copies["pickle"] = pickle.loads(pickle.dumps(model))
    copies["cloudpickle"] = cloudpickle.loads(cloudpickle.dumps(model))
    for way, other in copies.items():
        assert other.to_bytes() == raw, way
        assert dict(other.params).keys() == dict(model.params).keys(), way
    np.testing.assert_array_equal(predictions(copies["load"], table), before)
    np.testing.assert_array_equal(predictions(copies["cloudpickle"], table), before)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_of_every_kind_comes_back(kind: str, tmp_path: Path) -> None:
    try:
        model, table = MODELS[kind]()
    except ParameterError:
        assert kind in REFUSED
        return
    check_copies(model, table, tmp_path)


def outputs(estimator: Any, table: Any) -> list[Any]:
    """What an estimator predicts, in every form that it has."""
    methods = (
        "predict",
        "predict_proba",
        "decision_function",
        "predict_quantile",
        "predict_cumulative_hazard",
        "apply",
    )
    found = [
        np.asarray(getattr(estimator, name)(table))
        for name in methods
        if hasattr(estimator, name)
    ]
    if hasattr(estimator, "calibration_"):
        found.append(
            getattr(estimator, "interval", getattr(estimator, "predict_set", None))(
                table, 0.5
            )
        )
    return found


def test_every_callback_and_parameter_has_a_model() -> None:
    callbacks = {*sw.callback.__all__, *NAMES} - {"Callback", "Round"}
    assert callbacks <= MODELS.keys()
    parameters = {row.name for row in TABLE if row.model and not row.ranking}
    assert parameters - {kind.partition("=")[0] for kind in MODELS} == {
        "objective"
    }  # whose kinds have names of their own


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_of_every_kind_comes_back(kind: str, tmp_path: Path) -> None:
    estimator, rows = ESTIMATORS[kind]()
    if kind.removeprefix("classes: ") in UNSAVABLE:
        with pytest.raises(DataError, match="cannot be saved"):
            estimator.fit(*rows)
        return
    unfitted = copy.deepcopy(estimator).get_params()
    estimator.fit(*rows)
    table = rows[0]
    if kind == "ranker with a column of groups":
        table = table.drop(columns="q")
    before = outputs(estimator, table)
    joblib.dump(estimator, tmp_path / "estimator")
    estimator.save_model(tmp_path / "model")
    copies = {
        "pickle": pickle.loads(pickle.dumps(estimator)),
        "deepcopy": copy.deepcopy(estimator),
        "joblib": joblib.load(tmp_path / "estimator"),
        "cloudpickle": cloudpickle.loads(cloudpickle.dumps(estimator)),
        "load_model": type(estimator)(**estimator.get_params()).load_model(
            tmp_path / "model"
        ),
    }
    for way, other in copies.items():
        assert other.booster_.to_bytes() == estimator.booster_.to_bytes(), way
        after = outputs(other, table)
        expected = [*before][: len(after)]
        for one, same in zip(after, expected, strict=True):
            np.testing.assert_array_equal(one, same, err_msg=way, strict=True)
        if way != "load_model":
            assert vars(other).keys() == vars(estimator).keys(), way
            assert len(after) == len(before), way
    same = clone(estimator).get_params()
    assert same.keys() == unfitted.keys()
    for name in same:
        np.testing.assert_equal(
            repr(same[name]), repr(unfitted[name])
        ) if name != "random_state" else None


def test_an_encoder_comes_back(tmp_path: Path) -> None:
    encoder = sw.OrderedTargetEncoder().fit(FRAME[["few", "code"]].astype(str), BINARY)
    joblib.dump(encoder, tmp_path / "encoder")
    for other in (
        pickle.loads(pickle.dumps(encoder)),
        copy.deepcopy(encoder),
        joblib.load(tmp_path / "encoder"),
    ):
        table = FRAME[["few", "code"]].astype(str)
        np.testing.assert_array_equal(other.transform(table), encoder.transform(table))


@pytest.mark.parametrize("kind", DATASETS)
def test_a_dataset_of_every_kind_comes_back(kind: str, tmp_path: Path) -> None:
    data = DATASETS[kind]()
    data.save(tmp_path / "data")
    joblib.dump(data, tmp_path / "dumped")
    copies = {
        "load": sw.Dataset.load(tmp_path / "data"),
        "pickle": pickle.loads(pickle.dumps(data)),
        "deepcopy": copy.deepcopy(data),
        "joblib": joblib.load(tmp_path / "dumped"),
        "copy": copy.copy(data),
    }
    for way, other in copies.items():
        assert other.fingerprint() == data.fingerprint(), way
        assert other._pack() == data._pack(), way
        if data.label is not None:
            params = {
                **LEAST,
                "linear_leaves": data.linear_leaves,
                "tree_method": data.tree_method,
            }
            one, same = (sw.train(params, rows) for rows in (data, other))
            assert one.to_bytes() == same.to_bytes(), way


# What a file cannot hold is refused by the writer, and nothing that it writes by the
# reader.


def test_a_model_of_scheduled_rates_says_so_and_goes_on() -> None:
    data = sw.Dataset(X, SCORE)
    rates = [0.3, 0.2, 0.1, 0.1, 0.05, 0.05]
    whole = sw.train({**LEAST, "n_estimators": 6, "learning_rate": rates}, data)
    first = sw.load(sw.train({**LEAST, "learning_rate": rates}, data).to_bytes())
    assert first.params["learning_rate"] == "scheduled"
    assert (
        sw.train({**LEAST, "learning_rate": rates}, data, init_model=first).to_bytes()
        == whole.to_bytes()
    )
    assert few(sw.SapwoodRegressor).fit(X, SCORE, init_model=first).n_iter_ == 6


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"learning_rate": "slow"}, "learning_rate=slow"),
        ({"max_leaves": "scheduled"}, "max_leaves=scheduled is not an integer"),
        ({"reg_lambda": np.inf}, "reg_lambda=inf is no value of JSON"),
        ({"mine": {1: 2}}, "mine={1: 2} is no value of JSON"),
        ({"mine": [X]}, "is no value of JSON"),
        (
            {"forced_splits": "splits.json"},
            "is a path; a model file holds the splits themselves",
        ),
    ],
)
def test_parameters_that_no_file_can_hold_are_refused_at_the_save(
    params: Any, message: str, tmp_path: Path
) -> None:
    model, _ = trained({})
    odd = dataclasses.replace(model, params={**model.params, **params})
    with pytest.raises(ModelFormatError, match=message):
        odd.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_the_reader_opens_no_file_that_a_model_names(tmp_path: Path) -> None:
    splits = tmp_path / "splits.json"
    splits.write_text('{"feature": 0, "threshold": 0}')
    model, _ = trained({})
    arrays, fields = container.unpack(
        model.to_bytes(), "model", VERSION, ModelFormatError
    )
    fields["params"]["forced_splits"] = str(splits)
    with pytest.raises(ModelFormatError, match="is a path"):
        sw.load(container.pack("model", VERSION, arrays, fields))


def test_names_without_utf8_are_refused_before_training() -> None:
    with pytest.raises(DataError, match="no file can hold"):
        sw.Dataset(X, SCORE, feature_names=["\udc80", "b", "c", "d"])
    with pytest.raises(DataError, match="no file can hold"):
        sw.Dataset(np.zeros(3, [("\udc80", "f8"), ("b", "f8")]), np.arange(3.0))


def test_best_round_of_a_callback_is_an_integer() -> None:
    class Half:
        best_round = 1.5

        def __call__(self, view: Any) -> None:
            pass

    with pytest.raises(
        ParameterError, match="is no integer; give the number of rounds to keep"
    ):
        watched({}, callbacks=[Half()])
    model, _ = watched({}, callbacks=[Stopper()])
    assert type(model.best_round) is int
