"""Rows dealt to several holders give the dataset that one holder of all rows has: cuts,
codes, categories, digest.
"""

import numpy as np
import pytest

import sapwood
from law import holders
from sapwood.data import dealt
from sapwood.errors import DataError, ParameterError

N = 3_000


def numbers(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1] * 2)  # few values
    X[:, 2] = np.round(X[:, 2] * 90)  # about as many as there are bins
    X[:, 3][rng.random(n) < 0.95] = 0.0  # listed in files
    X[rng.random(n) < 0.2, 4] = np.nan
    X[: n // 5, 0] = 7.0  # the first holder does not see what the others do
    return X


def frame(n=N):
    import pandas as pd

    rng = np.random.default_rng(1)
    text = rng.choice(["a", "b", "cc", "d", None], n, p=[0.1, 0.3, 0.3, 0.2, 0.1])
    # no holder of the first half sees text
    late = np.where(np.arange(n) < n // 2, None, rng.choice(["x", "y"], n))
    return pd.DataFrame(
        {
            "text": text,
            "late": late,
            "whole": rng.integers(0, 30, n),
            "real": rng.normal(size=n),
        }
    )


def sparse(n=N):
    from scipy.sparse import random_array

    return random_array((n, 40), density=0.03, rng=np.random.default_rng(2)).tocsr()


WEIGHTS = {
    "none": lambda n: None,
    "whole": lambda n: (np.arange(n) % 4).astype(float),
    "zero and one": lambda n: (np.arange(n) % 3 > 0).astype(float),
    "real": lambda n: np.random.default_rng(3).random(n) * (np.arange(n) % 5 > 0),
}


def chunks_of(rank, size, n, n_chunks=2):
    """Slices of the chunks of a holder; chunks of holders take turns, so that no holder
    has consecutive rows.
    """
    return holders.deal(n, size * n_chunks)[rank::size]


def rows_of(table, rows):
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def dealt_to(size, X, y, w, **arguments):
    """(dataset, its fingerprint) of every holder."""

    def hold(holder):
        parts = chunks_of(holder.rank, size, len(y))
        chunks = [(rows_of(X, p), y[p], None if w is None else w[p]) for p in parts]
        data = sapwood.Dataset.dealt(
            chunks, holder, [p.start for p in parts], n_jobs=2, **arguments
        )
        return data, data.fingerprint()

    return holders.run(size, hold)


def assert_same(whole, parts):
    assert all(digest == whole.fingerprint() for _, digest in parts)
    for data, _ in parts:
        assert data.n_total == whole.n_rows
        assert data.categories == whole.categories
        assert data.n_bins == whole.n_bins
        for own, all_rows in zip(data.cuts, whole.cuts, strict=True):
            assert own.tobytes() == all_rows.tobytes()
        for j in range(whole.n_columns):
            assert (
                data.binned.codes(j) == whole.binned.codes(j)[data.global_rows]
            ).all()
        assert (data.label == whole.label[data.global_rows]).all()
    rows = np.sort(np.concatenate([data.global_rows for data, _ in parts]))
    assert (rows == np.arange(whole.n_rows)).all()


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("table", [numbers, frame, sparse])
def test_equal(table, weight, size):
    X = table()
    y = np.arange(N) % 2.0
    w = WEIGHTS[weight](N)
    assert_same(sapwood.Dataset(X, y, w), dealt_to(size, X, y, w))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_sampled_rows(weight):
    n = 450_000
    X = numbers(n)[:, [0, 4]]
    y = np.zeros(n)
    w = WEIGHTS[weight](n)
    assert_same(sapwood.Dataset(X, y, w), dealt_to(3, X, y, w))


def test_digests_of_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(dealt, "BLOCK_ROWS", 700)  # chunks begin and end inside blocks
    X = frame()
    y = np.arange(N) % 2.0
    w = WEIGHTS["real"](N)
    assert_same(sapwood.Dataset(X, y, w), dealt_to(3, X, y, w))


@pytest.mark.parametrize(
    "label", [[0.0, 1.0], [0.5], [1e9, 3.0, -2.0], [np.nan, 1.0], [0.0, 5.0]]
)
@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
def test_checks_of_labels(label, objective, monkeypatch):
    """They say of dealt labels what they say of all: from few of them, or in words
    about a row of all.
    """
    monkeypatch.setattr(dealt, "MAX_DISTINCT", 4)
    y = np.arange(N) % 2.0 if objective != "squared_error" else np.sqrt(np.arange(N))
    y[1500 : 1500 + len(label)] = label

    def said(data):
        try:
            return sapwood.train(
                {"objective": objective, "n_estimators": 1, "max_leaves": 2}, data
            ).to_bytes()
        except DataError as error:
            return str(error)

    def hold(holder):
        own = holders.deal(N, 3)[holder.rank]
        return said(sapwood.Dataset.dealt([(X[own], y[own])], holder, [own.start]))

    X = numbers()[:, :2]
    try:
        whole = said(sapwood.Dataset(X, y))
    except DataError as error:  # a label that is not finite
        with pytest.raises(DataError, match="label"):
            holders.run(3, hold)
        assert "label" in str(error)
    else:
        assert holders.run(3, hold) == [whole] * 3


def test_values_of_linear_leaves():
    X = numbers()
    y = np.arange(N) % 2.0
    parts = dealt_to(3, X.astype(np.float32), y, None, linear_leaves=True)
    assert_same(sapwood.Dataset(X.astype(np.float32), y, linear_leaves=True), parts)
    assert all(data.values.dtype == np.float32 for data, _ in parts)


def test_reference_and_unseen():
    X = frame()
    y = np.arange(N) % 2.0
    reference = sapwood.Dataset(X[X.text != "d"], y[X.text != "d"])
    parts = dealt_to(3, X, y, None, reference=reference)
    whole = sapwood.Dataset(X, y, reference=reference)
    assert_same(whole, parts)
    found = np.sort(
        np.concatenate([data.global_rows[data.unseen[0]] for data, _ in parts])
    )
    assert (found == whole.unseen[0]).all()


@pytest.mark.parametrize("table", [numbers, frame, sparse])
def test_holder_without_rows(table):
    X, y, w = table(), np.arange(N) % 2.0, WEIGHTS["real"](N)

    def hold(holder):
        own = [slice(0, 0), slice(0, 1_000), slice(1_000, N)][holder.rank]
        chunk = (rows_of(X, own), y[own], w[own])
        data = sapwood.Dataset.dealt([chunk], holder, [own.start])
        return data, data.fingerprint()

    assert_same(sapwood.Dataset(X, y, w), holders.run(3, hold))


def test_names_of_the_first_holder():
    X, y = frame(), np.zeros(N)

    def hold(holder):
        own = holders.deal(N, 2)[holder.rank]
        table = X.iloc[own]
        data = sapwood.Dataset.dealt(
            [(table if not holder.rank else table[X.columns[::-1]], y[own])],
            holder,
            [own.start],
        )
        return data, data.fingerprint()

    assert_same(sapwood.Dataset(X, y), holders.run(2, hold))


def refused(error, match, size=2, **arguments):
    X, y = numbers(20), np.zeros(20)

    def hold(holder):
        own = holders.deal(20, size)[holder.rank]
        given = {
            name: value(holder) if callable(value) else value
            for name, value in arguments.items()
        }
        return sapwood.Dataset.dealt([(X[own], y[own])], holder, [own.start], **given)

    with pytest.raises(error, match=match):
        holders.run(size, hold)


def test_refusals():
    refused(ParameterError, "exact", tree_method="exact")
    refused(DataError, "group", group=[0] * 10)
    refused(DataError, "differ in parameters", max_bins=lambda holder: 10 + holder.rank)
    with pytest.raises(DataError, match="weight of all rows is zero"):
        dealt_to(2, numbers(), np.zeros(N), np.zeros(N))
    with pytest.raises(DataError, match="cannot be saved"):
        dealt_to(2, numbers(), np.zeros(N), None)[0][0].save("never.sapwood")
    with pytest.raises(DataError, match="begins at row"):
        holders.run(2, lambda holder: dealt.Order.of(holder, [0], [5]))
