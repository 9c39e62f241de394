"""``sapwood predict``, ``evaluate`` and ``explain``: what a model says about a file.

In: a model and a file. Out: tables, scores, reasons.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sapwood.cli import outputs, show, subject, tables
from sapwood.cli.show import Output
from sapwood.cli.train import say_scores
from sapwood.data.text import TextColumn
from sapwood.errors import DataError, ParameterError
from sapwood.interfaces.kinds import estimators_of
from sapwood.metric import BINARY, CLASSES
from sapwood.model.booster import Booster
from sapwood.printable import printable
from sapwood.report import refuse_other
from sapwood.report.scores import scores
from sapwood.system import kinds


def predict(
    model: Path,
    data: Path,
    to: Path | None,
    batch_size: int,
    proba: bool,
    raw: bool,
    keep: list[str],
    force: bool,
    output: Output,
) -> None:
    """Write predictions, batch by batch."""
    tables.check_paths(
        {"the model": model, "the file with the rows": data}, {"--output": to}
    )
    outputs.check_table_name(to, force)
    booster = subject.load(model, data)
    if proba and not _names(booster):
        raise ParameterError(
            "--proba is for models that predict classes; this one predicts numbers."
        )
    if output.as_json and to is None:
        raise ParameterError(
            "--json prints what was done, so predictions need a file then: -o predictions.csv."
        )
    flat = to is None or tables.format_to_write(to) in ("csv", "tsv")
    predictions = _predicted(booster, data, batch_size, proba, raw, keep, flat)
    if to is None:
        tables.write(None, predictions, getattr(sys.stdout, "buffer", sys.stdout))
        return
    rows = outputs.write_table(to, "a table with these predictions", predictions, force)
    output.result(
        f"{rows:,} predictions written to {printable(str(to))}",
        rows=rows,
        output=str(to),
    )


def _batches(booster: Booster, data: Path, size: int) -> Iterator[Any]:
    """Batches of a file, with the types that the model knows."""
    names = booster.feature_names
    several = {one.column: one for one in booster.times}
    text = [names[j] for j, one in booster.categories.items() if _is_text(one.values)]
    text += [names[j] for j, one in several.items() if isinstance(one, TextColumn)]
    numbers = [
        name
        for j, name in enumerate(names)
        if j not in booster.categories and j not in several
    ]
    return tables.batches(data, size, text, numbers if booster.named else [])


def _is_text(values: Any) -> bool:
    return bool(values) and isinstance(values[0], str)


def _names(booster: Booster) -> list[str]:
    """The classes of a model by name; empty where it predicts numbers."""
    if booster.classes is not None:
        return [str(one) for one in booster.classes.tolist()]
    return ["0", "1"] if booster.link in BINARY and booster.n_outputs == 1 else []


def _whole(booster: Booster) -> Any:
    """The estimator of a distribution or of survival, whose predictions (means, risks)
    are no scores; else None.
    """
    from sapwood.interfaces.distribution import SapwoodDistribution
    from sapwood.interfaces.survival import SapwoodSurvival

    kinds: dict[str, Any] = {
        "SapwoodDistribution": SapwoodDistribution,
        "SapwoodSurvival": SapwoodSurvival,
    }
    kind = kinds.get(estimators_of(booster)[0])
    return None if kind is None else kind.load(booster.to_bytes())


def _predicted(
    booster: Booster,
    data: Path,
    size: int,
    proba: bool,
    raw: bool,
    keep: list[str],
    flat: bool,
) -> Iterator[Any]:
    """Predictions by batch, and the columns that are kept; `flat`: for a file that has
    no lists and objects.
    """
    import pyarrow as pa

    names = _names(booster)
    whole = _whole(booster)
    for table in _batches(booster, data, size):
        X = subject.features(booster, table)
        found = (
            booster.predict(X, raw=raw) if raw or whole is None else whole.predict(X)
        )
        columns: dict[str, Any] = {}
        for name in keep:
            subject.column(table, name, str(data))
            if flat:
                subject.refuse_nested(table, name, "written as CSV")
            columns[name] = table.column(name)
        if names and not raw and booster.link in (*BINARY, *CLASSES):
            both = np.column_stack([1 - found, found]) if found.ndim == 1 else found
            codes = (
                (found > 0.5).astype(np.int64)
                if found.ndim == 1
                else both.argmax(axis=1)
            )
            classes = (
                booster.classes if booster.classes is not None else np.array([0, 1])
            )
            columns["prediction"] = pa.array(classes.take(codes).tolist())
            if proba:
                columns |= {
                    f"probability_{name}": both[:, k] for k, name in enumerate(names)
                }
        elif found.ndim == 1:
            columns["raw_score" if raw else "prediction"] = found
        else:
            word = "raw_score" if raw else "prediction"
            columns |= {
                f"{word}_{names[k] if names else k}": found[:, k]
                for k in range(found.shape[1])
            }
        yield pa.table(columns)


def evaluate(
    model: Path, data: Path, target: str | None, metric: list[str], output: Output
) -> None:
    """Print scores with intervals, beside those of a constant guess."""
    booster = subject.load(model, data)
    refuse_other(booster)
    X, y = subject.labelled(booster, data, target, output)
    found = scores(booster, y, booster.predict(X), tuple(metric))
    if not found:
        raise DataError("no metric can be measured on these rows.")
    say_scores(found, f"{data}, {len(y):,} rows", output)


def explain(
    model: Path,
    data: Path,
    to: Path | None,
    row: int | None,
    kind: str,
    target: str | None,
    top: int,
    force: bool,
    output: Output,
) -> None:
    """Shapley values of all rows into a file, reasons for one row, or the importance of
    columns on these rows.
    """
    tables.check_paths(
        {"the model": model, "the file with the rows": data}, {"--output": to}
    )
    outputs.check_table_name(to, force)
    if row is not None and to is not None:
        raise ParameterError(
            "--row prints one row and -o writes all rows; give one of them."
        )
    booster = subject.load(model, data)
    table = tables.read(data)
    X = subject.features(booster, table)
    if row is not None:
        if not 0 <= row < X.num_rows:
            raise ParameterError(
                f"--row {row} does not exist; {data} has the rows 0..{X.num_rows - 1}."
            )
        output.result(
            booster.why(X.slice(row, 1), n=top),
            row=row,
            **_values(booster, X.slice(row, 1)),
        )
        return
    if to is not None:
        rows = outputs.write_table(
            to,
            "a table with Shapley values of this model",
            _contributions(booster, X),
            force,
        )
        output.result(
            f"Shapley values of {rows:,} rows written to {printable(str(to))}",
            rows=rows,
            output=str(to),
        )
        return
    given: dict[str, Any] = {"X": X}
    if kind in ("permutation", "loss_function_change", "sage"):
        name = subject.target_of(booster, table, target, str(data))
        given["y"] = subject.as_classes(booster, subject.column(table, name, str(data)))
    elif kind not in ("shap",):
        given = {}
    values = booster.importance(kind, **given)
    if values.ndim != 1:
        raise ParameterError(
            f"--kind {kind} has a number for each pair of columns; in Python: booster.importance."
        )
    order = np.argsort(-values, kind="stable")[:top]
    share = values / (np.abs(values).sum() or 1.0)
    rows_ = [
        [
            booster.feature_names[j],
            show.number(float(values[j])),
            f"{100 * share[j]:.1f} %",
        ]
        for j in order
    ]
    found = {
        booster.feature_names[j]: float(values[j])
        for j in np.argsort(-values, kind="stable")
    }
    output.result(
        show.table(rows_, ["column", kind, "share"]), kind=kind, importance=found
    )


def _values(booster: Booster, row: Any) -> dict[str, Any]:
    """The Shapley values of a row, by column."""
    told = booster.explain(row)
    values = told.values[0]
    by_column = {name: values[j].tolist() for j, name in enumerate(told.feature_names)}
    return {"base": told.base_values[0].tolist(), "values": by_column}


def _contributions(booster: Booster, X: Any, size: int = 10_000) -> Iterator[Any]:
    import pyarrow as pa

    for first in range(0, X.num_rows, size):
        told = booster.explain(X.slice(first, size))
        if told.output_names is None:
            columns = {
                name: told.values[:, j] for j, name in enumerate(told.feature_names)
            }
            columns["base_value"] = told.base_values
        else:
            columns = {
                f"{name}, {output}": told.values[:, j, k]
                for k, output in enumerate(told.output_names)
                for j, name in enumerate(told.feature_names)
            }
            columns |= {
                f"base_value, {one}": told.base_values[:, k]
                for k, one in enumerate(told.output_names)
            }
        yield pa.table(columns)


def report(
    model: Path,
    data: Path,
    to: Path,
    target: str | None,
    train: Path | None,
    title: str | None,
    force: bool,
    output: Output,
) -> None:
    """Write the page about a model."""
    tables.check_paths(
        {"the model": model, "--data": data, "--train": train}, {"--output": to}
    )
    outputs.check(to, kinds.REPORT, force)
    booster = subject.load(model)
    X, y = subject.labelled(booster, data, target, output)
    both = (
        None
        if train is None
        else subject.labelled(booster, train, target, Output(True))
    )
    text = booster.report(
        X, y, to, train=both, title=title or f"{model.name} on {data.name}", force=force
    )
    output.result(
        f"report written to {printable(str(to))} ({len(text) / 1e6:.1f} MB)",
        output=str(to),
        rows=len(y),
    )
