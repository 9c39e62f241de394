"""What all plots share: colours that colour-blind readers can tell apart, axes, labels that fit.

In: an Axes or None. Out: an Axes with the house's look; short texts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sapwood.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC3311", "#AA4499"  # after Okabe and Ito
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#999933", "#555555")
GREY, FAINT, INK = "#8a8a8a", "#d9d9d9", "#333333"
DIVERGING = "RdBu_r"
SEQUENTIAL = "cividis"
MAX_LABEL = 32


def pyplot() -> Any:
    """matplotlib's pyplot, or a sentence that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ParameterError("plots need matplotlib, which is not installed: pip install 'sapwood[plot]'.") from None
    return plt


def axes(
    ax: "Axes | None",
    size: tuple[float, float],
    *,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    grid: Literal["both", "x", "y"] | None = "both",
    dpi: float | None = None,
) -> "Axes":
    """The given Axes, or those of a new figure, with light lines behind what will be drawn."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=size, dpi=dpi, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(colors=INK, labelsize=9)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(True, axis=grid, color=FAINT, linewidth=0.6)
    if title:
        ax.set_title(title, fontsize=11, loc="left", color=INK)
    if xlabel is not None:
        ax.set_xlabel(xlabel, fontsize=9.5, color=INK)
    if ylabel is not None:
        ax.set_ylabel(ylabel, fontsize=9.5, color=INK)
    return ax


def short(text: Any, limit: int = MAX_LABEL) -> str:
    """A text that fits its place: the middle is left out if it is too long. No character of it is markup."""
    text = str(text).replace("$", r"\$")
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-(limit - limit // 2 - 1) :]}"


def number(value: float) -> str:
    """A number for people: four digits, no exponent where it can be avoided."""
    if not np.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3g}"


def legend(ax: "Axes", **more: Any) -> None:
    """A legend without a frame, if more than one thing is drawn."""
    handles, _ = ax.get_legend_handles_labels()
    if len(handles) > 1:
        ax.legend(frameon=False, fontsize=9, **more)


def categories(ax: "Axes", names: Sequence[Any]) -> None:
    """Names below the axis; turned if they would not fit side by side."""
    shown = [short(name, 22) for name in names]
    crowded = len(shown) * (max(map(len, shown), default=0) + 2) > 75
    ax.set_xticks(range(len(shown)), shown, rotation=40 if crowded else 0, ha="right" if crowded else "center")
