"""Ordered boosting: what is left of a row is judged by a model of other rows, those before it in a random order.

In: a task whose scores are set. Out: round after round, the trees that were added.

Prokhorenkova et al. (2018), against prediction shift; NUMERICS (Ordered boosting) has the rules. With n rows an order
keeps between 2n and 3n scores, and a round takes that many gradients for the values of its models' leaves.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sapwood import objective
from sapwood.boost import leaf
from sapwood.boost.task import Floats, Step, Task
from sapwood.data import encode
from sapwood.device import cpu
from sapwood.errors import ParameterError

MOST_LEAVES = 65536  # of all models of an order together


def check(params: Mapping[str, Any]) -> None:
    """Raise unless parameters go with ordered boosting."""
    if params["n_parallel_trees"] > 1 or params["line_search"] != "none":
        raise ParameterError("boosting='ordered' grows one tree a round and output, and searches no line.")


def boost(task: Task, rounds: range) -> Iterator[Step]:
    """Add rounds to a model; whoever iterates may stop after any of them.

    Parameters
    ----------
    task : Task
        As in `plain.boost`.
    rounds : range
        Numbers of the rounds, from 0.

    Yields
    ------
    trees : list of Tree
        The trees of one round: their splits by ordered gradients, their values by those of the model itself.
    weights : None
        No tree is changed later.
    """
    orders = [Order(task, which) for which in range(task.params["n_permutations"])]
    for index in rounds:
        trees = task.trees(index, at=orders[task.turn(index)].scores(task.trainer.scores()))
        for order, trainer in zip(orders, task.growers, strict=True):
            order.follow(trainer, task.rule.rate(index))
        for output, tree in enumerate(trees):
            task.trainer.add_scores(output)
            for watch in task.watches:
                watch.add(tree, output)
        yield trees, None


class Order:
    """Models of growing prefixes of one order of the rows: twice as many rows each, and each knows as many again.

    ::

        place     0 1 2 3 4 5 6 7 8 ...
        model 0   ?                       o: a row it learns from
        model 1   o ?                     ?: a row that takes its gradient from it
        model 2   o o ? ?
        model 3   o o o o ? ? ? ?

    All their rows stand one after the other in a trainer without columns, and their leaves beside each other.
    """

    def __init__(self, task: Task, which: int) -> None:
        params, rule, (label, weight) = task.params, task.rule, task.rows
        if cpu.objectives()[rule.objective.core]["adaptive"]:
            raise ParameterError(f"objective={rule.objective.name!r} adapts to all rows; boosting='ordered' does not.")
        self._rule = rule
        self._order = encode.permutation(params["random_state"], which, len(label), weight, params["has_time"])
        n = len(self._order)
        self._ends = [min(2**model, n) for model in range(int(n - 1).bit_length() + 1)]
        first = np.cumsum([0, *self._ends[:-1]])
        place = np.arange(n)
        self._at = first[np.frexp(place)[1]] + place  # a place of k bits is judged by model k
        rows = np.concatenate([self._order[:end] for end in self._ends])
        learns = np.concatenate([np.arange(end) < 2**model // 2 for model, end in enumerate(self._ends)])
        planes = objective.planes(rule.objective, label[rows], rule.n_outputs)
        none = cpu.Binned([[np.zeros(len(rows), np.uint8)]], [np.empty(0)], 1)
        by, goal, n_threads = learns * (1.0 if weight is None else weight[rows]), rule.objective, params["n_jobs"]
        self._trainer = cpu.Trainer(none, planes, by, goal.core, goal.fields, rule.n_outputs, cpu.threads(n_threads))
        self._trainer.set_scores(np.ascontiguousarray(task.trainer.scores()[:, rows]))

    def scores(self, others: Floats) -> Floats:
        """The score of every row by a model that has not seen it; those of rows in no order are `others`."""
        others[:, self._order] = self._trainer.scores()[:, self._at]
        return others

    def follow(self, trainer: cpu.Trainer, rate: float) -> None:
        """Take the trees just grown into all models, each with the values that its own rows give the leaves."""
        outputs, models = range(self._rule.n_outputs), self._trainer
        for output in outputs:
            number = trainer.leaves(output)
            n_leaves, number = int(number.max()) + 1, number[self._order]
            if n_leaves * len(self._ends) > MOST_LEAVES:
                raise ParameterError(
                    f"boosting='ordered' has {len(self._ends)} models here, whose trees have {n_leaves} leaves; "
                    f"together these must not exceed {MOST_LEAVES}: set max_leaves or max_depth."
                )
            beside = [number[:end] + nth * n_leaves for nth, end in enumerate(self._ends)]
            models.assign(output, np.concatenate(beside).astype(np.int32), n_leaves * len(self._ends))
        values = [rate * leaf.refit(models, output, self._rule) for output in outputs]
        for output, value in enumerate(values):
            models.set_leaves(output, None, value)
            models.add_scores(output)
