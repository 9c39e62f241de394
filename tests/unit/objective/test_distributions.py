"""Families of distributions: derivatives, Fisher information, distribution functions,
samples, labels refused.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special as scipy_special
from scipy import stats

from sapwood.errors import DataError, ParameterError
from sapwood.objective.distributions import (
    FAMILIES,
    Distribution,
    Family,
    Likelihood,
    StudentT,
    family_of,
)
from sapwood.objective.distributions import special as ours

Floats = NDArray[np.float64]
N = 300
BOUNDS = (  # hessians above Fisher's
    "negative_binomial",
    "zero_inflated_poisson",
    "zero_inflated_negative_binomial",
    "hurdle_negative_binomial",
)

every_family = pytest.mark.parametrize("name", FAMILIES)


def labels(family: Family) -> Floats:
    """Labels that a family can have, spread widely."""
    rng = np.random.default_rng(5)
    base = getattr(family, "base", family)
    kinds = {
        "a number": rng.normal(size=N) * 2 + 1,
        "a number above 0": np.exp(rng.normal(size=N)),
        "a number between 0 and 1, neither 0 nor 1": rng.beta(2, 3, N),
        "a whole number of at least 0": rng.negative_binomial(2, 0.4, N).astype(float),
        "a whole number above 0": 1.0 + rng.negative_binomial(2, 0.5, N),
    }
    y = kinds[base.support]
    return np.where(rng.random(N) < 0.3, 0.0, y) if base is not family else y


def scores(family: Family, y: Floats) -> Floats:
    """Scores around those that fit all rows."""
    return family.start(y, None) + 0.4 * np.random.default_rng(6).normal(
        size=(len(y), family.n_outputs)
    )


@every_family
def test_gradients_are_differences_of_the_loss(name: str) -> None:
    family = family_of(name)
    y = labels(family)
    score = scores(family, y)
    step = 1e-5
    g, h = family.grad_hess(y, score)
    assert (h > 0).all()
    for k in range(family.n_outputs):
        move = np.zeros(family.n_outputs)
        move[k] = step
        slope = (family.loss(y, score + move) - family.loss(y, score - move)) / (
            2 * step
        )
        kink = (name == "laplace") & (k == 0) & (np.abs(y - score[:, 0]) < step)
        assert np.all((np.abs(slope - g[:, k]) <= 1e-7 * (1 + np.abs(g[:, k]))) | kink)


@every_family
def test_hessians_are_the_expectation_of_squared_gradients(name: str) -> None:
    """By quantiles on a fine grid, which integrates any family; some hessians are
    bounds of it.
    """
    family = family_of(name)
    y = labels(family)
    score = family.start(y, None)
    if name == "zero_inflated_negative_binomial":
        score = np.array([1.0, 0.5, -0.5])
    n = 20_000
    dist = Distribution(family, np.tile(score, (n, 1)))
    level = (np.arange(n) + 0.5) / n
    values = np.asarray(family.quantile(level, *dist._parts))
    g, h = family.grad_hess(values, dist.scores)
    expected = (g * g).mean(axis=0)
    stated = h.mean(axis=0)
    if name in BOUNDS:
        assert (stated >= expected * (1 - 1e-3)).all()
        assert (stated <= 2.5 * expected).all()
    else:
        # the grid cuts the tails
        np.testing.assert_allclose(stated, expected, rtol=8e-3)
    # the score has mean 0
    np.testing.assert_allclose(
        g.mean(axis=0), 0.0, atol=4e-3 * (1 + np.abs(stated).max())
    )


@every_family
def test_quantiles_invert_the_distribution_function(name: str) -> None:
    family = family_of(name)
    y = labels(family)
    dist = Distribution(family, scores(family, y))
    levels = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    q = dist.quantile(levels)
    assert q.shape == (N, 5) and (np.diff(q, axis=1) >= 0).all()
    reached = dist.cdf(q)
    below = family.below(q, *dist._for(1))
    assert (reached >= levels - 1e-9).all() and (below <= levels + 1e-9).all()
    if not family.discrete and not hasattr(family, "base"):
        np.testing.assert_allclose(reached, np.broadcast_to(levels, q.shape), atol=1e-9)
    np.testing.assert_array_equal(dist.interval(0.5), dist.quantile([0.25, 0.75]))


@every_family
def test_moments_and_density_agree_with_samples(name: str) -> None:
    family = family_of("student_t:8" if name == "student_t" else name)
    score = np.tile(family.start(labels(family), None), (20_000, 1))
    dist = Distribution(family, score)
    drawn = dist.sample(1, seed=3)[:, 0]
    assert family.allowed(drawn).all()
    assert drawn.mean() == pytest.approx(dist.mean()[0], abs=5 * dist.std()[0] / 140)
    assert drawn.std() == pytest.approx(dist.std()[0], rel=0.06)
    u = dist.pit(drawn, seed=1)
    assert abs(u.mean() - 0.5) < 0.01 and abs(u.std() - np.sqrt(1 / 12)) < 0.01
    if family.discrete:
        k = np.arange(2000.0)
        mass = np.exp(Distribution(family, score[:2000]).logpdf(k))
        assert mass.sum() == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(
            np.cumsum(mass)[:50],
            Distribution(family, score[:50]).cdf(k[:50]),
            atol=1e-9,
        )


@every_family
def test_a_start_has_no_slope_and_knows_no_order(name: str) -> None:
    family = family_of(name)
    y = labels(family)
    weight = np.random.default_rng(7).integers(0, 4, N).astype(float)
    start = family.start(y, weight)
    turn = np.random.default_rng(8).permutation(N)
    np.testing.assert_array_equal(start, family.start(y[turn], weight[turn]))
    g, h = family.grad_hess(y, np.tile(start, (N, 1)))
    slope = (weight[:, None] * g).sum(axis=0) / (weight[:, None] * h).sum(axis=0)
    # a median leaps; the last score may run away
    if name not in ("laplace", "zero_inflated_negative_binomial"):
        np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_closed_leaves_of_scales() -> None:
    """From the Newton step of a leaf: the log of the root mean square of z, of the mean
    of |z|.
    """
    z = np.random.default_rng(9).normal(size=50) * 3
    newton = np.array([(z * z - 1).mean() / 2])
    assert family_of("normal").leaf_values(1, newton)[0] == pytest.approx(
        0.5 * np.log((z * z).mean())
    )
    assert family_of("laplace").leaf_values(1, np.array([np.abs(z).mean() - 1]))[
        0
    ] == pytest.approx(np.log(np.abs(z).mean()))
    assert family_of("normal").leaf_values(0, newton)[0] == newton[0]
    # all residuals are 0
    assert np.isfinite(family_of("normal").leaf_values(1, np.array([-0.5]))[0])


def test_training_divides_the_first_score_by_the_precision() -> None:
    family = family_of("normal")
    y = labels(family)
    score = scores(family, y)
    g, h = Likelihood(family).grad_hess(y, score)
    np.testing.assert_allclose(g[:, 0], score[:, 0] - y)
    np.testing.assert_allclose(h[:, 0], 1.0)
    np.testing.assert_array_equal(g[:, 1], family.grad_hess(y, score)[0][:, 1])


def test_special_functions() -> None:
    x = np.exp(np.linspace(-15, 14, 500))
    np.testing.assert_allclose(
        ours.log_gamma(x), scipy_special.gammaln(x), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        ours.digamma(x), scipy_special.digamma(x), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        ours.trigamma(x), scipy_special.polygamma(1, x), rtol=1e-12
    )
    p = np.concatenate([np.logspace(-200, -1, 200), np.linspace(0.1, 1, 91)])
    np.testing.assert_allclose(
        ours.normal_quantile(p), stats.norm.ppf(p), rtol=1e-13, atol=1e-15
    )


def test_densities_are_scipy_s() -> None:
    y = np.exp(np.random.default_rng(2).normal(size=20))
    s = np.tile([0.3, 0.7], (20, 1))
    m = np.exp(0.3)
    k = np.exp(0.7)
    pairs = {
        "normal": stats.norm(0.3, k),
        "laplace": stats.laplace(0.3, k),
        "lognormal": stats.lognorm(k, scale=m),
        "gamma": stats.gamma(k, scale=m / k),
        "weibull": stats.weibull_min(k, scale=m),
        "student_t:6": stats.t(6, 0.3, k),
    }
    for name, theirs in pairs.items():
        dist = Distribution(family_of(name), s)
        np.testing.assert_allclose(
            dist.logpdf(y), theirs.logpdf(y), rtol=1e-11, atol=1e-12
        )
        np.testing.assert_allclose(dist.cdf(y), theirs.cdf(y), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(dist.std(), theirs.std(), rtol=1e-11)
    counts = np.arange(20.0)
    dist = Distribution(family_of("negative_binomial"), s)
    np.testing.assert_allclose(
        dist.logpdf(counts), stats.nbinom(k, k / (k + m)).logpmf(counts), rtol=1e-11
    )


def test_a_draw_depends_on_its_row_alone() -> None:
    dist = Distribution(
        family_of("gamma"), np.random.default_rng(1).normal(size=(50, 2))
    )
    few = Distribution(dist.family, dist.scores[:7]).sample(2, seed=4)
    assert few.tobytes() == dist.sample(5, seed=4)[:7, :2].tobytes()
    assert dist.sample(1, seed=4).tobytes() != dist.sample(1, seed=5).tobytes()


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("lognormal", 0.0, "hurdle_lognormal"),
        ("gamma", -1.0, "hurdle_gamma"),
        ("weibull", 0.0, "hurdle_weibull"),
        ("beta", 0.0, "drawn inside"),
        ("beta", 1.0, "drawn inside"),
        ("poisson", 0.5, "whole number"),
        ("negative_binomial", -1.0, "whole number"),
        ("hurdle_gamma", -1.0, "0 or a number above 0"),
        ("normal", np.inf, "a number"),
    ],
)
def test_labels_that_a_family_cannot_have(name: str, wrong: float, says: str) -> None:
    y = np.array([0.5 if "beta" in name else 2.0, wrong])
    with pytest.raises(DataError, match=says):
        family_of(name).check(y)


@every_family
def test_the_ends_of_every_family(name: str) -> None:
    family = family_of(name)
    found = Distribution(family, scores(family, labels(family))[:5])
    low = -np.inf if name in ("normal", "student_t", "laplace") else 0.0
    high = 1.0 if name.endswith("beta") else np.inf
    assert (found.quantile(0) == low).all() and (found.quantile(1) == high).all()
    assert (found.cdf(-np.inf) == 0).all() and (found.cdf(np.inf) == 1).all()
    assert not found.pdf(np.inf).any() and not found.pdf(-np.inf).any()


@pytest.mark.parametrize("log_mean", [-30.0, -14.0, -3.0, 0.0, 5.0])
def test_counts_above_zero_are_those_of_scipy(log_mean: float) -> None:
    for name, more in (("hurdle_poisson", []), ("hurdle_negative_binomial", [0.7])):
        found = Distribution(family_of(name), np.array([[log_mean, *more, -25.0]]))
        m = np.exp(log_mean)
        r = np.exp(0.7)
        plain = stats.nbinom(r, r / (r + m)) if more else stats.poisson(m)
        counts = np.arange(1.0, 700.0)
        cdf = 1 - plain.sf(counts) / plain.sf(0)
        np.testing.assert_allclose(found.cdf(counts[None])[0], cdf, atol=1e-10)
        for p in (0.01, 0.5, 0.9):
            assert found.quantile(p)[0] == counts[np.searchsorted(cdf, p)]


def test_unknown_families() -> None:
    with pytest.raises(ParameterError, match="normal"):
        family_of("norml")
    with pytest.raises(ParameterError, match="degrees"):
        family_of("student_t:many")
    with pytest.raises(ParameterError, match="1e6"):
        StudentT(0.5)
    assert family_of("dist:student_t:6").spec == "student_t:6"


def test_crps() -> None:
    """Closed for the normal distribution; by quantiles elsewhere, here compared with
    each other.
    """
    family = family_of("normal")
    y = labels(family)
    score = scores(family, y)
    exact = Distribution(family, score).crps(y)
    near = Family.crps(family, y, *family.parts(score))
    np.testing.assert_allclose(near, exact, rtol=2e-2, atol=2e-2)
    assert near.mean() == pytest.approx(exact.mean(), rel=2e-3)


def test_bad_questions_are_refused_in_words() -> None:
    family = family_of("normal")
    found = Distribution(family, np.zeros((3, 2)))
    for p in (2, -0.1, "x", np.nan, None, 1j, [[0.1]]):
        with pytest.raises(ParameterError, match="p="):
            found.quantile(p)  # type: ignore[arg-type]
    for coverage in (0, 1, "x", None, [0.5]):
        with pytest.raises(ParameterError, match="coverage="):
            found.interval(coverage)  # type: ignore[arg-type]
    for n in (-1, 0.5, "x", None, 10**30):  # the last would be drawn for ever
        with pytest.raises(ParameterError, match="n="):
            found.sample(n)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="seed="):
        found.sample(2, -5)
    with pytest.raises(ParameterError, match="y='x'"):
        found.cdf("x")
