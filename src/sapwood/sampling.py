"""Who is asked: rows held out for validation, rows of a fold, rows of a round.

In: a seed and the number of rows. Out: masks that depend on each row's position and on nothing else (NUMERICS 1).
"""

import numpy as np
from numpy.typing import NDArray

from sapwood.device import cpu
from sapwood.errors import DataError, ParameterError

HOLDOUT, FOLDS = 6, 7  # purposes of a draw


def rows(trainer: cpu.Trainer, seed: int, index: int, subsample: float) -> None:
    """Choose the rows that grow the trees of one round; the core draws them, as NUMERICS 6 says."""
    trainer.sample(seed, index, subsample)


def holdout(
    seed: int,
    fraction: float,
    n_rows: int,
    weight: NDArray[np.float64] | None = None,
    classes: NDArray[np.float64] | None = None,
) -> NDArray[np.bool_]:
    """Mark the rows that early stopping holds out: those of positive weight with the smallest draws.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    fraction : float
        Share of the rows of positive weight, rounded half up, and at least one row.
    n_rows : int
        Number of rows.
    weight : (n_rows) float64, optional
        Rows of weight 0 are nowhere, so neither here.
    classes : (n_rows) float64, optional
        The class of every row: each gives its share, to within a row.

    Returns
    -------
    (n_rows) bool
    """
    candidates = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    count = max(1, int(fraction * len(candidates) + 0.5))
    if count >= len(candidates):
        raise DataError(
            f"validation_fraction={fraction:g} of {len(candidates)} rows of positive weight leaves none to train on; "
            "give a validation set or more rows."
        )
    draws = cpu.draw(seed, HOLDOUT, 0, 0, n_rows)[candidates]
    mask = np.zeros(n_rows, np.bool_)
    if classes is None:
        mask[candidates[np.argsort(draws, kind="stable")[:count]]] = True
    else:  # evenly from all rows, class after class
        order, at = np.lexsort((draws, classes[candidates])), np.arange(len(candidates))
        mask[candidates[order[(at + 1) * count // len(at) > at * count // len(at)]]] = True
    return mask


def folds(seed: int, n_folds: int, n_rows: int, classes: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
    """Deal the rows to folds whose sizes differ by at most one: by the rank of their draws.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    n_folds : int
        Number of folds, from 2 to `n_rows`.
    n_rows : int
        Number of rows.
    classes : (n_rows) float64, optional
        The class of every row: the folds' shares of each differ by at most one row too.

    Returns
    -------
    (n_rows) int64
        The fold of every row.
    """
    if not isinstance(n_folds, int) or not 2 <= n_folds <= n_rows:
        raise ParameterError(f"n_folds={n_folds!r} does not suit {n_rows} rows; choose 2..{n_rows}.")
    fold = np.empty(n_rows, np.int64)
    by_class = np.zeros(n_rows) if classes is None else classes
    fold[np.lexsort((cpu.draw(seed, FOLDS, 0, 0, n_rows), by_class))] = np.arange(n_rows) % n_folds
    return fold
