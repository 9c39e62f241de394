"""The law for linear leaves: one model whatever the threads, the instruction set, the chunks and the repeated rows."""

from typing import Any

import numpy as np
import pytest

import sapwood
from law.test_law import task
from sapwood import Dataset, _core
from spec.test_linear import KINDS

TASKS = [
    pytest.param(objective, weights, KINDS[kind], id=f"{kind}-{objective}-{weights}")
    for kind, objective, weights in (
        ("plain", "squared_error", "none"),
        ("lightgbm", "squared_error", "real"),
        ("plain", "logistic", "whole"),
        ("sampled", "softmax", "none"),
        ("goss", "logistic", "real"),
        ("dart", "squared_error", "whole"),
        ("forest", "logistic", "none"),
        ("parallel", "squared_error", "none"),
    )
]
ENDS = [1, 700, 702, 17_999]


def model(objective: str, weights: str, params: dict[str, Any], n_jobs: int = 2, ends: list[int] | None = None) -> str:
    """The fingerprint of a model on 40,000 rows, whole or in pieces that end at some rows."""
    given, X, y, w = task(objective, 40_000, weights, **params)
    pieces = [slice(0, None)] if ends is None else [slice(*one) for one in zip([0, *ends], [*ends, None], strict=True)]
    chunks = [(X[piece], y[piece], None if w is None else w[piece]) for piece in pieces]
    data = Dataset.from_chunks(chunks, linear_leaves=True, n_jobs=n_jobs)
    booster = sapwood.train(given | {"n_jobs": n_jobs}, data)
    assert booster.linear
    return booster.fingerprint()


@pytest.mark.parametrize(("objective", "weights", "params"), TASKS)
def test_threads_and_chunks(objective: str, weights: str, params: dict[str, Any]) -> None:
    one = model(objective, weights, params, 1)
    assert [model(objective, weights, params, n_jobs) for n_jobs in (2, 3, 7)] == [one] * 3
    assert model(objective, weights, params, 2, ENDS) == one


def test_instruction_sets(isa: str) -> None:
    given = "logistic", "whole", KINDS["plain"]
    assert _core.isa() == isa
    here = model(*given)
    _core.set_isa("portable")
    assert model(*given) == here


def test_a_weight_of_two_is_a_row_twice() -> None:
    params, X, y, w = task("squared_error", 3_000, "whole")
    assert w is not None
    again = np.repeat(np.arange(len(y)), w.astype(int))
    weighted, repeated = (
        sapwood.train(params, Dataset(*rows, linear_leaves=True)) for rows in ((X, y, w), (X[again], y[again]))
    )
    assert weighted.linear and weighted.trees.linear is not None and repeated.trees.linear is not None
    for mine, other in zip(weighted.trees.linear.terms, repeated.trees.linear.terms, strict=True):
        np.testing.assert_array_equal(mine, other)
