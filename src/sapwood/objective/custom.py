"""Users' own objectives: a function of arrays, or an object with a loss.

In: a callable or an object. Out: a `Custom` that computes checked gradients, start
scores and leaf values.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import host
from sapwood.errors import ObjectiveError, ParameterError
from sapwood.objective.autodiff import differentiate
from sapwood.params.functions import in_our_order
from sapwood.params.types import Integer

Floats = NDArray[np.float64]
# the trainer's objective: any pointwise one does, since it is given the gradients
CORE = "squared_error"
METRICS = {"identity": "rmse", "sigmoid": "logloss", "softmax": "multi_logloss"}


@dataclass(frozen=True, eq=False)
class Custom:
    """A user's objective. Scores are (n_rows), or (n_rows, n_outputs) where there are
    several.
    """

    name: str
    derive: Callable[..., Any]  # (y, score[, weight]) -> gradient, hessian
    weighted: bool  # `derive` takes the weights and applies them
    link: str = "identity"  # "custom": the function `transform`
    metric: Any = "rmse"
    # whether the user gave a link or a metric, so that a metric can be chosen
    measured: bool = True
    n_outputs: int | None = None
    transform: Callable[[Floats], Floats] | None = None
    loss: Callable[..., Any] | None = None  # (y, score) -> a number for each row
    first: Callable[..., Any] | None = None  # (y, weight) -> start scores
    # (y, score, weight) -> the value of a leaf with these rows
    leaf: Callable[..., Any] | None = None
    # (output, Newton steps) -> leaf values in closed form
    values: Callable[[int, Floats], Floats] | None = None
    # whether each score moves by as much as the labels, where all of these move
    moved: tuple[bool, ...] = ()
    # `derive` takes the arrays of the device, where it has such
    device_arrays: bool = False

    @classmethod
    def of(cls, given: Any) -> "Custom":
        """Read a user's objective.

        given: callable or object; a function ``f(y, score)`` that returns gradients and
        hessians, to which Sapwood
          applies the weights, or ``f(y, score, weight)``, which applies them itself. Or
          an object with
          ``grad_hess(y, score)`` or, if jax or torch is installed, only ``loss(y,
          score)``. It may have
          ``start(y, weight)``, ``link`` (a name or a function), ``leaf(y, score,
          weight)``, ``n_outputs``,
          ``metric``, ``name``, and ``device_arrays``: true where its derivatives take
          CuPy arrays and return such. A peer's ``f(preds, dtrain)`` is known by the
          names of its arguments, and applies weights itself; so is CatBoost's object
          with ``calc_ders_range``.
        """
        loss = getattr(given, "loss", None)
        derive = getattr(given, "grad_hess", None)
        if inspect.isclass(given):
            raise ParameterError(
                f"objective={given.__name__} is a class; give an object of it: {given.__name__}()."
            )
        if hasattr(given, "calc_ders_range"):
            derive = _of_catboost(given)
        elif derive is None:
            derive = differentiate(loss) if callable(loss) else given
        link = getattr(given, "link", "identity")
        if not isinstance(link, str) and not callable(link):
            raise ParameterError(
                f"link={link!r} of the objective is neither a name nor a function."
            )
        if isinstance(link, str):
            try:
                host.link(link, np.zeros((1, 1)))
            except ValueError as cause:
                raise ParameterError(
                    f"link={link!r} of the objective is unknown; give a known name or a function."
                ) from cause
        named = str(
            getattr(given, "name", None)
            or getattr(given, "__name__", None)
            or type(given).__name__
        )
        name = link if isinstance(link, str) else "custom"
        known = host.objectives().get(named)
        # a model with the name of ours must predict as ours does
        if known is not None and known["link"] != name:
            named = f"custom_{named}"
        several = Integer(1, or_one_of=(None,))
        # a peer's order: its weights are its own
        derive, weighted = in_our_order(derive, f"objective {named!r}")
        return cls(
            name=named,
            derive=derive,
            weighted=weighted or _takes_weight(derive),
            link=name,
            metric=getattr(given, "metric", None) or METRICS.get(name, "rmse"),
            measured=hasattr(given, "metric") or hasattr(given, "link"),
            n_outputs=several.check(
                "n_outputs of the objective", getattr(given, "n_outputs", None)
            ),
            transform=None if isinstance(link, str) else link,
            loss=loss if callable(loss) else None,
            first=getattr(given, "start", None),
            leaf=getattr(given, "leaf", None),
            values=getattr(given, "leaf_values", None),
            moved=tuple(getattr(given, "moved", ())),
            device_arrays=bool(getattr(given, "device_arrays", False)),
        )

    def gradients(
        self, label: Floats, scores: Floats, weight: Floats | None, index: int = 0
    ) -> tuple[Floats, Floats]:
        """Gradients and hessians before weights, in the shape of the scores:
        (n_outputs, n_rows).
        """
        both = self._derivatives(label, scores, weight)
        g, h = (
            self._check(what, part, scores)
            for what, part in zip(("gradient", "hessian"), both, strict=True)
        )
        return self._usable(g, h, weight)

    def gradients_there(self, label: Any, scores: Any, weight: Any) -> tuple[Any, Any]:
        """The same on the arrays of a device."""
        both = self._derivatives(label, scores, weight)
        for what, part in zip(("gradient", "hessian"), both, strict=True):
            returned = f"objective {self.name!r} returned a {what}"
            wanted = _by_row(scores).shape
            if getattr(part, "shape", None) != wanted:
                raise ObjectiveError(
                    f"{returned} of shape {getattr(part, 'shape', None)}; it needs {wanted}."
                )
            if not (part - part == 0).all():  # inf - inf and NaN are not 0
                raise ObjectiveError(f"{returned} that is not finite.")
        g, h = (part.reshape(1, -1) if len(scores) == 1 else part.T for part in both)
        return self._usable(g, h, weight)

    def _derivatives(self, label: Any, scores: Any, weight: Any) -> Any:
        extra = (weight,) if self.weighted else ()
        both = self._call("derivatives", self.derive, label, _by_row(scores), *extra)
        if not isinstance(both, tuple | list) or len(both) != 2:
            raise ObjectiveError(
                f"objective {self.name!r} returned a {type(both).__name__}, not (gradient, hessian)."
            )
        return both

    def _usable(self, g: Any, h: Any, weight: Any) -> tuple[Any, Any]:
        """Gradients and hessians before weights, if the hessians are such that steps
        can be computed.
        """
        if (h < 0).any():
            raise ObjectiveError(
                f"objective {self.name!r} returned a negative hessian in row {int((h < 0).any(0).argmax())}; return a "
                "positive bound of it there."
            )
        if not h.any():
            raise ObjectiveError(
                f"objective {self.name!r} returned only hessians of 0, from which no step can be computed; return a "
                "positive bound, such as 1."
            )
        if self.weighted and weight is not None:
            # The core applies the weights itself, so they are divided out here.
            safe = weight + (weight <= 0)
            g = g / safe
            h = h / safe
        return g, h

    def predict(self, scores: Floats) -> Floats:
        """Predictions by the user's link."""
        assert self.transform is not None
        values = np.asarray(self._call("link", self.transform, scores), np.float64)
        if len(values) != len(scores):
            raise ObjectiveError(
                f"link of objective {self.name!r} returned {values.shape} for {scores.shape}; return one per row."
            )
        return values

    def start(self, label: Floats, weight: Floats | None, n_outputs: int) -> Floats:
        """Start scores (n_outputs): the objective's own, or 0."""
        if self.first is None:
            return np.zeros(n_outputs)
        values = np.asarray(
            self._call("start", self.first, label, weight), np.float64
        ).ravel()
        if values.shape != (n_outputs,) or not np.isfinite(values).all():
            raise ObjectiveError(
                f"start of objective {self.name!r} returned {values}; {n_outputs} finite numbers are needed."
            )
        return values

    def leaf_value(self, label: Floats, scores: Floats, weight: Floats | None) -> float:
        """The value of a leaf that holds these rows."""
        assert self.leaf is not None
        value = self._call("leaf", self.leaf, label, scores, weight)
        if not isinstance(value, Real) or not isfinite(value):
            raise ObjectiveError(
                f"leaf of objective {self.name!r} returned {value!r}; a finite number is needed."
            )
        return float(value)

    def _call(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call the user's code; an exception of it is the cause of ours."""
        try:
            return function(*args)
        except Exception as cause:
            raise ObjectiveError(
                f"objective {self.name!r} raised {type(cause).__name__} in its {what}: {cause}; its traceback is above."
            ) from cause

    def _check(self, what: str, part: Any, scores: Floats) -> Floats:
        """Gradients or hessians as (n_outputs, n_rows), if they have the shape of the
        scores and are finite.
        """
        returned = f"objective {self.name!r} returned a {what}"
        if np.ma.is_masked(part):
            raise ObjectiveError(
                f"{returned} with masked values; return a number for every row, 0 for one to ignore."
            )
        try:
            array = np.asarray(part)
            casting: Any = "same_kind" if array.dtype.kind in "fciub" else "unsafe"
            # only read from here on
            array = array.astype(np.float64, casting=casting, copy=False)
        except (TypeError, ValueError) as cause:
            raise ObjectiveError(f"{returned} that is not numeric.") from cause
        wanted = _by_row(scores).shape
        if array.shape != wanted:
            raise ObjectiveError(
                f"{returned} of shape {array.shape}; it needs {wanted}."
            )
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise ObjectiveError(f"{returned} of {array[row]} in row {row}.")
        return np.ascontiguousarray(array.reshape(len(array), -1).T)


def _of_catboost(given: Any) -> Callable[..., Any]:
    """The derivatives of CatBoost's objects, which are those of the negative loss, row
    by row.
    """

    def derive(y: Floats, score: Floats) -> tuple[Floats, Floats]:
        both = np.array(
            given.calc_ders_range(score.tolist(), y.tolist(), None), np.float64
        ).reshape(-1, 2)
        return -both[:, 0], np.maximum(-both[:, 1], 0.0)

    return derive


def _by_row(scores: Any) -> Any:
    """Scores as users see them: (n_rows), or (n_rows, n_outputs)."""
    return scores[0] if len(scores) == 1 else scores.T


def _takes_weight(function: Callable[..., Any]) -> bool:
    """Whether a function takes weights: its third parameter is required, or has
    "weight" in its name.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    positional = [
        one
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return len(positional) > 2 and (
        positional[2].default is positional[2].empty or "weight" in positional[2].name
    )
