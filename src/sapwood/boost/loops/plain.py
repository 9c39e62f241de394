"""Plain gradient boosting: gradients, a sample of rows, trees, scores; round after
round.

In: a training whose scores are set. Out: by round, the trees that were added.
"""

from collections.abc import Iterator

from sapwood.boost.round.training import Step, Training


def boost(training: Training, rounds: range) -> Iterator[Step]:
    """Add rounds to a model; the caller may stop after any of them.

    training: Training; training rows with the scores of the model so far, and
    evaluation rows, whose scores are kept up
      to date.
    rounds: range; numbers of the rounds: random draws depend on them, so 10 + 10 rounds
    give the model of 20.
    Yields trees, list of Tree: the trees of one round, one for each output.
    Yields weights, None: no tree is changed later.
    """
    for index in rounds:
        trees = training.grow_round(index)
        training.add_scores(trees)
        yield trees, None
