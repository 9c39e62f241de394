"""What a user of the peers would notice: taken as they write it, or answered with what
to write instead.
"""

import inspect
import warnings
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import sapwood as sw
from sapwood.errors import DataError, ObjectiveError, ParameterError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=400) > 0).astype(float)
FIRST, LAST = slice(0, 300), slice(300, 400)
BINARY = {"objective": "binary", "n_estimators": 5}


# ---- Trees of XGBoost whose hessian is another ---------------------------------------


@pytest.mark.parametrize(
    ("objective", "c"), [("multi:softprob", 1.5), ("count:poisson", float(np.exp(0.7)))]
)
def test_a_hessian_of_another_size_is_a_smaller_rate_and_smaller_penalties(
    objective: str, c: float
) -> None:
    table = X.round(1).astype(np.float32)
    several = objective == "multi:softprob"
    label = (
        np.argmax(table + RNG.gumbel(size=(400, 4)), 1)
        if several
        else RNG.poisson(np.exp(0.5 * table[:, 0]))
    )
    more = {"num_class": 4, "base_score": 0.5} if several else {"base_score": 1.0}
    theirs = xgb.train(
        {"objective": objective, "max_depth": 3, "nthread": 1, **more},
        xgb.DMatrix(table, label),
        10,
    )
    smaller = {"learning_rate": 0.3 / c, "reg_lambda": 1 / c, "min_child_weight": 1 / c}
    own = {"num_class": 4} if several else {"max_delta_step": 0.7 * c}
    params = {
        "recipe": "xgboost",
        "objective": objective,
        "max_depth": 3,
        "start": 0.0,
        "precision": "wide",
    }
    ours = sw.train(
        {**params, **smaller, **own}, sw.Dataset(table, label, recipe="xgboost"), 10
    )
    np.testing.assert_allclose(
        ours.predict(table), theirs.predict(xgb.DMatrix(table)), rtol=1e-5
    )


@pytest.mark.parametrize(
    "how",
    [
        {"precision": "wide"},
        {"recipe": "xgboost", "max_depth": 9},
        {"precision": "narrow"},
    ],
)
def test_no_leaf_is_below_min_child_weight_at_wide_precision(
    how: dict[str, Any],
) -> None:
    low = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(800, 3))
        params = {
            "objective": "logistic",
            "min_child_weight": 5.0,
            "max_leaves": 63,
            "min_samples_leaf": 1,
        }
        data = sw.Dataset(
            table, table[:, 0] + rng.normal(size=800) > 0, min_samples_bin=1
        )
        trees = sw.train(
            {"path_smooth": 0, "min_samples_bin": 1, **params, **how}, data, 10
        ).trees
        low.append(trees.cover[trees.left == 0].min())
    assert (
        (4.9997 < min(low) < 5.0)
        if how == {"precision": "narrow"}
        else (5.0 <= min(low) < 5.5)
    )


# ---- Tables --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["hist", "exact"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [np.inf, -np.inf])
def test_infinite_values_have_a_cut_of_their_own(
    far: float, dtype: Any, method: str
) -> None:
    table = np.array([[1.0]] * 5 + [[far]] * 5, dtype)
    label = [0.0] * 5 + [1.0] * 5
    size = {"learning_rate": 1.0, "min_samples_leaf": 1}
    ours = sw.SapwoodRegressor(
        n_estimators=1, reg_lambda=0, tree_method=method, **size
    ).fit(table, label)
    assert ours.predict(table).tolist() == label  # as HistGradientBoostingRegressor


def test_weights_of_one_column_are_weights() -> None:
    weight = RNG.integers(1, 4, 400)
    flat = sw.SapwoodClassifier(n_estimators=3).fit(X, Y, sample_weight=weight)
    column = sw.SapwoodClassifier(n_estimators=3).fit(
        X, Y, sample_weight=weight[:, None]
    )
    assert flat.booster_.fingerprint() == column.booster_.fingerprint()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sw.Dataset([X[:200], X[200:]], Y),
            "data is a list of 2 tables; Dataset.from_chunks",
        ),
        (
            lambda: sw.Dataset(pd.Series(X[:, 0]), Y),
            r"to_frame\(\) makes one column of it",
        ),
        (
            lambda: sw.Dataset(
                pd.DataFrame(X, columns=list("wxyz")), Y, feature_name=list("abcd")
            ),
            "rename the columns of the table",
        ),
        (
            lambda: sw.train(BINARY, sw.Dataset(X, 2 * Y - 1)),
            "label -1 in row .* Give label == c for a class c",
        ),
        (
            lambda: sw.train(BINARY, sw.Dataset(X, 10 * Y)),
            "SapwoodClassifier takes classes of any kind",
        ),
        (
            lambda: sw.train(BINARY, X),
            r"data is a ndarray; make it with sapwood.Dataset\(X, label=y\)",
        ),
        (
            lambda: sw.Dataset(X, Y, params={"max_bin_by_feature": [9, 9, 9, 9]}),
            "max_bins is the same for all columns",
        ),
    ],
)
def test_tables_and_labels_are_told_how(call: Any, message: str) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        call()


# ---- Bins that a training names ------------------------------------------------------


@pytest.mark.parametrize(
    "named",
    [
        {"max_bin": 20},
        {"min_data_in_bin": 50},
        {"linear_tree": True},
        {"tree_method": "exact"},
    ],
)
def test_bins_may_be_named_in_the_params_of_train(named: dict[str, Any]) -> None:
    params = {**BINARY, **named}
    told = sw.Dataset(X[FIRST], Y[FIRST], params=params)
    wanted = sw.train(
        params, told, valid_sets=[sw.Dataset(X[LAST], Y[LAST], reference=told)]
    )
    data = sw.Dataset(X[FIRST], Y[FIRST])
    valid = sw.Dataset(X[LAST], Y[LAST])
    for _ in range(2):  # the second time the table is gone, its bins are not
        found = sw.train(
            params, data, valid_sets=[data, valid], valid_names=["train", "valid"]
        )
        assert found.fingerprint() == wanted.fingerprint()
        assert found.history["valid"] == wanted.history["valid_0"]
    assert sw.cv(params, sw.Dataset(X, Y), nfold=2)["logloss_mean"].shape == (5,)


def test_a_validation_set_needs_no_reference() -> None:
    train = sw.Dataset(X[FIRST], Y[FIRST])
    valid = sw.Dataset(X[LAST], Y[LAST])
    with_one = sw.Dataset(X[LAST], Y[LAST], reference=train)
    assert (
        sw.train(BINARY, train, valid=valid).history
        == sw.train(BINARY, train, valid=with_one).history
    )


def test_the_table_is_kept_until_the_first_training() -> None:
    data = sw.Dataset(X, Y)
    sw.train(BINARY, data)
    with pytest.raises(ParameterError, match=r"max_bin=20 .* give it to Dataset too"):
        sw.train({**BINARY, "max_bin": 20}, data)
    kept = sw.Dataset(X, Y, free_raw_data=False)
    assert [
        sw.train({**BINARY, "max_bin": n}, kept).params["max_bins"] for n in (20, 30)
    ] == [20, 30]
    with pytest.raises(
        DataError,
        match=r"other columns, cuts or categories; make it with Dataset\(..., reference=data\)",
    ):
        sw.train(BINARY, data, valid=_read_once())


def _read_once() -> sw.Dataset:
    """A dataset whose table cannot be read again."""
    other = sw.Dataset(X[LAST], Y[LAST])
    sw.train(BINARY, other)
    return other


def test_bins_that_the_dataset_was_told_are_not_changed() -> None:
    with pytest.raises(
        ParameterError, match=r"max_bin=20 \(max_bins\), but the data was made with 30"
    ):
        sw.train({**BINARY, "max_bin": 20}, sw.Dataset(X, Y, max_bin=30))


def test_columns_of_categories_may_be_named_in_the_params_of_train() -> None:
    table = np.column_stack([RNG.integers(0, 5, 400), X])
    assert list(
        sw.train({**BINARY, "categorical_feature": 0}, sw.Dataset(table, Y)).categories
    ) == [0]
    model = sw.SapwoodClassifier(categorical_feature=0, n_estimators=3).fit(table, Y)
    assert list(model.booster_.categories) == [0]


# ---- Names of methods and arguments --------------------------------------------------


def public(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]


@pytest.mark.parametrize("kind", [lgb.Booster, xgb.Booster])
def test_every_method_of_a_peers_booster_is_there_or_answered(kind: type) -> None:
    booster = sw.train(BINARY, sw.Dataset(X, Y))
    silent = {
        "handle",
        "network",
        "pandas_categorical",
        "train_set",
        "train_data_name",
        "set_network",
    }
    silent |= {"set_train_data_name", "model_from_string"}
    for name in set(public(kind)) - silent:
        try:
            getattr(booster, name)
        except AttributeError as error:
            assert "; use " in str(error), name


@pytest.mark.parametrize("kind", [lgb.LGBMClassifier, xgb.XGBClassifier])
def test_every_attribute_of_a_peers_estimator_is_there_or_answered(kind: type) -> None:
    model = sw.SapwoodClassifier(n_estimators=3).fit(X, Y)
    silent = {"get_metadata_routing", "kwargs", "n_features_in_", "feature_names_in_"}
    for name in set(public(kind)) - silent:
        try:
            getattr(model, name)
        except AttributeError as error:
            assert "; use " in str(error) or "exists " in str(error), name


def test_a_dataset_has_the_names_of_the_peers() -> None:
    data = sw.Dataset(X, Y)
    assert (
        (data.get_label() == Y).all()
        and data.num_data() == 400
        and data.num_feature() == 4
    )
    matrix = sw.DMatrix(X)
    matrix.set_info(label=Y, weight=np.ones(400))
    assert sw.train(BINARY, matrix).n_rounds == 5
    with pytest.raises(
        ParameterError, match="chances of columns in draws are not available"
    ):
        matrix.set_info(feature_weights=[1, 1, 1, 2])


def test_scores_of_validation_sets_have_the_names_of_the_peers() -> None:
    zeros = np.zeros(300)
    ones = np.ones(100)
    held = (X[LAST], Y[LAST])
    names = [
        ("init_score", "eval_init_score", "eval_sample_weight"),
        ("base_margin", "base_margin_eval_set", "sample_weight_eval_set"),
    ]
    prints = set()
    for score, of_sets, weights in names:
        more = {score: zeros, of_sets: [0 * ones], weights: [ones]}
        model = sw.SapwoodClassifier(n_estimators=3).fit(
            X[FIRST], Y[FIRST], eval_set=[held], **more
        )
        prints.add(
            (
                model.booster_.fingerprint(),
                model.evals_result_["valid_0"]["logloss"][-1],
            )
        )
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: m.fit(X, Y, eval_set=[(X, Y)], eval_class_weight=[{0: 1}]),
            "eval_sample_weight",
        ),
        (
            lambda m: m.fit(X, Y, feature_weights=[1, 1, 1, 2]),
            "factors on the gains of columns",
        ),
        (
            lambda m: sw.cv(BINARY, sw.Dataset(X, Y), return_cvbooster=True),
            "train one for each fold",
        ),
        (
            lambda m: sw.cv(BINARY, sw.Dataset(X, Y), eval_train_metric=True),
            r"train with valid=\{'train': data\}",
        ),
    ],
)
def test_arguments_that_are_not_here_say_what_is(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(sw.SapwoodClassifier(n_estimators=2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"boosting": "dart"},
            r"Start from its scores: Dataset\(X, y, init_score=model.predict\(X, raw=True\)\)",
        ),
        (
            {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
            "Start from its scores",
        ),
    ],
)
def test_models_that_cannot_go_on_start_from_scores(
    given: dict[str, Any], message: str
) -> None:
    first = sw.train(BINARY, sw.Dataset(X, Y))
    with pytest.raises(ParameterError, match=message):
        sw.train({**BINARY, **given}, sw.Dataset(X, Y), init_model=first)
    start = first.predict(X, raw=True)
    second = sw.train({**BINARY, **given}, sw.Dataset(X, Y, init_score=start))
    assert second.predict(X, init_score=start).shape == (400,)


def test_forced_splits_say_what_they_need() -> None:
    with pytest.raises(
        ParameterError,
        match="Leave colsample_bytree out, or sample rows with subsample",
    ):
        sw.train(
            {
                **BINARY,
                "forced_splits": {"feature": 0, "threshold": 0.0},
                "feature_fraction": 0.5,
            },
            sw.Dataset(X, Y),
        )


def test_weights_of_columns_that_are_drawn_say_what_they_are() -> None:
    params = {**BINARY, "feature_weights": [1, 1, 1, 2]}
    with pytest.warns(
        UserWarning,
        match="in XGBoost they are the chances of columns in the draws of colsample_bytree",
    ):
        sw.train({**params, "colsample_bytree": 0.5}, sw.Dataset(X, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.train(params, sw.Dataset(X, Y))


@pytest.mark.parametrize(
    "given",
    [
        {"boost_from_average": False},
        {"first_metric_only": True},
        {"metric": ["None"]},
        {"verbose_eval": None},
        {
            "monotone_constraints_method": "advanced",
            "monotone_constraints": [1, 0, 0, 0],
        },
        {"forcedbins_filename": ""},
        {"use_missing": True},
        {"max_bin_by_feature": None},
    ],
)
def test_what_is_plain_is_taken(given: dict[str, Any]) -> None:
    more = (
        {"verbose_eval": given.pop("verbose_eval")} if "verbose_eval" in given else {}
    )
    assert sw.train({**BINARY, **given}, sw.Dataset(X, Y), **more).n_rounds == 5


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("binary:logitraw", r"use 'logistic' and predict\(raw=True\)"),
        ("reg:pseudohubererror", "'huber' and 'log_cosh' are near to it"),
        ("cross_entropy_lambda", "use 'cross_entropy', with sample_weight"),
        ("RMSEWithUncertainty", "use SapwoodDistribution"),
    ],
)
def test_objectives_that_are_not_here_say_what_is_near(
    objective: str, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train({"objective": objective, "n_estimators": 2}, sw.Dataset(X, Y))


def test_alpha_beside_xgboosts_quantiles_is_its_penalty() -> None:
    params = {
        "objective": "reg:quantileerror",
        "quantile_alpha": 0.2,
        "alpha": 0.3,
        "n_estimators": 2,
    }
    booster = sw.train(params, sw.Dataset(X, X[:, 0]))
    assert (
        booster.fields["quantile_alpha"] == 0.2 and booster.params["reg_alpha"] == 0.3
    )


# ---- What a program reads afterwards -------------------------------------------------


def test_cross_validation_of_a_matrix_is_a_data_frame() -> None:
    params = {"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 3}
    theirs = xgb.cv({**params, "nthread": 1}, xgb.DMatrix(X, Y), 8, nfold=3)
    ours = sw.cv(params, sw.DMatrix(X, Y), 8, nfold=3)
    assert len(ours) == len(theirs) == 8  # a program counts the rounds so
    assert set(ours.columns) == {
        name for name in theirs.columns if name.startswith("test")
    }
    assert sw.cv(params, sw.Dataset(X, Y), 8, as_pandas=True).shape == (8, 2)


def test_an_objective_that_raises_says_which_error() -> None:
    class Own(Exception):
        """A program's own."""

    def objective(y_true: Any, y_pred: Any) -> Any:
        raise Own("stop")

    with pytest.raises(
        ObjectiveError, match="raised Own in its derivatives: stop"
    ) as caught:
        sw.train({"objective": objective, "n_estimators": 2}, sw.Dataset(X, Y))
    assert isinstance(caught.value.__cause__, Own)


def test_a_range_of_rounds_has_the_base_as_in_xgboost() -> None:
    booster = sw.train(
        {"n_estimators": 6, "objective": "squared_error"}, sw.Dataset(X, X[:, 0] + 3)
    )
    parts = (
        booster.predict(X, rounds=(0, 3))
        + booster.predict(X, rounds=(3, 6))
        - booster.base[0]
    )
    np.testing.assert_allclose(parts, booster.predict(X), rtol=1e-12)


def test_a_model_of_one_class_knows_it(tmp_path: Any) -> None:
    with pytest.warns(UserWarning, match="all rows are of one class"):
        model = sw.SapwoodClassifier(n_estimators=2).fit(X, ["yes"] * 400)
    model.save_model(tmp_path / "m")
    again = sw.SapwoodClassifier().load_model(tmp_path / "m")
    assert again.classes_.tolist() == ["yes"] and set(again.predict(X)) == {"yes"}
    assert again.predict_proba(X).tolist() == [[1.0]] * 400
    with pytest.raises(DataError, match="knows one class only, yes"):
        again.report(X, ["yes"] * 400)


def test_a_warning_is_of_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sw.SapwoodClassifier(n_estimators=5, early_stopping_rounds=3).fit(X, Y)
        sw.train({**BINARY, "early_stopping_rounds": 3}, sw.Dataset(X, Y))
        sw.SapwoodClassifier(subsample=0.8, min_child_samples=5, n_estimators=2).fit(
            X, Y
        )
        sw.SapwoodClassifier(n_estimators=2).fit(
            pd.DataFrame({"a": X[:, 0], "b": 1.0}), Y
        )
    assert len(said) == 4 and {one.filename for one in said} == {__file__}


# ---- Small things --------------------------------------------------------------------


def test_training_rows_have_the_names_of_the_peers() -> None:
    wanted = sw.train(BINARY, sw.Dataset(X, Y)).fingerprint()
    for name in ("dtrain", "train_set", "pool"):
        assert sw.train(BINARY, **{name: sw.Dataset(X, Y)}).fingerprint() == wanted
        assert (
            len(sw.cv(BINARY, **{name: sw.Dataset(X, Y)}, nfold=2)["logloss_mean"]) == 5
        )


@pytest.mark.parametrize(
    "given",
    [
        {"gpu_device_id": 0},
        {"silent": True},
        {"use_label_encoder": False},
        {"num_class": 2},
        {"is_unbalance": False},
        {"bagging_freq": 5},
        {"bagging_seed": 3, "seed": 4},
        {"verbosity": -1, "verbose_eval": False},
        {"multi_strategy": "one_output_per_tree"},
        {"num_target": 1},
        {"min_samples_split": 10, "min_samples_leaf": 5},
    ],
)
def test_what_is_harmless_is_taken(given: dict[str, Any]) -> None:
    assert sw.SapwoodClassifier(n_estimators=2, **given).fit(X, Y).n_iter_ == 2
    assert sw.train({**BINARY, **given}, sw.Dataset(X, Y)).n_rounds == 5


def test_a_metric_object_of_catboost_gets_raw_scores() -> None:
    class Accuracy:
        def is_max_optimal(self) -> bool:
            return True

        def evaluate(
            self, approxes: Any, target: Any, weight: Any
        ) -> tuple[float, float]:
            return float(
                sum((a > 0) == t for a, t in zip(approxes[0], target, strict=True))
            ), float(len(target))

        def get_final_error(self, error: float, weight: float) -> float:
            return error / weight

    model = sw.SapwoodClassifier(n_estimators=5, eval_metric=Accuracy()).fit(
        X, Y, eval_set=(X, Y)
    )
    assert model.evals_result_["valid"]["Accuracy"][-1] == pytest.approx(
        model.score(X, Y)
    )


def test_clients_can_compute_with_max_depth() -> None:
    assert sw.SapwoodClassifier().get_params()["max_depth"] is None


def test_names_of_the_peers_packages() -> None:
    assert (
        sw.LGBMClassifier
        is sw.XGBClassifier
        is sw.CatBoostClassifier
        is sw.SapwoodClassifier
    )
    assert sw.QuantileDMatrix is sw.DMatrix and "LGBMClassifier" not in dir(sw)
    rates = [0.3, 0.2, 0.1]
    by_list = sw.train(
        {"n_estimators": 3},
        sw.Dataset(X, Y),
        callbacks=[sw.reset_parameter(learning_rate=rates)],
    )
    by_object = sw.train(
        {"n_estimators": 3},
        sw.Dataset(X, Y),
        callbacks=[sw.callback.LearningRateScheduler(lambda k: rates[k])],
    )
    assert by_list.fingerprint() == by_object.fingerprint()
    stop = sw.callback.EarlyStopping(rounds=2)
    assert (
        sw.train(
            BINARY, sw.Dataset(X, Y), valid=sw.Dataset(X, Y), callbacks=[stop]
        ).n_rounds
        <= 5
    )
    with pytest.raises(AttributeError, match=r"use sapwood\.plot_tree"):
        _ = sw.create_tree_digraph


def test_categories_may_be_intervals_fractions_and_times() -> None:
    day = pd.to_datetime(RNG.integers(0, 5, 400), unit="D")
    for column in (
        pd.cut(X[:, 0], 5),
        pd.Categorical(X[:, 0].round()),
        pd.Categorical(day),
    ):
        table = pd.DataFrame({"c": column, "x": X[:, 1]})
        assert np.isfinite(
            sw.SapwoodRegressor(n_estimators=3).fit(table, Y).predict(table)
        ).all()


def test_wrong_things_in_the_right_places() -> None:
    X = pd.DataFrame({"a": np.arange(60.0)})
    y = (X["a"] > 20).astype(int)
    model = sw.SapwoodClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(DataError, match=r"labels go into Dataset\(X, label=y\)"):
        sw.train({"n_estimators": 2}, X, y)
    with pytest.raises(DataError, match="Expected a 2-D table as X, got a series"):
        model.predict(X.iloc[0])
    with pytest.raises(ParameterError, match=r"give booster.explain\(X\)"):
        sw.plot.beeswarm(model)
    with pytest.raises(ParameterError, match="prettified of get_feature_importance"):
        model.get_feature_importance(prettified=True)
    sw.train({"n_estimators": 2}, sw.Dataset(X, y), callbacks=[sw.log_evaluation(0)])
