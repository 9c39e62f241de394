"""Losses of ranking: the gradient of a row depends on all rows of its group.

In: a name, and pairs or positions of the user. Out: a `GroupLoss`, which a training
binds to its rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import host
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.params.gains import RELEVANT, gain_rule, gains, satisfaction

Floats = NDArray[np.float64]
LOSSES = {
    "lambdarank": "pairs of a group, each weighted by what its swap changes in ranking_metric",
    "rank_xendcg": "cross-entropy between the softmax of a group's scores and shares of its gains",
    "query_rmse": "squared error of residuals less their mean in the group",
    "pair_logit": "logistic loss of pairs: all of a group, or those of the user",
    "yetirank": "logistic loss of neighbours in noisy orders of a group",
}
# of a row, in the gradient of err: a list goes on behind any row
MAX_SATISFIED = 1.0 - 2.0**-20


@dataclass(frozen=True, eq=False)
class GroupLoss:
    """A loss of whole groups, as `objective`: a name of `LOSSES`, and what the user
    knows beyond labels.

    Parameters
    ----------
    name : str
        'lambdarank', 'rank_xendcg', 'query_rmse', 'pair_logit' or 'yetirank'.
    pairs : (n_pairs, 2) array-like of int, optional
        Of pair_logit: positions of rows, the winner first. They take the place of pairs
        by label.
    pairs_weight : (n_pairs,) array-like, optional
    position : (n_rows,) array-like, optional
        Of lambdarank: the place at which every row was shown when its label was
        observed. Its bias is learned and
        left out of predictions, as in LightGBM.
    """

    name: str
    pairs: Any = None
    pairs_weight: Any = None
    position: Any = None
    bound: Any = None  # the core's loss of the training rows
    bias: Any = field(default=None, repr=False)
    measured = True
    n_outputs = 1
    transform = None
    leaf = None

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise ParameterError(
                f"there is no loss of groups called {self.name!r}; {suggest(self.name, LOSSES)}"
            )
        if self.pairs is not None and self.name != "pair_logit":
            raise ParameterError(
                f"pairs are for objective='pair_logit', not {self.name!r}; leave them out."
            )
        if self.pairs_weight is not None and self.pairs is None:
            raise ParameterError("pairs_weight belongs to pairs, which were not given.")
        if self.position is not None and self.name != "lambdarank":
            raise ParameterError(
                f"position is for objective='lambdarank', not {self.name!r}; leave it out."
            )

    @property
    def metric(self) -> str:
        """The metric that it is measured by."""
        return "ndcg"

    def bind(
        self,
        params: Mapping[str, Any],
        group: NDArray[np.int32] | None,
        label: Floats,
        weight: Floats | None,
        key: NDArray[np.uint64] | None,
        n_threads: int,
    ) -> "GroupLoss":
        """The loss of these rows; rows of weight 0 are in no group. ``key``: a number
        of each row's content.
        """
        n = len(label)
        metric = params["ranking_metric"]
        if group is None and self.pairs is None:
            raise DataError(
                f"objective={self.name!r} ranks the rows of a group; give group, the group of every row."
            )
        if metric == "auto":
            metric = "classic" if self.name == "yetirank" else "ndcg"
        rule = gain_rule(params["label_gain"], label)
        gain = label
        if self.name in ("lambdarank", "yetirank") and metric == "ndcg":
            gain = gains(label, rule)
        elif self.name in ("lambdarank", "yetirank") and metric in ("map", "mrr"):
            gain = (label > RELEVANT).astype(np.float64)
        elif self.name in ("lambdarank", "yetirank") and metric == "err":
            gain = np.minimum(
                satisfaction(label, rule, float(label.max())), MAX_SATISFIED
            )
        elif self.name == "rank_xendcg":
            gain = gains(label, rule)
        norm = params["ranking_norm"]
        settings = {
            "metric": metric,
            "truncation": n
            if params["truncation_level"] is None or self.name == "pair_logit"
            else params["truncation_level"],
            "sigma": params["sigmoid"],
            "norm": norm in ("both", "group"),
            "score_norm": norm in ("both", "score"),
            "permutations": params["noisy_permutations"],
            "neighbours": params["noisy_neighbors"],
            "decay": params["noise_decay"],
            "seed": params["random_state"],
        }
        numbers = np.zeros(n, np.int32) if group is None else group
        core = host.RankLoss(
            self.name, numbers, np.ascontiguousarray(label), gain, weight, key, settings
        )
        if self.pairs is not None:
            core.set_pairs(*_pairs(self.pairs, self.pairs_weight, group, weight, n))
        bias = None
        if self.position is not None:
            bias = PositionBias.of(self.position, weight, n, params)
        return replace(self, bound=(core, n_threads), bias=bias)

    def gradients(
        self, label: Floats, scores: Floats, weight: Floats | None, index: int
    ) -> tuple[Floats, Floats]:
        """Gradients and hessians before weights, (1, n_rows) each, in round `index`."""
        core, n_threads = self.bound
        score = scores[0] if self.bias is None else scores[0] + self.bias.of_rows()
        g, h = core.gradients(np.ascontiguousarray(score), index, n_threads)
        if self.bias is not None:
            self.bias.update(g, h)
        return g[np.newaxis], h[np.newaxis]

    grad_hess = gradients

    def start(self, label: Floats, weight: Floats | None, n_outputs: int) -> Floats:
        """Scores start at 0: only their differences count."""
        return np.zeros(n_outputs)


class PositionBias:
    """What showing a row at a position adds to its score: learned beside the trees, by
    Newton steps (LightGBM's).
    """

    def __init__(
        self,
        place: NDArray[np.intp],
        weight: Floats | None,
        rate: float,
        penalty: float,
    ) -> None:
        self._place = place
        self._weight = weight
        self._rate = rate
        self._penalty = penalty
        self._order = np.argsort(place, kind="stable")
        self._first = np.searchsorted(
            place[self._order], np.arange(int(place.max()) + 1)
        )
        self._count = self._sums(np.ones(len(place)))
        self.values = np.zeros(len(self._first))

    @classmethod
    def of(
        cls, position: Any, weight: Floats | None, n: int, params: Mapping[str, Any]
    ) -> "PositionBias":
        """Read the positions of rows, of any kind."""
        values = np.asarray(position)
        if values.shape != (n,):
            raise DataError(
                f"position has the shape {values.shape}; it needs one value for each of {n} rows."
            )
        none = [one is None for one in values] if values.dtype == object else False
        if (missing := np.flatnonzero((values != values) | none)).size:
            raise DataError(
                f"position has no value in row {missing[0]}; every row was shown somewhere."
            )
        rate = params["learning_rate"]
        if not isinstance(rate, float | int):
            raise ParameterError("position needs a learning_rate that is one number.")
        place = np.unique(values, return_inverse=True)[1]
        return cls(place, weight, float(rate), params["position_bias_regularization"])

    def of_rows(self) -> Floats:
        """The bias of every row's position."""
        return self.values[self._place]

    def update(self, g: Floats, h: Floats) -> None:
        """One step of all positions, at the gradients of this round."""
        drop = self._sums(g)
        bend = self._sums(h)
        first = -drop - self.values * self._penalty * self._count
        second = bend + self._penalty * self._count
        self.values = self.values + self._rate * first / (second + 0.001)

    def _sums(self, values: Floats) -> Floats:
        """Sums by position: of integers, so that the order of rows does not matter."""
        values = values if self._weight is None else values * self._weight
        top = float(np.abs(values).max(initial=0.0))
        if top == 0.0:
            return np.zeros(len(self._first))
        shift = 40 - int(np.frexp(top)[1])
        whole = np.rint(np.ldexp(values, shift)).astype(np.int64)
        return np.ldexp(
            np.add.reduceat(whole[self._order], self._first).astype(np.float64), -shift
        )


def _pairs(
    pairs: Any,
    given: Any,
    group: NDArray[np.int32] | None,
    weight: Floats | None,
    n: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Winners, losers and weights of a user's pairs, without those of rows that weigh
    nothing.
    """
    rows = np.asarray(pairs)
    if (
        rows.ndim != 2
        or rows.shape[1] != 2
        or not np.issubdtype(rows.dtype, np.integer)
    ):
        raise DataError(
            f"pairs must be whole numbers of shape (n_pairs, 2), the winner first; got {rows.shape}."
        )
    if len(rows) == 0 or rows.min() < 0 or rows.max() >= n:
        raise DataError(
            f"pairs must name rows 0..{n - 1}; there are {len(rows)} pairs."
        )
    share = np.ones(len(rows)) if given is None else np.asarray(given, np.float64)
    if share.shape != (len(rows),) or not np.isfinite(share).all() or (share < 0).any():
        raise DataError("pairs_weight must have a number of at least 0 for each pair.")
    if group is not None and (group[rows[:, 0]] != group[rows[:, 1]]).any():
        at = int(np.argmax(group[rows[:, 0]] != group[rows[:, 1]]))
        raise DataError(
            f"pair {at}, rows {rows[at].tolist()}, lies in two groups; pairs are of rows of one group."
        )
    if (rows[:, 0] == rows[:, 1]).any():
        at = int(np.argmax(rows[:, 0] == rows[:, 1]))
        raise DataError(
            f"pair {at} is row {rows[at, 0]} twice; a pair has a winner and a loser."
        )
    kept = share > 0
    if weight is not None:
        kept &= (weight[rows] > 0).all(axis=1)
    winner, loser = rows[kept].astype(np.int32).T
    return np.ascontiguousarray(winner), np.ascontiguousarray(loser), share[kept]
