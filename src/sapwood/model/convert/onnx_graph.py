"""A model as an ONNX graph: its crosses, one tree ensemble of ai.onnx.ml, the lines of
its leaves, and its link.

In: a booster. Out: operators, or the bytes of a model; a float32 table ``X`` goes in,
``prediction`` comes out.
"""

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import UNSEEN
from sapwood.data.crosses import CENTRED
from sapwood.errors import ParameterError
from sapwood.model.booster import Booster
from sapwood.model.convert.nodes import at_most, check_single

OPSET = 17
ML_OPSET = 3
ML = "ai.onnx.ml"
# of onnx.TensorProto
FLOAT = 1
INT64 = 7
DOUBLE = 11
Floats = NDArray[np.float64]
Ints = NDArray[Any]
# link -> operators from raw scores (n_rows, n_outputs) to predictions; a number is a
# constant of the operator before it
LINKS: dict[str, list[tuple[str, float | None]]] = {
    "identity": [],
    "exp": [("Exp", None)],
    "expm1": [("Exp", None), ("Sub", 1.0)],
    "sigmoid": [("Sigmoid", None)],
    "sigmoid2": [("Mul", 2.0), ("Sigmoid", None)],
    "softmax": [("Softmax", None)],
}


class Step(NamedTuple):
    """An operator: the names of what it takes, and of what it gives."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]
    domain: str = ""


class Graph:
    """Operators in the order of their work, and the constants that they take; a table
    ``X`` is there from the start.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def add(
        self,
        operator: str,
        *inputs: str | NDArray[Any],
        output: str = "",
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Add an operator, whose inputs are names or constants; returns the name of its
        output.
        """
        names = []
        for one in inputs:
            if not isinstance(one, str):
                self.constants[name := f"constant{len(self.constants)}"] = one
                one = name
            names.append(one)
        output = output or f"step{len(self.steps)}"
        self.steps.append(Step(operator, tuple(names), output, attributes, domain))
        return output


def graph_of(booster: Booster) -> Graph:
    """The operators from a table ``X`` to ``raw`` scores, and on to ``prediction``,
    both (n_rows, n_outputs) float32.

    The table is float32, (n_rows, n_columns): NaN for missing values, and in columns of
    categories the place of a value in the dictionary, -2 for what is not in it.
    """
    if booster.link not in LINKS:
        raise ParameterError(
            f"the link {booster.link!r} has no ONNX operators; there are {', '.join(LINKS)}."
        )
    graph = Graph()
    linear = booster.trees.linear
    whole = _crossed(graph, booster) if len(booster.crosses) else "X"
    if linear is None:
        here = graph.add(
            "TreeEnsembleRegressor",
            whole,
            output="raw",
            domain=ML,
            **_ensemble(booster, []),
        )
    else:
        if not len(linear.linear_bounds):
            raise ParameterError(
                "the model has linear leaves in raw units, whose rule for missing values ONNX cannot say; export to C, "
                "or train with linear_units='standard'."
            )
        columns = np.unique(linear.linear_column)[1:]
        parts = graph.add(
            "TreeEnsembleRegressor",
            whole,
            domain=ML,
            **_ensemble(booster, columns.tolist()),
        )
        here = _with_lines(
            graph,
            booster,
            linear.linear_bounds.reshape(-1, 3)[columns],
            columns,
            whole,
            parts,
        )
    for name, number in LINKS[booster.link]:
        more = [] if number is None else [np.array([number], np.float32)]
        attributes: dict[str, Any] = {"axis": 1} if name == "Softmax" else {}
        here = graph.add(name, here, *more, **attributes)
    graph.add("Identity", here, output="prediction")
    return graph


def write(booster: Booster) -> bytes:
    """Write a model as ONNX: from ``X``, as in `graph_of`, to ``raw`` and
    ``prediction``, (n_rows, n_outputs) float32.

    The property ``categories`` has the dictionaries, as JSON by column.
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError as cause:
        raise ParameterError(
            "ONNX is written through the onnx package: pip install 'sapwood[onnx]'."
        ) from cause
    found = graph_of(booster)
    nodes = [
        helper.make_node(
            step.operator,
            step.inputs,
            [step.output],
            domain=step.domain,
            **step.attributes,
        )
        for step in found.steps
    ]
    constants = [
        numpy_helper.from_array(array, name) for name, array in found.constants.items()
    ]

    def table(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])

    outputs = [table("raw", booster.n_outputs), table("prediction", booster.n_outputs)]
    graph = helper.make_graph(
        nodes, "sapwood", [table("X", booster.n_columns)], outputs, constants
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
    model = helper.make_model(
        graph, opset_imports=opsets, producer_name="sapwood", ir_version=8
    )
    if booster.categories:
        values = {str(j): own.values for j, own in booster.categories.items()}
        helper.set_model_props(model, {"categories": json.dumps(values)})
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _crossed(graph: Graph, booster: Booster) -> str:
    """The table with the columns of crosses: computed in float64, rounded to float32;
    what is not finite is missing.
    """
    own = booster.crosses
    wide = graph.add("Cast", "X", to=DOUBLE)
    parts = []
    order = []
    for kind, operator in enumerate(("Sub", "Mul", "Div", "Sub")):
        which = np.flatnonzero(own.cross_kind == kind)
        if not len(which):
            continue
        left = graph.add("Gather", wide, own.cross_left[which].astype(np.int64), axis=1)
        if kind == CENTRED:
            right = _means(graph, booster, which)
        else:
            right = graph.add(
                "Gather", wide, own.cross_right[which].astype(np.int64), axis=1
            )
        parts.append(graph.add(operator, left, right))
        order += which.tolist()
    made = graph.add("Cast", graph.add("Concat", *parts, axis=1), to=FLOAT)
    finite = graph.add(
        "Where", graph.add("IsInf", made), np.array([np.nan], np.float32), made
    )
    sorted_ = graph.add("Gather", finite, np.argsort(order), axis=1)
    return graph.add("Concat", "X", sorted_, axis=1)


def _means(graph: Graph, booster: Booster, which: NDArray[np.int64]) -> str:
    """The mean of each row's category, for some of the centred crosses."""
    own = booster.crosses
    code = graph.add("Gather", "X", own.cross_right[which].astype(np.int64), axis=1)
    sizes = (np.diff(own.cross_offset)[which] - 2).astype(np.float32)
    inside = graph.add(
        "And",
        graph.add("GreaterOrEqual", code, np.zeros(1, np.float32)),
        graph.add("Less", code, sizes),
    )
    missing = graph.add(
        "Or",
        graph.add("IsNaN", code),
        graph.add("Equal", code, -np.ones(1, np.float32)),
    )
    place = graph.add(
        "Where", inside, code, graph.add("Where", missing, sizes, sizes + np.float32(1))
    )
    index = graph.add(
        "Add", graph.add("Cast", place, to=INT64), own.cross_offset[which]
    )
    return graph.add("Gather", own.cross_mean, index)


def _with_lines(
    graph: Graph,
    booster: Booster,
    bounds: Floats,
    columns: Ints,
    whole: str,
    parts: str,
) -> str:
    """Raw scores from what the ensemble gives: for each output a sum of constants, then
    its sum of slopes by column.
    """
    low, high, mean = bounds.T
    k = booster.n_outputs
    m = len(columns)
    x = graph.add(
        "Cast", graph.add("Gather", whole, columns.astype(np.int64), axis=1), to=DOUBLE
    )
    known = graph.add("Where", graph.add("IsNaN", x), mean, x)
    z = graph.add("Sub", graph.add("Min", graph.add("Max", known, low), high), mean)
    slopes = graph.add("Gather", parts, np.arange(k, k + k * m), axis=1)
    apart = graph.add(
        "Reshape", graph.add("Cast", slopes, to=DOUBLE), np.array([-1, k, m])
    )
    terms = graph.add("Mul", apart, graph.add("Reshape", z, np.array([-1, 1, m])))
    constant = graph.add(
        "Cast", graph.add("Gather", parts, np.arange(k), axis=1), to=DOUBLE
    )
    total = graph.add(
        "Add", constant, graph.add("ReduceSum", terms, np.array([2]), keepdims=0)
    )
    return graph.add("Cast", total, output="raw", to=FLOAT)


def _ensemble(booster: Booster, columns: list[int]) -> dict[str, Any]:
    """The attributes of the operator; with linear leaves one more target for each
    output and column of lines.
    """
    trees = booster.trees
    if len(booster.combinations):
        raise ParameterError(
            "the model splits combinations of columns, which ONNX does not have; train with max_combination=1, or "
            "export to C."
        )
    if not trees.n_trees:
        raise ParameterError(
            "the model has no trees; an ensemble of ONNX needs one at least."
        )
    sizes = np.diff(trees.offset)
    tree = np.repeat(np.arange(trees.n_trees), sizes)
    node = np.arange(trees.n_nodes) - np.repeat(trees.offset[:-1], sizes)
    leaf = trees.left == 0
    nodes = {
        "treeids": tree,
        "nodeids": node,
        "featureids": np.where(leaf, 0, trees.column),
        "modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "values": np.where(
            leaf,
            0.0,
            np.where(np.isinf(trees.threshold), np.inf, at_most(trees.threshold)),
        ),
        "truenodeids": trees.left,
        "falsenodeids": np.where(leaf, 0, trees.left + 1),
        "missing_value_tracks_true": trees.missing_left & 1,
    }
    if (trees.set >= 0).any():
        nodes = _with_sets(booster, nodes)
    at, target, weight = _targets(booster, columns)
    check_single(1.0 / booster._divisor * weight, "ONNX")
    check_single(booster.base, "ONNX")
    n_more = booster.n_outputs * len(columns)
    return {
        **{f"nodes_{name}": array.tolist() for name, array in nodes.items()},
        "nodes_hitrates": [1.0] * len(nodes["treeids"]),
        "target_treeids": tree[at].tolist(),
        "target_nodeids": node[at].tolist(),
        "target_ids": target.tolist(),
        "target_weights": (1.0 / booster._divisor * weight).tolist(),
        "base_values": [*booster.base.tolist(), *([0.0] * n_more)],
        "n_targets": booster.n_outputs + n_more,
        "post_transform": "NONE",
        "aggregate_function": "SUM",
    }


def _targets(booster: Booster, columns: list[int]) -> tuple[Ints, Ints, Floats]:
    """Of everything that leaves add: the node, the target, and how much.

    A line is counted from the means of its columns, where its constant is of the size
    of the leaf's value.
    """
    trees = booster.trees
    output = np.repeat(trees.output, np.diff(trees.offset)).astype(np.int64)
    leaf = np.flatnonzero(trees.left == 0)
    if trees.linear is None:
        return leaf, output[leaf], trees.value[leaf]
    offset, column, coef, bounds = trees.linear.terms
    at = np.repeat(np.arange(trees.n_nodes), np.diff(offset))
    sloped = column >= 0
    constant = np.where(np.diff(offset) > 0, 0.0, trees.value)
    np.add.at(
        constant, at, coef * np.where(sloped, bounds.reshape(-1, 3)[column, 2], 1.0)
    )
    place = np.searchsorted(columns, column[sloped])
    more = booster.n_outputs + len(columns) * output[at[sloped]] + place
    return (
        np.concatenate([leaf, at[sloped]]),
        np.concatenate([output[leaf], more]),
        np.concatenate([constant[leaf], coef[sloped]]),
    )


def _with_sets(
    booster: Booster, nodes: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The nodes with every split by a set as a chain of splits "is it this code?", all
    of which lead to one child.

    ::

        in {1, 4}?  yes: left     becomes     is it 1?  yes: left
                    no: right                           no: is it 4?  yes: left
                                                                      no: right

    The shorter of the two sides is asked for, what is new with it if it goes there;
    where it is empty, for a code that no value has.
    """
    trees, sizes = booster.trees, np.diff(booster.trees.offset)
    rows: list[tuple[Any, ...]] = list(
        zip(*(array.tolist() for array in nodes.values()), strict=True)
    )
    for at in np.flatnonzero(trees.set >= 0).tolist():
        tree, node, column, _, _, left, right, missing_left = rows[at]
        inside = trees.codes(at)
        new_left = bool(trees.new_left[at])
        outside = np.setdiff1d(np.arange(booster.categories[column].n_bins), inside)
        if len(inside) <= len(outside):
            codes = inside
            yes = left
            no = right
            missing = missing_left
        else:
            codes = outside
            yes = right
            no = left
            missing = 1 - missing_left
        codes = np.append(codes, [UNSEEN] if (yes == left) == new_left else []).astype(
            np.int64
        )
        # the last first; the first takes the place of the split
        for code in codes.tolist()[:0:-1]:
            rows.append(
                (tree, sizes[tree], column, "BRANCH_EQ", float(code), yes, no, 0)
            )
            no = sizes[tree]
            sizes[tree] += 1
        rows[at] = (
            tree,
            node,
            column,
            "BRANCH_EQ",
            float(codes[0]) if len(codes) else -1.0,
            yes,
            no,
            missing,
        )
    rows.sort(key=lambda row: row[0])  # nodes sorted by tree, its root first
    return {
        name: np.array(column)
        for name, column in zip(nodes, zip(*rows, strict=True), strict=True)
    }
