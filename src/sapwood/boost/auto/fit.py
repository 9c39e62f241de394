"""The order of an automatic fit: hold rows out, train candidates, blend the best, train
them again on all rows.

In: what the user set, and a `Dataset`. Out: one `Booster`, which knows what was tried.
"""

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, count
from math import frexp, inf
from typing import Any, TypeVar

import numpy as np

from sapwood.boost import offset, splits
from sapwood.boost.auto import blend, candidates, confidence, cost, crosses, refit
from sapwood.boost.auto.candidates import Candidate, Facts
from sapwood.boost.auto.contender import Contender, Mask
from sapwood.boost.auto.report import Chosen, Tried
from sapwood.boost.auto.side_by_side import together
from sapwood.boost.categories.category_encoding import encoded_columns
from sapwood.boost.round.growth import MAX_SYMMETRIC_DEPTH
from sapwood.boost.spec import make_spec
from sapwood.data.dataset import Dataset
from sapwood.data.dealt import total
from sapwood.device import host
from sapwood.errors import ParameterError, warn
from sapwood.model.booster import Booster
from sapwood.printable import printable

T = TypeVar("T")
LEAST_LIMIT = 0.02  # part of a time limit that is not planned with
# of a time limit; the second training may take 1.25 times as long
CANDIDATE_TIME = 0.42
RESERVE = 0.95  # of what is left of it that is planned with
# What a second training needs, and a blend of several models.
REQUIRED = {"boosting": "plain", "n_parallel_trees": 1, "prune_by_validation": False}
# they say nothing of crosses: a column of weight 0 stays out
BY_COLUMN = "feature_weights", "first_use_penalties"
# of a race, after which some stop, at most; of a race over few rows
RACE_ROUNDS = 100
FEW_RACE_ROUNDS = 40
RACE_RATES = 7.0  # the sum of learning rates in a race
# What crosses must lower the loss by where rows are few: the comparison is noisy, and
# crosses overfit.
CROSSES_LEAD = 0.02
# what they may raise it by, so that every other candidate has them: they may help later
CROSSES_NEAR = 0.01
# what joined categories must lower it by: they help later, and another candidate than
# the first
JOINED_LEAD = -0.005
# what deeper trees must lower it by: they are ahead after few rounds, and overfit later
DEEPER_LEAD = 0.05
# rounds of the first stage, after which candidates are compared; each stage has twice
# as many
STAGE = 250
NEAR = 0.1  # part of the least loss by which a candidate may stay above it
# rounds after which one that stays further above is stopped; for many classes after the
# first stage
SURE = 1000
# rounds of a candidate, for each of one that is certain, in which it may see wrong
# labels
WITNESS = 2
# part of the rows that may be mistaken training rows, and rare all the same
MOST_SUSPECTS = 0.01
MOST_WEIGHT = 4  # exponent of the mean weight above which weights are no counts of rows
# trainings are side by side up to so many threads, or below so many rows
FEW_THREADS = 4
FEW_ROWS = 8192
# rounds after which the loss is measured, once there are many: measuring takes a fifth
# of a round
EVERY = 4


class _Fit:
    """One automatic fit."""

    def __init__(
        self, given: Mapping[str, Any], data: Dataset, quality: str, limit: float | None
    ) -> None:
        self.start = time.monotonic()
        self.limit = inf if limit is None else limit
        self.given = {
            name: value
            for name, value in given.items()
            if name not in ("quality", "time_limit", "verbose")
        }
        if self.given.get("early_stopping_rounds", 0) is None:
            # candidates are compared by their best rounds
            del self.given["early_stopping_rounds"]
        self.fingerprint = data.fingerprint()
        self.data = data = _with_counted_weights(data)
        self.verbose = bool(given.get("verbose"))
        watched = {
            "early_stopping_rounds": 1,
            "validation_fraction": candidates.fraction(data.n_rows),
        }
        kept = data if self.given.get("linear_leaves") else data.without_values()
        self.spec = spec = make_spec(
            {**watched, **self.given}, kept, None, watched=False
        )
        offset.warn_of_rounding(spec.objective, data)
        for name, value in REQUIRED.items():
            if spec.params[name] != value:
                has = f"{name}={spec.params[name]!r}"
                raise ParameterError(
                    f"quality={quality!r} trains with {name}={value!r}, not {has}; leave one of both out."
                )
        self.hold_out(self._folds(quality), quality)
        if self.limit < inf:
            self.fit_into_time(quality)
        # why less is tried than usual, for people
        self.notes = [*self.plan.notes, *_about_singles(spec.classes)]
        # whether they are still tried
        self.crosses = self.plan.crosses
        self.joins = self.plan.joins
        self.crosses &= spec.params["tree_method"] != "exact" and all(
            spec.params[name] is None for name in BY_COLUMN
        )
        self.deeper = self.plan.deeper and "max_depth" not in self.given
        # the data with crosses that are worth a race
        self.crossed: Dataset | None = None
        self.near = CROSSES_NEAR if len(self.plan.candidates) > 1 else 0.0
        # whether crosses have lost by so little that every other candidate has them
        self.mixed = False
        self.tried: list[Contender] = []
        self.finished: list[Contender] = []  # those that were not stopped in a race

    def _folds(self, quality: str) -> list[Mask]:
        """The rows that are held out: few rows in turn, fold after fold, many rows
        once.
        """
        spec = self.spec
        data = self.data
        by_hand = (
            spec.params["has_time"]
            or "validation_fraction" in self.given
            or data.reduce is not None
        )
        alone = (
            spec.classes is not None
            and int(np.unique(spec.classes, return_counts=True)[1].min()) < 2
        )
        few_groups = (
            data.group is not None
            and int(data.group.max()) + 1 < 2 * candidates.N_FOLDS
        )
        if (
            data.n_rows > candidates.FOLD_ROWS[quality]
            or by_hand
            or alone
            or few_groups
            or data.weight is not None
        ):
            return [splits.holdout_of(spec.params, data, spec.classes)]
        dealt = splits.folds_of(
            spec.params, data, spec.classes, candidates.N_FOLDS, None
        )
        return [measured > 0 for _, measured in dealt]

    def hold_out(self, folds: list[Mask], quality: str) -> None:
        """Take these rows as those that are held out, and make the plan for the
        others.
        """
        spec = self.spec
        self.folds = folds
        self.fraction: float = (
            1 / len(folds) if len(folds) > 1 else spec.params["validation_fraction"]
        )
        self.facts = Facts.of(
            self.data, int((~folds[0]).sum()), spec.params, spec.n_outputs
        )
        self.plan = candidates.plan(self.facts, quality)

    def fit_into_time(self, quality: str) -> None:
        """Where rounds take so long that few would fit into the time limit: hold rows
        out once, grow small trees.
        """
        left = CANDIDATE_TIME * (self.start + self.limit - time.monotonic())
        params = {**self.spec.params, **self.plan.candidates[0].params, **self.given}
        n_bins = sum(self.data.n_bins)
        n_columns = self.data.n_columns
        seconds = cost.ROUNDS_IN_TIME * cost.round_seconds(
            self.facts, n_columns, n_bins, cost.n_leaves(params)
        )
        notes: list[str] = []
        if len(self.folds) > 1 and len(self.folds) * seconds > left:
            self.hold_out(
                [splits.holdout_of(self.spec.params, self.data, self.spec.classes)],
                quality,
            )
            notes.append(
                "For the time limit, rows were held out once, not fold after fold."
            )
        if seconds > left and {"max_depth", "max_leaves"}.isdisjoint(self.given):
            several = tuple(
                candidates.small(candidate) for candidate in self.plan.candidates
            )
            notes += (
                ["For the time limit, trees are small."]
                if several != self.plan.candidates
                else []
            )
            self.plan = replace(self.plan, candidates=several, deeper=False)
        self.plan = replace(self.plan, notes=(*self.plan.notes, *notes))

    def has_time(self, end: float) -> bool:
        """Whether another candidate can be expected to have its first round before this
        end.
        """
        if self.limit == inf or time.monotonic() + self.tried[0].entry_seconds <= end:
            return True
        note = "The time limit left no time for other candidates."
        self.notes += [note] if note not in self.notes else []
        return False

    def candidates(self) -> None:
        """Train the candidates of the plan, with crosses and joined categories where
        these win a race of the first.

        All of them go on stage by stage: what one does never depends on how far another
        is at that moment.
        """
        n = len(self.plan.candidates)
        several = [self.raced(self.plan.candidates[0], self.deadline(1 / n))]
        for at, candidate in enumerate(self.plan.candidates[1:], 2):
            if self.has_time(self.deadline(at / n)):
                several.append(self.follower(candidate, other=at % 2 == 0))
        for stage in count() if self.limit == inf else (64,):
            certain = [one.n_rounds for one in several if one.certain]
            most = min(STAGE << stage, WITNESS * min(certain, default=sys.maxsize))
            jobs = [
                partial(one.advance, most, self.deadline(at / n))
                for at, one in enumerate(several, 1)
                if not one.stopped and one.n_rounds < most
            ]
            if not jobs:
                break
            self.together(jobs)
            self.give_up(several)
        for one in several:
            self.finished.append(one)
            self.say(one)
        self.agree()

    def give_up(self, several: Sequence[Contender]) -> None:
        """Stop candidates that are far behind: for many classes rounds take long, for
        others there must be many.
        """
        many = self.facts.n_outputs >= cost.MANY_CLASSES
        least = min(one.loss for one in several)
        for one in several:
            enough = one.n_rounds >= (STAGE if many else SURE) and (
                many or self.plan.least_fall > 0
            )
            one.stopped |= enough and one.is_behind(least + NEAR * abs(least))

    def agree(self) -> None:
        """Go on with those that need no blend, or, where one has seen wrong labels,
        with all in doubt.
        """
        certain = [one for one in self.finished if one.certain]
        flaws = max(one.flaws or 0 for one in self.finished)
        if flaws and self.cleared():
            for one in self.finished:
                one.flaws = None if one.flaws is None else 0
        elif flaws:
            for one in self.finished:
                one.flaws = flaws
                one.stopped &= one not in certain  # these have stopped too early
            self.together(
                [
                    partial(one.advance, None, self.deadline(1.0))
                    for one in self.finished
                ]
            )
            return
        self.finished = certain or self.finished

    def cleared(self) -> bool:
        """Whether mistaken training rows have no wrong labels: they get their class in
        a training without them.

        Half of them is held out at a time: the others teach what is rare, but a wrong
        label says nothing of the next.
        """
        best = min(self.finished, key=lambda one: one.loss)
        data = self.data
        rows = np.unique(np.concatenate([one.suspects for one in self.finished]))
        alike = (
            not self.spec.params["has_time"]
            and data.group is None
            and data.reduce is None
        )
        few = len(rows) <= MOST_SUSPECTS * data.n_rows and self.limit == inf
        if not alike or not few or best.n_mistaken(best.scores):
            return False
        halves = [
            np.isin(np.arange(data.n_rows), rows[at::2])
            for at in range(min(2, len(rows)))
        ]
        candidate = replace(
            best.candidate, name=f"{best.candidate.name}, doubtful rows held out"
        )
        trial = self._training(candidate, best.data, halves)
        trial.advance(best.best_round)
        self.say(trial)
        return trial.n_mistaken(trial.last_scores()) == 0

    def raced(self, candidate: Candidate, end: float) -> Contender:
        """What goes on of a candidate: with crosses, deeper trees and joined
        categories, or without.
        """
        best = self.enter(candidate, self.data)
        if self.crosses or self.joins or self.deeper:
            best.advance(self.race_rounds, end)
        if best.certain:
            return best
        if self.crosses:
            low = 0.0 if self.facts.n_rows >= candidates.MANY_ROWS else CROSSES_LEAD
            other = self.with_crosses(best, end)
            near = other is not None and _lead(best, other) > -self.near
            winner = self.race(best, other, low)
            self.crosses = winner is not best
            self.mixed = near and winner is best
            best = winner
        if self.deeper:
            best = self.race(
                best,
                self.challenger(candidates.deeper(best.candidate), best.data, end),
                DEEPER_LEAD,
            )
        if self.joins:
            other = self.challenger(candidates.joined(best.candidate), best.data, end)
            # the next candidate makes better use of joined categories
            if len(self.plan.candidates) > 1:
                self.joins = other is not None and _lead(best, other) > JOINED_LEAD
                return self.race(best, other, inf)
            return self.race(best, other, 0.0)
        return best

    def follower(self, candidate: Candidate, other: bool) -> Contender:
        """A candidate with what has won the races of the first; `other`: where both may
        be good, with what has not.
        """
        data = self.data
        if (self.crosses or (self.mixed and other)) and self.crossed is not None:
            data = self.crossed
            candidate = candidates.crossed(candidate, len(self.crossed.crosses))
        if self.joins and other:
            with suppress(ParameterError):  # the user's parameters do not go with it
                return self.enter(candidates.joined(candidate), data)
        return self.enter(candidate, data)

    def with_crosses(self, one: Contender, end: float) -> Contender | None:
        """The same candidate with crosses; None if they do not help.

        First there are many, of the columns that trees gain most from. Those that gain
        most themselves stay.
        """
        pairs = self.facts.n_outputs == 1 or self.facts.n_rows >= candidates.FEW_ROWS
        found = (
            crosses.propose(one.trees()[0], self.data, pairs)
            if self.has_time(end)
            else []
        )
        whole = self.data.with_crosses(found) if found else self.data
        many = (
            self.challenger(candidates.crossed(one.candidate, len(found)), whole, end)
            if found
            else None
        )
        if many is None or _lead(one, many) <= -self.near:
            return many
        kept = found  # of many outputs the search for splits takes little of a round
        if self.facts.n_outputs < cost.MANY_CLASSES:
            kept = crosses.best(many.trees()[0], found, self.data.n_columns)
        if len(kept) == len(found):
            self.crossed = whole
            return many
        self.stop(many)
        del whole, many  # their memory, before that of the others is taken
        self.crossed = self.data.with_crosses(kept)
        return self.challenger(
            candidates.crossed(one.candidate, len(kept)), self.crossed, end
        )

    def challenger(
        self, candidate: Candidate, data: Dataset, end: float
    ) -> Contender | None:
        """A candidate after the rounds of a race; None where there is no time, or the
        user's parameters forbid it.
        """
        if not self.has_time(end):
            return None
        try:
            other = self.enter(candidate, data)
        except ParameterError:
            return None
        other.advance(self.race_rounds, end)
        return other

    def race(self, best: Contender, other: Contender | None, low: float) -> Contender:
        """The winner of two: a challenger must lower the loss by more than this part of
        it.
        """
        if other is None:
            return best
        loser, winner = (best, other) if _lead(best, other) > low else (other, best)
        self.stop(loser)
        return winner

    @property
    def race_rounds(self) -> int:
        """The rounds of a race."""
        most = (
            FEW_RACE_ROUNDS if self.facts.n_rows < candidates.FEW_ROWS else RACE_ROUNDS
        )
        return min(most, round(RACE_RATES / self.tried[0].spec.leaf_plan.rate(0)))

    def enter(self, candidate: Candidate, data: Dataset) -> Contender:
        """Make a contender of a candidate, without what the user's parameters, or the
        device, do not go with.
        """
        while True:
            try:
                self.tried.append(self._contender(candidate, data))
                return self.tried[-1]
            except ParameterError:
                if not candidate.optional:
                    raise
                candidate = candidate.plainer()

    def _contender(self, candidate: Candidate, data: Dataset) -> Contender:
        linear = {**candidate.params, **self.given}.get("linear_leaves", False)
        one = self._training(
            candidate, data if linear else data.without_values(), self.folds
        )
        one.advance(1)  # a device refuses some trees when it grows the first
        return one

    def _training(
        self, candidate: Candidate, data: Dataset, folds: list[Mask]
    ) -> Contender:
        plan = self.plan
        given = dict(self.given)
        if (
            candidate.params["grow_policy"] == "symmetric"
            and "grow_policy" not in given
        ):
            # no limit, or more than such trees have: they keep their own
            depth = self.spec.params["max_depth"]
            if depth is None or (
                isinstance(depth, int) and depth > MAX_SYMMETRIC_DEPTH
            ):
                given.pop("max_depth", None)
        return Contender(
            candidate,
            given,
            data,
            folds,
            every=EVERY,
            least_fall=plan.least_fall,
            window=plan.window,
        )

    def together(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Call functions that train, side by side where that is quicker, and where
        nothing of the user's is called.
        """
        data = self.data
        n = self.spec.n_threads
        metric = self.given.get("eval_metric", "")
        names = [metric] if isinstance(metric, str) else metric
        apart = self.limit < inf or data.reduce is not None or data.device.name != "cpu"
        apart |= not isinstance(names, Sequence) or not all(
            isinstance(name, str) for name in names
        )
        apart |= n > FEW_THREADS and data.n_rows >= FEW_ROWS
        return together(jobs, 1 if apart else n)

    def deadline(self, part: float) -> float:
        """When a part of the time for candidates is over."""
        return self.start + part * CANDIDATE_TIME * self.limit

    def stop(self, one: Contender) -> None:
        """Free the memory of a loser."""
        self.say(one)
        one.release()

    def say(self, one: Contender) -> None:
        """Print how a candidate has done, where `verbose` asks for it."""
        if self.verbose:
            loss = f"{one.metric.name} {one.value:.6g}"
            line = f"{one.candidate.name}: {loss} after {one.best_round} rounds, {one.seconds:.1f} s"
            print(printable(line), flush=True)

    def model(self) -> tuple[Booster, list[float], bool, float]:
        """The blend, which part of it each candidate is, whether it was trained on all
        rows, and its factor.
        """
        fingerprint = self.fingerprint
        end = self.start + (1 - LEAST_LIMIT) * self.limit
        chosen = (
            self.to_refit(RESERVE * (end - time.monotonic())) if self.plan.refit else []
        )
        refitted = bool(chosen)
        most = self.given.get("n_estimators")
        n_turns = self.turns if chosen else 1
        first = chosen
        chosen = chosen + self.in_turns(first, n_turns)
        if not refitted:
            chosen = self.drawn(self.finished)
            finish = sum(one.finish_seconds for one, _ in chosen)
            # what is left of a time limit is theirs
            for at, (one, _) in enumerate(chosen):
                left = RESERVE * (end - finish - time.monotonic()) / (len(chosen) - at)
                one.advance(deadline=time.monotonic() + left)
            chosen = self.drawn(self.finished)
        several: list[list[Booster]] = []
        if refitted:
            several = self.together(
                [
                    partial(
                        refit.on_all_rows, one, self.fraction, fingerprint, most, end
                    )
                    for one, _ in chosen
                ]
            )
            refitted = all(several)  # else the time was over
        if not refitted:
            several = [[one.booster(fingerprint)] for one, _ in chosen]
        part = {one: n / blend.DRAWS / n_turns for one, n in chosen}
        models = [one for own in several for one in own]
        shares = [
            part[one] / len(own)
            for own, (one, _) in zip(several, chosen, strict=True)
            for _ in own
        ]
        sure = confidence.factor(first or chosen)
        parts = [part.get(one, 0.0) for one in self.tried]
        return blend.scaled(blend.merge(models, shares), sure), parts, refitted, sure

    @property
    def turns(self) -> int:
        """How often rows are held out: once where they are the last ones, where there
        are folds or a time limit.
        """
        once = len(self.folds) > 1 or self.spec.params["has_time"] or self.limit < inf
        return 1 if once else self.plan.turns

    def in_turns(
        self, chosen: list[tuple[Contender, int]], n_turns: int
    ) -> list[tuple[Contender, int]]:
        """The chosen candidates, trained while other rows are held out, and drawn by
        the loss of these rows.
        """
        pools: list[list[Contender]] = []
        for turn in range(1, n_turns):
            held = [
                splits.holdout_of(self.spec.params, self.data, self.spec.classes, turn)
            ]
            again = [
                (
                    replace(
                        one.candidate, name=f"{one.candidate.name}, other rows held out"
                    ),
                    one.data,
                )
                for one, _ in chosen
            ]
            pools.append(
                [self._training(candidate, data, held) for candidate, data in again]
            )
        every = [one for pool in pools for one in pool]
        self.together([one.advance for one in every])
        for one in every:
            self.say(one)
        self.tried += every
        self.finished += every
        return [pair for pool in pools for pair in self.drawn(pool)]

    def drawn(self, pool: list[Contender]) -> list[tuple[Contender, int]]:
        """The candidates of a pool that are drawn for the blend, and how often."""
        return [
            (one, n)
            for one, n in zip(
                pool, blend.draw(pool, self.plan.least_worth), strict=True
            )
            if n
        ]

    def to_refit(self, seconds: float) -> list[tuple[Contender, int]]:
        """What is drawn and can be trained on all rows in this time: of all pools of
        candidates, the best that can.
        """
        found: list[tuple[Contender, int]] = []
        least = inf
        for pool in chain.from_iterable(
            combinations(self.finished, n) for n in range(len(self.finished), 0, -1)
        ):
            chosen = self.drawn(list(pool))
            cost = sum(one.seconds_on_all_rows(self.fraction) for one, _ in chosen)
            loss = blend.loss(chosen)
            if cost <= seconds and loss < least:
                found = chosen
                least = loss
            if cost <= seconds and len(pool) == len(self.finished):
                break  # there is time for all of them
        return found


def _with_counted_weights(data: Dataset) -> Dataset:
    """The data with weights of a mean from 1/2 to 16: small and large ones, times a
    power of two.

    Weights that sum to 1 would keep all rows together in one leaf, whose hessian must
    be `min_child_weight`. Beside large ones the penalties of leaves and their lines
    would be nothing.
    """
    if data.weight is None:
        return data
    n_counted = total(data.reduce, int(np.count_nonzero(data.weight)))
    _, exponent = frexp(
        host.weight_sum(data.weight, reduce=data.reduce) / max(1, n_counted)
    )
    return (
        data
        if 0 <= exponent <= MOST_WEIGHT
        else data.with_weight(np.ldexp(data.weight, -exponent))
    )


def _about_singles(classes: Any) -> list[str]:
    """What is to be said where most classes have a single row, none of which can be
    held out.
    """
    if classes is None:
        return []
    counts = np.unique(classes, return_counts=True)[1]
    n_single = int((counts == 1).sum())
    if 2 * n_single <= len(counts):
        return []
    return [
        f"{n_single:,} of {len(counts):,} classes have a single row, which must be trained on: the rows that were held "
        "out are of the other classes, and say little of these."
    ]


def _lead(best: Contender, other: Contender) -> float:
    """The part of the loss of one by which that of another is lower."""
    return (best.loss - other.loss) / abs(best.loss) if best.loss else 0.0


def check(quality: str, told: bool) -> None:
    """Raise where validation rows, callbacks, or a model or scores to start from
    (`told`) come with a quality.
    """
    if told:
        raise ParameterError(
            f"quality={quality!r} holds out rows of its own. Leave it out, or leave out validation rows, callbacks, "
            "init_model and init_score."
        )


def without_holdout(
    params: Mapping[str, Any],
    data: Dataset,
    asked: bool,
    n_outputs: int,
    given: Collection[str],
) -> dict[str, Any]:
    """What a plain training has instead of these parameters, where no rows can be held
    out; warns who asked for more.

    The order of time then has no effect, unless statistics of categories or ordered
    boosting follow it. Where there are too many classes for so few rows, rounds are
    fewer and cheaper, except in what the user has `given`.
    """
    if asked:
        needs = f"at least {candidates.MIN_ROWS} rows of positive weight, two groups, and a class of two rows"
        warn(
            f"quality={params['quality']!r} needs {needs} to hold some rows out; this is one plain training."
        )
    ordered = params["boosting"] == "ordered" or encoded_columns(params, data)
    other: dict[str, Any] = {}
    if not ordered and params["early_stopping_rounds"] is None:
        other["has_time"] = False
    cheap = (
        {}
        if ordered
        else candidates.limited_params(
            cost.Rows(data.n_total, n_outputs), params["quality"]
        )
    )
    cheap = {name: value for name, value in cheap.items() if name not in given}
    if "n_estimators" in cheap:
        warn(
            f"a round of {n_outputs:,} classes takes long, and no class has a row to spare that could be held out: "
            f"this is one plain training of {cheap['n_estimators']} rounds."
        )
    return other | cheap


def fit(
    given: Mapping[str, Any], data: Dataset, quality: str, limit: float | None = None
) -> Booster:
    """Train the candidates that suit the data, and make one model of the best.

    given: mapping; the user's parameters, which go before those of every candidate.
    data: Dataset; with the values of its table where leaves may be linear.
    quality: str; 'fast', 'balanced' or 'best'.
    limit: float, optional; seconds that the fit may take.
    """
    candidates.refuse_checkpoint(given)
    one = _Fit(given, data, quality, limit)
    one.candidates()
    booster, parts, refitted, sure = one.model()
    tried = tuple(
        Tried(
            each.candidate.name,
            each.best_round,
            each.value,
            each.seconds,
            part,
            each not in one.finished,
        )
        for each, part in zip(one.tried, parts, strict=True)
    )
    seconds, metric = time.monotonic() - one.start, one.tried[0].metric.name
    n_held = sum(int(held.sum()) for held in one.folds)
    notes = tuple(one.notes)
    chosen = Chosen(
        quality,
        metric,
        data.n_rows,
        n_held,
        len(one.folds),
        refitted,
        tried,
        seconds,
        0,
        sure,
        notes,
    )
    return replace(booster, chosen=chosen)
