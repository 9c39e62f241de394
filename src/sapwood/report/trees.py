"""The tree browser of the page.

In: a model. Out: drawings of some of its trees, to open one by one.
"""

from typing import Any

import numpy as np

from sapwood.data.html import escape
from sapwood.model.booster import Booster
from sapwood.report.svg import number, short

MAX_DEPTH = 5
# of a level and of a leaf, in pixels
CELL = 168
HIGH = 46


def browser(booster: Booster, most: int) -> str:
    """At most so many trees: the first ones, and others evenly spaced."""
    n = booster.trees.n_trees
    if n == 0:
        return "<p>The model has no trees.</p>"
    first = list(range(min(n, most // 2)))
    chosen = sorted(
        {*first, *np.linspace(0, n - 1, min(n, most - len(first))).astype(int).tolist()}
    )
    blocks = []
    for k, index in enumerate(chosen):
        name = f"tree {index}, round {index // booster._per_round}"
        if booster.n_outputs > 1:
            from sapwood.model.explain.shapley import outputs_of

            name += f", {outputs_of(booster)[int(booster.trees.output[index])]}"
        opened = " open" if k == 0 else ""
        blocks.append(
            f'<details class="pick" data-name="{escape(name)}"{opened}><summary>{escape(name)}</summary>'
            f'<div class="scroll">{drawn(booster, index)}</div></details>'
        )
    note = (
        f"<p>{len(chosen)} of {n:,} trees, down to depth {MAX_DEPTH}. The upper branch is for rows that fulfil the "
        "condition; the width of a branch is its share of the training rows; a dot marks where missing values go. A "
        "leaf shows what it adds to the score, at its mean row if it is linear.</p>"
    )
    return note + f'<div class="picker" data-what="tree">{"".join(blocks)}</div>'


def drawn(booster: Booster, index: int) -> str:
    """One tree as SVG."""
    one = booster.trees.slice(index, index + 1)
    weight = one.count if one.count.any() else one.cover
    total = float(weight[0]) or 1.0
    places: dict[int, tuple[int, float]] = {}  # node -> depth, height
    ends = iter(range(1 << 20))

    def place(node: int, depth: int) -> float:
        left = int(one.left[node])
        if left == 0 or depth == MAX_DEPTH or not weight[node]:
            height = float(next(ends))
        else:
            height = (place(left, depth + 1) + place(left + 1, depth + 1)) / 2
        places[node] = depth, height
        return height

    place(0, 0)
    reach = float(np.abs(one.value).max()) or 1.0
    n_ends = next(ends)
    deepest = max(depth for depth, _ in places.values())
    width = (deepest + 1) * CELL + 10
    height = n_ends * HIGH + 8
    lines = []
    boxes = []
    for node, (depth, y) in sorted(places.items()):
        share = float(weight[node]) / total
        left = int(one.left[node])
        inner = left in places and left > 0
        if inner:
            for child, missing in (
                (left, bool(one.missing_left[node] & 1)),
                (left + 1, not one.missing_left[node] & 1),
            ):
                lines.append(
                    _branch(
                        places[node],
                        places[child],
                        float(weight[child]) / total,
                        missing,
                    )
                )
        boxes.append(_box(booster, one, node, (depth, y), share, inner, reach))
    view = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {view} role="img" aria-label="tree {index}" class="tree">{"".join(lines)}{"".join(boxes)}</svg>'


def _branch(
    parent: tuple[int, float], child: tuple[int, float], share: float, missing: bool
) -> str:
    x0 = parent[0] * CELL + CELL - 24
    y0 = parent[1] * HIGH + HIGH / 2
    x1 = child[0] * CELL + 6
    y1 = child[1] * HIGH + HIGH / 2
    middle = (x0 + x1) / 2
    path = f"M{x0:.0f},{y0:.0f} C{middle:.0f},{y0:.0f} {middle:.0f},{y1:.0f} {x1:.0f},{y1:.0f}"
    mark = f'<circle class="fill c2" cx="{middle:.0f}" cy="{(y0 + y1) / 2:.0f}" r="3.5"><title>missing</title></circle>'
    return f'<path class="branch" d="{path}" stroke-width="{1 + 9 * share:.1f}"/>' + (
        mark if missing else ""
    )


def _box(
    booster: Booster,
    one: Any,
    node: int,
    place: tuple[int, float],
    share: float,
    inner: bool,
    reach: float,
) -> str:
    x = place[0] * CELL + 6
    y = place[1] * HIGH + 5
    w = CELL - 30
    h = HIGH - 10
    if inner:
        upper, lower = _condition(booster, one, node)
        style = 'class="node"'
    elif one.left[node]:
        upper = "deeper splits" if share else "no rows"
        lower = ""
        style = 'class="node deeper"'
    else:
        value = float(one.value[node])
        upper = f"{value:+.4g}"
        lower = ""
        if one.linear is not None:
            n_terms = len(one.linear.slice(node, node + 1).linear_coef) - 1
            lower = f"linear in {n_terms} columns, " if n_terms > 0 else ""
        side = "up" if value > 0 else "down"
        depth_of_color = 0.12 + 0.55 * abs(value) / reach
        style = f'class="node leaf {side}" style="fill-opacity:{depth_of_color:.2f}"'
    percent = f"{100 * share:.2g} %" if share < 1 else "100 %"
    lower = f"{lower} {percent}" if inner else f"{lower}{percent} of rows"
    return (
        f'<rect {style} x="{x}" y="{y:.0f}" width="{w}" height="{h}" rx="5"/>'
        f'<text class="name" x="{x + w / 2}" y="{y + 15:.0f}" text-anchor="middle">{short(upper, 19)}</text>'
        f'<text class="tick" x="{x + w / 2}" y="{y + 29:.0f}" text-anchor="middle">{short(lower, 26)}</text>'
    )


def _condition(booster: Booster, one: Any, node: int) -> tuple[str, str]:
    """The condition of the upper branch, in two short lines."""
    column = int(one.column[node])
    name = booster.internal_names[column]
    if one.set[node] >= 0:
        labels = [
            booster._labelled[column].label(code) for code in one.codes(node).tolist()
        ]
        if not labels:
            return name, "missing?"
        more = f" +{len(labels) - 1}" if len(labels) > 1 else ""
        text = labels[0] if len(labels[0]) <= 11 else f"{labels[0][:10]}…"
        return name, f"in {text}{more},"
    threshold = float(one.threshold[node])
    return name, "not missing," if threshold == np.inf else f"≤ {number(threshold)},"
