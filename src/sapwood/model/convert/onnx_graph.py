"""A model as an ONNX graph: one tree ensemble of ai.onnx.ml, and its link.

In: a booster of numeric columns. Out: bytes of a model; a float32 table ``X`` goes in, ``prediction`` comes out.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ParameterError
from sapwood.model.booster import Booster

OPSET, ML_OPSET = 17, 3
# link -> operators from raw scores (n_rows, n_outputs) to predictions; a number is a constant of the operator before it
LINKS: dict[str, list[tuple[str, float | None]]] = {
    "identity": [],
    "exp": [("Exp", None)],
    "expm1": [("Exp", None), ("Sub", 1.0)],
    "sigmoid": [("Sigmoid", None)],
    "sigmoid2": [("Mul", 2.0), ("Sigmoid", None)],
    "softmax": [("Softmax", None)],
}


def write(booster: Booster) -> bytes:
    """Write a model as ONNX.

    Parameters
    ----------
    booster : Booster
        With a link in `LINKS` and numeric columns.

    Returns
    -------
    bytes
        A model with the input ``X``, (n_rows, n_columns) float32 with NaN for missing values, and the outputs ``raw``
        and ``prediction``, (n_rows, n_outputs) float32.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError as cause:
        raise ParameterError("ONNX is written through the onnx package: pip install 'sapwood[onnx]'.") from cause
    if booster.categories:
        raise ParameterError("a model with categories cannot be written as ONNX, whose trees compare numbers.")
    if booster.link not in LINKS:
        raise ParameterError(f"the link {booster.link!r} has no ONNX operators; there are {', '.join(LINKS)}.")
    nodes = [helper.make_node("TreeEnsembleRegressor", ["X"], ["raw"], domain="ai.onnx.ml", **_ensemble(booster))]
    constants, here = [], "raw"
    for step, (operator, number) in enumerate(LINKS[booster.link]):
        inputs, after = [here], f"step{step}"
        if number is not None:
            constants.append(helper.make_tensor(f"number{step}", TensorProto.FLOAT, [1], [number]))
            inputs.append(f"number{step}")
        more: dict[str, Any] = {"axis": 1} if operator == "Softmax" else {}
        nodes.append(helper.make_node(operator, inputs, [after], **more))
        here = after
    nodes.append(helper.make_node("Identity", [here], ["prediction"]))

    def table(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])

    outputs = [table("raw", booster.n_outputs), table("prediction", booster.n_outputs)]
    graph = helper.make_graph(nodes, "sapwood", [table("X", booster.n_columns)], outputs, constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="sapwood", ir_version=8)
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _ensemble(booster: Booster) -> dict[str, Any]:
    """The attributes of the operator."""
    trees = booster.trees
    if not trees.n_trees:
        raise ParameterError("the model has no trees; an ensemble of ONNX needs one at least.")
    sizes = np.diff(trees.offset)
    tree = np.repeat(np.arange(trees.n_trees), sizes)
    node = np.arange(trees.n_nodes) - np.repeat(trees.offset[:-1], sizes)
    leaf = trees.left == 0
    share = 1.0 / max(1, booster.n_rounds) if booster.averaged else 1.0
    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": np.where(leaf, 0, trees.column).tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values": np.where(leaf, 0.0, _at_most(trees.threshold)).tolist(),
        "nodes_truenodeids": trees.left.tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, trees.left + 1).tolist(),
        "nodes_missing_value_tracks_true": trees.missing_left.tolist(),
        "nodes_hitrates": [1.0] * trees.n_nodes,
        "target_treeids": tree[leaf].tolist(),
        "target_nodeids": node[leaf].tolist(),
        "target_ids": np.repeat(trees.output, sizes)[leaf].tolist(),
        "target_weights": (share * trees.value[leaf]).tolist(),
        "base_values": booster.base.tolist(),
        "n_targets": booster.n_outputs,
        "post_transform": "NONE",
        "aggregate_function": "SUM",
    }


def _at_most(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each: the same answer for every float32."""
    largest = np.finfo(np.float32).max
    near = np.clip(threshold, -largest, largest).astype(np.float32)
    return np.where(near.astype(np.float64) > threshold, np.nextafter(near, np.float32(-np.inf)), near)
