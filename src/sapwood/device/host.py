"""What the native core knows and does on the host, whatever device holds the rows: plug-ins, draws, small functions.

In: names, seeds, arrays. Out: facts, draws, arrays.
"""

from sapwood._core import (
    DROPS,
    EVERY_VALUE,
    FOLDS,
    HOLDOUT,
    MAX_LEAF_IDS,
    MIN_BIN_BUDGET,
    PERMUTE,
    SAGE,
    SAMPLE_ROWS,
    TURN,
    UNSEEN,
    Groups,
    RankLoss,
    branches,
    combine,
    cross,
    cuts,
    distinct,
    draw,
    encode,
    evaluate,
    exact_sum,
    growers,
    hash_order,
    integer_weights,
    isa,
    linear_values,
    link,
    math,
    n_workers,
    objectives,
    samplers,
    set_isa,
    weight_sum,
)

__all__ = [
    "DROPS", "EVERY_VALUE", "FOLDS", "HOLDOUT", "MAX_LEAF_IDS", "MIN_BIN_BUDGET", "PERMUTE", "SAGE", "SAMPLE_ROWS",
    "TURN", "UNSEEN", "Groups", "RankLoss",
    "branches", "combine", "cross", "cuts", "distinct", "draw", "encode", "evaluate", "exact_sum",
    "growers",
    "hash_order", "integer_weights", "isa", "linear_values", "link", "math", "n_workers", "objectives", "samplers",
    "set_isa", "weight_sum",
]  # fmt: skip
