"""Callbacks that were written for LightGBM, XGBoost or CatBoost, and pruning callbacks
of Optuna for them.

In: callables or objects of the peers. Out: callbacks of ours, and the learning rates
that some of them set.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import SimpleNamespace
from typing import Any, NamedTuple

from sapwood.boost.round.callback import Callback, Round, early_stopping
from sapwood.errors import ParameterError
from sapwood.params import names


class EvalResult(NamedTuple):
    """One metric of one set after a round, as LightGBM's callbacks read it, by place or
    by name.
    """

    dataset_name: str
    metric_name: str
    metric_value: float
    maximize: bool

    @property
    def metric_std_dev(self) -> None:
        """Of folds only."""

    def is_cv_result(self) -> bool:
        """Whether there is a deviation over folds."""
        return False


class LightGBMCallback:
    """A callable of LightGBM's `env`; it stops the training by an EarlyStopException,
    as those of LightGBM do.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.best_round: int | None = None

    def __call__(self, view: Round) -> bool:
        unwatched = view.training if hasattr(self._function, "stopping_rounds") else ()
        results = [
            EvalResult(
                name,
                metric.called or metric.name,
                values[metric.name],
                metric.higher_is_better,
            )
            for name, values in view.measured.items()
            for metric in view.metrics
            if name not in unwatched
        ]
        env = SimpleNamespace(
            model=Model(view),
            params=dict(view.params),
            iteration=view.index,
            begin_iteration=view.rounds.start,
            end_iteration=view.rounds.stop,
            evaluation_result_list=results,
        )
        try:
            self._function(env)
        except Exception as stop:
            if type(stop).__name__ != "EarlyStopException":
                raise
            self.best_round = int(stop.best_iteration) + 1  # type: ignore[attr-defined]
            return True
        return False


class XGBoostCallback:
    """An object with XGBoost's `after_iteration(model, epoch, evals_log)`; True
    stops.
    """

    def __init__(self, own: Any) -> None:
        self._own, self._attributes = own, dict[str, str]()
        self._training: object = None

    def __call__(self, view: Round) -> bool:
        model = Model(view, self._attributes)
        log = {name: dict(values) for name, values in view.peer_history.items()}
        if view._history is not self._training:
            self._training = view._history
            self._call("before_training", model)
        self._call("before_iteration", model, view.index, log)
        stop = bool(self._own.after_iteration(model, view.index, log))
        if stop or view.last:
            self._call("after_training", model)
        return stop

    def _call(self, name: str, *args: Any) -> None:
        if hasattr(self._own, name):
            getattr(self._own, name)(*args)


class CatBoostCallback:
    """An object with CatBoost's `after_iteration(info)`; False stops."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __call__(self, view: Round) -> bool:
        lists = {
            name: {one: list(v) for one, v in values.items()}
            for name, values in view.peer_history.items()
        }
        return not self._own.after_iteration(
            SimpleNamespace(iteration=view.index + 1, metrics=lists)
        )


class Model:
    """What callbacks of the peers ask a model in training for."""

    def __init__(self, view: Round, attributes: dict[str, str] | None = None) -> None:
        self._view = view
        self._attributes = {} if attributes is None else attributes

    def set_attr(self, **attributes: Any) -> None:
        """Remember texts."""
        self._attributes.update(
            {name: str(value) for name, value in attributes.items()}
        )

    def attr(self, name: str) -> str | None:
        """A text that was remembered."""
        return self._attributes.get(name)

    def num_boosted_rounds(self) -> int:
        """Rounds so far."""
        return self._view.index + 1

    current_iteration = num_boosted_rounds

    def set_param(self, *_: Any) -> None:
        """Parameters stay as they are."""
        raise ParameterError(
            "a callback sets a parameter during training; learning_rate=[a number for each round] is what can change."
        )

    reset_parameter = set_param

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view.booster, name)


def adapted(callbacks: Sequence[Any]) -> list[Callback]:
    """Callbacks of ours for those of the peers; others stay as they are."""
    return [
        _adapted(one)
        for one in sorted(callbacks, key=lambda one: getattr(one, "order", 0))
    ]


def rates(callbacks: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The other callbacks, and the learning rates that LightGBM's reset_parameter or
    XGBoost's scheduler sets.
    """
    rest = []
    found = {}
    for one in callbacks:
        given = (
            getattr(one, "kwargs", None)
            if getattr(one, "before_iteration", False) is True
            else None
        )
        if given is None and callable(getattr(one, "learning_rates", None)):
            given = {"learning_rate": one.learning_rates}
        if not isinstance(given, Mapping):
            rest.append(one)
            continue
        for name, value in given.items():
            if names().get(name) != "learning_rate":
                raise ParameterError(
                    f"reset_parameter sets {name!r}; only learning_rate can change from round to round."
                )
            found["learning_rate"] = (
                list(value) if isinstance(value, Sequence) else value
            )
    return rest, found


def _adapted(one: Any) -> Callback:
    if hasattr(one, "after_iteration"):
        # XGBoost's own
        if all(
            hasattr(one, name)
            for name in ("rounds", "metric_name", "save_best", "data")
        ):
            return early_stopping(
                one.rounds, one.metric_name or -1, one._min_delta, data=one.data
            )
        return (
            CatBoostCallback(one)
            if len(signature(one.after_iteration).parameters) == 1
            else XGBoostCallback(one)
        )
    if not callable(one):
        raise ParameterError(
            f"callbacks must be a list of callables, {one!r} is none; see sapwood.callback for ready-made ones."
        )
    try:
        arguments = list(signature(one).parameters)
    except (TypeError, ValueError):  # some built-in functions have no signature
        arguments = []
    own: Callback = one
    return (
        LightGBMCallback(one)
        if arguments[:1] == ["env"] or hasattr(one, "before_iteration")
        else own
    )
