"""A family as it is trained: steps of the first score in rows' own units, slower steps
of the others.

In: a family. Out: an object that `objective=` takes.
"""

from typing import Any

import numpy as np

from sapwood.objective.distributions.family import Family, Floats, two_dimensional

# of the name of the objective in a model: some families have the name of a loss
PREFIX = "dist:"
# of scales, shapes and zeros: residuals of training rows shrink, and scales follow them
# too far
PACE = 0.25


class Likelihood:
    """The negative log likelihood of a family, as an objective.

    The first score has the natural gradient: gradient and hessian are divided by the
    precision of the row. Otherwise rows of small scale would count most, and a scale
    that is too small would feed itself.
    """

    link = "identity"

    def __init__(self, family: Family, pace: float = PACE) -> None:
        self.family, self.pace, self.name = family, pace, PREFIX + family.spec
        self.n_outputs: int = family.n_outputs
        self.metric: Any = family.metric
        self.moved = family.moved
        self._natural = not isinstance(
            family.precision(*family.parts(np.zeros((1, family.n_outputs)))), float
        )

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The scores that fit all rows best."""
        return self.family.start(y, weight)

    def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
        """The derivatives, those of the first score divided by the precision."""
        rows = two_dimensional(score)
        g, h = self.family.grad_hess(y, rows)
        if self._natural:
            precision = self.family.precision(*self.family.parts(rows))
            g[:, 0], h[:, 0] = g[:, 0] / precision, h[:, 0] / precision
        return (g, h) if score.ndim == 2 else (g[:, 0], h[:, 0])

    def leaf_values(self, output: int, value: Floats) -> Floats:
        """Closed forms where the family has them; scores after the first take smaller
        steps.
        """
        value = self.family.leaf_values(output, value)
        return value if output == 0 else np.asarray(self.pace * value)
