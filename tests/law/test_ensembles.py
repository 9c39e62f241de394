"""The law for dart, forests, parallel trees and pruning: one model whatever the threads, instruction set and chunks."""

from functools import partial

import pytest

from law.test_law import Task, chunked, model, portable, task
from sapwood import _core
from spec.test_ensembles import KINDS

every_kind = pytest.mark.parametrize(
    "given",
    [
        pytest.param(partial(task, objective, 20_000, weights, **params), id=f"{kind}-{objective}-{weights}")
        for kind, params in KINDS.items()
        for objective, weights in (("squared_error", "real"), ("softmax", "none"))
    ],
)


@every_kind
def test_threads(given: Task) -> None:
    assert [model(given, n_jobs) for n_jobs in (2, 3, 7)] == [model(given, 1)] * 3


@every_kind
def test_instruction_sets(given: Task, isa: str) -> None:
    assert _core.isa() == isa
    assert model(given) == portable(given)


@every_kind
def test_chunks(given: Task) -> None:
    assert chunked(given, [1, 700, 702, 17_999]) == model(given)
