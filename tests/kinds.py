"""One of each kind: models, estimators and datasets of every sort that can be made,
from a table of few rows.

Out: functions by name, each of which makes one; `system/test_round_trips.py` saves and
copies what they make.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import sapwood as sw
from sapwood.boost.auto import blend
from sapwood.device import host
from sapwood.model import Booster
from sapwood.objective.distributions import FAMILIES
from sapwood.objective.ranking import LOSSES
from sapwood.params import TABLE
from sapwood.params.recipes import RECIPES
from sapwood.params.types import Choice, flag

RNG = np.random.default_rng(36)
N_ROWS = 90
X = RNG.normal(size=(N_ROWS, 4))
SCORE = X[:, 0] - X[:, 1] ** 2 + 0.3 * RNG.normal(size=N_ROWS)
MIDDLE = np.median(SCORE)
BINARY = (SCORE > MIDDLE).astype(np.float64)
THREE = np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.6])).astype(np.float64)
TWO_TARGETS = np.column_stack([SCORE, X[:, 2]])
LABELS = {
    "a number": SCORE,
    "a number from 0 to 1": 1 / (1 + np.exp(-SCORE)),
    "0 or 1": BINARY,
    "a number above 0": np.exp(SCORE),
    "a number of at least 0": np.exp(SCORE).round(),
    "a class index": THREE,
}
GROUP = np.repeat(np.arange(9), 10)
FRAME = pd.DataFrame(
    {
        "number": X[:, 0],
        "few": pd.Categorical.from_codes(
            RNG.integers(-1, 4, N_ROWS), ["a", "b", "ü", "\U0001f333"]
        ),
        "many": RNG.integers(0, 30, N_ROWS).astype(str),
        "code": pd.Categorical(RNG.integers(0, 6, N_ROWS) - 2),
        "flag": pd.Categorical(RNG.random(N_ROWS) > 0.5),
        "date": pd.Timestamp("2024-01-01")
        + pd.to_timedelta(RNG.integers(0, 900, N_ROWS), "D"),
        "text": [
            " ".join(RNG.choice(["tree", "leaf", "root", "bark", "wood"], 7)) + f" {i}"
            for i in range(N_ROWS)
        ],
        "list": [[float(one), 1.0 - one] for one in X[:, 3]],
    }
)
LEAST = {
    "n_estimators": 3,
    "min_child_weight": 0,
    "min_samples_leaf": 2,
    "max_leaves": 5,
    "n_jobs": 1,
}
Pair = tuple[Booster, Any]  # a model, and a table to predict


def trained(
    params: dict[str, Any], y: Any = SCORE, table: Any = X, **more: Any
) -> Pair:
    """A model of few rounds."""
    of_data = {
        name: more.pop(name)
        for name in ("weight", "init_score", "group", "linear_leaves")
        if name in more
    }
    data = sw.Dataset(table, y, **of_data)
    return sw.train({**LEAST, **params}, data, **more), table


def fitted(estimator: Any, *args: Any, **more: Any) -> Pair:
    """The model of an estimator."""
    table = args[0]
    return estimator.set_params(n_estimators=3, n_jobs=1).fit(
        *args, **more
    ).booster_, table


# Kinds of models: a name, and a function that makes one.

MODELS: dict[str, Callable[[], Pair]] = {}
for name, about in host.objectives().items():
    y = BINARY[:, None] if name == "multilabel" else LABELS[about["labels"]]
    MODELS[f"objective {name}"] = lambda name=name, y=y: trained({"objective": name}, y)
for name in RECIPES:
    y = BINARY if name == "adaboost" else SCORE
    MODELS[f"recipe {name}"] = lambda name=name, y=y: trained({"recipe": name}, y)
for name in LOSSES:
    MODELS[f"ranking {name}"] = lambda name=name: trained(
        {"objective": name}, THREE, group=GROUP
    )

# Every value of every parameter that has words or is a switch, and values of the
# others.
VALUES: dict[str, list[Any]] = {
    "learning_rate": [
        1,
        np.float32(0.1),
        np.int64(1),
        "auto",
        [0.1, 0.2, 0.3],
        (0.1, 0.2, 0.3),
        np.full(3, 0.1),
    ],
    "n_parallel_trees": [np.int32(2)],
    "n_permutations": [2],
    "max_drop": [None, 0],
    "max_leaves": [None, 0, np.int8(3)],
    "max_depth": [None, 2, -1],
    "max_bins": [np.int64(5)],
    "min_samples_bin": [1],
    "min_child_weight": [0.5, 2**70],
    "min_samples_leaf": ["auto", 3],
    "reg_lambda": [np.float64(2), 10**18, 1e300],
    "reg_alpha": [0.1],
    "min_split_gain": [1e-9],
    "random_strength": [1.0],
    "feature_weights": [{0: 2, "f1": 0}, [1, 2, 0.5, 1]],
    "first_use_penalties": [{1: 0.1}, np.array([0, 0.1, 0, 0])],
    "max_delta_step": [0.5],
    "path_smooth": [1, "auto"],
    "linear_smooth": [1.0],
    "start": [0, 0.5, np.float32(0.5), [0.5], (0.5,), np.array(0.5)],
    "leaf_iterations": ["auto", 2],
    "ccp_alpha": [0.01],
    "subsample": [0.5, 1],
    "subsample_freq": [2],
    "monotone_constraints": [
        {0: 1},
        {"f1": -1},
        [1, 0, 0, -1],
        "(1,0,0,-1)",
        np.array([1, 0, 0, 0]),
    ],
    "interaction_constraints": [
        [[0, 1], ["f2"]],
        "pairwise",
        "no_interactions",
        [{0, 1}],
    ],
    "colsample_bytree": [0.5],
    "colsample_bylevel": [0.5],
    "colsample_bynode": [0.5],
    "rate_drop": [0.5],
    "early_stopping_rounds": [1],
    "validation_fraction": [0.3],
    "quantiles": [[0.1, 0.9], 0.5, np.array([0.2, 0.4])],
    "forced_splits": [
        {
            "feature": 0,
            "threshold": 0,
            "left": {"feature": "f1", "threshold": np.float32(0.5)},
        }
    ],
    "random_state": [
        2**63 - 1,
        np.uint8(3),
        np.random.RandomState(3),
        np.random.default_rng(3),
    ],
    "eval_metric": ["mae", ["mae", "rmse"], lambda y, p: 0.5, "none"],
    "verbose": [False],
    "device": ["cpu"],
    "category_encoding": ["auto", "partition", "onehot", "ordered", "both"],
    "mvs_reg": [0.1, "auto"],
    "max_cat_to_onehot": [1],
    "sketch_outputs": [1],
    "cat_l2": [0],
    "cat_smooth": [1],
    "max_cat_threshold": [2],
    "min_data_per_group": [1],
    "max_combination": [2],
    "model_size_reg": [0],
    "linear_lambda": ["auto", 1],
    "top_rate": [0.3],
    "other_rate": [0.2],
    "bagging_temperature": [0.5],
    "skip_drop": [0.1],
}
DART = (
    "rate_drop",
    "skip_drop",
    "max_drop",
    "one_drop",
    "sample_type",
    "normalize_type",
)
NEEDS: dict[str, dict[str, Any]] = {
    **{name: {"boosting": "dart"} for name in DART},
    "top_rate": {"sampling": "goss"},
    "other_rate": {"sampling": "goss"},
    "mvs_reg": {"sampling": "mvs", "subsample": 0.5},
    "n_permutations": {"boosting": "ordered"},
    "has_time": {"boosting": "ordered"},
    "subsample_freq": {"subsample": 0.5},
    "bagging_temperature": {"sampling": "bayesian"},
    "linear_units": {"linear_leaves": True},
    "linear_smooth": {"linear_leaves": True},
    "sketch_outputs": {"objective": "softmax", "multi_strategy": "multi_output_tree"},
    "multi_strategy": {"objective": "softmax"},
    "linear_lambda": {"linear_leaves": True},
    "max_combination": {"category_encoding": "ordered"},
    "model_size_reg": {"category_encoding": "ordered", "max_combination": 2},
    "monotone_method": {"monotone_constraints": {0: 1}},
    "validation_fraction": {"early_stopping_rounds": 1},
}
WORDS_ELSEWHERE = {"recipe", "objective", "quality", "conformal", "importance_type"}
OF_CATEGORIES = {
    "category_encoding",
    "max_combination",
    "model_size_reg",
    "max_cat_to_onehot",
    "max_cat_threshold",
    "cat_smooth",
    "cat_l2",
    "min_data_per_group",
}
REFUSED = {
    "boosting=forest",
    "leaf_estimation=joint",
    "leaf_estimation=sign",
    "sampling_unit=group",
    "prune_by_validation=True",
    "prune_by_validation=bool 2",
    "sampling=mvs",
}


def of_parameter(name: str, value: Any) -> Pair:
    """A model that was trained with a value of a parameter."""
    params = {**NEEDS.get(name, {}), name: value}
    y = THREE if params.get("objective") == "softmax" else SCORE
    table = FRAME[["few", "many", "number"]] if name in OF_CATEGORIES else X
    return trained(
        params, y, table, linear_leaves=bool(params.get("linear_leaves", False))
    )


for row in TABLE:
    values = VALUES.get(row.name, [])
    if isinstance(row.type, Choice) and row.name not in WORDS_ELSEWHERE:
        values = list(row.type.words)
    if row.type is flag:
        values = [True, False, np.True_]
    for place, value in enumerate([] if row.ranking else values):
        label = (
            value
            if isinstance(value, str | bool) or value is None
            else f"{type(value).__name__} {place}"
        )
        MODELS[f"{row.name}={label}"] = lambda name=row.name, value=value: of_parameter(
            name, value
        )


class Trial:
    """A trial of Optuna that never ends."""

    def report(self, value: float, step: int) -> None:
        assert step >= 0

    def should_prune(self) -> bool:
        return False


class OwnLoss:
    """A loss of a user with a start, a link of its own and a metric."""

    name = "own \U0001f333"
    metric = "mae"

    def grad_hess(self, y: Any, score: Any) -> Any:
        return score - y, np.ones_like(score)

    def start(self, y: Any, weight: Any) -> Any:
        return 0.25


class Linked(OwnLoss):
    """The same with a link that is a function."""

    def link(self, score: Any) -> Any:
        return np.abs(score)


def of_function(y: Any, score: Any) -> Any:
    return score - y, np.ones_like(score)


def own_metric(y: Any, prediction: Any) -> float:
    return float(np.abs(y - prediction).max())


class Stopper:
    """A callback of the user that says how many rounds are kept, as an integer of
    NumPy.
    """

    best_round = None

    def __call__(self, view: Any) -> bool:
        self.best_round = np.int64(view.index + 1)
        return bool(view.index == 1)


def watched(params: dict[str, Any], **more: Any) -> Pair:
    """A training with rows to validate."""
    data = sw.Dataset(X, SCORE)
    held = sw.Dataset(X[:30] + 0.1, SCORE[:30], reference=data)
    return sw.train(
        {**LEAST, "eval_metric": own_metric, **params},
        data,
        valid=[(held, "h"), (data, "t")],
        **more,
    ), X


def continued(**more: Any) -> Pair:
    """A model that was saved, read, and trained on."""
    data = sw.Dataset(X, SCORE)
    first = sw.load(sw.train(LEAST, data, **more).to_bytes())
    return sw.train(LEAST, data, init_model=first), X


def with_crosses() -> Pair:
    """Columns that are made of others."""
    table = FRAME[["number", "few"]].assign(b=X[:, 1])
    data = sw.Dataset(table, SCORE, linear_leaves=True)
    crosses = [
        ("ratio", "number", "b"),
        ("product", 0, "b"),
        ("difference", "b", "number"),
        ("centred", "b", "few"),
    ]
    return sw.train({**LEAST, "linear_leaves": True}, data.with_crosses(crosses)), table


def read_from(library: str) -> Pair:
    """A model of another library."""
    if library == "xgboost":
        import xgboost

        return sw.load(xgboost.XGBRegressor(n_estimators=3).fit(X, SCORE)), X
    if library == "lightgbm":
        import lightgbm

        return sw.load(
            lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(X, THREE)
        ), X
    if library == "catboost":
        import catboost

        model = catboost.CatBoostRegressor(
            iterations=3, silent=True, allow_writing_files=False
        )
        return sw.load(model.fit(X, SCORE)), X
    from sklearn import ensemble

    rounds = {"max_iter": 3} if "Hist" in library else {"n_estimators": 3}
    model = getattr(ensemble, library)(**rounds)
    return sw.load(model.fit(X, BINARY)), X


def first_rounds() -> Pair:
    """The first rounds of a model."""
    model, _ = trained({"n_estimators": 5})
    return dataclasses.replace(model, trees=model.trees.slice(0, 2)), X


MODELS |= {
    "rates by a function": lambda: trained(
        {"learning_rate": lambda index: 0.3 / (1 + index)}
    ),
    "reset_parameter": lambda: trained(
        {}, callbacks=[sw.reset_parameter(learning_rate=[0.1, 0.1, 0.05])]
    ),
    "reset_parameter of a function": lambda: trained(
        {}, callbacks=[sw.reset_parameter(eta=lambda i: 0.1)]
    ),
    "LearningRateScheduler": lambda: trained(
        {},
        callbacks=[sw.callback.LearningRateScheduler(lambda index: 0.1 * 0.9**index)],
    ),
    "LearningRateScheduler of a list": lambda: trained(
        {}, callbacks=[sw.callback.LearningRateScheduler([0.1, 0.2, 0.3])]
    ),
    "forest": lambda: trained(
        {"boosting": "forest", "subsample": 0.5, "n_parallel_trees": 2}
    ),
    "rates of dart": lambda: trained({"learning_rate": [0.1] * 3, "boosting": "dart"}),
    "early_stopping": lambda: watched({}, callbacks=[sw.early_stopping(1)]),
    "log": lambda: watched({}, callbacks=[sw.callback.log(lambda values, index: None)]),
    "record": lambda: watched({}, callbacks=[sw.callback.record({})]),
    "progress": lambda: watched({}, callbacks=[sw.callback.progress(2)]),
    "time_limit": lambda: watched({}, callbacks=[sw.callback.time_limit(0)]),
    "prune": lambda: watched({}, callbacks=[sw.callback.prune(Trial())]),
    "callback of the user": lambda: watched({}, callbacks=[Stopper()]),
    "log_evaluation": lambda: watched({}, callbacks=[sw.log_evaluation(1)]),
    "record_evaluation": lambda: watched({}, callbacks=[sw.record_evaluation({})]),
    "print_evaluation": lambda: watched({}, callbacks=[sw.print_evaluation(2)]),
    "EarlyStopping": lambda: watched({}, callbacks=[sw.EarlyStopping(1)]),
    "EvaluationMonitor": lambda: watched(
        {}, callbacks=[sw.callback.EvaluationMonitor()]
    ),
    "TrainingCallback": lambda: watched({}, callbacks=[sw.callback.TrainingCallback()]),
    "metric with a name": lambda: watched({"eval_metric": ("né", own_metric, False)}),
    "own function": lambda: trained({"objective": of_function}),
    "own object": lambda: trained({"objective": OwnLoss()}),
    "own link": lambda: trained({"objective": Linked()}),
    "own objective of several outputs": lambda: trained(
        {"objective": of_function}, TWO_TARGETS
    ),
    "several targets": lambda: trained({}, TWO_TARGETS),
    "shared trees": lambda: trained(
        {"multi_strategy": "multi_output_tree"}, TWO_TARGETS
    ),
    "start of several outputs": lambda: trained(
        {"start": [0.5, np.float32(1)]}, TWO_TARGETS
    ),
    "levels": lambda: trained({"objective": "quantile", "quantile_alpha": [0.1, 0.5]}),
    "levels without order": lambda: trained(
        {"objective": "expectile", "expectile_alpha": (0.9, np.float32(0.5))}
    ),
    "field of an integer": lambda: trained(
        {"objective": "huber", "huber_delta": np.int64(2)}
    ),
    "base_score": lambda: trained({"objective": "logistic", "base_score": 0.3}, BINARY),
    "multilabel": lambda: trained(
        {"objective": "multilabel"}, np.column_stack([BINARY, 1 - BINARY, BINARY])
    ),
    "init_score": lambda: trained({}, init_score=SCORE),
    "weights": lambda: trained({}, weight=np.arange(N_ROWS)),
    "class_weight": lambda: trained(
        {"objective": "softmax", "class_weight": {0: 2, 1.0: 3, "2": 1}}, THREE
    ),
    "class_weight by a word": lambda: trained(
        {"objective": "softmax", "class_weight": "balanced"}, THREE
    ),
    "subsample_by_class": lambda: trained(
        {"objective": "logistic", "subsample_by_class": {0: 0.5}}, BINARY
    ),
    "label_gain": lambda: trained(
        {"objective": "lambdarank", "label_gain": [0, 1, 3]}, THREE, group=GROUP
    ),
    "pairs of the user": lambda: fitted(
        sw.SapwoodRanker(), X, None, GROUP, pairs=[[0, 1], [2, 3], [11, 15]]
    ),
    "bias of positions": lambda: fitted(
        sw.SapwoodRanker(), X, THREE, GROUP, position=np.tile(np.arange(10), 9)
    ),
    "sampling=mvs of plain": lambda: trained({"sampling": "mvs", "subsample": 0.5}),
    "sampling_unit=group of half": lambda: trained(
        {"sampling_unit": "group", "subsample": 0.5}, group=GROUP
    ),
    "pruned by validation": lambda: watched({"prune_by_validation": True}),
    "post-pruned": lambda: trained({"pruning": "post", "min_split_gain": 0.1}),
    "exact": lambda: trained({"tree_method": "exact"}),
    "every kind of column": lambda: trained(
        {"max_cat_to_onehot": 1, "min_data_per_group": 1}, table=FRAME
    ),
    "ordered statistics": lambda: trained(
        {"category_encoding": "both", "n_permutations": 2},
        table=FRAME[["few", "many", "code", "flag"]],
    ),
    "statistics": lambda: trained(
        {
            "category_encoding": {"few": "ordered", 1: "both"},
            "statistics": {"few": ["mean", ("counter", (0.5,))]},
        },
        table=FRAME[["few", "many"]],
    ),
    "joined categories": lambda: trained(
        {"recipe": "catboost", "max_combination": 3, "n_estimators": 8},
        BINARY,
        FRAME[["few", "many", "number"]],
    ),
    "catboost of every column": lambda: trained({"recipe": "catboost"}, table=FRAME),
    "parts of dates": lambda: trained(
        {"date_features": ["year", "hour"]}, table=FRAME[["number", "date"]]
    ),
    "crosses": with_crosses,
    "linear leaves": lambda: trained({"linear_leaves": True}, linear_leaves=True),
    "linear leaves in standard units": lambda: trained(
        {"linear_leaves": True, "linear_units": "standard"}, linear_leaves=True
    ),
    "zeros are missing": lambda: trained({"zero_as_missing": True}, table=X.round()),
    "names with odd characters": lambda: trained(
        {"monotone_constraints": {"\n\0": 1}},
        table=pd.DataFrame(X, columns=["", "\n\0", 'q"', "\U0001f333" * 50]),
    ),
    "one row": lambda: trained({}, [1.0], [[1.0]]),
    "one value": lambda: trained({}, np.ones(N_ROWS)),
    "continued": continued,
    "continued with a scheduled rate": lambda: continued(
        callbacks=[sw.reset_parameter(learning_rate=[0.1] * 3)]
    ),
    "first rounds": first_rounds,
    "no trees": lambda: (
        dataclasses.replace(model := trained({})[0], trees=model.trees.slice(0, 0)),
        X,
    ),
    "scaled": lambda: (blend.scaled(trained({})[0], 0.7), X),
    "merged": lambda: (
        blend.merge(
            [trained({"random_state": s, "subsample": 0.5})[0] for s in (1, 2)],
            [0.5, 0.5],
        ),
        X,
    ),
    "read from XGBoost": lambda: read_from("xgboost"),
    "read from LightGBM": lambda: read_from("lightgbm"),
    "read from CatBoost": lambda: read_from("catboost"),
    "read from scikit-learn's forest": lambda: read_from("RandomForestClassifier"),
    "read from scikit-learn's boosting": lambda: read_from(
        "HistGradientBoostingClassifier"
    ),
}


# Kinds of estimators


LONG = RNG.exponential(size=N_ROWS).round(2) + 0.01
EVENT = RNG.integers(0, 2, N_ROWS)
CAUSES = RNG.integers(0, 3, N_ROWS)
CLASSES: dict[str, Any] = {
    "text": np.array(["no", "yes", "ünï \x00\U0001f333"]),
    "text as objects": np.array(["a", "b", "c"], object),
    "bytes": np.array([b"a", b"b", b"c"]),
    "bools": np.array([False, True]),
    "integers": np.array([-5, 0, 2**62]),
    "unsigned": np.array([0, 1, 2**64 - 1], np.uint64),
    "small": np.array([1, 2, 3], np.int8),
    "floats": np.array([1.0, 2.0, -3.0]),
    "half floats": np.array([0.0, 1.0], np.float16),
    "dates": np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[D]"),
    "large": np.array([2**100, -(2**100), 0], object),
    "one class": np.array(["only"]),
    "categories of pandas": pd.Series(pd.Categorical(["x", "y", "z"])),
    "strings of pandas": pd.Series(["x", "y"], dtype="string"),
    "integers of pandas": pd.Series([3, 1, 2], dtype="Int64"),
    "bools of pandas": pd.Series([True, False], dtype="boolean"),
}
UNSAVABLE = {"bytes", "dates"}  # fit refuses these


def falling(index: int) -> float:
    """A rate for each round."""
    return 0.3 / (1 + index)


def labels(classes: Any) -> Any:
    """A label of every row."""
    at = np.arange(N_ROWS) % len(classes)
    return classes.iloc[at] if isinstance(classes, pd.Series) else classes[at]


def few(kind: type, **params: Any) -> Any:
    return kind(**{"n_estimators": 3, "n_jobs": 1, **params})


COUNTS = RNG.poisson(2, N_ROWS).astype(np.float64)


def of_distribution(name: str) -> tuple[Any, tuple[Any, ...]]:
    """An estimator of a family, and labels that the family can have."""
    may_be_zero = any(word in name for word in ("hurdle", "poisson", "binomial"))
    label = COUNTS if may_be_zero else COUNTS + 1
    if "beta" in name:
        label = LABELS["a number from 0 to 1"]
    return few(sw.SapwoodDistribution, dist=name, n_folds=0), (X, label)


def of_survival(
    model: str, event: Any = EVENT, **params: Any
) -> tuple[Any, tuple[Any, ...]]:
    """An estimator of survival."""
    return few(sw.SapwoodSurvival, model=model, **params), (X, (LONG, event))


ESTIMATORS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {}
for name, classes in CLASSES.items():
    ESTIMATORS[f"classes: {name}"] = lambda classes=classes: (
        few(sw.SapwoodClassifier),
        (X, labels(classes)),
    )
for name in FAMILIES:
    ESTIMATORS[f"distribution {name}"] = lambda name=name: of_distribution(name)
for name in ("hazard", "cox", "aft"):
    ESTIMATORS[f"survival {name}"] = lambda name=name: of_survival(name)
for name in ("hazard", "cox"):
    ESTIMATORS[f"competing causes {name}"] = lambda name=name: of_survival(name, CAUSES)
for name in ("efron", "breslow"):
    ESTIMATORS[f"survival cox {name}"] = lambda name=name: of_survival("cox", ties=name)
for name in ("logistic", "normal", "extreme"):
    ESTIMATORS[f"survival aft {name}"] = lambda name=name: of_survival("aft", dist=name)
ESTIMATORS |= {
    "survival of intervals": lambda: of_survival(
        "hazard", n_intervals=np.int64(3), departure=np.float32(0.5)
    ),
    "folds of a distribution": lambda: (few(sw.SapwoodDistribution), (X, SCORE)),
    "degrees of freedom": lambda: (
        few(sw.SapwoodDistribution, dist="student_t:6", n_folds=0),
        (X, SCORE),
    ),
    "several labels": lambda: (
        few(sw.SapwoodClassifier),
        (X, np.column_stack([BINARY, 1 - BINARY]).astype(int)),
    ),
    "several targets of a regressor": lambda: (
        few(sw.SapwoodRegressor),
        (X, TWO_TARGETS),
    ),
    "quantiles": lambda: (few(sw.SapwoodRegressor, quantiles=[0.9, 0.1]), (X, SCORE)),
    "ranker": lambda: (few(sw.SapwoodRanker), (X, THREE, GROUP)),
    "ranker with a column of groups": lambda: (
        few(sw.SapwoodRanker),
        (pd.DataFrame(X, columns=[*"abcd"]).assign(q=GROUP), THREE, "q"),
    ),
    "every kind of column of an estimator": lambda: (
        few(sw.SapwoodRegressor),
        (FRAME, SCORE),
    ),
    "rates of an estimator": lambda: (
        few(sw.SapwoodRegressor, learning_rate=np.array([0.1, 0.2, 0.3])),
        (X, SCORE),
    ),
    "rates of an estimator by a function": lambda: (
        few(sw.SapwoodClassifier, learning_rate=falling),
        (X, BINARY),
    ),
    "seed of NumPy": lambda: (
        few(sw.SapwoodRegressor, random_state=np.random.RandomState(0), subsample=0.5),
        (X, SCORE),
    ),
    "early stopping": lambda: (
        few(sw.SapwoodRegressor, early_stopping_rounds=1),
        (X, SCORE),
    ),
    "class weights": lambda: (
        few(sw.SapwoodClassifier, class_weight={"a": 2, "b": 0.5}),
        (X, labels(np.array(["a", "b"]))),
    ),
    "no rounds given": lambda: (
        sw.SapwoodRegressor(quality="fast", n_estimators=5, n_jobs=1),
        (X, SCORE),
    ),
    "conformal split": lambda: (
        few(sw.SapwoodRegressor, conformal="split"),
        (X, SCORE),
    ),
    "conformal cross": lambda: (
        few(sw.SapwoodClassifier, conformal="cross"),
        (X, BINARY),
    ),
    "conformal cv+": lambda: (few(sw.SapwoodRegressor, conformal="cv+"), (X, SCORE)),
}


# Kinds of datasets

DATASETS: dict[str, Callable[[], sw.Dataset]] = {
    "numbers": lambda: sw.Dataset(X, SCORE),
    "no label": lambda: sw.Dataset(X),
    "every vector": lambda: sw.Dataset(
        X, TWO_TARGETS, np.arange(N_ROWS), TWO_TARGETS, group=GROUP
    ),
    "every kind of column": lambda: sw.Dataset(FRAME, SCORE),
    "values": lambda: sw.Dataset(FRAME[["number", "few"]], SCORE, linear_leaves=True),
    "exact": lambda: sw.Dataset(X, SCORE, tree_method="exact", zero_as_missing=True),
    "few bins": lambda: sw.Dataset(
        X, SCORE, max_bins=np.int64(3), min_samples_bin=np.int32(2)
    ),
    "crosses": lambda: sw.Dataset(X, SCORE, linear_leaves=True).with_crosses(
        [("ratio", 0, 1)]
    ),
    "reference": lambda: sw.Dataset(
        FRAME[::-1].assign(many="new"), SCORE, reference=sw.Dataset(FRAME, SCORE)
    ),
    "chunks": lambda: sw.Dataset.from_chunks(
        [(X[:40], SCORE[:40]), (X[40:], SCORE[40:])]
    ),
    "odd names": lambda: sw.Dataset(
        X, SCORE, feature_names=["", "\n\0", 'q"', "\U0001f333"]
    ),
    "sparse": lambda: sw.Dataset(
        scipy.sparse.random(N_ROWS, 5, 0.1, random_state=0, format="csr"), SCORE
    ),
    "names of NumPy": lambda: sw.Dataset(
        X, SCORE, feature_names=np.array(["a", "b", "c", "d"])
    ),
    "names of numbers": lambda: sw.Dataset(pd.DataFrame(X), SCORE),
}
