"""Explanations: against games played out coalition by coalition, the laws of Shapley
values, and the shap package.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sapwood
from cover import examples
from sapwood import Booster
from sapwood.errors import DataError, ParameterError
from sapwood.model.trees import Trees
from spec.reference import explain as reference

Floats = NDArray[np.float64]
# the promise of the documentation; what is measured is about 1e-14
NEAR = {"rtol": 0, "atol": 1e-9}

GROWERS: dict[str, dict[str, Any]] = {
    "depthwise": {"grow_policy": "depthwise", "max_depth": 4, "max_leaves": None},
    "leafwise": {"grow_policy": "leafwise", "max_leaves": 24, "max_depth": None},
    "symmetric": {"grow_policy": "symmetric", "max_depth": 4, "max_leaves": None},
    "exact": {"tree_method": "exact", "max_depth": 4},
    "dart": {"boosting": "dart", "rate_drop": 0.5},
    "forest": {"boosting": "forest", "subsample": 0.6, "n_parallel_trees": 2},
}


def rows(n: int = 300, width: int = 5, seed: int = 1) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width))
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    return X, Z[:, 0] * Z[:, 1] + (Z[:, 2] > 0) + rng.normal(size=n) * 0.2


def train(X: Floats, y: Floats, **params: Any) -> Booster:
    params = {"n_estimators": 4, "min_child_weight": 0, "max_leaves": 16} | params
    if params.get("boosting") != "forest":
        params["learning_rate"] = 0.3
    return sapwood.train(
        params,
        sapwood.Dataset(X, label=y, tree_method=params.get("tree_method", "hist")),
    )


def classes(y: Floats, n: int) -> Floats:
    return np.searchsorted(np.quantile(y, np.arange(1, n) / n), y).astype(float)


def tree_sum(booster: Booster, row: Floats, by: str = "count") -> Floats:
    """Shapley values of all trees by enumeration, (n_outputs, n_columns)."""
    total = np.zeros((booster.n_outputs, booster.n_columns))
    for index, output in enumerate(booster.trees.output):
        game = reference.path_game(reference.Tree(booster.trees, index, by), row)
        total[output] += reference.enumerate_values(game, booster.n_columns)
    return total / (booster.n_rounds if booster.averaged else 1)


@pytest.mark.parametrize("by", ["count", "cover"])
@pytest.mark.parametrize("grower", GROWERS)
def test_path_dependent_values_are_the_games(grower: str, by: str) -> None:
    X, y = rows()
    booster = train(X, classes(y, 2), objective="logistic", **GROWERS[grower])
    told = booster.explain(X, by=by)
    for i in range(4):
        np.testing.assert_allclose(
            told.values[i], tree_sum(booster, X[i], by)[0], **NEAR
        )
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(X, raw=True), **NEAR
    )


def test_several_outputs() -> None:
    X, y = rows()
    booster = train(X, classes(y, 3), objective="softmax")
    told = booster.explain(X[:20])
    assert told.values.shape == (20, 5, 3)
    assert told.output_names == ("0.0", "1.0", "2.0") or told.output_names == (
        "0",
        "1",
        "2",
    )
    for i in range(3):
        np.testing.assert_allclose(told.values[i].T, tree_sum(booster, X[i]), **NEAR)
    scores = booster.predict(X[:20], raw=True)
    np.testing.assert_allclose(told.contributions().sum(axis=2), scores, **NEAR)


@pytest.mark.parametrize("grower", GROWERS)
def test_background_values_are_the_games(grower: str) -> None:
    X, y = rows()
    booster = train(X, y, **GROWERS[grower])
    others = X[200:217]
    told = booster.explain(X[:40], background=others)
    for i in range(3):
        game = reference.background_game(
            lambda mixed: booster.predict(mixed, raw=True), X[i], others
        )
        np.testing.assert_allclose(
            told.values[i], reference.enumerate_values(game, 5), **NEAR
        )
        assert told.base_values[i] == pytest.approx(game(frozenset()), abs=1e-9)


@pytest.mark.parametrize("against", [False, True], ids=["path", "background"])
@pytest.mark.parametrize("grower", ["leafwise", "symmetric"])
def test_interactions_are_the_games(grower: str, against: bool) -> None:
    X, y = rows()
    booster = train(X, y, n_estimators=1, **GROWERS[grower])
    others = X[200:217] if against else None
    told = booster.explain(X[:30], background=others, interactions=True)
    tree = reference.Tree(booster.trees, 0, "count")
    for i in range(3):
        game = reference.path_game(tree, X[i])
        if others is not None:
            game = reference.background_game(
                lambda mixed: booster.predict(mixed, raw=True), X[i], others
            )
        np.testing.assert_allclose(
            told.values[i], reference.enumerate_interactions(game, 5), **NEAR
        )
    np.testing.assert_allclose(told.values, told.values.swapaxes(1, 2), rtol=0, atol=0)
    np.testing.assert_allclose(
        told.values.sum(axis=2),
        booster.explain(X[:30], background=others).values,
        **NEAR,
    )


@pytest.mark.parametrize("objective", ["logistic", "poisson", "squared_error"])
def test_predictions_and_losses(objective: str) -> None:
    X, y = rows()
    y = classes(y, 2) if objective != "squared_error" else y
    booster = train(X, y, objective=objective)
    others = X[:10]  # among the explained rows: scores that are equal have a tangent
    told = booster.explain(X[:40], background=others, space="prediction")
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(X[:40]), **NEAR
    )
    np.testing.assert_array_equal(
        told.values,
        booster.explain(X[:40], background=others, space="probability").values,
    )
    told = booster.explain(X[:40], background=others, space="loss", y=y[:40])
    score, p = booster.predict(X[:40], raw=True), booster.predict(X[:40])
    t = y[:40]
    loss = {
        "logistic": lambda: -t * np.log(p) - (1 - t) * np.log1p(-p),
        "poisson": lambda: p - t * score,
        "squared_error": lambda: (t - p) ** 2 / 2,
    }[objective]()
    np.testing.assert_allclose(told.values.sum(axis=1) + told.base_values, loss, **NEAR)


def test_losses_of_classes() -> None:
    X, y = rows()
    named = np.where(y > 0.5, "yes", "no")
    booster = sapwood.SapwoodClassifier(n_estimators=4).fit(X, named).booster_
    told = booster.explain(X[:9], background=X[20:30], space="loss", y=named[:9])
    p = np.where(named[:9] == "yes", booster.predict(X[:9]), 1 - booster.predict(X[:9]))
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, -np.log(p), **NEAR
    )


def test_one_tree_of_one_split_in_prediction_space() -> None:
    """With one column known or not, the value is the whole difference of
    predictions.
    """
    X = np.array([[0.0], [1.0]])
    booster = train(
        np.repeat(X, 20, axis=0),
        np.repeat([0.0, 1.0], 20),
        objective="logistic",
        n_estimators=1,
    )
    low, high = booster.predict(X)
    told = booster.explain(X, background=X[:1], space="probability")
    np.testing.assert_allclose(told.values, [[0.0], [high - low]], **NEAR)


def deep(n_columns: int, seed: int = 3) -> Booster:
    """A chain: every split has a leaf, and asks for another column; the deepest leaf
    has them all on its path.
    """
    rng = np.random.default_rng(seed)
    n = 2 * n_columns + 1
    column = np.full(n, -1, np.int32)
    left = np.zeros(n, np.int32)
    weight = np.ones(n)
    for depth in range(n_columns):
        node = 2 * depth
        column[node], left[node] = depth, node + 1
    for node in range(n - 3, -1, -2):
        weight[node + 1], weight[node + 2] = rng.integers(1, 5), weight[node + 2]
        weight[node] = weight[node + 1] + weight[node + 2]
    value = np.where(left == 0, rng.normal(size=n), 0.0)
    zero = np.zeros(n)
    trees = Trees(
        offset=np.array([0, n]),
        output=np.zeros(1, np.int32),
        column=column,
        threshold=zero,
        missing_left=np.zeros(n, np.uint8),
        left=left,
        value=value,
        gain=zero,
        cover=weight,
        count=weight,
    )
    return Booster(
        trees,
        base=np.zeros(1),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=[f"f{i}" for i in range(n_columns)],
        named=False,
        params={},
    )


@pytest.mark.parametrize("n_columns", [9, 17, 40])
def test_long_paths(n_columns: int) -> None:
    """More columns on a path than a pattern has bits: every row is its own entry."""
    booster = deep(n_columns)
    # most rows go far down
    X = np.random.default_rng(4).normal(size=(600, n_columns)) + 1.0
    told = booster.explain(X)
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(X), **NEAR
    )
    np.testing.assert_array_equal(
        told.values[:5], reference.values(booster.trees, 1, X[:5])[:, 0]
    )
    others = booster.explain(X[:7], background=X[100:140])
    np.testing.assert_allclose(
        others.values.sum(axis=1) + others.base_values, booster.predict(X[:7]), **NEAR
    )
    if n_columns == 9:
        np.testing.assert_allclose(told.values[0], tree_sum(booster, X[0])[0], **NEAR)


def test_too_long_for_a_background() -> None:
    with pytest.raises(ParameterError, match="70 different columns"):
        deep(70).explain(np.zeros((2, 70)), background=np.zeros((2, 70)))


def test_a_question_asked_twice_is_answered_once() -> None:
    """A symmetric tree whose two levels ask the same: two of its leaves can never be
    reached.
    """
    column = np.array([0, 0, 0, -1, -1, -1, -1], np.int32)
    left = np.array([1, 3, 5, 0, 0, 0, 0], np.int32)
    booster = deep(2)
    weight = np.array([8.0, 3.0, 5.0, 3.0, 0.0, 0.0, 5.0])
    zero = np.zeros(7)
    trees = Trees(
        offset=np.array([0, 7]),
        output=np.zeros(1, np.int32),
        column=column,
        threshold=zero,
        missing_left=np.zeros(7, np.uint8),
        left=left,
        value=np.array([0.0, 0.0, 0.0, 1.0, 50.0, 70.0, 2.0]),
        gain=zero,
        cover=weight,
        count=weight,
    )
    booster = Booster(
        trees,
        base=np.zeros(1),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=["a", "b"],
        named=False,
        params={},
    )
    told = booster.explain(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(told.base_values, 13 / 8, **NEAR)
    np.testing.assert_allclose(
        told.values, [[1 - 13 / 8, 0.0], [2 - 13 / 8, 0.0]], **NEAR
    )


@pytest.mark.parametrize(
    ("sides", "missing", "new"), [(0, 9, 9), (1, 5, 5), (2, 9, 5), (3, 5, 9)]
)
def test_sets_of_categories(sides: int, missing: int, new: int) -> None:
    """The core's rule for categories: a set goes left, a code of no set right, missing
    and new as the node says.
    """
    from sapwood import _core

    zero = np.zeros(3)
    weight = np.array([4.0, 3.0, 1.0])
    core = _core.Explainer(
        1,
        1,
        np.array([0, 3]),
        np.zeros(1, np.int32),
        np.array([0, -1, -1], np.int32),
        zero,
        np.array([sides, 0, 0], np.uint8),
        np.array([1, 0, 0], np.int32),
        np.array([0.0, 5.0, 9.0]),
        np.array([0, -1, -1], np.int32),
        np.array([0, 2]),
        np.array([1, 3], np.int32),
        weight,
    )
    codes = np.array([0, 1, 2, 3, 4, -1, -2, 60_000], np.int32)[:, None]
    values = core.explain(codes, None, False, 0, 1, 1)[:, 0, 0]
    np.testing.assert_allclose(
        values + core.expected(), [9, 5, 9, 5, 9, missing, new, 9], **NEAR
    )


@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "symmetric"])
def test_trees_with_categories(grower: str) -> None:
    rng = np.random.default_rng(6)
    n = 900
    names = np.array([f"town {k}" for k in range(12)] + [None], object)
    town, size = names[rng.integers(0, 13, n)], rng.normal(size=n)
    effect = dict(zip(names, rng.permutation(13), strict=True))
    y = np.array([effect[value] for value in town]) * 0.3 + size * np.array(
        [value == "town 3" for value in town]
    )
    frame = pl.DataFrame({"size": size, "town": town.tolist(), "size2": size**2})
    booster = sapwood.train(
        {"n_estimators": 6, "min_data_per_group": 5, **GROWERS[grower]},
        sapwood.Dataset(frame, label=y),
    )
    assert (booster.trees.set >= 0).any()
    told = booster.explain(frame)
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(frame), **NEAR
    )
    np.testing.assert_array_equal(
        told.values[:40], reference.values(booster.trees, 1, told.data[:40])[:, 0]
    )
    for i in range(3):
        np.testing.assert_allclose(
            told.values[i], tree_sum(booster, told.data[i])[0], **NEAR
        )
    others = booster.explain(frame[:20], background=frame[100:130])
    np.testing.assert_allclose(
        others.values.sum(axis=1) + others.base_values,
        booster.predict(frame[:20]),
        **NEAR,
    )
    shares = booster.importance("permutation", frame, y, n_repeats=1, percent=True)
    assert (
        shares.argmax() == booster.importance("prediction_values_change").argmax() == 1
    )
    known = next(i for i, value in enumerate(town) if value is not None)
    assert f"town = {town[known]}" in booster.why(frame[known : known + 1])
    curve = booster.partial_dependence(frame, "town")
    for value, mean in zip(curve.grid[0], curve.values, strict=True):
        changed = frame.with_columns(town=pl.lit(value))
        assert mean == pytest.approx(booster.predict(changed).mean(), abs=1e-9)
    assert booster.importance("prediction_difference", frame[:2])[1] > 0
    with pytest.raises(ParameterError, match="no order"):
        booster.accumulated_effects(frame, "town")
    with pytest.raises(ParameterError, match="knows no categories"):
        booster.to_shap()


@pytest.mark.pairwise
@pytest.mark.parametrize("grower", GROWERS)
def test_bytes_do_not_depend_on_threads_or_company(grower: str, isa: str) -> None:
    X, y = rows(1400, 8)
    booster = train(
        X,
        y,
        **(
            GROWERS[grower]
            | {"max_leaves": 40, "max_depth": None if grower == "leafwise" else 6}
        ),
    )
    first = booster.explain(X, n_jobs=1).values
    pairs = booster.explain(X[:600], interactions=True, n_jobs=1).values
    for n_jobs in (2, 3, 7):
        np.testing.assert_array_equal(booster.explain(X, n_jobs=n_jobs).values, first)
        np.testing.assert_array_equal(
            booster.explain(X[:600], interactions=True, n_jobs=n_jobs).values, pairs
        )
    # alone: only its own patterns are filled
    np.testing.assert_array_equal(booster.explain(X[5:6]).values, first[5:6])
    np.testing.assert_array_equal(booster.explain(X[100:700]).values, first[100:700])
    np.testing.assert_array_equal(
        booster.explain(X[5:6], interactions=True).values, pairs[5:6]
    )
    np.testing.assert_array_equal(
        first[:40],
        reference.values(booster.trees, 1, X[:40])[:, 0] / _n_averaged(booster),
    )
    others = booster.explain(X[:90], background=X[500:530], n_jobs=1).values
    np.testing.assert_array_equal(
        booster.explain(X[:90], background=X[500:530], n_jobs=3).values, others
    )
    # any order
    np.testing.assert_array_equal(
        booster.explain(X[7:8], background=X[529:499:-1]).values, others[7:8]
    )


def _n_averaged(booster: Booster) -> int:
    return booster.n_rounds if booster.averaged else 1


def test_more_rows_than_a_pass() -> None:
    X, y = rows(300, 3)
    booster = train(X, y, n_estimators=2)
    many = np.tile(X, (70, 1))  # 21,000
    np.testing.assert_array_equal(
        booster.explain(many).values, np.tile(booster.explain(X).values, (70, 1))
    )


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(GROWERS)), st.booleans())
@settings(max_examples=examples(25))
def test_laws_of_shapley_values(seed: int, grower: str, against: bool) -> None:
    """They add up; a column that no split asks for has none; two columns that are told
    alike have equal ones.
    """
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(120, 4)), 1)
    X[:, 3] = 0.0
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=120)
    booster = train(X, y, **GROWERS[grower])
    told = booster.explain(X[:30], background=X[60:80] if against else None)
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, booster.predict(X[:30]), **NEAR
    )
    assert not told.values[:, 3].any()
    unused = [c for c in range(4) if c not in booster.trees.column]
    assert not told.values[:, unused].any()


def test_symmetry() -> None:
    """x0 and x1 play the same part in a tree that is one where both are positive: each
    has half.
    """
    X = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)] * 30)
    booster = train(X, X[:, 0] * X[:, 1], n_estimators=1, max_depth=2, reg_lambda=0.0)
    told = booster.explain(X[:4], background=X)
    np.testing.assert_allclose(told.values[[0, 3], 0], told.values[[0, 3], 1], **NEAR)
    np.testing.assert_allclose(told.values[1], told.values[2][::-1], **NEAR)


@pytest.mark.parametrize("grower", ["leafwise", "depthwise", "forest"])
def test_the_shap_package_agrees(grower: str) -> None:
    shap = pytest.importorskip("shap")
    X, y = rows()
    booster = train(X, y, **GROWERS[grower])
    theirs = shap.TreeExplainer(
        booster.to_shap(), feature_perturbation="tree_path_dependent"
    )
    told = booster.explain(X[:50])
    np.testing.assert_allclose(theirs.shap_values(X[:50]), told.values, **NEAR)
    np.testing.assert_allclose(
        np.ravel(theirs.expected_value)[0], told.base_values[0], **NEAR
    )
    pairs = booster.explain(X[:20], interactions=True)
    np.testing.assert_allclose(
        theirs.shap_interaction_values(X[:20]), pairs.values, **NEAR
    )
    assert told.to_shap().values is told.values
    # it writes to its arrays
    against = shap.TreeExplainer(booster.to_shap(), data=X[50:80]).shap_values(X[:20])
    told = booster.explain(X[:20], background=X[50:80])
    # shap adds up in float32 here
    np.testing.assert_allclose(against, told.values, rtol=0, atol=1e-6)


def test_named_tables_and_shapes() -> None:
    X, y = rows()
    names = ["a", "b", "c", "d", "e"]
    frame = pl.DataFrame(X, schema=names)
    booster = sapwood.train({"n_estimators": 3}, sapwood.Dataset(frame, label=y))
    told = booster.explain(frame.select(names[::-1]))
    assert told.feature_names == tuple(names)
    np.testing.assert_array_equal(told.data, X)
    np.testing.assert_array_equal(told.values, booster.explain(X).values)
    assert told.contributions().shape == (300, 6)
    assert len(told) == 300


def test_why() -> None:
    X, y = rows()
    booster = train(X, y)
    text = booster.why(X[:1], n=2)
    lines = text.splitlines()
    assert lines[0].startswith(f"The score is {booster.predict(X[:1])[0]:.4g}: ")
    order = np.argsort(-np.abs(booster.explain(X[:1]).values[0]))
    assert [line.split("because ")[1].split()[0] for line in lines[1:3]] == [
        f"f{j}" for j in order[:2]
    ]
    assert "the other columns together" in lines[3]
    many = train(X, classes(y, 3), objective="softmax")
    assert many.why(X[:1], output=1).startswith("The score of 1")
    with pytest.raises(ParameterError, match="output=7"):
        many.why(X[:1], output=7)
    with pytest.raises(DataError, match="one row"):
        booster.why(X[:2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"space": "lossy"}, "did you mean 'loss'|loss"),
        ({"space": "probability"}, "background"),
        ({"space": "loss", "background": [[0.0] * 5]}, "labels y"),
        ({"y": [1.0] * 3}, "labels y"),
        ({"by": "weight"}, "by='weight'"),
        ({"by": "count", "background": [[0.0] * 5]}, "background decides"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    X, y = rows(60)
    with pytest.raises(ParameterError, match=message):
        train(X, y).explain(X[:3], **given)


def test_coupled_outputs_have_no_curve() -> None:
    X, y = rows(100)
    booster = train(X, classes(y, 3), objective="softmax")
    with pytest.raises(ParameterError, match="link 'softmax'"):
        booster.explain(X[:2], background=X[:2], space="probability")
