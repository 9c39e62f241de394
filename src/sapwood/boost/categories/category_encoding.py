"""The encoding of a categorical column where none is given, or 'auto'.

In: parameters, training rows. Out: the encoding of each categorical column, by name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood.data.dataset import Dataset
from sapwood.data.dealt import total
from sapwood.params.constraints import encodings

# Columns of 4 to 64 rows a category lost 1 to 22 % of the loss by statistics, those of
# 140 and more gained up to 4 %; beyond 255 categories a set of max_cat_threshold says
# little, and codes take two bytes (docs/categories.md). Columns of up to 32 categories
# keep sets, however few the rows.
# categories; more are many
MANY = 32
VERY_MANY = 255
ROWS_EACH = 100  # rows a category; fewer are few
Given = str | Mapping[str, str] | None


def choose_encoding(
    params: Mapping[str, Any], data: Dataset, countable: bool, shared: bool
) -> Given:
    """Replace every 'auto', and every None where there is no recipe, by an encoding.

    ``countable``: other parameters allow ordered statistics. ``shared``: outputs share
    their trees, which do not split by sets. Rows of weight 0 are not counted.
    """
    asked: Given = params["category_encoding"]
    n_rows = (
        data.n_total
        if data.weight is None
        else total(data.reduce, int(np.count_nonzero(data.weight)))
    )
    many = min(VERY_MANY, max(MANY, n_rows / ROWS_EACH))
    other = ("ordered" if countable else "onehot") if shared else "partition"
    best = {
        data.feature_names[column]: "ordered"
        if countable and known.n_bins > many
        else other
        for column, known in data.categories.items()
    }
    if asked == "auto":
        return best
    if asked is None and params["recipe"] is None:
        return {
            name: word for name, word in best.items() if word != "partition"
        } or None
    if isinstance(asked, Mapping):
        return {
            name: best[name] if word == "auto" else word for name, word in asked.items()
        }
    return asked


def encoded_columns(params: Mapping[str, Any], data: Dataset) -> list[int]:
    """Columns that become ordered statistics: those of more categories than are split
    one by one.
    """
    words = encodings(params, data.feature_names)
    limit = params["max_cat_to_onehot"]
    return [
        j
        for j, known in data.categories.items()
        if words[j] in ("ordered", "both") and known.n_bins > limit
    ]
