"""Every way Sapwood refuses something.

In: a name that does not exist and those that do. Out: the exceptions, and the hint that names the nearest.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class SapwoodError(ValueError):
    """Base of every error Sapwood raises on purpose."""


class ParameterError(SapwoodError):
    """A parameter is unknown, of the wrong type or out of range."""


class DataError(SapwoodError):
    """A table, label, weight or score cannot be used as given."""


class ModelFormatError(SapwoodError):
    """A saved model is damaged, hostile or of another format."""


class ObjectiveError(SapwoodError):
    """A user's objective or metric failed, or returned what cannot be used."""


class DivergedError(SapwoodError):
    """The scores of a training have run off to infinity."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the training diverged: {what} no longer finite; try a smaller learning_rate.")


def suggest(name: str, choices: Iterable[str]) -> str:
    """Say which of the choices a name was probably meant to be.

    Parameters
    ----------
    name : str
        What was given.
    choices : iterable of str
        What exists.

    Returns
    -------
    str
        ``"did you mean 'max_bins'?"`` with up to three names, or ``"choose one of auto, narrow, wide."``.
    """
    choices = list(choices)
    return near(name, choices) or f"choose one of {', '.join(sorted(choices))}."


def near(name: str, choices: Iterable[str]) -> str:
    """Name up to three choices that look like a name; empty where none does."""
    spelled = {choice.lower(): choice for choice in choices}  # compared without case, shown as it is spelled
    found = [repr(spelled[key]) for key in get_close_matches(name.lower(), spelled)]
    return f"did you mean {' or '.join(found)}?" if found else ""
