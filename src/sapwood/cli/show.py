"""What people and scripts see: results on stdout, progress and errors on stderr.

In: what a command has found. Out: text or one JSON object; a live display in a
terminal, else a line now and then.
"""

import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sapwood.data.progress import Sight, watching
from sapwood.printable import encodable, printable

EVERY = 5.0  # seconds between two lines where stderr is no terminal


@dataclass
class Output:
    """How a command speaks."""

    quiet: bool = False
    as_json: bool = False
    found: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """A line about what is going on, to stderr."""
        if not self.quiet and not self.as_json:
            print(printable(text), file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """A line that should not be missed, to stderr, once; `--quiet` keeps it."""
        text = printable(text)
        said = self.found.setdefault("warnings", [])
        if text in said:
            return
        said.append(text)
        if not self.as_json:
            print(f"warning: {text}", file=sys.stderr, flush=True)

    def result(self, text: str, **values: Any) -> None:
        """What was asked for: lines of text to stdout, or values for the JSON
        object.
        """
        self.found |= values
        if not self.as_json:
            print(printable(text, lines=True), flush=True)

    def end(self) -> None:
        """Write the JSON object, if that was asked for."""
        if self.as_json:
            print(json.dumps(plain(self.found), allow_nan=False, indent=2), flush=True)


def plain(value: Any) -> Any:
    """A value as JSON has it; what is not finite is null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {encodable(str(name)): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return encodable(str(value))


def number(value: float | None) -> str:
    """A number of a table: five digits."""
    return "" if value is None else f"{value:,.5g}"


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Rows as aligned text: the first column to the left, the others to the right; a
    row is a line.
    """
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    shown = []
    for line in lines:
        cells = [
            cell.ljust(w) if k == 0 else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        shown.append("  ".join(cells).rstrip())
    return "\n".join(shown)


@contextmanager
def python_warnings(output: Output) -> Iterator[None]:
    """Say what the library warns of in this block as `Output.warn` does; other
    packages' warnings are not shown.
    """

    def say(
        message: Warning | str, category: type[Warning], *_: Any, **__: Any
    ) -> None:
        if issubclass(category, UserWarning):
            output.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = say
        yield


class Titled:
    """What shows progress; `title` says which training of several this is."""

    title = ""

    def named(self, sight: Sight) -> str:
        """What is going on."""
        return printable(f"{self.title}: {sight.stage}" if self.title else sight.stage)


@contextmanager
def progress(output: Output) -> Iterator[Titled]:
    """Show how the trainings of this block go."""
    if output.quiet or output.as_json:
        yield Titled()
        return
    display = _Live() if sys.stderr.isatty() else _Lines()
    with display, watching(display.see):
        yield display


class _Best:
    """The best value of a stage so far."""

    def __init__(self) -> None:
        self.stage, self.value, self.round, self.start = (
            "",
            float("nan"),
            0,
            time.monotonic(),
        )

    def update(self, sight: Sight) -> None:
        """Take in a round."""
        if sight.stage != self.stage or sight.round <= 1:
            self.stage, self.value, self.round, self.start = (
                sight.stage,
                float("nan"),
                0,
                time.monotonic(),
            )
        value = next(iter(sight.measured.values()), float("nan"))
        better = value > self.value if sight.higher_is_better else value < self.value
        if better or self.value != self.value:
            self.value = value
            self.round = sight.round

    def text(self, sight: Sight) -> str:
        """The losses, and the best one."""
        shown = ", ".join(
            f"{printable(name)} {value:.5g}"
            for name, value in list(sight.measured.items())[:2]
        )
        best = (
            f", best {self.value:.5g} in round {self.round}"
            if self.value == self.value
            else ""
        )
        return shown + best

    def rate(self, sight: Sight) -> float:
        """Rounds a second."""
        # the clock begins after the first round
        return (sight.round - 1) / max(0.1, time.monotonic() - self.start)


class _Lines(Titled):
    """A line every few seconds, for files and pipes."""

    def __init__(self) -> None:
        self.best, self.last = _Best(), time.monotonic()

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def see(self, sight: Sight) -> None:
        """Take in a round."""
        self.best.update(sight)
        if time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            line = (
                f"{self.named(sight)}: round {sight.round} of at most {sight.n_rounds}, "
                f"{self.best.rate(sight):.0f} a second"
            )
            losses = self.best.text(sight)
            print(line + (f", {losses}" if losses else ""), file=sys.stderr, flush=True)


class _Live(Titled):
    """A bar in a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        def text(pattern: str) -> TextColumn:
            """A column of text in which nothing is markup: stages and metrics have
            names that others gave.
            """
            return TextColumn(pattern, markup=False)

        self.best = _Best()
        self.drawn = 0.0
        self.bar = Progress(
            text("{task.description}"),
            BarColumn(bar_width=24),
            text("{task.completed:.0f}/{task.total:.0f}"),
            text("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            text("{task.fields[losses]}"),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
        )
        self.task = self.bar.add_task("preparing the rows", total=1, rate="", losses="")

    def __enter__(self) -> "_Live":
        self.bar.start()
        self.bar.refresh()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def see(self, sight: Sight) -> None:
        """Take in a round."""
        stage = self.best.stage
        self.best.update(sight)
        if sight.stage != stage or sight.round <= 1:
            self.bar.reset(
                self.task, total=sight.n_rounds, description=self.named(sight)
            )
        now = time.monotonic()
        if now - self.drawn > 0.1 or sight.round == sight.n_rounds:
            self.drawn = now
            rate = f"{self.best.rate(sight):.0f}/s"
            self.bar.update(
                self.task,
                completed=sight.round,
                rate=rate,
                losses=self.best.text(sight),
            )
            self.bar.refresh()
