"""A model as XGBoost writes its own, in JSON: for software that reads those.

In: a booster whose objective XGBoost has. Out: JSON; scores agree to float32, for
tables of float32.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ParameterError
from sapwood.model.booster import Booster
from sapwood.model.convert.nodes import at_most, check_single
from sapwood.version import VERSION

# ours -> XGBoost's name, the part of the document that says more, and the base score
# that is a raw score of 0
OBJECTIVES: dict[str, tuple[str, dict[str, Any], float]] = {
    "squared_error": (
        "reg:squarederror",
        {"reg_loss_param": {"scale_pos_weight": "1"}},
        0.0,
    ),
    "absolute_error": ("reg:absoluteerror", {}, 0.0),
    "logistic": ("binary:logistic", {"reg_loss_param": {"scale_pos_weight": "1"}}, 0.5),
    "cross_entropy": (
        "reg:logistic",
        {"reg_loss_param": {"scale_pos_weight": "1"}},
        0.5,
    ),
    "poisson": (
        "count:poisson",
        {"poisson_regression_param": {"max_delta_step": "0.7"}},
        1.0,
    ),
    "gamma": ("reg:gamma", {"reg_loss_param": {"scale_pos_weight": "1"}}, 1.0),
    "softmax": ("multi:softprob", {"softmax_multiclass_param": {}}, 0.0),
}
NO_PARENT = 2147483647


def write(booster: Booster) -> str:
    """Write a model of one target and numeric columns as the JSON that
    ``xgboost.Booster(model_file=...)`` loads.
    """
    if booster.objective not in OBJECTIVES or (booster.n_outputs > 1) != (
        booster.objective == "softmax"
    ):
        raise ParameterError(
            f"a {booster.objective} model of {booster.n_outputs} outputs has no place in XGBoost's format; it holds "
            f"models of {', '.join(OBJECTIVES)} with one target."
        )
    if booster.categories:
        raise ParameterError(
            "a model with categories cannot be written for XGBoost, which would match them by number."
        )
    if len(booster.crosses):
        raise ParameterError(
            "a model with crosses of columns cannot be written for XGBoost, which has none."
        )
    if booster.linear:
        raise ParameterError(
            "a model with linear leaves cannot be written for XGBoost, which has none; export to C or ONNX, or train "
            "with linear_leaves=False."
        )
    name, more, base = OBJECTIVES[booster.objective]
    trees = booster.trees
    n_outputs = booster.n_outputs
    more = {
        key: {**own, "num_class": str(n_outputs)} if "softmax" in key else own
        for key, own in more.items()
    }
    if not trees.n_trees:
        raise ParameterError(
            "the model has no trees; XGBoost's format needs one at least."
        )
    document = {
        "version": [2, 1, 0],
        "learner": {
            "attributes": {"sapwood": VERSION},
            "feature_names": list(booster.feature_names) if booster.named else [],
            "feature_types": ["float"] * booster.n_columns if booster.named else [],
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {
                        "num_trees": str(trees.n_trees),
                        "num_parallel_tree": str(booster.n_parallel_trees),
                    },
                    "iteration_indptr": list(
                        range(0, trees.n_trees + 1, booster._per_round)
                    ),
                    "tree_info": trees.output.tolist(),
                    "trees": [_tree(booster, k) for k in range(trees.n_trees)],
                },
            },
            "learner_model_param": {
                "base_score": repr(base),
                "boost_from_average": "1",
                "num_class": str(n_outputs if n_outputs > 1 else 0),
                "num_feature": str(booster.n_columns),
                "num_target": "1",
            },
            "objective": {"name": name, **more},
        },
    }
    return json.dumps(document)


def _tree(booster: Booster, which: int) -> dict[str, Any]:
    """One tree; the base score is in the leaves of an output's first, since the format
    has room for one number only.
    """
    trees = booster.trees
    base = booster.base[trees.output[which]] if which < booster.n_outputs else 0.0
    at = slice(trees.offset[which], trees.offset[which + 1])
    leaf = trees.left[at] == 0
    left = np.where(leaf, -1, trees.left[at])
    n = len(left)
    parent = np.full(n, NO_PARENT)
    parent[left[~leaf]] = parent[left[~leaf] + 1] = np.flatnonzero(~leaf)
    exact = 1.0 / booster._divisor * trees.value[at] + np.where(leaf, base, 0.0)
    check_single(exact[leaf], "XGBoost's format")
    value = _single(exact)
    number = np.where(leaf, value, _strictly_above(trees.threshold[at]))
    return {
        "id": which,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(booster.n_columns),
            "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
        "left_children": left.tolist(),
        "right_children": np.where(leaf, -1, left + 1).tolist(),
        "parents": parent.tolist(),
        "split_indices": np.where(leaf, 0, trees.column[at]).tolist(),
        "split_conditions": _floats(number),
        "split_type": [0] * n,
        "default_left": trees.missing_left[at].tolist(),
        "base_weights": _floats(value),
        "loss_changes": _floats(_single(2.0 * trees.gain[at])),
        "sum_hessian": _floats(_single(trees.cover[at])),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
    }


def _strictly_above(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The smallest float32 above each: x <= threshold holds for a float32 where x <
    that.
    """
    with np.errstate(over="ignore"):
        above = np.nextafter(at_most(threshold), np.float32(np.inf))
    return np.minimum(above, np.finfo(np.float32).max)


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The nearest finite float32."""
    largest = np.finfo(np.float32).max
    return np.clip(values, -largest, largest).astype(np.float32)


def _floats(values: NDArray[Any]) -> list[float]:
    """float32 in digits that give the same float32 again."""
    return [float(str(value)) for value in np.asarray(values, np.float32)]
