"""What a training was asked for: parameters resolved, the objective, metrics and
callbacks, checked against the data.

In: what the user gave, and the training data. Out: a `TrainSpec`, or an error before
any work begins.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from sapwood import metric, objective
from sapwood.boost import auto_learning_rate, class_weight, compatibility, offset
from sapwood.boost.categories import category_encoding
from sapwood.boost.leaves import leaf
from sapwood.boost.round import growth, sampling
from sapwood.boost.round.callback import Callback, early_stopping, progress
from sapwood.boost.round.peer_callbacks import adapted, rates
from sapwood.boost.round.training import Floats
from sapwood.data import derived
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.data.dealt import check_labels
from sapwood.device import elementary
from sapwood.device.threads import threads
from sapwood.errors import DataError, ParameterError, warn
from sapwood.model.booster import Booster
from sapwood.params import (
    by_hand,
    constraints,
    gains,
    given_names,
    names,
    peers,
    resolve,
)
from sapwood.params.types import Number, PerClass

# default of min_child_weight in a ranking: hessians of pairs are small, and have no
# unit
RANKING_CHILD = 1e-3


@dataclass(frozen=True)
class TrainSpec:
    """What was asked for, checked."""

    params: dict[str, Any]
    objective: objective.Objective
    leaf_plan: leaf.LeafPlan
    label: Floats  # less the offset
    offset: Floats  # (n_outputs) what scores of the training lack of those of the model
    # the class of each row, by which rows are held out and dealt to folds; None: no
    # classes
    classes: Floats | None
    factor: Floats | None  # on the weights of the rows of each class
    metrics: tuple[metric.Metric, ...]
    callbacks: list[Callback]
    n_outputs: int
    n_threads: int
    init_model: Booster | None

    @property
    def rounds(self) -> range:
        """The numbers of the rounds to come."""
        first = 0 if self.init_model is None else self.init_model.n_rounds
        return range(first, first + self.params["n_estimators"])


def merge_arguments(
    function: Callable[..., Any],
    params: Mapping[str, Any],
    rounds: int | None,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Merge parameters with those given as arguments; an unknown argument raises."""
    more = more if rounds is None else {"n_estimators": rounds, **more}
    known = names() | dict(objective.field_aliases()) | dict.fromkeys(peers.ABSENT, "")
    peers.refuse_arguments(
        function, [name for name in more if name not in known], {}, "params"
    )
    if not isinstance(params, Mapping):
        raise ParameterError(
            f"params is a {type(params).__name__}; give a dict of names and values."
        )
    if twice := [
        name for name in more if name in params and more[name] != params[name]
    ]:
        raise ParameterError(
            f"{twice[0]} is in params and an argument too; give it once."
        )
    return {**params, **more}


def take_callbacks(
    params: Mapping[str, Any], callbacks: Any
) -> tuple[Mapping[str, Any], Any]:
    """Parameters and callbacks, where a peer's callback that sets learning rates has
    become learning_rate.
    """
    if not isinstance(callbacks, list | tuple):
        return params, callbacks
    rest, found = rates(callbacks)
    if found and "learning_rate" in given_names(params):
        params = {
            name: value
            for name, value in params.items()
            if names().get(name) != "learning_rate"
        }
    return {**params, **found}, rest


def make_spec(
    given: Mapping[str, Any],
    data: Dataset,
    callbacks: Sequence[Callback] | None,
    init_model: Booster | None = None,
    *,
    watched: bool,
    in_cv: bool = False,
) -> TrainSpec:
    """Check everything that can be checked before work begins: the parameters first,
    then the data against them.
    """
    params = resolve_params(given, init_model)
    goal, metrics = resolve_objective(params, given, init_model)
    watching = resolve_callbacks(params, given, callbacks)
    n_outputs = check_data(params, given, goal, data, init_model)
    assert data.label is not None
    if (
        isinstance(goal.custom, objective.GroupLoss)
        and data.group is None
        and params["eval_metric"] is None
    ):
        metrics = ()  # pairs of the user without groups: there is no list to measure
    if any(one.ranks for one in metrics) or isinstance(
        goal.custom, objective.GroupLoss
    ):
        params["label_gain"] = gains.gain_rule(params["label_gain"], data.label)
        metrics = tuple(
            metric.with_gain(one, params["label_gain"], float(data.label.max()))
            for one in metrics
        )
    plan = derive(
        params,
        compatibility.Facts(
            params, given, goal, init_model, data, n_outputs, watched, in_cv, metrics
        ),
    )
    classes = (
        data.label
        if data.label.ndim == 1 and goal.labels in ("0 or 1", "a class index")
        else None
    )
    for name in ("class_weight", "subsample_by_class"):
        if isinstance(params[name], PerClass):
            params[name].check_length(name, max(2, n_outputs))
    factor = class_weight.factors(
        params["class_weight"], classes, data.weight, max(2, n_outputs), data.reduce
    )
    n_threads = threads(params["n_jobs"])
    shift = offset.choose(goal, data, n_outputs, init_model)
    label = offset.subtracted(data.label, shift)
    return TrainSpec(
        params,
        goal,
        plan,
        label,
        shift,
        classes,
        factor,
        metrics,
        watching,
        n_outputs,
        n_threads,
        init_model,
    )


def resolve_params(
    given: Mapping[str, Any], init_model: Booster | None
) -> dict[str, Any]:
    """Parameters in our names, complete."""
    params = resolve(
        {name: value for name, value in given.items() if name != "base_score"},
        fields=objective.field_aliases(),
    )
    if init_model is not None and not isinstance(init_model, Booster):
        raise ParameterError(
            f"init_model is a {type(init_model).__name__}; give a Booster of sapwood: that of an estimator is its "
            "booster_, and sapwood.load reads files."
        )
    if params["has_time"] and "n_permutations" not in by_hand(params):
        params["n_permutations"] = 1
    # labels alone do not say; the estimators know and have put a name here
    if params["objective"] == "auto":
        params["objective"] = (
            "squared_error" if init_model is None else init_model.objective
        )
    return params


def resolve_objective(
    params: dict[str, Any], given: Mapping[str, Any], init_model: Booster | None
) -> tuple[objective.Objective, tuple[metric.Metric, ...]]:
    """The objective and the metrics; ``params`` gets their names, fields and the leaf
    iterations that they imply.
    """
    goal = objective.resolve(params)
    if given.get("base_score") is not None:
        params["start"] = raw_start(given["base_score"], goal, params["start"])
    link = None if goal.link == "custom" else goal.link
    metrics: tuple[metric.Metric, ...] = ()
    if params["eval_metric"] != "none":
        asked = params["eval_metric"]
        default = goal.metric
        if params["eval_at"] is not None:
            asked = [
                place
                for one in np.atleast_1d(np.array(asked or default, object))
                for place in _places(one, params)
            ]
        metrics = metric.resolve(asked, default=default, link=link, fields=goal.fields)
    params["objective"] = goal.name
    if isinstance(
        goal.custom, objective.GroupLoss
    ) and "min_child_weight" not in by_hand(params):
        params["min_child_weight"] = RANKING_CHILD
    params |= {name: value for name, value in goal.fields.items() if name in params}
    if params["leaf_iterations"] == "auto":
        params |= leaf.automatic(goal, params)
    growth.limits(params)
    sampling.check(params)
    return goal, metrics


def _places(one: Any, params: Mapping[str, Any]) -> list[Any]:
    """A metric of ranks once for each of `eval_at`, unless it has its own places; other
    metrics as they are.
    """
    plain = (
        isinstance(one, str)
        and not {"@", ":"} & set(one)
        and metric.resolve(one, default=one, link=None)[0].ranks
    )
    return [f"{one}@{at}" for at in params["eval_at"]] if plain else [one]


def resolve_callbacks(
    params: Mapping[str, Any], given: Mapping[str, Any], callbacks: Any
) -> list[Callback]:
    """The user's callbacks, then those that parameters ask for."""
    if callable(callbacks):
        raise ParameterError(
            "callbacks is a single callable; give a list of them: callbacks=[...]."
        )
    found = adapted(
        list(callbacks or []) if isinstance(callbacks, Iterable | None) else [callbacks]
    )
    rounds = params["early_stopping_rounds"]
    use_best = given.get("use_best_model")
    # CatBoost's: all rounds are trained, those up to the best are kept
    if rounds is None and use_best:
        rounds = params["n_estimators"]
    found += (
        []
        if rounds is None
        else [
            early_stopping(
                rounds, first_metric_only=bool(given.get("first_metric_only"))
            )
        ]
    )
    return [*found, progress(params["verbose"])] if params["verbose"] else found


def check_data(
    params: dict[str, Any],
    given: Mapping[str, Any],
    goal: objective.Objective,
    data: Dataset,
    init_model: Booster | None,
) -> int:
    """Check the data against the parameters, which get its bins and the names of its
    columns; the number of outputs.
    """
    if not isinstance(data, Dataset):
        raise DataError(
            f"data is a {type(data).__name__}; make it with sapwood.Dataset(X, label=y)."
        )
    if data.label is None:
        raise DataError("data has no label to learn; make it with Dataset(X, label=y).")
    compatibility.check_bins(params, given, data)
    if "categorical_features" in given_names(given):
        _check_categorical(params["categorical_features"], data)
    parts = derived.parts_by_column(data.times, data.feature_names[: data.n_given])
    params |= {name: getattr(data, name) for name in BIN_PARAMS}
    params |= constraints.by_name(params, data.feature_names, parts)
    for what in ("category_encoding", "statistics"):
        columns = {data.feature_names[column] for column in data.categories}
        for name in (
            [name for name in params[what] if name not in columns]
            if isinstance(params[what], dict)
            else ()
        ):
            raise ParameterError(
                f"{what} names {name!r}, which is not a categorical column; leave it out."
            )
    n_outputs = check_labels(
        data,
        lambda label: _outputs(params, goal, label, init_model),
        goal.labels == "a class index",
    )
    if data.init_score is not None and data.init_score.shape[1] != n_outputs:
        raise DataError(
            f"init_score has {data.init_score.shape[1]} columns; objective={goal.name!r} needs {n_outputs} here."
        )
    if init_model is not None:
        _check_model(init_model, data, goal, n_outputs)
        theirs = init_model.trees.linear
        if theirs is not None and (len(theirs.linear_bounds) > 0) != (
            params["linear_units"] == "standard"
        ):
            units = "standard" if len(theirs.linear_bounds) else "raw"
            raise ParameterError(
                f"the leaves of init_model have linear_units={units!r}; set the same."
            )
    return n_outputs


def derive(params: dict[str, Any], facts: compatibility.Facts) -> leaf.LeafPlan:
    """Replace every 'auto' that depends on the data, and plan the leaves."""
    goal = facts.objective
    data = facts.data
    init_model = facts.init_model
    params["category_encoding"] = _encoding(params, facts)
    compatibility.check(facts)
    if isinstance(params["learning_rate"], str):  # "auto"
        watched = facts.watched or params["early_stopping_rounds"] is not None
        params["learning_rate"] = auto_learning_rate.automatic(
            goal.name,
            data.n_total,
            params["n_estimators"],
            watched,
            params["start"] == "auto",
        )
    first = 0 if init_model is None else init_model.n_rounds
    rates = params["learning_rate"]
    if isinstance(rates, list) and len(rates) < first + params["n_estimators"]:
        raise ParameterError(
            f"learning_rate has {len(rates)} values; the model will have {first + params['n_estimators']} rounds."
        )
    sampling.warn_of_no_draw(params, range(first, first + params["n_estimators"]))
    directions = constraints.numbers(
        params["monotone_constraints"], data.feature_names, 0
    )
    from_other_rows = params["boosting"] == "ordered" or bool(facts.encoded)
    return leaf.make_plan(goal, params, facts.n_outputs, directions, from_other_rows)


def _encoding(
    params: Mapping[str, Any], facts: compatibility.Facts
) -> category_encoding.Given:
    """The encoding of categories; warn where it is another one than rows in memory
    would get.
    """
    places = {
        compatibility.DEALT: "need one order of all rows, which are dealt to several holders",
        compatibility.LIMITED: "keep facts of all rows in memory, and the data has a memory_limit",
    }
    why = next((said for place, said in places.items() if place.holds(facts)), None)
    shared = facts.n_outputs > 1 and params["multi_strategy"] == "multi_output_tree"
    countable = params["forced_splits"] is None and compatibility.allows(
        compatibility.STATISTICS, facts, tuple(places)
    )
    usual = category_encoding.choose_encoding(params, facts.data, countable, shared)
    if why is None:
        return usual
    found = category_encoding.choose_encoding(params, facts.data, False, shared)
    if found != usual:
        word = "onehot" if shared else "partition"
        before, after = (
            {} if one is None or isinstance(one, str) else one for one in (usual, found)
        )
        other = [
            name for name in before if before[name] != after.get(name, "partition")
        ]
        warn(
            f"category_encoding={word!r} is used for {', '.join(map(repr, other[:5]))}{', ...' if other[5:] else ''}, "
            f"where a default fit in memory uses 'ordered': ordered statistics {why}. The model differs from that of "
            f"such a fit; for the same bytes, and without this warning, set category_encoding={word!r} in both."
        )
    return found


def raw_start(base: Any, goal: objective.Objective, start: Any) -> float:
    """The start score of XGBoost's `base_score`, which is a prediction."""
    value = Number(-inf).check(f"base_score={base!r}", base)
    if start != "auto":
        raise ParameterError(
            f"base_score={base!r} and start={start!r} both say where scores start; give one of them."
        )
    if goal.link == "identity":
        return float(value)
    if goal.link == "sigmoid" and 0 < value < 1:
        return float(elementary.log(value / (1 - value)))
    if goal.link == "exp" and value > 0:
        return float(elementary.log(value))
    raise ParameterError(
        f"base_score={base!r} cannot be a prediction of objective={goal.name!r} (and a single base_score is not "
        "supported for several outputs). Use `start`, which takes raw scores."
    )


def _outputs(
    params: Mapping[str, Any],
    goal: objective.Objective,
    label: Floats,
    init_model: Booster | None,
) -> int:
    """The number of outputs, by the labels, n_classes or the model to continue from."""
    classes = params["n_classes"]
    indices = goal.labels == "a class index" or goal.custom is not None
    if (
        classes is None
        and init_model is not None
        and init_model.objective == goal.name
        and indices
    ):
        classes = init_model.n_outputs
        if goal.custom is None and label.max() >= classes:
            raise DataError(
                f"init_model has the classes 0..{classes - 1}, but a label is {label.max():g}; train it anew."
            )
    n_outputs = objective.outputs(goal, label, classes if indices else None)
    if not (classes is None or indices or (goal.labels, classes) == ("0 or 1", 2)):
        raise ParameterError(
            f"n_classes={classes} is not for objective={goal.name!r}; leave it out."
        )
    return n_outputs


def _check_categorical(wanted: Any, data: Dataset) -> None:
    """Raise unless the data was made with these columns of categories."""
    names = data.feature_names
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], bool):
        wanted = [j for j, marked in enumerate(wanted) if marked]
    place = {name: column for column, name in enumerate(names)}
    columns = {place.get(one, one) for one in wanted or ()}
    if wanted != "auto" and columns != set(data.categories):
        has = [names[column] for column in data.categories]
        raise ParameterError(
            f"categorical_features={wanted!r}, but the columns of categories of the data are {has}; set it in "
            "Dataset(...)."
        )


def _check_model(
    model: Booster, data: Dataset, goal: objective.Objective, n_outputs: int
) -> None:
    """Raise unless training can go on from a model."""
    mine = (
        goal.name,
        dict(goal.fields),
        n_outputs,
        data.feature_names[: data.n_columns - len(data.crosses)],
    )
    theirs = (
        model.objective,
        dict(model.fields),
        model.n_outputs,
        tuple(model.feature_names),
    )
    for what, wanted, has in zip(
        ("objective", "fields", "number of outputs", "columns"),
        mine,
        theirs,
        strict=True,
    ):
        if wanted != has:
            raise DataError(
                f"init_model differs in its {what}: {has}, where this training has {wanted}."
            )
    if dict(model.categories) != data.categories:
        raise DataError(
            "init_model knows other categories than the data, or has them in another order; make the data with "
            "Dataset(..., reference=the data the model was trained on)."
        )
    if model.crosses != data.crosses:
        raise DataError(
            "init_model has other crosses of columns than the data; make the data with Dataset(..., reference=the data "
            "the model was trained on)."
        )
    if len(model.combinations):
        raise DataError(
            "init_model has combinations of columns, which a training cannot go on from; train it anew."
        )
    if model.linear and data.values is None:
        raise DataError(
            "init_model has linear leaves, which need values; make the data with linear_leaves=True."
        )
