"""What is plotted: the model inside an estimator, its rows and labels, its predictions.

In: what a user holds. Out: a `Booster`, class indices, probabilities; or a sentence
that says what is wrong.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import DataError, ParameterError
from sapwood.model.booster import Booster
from sapwood.model.explain import shapley

Floats = NDArray[np.float64]


def booster_of(model: Any) -> Booster:
    """The model of a fitted estimator, or the model itself."""
    found = getattr(model, "booster_", model)
    if not isinstance(found, Booster):
        what = type(model).__name__
        raise ParameterError(
            f"a {what} is neither a Booster nor a fitted Sapwood estimator; fit it, or sapwood.load."
        )
    return found


def labels(booster: Booster, y: Any, n_rows: int) -> Floats:
    """Labels as numbers: classes as their indices."""
    found = shapley.labels_of(booster, y, n_rows)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def class_names(booster: Booster) -> list[str]:
    """Names of the classes; empty where the model predicts numbers."""
    if booster.classes is not None:
        return [str(one) for one in booster.classes.tolist()]
    if booster.link in ("sigmoid", "sigmoid2"):
        return ["0", "1"]
    return (
        [str(k) for k in range(booster.n_outputs)]
        if booster.link in ("softmax", "one_vs_all")
        else []
    )


def probabilities(model: Any, X: Any) -> tuple[Booster, Floats, list[str]]:
    """The model, its probabilities (n_rows, n_classes), and the names of the
    classes.
    """
    booster = booster_of(model)
    names = class_names(booster)
    if not names or (
        booster.n_outputs > 1 and booster.link not in ("softmax", "one_vs_all")
    ):
        raise ParameterError(
            f"objective {booster.objective!r} gives no probabilities of classes; use residuals or predicted_actual."
        )
    p = booster.predict(X)
    return booster, np.column_stack([1 - p, p]) if p.ndim == 1 else p, names


def values(
    model: Any, X: Any, y: Any, output: int | str | None
) -> tuple[Booster, Floats, Floats]:
    """The model, and labels and predictions of one target."""
    booster = booster_of(model)
    if booster.classes is not None:
        raise ParameterError(
            "the model predicts classes; use calibration, roc or confusion_matrix."
        )
    prediction = booster.predict(X)
    label = labels(booster, y, len(prediction))
    if prediction.ndim == 2:
        if output is None:
            raise ParameterError(
                f"the model has {booster.n_outputs} targets; choose one: output=0."
            )
        place = shapley.place_of(shapley.outputs_of(booster), output)
        prediction = prediction[:, place]
        label = label[:, place] if label.ndim == 2 else label
    else:
        shapley.refuse_output(output)
    return booster, label, prediction


def one_output(told: Any, output: int | str | None) -> tuple[Floats, Floats, str]:
    """Values (n_rows, n_columns...) and base values of one output of an explanation,
    and its name.
    """
    if not hasattr(told, "output_names"):
        raise ParameterError(
            f"this plot shows an Explanation, not a {type(told).__name__}; give booster.explain(X)."
        )
    if told.output_names is None:
        shapley.refuse_output(output)
        return told.values, told.base_values, ""
    if output is None:
        choices = ", ".join(told.output_names[:8])
        raise ParameterError(
            f"the explanation has several outputs; choose one: output= one of {choices}."
        )
    place = shapley.place_of(told.output_names, output)
    return (
        told.values[..., place],
        told.base_values[..., place],
        told.output_names[place],
    )


def without_interactions(told: Any) -> None:
    """Raise where an explanation has interactions, or something is no explanation."""
    if not hasattr(told, "base_values"):
        raise ParameterError(
            f"this plot shows an Explanation, not a {type(told).__name__}; give booster.explain(X)."
        )
    if told.values.ndim > 2 + (told.output_names is not None):
        raise DataError(
            "this plot shows values by column; explain without interactions=True."
        )
