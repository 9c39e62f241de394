import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sapwood
from sapwood import Dataset
from sapwood.device import host
from sapwood.errors import DataError, ModelFormatError, ObjectiveError, ParameterError
from sapwood.model import Booster, Trees, load
from sapwood.model.booster import MIN_PARALLEL_ROWS
from unit.model.handmade import LOG3, LOG4, LOG5, NAN, grown, leaf


def test_predict_answers_worked_out_by_hand(
    regressor: Booster, X, answers, leaves
) -> None:
    np.testing.assert_array_equal(regressor.predict(X), answers)
    got = regressor.predict_leaves(X)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, leaves)


def test_predict_is_the_same_for_every_container(
    regressor: Booster, X, answers
) -> None:
    frame = pd.DataFrame(X, columns=["age", "income"])
    twice = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    for table in (
        X.astype(np.float32),
        X.astype(">f8"),
        np.asfortranarray(X),
        twice[::2, ::2],
        X[::-1][::-1],
        np.frombuffer(b"\0" + X.tobytes(), offset=1).reshape(X.shape),  # not aligned
        X.tolist(),
        frame,
        frame[["income", "age"]],
        pl.DataFrame(X, schema=["age", "income"]).select("income", "age"),
        pa.table({"income": X[:, 1], "age": X[:, 0]}),
        pd.DataFrame(X),  # numbered columns are no names: by position
    ):
        np.testing.assert_array_equal(regressor.predict(table), answers)
    for i, row in enumerate(X):
        assert regressor.predict(row[None])[0] == answers[i]
        assert regressor.predict(row[None].astype(np.float32))[0] == answers[i]


def test_integers_and_booleans_are_numbers(regressor: Booster) -> None:
    assert regressor.predict(np.array([[31, 100]])).tolist() == [8.25]
    assert regressor.predict(np.array([[True, False]])).tolist() == [11.75]


def test_many_rows_and_any_number_of_threads_give_the_same_bits(
    regressor: Booster, X, answers
) -> None:
    times = 3 * MIN_PARALLEL_ROWS // len(X)
    many = np.tile(X, (times, 1))
    expected = np.tile(answers, times)
    for n_jobs in (None, 1, 2, 3):
        np.testing.assert_array_equal(regressor.predict(many, n_jobs=n_jobs), expected)
    for rows in (1, len(many)):
        with pytest.raises(ParameterError, match="n_jobs=0"):
            regressor.predict(many[:rows], n_jobs=0)


@pytest.mark.threads
def test_threads_share_a_model_that_none_has_used_before(
    regressor: Booster, X, answers
) -> None:
    many = np.tile(X, (100, 1))
    expected = np.tile(answers, 100)
    tables = [X, many] * 16
    with ThreadPoolExecutor(8) as threads:
        for got in threads.map(lambda table: regressor.predict(table), tables):
            np.testing.assert_array_equal(got, expected[: len(got)])


def test_names_decide_and_positions_do_where_there_are_none(
    regressor: Booster, classifier: Booster, X
) -> None:
    with pytest.raises(DataError, match=r"[Mm]issing.*'income'"):
        regressor.predict(pd.DataFrame({"age": [1.0], "salary": [2.0]}))
    with pytest.raises(DataError, match=r"[Uu]nknown.*'extra'"):
        regressor.predict(pd.DataFrame({"age": [1.0], "income": [2.0], "extra": [3.0]}))
    for model in (regressor, classifier):
        for width in (1, 3):
            with pytest.raises(DataError, match=f"{width} features.*expecting 2"):
                model.predict(np.zeros((1, width)))
    unnamed = pd.DataFrame(X, columns=["anything", "goes"])  # the model knows no names
    assert classifier.predict(unnamed).shape == (len(X), 3)
    with pytest.raises(DataError, match="2-D"):
        regressor.predict(np.zeros(2))


def test_rounds(regressor: Booster, X, answers) -> None:
    first = np.array([1.5, 1.5, 1.5, -2, 4, -2, 1.5])
    second = np.array([0.25, -0.5, -0.5, 0.25, -0.5, -0.5, 0.25])
    for rounds, expected in (
        (0, np.full(7, 10.0)),
        (1, 10 + first),
        (np.int64(2), answers),
        ((0, 1), 10 + first),
        ((1, 2), 10 + second),  # the base score is always in
        ((1, 1), np.full(7, 10.0)),
    ):
        np.testing.assert_array_equal(regressor.predict(X, rounds=rounds), expected)
    assert regressor.predict_leaves(X, rounds=(1, 2)).tolist() == [
        [1],
        [2],
        [2],
        [1],
        [2],
        [2],
        [1],
    ]
    for bad in (3, -1, (1, 0), (0, 3), (-1, 1)):
        with pytest.raises(
            ParameterError, match="out of range; the model has 2 rounds"
        ):
            regressor.predict(X, rounds=bad)
    for bad in (1.0, "1", (1,), (0, 1, 2), [0, 1]):
        with pytest.raises(ParameterError, match="is not a range of rounds"):
            regressor.predict(X, rounds=bad)


def test_init_score_takes_the_place_of_the_base(
    regressor: Booster, classifier: Booster, X, answers
) -> None:
    start = np.arange(7.0)
    for given in (start, start.tolist(), start[:, None], pd.Series(start)):
        np.testing.assert_array_equal(
            regressor.predict(X, init_score=given), answers - 10 + start
        )
    scores = classifier.predict(
        X, raw=True, init_score=np.tile([0.0, 0.0, 8.0], (7, 1)), rounds=0
    )
    assert scores.tolist() == [[0.0, 0.0, 8.0]] * 7
    with pytest.raises(DataError, match="1 columns; the model has 3 outputs"):
        classifier.predict(X, init_score=start)
    with pytest.raises(DataError, match="init_score"):
        regressor.predict(X, init_score=start[:-1])
    with pytest.raises(DataError, match="init_score contains NaN, first in row 2"):
        regressor.predict(X, init_score=[0, 0, NAN, 0, 0, 0, 0])


def constant(objective: str, *scores: float, link: str = "", **more: Any) -> Booster:
    """A model of one round that gives every row these scores."""
    about = host.objectives().get(objective, {"link": link, "fields": {}})
    return Booster(
        Trees.of([(grown(leaf(score)), output) for output, score in enumerate(scores)]),
        base=np.zeros(len(scores)),
        objective=objective,
        fields={
            name: default for name, (_, _, _, default, _) in about["fields"].items()
        },
        link=about["link"],
        feature_names=["a", "b"],
        named=True,
        params={},
        **more,
    )


# What every link makes of the scores log 3 and -log 3; no more than a few roundings of
# half a unit.
LINKS: dict[str, list[float]] = {
    "identity": [LOG3, -LOG3],
    "sigmoid": [0.75, 0.25],
    "sigmoid2": [0.9, 0.1],
    "exp": [3.0, 1 / 3],
    "expm1": [2.0, -2 / 3],
    "step": [1.0, 0.0],
    "softmax": [0.9, 0.1],
    "one_vs_all": [0.75, 0.25],
}


def test_every_link_of_the_core_is_tested() -> None:
    assert {about["link"] for about in host.objectives().values()} == LINKS.keys()


@pytest.mark.parametrize("objective", host.objectives())
def test_links(objective: str, X) -> None:
    model = constant(objective, LOG3, -LOG3)
    expected = [LINKS[model.link]] * 7
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-15)
    np.testing.assert_allclose(next(model.staged_predict(X)), expected, rtol=1e-15)
    assert model.predict(X, raw=True).tolist() == [[LOG3, -LOG3]] * 7
    if model.link not in ("softmax", "one_vs_all"):
        for score, answer in zip((LOG3, -LOG3), LINKS[model.link], strict=True):
            np.testing.assert_allclose(
                constant(objective, score).predict(X), [answer] * 7, rtol=1e-15
            )
    else:
        with pytest.raises(
            ModelFormatError, match=f"link {model.link} does not fit a single output"
        ):
            constant(objective, LOG3)


def test_objectives_of_users_may_have_any_link(X) -> None:
    for link, answers in LINKS.items():
        model = constant("mine", LOG3, -LOG3, link=link)
        np.testing.assert_allclose(model.predict(X), [answers] * 7, rtol=1e-15)
        assert pickle.loads(pickle.dumps(model)).objective == "mine"
    for link in ("cosine", ""):
        with pytest.raises(
            ModelFormatError,
            match=f"objective mine has link custom or exp or .*, not '{link}'",
        ):
            constant("mine", LOG3, link=link)
    with pytest.raises(ModelFormatError, match="objective has no name"):
        constant("", LOG3, link="identity")
    with pytest.raises(
        ModelFormatError,
        match="transform is for the link 'custom'; the model has link 'identity'",
    ):
        constant("mine", LOG3, link="identity", transform=halved)


def halved(scores: np.ndarray) -> np.ndarray:
    scores *= 0.5  # in place: the model must not notice
    return scores


@pytest.mark.parametrize("scores", [(4.0,), (4.0, -2.0)])
def test_a_link_that_is_a_function(X, scores: tuple[float, ...]) -> None:
    raw = np.full((7, len(scores)), scores).squeeze()
    model = constant("mine", *scores, link="custom", transform=halved)
    more = np.tile(X, (MIN_PARALLEL_ROWS, 1))
    assert model.predict(more).shape == (len(more), *raw.shape[1:])
    for twin in (model, copy.copy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(X), raw / 2)
        np.testing.assert_array_equal(next(twin.staged_predict(X)), raw / 2)
        np.testing.assert_array_equal(
            twin.predict(X, rounds=0, init_score=raw), raw / 2
        )
        np.testing.assert_array_equal(twin.predict(X, raw=True), raw)

    loaded = load(model.to_bytes())
    assert loaded.to_bytes() == model.to_bytes()
    np.testing.assert_array_equal(loaded.predict(X, raw=True), raw)
    for predict in (loaded.predict, loaded.staged_predict):
        with pytest.raises(
            ParameterError,
            match=r"'mine' is a function, .* raw=True, or .* booster\.with_link\(f\)",
        ):
            predict(X)
    np.testing.assert_array_equal(loaded.with_link(halved).predict(X), raw / 2)
    with pytest.raises(ParameterError, match="transform is a str; give a function"):
        loaded.with_link("sigmoid")
    with pytest.raises(
        ObjectiveError, match=r"'mine' returned the shape \(\) for scores of shape \(7"
    ):
        loaded.with_link(np.sum).predict(X)


def test_a_link_of_the_core_cannot_be_replaced(regressor: Booster) -> None:
    with pytest.raises(ParameterError, match="has the link 'identity' already"):
        regressor.with_link(halved)


@pytest.mark.parametrize("objective", host.objectives())
def test_classes_are_for_objectives_of_classes(objective: str) -> None:
    def make() -> Booster:
        return constant(objective, 0.0, 0.0, classes=np.array(["no", "yes"]))

    if host.objectives()[objective]["labels"] in ("0 or 1", "a class index"):
        assert make().classes.tolist() == ["no", "yes"]
    else:
        with pytest.raises(
            ModelFormatError, match=f"{objective} has 2 different classes"
        ):
            make()


# A handful of roundings of half a unit in the last place (2^-53) each: the logarithms,
# their difference, exp, the sum and the quotient.
def test_softmax(classifier: Booster, X) -> None:
    np.testing.assert_allclose(
        classifier.predict(X), [[0.125, 0.25, 0.625]] * 7, rtol=1e-15
    )
    np.testing.assert_allclose(
        classifier.predict(X, rounds=1), [[0.1, 0.4, 0.5]] * 7, rtol=1e-15
    )
    assert classifier.predict(X, raw=True, rounds=1).tolist() == [[0.0, LOG4, LOG5]] * 7
    assert classifier.predict_leaves(X).tolist() == [[0] * 6] * 7


@pytest.mark.parametrize("raw", [False, True])
def test_staged_predict_has_the_bits_of_ranged_predict(
    regressor: Booster, classifier: Booster, X, raw
) -> None:
    for model in (regressor, classifier):
        start = np.linspace(0, 1, 7 * model.n_outputs).reshape(7, -1)
        for init_score in (None, start):
            stages = []
            for stage in model.staged_predict(X, raw=raw, init_score=init_score):
                stages.append(stage.copy())
                # what a caller does to a stage does not reach the next one
                stage[:] = NAN
            assert len(stages) == 2
            for n, stage in enumerate(stages, 1):
                np.testing.assert_array_equal(
                    stage, model.predict(X, raw=raw, rounds=n, init_score=init_score)
                )
    with pytest.raises(DataError):
        # at the call, not at the first stage
        regressor.staged_predict(np.zeros((1, 3)))


def random_tree(
    rng: np.random.Generator, n_splits: int, thresholds: np.ndarray, deep: bool
) -> dict[str, np.ndarray]:
    """Splits at random places, or each below the last; leaves come in random order."""
    nodes = [leaf(rng.normal())]
    open_ends = [0]
    for _ in range(n_splits):
        at = open_ends.pop(-1 if deep else rng.integers(len(open_ends)))
        threshold = rng.choice(thresholds)
        side = int(threshold < np.inf and rng.integers(2))
        nodes[at] = {
            "column": rng.integers(N_COLUMNS),
            "threshold": threshold,
            "missing_left": side,
            "left": len(nodes),
        }
        open_ends += [len(nodes), len(nodes) + 1]
        nodes += [leaf(rng.normal()), leaf(rng.normal())]
    return grown(*nodes)


def symmetric_tree(
    rng: np.random.Generator, depth: int, thresholds: np.ndarray
) -> dict[str, np.ndarray]:
    """The same split in all nodes of a level."""
    nodes = []
    for level in range(depth):
        threshold = rng.choice(thresholds)
        same = {
            "column": rng.integers(N_COLUMNS),
            "threshold": threshold,
            "missing_left": int(threshold < 0),
        }
        nodes += [
            {**same, "left": 2 * node + 1}
            for node in range(2**level - 1, 2 ** (level + 1) - 1)
        ]
    return grown(*nodes, *(leaf(rng.normal()) for _ in range(2**depth)))


def walk(
    trees: Trees, base: np.ndarray, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Raw scores and leaves by following every row down every tree."""
    scores = np.tile(base, (len(X), 1))
    leaves = np.zeros((len(X), trees.n_trees), np.int32)
    rows = np.arange(len(X))
    for t, first in enumerate(trees.offset[:-1]):
        node = np.full(len(X), first)
        while (inner := trees.left[node] > 0).any():
            x = X[rows, trees.column[node]]
            left = np.where(
                np.isnan(x), trees.missing_left[node] == 1, x <= trees.threshold[node]
            )
            node = np.where(inner, first + trees.left[node] + ~left, node)
        leaves[:, t] = node - first
        scores[:, trees.output[t]] += trees.value[node]
    return scores, leaves


N_COLUMNS = 5
FEW, MANY = (
    np.array([-1.5, 0.0, 2.5, np.inf]),
    np.append(np.linspace(-3, 3, 2000), np.inf),
)
FORESTS = {
    "small trees": lambda rng, tree: random_tree(rng, tree % 9, FEW, deep=False),
    "many thresholds": lambda rng, _: random_tree(rng, 60, MANY, deep=False),
    "more than 256 leaves": lambda rng, tree: random_tree(
        rng, 400 if tree == 2 else 5, MANY, deep=False
    ),
    "deep trees": lambda rng, _: random_tree(rng, 120, MANY, deep=True),
    "symmetric trees": lambda rng, tree: symmetric_tree(rng, tree % 8, FEW),
    "symmetric and other trees": lambda rng, tree: (
        symmetric_tree(rng, 3, MANY) if tree % 2 else random_tree(rng, 7, MANY, False)
    ),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("forest", FORESTS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_random_trees_predict_as_a_walk_from_the_root(
    isa: str, forest: str, n_outputs: int
) -> None:
    rng = np.random.default_rng(0)
    trees = Trees.of(
        [
            (FORESTS[forest](rng, tree), tree % n_outputs)
            for tree in range(10 * n_outputs)
        ]
    )
    base = rng.normal(size=n_outputs)
    names = [f"f{j}" for j in range(N_COLUMNS)]
    objective, link = (
        ("squared_error", "identity") if n_outputs == 1 else ("softmax", "softmax")
    )
    model = Booster(
        trees,
        base=base,
        objective=objective,
        fields={},
        link=link,
        feature_names=names,
        named=True,
        params={},
    )
    # Values on thresholds, a hair beside them, beyond all of them, and missing.
    X = rng.choice(MANY[:-1], size=(1300, N_COLUMNS))
    X = np.where(rng.random(X.shape) < 0.3, rng.choice(FEW[:-1], size=X.shape), X)
    X = np.where(
        rng.random(X.shape) < 0.2,
        np.nextafter(X, rng.choice([-9.0, 9.0], size=X.shape)),
        X,
    )
    X = np.where(
        rng.random(X.shape) < 0.2,
        rng.choice([NAN, NAN, np.inf, -np.inf, 0.0, -0.0], size=X.shape),
        X,
    )
    for table in (
        X,
        X.astype(np.float32),
        np.asfortranarray(X),
        np.clip(np.nan_to_num(X), -9, 9).astype(np.int16),
    ):
        scores, leaves = walk(trees, base, table.astype(np.float64))
        for n_rows in (1, 3, 255, 256, 1300):
            some = table[:n_rows]
            for given in (some, pd.DataFrame(some, columns=names)):
                np.testing.assert_array_equal(
                    model.predict(given, raw=True).reshape(n_rows, n_outputs),
                    scores[:n_rows],
                )
            np.testing.assert_array_equal(model.predict_leaves(some), leaves[:n_rows])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("gain", [8.0, 1.5]),
        ("total_gain", [8.0, 3.0]),
        ("weight", [1.0, 2.0]),
        ("split", [1.0, 2.0]),
        ("frequency", [1.0, 2.0]),
        ("cover", [6.0, 5.0]),
        ("total_cover", [6.0, 10.0]),
        ("cover_rows", [6.0, 5.0]),
        ("total_cover_rows", [6.0, 10.0]),
        ("xgboost_gain", [16.0, 3.0]),
        ("xgboost_total_gain", [16.0, 6.0]),
        ("lightgbm_gain", [16.0, 6.0]),
    ],
)
def test_importance(
    regressor: Booster, classifier: Booster, kind: str, expected: list[float]
) -> None:
    got = regressor.importance(kind)
    assert got.dtype == np.float64
    assert got.tolist() == expected
    assert regressor.importance(kind, normalize=True).tolist() == [
        x / sum(expected) for x in expected
    ]
    assert regressor.importance(kind, percent=True).tolist() == [
        100 * (x / sum(expected)) for x in expected
    ]
    # nothing was ever split
    assert classifier.importance(kind, normalize=True).tolist() == [0.0, 0.0]


def test_cover_by_hessians_and_by_rows() -> None:
    """Under logistic loss at a score of 0 a row's hessian is 1/4; a weight counts as
    that many rows.
    """
    data = Dataset(
        np.arange(8.0)[:, None],
        label=np.repeat([0.0, 1.0], 4),
        weight=np.repeat([1.0, 3.0], 4),
    )
    stump = {
        "objective": "logistic",
        "start": 0.0,
        "n_estimators": 1,
        "max_leaves": 2,
        "min_child_weight": 0.0,
    }
    model = sapwood.train(stump, data)
    assert model.importance("cover").tolist() == [4.0]
    assert model.importance("cover_rows").tolist() == [16.0]


def test_rounds_of_several_trees_are_whole(regressor: Booster) -> None:
    assert replace(regressor, params={"n_parallel_trees": 2}).n_rounds == 1
    for wrong in (3, 0, "two"):
        with pytest.raises(
            ModelFormatError,
            match=r"not a whole number of rounds|is not a number of trees",
        ):
            replace(regressor, params={"n_parallel_trees": wrong})


def test_unknown_importance_names_the_nearest(regressor: Booster) -> None:
    with pytest.raises(
        ParameterError, match="'total_gian' is unknown; did you mean 'total_gain'"
    ):
        regressor.importance("total_gian")


@pytest.mark.parametrize(
    "through",
    [
        copy.copy,
        copy.deepcopy,
        *(lambda b, p=p: pickle.loads(pickle.dumps(b, p)) for p in range(6)),
    ],
)
def test_copies_are_the_same_model(
    regressor: Booster, classifier: Booster, X, through
) -> None:
    for model in (regressor, classifier):
        model.predict(X)  # the cached forest does not travel
        twin = through(model)
        assert twin.to_bytes() == model.to_bytes()
        assert twin.history == model.history
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))


def test_a_booster_cannot_be_changed(regressor: Booster) -> None:
    with pytest.raises(AttributeError):
        regressor.base = np.zeros(1)
    with pytest.raises(ValueError, match="read-only"):
        regressor.base[0] = 1.0
    with pytest.raises(TypeError):
        regressor.params["learning_rate"] = 1.0


def test_repr(regressor: Booster) -> None:
    assert (
        repr(regressor)
        == "<sapwood.Booster: squared_error, 2 rounds, 2 trees, 2 columns, 1 outputs>"
    )


def test_a_model_of_no_rounds_predicts_its_base() -> None:
    parts = {
        "objective": "squared_error",
        "fields": {},
        "link": "identity",
        "feature_names": ["a"],
        "named": True,
    }
    model = Booster(Trees.of([]), base=[2.5], params={}, **parts)
    assert model.predict([[1.0], [NAN]]).tolist() == [2.5, 2.5]
    assert model.predict(np.zeros((1, 1))).tolist() == [2.5]
    assert model.predict_leaves([[1.0]]).shape == (1, 0)
    assert list(model.staged_predict([[1.0]])) == []
    assert model.importance().tolist() == [0.0]
    with pytest.raises(ModelFormatError, match="feature_names"):
        Booster(Trees.of([]), base=[2.5], params={}, **(parts | {"feature_names": []}))
