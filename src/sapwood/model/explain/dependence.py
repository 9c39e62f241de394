"""How predictions move along a column: partial dependence, single rows' curves,
accumulated local effects.

In: a model, rows, and one or two columns. Out: a grid of values and what the model says
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric
from sapwood.device import elementary
from sapwood.errors import DataError, ParameterError
from sapwood.model.explain.importance import column_of
from sapwood.model.explain.shapley import table_of

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effect:
    """A curve (surface) of predictions.

    Attributes
    ----------
    columns : tuple of str
        What varies.
    grid : tuple of arrays
        Its values, one array a column: numbers, or categories.
    values : (..., n_grid) or (..., n_grid, n_grid) float64
        Predictions there: averages, or one curve a row. Several outputs are the last
        axis.
    """

    columns: tuple[str, ...]
    grid: tuple[NDArray[Any], ...]
    values: Floats


def partial_dependence(
    booster: Booster,
    X: Any,
    columns: int | str | Sequence[int | str],
    *,
    grid: int | Sequence[Any] = 50,
    individual: bool = False,
    raw: bool = False,
    n_jobs: int | None = None,
) -> Effect:
    """Average the predictions of all rows with a column (or two) set to one value after
    the other.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        As in `predict`.
    columns : int, str, or two of these
        What varies, by index or name.
    grid : int or sequence
        How many of the column's values to take, or the values themselves (of two
        columns a pair of sequences).
    individual : bool
        Keep the curve of every row (individual conditional expectation) instead of
        their average.
    raw : bool
        Look at raw scores instead of predictions.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    Effect
        With `grid` and `values`.
    """
    asked = [columns] if isinstance(columns, int | str) else list(columns)
    if not 1 <= len(asked) <= 2:
        raise ParameterError(
            f"columns={columns!r}: choose one column, or two for a surface."
        )
    at = [column_of(booster, column) for column in asked]
    table = table_of(booster._read(X).dense())
    points = (
        [grid] * len(at)
        if isinstance(grid, int)
        else [grid]
        if len(at) == 1
        else list(grid)
    )
    grids = tuple(
        _points(booster, j, table[:, j], given)
        for j, given in zip(at, points, strict=True)
    )
    curves = []
    for point in product(*grids):
        changed = table.copy()
        changed[:, at] = point
        curves.append(booster._predict_columns(changed.T, n_jobs, raw))
    shape = tuple(map(len, grids))
    rows = np.stack(curves, axis=1)  # (n_rows, points[, n_outputs])
    if individual:
        values = rows.reshape(len(table), *shape, *rows.shape[2:])
    else:
        flat = rows.reshape(len(table), -1)
        values = np.array([metric.mean(part, None) for part in flat.T]).reshape(
            *shape, *rows.shape[2:]
        )
    shown = tuple(_shown(booster, j, grid) for j, grid in zip(at, grids, strict=True))
    return Effect(tuple(booster.feature_names[j] for j in at), shown, values)


def accumulated_effects(
    booster: Booster,
    X: Any,
    column: int | str,
    *,
    grid: int = 50,
    raw: bool = False,
    n_jobs: int | None = None,
) -> Effect:
    """Add up what small steps along a column change, each for the rows that are there
    (ALE, Apley and Zhu 2020).

    Unlike partial dependence it never asks about rows that cannot be, such as a height
    with a child's weight.

    Parameters
    ----------
    X, raw, n_jobs
        As in `partial_dependence`.
    column : int or str
        What varies. Rows where it is missing are left out.
    grid : int
        How many of the column's values bound the steps.

    Returns
    -------
    Effect
        Its values are 0 on average over the rows.
    """
    j = column_of(booster, column)
    if j in booster.categories:
        raise ParameterError(
            f"column {booster.feature_names[j]!r} has categories, which have no order to step along; see "
            "partial_dependence."
        )
    table = table_of(booster._read(X).dense())
    table = table[~np.isnan(table[:, j])]
    edges = _grid(table[:, j], grid)
    if len(edges) < 2:
        raise DataError(
            f"column {booster.feature_names[j]!r} has one value only in X; effects need two."
        )
    # rows of cell k lie between edges k and k + 1; the lowest value belongs to the
    # first cell
    cell = np.maximum(np.searchsorted(edges, table[:, j], side="left") - 1, 0)
    sides = []
    for side in (0, 1):
        table[:, j] = edges[cell + side]
        sides.append(
            booster._predict_columns(table.T, n_jobs, raw).reshape(len(table), -1)
        )
    change = sides[1] - sides[0]
    # No cell is empty: its upper edge is a value of X.
    steps = np.array(
        [
            [metric.mean(part, None) for part in change[cell == k].T]
            for k in range(len(edges) - 1)
        ]
    )
    curve = np.concatenate([np.zeros((1, change.shape[1])), np.cumsum(steps, axis=0)])
    share = np.bincount(cell, minlength=len(steps)) / len(cell)
    middle = 0.5 * (curve[1:] + curve[:-1])
    curve = curve - elementary.matmul(share, middle)  # 0 on average over the rows
    values = curve[:, 0] if booster.n_outputs == 1 else curve
    return Effect((booster.feature_names[j],), (edges,), values)


def _points(
    booster: Booster, column: int, values: Floats, given: int | Sequence[Any]
) -> Floats:
    """The values at which to evaluate, as the core reads them: categories by their
    codes.
    """
    if column not in booster.categories:
        return (
            _grid(values, given)
            if isinstance(given, int)
            else np.asarray(given, np.float64)
        )
    if isinstance(given, int):
        # the most frequent in training come first
        return np.unique(values[values >= 0])[:given]
    place = booster.categories[column].place
    return np.array([place.get(value, -1) for value in given], np.float64)


def _shown(booster: Booster, column: int, grid: Floats) -> NDArray[Any]:
    """The same values as the user knows them."""
    if column not in booster.categories:
        return grid
    values = booster.categories[column].values
    return np.array([None if code < 0 else values[int(code)] for code in grid], object)


def _grid(values: Floats, n: int) -> Floats:
    """At most `n` of a column's own values, evenly spaced over its sorted rows, with
    the lowest and the highest.
    """
    if n < 2:
        raise ParameterError(f"grid={n} is too small; choose 2 points or more.")
    known = values[np.isfinite(values)]
    if not len(known):
        raise DataError(
            "a column without finite values has no effect to show; give X rows that have some."
        )
    found = np.unique(known)
    if len(found) <= n:
        return found
    return np.unique(
        np.sort(known)[np.round(np.linspace(0, len(known) - 1, n)).astype(np.int64)]
    )
