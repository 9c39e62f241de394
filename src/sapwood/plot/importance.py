"""Which columns matter? Importances of every kind, and pairs that act together.

In: a model, and rows for the kinds that look at them. Out: Axes.
"""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sapwood.errors import ParameterError
from sapwood.plot import style
from sapwood.plot.style import Canvas, plotting
from sapwood.plot.subject import booster_of, one_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "gain": "average gain of a split",
    "total_gain": "gain of all splits",
    "weight": "number of splits",
    "cover": "average hessian sum of a split",
    "cover_rows": "average rows of a split",
    "shap": "mean |Shapley value|",
    "permutation": "rise of the loss if the column is permuted",
    "loss_function_change": "rise of the loss without the column",
    "prediction_values_change": "change of predictions",
    "sage": "SAGE value",
}


@plotting
def importance(
    model: Any,
    kind: str = "total_gain",
    X: Any = None,
    y: Any = None,
    *,
    max_columns: int | None = 20,
    percent: bool = False,
    show_values: bool = True,
    **more: Any,
) -> "Axes":
    """Draw the importance of each column as a bar, the largest on top.

    Parameters
    ----------
    model : Booster or fitted estimator
    kind : str
        As in `Booster.importance`.
    X, y : optional
        Rows and labels, for the kinds that look at them.
    max_columns : int, optional
        How many columns to show.
    percent : bool
        Show shares of the sum.
    show_values : bool
        Write the value beside each bar.
    {canvas}
    **more
        Further arguments of `Booster.importance`: `metric`, `groups`, `n_repeats`, ...

    Returns
    -------
    Axes
    """
    canvas = style.canvas(more)
    booster = booster_of(model)
    values = booster.importance(kind, X, y, percent=percent, **more)
    if values.ndim == 2:
        raise ParameterError(
            "kind 'interaction' has a number for each pair of columns; use plot.interactions."
        )
    groups = more.get("groups")
    names = (
        booster.feature_names if groups is None else [str(group) for group in groups]
    )
    order = np.argsort(-values, kind="stable")
    order = order[values[order] != 0][:max_columns]
    label = LABELS.get(kind, kind.replace("_", " ")) + (
        ", % of the sum" if percent else ""
    )
    size = (7, 1.2 + 0.28 * max(1, len(order)))
    ax = style.axes(canvas, size, title="Importance of columns", xlabel=label, grid="x")
    place = np.arange(len(order))[::-1]
    colors = [style.BLUE if value >= 0 else style.ORANGE for value in values[order]]
    ax.barh(place, values[order], color=colors, height=0.68)
    ax.set_yticks(place, [style.short(names[j]) for j in order])
    if show_values:
        for at, value in zip(place, values[order], strict=True):
            text = f"{round(value, 1) + 0.0:.1f} %" if percent else style.number(value)
            ax.annotate(
                text,
                (max(value, 0), at),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                color=style.INK,
            )
    ax.margins(x=0.12)
    ax.set_ylim(-0.7, len(order) - 0.3)
    left = len(values) - len(order)
    if left:
        ax.text(
            1,
            0,
            f"{left} more columns",
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize=8,
            color=style.GREY,
        )
    return ax


@plotting
def interactions(
    told: Any,
    *,
    max_columns: int = 12,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw how strongly pairs of columns act together, as a heat map.

    Parameters
    ----------
    told : Explanation
        Made with ``booster.explain(X, interactions=True)``.
    max_columns : int
        How many columns to show, those with the largest effects.
    output : int or str, optional
        Which class or target, where there are several; classes that are numbers by
        their number.
    {canvas}

    Returns
    -------
    Axes
        A cell is the mean absolute effect that the two columns have together; the
        diagonal, of a column alone.
    """
    values, _, _ = one_output(told, output)
    if values.ndim != 3:
        raise ParameterError("a heat map of pairs needs explain(X, interactions=True).")
    strength = np.abs(values).mean(axis=0)
    pairs = strength * (2 - np.eye(len(strength)))  # both halves of an interaction
    order = np.argsort(-strength.sum(axis=1), kind="stable")[:max_columns]
    shown = pairs[np.ix_(order, order)]
    n = len(order)
    size = (2.6 + 0.52 * n, 2.0 + 0.46 * n)
    ax = style.axes(canvas, size, title="Effects of columns and of pairs", grid=None)
    drawn = np.where(np.tril(np.ones((n, n), bool)), shown, np.nan)
    image = ax.imshow(drawn, cmap="YlGnBu", vmin=0)
    names = [style.short(told.feature_names[j], 20) for j in order]
    ax.set_xticks(range(n), names, rotation=40, ha="right")
    ax.set_yticks(range(n), names)
    top = np.nanmax(drawn) if n else 0.0
    for i in range(n):
        for j in range(i + 1):
            dark = shown[i, j] > 0.55 * top
            text = style.number(float(f"{shown[i, j]:.2g}"))
            ax.text(
                j,
                i,
                text,
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark else "#222",
            )
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02)
    bar.set_label("mean |effect| on the score", fontsize=9)
    bar.outline.set_visible(False)
    return ax
