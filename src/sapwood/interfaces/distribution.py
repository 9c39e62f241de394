"""The estimator of whole distributions: a mean, a spread and any quantile for every
row.

In: a table and numbers. Out: a `Distribution` of every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from sapwood.boost.auto import fit_distribution
from sapwood.data import ingest
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.interfaces.estimator import (
    BINS,
    Estimator,
    EstimatorDataset,
    documented,
    signature,
)
from sapwood.interfaces.files import WholeFiles
from sapwood.interfaces.parameters import PARAMETERS, TARGET_PARAMETERS, rows_with
from sapwood.metric.distribution import nll
from sapwood.model.booster import Booster
from sapwood.objective.distributions import FAMILIES, Distribution, Family, family_of
from sapwood.params import Parameter, defaults_of, resolve
from sapwood.params.types import Choice, Integer

Floats = NDArray[np.float64]

# Parameters that say what is learned, or are for other targets than numbers.
OTHERS = TARGET_PARAMETERS | {"boosting", "n_parallel_trees"}
DEFAULTS = defaults_of("distribution")
OWN = (
    Parameter(
        "dist",
        Choice(("auto", *FAMILIES)),
        "auto",
        "The family. 'auto': the one among those that suit the labels with the highest held-out likelihood. The "
        "degrees of freedom of 'student_t' are found by that too.",
    ),
    Parameter(
        "n_folds",
        Integer(0),
        3,
        "Folds of each of two repetitions. The model is the mean of the models of all folds, recalibrated on the rows "
        "that each has not seen. 0: one model of all rows, without early stopping and recalibration.",
    ),
)
ROWS = rows_with(OWN, "distribution", OTHERS)
INSTEAD = {  # of parameters that it has not
    "objective": "dist says what is learned",
    "eval_metric": "the likelihood of the family says when to stop",
    "quality": "n_folds and n_estimators say how it is trained",
    "time_limit": "n_folds=0 and fewer n_estimators take less time",
    "quantiles": "predict_quantile(X, levels) has any quantile",
    "conformal": "interval(X, coverage) is that of the distribution; SapwoodRegressor(conformal=...) has guarantees",
    "validation_fraction": "n_folds says what is held out; fit takes an eval_set",
    "boosting": "its models are plain boosting",
}


@documented
class SapwoodDistribution(WholeFiles, RegressorMixin, Estimator):
    """Gradient boosting of decision trees for whole distributions: every parameter of a
    family has trees of its own.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        Its predictions are the scores of all parameters of the family.
    family_ : Family
        The family that was learned, with its constants.
    chosen_ : Chosen
        What was tried and decided, in words and figures.
    {fitted}

    Examples
    --------
    >>> from sapwood import SapwoodDistribution
    >>> model = SapwoodDistribution("normal", n_estimators=20).fit([[0], [1]] * 50, [0, 1, 1, 3] * 25)
    >>> model.predict_dist([[0], [1]]).interval(0.9).shape
    (2, 2)
    """

    _table: ClassVar[Mapping[str, Parameter]] = ROWS
    _instead: ClassVar[Mapping[str, str]] = INSTEAD
    family_: Family

    def __init__(self, dist: Any = "auto", **params: Any) -> None:
        super().__init__(dist=dist, **params)

    __init__.__signature__ = signature(ROWS, "dist")  # type: ignore[attr-defined]

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        eval_set: Any = None,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As in `SapwoodRegressor.fit`.
        y : (n_rows,) array-like
            Numbers that the family can have.
        sample_weight : (n_rows,) array-like, optional
            How many rows each row stands for.
        group : (n_rows,) array-like, optional
            Groups that are held out as a whole.
        eval_set : (X, y) or list of one such pair, optional
            Rows to stop and to recalibrate on, in the place of folds: there is one
            model then.

        Returns
        -------
        self
        """
        if self.dist != "auto":
            family_of(self.dist)  # an unknown name raises before any work
        Integer(0).check(f"n_folds={self.n_folds!r}", self.n_folds)
        if self.n_folds == 1:
            raise ParameterError(
                "n_folds=1 would hold out every row; choose 0, or 2 and more."
            )
        self._forget()
        given = {
            name: value for name, value in self._given().items() if name in PARAMETERS
        }
        settings = resolve(DEFAULTS | given)
        bins = {name: settings[name] for name in BINS}
        label = _target(y)
        data = EstimatorDataset(X, label, sample_weight, group=group, **bins)
        valid = None
        if eval_set is not None:
            pair = (
                eval_set[0]
                if isinstance(eval_set, list) and len(eval_set) == 1
                else eval_set
            )
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise DataError("eval_set is not a pair (X, y), or a list of one.")
            valid = EstimatorDataset(pair[0], _target(pair[1]), reference=data, **bins)
        fitted = fit_distribution(
            DEFAULTS | given, data, self.dist, self.n_folds, valid
        )
        self.booster_ = fitted.booster
        self.family_ = fitted.family
        self.n_features_in_ = data.n_given
        if data.named:
            self.feature_names_in_ = np.array(
                data.feature_names[: data.n_given], object
            )
        return self

    def predict_dist(self, X: Any) -> Distribution:
        """Predict the distribution of every row: mean, std, quantile, cdf, logpdf,
        sample, interval.
        """
        scores = self._booster(X).predict(X, raw=True, n_jobs=self.n_jobs)
        return Distribution(self.family_, scores)

    def predict(self, X: Any) -> Floats:
        """Predict the mean of every row, (n_rows,)."""
        return self.predict_dist(X).mean()

    def predict_quantile(self, X: Any, level: ArrayLike = 0.5) -> Floats:
        """Predict quantiles, (n_rows,) or (n_rows, n_levels); they never cross."""
        return self.predict_dist(X).quantile(level)

    def interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Predict intervals that hold the target with a probability of `coverage`,
        (n_rows, 2).
        """
        return self.predict_dist(X).interval(coverage)

    def explain(self, X: Any, **options: Any) -> Any:
        """Explain the score of every parameter, as `Booster.explain` does; outputs
        follow `family_.parameters`.
        """
        return self._booster(X).explain(X, **options)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """The mean log likelihood; higher is better."""
        return -nll(_target(y), self.predict_dist(X), sample_weight)

    def _of_file(self, booster: Booster) -> dict[str, Any]:
        try:
            family = family_of(booster.objective)
        except ParameterError as cause:
            raise ModelFormatError(
                f"objective {booster.objective!r} of the model is no distribution."
            ) from cause
        if booster.n_outputs != family.n_outputs:
            raise ModelFormatError(
                f"objective {booster.objective!r} with {booster.n_outputs} outputs is no model of SapwoodDistribution."
            )
        return {"family_": family, "dist": family.spec}


def _target(y: Any) -> Floats:
    """(n_rows,) numbers."""
    label = ingest.floats(y, "y")
    label = label[:, 0] if label.ndim == 2 and label.shape[1] == 1 else label
    if label.ndim != 1:
        raise DataError(
            f"a distribution has one target; y has the shape {label.shape}."
        )
    return label
