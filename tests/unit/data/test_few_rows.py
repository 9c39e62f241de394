"""A few rows of a data frame: the same predictions as by the long way, or the long way
itself.
"""

import numpy as np
import pandas as pd
import pytest

import sapwood as sw

RNG = np.random.default_rng(0)
N = 400
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "c": pd.Categorical(RNG.choice(list("uvw"), N)),
        "i": RNG.integers(0, 9, N),
        "b": RNG.random(N) < 0.5,
        "t": RNG.choice(["x", "y"], N),
        "f": RNG.normal(size=N).astype(np.float32),
    }
)
Y = (TABLE["a"] + TABLE["c"].cat.codes + TABLE["i"] / 5 > 2).astype(int)
MODEL = sw.SapwoodClassifier(n_estimators=10, min_samples_leaf=2).fit(TABLE, Y)
WHOLE = MODEL.booster_.predict(TABLE)  # by the long way, since there are many


def test_every_row_alone() -> None:
    few = MODEL.booster_._few_rows
    assert few.read(TABLE.iloc[[3]]) is not None
    for i in range(60):
        assert (
            MODEL.booster_.predict(TABLE.iloc[[i]])[0]
            == WHOLE[i]
            == MODEL.predict_proba(TABLE.iloc[[i]])[0, 1]
        )
    np.testing.assert_array_equal(
        MODEL.booster_.predict(TABLE[:50], n_jobs=2), WHOLE[:50]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"c": pd.Categorical(["new"], ["new", "v"])},
        {"c": pd.Categorical([None], ["u", "v"])},
        {"c": pd.Series(["v"], [3])},
        {"t": "new"},
        {"t": None},
        {"t": pd.Series(["x"], [3], dtype="category")},
        {"a": np.nan},
        {"a": np.inf},
        {"i": 3.5},
        {"i": pd.Series([3], [3], dtype="Int64")},
        {"b": True},
    ],
    ids=str,
)
def test_odd_rows_are_read_as_ever(change: dict) -> None:
    row = TABLE.iloc[[3]].assign(**change)
    both = pd.concat([row] * 100, ignore_index=True)  # more than a few
    assert MODEL.booster_.predict(row)[0] == MODEL.booster_.predict(both)[0]


def test_what_differs_is_refused_as_ever() -> None:
    row = TABLE.iloc[[3]]
    with pytest.raises(ValueError, match="Missing: 't'"):
        MODEL.booster_.predict(row.drop(columns="t"))
    with pytest.raises(TypeError, match="text can only be of categories"):
        MODEL.booster_.predict(row.assign(a="z"))
    with pytest.raises(ValueError, match="feature names should match"):
        MODEL.predict(row.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="order"):
        MODEL.predict(row[list("tabcif")])
    np.testing.assert_array_equal(MODEL.booster_.predict(row[list("tabcif")]), WHOLE[3])
    with pytest.raises(ValueError, match="float64 cannot hold exactly"):
        MODEL.booster_.predict(row.assign(i=2**53 + 1))


@pytest.mark.parametrize("kind", ["category", "int64", "int8"])
def test_categories_of_integers(kind: str) -> None:
    """Integers as categories, of pandas' type or named as such: one row as many
    rows.
    """
    table = pd.DataFrame(
        {"a": TABLE["a"], "k": pd.Series(RNG.integers(-3, 40, N)).astype(kind)}
    )
    y = (TABLE["a"] + table["k"].astype(int) % 3 > 1).astype(int)
    model = sw.SapwoodClassifier(n_estimators=10, categorical_features=["k"]).fit(
        table, y
    )
    whole = model.booster_.predict(table)
    few = model.booster_._few_rows
    for i in range(40):
        row = table.iloc[[i]]
        assert few.read(row) is not None
        assert model.booster_.predict(row)[0] == whole[i]
    for new in (99, 41):
        row = table.iloc[[3]].assign(k=pd.Series([new], [3]).astype(kind))
        both = pd.concat([row] * 100, ignore_index=True)
        assert model.booster_.predict(row)[0] == model.booster_.predict(both)[0]
