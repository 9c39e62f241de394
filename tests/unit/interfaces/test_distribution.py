"""SapwoodDistribution: what is learned, files, weights, bytes over threads, degenerate
cases.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sapwood
from sapwood import SapwoodDistribution, metric
from sapwood.boost.auto.distribution import DEGREES, MAX_TILT, candidates
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.objective.distributions import Located, family_of

RNG = np.random.default_rng(11)
N = 600
X = RNG.uniform(-1, 1, size=(N, 3))
SCALE = np.exp(X[:, 1])
Y = 2 * X[:, 0] + SCALE * RNG.normal(size=N)
QUICK: dict[str, Any] = {"n_estimators": 25, "max_leaves": 6, "n_folds": 2, "n_jobs": 1}


def test_it_learns_mean_and_spread() -> None:
    model = SapwoodDistribution("normal", n_jobs=1, n_estimators=150).fit(X, Y)
    new = np.random.default_rng(12).uniform(-1, 1, size=(4000, 3))
    y = 2 * new[:, 0] + np.exp(new[:, 1]) * np.random.default_rng(13).normal(size=4000)
    dist = model.predict_dist(new)
    assert np.corrcoef(dist.mean(), 2 * new[:, 0])[0, 1] > 0.9
    assert np.corrcoef(np.log(dist.std()), new[:, 1])[0, 1] > 0.8
    assert abs(metric.coverage(y, dist, 0.9) - 0.9) < 0.04
    assert abs(metric.pit(y, dist).mean() - 0.5) < 0.04
    marginal = 0.5 * np.log(2 * np.pi * np.e * y.var())
    assert metric.nll(y, dist) < marginal - 0.2
    assert model.score(new, y) == pytest.approx(-metric.nll(y, dist))
    assert metric.crps(y, dist) < 0.6 * np.abs(y - y.mean()).mean()
    assert (model.predict_quantile(new, [0.1, 0.5, 0.9])[:, 1] == dist.median()).all()


def test_auto_chooses_what_suits_the_labels() -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.exp(1 + X[:, 0])).astype(float)
    model = SapwoodDistribution(**QUICK).fit(X, counts)
    assert model.family_.discrete and "nll" in str(model.chosen_)
    assert "each of 600 rows was held out from 2 of 4 models" in str(model.chosen_)
    assert "the mean of these 4 models, so each row is in 2 of them" in str(
        model.chosen_
    )
    assert [one.name for one in candidates(rng.normal(size=50))] == ["student_t"]
    assert "lognormal" in [one.name for one in candidates(np.exp(rng.normal(size=50)))]
    assert [one.name for one in candidates(rng.beta(1, 1, 50))] == ["beta", "normal"]
    zeros = np.where(rng.random(50) < 0.4, 0.0, rng.gamma(2, 2, 50))
    assert all(one.name.startswith("hurdle") for one in candidates(zeros))


@pytest.mark.parametrize("dist", ["normal", "gamma", "zero_inflated_poisson", "auto"])
def test_bytes_do_not_depend_on_threads(dist: str) -> None:
    y = np.floor(np.exp(Y)) if dist == "zero_inflated_poisson" else np.exp(Y)
    one = SapwoodDistribution(dist, **QUICK, subsample=0.8, random_state=3).fit(X, y)
    for n_jobs in (2, 3, 7):
        again = SapwoodDistribution(
            dist, **{**QUICK, "n_jobs": n_jobs}, subsample=0.8, random_state=3
        ).fit(X, y)
        assert again.booster_.to_bytes() == one.booster_.to_bytes()
        assert (
            again.predict_dist(X).sample(2, seed=9).tobytes()
            == one.predict_dist(X).sample(2, seed=9).tobytes()
        )


def test_files(tmp_path: Path) -> None:
    model = SapwoodDistribution("student_t", **QUICK).fit(X, Y)
    model.save(tmp_path / "m.sapwood")
    again = SapwoodDistribution.load(tmp_path / "m.sapwood")
    assert again.family_.spec == model.family_.spec
    assert (
        again.predict_dist(X).quantile(0.9).tobytes()
        == model.predict_dist(X).quantile(0.9).tobytes()
    )
    other = SapwoodDistribution().load_model(tmp_path / "m.sapwood")
    assert (
        other.dist == model.family_.spec
        and other.predict(X).tobytes() == model.predict(X).tobytes()
    )
    with pytest.raises(ParameterError, match="nll, crps, coverage and pit"):
        other.report(X, Y)
    # scores of location and scale
    assert sapwood.load(tmp_path / "m.sapwood").predict(X).shape == (N, 2)
    sapwood.train({"n_estimators": 1}, sapwood.Dataset(X, Y)).save(
        tmp_path / "other.sapwood"
    )
    with pytest.raises(ModelFormatError, match="no distribution"):
        SapwoodDistribution.load(tmp_path / "other.sapwood")


def test_explanations_add_up_for_every_parameter() -> None:
    model = SapwoodDistribution("normal", **QUICK).fit(X, Y)
    found = model.explain(X[:5])
    scores = model.predict_dist(X[:5]).scores
    values = np.asarray(found.values)
    outputs = values if values.shape[-1] == 2 else np.moveaxis(values, 0, -1)
    total = outputs.sum(axis=1) + np.asarray(found.base_values)
    np.testing.assert_allclose(total, scores, rtol=1e-9, atol=1e-9)


def test_estimator_habits() -> None:
    model = SapwoodDistribution("gamma", learning_rate=0.3, n_folds=4)
    assert clone(model).get_params() == model.get_params()
    assert (
        repr(model) == "SapwoodDistribution(dist='gamma', learning_rate=0.3, n_folds=4)"
    )
    with pytest.raises(NotFittedError):
        model.predict_dist(X)
    with pytest.raises(NotFittedError):
        model.save("nowhere")


def test_weights_are_repeated_rows() -> None:
    weight = np.ones(N)
    weight[:100] = 0.0
    held = SapwoodDistribution("normal", **{**QUICK, "n_folds": 0}).fit(X, Y, weight)
    left = SapwoodDistribution("normal", **{**QUICK, "n_folds": 0}).fit(
        X[100:], Y[100:]
    )
    np.testing.assert_allclose(held.booster_.base, left.booster_.base, rtol=1e-12)
    other = SapwoodDistribution("normal", **{**QUICK, "n_folds": 0}).fit(X, Y)
    assert not np.allclose(held.booster_.base, other.booster_.base)
    # huge weights
    assert (
        SapwoodDistribution("normal", **QUICK)
        .fit(X, Y, 1e9 * np.ones(N))
        .predict(X)
        .std()
        > 0.3
    )


def test_a_validation_set_stops_and_recalibrates() -> None:
    model = SapwoodDistribution("normal", **{**QUICK, "n_estimators": 200}).fit(
        X[:400], Y[:400], eval_set=(X[400:], Y[400:])
    )
    assert model.n_iter_ < 200
    z = (Y[400:] - model.predict(X[400:])) / model.predict_dist(X[400:]).std()
    # 0 for the scale that makes these rows most likely
    tilt = abs(0.5 * np.log((z * z).mean()))
    assert tilt <= MAX_TILT + 0.001
    covered = metric.coverage(Y[400:], model.predict_dist(X[400:]), 0.9)
    assert abs(covered - 0.9) <= 0.01 or tilt > MAX_TILT - 0.001


def test_the_reach_of_every_located_family() -> None:
    for name in (
        "normal",
        "lognormal",
        "laplace",
        *(f"student_t:{df:g}" for df in DEGREES),
    ):
        family = family_of(name)
        assert isinstance(family, Located) and family.reach is not None
        y = family.quantile(np.array([0.95, 0.05]), np.zeros(2), np.ones(2))
        np.testing.assert_allclose(
            family.distances(y, np.zeros((2, 2))), family.reach, rtol=1e-12
        )


def test_groups_are_held_out_whole() -> None:
    group = np.repeat(np.arange(60), 10)
    noise = RNG.normal(size=60)[group] * 2
    table = np.column_stack([X, group])
    apart = SapwoodDistribution("normal", **QUICK).fit(
        table, X[:, 0] + noise, group=group
    )
    mixed = SapwoodDistribution("normal", **QUICK).fit(table, X[:, 0] + noise)
    assert (
        apart.predict_dist(table).std().mean() > mixed.predict_dist(table).std().mean()
    )


@pytest.mark.parametrize(
    "dist",
    ["normal", "student_t", "laplace", "lognormal", "gamma", "weibull", "poisson"],
)
def test_constant_labels_have_the_smallest_scale(dist: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SapwoodDistribution(dist, **QUICK).fit(X[:80], np.full(80, 3.0))
    found = model.predict_dist(X[:5])
    assert np.isfinite(found.logpdf(3.0)).all() and np.isfinite(found.interval()).all()
    np.testing.assert_allclose(found.mean(), 3.0, rtol=0.05)


def test_counts_that_are_all_one() -> None:
    """The rate of counts above 0 is then tiny: no digit of a difference from 1 is
    left.
    """
    for dist in ("hurdle_poisson", "hurdle_negative_binomial"):
        for y in (np.ones(80), np.arange(80) % 2):
            found = (
                SapwoodDistribution(dist, **QUICK).fit(X[:80], y).predict_dist(X[:1])
            )
            assert (
                found.quantile(0.99).tolist() == [1.0] and found.sample(20).max() == 1
            )
            assert found.cdf(1)[0] > 1 - 1e-5


def test_an_outlier_does_not_hide_the_others() -> None:
    y = Y.copy()
    y[7] = 1e6
    for dist in ("normal", "student_t", "laplace"):
        found = SapwoodDistribution(dist, **QUICK).fit(X, y).predict_dist(X)
        assert np.isfinite(found.scores).all() and np.isfinite(found.interval()).all()
    robust = SapwoodDistribution("student_t", **{**QUICK, "n_estimators": 80}).fit(X, y)
    assert np.corrcoef(robust.predict_dist(X).median(), X[:, 0])[0, 1] > 0.7


def test_few_rows() -> None:
    for n in (2, 10, 31):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = SapwoodDistribution(**QUICK).fit(X[:n], Y[:n]).predict_dist(X[:3])
        assert np.isfinite(found.interval()).all()


@pytest.mark.parametrize("dist", ["normal", "student_t", "laplace"])
def test_one_row_leaves_and_huge_weights(dist: str) -> None:
    """Also distances whose squares are not finite in float32."""
    y = Y[:60].copy()
    y[:3] = [1e30, -1e30, 3e25]
    weight = np.where(np.arange(60) % 7 == 0, 1e12, 1.0)
    model = SapwoodDistribution(
        dist, **QUICK | {"min_samples_leaf": 1, "max_leaves": 40}
    ).fit(X[:60], y, weight)
    found = model.predict_dist(X)
    assert np.isfinite(found.scores).all() and np.isfinite(found.interval()).all()
    assert (found.std() > 0).all()


@pytest.mark.parametrize(
    "dist",
    ["gamma", "negative_binomial", "zero_inflated_poisson", "beta", "hurdle_gamma"],
)
def test_extreme_labels_stay_finite(dist: str) -> None:
    rng = np.random.default_rng(4)
    y = {
        "gamma": np.exp(rng.normal(size=N) * 20),
        "beta": np.clip(rng.beta(0.01, 0.01, N), 1e-12, 1 - 1e-12),
        "hurdle_gamma": np.where(rng.random(N) < 0.9, 0.0, 1e12 * rng.random(N)),
    }.get(
        dist,
        np.where(rng.random(N) < 0.5, 0.0, np.floor(np.exp(rng.normal(size=N) * 4))),
    )
    found = SapwoodDistribution(dist, **QUICK).fit(X, y).predict_dist(X)
    assert np.isfinite(found.logpdf(y)).all() and np.isfinite(found.mean()).all()
    # the size has no limit
    poisson = SapwoodDistribution("negative_binomial", **QUICK).fit(
        X, rng.poisson(2.0, N)
    )
    assert np.isfinite(poisson.predict_dist(X).scores).all()


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="normal"):
        SapwoodDistribution("gaussian").fit(X, Y)
    with pytest.raises(ParameterError, match="n_folds=1"):
        SapwoodDistribution(n_folds=1).fit(X, Y)
    with pytest.raises(DataError, match="hurdle_gamma"):
        SapwoodDistribution("gamma").fit(X, Y)
    with pytest.raises(DataError, match="one target"):
        SapwoodDistribution().fit(X, np.column_stack([Y, Y]))
    with pytest.raises(DataError, match="pair"):
        SapwoodDistribution().fit(X, Y, eval_set=X)
    with pytest.raises(ParameterError, match="not between 0 and 1"):
        SapwoodDistribution("normal", **QUICK).fit(X, Y).interval(X, 1.5)
    fitted = SapwoodDistribution("normal", **QUICK).fit(X, Y).predict_dist(X)
    with pytest.raises(ParameterError, match="from 0 to 1"):
        fitted.quantile(1.5)
    with pytest.raises(DataError, match="each of 600 rows"):
        fitted.cdf([1.0, 2.0])


def test_a_checkpoint_is_refused() -> None:
    with pytest.raises(ParameterError, match="checkpoint follows a single training"):
        SapwoodDistribution("normal", checkpoint="never").fit(
            [[0], [1]] * 50, [0, 1, 1, 3] * 25
        )
