"""THE table of parameters: every name, kind, range, default, doc, and what the peers call it.

In: the mapping a user gave, in our names or in those of XGBoost, LightGBM and CatBoost. Out: every parameter, checked.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from sapwood.errors import ParameterError
from sapwood.params import peers
from sapwood.params.recipes import RECIPES
from sapwood.params.types import (
    FRACTION,
    RATE,
    ByColumn,
    Categorical,
    Choice,
    ChoiceByColumn,
    ClassWeights,
    Device,
    Directions,
    Flag,
    ForcedSplits,
    Groups,
    Integer,
    Jobs,
    Kind,
    Metrics,
    Number,
    ObjectiveType,
    Rate,
    Seed,
    Shares,
    Start,
    Statistics,
    Verbosity,
    either,
    whole,
)


@dataclass(frozen=True)
class Recipe:
    """A method by name."""

    def __str__(self) -> str:
        return either("{" + ", ".join(map(repr, RECIPES)) + "}", (None,))

    def check(self, given: str, value: Any) -> str | None:
        return None if value is None else Choice(tuple(RECIPES)).check(given, value)


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    kind: Kind
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()
    means: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # alias -> what its value is in ours
    model: bool = False  # two values of it can give two models
    estimator: bool = True  # an argument of the estimators; False where they work it out themselves


def _instead(old: Collection[Any], new: Any) -> Callable[[Any], Any]:
    """A value mapping that replaces a peer's special integers and leaves the rest alone."""
    return lambda value: new if whole(value) and value in old else value


def _as(yes: Any, no: Any) -> Callable[[Any], Any]:
    """A value mapping for a peer's switch, which may be 1 or 0, and leaves the rest alone."""
    return lambda value: (yes if value else no) if isinstance(value, Integral | np.bool_) and value in (0, 1) else value


def _half(value: Any) -> Any:
    """Half of a number; anything else is left to the check."""
    return value if isinstance(value, bool) or not isinstance(value, Real) else value / 2


_no_limit = _instead((0, -1), None)  # depth and leaves: XGBoost's 0 and LightGBM's -1

OBJECTIVES = {  # XGBoost's names, LightGBM's, CatBoost's, scikit-learn's, in lower case
    **dict.fromkeys(("reg:squarederror", "reg:linear", "regression", "regression_l2", "l2", "mse"), "squared_error"),
    **dict.fromkeys(("rmse", "mean_squared_error", "squaredloss", "gaussian", "ls"), "squared_error"),
    **dict.fromkeys(("l2_root", "root_mean_squared_error", "multirmse"), "squared_error"),
    **dict.fromkeys(
        ("reg:absoluteerror", "regression_l1", "l1", "mae", "mean_absolute_error", "lad"), "absolute_error"
    ),
    **dict.fromkeys(("reg:quantileerror", "pinball", "multiquantile"), "quantile"),
    **dict.fromkeys(("mean_absolute_percentage_error",), "mape"),
    **dict.fromkeys(("reg:squaredlogerror", "msle"), "squared_log"),
    **dict.fromkeys(("count:poisson",), "poisson"),
    **dict.fromkeys(("reg:gamma",), "gamma"),
    **dict.fromkeys(("reg:tweedie",), "tweedie"),
    **dict.fromkeys(("reg:expectileerror",), "expectile"),
    **dict.fromkeys(("logcosh",), "log_cosh"),
    **dict.fromkeys(("binary:logistic", "binary", "logloss", "log_loss", "binary_logloss", "bernoulli"), "logistic"),
    **dict.fromkeys(("reg:logistic", "crossentropy", "xentropy"), "cross_entropy"),
    **dict.fromkeys(("binary:hinge",), "hinge"),
    **dict.fromkeys(("multi:softprob", "multi:softmax", "multiclass", "multinomial"), "softmax"),
    **dict.fromkeys(("multiclassova", "multiclass_ova", "ova", "ovr", "multiclassonevsall"), "one_vs_all"),
    **dict.fromkeys(("multilogloss",), "multilabel"),
}
_BOOSTING = {"gbdt": "plain", "gbrt": "plain", "gbtree": "plain", "rf": "forest", "random_forest": "forest"}
_POLICIES = {"lossguide": "leafwise", "symmetrictree": "symmetric"}
_SAMPLERS = {"gradient_based": "mvs", "bernoulli": "uniform", "bagging": "uniform", "no": "none"}
_NO_BOOSTING = {"gblinear": "all models are of trees; linear_leaves=True gives them linear leaves."}
_NO_METHODS = {
    "gpu_hist": "training runs on the CPU; choose 'hist'.",
    "approx": "bins are made once, for all trees; choose 'hist', or 'exact' for every value.",
}
_UNLIMITED = "; 0 and -1 are None too"
_positive = Number(0)

TABLE: tuple[Parameter, ...] = (
    Parameter(
        "n_estimators", Integer(1), 100,
        "Rounds of boosting; each grows one tree per output.",
        ("num_boost_round", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round",
         "num_rounds", "nrounds", "iterations", "max_iter", "ntrees"),
    ),
    Parameter(
        "learning_rate", Rate(), 0.1,
        "Factor on the values of every tree: a number, one for each round, or a function of the round (from 0). 'auto' "
        "is CatBoost's formula: higher for more rows, lower for more rounds.",
        ("eta", "shrinkage_rate", "shrinkage", "learn_rate", "lr"),
        model=True,
    ),
    Parameter(
        "recipe", Recipe(), None,
        "A method by name, 'classic' (Friedman's gradient boosting), 'adaboost', 'xgboost', 'lightgbm' or 'catboost': "
        "it sets the parameters that make it up, unless they are given too. None is Sapwood's own defaults.",
    ),
    Parameter(
        "objective", ObjectiveType(Choice(("auto",), OBJECTIVES, more=True)), "auto",
        "Loss to minimise, by name or your own: a function (y, score) -> (gradient, hessian) or an object with a loss. "
        "'auto' is what the estimator's target needs, and squared_error in `sapwood.train`.",
        ("loss", "loss_function", "application", "app", "objective_type"),
        model=True,
    ),
    Parameter(
        "boosting", Choice(("plain", "ordered", "dart", "forest"), _BOOSTING, absent=_NO_BOOSTING), "plain",
        "How trees make a model: 'plain', each on what those before it left; 'ordered', the same, but splits are "
        "judged by rows that the values on their sides have not seen; 'dart', each without some of those before it; "
        "'forest', each on the start alone, unshrunk, all averaged: it needs draws that tell its trees apart.",
        ("boosting_type", "booster", "boost"),
        model=True,
    ),
    Parameter(
        "n_parallel_trees", Integer(1), 1,
        "Trees for each output and round, all on the same gradients, each with its own draw of rows and columns; their "
        "values are divided by their number.",
        ("num_parallel_tree", "n_parallel_tree"),
        model=True,
    ),
    Parameter(
        "n_permutations", Integer(1, 64), 1,
        "Ordered boosting and statistics: random orders of the rows; each round draws the one its trees are grown on. "
        "CatBoost's permutation_count counts one more, from which the values of leaves come.",
        ("permutation_count",),
        {"permutation_count": lambda n: max(1, n - 1) if whole(n) else n},
        model=True,
    ),
    Parameter(
        "has_time", Flag(), False,
        "Ordered boosting and statistics: rows came one after the other, so their own order is the only one, and early "
        "stopping without a validation set holds out the last of them.",
        model=True,
    ),
    Parameter(
        "rate_drop", Number(0, 1), 0.1,
        "Dart: share of the earlier rounds that a round forgets.",
        ("drop_rate",),
        model=True,
    ),
    Parameter(
        "skip_drop", Number(0, 1), 0.5,
        "Dart: share of the rounds that forget nothing.",
        model=True,
    ),
    Parameter(
        "max_drop", Integer(1, also=(None,)), 50,
        "Dart: most rounds forgotten at once; None for no limit.",
        means={"max_drop": lambda most: None if whole(most) and most <= 0 else most},
        model=True,
    ),
    Parameter(
        "one_drop", Flag(), False,
        "Dart: a round that forgets, and has drawn none, forgets one.",
        means={"one_drop": _as(True, False)},
        model=True,
    ),
    Parameter(
        "sample_type", Choice(("uniform", "weighted")), "uniform",
        "Dart: rounds are forgotten alike, or in proportion to their weights.",
        ("uniform_drop",),
        {"uniform_drop": _as("uniform", "weighted")},
        model=True,
    ),
    Parameter(
        "normalize_type", Choice(("tree", "forest", "paper")), "tree",
        "Dart: factors after a round that forgot k others, at learning rate r. 'tree' (XGBoost's default): 1 / (k + r) "
        "on the new trees, k / (k + r) on the forgotten ones; 'forest' (XGBoost's too): 1 / (1 + r) on both; 'paper' "
        "(LightGBM's default): 1 / (k + 1) and k / (k + 1).",
        ("xgboost_dart_mode",),
        {"xgboost_dart_mode": _as("tree", "paper")},
        model=True,
    ),
    Parameter(
        "grow_policy", Choice(("leafwise", "depthwise", "symmetric"), _POLICIES, more=True), "leafwise",
        "Order in which nodes are split: best first, level by level, or one split for a whole level.",
        ("growing_strategy",),
        model=True,
    ),
    Parameter(
        "multi_strategy", Choice(("one_tree_per_output", "multi_output_tree")), "one_tree_per_output",
        "Where a row has several scores (classes, columns of labels): a round grows a tree for each of them, or trees "
        "with the same splits for all, chosen by the sum of their scores: CatBoost's and XGBoost's trees whose leaves "
        "hold a vector; they are counted once for each score. Columns of labels then weigh by their variances. "
        "recipe='catboost' has the latter.",
        model=True,
    ),
    Parameter(
        "max_leaves", Integer(2, also=("auto", None), note=_UNLIMITED), "auto",
        "Most leaves of a tree; None for no limit; 'auto' is 31 for leafwise, no limit for the others or where "
        "max_depth is set.",
        ("num_leaves", "num_leaf", "max_leaf", "max_leaf_nodes"),
        dict.fromkeys(("max_leaves", "num_leaves", "num_leaf", "max_leaf", "max_leaf_nodes"), _no_limit),
        model=True,
    ),
    Parameter(
        "max_depth", Integer(1, also=("auto", None), note=_UNLIMITED), "auto",
        "Most splits from the root to a leaf; None for no limit; 'auto' is 6 for depthwise and symmetric, no limit for "
        "leafwise or where max_leaves is set. Symmetric trees need a depth, at most 16.",
        ("depth",),
        {"max_depth": _no_limit, "depth": _no_limit},
        model=True,
    ),
    Parameter(
        "tree_method", Choice(("hist", "exact"), {"auto": "hist"}, absent=_NO_METHODS), "hist",
        "Where a column may be split: between its bins, or ('exact') between any two of its values, of which there may "
        "be any number: slower, and the same model where every value has its bin.",
        model=True,
    ),
    Parameter(
        "max_bins", Integer(2, 65535), 255,
        "Most bins of a column, besides the one for missing values; 255 is the most that fits one byte a value.",
        ("max_bin", "border_count"),
        {"border_count": lambda borders: borders + 1 if whole(borders) else borders},  # b borders part b + 1 bins
        model=True,
    ),
    Parameter(
        "min_samples_bin", Integer(1), 32,
        "Least rows of a bin, on average, where a column has more than max_bins different values: small data gets "
        "fewer bins (128 at least), which is faster and no less accurate.",
        ("min_data_in_bin",),
        model=True,
    ),
    Parameter(
        "categorical_features", Categorical(), "auto",
        "Columns of categories: 'auto', those of text and of categorical types; or names, positions or a mask of "
        "columns, which may also hold integers; None for none, so that anything but numbers is refused.",
        ("categorical_feature", "cat_feature", "categorical_column", "cat_column", "cat_features",
         "enable_categorical"),
        means={"enable_categorical": _as("auto", None)},
    ),
    Parameter(
        "zero_as_missing", Flag(), False,
        "Whether zeros are missing values, those that a sparse table does not store among them. A category 0 is a name "
        "and stays one.",
        model=True,
    ),
    Parameter(
        "min_child_weight", _positive, 1.0,
        "Least sum of hessians in a leaf.",
        ("min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian"),
        model=True,
    ),
    Parameter(
        "min_samples_leaf", Integer(1, also=("auto",)), "auto",
        "Least rows in a leaf; a weight counts as that many rows. 'auto' is 1, but for losses whose leaves are "
        "quantiles 4 over the thinner tail: 8 for absolute_error, 40 for a quantile_alpha of 0.9; 20 for poisson and "
        "mape, 10 for gamma.",
        ("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples"),
        dict.fromkeys(("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples"), _instead((0,), 1)),
        model=True,
    ),
    Parameter(
        "reg_lambda", _positive, 1.0,
        "L2 penalty on leaf values.",
        ("lambda", "lambda_l2", "l2_leaf_reg", "l2_regularization"),
        model=True,
    ),
    Parameter(
        "reg_alpha", _positive, 0.0,
        "L1 penalty on leaf values.",
        ("lambda_l1", "l1_regularization"),
        model=True,
    ),
    Parameter(
        "min_split_gain", _positive, 0.0,
        "Least fall of the penalised loss that is worth a split. The peers count it twice, so their gamma, "
        "min_split_loss and min_gain_to_split are halved.",
        ("gamma", "min_split_loss", "min_gain_to_split"),
        dict.fromkeys(("gamma", "min_split_loss", "min_gain_to_split"), _half),
        model=True,
    ),
    Parameter(
        "score_function", Choice(("l2", "cosine"), {"newtonl2": "l2", "newtoncosine": "cosine"}), "l2",
        "What splits are compared by: the fall of the penalised loss, or the cosine between the negative gradients and "
        "the values of the leaves. CatBoost's own take no curvature: hessian='none'; its NewtonL2 and NewtonCosine do.",
        model=True,
    ),
    Parameter(
        "random_strength", _positive, 0.0,
        "Luck in the choice between columns: a normal deviate of this many times the gradients' deviation is added to "
        "each one's best score (of l2: to its square root). It fades as rounds times learning_rate exceed the "
        "logarithm of the number of rows.",
        model=True,
    ),
    Parameter(
        "feature_weights", ByColumn(), None,
        "Factors on the gains of columns when splits are compared: a dict by name or position, or one for each column. "
        "0 is never split.",
        ("feature_contri", "feature_contrib", "fc", "fp", "feature_penalty"),
        model=True,
    ),
    Parameter(
        "first_use_penalties", ByColumn(), None,
        "What the first split of a column in the model costs, in units of the gain (of the score, for cosine): as "
        "feature_weights are given.",
        ("first_feature_use_penalties", "cegb_penalty_feature_coupled"),
        model=True,
    ),
    Parameter(
        "pruning", Choice(("pre", "post")), "pre",
        "When min_split_gain is asked for: 'pre', before a split, which ends the branch there; 'post', once the tree "
        "stands, from the leaves up: a split stays if one below it is worth it (XGBoost's exact trees).",
        model=True,
    ),
    Parameter(
        "max_delta_step", _positive, 0.0,
        "Largest leaf value before the learning rate; 0 for no limit.",
        ("max_tree_output", "max_leaf_output"),
        model=True,
    ),
    Parameter(
        "path_smooth", Number(0, also=("auto",)), "auto",
        "Draws a leaf's value towards its parent's: a leaf of as many rows as this lies half-way. 'auto' is 40 for "
        "logistic loss, else 0.",
        model=True,
    ),
    Parameter(
        "linear_leaves", Flag(), False,
        "Leaves that are linear in the columns of their branch, by a ridge, from the second round on; rows with a "
        "missing or infinite value there get the leaf's constant value. Keeps the values of the table, 4 or 8 bytes "
        "each, beside its bins.",
        ("linear_tree", "linear_trees"),
        model=True,
    ),
    Parameter(
        "linear_lambda", _positive, 0.0,
        "L2 penalty on the coefficients of linear leaves, in the units of their columns.",
        model=True,
    ),
    Parameter(
        "linear_smooth", _positive, 20.0,
        "Draws the coefficients of linear leaves towards 0, whatever their units: by half where the hessians of a leaf "
        "sum to this.",
        model=True,
    ),
    Parameter(
        "start", Start(), "auto",
        "Score before the first tree: a number, one for each output, or 'auto', the constant that minimises the loss.",
        model=True,
    ),
    Parameter(
        "hessian", Choice(("auto", "none")), "auto",
        "Curvature in the choice of splits: that of the loss, or 'none', which fits the negative gradient by least "
        "squares.",
        model=True,
    ),
    Parameter(
        "leaf_estimation", Choice(("auto", "newton", "gradient", "exact", "sign", "joint")), "auto",
        "Value of a leaf: a Newton step, a gradient step (the mean negative gradient), 'exact' (what minimises the "
        "loss: a median, a quantile, or Newton steps until they end; reg_lambda does not draw medians and quantiles), "
        "'sign' (+1 or -1), or 'joint' (a Newton step of all classes of softmax at once, by the whole hessian, as "
        "CatBoost's; with multi_strategy='multi_output_tree'). 'auto' is exact for absolute_error, quantile, mape, "
        "hinge and, with hessian='none', huber; else newton.",
        ("leaf_estimation_method",),
        model=True,
    ),
    Parameter(
        "leaf_iterations", Integer(1, also=("auto",)), 1,
        "Newton or gradient steps for a leaf's value, each with backtracking; of several, reg_lambda damps "
        "each and is no part of what they minimise. 'auto' is CatBoost's choice: 10 for logistic, cross_entropy and "
        "poisson, else 1, of all classes at once (leaf_estimation 'joint') where trees of softmax share their splits.",
        ("leaf_estimation_iterations",),
        model=True,
    ),
    Parameter(
        "line_search", Choice(("none", "tree")), "none",
        "'tree' multiplies all values of a tree by the one factor that minimises the loss, before the learning rate.",
        model=True,
    ),
    Parameter(
        "ccp_alpha", _positive, 0.0,
        "Cost-complexity pruning: of every tree the links that take off no more than this, by row and added leaf.",
        model=True,
    ),
    Parameter(
        "prune_by_validation", Flag(), False,
        "Take back the splits of every tree that do not lower the loss of the (last) validation rows.",
        model=True,
    ),
    Parameter(
        "subsample", FRACTION, 1.0,
        "Share of the rows drawn, without replacement, for each round.",
        ("bagging_fraction", "sub_row", "bagging", "sample_rate"),
        model=True,
    ),
    Parameter(
        "sampling", Choice(("uniform", "goss", "mvs", "bayesian", "none"), _SAMPLERS, more=True), "uniform",
        "Who grows the trees of a round: rows drawn alike; 'goss', those with large gradients and some of the others; "
        "'mvs', with probabilities in proportion to gradients; 'bayesian', all with random weights; 'none', all.",
        ("data_sample_strategy", "sampling_method", "bootstrap_type"),
        model=True,
    ),
    Parameter(
        "subsample_freq", Integer(1), 1,
        "Rounds that share a draw of rows (uniform, bayesian). LightGBM's 0, no draw, is for subsample=1 only.",
        ("bagging_freq",),
        dict.fromkeys(("subsample_freq", "bagging_freq"), _instead((0,), 1)),
        model=True,
    ),
    Parameter(
        "subsample_by_class", Shares(), None,
        "Share of the rows of each class (uniform); a class without one has subsample.",
        ("pos_bagging_fraction", "neg_bagging_fraction", "pos_bagging", "neg_bagging", "pos_sub_row", "neg_sub_row",
         "sample_rate_per_class"),
        {**dict.fromkeys(("pos_bagging_fraction", "pos_bagging", "pos_sub_row"), lambda share: {1: share}),
         **dict.fromkeys(("neg_bagging_fraction", "neg_bagging", "neg_sub_row"), lambda share: {0: share}),
         "sample_rate_per_class": lambda shares: dict(enumerate(shares)) if isinstance(shares, list) else shares},
        model=True,
    ),
    Parameter(
        "class_weight", ClassWeights(), None,
        "Factors on the weights of the rows of each class, in training and in metrics: a dict, 1 for classes it leaves "
        "out; 'balanced', so that all classes weigh the same, as in scikit-learn, but counting weights; "
        "'sqrt_balanced', the roots of these. Cuts know nothing of it.",
        ("class_weights", "auto_class_weights", "scale_pos_weight", "is_unbalance", "unbalance", "unbalanced_sets"),
        {"scale_pos_weight": lambda by: None if isinstance(by, Real) and by == 1 else {1: by},
         **dict.fromkeys(("is_unbalance", "unbalance", "unbalanced_sets"), _as("balanced", None))},
        model=True,
    ),
    Parameter(
        "sampling_unit", Choice(("row", "group"), {"object": "row"}), "row",
        "What is drawn (uniform, bayesian): rows, or the groups of the Dataset, whole.",
        ("bagging_by_query",),
        {"bagging_by_query": lambda by: ("group" if by else "row") if isinstance(by, bool) else by},
        model=True,
    ),
    Parameter(
        "top_rate", Number(0, 1, high_open=True), 0.2,
        "Share of the rows, those with the largest gradients, that goss keeps. Its first 1 / learning_rate rounds take "
        "all rows, but in a forest none does.",
        ("goss_alpha",),
        model=True,
    ),
    Parameter(
        "other_rate", FRACTION, 0.1,
        "Share of all rows that goss draws from the rest; these count (1 - top_rate) / other_rate times.",
        ("goss_beta",),
        model=True,
    ),
    Parameter(
        "mvs_reg", Number(0, also=("auto",)), "auto",
        "What mvs adds to squared gradients, so that small ones have their chance; 'auto' is the square of the mean "
        "gradient's size.",
        means={"mvs_reg": lambda reg: "auto" if reg is None else reg},
        model=True,
    ),
    Parameter(
        "bagging_temperature", Number(0, 100), 1.0,
        "Spread of the weights of bayesian: 0 is none, 1 the exponential distribution.",
        model=True,
    ),
    Parameter(
        "colsample_bytree", FRACTION, 1.0,
        "Share of the columns drawn for each tree.",
        ("feature_fraction", "sub_feature"),
        model=True,
    ),
    Parameter(
        "colsample_bylevel", FRACTION, 1.0,
        "Share of the tree's columns drawn for each level.",
        ("rsm",),
        model=True,
    ),
    Parameter(
        "colsample_bynode", FRACTION, 1.0,
        "Share of the level's columns drawn for each node.",
        ("feature_fraction_bynode", "sub_feature_bynode"),
        model=True,
    ),
    Parameter(
        "monotone_constraints", Directions(), None,
        "Columns along which predictions may only rise (1) or fall (-1), all else being equal: a dict by name or "
        "position, or one direction for each column. Missing values are bound by nothing.",
        ("monotonic_cst", "mc", "mono_constraints", "monotone_constraint", "monotonic_constraints"),
        model=True,
    ),
    Parameter(
        "monotone_method", Choice(("basic", "intermediate")), "basic",
        "How leaf values are kept in order: 'basic' parts two sides at the midpoint of their values; 'intermediate' "
        "only asks for order between leaves that a change of one column can lead to, which fits closer and is slower.",
        ("monotone_constraints_method", "monotone_constraining_method", "mc_method"),
        model=True,
    ),
    Parameter(
        "interaction_constraints", Groups(), None,
        "Groups of columns that may meet on a path of a tree, by name or position; a column in no group meets none. "
        "'pairwise' is every pair, 'no_interactions' every column alone.",
        ("interaction_cst",),
        model=True,
    ),
    Parameter(
        "extra_trees", Flag(), False,
        "Extremely randomised trees: of every column and node only one cut is tried, drawn at random.",
        ("extra_tree",),
        model=True,
    ),
    Parameter(
        "category_encoding", ChoiceByColumn(("auto", "partition", "onehot", "ordered", "both")), None,
        "What is made of columns of categories: 'partition', splits by sets of them that are chosen in every node; "
        "'onehot', one category against the rest, however many there are; 'ordered', what labels say of each category, "
        "by the rows before a row in a random order; 'both', sets and that; 'auto', 'ordered' for columns of more than "
        "255 categories, or more than 32 with fewer than 100 rows each, where nothing else that was asked for forbids "
        "it, and 'partition' for others. None is 'auto', with recipe='catboost' 'ordered', with any other recipe "
        "'partition'. A dict says it for some columns, by name or position.",
        model=True,
    ),
    Parameter(
        "statistics", Statistics(("borders", "buckets", "mean", "counter")), None,
        "What 'ordered' and 'both' make of a category, as in OrderedTargetEncoder: a list of kinds, or of pairs (kind, "
        "priors), or a dict of such lists for some columns. None is borders (classes) or mean (numbers), each with the "
        "priors 0, 0.5 and 1, and counter; so it is for combinations, unless a list is for all columns.",
        model=True,
    ),
    Parameter(
        "max_combination", Integer(1, 8), 1,
        "Most columns that are joined to one of categories, for category_encoding 'ordered' and 'both': categories and "
        "numbers above a threshold that met on the paths of trees. 1 joins none.",
        ("max_ctr_complexity",),
        model=True,
    ),
    Parameter(
        "model_size_reg", _positive, 0.5,
        "The gain of a combination of columns that no tree has used yet is multiplied by (1 + its size / the largest "
        "size) ^ -model_size_reg.",
        model=True,
    ),
    Parameter(
        "max_cat_to_onehot", Integer(1), 4,
        "Columns of at most so many categories are split one category against the rest, others by sets of categories.",
        ("one_hot_max_size",),
        {"one_hot_max_size": _instead((0,), 1)},
        model=True,
    ),
    Parameter(
        "max_cat_threshold", Integer(1), 32,
        "Most categories in the smaller of the two sets a split is looked for in.",
        model=True,
    ),
    Parameter(
        "cat_smooth", _positive, 10.0,
        "Categories are ordered by gradient / (hessian + cat_smooth) in every node; one with fewer rows there than "
        "this is in no set, and goes right.",
        model=True,
    ),
    Parameter(
        "cat_l2", _positive, 10.0,
        "Added to reg_lambda in splits by a set of categories, and in the values of leaves right below.",
        model=True,
    ),
    Parameter(
        "min_data_per_group", Integer(1), 100,
        "Least rows by which one set of categories must exceed the last one looked at, and of the other side.",
        model=True,
    ),
    Parameter(
        "forced_splits", ForcedSplits(), None,
        "Splits at the top of every tree: a dict of feature, threshold and, for further splits, left and right, or a "
        "JSON file of it. One that a node's limits or constraints do not admit is left out with those below it.",
        ("forcedsplits_filename", "forced_splits_filename", "forced_splits_file", "forced_split_file", "fs"),
        model=True,
    ),
    Parameter(
        "precision", Choice(("auto", "narrow", "wide")), "auto",
        "Fixed-point width of gradients: 14 bits, 30 bits, or chosen for each round (heavy tails go wide).",
        model=True,
    ),
    Parameter(
        "early_stopping_rounds", Integer(1, also=(None,)), None,
        "Stop after so many rounds without a better validation score, and keep the best; None never stops.",
        ("early_stopping_round", "early_stopping", "n_iter_no_change", "od_wait", "stopping_rounds"),
        {"early_stopping_round": _instead((0, -1), None),  # LightGBM's; scikit-learn's True stops after 10 rounds
         "early_stopping": lambda on: (10 if on else None) if isinstance(on, bool) else _instead((0, -1), None)(on)},
        model=True,
    ),
    Parameter(
        "validation_fraction", Number(0, 1, low_open=True, high_open=True), 0.1,
        "Share of the rows held out for early stopping where no validation set is given.",
        ("eval_fraction", "validation_ratio"),
        model=True,
    ),
    Parameter(
        "eval_metric", Metrics(), None,
        "What to measure on validation rows; early stopping watches the first. None is the objective's own, 'none' "
        "nothing. A callable takes (y, prediction, weight) and returns a float, lower being better unless the tuple "
        "says otherwise.",
        ("metric", "metrics", "metric_types", "custom_metric", "custom_loss"),
    ),
    Parameter(
        "n_jobs", Jobs(), None,
        "Threads; None or -1 for every CPU this process may use, -2 for all but one. Never changes the model.",
        ("nthread", "nthreads", "n_threads", "num_thread", "num_threads", "thread_count"),
        dict.fromkeys(("nthread", "nthreads", "n_threads", "num_thread", "num_threads"), _instead((0,), None)),
    ),
    Parameter(
        "random_state", Seed(), None,
        "Seed of every draw; None is 0, so that a fit repeats.",
        ("seed", "random_seed"),
        model=True,
    ),
    Parameter(
        "verbose", Verbosity(), 0,
        "Print progress every so many rounds; True keeps one line up to date; 0 is silent.",
        ("verbose_eval", "metric_period", "verbosity"),
        {"verbosity": lambda level: int(level > 1) if whole(level) else level},  # up to 1 the peers only warn
    ),
    Parameter(
        "device", Device(), "cpu",
        "Where training runs.",
        ("device_type", "task_type"),
    ),
    Parameter(
        "n_classes", Integer(2, also=(None,)), None,
        "Number of classes of softmax; None for the largest label plus 1, where every class has rows.",
        ("num_class", "num_classes", "classes_count"),
        {"num_class": _instead((1,), None)},  # LightGBM's where there are no classes
        estimator=False,
    ),
)  # fmt: skip

_ROWS = {row.name: row for row in TABLE}
_NAMES = {alias: row for row in TABLE for alias in (row.name, *row.aliases)}

# They came after the first models: one that has them at their defaults keeps the bytes that it had without them.
_LATER = (
    "max_cat_to_onehot", "max_cat_threshold", "cat_smooth", "cat_l2", "min_data_per_group",
    "linear_leaves", "linear_lambda", "linear_smooth", "zero_as_missing", "category_encoding",
    "n_permutations", "has_time", "score_function", "random_strength", "feature_weights", "first_use_penalties",
    "max_combination", "model_size_reg", "statistics", "class_weight", "multi_strategy",
)  # fmt: skip


def defaults() -> dict[str, Any]:
    """Every parameter's default, by its name, in the order of the table."""
    return {row.name: row.default for row in TABLE}


def resolve(given: Mapping[str, Any], *, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Check a mapping of parameters and complete it.

    Parameters
    ----------
    given : mapping of str to object
        Parameters in our names or a peer's. Not changed.
    fields : mapping of str to str, optional
        Names that belong to objectives, and ours for them; their values are passed on as they are.

    Returns
    -------
    dict
        Every parameter of the table in our names and plain Python types, then the fields that were given.

    Raises
    ------
    ParameterError
        For a name that is unknown, ambiguous or given twice, and for a value of the wrong type or range.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(f"params is a {type(given).__name__}; give a dict of names and values.")
    found: dict[str, tuple[str, Any]] = {}
    own: dict[str, Any] = {}
    fields = {} if fields is None else fields
    given = _alpha(_one_seed(_second_order(_watched_first(given))))
    for name, value in _in_parts(given, fields):
        name, value = moved(name, value)
        if name in fields:
            if fields[name] in own:
                raise ParameterError(f"{name}={value!r} gives {fields[name]} a second time; give it once.")
            own[fields[name]] = value
            continue
        if peers.is_default_here(name, value):
            continue
        row = _row(name, fields)
        ours = row.means.get(name, lambda same: same)(value)
        text = f"{name}={value!r}" if ours is value else f"{name}={value!r} ({row.name}={ours!r})"
        checked = row.kind.check(text, ours)
        before = found[row.name][1] if row.name in found else checked
        if isinstance(checked, dict) and isinstance(before, dict) and not set(checked) & set(before):
            checked = before | checked  # of different classes
        elif row.name == "class_weight" and None in (before, checked):
            checked = before if checked is None else checked  # is_unbalance=False beside a weight
        elif before != checked:
            raise ParameterError(f"{found[row.name][0]} and {text} are both {row.name}; give one of them.")
        found[row.name] = text, checked
    complete = {row.name: row.kind.check(row.name, row.default) for row in TABLE}
    checked_all = {name: checked for name, (_, checked) in found.items()}
    complete |= _recipe(checked_all) | checked_all
    for name in ("bagging_freq", "subsample_freq"):
        if whole(given.get(name)) and given[name] == 0 and complete["subsample"] < 1:
            raise ParameterError(
                f"{name}=0 draws no rows, but subsample={complete['subsample']:g}; leave one of them out."
            )
    all_rows = complete["subsample"] == 1 and complete["subsample_by_class"] is None and "subsample" not in found
    for name in ("subsample_freq", "sampling_unit") if all_rows and complete["sampling"] in ("uniform", "none") else ():
        if name in found and found[name][1] != _ROWS[name].default:
            raise ParameterError(
                f"{found[name][0]} says how rows are drawn, but all are taken; set subsample below 1, or leave it out."
            )
    if str(given.get("bootstrap_type")).lower() == "bernoulli" and "subsample" not in found:
        raise ParameterError(
            "bootstrap_type='Bernoulli' draws a share of the rows; say which: CatBoost's is subsample=0.66."
        )
    if complete["subsample"] < 1 and "bagging_fraction" in given and "subsample_freq" not in found:
        warnings.warn(
            f"bagging_fraction={complete['subsample']:g} draws rows for every round; in LightGBM it draws none without "
            "bagging_freq. Say bagging_freq=1 if that is meant, or leave both out.",
            UserWarning,
            stacklevel=4,
        )
    for name in ("max_bins", "min_samples_bin") if complete["tree_method"] == "exact" else ():
        if name in found and found[name][1] != _ROWS[name].default:
            raise ParameterError(f"{found[name][0]} is not for tree_method='exact', which has no bins; leave it out.")
        complete[name] = _ROWS[name].default  # whatever a recipe says
    return complete | own


def _watched_first(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """CatBoost's custom_metric is measured too: in eval_metric, after what early stopping watches."""
    too = [name for name in ("custom_metric", "custom_loss") if name in given]
    if not too:
        return given
    row, rest = _ROWS["eval_metric"], {name: value for name, value in given.items() if name != too[0]}
    name = next((name for name in rest if _NAMES.get(name) is row), row.name)
    first, more = (row.kind.check(f"{name}={one!r}", one) for one in (rest.get(name), given[too[0]]))
    first, more = (one if isinstance(one, list) else [one] for one in (first, more))
    return {**rest, name: [*first, *(one for one in more if one not in (None, "none"))]}


def _second_order(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """CatBoost's NewtonL2 and NewtonCosine choose splits by curvature, which its recipe leaves out."""
    word = given.get("score_function")
    if not (isinstance(word, str) and word.lower().startswith("newton")):
        return given
    if given.get("hessian") == "none":
        raise ParameterError(
            f"score_function={word!r} takes curvature, hessian='none' takes none; leave one of them out."
        )
    return {**given, "hessian": "auto"}


def _one_seed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """LightGBM has a seed for every kind of draw; where all that are given are the same, they are ours."""
    ours = _ROWS["random_state"]
    seeds = {name: value for name, value in given.items() if name in peers.SEEDS and whole(value)}
    main = {name: value for name, value in given.items() if _NAMES.get(name) is ours and value is not None}
    if not seeds or any(value != next(iter(seeds.values())) for value in (*seeds.values(), *main.values())):
        return given
    rest = {name: value for name, value in given.items() if name not in seeds}
    return rest if main else {**rest, ours.name: next(iter(seeds.values()))}


def _alpha(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Alpha, where it can mean but one thing: the L1 penalty of XGBoost, or the level of a loss of the others."""
    goal = next((value for name, value in given.items() if _NAMES.get(name) is _ROWS["objective"]), None)
    if "alpha" not in given or not isinstance(goal, str) or "=" in goal:
        return given
    of_xgboost, ours = ":" in goal, OBJECTIVES.get(goal.lower(), goal.lower())
    has_level = ours in ("quantile", "expectile")
    meant = f"{ours}_alpha" if has_level else "reg_alpha"
    if of_xgboost == has_level or ":" in ours or meant in given:
        return given
    return {meant if name == "alpha" else name: value for name, value in given.items()}


def _in_parts(given: Mapping[str, Any], fields: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """CatBoost has the fields of a loss in its name, "Quantile:alpha=0.9": they are parameters of their own here."""
    objective = _ROWS["objective"]
    for name, value in given.items():
        if not (isinstance(value, str) and "=" in value and _NAMES.get(name) is objective):
            yield name, value
            continue
        head, _, rest = value.partition(":")
        ours = objective.kind.check(f"{name}={value!r}", head)
        yield name, head
        for key, _, text in (part.partition("=") for part in rest.split(";")):
            if f"{key}={text}".lower() in peers.IMPLIED:
                continue
            field = key if key in fields else f"{ours}_{key}"
            if field not in fields:
                own = ", ".join(one for one in fields if one.startswith(f"{ours}_")) or "no field, or is unknown"
                raise ParameterError(f"{name}={value!r} has {key!r}; {ours!r} takes {own}.")
            try:
                levels = [float(one) for one in text.split(",")]
            except ValueError:
                raise ParameterError(f"{name}={value!r} has {text!r} for {field}; give a number.") from None
            yield field, levels if len(levels) > 1 else levels[0]


def _recipe(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a recipe sets. A classic tree, given max_leaves, grows best first to that many, whatever its depth.

    A share of the rows belongs to the recipe's sampler.
    """
    name = found.get("recipe")
    recipe = RECIPES.get(name or "", {})
    left_out = {"max_depth", "grow_policy"} if name in ("classic", "adaboost") and "max_leaves" in found else set()
    left_out |= {"subsample"} if found.get("sampling", recipe.get("sampling")) != recipe.get("sampling") else set()
    return {one: value for one, value in recipe.items() if one not in left_out}


def rates(given: float | Sequence[float] | Callable[[int], float]) -> Callable[[int], float]:
    """The learning rate of a round, whatever form `learning_rate` was given in."""
    if callable(given):
        return lambda index: RATE.check(f"learning_rate({index})={given(index)!r}", given(index))
    if isinstance(given, Sequence):
        return lambda index: given[index]
    return lambda _: given


def moved(name: str, value: Any) -> tuple[str, Any]:
    """A parameter and its value, where a peer has it elsewhere: goss was a way of boosting in LightGBM."""
    is_goss = _NAMES.get(name) is _ROWS["boosting"] and str(value).lower() == "goss"
    return ("sampling", "goss") if is_goss else (name, value)


def names() -> dict[str, str]:
    """Every name of a parameter, the peers' too, and ours for it."""
    return {name: row.name for name, row in _NAMES.items()}


def given_names(given: Mapping[str, Any]) -> set[str]:
    """Our names of the parameters a mapping sets."""
    return {_NAMES[name].name for name in given if name in _NAMES}


def called(name: str, given: Mapping[str, Any]) -> str:
    """One of our parameters as a user gave it: "max_ctr_complexity=3 (max_combination)"."""
    for theirs, value in given.items():
        if _NAMES.get(theirs) is _ROWS[name]:
            return f"{theirs}={value!r}" + ("" if theirs == name else f" ({name})")
    return name


def by_hand(resolved: Mapping[str, Any]) -> set[str]:
    """Names of the parameters that neither the defaults nor the recipe have set as they are."""
    usual = defaults() | RECIPES.get(resolved["recipe"], {})
    return {name for name, value in usual.items() if resolved[name] != value}


def model_params(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the parameters that can change predictions.

    The number of rounds is not among them: the trees themselves say it, and 10 + 10 rounds are 20. Neither is
    `eval_metric`, which may be a function: `best_round` has what it decided. Learning rates that change from round to
    round are in the trees, and a user's objective is known by its name.
    """
    kept = {name: value for name, value in resolved.items() if name not in _ROWS or _ROWS[name].model}
    for name in _LATER:
        if kept[name] == _ROWS[name].default:
            del kept[name]
    if not isinstance(kept.get("learning_rate"), float):
        kept["learning_rate"] = "scheduled"
    return kept


def _row(name: str, fields: Collection[str]) -> Parameter:
    """The row of a name, or the error that helps."""
    if name not in _NAMES:
        raise ParameterError(f"unknown parameter {name!r}; {peers.unknown(str(name), [*_NAMES, *fields])}")
    return _NAMES[name]
