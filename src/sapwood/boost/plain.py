"""Plain gradient boosting: which way is down, who is asked, what is the rule, what changed.

In: a trainer whose scores are set, and the rows to watch. Out: round after round, the trees that were added.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sapwood import grow, sampling
from sapwood.boost.watch import Watch
from sapwood.device import cpu
from sapwood.errors import DivergedError


def boost(
    trainer: cpu.Trainer, params: Mapping[str, Any], n_outputs: int, first: int, watches: Sequence[Watch]
) -> Iterator[list[cpu.Tree]]:
    """Add rounds to a model; whoever iterates may stop after any of them.

    Parameters
    ----------
    trainer : Trainer
        Training rows with the scores of the model so far.
    params : mapping
        Resolved parameters.
    n_outputs : int
        Scores of a row; a round grows one tree for each.
    first : int
        Rounds the model has already: draws are numbered by round, so that 10 + 10 rounds are 20.
    watches : sequence of Watch
        Validation rows; their scores follow.

    Yields
    ------
    list of Tree
        The trees of one round, one for each output.
    """
    policy, limits = grow.plan(params)
    seed, precision, subsample = params["random_state"], params["precision"], params["subsample"]
    for index in range(first, first + params["n_estimators"]):
        try:
            trainer.gradients(precision)
        except OverflowError as cause:
            raise DivergedError(f"in round {index + 1} the gradients are") from cause
        sampling.rows(trainer, seed, index, subsample)
        trees = []
        for output in range(n_outputs):
            tree = trainer.grow(output, policy, limits, seed, index * n_outputs + output)
            trainer.add_scores(output)
            for watch in watches:
                watch.add(tree, output)
            trees.append(tree)
        yield trees
