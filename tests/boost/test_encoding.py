"""What 'auto' makes of columns of categories: by how many there are, and how many rows each has."""

from typing import Any

import numpy as np
import pytest

import reference
import reference_encode
import reference_statistics
import sapwood
from sapwood.boost.encoding import of_columns
from sapwood.errors import ParameterError
from sapwood.params import resolve
from test_reference import POLICIES, assert_bits

N = 3400


def data_of(weight: Any = None) -> sapwood.Dataset:
    """Columns of 4, 32, 34 and 40 categories: 850, 106, 100 and 85 rows each."""
    codes = np.array([np.arange(N) % n for n in (4, 32, 34, 40)]).T
    y = np.sin(codes[:, 3]) + 0.1 * np.random.default_rng(0).normal(size=N)
    return sapwood.Dataset(codes.astype(str).astype(object), y, weight, categorical_features="auto")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("auto", ["onehot", "partition", "partition", "ordered"]),
        ("partition", ["onehot", "partition", "partition", "partition"]),
        ("both", ["onehot", "both", "both", "both"]),
    ],
)
def test_rule(given: str, expected: list[str]) -> None:
    assert list(of_columns(resolve({"category_encoding": given}), data_of()).values()) == expected


def test_rows_of_weight_0_do_not_count() -> None:
    weight = np.r_[np.ones(3200), np.zeros(200)]
    found = of_columns(resolve({"category_encoding": "auto"}), data_of(weight))
    assert list(found.values()) == ["onehot", "partition", "ordered", "ordered"]  # 32 are not many


def test_the_default_takes_sets() -> None:
    assert "ordered" not in of_columns(resolve({}), data_of()).values()


def test_one_column_by_statistics_beside_others_by_sets() -> None:
    """The 40 categories are told apart as well as by statistics alone, and splits of the others are by sets too."""
    booster = sapwood.train({"category_encoding": "auto", "n_estimators": 20, "n_jobs": 1}, data_of())
    split = booster.trees.column[booster.trees.left > 0]
    assert {3} < set(split.tolist())
    assert booster.params["category_encoding"] == "auto"
    models = {sapwood.train({"category_encoding": how, "n_estimators": 3}, data_of()).fingerprint()
              for how in ("auto", "partition", "ordered")}  # fmt: skip
    assert len(models) == 3


def test_refuses_what_statistics_refuse() -> None:
    with pytest.raises(ParameterError, match="pruning is not for category_encoding='auto'"):
        sapwood.train({"category_encoding": "auto", "pruning": "post", "n_estimators": 1}, data_of())


@pytest.mark.parametrize("policy", POLICIES)
def test_reference(policy: str) -> None:
    """A number, 12 categories by sets, 40 by statistics: the specification of both together, bit for bit."""
    rng = np.random.default_rng(3)
    x, dozen, many = rng.normal(size=300), rng.integers(0, 12, 300), rng.integers(0, 40, 300)
    y = x + np.sin(many) + (dozen % 3) + 0.3 * rng.normal(size=300)
    texts = [[f"v{code:02}" for code in codes] for codes in (dozen, many)]
    data = sapwood.Dataset(np.array([x, *texts], object).T, y, categorical_features=[1, 2], min_samples_bin=1)
    params = {"grow_policy": policy, "max_depth": 4, "n_estimators": 6, "learning_rate": 0.3, "min_samples_leaf": 1,
              "min_child_weight": 0.0, "n_permutations": 2, "min_data_per_group": 5}  # fmt: skip
    booster = sapwood.train(params | {"category_encoding": "auto", "random_state": 7}, data)

    codes, w = data.binned.codes(2).astype(np.int32), reference.weights(None, 300)
    orders = [reference_encode.order(7, which, None, 300) for which in range(3)]
    kept = [x, data.binned.codes(1).astype(np.float64)]
    tables = [np.array([*kept, *reference_statistics.statistics(codes, y, [], None, order)]).T for order in orders]
    cut = [reference.cuts(x, w, 255, 1), np.empty(0), *(reference.cuts(one, w, 255, 1) for one in tables[0].T[2:])]
    told = params | {"objective": "squared_error", "seed": 7, "n_categories": [0, 12, 0, 0, 0, 0]}
    expected, base = reference_statistics.train(tables, cut, y, told, None)
    assert_bits(np.asarray(booster.base), base, "start")
    for name in ("left", "value", "gain", "cover", "count"):
        assert_bits(getattr(booster.trees, name), np.concatenate([tree[name] for tree in expected]), name)
    column = np.concatenate([tree["column"] for tree in expected])
    assert {1, 2} <= set(booster.trees.column.tolist())
    assert booster.trees.column.tolist() == np.minimum(column, 2).tolist()
