"""Columns of categories from a table to a model and back: one model whatever they came
in, and what users meet.
"""

import pickle
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datasets
import sapwood
from sapwood import Booster, Dataset, SapwoodClassifier, SapwoodRegressor
from sapwood.data import container
from sapwood.errors import DataError, ParameterError
from spec.reference import dictionaries

Floats = NDArray[np.float64]
CITIES = ["Rom", "Bern", "Oslo", "Zürich", "Genf", "Nice", "Lyon", "Graz"]
PARAMS = {
    "n_estimators": 6,
    "max_leaves": 8,
    "min_data_per_group": 5,
    "category_encoding": "partition",
}
DECLARED = ["city", "kind"]


@cache
def table(n: int = 900) -> tuple[pd.DataFrame, Floats]:
    """Text with missing values, integers, and a number; all three matter."""
    rng = np.random.default_rng(3)
    city = rng.choice(len(CITIES), n)
    kind = rng.integers(0, 40, n)
    x = rng.normal(size=n)
    y = (
        np.array([2.0, -1, 0, 1, -2, 3, 0.5, -0.5])[city]
        + np.sin(3.0 * kind)
        + x
        + 0.1 * rng.normal(size=n)
    )
    names = np.array(CITIES, object)[city]
    names[rng.random(n) < 0.1] = None
    return pd.DataFrame({"city": names, "kind": 10**15 * kind, "x": x}), y


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    """Categories in another order, and some that no row has."""
    city = pd.Categorical(frame["city"], categories=["Ulm", *CITIES[::-1], "Metz"])
    kind = pd.Categorical(
        frame["kind"],
        categories=[7, *sorted(set(frame["kind"]), reverse=True)],
        ordered=True,
    )
    return frame.assign(city=city, kind=kind)


CONTAINERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda f: f,
    "pandas categories": lambda f: f.astype({"city": "category", "kind": "category"}),
    "pandas categories in another order": shuffled,
    "polars": pl.from_pandas,
    "polars categories": lambda f: pl.from_pandas(f).cast({"city": pl.Categorical}),
    "Arrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    "Arrow dictionary": lambda f: pa.Table.from_pandas(
        shuffled(f), preserve_index=False
    ),
    "columns in another order": lambda f: f[["x", "city", "kind"]],
    "array": lambda f: f.to_numpy(object),
    "rows": lambda f: f.to_numpy(object).tolist(),
}


def fit(frame: pd.DataFrame, y: Floats) -> Booster:
    return sapwood.train(PARAMS, Dataset(frame, y, categorical_features=DECLARED))


@cache
def model() -> Booster:
    return fit(*table())


@pytest.mark.parametrize(
    "container", [name for name in CONTAINERS if name != "columns in another order"]
)
def test_one_model_whatever_the_container(container: str) -> None:
    frame, y = table()
    X = CONTAINERS[container](frame)
    names = None if hasattr(X, "columns") else list(frame.columns)
    data = Dataset(X, y, categorical_features=DECLARED, feature_names=names)
    assert sapwood.train(PARAMS, data).to_bytes() == model().to_bytes()


@pytest.mark.parametrize("container", CONTAINERS)
def test_one_prediction_whatever_the_container(container: str) -> None:
    frame, _ = table()
    np.testing.assert_array_equal(
        model().predict(CONTAINERS[container](frame)), model().predict(frame)
    )


@pytest.mark.pairwise
@pytest.mark.parametrize("policy", ["depthwise", "leafwise", "symmetric"])
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_chunks_threads_and_paths_do_not_matter(
    isa: str, policy: str, weights: str
) -> None:
    frame, y = table()
    rng = np.random.default_rng(5)
    w = {
        "none": None,
        "whole": rng.integers(0, 4, len(y)).astype(float),
        "real": rng.random(len(y)),
    }[weights]
    params = PARAMS | {"grow_policy": policy, "max_leaves": "auto", "max_depth": 4}
    whole = sapwood.train(
        params | {"n_jobs": 1}, Dataset(frame, y, w, categorical_features=DECLARED)
    )
    makers = [
        CONTAINERS[name]
        for name in (
            "polars categories",
            "Arrow dictionary",
            "columns in another order",
        )
    ]
    cuts = [0, 1, 400, 400, len(y)]
    for jobs in (2, 3, 7):
        parts = [
            (makers[i % 3](frame[a:b]), y[a:b], *(() if w is None else (w[a:b],)))
            for i, (a, b) in enumerate(pairwise(cuts))
        ]
        chunked = Dataset.from_chunks(
            [(frame[:0], y[:0], *(() if w is None else (w[:0],))), *parts],
            categorical_features=DECLARED,
            n_jobs=jobs,
        )
        assert (
            sapwood.train(params | {"n_jobs": jobs}, chunked).to_bytes()
            == whole.to_bytes()
        )
    assert (whole.trees.set >= 0).any()


@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_codes_are_those_of_the_specification(weights: str) -> None:
    rng = np.random.default_rng(0)
    n = 500
    w = {
        "none": None,
        "whole": rng.integers(0, 3, n).astype(float),
        "real": np.round(rng.random(n), 1),
    }[weights]
    texts = [None if v == 0 else f"v{v}" for v in rng.integers(0, 30, n)]
    numbers = [None if v == 0 else int(v) for v in rng.integers(-300, 300, n)]
    data = Dataset(
        pd.DataFrame({"a": texts, "b": pd.array(numbers, "Int64")}),
        weight=w,
        categorical_features=[0, 1],
    )
    for column, values in enumerate((texts, numbers)):
        known = dictionaries.dictionary(values, w)
        assert list(data.categories[column].values) == known
        assert data.binned.codes(column).tolist() == dictionaries.codes(values, known)


def test_whole_weights_are_repeated_rows() -> None:
    frame, y = table()
    w = np.random.default_rng(6).integers(0, 3, len(y))
    weighted = sapwood.train(
        PARAMS, Dataset(frame, y, w.astype(float), categorical_features=DECLARED)
    )
    repeated = fit(
        frame.loc[frame.index.repeat(w)].reset_index(drop=True), np.repeat(y, w)
    )
    np.testing.assert_array_equal(weighted.predict(frame), repeated.predict(frame))


def test_unseen_categories_are_missing() -> None:
    frame, _ = table()
    strange = frame.assign(city="Atlantis", kind=-5)
    nothing = frame.assign(city=None, kind=pd.array([None] * len(frame), "Int64"))
    np.testing.assert_array_equal(model().predict(strange), model().predict(nothing))
    assert (model().predict(strange) != model().predict(frame)).any()


def test_validation_rows_score_as_predictions_do() -> None:
    frame, y = table()
    data = Dataset(frame[:600], y[:600], categorical_features=DECLARED)
    held = Dataset(
        pl.from_pandas(frame[600:].assign(city=frame["city"].replace("Rom", "Paris"))),
        y[600:],
        reference=data,
    )
    booster = sapwood.train(PARAMS | {"eval_metric": "rmse"}, data, valid=held)
    predicted = booster.predict(
        frame[600:].assign(city=frame["city"].replace("Rom", "Paris"))
    )
    assert booster.history["valid"]["rmse"][-1] == pytest.approx(
        np.sqrt(np.mean((predicted - y[600:]) ** 2)), rel=1e-12
    )


def test_early_stopping_and_folds() -> None:
    frame, y = table()
    data = Dataset(frame, y, categorical_features=DECLARED)
    stopped = sapwood.train(
        PARAMS | {"n_estimators": 60, "early_stopping_rounds": 3, "learning_rate": 0.5},
        data,
    )
    assert stopped.best_round is not None
    folds = sapwood.cv(PARAMS, data, n_folds=3)
    assert folds["rmse_mean"][-1] < folds["rmse_mean"][0] < np.std(y)


def test_training_goes_on() -> None:
    frame, y = table()
    data = Dataset(frame, y, categorical_features=DECLARED)
    half = sapwood.train(PARAMS | {"n_estimators": 3}, data)
    assert (
        sapwood.train(PARAMS | {"n_estimators": 3}, data, init_model=half).to_bytes()
        == model().to_bytes()
    )
    other = Dataset(
        frame.assign(city=frame["city"].replace("Rom", "Paris")),
        y,
        categorical_features=DECLARED,
    )
    with pytest.raises(
        DataError, match="init_model knows other categories than the data"
    ):
        sapwood.train(PARAMS, other, init_model=half)


def test_validation_sets_need_the_same_categories() -> None:
    frame, y = table()
    data, other = (
        Dataset(frame[:n], y[:n], categorical_features=["city"]) for n in (900, 30)
    )
    held = Dataset(frame[:30], y[:30], reference=data)
    assert held.categories == data.categories != other.categories
    # after its first training the table is gone, and it cannot be binned again
    sapwood.train(PARAMS, other)
    with pytest.raises(DataError, match="other columns, cuts or categories"):
        sapwood.train(PARAMS, data, valid=other)


# Datasets


def test_one_chunk_is_enough_to_make_categories() -> None:
    """Others may have no value, or integers that are plain numbers there."""
    kinds = [3, 1, 2, 3, 3, 1, 2, 2]
    texts = [None, None, None, "a", "b", "a", None, "b"]
    frame = pd.DataFrame({"text": texts, "kind": kinds})
    whole = Dataset(frame, categorical_features=[0, 1])
    first = pd.DataFrame({"text": [None] * 3, "kind": kinds[:3]})
    assert first["text"].dtype == object
    last = frame[3:].astype({"kind": "category"})
    for chunks in (
        [first, last],
        [
            first,
            pl.from_pandas(frame[3:4]).cast({"kind": pl.Int8}),
            frame[4:].astype("category"),
        ],
    ):
        assert Dataset.from_chunks(chunks).fingerprint() == whole.fingerprint()
    assert (
        "0.5"
        in Dataset.from_chunks([first.assign(kind=[1, 0.5, 2]), last])
        .categories[1]
        .values
    )
    with pytest.raises(
        DataError, match="column 'text' is text in one chunk and numbers in another"
    ):
        Dataset.from_chunks([first.assign(text=[1, 2, 3]), last])


def test_datasets_are_saved_whole(tmp_path: Path) -> None:
    frame, y = table()
    data = Dataset(frame, y, categorical_features=DECLARED)
    data.save(tmp_path / "data.sapwood")
    back = Dataset.load(tmp_path / "data.sapwood")
    assert back.fingerprint() == data.fingerprint()
    assert back.categories == data.categories
    assert sapwood.train(PARAMS, back).to_bytes() == model().to_bytes()
    back.save(tmp_path / "again.sapwood")
    assert (tmp_path / "again.sapwood").read_bytes() == (
        tmp_path / "data.sapwood"
    ).read_bytes()


def test_datasets_of_the_first_format_load(tmp_path: Path) -> None:
    old = Path(__file__).parents[1] / "golden" / "dataset-1.sapwood"
    data = Dataset.load(old)
    assert (
        data.fingerprint() == Dataset([[1.0, 2.0], [3.0, np.nan]], [0, 1]).fingerprint()
    )
    data.save(tmp_path / "again.sapwood")
    assert (tmp_path / "again.sapwood").read_bytes() == old.read_bytes()


FILE_LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no dictionary": lambda a: a.pop("category.1"),
    "a dictionary of a column of numbers": lambda a: a.update(
        {"category.2": np.arange(3)}
    ),
    "a dictionary of no column": lambda a: a.update({"category.3": np.arange(3)}),
    "fewer values than codes": lambda a: a.update({"category.1": np.arange(3)}),
    "a value twice": lambda a: a["category.1"].__setitem__(0, a["category.1"][1]),
    "a code beyond that of missing values": lambda a: a["codes.0"].__setitem__(0, 9),
    "codes of another type": lambda a: a.update(
        {"codes.0": a["codes.0"].astype(np.uint16)}
    ),
    "text that is no UTF-8": lambda a: a["category.0"].__setitem__(0, 0xFF),
}


@pytest.mark.parametrize("lie", FILE_LIES)
def test_lies_in_a_saved_dataset_raise(tmp_path: Path, lie: str) -> None:
    frame, y = table()
    Dataset(frame, y, categorical_features=DECLARED).save(tmp_path / "data")
    arrays, fields = container.unpack(
        (tmp_path / "data").read_bytes(), "dataset", 2, DataError
    )
    arrays = {name: array.copy() for name, array in arrays.items()}
    FILE_LIES[lie](arrays)
    (tmp_path / "lie").write_bytes(container.pack("dataset", 2, arrays, fields))
    with pytest.raises(DataError):
        Dataset.load(tmp_path / "lie")


def test_fingerprints_know_the_values() -> None:
    frame, y = table()
    one, same, other = (
        Dataset(f, y, categorical_features="auto").fingerprint()
        for f in (
            frame,
            shuffled(frame)[["city"]].join(frame[["kind", "x"]]),
            frame.replace({"city": {"Rom": "Roma"}}),
        )
    )
    assert one == same != other


def test_what_a_dataset_says_of_itself() -> None:
    frame, y = table()
    assert "3 columns of at most 255 bins (1 of categories)" in repr(Dataset(frame, y))
    data = Dataset(frame, y, categorical_features=DECLARED)
    assert data.n_bins[:2] == [8, 40]
    assert [len(cuts) for cuts in data.cuts][:2] == [0, 0]


def test_many_categories() -> None:
    """More than bins there can be: the rare ones share one, and the model still knows
    them from those never seen.
    """
    n = 70_000
    ids = np.concatenate([np.arange(n), np.arange(3000).repeat(5)])
    y = (ids % 7 == 0).astype(float)
    data = Dataset(ids[:, None], y, categorical_features=[0])
    assert data.n_bins == [65_534]
    booster = sapwood.train(
        {"n_estimators": 2, "min_data_per_group": 1, "cat_smooth": 0}, data
    )
    predicted = booster.predict(ids[:, None])
    assert len(np.unique(predicted)) > 1
    rare = np.arange(66_000, 66_010)[:, None]
    assert len(np.unique(booster.predict(rare))) == 1
    assert (
        sapwood.load(booster.to_bytes()).predict(ids[:, None]).tobytes()
        == predicted.tobytes()
    )


def test_columns_of_nothing_but_missing_values() -> None:
    frame, y = table()
    empty = frame.assign(city=pd.Categorical([None] * len(frame), categories=["a"]))
    booster = fit(empty, y)
    assert booster.categories[0].values == ()
    np.testing.assert_array_equal(booster.predict(frame), booster.predict(empty))


def test_none_refuses_what_is_no_number() -> None:
    frame, y = table()
    with pytest.raises(
        DataError,
        match=r"column 'city' of data has dtype .*as categorical_features must say",
    ):
        Dataset(frame, y, categorical_features=None)
    assert Dataset(frame[["x"]], y, categorical_features=None).categories == {}


def test_exact_trees_know_no_categories() -> None:
    frame, y = table()
    with pytest.raises(
        ParameterError,
        match="tree_method='exact' knows no categories, and 'city' has some; use 'hist'",
    ):
        Dataset(frame, y, tree_method="exact")


def test_categories_have_no_order_to_keep() -> None:
    frame, y = table()
    data = Dataset(frame, y, categorical_features=DECLARED)
    with pytest.raises(
        ParameterError,
        match="monotone_constraints names 'kind', whose categories have no order",
    ):
        sapwood.train(PARAMS | {"monotone_constraints": {"kind": 1}}, data)
    rising = sapwood.train(PARAMS | {"monotone_constraints": {"x": 1}}, data)
    assert rising.check_constraints()
    assert not model().check_constraints().monotone


# Parameters


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("categorical_features", ["city", "kind"]),
        ("categorical_feature", "name:city,kind"),
        ("categorical_feature", "0,1"),
        ("cat_features", [0, 1]),
        ("categorical_column", {1, 0}),
        ("cat_column", np.array([True, True, False])),
        ("categorical_features", "auto"),
        ("categorical_features", "from_dtype"),
        ("enable_categorical", True),
    ],
)
def test_train_takes_the_columns_that_the_data_has(name: str, value: Any) -> None:
    frame, y = table()
    data = Dataset(frame, y, categorical_features=DECLARED)
    assert sapwood.train(PARAMS | {name: value}, data).to_bytes() == model().to_bytes()


@pytest.mark.parametrize(
    "value", [None, ["city"], [0, 1, 2], [True, False, False], ["nowhere"]]
)
def test_train_refuses_other_columns(value: Any) -> None:
    frame, y = table()
    data = Dataset(frame, y, categorical_features=DECLARED)
    with pytest.raises(
        ParameterError,
        match=r"the columns of categories of the data are \['city', 'kind'\]",
    ):
        sapwood.train(PARAMS | {"categorical_features": value}, data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "city",
            "categorical_features='city' is unknown; choose 'auto', None, or a list",
        ),
        (3.5, "is not a list of columns"),
        ([1.5], "names a column 1.5; give a name or a position"),
        (["city", True], "names a column True"),
    ],
)
def test_wrong_declarations_raise(value: Any, message: str) -> None:
    frame, y = table()
    with pytest.raises(ParameterError, match=message):
        Dataset(frame, y, categorical_features=value)


# Estimators


def test_estimators_take_text_as_it_is() -> None:
    frame, y = table()
    plain = SapwoodRegressor(**PARAMS).fit(frame, y)
    assert plain.booster_.categories.keys() == {0}
    both = SapwoodRegressor(**PARAMS, categorical_features=DECLARED).fit(frame, y)
    assert both.booster_.to_bytes() == model().to_bytes()
    assert both.score(frame, y) > plain.score(frame, y)
    turned = frame[["x", "kind", "city"]]
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        both.predict(turned)
    assert (
        pickle.loads(pickle.dumps(both)).predict(frame).tobytes()
        == both.predict(frame).tobytes()
    )
    assert clone(both).get_params()["categorical_features"] == DECLARED
    watched = SapwoodRegressor(**PARAMS, categorical_features=[0, 1]).fit(
        frame, y, X_val=frame[:100], y_val=y[:100]
    )
    assert watched.evals_result_["valid"]["rmse"][-1] < np.std(y)


def test_estimators_work_in_pipelines_and_searches() -> None:
    frame, y = table(900)
    label = np.where(y > 0, "yes", "no")
    scale = ColumnTransformer(
        [("x", StandardScaler(), ["x"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    pipeline = make_pipeline(
        scale.set_output(transform="pandas"), SapwoodClassifier(**PARAMS)
    )
    assert cross_val_score(pipeline, frame, label, cv=3).mean() > 0.8
    grid = {"categorical_features": ["auto", DECLARED], "min_data_per_group": [5, 100]}
    search = GridSearchCV(SapwoodClassifier(n_estimators=6), grid, cv=2).fit(
        frame, label
    )
    assert search.best_score_ > 0.8
    assert search.best_estimator_.booster_.categories


def test_real_integers_as_categories() -> None:
    """Hours and weekdays of the bicycles: no order of the hours is as good as sets of
    them, in few leaves.
    """
    bikes = datasets.bike_sharing()
    few = {"n_estimators": 20, "max_leaves": 4, "min_data_per_group": 20}
    hours = [bikes.names.index("hr")]
    ordered, chosen = (
        SapwoodRegressor(**few, categorical_features=which)
        .fit(bikes.X, bikes.y)
        .score(bikes.X, bikes.y)
        for which in ("auto", hours)
    )
    assert chosen > ordered
