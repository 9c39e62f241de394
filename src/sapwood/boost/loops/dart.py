"""DART: each round drops some of the trees before it, and rescales them to make room
for the new ones.

In: a training whose scores are set. Out: by round, the trees that were grown and the
factors on all trees so far.

Vinayak and Gilad-Bachrach (2015), with the choices of XGBoost and LightGBM; NUMERICS
(Ensembles) has the rules.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost.leaves import linear
from sapwood.boost.round.evaluation import EvalSet
from sapwood.boost.round.training import Floats, Step, Training
from sapwood.device import Tree, host
from sapwood.device.threads import threads

DRAW_RANGE = 2.0**64  # draws are below


def boost(training: Training, rounds: range) -> Iterator[Step]:
    """Add rounds to a model, as `plain.boost` does; they count from 0.

    Yields the trees of one round, not weighted, and the (n_rounds so far) factors on
    the trees of each round.
    """
    params, n_copies = training.params, training.params["n_parallel_trees"]
    # the trainer has the held-out rows
    own = [rows for rows in training.eval_rows if isinstance(rows, EvalSet)]
    n_threads = threads(params["n_jobs"])
    train, *others = ledgers = [
        _Ledger(training.trainer.scores(), training.values, n_threads),
        *(_Ledger(rows.scores(), rows.values, n_threads) for rows in own),
    ]

    def set_scores(weights: Floats, first: int) -> None:
        training.trainer.set_scores(train.scores(weights, first))
        for rows, ledger in zip(own, others, strict=True):
            rows.replace(ledger.scores(weights, first))

    weights = np.empty(0)
    for index in rounds:
        dropped = drop(params, index, weights)
        if len(dropped):
            without = weights.copy()
            without[dropped] = 0.0
            set_scores(without, 0)
        grown = []
        rate = training.leaf_plan.rate(index)
        for ledger in ledgers:
            ledger.open()
        training.foresee([index], n_copies)
        for copy in range(n_copies):
            for output, tree in enumerate(
                training.grow_round(index, copy, rate / n_copies)
            ):
                train.add(tree, output, training.leaf_ids(tree, output))
                for rows, ledger in zip(own, others, strict=True):
                    ledger.add(tree, output, rows.leaf_ids(tree))
                grown.append(tree)
        old, new = factors(params["normalize_type"], len(dropped), rate)
        weights = np.append(weights, new)
        weights[dropped] *= old
        set_scores(weights, 0 if len(dropped) else index)
        yield grown, weights


def drop(params: Mapping[str, Any], index: int, weights: Floats) -> NDArray[np.intp]:
    """Draw the rounds that a new one drops, ascending, given the (n_rounds) factors on
    the rounds before it.
    """
    n = len(weights)
    seed = params["random_state"]
    skip, one = host.draw(seed, host.DROPS, index, 1, 2).tolist()
    if n == 0 or skip < params["skip_drop"] * DRAW_RANGE:
        return np.empty(0, np.intp)
    max_drop = n if params["max_drop"] is None else params["max_drop"]
    total = np.cumsum(weights)[-1]  # in the order of rounds, which fixes its rounding
    share = np.ones(n) if params["sample_type"] == "uniform" else n * weights / total
    limits = min(params["rate_drop"], max_drop / n) * share * DRAW_RANGE
    chosen = [
        i
        for i, at in enumerate(host.draw(seed, host.DROPS, index, 0, n).tolist())
        if at < limits[i]
    ]
    if not chosen and params["one_drop"]:
        reached = np.cumsum(share) * (DRAW_RANGE / n)
        chosen = [min(int(np.searchsorted(reached, float(one), side="right")), n - 1)]
    return np.array(chosen[:max_drop], np.intp)


def factors(plan: str, n_dropped: int, rate: float) -> tuple[float, float]:
    """Factors on the dropped trees and on the new ones, once all are back in the
    scores.
    """
    if n_dropped == 0:
        return 1.0, 1.0
    if plan == "forest":
        return 1.0 / (1.0 + rate), 1.0 / (1.0 + rate)
    over = n_dropped + (rate if plan == "tree" else 1.0)
    return n_dropped / over, 1.0 / over


class _Ledger:
    """The leaf of every row in every tree, so that scores can be summed again: a byte
    per row and small tree.
    """

    def __init__(
        self, start: Floats, values: NDArray[Any] | None, n_threads: int
    ) -> None:
        self._start, self._scores = np.array(start), np.array(start)
        self._values = values
        self._n_threads = n_threads
        # output, leaves, node of every row
        self._rounds: list[list[tuple[int, dict[str, Any], NDArray[Any]]]] = []

    def open(self) -> None:
        """Begin a round."""
        self._rounds.append([])

    def add(self, tree: Tree, output: int, node: NDArray[np.int32]) -> None:
        """Keep a tree of the round, as it was grown, and the node of every row in
        it.
        """
        arrays: Mapping[str, Any] = tree
        leaves = {name: arrays[name] for name in ("value", "linear") if name in arrays}
        self._rounds[-1].append(
            (output, leaves, node.astype(np.min_scalar_type(len(tree["value"]))))
        )

    def scores(self, weights: Floats, first: int) -> Floats:
        """Scores as prediction sums them, tree by tree in order; rounds before
        ``first`` are in them already.
        """
        if first == 0:
            self._scores = self._start.copy()
        for weight, trees in zip(weights[first:], self._rounds[first:], strict=True):
            for output, leaves, node in trees:
                if weight > 0.0:  # else dropped
                    grown = linear.scaled(leaves, weight)
                    self._scores[output] += linear.tree_output(
                        grown, node, self._values, self._n_threads
                    )
        return self._scores
