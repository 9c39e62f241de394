"""The pictures of docs/plotting.md, from real tables of the tests.

In: `tests/data_files/`. Out: `gallery.png` and `tree.png` beside this file.
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
    fit, test = rows[:1300], rows[1300:]
    settings = {"n_estimators": 200, "learning_rate": 0.05, "max_depth": 4, "early_stopping_rounds": 25}
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


def tree() -> None:
    """A tree with linear leaves, of house prices."""
    X, y, names = datasets.california_housing()
    data = sw.Dataset(X, y, feature_names=list(names), linear_leaves=True)
    booster = sw.train({"n_estimators": 4, "max_depth": 3, "linear_units": "standard"}, data)
    sw.plot.tree(booster, 2).figure.savefig(HERE / "tree.png", dpi=75)


if __name__ == "__main__":
    classifier()
    tree()
