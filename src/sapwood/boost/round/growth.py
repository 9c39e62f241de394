"""Growth of trees: the policy and its limits, constraints on splits, and random
strength.

In: resolved parameters. Out: a growth policy of the core with its limits, and a trainer
that knows its constraints.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import Trainer, elementary, host
from sapwood.errors import ParameterError, suggest
from sapwood.params import constraints

MAX_SYMMETRIC_DEPTH = 16  # a symmetric tree has all 2^depth leaves, empty or not

PASSED_ON = (
    "min_child_weight",
    "reg_lambda",
    "reg_alpha",
    "min_split_gain",
    "max_delta_step",
    "colsample_bytree",
    "colsample_bylevel",
    "colsample_bynode",
    "max_cat_to_onehot",
    "max_cat_threshold",
    "cat_smooth",
    "cat_l2",
    "min_data_per_group",
)


def limits(
    params: Mapping[str, Any], smooth: float = 0.0
) -> tuple[str, dict[str, float]]:
    """The growth policy and its limits, in the names of the core; ``smooth`` is the
    value of path_smooth="auto".

    A `max_depth` or `max_leaves` of 0 means no limit, a `min_samples_leaf` of 0 the
    objective's own. The learning rate is added in each round.
    """
    policy = params["grow_policy"]
    if policy not in host.growers():
        raise ParameterError(
            f"grow_policy={policy!r} is unknown; {suggest(policy, host.growers())}"
        )
    leaves, depth = size(policy, params["max_leaves"], params["max_depth"])
    smooth = smooth if params["path_smooth"] == "auto" else params["path_smooth"]
    rows = 0 if params["min_samples_leaf"] == "auto" else params["min_samples_leaf"]
    limits = {
        "max_leaves": leaves or 0,
        "max_depth": depth or 0,
        "min_samples_leaf": rows,
        "path_smooth": smooth,
    }
    limits |= {name: params[name] for name in PASSED_ON}
    if params["pruning"] == "post":
        limits["min_split_gain"] = 0.0
    return policy, limits


def configure_splits(
    trainer: Trainer,
    params: Mapping[str, Any],
    names: Sequence[str],
    categories: Collection[int],
    cuts: Sequence[NDArray[np.float64]],
    used: Sequence[int] = (),
    weights: Sequence[float] = (),
) -> None:
    """Configure which splits the trees of a trainer may have, and which are preferred.

    ``names`` and ``cuts`` are those of the columns. ``used``: columns that trees of the
    model have used already, for first_use_penalties. ``weights``: feature weights of
    further columns, which have no name and no constraint.
    """
    directions = constraints.numbers(params["monotone_constraints"], names, 0)
    given = constraints.numbers(params["feature_weights"], names, 1.0)
    trainer.set_constraints(
        directions + [0] * len(weights) if directions else [],
        params["monotone_method"] == "intermediate",
        constraints.groups(params["interaction_constraints"], names),
        params["extra_trees"],
        constraints.forced(params["forced_splits"], names, cuts),
        [
            j
            for j, word in enumerate(constraints.encodings(params, names))
            if word == "onehot" and j in categories
        ],
    )
    trainer.set_split_preference(
        params["score_function"] == "cosine",
        (given or [1.0] * len(names)) + list(weights) if weights else given,
        constraints.numbers(params["first_use_penalties"], names, 0.0),
        used,
    )


def random_strength(
    params: Mapping[str, Any], index: int, rate: float, n_rows: int
) -> float:
    """The random strength of a round, in standard deviations of the gradients;
    ``n_rows`` have positive weight.

    It decreases once index * rate exceeds the logarithm of the number of rows.
    """
    strength: float = params["random_strength"]
    if strength == 0:
        return 0.0
    return strength / (1.0 + float(elementary.exp(index * rate)) / n_rows)


def size(
    policy: str, max_leaves: int | str | None, max_depth: int | str | None
) -> tuple[int | None, int | None]:
    """The limits on leaves and depth, where they may be 'auto'; None means no limit.

    One limit set by hand is the only one. With none set, leaf-wise trees have 31 leaves
    and the others a depth of 6.
    """
    by_hand = isinstance(max_leaves, int) or isinstance(max_depth, int)
    leaves = (
        max_leaves
        if not isinstance(max_leaves, str)
        else 31
        if policy == "leafwise" and not by_hand
        else None
    )
    depth = (
        max_depth
        if not isinstance(max_depth, str)
        else None
        if policy == "leafwise" or by_hand
        else 6
    )
    if policy != "symmetric":
        return leaves, depth
    if leaves is not None:  # the largest depth with at most that many leaves
        depth = min(leaves.bit_length() - 1, depth if depth is not None else leaves)
    if depth is None:
        raise ParameterError(
            "grow_policy='symmetric' needs a depth; set max_depth or max_leaves."
        )
    if depth > MAX_SYMMETRIC_DEPTH:
        raise ParameterError(
            f"max_depth={depth} is too large for grow_policy='symmetric'; choose 1..{MAX_SYMMETRIC_DEPTH}."
        )
    return None, depth
