"""What users see beside predictions, as hashes: tests/law/test_machines.py runs it as
if on several machines.

In: nothing. Out: a JSON object on standard output, the SHA-256 of every output by its
name.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sapwood as sw
from sapwood import metric
from sapwood.objective.distributions import FAMILIES, Distribution, family_of
from sapwood.report.scores import scores

Floats = NDArray[np.float64]
Outputs = Iterator[tuple[str, Any]]
N_ROWS = 400
SMALL = {"n_estimators": 12, "max_leaves": 8, "min_samples_leaf": 5}
LEVELS = [0.01, 0.1, 0.37, 0.5, 0.9, 0.999]
# Crosses of columns by positions; column 5 has categories.
CROSSES = [
    ("difference", 0, 1),
    ("product", 0, 2),
    ("product", 1, 3),
    ("centred", 0, 5),
    ("centred", 2, 5),
]


def table(seed: int, n_rows: int = N_ROWS) -> Floats:
    """Rows of five numbers and of one column of categories."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1000, 1000, (n_rows, 6)) / 256.0
    X[:, 5] = rng.integers(0, 7, n_rows)
    return X


def signal(X: Floats) -> Floats:
    """A function of the columns that crosses help with, without a function of libm."""
    return X[:, 0] * X[:, 2] + (X[:, 0] - X[:, 1]) * (X[:, 1] > 0) + X[:, 5] * X[:, 2]


def explanations() -> Outputs:
    """Explanations, effects and importances of a model whose trees split crosses."""
    X = table(1)
    y = signal(X)
    data = (
        sw.Dataset(X, y, categorical_features=[5], linear_leaves=True)
        .with_crosses(CROSSES)
        .without_values()
    )
    booster = sw.train({**SMALL, "n_estimators": 40}, data)
    assert (booster.trees.column >= 6).any()
    few = X[:40]
    yield "model with crosses", booster.to_bytes()
    yield "explain", booster.explain(few).values
    yield "explain, interactions", booster.explain(few, interactions=True).values
    against = booster.explain(few, background=X[:20])
    yield "explain, background", (against.values, against.base_values)
    yield (
        "explain, background and interactions",
        booster.explain(few, background=X[:9], interactions=True).values,
    )
    for kind in ("total_gain", "gain", "weight"):
        yield f"importance {kind}", booster.importance(kind)
    yield "importance shap", booster.importance("shap", X=few)
    yield "importance permutation", booster.importance("permutation", X=X, y=y)
    effect = booster.accumulated_effects(X, 0)
    yield "accumulated effects", effect.values


def classes() -> Outputs:
    """Logarithms of probabilities, losses and standard errors of classifiers."""
    X = table(2, n_rows=4000)
    value = signal(X)
    for n_classes in (2, 3):
        y = np.digitize(value, np.linspace(-4, 4, n_classes + 1)[1:-1])
        model = sw.SapwoodClassifier(**SMALL).fit(X, y)
        p = model.predict_proba(X)
        yield f"predict_log_proba, {n_classes} classes", model.predict_log_proba(X)
        yield (
            f"logloss, {n_classes} classes",
            metric.logloss(y.astype(float), p[:, 1] if n_classes == 2 else p, None),
        )
    binary = sw.SapwoodClassifier(**SMALL).fit(X, value > 0).booster_
    prediction = binary.predict(X)
    label = (value > 0) * 1.0
    names = ("logloss", "brier", "auc", "average_precision", "mcc", "kappa", "f1")
    for score in scores(binary, label, prediction, names):
        yield f"metric {score.name}", (score.value, score.low, score.high)


def values() -> Outputs:
    """Quantiles and intervals of regressions, and metrics of values."""
    X = table(3)
    y = signal(X)
    several = sw.SapwoodRegressor(
        **SMALL, quantiles=[0.1, 0.5, 0.9], conformal="split"
    ).fit(X, y)
    yield "quantiles", several.predict(X)
    yield "interval", several.interval(X, 0.8)
    positive = y - y.min() + 0.5
    model = sw.SapwoodRegressor(**SMALL, objective="gamma").fit(X, positive)
    prediction = model.predict(X)
    for name in (
        "rmse",
        "mae",
        "mape",
        "smape",
        "r2",
        "rmsle",
        "poisson",
        "gamma",
        "tweedie@1.3",
        "huber@0.7",
    ):
        (one,) = metric.resolve(name, default=None, link=None)
        yield f"metric {name}", one(positive, prediction, None)


def survival() -> Outputs:
    """Curves, hazards and quantiles of survival models."""
    X = table(4, n_rows=3000)
    time = np.abs(signal(X)) + 0.25
    event = np.arange(len(X)) % 3 > 0
    label = time, event
    at = np.linspace(0.5, 20, 9)
    kinds: list[dict[str, Any]] = [{"model": "cox"}, {"model": "hazard"}]
    kinds += [
        {"model": "aft", "dist": dist} for dist in ("normal", "logistic", "extreme")
    ]
    for kind in kinds:
        model = sw.SapwoodSurvival(**kind, n_estimators=60, max_leaves=6).fit(X, label)
        name = " ".join(kind.values())
        curve = model.predict_survival_function(X, at)
        yield f"{name}: model", model.booster_.to_bytes()
        yield f"{name}: risk", model.predict(X)
        yield f"{name}: survival", curve
        yield f"{name}: hazard", model.predict_cumulative_hazard(X, at)
        yield f"{name}: incidence", model.predict_cumulative_incidence(X, at)
        yield f"{name}: quantiles", model.predict_quantile(X, [0.01, 0.3, 0.5, 0.8])
        yield f"{name}: brier", metric.brier_survival(label, time, event, curve, at)


def distributions() -> Outputs:
    """All that a predicted distribution of every family says."""
    rng = np.random.default_rng(5)
    for name in FAMILIES:
        family = family_of(name)
        parameters = rng.integers(-1500, 1500, (60, family.n_outputs)) / 1024.0
        dist = Distribution(family, parameters)
        inside = np.arange(1.0, 61.0) if family.discrete else np.arange(1, 61) / 64.0
        yield f"{name}: logpdf", dist.logpdf(inside)
        yield f"{name}: pdf", dist.pdf(inside)
        yield f"{name}: mean, std", (dist.mean(), dist.std())
        yield f"{name}: nll", metric.nll(inside, dist)
        yield f"{name}: cdf", dist.cdf(inside)
        yield f"{name}: pit", dist.pit(inside)
        yield f"{name}: ppf", dist.quantile(LEVELS)
        yield f"{name}: interval", dist.interval(0.9)
        yield f"{name}: sample", dist.sample(3, seed=1)
        yield f"{name}: crps", dist[:4].crps(inside[:4])
    X = table(6)
    y = signal(X)
    model = sw.SapwoodDistribution("normal", n_estimators=8).fit(X, y)
    yield "distribution: model", model.booster_.to_bytes()
    yield "distribution: interval", model.interval(X, 0.9)


def hashed(output: Any) -> str:
    """The SHA-256 of bytes, of numbers, or of several of these."""
    if isinstance(output, tuple):
        return sha256("".join(map(hashed, output)).encode()).hexdigest()
    if isinstance(output, dict):
        return hashed(tuple(output.values()))
    return sha256(
        output
        if isinstance(output, bytes)
        else np.asarray(output, np.float64).tobytes()
    ).hexdigest()


def main() -> None:
    """Print the hash of every output."""
    warnings.simplefilter("ignore")
    found = {}
    for part in (explanations, classes, values, survival, distributions):
        for name, output in part():
            found[f"{part.__name__}: {name}"] = hashed(output)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
