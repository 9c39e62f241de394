"""Which way is down: the objectives of the core by name, and those of users by value.

In: resolved parameters and labels. Out: an `Objective`, how many scores a row has, and gradients for a trainer.
"""

from sapwood.objective.custom import Custom
from sapwood.objective.objective import LEVELS, Objective, field_aliases, gradients, outputs, planes, resolve, start

__all__ = ["LEVELS", "Custom", "Objective", "field_aliases", "gradients", "outputs", "planes", "resolve", "start"]
