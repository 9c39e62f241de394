"""Shapley values by their definition: the model is evaluated on every set of known
columns, so columns must be few.

In: a model, rows, a background, and a function of raw scores. Out: what each column
adds, exactly.
"""

from math import factorial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sapwood.data import ingest
from sapwood.errors import ParameterError

if TYPE_CHECKING:
    from sapwood.model.booster import Booster
    from sapwood.model.explain.shapley import Curve

Floats = NDArray[np.float64]

# columns that the model reads: 4,096 sets, each evaluated on every pair of row and
# background row
MAX_PLAYERS = 12


def enumerated(
    booster: "Booster",
    rows: ingest.Columns,
    background: ingest.Columns,
    curve: "Curve",
    n_jobs: int | None,
) -> tuple[Floats, Floats]:
    """Explain the game v(S) = mean over the rows b of the background of curve(f(x_S,
    b)).

    Returns (n_rows, n_outputs, n_columns) and (n_rows, n_outputs) float64: values and
    base values.
    """
    trees = booster.trees
    read = (
        trees.column
        if trees.linear is None
        else np.append(trees.column, trees.linear.linear_column)
    )
    split = np.unique(read[read >= 0])
    players = np.flatnonzero(booster.shares[split].any(axis=0)).tolist()
    n, n_rows, n_other = len(players), rows.n_rows, background.n_rows
    if n > MAX_PLAYERS:
        raise ParameterError(
            f"exact=True evaluates all sets of columns, and the model reads {n} columns; at most {MAX_PLAYERS} are "
            "possible. Leave exact out: values along the chord work for any number."
        )
    own = [np.tile(column, n_other) for column in rows.as_columns()]
    other = [np.repeat(column, n_rows) for column in background.as_columns()]
    # by set of known columns, a bit for each
    worth = np.zeros((1 << n, n_rows, booster.n_outputs))
    for known in range(1 << n):
        seen = {column for k, column in enumerate(players) if known >> k & 1}
        mixed = [own[j] if j in seen else other[j] for j in range(booster.n_columns)]
        scores = booster._predict_columns(mixed, n_jobs, raw=True).reshape(
            n_other, n_rows, booster.n_outputs
        )
        # in the order of the background: the same bits on every machine
        for score in scores:
            worth[known] += curve(score)
    worth /= n_other
    values = np.zeros((n_rows, booster.n_outputs, booster.n_columns))
    for known in range(1 << n):
        size = known.bit_count()
        for k, column in enumerate(players):
            if not known >> k & 1:
                chance = factorial(size) * factorial(n - size - 1) / factorial(n)
                values[:, :, column] += chance * (worth[known | 1 << k] - worth[known])
    return values, worth[0]
