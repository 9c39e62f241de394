"""What is made of each column of categories.

In: parameters, training rows. Out: an encoding for every column of categories.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood.data.dataset import Dataset

# Where 'auto' takes statistics: columns of 4 to 64 rows a category lost 1 to 22 % of the loss by them, those of 140 and
# more won up to 4 % in the mean (docs/categories.md). Few rows with few categories are no reason to leave sets.
MANY = 32  # categories; more are many
ROWS_EACH = 100  # rows a category; fewer are few


def of_columns(params: Mapping[str, Any], data: Dataset) -> dict[int, str]:
    """The encoding of every column of categories, 'auto' decided.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    data : Dataset
        Training rows; those of weight 0 do not count.

    Returns
    -------
    dict of int to str
        By column: 'partition', 'onehot', 'ordered' or 'both'.
    """
    n_rows = data.n_rows if data.weight is None else int(np.count_nonzero(data.weight))

    def encoding(n_categories: int) -> str:
        if n_categories <= params["max_cat_to_onehot"]:
            return "onehot"
        if params["category_encoding"] != "auto":
            return str(params["category_encoding"])
        return "ordered" if n_categories > MANY and n_categories * ROWS_EACH > n_rows else "partition"

    return {column: encoding(known.n_bins) for column, known in data.categories.items()}
