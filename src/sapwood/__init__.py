"""Sapwood: gradient boosting over decision trees that gives the same model, byte for
byte, on any number of threads.

In: ``import sapwood``. Out: the public names, each loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sapwood.system.address_space import loading
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
    from sapwood.interfaces.tree_explainer import TreeExplainer
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
    "TreeExplainer",
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
    "TreeExplainer": "sapwood.interfaces.tree_explainer",
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


# names of the peers' packages for what is here, so that a program need change nothing
# but its imports
_PEERS = {
    **dict.fromkeys(
        ("LGBMClassifier", "XGBClassifier", "CatBoostClassifier"), "SapwoodClassifier"
    ),
    **dict.fromkeys(
        ("HistGradientBoostingClassifier", "GradientBoostingClassifier"),
        "SapwoodClassifier",
    ),
    **dict.fromkeys(
        ("LGBMRegressor", "XGBRegressor", "CatBoostRegressor"), "SapwoodRegressor"
    ),
    **dict.fromkeys(
        ("HistGradientBoostingRegressor", "GradientBoostingRegressor"),
        "SapwoodRegressor",
    ),
    **dict.fromkeys(("LGBMRanker", "XGBRanker", "CatBoostRanker"), "SapwoodRanker"),
    **dict.fromkeys(("QuantileDMatrix", "DeviceQuantileDMatrix"), "DMatrix"),
}
_CALLBACKS = (
    "log_evaluation",
    "print_evaluation",
    "record_evaluation",
    "reset_parameter",
    "EarlyStopping",
)
_HINTS = {  # names of the peers' packages that are something else here
    **dict.fromkeys(
        ("LGBMModel", "XGBModel", "CatBoost"), "SapwoodRegressor or SapwoodClassifier"
    ),
    **dict.fromkeys(
        ("XGBRFClassifier", "XGBRFRegressor"),
        "SapwoodClassifier or SapwoodRegressor with boosting='rf'",
    ),
    **dict.fromkeys(
        ("ExtMemQuantileDMatrix", "DataIter"), "Dataset.from_files or from_batches"
    ),
    **dict.fromkeys(
        ("plot_split_value_histogram",),
        "plot.tree, or the thresholds in Booster.to_frame()",
    ),
    **dict.fromkeys(
        ("create_tree_digraph", "to_graphviz"),
        "plot_tree, which draws a tree with matplotlib",
    ),
    "register_logger": "callback.log, and Python's logging in it",
    "config_context": "n_jobs and verbose, parameters of each training",
    "set_config": "n_jobs and verbose, parameters of each training",
}


def __getattr__(name: str) -> Any:
    found: Any
    if name in _PEERS:
        found = __getattr__(_PEERS[name])
    elif name in _CALLBACKS:
        with loading():
            found = import_module("sapwood.boost.round.peer_makers").NAMES[name]
    elif name in _HOME:
        with loading(estimators=_HOME[name].startswith("sapwood.interfaces.")):
            module = import_module(_HOME[name])
        found = getattr(module, name, module)
    else:
        hint = f"; use sapwood.{_HINTS[name]}" if name in _HINTS else ""
        raise AttributeError(f"module 'sapwood' has no attribute {name!r}{hint}")
    globals()[name] = found  # found directly from now on
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
