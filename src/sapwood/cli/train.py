"""``sapwood train``: from a file to a model.

In: a file, the name of its target, settings from flags or a TOML file. Out: scores; the
model file if asked for.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost.round.callback import Callback
from sapwood.cli import outputs, show, subject, tables
from sapwood.cli.settings import SAME, Settings, said
from sapwood.cli.show import Output
from sapwood.errors import DataError
from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor
from sapwood.printable import printable
from sapwood.report.scores import Score, scores
from sapwood.system import kinds


def train(
    path: Path, settings: Settings, output: Output, config: Path | None = None
) -> None:
    """Train on a file, measure, and write the model if asked for."""
    output.quiet = output.quiet or settings.quiet
    output.as_json = output.as_json or settings.json
    tables.check_paths(
        {"the file with the rows": path, "--valid": settings.valid, "--config": config},
        {
            "--output": settings.output,
            "--save-holdout": settings.save_holdout,
            "checkpoint": _checkpoint(settings),
        },
    )
    outputs.check(settings.output, kinds.MODEL, settings.force)
    outputs.check_table_name(settings.save_holdout, settings.force)
    table, y, weight = rows_of(path, settings, output)
    kind = task_of(y, settings, output)
    y = (
        np.asarray(y.astype(str), object)
        if kind == "classification" and y.dtype.kind == "O"
        else y
    )
    start = time.monotonic()
    n_held = 0
    if settings.folds:
        _cross_validate(table, y, weight, kind, settings, output)
        model = _fit(table, y, weight, kind, settings, output)
        booster = model.booster_
    elif settings.valid is not None:
        model = _fit(table, y, weight, kind, settings, output)
        booster = model.booster_
        X, label = subject.labelled(booster, settings.valid, settings.target, output)
        say_scores(
            scores(booster, label, booster.predict(X), tuple(settings.metric)),
            str(settings.valid),
            output,
        )
    else:
        held = held_of(table, y, kind, settings)
        n_held = int(held.sum())
        if n_held and settings.save_holdout is not None:
            whole = tables.read(path)
            whole = subject.without_missing(whole, str(settings.target), Output(True))
            outputs.write_rows(
                settings.save_holdout,
                "the rows held out now",
                whole.filter(held),
                settings.force,
            )
            output.say(f"{n_held:,} held-out rows written to {settings.save_holdout}")
        part = None if weight is None else weight[~held]
        model = _fit(table.filter(~held), y[~held], part, kind, settings, output)
        booster = model.booster_
        if n_held:
            found = scores(
                booster,
                y[held],
                booster.predict(table.filter(held)),
                tuple(settings.metric),
            )
            say_scores(found, f"{n_held:,} held-out rows", output)
    seconds = time.monotonic() - start
    chosen = getattr(booster, "chosen", None)
    if chosen is not None:
        for line in str(chosen).split("\n"):
            output.say(line)
    n_trained = len(y) - n_held
    output.found |= {"rows": len(y), "rows_trained": n_trained, "rows_held_out": n_held}
    about = {
        "columns": booster.n_columns,
        "rounds": booster.n_rounds,
        "trees": booster.trees.n_trees,
    }
    output.found |= {
        "task": kind,
        "seconds": seconds,
        "fingerprint": booster.fingerprint(),
        **about,
    }
    output.found["objective"] = booster.objective
    if settings.output is not None:
        booster.save(settings.output, force=settings.force)
        output.result(
            f"model written to {printable(str(settings.output))}",
            model=str(settings.output),
        )
    else:
        output.say("the model was not kept: say -o model.sapwood to write it.")
    rows = f"trained on {n_trained:,} rows" + (
        f", {n_held:,} held out" if n_held else ""
    )
    output.say(
        f"{rows}, {booster.n_rounds} rounds, {seconds:.1f} s, fingerprint {booster.fingerprint()[:16]}"
    )


def _checkpoint(settings: Settings) -> Path | None:
    """The file that a parameter of the training names."""
    path = settings.params.get("checkpoint")
    return Path(path) if isinstance(path, str) else None


def rows_of(
    path: Path, settings: Settings, output: Output
) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
    """The columns to learn from, the target, and the weights."""
    table = tables.read(path)
    target = str(settings.target)
    subject.column(table, target, str(path))
    subject.refuse_nested(table, target, "the target")
    table = subject.without_missing(table, target, output)
    for name in (*settings.drop, *settings.keep):
        subject.column(table, name, str(path))
    y = subject.column(table, target, str(path))
    weight = None
    if settings.weight is not None:
        weight = subject.numbers(table, settings.weight, str(path), "weights")
    out = {target, settings.weight, *settings.drop}
    names = [name for name in (settings.keep or table.column_names) if name not in out]
    if not names:
        raise DataError("no column is left to learn from.")
    output.say(
        f"{path}: {table.num_rows:,} rows, {len(names)} columns to learn {target} from"
    )
    return table.select(names), y, weight


def task_of(y: NDArray[Any], settings: Settings, output: Output) -> str:
    """What is learnt: said, and how it was inferred."""
    if settings.task == "regression" and y.dtype.kind in "OUS":
        some = subject.example(y)
        raise DataError(
            f"column {settings.target!r} is not numbers (it has {some}, say); say --task classification."
        )
    if settings.task != "auto":
        return settings.task
    distinct = len(set(y.tolist()))
    other = "regression"
    if y.dtype.kind in "OUSb":
        kind = "classification"
        why = f"the target has {distinct} {'class' if distinct == 1 else 'classes'}"
    elif distinct <= 2:
        kind = "classification"
        why = f"the target has {distinct} different numbers"
    else:
        kind = "regression"
        why = "the target has numbers"
        other = "classification"
        if y.dtype.kind in "iu" and distinct <= 20:
            why = f"the target has {distinct} different whole numbers"
    output.say(f"task: {kind}, because {why} (else say --task {other})")
    return kind


def held_of(
    table: Any, y: NDArray[Any], kind: str, settings: Settings
) -> NDArray[np.bool_]:
    """Which rows are held out: a random share of each class, or the last ones by
    `time_column`.
    """
    share = 0.2 if settings.holdout is None else settings.holdout
    held = np.zeros(len(y), bool)
    if share == 0:
        return held
    if settings.time_column is not None:
        order = np.argsort(subject.times(table, settings.time_column), kind="stable")
        held[order[len(y) - round(share * len(y)) :]] = True
        return held
    draw = np.random.default_rng(settings.seed).random(len(y))
    groups = [np.arange(len(y))]
    if kind == "classification":
        _, codes = np.unique(y.astype(str), return_inverse=True)
        groups = [np.flatnonzero(codes == k) for k in range(codes.max() + 1)]
    for rows in groups:
        held[
            rows[np.argsort(draw[rows], kind="stable")[: round(share * len(rows))]]
        ] = True
    if held.all() or not held.any():
        raise DataError(
            f"{len(y)} rows are too few to hold out {share:g} of them; say --holdout 0, or --folds."
        )
    return held


def _fit(
    table: Any,
    y: NDArray[Any],
    weight: Any,
    kind: str,
    settings: Settings,
    output: Output,
    callbacks: list[Callback] | None = None,
) -> Any:
    """A fitted estimator."""
    make = SapwoodClassifier if kind == "classification" else SapwoodRegressor
    params = dict(settings.params)
    for name, parameter in SAME.items():
        value = getattr(settings, name)
        if value is not None and not said(name, params):
            params[parameter] = None if str(value).lower() == "none" else value
    model = make(**params)
    with show.progress(output):
        model.fit(table, y, weight, callbacks=callbacks)
    return model


def _cross_validate(
    table: Any,
    y: NDArray[Any],
    weight: Any,
    kind: str,
    settings: Settings,
    output: Output,
) -> None:
    """Scores of rows that their model has not seen, fold by fold."""
    assert settings.folds
    draw = np.random.default_rng(settings.seed).permutation(len(y))
    fold = np.empty(len(y), np.int64)
    if kind == "classification":  # dealt class by class
        draw = draw[
            np.argsort(
                np.unique(y.astype(str), return_inverse=True)[1][draw], kind="stable"
            )
        ]
    fold[draw] = np.arange(len(y)) % settings.folds
    lists: dict[str, list[float]] = {}
    for k in range(settings.folds):
        held = fold == k
        part = None if weight is None else weight[~held]
        booster = _fit(
            table.filter(~held), y[~held], part, kind, settings, output
        ).booster_
        found = scores(
            booster,
            y[held],
            booster.predict(table.filter(held)),
            tuple(settings.metric),
        )
        for one in found:
            lists.setdefault(one.name, []).append(one.value)
        output.say(
            f"fold {k + 1} of {settings.folds}: {found[0].name} {found[0].value:.5g}"
        )
    rows = [
        [name, show.number(float(np.mean(v))), show.number(float(np.std(v)))]
        for name, v in lists.items()
    ]
    output.result(
        show.table(rows, [f"{settings.folds} folds", "mean", "deviation"]),
        folds={
            name: {"values": v, "mean": float(np.mean(v))} for name, v in lists.items()
        },
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
    text = f"on {printable(where)}:\n" + show.table(
        rows, ["metric", "model", "95 % interval", "constant guess"]
    )
    values = {
        one.name: {
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "baseline": one.baseline,
        }
        for one in found
    }
    output.result(text, scores=values)
