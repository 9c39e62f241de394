"""A model as an ONNX graph: one tree ensemble of ai.onnx.ml, and its link.

In: a booster. Out: operators, or the bytes of a model; a float32 table ``X`` goes in, ``prediction`` comes out.
"""

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import UNSEEN
from sapwood.errors import ParameterError
from sapwood.model.booster import Booster
from sapwood.model.convert.nodes import at_most

OPSET, ML_OPSET = 17, 3
ML = "ai.onnx.ml"
# link -> operators from raw scores (n_rows, n_outputs) to predictions; a number is a constant of the operator before it
LINKS: dict[str, list[tuple[str, float | None]]] = {
    "identity": [],
    "exp": [("Exp", None)],
    "expm1": [("Exp", None), ("Sub", 1.0)],
    "sigmoid": [("Sigmoid", None)],
    "sigmoid2": [("Mul", 2.0), ("Sigmoid", None)],
    "softmax": [("Softmax", None)],
}


class Step(NamedTuple):
    """An operator that takes what the one before it gave."""

    operator: str
    attributes: dict[str, Any]
    number: float | None = None  # a second input
    domain: str = ""


def steps(booster: Booster) -> list[Step]:
    """The operators from a table to raw scores, the first, and on to predictions.

    The table is float32, (n_rows, n_columns): NaN for missing values, and in columns of categories the place of a value
    in the dictionary, -2 for what is not in it.
    """
    if booster.link not in LINKS:
        raise ParameterError(f"the link {booster.link!r} has no ONNX operators; there are {', '.join(LINKS)}.")
    links = [Step(name, {"axis": 1} if name == "Softmax" else {}, number) for name, number in LINKS[booster.link]]
    return [Step("TreeEnsembleRegressor", _ensemble(booster), domain=ML), *links]


def write(booster: Booster) -> bytes:
    """Write a model as ONNX: from ``X``, as in `steps`, to ``raw`` and ``prediction``, (n_rows, n_outputs) float32.

    The property ``categories`` has the dictionaries, as JSON by column.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError as cause:
        raise ParameterError("ONNX is written through the onnx package: pip install 'sapwood[onnx]'.") from cause
    nodes, constants, here = [], [], "X"
    for at, step in enumerate(steps(booster)):
        inputs, after = [here], f"step{at}" if at else "raw"
        if step.number is not None:
            constants.append(helper.make_tensor(f"number{at}", TensorProto.FLOAT, [1], [step.number]))
            inputs.append(f"number{at}")
        nodes.append(helper.make_node(step.operator, inputs, [after], domain=step.domain, **step.attributes))
        here = after
    nodes.append(helper.make_node("Identity", [here], ["prediction"]))

    def table(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])

    outputs = [table("raw", booster.n_outputs), table("prediction", booster.n_outputs)]
    graph = helper.make_graph(nodes, "sapwood", [table("X", booster.n_columns)], outputs, constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="sapwood", ir_version=8)
    if booster.categories:
        values = {str(j): own.values for j, own in booster.categories.items()}
        helper.set_model_props(model, {"categories": json.dumps(values)})
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _ensemble(booster: Booster) -> dict[str, Any]:
    """The attributes of the operator."""
    trees = booster.trees
    if len(booster.combinations):
        raise ParameterError(
            "the model splits combinations of columns, which ONNX does not have; train with max_combination=1, or "
            "export to C."
        )
    if len(booster.crosses):
        raise ParameterError("the model splits crosses of columns, which are not written as ONNX; export to C.")
    if not trees.n_trees:
        raise ParameterError("the model has no trees; an ensemble of ONNX needs one at least.")
    sizes = np.diff(trees.offset)
    tree = np.repeat(np.arange(trees.n_trees), sizes)
    node = np.arange(trees.n_nodes) - np.repeat(trees.offset[:-1], sizes)
    leaf = trees.left == 0
    nodes = {
        "treeids": tree,
        "nodeids": node,
        "featureids": np.where(leaf, 0, trees.column),
        "modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "values": np.where(leaf, 0.0, at_most(trees.threshold)),
        "truenodeids": trees.left,
        "falsenodeids": np.where(leaf, 0, trees.left + 1),
        "missing_value_tracks_true": trees.missing_left & 1,
    }
    if (trees.set >= 0).any():
        nodes = _with_sets(booster, nodes)
    return {
        **{f"nodes_{name}": array.tolist() for name, array in nodes.items()},
        "nodes_hitrates": [1.0] * len(nodes["treeids"]),
        "target_treeids": tree[leaf].tolist(),
        "target_nodeids": node[leaf].tolist(),
        "target_ids": np.repeat(trees.output, sizes)[leaf].tolist(),
        "target_weights": (1.0 / booster._divisor * trees.value[leaf]).tolist(),
        "base_values": booster.base.tolist(),
        "n_targets": booster.n_outputs,
        "post_transform": "NONE",
        "aggregate_function": "SUM",
    }


def _with_sets(booster: Booster, nodes: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The nodes with every split by a set as a chain of splits "is it this code?", all of which lead to one child.

    ::

        in {1, 4}?  yes: left     becomes     is it 1?  yes: left
                    no: right                           no: is it 4?  yes: left
                                                                      no: right

    The shorter of the two sides is asked for, what is new with it if it goes there; where it is empty, for a code that
    no value has.
    """
    trees, sizes = booster.trees, np.diff(booster.trees.offset)
    rows: list[tuple[Any, ...]] = list(zip(*(array.tolist() for array in nodes.values()), strict=True))
    for at in np.flatnonzero(trees.set >= 0).tolist():
        tree, node, column, _, _, left, right, missing_left = rows[at]
        inside, new_left = trees.codes(at), bool(trees.new_left[at])
        outside = np.setdiff1d(np.arange(booster.categories[column].n_bins), inside)
        if len(inside) <= len(outside):
            codes, yes, no, missing = inside, left, right, missing_left
        else:
            codes, yes, no, missing = outside, right, left, 1 - missing_left
        codes = np.append(codes, [UNSEEN] if (yes == left) == new_left else []).astype(np.int64)
        for code in codes.tolist()[:0:-1]:  # the last first; the first takes the place of the split
            rows.append((tree, sizes[tree], column, "BRANCH_EQ", float(code), yes, no, 0))
            no = sizes[tree]
            sizes[tree] += 1
        rows[at] = (tree, node, column, "BRANCH_EQ", float(codes[0]) if len(codes) else -1.0, yes, no, missing)
    rows.sort(key=lambda row: row[0])  # nodes sorted by tree, its root first
    return {name: np.array(column) for name, column in zip(nodes, zip(*rows, strict=True), strict=True)}
