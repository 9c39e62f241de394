"""A blend of models as one model.

In: models of the same data and objective. Out: how much each counts, and one model
whose scores are their mean.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from sapwood.boost.auto.contender import Contender
from sapwood.model.booster import Booster
from sapwood.model.combinations import Combinations, Keys, Source
from sapwood.model.trees import Trees

DRAWS = 8  # a power of two: the parts are exact and sum to 1


def draw(contenders: Sequence[Contender], least: float = 0.0) -> list[int]:
    """How often each is drawn: every draw is the one that lowers the held-out loss of
    the mean most.

    Caruana, Niculescu-Mizil, Crew and Ksikes (2004), with replacement. Scores are raw:
    the mean of log-odds. What saves less than this part of the loss for each of its
    rounds is left out: rounds take time, in every prediction too.
    """
    counts, loss = _draw(contenders, list(range(len(contenders))))
    while least and len(drawn := [at for at, n in enumerate(counts) if n]) > 1:
        without = [
            _draw(contenders, [at for at in drawn if at != gone]) for gone in drawn
        ]
        worth = [
            (other - loss) / max(1, contenders[at].best_round)
            for at, (_, other) in zip(drawn, without, strict=True)
        ]
        if min(worth) >= least * abs(loss):
            break
        counts, loss = without[worth.index(min(worth))]
    return counts


def _draw(
    contenders: Sequence[Contender], pool: Sequence[int]
) -> tuple[list[int], float]:
    """How often each is drawn from a pool of them, and the loss of their mean."""
    counts = [0] * len(contenders)
    total = np.zeros_like(contenders[0].scores)
    best = inf
    for n in range(1, DRAWS + 1):
        best = inf
        found = pool[0]
        for at in pool:
            loss = contenders[at].loss_of((total + contenders[at].scores) / n)
            if loss < best:
                best = loss
                found = at
        counts[found] += 1
        total = total + contenders[found].scores
    return counts, best


def loss(chosen: Sequence[tuple[Contender, int]]) -> float:
    """The held-out loss of the mean of contenders that were drawn so often."""
    total = sum(
        (n * one.scores for one, n in chosen[1:]), chosen[0][1] * chosen[0][0].scores
    )
    return chosen[0][0].loss_of(total / sum(n for _, n in chosen))


def merge(boosters: Sequence[Booster], parts: Sequence[float]) -> Booster:
    """One model whose raw scores are the sum of those of several, each times its part;
    the parts sum to 1.

    Codes of categories must be the same in all: the models are of one dataset, or of
    datasets of one set of weights.
    """
    if len(boosters) == 1:
        return boosters[0]
    # crosses are the same where there are any
    whole = max(boosters, key=lambda one: len(one.crosses))
    trees: list[Trees] = []
    made: list[tuple[list[Source], Keys]] = []
    for booster, part in zip(boosters, parts, strict=True):
        shift = whole.n_numbered + len(made) - booster.n_numbered
        column = np.where(
            booster.trees.column >= booster.n_numbered,
            booster.trees.column + shift,
            booster.trees.column,
        )
        linear = booster.trees.linear
        if linear is not None and whole.trees.linear is not None:
            linear = replace(linear, linear_bounds=whole.trees.linear.linear_bounds)
        own = replace(booster.trees, column=column.astype(np.int32), linear=linear)
        trees.append(own.times(np.full(own.n_trees, part)))
        made += zip(
            booster.combinations.sources(), booster.combinations.keys(), strict=True
        )
    base = whole.base  # as it is where all have the same: no rounding
    if any((one.base != base).any() for one in boosters):
        base = np.zeros_like(base)
        for booster, part in zip(boosters, parts, strict=True):
            base = base + part * (
                booster.base - whole.base if whole.base_last else booster.base
            )
        # of bases far from 0 the differences are exact
        base = base + whole.base if whole.base_last else base
    return replace(
        whole,
        trees=Trees.concat(trees),
        base=base,
        combinations=Combinations.of(made),
        best_round=None,
    )


def scaled(booster: Booster, factor: float) -> Booster:
    """The same model, its raw scores times a factor."""
    if factor == 1:
        return booster
    trees = booster.trees.times(np.full(booster.trees.n_trees, factor))
    return replace(booster, trees=trees, base=factor * booster.base)
