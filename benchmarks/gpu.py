"""Milliseconds per tree and seconds of a whole fit on a GPU.

In: a GPU with CuPy. Out: a table; the settings are those of benchmarks/gpu.md, whose
figures of XGBoost are printed beside ours.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.device import get
from sapwood.device.cuda import growing
from sapwood.device.threads import threads

XGBOOST = {  # 3.4.1 on an H200, depth-wise, ms per tree: (rows, columns, depth)
    (100_000, 28, 6): 1.45,
    (100_000, 28, 8): 2.94,
    (1_000_000, 28, 6): 2.42,
    (1_000_000, 28, 8): 4.87,
    (10_000_000, 28, 6): 8.92,
    (10_000_000, 28, 8): 13.8,
    (1_000_000, 200, 6): 5.22,
    (1_000_000, 200, 8): 8.45,
}
PARAMS = {
    "objective": "logistic",
    "learning_rate": 0.1,
    "reg_lambda": 1.0,
    "min_child_weight": 1.0,
    "start": 0.0,
}
PARAMS |= {"min_samples_leaf": 1, "path_smooth": 0.0}


def table(
    n_rows: int, n_columns: int
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The table of the measurements: normal columns, ten of which matter."""
    draws = np.random.default_rng(0)
    X = draws.standard_normal((n_rows, n_columns), dtype=np.float32)
    z = (
        X[:, 0] * X[:, 1]
        + np.sin(3 * X[:, 2])
        + 0.5 * X[:, 3] ** 2
        - 0.5
        + (X[:, 4] > 0.3) * X[:, 5]
    )
    z += 0.3 * X[:, 6] * X[:, 7] * X[:, 8] + 0.4 * X[:, 9]
    return X, (z + draws.logistic(size=n_rows) > 0).astype(np.float64)


def per_tree(data: sapwood.Dataset, params: dict[str, Any], rounds: int) -> float:
    """Milliseconds per tree after 20 rounds of warm-up, in a loop of trainer calls; the
    better of two.
    """
    label = np.ascontiguousarray(data.label[None, :])  # type: ignore[index]
    trainer: Any = data.device.Trainer(data.binned, label, None, "logistic", {}, 1, 1)
    trainer.fill_scores(np.zeros(1))
    limits = dict.fromkeys(
        (
            "max_depth",
            "max_leaves",
            "reg_alpha",
            "min_split_gain",
            "max_delta_step",
            "path_smooth",
        ),
        0,
    )
    limits |= dict.fromkeys(("min_child_weight", "min_samples_leaf", "reg_lambda"), 1)
    limits |= dict.fromkeys(
        ("colsample_bytree", "colsample_bylevel", "colsample_bynode"), 1
    )
    shape: dict[str, float] = {
        name: value for name, value in params.items() if name != "grow_policy"
    }

    def run(first: int, n: int) -> float:
        trainer.runtime.wait()
        start = time.perf_counter()
        for turn in range(first, first + n):
            trainer.gradients("auto")
            trainer.sample(0, turn, None)
            trainer.grow(
                params["grow_policy"], limits | shape | {"learning_rate": 0.1}, 0, turn
            )
            trainer.add_scores(0)
        trainer.runtime.wait()
        return (time.perf_counter() - start) / n * 1e3

    run(0, 20)
    return min(run(20, rounds), run(20 + rounds, rounds))


def predictions(data: sapwood.Dataset, X: NDArray[np.float32]) -> None:
    """Predictions of 500 trees of depth 6, from the host and from an array in device
    memory, and Shapley values.
    """
    import cupy

    booster = sapwood.train({**PARAMS, "max_depth": 6, "n_estimators": 500}, data)
    for where, table_there in (("host", X), ("device", cupy.asarray(X))):
        took = seconds(
            lambda table_there=table_there: booster.predict(table_there, raw=True), 5
        )  # type: ignore[misc]
        print(
            f"  500 trees of depth 6 on {len(X)} rows, from the {where}: {took * 1e3:.1f} ms",
            flush=True,
        )
    on_cpu = dataclasses.replace(booster, device=get("cpu"))
    for name, model, n_rows in (
        ("GPU", booster, 100_000),
        ("GPU", booster, len(X)),
        ("CPU", on_cpu, 100_000),
    ):
        core: Any = model._explainer
        given = X[:n_rows], None, False, 0, model.trees.n_trees, threads(None)
        took = seconds(lambda core=core, given=given: core.explain(*given), 2)  # type: ignore[misc]
        print(f"  Shapley values of {n_rows} rows, {name}: {took:.3f} s", flush=True)


def validation(X: NDArray[np.float32], y: NDArray[np.float64]) -> None:
    """Trainings with a fifth of the rows as validation rows, and with a tenth held
    out.
    """
    n = len(X) * 4 // 5
    data = sapwood.Dataset(X[:n], label=y[:n], device="cuda", max_bins=255)
    valid = sapwood.Dataset(X[n:], label=y[n:], reference=data)
    params = {**PARAMS, "max_depth": 6, "n_estimators": 200}
    tasks: dict[str, Callable[[], object]] = {
        "no validation rows": lambda: sapwood.train(params, data),
        "logloss": lambda: sapwood.train(
            {**params, "eval_metric": "logloss"}, data, valid=valid
        ),
        "logloss, auc": lambda: sapwood.train(
            {**params, "eval_metric": ["logloss", "auc"]}, data, valid=valid
        ),
        "10 % held out": lambda: sapwood.train(
            {**params, "early_stopping_rounds": 300}, data
        ),
    }
    for name, work in tasks.items():
        print(f"  200 rounds on {n} rows, {name}: {seconds(work, 2):.3f} s", flush=True)


CLASSES = {
    "leafwise, 31 leaves": {"grow_policy": "leafwise", "max_leaves": 31},
    "depthwise, depth 6": {"grow_policy": "depthwise", "max_depth": 6},
    "symmetric, depth 6": {"grow_policy": "symmetric", "max_depth": 6},
}


def classes(X: NDArray[np.float32]) -> None:
    """Trainings of seven classes, 30 rounds: a tree a class, and vector leaves; on the
    CPU once.
    """
    z = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.5 * X[:, 3]
    label = np.digitize(z, np.quantile(z, np.arange(1, 7) / 7)).astype(np.float64)
    sets = {
        name: sapwood.Dataset(X, label=label, device=name, max_bins=255)
        for name in ("cuda", "cpu")
    }
    for grower, limits in CLASSES.items():
        for kind, more in {
            "a tree a class": {},
            "vector leaves": {"multi_strategy": "multi_output_tree"},
        }.items():
            params = {
                "objective": "softmax",
                "learning_rate": 0.1,
                "n_estimators": 30,
                **limits,
                **more,
            }
            took = {
                name: seconds(
                    lambda params=params, name=name: sapwood.train(params, sets[name]),
                    turns,
                )  # type: ignore[misc]
                for name, turns in (("cuda", 4), ("cpu", 1))
            }
            print(
                f"  7 classes, {grower}, {kind}: GPU {took['cuda']:.3f} s, CPU {took['cpu']:.2f} s",
                flush=True,
            )


FORESTS: dict[str, dict[str, Any]] = {
    "forest of 64 trees": {"boosting": "forest", "n_estimators": 64},
    "2 rounds of 32 copies": {
        "n_parallel_trees": 32,
        "n_estimators": 2,
        "learning_rate": 0.1,
    },
}
GROWERS: dict[str, dict[str, Any]] = {
    "depthwise, depth 6": {"grow_policy": "depthwise", "max_depth": 6},
    "leafwise, 63 leaves": {"grow_policy": "leafwise", "max_leaves": 63},
}


def forests(n_rows: int = 100_000) -> None:
    """Milliseconds per tree of forests and of copies of a round: side by side, and one
    after the other.
    """
    X, y = table(n_rows, 28)
    data = sapwood.Dataset(X, label=y, device="cuda", max_bins=255)
    known = {name: PARAMS[name] for name in PARAMS if name != "learning_rate"}
    most = growing.MAX_BESIDE
    print(
        f"{n_rows} x 28, ms per tree of 64, subsample 0.6: side by side, one after the other",
        flush=True,
    )
    for kind, loop in FORESTS.items():
        for grower, limits in GROWERS.items():
            params = {**known, **limits, **loop, "subsample": 0.6}
            took = []
            models = []
            for limit in (most, 1):
                growing.MAX_BESIDE = limit
                models.append(sapwood.train(params, data).to_bytes())
                took.append(
                    seconds(lambda params=params: sapwood.train(params, data), 3)
                    / 64
                    * 1e3
                )  # type: ignore[misc]
            growing.MAX_BESIDE = most
            same = "the same bytes" if models[0] == models[1] else "OTHER BYTES"
            times = f"{took[0]:.3f}, {took[1]:.3f} ({took[1] / took[0]:.1f} times)"
            print(f"  {kind}, {grower}: {times}, {same}", flush=True)


def lines(n_rows: int = 100_000) -> None:
    """Milliseconds per tree with linear leaves, and with constant ones; on the CPU
    once.
    """
    X, y = table(n_rows, 28)
    sets = {
        (name, linear): sapwood.Dataset(
            X, label=y, device=name, max_bins=255, linear_leaves=linear
        )
        for name, linear in (("cuda", False), ("cuda", True), ("cpu", True))
    }
    print(
        f"{n_rows} x 28, ms per tree of 50: constant leaves, linear leaves, linear leaves on the CPU",
        flush=True,
    )
    for units in ("raw", "standard"):
        for grower, limits in GROWERS.items():
            params = {**PARAMS, **limits, "n_estimators": 50}
            linear = {**params, "linear_leaves": True, "linear_units": units}
            took = [
                seconds(lambda own=own, at=at: sapwood.train(own, sets[at]), turns)
                / 50
                * 1e3  # type: ignore[misc]
                for own, at, turns in (
                    (params, ("cuda", False), 3),
                    (linear, ("cuda", True), 3),
                    (linear, ("cpu", True), 1),
                )
            ]
            print(
                f"  {units} units, {grower}: {took[0]:.3f}, {took[1]:.3f}, {took[2]:.3f}",
                flush=True,
            )


def folds(data: sapwood.Dataset) -> None:
    """Five folds of 100 rounds, with `logloss` after each."""
    for grower, limits in CLASSES.items():
        params = {**PARAMS, **limits, "n_estimators": 100, "eval_metric": "logloss"}
        took = seconds(lambda params=params: sapwood.cv(params, data, n_folds=5), 3)  # type: ignore[misc]
        print(f"  5 folds, {grower}: {took:.3f} s", flush=True)


def seconds(work: Callable[[], object], turns: int) -> float:
    """The best of some turns."""
    took = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", default="100000x28,1000000x28,10000000x28,1000000x200"
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument(
        "--forests", action="store_true", help="the table of forests alone"
    )
    parser.add_argument(
        "--lines", action="store_true", help="the table of linear leaves alone"
    )
    given = parser.parse_args()
    if given.forests or given.lines:
        return forests() if given.forests else lines()
    ratios = []
    for size in given.tables.split(","):
        n_rows, n_columns = map(int, size.split("x"))
        X, y = table(n_rows, n_columns)
        fits = []
        for _ in range(3):
            start = time.perf_counter()
            data = sapwood.Dataset(X, label=y, device="cuda", max_bins=255)
            sapwood.train({**PARAMS, "max_depth": 6, "n_estimators": 100}, data)
            fits.append(time.perf_counter() - start)
        print(
            f"{size}: whole fit of depth 6, 100 rounds: {fits[0]:.2f} s, again {min(fits[1:]):.2f} s",
            flush=True,
        )
        tasks: list[dict[str, Any]] = [
            {"grow_policy": "depthwise", "max_depth": depth} for depth in (6, 8)
        ]
        tasks += [{"grow_policy": "symmetric", "max_depth": depth} for depth in (6, 8)]
        tasks += [
            {"grow_policy": "leafwise", "max_leaves": leaves} for leaves in (63, 255)
        ]
        for params in tasks:
            ms = per_tree(data, params, given.rounds)
            depth = (
                params.get("max_depth", 0)
                if params["grow_policy"] == "depthwise"
                else 0
            )
            theirs = XGBOOST.get((n_rows, n_columns, depth))
            beside = (
                ""
                if theirs is None
                else f"  XGBoost {theirs:5.2f} ms, {theirs / ms:4.1f} times ours"
            )
            ratios += [] if theirs is None else [theirs / ms]
            print(f"  {params!s:45} {ms:7.3f} ms per tree{beside}", flush=True)
        if n_columns == 28 and n_rows <= 1_000_000:
            classes(X)
            folds(data)
            forests(n_rows)
            lines(n_rows)
        if (n_rows, n_columns) == (1_000_000, 28):
            predictions(data, X)
            validation(X, y)
    if ratios:
        print(
            f"geometric mean over {len(ratios)}: {np.exp(np.mean(np.log(ratios))):.2f} times"
        )


if __name__ == "__main__":
    main()
