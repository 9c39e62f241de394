"""Small files that claim much: an error, and no memory or depth to speak of."""

import json
import re
import tracemalloc
from collections.abc import Callable
from functools import cache
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
    return bytes(xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(X, Y), 2).save_raw("json"))


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
    tree |= {"categories_nodes": list(range(n)), "categories_segments": list(range(n)), "categories_sizes": [1] * n}
    tree |= {"categories": [65_000] * n, "split_indices": list(range(n))}
    model["gradient_booster"]["model"]["trees"] = [
        {**tree, "split_indices": [n * k + j for j in range(n)]} for k in range(100)
    ]


def lines(**new: str | None) -> bytes:
    """The text of LightGBM with these lines of every tree changed; None drops them."""
    text = lightgbm_text()
    for name, value in new.items():
        text = re.sub(rf"\n{name}=[^\n]*".encode(), b"" if value is None else f"\n{name}={value}".encode(), text)
    return text


CLAIMS: dict[str, Callable[[], bytes]] = {
    **{
        name: lambda name=name: learner(lambda m: m["learner_model_param"].__setitem__(name, str(2**31 - 1)))  # type: ignore[misc]
        for name in ("num_feature", "num_class", "num_target")
    },
    "vectors": lambda: learner(wide),
    "categories": lambda: learner(sets),
    "leaves": lambda: lines(num_leaves="999999999", decision_type=None, split_feature=None, leaf_value=None),
    "leaves but no values": lambda: lines(num_leaves="999999999", decision_type=None),
    "trees a round": lambda: lines(num_tree_per_iteration="999999999"),
    "bounds of sets": lambda: lines(decision_type="1 1", num_cat="999999999"),
    "sets": lambda: lines(decision_type="1 1", num_cat="1\ncat_boundaries=0 16777216"),
    "terms": lambda: lines(is_linear="1\nleaf_const=0 0 0\nnum_features=999999999 9 9"),
    "terms that wrap around": lambda: lines(is_linear=f"1\nleaf_const=0 0 0\nnum_features={2**63 - 1} {2**63 - 1} 2"),
    "steepness": lambda: lightgbm_text().replace(b"sigmoid:1", b"sigmoid:one"),
    "names in names": lambda: lightgbm_text() + b"\npandas_categorical:" + DEEP,
    "values without room": lambda: KEY + b"[" + b"[$Z#l\x00\x00\x00\x20" * 3 + b" " * 64,
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
