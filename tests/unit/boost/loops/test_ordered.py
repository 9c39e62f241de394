"""Ordered boosting: the reference bit for bit, tails that no value has seen, bytes over
threads and chunks.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood.boost.loops import ordered
from sapwood.boost.round import growth
from sapwood.device import cpu
from sapwood.errors import ParameterError
from sapwood.params import resolve
from spec import reference
from spec.cases import POLICIES, WEIGHTS
from spec.helpers import assert_bits, assert_trees, labels, table, weight_of
from spec.reference import ordered as ordered_spec

Floats = NDArray[np.float64]
SMALL: dict[str, Any] = {
    "n_estimators": 3,
    "max_depth": 3,
    "learning_rate": 0.4,
    "min_samples_bin": 1,
}


def assert_specified(
    X: Floats, y: Floats, params: dict[str, Any], weight: Floats | None = None
) -> None:
    """Core and reference agree on every array of every tree."""
    params = reference.DEFAULTS | SMALL | params
    expected, base = ordered_spec.train(X, y, params, weight)
    kinds = [j for j, n in enumerate(params.get("n_categories", ())) if n]
    data = sapwood.Dataset(X, y, weight, min_samples_bin=1, categorical_features=kinds)
    ours = params | {"boosting": "ordered", "random_state": params["seed"]}
    booster = sapwood.train(
        {
            name: value
            for name, value in ours.items()
            if name not in ("seed", "n_categories")
        },
        data,
    )
    assert_trees(booster, expected, base)
    assert booster.trees.n_nodes > 2 * booster.trees.n_trees


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
@pytest.mark.parametrize("policy", POLICIES)
def test_reference(policy: str, objective: str, weights: str) -> None:
    rng = np.random.default_rng(61)
    X = table(rng, 130)
    assert_specified(
        X,
        labels(rng, X, objective),
        {"grow_policy": policy, "objective": objective},
        weight_of(rng, weights, 130),
    )


@pytest.mark.parametrize(
    "objective",
    ["absolute_error", "poisson", "gamma", "quantile", "huber", "exponential"],
)
def test_other_losses(objective: str) -> None:
    rng = np.random.default_rng(62)
    X = table(rng, 140)
    assert_specified(X, labels(rng, X, objective), {"objective": objective})


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "change",
    [
        {"n_permutations": 3, "n_estimators": 5},
        {"leaf_iterations": 3},
        {"seed": 9},
        {"leaf_estimation": "gradient"},
        {"leaf_estimation": "sign"},
        {"score_function": "cosine"},
        {"precision": "wide"},
        {"hessian": "none"},
        {"score_function": "cosine", "grow_policy": "symmetric"},
        {"max_delta_step": 0.2},
        {"min_child_weight": 2.0},
        {"min_samples_leaf": 9},
        {"reg_alpha": 0.5},
        {"grow_policy": "leafwise", "max_leaves": 6, "max_depth": None},
        {"colsample_bynode": 0.5, "colsample_bylevel": 0.7},
    ],
    ids=str,
)
def test_beside_other_parameters(change: dict[str, Any]) -> None:
    rng = np.random.default_rng(63)
    X = table(rng, 129)
    params = {
        "objective": "logistic",
        "min_child_weight": 0.0,
        "reg_lambda": 0.1,
    } | change
    assert_specified(X, labels(rng, X, "logistic"), params)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_tree_for_all_classes(policy: str) -> None:
    rng = np.random.default_rng(69)
    X = table(rng, 120)
    params = {
        "objective": "softmax",
        "multi_strategy": "multi_output_tree",
        "grow_policy": policy,
    }
    assert_specified(X, labels(rng, X, "softmax"), params | {"min_child_weight": 1.0})


@pytest.mark.parametrize("onehot", [4, 40])
@pytest.mark.parametrize("policy", POLICIES)
def test_sets_of_categories(policy: str, onehot: int) -> None:
    rng = np.random.default_rng(70)
    X = np.c_[rng.permutation(np.arange(700) % 23), rng.normal(size=700)].astype(
        np.float64
    )
    X[rng.random(700) < 0.1, 0] = np.nan
    y = np.sin(np.nan_to_num(X[:, 0], nan=3.0)) + X[:, 1] + rng.normal(size=700)
    params = {
        "grow_policy": policy,
        "max_cat_to_onehot": onehot,
        "min_data_per_group": 5,
        "cat_smooth": 1.0,
    }
    assert_specified(X, y, params | {"n_categories": [23, 0], "n_estimators": 2})


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n: int) -> None:
    X = np.arange(2.0 * n).reshape(n, 2)
    booster = sapwood.train(
        {"boosting": "ordered", "n_estimators": 2}, sapwood.Dataset(X, X[:, 0])
    )
    assert np.isfinite(booster.predict(X)).all()


def test_no_label_reaches_the_score_that_judges_its_row() -> None:
    """Along given trees: a label changes the scores at which later rows are tails, and
    never where its own row is.
    """
    rng = np.random.default_rng(65)
    X = table(rng, 60)
    y = labels(rng, X, "squared_error")
    order = rng.permutation(60)
    trees = reference.train(X, y, SMALL)[0]

    def judged(label: Floats) -> Floats:
        models = ordered_spec.Order(order, np.zeros((1, 60)))

        def mean(
            s: Floats, output: int, rows: Any, leaf: Any, n_leaves: int, learns: Any
        ) -> Floats:
            value = np.zeros(n_leaves)
            np.add.at(value, leaf[learns], (label[rows] - s[output])[learns])
            return value

        for tree in trees:
            models.follow([tree], X, 0.1, mean)
        tails = zip(models.known, models.learnt, models.scores, strict=True)
        # in order, but for the first
        return np.concatenate(
            [s[0, known[len(learnt) :]] for known, learnt, s in tails]
        )

    before = judged(y)
    assert len(before) == 59
    for place, row in enumerate(order):
        changed = y.copy()
        changed[row] += 100.0
        differ = np.flatnonzero(judged(changed) != before)
        assert (differ >= place).all()
        assert place > 25 or len(differ)


def test_held_out_rows_are_in_no_order() -> None:
    rng = np.random.default_rng(66)
    X = table(rng, 300)
    y = labels(rng, X, "logistic")
    weight = (np.arange(300) % 4 > 0).astype(np.float64)
    params = SMALL | {"boosting": "ordered", "objective": "logistic", "has_time": True}
    whole, some = (
        sapwood.Dataset(*rows, min_samples_bin=1)
        for rows in ((X, y, weight), (X[weight > 0], y[weight > 0]))
    )
    params = {
        name: value for name, value in params.items() if name != "min_samples_bin"
    }
    assert_bits(
        sapwood.train(params, whole).trees.value,
        sapwood.train(params, some).trees.value,
        "values",
    )


def test_leaves_of_all_models_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "MAX_LEAVES", 20)
    X = np.arange(200.0)[:, None]
    with pytest.raises(
        ParameterError,
        match=r"has 8 models here, whose trees have 64 leaves; together .* exceed 20",
    ):
        sapwood.train(
            {"boosting": "ordered", "grow_policy": "symmetric"},
            sapwood.Dataset(X, X[:, 0]),
        )


def test_early_stopping_and_validation() -> None:
    rng = np.random.default_rng(67)
    X = table(rng, 400)
    y = labels(rng, X, "logistic")
    params = {
        "boosting": "Ordered",
        "objective": "logistic",
        "n_estimators": 40,
        "early_stopping_rounds": 3,
    }
    booster = sapwood.train(params, sapwood.Dataset(X, y))
    assert booster.best_round is not None and booster.n_rounds == booster.best_round


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_parallel_trees": 2}, "n_parallel_trees=2 is not for boosting='ordered'"),
        ({"line_search": "tree"}, "line_search='tree' is not for boosting='ordered'"),
        ({"extra_trees": True}, "extra_trees=True is not for boosting='ordered'"),
        (
            {"monotone_constraints": {"f0": 1}},
            "monotone_constraints=.* is not for boosting='ordered'",
        ),
        (
            {"first_use_penalties": {"f0": 1.0}},
            "first_use_penalties=.* is not for boosting='ordered'",
        ),
        (
            {"has_time": True, "permutation_count": 4},
            "has_time leaves one order; n_permutations=3",
        ),
        ({"objective": "adaptive_huber"}, "adapts to all rows"),
        (
            {"boosting": "plain", "n_permutations": 2},
            "n_permutations is for boosting='ordered' and",
        ),
        ({"path_smooth": 3.0}, "path_smooth=3 needs leaves of one Newton step, plain"),
    ],
)
def test_refuses(params: dict[str, Any], message: str) -> None:
    rng = np.random.default_rng(68)
    X = rng.normal(size=(3000, 4))
    data = sapwood.Dataset(X, rng.normal(size=3000), max_bins=1000)
    with pytest.raises(ParameterError, match=message):
        sapwood.train({"boosting": "ordered", "n_estimators": 2} | params, data)


@pytest.mark.parametrize(
    ("chunks", "ends", "message"),
    [
        (1, [4, 4, 10], "two entries"),
        (1, [4, 9], "two entries"),
        (1, [4, 2, 6, 10], "sorted"),
        (2, [4, 10], "cannot have these constraints or chunks"),
    ],
)
def test_the_core_refuses(chunks: int, ends: list[int], message: str) -> None:
    y = np.arange(10.0)
    binned = cpu.Binned([[part] for part in np.split(y, chunks)], [y[:-1] + 0.5], 1)
    trainer = cpu.Trainer(binned, y[None], None, "squared_error", {}, 1, 1)
    policy, limits = growth.limits(resolve({}))
    trainer.fill_scores(np.zeros(1))
    trainer.gradients("auto")
    with pytest.raises(ValueError, match=message):
        trainer.grow(policy, limits | {"learning_rate": 1.0}, 0, 0, prefix_ends=ends)
