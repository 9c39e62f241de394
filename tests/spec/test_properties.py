"""Laws of the model over random tables: repetition, order, monotone transforms,
constant columns, more rounds.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from sapwood import Booster, Dataset

Floats = NDArray[np.float64]

few = settings(max_examples=examples(60))
objectives = st.sampled_from(["squared_error", "logistic", "softmax"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[Floats, Floats, dict[str, Any]]:
    """A table of up to five columns with ties and missing values, labels that depend on
    it, and parameters.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(8, 120))
    width = draw(st.integers(1, 5))
    X = rng.normal(size=(n, width))
    ties = draw(st.integers(0, width))
    missing = draw(st.integers(0, width))
    X[:, :ties] = np.round(2 * X[:, :ties])
    X[:, missing:] = np.where(
        rng.random((n, width - missing)) < 0.2, np.nan, X[:, missing:]
    )
    y = np.nan_to_num(X, nan=1.5).sum(axis=1) + 0.3 * rng.normal(size=n)
    objective = draw(objectives)
    if objective != "squared_error":
        n_classes = 2 if objective == "logistic" else 3
        y = np.searchsorted(
            np.quantile(y, np.arange(1, n_classes) / n_classes), y
        ).astype(np.float64)
        y[:n_classes] = np.arange(n_classes)
    params = {
        "objective": objective,
        "n_estimators": 4,
        "learning_rate": draw(st.sampled_from([0.1, 0.3])),
        "grow_policy": draw(st.sampled_from(["depthwise", "leafwise", "symmetric"])),
        "precision": draw(st.sampled_from(["auto", "narrow", "wide"])),
        "max_depth": draw(st.integers(1, 5)),
        "max_bins": draw(st.sampled_from([4, 20, 255])),
        "min_samples_leaf": draw(st.sampled_from([1, 5])),
        "min_child_weight": draw(st.sampled_from([0.0, 1.0])),
        "n_jobs": 1,
    }
    return X, y, params


def fit(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> Booster:
    n_classes = {"n_classes": 3} if params["objective"] == "softmax" else {}
    data = Dataset(X, label=y, weight=weight, max_bins=params["max_bins"], n_jobs=1)
    return sapwood.train(params | n_classes, data)


def forest(booster: Booster) -> list[bytes]:
    """Every array of the trees, and the start scores."""
    names = (
        "offset",
        "output",
        "column",
        "threshold",
        "missing_left",
        "left",
        "value",
        "gain",
        "cover",
        "count",
    )
    return [getattr(booster.trees, name).tobytes() for name in names] + [
        booster.base.tobytes()
    ]


@few
@given(tables(), st.data())
def test_a_weight_is_a_repetition(
    task: tuple[Floats, Floats, dict[str, Any]], data: st.DataObject
) -> None:
    X, y, params = task
    times = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)))
    )
    times[:3] += 1  # every class keeps a row
    rows = np.repeat(np.arange(len(y)), times)
    assert forest(fit(X, y, params, times.astype(float))) == forest(
        fit(X[rows], y[rows], params)
    )


@few
@given(tables(), st.data())
def test_rows_of_weight_zero_are_nowhere(
    task: tuple[Floats, Floats, dict[str, Any]], data: st.DataObject
) -> None:
    X, y, params = task
    keep = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y)))
    )
    keep[:3] = True
    for w in (np.ones(len(y)), np.linspace(0.1, 2.3, len(y))):  # whole and real weights
        kept = fit(X[keep], y[keep], params, w[keep])
        assert forest(fit(X, y, params, np.where(keep, w, 0.0))) == forest(kept)


@few
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(
    task: tuple[Floats, Floats, dict[str, Any]], random: Any
) -> None:
    X, y, params = task
    order = random.sample(range(len(y)), len(y))
    assert forest(fit(X, y, params)) == forest(fit(X[order], y[order], params))


@few
@given(tables(), st.data())
def test_a_monotone_transform_keeps_the_partitions(
    task: tuple[Floats, Floats, dict[str, Any]], data: st.DataObject
) -> None:
    X, y, params = task
    column = data.draw(st.integers(0, X.shape[1] - 1))
    transform = data.draw(
        st.sampled_from([np.exp, np.arctan, lambda x: x**3, lambda x: 1e9 * x - 3])
    )
    other = X.copy()
    other[:, column] = transform(X[:, column])
    # rounding merged no values
    assume(np.unique(other[:, column]).size == np.unique(X[:, column]).size)
    plain = fit(X, y, params)
    moved = fit(other, y, params)
    assert np.array_equal(plain.predict_leaves(X), moved.predict_leaves(other))
    assert plain.trees.value.tobytes() == moved.trees.value.tobytes()


@few
@given(tables(), st.data())
def test_a_constant_column_changes_nothing(
    task: tuple[Floats, Floats, dict[str, Any]], data: st.DataObject
) -> None:
    X, y, params = task
    at = data.draw(st.integers(0, X.shape[1]))
    plain = fit(X, y, params)
    wider = fit(np.insert(X, at, 3.25, axis=1), y, params)
    moved = np.where(
        plain.trees.column >= at, plain.trees.column + 1, plain.trees.column
    )
    assert np.array_equal(wider.trees.column, moved)
    assert wider.trees.threshold.tobytes() == plain.trees.threshold.tobytes()
    assert wider.trees.value.tobytes() == plain.trees.value.tobytes()


def loss(objective: str, y: Floats, prediction: Floats) -> float:
    """The training loss, of predictions and not of raw scores."""
    if objective == "squared_error":
        return float(np.mean((prediction - y) ** 2))
    chosen = (
        np.where(y == 1, prediction, 1 - prediction)
        if objective == "logistic"
        else prediction[np.arange(len(y)), y.astype(int)]
    )
    return float(-np.mean(np.log(chosen)))


@few
@given(tables())
def test_the_training_loss_falls(task: tuple[Floats, Floats, dict[str, Any]]) -> None:
    X, y, params = task
    booster = fit(X, y, params)
    losses = [
        loss(params["objective"], y, prediction)
        for prediction in booster.staged_predict(X)
    ]
    assert len(losses) == 4
    for round, (before, after) in enumerate(pairwise(losses), start=1):
        nodes = slice(
            *booster.trees.offset[booster.n_outputs * np.array([round, round + 1])]
        )
        if np.any(booster.trees.column[nodes] >= 0):
            assert after < before
        else:
            # nothing was worth a split: a constant that has converged moves by rounding
            # only
            assert after <= before * (1 + 1e-12)


@few
@given(tables(), st.sampled_from([1.0, 0.7]))
def test_ten_and_ten_rounds_are_twenty(
    task: tuple[Floats, Floats, dict[str, Any]], fraction: float
) -> None:
    X, y, params = task
    params = params | {
        "subsample": fraction,
        "colsample_bynode": fraction,
        "n_classes": 3 if params["objective"] == "softmax" else None,
    }
    data = Dataset(X, label=y, max_bins=params["max_bins"], n_jobs=1)
    whole = sapwood.train(params | {"n_estimators": 20}, data)
    half = sapwood.train(params | {"n_estimators": 10}, data)
    assert half.n_rounds == 10
    both = sapwood.train(params | {"n_estimators": 10}, data, init_model=half)
    assert forest(both) == forest(whole)
    assert both.fingerprint() == whole.fingerprint()
