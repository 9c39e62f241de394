"""Names of the peers that are not parameters here, and what to use instead.

In: a name and its value. Out: whether Sapwood behaves so anyway, or an error that says
what to use.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from numbers import Real
from typing import Any

from sapwood.errors import ParameterError, near, warn

ANY = "*"
SEEDS = (
    "bagging_seed",
    "bagging_fraction_seed",
    "feature_fraction_seed",
    "drop_seed",
    "extra_seed",
    "objective_seed",
    "data_random_seed",
    "data_seed",
    "partition_random_seed",
)
# of CatBoost's losses and metrics; always so here
IMPLIED = ("border=0.5", "use_weights=true", "type=classic")
_SEED = "all draws use one seed, random_state."
_GPU = "choose where training runs with device."
_FILES = "params holds no files: make a Dataset of the table, and write the model with Booster.save."
_PREDICT = "ask the model for it: Booster.predict."
_GONE = "Sapwood does not have it; leave it out."

# Names of the peers and of scikit-learn, the values, in lower case, for which Sapwood
# behaves so anyway, and a hint for any other value.
_ROWS = (
    (
        "alpha",
        "",
        "it is ambiguous, the L1 penalty in XGBoost and the level of a quantile or Huber loss elsewhere; use "
        "reg_alpha, quantile_alpha, expectile_alpha, huber_quantile or huber_delta.",
    ),
    # Ways of computing, which never change a model here.
    (
        "force_col_wise force_row_wise deterministic feature_pre_filter two_round histogram_pool_size",
        ANY,
        _GONE,
    ),
    (
        "is_enable_sparse is_sparse enable_sparse sparse enable_bundle is_enable_bundle bundle",
        ANY,
        _GONE,
    ),
    (
        "use_quantized_grad max_cached_hist_node used_ram_limit pinned_memory_size",
        ANY,
        _GONE,
    ),
    (
        "single_precision_histogram allow_writing_files train_dir name validate_parameters allow_const_label",
        ANY,
        _GONE,
    ),
    (
        "saved_feature_importance_type refit_decay_rate gpu_ram_part gpu_use_dp use_label_encoder num_target",
        ANY,
        _GONE,
    ),
    (
        "leaf_estimation_backtracking",
        "anyimprovement none",
        "steps after the first (leaf_iterations) are halved until they reduce the loss; leave it out.",
    ),
    # Tasks, devices and output.
    (
        "task",
        "train training",
        "train with sapwood.train, predict with Booster.predict.",
    ),
    ("predictor", "auto cpu_predictor", _GPU),
    ("gpu_id gpu_platform_id gpu_device_id", "-1 0 none", _GPU),
    ("devices num_gpu gpu_cat_features_storage data_partition", "none", _GPU),
    (
        "tree_learner tree tree_type tree_learner_type",
        "serial",
        "all rows are on this machine; leave it out.",
    ),
    ("num_machines", "1", "all rows are on this machine; leave it out."),
    (
        "updater process_type refresh_leaf",
        "none default 1 grow_quantile_histmaker",
        "tree_method says how.",
    ),
    ("silent", "true false 1 0 none", "print progress with verbose=1."),
    ("plot plot_file", "false none", "plot the history of the model after training."),
    ("logging_level", "silent none", "print progress with verbose=1."),
    (
        "metric_freq output_freq",
        "1",
        "print progress every so many rounds with verbose.",
    ),
    # Seeds.
    (" ".join(SEEDS), "none", _SEED),
    ("seed_per_iteration", "none false", _SEED),
    # Rows and columns.
    (
        "bin_construct_sample_cnt subsample_for_bin",
        "200000",
        "cuts come from 200,000 rows, or all where fewer.",
    ),
    (
        "use_missing",
        "true 1",
        "NaN is a missing value; put a number, in LightGBM 0, in its place first.",
    ),
    (
        "missing",
        "nan none",
        "NaN is the missing value; put it in the place of yours first, or set zero_as_missing.",
    ),
    (
        "nan_mode",
        "min none",
        "each split finds the better side for missing values; leave it out.",
    ),
    ("feature_types", "none", "name columns of categories in categorical_features."),
    (
        "ignored_features ignore_column",
        "none [] ()",
        "drop these columns from the table first.",
    ),
    (
        "max_bin_by_feature per_float_feature_quantization input_borders forcedbins_filename",
        "none [] ()",
        "max_bins is the same for all columns; round the values of a column to give it fewer bins.",
    ),
    (
        "feature_border_type",
        "greedylogsum none",
        "there is one way to choose cuts; set their number with max_bins.",
    ),
    ("header", "false 0", _FILES),
    (
        "data train train_data valid test valid_data input_model output_model model_output model_input",
        "",
        _FILES,
    ),
    (
        "snapshot_interval",
        "none",
        "checkpoint_every counts rounds between two writes, not seconds.",
    ),
    (
        "save_snapshot",
        "false none",
        "set checkpoint to a path; checkpoint_every counts rounds.",
    ),
    # The model.
    (
        "base_score",
        "none",
        "use start, which is a raw score: log-odds, not a probability; of counts the logarithm.",
    ),
    ("init", "none", "use start for a constant, init_score for a score of every row."),
    ("base_margin baseline", "", "use init_score."),
    ("warm_start", "false", "continue a model with init_model=model."),
    ("reg_sqrt", "false 0", "train on the root of the label, and square predictions."),
    ("poisson_max_delta_step", "", "limit leaf values with max_delta_step."),
    ("langevin posterior_sampling approx_on_full_history", "false none", _GONE),
    ("model_shrink_rate", "0 0.0 none", "shrink trees with learning_rate."),
    (
        "fold_len_multiplier",
        "2 2.0",
        "each model of ordered boosting has twice the rows of the one before; leave it out.",
    ),
    ("fold_permutation_block", "1 none", _GONE),
    (
        "random_score_type",
        "normalwithmodelsizedecrease",
        "the noise of random_strength fades; leave it out.",
    ),
    (
        "class_names target_border",
        "none",
        "labels are class indices; SapwoodClassifier takes any classes.",
    ),
    (
        "simple_ctr combinations_ctr per_feature_ctr",
        "none",
        "use statistics, for example {'city': [('borders', (0, 0.5, 1)), 'counter']}; values are cut at sixteenths.",
    ),
    (
        "ctr_target_border_count",
        "none",
        "use statistics; classes use all borders, numbers their mean.",
    ),
    ("ctr_leaf_count_limit", "none", "statistics keep every category; leave it out."),
    (
        "counter_calc_method",
        "skiptest none",
        "counters count the training rows only (SkipTest); leave it out.",
    ),
    ("store_all_simple_ctr", "false none", _GONE),
    ("final_ctr_computation_mode", "default none", _GONE),
    ("ctr_history_unit", "sample none", _GONE),
    ("model_shrink_mode", "constant none", "shrink trees with learning_rate."),
    ("metadata", "none {}", "a model file has no room for notes; keep them beside it."),
    ("penalties_coefficient", "1 1.0", "multiply first_use_penalties by it."),
    (
        "max_features",
        "1.0 none",
        "sample a fraction of the columns with colsample_bynode.",
    ),
    (
        "criterion",
        "friedman_mse squared_error deprecated none",
        "splits are chosen by the loss itself; with hessian='none' by least squares on its gradient.",
    ),
    (
        "min_samples_split",
        "2",
        "set min_samples_leaf, the rows of a leaf; a node that is split has twice as many.",
    ),
    ("min_impurity_decrease", "0 0.0", "use min_split_gain."),
    (
        "min_weight_fraction_leaf",
        "0 0.0",
        "set min_samples_leaf, which counts weights as rows.",
    ),
    (
        "sampling_frequency",
        "pertree",
        "rows are drawn once a round (PerTree), or every subsample_freq rounds.",
    ),
    # Early stopping and metrics.
    ("od_type", "iter none", "early_stopping_rounds counts rounds (Iter)."),
    ("od_pval", "0 0.0 none", "early_stopping_rounds counts rounds."),
    (
        "best_model_min_trees",
        "1 none",
        "early stopping keeps the best round, whichever it is.",
    ),
    (
        "tol early_stopping_min_delta",
        "0 0.0 1e-07 0.0001",  # scikit-learn's defaults
        "use callbacks=[sapwood.callback.early_stopping(rounds, min_delta=tol)].",
    ),
    ("use_best_model", "true false 1 0 none", "choose True or False."),
    ("first_metric_only", "true false 1 0", "early stopping uses the first metric."),
    ("disable_default_eval_metric", "false 0", "use eval_metric='none'."),
    (
        "is_provide_training_metric training_metric",
        "false 0",
        "evaluate the training rows with valid={'train': data}.",
    ),
    (
        "predict_raw_score raw_score predict_leaf_index predict_contrib",
        "false 0",
        _PREDICT,
    ),
    ("callbacks", "none", "give them to sapwood.train or fit: callbacks=[...]."),
)
ABSENT = {
    name: (values, hint) for names, values, hint in _ROWS for name in names.split()
}

# Arguments of the peers' functions, and what to use instead.
ARGUMENTS = {
    **dict.fromkeys(("train_set", "dtrain", "pool"), "use data."),
    **dict.fromkeys(
        ("valid_sets", "valid_names", "evals", "eval_set"),
        "use valid, a Dataset or {name: Dataset}.",
    ),
    **dict.fromkeys(("evals_result",), "see the history of the Booster."),
    **dict.fromkeys(
        ("feval", "obj", "fobj"),
        "give the function in params, as eval_metric or objective.",
    ),
    **dict.fromkeys(
        ("xgb_model", "keep_training_booster"),
        "continue a model with init_model=booster.",
    ),
    **dict.fromkeys(("n_splits", "cv"), "use n_folds, a number, or folds."),
    **dict.fromkeys(
        ("fpreproc",),
        "all folds have the same params; class_weight='balanced' weighs classes.",
    ),
    **dict.fromkeys(
        ("return_cvbooster",),
        "cv keeps no models; train one for each fold, on the rows of it.",
    ),
    **dict.fromkeys(
        ("eval_train_metric",),
        "cv measures held-out rows alone; train with valid={'train': data}.",
    ),
    **dict.fromkeys(
        ("eval_class_weight",),
        "give weights of the rows of validation sets: eval_sample_weight.",
    ),
    **dict.fromkeys(
        ("feature_weights",),
        "chances of columns in draws are not available; the parameter "
        "feature_weights, as in CatBoost, has factors on the gains of columns.",
    ),
    **dict.fromkeys(("base_margin", "baseline"), "use init_score."),
    **dict.fromkeys(("qid", "group_id"), "use group."),
    **dict.fromkeys(("feature_types",), "use categorical_features."),
    **dict.fromkeys(("missing",), ABSENT["missing"][1]),
    **dict.fromkeys(
        (
            "num_iteration",
            "iteration_range",
            "ntree_limit",
            "ntree_end",
            "start_iteration",
            "ntree_start",
        ),
        "use rounds, a number or (first, last).",
    ),
    **dict.fromkeys(
        ("raw_score", "output_margin", "prediction_type"),
        "use raw=True for scores before the link.",
    ),
    **dict.fromkeys(("pred_leaf",), "use predict_leaves."),
    **dict.fromkeys(
        ("pred_contribs", "pred_contrib", "pred_interactions"), "use explain."
    ),
}

# Attributes of the peers' models, and their names here.
ATTRIBUTES = {
    **dict.fromkeys(
        ("best_iteration_", "best_ntree_limit", "tree_count_"), "best_round or n_rounds"
    ),
    **dict.fromkeys(("save_raw", "model_to_string"), "to_bytes()"),
    **dict.fromkeys(("load_model", "model_from_string"), "sapwood.load(path)"),
    **dict.fromkeys(
        ("feature_importances_", "get_feature_importance"), "importance(kind)"
    ),
    **dict.fromkeys(("dump_model", "get_dump"), "to_frame() or to_text()"),
    **dict.fromkeys(("feature_name_", "feature_names_"), "feature_names"),
    **dict.fromkeys(
        ("predict_proba",), "predict(X), probabilities where there are classes"
    ),
    **dict.fromkeys(("get_shap_values", "shap_values"), "explain(X)"),
    **dict.fromkeys(
        ("evals_result_", "get_evals_result", "best_score", "best_score_"), "history"
    ),
    **dict.fromkeys(
        ("update", "boost", "add_valid", "eval_train"),
        "sapwood.train with callbacks, or with init_model",
    ),
    **dict.fromkeys(
        ("eval", "eval_valid", "eval_set"),
        "predict(X) and a metric, or valid in sapwood.train",
    ),
    **dict.fromkeys(
        ("rollback_one_iter", "slice", "shuffle_models"),
        "predict(X, rounds=n) or (first, last)",
    ),
    **dict.fromkeys(
        ("attr", "set_attr", "attributes", "feature_types"),
        "params and history; a model has no notes",
    ),
    **dict.fromkeys(
        ("set_param", "reset_parameter", "save_config", "load_config"),
        "params, which training has set",
    ),
    **dict.fromkeys(
        ("copy", "free_dataset", "free_network", "reset"),
        "the model itself: it never changes",
    ),
    **dict.fromkeys(
        ("refit", "set_leaf_output"), "sapwood.train with init_model, on the new rows"
    ),
    **dict.fromkeys(
        ("get_leaf_output", "num_model_per_iteration"),
        "to_frame(), a row for each node",
    ),
    **dict.fromkeys(
        ("get_split_value_histogram",), "to_frame(), which has the thresholds"
    ),
    **dict.fromkeys(
        ("get_categories",), "categories, the values of every column of categories"
    ),
    **dict.fromkeys(
        ("lower_bound", "upper_bound"), "to_frame(), which has the values of leaves"
    ),
}


COLSAMPLES = ("colsample_bytree", "colsample_bylevel", "colsample_bynode")
LIGHTGBM = {  # names that LightGBM alone has: who writes one thinks of its defaults
    "num_leaves",
    "min_child_samples",
    "min_data_in_leaf",
    "bagging_freq",
    "bagging_fraction",
    "feature_fraction",
    "feature_fraction_bynode",
    "lambda_l1",
    "lambda_l2",
    "min_gain_to_split",
    "min_sum_hessian_in_leaf",
    "num_iterations",
    "subsample_for_bin",
    "force_col_wise",
    "force_row_wise",
    "is_unbalance",
}


def say_differences(given: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Warn where parameters mean something else in LightGBM, in whose words they are,
    or in XGBoost.

    given: mapping; as the user wrote them.
    ours: mapping; the same under our names, without what the user has not set.
    """
    drawn = [
        name
        for name in COLSAMPLES
        if isinstance(ours.get(name), Real) and ours[name] < 1
    ]
    if drawn and ours.get("feature_weights") is not None:
        warn(
            f"feature_weights are factors on the gains of columns, as in CatBoost; in XGBoost they are the chances of "
            f"columns in the draws of {drawn[0]}."
        )
    if not LIGHTGBM & given.keys() or "recipe" in ours:
        return
    depth = ours.get("max_depth")
    share = ours.get("subsample")
    leafwise = ours.get("grow_policy", "leafwise") == "leafwise"
    said = []
    if isinstance(depth, int) and depth > 5 and "max_leaves" not in ours and leafwise:
        said.append(
            f"max_depth={depth} alone sets no limit of leaves; LightGBM has at most 31. Say num_leaves=31."
        )
    sampled = (
        isinstance(share, Real)
        and share < 1
        and ours.get("sampling", "uniform") == "uniform"
    )
    if sampled and not any(
        name in given for name in ("bagging_freq", "subsample_freq")
    ):
        name = "bagging_fraction" if "bagging_fraction" in given else "subsample"
        said.append(
            f"{name}={share:g} draws rows for every round; in LightGBM it draws none without bagging_freq. Say "
            "bagging_freq=1 if that is meant, or leave both out."
        )
    if given.get("class_weight") is not None:
        said.append(
            "class_weight is applied; lgb.train ignores it. Leave it out if that is what you compare with."
        )
    for text in said:
        warn(text)


def is_default_here(name: str, value: Any) -> bool:
    """Whether Sapwood behaves so anyway; raises for a known name with another value."""
    if name not in ABSENT:
        return False
    values, hint = ABSENT[name]
    if values == ANY or (str(value).lower() or "none") in values.split():
        return True
    what = (
        f"{name}={value!r} is not available"
        if values
        else f"unknown parameter {name!r}"
    )
    raise ParameterError(f"{what}; {hint}")


def unknown(
    name: str, known: Iterable[str], estimator: str = "SapwoodRegressor"
) -> str:
    """The hint for a name that is not a parameter."""
    if name in ABSENT:
        values, hint = ABSENT[name]
        return "Sapwood does not need it; leave it out." if values == ANY else hint
    return (
        near(name, known)
        or f"nothing has a name like it; help(sapwood.{estimator}) lists all parameters."
    )


def refuse_arguments(
    function: Callable[..., Any],
    given: Iterable[str],
    ours: Mapping[str, str],
    place: str,
) -> None:
    """Raise on arguments that a function does not have.

    function: callable; the function that was called.
    given: iterable of str; the names that are not its arguments.
    ours: mapping of str to str; our names of parameters by every name they have, the
    peers' too.
    place: str; where parameters belong, for the message.
    """
    for name in given:
        own = [
            known
            for known, one in signature(function).parameters.items()
            if one.kind is not one.VAR_KEYWORD
        ]
        if ours.get(name) in own:
            hint = f"use {ours[name]}."
        elif name in ours and name not in ARGUMENTS:
            hint = f"{ours[name]} goes into {place}."
        else:
            hint = ARGUMENTS.get(name) or near(name, own) or f"it has {', '.join(own)}."
        raise TypeError(f"{function.__name__}() has no argument {name!r}; {hint}")
