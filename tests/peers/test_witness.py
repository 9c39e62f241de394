"""The peers as witnesses: on the same model, read from them, every importance and
explanation is their own figure.

In: models that the real libraries train. Out: their numbers and ours, side by side, to
a stated tolerance.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas
import pytest

import sapwood as sw

catboost = pytest.importorskip("catboost")
lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

N = 400
ROUNDS = 8
RNG = np.random.default_rng(7)
# exact in float32
X = np.round(RNG.normal(size=(N, 6)), 2).astype(np.float32).astype(np.float64)
X[:, 3] = np.round(X[:, 3])
X[RNG.random(X.shape) < 0.1] = np.nan
Z = np.nan_to_num(X)
SIGNAL = Z[:, 0] + Z[:, 1] * Z[:, 2] + (Z[:, 3] == 1)
LABELS = {
    "number": np.float32(SIGNAL + RNG.normal(size=N)).astype(float),
    "two": (SIGNAL + RNG.normal(size=N) > 0).astype(int),
    "count": np.round(np.exp(SIGNAL / 2)),
    "three": np.digitize(SIGNAL, [-1.0, 0.5]),
}
CODE = RNG.integers(0, 9, N)
FRAME = pandas.DataFrame(
    {
        "x": X[:, 0],
        "letter": pandas.Categorical.from_codes(CODE, list("qwertyuio")),
        "z": X[:, 4],
    }
)
FRAME.loc[::17, "letter"] = None
TEXT = FRAME.assign(letter=FRAME["letter"].astype(object).fillna("none"))
LABELS["letters"] = LABELS["text"] = np.float32(
    RNG.normal(size=9)[CODE] * 2 + Z[:, 0]
).astype(float)
FEW, PAIR = slice(0, 60), slice(0, 20)


def near(ours: Any, theirs: Any, tolerance: float) -> None:
    """The same shape and numbers, to a part of the largest."""
    theirs = np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(
        ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max())
    )


def table(label: str) -> Any:
    """The rows that go with a label."""
    return {"letters": FRAME, "text": TEXT}.get(label, X)


# --------------------------------------------------------------------------------------
# XGBoost
SINGLE = 2.0**-20  # it adds up float32 numbers, of 24 bits, some hundreds of them
XGBOOST: dict[str, tuple[str, dict[str, Any]]] = {
    "squares": ("number", {"objective": "reg:squarederror"}),
    "two classes, leaf by leaf": (
        "two",
        {"objective": "binary:logistic", "grow_policy": "lossguide", "max_leaves": 12},
    ),
    "three classes": ("three", {"objective": "multi:softprob", "num_class": 3}),
    "counts": (
        "count",
        {"objective": "count:poisson", "num_parallel_tree": 2, "subsample": 0.7},
    ),
    "exact": ("number", {"objective": "reg:pseudohubererror", "tree_method": "exact"}),
    "sets": ("letters", {"objective": "reg:squarederror", "max_cat_to_onehot": 2}),
    "one letter or the others": (
        "letters",
        {"objective": "reg:squarederror", "max_cat_to_onehot": 100},
    ),
}


@cache
def of_xgboost(name: str) -> tuple[Any, Any, Any]:
    """Its model, ours, and its rows."""
    label, params = XGBOOST[name]
    data = xgboost.DMatrix(table(label), LABELS[label], enable_categorical=True)
    model = xgboost.train({"max_depth": 4, "nthread": 1, **params}, data, ROUNDS)
    return model, sw.load(model), data


@pytest.mark.parametrize("name", XGBOOST)
def test_scores_of_xgboost(name: str) -> None:
    model, ours, _ = of_xgboost(name)
    for theirs in ("weight", "gain", "total_gain", "cover", "total_cover"):
        score = model.get_score(importance_type=theirs)
        kind = f"xgboost_{theirs}" if "gain" in theirs else theirs
        names = model.feature_names or [f"f{j}" for j in range(ours.n_columns)]
        near(ours.importance(kind), [score.get(one, 0.0) for one in names], SINGLE)


@pytest.mark.parametrize("name", XGBOOST)
def test_contributions_of_xgboost(name: str) -> None:
    model, ours, data = of_xgboost(name)
    rows = table(XGBOOST[name][0])
    told = ours.explain(rows[FEW], by="cover")
    near(told.contributions(), model.predict(data, pred_contribs=True)[FEW], SINGLE)
    pairs = ours.explain(rows[PAIR], by="cover", interactions=True).values
    theirs = model.predict(data, pred_interactions=True)[PAIR][..., :-1, :-1]
    near(np.moveaxis(pairs, -1, 1) if pairs.ndim == 4 else pairs, theirs, SINGLE)


# --------------------------------------------------------------------------------------
# LightGBM
LIGHTGBM: dict[str, tuple[str, dict[str, Any]]] = {
    "squares": ("number", {"objective": "regression"}),
    "two classes": ("two", {"objective": "binary"}),
    "three classes": ("three", {"objective": "multiclass", "num_class": 3}),
    "dart": ("count", {"objective": "poisson", "boosting": "dart"}),
    "forest": (
        "number",
        {
            "objective": "regression",
            "boosting": "rf",
            "bagging_freq": 1,
            "bagging_fraction": 0.6,
        },
    ),
    "nothing missing": ("number", {"objective": "quantile", "use_missing": False}),
    "zeros missing": ("two", {"objective": "binary", "zero_as_missing": True}),
    "sets": ("letters", {"min_data_per_group": 5, "cat_smooth": 1}),
    "linear": ("number", {"objective": "regression", "linear_tree": True}),
}


@cache
def of_lightgbm(name: str) -> tuple[Any, Any]:
    label, params = LIGHTGBM[name]
    params = {
        "num_leaves": 12,
        "min_data_in_leaf": 5,
        "verbose": -1,
        "num_threads": 1,
        **params,
    }
    model = lightgbm.train(
        params, lightgbm.Dataset(table(label), LABELS[label]), ROUNDS
    )
    return model, sw.load(model)


@pytest.mark.parametrize("name", LIGHTGBM)
def test_importances_of_lightgbm(name: str) -> None:
    """Counts exactly; gains to the six digits that its text has of each."""
    model, ours = of_lightgbm(name)
    np.testing.assert_array_equal(
        ours.importance("split"), model.feature_importance("split")
    )
    near(ours.importance("lightgbm_gain"), model.feature_importance("gain"), 1e-6)


# of which it explains none
@pytest.mark.parametrize("name", [name for name in LIGHTGBM if name != "linear"])
def test_contributions_of_lightgbm(name: str) -> None:
    """In float64; it has no interactions. Those of a forest are of the sum of its
    trees.
    """
    model, ours = of_lightgbm(name)
    rows = table(LIGHTGBM[name][0])[FEW]
    told = ours.explain(rows).contributions()
    times = ROUNDS if name == "forest" else 1
    near(
        told.reshape(len(rows), -1) * times,
        model.predict(rows, pred_contrib=True),
        1e-12,
    )


# --------------------------------------------------------------------------------------
# CatBoost
CATBOOST: dict[str, tuple[str, dict[str, Any]]] = {
    "squares": ("number", {"loss_function": "RMSE"}),
    "two classes": ("two", {"loss_function": "Logloss"}),
    "three classes": ("three", {"loss_function": "MultiClass"}),
    "counts": ("count", {"loss_function": "Poisson", "nan_mode": "Max"}),
    "absolute": ("number", {"loss_function": "MAE", "depth": 2}),
    "each class": ("three", {"loss_function": "MultiClassOneVsAll"}),
    "level by level": ("two", {"loss_function": "Logloss", "grow_policy": "Depthwise"}),
    "leaf by leaf": (
        "number",
        {"loss_function": "RMSE", "grow_policy": "Lossguide", "max_leaves": 9},
    ),
    "quantile": ("number", {"loss_function": "Quantile:alpha=0.25;delta=0"}),
    "one letter or the others": (
        "text",
        {"loss_function": "RMSE", "one_hot_max_size": 99, "cat_features": ["letter"]},
    ),
}
# Of free trees CatBoost's Shapley values do not add up to its own scores (1.2.10: off
# by 1.4 for "leaf by leaf"), and the changes of the loss are made from them; those of
# symmetric trees do.
SYMMETRIC = [
    name for name, (_, params) in CATBOOST.items() if "grow_policy" not in params
]
# It adds up classes before it takes the size of an interaction, and those of softmax
# cancel; with categories it names pairs of numbers only, and has no prediction
# difference.
SINGLES = [name for name in SYMMETRIC if CATBOOST[name][0] not in ("three", "text")]


@cache
def of_catboost(name: str) -> tuple[Any, Any, Any]:
    label, params = CATBOOST[name]
    params = {
        "iterations": ROUNDS,
        "depth": 4,
        "thread_count": 1,
        "verbose": 0,
        "allow_writing_files": False,
        **params,
    }
    pool = catboost.Pool(
        table(label), LABELS[label], cat_features=params.pop("cat_features", None)
    )
    model = catboost.CatBoost(params).fit(pool)
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        # which brings the texts of categories
        model.save_model(path, format="json", pool=pool)
        return model, sw.load(path), pool


def figure(model: Any, kind: str, pool: Any = None, **more: Any) -> Any:
    return np.array(
        model.get_feature_importance(pool, type=kind, thread_count=1, **more)
    )


@pytest.mark.parametrize("name", CATBOOST)
def test_prediction_values_change(name: str) -> None:
    model, ours, _ = of_catboost(name)
    near(
        ours.importance("PredictionValuesChange", percent=True),
        figure(model, "PredictionValuesChange"),
        1e-12,
    )


def of_classes(y: Any, p: Any, weight: Any) -> float:
    """The mean over classes of the log loss of each against the others."""
    own = np.arange(3) == y[:, None]
    return float(-np.log(np.where(own, p, 1 - p)).mean())


# where CatBoost's is not that of our objective: half the deviance, say
METRICS: dict[str, Any] = {
    "counts": ("half", lambda y, p, weight: float((p - y * np.log(p)).mean()), False),
    "each class": ("one against all", of_classes, False),
    "quantile": (
        "pinball",
        lambda y, p, weight: float(np.maximum(0.25 * (y - p), -0.75 * (y - p)).mean()),
        False,
    ),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_loss_function_change(name: str) -> None:
    model, ours, pool = of_catboost(name)
    label = CATBOOST[name][0]
    near(
        ours.importance(
            "LossFunctionChange", table(label), LABELS[label], metric=METRICS.get(name)
        ),
        figure(model, "LossFunctionChange", pool),
        1e-12,
    )


@pytest.mark.parametrize("name", SINGLES)
def test_interaction(name: str) -> None:
    model, ours, _ = of_catboost(name)
    pairs = np.zeros((ours.n_columns, ours.n_columns))
    for first, second, score in figure(model, "Interaction"):
        pairs[int(first), int(second)] = score
    near(np.triu(ours.importance("Interaction", percent=True)) * 2, pairs, 1e-12)


@pytest.mark.parametrize("name", SINGLES)
def test_prediction_difference(name: str) -> None:
    """With nan_mode="Max" CatBoost takes a missing value for the largest in trees, for
    the smallest here: none then.
    """
    model, ours, _ = of_catboost(name)
    whole = Z if name == "counts" else X
    for rows in (whole[:2], whole[5:7], whole[[9, 3]]):
        near(
            ours.importance("PredictionDiff", rows),
            figure(model, "PredictionDiff", catboost.Pool(rows)),
            1e-12,
        )


@pytest.mark.parametrize("name", SYMMETRIC)
def test_shapley_values_of_catboost(name: str) -> None:
    model, ours, pool = of_catboost(name)
    rows = table(CATBOOST[name][0])
    near(
        ours.explain(rows[FEW]).contributions(),
        figure(model, "ShapValues", pool)[FEW],
        1e-12,
    )
    pairs = ours.explain(rows[PAIR], interactions=True).values
    theirs = figure(model, "ShapInteractionValues", pool.slice(np.arange(N)[PAIR]))[
        ..., :-1, :-1
    ]
    near(np.moveaxis(pairs, -1, 1) if pairs.ndim == 4 else pairs, theirs, 1e-12)
