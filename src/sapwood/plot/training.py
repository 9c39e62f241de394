"""How did the training go? Learning curves.

In: a model, an estimator or a dict of metrics by round. Out: Axes.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sapwood.errors import ParameterError, suggest
from sapwood.metric import METRICS
from sapwood.plot import style
from sapwood.plot.style import Canvas, plotting
from sapwood.plot.subject import booster_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@plotting
def learning_curve(
    model: Any,
    metric: str | None = None,
    dataset_names: Sequence[str] | None = None,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw a metric by round, a line for each validation set, with its best round
    marked.

    Parameters
    ----------
    model : Booster, fitted estimator, or dict
        A model that was trained with validation rows; or a dict such as
        ``evals_result_``: name of a set, name of a metric, values by round. A model
        from a file has no history.
    metric : str, optional
        Which metric; needed where there are several.
    dataset_names : sequence of str, optional
        Which sets; all by default.
    {canvas}

    Returns
    -------
    Axes
    """
    history = model if isinstance(model, Mapping) else booster_of(model).history
    if not history:
        raise ParameterError(
            "there are no metrics by round: train with validation rows (valid=, eval_set=) or early_stopping_rounds; "
            "a model from a file has none, and neither has an automatic fit."
        )
    sets = list(history) if dataset_names is None else list(dataset_names)
    for name in sets:
        if name not in history:
            raise ParameterError(
                f"there is no validation set {name!r}; {suggest(str(name), history)}"
            )
    known = list(history[sets[0]])
    if metric is None and len(known) > 1:
        raise ParameterError(
            f"there are several metrics; choose one: metric= one of {', '.join(known)}."
        )
    metric = known[0] if metric is None else metric
    if metric not in known:
        raise ParameterError(
            f"metric {metric!r} was not measured; {suggest(str(metric), known)}"
        )
    higher = getattr(METRICS.get(metric.partition("@")[0]), "higher_is_better", False)
    ax = style.axes(
        canvas,
        (7, 4),
        title="Learning curve",
        xlabel="round",
        ylabel=style.short(metric),
    )
    best_of = getattr(getattr(model, "booster_", model), "best_round", None)
    for name, color in zip(
        sets, style.CYCLE * (1 + len(sets) // len(style.CYCLE)), strict=False
    ):
        values = np.asarray(history[name][metric], np.float64)
        rounds = np.arange(1, len(values) + 1)
        ax.plot(rounds, values, color=color, linewidth=1.6, label=style.short(name))
        best = (
            int(np.nanargmax(values) if higher else np.nanargmin(values))
            if len(values)
            else 0
        )
        ax.plot(best + 1, values[best], "o", color=color, markersize=5)
        if len(sets) == 1 or name == sets[-1]:
            ax.annotate(
                f"best {style.number(values[best])} in round {best + 1}",
                (best + 1, values[best]),
                xytext=(0, 9 if higher else -14),
                textcoords="offset points",
                fontsize=9,
                color=color,
                ha="right" if best > 0.6 * len(values) else "left",
            )
    if best_of:
        ax.axvline(best_of, color=style.GREY, linewidth=0.8, linestyle="--")
    ax.margins(x=0.02, y=0.12)
    style.legend(ax)
    return ax
