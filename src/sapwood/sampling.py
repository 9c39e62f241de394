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


def holdout(seed: int, fraction: float, n_rows: int, weight: NDArray[np.float64] | None = None) -> NDArray[np.bool_]:
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
    order = np.argsort(cpu.draw(seed, HOLDOUT, 0, 0, n_rows)[candidates], kind="stable")
    mask = np.zeros(n_rows, np.bool_)
    mask[candidates[order[:count]]] = True
    return mask


def folds(seed: int, n_folds: int, n_rows: int) -> NDArray[np.int64]:
    """Deal the rows to folds whose sizes differ by at most one: by the rank of their draws.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    n_folds : int
        Number of folds, from 2 to `n_rows`.
    n_rows : int
        Number of rows.

    Returns
    -------
    (n_rows) int64
        The fold of every row.
    """
    if not isinstance(n_folds, int) or not 2 <= n_folds <= n_rows:
        raise ParameterError(f"n_folds={n_folds!r} does not suit {n_rows} rows; choose 2..{n_rows}.")
    fold = np.empty(n_rows, np.int64)
    fold[np.argsort(cpu.draw(seed, FOLDS, 0, 0, n_rows), kind="stable")] = np.arange(n_rows) % n_folds
    return fold
