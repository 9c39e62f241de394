"""Memory that a training needs, told ahead, and kept under a limit.

In: parameters and a `Dataset`, or its size. Out: a `Cost`; while a block lasts,
resident memory stays under a limit.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sapwood.boost.round import growth, sampling
from sapwood.boost.spec import TrainSpec, make_spec, resolve_params
from sapwood.data.dataset import Dataset
from sapwood.data.streaming.limits import text_of
from sapwood.device import host
from sapwood.device.threads import threads
from sapwood.errors import DataError, MemoryLimitError, ParameterError
from sapwood.params.types import is_integer

WINDOW = 48 << 20  # bytes of a store that are in memory at a time, at least
PER_THREAD = 12 << 20  # what a thread may touch between two looks at resident memory
SUM_BYTES = 264 * 16  # of the histogram of a column of up to 256 codes
MAX_NODES = 65_536
# losses whose leaf values are found by sorting
EXACT_LEAVES = ("quantile", "absolute_error")


@dataclass(frozen=True)
class Cost:
    """What a training takes, in bytes. There is no estimate of time: it depends too
    much on the machine.

    Attributes
    ----------
    memory : int
        Resident memory of the process with everything in memory.
    fast : int
        The smallest ``memory_limit`` that leaves the arrays by row in memory; codes are
        read from the store.
    least : int
        The smallest ``memory_limit`` that is accepted: arrays by row lie in files then,
        too.
    disk : int
        The size of the store.
    scratch : int
        Further bytes on disk while a training runs under a limit below `fast`.
    parts : dict of str to int
        What `memory` consists of: ``process`` as it is now, ``codes``, ``labels``,
        ``rows`` (scores, gradients, lists), ``vectors`` (weights, held-out rows),
        ``histograms``.
    device : int
        Memory of the GPU, where the training runs on one.
    """

    memory: int
    fast: int
    least: int
    disk: int
    scratch: int
    parts: dict[str, int]
    device: int = 0

    def __str__(self) -> str:
        there = (
            f"; {text_of(self.device)} in the memory of the GPU" if self.device else ""
        )
        return (
            f"{text_of(self.memory)} in memory; from a store of {text_of(self.disk)}: {text_of(self.fast)}, "
            f"or at least {text_of(self.least)} and {text_of(self.scratch)} more on disk{there}"
        )


@dataclass(frozen=True)
class _Shape:
    """What the memory of a training depends on."""

    n_rows: int
    n_columns: int
    n_bins: int  # of the widest column
    n_outputs: int
    weighted: bool
    held: bool  # rows are held out for early stopping
    exact: bool  # leaf values are found by sorting
    n_threads: int
    n_measured: int = 0  # rows of validation sets


def estimate_cost(
    params: Mapping[str, Any] | None = None,
    data: Dataset | None = None,
    *,
    n_rows: int | None = None,
    n_columns: int | None = None,
    n_outputs: int | None = None,
) -> Cost:
    """Tell ahead what a training takes: memory, with and without a store, and disk.

    Parameters
    ----------
    params : mapping, optional
        Parameters of the training.
    data : Dataset, optional
        The training rows. Not given: ``n_rows`` and ``n_columns`` say how many there
        will be.
    n_rows, n_columns : int, optional
        The size of a table that is not read yet.
    n_outputs : int, optional
        Trees of a round: the classes, where there are more than two; else 1. Not for
        ``data``, which has them.

    Returns
    -------
    Cost
    """
    sizes = {"n_rows": n_rows, "n_columns": n_columns, "n_outputs": n_outputs}
    for name, value in sizes.items():
        if value is not None and data is not None:
            raise ParameterError(
                f"{name}={value!r} is for a table that is not read yet, and data is given; leave it out."
            )
        if value is not None and (not is_integer(value) or value < 1):
            raise ParameterError(
                f"{name}={value!r} is not a size; give an integer of at least 1."
            )
    if not isinstance(params, Mapping | None):
        raise ParameterError(
            f"params is a {type(params).__name__}; give a dict of names and values."
        )
    n_outputs = 1 if n_outputs is None else n_outputs
    if data is not None:
        spec = make_spec(params or {}, data, None, watched=False)
        cost = _cost(
            spec.params,
            _shape(spec, data, spec.params["early_stopping_rounds"] is not None),
        )
        return (
            replace(cost, device=_device_bytes(spec, data))
            if _runtime(data) is not None
            else cost
        )
    if n_rows is None or n_columns is None:
        raise ParameterError("estimate_cost needs the data, or n_rows and n_columns.")
    known = resolve_params(params or {}, None)
    held = known["early_stopping_rounds"] is not None
    n_bins = known["max_bins"] or 255
    exact = known["objective"] in EXACT_LEAVES or known["leaf_estimation"] == "exact"
    shape = _Shape(
        n_rows,
        n_columns,
        n_bins,
        n_outputs,
        False,
        held,
        exact,
        threads(known["n_jobs"]),
    )
    cost = _cost(known, shape)
    if known["device"] == "cpu":
        return cost
    bins = (min(n_bins, 255),) * n_columns
    loss = "softmax" if n_outputs > 1 else "squared_error"
    no_fields: dict[str, float] = {}
    there = (n_rows, bins, (False,) * n_columns, n_outputs, 1, held, loss, no_fields)
    value_bytes = 8 if known["linear_leaves"] else 0
    return replace(
        cost, device=host.gpu_bytes(*there, **_growth(known), value_bytes=value_bytes)
    )


@contextmanager
def limited(
    spec: TrainSpec, data: Dataset, held: bool, sets: Iterable[Dataset]
) -> Iterator[None]:
    """Keep resident memory under the limit of the data while this block lasts; raise
    where that cannot be.

    ``held``: rows are held out. ``sets``: validation sets.
    """
    _check_device(spec, data)
    limit = data.memory_limit
    if limit is None:
        yield
        return
    if not host.resident_bytes():
        raise MemoryLimitError(
            "this system does not tell the resident memory of a process; leave memory_limit out."
        )
    cost = _cost(spec.params, _shape(spec, data, held, sum(one.n_rows for one in sets)))
    if limit < cost.least:
        parts = {name: cost.parts[name] for name in _ADVICE}
        said = ", ".join(f"{text_of(size)} for {name}" for name, size in parts.items())
        raise MemoryLimitError(
            f"a memory_limit of {text_of(limit)} is too small: this training needs at least {text_of(cost.least)} "
            f"({said}). Raise the limit, or {_ADVICE[max(parts, key=parts.__getitem__)]}."
        )
    assert data.store is not None
    try:
        if limit < cost.fast:
            host.set_scratch(str(data.store.parent))
        host.set_resident_limit(limit - max(PER_THREAD * spec.n_threads, limit // 20))
        yield
    except MemoryError as cause:
        raise MemoryLimitError(
            f"there is no room for {text_of(cost.scratch)} of arrays by row in {data.store.parent}; make room on that "
            f"disk, or give a memory_limit of {text_of(cost.fast)}."
        ) from cause
    finally:
        host.set_scratch(None)
        host.set_resident_limit(0)


_ADVICE = {
    "process": "train in a process that holds nothing else",
    "histograms": "grow smaller trees (max_leaves, max_depth), or use fewer bins (max_bins)",
    "vectors": "leave weights out, and give a validation set instead of holding rows out",
}


def _runtime(data: Dataset) -> Any:
    """Where the kernels of the data's device run; None on the CPU."""
    return getattr(data.device.Trainer, "runtime", None)


def _growth(params: Mapping[str, Any]) -> dict[str, Any]:
    """What the device memory of a training depends on among its parameters."""
    policy, limits = growth.limits(params)
    name = "uniform" if params["sampling"] == "none" else params["sampling"]
    fields = dict.fromkeys(sampling.SAMPLERS[name]["fields"], 0.5)
    unit = params["hessian"] == "none" and params["leaf_estimation"] != "gradient"
    draws = 0.5 if params["subsample_by_class"] is not None else params["subsample"]
    n_copies = params["n_parallel_trees"]
    several = params["n_parallel_trees"] > 1
    if params["boosting"] == "forest" and not params["random_strength"]:
        n_copies *= params["n_estimators"]
    return {
        "sampler": (name, fields),
        "subsample": draws,
        "policy": policy,
        "limits": limits,
        "precision": params["precision"],
        "unit_search": unit,
        "together": params["multi_strategy"] == "multi_output_tree",
        "sketch": params["sketch_outputs"] or 0,
        "cosine": params["score_function"] == "cosine",
        "n_copies": n_copies,
        "adds_later": several and params["boosting"] == "plain",
    }


def _device_bytes(spec: TrainSpec, data: Dataset, **more: bool) -> int:
    """Device memory of a training with its data."""
    weighted = (
        data.weight is not None
        or spec.factor is not None
        or spec.params["early_stopping_rounds"] is not None
    )
    categories = tuple(column in data.categories for column in range(data.n_columns))
    n_labels = 1 if data.label is None or data.label.ndim == 1 else data.label.shape[1]
    goal = spec.objective
    there = (
        data.n_rows,
        tuple(data.n_bins),
        categories,
        spec.n_outputs,
        n_labels,
        weighted,
        goal.core,
        goal.fields,
    )
    value_bytes = 0 if data.values is None else data.values.itemsize
    return host.gpu_bytes(
        *there, **_growth(spec.params), value_bytes=value_bytes, **more
    )


def _check_device(spec: TrainSpec, data: Dataset) -> None:
    """Raise before the first allocation where the memory of the device does not
    suffice.
    """
    runtime = _runtime(data)
    if runtime is None:
        return
    held = sum(
        codes.nbytes
        for name, codes in vars(data.binned).items()
        if name in ("planes", "tiles")
    )
    need = max(0, _device_bytes(spec, data, apart=True) - held)
    free = runtime.free()
    if need > free:
        raise DataError(
            f"this training needs {text_of(need)} of GPU memory, and {text_of(free)} are free; train on fewer rows or "
            "columns, or smaller trees (max_leaves, max_depth), or use device='cpu'."
        )


def _shape(spec: TrainSpec, data: Dataset, held: bool, n_measured: int = 0) -> _Shape:
    weighted = data.weight is not None or spec.factor is not None
    exact = (
        spec.objective.name in EXACT_LEAVES or spec.params["leaf_estimation"] == "exact"
    )
    widest = max(data.n_bins)
    return _Shape(
        data.n_rows,
        data.n_columns,
        widest,
        spec.n_outputs,
        weighted,
        held,
        exact,
        spec.n_threads,
        n_measured,
    )


def _cost(params: Mapping[str, Any], s: _Shape) -> Cost:
    """The parts of a training's memory: figures that were measured, rounded up
    (tests/system/test_memory_limit.py).
    """
    lists = 17 * (
        min(s.n_outputs, max(2, s.n_threads))
        if params["multi_strategy"] != "multi_output_tree"
        else 1
    )
    by_row = 22 * s.n_outputs + lists + (24 if s.exact else 0)
    by_row += {"uniform": 9 if params["subsample"] < 1 else 0}.get(
        params["sampling"], 20 + 8 * s.n_outputs
    )
    pinned = (
        (4 if s.n_outputs == 1 else 12)
        + (24 + 8 * s.n_outputs if s.weighted else 0)
        + (60 if s.held else 0)
    )
    max_leaves, depth = growth.size(
        params["grow_policy"], params["max_leaves"], params["max_depth"]
    )
    leaves = max(
        2, min(max_leaves or MAX_NODES, 1 << min(16, depth or 16), s.n_rows // 2)
    )
    sums = s.n_columns * SUM_BYTES * max(1, s.n_bins // 256)
    host.release_pages()  # those of labels, which were looked at
    codes = 2 * s.n_rows * s.n_columns * (1 if s.n_bins <= 255 else 2)
    parts = {
        "process": host.resident_bytes() or 100 << 20,
        "codes": codes,
        "labels": 8 * s.n_rows,
        "rows": by_row * s.n_rows,
        "vectors": pinned * s.n_rows + (8 * s.n_outputs + 16) * s.n_measured,
        "histograms": sums
        * (min(s.n_outputs, max(2, s.n_threads)) * (leaves + 1) + 5 * s.n_threads),
    }
    least = (
        parts["process"]
        + parts["histograms"]
        + parts["vectors"]
        + WINDOW
        + PER_THREAD * s.n_threads
    )
    return Cost(
        sum(parts.values()),
        least + parts["rows"],
        least,
        codes + parts["labels"],
        parts["rows"],
        parts,
    )
