"""The peers' values of parameters, and how each is converted to ours.

In: a value in the words of XGBoost, LightGBM, CatBoost or scikit-learn. Out: the value
in our words.
"""

from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from sapwood.params.types import is_integer


def replacing(old: Collection[Any], new: Any) -> Callable[[Any], Any]:
    """A conversion that replaces a peer's special integers and keeps other values."""
    return lambda value: new if is_integer(value) and value in old else value


def switch(yes: Any, no: Any) -> Callable[[Any], Any]:
    """A conversion of a peer's switch (True, False, 1 or 0) that keeps other values."""
    return lambda value: (
        (yes if value else no)
        if isinstance(value, Integral | np.bool_) and value in (0, 1)
        else value
    )


def half(value: Any) -> Any:
    """Half of a number; other values are kept for the check."""
    return (
        value if isinstance(value, bool) or not isinstance(value, Real) else value / 2
    )


# XGBoost's 0 and LightGBM's -1, of depth and leaves
no_limit = replacing((0, -1), None)

OBJECTIVES = {  # XGBoost's names, LightGBM's, CatBoost's, scikit-learn's, in lower case
    **dict.fromkeys(
        ("reg:squarederror", "reg:linear", "regression", "regression_l2", "l2", "mse"),
        "squared_error",
    ),
    **dict.fromkeys(
        ("rmse", "mean_squared_error", "squaredloss", "gaussian", "ls"), "squared_error"
    ),
    **dict.fromkeys(
        ("l2_root", "root_mean_squared_error", "multirmse"), "squared_error"
    ),
    **dict.fromkeys(
        (
            "reg:absoluteerror",
            "regression_l1",
            "l1",
            "mae",
            "mean_absolute_error",
            "lad",
        ),
        "absolute_error",
    ),
    **dict.fromkeys(("reg:quantileerror", "pinball", "multiquantile"), "quantile"),
    **dict.fromkeys(("mean_absolute_percentage_error",), "mape"),
    **dict.fromkeys(("reg:squaredlogerror", "msle"), "squared_log"),
    **dict.fromkeys(("count:poisson",), "poisson"),
    **dict.fromkeys(("reg:gamma",), "gamma"),
    **dict.fromkeys(("reg:tweedie",), "tweedie"),
    **dict.fromkeys(("reg:expectileerror",), "expectile"),
    **dict.fromkeys(("logcosh",), "log_cosh"),
    **dict.fromkeys(
        (
            "binary:logistic",
            "binary",
            "logloss",
            "log_loss",
            "binary_logloss",
            "bernoulli",
        ),
        "logistic",
    ),
    **dict.fromkeys(("reg:logistic", "crossentropy", "xentropy"), "cross_entropy"),
    **dict.fromkeys(("binary:hinge",), "hinge"),
    **dict.fromkeys(
        ("multi:softprob", "multi:softmax", "multiclass", "multinomial"), "softmax"
    ),
    **dict.fromkeys(
        ("multiclassova", "multiclass_ova", "ova", "ovr", "multiclassonevsall"),
        "one_vs_all",
    ),
    **dict.fromkeys(("multilogloss",), "multilabel"),
    **dict.fromkeys(("rank:ndcg", "rank:map", "lambdamart"), "lambdarank"),
    **dict.fromkeys(
        ("xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"), "rank_xendcg"
    ),
    **dict.fromkeys(("queryrmse",), "query_rmse"),
    **dict.fromkeys(("pairlogit", "rank:pairwise"), "pair_logit"),
}
BOOSTING = {
    "gbdt": "plain",
    "gbrt": "plain",
    "gbtree": "plain",
    "rf": "forest",
    "random_forest": "forest",
}
POLICIES = {"lossguide": "leafwise", "symmetrictree": "symmetric"}
SAMPLERS = {
    "gradient_based": "mvs",
    "bernoulli": "uniform",
    "bagging": "uniform",
    "no": "none",
}
NO_BOOSTING = {
    "gblinear": "every model consists of trees; linear_leaves=True gives them linear leaves."
}
NO_METHODS = {
    "gpu_hist": "choose 'hist', and device='cuda' to train on a GPU.",
    "approx": "bins are computed once for all trees; choose 'hist', or 'exact' to split between any values.",
}
