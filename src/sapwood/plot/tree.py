"""What does one tree do? Splits, shares of rows, missing directions, values and lines
of leaves.

In: a model and the number of a tree. Out: Axes.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sapwood.errors import ParameterError
from sapwood.model.booster import Booster
from sapwood.model.trees import Trees
from sapwood.plot import style
from sapwood.plot.style import Canvas, plotting
from sapwood.plot.subject import booster_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CATEGORIES = 3  # named in a split
LEAF_HEIGHT = 0.62  # inches


@dataclass
class Node:
    """A node to draw."""

    lines: list[str]  # what stands in its box
    share: float  # of the rows that reach it
    value: float | None = None  # of a leaf
    # linear: column, coefficient, effect
    slopes: list[tuple[str, float, float]] = field(default_factory=list)
    missing_left: bool | None = None
    children: "list[Node]" = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0


@plotting
def tree(
    model: Any,
    index: int = 0,
    *,
    max_depth: int = 5,
    precision: int = 4,
    **canvas: Unpack[Canvas],
) -> "Axes":
    """Draw one tree from left to right: the upper branch is for rows that fulfil the
    condition.

    The width of a line is the share of training rows that takes it. "missing" stands at
    the branch of missing values. A leaf is coloured by its value. A linear leaf also
    has the coefficients of two columns, and lines as steep as their effects. Nodes
    deeper than `max_depth` are summed up.

    Parameters
    ----------
    model : Booster or fitted estimator
    index : int
        Which tree, counted over all rounds and outputs.
    max_depth : int
        How many levels of splits to draw.
    precision : int
        Digits of numbers.
    {canvas}

    Returns
    -------
    Axes
    """
    booster = booster_of(model)
    if not 0 <= index < booster.trees.n_trees:
        raise ParameterError(
            f"tree {index} does not exist; choose 0..{booster.trees.n_trees - 1}."
        )
    root = layout(nodes(booster, index, max_depth, precision))
    leaves, depth = _ends(root), _depth(root)
    size = (2.3 * (depth + 1) + 0.8, max(2.0, LEAF_HEIGHT * len(leaves) + 0.8))
    about = f"Tree {index}, round {index // booster._per_round}"
    if booster.n_outputs > 1:
        names = (
            booster.classes if booster.classes is not None else range(booster.n_outputs)
        )
        about += f", output {style.short(names[int(booster.trees.output[index])])}"
    ax = style.axes(canvas, size, title=about, grid=None)
    values = [leaf.value for leaf in leaves if leaf.value is not None]
    reach = max((abs(value) for value in values), default=0.0) or 1.0
    cmap = style.pyplot().get_cmap(style.DIVERGING)
    steepest = (
        max((abs(effect) for leaf in leaves for *_, effect in leaf.slopes), default=0.0)
        or 1.0
    )
    _draw(ax, root, lambda value: cmap(0.5 + 0.38 * value / reach), steepest)
    ax.set_xlim(-0.42, depth + (0.62 if booster.linear else 0.45))
    ax.set_ylim(-0.7, len(leaves) - 0.3)
    ax.invert_yaxis()
    ax.set_axis_off()
    return ax


def nodes(booster: Booster, index: int, max_depth: int, precision: int = 4) -> Node:
    """The nodes of a tree down to a depth, with the texts that describe them."""
    one = booster.trees.slice(index, index + 1)
    weight = one.count if one.count.any() else one.cover
    total = float(weight[0]) or 1.0

    def make(at: int, depth: int) -> Node:
        share = float(weight[at]) / total
        left = int(one.left[at])
        if left == 0:
            return _leaf(booster, one, at, share, precision)
        # a symmetric tree splits nodes without rows too
        if depth == max_depth or not share:
            return Node([f"{_below(one.left, at)} leaves below"], share)
        missing = bool(one.missing_left[at] & 1)
        made = Node(condition(booster, one, at, precision), share, missing_left=missing)
        made.children = [make(left, depth + 1), make(left + 1, depth + 1)]
        return made

    return make(0, 0)


def condition(booster: Booster, one: Trees, at: int, precision: int = 4) -> list[str]:
    """The condition of the upper branch, in one or two short lines."""
    column = int(one.column[at])
    name = style.short(booster.internal_names[column], 24)
    if one.set[at] >= 0:
        known = booster._labelled[column]
        labels = [style.short(known.label(code), 14) for code in one.codes(at).tolist()]
        if not labels:
            return [name, "is new" if one.missing_left[at] > 1 else "is missing"]
        more = (
            f" +{len(labels) - MAX_CATEGORIES}" if len(labels) > MAX_CATEGORIES else ""
        )
        text = ", ".join(labels[:MAX_CATEGORIES])
        return [name, f"in {style.short(text, 26)}{more}"]
    if one.threshold[at] == np.inf:
        return [name, "is not missing"]
    return [name, f"≤ {one.threshold[at]:.{precision}g}"]


def _leaf(booster: Booster, one: Trees, at: int, share: float, precision: int) -> Node:
    value = float(one.value[at])
    slopes = []
    if one.linear is not None:
        _, columns, coefs, bounds = one.linear.slice(at, at + 1).terms
        # the range of a line
        span = (
            bounds[1::3] - bounds[::3] if len(bounds) else np.ones(booster.n_internal)
        )
        slopes = [
            (
                style.short(booster.internal_names[column], 16),
                float(coef),
                float(coef * span[column]),
            )
            for column, coef in zip(columns.tolist(), coefs.tolist(), strict=True)
            if column >= 0
        ]
    return Node([f"{value:+.{precision}g}"], share, value=value, slopes=slopes)


def _below(left: Any, at: int) -> int:
    """Leaves below a node."""
    return (
        1
        if left[at] == 0
        else _below(left, int(left[at])) + _below(left, int(left[at]) + 1)
    )


def layout(root: Node) -> Node:
    """Give every node its place: depth from left to right, ends from top to bottom,
    parents between their children.
    """
    ends = iter(range(10**9))

    def place(node: Node, depth: int) -> None:
        node.x = depth
        for child in node.children:
            place(child, depth + 1)
        node.y = (
            sum(child.y for child in node.children) / 2
            if node.children
            else float(next(ends))
        )

    place(root, 0)
    return root


def _ends(node: Node) -> list[Node]:
    return (
        [end for child in node.children for end in _ends(child)]
        if node.children
        else [node]
    )


def _depth(node: Node) -> int:
    return 1 + max(map(_depth, node.children)) if node.children else 0


def _draw(ax: "Axes", node: Node, color: Any, steepest: float) -> None:
    """Draw a node's branches, then its box over them."""
    for upper, child in zip((True, False), node.children, strict=False):
        t = np.linspace(0, 1, 30)
        rise = np.clip((t - 0.15) / 0.6, 0, 1)
        smooth = 3 * rise**2 - 2 * rise**3
        ax.plot(
            node.x + t,
            node.y + (child.y - node.y) * smooth,
            color="#b8b8b8",
            zorder=1,
            solid_capstyle="butt",
            linewidth=0.6 + 6 * child.share,
        )
        words = (["yes" if upper else "no"] if node.x == 0 else []) + (
            ["missing"] if node.missing_left == upper else []
        )
        if words:
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            ax.text(
                node.x + 0.5,
                node.y + (child.y - node.y) * 0.63,
                ", ".join(words),
                fontsize=6.5,
                color=style.ORANGE,
                ha="center",
                va="center",
                bbox=white,
                zorder=2,
            )
        _draw(ax, child, color, steepest)
    percent = f"{100 * node.share:.3g} %"
    box: dict[str, Any] = {
        "boxstyle": "round,pad=0.35",
        "edgecolor": "#9a9a9a",
        "linewidth": 0.8,
    }
    if node.value is None:
        text, box["facecolor"] = (
            "\n".join([*node.lines, percent]),
            "white" if node.children else "#f0f0f0",
        )
        ink = style.INK
    else:
        slopes = [f"{coef:+.3g} · {name}" for name, coef, _ in node.slopes[:2]]
        slopes += [f"… {len(node.slopes) - 2} more"] if len(node.slopes) > 2 else []
        text = "\n".join([f"{node.lines[0]}   ({percent})", *slopes])
        box["facecolor"] = color(node.value)
        box["edgecolor"] = style.GREEN if node.slopes else box["edgecolor"]
        red, green, blue, _ = box["facecolor"]
        ink = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#222222"
    # a line as steep as the column's effect in the leaf
    for k, (_, _, effect) in enumerate(node.slopes[:2]):
        x = node.x + 0.36 + 0.12 * k
        ax.plot(
            [x, x + 0.09],
            node.y + 0.3 * np.array([effect, -effect]) / steepest,
            color=style.GREEN,
            linewidth=1.6,
        )
    ax.text(
        node.x,
        node.y,
        text,
        ha="center",
        va="center",
        fontsize=7.5,
        color=ink,
        bbox=box,
        zorder=3,
        linespacing=1.25,
    )
