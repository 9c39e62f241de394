"""The accuracy yardstick: out-of-the-box test loss on real data, sapwood against its
peers.

    python benchmarks/quality.py                          the data sets that ship with scikit-learn
    python benchmarks/quality.py --data FOLDER            those of a folder: NAME.parquet and index.json (below)
    python benchmarks/quality.py --only sapwood lightgbm  some contenders
    python benchmarks/quality.py --only sapwood:max_leaves=63,learning_rate=0.05   a variant, parameters after the colon
    python benchmarks/quality.py --seeds 5 --keep out.json   five splits; what is kept there is not run again
    python benchmarks/quality.py --rows 1000              so many rows of each data set

Every contender gets the same 80 % of the rows and nothing else: no tuning by hand, no
look at the test rows. What its defaults do with them (hold some out, stop early, refit)
is its own business, and its time is shown. Loss: log loss (binary, multiclass), root
mean squared error (regression), mean Poisson deviance (poisson). The calibration error
of probabilities is kept too: rows are put into 15 bins by the probability of a class,
and the mean probability of a bin is compared with the part of its rows that have the
class; bins count by their rows, classes alike.

    NAME-tuned   the published tuned defaults of the 'Better by default' study, 1000 rounds at most, 20 % of the
                 training rows held out for early stopping

A data set counts as won when the loss, in the geometric mean over the seeds that both
have, is lower than every peer's. One seed of one split is noisy (CatBoost's own seeds
spread by 2.5 % on 1,000 rows): claims need five.

index.json: {NAME: {"task": "binary" | "multiclass" | "regression" | "poisson",
"categorical": [column, ...]}, ...}; the column "target" of a table is its label. Text
goes to CatBoost as text, to others as categories of pandas; scikit-learn takes 255 of a
column at most, and is left out where there are more.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

CONTENDERS = [
    "sapwood",
    "lightgbm",
    "xgboost",
    "catboost",
    "sklearn",
    "chimeraboost",
    "lightgbm-tuned",
    "xgboost-tuned",
]
N_BINS = 15  # of probabilities
SHIPPED = {
    "breast_cancer": "binary",
    "diabetes": "regression",
    "digits": "multiclass",
    "wine": "multiclass",
}
TUNED = {
    ("lightgbm", True): {
        "learning_rate": 0.04,
        "num_leaves": 50,
        "subsample": 0.75,
        "min_child_samples": 40,
    },
    ("lightgbm", False): {
        "learning_rate": 0.05,
        "num_leaves": 100,
        "subsample": 0.7,
        "min_child_samples": 3,
    },
    ("xgboost", True): {
        "learning_rate": 0.08,
        "max_depth": 6,
        "subsample": 0.65,
        "colsample_bylevel": 0.9,
        "min_child_weight": 5e-6,
    },
    ("xgboost", False): {
        "learning_rate": 0.05,
        "max_depth": 9,
        "subsample": 0.7,
        "min_child_weight": 2.0,
    },
}


def index(folder: str | None) -> dict[str, dict[str, Any]]:
    """Task and columns of categories of every data set."""
    if folder is None:
        return {
            name: {"task": task, "categorical": []} for name, task in SHIPPED.items()
        }
    known: dict[str, dict[str, Any]] = json.loads(
        (Path(folder) / "index.json").read_text()
    )
    return known


def load(
    folder: str | None, name: str, seed: int, rows: int | None
) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Train and test tables and targets of one split; a frame where there are
    categories, else an array.
    """
    X: Any
    if folder is None:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    else:
        import pandas as pd

        X = pd.read_parquet(Path(folder) / f"{name}.parquet")
        y = X.pop("target").to_numpy()
        columns = index(folder)[name]["categorical"]
        X = (
            X.astype(dict.fromkeys(columns, "category"))
            if columns
            else X.to_numpy(np.float64)
        )
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    train, test = np.split(order, [int(0.8 * len(order))])
    take = X.__getitem__ if isinstance(X, np.ndarray) else X.iloc.__getitem__
    return take(train), y[train], take(test), y[test]


def as_text(table: Any, columns: list[str]) -> Any:
    """Categories as CatBoost takes them: text, and no missing one."""
    if not columns:
        return table
    words = table.astype(dict.fromkeys(columns, object)).fillna(
        dict.fromkeys(columns, "missing")
    )
    return words.astype(dict.fromkeys(columns, str))


def loss(task: str, y: np.ndarray, out: np.ndarray) -> float:
    """Root mean squared error, mean Poisson deviance, or log loss."""
    if task == "regression":
        return float(np.sqrt(np.mean((y - out) ** 2)))
    if task == "poisson":
        mean = np.clip(np.asarray(out, np.float64), 1e-9, None)
        return float(
            2
            * np.mean(
                np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / mean), 0.0)
                - y
                + mean
            )
        )
    p = np.clip(np.asarray(out, np.float64), 1e-9, 1.0)
    p = p / p.sum(axis=1, keepdims=True)
    return float(-np.log(p[np.arange(len(y)), y.astype(int)]).mean())


def calibration(y: np.ndarray, out: np.ndarray) -> float:
    """The expected calibration error, in the mean over classes; of two classes only the
    second counts.
    """
    p = np.asarray(out, np.float64)
    errors = []
    for k in range(p.shape[1])[-1:] if p.shape[1] == 2 else range(p.shape[1]):
        where = np.minimum((p[:, k] * N_BINS).astype(int), N_BINS - 1)
        gaps = np.bincount(where, (y == k) - p[:, k], N_BINS)
        errors.append(np.abs(gaps).sum() / len(y))
    return float(np.mean(errors))


def build(name: str, task: str, columns: list[str], seed: int) -> Any:
    """The estimator of a contender, as its constructor makes it or with the tuned
    defaults.
    """
    library, _, how = name.partition("-")
    classify = task in ("binary", "multiclass")
    count = task == "poisson"
    tuned = {"n_estimators": 1000, **TUNED[library, classify]} if how == "tuned" else {}
    if library.startswith("sapwood"):
        import sapwood

        variant = dict(p.split("=") for p in name.partition(":")[2].split(",") if p)
        params = {"objective": "poisson"} if count else {}
        params |= {
            k: json.loads(v) if v[:1] in "-0123456789[" else v
            for k, v in variant.items()
        }
        return (sapwood.SapwoodClassifier if classify else sapwood.SapwoodRegressor)(
            random_state=seed, **params
        )
    if library == "lightgbm":
        import lightgbm as lgb

        more = {"objective": "poisson"} if count else {}
        more |= {"subsample_freq": 1, "min_sum_hessian_in_leaf": 1e-7} if tuned else {}
        cls = lgb.LGBMClassifier if classify else lgb.LGBMRegressor
        return cls(random_state=seed, verbose=-1, **tuned, **more)
    if library == "xgboost":
        import xgboost as xgb

        more = {"objective": "count:poisson"} if count else {}
        more |= {"reg_lambda": 0.0, "early_stopping_rounds": 300} if tuned else {}
        cls = xgb.XGBClassifier if classify else xgb.XGBRegressor
        return cls(random_state=seed, enable_categorical=bool(columns), **tuned, **more)
    if library == "catboost":
        import catboost as cb

        more = {"loss_function": "Poisson"} if count else {}
        cls = cb.CatBoostClassifier if classify else cb.CatBoostRegressor
        return cls(
            random_seed=seed,
            verbose=0,
            allow_writing_files=False,
            cat_features=columns,
            **more,
        )
    if library == "sklearn":
        from sklearn.ensemble import (
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
        )

        more = {"loss": "poisson"} if count else {}
        cls = (
            HistGradientBoostingClassifier
            if classify
            else HistGradientBoostingRegressor
        )
        return cls(random_state=seed, categorical_features="from_dtype", **more)
    if library == "chimeraboost":
        import chimeraboost as ch

        return (ch.ChimeraBoostClassifier if classify else ch.ChimeraBoostRegressor)(
            random_state=seed
        )
    raise ValueError(name)


def child(folder: str, name: str, data: str, seed: int, rows: int) -> None:
    """Fit and predict once; print loss and seconds."""
    warnings.filterwarnings("ignore")
    X, y, Xt, yt = load(folder or None, data, seed, rows or None)
    task, columns = (
        index(folder or None)[data][what] for what in ("task", "categorical")
    )
    if name == "catboost":
        X = as_text(X, columns)
        Xt = as_text(Xt, columns)
    start = time.perf_counter()
    model = build(name, task, columns, seed)
    more = {}
    if name.endswith("-tuned"):
        order = np.random.default_rng(1_000 + seed).permutation(len(y))
        kept, held = np.split(order, [int(0.8 * len(y))])
        take = X.__getitem__ if isinstance(X, np.ndarray) else X.iloc.__getitem__
        more = {"eval_set": [(take(held), y[held])]}
        X = take(kept)
        y = y[kept]
        if name == "xgboost-tuned":
            more["verbose"] = False
        else:
            import lightgbm as lgb

            more["callbacks"] = [lgb.early_stopping(300, verbose=False)]
    if name == "chimeraboost":
        more["cat_features"] = columns or None
    model.fit(X, y, **more)
    if task in ("binary", "multiclass"):
        out = model.predict_proba(Xt)
    else:
        out = model.predict(
            Xt,
            **(
                {"prediction_type": "Exponent"}
                if (name, task) == ("catboost", "poisson")
                else {}
            ),
        )
    figures = {"loss": loss(task, yt, out), "seconds": time.perf_counter() - start}
    print(
        json.dumps(
            figures
            | (
                {"calibration": calibration(yt, out)}
                if task in ("binary", "multiclass")
                else {}
            )
        )
    )


def compare(kept: dict[str, Any], ours: str, sets: list[str]) -> None:
    """Print our loss over each peer's; `kept[contender][data set][seed] = {loss,
    seconds}`.
    """

    def ratio(peer: str, d: str) -> float | None:
        mine = kept[ours].get(d, {})
        theirs = kept[peer].get(d, {})
        logs = [
            np.log(mine[s]["loss"] / theirs[s]["loss"])
            for s in mine
            if {"loss"} <= mine[s].keys() & theirs.get(s, {})
        ]
        return float(np.exp(np.mean(logs))) if logs else None

    peers = [name for name in kept if not name.startswith("sapwood")]
    print(f"\n{ours}: its loss over each peer's, by data set (below 1 is better)")
    won = 0
    places = []
    for d in sets:
        row = {c: r for c in peers if (r := ratio(c, d)) is not None}
        if not row:
            continue
        worst, by = max((r, c) for c, r in row.items())
        won += worst < 1
        places.append(1 + sum(r > 1 for r in row.values()))
        print(
            f"{d:22}{worst:8.4f} of the best peer ({by}){'  won' if worst < 1 else ''}"
        )
    if not places:
        print("nothing to compare")
        return
    print(
        f"\nwon {won} of {len(places)}; mean place {np.mean(places):.2f} among up to {len(peers) + 1}"
    )
    for c in peers:
        logs = np.log([r for d in sets if (r := ratio(c, d)) is not None])
        if len(logs):
            error = np.std(logs) / max(len(logs) - 1, 1) ** 0.5
            mean = (
                f"geometric mean {np.exp(logs.mean()):.4f} (standard error {error:.4f})"
            )
            print(
                f"  against {c:18}{mean}, median {np.exp(np.median(logs)):.4f}, wins {(logs < 0).sum()} of {len(logs)}"
            )
    for c in (ours, *peers):
        errors = [
            one["calibration"]
            for d in sets
            for one in kept[c].get(d, {}).values()
            if "calibration" in one
        ]
        if errors:
            print(
                f"  calibration error of {c:18}{np.mean(errors):.4f} in the mean of {len(errors)}"
            )


def main() -> None:
    """Run every contender on every data set and compare."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:5], *map(int, sys.argv[5:]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="*", default=CONTENDERS, help="contenders to run"
    )
    parser.add_argument("--data", help="folder with the parquet files and index.json")
    parser.add_argument("--data-set", nargs="*", help="some data sets")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--rows", type=int, default=0, help="of each data set; all by default"
    )
    parser.add_argument(
        "--keep", help="file that keeps the figures; what it has is not run again"
    )
    parser.add_argument("--limit", type=int, default=1_200, help="seconds for one fit")
    args = parser.parse_args()
    sets = [
        name for name in index(args.data) if not args.data_set or name in args.data_set
    ]
    keep = Path(args.keep) if args.keep else None
    kept = json.loads(keep.read_text()) if keep and keep.exists() else {}
    for name in args.only:
        if not importlib.util.find_spec(name.replace(":", "-").split("-")[0]):
            print(f"{name} is not installed here, so not compared")
            continue
        for d, seed in ((d, s) for d in sets for s in range(args.seeds)):
            figures = kept.setdefault(name, {}).setdefault(d, {})
            split = f"{seed}, {args.rows} rows" if args.rows else str(seed)
            if "loss" in figures.get(split, {}):
                continue
            command = [
                sys.executable,
                __file__,
                "--child",
                args.data or "",
                name,
                d,
                str(seed),
                str(args.rows),
            ]
            try:
                run = subprocess.run(
                    command, capture_output=True, text=True, timeout=args.limit
                )
                lines = run.stdout.strip().splitlines()
                failed = {
                    "error": (run.stderr.strip().splitlines() or ["died"])[-1][:200]
                }
                got = json.loads(lines[-1]) if run.returncode == 0 and lines else failed
            except subprocess.TimeoutExpired:
                got = {"error": f"no answer in {args.limit} s"}
            shown = (
                f"{got['loss']:.5f}  {got['seconds']:.1f} s"
                if "loss" in got
                else got["error"]
            )
            print(f"{name:18} {d:22} seed {seed}  {shown}", flush=True)
            figures[split] = got
            if keep:
                keep.write_text(json.dumps(kept, indent=1))
    for name in kept:
        if name.startswith("sapwood"):
            compare(kept, name, sets)


if __name__ == "__main__":
    main()
