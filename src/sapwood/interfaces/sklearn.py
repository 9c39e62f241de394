"""Estimators for scikit-learn: the classifier and the regressor.

In: a table, numbers or classes, and parameters as attributes. Out: predictions in
scikit-learn's forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import fsum
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from sapwood import objective
from sapwood.data import ingest
from sapwood.data.deferred import Deferred
from sapwood.device import elementary
from sapwood.errors import DataError, ParameterError, SapwoodError, suggest
from sapwood.interfaces import target as targets
from sapwood.interfaces.estimator import (
    OF_TWO,
    VALUES,
    Estimator,
    choose_objective,
    documented,
    signature,
)
from sapwood.interfaces.intervals import PredictionSets, RegressionIntervals
from sapwood.interfaces.parameters import OF_CLASSES
from sapwood.metric import functions
from sapwood.model.booster import Booster
from sapwood.model.consistency import COUPLED, CUSTOM
from sapwood.model.io import encode_classes
from sapwood.model.peer_names import asked as peer_predict
from sapwood.params import Parameter, resolve
from sapwood.params.types import PerClass, class_name

PROBABILITIES = ("sigmoid", "sigmoid2", "softmax", "one_vs_all", CUSTOM)
_M = TypeVar("_M")


@documented
class SapwoodRegressor(RegressorMixin, RegressionIntervals, Estimator):
    """Gradient boosting of decision trees for numbers, one target or several (2-D y).

    A `recipe` sets the parameters that you leave out; what you give goes before it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: predictions in every form, importances, text, files.
    {attributes}

    Examples
    --------
    >>> from sapwood import SapwoodRegressor
    >>> SapwoodRegressor(n_estimators=1, learning_rate=1, reg_lambda=0).fit([[0], [1]], [2, 4]).predict([[0], [1]])
    array([2., 4.])
    """

    def predict(
        self, X: Any, init_score: ArrayLike | None = None, **more: Any
    ) -> NDArray[np.float64]:
        """Predict the target of every row, (n_rows,), or all its targets or quantiles,
        (n_rows, n_outputs).

        ``more``: the peers' arguments, as in `Booster.predict`.
        """
        X = X.data if isinstance(X, Deferred) else X
        return self._booster(X).predict(
            X, init_score=init_score, n_jobs=self.n_jobs, **more
        )

    def staged_predict(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Predict after the first round, the second, and so on."""
        return self._booster(X).staged_predict(
            X, init_score=init_score, n_jobs=self.n_jobs
        )

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """R^2, as of every regressor; of `quantiles`, minus their mean pinball loss.
        Higher is better.
        """
        prediction = self.predict(X)
        if self.booster_.link != "ascending":
            # a square that overflows makes it minus infinity
            with np.errstate(over="ignore", invalid="ignore"):
                return float(super().score(X, y, sample_weight))
        label = ingest.floats(y, "y")
        weight = (
            None
            if sample_weight is None
            else ingest.floats(sample_weight, "sample_weight")
        )
        levels = self.booster_.params["quantiles"]
        columns = zip(levels, prediction.T, strict=True)
        return -fsum(
            functions.pinball(label, one, weight, level) for level, one in columns
        ) / len(levels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        about = self._objective_info()
        tags.target_tags.multi_output = not about.get("adaptive", False)
        tags.target_tags.positive_only = about.get("labels") in (
            "a number above 0",
            "a number of at least 0",
        )
        return tags

    def _learn_target(
        self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None
    ) -> NDArray[Any]:
        choose_objective(settings, "squared_error", "link", VALUES)
        return y


def _has_probabilities(estimator: SapwoodClassifier) -> bool:
    """Return True if the objective gives probabilities, else raise: scikit-learn then
    hides the method.
    """
    if hasattr(estimator, "booster_"):
        name = estimator.booster_.objective
        link = estimator.booster_.link
    else:
        try:
            goal = objective.resolve(
                resolve({"objective": estimator.objective, "recipe": estimator.recipe})
            )
        except SapwoodError:
            return True  # "auto" gives probabilities; fit reports what is wrong
        name = goal.name
        link = goal.link
    if link not in PROBABILITIES:
        raise AttributeError(
            f"objective={name!r} gives no probabilities (its link is {link!r}); use decision_function or another one."
        )
    return True


_where_probable: Callable[[_M], _M] = available_if(_has_probabilities)


@documented
class SapwoodClassifier(ClassifierMixin, PredictionSets, Estimator):
    """Gradient boosting of decision trees for classes: strings, booleans, any integers.

    A 2-D y of 0 and 1 has a column for each of several labels that a row may have
    (multilabel). A `recipe` sets
    the parameters that you leave out; what you give goes before it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: predictions in every form, importances, text, files.
    classes_ : (n_classes_,) ndarray
        The classes, sorted; of several labels, their columns.
    n_classes_ : int
    outputs_2d_ : bool
        Whether y had several labels.
    {attributes}

    Examples
    --------
    >>> from sapwood import SapwoodClassifier
    >>> SapwoodClassifier(min_child_weight=0).fit([[0], [1]], ["no", "yes"]).predict([[0], [1]])
    array(['no', 'yes'], dtype='<U3')
    """

    _table: ClassVar[Mapping[str, Parameter]] = OF_CLASSES
    classes_: NDArray[Any]
    n_classes_: int
    outputs_2d_: bool

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)

    __init__.__signature__ = signature(OF_CLASSES)  # type: ignore[attr-defined]

    def predict(
        self, X: Any, init_score: ArrayLike | None = None, **more: Any
    ) -> NDArray[Any]:
        """Predict the most probable class of every row, (n_rows,); of several labels 0
        or 1, (n_rows, n_classes_).

        ``more``: the peers' arguments, as in `Booster.predict`, for raw scores, leaves
        or contributions instead.
        """
        X = X.data if isinstance(X, Deferred) else X
        booster = self._booster(X)
        raw = booster.link not in PROBABILITIES
        rounds = None
        if more:
            asked = peer_predict(self.predict, booster.n_rounds, more)
            if asked.what not in ("prediction", "class"):
                return booster.predict(
                    X, init_score=init_score, n_jobs=self.n_jobs, **more
                )
            rounds = asked.rounds
        return self._decide(
            booster.predict(
                X, raw=raw, rounds=rounds, init_score=init_score, n_jobs=self.n_jobs
            )
        )

    @_where_probable
    def predict_proba(
        self, X: Any, init_score: ArrayLike | None = None, **more: Any
    ) -> NDArray[np.float64]:
        """Predict the probability of every class or label, (n_rows, n_classes_);
        columns follow `classes_`.

        ``more``: the peers' arguments, as in `Booster.predict`.
        """
        X = X.data if isinstance(X, Deferred) else X
        booster = self._booster(X)
        found = booster.predict(X, init_score=init_score, n_jobs=self.n_jobs, **more)
        if (
            more
            and peer_predict(self.predict_proba, booster.n_rounds, more).what
            != "prediction"
        ):
            return found
        return self._two_columns(found)

    @_where_probable
    def predict_log_proba(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict the logarithm of every probability, (n_rows, n_classes_)."""
        with np.errstate(divide="ignore"):
            return elementary.log(self.predict_proba(X, init_score))

    def decision_function(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Compute raw scores: (n_rows,) of the second of two classes (log-odds, say),
        or (n_rows, n_classes_).
        """
        scores = self._booster(X).predict(
            X, raw=True, init_score=init_score, n_jobs=self.n_jobs
        )
        two = scores.ndim == 2 and self.n_classes_ == 2 and not self.outputs_2d_
        return scores[:, 1] - scores[:, 0] if two else scores

    def staged_decision_function(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Compute raw scores after the first round, the second, and so on."""
        return self._booster(X).staged_predict(
            X, raw=True, init_score=init_score, n_jobs=self.n_jobs
        )

    def staged_predict(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> Iterator[NDArray[Any]]:
        """Predict classes after the first round, the second, and so on."""
        booster = self._booster(X)
        raw = booster.link not in PROBABILITIES
        return map(
            self._decide,
            booster.staged_predict(
                X, raw=raw, init_score=init_score, n_jobs=self.n_jobs
            ),
        )

    @_where_probable
    def staged_predict_proba(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Predict probabilities after the first round, the second, and so on."""
        return map(
            self._two_columns,
            self._booster(X).staged_predict(
                X, init_score=init_score, n_jobs=self.n_jobs
            ),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        labels = self._objective_info().get("labels")
        tags.classifier_tags.multi_class = labels not in OF_TWO
        tags.classifier_tags.multi_label = labels != "a class index"
        return tags

    def _decide(self, p: NDArray[np.float64]) -> NDArray[Any]:
        """Classes from the booster's probabilities, or from raw scores if it gives
        none.
        """
        if self.n_classes_ == 1:
            return self.classes_.repeat(len(p))
        above = 0.5 if self.booster_.link in PROBABILITIES else 0.0
        if self.outputs_2d_:
            return (p > above).astype(np.int64)
        return self.classes_.take(p > above if p.ndim == 1 else p.argmax(axis=1))

    def _two_columns(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """One column per class from the booster's probabilities."""
        if self.n_classes_ == 1:
            return np.ones((len(p), 1))
        if p.ndim == 2:
            return p
        both = np.empty((len(p), 2))
        np.subtract(1.0, p, out=both[:, 0])
        both[:, 1] = p
        return both

    def _learn_target(
        self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None
    ) -> NDArray[Any]:
        self.outputs_2d_ = y.ndim == 2
        self.classes_, codes = (
            (np.arange(y.shape[1]), y) if self.outputs_2d_ else targets.classes(y)
        )
        encode_classes(self.classes_)  # raises on classes that cannot be saved
        if known is not None:  # y need not have all of them
            if not set(self.classes_.tolist()) <= set(known.tolist()):
                has = self.classes_.tolist()
                raise DataError(
                    f"init_model knows the classes {known.tolist()}, but y has {has}; train it anew."
                )
            self.classes_ = known
            codes = self._encode_target(y)
        self.n_classes_ = len(self.classes_)
        self._check_number_of_classes(settings["n_classes"])
        settings["n_classes"] = None
        # of any number of classes
        if isinstance(self.objective, str) and self.objective.lower() == "log_loss":
            settings["objective"] = "auto"
        if settings["objective"] == "cross_entropy" and (
            self.outputs_2d_ or self.n_classes_ <= 2
        ):
            settings["objective"] = "logistic"  # the same loss for labels 0 and 1
        if self.outputs_2d_:
            choose_objective(settings, "multilabel", "labels", ("0 or 1",))
        elif self.n_classes_ <= 2:
            goal = choose_objective(
                settings, "logistic", "labels", ("0 or 1", "a class index")
            )
            settings["n_classes"] = 2 if goal.link in COUPLED else None
        else:
            choose_objective(settings, "softmax", "labels", ("a class index",))
            settings["n_classes"] = self.n_classes_
        place = {
            class_name(one): str(index)
            for index, one in enumerate(self.classes_.tolist())
        }
        # keyed by class; train wants indices
        for name in ("subsample_by_class", "class_weight"):
            if isinstance(settings[name], PerClass):  # it has indices already
                settings[name].check_length(name, self.n_classes_)
            elif isinstance(settings[name], dict):
                if unknown := [one for one in settings[name] if one not in place]:
                    raise ParameterError(
                        f"{name} has a class {unknown[0]!r}; {suggest(unknown[0], place)}"
                    )
                settings[name] = {
                    place[one]: value for one, value in settings[name].items()
                }
        return codes

    def _check_number_of_classes(self, wanted: int | None) -> None:
        """Raise where the user said another number of classes than there are."""
        if wanted not in (None, self.n_classes_):
            what = "labels" if self.outputs_2d_ else "classes"
            raise ParameterError(
                f"n_classes={wanted}, but y has {self.n_classes_} {what}: {self.classes_.tolist()[:20]}. Leave it out: "
                "fit counts them; a class without rows has no place in the model."
            )

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        if self.outputs_2d_:
            return y
        found, codes = targets.classes(y)
        place = {known: index for index, known in enumerate(self.classes_.tolist())}
        if unseen := [one for one in found.tolist() if one not in place]:
            raise DataError(
                f"A validation target has classes that y has not: {unseen}; y has {self.classes_.tolist()}."
            )
        return np.array([place[one] for one in found.tolist()], np.float64)[
            codes.astype(np.intp)
        ]

    def _finish(self, booster: Booster) -> Booster:
        return booster if self.outputs_2d_ else replace(booster, classes=self.classes_)
