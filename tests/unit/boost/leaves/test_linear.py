"""Linear leaves in training: what they fit, what goes with them, and what is
refused.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood
from law.rows import numbers
from law.tasks import SHAPE
from sapwood import Dataset
from sapwood.device import host
from sapwood.errors import DataError, ParameterError
from sapwood.model import Booster


def rows(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Four columns, some values missing, and a label that is linear on either side of
    0.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(n) < 0.1, 2] = np.nan
    y = (
        np.where(X[:, 0] > 0, 3 * X[:, 0] - X[:, 1], X[:, 1])
        + np.nan_to_num(X[:, 2])
        + 0.1 * rng.normal(size=n)
    )
    return X, y


def fitted(X: Any, y: Any, valid: Any = None, **params: Any) -> Booster:
    data = Dataset(X, y, linear_leaves=True)
    held = None if valid is None else Dataset(*valid, reference=data)
    return sapwood.train(
        {"n_estimators": 6, "max_depth": 4, **params}, data, valid=held
    )


def test_a_line_is_found() -> None:
    """Two leaves, no penalty, rate 1: in each the line by least squares, on the column
    that was split.
    """
    x = np.arange(-50, 50.0)
    y = np.where(x < 0, 2 * x, 100 + 7 * x) + np.sin(x)
    X = np.column_stack([x, np.ones(100)])
    booster = fitted(
        X,
        y,
        max_depth=1,
        n_estimators=2,
        learning_rate=1.0,
        reg_lambda=0.0,
        linear_smooth=0.0,
    )
    first = booster.trees.slice(0, 1)
    second = booster.trees.slice(1, 2)
    # the first round has constant leaves
    assert first.linear is not None and len(first.linear.linear_coef) == 0
    assert second.linear is not None
    leaves = booster.predict_leaves(X)[:, 1]
    rest = y - booster.predict(X, rounds=1)
    for leaf in (1, 2):
        terms = second.linear.slice(leaf, leaf + 1)
        slope, constant = np.polyfit(x[leaves == leaf], rest[leaves == leaf], 1)
        assert terms.linear_column.tolist() == [-1, 0]
        np.testing.assert_allclose(terms.linear_coef, [constant, slope], rtol=1e-7)


def test_missing_and_infinite_values_take_the_constant() -> None:
    X, y = rows()
    booster = fitted(X, y)
    odd = np.repeat(X[~np.isnan(X).any(axis=1)][:1], 5, axis=0)
    odd[1:, 2], odd[4, 0] = [np.nan, np.inf, -np.inf, 1.0], 1e308
    leaves = booster.predict_leaves(odd)
    constants = booster.base[0] + np.zeros(5)
    for tree in range(booster.trees.n_trees):
        constants += booster.trees.slice(tree, tree + 1).value[leaves[:, tree]]
    scores = booster.predict(odd)
    asks = [
        2 in booster.trees.slice(t, t + 1).column for t in range(booster.trees.n_trees)
    ]
    assert all(asks[1:])  # else a row with a missing value could be complete in a tree
    assert scores[0] != constants[0]
    assert np.isfinite(scores).all()


def test_validation_scores_are_predictions() -> None:
    """In every way of boosting; the metrics are means of squares, rounded in another
    order.
    """
    X, y = rows()
    new = rows(300, 1)
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "dart": {"boosting": "dart", "rate_drop": 0.5, "skip_drop": 0.0},
        "forest": {"boosting": "forest", "subsample": 0.6},
        "parallel": {"n_parallel_trees": 3, "subsample": 0.6},
        "exact": {},
        "pruned": {"ccp_alpha": 0.01},
        "post": {"pruning": "post", "min_split_gain": 0.5},
        "judged": {"prune_by_validation": True},
    }
    for way, params in ways.items():
        data = Dataset(
            X, y, linear_leaves=True, tree_method="exact" if way == "exact" else "hist"
        )
        settings = {"n_estimators": 6, "max_depth": 4, **params}
        booster = sapwood.train(settings, data, valid=Dataset(*new, reference=data))
        assert booster.linear, way
        errors = [
            np.sqrt(np.mean((p - new[1]) ** 2)) for p in booster.staged_predict(new[0])
        ]
        # later rounds change the weights of earlier ones
        since = 5 if way == "dart" else 0
        np.testing.assert_allclose(
            booster.history["valid"]["rmse"][since:], errors[since:], rtol=1e-14
        )


def test_blocks_rows_and_files_predict_the_same_bits(tmp_path: Path) -> None:
    X, y = rows(600)
    for policy in ("leafwise", "symmetric"):
        booster = fitted(X, y, grow_policy=policy)
        all_rows = booster.predict(X, n_jobs=2)
        np.testing.assert_array_equal(
            np.concatenate([booster.predict(X[i : i + 1]) for i in range(600)]),
            all_rows,
        )
        np.testing.assert_array_equal(booster.predict(np.asfortranarray(X)), all_rows)
        booster.save(tmp_path / "model")
        again = sapwood.load(tmp_path / "model")
        assert again.fingerprint() == booster.fingerprint()
        np.testing.assert_array_equal(again.predict(X), all_rows)
        both = (
            booster.predict(X, rounds=3)
            + booster.predict(X, rounds=(3, 6))
            - booster.base[0]
        )
        np.testing.assert_allclose(both, all_rows, rtol=1e-12)


def test_trees_too_large_for_masks_predict_the_same() -> None:
    X, y = rows(2000)
    booster = fitted(X, y, max_depth=None, max_leaves=400, linear_smooth=1.0)
    assert booster.trees.slice(5, 6).n_nodes > 511
    np.testing.assert_array_equal(booster.predict(X)[:40], booster.predict(X[:40]))


def test_ten_and_ten_rounds_are_twenty() -> None:
    X, y = rows()
    data = Dataset(X, y, linear_leaves=True)
    params = {"n_estimators": 10, "max_depth": 3}
    halves = sapwood.train(params, data, init_model=sapwood.train(params, data))
    assert (
        halves.to_bytes()
        == sapwood.train(params | {"n_estimators": 20}, data).to_bytes()
    )
    with pytest.raises(DataError, match="make the data with linear_leaves=True"):
        sapwood.train(params, Dataset(X, y), init_model=halves)


def test_estimators_holdout_and_folds() -> None:
    X, y = rows()
    model = sapwood.SapwoodRegressor(
        linear_leaves=True, n_estimators=30, early_stopping_rounds=5
    ).fit(X, y)
    assert model.booster_.linear and model.booster_.params["linear_leaves"] is True
    measured = sapwood.cv(
        {"n_estimators": 5}, Dataset(X, y, linear_leaves=True), n_folds=3
    )["rmse_mean"]
    constant = sapwood.cv({"n_estimators": 5}, Dataset(X, y), n_folds=3)["rmse_mean"]
    assert measured[0] == constant[0] and measured[-1] < constant[-1]


def test_a_dataset_keeps_and_saves_its_values(tmp_path: Path) -> None:
    X, y = rows()
    data = Dataset(X, y, linear_leaves=True)
    assert data.values is not None and not data.values.flags.writeable
    data.save(tmp_path / "data")
    again = Dataset.load(tmp_path / "data")
    assert again.fingerprint() == data.fingerprint() != Dataset(X, y).fingerprint()
    X[0, 0] = 5.0  # the dataset has its own copy
    assert data.values[0, 0] != 5.0
    params = {"n_estimators": 4}
    assert (
        sapwood.train(params, again).to_bytes()
        == sapwood.train(params, data).to_bytes()
    )
    assert Dataset(X, reference=data).values is not None


def test_models_without_linear_leaves_say_nothing_of_them() -> None:
    X, y = rows()
    booster = sapwood.train({"n_estimators": 2}, Dataset(X, y))
    assert not booster.linear and not any(
        name.startswith("linear") for name in booster.params
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"objective": "absolute_error"},
            "those of objective='absolute_error' are 'exact' here",
        ),
        ({"leaf_estimation": "sign"}, "needs leaves of one Newton step"),
        (
            {"leaf_iterations": 3},
            "leaf_iterations=3 cannot be kept by linear_leaves=True",
        ),
        ({"line_search": "tree"}, "line_search='tree' cannot be kept"),
        ({"max_delta_step": 1.0}, r"max_delta_step=1.0 cannot be kept"),
        ({"monotone_constraints": {0: 1}}, "monotone_constraints=.* cannot be kept"),
        (
            {"linear_tree": False},
            "linear_tree=False .linear_leaves., but the data was made with True",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    params: dict[str, Any], message: str
) -> None:
    X, y = rows(50)
    with pytest.raises(ParameterError, match=message):
        fitted(X, y, **params)


def test_what_needs_linear_leaves_is_refused_without() -> None:
    X, y = rows(50)
    for params in ({"linear_lambda": 1.0}, {"linear_smooth": 3.0}):
        with pytest.raises(ParameterError, match="is for linear_leaves=True"):
            sapwood.train(params, Dataset(X, y))
    used = Dataset(X, y)
    # after its first training the table is gone, and values cannot be kept any more
    sapwood.train({}, used)
    with pytest.raises(
        ParameterError,
        match=r"linear_tree=True .linear_leaves., but the data was made with False",
    ):
        sapwood.train({"linear_tree": True}, used)
    with pytest.raises(ParameterError, match="leaves of this model are linear"):
        fitted(X, y).check_constraints()


def test_branches() -> None:
    """The columns above each leaf, once each, rising; a tree without a split has
    none.
    """
    left = np.array([1, 3, 0, 0, 5, 0, 0], np.int32)
    column = np.array([2, 0, -1, -1, 2, -1, -1], np.int32)
    by_set = np.full(7, -1, np.int32)
    offset, found = host.branches(left, column, by_set)
    assert offset.tolist() == [0, 1, 3, 5, 7] and found.tolist() == [
        2,
        0,
        2,
        0,
        2,
        0,
        2,
    ]
    by_set[1] = 0  # column 0 is one of categories
    assert host.branches(left, column, by_set)[1].tolist() == [2, 2, 2, 2]
    assert host.branches(left[2:3], column[2:3], by_set[2:3])[0].tolist() == [0, 0]
    with pytest.raises(ValueError, match="children follow"):
        host.branches(left[:5], column[:5], by_set[:5])


def test_categories_split_but_have_no_coefficient(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    kind = rng.choice(["a", "b", "c", "d", "e", "f"], 900)
    x = rng.normal(size=900).astype(np.float32)
    y = np.where(np.isin(kind, ["a", "c", "e"]), 4 * x, 3 - x)
    X = pd.DataFrame(
        {"kind": kind, "x": x, "more": rng.normal(size=900).astype(np.float32)}
    )
    X.loc[::50, "kind"] = None
    data = Dataset(X, y, linear_leaves=True)
    # categories take no room from numbers
    assert data.values is not None and data.values.dtype == np.float32
    booster = sapwood.train(
        {"n_estimators": 8, "max_leaves": 6, "min_data_per_group": 10}, data
    )
    assert booster.trees.linear is not None and (booster.trees.set >= 0).any()
    assert set(booster.trees.linear.linear_column.tolist()) <= {-1, 1, 2}
    data.save(tmp_path / "data")
    assert Dataset.load(tmp_path / "data").fingerprint() == data.fingerprint()
    booster.save(tmp_path / "model")
    predicted = booster.predict(X)
    np.testing.assert_array_equal(
        sapwood.load(tmp_path / "model").predict(X), predicted
    )
    rows_ = np.concatenate([booster.predict(X.iloc[i : i + 1]) for i in range(60)])
    np.testing.assert_array_equal(rows_, predicted[:60])
    again = sapwood.train(
        {"n_estimators": 8, "max_leaves": 6, "min_data_per_group": 10},
        Dataset.load(tmp_path / "data"),
    )
    assert again.to_bytes() == booster.to_bytes()


@pytest.mark.parametrize("units", ["raw", "standard"])
def test_validation_rows_beside_combinations_of_categories(units: str) -> None:
    """Lines read the values of the validation rows, which the table with combinations
    does not have.
    """
    rng = np.random.default_rng(4)
    kinds = [rng.choice(list("abcdefghijkl"), 600) for _ in range(2)]
    x = rng.normal(size=600)
    y = (
        x * (kinds[0] < "f")
        + (kinds[0] < "e") * (kinds[1] < "h")
        + 0.1 * rng.normal(size=600)
    )
    X = pd.DataFrame({"x": x, "one": kinds[0], "two": kinds[1]})
    given = {
        "category_encoding": "ordered",
        "max_combination": 2,
        "linear_units": units,
    }
    booster = fitted(X[:400], y[:400], (X[400:], y[400:]), **given)
    assert booster.linear and len(booster.combinations)
    rmse = np.sqrt(np.mean((booster.predict(X[400:]) - y[400:]) ** 2))
    assert booster.history["valid"]["rmse"][-1] == pytest.approx(rmse, rel=1e-12)


def test_a_weight_of_two_is_a_row_twice() -> None:
    params, (X, y, w) = SHAPE, numbers("squared_error", 3_000, "whole")
    assert w is not None
    again = np.repeat(np.arange(len(y)), w.astype(int))
    weighted, repeated = (
        sapwood.train(params, Dataset(*rows, linear_leaves=True))
        for rows in ((X, y, w), (X[again], y[again]))
    )
    assert (
        weighted.linear
        and weighted.trees.linear is not None
        and repeated.trees.linear is not None
    )
    for mine, other in zip(
        weighted.trees.linear.terms, repeated.trees.linear.terms, strict=True
    ):
        np.testing.assert_array_equal(mine, other)


STANDARD = {"linear_units": "standard"}
POLICIES = ("leafwise", "depthwise", "symmetric")


def skewed(n: int, seed: int, spread: float = 1.5) -> tuple[Any, Any]:
    """Columns with long tails, some values missing, and a label that grows like a
    logarithm.
    """
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0.0, spread, (n, 5))
    y = (
        2 * np.log(X[:, 0])
        + np.sin(X[:, 1])
        + np.sqrt(X[:, 2])
        + 0.2 * rng.normal(size=n)
    )
    X[rng.random((n, 5)) < 0.02] = np.nan
    return X, y


@pytest.mark.parametrize("policy", POLICIES)
def test_raw_units_explode_where_standard_units_do_not(policy: str) -> None:
    X, y = skewed(4000, 0)
    new, label = skewed(2000, 1, spread=3.0)
    given = {"grow_policy": policy, "n_estimators": 60, "max_depth": 6}
    raw = fitted(X, y, **given)
    bounded = fitted(X, y, **given, **STANDARD)
    plain = sapwood.train(given, Dataset(X, y))
    error = [
        float(np.sqrt(np.nanmean((one.predict(new) - label) ** 2)))
        for one in (plain, raw, bounded)
    ]
    assert error[1] > 3 * error[0]
    assert error[2] < 1.05 * error[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_far_outside_are_rows_at_the_bounds(policy: str) -> None:
    """Beyond every threshold and bound, more makes no difference, and predictions are
    bounded by those of a box.
    """
    X, y = skewed(3000, 2)
    booster = fitted(X, y, grow_policy=policy, n_estimators=30, **STANDARD)
    assert booster.trees.linear is not None
    low, high, mean = booster.trees.linear.linear_bounds.reshape(-1, 3).T
    assert (np.nanmin(X, axis=0) <= low).all() and (high <= np.nanmax(X, axis=0)).all()
    assert (low < mean).all() and (mean < high).all()
    rng = np.random.default_rng(3)
    far = np.where(rng.random((500, 5)) < 0.5, -1e300, 1e300)
    for factor in (np.inf, 1e-200):
        np.testing.assert_array_equal(
            booster.predict(far * factor), booster.predict(far)
        )
    ends = np.where(far > 0, np.nanmax(X, axis=0), np.nanmin(X, axis=0))
    np.testing.assert_array_equal(booster.predict(ends), booster.predict(far))
    bound = abs(booster.base[0]) + sum(
        largest(booster, tree) for tree in range(booster.trees.n_trees)
    )
    assert np.abs(booster.predict(far)).max() <= bound
    assert bound < 100 * np.abs(y).max()


def largest(booster: Booster, tree: int) -> float:
    """The largest absolute value that a leaf of a tree can have."""
    one = booster.trees.slice(tree, tree + 1)
    assert one.linear is not None
    offset, column, coef, bounds = one.linear.terms
    ends = np.abs(bounds.reshape(-1, 3)).max(axis=1)[column] * (column >= 0) + (
        column < 0
    )
    terms = [float((np.abs(coef) * ends)[a:b].sum()) for a, b in pairwise(offset)]
    return max(float(np.abs(one.value).max()), *terms)


def test_a_missing_value_is_the_mean() -> None:
    X, y = rows()
    booster = fitted(X, y, **STANDARD)
    assert booster.trees.linear is not None
    offset, column, coef, bounds = booster.trees.linear.terms
    mean = bounds.reshape(-1, 3)[:, 2]
    leaf = next(
        node
        for node in np.flatnonzero(np.diff(offset))
        if 2 in column[offset[node] : offset[node + 1]]
    )
    terms = slice(offset[leaf] + 1, offset[leaf + 1])
    row = np.full((1, 4), np.nan)
    value = coef[offset[leaf]]
    for c, b in zip(column[terms], coef[terms], strict=True):
        value = value + b * mean[c]
    own = booster.trees.linear.slice(leaf, leaf + 1)
    got = sapwood._core.linear_values(
        row, np.zeros(1, np.int32), np.zeros(1), *own.terms, 1
    )
    assert got[0] == value


def test_standard_units_do_not_depend_on_the_unit() -> None:
    """A column times a power of two gives the same predictions; raw units with a
    penalty do not.
    """
    X, y = rows()
    wide = X * [8.0, 0.25, 1.0, 1024.0]
    a, b = (fitted(one, y, **STANDARD).predict(one) for one in (X, wide))
    np.testing.assert_array_equal(a, b)
    c, d = (fitted(one, y, linear_lambda=1.0).predict(one) for one in (X, wide))
    assert (c != d).any()


def test_standard_units_continue_stop_and_come_back(tmp_path: Path) -> None:
    """10 and 10 rounds are 20; held-out rows do not count; files, blocks and single
    rows predict the same bits.
    """
    X, y = rows(1500)
    data = Dataset(X, y, linear_leaves=True)
    given = {"max_depth": 4, **STANDARD}
    whole = sapwood.train({**given, "n_estimators": 20}, data)
    half = sapwood.train({**given, "n_estimators": 10}, data)
    assert (
        sapwood.train({**given, "n_estimators": 10}, data, init_model=half).to_bytes()
        == whole.to_bytes()
    )
    with pytest.raises(ParameterError, match="linear_units='standard'; set the same"):
        sapwood.train({"max_depth": 4}, data, init_model=half)
    other = sapwood.train(
        {"n_estimators": 3}, Dataset(X + 1.0, y, reference=data), init_model=None
    )
    with pytest.raises(ParameterError, match="linear_units='raw'; set the same"):
        sapwood.train(given, data, init_model=other)
    weight = np.repeat([1.0, 0.0], [1200, 300])
    moved = np.where(weight[:, None] > 0, X, 1e6 * X)
    kept, odd = (
        sapwood.train(
            {**given, "n_estimators": 5},
            Dataset(one, y, weight=weight, linear_leaves=True),
        )
        for one in (X, moved)
    )
    assert kept.trees.linear is not None and odd.trees.linear is not None
    np.testing.assert_array_equal(
        kept.trees.linear.linear_bounds, odd.trees.linear.linear_bounds
    )
    whole.save(tmp_path / "model")
    again = sapwood.load(tmp_path / "model")
    wanted = whole.predict(X)
    np.testing.assert_array_equal(again.predict(X), wanted)
    np.testing.assert_array_equal(
        [again.predict(X[i : i + 1])[0] for i in range(40)], wanted[:40]
    )
    with pytest.raises(ParameterError, match="linear_leaves=True"):
        sapwood.train(STANDARD, Dataset(X, y))


def test_vector_leaves_have_standard_units() -> None:
    X, y = rows(1200)
    label = np.digitize(y, [-1.0, 1.0])
    given = {
        "objective": "softmax",
        "multi_strategy": "multi_output_tree",
        "leaf_estimation": "newton",
        **STANDARD,
    }
    for policy in POLICIES:
        booster = fitted(X, label, grow_policy=policy, **given)
        assert booster.linear
        far = booster.predict(np.full((1, 4), 1e300))
        np.testing.assert_array_equal(
            far, booster.predict(np.full((1, 4), np.nanmax(X, axis=0)))
        )


def test_a_weight_of_two_is_a_row_twice_in_standard_units() -> None:
    X, y = rows()
    weight = np.random.default_rng(4).integers(1, 4, len(y)).astype(np.float64)
    many = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = sapwood.train(
        {"n_estimators": 5, **STANDARD},
        Dataset(X, y, weight=weight, linear_leaves=True),
    )
    repeated = sapwood.train(
        {"n_estimators": 5, **STANDARD}, Dataset(X[many], y[many], linear_leaves=True)
    )
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("encoding", ["ordered", "both"])
def test_linear_leaves_beside_statistics_of_categories(
    encoding: str, policy: str
) -> None:
    """Numbers have slopes, statistics split; the scores of validation rows are
    predictions.
    """
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"x": rng.normal(size=1500), "city": rng.integers(0, 200, 1500).astype(str)}
    )
    effect = rng.normal(size=200)
    y = (
        np.sin(2 * frame["x"]) * 3
        + effect[frame["city"].astype(int)]
        + 0.1 * rng.normal(size=1500)
    )
    given = {
        "category_encoding": encoding,
        "grow_policy": policy,
        "n_permutations": 2,
        "n_estimators": 40,
        "max_depth": 4,
    }
    loss = {}
    for linear in (False, True):
        data = Dataset(
            frame[:1000], y[:1000], linear_leaves=linear, categorical_features=["city"]
        )
        new = Dataset(frame[1000:], y[1000:], reference=data)
        booster = sapwood.train(given | (STANDARD if linear else {}), data, valid=new)
        assert booster.linear == linear and (booster.trees.set >= 0).any()
        loss[linear] = booster.history["valid"]["rmse"][-1]
        wanted = np.sqrt(np.mean((booster.predict(frame[1000:]) - y[1000:]) ** 2))
        np.testing.assert_allclose(loss[linear], wanted, rtol=1e-12)
        again = sapwood.load(booster.to_bytes())
        np.testing.assert_array_equal(again.predict(frame), booster.predict(frame))
    assert loss[True] < loss[False]
