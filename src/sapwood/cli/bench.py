"""``sapwood bench``: how fast and how good is it on this machine and this file, beside
the peers that are installed?

In: a file and its target. Out: seconds to train and to predict, and a score on held-out
rows, for each library.
"""

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from sapwood import metric
from sapwood.cli import show
from sapwood.cli.settings import Settings
from sapwood.cli.show import Output
from sapwood.cli.train import held_of, rows_of, task_of
from sapwood.data.dataset import Dataset
from sapwood.errors import DataError
from sapwood.interfaces import target as targets
from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor

# (whether classes, rounds, threads) -> an estimator
Make = Callable[[bool, int, int | None], Any]

# library: (module of the estimators, regressor, classifier, arguments for rounds and
# threads)
PEERS: dict[str, tuple[str, str, str, Callable[[int, int], dict[str, Any]]]] = {
    "lightgbm": (
        "lightgbm",
        "LGBMRegressor",
        "LGBMClassifier",
        lambda n, t: {
            "n_estimators": n,
            "n_jobs": t,
            "num_leaves": 31,
            "verbosity": -1,
        },
    ),
    "xgboost": (
        "xgboost",
        "XGBRegressor",
        "XGBClassifier",
        lambda n, t: {
            "n_estimators": n,
            "n_jobs": t,
            "max_leaves": 31,
            "max_depth": 0,
            "learning_rate": 0.1,
            "grow_policy": "lossguide",
            "tree_method": "hist",
        },
    ),
    "catboost": (
        "catboost",
        "CatBoostRegressor",
        "CatBoostClassifier",
        lambda n, t: {
            "iterations": n,
            "thread_count": t,
            "learning_rate": 0.1,
            "verbose": 0,
            "allow_writing_files": False,
        },
    ),
    "scikit-learn": (
        "sklearn.ensemble",
        "HistGradientBoostingRegressor",
        "HistGradientBoostingClassifier",
        lambda n, t: {"max_iter": n, "early_stopping": False},
    ),
}


def bench(
    path: Path,
    settings: Settings,
    rounds: int,
    n_threads: int,
    repeat: int,
    output: Output,
) -> None:
    """Train each library on the same numbers, and print a line for each."""
    table, y, _ = rows_of(path, settings, output)
    kind = task_of(y, settings, output)
    classes = kind == "classification"
    held = held_of(table, y, kind, settings)
    X = _numbers(table, output)
    label = (
        targets.classes(np.asarray(y))[1].astype(np.int64)
        if classes
        else np.asarray(y, np.float64)
    )
    several = classes and label.max() > 1
    what = "logloss" if classes else "rmse"
    rows = []
    found: dict[str, Any] = {}
    for name, make in _libraries(rounds, n_threads).items():
        fits = []
        predicts = []
        value = 0.0
        for _ in range(repeat):
            model = make(classes)
            start = time.perf_counter()
            model.fit(X[~held], label[~held])
            fits.append(time.perf_counter() - start)
            start = time.perf_counter()
            p = model.predict_proba(X[held]) if classes else model.predict(X[held])
            predicts.append(time.perf_counter() - start)
            p = np.asarray(p, np.float64)
            p = p if not classes or several else np.ascontiguousarray(p[:, 1])
            value = getattr(metric, what)(label[held].astype(np.float64), p, None)
        rows.append(
            [
                name,
                f"{min(fits):.3f}",
                f"{1e6 * min(predicts) / held.sum():.2f}",
                show.number(value),
            ]
        )
        found[name] = {
            "fit_seconds": min(fits),
            "predict_seconds": min(predicts),
            what: value,
        }
        output.say(f"{name}: {min(fits):.2f} s")
    about = f"{rounds} rounds of 31 leaves (CatBoost: depth 6), {n_threads} threads, {int((~held).sum()):,} rows"
    text = show.table(rows, ["library", "fit, s", "predict, us a row", what])
    output.result(f"{about}\n{text}", libraries=found, rounds=rounds, threads=n_threads)


def _libraries(rounds: int, n_threads: int) -> dict[str, Callable[[bool], Any]]:
    """The libraries that are installed, each as a function of whether classes are
    predicted.
    """

    def ours(classes: bool) -> Any:
        make = SapwoodClassifier if classes else SapwoodRegressor
        return make(
            n_estimators=rounds,
            n_jobs=n_threads,
            max_leaves=31,
            max_depth=None,
            grow_policy="leafwise",
        )

    found: dict[str, Callable[[bool], Any]] = {"sapwood": ours}
    for name, (module, regressor, classifier, arguments) in PEERS.items():
        if find_spec(module.partition(".")[0]) is not None:

            def make(
                classes: bool,
                names: Any = (module, regressor, classifier),
                arguments: Any = arguments,
            ) -> Any:
                return getattr(import_module(names[0]), names[1 + classes])(
                    **arguments(rounds, n_threads)
                )

            found[name] = make
    return found


def _numbers(table: Any, output: Output) -> Any:
    """The columns as float32, categories as codes and dates as seconds, so that all
    libraries see the same.
    """
    data = Dataset(table)
    columns = []
    left = []
    for j, name in enumerate(table.column_names):
        values = (
            data.binned.codes(j) if j in data.categories else table.column(j).to_numpy()
        )
        if values.dtype.kind == "M":
            values = np.where(
                np.isnat(values), np.nan, values.astype("M8[s]").astype(np.float64)
            )
        if values.dtype.kind == "O":
            left.append(name)
        else:
            columns.append(np.asarray(values, np.float32))
    if left:
        output.warn(
            f"the peers take numbers and categories only; {', '.join(map(repr, left))} is left out for all."
        )
    if not columns:
        raise DataError("no column has numbers or categories.")
    return np.column_stack(columns)
