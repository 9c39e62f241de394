"""A call of every public method of models and estimators, and of every plot; see
`calls.py`.

Importing this enters the calls into `calls.CALLS`.
"""

from functools import cache
from typing import Any

import numpy as np

import sapwood as sw
from arguments import BINARY, FRAME, GROUP, SCORE, THREE, TWO_TARGETS, X
from calls import (
    FORCED,
    LEAST,
    NAMED,
    binary,
    call,
    classes,
    coded,
    crossed,
    linked,
    number,
)

THREADS = [0, "x"]
ROUNDS = [1, (1, 3), 9, "x"]
TABLE = [NAMED[::-1], 3, NAMED[["a"]]]


def quantiles() -> sw.Booster:
    return sw.train({**LEAST, "quantiles": [0.1, 0.9]}, sw.Dataset(NAMED, SCORE))


def of_model(
    name: str, base: Any = None, model: Any = number, /, **changed: Any
) -> None:
    """A method of a booster; the context may name another model."""

    def ask(booster: Any = None, **given: Any) -> Any:
        asked = (model if booster is None else booster)()
        method = getattr(asked, name.rpartition(".")[2])
        return method(**given)

    call(name, ask, base or {}, **changed)


of_model(
    "Booster.predict",
    {"X": NAMED},
    X=TABLE,
    raw=[({"booster": binary}, [True])],
    rounds=ROUNDS,
    init_score=[SCORE, SCORE[1:], TWO_TARGETS],
    n_jobs=THREADS,
)
of_model("Booster.predict_leaves", {"X": NAMED}, X=TABLE, rounds=ROUNDS, n_jobs=THREADS)
of_model(
    "Booster.staged_predict",
    {"X": NAMED},
    X=TABLE,
    raw=[({"booster": binary}, [True])],
    init_score=[SCORE, SCORE[1:]],
    n_jobs=THREADS,
)
of_model("Booster.with_link", {"transform": np.abs}, linked, transform=[3])
of_model(
    "Booster.export",
    {"path": "a.json"},
    path=["a.c", "a.x", 3],
    force=FORCED["mine.json"],
)
of_model(
    "Booster.report",
    {"X": NAMED, "y": SCORE},
    X=[NAMED[::-1], 3],
    y=[SCORE * 2, SCORE[1:]],
    path=["a.html", 3],
)
of_model("Booster.save", {"path": "a"}, path=["b", 3], force=FORCED["mine.sapwood"])
for name in ("fingerprint", "to_bytes"):
    of_model(f"Booster.{name}")
of_model(
    "PeerNames.save_model",
    {"path": "a"},
    path=["b", 3],
    num_iteration=[1],
    force=FORCED["mine.sapwood"],
)
of_model(
    "PeerNames.feature_importance", {}, importance_type=["gain", "x"], iteration=[1]
)
of_model("PeerNames.get_score", {}, importance_type=["gain", "x"], fmap=["x"])
of_model("PeerNames.get_fscore", {}, fmap=["x"])
of_model("PeerNames.trees_to_dataframe", {}, fmap=["x"])
of_model(
    "PeerNames.inplace_predict", {"data": NAMED}, data=TABLE, iteration_range=[(0, 1)]
)
for name in (
    "num_trees",
    "current_iteration",
    "num_feature",
    "feature_name",
    "evals_result",
):
    of_model(f"PeerNames.{name}")
GIVEN_ROWS = {"kind": "permutation", "X": NAMED, "y": SCORE}
SHAP = {"kind": "shap", "X": NAMED}
of_model(
    "importance",
    {},
    kind=["weight", "x"],
    X=[({"kind": "shap"}, [NAMED, 3]), ({}, [NAMED])],
    y=[({"kind": "permutation", "X": NAMED}, [SCORE, BINARY]), ({}, [SCORE])],
    normalize=[True],
    percent=[True],
    sample_weight=[
        (GIVEN_ROWS, [np.arange(120), np.arange(3)]),
        (SHAP, [np.arange(120)]),
        ({}, [np.arange(120)]),
    ],
    metric=[(GIVEN_ROWS, ["mae", "x"]), ({}, ["mae"])],
    groups=[(GIVEN_ROWS, [[["a", "b"], "c"], ["x"]]), ({}, [[["a", "b"]]])],
    background=[(SHAP, [NAMED[:20], 3]), ({}, [NAMED[:20]])],
    n_repeats=[(GIVEN_ROWS, [2, 0]), ({}, [2])],
    random_state=[(GIVEN_ROWS, [2, "x"]), ({}, [2])],
    output=[({"booster": classes}, [1, "x"]), ({}, [7])],
    n_jobs=THREADS,
)
BACKGROUND = {"background": NAMED[:10]}
of_model(
    "explain",
    {"X": NAMED},
    X=TABLE,
    background=[NAMED[:20], 3],
    interactions=[True],
    space=[
        ({**BACKGROUND, "booster": binary}, ["prediction", "x"]),
        ({}, ["prediction"]),
    ],
    y=[({**BACKGROUND, "space": "loss"}, [SCORE, SCORE[1:]]), ({}, [SCORE])],
    by=[({"booster": binary}, ["cover", "x"]), (BACKGROUND, ["cover"])],
    exact=[
        ({**BACKGROUND, "booster": crossed, "X": NAMED.fillna(0)}, [True]),
        ({}, [True]),
    ],
    internal=[({"booster": crossed, "X": NAMED.fillna(0)}, [True])],
    n_jobs=THREADS,
)
of_model(
    "why",
    {"row": NAMED[:1]},
    row=[NAMED[5:6], 3],
    n=[1, 0],
    output=[({"booster": classes}, [0, "x"]), ({}, [7])],
)
of_model("to_shap")
of_model(
    "partial_dependence",
    {"X": NAMED, "columns": "a"},
    X=[NAMED[:30], 3],
    columns=["b", ["a", "b"], "x"],
    grid=[5, [0.0, 1.0], 0],
    individual=[True],
    raw=[({"booster": binary}, [True])],
    n_jobs=THREADS,
)
of_model(
    "accumulated_effects",
    {"X": NAMED, "column": "a"},
    X=[NAMED[:30], 3],
    column=["b", "x"],
    grid=[5, 0],
    raw=[({"booster": binary}, [True])],
    n_jobs=THREADS,
)
of_model(
    "influence",
    {"X": NAMED[:9], "X_train": NAMED, "y_train": SCORE},
    X=[NAMED[:5], 3],
    X_train=[NAMED[::-1], 3],
    y_train=[SCORE * 2, SCORE[1:]],
    sample_weight=[np.arange(1, 121), np.arange(3)],
    n_jobs=THREADS,
)
of_model(
    "check_constraints",
    {},
    monotone_constraints=[{"a": 1}, {"a": 3}],
    interaction_constraints=[[["a"]], 3],
)
of_model("check_quantiles", {}, quantiles)
of_model("to_text", {}, tree=[1, 99])
of_model("to_frame", {}, backend=["polars", "x"])

# ---- Estimators ----------------------------------------------------------------------

TIME = np.exp(SCORE)
EVENT = (X[:, 1] > -0.5).astype(int)


def few(kind: str, /, **params: Any) -> Any:
    return getattr(sw, kind)(**{"n_estimators": 4, "n_jobs": 1, **params})


@cache
def fitted(kind: str) -> Any:
    """An estimator that is fitted; nobody may change it."""
    if kind == "SapwoodSurvival":
        return few(kind).fit(NAMED, (TIME, np.where(EVENT, 1 + (X[:, 3] > 0), 0)))
    if kind == "SapwoodRanker":
        return few(kind).fit(NAMED, THREE, GROUP)
    if kind == "SapwoodClassifier":
        return (
            few(kind)
            .fit(NAMED, THREE, X_val=NAMED, y_val=THREE)
            .calibrate(NAMED, THREE)
        )
    if kind == "SapwoodDistribution":
        return few(kind, dist="normal", n_folds=0).fit(NAMED, SCORE)
    return (
        few(kind)
        .fit(NAMED, SCORE, X_val=NAMED, y_val=SCORE)
        .calibrate(NAMED, SCORE, GROUP % 2)
    )


def of_estimator(name: str, kind: str, base: Any = None, /, **changed: Any) -> None:
    """A method of a fitted estimator."""

    def ask(estimator: str = kind, **given: Any) -> Any:
        return getattr(fitted(estimator), name.rpartition(".")[2])(**given)

    call(name, ask, base or {}, **changed)


def fit_of(kind: str, base: Any, /, **changed: Any) -> None:
    """`fit` of an estimator; the context may set its parameters."""

    def fit(params: Any = None, **given: Any) -> Any:
        return few(kind, **(params or {})).fit(**given)

    owner = "Estimator" if kind == "SapwoodRegressor" else kind
    call(f"{owner}.fit", fit, base, **changed)


STOPPED = {
    "params": {"n_estimators": 60, "learning_rate": 0.5, "early_stopping_rounds": 3}
}
VALID = {**STOPPED, "X_val": NAMED[:40], "y_val": SCORE[:40] + 1}
fit_of(
    "SapwoodRegressor",
    lambda: {"X": NAMED, "y": SCORE},
    X=[NAMED[::-1], 3],
    y=[SCORE * 2, SCORE[1:]],
    sample_weight=[np.arange(120), np.arange(3)],
    init_score=[SCORE / 2, SCORE[1:]],
    group=[
        ({"params": {"sampling_unit": "group", "subsample": 0.5}}, [GROUP, [3]]),
        ({}, [GROUP]),
    ],
    X_val=[({**STOPPED, "y_val": SCORE[:40]}, [NAMED[:40], 3])],
    y_val=[({**STOPPED, "X_val": NAMED}, [SCORE, SCORE[1:]])],
    sample_weight_val=[(VALID, [np.arange(40), np.arange(3)]), ({}, [np.arange(40)])],
    init_score_val=[
        ({**VALID, "init_score": SCORE}, [SCORE[:40], np.arange(3)]),
        ({}, [SCORE]),
    ],
    eval_set=[({}, [(NAMED[:40], SCORE[:40]), [(NAMED[:40], SCORE[:40])], 3])],
    callbacks=[[sw.callback.progress(1)], 3],
    init_model=[number(), fitted("SapwoodRegressor"), 3],
)
fit_of(
    "SapwoodRanker",
    lambda: {"X": NAMED, "y": THREE, "group": GROUP},
    X=[NAMED[::-1], 3],
    y=[THREE[::-1], THREE[1:]],
    group=[np.arange(120) // 20, [60, 60], [1]],
    sample_weight=[np.arange(1, 121), np.arange(1, 13), np.arange(3)],
    group_weight=[np.arange(1, 13), {0: 5.0}, [1]],
    pairs=[
        (
            {"params": {"objective": "pair_logit"}},
            [[[0, 1], [11, 12]], [[0, 1], [13, 12]], [[0]]],
        )
    ],
    pairs_weight=[
        (
            {"params": {"objective": "pair_logit"}, "pairs": [[0, 1], [13, 12]]},
            [[1, 5], [1]],
        ),
        ({}, [[1.0]]),
    ],
    position=[
        ({"params": {"objective": "lambdarank"}}, [np.tile(np.arange(10), 12), [1]])
    ],
    eval_group=[
        ({"eval_set": [(NAMED[:40], THREE[:40])]}, [[GROUP[:40]], [[20, 20]], [[3]]]),
        ({}, [[GROUP]]),
    ],
)
fit_of(
    "SapwoodSurvival",
    lambda: {"X": NAMED, "y": (TIME, EVENT)},
    X=[NAMED[::-1], 3],
    y=[(TIME * 2, EVENT), 3],
    sample_weight=[np.arange(120), np.arange(3)],
    entry=[TIME / 2, TIME[1:], -TIME],
)
fit_of(
    "SapwoodDistribution",
    lambda: {"X": NAMED, "y": SCORE, "params": {"dist": "normal", "n_folds": 2}},
    X=[NAMED[::-1], 3],
    y=[SCORE * 2, SCORE[1:]],
    sample_weight=[np.arange(120), np.arange(3)],
    group=[np.arange(120) // 7, [1]],
    eval_set=[(NAMED[:50], SCORE[:50]), [(NAMED[:50], SCORE[:50])], 3],
)
SCORED = [np.arange(120), np.arange(3)]
STARTS = [SCORE, SCORE[1:]]
MATRIX = np.column_stack([SCORE, -SCORE, SCORE])
of_estimator("Estimator.apply", "SapwoodRegressor", {"X": NAMED}, X=TABLE)
of_estimator(
    "Estimator.report",
    "SapwoodRegressor",
    {"X": NAMED, "y": SCORE},
    X=[NAMED[::-1], 3],
    y=[SCORE * 2],
    path=["a.html", 3],
    train=[(NAMED[::-1], SCORE), 3],
    title=["A title"],
)
call(
    "Estimator.set_params",
    lambda **given: sw.SapwoodRegressor().set_params(**given).get_params(),
)
of_estimator(
    "SapwoodRegressor.predict",
    "SapwoodRegressor",
    {"X": NAMED},
    X=TABLE,
    init_score=STARTS,
)
of_estimator(
    "SapwoodRegressor.staged_predict",
    "SapwoodRegressor",
    {"X": NAMED},
    X=TABLE,
    init_score=STARTS,
)
of_estimator(
    "SapwoodRegressor.score",
    "SapwoodRegressor",
    {"X": NAMED, "y": SCORE},
    X=TABLE,
    y=[SCORE * 2, SCORE[1:]],
    sample_weight=SCORED,
)
for name in (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "staged_predict",
    "staged_predict_proba",
    "staged_decision_function",
):
    of_estimator(
        f"SapwoodClassifier.{name}",
        "SapwoodClassifier",
        {"X": NAMED},
        X=TABLE,
        init_score=[MATRIX, SCORE],
    )
CONFORMAL: dict[str, Any] = {"X": TABLE, "coverage": [0.5, 1.5, "x"]}
of_estimator(
    "RegressionIntervals.interval",
    "SapwoodRegressor",
    {"X": NAMED},
    **CONFORMAL,
    group=[({"coverage": 0.5}, [np.zeros(120), np.zeros(3)])],
)
call(
    "RegressionIntervals.check_quantiles",
    lambda: (
        few("SapwoodRegressor", quantiles=[0.1, 0.9])
        .fit(NAMED, SCORE)
        .check_quantiles()
    ),
)
of_estimator(
    "PredictionSets.predict_set",
    "SapwoodClassifier",
    {"X": NAMED},
    **CONFORMAL,
    group=[np.zeros(120)],
)


def calibrated(**given: Any) -> Any:
    model = few("SapwoodRegressor").fit(NAMED, SCORE).calibrate(**given)
    return model.interval(NAMED, 0.5, group=given.get("group"))


call(
    "Conformal.calibrate",
    calibrated,
    {"X": NAMED, "y": SCORE},
    X=[NAMED[:60], 3],
    y=[SCORE * 2, SCORE[1:]],
    group=[(X[:, 0] > 0), [1]],
)
of_estimator(
    "SapwoodRanker.predict", "SapwoodRanker", {"X": NAMED}, X=TABLE, init_score=STARTS
)
of_estimator(
    "SapwoodRanker.score",
    "SapwoodRanker",
    {"X": NAMED, "y": THREE, "group": GROUP},
    X=TABLE,
    y=[THREE[::-1], THREE[1:]],
    group=[GROUP // 2, [1]],
    sample_weight=[np.arange(120), np.arange(3)],
)
of_estimator(
    "SapwoodDistribution.predict", "SapwoodDistribution", {"X": NAMED}, X=TABLE
)
call(
    "SapwoodDistribution.predict_dist",
    lambda X: fitted("SapwoodDistribution").predict_dist(X).mean(),
    {"X": NAMED},
    X=TABLE,
)
of_estimator(
    "SapwoodDistribution.predict_quantile",
    "SapwoodDistribution",
    {"X": NAMED},
    X=TABLE,
    level=[0.9, [0.1, 0.2], 2],
)
of_estimator(
    "SapwoodDistribution.interval", "SapwoodDistribution", {"X": NAMED}, **CONFORMAL
)
of_estimator(
    "SapwoodDistribution.explain", "SapwoodDistribution", {"X": NAMED}, X=TABLE
)
of_estimator(
    "SapwoodDistribution.score",
    "SapwoodDistribution",
    {"X": NAMED, "y": SCORE},
    X=TABLE,
    y=[SCORE * 2, SCORE[1:]],
    sample_weight=SCORED,
)
CAUSES: dict[str, Any] = {"X": TABLE, "cause": [2, 7, "x"]}
TIMES = [[0.5, 1.0], -1.0, "x"]
of_estimator("SapwoodSurvival.predict", "SapwoodSurvival", {"X": NAMED}, **CAUSES)
of_estimator(
    "SapwoodSurvival.predict_cumulative_hazard",
    "SapwoodSurvival",
    {"X": NAMED},
    **CAUSES,
    times=TIMES,
)
of_estimator(
    "SapwoodSurvival.predict_cumulative_incidence",
    "SapwoodSurvival",
    {"X": NAMED},
    X=TABLE,
    times=TIMES,
)
of_estimator(
    "SapwoodSurvival.predict_survival_function",
    "SapwoodSurvival",
    {"X": NAMED},
    X=TABLE,
    times=TIMES,
    return_array=[True],
)
of_estimator(
    "SapwoodSurvival.predict_cumulative_hazard_function",
    "SapwoodSurvival",
    {"X": NAMED},
    X=TABLE,
    return_array=[True],
)
of_estimator(
    "SapwoodSurvival.predict_quantile",
    "SapwoodSurvival",
    {"X": NAMED},
    X=TABLE,
    level=[0.2, [0.1, 0.2], 2],
)
of_estimator(
    "SapwoodSurvival.predict_restricted_mean",
    "SapwoodSurvival",
    {"X": NAMED},
    X=TABLE,
    tau=[0.5, -1],
    n_points=[3, 1],
)
of_estimator(
    "SapwoodSurvival.score",
    "SapwoodSurvival",
    {"X": NAMED, "y": (TIME, EVENT)},
    X=TABLE,
    y=[(TIME[::-1], EVENT), 3],
)
of_estimator(
    "PeerNames.get_feature_importance",
    "SapwoodRegressor",
    {},
    data=[({"type": "ShapValues"}, [NAMED, 3]), ({}, [NAMED])],
    type=["ShapValues", "x"],
)
for name in (
    "get_booster",
    "get_best_iteration",
    "get_best_score",
    "get_num_boosting_rounds",
):
    of_estimator(f"PeerNames.{name}", "SapwoodRegressor")
of_estimator(
    "ModelFiles.save_model",
    "SapwoodRegressor",
    {"path": "a"},
    path=["b", 3],
    force=FORCED["mine.sapwood"],
)
of_estimator(
    "WholeFiles.save",
    "SapwoodDistribution",
    {"path": "a"},
    path=["b", 3],
    force=FORCED["mine.sapwood"],
)


def read_again(path: Any) -> Any:
    number().save("a")
    few("SapwoodRegressor", max_leaves=3).fit(NAMED, SCORE).save_model("b")
    return sw.SapwoodRegressor().load_model(path)


def read_whole(source: Any) -> Any:
    fitted("SapwoodDistribution").save("a")
    few("SapwoodDistribution", dist="laplace", n_folds=0).fit(NAMED, SCORE).save("b")
    return sw.SapwoodDistribution.load(source)


call("ModelFiles.load_model", read_again, {"path": "a"}, path=["b", "none", 3])
call("WholeFiles.load", read_whole, {"source": "a"}, source=["b", "none", 3])

# ---- The encoder and the explainer ---------------------------------------------------

WORDS = FRAME[["few", "code"]].astype(str)


def encoded(
    X: Any = WORDS, y: Any = BINARY, sample_weight: Any = None, **params: Any
) -> Any:
    encoder = sw.OrderedTargetEncoder(**params)
    return encoder.fit_transform(X, y, sample_weight), encoder.fit(
        X, y, sample_weight
    ).transform(X)


OF_ENCODER: dict[str, Any] = {
    "statistic": ["counter", "x"],
    "priors": [(0.1, 0.9), (3,)],
    "target_type": [({"y": THREE}, ["continuous", "x"])],
    "n_borders": [({"y": SCORE, "statistic": "borders"}, [3, 0])],
    "has_time": [True, 3],
    "random_state": [5, "x"],
    "n_jobs": THREADS,
}
call("OrderedTargetEncoder", encoded, {}, **OF_ENCODER)
OF_ROWS = {
    "X": [WORDS[::-1], 3],
    "y": [1 - BINARY, BINARY[1:]],
    "sample_weight": SCORED,
}
for name in ("fit", "fit_transform"):
    call(f"OrderedTargetEncoder.{name}", encoded, {"X": WORDS}, **OF_ROWS)
call(
    "OrderedTargetEncoder.transform",
    lambda X: sw.OrderedTargetEncoder().fit(WORDS, BINARY).transform(X),
    {"X": WORDS},
    X=[WORDS[::-1], 3],
)
call(
    "OrderedTargetEncoder.get_feature_names_out",
    lambda **given: (
        sw.OrderedTargetEncoder().fit(WORDS, BINARY).get_feature_names_out(**given)
    ),
    {},
    input_features=[["p", "q"]],
)


def explained(X: Any = NAMED[:9], y: Any = None, what: str = "", **given: Any) -> Any:
    explainer = sw.TreeExplainer(**given)
    if what:
        return getattr(explainer, what)(X, y)
    return (
        explainer.shap_values(X),
        explainer.expected_value,
        explainer.data_feature_names,
    )


ROWS = {"data": NAMED[:10]}
call(
    "TreeExplainer",
    explained,
    {"model": number()},
    model=[binary(), 3],
    data=[NAMED[:20], 3],
    model_output=[({"model": binary(), **ROWS}, ["probability", "x"])],
    feature_perturbation=[
        (ROWS, ["tree_path_dependent", "x"]),
        ({}, ["interventional"]),
    ],
    feature_names=[[*"pqrs"]],
)
LOSS = {"model_output": "log_loss", **ROWS}
for name in ("shap_values", "shap_interaction_values"):
    loss = [(LOSS, [SCORE[:9]])] if name == "shap_values" else []
    call(
        f"TreeExplainer.{name}",
        explained,
        {"model": number(), "what": name},
        X=[NAMED[5:9], 3],
        y=[*loss, ({}, [SCORE[:9]])],
    )

# ---- Plots ---------------------------------------------------------------------------


def counted() -> sw.Booster:
    return sw.train(
        {**LEAST, "objective": "poisson"},
        sw.Dataset(FRAME[["number", "few"]], np.exp(SCORE)),
    )


def told() -> Any:
    return number().explain(NAMED)


def axes() -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots()


STYLE: dict[str, Any] = {
    "ax": [axes],
    "title": ["A title"],
    "figsize": [(3, 2)],
    "dpi": [40],
}
OF_TOLD: dict[str, Any] = {"told": [lambda: binary().explain(NAMED), 3]}
SEVERAL = {"told": lambda: classes().explain(NAMED)}
OUTPUT_OF_TOLD = [(SEVERAL, [1, "x"]), ({}, [7])]
OF_MODEL: dict[str, Any] = {"model": [3]}
JUDGED: dict[str, Any] = {
    **OF_MODEL,
    "X": [lambda: NAMED[::-1], 3],
    "y": [THREE[::-1], THREE[1:]],
}
JUDGE = {"model": lambda: fitted("SapwoodClassifier"), "X": lambda: NAMED, "y": THREE}
MODEL_OF_CLASSES = {"model": classes}


def plot(name: str, base: Any, /, **changed: Any) -> None:
    """A plot; what is callable among the values is made first."""

    def draw(**given: Any) -> Any:
        made = {
            key: value() if callable(value) else value for key, value in given.items()
        }
        return getattr(sw.plot, name)(**made)

    call(f"plot.{name}", draw, base, **changed)


plot(
    "beeswarm",
    {"told": told},
    **OF_TOLD,
    max_columns=[2, 0],
    output=OUTPUT_OF_TOLD,
    **STYLE,
)
plot(
    "dependence",
    {"told": told, "column": "a"},
    **OF_TOLD,
    column=["b", "x"],
    color_by=["b", "x"],
    output=OUTPUT_OF_TOLD,
    **STYLE,
)
plot(
    "waterfall",
    {"told": told},
    **OF_TOLD,
    row=[3, 999],
    max_columns=[2, 0],
    output=OUTPUT_OF_TOLD,
    **STYLE,
)
plot(
    "interactions",
    {"told": lambda: number().explain(NAMED, interactions=True)},
    told=[told, 3],
    max_columns=[2, 0],
    output=[
        ({"told": lambda: classes().explain(NAMED, interactions=True)}, [1, "x"]),
        ({}, [7]),
    ],
    **STYLE,
)
plot(
    "importance",
    {"model": number},
    model=[classes, 3],
    kind=["weight", "x"],
    X=[({"kind": "shap"}, [lambda: NAMED, 3])],
    y=[({"kind": "permutation", "X": lambda: NAMED}, [SCORE, BINARY])],
    max_columns=[2, 0],
    percent=[True],
    show_values=[False],
    **STYLE,
)
plot(
    "learning_curve",
    {"model": number, "metric": "rmse"},
    model=[binary, 3],
    metric=["mae", "x"],
    dataset_names=[["one"], ["x"]],
    **STYLE,
)
plot(
    "partial_dependence",
    {"model": number, "X": lambda: NAMED, "columns": "a"},
    model=[3],
    X=[lambda: NAMED[:30], 3],
    columns=["b", "x"],
    grid=[({}, [5, 0]), ({"columns": ["a", "b"]}, [5])],
    individual=[False],
    raw=[({"model": binary}, [True])],
    output=[(MODEL_OF_CLASSES, [1, "x"]), ({}, [7])],
    **STYLE,
)
plot(
    "category_effects",
    {"model": coded, "X": lambda: FRAME[["number", "few"]], "column": "few"},
    model=[3],
    X=[lambda: FRAME[["number", "few"]][:30], 3],
    column=["number", "x"],
    y=[SCORE, SCORE[1:]],
    max_categories=[2, 0],
    raw=[({"model": counted}, [True])],
    output=[7],
    **STYLE,
)
plot(
    "tree",
    {"model": number},
    model=[binary, 3],
    index=[1, 99],
    max_depth=[1, 0],
    precision=[1, -1],
    **STYLE,
)
OF_BINARY = {
    "model": lambda: fitted("SapwoodClassifier"),
    "X": lambda: NAMED,
    "y": THREE,
}
for name in ("calibration", "precision_recall", "roc"):
    more: dict[str, Any] = {"n_bins": [3, 0]} if name == "calibration" else {}
    plot(name, {**JUDGE, "output": 0.0}, **JUDGED, output=[1.0, "x"], **more, **STYLE)
plot("confusion_matrix", JUDGE, **JUDGED, normalize=[True], **STYLE)
NUMBERS = {"model": number, "X": lambda: NAMED, "y": SCORE}
SEVERAL_NUMBERS = {
    "model": lambda: sw.train(LEAST, sw.Dataset(NAMED, TWO_TARGETS)),
    "X": lambda: NAMED,
    "y": TWO_TARGETS,
}
for name in ("predicted_actual", "residuals"):
    plot(
        name,
        NUMBERS,
        model=[3],
        X=[lambda: NAMED[::-1], 3],
        y=[SCORE * 2, SCORE[1:]],
        output=[(SEVERAL_NUMBERS, [1, "x"]), ({}, [7])],
        **STYLE,
    )
PEER_STYLE = {"ax": [axes], "title": ["A title"], "figsize": [(3, 2)], "dpi": [40]}
plot(
    "plot_importance",
    {"booster": number},
    booster=[classes, 3],
    importance_type=["gain", "x"],
    max_num_features=[2, 0],
    **PEER_STYLE,
)
plot(
    "plot_metric",
    {"booster": number},
    booster=[binary, 3],
    metric=["mae", "x"],
    dataset_names=[["one"], ["x"]],
    **PEER_STYLE,
)
plot(
    "plot_tree",
    {"booster": number},
    booster=[binary, 3],
    tree_index=[1, 99],
    num_trees=[1],
    tree_idx=[1, 99],
    max_depth=[1, 0],
    **PEER_STYLE,
)
