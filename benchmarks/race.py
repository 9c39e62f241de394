"""The speed yardstick: sapwood against its peers, side by side in one run.

    python benchmarks/race.py                               every track, every contender that imports
    python benchmarks/race.py --track dense --rows 100000   some tracks, fewer rows
    python benchmarks/race.py --only sapwood lightgbm       some contenders (sapwood-goss only if named)
    python benchmarks/race.py --busy 2                      the same while 2 other processes keep the cores busy
    python benchmarks/race.py --json out.json               keep the figures

Every measurement is a fresh process (its own threads, its own peak memory). The
contenders take turns, `--turns` of them, and each keeps its best time, so that a noisy
machine hurts all alike. Only the ratios mean anything: an absolute time is not stable
from one machine to the next.

A contender is matched on what decides the work: rounds, learning rate, leaves or depth,
bins, threads, and L2 = 1; nobody samples rows or columns (the limits on leaf size stay
each library's own). A faster time with a worse test loss is no win, so the loss stands
beside every time, and a verdict needs a loss of at most 1.005 x that of the fastest
peer. A peer that reaches a lower loss in more time (CatBoost takes ten Newton steps a
leaf) is named with both.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 100
RATE = 0.1
BINS = 255
LAMBDA = 1.0
CONTENDERS = [
    "sapwood",
    "lightgbm",
    "lightgbm-quantised",
    "xgboost",
    "catboost",
    "sklearn",
]


# --------------------------------------------------------------------------------------
# tracks
@dataclass(frozen=True)
class Track:
    """One kind of data and one shape of tree."""

    name: str
    rows: int
    columns: int
    shape: str  # leafwise | depthwise | symmetric
    size: int  # leaves for leafwise, depth otherwise
    task: str = "binary"  # binary | regression | multiclass
    kind: str = "dense"  # dense | lowcard | sparse | categorical


TRACKS = [
    Track("dense-leafwise", 1_000_000, 28, "leafwise", 63),
    Track("dense-deep", 1_000_000, 28, "leafwise", 255),
    Track("dense-depthwise", 1_000_000, 28, "depthwise", 6),
    Track("dense-symmetric", 1_000_000, 28, "symmetric", 6),
    Track("regression", 1_000_000, 28, "leafwise", 63, task="regression"),
    Track("wide", 50_000, 1_000, "leafwise", 31),
    Track("small", 5_000, 20, "leafwise", 31),
    Track("lowcard", 1_000_000, 40, "leafwise", 63, kind="lowcard"),
    Track("multiclass", 200_000, 40, "leafwise", 31, task="multiclass"),
    Track("sparse", 300_000, 1_000, "leafwise", 63, kind="sparse"),
    Track("categorical", 300_000, 12, "leafwise", 63, kind="categorical"),
]


def make(track: Track, rows: int, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Train and test halves of a track's data; the same bytes for every contender."""
    rng = np.random.default_rng(seed)
    n = rows + max(rows // 5, 1_000)
    f = track.columns
    if track.kind == "lowcard":  # most columns hold 2 to 16 distinct values
        levels = rng.choice([2, 2, 3, 4, 8, 16], size=f)
        X = (
            (rng.random((n, f), dtype=np.float32) * levels)
            .astype(np.int64)
            .astype(np.float32)
        )
        Z = (X - X.mean(0)) / np.maximum(X.std(0), 1e-6)
    elif track.kind == "sparse":  # one-hot blocks: 1 % of the cells are set
        from scipy import sparse

        block = 100
        at = np.concatenate(
            [rng.integers(0, block, (n, 1)) + first for first in range(0, f, block)],
            axis=1,
        )
        ends = np.arange(0, at.size + 1, at.shape[1])
        X = sparse.csr_matrix(
            (np.ones(at.size, np.float32), at.ravel(), ends), shape=(n, f)
        )
        Z = rng.standard_normal(f).astype(np.float32)[at]
    elif track.kind == "categorical":  # power-law categories, up to 20,000 of them
        sizes = [5, 12, 30, 60, 120, 300, 800, 2_000, 5_000, 10_000, 20_000, 50]
        X = np.stack(
            [(rng.random(n) ** 3 * size).astype(np.int32) for size in sizes], axis=1
        )
        Z = np.stack(
            [
                rng.standard_normal(size).astype(np.float32)[X[:, j]]
                for j, size in enumerate(sizes)
            ],
            axis=1,
        )
    else:
        X = Z = rng.standard_normal((n, f), dtype=np.float32)
    # Every interaction also has main effects: a greedy tree then finds them by merit,
    # not by luck.
    z = (Z[:, 0] + 0.7) * (Z[:, 1] + 0.7) + np.sin(3 * Z[:, 2]) + 0.5 * Z[:, 3] ** 2 - 1
    z = (
        z
        + (Z[:, 4] > 0.3) * Z[:, 5]
        + 0.3 * (Z[:, 6] + 0.7) * (Z[:, 7] + 0.7) * (Z[:, 8] + 0.7)
        + 0.4 * Z[:, 9]
    )
    if track.task == "regression":
        y = z + rng.standard_normal(n)
    elif track.task == "multiclass":
        y = np.digitize(
            z + rng.logistic(size=n), np.quantile(z, [0.1, 0.25, 0.4, 0.6, 0.75, 0.9])
        )
    else:
        y = z + rng.logistic(size=n) > 0
    y = y.astype(np.float32)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def loss(task: str, y: np.ndarray, out: np.ndarray) -> float:
    """Root mean squared error, or log loss."""
    if task == "regression":
        return float(np.sqrt(np.mean((y - out) ** 2)))
    p = np.clip(np.asarray(out, np.float64), 1e-9, 1 - 1e-9)
    return float(-np.log(p[np.arange(len(y)), y.astype(int)]).mean())


# --------------------------------------------------------------------------------------
# contenders
def build(name: str, track: Track, threads: int, rounds: int) -> Any:
    """A fitted-to-be estimator of contender `name`, matched to the track; None where it
    has no such shape.
    """
    classify = track.task != "regression"
    columns = list(range(track.columns)) if track.kind == "categorical" else None
    leaves, depth = (
        (track.size, 0) if track.shape == "leafwise" else (2**track.size, track.size)
    )
    if name.startswith("sapwood"):
        import sapwood

        size = (leaves, None) if track.shape == "leafwise" else (None, depth)
        return (sapwood.SapwoodClassifier if classify else sapwood.SapwoodRegressor)(
            n_estimators=rounds,
            learning_rate=RATE,
            grow_policy=track.shape,
            max_leaves=size[0],
            max_depth=size[1],
            max_bins=BINS,
            reg_lambda=LAMBDA,
            subsample=1.0,
            colsample_bytree=1.0,
            early_stopping_rounds=None,
            n_jobs=threads,
            sampling="goss" if name == "sapwood-goss" else "none",
            **({"categorical_features": columns} if columns else {}),
        )
    if name.startswith("lightgbm"):
        if track.shape != "leafwise":
            return None
        import lightgbm as lgb

        quantised = (
            {"use_quantized_grad": True, "quant_train_renew_leaf": True}
            if "quantised" in name
            else {}
        )
        return (lgb.LGBMClassifier if classify else lgb.LGBMRegressor)(
            n_estimators=rounds,
            learning_rate=RATE,
            num_leaves=leaves,
            max_bin=BINS,
            reg_lambda=LAMBDA,
            n_jobs=threads,
            verbose=-1,
            **quantised,
        )
    if name == "xgboost":
        if track.shape == "symmetric":
            return None
        import xgboost as xgb

        policy = (
            {"grow_policy": "lossguide", "max_leaves": leaves}
            if track.shape == "leafwise"
            else {}
        )
        return (xgb.XGBClassifier if classify else xgb.XGBRegressor)(
            n_estimators=rounds,
            learning_rate=RATE,
            max_depth=depth,
            max_bin=BINS + 1,
            reg_lambda=LAMBDA,
            tree_method="hist",
            n_jobs=threads,
            enable_categorical=columns is not None,
            **policy,
        )
    if name == "catboost":
        if track.shape == "depthwise":
            return None
        import catboost as cb

        symmetric = {"depth": depth}
        leafwise = {
            "grow_policy": "Lossguide",
            "max_leaves": min(leaves, 64),
            "depth": 16,
        }
        return (cb.CatBoostClassifier if classify else cb.CatBoostRegressor)(
            iterations=rounds,
            learning_rate=RATE,
            border_count=min(BINS, 254),
            l2_leaf_reg=LAMBDA,
            boosting_type="Plain",
            bootstrap_type="No",
            thread_count=threads,
            verbose=0,
            allow_writing_files=False,
            cat_features=columns,
            **(symmetric if track.shape == "symmetric" else leafwise),
        )
    if name == "sklearn":
        # 255 categories at most
        if track.shape == "symmetric" or track.kind in ("sparse", "categorical"):
            return None
        from sklearn.ensemble import (
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
        )

        return (
            HistGradientBoostingClassifier
            if classify
            else HistGradientBoostingRegressor
        )(
            max_iter=rounds,
            learning_rate=RATE,
            max_leaf_nodes=leaves,
            max_depth=depth or None,
            max_bins=BINS,
            l2_regularization=LAMBDA,
            early_stopping=False,
        )
    raise ValueError(name)


def frame(name: str, X: np.ndarray) -> Any:
    """Categories as a contender wants them."""
    import pandas as pd

    named = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    kinds = {
        column: pd.CategoricalDtype(range(int(of.max()) + 1))
        for column, of in named.items()
    }
    return named if name == "catboost" else named.astype(kinds)


def native(name: str, model: Any) -> Callable[[Any], Any]:
    """The library's own fastest way to predict a row, past the scikit-learn wrapper."""
    if name.startswith("sapwood"):
        return model.booster_.predict
    if name.startswith("lightgbm"):
        return lambda row: model.booster_.predict(row, num_threads=1)
    if name == "xgboost":
        return model.get_booster().inplace_predict
    return model.predict


def measure(
    name: str, track: Track, rows: int, threads: int, rounds: int, seed: int
) -> dict[str, float] | None:
    """Fit once and predict; the figures of one contender in this process."""
    X, y, Xt, yt = make(track, rows, seed)
    model = build(name, track, threads, rounds)
    if model is None:
        return None
    if track.kind == "categorical":
        both = frame(name, np.concatenate([X, Xt]))
        X = both[: len(y)]
        Xt = both[len(y) :]
    # imports and first-call set-up are not part of the race
    warm = build(name, track, threads, 1)
    warm.fit(X[:500], np.resize(np.unique(y), min(500, len(y))))
    base = memory("VmRSS", reset=True)
    start = time.perf_counter()
    model.fit(X, y)
    fit_s = time.perf_counter() - start
    peak_mb = memory("VmHWM") - base
    call = model.predict if track.task == "regression" else model.predict_proba
    call(Xt[:100])
    predict_s = min(timed(lambda: call(Xt)) for _ in range(3))
    single_us, native_us = (one_row(f, Xt[:1]) for f in (call, native(name, model)))
    return {
        "fit_s": fit_s,
        "predict_rows_per_s": len(yt) / predict_s,
        "single_row_us": single_us,
        "native_row_us": native_us,
        "extra_peak_mb": peak_mb,
        "loss": loss(track.task, yt, np.asarray(call(Xt))),
    }


def memory(field: str, reset: bool = False) -> float:
    """A memory figure of this process in MiB; `reset` starts the high-water mark
    anew.
    """
    if reset:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text().splitlines()
    return (
        next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024
    )


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def one_row(predict: Callable[[Any], Any], row: Any) -> float:
    """Microseconds of a prediction of one row: the best of five batches of twenty."""
    return 1e6 * min(
        timed(lambda: [predict(row) for _ in range(20)]) / 20 for _ in range(5)
    )


# --------------------------------------------------------------------------------------
# race
def race(
    track: Track, rows: int, names: list[str], args: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """The best figures of every contender over `--turns`, each turn a fresh process."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(args.turns):
        for name in names:
            numbers = [rows, args.threads, args.rounds, args.seed]
            command = [
                sys.executable,
                __file__,
                "--child",
                name,
                track.name,
                *map(str, numbers),
            ]
            env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, env=env, timeout=args.limit
                )
            except subprocess.TimeoutExpired:
                best[name] = {"error": f"no answer in {args.limit} s"}
                continue
            if done.returncode:
                best[name] = {
                    "error": (done.stderr.strip().splitlines() or ["died"])[-1][:160]
                }
                continue
            got = json.loads(done.stdout.strip().splitlines()[-1])
            if got is None:
                continue
            old = best.get(name)
            if not old or "error" in old:
                best[name] = got
                continue
            if got["loss"] != old["loss"]:
                print(
                    f"  note: {name} gave another loss on the same data: {old['loss']!r}, then {got['loss']!r}"
                )
            for key in ("fit_s", "single_row_us", "native_row_us", "extra_peak_mb"):
                old[key] = min(old[key], got[key])
            old["predict_rows_per_s"] = max(
                old["predict_rows_per_s"], got["predict_rows_per_s"]
            )
    return best


def report(
    track: Track, rows: int, got: dict[str, dict[str, Any]]
) -> dict[str, float] | None:
    """Print one track's table; the verdict where both sides ran."""
    print(
        f"\n{track.name}: {rows:,} x {track.columns} {track.kind} {track.task}, {track.shape} {track.size}"
    )
    heads = f"{'fit s':>9}{'predict rows/s':>16}{'1 row us':>10}{'native us':>11}{'peak MB':>9}{'test loss':>11}"
    print(f"  {'':20}{heads}")
    for name, r in got.items():
        if "error" in r:
            print(f"  {name:20} error: {r['error']}", flush=True)
            continue
        speed = f"{r['fit_s']:9.2f}{r['predict_rows_per_s']:16,.0f}{r['single_row_us']:10.0f}{r['native_row_us']:11.1f}"
        print(
            f"  {name:20}{speed}{r['extra_peak_mb']:9.0f}{r['loss']:11.5f}", flush=True
        )
    peers = {
        k: v for k, v in got.items() if not k.startswith("sapwood") and "error" not in v
    }
    ours = got.get("sapwood")
    if not ours or "error" in ours or not peers:
        return None
    fastest = min(peers.values(), key=lambda p: p["fit_s"])
    verdict = {
        "fit": fastest["fit_s"] / ours["fit_s"],
        "predict": ours["predict_rows_per_s"]
        / max(p["predict_rows_per_s"] for p in peers.values()),
        "single_row": min(p["single_row_us"] for p in peers.values())
        / ours["single_row_us"],
        "native_row": min(p["native_row_us"] for p in peers.values())
        / ours["native_row_us"],
        "memory": min(p["extra_peak_mb"] for p in peers.values())
        / max(ours["extra_peak_mb"], 1),
        "loss": ours["loss"] / fastest["loss"],
    }
    ratios = ", ".join(f"{k} {v:.2f}x" for k, v in verdict.items())
    print(
        f"  sapwood against the best peer of each column: {ratios}  (loss against the fastest peer: at most 1.005)"
    )
    for name, p in peers.items():
        if p["loss"] < ours["loss"] / 1.005:
            share = p["loss"] / ours["loss"]
            times = p["fit_s"] / ours["fit_s"]
            print(
                f"  {name} reaches {share:.4f} of our loss in {times:.1f} times our time"
            )
    return verdict


def main() -> None:
    """Run the race."""
    if sys.argv[1:2] == ["--child"]:
        name, track_name, *numbers = sys.argv[2:]
        track = next(t for t in TRACKS if t.name == track_name)
        print(json.dumps(measure(name, track, *map(int, numbers))))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--track", nargs="*", help="tracks whose name starts with one of these"
    )
    parser.add_argument("--only", nargs="*", default=CONTENDERS, help="contenders")
    parser.add_argument("--rows", type=int, help="most rows of a track")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--limit", type=int, default=900, help="seconds for one contender's run"
    )
    parser.add_argument(
        "--busy",
        type=int,
        default=0,
        help="processes that spin on the side, as neighbours do",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="file for the figures")
    args = parser.parse_args()
    names = [n for n in args.only if importlib.util.find_spec(n.split("-")[0])]
    if absent := [n for n in args.only if n not in names]:
        print("not installed here, so not in the race:", ", ".join(absent))
    neighbours = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(args.busy)
    ]
    atexit.register(lambda: [p.kill() for p in neighbours])
    kept = {}
    verdicts = []
    for track in TRACKS:
        if args.track and not track.name.startswith(tuple(args.track)):
            continue
        rows = min(track.rows, args.rows or track.rows)
        got = race(track, rows, names, args)
        verdict = report(track, rows, got)
        kept[track.name] = {"figures": got, "verdict": verdict}
        if verdict:
            verdicts.append(verdict)
    if verdicts:
        means = {
            k: np.exp(np.mean([np.log(max(v[k], 1e-9)) for v in verdicts]))
            for k in verdicts[0]
        }
        line = ", ".join(f"{k} {mean:.2f}x" for k, mean in means.items())
        print(f"\ngeometric means over {len(verdicts)} tracks: {line}")
    if args.json:
        Path(args.json).write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
