"""The law under constraints and split rules: one model, whatever the threads, the instruction set and the chunks."""

from functools import partial
from typing import Any

import pytest

from law.test_law import Task, chunked, model, portable, task

MONOTONE = {"monotone_constraints": [1, -1, 1, 0, -1]}
RULES: dict[str, dict[str, Any]] = {
    "basic": MONOTONE,
    "intermediate": MONOTONE | {"monotone_method": "intermediate"},
    "groups": {"interaction_constraints": [[0, 1], [1, 2, 3]]},
    "extra": {"extra_trees": True, "colsample_bynode": 0.8},
    "forced": {"forced_splits": {"feature": 0, "threshold": 0.1, "left": {"feature": 1, "threshold": 0.5}}},
    "all": MONOTONE | {"interaction_constraints": [[0, 1, 2], [3, 4]], "extra_trees": True, "subsample": 0.7},
}
KINDS = [
    pytest.param(partial(task, *args, grow_policy=policy, **RULES[rule]), id=f"{policy}-{rule}-{args[0]}")
    for policy in ("depthwise", "leafwise", "symmetric")
    for rule in RULES
    for args in (("squared_error", 20_000), ("logistic", 20_000, "real"))
    if (policy, rule) != ("symmetric", "forced")
]  # fmt: skip
BIG = [
    pytest.param(partial(task, "squared_error", 150_000, grow_policy=policy, **RULES[rule]), id=f"{policy}-{rule}")
    for policy, rule in (("leafwise", "basic"), ("depthwise", "intermediate"), ("symmetric", "intermediate"))
]


@pytest.mark.parametrize("given", KINDS + BIG)
def test_threads(given: Task) -> None:
    one = model(given, 1)
    assert [model(given, n_jobs) for n_jobs in (2, 3, 7)] == [one] * 3


@pytest.mark.parametrize("given", KINDS)
def test_instruction_sets(given: Task, isa: str) -> None:
    assert model(given) == portable(given)


@pytest.mark.parametrize("given", KINDS + BIG)
def test_chunks(given: Task) -> None:
    assert chunked(given, [1, 700, 702, 17_999]) == model(given)
