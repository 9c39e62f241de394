"""Arguments of an estimator's `fit`: the target, its classes, and validation sets.

In: what a user gives. Out: arrays, or an error in the words of scikit-learn.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from sapwood.data import ingest
from sapwood.data.deferred import Deferred
from sapwood.device import host
from sapwood.errors import DataError

MAX_CLASSES = 65_535


class Holdout(NamedTuple):
    """A validation set as it was given."""

    name: str
    X: Any
    y: Any
    weight: Any = None
    init_score: Any = None


class TrainingRows(NamedTuple):
    """The training rows as they were given."""

    X: Any
    y: Any
    weight: Any
    init_score: Any
    group: Any
    bin_weight: Any = None  # where bins and categories are those of other weights


def holdouts(X: Any, y: Any, weight: Any, init_score: Any) -> list[Holdout]:
    """The validation set of `X_val` and what goes with it, if there is one."""
    if (X is None) != (y is None):
        raise DataError("X_val and y_val belong together; give both or neither.")
    for name, value in (("sample_weight_val", weight), ("init_score_val", init_score)):
        if value is not None and X is None:
            raise DataError(f"{name} belongs to X_val, which was not given.")
    return [] if X is None else [Holdout("valid", X, y, weight, init_score)]


def peer_sets(more: dict[str, Any], eval_set: Any) -> list[Holdout]:
    """The validation sets of `eval_set`, with the names, weights and first scores that
    a peer gives as lists.

    What belongs to them is taken out of ``more``.
    """
    names = more.pop("eval_names", None)
    lists = {
        "weight": _first(more, "eval_sample_weight", "sample_weight_eval_set"),
        "init_score": _first(more, "eval_init_score", "base_margin_eval_set"),
    }
    if eval_set is None:
        if names is not None or any(one is not None for one in lists.values()):
            raise DataError(
                "names, weights or scores of validation sets are given, but no eval_set."
            )
        return []
    sets = eval_set
    if isinstance(eval_set, Deferred) or (
        isinstance(eval_set, tuple)
        and len(eval_set) == 2
        and not isinstance(eval_set[0], tuple | Deferred)
    ):
        sets = [eval_set]
    well = isinstance(sets, tuple | list)
    if not well or not all(
        isinstance(one, Deferred) or (isinstance(one, tuple | list) and len(one) == 2)
        for one in sets
    ):
        raise DataError("eval_set is neither a pair (X, y) nor a list of such pairs.")
    found = []
    for i, one in enumerate(sets):
        X, y = (one.data, one.label) if isinstance(one, Deferred) else one
        usual = "valid" if len(sets) == 1 else f"valid_{i}"
        own = {
            what: _of_set(what, values, i, len(sets)) for what, values in lists.items()
        }
        if isinstance(one, Deferred):
            own = {"weight": one.weight, "init_score": one.init_score}
        found.append(
            Holdout(
                usual
                if names is None
                else str(_of_set("eval_names", names, i, len(sets))),
                X,
                y,
                **own,
            )
        )
    return found


def unpacked(
    pool: Deferred, y: Any, weight: Any, more: dict[str, Any]
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The table, target, weights and further arguments of a `Pool` that is fitted."""
    if y is not None and pool.label is not None:
        raise DataError("y is given, and the Pool has a label too; give one of them.")
    if pool.categorical_features is not None:
        more = {"categorical_features": pool.categorical_features, **more}
    return (
        pool.data,
        pool.label if y is None else y,
        pool.weight if weight is None else weight,
        more,
    )


def _first(more: dict[str, Any], *names: str) -> Any:
    """The argument under one of these names, taken out."""
    return next((more.pop(name) for name in names if name in more), None)


def _of_set(what: str, values: Any, i: int, n: int) -> Any:
    """What belongs to validation set i, of a list or a dict."""
    if values is None:
        return None
    if isinstance(values, dict):
        return values.get(i)
    if isinstance(values, str):
        values = [values]
    if len(values) != n:
        raise DataError(
            f"eval_set has {n} validation sets, but {what} is for {len(values)}."
        )
    return values[i]


def target(estimator: type, y: Any) -> NDArray[Any]:
    """The target as an array: 1-D (with scikit-learn's warning for a single column), or
    2-D with several columns.
    """
    if y is None:
        raise DataError(
            f"{estimator.__name__} requires y to be passed, but the target y is None."
        )
    if np.ma.is_masked(y):  # np.asarray would drop the mask
        raise DataError("Input y contains masked values; drop those rows.")
    y = y if hasattr(y, "shape") else np.asarray(y)
    # ingest.floats refuses complex numbers
    several = (len(y.shape) == 2 and y.shape[1] > 1) or np.iscomplexobj(y)
    array: NDArray[Any] = (
        ingest.floats(y, "y") if several else column_or_1d(y, warn=True)
    )
    return array


def classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sorted distinct classes, and every row's index among them."""
    if y.dtype.kind in "biuf":
        native = (
            np.float64
            if y.dtype.kind == "f" and y.dtype.itemsize not in (4, 8)
            else y.dtype.newbyteorder("=")
        )
        found = host.distinct(y.astype(native, copy=False), MAX_CLASSES)
        with np.errstate(invalid="ignore"):
            # infinity % 1 is NaN
            whole = found is not None and (found[0] % 1 == 0).all()
        if found is None or not whole:
            # raises first if what is wrong is a value that is not finite
            ingest.label(y, len(y))
            raise DataError(
                f"Unknown label type: continuous. y has fractions, or more than {MAX_CLASSES} different numbers, so it "
                "has no classes. Use SapwoodRegressor, which predicts numbers; for targets that are probabilities "
                "from 0 to 1 with objective='cross_entropy'."
            )
        return found[0].astype(y.dtype), found[1]
    # a dict of Python objects is several times as fast as sorting every row
    values = y.tolist()
    try:
        distinct = set(values)
        if any(map(_is_missing, distinct)):
            row = next(row for row, one in enumerate(values) if _is_missing(one))
            raise DataError(
                f"Input y contains missing values, the first in row {row}; drop those rows."
            )
        known = sorted(distinct)
    except TypeError as cause:
        raise DataError(
            f"Unknown label type: the values of y cannot be sorted ({cause}); use one type."
        ) from cause
    place = {one: index for index, one in enumerate(known)}
    return np.array(known, y.dtype), np.fromiter(
        map(place.__getitem__, values), np.float64, len(values)
    )


def _is_missing(one: Any) -> bool:
    """Whether a label is None, or NaN, NaT or the NA of pandas, which are not equal to
    themselves.
    """
    differs = one != one
    return one is None or not isinstance(differs, bool | np.bool_) or bool(differs)
