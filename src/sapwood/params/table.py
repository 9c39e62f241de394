"""The table of parameters: name, type, range, default, doc, and the peers' names for
each.

In: nothing. Out: `TABLE`, from which parsing, signatures, docs and error messages are
made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from sapwood.params import aliases, types
from sapwood.params.aliases import half, no_limit, replacing, switch
from sapwood.params.recipes import RECIPES
from sapwood.params.types import (
    DEVICES,
    FRACTION,
    Choice,
    Integer,
    Number,
    ParameterType,
    is_integer,
)

MANY_EVENTS = 1000


@dataclass(frozen=True)
class ByEvents:
    """A default of SapwoodSurvival for fewer than `MANY_EVENTS` events in training, and
    for more.
    """

    few: Any
    many: Any


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    type: ParameterType
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()  # the peers' names
    # by alias: the peer's value -> ours
    convert: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    model: bool = True  # it can change the model
    # the estimators take it; False where they derive it from the data
    estimator: bool = True
    # where the estimators have another default than `sapwood.train`
    estimator_default: Any = ...
    ranking: bool = False  # it is for rankings alone
    survival: Any = ...  # where SapwoodSurvival has another default
    distribution: Any = ...  # where SapwoodDistribution has another default


IMPORTANCES = (
    "weight",
    "gain",
    "total_gain",
    "cover",
    "total_cover",
    "cover_rows",
    "total_cover_rows",
    "prediction_values_change",
)
UNLIMITED = "; 0 and -1 are None too"
NOT_NEGATIVE = Number(0)

TABLE: tuple[Parameter, ...] = (
    Parameter(
        "n_estimators",
        Integer(1),
        100,
        "Number of boosting rounds. Each round grows one tree per output.",
        (
            "num_boost_round",
            "num_iterations",
            "num_iteration",
            "n_iter",
            "num_tree",
            "num_trees",
            "num_round",
            "num_rounds",
            "nrounds",
            "iterations",
            "max_iter",
            "ntrees",
        ),
        model=False,
        survival=ByEvents(150, 200),
        distribution=1000,
    ),
    Parameter(
        "learning_rate",
        types.rate,
        0.1,
        "Factor on the leaf values of every tree: a number, a sequence with one number per round, or a function of the "
        "round (counted from 0). 'auto' is CatBoost's formula, which gives a higher rate for more rows and a lower one "
        "for more rounds.",
        ("eta", "shrinkage_rate", "shrinkage", "learn_rate", "lr"),
        survival=0.05,
        distribution=0.2,
    ),
    Parameter(
        "recipe",
        Choice(tuple(RECIPES), or_none=True),
        None,
        "A method by name: 'classic' (Friedman's gradient boosting), 'adaboost', 'xgboost', 'lightgbm' or 'catboost'. "
        "A recipe sets the parameters that define the method; parameters that you give take precedence. None means "
        "Sapwood's own defaults.",
        model=False,
    ),
    Parameter(
        "objective",
        types.ObjectiveType(Choice(("auto",), aliases.OBJECTIVES, more=True)),
        "auto",
        "Loss to minimise: a name, a function (y, score) -> (gradient, hessian), or an object with a loss. 'auto' is "
        "chosen by the estimator from its target; in `sapwood.train` it is squared_error.",
        ("loss", "loss_function", "application", "app", "objective_type"),
        dict.fromkeys(
            ("objective", "loss_function"),
            lambda goal: "auto" if goal is None else goal,
        ),
    ),
    Parameter(
        "boosting",
        Choice(
            ("plain", "ordered", "dart", "forest"),
            aliases.BOOSTING,
            absent=aliases.NO_BOOSTING,
        ),
        "plain",
        "How trees form a model. 'plain': each tree fits what the trees before it left. 'ordered': the same, but a "
        "split is judged by rows that did not contribute to the leaf values it is judged with. 'dart': each tree fits "
        "what a random part of the trees before it left. 'forest': each tree fits the start scores, without shrinkage, "
        "and predictions are averaged; it needs random sampling, or all trees are equal.",
        ("boosting_type", "booster", "boost"),
    ),
    Parameter(
        "n_parallel_trees",
        Integer(1),
        1,
        "Number of trees per output and round. They fit the same gradients, each with its own sample of rows and "
        "columns, and their values are divided by their number.",
        ("num_parallel_tree", "n_parallel_tree"),
    ),
    Parameter(
        "n_permutations",
        Integer(1, 64),
        1,
        "Number of random permutations of the rows for ordered boosting and ordered target statistics; each round "
        "draws one for its trees. CatBoost's permutation_count includes one more, which gives the leaf values.",
        ("permutation_count",),
        {"permutation_count": lambda n: max(1, n - 1) if is_integer(n) else n},
    ),
    Parameter(
        "has_time",
        types.flag,
        False,
        "Whether the rows are in order of time. Ordered boosting and ordered target statistics then use that order as "
        "the only permutation, and early stopping without a validation set holds out the last rows.",
    ),
    Parameter(
        "rate_drop",
        Number(0, 1),
        0.1,
        "Dart: fraction of the earlier rounds that is dropped in a round.",
        ("drop_rate",),
    ),
    Parameter(
        "skip_drop",
        Number(0, 1),
        0.5,
        "Dart: fraction of the rounds that drop nothing.",
    ),
    Parameter(
        "max_drop",
        Integer(1, or_one_of=(None,)),
        50,
        "Dart: maximum number of rounds dropped at once; None means no limit.",
        convert={
            "max_drop": lambda most: None if is_integer(most) and most <= 0 else most
        },
    ),
    Parameter(
        "one_drop",
        types.flag,
        False,
        "Dart: whether a round that may drop others drops at least one.",
        convert={"one_drop": switch(True, False)},
    ),
    Parameter(
        "sample_type",
        Choice(("uniform", "weighted")),
        "uniform",
        "Dart: whether every earlier round is dropped with the same probability ('uniform') or in proportion to its "
        "weight ('weighted').",
        ("uniform_drop",),
        {"uniform_drop": switch("uniform", "weighted")},
    ),
    Parameter(
        "normalize_type",
        Choice(("tree", "forest", "paper")),
        "tree",
        "Dart: factors after a round that dropped k others, at learning rate r. 'tree' (XGBoost's default): 1 / (k + "
        "r) on the new trees, k / (k + r) on the dropped ones. 'forest' (XGBoost's too): 1 / (1 + r) on both. 'paper' "
        "(LightGBM's default): 1 / (k + 1) and k / (k + 1).",
        ("xgboost_dart_mode",),
        {"xgboost_dart_mode": switch("tree", "paper")},
    ),
    Parameter(
        "grow_policy",
        Choice(("leafwise", "depthwise", "symmetric"), aliases.POLICIES, more=True),
        "leafwise",
        "Order in which nodes are split: 'leafwise' (best gain first), 'depthwise' (level by level) or 'symmetric' "
        "(all nodes of a level take the same split).",
        ("growing_strategy",),
    ),
    Parameter(
        "multi_strategy",
        Choice(
            ("one_tree_per_output", "multi_output_tree"),
            {"one_output_per_tree": "one_tree_per_output"},
        ),
        "one_tree_per_output",
        "How trees are grown where a row has several scores (classes, or several label columns). "
        "'one_tree_per_output': a round grows an independent tree for each score. 'multi_output_tree': the trees of a "
        "round share their splits, chosen by the sum of their gains, like trees with vector leaves in CatBoost and "
        "XGBoost. Label columns are then weighted by their variances. They still count as one tree per score. "
        "recipe='catboost' uses the latter.",
    ),
    Parameter(
        "sketch_outputs",
        Integer(1, or_one_of=(None,)),
        None,
        "multi_strategy='multi_output_tree': number of random sums of the gradients that splits are searched by, so "
        "that the search costs the same however many scores there are. Leaf values are those of every score. None, or "
        "as many as there are scores: by the gradients of every score.",
    ),
    Parameter(
        "max_leaves",
        Integer(2, or_one_of=("auto", None), note=UNLIMITED),
        "auto",
        "Maximum number of leaves of a tree; None means no limit. 'auto' is 31 for leafwise trees, and no limit for "
        "other policies or where max_depth is set.",
        ("num_leaves", "num_leaf", "max_leaf", "max_leaf_nodes"),
        dict.fromkeys(
            ("max_leaves", "num_leaves", "num_leaf", "max_leaf", "max_leaf_nodes"),
            no_limit,
        ),
        survival=ByEvents(3, 4),
        distribution=16,
    ),
    Parameter(
        "max_depth",
        Integer(1, or_one_of=("auto", None), note=UNLIMITED),
        "auto",
        "Maximum number of splits from the root to a leaf; None means no limit. 'auto' is 6 for depthwise and "
        "symmetric trees, and no limit for leafwise trees or where max_leaves is set. Symmetric trees need a depth of "
        "at most 16. Estimators have None for 'auto', and 0 or -1 for no limit.",
        ("depth",),
        {"max_depth": no_limit, "depth": no_limit},
        estimator_default=None,
    ),
    Parameter(
        "tree_method",
        Choice(("hist", "exact"), {"auto": "hist"}, absent=aliases.NO_METHODS),
        "hist",
        "Where a column may be split. 'hist': between its bins. 'exact': between any two of its values, however many "
        "there are; this is slower and gives the same model where every value has its own bin.",
    ),
    Parameter(
        "max_bins",
        Integer(2, 65535),
        255,
        "Maximum number of bins of a column, without the bin for missing values. With up to 255 bins a value takes one "
        "byte.",
        ("max_bin", "border_count"),
        # b borders part b + 1 bins
        {
            "border_count": lambda borders: (
                borders + 1 if is_integer(borders) else borders
            )
        },
    ),
    Parameter(
        "min_samples_bin",
        Integer(1),
        32,
        "Minimum average number of rows per bin, for columns with more than max_bins different values. Small data gets "
        "fewer bins (at least 128), which is faster and as accurate.",
        ("min_data_in_bin",),
    ),
    Parameter(
        "categorical_features",
        types.categorical,
        "auto",
        "Categorical columns. 'auto': columns of text and of categorical types. A sequence of names, positions or "
        "booleans: these columns, which may also hold integers. None: there are none, and anything but numbers is an "
        "error.",
        (
            "categorical_feature",
            "cat_feature",
            "categorical_column",
            "cat_column",
            "cat_features",
            "enable_categorical",
        ),
        convert={"enable_categorical": switch("auto", None)},
        model=False,
    ),
    Parameter(
        "date_features",
        types.date_parts,
        "auto",
        "What columns of dates and times become, beside the time that has passed: parts of the calendar, some of "
        "'year', 'month', 'day', 'weekday', 'dayofyear', 'hour' and 'minute'. 'auto' is month, day, weekday and hour, "
        "those of them that differ between rows; None is no part. The model stores it and takes the same columns.",
        model=False,
    ),
    Parameter(
        "text_features",
        types.text_columns,
        "auto",
        "Columns of free text, which become the number of words, frequent words, and what words say of the label. "
        "'auto': columns of text in which most values differ and have four words or more, where categorical_features "
        "is 'auto'. A sequence of names or positions: these columns. None: text is read as categories.",
        model=False,
    ),
    Parameter(
        "embedding_features",
        types.text_columns,
        "auto",
        "Columns of lists of one length, such as embeddings, which become a column for each place of the lists. "
        "'auto': all of them. A sequence of names or positions: these. Lists in any other column are an error.",
        model=False,
    ),
    Parameter(
        "zero_as_missing",
        types.flag,
        False,
        "Whether zeros are missing values, including the zeros that a sparse table does not store. In categorical "
        "columns 0 is a category.",
    ),
    Parameter(
        "min_child_weight",
        NOT_NEGATIVE,
        1.0,
        "Minimum sum of hessians in a leaf. It is compared with the sums of the search: with precision='narrow', the "
        "usual one, a leaf can lie below it by their rounding, some parts in 100,000. With 'wide' no leaf does.",
        (
            "min_sum_hessian_in_leaf",
            "min_sum_hessian_per_leaf",
            "min_sum_hessian",
            "min_hessian",
        ),
        survival=0.0,
        distribution=0.0,
    ),
    Parameter(
        "min_samples_leaf",
        Integer(1, or_one_of=("auto",)),
        "auto",
        "Minimum number of rows in a leaf; a row of weight 2 counts as two rows. 'auto' is 20 for poisson and mape, 10 "
        "for gamma, and 1 for most others. Losses whose leaves are quantiles need 4 rows in the thinner tail: 8 for "
        "absolute_error, 40 for quantile_alpha=0.9.",
        ("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples"),
        dict.fromkeys(
            ("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples"),
            replacing((0,), 1),
        ),
        survival=10,
        distribution=5,
    ),
    Parameter(
        "reg_lambda",
        NOT_NEGATIVE,
        1.0,
        "L2 penalty on leaf values.",
        ("lambda", "lambda_l2", "l2_leaf_reg", "l2_regularization"),
        survival=ByEvents(10.0, 1.0),
    ),
    Parameter(
        "reg_alpha",
        NOT_NEGATIVE,
        0.0,
        "L1 penalty on leaf values.",
        ("lambda_l1", "l1_regularization"),
    ),
    Parameter(
        "min_split_gain",
        NOT_NEGATIVE,
        0.0,
        "Minimum reduction of the penalised loss by a split. The peers' gain is twice this reduction, so their gamma, "
        "min_split_loss and min_gain_to_split are halved.",
        ("gamma", "min_split_loss", "min_gain_to_split"),
        dict.fromkeys(("gamma", "min_split_loss", "min_gain_to_split"), half),
    ),
    Parameter(
        "score_function",
        Choice(("l2", "cosine"), {"newtonl2": "l2", "newtoncosine": "cosine"}),
        "l2",
        "Score by which splits are compared. 'l2': the reduction of the penalised loss. 'cosine': the cosine between "
        "negative gradients and leaf values. CatBoost's L2 and Cosine ignore curvature (set hessian='none'); its "
        "NewtonL2 and NewtonCosine use it.",
    ),
    Parameter(
        "random_strength",
        NOT_NEGATIVE,
        0.0,
        "Random noise on the score of a split, to choose between columns. The best score of each column (for 'l2', its "
        "square root) gets normal noise of this many standard deviations of the gradients. The noise fades once rounds "
        "times learning_rate exceed the logarithm of the number of rows.",
    ),
    Parameter(
        "feature_weights",
        types.number_by_column,
        None,
        "Factors on the gains of columns when splits are compared: a dict by name or position, or one number for each "
        "column. A column of weight 0 is never split.",
        ("feature_contri", "feature_contrib", "fc", "fp", "feature_penalty"),
    ),
    Parameter(
        "first_use_penalties",
        types.number_by_column,
        None,
        "Penalty on the first split of a column in the model, in units of the gain (for 'cosine', of the score). Given "
        "as feature_weights are.",
        ("first_feature_use_penalties", "cegb_penalty_feature_coupled"),
    ),
    Parameter(
        "pruning",
        Choice(("pre", "post")),
        "pre",
        "When min_split_gain is applied. 'pre': before a split, so that the branch ends there. 'post': after the tree "
        "is grown, from the leaves up, so that a weak split stays if a split below it is strong enough (XGBoost's "
        "exact trees).",
    ),
    Parameter(
        "max_delta_step",
        NOT_NEGATIVE,
        0.0,
        "Maximum absolute leaf value before the learning rate; 0 means no limit.",
        ("max_tree_output", "max_leaf_output"),
    ),
    Parameter(
        "path_smooth",
        Number(0, or_one_of=("auto",)),
        "auto",
        "Shrinks a leaf's value towards its parent's; a leaf with this many rows lies half-way. 'auto' is 40 for the "
        "logistic loss and 0 for others.",
    ),
    Parameter(
        "linear_leaves",
        types.flag,
        False,
        "Whether leaves are linear functions of the columns of their branch, fitted by ridge regression from the "
        "second round on. The values of the table are kept beside the bins, 4 or 8 bytes each.",
        ("linear_tree", "linear_trees"),
    ),
    Parameter(
        "linear_lambda",
        Number(0, or_one_of=("auto",)),
        "auto",
        "L2 penalty on the coefficients of linear leaves, in the units of `linear_units`. 'auto' is 1 in standard "
        "units, 0 in raw ones.",
    ),
    Parameter(
        "linear_units",
        Choice(("raw", "standard")),
        "raw",
        "Units of the columns in linear leaves. 'standard': that of a column is its standard deviation, values are "
        "clipped to the means of the outer bins, and a missing value counts as the mean. So no row gets a value far "
        "from those of its leaf. 'raw': the column's own, as in LightGBM; lines do not end, and rows with a missing or "
        "infinite value get the leaf's constant value.",
    ),
    Parameter(
        "linear_smooth",
        NOT_NEGATIVE,
        20.0,
        "Shrinks the coefficients of linear leaves towards 0, independently of their units: by half where the hessians "
        "of a leaf sum to this.",
    ),
    Parameter(
        "start",
        types.start,
        "auto",
        "Raw score before the first tree: a number, one number for each output, or 'auto', the constant that minimises "
        "the loss.",
        ("boost_from_average",),
        {"boost_from_average": lambda on: 0.0 if on is False or on == 0 else "auto"},
    ),
    Parameter(
        "hessian",
        Choice(("auto", "none")),
        "auto",
        "Second derivatives in the choice of splits: 'auto' uses those of the loss, 'none' fits the negative gradient "
        "by least squares.",
    ),
    Parameter(
        "leaf_estimation",
        Choice(("auto", "newton", "gradient", "exact", "sign", "joint")),
        "auto",
        "How leaf values are computed. 'newton': a Newton step. 'gradient': the mean negative gradient. 'exact': the "
        "minimum of the loss, which is a median, a quantile, or the limit of Newton steps; reg_lambda does not shrink "
        "medians and quantiles. 'sign': +1 or -1. 'joint': a Newton step for all classes of softmax at once with the "
        "full hessian, as in CatBoost, for multi_strategy='multi_output_tree'. 'auto' is 'exact' for absolute_error, "
        "quantile, mape, hinge and, with hessian='none', huber; otherwise 'newton'.",
        ("leaf_estimation_method",),
    ),
    Parameter(
        "leaf_iterations",
        Integer(1, or_one_of=("auto",)),
        1,
        "Number of Newton or gradient steps for leaf values, each with backtracking. With several steps reg_lambda "
        "damps each of them and is not part of the minimised loss. 'auto' is CatBoost's choice: 10 for logistic, "
        "cross_entropy and poisson, otherwise 1; for softmax trees that share their splits it also sets "
        "leaf_estimation='joint'.",
        ("leaf_estimation_iterations",),
    ),
    Parameter(
        "line_search",
        Choice(("none", "tree")),
        "none",
        "'tree' multiplies the leaf values of a tree by the one factor that minimises the loss, before the learning "
        "rate is applied.",
    ),
    Parameter(
        "ccp_alpha",
        NOT_NEGATIVE,
        0.0,
        "Cost-complexity pruning: prunes the branches of a tree that reduce the loss per row by no more than this for "
        "each additional leaf.",
    ),
    Parameter(
        "prune_by_validation",
        types.flag,
        False,
        "Whether splits that do not reduce the loss of the (last) validation set are removed from each tree.",
    ),
    Parameter(
        "subsample",
        FRACTION,
        1.0,
        "Fraction of the rows sampled, without replacement, for each round.",
        ("bagging_fraction", "sub_row", "bagging", "sample_rate"),
        survival=0.5,
    ),
    Parameter(
        "sampling",
        Choice(
            ("uniform", "goss", "mvs", "bayesian", "none"), aliases.SAMPLERS, more=True
        ),
        "uniform",
        "How the rows of a round are sampled. 'uniform': all rows with the same probability. 'goss': the rows with the "
        "largest gradients, and a sample of the others. 'mvs': with probabilities proportional to the size of the "
        "gradients. 'bayesian': all rows, with random weights. 'none': all rows.",
        ("data_sample_strategy", "sampling_method", "bootstrap_type"),
    ),
    Parameter(
        "subsample_freq",
        Integer(1),
        1,
        "Number of rounds that use the same sample of rows ('uniform' and 'bayesian'). LightGBM's 0 (no sampling) is "
        "allowed with subsample=1 only.",
        ("bagging_freq",),
        dict.fromkeys(("subsample_freq", "bagging_freq"), replacing((0,), 1)),
    ),
    Parameter(
        "subsample_by_class",
        types.class_fractions,
        None,
        "Fraction of the rows of each class that is sampled ('uniform'); classes that are not given use subsample. A "
        "list has a number for every class, in the order of classes.",
        (
            "pos_bagging_fraction",
            "neg_bagging_fraction",
            "pos_bagging",
            "neg_bagging",
            "pos_sub_row",
            "neg_sub_row",
            "sample_rate_per_class",
        ),
        {
            **dict.fromkeys(
                ("pos_bagging_fraction", "pos_bagging", "pos_sub_row"),
                lambda share: {1: share},
            ),
            **dict.fromkeys(
                ("neg_bagging_fraction", "neg_bagging", "neg_sub_row"),
                lambda share: {0: share},
            ),
        },
    ),
    Parameter(
        "class_weight",
        types.class_weights,
        None,
        "Factors on the weights of the rows of each class, in training and in metrics. A dict: classes that it leaves "
        "out have 1. A list: a number for every class, in the order of classes. 'balanced': all classes get the same "
        "total weight, as in scikit-learn, but with row weights counted. 'sqrt_balanced': the square roots of the "
        "balanced factors. Cuts do not depend on it.",
        (
            "class_weights",
            "auto_class_weights",
            "scale_pos_weight",
            "is_unbalance",
            "unbalance",
            "unbalanced_sets",
        ),
        {
            "scale_pos_weight": lambda by: (
                None if by is None or (isinstance(by, Real) and by == 1) else {1: by}
            ),
            **dict.fromkeys(
                ("is_unbalance", "unbalance", "unbalanced_sets"),
                switch("balanced", None),
            ),
        },
    ),
    Parameter(
        "sampling_unit",
        Choice(("row", "group"), {"object": "row"}),
        "row",
        "What is sampled ('uniform' and 'bayesian'): single rows, or whole groups of the Dataset.",
        ("bagging_by_query",),
        {
            "bagging_by_query": lambda by: (
                ("group" if by else "row") if isinstance(by, bool) else by
            )
        },
    ),
    Parameter(
        "top_rate",
        Number(0, 1, high_open=True),
        0.2,
        "GOSS: fraction of the rows, those with the largest gradients, that is always kept. The first 1 / "
        "learning_rate rounds use all rows, except in a forest.",
        ("goss_alpha",),
    ),
    Parameter(
        "other_rate",
        FRACTION,
        0.1,
        "GOSS: fraction of all rows that is sampled from the rest. Sampled rows are weighted by (1 - top_rate) / "
        "other_rate.",
        ("goss_beta",),
    ),
    Parameter(
        "mvs_reg",
        Number(0, or_one_of=("auto",)),
        "auto",
        "MVS: number added to squared gradients, so that rows with small gradients can be sampled. 'auto' is the "
        "square of the mean absolute gradient.",
        convert={"mvs_reg": lambda reg: "auto" if reg is None else reg},
    ),
    Parameter(
        "bagging_temperature",
        Number(0, 100),
        1.0,
        "Bayesian sampling: spread of the random weights. 0 gives equal weights, 1 the exponential distribution.",
    ),
    Parameter(
        "colsample_bytree",
        FRACTION,
        1.0,
        "Fraction of the columns sampled for each tree.",
        ("feature_fraction", "sub_feature"),
        survival=0.5,
    ),
    Parameter(
        "colsample_bylevel",
        FRACTION,
        1.0,
        "Fraction of the tree's columns sampled for each level.",
        ("rsm",),
    ),
    Parameter(
        "colsample_bynode",
        FRACTION,
        1.0,
        "Fraction of the level's columns sampled for each node.",
        ("feature_fraction_bynode", "sub_feature_bynode"),
    ),
    Parameter(
        "monotone_constraints",
        types.directions,
        None,
        "Columns in which predictions may only rise (1) or only fall (-1), all other columns being equal. A dict by "
        "name or position, or one direction for each column. Missing values are not constrained.",
        (
            "monotonic_cst",
            "mc",
            "mono_constraints",
            "monotone_constraint",
            "monotonic_constraints",
        ),
    ),
    Parameter(
        "monotone_method",
        Choice(("basic", "intermediate"), {"advanced": "intermediate"}),
        "basic",
        "How leaf values are kept monotone. 'basic': the midpoint of the two children's values bounds both sides. "
        "'intermediate': only leaves that must be in order bound each other, which fits better and is slower; "
        "LightGBM's 'advanced' is read as this.",
        ("monotone_constraints_method", "monotone_constraining_method", "mc_method"),
    ),
    Parameter(
        "interaction_constraints",
        types.column_groups,
        None,
        "Groups of columns, by name or position, that may occur on the same path of a tree. A column in no group "
        "shares a path with no other column. 'pairwise' allows every pair, 'no_interactions' a single column per path.",
        ("interaction_cst",),
    ),
    Parameter(
        "extra_trees",
        types.flag,
        False,
        "Extremely randomised trees: each node tries one random cut of each column instead of all cuts.",
        ("extra_tree",),
    ),
    Parameter(
        "category_encoding",
        types.encoding,
        None,
        "How categorical columns are used. 'partition': splits by sets of categories, chosen in each node. 'onehot': "
        "splits by one category against the rest. 'ordered': ordered target statistics, computed for each row from the "
        "rows before it in a random permutation. 'both': sets and statistics. 'auto': 'ordered' for columns with more "
        "than 255 categories, or more than 32 with fewer than 100 rows each, if the other parameters allow it; "
        "otherwise 'partition'. None is 'auto'; with recipe='catboost' it is 'ordered', with any other recipe "
        "'partition'. A dict sets it for some columns, by name or position.",
    ),
    Parameter(
        "statistics",
        types.statistics,
        None,
        "Target statistics for 'ordered' and 'both', as in OrderedTargetEncoder: a list of kinds or of pairs (kind, "
        "priors), or a dict of such lists for some columns. None is 'borders' for classes or 'mean' for numbers, with "
        "the priors 0, 0.5 and 1, and 'counter'. Combinations of columns use the same, unless a list is given for all "
        "columns.",
    ),
    Parameter(
        "max_combination",
        Integer(1, 8),
        1,
        "Maximum number of columns combined into one categorical column, for category_encoding 'ordered' and 'both'. "
        "Candidates are the categories and numeric splits that occur together on paths of trees. 1 combines none.",
        ("max_ctr_complexity",),
    ),
    Parameter(
        "model_size_reg",
        NOT_NEGATIVE,
        0.5,
        "Penalty on combinations of columns that no tree uses yet: their gain is multiplied by (1 + size / largest "
        "size) ^ -model_size_reg.",
    ),
    Parameter(
        "max_cat_to_onehot",
        Integer(1),
        4,
        "Columns with at most this many categories are split by one category against the rest, other columns by sets "
        "of categories.",
        ("one_hot_max_size",),
        {"one_hot_max_size": replacing((0,), 1)},
    ),
    Parameter(
        "max_cat_threshold",
        Integer(1),
        32,
        "Maximum number of categories in the smaller of the two sets of a split.",
    ),
    Parameter(
        "cat_smooth",
        NOT_NEGATIVE,
        10.0,
        "Categories are sorted by gradient / (hessian + cat_smooth) in each node. A category with fewer rows than this "
        "in the node is in no set and goes right.",
    ),
    Parameter(
        "cat_l2",
        NOT_NEGATIVE,
        10.0,
        "L2 penalty added to reg_lambda in splits by a set of categories, and in the leaf values directly below them.",
    ),
    Parameter(
        "min_data_per_group",
        Integer(1),
        100,
        "Minimum number of rows added between two candidate sets of categories, and minimum number of rows that remain "
        "on the other side.",
    ),
    Parameter(
        "forced_splits",
        types.forced_splits,
        None,
        "Splits at the top of every tree: a dict of feature, threshold and, for further splits, left and right. The "
        "path of a JSON file with such a dict is allowed too. A split that the limits or constraints of its node do "
        "not allow is skipped, with the splits below it.",
        (
            "forcedsplits_filename",
            "forced_splits_filename",
            "forced_splits_file",
            "forced_split_file",
            "fs",
        ),
    ),
    Parameter(
        "precision",
        Choice(("auto", "narrow", "wide")),
        "auto",
        "Fixed-point width of gradients: 'narrow' (14 bits), 'wide' (30 bits), or 'auto', which chooses for each round "
        "(wide for heavy tails).",
    ),
    Parameter(
        "early_stopping_rounds",
        Integer(1, or_one_of=(None,)),
        None,
        "Training stops after this many rounds without a better validation score, and the best round is kept. None "
        "never stops early.",
        (
            "early_stopping_round",
            "early_stopping",
            "n_iter_no_change",
            "od_wait",
            "stopping_rounds",
        ),
        # LightGBM's; scikit-learn's True stops after 10 rounds
        {
            "early_stopping_round": replacing((0, -1), None),
            "early_stopping": lambda on: (
                (10 if on else None)
                if isinstance(on, bool)
                else replacing((0, -1), None)(on)
            ),
        },
        distribution=20,
    ),
    Parameter(
        "validation_fraction",
        Number(0, 1, low_open=True, high_open=True),
        0.1,
        "Fraction of the rows held out for early stopping where no validation set is given.",
        ("eval_fraction", "validation_ratio"),
    ),
    Parameter(
        "quality",
        Choice(("fast", "balanced", "best"), or_none=True),
        None,
        "An automatic fit: candidates are trained, compared on held-out rows, blended, and trained again on all rows. "
        "'fast', 'balanced' and 'best' say how much time that may take (docs/defaults.md). Parameters that you set go "
        "before those of the candidates. None trains once, with the parameters as they are. The estimators have "
        "'balanced', unless you set parameters that say how long or on what to train.",
        model=False,
        estimator_default="balanced",
    ),
    Parameter(
        "time_limit",
        Number(0, low_open=True, or_one_of=(None,)),
        None,
        "Seconds that an automatic fit may take. The model then depends on the speed of the machine.",
        model=False,
    ),
    Parameter(
        "quantiles",
        types.levels,
        None,
        "Levels between 0 and 1 of quantiles to predict, a column for each, rising. They never cross: a row's "
        "predictions are sorted, which never raises their summed loss. It sets objective='quantile'.",
    ),
    Parameter(
        "conformal",
        Choice(("split", "cross", "cv+"), or_none=True),
        None,
        "Calibration for `interval` and `predict_set` while fitting. 'split': a fifth of the rows is held out for it. "
        "'cross' and 'cv+': five models, each without a fifth of the rows, which it is calibrated on, or ten for up to "
        "2,000 rows; predictions are their mean. 'cross' takes one width from all errors, 'cv+' ends from each model "
        "and its own errors, which is wider and has a guarantee. For estimators only.",
        model=False,
    ),
    Parameter(
        "eval_metric",
        types.metrics,
        None,
        "Metrics of the validation rows; early stopping uses the first. None is the objective's own metric, 'none' "
        "means no metric. A callable takes (y, prediction, weight) and returns a float; lower is better, unless given "
        "as (name, callable, True).",
        (
            "metric",
            "metrics",
            "metric_types",
            "custom_metric",
            "custom_loss",
            "scoring",
        ),
        {
            "scoring": lambda score: (
                None if isinstance(score, str) and score == "loss" else score
            )
        },
        model=False,
    ),
    Parameter(
        "importance_type",
        Choice(
            IMPORTANCES,
            {"split": "weight", "predictionvalueschange": IMPORTANCES[-1]},
            or_none=True,
        ),
        None,
        "What `feature_importances_` of an estimator has: the share of each column in the total gain (None), or a kind "
        "of `Booster.importance` that looks at trees only. 'split' or 'weight': the number of splits, as LightGBM's "
        "default.",
        model=False,
    ),
    Parameter(
        "n_jobs",
        types.jobs,
        None,
        "Number of threads. None or -1 uses every CPU that this process may use, -2 all but one. It never changes the "
        "model.",
        (
            "nthread",
            "nthreads",
            "n_threads",
            "num_thread",
            "num_threads",
            "thread_count",
        ),
        dict.fromkeys(
            ("nthread", "nthreads", "n_threads", "num_thread", "num_threads"),
            replacing((0,), None),
        ),
        model=False,
    ),
    Parameter(
        "random_state",
        types.seed,
        None,
        "Seed of all random draws. None is 0, so that fits are repeatable.",
        ("seed", "random_seed"),
    ),
    Parameter(
        "verbose",
        types.verbosity,
        0,
        "Number of rounds between two lines of progress. True updates a single line, 0 prints nothing.",
        ("verbose_eval", "metric_period", "verbosity"),
        # up to 1 the peers only warn
        {"verbosity": lambda level: int(level > 1) if is_integer(level) else level},
        model=False,
    ),
    Parameter(
        "checkpoint",
        types.path,
        None,
        "File that follows the training, from which a training that was killed goes on: repeat the call, and it ends "
        "with the same bytes as one that was never killed. None keeps no such file.",
        ("snapshot_file",),
        model=False,
    ),
    Parameter(
        "checkpoint_every",
        Integer(1),
        10,
        "Number of rounds between two writes of the checkpoint.",
        ("every",),
        model=False,
    ),
    Parameter(
        "device",
        types.device,
        DEVICES[0],
        "Device that holds the rows and trains. A Dataset that is given to `sapwood.train` has its device already.",
        ("device_type", "task_type"),
        model=False,
    ),
    Parameter(
        "n_classes",
        Integer(2, or_one_of=(None,)),
        None,
        "Number of classes of softmax. None is the largest label plus 1, where every class has rows.",
        ("num_class", "num_classes", "classes_count"),
        {"num_class": replacing((1,), None)},  # LightGBM's where there are no classes
        model=False,
        estimator=False,
    ),
    # Ranking
    Parameter(
        "ranking_metric",
        Choice(("auto", "ndcg", "map", "mrr", "err", "classic")),
        "auto",
        "Ranking: the metric whose change by a swap weighs a pair of rows. 'auto' is 'ndcg' for lambdarank; for "
        "yetirank it is 'classic', the difference of labels times noise_decay^place.",
        ranking=True,
    ),
    Parameter(
        "truncation_level",
        Integer(1, or_one_of=(None,)),
        30,
        "Ranking: a pair counts if one of its rows is among so many first places; None means no limit. Take a few more "
        "than the places that the metric looks at.",
        ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"),
        ranking=True,
    ),
    Parameter(
        "label_gain",
        types.gain,
        "auto",
        "Ranking: what a label is worth in NDCG and ERR. 'exp': 2^label - 1. 'linear': the label. A list: a number for "
        "each label 0, 1, 2, ... 'auto' is 'exp' for whole labels up to 5, else 'linear'.",
        ("ndcg_exp_gain",),
        {"ndcg_exp_gain": switch("exp", "linear")},
        ranking=True,
    ),
    Parameter(
        "sigmoid",
        Number(0, low_open=True),
        1.0,
        "Ranking: factor on the differences of scores in the loss of a pair.",
        ("sigma",),
        ranking=True,
    ),
    Parameter(
        "ranking_norm",
        Choice(("both", "group", "score", "none")),
        "both",
        "Ranking: what lambdarank divides by. 'group': a group's gradients by their sum S, times log2(1 + S). 'score': "
        "the weight of a pair by 0.01 + the difference of its scores.",
        (
            "lambdarank_norm",
            "lambdarank_normalization",
            "lambdarank_score_normalization",
        ),
        {
            "lambdarank_norm": switch("both", "none"),
            "lambdarank_normalization": switch("both", "score"),
            "lambdarank_score_normalization": switch("both", "group"),
        },
        ranking=True,
    ),
    Parameter(
        "noisy_permutations",
        Integer(1, 1000),
        10,
        "Ranking: noisy orders of a group that yetirank draws in each round.",
        ("permutations",),
        ranking=True,
    ),
    Parameter(
        "noisy_neighbors",
        Integer(1),
        1,
        "Ranking: how far apart two rows of a noisy order may stand to be a pair of yetirank.",
        ("num_neighbors",),
        ranking=True,
    ),
    Parameter(
        "noise_decay",
        Number(0, 1),
        0.85,
        "Ranking: factor of yetirank's 'classic' weights from place to place.",
        ("decay",),
        ranking=True,
    ),
    Parameter(
        "position_bias_regularization",
        NOT_NEGATIVE,
        0.0,
        "Ranking: L2 penalty on the bias of positions, for each row.",
        ("lambdarank_position_bias_regularization",),
        ranking=True,
    ),
    Parameter(
        "eval_at",
        types.places,
        None,
        "Ranking: the places that metrics without an '@' look at; ndcg is then ndcg@1, ndcg@3, ... None is 10.",
        ("ndcg_eval_at", "ndcg_at", "map_eval_at", "map_at"),
        model=False,
        ranking=True,
    ),
)

BY_NAME = {row.name: row for row in TABLE}
BY_ALIAS = {alias: row for row in TABLE for alias in (row.name, *row.aliases)}


def defaults_of(task: str) -> dict[str, Any]:
    """The defaults that the estimator of 'survival' or 'distribution' has for
    itself.
    """
    return {
        row.name: getattr(row, task) for row in TABLE if getattr(row, task) is not ...
    }


# Parameters added after the first release of model files: a model that has their
# defaults is saved without them, so that its bytes stay the same.
ADDED_LATER = (
    "max_cat_to_onehot",
    "max_cat_threshold",
    "cat_smooth",
    "cat_l2",
    "min_data_per_group",
    "linear_leaves",
    "linear_lambda",
    "linear_smooth",
    "linear_units",
    "zero_as_missing",
    "category_encoding",
    "n_permutations",
    "has_time",
    "score_function",
    "random_strength",
    "feature_weights",
    "first_use_penalties",
    "max_combination",
    "model_size_reg",
    "statistics",
    "class_weight",
    "multi_strategy",
    "sketch_outputs",
    "quantiles",
    *(row.name for row in TABLE if row.ranking and row.model),
)
