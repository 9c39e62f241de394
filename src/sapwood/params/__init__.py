"""The parameters: one table of names, ranges, defaults, aliases and docs, and what is made of it.

In: what a user wrote. Out: every parameter under our name, checked.
"""

from sapwood.params.table import (
    OBJECTIVES,
    TABLE,
    Parameter,
    Recipe,
    by_hand,
    called,
    defaults,
    given_names,
    model_params,
    moved,
    names,
    rates,
    resolve,
)

__all__ = [
    "OBJECTIVES",
    "TABLE",
    "Parameter",
    "Recipe",
    "by_hand",
    "called",
    "defaults",
    "given_names",
    "model_params",
    "moved",
    "names",
    "rates",
    "resolve",
]
