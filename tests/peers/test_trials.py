"""What programs written for the peers brought to light: each case here failed before,
or misled without a word.
"""

import subprocess
import sys
import warnings
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as skm

import sapwood as sw
from sapwood.errors import ParameterError
from sapwood.params import resolve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=400) > 0).astype(float)
TRAIN, VALID = slice(0, 300), slice(300, 400)
DATA = sw.Dataset(X[TRAIN], Y[TRAIN])
OTHER = sw.Dataset(X[VALID], Y[VALID], reference=DATA)
QUICK = {"objective": "logistic", "n_estimators": 30, "learning_rate": 0.3}


# ---- Models of LightGBM --------------------------------------------------------------


def lightgbm_model(table: pd.DataFrame, y: Any, **fit: Any) -> lgb.LGBMRegressor:
    return lgb.LGBMRegressor(n_estimators=8, min_child_samples=2, verbose=-1).fit(
        table, y, **fit
    )


def tables() -> dict[str, tuple[pd.DataFrame, dict[str, Any]]]:
    """Data frames whose model file has the values of categories, but not their
    columns.
    """
    n = 500
    number = RNG.integers(0, 4, n)
    text = RNG.choice(["lo", "mid", "hi"], n)
    ordered = pd.Categorical(text, ["lo", "mid", "hi"], ordered=True)
    constant = pd.Categorical(["z"] * n)
    some = pd.Categorical(RNG.choice(list("abcde"), n))
    fractions = pd.Categorical(RNG.choice([0.5, 1.5, 2.5, 4.0], n))
    return {
        "ordered beside integers": (
            pd.DataFrame({"c": number, "o": ordered}),
            {"categorical_feature": ["c"]},
        ),
        "ordered alone": (
            pd.DataFrame({"x": X[:, 0][RNG.integers(0, 400, n)], "o": ordered}),
            {},
        ),
        "constant": (pd.DataFrame({"k": constant, "a": some}), {}),
        "integers beside categories": (
            pd.DataFrame({"i": number + 7, "a": some}),
            {"categorical_feature": ["i", "a"]},
        ),
        "fractions": (
            pd.DataFrame({"f": fractions, "x": X[:, 1][RNG.integers(0, 400, n)]}),
            {},
        ),
    }


@pytest.mark.parametrize("name", tables())
def test_categories_of_a_lightgbm_model_go_to_their_columns(name: str) -> None:
    table, fit = tables()[name]
    codes = [
        table[c].cat.codes if hasattr(table[c], "cat") else table[c] for c in table
    ]
    y = sum(np.sin(7 * np.asarray(c, float)) * (k + 1) for k, c in enumerate(codes))
    model = lightgbm_model(table, y, **fit)
    for rows in (table, table.iloc[:3], table.iloc[::-1]):
        np.testing.assert_array_equal(sw.load(model).predict(rows), model.predict(rows))


def test_categories_that_could_be_of_two_columns_keep_their_codes() -> None:
    n = 300
    table = pd.DataFrame(
        {
            "c": RNG.integers(0, 3, n),
            "o": pd.Categorical(RNG.choice(list("abc"), n), ordered=True),
        }
    )
    model = lightgbm_model(
        table, table["c"] * 2.0 + table["o"].cat.codes, categorical_feature=["c"]
    )
    with pytest.warns(
        UserWarning,
        match=r"does not say which of the columns \['c', 'o'\] has the categories",
    ):
        ours = sw.load(model)
    np.testing.assert_array_equal(
        ours.predict(table.assign(o=table["o"].cat.codes)), model.predict(table)
    )


def test_tiny_numbers_are_zeros_where_zeros_are_missing() -> None:
    table = np.where(RNG.random((300, 2)) < 0.4, 0.0, RNG.normal(size=(300, 2)))
    y = np.where(table[:, 0] == 0, 3.0, table[:, 0])
    booster = lgb.train(
        {"zero_as_missing": True, "verbose": -1, "min_data_in_leaf": 2},
        lgb.Dataset(table, y),
        5,
    )
    rows = np.array([[1e-36, 1.0], [-1e-36, 1.0], [2e-35, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(sw.load(booster).predict(rows), booster.predict(rows))


# ---- Recipes, groups, folds, shap, exit ----------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "objective", "field", "level"),
    [
        ("lightgbm", "quantile", "quantile_alpha", 0.9),
        ("classic", "quantile", "quantile_alpha", 0.9),
        ("lightgbm", "huber", "huber_delta", 0.9),
    ],
)
def test_a_recipe_has_the_level_of_its_library(
    recipe: str, objective: str, field: str, level: float
) -> None:
    assert (
        resolve({"recipe": recipe, "objective": objective}, fields={field: field})[
            field
        ]
        == level
    )
    own = resolve(
        {"recipe": recipe, "objective": objective, field: 0.25}, fields={field: field}
    )
    assert own[field] == 0.25


def test_sizes_of_groups_may_be_unsigned() -> None:
    sizes = np.array([100, 150, 50], np.uint64)
    assert (
        sw.Dataset(X[TRAIN], Y[TRAIN], group=sizes).group.tolist()
        == [0] * 100 + [1] * 150 + [2] * 50
    )


def test_a_row_that_a_fold_has_twice_counts_twice() -> None:
    rows = RNG.integers(0, 300, 300)
    held = np.setdiff1d(np.arange(300), rows)
    given = sw.cv(QUICK, DATA, folds=[(rows, np.repeat(held, 2))])["logloss_mean"]
    count = np.bincount(rows, minlength=300).astype(float)
    weighted = sw.train(QUICK, DATA.with_weight(count))  # in the same bins
    once = sw.cv(QUICK, DATA, folds=[(np.unique(rows), held)])["logloss_mean"]
    measured = skm.log_loss(Y[held], weighted.predict(X[held]))
    assert (
        given[-1] == pytest.approx(measured, rel=1e-9)
        and abs(given[-1] - once[-1]) > 1e-6
    )


def test_symmetric_trees_go_to_shap_without_a_background() -> None:
    shap = pytest.importorskip("shap")
    booster = sw.train(
        {"grow_policy": "symmetric", "max_depth": 5, "n_estimators": 5}, DATA
    )
    # some leaves are empty
    assert (booster.trees.count[booster.trees.left == 0] == 0).any()
    values = shap.TreeExplainer(booster.to_shap()).shap_values(X[:20])
    np.testing.assert_allclose(values, booster.explain(X[:20]).values, atol=1e-9)


def test_nothing_is_said_at_exit_while_a_thread_holds_a_model() -> None:
    code = (
        "import threading, time, sapwood as sw\n"
        "b = sw.train({'n_estimators': 2}, sw.Dataset([[0.0], [1.0]] * 20, [0.0, 1.0] * 20)); b.predict([[1.0]])\n"
        "threading.Thread(target=lambda own: time.sleep(60), args=(b,), daemon=True).start()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""


# ---- What was wrong without a word ---------------------------------------------------


def gini(y: Any, prediction: Any) -> float:
    return 2 * skm.roc_auc_score(y, prediction) - 1


@pytest.mark.parametrize(
    "metric",
    [
        skm.roc_auc_score,
        skm.average_precision_score,
        skm.make_scorer(skm.roc_auc_score, response_method="predict_proba"),
        ("gini", gini, True),
        lambda y_true, y_pred: ("gini", gini(y_true, y_pred), True),
        lambda preds, dtrain: ("auc", skm.roc_auc_score(dtrain.get_label(), preds)),
    ],
)
def test_early_stopping_knows_that_a_score_is_better_where_higher(metric: Any) -> None:
    booster = sw.train(
        {**QUICK, "early_stopping_rounds": 5, "eval_metric": metric}, DATA, valid=OTHER
    )
    ((values),) = (list(one) for one in booster.history["valid"].values())
    assert booster.best_round == int(np.argmax(values)) + 1


@pytest.mark.parametrize(
    "metric",
    [skm.log_loss, skm.brier_score_loss, lambda y, p: float(((y - p) ** 2).mean())],
)
def test_early_stopping_knows_that_a_loss_is_better_where_lower(metric: Any) -> None:
    booster = sw.train(
        {**QUICK, "early_stopping_rounds": 5, "eval_metric": metric}, DATA, valid=OTHER
    )
    ((values),) = (list(one) for one in booster.history["valid"].values())
    assert booster.best_round == int(np.argmin(values)) + 1


def test_a_score_of_the_users_own_must_say_its_direction() -> None:
    with pytest.raises(
        ParameterError,
        match=r"'gini', a function whose name is one of a score. Is higher better",
    ):
        sw.train(
            {**QUICK, "early_stopping_rounds": 5, "eval_metric": gini},
            DATA,
            valid=OTHER,
        )
    # measured, not watched
    assert sw.train({**QUICK, "eval_metric": gini}, DATA, valid=OTHER).n_rounds == 30


def logistic(score: Any, y: Any) -> tuple[Any, Any]:
    p = 1 / (1 + np.exp(-score))
    return p - y, p * (1 - p)


def of_labels(y: Any, score: Any) -> tuple[Any, Any]:
    return logistic(score, y)


def of_closure(preds: Any, dtrain: Any) -> tuple[Any, Any]:
    return logistic(preds, Y[TRAIN])


def of_data(preds: Any, train_data: Any) -> tuple[Any, Any]:
    return logistic(preds, train_data.get_label())


def swapped(y_pred: Any, y_true: Any) -> tuple[Any, Any]:
    return logistic(y_pred, y_true)


class OfCatBoost:
    """An objective as CatBoost's documentation writes it."""

    def calc_ders_range(
        self, approxes: Any, targets: Any, weights: Any
    ) -> list[tuple[float, float]]:
        g, h = logistic(np.array(approxes), np.array(targets))
        return list(zip(-g, -h, strict=True))


@pytest.mark.parametrize("function", [of_closure, of_data, swapped, OfCatBoost()])
def test_an_objective_is_read_by_the_names_of_its_arguments(function: Any) -> None:
    ours = sw.train({**QUICK, "objective": of_labels}, DATA)
    theirs = sw.train({**QUICK, "objective": function}, DATA)
    np.testing.assert_allclose(theirs.predict(X), ours.predict(X), rtol=1e-12)
    with pytest.raises(
        ParameterError,
        match="takes 'preds' first, a prediction by its name, and then 'rest'",
    ):
        sw.train({**QUICK, "objective": lambda preds, rest: (preds, preds)}, DATA)


def test_the_training_rows_are_not_watched_wherever_they_stand() -> None:
    params = {**QUICK, "early_stopping_rounds": 3}
    alone = sw.train(params, DATA, valid=OTHER)
    for sets in ({"valid": OTHER, "train": DATA}, {"train": DATA, "valid": OTHER}):
        assert sw.train(params, DATA, valid=sets).best_round == alone.best_round
    x = X[TRAIN]
    y = Y[TRAIN]
    pair = (X[VALID], Y[VALID])
    model = sw.SapwoodClassifier(
        n_estimators=30, learning_rate=0.3, early_stopping_rounds=3
    )
    wanted = model.fit(x, y, eval_set=[pair]).best_iteration_
    assert model.fit(x, y, eval_set=[pair, (x, y)]).best_iteration_ == wanted
    with pytest.warns(UserWarning, match="early stopping watches the training rows"):
        model.fit(x, y, eval_set=[(x, y)])


def test_which_of_several_metrics_is_watched_is_said() -> None:
    params = {**QUICK, "early_stopping_rounds": 5, "eval_metric": ["auc", "logloss"]}
    with pytest.warns(
        UserWarning,
        match="watches the first of 2 metrics, 'auc'; XGBoost watches the last",
    ):
        sw.train(params, DATA, valid=OTHER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.train({**params, "first_metric_only": True}, DATA, valid=OTHER)


def test_rows_that_are_held_out_are_said() -> None:
    params = {**QUICK, "early_stopping_rounds": 5}
    with pytest.warns(
        UserWarning, match="no validation set: 30 of 300 rows are held out"
    ):
        sw.train(params, DATA)
    with pytest.warns(
        UserWarning, match="no validation set: 30 of 300 rows are held out"
    ):
        sw.SapwoodClassifier(n_estimators=5, early_stopping_rounds=3).fit(
            X[TRAIN], Y[TRAIN]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.train({**params, "validation_fraction": 0.1}, DATA)
        sw.train(params, DATA, valid=OTHER)
        sw.SapwoodClassifier(
            n_estimators=5, early_stopping_rounds=3, validation_fraction=0.2
        ).fit(X[TRAIN], Y[TRAIN])


def test_what_lightgbm_would_do_with_a_depth_or_a_sample_is_said() -> None:
    with pytest.warns(
        UserWarning,
        match="max_depth=12 alone sets no limit of leaves; LightGBM has at most 31",
    ):
        sw.train(
            {
                "objective": "binary",
                "max_depth": 12,
                "min_data_in_leaf": 5,
                "num_iterations": 2,
            },
            DATA,
        )
    with pytest.warns(
        UserWarning,
        match=r"subsample=0.8 draws rows for every round; in LightGBM it draws none",
    ):
        sw.SapwoodClassifier(subsample=0.8, min_child_samples=5, n_estimators=2).fit(
            X, Y
        )
    with pytest.warns(
        UserWarning, match="class_weight is applied; lgb.train ignores it"
    ):
        sw.train(
            {
                "objective": "binary",
                "class_weight": {0: 1, 1: 2},
                "num_leaves": 7,
                "num_iterations": 2,
            },
            DATA,
        )


def test_importances_may_be_numbers_of_splits() -> None:
    model = sw.SapwoodClassifier(n_estimators=5, importance_type="split").fit(X, Y)
    assert (
        model.feature_importances_.tolist()
        == model.booster_.importance("weight").tolist()
    )
    assert model.feature_importances_.dtype == np.int64
    shares = sw.SapwoodClassifier(n_estimators=5).fit(X, Y).feature_importances_
    assert shares.sum() == pytest.approx(1)


def test_skops_keeps_an_estimator() -> None:
    sio = pytest.importorskip("skops.io")
    model = sw.SapwoodClassifier(n_estimators=3).fit(X, Y)
    raw = sio.dumps(model)
    again = sio.loads(raw, trusted=sio.get_untrusted_types(data=raw))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_all_unknown_names_are_named_at_once() -> None:
    with pytest.raises(
        ParameterError,
        match=r"(?s)no parameter 'foo'.*no parameter 'num_leafs'; did you mean 'max_leaves'",
    ):
        sw.SapwoodClassifier(foo=1, num_leafs=3)
    with pytest.raises(
        ParameterError, match=r"(?s)unknown parameter 'foo'.*unknown parameter 'bar'"
    ):
        sw.train({"foo": 1, "bar": 2}, DATA)
