"""What goes with what: one table of the combinations that raise, which the check, the
docs and the tests read.

In: what is known of a training. Out: nothing, or an error that says what to do.

A row raises where both of its conditions hold; with `needs`, where the first holds
without the second.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost.categories.category_encoding import encoded_columns
from sapwood.boost.leaves import leaf
from sapwood.boost.round.sampling import SAMPLERS
from sapwood.data.bin_arguments import BY_RECIPE, DERIVED
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.device import host
from sapwood.errors import DataError, ParameterError, warn
from sapwood.model.consistency import COUPLED
from sapwood.objective import Custom, GroupLoss, Objective
from sapwood.params import by_hand, called, constraints, defaults, given_names
from sapwood.params.recipes import RECIPES


@dataclass(frozen=True)
class Facts:
    """What is known of a training when it is checked."""

    params: Mapping[str, Any]
    given: Mapping[str, Any]  # what the user wrote
    objective: Objective
    init_model: Any  # a Booster, or None
    data: Dataset
    n_outputs: int
    watched: bool  # there are validation sets, or folds
    in_cv: bool
    metrics: tuple[Any, ...] = ()

    @cached_property
    def by_hand(self) -> set[str]:
        """Parameters that neither the defaults nor the recipe have set."""
        return by_hand(self.params)

    @property
    def encoded(self) -> list[int]:
        """Columns of categories that become ordered statistics."""
        return encoded_columns(self.params, self.data)

    @property
    def label(self) -> NDArray[np.float64]:
        """The labels, which are there: the data was checked."""
        assert self.data.label is not None
        return self.data.label

    @cached_property
    def categories(self) -> list[str]:
        """Names of the columns of categories."""
        return [self.data.feature_names[column] for column in self.data.categories]

    @cached_property
    def crossed(self) -> set[str]:
        """Names of crosses, and of the columns that they are made of."""
        names = self.data.feature_names
        crosses = self.data.crosses
        sources = {
            names[column] for _, *columns in crosses.sources() for column in columns
        }
        return sources.union(names[len(names) - len(crosses) :])

    @cached_property
    def leaf_method(self) -> str:
        """How leaf values are found."""
        return leaf.method(self.objective, self.params)

    @property
    def of_recipe(self) -> str:
        """Says so where it is the recipe that has score_function='cosine'."""
        cosine = (
            RECIPES.get(self.params["recipe"], {}).get("score_function") == "cosine"
        )
        return f" (that of recipe={self.params['recipe']!r})" if cosine else ""


@dataclass(frozen=True)
class Condition:
    """Something that may hold of a training; what `holds` returns is {found} in a
    message.
    """

    label: str
    holds: Callable[[Facts], Any]
    name: str = ""  # of the parameter, where it is about one

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(
            f"{self.label} or {other.label}", lambda f: self.holds(f) or other.holds(f)
        )


@dataclass(frozen=True)
class Row:
    """A refusal; {name}, {value} and {called} in its message are those of the parameter
    that is to blame.
    """

    this: Condition
    that: Condition
    message: str
    needs: bool = False
    error: type[Exception] = ParameterError

    def refuse(self, facts: Facts) -> None:
        """Raise where the training has this combination."""
        if (
            not self.this.holds(facts)
            or bool(found := self.that.holds(facts)) == self.needs
        ):
            return
        name = (self.this if self.needs else self.that).name
        about = {
            "name": name,
            "value": facts.params.get(name),
            "called": called(name, facts.given) if name else "",
        }
        raise self.error(
            self.message.format(f=facts, p=facts.params, found=found, **about)
        )


def check(facts: Facts) -> None:
    """Raise the first refusal of a training."""
    for row in TABLE:
        row.refuse(facts)


def allows(this: Condition, facts: Facts, but: tuple[Condition, ...] = ()) -> bool:
    """Whether nothing that was asked for excludes what may be chosen freely; ``but``:
    what is not looked at.
    """
    return not any(
        row.that.holds(facts)
        for row in TABLE
        if row.this is this and row.that not in but
    )


def check_bins(
    params: Mapping[str, Any], given: Mapping[str, Any], data: Dataset
) -> None:
    """Raise where the data was made with other bins than were given; warn where a
    recipe has others.
    """
    asked = given_names(given)
    recipe = f"recipe={params['recipe']!r}"
    for name in (*BIN_PARAMS, "device"):
        has = data.device.name if name == "device" else getattr(data, name)
        if name in asked and params[name] != has:
            if data.store is not None and name in (
                "tree_method",
                "linear_leaves",
                "device",
            ):
                raise ParameterError(
                    f"{called(name, given)} needs all rows in memory, and those of this data are read "
                    f"from a store; leave it out, or make the data with Dataset(X, label=y)."
                )
            raise ParameterError(
                f"{called(name, given)}, but the data was made with {has!r}; give it to Dataset too."
            )
    for name in DERIVED:
        made_as = data.derived_as
        same = made_as is not None and made_as[name] == params[name]
        if name in asked and params[name] != "auto" and not same:
            has = "other columns" if made_as is None else repr(made_as[name])
            raise ParameterError(
                f"{called(name, given)}, but the data was made with {has}; give it to Dataset instead."
            )
    wanted, made = (
        {name: of[name] for name in BY_RECIPE} for of in (params, vars(data))
    )
    others = [
        name for name in BY_RECIPE if name not in asked and wanted[name] != made[name]
    ]
    if params["recipe"] is None or not others or data.tree_method == "exact":
        return
    if _width(data, **wanted) != _width(data, **made):
        theirs, ours = (
            " and ".join(f"{name}={bins[name]}" for name in others)
            for bins in (wanted, made)
        )
        warn(
            f"{recipe} has {theirs}, but the data was made with {ours}; make it with Dataset(..., {recipe}), or give "
            f"{ours} here too if that is meant."
        )


def _width(
    data: Dataset, max_bins: int, min_samples_bin: int
) -> tuple[int, int] | None:
    """What the bins of a column depend on (NUMERICS 3); None where every value has its
    own.
    """
    rows = data.n_total
    if rows <= max_bins or len(data.categories) == data.n_columns:
        return None
    if (weight := data.of_all_holders(data.weight)) is not None:
        counts, whole, _ = host.integer_weights(weight)
        rows = int(counts.sum()) if whole else int(np.count_nonzero(counts))
    rows = int(rows * min(1.0, host.SAMPLE_ROWS / data.n_total))
    return max_bins, min(max_bins, max(host.MIN_BIN_BUDGET, rows // min_samples_bin))


def equals(name: str, value: Any) -> Condition:
    """A parameter has a value."""
    return Condition(f"{name}={value!r}", lambda f: f.params[name] == value, name)


def changed(name: str) -> Condition:
    """A parameter has another value than its default."""
    return Condition(name, lambda f: f.params[name] != defaults()[name], name)


def by_user(name: str) -> Condition:
    """A parameter is neither as the defaults nor as the recipe has it."""
    return Condition(name, lambda f: name in f.by_hand, name)


def no(this: Condition, those: str | Condition, message: str) -> list[Row]:
    """Rows: a condition goes with none of the others, which may be parameters that are
    not at their defaults.
    """
    return [
        Row(this, that, message)
        for that in (
            [those] if isinstance(those, Condition) else map(changed, those.split())
        )
    ]


def need(
    those: str | Condition,
    that: Condition,
    message: str,
    error: type[Exception] = ParameterError,
) -> list[Row]:
    """Rows: each of the first conditions, which may be parameters that the user has
    set, needs the second.
    """
    first = [those] if isinstance(those, Condition) else map(by_user, those.split())
    return [Row(this, that, message, True, error) for this in first]


def need_sampler(name: str) -> list[Row]:
    """A parameter that belongs to some samplers."""
    owners = [
        one
        for one, of in SAMPLERS.items()
        if name in of["fields"] or (of["takes_subsample"] and name == "subsample")
    ]
    words = " or ".join(map(repr, owners))
    message = f"{{called}} is for sampling={words}, not for {{p[sampling]!r}}; set that, or leave it out."
    return need(
        changed(name),
        Condition(f"sampling={words}", lambda f: f.params["sampling"] in owners),
        message,
    )


def prunes(facts: Facts) -> bool:
    """Splits are taken back once a tree stands."""
    p = facts.params
    return bool(
        (p["pruning"] == "post" and p["min_split_gain"] > 0)
        or p["ccp_alpha"] > 0
        or p["prune_by_validation"]
    )


def after_growth(facts: Facts) -> bool:
    """Leaf values change once a tree stands, or come from other rows than its
    splits.
    """
    p = facts.params
    steps = p["leaf_iterations"] > 1 or p["line_search"] == "tree" or prunes(facts)
    return bool(steps or p["boosting"] == "ordered" or facts.encoded)


def randomised(facts: Facts) -> bool:
    """Trees that grow on the same gradients differ."""
    p = facts.params
    drawn = {
        "bayesian": p["bagging_temperature"] > 0,
        "goss": p["top_rate"] + p["other_rate"] < 1,
    }
    shares = (
        any(p[name] < 1 for name in ("subsample", *COLSAMPLES))
        or p["subsample_by_class"] is not None
    )
    return bool(shares or drawn.get(p["sampling"]) or p["extra_trees"])


def draws_rows(facts: Facts) -> bool:
    """Rows are drawn, or were asked to be."""
    p = facts.params
    shares = (
        p["subsample"] != 1
        or p["subsample_by_class"] is not None
        or "subsample" in given_names(facts.given)
    )
    return shares or p["sampling"] not in ("uniform", "none")


def split_by_sets(facts: Facts) -> str | None:
    """A column of many categories that is split by sets of them."""
    p = facts.params
    data = facts.data
    words = constraints.encodings(p, data.feature_names)
    for column, known in data.categories.items():
        one_by_one = words[column] == "onehot" or (
            words[column] == "ordered" and column in facts.encoded
        )
        if known.n_bins > p["max_cat_to_onehot"] and not one_by_one:
            return f"{data.feature_names[column]!r} has {known.n_bins}"
    return None


def forbidden_path(facts: Facts) -> str | None:
    """Columns that forced splits put on one path although interaction constraints keep
    them apart.
    """
    names = facts.data.feature_names
    allowed = [
        set(group)
        for group in constraints.groups(facts.params["interaction_constraints"], names)
    ]
    for path in constraints.paths(facts.params["forced_splits"]) if allowed else ():
        if not any({names.index(name) for name in path} <= group for group in allowed):
            return ", ".join(path)
    return None


def named_category(name: str, columns: Callable[[Any], Iterable[str]]) -> Condition:
    """A parameter that names a column of categories."""
    return Condition(
        f"{name} of such a column",
        lambda f: [
            one
            for one in (columns(f.params[name]) if f.params[name] else ())
            if one in f.categories
        ],
        name,
    )


def other_start(facts: Facts) -> str | None:
    """What says where scores start beside `start`; a recipe's own start gives way."""
    if facts.params["start"] in (
        "auto",
        RECIPES.get(facts.params["recipe"], {}).get("start"),
    ):
        return None
    if facts.init_model is not None:
        return "init_model"
    return None if facts.data.init_score is None else "init_score of the data"


def unmeasured(facts: Facts) -> bool:
    """Early stopping has no metric: a user's own objective defines none, and
    eval_metric is not given.
    """
    own = facts.objective.custom
    return (
        STOPPING.holds(facts)
        and own is not None
        and not own.measured
        and facts.params["eval_metric"] is None
    )


def other_leaf(facts: Facts) -> bool:
    """A user's own leaf function would not be called, or its values would be
    changed.
    """
    own = facts.objective.custom
    other = facts.leaf_method != "custom" or facts.params["max_delta_step"] > 0
    return own is not None and own.leaf is not None and other


def given_to(facts: Facts, name: str) -> bool:
    """Whether a loss of groups has been given pairs or positions."""
    return getattr(facts.objective.custom, name, None) is not None


COLSAMPLES = ("colsample_bytree", "colsample_bylevel", "colsample_bynode")
ORDERED, DART, FOREST = (
    equals("boosting", one) for one in ("ordered", "dart", "forest")
)
EXACT = equals("tree_method", "exact")
COSINE = equals("score_function", "cosine")
LINEAR = equals("linear_leaves", True)
JOINT = equals("leaf_estimation", "joint")
FORCED = changed("forced_splits")
NO_METRIC = equals("eval_metric", "none")
# fmt: off
STOPPING = Condition("early_stopping_rounds", lambda f: f.params["early_stopping_rounds"] is not None)
JUDGED = Condition("a validation set or early_stopping_rounds", lambda f: f.watched or STOPPING.holds(f))
CV = Condition("cv", lambda f: f.in_cv)
INIT = Condition("init_model", lambda f: f.init_model is not None)
OWN = Condition("your own objective", lambda f: isinstance(f.objective.custom, Custom))
RANKING = Condition("an objective of ranking", lambda f: isinstance(f.objective.custom, GroupLoss))
RANKED = Condition("an objective or a metric of ranking",
                   lambda f: RANKING.holds(f) or any(one.ranks for one in f.metrics))
BY_PAIRS = Condition("objective='lambdarank', 'pair_logit' or 'yetirank'",
                     lambda f: RANKING.holds(f) and f.objective.name in ("lambdarank", "pair_logit", "yetirank"))
CLASSES = Condition("one class a row",
                    lambda f: f.label.ndim == 1 and f.objective.labels in ("0 or 1", "a class index"))
CATEGORIES = Condition("columns of categories", lambda f: sorted(f.categories))
STATISTICS = Condition("ordered statistics", lambda f: f.encoded)
ENCODED = Condition("category_encoding='ordered' or 'both'",
                    lambda f: {"ordered", "both"}.intersection(constraints.encodings(f.params, f.data.feature_names)))
MULTI = Condition("multi_strategy='multi_output_tree'",
                  lambda f: f.params["multi_strategy"] == "multi_output_tree" and f.n_outputs > 1)
SKETCH = changed("sketch_outputs")
SOFTMAX = Condition("objective='softmax' with multi_strategy='multi_output_tree'",
                    lambda f: (f.objective.name, f.params["multi_strategy"]) == ("softmax", "multi_output_tree"))
BY_GRADIENT = Condition("sampling=" + " or ".join(repr(name) for name, of in SAMPLERS.items() if of["by_gradient"]),
                        lambda f: SAMPLERS[f.params["sampling"]]["by_gradient"])
CROSSES = Condition("crosses of columns", lambda f: sorted(f.crossed))
GPU = Condition("device='cuda'", lambda f: hasattr(f.data.device.Trainer, "runtime"))  # or its emulation
DEALT = Condition("rows dealt to several holders", lambda f: f.data.reduce is not None)
LIMITED = Condition("memory_limit", lambda f: f.data.memory_limit is not None)
SMOOTH = Condition("path_smooth", lambda f: f.params["path_smooth"] not in ("auto", 0), "path_smooth")
NOT_SMOOTH = ("path_smooth={p[path_smooth]:g} needs leaves of one Newton step, plain boosting, no pruning and no "
              "ordered statistics.")

TABLE: list[Row] = [
    # Loops
    *need(FOREST, Condition("trees that differ by their rows, columns or thresholds", randomised),
          "boosting='forest' would grow one tree again and again; set subsample or a colsample below 1, "
          "sampling='bayesian' or extra_trees=True."),
    *no(FOREST, Condition("learning_rate", lambda f: "learning_rate" in f.by_hand and f.params["learning_rate"] != 1),
        "learning_rate={p[learning_rate]} is not for boosting='forest', whose trees are averaged, not shrunk; leave it "
        "out."),
    *need("max_drop normalize_type one_drop rate_drop sample_type skip_drop", DART,
          "{name}={value!r} is for boosting='dart' only; this is boosting={p[boosting]!r}."),
    *no(ORDERED, "n_parallel_trees line_search monotone_constraints interaction_constraints forced_splits extra_trees "
                 "first_use_penalties subsample_by_class sampling_unit",
        "{name}={value!r} is not for boosting='ordered', which judges splits by several models; leave it out, or "
        "choose boosting='plain'."),
    *no(ORDERED, EXACT, "tree_method='exact' is not for boosting='ordered'; choose tree_method='hist'."),
    *no(ORDERED, Condition("objective='adaptive_huber'", lambda f: host.objectives()[f.objective.core]["adaptive"]),
        "objective={f.objective.name!r} adapts to all rows; boosting='ordered' does not."),
    *no(INIT, Condition("boosting other than 'plain'",
                        lambda f: {f.params["boosting"], f.init_model.params.get("boosting", "plain")} != {"plain"}),
        "init_model is for boosting='plain' on both sides: the others change or average earlier rounds. Start from its "
        "scores: Dataset(X, y, init_score=model.predict(X, raw=True)), and add those to predictions."),
    *no(INIT, Condition("another n_parallel_trees",
                        lambda f: f.params["n_parallel_trees"] != f.init_model.n_parallel_trees),
        "n_parallel_trees={p[n_parallel_trees]}, but init_model has {f.init_model.n_parallel_trees} a round."),
    *no(Condition("init_model or init_score", other_start), Condition("start", other_start),
        "start={p[start]} and the {found} both say where scores start; give one of them."),
    # Evaluation
    *no(STOPPING, NO_METRIC, "early_stopping_rounds watches a metric; give an eval_metric other than 'none'."),
    *no(OWN, Condition("early stopping without eval_metric", unmeasured),
        "Early stopping needs eval_metric: your objective {f.objective.name!r} defines no metric."),
    *need(changed("validation_fraction"), STOPPING,
          "validation_fraction={value:g} holds out rows for early stopping only; set early_stopping_rounds too, or "
          "leave it out."),
    *no(STOPPING, Condition("use_best_model=False", lambda f: f.given.get("use_best_model") in (False, 0)),
        "use_best_model=False is not available with early stopping, which keeps the best rounds."),
    *need(Condition("use_best_model", lambda f: f.given.get("use_best_model")), JUDGED,
          "use_best_model=True needs rows to judge by; give valid, or early_stopping_rounds."),
    *need(equals("prune_by_validation", True), JUDGED,
          "prune_by_validation needs rows to judge by; give a validation set or early stopping."),
    *no(CV, NO_METRIC, "cv measures models; give an eval_metric other than 'none'."),
    *no(CV, changed("prune_by_validation"),
        "prune_by_validation in cv would prune by the rows it is measured on; use train instead."),
    # Sampling, and weights of classes
    *need("subsample_freq sampling_unit", Condition("a share of the rows, or random weights", draws_rows),
          "{called} says how rows are drawn, but all are taken; set subsample below 1, or leave it out."),
    *(row for name in sorted({"subsample"}.union(*(of["fields"] for of in SAMPLERS.values())))
      for row in need_sampler(name)),
    *no(BY_GRADIENT, "subsample_freq sampling_unit",
        "{called} needs a draw that does not look at gradients; choose sampling='uniform' or 'bayesian', not "
        "{p[sampling]!r}."),
    *need(Condition("sampling='mvs'",
                    lambda f: BY_GRADIENT.holds(f) and SAMPLERS[f.params["sampling"]]["takes_subsample"]),
          Condition("subsample below 1", lambda f: f.params["subsample"] != 1),
          "sampling={p[sampling]!r} takes a share of the rows; set subsample below 1, such as 0.8."),
    *need(changed("subsample_by_class"),
          Condition("sampling='uniform' with sampling_unit='row'",
                    lambda f: (f.params["sampling"], f.params["sampling_unit"]) == ("uniform", "row")),
          "subsample_by_class draws rows by their class; choose sampling='uniform' and sampling_unit='row'."),
    *need(changed("subsample_by_class"), CLASSES, "subsample_by_class needs labels that are classes; use subsample."),
    *need(equals("sampling_unit", "group"), Condition("groups", lambda f: f.data.group is not None),
          "sampling_unit='group' needs groups; make the data with Dataset(X, label=y, group=...).", DataError),
    *need(changed("class_weight"), CLASSES,
          "{called} needs one class a row; weigh rows by sample_weight (the weight of a Dataset)."),
    *no(Condition("more than two classes", lambda f: f.n_outputs > 2),
        Condition("scale_pos_weight", lambda f: f.given.get("scale_pos_weight", 1) != 1),
        "scale_pos_weight is for two classes, of {f.n_outputs} use class_weight={{class: weight}}."),
    # Splits
    *no(COSINE, "monotone_constraints reg_alpha max_delta_step",
        "{name} is not for score_function='cosine'{f.of_recipe}, which uses reg_lambda only; set "
        "score_function='l2'."),
    *no(EXACT, COSINE, "score_function='cosine' is not for tree_method='exact'; use tree_method='hist'."),
    *no(EXACT, CATEGORIES,
        "tree_method='exact' takes no categorical columns, and {found[0]!r} is one; use 'hist'."),
    *no(CATEGORIES, named_category("monotone_constraints", list),
        "monotone_constraints names {found[0]!r}, whose categories have no order; leave it out, or give it as "
        "numbers."),
    *no(CATEGORIES, named_category("forced_splits", lambda given: [path[-1] for path in constraints.paths(given)]),
        "forced_splits has a threshold for {found[0]!r}, which is categorical; leave it out."),
    *no(CROSSES, Condition("monotone_constraints of such columns",
                           lambda f: sorted(f.crossed.intersection(f.params["monotone_constraints"] or ()))),
        "monotone_constraints names {found[0]!r}, and crosses of columns could break its order; leave one of both "
        "out."),
    *no(CROSSES, "interaction_constraints",
        "interaction_constraints keeps columns apart that crosses of the data join; leave one of them out."),
    *no(EXACT, "extra_trees forced_splits random_strength feature_weights first_use_penalties",
        "{name} is not for tree_method='exact'; use tree_method='hist', if need be with max_bins=65535."),
    *no(Condition("classes that share probabilities", lambda f: f.objective.link in COUPLED),
        changed("monotone_constraints"),
        "monotone_constraints does not hold for the probabilities of objective={p[objective]!r}: what one class gains "
        "another loses; use two classes, or multilabel."),
    *no(FORCED, equals("grow_policy", "symmetric"),
        "forced_splits sets splits of single nodes; grow_policy='symmetric' has one split per level."),
    *no(FORCED, " ".join(COLSAMPLES),
        "forced_splits needs its columns in every tree; {name}={value:g} samples columns. Leave {name} out, or "
        "sample rows with subsample."),
    *no(FORCED, Condition("interaction_constraints between its columns", forbidden_path),
        "forced_splits puts {found} on one path; interaction_constraints do not allow it."),
    # Calibration
    *no(changed("conformal"), Condition("train", lambda f: True),
        "conformal={p[conformal]!r} is for the estimators, which train and calibrate; leave it out here."),
    *no(changed("importance_type"), Condition("train", lambda f: True),
        "importance_type={p[importance_type]!r} is for the estimators; Booster.importance(kind) has every kind."),
    # Ranking
    *need(RANKING, Condition("groups, or pairs of the user",
                             lambda f: f.data.group is not None or given_to(f, "pairs")),
          "objective={f.objective.name!r} ranks the rows of a group; give group, the group of every row.", DataError),
    *need(RANKED, Condition("groups", lambda f: f.data.group is not None or not any(one.ranks for one in f.metrics)),
          "a metric of ranks needs groups; give group, the group of every row, or another eval_metric.", DataError),
    *need("label_gain eval_at", RANKED, "{called} is for ranking; leave it out."),
    *need("ranking_metric", Condition("objective='lambdarank' or 'yetirank'",
                                      lambda f: BY_PAIRS.holds(f) and f.objective.name != "pair_logit"),
          "{called} is for objective='lambdarank' and 'yetirank'; leave it out."),
    *need("sigmoid", BY_PAIRS, "{called} is for objective='lambdarank', 'pair_logit' and 'yetirank'; leave it out."),
    *need("truncation_level ranking_norm",
          Condition("objective='lambdarank'", lambda f: f.objective.name == "lambdarank"),
          "{called} is for objective='lambdarank'; leave it out."),
    *need("noisy_permutations noisy_neighbors noise_decay",
          Condition("objective='yetirank'", lambda f: f.objective.name == "yetirank"),
          "{called} is for objective='yetirank'; leave it out."),
    *need("position_bias_regularization",
          Condition("positions", lambda f: given_to(f, "position")),
          "{called} is for the bias of positions; give position too, or leave it out."),
    *no(Condition("ranking_metric='classic'", lambda f: f.params["ranking_metric"] == "classic"),
        Condition("objective='lambdarank'", lambda f: f.objective.name == "lambdarank"),
        "ranking_metric='classic' is for objective='yetirank'; choose 'ndcg', 'map', 'mrr' or 'err'."),
    *no(RANKING, Condition("exact leaves, several steps, line search, pruning, ordered boosting, statistics",
                           lambda f: f.leaf_method == "exact" or after_growth(f)),
        "objective={f.objective.name!r} is a loss of whole groups: leaves are found by newton, gradient or sign, in "
        "one step, without line search, pruning, ordered boosting or ordered statistics of categories."),
    *no(RANKING, Condition("init_model with position",
                           lambda f: f.init_model is not None and given_to(f, "position")),
        "the bias of positions is not part of init_model; train the model anew."),
    *no(RANKING, Condition("checkpoint with position", lambda f: f.params["checkpoint"] is not None
                           and given_to(f, "position")),
        "the bias of positions is not part of a checkpoint; leave checkpoint out."),
    *no(RANKING, DEALT, "objective={f.objective.name!r} needs whole groups, and rows are dealt to several holders."),
    *no(STATISTICS, RANKING,
        "objective={f.objective.name!r} ranks groups, and there are no ordered statistics of categories for it; set "
        "category_encoding='partition'."),
    # Leaves
    *no(STATISTICS, OWN,
        "objective {f.objective.name!r} is your own, of which there are no ordered statistics of categories; set "
        "category_encoding='partition'."),
    *need(Condition("leaf_iterations", lambda f: f.params["leaf_iterations"] > 1, "leaf_iterations"),
          Condition("leaf_estimation='newton' or 'gradient'", lambda f: f.leaf_method not in leaf.DIRECT),
          "leaf_iterations={value} is for leaf_estimation newton or gradient, not {f.leaf_method!r}."),
    *no(OWN, Condition("exact leaves, several steps, line search, pruning, ordered boosting",
                       lambda f: f.leaf_method == "exact" or after_growth(f)),
        "objective {f.objective.name!r} is your own: its leaves are found by newton, gradient, sign or its own leaf "
        "function, in one step, without line search, pruning, ordered boosting or ordered statistics."),
    *no(OWN, Condition("leaf_estimation and max_delta_step, if it has a leaf function", other_leaf),
        "objective {f.objective.name!r} has a leaf function: leave leaf_estimation and max_delta_step out."),
    *no(SMOOTH, Condition("leaf values that are found after growth",
                          lambda f: f.leaf_method in leaf.DIRECT or after_growth(f)), NOT_SMOOTH),
    *need("linear_lambda linear_smooth linear_units", LINEAR,
          "{name}={value} is for linear_leaves=True; set that too, or leave it out."),
    *need(LINEAR, Condition("leaves of one Newton step", lambda f: f.leaf_method in ("newton", "gradient")),
          "linear_leaves=True needs leaves of one Newton step; those of objective={p[objective]!r} are "
          "{f.leaf_method!r} here. Choose another objective, or leaf_estimation='newton'."),
    *no(ORDERED, LINEAR, "linear_leaves=True is not for boosting='ordered', whose models have values of their own."),
    *no(LINEAR, "leaf_iterations line_search max_delta_step monotone_constraints",
        "{name}={value!r} cannot be kept by linear_leaves=True, whose values vary inside a leaf; leave one of them "
        "out."),
    # Ordered statistics of categories
    *need("n_permutations", ORDERED | ENCODED,
          "{name} is for boosting='ordered' and category_encoding='ordered' or 'both'; leave it out."),
    *need("has_time", ORDERED | ENCODED | STOPPING,
          "{name} is for boosting='ordered', category_encoding='ordered' or 'both', and early stopping; leave it out."),
    *need("max_combination statistics", ENCODED,
          "{called} is for category_encoding='ordered' or 'both', and no column has it; set that (a dict for some "
          "columns; 'auto' has 'ordered' for those of many categories), or leave it out."),
    *need("model_size_reg", Condition("max_combination", lambda f: f.params["max_combination"] > 1),
          "model_size_reg is for combinations; set max_combination to 2 or more, or leave it out."),
    *no(equals("has_time", True), Condition("n_permutations", lambda f: f.params["n_permutations"] > 1),
        "has_time leaves one order; n_permutations={p[n_permutations]} asks for more."),
    *no(STATISTICS, "interaction_constraints first_use_penalties n_parallel_trees line_search pruning "
                    "ccp_alpha prune_by_validation",
        "{name} is not for category_encoding={p[category_encoding]!r}; leave it out, or choose "
        "category_encoding='partition'."),
    *no(STATISTICS, DART | FOREST,
        "category_encoding={p[category_encoding]!r} is for boosting='plain' and 'ordered', not {p[boosting]!r}."),
    *no(STATISTICS, INIT,
        "category_encoding={p[category_encoding]!r} cannot go on from init_model: it knows more of its training rows "
        "than the trees do; choose category_encoding='partition'."),
    *no(STATISTICS, SMOOTH, NOT_SMOOTH),
    *no(STATISTICS, DEALT,
        "category_encoding={p[category_encoding]!r} needs one order of all rows, which are dealt to several holders; "
        "choose category_encoding='partition'."),
    *no(STATISTICS, LIMITED,
        "category_encoding={p[category_encoding]!r} keeps statistics of all rows in memory, and the data has a "
        "memory_limit; choose category_encoding='partition', or open the data without a limit."),
    # Checkpoints
    *no(CV, changed("checkpoint"),
        "checkpoint follows a single training, not those of a cross-validation; leave it out."),
    *need("checkpoint_every", changed("checkpoint"), "{called} is for a checkpoint; set checkpoint to a path too."),
    *no(changed("checkpoint"), Condition("a device that cannot take trees back",
                                         lambda f: not hasattr(f.data.device.Trainer, "restore")),
        "checkpoint={p[checkpoint]!r} needs a device that takes grown trees back; use device='cpu'."),
    *no(DEALT, changed("checkpoint"),
        "checkpoint={p[checkpoint]!r} is for a process that holds all rows; they are dealt to several holders."),
    # A GPU
    *no(GPU, ORDERED | Condition("monotone_method='intermediate'", lambda f: f.params["monotone_constraints"]
                                 and f.params["monotone_method"] == "intermediate"),
        "boosting='ordered' and monotone_method='intermediate' do not run on device={f.data.device.name!r} yet; use "
        "device='cpu'."),
    *no(GPU, Condition("more than 64 groups of interaction_constraints",
                       lambda f: len(f.params["interaction_constraints"] or ()) > 64),
        "device={f.data.device.name!r} takes at most 64 groups of interaction_constraints; use device='cpu'."),
    *no(GPU, Condition("more than 255 bins or categories", lambda f: any(
        n > 255 for column, n in enumerate(f.data.n_bins) if column not in f.encoded)),
        "device={f.data.device.name!r} takes at most 255 bins or categories of a column; set max_bins=255, encode "
        "columns of more categories by category_encoding='ordered', or use device='cpu'."),
    # Rows dealt to several holders
    *no(DEALT, EXACT,
        "tree_method='exact' sorts all rows, which are dealt to several holders; use tree_method='hist'."),
    *no(DEALT, ORDERED,
        "boosting='ordered' needs one order of all rows, which are dealt to several holders; choose boosting='plain'."),
    *no(DEALT, OWN, "objective {f.objective.name!r} is your own, and sees the rows of one holder only; choose one by "
                    "its name."),
    *no(DEALT, Condition("your own metric", lambda f: any(callable(one) for one in np.atleast_1d(
        np.array(f.params["eval_metric"], object)))),
        "eval_metric has a function, which sees the rows of one holder only; choose metrics by their names."),
    # Rows that are streamed under a limit of memory
    *no(LIMITED, ORDERED,
        "boosting='ordered' keeps permutations of all rows in memory, and the data has a memory_limit; choose "
        "boosting='plain', or open the data without a limit."),
    *no(LIMITED, CROSSES,
        "crosses keep further columns in memory, and the data has a memory_limit; leave them out."),
    *no(LIMITED, CV, "cv trains the models of all folds at a time, and the data has a memory_limit; open the data "
                     "without a limit, or use a validation set."),
    *no(LIMITED, RANKING, "objective={f.objective.name!r} keeps whole groups in memory, and the data has a "
                          "memory_limit; open the data without a limit."),
    *no(LIMITED, OWN, "objective {f.objective.name!r} is your own, and gets all rows in memory; choose one by its "
                      "name, or open the data without a memory_limit."),
    # Trees of several outputs
    *need(JOINT, SOFTMAX,
          "leaf_estimation='joint' is for objective='softmax' with multi_strategy='multi_output_tree'; use 'newton'."),
    *no(JOINT, "reg_alpha line_search", "{name}={value!r} is not for leaf_estimation='joint'; use 'newton'."),
    *no(MULTI, "monotone_constraints forced_splits ccp_alpha prune_by_validation",
        "{name} is not for multi_strategy='multi_output_tree', whose tree is that of all outputs; choose "
        "multi_strategy='one_tree_per_output'."),
    *no(MULTI, Condition("pruning", lambda f: f.params["pruning"] == "post" and f.params["min_split_gain"] > 0),
        "pruning='post' is not for multi_strategy='multi_output_tree'; use pruning='pre', or "
        "multi_strategy='one_tree_per_output'."),
    *need(SKETCH, MULTI,
          "sketch_outputs={p[sketch_outputs]} is for multi_strategy='multi_output_tree' and several scores a row."),
    *no(SKETCH, "random_strength hessian",
        "{name}={value!r} is not for sketch_outputs, which searches splits by sums over all scores; leave one out."),
    *no(SKETCH, ORDERED, "sketch_outputs is not for boosting='ordered'; choose boosting='plain'."),
    *no(MULTI, EXACT, "tree_method='exact' is not for multi_strategy='multi_output_tree'; use tree_method='hist', or "
                      "multi_strategy='one_tree_per_output'."),
    *no(MULTI, Condition("category_encoding='partition'", split_by_sets),
        "multi_strategy='multi_output_tree' splits categories one by one or by statistics, and {found} of them; choose "
        "category_encoding='ordered' or 'onehot', or multi_strategy='one_tree_per_output'."),
]
# fmt: on
