"""Names that users of other libraries bring along: accepted where they mean the same,
explained where not.
"""

from typing import Any

import numpy as np
import pytest

import sapwood as sw
from sapwood import objective
from sapwood.errors import ParameterError
from sapwood.params import names, peers, resolve

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(float)
DATA = sw.Dataset(X, Y)
QUICK = {"n_estimators": 2, "objective": "logistic"}

# What the libraries' own documentation and examples put into params, at their defaults
# or usual values.
LIGHTGBM = {
    "task": "train",
    "boosting_type": "gbdt",
    "objective": "binary",
    "metric": {"binary_logloss", "auc"},
    "num_leaves": 31,
    "learning_rate": 0.05,
    "feature_fraction": 0.9,
    "bagging_fraction": 0.8,
    "bagging_freq": 5,
    "verbose": 0,
    "num_threads": 2,
    "device_type": "cpu",
    "seed": 1,
    "deterministic": True,
    "force_col_wise": True,
    "force_row_wise": True,
    "histogram_pool_size": -1,
    "max_depth": -1,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 1e-3,
    "early_stopping_round": 0,
    "first_metric_only": True,
    "max_delta_step": 0.0,
    "lambda_l1": 0.0,
    "lambda_l2": 0.0,
    "min_gain_to_split": 0.0,
    "path_smooth": 0,
    "is_enable_sparse": True,
    "enable_bundle": True,
    "use_missing": True,
    "zero_as_missing": False,
    "feature_pre_filter": True,
    "two_round": False,
    "header": False,
    "is_unbalance": False,
    "scale_pos_weight": 1.0,
    "sigmoid": 1.0,
    "boost_from_average": True,
    "num_class": 1,
    "tree_learner": "serial",
    "num_machines": 1,
    "verbosity": -1,
    "bin_construct_sample_cnt": 200000,
    "use_quantized_grad": False,
    "extra_trees": False,
    "linear_tree": False,
}
XGBOOST = {
    "booster": "gbtree",
    "objective": "binary:logistic",
    "eta": 0.3,
    "gamma": 0,
    "max_depth": 6,
    "min_child_weight": 1,
    "max_delta_step": 0,
    "subsample": 1,
    "sampling_method": "uniform",
    "colsample_bytree": 1,
    "colsample_bylevel": 1,
    "colsample_bynode": 1,
    "lambda": 1,
    "tree_method": "auto",
    "scale_pos_weight": 1,
    "refresh_leaf": 1,
    "process_type": "default",
    "grow_policy": "depthwise",
    "max_leaves": 0,
    "num_parallel_tree": 1,
    "base_score": None,
    "eval_metric": ["logloss", "auc"],
    "seed": 0,
    "nthread": 2,
    "device": "cpu",
    "verbosity": 1,
    "missing": np.nan,
    "validate_parameters": True,
    "enable_categorical": False,
    "max_cached_hist_node": 65536,
    "predictor": "auto",
}
CATBOOST = {
    "iterations": 2,
    "learning_rate": 0.03,
    "depth": 6,
    "l2_leaf_reg": 3,
    "loss_function": "Logloss",
    "eval_metric": "AUC",
    "random_seed": 1,
    "rsm": 0.9,
    "od_type": "Iter",
    "od_wait": 20,
    "use_best_model": True,
    "grow_policy": "SymmetricTree",
    "min_data_in_leaf": 1,
    "one_hot_max_size": 2,
    "has_time": False,
    "random_strength": 1,
    "score_function": "L2",
    "leaf_estimation_method": "Newton",
    "leaf_estimation_iterations": 1,
    "leaf_estimation_backtracking": "AnyImprovement",
    "boosting_type": "Plain",
    "boost_from_average": True,
    "bootstrap_type": "Bernoulli",
    "subsample": 0.8,
    "sampling_frequency": "PerTree",
    "sampling_unit": "Object",
    "allow_writing_files": False,
    "logging_level": "Silent",
    "thread_count": -1,
    "task_type": "CPU",
    "cat_features": [],
    "ignored_features": [],
    "train_dir": "catboost_info",
    "auto_class_weights": "None",
    "feature_weights": None,
    "monotone_constraints": None,
    "save_snapshot": False,
    "used_ram_limit": None,
}


@pytest.mark.parametrize(
    "params", [LIGHTGBM, XGBOOST, CATBOOST], ids=["lightgbm", "xgboost", "catboost"]
)
def test_everyday_params_train(params: dict[str, Any]) -> None:
    rounds = {} if "iterations" in params else {"n_estimators": 2}
    assert sw.train(params | rounds, DATA).n_rounds in (1, 2)  # CatBoost's stop early


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"missing": -999}, "missing=-999 is not available; NaN is the missing value"),
        (
            {"nan_mode": "Max"},
            "nan_mode='Max' is not available; each split finds the better side",
        ),
        (
            {"leaf_estimation_backtracking": "No"},
            "steps after the first .leaf_iterations. are halved",
        ),
        ({"logging_level": "Verbose"}, "print progress with verbose=1"),
        ({"od_type": "IncToDec"}, "early_stopping_rounds counts rounds"),
        (
            {"bagging_freq": 0, "bagging_fraction": 0.5},
            "bagging_freq=0 draws no rows, but subsample=0.5; leave one of",
        ),
        ({"disable_default_eval_metric": True}, "use eval_metric='none'"),
        ({"colour": 3}, "unknown parameter 'colour'; nothing has a name like it; help"),
        ({"num_leafs": 3}, "did you mean 'num_leaf' or 'num_leaves'"),
    ],
)
def test_what_means_something_else_is_explained(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train(QUICK | given, DATA)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"bagging_freq": 0}, "subsample_freq", 1),
        ({"metric": "None"}, "eval_metric", "none"),
        ({"metric": ""}, "eval_metric", None),
        ({"metric": "auc,logloss"}, "eval_metric", ["auc", "logloss"]),
        ({"metric": {"l2", "l1"}}, "eval_metric", ["l1", "l2"]),
        ({"metric": ("auc", "error")}, "eval_metric", ["auc", "error"]),
        ({"early_stopping": True}, "early_stopping_rounds", 10),
        ({"early_stopping": False}, "early_stopping_rounds", None),
        ({"early_stopping": 5}, "early_stopping_rounds", 5),
        ({"num_class": 1}, "n_classes", None),
        ({"categorical_feature": ""}, "categorical_features", "auto"),
        ({"custom_metric": "AUC"}, "eval_metric", [None, "AUC"]),
        (
            {"eval_metric": "Accuracy", "custom_metric": ["AUC", "Recall"]},
            "eval_metric",
            ["Accuracy", "AUC", "Recall"],
        ),
    ],
)
def test_values_of_the_peers(given: dict[str, Any], name: str, value: Any) -> None:
    assert resolve(given)[name] == value


def test_custom_metrics_are_measured_but_not_watched() -> None:
    params = {
        **QUICK,
        "objective": "logistic",
        "custom_metric": ["AUC:hints=skip_train~false", "Logloss"],
    }
    assert [*sw.train(params, DATA, valid=DATA).history["valid"]] == ["logloss", "auc"]


@pytest.mark.parametrize(
    ("loss", "name", "fields"),
    [
        ("Quantile:alpha=0.9", "quantile", {"quantile_alpha": 0.9}),
        ("MultiQuantile:alpha=0.1,0.5", "quantile", {"quantile_alpha": [0.1, 0.5]}),
        ("Huber:delta=2", "huber", {"huber_delta": 2.0}),
        ("Tweedie:variance_power=1.3", "tweedie", {"tweedie_power": 1.3}),
        (
            "Focal:focal_alpha=0.3;focal_gamma=1",
            "focal",
            {"focal_alpha": 0.3, "focal_gamma": 1.0},
        ),
        ("reg:squarederror", "squared_error", {}),
    ],
)
def test_losses_with_fields_in_their_names(
    loss: str, name: str, fields: dict[str, Any]
) -> None:
    booster = sw.train({"n_estimators": 2, "loss_function": loss}, DATA)
    assert (booster.objective, booster.fields) == (name, fields)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"loss_function": "Quantile:beta=0.9"},
            "has 'beta'; 'quantile' takes quantile_alpha.",
        ),
        (
            {"loss_function": "Quantile:alpha=high"},
            "has 'high' for quantile_alpha; give a number.",
        ),
        (
            {"loss_function": "Quantile:alpha=0.9", "quantile_alpha": 0.5},
            "quantile_alpha a second time",
        ),
        (
            {"loss_function": "RMSE:delta=1"},
            "delta=1.0 is not a parameter of objective='squared_error'",
        ),
        ({"loss_function": "Lq:q=3"}, "has 'q'; 'lq' takes no field, or is unknown."),
    ],
)
def test_fields_that_no_loss_has(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train({"n_estimators": 2, **given}, DATA)


def test_no_metric_measures_nothing() -> None:
    assert sw.train({**QUICK, "metric": "none"}, DATA, valid=DATA).history == {}
    with pytest.raises(ParameterError, match="early_stopping_rounds watches a metric"):
        sw.train(
            {**QUICK, "metric": "none", "early_stopping_rounds": 3}, DATA, valid=DATA
        )
    with pytest.raises(
        ParameterError, match="early stopping needs validation rows and a metric"
    ):
        sw.train(
            {**QUICK, "metric": "none"},
            DATA,
            valid=DATA,
            callbacks=[sw.callback.early_stopping(3)],
        )
    with pytest.raises(ParameterError, match="cv measures models"):
        sw.cv({**QUICK, "metric": "none"}, DATA)


def test_parameters_may_be_arguments() -> None:
    model = sw.train(
        {"objective": "binary"},
        DATA,
        num_boost_round=3,
        early_stopping_rounds=2,
        valid=DATA,
    )
    assert model.n_rounds == 3
    assert (
        len(
            sw.cv({"objective": "binary"}, DATA, num_boost_round=4, metrics="auc")[
                "auc_mean"
            ]
        )
        == 4
    )
    with pytest.raises(
        ParameterError, match="eta is in params and an argument too; give it once"
    ):
        sw.train({"eta": 0.1}, DATA, eta=0.2)
    with pytest.raises(
        ParameterError, match=r"eta=0.1 and learning_rate=0.2 are both learning_rate"
    ):
        sw.train({"eta": 0.1}, DATA, learning_rate=0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sw.train(QUICK, DATA, vaild=DATA),
            "no argument 'vaild'; did you mean 'valid'",
        ),
        (
            lambda: sw.train(QUICK, DATA, zzz=1),
            "it has params, data, n_estimators, valid, callbacks, init_model",
        ),
        (
            lambda: sw.cv(QUICK, DATA, n_splits=3),
            r"cv\(\) has no argument 'n_splits'; use n_folds, a number, or folds",
        ),
        (
            lambda: sw.Dataset(X, Y, max_depth=3),
            "max_depth goes into the params of sapwood.train",
        ),
        (
            lambda: sw.Dataset.from_chunks([X], colour=3),
            r"from_chunks\(\) has no argument 'colour'; it has chunks",
        ),
        (
            lambda: sw.SapwoodRegressor().fit(X, Y, num_leaves=3),
            r"max_leaves goes into the constructor, SapwoodRegr",
        ),
        (
            lambda: sw.SapwoodRegressor().fit(X, Y, sample_weights=Y),
            "did you mean 'sample_weight'",
        ),
    ],
)
def test_arguments_of_the_peers_name_ours(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_an_estimator_takes_what_it_does_not_need() -> None:
    assert (
        sw.SapwoodRegressor(force_col_wise=True).get_params()
        == sw.SapwoodRegressor().get_params()
    )


def test_no_name_is_said_twice() -> None:
    assert not set(peers.ABSENT) & {*names(), *objective.field_aliases()}
