"""What the loops of boosting share: the rows, the rules, and the trees of one gradient.

In: a trainer whose scores are set, parameters, rows to watch. Out: trees that are in no score yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import objective
from sapwood.boost.categories.encoded_training import EncodedTraining
from sapwood.boost.leaves import leaf, linear
from sapwood.boost.round import growth, sampling
from sapwood.boost.round.evaluation import EvalRows, apply
from sapwood.data.dataset import Dataset
from sapwood.device import Trainer, Tree, host
from sapwood.device.threads import threads

TURN = 42  # purpose of a draw: the order of a round
Floats = NDArray[np.float64]
Models = tuple[Trainer, list[int]]  # the bodies and tails of several models one after the other, and their ends
Step = tuple[list[Tree], Floats | None]  # the trees of a round; factors on the trees of all rounds so far, or 1


@dataclass(frozen=True)
class Training:
    """One training.

    Parameters
    ----------
    trainer : Trainer
        Training rows with the scores of the model so far.
    params : mapping
        Resolved parameters.
    rule : Rule
        The objective, and what happens to a tree after its growth.
    rows : (label, weight)
        Of the training rows, for what the core does not do itself.
    watches : sequence of EvalRows
        Validation rows; their scores follow.
    values : (n_rows, n_columns) float32 or float64, or None
        Behind the bins of the training rows: leaves are linear where they are given.
    encoded : EncodedTraining or None
        What trees grow on, if not on the columns of the data.
    data : Dataset, optional
        The training rows, where splits are chosen by models of some of them.
    """

    trainer: Trainer
    params: Mapping[str, Any]
    rule: leaf.Rule
    rows: leaf.Rows
    watches: Sequence[EvalRows]
    values: NDArray[Any] | None = None
    encoded: EncodedTraining | None = None
    data: Dataset | None = None

    @cached_property
    def _plan(self) -> tuple[str, dict[str, float]]:
        return growth.plan(self.params, self.rule.path_smooth)

    @cached_property
    def _n_live(self) -> int:
        label, weight = self.rows
        return len(label) if weight is None else int(np.count_nonzero(weight))

    @property
    def growers(self) -> Sequence[Trainer]:
        """Trainers that trees grow on, one for each of the `n_permutations` orders."""
        return [self.trainer] * self.params["n_permutations"] if self.encoded is None else self.encoded.growers

    @property
    def tables(self) -> Sequence[Dataset]:
        """What these trainers have the rows of."""
        if self.encoded is not None:
            return self.encoded.tables
        assert self.data is not None
        return [self.data] * int(self.params["n_permutations"])

    def turn(self, index: int) -> int:
        """Which of the `n_permutations` orders of the rows is a round's."""
        n: int = self.params["n_permutations"]
        return 0 if n == 1 else int(host.draw(self.params["random_state"], TURN, index, 0, 1)[0]) % n

    def trees(
        self, index: int, copy: int = 0, rate: float | None = None, models: Callable[[], Models] | None = None
    ) -> list[Tree]:
        """Grow a tree for every output: which way is down, who is asked, what is the rule, what value.

        Parameters
        ----------
        index : int
            Number of the round.
        copy : int
            Which of the `n_parallel_trees` of the round: each has its own draws.
        rate : float, optional
            Factor on the values; the learning rate of the round by default.
        models : callable, optional
            Gives the rows of several models, by which splits are chosen instead.

        Returns
        -------
        list of Tree
            Shrunk, and not yet added to any score.
        """
        (policy, limits), rule, seed = self._plan, self.rule, self.params["random_state"]
        number = index * self.params["n_parallel_trees"] + copy
        rate = rule.rate(index) if rate is None else rate
        if self.encoded is not None:
            self.encoded.renew(index)
        grower, ends = (self.growers[self.turn(index)], []) if models is None else models()
        objective.gradients(rule.objective, grower, self.params, index, *self.rows)
        sampling.rows(grower, self.params, index, rule.rate, copy)
        limits = {**limits, "learning_rate": 1.0 if rule.after else rate}
        luck = growth.luck(self.params, index, rate, self._n_live)
        together = self.params["multi_strategy"] == "multi_output_tree"
        trees = grower.grow(policy, limits, seed, number * rule.n_outputs, luck, together, ends)
        if models is not None:
            self._set_thresholds(trees, self.tables[self.turn(index)])
        if self.encoded is not None:
            trees = self.encoded.settle(trees, grower, self.trainer)
            self.encoded.follow(rule, rate)
        if models is not None:
            for output, tree in enumerate(trees):
                self._count(tree, output)
        if rule.after:
            judge = self.watches[-1] if self.watches else None
            trees = [
                leaf.settle(self.trainer, output, tree, rate, rule, judge, self.rows)
                for output, tree in enumerate(trees)
            ]
        if self.values is not None and index >= rule.first_linear:
            for output, tree in enumerate(trees):
                linear.fit(self.trainer, output, tree, rate, self.params)
        return trees

    def _set_thresholds(self, trees: Sequence[Tree], table: Dataset) -> None:
        """Thresholds for trees that have grown on codes, and their leaves for the rows of the model."""
        for output, tree in enumerate(trees):
            for node in np.flatnonzero(tree["bin"] >= 0):
                tree["threshold"][node] = np.append(table.cuts[tree["column"][node]], np.inf)[tree["bin"][node]]
            is_leaf = tree["left"] == 0
            number = np.cumsum(is_leaf, dtype=np.int32) - 1
            if self.encoded is None:
                reach = apply(table, tree, threads(self.params["n_jobs"]))
                self.trainer.set_leaf_ids(output, number[reach], int(is_leaf.sum()))

    def _count(self, tree: Tree, output: int) -> None:
        """Cover and count of the nodes of a tree whose leaves the rows of the model are in, at its scores."""
        left, weight = tree["left"], self.rows[1]
        leaf, n_leaves = self.trainer.leaf_ids(output), int((left == 0).sum())
        counts, _, shift = (np.ones(len(leaf), np.int32), True, 0) if weight is None else host.integer_weights(weight)
        total = np.zeros(n_leaves, np.int64)
        np.add.at(total, leaf, counts)
        tree["count"][left == 0] = np.ldexp(total.astype(np.float64), -shift)
        tree["cover"][left == 0] = self.trainer.leaf_loss_sums(output, np.zeros(n_leaves))[2]
        for node in np.flatnonzero(left)[::-1]:
            for name in (tree["count"], tree["cover"]):
                name[node] = name[left[node]] + name[left[node] + 1]

    def reach(self, tree: Tree, output: int) -> NDArray[np.int32]:
        """The leaf (node) that each training row comes to in the tree just grown for an output."""
        return np.flatnonzero(tree["left"] == 0).astype(np.int32)[self.trainer.leaf_ids(output)]

    def added(self, tree: Tree, output: int) -> Floats:
        """What the tree just grown for an output adds to the score of each training row."""
        return linear.added(tree, self.reach(tree, output), self.values, threads(self.params["n_jobs"]))
