"""The parameters: one table of names, types, ranges, defaults, aliases and docs, and what is made of it.

In: what a user gave. Out: every parameter under our name, checked.
"""

from sapwood.params.aliases import OBJECTIVES
from sapwood.params.resolve import (
    allows_none,
    by_hand,
    called,
    defaults,
    given_names,
    model_params,
    names,
    rates,
    renamed,
    resolve,
)
from sapwood.params.table import TABLE, Parameter

__all__ = [
    "OBJECTIVES",
    "TABLE",
    "Parameter",
    "allows_none",
    "by_hand",
    "called",
    "defaults",
    "given_names",
    "model_params",
    "names",
    "rates",
    "renamed",
    "resolve",
]
