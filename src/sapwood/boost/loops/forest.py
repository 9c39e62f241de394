"""Forests: trees that do not build on each other. The trees of a round share its step, or all trees are averaged.

In: a training whose scores are set. Out: by round, the trees that were grown.
"""

from collections.abc import Iterator

import numpy as np

from sapwood.boost.round.training import Step, Training


def parallel(training: Training, rounds: range) -> Iterator[Step]:
    """Boost as `plain.boost` does, with several trees a round: all on the gradients before it, each with its own draws.

    The values of each of the `n_parallel_trees` are divided by their number. The trees of a round are one for each
    output, then one more for each, and so on.
    """
    n_copies = training.params["n_parallel_trees"]
    for index in rounds:
        scores, grown = training.trainer.scores(), []
        for copy in range(n_copies):
            for output, tree in enumerate(training.grow_round(index, copy, training.leaf_plan.rate(index) / n_copies)):
                scores[output] += training.tree_output(tree, output)
                grown.append((tree, output))
        training.trainer.set_scores(scores)
        for tree, output in grown:
            for rows in training.eval_rows:
                rows.add(tree, output)
        yield [tree for tree, _ in grown], None


def boost(training: Training, rounds: range) -> Iterator[Step]:
    """Grow a forest: every tree on the gradients of the start scores, unshrunk; predictions average the rounds.

    The scores of the trainer do not change; those of evaluation rows are the average. Rounds count from 0. The trees,
    in the order of `parallel`, are as they were grown; prediction divides their sum (NUMERICS, Ensembles).
    """
    n_copies = training.params["n_parallel_trees"]
    starts = [np.array(rows.scores()) for rows in training.eval_rows]
    totals = [np.zeros_like(start) for start in starts]
    for index in rounds:
        for rows, start in zip(training.eval_rows, starts, strict=True):
            rows.replace(start)  # validation rows that prune a tree are at the start too
        trees = []
        for copy in range(n_copies):
            for output, tree in enumerate(training.grow_round(index, copy, 1.0 / n_copies)):
                for rows, total in zip(training.eval_rows, totals, strict=True):
                    total[output] += rows.tree_output(tree)
                trees.append(tree)
        for rows, start, total in zip(training.eval_rows, starts, totals, strict=True):
            rows.replace(start + total / (index + 1))
        yield trees, None
