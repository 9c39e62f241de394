"""The fit of a distribution: models of several folds side by side, recalibrated on the
rows that each has not seen.

In: parameters, a `Dataset`, a family or 'auto'. Out: one `Booster`, the mean of the
models, and its family.

Every row is held out twice, by two models that saw other rows. The mean of their scores
says when to stop, and how much too small or large the learned scales are. The model is
the mean of all models, which is better than that of two; so the correction is
extrapolated from those of one model and of two.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost import offset, splits
from sapwood.boost.auto import blend
from sapwood.boost.auto.candidates import LARGE, refuse_checkpoint
from sapwood.boost.auto.report import Chosen, Tried
from sapwood.boost.round.tree_store import TreeStore
from sapwood.boost.session import Session, make_booster
from sapwood.boost.spec import make_spec
from sapwood.data.dataset import Dataset
from sapwood.data.progress import tell
from sapwood.device import elementary
from sapwood.model.booster import Booster
from sapwood.objective.distributions import (
    Family,
    Likelihood,
    Located,
    StudentT,
    family_of,
    weighted_quantile,
)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
REPEATS = 2  # how often every row is held out
MIN_ROWS = 30  # with fewer rows of positive weight, none is held out
SCREEN_ROUNDS = 20  # of a candidate of 'auto', on the folds of one repetition
# of freedom, among which those of Student's t are chosen
DEGREES = (3.0, 4.0, 6.0, 10.0, 30.0, 100.0)
# of the log of a scale; steps of the search for it
MAX_SHIFT = 2.0
SEARCH = 40
# how far that may be from the likeliest one, for the coverage of intervals
MAX_TILT = 0.06
COVERAGE = 0.9  # of the intervals that it is about
MIN_ZEROS = 0.01  # share of zeros from which they have a probability of their own
MAX_COUNTS = 1000  # distinct values of labels that can be counts
FEW_GAIN = 1e-5  # of the loss, that a round must bring to be the best


@dataclass(frozen=True)
class Fitted:
    """A model, its family, and what it was chosen by."""

    booster: Booster
    family: Family
    # of held-out rows, after the recalibration; NaN where none was held out
    loss: float


def fit(
    given: Mapping[str, Any],
    data: Dataset,
    dist: Any,
    n_folds: int,
    valid: Dataset | None = None,
) -> Fitted:
    """Train a family, or the best of several, on a data set.

    ``given``: parameters of `train`, among them n_estimators and early_stopping_rounds.
    ``n_folds``: folds of each of two repetitions; 0 holds out nothing. ``valid``: rows
    to stop and to recalibrate on, in the place of folds.
    """
    refuse_checkpoint(given)
    begin = time.monotonic()
    assert data.label is not None
    live = (
        data.weight > 0 if data.weight is not None else np.ones(data.n_rows, np.bool_)
    )
    families = [family_of(dist)] if dist != "auto" else candidates(data.label[live])
    for family in families:
        family.check(data.label)
        if valid is not None and valid.label is not None:
            family.check(valid.label)
    seed = given.get("random_state") or 0
    n_folds = n_folds if live.sum() >= max(MIN_ROWS, 2 * n_folds) else 0
    large = data.n_rows * data.n_columns >= LARGE
    masks = (
        []
        if valid is not None or not n_folds
        else deal(seed, n_folds, data, 1 if large else REPEATS)
    )
    masks = masks[:1] if large else masks
    tried: list[Tried] = []
    if len(families) > 1:
        families = [_screened(families, given, data, masks, valid, tried)]
    run = _Run(given, data, families[0], masks, valid)
    offset.warn_of_rounding(run.spec.objective, data)
    run.advance(given.get("n_estimators", 100))
    booster, family, loss = run.finish()
    tried.append(
        Tried(family.spec, run.best_round, loss, time.monotonic() - begin, 1.0)
    )
    if given.get("verbose"):
        for one in tried:
            one.say("nll")
    n_valid = 0 if valid is None else valid.n_rows
    n_held = int(masks[0].sum()) if masks else n_valid
    seconds = time.monotonic() - begin
    held_by = REPEATS if len(masks) > 1 else 0
    sizes = data.n_rows + n_valid, n_held, len(masks)
    chosen = Chosen(
        "distribution", "nll", *sizes, False, tuple(tried), seconds, held_by
    )
    return Fitted(replace(booster, chosen=chosen), family, loss)


def candidates(y: Floats) -> list[Family]:
    """Families that labels can have, the simplest first."""
    whole = bool((y == np.floor(y)).all())
    low = float(y.min())
    zeros = float((y == 0).mean())
    if whole and low >= 0 and len(np.unique(y)) <= MAX_COUNTS:
        names = ["poisson"] + ["negative_binomial"] * bool(y.var() > y.mean())
        names += ["zero_inflated_poisson"] * (zeros > MIN_ZEROS)
        names += ["student_t"] if zeros <= MIN_ZEROS else []
    elif low >= 0 and y.max() < 1:
        names = ["hurdle_beta"] if low == 0 else ["beta", "normal"]
    elif low > 0:
        names = ["student_t", "normal", "lognormal", "gamma"]
    elif low == 0 and zeros > MIN_ZEROS:
        names = ["hurdle_gamma", "hurdle_lognormal"]
    else:
        # its degrees of freedom go up to those of a normal distribution, almost
        names = ["student_t"]
    return [family_of(name) for name in names]


def deal(seed: int, n_folds: int, data: Dataset, n_repeats: int) -> list[Mask]:
    """Which rows each model does not see: every row is held out once in each
    repetition.
    """
    found = []
    for repeat in range(n_repeats):
        fold = splits.folds(seed + repeat, n_folds, data.n_rows, None, data.group)
        found += [fold == which for which in range(n_folds)]
    return found


def _screened(
    families: Sequence[Family],
    given: Mapping[str, Any],
    data: Dataset,
    masks: list[Mask],
    valid: Dataset | None,
    tried: list[Tried],
) -> Family:
    """The family whose first rounds give the rows, held out once each, the highest
    likelihood.
    """
    if not masks and valid is None:
        return families[0]
    losses = []
    for family in families:
        begin = time.monotonic()
        run = _Run(given, data, family, masks[: max(1, len(masks) // REPEATS)], valid)
        run.advance(min(SCREEN_ROUNDS, given.get("n_estimators", SCREEN_ROUNDS)))
        losses.append(run.calibrated()[2])
        tried.append(
            Tried(
                family.spec, run.best_round, losses[-1], time.monotonic() - begin, 0.0
            )
        )
    return families[int(np.argmin(losses))]


class _Run:
    """The models of one family in training, side by side."""

    def __init__(
        self,
        given: Mapping[str, Any],
        data: Dataset,
        family: Family,
        masks: list[Mask],
        valid: Dataset | None,
    ) -> None:
        assert data.label is not None
        self.family = family
        self.data = data
        params = {**given, "objective": Likelihood(family)}
        self.patience = params.pop("early_stopping_rounds", None) or 10**9
        spec = make_spec(params, data, None, watched=valid is not None)
        self.spec, self.label, self.weight = spec, spec.label, data.weight
        if masks:
            self.sessions = [Session(spec, data, held, held) for held in masks]
        else:
            self.sessions = [
                Session(spec, data, sets={} if valid is None else {"valid": valid})
            ]
        if valid is not None:
            assert valid.label is not None
            self.label = offset.subtracted(valid.label, spec.offset)
            self.weight = valid.weight
        # empty: the validation set, whole
        self.places = [np.flatnonzero(held) for held in masks]
        self.watched = bool(masks) or valid is not None
        self.rounds = [one.rounds() for one in self.sessions]
        self.stores = [TreeStore(spec.n_outputs) for _ in self.sessions]
        self.done = 0
        self.best_round = 0
        self.loss = np.inf
        # scores of held-out rows of the best round, one array for each repetition
        self.clean: list[Floats] = []

    def advance(self, n_rounds: int) -> None:
        """Train until the loss of held-out rows has not fallen for a while."""
        while self.done < n_rounds and self.done - self.best_round < self.patience:
            for store, rounds in zip(self.stores, self.rounds, strict=True):
                store.add(next(rounds))
            self.done += 1
            if not self.watched:
                self.best_round = self.done
                continue
            scores = self._scores()
            loss = self._loss(self.family, sum(scores[1:], scores[0]) / len(scores))
            if loss < self.loss - FEW_GAIN:
                self.loss, self.best_round, self.clean = loss, self.done, scores
            tell(self.family.spec, self.done, n_rounds, {"holdout nll": loss}, False)
        self.best_round = max(1, self.best_round)

    def calibrated(self) -> tuple[Family, float, float]:
        """The family with its constants, the shift of its scale, and the loss after
        it.
        """
        if not self.clean:
            return self.family, 0.0, self.loss if self.watched else float("nan")
        mean = sum(self.clean[1:], self.clean[0]) / len(self.clean)
        family: Family = self.family
        if isinstance(family, StudentT):
            found = [(*self._shift(StudentT(df), mean), df) for df in DEGREES]
            family = StudentT(min(found, key=lambda one: one[1])[2])
        if family.scale_at is None:
            return family, 0.0, self._loss(family, mean)
        shift, loss = self._tilted(family, mean)
        if len(self.clean) > 1:  # one model needs more, many models less
            alone = [self._tilted(family, one)[0] for one in self.clean]
            shift = 2.0 * shift - sum(alone) / len(alone)
        return family, float(np.clip(shift, -MAX_SHIFT, MAX_SHIFT)), loss

    def finish(self) -> tuple[Booster, Family, float]:
        """The mean of all models, recalibrated."""
        family, shift, loss = self.calibrated()
        models = [
            make_booster(
                session, store.trees(self.best_round), None, self.data.fingerprint(), {}
            )
            for session, store in zip(self.sessions, self.stores, strict=True)
        ]
        # the bases less it have no digits that a sum would lose
        start = self.spec.offset
        base = (
            sum((one.base - start for one in models[1:]), models[0].base - start)
            / len(models)
            + start
        )
        if family.scale_at is not None:
            base[family.scale_at] += shift
        whole = blend.merge(models, [1.0 / len(models)] * len(models))
        return (
            replace(whole, base=base, objective=Likelihood(family).name),
            family,
            loss,
        )

    def _scores(self) -> list[Floats]:
        """Scores of held-out rows, (n_held, n_outputs), for each repetition."""
        rows = [next(iter(one.eval_rows.values())).scores().T for one in self.sessions]
        if not self.places:
            return [np.array(rows[0])]
        if len(self.places) == 1:
            full = np.zeros((self.data.n_rows, self.family.n_outputs))
            full[self.places[0]] = rows[0]
            return [full]
        n_repeats = max(1, round(sum(map(len, self.places)) / self.data.n_rows))
        each = len(self.places) // n_repeats
        found = []
        for first in range(0, len(self.places), each):
            full = np.empty((self.data.n_rows, self.family.n_outputs))
            for place, own in zip(
                self.places[first : first + each],
                rows[first : first + each],
                strict=True,
            ):
                full[place] = own
            found.append(full)
        return found

    def _held(self, scores: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Labels, scores and weights of held-out rows."""
        if len(self.places) != 1:
            return self.label, scores, self.weight
        at = self.places[0]
        return (
            self.label[at],
            scores[at],
            None if self.weight is None else self.weight[at],
        )

    def _loss(self, family: Family, scores: Floats) -> float:
        """The mean loss of held-out rows."""
        return family.mean_loss(*self._held(scores))

    def _tilted(self, family: Family, scores: Floats) -> tuple[float, float]:
        """What to add to the score of the scale, near the likeliest, so that intervals
        hold what they say.
        """
        shift, loss = self._shift(family, scores)
        if isinstance(family, Located) and family.reach is not None:
            label, scores, weight = self._held(scores)
            away = family.distances(label, scores)
            wanted = weighted_quantile(
                away, np.ones(len(away)) if weight is None else weight, COVERAGE
            )
            if wanted > 0:
                right = float(elementary.log(wanted / family.reach))
                shift = min(max(right, shift - MAX_TILT), shift + MAX_TILT)
        return shift, loss

    def _shift(self, family: Family, scores: Floats) -> tuple[float, float]:
        """What to add to the score of the scale, and the loss then."""
        assert family.scale_at is not None
        step = np.zeros(family.n_outputs)

        def loss(shift: float) -> float:
            step[family.scale_at] = shift
            return self._loss(family, scores + step)

        at = golden(loss, -MAX_SHIFT, MAX_SHIFT)
        return at, loss(at)


def golden(loss: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a function with one valley, by golden sections."""
    ratio = 0.6180339887498949
    a = high - ratio * (high - low)
    b = low + ratio * (high - low)
    at_a = loss(a)
    at_b = loss(b)
    for _ in range(SEARCH):
        if at_a <= at_b:
            high = b
            b = a
            at_b = at_a
            a = high - ratio * (high - low)
            at_a = loss(a)
        else:
            low = a
            a = b
            at_a = at_b
            b = low + ratio * (high - low)
            at_b = loss(b)
        if high - low < 1e-4:
            break
    return (low + high) / 2.0
