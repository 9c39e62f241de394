"""What all plots share: colours that colour-blind readers can tell apart, axes, labels
that fit.

In: an Axes or None. Out: an Axes with the house's look; short texts.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

import numpy as np

from sapwood.errors import ParameterError
from sapwood.printable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# after Okabe and Ito
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
RED = "#CC3311"
PURPLE = "#AA4499"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#999933", "#555555")
GREY = "#8a8a8a"
FAINT = "#d9d9d9"
INK = "#333333"
DIVERGING = "RdBu_r"
SEQUENTIAL = "cividis"
MAX_LABEL = 32
MAX_DRAWN = 1e300  # sums of so many as are drawn stay finite
UPRIGHT = 16  # more names than these stand upright below an axis
F = TypeVar("F", bound=Callable[..., Any])


class Canvas(TypedDict, total=False):
    """The arguments of every plot that say where and how large it draws."""

    ax: "Axes | None"
    title: str | None
    figsize: tuple[float, float] | None
    dpi: float | None


CANVAS_DOC = """    ax : Axes, optional
        Where to draw; a new figure by default.
    title, figsize, dpi : optional
        The title; size in inches and resolution of the new figure."""


def plotting(function: F) -> F:
    """Write the arguments of `Canvas` into the signature and the docstring of a plot;
    other names raise TypeError.
    """
    own = inspect.signature(function)
    named = [
        one for one in own.parameters.values() if one.name not in ("canvas", "more")
    ]
    named += [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
        )
        for name, kind in Canvas.__annotations__.items()
    ]
    whole = own.replace(
        parameters=named
        + [one for one in own.parameters.values() if one.name == "more"]
    )

    @functools.wraps(function)
    def checked(*given: Any, **by_name: Any) -> Any:
        try:
            whole.bind(*given, **by_name)
        except TypeError as cause:
            raise TypeError(f"{function.__name__}(): {cause}") from None
        return function(*given, **by_name)

    checked.__signature__ = whole  # type: ignore[attr-defined]
    checked.__doc__ = (function.__doc__ or "").replace("    {canvas}", CANVAS_DOC)
    return cast(F, checked)


def canvas(more: dict[str, Any]) -> Canvas:
    """Take the arguments of `Canvas` out of others."""
    return cast(
        Canvas,
        {name: more.pop(name) for name in Canvas.__annotations__ if name in more},
    )


def pyplot() -> Any:
    """matplotlib's pyplot, or a sentence that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ParameterError(
            "plots need matplotlib, which is not installed: pip install 'sapwood[plot]'."
        ) from None
    return plt


def axes(
    canvas: Canvas,
    size: tuple[float, float],
    *,
    title: str,
    xlabel: str | None = None,
    ylabel: str | None = None,
    grid: Literal["both", "x", "y"] | None = "both",
) -> "Axes":
    """The given Axes, or those of a new figure, with light lines behind what will be
    drawn.
    """
    plt = pyplot()
    ax = canvas.get("ax")
    if ax is None:
        _, ax = plt.subplots(
            figsize=canvas.get("figsize") or size,
            dpi=canvas.get("dpi"),
            layout="constrained",
        )
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(colors=INK, labelsize=9)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(True, axis=grid, color=FAINT, linewidth=0.6)
    title = title if canvas.get("title") is None else str(canvas["title"])
    if title:
        ax.set_title(title, fontsize=11, loc="left", color=INK)
    if xlabel is not None:
        ax.set_xlabel(xlabel, fontsize=9.5, color=INK)
    if ylabel is not None:
        ax.set_ylabel(ylabel, fontsize=9.5, color=INK)
    return ax


def short(text: Any, limit: int = MAX_LABEL) -> str:
    """A text that fits its place: the middle is left out if it is too long. No
    character of it is markup.
    """
    shown = printable(str(text))
    if len(shown) > limit:
        shown = f"{shown[: limit // 2]}…{shown[-(limit - limit // 2 - 1) :]}"
    return shown.replace("$", r"\$")


def drawable(values: Any) -> Any:
    """Numbers that matplotlib can scale: what is beyond `MAX_DRAWN`, or infinite, is
    drawn there; NaN stays.
    """
    return np.clip(values, -MAX_DRAWN, MAX_DRAWN)


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
        ax.legend(frameon=True, framealpha=0.8, edgecolor="none", fontsize=9, **more)


def signed(value: float) -> str:
    """A number that is added to others, with its sign."""
    return ("+" if value >= 0 else "-") + number(float(f"{abs(value):.3g}"))


def categories(ax: "Axes", names: Sequence[Any]) -> None:
    """Names below the axis; turned if they would not fit side by side, upright if there
    are many.
    """
    shown = [short(name, 22) for name in names]
    crowded = len(shown) * (max(map(len, shown), default=0) + 2) > 75
    turn = 90 if len(shown) > UPRIGHT else 40 if crowded else 0
    ax.set_xticks(
        range(len(shown)), shown, rotation=turn, ha="right" if turn == 40 else "center"
    )
