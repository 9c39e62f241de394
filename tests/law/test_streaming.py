"""Rows streamed from a store on disk give the bytes of a table in memory: every task,
or a refusal in words.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood
from law.rows import Rows, numbers, text
from law.tasks import TASKS, expected, pieces, rows_of
from sapwood import Dataset
from sapwood.errors import ParameterError

# tasks of the registry that every commit streams: a few of each kind
BY_DAY = (9, 33, 57, 81, 105, 129)


def chunkings(n: int) -> list[list[int]]:
    """Where the batches of n rows end, in five ways: one, three, a first row alone,
    many small ones, uneven ones.
    """
    return [
        [],
        [n // 3, 2 * n // 3],
        [1],
        list(range(97, n, 97)),
        [n // 50, n // 7, n // 7 + 1, n - 1],
    ]


def streamed(rows: Rows, ends: Sequence[int], **arguments: Any) -> Dataset:
    """The data set of some rows that come in batches."""
    return Dataset.from_batches(pieces(rows, ends), **arguments)


def refused(name: str) -> bool:
    """Whether a task keeps every value of the table."""
    data = TASKS[name].data
    return data.get("tree_method") == "exact" or bool(data.get("linear_leaves"))


def every_chunking() -> pytest.MarkDecorator:
    """Every task with one of the five chunkings, in turn."""
    params = []
    for at, name in enumerate(TASKS):
        params.append(
            pytest.param(
                name, at % 5, marks=() if at in BY_DAY else pytest.mark.nightly, id=name
            )
        )
    return pytest.mark.parametrize(("name", "which"), params)


@every_chunking()
def test_tasks(name: str, which: int) -> None:
    task = TASKS[name]
    rows = rows_of(name)
    ends = chunkings(len(rows[1]))[which]
    if refused(name):
        with pytest.raises(ParameterError, match="rows are streamed"):
            streamed(rows, ends, **task.data)
        return
    data = streamed(rows, ends, **task.data, n_jobs=1)
    data = data.with_crosses(task.crosses) if task.crosses else data
    assert sapwood.train({**task.params, "n_jobs": 1}, data).fingerprint() == expected(
        name
    )


SMALL = {"n_estimators": 8, "max_depth": 3, "learning_rate": 0.5}
KINDS: dict[str, dict[str, Any]] = {
    "goss": {"sampling": "goss", "learning_rate": 0.5, "n_estimators": 10},
    "stopping": {"early_stopping_rounds": 2, "validation_fraction": 0.1},
    "classes": {
        "objective": "softmax",
        "subsample": 0.7,
        "early_stopping_rounds": 2,
        "validation_fraction": 0.1,
    },
    "quantiles": {"objective": "quantile"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_five_chunkings_of_one_model(kind: str) -> None:
    params = {**SMALL, **KINDS[kind]}
    rows = text(params.get("objective", "squared_error"), 700, "real")
    whole = Dataset(*rows)
    model = sapwood.train(params, whole).to_bytes()
    for ends in chunkings(700):
        data = streamed(rows, ends)
        assert data.fingerprint() == whole.fingerprint()
        assert sapwood.train(params, data).to_bytes() == model


def test_validation_rows_and_folds_of_a_store(tmp_path: Path) -> None:
    rows = numbers("logistic", 900, "whole")
    more = numbers("logistic", 500)
    params = {**SMALL, "objective": "logistic", "eval_metric": ["logloss"]}
    data = Dataset(*rows)
    model = sapwood.train(
        params, data, valid=Dataset(*more, reference=data), early_stopping_rounds=2
    )
    streamed(rows, [100, 101], store=tmp_path / "store")
    own = Dataset.open(tmp_path / "store")
    found = sapwood.train(
        params, own, valid=streamed(more, [77], reference=own), early_stopping_rounds=2
    )
    assert found.to_bytes() == model.to_bytes() and found.history == model.history
    folds = sapwood.cv(params, own, n_folds=3)
    for name, values in sapwood.cv(params, data, n_folds=3).items():
        np.testing.assert_array_equal(folds[name], values)


@pytest.mark.nightly
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_more_rows_than_the_sample_of_the_cuts(weights: str) -> None:
    rows = numbers("squared_error", 300_000, weights)
    data = Dataset(*rows)
    for ends in ([], [1], [60_000, 210_000], list(range(0, 300_000, 40_001))[1:]):
        own = streamed(rows, ends)
        assert all(map(np.array_equal, own.cuts, data.cuts))
        assert own.fingerprint() == data.fingerprint()
