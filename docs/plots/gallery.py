"""The pictures of docs/plotting.md, from real tables of the tests.

In: the tables of `tests/datasets.py`. Out: `gallery.png`, `gallery_more.png` and
`tree.png` beside this file.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import sapwood as sw

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import datasets  # noqa: E402


def classifier() -> None:
    """Eight plots of a model for the census data."""
    X, y, names = datasets.adult()
    rows = np.random.default_rng(0).permutation(len(y))
    fit = rows[:1300]
    test = rows[1300:]
    settings = {
        "n_estimators": 200,
        "learning_rate": 0.05,
        "max_depth": 4,
        "early_stopping_rounds": 25,
    }
    data = sw.Dataset(X[fit], y[fit], feature_names=list(names))
    sets = {"training": data, "test": sw.Dataset(X[test], y[test], reference=data)}
    booster = sw.train({"objective": "logistic", **settings}, data, valid=sets)
    told = booster.explain(X[test])
    figure, axes = plt.subplots(4, 2, figsize=(12, 17), layout="constrained")
    sw.plot.learning_curve(booster, ax=axes[0, 0])
    sw.plot.importance(booster, "shap", X[test], max_columns=10, ax=axes[0, 1])
    sw.plot.beeswarm(told, max_columns=9, ax=axes[1, 0])
    sw.plot.waterfall(told, 5, max_columns=7, ax=axes[1, 1])
    sw.plot.dependence(told, "age", ax=axes[2, 0])
    sw.plot.partial_dependence(booster, X[test], "age", ax=axes[2, 1])
    sw.plot.calibration(booster, X[test], y[test], ax=axes[3, 0])
    sw.plot.precision_recall(booster, X[test], y[test], ax=axes[3, 1])
    figure.savefig(HERE / "gallery.png", dpi=62)


def others() -> None:
    """Six plots of numbers, classes and categories: house prices, letters, rented
    bikes.
    """
    figure, axes = plt.subplots(3, 2, figsize=(12, 14), layout="constrained")
    X, y, names = datasets.california_housing()
    data = sw.Dataset(X[:1400], y[:1400], feature_names=list(names))
    houses = sw.train({"max_leaves": 15}, data)
    sw.plot.residuals(houses, X[1400:], y[1400:], ax=axes[0, 0])
    sw.plot.predicted_actual(houses, X[1400:], y[1400:], ax=axes[0, 1])
    sw.plot.interactions(
        houses.explain(X[1400:1600], interactions=True), max_columns=6, ax=axes[1, 0]
    )
    X, y, names = datasets.bike_sharing()
    data = sw.Dataset(X, y, feature_names=list(names), categorical_features=["hr"])
    bikes = sw.train({"objective": "poisson"}, data)
    sw.plot.category_effects(bikes, X, "hr", y=y, max_categories=24, ax=axes[1, 1])
    X, y, _ = datasets.letter()
    letters = sw.SapwoodClassifier(n_estimators=40).fit(
        X[:1400, :], [chr(65 + int(k)) for k in y[:1400]]
    )
    truth = [chr(65 + int(k)) for k in y[1400:]]
    sw.plot.confusion_matrix(letters, X[1400:], truth, ax=axes[2, 0])
    sw.plot.roc(letters, X[1400:], truth, output="B", ax=axes[2, 1])
    figure.savefig(HERE / "gallery_more.png", dpi=62)


def tree() -> None:
    """A tree with linear leaves, of house prices."""
    X, y, names = datasets.california_housing()
    data = sw.Dataset(X, y, feature_names=list(names), linear_leaves=True)
    booster = sw.train(
        {"n_estimators": 4, "max_depth": 3, "linear_units": "standard"}, data
    )
    sw.plot.tree(booster, 2).figure.savefig(HERE / "tree.png", dpi=75)


if __name__ == "__main__":
    classifier()
    others()
    tree()
