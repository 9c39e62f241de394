"""One hash for each of some 240 tiny fixed tasks: a refactor leaves them all untouched.

In: nothing. Out: tests/replay.txt, rewritten; with --check it is only compared, exit
status 1 where a line differs. With --explain the first difference of every changed
model is printed: its tree, node, column and gain.

Models whose hash is that of tests/replay.txt are kept in build/replay, and a changed
model is compared with them.
"""

import argparse
import difflib
import hashlib
import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import replay_fits
import sapwood
from sapwood.device import host
from sapwood.model.booster import Booster

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "replay.txt"
MODELS = ROOT / "build" / "replay"
NODE_PARTS = ("column", "threshold", "left", "gain", "value", "missing_left")
ROWS = 400
COLUMNS = 6
ROUNDS = 4
SAMPLED = {
    "subsample": 0.7,
    "colsample_bytree": 0.8,
    "colsample_bylevel": 0.8,
    "colsample_bynode": 0.8,
}
VARIANTS = ("plain", "sampled", "weighted", "missing")
FORCED = {"feature": 1, "threshold": 0.5, "left": {"feature": 2, "threshold": 0.3}}
PARTS: dict[str, dict[str, Any]] = {  # each beside every grower
    "exact": {"tree_method": "exact"},
    "goss": {"sampling": "goss", "learning_rate": 0.5},
    "mvs": {"sampling": "mvs", "subsample": 0.5},
    "bayesian": {"sampling": "bayesian"},
    "class": {"objective": "logistic", "subsample_by_class": {"0": 0.4, "1": 0.9}},
    "basic": {
        "monotone_constraints": {0: 1, 3: -1},
        "monotone_constraints_method": "basic",
    },
    "intermediate": {
        "monotone_constraints": {0: 1, 3: -1},
        "monotone_constraints_method": "intermediate",
    },
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
    "mix": {
        "sampling": "goss",
        "learning_rate": 0.5,
        "monotone_constraints": {0: 1},
        "boosting": "dart",
    },
}
RISING = {
    "monotone_constraints": {2: 1, 3: -1},
    "monotone_constraints_method": "intermediate",
}


def uniform(stream: int) -> NDArray[np.float64]:
    """(ROWS) numbers in [0, 1) with 20 bits, the same on every machine: integers from
    the core's own hash.
    """
    return (host.draw(0, 99, stream, 0, ROWS) >> np.uint64(44)).astype(
        np.float64
    ) / 2**20


def dataset(objective: str, variant: str, linear: bool = False) -> sapwood.Dataset:
    """The task's data, made with + - * and comparisons only, so that no libm takes
    part.
    """
    X = np.stack([uniform(j) for j in range(COLUMNS)], axis=1)
    X[:, 5] = np.floor(4 * X[:, 5])  # few distinct values
    z = (
        (X[:, 0] - 0.4) * (X[:, 1] - 0.6) * 8
        + X[:, 2]
        + (X[:, 5] > 1) * X[:, 3]
        + uniform(COLUMNS)
    )
    label = {
        "a number": z,
        "a number of at least 0": np.floor(2 * np.abs(z)),
        "a number above 0": np.abs(z) + 0.5,
        "a number from 0 to 1": uniform(6),
        "0 or 1": (z > 1.2).astype(np.float64),
        "a class index": np.digitize(z, [0.8, 1.6]),
    }[host.objectives()[objective]["labels"]]
    # whole (0 too), and real
    weight = np.floor(3 * uniform(7)) if objective == "logistic" else uniform(7) + 0.1
    if variant == "missing":
        X[uniform(8) < 0.2, 1] = np.nan
        X[uniform(9) < 0.5, 2] = np.nan
    bins: dict[str, Any] = (
        {"tree_method": "exact"} if variant == "exact" else {"max_bins": 31}
    )
    return sapwood.Dataset(
        X,
        label,
        weight=weight if variant == "weighted" else None,
        linear_leaves=linear,
        **bins,
    )


def with_categories() -> sapwood.Dataset:
    """Text with missing values, integers as categories, and numbers."""
    X = np.stack([uniform(j) for j in range(COLUMNS)], axis=1).astype(object)
    z = uniform(6) + (X[:, 0] > 0.5) * (X[:, 1] * 7 % 2 > 1) + X[:, 2]
    X[:, 0] = [None if x < 0.1 else f"v{int(12 * x)}" for x in X[:, 0]]
    X[:, 1] = np.floor(40 * X[:, 1].astype(np.float64))
    return sapwood.Dataset(X, z.astype(np.float64), categorical_features=[0, 1])


def models() -> Iterator[tuple[str, Booster]]:
    """Name and model of every task of one training."""
    params: dict[str, Any]
    objectives = ("squared_error", "logistic", "softmax")
    growers = ("depthwise", "leafwise", "symmetric")
    for objective, leaf in product(host.objectives(), ("auto", "exact")):
        params = {
            "objective": objective,
            "leaf_estimation": leaf,
            "n_estimators": ROUNDS,
            "max_leaves": 7,
        }
        yield (
            f"{objective} {leaf}",
            sapwood.train(params, dataset(objective, "weighted")),
        )
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
            yield name, sapwood.train(params, data)
    for (part, given), grower in product(PARTS.items(), growers):
        if (grower, part) == ("symmetric", "forced"):  # a rule of single nodes
            continue
        objective = given.get("objective", "squared_error")
        data = dataset(
            objective if isinstance(objective, str) else "squared_error", part
        )
        params = {
            "n_estimators": 2 * ROUNDS,
            "grow_policy": grower,
            "max_depth": 3,
            "random_state": 1,
            **given,
        }
        yield f"{part:14}{grower:10}", sapwood.train(params, data)
    for objective, variant in product(objectives, ("weighted", "missing")):
        params = {"objective": objective, "n_estimators": ROUNDS, "max_leaves": 7}
        booster = sapwood.train(params, dataset(objective, variant, linear=True))
        yield f"{objective:14}linear leaves    {variant:9}", booster
    for grower in growers:
        params = {"grow_policy": grower, "n_estimators": ROUNDS, "max_depth": 4}
        sets = params | {"min_data_per_group": 10, "category_encoding": "partition"}
        yield f"categories {grower}", sapwood.train(sets, with_categories())
        yield (
            f"tails {grower}",
            sapwood.train(sets | {"boosting": "ordered"}, with_categories()),
        )
        yield (
            f"rising categories {grower}",
            sapwood.train(sets | RISING, with_categories()),
        )
        yield (
            f"rising exact {grower}",
            sapwood.train(params | RISING, dataset("squared_error", "exact")),
        )
    for grower, most in product(growers, (1, 3)):
        params = {
            "grow_policy": grower,
            "n_estimators": 2 * ROUNDS,
            "max_depth": 3,
            "category_encoding": "ordered",
        }
        booster = sapwood.train(params | {"max_combination": most}, with_categories())
        yield f"ordered {most} {grower}", booster


def tasks() -> Iterator[tuple[str, str, Booster | None]]:
    """Name, hash and model of every task; None where a task gives predictions."""
    for name, booster in models():
        yield name, booster.fingerprint(), booster
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, booster in replay_fits.models():
            yield name, booster.fingerprint(), booster
        for name, values in replay_fits.predictions():
            yield (
                name,
                hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest(),
                None,
            )


def keep(digest: str, booster: Booster) -> None:
    """Keep a model, so that a later one can be compared with it."""
    MODELS.mkdir(parents=True, exist_ok=True)
    path = MODELS / f"{digest}.sapwood"
    if not path.exists():
        booster.save(path)


def explanation(digest: str, changed: Booster | None) -> str:
    """Say where a changed model first differs from the kept one."""
    path = MODELS / f"{digest}.sapwood"
    if changed is None:
        return "predictions of several models; look at the lines of single models"
    if not path.exists():
        return f"there is no model of the old hash in {MODELS.relative_to(ROOT)}; run --check on the old commit first"
    return difference(sapwood.load(path), changed)


def difference(old: Booster, new: Booster) -> str:
    """Say what differs first between two models: a tree, a node and its parts, or what
    is beside the trees.
    """
    if (old.base != new.base).any():
        return f"the base was {old.base.tolist()} and is {new.base.tolist()}"
    for tree in range(min(old.trees.n_trees, new.trees.n_trees)):
        if (words := difference_of_trees(old, new, tree)) is not None:
            return f"tree {tree}: {words}"
    if old.trees.n_trees != new.trees.n_trees:
        return f"there were {old.trees.n_trees} trees and there are {new.trees.n_trees}; those of both are the same"
    changed = [
        name for name, value in old.params.items() if new.params.get(name) != value
    ]
    return f"the trees are the same; parameters that differ: {', '.join(changed) or 'none'}"


def difference_of_trees(old: Booster, new: Booster, tree: int) -> str | None:
    """Say which node of a tree differs first, and how; None where none does."""
    both = [booster.trees.slice(tree, tree + 1) for booster in (old, new)]
    n_nodes = min(part.n_nodes for part in both)
    for node in range(n_nodes):
        changed = []
        for name in NODE_PARTS:
            before, after = (getattr(part, name)[node] for part in both)
            if not np.array_equal(before, after, equal_nan=True):
                changed.append(f"{name} was {before} and is {after}")
        if changed:
            column = both[0].column[node]
            return f"node {node}, split on column {column}: {'; '.join(changed)}"
    if both[0].n_nodes != both[1].n_nodes:
        return f"it had {both[0].n_nodes} nodes and has {both[1].n_nodes}"
    return None


def main() -> int:
    """Write the hashes, or compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0] if __doc__ else None
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with tests/replay.txt instead of writing it",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="compare, and say where a changed model differs",
    )
    args = parser.parse_args()
    expected = (
        dict(line.rsplit(" ", 1) for line in KEPT.read_text().splitlines())
        if KEPT.exists()
        else {}
    )
    lines = []
    for name, digest, booster in tasks():
        lines.append(f"{name} {digest}")
        if booster is not None and expected.get(name) == digest:
            keep(digest, booster)
        elif args.explain and name in expected and expected[name] != digest:
            print(f"{name}: {explanation(expected[name], booster)}")
    if not (args.check or args.explain):
        KEPT.write_text("\n".join(lines) + "\n")
        print(f"{len(lines)} hashes written to {KEPT.name}")
        return 0
    changed = list(
        difflib.unified_diff(
            KEPT.read_text().splitlines(), lines, "kept", "now", n=0, lineterm=""
        )
    )
    print("\n".join(changed) or f"{len(lines)} hashes, none changed")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
