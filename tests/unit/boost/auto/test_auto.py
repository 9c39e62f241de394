"""The automatic fit: same bytes on any thread count, nothing leaks from held-out rows,
parameters by hand win.
"""

import dataclasses
import pickle
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import sapwood as sw
from sapwood.boost.auto import MIN_ROWS, blend, candidates, crosses, fit
from sapwood.boost.auto.contender import DENSE, Contender
from sapwood.boost.auto.report import Chosen
from sapwood.errors import ParameterError
from sapwood.params.recipes import RECIPES

FIT = sys.modules["sapwood.boost.auto.fit"]  # `auto.fit` is the function
RNG = np.random.default_rng(3)
N = 2600
X = RNG.normal(size=(N, 5))
X[RNG.random(N) < 0.05, 1] = np.nan
SCORE = np.sin(2 * X[:, 0]) + X[:, 2] * X[:, 3] + 0.3 * RNG.normal(size=N)
LABELS = {
    "squared_error": SCORE,
    "logistic": (SCORE > 0).astype(float),
    "softmax": np.digitize(SCORE, [-0.5, 0.6]).astype(float),
}
SHORT = {"learning_rate": 0.3}  # rounds are few, so that tests take a second


def data_of(objective, n=N):
    return sw.Dataset(X[:n], LABELS[objective][:n], linear_leaves=True, n_jobs=1)


@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
@pytest.mark.parametrize("objective", LABELS)
def test_same_bytes_on_any_number_of_threads(objective, quality):
    models = [
        fit(
            {"objective": objective, "n_jobs": n_jobs, "n_estimators": 25, **SHORT},
            data_of(objective, 1500),
            quality,
        )
        for n_jobs in (1, 2, 3, 7)
    ]
    assert len({model.to_bytes() for model in models}) == 1
    assert models[0].trees.n_trees > 0


@pytest.mark.nightly
@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_same_bytes_with_races_of_crosses_and_joined_categories(quality):
    rng = np.random.default_rng(5)
    n = 12_000
    words = rng.integers(0, 300, (n, 2))
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    table["e"], table["f"] = pd.Categorical(words[:, 0]), pd.Categorical(words[:, 1])
    effect = rng.normal(size=(300, 300))[words[:, 0] % 20, words[:, 1] % 20]
    label = table.a * table.b + effect + 0.1 * rng.normal(size=n)
    models = [
        sw.SapwoodRegressor(quality=quality, n_jobs=n_jobs, learning_rate=0.3).fit(
            table, label
        )
        for n_jobs in (1, 2, 3, 7)
    ]
    assert len({model.booster_.to_bytes() for model in models}) == 1
    names = " ".join(one.name for one in models[0].chosen_.tried)
    assert quality == "fast" or ("crosses" in names and "joined" in names)


@pytest.mark.parametrize("objective", LABELS)
def test_a_model_with_crosses_is_saved_and_explained(objective, tmp_path):
    model = fit(
        {"objective": objective, "n_jobs": 1, **SHORT}, data_of(objective), "balanced"
    )
    assert any("crosses" in one.name for one in model.chosen.tried)
    model.save(tmp_path / "model.sapwood")
    again = sw.load(tmp_path / "model.sapwood")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.fingerprint() == model.fingerprint()
    assert np.isfinite(model.importance("total_gain")).all()
    assert model.linear
    raw = model.predict(X[:50], raw=True)
    for more in ({}, {"background": X[60:64]}, {"internal": True}):
        told = model.explain(X[:50], **more)
        np.testing.assert_allclose(
            told.values.sum(axis=1) + told.base_values, raw, rtol=0, atol=1e-9
        )
    assert "because" in model.why(X[:1]) and len(model.importance("shap", X[:50])) == 5
    model.export(tmp_path / "model.c")
    assert len(model.to_frame()) == model.trees.n_nodes
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    rows = X[:50].astype(np.float32)
    (found,) = session.run(["raw"], {"X": rows})
    np.testing.assert_allclose(
        found.reshape(raw.shape), model.predict(rows, raw=True), rtol=1e-5, atol=1e-5
    )


def test_the_blend_is_the_mean_of_its_members():
    """Each leaf value times its eighths is rounded once, and sums of scores are
    rounded: nothing else differs.
    """
    data = data_of("squared_error").without_values()
    params = {"objective": "squared_error", "n_jobs": 1, "n_estimators": 20}
    members = [
        sw.train({**params, "grow_policy": policy, "max_depth": 4}, data)
        for policy in ("leafwise", "symmetric")
    ]
    whole = blend.merge(members, [0.375, 0.625])
    wanted = 0.375 * members[0].predict(X) + 0.625 * members[1].predict(X)
    np.testing.assert_allclose(whole.predict(X), wanted, rtol=0, atol=1e-12)
    assert whole.n_rounds == 40


class _Made:
    """A contender of scores that are given; the loss is the mean squared error of
    zeros.
    """

    def __init__(self, scores, best_round):
        self.scores = np.array([scores])
        self.best_round = best_round

    def loss_of(self, scores):
        return float(np.mean(scores**2))


def test_members_that_save_little_for_their_rounds_are_left_out():
    """The mean of the first two has no error; the third is like the first. Alone the
    first has a loss of 1.
    """
    rounds = 500
    made = [_Made([1.0, 1.0], 100), _Made([-1.0, -1.0], rounds), _Made([1.0, 1.0], 100)]
    assert blend.draw(made) == [4, 4, 0]
    # it saves 1 of a loss of 0, whatever the limit
    assert blend.draw(made[:2], 0.0019) == [4, 4]
    near = [_Made([1.0, 0.9], 100), _Made([0.9, 1.0], rounds)]
    both = np.mean(np.full(2, 0.95) ** 2)
    alone = np.mean(np.array([1.0, 0.9]) ** 2)
    worth = (alone - both) / both / rounds
    assert blend.draw(near, 0.99 * worth) == [4, 4]
    assert blend.draw(near, 1.01 * worth) == [8, 0]


@pytest.mark.parametrize("least_fall", [0.0, 0.02])
def test_training_stops_where_the_loss_falls_slowly(least_fall):
    """After so many rounds the loss still falls, by less than the part that is asked
    for.
    """
    given = {
        "objective": "squared_error",
        "n_jobs": 1,
        "n_estimators": 400,
        "early_stopping_rounds": 400,
    }
    candidate = candidates.Candidate("slow", {"learning_rate": 0.2, "max_leaves": 4})
    data = data_of("squared_error").without_values()
    held = np.arange(N) % 5 == 0
    window = 100
    one = Contender(candidate, given, data, [held], 4, least_fall, window)
    one.advance()
    assert one.stopped
    if not least_fall:
        assert one.n_rounds == 400
        return
    assert 2 * window < one.n_rounds < 400
    measured = [n for n in range(1, one.n_rounds + 1) if n <= DENSE or n % 4 == 0]
    assert len(one.losses) == len(measured)
    before = min(
        loss
        for n, loss in zip(measured, one.losses, strict=True)
        if n <= one.n_rounds - window
    )
    assert one.loss > (1 - least_fall) * before


def test_the_crosses_that_gain_most_stay(monkeypatch):
    label = X[:, 2] * X[:, 3] + 2 * (X[:, 0] - X[:, 4]) + 0.5 * X[:, 0] * X[:, 3]
    found = [
        ("product", 0, 3),
        ("difference", 0, 4),
        ("product", 0, 2),
        ("product", 2, 3),
    ]
    data = sw.Dataset(X, label, linear_leaves=True, n_jobs=1).with_crosses(found)
    trees = sw.train({"n_jobs": 1, "n_estimators": 30, "max_leaves": 8}, data).trees
    assert crosses.best(trees, found, 5)[:2] == found[:2]
    monkeypatch.setattr(crosses, "N_KEPT", 2)
    monkeypatch.setattr(crosses, "KEPT_GAIN", 0.5)
    assert crosses.best(trees, found, 5) == [found[1], found[3]]
    monkeypatch.setattr(crosses, "KEPT_GAIN", 0.999)
    assert len(crosses.best(trees, found, 5)) > 2


def test_labels_of_held_out_rows_do_not_reach_the_trees():
    facts = candidates.Facts(N, N, 1, 5, 0, 0, False, True)
    held = np.arange(N) % 5 == 0
    changed = np.where(held, 1 - LABELS["logistic"], LABELS["logistic"])
    trees = []
    for label in (LABELS["logistic"], changed):
        data = sw.Dataset(X, label, linear_leaves=True, n_jobs=1)
        one = Contender(
            candidates.symmetric(facts, linear=True),
            {"objective": "logistic", "n_jobs": 1},
            data,
            [held],
        )
        one.advance(10)
        trees.append(one._stores[0].trees(10))
    np.testing.assert_array_equal(trees[0].value, trees[1].value)
    np.testing.assert_array_equal(
        trees[0].linear.linear_coef, trees[1].linear.linear_coef
    )


def test_whole_groups_are_held_out():
    group = RNG.integers(0, 40, 800)
    given = {"validation_fraction": 0.2, "n_jobs": 1, **SHORT}
    model = sw.SapwoodRegressor(**given).fit(X[:800], SCORE[:800], group=group)
    sizes = np.bincount(group)
    n_held = model.chosen_.n_held
    reachable = {0}
    for size in sizes.tolist():
        reachable |= {total + size for total in reachable}
    assert n_held in reachable
    assert abs(n_held - 160) <= sizes.max()


def test_few_rows_are_held_out_in_turn(monkeypatch):
    """Every row in one fold, whole groups in one; each fold gives the model its own
    trees.
    """
    group = RNG.integers(0, 40, 800)
    seen = []
    monkeypatch.setattr(Contender, "__init__", _listening(Contender.__init__, seen))
    model = sw.SapwoodRegressor(n_jobs=1, **SHORT).fit(
        X[:800], SCORE[:800], group=group
    )
    folds = seen[0]
    assert model.chosen_.n_folds == len(folds) == candidates.N_FOLDS
    np.testing.assert_array_equal(sum(fold.astype(int) for fold in folds), 1)
    assert all(
        len(np.unique(np.array(folds)[:, group == one], axis=1).T) == 1
        for one in range(40)
    )
    assert "each of 800 rows was held out in one of 4 folds" in str(model.chosen_)
    ends = [-(-4 * one.rounds // 3) for one in model.chosen_.tried if one.part]
    assert model.n_iter_ == sum(ends) * candidates.N_FOLDS


def _listening(init, seen):
    def listening(self, candidate, given, data, folds, **more):
        seen.append(folds)
        init(self, candidate, given, data, folds, **more)

    return listening


@pytest.mark.parametrize(
    "given",
    [
        {"has_time": True},
        {"validation_fraction": 0.2},
        {"quality": "fast"},
        {"quality": "balanced", "n": 2001},
    ],
)
def test_rows_are_held_out_once_where_folds_do_not_suit(given):
    n = given.pop("n", 400)
    model = sw.SapwoodRegressor(**given, n_jobs=1, **SHORT).fit(X[:n], SCORE[:n])
    assert model.chosen_.n_folds == 1


def test_a_class_of_one_row_is_not_held_out():
    label = np.digitize(SCORE[:300], [-0.5, 0.6])
    label[7] = 3
    model = sw.SapwoodClassifier(n_jobs=1, **SHORT).fit(X[:300], label)
    assert model.chosen_.n_folds == 1
    assert model.predict_proba(X[:5]).shape == (5, 4)


def test_parameters_by_hand_win():
    model = sw.SapwoodRegressor(
        grow_policy="depthwise", max_depth=3, n_jobs=1, **SHORT
    ).fit(X[:1200], SCORE[:1200])
    assert model.booster_.trees.depth().max() == 3
    assert model.booster_.params["learning_rate"] == 0.3
    plain = sw.SapwoodRegressor(n_estimators=7, n_jobs=1).fit(X[:1200], SCORE[:1200])
    assert plain.n_iter_ == 7
    assert not hasattr(plain, "chosen_")
    capped = sw.SapwoodRegressor(quality="fast", n_estimators=7, n_jobs=1).fit(
        X[:1200], SCORE[:1200]
    )
    assert capped.chosen_.tried[0].rounds <= 7


@pytest.mark.parametrize(
    "given", [{"n_estimators": 100}, {"early_stopping_rounds": None}], ids=str
)
def test_rounds_by_hand_are_plain_even_if_they_are_the_default(given):
    model = sw.SapwoodRegressor(**given, n_jobs=1).fit(X[:500], SCORE[:500])
    assert not hasattr(model, "chosen_")
    assert model.n_iter_ == 100


def test_recipes_stay_the_methods_they_name():
    model = sw.SapwoodRegressor(recipe="lightgbm", n_jobs=1).fit(X[:500], SCORE[:500])
    assert not hasattr(model, "chosen_")
    assert model.n_iter_ == 100


def test_few_rows_are_trained_plainly():
    model = sw.SapwoodRegressor(n_jobs=1).fit(X[: MIN_ROWS - 1], SCORE[: MIN_ROWS - 1])
    assert not hasattr(model, "chosen_")


def test_validation_rows_go_with_a_plain_fit_only():
    model = sw.SapwoodRegressor(n_jobs=1).fit(
        X[:500], SCORE[:500], eval_set=[(X[500:700], SCORE[500:700])]
    )
    assert not hasattr(model, "chosen_")
    with pytest.raises(
        ParameterError, match="quality='best' holds out rows of its own"
    ):
        sw.SapwoodRegressor(quality="best").fit(
            X[:500], SCORE[:500], eval_set=[(X[500:700], SCORE[500:700])]
        )


@pytest.fixture(scope="module")
def joinable():
    """Two columns of 60 categories, whose pairs matter."""
    code = np.random.default_rng(5).integers(0, 60, (3000, 2))
    label = np.random.default_rng(6).normal(size=(60, 60))[
        code[:, 0] % 12, code[:, 1] % 12
    ]
    return np.array([[f"a{i}", f"b{j}"] for i, j in code], object), label


def test_categories_are_joined_where_that_wins(joinable, tmp_path):
    X, y = joinable
    models = [
        sw.SapwoodRegressor(quality=quality, n_jobs=n_jobs, **SHORT).fit(X, y)
        for quality, n_jobs in (
            ("balanced", 1),
            ("balanced", 3),
            ("fast", 1),
            ("fast", 7),
        )
    ]
    assert len({model.booster_.to_bytes() for model in models}) == 2
    for model in models[::2]:
        assert any(
            one.part > 0
            for one in model.chosen_.tried
            if one.name.endswith("joined categories")
        )
        assert "f0+f1" in model.booster_.internal_names
    models[0].booster_.save(tmp_path / "model.sapwood")
    np.testing.assert_array_equal(
        sw.load(tmp_path / "model.sapwood").predict(X), models[0].predict(X)
    )


@pytest.mark.parametrize(
    ("lead", "given"), [(-1.0, {}), (1.0, {}), (-1.0, {"max_depth": 3})]
)
def test_deeper_trees_race(monkeypatch, lead, given):
    """They go on where they lead by enough; a depth that is set by hand stays."""
    monkeypatch.setattr(FIT, "DEEPER_LEAD", lead)
    monkeypatch.setattr(candidates, "MANY_ROWS", 2000)
    model = sw.SapwoodRegressor(n_jobs=1, **SHORT, **given).fit(X, SCORE)
    deep = [one for one in model.chosen_.tried if one.name.startswith("deep symmetric")]
    assert [one.stopped for one in deep] == ([] if given else [lead > 0])


def test_what_fast_tries_depends_on_the_data():
    """Crosses for many rows of numbers alone; few rounds for many classes."""
    facts = candidates.Facts(20_000, 100_000, 1, 5, 0, 0, False, True)
    assert candidates.plan(facts, "fast").crosses
    for other in (
        {"n_rows": 9_000},
        {"n_categorical": 1},
        {"n_outputs": 10},
        {"values": False},
    ):
        assert not candidates.plan(dataclasses.replace(facts, **other), "fast").crosses
    for n_outputs, rounds in ((9, 2000), (10, 150)):
        (one,) = candidates.plan(
            dataclasses.replace(facts, n_outputs=n_outputs), "fast"
        ).candidates
        assert one.params["n_estimators"] == rounds
        assert one.params["early_stopping_rounds"] == 20


def test_what_best_tries_depends_on_the_rows_and_classes():
    """A tree for each of many classes only where rows are few: such rounds take long.
    Two candidates for few rows.
    """
    facts = candidates.Facts(20_000, 100_000, 1, 5, 0, 0, False, True)
    plain = candidates.plan(facts, "balanced").candidates
    plan = candidates.plan(facts, "best")
    assert [one.name.split(",")[0] for one in plan.candidates] == [
        "symmetric trees",
        "large leaf-wise trees",
        "deep symmetric trees",
        "sampled symmetric trees",
    ]
    assert plan.candidates[0] == plain[0]  # its races are those of "balanced"
    assert (
        plan.candidates[2].params["learning_rate"]
        == plain[0].params["learning_rate"] / 2
    )
    assert plan.turns == 2
    fewer = candidates.plan(dataclasses.replace(facts, n_rows=9_999), "best")
    assert [one.name.split(",")[0] for one in fewer.candidates] == [
        "deep symmetric trees",
        "large leaf-wise trees",
        "sampled symmetric trees",
    ]
    few = candidates.plan(dataclasses.replace(facts, n_rows=1_999), "best")
    assert (len(few.candidates), few.turns) == (2, 4)
    # up to 100,000 scores many classes have as many turns as few
    for n_rows, n in ((8_000, 4), (9_000, 2)):
        assert (
            candidates.plan(
                dataclasses.replace(facts, n_rows=n_rows, n_outputs=12), "best"
            ).turns
            == n
        )
    for n_rows, n in ((40_000, 2), (20_000, 3), (1_999, 2)):
        many = candidates.plan(
            dataclasses.replace(facts, n_rows=n_rows, n_outputs=12), "best"
        ).candidates
        assert len(many) == n
        assert "max_leaves" not in many[1].params


def test_balanced_tries_larger_trees_of_many_rows_and_a_tree_for_each_of_many_classes():
    facts = candidates.Facts(15_000, 100_000, 1, 5, 0, 0, False, True)
    for other, leaves in (
        ({}, 63),
        ({"n_rows": 14_999}, None),
        ({"statistics": True}, None),
        ({"n_outputs": 3}, None),
    ):
        _, second = candidates.plan(
            dataclasses.replace(facts, **other), "balanced"
        ).candidates
        assert second.params.get("max_leaves") == leaves
    for n_outputs, n in ((9, 2), (20, 2), (30, 1)):
        found = candidates.plan(
            dataclasses.replace(facts, n_outputs=n_outputs), "balanced"
        ).candidates
        assert len(found) == n
        assert n == 1 or found[1].params["learning_rate"] == (
            0.07 if n_outputs < 10 else 0.14
        )


def test_classes_of_few_rows_have_a_limit_of_rounds_and_no_least_hessian():
    """The rounds of several outputs of few rows make up a sum of learning rates."""
    facts = candidates.Facts(1_999, 19_990, 10, 10, 0, 0, False, True)
    for changed, limited in (
        ({}, True),
        ({"n_rows": 2_000}, False),
        ({"n_outputs": 1}, False),
    ):
        for one in candidates.plan(
            dataclasses.replace(facts, **changed), "balanced"
        ).candidates:
            total = one.params["n_estimators"] * one.params["learning_rate"]
            assert (
                abs(total - candidates.FEW_RATES) < one.params["learning_rate"]
            ) == limited
    assert (
        candidates.plan(facts, "balanced").candidates[0].params["min_child_weight"] == 0
    )


@pytest.mark.parametrize(("quality", "turns"), [("balanced", 2), ("best", 4)])
def test_what_was_chosen_is_trained_again_with_other_rows_held_out(quality, turns):
    """The model is the mean of all turns; rows are held out once where they are the
    last, and under a time limit.
    """
    model = sw.SapwoodRegressor(quality=quality, n_jobs=1, **SHORT).fit(X, SCORE)
    tried = model.chosen_.tried
    again = [one for one in tried if one.name.endswith(", other rows held out")]
    assert again
    assert sum(one.part for one in again) == 1 - 1 / turns
    assert sum(one.part for one in tried) == 1.0
    for other in ({"has_time": True}, {"time_limit": 600}):
        once = sw.SapwoodRegressor(quality=quality, n_jobs=1, **SHORT, **other).fit(
            X, SCORE
        )
        assert not any("other rows" in one.name for one in once.chosen_.tried)


def test_small_weights_count_as_large_ones():
    """Weights times a power of two give the same model; else a leaf of all rows would
    be too light to be split.
    """
    weight = np.random.default_rng(5).uniform(0.5, 1.0, N)
    wanted, found = (
        sw.SapwoodRegressor(quality="fast", n_jobs=1, **SHORT)
        .fit(X, SCORE, sample_weight=w)
        .predict(X)
        for w in (weight, weight / 4096)
    )
    assert np.ptp(wanted) > 0
    assert (wanted == found).all()


def test_a_quality_that_cannot_be_kept_warns():
    few = X[:60], SCORE[:60]
    with pytest.warns(UserWarning, match="quality='best' needs at least 100 rows"):
        model = sw.SapwoodRegressor(quality="best", n_jobs=1).fit(*few)
    with pytest.raises(AttributeError, match="too few rows"):
        _ = model.chosen_
    plain = sw.SapwoodRegressor(has_time=True, n_jobs=1).fit(*few)
    assert (plain.predict(X) == model.predict(X)).all()
    with pytest.raises(NotFittedError):
        _ = sw.SapwoodRegressor().chosen_
    asked = {
        "objective": "squared_error",
        "quality": "fast",
        "has_time": True,
        "n_jobs": 1,
    }
    with pytest.warns(UserWarning, match="quality='fast' needs"):
        assert sw.train(asked, sw.Dataset(X[:60], label=SCORE[:60])).chosen is None


def test_wide_tables_have_few_bins_and_shallow_trees():
    table = np.random.default_rng(0).normal(size=(120, 200))
    model = sw.SapwoodRegressor(n_jobs=1, **SHORT).fit(table, table[:, 0])
    assert model.booster_.params["max_bins"] == 32
    # it has no shape
    listed = sw.SapwoodRegressor(n_jobs=1, **SHORT).fit(table.tolist(), table[:, 0])
    assert listed.booster_.to_bytes() == model.booster_.to_bytes()
    assert (
        sw.SapwoodRegressor(n_jobs=1, max_bins=64, **SHORT)
        .fit(table, table[:, 0])
        .booster_.params["max_bins"]
        == 64
    )
    assert (
        sw.SapwoodRegressor(n_jobs=1, **SHORT)
        .fit(table[:, :99], table[:, 0])
        .booster_.params["max_bins"]
        == 255
    )
    for n, depth, leaves in ((121, 4, 16), (120, 6, None)):
        facts = candidates.Facts(120, 120 * n, 1, n, 0, 0, False, True)
        assert candidates.symmetric(facts, False).params["max_depth"] == depth
        assert candidates.leaf_wise(facts, False).params.get("max_leaves") == leaves
        _, best = candidates.plan(facts, "best").candidates
        assert best.params["max_leaves"] == (leaves or 63)


def test_losers_of_a_race_are_freed_at_once():
    model = FIT._Fit(
        {"objective": "squared_error", **SHORT},
        data_of("squared_error"),
        "balanced",
        None,
    )
    model.candidates()
    losers = [one for one in model.tried if one not in model.finished]
    assert losers and not any(hasattr(one, "data") or one.sessions for one in losers)


def test_constraints_hold_in_every_candidate():
    model = sw.SapwoodRegressor(
        monotone_constraints=[1, 0, 0, 0, 0], n_jobs=1, **SHORT
    ).fit(X, X[:, 0] + SCORE)
    table = np.repeat(np.nan_to_num(X[:20]), 30, axis=0)
    table[:, 0] = np.tile(np.linspace(-3, 3, 30), 20)
    steps = np.diff(model.predict(table).reshape(20, 30), axis=1)
    assert steps.min() >= -1e-9


def test_chosen_says_what_was_tried(capsys):
    model = sw.SapwoodClassifier(n_jobs=1, verbose=1, **SHORT).fit(
        X, LABELS["logistic"] > 0
    )
    words = str(model.chosen_)
    assert "520 of 2,600 rows were held out" in words
    assert "of the model" in words
    assert abs(sum(one.part for one in model.chosen_.tried) - 1) < 1e-12
    assert "symmetric trees" in capsys.readouterr().out
    assert dataclasses.asdict(model.chosen_)["metric"] == "logloss"


def test_time_limit_is_kept():
    """A limit far below what the fit takes; a slow machine gets a second more for what
    is not training.
    """
    start = time.monotonic()
    model = sw.SapwoodClassifier(time_limit=1.0, n_jobs=1, learning_rate=0.001).fit(
        X, LABELS["softmax"]
    )
    assert time.monotonic() - start < 2.2
    assert model.n_iter_ > 0


@pytest.mark.parametrize("cheap", ["symmetric", "none"])
def test_a_time_limit_is_used(monkeypatch, cheap):
    """What can be trained again in the time left is; where nothing can, the candidates
    go on.
    """
    cost = lambda one, _: 0.0 if cheap in one.candidate.name else 1e9  # noqa: E731
    monkeypatch.setattr(Contender, "seconds_on_all_rows", cost)
    model = sw.SapwoodClassifier(time_limit=1.5, n_jobs=1, learning_rate=1e-4).fit(
        X, LABELS["softmax"]
    )
    used = [one.name for one in model.chosen_.tried if one.part > 0]
    assert model.chosen_.refitted == (cheap == "symmetric")
    assert (
        all("symmetric" in name for name in used)
        if model.chosen_.refitted
        else model.chosen_.seconds > 1.2
    )


def test_a_second_training_that_comes_too_late_is_left_out(monkeypatch):
    """Where the machine is slower than it was, the time is over before the rounds are:
    the first models are kept.
    """
    monkeypatch.setattr(Contender, "seconds_on_all_rows", lambda one, _: 0.0)
    late = FIT.refit.on_all_rows
    monkeypatch.setattr(FIT.refit, "on_all_rows", lambda *given: late(*given[:-1], 0.0))
    model = sw.SapwoodRegressor(n_jobs=1, n_estimators=20, quality="balanced").fit(
        X, SCORE
    )
    assert not model.chosen_.refitted
    assert model.score(X, SCORE) > 0.2


@pytest.mark.nightly
@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
@pytest.mark.parametrize("limit", [3.0, 8.0])
def test_time_limit_is_kept_within_a_tenth(quality, limit):
    # imports what a fit needs
    sw.SapwoodRegressor(quality=quality, n_jobs=1, **SHORT).fit(X[:200], SCORE[:200])
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20_000, 20))
    label = (
        np.sin(3 * table[:, 0]) * table[:, 1]
        + table[:, 2] * table[:, 3]
        + 0.1 * rng.normal(size=20_000)
    )
    start = time.monotonic()
    model = sw.SapwoodRegressor(quality=quality, time_limit=limit, n_jobs=1).fit(
        table, label
    )
    assert time.monotonic() - start < 1.1 * limit
    assert model.n_iter_ > 0


def test_quality_is_checked():
    with pytest.raises(ParameterError, match="quality='good' is unknown"):
        sw.SapwoodRegressor(quality="good").fit(X[:200], SCORE[:200])


def test_a_default_that_is_set_by_hand_wins():
    """`linear_leaves=False` is the table's default, and not the candidates'."""
    model = sw.SapwoodRegressor(linear_leaves=False, n_jobs=1, **SHORT).fit(X, SCORE)
    assert model.booster_.trees.linear is None
    assert not any("linear" in one.name for one in model.chosen_.tried)
    capped = sw.SapwoodRegressor(quality="balanced", n_estimators=7, n_jobs=1).fit(
        X[:1200], SCORE[:1200]
    )
    assert capped.chosen_.quality == "balanced"
    assert max(one.rounds for one in capped.chosen_.tried) == 7
    assert capped.n_iter_ == 7 * candidates.N_FOLDS * sum(
        one.part > 0 for one in capped.chosen_.tried
    )


def test_parameters_of_get_params_are_not_set_by_hand():
    given = sw.SapwoodRegressor(n_jobs=1, **SHORT)
    again = pickle.loads(
        pickle.dumps(sw.SapwoodRegressor().set_params(**given.get_params()))
    )
    models = [one.fit(X[:300], SCORE[:300]).booster_ for one in (given, again)]
    assert models[0].to_bytes() == models[1].to_bytes()


def test_chosen_survives_pickling():
    model = sw.SapwoodRegressor(n_jobs=1, **SHORT).fit(X[:300], SCORE[:300])
    assert pickle.loads(pickle.dumps(model)).chosen_ == model.chosen_


@pytest.mark.parametrize(
    "given",
    [
        {"n_estimators": 20},
        {"quality": None},
        {"objective": lambda y, s: (s - y, y * 0 + 1)},
    ],
)
def test_a_time_limit_needs_an_automatic_fit(given):
    with pytest.raises(
        ParameterError,
        match=r"time_limit is for an automatic fit, but .* means a plain one",
    ):
        sw.SapwoodRegressor(time_limit=1.0, **given).fit(X[:200], SCORE[:200])


@pytest.mark.parametrize(
    "given",
    [{"boosting": "dart"}, {"n_parallel_trees": 2}, {"prune_by_validation": True}],
)
def test_what_has_no_second_training_is_refused(given):
    with pytest.raises(
        ParameterError, match=r"quality='fast' trains with .*; leave one of both out"
    ):
        sw.SapwoodRegressor(quality="fast", **given).fit(X[:200], SCORE[:200])


def test_train_is_automatic_where_asked():
    data = sw.Dataset(X[:300], SCORE[:300], n_jobs=1)
    model = sw.train({"quality": "fast", "eta": 0.3, "n_jobs": 1}, data)
    assert model.chosen.quality == "fast"
    assert model.params["learning_rate"] == 0.3
    assert sw.train({"n_jobs": 1}, data, 5).chosen is None
    with pytest.raises(
        ParameterError, match="quality='fast' holds out rows of its own"
    ):
        sw.train({"quality": "fast"}, data, valid=data)
    with pytest.raises(ParameterError, match="time_limit is for an automatic fit"):
        sw.train({"time_limit": 3}, data)


def test_with_time_the_last_rows_are_held_out():
    """The target of the last fifth is another one, so that its loss is large where it
    was held out.
    """
    label = np.where(np.arange(500) < 400, 0.0, 100.0) + SCORE[:500]
    losses = [
        sw.SapwoodRegressor(has_time=has_time, quality="fast", n_jobs=1, **SHORT)
        .fit(X[:500], label)
        .chosen_.tried[0]
        .loss
        for has_time in (True, False)
    ]
    assert losses[0] > 90 > losses[1]


def test_chosen_says_whether_there_was_a_second_training():
    parts = {
        "quality": "fast",
        "metric": "rmse",
        "n_rows": 500,
        "n_held": 100,
        "n_folds": 1,
        "tried": (),
        "seconds": 1.0,
    }
    assert "was then trained on all rows" in str(Chosen(**parts, refitted=True))
    assert "was not trained again" in str(Chosen(**parts, refitted=False))


def test_where_no_rows_can_be_held_out_the_fit_is_plain():
    few = np.zeros(200)
    alone = np.zeros(200, int)
    few[:50] = 1
    models = [
        sw.SapwoodRegressor(n_jobs=1).fit(X[:200], SCORE[:200], sample_weight=few),
        sw.SapwoodRegressor(n_jobs=1).fit(X[:200], SCORE[:200], group=alone),
        sw.SapwoodClassifier(n_jobs=1).fit(X[:110], np.arange(110)),
    ]
    assert not any(hasattr(model, "chosen_") for model in models)
    assert (
        sw.train(
            {"quality": "fast", "n_jobs": 1}, sw.Dataset(X[:50], SCORE[:50])
        ).chosen
        is None
    )


@pytest.mark.parametrize("given", [{"quality": "fast"}, {"time_limit": 1}])
def test_cv_is_plain(given):
    with pytest.raises(
        ParameterError,
        match="is for an automatic fit; give an estimator to scikit-learn's",
    ):
        sw.cv(given, sw.Dataset(X[:200], SCORE[:200]))


@pytest.mark.parametrize(
    "given",
    [{"quality": quality} for quality in ("fast", "balanced", "best", None)]
    + [{"recipe": one} for one in RECIPES],
    ids=str,
)
def test_skewed_counts_do_not_explode(given):
    """A few large counts among zeros. Leaves without a limit predicted 1e26 here, and
    AdaBoost's diverged.

    AdaBoost shrinks nothing, so that it goes farther than the others beyond what it has
    seen.
    """
    rng = np.random.default_rng(3)
    table = np.c_[rng.normal(size=(1500, 5)), rng.integers(0, 50, 1500)]
    label = rng.poisson(np.where(rng.random(1500) < 0.004, 5000, 0.01)).astype(float)
    model = sw.SapwoodRegressor(objective="poisson", n_jobs=1, **given).fit(
        table[:1000], label[:1000]
    )
    assert (
        model.predict(table[1000:]).max()
        < (20 if given.get("recipe") == "adaboost" else 2) * label.max()
    )


@pytest.mark.parametrize(("near", "mixed"), [(10.0, True), (-20.0, False)])
def test_crosses_that_lose_by_little_stay_in_every_other_candidate(
    monkeypatch, near, mixed
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2600, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=2600)
    owner = import_module("sapwood.boost.auto.fit")
    monkeypatch.setattr(owner, "CROSSES_NEAR", near)
    monkeypatch.setattr(owner, "CROSSES_LEAD", 10.0)  # they cannot win
    given = {"objective": "squared_error", "learning_rate": 0.3, "n_estimators": 60}
    data = sw.Dataset(X, y, linear_leaves=True, n_jobs=1)
    one, other = (
        fit({**given, "n_jobs": n_jobs}, data, "balanced") for n_jobs in (1, 3)
    )
    assert one.fingerprint() == other.fingerprint()
    names = [
        each.name
        for each in one.chosen.tried
        if not each.stopped and "other rows" not in each.name
    ]
    assert [("crosses" in name) for name in names] == [False, mixed]


def test_crosses_race_on_few_rows() -> None:
    """A product of two columns wins on 600 rows; of several outputs numbers are only
    centred by a category.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = 3.0 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=600)
    model = sw.SapwoodRegressor(random_state=0).fit(X, y)
    assert "crosses" in str(model.chosen_) and len(model.booster_.crosses)
    classes = sw.SapwoodClassifier(random_state=0).fit(X, np.digitize(y, [-1.0, 1.0]))
    assert not len(classes.booster_.crosses)


@pytest.mark.parametrize(
    ("table", "shared"),
    [(X, True), (X.astype(np.float32), True), (np.asfortranarray(X), False)],
)
def test_the_values_of_an_estimator_are_not_copied(monkeypatch, table, shared):
    """A table of floats, row by row, is read where it lies, and stays writable."""
    seen = []
    monkeypatch.setattr(
        FIT._Fit, "candidates", lambda one: seen.append(one.data.values) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        sw.SapwoodRegressor().fit(table, SCORE)
    assert np.shares_memory(seen[0], table) == shared
    assert table.flags.writeable and not seen[0].flags.writeable
    assert not np.shares_memory(
        sw.Dataset(table, SCORE, linear_leaves=True).values, table
    )


@pytest.mark.parametrize(
    ("quality", "n_outputs", "n_rounds", "stops"),
    [
        ("balanced", 1, 1000, True),
        ("balanced", 1, 500, False),
        ("best", 1, 1000, False),
        ("balanced", 12, 250, True),
        ("best", 12, 250, True),
        ("balanced", 12, 249, False),
    ],
)
def test_candidates_that_are_far_behind_stop(quality, n_outputs, n_rounds, stops):
    label = (
        SCORE
        if n_outputs == 1
        else np.digitize(SCORE, np.quantile(SCORE, np.linspace(0, 1, 13)[1:-1])).astype(
            float
        )
    )
    objective = "squared_error" if n_outputs == 1 else "softmax"
    one = FIT._Fit(
        {"objective": objective, "n_jobs": 1},
        sw.Dataset(X, label, n_jobs=1),
        quality,
        None,
    )
    made = [
        SimpleNamespace(
            loss=x, n_rounds=n_rounds, stopped=False, is_behind=lambda y, x=x: x > y
        )
        for x in (2, 2.3)
    ]
    one.give_up(made)
    assert [each.stopped for each in made] == [False, stops]


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(9.0, "ab"), (5.0, "a"), (3.0, "b"), (1.0, "")]
)
def test_of_what_can_be_trained_again_in_time_the_best_is(seconds, wanted):
    """The better candidate takes longer: it stays where there is time for it, though
    not for both.
    """
    made = {"a": _Made([0.2, 1.0], 1), "b": _Made([-1.0, 0.4], 1)}
    for name, cost in (("a", 4.0), ("b", 2.0)):
        made[name].seconds_on_all_rows = lambda _, cost=cost: cost
    one = FIT._Fit(
        {"objective": "squared_error", "n_jobs": 1},
        data_of("squared_error"),
        "balanced",
        None,
    )
    one.finished = [made["b"], made["a"]]
    chosen = one.to_refit(seconds)
    assert {each for each, _ in chosen} == {made[name] for name in wanted}


def test_a_candidate_is_behind_if_half_of_its_rounds_again_do_not_bring_it_near():
    data = data_of("squared_error").without_values()
    held = np.arange(N) % 5 == 0
    given = {
        "objective": "squared_error",
        "n_jobs": 1,
        "n_estimators": 60,
        "early_stopping_rounds": 60,
    }
    one = Contender(
        candidates.Candidate("any", {"learning_rate": 0.05, "max_leaves": 4}),
        given,
        data,
        [held],
    )
    one.advance(40)
    near = one.loss - (one.losses[19] - one.loss)
    assert one.is_behind(near - 1e-9) and not one.is_behind(near + 1e-9)


@pytest.mark.parametrize("quality", ["fast", "balanced"])
@pytest.mark.parametrize(
    "more", [{"linear_leaves": True}, {"linear_tree": True, "linear_lambda": 5.0}]
)
def test_linear_leaves_by_hand(quality, more) -> None:
    """They are in the model, however few rows there are."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=500)
    model = sw.SapwoodRegressor(quality=quality, **more).fit(X, y)
    assert model.booster_.linear
    assert sw.train(
        {"quality": quality, "linear_leaves": True},
        sw.Dataset(X, y, linear_leaves=True),
    ).linear


@pytest.mark.parametrize("max_depth", [-1, 0, 20])
def test_a_depth_that_symmetric_trees_cannot_have_is_for_the_others(max_depth) -> None:
    """No limit is LightGBM's default. Symmetric trees keep their own, unless they are
    asked for by name.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=400)
    names = " ".join(
        one.name
        for one in sw.SapwoodRegressor(max_depth=max_depth).fit(X, y).chosen_.tried
    )
    assert "symmetric" in names and "leaf-wise" in names
    with pytest.raises(ParameterError, match="symmetric"):
        sw.SapwoodRegressor(
            max_depth=max_depth, grow_policy="symmetric", quality="fast"
        ).fit(X, y)


@pytest.mark.parametrize(
    "more", [{"feature_weights": {0: 0.0}}, {"first_use_penalties": {0: 1e9}}]
)
def test_a_column_that_is_ruled_out_is_in_no_cross(more) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 4))
    y = 3 * X[:, 0] * X[:, 1] + X[:, 2]
    model = sw.SapwoodRegressor(**more).fit(X, y)
    other = X.copy()
    other[:, 0] = 3.0
    np.testing.assert_array_equal(model.predict(other), model.predict(X))
    assert len(sw.SapwoodRegressor().fit(X, y).booster_.crosses)


def test_exact_trees_have_no_crosses() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(700, 3))
    model = sw.SapwoodRegressor(tree_method="exact", quality="balanced").fit(
        X, X[:, 0] * X[:, 1]
    )
    assert not len(model.booster_.crosses)


@pytest.mark.parametrize("exponent", [-30, 20, 60])
def test_weights_of_any_unit_give_the_same_model(exponent) -> None:
    """Powers of two of drawn weights; from a mean of 16 on they are no counts of
    rows.
    """
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, 4))
    y = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=1500)
    weight = rng.uniform(0.6, 0.9, 1500)
    one, other = (
        sw.SapwoodRegressor(quality="fast").fit(X, y, sample_weight=w)
        for w in (weight, np.ldexp(weight, exponent))
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
