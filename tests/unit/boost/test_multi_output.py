"""Trees of several outputs with the same splits: that they have them, beside which
parts, and what is refused.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import datasets
import sapwood
from sapwood.boost.round import growth
from sapwood.device import cpu
from sapwood.errors import ParameterError
from sapwood.params import resolve

Floats = NDArray[np.float64]
VECTOR = {
    "multi_strategy": "multi_output_tree",
    "n_estimators": 4,
    "learning_rate": 0.3,
    "max_depth": 4,
}
PARTS: list[dict[str, Any]] = [
    {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
    {"boosting": "forest", "subsample": 0.6, "learning_rate": 1.0},
    {"boosting": "ordered", "grow_policy": "leafwise"},
    {"n_parallel_trees": 2, "subsample": 0.6},
    {"sampling": "goss"},
    {"recipe": "catboost", "learning_rate": 0.3},
    {"recipe": "xgboost"},
    {"objective": "one_vs_all"},
    {"leaf_estimation": "gradient", "leaf_iterations": 2},
    {"line_search": "tree"},
    {"leaf_estimation": "joint", "sampling": "mvs", "subsample": 0.7},
    {"leaf_estimation": "joint", "boosting": "ordered"},
    {"sketch_outputs": 1, "sampling": "mvs", "subsample": 0.7},
    {"sketch_outputs": 2, "boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
    {
        "sketch_outputs": 1,
        "grow_policy": "symmetric",
        "leaf_iterations": 2,
        "subsample": 0.7,
    },
]


def wine(n: int = 600) -> tuple[Floats, Floats]:
    X, y, _ = datasets.wine_quality()
    return X[:n], np.unique(np.clip(y[:n], 4, 7), return_inverse=True)[1].astype(
        np.float64
    )


def same_splits(booster: sapwood.Booster) -> bool:
    """Whether the trees of every round differ in their values only; and there are some
    splits.
    """
    trees = booster.trees
    n = booster.n_outputs
    rounds = [
        [trees.slice(k, k + 1) for k in range(first, first + n)]
        for first in range(0, trees.n_trees, n)
    ]
    alike = [
        all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for name in ("column", "threshold", "left", "count")
        )
        and not np.array_equal(a.value, b.value)
        for a, *others in rounds
        for b in others
    ]
    return all(alike) and trees.n_nodes > 3 * trees.n_trees


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_parts_combine(part: dict[str, Any]) -> None:
    X, y = wine()
    given = {"objective": "softmax"} | VECTOR | part
    data = sapwood.Dataset(X, y, params=given)
    booster = sapwood.train(given, data)
    assert same_splits(booster)
    assert (
        sapwood.train(given | {"n_jobs": 3}, data).fingerprint()
        == booster.fingerprint()
    )
    other = {
        "multi_strategy": "one_tree_per_output",
        "leaf_estimation": "newton",
        "sketch_outputs": None,
    }
    apart = sapwood.train(given | other, data)
    assert not same_splits(apart)


def test_linear_leaves_and_columns_of_labels() -> None:
    X, y = wine()
    both = np.column_stack([y, X[:, 0]])
    booster = sapwood.train(VECTOR, sapwood.Dataset(X[:, 1:], both, linear_leaves=True))
    assert same_splits(booster) and booster.linear
    model = sapwood.SapwoodRegressor(multi_strategy="multi_output_tree").fit(
        X[:, 1:], both
    )
    assert same_splits(model.booster_) and model.score(X[:, 1:], both) > 0.5


def test_statistics_of_categories() -> None:
    X, y = wine()
    text = np.array([f"v{int(k)}" for k in 3 * X[:, 0] % 11], object)
    table = np.column_stack(
        [text, X[:, 1:].astype(object), (X[:, 1] > 0.3).astype(object)]
    )
    data = sapwood.Dataset(
        table, y, categorical_features=[0, X.shape[1]], recipe="catboost"
    )
    given = {"objective": "softmax", "recipe": "catboost"} | VECTOR
    booster = sapwood.train(given, data)
    trees = booster.trees
    for first in range(0, trees.n_trees, booster.n_outputs):
        assert (
            len(
                {
                    trees.slice(k, k + 1).column.tobytes()
                    for k in range(first, first + booster.n_outputs)
                }
            )
            == 1
        )
    onehot = sapwood.train(
        {"objective": "softmax", "category_encoding": "onehot"} | VECTOR, data
    )
    assert same_splits(onehot) and (onehot.trees.set >= 0).any()
    with pytest.raises(ParameterError, match="one by one or by statistics"):
        sapwood.train(
            {"objective": "softmax", "category_encoding": "partition"} | VECTOR, data
        )
    assert same_splits(sapwood.train({"objective": "softmax"} | VECTOR, data))


def test_one_output_is_as_ever() -> None:
    X, y = wine()
    given = {
        "objective": "squared_error",
        "monotone_constraints": {0: 1},
        "n_estimators": 3,
    }
    one, other = (
        sapwood.train(
            given | {"multi_strategy": strategy}, sapwood.Dataset(X, y)
        ).trees.value.tolist()
        for strategy in ("one_tree_per_output", "multi_output_tree")
    )
    assert one == other


@pytest.mark.parametrize(
    "given",
    [{"reg_alpha": 1.0}, {"line_search": "tree"}, {"leaf_iterations": 2}],
    ids=str,
)
def test_joint_values_are_of_one_step(given: dict[str, Any]) -> None:
    X, y = wine()
    with pytest.raises(ParameterError, match="joint"):
        sapwood.train(
            {"objective": "softmax", "leaf_estimation": "joint"} | VECTOR | given,
            sapwood.Dataset(X, y),
        )


@pytest.mark.parametrize(
    "given",
    [
        {"monotone_constraints": {0: 1}, "objective": "multilabel"},
        {"forced_splits": {"feature": 1, "threshold": 0.3}},
        {"ccp_alpha": 0.1},
        {"pruning": "post", "min_split_gain": 0.1},
        {"tree_method": "exact"},
        {"leaf_estimation": "joint", "objective": "one_vs_all"},
        {"leaf_estimation": "joint", "multi_strategy": "one_tree_per_output"},
    ],
    ids=str,
)
def test_refused(given: dict[str, Any]) -> None:
    X, y = wine()
    y = np.column_stack([y > 1, y > 2]) if given.get("objective") == "multilabel" else y
    exact = {"tree_method": "exact"} if "tree_method" in given else {}
    with pytest.raises(ParameterError, match="multi_output_tree"):
        sapwood.train(
            {"objective": "softmax"} | VECTOR | given, sapwood.Dataset(X, y, **exact)
        )


def test_the_core_refuses_too() -> None:
    """What Python keeps from it, so that no model can be wrong in silence."""
    X, y = wine()
    data = sapwood.Dataset(X, y)
    trainer = cpu.Trainer(data.binned, y[None], None, "softmax", {}, 4, 1)
    trainer.fill_scores(trainer.start())
    trainer.gradients("auto", False, False)
    trainer.set_constraints([1] + [0] * (X.shape[1] - 1), False, [], False, [], [])
    policy, limits = growth.limits(resolve({"max_depth": 2}))
    with pytest.raises(ValueError, match="vector leaves"):
        trainer.grow(policy, limits | {"learning_rate": 0.1}, 0, 0, 0.0, True)
