"""The device memory of a training, told ahead.

In: the shape of a training. Out: bytes. A trainer runs one round in a runtime that only
counts what it is asked
for, so what is told is what a training takes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device.cuda.binned import LANES
from sapwood.device.cuda.runtime import SETTINGS
from sapwood.device.cuda.trainer import Trainer

FEW = 1 << 16  # rows of a trial: what rows take grows in proportion, from this size on
ROUNDED = 512  # allocations are multiples of it


@dataclass(frozen=True)
class Shape:
    """What the memory of a training depends on."""

    n_rows: int
    n_bins: tuple[int, ...]  # of each column
    is_category: tuple[bool, ...]
    n_outputs: int
    n_labels: int  # of a row
    weighted: bool
    objective: str
    fields: Mapping[str, float]
    sampler: tuple[str, Mapping[str, float]]
    subsample: float
    policy: str
    limits: Mapping[str, float]
    precision: str
    unit_search: bool  # hessians of 1 in the search alone
    together: bool = False  # vector leaves
    sketch: int = 0  # sums of their gradients that splits are searched by; 0: all
    cosine: bool = False
    n_copies: int = 1  # whose trees grow on the same scores
    adds_later: bool = False  # ... to which they are added once all have grown
    value_bytes: int = 0  # of each value behind the bins, where leaves are linear
    # trees of a round grow one after the other, as where little memory is free
    apart: bool = False


class Counting:
    """A runtime that holds nothing: its arrays have a shape, and no memory of their
    own.
    """

    name = "cuda"
    n_processors = 132
    max_shared = 232_448
    settings = SETTINGS

    def __init__(self, n_free: int = 1 << 60) -> None:
        self.total = 0
        self._n_free = n_free

    def free(self) -> int:
        return self._n_free

    def zeros(self, shape: Any, kind: Any) -> NDArray[Any]:
        found = np.broadcast_to(np.zeros((), kind), shape)
        self.total += -(-found.size * found.itemsize // ROUNDED) * ROUNDED
        return found

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        return self.zeros(values.shape, values.dtype)

    def lane(self, owner: object) -> "Counting":
        return self

    def get(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.copy()

    def address(self, values: NDArray[Any]) -> int:
        return 1

    def nothing(self, *arguments: Any, **named: Any) -> None: ...

    put = fill = copy = wait = launch = capture = nothing


def device_bytes(shape: Shape) -> int:
    """Bytes that a training takes on the device: codes, rows, trees, histograms."""
    few, more = (_trial(shape, n) for n in (FEW, 2 * FEW))
    return (
        few + (more - few) * (shape.n_rows - FEW) // FEW if shape.n_rows > FEW else few
    )


def _trial(shape: Shape, n_rows: int) -> int:
    """The same with so many rows, counted in one round of a trainer."""
    run: Any = Counting(0) if shape.apart else Counting()
    n_places = -(-len(shape.n_bins) // LANES) * LANES
    tiles = run.zeros((n_places, n_rows), np.uint8)
    binned = SimpleNamespace(
        runtime=run,
        n_rows=n_rows,
        cuts=[np.empty(0)] * len(shape.n_bins),
        n_bins=list(shape.n_bins),
        is_category=list(shape.is_category),
        places=np.where(
            np.arange(n_places) < len(shape.n_bins), np.arange(n_places), -1
        ).astype(np.int32),
        planes=tiles,
        tiles=run.array(tiles),
    )
    make: Callable[..., Any] = type("Trainer", (Trainer,), {"runtime": run})
    label = np.zeros((shape.n_labels, n_rows))
    weight = np.linspace(0.5, 1.5, n_rows) if shape.weighted else None
    trainer = make(
        binned, label, weight, shape.objective, shape.fields, shape.n_outputs, 1
    )
    trainer._n_planned = shape.n_rows
    trainer._adapts = False  # the host finds a field of the objective
    trainer.set_split_preference(shape.cosine, [], [], [])
    trainer.set_sampler(shape.sampler[0], dict(shape.sampler[1]))
    if shape.n_copies > 1:
        trainer.expect([(0, 0, shape.subsample)] * shape.n_copies, 0)
    trainer.gradients(shape.precision, unit_search=shape.unit_search)
    trainer.sample(0, 0, shape.subsample)
    trainer.grow(
        shape.policy,
        {**shape.limits, "learning_rate": 0.1},
        0,
        0,
        0.0,
        shape.together,
        (),
        shape.sketch,
    )
    if shape.adds_later:
        trainer.add_later(0)
    if shape.value_bytes:
        _fit_a_line(trainer, n_rows, len(shape.n_bins), shape.value_bytes)
    return int(run.total)


def _fit_a_line(trainer: Any, n_rows: int, n_columns: int, value_bytes: int) -> None:
    """A tree of one leaf, which has a line."""
    table = np.broadcast_to(
        np.zeros((), np.float32 if value_bytes == 4 else np.float64),
        (n_rows, n_columns),
    )
    trainer.set_table(table)
    trainer.set_leaf_ids(0, np.zeros(n_rows, np.int32), 1)
    trainer.fit_linear(
        0, np.array([0, 1]), np.zeros(1, np.int32), np.zeros((1, 1)), 0.0, 0.0, 0.0, 0.0
    )
