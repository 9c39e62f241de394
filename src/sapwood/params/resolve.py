"""What a user gave, checked and completed by the table of parameters.

In: a mapping in our names, or in those of XGBoost, LightGBM and CatBoost. Out: every parameter under our name, checked.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sapwood.errors import ParameterError
from sapwood.params import peers
from sapwood.params.aliases import OBJECTIVES
from sapwood.params.recipes import RECIPES
from sapwood.params.table import ADDED_LATER, BY_ALIAS, BY_NAME, TABLE, Parameter
from sapwood.params.types import RATE, is_integer

Found = dict[str, tuple[str, Any]]  # by our name: how it was given, in words, and its checked value


def defaults() -> dict[str, Any]:
    """The default of every parameter, in the order of the table."""
    return {row.name: row.default for row in TABLE}


def resolve(given: Mapping[str, Any], *, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Check a mapping of parameters and complete it.

    given: mapping of str to object; parameters in our names or a peer's. Not changed.
    fields: mapping of str to str, optional; names of objectives' own parameters, and ours for them; their values are
      passed on unchecked.
    Returns dict: every parameter of the table in our names and plain Python types, then the fields that were given.
    Raises ParameterError: For a name that is unknown, ambiguous or given twice, and for a value of the wrong type or
      range.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(f"params is a {type(given).__name__}; give a dict of names and values.")
    fields = {} if fields is None else fields
    given = _alpha(_one_seed(_second_order(_custom_metric(given))))
    found: Found = {}
    own: dict[str, Any] = {}
    for name, value in _split_objective(given, fields):
        name, value = moved(name, value)
        if name in fields:
            if fields[name] in own:
                raise ParameterError(f"{name}={value!r} gives {fields[name]} a second time; give it once.")
            own[fields[name]] = value
        elif not peers.is_default_here(name, value):
            if name not in BY_ALIAS:
                raise ParameterError(f"unknown parameter {name!r}; {peers.unknown(str(name), [*BY_ALIAS, *fields])}")
            _add(found, BY_ALIAS[name], name, value)
    complete = {row.name: row.type.check(row.name, row.default) for row in TABLE}
    checked = {name: value for name, (_, value) in found.items()}
    complete |= _recipe(checked) | checked
    _check_row_sampling(given, found, complete)
    for name in ("max_bins", "min_samples_bin") if complete["tree_method"] == "exact" else ():
        if name in found and found[name][1] != BY_NAME[name].default:
            raise ParameterError(f"{found[name][0]} is not for tree_method='exact', which has no bins; leave it out.")
        complete[name] = BY_NAME[name].default  # whatever a recipe says
    return complete | own


def _add(found: Found, row: Parameter, name: str, value: Any) -> None:
    """Check a value that was given under some name, and add it to those found so far."""
    ours = row.convert.get(name, lambda same: same)(value)
    text = f"{name}={value!r}" if ours is value else f"{name}={value!r} ({row.name}={ours!r})"
    checked = row.type.check(text, ours)
    before = found[row.name][1] if row.name in found else checked
    if isinstance(checked, dict) and isinstance(before, dict) and not set(checked) & set(before):
        checked = before | checked  # different classes
    elif row.name == "class_weight" and None in (before, checked):
        checked = before if checked is None else checked  # is_unbalance=False beside a weight
    elif before != checked:
        raise ParameterError(f"{found[row.name][0]} and {text} are both {row.name}; give one of them.")
    found[row.name] = text, checked


def _check_row_sampling(given: Mapping[str, Any], found: Found, complete: Mapping[str, Any]) -> None:
    """Raise where parameters of row sampling contradict each other; warn where LightGBM would not sample."""
    subsample = complete["subsample"]
    for name in ("bagging_freq", "subsample_freq"):
        if is_integer(given.get(name)) and given[name] == 0 and subsample < 1:
            raise ParameterError(f"{name}=0 draws no rows, but subsample={subsample:g}; leave one of them out.")
    if str(given.get("bootstrap_type")).lower() == "bernoulli" and "subsample" not in found:
        raise ParameterError(
            "bootstrap_type='Bernoulli' draws a share of the rows; say which: CatBoost's is subsample=0.66."
        )
    if subsample < 1 and "bagging_fraction" in given and "subsample_freq" not in found:
        warnings.warn(
            f"bagging_fraction={subsample:g} draws rows for every round; in LightGBM it draws none without "
            "bagging_freq. Say bagging_freq=1 if that is meant, or leave both out.",
            UserWarning,
            stacklevel=5,
        )


def _custom_metric(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Append CatBoost's custom_metric to eval_metric, whose first metric early stopping uses."""
    too = [name for name in ("custom_metric", "custom_loss") if name in given]
    if not too:
        return given
    row, rest = BY_NAME["eval_metric"], {name: value for name, value in given.items() if name != too[0]}
    name = next((name for name in rest if BY_ALIAS.get(name) is row), row.name)
    first, more = (row.type.check(f"{name}={one!r}", one) for one in (rest.get(name), given[too[0]]))
    first, more = (one if isinstance(one, list) else [one] for one in (first, more))
    return {**rest, name: [*first, *(one for one in more if one not in (None, "none"))]}


def _second_order(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the hessian that CatBoost's NewtonL2 and NewtonCosine use, and that its recipe does not."""
    word = given.get("score_function")
    if not (isinstance(word, str) and word.lower().startswith("newton")):
        return given
    if given.get("hessian") == "none":
        raise ParameterError(
            f"score_function={word!r} uses second derivatives, hessian='none' does not; leave one of them out."
        )
    return {**given, "hessian": "auto"}


def _one_seed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace LightGBM's seeds, one for every kind of draw, by random_state where all of them are equal."""
    ours = BY_NAME["random_state"]
    seeds = {name: value for name, value in given.items() if name in peers.SEEDS and is_integer(value)}
    main = {name: value for name, value in given.items() if BY_ALIAS.get(name) is ours and value is not None}
    if not seeds or any(value != next(iter(seeds.values())) for value in (*seeds.values(), *main.values())):
        return given
    rest = {name: value for name, value in given.items() if name not in seeds}
    return rest if main else {**rest, ours.name: next(iter(seeds.values()))}


def _alpha(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rename alpha where the objective tells its meaning: XGBoost's L1 penalty, or the level of a loss elsewhere."""
    goal = next((value for name, value in given.items() if BY_ALIAS.get(name) is BY_NAME["objective"]), None)
    if "alpha" not in given or not isinstance(goal, str) or "=" in goal:
        return given
    of_xgboost, ours = ":" in goal, OBJECTIVES.get(goal.lower(), goal.lower())
    has_level = ours in ("quantile", "expectile")
    meant = f"{ours}_alpha" if has_level else "reg_alpha"
    if of_xgboost == has_level or ":" in ours or meant in given:
        return given
    return {meant if name == "alpha" else name: value for name, value in given.items()}


def _split_objective(given: Mapping[str, Any], fields: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Split CatBoost's "Quantile:alpha=0.9" into the objective and parameters of its own."""
    objective = BY_NAME["objective"]
    for name, value in given.items():
        if not (isinstance(value, str) and "=" in value and BY_ALIAS.get(name) is objective):
            yield name, value
            continue
        head, _, rest = value.partition(":")
        ours = objective.type.check(f"{name}={value!r}", head)
        yield name, head
        for key, _, text in (part.partition("=") for part in rest.split(";")):
            if f"{key}={text}".lower() in peers.IMPLIED:
                continue
            field = key if key in fields else f"{ours}_{key}"
            if field not in fields:
                own = ", ".join(one for one in fields if one.startswith(f"{ours}_")) or "no field, or is unknown"
                raise ParameterError(f"{name}={value!r} has {key!r}; {ours!r} takes {own}.")
            try:
                levels = [float(one) for one in text.split(",")]
            except ValueError:
                raise ParameterError(f"{name}={value!r} has {text!r} for {field}; give a number.") from None
            yield field, levels if len(levels) > 1 else levels[0]


def _recipe(found: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a recipe sets.

    A classic tree with max_leaves is leafwise and has no limit of depth. A recipe's subsample is for its own sampler.
    """
    name = found.get("recipe")
    recipe = RECIPES.get(name or "", {})
    left_out = {"max_depth", "grow_policy"} if name in ("classic", "adaboost") and "max_leaves" in found else set()
    left_out |= {"subsample"} if found.get("sampling", recipe.get("sampling")) != recipe.get("sampling") else set()
    return {one: value for one, value in recipe.items() if one not in left_out}


def rates(given: float | Sequence[float] | Callable[[int], float]) -> Callable[[int], float]:
    """The learning rate as a function of the round."""
    if callable(given):
        return lambda index: RATE.check(f"learning_rate({index})={given(index)!r}", given(index))
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
    """Names of the parameters whose values come neither from the defaults nor from the recipe."""
    usual = defaults() | RECIPES.get(resolved["recipe"], {})
    return {name for name, value in usual.items() if resolved[name] != value}


def model_params(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a model keeps: those that can change predictions.

    The number of rounds is left out, since 10 + 10 rounds equal 20. So is `eval_metric`, which may be a function;
    `best_round` has its result. Learning rates that change by round are in the trees.
    """
    kept = {name: value for name, value in resolved.items() if name not in BY_NAME or BY_NAME[name].model}
    for name in ADDED_LATER:
        if kept[name] == BY_NAME[name].default:
            del kept[name]
    if not isinstance(kept.get("learning_rate"), float):
        kept["learning_rate"] = "scheduled"
    return kept
