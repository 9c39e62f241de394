"""Forests: trees that do not build on each other. The trees of a round share its step,
or all trees are averaged.

In: a training whose scores are set. Out: by round, the trees that were grown.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sapwood.boost.round.training import Step, Training
from sapwood.device import Tree


def parallel(training: Training, rounds: range) -> Iterator[Step]:
    """Boost as `plain.boost` does, with several trees a round: all on the gradients
    before it, each with its own draws.

    The values of each of the `n_parallel_trees` are divided by their number. The trees
    of a round are one for each output, then one more for each, and so on.
    """
    n_copies = training.params["n_parallel_trees"]
    for index in rounds:
        scores = NextScores(training)
        grown = []
        training.foresee([index], n_copies)
        for copy in range(n_copies):
            for output, tree in enumerate(
                training.grow_round(
                    index, copy, training.leaf_plan.rate(index) / n_copies
                )
            ):
                scores.add(tree, output)
                grown.append((tree, output))
        scores.set()
        for tree, output in grown:
            for rows in training.eval_rows:
                rows.add(tree, output)
        yield [tree for tree, _ in grown], None


class NextScores:
    """The scores of the training rows after a round; the trainer keeps those before it
    while the round's trees grow.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        there = getattr(training.trainer, "add_later", None)
        # a device that adds them itself
        self._there: Any = None if there is None else training.trainer
        self._scores = training.trainer.scores() if there is None else np.empty(0)

    def add(self, tree: Tree, output: int) -> None:
        """Add the tree just grown for an output."""
        if self._there is not None:
            self._there.add_later(output)
        else:
            self._scores[output] += self._training.tree_output(tree, output)

    def set(self) -> None:
        """Make them those of the trainer."""
        if self._there is not None:
            self._there.take_later()
        else:
            self._training.trainer.set_scores(self._scores)


def boost(training: Training, rounds: range) -> Iterator[Step]:
    """Grow a forest: every tree on the gradients of the start scores, unshrunk;
    predictions average the rounds.

    The scores of the trainer do not change; those of evaluation rows are the average.
    Rounds count from 0. The trees, in the order of `parallel`, are as they were grown;
    prediction divides their sum (NUMERICS, Ensembles).
    """
    n_copies = training.params["n_parallel_trees"]
    starts = [np.array(rows.scores()) for rows in training.eval_rows]
    totals = [np.zeros_like(start) for start in starts]
    training.foresee(rounds, n_copies)
    for index in rounds:
        for rows, start in zip(training.eval_rows, starts, strict=True):
            # validation rows that prune a tree are at the start too
            rows.replace(start)
        trees = []
        for copy in range(n_copies):
            for output, tree in enumerate(
                training.grow_round(index, copy, 1.0 / n_copies)
            ):
                for rows, total in zip(training.eval_rows, totals, strict=True):
                    total[output] += rows.tree_output(tree)
                trees.append(tree)
        for rows, start, total in zip(training.eval_rows, starts, totals, strict=True):
            rows.replace(start + total / (index + 1))
        yield trees, None
