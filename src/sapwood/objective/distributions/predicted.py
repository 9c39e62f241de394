"""Predicted distributions: one for each row of a table.

In: a family and scores. Out: means, quantiles, probabilities, densities, samples,
intervals.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sapwood.device import elementary, host
from sapwood.errors import DataError, ParameterError
from sapwood.objective.distributions.family import Family, Floats, Parts
from sapwood.params.types import Integer

SAMPLES = 70  # the purpose of the draws of samples, beyond those of core/math/hash.h


class Distribution:
    """The distributions of several rows, of one family.

    Attributes
    ----------
    family : Family
    scores : (n_rows, n_outputs) float64
        Raw scores, in the order of `family.parameters`.
    """

    def __init__(self, family: Family, scores: Floats) -> None:
        self.family, self.scores = (
            family,
            np.asarray(scores, np.float64).reshape(-1, family.n_outputs),
        )
        self._parts = family.parts(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows: Any) -> "Distribution":
        return Distribution(self.family, np.atleast_2d(self.scores[rows]))

    def __repr__(self) -> str:
        return f"<sapwood.Distribution: {self.family.name}, {len(self)} rows>"

    @property
    def params(self) -> Mapping[str, Floats]:
        """The scores by name, (n_rows,) each."""
        return dict(zip(self.family.parameters, self.scores.T, strict=True))

    def mean(self) -> Floats:
        """(n_rows,) means."""
        return np.array(self.family.mean(*self._parts))

    def std(self) -> Floats:
        """(n_rows,) standard deviations; infinite where there is none."""
        return np.asarray(np.sqrt(self.family.variance(*self._parts)))

    def median(self) -> Floats:
        """(n_rows,) medians."""
        return self.quantile(0.5)

    def quantile(self, p: ArrayLike) -> Floats:
        """The least values with a probability of at least `p` at or below them:
        (n_rows,), or (n_rows, n_levels).
        """
        level = _numbers(p, "p")
        if level.ndim > 1 or not ((level >= 0) & (level <= 1)).all():
            raise ParameterError(
                f"p={p!r} is not a number from 0 to 1, or a list of these."
            )
        found = self.family.quantile(
            np.broadcast_to(level, (len(self), *level.shape)), *self._for(level.ndim)
        )
        return np.array(found)

    def interval(self, coverage: float = 0.9) -> Floats:
        """(n_rows, 2) ends between which a label lies with a probability of `coverage`;
        both tails have the same.
        """
        level = _numbers(coverage, "coverage")
        if level.ndim or not 0 < level < 1:
            raise ParameterError(f"coverage={coverage!r} is not between 0 and 1.")
        return self.quantile([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])

    def cdf(self, y: ArrayLike) -> Floats:
        """The probability of at most `y`: a number, one for each row, or (n_rows,
        n_values).
        """
        at = self._labels(y)
        return np.array(self.family.cdf(at, *self._for(at.ndim - 1)))

    def logpdf(self, y: ArrayLike) -> Floats:
        """The log of the density at `y`, of counts of their probability."""
        at = self._labels(y)
        return np.array(self.family.log_density(at, *self._for(at.ndim - 1)))

    def pdf(self, y: ArrayLike) -> Floats:
        """The density at `y`, of counts their probability."""
        return elementary.exp(self.logpdf(y))

    def sample(self, n: int = 1, seed: int = 0) -> Floats:
        """Draw labels, (n_rows, n).

        A draw is a function of the seed, its number and the position of the row: it
        does not depend on the other rows or on `n`.
        """
        n = Integer(0).check(f"n={n!r}", n)
        u = np.empty((len(self), n))
        for number in range(n):
            u[:, number] = self.uniform(seed, number)
        return np.array(self.family.quantile(u, *self._for(1)))

    def pit(self, y: ArrayLike, seed: int = 0) -> Floats:
        """(n_rows,) probabilities of less than the label: uniform where the
        distributions are right.

        Where values have a probability of their own, a draw inside of it.
        """
        at = self._labels(y)
        low = self.family.below(at, *self._parts)
        high = self.family.cdf(at, *self._parts)
        return np.asarray(low + (high - low) * self.uniform(seed, 0))

    def crps(self, y: ArrayLike) -> Floats:
        """(n_rows,) continuous ranked probability scores, in the unit of the label;
        lower is better.
        """
        return np.array(self.family.crps(self._labels(y), *self._parts))

    def uniform(self, seed: int, number: int) -> Floats:
        """(n_rows,) draws strictly between 0 and 1."""
        seed = Integer(0, 2**63 - 1).check(f"seed={seed!r}", seed)
        bits = host.draw(seed, SAMPLES, number, 0, len(self)) >> np.uint64(12)
        return bits.astype(np.float64) * 2.0**-52 + 2.0**-53

    def _for(self, n_more: int) -> Parts:
        """The parameters, for arrays with so many axes after that of rows."""
        return tuple(one.reshape(one.shape + (1,) * n_more) for one in self._parts)

    def _labels(self, y: ArrayLike) -> Floats:
        at = _numbers(y, "y")
        if at.ndim and (at.ndim > 2 or len(at) != len(self)):
            raise DataError(
                f"y has the shape {at.shape}; give a number, or one or several for each of {len(self)} rows."
            )
        return np.broadcast_to(at, (len(self),)) if at.ndim == 0 else at


def _numbers(given: ArrayLike, name: str) -> Floats:
    """What was given as floats; `name`: of the argument."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError) as cause:
        raise ParameterError(
            f"{name}={str(given)[:100]!r} is not a number or an array of numbers."
        ) from cause
