"""Splits by statistics: known, missing and new categories go where the statistics of
all rows say, in every part.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from sapwood import Booster, Dataset
from sapwood.boost.categories.combinations import single
from sapwood.data import target_statistics as ts
from sapwood.model.combinations import Combinations
from sapwood.model.trees import Trees
from spec.helpers import assert_bits
from spec.reference import encoded_training, explain
from spec.reference import target_statistics as target_statistics_spec

Floats = NDArray[np.float64]
SMALL: dict[str, Any] = {
    "n_estimators": 6,
    "max_depth": 3,
    "min_child_weight": 0.0,
    "learning_rate": 0.3,
    "min_samples_leaf": 1,
    "category_encoding": "ordered",
    "objective": "logistic",
}


def rows(n: int = 300, seed: int = 0) -> tuple[NDArray[Any], Floats]:
    """Text of 9 values, missing in a few rows, which are all of one class; a number."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 9, n)
    x = rng.normal(size=n)
    y = (rng.random(n) < np.where(code % 3 == 0, 0.8, 0.3)).astype(np.float64)
    X = np.array([[f"v{c}" for c in code], x], object).T
    X[:, 1] = x
    X[:7, 0], y[:7] = None, 1.0
    return X, y


def strange(X: NDArray[Any]) -> NDArray[Any]:
    """The same with new values and more missing ones."""
    X = X.copy()
    X[::5, 0], X[1::7, 0] = "new", None
    return X


def data_of(X: Any, y: Any, **more: Any) -> Dataset:
    return Dataset(X, y, categorical_features=[0], min_samples_bin=1, **more)


@pytest.fixture(scope="module", params=["leafwise", "symmetric"])
def booster(request: pytest.FixtureRequest) -> Booster:
    model = sapwood.train(SMALL | {"grow_policy": request.param}, data_of(*rows()))
    assert (model.trees.missing_left > 1).any()
    return model


def later(
    code: NDArray[np.int32], y: Floats, weight: Floats | None, n_codes: int
) -> Floats:
    """By the reference: the statistics (n, n_codes + 2) of codes, of missing values and
    of new ones, from all rows.
    """
    n = n_codes + 2
    given = np.append(np.ones(len(y)) if weight is None else weight, np.zeros(n))
    codes = np.append(code, np.arange(n, dtype=np.int32))
    label = np.append(y, np.zeros(n))
    found = encoded_training.statistics(
        codes, label, [0.5], given, np.flatnonzero(given)
    )
    return np.array(found)[:, len(y) :]


@st.composite
def tasks(draw: st.DrawFn) -> tuple[NDArray[Any], Floats, Floats | None, str]:
    """Categories, a few or none of them missing; labels, weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(30, 120))
    many = draw(st.integers(5, 12))
    X = np.array([f"v{c}" for c in rng.integers(0, many, n)], object)[:, None]
    X[rng.choice(n, draw(st.integers(0, 4)), replace=False), 0] = None
    y = (rng.random(n) < 0.5).astype(np.float64)
    weight = rng.integers(0, 3, n).astype(np.float64) if draw(st.booleans()) else None
    return X, y, weight, draw(st.sampled_from(["leafwise", "symmetric", "depthwise"]))


@settings(max_examples=examples(40), deadline=None)
@given(tasks())
def test_every_split_is_one_of_a_statistic(task: Any) -> None:
    """Known, missing and new ones alike: left if the statistic of all rows that count
    is at most the cut.
    """
    X, y, weight, policy = task
    data = data_of(X, y, weight=weight)
    booster = sapwood.train(
        SMALL | {"grow_policy": policy, "max_cat_to_onehot": 1}, data
    )
    n = data.n_bins[0]
    values = later(data.binned.codes(0).astype(np.int32), y, weight, n)
    sides = values[:, None, :] <= np.arange(1, 16)[:, None] / 16
    possible = {one.tobytes() for one in sides.reshape(-1, n + 2)}
    trees = booster.trees
    for node in np.flatnonzero(trees.left).tolist():
        left = np.zeros(n + 2, bool)
        left[trees.codes(node)] = True
        left[n:] = trees.missing_left[node] & 1, trees.new_left[node]
        assert left.tobytes() in possible
    met = (data.binned.codes(0) == n)[
        slice(None) if weight is None else weight > 0
    ].any()
    # missing values that training has not met are new
    assert met or (trees.missing_left <= 1).all()
    assert not len(booster.combinations) and booster.internal_names == ("f0",)
    states = np.array([*booster.categories[0].values, None, "new"], object)[:, None]
    codes = [*range(len(states) - 2), -1, -2]
    walk = leaves_of(trees, codes)
    assert booster.predict_leaves(states).tolist() == walk
    many = booster.predict_leaves(np.repeat(states, 64, axis=0))
    assert many[::64].tolist() == walk
    assert_bits(
        np.repeat(booster.predict(states), 64),
        booster.predict(np.repeat(states, 64, axis=0)),
        "blocks",
    )


def leaves_of(trees: Trees, codes: list[int]) -> list[list[int]]:
    """The leaf of every code in every tree, from the root down."""
    found = []
    for code in codes:
        ends = []
        for first in trees.offset[:-1].tolist():
            node = 0
            while trees.left[first + node]:
                at = first + node
                left = {-1: trees.missing_left[at] & 1, -2: trees.new_left[at]}.get(
                    code, code in trees.codes(at)
                )
                node = int(trees.left[at]) + (not left)
            ends.append(node)
        found.append(ends)
    return found


def test_watched_rows_and_files(booster: Booster, tmp_path: Path) -> None:
    X, y = rows()
    data = data_of(X, y)
    params = SMALL | {"grow_policy": booster.params["grow_policy"]}
    watched = sapwood.train(params, data, valid=Dataset(strange(X), y, reference=data))
    assert watched.to_bytes() == booster.to_bytes()
    p = booster.predict(strange(X))
    loss = -np.mean(np.where(y == 1, np.log(p), np.log(1 - p)))
    assert watched.history["valid"]["logloss"][-1] == pytest.approx(loss, rel=1e-12)
    again = sapwood.load(booster.to_bytes())
    assert again.to_bytes() == booster.to_bytes()
    assert_bits(again.predict(strange(X)), p, "loaded")


def test_a_training_goes_on(booster: Booster) -> None:
    """New rows of weight 0, and those of a validation set, start where the model has
    them.
    """
    X = strange(rows()[0])
    y = rows()[1]
    data = Dataset(
        X, y, weight=(X[:, 0] != "new").astype(np.float64), reference=data_of(*rows())
    )
    more = sapwood.train(
        {"objective": "logistic", "n_estimators": 3, "category_encoding": "partition"},
        data,
        init_model=booster,
        valid=Dataset(X, y, reference=data),
    )
    p = more.predict(X)
    loss = -np.mean(np.where(y == 1, np.log(p), np.log(1 - p)))
    assert more.history["valid"]["logloss"][-1] == pytest.approx(loss, rel=1e-12)
    assert_bits(more.predict(X, rounds=6), booster.predict(X), "before")


def test_explanations(booster: Booster) -> None:
    X = strange(rows()[0])
    told = booster.explain(X)
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values,
        booster.predict(X, raw=True),
        atol=1e-9,
    )
    assert_bits(
        told.values[:40],
        explain.values(booster.trees, 1, told.data[:40])[:, 0],
        "values",
    )
    others = booster.explain(X[:10], background=X[20:40])
    np.testing.assert_allclose(
        others.values.sum(axis=1) + others.base_values,
        booster.predict(X[:10], raw=True),
    )
    assert "or missing, not new" in booster.to_text() or "or new" in booster.to_text()


@pytest.mark.parametrize("encoding", ["ordered", "partition", "both"])
def test_onnx(encoding: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = rows()
    how = {"category_encoding": encoding, "cat_smooth": 1.0, "min_data_per_group": 1}
    booster = sapwood.train(SMALL | how, data_of(X, y))
    assert (booster.trees.missing_left > 1).any() == (encoding != "partition")
    booster.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    known = json.loads(session.get_modelmeta().custom_metadata_map["categories"])["0"]
    X = strange(X)
    X[:, 1] = X[:, 1].astype(np.float32).astype(np.float64)
    places = [
        np.nan if value is None else known.index(value) if value in known else -2.0
        for value in X[:, 0]
    ]
    table = np.column_stack([places, X[:, 1].astype(np.float64)]).astype(np.float32)
    (raw,) = session.run(["raw"], {"X": table})
    np.testing.assert_allclose(
        raw[:, 0], booster.predict(X, raw=True), rtol=2e-6, atol=2e-6
    )


def test_influence(booster: Booster) -> None:
    """Of one round: Newton steps of the rows that the model has in a leaf, without the
    penalty of sets.
    """
    X, y = rows()
    one = sapwood.train(
        SMALL
        | {
            "n_estimators": 1,
            "cat_l2": 9.0,
            "grow_policy": booster.params["grow_policy"],
        },
        data_of(X, y),
    )
    found = one.influence(strange(X), X, y)
    asked = one.predict_leaves(strange(X))[:, 0]
    trained = one.predict_leaves(X)[:, 0]
    p = 1 / (1 + np.exp(-one.base[0]))
    g = p - y
    h = np.full(len(y), p * (1 - p))
    for row in range(20):
        inside = trained == asked[row]
        total = h[inside].sum() + one.params["reg_lambda"]
        expected = -0.3 * (g - g[inside].sum() / total * h) / total
        np.testing.assert_allclose(
            found[row], np.where(inside, expected, 0.0), rtol=1e-9, atol=1e-12
        )


def test_proofs_know_new_categories() -> None:
    """A tree whose number falls for new categories only is not proven, and a row shows
    it.
    """
    X, y = rows()
    booster = sapwood.train(SMALL | {"n_estimators": 1}, data_of(X, y))
    column = np.array([0, 1, -1, -1, -1], np.int32)
    left = np.array([1, 3, 0, 0, 0], np.int32)
    zero = np.zeros(5)
    trees = Trees(
        offset=np.array([0, 5]),
        output=np.zeros(1, np.int32),
        column=column,
        threshold=zero,
        left=left,
        missing_left=np.array([2, 0, 0, 0, 0], np.uint8),
        value=np.array([0.0, 0.0, 0.0, 2.0, 1.0]),
        gain=zero,
        cover=zero,
        count=zero,
        set=np.array([0, -1, -1, -1, -1], np.int32),
        set_offset=np.array([0, 0]),
        set_code=np.empty(0, np.int32),
    )
    verdict = (
        replace(booster, trees=trees)
        .check_constraints(monotone_constraints={1: 1})
        .monotone["f1"]
    )
    assert verdict.holds is False and verdict.rows is not None
    assert (
        verdict.rows[0, 0] not in booster.categories[0].place
        and verdict.rows[0, 0] is not None
    )


def test_files_with_a_combination_of_one_column_load(booster: Booster) -> None:
    """As they were written before: missing is one of its codes, and what is new is
    missing.
    """
    n = booster.categories[0].n_bins
    trees = booster.trees
    by_set = np.flatnonzero(trees.set >= 0)
    sets = [
        np.append(trees.codes(node), [n] * (trees.missing_left[node] & 1)).astype(
            np.int32
        )
        for node in by_set
    ]
    number = np.full(trees.n_nodes, -1, np.int32)
    number[by_set] = np.arange(len(by_set))
    old = replace(
        booster,
        combinations=Combinations.of([([(0, 0.0)], np.arange(n + 1))]),
        trees=replace(
            trees,
            column=np.where(number >= 0, 2, trees.column).astype(np.int32),
            set=number,
            missing_left=np.where(number >= 0, trees.new_left, trees.missing_left),
            set_offset=np.cumsum([0, *map(len, sets)]),
            set_code=np.concatenate(sets),
        ),
    )
    again = sapwood.load(old.to_bytes())
    X = strange(rows()[0])
    assert again.internal_names == ("f0", "f1", "f0")
    assert_bits(again.predict(X), booster.predict(X), "old")


def test_new_ones_of_weight_0_have_the_prior() -> None:
    """In training too, whatever the labels of missing ones say."""
    X, y = rows()
    X[20:30, 0] = "rare"
    weight = np.where((np.arange(len(y)) >= 20) & (np.arange(len(y)) < 30), 0.0, 1.0)
    data = data_of(X, y, weight=weight)
    assert data.unseen[0].tolist() == list(range(20, 30))
    code = single(data, 0)
    target = ts.Target(y, np.array([0.5]), weight)
    order = target_statistics_spec.order(0, 0, weight, len(y))
    found = next(
        ts.ordered([code.codes], [code.size], target, [ts.Statistic()], order, 2)
    )[0]
    assert (found[20:30] == 0.5).all() and found[:7].max() > 0.5
