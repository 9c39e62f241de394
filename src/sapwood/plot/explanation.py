"""Why does a row have its score? Shapley values of all rows, of one row, and along one
column.

In: an `Explanation`. Out: Axes.
"""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ParameterError, suggest
from sapwood.plot import style
from sapwood.plot.style import Canvas, plotting
from sapwood.plot.subject import one_output, without_interactions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 2000  # dots a column: more only cover each other
MAX_CATEGORIES = 20  # with a place of their own


@plotting
def beeswarm(
    told: Any,
    *,
    max_columns: int = 15,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw the Shapley values of all rows, a dot each, column by column; the colour is
    the value of the column.

    Parameters
    ----------
    told : Explanation
        Made with ``booster.explain(X)``.
    max_columns : int
        How many columns to show, those with the largest mean size.
    output : int or str, optional
        Which class or target, where there are several; classes that are numbers by
        their number.
    {canvas}

    Returns
    -------
    Axes
    """
    without_interactions(told)
    values, _, name = one_output(told, output)
    if not len(values):
        raise ParameterError("the explanation has no rows.")
    step = -(-len(values) // MAX_ROWS)
    data = style.drawable(told.data[::step])
    values = np.nan_to_num(style.drawable(values[::step]))
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")
    order = order[np.abs(values[:, order]).max(axis=0) > 0][:max_columns]
    size = (7.4, 1.4 + 0.42 * max(1, len(order)))
    label = "Shapley value: what the column adds to the score" + (
        f" of {style.short(name)}" if name else ""
    )
    ax = style.axes(
        canvas, size, title="Effects of columns, row by row", xlabel=label, grid="x"
    )
    cmap = style.pyplot().get_cmap(style.SEQUENTIAL)
    reach = float(np.abs(values).max()) or 1.0
    for at, j in enumerate(order):
        x = values[:, j]
        rank = _rank(data[:, j])
        if j in told.categories:
            # codes have no order that a colour could show
            rank = np.full(len(x), np.nan)
        known = ~np.isnan(rank)
        height = _heights(x, reach) + (len(order) - 1 - at)
        grey = "#9e9e9e" if j not in told.categories else style.PURPLE
        ax.scatter(
            x[~known],
            height[~known],
            s=7,
            color=grey,
            linewidths=0,
            alpha=0.8,
            rasterized=True,
        )
        ax.scatter(
            x[known],
            height[known],
            s=7,
            c=cmap(rank[known]),
            linewidths=0,
            rasterized=True,
        )
    ax.axvline(0, color=style.GREY, linewidth=0.9, zorder=0)
    ax.set_yticks(
        range(len(order)), [style.short(told.feature_names[j]) for j in order[::-1]]
    )
    ax.set_ylim(-0.6, len(order) - 0.4)
    bar = ax.figure.colorbar(
        style.pyplot().cm.ScalarMappable(cmap=cmap),
        ax=ax,
        shrink=0.6,
        pad=0.02,
        aspect=25,
    )
    bar.set_ticks([0, 1], labels=["low", "high"])
    bar.set_label("value of the column", fontsize=9, labelpad=-12)
    bar.outline.set_visible(False)
    notes = []
    if any(np.isnan(told.data[:, j]).any() for j in order if j not in told.categories):
        notes.append("grey: missing")
    if any(j in told.categories for j in order):
        notes.append("purple: categories")
    if notes:
        ax.text(
            1,
            1.01,
            ", ".join(notes),
            transform=ax.transAxes,
            ha="right",
            fontsize=8,
            color=style.GREY,
        )
    return ax


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values from 0 to 1 by the range between their 5th and 95th percentile; NaN
    stays.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return np.full(len(values), np.nan)
    low, high = np.percentile(known, [5, 95])
    if low == high:
        low = known.min()
        high = known.max()
    return (
        np.clip((values - low) / (high - low), 0, 1)
        if high > low
        else np.where(np.isnan(values), np.nan, 0.5)
    )


def _heights(x: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
    """Where dots lie across the line of their column: beside each other, not on top."""
    cell = np.round(x / reach * 110).astype(np.int64)
    order = np.argsort(cell, kind="stable")
    # within a cell
    ranked = np.arange(len(x)) - np.searchsorted(cell[order], cell[order], side="left")
    side = np.where(ranked % 2, 1, -1) * ((ranked + 1) // 2)
    height = np.empty(len(x))
    height[order] = side
    return np.asarray(height * min(0.09, 0.38 / max(1, np.abs(side).max())))


@plotting
def waterfall(
    told: Any,
    row: int = 0,
    *,
    max_columns: int = 10,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw how the columns of one row lead from the average score to its own.

    Parameters
    ----------
    told : Explanation
        Made with ``booster.explain(X)``.
    row : int
        Which of its rows.
    max_columns : int
        How many columns to show; the others are one bar.
    output : int or str, optional
        Which class or target, where there are several; classes that are numbers by
        their number.
    {canvas}

    Returns
    -------
    Axes
    """
    without_interactions(told)
    values, base, name = one_output(told, output)
    if not 0 <= row < len(values):
        raise ParameterError(f"row {row} does not exist; choose 0..{len(values) - 1}.")
    steps = waterfall_steps(told, style.drawable(values[row]), row, max_columns)
    n = len(steps)
    score = f"score of {style.short(name)}" if name else "score"
    ax = style.axes(
        canvas, (7.4, 1.7 + 0.4 * n), title=f"Row {row}", xlabel=score, grid="x"
    )
    start = float(style.drawable(base[row]))
    at = start
    ends = [at]
    for place, (_, value) in zip(range(n - 1, -1, -1), steps[::-1], strict=True):
        color = style.BLUE if value < 0 else style.ORANGE
        ax.barh(place, value, left=at, color=color, height=0.62)
        ax.plot(
            [at + value] * 2,
            [place - 1.31 if place else place - 0.31, place + 0.31],
            color=style.GREY,
            linewidth=0.7,
        )
        right = at + max(value, 0)
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        ax.annotate(
            style.signed(value),
            (right, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=color,
            bbox=white,
        )
        at += value
        ends.append(at)
    return _finish_waterfall(ax, steps, start, at, ends)


def _finish_waterfall(
    ax: "Axes", steps: Any, base: float, score: float, ends: list[float]
) -> "Axes":
    n = len(steps)
    ax.set_yticks(range(n), [style.short(label, 40) for label, _ in steps[::-1]][::-1])
    ax.invert_yaxis()
    ax.axvline(base, color=style.GREY, linewidth=0.9, linestyle=":")
    ax.axvline(score, color=style.INK, linewidth=0.9, linestyle="--")
    room = (max(ends) - min(ends)) or abs(max(ends)) or 1.0
    ax.set_xlim(min(ends) - 0.06 * room, max(ends) + 0.16 * room)
    ax.text(
        1,
        1.02,
        f"average {base:.4g}  →  this row {score:.4g}",
        transform=ax.transAxes,
        ha="right",
        fontsize=9,
        color=style.INK,
    )
    return ax


def waterfall_steps(
    told: Any, values: NDArray[np.float64], row: int, n: int
) -> list[tuple[str, float]]:
    """Labels and values of the largest effects of a row, largest first, and of the
    others together.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    shown = [j for j in order[:n] if values[j] != 0]
    steps = [
        (f"{told.feature_names[j]} = {told.shown(row, j)}", float(values[j]))
        for j in shown
    ]
    rest = [j for j in order if j not in set(shown) and values[j] != 0]
    if rest:
        steps.append((f"{len(rest)} other columns", float(values[rest].sum())))
    return steps or [("no column", 0.0)]


@plotting
def dependence(
    told: Any,
    column: int | str,
    color_by: int | str | None = None,
    *,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw the Shapley values of one column against its values, a dot for each row.

    Parameters
    ----------
    told : Explanation
        Made with ``booster.explain(X)``.
    column : int or str
        The column along the axis.
    color_by : int or str, optional
        Another column, for the colour: shows whether the two act together.
    output : int or str, optional
        Which class or target, where there are several; classes that are numbers by
        their number.
    {canvas}

    Returns
    -------
    Axes
    """
    without_interactions(told)
    values, _, _ = one_output(told, output)
    j = _place(told, column)
    name = told.feature_names[j]
    title = f"Effect of {style.short(name)}"
    ax = style.axes(
        canvas,
        (6.6, 4.2),
        title=title,
        xlabel=style.short(name),
        ylabel="Shapley value",
    )
    x = style.drawable(told.data[:, j])
    y = style.drawable(values[:, j])
    missing = x < 0 if j in told.categories else np.isnan(x)
    if j in told.categories:
        x, names = _frequent(told, j, MAX_CATEGORIES)
        # dots of a category lie beside each other
        x += (np.arange(len(x)) * 0.618034 % 1 - 0.5) * 0.5
        style.categories(ax, names)
    if missing.any() and not missing.all():
        span = np.ptp(x[~missing]) or 1.0
        x[missing] = x[~missing].min() - 0.07 * span
        ax.axvline(x[missing][0] + 0.035 * span, color=style.FAINT, linewidth=1)
        ax.text(
            x[missing][0],
            0.99,
            "missing",
            transform=ax.get_xaxis_transform(),
            fontsize=8,
            ha="center",
            va="top",
            rotation=90,
            color=style.GREY,
        )
    ax.axhline(0, color=style.GREY, linewidth=0.8, zorder=0)
    look: dict[str, Any] = {"s": 12, "linewidths": 0, "alpha": 0.75, "rasterized": True}
    k = None if color_by is None else _place(told, color_by)
    if k is None:
        ax.scatter(x, y, color=style.BLUE, **look)
    elif k in told.categories:
        group, names = _frequent(told, k, len(style.CYCLE) - 2)
        for at, one in enumerate(names):
            ax.scatter(
                x[group == at],
                y[group == at],
                color=style.CYCLE[at],
                label=style.short(one, 20),
                **look,
            )
        missed = told.data[:, k] < 0
        ax.scatter(x[missed], y[missed], color=style.GREY, **look)
        style.legend(ax, title=style.short(told.feature_names[k]), title_fontsize=9)
    else:
        dots = ax.scatter(
            x,
            y,
            c=style.drawable(told.data[:, k]),
            cmap=style.SEQUENTIAL,
            plotnonfinite=True,
            **look,
        )
        bar = ax.figure.colorbar(dots, ax=ax, pad=0.02, aspect=30)
        bar.set_label(style.short(told.feature_names[k]), fontsize=9)
        bar.outline.set_visible(False)
    return ax


def _frequent(told: Any, column: int, n: int) -> tuple[NDArray[np.float64], list[str]]:
    """The place of every row's category among the `n` most frequent, and their names;
    all others share the last.
    """
    codes = told.data[:, column].astype(np.int64)
    known, rows = np.unique(codes[codes >= 0], return_counts=True)
    kept = np.sort(known[np.argsort(-rows, kind="stable")[:n]])
    names = [str(told.categories[column][code]) for code in kept]
    names += [f"{len(known) - len(kept)} others"] if len(known) > len(kept) else []
    place = np.where(
        np.isin(codes, kept), np.searchsorted(kept, codes), len(kept)
    ).astype(np.float64)
    return np.where(codes < 0, np.nan, place), names


def _place(told: Any, column: int | str) -> int:
    """The index of a column of an explanation."""
    if isinstance(column, str):
        if column not in told.feature_names:
            raise ParameterError(
                f"there is no column {column!r}; {suggest(column, told.feature_names)}"
            )
        return int(told.feature_names.index(column))
    if not 0 <= column < len(told.feature_names):
        raise ParameterError(
            f"there is no column {column}; choose 0..{len(told.feature_names) - 1}, or a name."
        )
    return int(column)
