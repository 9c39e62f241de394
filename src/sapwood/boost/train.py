"""Train a model.

In: parameters, a `Dataset`, and rows to evaluate. Out: a `Booster`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from sapwood import objective, version
from sapwood.boost import arguments, auto, class_weight, memory, offset, splits
from sapwood.boost.arguments import Rows, Valid
from sapwood.boost.checkpoint import Checkpoint
from sapwood.boost.round.callback import Callback
from sapwood.boost.round.grown import GrownTrees
from sapwood.boost.round.training import Floats, Step
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import History, Session, make_booster, run
from sapwood.boost.spec import (
    TrainSpec,
    make_spec,
    merge_arguments,
    resolve_params,
    take_callbacks,
)
from sapwood.data.dataset import Dataset
from sapwood.data.dealt import check_labels
from sapwood.data.kept_table import same_bins
from sapwood.errors import DataError, ParameterError, warn
from sapwood.model.booster import Booster
from sapwood.model.io import load
from sapwood.params import given_names, model_params

# who gives it knows
CHOSEN_HOLDOUT = {
    "validation_fraction",
    "early_stopping",
    "eval_fraction",
    "validation_ratio",
}


def train(
    params: Mapping[str, Any] | Rows,
    data: Rows | Mapping[str, Any] | None = None,
    n_estimators: int | None = None,
    *,
    valid: Valid | None = None,
    callbacks: Sequence[Any] | None = None,
    init_model: Booster | str | os.PathLike[str] | None = None,
    **more: Any,
) -> Booster:
    """Train a model.

    Parameters
    ----------
    params : mapping
        Parameters in our names, or in those of XGBoost, LightGBM or CatBoost; see
        `sapwood.params`. Not changed.
    data : Dataset, DMatrix or Pool
        The training rows; ``dtrain``, ``train_set`` and ``pool`` are other names for
        it. Where it has an ``init_score``, scores start there, the model's own base is
        0, and predictions need the ``init_score`` of their rows too.
    n_estimators : int, optional
        Rounds, in the place where the other libraries have them; else as in ``params``.
    valid : Dataset, list of Dataset or (Dataset, name), or dict of str to Dataset, optional
        Validation rows, made with ``reference=data``. A single one is called "valid",
        those of a list "valid_0", "valid_1", ... Early stopping watches the first
        metric of the last one that is not the training data itself. ``valid_sets`` with
        ``valid_names``, ``evals`` and ``eval_set`` are other names for it.
    callbacks : sequence of callables, optional
        Each is called with every `Round` and stops the training by returning True; see
        `sapwood.callback`. Callbacks of LightGBM, XGBoost and CatBoost are taken too.
    init_model : Booster or path, optional
        The model to continue from, or its file: ``n_estimators`` rounds are added to
        it. The data must have its cuts. 10 rounds and 10 more are the same model as 20.
    **more
        Further parameters, by name: ``num_boost_round=50`` as in the other libraries.

    Returns
    -------
    Booster
        With ``early_stopping_rounds``, only the rounds up to the best one. If there is
        no validation set then, ``validation_fraction`` of the rows, and of every class,
        is held out: they weigh nothing in training. Where the data has groups, whole
        ones are; with ``has_time`` the last rows, or groups, are. With ``quality``, the
        model of an automatic fit (docs/defaults.md).
    """
    if hasattr(n_estimators, "__len__"):
        raise DataError(
            "train takes params, data and a number of rounds; labels go into Dataset(X, label=y)."
        )
    given_valid = arguments.peer_arguments(more, valid)
    into = more.pop("evals_result", None)
    init_model = (
        load(init_model) if isinstance(init_model, str | os.PathLike) else init_model
    )
    params, rows = arguments.in_order(params, data, more)
    params, callbacks = take_callbacks(
        merge_arguments(train, params, n_estimators, more), callbacks
    )
    data = arguments.training_rows(rows, params)
    sets = arguments.valid_sets(given_valid, data, rows)
    if params.get("quality") is not None:
        return _automatic(
            params,
            data,
            bool(sets or callbacks or init_model or data.init_score is not None),
        )
    if params.get("time_limit") is not None:
        raise ParameterError(
            "time_limit is for an automatic fit; set quality too, or leave it out."
        )
    booster = train_with(params, data, sets, callbacks, init_model)
    if isinstance(into, dict):  # XGBoost's evals_result
        into.update(booster.history)
    return booster


class Follower(Protocol):
    """Something that follows a training round by round, and may know trees of an
    earlier run of it.
    """

    grown: GrownTrees

    def round_done(self) -> None:
        """Take notice of a round."""

    def close(self) -> None:
        """The training has ended."""


Follow = Callable[[dict[str, Any], TrainSpec], Follower]


def train_with(
    params: Mapping[str, Any],
    data: Dataset,
    sets: Mapping[str, Dataset],
    callbacks: Sequence[Callback] | None = None,
    init_model: Booster | None = None,
    follow: Follow | None = None,
) -> Booster:
    """Train a model as `train` does, without an automatic fit. ``sets``: validation
    sets by name.

    ``follow`` gets what the training is, as JSON values, and what was asked for; None
    is a checkpoint, if any.
    """
    spec = make_spec(params, data, callbacks, init_model, watched=bool(sets))
    offset.warn_of_rounding(spec.objective, data)
    _check_sets(sets, data, spec)
    booster = _train(
        spec, data, sets, follow, said=bool(CHOSEN_HOLDOUT & params.keys())
    )
    if data.n_total > 1 and booster.trees.n_nodes <= booster.trees.n_trees:
        _warn_of_no_split(booster, spec, data.of_all_holders(spec.classes))
    return booster


def _train(
    spec: TrainSpec,
    data: Dataset,
    sets: Mapping[str, Dataset],
    follow: Follow | None,
    *,
    said: bool,
) -> Booster:
    """Run the rounds; ``said``: the user knows that rows may be held out for early
    stopping.
    """
    holds = spec.params["early_stopping_rounds"] is not None and not sets
    with memory.limited(spec, data, holds, sets.values()):
        training = tuple(name for name, one in sets.items() if one is data)
        # that of the rows as they were given, without weights of classes
        fingerprint = cache(data.fingerprint)
        sets = {
            name: class_weight.with_class_weight(one, spec.factor)
            for name, one in sets.items()
        }
        data = class_weight.with_class_weight(data, spec.factor)
        held = splits.holdout_of(spec.params, data, spec.classes) if holds else None
        if held is not None and not said:
            splits.say_holdout(held, data)
        follow = follow or (
            _checkpoint if spec.params["checkpoint"] is not None else None
        )
        follower = (
            None if follow is None else follow(_facts(spec, sets, fingerprint), spec)
        )
        return _rounds(spec, data, held, sets, follower, training, fingerprint)


def _rounds(
    spec: TrainSpec,
    data: Dataset,
    held: Any,
    sets: Mapping[str, Dataset],
    follower: Follower | None,
    training: tuple[str, ...],
    fingerprint: Callable[[], str],
) -> Booster:
    """Train round after round, and make the model. ``training``: the names of
    validation sets that are the data.
    """
    session = Session(spec, data, held, held, sets)
    store, history = TreeStore(spec.n_outputs, session.encoded is not None), History()

    def evaluate(step: Step) -> dict[str, dict[str, float]]:
        store.add(step)
        if follower is not None:
            follower.round_done()
        return session.measure()

    def build(best_round: int | None = None) -> Booster:
        n_rounds = (
            store.n_rounds if best_round is None else best_round - spec.rounds.start
        )
        return make_booster(
            session, store.trees(n_rounds), best_round, fingerprint(), history
        )

    rounds = session.rounds(None if follower is None else follower.grown)
    booster = build(run(spec, rounds, evaluate, history, build, data.reduce, training))
    if follower is not None:
        follower.close()
    return booster


def _facts(
    spec: TrainSpec, sets: Mapping[str, Dataset], fingerprint: Callable[[], str]
) -> dict[str, Any]:
    """What the trees of a training depend on, JSON values by name."""
    params, model, prunes = (
        spec.params,
        spec.init_model,
        spec.params["prune_by_validation"],
    )
    return {
        "version of Sapwood": version.VERSION,
        "fingerprint of the data": fingerprint(),
        "fingerprint of init_model": None if model is None else model.fingerprint(),
        "fingerprints of validation sets": [one.fingerprint() for one in sets.values()]
        if prunes
        else [],
        "outputs": spec.n_outputs,
        "parameters": {
            name: value
            for name, value in model_params(params).items()
            if name != "learning_rate"
        },
    }


def _checkpoint(facts: dict[str, Any], spec: TrainSpec) -> Checkpoint:
    """The file that follows a training; that of another training raises."""
    params, trees = spec.params, (spec.n_outputs, spec.params["n_parallel_trees"])
    return Checkpoint(
        params["checkpoint"],
        params["checkpoint_every"],
        facts,
        spec.leaf_plan.rate,
        spec.rounds,
        *trees,
    )


def _automatic(params: Mapping[str, Any], data: Dataset, told: bool) -> Booster:
    """The model of an automatic fit, which takes neither validation rows nor a start
    (`told`).
    """
    start = time.monotonic()
    known = resolve_params(params, None)
    auto.check(known["quality"], told)
    if data.memory_limit is not None:
        raise ParameterError(
            f"quality={known['quality']!r} trains several models side by side, and the data has a memory_limit; leave "
            "quality out, or open the data without a limit."
        )
    n_classes = _n_classes(data, known)
    if not auto.enough(data, n_classes):
        plain = {
            name: value
            for name, value in params.items()
            if name not in ("quality", "time_limit")
        }
        until = auto.deadline.of_plain(known["time_limit"], start, data)
        return train(
            {
                **plain,
                **auto.without_holdout(
                    known, data, True, n_classes, given_names(params)
                ),
            },
            data,
            callbacks=until,
        )
    own = given_names(params).union(objective.field_aliases().values())
    given = {name: value for name, value in known.items() if name in own}
    return auto.fit(given, data, known["quality"], known["time_limit"])


def _n_classes(data: Dataset, params: Mapping[str, Any]) -> int:
    """How many classes have rows, of all holders; 0 where labels are no indices of
    classes.
    """
    label = data.of_all_holders(data.label)
    if (
        label is None
        or label.ndim > 1
        or objective.resolve(params).labels != "a class index"
    ):
        return 0
    return len(np.unique(label))


def _warn_of_no_split(
    booster: Booster, spec: TrainSpec, classes: Floats | None
) -> None:
    """Warn where all rows have one class, or where min_child_weight alone forbade every
    split.
    """
    trees = booster.trees
    min_child = spec.params["min_child_weight"]
    if classes is not None and (classes == classes[0]).all():
        why = "all rows are of one class: there is nothing to tell apart, and every prediction is the same."
    elif (
        isinstance(spec.objective.custom, objective.GroupLoss)
        and trees.cover.max() == 0
    ):
        why = "no group has rows of different labels: there is nothing to rank, and every score is the same."
    elif trees.cover.max() < 2 * min_child:
        why = (
            f"no tree was split: the hessians sum to {trees.cover.max():.3g}, and min_child_weight={min_child:g} wants "
            "that much on both sides of a split. Lower it; weights that sum to 1 or labels of a small unit do this."
        )
    else:
        return
    warn(why)


def _check_sets(sets: Mapping[str, Dataset], data: Dataset, spec: TrainSpec) -> None:
    """Raise unless validation sets go with the training data."""
    for name, one in sets.items():
        if one.label is None:
            raise DataError(
                f"validation set {name!r} has no label; make it with Dataset(X, label=y, reference=data)."
            )
        if not same_bins(one, data):
            raise DataError(
                f"validation set {name!r} has other columns, cuts or categories; make it with "
                "Dataset(..., reference=data)."
            )
        if one.label.shape[1:] != spec.label.shape[1:]:
            raise DataError(
                f"validation set {name!r} has labels of shape {one.label.shape}, the training data {spec.label.shape}."
            )
        if (one.init_score is None) != (data.init_score is None):
            raise DataError(
                f"validation set {name!r} and the training data must both have an init_score, or neither."
            )
        check_labels(
            one,
            lambda label: objective.outputs(spec.objective, label, spec.n_outputs),
            every=False,
        )
