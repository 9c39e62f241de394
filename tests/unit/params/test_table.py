"""The table of parameters: defaults, aliases, and errors that say what to do."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sapwood.errors import ParameterError, SapwoodError, suggest
from sapwood.params import TABLE, defaults, given_names, model_params, peers, resolve


def refuse(given: Any) -> str:
    """The message of the error that the parameters must raise."""
    with pytest.raises(ParameterError) as caught:
        resolve(given)
    return str(caught.value)


def test_nothing_given_is_every_default() -> None:
    assert resolve({}) == {**defaults(), "random_state": 0}
    assert list(resolve({})) == [row.name for row in TABLE]


def test_every_name_and_alias_belongs_to_one_row() -> None:
    names = [name for row in TABLE for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert all(set(row.convert) <= {row.name, *row.aliases} for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_row_is_documented_and_takes_its_default(row: Any) -> None:
    assert row.doc.endswith(".") and str(row.type)
    assert resolve({row.name: row.default})[row.name] == resolve({})[row.name]


def test_what_was_resolved_resolves_to_itself() -> None:
    given = {
        "depth": 4,
        "eta": 0.5,
        "objective": "Logloss",
        "border_count": 31,
        "seed": 3,
        "metric": ["auc", "error"],
    }
    assert resolve(resolve(given)) == resolve(given)


def test_the_given_mapping_is_not_changed() -> None:
    metrics = ["rmse"]
    given = {"eta": 0.3, "num_leaves": -1, "eval_metric": metrics}
    resolve(given)["eval_metric"].append("mae")
    assert given == {"eta": 0.3, "num_leaves": -1, "eval_metric": ["rmse"]}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"num_boost_round": 7}, "n_estimators", 7),
        ({"iterations": 7}, "n_estimators", 7),
        ({"eta": 0.3}, "learning_rate", 0.3),
        ({"num_leaves": 63}, "max_leaves", 63),
        ({"max_leaves": 0}, "max_leaves", None),
        ({"depth": 6}, "max_depth", 6),
        ({"depth": 0}, "max_depth", None),
        ({"max_depth": -1}, "max_depth", None),
        ({"max_depth": np.int32(-1)}, "max_depth", None),
        ({"max_bin": 256}, "max_bins", 256),
        ({"border_count": 254}, "max_bins", 255),
        ({"border_count": np.int64(254)}, "max_bins", 255),
        ({"lambda": 2}, "reg_lambda", 2.0),
        ({"lambda_l1": 2}, "reg_alpha", 2.0),
        ({"l2_leaf_reg": 3.0}, "reg_lambda", 3.0),
        ({"gamma": 1}, "min_split_gain", 0.5),
        ({"min_gain_to_split": 3.0}, "min_split_gain", 1.5),
        ({"booster": "dart"}, "boosting", "dart"),
        ({"boosting_type": "rf"}, "boosting", "forest"),
        ({"boosting": "gbdt"}, "boosting", "plain"),
        ({"num_parallel_tree": 4}, "n_parallel_trees", 4),
        ({"drop_rate": 0.2}, "rate_drop", 0.2),
        ({"max_drop": 0}, "max_drop", None),
        ({"max_drop": -1}, "max_drop", None),
        ({"one_drop": 1}, "one_drop", True),
        ({"uniform_drop": False}, "sample_type", "weighted"),
        ({"xgboost_dart_mode": True}, "normalize_type", "tree"),
        ({"xgboost_dart_mode": 0}, "normalize_type", "paper"),
        ({"min_data_in_leaf": 20}, "min_samples_leaf", 20),
        ({"min_child_samples": 0}, "min_samples_leaf", 1),
        ({"min_sum_hessian_in_leaf": 1e-3}, "min_child_weight", 1e-3),
        ({"bagging_fraction": 0.5, "bagging_freq": 1}, "subsample", 0.5),
        ({"feature_fraction": 0.5}, "colsample_bytree", 0.5),
        ({"feature_fraction_bynode": 0.5}, "colsample_bynode", 0.5),
        ({"rsm": 0.5}, "colsample_bylevel", 0.5),
        ({"od_wait": 20}, "early_stopping_rounds", 20),
        ({"early_stopping_round": 0}, "early_stopping_rounds", None),
        ({"nthread": 0}, "n_jobs", None),
        ({"thread_count": -1}, "n_jobs", -1),
        ({"random_seed": 5}, "random_state", 5),
        ({"num_class": 3}, "n_classes", 3),
        ({"task_type": "CPU"}, "device", "cpu"),
        ({"verbose": -1}, "verbose", 0),
        ({"verbosity": -1}, "verbose", 0),
        ({"verbosity": 1}, "verbose", 0),
        ({"verbosity": 2}, "verbose", 1),
        ({"grow_policy": "lossguide"}, "grow_policy", "leafwise"),
        ({"grow_policy": "Depthwise"}, "grow_policy", "depthwise"),
        ({"grow_policy": "SymmetricTree"}, "grow_policy", "symmetric"),
        ({"objective": "binary:logistic"}, "objective", "logistic"),
        ({"objective": "binary"}, "objective", "logistic"),
        ({"loss_function": "Logloss"}, "objective", "logistic"),
        ({"objective": "reg:squarederror"}, "objective", "squared_error"),
        ({"objective": "regression"}, "objective", "squared_error"),
        ({"loss_function": "RMSE"}, "objective", "squared_error"),
        ({"objective": "multi:softprob"}, "objective", "softmax"),
        ({"objective": "multiclass"}, "objective", "softmax"),
        ({"loss_function": "MultiClass"}, "objective", "softmax"),
    ],
)
def test_the_peers_names_and_values(
    given: dict[str, Any], name: str, value: Any
) -> None:
    got = resolve(given)[name]
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_bins": 1}, "max_bins=1 is too small; choose 2..65535."),
        ({"max_bins": 65536}, "max_bins=65536 is too large; choose 2..65535."),
        ({"max_bins": 2.0}, "max_bins=2.0 is not an integer; choose 2..65535."),
        ({"max_bins": True}, "max_bins=True is not an integer; choose 2..65535."),
        (
            {"border_count": 65535},
            "border_count=65535 (max_bins=65536) is too large; choose 2..65535.",
        ),
        ({"n_estimators": 0}, "n_estimators=0 is too small; choose 1 or more."),
        (
            {"max_leaves": 1},
            "max_leaves=1 is too small; choose 2 or more, 'auto' or None; 0 and -1 are None too.",
        ),
        (
            {"max_depth": -2},
            "max_depth=-2 is too small; choose 1 or more, 'auto' or None; 0 and -1 are None too.",
        ),
        (
            {"max_depth": "deep"},
            "max_depth='deep' is not an integer; choose 1 or more, 'auto' or None; 0 and -1 are None too.",
        ),
        (
            {"learning_rate": 0},
            "learning_rate=0 is too small; choose a number above 0.",
        ),
        (
            {"learning_rate": "0.1"},
            "learning_rate='0.1' is not a finite number; choose a number above 0.",
        ),
        (
            {"learning_rate": np.nan},
            "learning_rate=nan is not a finite number; choose a number above 0.",
        ),
        (
            {"reg_lambda": np.inf},
            "reg_lambda=inf is not a finite number; choose a number of at least 0.",
        ),
        (
            {"reg_lambda": True},
            "reg_lambda=True is not a finite number; choose a number of at least 0.",
        ),
        (
            {"subsample": 1.5},
            "subsample=1.5 is too large; choose a number above 0 and at most 1.",
        ),
        (
            {"validation_fraction": 1.0},
            "validation_fraction=1.0 is too large; choose a number above 0 and below 1.",
        ),
        ({"precision": "wid"}, "precision='wid' is unknown; did you mean 'wide'?"),
        (
            {"precision": 14},
            "precision=14 is not a string; choose one of auto, narrow, wide.",
        ),
        (
            {"random_state": -1},
            "random_state=-1 is too small; choose 0..9223372036854775807.",
        ),
        (
            {"n_jobs": 0},
            "n_jobs=0 is not a number of threads; choose 1 or more, or None for every CPU.",
        ),
        (
            {"n_jobs": 1.5},
            "n_jobs=1.5 is not a number of threads; choose 1 or more, or None for every CPU.",
        ),
        ({"verbose": -2}, "verbose=-2 is too small; choose 0 or more."),
        ({"device": "abacus"}, "device='abacus' is unknown; choose 'cpu' or 'cuda'."),
        ({"max_dept": 3}, "unknown parameter 'max_dept'; did you mean 'max_depth'"),
        (
            {"eta": 0.1, "learning_rate": 0.2},
            "eta=0.1 and learning_rate=0.2 are both learning_rate; give one of them.",
        ),
        (
            {"alpha": 1},
            "unknown parameter 'alpha'; it is ambiguous, the L1 penalty in XGBoost and the level",
        ),
        (
            {"base_score": 0.5},
            "base_score=0.5 is not available; use start, which is a raw score",
        ),
        (
            {"max_features": 0.5},
            "max_features=0.5 is not available; sample a fraction of the columns with colsa",
        ),
        ({"objective": 3}, "objective=3 is not an objective; give a name"),
        ({"objective": object()}, "objective=<object object at"),
        (
            {"start": "mean"},
            "start='mean' is not a raw score; choose 'auto', a number up to 1e+150 in size, or one such",
        ),
        ({"start": [0, np.nan]}, "start=[0, nan] is not a raw score; choose"),
        ({"start": -1.1e150}, "start=-1.1e+150 is not a raw score; choose"),
        ({"start": True}, "start=True is not a raw score; choose"),
        ({"start": np.eye(2)}, "start=array("),
        (
            {"learning_rate": [0.1, 0]},
            "learning_rate=[0.1, 0], in which 0 is too small; choose a number above 0.",
        ),
        ({"eval_metric": 3}, "eval_metric=3 is not a metric; choose"),
        ([("eta", 1)], "params is a list; give a dict of names and values."),
    ],
)
def test_errors_say_what_was_given_and_what_is_allowed(
    given: Any, message: str
) -> None:
    assert refuse(given).startswith(message)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"start": 2}, "start", 2.0),
        ({"start": np.array(0.5)}, "start", 0.5),
        ({"start": np.array([1, 2])}, "start", [1.0, 2.0]),
        ({"start": (-1e150, Fraction(1, 2))}, "start", [-1e150, 0.5]),
        ({"learning_rate": np.array(0.5)}, "learning_rate", 0.5),
        ({"learning_rate": np.array([0.5, 1.0])}, "learning_rate", [0.5, 1.0]),
    ],
)
def test_one_number_or_several(given: dict[str, Any], name: str, value: Any) -> None:
    assert resolve(given)[name] == value and type(resolve(given)[name]) is type(value)


def test_what_others_have_is_no_parameter_here() -> None:
    names = {name for row in TABLE for name in (row.name, *row.aliases)}
    assert not names & peers.ABSENT.keys()
    assert all(
        hint.endswith(".") and values == values.lower()
        for values, hint in peers.ABSENT.values()
    )
    assert all(hint.endswith(".") for hint in peers.ARGUMENTS.values())


def test_a_name_like_no_other_says_where_all_are() -> None:
    assert refuse({"zzzz": 1}).endswith(
        "help(sapwood.SapwoodRegressor) lists all parameters."
    )


def test_the_same_value_under_two_names_is_no_conflict() -> None:
    assert resolve({"max_bins": 255, "border_count": 254})["max_bins"] == 255


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_any_real_number_is_a_float(number: Any) -> None:
    assert (
        resolve({"eta": number})["learning_rate"] == 0.5
        and type(resolve({"eta": number})["learning_rate"]) is float
    )


@pytest.mark.parametrize("number", [np.uint8(9), np.int64(9)])
def test_any_whole_number_is_an_int(number: Any) -> None:
    assert type(resolve({"max_leaves": number})["max_leaves"]) is int


def test_a_generator_gives_a_seed_once() -> None:
    assert resolve({"random_state": np.random.default_rng(1)}) == resolve(
        {"random_state": np.random.default_rng(1)}
    )
    rng = np.random.RandomState(1)
    first = resolve({"seed": rng})["random_state"]
    second = resolve({"seed": rng})["random_state"]
    assert type(first) is int and first != second


def test_fields_of_objectives_pass() -> None:
    fields = {
        "tweedie_power": "tweedie_power",
        "tweedie_variance_power": "tweedie_power",
    }
    assert resolve({"tweedie_power": 1.5}, fields=fields)["tweedie_power"] == 1.5
    assert (
        resolve({"tweedie_variance_power": 1.5}, fields=fields)["tweedie_power"] == 1.5
    )
    with pytest.raises(ParameterError, match="gives tweedie_power a second time"):
        resolve({"tweedie_power": 1.5, "tweedie_variance_power": 1.2}, fields=fields)
    assert refuse({"tweedie_power": 1.5}).startswith(
        "unknown parameter 'tweedie_power'"
    )


def test_what_a_model_keeps() -> None:
    kept = model_params({**resolve({"eta": 0.3}), "tweedie_power": 1.5})
    assert kept["learning_rate"] == 0.3 and kept["tweedie_power"] == 1.5
    assert (
        not {"n_estimators", "n_jobs", "verbose", "eval_metric", "device"} & kept.keys()
    )


def test_names_given_in_any_language() -> None:
    assert given_names({"eta": 1, "depth": 2, "nonsense": 3}) == {
        "learning_rate",
        "max_depth",
    }


def test_suggestions() -> None:
    assert (
        suggest("lossguid", ["lossguide", "depthwise"]) == "did you mean 'lossguide'?"
    )
    assert suggest("LOGISTIC", ["Logistic"]) == "did you mean 'Logistic'?"
    assert suggest("x", ["b", "a"]) == "choose one of a, b."
    assert suggest("zz", [f"column {n}" for n in range(1000)]).endswith("and 920 more.")
    assert issubclass(ParameterError, SapwoodError) and issubclass(
        SapwoodError, ValueError
    )


def test_switches_that_say_what_we_do_anyway() -> None:
    given = {
        "boosting_type": "GBDT",
        "force_col_wise": True,
        "bagging_freq": 1,
        "tree_method": "hist",
    }
    assert resolve(given) == resolve({})
    assert refuse({"boosting": "sorted"}).startswith("boosting='sorted' is unknown; ")
    assert resolve({"leaf_estimation_backtracking": "AnyImprovement"}) == resolve({})
    assert refuse({"use_missing": False}).startswith(
        "use_missing=False is not available; NaN is a missing value"
    )


def test_a_recipe_sets_what_was_not_given() -> None:
    classic = resolve({"recipe": "classic", "reg_lambda": 2})
    assert (classic["hessian"], classic["max_depth"], classic["reg_lambda"]) == (
        "none",
        3,
        2.0,
    )
    by_leaves = resolve({"recipe": "classic", "max_leaves": 32})
    assert (
        by_leaves["max_depth"],
        by_leaves["grow_policy"],
        by_leaves["max_leaves"],
    ) == ("auto", "leafwise", 32)
    assert resolve({"recipe": "adaboost"})["objective"] == "exponential"
    assert resolve({"recipe": "catboost"})["subsample"] == 0.8
    # the share is that of its sampler
    assert resolve({"recipe": "catboost", "sampling": "none"})["subsample"] == 1.0
