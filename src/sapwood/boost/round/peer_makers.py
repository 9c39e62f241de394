"""Callbacks under the names and with the arguments that LightGBM and XGBoost have for
them.

In: their arguments. Out: callbacks of ours, or such as `peer_callbacks` takes.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from sapwood.boost.round.callback import Callback, early_stopping, progress
from sapwood.errors import ParameterError


def log_evaluation(period: int = 1, show_stdv: bool = True) -> Callback:
    """LightGBM's: print the metrics every so many rounds; never, if not positive."""
    return progress(period) if period > 0 else lambda view: None


def record_evaluation(eval_result: MutableMapping[str, Any]) -> Callable[[Any], None]:
    """LightGBM's: write the metrics of every round into a dict, under the names that
    the program gave them.
    """

    def write(env: Any) -> None:
        for data, metric, value, _ in env.evaluation_result_list:
            eval_result.setdefault(data, {}).setdefault(metric, []).append(value)

    return write


class reset_parameter:
    """LightGBM's: a learning rate for each round, as a list or a function of the
    round.
    """

    before_iteration = True

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs


class LearningRateScheduler:
    """XGBoost's: a learning rate for each round, as a list or a function of the
    round.
    """

    def __init__(self, learning_rates: Any) -> None:
        self.learning_rates = (
            learning_rates if callable(learning_rates) else learning_rates.__getitem__
        )


class TrainingCallback:
    """XGBoost's base class of callbacks; `after_iteration` stops the training by
    returning True.
    """

    def before_training(self, model: Any) -> Any:
        """Before the first round."""
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Before each round."""
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """After each round."""
        return False

    def after_training(self, model: Any) -> Any:
        """After the last round."""
        return model


def evaluation_monitor(
    rank: int = 0, period: int = 1, show_stdv: bool = False, logger: Any = None
) -> Callback:
    """XGBoost's `EvaluationMonitor`: print the metrics every so many rounds."""
    return progress(period)


def stopping(
    rounds: int,
    metric_name: str | None = None,
    data_name: str | None = None,
    maximize: bool | None = None,
    save_best: bool | None = False,
    min_delta: float = 0.0,
) -> Callback:
    """XGBoost's `EarlyStopping`: the last metric of the last validation set, or those
    that are named.
    """
    if maximize is not None and metric_name is None:
        raise ParameterError(
            "maximize is known of every metric; leave it out, or give a metric that says it."
        )
    return early_stopping(rounds, metric_name or -1, min_delta, data=data_name)


NAMES = {
    "EarlyStopping": stopping,
    "EvaluationMonitor": evaluation_monitor,
    "LearningRateScheduler": LearningRateScheduler,
    "TrainingCallback": TrainingCallback,
    "log_evaluation": log_evaluation,
    "print_evaluation": log_evaluation,
    "record_evaluation": record_evaluation,
    "reset_parameter": reset_parameter,
}
