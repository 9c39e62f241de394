"""Targets far from 0: what is subtracted from the labels before a training and added to
its scores again.

In: the labels of a training, and its objective. Out: a number for each output, 0 where
labels stay as they are.

A float64 near 1e15 is a multiple of 1/8, so scores near 1e15 lose what trees add.
Numbers within a factor of 2 of each other have an exact difference, so labels that lie
together can be centred without an error.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sapwood.data.dataset import Dataset
from sapwood.errors import warn
from sapwood.model.booster import Booster
from sapwood.objective import Objective
from sapwood.reduce import Reduce

Floats = NDArray[np.float64]
FAR = 2.0**32  # multiples of their range from 0, from which on labels are centred
# part of the range of labels that their rounding may be before there is a warning
COARSE = 1e-3
IDENTITY = ("identity", "ascending")
# losses that depend on how large labels are, not only on the errors
RELATIVE = ("mape",)


def choose(
    objective: Objective, data: Dataset, n_outputs: int, init_model: Booster | None
) -> Floats:
    """What to subtract from the labels of each output, (n_outputs,); the same for all
    holders of rows.
    """
    moved = _moved(objective, n_outputs)
    if data.label is None or not any(moved):
        return np.zeros(n_outputs)
    if init_model is not None and init_model.base_last:
        return np.where(moved, init_model.base, 0.0)
    low, high = _ends(data.label, data.weight, data.reduce)
    spread = high - low
    size = np.maximum(np.abs(low), np.abs(high))
    far = np.array(moved) & (spread > 0) & (size >= FAR * spread)
    return np.where(far, low + 0.5 * np.where(far, spread, 0.0), 0.0)


def subtracted(label: Floats, offset: Floats) -> Floats:
    """Labels as a training learns them: the same array where there is no offset."""
    if not offset.any():
        return label
    return label - (offset if label.ndim == 2 else offset[0])


def added(prediction: Floats, offset: Floats) -> Floats:
    """Predictions of a training as users see them."""
    if not offset.any():
        return prediction
    return prediction + (offset if prediction.ndim == 2 else offset[0])


def warn_of_rounding(objective: Objective, data: Dataset) -> None:
    """Warn where labels are so far from 0 that float64 has rounded them to few steps of
    their range.
    """
    if data.label is None or not any(_moved(objective, 1)):
        return
    low, high = _ends(data.label, data.weight, data.reduce)
    spread = high - low
    size = np.maximum(np.abs(low), np.abs(high))
    step = np.spacing(size)
    coarse = (spread > 0) & (step > COARSE * spread)
    if coarse.any():
        which = int(coarse.argmax())
        warn(
            f"the labels are rounded: near {size[which]:.3g} float64 has steps of {step[which]:.3g}, and all labels "
            f"lie within {spread[which]:.3g}. No model can be more exact than that; subtract a constant where "
            "the labels are made, before they become float64."
        )


def _moved(objective: Objective, n_outputs: int) -> Sequence[bool]:
    """Whether each score moves by as much as the labels, where all of these move."""
    if objective.custom is not None:
        return getattr(objective.custom, "moved", ())
    moves = (
        objective.labels == "a number"
        and objective.link in IDENTITY
        and objective.name not in RELATIVE
    )
    return [moves] * n_outputs


def _ends(
    label: Floats, weight: Floats | None, reduce: Reduce | None
) -> tuple[Floats, Floats]:
    """The least and the largest label of rows of positive weight, by column of
    labels.
    """
    columns = label.reshape(len(label), -1)
    live = columns if weight is None else columns[weight > 0]
    ends = np.stack(
        [live.min(axis=0, initial=np.inf), live.max(axis=0, initial=-np.inf)]
    )
    if reduce is not None:
        ends = np.stack(
            [
                np.frombuffer(one, np.float64).reshape(ends.shape)
                for one in reduce.gather(ends.tobytes())
            ]
        )
        return ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
    return ends[0], ends[1]
