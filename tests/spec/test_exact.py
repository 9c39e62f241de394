"""Exact trees: the specification with a bin for every value, hence histogram trees with
as many bins, bit for bit.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import datasets
import sapwood
from cover import examples
from sapwood import Dataset, SapwoodRegressor
from sapwood.data import container
from sapwood.data.dataset_file import KIND, VERSION, _checked
from sapwood.errors import DataError, ParameterError
from sapwood.params import resolve
from sapwood.system import writing
from spec.cases import (
    FORCED,
    OBJECTIVES,
    ODD,
    POLICIES,
    RULES,
    SAMPLERS,
    SMALL,
    WEIGHTS,
)
from spec.helpers import (
    assert_equal,
    assert_like_histograms,
    assert_same,
    few_values,
    labels,
    table,
    weight_of,
)

Floats = NDArray[np.float64]
SAMPLING = {
    "subsample": 0.7,
    "colsample_bytree": 0.8,
    "colsample_bylevel": 0.8,
    "colsample_bynode": 0.8,
}
LIMITS: list[dict[str, Any]] = [
    {},
    {"reg_alpha": 2.5},
    {"max_delta_step": 0.2},
    {"path_smooth": 7.0, "reg_lambda": 0.0},
    {"min_samples_leaf": 17},
    {"min_samples_leaf": 8, "min_child_weight": 4.0, "min_split_gain": 0.3},
]
ENSEMBLES: list[dict[str, Any]] = [
    {"boosting": "dart", "rate_drop": 0.5},
    {"boosting": "forest", "subsample": 0.6, "colsample_bynode": 0.7},
    {"n_parallel_trees": 3, "subsample": 0.5},
    {"pruning": "post", "min_split_gain": 0.5},
]


# ---- The specification ---------------------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("precision", ["narrow", "wide"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("policy", POLICIES)
def test_trees(policy: str, objective: str, precision: str, weights: str) -> None:
    rng = np.random.default_rng(1)
    X = table(rng, 300)
    y = labels(rng, X, objective)
    w = weight_of(rng, weights, 300)
    params = SMALL | {
        "grow_policy": policy,
        "objective": objective,
        "precision": precision,
    }
    assert_same(X, y, params, w, exact=True)
    assert_same(X, y, params | SAMPLING | {"min_samples_leaf": 5}, w, exact=True)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_limits(isa: str, policy: str, limit: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    X = table(rng, 400)
    for objective in ("squared_error", "logistic"):
        assert_same(
            X,
            labels(rng, X, objective),
            SMALL | limit | {"grow_policy": policy, "objective": objective},
            exact=True,
        )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ODD)
def test_odd_tables(name: str, policy: str) -> None:
    assert_same(*ODD[name], SMALL | {"grow_policy": policy}, exact=True)


@pytest.mark.parametrize("policy", POLICIES)
def test_more_values_than_histograms_have_bins(policy: str) -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack(
        [
            rng.normal(size=140_000),
            np.where(rng.random(140_000) < 0.1, np.nan, rng.random(140_000)),
        ]
    )
    data = Dataset(X, tree_method="exact")
    assert len(data.cuts[0]) > 65535
    y = np.sin(3 * X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.normal(size=140_000)
    # Past 131,071 rows packed words no longer hold a node's sums.
    assert_same(
        X,
        y,
        {
            "grow_policy": policy,
            "max_depth": 2,
            "n_estimators": 1,
            "precision": "narrow",
        },
        exact=True,
    )


# ---- Histograms ----------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(
    data=few_values(),
    policy=st.sampled_from(POLICIES),
    objective=st.sampled_from(OBJECTIVES),
    precision=st.sampled_from(["narrow", "wide"]),
    weights=st.sampled_from(WEIGHTS),
    limit=st.sampled_from(
        [*LIMITS, *SAMPLERS, SAMPLING, SAMPLING | {"min_samples_leaf": 3}]
    ),
)
def test_equals_hist_where_every_value_has_its_bin(
    data: tuple[np.random.Generator, Floats],
    policy: str,
    objective: str,
    precision: str,
    weights: str,
    limit: dict[str, Any],
) -> None:
    rng, X = data
    y = np.round(np.nan_to_num(X).sum(axis=1) + rng.normal(size=len(X)), 1)
    y = (
        y
        if objective == "squared_error"
        else np.searchsorted(np.quantile(y, [0.5]), y).astype(float)
    )
    y[:2] = np.arange(2)
    params = {
        "objective": objective,
        "grow_policy": policy,
        "precision": precision,
        "n_estimators": 3,
        "max_depth": 4,
        "min_child_weight": 0.0,
        "n_classes": 2 if objective == "softmax" else None,
    }
    assert_like_histograms(X, y, params | limit, weight_of(rng, weights, len(X)))


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "more",
    [*SAMPLERS, *ENSEMBLES, RULES["groups"], RULES["pairwise"], RULES["alone"]],
    ids=str,
)
def test_equals_hist_under_samplers_ensembles_and_groups(
    more: dict[str, Any], policy: str
) -> None:
    rng = np.random.default_rng(6)
    X = table(rng, 700)
    for objective, weights in (
        ("logistic", "none"),
        ("squared_error", "whole"),
        ("softmax", "real"),
    ):
        params = {
            "objective": objective,
            "grow_policy": policy,
            "n_estimators": 5,
            "min_samples_leaf": 4,
        } | more
        exact = assert_like_histograms(
            X, labels(rng, X, objective), params, weight_of(rng, weights, 700)
        )
        assert exact.trees.n_nodes > 3 * exact.trees.n_trees  # trees, not stumps


REAL = {
    "california_housing": "squared_error",
    "wine_quality": "absolute_error",
    "adult": "logistic",
    "letter": "softmax",
    "bike_sharing": "poisson",
    "protein": "huber",
    "magic": "logistic",
    "motor_claims": "tweedie",
}


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", REAL)
def test_equals_hist_on_real_data(name: str, policy: str) -> None:
    X, y, _ = getattr(datasets, name)()
    params = {
        "objective": REAL[name],
        "grow_policy": policy,
        "n_estimators": 3 if name == "letter" else 8,
    }
    exact = assert_like_histograms(X, y, params)
    assert exact.trees.n_nodes > 50


def test_everything_after_growth_is_the_same() -> None:
    X, y, _ = datasets.magic()
    train = slice(0, 1500)
    held = slice(1500, None)
    for more in (
        {"ccp_alpha": 1e-3},
        {"leaf_estimation": "exact", "line_search": "tree"},
        {"recipe": "classic"},
    ):
        params = {
            "objective": "logistic",
            "n_estimators": 20,
            "early_stopping_rounds": 3,
            **more,
        }
        models = []
        for bins in ({"tree_method": "exact"}, {"max_bins": 65535}):
            data = Dataset(X[train], label=y[train], **bins)
            valid = Dataset(X[held], label=y[held], reference=data)
            models.append(sapwood.train(params, data, valid=valid))
            assert_equal(
                models[-1], sapwood.train(params | {"n_jobs": 1}, data, valid=valid)
            )
        assert_equal(*models)
        assert models[0].history == models[1].history


# ---- The data ------------------------------------------------------------------------


def test_a_dataset_of_every_value(tmp_path: Path) -> None:
    X = np.array([[3.0, np.nan], [1.0, 1.0], [2.0, np.inf], [1.0, -np.inf]])
    data = Dataset(X, label=[0, 1, 2, 3], tree_method="exact")
    assert [cuts.tolist() for cuts in data.cuts] == [
        [1.5, 2.5],
        [-sys.float_info.max, 1.0],
    ]
    assert [data.binned.codes(j).tolist() for j in range(2)] == [
        [2, 0, 1, 0],
        [3, 1, 2, 0],
    ]
    assert (
        repr(data)
        == "<sapwood.Dataset of 4 rows and 2 columns of every value, with label>"
    )
    assert data.fingerprint() == Dataset(X, label=[0, 1, 2, 3]).fingerprint()
    data.save(tmp_path / "data")
    again = Dataset.load(tmp_path / "data")
    assert (again.tree_method, again.fingerprint()) == ("exact", data.fingerprint())
    other = Dataset([[1.7, 0.0]], reference=again)
    assert (other.tree_method, other.binned.codes(0).tolist()) == ("exact", [1])


def test_codes_beyond_16_bits_are_saved(tmp_path: Path) -> None:
    data = Dataset(np.arange(70_000.0)[:, None], tree_method="exact")
    data.save(tmp_path / "data")
    again = Dataset.load(tmp_path / "data")
    assert np.array_equal(again.binned.codes(0), np.arange(70_000))
    assert again.fingerprint() == data.fingerprint()


def test_files_without_a_tree_method_are_histograms(tmp_path: Path) -> None:
    data = Dataset(np.arange(9.0)[:, None])
    data.save(tmp_path / "data")
    arrays, fields = container.unpack(
        (tmp_path / "data").read_bytes(), KIND, VERSION, DataError
    )
    writing.write(
        tmp_path / "old",
        container.pack(
            KIND,
            VERSION,
            arrays,
            {k: v for k, v in fields.items() if k != "tree_method"},
        ),
    )
    old = Dataset.load(tmp_path / "old")
    assert (old.tree_method, old.fingerprint()) == ("hist", data.fingerprint())


def test_training_continues() -> None:
    X, y, _ = datasets.protein()
    data = Dataset(X, label=y, tree_method="exact")
    ten, five = (
        {"objective": "squared_error", "n_estimators": n, "subsample": 0.6}
        for n in (10, 5)
    )
    whole = sapwood.train(ten, data)
    assert (
        sapwood.train(five, data, init_model=sapwood.train(five, data)).to_bytes()
        == whole.to_bytes()
    )


def test_estimators_pass_it_on() -> None:
    X, y, _ = datasets.protein()
    exact = SapwoodRegressor(n_estimators=5, tree_method="exact").fit(X, y).booster_
    assert_equal(
        exact, SapwoodRegressor(n_estimators=5, max_bins=65535).fit(X, y).booster_
    )
    assert exact.params["tree_method"] == "exact"


def test_what_does_not_fit_together_is_refused() -> None:
    X = np.arange(20.0)[:, None]
    y = np.arange(20.0)
    with pytest.raises(
        ParameterError,
        match="max_bins=64 is not for tree_method='exact', which has no bins",
    ):
        Dataset(X, tree_method="exact", max_bins=64)
    with pytest.raises(
        ParameterError, match="min_samples_bin=1 is not for tree_method='exact'"
    ):
        SapwoodRegressor(tree_method="exact", min_samples_bin=1).fit(X, y)
    with pytest.raises(
        ParameterError,
        match="tree_method='approx' is not available: bins are computed once",
    ):
        Dataset(X, tree_method="approx")
    once = Dataset(X, label=y)
    sapwood.train({"n_estimators": 1}, once)
    with pytest.raises(
        ParameterError, match="tree_method='exact', but the data was made with 'hist'"
    ):
        sapwood.train({"tree_method": "exact"}, once)
    wide = Dataset(np.tile(X, 6), label=y, tree_method="exact")
    for name, rule in (("extra_trees", True), ("forced_splits", FORCED)):
        with pytest.raises(
            ParameterError, match=f"{name} is not for tree_method='exact'; use"
        ):
            sapwood.train({name: rule}, wide)
    with pytest.raises(DataError, match="tree_method is neither"):
        _checked(
            {},
            {
                "n_rows": 1,
                "feature_names": ["a"],
                "named": True,
                "max_bins": 2,
                "min_samples_bin": 1,
                "tree_method": "approx",
                "linear_leaves": False,
                "zero_as_missing": False,
            },
            {},
        )
    assert resolve({"tree_method": "auto"})["tree_method"] == "hist"
