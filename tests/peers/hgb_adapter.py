"""Sapwood's estimators with the defaults of scikit-learn's histogram gradient boosting,
for its own tests.
"""

from typing import Any

import numpy as np

import sapwood as sw

DEFAULTS = {
    "n_estimators": 100,
    "max_leaves": 31,
    "min_samples_leaf": 20,
    "reg_lambda": 0.0,
    "path_smooth": 0.0,
    "min_child_weight": 1e-3,
    "quality": None,
    "min_samples_bin": 1,
}
OURS = {
    "max_iter": "n_estimators",
    "max_leaf_nodes": "max_leaves",
    "l2_regularization": "reg_lambda",
}


class _Adapter:
    """The defaults, and two attributes that the tests look at."""

    def __init__(self, loss: Any = None, **params: Any) -> None:
        params.pop("tol", None)  # of early stopping; ours is an argument of a callback
        given = {OURS.get(name, name) for name in params}
        usual = {name: value for name, value in DEFAULTS.items() if name not in given}
        super().__init__(**usual, **params, **({} if loss is None else {"loss": loss}))

    def _raw_predict(self, X: Any) -> Any:
        return self.booster_.predict(X, raw=True).reshape(len(X), -1)

    @property
    def max_iter(self) -> int:
        return self.n_estimators

    @property
    def is_categorical_(self) -> Any:
        marked = np.zeros(self.n_features_in_, bool)
        marked[list(self.booster_.categories)] = True
        return marked if marked.any() else None


class HistGradientBoostingClassifier(_Adapter, sw.SapwoodClassifier):
    """SapwoodClassifier."""


class HistGradientBoostingRegressor(_Adapter, sw.SapwoodRegressor):
    """SapwoodRegressor."""
