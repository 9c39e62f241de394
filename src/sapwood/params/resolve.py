"""What a user gave, checked and completed by the table of parameters.

In: a mapping in our names, or in those of XGBoost, LightGBM and CatBoost. Out: every
parameter under our name, checked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sapwood.errors import ParameterError
from sapwood.params import peers
from sapwood.params.aliases import OBJECTIVES
from sapwood.params.recipes import RECIPE_FIELDS, RECIPES
from sapwood.params.table import BY_ALIAS, BY_NAME, TABLE, Parameter
from sapwood.params.types import RATE, as_number, is_integer

# Parameters inside CatBoost's names of losses: "YetiRank:mode=NDCG;top=10".
RANKING_LOSSES = ("lambdarank", "pair_logit", "yetirank")
RANKING_KEYS = {
    "metric": "ranking_metric",
    "mode": "ranking_metric",
    "top": "truncation_level",
    "sigma": "sigmoid",
    "norm": "lambdarank_norm",
    "permutations": "noisy_permutations",
    "num_neighbors": "noisy_neighbors",
    "decay": "noise_decay",
}
# by our name: how it was given, in words, and its checked value
Found = dict[str, tuple[str, Any]]


def defaults() -> dict[str, Any]:
    """The default of every parameter, in the order of the table."""
    return {row.name: row.default for row in TABLE}


def resolve(
    given: Mapping[str, Any], *, fields: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Check a mapping of parameters and complete it.

    given: mapping of str to object; parameters in our names or a peer's. Not changed.
    fields: mapping of str to str, optional; names of objectives' own parameters, and
    ours for them; their values are
      passed on unchecked.
    Returns dict: every parameter of the table in our names and plain Python types, then
    the fields that were given. Raises ParameterError: For a name that is unknown,
    ambiguous or given twice, and for a value of the wrong type or
      range.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"params is a {type(given).__name__}; give a dict of names and values."
        )
    fields = {} if fields is None else fields
    given = _quantiles(_ranking(in_one_language(given)))
    found: Found = {}
    own: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in _split_objective(given, fields):
        name, value = moved(name, value)
        try:
            if name in fields:
                if fields[name] in own:
                    raise ParameterError(
                        f"{name}={value!r} gives {fields[name]} a second time; give it once."
                    )
                own[fields[name]] = value
            elif not peers.is_default_here(name, value):
                if name not in BY_ALIAS:
                    hint = peers.unknown(str(name), [*BY_ALIAS, *fields])
                    raise ParameterError(f"unknown parameter {name!r}; {hint}")
                _add(found, BY_ALIAS[name], name, value)
        except ParameterError as cause:
            wrong.append(str(cause))
    if wrong:
        raise ParameterError(*wrong)
    complete = {row.name: row.type.check(row.name, row.default) for row in TABLE}
    checked = {name: value for name, (_, value) in found.items()}
    complete |= _recipe(checked) | checked
    goal = complete["objective"]
    of_recipe = (
        RECIPE_FIELDS.get(complete["recipe"], {}).get(goal, {})
        if isinstance(goal, str)
        else {}
    )
    complete |= {
        name: value
        for name, value in of_recipe.items()
        if name not in found and name not in own
    }
    _check_row_sampling(given, found, complete)
    peers.say_differences(given, checked)
    for name in (
        ("max_bins", "min_samples_bin") if complete["tree_method"] == "exact" else ()
    ):
        if name in found and found[name][1] != BY_NAME[name].default:
            raise ParameterError(
                f"{found[name][0]} is not for tree_method='exact', which has no bins; leave it out."
            )
        complete[name] = BY_NAME[name].default  # whatever a recipe says
    return complete | own


def in_one_language(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What several names say together in a peer's words, as names that each say one
    thing.
    """
    return _alpha(_one_seed(_second_order(_custom_metric(_stopping(_implied(given))))))


def renamed(given: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Parameters under our names; values under a name of ours as they are, others
    converted but not checked.

    Names that Sapwood needs no value for are left out. Everything that is not known is
    named in one error.
    """
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in _split_objective(in_one_language(given), fields):
        name, value = moved(name, value)
        try:
            if name in fields:
                ours = fields[name]
            elif name in BY_NAME or not peers.is_default_here(name, value):
                if name not in BY_ALIAS:
                    raise ParameterError(
                        f"{name!r}; {peers.unknown(str(name), [*BY_NAME, *fields])}"
                    )
                row = BY_ALIAS[name]
                ours = row.name
                if name != ours:
                    value = row.convert.get(name, lambda same: same)(value)
                    if value is None and not allows_none(row):  # XGBoost's "not set"
                        continue
            else:
                continue
            if ours in found and found[ours] is not value and found[ours] != value:
                if ours != "verbose":
                    raise ParameterError(
                        f"{name}={value!r} and {ours}={found[ours]!r} are both {ours}; give one."
                    )
                value = value or found[ours]
            found[ours] = value
        except ParameterError as cause:
            wrong.append(str(cause))
    if wrong:
        raise ParameterError(*wrong)
    peers.say_differences(
        {name: value for name, value in given.items() if name != "class_weight"}, found
    )
    return found


def allows_none(row: Parameter) -> bool:
    """Whether None is a value of a parameter."""
    try:
        row.type.check(row.name, None)
    except ParameterError:
        return False
    return True


def _add(found: Found, row: Parameter, name: str, value: Any) -> None:
    """Check a value that was given under some name, and add it to those found so
    far.
    """
    ours = row.convert.get(name, lambda same: same)(value)
    text = (
        f"{name}={value!r}"
        if ours is value
        else f"{name}={value!r} ({row.name}={ours!r})"
    )
    checked = row.type.check(text, ours)
    before = found[row.name][1] if row.name in found else checked
    if (
        isinstance(checked, dict)
        and isinstance(before, dict)
        and not set(checked) & set(before)
    ):
        checked = before | checked  # different classes
    elif row.name == "verbose" and 0 in (before, checked):
        checked = before or checked  # verbosity=-1 beside verbose_eval=100
    elif row.name == "class_weight" and None in (before, checked):
        # is_unbalance=False beside a weight
        checked = before if checked is None else checked
    elif row.name == "eval_metric" and "none" in (before, checked):
        # metric="None" beside feval: that alone
        checked = before if checked == "none" else checked
    elif (
        row.name == "eval_metric"
        and before != checked
        and all(map(callable, _listed(checked)))
    ):
        # LightGBM's metric beside feval
        checked = [*_listed(before), *_listed(checked)]
    elif before != checked:
        raise ParameterError(
            f"{found[row.name][0]} and {text} are both {row.name}; give one of them."
        )
    found[row.name] = text, checked


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _check_row_sampling(
    given: Mapping[str, Any], found: Found, complete: dict[str, Any]
) -> None:
    """Raise where parameters of row sampling contradict each other."""
    subsample = complete["subsample"]
    if (
        "bagging_freq" in given
        and not {"subsample", "sampling", "subsample_by_class", "recipe"} & found.keys()
    ):
        # as in LightGBM: all rows, so that there is no sample to keep
        complete["subsample_freq"] = 1
    for name in ("bagging_freq", "subsample_freq"):
        if is_integer(given.get(name)) and given[name] == 0 and subsample < 1:
            raise ParameterError(
                f"{name}=0 draws no rows, but subsample={subsample:g}; leave one of them out."
            )
    if (
        str(given.get("bootstrap_type")).lower() == "bernoulli"
        and "subsample" not in found
    ):
        raise ParameterError(
            "bootstrap_type='Bernoulli' draws a share of the rows; say which: CatBoost's is subsample=0.66."
        )


def _stopping(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """scikit-learn's early_stopping with n_iter_no_change: a switch, and after how many
    rounds; 'auto' is no stop.
    """
    on = given.get("early_stopping")
    # rows are held out, as there
    if on is True or (on is None and is_integer(given.get("n_iter_no_change"))):
        given = (
            given
            if "validation_fraction" in given
            else {**given, "validation_fraction": 0.1}
        )
    if not (isinstance(on, bool) or (isinstance(on, str) and on == "auto")):
        return given
    rest = {
        name: value
        for name, value in given.items()
        if name not in ("early_stopping", "n_iter_no_change")
    }
    rounds = given.get("n_iter_no_change", 10)
    return (
        {**rest, "early_stopping": (rounds if on is True else 0)}
        if on != "auto"
        else rest
    )


def _custom_metric(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Append CatBoost's custom_metric to eval_metric, whose first metric early stopping
    uses.
    """
    too = [name for name in ("custom_metric", "custom_loss") if name in given]
    if not too:
        return given
    row, rest = (
        BY_NAME["eval_metric"],
        {name: value for name, value in given.items() if name != too[0]},
    )
    name = next((name for name in rest if BY_ALIAS.get(name) is row), row.name)
    first, more = (
        row.type.check(f"{name}={one!r}", one)
        for one in (rest.get(name), given[too[0]])
    )
    first, more = (one if isinstance(one, list) else [one] for one in (first, more))
    return {**rest, name: [*first, *(one for one in more if one not in (None, "none"))]}


def _second_order(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the hessian that CatBoost's NewtonL2 and NewtonCosine use, and that its
    recipe does not.
    """
    word = given.get("score_function")
    if not (isinstance(word, str) and word.lower().startswith("newton")):
        return given
    if given.get("hessian") == "none":
        raise ParameterError(
            f"score_function={word!r} uses second derivatives, hessian='none' does not; leave one of them out."
        )
    return {**given, "hessian": "auto"}


def _implied(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out scikit-learn's min_samples_split where two leaves of min_samples_leaf
    have as many rows.
    """
    split = given.get("min_samples_split", 0)
    leaf = given.get("min_samples_leaf", 0)
    if not (is_integer(split) and is_integer(leaf) and 0 < split <= 2 * leaf):
        return given
    return {name: value for name, value in given.items() if name != "min_samples_split"}


def _one_seed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out LightGBM's seeds of single kinds of draws: all draws use random_state,
    or the first of those.
    """
    ours = BY_NAME["random_state"]
    seeds = {
        name: value
        for name, value in given.items()
        if name in peers.SEEDS and is_integer(value)
    }
    if not seeds:
        return given
    main = any(
        BY_ALIAS.get(name) is ours and value is not None
        for name, value in given.items()
    )
    rest = {name: value for name, value in given.items() if name not in seeds}
    return rest if main else {**rest, ours.name: next(iter(seeds.values()))}


LEVELS = {
    "quantile": "quantile_alpha",
    "expectile": "expectile_alpha",
    "huber": "huber_delta",
}


def _alpha(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rename alpha where the objective tells its meaning: XGBoost's L1 penalty, or the
    level of a loss elsewhere.

    Beside scikit-learn's ``loss="huber"`` it is the quantile of residuals at which the
    loss turns.
    """
    name, goal = next(
        (
            (name, value)
            for name, value in given.items()
            if BY_ALIAS.get(name) is BY_NAME["objective"]
        ),
        ("", None),
    )
    if "quantile" in given:  # scikit-learn's level
        level = (
            {} if given["quantile"] is None else {"quantile_alpha": given["quantile"]}
        )
        given = {
            name: value for name, value in given.items() if name != "quantile"
        } | level
    if "alpha" not in given or not isinstance(goal, str) or "=" in goal:
        return given
    ours = OBJECTIVES.get(goal.lower(), goal.lower())
    # scikit-learn does not look at it then
    if name == "loss" and ours in ("squared_error", "absolute_error"):
        return {one: value for one, value in given.items() if one != "alpha"}
    if name == "loss" and ours == "huber":
        rest = {
            one: value for one, value in given.items() if one not in ("alpha", name)
        }
        return {**rest, "objective": "adaptive_huber", "huber_quantile": given["alpha"]}
    meant = "reg_alpha" if ":" in goal else LEVELS.get(ours)
    if meant is None or meant in given:
        return given
    return {meant if name == "alpha" else name: value for name, value in given.items()}


def _quantiles(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the objective that `quantiles` means, and its levels."""
    if given.get("quantiles") is None:
        return given
    levels = BY_NAME["quantiles"].type.check(
        f"quantiles={given['quantiles']!r}", given["quantiles"]
    )
    word = next(
        (name for name in given if BY_ALIAS.get(name) is BY_NAME["objective"]),
        "objective",
    )
    goal = given.get(word, "auto")
    if goal not in ("auto", "quantile"):
        raise ParameterError(
            f"quantiles is for objective='quantile', and {word}={goal!r}; leave one of them out."
        )
    alpha = given.get("quantile_alpha")
    if alpha is not None and list(np.atleast_1d(alpha)) != levels:
        raise ParameterError(
            f"quantile_alpha={alpha!r} and quantiles={levels} are levels of quantiles; give one."
        )
    return {**given, word: "quantile", "quantile_alpha": levels}


def _ranking(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the metric that XGBoost's rank:map stands for."""
    goal = next(
        (
            value
            for name, value in given.items()
            if BY_ALIAS.get(name) is BY_NAME["objective"]
        ),
        None,
    )
    return {"ranking_metric": "map", **given} if goal == "rank:map" else given


def _split_objective(
    given: Mapping[str, Any], fields: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """Split CatBoost's "Quantile:alpha=0.9" into the objective and parameters of its
    own.
    """
    objective = BY_NAME["objective"]
    for name, value in given.items():
        if not (
            isinstance(value, str) and "=" in value and BY_ALIAS.get(name) is objective
        ):
            yield name, value
            continue
        head, _, rest = value.partition(":")
        ours = objective.type.check(f"{name}={value!r}", head)
        yield name, head
        for key, _, text in (part.partition("=") for part in rest.split(";")):
            if f"{key}={text}".lower() in peers.IMPLIED:
                continue
            if ours in RANKING_LOSSES and key.lower() in RANKING_KEYS:
                number = as_number(text)
                whole = (
                    int(number)
                    if isinstance(number, float) and number == int(number)
                    else number
                )
                yield (
                    RANKING_KEYS[key.lower()],
                    {"true": True, "false": False}.get(text.lower(), whole),
                )
                continue
            field = key if key in fields else f"{ours}_{key}"
            if field not in fields:
                own = (
                    ", ".join(one for one in fields if one.startswith(f"{ours}_"))
                    or "no field, or is unknown"
                )
                raise ParameterError(
                    f"{name}={value!r} has {key!r}; {ours!r} takes {own}."
                )
            try:
                levels = [float(one) for one in text.split(",")]
            except ValueError:
                raise ParameterError(
                    f"{name}={value!r} has {text!r} for {field}; give a number."
                ) from None
            yield field, levels if len(levels) > 1 else levels[0]


def _recipe(found: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a recipe sets.

    A classic tree with max_leaves is leafwise and has no limit of depth. A recipe's
    subsample is for its own sampler. Leaves of Poisson trees are limited as in XGBoost:
    those of one or two rows would have values of any size.
    """
    name = found.get("recipe")
    recipe = RECIPES.get(name or "", {})
    left_out = (
        {"max_depth", "grow_policy"}
        if name in ("classic", "adaboost") and "max_leaves" in found
        else set()
    )
    left_out |= (
        {"subsample"}
        if found.get("sampling", recipe.get("sampling")) != recipe.get("sampling")
        else set()
    )
    limited = (
        name in ("xgboost", "classic", "adaboost")
        and found.get("objective") == "poisson"
    )
    own = {"max_delta_step": 0.7} if limited else {}
    return {one: value for one, value in recipe.items() if one not in left_out} | own


def rates(
    given: float | Sequence[float] | Callable[[int], float],
) -> Callable[[int], float]:
    """The learning rate as a function of the round."""
    if callable(given):
        return lambda index: RATE.check(
            f"learning_rate({index})={given(index)!r}", given(index)
        )
    if isinstance(given, Sequence):
        return lambda index: given[index]
    return lambda _: given


def moved(name: str, value: Any) -> tuple[str, Any]:
    """Rename LightGBM's boosting='goss', which is sampling='goss' here."""
    is_goss = BY_ALIAS.get(name) is BY_NAME["boosting"] and str(value).lower() == "goss"
    return ("sampling", "goss") if is_goss else (name, value)


def names() -> dict[str, str]:
    """Our name of a parameter by every name it has, the peers' too."""
    return {name: row.name for name, row in BY_ALIAS.items()}


def given_names(given: Mapping[str, Any]) -> set[str]:
    """Our names of the parameters that a mapping sets."""
    return {BY_ALIAS[name].name for name in given if name in BY_ALIAS}


def called(name: str, given: Mapping[str, Any]) -> str:
    """A parameter as the user gave it: "max_ctr_complexity=3 (max_combination)"."""
    for theirs, value in given.items():
        if BY_ALIAS.get(theirs) is BY_NAME[name]:
            return f"{theirs}={value!r}" + ("" if theirs == name else f" ({name})")
    return name


def by_hand(resolved: Mapping[str, Any]) -> set[str]:
    """Names of the parameters whose values come neither from the defaults nor from the
    recipe.
    """
    usual = defaults() | RECIPES.get(resolved["recipe"], {})
    return {name for name, value in usual.items() if resolved[name] != value}
