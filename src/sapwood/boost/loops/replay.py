"""Replay: the trees of a model keep their splits, and their leaves get new values from
the training's rows.

In: a training whose scores are set, and trees that split its columns at its cuts. Out:
by round, trees with new values.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from sapwood.boost.round.evaluation import as_grown
from sapwood.boost.round.training import Step, Training
from sapwood.model.trees import Trees


def replay(training: Training, trees: Trees) -> Iterator[Step]:
    """Give every tree the leaf values that the training's rows have at its place in the
    model.

    trees: Trees; whole rounds, each with a tree for every output.
    Yields as `plain.boost` does.
    """
    assert training.data is not None
    # terms are fitted anew
    grown = as_grown(replace(trees, linear=None), training.data.cuts)
    n_outputs = training.leaf_plan.n_outputs
    for index in range(trees.n_trees // n_outputs):
        found = training.replay_round(index, list(islice(grown, n_outputs)))
        training.add_scores(found)
        yield found, None
