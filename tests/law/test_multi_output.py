"""The law for trees with vector leaves: one model, whatever the threads, the instruction set and the chunks."""

from functools import partial
from typing import Any

import pytest

from law.test_law import Task, chunked, model, portable, task

VECTOR = {"multi_strategy": "multi_output_tree", "max_depth": 4, "min_samples_leaf": 20}
KINDS: list[dict[str, Any]] = [
    {"grow_policy": "leafwise", "precision": "narrow"},
    {"grow_policy": "depthwise", "precision": "wide", "subsample": 0.7, "colsample_bynode": 0.8},
    {"grow_policy": "symmetric", "score_function": "cosine", "hessian": "none", "random_strength": 1.0},
]
SMALL = [
    pytest.param(partial(task, "softmax", 9_000, weights, **VECTOR | kind), id=f"{kind['grow_policy']}-{weights}")
    for kind, weights in zip(KINDS, ("none", "whole", "real"), strict=True)
]
BIG = [pytest.param(partial(task, "softmax", 150_000, **VECTOR | kind), id=kind["grow_policy"]) for kind in KINDS[:2]]


@pytest.mark.parametrize("given", SMALL + BIG)
def test_threads(given: Task) -> None:
    one = model(given, 1)
    assert [model(given, n_jobs) for n_jobs in (2, 3, 7)] == [one] * 3  # more threads than outputs, and fewer


@pytest.mark.parametrize("given", SMALL)
def test_instruction_sets(given: Task, isa: str) -> None:
    assert model(given) == portable(given)


@pytest.mark.parametrize("given", SMALL + BIG)
def test_chunks(given: Task) -> None:
    assert chunked(given, [1, 700, 702, 7_999]) == model(given)
