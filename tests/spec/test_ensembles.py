"""Dart, forests, parallel trees and pruning by gain against the executable
specification, bit for bit.
"""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.boost.loops import dart
from spec.cases import ENSEMBLES, OBJECTIVES, POLICIES, WEIGHTS
from spec.helpers import assert_bits, assert_trees, labels, table, weight_of
from spec.reference import ensembles

SMALL = {
    "grow_policy": "depthwise",
    "max_depth": 3,
    "learning_rate": 0.3,
    "min_child_weight": 0.0,
    "n_estimators": 7,
}


def assert_specified(
    params: dict[str, Any], objective: str, weights: str, n: int = 150
) -> sapwood.Booster:
    """Core and reference agree on every tree, and on scores; the model, for further
    questions.
    """
    rng = np.random.default_rng(11)
    X = table(rng, n)
    y = labels(rng, X, objective)
    w = weight_of(rng, weights, n)
    given = SMALL | params | {"objective": objective, "seed": 5}
    trees, base, scores = ensembles.train(X, y, given, w)
    settings = {"max_leaves": None, "path_smooth": 0.0, **given}
    booster = sapwood.train(
        settings, sapwood.Dataset(X, y, weight=w, min_samples_bin=1)
    )
    assert_trees(booster, trees, base)
    assert_bits(booster.predict(X, raw=True).reshape(n, -1).T.copy(), scores, "scores")
    return booster


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", ENSEMBLES)
def test_ensembles(kind: str, objective: str) -> None:
    assert_specified(ENSEMBLES[kind], objective, "none")


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_growers_and_weights(policy: str, weights: str) -> None:
    for kind in ("dart_weighted", "forest", "post"):
        assert_specified(ENSEMBLES[kind] | {"grow_policy": policy}, "logistic", weights)


def test_the_kinds_do_what_they_say() -> None:
    """Else their specification would be compared with plain boosting."""
    plain = assert_specified({}, "squared_error", "none")
    for kind, params in ENSEMBLES.items():
        booster = assert_specified(params, "squared_error", "none")
        assert booster.trees.value.tolist() != plain.trees.value.tolist(), kind
    pruned, whole = (
        assert_specified(
            ENSEMBLES["post"] | {"min_split_gain": x}, "squared_error", "none"
        )
        for x in (0.5, 0.0)
    )
    assert pruned.trees.n_nodes < whole.trees.n_nodes


@pytest.mark.parametrize(
    "kind", [kind for kind in ENSEMBLES if kind.startswith("dart")]
)
def test_drops(kind: str) -> None:
    """By themselves, over many rounds and weights."""
    rng = np.random.default_rng(2)
    p = ensembles.DEFAULTS | ENSEMBLES[kind]
    counts = []
    for m in range(60):
        weights = rng.random(m) + 0.01
        got = dart.drop(p | {"random_state": 3}, m, weights).tolist()
        assert got == ensembles.drops(p | {"seed": 3}, m, weights.tolist())
        counts.append(len(got))
    assert max(counts) >= 1 and (p["max_drop"] is None or max(counts) <= p["max_drop"])
