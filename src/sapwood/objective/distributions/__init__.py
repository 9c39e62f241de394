"""Families of distributions: what `SapwoodDistribution` learns.

In: the name of a family. Out: an object that `objective=` takes, and `Distribution`,
what it predicts.
"""

from collections.abc import Callable
from typing import Any

from sapwood.errors import ParameterError, suggest
from sapwood.objective.distributions.counts import NegativeBinomial, Poisson
from sapwood.objective.distributions.family import Family, Located, weighted_quantile
from sapwood.objective.distributions.likelihood import PREFIX, Likelihood
from sapwood.objective.distributions.located import Laplace, LogNormal, Normal, StudentT
from sapwood.objective.distributions.positive import Beta, Gamma, Weibull
from sapwood.objective.distributions.predicted import Distribution
from sapwood.objective.distributions.zeros import (
    Hurdle,
    NegativeBinomialAboveZero,
    PoissonAboveZero,
    ZeroInflated,
)

__all__ = [
    "FAMILIES",
    "PREFIX",
    "Distribution",
    "Family",
    "Likelihood",
    "Located",
    "StudentT",
    "family_of",
    "weighted_quantile",
]

FAMILIES: dict[str, Callable[[], Family]] = {
    "normal": Normal,
    "lognormal": LogNormal,
    "student_t": StudentT,
    "laplace": Laplace,
    "gamma": Gamma,
    "weibull": Weibull,
    "beta": Beta,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "zero_inflated_poisson": lambda: ZeroInflated(Poisson()),
    "zero_inflated_negative_binomial": lambda: ZeroInflated(NegativeBinomial()),
    "hurdle_poisson": lambda: Hurdle(PoissonAboveZero()),
    "hurdle_negative_binomial": lambda: Hurdle(NegativeBinomialAboveZero()),
    "hurdle_gamma": lambda: Hurdle(Gamma()),
    "hurdle_lognormal": lambda: Hurdle(LogNormal()),
    "hurdle_weibull": lambda: Hurdle(Weibull()),
    "hurdle_beta": lambda: Hurdle(Beta()),
}


def family_of(spec: Any) -> Family:
    """A family by its name; 'student_t:6' has 6 degrees of freedom. A `Family` stays as
    it is.
    """
    if isinstance(spec, Family):
        return spec
    name, _, constant = str(spec).removeprefix(PREFIX).partition(":")
    if name not in FAMILIES or (constant and name != "student_t"):
        raise ParameterError(
            f"dist={spec!r} is unknown; {suggest(name, ['auto', *FAMILIES])}"
        )
    if not constant:
        return FAMILIES[name]()
    try:
        return StudentT(float(constant))
    except ValueError:
        raise ParameterError(
            f"dist={spec!r}: {constant!r} is not a number of degrees of freedom."
        ) from None
