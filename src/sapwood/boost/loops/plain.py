"""Plain gradient boosting: which way is down, who is asked, what is the rule, what changed.

In: a task whose scores are set. Out: round after round, the trees that were added.
"""

from collections.abc import Iterator

from sapwood.boost.round.training import Step, Training


def boost(task: Training, rounds: range) -> Iterator[Step]:
    """Add rounds to a model; whoever iterates may stop after any of them.

    Parameters
    ----------
    task : Training
        Training rows with the scores of the model so far, and rows to watch, whose scores follow.
    rounds : range
        Numbers of the rounds: draws go by them, so that 10 + 10 rounds are 20.

    Yields
    ------
    trees : list of Tree
        The trees of one round, one for each output.
    weights : None
        No tree is changed later.
    """
    for index in rounds:
        trees = task.trees(index)
        for output, tree in enumerate(trees):
            task.trainer.add_scores(output)
            for watch in task.watches:
                watch.add(tree, output)
        yield trees, None
