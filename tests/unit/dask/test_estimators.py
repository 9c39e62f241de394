"""The estimators on Dask equal those in memory."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sapwood import SapwoodClassifier, SapwoodRegressor
from sapwood.errors import DataError, ParameterError

distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from sapwood.dask import DaskSapwoodClassifier, DaskSapwoodRegressor  # noqa: E402

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(600, 4)), columns=list("abcd"))
NAMES = pd.Series(np.where(X.a > 0.5, "high", np.where(X.a < -0.5, "low", "middle")))
HOW: dict[str, Any] = {"n_estimators": 5, "max_leaves": 6, "learning_rate": 0.4}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as one,
    ):
        yield one


@pytest.mark.parametrize("names", [["low", "middle", "high"], ["low", "high"]])
def test_classifier(names: list[str], client: Any) -> None:
    rows = NAMES.isin(names)
    table = X[rows].reset_index(drop=True)
    y = NAMES[rows].reset_index(drop=True).sort_values(ignore_index=True)
    own = SapwoodClassifier(quality=None, **HOW).fit(table, y)
    # few classes in each
    X_dask = dd.from_pandas(table, npartitions=4)
    y_dask = dd.from_pandas(y, npartitions=4)
    model = DaskSapwoodClassifier(**HOW).fit(X_dask, y_dask, client=client)
    assert model.booster_.to_bytes() == own.booster_.to_bytes()
    assert model.classes_.tolist() == sorted(names) and model.n_classes_ == len(names)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(model.predict(X_dask).compute(), own.predict(table))
    np.testing.assert_array_equal(
        model.predict_proba(X_dask).compute(), own.predict_proba(table)
    )
    np.testing.assert_array_equal(
        model.decision_function(X_dask).compute(), own.decision_function(table)
    )
    np.testing.assert_array_equal(model.predict(table), own.predict(table))
    assert (
        model.score(X_dask, y_dask, client=client)
        == model.score(table, y)
        == own.score(table, y)
    )
    leaves = model.predict(X_dask, pred_leaf=True).compute()
    np.testing.assert_array_equal(leaves, own.predict(table, pred_leaf=True))
    assert type(model.to_local()) is SapwoodClassifier


def test_regressor_with_validation_rows_and_weights(client: Any) -> None:
    y = X.a * X.b
    w = pd.Series(RNG.integers(1, 3, 600).astype(float))
    how = {**HOW, "n_estimators": 30, "early_stopping_rounds": 2}
    own = SapwoodRegressor(quality=None, **how).fit(
        X[:400], y[:400], w[:400], X_val=X[400:], y_val=y[400:]
    )
    parts = [
        dd.from_pandas(one, npartitions=3)
        for one in (X[:400], y[:400], w[:400], X[400:], y[400:])
    ]
    model = DaskSapwoodRegressor(**how).fit(
        *parts[:3], X_val=parts[3], y_val=parts[4], client=client
    )
    assert model.booster_.to_bytes() == own.booster_.to_bytes()
    assert model.best_iteration_ == own.best_iteration_
    assert model.score(*parts[:3], client=client) == own.score(
        X[:400], y[:400], w[:400]
    )
    given: dict[str, Any] = {
        "eval_metric": "mae",
        "early_stopping_rounds": 2,
        "eval_names": ["mine"],
    }
    own = SapwoodRegressor(quality=None, **HOW).fit(
        X[:400], y[:400], eval_set=[(X[400:], y[400:])], **given
    )
    model = DaskSapwoodRegressor(**HOW).fit(
        *parts[:2], eval_set=[tuple(parts[3:])], client=client, **given
    )
    assert model.booster_.to_bytes() == own.booster_.to_bytes()
    assert model.booster_.history == own.booster_.history and list(
        model.booster_.history["mine"]
    ) == ["mae"]


def test_labels_of_several_columns(client: Any) -> None:
    y = (X[["a", "b"]].to_numpy() > 0).astype(float)
    own = SapwoodClassifier(quality=None, **HOW).fit(X.to_numpy(), y)
    table = da.from_array(X.to_numpy(), chunks=(200, 4))
    model = DaskSapwoodClassifier(**HOW).fit(
        table, da.from_array(y, chunks=(300, 1)), client=client
    )
    assert model.booster_.to_bytes() == own.booster_.to_bytes()
    np.testing.assert_array_equal(
        model.predict(table).compute(), own.predict(X.to_numpy())
    )


def test_an_automatic_fit_is_refused(client: Any) -> None:
    with pytest.raises(ParameterError, match="on Dask a fit is a plain one"):
        DaskSapwoodRegressor(quality="fast").fit(
            dd.from_pandas(X, npartitions=1), dd.from_pandas(X.a, npartitions=1)
        )


def test_wrong_arguments() -> None:
    with pytest.raises(
        ParameterError,
        match=r"client is an argument of fit, not a parameter: fit\(X, y, client=",
    ):
        DaskSapwoodClassifier(client=3)
    with pytest.raises(
        DataError,
        match=r"X is a DataFrame, .*; data in memory is for SapwoodClassifier",
    ):
        DaskSapwoodClassifier().fit(X, NAMES)
    with pytest.raises(TypeError, match="has no argument 'group'"):
        DaskSapwoodRegressor().fit(
            dd.from_pandas(X, npartitions=1),
            dd.from_pandas(X.a, npartitions=1),
            group=3,
        )
