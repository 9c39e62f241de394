"""Sapwood: gradient boosting over decision trees that gives the same model, byte for byte, on any number of threads.

In: ``import sapwood``. Out: the public names, each loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sapwood.version import VERSION

if TYPE_CHECKING:
    from sapwood import errors, math, metric, plot
    from sapwood.boost.cv import cv
    from sapwood.boost.round import callback
    from sapwood.boost.train import train
    from sapwood.data.dataset import Dataset
    from sapwood.interfaces.doctor import doctor
    from sapwood.interfaces.encoder import OrderedTargetEncoder
    from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor
    from sapwood.model.booster import Booster
    from sapwood.model.io import load
    from sapwood.plot.peers import plot_importance, plot_metric, plot_tree

__version__ = VERSION

__all__ = [
    "Booster",
    "Dataset",
    "OrderedTargetEncoder",
    "SapwoodClassifier",
    "SapwoodRegressor",
    "__version__",
    "callback",
    "cv",
    "doctor",
    "errors",
    "load",
    "math",
    "metric",
    "plot",
    "plot_importance",
    "plot_metric",
    "plot_tree",
    "train",
]

_HOME = {  # the module of each name; some are modules themselves
    "Booster": "sapwood.model.booster",
    "Dataset": "sapwood.data.dataset",
    "OrderedTargetEncoder": "sapwood.interfaces.encoder",
    "SapwoodClassifier": "sapwood.interfaces.sklearn",
    "SapwoodRegressor": "sapwood.interfaces.sklearn",
    "callback": "sapwood.boost.round.callback",
    "cv": "sapwood.boost.cv",
    "doctor": "sapwood.interfaces.doctor",
    "errors": "sapwood.errors",
    "load": "sapwood.model.io",
    "math": "sapwood.math",
    "metric": "sapwood.metric",
    "plot": "sapwood.plot",
    "plot_importance": "sapwood.plot.peers",
    "plot_metric": "sapwood.plot.peers",
    "plot_tree": "sapwood.plot.peers",
    "train": "sapwood.boost.train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sapwood' has no attribute {name!r}")
    module = import_module(_HOME[name])
    globals()[name] = getattr(module, name, module)  # found directly from now on
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
