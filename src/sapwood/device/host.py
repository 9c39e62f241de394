"""What the native core knows and does on the host, whatever device holds the rows: plug-ins, draws, small functions.

In: names, seeds, arrays. Out: facts, draws, arrays.
"""

from typing import Any

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
    CutSketch,
    Encoder,
    Groups,
    RankLoss,
    add_narrow,
    branches,
    checksum,
    codes_fit,
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
    mapped,
    math,
    message_of,
    n_workers,
    objectives,
    release_pages,
    resident_bytes,
    samplers,
    set_isa,
    set_resident_limit,
    set_scratch,
    share_threads,
    stored,
    sum_by_code,
    touch,
    trim_heap,
    weight_sum,
)

__all__ = [
    "DROPS", "EVERY_VALUE", "FOLDS", "HOLDOUT", "MAX_LEAF_IDS", "MIN_BIN_BUDGET", "PERMUTE", "SAGE", "SAMPLE_ROWS",
    "TURN", "UNSEEN", "CutSketch", "Encoder", "Groups", "RankLoss", "add_narrow", "branches", "checksum", "codes_fit",
    "combine", "cross", "cuts", "distinct", "draw", "encode", "evaluate", "exact_sum", "gpu_bytes", "growers",
    "hash_order", "integer_weights", "isa", "linear_values", "link", "mapped", "math", "message_of", "n_workers",
    "objectives", "release_pages", "resident_bytes", "samplers", "set_isa", "set_resident_limit", "set_scratch",
    "share_threads", "stored", "sum_by_code", "touch", "trim_heap", "weight_sum",
]  # fmt: skip


def gpu_bytes(*shape: Any, **more: Any) -> int:
    """Device memory that a training takes on a GPU, told without one; the arguments are those of `plan.Shape`."""
    from sapwood.device.cuda import plan  # reads the headers of the kernels

    return plan.device_bytes(plan.Shape(*shape, **more))
