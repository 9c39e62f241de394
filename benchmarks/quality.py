"""The accuracy yardstick: out-of-the-box test loss on real data, sapwood against its peers.

    python benchmarks/quality.py                          the data sets that ship with scikit-learn
    python benchmarks/quality.py --data FOLDER            those of a folder: NAME.parquet and index.json (below)
    python benchmarks/quality.py --only sapwood lightgbm  some contenders
    python benchmarks/quality.py --only sapwood:max_leaves=63,learning_rate=0.05   a variant, parameters after the colon
    python benchmarks/quality.py --seeds 5 --keep out.json   five splits; what is kept there is not run again

Every contender gets the same 80 % of the rows and nothing else: no tuning by hand, no look at the test rows. What its
defaults do with them (hold some out, stop early, refit) is its own business, and its time is shown. Loss: log loss
(binary, multiclass), root mean squared error (regression).

    NAME-tuned   the published tuned defaults of the 'Better by default' study, 1000 rounds at most, 20 % of the
                 training rows held out for early stopping

A data set counts as won when the loss, in the geometric mean over the seeds that both have, is lower than every peer's.
One seed of one split is noisy (CatBoost's own seeds spread by 2.5 % on 1,000 rows): claims need five.

index.json: {NAME: {"task": "binary" | "multiclass" | "regression", "categorical": [column, ...]}, ...}; the column
"target" of a table is its label. Sets with categories wait until sapwood takes categories, and are named as left out.
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
    "sapwood", "lightgbm", "xgboost", "catboost", "sklearn", "lightgbm-tuned", "xgboost-tuned",
]  # fmt: skip
SHIPPED = {"breast_cancer": "binary", "diabetes": "regression", "digits": "multiclass", "wine": "multiclass"}
TUNED = {
    ("lightgbm", True): {"learning_rate": 0.04, "num_leaves": 50, "subsample": 0.75, "min_child_samples": 40},
    ("lightgbm", False): {"learning_rate": 0.05, "num_leaves": 100, "subsample": 0.7, "min_child_samples": 3},
    ("xgboost", True): {
        "learning_rate": 0.08,
        "max_depth": 6,
        "subsample": 0.65,
        "colsample_bylevel": 0.9,
        "min_child_weight": 5e-6,
    },
    ("xgboost", False): {"learning_rate": 0.05, "max_depth": 9, "subsample": 0.7, "min_child_weight": 2.0},
}


def tasks(folder: str | None) -> dict[str, str]:
    """Name and task of every data set that has numbers only."""
    if folder is None:
        return SHIPPED
    index = json.loads((Path(folder) / "index.json").read_text())
    known = {name: info["task"] for name, info in index.items() if not info["categorical"]}
    known = {name: task for name, task in known.items() if task in ("binary", "multiclass", "regression")}
    print("left out (categories, or a loss sapwood has not yet):", ", ".join(sorted(index.keys() - known.keys())))
    return known


def load(folder: str | None, name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Train and test tables and targets of one split."""
    if folder is None:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    else:
        import pandas as pd

        frame = pd.read_parquet(Path(folder) / f"{name}.parquet")
        y = frame.pop("target").to_numpy()
        X = frame.to_numpy(np.float64)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    return X[train], y[train], X[test], y[test]


def loss(task: str, y: np.ndarray, out: np.ndarray) -> float:
    """Root mean squared error, mean Poisson deviance, or log loss."""
    if task == "regression":
        return float(np.sqrt(np.mean((y - out) ** 2)))
    if task == "poisson":
        mean = np.clip(np.asarray(out, np.float64), 1e-9, None)
        return float(2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / mean), 0.0) - y + mean))
    p = np.clip(np.asarray(out, np.float64), 1e-9, 1.0)
    p = p / p.sum(axis=1, keepdims=True)
    return float(-np.log(p[np.arange(len(y)), y.astype(int)]).mean())


def build(name: str, classify: bool, seed: int) -> Any:
    """The estimator of a contender, as its constructor makes it or with the tuned defaults."""
    library, _, how = name.partition("-")
    tuned = {"n_estimators": 1000, **TUNED[library, classify]} if how == "tuned" else {}
    if library.startswith("sapwood"):
        import sapwood

        variant = dict(p.split("=") for p in name.partition(":")[2].split(",") if p)
        params = {k: json.loads(v) if v[:1] in "-0123456789[" else v for k, v in variant.items()}
        return (sapwood.SapwoodClassifier if classify else sapwood.SapwoodRegressor)(random_state=seed, **params)
    if library == "lightgbm":
        import lightgbm as lgb

        more = {"subsample_freq": 1, "min_sum_hessian_in_leaf": 1e-7} if tuned else {}
        cls = lgb.LGBMClassifier if classify else lgb.LGBMRegressor
        return cls(random_state=seed, verbose=-1, **tuned, **more)
    if library == "xgboost":
        import xgboost as xgb

        more = {"reg_lambda": 0.0, "early_stopping_rounds": 300} if tuned else {}
        return (xgb.XGBClassifier if classify else xgb.XGBRegressor)(random_state=seed, **tuned, **more)
    if library == "catboost":
        import catboost as cb

        cls = cb.CatBoostClassifier if classify else cb.CatBoostRegressor
        return cls(random_seed=seed, verbose=0, allow_writing_files=False)
    if library == "sklearn":
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        return (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(random_state=seed)
    raise ValueError(name)


def child(folder: str, name: str, data: str, task: str, seed: int) -> None:
    """Fit and predict once; print loss and seconds."""
    warnings.filterwarnings("ignore")
    X, y, Xt, yt = load(folder or None, data, seed)
    classify = task != "regression"
    start = time.perf_counter()
    model, more = build(name, classify, seed), {}
    if name.endswith("-tuned"):
        order = np.random.default_rng(1_000 + seed).permutation(len(y))
        kept, held = np.split(order, [int(0.8 * len(y))])
        more = {"eval_set": [(X[held], y[held])]}
        X, y = X[kept], y[kept]
        if name == "xgboost-tuned":
            more["verbose"] = False
        else:
            import lightgbm as lgb

            more["callbacks"] = [lgb.early_stopping(300, verbose=False)]
    model.fit(X, y, **more)
    out = model.predict_proba(Xt) if classify else model.predict(Xt)
    print(json.dumps({"loss": loss(task, yt, out), "seconds": time.perf_counter() - start}))


def compare(kept: dict[str, Any], ours: str, sets: list[str]) -> None:
    """Print our loss over each peer's; `kept[contender][data set][seed] = {loss, seconds}`."""

    def ratio(peer: str, d: str) -> float | None:
        mine, theirs = kept[ours].get(d, {}), kept[peer].get(d, {})
        logs = [
            np.log(mine[s]["loss"] / theirs[s]["loss"]) for s in mine if {"loss"} <= mine[s].keys() & theirs.get(s, {})
        ]
        return float(np.exp(np.mean(logs))) if logs else None

    peers = [name for name in kept if not name.startswith("sapwood")]
    print(f"\n{ours}: its loss over each peer's, by data set (below 1 is better)")
    won, places = 0, []
    for d in sets:
        row = {c: r for c in peers if (r := ratio(c, d)) is not None}
        if not row:
            continue
        worst, by = max((r, c) for c, r in row.items())
        won += worst < 1
        places.append(1 + sum(r > 1 for r in row.values()))
        print(f"{d:22}{worst:8.4f} of the best peer ({by}){'  won' if worst < 1 else ''}")
    if not places:
        print("nothing to compare")
        return
    print(f"\nwon {won} of {len(places)}; mean place {np.mean(places):.2f} among up to {len(peers) + 1}")
    for c in peers:
        logs = np.log([r for d in sets if (r := ratio(c, d)) is not None])
        if len(logs):
            error = np.std(logs) / max(len(logs) - 1, 1) ** 0.5
            mean = f"geometric mean {np.exp(logs.mean()):.4f} (standard error {error:.4f})"
            print(
                f"  against {c:18}{mean}, median {np.exp(np.median(logs)):.4f}, wins {(logs < 0).sum()} of {len(logs)}"
            )


def main() -> None:
    """Run every contender on every data set and compare."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:6], int(sys.argv[6]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=CONTENDERS, help="contenders to run")
    parser.add_argument("--data", help="folder with the parquet files and index.json")
    parser.add_argument("--data-set", nargs="*", help="some data sets")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--keep", help="file that keeps the figures; what it has is not run again")
    parser.add_argument("--limit", type=int, default=1_200, help="seconds for one fit")
    args = parser.parse_args()
    known = tasks(args.data)
    sets = [name for name in known if not args.data_set or name in args.data_set]
    keep = Path(args.keep) if args.keep else None
    kept = json.loads(keep.read_text()) if keep and keep.exists() else {}
    for name in args.only:
        if not importlib.util.find_spec(name.replace(":", "-").split("-")[0]):
            print(f"{name} is not installed here, so not compared")
            continue
        for d, seed in ((d, s) for d in sets for s in range(args.seeds)):
            figures = kept.setdefault(name, {}).setdefault(d, {})
            if "loss" in figures.get(str(seed), {}):
                continue
            command = [sys.executable, __file__, "--child", args.data or "", name, d, known[d], str(seed)]
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
                lines = run.stdout.strip().splitlines()
                failed = {"error": (run.stderr.strip().splitlines() or ["died"])[-1][:200]}
                got = json.loads(lines[-1]) if run.returncode == 0 and lines else failed
            except subprocess.TimeoutExpired:
                got = {"error": f"no answer in {args.limit} s"}
            shown = f"{got['loss']:.5f}  {got['seconds']:.1f} s" if "loss" in got else got["error"]
            print(f"{name:18} {d:22} seed {seed}  {shown}", flush=True)
            figures[str(seed)] = got
            if keep:
                keep.write_text(json.dumps(kept, indent=1))
    for name in kept:
        if name.startswith("sapwood"):
            compare(kept, name, sets)


if __name__ == "__main__":
    main()
