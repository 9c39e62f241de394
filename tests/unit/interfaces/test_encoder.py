"""The transformer: scikit-learn's checks, no leak, tables and pipelines."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sapwood import OrderedTargetEncoder
from sapwood.errors import DataError, ParameterError

LEAK = "in fit_transform a row's own label is no part of its value, in transform all labels are"
FAILS = {"check_transformer_general": LEAK, "check_transformer_data_not_an_array": LEAK}


@parametrize_with_checks(
    [OrderedTargetEncoder()], expected_failed_checks=lambda _: FAILS
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Oslo", "Lima", "Rome", None], n),
            "zone": rng.integers(0, 9, n),
        }
    )
    return frame, ((frame["city"] == "Oslo") + rng.random(n) > 0.7).to_numpy()


def test_pandas_polars_and_arrays_agree() -> None:
    X, y = rows()
    encoder = OrderedTargetEncoder(random_state=3)
    first = encoder.fit_transform(X, y)
    assert first.shape == (300, 2)
    assert encoder.get_feature_names_out().tolist() == ["city", "zone"]
    np.testing.assert_array_equal(
        first, OrderedTargetEncoder(random_state=3).fit_transform(pl.from_pandas(X), y)
    )
    np.testing.assert_array_equal(
        first, OrderedTargetEncoder(random_state=3).fit_transform(X.to_numpy(object), y)
    )
    np.testing.assert_array_equal(
        encoder.transform(X), pickle.loads(pickle.dumps(encoder)).transform(X)
    )
    assert len(np.unique(encoder.transform(X)[:, 0])) == 4  # missing is a category
    # the prior
    np.testing.assert_array_equal(
        encoder.transform(X.assign(city="Bern"))[:, 0], np.full(300, 0.5)
    )


def test_fit_transform_leaks_nothing() -> None:
    """A category of its own for every row says everything in transform, and nothing in
    fit_transform.
    """
    y = np.arange(200) % 2
    X = np.arange(200)[:, None]
    encoder = OrderedTargetEncoder()
    np.testing.assert_array_equal(encoder.fit_transform(X, y), np.full((200, 1), 0.5))
    np.testing.assert_array_equal(
        encoder.transform(X)[:, 0], np.where(y == 1, 0.75, 0.25)
    )
    X = np.random.default_rng(1).integers(0, 100, (200, 3))  # noise
    honest = make_pipeline(OrderedTargetEncoder(), LogisticRegression(C=1e6)).fit(X, y)
    assert abs(honest.score(X, y) - 0.5) < abs(
        LogisticRegression(C=1e6)
        .fit(encoder.fit(X, y).transform(X), y)
        .score(encoder.transform(X), y)
        - 0.5
    )


def test_kinds_of_targets() -> None:
    X, _ = rows()
    three = np.arange(300) % 3
    assert OrderedTargetEncoder().fit_transform(X, three).shape == (300, 4)
    assert OrderedTargetEncoder("buckets", (0.1, 0.9)).fit_transform(
        X, three
    ).shape == (300, 12)
    assert OrderedTargetEncoder().fit_transform(X, three + 0.5).shape == (300, 2)
    encoder = OrderedTargetEncoder("borders", target_type="numbers", n_borders=4)
    assert encoder.fit_transform(X, np.arange(300.0)).shape == (300, 8)
    assert encoder.get_feature_names_out().tolist()[:5] == [
        "city_0",
        "city_1",
        "city_2",
        "city_3",
        "zone_0",
    ]


def test_weights_are_rows() -> None:
    X, y = rows(60)
    times = np.arange(60) % 3
    weighted = OrderedTargetEncoder().fit(X, y, sample_weight=times)
    repeated = OrderedTargetEncoder().fit(
        X.loc[np.repeat(np.arange(60), times)], np.repeat(y, times)
    )
    np.testing.assert_array_equal(weighted.transform(X), repeated.transform(X))


def test_in_a_pipeline() -> None:
    X, y = rows()
    assert (
        cross_val_score(
            make_pipeline(OrderedTargetEncoder(), LogisticRegression()), X, y
        ).mean()
        > 0.6
    )


@pytest.mark.parametrize(
    ("encoder", "y", "error", "message"),
    [
        (
            OrderedTargetEncoder("median"),
            [0, 1, 1],
            ParameterError,
            "statistic 'median' is unknown",
        ),
        (
            OrderedTargetEncoder(target_type="numbers"),
            ["a", "b", "b"],
            DataError,
            "choose target_type='classes'",
        ),
        (
            OrderedTargetEncoder(n_borders=0),
            [0.5, 1.5, 2.5],
            ParameterError,
            "n_borders=0 is too small",
        ),
        (OrderedTargetEncoder(priors=(3,)), [0, 1, 1], ParameterError, "from 0 to 1"),
    ],
)
def test_refuses(
    encoder: OrderedTargetEncoder, y: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        encoder.fit(np.array([["a"], ["b"], ["b"]]), y)
