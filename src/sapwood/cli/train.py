"""``sapwood train``: from a file to a model.

In: a file, the name of its target, settings from flags or a TOML file. Out: scores; the model file if asked for.
"""

import time
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost.round.callback import Callback
from sapwood.cli import show, subject, tables
from sapwood.cli.show import Output
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor
from sapwood.metric import METRICS
from sapwood.report.scores import Score, scores

TASKS = ("auto", "regression", "classification")


@dataclass
class Settings:
    """Everything that flags and a TOML file can say; the names are those of the flags."""

    target: str | None = None
    output: Path | None = None
    task: str = "auto"
    valid: Path | None = None
    holdout: float | None = None
    save_holdout: Path | None = None
    folds: int | None = None
    time_column: str | None = None
    weight: str | None = None
    drop: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    quality: str | None = None
    time_limit: float | None = None
    metric: list[str] = field(default_factory=list)
    seed: int = 0
    threads: int | None = None
    params: dict[str, Any] = field(default_factory=dict)


PATHS = ("output", "valid", "save_holdout")


def settings_of(config: Path | None, flags: dict[str, Any]) -> Settings:
    """Settings of a TOML file, over which flags that were given win; paths in the file are relative to it."""
    known = [one.name for one in fields(Settings)]
    given: dict[str, Any] = {}
    if config is not None:
        tables.check_file(config)
        try:
            given = tomllib.loads(config.read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
            raise ParameterError(f"{config} is not TOML: {cause}.") from cause
        given = {name.replace("-", "_"): value for name, value in given.items()}
        for name in given:
            if name not in known:
                hint = suggest(name, known)
                raise ParameterError(f"{config} has {name!r}, which train does not know; {hint} Parameters: [params].")
        for name in PATHS:
            if name in given:
                given[name] = config.parent / str(given[name])
    params = {**given.pop("params", {}), **flags.pop("params", {})}
    given |= {name: value for name, value in flags.items() if value not in (None, [])}
    found = Settings(**given, params=params)
    for name in ("drop", "keep", "metric"):
        value = getattr(found, name)
        setattr(found, name, [value] if isinstance(value, str) else list(value))
    _check(found)
    return found


def _check(found: Settings) -> None:
    """Raise where settings do not go together."""
    if found.target is None:
        raise ParameterError("which column is to be predicted? Say --target NAME.")
    if found.task not in TASKS:
        raise ParameterError(f"task {found.task!r} is unknown; {suggest(found.task, TASKS)}")
    several = [name for name in ("valid", "holdout", "folds") if getattr(found, name) not in (None, 0)]
    if len(several) > 1:
        raise ParameterError(f"--{several[0]} and --{several[1]} are two ways to measure; give one.")
    if found.holdout is not None and not 0 <= found.holdout < 1:
        raise ParameterError(f"--holdout {found.holdout} is not a share of the rows; give 0.2, say, or 0 for none.")
    if found.folds is not None and found.folds < 2:
        raise ParameterError(f"--folds {found.folds} is too few; give 2 or more.")
    if found.save_holdout is not None and (found.valid or found.folds or found.holdout == 0):
        raise ParameterError("--save-holdout writes the rows of --holdout, but none are held out here.")
    for name in ("metric",):
        for one in getattr(found, name):
            if one.partition("@")[0].lower() not in METRICS:
                raise ParameterError(f"metric {one!r} is unknown; {suggest(one, METRICS)}")


def parameter(text: str) -> tuple[str, Any]:
    """``name=value`` as a name and a value: a number, a boolean, a list as TOML writes them, or else text."""
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise ParameterError(f"{text!r} is no parameter; write name=value, such as max_depth=6.")
    if value.strip() in ("none", "None", "null"):
        return name.strip(), None
    try:
        return name.strip(), tomllib.loads(f"x = {value.strip().replace('True', 'true').replace('False', 'false')}")[
            "x"
        ]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def train(path: Path, settings: Settings, output: Output) -> None:
    """Train on a file, measure, and write the model if asked for."""
    table, y, weight = rows_of(path, settings, output)
    for path_ in (settings.output, settings.save_holdout):
        if path_ is not None:
            tables.check_folder(path_)  # before the work, not after it
    kind = task_of(y, settings, output)
    y = np.asarray(y.astype(str), object) if kind == "classification" and y.dtype.kind == "O" else y
    start = time.monotonic()
    if settings.folds:
        _cross_validate(table, y, weight, kind, settings, output)
        model = _fit(table, y, weight, kind, settings, output)
        booster = model.booster_
    elif settings.valid is not None:
        model = _fit(table, y, weight, kind, settings, output)
        booster = model.booster_
        X, label = subject.labelled(booster, settings.valid, settings.target, output)
        say_scores(scores(booster, label, booster.predict(X), tuple(settings.metric)), str(settings.valid), output)
    else:
        held = held_of(table, y, kind, settings)
        if held.any() and settings.save_holdout is not None:
            whole = tables.read(path)
            whole = subject.without_missing(whole, str(settings.target), Output(True))
            tables.write(settings.save_holdout, [whole.filter(held)])
            output.say(f"{int(held.sum()):,} held-out rows written to {settings.save_holdout}")
        part = None if weight is None else weight[~held]
        model = _fit(table.filter(~held), y[~held], part, kind, settings, output)
        booster = model.booster_
        if held.any():
            found = scores(booster, y[held], booster.predict(table.filter(held)), tuple(settings.metric))
            say_scores(found, f"{int(held.sum()):,} held-out rows", output)
    seconds = time.monotonic() - start
    chosen = getattr(booster, "chosen", None)
    if chosen is not None:
        output.say(str(chosen))
    about = {"rows": len(y), "columns": booster.n_columns, "rounds": booster.n_rounds, "trees": booster.trees.n_trees}
    output.found |= {"task": kind, "seconds": seconds, "fingerprint": booster.fingerprint(), **about}
    output.found["objective"] = booster.objective
    if settings.output is not None:
        booster.save(settings.output)
        output.result(f"model written to {settings.output}", model=str(settings.output))
    else:
        output.say("the model was not kept: say -o model.sapwood to write it.")
    output.say(f"{len(y):,} rows, {booster.n_rounds} rounds, {seconds:.1f} s, fingerprint {booster.fingerprint()[:16]}")


def rows_of(path: Path, settings: Settings, output: Output) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
    """The columns to learn from, the target, and the weights."""
    table = tables.read(path)
    target = str(settings.target)
    subject.column(table, target, str(path))
    table = subject.without_missing(table, target, output)
    for name in (*settings.drop, *settings.keep):
        subject.column(table, name, str(path))
    y = subject.column(table, target, str(path))
    weight = None
    if settings.weight is not None:
        weight = np.asarray(subject.column(table, settings.weight, str(path)), np.float64)
    out = {target, settings.weight, *settings.drop}
    names = [name for name in (settings.keep or table.column_names) if name not in out]
    if not names:
        raise DataError("no column is left to learn from.")
    output.say(f"{path}: {table.num_rows:,} rows, {len(names)} columns to learn {target} from")
    return table.select(names), y, weight


def task_of(y: NDArray[Any], settings: Settings, output: Output) -> str:
    """What is learnt: said, and how it was inferred."""
    if settings.task != "auto":
        return settings.task
    distinct = len(set(y.tolist()))
    other = "regression"
    if y.dtype.kind in "OUSb":
        kind, why = "classification", f"the target has {distinct} {'class' if distinct == 1 else 'classes'}"
    elif distinct <= 2:
        kind, why = "classification", f"the target has {distinct} different numbers"
    else:
        kind, why, other = "regression", "the target has numbers", "classification"
        if y.dtype.kind in "iu" and distinct <= 20:
            why = f"the target has {distinct} different whole numbers"
    output.say(f"task: {kind}, because {why} (else say --task {other})")
    return kind


def held_of(table: Any, y: NDArray[Any], kind: str, settings: Settings) -> NDArray[np.bool_]:
    """Which rows are held out: a random share of each class, or the last ones by `time_column`."""
    share = 0.2 if settings.holdout is None else settings.holdout
    held = np.zeros(len(y), bool)
    if share == 0:
        return held
    if settings.time_column is not None:
        order = np.argsort(subject.column(table, settings.time_column, "the table"), kind="stable")
        held[order[len(y) - round(share * len(y)) :]] = True
        return held
    draw = np.random.default_rng(settings.seed).random(len(y))
    groups = [np.arange(len(y))]
    if kind == "classification":
        _, codes = np.unique(y.astype(str), return_inverse=True)
        groups = [np.flatnonzero(codes == k) for k in range(codes.max() + 1)]
    for rows in groups:
        held[rows[np.argsort(draw[rows], kind="stable")[: round(share * len(rows))]]] = True
    if held.all() or not held.any():
        raise DataError(f"{len(y)} rows are too few to hold out {share:g} of them; say --holdout 0, or --folds.")
    return held


def _fit(
    table: Any, y: NDArray[Any], weight: Any, kind: str, settings: Settings, output: Output,
    callbacks: list[Callback] | None = None,
) -> Any:  # fmt: skip
    """A fitted estimator."""
    make = SapwoodClassifier if kind == "classification" else SapwoodRegressor
    params = dict(settings.params)
    for name, value in (("quality", settings.quality), ("time_limit", settings.time_limit)):
        if value is not None:
            params[name] = None if value == "none" else value
    params.setdefault("random_state", settings.seed)
    if settings.threads is not None:
        params["n_jobs"] = settings.threads
    model = make(**params)
    with show.progress(output):
        model.fit(table, y, weight, callbacks=callbacks)
    return model


def _cross_validate(table: Any, y: NDArray[Any], weight: Any, kind: str, settings: Settings, output: Output) -> None:
    """Scores of rows that their model has not seen, fold by fold."""
    assert settings.folds
    draw = np.random.default_rng(settings.seed).permutation(len(y))
    fold = np.empty(len(y), np.int64)
    if kind == "classification":  # dealt class by class
        draw = draw[np.argsort(np.unique(y.astype(str), return_inverse=True)[1][draw], kind="stable")]
    fold[draw] = np.arange(len(y)) % settings.folds
    lists: dict[str, list[float]] = {}
    for k in range(settings.folds):
        held = fold == k
        part = None if weight is None else weight[~held]
        booster = _fit(table.filter(~held), y[~held], part, kind, settings, output).booster_
        found = scores(booster, y[held], booster.predict(table.filter(held)), tuple(settings.metric))
        for one in found:
            lists.setdefault(one.name, []).append(one.value)
        output.say(f"fold {k + 1} of {settings.folds}: {found[0].name} {found[0].value:.5g}")
    rows = [[name, show.number(float(np.mean(v))), show.number(float(np.std(v)))] for name, v in lists.items()]
    output.result(
        show.table(rows, [f"{settings.folds} folds", "mean", "deviation"]),
        folds={name: {"values": v, "mean": float(np.mean(v))} for name, v in lists.items()},
    )


def say_scores(found: list[Score], where: str, output: Output) -> None:
    """Print scores as a table."""
    rows = [
        [
            one.name,
            show.number(one.value),
            f"{show.number(one.low)} to {show.number(one.high)}",
            show.number(one.baseline),
        ]
        for one in found
    ]
    text = f"on {where}:\n" + show.table(rows, ["metric", "model", "95 % interval", "constant guess"])
    values = {
        one.name: {"value": one.value, "low": one.low, "high": one.high, "baseline": one.baseline} for one in found
    }
    output.result(text, scores=values)
