"""A candidate in training: its rounds so far, and its loss on the held-out rows after each.

In: parameters, data, and which rows are held out. Out: the best round, its trees, and its scores of the held-out rows.
"""

import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost import class_weight
from sapwood.boost.auto import confidence
from sapwood.boost.auto.candidates import Candidate
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import Session, make_booster
from sapwood.boost.spec import make_spec
from sapwood.data.dataset import Dataset
from sapwood.data.dealt import total
from sapwood.data.progress import tell
from sapwood.model.booster import Booster
from sapwood.model.trees import Trees

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
WINDOW_RATES = 10.0  # the sum of learning rates in which the loss must fall, if that takes more rounds than `window`
REPLAY = 0.75  # part of the time of a round that its replay takes; measured: 0.25 to 0.65
DENSE = 100  # rounds after each of which the loss is measured
LEARNT = 0.1  # part of the loss of the first round, below which a rule may have been learnt


class Contender:
    """One training that can be continued, compared, and stopped; with folds, one a fold, all round by round.

    candidate: Candidate; what is tried.
    given: mapping; the user's parameters, which go before the candidate's.
    data: Dataset; all rows, in the columns of this candidate.
    folds: sequence of (n_rows) bool; rows of weight 0 in each training. No row is in two folds.
    every: int; after the first `DENSE` rounds the loss is measured once in so many.
    least_fall: float; part of itself by which the loss must fall in each window of rounds.
    window: int; rounds of this window, at least.
    """

    def __init__(
        self,
        candidate: Candidate,
        given: Mapping[str, Any],
        data: Dataset,
        folds: Sequence[Mask],
        every: int = 1,
        least_fall: float = 0.0,
        window: int = 0,
    ) -> None:
        self.candidate, self.data = candidate, data
        spec = make_spec({**candidate.params, **given}, data, None, watched=False)
        weighted = class_weight.with_class_weight(data, spec.factor)
        self.sessions = [Session(spec, weighted, held, held) for held in folds]
        self.spec, self.metric = spec, spec.metrics[0]
        rows = [one.eval_rows["holdout"] for one in self.sessions]
        weights = [one.weight for one in rows if one.weight is not None]
        self.label = np.concatenate([one.label for one in rows])  # of the held-out rows, fold after fold
        self._weight = np.concatenate(weights) if weights else None
        groups = [one.group for one in rows if one.group is not None]
        self._group = np.concatenate(groups) if groups else None  # no group is in two folds
        self._rows, self._reduce = rows, rows[0].reduce
        self._folds = folds
        # Training rows, of all folds, that were mistaken when first no held-out row was; None: some always was.
        self.flaws: int | None = None
        self.n_rounds, self.best_round, self.seconds, self.stopped = 0, 0, 0.0, False
        self._every, self._least_fall = every, least_fall
        self._window = max(window, round(WINDOW_RATES / spec.leaf_plan.rate(0)))
        self._lows: list[tuple[int, float]] = []  # rounds that were measured, and the lowest loss up to each
        self.losses: list[float] = []  # after each round that was measured
        self.scores = self.last_scores()  # of the best round, (n_outputs, n_held), fold after fold
        self.loss = self.loss_of(self.scores)  # of the best round
        self._stores = [TreeStore(spec.n_outputs, one.encoded is not None) for one in self.sessions]
        self._rounds = [one.rounds() for one in self.sessions]

    def advance(self, n_rounds: int | None = None, deadline: float = inf) -> None:
        """Train until so many rounds are done, or until the loss has not fallen for `early_stopping_rounds`."""
        start, most = time.monotonic(), self.spec.params["n_estimators"]
        end = most if n_rounds is None else min(n_rounds, most)
        patience = self.spec.params["early_stopping_rounds"]
        while self.n_rounds < end and not self.stopped and (time.monotonic() < deadline or not self.n_rounds):
            for store, rounds in zip(self._stores, self._rounds, strict=True):
                store.add(next(rounds))
            self.n_rounds += 1
            if self.n_rounds <= DENSE or self.n_rounds % self._every == 0 or self.n_rounds == end:
                self._measure(most)
            self.stopped = self.n_rounds - self.best_round >= patience or self._crawls() or self.certain
        self.stopped |= self.n_rounds >= most
        self.seconds += time.monotonic() - start

    @property
    def certain(self) -> bool:
        """Whether nothing is left to learn: no row was mistaken, and with the highest factor the loss is nothing."""
        known = self.flaws == 0 and self.n_rounds - self.best_round < self._every
        return known and self.loss_of(confidence.MOST * self.scores) <= confidence.CERTAIN

    def _low(self, n_rounds: int) -> float:
        """The lowest loss of the first rounds."""
        return self._lows[max(0, bisect_right(self._lows, (n_rounds, inf)) - 1)][1]

    def _crawls(self) -> bool:
        """Whether the loss falls so slowly that more rounds are not worth their time."""
        if not self._least_fall or self.n_rounds <= 2 * self._window:
            return False
        before = self._low(self.n_rounds - self._window)
        return before - self.loss < self._least_fall * abs(before)

    def is_behind(self, loss: float) -> bool:
        """Whether its loss would stay above this one even if it fell again by as much as in half of its rounds."""
        return 2 * self.loss - self._low(self.n_rounds // 2) > loss

    def _measure(self, most: int) -> None:
        """Note the loss after a round, and whether it is the best so far."""
        self.losses.append(self.loss_of(scores := self.last_scores()))
        if self.losses[-1] < self.loss:
            self.loss, self.best_round, self.scores = self.losses[-1], self.n_rounds, scores
            learnt = self.flaws is None and self.loss < LEARNT * self.losses[0]
            if learnt and self.of_classes and not self.n_mistaken(scores):
                self.flaws = self._n_flaws()
        value = -self.losses[-1] if self.metric.higher_is_better else self.losses[-1]
        self._lows.append((self.n_rounds, self.loss))
        measured = {f"holdout {self.metric.name}": value}
        tell(self.candidate.name, self.n_rounds, most, measured, self.metric.higher_is_better)

    def release(self) -> None:
        """Free the memory of a training that does not go on; its figures stay."""
        self.sessions, self._rows, self._stores, self._rounds = [], [], [], []
        self.scores = self.scores[:, :0]
        del self.data

    @property
    def value(self) -> float:
        """The metric after the best round."""
        return -self.loss if self.metric.higher_is_better else self.loss

    def seconds_on_all_rows(self, fraction: float) -> float:
        """How long the same trainings take on all rows, which are more, for as many more rounds.

        Rounds that were done are replayed, unless trees split statistics of categories.
        """
        grown_anew = any(one.encoded is not None for one in self.sessions)
        times = (1.0 if grown_anew else REPLAY) + fraction / (1 - fraction)
        return self.seconds * self.best_round / max(1, self.n_rounds) * times / (1 - fraction)

    @property
    def of_classes(self) -> bool:
        """Whether it is a model of classes, whose loss is that of their probabilities."""
        return self.spec.classes is not None and self.metric.name in confidence.METRICS

    @property
    def n_held(self) -> int:
        """The held-out rows of all holders."""
        return total(self._reduce, len(self.label))

    def n_mistaken(self, scores: Floats) -> int:
        """How many held-out rows, of all holders, get another class, or none, by these raw scores."""
        return total(self._reduce, confidence.mistaken(scores, self.label))

    def _n_flaws(self) -> int:
        """How many training rows, of all folds and holders, get another class, or none, after the last round."""
        found, weight = 0, self.data.weight
        for session, held in zip(self.sessions, self._folds, strict=True):
            rows = np.flatnonzero(~held if weight is None else ~held & (weight > 0))
            found += confidence.mistaken(session.trainer.scores(rows.astype(np.int32)), self.spec.label[rows])
        return total(self._reduce, found)

    def loss_of(self, scores: Floats, label: Floats | None = None) -> float:
        """The loss of raw scores of the held-out rows, (n_outputs, n_held), or with other labels than theirs.

        Lower is better for every metric.
        """
        prediction = self.spec.objective.predict(np.ascontiguousarray(scores.T), self.spec.n_threads)
        value = self.metric(self.label if label is None else label, prediction, self._weight, self._reduce, self._group)
        return -value if self.metric.higher_is_better else value

    def trees(self) -> list[Trees]:
        """The trees of the best rounds, fold by fold."""
        return [store.trees(self.best_round) for store in self._stores]

    def booster(self, fingerprint: str) -> Booster:
        """The model of the best rounds, which was not trained on the held-out rows (of the first fold)."""
        return make_booster(self.sessions[0], self.trees()[0], None, fingerprint, {})

    def last_scores(self) -> Floats:
        """Raw scores of the held-out rows after the last round, (n_outputs, n_held), fold after fold."""
        return np.concatenate([one.scores() for one in self._rows], axis=1)
