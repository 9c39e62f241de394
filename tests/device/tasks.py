"""The tasks of parity: trainings whose model has the same bytes on every device.

In: nothing. Out: TASKS, by name: rows, columns, what the table has, parameters. The
tables are made of the core's own draws with + - * and comparisons, so they are the same
on every machine.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.device import host

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One training."""

    params: dict[str, Any]
    n_rows: int = 1000
    n_columns: int = 6
    missing: float = 0.0
    weight: str = ""  # whole | real | zeros
    data: dict[str, Any] = field(default_factory=dict)
    rounds: int = 5
    categories: tuple[int, ...] = ()  # numbers of categories of further columns


def uniform(n: int, stream: int) -> Floats:
    """(n) numbers in [0, 1) with 20 bits."""
    return (host.draw(0, 99, stream, 0, n) >> np.uint64(44)).astype(np.float64) / 2**20


def rows(task: Task) -> tuple[Floats, Floats, Floats | None]:
    """Table, label and weight of a task."""
    n = task.n_rows
    X = np.empty((n, task.n_columns), np.float64)
    for j in range(task.n_columns):
        X[:, j] = uniform(n, j)
    X[:, -1] = np.floor(4 * X[:, -1])
    z = (
        (X[:, 0] - 0.4) * (X[:, 1] - 0.6) * 8
        + X[:, 2]
        + (X[:, -1] > 1) * X[:, 3]
        + uniform(n, 1000)
    )
    if task.missing:
        for j in range(0, task.n_columns, 2):
            X[uniform(n, 2000 + j) < task.missing, j] = np.nan
    for at, n_categories in enumerate(task.categories):
        # the first ones have most rows
        codes = np.floor(n_categories * uniform(n, 4000 + at) ** 2)
        z = z + np.floor(codes * 7 % 5) * 0.4 - (codes == 1) * 0.5
        codes[uniform(n, 5000 + at) < task.missing] = np.nan
        X = np.column_stack([X, codes])
    labels = host.objectives()[task.params.get("objective", "squared_error")]["labels"]
    y = {
        "a number": z,
        "a number of at least 0": np.floor(2 * np.abs(z)),
        "a number above 0": 0.1 + np.abs(z),
        "a number from 0 to 1": (z > 1) * 0.75 + 0.125,
        "0 or 1": (z > 1.2).astype(np.float64),
        "a class index": np.clip(np.floor(2 * z), 0, 3) - 0.0,
    }[labels]
    if task.params.get("objective") == "multilabel":
        y = np.stack([y, (z > 0.5).astype(np.float64)], axis=1)
    if labels == "a class index":
        y[:4] = np.arange(4)
    w = {
        "": None,
        "whole": np.floor(4 * uniform(n, 3000)) + 1,
        "real": uniform(n, 3000) + 0.5,
        "zeros": np.floor(3 * uniform(n, 3000)),
    }[task.weight]
    return X, y, w


def train(task: Task, device: str = "cpu") -> sapwood.Booster:
    """The model of a task."""
    X, y, w = rows(task)
    of_categories = list(range(task.n_columns, X.shape[1]))
    given = {"categorical_features": of_categories} if of_categories else {}
    data = sapwood.Dataset(X, label=y, weight=w, device=device, **task.data, **given)
    return sapwood.train({**task.params, "n_estimators": task.rounds}, data)


GROWERS: dict[str, dict[str, Any]] = {
    "depthwise": {"grow_policy": "depthwise", "max_depth": 4},
    "leafwise": {"grow_policy": "leafwise", "max_leaves": 10},
    "symmetric": {"grow_policy": "symmetric", "max_depth": 4},
}
PARTS: dict[str, dict[str, Any]] = {  # each beside every grower
    "subsample": {"subsample": 0.6},
    "penalties": {
        "reg_lambda": 2.5,
        "reg_alpha": 0.5,
        "min_child_weight": 3.0,
        "min_split_gain": 0.1,
    },
    "step": {"max_delta_step": 0.3},
    "rows": {"min_samples_leaf": 40},
    "wide": {"precision": "wide"},
    "columns": {
        "colsample_bytree": 0.8,
        "colsample_bylevel": 0.8,
        "colsample_bynode": 0.8,
    },
    "monotone": {
        "monotone_constraints": {0: 1, 3: -1},
        "monotone_constraints_method": "basic",
    },
    "groups": {"interaction_constraints": [[0, 1], [2, 3, 5]]},
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "mvs": {"sampling": "mvs", "subsample": 0.5},
    "bayesian": {"sampling": "bayesian"},
    "extra": {"extra_trees": True},
    "hessian": {"hessian": "none"},
    "dart": {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
    "forest": {"boosting": "forest", "subsample": 0.6},
    "parallel": {"n_parallel_trees": 3, "subsample": 0.5},
    "steps": {"leaf_iterations": 5},
    "smooth": {"path_smooth": 10.0},
    "weights": {"feature_weights": {0: 0.5, 2: 3.0}},
    "first use": {"first_use_penalties": {0: 5.0, 1: 2.0, 3: 0.5}},
    "noise": {"random_strength": 2.0},
    "cosine": {"score_function": "cosine"},
    "cosine noise": {
        "score_function": "cosine",
        "random_strength": 1.0,
        "first_use_penalties": {0: 0.3},
    },
    "cosine gain": {
        "score_function": "cosine",
        "min_split_gain": 0.5,
        "min_samples_leaf": 15,
    },
}
LINEAR = {"linear_leaves": True}
STANDARD = {"linear_units": "standard", "subsample": 0.7}
TOGETHER = {"multi_strategy": "multi_output_tree"}
LINES: dict[str, dict[str, Any]] = {  # of leaves
    "standard": {"linear_units": "standard"},
    "penalties": {
        "linear_lambda": 0.5,
        "linear_smooth": 0.0,
        "reg_lambda": 3.0,
        "min_samples_leaf": 30,
    },
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "mvs": {
        "sampling": "mvs",
        "subsample": 0.5,
        "hessian": "none",
        "linear_units": "standard",
    },
    "bayesian": {"objective": "softmax", "sampling": "bayesian"},
    "pruned": {"ccp_alpha": 0.002, "linear_units": "standard"},
    "vector": {"objective": "softmax", **TOGETHER},
    "vector standard": {
        "objective": "softmax",
        **TOGETHER,
        "linear_units": "standard",
        "subsample": 0.7,
    },
    "forest": {"boosting": "forest", "subsample": 0.6, "linear_units": "standard"},
    "copies": {"n_parallel_trees": 3, "subsample": 0.6, "linear_units": "standard"},
    "dart": {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
}
VECTORS: dict[str, dict[str, Any]] = {
    "plain": {},
    "limits": {
        "min_child_weight": 4.0,
        "min_samples_leaf": 20,
        "min_split_gain": 0.3,
        "path_smooth": 3.0,
    },
    "labels": {"objective": "multilabel", "min_child_weight": 0.0},
    "penalties": {"reg_lambda": 2.5, "reg_alpha": 0.5, "max_delta_step": 0.4},
    "columns": {"colsample_bytree": 0.8, "colsample_bynode": 0.8, "subsample": 0.7},
    "extra": {"extra_trees": True, "precision": "wide"},
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "cosine": {"score_function": "cosine", "min_split_gain": 0.1},
    "noise": {
        "random_strength": 1.5,
        "feature_weights": {1: 2.0},
        "first_use_penalties": {0: 0.3},
    },
    "cosine noise": {
        "score_function": "cosine",
        "random_strength": 1.0,
        "sampling": "bayesian",
    },
    "sketch": {"sketch_outputs": 2},
    "sketch of one": {"sketch_outputs": 1, "subsample": 0.7},
    "sketch rows": {
        "sketch_outputs": 3,
        "min_samples_leaf": 20,
        "sampling": "mvs",
        "subsample": 0.6,
    },
}
CLASSES: dict[str, dict[str, Any]] = {  # a tree a class, side by side
    "columns": {
        "colsample_bytree": 0.8,
        "colsample_bylevel": 0.8,
        "colsample_bynode": 0.8,
        "subsample": 0.6,
    },
    "rows": {"min_samples_leaf": 20, "path_smooth": 3.0, "precision": "wide"},
    "penalties": {
        "reg_alpha": 0.5,
        "max_delta_step": 0.3,
        "min_split_gain": 0.1,
        "extra_trees": True,
    },
    "labels": {
        "objective": "multilabel",
        "monotone_constraints": {0: 1, 3: -1},
        "monotone_constraints_method": "basic",
        "interaction_constraints": [[0, 1], [2, 3, 5]],
    },
    "noise": {
        "random_strength": 1.5,
        "feature_weights": {1: 2.0},
        "first_use_penalties": {0: 0.3, 3: 0.1},
    },
    "cosine": {"score_function": "cosine", "min_split_gain": 0.1, "hessian": "none"},
    "goss": {"sampling": "goss", "learning_rate": 0.5, "n_parallel_trees": 2},
}
FOREST = {"boosting": "forest", "subsample": 0.6}
# copies of a round side by side, each with its own sample of rows
COPIES: dict[str, dict[str, Any]] = {
    "forest columns": {
        **FOREST,
        "colsample_bytree": 0.8,
        "colsample_bylevel": 0.8,
        "colsample_bynode": 0.7,
    },
    "forest all rows": {
        "boosting": "forest",
        "colsample_bytree": 0.6,
        "extra_trees": True,
    },
    "forest classes": {
        **FOREST,
        "objective": "softmax",
        "colsample_bynode": 0.7,
        "min_samples_leaf": 20,
    },
    "forest turns": {
        **FOREST,
        "subsample_freq": 2,
        "precision": "wide",
        "path_smooth": 5.0,
    },
    "forest copies": {
        **FOREST,
        "n_parallel_trees": 2,
        "reg_alpha": 0.5,
        "max_delta_step": 0.4,
    },
    "forest goss": {
        "boosting": "forest",
        "sampling": "goss",
        "score_function": "cosine",
    },
    "forest mvs classes": {
        **FOREST,
        "objective": "softmax",
        "sampling": "mvs",
        "hessian": "none",
    },
    "forest bayesian": {
        "boosting": "forest",
        "sampling": "bayesian",
        "min_samples_leaf": 20,
    },
    "forest noise": {**FOREST, "random_strength": 1.0},
    "forest steps": {**FOREST, "leaf_iterations": 3},
    "copies classes": {
        "objective": "softmax",
        "n_parallel_trees": 3,
        "subsample": 0.6,
        "colsample_bytree": 0.8,
    },
    "copies goss": {"n_parallel_trees": 3, "sampling": "goss", "learning_rate": 0.5},
    "copies mvs": {
        "n_parallel_trees": 4,
        "sampling": "mvs",
        "subsample": 0.5,
        "hessian": "none",
    },
    "copies noise": {
        "n_parallel_trees": 3,
        "subsample": 0.7,
        "random_strength": 1.5,
        "feature_weights": {1: 2.0},
    },
    "copies first use": {
        "n_parallel_trees": 2,
        "subsample": 0.7,
        "first_use_penalties": {0: 5.0, 1: 2.0, 3: 0.5},
    },
    "copies steps": {"n_parallel_trees": 3, "subsample": 0.6, "leaf_iterations": 3},
    "copies dart": {
        "n_parallel_trees": 2,
        "subsample": 0.6,
        "boosting": "dart",
        "rate_drop": 0.5,
        "skip_drop": 0.0,
    },
    "copies vector": {
        "objective": "softmax",
        "n_parallel_trees": 2,
        "subsample": 0.6,
        **TOGETHER,
    },
    "copies many": {"n_parallel_trees": 40, "subsample": 0.3, "colsample_bynode": 0.5},
}
SAMPLERS: dict[str, dict[str, Any]] = {
    "goss": {"sampling": "goss"},
    "mvs": {"sampling": "mvs", "subsample": 0.5, "hessian": "none"},
    "bayesian": {"sampling": "bayesian", "n_parallel_trees": 2},
}
SETS = {"category_encoding": "partition"}
CATEGORIES: dict[str, dict[str, Any]] = {
    "sets": {**SETS, "min_data_per_group": 10, "cat_smooth": 2.0, "cat_l2": 1.0},
    "onehot": {"category_encoding": "onehot"},
    "extra": {**SETS, "extra_trees": True, "min_data_per_group": 10},
    "rows": {**SETS, "min_samples_leaf": 40, "min_data_per_group": 5},
    "monotone": {
        **SETS,
        "monotone_constraints": {0: 1, 3: -1},
        "monotone_constraints_method": "basic",
    },
    "sampled": {
        **SETS,
        "subsample": 0.6,
        "colsample_bynode": 0.7,
        "path_smooth": 5.0,
        "min_data_per_group": 10,
    },
    "wide": {
        **SETS,
        "precision": "wide",
        "reg_alpha": 0.5,
        "max_delta_step": 0.5,
        "min_data_per_group": 10,
    },
    "statistics": {"category_encoding": "ordered"},
    "auto": {},
    "cosine": {
        **SETS,
        "score_function": "cosine",
        "random_strength": 1.0,
        "min_data_per_group": 10,
    },
    "weights": {**SETS, "feature_weights": {0: 0.5, 7: 2.0}, "min_data_per_group": 10},
}
FORCED = {
    "feature": 0,
    "threshold": 0.3,
    "left": {"feature": 1, "threshold": 0.6},
    "right": {"feature": 5, "threshold": 1.5},
}
TASKS: dict[str, Task] = {}
for grower, limits in GROWERS.items():
    for objective in sorted(host.objectives()):
        TASKS[f"{grower}/{objective}"] = Task({"objective": objective, **limits})
    for part, params in PARTS.items():
        TASKS[f"{grower}/{part}"] = Task(
            {"objective": "logistic", **limits, **params}, missing=0.1
        )
    for sampler, more in SAMPLERS.items():
        params = {"objective": "softmax", **limits, **more, "learning_rate": 0.6}
        TASKS[f"{grower}/{sampler} classes"] = Task(params, weight="whole")
        TASKS[f"{grower}/{sampler} zeros"] = Task(
            {**params, "objective": "absolute_error"}, weight="zeros"
        )
    TASKS[f"{grower}/linear"] = Task(
        {"objective": "logistic", **limits, **LINEAR}, data=LINEAR, missing=0.1
    )
    TASKS[f"{grower}/linear classes"] = Task(
        {"objective": "softmax", **limits, **LINEAR, **STANDARD}, data=LINEAR
    )
    for kind, more in LINES.items():
        TASKS[f"{grower}/lines {kind}"] = Task(
            {"objective": "logistic", **limits, **LINEAR, **more},
            data=LINEAR,
            missing=0.1,
        )
    for weight in ("whole", "real", "zeros"):
        params = {
            "objective": "squared_error",
            **limits,
            **LINEAR,
            "linear_units": "standard",
        }
        TASKS[f"{grower}/lines {weight}"] = Task(
            params, data=LINEAR, missing=0.1, weight=weight
        )
        params = {**params, "linear_units": "raw", "sampling": "mvs", "subsample": 0.8}
        TASKS[f"{grower}/lines raw {weight}"] = Task(
            params, data=LINEAR, missing=0.1, weight=weight
        )
    for encoding in ("partition", "ordered"):
        TASKS[f"{grower}/lines {encoding}"] = Task(
            {
                "objective": "logistic",
                **limits,
                **LINEAR,
                "category_encoding": encoding,
                "linear_units": "standard",
            },
            2000,
            data=LINEAR,
            missing=0.1,
            categories=(3, 40),
        )
    TASKS[f"{grower}/100k lines"] = Task(
        {"objective": "logistic", **limits, **LINEAR},
        100_000,
        28,
        data=LINEAR,
        missing=0.02,
    )
    for vector, more in VECTORS.items():
        TASKS[f"{grower}/vector {vector}"] = Task(
            {"objective": "softmax", **limits, **TOGETHER, **more}, missing=0.1
        )
    for kind, more in CLASSES.items():
        TASKS[f"{grower}/classes {kind}"] = Task(
            {"objective": "softmax", **limits, **more}, missing=0.1
        )
    TASKS[f"{grower}/classes categories"] = Task(
        {
            "objective": "softmax",
            **limits,
            "category_encoding": "partition",
            "min_data_per_group": 10,
        },
        2000,
        missing=0.1,
        weight="whole",
        categories=(3, 12, 40),
    )
    for kind, more in COPIES.items():
        TASKS[f"{grower}/{kind}"] = Task(
            {"objective": "logistic", **limits, **more}, missing=0.1
        )
    for weight in ("whole", "real", "zeros"):
        TASKS[f"{grower}/forest {weight}"] = Task(
            {"objective": "poisson", **limits, **FOREST, "sampling": "mvs"},
            missing=0.1,
            weight=weight,
        )
    TASKS[f"{grower}/forest many"] = Task(
        {"objective": "logistic", **limits, **FOREST}, rounds=45, missing=0.1
    )
    TASKS[f"{grower}/forest categories"] = Task(
        {
            "objective": "logistic",
            **limits,
            **FOREST,
            **SETS,
            "colsample_bynode": 0.7,
            "min_data_per_group": 10,
        },
        2000,
        missing=0.1,
        weight="whole",
        categories=(3, 12, 40),
    )
    TASKS[f"{grower}/copies linear"] = Task(
        {
            "objective": "logistic",
            **limits,
            **LINEAR,
            "n_parallel_trees": 2,
            "subsample": 0.7,
        },
        data=LINEAR,
        missing=0.1,
    )
    for weight in ("whole", "real", "zeros"):
        params = {"objective": "softmax", **limits, **TOGETHER, "min_samples_leaf": 15}
        TASKS[f"{grower}/vector {weight}"] = Task(params, weight=weight, missing=0.1)
        TASKS[f"{grower}/{weight}"] = Task(
            {"objective": "logistic", **limits}, weight=weight, missing=0.1
        )
    TASKS[f"{grower}/many columns"] = Task(
        {"objective": "logistic", **limits}, n_columns=70, missing=0.05
    )
    TASKS[f"{grower}/100k rows"] = Task(
        {"objective": "logistic", **limits}, n_rows=100_000, n_columns=28, missing=0.02
    )
    TASKS[f"{grower}/100k forest"] = Task(
        {"objective": "logistic", **limits, **FOREST},
        n_rows=100_000,
        n_columns=28,
        missing=0.02,
        rounds=12,
    )
    TASKS[f"{grower}/100k classes"] = Task(
        {"objective": "softmax", **limits}, n_rows=100_000
    )
    for kind, more in CATEGORIES.items():
        TASKS[f"{grower}/categories {kind}"] = Task(
            {"objective": "logistic", **limits, **more},
            3000,
            missing=0.1,
            categories=(3, 12, 200),
        )
    for kind, more in {
        "onehot": {},
        "rows": {"min_samples_leaf": 20},
        "extra": {"extra_trees": True},
    }.items():
        TASKS[f"{grower}/vector categories {kind}"] = Task(
            {
                "objective": "softmax",
                **limits,
                **TOGETHER,
                "category_encoding": "onehot",
                **more,
            },
            missing=0.1,
            categories=(3, 12),
        )
    for weight in ("whole", "real"):
        TASKS[f"{grower}/categories {weight}"] = Task(
            {"objective": "poisson", **limits, "min_data_per_group": 20, **SETS},
            weight=weight,
            categories=(30, 3),
        )
TASKS["depthwise/100k categories"] = Task(
    {"objective": "logistic", "max_depth": 6, **SETS},
    100_000,
    missing=0.02,
    categories=(2, 40, 250, 250),
)
for grower in ("depthwise", "leafwise"):
    for part, params in {
        "forced": {},
        "forced rows": {"min_samples_leaf": 30, "extra_trees": True},
        "forced bounds": {
            "monotone_constraints": {0: -1},
            "monotone_constraints_method": "basic",
            "random_strength": 1.0,
        },
    }.items():
        TASKS[f"{grower}/{part}"] = Task(
            {
                "objective": "logistic",
                **GROWERS[grower],
                "forced_splits": FORCED,
                **params,
            },
            missing=0.1,
        )
TASKS["depthwise/deep"] = Task(
    {"grow_policy": "depthwise", "max_depth": 9}, n_rows=20_000
)
TASKS["depthwise/leaves"] = Task(
    {"grow_policy": "depthwise", "max_leaves": 13, "max_depth": 5}
)
TASKS["leafwise/large"] = Task(
    {"grow_policy": "leafwise", "max_leaves": 255}, n_rows=50_000, n_columns=12
)
TASKS["leafwise/large lines"] = Task(
    {"grow_policy": "leafwise", "max_leaves": 255, "min_samples_leaf": 5, **LINEAR},
    20_000,
    40,
    data=LINEAR,
)
TASKS["leafwise/depth"] = Task(
    {"grow_policy": "leafwise", "max_leaves": 20, "max_depth": 4}
)
TASKS["depthwise/1M rows"] = Task(
    {"objective": "logistic", "grow_policy": "depthwise", "max_depth": 6},
    n_rows=1_000_000,
    n_columns=28,
    rounds=3,
)
for sampler in ("goss", "mvs"):  # many rows have nearly the norm of the threshold
    TASKS[f"depthwise/1M {sampler}"] = Task(
        {
            "max_depth": 4,
            "sampling": sampler,
            "subsample": 0.5 if sampler == "mvs" else 1.0,
            "learning_rate": 0.9,
        },
        n_rows=1_000_000,
        rounds=3,
    )
TASKS["depthwise/1M forest"] = Task(
    {"objective": "logistic", **FOREST, "grow_policy": "depthwise", "max_depth": 6},
    n_rows=1_000_000,
    rounds=6,
)
TASKS["leafwise/1M rows"] = Task(
    {"objective": "squared_error", "grow_policy": "leafwise", "max_leaves": 63},
    n_rows=1_000_000,
    rounds=3,
)


def small(name: str) -> Task:
    """A task with few rows, for the emulation."""
    task = TASKS[name]
    shallow = {"max_depth": 3} if "max_depth" in task.params else {"max_leaves": 6}
    n_rows = 600 if task.categories else 300
    return replace(
        task,
        params={**task.params, **shallow},
        n_rows=n_rows,
        data={**task.data, "max_bins": 32},
        rounds=4
        if task.params.get("boosting") == "forest"
        else 3
        if "sampling" in task.params
        else 2,
    )
