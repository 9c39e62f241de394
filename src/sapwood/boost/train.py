"""Train a model.

In: parameters, a `Dataset`, and rows to evaluate. Out: a `Booster`.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

from sapwood import objective
from sapwood.boost import class_weight, splits
from sapwood.boost.round.callback import Callback
from sapwood.boost.round.training import Floats, Step
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import History, Session, run
from sapwood.boost.spec import TrainSpec, make_spec, merge_arguments
from sapwood.data.dataset import Dataset
from sapwood.errors import DataError, DivergedError
from sapwood.model.booster import Booster
from sapwood.model.combinations import Combinations
from sapwood.model.trees import Trees
from sapwood.params import model_params

Valid = Dataset | Sequence[Dataset] | Mapping[str, Dataset]


def train(
    params: Mapping[str, Any],
    data: Dataset,
    n_estimators: int | None = None,
    *,
    valid: Valid | None = None,
    callbacks: Sequence[Callback] | None = None,
    init_model: Booster | None = None,
    **more: Any,
) -> Booster:
    """Train a model.

    Parameters
    ----------
    params : mapping
        Parameters in our names, or in those of XGBoost, LightGBM or CatBoost; see `sapwood.params`. Not changed.
    data : Dataset
        The training rows. Where it has an ``init_score``, scores start there, the model's own base is 0, and
        predictions need the ``init_score`` of their rows too.
    n_estimators : int, optional
        Rounds, in the place where the other libraries have them; else as in ``params``.
    valid : Dataset, list of Dataset or dict of str to Dataset, optional
        Validation rows, made with ``reference=data``. A single one is called "valid", those of a list "valid_0",
        "valid_1", ... Early stopping watches the first metric of the last one.
    callbacks : sequence of callables, optional
        Each is called with every `Round` and stops the training by returning True; see `sapwood.callback`.
    init_model : Booster, optional
        The model to continue from: ``n_estimators`` rounds are added to it. The data must have its cuts. 10 rounds and
        10 more are the same model as 20.
    **more
        Further parameters, by name: ``num_boost_round=50`` as in the other libraries.

    Returns
    -------
    Booster
        With ``early_stopping_rounds``, only the rounds up to the best one. If there is no validation set then,
        ``validation_fraction`` of the rows, and of every class, is held out: they weigh nothing in training. Where the
        data has groups, whole ones are; with ``has_time`` the last rows, or groups, are.
    """
    params = merge_arguments(train, params, n_estimators, more)
    sets = _valid_sets(valid)
    spec = make_spec(params, data, callbacks, init_model, watched=bool(sets))
    _check_sets(sets, data, spec)
    fingerprint = cache(data.fingerprint)  # that of the rows as they were given, without weights of classes
    sets = {name: class_weight.with_class_weight(one, spec.factor) for name, one in sets.items()}
    data = class_weight.with_class_weight(data, spec.factor)
    held = None
    if spec.params["early_stopping_rounds"] is not None and not sets:
        held = splits.holdout_of(spec.params, data, spec.classes)
    session = Session(spec, data, held, held, sets)
    store, history = TreeStore(spec.n_outputs), History()

    def evaluate(step: Step) -> dict[str, dict[str, float]]:
        store.add(step)
        return session.measure()

    def build(best_round: int | None = None) -> Booster:
        trees = store.trees(store.n_rounds if best_round is None else best_round - spec.rounds.start)
        return make_booster(session, trees, best_round, fingerprint(), history)

    booster = build(run(spec, session.rounds(), evaluate, history, build, data.reduce))
    if data.n_total > 1:
        _warn_of_no_split(booster, spec, data.of_all_holders(spec.classes))
    return booster


def make_booster(session: Session, trees: Trees, best_round: int | None, fingerprint: str, history: History) -> Booster:
    """The model of new trees, after those of the model that the training continues."""
    spec, data, encoded, model = session.spec, session.data, session.encoded, session.spec.init_model
    trees = trees if encoded is None else trees.with_shared_sets()
    for what, numbers in {"the gains of splits": trees.gain, "the values of leaves": trees.value}.items():
        if not np.isfinite(numbers).all():
            raise DivergedError(f"{what} are")
    n_used = max(0, int(trees.column.max(initial=-1)) + 1 - data.n_columns)  # combinations come by first use
    return Booster(
        trees if model is None else Trees.concat([model.trees, trees]),
        base=session.base,
        objective=spec.objective.name,
        fields=spec.objective.fields,
        link=spec.objective.link,
        transform=None if spec.objective.custom is None else spec.objective.custom.transform,
        feature_names=data.feature_names[: data.n_columns - len(data.crosses)],
        named=data.named,
        categories=data.categories,
        crosses=data.crosses,
        combinations=Combinations.of([] if encoded is None else encoded.combinations[:n_used]),
        params=model_params(spec.params),
        classes=None if model is None else model.classes,
        best_round=best_round,
        data_fingerprint=fingerprint,
        device=data.device,
        history=deepcopy(history),
    )


def _warn_of_no_split(booster: Booster, spec: TrainSpec, classes: Floats | None) -> None:
    """Warn where all rows have one class, or where min_child_weight alone forbade every split."""
    trees, min_child = booster.trees, spec.params["min_child_weight"]
    if trees.n_nodes > trees.n_trees:
        return
    if classes is not None and (classes == classes[0]).all():
        why = "all rows are of one class: there is nothing to tell apart, and every prediction is the same."
    elif trees.cover.max() < 2 * min_child:
        why = (
            f"no tree was split: the hessians sum to {trees.cover.max():.3g}, and min_child_weight={min_child:g} wants "
            "that much on both sides of a split. Lower it; weights that sum to 1 or labels of a small unit do this."
        )
    else:
        return
    warnings.warn(why, UserWarning, stacklevel=3)


def _valid_sets(valid: Valid | None) -> dict[str, Dataset]:
    """Validation sets by name."""
    if valid is None:
        sets: dict[str, Dataset] = {}
    elif isinstance(valid, Mapping):
        sets = {str(name): one for name, one in valid.items()}
    elif isinstance(valid, Sequence):
        sets = {f"valid_{i}": one for i, one in enumerate(valid)}
    else:
        sets = {"valid": valid}
    for name, one in sets.items():
        if not isinstance(one, Dataset):
            raise DataError(
                f"validation set {name!r} is a {type(one).__name__}; make it with Dataset(X, label=y, reference=data), "
                "and give one, a list or a dict of such."
            )
    return sets


def _check_sets(sets: Mapping[str, Dataset], data: Dataset, spec: TrainSpec) -> None:
    """Raise unless validation sets go with the training data."""
    for name, one in sets.items():
        if one.label is None:
            raise DataError(f"validation set {name!r} has no label; make it with Dataset(X, label=y, reference=data).")
        same = len(one.cuts) == len(data.cuts) and all(map(np.array_equal, one.cuts, data.cuts))
        same = same and one.crosses == data.crosses
        if not same or one.categories != data.categories or one.feature_names != data.feature_names:
            raise DataError(
                f"validation set {name!r} has other columns, cuts or categories; make it with "
                "Dataset(..., reference=data)."
            )
        if one.label.shape[1:] != spec.label.shape[1:]:
            raise DataError(
                f"validation set {name!r} has labels of shape {one.label.shape}, the training data {spec.label.shape}."
            )
        if (one.init_score is None) != (data.init_score is None):
            raise DataError(f"validation set {name!r} and the training data must both have an init_score, or neither.")
        objective.outputs(spec.objective, one.of_all_holders(one.label), spec.n_outputs)
