"""What the core on the host does for rows whose trees grow on the device: leaf values
beyond one Newton step, replays.

In: a trainer of the device. Out: the core's own results; scores, gradients, sample and
leaves are copied there first.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.binned import Binned
from sapwood.device.cuda.runtime import Runtime
from sapwood.errors import warn

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
# arrays of a tree
_SPLITS = ("column", "bin", "missing_left", "left", "set", "set_offset", "set_code")


class Hosted:
    """The part of a trainer that the host has; `_core.pyi` says what each method takes
    and returns.
    """

    runtime: Runtime
    _binned: Binned
    _host_arguments: tuple[Any, ...]
    _n_outputs: int
    _last: dict[Any, Any]
    _arrays: dict[str, Any]
    _mark_used: Any  # trees use these columns
    _lines: list[Any]  # of linear leaves

    def _start_hosted(self) -> None:
        self._host: _core.Trainer | None = None
        # changes of scores, gradients and sample on the device, and those that the host
        # has
        self._turns = [0, -1]
        # the host has the leaves of these outputs' trees
        self._leaves_there = [False] * self._n_outputs

    # What the trainer of the device has.
    def scores(self, rows: Ints | None = None) -> Floats:
        raise NotImplementedError

    def leaf_ids(self, output: int) -> Ints:
        raise NotImplementedError

    def set_leaf_ids(self, output: int, leaf_id: Ints, n_leaves: int) -> None:
        raise NotImplementedError

    def relabel_leaves(self, output: int, new_id: Ints | None, value: Floats) -> None:
        raise NotImplementedError

    def _changed(self) -> None:
        """Scores, gradients or the sample have changed: the host's are old."""
        self._turns[0] += 1

    def _new_leaves(self, outputs: Iterable[int]) -> None:
        """The rows of these outputs have other leaves."""
        for k in outputs:
            self._lines[k], self._leaves_there[k] = None, False

    def _core_trainer(self) -> _core.Trainer:
        if self._host is None:
            self._host = _core.Trainer(self._binned.host, *self._host_arguments)
            warn(
                f"on device={self.runtime.name!r} replays and leaf values beyond one Newton step are found by the CPU: "
                "scores and leaf ids are copied in every round. The second training of an automatic fit replays trees, "
                "and quality=None does not; leaf_estimation='newton' with leaf_iterations=1 is one step."
            )
        return self._host

    def _with_gradients(self) -> _core.Trainer:
        """The core's trainer with these scores, gradients and this sample."""
        scores = self.scores()
        host = self._core_trainer()
        if self._turns[0] != self._turns[1]:
            host.set_scores(scores)
            if "gradients" in self._last:
                host.set_sampler(*self._last["sampler"])
                *rules, given = self._last["gradients"]
                own = [
                    self.runtime.get(self._arrays[name])
                    for name in ("given_g", "given_h")
                    if given
                ]
                host.gradients(*rules, *own)
                host.sample(*self._last.get("sample", (0, 0, None)))
            self._turns[1] = self._turns[0]
        return host

    def _with_leaves(self, output: int, n_leaves: int) -> _core.Trainer:
        """The same with the leaves of the trees last grown."""
        host = self._with_gradients()
        for k in range(self._n_outputs):
            if not self._leaves_there[k]:
                host.set_leaf_ids(
                    k, self.leaf_ids(k), n_leaves if k == output else self._n_leaves(k)
                )
                self._leaves_there[k] = True
        return host

    def leaf_loss_sums(
        self, output: int, step: Floats
    ) -> tuple[Floats, Floats, Floats]:
        return self._with_leaves(output, len(step)).leaf_loss_sums(output, step)

    def refit(
        self, output: int, method: str, iterations: int, *penalty: float
    ) -> Floats:
        return self._with_leaves(output, self._n_leaves(output)).refit(
            output, method, iterations, *penalty
        )

    def _n_leaves(self, output: int) -> int:
        raise NotImplementedError

    def line_search(self, output: int, value: Floats) -> float:
        return self._with_leaves(output, len(value)).line_search(output, value)

    # ---- Trees that have grown before ------------------------------------------------

    def replay(
        self, first: int, end: int, *, limits: Any, **tree: Any
    ) -> list[tuple[Floats, Floats, Floats]]:
        host = self._with_gradients()
        found = host.replay(first, end, **tree, limits=limits)
        is_leaf = tree["left"] == 0
        for k in range(first, end):
            self.set_leaf_ids(k, host.leaf_ids(k), int(is_leaf.sum()))
            self.relabel_leaves(k, None, found[k - first][0][is_leaf])
        return found

    def restore(self, output: int, *, value: Floats, **tree: Any) -> None:
        is_leaf = tree["left"] == 0
        self.assign_rows(output, self._binned, *[tree[name] for name in _SPLITS])
        self.relabel_leaves(output, None, value[is_leaf])
        self._mark_used(tree["column"][~is_leaf])

    def assign_rows(self, output: int, table: Any, *splits: Any) -> None:
        node: Ints = _core.apply(table.host, *splits, self._host_arguments[-1])  # type: ignore[call-arg]
        is_leaf = splits[_SPLITS.index("left")] == 0
        self.set_leaf_ids(
            output, (np.cumsum(is_leaf, dtype=np.int32) - 1)[node], int(is_leaf.sum())
        )
