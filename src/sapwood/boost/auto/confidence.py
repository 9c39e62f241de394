"""How sure a model of classes may be: a factor on its scores, which matters where labels have little noise.

In: contenders that were drawn for a blend. Out: a factor, 1 or more.

The leaf penalty and the limits of leaves keep probabilities away from 0 and 1. Where labels follow from the columns, a
factor on the scores lowers the loss by much. But held-out rows say little about mistakes that are rarer than they are.
So the factor is that which would be best with half a row more, of a wrong label (the prior of Jeffreys). This half is
left out where no row at all speaks for it: no held-out row is mistaken, and no training row was, when first no held-out
row was. Later trees learn wrong labels by heart. docs/defaults_evidence.md has the figures.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sapwood.boost.auto.contender import Contender

Floats = NDArray[np.float64]
METRICS = ("logloss", "multi_logloss")  # other metrics say nothing about probabilities, or little
STEP = 1.1  # from one factor that is tried to the next
MOST = 20.0  # the highest factor
CERTAIN = 1e-9  # the loss below which there is nothing to gain
LEAST_GAIN = 0.05  # part of the loss that a factor must save: on noisy tables none does
DOUBT = 0.5  # held-out rows of a wrong label, beside those that there are


def factor(chosen: Sequence[tuple["Contender", int]]) -> float:
    """The factor on the scores of a blend: contenders, and how often each was drawn."""
    first = chosen[0][0]
    if not first.of_classes:
        return 1.0
    draws = sum(n for _, n in chosen)
    scores: Floats = sum((n / draws * one.scores for one, n in chosen), np.zeros_like(first.scores))
    certain = all(one.flaws == 0 for one, _ in chosen) and first.n_mistaken(scores) == 0
    wrong = _rival(scores, first.label)[1]

    def cost(at: float) -> float:
        doubt = 0.0 if certain else DOUBT * first.loss_of(at * scores, wrong) / first.n_held
        return first.loss_of(at * scores) + doubt

    best = 1.0
    low = start = cost(best)
    while low > CERTAIN and best * STEP <= MOST and (lower := cost(best * STEP)) < low:
        best, low = best * STEP, lower
    return best if low < (1 - LEAST_GAIN) * start else 1.0


def mistaken(scores: Floats, label: Floats) -> int:
    """How many rows have a class of no lower score than their own; scores are (n_outputs, n_rows)."""
    return int((_rival(scores, label)[0] <= 0).sum())


def _rival(scores: Floats, label: Floats) -> tuple[Floats, Floats]:
    """How far the score of each row's class is above the highest of another class, and which class that is."""
    if len(scores) == 1:
        return np.where(label > 0, scores[0], -scores[0]), 1.0 - label
    others, own = scores.copy(), label.astype(np.intp)[None]
    np.put_along_axis(others, own, -np.inf, 0)
    rival = others.argmax(0)
    return np.take_along_axis(scores, own, 0)[0] - others.max(0), rival.astype(np.float64)
