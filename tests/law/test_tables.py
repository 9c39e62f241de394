"""The law over tables as they come: the same values of every type, whatever holds them,
give the same bytes.
"""

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import sapwood as sw

RNG = np.random.default_rng(1)
N = 300
COLUMNS: dict[str, list[Any]] = {
    "when": [
        dt.datetime(2021, 1, 1) + dt.timedelta(minutes=int(m))
        for m in RNG.integers(0, 10**6, N)
    ],
    "size": RNG.integers(0, 50, N).tolist(),
    "x": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)).tolist(),
    "city": RNG.choice(["Rom", "Oslo", "Bonn", "Wien"], N).tolist(),
    "flag": RNG.choice([True, False], N).tolist(),
}
COLUMNS["when"][5] = COLUMNS["city"][7] = None
Y = (
    np.array([len(one or "") for one in COLUMNS["city"]])
    + np.nan_to_num(COLUMNS["x"])
    + np.array(COLUMNS["size"]) / 9
)


def structured() -> np.ndarray:
    kinds = {"when": "M8[us]", "size": "i8", "x": "f8", "city": object, "flag": bool}
    table = np.empty(N, list(kinds.items()))
    for name, values in COLUMNS.items():
        table[name] = np.array(values, kinds[name]) if name != "city" else values
    return table


def duckdb_relation() -> Any:
    return pytest.importorskip("duckdb").from_arrow(pa.table(COLUMNS))


TABLES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, category": lambda: pd.DataFrame(COLUMNS).astype({"city": "category"}),
    "pandas, nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, Arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, category": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("city").cast(pl.Categorical)
    ),
    "polars, lazy": lambda: pl.DataFrame(COLUMNS).lazy(),
    "Arrow": lambda: pa.table(COLUMNS),
    "Arrow, dictionary": lambda: pa.table(
        COLUMNS | {"city": pa.array(COLUMNS["city"]).dictionary_encode()}
    ),
    "Arrow, dataset": lambda: ds.dataset(pa.table(COLUMNS)),
    "Arrow, stream": lambda: pa.table(COLUMNS).to_reader(),
    "duckdb": duckdb_relation,
    "dict of lists": lambda: dict(COLUMNS),
    "dict of arrays": lambda: {
        name: np.array(values) for name, values in COLUMNS.items()
    },
    "list of dicts": lambda: [
        dict(zip(COLUMNS, row, strict=True))
        for row in zip(*COLUMNS.values(), strict=True)
    ],
    "structured": structured,
}


@pytest.mark.filterwarnings("ignore:.*collected into memory")
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_every_type(name: str) -> None:
    expected = sw.train({"n_estimators": 8}, sw.Dataset(pd.DataFrame(COLUMNS), Y))
    actual = sw.train({"n_estimators": 8}, sw.Dataset(TABLES[name](), Y))
    assert actual.to_bytes() == expected.to_bytes()
    assert (
        actual.predict(TABLES[name]()).tobytes()
        == expected.predict(pd.DataFrame(COLUMNS)).tobytes()
    )


@pytest.mark.filterwarnings("ignore:.*collected into memory")
@pytest.mark.parametrize(
    "name",
    [
        "pandas",
        "polars",
        "Arrow",
        "dict of lists",
        "list of dicts",
        "structured",
        "duckdb",
    ],
)
def test_estimators_take_them_too(name: str) -> None:
    model = sw.SapwoodRegressor(n_estimators=5).fit(TABLES[name](), Y)
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert (
        model.predict(TABLES[name]()).tobytes()
        == model.booster_.predict(pd.DataFrame(COLUMNS)).tobytes()
    )


def test_what_can_hardly_be_used_is_named() -> None:
    table = pd.DataFrame(COLUMNS).assign(
        one=3.0,
        row=[f"r{i}" for i in range(N)],
        note=[f"this is the note {i} of the day" for i in range(N)],
    )
    with pytest.warns(
        UserWarning,
        match="'one' has one value.*'row' has a category of its own.*'note' has text",
    ):
        sw.Dataset(table, Y, text_features=None)
    with pytest.raises(
        TypeError,
        match=r"column 'n' of data has dtype Struct.*nested values are not supported; part them",
    ):
        sw.Dataset(pl.DataFrame({"n": [{"c": 1}, {"c": 2}]}), [0, 1])
    with pytest.raises(
        TypeError,
        match=r"(?s)column 'a' of data.*1 to 2 values.*column 'b' of data.*nested",
    ):
        sw.Dataset(
            pl.DataFrame({"a": [[1], [1, 2]], "b": [{"c": 1}, {"c": 1}]}), [0, 1]
        )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"": [1.0, 2.0], "b": [2.0, 3.0]}, "two keys of one name, or an empty one"),
        ({1: [1.0, 2.0], "1": [2.0, 3.0]}, "two keys of one name, or an empty one"),
        ([{"": 1.0}, {"": 2.0}], "keys that are empty or no text"),
        ({"a": 5}, "column 'a' of data is '5'; give a list"),
        ({"a": "xy"}, "column 'a' of data is 'xy'; give a list"),
        ({"a": {"x": 1.0, "y": 2.0}}, "column 'a' of data is .*; give a list"),
        ({"a": [[1.0], [2.0]]}, r"setting an array element with a sequence\.$"),
    ],
)
def test_dicts_that_are_no_table(table: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sw.Dataset(table, [0.0, 1.0])
