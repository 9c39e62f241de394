"""The registry of the law: trainings whose model is one, byte for byte, however their
rows and work are parted.

In: nothing. Out: TASKS, by name. test_threads.py, test_isa.py, test_chunks.py and
test_holders.py go through all of them, so a new feature adds its tasks here and nothing
else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

import pytest

import sapwood
from cover import daily
from law.rows import Rows, codes, far, fused, mixed, numbers, rising, text
from sapwood import Booster, Dataset, _core
from spec.cases import ENSEMBLES, LINEAR, OBJECTIVES, POLICIES, PREFERENCES
from spec.category_tables import BYTES, COUNTS


@dataclass(frozen=True)
class Task:
    """A training: its rows, its parameters, and the arguments of its data set."""

    rows: Callable[[], Rows]
    params: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)
    daily: bool = True  # at each commit; the others only in `make test-all`
    crosses: Sequence[tuple[str, int, int]] = ()  # of its columns


TASKS: dict[str, Task] = {}


# ---- What tests do with a task -------------------------------------------------------


def pieces(rows: Rows, ends: Sequence[int]) -> list[Rows]:
    """Consecutive pieces of the rows, which end at some rows and at the last."""
    X, y, w = rows
    return [
        (X[a:b], y[a:b], None if w is None else w[a:b])
        for a, b in pairwise([0, *ends, len(y)])
    ]


@lru_cache(maxsize=4)
def rows_of(name: str) -> Rows:
    """The rows of a task."""
    return TASKS[name].rows()


def train(name: str, n_jobs: int = 2, ends: Sequence[int] = ()) -> Booster:
    """The model of a task, on its rows in one table or in pieces that end at some
    rows.
    """
    task = TASKS[name]
    given = {**task.data, "n_jobs": n_jobs}
    parts = pieces(rows_of(name), ends)
    data = Dataset.from_chunks(parts, **given) if ends else Dataset(*parts[0], **given)
    exact = task.data.get("tree_method") == "exact"  # sorts all rows as one
    assert exact or data.binned.n_chunks == len(parts)
    data = data.with_crosses(task.crosses) if task.crosses else data
    return sapwood.train({**task.params, "n_jobs": n_jobs}, data)


@cache
def expected(name: str) -> str:
    """The fingerprint of a task's model: one thread, the portable path, one table."""
    before = _core.isa()
    _core.set_isa("portable")
    try:
        return train(name, 1).fingerprint()
    finally:
        _core.set_isa(before)


def every_task() -> pytest.MarkDecorator:
    """A test of every task, by name."""
    params = [
        pytest.param(name, marks=() if task.daily else pytest.mark.nightly)
        for name, task in TASKS.items()
    ]
    return pytest.mark.parametrize("name", params)


# ---- The registry --------------------------------------------------------------------

SHAPE = {"n_estimators": 3, "max_depth": 5, "max_leaves": 24}
SAMPLED = {
    "subsample": 0.7,
    "colsample_bytree": 0.8,
    "colsample_bylevel": 0.8,
    "colsample_bynode": 0.8,
}
MONOTONE = {"monotone_constraints": [1, -1, 1, 0, -1]}
SAMPLERS: dict[str, dict[str, Any]] = {
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "mvs": {"sampling": "mvs", "subsample": 0.4},
    "bayesian": {"sampling": "bayesian"},
    "uniform": {"subsample": 0.4},
}
RULES: dict[str, dict[str, Any]] = {
    "basic": MONOTONE,
    "intermediate": MONOTONE | {"monotone_method": "intermediate"},
    "groups": {"interaction_constraints": [[0, 1], [1, 2, 3]]},
    "extra": {"extra_trees": True, "colsample_bynode": 0.8},
    "forced": {
        "forced_splits": {
            "feature": 0,
            "threshold": 0.1,
            "left": {"feature": 1, "threshold": 0.5},
        }
    },
    "all": MONOTONE
    | {
        "interaction_constraints": [[0, 1, 2], [3, 4]],
        "extra_trees": True,
        "subsample": 0.7,
    },
}


def add(
    name: str,
    rows: Callable[[], Rows],
    params: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    by_day: bool = True,
    crosses: Sequence[tuple[str, int, int]] = (),
) -> None:
    """One more task; `max_bins` goes to the data set."""
    bins = {"max_bins": params["max_bins"]} if "max_bins" in params else {}
    assert name not in TASKS
    TASKS[name] = Task(
        rows, {**SHAPE, **params}, {**bins, **(data or {})}, by_day, crosses
    )


def add_plain(axes: Iterable[tuple[tuple[Any, ...], bool]]) -> None:
    """Growers, losses, precisions, samples and weights."""
    for (policy, objective, precision, (sampling, weights)), by_day in axes:
        params = {
            "objective": objective,
            "grow_policy": policy,
            "precision": precision,
            **sampling,
        }
        name = f"{policy}-{objective}-{precision}-{'sampled' if sampling else 'all'}-{weights}"
        add(name, partial(numbers, objective, 20_000, weights), params, by_day=by_day)


KINDS = [({}, "none"), (SAMPLED, "none"), ({}, "whole"), (SAMPLED, "real")]
add_plain(daily(POLICIES, OBJECTIVES, ["narrow", "wide"], KINDS))

for objective in ("squared_error", "quantile"):
    add(
        f"far-{objective}",
        partial(far, objective, 20_000, "real"),
        {"objective": objective},
    )

# Enough rows for every parallel path: blocks for each thread, packed sums flushed (past
# 131,071 rows), bottom-k cuts.
BIG: list[tuple[bool, str, tuple[Any, ...], dict[str, Any]]] = [
    (True, "leafwise", ("squared_error", 300_000), {"precision": "narrow"}),
    (
        False,
        "leafwise",
        ("squared_error", 280_000, "real"),
        {"precision": "narrow", "subsample": 0.9},
    ),
    (False, "depthwise", ("logistic", 300_000, "real"), {"precision": "wide"}),
    (
        True,
        "depthwise",
        ("logistic", 60_000),
        {"max_depth": 9, "max_leaves": None, "min_samples_leaf": 30},
    ),
    (True, "symmetric", ("logistic", 150_000, "whole"), {"subsample": 0.9}),
    (False, "symmetric", ("squared_error", 290_000), {"precision": "narrow"}),
    (True, "leafwise", ("softmax", 60_000), {"max_bins": 700}),
    (False, "leafwise", ("logistic", 60_000, "none", 90), {"colsample_bynode": 0.5}),
]
for by_day, policy, args, more in BIG:
    given = {"objective": args[0], "grow_policy": policy, **more}
    add(
        f"{policy}-{'-'.join(map(str, args))}",
        partial(numbers, *args),
        given,
        by_day=by_day,
    )

for ((policy, args), (name, more)), by_day in daily(
    [
        ("leafwise", ("logistic", 40_000)),
        ("symmetric", ("squared_error", 40_000, "whole")),
        ("depthwise", ("softmax", 40_000, "real")),
    ],
    SAMPLERS.items(),
    strength=1,
):
    given = {"objective": args[0], "grow_policy": policy, **more}
    add(f"{name}-{policy}-{args[0]}", partial(numbers, *args), given, by_day=by_day)

for (policy, rule, args), by_day in daily(
    POLICIES,
    RULES,
    [("squared_error", 20_000), ("logistic", 20_000, "real")],
    when=lambda policy, rule, _: (policy, rule) != ("symmetric", "forced"),
):
    given = {"objective": args[0], "grow_policy": policy, **RULES[rule]}
    add(f"{rule}-{policy}-{args[0]}", partial(numbers, *args), given, by_day=by_day)
for by_day, policy, rule in (
    (True, "leafwise", "basic"),
    (False, "depthwise", "intermediate"),
    (True, "symmetric", "intermediate"),
):
    given = {"grow_policy": policy, **RULES[rule]}
    add(
        f"{rule}-{policy}-many",
        partial(numbers, "squared_error", 150_000),
        given,
        by_day=by_day,
    )

for (preference, policy), by_day in daily(
    range(len(PREFERENCES)), POLICIES, strength=1
):
    given = {
        "objective": "logistic",
        "n_estimators": 4,
        "grow_policy": policy,
        **PREFERENCES[preference],
    }
    add(
        f"preference-{preference}-{policy}",
        partial(mixed, "logistic", 4000),
        given,
        by_day=by_day,
    )

for (kind, (objective, weights)), by_day in daily(
    ENSEMBLES, [("squared_error", "real"), ("softmax", "none")], strength=1
):
    given = {"objective": objective, **ENSEMBLES[kind]}
    add(
        f"{kind}-{objective}",
        partial(numbers, objective, 20_000, weights),
        given,
        by_day=by_day,
    )

for by_day, kind, objective, weights in (
    (True, "plain", "squared_error", "none"),
    (True, "lightgbm", "squared_error", "real"),
    (True, "plain", "logistic", "whole"),
    (True, "sampled", "softmax", "none"),
    (False, "goss", "logistic", "real"),
    (False, "dart", "squared_error", "whole"),
    (False, "forest", "logistic", "none"),
    (False, "parallel", "squared_error", "none"),
    (True, "standard", "squared_error", "none"),
    (True, "standard", "logistic", "whole"),
    (True, "standard_goss", "logistic", "real"),
    (False, "standard_free", "softmax", "none"),
    (False, "standard_dart", "squared_error", "whole"),
    (False, "standard_forest", "logistic", "none"),
):
    given = {"objective": objective, **LINEAR[kind]}
    rows = partial(numbers, objective, 40_000, weights)
    add(
        f"linear-{kind}-{objective}-{weights}",
        rows,
        given,
        {"linear_leaves": True},
        by_day,
    )

VECTOR = {
    "objective": "softmax",
    "multi_strategy": "multi_output_tree",
    "max_depth": 4,
    "min_samples_leaf": 20,
}
COSINE = {"score_function": "cosine", "hessian": "none", "random_strength": 1.0}
for by_day, policy, n, weights, more in (
    (True, "leafwise", 9_000, "none", {"precision": "narrow"}),
    (
        True,
        "depthwise",
        9_000,
        "whole",
        {"precision": "wide", "subsample": 0.7, "colsample_bynode": 0.8},
    ),
    (True, "symmetric", 9_000, "real", COSINE),
    (True, "leafwise", 150_000, "none", {"precision": "narrow"}),
    (
        False,
        "depthwise",
        150_000,
        "none",
        {"precision": "wide", "subsample": 0.7, "colsample_bynode": 0.8},
    ),
    (True, "symmetric", 40_000, "none", {"sketch_outputs": 1}),
    (
        True,
        "leafwise",
        9_001,
        "real",
        {"sketch_outputs": 2, "sampling": "goss", "learning_rate": 0.5},
    ),
):
    given = {**VECTOR, "grow_policy": policy, **more}
    add(
        f"vector-{policy}-{n}",
        partial(numbers, "softmax", n, weights),
        given,
        by_day=by_day,
    )

EXACT: dict[str, dict[str, Any]] = {
    "plain": {},
    "sampled": SAMPLED,
    "wide": {"precision": "wide", "min_samples_leaf": 9},
    "mvs": {"sampling": "mvs", "subsample": 0.5},
}
for (policy, kind), by_day in daily(POLICIES, EXACT, strength=1):
    given = {
        "objective": "logistic",
        "max_leaves": None,
        "grow_policy": policy,
        **EXACT[kind],
    }
    add(
        f"exact-{kind}-{policy}",
        partial(mixed, "logistic", 9_000, "real"),
        given,
        {"tree_method": "exact"},
        by_day,
    )

RISING = {
    "objective": "logistic",
    "n_estimators": 2,
    "max_leaves": None,
    "monotone_constraints": {0: 1, 1: -1, 3: -1},
}
BINS = {
    "exact": {"tree_method": "exact"},
    "categories": {"categorical_features": [2, 5]},
}
for (kind, policy, method), by_day in daily(
    BINS, POLICIES, ["basic", "intermediate"], strength=1
):
    given = {**RISING, "grow_policy": policy, "monotone_method": method}
    add(
        f"rising-{kind}-{policy}-{method}",
        partial(rising, "logistic", 6_000),
        given,
        BINS[kind],
        by_day,
    )

DECLARED = {"categorical_features": [1, 2, 3, 5]}
SETS = {
    "objective": "logistic",
    "category_encoding": "partition",
    "min_data_per_group": 5,
    "max_leaves": 40,
}
for (policy, weights, (width, counts)), by_day in daily(
    POLICIES, ["none", "whole", "real"], {"bytes": BYTES, "words": COUNTS}.items()
):
    rows = partial(codes, "logistic", 6_000, weights, counts)
    add(
        f"sets-{policy}-{weights}-{width}",
        rows,
        {**SETS, "grow_policy": policy, "max_depth": 6},
        DECLARED,
        by_day,
    )

TEXT = {"categorical_features": [1, 2, 3, 4], "min_samples_bin": 1}
ENCODED: dict[str, dict[str, Any]] = {
    "ordered": {"category_encoding": "ordered"},
    "both": {"category_encoding": "both"},
    "auto": {"category_encoding": "auto"},
    "combined": {
        "category_encoding": "ordered",
        "max_combination": 3,
        "grow_policy": "symmetric",
        "n_estimators": 9,
    },
}
for (kind, boosting, objective), by_day in daily(
    ENCODED, ["plain", "ordered"], OBJECTIVES, strength=1
):
    given = {
        "n_permutations": 2,
        "subsample": 0.8,
        "min_samples_leaf": 1,
        "max_depth": 4,
        "max_leaves": None,
    }
    given |= {"objective": objective, "boosting": boosting, **ENCODED[kind]}
    add(
        f"{kind}-{boosting}-{objective}",
        partial(text, objective, 400),
        given,
        TEXT,
        by_day,
    )

ORDERED = {
    "boosting": "ordered",
    "max_leaves": None,
    "max_depth": 4,
    "n_permutations": 2,
}
add(
    "ordered-softmax",
    partial(mixed, "softmax", 40_000),
    {**ORDERED, "objective": "softmax", "n_estimators": 2},
)
for sampling in ("mvs", "goss", "bayesian"):
    given = {
        **ORDERED,
        "objective": "logistic",
        "sampling": sampling,
        "learning_rate": 0.5,
        "random_strength": 1.0,
    }
    given |= {
        "score_function": "cosine",
        **({"subsample": 0.7} if sampling == "mvs" else {}),
    }
    add(
        f"ordered-{sampling}",
        partial(mixed, "logistic", 3000, "real"),
        given,
        by_day=sampling == "mvs",
    )

FUSED_SAMPLE = {
    "subsample": 0.7,
    "colsample_bytree": 0.5,
    "colsample_bylevel": 0.8,
    "colsample_bynode": 0.8,
}
FUSED: list[tuple[bool, tuple[Any, ...], dict[str, Any]]] = [
    (
        True,
        ("squared_error", 12_000),
        {"grow_policy": "leafwise", "precision": "narrow"},
    ),
    (True, ("squared_error", 140_000), {"grow_policy": "leafwise", "max_bins": 255}),
    (True, ("logistic", 12_000, "real"), {"grow_policy": "depthwise"} | FUSED_SAMPLE),
    (
        False,
        ("logistic", 12_000),
        {"grow_policy": "depthwise", "sampling": "goss", "learning_rate": 0.5},
    ),
    (
        False,
        ("logistic", 12_000),
        {"grow_policy": "symmetric", "sampling": "mvs", "subsample": 0.5},
    ),
    (
        True,
        ("squared_error", 12_000, "whole"),
        {"grow_policy": "symmetric"} | FUSED_SAMPLE,
    ),
    (
        False,
        ("squared_error", 12_000),
        {"grow_policy": "symmetric", "max_bins": 255, "extra_trees": True},
    ),
    (
        True,
        ("softmax", 12_000),
        {
            "grow_policy": "leafwise",
            "max_bins": 255,
            "max_depth": None,
            "max_leaves": 300,
        },
    ),
    (
        False,
        ("softmax", 12_000),
        {"grow_policy": "depthwise", "precision": "wide", "min_samples_leaf": 40},
    ),
    (
        False,
        ("logistic", 12_000),
        {"grow_policy": "leafwise", "monotone_constraints": [1, 1, 0, -1, *[0] * 9]},
    ),
    (
        False,
        ("logistic", 12_000, "real"),
        {"grow_policy": "leafwise", "sampling": "bayesian"},
    ),
]
for index, (by_day, args, more) in enumerate(FUSED):
    given = {"objective": args[0], "max_bins": 500, **more}
    add(
        f"fused-{index}-{args[0]}-{args[1]}",
        partial(fused, *args),
        given,
        by_day=by_day,
    )

# Many small nodes, whose children several workers make ahead of their turn.
MANY = {
    "grow_policy": "leafwise",
    "max_depth": None,
    "max_leaves": 150,
    "n_estimators": 2,
}
for by_day, kind, rows, more in (
    (True, "numbers", partial(numbers, "squared_error", 20_000), {}),
    (
        True,
        "counts",
        partial(numbers, "logistic", 20_000, "whole"),
        {"min_samples_leaf": 9, "max_depth": 11},
    ),
    (
        False,
        "sample",
        partial(numbers, "logistic", 40_000),
        {"subsample": 0.5, "min_samples_leaf": 9},
    ),
    (
        False,
        "wide",
        partial(numbers, "squared_error", 20_000, "real"),
        {"precision": "wide", "max_leaves": 3000},
    ),
):
    objective = "logistic" if "min_samples_leaf" in more else "squared_error"
    add(f"many-{kind}", rows, {"objective": objective, **MANY} | more, by_day=by_day)
rows = partial(codes, "logistic", 9_000, "none", BYTES)
add("many-sets", rows, {**SETS, **MANY, "min_data_per_group": 1}, DECLARED)

LEVELS = {
    "objective": "quantile",
    "quantile_alpha": [0.1, 0.5, 0.9],
    "colsample_bytree": 0.7,
}
add("levels", partial(numbers, "quantile", 1500), LEVELS)
add(
    "class-weight",
    partial(numbers, "logistic", 1500),
    {"objective": "logistic", "class_weight": "balanced"},
)

CROSSES = [
    ("difference", 0, 4),
    ("product", 0, 4),
    ("ratio", 4, 0),
    ("centred", 0, 1),
    ("centred", 4, 5),
]
KEPT = {**DECLARED, "linear_leaves": True}
for policy, weights in (("leafwise", "none"), ("symmetric", "real")):
    given = {
        "objective": "logistic",
        "grow_policy": policy,
        "category_encoding": "partition",
    }
    add(
        f"crosses-{policy}",
        partial(codes, "logistic", 6_000, weights, BYTES),
        given,
        KEPT,
        crosses=CROSSES,
    )
