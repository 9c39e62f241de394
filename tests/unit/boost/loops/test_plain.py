"""The loop: its size, the order of its questions, and what it costs."""

import inspect
from typing import Any

import numpy as np

from sapwood import objective
from sapwood.boost.leaves import leaf
from sapwood.boost.loops import plain
from sapwood.boost.round import growth
from sapwood.boost.round.training import Training
from sapwood.params import resolve


class Log:
    """A trainer, or a watch, that only writes down what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def answer(*args: Any) -> Any:
            self.calls.append((name, *args))
            return [None] * 2 if name == "grow" else None

        return answer


def rule(params: dict[str, Any], n_outputs: int) -> leaf.LeafPlan:
    return leaf.make_plan(
        objective.resolve({**params, "objective": "squared_error"}), params, n_outputs
    )


def test_a_round_asks_four_questions_in_order() -> None:
    log: Any = Log()
    params = resolve(
        {"n_estimators": 2, "seed": 5, "subsample": 0.5, "precision": "wide"}
    )
    for step in plain.boost(
        Training(log, params, rule(params, 2), (np.zeros(3), None), [log]), range(7, 9)
    ):
        assert step == ([None, None], None)
    policy, limits = growth.limits(params)
    limits["learning_rate"] = 0.1
    rounds = []
    for index in (7, 8):
        rounds += [("gradients", "wide", False, False), ("sample", 5, index, 0.5)]
        rounds += [("grow", policy, limits, 5, 2 * index, 0.0, False, [])]
        for output in range(2):
            rounds += [
                ("add_scores", output),
                ("add", None, output),
            ]
    assert log.calls == rounds


def test_nothing_happens_before_a_round_is_asked_for() -> None:
    log: Any = Log()
    params = resolve({})
    rounds = plain.boost(
        Training(log, params, rule(params, 2), (np.zeros(3), None), []), range(1)
    )
    assert log.calls == []
    next(rounds)
    assert len(log.calls) == 5


def test_the_loop_stays_small() -> None:
    assert len(inspect.getsource(plain).splitlines()) <= 60
