"""The plots of LightGBM and XGBoost under their names and with their arguments.

In: what their users write. Out: Axes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sapwood.errors import ParameterError
from sapwood.plot.importance import importance
from sapwood.plot.subject import booster_of
from sapwood.plot.training import learning_curve
from sapwood.plot.tree import tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ADJUSTED = ("xlim", "ylim", "xlabel", "ylabel")  # set on the Axes afterwards
# as LightGBM means them
KINDS = {"auto": "weight", "split": "weight", "gain": "total_gain"}
IGNORED = {
    "height",
    "ignore_zero",
    "precision",
    "show_values",
    "values_format",
    "grid",
    "fmap",
    "show_info",
    "orientation",
    "rankdir",
    "example_case",
}


def _adjust(ax: "Axes", title: str | None, more: dict[str, Any]) -> "Axes":
    """Set limits and labels as the peers' arguments say, and raise on names that nobody
    knows.
    """
    unknown = [name for name in more if name not in ADJUSTED and name not in IGNORED]
    if unknown:
        raise ParameterError(
            f"{', '.join(unknown)}: no such argument; adjust the Axes that is returned."
        )
    for name in ADJUSTED:
        if more.get(name) is not None and more[name] != "auto":
            getattr(ax, f"set_{name}")(more[name])
    if title is not None:
        ax.set_title(title)
    return ax


def plot_importance(
    booster: Any,
    ax: "Axes | None" = None,
    *,
    importance_type: str = "auto",
    max_num_features: int | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    dpi: float | None = None,
    **more: Any,
) -> "Axes":
    """Draw importances, as LightGBM's and XGBoost's `plot_importance`;
    `plot.importance` has every kind.

    Parameters
    ----------
    booster : Booster or fitted estimator
    ax : Axes, optional
    importance_type : str
        ``auto``, ``split`` and ``weight``: the number of splits; ``gain``: the gain of
        all splits, as in LightGBM; or any kind of `Booster.importance` that needs no
        rows.
    max_num_features : int, optional
        How many columns to show; all that are used by default.
    title, figsize, dpi, xlim, ylim, xlabel, ylabel : optional
        As in LightGBM.

    Returns
    -------
    Axes
    """
    kind = KINDS.get(importance_type, importance_type)
    ax = importance(
        booster, kind, max_columns=max_num_features, ax=ax, figsize=figsize, dpi=dpi
    )
    return _adjust(ax, title, more)


def plot_metric(
    booster: Any,
    metric: str | None = None,
    dataset_names: Sequence[str] | None = None,
    ax: "Axes | None" = None,
    *,
    title: str | None = None,
    figsize: tuple[float, float] = (7, 4),
    dpi: float | None = None,
    **more: Any,
) -> "Axes":
    """Draw a metric by round, as LightGBM's `plot_metric`; the same as
    `plot.learning_curve`.

    Parameters
    ----------
    booster : Booster, fitted estimator or dict
        What was trained with validation rows, or its metrics (``evals_result_``).
    metric : str, optional
        Which metric; the first by default.
    dataset_names : sequence of str, optional
        Which validation sets; all by default.
    ax, title, figsize, dpi, xlim, ylim, xlabel, ylabel : optional
        As in LightGBM.

    Returns
    -------
    Axes
    """
    history = booster if isinstance(booster, dict) else booster_of(booster).history
    if metric is None and history:
        metric = next(iter(next(iter(history.values()))))
    ax = learning_curve(booster, metric, dataset_names, ax=ax, figsize=figsize, dpi=dpi)
    return _adjust(ax, title, more)


def plot_tree(
    booster: Any,
    ax: "Axes | None" = None,
    tree_index: int = 0,
    *,
    num_trees: int | None = None,
    tree_idx: int | None = None,
    max_depth: int = 5,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    dpi: float | None = None,
    **more: Any,
) -> "Axes":
    """Draw a tree, as LightGBM's and XGBoost's `plot_tree`, without graphviz;
    `plot.tree` says what is drawn.

    Parameters
    ----------
    booster : Booster or fitted estimator
    ax : Axes, optional
    tree_index : int
        Which tree; ``num_trees`` and ``tree_idx`` are XGBoost's names for it.
    max_depth : int
        How many levels of splits to draw.
    title, figsize, dpi : optional

    Returns
    -------
    Axes
    """
    index = next((one for one in (num_trees, tree_idx) if one is not None), tree_index)
    return _adjust(
        tree(booster, index, max_depth=max_depth, ax=ax, figsize=figsize, dpi=dpi),
        title,
        more,
    )
