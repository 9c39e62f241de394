"""Models that the real libraries trained, read and asked the same rows: raw scores,
predictions, importances.
"""

import json
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import sapwood as sw

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 6))
X[:, 3] = np.round(2 * X[:, 3])
X[RNG.random(X.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
LABELS = {
    "number": SIGNAL + RNG.normal(size=N),
    "two": (SIGNAL + RNG.normal(size=N) > 0).astype(int),
    "count": np.round(np.exp(SIGNAL / 2)),
    "positive": np.exp(SIGNAL / 2) + 0.1,
    "three": np.digitize(SIGNAL, [-1.0, 0.5]),
}
LABELS["pair"] = np.column_stack([LABELS["number"], LABELS["count"]])
# Rows that no training saw: beyond every threshold, between neighbouring float32, whole
# and missing rows.
EXTRA = np.vstack(
    [
        np.full((1, 6), v)
        for v in (np.nan, 0.0, -0.0, 1e300, -1e300, np.inf, -np.inf, 0.1, 1 / 3)
    ]
)
ROWS = np.vstack([X, EXTRA, X[:50] * (1 + 3e-8)])
# XGBoost refuses infinities, also those of float32
TAME = ROWS[~(np.abs(ROWS) > 1e30).any(axis=1)]


def close(ours: Any, theirs: Any, tolerance: float) -> None:
    """The same shape, and the same numbers to a tolerance; 0 asks for the same bits."""
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    if tolerance == 0:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(
            ours,
            theirs,
            rtol=tolerance,
            atol=tolerance * max(1.0, np.abs(theirs).max()),
        )


# --------------------------------------------------------------------------------------
# XGBoost
SINGLE = 2e-6  # XGBoost adds a dozen trees in float32
XGBOOST = [
    ("reg:squarederror", "number"),
    ("reg:absoluteerror", "number"),
    ("reg:pseudohubererror", "number"),
    ("reg:quantileerror", "number"),
    ("reg:squaredlogerror", "count"),
    ("reg:logistic", "two"),
    ("binary:logistic", "two"),
    ("binary:logitraw", "two"),
    ("binary:hinge", "two"),
    ("count:poisson", "count"),
    ("reg:gamma", "positive"),
    ("reg:tweedie", "count"),
    ("multi:softprob", "three"),
    ("rank:pairwise", "two"),
]
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dart": {"booster": "dart", "rate_drop": 0.3, "one_drop": 1},
    "parallel": {
        "grow_policy": "lossguide",
        "max_leaves": 9,
        "num_parallel_tree": 2,
        "subsample": 0.6,
    },
}


def xgboost_model(objective: str, label: str, **more: Any) -> Any:
    xgboost = pytest.importorskip("xgboost")
    params = {"objective": objective, "max_depth": 4, "nthread": 1, **more}
    params |= {"num_class": 3} if label == "three" else {}
    params |= {"quantile_alpha": [0.2, 0.5]} if objective == "reg:quantileerror" else {}
    data = xgboost.DMatrix(X, LABELS[label])
    if objective.startswith("rank"):
        data.set_group([N // 2, N // 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions call booster="dart" old
        return xgboost.train(params, data, 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("objective", "label"), XGBOOST)
def test_xgboost(objective, label, kind):
    model = xgboost_model(objective, label, **KINDS[kind])
    booster = sw.load(model)
    rows = pytest.importorskip("xgboost").DMatrix(TAME)
    close(
        booster.predict(TAME, raw=True), model.predict(rows, output_margin=True), SINGLE
    )
    with np.errstate(over="ignore"):
        close(booster.predict(TAME), model.predict(rows), 2 * SINGLE)
    for ours, theirs in {
        "xgboost_gain": "gain",
        "cover": "cover",
        "weight": "weight",
    }.items():
        score = model.get_score(importance_type=theirs)
        close(
            booster.importance(ours),
            [score.get(f"f{j}", 0.0) for j in range(6)],
            SINGLE,
        )


def test_both_files_of_xgboost_are_the_same_model(tmp_path):
    model = xgboost_model("binary:logistic", "two")
    prints = {sw.load(model).fingerprint()}
    for name in ("model.json", "model.ubj"):
        model.save_model(tmp_path / name)
        prints.add(sw.load(tmp_path / name).fingerprint())
    assert len(prints) == 1


def test_xgboost_vector_leaves():
    xgboost = pytest.importorskip("xgboost")
    params = {
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "max_depth": 3,
        "nthread": 1,
    }
    model = xgboost.train(params, xgboost.DMatrix(X, LABELS["pair"]), 8)
    close(
        sw.load(model).predict(TAME, raw=True),
        model.predict(xgboost.DMatrix(TAME), output_margin=True),
        SINGLE,
    )


def test_xgboost_estimators_that_stopped_early():
    xgboost = pytest.importorskip("xgboost")
    y = LABELS["number"]
    model = xgboost.XGBRegressor(
        n_estimators=80, learning_rate=0.8, early_stopping_rounds=3, n_jobs=1
    )
    model.fit(X[:300], y[:300], eval_set=[(X[300:], y[300:])], verbose=False)
    booster = sw.load(model)
    assert booster.n_rounds == booster.best_round == model.best_iteration + 1 < 80
    close(booster.predict(X), model.predict(X), SINGLE)


def test_files_of_xgboost_estimators_that_stopped_early(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(
        n_estimators=60, learning_rate=1.0, early_stopping_rounds=3, n_jobs=1
    )
    y = LABELS["two"]
    model.fit(
        X[: N // 2], y[: N // 2], eval_set=[(X[N // 2 :], y[N // 2 :])], verbose=False
    )
    for name in ("m.json", "m.ubj"):
        model.save_model(tmp_path / name)
        ours = sw.load(tmp_path / name)
        assert (
            ours.best_round
            == model.best_iteration + 1
            < model.get_booster().num_boosted_rounds()
        )
        np.testing.assert_allclose(
            ours.predict(X), model.predict_proba(X)[:, 1], atol=1e-6
        )
    with pytest.raises(sw.errors.ParameterError, match="another library"):
        ours.influence(X[:1], X, y)


def test_what_estimators_say_beside_their_trees_is_refused():
    xgboost = pytest.importorskip("xgboost")
    lightgbm = pytest.importorskip("lightgbm")
    model = xgboost.XGBRegressor(n_estimators=2, missing=-999.0, n_jobs=1).fit(
        np.nan_to_num(X), LABELS["number"]
    )
    for odd, why in (
        (model, "missing=-999"),
        (xgboost.XGBRegressor(), "not fitted"),
        (lightgbm.LGBMRegressor(), "not fit"),
    ):
        with pytest.raises(sw.errors.ModelFormatError, match=why):
            sw.load(odd)


def test_our_own_estimators_load():
    model = sw.SapwoodRegressor(n_estimators=2).fit(X, LABELS["number"])
    assert sw.load(model) is model.booster_


def test_xgboost_names():
    xgboost = pytest.importorskip("xgboost")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("uvwxyz"))
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(frame, LABELS["two"])
    booster = sw.load(model)
    assert booster.feature_names == tuple("uvwxyz")
    close(
        booster.predict(frame[list("zyxwvu")]), model.predict_proba(frame)[:, 1], SINGLE
    )


# --------------------------------------------------------------------------------------
# LightGBM
LIGHTGBM = [
    ("regression", "number"),
    ("regression_l1", "number"),
    ("huber", "number"),
    ("fair", "number"),
    ("quantile", "number"),
    ("mape", "number"),
    ("poisson", "count"),
    ("gamma", "positive"),
    ("tweedie", "count"),
    ("binary", "two"),
    ("cross_entropy", "two"),
    ("cross_entropy_lambda", "two"),
    ("multiclass", "three"),
    ("multiclassova", "three"),
]
LIGHTGBM_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dart": {"boosting": "dart"},
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
    "nothing missing": {"use_missing": False},
    "zeros missing": {"zero_as_missing": True},
}


def lightgbm_model(objective: str, label: str, **more: Any) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    params = {
        "objective": objective,
        "num_leaves": 9,
        "min_data_in_leaf": 5,
        "verbose": -1,
        "num_threads": 1,
        **more,
    }
    params |= {"num_class": 3} if label == "three" else {}
    return lightgbm.train(params, lightgbm.Dataset(X, LABELS[label]), 8)


@pytest.mark.parametrize("kind", LIGHTGBM_KINDS)
@pytest.mark.parametrize(("objective", "label"), LIGHTGBM)
def test_lightgbm(objective, label, kind):
    model = lightgbm_model(objective, label, **LIGHTGBM_KINDS[kind])
    booster = sw.load(model)
    if kind != "forest":  # of which LightGBM calls the sum raw, not the mean
        close(booster.predict(ROWS, raw=True), model.predict(ROWS, raw_score=True), 0)
    close(booster.predict(ROWS), model.predict(ROWS), 1e-15)  # our exp and theirs
    # six digits in the text
    close(booster.importance("lightgbm_gain"), model.feature_importance("gain"), 1e-6)
    close(booster.importance("split"), model.feature_importance("split"), 0)


@pytest.mark.parametrize("boosting", ["gbdt", "dart"])
@pytest.mark.parametrize("objective", ["regression", "poisson", "binary", "multiclass"])
def test_lightgbm_linear_leaves(objective, boosting):
    """Bit for bit, missing values too; of infinite ones LightGBM makes infinities, and
    we the leaf's constant value.
    """
    model = lightgbm_model(
        objective, dict(LIGHTGBM)[objective], linear_tree=True, boosting=boosting
    )
    booster = sw.load(model)
    assert booster.linear and (booster.trees.linear.linear_column >= 0).any()
    rows = ROWS[~np.isinf(ROWS).any(axis=1)]
    close(booster.predict(rows, raw=True), model.predict(rows, raw_score=True), 0)


def test_lightgbm_lies_about_linear_leaves():
    text = lightgbm_model("regression", "number", linear_tree=True).model_to_string()
    at = text.index("num_features=", text.index("Tree=1"))
    end = text.index("\n", at)
    counts = text[at:end].partition("=")[2].split()
    for lie in (
        ["-1", *counts[1:]],
        ["9", *counts[1:]],
        [str(2**40), *counts[1:]],
        counts[1:],
    ):
        with pytest.raises(sw.errors.ModelFormatError):
            sw.load((text[:at] + "num_features=" + " ".join(lie) + text[end:]).encode())
    beyond = (
        text[: text.index("leaf_features=", at)]
        + "leaf_features="
        + "6 " * sum(map(int, counts))
    )
    with pytest.raises(sw.errors.ModelFormatError):
        sw.load((beyond + text[text.index("\nleaf_coeff", at) :]).encode())


def test_zeros_missing_here_and_there_are_refused():
    text = lightgbm_model(
        "regression", "number", zero_as_missing=True
    ).model_to_string()
    at = text.index("decision_type=") + len("decision_type=")
    with pytest.raises(sw.errors.ModelFormatError, match="at some splits"):
        sw.load((text[:at] + "2" + text[at + 1 :]).encode())


@pytest.mark.parametrize(
    "more", [{"reg_sqrt": True}, {"sigmoid": 2.0}, {"sigmoid": 0.7}], ids=str
)
def test_lightgbm_bends_its_link(more):
    model = lightgbm_model(
        *(("regression", "number") if "reg_sqrt" in more else ("binary", "two")), **more
    )
    booster = sw.load(model)
    close(booster.predict(ROWS), model.predict(ROWS), 1e-15)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(booster)).predict(ROWS), booster.predict(ROWS)
    )


def test_lightgbm_file_and_names(tmp_path):
    model = lightgbm_model("binary", "two")
    model.save_model(tmp_path / "model.txt")
    booster = sw.load(tmp_path / "model.txt")
    assert booster.fingerprint() == sw.load(model).fingerprint()
    assert not booster.named


# --------------------------------------------------------------------------------------
# scikit-learn
def sklearn_models() -> dict[str, tuple[Any, str]]:
    from sklearn import ensemble as e
    from sklearn import tree as t

    hist = {
        "max_iter": 6,
        "max_leaf_nodes": 9,
        "min_samples_leaf": 5,
        "random_state": 0,
    }
    few = {"n_estimators": 6, "random_state": 0}
    return {
        "hist squared": (e.HistGradientBoostingRegressor(**hist), "number"),
        "hist poisson": (
            e.HistGradientBoostingRegressor(loss="poisson", **hist),
            "count",
        ),
        "hist gamma": (
            e.HistGradientBoostingRegressor(loss="gamma", **hist),
            "positive",
        ),
        "hist quantile": (
            e.HistGradientBoostingRegressor(loss="quantile", quantile=0.3, **hist),
            "number",
        ),
        "hist two": (e.HistGradientBoostingClassifier(**hist), "two"),
        "hist three": (e.HistGradientBoostingClassifier(**hist), "three"),
        "squared": (e.GradientBoostingRegressor(**few), "number"),
        "huber": (e.GradientBoostingRegressor(loss="huber", **few), "number"),
        "zero": (e.GradientBoostingRegressor(init="zero", **few), "number"),
        "two": (e.GradientBoostingClassifier(**few), "two"),
        "three": (e.GradientBoostingClassifier(**few), "three"),
        "exponential": (e.GradientBoostingClassifier(loss="exponential", **few), "two"),
        "forest": (e.RandomForestRegressor(**few), "number"),
        "forest of two targets": (e.RandomForestRegressor(**few), "pair"),
        "extra forest": (e.ExtraTreesRegressor(**few), "number"),
        "forest of two": (e.RandomForestClassifier(**few), "two"),
        "forest of three": (e.RandomForestClassifier(**few), "three"),
        "extra forest of three": (e.ExtraTreesClassifier(**few), "three"),
        "tree": (t.DecisionTreeRegressor(max_depth=5, random_state=0), "number"),
        "tree of three": (
            t.DecisionTreeClassifier(max_depth=5, random_state=0),
            "three",
        ),
        "extra tree": (t.ExtraTreeRegressor(max_depth=5, random_state=0), "number"),
    }


@pytest.mark.parametrize("name", sklearn_models())
def test_sklearn(name):
    model, label = sklearn_models()[name]
    friedman = type(model).__name__.startswith("GradientBoosting")
    finite = np.abs(ROWS) < 1e30  # its own trees refuse larger ones
    train, rows = (
        (np.nan_to_num(X), np.where(finite, ROWS, 0.0))
        if friedman
        else (X, np.where(finite, ROWS, np.nan))
    )
    model.fit(train, LABELS[label])
    booster = sw.load(model)
    theirs = (
        model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)
    )
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(booster.classes, model.classes_)
        theirs = theirs[:, 1] if len(model.classes_) == 2 else theirs
    bits = booster.link == "identity"
    close(booster.predict(rows), theirs, 0 if bits else 1e-15)
    if hasattr(model, "_raw_predict"):
        raw = model._raw_predict(rows.astype(np.float32) if friedman else rows)
        close(
            booster.predict(rows, raw=True), raw[:, 0] if raw.shape[1] == 1 else raw, 0
        )


# --------------------------------------------------------------------------------------
# CatBoost
CATBOOST = [
    ("RMSE", "number"),
    ("MAE", "number"),
    ("Quantile:alpha=0.3", "number"),
    ("Poisson", "count"),
    ("Tweedie:variance_power=1.5", "count"),
    ("Logloss", "two"),
    ("CrossEntropy", "two"),
    ("MultiClass", "three"),
    ("MultiClassOneVsAll", "three"),
    ("MultiRMSE", "pair"),
]
CATBOOST_KINDS = {
    "symmetric": {},
    "missing last": {"nan_mode": "Max"},
    "leaf-wise": {"grow_policy": "Lossguide", "max_leaves": 9},
    "depth-wise": {"grow_policy": "Depthwise"},
}


def catboost_model(loss: str, label: str, **more: Any) -> Any:
    catboost = pytest.importorskip("catboost")
    params = {
        "loss_function": loss,
        "iterations": 8,
        "depth": 4,
        "thread_count": 1,
        "verbose": 0,
        **more,
    }
    return catboost.CatBoost(params | {"allow_writing_files": False}).fit(
        X, LABELS[label]
    )


@pytest.mark.parametrize("kind", CATBOOST_KINDS)
@pytest.mark.parametrize(("loss", "label"), CATBOOST)
def test_catboost(loss, label, kind):
    model = catboost_model(loss, label, **CATBOOST_KINDS[kind])
    # It adds the bias last where we start from it: half a unit in the last place, now
    # and then.
    close(
        sw.load(model).predict(ROWS, raw=True),
        model.predict(ROWS, prediction_type="RawFormulaVal"),
        1e-15,
    )


def test_catboost_predictions_and_files(tmp_path):
    model = catboost_model("Logloss", "two")
    close(
        sw.load(model).predict(ROWS),
        model.predict(ROWS, prediction_type="Probability")[:, 1],
        1e-15,
    )
    prints = {sw.load(model).fingerprint()}
    for name, kind in {"model.json": "json", "model.cbm": "cbm"}.items():
        model.save_model(str(tmp_path / name), format=kind)
        prints.add(sw.load(tmp_path / name).fingerprint())
    assert len(prints) == 1


# --------------------------------------------------------------------------------------
# what they keep
@pytest.mark.parametrize("make", [xgboost_model, lightgbm_model, catboost_model])
def test_imported_models_are_models(make, tmp_path):
    name = {
        "xgboost_model": "multi:softprob",
        "lightgbm_model": "multiclass",
        "catboost_model": "MultiClass",
    }
    booster = sw.load(make(name[make.__name__], "three"))
    booster.save(tmp_path / "model.sapwood")
    again = sw.load(tmp_path / "model.sapwood")
    np.testing.assert_array_equal(again.predict(ROWS), booster.predict(ROWS))
    assert len(list(booster.staged_predict(X))) == 8
    assert booster.importance("split").sum() > 0
    assert "if" in booster.to_text() or "<=" in booster.to_text()
    leaves = booster.predict_leaves(X)
    assert leaves.shape == (N, 24)


def test_other_objects_are_refused():
    with pytest.raises(sw.errors.ModelFormatError, match="Cannot load a object"):
        sw.load(object())
    from sklearn.linear_model import LinearRegression

    with pytest.raises(sw.errors.ModelFormatError, match="LinearRegression"):
        sw.load(LinearRegression().fit(np.nan_to_num(X), LABELS["number"]))


# --------------------------------------------------------------------------------------
# hostile files
def saved(model: Any, folder: Any) -> bytes:
    model.save_model(str(folder / "model.json"), format="json")
    return (folder / "model.json").read_bytes()


SMALL_FILES = {
    "xgboost json": lambda _: bytes(
        xgboost_model("binary:logistic", "two", max_depth=2).save_raw("json")
    ),
    "xgboost ubjson": lambda _: bytes(
        xgboost_model("binary:logistic", "two", max_depth=2).save_raw("ubj")
    ),
    "lightgbm": lambda _: (
        lightgbm_model("binary", "two", num_leaves=3).model_to_string().encode()
    ),
    "catboost": lambda folder: saved(catboost_model("Logloss", "two", depth=2), folder),
    "catboost, free trees": lambda folder: saved(
        catboost_model("RMSE", "number", grow_policy="Depthwise"), folder
    ),
}


@pytest.mark.parametrize("kind", SMALL_FILES)
def test_damaged_files_raise_our_error_or_load(kind, tmp_path):
    raw = SMALL_FILES[kind](tmp_path)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        damaged = bytearray(raw)
        if rng.random() < 0.3:
            del damaged[int(rng.integers(len(raw))) :]
        else:
            for at in rng.integers(0, len(raw), 3):
                damaged[at] = rng.integers(256)
        try:
            sw.load(bytes(damaged)).predict(X[:5], raw=True)
        except sw.errors.ModelFormatError:
            refused += 1
    assert refused > 100


def lie(raw: bytes, edit: Any) -> bytes:
    found = json.loads(raw)
    edit(found["learner"])
    return json.dumps(found).encode()


def first(model: Any) -> Any:
    return model["gradient_booster"]["model"]["trees"][0]


def wide(tree: Any) -> None:
    tree["tree_param"]["size_leaf_vector"] = str(2**30)
    tree["left_children"] = [1] * len(tree["left_children"])
    tree["base_weights"] = []


LIES = {
    "a cycle": lambda m: first(m)["left_children"].__setitem__(1, 0),
    "a child beyond": lambda m: first(m)["left_children"].__setitem__(0, 99),
    "two parents": lambda m: first(m)["right_children"].__setitem__(0, 1),
    "a column beyond": lambda m: first(m)["split_indices"].__setitem__(0, 6),
    "no number": lambda m: first(m)["split_conditions"].__setitem__(0, "x"),
    "not finite": lambda m: first(m)["split_conditions"].__setitem__(-1, float("nan")),
    "an output beyond": lambda m: m["gradient_booster"]["model"][
        "tree_info"
    ].__setitem__(0, 1),
    "a tree fewer": lambda m: m["gradient_booster"]["model"]["trees"].pop(),
    "base score": lambda m: m["learner_model_param"].__setitem__("base_score", "2"),
    "objective": lambda m: m["objective"].__setitem__("name", "reg:unheard"),
    "linear": lambda m: m["gradient_booster"].__setitem__("name", "gblinear"),
    "names": lambda m: m.__setitem__("feature_names", ["a"]),
    "no learner parts": lambda m: m.clear(),
    "vectors wider than the file": lambda m: wide(first(m)),
    "a child fewer": lambda m: first(m)["right_children"].pop(),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_in_a_document_raise(name):
    raw = bytes(xgboost_model("binary:logistic", "two", max_depth=2).save_raw("json"))
    with pytest.raises(sw.errors.ModelFormatError):
        sw.load(lie(raw, LIES[name]))


CATBOOST_LIES = {
    "columns far apart": lambda m: m["features_info"]["float_features"][0].__setitem__(
        "flat_feature_index", 2**30
    ),
    "a split that is no object": lambda m: m["oblivious_trees"][0][
        "splits"
    ].__setitem__(0, 7),
    "a column beyond": lambda m: m["oblivious_trees"][0]["splits"][0].__setitem__(
        "float_feature_index", 99
    ),
    "a value too few": lambda m: m["oblivious_trees"][0]["leaf_values"].pop(),
    "a bias that is text": lambda m: m.__setitem__("scale_and_bias", [1, ["x"]]),
    "trees that are no list": lambda m: m.__setitem__("oblivious_trees", {}),
    "text columns": lambda m: m["features_info"].__setitem__("text_features", [1]),
}


@pytest.mark.parametrize("name", CATBOOST_LIES)
def test_lies_in_a_document_of_catboost_raise(name, tmp_path):
    found = json.loads(saved(catboost_model("Logloss", "two", depth=2), tmp_path))
    CATBOOST_LIES[name](found)
    with pytest.raises(sw.errors.ModelFormatError):
        sw.load(json.dumps(found).encode())


# --------------------------------------------------------------------------------------
# categories
def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    letters = pandas.Categorical.from_codes(RNG_C, list("qwertyuio"))
    numbers = pandas.Categorical.from_codes(RNG_E, [10, 20, 30, 40, 50])
    table = pandas.DataFrame(
        {"x": X[:, 0], "letter": letters, "number": numbers, "z": X[:, 4]}
    )
    table.loc[::17, "letter"] = None
    return table


RNG_C, RNG_E = RNG.integers(0, 9, N), RNG.integers(0, 5, N)
EFFECT = RNG.normal(size=9)[RNG_C] * 2 + np.nan_to_num(X[:, 0]) + (RNG_E == 2)


@pytest.mark.parametrize("onehot", [2, 100])
def test_xgboost_categories(onehot):
    xgboost = pytest.importorskip("xgboost")
    table = frame()
    data = xgboost.DMatrix(table, EFFECT, enable_categorical=True)
    model = xgboost.train(
        {"max_depth": 4, "max_cat_to_onehot": onehot, "nthread": 1}, data, 6
    )
    booster = sw.load(model)
    assert len(booster.trees.set_code)
    close(
        booster.predict(table, raw=True),
        model.predict(data, output_margin=True),
        SINGLE,
    )


def test_xgboost_categories_as_numbers():
    xgboost = pytest.importorskip("xgboost")
    table = np.column_stack([X[:, 0], RNG_C, RNG_E, X[:, 4]])
    data = xgboost.DMatrix(
        table,
        EFFECT,
        enable_categorical=True,
        feature_types=["float", "c", "c", "float"],
    )
    model = xgboost.train(
        {"max_depth": 4, "max_cat_to_onehot": 2, "nthread": 1}, data, 6
    )
    close(
        sw.load(model).predict(table, raw=True),
        model.predict(data, output_margin=True),
        SINGLE,
    )


@pytest.mark.parametrize("onehot", [2, 100])
def test_lightgbm_categories(onehot):
    lightgbm = pytest.importorskip("lightgbm")
    table = frame()
    params = {
        "num_leaves": 9,
        "min_data_in_leaf": 5,
        "min_data_per_group": 5,
        "cat_smooth": 1,
        "verbose": -1,
    }
    params |= {"max_cat_to_onehot": onehot, "num_threads": 1}
    model = lightgbm.train(params, lightgbm.Dataset(table, EFFECT), 6)
    booster = sw.load(model)
    assert len(booster.trees.set_code)
    unseen = table.head(20).copy()  # LightGBM makes NaN of a value it never saw
    unseen["letter"] = unseen["letter"].cat.rename_categories({"q": "new"})
    for rows in (table, unseen):
        close(booster.predict(rows, raw=True), model.predict(rows, raw_score=True), 0)
    numbers = np.column_stack([X[:, 0], RNG_C, RNG_E, X[:, 4]])
    model = lightgbm.train(
        params, lightgbm.Dataset(numbers, EFFECT, categorical_feature=[1, 2]), 6
    )
    numbers[:5, 1], numbers[5:9, 1] = 77, np.nan
    close(
        sw.load(model).predict(numbers, raw=True),
        model.predict(numbers, raw_score=True),
        0,
    )


def test_sklearn_categories():
    from sklearn.ensemble import HistGradientBoostingRegressor

    table = frame()
    model = HistGradientBoostingRegressor(
        max_iter=6, categorical_features="from_dtype", min_samples_leaf=5
    )
    model.fit(table, EFFECT)
    booster = sw.load(model)
    assert len(booster.trees.set_code)
    close(booster.predict(table), model.predict(table), 0)


def catboost_frame() -> Any:
    return frame().astype({"letter": object, "number": str}).fillna({"letter": "none"})


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
def test_catboost_categories_one_hot(policy, tmp_path):
    """Of which a file saved with the rows holds the texts; a text it does not know
    answers every question with no.
    """
    catboost = pytest.importorskip("catboost")
    rows = catboost.Pool(catboost_frame(), EFFECT, cat_features=[1, 2])
    params = {
        "iterations": 8,
        "depth": 4,
        "grow_policy": policy,
        "one_hot_max_size": 99,
        "verbose": 0,
    }
    model = catboost.CatBoost(
        params | {"allow_writing_files": False, "thread_count": 1}
    ).fit(rows)
    with pytest.raises(sw.errors.ModelFormatError, match="hashes"):
        sw.load(model)
    model.save_model(str(tmp_path / "model.json"), format="json", pool=rows)
    booster = sw.load(tmp_path / "model.json")
    assert len(booster.trees.set_code)
    table = catboost_frame()
    table.loc[:5, "letter"] = "new"
    close(booster.predict(table), model.predict(table), 1e-15)


def test_catboost_target_statistics_are_refused():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=3, verbose=0, allow_writing_files=False, cat_features=[1, 2]
    )
    with pytest.raises(sw.errors.ModelFormatError, match="target statistics"):
        sw.load(model.fit(catboost_frame(), EFFECT))


# --------------------------------------------------------------------------------------
# classes
@pytest.mark.parametrize("label", ["two", "three"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_classes(library, label, tmp_path):
    """Estimators bring their labels (XGBoost's are 0, 1, ...); of the peers' files
    CatBoost's have them.
    """
    peer = pytest.importorskip(library)
    y = (
        LABELS[label]
        if library == "xgboost"
        else np.array(["low", "mid", "top"])[LABELS[label]]
    )
    make = {
        "xgboost": "XGBClassifier",
        "lightgbm": "LGBMClassifier",
        "catboost": "CatBoostClassifier",
    }[library]
    quiet: dict[str, dict[str, Any]] = {
        "xgboost": {"n_jobs": 1},
        "lightgbm": {"n_jobs": 1, "verbose": -1},
        "catboost": {"thread_count": 1, "verbose": 0, "allow_writing_files": False},
    }
    model = getattr(peer, make)(n_estimators=5, **quiet[library]).fit(X, y)
    booster = sw.load(model)
    booster.save(tmp_path / "model.sapwood")
    np.testing.assert_array_equal(
        sw.load(tmp_path / "model.sapwood").classes, model.classes_
    )
    p = booster.predict(X)
    found = booster.classes[p.argmax(axis=1) if p.ndim == 2 else (p > 0.5).astype(int)]
    np.testing.assert_array_equal(found, model.predict(X).ravel())


def test_several_labels_are_no_classes():
    catboost = pytest.importorskip("catboost")
    y = np.column_stack([LABELS["two"], 1 - LABELS["two"]])
    params = {
        "loss_function": "MultiLogloss",
        "iterations": 2,
        "verbose": 0,
        "allow_writing_files": False,
    }
    assert sw.load(catboost.CatBoostClassifier(**params).fit(X, y)).classes is None
