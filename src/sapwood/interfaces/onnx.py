"""Our estimators in the converter registry of skl2onnx, so that pipelines with them
become ONNX.

In: a call of `register`. Out: `skl2onnx.to_onnx` knows the estimators; the graph is
that of `Booster.export`.
"""

from typing import Any

import numpy as np

from sapwood.errors import ParameterError
from sapwood.interfaces.sklearn import (
    PROBABILITIES,
    SapwoodClassifier,
    SapwoodRegressor,
)
from sapwood.model.convert.export import refuse_untold
from sapwood.model.convert.onnx_graph import (
    DOUBLE,
    FLOAT,
    INT64,
    ML_OPSET,
    OPSET,
    graph_of,
)


def register() -> None:
    """Register our estimators with skl2onnx: once, before `skl2onnx.to_onnx`."""
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common import shape_calculator
    except ImportError as cause:
        raise ParameterError(
            "pipelines become ONNX through skl2onnx: pip install 'sapwood[onnx]'."
        ) from cause
    update_registered_converter(
        SapwoodClassifier,
        "SapwoodClassifier",
        shape_calculator.calculate_linear_classifier_output_shapes,
        _classifier,
        options={"nocl": [True, False], "zipmap": [True, False, "columns"]},
    )
    update_registered_converter(
        SapwoodRegressor, "SapwoodRegressor", _shape, _regressor
    )


def _shape(operator: Any) -> None:
    """One number for each row and target."""
    from skl2onnx.common.data_types import FloatTensorType

    operator.outputs[0].type = FloatTensorType(
        [None, operator.raw_operator.booster_.n_outputs]
    )


def _regressor(scope: Any, operator: Any, container: Any) -> None:
    """A table to predictions."""
    graph = _Graph(scope, container)
    graph.add("Identity", [graph.predictions(operator)], operator.outputs[0].full_name)


def _classifier(scope: Any, operator: Any, container: Any) -> None:
    """A table to classes and probabilities, (n_rows, n_classes)."""
    from onnx import TensorProto
    from skl2onnx.common.utils_classifier import get_label_classes

    model = operator.raw_operator
    graph = _Graph(scope, container)
    classes = np.asarray(get_label_classes(scope, model))
    if model.outputs_2d_ or model.n_classes_ < 2 or classes.dtype.kind not in "biuU":
        raise ParameterError(
            "only classifiers of two or more classes, text or whole numbers, become ONNX."
        )
    if model.booster_.link not in PROBABILITIES:
        raise ParameterError(
            f"the objective {model.booster_.objective!r} gives no probabilities, as ONNX wants them."
        )
    found = graph.predictions(operator)
    if model.booster_.n_outputs == 1:
        rest = graph.add("Sub", [graph.constant(TensorProto.FLOAT, [1.0]), found])
        above = graph.add("Greater", [found, graph.constant(TensorProto.FLOAT, [0.5])])
        index = graph.add(
            "Reshape",
            [
                graph.add("Cast", [above], to=TensorProto.INT64),
                graph.constant(INT64, [-1]),
            ],
        )
        found = graph.add("Concat", [rest, found], axis=1)
    else:
        index = graph.add("ArgMax", [found], axis=1, keepdims=0)
    text = classes.dtype.kind == "U"
    labels = graph.constant(
        TensorProto.STRING if text else INT64,
        [str(c) if text else int(c) for c in classes],
    )
    graph.add("Gather", [labels, index], operator.outputs[0].full_name)
    graph.add("Identity", [found], operator.outputs[1].full_name)


class _Graph:
    """The operators of one estimator, as skl2onnx collects them."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope = scope
        self.container = container

    def add(
        self,
        operator: str,
        inputs: list[str],
        result: str | None = None,
        domain: str = "",
        **more: Any,
    ) -> str:
        """Add an operator with its attributes; returns the name of its result."""
        named: str = result or self.scope.get_unique_variable_name(operator.lower())
        self.container.add_node(
            operator,
            inputs,
            [named],
            op_domain=domain,
            op_version=ML_OPSET if domain else OPSET,
            name=self.scope.get_unique_operator_name(operator),
            **more,
        )
        return named

    def constant(self, kind: int, values: list[Any]) -> str:
        """Add a list; returns its name."""
        name: str = self.scope.get_unique_variable_name("constant")
        self.container.add_initializer(name, kind, [len(values)], values)
        return name

    def predictions(self, operator: Any) -> str:
        """Add what leads from the table of an estimator to predictions, (n_rows,
        n_outputs); returns their name.
        """
        booster = operator.raw_operator.booster_
        refuse_untold(booster)
        found = graph_of(booster)
        named = {"X": self.add("Cast", [operator.inputs[0].full_name], to=FLOAT)}
        for name, array in found.constants.items():
            kind = {np.float32: FLOAT, np.float64: DOUBLE, np.int64: INT64}[
                array.dtype.type
            ]
            named[name] = self.constant(kind, array.tolist())
        for step in found.steps:
            inputs = [named[name] for name in step.inputs]
            named[step.output] = self.add(
                step.operator, inputs, None, step.domain, **step.attributes
            )
        return named["prediction"]
