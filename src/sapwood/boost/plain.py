"""Plain gradient boosting: which way is down, who is asked, what is the rule, what changed.

In: a trainer whose scores are set, and the rows to watch. Out: round after round, the trees that were added.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sapwood import grow, objective, sampling
from sapwood.boost import leaf
from sapwood.boost.watch import Watch
from sapwood.device import cpu


def boost(
    trainer: cpu.Trainer, params: Mapping[str, Any], rule: leaf.Rule, rows: leaf.Rows, rounds: range,
    watches: Sequence[Watch],
) -> Iterator[list[cpu.Tree]]:  # fmt: skip
    """Add rounds to a model; whoever iterates may stop after any of them.

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
    rounds : range
        Numbers of the rounds: draws go by them, so that 10 + 10 rounds are 20.
    watches : sequence of Watch
        Validation rows; their scores follow.

    Yields
    ------
    list of Tree
        The trees of one round, one for each output.
    """
    policy, limits = grow.plan(params, rule.path_smooth)
    seed, judge = params["random_state"], watches[-1] if watches else None
    for index in rounds:
        objective.gradients(rule.objective, trainer, params, index, *rows)
        rate = rule.rate(index)
        sampling.rows(trainer, params, index, rate)
        trees = []
        limits["learning_rate"] = 1.0 if rule.after else rate
        for output, tree in enumerate(trainer.grow(policy, limits, seed, index * rule.n_outputs)):
            if rule.after:
                tree = leaf.settle(trainer, output, tree, rate, rule, judge, rows)
            trainer.add_scores(output)
            for watch in watches:
                watch.add(tree, output)
            trees.append(tree)
        yield trees
