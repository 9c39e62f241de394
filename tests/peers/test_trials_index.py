"""What trials with programs, clients and tests of the peers brought to light, and the
test that covers each line.
"""

from pathlib import Path

import pytest

PEERS = Path(__file__).parent
UNIT = "../unit/"
SYSTEM = "../system/"
# By line: what it was about, and tests as "file::test"; several where a line says
# several things.
LINES: dict[str, tuple[str, list[str]]] = {
    "W1": (
        "metrics where higher is better, as functions",
        [
            "test_trials.py::test_early_stopping_knows_that_a_score_is_better_where_higher",
            "test_trials.py::test_a_score_of_the_users_own_must_say_its_direction",
        ],
    ),
    "W2": (
        "objectives (preds, dtrain)",
        ["test_trials.py::test_an_objective_is_read_by_the_names_of_its_arguments"],
    ),
    "W3": (
        "training rows among the validation sets",
        ["test_trials.py::test_the_training_rows_are_not_watched_wherever_they_stand"],
    ),
    "W4": (
        "which of several metrics is watched",
        ["test_trials.py::test_which_of_several_metrics_is_watched_is_said"],
    ),
    "W5": (
        "class_weight in params of train",
        [
            "test_trials.py::test_what_lightgbm_would_do_with_a_depth_or_a_sample_is_said"
        ],
    ),
    "W6": (
        "rows held out in silence",
        ["test_trials.py::test_rows_that_are_held_out_are_said"],
    ),
    "W7": (
        "max_depth and subsample of LightGBM",
        [
            "test_trials.py::test_what_lightgbm_would_do_with_a_depth_or_a_sample_is_said"
        ],
    ),
    "W8": (
        "feature_importances_",
        ["test_trials.py::test_importances_may_be_numbers_of_splits"],
    ),
    "friction 1": (
        "callbacks of LightGBM and Optuna",
        [
            "test_ports.py::test_a_program_moves",
            "test_programs.py::test_a_program_of_a_peer_runs",
        ],
    ),
    "friction 2": (
        "names of parameters in estimators, all unknown ones at once",
        [
            "test_trials.py::test_all_unknown_names_are_named_at_once",
            "test_ports.py::test_a_program_moves",
        ],
    ),
    "friction 3": ("arguments of fit", ["test_ports.py::test_a_program_moves"]),
    "friction 4": (
        "valid_sets, valid_names, evals",
        ["test_ports.py::test_a_program_moves"],
    ),
    "friction 5": (
        "dtrain, train_set, pool",
        ["test_differences.py::test_training_rows_have_the_names_of_the_peers"],
    ),
    "friction 6": (
        "harmless values",
        ["test_differences.py::test_what_is_harmless_is_taken"],
    ),
    "friction 7": (
        "multi_strategy='one_output_per_tree'",
        ["test_differences.py::test_what_is_harmless_is_taken"],
    ),
    "friction 8": (
        "metrics that return their names; CatBoost's metric objects",
        [
            "test_trials.py::test_early_stopping_knows_that_a_score_is_better_where_higher",
            "test_differences.py::test_a_metric_object_of_catboost_gets_raw_scores",
        ],
    ),
    "friction 9": (
        "methods and attributes of boosters and estimators",
        [
            "test_differences.py::test_every_method_of_a_peers_booster_is_there_or_answered",
            "test_differences.py::test_every_attribute_of_a_peers_estimator_is_there_or_answered",
        ],
    ),
    "friction 10": (
        "shap.TreeExplainer, which has no hook for others: to_shap",
        ["test_trials.py::test_symmetric_trees_go_to_shap_without_a_background"],
    ),
    "friction 11": (
        "skops, hence mlflow",
        ["test_trials.py::test_skops_keeps_an_estimator"],
    ),
    "friction 12": (
        "bins in params of train",
        ["test_differences.py::test_bins_may_be_named_in_the_params_of_train"],
    ),
    "friction 13": (
        "keys of cv",
        [
            "test_ports.py::test_a_program_moves",
            "test_differences.py::test_cross_validation_of_a_matrix_is_a_data_frame",
        ],
    ),
    "friction 14": (
        "max_depth of an estimator",
        ["test_differences.py::test_clients_can_compute_with_max_depth"],
    ),
    "friction 15": (
        "names of modules, rows as dicts, one row, dates",
        [
            "test_differences.py::test_names_of_the_peers_packages",
            "test_differences.py::test_a_dataset_has_the_names_of_the_peers",
            UNIT + "data/test_times.py::test_the_model_takes_the_same_column",
        ],
    ),
    "C1": (
        "categories of LightGBM's models",
        ["test_trials.py::test_categories_of_a_lightgbm_model_go_to_their_columns"],
    ),
    "C2": (
        "levels of recipes",
        ["test_trials.py::test_a_recipe_has_the_level_of_its_library"],
    ),
    "C3": ("sizes of groups", ["test_trials.py::test_sizes_of_groups_may_be_unsigned"]),
    "C4": (
        "empty leaves in to_shap",
        ["test_trials.py::test_symmetric_trees_go_to_shap_without_a_background"],
    ),
    "C5": (
        "rows that a fold has twice",
        ["test_trials.py::test_a_row_that_a_fold_has_twice_counts_twice"],
    ),
    "C6": (
        "zero_as_missing of LightGBM",
        ["test_trials.py::test_tiny_numbers_are_zeros_where_zeros_are_missing"],
    ),
    "C7": (
        "min_child_weight on rounded sums",
        [
            "test_differences.py::test_no_leaf_is_below_min_child_weight_at_wide_precision"
        ],
    ),
    "C8": (
        "words at exit",
        ["test_trials.py::test_nothing_is_said_at_exit_while_a_thread_holds_a_model"],
    ),
    "difference 1": (
        "hessians of XGBoost's softmax and Poisson",
        [
            "test_differences.py::test_a_hessian_of_another_size_is_a_smaller_rate_and_smaller_penalties"
        ],
    ),
    "difference 2": (
        "feature_weights",
        [
            "test_differences.py::test_weights_of_columns_that_are_drawn_say_what_they_are",
            "test_differences.py::test_arguments_that_are_not_here_say_what_is",
        ],
    ),
    "difference 3": (
        "infinite values",
        ["test_differences.py::test_infinite_values_have_a_cut_of_their_own"],
    ),
    "difference 4": (
        "intervals, fractions and times as categories",
        ["test_differences.py::test_categories_may_be_intervals_fractions_and_times"],
    ),
    "difference 5": (
        "init_model of dart and forests; forced splits",
        [
            "test_differences.py::test_models_that_cannot_go_on_start_from_scores",
            "test_differences.py::test_forced_splits_say_what_they_need",
        ],
    ),
    "difference 6": (
        "validation sets, cv, shapes of weights, stages",
        [
            "test_differences.py::test_scores_of_validation_sets_have_the_names_of_the_peers",
            "test_differences.py::test_arguments_that_are_not_here_say_what_is",
            "test_differences.py::test_weights_of_one_column_are_weights",
        ],
    ),
    "difference 7": (
        "values and objectives whose meaning is plain",
        [
            "test_differences.py::test_what_is_plain_is_taken",
            "test_differences.py::test_objectives_that_are_not_here_say_what_is_near",
            "test_differences.py::test_columns_of_categories_may_be_named_in_the_params_of_train",
        ],
    ),
    "difference 8": (
        "lists of tables, series, names, labels, errors, ranges",
        [
            "test_differences.py::test_tables_and_labels_are_told_how",
            "test_differences.py::test_an_objective_that_raises_says_which_error",
            "test_differences.py::test_a_range_of_rounds_has_the_base_as_in_xgboost",
        ],
    ),
    "H1": (
        "damaged files of CatBoost",
        [UNIT + "model/convert/test_hostile_files.py::test_a_damaged_cbm_file_raises"],
    ),
    "H2": (
        "small files that take much memory",
        [
            UNIT
            + "model/convert/test_hostile_files.py::test_small_files_cannot_claim_much",
            UNIT
            + "model/convert/test_hostile_files.py::test_memory_grows_with_the_size_of_the_file",
        ],
    ),
    "H3": (
        "limits of memory",
        [
            SYSTEM
            + "test_process.py::test_out_of_memory_is_an_error_and_the_next_fit_works",
            SYSTEM
            + "test_allocations.py::test_a_failed_allocation_raises_memory_error",
        ],
    ),
    "H4": (
        "saving to pipes, permissions, what a killed save leaves",
        [
            UNIT + "system/test_writing.py::test_a_pipe_gets_the_bytes",
            UNIT + "system/test_writing.py::test_the_mode_stays",
            UNIT + "system/test_writing.py::test_what_a_killed_process_left_is_removed",
        ],
    ),
    "H5": (
        "numbers in place of arrays, wrong params, huge leaves, surrogates",
        [
            UNIT + "model/test_io.py::test_one_number_in_place_of_an_array_raises",
            UNIT + "model/test_io.py::test_lies_in_the_header_raise",
            UNIT + "model/test_io.py::test_lies_in_the_content_raise",
        ],
    ),
    "H6": (
        "Arrow streams that were read",
        [
            UNIT
            + "model/test_bounds.py::test_an_arrow_stream_is_read_once_and_never_taken_for_no_rows",
            UNIT + "data/test_ingest.py::test_a_spent_stream_raises",
        ],
    ),
    "H7": (
        "explanations and texts of deep trees",
        [
            UNIT + "model/test_bounds.py::test_a_path_of_many_splits",
            UNIT
            + "model/test_bounds.py::test_more_columns_on_a_path_than_are_explained",
            UNIT + "model/test_bounds.py::test_many_nodes_with_one_large_set",
            UNIT + "model/test_bounds.py::test_long_names",
        ],
    ),
    "H8": (
        "quotas, NaN metrics, masks, one class, tiny labels, one Dataset in two threads",
        [
            SYSTEM + "test_process.py::test_the_quota_of_the_cgroup",
            UNIT + "metric/test_metric.py::test_a_callable_returns_a_number",
            UNIT + "objective/test_custom.py::test_what_goes_wrong_is_said",
            "test_differences.py::test_a_model_of_one_class_knows_it",
            UNIT + "data/test_ingest.py::test_labels_whose_squares_vanish_raise",
            SYSTEM + "test_process.py::test_datasets_are_shared_between_fits",
        ],
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_every_line_has_a_test(line: str) -> None:
    for place in LINES[line][1]:
        name, _, test = place.partition("::")
        assert f"def {test}(" in (PEERS / name).read_text(), place


def test_no_line_is_left_out() -> None:
    wanted = (
        {f"W{k}" for k in range(1, 9)}
        | {f"C{k}" for k in range(1, 9)}
        | {f"H{k}" for k in range(1, 9)}
    )
    wanted |= {f"friction {k}" for k in range(1, 16)} | {
        f"difference {k}" for k in range(1, 9)
    }
    assert LINES.keys() == wanted
