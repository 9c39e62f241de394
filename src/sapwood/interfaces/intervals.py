"""Intervals and prediction sets of the estimators, by conformal prediction.

In: an estimator with a `conformal` method, or calibration rows. Out: intervals with a
stated coverage.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sapwood.boost import splits
from sapwood.boost.auto import blend
from sapwood.data import ingest
from sapwood.errors import DataError, ParameterError
from sapwood.interfaces.target import TrainingRows
from sapwood.metric.conformal import Calibration
from sapwood.model.booster import Booster
from sapwood.model.constraint_proof import Verdict
from sapwood.params.table import BY_NAME
from sapwood.params.types import Number

Floats = NDArray[np.float64]
SHARE = Number(0, 1, low_open=True, high_open=True)
HELD = 0.2  # the fraction of the rows that 'split' holds out
# models of 'cv+' and 'cross'; of tables of more than so many rows
FOLDS = 10
FEW_FOLDS = 5
FEW_ROWS = 2000


def fit(
    estimator: Any,
    rows: TrainingRows,
    told: bool,
    callbacks: Any,
    now: dict[str, Any],
    start: float,
) -> None:
    """Fit an estimator whose `conformal` is set: on a part of the rows, or a model for
    each of several folds.

    ``told``: validation rows or a model to continue from were given too. ``now``:
    parameters of this fit alone. ``start``: when the fit began; all models together
    have the time limit of the estimator. Models of folds have the bins and categories
    of all rows, so that their trees can be those of one model.
    """
    if not hasattr(estimator, "calibrate"):
        raise ParameterError(
            "conformal is for numbers and classes, not for this estimator; leave it out."
        )
    how = BY_NAME["conformal"].type.check(
        f"conformal={estimator.conformal!r}", estimator.conformal
    )
    seed = estimator.random_state
    X = rows.X
    y = rows.y
    if told or rows.init_score is not None:
        raise ParameterError(
            f"conformal={how!r} holds out rows itself; leave out validation rows, init_score and init_model."
        )
    n_rows = len(np.asarray(y))
    if n_rows < 2:
        raise DataError(f"conformal={how!r} holds out rows, and there are {n_rows}.")
    weight = (
        np.ones(n_rows)
        if rows.weight is None
        else ingest.floats(rows.weight, "sample_weight")
    )
    numbers = None if rows.group is None else ingest.group(rows.group, n_rows)
    seed = int(seed) if isinstance(seed, int | np.integer) else 0
    if how == "split":
        masks = [splits.holdout(seed, HELD, n_rows, weight, None, numbers)]
    else:
        n_units = n_rows if numbers is None else int(numbers.max()) + 1
        if n_units < 2:
            raise DataError(
                f"conformal={how!r} holds out whole groups, and there is one; leave group out."
            )
        n_folds = min(FOLDS if n_rows <= FEW_ROWS else FEW_FOLDS, n_units)
        fold = splits.folds(seed, n_folds, n_rows, None, numbers)
        masks = [fold == which for which in range(n_folds)]
    models = []
    limit = estimator.time_limit
    for at, mask in enumerate(masks):
        model = clone(estimator).set_params(conformal=None)
        if limit is not None:  # what is left of it, in equal parts
            left = limit - (time.monotonic() - start)
            model.set_params(time_limit=max(1e-3, left / (len(masks) - at)))
        part = rows._replace(
            weight=np.where(mask, 0.0, weight),
            bin_weight=None if how == "split" else weight,
        )
        models.append(model._fit(part, (), callbacks, None, now, time.monotonic()))
    scores = [
        one._conformity(X, y, mask & (weight > 0))
        for one, mask in zip(models, masks, strict=True)
    ]
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
    vars(estimator).update(
        {name: value for name, value in vars(models[0]).items() if name.endswith("_")}
    )
    estimator.calibration_ = Calibration(
        tuple(scores) if how == "cv+" else (np.concatenate(scores),), None
    )
    if len(models) > 1:
        boosters = [one.booster_ for one in models]
        estimator.booster_ = blend.merge(boosters, [1.0 / len(models)] * len(models))
        if how == "cv+":
            estimator.fold_boosters_ = boosters


class Conformal:
    """What both estimators share: calibration."""

    calibration_: Calibration
    booster_: Booster
    fold_boosters_: list[Booster]
    conformal: Any
    n_jobs: Any

    def calibrate(self, X: Any, y: ArrayLike, group: ArrayLike | None = None) -> Self:
        """Calibrate a fitted estimator on rows that it was not trained on, for
        intervals or prediction sets.

        Parameters
        ----------
        X, y : table and (n_rows,) array-like
            Rows like those to come.
        group : (n_rows,) array-like, optional
            Coverage is to hold in each of these groups.
        """
        check_is_fitted(self)
        n_rows = len(np.asarray(y))
        if n_rows == 0:
            raise DataError("there are no rows to calibrate on.")
        scores = self._conformity(X, y, np.ones(n_rows, np.bool_))
        if np.isnan(scores).any():
            raise DataError(
                f"y in row {int(np.isnan(scores).argmax())} is not a number, so no error can be measured."
            )
        if group is not None and np.asarray(group).shape != (n_rows,):
            raise DataError(f"group needs one value for each of {n_rows} rows.")
        self.calibration_ = Calibration(
            (scores,), None if group is None else (np.asarray(group),)
        )
        if hasattr(self, "fold_boosters_"):
            del self.fold_boosters_
        return self

    def _calibrated(self, coverage: float) -> Calibration:
        """The calibration; raise where there is none."""
        check_is_fitted(self)
        SHARE.check(f"coverage={coverage!r}", coverage)
        if not hasattr(self, "calibration_"):
            raise ParameterError(
                "there is no calibration; set conformal='split', 'cross' or 'cv+', or call calibrate with rows of "
                "your own."
            )
        return self.calibration_

    def _conformity(self, X: Any, y: Any, rows: NDArray[np.bool_]) -> Floats:
        """How badly the model predicts some rows of a table."""
        raise NotImplementedError


class RegressionIntervals(Conformal):
    """Intervals of numbers."""

    def interval(
        self, X: Any, coverage: float = 0.9, group: ArrayLike | None = None
    ) -> Floats:
        """Compute intervals that hold the target with a stated probability.

        The guarantee needs rows to come that are like those of the calibration
        (exchangeable). With conformal='split', or after `calibrate`, at least
        `coverage` of new targets lie inside; with 'cv+' at least 1 - 2 (1 - coverage),
        less a term of about 1 / (rows of a fold), and in practice somewhat more than
        `coverage`. 'cross' comes nearer to `coverage`, without a bound that holds for
        every model.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
        coverage : float
        group : (n_rows,) array-like, optional
            Groups in each of which the coverage is to hold, after `calibrate` with
            groups. Groups that it has not met, or of which it has too few rows, get the
            width of all rows.

        Returns
        -------
        (n_rows, 2) float64
            Infinite where there are too few rows for the coverage. With `quantiles`,
            the outermost levels are widened or narrowed (conformalised quantile
            regression); otherwise the interval is the prediction and a width.
        """
        calibration = self._calibrated(coverage)
        if len(calibration.scores) > 1:
            if group is not None:
                raise ParameterError(
                    "group is for calibrate, not conformal='cv+'; leave it out."
                )
            ends = [
                self._ends(one.predict(X, n_jobs=self.n_jobs))
                for one in self.fold_boosters_
            ]
            return np.stack(
                calibration.cross(
                    [low for low, _ in ends], [high for _, high in ends], coverage
                ),
                axis=1,
            )
        low, high = self._ends(self.predict(X))  # type: ignore[attr-defined]
        width = calibration.widths(coverage, group, len(low))
        low = low - width
        high = high + width
        with np.errstate(invalid="ignore"):
            # an interval that was narrowed to less than nothing is a point
            middle = (low + high) / 2
            return np.where(
                (low > high)[:, None], middle[:, None], np.stack([low, high], axis=1)
            )

    def check_quantiles(self) -> Verdict:
        """Prove that quantiles cross for no row there can be; see
        `Booster.check_quantiles`.
        """
        check_is_fitted(self)
        return self.booster_.check_quantiles()

    def _ends(self, prediction: Floats) -> tuple[Floats, Floats]:
        """Both ends of the interval before calibration."""
        if prediction.ndim == 1:
            return prediction, prediction
        if self.booster_.link != "ascending":
            raise ParameterError("interval is for one target; this model has several.")
        return prediction[:, 0], prediction[:, -1]

    def _conformity(self, X: Any, y: Any, rows: NDArray[np.bool_]) -> Floats:
        """How far targets lie outside of the interval, or inside (negative)."""
        target = ingest.floats(y, "y")
        if target.ndim != 1:
            raise ParameterError("interval is for one target; y has several columns.")
        low, high = self._ends(self.predict(X))  # type: ignore[attr-defined]
        if len(low) != len(target):
            raise DataError(f"X has {len(low)} rows, but y has {len(target)}.")
        return np.maximum(low - target, target - high)[rows]


class PredictionSets(Conformal):
    """Sets of classes."""

    classes_: NDArray[Any]

    def predict_set(
        self, X: Any, coverage: float = 0.9, group: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Find the classes that a row may have: sets that hold its class with a stated
        probability.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
        coverage, group
            As in `SapwoodRegressor.interval`.

        Returns
        -------
        (n_rows, n_classes_) bool
            Columns follow `classes_`. A set may be empty where no class is likely
            enough.
        """
        calibration = self._calibrated(coverage)
        if len(calibration.scores) == 1:
            p = self.predict_proba(X)  # type: ignore[attr-defined]
            return np.asarray(
                1.0 - p <= calibration.widths(coverage, group, len(p))[:, None]
            )
        if group is not None:
            raise ParameterError(
                "group is for calibrate, not conformal='cv+'; leave it out."
            )
        n = sum(map(len, calibration.scores))
        worse = 0
        for booster, scores in zip(
            self.fold_boosters_, calibration.scores, strict=True
        ):
            cost = 1.0 - self._two_columns(booster.predict(X, n_jobs=self.n_jobs))  # type: ignore[attr-defined]
            own = np.sort(scores)
            worse = worse + (len(own) - np.searchsorted(own, cost, side="left"))
        return np.asarray(worse + 1 > (1.0 - coverage) * (n + 1) - 1e-9)

    def _conformity(self, X: Any, y: Any, rows: NDArray[np.bool_]) -> Floats:
        """1 - the probability of the class that a row has."""
        p = self.predict_proba(X)  # type: ignore[attr-defined]
        values = np.asarray(y)
        if values.ndim != 1:
            raise ParameterError("prediction sets are for one class a row.")
        if len(p) != len(values):
            raise DataError(f"X has {len(p)} rows, but y has {len(values)}.")
        place = {one: at for at, one in enumerate(self.classes_.tolist())}
        known: Sequence[Any] = values[rows].tolist()
        if unseen := [one for one in known if one not in place]:
            raise DataError(
                f"calibration rows have the class {unseen[0]!r}, which the model does not know."
            )
        at = np.array([place[one] for one in known], np.intp)
        found: Floats = 1.0 - p[rows][np.arange(len(at)), at]
        return found
