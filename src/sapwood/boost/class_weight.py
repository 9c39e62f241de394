"""Class weights: factors on the weights of rows.

In: `class_weight`, classes and weights of the training rows. Out: a factor for each
class; datasets with them.
"""

from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.dataset import Dataset
from sapwood.device import host
from sapwood.errors import ParameterError, suggest
from sapwood.reduce import Reduce

Floats = NDArray[np.float64]


def factors(
    given: Any,
    classes: Floats | None,
    weight: Floats | None,
    n_classes: int,
    reduce: Reduce | None = None,
) -> Floats | None:
    """The factor of every class (NUMERICS 2), or None.

    ``given`` is `class_weight`, whose keys are the digits of class indices; a class
    without one has 1. ``classes`` and ``weight`` are (n_rows).
    """
    if given is None:
        return None
    assert classes is not None
    if isinstance(given, str):
        rows = np.ones(len(classes)) if weight is None else weight
        total = partial(host.weight_sum, reduce=reduce)
        sums = [total(np.where(classes == k, rows, 0.0)) for k in range(n_classes)]
        fair = total(rows) / sum(one > 0 for one in sums)
        even = [fair / one if one > 0 else 1.0 for one in sums]
        return np.array(even if given == "balanced" else [sqrt(one) for one in even])
    names = [str(k) for k in range(n_classes)]
    for one in given:
        if one not in names:
            raise ParameterError(
                f"class_weight has a class {one!r}; {suggest(one, names)}"
            )
    return np.array([given.get(name, 1.0) for name in names])


def with_class_weight(data: Dataset, factor: Floats | None) -> Dataset:
    """The dataset with each weight multiplied by the factor of the row's class."""
    if factor is None:
        return data
    assert data.label is not None
    by_class = factor[data.label.astype(np.intp)]
    return data.with_weight(by_class if data.weight is None else by_class * data.weight)
