"""Ordered boosting: splits are judged by rows that the values on their sides have not seen.

In: a task whose scores are set. Out: round after round, the trees that were added.

Prokhorenkova et al. (2018), against prediction shift; NUMERICS (Ordered boosting) has the rules. With n rows an order
keeps the codes and scores of between 2n and 3n rows, which is what its models know; all trees grow on these.
"""

from collections.abc import Iterator

import numpy as np

from sapwood import objective
from sapwood.boost.leaves import leaf
from sapwood.boost.round.training import Models, Step, Training
from sapwood.data import target_statistics
from sapwood.data.dataset import Dataset
from sapwood.device import Binned, Trainer
from sapwood.device.threads import threads
from sapwood.errors import ParameterError

MAX_LEAVES = 65536  # of all models of an order together
FEW_ROWS, MOST_FIRST, FIRST_SHARE = 500, 100, 50  # of a first body, as in CatBoost


def boost(task: Training, rounds: range) -> Iterator[Step]:
    """Add rounds to a model; whoever iterates may stop after any of them.

    Parameters
    ----------
    task : Training
        As in `plain.boost`.
    rounds : range
        Numbers of the rounds, from 0.

    Yields
    ------
    trees : list of Tree
        The trees of one round: their splits by the models of an order, their values by the model itself.
    weights : None
        No tree is changed later.
    """
    orders = [PrefixModels(task, which) for which in range(task.params["n_permutations"])]
    for index in rounds:
        trees = task.trees(index, models=orders[task.turn(index)].models)
        for order, trainer in zip(orders, task.growers, strict=True):
            order.follow(trainer, task.rule.rate(index))
        for output, tree in enumerate(trees):
            task.trainer.add_scores(output)
            for watch in task.watches:
                watch.add(tree, output)
        yield trees, None


def sizes(n: int) -> list[tuple[int, int]]:
    """Of `n` rows in order, how many every model learns from, its body, and how many it knows, with its tail.

    ::

        place     0 1 2 3 4 5 6 7 8 ...
        model 0   o ?                     o: its body, which gives leaves their values
        model 1   o o ? ?                 ?: its tail, which says what these values are worth
        model 2   o o o o ? ? ? ?
    """
    body = 1 if n <= FEW_ROWS else min(MOST_FIRST, n // FIRST_SHARE)
    found = [(body, min(2 * body, n))]
    while found[-1][1] < n:
        body = found[-1][1]
        found.append((body, min(2 * body, n)))
    return found


class PrefixModels:
    """Models of growing prefixes of one order of the rows: twice as many rows each, and each knows as many again.

    All their rows stand one after the other: in a trainer without columns, their leaves beside each other, for values;
    and in one with columns, for splits.
    """

    def __init__(self, task: Training, which: int) -> None:
        params, rule, (label, weight) = task.params, task.rule, task.rows
        assert task.data is not None
        self._task, self._which, self._device = task, which, task.data.device
        self._order = target_statistics.permutation(
            params["random_state"], which, len(label), weight, params["has_time"]
        )
        parts = sizes(len(self._order))
        self._known = [end for _, end in parts]
        first = np.cumsum([0, *self._known[:-1]]).tolist()
        self._ends = [place + end for place, part in zip(first, parts, strict=True) for end in part]
        self._rows = np.concatenate([self._order[:end] for end in self._known])
        learns = np.concatenate([np.arange(end) < body for body, end in parts])
        self._label = objective.planes(rule.objective, label[self._rows], rule.n_outputs)
        self._weight = None if weight is None else weight[self._rows]
        none = self._device.Binned([[np.zeros(len(self._rows), np.uint8)]], [np.empty(0)], 1)
        self._values = self._trainer(none, learns * (1.0 if self._weight is None else self._weight))
        self._values.set_scores(np.ascontiguousarray(task.trainer.scores()[:, self._rows]))
        self._table: Dataset | None = None
        self._splits = self._values  # until there is a table

    def _trainer(self, binned: Binned, weight: leaf.Floats | None) -> Trainer:
        goal, n_threads = self._task.rule.objective, threads(self._task.params["n_jobs"])
        return self._device.Trainer(
            binned, self._label, weight, goal.core, goal.fields, self._task.rule.n_outputs, n_threads
        )  # fmt: skip

    def models(self) -> Models:
        """The rows of all models at their scores, and where bodies and tails end."""
        table = self._task.tables[self._which]
        if table is not self._table:
            self._table, self._splits = table, self._trainer(table.take_codes(self._rows), self._weight)
        self._splits.copy_settings(self._task.growers[self._which])
        self._splits.set_scores(self._values.scores())
        return self._splits, self._ends

    def follow(self, trainer: Trainer, rate: float) -> None:
        """Take the trees just grown into all models, each with the values that its own rows give the leaves."""
        rule, values = self._task.rule, self._values
        for output in range(rule.n_outputs):
            number = trainer.leaf_ids(output)
            n_leaves, number = int(number.max()) + 1, number[self._order]
            if n_leaves * len(self._known) > MAX_LEAVES:
                raise ParameterError(
                    f"boosting='ordered' has {len(self._known)} models here, whose trees have {n_leaves} leaves; "
                    f"together these must not exceed {MAX_LEAVES}: set max_leaves or max_depth."
                )
            beside = [number[:end] + nth * n_leaves for nth, end in enumerate(self._known)]
            values.set_leaf_ids(output, np.concatenate(beside).astype(np.int32), n_leaves * len(self._known))
        steps = [rate * leaf.refit(values, output, rule) for output in range(rule.n_outputs)]
        for output, value in enumerate(steps):
            values.relabel_leaves(output, None, value)
            values.add_scores(output)
