"""A user's objective or metric: which argument is which, in our order or in a peer's.

In: a function. Out: the function as one of (y, prediction), by the names of its
arguments.
"""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError, ParameterError, suggest

FIELDS = ("label", "weight", "init_score", "group")
# how names begin
PREDICTIONS = ("pred", "y_pred", "yhat", "y_hat", "approx", "margin", "raw", "score")
LABELS = ("y", "label", "target", "true", "actual", "obs")
DATA = (
    "dtrain",
    "dval",
    "dtest",
    "dmat",
    "data",
    "train",
    "valid",
    "eval",
    "pool",
    "dset",
)


class LabelView:
    """What the functions (predictions, data) of LightGBM and XGBoost ask their data
    for.
    """

    def __init__(self, label: Any, weight: Any = None) -> None:
        self.label = label
        self.weight = weight

    def get_label(self) -> Any:
        """The labels, (n_rows,) or (n_rows, n_outputs)."""
        return self.label

    def get_weight(self) -> Any:
        """The weights, (n_rows,); None where all rows count once."""
        return self.weight

    def get_field(self, name: str) -> Any:
        """LightGBM's: ``"label"``, ``"weight"``, ``"init_score"``, or ``"group"``, at
        which rows groups begin and end.

        What was not given is None.
        """
        if name not in FIELDS:
            raise ParameterError(
                f"get_field has no field {name!r}; {suggest(str(name), FIELDS)}"
            )
        value = getattr(self, name, None)
        if value is None:
            return None
        if name == "init_score" and np.ndim(value) == 2 and np.shape(value)[1] == 1:
            return np.ravel(value)
        return _bounds(value, self.num_data()) if name == "group" else value

    def num_data(self) -> int:
        """The number of rows."""
        return len(self.label)

    num_row = num_data


def _bounds(group: Any, n_rows: int) -> NDArray[np.int64]:
    """The first row of each group, and the number of rows at the end, of sizes or of
    the group of every row.
    """
    given = np.asarray(group)
    if len(given) != n_rows:
        return np.cumsum([0, *given], dtype=np.int64)
    starts = np.flatnonzero(given[1:] != given[:-1]) + 1
    if len(np.unique(given)) != len(starts) + 1:
        raise DataError(
            "get_field('group') is for groups of consecutive rows; `group` has the group of every row."
        )
    return np.array([0, *starts, n_rows], np.int64)


def order(function: Callable[..., Any], what: str) -> str:
    """In which order a function takes its first two arguments.

    function: callable; a user's objective or metric.
    what: str; what errors call it.
    Returns str: ``"ours"`` (y, prediction), ``"swapped"`` (prediction, y), or
    ``"data"`` (prediction, data), where the
      data has the labels. Names that say nothing are in our order.
    Raises ParameterError: Where the first is a prediction, and the second cannot be
    told.
    """
    try:
        given = signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return "ours"
    names = [
        one.name.lower().lstrip("_")
        for one in given
        if one.kind is not Parameter.KEYWORD_ONLY
    ][:2]
    if (
        len(names) < 2
        or not names[0].startswith(PREDICTIONS)
        or names[1].startswith(PREDICTIONS)
    ):
        return "ours"
    if names[1].startswith(DATA):
        return "data"
    if names[1].startswith(LABELS):
        return "swapped"
    raise ParameterError(
        f"{what} takes {names[0]!r} first, a prediction by its name, and then {names[1]!r}. Is that the labels, or "
        "data that has labels? Name it y_true or dtrain, or make the function (y, prediction)."
    )


def in_our_order(
    function: Callable[..., Any], what: str
) -> tuple[Callable[..., Any], bool]:
    """A function as one of (y, prediction, weight), and whether it has to be given the
    weight.

    Functions in our order are returned as they are, and False: the caller knows how to
    call them.
    """
    how = order(function, what)
    if how == "data":
        return lambda y, prediction, weight: function(
            prediction, LabelView(y, weight)
        ), True
    if how == "swapped":
        extra = len(signature(function).parameters) > 2
        return lambda y, prediction, weight: function(
            prediction, y, *((weight,) if extra else ())
        ), True
    return function, False
