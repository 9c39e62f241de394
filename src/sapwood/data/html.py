"""What notebooks show of an object: a small table that follows their light or dark
style.

In: names and values. Out: HTML.
"""

import html
from collections.abc import Iterable, Sequence
from typing import Any

from sapwood.printable import printable

CELL = "padding:2px 14px 2px 0;text-align:left;vertical-align:top"


def escape(text: str, lines: bool = False) -> str:
    """The text inside of an element or an attribute: it holds no markup, and no
    character that hides.
    """
    return html.escape(printable(text, lines))


def card(title: str, rows: Iterable[tuple[str, Any]], more: str = "") -> str:
    """A title and a table of two columns, and HTML after it."""
    body = "".join(
        f'<tr><td style="{CELL};opacity:.7">{escape(name)}</td><td style="{CELL}">{escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<div><strong>{escape(title)}</strong><table>{body}</table>{more}</div>"


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Names with bars and texts beside them."""
    top = max((abs(value) for _, value, _ in rows), default=0.0) or 1.0
    body = ""
    for name, value, text in rows:
        color = "#0072B2" if value >= 0 else "#D55E00"
        bar = f"display:inline-block;height:.8em;width:{8 * abs(value) / top:.2f}em;background:{color}"
        shown = f'<span style="{bar}"></span> {escape(text)}'
        body += f'<tr><td style="{CELL}">{escape(name)}</td><td style="{CELL}">{shown}</td></tr>'
    return f"<table>{body}</table>"
