"""One model in training: its trainer, its encoded categories, the rows it is evaluated
on, and its rounds.

In: a `TrainSpec`, training rows, which of them are held out. Out: rounds of trees, and
metrics after each.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import objective
from sapwood.boost.categories.category_encoding import encoded_columns
from sapwood.boost.categories.encoded_training import EncodedTraining
from sapwood.boost.leaves import leaf
from sapwood.boost.loops import dart, forest, ordered, plain
from sapwood.boost.round import growth, sampling
from sapwood.boost.round.callback import Round, record, stops
from sapwood.boost.round.evaluation import (
    EvalRows,
    EvalSet,
    HeldOutRows,
    measure,
    start_scores,
)
from sapwood.boost.round.grown import GrownTrees
from sapwood.boost.round.training import Floats, Step, Training
from sapwood.boost.spec import TrainSpec
from sapwood.data.dataset import Dataset
from sapwood.data.dealt import total
from sapwood.data.progress import tell
from sapwood.device import Trainer
from sapwood.errors import DataError, DivergedError, ParameterError
from sapwood.model.booster import BASE_LAST, Booster
from sapwood.model.combinations import Combinations
from sapwood.model.trees import Trees
from sapwood.params import model_params
from sapwood.reduce import Reduce

# validation set -> metric -> a value for each round
History = dict[str, dict[str, list[float]]]
Mask = NDArray[np.bool_]


class Session:
    """One model in training.

    spec: TrainSpec; what was asked for.
    data: Dataset; training rows; their weights include those of classes.
    held: (n_rows) bool, optional; rows of weight 0 in training.
    measured: (n_rows) bool or positions, optional; the rows among them that are
    evaluated.
    sets: mapping of str to Dataset; validation sets.
    """

    def __init__(
        self,
        spec: TrainSpec,
        data: Dataset,
        held: Mask | None = None,
        measured: NDArray[Any] | None = None,
        sets: Mapping[str, Dataset] = MappingProxyType({}),
    ) -> None:
        self.spec = spec
        self.data = data
        self._weight = _weight_without(held, data)
        self.trainer = self._make_trainer()
        self._plan = self._bound_plan()
        self.bounds = self._standardise()
        self.encoded: EncodedTraining | None = None
        if encoded_columns(spec.params, data):
            rows = spec.label, spec.classes, self._weight
            self.encoded = EncodedTraining(
                data, spec.params, self._plan, *rows, self.trainer.scores()
            )
        before = None if spec.init_model is None else spec.init_model.trees
        self.eval_rows: dict[str, EvalRows] = {
            name: EvalSet(
                one,
                self._start_scores(one, before),
                spec.offset,
                spec.n_threads,
                self.encoded,
            )
            for name, one in sets.items()
        }
        if measured is not None:
            self.eval_rows["holdout"] = HeldOutRows(
                data, self.trainer, measured, spec.offset
            )

    def rounds(self, grown: GrownTrees | None = None) -> Iterator[Step]:
        """Train, round after round; ``grown``: trees of an earlier run of this
        training, and a place for new ones.
        """
        params = self.spec.params
        training = self.training(grown)
        loops = {
            "plain": plain.boost,
            "ordered": ordered.boost,
            "dart": dart.boost,
            "forest": forest.boost,
        }
        several = params["boosting"] == "plain" and params["n_parallel_trees"] > 1
        return (forest.parallel if several else loops[params["boosting"]])(
            training, self.spec.rounds
        )

    def training(self, grown: GrownTrees | None = None) -> Training:
        """What a loop trains."""
        params = self.spec.params
        rows = (self.spec.label, self._weight)
        eval_rows = list(self.eval_rows.values())
        data = self.data
        weight = self._weight
        n_live = total(
            data.reduce,
            data.n_rows if weight is None else int(np.count_nonzero(weight)),
        )
        return Training(
            self.trainer,
            params,
            self._plan,
            rows,
            eval_rows,
            data.values,
            self.bounds,
            self.encoded,
            data,
            n_live,
            grown,
        )

    def _bound_plan(self) -> leaf.LeafPlan:
        """The plan of leaves; a loss of whole groups knows the rows of this
        training.
        """
        spec, data, plan = self.spec, self.data, self.spec.leaf_plan
        if not isinstance(spec.objective.custom, objective.GroupLoss):
            return plan
        key = row_keys(data) if spec.objective.name == "yetirank" else None
        loss = spec.objective.custom.bind(
            spec.params, data.group, spec.label, self._weight, key, spec.n_threads
        )
        return replace(plan, objective=replace(spec.objective, custom=loss))

    def measure(self) -> dict[str, dict[str, float]]:
        """Every metric of all evaluation rows, by name."""
        spec = self.spec
        return {
            name: measure(
                rows, spec.metrics, spec.objective, spec.n_threads, spec.offset
            )
            for name, rows in self.eval_rows.items()
        }

    def _make_trainer(self) -> Trainer:
        """A trainer whose scores are set and in which held-out rows weigh nothing; sets
        the base of its model.
        """
        spec, data, goal, model = (
            self.spec,
            self.data,
            self.spec.objective,
            self.spec.init_model,
        )
        label = objective.planes(goal, spec.label, spec.n_outputs)
        trainer = data.device.Trainer(
            data.binned,
            label,
            self._weight,
            goal.core,
            goal.fields,
            spec.n_outputs,
            spec.n_threads,
        )
        used = (
            []
            if model is None
            else np.unique(model.trees.column[model.trees.column >= 0]).tolist()
        )
        growth.configure_splits(
            trainer, spec.params, data.feature_names, data.categories, data.cuts, used
        )
        if data.values is not None:
            trainer.set_table(data.values)
        sampling.prepare(trainer, spec.params, data, spec.classes)
        if model is not None:
            base = np.asarray(model.base)
        else:
            start = spec.params["start"] if data.init_score is None else 0.0
            base = objective.start(
                goal, trainer, start, spec.n_outputs, spec.label, self._weight
            )
            if isinstance(start, str) and spec.offset.any():
                # rounded here, so that the difference of both is exact
                base = base + spec.offset
        self.base = base
        if model is None and data.init_score is None:
            trainer.fill_scores(self._start)
        else:
            trainer.set_scores(
                self._start_scores(data, None if model is None else model.trees)
            )
        return trainer

    @property
    def _start(self) -> Floats:
        """The base as scores of the training have it."""
        return self.base - self.spec.offset if self.spec.offset.any() else self.base

    def _start_scores(self, data: Dataset, trees: Trees | None) -> Floats:
        """Scores of rows before the first new round."""
        return start_scores(
            data, self._start, trees, self.spec.n_threads, self.spec.offset
        )

    def _standardise(self) -> Floats:
        """The bounds of the columns in linear leaves of standard units; empty in raw
        units.
        """
        if self.data.values is None or self.spec.params["linear_units"] == "raw":
            return np.empty(0)
        before = (
            None if self.spec.init_model is None else self.spec.init_model.trees.linear
        )
        return self.trainer.standardise(
            None if before is None else before.linear_bounds
        )


def run(
    spec: TrainSpec,
    rounds: Iterable[Any],
    evaluate: Callable[[Any], dict[str, dict[str, float]]],
    history: History,
    build: Callable[[], Booster] | None,
    reduce: Reduce | None,
    training: tuple[str, ...] = (),
) -> int | None:
    """Train until the rounds end or a callback stops them; the number of rounds to
    keep, None for all.

    ``evaluate`` takes in a round and measures it, ``history`` is filled, ``build``
    makes the booster so far for callbacks. A callback of one holder stops all of them.
    ``training``: validation sets that are the training rows.
    """
    params = MappingProxyType(spec.params)
    for index, step in zip(spec.rounds, rounds, strict=False):
        last = index == spec.rounds[-1]
        view = Round(
            index,
            params,
            spec.metrics,
            evaluate(step),
            last,
            history,
            build,
            training,
            spec.rounds,
        )
        record(history)(view)
        tell(
            "training",
            index + 1,
            spec.rounds[-1] + 1,
            _by_set(view.measured),
            bool(spec.metrics) and spec.metrics[0].higher_is_better,
        )
        if spec.callbacks and total(reduce, stops(spec.callbacks, view)):
            break
    best = [getattr(callback, "best_round", None) for callback in spec.callbacks]
    return min((_whole(rounds) for rounds in best if rounds is not None), default=None)


def _whole(best_round: Any) -> int:
    """A callback's `best_round` as an integer of Python, which a model file can
    hold.
    """
    try:
        return operator.index(best_round)
    except TypeError:
        raise ParameterError(
            f"best_round={best_round!r} of a callback is no integer; give the number of rounds to keep, or None."
        ) from None


def _by_set(measured: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Metrics under one name each, those of the last set, which early stopping watches,
    first.
    """
    sets = list(measured.items())[::-1]
    return {
        f"{name} {metric}": value
        for name, values in sets
        for metric, value in values.items()
    }


def make_booster(
    session: Session,
    trees: Trees,
    best_round: int | None,
    fingerprint: str,
    history: History,
) -> Booster:
    """The model of new trees, after those of the model that the training continues."""
    spec, data, encoded, model = (
        session.spec,
        session.data,
        session.encoded,
        session.spec.init_model,
    )
    trees = trees if encoded is None else trees.with_shared_sets()
    for what, numbers in {
        "the gains of splits": trees.gain,
        "the values of leaves": trees.value,
    }.items():
        if not np.isfinite(numbers).all():
            raise DivergedError(f"{what} are")
    # combinations come by first use
    n_used = max(0, int(trees.column.max(initial=-1)) + 1 - data.n_columns)
    params = dict(model_params(spec.params))
    if spec.offset.any():
        params[BASE_LAST] = True
    return Booster(
        trees if model is None else Trees.concat([model.trees, trees]),
        base=session.base,
        objective=spec.objective.name,
        fields=spec.objective.fields,
        link=spec.objective.link,
        transform=getattr(spec.objective.custom, "transform", None),
        feature_names=data.feature_names[: data.n_columns - len(data.crosses)],
        named=data.named,
        categories=data.categories,
        crosses=data.crosses,
        times=data.times,
        combinations=Combinations.of(
            [] if encoded is None else encoded.combinations[:n_used]
        ),
        params=params,
        classes=None if model is None else model.classes,
        best_round=best_round,
        data_fingerprint=fingerprint,
        device=data.device,
        history=deepcopy(history),
    )


def row_keys(data: Dataset) -> NDArray[np.uint64]:
    """A number of each row's codes and label, whatever its position; equal rows have
    equal numbers.
    """
    assert data.label is not None
    with np.errstate(over="ignore"):
        key = data.label.view(np.uint64).copy()
        for column in range(data.n_columns):
            key = _mixed(
                key
                + np.uint64(0x9E3779B97F4A7C15)
                * (data.binned.codes(column).astype(np.uint64) + np.uint64(1))
            )
    return key


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix` of core/math/hash.h."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def _weight_without(held: Mask | None, data: Dataset) -> Floats | None:
    """The weights of a training in which held-out rows weigh nothing."""
    if held is None:
        return data.weight
    weight = np.where(held, 0.0, 1.0 if data.weight is None else data.weight)
    if not total(data.reduce, int(np.count_nonzero(weight))):
        raise DataError(
            "no row of positive weight is left to train on; check the weights, or hold out fewer rows."
        )
    return weight
