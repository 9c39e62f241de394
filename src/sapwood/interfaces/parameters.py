"""Parameters of an estimator: ours as attributes, and a peer's names for them.

In: what a user gives to the constructor, to `set_params` or to `fit`. Out: parameters
under our names.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sapwood import objective
from sapwood.device import host
from sapwood.errors import ParameterError
from sapwood.params import (
    MANY_EVENTS,
    TABLE,
    ByEvents,
    Parameter,
    allows_none,
    names,
    peers,
    renamed,
)
from sapwood.params.table import BY_NAME
from sapwood.params.types import Number

OBJECTIVES = host.objectives()
# Parameters that fit takes too, for this fit alone, as the peers' do.
OF_FIT = (
    "categorical_features",
    "eval_metric",
    "early_stopping_rounds",
    "verbose",
    "eval_at",
)

# Parameters that say what is learned of numbers or classes, and how it is measured:
# estimators of other targets do.
TARGET_PARAMETERS = {
    "objective",
    "recipe",
    "class_weight",
    "subsample_by_class",
    "quality",
    "time_limit",
    "quantiles",
    "conformal",
    "validation_fraction",
    "prune_by_validation",
    "eval_metric",
    "eval_at",
    "start",
}


def _fields() -> Iterator[Parameter]:
    """The objectives' own parameters, as entries like those of the table."""
    for name, about in OBJECTIVES.items():
        for field, (low, high, is_open, default, aliases) in about["fields"].items():
            words = ("above", "below") if is_open else ("at least", "at most")
            limits = f"{words[0]} {low:g}" + (
                f" and {words[1]} {high:g}" if high < 1e300 else ""
            )
            several = (
                " Several in a list: a prediction for each."
                if field in objective.LEVELS
                else ""
            )
            doc = f"Parameter of objective={name!r}, {limits}; None is {default:g}.{several}"
            kind = Number(low, high, low_open=is_open, high_open=is_open)
            yield Parameter(
                field, kind, None, doc, tuple(filter(None, aliases.split(",")))
            )


def _of_estimator(row: Parameter) -> Parameter:
    """A row of the table with the default that an estimator has."""
    return (
        row
        if row.estimator_default is ...
        else replace(row, default=row.estimator_default)
    )


# parameters of objectives; None is the objective's default
FIELDS = {row.name for row in _fields()}
PARAMETERS = {p.name: _of_estimator(p) for p in (*TABLE, *_fields()) if p.estimator}


OF_NUMBERS_AND_CLASSES = {
    name: row for name, row in PARAMETERS.items() if not row.ranking
}
# which the classifier alone takes; fit compares it with the classes of y
N_CLASSES = "n_classes"
OF_CLASSES = OF_NUMBERS_AND_CLASSES | {
    N_CLASSES: replace(
        BY_NAME[N_CLASSES],
        doc="Number of classes that y must have; fit raises where it has another. None is any number.",
    )
}

# Parameters for which None says something. That of a depth is: the one that suits the
# policy.
SPOKEN_NONE = (
    {name for name, row in PARAMETERS.items() if allows_none(row)}
    - FIELDS
    - {"max_depth"}
)


def ours(
    estimator: type,
    table: Mapping[str, Parameter],
    given: Mapping[str, Any],
    before: Mapping[str, Any],
) -> dict[str, Any]:
    """Parameters under our names; one error names all that are unknown.

    ``table``: the parameters of the estimator. ``before``: those that are set: `alpha`
    is understood beside the objective among them.
    """
    # its own
    alone = {
        name: value
        for name, value in given.items()
        if name in table and name not in PARAMETERS
    }
    return alone | _renamed(
        estimator,
        table,
        {name: given[name] for name in given if name not in alone},
        before,
    )


def _renamed(
    estimator: type,
    table: Mapping[str, Parameter],
    given: Mapping[str, Any],
    before: Mapping[str, Any],
) -> dict[str, Any]:
    """Parameters that the table of `sapwood.params` has, under our names."""
    goal = before.get("objective")
    alone = "alpha" in given and not any(
        names().get(name) == "objective" for name in given
    )
    asked = {"objective": goal, **given} if alone and goal is not None else given
    try:
        found = renamed(asked, objective.field_aliases())
    except ParameterError as cause:
        text = str(cause).replace(
            "help(sapwood.SapwoodRegressor)", f"help(sapwood.{estimator.__name__})"
        )
        lines = [line.removeprefix("unknown parameter ") for line in text.split("\n")]
        named = f"{estimator.__name__} has no parameter "
        lines = [named + one if one[:1] == "'" else one for one in lines]
        raise ParameterError(*lines) from None
    if alone and "objective" not in given:
        found.pop("objective", None)
    own = set(given)
    kept = {
        name: value
        for name, value in found.items()
        if value is not None or name in SPOKEN_NONE or name in own
    }
    if kept.get(N_CLASSES, 0) is None and N_CLASSES not in table:  # XGBoost's "not set"
        del kept[N_CLASSES]
    if foreign := [name for name in kept if name not in table]:
        usual = "it is for numbers and classes"
        if foreign[0] == N_CLASSES:
            usual = "it is for SapwoodClassifier"
        elif PARAMETERS[foreign[0]].ranking:
            usual = "it is for SapwoodRanker"
        why = getattr(estimator, "_instead", {}).get(foreign[0], usual)
        raise ParameterError(
            f"{estimator.__name__} has no parameter {foreign[0]!r}; {why}."
        )
    return kept


def rows_with(
    own: Iterable[Parameter], task: str, without: Collection[str]
) -> dict[str, Parameter]:
    """The parameters of the estimator of a task: its own first, then the table's, with
    the defaults of the task.
    """
    return {row.name: row for row in own} | {
        name: _of_task(row, getattr(row, task))
        for name, row in PARAMETERS.items()
        if not (row.ranking or name in without or name in FIELDS)
    }


def _of_task(row: Parameter, default: Any) -> Parameter:
    """A row with the default of a task; one that depends on the number of events is
    'auto', and the doc says what.
    """
    if not isinstance(default, ByEvents):
        return row if default is ... else replace(row, default=default)
    rule = f"'auto' is {default.few:g}, and {default.many:g} from {MANY_EVENTS:,} events on."
    return replace(
        row,
        default="auto",
        doc=f"{row.doc.split(';')[0].split('. ')[0].rstrip('.')}. {rule}",
    )


def given(
    table: Mapping[str, Parameter], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters that the user has set, of an estimator's attributes; a recipe or
    an automatic fit sets others.

    None means not set where it is no value of its own. Where all parameters are set,
    they come from `get_params`: the defaults among them were not set by hand.
    """
    own = {name: value for name, value in attributes.items() if name in table}
    if len(own) == len(table):
        own = {
            name: value
            for name, value in own.items()
            if not is_default(table[name], value)
        }
    own = {
        name: value
        for name, value in own.items()
        if value is not None or name in SPOKEN_NONE
    }
    if own.get("max_leaves", 0) is None and "max_depth" not in own:
        del own["max_leaves"]  # the peers' "not set"; 0 is no limit, whatever the depth
    return own


def is_default(row: Parameter, value: Any) -> bool:
    """Whether a parameter has its default; arrays and the like are no default."""
    default = row.default
    return value is default or (type(value) is type(default) and bool(value == default))


def of_fit(fit: Any, more: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The parameters among further arguments of `fit`, under our names; any other
    argument raises.
    """
    allowed = {
        name
        for name in more
        if names().get(name) in OF_FIT or name in ("use_best_model", "plot", "silent")
    }
    allowed |= {name for name in ("logging_level", "plot_file") if name in more}
    peers.refuse_arguments(
        fit, [name for name in more if name not in allowed], names(), place
    )
    return {name: more[name] for name in allowed}
