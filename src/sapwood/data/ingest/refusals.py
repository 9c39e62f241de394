"""What cannot be read, and what to do about it: the errors of this package.

In: a value and what errors call it. Out: an error, raised or returned.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import sparse
from sapwood.data.categories import ColumnTypeError
from sapwood.errors import DataError
from sapwood.printable import SURROGATE

# What to do about a column that is not a number, by a word in the name of its dtype;
# the first that fits.
ADVICE = {
    "complex": "Complex data not supported; pass the real and the imaginary part as two columns.",
    "sparse": "make it dense first.",
    "categor|enum|dictionary": "it can only be of categories, as categorical_features must say in training.",
    "bytes|binary": "bytes are not supported; decode them to text.",
    "str(?!uct)": "text can only be of categories, as categorical_features must say in training. Dates in text are not "
    "read; convert them, with pandas.to_datetime say.",
    "list|struct|array|map|nested": "nested values are not supported; part them into columns, a number in each.",
    "object with .*(date|time)": "dates and times as objects are not read; use pandas.to_datetime, or seconds.",
    "date|time|duration": "dates and times are neither categories nor labels; leave such a column as it is.",
    "period": "convert it to dates, with to_timestamp().",
    "void|record": "a structured array is a table if it is 1-D and its fields are numbers or text.",
    "": "convert it to numbers.",
}
MAX_DTYPE = 120  # characters of the name of a dtype in an error
# What to give in place of some things that are not tables, by the name of their type.
INSTEAD = {
    "Dataset": ": a Dataset keeps bins only, so the one it was made of",
}


def inexact(where: str) -> DataError:
    return DataError(
        f"{where} has numbers that float64 cannot hold exactly, such as integers beyond 2**53. Convert them yourself: "
        "astype('float64') to round them, or smaller codes if they are identifiers."
    )


def refusal(where: str, dtype: Any) -> DataError:
    name = str(dtype.name if isinstance(dtype, np.dtype) else dtype).lower()
    advice = next(text for words, text in ADVICE.items() if re.search(words, name))
    if where in ("y", "label") and "of categories" in advice:
        advice = (
            f"labels are numbers, classes their indices, such as numpy.unique({where}, return_inverse=True)[1]; "
            "SapwoodClassifier takes classes of any kind."
        )
    shown = str(dtype)
    # that of nested values has no end
    shown = shown if len(shown) <= MAX_DTYPE else f"{shown[:MAX_DTYPE]}..."
    return ColumnTypeError(
        f"{where} has dtype {shown}, which is neither numeric nor boolean: {advice}"
    )


def refuse_sparse(X: Any, what: str) -> None:
    if sparse.is_sparse(X):
        raise ColumnTypeError(
            f"{what} is sparse ({type(X).__name__}), but it must be dense; pass {what}.toarray()."
        )


def names_differ(has: Sequence[str], wanted: Sequence[str]) -> str:
    """Say which columns of training a table lacks, and which it has besides; empty
    where it has the same.
    """
    names_of_table = set(has)
    names_of_training = set(wanted)
    kinds = {
        "Missing": [name for name in wanted if name not in names_of_table],
        "Unknown": [name for name in has if name not in names_of_training],
    }
    if not any(kinds.values()):
        return ""
    said = "".join(
        f"{kind}: {', '.join(map(repr, some[:5]))}{', ...' if len(some) > 5 else ''}. "
        for kind, some in kinds.items()
        if some
    )
    return f"The columns of X are not those seen in training. {said}Pass the columns of the training data, in any order."  # noqa: E501


def check_names(names: Sequence[str] | None) -> None:
    """Raise where the name of a column cannot be written to a file; numbers are names
    that nobody gave.
    """
    for place, name in enumerate(names or ()):
        if SURROGATE.search(name):
            raise DataError(
                f"the name of column {place}, {name!r}, has half of a surrogate pair, which no file can hold. "
                "Rename the column."
            )


MAX_ROWS = 2**31 - 1  # the core counts rows in 32 bits


def check_shape(shape: tuple[int, ...], min_rows: int) -> None:
    n_rows, n_columns = shape
    if n_rows < min_rows:
        raise DataError(
            f"Found array with {n_rows} sample(s) (shape={shape}) while a minimum of {min_rows} is required."
        )
    if n_rows > MAX_ROWS:
        raise DataError(
            f"a table may have {MAX_ROWS} rows; this one has {n_rows}. Give it in parts."
        )
    if n_columns < 1:
        raise DataError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )


def check_length(values: NDArray[Any], n_rows: int, what: str) -> None:
    if len(values) != n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(values)}]. "
            f"{what} must have one value for each row."
        )


def check_finite(values: NDArray[np.float64], what: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        kind = "NaN" if np.isnan(values[row]).any() else "infinity"
        raise DataError(
            f"Input {what} contains {kind}, first in row {row}; it must be finite. Drop or mend such rows."
        )


def check_size(values: NDArray[np.float64], largest: float, what: str) -> None:
    beyond = np.abs(values) > largest
    if beyond.any():
        at = tuple(np.argwhere(beyond)[0])
        raise DataError(
            f"{what} is {values[at]:g} in row {at[0]}; numbers beyond {largest:g} overflow. Scale them."
        )
