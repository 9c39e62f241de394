"""``sapwood tune``: a bounded search for parameters, by Optuna where it is installed,
else at random.

In: a file and its target. Out: the best parameters, and a TOML file for ``sapwood train
--config`` if asked for.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sapwood.boost.cv import cv
from sapwood.boost.round.callback import Round
from sapwood.cli import outputs, show, tables
from sapwood.cli.settings import Settings
from sapwood.cli.show import Output
from sapwood.cli.train import rows_of, task_of
from sapwood.data.dataset import Dataset
from sapwood.device import elementary
from sapwood.errors import ParameterError
from sapwood.interfaces import target as targets
from sapwood.metric import METRICS
from sapwood.printable import printable
from sapwood.system import kinds, writing

MAX_ROUNDS = 2000
PATIENCE = 40
# name: (low, high, on a logarithmic scale, whole numbers)
SPACE: dict[str, tuple[float, float, bool, bool]] = {
    "learning_rate": (0.02, 0.2, True, False),
    "max_leaves": (7, 127, True, True),
    "min_child_weight": (0.1, 30.0, True, False),
    "reg_lambda": (0.01, 30.0, True, False),
    "subsample": (0.5, 1.0, False, False),
    "colsample_bytree": (0.4, 1.0, False, False),
}
GROWERS = ("leafwise", "depthwise", "symmetric")


class _Pruned(Exception):
    """A trial that is not worth finishing."""


def tune(
    path: Path,
    settings: Settings,
    n_trials: int,
    n_folds: int,
    to: Path | None,
    output: Output,
) -> None:
    """Search, and print the best trial."""
    if n_trials < 1 or n_folds < 2:
        raise ParameterError("--trials must be 1 or more, and --folds 2 or more.")
    tables.check_paths({"the file with the rows": path}, {"--output": to})
    outputs.check(to, kinds.SETTINGS, settings.force)
    table, y, weight = rows_of(path, settings, output)
    kind = task_of(y, settings, output)
    data, fixed = _dataset(table, y, weight, kind, settings)
    if settings.metric:
        fixed["eval_metric"] = settings.metric[0]
    found: list[tuple[float, int, dict[str, Any]]] = []
    begun = 0
    end = time.monotonic() + (
        float("inf") if settings.time_limit is None else settings.time_limit
    )
    metric = ""

    def measure(chosen: dict[str, Any], watch: Callable[[Round], bool]) -> float:
        """The mean of the metric over the folds, at the best round; lower is better."""
        nonlocal metric, begun
        begun += 1
        display.title = f"trial {begun} of {n_trials}"
        result = cv({**fixed, **chosen}, data, n_folds=n_folds, callbacks=[watch])
        metric = next(iter(result)).removesuffix("_mean")
        values = result[f"{metric}_mean"]
        higher = METRICS[metric.partition("@")[0]].higher_is_better
        best = int(values.argmax() if higher else values.argmin())
        found.append((float(values[best]), best + 1, chosen))
        shown = (
            ", ".join(f"{name}={_short(value)}" for name, value in chosen.items())
            or "the defaults"
        )
        output.say(
            f"trial {begun}: {metric} {values[best]:.5g} after {best + 1} rounds; {shown}"
        )
        return float(-values[best] if higher else values[best])

    search = _optuna if _has_optuna() else _random
    output.say(
        f"search: {'Optuna' if search is _optuna else 'at random'}, at most {n_trials} trials"
    )
    with show.progress(output) as display:
        search(measure, n_trials, end, settings.seed)
    if not found:
        raise ParameterError(
            "no trial was finished within --time-limit; give it more time."
        )
    higher = METRICS[metric.partition("@")[0]].higher_is_better
    value, rounds, best = max(found, key=lambda one: one[0] if higher else -one[0])
    params = {**best, "n_estimators": rounds}
    cut = f", {begun - len(found)} more stopped early" if begun > len(found) else ""
    lines = [
        f"best of {len(found)} trials{cut}: {metric} {value:.6g} (mean of {n_folds} folds, {rounds} rounds)"
    ]
    lines += [f"  {name} = {_short(one)}" for name, one in params.items()]
    output.result(
        "\n".join(map(printable, lines)),
        metric=metric,
        value=value,
        params=params,
        trials=len(found),
    )
    if to is not None:
        _write(to, settings, kind, {**settings.params, **params})
        output.result(
            printable(f"written to {to}: sapwood train {path} --config {to}"),
            output=str(to),
        )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value)


def _dataset(
    table: Any, y: Any, weight: Any, kind: str, settings: Settings
) -> tuple[Dataset, dict[str, Any]]:
    """The rows in bins, and the parameters that all trials share."""
    fixed: dict[str, Any] = {
        "n_estimators": MAX_ROUNDS,
        "early_stopping_rounds": PATIENCE,
    }
    fixed |= {
        "random_state": settings.seed,
        "n_jobs": settings.threads,
        **settings.params,
    }
    label = y
    if kind == "classification":
        classes, label = targets.classes(np.asarray(y))
        fixed.setdefault("objective", "logistic" if len(classes) == 2 else "softmax")
        if len(classes) > 2:
            fixed["n_classes"] = len(classes)
    return Dataset(table, label, weight), fixed


def _has_optuna() -> bool:
    from importlib.util import find_spec

    return find_spec("optuna") is not None


def _draws(seed: int) -> Iterator[dict[str, Any]]:
    """Parameters at random; the first trial has the defaults."""
    yield {}
    rng = np.random.default_rng(seed)
    while True:
        chosen: dict[str, Any] = {
            "grow_policy": GROWERS[int(rng.integers(len(GROWERS)))]
        }
        for name, (low, high, by_log, whole) in SPACE.items():
            at = rng.random()
            value = _between(low, high, at) if by_log else low + at * (high - low)
            chosen[name] = round(value) if whole else float(value)
        yield _fitting(chosen)


def _between(low: float, high: float, at: float) -> float:
    """The number at a place from 0 to 1 between two others on a logarithmic scale."""
    start = elementary.log(low)
    return float(elementary.exp(start + at * (elementary.log(high) - start)))


def _fitting(chosen: dict[str, Any]) -> dict[str, Any]:
    """Depth instead of leaves for symmetric trees, which have a power of two of
    them.
    """
    if chosen.get("grow_policy") == "symmetric":
        chosen["max_depth"] = max(
            2,
            round(
                float(elementary.log(chosen.pop("max_leaves")) / elementary.log(2.0))
            ),
        )
    return chosen


def _random(
    measure: Callable[..., float], n_trials: int, end: float, seed: int
) -> None:
    for _, chosen in zip(range(n_trials), _draws(seed), strict=False):
        late = [False]

        def watch(_: Round, late: list[bool] = late) -> bool:
            late[0] = time.monotonic() >= end
            if late[0]:
                raise _Pruned
            return False

        try:
            measure(chosen, watch)
        except _Pruned:
            return


def _optuna(
    measure: Callable[..., float], n_trials: int, end: float, seed: int
) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=min(10, max(2, n_trials // 3))
        ),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=30),
    )

    def trial_of(trial: Any) -> float:
        chosen: dict[str, Any] = {}
        if trial.number:  # the first one has the defaults
            chosen["grow_policy"] = trial.suggest_categorical("grow_policy", GROWERS)
            for name, (low, high, by_log, whole) in SPACE.items():
                if whole:
                    chosen[name] = trial.suggest_int(
                        name, int(low), int(high), log=by_log
                    )
                else:
                    chosen[name] = trial.suggest_float(name, low, high, log=by_log)

        def watch(view: Round) -> bool:
            value = next(iter(view.measured["cv"].values()))
            trial.report(
                -value if view.metrics[0].higher_is_better else value, view.index
            )
            if time.monotonic() >= end:
                trial.study.stop()
                raise optuna.TrialPruned
            if trial.should_prune():
                raise optuna.TrialPruned
            return False

        return measure(_fitting(chosen), watch)

    study.optimize(trial_of, n_trials=n_trials)


def _write(to: Path, settings: Settings, kind: str, params: dict[str, Any]) -> None:
    """A TOML file that ``sapwood train --config`` reads."""
    lines = [kinds.TOML_MARK, f"target = {_toml(settings.target)}", f'task = "{kind}"']
    lines += [f"drop = {_toml(settings.drop)}"] if settings.drop else []
    lines += [f"weight = {_toml(settings.weight)}"] if settings.weight else []
    lines += [
        "",
        "[params]",
        *(f"{name} = {_toml(value)}" for name, value in params.items()),
    ]
    writing.write(to, ("\n".join(lines) + "\n").encode())


def _toml(value: Any) -> str:
    """A value as TOML has it: as JSON, but without halves of characters, and with no
    DEL.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
