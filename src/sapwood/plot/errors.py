"""How good are the predictions, and where are they wrong? Calibration, ROC,
precision-recall, confusion, residuals.

In: a model with rows and labels. Out: Axes.
"""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sapwood import metric as metrics
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.metric import curves
from sapwood.plot import style
from sapwood.plot.style import Canvas, plotting
from sapwood.plot.subject import labels, probabilities, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DOTS = 4000
MAX_CLASSES = 30


def _r2(label: Any, prediction: Any) -> float:
    """R2, or NaN where it cannot be measured."""
    if len(label) < 2 or not label.std():
        return float("nan")
    try:
        return metrics.r2(label, prediction, None)
    except DataError:  # errors whose squares overflow
        return float("nan")


def _one_class(
    model: Any, X: Any, y: Any, output: int | str | None
) -> tuple[Any, Any, str]:
    """Labels 0 and 1, probabilities and the name of one class, as plots show it; the
    second of two by default.
    """
    booster, p, names = probabilities(model, X)
    index = labels(booster, y, len(p))
    if output is None and len(names) > 2:
        raise ParameterError(
            f"the model has {len(names)} classes; choose one: output= one of {', '.join(names[:8])}."
        )
    if output is None:
        place = 1
    elif str(output) in names:
        place = names.index(str(output))
    else:
        raise ParameterError(
            f"there is no class {output!r}; {suggest(str(output), names)}"
        )
    return (index == place).astype(np.float64), p[:, place], style.short(names[place])


@plotting
def calibration(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_bins: int = 10,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw how often a class occurs among rows of about the same predicted probability,
    with 95 % intervals.

    Parameters
    ----------
    model : Booster or fitted classifier
    X, y : table and labels
        Better not those of training.
    n_bins : int
        Groups of rows, of about the same size.
    output : class, optional
        Which class; the second of two by default.
    {canvas}

    Returns
    -------
    Axes
        Points on the diagonal: the probabilities can be taken at their word.
    """
    label, p, name = _one_class(model, X, y, output)
    found = curves.calibration(label, p, n_bins)
    ax = style.axes(
        canvas,
        (5.4, 5.0),
        title="Calibration",
        xlabel=f"predicted probability of {name}",
        ylabel=f"share of {name} among the rows",
    )
    ax.plot(
        [0, 1], [0, 1], color=style.GREY, linewidth=1, linestyle="--", label="perfect"
    )
    bars = [found.observed - found.low, found.high - found.observed]
    ax.errorbar(
        found.predicted,
        found.observed,
        np.maximum(bars, 0),
        fmt="o-",
        color=style.BLUE,
        markersize=5,
        linewidth=1.4,
        elinewidth=1,
        capsize=2.5,
        label=f"{len(label):,} rows, 95 % intervals",
    )
    counts, edges = np.histogram(p, 40, (0, 1))
    ax.bar(
        edges[:-1],
        0.12 * counts / max(1, counts.max()),
        width=0.025,
        align="edge",
        color=style.FAINT,
        zorder=0,
    )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    style.legend(ax, loc="upper left")
    return ax


@plotting
def roc(
    model: Any,
    X: Any,
    y: Any,
    *,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw the receiver operating characteristic; arguments as in `calibration`."""
    label, p, name = _one_class(model, X, y, output)
    fpr, tpr, _ = curves.roc(label, p)
    area = metrics.auc(label, p, None)
    title = f"ROC of {name}: area {area:.4f}"
    ax = style.axes(
        canvas,
        (5.2, 5.0),
        title=title,
        xlabel="false positive rate",
        ylabel="true positive rate",
    )
    ax.plot([0, 1], [0, 1], color=style.GREY, linewidth=1, linestyle="--")
    ax.fill_between(fpr, tpr, color=style.BLUE, alpha=0.08, linewidth=0)
    ax.plot(fpr, tpr, color=style.BLUE, linewidth=1.8)
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.01, 1.01)
    ax.set_aspect("equal")
    return ax


@plotting
def precision_recall(
    model: Any,
    X: Any,
    y: Any,
    *,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw precision against recall, with the share of the class as a baseline;
    arguments as in `calibration`.
    """
    label, p, name = _one_class(model, X, y, output)
    recall, precision, _ = curves.precision_recall(label, p)
    average = metrics.average_precision(label, p, None)
    title = f"Precision and recall of {name}: average {average:.4f}"
    ax = style.axes(
        canvas, (5.2, 5.0), title=title, xlabel="recall", ylabel="precision"
    )
    share = float(label.mean())
    ax.axhline(
        share,
        color=style.GREY,
        linewidth=1,
        linestyle="--",
        label=f"share of the class, {share:.3g}",
    )
    ax.step(
        recall, precision, where="pre", color=style.BLUE, linewidth=1.8, label="model"
    )
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.01, 1.02)
    style.legend(ax, loc="lower left")
    return ax


@plotting
def confusion_matrix(
    model: Any,
    X: Any,
    y: Any,
    *,
    normalize: bool = False,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw how many rows of each class were predicted as each class.

    Parameters
    ----------
    model : Booster or fitted classifier
    X, y : table and labels
    normalize : bool
        Write shares of each class instead of numbers of rows.
    {canvas}

    Returns
    -------
    Axes
        The colour is the share of a class, whatever is written.
    """
    booster, p, names = probabilities(model, X)
    if len(names) > MAX_CLASSES:
        raise ParameterError(
            f"a matrix of {len(names)} classes cannot be read; at most {MAX_CLASSES} can be drawn."
        )
    index = labels(booster, y, len(p))
    chosen = p.argmax(axis=1) if len(names) > 2 else (p[:, 1] > 0.5).astype(np.int64)
    table = curves.confusion(index, chosen, len(names))
    share = table / np.maximum(1, table.sum(axis=1, keepdims=True))
    n = len(names)
    hits = float(np.trace(table)) / max(1, int(table.sum()))
    cell = 0.6 if n <= 12 else 0.36
    size = (2.4 + 1.1 * cell * n, 2.0 + cell * n)
    title = f"Confusion: {hits:.1%} right"
    ax = style.axes(
        canvas, size, title=title, xlabel="predicted", ylabel="actual", grid=None
    )
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    shown = [style.short(name, 16) for name in names]
    turned = max(map(len, shown)) > 6
    ax.set_xticks(
        range(n),
        shown,
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
    )
    ax.set_yticks(range(n), shown)
    small = 8.5 if n <= 12 else 6
    for i in range(n):
        for j in range(n):
            text = f"{share[i, j]:.1%}" if normalize else f"{table[i, j]:,}"
            if table[i, j] or n <= 12:
                color = "white" if share[i, j] > 0.55 else style.INK
                ax.text(
                    j, i, text, ha="center", va="center", fontsize=small, color=color
                )
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    return ax


@plotting
def residuals(
    model: Any,
    X: Any,
    y: Any,
    *,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw label minus prediction against the prediction, with the median and the
    middle 80 % along the way.

    Parameters
    ----------
    model : Booster or fitted regressor
    X, y : table and labels
        Better not those of training.
    output : int or str, optional
        Which target, where there are several.
    {canvas}

    Returns
    -------
    Axes
        A median away from 0 shows where the model is biased, a band that widens shows
        where it is unsure.
    """
    _, label, prediction = values(model, X, y, output)
    prediction = style.drawable(prediction)
    error = label - prediction
    ax = style.axes(
        canvas,
        (6.6, 4.2),
        title="Residuals",
        xlabel="prediction",
        ylabel="label − prediction",
    )
    step = -(-len(error) // MAX_DOTS)
    ax.scatter(
        prediction[::step],
        error[::step],
        s=8,
        color=style.BLUE,
        alpha=0.3,
        linewidths=0,
        rasterized=True,
    )
    ax.axhline(0, color=style.INK, linewidth=0.9)
    edges = np.unique(np.quantile(prediction, np.linspace(0, 1, 21)))
    if len(edges) > 3:
        place = np.clip(
            np.searchsorted(edges, prediction, side="right") - 1, 0, len(edges) - 2
        )
        parts = [
            (prediction[place == k], error[place == k]) for k in range(len(edges) - 1)
        ]
        parts = [part for part in parts if len(part[0])]
        x = [float(np.median(part[0])) for part in parts]
        low, middle, high = np.array(
            [np.quantile(part[1], [0.1, 0.5, 0.9]) for part in parts]
        ).T
        ax.fill_between(
            x,
            low,
            high,
            color=style.ORANGE,
            alpha=0.18,
            linewidth=0,
            label="middle 80 %",
        )
        ax.plot(x, middle, color=style.ORANGE, linewidth=2, label="median")
        reach = np.quantile(np.abs(error), 0.995) * 1.25
        if reach > 0:
            ax.set_ylim(-reach, reach)
            outside = int((np.abs(error) > reach).sum())
            if outside:
                ax.text(
                    1,
                    1.01,
                    f"{outside} rows outside",
                    transform=ax.transAxes,
                    ha="right",
                    fontsize=8,
                    color=style.GREY,
                )
        style.legend(ax)
    return ax


@plotting
def predicted_actual(
    model: Any,
    X: Any,
    y: Any,
    *,
    output: int | str | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw labels against predictions, a dot for each row; arguments as in
    `residuals`.
    """
    _, label, prediction = values(model, X, y, output)
    if not len(label):
        raise DataError("there are no rows to draw.")
    prediction = style.drawable(prediction)
    r2 = _r2(label, prediction)
    title = f"Predicted and actual: R² {r2:.4f}"
    ax = style.axes(
        canvas, (5.4, 5.2), title=title, xlabel="prediction", ylabel="label"
    )
    step = -(-len(label) // MAX_DOTS)
    ax.scatter(
        prediction[::step],
        label[::step],
        s=8,
        color=style.BLUE,
        alpha=0.3,
        linewidths=0,
        rasterized=True,
    )
    low, high = np.quantile(np.concatenate([label, prediction]), [0.001, 0.999])
    room = 0.04 * ((high - low) or abs(high) or 1.0)
    ax.plot(
        [low, high],
        [low, high],
        color=style.ORANGE,
        linewidth=1.4,
        linestyle="--",
        label="perfect",
    )
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    return ax
