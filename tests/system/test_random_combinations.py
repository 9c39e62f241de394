"""Parts combine: a training with parameters drawn at random keeps every promise, or is
in the table of refusals.
"""

import random
import re
import string
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.boost import compatibility
from sapwood.device import host
from sapwood.errors import SapwoodError
from sapwood.params import TABLE
from sapwood.params.recipes import RECIPES
from sapwood.params.types import Choice, flag

VALUES: dict[str, list[Any]] = {
    "learning_rate": [0.01, 0.1, 1.0, "auto"],
    "recipe": list(RECIPES),
    "objective": sorted(host.objectives()),
    "n_parallel_trees": [1, 2],
    "n_permutations": [1, 3],
    "rate_drop": [0.5],
    "skip_drop": [0.0],
    "max_drop": [1, None],
    "max_leaves": [2, 7, None],
    "max_depth": [1, 4, None],
    "max_bins": [2, 16, 1000],
    "min_samples_bin": [1, 50],
    "min_child_weight": [0.0, 5.0],
    "min_samples_leaf": [1, 30],
    "reg_lambda": [0.0, 10.0],
    "reg_alpha": [0.5],
    "min_split_gain": [0.05],
    "random_strength": [1.0],
    "feature_weights": [{0: 2.0}],
    "first_use_penalties": [{1: 1.0}],
    "max_delta_step": [0.5],
    "path_smooth": [0.0, 5.0],
    "linear_lambda": [1.0],
    "linear_smooth": [0.0],
    "linear_units": ["standard"],
    "start": [0.5],
    "leaf_iterations": [3],
    "ccp_alpha": [1e-3],
    "subsample": [0.5],
    "subsample_freq": [2],
    "top_rate": [0.4],
    "other_rate": [0.3],
    "mvs_reg": [0.1],
    "bagging_temperature": [2.0],
    "colsample_bytree": [0.5],
    "colsample_bylevel": [0.5],
    "colsample_bynode": [0.5],
    "monotone_constraints": [{0: 1}, {0: -1, 1: 1}],
    "interaction_constraints": [[[0, 1], [2]], [[1, "k0"]]],
    "max_cat_to_onehot": [1, 100],
    "max_cat_threshold": [1],
    "cat_smooth": [0.0],
    "cat_l2": [0.0],
    "min_data_per_group": [1],
    "early_stopping_rounds": [2],
    "forced_splits": [{"feature": 0, "threshold": 0.0}],
    "validation_fraction": [0.3],
    "subsample_by_class": [{0: 0.5}],
    "class_weight": [{0: 3}, "balanced"],
    "max_combination": [3],
    "model_size_reg": [0.0, 2.0],
    "category_encoding": [
        "auto",
        "partition",
        "onehot",
        "ordered",
        "both",
        {"k0": "ordered"},
    ],
    "sketch_outputs": [1, 2],
    "date_features": [["month"]],
    "text_features": [None],
    "embedding_features": [None],
    "statistics": [["mean", ("counter", [0.5])], {"k0": [("buckets", [0.5])]}],
}
ELSEWHERE = {
    "n_estimators",
    "categorical_features",
    "eval_metric",
    "n_jobs",
    "random_state",
    "verbose",
    "device",
    "n_classes",
    "quality",
    "time_limit",
    "checkpoint",
    "checkpoint_every",
    "quantiles",
    "conformal",
}
NEEDS = {  # a name and its value, without which others are refused
    ("boosting", "dart"): {
        "rate_drop",
        "skip_drop",
        "max_drop",
        "one_drop",
        "sample_type",
        "normalize_type",
    },
    ("linear_leaves", True): {"linear_lambda", "linear_smooth", "linear_units"},
    ("max_combination", 3): {"model_size_reg"},
    ("category_encoding", "ordered"): {
        "max_combination",
        "statistics",
        "model_size_reg",
    },
    ("sampling", "goss"): {"top_rate", "other_rate"},
    ("sampling", "mvs"): {"mvs_reg"},
    ("sampling", "bayesian"): {"bagging_temperature"},
}
OF_DATA = (
    "max_bins",
    "min_samples_bin",
    "tree_method",
    "linear_leaves",
    "zero_as_missing",
    "date_features",
    "text_features",
    "embedding_features",
)
LABELS: dict[str, Any] = {  # by what an objective asks of them: from numbers
    "a number": lambda z: z,
    "a number from 0 to 1": lambda z: 1 / (1 + np.exp(-z)),
    "0 or 1": lambda z: z > 0,
    "a number above 0": np.exp,
    "a number of at least 0": np.exp,
    "a class index": lambda z: np.arange(len(z)) % 3,
}


VALUE_ERRORS = (  # about a value or the data, not about what goes with what
    "which is unknown; choose one of a, b, c.",
    "which is unknown; choose one of a, a / b, b, b * c, c.",
    "forced_splits separates no rows",
    "leaves none to train on",
    "no class has two rows",
    "needs a depth",
    "subsample_by_class has a class",
    "which has no bins",
    "tree_method='exact' knows no categories",
)


def pattern(message: str) -> re.Pattern[str]:
    """A message of the table, whatever is filled in."""
    parts = string.Formatter().parse(message)
    return re.compile(
        "".join(
            re.escape(text) + ("" if name is None else ".*") for text, name, *_ in parts
        ),
        re.DOTALL,
    )


REFUSALS = [pattern(row.message) for row in compatibility.TABLE]


def choices(name: str, kind: Any) -> list[Any]:
    if isinstance(kind, Choice):
        return list(kind.words)
    return [False, True] if kind is flag else VALUES[name]


def rows(draw: random.Random, goal: str) -> tuple[pd.DataFrame, Any, Any]:
    """A table, labels and weights: few rows or many, with all that tables may hold."""
    n = draw.choice([1, 2, 3, 40, 300, 1500])
    rng = np.random.default_rng(draw.randrange(10**9))
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    first: list[Any] = [
        X["a"],
        rng.integers(0, 4, n),
        np.where(rng.random(n) < 0.3, np.nan, X["a"]),
        1.0,
        np.inf,
    ]
    X["a"] = draw.choice(first)
    for k in range(draw.choice([0, 0, 1, 2])):
        codes = rng.integers(-1, draw.choice([2, 9, 200]), n)
        X[f"k{k}"] = pd.Categorical.from_codes(codes, [f"v{i}" for i in range(200)])
    z = X["a"].clip(-3, 3).fillna(0).to_numpy() + X["b"].to_numpy() + rng.normal(size=n)
    if "k0" in X:
        z = z + X["k0"].cat.codes.to_numpy() % 3
    y = LABELS[host.objectives()[goal]["labels"]](z).astype(np.float64)
    weights = [
        None,
        None,
        rng.integers(1, 4, n).astype(np.float64),
        rng.random(n) + 1e-3,
    ]
    return X, y[:, None] if goal == "multilabel" else y, draw.choice(weights)


# some settings split nothing, and say so
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(n, marks=pytest.mark.nightly if n >= 100 else ())
        for n in range(1000)
    ],
)
def test_whatever_is_drawn(seed: int) -> None:
    draw = random.Random(seed)
    share = draw.choice([0.03, 0.1])
    params = {
        p.name: draw.choice(choices(p.name, p.type))
        for p in TABLE
        if p.name not in ELSEWHERE and not p.ranking and draw.random() < share
    }
    params |= {
        name: value for (name, value), others in NEEDS.items() if others & params.keys()
    }
    params |= {
        "objective": draw.choice(VALUES["objective"]),
        "random_state": seed,
        "n_estimators": draw.choice([1, 4]),
    }
    X, y, weight = rows(draw, params["objective"])
    try:
        data = sw.Dataset(
            X,
            y,
            weight=weight,
            **{name: params[name] for name in OF_DATA if name in params},
        )
        if data.values is not None and data.tree_method == "hist" and seed % 2:
            by = ["k0"] if 3 in data.categories else []
            data = data.with_crosses(
                [
                    ("ratio", "a", "b"),
                    ("product", "b", "c"),
                    *(("centred", "a", k) for k in by),
                ]
            )
        model = sw.train(params | {"n_jobs": 1}, data)
    except SapwoodError as error:
        assert any(one.fullmatch(str(error)) for one in REFUSALS) or any(
            one in str(error) for one in VALUE_ERRORS
        )
        return
    assert sw.train(params | {"n_jobs": 3}, data).to_bytes() == model.to_bytes()
    found = model.predict(X)
    assert np.isfinite(found).all()
    again = sw.load(model.to_bytes())
    assert again.fingerprint() == model.fingerprint()
    # row by row, and in blocks
    np.testing.assert_array_equal(again.predict(X.iloc[:2]), found[:2])
    if params.get("monotone_constraints"):
        assert model.check_constraints()


def test_a_refusal_outside_the_table_is_seen() -> None:
    assert not any(
        one.fullmatch("max_depth=3 is not for learning_rate=0.1.") for one in REFUSALS
    )
