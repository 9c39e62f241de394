"""Poisson, gamma, Tweedie and quantile loss, held against LightGBM and XGBoost at the same settings.

In: motor policies, hired bicycles, house prices. Out: a loss on unseen rows at most 1 % above the better peer's.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn import metrics

import datasets
import sapwood
from rivals.side_by_side import Array

POWER = 1.5  # of the variance, in Tweedie's loss
LEVEL = 0.9  # of the quantile
ROUNDS = 100
FOLDS = 4
REPEATS = 2  # divisions into folds, for each size of trees: one alone moves a ratio of losses by 1 %

# Trees grow best first, on 255 bins; where a peer has other defaults for penalty and least leaf, it gets ours.
LIGHTGBM = {"lambda_l2": 1.0, "min_sum_hessian_in_leaf": 1.0, "min_data_in_leaf": 1, "num_threads": 1, "verbose": -1}
XGBOOST = {"max_depth": 0, "grow_policy": "lossguide", "max_bin": 255, "nthread": 1}


class Loss(NamedTuple):
    """One loss in the words of the three libraries, and the function that measures it."""

    ours: dict[str, Any]
    lightgbm: dict[str, Any]
    xgboost: dict[str, Any]
    measure: Callable[..., float]


LOSSES = {
    "poisson": Loss(
        {"objective": "poisson"},
        {"objective": "poisson"},
        {"objective": "count:poisson"},
        metrics.mean_poisson_deviance,
    ),
    "gamma": Loss(
        {"objective": "gamma"},
        {"objective": "gamma"},
        {"objective": "reg:gamma"},
        metrics.mean_gamma_deviance,
    ),
    "tweedie": Loss(
        {"objective": "tweedie", "tweedie_power": POWER},
        {"objective": "tweedie", "tweedie_variance_power": POWER},
        {"objective": "reg:tweedie", "tweedie_variance_power": POWER},
        partial(metrics.mean_tweedie_deviance, power=POWER),
    ),
    "quantile": Loss(
        {"objective": "quantile", "quantile_alpha": LEVEL},
        {"objective": "quantile", "alpha": LEVEL},
        {"objective": "reg:quantileerror", "quantile_alpha": LEVEL},
        partial(metrics.mean_pinball_loss, alpha=LEVEL),
    ),
}


class Task(NamedTuple):
    """Something to predict, and settings that are the same everywhere."""

    X: Array
    y: Array
    weight: Array
    learning_rate: float = 0.1
    sizes: tuple[int, ...] = (4, 8, 16)  # most leaves of a tree


def claim_rates() -> Task:
    """Claims a year, weighted by the years of the policy; with more leaves or a higher rate, all lose to a constant."""
    X, claims, _ = datasets.motor_claims()
    return Task(X[:, 1:], claims / X[:, 0], X[:, 0], learning_rate=0.05, sizes=(3, 4, 5))


def bonuses() -> Task:
    """The bonus-malus of a policy, 50 and more: claims have no amounts here, and gamma needs labels above 0."""
    X, _, names = datasets.motor_claims()
    target = names.index("BonusMalus")
    return Task(np.delete(X, target, axis=1), X[:, target], np.ones(len(X)))


def hires() -> Task:
    X, y, _ = datasets.bike_sharing()
    return Task(X, y, np.ones(len(X)))


def prices() -> Task:
    X, y, _ = datasets.california_housing()
    return Task(X, y / 1e5, np.ones(len(X)))


def predict_sapwood(loss: Loss, task: Task, leaves: int, new: Array) -> Array:
    params = {
        "n_estimators": ROUNDS,
        "learning_rate": task.learning_rate,
        "max_leaves": leaves,
        "n_jobs": 1,
        **loss.ours,
    }
    data = sapwood.Dataset(task.X, label=task.y, weight=task.weight, min_samples_bin=1)  # as many bins as the peers
    return sapwood.train(params, data).predict(new)


def predict_lightgbm(loss: Loss, task: Task, leaves: int, new: Array) -> Array:
    params = {**LIGHTGBM, "learning_rate": task.learning_rate, "num_leaves": leaves, **loss.lightgbm}
    return lightgbm.train(params, lightgbm.Dataset(task.X, task.y, weight=task.weight), ROUNDS).predict(new)


def predict_xgboost(loss: Loss, task: Task, leaves: int, new: Array) -> Array:
    params = {**XGBOOST, "learning_rate": task.learning_rate, "max_leaves": leaves, **loss.xgboost}
    data = xgboost.DMatrix(task.X, task.y, weight=task.weight)
    return xgboost.train(params, data, ROUNDS).predict(xgboost.DMatrix(new))


def unseen_loss(predict: Callable[[Loss, Task, int, Array], Array], loss: Loss, task: Task) -> float:
    """The loss on rows that a model has not seen: the geometric mean over sizes of trees and divisions into folds."""
    losses = []
    for seed, leaves in enumerate(task.sizes * REPEATS):
        fold = np.random.default_rng(seed).permutation(len(task.y)) % FOLDS
        predicted = np.empty(len(task.y))
        for test in (fold == which for which in range(FOLDS)):
            seen = task._replace(X=task.X[~test], y=task.y[~test], weight=task.weight[~test])
            predicted[test] = predict(loss, seen, leaves, task.X[test])
        losses.append(loss.measure(task.y, predicted, sample_weight=task.weight))
    return float(np.exp(np.log(losses).mean()))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (claim_rates, "poisson"),
        (claim_rates, "tweedie"),
        (bonuses, "gamma"),
        (bonuses, "quantile"),
        *((data, name) for data in (hires, prices) for name in LOSSES),
    ],
)
def test_loss(data: Callable[[], Task], name: str) -> None:
    task, loss = data(), LOSSES[name]
    ours, *peers = (unseen_loss(one, loss, task) for one in (predict_sapwood, predict_lightgbm, predict_xgboost))
    assert ours <= 1.01 * min(peers), f"{ours:.6g}, where LightGBM and XGBoost have {peers}"
