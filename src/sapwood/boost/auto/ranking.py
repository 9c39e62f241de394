"""The automatic fit of a ranking: the mean of models of several losses, each on other
folds of groups.

In: what the user set, and a `Dataset` with groups. Out: one `Booster`, which knows what
was trained.

Labels of rankings are noisy, and the mean of several models orders better than any of
them, most of all if they differ in kind: a loss of pairs sees the order in a group
only, a loss of rows sees labels across groups. Losses and shapes of trees were chosen
by folds inside the training groups of two tables (docs/ranking.md). The models of a
loss train side by side, and stop where their mean on the folds that they have not seen
is best. The scores of each are divided by their spread there, so that all count alike.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost import splits
from sapwood.boost.auto import blend
from sapwood.boost.auto.candidates import LARGE, Candidate, refuse_checkpoint
from sapwood.boost.auto.contender import Contender
from sapwood.boost.auto.report import Chosen, Tried
from sapwood.data.dataset import Dataset
from sapwood.model.booster import Booster

PARAMS = {
    "learning_rate": 0.05,
    "n_estimators": 2000,
    "early_stopping_rounds": 2000,  # not by a fold alone: `PATIENCE` is for the mean
    "eval_metric": "ndcg@10",
}
LEAF_WISE = {**PARAMS, "max_leaves": 16, "colsample_bynode": 0.5, "reg_lambda": 10.0}
SYMMETRIC = {**PARAMS, "grow_policy": "symmetric", "max_depth": 5, "reg_lambda": 3.0}
PATIENCE = 100
PAIRS = Candidate("pair_logit", {**LEAF_WISE, "objective": "pair_logit"})
SQUARES = Candidate("squared_error", {**SYMMETRIC, "objective": "squared_error"})
FIRST_PLACES = Candidate("lambdarank", {**LEAF_WISE, "objective": "lambdarank"})
# part of a time limit that rounds may take; the rest is for making the model
PLANNED = 0.95
# of a row in the mean, from which only pairs of the first places are taken
MAX_PAIRS = 1000
FOLDS = {"fast": 3, "balanced": 5, "best": 10}


def candidates(
    given: Mapping[str, Any], sizes: NDArray[np.int64], quality: str, large: bool
) -> list[Candidate]:
    """What is trained: the user's own loss, or a loss of pairs and one of rows."""
    if "objective" in given:
        name = str(getattr(given["objective"], "name", given["objective"]))
        return [Candidate(name, {**LEAF_WISE, "objective": given["objective"]})]
    many = int((sizes * sizes).sum()) > MAX_PAIRS * int(sizes.sum())
    pairs = FIRST_PLACES if large or many else PAIRS
    return [pairs] if large or quality == "fast" else [pairs, SQUARES]


def rank(
    given: Mapping[str, Any], data: Dataset, quality: str, limit: float | None = None
) -> Booster:
    """Train a model for each loss and fold, and take the mean; data of many cells has
    one loss and one fold.

    limit: float, optional; seconds that it may take; losses share them, one after the
    other.
    """
    refuse_checkpoint(given)
    start = time.monotonic()
    verbose = given.get("verbose")
    given = {
        name: value
        for name, value in given.items()
        if name not in ("quality", "time_limit", "verbose")
    }
    assert data.group is not None
    sizes = np.bincount(data.group).astype(np.int64)
    n_groups = len(sizes)
    large = data.n_rows * data.n_columns >= LARGE
    n_folds = min(FOLDS[quality], n_groups)
    seed = given.get("random_state") or 0
    fold = splits.folds(seed, max(2, n_folds), data.n_rows, None, data.group)
    trained: list[Contender] = []
    losses = candidates(given, sizes, quality, large)
    for place, candidate in enumerate(losses, 1):
        side_by_side = []
        for which in range(1 if large else n_folds):
            one = replace(candidate, name=f"{candidate.name}, fold {which + 1}")
            side_by_side.append(
                Contender(one, given, data.without_values(), [fold == which])
            )
        _advance(
            side_by_side,
            inf if limit is None else start + PLANNED * limit * place / len(losses),
        )
        trained += side_by_side
    spread = [float(np.std(one.last_scores())) for one in trained]
    share = [1.0 / (s * len(trained)) if s > 0 else 0.0 for s in spread]
    booster = blend.merge([one.booster(data.fingerprint()) for one in trained], share)
    tried = tuple(
        Tried(
            one.candidate.name,
            one.best_round,
            -one.losses[one.best_round - 1],
            one.seconds,
            1 / len(trained),
        )
        for one in trained
    )
    seconds, metric = time.monotonic() - start, trained[0].metric.name
    for one_tried in tried:
        if verbose:
            one_tried.say(metric)
    held_by = 0 if large else len(trained) // n_folds  # a model of each loss
    n_held = int((fold == 0).sum())
    chosen = Chosen(
        quality,
        metric,
        data.n_rows,
        n_held,
        len(trained),
        False,
        tried,
        seconds,
        held_by,
    )
    return replace(booster, chosen=chosen)


def _advance(folds: Sequence[Contender], end: float) -> None:
    """Train until the mean over folds has not improved for `PATIENCE` rounds; all keep
    its best round.

    No round but the first begins that would be done after the end.
    """
    best = inf
    kept = 1
    done = 0
    while done < folds[0].spec.params["n_estimators"] and done - kept < PATIENCE:
        if done and time.monotonic() + sum(one.pace.next_round for one in folds) >= end:
            break
        done += 1
        for one in folds:
            one.advance(done)
        mean = fsum(one.losses[-1] for one in folds) / len(folds)
        if mean < best:
            best = mean
            kept = done
    for one in folds:
        one.best_round = kept
