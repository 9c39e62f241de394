"""What holds of every model with categories: which codes a set may have, and that rows
have no order.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from sapwood import Booster, Dataset

Floats = NDArray[np.float64]
NAMES = (
    "column",
    "threshold",
    "missing_left",
    "left",
    "value",
    "gain",
    "cover",
    "count",
    "set",
    "set_offset",
    "set_code",
)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Floats, Floats, dict[str, Any]]:
    """A number, two columns of categories, some missing; labels; limits on sets."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(30, 150))
    few = draw(st.integers(1, 6))
    many = draw(st.integers(2, 40))
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.integers(0, few, n),
            np.floor(many * rng.random(n) ** 2),
        ]
    )
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    effect = rng.normal(size=many + 1)
    y = (
        effect[np.nan_to_num(X[:, 2], nan=many).astype(int)]
        + np.nan_to_num(X[:, 1])
        + rng.normal(size=n)
    )
    params = {
        "n_estimators": 3,
        "max_leaves": 8,
        "max_depth": 3,
        "grow_policy": draw(st.sampled_from(["depthwise", "leafwise", "symmetric"])),
        "max_cat_to_onehot": draw(st.integers(1, 6)),
        "max_cat_threshold": draw(st.integers(1, 9)),
        "cat_smooth": draw(st.sampled_from([0.0, 2.0])),
        "cat_l2": draw(st.sampled_from([0.0, 3.0])),
        "min_data_per_group": draw(st.integers(1, 9)),
    }
    return X, y, params


def train(
    params: dict[str, Any], X: Floats, y: Floats, weight: Floats | None = None
) -> Booster:
    params = params | {"category_encoding": "partition"}
    return sapwood.train(
        params,
        Dataset(X, y, weight=weight, categorical_features=[1, 2], min_samples_bin=1),
    )


def same(a: Booster, b: Booster) -> bool:
    """Whether every array of the trees has the same bytes."""
    return all(
        getattr(a.trees, name).tobytes() == getattr(b.trees, name).tobytes()
        for name in NAMES
    )


@settings(max_examples=examples(60))
@given(tasks())
def test_sets(task: tuple[Floats, Floats, dict[str, Any]]) -> None:
    X, y, params = task
    booster = train(params, X, y)
    for index in range(booster.trees.n_trees):
        tree = booster.trees.slice(index, index + 1)
        at = np.zeros(len(X), np.int64)
        for node in np.flatnonzero(tree.left):
            rows = at == node
            column = tree.column[node]
            x = X[rows, column]
            goes_left = x <= tree.threshold[node]
            if tree.set[node] >= 0:
                first, last = tree.set_offset[tree.set[node] :][:2]
                codes = tree.set_code[first:last]
                known = np.array(booster.categories[column].values)
                goes_left = np.isin(x, known[codes])
                if params["grow_policy"] != "symmetric":
                    size = len(codes) + bool(
                        tree.missing_left[node] and np.isnan(x).any()
                    )
                    assert np.isin(known[codes], x).all()
                    assert (
                        1
                        <= size
                        <= (
                            params["max_cat_threshold"]
                            if len(known) > params["max_cat_to_onehot"]
                            else 1
                        )
                    )
                assert np.all(np.diff(codes) > 0)
            at[rows] = tree.left[node] + ~np.where(
                np.isnan(x), tree.missing_left[node] == 1, goes_left
            )
        np.testing.assert_array_equal(
            np.bincount(at, minlength=len(tree.left))[tree.left == 0],
            tree.count[tree.left == 0],
        )


@settings(max_examples=examples(25))
@given(tasks(), st.integers(0, 2**32 - 1))
def test_rows_have_no_order_and_a_weight_is_repetition(
    task: tuple[Floats, Floats, dict[str, Any]], seed: int
) -> None:
    X, y, params = task
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, len(y))
    order = rng.permutation(weight.sum())
    again = np.repeat(np.arange(len(y)), weight)[order]
    assert same(
        train(params, X, y, weight.astype(np.float64)),
        train(params, X[again], y[again]),
    )
