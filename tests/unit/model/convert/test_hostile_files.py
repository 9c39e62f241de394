"""Small files that claim much: an error, and no memory or depth to speak of."""

import json
import re
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood as sw

X = np.random.default_rng(0).normal(size=(100, 3))
Y = (X[:, 0] > 0).astype(int)
DEEP = b"[" * 100_000
KEY = b"{L\x00\x00\x00\x00\x00\x00\x00\x01x"  # of a UBJSON object

PARAMETERS = (  # of CatBoost, a document in a string
    b'{"features_info": {"float_features": [{"flat_feature_index": 0}]}, "oblivious_trees": [], '
    b'"scale_and_bias": [1, [0]], "model_info": {"params": "@"}}'
)


@cache
def xgboost_json() -> bytes:
    xgboost = pytest.importorskip("xgboost")
    return bytes(
        xgboost.train(
            {"max_depth": 2, "nthread": 1}, xgboost.DMatrix(X, Y), 2
        ).save_raw("json")
    )


@cache
def lightgbm_text() -> bytes:
    lightgbm = pytest.importorskip("lightgbm")
    params = {"objective": "binary", "num_leaves": 3, "verbose": -1, "num_threads": 1}
    return lightgbm.train(params, lightgbm.Dataset(X, Y), 2).model_to_string().encode()


def learner(edit: Callable[[Any], Any]) -> bytes:
    """A document of XGBoost with something changed."""
    found = json.loads(xgboost_json())
    edit(found["learner"])
    return json.dumps(found).encode()


def wide(model: Any) -> None:
    """Vector leaves of 2^30 values in a tree without leaves."""
    tree = model["gradient_booster"]["model"]["trees"][0]
    tree["tree_param"]["size_leaf_vector"] = str(2**30)
    tree["left_children"], tree["base_weights"] = [1] * len(tree["left_children"]), []


def sets(model: Any) -> None:
    """Columns of 65,000 categories each, from one number each."""
    tree = model["gradient_booster"]["model"]["trees"][0]
    n = len(tree["left_children"])
    tree |= {
        "categories_nodes": list(range(n)),
        "categories_segments": list(range(n)),
        "categories_sizes": [1] * n,
    }
    tree |= {"categories": [65_000] * n, "split_indices": list(range(n))}
    model["gradient_booster"]["model"]["trees"] = [
        {**tree, "split_indices": [n * k + j for j in range(n)]} for k in range(100)
    ]


def lines(**new: str | None) -> bytes:
    """The text of LightGBM with these lines of every tree changed; None drops them."""
    text = lightgbm_text()
    for name, value in new.items():
        text = re.sub(
            rf"\n{name}=[^\n]*".encode(),
            b"" if value is None else f"\n{name}={value}".encode(),
            text,
        )
    return text


def overlapping(model: Any) -> None:
    """Every category split of a tree has all numbers of the tree."""
    tree = model["gradient_booster"]["model"]["trees"][0]
    tree |= {
        "categories_nodes": [0, 1],
        "categories_segments": [0, 0],
        "categories_sizes": [900, 900],
    }
    tree["categories"] = list(range(900))


def catboost_document(trees: str, kind: str, n_categories: int = 0) -> bytes:
    """A document of CatBoost: one column of numbers, or of categories by their
    hashes.
    """
    column = {"flat_feature_index": 0, "feature_index": 0}
    if n_categories:
        values = range(n_categories)
        info = {"categorical_features": [{**column, "values": list(values)}]}
        info |= {
            "cat_features_hash": [{"hash": one, "value": str(one)} for one in values]
        }
    else:
        info = {"float_features": [column]}
    start = json.dumps(
        {"features_info": info, "scale_and_bias": [1, [0]], "model_info": {}}
    )
    return f'{start[:-1]}, "{kind}": [{trees}]}}'.encode()


def padded_leaves() -> bytes:
    """A leaf of 20,000 values beside leaves of one."""
    split = {"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5}
    tree: dict[str, Any] = {"value": [0.0] * 20_000}
    for _ in range(30):
        tree = {"split": split, "left": {"value": 1.0}, "right": tree}
    return catboost_document(json.dumps(tree), "trees")


CLAIMS: dict[str, Callable[[], bytes]] = {
    **{
        name: lambda name=name: learner(
            lambda m: m["learner_model_param"].__setitem__(name, str(2**31 - 1))
        )  # type: ignore[misc]
        for name in ("num_feature", "num_class", "num_target")
    },
    "columns that nothing uses": lambda: learner(
        lambda m: m["learner_model_param"].__setitem__("num_feature", str(2**22))
    ),
    "vectors": lambda: learner(wide),
    "sets that overlap": lambda: learner(overlapping),
    "leaves of many widths": padded_leaves,
    "categories": lambda: learner(sets),
    "leaves": lambda: lines(
        num_leaves="999999999", decision_type=None, split_feature=None, leaf_value=None
    ),
    "leaves but no values": lambda: lines(num_leaves="999999999", decision_type=None),
    "trees a round": lambda: lines(num_tree_per_iteration="999999999"),
    "bounds of sets": lambda: lines(decision_type="1 1", num_cat="999999999"),
    "sets": lambda: lines(decision_type="1 1", num_cat="1\ncat_boundaries=0 16777216"),
    "terms": lambda: lines(is_linear="1\nleaf_const=0 0 0\nnum_features=999999999 9 9"),
    "terms that wrap around": lambda: lines(
        is_linear=f"1\nleaf_const=0 0 0\nnum_features={2**63 - 1} {2**63 - 1} 2"
    ),
    "steepness": lambda: lightgbm_text().replace(b"sigmoid:1", b"sigmoid:one"),
    "names in names": lambda: lightgbm_text() + b"\npandas_categorical:" + DEEP,
    "values without room": lambda: (
        KEY + b"[" + b"[$Z#l\x00\x00\x00\x20" * 3 + b" " * 64
    ),
    "lengths of lengths": lambda: KEY + b"[" + b"#[" * 50_000,
    "lists in lists": lambda: b'{"learner":' + DEEP,
    "lists in binary lists": lambda: KEY + DEEP,
    "parameters in parameters": lambda: PARAMETERS.replace(b"@", rb"\u005b" * 100_000),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_small_files_cannot_claim_much(name: str) -> None:
    raw = CLAIMS[name]()
    tracemalloc.start()
    try:
        with pytest.raises(sw.errors.ModelFormatError):
            sw.load(raw)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def one_set() -> bytes:
    """A chain of 4,000 splits of LightGBM that share one set of 20,000 categories."""
    n = 4_000
    words = 625
    tree = {
        "num_leaves": n + 1,
        "num_cat": 1,
        "split_feature": "0 " * n,
        "split_gain": "1 " * n,
        "threshold": "0 " * n,
        "decision_type": "1 " * n,
        "left_child": " ".join(str(~k) for k in range(n)),
        "right_child": " ".join(str(k + 1 if k + 1 < n else ~n) for k in range(n)),
        "leaf_value": "1 " * (n + 1),
        "leaf_weight": "1 " * (n + 1),
        "leaf_count": "1 " * (n + 1),
        "internal_weight": "1 " * n,
        "internal_count": "1 " * n,
        "cat_boundaries": f"0 {words}",
        "cat_threshold": f"{2**32 - 1} " * words,
        "shrinkage": 1,
    }
    info = ":".join(map(str, range(20_000)))
    head = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nobjective=regression\n"
    head += f"feature_names=c\nfeature_infos={info}\n\nTree=0\n"
    return (
        head
        + "".join(f"{name}={value}\n" for name, value in tree.items())
        + "\nend of trees\n"
    ).encode()


def deep_one_hot() -> bytes:
    """A symmetric tree of CatBoost of 14 levels, each by one of 20,000 categories."""
    splits = [
        {"split_type": "OneHotFeature", "cat_feature_index": 0, "value": k}
        for k in range(14)
    ]
    tree = {
        "splits": splits,
        "leaf_values": [0.0] * 2**14,
        "leaf_weights": [1.0] * 2**14,
    }
    return catboost_document(json.dumps(tree), "oblivious_trees", 20_000)


@pytest.mark.parametrize("write", [one_set, deep_one_hot])
def test_memory_grows_with_the_size_of_the_file(write: Callable[[], bytes]) -> None:
    raw = write()
    tracemalloc.start()
    try:
        assert sw.load(raw).trees.n_trees == 1
        assert tracemalloc.get_traced_memory()[1] < 50 * len(raw) + 2**24
    finally:
        tracemalloc.stop()


def test_a_damaged_cbm_file_raises(tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost")
    path = tmp_path / "model.cbm"
    settings = {
        "iterations": 2,
        "thread_count": 1,
        "verbose": 0,
        "allow_writing_files": False,
    }
    catboost.CatBoostRegressor(**settings).fit(X, Y).save_model(str(path))
    raw = bytearray(path.read_bytes())
    # the size of what follows: the reader of CatBoost believes it, and its process ends
    raw[4:8] = b"\xff" * 4
    with pytest.raises(
        sw.errors.ModelFormatError, match="catboost cannot read the file"
    ):
        sw.load(bytes(raw))
