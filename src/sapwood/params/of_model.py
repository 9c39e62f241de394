"""The parameters of a model file: which ones a model keeps, and what values they may
have there.

In: the resolved parameters of a training, or those of a file. Out: the parameters of a
model, or an error.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from sapwood.errors import ParameterError
from sapwood.params.table import ADDED_LATER, BY_NAME

# the learning rate of a model whose rate changed from round to round; the trees have
# the rates
SCHEDULED = "scheduled"


def model_params(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a model keeps: those that can change predictions.

    The number of rounds is left out, since 10 + 10 rounds equal 20. So is
    `eval_metric`, which may be a function; `best_round` has its result. Learning rates
    that change by round are in the trees.
    """
    kept = {
        name: value
        for name, value in resolved.items()
        if name not in BY_NAME or BY_NAME[name].model
    }
    for name in ADDED_LATER:
        if kept[name] == BY_NAME[name].default:
            del kept[name]
    if not isinstance(kept.get("learning_rate"), float):
        kept["learning_rate"] = SCHEDULED
    return kept


def check_model_params(params: Mapping[str, Any]) -> None:
    """Raise a ParameterError unless a model file may hold these parameters; the writer
    and the reader both ask.

    A parameter of the table must have a value that a training can give it. Others must
    be values of JSON.
    """
    for name, value in params.items():
        if not _is_json(value):
            raise ParameterError(
                f"{name}={_shown(value)} is no value of JSON; give None, bools, finite numbers, strings, and lists or "
                "dicts of these."
            )
        # its type would open the file of that path
        if name == "forced_splits" and isinstance(value, str):
            raise ParameterError(
                f"{name}={_shown(value)} is a path; a model file holds the splits themselves."
            )
        is_schedule = name == "learning_rate" and value == SCHEDULED
        if name in BY_NAME and not is_schedule:
            BY_NAME[name].type.check(f"{name}={_shown(value)}", value)


def _shown(value: Any) -> str:
    return str(value)[:200]


def _is_json(value: Any) -> bool:
    """Whether JSON has a text for a value. The walk is no recursion, since a hostile
    file may be nested deeply.
    """
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if not all(isinstance(key, str) for key in part):
                return False
            pending.extend(part.values())
        elif isinstance(part, list | tuple):
            pending.extend(part)
        elif isinstance(part, float):
            if not isfinite(part):
                return False
        elif part is not None and not isinstance(part, bool | int | str):
            return False
    return True
