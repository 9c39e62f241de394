"""Arguments of an estimator's `fit`: the target, its classes, and validation sets.

In: what a user gives. Out: arrays, or an error in the words of scikit-learn.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from sapwood.data import ingest
from sapwood.device import host
from sapwood.errors import DataError

MAX_CLASSES = 65_535


def holdouts(X: Any, y: Any, weight: Any, init_score: Any, eval_set: Any) -> list[tuple[Any, Any, Any, Any]]:
    """The validation sets as (X, y, weight, init_score), from either way of giving them."""
    if (X is None) != (y is None):
        raise DataError("X_val and y_val belong together; give both or neither.")
    for name, value in (("sample_weight_val", weight), ("init_score_val", init_score)):
        if value is not None and X is None:
            raise DataError(f"{name} belongs to X_val, which was not given.")
    if eval_set is None:
        return [] if X is None else [(X, y, weight, init_score)]
    if X is not None:
        raise DataError("X_val and eval_set are two ways to give validation rows; choose one.")
    pairs = eval_set
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
        pairs = [eval_set]
    if not isinstance(pairs, tuple | list) or not all(isinstance(one, tuple | list) and len(one) == 2 for one in pairs):
        raise DataError("eval_set is neither a pair (X, y) nor a list of such pairs.")
    return [(held, target, None, None) for held, target in pairs]


def target(estimator: type, y: Any) -> NDArray[Any]:
    """The target as an array: 1-D (with scikit-learn's warning for a single column), or 2-D with several columns."""
    if y is None:
        raise DataError(f"{estimator.__name__} requires y to be passed, but the target y is None.")
    if np.ma.is_masked(y):  # np.asarray would drop the mask
        raise DataError("Input y contains masked values; drop those rows.")
    y = y if hasattr(y, "shape") else np.asarray(y)
    several = (len(y.shape) == 2 and y.shape[1] > 1) or np.iscomplexobj(y)  # ingest.floats refuses complex numbers
    array: NDArray[Any] = ingest.floats(y, "y") if several else column_or_1d(y, warn=True)
    return array


def classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sorted distinct classes, and every row's index among them."""
    if y.dtype.kind in "biuf":
        native = np.float64 if y.dtype.kind == "f" and y.dtype.itemsize not in (4, 8) else y.dtype.newbyteorder("=")
        found = host.distinct(y.astype(native, copy=False), MAX_CLASSES)
        with np.errstate(invalid="ignore"):
            whole = found is not None and (found[0] % 1 == 0).all()  # infinity % 1 is NaN
        if found is None or not whole:
            ingest.label(y, len(y))  # raises first if what is wrong is a value that is not finite
            raise DataError(
                f"Unknown label type: continuous. y has fractions, or more than {MAX_CLASSES} different numbers, so it "
                "has no classes. Use SapwoodRegressor, which predicts numbers; for targets that are probabilities "
                "from 0 to 1 with objective='cross_entropy'."
            )
        return found[0].astype(y.dtype), found[1]
    values = y.tolist()  # a dict of Python objects is several times as fast as sorting every row
    try:
        distinct = set(values)
        if any(map(_is_missing, distinct)):
            row = next(row for row, one in enumerate(values) if _is_missing(one))
            raise DataError(f"Input y contains missing values, the first in row {row}; drop those rows.")
        known = sorted(distinct)
    except TypeError as cause:
        raise DataError(f"Unknown label type: the values of y cannot be sorted ({cause}); use one type.") from cause
    place = {one: index for index, one in enumerate(known)}
    return np.array(known, y.dtype), np.fromiter(map(place.__getitem__, values), np.float64, len(values))


def _is_missing(one: Any) -> bool:
    """Whether a label is None, or NaN, NaT or the NA of pandas, which are not equal to themselves."""
    differs = one != one
    return one is None or not isinstance(differs, bool | np.bool_) or bool(differs)
