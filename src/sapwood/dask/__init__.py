"""Training, prediction and explanation on a Dask cluster: the bytes of a fit in memory,
whoever holds the rows.

In: DataFrames or Arrays of Dask, or lists of delayed tables. Out: a `sapwood.Booster`;
Dask collections of predictions.

docs/dask.md tells what happens when workers are lost. Needs the extra ``dask``. Names
are loaded when they are first
used: a worker needs few of them.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood.dask.estimators import DaskSapwoodClassifier, DaskSapwoodRegressor
    from sapwood.dask.prediction import explain, predict
    from sapwood.dask.training import train

if find_spec("distributed") is None:
    raise ImportError(
        "sapwood.dask needs Dask; install it with: pip install 'sapwood[dask]'"
    )

__all__ = [
    "DaskSapwoodClassifier",
    "DaskSapwoodRegressor",
    "explain",
    "predict",
    "train",
]

_HOME = {
    "DaskSapwoodClassifier": "estimators",
    "DaskSapwoodRegressor": "estimators",
    "explain": "prediction",
    "predict": "prediction",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sapwood.dask' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"sapwood.dask.{_HOME[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
