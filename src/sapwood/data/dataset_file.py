"""Datasets in files: what is written, and that every part of a file fits every other.

In: the arrays and fields of a file, from anywhere. Out: cuts, dictionaries and codes,
as a table that is binned alike.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, crosses, derived, ingest, sparse
from sapwood.data.categories import Coded, Dictionary
from sapwood.data.crosses import Crosses
from sapwood.errors import DataError

# 1: without categories, values and lists, 2: without unseen ones, 3: without crosses,
# 4: without columns of times, as data that has none is still written
KIND = "dataset"
VERSION = 6
# of columns in which most rows have one code
LISTED = ("column", "usual", "offset", "row", "code")
LISTED_TYPES = (np.int32, np.uint16, np.int64, np.uint32, np.uint16)
NO_LISTS: tuple[NDArray[Any], ...] = tuple(
    np.zeros(int(i == 2), t) for i, t in enumerate(LISTED_TYPES)
)
ROW_VECTORS = ("label", "weight", "init_score", "group")  # what may come with a table
# fixed by a dataset
BIN_PARAMS = (
    "max_bins",
    "min_samples_bin",
    "tree_method",
    "linear_leaves",
    "zero_as_missing",
)
# of these: written only where they are on
ADDED_LATER = ("linear_leaves", "zero_as_missing")


def read(
    arrays: dict[str, NDArray[Any]], fields: Mapping[str, Any]
) -> tuple[
    ingest.Columns,
    list[NDArray[np.float64]],
    dict[int, Dictionary],
    dict[int, NDArray[np.int64]],
    Crosses,
]:
    """The table, cuts, categories, rows of unseen ones and crosses of a loaded file;
    `DataError` if parts do not fit.

    The arrays of categories and crosses are taken out of ``arrays``.
    """
    names = fields.get("feature_names")
    derived = crosses.decode(arrays)
    known = categories.unpack(
        arrays, len(names) if isinstance(names, list) else 0, DataError
    )
    unseen = {
        j: rows for j in known if (rows := arrays.pop(f"unseen.{j}", None)) is not None
    }
    cuts, codes, listed = _checked(arrays, fields, known)
    for j, rows in unseen.items():
        rises = (
            rows.dtype == np.int64
            and rows.ndim == 1
            and len(rows) > 0
            and bool((np.diff(rows) > 0).all())
        )
        inside = rises and j in codes and rows[0] >= 0 and rows[-1] < len(codes[j])
        if not inside or (codes[j][rows] != known[j].n_bins).any():
            raise DataError(
                "the file is not a valid dataset: rows of unseen categories are not missing ones."
            )
    names = fields["feature_names"]
    n_columns = len(names) - len(derived)
    if (flaw := derived.flaw(n_columns, known)) is None and (
        *names[n_columns:],
    ) != derived.names(names[:n_columns]):
        flaw = "crosses have their own names"
    if flaw is not None:
        raise DataError(
            f"the file is not a valid dataset: it breaks the rule '{flaw}'."
        )
    return (
        columns(cuts, codes, listed, fields["n_rows"], known),
        cuts,
        known,
        unseen,
        derived,
    )


def read_times(fields: dict[str, Any]) -> derived.Plan:
    """The columns of times of a loaded file, taken out of its fields; `DataError` where
    they do not fit the others.
    """
    names = fields.get("feature_names")
    try:
        plan = derived.decode(fields.pop("times", []))
    except ValueError as cause:
        raise DataError(f"the file is not a valid dataset: {cause}.") from cause
    if flaw := derived.flaw(plan, len(names) if isinstance(names, list) else 0, {}):
        raise DataError(
            f"the file is not a valid dataset: it breaks the rule '{flaw}'."
        )
    return plan


def columns(
    cuts: list[NDArray[np.float64]],
    codes: dict[int, NDArray[Any]],
    listed: tuple[NDArray[Any], ...],
    n_rows: int,
    known: Mapping[int, Dictionary],
) -> ingest.Columns:
    """A table that has these codes: a bin's upper cut, infinity for the last bin, NaN
    for missing; or categories.
    """
    values = [np.append(own, [np.inf, np.nan]) for own in cuts]
    table: dict[int, Any] = {
        j: _coded(code, known[j]) if j in known else values[j][code]
        for j, code in codes.items()
    }
    columns, usual, offset, row, code = listed
    for j, most, (first, last) in zip(
        columns.tolist(), usual.tolist(), pairwise(offset.tolist()), strict=True
    ):
        rows = row[first:last].astype(np.int32)
        table[j] = sparse.SparseColumn(
            values[j][code[first:last]], rows, n_rows, float(values[j][most])
        )
    return ingest.Columns([table[j] for j in range(len(cuts))], None, n_rows, len(cuts))


def code_type(n_bins: int) -> Any:
    """The narrowest type of the codes of so many bins."""
    # n_bins is the code of missing
    return np.uint8 if n_bins <= 255 else np.uint16 if n_bins <= 65535 else np.uint32


def _coded(code: NDArray[Any], dictionary: Dictionary) -> Coded:
    """A column of categories that has these codes."""
    return Coded(
        np.where(code == dictionary.n_bins, -1, code.astype(np.int32)),
        dictionary.values[: dictionary.n_bins],
    )


def _checked(
    arrays: Mapping[str, NDArray[Any]],
    fields: Mapping[str, Any],
    known: Mapping[int, Dictionary],
) -> tuple[
    list[NDArray[np.float64]], dict[int, NDArray[Any]], tuple[NDArray[Any], ...]
]:
    """Cuts, codes and listed codes of a loaded file, after making sure that every part
    of it fits every other.
    """

    def need(true: bool, what: str) -> None:
        if not true:
            raise DataError(f"the file is not a valid dataset: {what}.")

    need(
        set(fields) == {"n_rows", "feature_names", "named", *BIN_PARAMS},
        "its fields are not those of a dataset",
    )
    n_rows = fields["n_rows"]
    names = fields["feature_names"]
    max_bins = fields["max_bins"]
    need(type(n_rows) is int and n_rows > 0, "n_rows is not a positive integer")
    need(
        type(max_bins) is int and 2 <= max_bins <= 65535, "max_bins is not in 2..65535"
    )
    least = fields["min_samples_bin"]
    need(type(least) is int and least >= 1, "min_samples_bin is not a positive integer")
    need(
        fields["tree_method"] in ("hist", "exact"),
        "tree_method is neither 'hist' nor 'exact'",
    )
    need(type(fields["named"]) is bool, "named is not a boolean")
    need(type(fields["zero_as_missing"]) is bool, "zero_as_missing is not a boolean")
    need(isinstance(names, list) and len(names) > 0, "there are no feature names")
    need(
        all(isinstance(name, str) for name in names) and len(set(names)) == len(names),
        "names are not unique strings",
    )

    need(type(fields["linear_leaves"]) is bool, "linear_leaves is not a boolean")
    kept = ["values"] if fields["linear_leaves"] else []
    listed = [f"listed.{name}" for name in LISTED] if "listed.column" in arrays else []
    found = arrays["listed.column"] if listed else np.empty(0, np.int32)
    together = set(found.tolist())
    columns = {j: f"codes.{j}" for j in range(len(names)) if j not in together}
    reals = [
        "cuts",
        *(name for name in ROW_VECTORS if name in arrays and name != "group"),
    ]
    wanted = {"cuts", "offset", *columns.values(), *listed, *kept}
    need(
        set(arrays) - set(ROW_VECTORS) == wanted,
        "arrays are missing, or there are too many",
    )
    need(
        all(arrays[name].dtype == np.float64 for name in reals),
        "not all reals are float64",
    )
    need(
        "group" not in arrays or arrays["group"].shape == (n_rows,),
        "groups are not of rows",
    )
    every = arrays["cuts"]
    offset = arrays["offset"]
    need(
        every.ndim == 1 and bool(np.isfinite(every).all()),
        "cuts are not finite numbers",
    )
    need(
        offset.dtype == np.int64 and offset.shape == (len(names) + 1,),
        "offsets are of the wrong type or shape",
    )
    steps = np.diff(offset)
    need(
        offset[0] == 0 and offset[-1] == len(every) and bool((steps >= 0).all()),
        "offsets do not fit the cuts",
    )
    need(
        fields["tree_method"] == "exact" or bool((steps < max_bins).all()),
        "a column has more cuts than max_bins allows",
    )

    cuts = [every[first:last] for first, last in pairwise(offset)]
    for values in (arrays[name] for name in kept):
        need(values.dtype in (np.float32, np.float64), "values are not of a real type")
        need(values.shape == (n_rows, len(names)), "values are not of rows and columns")
    need(all(bool((np.diff(own) > 0).all()) for own in cuts), "cuts do not ascend")
    need(all(len(cuts[j]) == 0 for j in known), "a column of categories has cuts")
    n_bins = np.array(
        [known[j].n_bins if j in known else len(own) + 1 for j, own in enumerate(cuts)]
    )
    codes = {j: arrays[name] for j, name in columns.items()}
    for j, code in codes.items():
        need(
            code.dtype == code_type(n_bins[j]) and code.shape == (n_rows,),
            "codes are of the wrong type or shape",
        )
        need(
            int(code.max()) <= n_bins[j], "a code is larger than that of missing values"
        )
    lists = tuple(arrays[name] for name in listed) or NO_LISTS
    need(_lists_fit(lists, n_bins, n_rows), "its lists of rows do not fit together")
    return cuts, codes, lists


def _lists_fit(
    lists: tuple[NDArray[Any], ...], missing: NDArray[np.int64], n_rows: int
) -> bool:
    """Whether listed codes are in order, and within the columns; `missing` is the
    largest code of each.
    """
    column, usual, offset, row, code = lists
    if any(
        one.dtype != wanted or one.ndim != 1
        for one, wanted in zip(lists, LISTED_TYPES, strict=True)
    ):
        return False
    if (
        len(usual) != len(column)
        or len(offset) != len(column) + 1
        or len(row) != len(code)
    ):
        return False
    if (
        offset[0] != 0
        or offset[-1] != len(row)
        or (np.diff(offset) < 0).any()
        or (np.diff(column) <= 0).any()
    ):
        return False
    if len(column) and not (column[0] >= 0 and column[-1] < len(missing)):
        return False
    # the list that an entry is in
    of = np.repeat(np.arange(len(column)), np.diff(offset))
    rising = (np.diff(row.astype(np.int64)) > 0) | (np.diff(of) > 0)
    largest = missing[column]
    return bool(
        rising.all()
        and (row < n_rows).all()
        and (usual <= largest).all()
        and (code <= largest[of]).all()
    )
