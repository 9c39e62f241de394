"""What a label of a ranking is worth, by `label_gain`.

In: labels and a rule. Out: gains, or the probabilities of ERR.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError

Floats = NDArray[np.float64]
MAX_EXPONENT = 30  # the largest label with a gain of 2^label - 1
MAX_AUTO = 5  # the largest label for which label_gain='auto' is 'exp'
RELEVANT = 0.5  # a row is relevant if its label is above this


def gain_rule(given: Any, label: Floats) -> Any:
    """What label_gain='auto' means for these labels: 'exp' for whole ones up to 5, else
    'linear'.
    """
    if not isinstance(given, str) or given != "auto":
        return given
    return (
        "exp"
        if label.max(initial=0.0) <= MAX_AUTO and (label == np.floor(label)).all()
        else "linear"
    )


def gains(label: Floats, rule: Any) -> Floats:
    """The gain of every label: 2^label - 1 ('exp'), the label ('linear'), or that of a
    list, by label.
    """
    if label.min(initial=0.0) < 0:
        raise DataError(
            f"label {label.min():g} is below 0; the label of a ranking says how relevant a row is."
        )
    if isinstance(rule, str) and rule == "linear":
        return label
    if (label != np.floor(label)).any():
        raise DataError(
            f"label {label[label != np.floor(label)][0]:g} is not whole; set label_gain='linear'."
        )
    top = MAX_EXPONENT if isinstance(rule, str) else len(rule) - 1
    if label.max(initial=0.0) > top:
        hint = (
            "set label_gain='linear', or a list"
            if isinstance(rule, str)
            else "give a longer list"
        )
        raise DataError(
            f"label {label.max():g} has no gain, the largest is {top}; {hint}."
        )
    table = (
        np.ldexp(1.0, np.arange(top + 1)) - 1.0
        if isinstance(rule, str)
        else np.asarray(rule, np.float64)
    )
    found: Floats = np.take(table, label.astype(np.intp))
    return found


def satisfaction(label: Floats, rule: Any, top: float) -> Floats:
    """The probability that a row satisfies, for ERR: gain / 2^top, or label / top where
    top is above 1.
    """
    if isinstance(rule, str) and rule == "linear":
        gains(label, rule)
        share: Floats = np.minimum(label / max(top, 1.0), 1.0)
        return share
    table = gains(np.array([max(top, 0.0)]), rule)[0]
    found: Floats = gains(label, rule) / (float(table) + 1.0)
    return found
