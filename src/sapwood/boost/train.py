"""Train a model, or measure one by cross-validation.

In: parameters, a `Dataset`, and what to watch. Out: a `Booster`, or a dict of metrics by round.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from math import fsum, inf, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric, objective
from sapwood.boost import auto_learning_rate, bins, class_weight, together
from sapwood.boost.categories import category_encoding, encoded_training
from sapwood.boost.leaves import leaf, linear
from sapwood.boost.loops import dart, forest, ordered, plain
from sapwood.boost.round import growth, sampling
from sapwood.boost.round.callback import Callback, Round, early_stopping, progress, stops
from sapwood.boost.round.evaluation import EvalRows, EvalSet, HeldOutRows, measure, start_scores
from sapwood.boost.round.training import Floats, Step, Training
from sapwood.boost.round.tree_store import TreeStore
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.device import cpu, elementary
from sapwood.errors import DataError, DivergedError, ParameterError
from sapwood.model.booster import COUPLED, Booster
from sapwood.model.combinations import Combinations
from sapwood.model.trees import Trees
from sapwood.params import by_hand, called, constraints, defaults, given_names, model_params, names, peers, resolve
from sapwood.params.recipes import RECIPES
from sapwood.params.types import Number

Valid = Dataset | Sequence[Dataset] | Mapping[str, Dataset]
History = dict[str, dict[str, list[float]]]  # validation set -> metric -> a value for each round


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
        Each is shown every `Round` and stops the training by returning True; see `sapwood.callback`.
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
    params = _merge_arguments(train, params, n_estimators, more)
    sets = _valid_sets(valid)
    job = _prepare(params, data, callbacks, init_model, watched=bool(sets))
    _check_sets(sets, data, job)
    sets = {name: class_weight.with_class_weight(one, job.factor) for name, one in sets.items()}
    fingerprint = cache(data.fingerprint)
    data = class_weight.with_class_weight(data, job.factor)
    before = None if init_model is None else init_model.trees
    first = 0 if init_model is None else init_model.n_rounds
    held = None
    if job.params["early_stopping_rounds"] is not None and not sets:
        seed, share = job.params["random_state"], job.params["validation_fraction"]
        last = job.params["has_time"]
        held = sampling.holdout(seed, share, data.n_rows, data.weight, job.classes, data.group, last=last)

    if job.rule.by_validation and not sets and held is None:
        raise ParameterError("prune_by_validation needs rows to judge by; give a validation set or early stopping.")
    trainer, base = _trainer(job, data, held, init_model)
    encoded = _encoded(job, data, held, trainer)
    watches: dict[str, EvalRows] = {
        name: EvalSet(one, start_scores(one, base, before, job.n_threads), job.n_threads, encoded)
        for name, one in sets.items()
    }
    if held is not None:
        watches["holdout"] = HeldOutRows(data, trainer, held)
    grown = TreeStore(job.n_outputs)
    history: History = {}

    def look(step: Step) -> dict[str, dict[str, float]]:
        grown.add(step)
        return {name: measure(watch, job.metrics, job.objective, job.n_threads) for name, watch in watches.items()}

    def build(best_round: int | None = None) -> Booster:
        new = grown.trees(grown.n_rounds if best_round is None else best_round - first)
        new = new if encoded is None else new.with_shared_sets()
        for what, numbers in {"the gains of splits": new.gain, "the values of leaves": new.value}.items():
            if not np.isfinite(numbers).all():
                raise DivergedError(f"{what} are")
        return Booster(
            new if before is None else Trees.concat([before, new]),
            base=base,
            objective=job.objective.name,
            fields=job.objective.fields,
            link=job.objective.link,
            transform=None if job.objective.custom is None else job.objective.custom.transform,
            feature_names=data.feature_names,
            named=data.named,
            categories=data.categories,
            combinations=_combinations(encoded, new, data.n_columns),
            params=model_params(job.params),
            classes=None if init_model is None else init_model.classes,
            best_round=best_round,
            data_fingerprint=fingerprint(),
            history=deepcopy(history),
        )

    rows = job.label, _weight(data, held)
    task = Training(trainer, job.params, job.rule, rows, list(watches.values()), data.values, encoded, data)
    rounds = _loop(job)(task, _rounds(job, first))
    booster = build(_run(job, rounds, first, look, history, build))
    if data.n_rows > 1:
        _warn_of_no_split(booster, job)
    return booster


def _combinations(encoded: encoded_training.EncodedTraining | None, trees: Trees, n_columns: int) -> Combinations:
    """Those that the trees use: they come in the order of their first use."""
    n_used = max(0, int(trees.column.max(initial=-1)) + 1 - n_columns)
    return Combinations.of([] if encoded is None else encoded.combinations[:n_used])


def _warn_of_no_split(booster: Booster, job: "TrainSpec") -> None:
    """Say so where there is but one class, or min_child_weight alone forbade every split."""
    trees, least = booster.trees, job.params["min_child_weight"]
    if trees.n_nodes > trees.n_trees:
        return
    if job.classes is not None and (job.classes == job.classes[0]).all():
        warnings.warn(
            "all rows are of one class: there is nothing to tell apart, and every prediction is the same.",
            UserWarning,
            stacklevel=3,
        )
    elif trees.cover.max() < 2 * least:
        warnings.warn(
            f"no tree was split: the hessians sum to {trees.cover.max():.3g}, and min_child_weight={least:g} wants "
            "that much on both sides of a split. Lower it; weights that sum to 1 or labels of a small unit do this.",
            UserWarning,
            stacklevel=3,
        )


def cv(
    params: Mapping[str, Any],
    data: Dataset,
    n_estimators: int | None = None,
    *,
    n_folds: int = 5,
    folds: Any = None,
    stratified: bool | None = None,
    shuffle: bool | None = None,
    callbacks: Sequence[Callback] | None = None,
    **more: Any,
) -> dict[str, NDArray[np.float64]]:
    """Measure a model on rows it was not trained on, fold by fold.

    The folds grow side by side, and early stopping watches the mean over the folds. The rows of a fold weigh nothing in
    its training and nothing is binned again, so the cuts come from all rows.

    Parameters
    ----------
    params : mapping
        As in `train`.
    data : Dataset
        All rows.
    n_estimators : int, optional
        As in `train`.
    n_folds : int
        Number of folds; their sizes differ by at most one row, and so do their shares of every class. Where the data
        has groups, their numbers of whole groups do. The peers' ``nfold`` and ``fold_count`` are the same.
    folds : iterable of (rows to train on, rows to measure), or splitter of scikit-learn, optional
        Folds of your own, by positions of rows; ``n_folds`` is not looked at then.
    stratified, shuffle : bool, optional
        The peers' words for how folds are dealt, for which there is no choice: rows, or groups, at random
        (``shuffle=True``), and evenly by class where labels are classes and there are no groups (``stratified=True``).
        Anything else raises, and wants ``folds``.
    callbacks : sequence of callables, optional
        As in `train`; they see the means over the folds under the name "cv", and no booster.
    **more
        Further parameters, by name.

    Returns
    -------
    dict of str to (n_rounds) float64
        ``rmse_mean`` and ``rmse_std``, and so for every metric, by round; up to the best round with early stopping.
    """
    for name in ("nfold", "fold_count"):
        n_folds = more.pop(name, n_folds)
    params = _merge_arguments(cv, params, n_estimators, more)
    job = _prepare(params, data, callbacks, watched=True)
    if not job.metrics:
        raise ParameterError("cv measures models; give an eval_metric other than 'none'.")
    if job.rule.by_validation:
        raise ParameterError("prune_by_validation in cv would prune by the rows it is measured on; use train instead.")
    data = class_weight.with_class_weight(data, job.factor)
    sampling.check_fold_words(folds is None, job.classes, data.group, stratified=stratified, shuffle=shuffle)
    if folds is None:
        fold = sampling.folds(job.params["random_state"], n_folds, data.n_rows, job.classes, data.group)
        masks = [(fold == which, fold == which) for which in range(n_folds)]
    else:
        masks = sampling.given_folds(folds, data)
    trainers = [_trainer(job, data, held)[0] for held, _ in masks]
    watches = [HeldOutRows(data, trainer, rows) for trainer, (_, rows) in zip(trainers, masks, strict=True)]
    spread: dict[str, list[float]] = {one.name: [] for one in job.metrics}
    history: History = {}

    def look(_: Any) -> dict[str, dict[str, float]]:
        measured = [measure(watch, job.metrics, job.objective, job.n_threads) for watch in watches]
        means = {}
        for name, deviations in spread.items():
            values = [by_name[name] for by_name in measured]
            means[name] = fsum(values) / len(masks)
            deviations.append(sqrt(fsum((value - means[name]) ** 2 for value in values) / len(masks)))
        return {"cv": means}

    def task(which: int) -> Training:
        held, _ = masks[which]
        rows, encoded = (job.label, _weight(data, held)), _encoded(job, data, held, trainers[which])
        return Training(trainers[which], job.params, job.rule, rows, [watches[which]], data.values, encoded, data)

    rounds = zip(*(_loop(job)(task(which), _rounds(job, 0)) for which in range(len(masks))), strict=True)
    best = _run(job, rounds, 0, look, history, None)
    lists = {f"{name}_{what}": of[name] for name in spread for what, of in (("mean", history["cv"]), ("std", spread))}
    return {name: np.array(values[:best]) for name, values in lists.items()}


@dataclass(frozen=True)
class TrainSpec:
    """What was asked for, checked."""

    params: dict[str, Any]
    objective: objective.Objective
    rule: leaf.Rule
    label: Floats
    classes: Floats | None  # of the rows, by which held-out rows and folds are drawn; None where labels are no classes
    factor: Floats | None  # on the weights of the rows of each class
    metrics: tuple[metric.Metric, ...]
    callbacks: list[Callback]
    n_outputs: int
    n_threads: int


def _merge_arguments(
    function: Callable[..., Any], params: Mapping[str, Any], rounds: int | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Parameters and those given as arguments, in one mapping; an argument that is neither is refused."""
    more = more if rounds is None else {"n_estimators": rounds, **more}
    known = names() | dict(objective.field_aliases()) | dict.fromkeys(peers.ABSENT, "")
    peers.refuse_arguments(function, [name for name in more if name not in known], {}, "params")
    if not isinstance(params, Mapping):
        raise ParameterError(f"params is a {type(params).__name__}; give a dict of names and values.")
    if twice := [name for name in more if name in params]:
        raise ParameterError(f"{twice[0]} is in params and an argument too; give it once.")
    return {**params, **more}


def _prepare(
    given: Mapping[str, Any],
    data: Dataset,
    callbacks: Sequence[Callback] | None,
    init_model: Booster | None = None,
    *,
    watched: bool,
) -> TrainSpec:
    """Check everything that can be checked before work begins: the parameters first, then the data against them."""
    base = given.get("base_score")
    given = {name: value for name, value in given.items() if name != "base_score"}
    params = resolve(given, fields=objective.field_aliases())
    if init_model is not None and not isinstance(init_model, Booster):
        raise ParameterError(
            f"init_model is a {type(init_model).__name__}; give a Booster of sapwood: that of an estimator is its "
            "booster_, and sapwood.load reads files."
        )
    if params["has_time"] and "n_permutations" not in by_hand(params):
        params["n_permutations"] = 1
    _check_boosting(params, init_model)
    if params["objective"] == "auto":  # labels alone do not say; the estimators know and have put a name here
        params["objective"] = "squared_error" if init_model is None else init_model.objective
    goal = objective.resolve(params)
    if base is not None:
        params["start"] = _raw(base, goal.link, params["start"])
    link = None if goal.link == "custom" else goal.link
    metrics: tuple[metric.Metric, ...] = ()
    if params["eval_metric"] != "none":
        metrics = metric.resolve(params["eval_metric"], default=goal.metric, link=link, fields=goal.fields)
    elif params["early_stopping_rounds"] is not None:
        raise ParameterError("early_stopping_rounds watches a metric; give an eval_metric other than 'none'.")
    params["objective"] = goal.name
    params |= {name: value for name, value in goal.fields.items() if name in params}
    if params["leaf_iterations"] == "auto":
        params |= leaf.automatic(goal, params)
    unmeasured = goal.custom is not None and not goal.custom.measured and params["eval_metric"] is None
    if unmeasured and params["early_stopping_rounds"] is not None:
        raise ParameterError(f"early stopping by your own objective {goal.name!r} needs to be told eval_metric.")
    growth.plan(params)
    sampling.check(params, given)
    n_threads = cpu.threads(params["n_jobs"])
    if callable(callbacks):
        raise ParameterError("callbacks is a single callable; give a list of them: callbacks=[...].")
    watching = list(callbacks or []) if isinstance(callbacks, Iterable | None) else [callbacks]
    if odd := [one for one in watching if not callable(one)]:
        raise ParameterError(
            f"callbacks must be a list of callables, {odd[0]!r} is none; see sapwood.callback for ready-made ones."
        )
    watching += _keeping_the_best(params, given.get("use_best_model"), watched)
    if params["verbose"]:
        watching.append(progress(params["verbose"]))

    if not isinstance(data, Dataset):
        raise DataError(f"data is a {type(data).__name__}; make it with sapwood.Dataset(X, label=y).")
    if data.label is None:
        raise DataError("data has no label to learn; make it with Dataset(X, label=y).")
    bins.check(params, given, data)
    if "categorical_features" in given_names(given):
        _check_categorical(params["categorical_features"], data)
    params |= {name: getattr(data, name) for name in BIN_PARAMS} | constraints.by_name(params, data.feature_names)
    categories = [data.feature_names[column] for column in data.categories]
    constraints.check(params, data.feature_names, goal.link in COUPLED, categories)
    classes, indices = params["n_classes"], goal.labels == "a class index" or goal.custom is not None
    if classes is None and init_model is not None and init_model.objective == goal.name and indices:
        classes = init_model.n_outputs
        if goal.custom is None and data.label.max() >= classes:
            raise DataError(
                f"init_model has the classes 0..{classes - 1}, but a label is {data.label.max():g}; train it anew."
            )
    n_outputs = objective.outputs(goal, data.label, classes if indices else None)
    if not (classes is None or indices or (goal.labels, classes) == ("0 or 1", 2)):
        raise ParameterError(f"n_classes={classes} is not for objective={goal.name!r}; leave it out.")
    if data.init_score is not None and data.init_score.shape[1] != n_outputs:
        raise DataError(
            f"init_score has {data.init_score.shape[1]} columns; objective={goal.name!r} needs {n_outputs} here."
        )
    by_recipe = RECIPES.get(params["recipe"], {}).get("start")  # a recipe's own start gives way
    if params["start"] not in ("auto", by_recipe) and (init_model is not None or data.init_score is not None):
        what = "init_model" if init_model is not None else "init_score of the data"
        raise ParameterError(f"start={params['start']} and the {what} both say where scores start; give one of them.")
    if init_model is not None:
        _check_model(init_model, data, goal, n_outputs)
    countable = goal.custom is None and encoded_training.possible(params, init_model is not None)
    shared = n_outputs > 1 and params["multi_strategy"] == "multi_output_tree"
    params["category_encoding"] = category_encoding.choose_encoding(params, data, countable, shared)
    if isinstance(params["learning_rate"], str):  # "auto"
        watched = watched or params["early_stopping_rounds"] is not None
        params["learning_rate"] = auto_learning_rate.automatic(
            goal.name, data.n_rows, params["n_estimators"], watched, params["start"] == "auto"
        )
    first, rates = 0 if init_model is None else init_model.n_rounds, params["learning_rate"]
    if isinstance(rates, list) and len(rates) < first + params["n_estimators"]:
        raise ParameterError(
            f"learning_rate has {len(rates)} values; the model will have {first + params['n_estimators']} rounds."
        )
    sampling.warn_of_no_draw(params, range(first, first + params["n_estimators"]))
    directions = constraints.directions(params["monotone_constraints"], data.feature_names)
    from_other_rows = params["boosting"] == "ordered" or bool(encoded_training.chosen(params, data))
    if goal.custom is not None and encoded_training.chosen(params, data):
        raise ParameterError(
            f"objective {goal.name!r} is your own, of which there are no ordered statistics of categories; set "
            "category_encoding='partition'."
        )
    rule = leaf.plan(goal, params, n_outputs, directions, from_other_rows)
    linear.check(params, rule.method)
    encoded_training.check(params, data, init_model is not None, given)
    together.check(params, data, n_outputs)
    classes_of_rows = data.label if data.label.ndim == 1 and goal.labels in ("0 or 1", "a class index") else None
    if n_outputs > 2 and given.get("scale_pos_weight", 1) != 1:
        raise ParameterError(f"scale_pos_weight is for two classes, of {n_outputs} use class_weight={{class: weight}}.")
    if params["class_weight"] is not None and classes_of_rows is None:
        raise ParameterError(
            f"{called('class_weight', given)} needs one class a row; weigh rows by sample_weight (the weight of a "
            "Dataset)."
        )
    factor = class_weight.factors(params["class_weight"], classes_of_rows, data.weight, max(2, n_outputs))
    return TrainSpec(params, goal, rule, data.label, classes_of_rows, factor, metrics, watching, n_outputs, n_threads)


def _raw(base: Any, link: str, start: Any) -> float:
    """The start of XGBoost's `base_score`, which is a prediction."""
    value = Number(-inf).check(f"base_score={base!r}", base)
    if start != "auto":
        raise ParameterError(f"base_score={base!r} and start={start!r} both say where scores start; give one of them.")
    if link == "identity":
        return float(value)
    if link == "sigmoid" and 0 < value < 1:
        return float(elementary.log(value / (1 - value)))
    if link == "exp" and value > 0:
        return float(elementary.log(value))
    raise ParameterError(
        f"base_score={base!r} is no prediction of this objective, or of several; use start, a raw score."
    )


def _keeping_the_best(params: Mapping[str, Any], use_best: Any, watched: bool) -> list[Callback]:
    """Early stopping, or CatBoost's `use_best_model`, which takes all rounds and keeps those up to the best."""
    rounds = params["early_stopping_rounds"]
    if rounds is None and params["validation_fraction"] != defaults()["validation_fraction"]:
        raise ParameterError(
            f"validation_fraction={params['validation_fraction']:g} holds out rows for early stopping only; set "
            "early_stopping_rounds too, or leave it out."
        )
    if rounds is not None and use_best in (False, 0):
        raise ParameterError("use_best_model=False is not available with early stopping, which keeps the best rounds.")
    if rounds is None and use_best:
        if not watched:
            raise ParameterError("use_best_model=True needs rows to judge by; give valid, or early_stopping_rounds.")
        rounds = params["n_estimators"]
    return [] if rounds is None else [early_stopping(rounds)]


def _loop(job: TrainSpec) -> Callable[[Training, range], Iterator[Step]]:
    """The way of boosting that was asked for."""
    if job.params["boosting"] == "plain":
        return plain.boost if job.params["n_parallel_trees"] == 1 else forest.parallel
    return {"ordered": ordered.boost, "dart": dart.boost, "forest": forest.boost}[job.params["boosting"]]


def _rounds(job: TrainSpec, first: int) -> range:
    """The numbers of the rounds to come."""
    return range(first, first + job.params["n_estimators"])


def _check_boosting(params: Mapping[str, Any], init_model: Booster | None) -> None:
    """Raise where a way of boosting cannot be had with what else was asked for."""
    kind, given = params["boosting"], by_hand(params)
    if kind == "forest":
        forest.check(params)
    for name in sorted(given & dart.PARAMETERS) if kind != "dart" else ():
        raise ParameterError(f"{name}={params[name]!r} is for boosting='dart' only; this is boosting={kind!r}.")
    if kind == "ordered":
        ordered.check(params)
    if init_model is None:
        return
    if kind != "plain" or init_model.params.get("boosting", "plain") != "plain":
        raise ParameterError(
            "init_model is for boosting='plain' on both sides: the others know more of their rounds than the trees."
        )
    if params["n_parallel_trees"] != init_model.n_parallel_trees:
        raise ParameterError(
            f"n_parallel_trees={params['n_parallel_trees']}, but init_model has {init_model.n_parallel_trees} a round."
        )


def _check_categorical(wanted: Any, data: Dataset) -> None:
    """Raise unless the data was made with these columns of categories."""
    names = data.feature_names
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], bool):
        wanted = [j for j, marked in enumerate(wanted) if marked]
    columns = {names.index(one) if one in names else one for one in wanted or ()}
    if wanted != "auto" and columns != set(data.categories):
        has = [names[column] for column in data.categories]
        raise ParameterError(
            f"categorical_features={wanted!r}, but the columns of categories of the data are {has}; set it in "
            "Dataset(...)."
        )


def _check_model(model: Booster, data: Dataset, goal: objective.Objective, n_outputs: int) -> None:
    """Raise unless training can go on from a model."""
    mine = (goal.name, dict(goal.fields), n_outputs, tuple(data.feature_names))
    theirs = (model.objective, dict(model.fields), model.n_outputs, tuple(model.feature_names))
    for what, wanted, has in zip(("objective", "fields", "number of outputs", "columns"), mine, theirs, strict=True):
        if wanted != has:
            raise DataError(f"init_model differs in its {what}: {has}, where this training has {wanted}.")
    if dict(model.categories) != data.categories:
        raise DataError(
            "init_model knows other categories than the data, or has them in another order; make the data with "
            "Dataset(..., reference=the data the model was trained on)."
        )
    if len(model.combinations):
        raise DataError("init_model has combinations of columns, which a training cannot go on from; train it anew.")
    if model.linear and data.values is None:
        raise DataError("init_model has linear leaves, which need values; make the data with linear_leaves=True.")


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


def _check_sets(sets: Mapping[str, Dataset], data: Dataset, job: TrainSpec) -> None:
    """Raise unless validation sets go with the training data."""
    for name, one in sets.items():
        if one.label is None:
            raise DataError(f"validation set {name!r} has no label; make it with Dataset(X, label=y, reference=data).")
        same = len(one.cuts) == len(data.cuts) and all(map(np.array_equal, one.cuts, data.cuts))
        if not same or one.categories != data.categories or one.feature_names != data.feature_names:
            raise DataError(
                f"validation set {name!r} has other columns, cuts or categories; make it with "
                "Dataset(..., reference=data)."
            )
        if one.label.shape[1:] != job.label.shape[1:]:
            raise DataError(
                f"validation set {name!r} has labels of shape {one.label.shape}, the training data {job.label.shape}."
            )
        if (one.init_score is None) != (data.init_score is None):
            raise DataError(f"validation set {name!r} and the training data must both have an init_score, or neither.")
        objective.outputs(job.objective, one.label, job.n_outputs)


def _encoded(
    job: TrainSpec, data: Dataset, held: NDArray[np.bool_] | None, trainer: cpu.Trainer
) -> encoded_training.EncodedTraining | None:
    """Columns of categories as statistics, where that was asked for."""
    if not encoded_training.chosen(job.params, data):
        return None
    weight, scores = _weight(data, held), trainer.scores()

    def prepare(
        grower: cpu.Trainer,
        names: Sequence[str],
        categories: Collection[int],
        cuts: Sequence[Floats],
        weights: Sequence[float],
    ) -> None:
        growth.rule(grower, job.params, names, categories, cuts, weights=weights)
        sampling.prepare(grower, job.params, job.classes, data.group)

    return encoded_training.EncodedTraining(data, job.params, job.rule, job.label, weight, scores, prepare)


def _trainer(
    job: TrainSpec, data: Dataset, held: NDArray[np.bool_] | None, init_model: Booster | None = None
) -> tuple[cpu.Trainer, NDArray[np.float64]]:
    """A trainer whose scores are set and in which held-out rows weigh nothing, and the base of its model."""
    goal, weight = job.objective, _weight(data, held)
    label = objective.planes(goal, job.label, job.n_outputs)
    trainer = cpu.Trainer(data.binned, label, weight, goal.core, goal.fields, job.n_outputs, job.n_threads)
    used = [] if init_model is None else np.unique(init_model.trees.column).tolist()
    used = [column for column in used if column >= 0]
    growth.rule(trainer, job.params, data.feature_names, data.categories, data.cuts, used)
    if data.values is not None:
        trainer.set_table(data.values)
    sampling.prepare(trainer, job.params, job.classes, data.group)
    if init_model is not None:
        base = np.asarray(init_model.base)
    else:
        at = job.params["start"] if data.init_score is None else 0.0
        base = objective.start(goal, trainer, at, job.n_outputs, job.label, weight)
    if init_model is None and data.init_score is None:
        trainer.fill_scores(base)
    else:
        trainer.set_scores(start_scores(data, base, None if init_model is None else init_model.trees, job.n_threads))
    return trainer, base


def _weight(data: Dataset, held: NDArray[np.bool_] | None) -> NDArray[np.float64] | None:
    """The weights of a training in which held-out rows weigh nothing."""
    if held is None:
        return data.weight
    weight = np.where(held, 0.0, 1.0 if data.weight is None else data.weight)
    if not weight.any():
        raise DataError("no row of positive weight is left to train on; check the weights, or hold out fewer rows.")
    return weight


def _run(
    job: TrainSpec,
    rounds: Iterable[Any],
    first: int,
    look: Callable[[Any], dict[str, dict[str, float]]],
    history: History,
    build: Callable[[], Booster] | None,
) -> int | None:
    """Go through the rounds until they end or a callback stops them; how many rounds to keep, None for all.

    ``look`` takes in a round and measures it, ``history`` is filled, ``build`` makes the booster so far for callbacks.
    """
    params, end = MappingProxyType(job.params), first + job.params["n_estimators"] - 1
    for index, trees in enumerate(rounds, first):
        measured = look(trees)
        for name, values in measured.items():
            for one, value in values.items():
                history.setdefault(name, {}).setdefault(one, []).append(value)
        if job.callbacks and stops(
            job.callbacks, Round(index, params, job.metrics, measured, index == end, history, build)
        ):
            break
    best = [getattr(callback, "best_round", None) for callback in job.callbacks]
    return min((rounds for rounds in best if rounds is not None), default=None)
