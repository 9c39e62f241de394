"""Limits of time: a fit ends within its limit, and what would take minutes is made
cheaper, and says so.
"""

import time
from dataclasses import dataclass

import numpy as np
import pytest

import sapwood as sw
from sapwood.boost.auto import candidates, cost
from sapwood.boost.auto.contender import Contender


@dataclass(frozen=True)
class Shape:
    n_rows: int
    n_outputs: int


def facts(n_rows: int, n_outputs: int, n_columns: int = 10) -> candidates.Facts:
    return candidates.Facts(
        n_rows, n_rows * n_columns, n_outputs, n_columns, 0, 0, False, True
    )


def many_classes(n_rows: int, n_classes: int) -> sw.Dataset:
    rng = np.random.default_rng(0)
    return sw.Dataset(
        rng.normal(size=(n_rows, 10)),
        label=rng.integers(0, n_classes, n_rows).astype(float),
    )


@pytest.mark.parametrize(
    ("n_rows", "n_outputs"),
    [
        (28_000, 18),
        (20_000, 26),
        (54_000, 100),
        (330_000, 355),
        (2_000, 1_000),
        (1_000_000, 1),
        (1_000_000, 7),
    ],
)
def test_ordinary_tables_have_no_limit_of_rounds(n_rows: int, n_outputs: int) -> None:
    assert not cost.has_too_many_classes(Shape(n_rows, n_outputs))
    assert candidates.plan(facts(n_rows, n_outputs), "balanced").notes == ()


@pytest.mark.parametrize(
    ("n_rows", "n_outputs"),
    [(1_900, 10_000), (16_000, 1_000), (16_000, 10_000), (300_000, 5_000)],
)
def test_too_many_classes_have_few_rounds_of_trees_of_vectors(
    n_rows: int, n_outputs: int
) -> None:
    plan = candidates.plan(facts(n_rows, n_outputs), "balanced")
    candidate = plan.candidates[0]
    rounds = candidate.params["n_estimators"]
    assert (
        rounds * cost.round_operations(Shape(n_rows, n_outputs))
        <= cost.BUDGET["balanced"]
        or rounds == 4
    )
    assert not plan.crosses and plan.turns == 1
    assert f"for at most {rounds} rounds" in plan.notes[0]


def test_classes_of_many_columns_have_no_tree_for_each_class() -> None:
    (candidate,) = candidates.plan(facts(1_900, 10_000, 2_000), "balanced").candidates
    assert candidate.params["multi_strategy"] == "multi_output_tree"


@pytest.mark.parametrize(
    ("n_rows", "n_outputs", "n_columns"), [(12_000, 1_000, 10), (1_900, 10_000, 10)]
)
def test_too_many_classes_have_a_tree_each_where_the_budget_holds_enough_rounds(
    n_rows: int, n_outputs: int, n_columns: int
) -> None:
    shape = Shape(n_rows, n_outputs)
    _, candidate = candidates.plan(
        facts(n_rows, n_outputs, n_columns), "balanced"
    ).candidates
    assert "multi_strategy" not in candidate.params
    assert candidate.params["n_estimators"] >= cost.MIN_TREE_ROUNDS
    assert (
        candidate.params["n_estimators"] * cost.round_operations(shape)
        <= cost.BUDGET["balanced"]
    )


@pytest.mark.parametrize(
    ("n_rows", "n_outputs", "n_columns"),
    [(16_000, 10_000, 10), (300_000, 5_000, 10), (12_000, 1_000, 200)],
)
def test_too_many_classes_have_no_tree_each_where_rounds_take_too_long(
    n_rows: int, n_outputs: int, n_columns: int
) -> None:
    assert (
        len(candidates.plan(facts(n_rows, n_outputs, n_columns), "balanced").candidates)
        == 1
    )


def test_small_trees_do_not_grow_where_time_is_short() -> None:
    _, candidate = candidates.plan(facts(12_000, 1_000), "balanced").candidates
    assert candidates.small(candidate) is candidate


def test_a_fast_fit_of_too_many_classes_has_one_candidate() -> None:
    assert len(candidates.plan(facts(12_000, 1_000), "fast").candidates) == 1


def test_a_limited_fit_of_classes_in_a_row_is_as_good_as_a_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cost, "HEAVY", 1_000_000)
    monkeypatch.setitem(cost.BUDGET, "balanced", 25 * 300 * (3600 + cost.TREE_ROWS))
    rng = np.random.default_rng(0)
    y = rng.permutation(6_000) % 300
    X = rng.normal(size=(6_000, 5))
    X[:, 0] += y
    automatic = sw.SapwoodClassifier(n_jobs=2).fit(X[:4500], y[:4500])
    plain = sw.SapwoodClassifier(n_jobs=2, n_estimators=10).fit(X[:4500], y[:4500])
    rows = np.arange(1500)

    def loss(model: sw.SapwoodClassifier) -> float:
        return float(-np.log(model.predict_proba(X[4500:])[rows, y[4500:]]).mean())

    assert "only two candidates were tried" in str(automatic.chosen_)
    assert loss(automatic) <= loss(plain)


@pytest.mark.parametrize(
    "given", [{"grow_policy": "symmetric"}, {"multi_strategy": "multi_output_tree"}]
)
def test_a_limited_fit_takes_what_the_user_says_of_trees(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "HEAVY", 100_000)
    params = {
        "objective": "softmax",
        "n_classes": 50,
        "quality": "balanced",
        "n_estimators": 3,
        "n_jobs": 2,
        **given,
    }
    assert len(sw.train(params, many_classes(600, 50)).chosen.tried) == 2


def test_a_fit_of_too_many_classes_says_why_less_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cost, "HEAVY", 100_000)
    params = {
        "objective": "softmax",
        "n_classes": 200,
        "quality": "balanced",
        "n_jobs": 2,
    }
    words = str(sw.train(params, many_classes(300, 200)).chosen)
    assert "A round takes long, since 200 outputs x" in words
    assert "only two candidates were tried" in words


def test_a_fit_of_classes_of_one_row_says_so() -> None:
    label = np.concatenate([np.arange(150), np.zeros(60), np.ones(60)])
    X = np.random.default_rng(0).normal(size=(270, 3))
    model = sw.train(
        {"objective": "softmax", "quality": "fast", "n_estimators": 2},
        sw.Dataset(X, label=label),
    )
    assert "148 of 150 classes have a single row, which must be trained on" in str(
        model.chosen
    )


def test_classes_of_one_row_each_are_trained_plainly() -> None:
    data = sw.Dataset(
        np.random.default_rng(0).normal(size=(120, 3)), label=np.arange(120.0)
    )
    with pytest.warns(UserWarning, match="this is one plain training"):
        model = sw.train(
            {"objective": "softmax", "quality": "fast", "n_estimators": 2}, data
        )
    assert model.n_rounds == 2 and model.chosen is None


def test_a_plain_fit_of_too_many_classes_has_fewer_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cost, "HEAVY", 100_000)
    monkeypatch.setitem(cost.BUDGET, "balanced", 5 * 120 * (120 + cost.TREE_ROWS))
    X = np.random.default_rng(0).normal(size=(120, 3))
    with pytest.warns(UserWarning, match="this is one plain training of 5 rounds"):
        model = sw.SapwoodClassifier().fit(X, np.arange(120))
    assert model.n_iter_ == 5


def test_a_plain_fit_of_few_rows_keeps_the_time_limit() -> None:
    X = np.random.default_rng(0).normal(size=(60, 80_000))
    y = X[:, 0] > 0
    sw.SapwoodClassifier(n_estimators=1).fit(X[:, :2], y)  # imports what a fit needs
    start = time.monotonic()
    with pytest.warns(
        UserWarning, match=r"time_limit=2 ended the training after \d+ of 100 rounds"
    ):
        model = sw.SapwoodClassifier(time_limit=2.0, n_jobs=1).fit(X, y)
    assert time.monotonic() - start < 4.0  # 5.7 s without a limit
    assert 0 < model.n_iter_ < 100


def test_no_round_begins_that_would_end_after_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("sapwood.boost.auto.contender.time.monotonic", lambda: clock[0])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    held = np.arange(200) < 50
    given = {
        "objective": "squared_error",
        "early_stopping_rounds": 50,
        "n_estimators": 100,
    }
    contender = Contender(
        candidates.Candidate("any", {}), given, sw.Dataset(X, label=X[:, 0]), [held]
    )
    grow = contender._measure

    def ten_seconds(most: int) -> None:
        clock[0] += 10.0
        grow(most)

    monkeypatch.setattr(contender, "_measure", ten_seconds)
    contender.advance(None, 35.0)
    assert contender.n_rounds == 3


def test_a_time_limit_too_short_for_folds_holds_rows_out_once() -> None:
    X = np.random.default_rng(0).normal(size=(200, 5_000))
    model = sw.SapwoodClassifier(time_limit=0.4, n_jobs=1).fit(X, X[:, 0] > 0)
    assert model.chosen_.n_folds == 1
    assert "For the time limit, rows were held out once" in str(model.chosen_)


def test_a_time_limit_leaves_out_candidates_that_it_has_no_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Contender, "entry_seconds", property(lambda _: 100.0))
    X = np.random.default_rng(0).normal(size=(600, 5))
    model = sw.SapwoodRegressor(
        time_limit=5.0, n_jobs=1, n_estimators=5, quality="balanced"
    ).fit(X, X[:, 0])
    assert len(model.chosen_.tried) == 1
    assert "The time limit left no time for other candidates." in str(model.chosen_)


def test_a_ranker_keeps_its_time_limit() -> None:
    X = np.random.default_rng(0).normal(size=(4_000, 10))
    start = time.monotonic()
    model = sw.SapwoodRanker(
        time_limit=1.0, n_jobs=1, learning_rate=1e-3, n_estimators=100_000
    )
    model.set_params(quality="balanced").fit(
        X, (X[:, 0] > 0).astype(int), group=np.repeat(np.arange(400), 10)
    )
    assert time.monotonic() - start < 3.0


def test_conformal_models_share_the_time_limit() -> None:
    X = np.random.default_rng(0).normal(size=(400, 5))
    start = time.monotonic()
    sw.SapwoodRegressor(
        time_limit=2.0, conformal="cross", n_jobs=1, learning_rate=1e-3
    ).fit(X, X[:, 0] * X[:, 1])
    assert time.monotonic() - start < 4.0


@pytest.mark.nightly
@pytest.mark.parametrize("limit", [5.0, 20.0])
def test_the_time_limit_of_wide_tables_is_kept_within_a_tenth(limit: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 100_000))
    # which imports scikit-learn
    model = sw.SapwoodClassifier(time_limit=limit, n_jobs=2)
    start = time.monotonic()
    model.fit(X, X[:, 0] > 0)
    assert time.monotonic() - start < 1.1 * limit


@pytest.mark.nightly
@pytest.mark.parametrize("limit", [5.0, 20.0])
def test_the_time_limit_of_ten_thousand_classes_is_kept_within_a_tenth(
    limit: float,
) -> None:
    data = many_classes(2_000, 10_000)
    params = {
        "objective": "softmax",
        "n_classes": 10_000,
        "quality": "balanced",
        "n_jobs": 2,
    }
    start = time.monotonic()
    sw.train({**params, "time_limit": limit}, data)
    assert time.monotonic() - start < 1.1 * limit


@pytest.mark.nightly
def test_a_fit_of_ten_thousand_classes_ends_within_a_minute() -> None:
    params = {
        "objective": "softmax",
        "n_classes": 10_000,
        "quality": "balanced",
        "n_jobs": 2,
    }
    start = time.monotonic()
    words = str(sw.train(params, many_classes(2_000, 10_000)).chosen)
    assert time.monotonic() - start < 60
    assert "only two candidates were tried" in words
