"""The exceptions that Sapwood raises, and how it warns.

In: an unknown name, and those that exist; a text. Out: a hint that suggests near names;
a warning at the user's line.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from os.path import dirname, sep

from sapwood.printable import printable

PACKAGE = dirname(__file__) + sep
MAX_CHOICES = (
    80  # names in a message: all parameters, but not all columns of a wide table
)


class SapwoodError(ValueError):
    """Base class of the errors that Sapwood raises.

    Each argument is a line of the message. What others wrote, such as the name of a
    column, cannot add lines to it.
    """

    def __str__(self) -> str:
        return "\n".join(printable(str(line)) for line in self.args)


class ParameterError(SapwoodError):
    """A parameter is unknown, of the wrong type or out of range."""


class DataError(SapwoodError):
    """A table, label, weight or score is not valid."""


class ModelFormatError(SapwoodError):
    """A model file is damaged, hostile or of another format."""


class CheckpointError(SapwoodError):
    """A checkpoint is of another training, damaged or in use."""


class MemoryLimitError(SapwoodError):
    """A training or a pass over rows cannot be done within its memory_limit."""


class HolderLostError(SapwoodError):
    """Another holder of rows has ended, or does not answer."""


class MessageError(SapwoodError):
    """Another holder of rows sent bytes that are no message, or is at another call."""


class ObjectiveError(SapwoodError):
    """A user's objective or metric failed, or returned an invalid value."""


class DivergedError(SapwoodError):
    """Scores became infinite during training."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the training diverged: {what} no longer finite; try a smaller learning_rate."
        )


def suggest(name: str, choices: Iterable[str]) -> str:
    """The hint for an unknown name: ``"did you mean 'max_bins'?"``, or ``"choose one of
    auto, narrow, wide."``.
    """
    choices = sorted(choices)
    listed = ", ".join(choices[:MAX_CHOICES])
    if len(choices) > MAX_CHOICES:
        listed += f" and {len(choices) - MAX_CHOICES:,} more"
    return near(name, choices) or f"choose one of {listed}."


def near(name: str, choices: Iterable[str]) -> str:
    """Suggest up to three choices that are spelled like a name; empty if there are
    none.
    """
    # compared without case, shown as it is spelled
    spelled = {choice.lower(): choice for choice in choices}
    found = [repr(spelled[key]) for key in get_close_matches(name.lower(), spelled)]
    return f"did you mean {' or '.join(found)}?" if found else ""


_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def warnings_heard() -> Iterator[list[str]]:
    """Collect the warnings of this thread, for somebody else to show, while this block
    lasts.
    """
    said: list[str] = []
    token = _heard.set(said)
    try:
        yield said
    finally:
        _heard.reset(token)


def warn(text: str) -> None:
    """Warn at the line of the user's program that called into the package, however deep
    the reason lies.
    """
    text = printable(text)
    if (said := _heard.get()) is not None:
        said.append(text)
        return
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level = level + 1
        frame = frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
