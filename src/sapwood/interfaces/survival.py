"""The estimator of survival analysis: risks, survival curves, quantiles and restricted
means.

In: a table, and times with events, or bounds of times. Out: curves that never rise, and
a risk that ranks rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sapwood.boost import train
from sapwood.data import ingest
from sapwood.data.dataset import Dataset
from sapwood.device import elementary
from sapwood.errors import DataError, ParameterError, warn
from sapwood.interfaces.estimator import (
    BINS,
    Estimator,
    EstimatorDataset,
    documented,
    signature,
)
from sapwood.interfaces.files import WholeFiles
from sapwood.interfaces.kinds import SURVIVAL
from sapwood.interfaces.parameters import PARAMETERS, TARGET_PARAMETERS, rows_with
from sapwood.interfaces.survival_model import (
    MODELS,
    Curve,
    Learned,
    of_file,
    with_constants,
)
from sapwood.metric.survival import concordance
from sapwood.metric.times import (
    are_flags,
    lasting,
    numbers,
    pair_of,
    refuse_rows,
    times_and_events,
)
from sapwood.model.booster import Booster
from sapwood.objective.survival import NEVER, Aft, Cox, Hazard, edges_of
from sapwood.params import MANY_EVENTS, ByEvents, Parameter, defaults_of, resolve
from sapwood.params.types import Choice, Integer, Number

Floats = NDArray[np.float64]
UNBOUNDED = 1e300  # the upper bound of a time that is censored, as a finite number
NO_EVENT = (
    "no row has an event, so there is nothing to learn; check which rows are censored."
)


# Parameters that say what is learned, or are for other targets than times.
OTHERS = TARGET_PARAMETERS | {"early_stopping_rounds"}
# Chosen by five folds inside the training parts of the tables of docs/survival.md.
DEFAULTS = defaults_of("survival")
OWN = (
    Parameter(
        "model",
        Choice(MODELS),
        "hazard",
        "'hazard': a hazard for each interval of time, which may differ in shape from row to row. 'cox': a factor on "
        "one baseline hazard. 'aft': the log of the time is a score plus noise; it takes bounds of times.",
    ),
    Parameter(
        "ties",
        Choice(("efron", "breslow")),
        "efron",
        "Cox: how events of one time share their risk set.",
    ),
    Parameter(
        "dist",
        Choice(("logistic", "normal", "extreme")),
        "logistic",
        "Aft: the noise of the log of the time; its scale is learned.",
    ),
    Parameter(
        "n_intervals",
        Integer(1),
        10,
        "Hazard: intervals of time, with about as many events each.",
    ),
    Parameter(
        "departure",
        Number(0, low_open=True),
        0.1,
        "Hazard: how freely curves of rows differ in shape. The log hazard of an interval is a score of the row plus "
        "`departure` times a score of the interval, so that the latter is penalised by reg_lambda / departure^2.",
    ),
)
OF_MODEL = {
    "ties": "cox",
    "dist": "aft",
    "n_intervals": "hazard",
    "departure": "hazard",
}
ROWS = rows_with(OWN, "survival", OTHERS)


INSTEAD = {  # of parameters that it has not
    "objective": "model says what is learned",
    "eval_metric": "sapwood.metric has the metrics of survival, for predictions",
    "early_stopping_rounds": "it trains n_estimators rounds; a search with cross-validation can choose these",
    "validation_fraction": "it trains n_estimators rounds on all rows",
    "prune_by_validation": "it trains n_estimators rounds on all rows",
    "quality": "n_estimators and max_leaves say how it is trained",
    "time_limit": "fewer n_estimators take less time",
    "quantiles": "predict_quantile(X, levels) has any quantile of the time",
    "conformal": "predict_quantile(X, levels) has quantiles of the time; SapwoodRegressor has intervals of numbers",
}


@documented
class SapwoodSurvival(WholeFiles, Estimator):
    """Gradient boosting of decision trees for times until an event, some of them
    censored.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: scores, importances, text, files; with competing causes that of the
        first.
    causes_ : ndarray
        The numbers of the causes of events; [1] where there is one.
    event_times_ : ndarray
        Distinct times of events in training; upper bounds where no time is known.
    {fitted}

    Examples
    --------
    >>> from sapwood import SapwoodSurvival
    >>> model = SapwoodSurvival(n_estimators=5).fit([[0], [1], [2], [3]] * 20, ([4, 3, 2, 1] * 20, [1, 1, 0, 1] * 20))
    >>> model.predict_survival_function([[0], [3]], times=[2]).shape
    (2, 1)
    """

    _table: ClassVar[Mapping[str, Parameter]] = ROWS
    _instead: ClassVar[Mapping[str, str]] = INSTEAD

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
            An array of two fields, event and time, as in scikit-survival; (time,
            event); or for model='aft'
            (lower, upper), bounds of the time: equal where it is known, upper infinite
            where it is censored. Where
            the second has only 0 and 1, it is the event. With competing causes, events
            are 0 (censored), 1, 2, ...; each cause has a model of its own. Times are
            numbers of one unit; dates and durations raise.
        sample_weight : (n_rows,) array-like, optional
        entry : (n_rows,) array-like, optional
            Times from which rows are observed (left truncation); for 'hazard' and
            'cox'.
        """
        for row in OWN:
            value = getattr(self, row.name)
            row.type.check(f"{row.name}={value!r}", value)
            model = OF_MODEL.get(row.name, self.model)
            if model != self.model and value != row.default:
                raise ParameterError(
                    f"{row.name}={value!r} is for model={model!r}; leave it out of {self.model!r}."
                )
        self._forget()
        if self.model == "aft":
            if entry is not None:
                raise ParameterError(
                    "entry is for model='hazard' and 'cox'; leave it out."
                )
            label = bounds(y)
            weight = ingest.weight(sample_weight, len(label))
            known = (label[:, 1] < NEVER) & (True if weight is None else weight > 0)
            if not known.any():
                raise DataError(NO_EVENT)
            exact = known & (label[:, 0] == label[:, 1])
            self.event_times_, self.causes_ = (
                np.unique(label[exact if exact.any() else known, 1]),
                np.array([1]),
            )
            self._n_events = int((label[:, 1] < NEVER).sum())
            goals = [(Aft(self.dist), label)]
        else:
            time, event = target_of(y)
            weight = ingest.weight(sample_weight, len(time))
            goals = self._goals(time, event, weight, entry)
        learned: list[Learned] = []
        for goal, label in goals:
            settings = self._settings(goal)
            data = EstimatorDataset(
                X, label, sample_weight, **{name: settings[name] for name in BINS}
            )
            learned.append(self._learn(goal, settings, data, X, label, weight))
        self._learned = with_constants(
            learned, self.causes_.tolist(), self.event_times_
        )
        self.booster_, self.n_features_in_ = self._learned[0].booster, data.n_given
        if data.named:
            self.feature_names_in_ = np.array(
                data.feature_names[: data.n_given], object
            )
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
        return np.asarray(
            elementary.log(
                np.maximum(self._total(X, chosen, chosen[0].grid[-1:])[:, 0], 1e-300)
            )
        )

    def predict_cumulative_hazard(
        self, X: Any, times: Any = None, cause: int | None = None
    ) -> Floats:
        """The cumulative hazard of every row at each of `times`, (n_rows, n_times); by
        default at `event_times_`.

        With competing causes it is that of any event, or of one cause.
        """
        check_is_fitted(self, "booster_")
        return self._total(X, self._of_cause(cause), self._times(times))

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> Any:
        """The cumulative hazard of every row as a `Curve`, or at `event_times_`:
        scikit-survival's method.
        """
        return self._curves(X, "predict_cumulative_hazard", return_array)

    def predict_survival_function(
        self, X: Any, times: Any = None, return_array: bool = False
    ) -> Any:
        """The probability of every row to live longer than each of `times`, (n_rows,
        n_times).

        Without times an array of a `Curve` for each row, which scikit-survival's tools
        take; or with ``return_array`` the probabilities at `event_times_`.
        """
        if times is None:
            return self._curves(X, "_survival", return_array)
        return self._survival(X, times)

    def predict_cumulative_incidence(self, X: Any, times: Any = None) -> Floats:
        """The probability of an event of each cause up to each of `times`, (n_rows,
        n_causes, n_times).

        The probabilities of all causes and that of no event sum to 1.
        """
        check_is_fitted(self, "booster_")
        if self.model == "aft":
            return 1.0 - self._survival(X, times)[:, np.newaxis]
        at = self._times(times)
        grid = np.unique(
            np.concatenate([[0.0], at, *(one.grid for one in self._learned)])
        )
        each = np.stack(
            [one.cumulative(self._score(X, one), grid) for one in self._learned], axis=1
        )
        step = np.diff(each, axis=2)
        total = np.zeros(each[:, 0].shape)
        for k in range(each.shape[1]):
            total = total + each[:, k]
        left = np.asarray(elementary.exp(-total))
        risen = np.diff(total, axis=1)
        share = step / np.where(risen > 0, risen, 1.0)[:, np.newaxis]
        found = np.zeros_like(each)
        found[:, :, 1:] = np.cumsum(
            share * (left[:, :-1] - left[:, 1:])[:, np.newaxis], axis=2
        )
        return found[:, :, np.searchsorted(grid, at)]

    def predict_quantile(self, X: Any, level: Any = 0.5) -> Floats:
        """The time by which a share `level` of rows like each has had its event,
        (n_rows,), or (n_rows, n_levels).

        It is infinite where the curve does not fall so far.
        """
        kind = Number(0, 1, low_open=True, high_open=True)
        shares = np.asarray(level)
        several = shares.ndim == 1 and shares.dtype.kind in "iuf" and len(shares) > 0
        levels = [
            kind.check(f"level={level!r}", one)
            for one in (shares.tolist() if several else [level])
        ]
        check_is_fitted(self, "booster_")
        if self.model == "aft":
            score = self._score(X, self._learned[0])
            found = [self._learned[0].goal.quantile(score, one) for one in levels]
        else:
            at = np.append(
                0.0, np.unique(np.concatenate([one.grid for one in self._learned]))
            )
            hazard = self.predict_cumulative_hazard(X, at)
            found = [
                self._reached(at, hazard, -float(elementary.log1p(-one)))
                for one in levels
            ]
        return np.stack(found, axis=1) if several else found[0]

    def _reached(self, at: Floats, hazard: Floats, wanted: float) -> Floats:
        """The times at which cumulative hazards, known at some times, reach a value."""
        reached = hazard[:, 1:] >= wanted
        place = reached.argmax(axis=1)
        found = at[1:][place]
        if self.model == "hazard":  # inside an interval the cumulative hazard is a line
            rows = np.arange(len(hazard))
            low = hazard[rows, place]
            high = hazard[rows, place + 1]
            share = np.where(
                high > low, (wanted - low) / np.where(high > low, high - low, 1.0), 1.0
            )
            found = at[place] + share * (found - at[place])
        return np.where(reached.any(axis=1), found, np.inf)

    def predict_restricted_mean(
        self, X: Any, tau: float | None = None, n_points: int = 512
    ) -> Floats:
        """The mean time up to `tau`, by default the last event: the area below the
        survival curve.
        """
        end = (
            float(self.event_times_[-1])
            if tau is None
            else Number(0, low_open=True).check(f"tau={tau!r}", tau)
        )
        at = np.linspace(0.0, end, Integer(2).check(f"n_points={n_points!r}", n_points))
        curve = self._survival(X, at)
        return np.asarray(
            ((curve[:, 1:] + curve[:, :-1]) / 2 * np.diff(at)).sum(axis=1)
        )

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance index of the risk of any event."""
        time, event = target_of(y)
        risk = self.predict(X)
        if len(risk) != len(time):
            raise DataError(f"y has {len(time)} values for {len(risk)} rows of X.")
        return concordance(time, event > 0, risk)

    def _goals(
        self, time: Floats, event: NDArray[np.int64], weight: Floats | None, entry: Any
    ) -> list[tuple[Any, Floats]]:
        """The losses of 'hazard' and 'cox', one a cause, with the labels of each."""
        start = np.zeros(len(time)) if entry is None else numbers(entry, "entry times")
        if start.shape != time.shape:
            raise DataError(
                f"entry has the shape {start.shape}; give a time for each of {len(time)} rows."
            )
        early = "entry must be a time of at least 0, before the row's own time"
        refuse_rows(
            ~((start >= 0) & (start < time)) if entry is not None else start < 0,
            start,
            early,
        )
        live = np.ones(len(time), np.bool_) if weight is None else weight > 0
        if not (event[live] > 0).any():
            raise DataError(NO_EVENT)
        if self.model == "hazard" and not time[live].any():
            raise DataError(
                "every time is 0, so no row was observed for a while: a hazard is events by time."
            )
        self.event_times_, self._n_events = (
            np.unique(time[live & (event > 0)]),
            int((event[live] > 0).sum()),
        )
        self.causes_ = np.unique(event[live & (event > 0)])
        edges = edges_of(time[live], event[live] > 0, self.n_intervals)
        goals: list[tuple[Any, Floats]] = []
        for cause in self.causes_:
            mine = (event == cause).astype(np.float64)
            if self.model == "hazard":
                goals.append(
                    (
                        Hazard(edges, self.departure),
                        np.column_stack([start, time, mine]),
                    )
                )
            else:
                goals.append(
                    (
                        Cox(self.ties),
                        np.column_stack(
                            [time, mine] + ([] if entry is None else [start])
                        ),
                    )
                )
        return goals

    def _settings(self, goal: Any) -> dict[str, Any]:
        """Parameters of one training."""
        given = {
            name: value for name, value in self._given().items() if name in PARAMETERS
        }
        if goal.n_outputs > 1:
            given.setdefault("multi_strategy", "multi_output_tree")
        many = self._n_events >= MANY_EVENTS
        own = {
            name: (v.many if many else v.few) if isinstance(v, ByEvents) else v
            for name, v in DEFAULTS.items()
        }
        if {"max_depth", "grow_policy"} & given.keys():  # they limit trees themselves
            own["max_leaves"] = "auto"
        return resolve({**own, **given, "objective": goal, "eval_metric": "none"})

    def _learn(
        self,
        goal: Any,
        settings: Mapping[str, Any],
        data: Dataset,
        X: Any,
        label: Floats,
        weight: Floats | None,
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
            raise ParameterError(
                f"cause={cause!r} is unknown; training had {', '.join(map(str, self.causes_))}."
            )
        return [self._learned[int(np.flatnonzero(self.causes_ == cause)[0])]]

    def _score(self, X: Any, of: Learned) -> Floats:
        self._booster(X)  # checks its names
        return of.booster.predict(X, raw=True, n_jobs=self.n_jobs)

    def _times(self, times: Any) -> Floats:
        at = (
            self.event_times_
            if times is None
            else np.atleast_1d(numbers(times, "times"))
        )
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
            return np.asarray(
                self._learned[0].goal.survival(
                    self._score(X, self._learned[0]), self._times(times)
                )
            )
        return np.asarray(elementary.exp(-self.predict_cumulative_hazard(X, times)))

    def _of_file(self, booster: Booster) -> dict[str, Any]:
        learned, causes, times = of_file(booster)
        about = {
            name: value
            for name, value in booster.params[SURVIVAL].items()
            if name in self._table
        }
        return {
            **about,
            "_learned": learned,
            "causes_": np.array(causes),
            "event_times_": times,
        }

    def _curves(self, X: Any, method: str, return_array: bool) -> Any:
        """Values at `event_times_`, or a curve for each row."""
        values = getattr(self, method)(X)
        if return_array:
            return values
        rows = (
            X.iloc
            if hasattr(X, "iloc")
            else X
            if hasattr(X, "__array__")
            else np.asarray(X)
        )
        curves = np.empty(len(values), object)
        for row in range(len(values)):
            curves[row] = Curve(
                self.event_times_,
                values[row],
                partial(_row_at, self, method, rows[row : row + 1]),
            )
        return curves


def _row_at(model: SapwoodSurvival, method: str, X: Any, times: Floats) -> Floats:
    """A curve of one row at several times."""
    found: Floats = getattr(model, method)(X, times)[0]
    return found


def target_of(y: Any) -> tuple[Floats, NDArray[np.int64]]:
    """Times and events (0: censored, else the cause) of a target: a structured array of
    event and time, or a pair.
    """
    pair = pair_of(y)
    if pair is None:
        raise DataError(
            "y is neither a structured array of event and time nor a pair (time, event)."
        )
    return times_and_events(*pair)


def bounds(y: Any) -> Floats:
    """(n_rows, 2) bounds of times for 'aft'; a second column of only 0 and 1 has
    events.
    """
    pair = pair_of(y)
    if pair is None:
        raise DataError(
            "y is neither a structured array nor a pair (time, event) or (lower, upper)."
        )
    second = np.asarray(pair[1])
    if second.dtype == object and all(
        isinstance(one, float | np.floating) for one in second.flat
    ):
        second = second.astype(np.float64)
    if (
        are_flags(second)
        or second.dtype.kind not in "iufmM"
        or not isinstance(y, tuple | list)
    ):
        low, event = target_of(y)
        if (event > 1).any():
            raise DataError("competing causes are for model='hazard' and 'cox'.")
        refuse_rows(
            (event > 0) & (low == 0),
            low,
            "model='aft' takes logs of times, so an event needs a time above 0",
        )
        if second.dtype.kind in "iuf" and event.all() and (low <= 1).all():
            warn(
                "the second of y has only ones: they are read as events, not as upper bounds. Write True in place of "
                "1; where they are bounds, give times in a smaller unit, such as days in place of years."
            )
        return np.column_stack([low, np.where(event > 0, low, UNBOUNDED)])
    if np.asarray(pair[0]).dtype.kind == "b":
        raise DataError(
            "the times are True and False: times and events are swapped. The time comes first."
        )
    low = lasting(pair[0], "lower bounds")
    high = numbers(second, "upper bounds")
    if high.shape != low.shape:
        raise DataError(
            f"lower bounds {low.shape} and upper bounds {high.shape} must have one value for each row."
        )
    rule = "bounds of times need 0 <= lower <= upper, and upper above 0; events are True and False, or 1 and 0"
    refuse_rows(
        ~((low <= high) & (high > 0)),
        np.array(list(zip(low.tolist(), high.tolist(), strict=True)), "f8,f8"),
        rule,
    )
    return np.column_stack([low, np.where(np.isinf(high), UNBOUNDED, high)])
