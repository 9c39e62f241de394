"""Trees of several outputs with the same splits: what goes with them.

In: resolved parameters and the data. Out: nothing, or an error that says what to do.
"""

from collections.abc import Mapping
from typing import Any

from sapwood.boost.categories import encoded_training
from sapwood.data.dataset import Dataset
from sapwood.errors import ParameterError
from sapwood.params.constraints import encodings


def check(params: Mapping[str, Any], data: Dataset, n_outputs: int) -> None:
    """Raise where trees cannot share their splits.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    data : Dataset
        Training rows.
    n_outputs : int
        Scores of a row; with one there is nothing to share.
    """
    joint = params["leaf_estimation"] == "joint"
    if joint and (params["objective"] != "softmax" or params["multi_strategy"] == "one_tree_per_output"):
        raise ParameterError(
            "leaf_estimation='joint' is for objective='softmax' with multi_strategy='multi_output_tree'; use 'newton'."
        )
    for name in ("reg_alpha", "line_search") if joint else ():
        if params[name] not in (0.0, "none"):
            raise ParameterError(f"{name}={params[name]!r} is not for leaf_estimation='joint'; use 'newton'.")
    if params["multi_strategy"] == "one_tree_per_output" or n_outputs == 1:
        return
    strategy, apart = "multi_strategy='multi_output_tree'", "multi_strategy='one_tree_per_output'"
    for name in ("monotone_constraints", "forced_splits", "ccp_alpha", "prune_by_validation"):
        if params[name]:
            raise ParameterError(f"{name} is not for {strategy}, whose tree is that of all outputs; choose {apart}.")
    if params["pruning"] == "post" and params["min_split_gain"] > 0:
        raise ParameterError(f"pruning='post' is not for {strategy}; use pruning='pre', or {apart}.")
    if params["tree_method"] == "exact":
        raise ParameterError(f"tree_method='exact' is not for {strategy}; use tree_method='hist', or {apart}.")
    words, counted = encodings(params, data.feature_names), encoded_training.chosen(params, data)
    for column, known in data.categories.items():
        apart_or_counted = words[column] == "onehot" or (words[column] == "ordered" and column in counted)
        if known.n_bins > params["max_cat_to_onehot"] and not apart_or_counted:
            raise ParameterError(
                f"{strategy} splits categories one by one or by statistics, and {data.feature_names[column]!r} has "
                f"{known.n_bins} of them; choose category_encoding='ordered' or 'onehot', or {apart}."
            )
