"""How does a column matter? Partial dependence with single rows' curves, and effects of
categories.

In: a model, rows, and columns. Out: Axes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sapwood.errors import ParameterError
from sapwood.model.explain import shapley
from sapwood.model.explain.importance import column_of
from sapwood.plot import style
from sapwood.plot.style import Canvas, plotting
from sapwood.plot.subject import booster_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CURVES = 60
MAX_ROWS = 500  # for the mean curve
MAX_CATEGORIES = 20


@plotting
def partial_dependence(
    model: Any,
    X: Any,
    columns: int | str | Sequence[int | str],
    *,
    grid: int | None = None,
    individual: bool = True,
    raw: bool = False,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw the mean prediction as a column varies, and thin curves of single rows
    (ICE); of two columns a surface.

    Parameters
    ----------
    model : Booster or fitted estimator
    X : table
        Rows; 500 of them, evenly spaced, are used where there are more.
    columns : int, str, or two of these
        What varies.
    grid : int, optional
        How many values of a column: 40 of numbers, the 20 most frequent categories, 16
        of each of two columns; or this many.
    individual : bool
        Draw the curves of single rows too; a surface has none.
    raw : bool
        Raw scores instead of predictions.
    output : int or str, optional
        Which class or target, where there are several; classes that are numbers by
        their number.
    {canvas}

    Returns
    -------
    Axes
        Thin marks below are the deciles of the column: where they are far apart, there
        are few rows.
    """
    booster = booster_of(model)
    asked = [columns] if isinstance(columns, int | str) else list(columns)
    rows = _some(booster, X)
    by_category = [column_of(booster, one) in booster.categories for one in asked]
    usual = MAX_CATEGORIES if by_category[0] else 40
    usual = 16 if len(asked) > 1 else usual
    points = usual if grid is None else grid
    found = booster.partial_dependence(
        rows, asked, grid=points, individual=True, raw=raw
    )
    values = style.drawable(_output(booster, found.values, output))
    what = "raw score" if raw else "prediction"
    name = style.short(found.columns[0])
    if len(asked) == 2:
        other = style.short(found.columns[1])
        ax = style.axes(
            canvas,
            (6.4, 4.2),
            title=f"{name} and {other}",
            xlabel=name,
            ylabel=other,
            grid=None,
        )
        return _surface(ax, found.grid, values.mean(axis=0), what)
    ax = style.axes(
        canvas,
        (6.4, 4.2),
        title=f"Partial dependence on {name}",
        xlabel=name,
        ylabel=what,
    )
    mean = values.mean(axis=0)
    places = (
        np.arange(len(mean))
        if by_category[0]
        else style.drawable(np.asarray(found.grid[0], np.float64))
    )
    if individual:
        step = -(-len(values) // MAX_CURVES)
        curves = values[::step].T
        thin: dict[str, Any] = (
            {"linestyle": "none", "marker": "_"}
            if by_category[0]
            else {"linewidth": 0.8}
        )
        ax.plot(places, curves, color=style.BLUE, alpha=0.16, **thin)
        ax.plot([], [], color=style.BLUE, alpha=0.4, label="single rows", **thin)
    line: dict[str, Any] = (
        {"linestyle": "none", "marker": "o"} if by_category[0] else {"linewidth": 2.4}
    )
    ax.plot(places, mean, color=style.ORANGE, label="mean", **line)
    if by_category[0]:
        style.categories(ax, found.grid[0].tolist())
    else:
        own = style.drawable(
            shapley.table_of(rows.dense())[:, column_of(booster, asked[0])]
        )
        deciles = (
            np.nanquantile(own, np.linspace(0.1, 0.9, 9))
            if np.isfinite(own).any()
            else np.empty(0)
        )
        ax.plot(
            deciles,
            np.zeros(len(deciles)),
            "|",
            color=style.INK,
            markersize=9,
            clip_on=False,
            transform=ax.get_xaxis_transform(),
        )
    # beside the title, not on the curves
    style.legend(ax, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return ax


def _some(booster: Any, X: Any) -> Any:
    """At most `MAX_ROWS` rows of a table, evenly spaced, as the model reads them."""
    whole = booster._read(X).dense()
    step = -(-whole.n_rows // MAX_ROWS)
    columns = [np.ascontiguousarray(column[::step]) for column in whole.as_columns()]
    return type(whole)(columns, None, len(columns[0]), len(columns))


def _output(booster: Any, values: Any, output: int | str | None) -> Any:
    """The values of one output, which are the last axis where there are several."""
    if booster.n_outputs == 1:
        shapley.refuse_output(output)
        return values
    if output is None:
        names = ", ".join(shapley.outputs_of(booster)[:8])
        raise ParameterError(
            f"the model has several outputs; choose one: output= one of {names}."
        )
    return values[..., shapley.place_of(shapley.outputs_of(booster), output)]


def _surface(ax: "Axes", grids: Any, mean: Any, what: str) -> "Axes":
    """Draw a surface of two columns; categories get a place each."""
    places = [
        np.arange(len(one))
        if one.dtype == object
        else style.drawable(np.asarray(one, np.float64))
        for one in grids
    ]
    mesh = ax.pcolormesh(
        places[0],
        places[1],
        mean.T,
        cmap=style.SEQUENTIAL,
        shading="nearest",
        rasterized=True,
    )
    for axis, one, place in zip((ax.xaxis, ax.yaxis), grids, places, strict=True):
        if one.dtype == object:
            axis.set_ticks(place, [style.short(value, 16) for value in one])
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.set_label(f"mean {what}", fontsize=9)
    bar.outline.set_visible(False)
    return ax


@plotting
def category_effects(
    model: Any,
    X: Any,
    column: int | str,
    *,
    y: Any = None,
    max_categories: int = 20,
    raw: bool = False,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw the mean prediction if all rows had a category, for each of the most
    frequent categories, in their order.

    Parameters
    ----------
    model : Booster or fitted estimator
    X : table
        Rows; 500 of them, evenly spaced, are used where there are more.
    column : int or str
        A column of categories.
    y : optional
        Labels of the rows: their means by category are drawn as rings beside the
        effects.
    max_categories : int
        How many categories.
    raw, output : optional
        As in `partial_dependence`.
    {canvas}

    Returns
    -------
    Axes
    """
    booster = booster_of(model)
    j = column_of(booster, column)
    name = booster.feature_names[j]
    if j not in booster.categories:
        raise ParameterError(
            f"column {name!r} has numbers, not categories; use partial_dependence."
        )
    found = booster.partial_dependence(
        _some(booster, X), j, grid=max_categories, raw=raw
    )
    mean = style.drawable(_output(booster, found.values, output))
    order = np.argsort(mean, kind="stable")
    codes = shapley.table_of(booster._read(X).dense())[:, j]
    place = booster.categories[j].place
    at = [place[found.grid[0][k]] for k in order]
    rows = np.array([(codes == code).sum() for code in at])
    labels = [
        f"{style.short(found.grid[0][k], 24)}  ({n:,})"
        for k, n in zip(order, rows, strict=True)
    ]
    size = (6.8, 1.3 + 0.3 * len(order))
    what = "mean raw score" if raw else "mean prediction"
    ax = style.axes(
        canvas, size, title=f"Categories of {style.short(name)}", xlabel=what, grid="x"
    )
    ys = np.arange(len(order))
    middle = (
        float(np.average(mean[order], weights=np.maximum(rows, 1)))
        if len(order)
        else 0.0
    )
    ax.hlines(ys, middle, mean[order], color=style.FAINT, linewidth=2.5)
    ax.plot(
        mean[order],
        ys,
        "o",
        color=style.BLUE,
        markersize=7,
        label="if all rows had the category",
    )
    if y is not None:
        label = shapley.labels_of(booster, y, len(codes))
        observed = [
            label[codes == code].mean() if (codes == code).any() else np.nan
            for code in at
        ]
        ax.plot(
            observed,
            ys,
            "o",
            color=style.ORANGE,
            markersize=7,
            fillstyle="none",
            label="labels of its rows",
        )
    ax.axvline(middle, color=style.GREY, linewidth=0.8, linestyle=":")
    ax.set_yticks(ys, labels)
    style.legend(ax, loc="lower right")
    return ax
