"""Shapley values against LightGBM's and XGBoost's own contributions, on their trees.

In: models that they train. Out: their trees as ours, with the same contributions and interactions.
"""

import json
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.typing import NDArray

from model.handmade import grown, leaf, split
from sapwood import Booster
from sapwood.model.trees import Trees

Floats = NDArray[np.float64]
ROUNDS = 12


def task() -> tuple[Floats, Floats]:
    """Rows that are exact in float32, some values missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    return X, (Z[:, 0] * Z[:, 1] + Z[:, 2] > 0).astype(float)


def laid_out(root: Any, read: Callable[[Any], tuple[dict[str, Any], list[Any]]]) -> dict[str, NDArray[Any]]:
    """A foreign tree level by level; `read` gives a node and its two children, if it has any."""
    nodes, queue = [], [root]
    for place in queue:
        node, children = read(place)
        if children:
            node["left"] = len(queue)
            queue += children
        nodes.append(node)
    return grown(*nodes)


def booster(trees: list[dict[str, NDArray[Any]]], base: float) -> Booster:
    return Booster(
        Trees.of([(tree, 0) for tree in trees]), base=np.array([base]), objective="logistic", fields={}, link="sigmoid",
        feature_names=[f"f{j}" for j in range(6)], named=False, params={},
    )  # fmt: skip


def test_lightgbm() -> None:
    X, y = task()
    params = {"objective": "binary", "num_leaves": 20, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
    theirs = lightgbm.train(params, lightgbm.Dataset(X, y), ROUNDS)

    def read(node: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        if "leaf_value" in node:
            return leaf(node["leaf_value"], node["leaf_count"]), []
        assert node["decision_type"] == "<=" and node["missing_type"] in ("NaN", "None")
        made = split(
            node["split_feature"], node["threshold"], 0, 0.0, node["internal_count"], int(node["default_left"])
        )
        return made, [node["left_child"], node["right_child"]]

    ours = booster([laid_out(tree["tree_structure"], read) for tree in theirs.dump_model()["tree_info"]], 0.0)
    np.testing.assert_allclose(ours.predict(X, raw=True), theirs.predict(X, raw_score=True), atol=1e-12)
    np.testing.assert_allclose(ours.explain(X).contributions(), theirs.predict(X, pred_contrib=True), atol=1e-9)


@pytest.mark.parametrize("policy", ["depthwise", "lossguide"])
def test_xgboost(policy: str) -> None:
    """It adds up float32 numbers: contributions are off by a few 2^-24 of the largest score, 2^-20 at most."""
    X, y = task()
    params = {"objective": "binary:logistic", "grow_policy": policy, "max_leaves": 20, "nthread": 1, "base_score": 0.5}
    data = xgboost.DMatrix(X, y)
    theirs = xgboost.train(params, data, ROUNDS)
    dumped = json.loads(theirs.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]

    def tree(arrays: dict[str, Any]) -> dict[str, NDArray[Any]]:
        def read(node: int) -> tuple[dict[str, Any], list[Any]]:
            cover, left = arrays["sum_hessian"][node], arrays["left_children"][node]
            value = np.float32(arrays["split_conditions"][node])
            if left < 0:
                return leaf(float(value), cover), []
            below = float(np.nextafter(value, np.float32(-np.inf)))  # it asks x < value
            made = split(arrays["split_indices"][node], below, 0, 0.0, cover, arrays["default_left"][node])
            return made, [left, arrays["right_children"][node]]

        return laid_out(0, read)

    ours = booster([tree(arrays) for arrays in dumped], 0.0)
    near = 2.0**-20 * float(np.abs(ours.predict(X, raw=True)).max())
    np.testing.assert_allclose(ours.predict(X, raw=True), theirs.predict(data, output_margin=True), atol=near)
    told = ours.explain(X, by="cover")
    np.testing.assert_allclose(told.contributions(), theirs.predict(data, pred_contribs=True), atol=near)
    pairs = theirs.predict(data, pred_interactions=True)[:, :-1, :-1]
    np.testing.assert_allclose(ours.explain(X, by="cover", interactions=True).values, pairs, atol=near)
