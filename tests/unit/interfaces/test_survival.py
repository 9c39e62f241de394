"""SapwoodSurvival: gradients by differences, scikit-survival as oracle, curves,
degenerate cases.
"""

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import sapwood
from sapwood import (
    SapwoodClassifier,
    SapwoodDistribution,
    SapwoodRanker,
    SapwoodRegressor,
    SapwoodSurvival,
    metric,
)
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.objective.survival import Aft, Cox, Hazard, normal_cdf

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
TIME = np.ceil(RNG.exponential(np.exp(1.5 - 0.8 * X[:, 0])) * 2)  # many are equal
CENSORED = np.ceil(RNG.exponential(8.0, N) * 2)
EVENT = TIME <= CENSORED
TIME = np.minimum(TIME, CENSORED)
WEIGHT = RNG.integers(1, 4, N) / 2.0
SCORE = RNG.normal(size=N)


def differences(loss: Any, score: NDArray[Any], rows: Any) -> NDArray[Any]:
    """Central differences of a loss, of fourth order."""
    out = np.zeros(len(rows))
    step = 1e-3
    for at, row in enumerate(rows):
        values = [
            loss(score + k * step * (np.arange(len(score)) == row))
            for k in (-2, -1, 1, 2)
        ]
        out[at] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return out


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("truncated", [False, True])
def test_cox_is_the_gradient_of_its_likelihood(ties: str, truncated: bool) -> None:
    """The likelihood is written out by its definition, with ties and weights."""
    y = np.column_stack(
        [TIME, EVENT]
        + ([np.maximum(TIME - 5, 0) * (RNG.random(N) < 0.5)] if truncated else [])
    )

    def by_definition(score: NDArray[Any]) -> float:
        v = WEIGHT * np.exp(score)
        total = 0.0
        for t in np.unique(TIME[EVENT]):
            dead = EVENT & (t == TIME)
            at_risk = (t <= TIME) & ((y[:, 2] < t) if truncated else True)
            d = dead.sum()
            for k in range(d):
                rest = (
                    v[at_risk].sum()
                    - (k / d if ties == "efron" else 0.0) * v[dead].sum()
                )
                total += WEIGHT[dead].sum() / d * np.log(rest)
        return float(total - (WEIGHT * score)[EVENT].sum())

    goal = Cox(ties)
    assert goal.loss(y, SCORE, WEIGHT) == pytest.approx(by_definition(SCORE), rel=1e-12)
    g, h = goal.grad_hess(y, SCORE, WEIGHT)
    rows = np.arange(0, N, 11)
    np.testing.assert_allclose(
        g[rows], differences(by_definition, SCORE, rows), atol=1e-7
    )
    assert (h > 0).all()
    order = RNG.permutation(N)
    again = goal.grad_hess(y[order], SCORE[order], WEIGHT[order])
    for one, two in zip((g, h), again, strict=True):
        np.testing.assert_array_equal(one[order], two)


@pytest.mark.parametrize("dist", ["normal", "logistic", "extreme"])
def test_aft_is_the_gradient_of_its_likelihood(dist: str) -> None:
    low = TIME + 0.5
    kinds = np.arange(N) % 4
    high = np.select(
        [kinds == 0, kinds == 1, kinds == 2], [low, np.full(N, 1e300), low * 1.7], low
    )
    low = np.where(kinds == 3, 0.0, low)
    y, goal = np.column_stack([low, high]), Aft(dist)
    goal.log_scale = 0.2
    score = 1.0 + 0.5 * SCORE
    loss, g, h, slope = goal._terms(y, score)
    rows = np.arange(N)
    np.testing.assert_allclose(
        g, differences(lambda s: goal._terms(y, s)[0].sum(), score, rows), atol=1e-7
    )
    bend = np.array(
        [(goal._terms(y, score + 1e-5)[1] - goal._terms(y, score - 1e-5)[1]) / 2e-5]
    )[0]
    np.testing.assert_allclose(h, np.maximum(bend, 1e-6), atol=1e-5)
    up = Aft(dist)
    down = Aft(dist)
    up.log_scale = 0.2 + 1e-5
    down.log_scale = 0.2 - 1e-5
    np.testing.assert_allclose(
        slope, (up.loss(y, score) - down.loss(y, score)) / 2e-5, atol=1e-6
    )
    assert np.isfinite(loss).all()


def test_the_normal_distribution_function() -> None:
    from scipy.stats import norm

    z = np.linspace(-37, 37, 4001)
    np.testing.assert_allclose(normal_cdf(z), norm.cdf(z), rtol=1e-12)


@pytest.mark.parametrize("edges", [[0.0, 60.0], [0.0, 2.0, 5.0, 60.0]])
def test_hazard_is_the_gradient_of_its_likelihood(edges: list[float]) -> None:
    """The likelihood is written out by its definition; scores are those that all
    intervals share, and their own.
    """
    goal = Hazard(np.array(edges), 0.4)
    entry = np.where(RNG.random(N) < 0.3, TIME / 3, 0.0)
    y = np.column_stack([entry, TIME, EVENT])
    score = RNG.normal(-1, 0.5, (N, goal.n_outputs))
    at_risk, events = goal.exposures(y)
    np.testing.assert_allclose(at_risk.sum(0), TIME - entry)
    assert (events.sum(0) == EVENT).all()

    def by_definition(score: NDArray[Any]) -> NDArray[Any]:
        log = score[:, :1] + 0.4 * score[:, 1:] if len(edges) > 2 else score
        return np.asarray((np.exp(log) * at_risk.T - events.T * log).sum(axis=1))

    np.testing.assert_allclose(goal.loss(y, score), by_definition(score), rtol=1e-12)
    g, h = goal.grad_hess(y, score)
    step = 1e-3
    for k in range(goal.n_outputs):
        move = step * (np.arange(goal.n_outputs) == k)
        at = [by_definition(score + m * move) for m in (-2, -1, 1, 2)]
        np.testing.assert_allclose(
            g[:, k], (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step), atol=1e-7
        )
        slopes = [goal.grad_hess(y, score + m * move)[0][:, k] for m in (-2, -1, 1, 2)]
        np.testing.assert_allclose(
            h[:, k],
            (slopes[0] - 8 * slopes[1] + 8 * slopes[2] - slopes[3]) / (12 * step),
            atol=1e-7,
        )
    np.testing.assert_allclose(
        goal.cumulative(score, np.array([60.0]))[:, 0],
        np.diff(goal.edges) @ goal.rates(score),
        rtol=1e-12,
    )
    start = goal.start(y, WEIGHT)
    share = events @ WEIGHT / (at_risk @ WEIGHT)
    np.testing.assert_allclose(goal.rates(start[None])[:, 0], share, rtol=1e-9)


@pytest.mark.parametrize("model", ["hazard", "cox", "aft"])
def test_curves_fall_and_rank(model: str) -> None:
    fitted = SapwoodSurvival(model, n_estimators=40).fit(X, (TIME + 0.5, EVENT))
    assert fitted.score(X, (TIME + 0.5, EVENT)) > 0.65
    times = np.linspace(0, 60, 50)
    curve = fitted.predict_survival_function(X, times)
    assert (np.diff(curve, axis=1) <= 0).all()
    assert ((curve >= 0) & (curve <= 1)).all()
    np.testing.assert_allclose(curve[:, :1], 1.0)
    np.testing.assert_allclose(
        np.exp(-fitted.predict_cumulative_hazard(X, times)), curve, atol=1e-12
    )
    middle = fitted.predict_quantile(X, 0.5)
    known = np.isfinite(middle)
    at = np.array(
        [
            fitted.predict_survival_function(X[i : i + 1], [middle[i]])[0, 0]
            for i in np.flatnonzero(known)[:20]
        ]
    )
    assert (at <= 0.5 + 1e-9).all()
    mean = fitted.predict_restricted_mean(X, 30.0)
    assert ((mean > 0) & (mean <= 30)).all()
    for n_jobs in (1, 3):
        again = SapwoodSurvival(model, n_estimators=40, n_jobs=n_jobs).fit(
            X, (TIME + 0.5, EVENT)
        )
        assert again.booster_.to_bytes() == fitted.booster_.to_bytes()


def test_parameters_are_taken_as_the_other_estimators_take_them() -> None:
    y = TIME + 0.5, EVENT
    named = SapwoodSurvival(
        "cox", num_leaves=4, n_estimators=5, reg_lambda=2.0, max_bin=31
    )
    assert (named.max_leaves, named.max_bins, named.get_params()["learning_rate"]) == (
        4,
        31,
        0.05,
    )
    again = clone(named)
    assert again.get_params() == named.get_params()
    model = named.fit(X, y).booster_
    assert model.to_bytes() == again.fit(X, y).booster_.to_bytes()
    assert (model.params["max_leaves"], model.params["reg_lambda"]) == (4, 2.0)
    assert (
        model.to_bytes()
        != SapwoodSurvival("cox", num_leaves=4, n_estimators=5, reg_lambda=2.0)
        .fit(X, y)
        .booster_.to_bytes()
    )  # max_bins reaches the dataset
    assert str(inspect.signature(SapwoodSurvival)).startswith(
        "(model='hazard', *, ties='efron'"
    )
    with pytest.raises(
        ParameterError, match="SapwoodSurvival has no parameter 'objective'"
    ):
        SapwoodSurvival(objective="poisson")
    with pytest.raises(ParameterError, match="n_intervals=0 is too small"):
        SapwoodSurvival(n_intervals=0).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = SapwoodSurvival(n_estimators=3).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.rename(columns={"a": "z"}))


def test_metrics_are_those_of_scikit_survival() -> None:
    sks = pytest.importorskip("sksurv.metrics")
    from sksurv.util import Surv

    time = TIME + 0.5
    half = np.arange(N) % 2 == 0
    train = Surv.from_arrays(EVENT[half], time[half])
    test = Surv.from_arrays(EVENT[~half], time[~half])
    ours = (time[half], EVENT[half]), time[~half], EVENT[~half]
    risk = (X[:, 0] + RNG.normal(0, 0.3, N).round(1))[~half]
    assert metric.concordance(*ours[1:], risk) == pytest.approx(
        sks.concordance_index_censored(EVENT[~half], time[~half], risk)[0], rel=1e-12
    )
    tau = float(np.quantile(time[~half], 0.8))
    assert metric.concordance_ipcw(*ours, risk, tau) == pytest.approx(
        sks.concordance_index_ipcw(train, test, risk, tau)[0], rel=1e-9
    )
    times = np.quantile(time[~half], [0.2, 0.4, 0.6, 0.75])
    times = np.unique(times)
    curve = np.exp(-np.exp(risk)[:, None] * times / 20)
    np.testing.assert_allclose(
        metric.brier_survival(*ours, curve, times),
        sks.brier_score(train, test, curve, times)[1],
        rtol=1e-9,
    )
    assert metric.integrated_brier(*ours, curve, times) == pytest.approx(
        sks.integrated_brier_score(train, test, curve, times), rel=1e-9
    )
    np.testing.assert_allclose(
        metric.dynamic_auc(*ours, risk, times),
        sks.cumulative_dynamic_auc(train, test, risk, times)[0],
        rtol=1e-9,
    )


def test_degenerate_targets() -> None:
    fit = SapwoodSurvival(n_estimators=3).fit
    with pytest.raises(DataError, match="no row has an event"):
        fit(X, (TIME, np.zeros(N, bool)))
    with pytest.raises(DataError, match="at least 0"):
        fit(X, (-TIME, EVENT))
    with pytest.raises(DataError, match="entry"):
        SapwoodSurvival("cox").fit(X, (TIME, EVENT), entry=TIME)
    with pytest.raises(DataError, match="cause"):
        fit(X, (TIME, np.full(N, 0.5)))
    with pytest.raises(DataError, match="competing"):
        SapwoodSurvival("aft").fit(
            X, np.array(list(zip(EVENT * 2, TIME, strict=True)), "i4,f8")
        )
    with pytest.raises(DataError, match="lower <= upper"):
        SapwoodSurvival("aft").fit(X, (TIME, TIME - 1.0))
    with pytest.raises(DataError, match="above 0"):
        SapwoodSurvival("aft").fit(
            X, (np.zeros(N), np.where(np.arange(N) == 7, 0.0, 2.0))
        )
    with pytest.raises(ParameterError, match="model="):
        SapwoodSurvival("kaplan").fit(X, (TIME, EVENT))
    for model in ("hazard", "cox"):
        # a sample depends on the places of rows
        few = SapwoodSurvival(model, n_estimators=5, subsample=1.0)
        for time, event in (
            (TIME, np.ones(N, bool)),
            (np.full(N, 3.0), EVENT),
            (TIME * (np.arange(N) > 5), EVENT),
        ):
            assert np.isfinite(few.fit(X, (time, event)).predict(X)).all()
        # censored rows leave before the first event
        before = np.where(EVENT, TIME + 100, 1.0)
        assert np.isfinite(
            few.fit(X, (before, EVENT)).predict_survival_function(X, [0.5, 150.0])
        ).all()
        with pytest.raises(DataError, match="finite"):
            few.fit(X, (np.where(EVENT, np.inf, TIME), EVENT))
        last = np.argmax(TIME + np.arange(N) * 1e-9) == np.arange(N)
        assert np.isfinite(few.fit(X, (TIME, last)).predict(X)).all()
        weight = np.where(np.arange(N) < 50, 0.0, 1.0)
        whole = few.fit(X, (TIME, EVENT), weight).predict(X)
        alone = few.fit(X[50:], (TIME[50:], EVENT[50:])).predict(X)
        np.testing.assert_allclose(whole, alone, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", ["hazard", "cox"])
def test_competing_causes(model: str) -> None:
    """Each cause has a model of its own, for which events of the others are censored;
    probabilities sum to 1.
    """
    other = RNG.exponential(np.exp(1.5 - 0.8 * X[:, 1]))
    own = TIME - 0.99 * RNG.random(N)
    time = np.minimum(own, other)
    cause = np.where(own <= other, np.where(EVENT, 1, 0), 3)
    assert set(cause) == {0, 1, 3}
    fitted = SapwoodSurvival(model, n_estimators=40).fit(X, (time, cause))
    np.testing.assert_array_equal(fitted.causes_, [1, 3])
    structured = np.array(list(zip(cause, time, strict=True)), "i4,f8")
    np.testing.assert_array_equal(
        SapwoodSurvival(model, n_estimators=40).fit(X, structured).predict(X),
        fitted.predict(X),
    )
    times = np.linspace(0.0, time.max(), 40)
    incidence = fitted.predict_cumulative_incidence(X, times)
    left = fitted.predict_survival_function(X, times)
    assert incidence.shape == (N, 2, 40)
    np.testing.assert_allclose(incidence.sum(axis=1) + left, 1.0, atol=1e-12)
    assert (np.diff(incidence, axis=2) >= -1e-15).all()
    assert not incidence[:, :, 0].any()
    for number in (1, 3):
        alone = SapwoodSurvival(model, n_estimators=40).fit(X, (time, cause == number))
        if model == "cox":
            np.testing.assert_array_equal(
                alone.predict(X), fitted.predict(X, cause=number)
            )
        assert (
            metric.concordance(time, cause == number, fitted.predict(X, cause=number))
            > 0.65
        )
    hazards = [
        fitted.predict_cumulative_hazard(X, times, cause=number) for number in (1, 3)
    ]
    np.testing.assert_allclose(
        sum(hazards), fitted.predict_cumulative_hazard(X, times), rtol=1e-12
    )
    # of all rows, the mean incidence is near Aalen and Johansen's estimate of each
    # cause
    for k, number in enumerate((1, 3)):
        at, kept = metric.kaplan_meier(time, cause > 0)
        before = np.append(1.0, kept)[np.searchsorted(at, at, side="left")]
        hit = np.array(
            [(cause[time == t] == number).sum() / (time >= t).sum() for t in at]
        )
        estimate = np.append(0.0, np.cumsum(before * hit))[
            np.searchsorted(at, times, side="right")
        ]
        np.testing.assert_allclose(incidence[:, k].mean(axis=0), estimate, atol=0.05)
    with pytest.raises(ParameterError, match="cause=2"):
        fitted.predict(X, cause=2)


@pytest.mark.parametrize("model", ["hazard", "cox", "aft"])
def test_entry_times_and_intervals_are_learned_from(model: str) -> None:
    """Rows that enter late are not at risk before; bounds say less than times, and the
    order stays.
    """
    if model == "aft":
        wide = SapwoodSurvival("aft").fit(
            X, (np.maximum(TIME - 1, 0.0), np.where(EVENT, TIME + 1, np.inf))
        )
        assert metric.concordance(TIME, EVENT, wide.predict(X)) > 0.65
        return
    entry = np.where(RNG.random(N) < 0.5, TIME * 0.6, 0.0)
    late = SapwoodSurvival(model, n_estimators=20).fit(
        X, (TIME + 0.5, EVENT), entry=entry
    )
    plain = SapwoodSurvival(model, n_estimators=20).fit(X, (TIME + 0.5, EVENT))
    at = [2.0, 6.0]
    # fewer rows at risk, the same events: hazards are higher
    assert (
        late.predict_cumulative_hazard(X, at).mean(axis=0)
        > plain.predict_cumulative_hazard(X, at).mean(axis=0)
    ).all()
    assert late.score(X, (TIME, EVENT)) > 0.65


def test_tools_of_scikit_learn_take_it() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    y = np.array(
        list(zip(EVENT, TIME + 0.5, strict=True)), [("event", "?"), ("time", "f8")]
    )
    model = SapwoodSurvival(n_estimators=10)
    assert (cross_val_score(model, X, y, cv=3) > 0.6).all()
    search = GridSearchCV(model, {"max_leaves": [2, 4]}, cv=2).fit(X, y)
    assert search.best_params_["max_leaves"] in (2, 4)
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    assert piped.score(X, y) > 0.65


@pytest.mark.parametrize("model", ["hazard", "cox", "aft"])
def test_tools_of_scikit_survival_take_it(model: str) -> None:
    sks = pytest.importorskip("sksurv.metrics")
    y = np.array(
        list(zip(EVENT, TIME + 0.5, strict=True)), [("event", "?"), ("time", "f8")]
    )
    half = np.arange(N) % 2 == 0
    times = np.array([2.0, 4.0, 8.0])
    fitted = SapwoodSurvival(model, n_estimators=20)
    for made in (
        sks.as_concordance_index_ipcw_scorer,
        sks.as_cumulative_dynamic_auc_scorer,
    ):
        more = {"times": times} if made is sks.as_cumulative_dynamic_auc_scorer else {}
        assert (
            made(fitted, **more).fit(X[half], y[half]).score(X[~half], y[~half]) > 0.6
        )
    scorer = sks.as_integrated_brier_score_scorer(fitted, times=times).fit(
        X[half], y[half]
    )
    curves = fitted.predict_survival_function(X[~half], times)
    assert scorer.score(X[~half], y[~half]) == pytest.approx(
        -sks.integrated_brier_score(y[half], y[~half], curves, times), rel=1e-9
    )
    first = fitted.predict_survival_function(X)[0]
    np.testing.assert_array_equal(first(first.x), first.y)
    assert first(3.0) == fitted.predict_survival_function(X[:1], [3.0])[0, 0]
    hazard = fitted.predict_cumulative_hazard_function(X)[0]
    np.testing.assert_allclose(np.exp(-hazard(times)), first(times), atol=1e-12)


def test_bad_questions_are_refused_in_words() -> None:
    model = SapwoodSurvival(n_estimators=2).fit(X, (TIME, EVENT))
    for level in (0, 1, "x", [0.5, 1.0], [[0.5]], [], None, np.nan):
        with pytest.raises(ParameterError, match="level="):
            model.predict_quantile(X, level)
    for tau in (0, "x", [2.0], np.inf):
        with pytest.raises(ParameterError, match="tau="):
            model.predict_restricted_mean(X, tau)
    for times in ("x", [[1.0, 2.0]], [np.nan], [-1.0]):
        with pytest.raises(DataError, match="times"):
            model.predict_survival_function(X, times)
    with pytest.raises(ParameterError, match="cause="):
        model.predict(X, [1, 2])
    with pytest.raises(DataError, match="y has 2 values for 300 rows"):
        model.score(X, (TIME[:2], EVENT[:2]))


QUICK: dict[str, Any] = {"n_estimators": 3, "n_jobs": 1}


@pytest.mark.parametrize("model", ["hazard", "cox", "aft"])
def test_files_bring_the_curves_back(model: str, tmp_path: Path) -> None:
    fitted = SapwoodSurvival(model, **QUICK).fit(X, (TIME + 0.5, EVENT))
    fitted.save(tmp_path / "m")
    for again in (
        SapwoodSurvival.load(tmp_path / "m"),
        SapwoodSurvival("cox").load_model(tmp_path / "m"),
    ):
        assert (
            again.model == model
            and again.booster_.to_bytes() == fitted.booster_.to_bytes()
        )
        for asked in (
            "predict",
            "predict_cumulative_hazard",
            "predict_quantile",
            "predict_restricted_mean",
        ):
            assert (
                getattr(again, asked)(X).tobytes()
                == getattr(fitted, asked)(X).tobytes()
            )
        assert again.predict_survival_function(X)[0](
            3.0
        ) == fitted.predict_survival_function(X)[0](3.0)
        assert again.score(X, (TIME, EVENT)) == fitted.score(X, (TIME, EVENT))
        assert again.predict(X[:0]).shape == (0,)
    parts = dict(fitted.booster_.params["survival"])
    wrong = {
        "hazard": {"edges": [0, 3, 2]},
        "cox": {"baseline": [1.0]},
        "aft": {"log_scale": "x"},
    }[model]
    for bad in (wrong, {"model": "other"}, {"event_times": None}, {"others": ["x"]}):
        params = {**fitted.booster_.params, "survival": {**parts, **bad}}
        with pytest.raises(ModelFormatError):
            SapwoodSurvival.load(
                sapwood.model.booster.replace(fitted.booster_, params=params).to_bytes()
            )


def test_files_have_every_cause(tmp_path: Path) -> None:
    cause = np.where(EVENT, 1 + np.arange(N) % 2 * 2, 0)
    fitted = SapwoodSurvival(**QUICK).fit(X, (TIME + 0.5, cause))
    fitted.save_model(tmp_path / "m")
    again = SapwoodSurvival.load(tmp_path / "m")
    assert again.causes_.tolist() == [1, 3]
    at = [1.0, 5.0]
    assert (
        again.predict_cumulative_incidence(X, at).tobytes()
        == fitted.predict_cumulative_incidence(X, at).tobytes()
    )
    assert again.predict(X, cause=3).tobytes() == fitted.predict(X, cause=3).tobytes()


def test_a_file_of_another_estimator_is_refused() -> None:
    grades = np.arange(N) % 3
    made: dict[type, Any] = {
        SapwoodRegressor: SapwoodRegressor(**QUICK).fit(X, TIME),
        SapwoodClassifier: SapwoodClassifier(**QUICK).fit(X, EVENT),
        SapwoodRanker: SapwoodRanker(**QUICK).fit(
            X, grades, np.repeat(np.arange(N // 10), 10)
        ),
        SapwoodDistribution: SapwoodDistribution("normal", n_folds=0, **QUICK).fit(
            X, TIME
        ),
        SapwoodSurvival: SapwoodSurvival("cox", **QUICK).fit(X, (TIME, EVENT)),
    }
    for kind, model in made.items():
        raw = model.booster_.to_bytes()
        for reader in made:
            # any loss of rows can rank
            if reader is kind or (kind, reader) == (SapwoodRegressor, SapwoodRanker):
                assert (
                    reader().load_model(raw).predict(X).tobytes()
                    == model.predict(X).tobytes()
                )
                continue
            with pytest.raises(
                ModelFormatError, match=rf"read it with {kind.__name__}\(\)"
            ):
                reader().load_model(raw)
    own = SapwoodRegressor(objective="lambdarank", **QUICK).fit(
        X, grades, group=np.repeat(np.arange(N // 10), 10)
    )
    assert (
        SapwoodRegressor(objective="lambdarank")
        .load_model(own.booster_.to_bytes())
        .n_iter_
        == 3
    )
    two = (
        SapwoodRegressor(objective="logistic", **QUICK)
        .fit(X, EVENT)
        .booster_.to_bytes()
    )
    for reader in (SapwoodRegressor, SapwoodClassifier):  # nothing says which it is
        assert len(reader().load_model(two).predict(X)) == N


def test_events_are_told_from_bounds() -> None:
    """A second column of only 0 and 1 has events in every model; where it could have
    bounds, a warning says so.
    """
    model = SapwoodSurvival("aft", **QUICK)
    small = (TIME + 0.5) / (TIME.max() + 1)
    right = model.fit(X, (small, EVENT)).predict_quantile(X)
    for event in (EVENT.astype(float), EVENT.astype(int), EVENT.astype(object)):
        np.testing.assert_array_equal(
            model.fit(X, (small, event)).predict_quantile(X), right
        )
    with pytest.warns(UserWarning, match="read as events"):
        numeric = model.fit(X, (small, np.ones(N))).predict_quantile(X)
    np.testing.assert_array_equal(
        numeric, model.fit(X, (small, np.ones(N, bool))).predict_quantile(X)
    )
    assert np.median(numeric) < 0.5 * small.max()
    objects = (
        SapwoodSurvival("cox", **QUICK).fit(X, (TIME, EVENT.astype(object))).predict(X)
    )
    np.testing.assert_array_equal(
        objects, SapwoodSurvival("cox", **QUICK).fit(X, (TIME, EVENT)).predict(X)
    )


@pytest.mark.parametrize("model", ["hazard", "cox", "aft"])
def test_bad_targets_are_refused_in_words(model: str) -> None:
    fit = SapwoodSurvival(model, **QUICK).fit
    days = pd.Series(pd.to_timedelta(TIME, unit="D"))
    for times in (
        days,
        days + pd.Timestamp("2020-01-01"),
        (days + pd.Timestamp("2020-01-01")).dt.tz_localize("UTC"),
    ):
        with pytest.raises(DataError, match=r"total_seconds\(\) / 86400"):
            fit(X, (times, EVENT))
    for bad in (np.nan, -1.0, np.inf):
        with pytest.raises(
            DataError,
            match=f"times must be finite and at least 0; first in row 5: {bad}",
        ):
            fit(X, (np.where(np.arange(N) == 5, bad, TIME), EVENT))
    with pytest.raises(DataError, match="event == 'yes'"):
        fit(X, (TIME, np.where(EVENT, "yes", "no")))
    with pytest.raises(DataError, match="first in row 2: None"):
        fit(X, (TIME, np.array([*EVENT[:2], None, *EVENT[3:]], object)))
    with pytest.raises(DataError, match="swapped"):
        fit(X, (EVENT, TIME))
    with pytest.raises(DataError, match=r"sample_weight is -1\.0 in row 4"):
        fit(X, (TIME + 1, EVENT), np.where(np.arange(N) == 4, -1.0, 1.0))
    with pytest.raises(DataError, match="no row has an event"):
        fit(X, (TIME + 1, np.zeros(N, bool)))
    if model != "aft":
        with pytest.raises(
            DataError, match="before the row's own time; first in row 9: 99"
        ):
            fit(X, (TIME, EVENT), entry=np.where(np.arange(N) == 9, 99, 0))
    if model == "hazard":
        with pytest.raises(DataError, match="every time is 0"):
            fit(X, (TIME * 0, EVENT))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same = fit(X, (np.full(N, 3.0), EVENT))
        np.testing.assert_allclose(same.predict_quantile(X), 3.0, rtol=1e-3)


def test_questions_of_several_levels_and_of_no_row() -> None:
    for model in ("hazard", "cox", "aft"):
        fitted = SapwoodSurvival(model, **QUICK).fit(X, (TIME + 0.5, EVENT))
        both = fitted.predict_quantile(X, [0.1, 0.5])
        assert both.shape == (N, 2) and (both[:, 0] <= both[:, 1]).all()
        np.testing.assert_array_equal(both[:, 1], fitted.predict_quantile(X))
        assert fitted.predict(X[:0]).shape == (0,) and fitted.predict_quantile(
            X[:0]
        ).shape == (0,)
        assert fitted.predict_survival_function(X[:0], [1.0, 2.0]).shape == (0, 2)
        assert len(fitted.predict_survival_function(X[:0])) == 0
        assert fitted.predict_cumulative_incidence(X[:0], [1.0]).shape == (0, 1, 1)
        with pytest.raises(DataError, match="dates or durations"):
            fitted.predict_survival_function(X, pd.to_timedelta([1, 2], unit="D"))
        with pytest.raises(ParameterError, match="integrated_brier"):
            fitted.report(X, (TIME, EVENT))


def test_what_it_has_not_is_said() -> None:
    for name, value, words in (
        ("early_stopping_rounds", 5, "n_estimators rounds"),
        ("conformal", "split", "quantile"),
    ):
        with pytest.raises(ParameterError, match=words):
            SapwoodSurvival(**{name: value})
    with pytest.raises(ParameterError, match=r"interval\(X, coverage\)"):
        SapwoodDistribution(conformal="split")


def test_metrics_take_structured_arrays_and_refuse_swapped_ones() -> None:
    y = np.array(list(zip(EVENT, TIME, strict=True)), [("event", "?"), ("time", "f8")])
    found = metric.concordance_ipcw((TIME, EVENT), TIME, EVENT, X[:, 0], 20.0)
    assert metric.concordance_ipcw(y, y["time"], y["event"], X[:, 0], 20.0) == found
    with pytest.raises(DataError, match="swapped"):
        metric.concordance(EVENT, TIME, X[:, 0])
    with pytest.raises(DataError, match="events are True or False"):
        metric.concordance(EVENT, TIME / TIME.max(), X[:, 0])
    with pytest.raises(DataError, match=r"risks have the shape \(300, 4\)"):
        metric.concordance(TIME, EVENT, X)
