"""The estimator of survival analysis: risks, survival curves, quantiles and restricted means.

In: a table, and times with events, or bounds of times. Out: curves that never rise, and a risk that ranks rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.boost import train
from sapwood.device import elementary
from sapwood.errors import DataError, ParameterError
from sapwood.interfaces.estimator import BINS, Estimator, EstimatorDataset, documented, signature
from sapwood.interfaces.parameters import FIELDS, PARAMETERS
from sapwood.metric.survival import concordance
from sapwood.objective.survival import Aft, Cox, Hazard, edges_of
from sapwood.params import Parameter, resolve
from sapwood.params.types import Choice, Integer

Floats = NDArray[np.float64]
MODELS = ("hazard", "cox", "aft")


# Parameters that say what is learned, or are for other targets than times.
OTHERS = {
    "objective", "recipe", "class_weight", "subsample_by_class", "quality", "time_limit", "quantiles", "conformal",
    "early_stopping_rounds", "validation_fraction", "prune_by_validation", "eval_metric", "eval_at", "start",
}  # fmt: skip
DEFAULTS = {"learning_rate": 0.05, "max_leaves": 8, "min_samples_leaf": 10, "min_child_weight": 0.0}
OWN = (
    Parameter(
        "model", Choice(MODELS), "hazard",
        "'hazard': a hazard for each interval of time, which may differ in shape from row to row. 'cox': a factor on "
        "one baseline hazard. 'aft': the log of the time is a score plus noise; it takes bounds of times.",
    ),
    Parameter("ties", Choice(("efron", "breslow")), "efron", "Cox: how events of one time share their risk set."),
    Parameter(
        "dist", Choice(("logistic", "normal", "extreme")), "logistic",
        "Aft: the noise of the log of the time; its scale is learned.",
    ),
    Parameter("n_intervals", Integer(1), 10, "Hazard: intervals of time, with about as many events each."),
)  # fmt: skip
ROWS = {row.name: row for row in OWN} | {
    name: replace(row, default=DEFAULTS.get(name, row.default))
    for name, row in PARAMETERS.items()
    if not (row.ranking or name in OTHERS or name in FIELDS)
}


@documented
class SapwoodSurvival(Estimator):
    """Gradient boosting of decision trees for times until an event, some of them censored.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: scores, importances, text, files.
    event_times_ : ndarray
        Distinct times of events in training.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) ndarray of str
        Present where the training table had names.
    n_iter_ : int
    feature_importances_ : (n_features_in_,) ndarray

    Examples
    --------
    >>> from sapwood import SapwoodSurvival
    >>> model = SapwoodSurvival(n_estimators=5).fit([[0], [1], [2], [3]] * 20, ([4, 3, 2, 1] * 20, [1, 1, 0, 1] * 20))
    >>> model.predict_survival_function([[0], [3]], times=[2]).shape
    (2, 1)
    """

    _table: ClassVar[Mapping[str, Parameter]] = ROWS

    def __init__(self, model: str = "hazard", **params: Any) -> None:
        super().__init__(model=model, **params)

    __init__.__signature__ = signature(ROWS, "model")  # type: ignore[attr-defined]

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, entry: Any = None
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
        y : structured array, or pair of array-likes
            An array of two fields, event and time, as in scikit-survival; (time, event); or for model='aft'
            (lower, upper), bounds of the time: equal where it is known, upper infinite where it is censored.
        sample_weight : (n_rows,) array-like, optional
        entry : (n_rows,) array-like, optional
            Times from which rows are observed (left truncation); for 'hazard' and 'cox'.
        """
        for row in OWN:
            value = getattr(self, row.name)
            row.type.check(f"{row.name}={value!r}", value)
        self._forget()
        goal: Any
        if self.model == "aft":
            if entry is not None:
                raise ParameterError("entry is for model='hazard' and 'cox'; leave it out.")
            goal, label = Aft(self.dist), bounds(y)
            self.event_times_ = np.unique(label[label[:, 0] == label[:, 1], 0])
        else:
            time, event = times_and_events(y)
            start = np.zeros(len(time)) if entry is None else np.asarray(entry, np.float64)
            if entry is not None and (start.shape != time.shape or not (start >= 0).all() or (start >= time).any()):
                raise DataError("entry must be one time of at least 0 for each row, and before the row's own time.")
            live = np.ones(len(time), np.bool_) if sample_weight is None else np.asarray(sample_weight, np.float64) > 0
            if not (event & live).any():
                raise DataError("no row has an event, so there is nothing to learn; check which rows are censored.")
            self.event_times_ = np.unique(time[event & live])
            if self.model == "cox":
                goal = Cox(self.ties)
                label = np.column_stack([time, event] + ([] if entry is None else [start]))
            else:
                goal = Hazard(edges_of(time[live], event[live], self.n_intervals))
                label = np.column_stack([start, time, event])
        given = {name: value for name, value in self._given().items() if name in PARAMETERS}
        if self.model == "hazard" and goal.n_outputs > 1:
            given.setdefault("multi_strategy", "multi_output_tree")
        settings = resolve(DEFAULTS | given | {"objective": goal, "eval_metric": "none"})
        data = EstimatorDataset(X, label, sample_weight, **{name: settings[name] for name in BINS})
        self.booster_ = train(settings, data)
        self._goal, self.n_features_in_ = goal, data.n_given
        if data.named:
            self.feature_names_in_ = np.array(data.feature_names[: data.n_given], object)
        if self.model == "cox":
            score = self._score(X)
            weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
            self._times, self._baseline = goal.baseline(label, score, weight)
        return self

    def predict(self, X: Any) -> Floats:
        """The risk of every row, (n_rows,): higher means sooner, as in scikit-survival."""
        score = self._score(X)
        if self.model == "aft":
            return -score
        if self.model == "cox":
            return score
        return np.asarray(elementary.log(self._goal.cumulative(score, self._goal.edges[-1:])[:, 0]))

    def predict_cumulative_hazard(self, X: Any, times: Any = None) -> Floats:
        """The cumulative hazard of every row at each of `times`, (n_rows, n_times); by default at `event_times_`."""
        at = self.event_times_ if times is None else np.atleast_1d(np.asarray(times, np.float64))
        if not np.isfinite(at).all() or at.min(initial=0.0) < 0:
            raise DataError("times must be finite and at least 0.")
        score = self._score(X)
        if self.model == "hazard":
            found: Floats = self._goal.cumulative(score, at)
        elif self.model == "cox":
            base = np.append(0.0, self._baseline)[np.searchsorted(self._times, at, side="right")]
            found = elementary.exp(score)[:, None] * base
        else:
            found = -elementary.log(np.maximum(self._goal.survival(score, at), 1e-300))
        return found

    def predict_survival_function(self, X: Any, times: Any = None) -> Floats:
        """The probability of every row to live longer than each of `times`, (n_rows, n_times)."""
        if self.model == "aft":
            at = self.event_times_ if times is None else np.atleast_1d(np.asarray(times, np.float64))
            return np.asarray(self._goal.survival(self._score(X), at))
        return np.asarray(elementary.exp(-self.predict_cumulative_hazard(X, times)))

    def predict_quantile(self, X: Any, level: float = 0.5) -> Floats:
        """The time by which a share `level` of rows like each has had its event; inf where the curve does not fall so
        far."""
        if not 0 < level < 1:
            raise ParameterError(f"level={level!r} is not between 0 and 1.")
        if self.model == "aft":
            return np.asarray(self._goal.quantile(self._score(X), level))
        at = self._goal.edges[1:] if self.model == "hazard" else self._times
        hazard, wanted = self.predict_cumulative_hazard(X, at), -np.log1p(-level)
        reached = hazard >= wanted
        place = reached.argmax(axis=1)
        found = np.where(reached.any(axis=1), at[place], np.inf)
        if self.model == "hazard":  # inside an interval the cumulative hazard is a line
            rows = np.arange(len(hazard))
            whole = np.concatenate([np.zeros((len(hazard), 1)), hazard], axis=1)
            low, high = whole[rows, place], whole[rows, place + 1]
            share = np.where(high > low, (wanted - low) / np.where(high > low, high - low, 1.0), 1.0)
            inside = self._goal.edges[place] + share * (at[place] - self._goal.edges[place])
            found = np.where(reached.any(axis=1), inside, np.inf)
        return found

    def predict_restricted_mean(self, X: Any, tau: float | None = None, n_points: int = 512) -> Floats:
        """The mean time up to `tau`, by default the last event: the area below the survival curve."""
        end = float(self.event_times_[-1]) if tau is None else float(tau)
        at = np.linspace(0.0, end, n_points)
        curve = self.predict_survival_function(X, at)
        return np.asarray(((curve[:, 1:] + curve[:, :-1]) / 2 * np.diff(at)).sum(axis=1))

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance index."""
        time, event = times_and_events(y)
        return concordance(time, event, self.predict(X))

    def _score(self, X: Any) -> Floats:
        return self._booster(X).predict(X, raw=True, n_jobs=self.n_jobs)


def times_and_events(y: Any) -> tuple[Floats, NDArray[np.bool_]]:
    """Times and events of a target: a structured array of event and time, or a pair (time, event)."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        if len(names) != 2 or y.dtype[names[0]].kind != "b":
            raise DataError("a structured y has two fields, the event (boolean) and the time.")
        event, time = np.asarray(y[names[0]]), np.asarray(y[names[1]], np.float64)
    elif isinstance(y, tuple | list) and len(y) == 2:
        time, event = np.asarray(y[0], np.float64), np.asarray(y[1])
    else:
        raise DataError("y is neither a structured array of event and time nor a pair (time, event).")
    if time.ndim != 1 or event.shape != time.shape:
        raise DataError(f"times {time.shape} and events {event.shape} must have one value for each row.")
    if not np.isfinite(time).all() or (time < 0).any():
        raise DataError("times must be finite and at least 0.")
    if event.dtype.kind != "b" and not np.isin(event, (0, 1)).all():
        raise DataError("events are 0 (censored) or 1; competing causes are not available.")
    return time, event.astype(np.bool_)


def bounds(y: Any) -> Floats:
    """(n_rows, 2) bounds of times for 'aft'."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    second = None if names is not None else np.asarray(y[1]) if isinstance(y, tuple | list) and len(y) == 2 else None
    if names is not None or (second is not None and second.dtype.kind == "b"):
        time, event = times_and_events(y)
        low, high = time, np.where(event, time, np.inf)
    elif second is not None:
        low, high = np.asarray(y[0], np.float64), np.asarray(second, np.float64)
    else:
        raise DataError("y is neither a structured array nor a pair (lower, upper), or (time, event) with booleans.")
    if low.ndim != 1 or high.shape != low.shape or not np.isfinite(low).all() or np.isnan(high).any():
        raise DataError("bounds of times must have one value for each row, and be numbers.")
    if (low < 0).any() or (low > high).any() or (high <= 0).any():
        raise DataError("bounds of times need 0 <= lower <= upper, and upper above 0.")
    return np.column_stack([low, np.where(np.isinf(high), 1e300, high)])
