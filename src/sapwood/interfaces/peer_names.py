"""What the peers' estimators are asked for after `fit`, under their names.

In: a fitted estimator. Out: the same things of ours, or an error that says where they
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric
from sapwood.data import derived
from sapwood.device import elementary
from sapwood.errors import ParameterError, suggest
from sapwood.model.booster import Booster
from sapwood.model.peer_names import contributions
from sapwood.params import peers

# Attributes of the peers' estimators that are something else here.
ELSEWHERE = {
    "coef_": "feature_importances_; trees have no coefficients",
    "intercept_": "booster_.base",
    "oob_improvement_": "early_stopping_rounds; rows outside of a sample are not scored",
    "n_estimators_": "n_iter_",
    "estimators_": "booster_.to_frame(); the trees are not estimators",
    "init_": "booster_.base",
    "loss_": "booster_.objective",
    "do_early_stopping_": "early_stopping_rounds",
    "is_categorical_": "booster_.categories",
    "get_xgb_params": "booster_.params",
    "virtual_ensembles_predict": "conformal, or SapwoodDistribution, for how sure a prediction is",
    "objective_": "booster_.objective",
    "plot_importance": "booster_.importance()",
    "get_all_params": "booster_.params",
    "calc_leaf_indexes": "apply(X)",
    "shrink": "booster_.predict(X, rounds=n)",
    "eval_metrics": "staged_predict(X)",
    "train_score_": "evals_result_, with eval_set=[(X, y)]",
    "validation_score_": "evals_result_",
}


class PeerNames:
    """Names of LightGBM's, XGBoost's, CatBoost's and scikit-learn's estimators, for
    what ours have under others.
    """

    booster_: Booster

    def __getattr__(self, name: str) -> Any:
        # Called for names that nothing else has; before fit these are missing, as
        # scikit-learn wants.
        # a property or method that does not exist for this model says why
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)
        hint = ELSEWHERE.get(name) or peers.ATTRIBUTES.get(name)
        if hint is None and hasattr(Booster, name) and not name.startswith("_"):
            hint = f"booster_.{name}"
        elif name not in ELSEWHERE and hint:
            hint = f"booster_: {hint}"
        text = f"{type(self).__name__} has no attribute {name!r}" + (
            f"; use {hint}." if hint else ""
        )
        raise AttributeError(text, name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [
            name
            for name in super().__dir__()
            if not name.startswith("_") or name.endswith("__")
        ]

    @property
    def evals_result_(self) -> Mapping[str, Any]:
        """Every metric of every validation set, round by round; the peers' names of
        sets and metrics are known too.
        """
        return Evaluations(self.booster_.history)

    def evals_result(self) -> Mapping[str, Any]:
        """XGBoost's name of `evals_result_`."""
        return self.evals_result_

    get_evals_result = evals_result

    @property
    def best_score_(self) -> Mapping[str, Mapping[str, float]]:
        """The metrics after the last round that the model keeps, by validation set and
        metric.
        """
        return Evaluations(
            {
                name: {
                    one: values[min(self.booster_.n_rounds, len(values)) - 1]
                    for one, values in lists.items()
                }
                for name, lists in self.booster_.history.items()
            }
        )

    @property
    def best_score(self) -> float:
        """XGBoost's: the first metric of the last validation set after the last round
        that the model keeps.
        """
        if not self.booster_.history:
            raise AttributeError(
                "best_score exists where something was measured: give fit an eval_set."
            )
        *_, last = self.best_score_.values()
        return float(next(iter(last.values())))

    @property
    def best_iteration(self) -> int:
        """XGBoost's: the last round that the model keeps, counted from 0;
        `best_iteration_` counts from 1.
        """
        return self.booster_.n_rounds - 1

    @property
    def feature_name_(self) -> list[str]:
        """LightGBM's: the names of the columns, ``f0``, ``f1``, ... where the table had
        none.
        """
        return list(self.booster_.feature_names)

    feature_names_ = feature_name_

    @property
    def tree_count_(self) -> int:
        """CatBoost's: the number of rounds."""
        return self.booster_.n_rounds

    @property
    def n_features_(self) -> int:
        """LightGBM's: the number of columns."""
        return len(self.booster_.feature_names)

    def get_booster(self) -> Booster:
        """XGBoost's: the `booster_`."""
        return self.booster_

    def get_num_boosting_rounds(self) -> int:
        """XGBoost's: the number of rounds."""
        return self.booster_.n_rounds

    def get_best_iteration(self) -> int:
        """CatBoost's: the last round that the model keeps, counted from 0."""
        return self.booster_.n_rounds - 1

    def get_best_score(self) -> Mapping[str, Mapping[str, float]]:
        """CatBoost's name of `best_score_`."""
        return self.best_score_

    def get_feature_importance(
        self, data: Any = None, type: str = "FeatureImportance", **more: Any
    ) -> NDArray[np.float64]:
        """CatBoost's: how much predictions change with each column, in percent; or the
        Shapley values of a Pool.

        ``type="ShapValues"`` looks at ``data``; the others look at the trees alone,
        whatever the data.
        """
        if unknown := [name for name, value in more.items() if value]:
            raise ParameterError(
                f"{unknown[0]} of get_feature_importance is not available; see feature_names_."
            )
        if type == "ShapValues" and data is not None:
            return contributions(self.booster_, getattr(data, "data", data), None, None)
        if type not in ("FeatureImportance", "PredictionValuesChange"):
            raise ParameterError(
                f"type={type!r} is not available; booster_.importance(kind) and explain(X) have others."
            )
        return 100.0 * self.booster_.importance(
            "prediction_values_change", normalize=True
        )


class Evaluations(dict[str, Any]):
    """Metrics by validation set; sets and metrics are found under the peers' names,
    too.
    """

    def __init__(self, lists: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__({name: Metrics(values) for name, values in lists.items()})

    def __missing__(self, key: str) -> Any:
        # LightGBM's valid_0, XGBoost's validation_0
        head, _, number = str(key).rpartition("_")
        names = list(self)
        if str(key) in ("valid", "validation", "holdout") and names:
            return self[names[-1]]
        if (
            head in ("valid", "validation")
            and number.isdecimal()
            and int(number) < len(names)
        ):
            return self[names[int(number)]]
        raise KeyError(
            f"{key!r}: {suggest(str(key), names) if names else 'nothing was measured'}"
        )


class Metrics(dict[str, Any]):
    """Values by metric; the peers' names of a metric are known, too."""

    def __missing__(self, key: str) -> Any:
        name = str(key).lower()
        ours = metric.PEERS.get(name, name)
        ours = "logloss" if ours == "multi_logloss" and "logloss" in self else ours
        if ours not in self:
            raise KeyError(f"{key!r}: {suggest(ours, self)}")
        return self[ours]


def importances(booster: Booster, kind: str | None) -> NDArray[np.float64]:
    """`feature_importances_`: shares of the total gain, or what `importance_type` asks
    for.
    """
    found = (
        booster.importance("total_gain", normalize=True)
        if kind is None
        else booster.importance(kind)
    )
    if booster.times:  # what the parts of a date have is the date's
        found = elementary.matmul(
            found, derived.shares(booster.times, booster.n_columns)
        )
    return found.astype(np.int64) if kind in ("weight", "split") else found
