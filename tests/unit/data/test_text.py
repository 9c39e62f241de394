"""Columns of text, lists and differences of dates: what they become, what a model
keeps, what is refused.
"""

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sapwood as sw
from sapwood.data import derived
from sapwood.data.categories import Coded
from sapwood.data.text import BUCKETS, TextColumn, Texts
from sapwood.errors import DataError, ModelFormatError, ParameterError

RNG = np.random.default_rng(0)
N = 300
LABEL = RNG.integers(0, 2, N)
FILL = [f"w{i}" for i in range(80)]
REVIEW = [
    " ".join(
        [
            *RNG.choice(FILL, 5),
            ("Good" if c else "bad") if RNG.random() < 0.9 else "so-so",
        ]
    )
    + "!"
    for c in LABEL
]
TABLE = pd.DataFrame({"review": REVIEW, "x": RNG.normal(size=N)})
QUICK: dict[str, Any] = {"n_estimators": 8, "n_jobs": 1}


def test_what_text_becomes() -> None:
    data = sw.Dataset(TABLE, LABEL)
    assert data.feature_names[:3] == ("review", "x", "review.characters")
    assert (
        data.feature_names[-1] == "review.class:1"
        and data.n_given == 2
        and not data.categories
    )
    (plan,) = data.times
    assert isinstance(plan, TextColumn) and "good" in plan.words
    columns = dict(
        zip(
            data.feature_names,
            derived.expand(
                sw.data.ingest.read(TABLE, categorical="auto"), data.times
            ).table,
            strict=True,
        )
    )
    assert columns["review"][0] == len(REVIEW[0].replace("-", " ").split())
    assert columns["review.characters"][0] == len(REVIEW[0])
    np.testing.assert_array_equal(
        columns["review.word:good"], ["Good" in one for one in REVIEW]
    )


def test_naive_bayes_by_hand() -> None:
    """Of two texts, 'a' in class 1 twice and 'b' in class 0 once."""
    table = pd.DataFrame({"t": ["a", "a", "b"]})
    (plan,) = sw.Dataset(table, [1, 1, 0], text_features=["t"]).times
    told = plan.numbers(Coded(np.array([0, 1, -1]), ["a", "b"]), 3)[-1]
    of_a = np.log(((2 + 1) / (2 + 2)) / ((0 + 1) / (1 + 2)))
    of_b = np.log(((0 + 1) / (2 + 2)) / ((1 + 1) / (1 + 2)))
    np.testing.assert_allclose(told[:2], [of_a, of_b], rtol=1e-12)
    assert np.isnan(told[2])


def test_a_row_is_not_told_by_its_own_label() -> None:
    """Every row has a word of its own: nothing is known of it, so nothing is told."""
    table = pd.DataFrame({"t": [f"only{i}" for i in range(200)]})
    y = np.random.default_rng(1).integers(0, 2, 200)
    texts = Texts.of(sw.data.ingest.read(table, categorical="auto").table[0])
    _, own = sw.data.text.learn(0, texts, y.astype(float), np.ones(200, bool))
    bucket_shared = len(set(texts.buckets.tolist())) < 200
    assert own is not None and (
        np.count_nonzero(own) < 30 if bucket_shared else not own.any()
    )
    _, number = sw.data.text.learn(0, texts, np.arange(200) * 1.5, np.ones(200, bool))
    # means of the other folds, and a few shared buckets
    assert number is not None and np.ptp(number) < 40


def test_it_helps_and_a_file_keeps_it() -> None:
    model = sw.SapwoodClassifier(n_estimators=30, n_jobs=1).fit(
        TABLE[:200], LABEL[:200]
    )
    assert model.score(TABLE[200:], LABEL[200:]) > 0.85
    again = sw.load(model.booster_.to_bytes())
    assert again.to_bytes() == model.booster_.to_bytes()
    np.testing.assert_array_equal(again.predict(TABLE), model.booster_.predict(TABLE))
    assert (
        model.feature_importances_.shape == (2,) and model.feature_importances_[0] > 0.5
    )
    assert "review." in again.why(TABLE[:1])
    shuffled = TABLE[["x", "review"]]
    # by name
    np.testing.assert_array_equal(again.predict(shuffled), again.predict(TABLE))


@pytest.mark.parametrize("task", ["classes", "number", "three"])
def test_bytes_do_not_depend_on_threads_chunks_and_libraries(task: str) -> None:
    y = {
        "classes": LABEL,
        "number": LABEL * 2.5 + TABLE["x"],
        "three": LABEL + (TABLE["x"] > 1),
    }[task].astype(float)
    params = {"objective": "squared_error", **QUICK}
    one = sw.train(params, sw.Dataset(TABLE, y)).to_bytes()
    for n_jobs in (2, 3, 7):
        assert (
            sw.train(
                {**params, "n_jobs": n_jobs}, sw.Dataset(TABLE, y, n_jobs=n_jobs)
            ).to_bytes()
            == one
        )
    chunks = [(TABLE[a:b], y[a:b]) for a, b in ((0, 7), (7, 120), (120, N))]
    assert sw.train(params, sw.Dataset.from_chunks(chunks)).to_bytes() == one
    for other in (
        pl.from_pandas(TABLE),
        pa.Table.from_pandas(TABLE),
        TABLE.astype({"review": "category"}),
    ):
        assert sw.train(params, sw.Dataset(other, y)).to_bytes() == one


def test_datasets_keep_it(tmp_path: Any) -> None:
    data = sw.Dataset(TABLE, LABEL)
    data.save(tmp_path / "d")
    again = sw.Dataset.load(tmp_path / "d")
    assert again.times == data.times and again.fingerprint() == data.fingerprint()
    valid = sw.Dataset(TABLE[:50], LABEL[:50], reference=data)
    assert valid.feature_names == data.feature_names


def test_switches() -> None:
    with pytest.warns(UserWarning, match="text_features"):
        off = sw.Dataset(TABLE, LABEL, text_features=None)
    assert off.feature_names == ("review", "x") and 0 in off.categories
    assert sw.Dataset(TABLE, LABEL, text_features=[0]).n_given == 2
    both = sw.Dataset(TABLE, LABEL, text_features="review", categorical_features=[])
    assert both.times == sw.Dataset(TABLE, LABEL).times
    few = pd.DataFrame({"colour": ["dark blue sea green"] * 150 + ["x y z w"] * 150})
    assert sw.Dataset(few, LABEL).times == ()  # few different values are categories
    with pytest.raises(DataError, match="not of text"):
        sw.Dataset(TABLE, LABEL, text_features=["x"])
    with pytest.raises(DataError, match="no column"):
        sw.Dataset(TABLE, LABEL, text_features=["y"])
    with pytest.raises(ParameterError, match="text_features=3"):
        sw.Dataset(TABLE, LABEL, text_features=3.0)


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "?!...",
        "🙂 🙃",
        "\udcff\udc80 bytes",
        "word " * 50_000,
        "ÄÖÜ ßtraße 東京",
        "a\x00b",
        None,
        np.nan,
    ],
    ids=[
        "empty",
        "punctuation",
        "emoji",
        "not utf-8",
        "long",
        "letters",
        "zero",
        "none",
        "nan",
    ],
)
def test_odd_cells(odd: Any) -> None:
    table = TABLE.astype({"review": object})
    table.loc[3, "review"] = odd
    model = sw.train(
        {"objective": "logistic", **QUICK},
        sw.Dataset(table, LABEL, text_features=["review"]),
    )
    new = pd.DataFrame(
        {"review": pd.Series([odd, "good"], dtype=object), "x": [0.0, 1.0]}
    )
    assert np.isfinite(model.predict(new)).all()


def test_cells_of_mixed_types() -> None:
    """Numbers among text are read as text, and a warning says so."""
    table = TABLE.astype({"review": object})
    table.loc[5, "review"], table.loc[6, "review"] = 12, 3.5
    with pytest.warns(UserWarning, match="'review' of data has both text and numbers"):
        data = sw.Dataset(table, LABEL, text_features=["review"])
    model = sw.train({"objective": "logistic", **QUICK}, data)
    with pytest.warns(UserWarning, match="both text and numbers"):
        assert np.isfinite(model.predict(table)).all()


def test_text_without_a_value_and_other_types() -> None:
    model = sw.train({"objective": "logistic", **QUICK}, sw.Dataset(TABLE, LABEL))
    gone = TABLE.assign(review=None)
    assert np.isfinite(model.predict(gone)).all()
    with pytest.raises(DataError, match="'review' had text in training, and has"):
        model.predict(TABLE.assign(review=1.5))
    with pytest.raises(DataError, match="Missing: 'review'"):
        model.predict(TABLE[["x"]])
    with pytest.raises(DataError):  # numbers in training, text now
        sw.train(QUICK, sw.Dataset(TABLE[["x"]], LABEL)).predict(
            TABLE[["review"]].rename(columns={"review": "x"})
        )
    with pytest.raises(DataError, match="not of text"):
        sw.Dataset(gone, LABEL, text_features=["review"])
    more = TABLE.assign(new=1)
    with pytest.raises(DataError, match="Unknown: 'new'"):
        model.predict(more)


def test_labels_of_weight_0_are_not_counted() -> None:
    weight = np.ones(N)
    weight[200:] = 0
    (plan,) = sw.Dataset(TABLE, LABEL, weight).times
    (alone,) = sw.Dataset(TABLE[:200], LABEL[:200]).times
    assert (
        plan.totals == alone.totals
        and plan.words == alone.words
        and plan.table == alone.table
    )


def test_hostile_files_raise() -> None:
    (plan,) = sw.Dataset(TABLE, LABEL).times
    good = derived.encode((plan,))
    assert derived.decode(good) == (plan,)
    for name, value in {
        "totals": [1],
        "table": [[BUCKETS, 1, 1]],
        "n_classes": 1,
        "words": ["a", "a"],
    }.items():
        broken = derived.decode([{**good[0], name: value}])
        assert derived.flaw(broken, 2 + len(broken[0].parts), {}), name
    for wrong in ({**good[0], "table": [["x"]]}, {"lists": "a", "length": 2}, 5):
        with pytest.raises(ValueError, match="as they are saved"):
            derived.decode([wrong])
    assert derived.flaw(derived.decode([{"lists": 0, "length": 0}]), 1, {})
    many = derived.decode(
        [{"lists": 0, "length": 2**62}, {"lists": 1, "length": -(2**62)}]
    )
    # no memory is taken
    assert (
        derived.flaw(many, 3, {}) == "lists have no more values than there are columns"
    )
    with pytest.raises(ModelFormatError):
        sw.load(b"nothing")


# ---- Lists ---------------------------------------------------------------------------

VECTORS = RNG.normal(size=(N, 3))


def test_lists_become_columns() -> None:
    table = pd.DataFrame({"e": list(VECTORS), "x": TABLE["x"]})
    y = VECTORS[:, 2]
    model = sw.train(QUICK, sw.Dataset(table, y))
    assert model.feature_names == ("e", "x", "e.1", "e.2")
    others = [
        pl.DataFrame({"e": VECTORS.tolist(), "x": TABLE["x"].to_numpy()}),
        pl.DataFrame(
            {
                "e": pl.Series(VECTORS, dtype=pl.Array(pl.Float64, 3)),
                "x": TABLE["x"].to_numpy(),
            }
        ),
        pa.table({"e": VECTORS.tolist(), "x": TABLE["x"].to_numpy()}),
    ]
    for other in others:
        np.testing.assert_array_equal(model.predict(other), model.predict(table))
        assert sw.train(QUICK, sw.Dataset(other, y)).to_bytes() == model.to_bytes()
    assert sw.load(model.to_bytes()).to_bytes() == model.to_bytes()
    some = table.copy()
    some.at[0, "e"] = None
    assert np.isfinite(model.predict(some)).all()
    assert np.isfinite(model.predict(table.assign(e=np.nan))).all()
    assert sw.SapwoodRegressor(**QUICK).fit(table, y).predict(table).shape == (N,)


def test_lists_that_are_refused() -> None:
    table = pd.DataFrame({"e": list(VECTORS)})
    model = sw.train(QUICK, sw.Dataset(table, LABEL))
    with pytest.raises(
        DataError,
        match="had lists of 3 numbers in training, and has lists of 2 numbers now",
    ):
        model.predict(pd.DataFrame({"e": list(VECTORS[:, :2])}))
    with pytest.raises(
        DataError, match="had lists of 3 numbers in training, and has numbers"
    ):
        model.predict(pd.DataFrame({"e": np.ones(N)}))
    with pytest.raises(DataError, match="embedding_features=None does not name it"):
        sw.Dataset(table, LABEL, embedding_features=None)
    with pytest.raises(DataError, match="has no lists"):
        sw.Dataset(table.assign(x=1.0), LABEL, embedding_features=["x"])
    ragged = pd.DataFrame({"e": [[1.0], [1.0, 2.0]] * 10})
    with pytest.raises(DataError, match="1 to 2 values"):
        sw.Dataset(ragged, np.arange(20))
    with pytest.raises(DataError, match="not of numbers"):
        sw.Dataset(pd.DataFrame({"e": [["a", "b"]] * 5}), np.arange(5))
    with pytest.raises(DataError, match="no list of numbers"):
        sw.Dataset(
            pl.DataFrame({"e": [None] * 5}, schema={"e": pl.List(pl.Float64)}),
            np.arange(5),
        )


# ---- Differences of dates ------------------------------------------------------------


def test_the_time_between_two_dates() -> None:
    start = pd.date_range("2020-01-01", periods=N, freq="h")
    days = RNG.integers(0, 100, N)
    table = pd.DataFrame({"start": start, "end": start + pd.to_timedelta(days, "D")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = sw.Dataset(table, days)
    assert "end.since_start" in data.feature_names
    column = derived.expand(sw.data.ingest.read(table), data.times).table[
        data.feature_names.index("end.since_start")
    ]
    np.testing.assert_array_equal(column, days * 86_400.0)
    model = sw.train(QUICK, data)
    assert sw.load(model.to_bytes()).to_bytes() == model.to_bytes()
    gone = table.assign(start=pd.NaT)
    assert np.isfinite(model.predict(gone)).all()
    assert (
        "end.since_start"
        not in sw.Dataset(table, days, date_features=["month"]).feature_names
    )
    assert sw.Dataset(table, days, date_features=None).feature_names == ("start", "end")
    far = pd.DataFrame(
        {
            "a": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)] * 60,
            "b": [datetime.date(2000, 1, 1)] * 120,
        }
    )
    assert np.isfinite(
        sw.train(QUICK, sw.Dataset(far, np.arange(120))).predict(far)
    ).all()
