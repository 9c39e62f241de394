"""The law: one model, byte for byte, whatever the threads, the instruction set, the chunks and the container."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import datasets
import sapwood
from sapwood import Dataset, _core
from spec import reference

Floats = NDArray[np.float64]
Task = Callable[[], tuple[dict[str, Any], Floats, Floats, Floats | None]]

POLICIES = ["depthwise", "leafwise", "symmetric"]
OBJECTIVES = ["squared_error", "logistic", "softmax"]
SAMPLING = {"subsample": 0.7, "colsample_bytree": 0.8, "colsample_bylevel": 0.8, "colsample_bynode": 0.8}
NAMES = ["height", "width", "depth", "colour", "taste"]


def task(
    objective: str, n: int, weights: str = "none", width: int = 5, **params: Any
) -> tuple[dict[str, Any], Floats, Floats, Floats | None]:
    """Parameters, and `n` rows with their labels and weights; every value is exact in float32."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, width)).astype(np.float32).astype(np.float64)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = np.where(rng.random(n) < 0.2, np.nan, X[:, 2])
    X[:, 3] = np.where(rng.random(n) < 0.7, 0.0, X[:, 3])
    y = X[:, 0] + X[:, 1] * np.nan_to_num(X[:, 2]) + X[:, 3] + rng.normal(size=n)
    if objective != "squared_error":
        y = np.searchsorted([0.0] if objective == "logistic" else [-1.0, 1.0], y).astype(np.float64)
    w = {"none": None, "whole": rng.integers(0, 4, n).astype(float), "real": rng.random(n)}[weights]
    return {"objective": objective, "n_estimators": 3, "max_depth": 5, "max_leaves": 24} | params, X, y, w


def model(given: Task, n_jobs: int = 2) -> str:
    """The fingerprint of the model that a task trains."""
    params, X, y, w = given()
    data = Dataset(X, label=y, weight=w, max_bins=params.get("max_bins", 255), n_jobs=n_jobs)
    return sapwood.train(params | {"n_jobs": n_jobs}, data).fingerprint()


every_kind = pytest.mark.parametrize(
    "given",
    [
        pytest.param(
            partial(task, objective, 20_000, weights, grow_policy=policy, precision=precision, **sampling),
            id=f"{policy}-{objective}-{precision}-{'sampled' if sampling else 'all'}-{weights}",
        )
        for policy in POLICIES
        for objective in OBJECTIVES
        for precision in ("narrow", "wide")
        for sampling, weights in (({}, "none"), (SAMPLING, "none"), ({}, "whole"), (SAMPLING, "real"))
    ],
)


@every_kind
def test_threads(given: Task) -> None:
    one = model(given, 1)
    assert [model(given, n_jobs) for n_jobs in (2, 3, 7)] == [one] * 3


@cache
def portable(given: Task) -> str:
    """The fingerprint made on the portable path."""
    before = _core.isa()
    _core.set_isa("portable")
    fingerprint = model(given)
    _core.set_isa(before)
    return fingerprint


@every_kind
def test_instruction_sets(given: Task, isa: str) -> None:
    assert _core.isa() == isa
    assert model(given) == portable(given)


# Enough rows for every parallel path: blocks for each thread, packed sums flushed (past 131,071 rows), bottom-k cuts.
BIG = [
    pytest.param(partial(task, *args, grow_policy=policy, **params), id=f"{policy}-{'-'.join(map(str, args))}")
    for policy, args, params in (
        ("leafwise", ("squared_error", 300_000), {"precision": "narrow"}),
        ("leafwise", ("squared_error", 280_000, "real"), {"precision": "narrow", "subsample": 0.9}),
        ("depthwise", ("logistic", 300_000, "real"), {"precision": "wide"}),
        ("depthwise", ("logistic", 60_000), {"max_depth": 9, "max_leaves": None, "min_samples_leaf": 30}),
        ("symmetric", ("logistic", 150_000, "whole"), {"subsample": 0.9}),
        ("symmetric", ("squared_error", 290_000), {"precision": "narrow"}),
        ("leafwise", ("softmax", 60_000), {"max_bins": 700}),
        ("leafwise", ("logistic", 60_000, "none", 90), {"colsample_bynode": 0.5}),
    )
]


@pytest.mark.parametrize("given", BIG)
def test_threads_on_many_rows(given: Task) -> None:
    one = model(given, 1)
    assert [model(given, n_jobs) for n_jobs in (2, 3, 7)] == [one] * 3
    assert _core.n_workers() >= 2  # there were threads indeed


@pytest.mark.parametrize("given", BIG)
def test_instruction_sets_on_many_rows(given: Task, isa: str) -> None:
    assert model(given) == portable(given)


def chunked(given: Task, ends: list[int]) -> str:
    """The fingerprint of the model trained on the rows in consecutive pieces."""
    params, X, y, w = given()
    pieces = [slice(first, last) for first, last in zip([0, *ends], [*ends, len(X)], strict=True)]
    chunks = [(X[piece], y[piece]) if w is None else (X[piece], y[piece], w[piece]) for piece in pieces]
    data = Dataset.from_chunks(chunks, max_bins=params.get("max_bins", 255), n_jobs=2)
    assert data.binned.n_chunks == len(pieces)
    return sapwood.train(params | {"n_jobs": 2}, data).fingerprint()


@every_kind
def test_chunks(given: Task) -> None:
    assert chunked(given, [1, 700, 702, 17_999]) == model(given)


@pytest.mark.parametrize("given", BIG)
def test_chunks_of_many_rows(given: Task) -> None:
    assert chunked(given, [20_001, 20_002, 59_900]) == model(given)


def strided(X: Floats) -> Floats:
    """The same values in every second row and third column, backwards."""
    room = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    view = room[::-2, ::-3]
    view[...] = X
    return view


def arrow(X: Floats) -> pa.Table:
    """An Arrow table of two chunks, missing values as nulls."""
    columns = {
        name: [pa.array(x[:50], from_pandas=True), pa.array(x[50:], from_pandas=True)]
        for name, x in zip(NAMES, X.T, strict=True)
    }
    return pa.table({name: pa.chunked_array(chunks) for name, chunks in columns.items()})


CONTAINERS: dict[str, Callable[[Floats], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": strided,
    "float32": lambda X: X.astype(np.float32),
    "float32, F": lambda X: np.asfortranarray(X.astype(np.float32)),
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas, float32": lambda X: pd.DataFrame(X.astype(np.float32), columns=NAMES),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars, nulls": lambda X: pl.DataFrame(X, schema=NAMES).with_columns(pl.all().fill_nan(None)),
    "arrow": arrow,
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_containers(container: str, objective: str) -> None:
    params, X, y, _ = task(objective, 1000)
    expected = sapwood.train(params, Dataset(X, label=y, feature_names=NAMES))
    given = CONTAINERS[container](X)
    names = None if hasattr(given, "columns") else NAMES
    actual = sapwood.train(params, Dataset(given, label=y, feature_names=names))
    assert actual.to_bytes() == expected.to_bytes()
    assert actual.predict(given).tobytes() == expected.predict(X).tobytes()


def test_names_are_part_of_the_model() -> None:
    params, X, y, _ = task("squared_error", 500)
    named = sapwood.train(params, Dataset(X, label=y, feature_names=NAMES))
    assert named.fingerprint() != sapwood.train(params, Dataset(X, label=y)).fingerprint()


@pytest.mark.parametrize(
    "change", [{"random_state": 1}, {"precision": "wide"}, {"max_leaves": 23}, {"learning_rate": 0.2}]
)
def test_a_fingerprint_sees_what_changes_a_model(change: dict[str, Any]) -> None:
    params = {"precision": "narrow", "subsample": 0.5}
    assert model(partial(task, "squared_error", 3000, **params | change)) != model(
        partial(task, "squared_error", 3000, **params)
    )


# ---- Fixed point against float64 ------------------------------------------------------------------------------------


def float_booster(X: Floats, y: Floats, rounds: int, max_depth: int, learning_rate: float) -> Floats:
    """Plain boosting of squared error with lambda = 1 over the same bins, every sum in float64; training scores."""
    w = reference.weights(None, len(X))
    codes = [reference.codes(x, reference.cuts(x, w, 255, 32)) for x in X.T]
    scores = np.full(len(X), y.mean())

    def step(rows: NDArray[np.int64], depth: int) -> None:
        g = scores[rows] - y[rows]
        best, left = g.sum() ** 2 / (len(rows) + 1), None
        for code in codes if depth < max_depth else []:
            G, H = np.cumsum(np.bincount(code[rows], g)), np.cumsum(np.bincount(code[rows]))
            s = G**2 / (H + 1) + (G[-1] - G) ** 2 / (H[-1] - H + 1)
            top = int(np.argmax(s[:-1])) if len(s) > 1 else 0
            if s[top] > best * (1 + 1e-9) and H[-1] > H[top]:
                best, left = s[top], code[rows] <= top
        if left is None:
            steps.append((rows, -learning_rate * g.sum() / (len(rows) + 1)))
        else:
            step(rows[left], depth + 1)
            step(rows[~left], depth + 1)

    for _ in range(rounds):
        steps: list[tuple[NDArray[np.int64], float]] = []
        step(np.arange(len(X)), 0)
        for rows, value in steps:
            scores[rows] += value
    return scores


@pytest.mark.parametrize("tail", [1.0, 1e6])
def test_heavy_tails(tail: float) -> None:
    data = datasets.california_housing()
    X, y = np.nan_to_num(data.X), data.y / data.y.std()
    y[::400] *= tail
    params = {"n_estimators": 30, "learning_rate": 0.2, "grow_policy": "depthwise", "max_depth": 4, "max_leaves": None,
              "min_child_weight": 0.0}  # fmt: skip
    # Without a tail 'auto' is narrow, whose trees differ where two splits nearly tie; wide must be as good as float64.
    precision = "wide" if tail == 1.0 else "auto"
    booster = sapwood.train(params | {"objective": "squared_error", "precision": precision}, Dataset(X, label=y))
    exact = float_booster(X, y, 30, 4, 0.2)
    loss, exact_loss = np.mean((booster.predict(X) - y) ** 2), np.mean((exact - y) ** 2)
    assert loss <= 1.001 * exact_loss
    assert exact_loss <= 1.001 * loss  # neither is cheating
    # The ordinary rows too: a few huge labels set the scale, and the others must not be rounded away.
    ordinary = np.arange(len(y)) % 400 != 0
    error = np.abs(booster.predict(X) - exact)[ordinary]
    assert np.median(error) <= 1e-3 * np.median(np.abs(exact[ordinary] - y.mean()))


def test_auto_goes_wide_for_heavy_tails_only() -> None:
    _, X, y, _ = task("squared_error", 2000)
    binned = _core.Binned([X], _core.cuts([X], None, 255, 32, 1), 1)
    for labels, expected in ((y, "narrow"), (np.where(np.arange(2000) % 400 == 0, 1e6 * y, y), "wide")):
        trainer = _core.Trainer(binned, labels[None], None, "squared_error", {}, 1, 1)
        trainer.fill_scores(trainer.start())
        assert trainer.gradients("auto") == [expected]
