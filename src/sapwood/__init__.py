"""Sapwood: gradient boosting over decision trees that gives the same model, byte for byte, on any number of threads.

In: ``import sapwood``. Out: the public names, each loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sapwood.version import VERSION

if TYPE_CHECKING:
    from sapwood import errors, math, metric, plot
    from sapwood.boost.cv import cv
    from sapwood.boost.memory import estimate_cost
    from sapwood.boost.round import callback
    from sapwood.boost.round.callback import early_stopping
    from sapwood.boost.train import train
    from sapwood.data.dataset import Dataset
    from sapwood.data.deferred import DMatrix, Pool
    from sapwood.interfaces.distribution import SapwoodDistribution
    from sapwood.interfaces.doctor import doctor
    from sapwood.interfaces.encoder import OrderedTargetEncoder
    from sapwood.interfaces.ranker import SapwoodRanker
    from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor
    from sapwood.interfaces.survival import SapwoodSurvival
    from sapwood.model.booster import Booster
    from sapwood.model.io import load
    from sapwood.plot.peers import plot_importance, plot_metric, plot_tree

__version__ = VERSION

__all__ = [
    "Booster",
    "DMatrix",
    "Dataset",
    "OrderedTargetEncoder",
    "Pool",
    "SapwoodClassifier",
    "SapwoodDistribution",
    "SapwoodRanker",
    "SapwoodRegressor",
    "SapwoodSurvival",
    "__version__",
    "callback",
    "cv",
    "doctor",
    "early_stopping",
    "errors",
    "estimate_cost",
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
    "DMatrix": "sapwood.data.deferred",
    "Dataset": "sapwood.data.dataset",
    "OrderedTargetEncoder": "sapwood.interfaces.encoder",
    "Pool": "sapwood.data.deferred",
    "SapwoodClassifier": "sapwood.interfaces.sklearn",
    "SapwoodDistribution": "sapwood.interfaces.distribution",
    "SapwoodRanker": "sapwood.interfaces.ranker",
    "SapwoodRegressor": "sapwood.interfaces.sklearn",
    "SapwoodSurvival": "sapwood.interfaces.survival",
    "callback": "sapwood.boost.round.callback",
    "cv": "sapwood.boost.cv",
    "doctor": "sapwood.interfaces.doctor",
    "early_stopping": "sapwood.boost.round.callback",
    "errors": "sapwood.errors",
    "estimate_cost": "sapwood.boost.memory",
    "load": "sapwood.model.io",
    "math": "sapwood.math",
    "metric": "sapwood.metric",
    "plot": "sapwood.plot",
    "plot_importance": "sapwood.plot.peers",
    "plot_metric": "sapwood.plot.peers",
    "plot_tree": "sapwood.plot.peers",
    "train": "sapwood.boost.train",
}


_PEERS = {  # names of the peers' packages, and what there is here
    **dict.fromkeys(("LGBMClassifier", "XGBClassifier", "XGBRFClassifier", "CatBoostClassifier"), "SapwoodClassifier"),
    **dict.fromkeys(("HistGradientBoostingClassifier", "GradientBoostingClassifier"), "SapwoodClassifier"),
    **dict.fromkeys(("LGBMRegressor", "XGBRegressor", "XGBRFRegressor", "CatBoostRegressor"), "SapwoodRegressor"),
    **dict.fromkeys(("HistGradientBoostingRegressor", "GradientBoostingRegressor"), "SapwoodRegressor"),
    **dict.fromkeys(("LGBMModel", "XGBModel", "CatBoost"), "SapwoodRegressor or SapwoodClassifier"),
    **dict.fromkeys(("QuantileDMatrix", "DeviceQuantileDMatrix", "ExtMemQuantileDMatrix"), "DMatrix or Dataset"),
    **dict.fromkeys(("plot_metric", "plot_importance", "plot_tree"), "Booster.history, importance() and to_text()"),
    "log_evaluation": "callback.progress(every)",
    "print_evaluation": "callback.progress(every)",
    "record_evaluation": "callback.record(into)",
    "reset_parameter": "learning_rate=[a number for each round], in params",
    "register_logger": "Python's logging in a callback of your own",
    "EarlyStopping": "early_stopping(rounds)",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        hint = f"; use sapwood.{_PEERS[name]}" if name in _PEERS else ""
        raise AttributeError(f"module 'sapwood' has no attribute {name!r}{hint}")
    module = import_module(_HOME[name])
    globals()[name] = getattr(module, name, module)  # found directly from now on
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
