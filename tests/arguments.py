"""Tables, and a changed value for every parameter: what `system/test_arguments.py` asks
of every argument.

Out: by parameter, pairs of a context, in which the parameter has a meaning, and values
that must change the result.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

RNG = np.random.default_rng(7)
N_ROWS = 120
X = RNG.normal(size=(N_ROWS, 4))
X[::7, 2] = np.nan
SCORE = (
    X[:, 0] + X[:, 1] ** 2 + np.nan_to_num(X[:, 2]) / 2 + 0.3 * RNG.normal(size=N_ROWS)
)
MIDDLE = np.median(SCORE)
BINARY = (SCORE > MIDDLE + 0.5).astype(np.float64)
THREE = np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.6])).astype(np.float64)
COUNTS = np.exp(SCORE / 2).round()
TWO_TARGETS = np.column_stack([SCORE, np.exp(X[:, 3])])
MANY = RNG.normal(size=(1500, 2))  # rows in which a column has more values than bins
GROUP = np.repeat(np.arange(12), 10)
FRAME = pd.DataFrame(
    {
        "number": X[:, 0],
        "few": pd.Categorical.from_codes(
            np.digitize(SCORE, [-1, 0, 1, 2]), list("abcde")
        ),
        "many": (SCORE * 5).round().clip(-9, 9).astype(int).astype(str),
        "code": RNG.integers(0, 6, N_ROWS),
        "date": pd.Timestamp("2024-01-01")
        + pd.to_timedelta(RNG.integers(0, 900, N_ROWS), "D"),
    }
)
TEXTS = FRAME[["number"]].assign(
    text=[
        " ".join(RNG.choice(["tree", "leaf", "root", "bark", "wood"], 7)) + f" {i}"
        for i in range(N_ROWS)
    ],
    list=[[float(one), 1.0 - one] for one in X[:, 3]],
)
PAIRS = pd.DataFrame(
    {
        name: pd.Categorical.from_codes(RNG.integers(0, 4, 400), list("abcd"))
        for name in "ab"
    }
)
ODD = ((PAIRS["a"].cat.codes + PAIRS["b"].cat.codes) % 2).to_numpy(np.float64)
TARGETS: dict[str, Any] = {
    "number": SCORE,
    "binary": BINARY,
    "three": THREE,
    "odd": ODD,
    "heavy": np.exp(3 * SCORE),
    "many": MANY[:, 0] + np.abs(MANY[:, 1]),
    "count": COUNTS,
    "two": TWO_TARGETS,
}
TABLES: dict[str, Any] = {
    "numbers": X,
    "many": MANY,
    "pairs": PAIRS,
    "zeros": X.round(),
    "categories": FRAME,
    "texts": TEXTS,
}


@dataclass(frozen=True)
class Context:
    """In what training a parameter has a meaning: other parameters, and the rows."""

    params: dict[str, Any] = field(default_factory=dict)
    y: str = "number"
    table: str = "numbers"
    grouped: bool = False
    watched: bool = False  # there are validation rows


def of(
    y: str = "number",
    table: str = "numbers",
    grouped: bool = False,
    watched: bool = False,
    **params: Any,
) -> Context:
    return Context(params, y, table, grouped, watched)


PLAIN = of()
DART = of(boosting="dart", skip_drop=0.0, rate_drop=0.5, n_estimators=10)
POISSON = of("count", objective="poisson")
LINEAR = of(linear_leaves=True)
SETS = of(table="categories")
ORDERED = of("binary", "categories", objective="logistic", category_encoding="ordered")
TOGETHER = of(
    "odd", "pairs", category_encoding="ordered", n_estimators=10, max_cat_to_onehot=1
)
JOINED = of(
    "odd",
    "pairs",
    category_encoding="ordered",
    max_combination=2,
    n_estimators=10,
    max_cat_to_onehot=1,
)
RANKING = of("three", objective="lambdarank", grouped=True)
YETI = of("three", objective="yetirank", grouped=True)
GOSS = of(sampling="goss", learning_rate=0.9)
STOPPED = of(early_stopping_rounds=2, n_estimators=40, learning_rate=0.5)
BY_NAME: dict[str, list[tuple[Context, list[Any]]]] = {
    "n_estimators": [(PLAIN, [3, 5])],
    "learning_rate": [(PLAIN, [0.3, [0.3, 0.2, 0.1, 0.1], lambda index: 0.5, "auto"])],
    "recipe": [(PLAIN, ["classic", "xgboost", "lightgbm", "catboost"])],
    "objective": [(PLAIN, ["huber", "absolute_error"])],
    "boosting": [
        (PLAIN, ["ordered"]),
        (of(n_estimators=15), ["dart"]),
        (of(subsample=0.5), ["forest"]),
    ],
    "n_parallel_trees": [(of(subsample=0.5), [2])],
    "n_permutations": [(of(boosting="ordered"), [3])],
    "has_time": [(of(boosting="ordered"), [True])],
    "rate_drop": [(DART, [1.0])],
    "skip_drop": [(DART, [1.0])],
    "max_drop": [(DART, [1])],
    "one_drop": [
        (of(boosting="dart", skip_drop=0.0, rate_drop=1e-9, n_estimators=10), [True])
    ],
    "sample_type": [(DART, ["weighted"])],
    "normalize_type": [(DART, ["forest", "paper"])],
    "grow_policy": [(of(max_leaves=6), ["depthwise", "symmetric"])],
    "multi_strategy": [(of("two"), ["multi_output_tree"])],
    "sketch_outputs": [
        (of("three", objective="softmax", multi_strategy="multi_output_tree"), [1])
    ],
    "max_leaves": [(PLAIN, [3])],
    "max_depth": [(PLAIN, [2])],
    "tree_method": [(of("many", "many"), ["exact"])],
    "max_bins": [(PLAIN, [3])],
    "min_samples_bin": [(of("many", "many"), [1])],
    "categorical_features": [(SETS, [["code", "few", "many"], None])],
    "date_features": [(SETS, [["year"], None])],
    "text_features": [(of(table="texts"), [None])],
    "embedding_features": [(of(table="texts"), [None])],
    "zero_as_missing": [(of(table="zeros"), [True])],
    "min_child_weight": [(PLAIN, [20])],
    "min_samples_leaf": [(PLAIN, [30])],
    "reg_lambda": [(PLAIN, [10])],
    "reg_alpha": [(PLAIN, [5])],
    "min_split_gain": [(PLAIN, [5])],
    "score_function": [(of(hessian="none"), ["cosine"])],
    "random_strength": [(PLAIN, [2])],
    "feature_weights": [(PLAIN, [{0: 0}, [0, 1, 1, 1]])],
    "first_use_penalties": [(PLAIN, [{0: 1e3}])],
    "pruning": [(of(min_split_gain=2), ["post"])],
    "max_delta_step": [(PLAIN, [0.01])],
    "path_smooth": [(PLAIN, [50])],
    "linear_leaves": [(PLAIN, [True])],
    "linear_lambda": [(LINEAR, [100])],
    "linear_units": [(LINEAR, ["standard"])],
    "linear_smooth": [(LINEAR, [0.0])],
    "start": [(PLAIN, [3])],
    "hessian": [(POISSON, ["none"])],
    "leaf_estimation": [(POISSON, ["gradient", "exact"])],
    "leaf_iterations": [(POISSON, [5, "auto"])],
    "line_search": [(POISSON, ["tree"])],
    "ccp_alpha": [(PLAIN, [0.05])],
    "prune_by_validation": [(of(watched=True), [True])],
    "subsample": [(PLAIN, [0.5])],
    "sampling": [
        (PLAIN, ["bayesian"]),
        (of(learning_rate=0.9), ["goss"]),
        (of(subsample=0.5), ["mvs", "none"]),
    ],
    "subsample_freq": [(of(subsample=0.5), [2])],
    "subsample_by_class": [(of("binary", objective="logistic"), [{0: 0.3}, [0.3, 1]])],
    "class_weight": [
        (of("binary", objective="logistic"), [{1: 5}, [1, 5], "sqrt_balanced"])
    ],
    "sampling_unit": [(of(subsample=0.5, grouped=True), ["group"])],
    "top_rate": [(GOSS, [0.5])],
    "other_rate": [(GOSS, [0.5])],
    "mvs_reg": [(of(sampling="mvs", subsample=0.5), [10])],
    "bagging_temperature": [(of(sampling="bayesian"), [0, 5])],
    "colsample_bytree": [(PLAIN, [0.5])],
    "colsample_bylevel": [(PLAIN, [0.5])],
    "colsample_bynode": [(PLAIN, [0.5])],
    "monotone_constraints": [(PLAIN, [{0: -1}, [-1, 0, 0, 0], "(-1,0,0,0)"])],
    "monotone_method": [
        (of(monotone_constraints={0: 1, 1: 1}, n_estimators=20), ["intermediate"])
    ],
    "interaction_constraints": [(PLAIN, [[[0], [1], [2]], "no_interactions"])],
    "extra_trees": [(PLAIN, [True])],
    "category_encoding": [(SETS, ["onehot", "ordered", "both", {"few": "ordered"}])],
    "statistics": [(ORDERED, [["counter"], {"few": ["counter"]}])],
    "max_combination": [(TOGETHER, [2])],
    "model_size_reg": [(JOINED, [1000])],
    "max_cat_to_onehot": [(SETS, [100])],
    "max_cat_threshold": [
        (of(table="categories", min_data_per_group=1, cat_smooth=1), [1])
    ],
    "cat_smooth": [(of(table="categories", min_data_per_group=1), [1])],
    "cat_l2": [(of(table="categories", min_data_per_group=1), [1000])],
    "min_data_per_group": [(SETS, [1])],
    "forced_splits": [(PLAIN, [{"feature": 3, "threshold": 0.0}])],
    "precision": [(of("heavy", n_estimators=20), ["wide"])],
    "early_stopping_rounds": [(STOPPED, [1, None])],
    "validation_fraction": [(STOPPED, [0.4])],
    "quality": [(PLAIN, ["fast"])],
    "time_limit": [(of(quality="fast", n_estimators=200), [1e-3])],
    "quantiles": [(PLAIN, [[0.1, 0.9]])],
    "conformal": [(PLAIN, ["split"])],
    "eval_metric": [(of(watched=True), ["mae", "none", ["rmse", "mae"]])],
    "importance_type": [(PLAIN, ["weight"])],
    "n_jobs": [(PLAIN, [0, 2])],
    "random_state": [(of(subsample=0.5), [1])],
    "verbose": [(PLAIN, [1, True])],
    "checkpoint": [(PLAIN, ["never.checkpoint"])],
    "checkpoint_every": [(PLAIN, [2])],
    "device": [(PLAIN, ["cuda"])],
    "n_classes": [(of("three", objective="softmax"), [2, 4])],
    "ranking_metric": [(RANKING, ["map"]), (YETI, ["ndcg"])],
    "truncation_level": [(RANKING, [1])],
    "label_gain": [(RANKING, ["linear", [0, 1, 10]])],
    "sigmoid": [(RANKING, [3.0])],
    "ranking_norm": [(RANKING, ["none", "group"])],
    "noisy_permutations": [(YETI, [2])],
    "noisy_neighbors": [(YETI, [3])],
    "noise_decay": [(YETI, [0.1])],
    "position_bias_regularization": [(RANKING, [1.0])],
    "eval_at": [
        (of("three", objective="lambdarank", grouped=True, watched=True), [[1, 3]])
    ],
}
HAZARD = of(model="hazard")
OWN: dict[str, dict[str, list[tuple[Context, list[Any]]]]] = {  # of estimators
    "SapwoodSurvival": {
        "model": [(HAZARD, ["cox", "aft", "x"])],
        "ties": [(of(model="cox"), ["breslow", "x"]), (HAZARD, ["breslow"])],
        "dist": [(of(model="aft"), ["normal", "x"]), (HAZARD, ["normal"])],
        "n_intervals": [(HAZARD, [3, 0]), (of(model="cox"), [3])],
        "departure": [(HAZARD, [1.0, 0]), (of(model="aft"), [1.0])],
    },
    "SapwoodDistribution": {
        "dist": [(PLAIN, ["laplace", "x"])],
        "n_folds": [(PLAIN, [2, 1])],
    },
}
FIELDS: dict[str, list[tuple[Context, list[Any]]]] = {
    "quantile_alpha": [(of(objective="quantile"), [0.9, 2])],
    "expectile_alpha": [(of(objective="expectile"), [0.9, 2])],
    "huber_delta": [(of(objective="huber"), [0.1, 0])],
    "huber_quantile": [(of(objective="adaptive_huber"), [0.3, 2])],
    "fair_c": [(of(objective="fair"), [5, 0])],
    "tweedie_power": [(of("count", objective="tweedie"), [1.9, 3])],
    "focal_gamma": [(of("binary", objective="focal"), [0.5, -1])],
    "focal_alpha": [(of("binary", objective="focal"), [0.9, 2])],
}
