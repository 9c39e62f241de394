"""Tables without rows have predictions of the shape and type that others have; nothing
is learned or judged by them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import sapwood
from sapwood.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + RNG.normal(size=120)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(
    city=RNG.choice(list("uvwxyz"), 120)
)
QUICK: dict[str, Any] = {"n_estimators": 2, "n_jobs": 1}
MODELS: dict[str, Callable[[], Any]] = {
    "numbers": lambda: sapwood.SapwoodRegressor(**QUICK).fit(X, Y),
    "two classes": lambda: sapwood.SapwoodClassifier(**QUICK).fit(X, Y > 0),
    "three classes": lambda: sapwood.SapwoodClassifier(**QUICK).fit(
        X, np.digitize(Y, [-0.5, 0.5])
    ),
    "hinge": lambda: sapwood.SapwoodClassifier(objective="hinge", **QUICK).fit(
        X, Y > 0
    ),
    "a forest": lambda: sapwood.SapwoodRegressor(
        boosting="forest", subsample=0.5, **QUICK
    ).fit(X, Y),
    "linear leaves": lambda: sapwood.SapwoodRegressor(linear_leaves=True, **QUICK).fit(
        X, Y
    ),
    "categories": lambda: sapwood.SapwoodRegressor(**QUICK).fit(FRAME, Y),
    "combinations": lambda: sapwood.SapwoodRegressor(
        recipe="catboost", max_combination=2, **QUICK
    ).fit(FRAME, Y),
}
METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "staged_predict",
    "staged_predict_proba",
    "apply",
)


def tables(model: Any) -> list[Any]:
    """A few rows in every kind of table."""
    if model.n_features_in_ == 4:
        return [
            FRAME[:5],
            FRAME.astype({"city": "category"})[:5],
            pl.from_pandas(FRAME[:5]),
            pa.table(FRAME[:5]),
        ]
    return [
        X[:5],
        X[:5].astype(np.float32),
        scipy.sparse.csr_array(X[:5]),
        scipy.sparse.csc_array(X[:5]),
    ]


def answers(model: Any, table: Any) -> list[Any]:
    """All that there is to predict."""
    booster = model.booster_
    found = [
        getattr(model, method)(table) for method in METHODS if hasattr(model, method)
    ]
    found += [
        booster.predict(table, raw=True),
        booster.predict(table, rounds=1),
        booster.predict_leaves(table),
    ]
    found.append(
        booster.predict(table, init_score=np.zeros((table.shape[0], booster.n_outputs)))
    )
    if not booster.linear:
        found += [
            booster.explain(table).contributions(),
            booster.explain(table, interactions=True).values,
        ]
        other = FRAME[:3] if booster.named else X[:3]
        found.append(booster.explain(table, background=other).values)
        found.append(
            booster.explain(
                table, background=other, space="prediction", exact=True
            ).values
        )
    return [
        array
        for one in found
        for array in ([one] if isinstance(one, np.ndarray) else one)
    ]


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_no_rows_have_no_predictions(make: Callable[[], Any]) -> None:
    model = make()
    for table in tables(model):
        some = answers(model, table)
        none = answers(model, table[:0])
        assert [(len(one), one.shape[1:], one.dtype) for one in none] == [
            (0, one.shape[1:], one.dtype) for one in some
        ]


def test_columns_are_still_looked_at() -> None:
    with pytest.raises(DataError, match="X has 2 features, but Sapwood is expecting 3"):
        MODELS["numbers"]().predict(X[:0, :2])
    with pytest.raises(DataError, match="Missing: 'city'"):
        MODELS["categories"]().booster_.predict(FRAME[:0].drop(columns="city"))


def test_nothing_is_learned_or_judged_by_no_rows() -> None:
    booster = MODELS["numbers"]().booster_
    for call in (
        lambda: sapwood.SapwoodRegressor().fit(X[:0], Y[:0]),
        lambda: sapwood.Dataset(X[:0], Y[:0]),
        lambda: booster.importance("permutation", X=X[:0], y=Y[:0]),
        lambda: booster.partial_dependence(X[:0], 0),
        lambda: booster.explain(X, background=X[:0]),
    ):
        with pytest.raises(DataError, match="0 sample"):
            call()
    with pytest.raises(DataError, match="a mean over rows, and X has none"):
        booster.importance("shap", X=X[:0])
