"""DART: each round forgets some of the trees before it, and makes room among them for the new ones.

In: a task whose scores are set. Out: round after round, the trees that were grown and the factors on all so far.

Vinayak and Gilad-Bachrach (2015), with the choices of XGBoost and LightGBM; NUMERICS (Ensembles) has the rules.
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

DROPS = 16  # purpose of a draw
EVERY = 2.0**64  # draws are below


def boost(task: Training, rounds: range) -> Iterator[Step]:
    """Add rounds to a model; whoever iterates may stop after any of them.

    Parameters
    ----------
    task : Training
        Training rows with their start scores, and rows to watch, whose scores follow.
    rounds : range
        Numbers of the rounds, from 0.

    Yields
    ------
    trees : list of Tree
        The trees of one round, not weighted.
    weights : (n_rounds so far) float64
        The factors on the trees of each round.
    """
    params, n_copies = task.params, task.params["n_parallel_trees"]
    own = [watch for watch in task.watches if isinstance(watch, EvalSet)]  # held-out rows are the trainer's
    n_threads = threads(params["n_jobs"])
    train, *others = ledgers = [
        _Ledger(task.trainer.scores(), task.values, n_threads),
        *(_Ledger(watch.scores(), watch.values, n_threads) for watch in own),
    ]

    def follow(weights: Floats, first: int) -> None:
        task.trainer.set_scores(train.scores(weights, first))
        for watch, ledger in zip(own, others, strict=True):
            watch.replace(ledger.scores(weights, first))

    weights = np.empty(0)
    for index in rounds:
        dropped = drop(params, index, weights)
        if len(dropped):
            without = weights.copy()
            without[dropped] = 0.0
            follow(without, 0)
        grown, rate = [], task.rule.rate(index)
        for ledger in ledgers:
            ledger.open()
        for copy in range(n_copies):
            for output, tree in enumerate(task.trees(index, copy, rate / n_copies)):
                train.add(tree, output, task.reach(tree, output))
                for watch, ledger in zip(own, others, strict=True):
                    ledger.add(tree, output, watch.reach(tree))
                grown.append(tree)
        old, new = factors(params["normalize_type"], len(dropped), rate)
        weights = np.append(weights, new)
        weights[dropped] *= old
        follow(weights, 0 if len(dropped) else index)
        yield grown, weights


def drop(params: Mapping[str, Any], index: int, weights: Floats) -> NDArray[np.intp]:
    """Draw the rounds that a new one forgets.

    Parameters
    ----------
    params : mapping
        Resolved parameters: rate_drop, skip_drop, max_drop, one_drop, sample_type, random_state.
    index : int
        Number of the new round.
    weights : (n_rounds) float64
        Factors on the rounds before it.

    Returns
    -------
    (n_dropped) intp
        Rounds, rising.
    """
    n, seed = len(weights), params["random_state"]
    skip, one = host.draw(seed, DROPS, index, 1, 2).tolist()
    if n == 0 or skip < params["skip_drop"] * EVERY:
        return np.empty(0, np.intp)
    most = n if params["max_drop"] is None else params["max_drop"]
    share = np.ones(n) if params["sample_type"] == "uniform" else n * weights / _total(weights)
    limits = min(params["rate_drop"], most / n) * share * EVERY
    chosen = [i for i, at in enumerate(host.draw(seed, DROPS, index, 0, n).tolist()) if at < limits[i]]
    if not chosen and params["one_drop"]:
        reached = np.cumsum(share) * (EVERY / n)
        chosen = [min(int(np.searchsorted(reached, float(one), side="right")), n - 1)]
    return np.array(chosen[:most], np.intp)


def factors(rule: str, n_dropped: int, rate: float) -> tuple[float, float]:
    """What dropped trees and new ones are multiplied by, once all are back in the scores."""
    if n_dropped == 0:
        return 1.0, 1.0
    if rule == "forest":
        return 1.0 / (1.0 + rate), 1.0 / (1.0 + rate)
    over = n_dropped + (rate if rule == "tree" else 1.0)
    return n_dropped / over, 1.0 / over


def _total(weights: Floats) -> float:
    """The sum, one after the other."""
    return float(np.cumsum(weights)[-1])


class _Ledger:
    """The leaves that rows came to, tree by tree, so that scores can be added up anew: a byte a row and small tree."""

    def __init__(self, start: Floats, values: NDArray[Any] | None, n_threads: int) -> None:
        self._start, self._scores = np.array(start), np.array(start)
        self._values, self._n_threads = values, n_threads
        self._rounds: list[list[tuple[int, dict[str, Any], NDArray[Any]]]] = []  # output, leaves, node of every row

    def open(self) -> None:
        """Begin a round."""
        self._rounds.append([])

    def add(self, tree: Tree, output: int, node: NDArray[np.int32]) -> None:
        """Note a tree of the round, as it was grown, and the node of every row in it."""
        arrays: Mapping[str, Any] = tree
        leaves = {name: arrays[name] for name in ("value", "linear") if name in arrays}
        self._rounds[-1].append((output, leaves, node.astype(np.min_scalar_type(len(tree["value"])))))

    def scores(self, weights: Floats, first: int) -> Floats:
        """Scores as prediction adds them up, tree by tree, in order; the rounds before the first are in already."""
        if first == 0:
            self._scores = self._start.copy()
        for weight, trees in zip(weights[first:], self._rounds[first:], strict=True):
            for output, leaves, node in trees:
                if weight > 0.0:  # else dropped
                    grown = linear.scaled(leaves, weight)
                    self._scores[output] += linear.added(grown, node, self._values, self._n_threads)
        return self._scores
