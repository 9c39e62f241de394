"""Linear leaves against the executable specification, bit for bit."""

from typing import Any

import numpy as np
import pytest

import sapwood
from spec.cases import LINEAR, OBJECTIVES, POLICIES, WEIGHTS
from spec.helpers import assert_bits, assert_trees, labels, table, weight_of
from spec.reference import linear
from spec.reference.linear import Terms

SMALL = {
    "grow_policy": "depthwise",
    "max_depth": 3,
    "learning_rate": 0.3,
    "min_child_weight": 0.0,
    "n_estimators": 4,
}


def assert_specified(
    X: Any, y: Any, params: dict[str, Any], weight: Any = None
) -> sapwood.Booster:
    """Core and reference agree on every tree, its terms, and scores; the model, for
    further questions.
    """
    given = SMALL | params | {"seed": 5}
    trees, base, scores = linear.train(X, y, given, weight)
    settings = {"max_leaves": None, "path_smooth": 0.0, **given}
    data = sapwood.Dataset(X, y, weight=weight, min_samples_bin=1, linear_leaves=True)
    booster = sapwood.train(settings, data)
    assert_trees(booster, [tree for tree, _ in trees], base)
    for index, (_, terms) in enumerate(trees):
        got = booster.trees.slice(index, index + 1)
        for mine, theirs, name in zip(
            terms_of(got),
            arrays(terms, got.n_nodes),
            ("offset", "column", "coef"),
            strict=True,
        ):
            assert_bits(mine, theirs, f"tree {index}, {name} of terms")
    assert_bits(
        booster.predict(X, raw=True).reshape(len(X), -1).T.copy(), scores, "scores"
    )
    return booster


def terms_of(trees: Any) -> tuple[Any, Any, Any]:
    return arrays({}, trees.n_nodes) if trees.linear is None else trees.linear.terms[:3]


def arrays(terms: Terms, n_nodes: int) -> tuple[Any, Any, Any]:
    """Terms by leaf as flat arrays over the nodes, without bounds."""
    counts = [len(terms[node][0]) if node in terms else 0 for node in range(n_nodes)]
    columns = [column for node in sorted(terms) for column in terms[node][0]]
    coefs = [coef for node in sorted(terms) for coef in terms[node][1]]
    return (
        np.cumsum([0, *counts], dtype=np.int64),
        np.array(columns, np.int32),
        np.array(coefs, np.float64),
    )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", LINEAR)
def test_kinds(kind: str, objective: str) -> None:
    rng = np.random.default_rng(11)
    X = table(rng, 150)
    booster = assert_specified(
        X, labels(rng, X, objective), LINEAR[kind] | {"objective": objective}
    )
    assert booster.linear


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_growers_and_weights(policy: str, weights: str) -> None:
    rng = np.random.default_rng(12)
    X = table(rng, 150)
    y = labels(rng, X, "logistic")
    w = weight_of(rng, weights, 150)
    for kind in (
        "plain",
        "lightgbm",
        "goss",
        "standard",
        "standard_free",
        "standard_goss",
    ):
        assert assert_specified(
            X, y, LINEAR[kind] | {"grow_policy": policy, "objective": "logistic"}, w
        ).linear


def test_columns_of_every_size() -> None:
    """Values near the ends of float64, columns that say the same, infinities: terms are
    finite, or there are none.
    """
    rng = np.random.default_rng(13)
    x = rng.normal(size=200)
    X = np.column_stack(
        [
            x * 1e300,
            x * 1e-300,
            rng.normal(size=200) + 1e9,
            x,
            2 * x,
            np.where(rng.random(200) < 0.1, np.inf, x),
            np.sign(x) * 5e-324,
            rng.integers(0, 2, 200) * 1.7e308 * np.sign(x),
        ]
    )
    y = x + X[:, 2] - 1e9 + rng.normal(size=200)
    raw = ({}, {"linear_smooth": 0.0}, {"linear_smooth": 0.0, "linear_lambda": 1e-3})
    for params in (*raw, *(one | {"linear_units": "standard"} for one in raw)):
        booster = assert_specified(X, y, {"max_depth": 5, "n_estimators": 6, **params})
        assert booster.linear
        assert np.isfinite(booster.predict(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_values_are_kept_in_their_own_width(dtype: Any) -> None:
    """4 bytes a value where that loses nothing, and the same model."""
    X = np.random.default_rng(14).integers(-100, 100, (200, 3))
    y = X[:, 0] + 0.1 * X[:, 1] ** 2
    narrow, wide = (
        sapwood.Dataset(X.astype(kind), y, linear_leaves=True)
        for kind in (dtype, np.float64)
    )
    assert narrow.values is not None and narrow.values.dtype == np.float32
    assert wide.values is not None and wide.values.dtype == np.float64
    assert narrow.fingerprint() == wide.fingerprint()
    models = [sapwood.train({"n_estimators": 5}, data) for data in (narrow, wide)]
    assert models[0].linear and models[0].to_bytes() == models[1].to_bytes()
