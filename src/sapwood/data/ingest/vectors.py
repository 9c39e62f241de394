"""Labels, weights, first scores and groups: one value for each row, checked.

In: array-likes and series. Out: copies, float64, and int32 for groups.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import dealt
from sapwood.data.ingest.arrays import as_array, readable
from sapwood.data.ingest.frames import from_series, wrap
from sapwood.data.ingest.refusals import (
    check_finite,
    check_length,
    check_size,
    refusal,
    refuse_sparse,
)
from sapwood.data.lists import Lists
from sapwood.data.times import Times
from sapwood.device.arrays import to_host
from sapwood.errors import DataError
from sapwood.params.types import MAX_SCORE
from sapwood.reduce import Reduce

MIN_LABEL = 1 / MAX_SCORE  # squares of labels must stay above 0 in float64
# weights are multiplied with losses and summed, and both must stay finite
MAX_WEIGHT = 1e100
# of the largest one, so that what is multiplied with it stays above 0
MIN_WEIGHT = 1 / MAX_WEIGHT


def label(
    y: Any, n_rows: int, what: str = "y", reduce: Reduce | None = None
) -> NDArray[np.float64]:
    """Check labels, finite numbers of shape (n_rows,) or (n_rows, n_outputs); a copy in
    C order. `what`: for errors.

    Squares of labels must not vanish: some label, of any holder where rows are dealt
    (`reduce`), is 0 or large enough.
    """
    if y is None:
        raise DataError(
            f"Sapwood requires {what} to be passed, but the target {what} is None."
        )
    values = floats(y, what)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise DataError(
            f"{what} should be a 1d array, or a 2d one with a column for each target; got one of shape {values.shape}."
        )
    check_length(values, n_rows, what)
    check_finite(values, what)
    check_label_size(
        float(max(values.max(initial=0.0), -values.min(initial=0.0))), what, reduce
    )
    return values


def check_label_size(largest: float, what: str, reduce: Reduce | None = None) -> None:
    """Raise where the squares of all labels vanish; `largest`: in size, of this
    holder's labels.
    """
    if dealt.total(reduce, int(largest > 0)) and not dealt.total(
        reduce, int(largest >= MIN_LABEL)
    ):
        raise DataError(
            f"{what} is at most {largest:g} in size; squares of numbers below {MIN_LABEL:g} are 0. Scale them."
        )


def part_of_vector(
    name: str, values: NDArray[np.float64], n_rows: int, what: str
) -> NDArray[np.float64]:
    """Check a piece of a label, weight or init_score; what only all rows together can
    tell is left to others.
    """
    if values.ndim not in (
        (1, 2) if name == "label" else (2,) if name == "init_score" else (1,)
    ):
        raise DataError(
            f"{what} is an array of shape {values.shape}; give one value for each row."
        )
    check_length(values, n_rows, what)
    check_finite(values, what)
    if name == "weight":
        if values.min(initial=0.0) < 0:
            row = int(np.argmax(values < 0))
            raise DataError(
                f"{what} is {values[row]} in row {row}; weights must not be negative."
            )
        check_size(values, MAX_WEIGHT, what)
    if name == "init_score":
        check_size(values, MAX_SCORE, what)
    return values


def weight(
    w: Any, n_rows: int, what: str = "sample_weight", reduce: Reduce | None = None
) -> NDArray[np.float64] | None:
    """Check sample weights, (n_rows) from 0 to 1e100, the largest from 1e-100 on; a
    copy. None: all rows count once.

    Some row must have a positive weight, of any holder where rows are dealt (`reduce`).
    """
    if w is None:
        return None
    values = floats(w, what)
    values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        raise DataError(
            f"{what} must be a 1-D array of length {n_rows}, got one of shape {values.shape}."
        )
    part_of_vector("weight", values, n_rows, what)
    largest = float(values.max(initial=0.0))
    if not dealt.total(reduce, int(largest > 0)):
        raise DataError(
            f"The {what} of all rows is zero; at least one weight must be positive."
        )
    if not dealt.total(reduce, int(largest >= MIN_WEIGHT)):
        raise DataError(
            f"{what} is at most {largest:g}; gradients times weights below {MIN_WEIGHT:g} are 0. Scale them."
        )
    return values


def init_score(scores: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Check the raw scores that training starts from, up to 1e150 in size; a copy of
    shape (n_rows, n_outputs).
    """
    if scores is None:
        return None
    values = floats(scores, "init_score")
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(
            f"init_score must be of shape (n_rows,) or (n_rows, n_outputs), got {values.shape}."
        )
    check_length(values, n_rows, "init_score")
    check_finite(values, "init_score")
    check_size(values, MAX_SCORE, "init_score")
    return values


def group(groups: Any, n_rows: int) -> NDArray[np.int32] | None:
    """Number the groups of rows from 0, in the order of their first rows: (n_rows)
    int32.

    `groups` has the group of every row, by any name; or fewer numbers, the sizes of
    groups of consecutive rows.
    """
    if groups is None:
        return None
    values = as_array(
        groups.to_numpy() if hasattr(groups, "to_numpy") else groups, "group"
    )
    if values.ndim != 1 or len(values) > n_rows:
        raise DataError(
            f"group must be a 1-D array of {n_rows} names or of sizes, got one of shape {values.shape}."
        )
    if len(values) == n_rows:
        if (
            n_rows > 1
            and np.issubdtype(values.dtype, np.integer)
            and (values == 1).all()
        ):
            raise DataError(
                f"group has {n_rows} ones: one group, or as many as rows? Give names, such as 0, 1, 2, ..."
            )
        none = [one is None for one in values] if values.dtype == object else False
        if (missing := np.flatnonzero((values != values) | none)).size:
            raise DataError(
                f"group has no value in row {missing[0]}; every row belongs to a group."
            )
        try:
            _, first, inverse = np.unique(
                values, return_index=True, return_inverse=True
            )
        except TypeError as cause:
            raise DataError(
                f"group has names that cannot be compared ({cause}); use names of one type."
            ) from cause
        return np.argsort(np.argsort(first)).astype(np.int32)[inverse]
    if (
        not np.issubdtype(values.dtype, np.integer)
        or (values < 0).any()
        or values.sum() != n_rows
    ):
        raise DataError(
            f"group has {len(values)} values for {n_rows} rows; sizes must be integers that add up to it."
        )
    values = values.astype(np.int64)  # NumPy repeats by no unsigned sizes
    return np.repeat(
        np.arange(len(values[values > 0]), dtype=np.int32), values[values > 0]
    )


def _no_times(column: Any, what: str) -> Any:
    """A column, unless it is of dates, times or lists."""
    if isinstance(column, Times):
        raise refusal(what, "datetime")
    if isinstance(column, Lists):
        raise refusal(what, "list")
    return column


def floats(values: Any, what: str) -> NDArray[np.float64]:
    """Read labels, weights or scores of any kind: a float64 copy of the same shape;
    missing values are NaN.
    """
    values = to_host(values)
    if not isinstance(values, np.ndarray | list | tuple):
        import narwhals as nw

        refuse_sparse(values, what)
        found = wrap(values, what)
        if isinstance(found, nw.Series):
            values = _no_times(from_series(found, what, False), what)
        elif isinstance(found, nw.DataFrame):
            numbers: list[Any] = [
                _no_times(from_series(one, what, False), what)
                for one in found.iter_columns()
            ]
            values = np.column_stack(numbers)
    return np.array(readable(as_array(values, what), what), dtype=np.float64, order="C")
