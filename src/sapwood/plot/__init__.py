"""Plots: one function for each question, which returns the Axes it drew on and takes
one as `ax=`.

In: a model, an explanation, rows. Out: matplotlib Axes. Needs ``pip install
'sapwood[plot]'``.
"""

from sapwood.plot.effect import category_effects, partial_dependence
from sapwood.plot.errors import (
    calibration,
    confusion_matrix,
    precision_recall,
    predicted_actual,
    residuals,
    roc,
)
from sapwood.plot.explanation import beeswarm, dependence, waterfall
from sapwood.plot.importance import importance, interactions
from sapwood.plot.peers import plot_importance, plot_metric, plot_tree
from sapwood.plot.training import learning_curve
from sapwood.plot.tree import tree

__all__ = [
    "beeswarm",
    "calibration",
    "category_effects",
    "confusion_matrix",
    "dependence",
    "importance",
    "interactions",
    "learning_curve",
    "partial_dependence",
    "plot_importance",
    "plot_metric",
    "plot_tree",
    "precision_recall",
    "predicted_actual",
    "residuals",
    "roc",
    "tree",
    "waterfall",
]


def __dir__() -> list[str]:
    return __all__
