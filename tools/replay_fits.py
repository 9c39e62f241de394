"""Replay tasks of estimators: automatic fits, rankings, survival, distributions,
intervals.

In: nothing. Out: the name of each task, and the model or the predictions that it gives.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.device import host
from sapwood.model.booster import Booster

Floats = NDArray[np.float64]
N_COLUMNS = 6
MANY_ROWS = 1_200
FEW_ROWS = 160
QUALITIES = ("fast", "balanced", "best")
PURPOSE = 99  # of the draws


def uniform(stream: int, n_rows: int) -> Floats:
    """Return numbers in [0, 1) with 20 bits, the same on every machine."""
    bits = host.draw(1, PURPOSE, stream, 0, n_rows) >> np.uint64(44)
    return bits.astype(np.float64) / 2**20


def features(n_rows: int) -> Floats:
    """Return columns of numbers, one of few values and one with missing values."""
    X = np.stack([uniform(j, n_rows) for j in range(N_COLUMNS)], axis=1)
    X[:, 4] = np.floor(5 * X[:, 4])
    X[uniform(20, n_rows) < 0.1, 3] = np.nan
    return X


def signal(X: Floats) -> Floats:
    """Return what labels are made of: interactions, a ratio and a step, from + - * /
    and comparisons alone.
    """
    product_of_two = 8 * (X[:, 0] - 0.4) * (X[:, 1] - 0.6)
    ratio = X[:, 2] / (X[:, 0] + 0.2)
    step = (X[:, 4] > 2) * X[:, 5]
    return product_of_two + ratio + step


def labels(task: str, X: Floats) -> NDArray[Any]:
    """Return the labels of a task."""
    n_rows = len(X)
    noisy = signal(X) + uniform(21, n_rows)
    if task == "regression":
        return noisy
    if task == "two classes":
        return np.where(noisy > 1.8, "yes", "no")
    if task == "clean classes":
        return np.where(X[:, 0] > X[:, 1], "above", "below")
    if task == "four classes":
        return np.digitize(noisy, [1.0, 1.8, 2.6])
    if task == "counts":
        return np.asarray(np.floor(2 * np.abs(noisy)))
    return np.stack([noisy, signal(X) * uniform(22, n_rows)], axis=1)  # two targets


def with_text(X: Floats) -> NDArray[np.object_]:
    """Return the columns with two of categories."""
    table = X.astype(object)
    table[:, 1] = [f"v{int(12 * value)}" for value in X[:, 1]]
    table[:, 5] = [None if value < 0.1 else f"w{int(40 * value)}" for value in X[:, 5]]
    return table


def estimator(task: str, **params: Any) -> Any:
    """Return the estimator of a task."""
    if task == "counts":
        return sapwood.SapwoodRegressor(objective="poisson", **params)
    kind = (
        sapwood.SapwoodClassifier
        if task.endswith("classes")
        else sapwood.SapwoodRegressor
    )
    return kind(**params)


def automatic_fits() -> Iterator[tuple[str, Booster]]:
    """Yield automatic fits of every quality, over tasks and sizes."""
    tasks = ("regression", "two classes", "four classes")
    for quality, task, n_rows in product(QUALITIES, tasks, (FEW_ROWS, MANY_ROWS)):
        X = features(n_rows)
        model = estimator(task, quality=quality).fit(X, labels(task, X))
        yield f"automatic {quality} {task} {n_rows} rows", model.booster_
    X = features(MANY_ROWS)
    for task in ("counts", "clean classes", "two targets"):
        model = estimator(task, quality="balanced").fit(X, labels(task, X))
        yield f"automatic balanced {task}", model.booster_
    for quality in ("fast", "balanced"):
        y = labels("two classes", X)
        model = estimator("two classes", quality=quality).fit(with_text(X), y)
        yield f"automatic {quality} categories", model.booster_
        model = estimator("regression", quality=quality, has_time=True).fit(
            X, labels("regression", X)
        )
        yield f"automatic {quality} time", model.booster_
        weight = np.floor(3 * uniform(23, MANY_ROWS)) + 1
        model = estimator("regression", quality=quality).fit(
            X, labels("regression", X), weight
        )
        yield f"automatic {quality} weights", model.booster_
    group = np.arange(MANY_ROWS) // 10
    model = estimator("regression", quality="fast").fit(
        X, labels("regression", X), group=group
    )
    yield "automatic fast groups", model.booster_


def rankings() -> Iterator[tuple[str, Booster]]:
    """Yield rankings: automatic ones, and one of each loss."""
    X = features(MANY_ROWS)
    y = np.digitize(signal(X) + uniform(24, MANY_ROWS), [1.0, 1.8, 2.6])
    group = np.arange(MANY_ROWS) // 15
    for quality in ("fast", "balanced"):
        yield (
            f"ranking {quality}",
            sapwood.SapwoodRanker(quality=quality).fit(X, y, group=group).booster_,
        )
    for loss in ("lambdarank", "rank_xendcg", "rank:pairwise"):
        model = sapwood.SapwoodRanker(objective=loss, n_estimators=8).fit(
            X, y, group=group
        )
        yield f"ranking {loss}", model.booster_


def survival() -> Iterator[tuple[str, Booster]]:
    """Yield survival models of each kind."""
    X = features(600)
    time = 1 + 4 * np.abs(signal(X)) * (uniform(25, 600) + 0.2)
    event = uniform(26, 600) < 0.7
    for model in ("cox", "aft", "hazard"):
        fitted = sapwood.SapwoodSurvival(model=model, n_estimators=20).fit(
            X, (time, event)
        )
        yield f"survival {model}", fitted.booster_


def distributions() -> Iterator[tuple[str, Booster]]:
    """Yield distributions: the automatic choice of a family, and some families."""
    X = features(600)
    y = labels("regression", X)
    yield (
        "distribution auto",
        sapwood.SapwoodDistribution(n_estimators=40).fit(X, y).booster_,
    )
    for family, label in (
        ("normal", y),
        ("gamma", y + 3.0),
        ("poisson", labels("counts", X)),
    ):
        model = sapwood.SapwoodDistribution(dist=family, n_estimators=20).fit(X, label)
        yield f"distribution {family}", model.booster_


def others() -> Iterator[tuple[str, Booster]]:
    """Yield plain estimators: early stopping, quantiles, linear leaves, a recipe,
    several targets.
    """
    X = features(MANY_ROWS)
    y = labels("regression", X)
    stopped = sapwood.SapwoodRegressor(
        n_estimators=200, early_stopping_rounds=5, validation_fraction=0.2
    )
    yield "estimator early stopping", stopped.fit(X, y).booster_
    given = sapwood.SapwoodRegressor(n_estimators=200, early_stopping_rounds=5)
    yield (
        "estimator validation rows",
        given.fit(X[300:], y[300:], eval_set=[(X[:300], y[:300])]).booster_,
    )
    quantiles = sapwood.SapwoodRegressor(
        objective="quantile", quantile=[0.1, 0.5, 0.9], n_estimators=20
    )
    yield "estimator quantiles", quantiles.fit(X, y).booster_
    for recipe in ("classic", "adaboost", "xgboost", "lightgbm", "catboost"):
        kind = (
            sapwood.SapwoodClassifier
            if recipe == "adaboost"
            else sapwood.SapwoodRegressor
        )
        label = labels("two classes", X) if recipe == "adaboost" else y
        yield (
            f"estimator {recipe}",
            kind(recipe=recipe, n_estimators=10).fit(with_text(X), label).booster_,
        )
    two = labels("two targets", X)
    yield (
        "estimator two targets",
        sapwood.SapwoodRegressor(n_estimators=10).fit(X, two).booster_,
    )


def predictions() -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield what is made of several models: intervals, encoded columns, scores of
    folds.
    """
    X = features(600)
    y = labels("regression", X)
    model = sapwood.SapwoodRegressor(n_estimators=20, conformal="cv+").fit(X, y)
    yield "conformal intervals", np.asarray(model.interval(X))
    table = with_text(X)[:, [1, 5]]
    encoder = sapwood.OrderedTargetEncoder()
    yield "encoder", np.asarray(encoder.fit_transform(table, y))
    scores = sapwood.cv(
        {"n_estimators": 20, "early_stopping_rounds": 3}, sapwood.Dataset(X, y)
    )
    yield "cv", np.array([value for values in scores.values() for value in values])


def models() -> Iterator[tuple[str, Booster]]:
    """Yield every task that gives a model."""
    for tasks in (automatic_fits, rankings, survival, distributions, others):
        yield from tasks()
