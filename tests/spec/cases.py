"""What the specification and the law are tried on: growers, weights, samplers,
constraints, ensembles, odd tables.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec.reference.losses import OBJECTIVES as SHELF

Floats = NDArray[np.float64]

POLICIES = ["depthwise", "leafwise", "symmetric"]

OBJECTIVES = ["squared_error", "logistic", "softmax"]

PRECISIONS = ["narrow", "wide", "auto"]

WEIGHTS = ["none", "whole", "real"]

LEAVES = ["auto", "newton", "gradient", "exact", "sign"]

POINTWISE = [name for name, goal in SHELF.items() if goal.labels != "a class index"]

SMALL = {"max_depth": 4, "max_leaves": 11, "learning_rate": 0.3}

FIELDS: list[dict[str, Any]] = [
    {"objective": "huber", "huber_delta": 0.4},
    {"objective": "adaptive_huber", "huber_quantile": 0.6},
    {"objective": "quantile", "quantile_alpha": 0.9},
    {"objective": "quantile", "quantile_alpha": 0.2},
    {"objective": "expectile", "expectile_alpha": 0.8},
    {"objective": "fair", "fair_c": 0.2},
    {"objective": "fair", "fair_c": 1e9},
    {"objective": "tweedie", "tweedie_power": 1.1},
    {"objective": "tweedie", "tweedie_power": 1.9},
    {"objective": "focal", "focal_gamma": 0.0, "focal_alpha": 0.5},
    {"objective": "focal", "focal_gamma": 5.0, "focal_alpha": 0.9},
]

ODD = {
    "one row": (np.ones((1, 2)), np.ones(1)),
    "two rows": (np.array([[1.0], [2.0]]), np.array([3.0, 5.0])),
    "constant columns": (np.ones((30, 3)), np.arange(30.0)),
    "constant label": (np.arange(30.0)[:, None], np.full(30, 0.1)),
    "all missing": (np.full((20, 2), np.nan), np.arange(20.0)),
    "missing against values": (
        np.where(np.arange(40.0) % 3 == 0, np.nan, 4.0)[:, None],
        np.arange(40.0) % 3,
    ),
    "infinities": (
        np.array([-np.inf, -1, 0, 1, np.inf, np.nan] * 10)[:, None],
        np.arange(60.0) % 6,
    ),
    "neighbours": (
        np.nextafter(1.0, 2.0) ** np.arange(1, 50)[:, None],
        np.arange(49.0) % 7,
    ),
    "subnormals": (np.arange(40.0)[:, None] * 5e-324, np.arange(40.0) // 7),
    "huge": (
        np.linspace(-1.7, 1.7, 50)[:, None] * 1e308,
        np.linspace(-1e100, 1e150, 50),
    ),
    "tiny labels": (np.arange(50.0)[:, None], np.linspace(0, 1e-60, 50)),
    "zero signs": (np.array([0.0, -0.0, 1.0, -1.0] * 10)[:, None], np.arange(40.0) % 4),
    "equal columns": (
        np.repeat(np.arange(50.0)[:, None] % 13, 3, axis=1),
        np.arange(50.0) % 5,
    ),
}

# the labels rise with columns 0, 2 and 3; 1 and 5 must bend
BOTH = [1, -1, 1, 1, 0, -1]

FORCED = {
    "feature": 2,
    "threshold": 1.5,
    "left": {"feature": 0, "threshold": -0.3},
    "right": {"feature": 5, "threshold": 0.0},
}

RULES: dict[str, dict[str, Any]] = {
    "basic": {"monotone_constraints": BOTH},
    "intermediate": {"monotone_constraints": BOTH, "monotone_method": "intermediate"},
    "against the data": {"monotone_constraints": [-1, 0, -1, 0, 0, 0]},
    "groups": {"interaction_constraints": [[0, 1], [1, 2, 3]]},
    "pairwise": {"interaction_constraints": "pairwise"},
    "alone": {"interaction_constraints": "no_interactions"},
    "extra": {"extra_trees": True},
    "forced": {"forced_splits": FORCED},
    "all": {
        "monotone_constraints": BOTH,
        "interaction_constraints": [[0, 2, 5], [1, 3]],
        "extra_trees": True,
    },
}

SAMPLERS: list[dict[str, Any]] = [
    {"sampling": "goss", "learning_rate": 1.0},
    {"sampling": "goss", "top_rate": 0.5, "other_rate": 0.3, "learning_rate": 0.6},
    {"sampling": "goss", "top_rate": 0.0, "other_rate": 0.4, "learning_rate": 1.0},
    {"sampling": "mvs", "subsample": 0.4},
    {"sampling": "mvs", "subsample": 0.7, "mvs_reg": 0.3},
    {"sampling": "mvs", "subsample": 0.3, "mvs_reg": 0.0},
    {"sampling": "bayesian"},
    {"sampling": "bayesian", "bagging_temperature": 3.5, "subsample_freq": 2},
    {"subsample": 0.6, "subsample_freq": 2},
]

DART = {"boosting": "dart", "rate_drop": 0.4, "skip_drop": 0.2}

ENSEMBLES: dict[str, dict[str, Any]] = {
    "dart": DART,
    "dart_weighted": DART | {"sample_type": "weighted", "normalize_type": "paper"},
    "dart_forest": DART | {"normalize_type": "forest", "skip_drop": 0.0},
    "dart_one": DART | {"rate_drop": 0.0, "one_drop": True, "skip_drop": 0.0},
    "dart_one_weighted": DART
    | {"rate_drop": 0.0, "one_drop": True, "skip_drop": 0.0, "sample_type": "weighted"},
    "dart_most": DART | {"rate_drop": 1.0, "max_drop": 2, "skip_drop": 0.0},
    "dart_parallel": DART | {"n_parallel_trees": 2, "subsample": 0.7},
    "forest": {
        "boosting": "forest",
        "learning_rate": 1.0,
        "subsample": 0.6,
        "colsample_bynode": 0.7,
    },
    "forest_parallel": {
        "boosting": "forest",
        "learning_rate": 1.0,
        "subsample": 0.6,
        "n_parallel_trees": 3,
        "n_estimators": 2,
    },
    "parallel": {
        "n_parallel_trees": 3,
        "subsample": 0.6,
        "colsample_bytree": 0.7,
        "n_estimators": 3,
    },
    "post": {
        "pruning": "post",
        "min_split_gain": 0.5,
        "max_depth": 5,
        "n_estimators": 3,
    },
    "post_dart": DART
    | {"pruning": "post", "min_split_gain": 0.5, "max_depth": 5, "n_estimators": 4},
}

LINEAR: dict[str, dict[str, Any]] = {
    "plain": {},
    "lightgbm": {"reg_lambda": 0.0, "linear_smooth": 0.0},
    "ridge": {"linear_lambda": 0.7, "linear_smooth": 0.0},
    "smooth": {"path_smooth": 5.0},
    "first_order": {"leaf_estimation": "gradient"},
    "sampled": {"subsample": 0.6, "colsample_bynode": 0.6},
    "goss": {"sampling": "goss", "learning_rate": 0.5, "n_estimators": 5},
    "bayesian": {"sampling": "bayesian"},
    "dart": {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0, "n_estimators": 6},
    "forest": {
        "boosting": "forest",
        "learning_rate": 1.0,
        "subsample": 0.7,
        "n_estimators": 3,
    },
    "parallel": {"n_parallel_trees": 2, "subsample": 0.6, "n_estimators": 3},
    "standard": {"linear_units": "standard"},
    "standard_free": {
        "linear_units": "standard",
        "linear_lambda": 0.0,
        "linear_smooth": 0.0,
        "reg_lambda": 0.0,
    },
    "standard_goss": {
        "linear_units": "standard",
        "sampling": "goss",
        "learning_rate": 0.5,
        "n_estimators": 5,
    },
    "standard_dart": {
        "linear_units": "standard",
        "boosting": "dart",
        "rate_drop": 0.5,
        "skip_drop": 0.0,
    },
    "standard_forest": {
        "linear_units": "standard",
        "boosting": "forest",
        "learning_rate": 1.0,
        "subsample": 0.7,
    },
}

PREFERENCES: list[dict[str, Any]] = [
    {"score_function": "cosine"},
    {"random_strength": 2.0},
    {"score_function": "cosine", "random_strength": 1.0, "hessian": "none"},
    {"feature_weights": [0.2, 1.0, 0.0, 1.0, 1.0, 3.0]},
    {"first_use_penalties": [3.0, 0.0, 5.0, 0.5, 0.0, 2.0]},
    {
        "score_function": "cosine",
        "first_use_penalties": [0.5, 0.0, 1.0, 0.5, 0.0, 0.2],
        "random_strength": 0.3,
        "feature_weights": [1.0, 0.5, 1.0, 1.0, 1.0, 2.0],
    },
]
