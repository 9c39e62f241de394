"""Samplers against the executable specification: every sampler, grower and objective,
bit for bit.
"""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.device import host
from spec import reference
from spec.cases import OBJECTIVES, POLICIES, SAMPLERS, WEIGHTS
from spec.helpers import assert_bits, assert_same_model, labels, table, weight_of

each_sampler = pytest.mark.parametrize(
    "sampler", SAMPLERS, ids=lambda one: "-".join(map(str, one.values()))
)


def test_every_sampler_of_the_shelf_is_tried() -> None:
    assert {one.get("sampling", "uniform") for one in SAMPLERS} == set(host.samplers())


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("policy", POLICIES)
@each_sampler
def test_trees(
    sampler: dict[str, Any], policy: str, objective: str, weights: str
) -> None:
    rng = np.random.default_rng(31)
    X = table(rng, 160)
    params = {
        "grow_policy": policy,
        "objective": objective,
        "n_estimators": 3,
    } | sampler
    booster = assert_same_model(
        X, labels(rng, X, objective), params, weight_of(rng, weights, 160)
    )
    assert booster.trees.n_nodes > 3 * booster.trees.n_trees  # trees, not stumps


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "change",
    [
        {"hessian": "none"},
        {"leaf_estimation": "gradient"},
        {"precision": "wide"},
        {"precision": "narrow"},
        {"min_samples_leaf": 9},
        {"leaf_iterations": 3},
        {"line_search": "tree"},
        {"path_smooth": 7.0},
    ],
    ids=str,
)
@each_sampler
def test_beside_other_parameters(
    sampler: dict[str, Any], change: dict[str, Any]
) -> None:
    rng = np.random.default_rng(32)
    X = table(rng, 170)
    for objective, weights in (
        ("logistic", "none"),
        ("squared_error", "whole"),
        ("softmax", "real"),
    ):
        assert_same_model(
            X,
            labels(rng, X, objective),
            {"objective": objective} | sampler | change,
            weight_of(rng, weights, 170),
        )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "objective", ["absolute_error", "poisson", "huber", "exponential"]
)
@each_sampler
def test_other_losses(sampler: dict[str, Any], objective: str) -> None:
    rng = np.random.default_rng(33)
    X = table(rng, 150)
    # |g| is tied in absolute_error
    assert_same_model(X, labels(rng, X, objective), {"objective": objective} | sampler)


@pytest.mark.pairwise(1)
@each_sampler
def test_every_instruction_set(isa: str, sampler: dict[str, Any]) -> None:
    rng = np.random.default_rng(34)
    X = table(rng, 700)  # more than a block
    assert_same_model(
        X, labels(rng, X, "logistic"), {"objective": "logistic"} | sampler
    )


def test_shares_of_classes_and_groups() -> None:
    rng = np.random.default_rng(35)
    X = table(rng, 200)
    y = labels(rng, X, "softmax")
    shares = {
        "subsample": 0.9,
        "subsample_by_class": {0: 0.5, 2: 0.1},
        "subsample_freq": 2,
        "n_estimators": 3,
    }
    assert_same_model(X, y, {"objective": "softmax", **shares})
    group = np.arange(200) // 7
    for sampler in ({"subsample": 0.5}, {"sampling": "bayesian"}):
        params = reference.DEFAULTS | {"max_depth": 3, **sampler}
        expected, _ = reference.train(X, X[:, 0], params | {"group": group})
        data = sapwood.Dataset(X, label=X[:, 0], group=group, min_samples_bin=1)
        booster = sapwood.train(params | {"sampling_unit": "group"}, data)
        assert_bits(
            booster.trees.value,
            np.concatenate([tree["value"] for tree in expected]),
            "values by group",
        )
