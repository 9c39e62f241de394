"""The estimator of survival analysis: risks, survival curves, quantiles and restricted means.

In: a table, and times with events, or bounds of times. Out: curves that never rise, and a risk that ranks rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sapwood.boost import train
from sapwood.data.dataset import Dataset
from sapwood.device import elementary
from sapwood.errors import DataError, ParameterError
from sapwood.interfaces.estimator import BINS, Estimator, EstimatorDataset, documented, signature
from sapwood.interfaces.parameters import PARAMETERS, TARGET_PARAMETERS, rows_with
from sapwood.metric.survival import concordance
from sapwood.model.booster import Booster
from sapwood.objective.survival import Aft, Cox, Hazard, edges_of
from sapwood.params import MANY_EVENTS, ByEvents, Parameter, defaults_of, resolve
from sapwood.params.types import Choice, Integer, Number

Floats = NDArray[np.float64]
MODELS = ("hazard", "cox", "aft")


# Parameters that say what is learned, or are for other targets than times.
OTHERS = TARGET_PARAMETERS | {"early_stopping_rounds"}
# Chosen by five folds inside the training parts of the tables of docs/survival.md.
DEFAULTS = defaults_of("survival")
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
    Parameter(
        "departure", Number(0, low_open=True), 0.1,
        "Hazard: how freely curves of rows differ in shape. The log hazard of an interval is a score of the row plus "
        "`departure` times a score of the interval, so that the latter is penalised by reg_lambda / departure^2.",
    ),
)  # fmt: skip
ROWS = rows_with(OWN, "survival", OTHERS)


@dataclass(frozen=True)
class Curve:
    """A curve of one row, as scikit-survival's step functions: call it with times."""

    x: Floats  # times of events in training
    y: Floats  # the curve at these
    at: Callable[[Floats], Floats]

    def __call__(self, times: Any) -> Any:
        """The curve at one time, or at each of several."""
        found = self.at(np.atleast_1d(np.asarray(times, np.float64)))
        return found if np.ndim(times) else float(found[0])


@dataclass(frozen=True)
class Learned:
    """What was learned of one cause: a model, and how its scores become cumulative hazards."""

    booster: Booster
    goal: Any  # Cox, Aft or Hazard
    grid: Floats  # Cox: distinct times; hazard: ends of intervals; between two of them nothing changes but a line
    baseline: Floats  # Cox: the cumulative hazard at each

    def cumulative(self, score: Floats, at: Floats) -> Floats:
        """(n_rows, n_times) cumulative hazards."""
        if isinstance(self.goal, Hazard):
            return self.goal.cumulative(score, at)
        if isinstance(self.goal, Cox):
            base = np.append(0.0, self.baseline)[np.searchsorted(self.grid, at, side="right")]
            return np.asarray(elementary.exp(score)[:, None] * base)
        return np.asarray(-elementary.log(np.maximum(self.goal.survival(score, at), 1e-300)))


@documented
class SapwoodSurvival(Estimator):
    """Gradient boosting of decision trees for times until an event, some of them censored.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: scores, importances, text, files; with competing causes that of the first.
    causes_ : ndarray
        The numbers of the causes of events; [1] where there is one.
    event_times_ : ndarray
        Distinct times of events in training.
    {fitted}

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
            (lower, upper), bounds of the time: equal where it is known, upper infinite where it is censored. With
            competing causes, events are 0 (censored), 1, 2, ...; each cause has a model of its own.
        sample_weight : (n_rows,) array-like, optional
        entry : (n_rows,) array-like, optional
            Times from which rows are observed (left truncation); for 'hazard' and 'cox'.
        """
        for row in OWN:
            value = getattr(self, row.name)
            row.type.check(f"{row.name}={value!r}", value)
        self._forget()
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        if self.model == "aft":
            if entry is not None:
                raise ParameterError("entry is for model='hazard' and 'cox'; leave it out.")
            label = bounds(y)
            self.event_times_, self.causes_ = np.unique(label[label[:, 0] == label[:, 1], 0]), np.array([1])
            self._n_events = int((label[:, 1] < 1e300).sum())
            goals = [(Aft(self.dist), label)]
        else:
            goals = self._goals(y, weight, entry)
        self._learned: list[Learned] = []
        for goal, label in goals:
            settings = self._settings(goal)
            data = EstimatorDataset(X, label, sample_weight, **{name: settings[name] for name in BINS})
            self._learned.append(self._learn(goal, settings, data, X, label, weight))
        self.booster_, self.n_features_in_ = self._learned[0].booster, data.n_given
        if data.named:
            self.feature_names_in_ = np.array(data.feature_names[: data.n_given], object)
        return self

    def predict(self, X: Any, cause: int | None = None) -> Floats:
        """The risk of every row, (n_rows,): higher means sooner, as in scikit-survival.

        With competing causes it is the risk of any event, or that of one cause.
        """
        check_is_fitted(self, "booster_")
        chosen = self._of_cause(cause)
        if len(chosen) == 1 and self.model != "hazard":
            score = self._score(X, chosen[0])
            return -score if self.model == "aft" else score
        return np.asarray(elementary.log(np.maximum(self._total(X, chosen, chosen[0].grid[-1:])[:, 0], 1e-300)))

    def predict_cumulative_hazard(self, X: Any, times: Any = None, cause: int | None = None) -> Floats:
        """The cumulative hazard of every row at each of `times`, (n_rows, n_times); by default at `event_times_`.

        With competing causes it is that of any event, or of one cause.
        """
        check_is_fitted(self, "booster_")
        return self._total(X, self._of_cause(cause), self._times(times))

    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False) -> Any:
        """The cumulative hazard of every row as a `Curve`, or at `event_times_`: scikit-survival's method."""
        return self._curves(X, "predict_cumulative_hazard", return_array)

    def predict_survival_function(self, X: Any, times: Any = None, return_array: bool = False) -> Any:
        """The probability of every row to live longer than each of `times`, (n_rows, n_times).

        Without times an array of a `Curve` for each row, which scikit-survival's tools take; or with ``return_array``
        the probabilities at `event_times_`.
        """
        if times is None:
            return self._curves(X, "_survival", return_array)
        return self._survival(X, times)

    def predict_cumulative_incidence(self, X: Any, times: Any = None) -> Floats:
        """The probability of an event of each cause up to each of `times`, (n_rows, n_causes, n_times).

        The probabilities of all causes and that of no event sum to 1.
        """
        check_is_fitted(self, "booster_")
        if self.model == "aft":
            return 1.0 - self._survival(X, times)[:, np.newaxis]
        at = self._times(times)
        grid = np.unique(np.concatenate([[0.0], at, *(one.grid for one in self._learned)]))
        each = np.stack([one.cumulative(self._score(X, one), grid) for one in self._learned], axis=1)
        step, total = np.diff(each, axis=2), np.zeros(each[:, 0].shape)
        for k in range(each.shape[1]):
            total = total + each[:, k]
        left, risen = np.asarray(elementary.exp(-total)), np.diff(total, axis=1)
        share = step / np.where(risen > 0, risen, 1.0)[:, np.newaxis]
        found = np.zeros_like(each)
        found[:, :, 1:] = np.cumsum(share * (left[:, :-1] - left[:, 1:])[:, np.newaxis], axis=2)
        return found[:, :, np.searchsorted(grid, at)]

    def predict_quantile(self, X: Any, level: float = 0.5) -> Floats:
        """The time by which a share `level` of rows like each has had its event; inf where the curve does not fall so
        far."""
        level = Number(0, 1, low_open=True, high_open=True).check(f"level={level!r}", level)
        check_is_fitted(self, "booster_")
        if self.model == "aft":
            return np.asarray(self._learned[0].goal.quantile(self._score(X, self._learned[0]), level))
        at = np.append(0.0, np.unique(np.concatenate([one.grid for one in self._learned])))
        hazard, wanted = self.predict_cumulative_hazard(X, at), -np.log1p(-level)
        reached = hazard[:, 1:] >= wanted
        place = reached.argmax(axis=1)
        found = at[1:][place]
        if self.model == "hazard":  # inside an interval the cumulative hazard is a line
            rows = np.arange(len(hazard))
            low, high = hazard[rows, place], hazard[rows, place + 1]
            share = np.where(high > low, (wanted - low) / np.where(high > low, high - low, 1.0), 1.0)
            found = at[place] + share * (found - at[place])
        return np.where(reached.any(axis=1), found, np.inf)

    def predict_restricted_mean(self, X: Any, tau: float | None = None, n_points: int = 512) -> Floats:
        """The mean time up to `tau`, by default the last event: the area below the survival curve."""
        end = float(self.event_times_[-1]) if tau is None else Number(0, low_open=True).check(f"tau={tau!r}", tau)
        at = np.linspace(0.0, end, Integer(2).check(f"n_points={n_points!r}", n_points))
        curve = self._survival(X, at)
        return np.asarray(((curve[:, 1:] + curve[:, :-1]) / 2 * np.diff(at)).sum(axis=1))

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance index of the risk of any event."""
        time, event = times_and_events(y)
        risk = self.predict(X)
        if len(risk) != len(time):
            raise DataError(f"y has {len(time)} values for {len(risk)} rows of X.")
        return concordance(time, event > 0, risk)

    def _goals(self, y: Any, weight: Floats | None, entry: Any) -> list[tuple[Any, Floats]]:
        """The losses of 'hazard' and 'cox', one a cause, with the labels of each."""
        time, event = times_and_events(y)
        start = np.zeros(len(time)) if entry is None else np.asarray(entry, np.float64)
        if entry is not None and (start.shape != time.shape or not (start >= 0).all() or (start >= time).any()):
            raise DataError("entry must be one time of at least 0 for each row, and before the row's own time.")
        live = np.ones(len(time), np.bool_) if weight is None else weight > 0
        if not (event[live] > 0).any():
            raise DataError("no row has an event, so there is nothing to learn; check which rows are censored.")
        self.event_times_, self._n_events = np.unique(time[live & (event > 0)]), int((event[live] > 0).sum())
        self.causes_ = np.unique(event[live & (event > 0)])
        edges = edges_of(time[live], event[live] > 0, self.n_intervals)
        goals: list[tuple[Any, Floats]] = []
        for cause in self.causes_:
            mine = (event == cause).astype(np.float64)
            if self.model == "hazard":
                goals.append((Hazard(edges, self.departure), np.column_stack([start, time, mine])))
            else:
                goals.append((Cox(self.ties), np.column_stack([time, mine] + ([] if entry is None else [start]))))
        return goals

    def _settings(self, goal: Any) -> dict[str, Any]:
        """Parameters of one training."""
        given = {name: value for name, value in self._given().items() if name in PARAMETERS}
        if goal.n_outputs > 1:
            given.setdefault("multi_strategy", "multi_output_tree")
        many = self._n_events >= MANY_EVENTS
        own = {name: (v.many if many else v.few) if isinstance(v, ByEvents) else v for name, v in DEFAULTS.items()}
        if {"max_depth", "grow_policy"} & given.keys():  # they limit trees themselves
            own["max_leaves"] = "auto"
        return resolve({**own, **given, "objective": goal, "eval_metric": "none"})

    def _learn(
        self, goal: Any, settings: Mapping[str, Any], data: Dataset, X: Any, label: Floats, weight: Floats | None
    ) -> Learned:
        """Train the model of one cause."""
        booster = train(settings, data)
        if self.model == "cox":
            score = booster.predict(X, raw=True, n_jobs=self.n_jobs)
            return Learned(booster, goal, *goal.baseline(label, score, weight))
        grid = goal.edges[1:] if self.model == "hazard" else np.zeros(0)
        return Learned(booster, goal, grid, np.zeros(0))

    def _of_cause(self, cause: int | None) -> list[Learned]:
        """What was learned of one cause, or of all."""
        if cause is None:
            return self._learned
        if not isinstance(cause, int | np.integer) or cause not in self.causes_:
            raise ParameterError(f"cause={cause!r} is unknown; training had {', '.join(map(str, self.causes_))}.")
        return [self._learned[int(np.flatnonzero(self.causes_ == cause)[0])]]

    def _score(self, X: Any, of: Learned) -> Floats:
        self._booster(X)  # checks its names
        return of.booster.predict(X, raw=True, n_jobs=self.n_jobs)

    def _times(self, times: Any) -> Floats:
        try:
            at = self.event_times_ if times is None else np.atleast_1d(np.asarray(times, np.float64))
        except (TypeError, ValueError) as cause:
            raise DataError(f"times={str(times)[:100]!r} is not a list of numbers.") from cause
        if at.ndim > 1 or not np.isfinite(at).all() or at.min(initial=0.0) < 0:
            raise DataError("times must be one list of finite numbers of at least 0.")
        return at

    def _total(self, X: Any, learned: list[Learned], at: Floats) -> Floats:
        """Cumulative hazards of several causes together."""
        total = learned[0].cumulative(self._score(X, learned[0]), at)
        for one in learned[1:]:
            total = total + one.cumulative(self._score(X, one), at)
        return total

    def _survival(self, X: Any, times: Any = None) -> Floats:
        check_is_fitted(self, "booster_")
        if self.model == "aft":
            return np.asarray(self._learned[0].goal.survival(self._score(X, self._learned[0]), self._times(times)))
        return np.asarray(elementary.exp(-self.predict_cumulative_hazard(X, times)))

    def _curves(self, X: Any, method: str, return_array: bool) -> Any:
        """Values at `event_times_`, or a curve for each row."""
        values = getattr(self, method)(X)
        if return_array:
            return values
        rows = X.iloc if hasattr(X, "iloc") else X if hasattr(X, "__array__") else np.asarray(X)
        curves = np.empty(len(values), object)
        for row in range(len(values)):
            curves[row] = Curve(self.event_times_, values[row], partial(_row_at, self, method, rows[row : row + 1]))
        return curves


def _row_at(model: SapwoodSurvival, method: str, X: Any, times: Floats) -> Floats:
    """A curve of one row at several times."""
    found: Floats = getattr(model, method)(X, times)[0]
    return found


def times_and_events(y: Any) -> tuple[Floats, NDArray[np.int64]]:
    """Times and events (0: censored, else the cause) of a target: a structured array of event and time, or a pair."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        if len(names) != 2 or y.dtype[names[0]].kind not in "biu":
            raise DataError("a structured y has two fields, the event (boolean, or the cause) and the time.")
        event, time = np.asarray(y[names[0]]), np.asarray(y[names[1]], np.float64)
    elif isinstance(y, tuple | list) and len(y) == 2:
        time, event = np.asarray(y[0], np.float64), np.asarray(y[1])
    else:
        raise DataError("y is neither a structured array of event and time nor a pair (time, event).")
    if time.ndim != 1 or event.shape != time.shape:
        raise DataError(f"times {time.shape} and events {event.shape} must have one value for each row.")
    if not np.isfinite(time).all() or (time < 0).any():
        raise DataError("times must be finite and at least 0.")
    if event.dtype.kind not in "biuf" or (event < 0).any() or (event != np.floor(event)).any():
        raise DataError("events are 0 (censored) or the number of the cause: 1, or 1, 2, ... where causes compete.")
    return time, event.astype(np.int64)


def bounds(y: Any) -> Floats:
    """(n_rows, 2) bounds of times for 'aft'."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    second = None if names is not None else np.asarray(y[1]) if isinstance(y, tuple | list) and len(y) == 2 else None
    if names is not None or (second is not None and second.dtype.kind == "b"):
        time, event = times_and_events(y)
        if (event > 1).any():
            raise DataError("competing causes are for model='hazard' and 'cox'.")
        low, high = time, np.where(event > 0, time, np.inf)
    elif second is not None:
        low, high = np.asarray(y[0], np.float64), np.asarray(second, np.float64)
    else:
        raise DataError("y is neither a structured array nor a pair (lower, upper), or (time, event) with booleans.")
    if low.ndim != 1 or high.shape != low.shape or not np.isfinite(low).all() or np.isnan(high).any():
        raise DataError("bounds of times must have one value for each row, and be numbers.")
    if (low < 0).any() or (low > high).any() or (high <= 0).any():
        raise DataError("bounds of times need 0 <= lower <= upper, and upper above 0.")
    return np.column_stack([low, np.where(np.isinf(high), 1e300, high)])
