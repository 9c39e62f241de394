"""Columns of dates and times: parts of the calendar, in the model and out of any
table.
"""

import datetime as dt
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sapwood as sw
from sapwood.data import derived, ingest
from sapwood.data.times import Times
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.model import io

RNG = np.random.default_rng(0)
N = 400
WHEN = [
    dt.datetime(2019, 12, 30) + dt.timedelta(hours=int(h), microseconds=7)
    for h in RNG.integers(0, 20_000, N)
]
WHEN[3] = None
NUMBER = RNG.normal(size=N)
TABLE = pd.DataFrame({"when": pd.to_datetime(WHEN), "x": NUMBER})
Y = (
    np.array([0.0 if one is None else one.weekday() + one.hour / 8 for one in WHEN])
    + NUMBER
)
QUICK = {"n_estimators": 10}


def test_parts_are_those_of_the_calendar() -> None:
    some = [
        dt.datetime(1899, 3, 1, 23, 59, 59),
        dt.datetime(1970, 1, 1),
        dt.datetime(2000, 2, 29, 12, 30),
        *WHEN[4:50],
    ]
    own = Times.of(np.array([*some, "NaT"], "M8[us]"))
    wanted = {
        "year": [one.year for one in some],
        "month": [one.month for one in some],
        "day": [one.day for one in some],
        "weekday": [one.weekday() for one in some],
        "dayofyear": [one.timetuple().tm_yday for one in some],
        "hour": [one.hour for one in some],
        "minute": [one.minute for one in some],
    }
    for part, values in wanted.items():
        np.testing.assert_array_equal(own.part(part), [*values, np.nan])
    seconds = [
        (one - dt.datetime(1970, 1, 1)) / dt.timedelta(seconds=1) for one in some
    ]
    np.testing.assert_array_equal(own.elapsed(), [*seconds, np.nan])


def test_the_model_takes_the_same_column() -> None:
    data = sw.Dataset(TABLE, Y)
    assert data.feature_names == (
        "when",
        "x",
        "when.month",
        "when.day",
        "when.weekday",
        "when.hour",
    )
    booster = sw.train(QUICK, data)
    assert set(booster.importance("weight").nonzero()[0]) >= {4, 5}
    for again in (sw.load(booster.to_bytes()), pickle.loads(pickle.dumps(booster))):
        np.testing.assert_array_equal(again.predict(TABLE), booster.predict(TABLE))
        np.testing.assert_array_equal(
            again.predict(TABLE[["x", "when"]].iloc[::-1]), booster.predict(TABLE)[::-1]
        )
    assert "when.weekday" in str(booster.why(TABLE.iloc[:1]))
    numbers = np.column_stack(
        [derived.expand(ingest.read(TABLE), data.times).table[j] for j in range(6)]
    )
    # with its parts, as numbers
    np.testing.assert_array_equal(booster.predict(numbers), booster.predict(TABLE))


def test_parts_may_be_chosen_or_left_out() -> None:
    assert sw.Dataset(TABLE, date_features=None).feature_names == ("when", "x")
    assert sw.Dataset(TABLE, date_features=["hour", "year"]).feature_names == (
        "when",
        "x",
        "when.year",
        "when.hour",
    )
    same_day = TABLE.assign(when=pd.Timestamp("2020-05-05"))
    with pytest.warns(UserWarning, match="'when' has one value in all rows"):
        assert sw.Dataset(same_day).feature_names == ("when", "x")  # nothing differs
    taken = TABLE.assign(**{"when.hour": 1.0 * np.arange(N)})
    assert sw.Dataset(taken).feature_names[-1] == "when..hour"
    with pytest.raises(
        ParameterError, match=r"date_features=\['century'\]: 'century' is unknown"
    ):
        sw.Dataset(TABLE, date_features=["century"])


def test_an_estimator_counts_the_columns_of_the_table() -> None:
    model = sw.SapwoodRegressor(n_estimators=10).fit(TABLE, Y)
    assert model.n_features_in_ == len(model.feature_importances_) == 2
    assert model.feature_names_in_.tolist() == ["when", "x"]
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert (
        sw.SapwoodRegressor(n_estimators=3, date_features=None)
        .fit(TABLE, Y)
        .booster_.n_columns
        == 2
    )
    assert sw.SapwoodRegressor(quality="fast").fit(TABLE, Y).predict(TABLE).shape == (
        N,
    )


def zoned(zone: str) -> pd.DataFrame:
    return TABLE.assign(
        when=TABLE["when"].dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"when": 1.0}, "'when' had times in training, and has numbers now"),
        ({"when": "2020-01-01"}, "column 'when' of X has dtype .*text can only be"),
        ({"x": TABLE["when"]}, "'x' had numbers in training, and has times now"),
        (
            {"when": zoned("Europe/Berlin")["when"]},
            "'when' had times in training, and has times of the zone Europe/Be",
        ),
    ],
)
def test_other_types_than_in_training_raise(change, message) -> None:
    booster = sw.train(QUICK, sw.Dataset(TABLE, Y))
    with pytest.raises(DataError, match=message):
        booster.predict(TABLE.assign(**change))


def test_times_are_those_on_the_clock_of_their_zone() -> None:
    berlin = sw.Dataset(zoned("Europe/Berlin"), Y)
    plain = sw.Dataset(TABLE, Y)
    assert berlin.times[0].zone == "Europe/Berlin"
    assert berlin.fingerprint() == plain.fingerprint()  # hours are hours, wherever
    arrow = pa.Table.from_pandas(zoned("Europe/Berlin"))
    assert (
        sw.Dataset(pl.from_arrow(arrow), Y).fingerprint()
        == sw.Dataset(arrow, Y).fingerprint()
        == plain.fingerprint()
    )


def test_a_column_without_a_value_is_of_any_type() -> None:
    booster = sw.train(QUICK, sw.Dataset(TABLE, Y))
    nothing = booster.predict(TABLE.assign(when=pd.NaT))
    np.testing.assert_array_equal(booster.predict(TABLE.assign(when=np.nan)), nothing)
    np.testing.assert_array_equal(booster.predict(TABLE.assign(when=None)), nothing)


def test_durations_and_times_of_the_day_are_seconds() -> None:
    table = pl.DataFrame(
        {"d": [dt.timedelta(hours=1), None], "t": [None, dt.time(1, 2, 3)]}
    )
    for given in (table, table.to_arrow()):
        read = ingest.read(given)
        np.testing.assert_array_equal(read.table[0], [3600.0, np.nan])
        np.testing.assert_array_equal(read.table[1], [np.nan, 3723.0])


def test_chunks_validation_sets_and_files(tmp_path) -> None:
    whole = sw.Dataset(TABLE, Y)
    halves = sw.Dataset.from_chunks(
        [(TABLE[:150], Y[:150]), (pl.from_pandas(TABLE[150:]), Y[150:])]
    )
    assert halves.fingerprint() == whole.fingerprint() and halves.times == whole.times
    valid = sw.Dataset(TABLE[:50], Y[:50], reference=whole)
    whole.save(tmp_path / "data")
    loaded = sw.Dataset.load(tmp_path / "data")
    assert loaded.times == whole.times and loaded.n_given == 2
    prints = {
        sw.train(QUICK, one, valid=valid).fingerprint()
        for one in (whole, halves, loaded)
    }
    assert len(prints) == 1
    with pytest.raises(
        DataError, match="has times in one chunk, and numbers in another"
    ):
        sw.Dataset.from_chunks([TABLE[:50], TABLE[50:].assign(when=1.0)])
    with pytest.raises(
        DataError, match="has times in one chunk, and categories in another"
    ):
        sw.Dataset.from_chunks([TABLE[:50], TABLE[50:].assign(when="x")])


@pytest.mark.parametrize(
    "plan",
    [5, [[0]], [[9, None, []]], [[0, None, ["era"]]], [[0, None, []], [0, None, []]]],
)
def test_a_file_that_lies_about_its_times_raises(plan) -> None:
    booster = sw.train(QUICK, sw.Dataset(TABLE, Y))
    arrays, fields = io.container.unpack(
        booster.to_bytes(), "model", 6, ModelFormatError
    )
    with pytest.raises(ModelFormatError):
        sw.load(io.container.pack("model", 6, arrays, fields | {"times": plan}))


def test_columns_that_have_no_parts() -> None:
    """A date that is the same in all rows, and lists of one number: tables to predict
    have the same columns.
    """
    table = pd.DataFrame({"a": np.arange(40.0), "when": pd.Timestamp("2024-01-01")})
    for column in (table["when"], pd.Series([[float(k)] for k in range(40)])):
        given = table.assign(when=column)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of little use
            model = sw.train(
                {"n_estimators": 3, "min_samples_leaf": 2},
                sw.Dataset(given, table["a"] % 7),
            )
        assert len(model.times) == 1 and model.n_columns == 2
        again = sw.load(model.to_bytes())
        np.testing.assert_array_equal(again.predict(given), model.predict(given))
        np.testing.assert_array_equal(
            model.predict(given[:1]), model.predict(given)[:1]
        )
        assert model.explain(given[:3]).values.shape == (3, 2)


def test_what_is_said_of_a_column_is_said_of_its_parts() -> None:
    """Groups and weights by column reach the parts of a date; a direction is refused,
    since parts have none.
    """
    table = pd.DataFrame(
        {
            "d": pd.date_range("2020", periods=800, freq="h"),
            "c": np.sin(np.arange(800.0)),
        }
    )
    hour = table["d"].dt.hour
    swung = np.where(hour < 8, table["c"], -table["c"])
    params = {"n_estimators": 60, "learning_rate": 0.3}
    free, grouped = (
        sw.train(params | more, sw.Dataset(table, swung))
        for more in ({}, {"interaction_constraints": [["d", "c"]]})
    )
    np.testing.assert_array_equal(free.predict(table), grouped.predict(table))
    assert grouped.check_constraints()
    apart = sw.train(
        params | {"interaction_constraints": [["d"], ["c"]]}, sw.Dataset(table, swung)
    )
    assert np.mean((apart.predict(table) - swung) ** 2) > 10 * np.mean(
        (free.predict(table) - swung) ** 2
    )
    late = (hour >= 8).to_numpy(float)
    # by name, or a number for each column of the table
    for given in ({"d": 0}, [0, 1]):
        out = sw.train(params | {"feature_weights": given}, sw.Dataset(table, late))
        used = {out.feature_names[j] for j in set(out.trees.column.tolist()) if j >= 0}
        assert used <= {"c"}
    assert sw.train(
        params | {"monotone_constraints": [0, 1]}, sw.Dataset(table, late)
    ).check_constraints()
    for bad in ({"d": 1}, [1, 0]):
        with pytest.raises(ParameterError, match=r"'d'.*several columns.*'d\.month'"):
            sw.train(params | {"monotone_constraints": bad}, sw.Dataset(table, late))
    with pytest.raises(ParameterError, match="3 directions, the data 2 columns"):
        sw.train(params | {"monotone_constraints": [0, 1, 0]}, sw.Dataset(table, late))
    with pytest.raises(ParameterError, match="several columns"):
        free.check_constraints(monotone_constraints={"d": 1})


def test_date_features_of_a_training_are_those_of_the_data() -> None:
    table = pd.DataFrame(
        {
            "d": pd.date_range("2020-01-01", periods=400, freq="37h"),
            "x": np.arange(400.0),
        }
    )
    y = table["d"].dt.month.to_numpy(np.float64)
    params = {"n_estimators": 3, "date_features": ["year"]}
    wanted = sw.train(
        {"n_estimators": 3}, sw.Dataset(table, y, date_features=["year"])
    ).to_bytes()
    data = sw.Dataset(table, y)
    assert (
        sw.train(params, data).to_bytes() == wanted == sw.train(params, data).to_bytes()
    )
    assert (
        sw.train(params, sw.Dataset(table, y, date_features=["year"])).to_bytes()
        == wanted
    )
    with pytest.raises(
        ParameterError, match=r"the data was made with None; give it to Dataset instead"
    ):
        sw.train(params, sw.Dataset(table, y, date_features=None))
    with pytest.raises(ParameterError, match="the data was made with other columns"):
        sw.train(params, pickle.loads(pickle.dumps(data)))
