"""Sums in fixed point are as good as sums in float64, with heavy tails too."""

import numpy as np
import pytest
from numpy.typing import NDArray

import datasets
import sapwood
from law.rows import numbers
from sapwood import Dataset, _core
from spec import reference

Floats = NDArray[np.float64]


def float_booster(
    X: Floats, y: Floats, rounds: int, max_depth: int, learning_rate: float
) -> Floats:
    """Plain boosting of squared error with lambda = 1 over the same bins, every sum in
    float64; training scores.
    """
    w = reference.weights(None, len(X))
    codes = [reference.codes(x, reference.cuts(x, w, 255, 32)) for x in X.T]
    scores = np.full(len(X), y.mean())

    def step(rows: NDArray[np.int64], depth: int) -> None:
        g = scores[rows] - y[rows]
        best = g.sum() ** 2 / (len(rows) + 1)
        left = None
        for code in codes if depth < max_depth else []:
            G = np.cumsum(np.bincount(code[rows], g))
            H = np.cumsum(np.bincount(code[rows]))
            s = G**2 / (H + 1) + (G[-1] - G) ** 2 / (H[-1] - H + 1)
            top = int(np.argmax(s[:-1])) if len(s) > 1 else 0
            if s[top] > best * (1 + 1e-9) and H[-1] > H[top]:
                best = s[top]
                left = code[rows] <= top
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
    X = np.nan_to_num(data.X)
    y = data.y / data.y.std()
    y[::400] *= tail
    params = {
        "n_estimators": 30,
        "learning_rate": 0.2,
        "grow_policy": "depthwise",
        "max_depth": 4,
        "max_leaves": None,
        "min_child_weight": 0.0,
    }
    # Without a tail 'auto' is narrow, whose trees differ where two splits nearly tie;
    # wide must be as good as float64.
    precision = "wide" if tail == 1.0 else "auto"
    booster = sapwood.train(
        params | {"objective": "squared_error", "precision": precision},
        Dataset(X, label=y),
    )
    exact = float_booster(X, y, 30, 4, 0.2)
    loss = np.mean((booster.predict(X) - y) ** 2)
    exact_loss = np.mean((exact - y) ** 2)
    assert loss <= 1.001 * exact_loss
    assert exact_loss <= 1.001 * loss  # neither is cheating
    # The ordinary rows too: a few huge labels set the scale, and the others must not be
    # rounded away.
    ordinary = np.arange(len(y)) % 400 != 0
    error = np.abs(booster.predict(X) - exact)[ordinary]
    assert np.median(error) <= 1e-3 * np.median(np.abs(exact[ordinary] - y.mean()))


def test_auto_goes_wide_for_heavy_tails_only() -> None:
    X, y, _ = numbers("squared_error", 2000)
    binned = _core.Binned([X], _core.cuts([X], None, 255, 32, 1), 1)
    for labels, expected in (
        (y, "narrow"),
        (np.where(np.arange(2000) % 400 == 0, 1e6 * y, y), "wide"),
    ):
        trainer = _core.Trainer(binned, labels[None], None, "squared_error", {}, 1, 1)
        trainer.fill_scores(trainer.start())
        assert trainer.gradients("auto") == [expected]
