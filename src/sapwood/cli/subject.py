"""What commands work on: models in files, and the target among the columns of a table.

In: paths and names. Out: a model; a table without its target, and the target.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.cli import tables
from sapwood.cli.show import Output
from sapwood.errors import (
    DataError,
    ModelFormatError,
    ParameterError,
    SapwoodError,
    suggest,
)
from sapwood.model import io
from sapwood.model.booster import Booster

MAX_NAMED = 8  # columns in a message
MAX_TYPE = 80  # characters of a type in a message


def load(path: Path, data: Path | None = None) -> Booster:
    """The model of a file; `data` is the file with rows, for which it may have been
    mistaken.
    """
    if path in tables.STDIN:
        raise DataError("a model is not read from standard input; give its file.")
    tables.check_file(path)
    try:
        return io.load(path)
    except SapwoodError as cause:
        hint = ""
        if tables.looks_like_rows(path):
            swapped = " Are the arguments swapped? The model comes first, then the file with the rows."
            hint = " Its name is that of a table of rows." if data is None else swapped
        raise ModelFormatError(f"{path} is no model: {cause}{hint}") from cause


def column(table: Any, name: str, what: str) -> NDArray[Any]:
    """A column by name."""
    if name not in table.column_names:
        raise DataError(
            f"{what} has no column {name!r}; {suggest(name, table.column_names)}"
        )
    return np.asarray(tables.values(table, name))


def refuse_nested(table: Any, name: str, purpose: str) -> None:
    """Raise if a column has lists or objects in its cells; `purpose`: what it was to
    be.
    """
    import pyarrow as pa

    kind = table.column(name).type
    if pa.types.is_nested(kind):
        shown = str(kind)
        shown = shown if len(shown) <= MAX_TYPE else f"{shown[:MAX_TYPE]}..."
        raise DataError(
            f"column {name!r} cannot be {purpose}: its cells are lists or objects ({shown}). Make a column of each "
            "of their values."
        )


def example(values: NDArray[Any]) -> str:
    """A value of a column that is no number, for a message."""
    return next(
        (
            repr(one)
            for one in values.tolist()
            if one is not None and not isinstance(one, int | float)
        ),
        "none",
    )


def numbers(table: Any, name: str, what: str, role: str) -> NDArray[np.float64]:
    """A column of numbers by name."""
    values = column(table, name, what)
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as cause:
        some = example(values)
        raise DataError(
            f"column {name!r} cannot be {role}: it is not numbers (it has {some}, say)."
        ) from cause


def times(table: Any, name: str) -> NDArray[Any]:
    """A column by which rows can be ordered: numbers, dates, or text that has dates as
    ISO 8601 writes them.
    """
    import pyarrow as pa

    values = column(table, name, "the table")
    kind = table.column(name).type
    if (
        pa.types.is_temporal(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
    ):
        return values
    try:
        return np.asarray(table.column(name).cast(pa.timestamp("ns")).to_numpy())
    except (pa.ArrowException, TypeError, ValueError) as cause:
        raise ParameterError(
            f"--time-column {name} is not a time: it has {example(values)}, say; rows can be ordered by numbers and by "
            "dates such as 2026-01-31."
        ) from cause


def target_of(booster: Booster, table: Any, given: str | None, what: str) -> str:
    """The name of the target: the given one, or the only column that the model does not
    know.
    """
    if given is not None:
        column(table, given, what)
        return given
    names_of_training = set(booster.feature_names)
    extra = [name for name in table.column_names if name not in names_of_training]
    if len(extra) == 1:
        return str(extra[0])
    has = ", ".join(extra[:MAX_NAMED]) if extra else "none"
    raise DataError(
        f"which column of {what} is the target? Say --target NAME. Columns that the model does not know: {has}."
    )


def features(booster: Booster, table: Any) -> Any:
    """The columns that the model knows; others are left out."""
    if not booster.named:
        return table
    known = set(booster.feature_names)
    return table.select([name for name in table.column_names if name in known])


def labelled(
    booster: Booster, path: Path, target: str | None, output: Output
) -> tuple[Any, NDArray[Any]]:
    """Columns and labels of a file, without the rows that have no label."""
    table = tables.read(path)
    if not booster.named:
        if target is None:
            raise DataError(
                "the model knows its columns by position only; say --target NAME."
            )
        y = column(table, target, str(path))
        refuse_nested(table, target, "the target")
        return table.drop_columns([target]), as_classes(booster, y)
    name = target_of(booster, table, target, str(path))
    refuse_nested(table, name, "the target")
    table = without_missing(table, name, output)
    if target is None:
        output.say(f"target: {name} (the column that the model does not know)")
    return features(booster, table), as_classes(booster, column(table, name, str(path)))


def without_missing(table: Any, name: str, output: Output) -> Any:
    """The rows that have a value in the target."""
    whole = table.column(name)
    values = np.asarray(tables.values(table, name))
    missing = np.asarray(whole.is_null().to_numpy(), bool)
    if values.dtype.kind == "f":
        missing |= np.isnan(values)
    if missing.any():
        output.warn(
            f"{int(missing.sum()):,} of {len(values):,} rows have no {name}; they are left out."
        )
        table = table.filter(~missing)
    if not table.num_rows:
        raise DataError(f"no row has a value in {name}.")
    return table


def as_classes(booster: Booster, y: NDArray[Any]) -> NDArray[Any]:
    """Labels in the type of the model's classes: a file may have 1 where the model has
    "1" or True.
    """
    if booster.classes is None or not len(y):
        return y
    place = {str(one): one for one in booster.classes.tolist()}
    whole = [
        int(one) if isinstance(one, float) and one.is_integer() else one
        for one in y.tolist()
    ]
    unknown = sorted({str(one) for one in whole} - set(place))
    if unknown:
        raise DataError(
            f"the target has classes that the model does not know: {', '.join(unknown[:MAX_NAMED])}."
        )
    found = np.empty(len(y), object)
    found[:] = [place[str(one)] for one in whole]
    return found
