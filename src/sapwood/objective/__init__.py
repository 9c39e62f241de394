"""Objectives: those of the core by name, and users' own by value.

In: resolved parameters and labels. Out: an `Objective`, the number of scores of a row,
and gradients for a trainer.
"""

from sapwood.objective.custom import Custom
from sapwood.objective.objective import (
    LEVELS,
    Objective,
    field_aliases,
    gradients,
    outputs,
    planes,
    resolve,
    start,
)
from sapwood.objective.ranking import LOSSES, GroupLoss

__all__ = [
    "LEVELS",
    "LOSSES",
    "Custom",
    "GroupLoss",
    "Objective",
    "field_aliases",
    "gradients",
    "outputs",
    "planes",
    "resolve",
    "start",
]
