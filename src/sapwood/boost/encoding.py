"""Which encoding a column of categories has where 'auto' is asked for.

In: what was asked for, training rows. Out: an encoding by its name for every column of categories.
"""

from collections.abc import Mapping

import numpy as np

from sapwood.data.dataset import Dataset

# Columns of 4 to 64 rows a category lost 1 to 22 % of the loss by statistics, those of 140 and more gained up to 4 %
# (docs/categories.md). Few rows of few categories are no reason to leave sets.
MANY = 32  # categories; more are many
ROWS_EACH = 100  # rows a category; fewer are few
Asked = str | Mapping[str, str] | None


def decided(asked: Asked, data: Dataset) -> Asked:
    """Put an encoding in the place of every 'auto'.

    Parameters
    ----------
    asked : str, mapping of column to str, or None
        As `category_encoding`, by name.
    data : Dataset
        Training rows; those of weight 0 do not count.

    Returns
    -------
    str, mapping of column to str, or None
        Without 'auto'.
    """
    n_rows = data.n_rows if data.weight is None else int(np.count_nonzero(data.weight))
    best = {
        data.feature_names[column]: "ordered" if known.n_bins > max(MANY, n_rows / ROWS_EACH) else "partition"
        for column, known in data.categories.items()
    }
    if asked == "auto":
        return best
    if isinstance(asked, Mapping):
        return {name: best[name] if word == "auto" else word for name, word in asked.items()}
    return asked
