"""Ordered boosting: a split is evaluated on rows that did not contribute to the leaf
values on its two sides.

In: a training whose scores are set. Out: by round, the trees that were added.

Prokhorenkova et al. (2018), against prediction shift; NUMERICS (Ordered boosting) has
the arithmetic. For n rows the prefix models of a permutation keep the codes and scores
of 2n to 3n rows; all trees grow on these.
"""

from collections.abc import Iterator

import numpy as np

from sapwood import objective
from sapwood.boost.leaves import leaf
from sapwood.boost.round.training import Models, Step, Training
from sapwood.data import target_statistics
from sapwood.data.dataset import Dataset
from sapwood.device import Binned, Trainer, host
from sapwood.device.threads import threads
from sapwood.errors import ParameterError

MAX_LEAVES = host.MAX_LEAF_IDS  # of all prefix models of a permutation together
# up to 500 rows the first body has 1 row, else n / 50, at most 100
SMALL = 500
MAX_FIRST = 100
FIRST_SHARE = 50


def boost(training: Training, rounds: range) -> Iterator[Step]:
    """Add rounds to a model, as `plain.boost` does; they count from 0.

    The splits of trees come from the prefix models of a permutation, their values from
    the model itself.
    """
    orders = [
        PrefixModels(training, which)
        for which in range(training.params["n_permutations"])
    ]
    for index in rounds:
        trees = training.grow_round(
            index, models=orders[training.permutation_of(index)].models
        )
        for order, trainer in zip(orders, training.growers, strict=True):
            order.update_scores(trainer, training.leaf_plan.rate(index))
        for output, tree in enumerate(trees):
            training.trainer.add_scores(output)
            for rows in training.eval_rows:
                rows.add(tree, output)
        yield trees, None


def sizes(n: int) -> list[tuple[int, int]]:
    """For each prefix model of `n` rows: the size of its body, which it learns from,
    and that of body and tail.

    ::

        place     0 1 2 3 4 5 6 7 8 ...
        model 0   o ?                     o: body, whose rows give leaves their values
        model 1   o o ? ?                 ?: tail, on which splits with these values are evaluated
        model 2   o o o o ? ? ? ?
    """
    body = 1 if n <= SMALL else min(MAX_FIRST, n // FIRST_SHARE)
    found = [(body, min(2 * body, n))]
    while found[-1][1] < n:
        body = found[-1][1]
        found.append((body, min(2 * body, n)))
    return found


class PrefixModels:
    """The models of growing prefixes of one permutation: each prefix is twice as long
    as the one before it.

    The rows of all models stand one after the other, in two trainers: one without
    columns, for leaf values, and one with columns, for splits.
    """

    def __init__(self, training: Training, which: int) -> None:
        params, plan, (label, weight) = (
            training.params,
            training.leaf_plan,
            training.rows,
        )
        assert training.data is not None
        self._training, self._which, self._device = (
            training,
            which,
            training.data.device,
        )
        self._order = target_statistics.permutation(
            params["random_state"], which, len(label), weight, params["has_time"]
        )
        parts = sizes(len(self._order))
        self._known = [end for _, end in parts]
        first = np.cumsum([0, *self._known[:-1]]).tolist()
        self._ends = [
            place + end
            for place, part in zip(first, parts, strict=True)
            for end in part
        ]
        self._rows = np.concatenate([self._order[:end] for end in self._known])
        learns = np.concatenate([np.arange(end) < body for body, end in parts])
        self._label = objective.planes(
            plan.objective, label[self._rows], plan.n_outputs
        )
        self._weight = None if weight is None else weight[self._rows]
        none = self._device.Binned(
            [[np.zeros(len(self._rows), np.uint8)]], [np.empty(0)], 1
        )
        self._values = self._trainer(
            none, learns * (1.0 if self._weight is None else self._weight)
        )
        self._values.set_scores(
            np.ascontiguousarray(training.trainer.scores()[:, self._rows])
        )
        self._table: Dataset | None = None
        self._splits = self._values  # until there is a table

    def _trainer(self, binned: Binned, weight: leaf.Floats | None) -> Trainer:
        goal = self._training.leaf_plan.objective
        n_threads = threads(self._training.params["n_jobs"])
        return self._device.Trainer(
            binned,
            self._label,
            weight,
            goal.core,
            goal.fields,
            self._training.leaf_plan.n_outputs,
            n_threads,
        )

    def models(self) -> Models:
        """The rows of all models at their scores, and where each body and tail ends."""
        table = self._training.tables[self._which]
        if table is not self._table:
            self._table, self._splits = (
                table,
                self._trainer(table.take_codes(self._rows), self._weight),
            )
        self._splits.copy_settings(self._training.growers[self._which])
        self._splits.set_scores(self._values.scores())
        return self._splits, self._ends

    def update_scores(self, trainer: Trainer, rate: float) -> None:
        """Add the trees just grown to the scores of all models; each model's rows give
        its own leaf values.
        """
        plan = self._training.leaf_plan
        values = self._values
        for output in range(plan.n_outputs):
            number = trainer.leaf_ids(output)
            n_leaves = int(number.max()) + 1
            number = number[self._order]
            if n_leaves * len(self._known) > MAX_LEAVES:
                raise ParameterError(
                    f"boosting='ordered' has {len(self._known)} models here, whose trees have {n_leaves} leaves; "
                    f"together these must not exceed {MAX_LEAVES}: set max_leaves or max_depth."
                )
            beside = [
                number[:end] + nth * n_leaves for nth, end in enumerate(self._known)
            ]
            values.set_leaf_ids(
                output,
                np.concatenate(beside).astype(np.int32),
                n_leaves * len(self._known),
            )
        steps = [
            rate * leaf.refit(values, output, plan) for output in range(plan.n_outputs)
        ]
        for output, value in enumerate(steps):
            values.relabel_leaves(output, None, value)
            values.add_scores(output)
