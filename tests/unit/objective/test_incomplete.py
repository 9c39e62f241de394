"""Incomplete gamma and beta functions: SciPy's values, exact ones where SciPy has fewer
digits, and inverses.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from sapwood.objective.distributions import Distribution, family_of
from sapwood.objective.distributions.incomplete import (
    beta_inverse,
    beta_shares,
    gamma_inverse,
    gamma_shares,
)

Floats = NDArray[np.float64]
N = 2000


def draws(low: float, high: float, seed: int = 0) -> Floats:
    """Numbers whose logarithms lie between two."""
    return np.exp(np.random.default_rng(seed).uniform(low, high, N))


@pytest.mark.parametrize(
    ("low", "high"), [(-4, 0), (0, 3), (3, 6), (6, 9.2), (9.3, 12)]
)
def test_gamma_shares_are_those_of_scipy(low: float, high: float) -> None:
    a = draws(low, high)
    x = np.maximum(
        a + 4 * np.sqrt(a) * np.random.default_rng(1).normal(size=N), 1e-8 * a
    )
    lower, upper = gamma_shares(a, x)
    np.testing.assert_allclose(lower, special.gammainc(a, x), rtol=2e-12, atol=1e-300)
    np.testing.assert_allclose(upper, special.gammaincc(a, x), rtol=2e-12, atol=1e-14)


def test_a_gamma_share_of_a_large_shape_has_its_digits() -> None:
    lower, _ = gamma_shares(np.array(60595225.46829893), np.array(60558540.087979496))
    # its series in 40 digits; SciPy: 8.8e-07
    assert float(lower) == pytest.approx(1.216578637428334e-06, rel=1e-13)


@pytest.mark.parametrize(("low", "high"), [(-3, 0), (0, 3), (3, 6), (6, 10)])
def test_beta_shares_are_those_of_scipy(low: float, high: float) -> None:
    a = draws(low, high)
    b = draws(low, high, seed=1)
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    x = np.clip(
        mean + 3 * spread * np.random.default_rng(2).normal(size=N), 1e-12, 1 - 1e-9
    )
    lower, upper = beta_shares(a, b, x, 1 - x)
    np.testing.assert_allclose(lower, special.betainc(a, b, x), rtol=5e-12, atol=1e-15)
    np.testing.assert_allclose(upper, special.betaincc(a, b, x), rtol=5e-12, atol=1e-15)


@pytest.mark.parametrize(("low", "high"), [(-3, 0), (0, 5), (5, 12)])
def test_inverses_lead_back(low: float, high: float) -> None:
    a = draws(low, high)
    b = draws(low, high, seed=1)
    p = np.random.default_rng(2).uniform(0.001, 0.999, N)
    np.testing.assert_allclose(gamma_shares(a, gamma_inverse(a, p))[0], p, rtol=1e-11)
    logit = beta_inverse(a, b, p)
    x = np.where(logit < 0, np.exp(logit), 1.0) / (1.0 + np.exp(-np.abs(logit)))
    y = np.where(logit > 0, np.exp(-logit), 1.0) / (1.0 + np.exp(-np.abs(logit)))
    np.testing.assert_allclose(beta_shares(a, b, x, y)[0], p, rtol=1e-9)


def test_inverses_of_tiny_levels_have_their_digits() -> None:
    p = np.array([1e-300, 1e-100, 1e-20, 1e-5])
    np.testing.assert_allclose(
        gamma_inverse(np.array(3.5), p), special.gammaincinv(3.5, p), rtol=1e-12
    )
    t = Distribution(family_of("student_t:4"), np.zeros((1, 2))).quantile(p)[0]
    np.testing.assert_allclose(t, special.stdtrit(4.0, p), rtol=1e-12)


def test_ends_are_exact() -> None:
    inf = np.inf
    assert [float(one) for one in gamma_shares(np.array(2.0), np.array(0.0))] == [
        0.0,
        1.0,
    ]
    assert [float(one) for one in gamma_shares(np.array(2.0), np.array(inf))] == [
        1.0,
        0.0,
    ]
    assert [
        float(one)
        for one in beta_shares(
            np.array(2.0), np.array(3.0), np.array(0.0), np.array(1.0)
        )
    ] == [0.0, 1.0]
    assert [
        float(one)
        for one in beta_shares(
            np.array(2.0), np.array(3.0), np.array(1.0), np.array(0.0)
        )
    ] == [1.0, 0.0]
    assert gamma_inverse(np.array(2.0), np.array([0.0, 1.0])).tolist() == [0.0, inf]
    assert beta_inverse(
        np.array(2.0), np.array(3.0), np.array([0.0, 1.0])
    ).tolist() == [-inf, inf]


@pytest.mark.parametrize(
    "name", ["student_t", "gamma", "beta", "poisson", "negative_binomial"]
)
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    family = family_of(name)
    scores = np.random.default_rng(3).normal(size=(300, family.n_outputs))
    whole = Distribution(family, scores)
    one = whole[17]
    levels = [0.001, 0.2, 0.5, 0.8, 0.999]
    y = np.full(300, 0.25 if name == "beta" else 2.0)
    assert (whole.quantile(levels)[17] == one.quantile(levels)[0]).all()
    assert whole.cdf(y)[17] == one.cdf(y[:1])[0]
    assert whole.crps(y)[17] == one.crps(y[:1])[0]


@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_a_quantile_of_counts_is_the_least_that_reaches_its_level(name: str) -> None:
    family = family_of(name)
    scores = np.stack([np.linspace(-6, 20, 60), np.linspace(-5, 12, 60)[::-1]], axis=1)[
        :, : family.n_outputs
    ]
    dist = Distribution(family, scores)
    for level in (1e-9, 0.01, 0.5, 0.97, 1 - 1e-9):
        found = dist.quantile(level)
        assert (dist.cdf(found) >= level).all()
        assert (dist.cdf(found - 1.0) < level).all()
