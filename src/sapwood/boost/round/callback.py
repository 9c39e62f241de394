"""Callbacks: functions that see each round and may end the training.

In: a read-only `Round`. Out: True to stop after it, anything false to go on.
"""

import sys
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sapwood.errors import ParameterError, suggest, warn
from sapwood.metric import Metric
from sapwood.model.booster import Booster
from sapwood.params.types import Integer, Number
from sapwood.printable import printable

__all__ = [
    "Callback",
    "Round",
    "early_stopping",
    "log",
    "progress",
    "prune",
    "record",
    "time_limit",
]


def __dir__() -> list[str]:
    return __all__


# the names that XGBoost and LightGBM have for callbacks
def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        # which is built on this module
        from sapwood.boost.round.peer_makers import NAMES

        if name in NAMES:
            return NAMES[name]
    raise AttributeError(
        f"module 'sapwood.callback' has no attribute {name!r}; {suggest(name, __all__)}"
    )


# validation set -> metric -> a value for each round
Lists = Mapping[str, Mapping[str, list[float]]]


@dataclass(frozen=True)
class Round:
    """A round that has just ended, read-only.

    Attributes
    ----------
    index : int
        Number of the round in the model, from 0.
    params : mapping
        The resolved parameters.
    metrics : tuple of Metric
        What is measured.
    measured : mapping of str to mapping of str to float
        The metrics of this round, by validation set and metric.
    last : bool
        Whether no round follows, be it that all are done or that a callback has
        stopped.
    training : tuple of str
        Names of validation sets that are the training rows themselves.
    rounds : range
        Numbers of the rounds of this training.
    """

    index: int
    params: Mapping[str, Any]
    metrics: tuple[Metric, ...]
    measured: Mapping[str, Mapping[str, float]]
    last: bool
    _history: Lists
    _build: Callable[[], Booster] | None
    training: tuple[str, ...] = ()
    rounds: range = range(0)

    @property
    def history(self) -> dict[str, dict[str, tuple[float, ...]]]:
        """The metrics of all rounds so far, by validation set and metric."""
        return {
            name: {metric: tuple(values) for metric, values in lists.items()}
            for name, lists in self._history.items()
        }

    @property
    def booster(self) -> Booster | None:
        """The model so far, built when asked for; None in a cross-validation, which has
        one for each fold.
        """
        return None if self._build is None else self._build()

    @property
    def peer_history(self) -> dict[str, dict[str, list[float]]]:
        """The metrics of all rounds so far, under the names that the user has for the
        metrics.
        """
        called = {metric.name: metric.called or metric.name for metric in self.metrics}
        return {
            name: {called[one]: values for one, values in lists.items()}
            for name, lists in self._history.items()
        }


Callback = Callable[[Round], bool | None]


def stops(callbacks: Sequence[Callback], view: Round) -> bool:
    """Call every callback with a round; whether the training ends here."""
    for callback in callbacks:
        if callback(view) and not view.last:
            view = replace(view, last=True)
    return view.last


def progress(every: int | bool = 1) -> Callback:
    """Print the metrics.

    Parameters
    ----------
    every : int or bool
        Every so many rounds, and the last one; True keeps a single line up to date.
    """
    if every is not True:
        Integer(1).check(f"every={every!r}", every)

    start: dict[str, float] = {}  # when the first round was seen, and its number

    def show(view: Round) -> None:
        if (view.index + 1) % every and not view.last:
            return
        measured = [
            f"  {name} {metric} {value:.6g}"
            for name, values in view.measured.items()
            for metric, value in values.items()
        ]
        line = f"[{view.index + 1}]" + (
            printable("".join(measured))
            or "  no validation set, so nothing is measured"
        )
        if every is True and sys.stdout.isatty():
            line = f"{_bar(view, start)} {line}"
            # clears the old line's rest
            print(f"\r{line}\033[K", end="\n" if view.last else "", flush=True)
        elif every is not True or view.last or (view.index + 1) % 50 == 0:
            # into a file or a pipe, a line now and then
            print(line, flush=True)

    return show


def _bar(view: Round, start: dict[str, float]) -> str:
    """How far a training is, and how long the rest takes if it goes on so."""
    if not start or view.index <= start["round"]:
        start |= {"time": time.monotonic(), "round": view.index}
    end = int(view.params["n_estimators"])
    done = view.index + 1
    full = min(20, 20 * done // max(1, end))
    seen = view.index - start["round"]
    left = (time.monotonic() - start["time"]) / seen * (end - done) if seen else 0.0
    rest = f" {left:.0f} s left" if seen and not view.last else ""
    return f"{'█' * full}{'░' * (20 - full)}{rest}"


def log(write: Callable[[dict[str, float], int], Any], every: int = 1) -> Callback:
    """Hand the metrics to a function, as loggers of experiments take them;
    docs/notebooks.md has recipes.

    Parameters
    ----------
    write : callable
        Takes a dict of numbers, such as ``{"valid/rmse": 0.5}``, and the round, from 1.
    every : int
        Every so many rounds, and the last one.
    """
    Integer(1).check(f"every={every!r}", every)

    def hand_on(view: Round) -> None:
        if (view.index + 1) % every == 0 or view.last:
            found = {
                f"{name}/{metric}": v
                for name, values in view.measured.items()
                for metric, v in values.items()
            }
            write(found, view.index + 1)

    return hand_on


def prune(trial: Any, metric: str | None = None) -> Callback:
    """Report a metric of the last validation set to a trial of Optuna, and end the
    trial where Optuna says so.

    Parameters
    ----------
    trial : optuna.Trial
    metric : str, optional
        The metric to report; the first one by default.
    """
    if not hasattr(trial, "should_prune"):
        raise ParameterError(
            f"prune needs a trial of Optuna, not a {type(trial).__name__}."
        )

    def report(view: Round) -> None:
        values = list(view.measured.values())[-1] if view.measured else {}
        name = metric if metric is not None else next(iter(values), "")
        if name not in values:
            raise ParameterError(
                f"pruning watches {name!r}, which is not measured; give validation rows, or another."
            )
        trial.report(values[name], view.index)
        if trial.should_prune():
            import optuna

            raise optuna.TrialPruned(f"after {view.index + 1} rounds")

    return report


def record(into: MutableMapping[str, Any]) -> Callback:
    """Keep the metrics of every round in a dict of yours.

    Parameters
    ----------
    into : dict
        ``into["valid"]["rmse"]`` grows by one value a round.
    """
    if not isinstance(into, MutableMapping):
        raise ParameterError(
            f"record needs a dict to write into, not a {type(into).__name__}."
        )

    def keep(view: Round) -> None:
        for name, values in view.measured.items():
            for metric, value in values.items():
                into.setdefault(name, {}).setdefault(metric, []).append(value)

    return keep


def early_stopping(
    rounds: int | None = None,
    metric: str | int | None = None,
    min_delta: float = 0.0,
    *,
    data: str | None = None,
    stopping_rounds: int | None = None,
    first_metric_only: bool | None = None,
    verbose: bool = False,
) -> Callback:
    """Stop when a metric of a validation set has not improved for a while, and keep the
    best rounds.

    Parameters
    ----------
    rounds : int
        How many rounds to wait for a better value; LightGBM's ``stopping_rounds`` is
        the same.
    metric : str or int, optional
        The metric to watch, by name or place; the first one by default.
    min_delta : float
        A value is better only by more than this.
    data : str, optional
        The validation set to watch; by default the last one that is not the training
        data.
    first_metric_only, verbose : bool
        LightGBM's. One metric is watched in any case, and nothing is printed.
    """
    rounds = stopping_rounds if rounds is None else rounds
    # LightGBM's second argument is first_metric_only
    metric = None if isinstance(metric, bool) else metric
    metric = 0 if metric is None and first_metric_only else metric
    return _EarlyStopping(
        Integer(1).check(f"rounds={rounds!r}", rounds),
        metric,
        Number(0).check(f"min_delta={min_delta!r}", min_delta),
        data,
    )


class _EarlyStopping:
    """Any callback with an attribute `best_round` says, as this one does, how many
    rounds the model keeps.
    """

    def __init__(
        self,
        rounds: int,
        metric: str | int | None,
        min_delta: float,
        data: str | None = None,
    ) -> None:
        self._rounds = rounds
        self._metric = metric
        self._min_delta = min_delta
        self._data = data
        self.best_round: int | None = None
        self._best = 0.0
        self._since = 0
        self._training: object = None  # the history of the training that is watched

    def __call__(self, view: Round) -> bool:
        if view._history is not self._training:  # another training
            self.best_round = None
            self._since = view.index
            self._training = view._history
        value, sign = self._watched(view)
        gain = sign * (value - self._best) - self._min_delta  # NaN is never better
        if gain > 0 if self.best_round is not None else value == value:
            self.best_round = view.index + 1
            self._best = value
            self._since = view.index + 1
        return view.index + 1 - self._since >= self._rounds

    def _watched(self, view: Round) -> tuple[float, int]:
        """The value to compare, and +1 where higher is better, -1 where lower is."""
        if not view.measured or not view.metrics:
            raise ParameterError(
                "early stopping needs validation rows and a metric: give valid=, or early_stopping_rounds in params; "
                "and no eval_metric='none'."
            )
        sets = [name for name in view.measured if name not in view.training] or list(
            view.measured
        )
        if self._data is not None and self._data not in view.measured:
            raise ParameterError(
                f"early stopping watches {self._data!r}; {suggest(self._data, view.measured)}"
            )
        values = view.measured[sets[-1] if self._data is None else self._data]
        given = 0 if self._metric is None else self._metric
        places = range(-len(view.metrics), len(view.metrics))
        metric = (
            view.metrics[given] if isinstance(given, int) and given in places else None
        )
        metric = metric or next(
            (one for one in view.metrics if given in (one.name, one.called)), None
        )
        if metric is None:
            raise ParameterError(
                f"early stopping watches {given!r}, which is not measured; {suggest(str(given), values)}"
            )
        if not metric.sure:
            raise ParameterError(
                f"early stopping watches {metric.name!r}, a function whose name is one of a score. Is higher better? "
                f"Give eval_metric=({metric.name!r}, function, True), or False in its place."
            )
        if view.index == view.rounds.start:
            self._say(view, metric, sets[-1])
        return values[metric.name], 1 if metric.higher_is_better else -1

    def _say(self, view: Round, metric: Metric, name: str) -> None:
        """Warn in the first round where early stopping watches other things than a peer
        would.
        """
        if self._data is None and name in view.training:
            warn(
                "early stopping watches the training rows, since there are no others: the loss of these hardly ever "
                "rises. Give a validation set of other rows."
            )
        if self._metric is None and len(view.metrics) > 1:
            warn(
                f"early stopping watches the first of {len(view.metrics)} metrics, {metric.name!r}; XGBoost watches "
                "the last, LightGBM all of them. Put the one that counts first, and say first_metric_only=True."
            )


def time_limit(seconds: float) -> Callback:
    """Stop after a time; the model has the rounds that were finished.

    Parameters
    ----------
    seconds : float
        Counted from this call.
    """
    end = time.monotonic() + Number(0).check(f"seconds={seconds!r}", seconds)
    return lambda view: time.monotonic() >= end
