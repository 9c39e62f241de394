"""A walk through every path in seconds: what `make tiny` runs, and `make sanitize`
under the sanitizers.

NumPy input only: the allocators of the table libraries and the sanitizers do not live
well together.
"""

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood.device import host
from sapwood.errors import SapwoodError

pytestmark = pytest.mark.tiny

Arrays = tuple[NDArray[np.float64], NDArray[np.float64]]


def table(n_rows: int, n_columns: int = 5, seed: int = 0) -> Arrays:
    """A table with missing values, infinities, ties and a constant column, and a label
    it explains.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(n_rows)
    X[:, 2] = np.round(X[:, 2])
    X[:, 3] = 7.0
    X[rng.random(n_rows) < 0.2, 1] = np.nan
    X[:2, 0] = [np.inf, -np.inf]
    return X, y


@pytest.mark.parametrize("policy", ["depthwise", "leafwise", "symmetric"])
@pytest.mark.parametrize(
    ("objective", "labels"), [("squared_error", 0), ("logistic", 2), ("softmax", 4)]
)
@pytest.mark.parametrize("precision", ["narrow", "wide", "auto"])
def test_every_grower_and_objective_learns(
    policy: str, objective: str, labels: int, precision: str
) -> None:
    X, y = table(600)
    if labels:
        y = np.digitize(y, np.quantile(y, np.arange(1, labels) / labels)).astype(
            np.float64
        )
    params = {
        "objective": objective,
        "grow_policy": policy,
        "precision": precision,
        "n_estimators": 10,
        "max_depth": 4,
    }
    booster = sapwood.train({**params, "n_jobs": 3}, sapwood.Dataset(X, y))
    raw = booster.predict(X)
    if objective == "squared_error":
        assert np.mean((raw - y) ** 2) < 0.7 * np.var(y)
    else:
        picked = raw.argmax(axis=1) if labels > 2 else raw > 0.5
        assert np.mean(picked == y) > np.bincount(y.astype(int)).max() / len(y) + 0.15


@pytest.mark.parametrize("n_columns", [1, 16, 33, 70])
@pytest.mark.parametrize("max_bins", [2, 16, 255, 256, 1000])
def test_every_width_of_table_and_code(n_columns: int, max_bins: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, n_columns)).astype(np.float32)
    data = sapwood.Dataset(X, X[:, -1], max_bins=max_bins)
    booster = sapwood.train(
        {"n_estimators": 2, "max_bins": max_bins, "n_jobs": 2}, data
    )
    assert max(data.binned.codes(j).max() for j in range(n_columns)) < max_bins
    assert np.var(X[:, -1] - booster.predict(X)) < np.var(X[:, -1])


@pytest.mark.parametrize("n_rows", [1, 2, 3, 511, 512, 513, 20_000])
def test_every_number_of_rows(n_rows: int) -> None:
    X = np.arange(3.0 * n_rows).reshape(n_rows, 3)
    booster = sapwood.train(
        {"n_estimators": 3, "min_child_weight": 0, "n_jobs": 4},
        sapwood.Dataset(X, X[:, 0]),
    )
    assert np.isfinite(booster.predict(X, n_jobs=4)).all()
    assert booster.predict_leaves(X).shape == (n_rows, 3)


@pytest.mark.parametrize("weights", ["whole", "real", "huge"])
def test_weights_and_samples(weights: str) -> None:
    X, y = table(800)
    weight = {
        "whole": np.arange(800) % 3,
        "real": np.linspace(0, 1, 800),
        "huge": np.linspace(1, 1e100, 800),
    }[weights]
    sampled = {
        "subsample": 0.5,
        "colsample_bytree": 0.8,
        "colsample_bylevel": 0.8,
        "colsample_bynode": 0.8,
    }
    limits = {
        "min_samples_leaf": 5,
        "reg_alpha": 0.01,
        "max_delta_step": 0.5,
        "min_split_gain": 1e-9,
    }
    data = sapwood.Dataset(X, y, weight=weight.astype(np.float64))
    assert np.isfinite(
        sapwood.train({"n_estimators": 5, **sampled, **limits}, data).predict(X)
    ).all()


@pytest.mark.parametrize(
    "part",
    [
        {"tree_method": "exact"},
        {"sampling": "goss", "learning_rate": 0.5},
        {
            "sampling": "goss",
            "learning_rate": 0.5,
            "max_leaves": 80,
            "precision": "wide",
        },
        {"sampling": "mvs", "subsample": 0.5, "min_samples_leaf": 5},
        {"sampling": "bayesian"},
        {
            "monotone_constraints": {0: 1},
            "grow_policy": "symmetric",
            "max_leaves": None,
        },
        {
            "monotone_constraints": {0: 1, 2: 1},
            "monotone_constraints_method": "intermediate",
        },
        {"interaction_constraints": [[0, 1], [2, 4]]},
        {"extra_trees": True},
        {
            "forced_splits": {
                "feature": 0,
                "threshold": 0.0,
                "right": {"feature": 1, "threshold": 0.5},
            }
        },
        {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
        {"boosting": "forest", "subsample": 0.6},
        {"n_parallel_trees": 2, "subsample": 0.5},
        {"line_search": "tree"},
        {"leaf_iterations": 3, "objective": "huber"},
        {"pruning": "post", "min_split_gain": 0.01},
        {"ccp_alpha": 1e-4},
        {"objective": lambda y, score: (score - y, np.ones_like(score))},
    ],
    ids="-".join,
)
def test_every_part_learns_in_parallel(part: dict[str, Any]) -> None:
    X, y = table(20_000)  # enough for two workers to share every pass
    method = {"tree_method": "exact"} if "tree_method" in part else {}
    data = sapwood.Dataset(X, y, **method)
    params = {"n_estimators": 4, "max_leaves": 15, **part}
    booster = sapwood.train({**params, "n_jobs": 3}, data)
    assert np.mean((booster.predict(X) - y) ** 2) < 0.9 * np.var(y)
    assert (
        sapwood.train({**params, "n_jobs": 1}, data).fingerprint()
        == booster.fingerprint()
    )


@pytest.mark.parametrize("sampling", ["goss", "mvs"])
def test_samplers_know_weights_and_outputs(sampling: str) -> None:
    X, y = table(2000)
    classes = np.digitize(y, [-0.5, 0.5]).astype(np.float64)
    share = {"subsample": 0.5} if sampling == "mvs" else {"learning_rate": 0.5}
    for weight in (np.arange(2000.0) % 3, np.linspace(0, 1, 2000)):
        params = {
            "objective": "softmax",
            "sampling": sampling,
            "n_estimators": 4,
            "n_jobs": 2,
            **share,
        }
        booster = sapwood.train(params, sapwood.Dataset(X, classes, weight=weight))
        assert np.mean(booster.predict(X).argmax(axis=1) == classes) > 0.5


def test_chunks_equal_the_whole() -> None:
    X, y = table(700)
    chunks = [(X[:1], y[:1]), (X[1:300], y[1:300]), (X[300:], y[300:])]
    whole = sapwood.Dataset(X, y)
    parts = sapwood.Dataset.from_chunks(chunks)
    assert whole.fingerprint() == parts.fingerprint()
    params = {"n_estimators": 4, "n_jobs": 2}
    assert (
        sapwood.train(params, whole).fingerprint()
        == sapwood.train(params, parts).fingerprint()
    )


@pytest.mark.parametrize(
    "make",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[:, ::-1].copy()[:, ::-1],
        lambda X: X.astype(">f8"),
        lambda X: X.tolist(),
    ],
)
def test_every_layout_gives_the_same_model(make: Any) -> None:
    X, y = table(300)
    expected = sapwood.train({"n_estimators": 3}, sapwood.Dataset(X, y))
    booster = sapwood.train({"n_estimators": 3}, sapwood.Dataset(make(X), y))
    assert booster.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(booster.predict(make(X)), expected.predict(X))


def test_every_instruction_set_gives_the_same_model() -> None:
    X, y = table(2000)
    prints, outputs, used = set(), [], host.isa()
    try:
        for isa in ("portable", "avx2", "avx512"):
            try:
                host.set_isa(isa)
            except ValueError:  # this machine has not got it
                continue
            booster = sapwood.train(
                {"n_estimators": 4, "n_jobs": 2}, sapwood.Dataset(X, y)
            )
            prints.add(booster.fingerprint())
            outputs.append(booster.predict(X))
    finally:
        host.set_isa(used)
    assert len(prints) == 1
    assert all(np.array_equal(outputs[0], other) for other in outputs)


def test_a_model_goes_out_and_comes_back(tmp_path: Any) -> None:
    X, y = table(400)
    data = sapwood.Dataset(X[:300], y[:300])
    held = (X[300:], y[300:])
    valid = sapwood.Dataset(*held, reference=data)
    booster = sapwood.train(
        {"n_estimators": 30, "early_stopping_rounds": 3}, data, valid=[valid]
    )
    booster.save(tmp_path / "model")
    again = sapwood.load(tmp_path / "model")
    assert (
        again.fingerprint()
        == booster.fingerprint()
        == pickle.loads(pickle.dumps(booster)).fingerprint()
    )
    for one, other in zip(
        booster.staged_predict(held[0]), again.staged_predict(held[0]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    longer = sapwood.train({"n_estimators": 2}, data, init_model=again)
    assert longer.n_rounds == again.n_rounds + 2
    assert "f0" in booster.to_text()


def test_estimators() -> None:
    X, y = table(300)
    assert sapwood.SapwoodRegressor(n_estimators=20).fit(X, y).score(X, y) > 0.5
    words = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    assert (
        sapwood.SapwoodClassifier(n_estimators=20).fit(X, words).score(X, words) > 0.8
    )


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros(3),
        np.zeros((2, 2), complex),
        [[b"a"], [b"b"]],
    ],
)
def test_bad_tables_raise(X: Any) -> None:
    with pytest.raises(SapwoodError):
        sapwood.Dataset(X, np.zeros(len(X)))
