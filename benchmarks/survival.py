"""Survival: concordance and integrated Brier scores of Sapwood, scikit-survival's boosting and XGBoost's Cox.

In: nothing; the tables ship with scikit-survival. Out: a line for each table and model, means over folds.
"""

import argparse
import time as clock
import warnings
from typing import Any

import numpy as np
import pandas as pd

from sapwood import SapwoodSurvival, metric

FOLDS = 5


def tables() -> dict[str, Any]:
    """Features as numbers, times and events."""
    from sksurv import datasets

    found = {}
    for name, load in {
        "whas500": datasets.load_whas500, "gbsg2": datasets.load_gbsg2, "veteran": datasets.load_veterans_lung_cancer,
        "aids": datasets.load_aids, "flchain": datasets.load_flchain,
    }.items():  # fmt: skip
        X, y = load()
        if name == "flchain":
            X = X.drop(columns=["chapter"])  # the cause of death
        X = pd.get_dummies(X).astype(float)
        X = X.fillna(X.median())
        event, time = (y[one] for one in y.dtype.names)
        kept = time > 0
        found[name] = X.to_numpy()[kept], time[kept].astype(float), event[kept]
    return found


def rivals(n_rounds: int, slow: bool) -> dict[str, Any]:
    """Functions (X, time, event, X_test, times) -> risk and survival curves, or None."""

    def sapwood(model: str) -> Any:
        def run(X: Any, t: Any, e: Any, new: Any, times: Any) -> Any:
            fitted = SapwoodSurvival(model).fit(X, (t, e))
            return fitted.predict(new), fitted.predict_survival_function(new, times)

        return run

    def sksurv(X: Any, t: Any, e: Any, new: Any, times: Any) -> Any:
        from sksurv.ensemble import GradientBoostingSurvivalAnalysis
        from sksurv.util import Surv

        fitted = GradientBoostingSurvivalAnalysis(n_estimators=100).fit(X, Surv.from_arrays(e, t))
        curves = np.array([one(times) for one in fitted.predict_survival_function(new)])
        return fitted.predict(new), curves

    def xgboost(X: Any, t: Any, e: Any, new: Any, times: Any) -> Any:
        import xgboost as xgb

        params = {"objective": "survival:cox", "eta": 0.05, "max_depth": 3}
        model = xgb.train(params, xgb.DMatrix(X, np.where(e, t, -t)), n_rounds)
        return model.predict(xgb.DMatrix(new), output_margin=True), None

    def kaplan_meier(X: Any, t: Any, e: Any, new: Any, times: Any) -> Any:
        at, left = metric.kaplan_meier(t, e)
        return np.zeros(len(new)), np.tile(
            np.append(1.0, left)[np.searchsorted(at, times, side="right")], (len(new), 1)
        )

    found = {f"sapwood {one}": sapwood(one) for one in ("hazard", "cox", "aft")}
    return (
        found | {"xgboost cox": xgboost, "kaplan-meier": kaplan_meier} | ({"scikit-survival": sksurv} if slow else {})
    )


def main() -> None:
    """Cross-validate every model on every table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument("--tables", nargs="*", default=["whas500", "gbsg2", "veteran", "aids", "flchain"])
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    for name, (X, time, event) in tables().items():
        if name not in given.tables:
            continue
        fold = np.random.default_rng(0).permutation(len(X)) % FOLDS
        for who, run in rivals(given.rounds, True).items():
            values, start = [], clock.perf_counter()
            for which in range(FOLDS):
                a, b = fold != which, fold == which
                times = np.quantile(time[b & event], np.linspace(0.1, 0.8, 15))
                times = np.unique(times[times < time[b].max()])
                risk, curves = run(X[a], time[a], event[a], X[b], times)
                train = time[a], event[a]
                brier = np.nan if curves is None else metric.integrated_brier(train, time[b], event[b], curves, times)
                values.append((metric.concordance(time[b], event[b], risk), brier))
            c, brier = np.mean(values, axis=0)
            print(f"{name:8} {who:16} C {c:.4f}  IBS {brier:.4f}  {clock.perf_counter() - start:7.2f} s", flush=True)


if __name__ == "__main__":
    main()
