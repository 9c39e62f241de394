"""One hash for each of a few dozen tiny fixed tasks: a refactor leaves them all untouched.

In: nothing. Out: tests/replay.txt, rewritten; with --check it is only compared, exit status 1 where a line differs.
"""

import argparse
import difflib
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.device import host

KEPT = Path(__file__).resolve().parent.parent / "tests" / "replay.txt"
ROWS, COLUMNS, ROUNDS = 400, 6, 4
SAMPLED = {"subsample": 0.7, "colsample_bytree": 0.8, "colsample_bylevel": 0.8, "colsample_bynode": 0.8}
VARIANTS = ("plain", "sampled", "weighted", "missing")
FORCED = {"feature": 1, "threshold": 0.5, "left": {"feature": 2, "threshold": 0.3}}
PARTS: dict[str, dict[str, Any]] = {  # each beside every grower
    "exact": {"tree_method": "exact"},
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "mvs": {"sampling": "mvs", "subsample": 0.5},
    "bayesian": {"sampling": "bayesian"},
    "class": {"objective": "logistic", "subsample_by_class": {"0": 0.4, "1": 0.9}},
    "basic": {"monotone_constraints": {0: 1, 3: -1}, "monotone_constraints_method": "basic"},
    "intermediate": {"monotone_constraints": {0: 1, 3: -1}, "monotone_constraints_method": "intermediate"},
    "groups": {"interaction_constraints": [[0, 1], [2, 3, 5]]},
    "extra": {"extra_trees": True},
    "forced": {"forced_splits": FORCED},
    "dart": {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
    "forest": {"boosting": "forest", "subsample": 0.6},
    "parallel": {"n_parallel_trees": 3, "subsample": 0.5},
    "line": {"objective": "poisson", "line_search": "tree"},
    "post": {"pruning": "post", "min_split_gain": 0.5},
    "ccp": {"ccp_alpha": 0.01},
    "custom": {"objective": lambda y, s: (s - y, np.ones_like(s))},
    "vector": {"objective": "softmax", "multi_strategy": "multi_output_tree"},
    "mix": {"sampling": "goss", "learning_rate": 0.5, "monotone_constraints": {0: 1}, "boosting": "dart"},
}
RISING = {"monotone_constraints": {2: 1, 3: -1}, "monotone_constraints_method": "intermediate"}


def uniform(stream: int) -> NDArray[np.float64]:
    """(ROWS) numbers in [0, 1) with 20 bits, the same on every machine: integers from the core's own hash."""
    return (host.draw(0, 99, stream, 0, ROWS) >> np.uint64(44)).astype(np.float64) / 2**20


def dataset(objective: str, variant: str, linear: bool = False) -> sapwood.Dataset:
    """The task's data, made with + - * and comparisons only, so that no libm takes part."""
    X = np.stack([uniform(j) for j in range(COLUMNS)], axis=1)
    X[:, 5] = np.floor(4 * X[:, 5])  # few distinct values
    z = (X[:, 0] - 0.4) * (X[:, 1] - 0.6) * 8 + X[:, 2] + (X[:, 5] > 1) * X[:, 3] + uniform(COLUMNS)
    label = {
        "a number": z,
        "a number of at least 0": np.floor(2 * np.abs(z)),
        "a number above 0": np.abs(z) + 0.5,
        "a number from 0 to 1": uniform(6),
        "0 or 1": (z > 1.2).astype(np.float64),
        "a class index": np.digitize(z, [0.8, 1.6]),
    }[host.objectives()[objective]["labels"]]
    weight = np.floor(3 * uniform(7)) if objective == "logistic" else uniform(7) + 0.1  # whole (0 too), and real
    if variant == "missing":
        X[uniform(8) < 0.2, 1] = np.nan
        X[uniform(9) < 0.5, 2] = np.nan
    bins: dict[str, Any] = {"tree_method": "exact"} if variant == "exact" else {"max_bins": 31}
    return sapwood.Dataset(X, label, weight=weight if variant == "weighted" else None, linear_leaves=linear, **bins)


def with_categories() -> sapwood.Dataset:
    """Text with missing values, integers as categories, and numbers."""
    X = np.stack([uniform(j) for j in range(COLUMNS)], axis=1).astype(object)
    z = uniform(6) + (X[:, 0] > 0.5) * (X[:, 1] * 7 % 2 > 1) + X[:, 2]
    X[:, 0] = [None if x < 0.1 else f"v{int(12 * x)}" for x in X[:, 0]]
    X[:, 1] = np.floor(40 * X[:, 1].astype(np.float64))
    return sapwood.Dataset(X, z.astype(np.float64), categorical_features=[0, 1])


def tasks() -> Iterator[tuple[str, str]]:
    """Name and model hash of every task."""
    params: dict[str, Any]
    objectives = ("squared_error", "logistic", "softmax")
    growers = ("depthwise", "leafwise", "symmetric")
    for objective, leaf in product(host.objectives(), ("auto", "exact")):
        params = {"objective": objective, "leaf_estimation": leaf, "n_estimators": ROUNDS, "max_leaves": 7}
        yield f"{objective} {leaf}", sapwood.train(params, dataset(objective, "weighted")).fingerprint()
    for objective, variant in product(objectives, VARIANTS):
        data = dataset(objective, variant)
        for grower, precision in product(growers, ("narrow", "wide")):
            params = {
                "objective": objective,
                "grow_policy": grower,
                "precision": precision,
                "n_estimators": ROUNDS,
                "max_depth": 4,
                "max_leaves": None if grower == "symmetric" else 11,
                "random_state": 1,
                **(SAMPLED if variant == "sampled" else {}),
                **({"n_classes": 3} if objective == "softmax" else {}),
            }
            name = f"{objective:14}{grower:10}{precision:7}{variant:9}"
            yield name, sapwood.train(params, data).fingerprint()
    for (part, given), grower in product(PARTS.items(), growers):
        if (grower, part) == ("symmetric", "forced"):  # a rule of single nodes
            continue
        objective = given.get("objective", "squared_error")
        data = dataset(objective if isinstance(objective, str) else "squared_error", part)
        params = {"n_estimators": 2 * ROUNDS, "grow_policy": grower, "max_depth": 3, "random_state": 1, **given}
        yield f"{part:14}{grower:10}", sapwood.train(params, data).fingerprint()
    for objective, variant in product(objectives, ("weighted", "missing")):
        params = {"objective": objective, "n_estimators": ROUNDS, "max_leaves": 7}
        booster = sapwood.train(params, dataset(objective, variant, linear=True))
        yield f"{objective:14}linear leaves    {variant:9}", booster.fingerprint()
    for grower in growers:
        params = {"grow_policy": grower, "n_estimators": ROUNDS, "max_depth": 4}
        sets = params | {"min_data_per_group": 10, "category_encoding": "partition"}
        yield f"categories {grower}", sapwood.train(sets, with_categories()).fingerprint()
        yield f"tails {grower}", sapwood.train(sets | {"boosting": "ordered"}, with_categories()).fingerprint()
        yield f"rising categories {grower}", sapwood.train(sets | RISING, with_categories()).fingerprint()
        yield f"rising exact {grower}", sapwood.train(params | RISING, dataset("squared_error", "exact")).fingerprint()
    for grower, most in product(growers, (1, 3)):
        params = {"grow_policy": grower, "n_estimators": 2 * ROUNDS, "max_depth": 3, "category_encoding": "ordered"}
        booster = sapwood.train(params | {"max_combination": most}, with_categories())
        yield f"ordered {most} {grower}", booster.fingerprint()


def main() -> int:
    """Write the hashes, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare with tests/replay.txt instead of writing it")
    args = parser.parse_args()
    new = [f"{name} {digest}" for name, digest in tasks()]
    if not args.check:
        KEPT.write_text("\n".join(new) + "\n")
        print(f"{len(new)} hashes written to {KEPT.name}")
        return 0
    changed = list(difflib.unified_diff(KEPT.read_text().splitlines(), new, "kept", "now", n=0, lineterm=""))
    print("\n".join(changed) or f"{len(new)} hashes, none changed")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
