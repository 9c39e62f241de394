"""Small drawings as SVG inside a page: their colours are variables of its style sheet,
so they follow light and dark.

In: numbers. Out: text of SVG elements.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import ceil, floor, isfinite
from typing import Any

import numpy as np

from sapwood.data.html import escape


def number(value: float | None, digits: int = 4) -> str:
    """A number for people."""
    if value is None or not isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.{digits}g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.3g}"


def short(text: Any, limit: int = 28) -> str:
    """A text that fits, escaped."""
    text = str(text)
    return escape(text if len(text) <= limit else f"{text[: limit - 1]}…")


ROUNDING = Decimal("1e-9")  # of a step, by which a tick may lie outside


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About `n` round numbers between two."""
    if not high > low:
        return [low]
    span = Decimal(high) - Decimal(low)  # a difference of floats may be infinite
    power = Decimal(1).scaleb((span / n).adjusted())
    step = power * next((k for k in (1, 2, 5, 10) if span / (k * power) <= n), 10)
    first = ceil(Decimal(low) / step - ROUNDING)
    last = floor(Decimal(high) / step + ROUNDING)
    return [float(k * step) for k in range(first, last + 1)]


def _open(width: float, height: float, label: str) -> str:
    """The beginning of a drawing."""
    view = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
    return f'<svg {view} role="img" aria-label="{escape(label)}" class="chart">'


class Chart:
    """A chart with two axes; what is added is drawn in order."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        label: str,
        xlabel: str = "",
        ylabel: str = "",
        size: tuple[int, int] = (460, 280),
    ) -> None:
        self.x, self.y, self.size = _wide(x), _wide(y), size
        self.left = 58
        self.right = 12
        self.top = 10
        self.bottom = 40
        self.parts: list[str] = []
        self.label = label
        self.names = (xlabel, ylabel)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point lies in the drawing."""
        width = self.size[0] - self.left - self.right
        height = self.size[1] - self.top - self.bottom
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + width * across, self.top + height * (1 - up)

    def line(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        kind: str = "c1",
        dashed: bool = False,
    ) -> None:
        """A line through points."""
        points = " ".join(
            f"{x:.1f},{y:.1f}"
            for x, y in (self.at(*one) for one in zip(xs, ys, strict=True))
            if isfinite(y)
        )
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline class="line {kind}" points="{points}"{dash}/>')

    def band(
        self,
        xs: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        kind: str = "c2",
    ) -> None:
        """The area between two lines."""
        there = [self.at(x, y) for x, y in zip(xs, low, strict=True)]
        back = [
            self.at(x, y) for x, y in zip(reversed(xs), reversed(high), strict=True)
        ]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in there + back)
        self.parts.append(f'<polygon class="band {kind}" points="{points}"/>')

    def dots(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        kind: str = "c1",
        r: float = 3,
        title: Any = None,
    ) -> None:
        """Dots, with texts that appear over them."""
        for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
            px, py = self.at(x, y)
            tip = f"<title>{escape(title[k])}</title>" if title else ""
            self.parts.append(
                f'<circle class="dot {kind}" cx="{px:.1f}" cy="{py:.1f}" r="{r}">{tip}</circle>'
            )

    def errors(
        self,
        xs: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        kind: str = "c1",
    ) -> None:
        """Vertical intervals."""
        for x, a, b in zip(xs, low, high, strict=True):
            (px, p0), (_, p1) = self.at(x, a), self.at(x, b)
            self.parts.append(
                f'<line class="line thin {kind}" x1="{px:.1f}" x2="{px:.1f}" y1="{p0:.1f}" y2="{p1:.1f}"/>'
            )

    def columns(
        self, edges: Sequence[float], heights: Sequence[float], kind: str = "c1"
    ) -> None:
        """A histogram."""
        for a, b, height in zip(edges[:-1], edges[1:], heights, strict=True):
            (x0, y0), (x1, y1) = self.at(a, 0), self.at(b, height)
            self.parts.append(
                f'<rect class="fill {kind}" x="{x0:.1f}" y="{y1:.1f}" width="{max(0.5, x1 - x0 - 0.8):.1f}" '
                f'height="{max(0, y0 - y1):.1f}"/>'
            )

    def svg(self) -> str:
        """The drawing."""
        width, height = self.size
        parts = [_open(width, height, self.label)]
        for value in ticks(*self.x, 6):
            px, py = self.at(value, self.y[0])
            parts.append(
                f'<text class="tick" x="{px:.1f}" y="{py + 15:.1f}" text-anchor="middle">{number(value)}</text>'
            )
            parts.append(
                f'<line class="grid" x1="{px:.1f}" x2="{px:.1f}" y1="{self.top}" y2="{py:.1f}"/>'
            )
        for value in ticks(*self.y):
            px, py = self.at(self.x[0], value)
            end = width - self.right
            parts.append(
                f'<text class="tick" x="{px - 6:.1f}" y="{py + 3.5:.1f}" text-anchor="end">{number(value)}</text>'
            )
            parts.append(
                f'<line class="grid" x1="{px:.1f}" x2="{end}" y1="{py:.1f}" y2="{py:.1f}"/>'
            )
        x = (self.left + width - self.right) / 2
        y = (self.top + height - self.bottom) / 2
        parts.append(
            f'<text class="axis" x="{x:.0f}" y="{height - 6}" text-anchor="middle">{escape(self.names[0])}</text>'
        )
        parts.append(
            f'<text class="axis" transform="translate(12 {y:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.names[1])}</text>"
        )
        return "".join([*parts, *self.parts, "</svg>"])


def _wide(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = (one if isfinite(one) else 0.0 for one in ends)
    if high > low:
        return low, high
    return low - 0.5, low + 0.5


def bars(
    rows: Sequence[tuple[str, float, str]],
    label: str,
    kind: str = "c1",
    width: int = 460,
) -> str:
    """Horizontal bars: name, value, and the text beside it."""
    top = max((abs(value) for _, value, _ in rows), default=1.0) or 1.0
    high = 22
    name_width = 190
    room = 90
    parts = [_open(width, high * len(rows) + 6, label)]
    for k, (name, value, text) in enumerate(rows):
        y = high * k + 4
        size = (width - name_width - room) * abs(value) / top
        color = kind if value >= 0 else "c2"
        parts.append(
            f'<text class="name" x="{name_width - 8}" y="{y + 12}" text-anchor="end">{short(name, 24)}</text>'
        )
        parts.append(
            f'<rect class="fill {color}" x="{name_width}" y="{y}" width="{size:.1f}" height="15" rx="2"/>'
        )
        parts.append(
            f'<text class="tick" x="{name_width + size + 5:.1f}" y="{y + 12}">{escape(text)}</text>'
        )
    return "".join([*parts, "</svg>"])


def spark(counts: Sequence[float], label: str) -> str:
    """A histogram as large as a word."""
    top = max(counts, default=0) or 1
    step = 92 / max(1, len(counts))
    rects = "".join(
        f'<rect class="fill c1" x="{k * step:.1f}" y="{22 - 21 * count / top:.1f}" width="{max(0.8, step - 1):.1f}" '
        f'height="{21 * count / top:.1f}"/>'
        for k, count in enumerate(counts)
    )
    return f'<svg viewBox="0 0 92 22" class="spark" role="img" aria-label="{escape(label)}">{rects}</svg>'


def waterfall(steps: Sequence[tuple[str, float]], base: float, label: str) -> str:
    """How the columns of a row lead from the average to its score; the largest on top,
    the average below.
    """
    width = 620
    name_width = 235
    high = 24
    at = base
    ends = [base]
    for _, value in reversed(steps):
        at += value
        ends.append(at)
    low = min(ends)
    top = max(ends)
    span = (top - low) or 1.0

    def place(value: float) -> float:
        return name_width + 12 + (width - name_width - 90) * (value - low) / span

    n = len(steps)
    parts = [_open(width, high * n + 30, label)]
    parts.append(
        f'<line class="grid" x1="{place(base):.1f}" x2="{place(base):.1f}" y1="0" y2="{high * n + 4}"/>'
    )
    at = base
    for k in range(n - 1, -1, -1):
        name, value = steps[k]
        x0 = place(at)
        x1 = place(at + value)
        y = high * k + 4
        color = "up" if value > 0 else "down"
        parts.append(
            f'<text class="name" x="{name_width}" y="{y + 13}" text-anchor="end">{short(name, 38)}</text>'
        )
        parts.append(
            f'<rect class="fill {color}" x="{min(x0, x1):.1f}" y="{y}" width="{max(1, abs(x1 - x0)):.1f}" height="17" '
            f'rx="2"/><text class="tick" x="{max(x0, x1) + 5:.1f}" y="{y + 13}">{value:+.3g}</text>'
        )
        at += value
    where = f'x="{place(base):.1f}" y="{high * n + 20}"'
    parts.append(
        f'<text class="axis" {where} text-anchor="middle">average {number(base)}</text>'
    )
    return "".join([*parts, "</svg>"])


def matrix(table: Any, names: Sequence[str], label: str) -> str:
    """A confusion matrix: numbers of rows, coloured by their share of the actual
    class.
    """
    table = np.asarray(table)
    share = table / np.maximum(1, table.sum(axis=1, keepdims=True))
    n = len(names)
    cell = 54 if len(names) <= 8 else 34
    left = 130
    size = left + n * cell + 10
    parts = [_open(size, n * cell + 58, label)]
    for i in range(n):
        y = 24 + i * cell
        at = f'x="{left - 8}" y="{y + cell / 2 + 4}"'
        parts.append(
            f'<text class="name" {at} text-anchor="end">{short(names[i], 16)}</text>'
        )
        middle = left + i * cell + cell / 2
        parts.append(
            f'<text class="tick" x="{middle}" y="16" text-anchor="middle">{short(names[i], max(3, cell // 7))}</text>'
        )
        for j in range(n):
            x = left + j * cell
            dark = " inverse" if share[i, j] > 0.55 else ""
            parts.append(
                f'<rect class="fill c1" style="opacity:{0.05 + 0.9 * share[i, j]:.2f}" x="{x}" y="{y}" '
                f'width="{cell - 2}" height="{cell - 2}"/>'
            )
            parts.append(
                f'<text class="tick{dark}" x="{x + cell / 2 - 1}" y="{y + cell / 2 + 4}" '
                f'text-anchor="middle">{int(table[i, j]):,}</text>'
            )
    parts.append(
        f'<text class="axis" x="{left + n * cell / 2}" y="{n * cell + 46}" text-anchor="middle">predicted</text>'
    )
    return "".join([*parts, "</svg>"])
