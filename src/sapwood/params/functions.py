"""A user's objective or metric: which argument is which, in our order or in a peer's.

In: a function. Out: the function as one of (y, prediction), by the names of its arguments.
"""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from sapwood.errors import ParameterError

PREDICTIONS = ("pred", "y_pred", "yhat", "y_hat", "approx", "margin", "raw", "score")  # how names begin
LABELS = ("y", "label", "target", "true", "actual", "obs")
DATA = ("dtrain", "dval", "dtest", "dmat", "data", "train", "valid", "eval", "pool", "dset")


class LabelView:
    """What the functions (predictions, data) of LightGBM and XGBoost ask their data for."""

    def __init__(self, label: Any, weight: Any = None) -> None:
        self.label, self.weight = label, weight

    def get_label(self) -> Any:
        """The labels, (n_rows,) or (n_rows, n_outputs)."""
        return self.label

    def get_weight(self) -> Any:
        """The weights, (n_rows,); None where all rows count once."""
        return self.weight

    def get_field(self, name: str) -> Any:
        """Labels or weights by LightGBM's word for them."""
        return {"label": self.label, "weight": self.weight}.get(name)

    def num_data(self) -> int:
        """The number of rows."""
        return len(self.label)

    num_row = num_data


def order(function: Callable[..., Any], what: str) -> str:
    """In which order a function takes its first two arguments.

    function: callable; a user's objective or metric.
    what: str; what errors call it.
    Returns str: ``"ours"`` (y, prediction), ``"swapped"`` (prediction, y), or ``"data"`` (prediction, data), where the
      data has the labels. Names that say nothing are in our order.
    Raises ParameterError: Where the first is a prediction, and the second cannot be told.
    """
    try:
        given = signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return "ours"
    names = [one.name.lower().lstrip("_") for one in given if one.kind is not Parameter.KEYWORD_ONLY][:2]
    if len(names) < 2 or not names[0].startswith(PREDICTIONS) or names[1].startswith(PREDICTIONS):
        return "ours"
    if names[1].startswith(DATA):
        return "data"
    if names[1].startswith(LABELS):
        return "swapped"
    raise ParameterError(
        f"{what} takes {names[0]!r} first, a prediction by its name, and then {names[1]!r}. Is that the labels, or "
        "data that has labels? Name it y_true or dtrain, or make the function (y, prediction)."
    )


def in_our_order(function: Callable[..., Any], what: str) -> tuple[Callable[..., Any], bool]:
    """A function as one of (y, prediction, weight), and whether it has to be given the weight.

    Functions in our order are returned as they are, and False: the caller knows how to call them.
    """
    how = order(function, what)
    if how == "data":
        return lambda y, prediction, weight: function(prediction, LabelView(y, weight)), True
    if how == "swapped":
        extra = len(signature(function).parameters) > 2
        return lambda y, prediction, weight: function(prediction, y, *((weight,) if extra else ())), True
    return function, False
