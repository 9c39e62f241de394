"""The parameters: one table of names, types, ranges, defaults, aliases and docs, and
what is made of it.

In: what a user gave. Out: every parameter under our name, checked.
"""

from sapwood.params.aliases import OBJECTIVES
from sapwood.params.of_model import check_model_params, model_params
from sapwood.params.resolve import (
    allows_none,
    by_hand,
    called,
    defaults,
    given_names,
    names,
    rates,
    renamed,
    resolve,
)
from sapwood.params.table import MANY_EVENTS, TABLE, ByEvents, Parameter, defaults_of

__all__ = [
    "MANY_EVENTS",
    "OBJECTIVES",
    "TABLE",
    "ByEvents",
    "Parameter",
    "allows_none",
    "by_hand",
    "called",
    "check_model_params",
    "defaults",
    "defaults_of",
    "given_names",
    "model_params",
    "names",
    "rates",
    "renamed",
    "resolve",
]
