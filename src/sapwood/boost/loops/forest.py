"""Forests: trees that do not build on each other. Several in a round share its step; or all are averaged.

In: a task whose scores are set. Out: round after round, the trees that were grown.
"""

from collections.abc import Iterator

import numpy as np

from sapwood.boost.round.training import Step, Training


def parallel(task: Training, rounds: range) -> Iterator[Step]:
    """Boost with several trees a round: all on the gradients before it, each with its own draws.

    Parameters
    ----------
    task : Training
        As in `plain.boost`; the values of each of the `n_parallel_trees` are divided by their number.
    rounds : range
        Numbers of the rounds.

    Yields
    ------
    trees : list of Tree
        The trees of one round: one for each output, then one more for each, and so on.
    weights : None
        No tree is changed later.
    """
    n_copies = task.params["n_parallel_trees"]
    for index in rounds:
        scores, grown = task.trainer.scores(), []
        for copy in range(n_copies):
            for output, tree in enumerate(task.trees(index, copy, task.rule.rate(index) / n_copies)):
                scores[output] += task.added(tree, output)
                grown.append((tree, output))
        task.trainer.set_scores(scores)
        for tree, output in grown:
            for watch in task.watches:
                watch.add(tree, output)
        yield [tree for tree, _ in grown], None


def boost(task: Training, rounds: range) -> Iterator[Step]:
    """Grow a forest: every tree on the gradients of the start scores, unshrunk; predictions average the rounds.

    Parameters
    ----------
    task : Training
        Its trainer's scores stay where they are; watched rows follow the average.
    rounds : range
        Numbers of the rounds, from 0.

    Yields
    ------
    trees : list of Tree
        As in `parallel`.
    weights : None
        The average is taken over the sum of the trees (NUMERICS, Ensembles), which are as they were grown.
    """
    n_copies = task.params["n_parallel_trees"]
    starts = [np.array(watch.scores()) for watch in task.watches]
    totals = [np.zeros_like(start) for start in starts]
    for index in rounds:
        for watch, start in zip(task.watches, starts, strict=True):
            watch.replace(start)  # where validation rows judge a tree, they are at the start too
        trees = []
        for copy in range(n_copies):
            for output, tree in enumerate(task.trees(index, copy, 1.0 / n_copies)):
                for watch, total in zip(task.watches, totals, strict=True):
                    total[output] += watch.added(tree)
                trees.append(tree)
        for watch, start, total in zip(task.watches, starts, totals, strict=True):
            watch.replace(start + total / (index + 1))
        yield trees, None
