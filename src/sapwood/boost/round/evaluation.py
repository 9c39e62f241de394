"""Rows that are evaluated after every round: a validation set, or training rows of
weight 0.

In: the trees of a round. Out: the metrics of those rows after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sapwood.boost import offset
from sapwood.boost.categories.combinations import Sources, extended
from sapwood.boost.leaves import linear
from sapwood.data.dataset import Dataset
from sapwood.data.dealt import total
from sapwood.device import Trainer
from sapwood.errors import DataError, DivergedError
from sapwood.metric import Metric
from sapwood.model.trees import Trees
from sapwood.objective import Objective
from sapwood.reduce import Reduce

if TYPE_CHECKING:
    from sapwood.boost.categories.encoded_training import EncodedTraining

Floats = NDArray[np.float64]


class EvalRows(Protocol):
    """Rows whose scores are kept up to date with the model."""

    label: Floats
    centred: Floats  # the labels less the offset, as scores are
    weight: Floats | None
    group: NDArray[np.int32] | None
    reduce: Reduce | None  # over the holders of the rows

    def add(self, tree: Mapping[str, Any], output: int) -> None:
        """Add a new tree to the scores."""

    def scores(self) -> Floats:
        """Raw scores, (n_outputs, n_rows)."""

    def replace(self, scores: Floats) -> None:
        """Replace the scores, (n_outputs, n_rows)."""

    def measured_there(self, asked: Any, link: str) -> list[float] | None:
        """Metrics (name, parameter) of rows whose scores are on a device, found there;
        None: the host finds them.
        """

    def leaf_ids(self, tree: Mapping[str, Any]) -> NDArray[np.int32]:
        """The leaf (node) that each row comes to."""

    def tree_output(self, tree: Mapping[str, Any]) -> Floats:
        """What a tree adds to the score of each row."""


class EvalSet:
    """A dataset in the bins of the training data, with scores of its own."""

    def __init__(
        self,
        data: Dataset,
        scores: Floats,
        shift: Floats,
        n_threads: int,
        encoded: "EncodedTraining | None" = None,
    ) -> None:
        assert data.label is not None
        self.centred = offset.subtracted(data.label, shift)
        self.label = data.label
        self.weight = data.weight
        self.values = data.values
        self.reduce = data.reduce
        self.group = data.group
        self._data = data
        self._scores = scores
        self._n_threads = n_threads
        # with combinations
        self._whole = data
        self._encoded = encoded
        self._place: dict[Sources, int] = {}  # of their columns
        there = getattr(data.device, "EvalScores", None)
        plain = encoded is None and data.label.ndim == 1
        plain = (
            plain and data.values is None and not data.unseen and data.reduce is None
        )
        self._there: Any = (
            there(data.binned, scores, data.label, data.weight)
            if there and plain
            else None
        )

    def add(self, tree: Mapping[str, Any], output: int) -> None:
        if self._there is not None:
            self._there.add(tree, output)
        else:
            self._scores[output] += self.tree_output(tree)

    def scores(self) -> Floats:
        return self._scores if self._there is None else self._there.get()

    def replace(self, scores: Floats) -> None:
        self._scores = scores
        if self._there is not None:
            self._there.put(scores)

    def measured_there(self, asked: Any, link: str) -> list[float] | None:
        return None if self._there is None else self._there.measure(asked, link)

    def leaf_ids(self, tree: Mapping[str, Any]) -> NDArray[np.int32]:
        return apply(*self._rows(tree), self._n_threads)

    def tree_output(self, tree: Mapping[str, Any]) -> Floats:
        node = apply(*self._rows(tree), self._n_threads)
        return linear.tree_output(tree, node, self._data.values, self._n_threads)

    def _rows(self, tree: Mapping[str, Any]) -> tuple[Dataset, Mapping[str, Any]]:
        """The rows with all columns that a tree splits, and the tree over these.

        Combinations that may be used next are included, so that the table is not made
        again for each.
        """
        n = self._data.n_columns
        column = tree["column"]
        if self._encoded is None or column.max() < n:
            return self._data, tree
        used = [sources for sources, _ in self._encoded.combinations]
        if any(
            used[one - n] not in self._place for one in np.unique(column[column >= n])
        ):
            known = self._encoded.known
            self._whole = extended(self._data, known)
            self._place = {sources: n + i for i, (sources, _) in enumerate(known)}
        place = np.array(
            [*range(n), *(self._place.get(one, -1) for one in used)], np.int32
        )
        return self._whole, {
            **tree,
            "column": np.where(column < 0, column, place[column]),
        }


class HeldOutRows:
    """Some of the training rows, of weight 0 in training, so that nothing is copied or
    binned again.
    """

    def __init__(
        self, data: Dataset, trainer: Trainer, rows: NDArray[Any], shift: Floats
    ) -> None:
        assert data.label is not None
        self.label = data.label[rows]
        self.centred = offset.subtracted(self.label, shift)
        self.weight = None if data.weight is None else data.weight[rows]
        self._data = data
        self._trainer = trainer
        self.reduce = data.reduce
        self._rows = (np.flatnonzero(rows) if rows.dtype == np.bool_ else rows).astype(
            np.int32
        )
        self.group = (
            None if data.group is None or data.reduce is not None else data.group[rows]
        )
        self._scores: Floats | None = None  # those of the trainer, unless replaced

    def add(self, tree: Mapping[str, Any], output: int) -> None:
        """The trainer adds every tree to all its rows."""

    def scores(self) -> Floats:
        return (
            self._trainer.scores(self._rows) if self._scores is None else self._scores
        )

    def replace(self, scores: Floats) -> None:
        self._scores = scores

    def measured_there(self, asked: Any, link: str) -> list[float] | None:
        there: Any = getattr(self._trainer, "measure", None)
        if (
            there is None
            or self._scores is not None
            or self.label.ndim > 1
            or self.reduce is not None
        ):
            return None
        found: list[float] | None = there(
            self._rows, self.label, self.weight, asked, link
        )
        return found

    def leaf_ids(self, tree: Mapping[str, Any]) -> NDArray[np.int32]:
        leaf: NDArray[np.int32] = apply(self._data, tree, 1)[self._rows]
        return leaf

    def tree_output(self, tree: Mapping[str, Any]) -> Floats:
        output: Floats = tree_output(self._data, tree, 1)[self._rows]
        return output


def measure(
    rows: EvalRows,
    metrics: Sequence[Metric],
    objective: Objective,
    n_threads: int,
    shift: Floats,
) -> dict[str, float]:
    """Every metric of the rows, by name."""
    asked = [metric.known for metric in metrics]
    if metrics and None not in asked and objective.custom is None and not shift.any():
        there = rows.measured_there(asked, objective.link)
        if there is not None:
            return {
                metric.name: value for metric, value in zip(metrics, there, strict=True)
            }
    prediction = offset.added(
        objective.predict(np.ascontiguousarray(rows.scores().T), n_threads), shift
    )
    if rows.reduce is not None and total(
        rows.reduce, not np.isfinite(prediction).all()
    ):
        # on all holders
        raise DivergedError("some predictions of the validation rows are")
    try:
        values = [
            metric(rows.label, prediction, rows.weight, rows.reduce, rows.group)
            for metric in metrics
        ]
        # the first call may name it
        return {
            metric.name: value for metric, value in zip(metrics, values, strict=True)
        }
    except ValueError as cause:
        if not np.isfinite(prediction).all():
            raise DivergedError(
                "some predictions of the validation rows are"
            ) from cause
        raise


def start_scores(
    data: Dataset, base: Floats, trees: Trees | None, n_threads: int, shift: Floats
) -> Floats:
    """Scores (n_outputs, n_rows) before the first new round: the base or init_score,
    and the trees to continue from.

    They have the bits of a training that has just grown these trees: each row adds leaf
    values in the order of trees.
    """
    if data.init_score is not None:
        scores = np.array(
            offset.subtracted(data.init_score, shift).T, np.float64, order="C"
        )
    else:
        scores = np.repeat(base[:, None], data.n_rows, axis=1)
    if trees is not None:
        for tree, output in zip(
            as_grown(trees, data.cuts), trees.output.tolist(), strict=True
        ):
            scores[output] += tree_output(data, tree, n_threads)
    return scores


def as_grown(trees: Trees, cuts: Sequence[Floats]) -> Iterator[Any]:
    """The trees of a model one by one as the core grew them, over the bins of these
    cuts.
    """
    bins = _bins(trees, cuts)
    for tree, (first, last) in enumerate(pairwise(trees.offset.tolist())):
        arrays: dict[str, Any] = {"bin": bins[first:last], **trees.grown(tree)}
        if trees.linear is not None:
            arrays["linear"] = trees.linear.slice(first, last).terms
        yield arrays


def tree_output(data: Dataset, tree: Mapping[str, Any], n_threads: int) -> Floats:
    """What a tree adds to the score of each row of a dataset."""
    return linear.tree_output(
        tree, apply(data, tree, n_threads), data.values, n_threads
    )


def apply(data: Dataset, tree: Mapping[str, Any], n_threads: int) -> NDArray[np.int32]:
    """The leaf (node) that each row of a dataset comes to."""
    column, bins, sides, left = (
        tree[name] for name in ("column", "bin", "missing_left", "left")
    )
    sets = tree["set"], tree["set_offset"], tree["set_code"]
    leaf = data.device.apply(data.binned, column, bins, sides, left, *sets, n_threads)
    # in bins an unseen category is missing: these rows are sent by their codes
    if data.unseen and (sides > 1).any():
        rows, table = data.unseen_rows
        ends = np.array([0, len(left)])
        none = np.zeros(len(left))
        numbers = bins.astype(np.float64)
        nodes = column, numbers, sides, left, none, *sets
        forest = data.device.Forest(
            len(table), ends, np.zeros(1, np.int32), *nodes, np.zeros(1), "identity"
        )
        leaf[rows] = forest.leaves(table, 0, 1, n_threads)[:, 0]
    return leaf


def _bins(trees: Trees, cuts: Sequence[Floats]) -> NDArray[np.int32]:
    """The bin of every node's threshold among a dataset's cuts; -1 in leaves, and where
    a set decides.
    """
    bins = np.full(trees.n_nodes, -1, np.int32)
    ordered = trees.set < 0
    for column in np.unique(trees.column[ordered & (trees.column >= 0)]):
        nodes = np.flatnonzero(trees.column == column)
        # a threshold of +inf parts values from missing
        ends = np.append(cuts[column], np.inf)
        bins[nodes] = np.searchsorted(ends, trees.threshold[nodes])
        if (ends[bins[nodes]] != trees.threshold[nodes]).any():
            raise DataError(
                f"init_model splits column {column} where the data has no cut, so it cannot go on from there; make "
                "the data with Dataset(..., reference=the data the model was trained on), or train on what the model "
                "leaves: init_score=model.predict(X, raw=True)."
            )
    return bins
