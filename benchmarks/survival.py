"""Survival: concordance and integrated Brier scores of Sapwood, scikit-survival's
boosting and XGBoost's Cox.

In: nothing; the tables ship with scikit-survival. Out: a line for each table and model,
means over folds. With --speed: seconds of the processor for a round on all rows of
flchain, trees of depth 3, one thread.
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
        "whas500": datasets.load_whas500,
        "gbsg2": datasets.load_gbsg2,
        "veteran": datasets.load_veterans_lung_cancer,
        "aids": datasets.load_aids,
        "flchain": datasets.load_flchain,
    }.items():
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
    """Functions (X, time, event, X_test, times) -> risk and survival curves, or
    None.
    """

    def sapwood(model: str) -> Any:
        def run(X: Any, t: Any, e: Any, new: Any, times: Any) -> Any:
            fitted = SapwoodSurvival(model).fit(X, (t, e))
            return fitted.predict(new), fitted.predict_survival_function(new, times)

        return run

    def sksurv(X: Any, t: Any, e: Any, new: Any, times: Any) -> Any:
        from sksurv.ensemble import GradientBoostingSurvivalAnalysis
        from sksurv.util import Surv

        fitted = GradientBoostingSurvivalAnalysis(n_estimators=100).fit(
            X, Surv.from_arrays(e, t)
        )
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
            np.append(1.0, left)[np.searchsorted(at, times, side="right")],
            (len(new), 1),
        )

    found = {f"sapwood {one}": sapwood(one) for one in ("hazard", "cox", "aft")}
    return (
        found
        | {"xgboost cox": xgboost, "kaplan-meier": kaplan_meier}
        | ({"scikit-survival": sksurv} if slow else {})
    )


def speed(n_rounds: int) -> None:
    """Time whole fits on flchain; scikit-survival, whose gradient takes the square of
    the rows, has five rounds.
    """
    import xgboost as xgb
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis
    from sksurv.util import Surv

    X, time, event = tables()["flchain"]
    trees = {
        "max_depth": 3,
        "max_leaves": 8,
        "n_jobs": 1,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
    }
    fits: dict[str, tuple[int, Any]] = {
        f"sapwood {one}": (
            n_rounds,
            lambda n, one=one: SapwoodSurvival(one, n_estimators=n, **trees).fit(
                X, (time, event)
            ),
        )
        for one in ("hazard", "cox", "aft")
    }
    cox = {"objective": "survival:cox", "max_depth": 3, "nthread": 1}
    fits["xgboost cox"] = (
        n_rounds,
        lambda n: xgb.train(cox, xgb.DMatrix(X, np.where(event, time, -time)), n),
    )
    fits["scikit-survival"] = (
        5,
        lambda n: GradientBoostingSurvivalAnalysis(n_estimators=n).fit(
            X, Surv.from_arrays(event, time)
        ),
    )
    for who, (rounds, fit) in fits.items():
        spent = []
        for _ in range(1 if rounds == 5 else 3):
            start = clock.process_time()
            fit(rounds)
            spent.append(clock.process_time() - start)
        print(
            f"flchain {who:16} {rounds:4} rounds {min(spent):8.3f} s, {1000 * min(spent) / rounds:9.2f} ms a round"
        )


def main() -> None:
    """Cross-validate every model on every table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument(
        "--tables",
        nargs="*",
        default=["whas500", "gbsg2", "veteran", "aids", "flchain"],
    )
    arguments.add_argument("--seed", type=int, default=0, help="of the folds")
    arguments.add_argument("--speed", action="store_true")
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    if given.speed:
        return speed(given.rounds)
    for name, (X, time, event) in tables().items():
        if name not in given.tables:
            continue
        fold = np.random.default_rng(given.seed).permutation(len(X)) % FOLDS
        for who, run in rivals(given.rounds, True).items():
            values = []
            start = clock.perf_counter()
            for which in range(FOLDS):
                a = fold != which
                b = fold == which
                times = np.quantile(time[b & event], np.linspace(0.1, 0.8, 15))
                times = np.unique(times[times < time[b].max()])
                risk, curves = run(X[a], time[a], event[a], X[b], times)
                train = time[a], event[a]
                brier = (
                    np.nan
                    if curves is None
                    else metric.integrated_brier(
                        train, time[b], event[b], curves, times
                    )
                )
                values.append((metric.concordance(time[b], event[b], risk), brier))
            c, brier = np.mean(values, axis=0)
            print(
                f"{name:8} {who:16} C {c:.4f}  IBS {brier:.4f}  {clock.perf_counter() - start:7.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
