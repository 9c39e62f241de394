"""Dart, forests, parallel trees and pruning by gain against the executable specification, bit for bit."""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.boost.loops import dart
from spec.reference import ensembles as reference_ensembles
from spec.test_trees import OBJECTIVES, POLICIES, WEIGHTS, assert_bits, labels, table, weight_of

SMALL = {"grow_policy": "depthwise", "max_depth": 3, "learning_rate": 0.3, "min_child_weight": 0.0, "n_estimators": 7}
DART = {"boosting": "dart", "rate_drop": 0.4, "skip_drop": 0.2}
KINDS: dict[str, dict[str, Any]] = {
    "dart": DART,
    "dart_weighted": DART | {"sample_type": "weighted", "normalize_type": "paper"},
    "dart_forest": DART | {"normalize_type": "forest", "skip_drop": 0.0},
    "dart_one": DART | {"rate_drop": 0.0, "one_drop": True, "skip_drop": 0.0},
    "dart_one_weighted": DART | {"rate_drop": 0.0, "one_drop": True, "skip_drop": 0.0, "sample_type": "weighted"},
    "dart_most": DART | {"rate_drop": 1.0, "max_drop": 2, "skip_drop": 0.0},
    "dart_parallel": DART | {"n_parallel_trees": 2, "subsample": 0.7},
    "forest": {"boosting": "forest", "learning_rate": 1.0, "subsample": 0.6, "colsample_bynode": 0.7},
    "forest_parallel": {
        "boosting": "forest",
        "learning_rate": 1.0,
        "subsample": 0.6,
        "n_parallel_trees": 3,
        "n_estimators": 2,
    },
    "parallel": {"n_parallel_trees": 3, "subsample": 0.6, "colsample_bytree": 0.7, "n_estimators": 3},
    "post": {"pruning": "post", "min_split_gain": 0.5, "max_depth": 5, "n_estimators": 3},
    "post_dart": DART | {"pruning": "post", "min_split_gain": 0.5, "max_depth": 5, "n_estimators": 4},
}


def assert_same(params: dict[str, Any], objective: str, weights: str, n: int = 150) -> sapwood.Booster:
    """Core and reference agree on every tree, and on scores; the model, for further questions."""
    rng = np.random.default_rng(11)
    X = table(rng, n)
    y, w = labels(rng, X, objective), weight_of(rng, weights, n)
    given = SMALL | params | {"objective": objective, "seed": 5}
    trees, base, scores = reference_ensembles.train(X, y, given, w)
    settings = {"max_leaves": None, "path_smooth": 0.0, **given}
    booster = sapwood.train(settings, sapwood.Dataset(X, y, weight=w, min_samples_bin=1))
    assert_bits(np.asarray(booster.base), base, "start")
    assert booster.trees.n_trees == len(trees)
    for index, expected in enumerate(trees):
        got = booster.trees.slice(index, index + 1)
        for name in ("column", "threshold", "missing_left", "left", "gain", "cover", "count", "value"):
            assert_bits(np.asarray(getattr(got, name)), expected[name], f"tree {index}, {name}")
    assert_bits(booster.predict(X, raw=True).reshape(n, -1).T.copy(), scores, "scores")
    return booster


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_ensembles(kind: str, objective: str) -> None:
    assert_same(KINDS[kind], objective, "none")


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_growers_and_weights(policy: str, weights: str) -> None:
    for kind in ("dart_weighted", "forest", "post"):
        assert_same(KINDS[kind] | {"grow_policy": policy}, "logistic", weights)


def test_the_kinds_do_what_they_say() -> None:
    """Else their specification would be compared with plain boosting."""
    plain = assert_same({}, "squared_error", "none")
    for kind, params in KINDS.items():
        booster = assert_same(params, "squared_error", "none")
        assert booster.trees.value.tolist() != plain.trees.value.tolist(), kind
    pruned, whole = (assert_same(KINDS["post"] | {"min_split_gain": x}, "squared_error", "none") for x in (0.5, 0.0))
    assert pruned.trees.n_nodes < whole.trees.n_nodes


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("dart")])
def test_drops(kind: str) -> None:
    """By themselves, over many rounds and weights."""
    rng = np.random.default_rng(2)
    p = reference_ensembles.DEFAULTS | KINDS[kind]
    counts = []
    for m in range(60):
        weights = rng.random(m) + 0.01
        got = dart.drop(p | {"random_state": 3}, m, weights).tolist()
        assert got == reference_ensembles.drops(p | {"seed": 3}, m, weights.tolist())
        counts.append(len(got))
    assert max(counts) >= 1 and (p["max_drop"] is None or max(counts) <= p["max_drop"])
