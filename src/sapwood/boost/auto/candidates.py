"""The candidates of an automatic fit: parameters that suit the data, before anything is
trained.

In: facts about the training rows. Out: sets of parameters, each with a name for people.

Most of these numbers were chosen on one half of the benchmark's tables and confirmed on
the other; docs/defaults_evidence.md has the figures, and says which rules no table
confirms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sapwood.boost.auto import cost
from sapwood.boost.auto.cost import MANY_CLASSES
from sapwood.boost.categories.category_encoding import encoded_columns
from sapwood.data.dataset import Dataset
from sapwood.errors import ParameterError

MIN_ROWS = 100  # with fewer, the rows that are held out say nothing: training is plain
MIN_LINEAR_ROWS = 1000  # training rows from which leaves may be linear
MIN_CROSS_ROWS = 400  # training rows from which crosses are tried
# Below this a race is shorter, nothing is joined, "best" has two candidates, and for
# several outputs numbers are only centred.
FEW_ROWS = 2000
# the sum of learning rates of all rounds, for several outputs of few rows
FEW_RATES = 60.0
# training rows from which crosses race without a handicap, and deeper trees do; held
# out less often
MANY_ROWS = 10_000
RATE_ROWS = 5_000, 15_000  # between these the learning rate rises with the rows
SYMMETRIC_RATE = 0.07, 0.1
FAST_RATE = 0.15, 0.25
LEAF_WISE_RATE = 0.03, 0.07
# of `MANY_CLASSES` and more: krkopt 1.001 of the loss in 0.86 of the time
LEAF_WISE_CLASSES_RATE = 0.03, 0.14
# of `MANY_CLASSES` and more: krkopt as good as at 0.1 in less than half of the rounds
CLASSES_RATE = 0.2
# of `MANY_CLASSES` and more
FAST_CLASSES = {"learning_rate": 0.35, "n_estimators": 150}
# rounds, and the sum of learning rates, for which the loss may not fall; the larger of
# both
PATIENCE = 50, 4.0
FAST_PATIENCE = 20
SAMPLES = {"subsample": 0.8, "colsample_bynode": 0.6}
# random sums of the gradients that splits for more outputs than these are searched by
SKETCH = 3
# rows times classes up to which a tree for each of many classes is tried all the same
MAX_OUTPUTS = 400_000
# cells from which one candidate is trained, at a higher rate and for fewer rounds
LARGE = 3_000_000
# rows up to which every row is held out once, by folds
FOLD_ROWS = {"fast": 0, "balanced": 2_000, "best": 2_000}
N_FOLDS = 4  # a power of two: parts of a blend are exact
# rows times classes up to which many classes have as many turns as few
TURN_OUTPUTS = 100_000
# How often rows are held out where there are no folds: below `MANY_ROWS`, and for more
# rows or many classes.
TURNS = {"fast": (1, 1), "balanced": (2, 1), "best": (4, 2)}
# Part of itself by which the loss must fall in a window of rounds; where it falls less,
# more rounds cost too much.
LEAST_FALL = {"fast": 0.01, "balanced": 0.001}
WINDOW = {"fast": 40, "balanced": 100}  # rounds of this window, at least
# part of the loss that a member of the blend must save, for each of its rounds: they
# cost time
LEAST_WORTH = 1e-6
# the sum of learning rates of all rounds, where rounds are limited by their cost
LIMITED_RATES = 6.0
LIMITED_RATE = 0.5  # the highest of these rates
LIMITED_PATIENCE = 10  # rounds for which the loss may not fall there
SMALL_TREES = {
    "grow_policy": "leafwise",
    "max_leaves": 8,
    "learning_rate": CLASSES_RATE,
    "reg_lambda": 5.0,
}
# of tables with more columns than rows: rounds take long
WIDE = {"max_bins": 32, "max_depth": 4, "max_leaves": 16}
HELD = 0.2  # fraction of the rows that is held out where there are no folds
MAX_HELD = 50_000  # rows that are held out at most


@dataclass(frozen=True)
class Facts:
    """What the choice of candidates depends on."""

    n_rows: int  # rows that are trained on, without those held out
    n_cells: int
    n_outputs: int
    n_numbers: int  # columns of numbers
    n_categorical: int  # columns of categories
    n_joinable: int  # columns of more categories than are split one by one
    statistics: bool  # some column has so many categories that statistics encode it
    values: bool  # the values of the table are kept

    @classmethod
    def of(
        cls, data: Dataset, n_rows: int, params: Mapping[str, Any], n_outputs: int
    ) -> "Facts":
        """The facts of a dataset of which `n_rows` are trained on, and of resolved
        parameters.
        """
        n_numbers = data.n_columns - len(data.categories)
        n_joinable = sum(
            known.n_bins > params["max_cat_to_onehot"]
            for known in data.categories.values()
        )
        statistics = bool(encoded_columns(params, data))
        values = data.values is not None
        return cls(
            n_rows,
            n_rows * data.n_columns,
            n_outputs,
            n_numbers,
            len(data.categories),
            n_joinable,
            statistics,
            values,
        )

    @property
    def wide(self) -> bool:
        """Whether there are more columns than rows."""
        return self.n_cells > self.n_rows**2


@dataclass(frozen=True)
class Candidate:
    """Parameters that are tried."""

    name: str
    params: Mapping[str, Any]
    # parameters that it can do without, the first to go first
    optional: tuple[str, ...] = ()

    def plainer(self) -> "Candidate":
        """The same without the first of what it can do without."""
        gone, *rest = self.optional
        params = {name: value for name, value in self.params.items() if name != gone}
        if gone != "linear_leaves":
            return replace(self, params=params, optional=tuple(rest))
        params.pop("linear_units", None)
        return replace(
            self,
            name=self.name.replace(", linear leaves", ""),
            params=params,
            optional=tuple(rest),
        )


@dataclass(frozen=True)
class Plan:
    """What is tried, and how the model is made of it."""

    candidates: tuple[Candidate, ...]
    crosses: bool  # whether crosses of columns are tried
    joins: bool  # whether columns of categories are joined, where that is better
    refit: bool
    deeper: bool = False  # whether the first candidate races against deeper trees
    # part of itself by which the loss must fall in a window of rounds, or training
    # stops
    least_fall: float = 0.0
    window: int = WINDOW["balanced"]
    # part of the loss that a member of the blend must save for each of its rounds
    least_worth: float = 0.0
    # how often rows are held out; what is chosen once is trained again for each further
    # turn
    turns: int = 1
    notes: tuple[str, ...] = ()  # why less is tried than usual, in sentences


def refuse_checkpoint(given: Mapping[str, Any]) -> None:
    """Raise where a checkpoint is to follow several trainings."""
    if given.get("checkpoint") is not None:
        raise ParameterError(
            "checkpoint follows a single training, and an automatic fit makes several; set quality=None for one "
            "training, or leave it out."
        )


def enough(data: Dataset, n_classes: int = 0) -> bool:
    """Whether some rows can be held out: there are enough of positive weight, two
    groups, and a class of two rows.
    """
    counted = slice(None) if data.weight is None else data.weight > 0
    n_rows = data.n_rows if data.weight is None else int(np.count_nonzero(data.weight))
    one_group = data.group is not None and len(np.unique(data.group[counted])) < 2
    return n_rows >= MIN_ROWS and n_rows > n_classes and not one_group


def max_bins(n_rows: int, n_columns: int, default: int) -> int:
    """The bins of a table of this shape."""
    return min(default, WIDE["max_bins"]) if n_columns > n_rows >= MIN_ROWS else default


def plan(facts: Facts, quality: str) -> Plan:
    """What a quality means for data of this kind."""
    linear = facts.values and facts.n_rows >= MIN_LINEAR_ROWS and not facts.statistics
    if cost.has_too_many_classes(facts):
        return limited_plan(facts, quality, linear)
    if facts.n_cells >= LARGE * (1 if quality != "best" else 10):
        return Plan(
            (large(),), crosses=False, joins=False, refit=facts.n_rows < 10 * MAX_HELD
        )  # else few rows were held out
    few = facts.n_rows < FEW_ROWS
    crosses = (
        facts.values
        and facts.n_rows >= MIN_CROSS_ROWS
        and facts.n_numbers > 0
        and not (few and facts.statistics)
    )
    joins = (
        facts.n_joinable > 1 and not few and (facts.statistics or not facts.n_numbers)
    )
    if quality == "fast":
        many = facts.n_outputs >= MANY_CLASSES
        crosses &= facts.n_rows >= MANY_ROWS and not facts.n_categorical and not many
        one = symmetric(facts, linear, FAST_RATE)
        own = {"early_stopping_rounds": FAST_PATIENCE, **(FAST_CLASSES if many else {})}
        one = replace(one, params={**one.params, **own})
        joins &= not facts.n_numbers
        return Plan(
            (one,),
            crosses,
            joins,
            refit=True,
            least_fall=LEAST_FALL["fast"],
            window=WINDOW["fast"],
        )
    one = symmetric(facts, linear)
    other = leaf_wise(facts, linear and facts.n_outputs == 1)
    both = (
        facts.n_outputs < MANY_CLASSES or facts.n_rows * facts.n_outputs <= MAX_OUTPUTS
    )
    if quality == "best":
        one = slower(one, 0.5)
        if facts.n_outputs < MANY_CLASSES:
            other = slower(other, 0.7) if facts.wide else larger(slower(other, 0.7))
        # of several candidates, few rows choose by chance
        several: tuple[Candidate, ...] = (one, other)
        if not few:
            deep = one if facts.wide else deeper(one)
            several = (deep, other, sampled(one))
            # a faster one finds better crosses
            if facts.n_rows >= MANY_ROWS and facts.n_outputs < MANY_CLASSES:
                several = (symmetric(facts, linear), other, deep, sampled(one))
        return Plan(
            several if both else (several[0], *several[2:]),
            crosses,
            joins,
            refit=True,
            turns=turns(facts, quality),
        )
    if facts.n_outputs == 1 and facts.n_rows >= RATE_ROWS[1] and not facts.statistics:
        other = larger(slower(other, 0.7))
    fall = LEAST_FALL["balanced"]
    depth = facts.n_outputs == 1 and facts.n_rows >= MANY_ROWS
    return Plan(
        (one, other) if both else (one,),
        crosses,
        joins,
        refit=True,
        deeper=depth,
        least_fall=fall,
        least_worth=LEAST_WORTH,
        turns=turns(facts, quality),
    )


def limited_plan(facts: Facts, quality: str, linear: bool) -> Plan:
    """What is tried where rounds of many classes take too long for so few rows: a few
    rounds of one candidate or two.

    Trees of vectors have too few leaves to tell many classes apart in so few rounds. A
    tree for each class only tells this class from the others. Held-out rows say which
    candidate is better, or how both are joined.
    """
    few = facts.n_rows < cost.VERY_FEW_A_CLASS * facts.n_outputs
    candidate = symmetric(facts, linear and not few)
    own = limited_rounds(facts, quality)
    rounds = own["n_estimators"]
    candidate = replace(
        candidate,
        params={**candidate.params, **own, "early_stopping_rounds": LIMITED_PATIENCE},
    )
    several = (small(candidate) if few else candidate, *small_trees(facts, quality))
    tried = "one candidate was" if len(several) == 1 else "two candidates were"
    note = (
        f"A round takes long, since {facts.n_outputs:,} outputs x {facts.n_rows:,} training rows are many scores: only "
        f"{tried} tried, without crosses, for at most {rounds:,} rounds."
    )
    return Plan(several, crosses=False, joins=False, refit=True, notes=(note,))


def small_trees(facts: Facts, quality: str) -> tuple[Candidate, ...]:
    """A small tree for each class, for as many rounds as the budget holds; nothing
    where these are too few.
    """
    n_columns = facts.n_cells // facts.n_rows
    rounds = cost.affordable_tree_rounds(facts, n_columns, quality)
    if quality == "fast" or rounds < cost.MIN_TREE_ROUNDS:
        return ()
    params = {
        **SMALL_TREES,
        "n_estimators": rounds,
        "early_stopping_rounds": LIMITED_PATIENCE,
    }
    return (_candidate("small leaf-wise trees", params, False, ("max_leaves",)),)


def limited_rounds(shape: cost.Shape, quality: str) -> dict[str, Any]:
    """How many rounds are within the budget of a quality, and a learning rate for so
    few.
    """
    rounds = cost.affordable_rounds(shape, quality)
    eta = min(LIMITED_RATE, max(CLASSES_RATE, LIMITED_RATES / rounds))
    return {"n_estimators": rounds, "learning_rate": eta}


def limited_params(shape: cost.Shape, quality: str) -> dict[str, Any]:
    """Parameters of a plain training where rounds of many classes take too long;
    nothing where they do not.
    """
    if not cost.has_too_many_classes(shape):
        return {}
    trees = {
        "grow_policy": "symmetric",
        "max_depth": WIDE["max_depth"],
        "min_child_weight": 0.0,
    }
    outputs = {"multi_strategy": "multi_output_tree", "sketch_outputs": SKETCH}
    return {**trees, **outputs, **limited_rounds(shape, quality)}


def turns(facts: Facts, quality: str) -> int:
    """How often rows are held out: more often where there are few of them, and few
    classes.
    """
    few, many = TURNS[quality]
    cheap = (
        facts.n_outputs < MANY_CLASSES or facts.n_rows * facts.n_outputs <= TURN_OUTPUTS
    )
    return few if facts.n_rows < MANY_ROWS and cheap else many


def fraction(n_rows: int) -> float:
    """The fraction of the rows that is held out."""
    return min(HELD, MAX_HELD / n_rows)


def rate(n_rows: int, small: float, large: float) -> float:
    """A learning rate that rises linearly with the rows, from `small` to `large`."""
    at = (n_rows - RATE_ROWS[0]) / (RATE_ROWS[1] - RATE_ROWS[0])
    return round(small + (large - small) * min(1.0, max(0.0, at)), 6)


def patience(eta: float) -> int:
    """The rounds for which the loss may not fall, at a learning rate."""
    return max(PATIENCE[0], round(PATIENCE[1] / eta))


def few_rounds(facts: Facts, params: Mapping[str, Any]) -> int:
    """The most rounds; for classes of few rows only as many as make up a sum of
    learning rates.

    Where labels have little noise, the loss of few rows falls for thousands of rounds,
    since scores grow, and every fold takes all of them. A factor on the scores does the
    same (`confidence`).
    """
    most: int = params["n_estimators"]
    few = facts.n_outputs > 1 and facts.n_rows < FEW_ROWS
    return min(most, round(FEW_RATES / params["learning_rate"])) if few else most


def leaf_wise(facts: Facts, linear: bool) -> Candidate:
    """Trees that grow at the best leaf, from samples of rows and columns."""
    many = facts.n_outputs >= MANY_CLASSES
    params = {
        "grow_policy": "leafwise",
        "learning_rate": (
            eta := rate(
                facts.n_rows, *(LEAF_WISE_CLASSES_RATE if many else LEAF_WISE_RATE)
            )
        ),
        "n_estimators": 4000,
        "early_stopping_rounds": patience(eta),
        **SAMPLES,
    }
    if facts.n_outputs > 1:
        params |= {"min_child_weight": 1e-3}
    if facts.wide:
        params |= {"max_leaves": WIDE["max_leaves"]}
    params["n_estimators"] = few_rounds(facts, params)
    return _candidate("leaf-wise trees", params, linear, tuple(SAMPLES))


def symmetric(
    facts: Facts, linear: bool, rates: tuple[float, float] = SYMMETRIC_RATE
) -> Candidate:
    """Trees with one split a level, from all rows and columns."""
    params: dict[str, Any] = {
        "grow_policy": "symmetric",
        "max_depth": WIDE["max_depth"] if facts.wide else 6,
        "learning_rate": (eta := rate(facts.n_rows, *rates)),
        "n_estimators": 4000,
        "early_stopping_rounds": patience(eta),
    }
    if facts.n_outputs > 1:
        params |= {
            "multi_strategy": "multi_output_tree",
            "min_child_weight": 0.0,
            "n_estimators": 2000,
        }
        params |= {"sketch_outputs": SKETCH} if facts.n_outputs > SKETCH else {}
    if facts.n_outputs >= MANY_CLASSES:
        eta = max(eta, CLASSES_RATE)
        params |= {"learning_rate": eta, "early_stopping_rounds": patience(eta)}
    params["n_estimators"] = few_rounds(facts, params)
    return _candidate(
        "symmetric trees", params, linear, ("multi_strategy",), ("sketch_outputs",)
    )


def deeper(candidate: Candidate) -> Candidate:
    """The same with deeper trees."""
    return replace(
        candidate,
        name=f"deep {candidate.name}",
        params={**candidate.params, "max_depth": 8},
    )


def small(candidate: Candidate) -> Candidate:
    """The same with small trees."""
    limit = (
        "max_depth" if candidate.params["grow_policy"] == "symmetric" else "max_leaves"
    )
    size = candidate.params.get(limit)
    if size is not None and size <= WIDE[limit]:
        return candidate
    return replace(
        candidate,
        name=f"small {candidate.name}",
        params={**candidate.params, limit: WIDE[limit]},
    )


def sampled(candidate: Candidate) -> Candidate:
    """The same from samples of rows and columns."""
    params = {**candidate.params, **SAMPLES}
    return replace(
        candidate,
        name=f"sampled {candidate.name}",
        params=params,
        optional=(*candidate.optional, *SAMPLES),
    )


def slower(candidate: Candidate, part: float) -> Candidate:
    """The same at a part of the learning rate, for up to twice the rounds."""
    eta = part * candidate.params["learning_rate"]
    most = 2 * candidate.params["n_estimators"]
    own = {
        "learning_rate": eta,
        "n_estimators": most,
        "early_stopping_rounds": patience(eta),
    }
    return replace(candidate, params={**candidate.params, **own})


def larger(candidate: Candidate) -> Candidate:
    """The same with trees of more leaves."""
    return replace(
        candidate,
        name=f"large {candidate.name}",
        params={**candidate.params, "max_leaves": 63},
    )


def crossed(candidate: Candidate, n: int) -> Candidate:
    """The same, for data with so many crosses."""
    return replace(candidate, name=f"{candidate.name}, {n} crosses")


def joined(candidate: Candidate) -> Candidate:
    """The same, with statistics of all categories, and up to three columns joined into
    one.
    """
    own = {"category_encoding": "ordered", "max_combination": 3, "model_size_reg": 0.0}
    return replace(
        candidate,
        name=f"{candidate.name}, joined categories",
        params={**candidate.params, **own},
    )


def large() -> Candidate:
    """What is trained on data so large that it is trained once."""
    params = {
        "grow_policy": "leafwise",
        "learning_rate": 0.1,
        "n_estimators": 300,
        "early_stopping_rounds": 30,
    }
    params |= {"max_leaves": 63, "colsample_bynode": 0.6}
    return _candidate("leaf-wise trees", params, False, ("colsample_bynode",))


def _candidate(
    name: str,
    params: dict[str, Any],
    linear: bool,
    optional: tuple[str, ...],
    first: tuple[str, ...] = (),
) -> Candidate:
    """A candidate, with linear leaves or without. It can do without `first`, then
    without these and `optional`.
    """
    if not linear:
        return Candidate(name, params, first + optional)
    params = params | {"linear_leaves": True, "linear_units": "standard"}
    return Candidate(
        f"{name}, linear leaves", params, (*first, "linear_leaves", *optional)
    )
