"""Nothing is ignored in silence: every argument changes a result, is refused, or is on
the list of those that may not.

`pytest -s tests/system/test_arguments.py` prints the table of arguments.
"""

import contextlib
import dataclasses
import inspect
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import calls_of_metrics  # it enters its calls, and those of models
import sapwood as sw
from arguments import BY_NAME, FIELDS, GROUP, OWN, PLAIN, TABLES, TARGETS, Context
from calls import CALLS, OCCUPIED, Given
from sapwood.model import Booster
from sapwood.params import TABLE

pytestmark = pytest.mark.filterwarnings("ignore")
USED = "used"
REFUSED = "refused"
IGNORED = "ignored"


# What a call gives


def seen(value: Any) -> Any:
    """A value as one that can be compared: arrays by their bytes, models by what they
    learned.
    """
    if isinstance(value, Booster):
        trees = [
            getattr(value.trees, name).tobytes()
            for name in ("column", "threshold", "value", "gain")
        ]
        return (
            trees,
            value.base.tobytes(),
            value.link,
            value.best_round,
            repr(dict(value.history)),
            value.to_text(),
        )
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return [seen(one) for one in value.tolist()]
        return value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, sw.Dataset):
        return (
            value.fingerprint(),
            value.device.name,
            value.named,
            value.memory_limit,
            value.kept is None,
        )
    if isinstance(value, Mapping):
        return {str(name): seen(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [seen(one) for one in value]
    if isinstance(value, Iterator):
        return [seen(one) for one in value]
    if hasattr(value, "figure") and hasattr(value, "get_title"):
        return drawn(value)
    if hasattr(value, "to_csv"):
        return value.to_csv()
    if dataclasses.is_dataclass(value) or hasattr(value, "get_params"):
        return type(value).__name__, seen(
            {name: one for name, one in vars(value).items() if name != "at"}
        )
    if value is None or isinstance(value, str | bytes | int | float | bool):
        return value
    return re.sub(r" at 0x\w+", "", repr(value))


def drawn(ax: Any) -> bytes:
    """The pixels of a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return bytes(canvas.buffer_rgba())


def files(folder: Path) -> dict[str, Any]:
    """What a call has written."""
    return {
        str(path.relative_to(folder)): len(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def outcome(function: Any, given: Given, folder: Path) -> Any:
    """What a call returns, prints and writes; `REFUSED` where it raises an error of
    ours, or Python's own.
    """
    folder.mkdir(parents=True)
    for name in OCCUPIED:
        (folder / name).write_text("a file of a user")
    text = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(text):
            found = seen(function(**given))
        return found, text.getvalue(), files(folder)
    except (ValueError, TypeError, OSError) as error:
        return REFUSED, f"{type(error).__name__}: {error}"
    finally:
        os.chdir(before)


def verdict(base: Any, other: Any) -> str:
    if other[0] is REFUSED:
        return REFUSED
    return IGNORED if other == base else USED


# The walk over signatures

# public names of interfaces to clusters, and of the automatic fit, which are documented
# as internal
INTERNAL = {
    "Dataset.dealt",
    "Dataset.of_all_holders",
    "Dataset.of_this_holder",
    "take_codes",
    "with_columns",
}
THREADS = "threads change no result; a number that is none is refused"
# what may change nothing, and where that is documented
HARMLESS: dict[tuple[str, str], str] = {
    (
        "callback.early_stopping",
        "first_metric_only",
    ): "one metric is watched in any case (its docstring)",
    ("callback.early_stopping", "verbose"): "nothing is printed (its docstring)",
    (
        "Estimator.fit",
        "group",
    ): "groups are for sampling_unit, held-out rows and rankings (its docstring)",
    (
        "PeerNames.get_feature_importance",
        "data",
    ): "all kinds but ShapValues look at the trees alone (its docstring)",
}


def name_of(function: Any) -> str:
    """How a function is called here."""
    module = function.__module__
    room = (
        "plot."
        if module.startswith("sapwood.plot")
        else "callback."
        if module.endswith("round.callback")
        else ""
    )
    return room + function.__qualname__


def walked() -> dict[str, list[str]]:
    """Every public function, constructor and method, and the names of its arguments."""
    found: dict[str, list[str]] = {}

    def add(name: str, function: Any, skip: int = 0) -> None:
        if name not in INTERNAL:
            given = list(inspect.signature(function).parameters.values())[skip:]
            kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
            # of holders
            found[name] = [
                one.name
                for one in given
                if one.kind not in kinds and one.name != "reduce"
            ]

    for name, function in calls_of_metrics.metrics().items():
        add(f"metric.{name}", function)
    for public in sw.__all__:
        value = getattr(sw, public)
        if isinstance(value, ModuleType):
            for function in (
                vars(value).values() if value in (sw.plot, sw.callback) else ()
            ):
                if inspect.isfunction(function) and function.__name__ in value.__all__:
                    add(name_of(function), function)
        elif inspect.isclass(value):
            # parameters of estimators are walked below
            if not public.startswith("Sapwood") and value is not Booster:
                add(public, value)
            for name in dir(value):
                method = inspect.getattr_static(value, name)
                method = getattr(method, "fn", method)  # scikit-learn's available_if
                bound = getattr(method, "__func__", method)
                if (
                    not name.startswith("_")
                    and inspect.isfunction(bound)
                    and bound.__module__.startswith("sapwood")
                ):
                    add(name_of(bound), bound, skip=1)
        elif callable(value):
            add(name_of(value), value)
    return found


RESULTS: dict[tuple[str, str], set[str]] = {}


def note(name: str, argument: str, found: str) -> None:
    RESULTS.setdefault((name, argument), set()).add(found)


def test_every_argument_has_a_changed_value() -> None:
    """A new argument needs an entry in `calls.py` or `calls_of_models.py`: say what it
    does.
    """
    arguments = {
        (name, argument) for name, given in walked().items() for argument in given
    }
    entered = {
        (name, argument) for name, one in CALLS.items() for argument in one.changed
    }
    assert arguments <= entered, (
        f"new arguments: say what they do: {sorted(arguments - entered)}"
    )
    assert walked().keys() == CALLS.keys()
    assert HARMLESS.keys() <= arguments


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_is_used_or_refused(name: str, tmp_path: Path) -> None:
    one = CALLS[name]
    count = 0

    def ask(given: Given) -> Any:
        nonlocal count
        count += 1
        return outcome(one.function, given, tmp_path / str(count))

    assert ask(one.base())[0] is not REFUSED, ask(one.base())
    for argument, contexts in one.changed.items():
        for context, values in contexts:
            before = ask({**one.base(), **context})
            for value in values:
                found = verdict(before, ask({**one.base(), **context, argument: value}))
                note(name, argument, found)
                assert found != IGNORED or (name, argument) in HARMLESS, (
                    f"{argument}={value!r} changes nothing"
                )
        if (name, argument) in HARMLESS:
            assert IGNORED in RESULTS[name, argument], (
                f"{argument} is no longer harmless"
            )


# Parameters of a training

ANYWHERE = {  # parameters that change no result, wherever they are given
    "n_jobs": THREADS,
    "checkpoint": "the file follows the training, whose bytes it does not change (its doc)",
}
ALONE = {  # what changes nothing where a training has nothing that it is about
    "boosting": "'dart' drops none of four rounds with this seed",
    "multi_strategy": "for rows of several scores",
    "tree_method": "the same model where every value has its own bin",
    "min_samples_bin": "small data gets at least 128 bins",
    "categorical_features": "there is no column that might be one",
    "date_features": "there is no column of dates",
    "text_features": "there is no column of text",
    "embedding_features": "there is no column of lists",
    "zero_as_missing": "there are no zeros",
    "pruning": "min_split_gain is 0",
    "hessian": "second derivatives of squared error are 1",
    "leaf_estimation": "the mean negative gradient is the Newton step of squared error",
    "leaf_iterations": "'auto' is 1 for squared error",
    "sampling": "'none' takes all rows, as subsample=1 does",
    "monotone_method": "there are no monotone_constraints",
    "category_encoding": "there is no categorical column",
    "max_cat_to_onehot": "there is no categorical column",
    "max_cat_threshold": "there is no categorical column",
    "cat_smooth": "there is no categorical column",
    "cat_l2": "there is no categorical column",
    "min_data_per_group": "there is no categorical column",
    "precision": "roundings that decide no split",
    "early_stopping_rounds": "None is the default",
    "eval_metric": "for validation rows, of which there are none",
    "random_state": "nothing is drawn",
}


def train(context: Context, params: Mapping[str, Any]) -> Any:
    """A training of few rounds, and its predictions."""
    table = TABLES[context.table]
    y = TARGETS[context.y]
    group = GROUP if context.grouped else None
    data = sw.Dataset(table, y, group=group)
    valid = None
    if context.watched:
        valid = sw.Dataset(
            table[:40],
            y[:40],
            group=None if group is None else group[:40],
            reference=data,
        )
    given = {
        "n_estimators": 4,
        "min_child_weight": 0,
        "n_jobs": 1,
        **context.params,
        **params,
    }
    model = sw.train(given, data, valid=valid)
    return model, model.predict(table, raw=True)


def test_every_parameter_has_a_changed_value() -> None:
    assert BY_NAME.keys() == {row.name for row in TABLE}, (
        "a new parameter: say what it does"
    )
    assert ALONE.keys() | ANYWHERE.keys() <= BY_NAME.keys()


@pytest.mark.parametrize("name", BY_NAME)
def test_every_parameter_of_train_is_used_or_refused(name: str, tmp_path: Path) -> None:
    count = 0

    def ask(context: Context, params: Mapping[str, Any]) -> Any:
        nonlocal count
        count += 1
        return outcome(
            train, {"context": context, "params": params}, tmp_path / str(count)
        )

    plain = ask(PLAIN, {})
    for context, values in BY_NAME[name]:
        before = ask(context, {})
        assert before[0] is not REFUSED, before
        for value in values:
            found = verdict(before, ask(context, {name: value}))
            note("train, params", name, found)
            assert found != IGNORED or name in ANYWHERE, (
                f"{name}={value!r} changes nothing"
            )
            alone = verdict(plain, ask(PLAIN, {name: value}))
            note("train, params alone", name, alone)
            assert alone != IGNORED or name in {**ANYWHERE, **ALONE}, (
                f"{name}={value!r} alone changes nothing"
            )


# Parameters of estimators

KINDS = (
    "SapwoodRegressor",
    "SapwoodClassifier",
    "SapwoodRanker",
    "SapwoodSurvival",
    "SapwoodDistribution",
)
BASE: dict[str, dict[str, Any]] = {
    "SapwoodSurvival": {
        "max_leaves": 8,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "reg_lambda": 1.0,
        "min_samples_leaf": 2,
        "multi_strategy": "one_tree_per_output",
        "model": "cox",
    },
    "SapwoodDistribution": {"dist": "normal", "n_folds": 0},
}
OF_KIND: dict[tuple[str, str], str] = {
    ("SapwoodClassifier", "monotone_method"): "there are no monotone_constraints",
    ("SapwoodRanker", "monotone_method"): "there are no monotone_constraints",
    ("SapwoodRanker", "multi_strategy"): "a ranking has one score a row",
    ("SapwoodSurvival", "multi_strategy"): "'cox' has one score a row",
    ("SapwoodSurvival", "leaf_iterations"): "'auto' is 1 for this loss",
    ("SapwoodDistribution", "leaf_iterations"): "'auto' is 1 for this loss",
    (
        "SapwoodDistribution",
        "early_stopping_rounds",
    ): "n_folds=0 trains without early stopping",
}


def target_of(kind: str, context: Context, params: Mapping[str, Any]) -> Any:
    """Labels that suit an estimator, in a context that was made for another."""
    y = TARGETS[context.y]
    first = y if y.ndim == 1 else y[:, 0]
    if kind == "SapwoodSurvival":
        return np.exp(np.clip(first, -3, 3)), np.arange(len(first)) % 3 > 0
    if kind == "SapwoodDistribution":
        return first
    if kind == "SapwoodRanker":
        return np.digitize(first, np.quantile(first, [0.3, 0.6]))
    if kind == "SapwoodClassifier" and context.y not in ("binary", "odd"):
        middle = np.median(first)
        return (
            TARGETS["three"]
            if context.y in ("three", "two")
            else (first > middle + 0.1).astype(int)
        )
    return y


def fit(kind: str, context: Context, params: Mapping[str, Any]) -> Any:
    """An estimator that is fitted in a context, and what it predicts."""
    table = TABLES[context.table]
    y = target_of(kind, context, params)
    given = {
        "n_estimators": 4,
        "n_jobs": 1,
        **BASE.get(kind, {}),
        **context.params,
        **params,
    }
    if kind in BASE and "objective" not in params:
        given.pop("objective", None)
    more: dict[str, Any] = {}
    if context.grouped or kind == "SapwoodRanker":
        more["group"] = np.arange(len(table)) // 10
    if context.watched:
        more["eval_set"] = [(table[:40], y[:40])]
    if context.watched and kind == "SapwoodRanker":
        more["eval_group"] = [GROUP[:40]]
    estimator = getattr(sw, kind)(**given).fit(table, y, **more)
    calibration = getattr(estimator, "calibration_", None)
    return (
        estimator.booster_,
        estimator.predict(table),
        estimator.feature_importances_,
        calibration,
    )


@cache
def contexts_of(kind: str, name: str) -> list[tuple[Context, list[Any]]]:
    return OWN.get(kind, {}).get(name) or BY_NAME.get(name) or FIELDS[name]


def test_every_parameter_of_an_estimator_has_a_changed_value() -> None:
    for kind in KINDS:
        named = {*BY_NAME, *FIELDS, *OWN.get(kind, {})}
        assert getattr(sw, kind)._table.keys() <= named, (
            "a new parameter: say what it does"
        )


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in KINDS for name in getattr(sw, kind)._table],
)
def test_every_parameter_of_an_estimator_is_used_or_refused(
    kind: str, name: str, tmp_path: Path
) -> None:
    count = 0

    def ask(context: Context, params: Mapping[str, Any]) -> Any:
        nonlocal count
        count += 1
        return outcome(
            fit,
            {"kind": kind, "context": context, "params": params},
            tmp_path / str(count),
        )

    for context, values in contexts_of(kind, name):
        before = ask(context, {})
        if before[0] is REFUSED:  # it was made for another estimator
            context = PLAIN
            before = ask(context, {})
        for value in values:
            found = verdict(before, ask(context, {name: value}))
            note(kind, name, found)
            harmless = name in ANYWHERE or (kind, name) in OF_KIND
            assert found != IGNORED or harmless, (
                f"{kind}({name}={value!r}) changes nothing"
            )


def test_the_table_of_arguments() -> None:
    """Print what the tests before this one have found; nothing where they ran in other
    processes.
    """
    sums: dict[str, int] = {}
    for (name, argument), found in sorted(RESULTS.items()):
        reason = (
            HARMLESS.get((name, argument))
            or OF_KIND.get((name, argument))
            or ANYWHERE.get(argument, "")
        )
        reason = reason or (ALONE.get(argument, "") if name.endswith("alone") else "")
        words = ", ".join(sorted(found)) + (
            f" ({reason})" if IGNORED in found and reason else ""
        )
        kind = (
            "harmless in some call"
            if IGNORED in found
            else "used"
            if USED in found
            else "refused"
        )
        sums[kind] = sums.get(kind, 0) + 1
        print(f"{name:45} {argument:30} {words}")
    print(json.dumps(sums))
    assert all(argument for _, argument in RESULTS)
