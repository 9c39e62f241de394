"""Methods of the field by name: the parameters that define each.

In: nothing. Out: for each recipe its own defaults by parameter. Parameters that a user
gives take precedence.
"""

from typing import Any

_EVERY_VALUE = {"max_bins": 65535, "min_samples_bin": 1, "precision": "wide"}
_BARE = {
    "reg_lambda": 0.0,
    "min_child_weight": 0.0,
    "min_samples_leaf": 1,
    "path_smooth": 0.0,
    "grow_policy": "depthwise",
}
RECIPES: dict[str, dict[str, Any]] = {
    # Friedman (2001): trees of 8 leaves fit the negative gradient by least squares;
    # leaf values minimise the loss.
    "classic": {"hessian": "none", "max_depth": 3, **_BARE, **_EVERY_VALUE},
    # Freund and Schapire (1997), as Friedman, Hastie and Tibshirani (2000) read it:
    # stumps on exponential loss.
    "adaboost": {
        "objective": "exponential",
        "learning_rate": 1.0,
        "start": 0.0,
        "max_depth": 1,
        **_BARE,
        **_EVERY_VALUE,
    },
    # Chen and Guestrin (2016), with the library's defaults; but 255 bins, where it has
    # 256: they fit a byte. Wide sums, as its own are: narrow ones let a leaf of a few
    # rows through that is below min_child_weight by their rounding.
    "xgboost": {
        "learning_rate": 0.3,
        "grow_policy": "depthwise",
        "max_depth": 6,
        "max_leaves": None,
        "max_bins": 255,
        "min_samples_bin": 1,
        "min_child_weight": 1.0,
        "precision": "wide",
        "min_samples_leaf": 1,
        "reg_lambda": 1.0,
        "path_smooth": 0.0,
        "max_cat_to_onehot": 3,  # its 4 means fewer than 4
        "max_cat_threshold": 64,
        "cat_smooth": 0.0,
        "cat_l2": 0.0,
        "min_data_per_group": 1,
        "pruning": "post",
        "rate_drop": 0.0,
        "skip_drop": 0.0,
        "max_drop": None,
        "sample_type": "uniform",
        "normalize_type": "tree",
    },
    # Ke et al. (2017), with the library's defaults.
    "lightgbm": {
        "learning_rate": 0.1,
        "grow_policy": "leafwise",
        "max_leaves": 31,
        "max_depth": None,
        "max_bins": 255,
        "min_samples_bin": 3,
        "min_child_weight": 1e-3,
        "min_samples_leaf": 20,
        "reg_lambda": 0.0,
        "path_smooth": 0.0,
        "linear_smooth": 0.0,
        "linear_units": "raw",
        "max_cat_to_onehot": 3,  # its 4 counts missing values as a category
        "max_cat_threshold": 32,
        "cat_smooth": 10.0,
        "cat_l2": 10.0,
        "min_data_per_group": 100,
        "pruning": "pre",
        "rate_drop": 0.1,
        "skip_drop": 0.5,
        "max_drop": 50,
        "sample_type": "weighted",
        "normalize_type": "paper",
    },
    # Prokhorenkova et al. (2018), with the library's defaults on the CPU, where trees
    # are boosted plainly.
    "catboost": {
        "learning_rate": "auto",
        "grow_policy": "symmetric",
        "multi_strategy": "multi_output_tree",
        "max_depth": 6,
        "max_leaves": None,
        "max_bins": 255,
        "min_samples_bin": 1,
        "min_child_weight": 0.0,
        "min_samples_leaf": 1,
        "reg_lambda": 3.0,
        "path_smooth": 0.0,
        "hessian": "none",
        "leaf_iterations": "auto",
        "score_function": "cosine",
        "random_strength": 1.0,
        "sampling": "mvs",
        "subsample": 0.8,
        "category_encoding": "ordered",
        "n_permutations": 3,
        "max_cat_to_onehot": 2,
    },
}

# What a library sets for one objective only.
RECIPE_FIELDS: dict[str | None, dict[str, dict[str, float]]] = {
    "classic": {"quantile": {"quantile_alpha": 0.9}},
    "lightgbm": {"quantile": {"quantile_alpha": 0.9}, "huber": {"huber_delta": 0.9}},
}
