"""What users of CatBoost, LightGBM and XGBoost met: nothing they say is taken for
something else in silence.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import log_loss
from sklearn.model_selection import TimeSeriesSplit

import sapwood as sw
from sapwood.boost import splits
from sapwood.data.bin_arguments import BY_RECIPE
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.params import resolve
from sapwood.params.recipes import RECIPES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(float)
DATA = sw.Dataset(X, Y)
FAR = sw.Dataset(X, 1 - Y, reference=DATA)  # every round is worse than the one before
QUICK = {"n_estimators": 5, "objective": "logistic"}


# -------------------------------------------------------------------------------------
# the best round, held-out rows
def test_the_best_model_is_kept_without_early_stopping() -> None:
    model = sw.train({**QUICK, "use_best_model": True}, DATA, valid=FAR)
    assert (
        model.n_rounds,
        model.best_round,
        len(model.history["valid"]["logloss"]),
    ) == (1, 1, 5)
    assert sw.train({**QUICK, "use_best_model": False}, DATA, valid=FAR).n_rounds == 5
    for given, message in [
        ({"use_best_model": True}, "needs rows to judge by"),
        (
            {"use_best_model": False, "early_stopping_rounds": 3},
            "is not available with early st",
        ),
        (
            {"eval_fraction": 0.2},
            "holds out rows for early stopping only; set early_stopping_r",
        ),
    ]:
        with pytest.raises(ParameterError, match=message):
            sw.train(QUICK | given, DATA)


def test_the_last_rows_are_held_out_where_there_is_time() -> None:
    weight = np.array([1.0, 1, 1, 1, 1, 0, 1, 1, 0, 1])
    assert np.flatnonzero(splits.holdout(0, 0.25, 10, weight, last=True)).tolist() == [
        7,
        9,
    ]
    group = np.array([0, 0, 1, 1, 1, 2, 2, 0], np.int32)
    assert np.flatnonzero(
        splits.holdout(0, 0.2, 8, group=group, last=True)
    ).tolist() == [5, 6]
    y = np.repeat([0.0, 100.0], [90, 10])
    for has_time in (False, True):
        model = sw.train(
            {
                "n_estimators": 1,
                "boosting": "ordered",
                "has_time": has_time,
                "early_stopping_rounds": 1,
            },
            sw.Dataset(np.zeros((100, 1)), y),
        )
        # all from 100, and none of them
        assert (model.history["holdout"]["rmse"][0] > 99) == has_time


def test_the_only_row_of_a_class_stays_in_training() -> None:
    classes = np.append(np.zeros(99), 1.0)
    for seed in range(20):
        assert not splits.holdout(seed, 0.1, 100, classes=classes)[99]
    tail = splits.holdout(0, 0.5, 4, classes=np.array([0.0, 0, 1, 1]), last=True)
    # not both of class 1: the first of them stays
    assert np.flatnonzero(tail).tolist() == [3]
    with pytest.raises(DataError, match="no class has two rows of positive weight"):
        splits.holdout(0, 0.1, 3, classes=np.arange(3.0))


# --------------------------------------------------------------------------------------
# meaning
@pytest.mark.parametrize("word", ["MVS", "mvs"])
def test_a_recipe_keeps_the_share_of_its_own_sampler(word: str) -> None:
    assert resolve({"recipe": "catboost", "bootstrap_type": word}) == resolve(
        {"recipe": "catboost"}
    )
    assert resolve({"recipe": "catboost", "bootstrap_type": "No"})["subsample"] == 1.0


def test_a_draw_without_a_share_is_refused() -> None:
    for recipe in (None, "catboost"):
        with pytest.raises(
            ParameterError, match=r"'Bernoulli' draws a share of the rows; say which"
        ):
            resolve({"bootstrap_type": "Bernoulli", "recipe": recipe})
    assert (
        resolve({"bootstrap_type": "Bernoulli", "subsample": 0.7})["subsample"] == 0.7
    )


def test_ways_of_drawing_without_a_draw_are_refused() -> None:
    data = sw.Dataset(np.arange(9.0)[:, None], np.arange(9.0))
    assert sw.train({"bagging_freq": 5}, data).params["subsample_freq"] == 1
    for given in (
        {"subsample_freq": 2, "sampling": "none"},
        {"bagging_by_query": True},
    ):
        with pytest.raises(
            ParameterError,
            match=f"{next(iter(given))}=.* says how rows are drawn, but all are taken",
        ):
            sw.train(given, data)
    for share in (
        {"subsample": 1.0},
        {"sampling": "bayesian"},
        {"pos_bagging_fraction": 0.5},
        {"recipe": "catboost"},
    ):
        # a search may come to a share of 1
        assert resolve({"subsample_freq": 5, **share})["subsample_freq"] == 5


def test_bagging_that_lightgbm_would_not_do_is_said() -> None:
    with pytest.warns(
        UserWarning,
        match="bagging_fraction=0.5 draws rows for every round; in LightGBM",
    ):
        resolve({"bagging_fraction": 0.5})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", [{"bagging_freq": 1}, {"subsample_freq": 2}])
def test_bagging_that_lightgbm_would_do_is_not(given: dict[str, Any]) -> None:
    resolve({"bagging_fraction": 0.5, **given})


@pytest.mark.parametrize(
    ("word", "ours"), [("NewtonL2", "l2"), ("NewtonCosine", "cosine")]
)
def test_newton_scores_take_curvature(word: str, ours: str) -> None:
    expected = resolve(
        {"recipe": "catboost", "score_function": ours, "hessian": "auto"}
    )
    assert resolve({"recipe": "catboost", "score_function": word}) == expected
    with pytest.raises(
        ParameterError, match="uses second derivatives, hessian='none' does not"
    ):
        resolve({"score_function": word, "hessian": "none"})


def test_the_weight_of_the_positive_class_needs_two() -> None:
    data = sw.Dataset(X, np.arange(200) % 3)
    with pytest.raises(
        ParameterError,
        match="scale_pos_weight is for two classes, of 3 use class_weight",
    ):
        sw.train({"objective": "multiclass", "scale_pos_weight": 2}, data)
    assert (
        sw.train(
            {"objective": "multiclass", "scale_pos_weight": 1, "n_estimators": 1}, data
        ).n_outputs
        == 3
    )


# --------------------------------------------------------------------------------------
# encoder
def test_the_encoder_knows_the_targets_of_scikit_learn() -> None:
    table = (np.arange(300) % 7)[:, None]
    prices = np.arange(300)
    with pytest.warns(
        UserWarning,
        match="y has 300 different whole numbers, which are taken for classes",
    ):
        assert sw.OrderedTargetEncoder().fit_transform(table, prices).shape == (
            300,
            299,
        )
    assert sw.OrderedTargetEncoder(target_type="continuous").fit_transform(
        table, prices
    ).shape == (300, 1)
    for word in ("binary", "multiclass"):
        assert sw.OrderedTargetEncoder(target_type=word).fit_transform(
            table, prices % 2
        ).shape == (300, 1)


# --------------------------------------------------------------------------------------
# messages
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objective": "binry"}, "did you mean 'binary'"),
        ({"objective": "Loglos"}, "did you mean 'logloss'"),
        (
            {"objective": "survival:cox"},
            r"times are for SapwoodSurvival\(model='cox'\)",
        ),
        ({"objective": "binary:logitraw"}, r"use 'logistic' and predict\(raw=True\)"),
        (
            {"objective": "reg:pseudohubererror"},
            "'huber' and 'log_cosh' are near to it",
        ),
        ({"objective": "cross_entropy_lambda"}, "use 'cross_entropy'"),
        ({"ctr_leaf_count_limit": 5}, "statistics keep every category"),
        ({"counter_calc_method": "Full"}, "counters count the training rows only"),
        ({"ctr_target_border_count": 3}, "use statistics"),
        ({"metadata": {"who": "me"}}, "a model file has no room for notes"),
    ],
)
def test_names_are_explained(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train(QUICK | given, DATA)


@pytest.mark.parametrize("name", ["rank:ndcg", "YetiRank"])
def test_ranking_asks_for_groups(name: str) -> None:
    with pytest.raises(DataError, match="ranks the rows of a group; give group"):
        sw.train(QUICK | {"objective": name}, DATA)


def test_errors_say_what_the_user_said() -> None:
    with pytest.raises(
        ParameterError,
        match=r"max_ctr_complexity=3 \(max_combination\) is for .*; set that \(a dict for",
    ):
        sw.train({**QUICK, "max_ctr_complexity": 3}, DATA)
    for given, said in {"max_bin": 63, "linear_tree": True}.items():
        with pytest.raises(
            ParameterError,
            match=rf"{given}={said} \(.*\), but the data was made with .*; give",
        ):
            sw.train({**QUICK, given: said}, DATA)
    for estimator in (sw.SapwoodRegressor(), sw.SapwoodClassifier()):
        with pytest.raises(
            DataError, match=r"200, 5\]. y must have one value for each row"
        ):
            estimator.fit(X, Y[:5])
        with pytest.raises(
            DataError, match=r"200, 5\]. sample_weight must have one value for each row"
        ):
            estimator.fit(X, Y, Y[:5])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"objective": "regression", "scale_pos_weight": 3},
            r"scale_pos_weight=3 \(class_weight\) needs one class a row",
        ),
        (
            {"boosting": "goss", "bagging_fraction": 0.8, "bagging_freq": 1},
            r"bagging_fraction=0.8 \(subsample\) is for",
        ),
        ({"metric": "nonsense"}, "^metric 'nonsense' is unknown"),
        (
            {"tree_method": "gpu_hist"},
            "is not available: choose 'hist', and device='cuda'",
        ),
        ({"tree_method": "approx"}, "is not available: bins are computed once"),
        (
            {"booster": "gblinear"},
            "every model consists of trees; linear_leaves=True gives them linear leaves",
        ),
        (
            {"num_leaves": 1},
            "num_leaves=1 is too small; choose 2 or more, 'auto' or None; 0 and -1 are None too",
        ),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:sampling='goss'")
def test_errors_say_what_there_is_instead(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train(QUICK | given, DATA)


def test_an_estimator_knows_what_moved() -> None:
    assert sw.SapwoodRegressor(boosting_type="goss").sampling == "goss"


def test_tables_of_three_dimensions_are_told_how_to_lie_down() -> None:
    with pytest.raises(
        DataError,
        match=r"got a 3-D array .* Reshape your data with reshape\(len\(X\), -1\), which",
    ):
        sw.Dataset(X.reshape(20, 10, 3))


def test_an_estimator_names_its_own_help() -> None:
    with pytest.raises(ParameterError, match=r"help\(sapwood.SapwoodClassifier\)"):
        sw.SapwoodClassifier(zzzzz=1)


def test_one_class_is_said_to_be_one() -> None:
    with pytest.warns(
        UserWarning, match="all rows are of one class: there is nothing to tell apart"
    ):
        sw.train(QUICK, sw.Dataset(X, np.zeros(200)))


def test_a_model_of_paths_and_of_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.sapwood"):
        sw.SapwoodClassifier().fit(X, Y, init_model="model.sapwood")
    model = sw.train(QUICK, DATA)
    with pytest.raises(FileNotFoundError, match=r"'.*nowhere.model'$"):
        model.save(tmp_path / "nowhere" / "model")
    with pytest.raises(IsADirectoryError) as caught:
        model.save(tmp_path)
    assert caught.value.filename == str(tmp_path) and not any(
        tmp_path.parent.glob(".sapwood*")
    )


def test_indices_of_a_sparse_table_are_looked_at() -> None:
    table = scipy.sparse.csr_matrix(X)
    table.indices[3] = -1
    with pytest.raises(DataError, match=r"X .csr_matrix. is not what it should be: "):
        sw.train(QUICK, DATA).predict(table)


def test_data_of_a_peer_is_no_model() -> None:
    xgboost = pytest.importorskip("xgboost")
    with pytest.raises(ModelFormatError, match="Cannot load a DMatrix; give a path"):
        sw.load(xgboost.DMatrix(X))


MANY = RNG.normal(size=(1000, 1))  # enough that min_samples_bin matters
SIGN = (MANY[:, 0] > 0).astype(float)


@pytest.mark.parametrize(
    "recipe", ["classic", "adaboost", "xgboost", "lightgbm", "catboost"]
)
def test_bins_of_a_recipe_are_had_or_missed_aloud(recipe: str) -> None:
    params = {"recipe": recipe, "n_estimators": 2}
    plain = sw.Dataset(MANY, SIGN)
    for train in (sw.train, sw.cv):
        with pytest.warns(
            UserWarning,
            match=rf"'{recipe}' has .*min_samples_bin=.*; make it with .*{recipe}'\), or",
        ):
            train(params, plain)
    model = sw.SapwoodClassifier(**params).fit(MANY, SIGN).booster_
    params |= {"objective": model.objective}
    for data in (
        sw.Dataset(MANY, SIGN, recipe=recipe),
        sw.Dataset(MANY, SIGN, params=params),
        sw.Dataset.from_chunks(
            [(MANY[:500], SIGN[:500]), (MANY[500:], SIGN[500:])], params=params
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (
                sw.train(params, data).trees.threshold.tolist()
                == model.trees.threshold.tolist()
            )


def test_bins_count_rows_where_weights_are_not_whole() -> None:
    light = sw.Dataset(MANY, SIGN, np.full(len(MANY), 0.0625))
    assert len(light.cuts[0]) == len(sw.Dataset(MANY, SIGN).cuts[0])
    with pytest.warns(UserWarning, match="recipe='lightgbm' has min_samples_bin=3"):
        sw.train({**QUICK, "recipe": "lightgbm"}, light)


def test_given_bins_go_before_a_recipe() -> None:
    assert set(BY_RECIPE) == {
        name for recipe in RECIPES.values() for name in recipe
    }.intersection(BIN_PARAMS)
    assert sw.Dataset(MANY, recipe="lightgbm", min_samples_bin=32).min_samples_bin == 32
    assert (
        sw.Dataset(MANY, params={"recipe": "classic", "max_bin": 255}).max_bins == 255
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.train(
            {**QUICK, "recipe": "lightgbm", "min_data_in_bin": 32},
            sw.Dataset(MANY, SIGN),
        )
        words = pd.DataFrame({"word": np.where(SIGN, "a", "b")})
        sw.train({**QUICK, "recipe": "lightgbm"}, sw.Dataset(words, SIGN))
        # every value has its bin, or 255 bins hold 32 rows each
        for rows in (255, 8160):
            x = np.arange(float(rows))[:, None]
            sw.train({**QUICK, "recipe": "lightgbm"}, sw.Dataset(x, x[:, 0] % 2))


def test_encodings_of_a_recipe() -> None:
    table = sw.Dataset(pd.DataFrame({"k": pd.Categorical(list("abcd") * 50)}), Y)
    own = {
        "recipe": "catboost",
        "n_estimators": 2,
        "objective": lambda y, s: (s - y, np.ones_like(y)),
    }
    with pytest.raises(ParameterError, match="set category_encoding='partition'"):
        sw.train(own, table)
    assert sw.train({**own, "category_encoding": "partition"}, table).n_rounds == 2


# --------------------------------------------------------------------------------------
# what is just taken
@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({"bagging_seed": 3}, {"random_state": 3}),
        ({"seed": 3, "bagging_seed": 3, "drop_seed": 3}, {"random_state": 3}),
        (
            {"objective": "binary:logistic", "alpha": 2},
            {"objective": "logistic", "reg_alpha": 2.0},
        ),
        ({"boost": "goss"}, {"sampling": "goss"}),
        ({"max_leaf_nodes": 0}, {"max_leaves": None}),
        ({"nan_mode": "Min", "feature_border_type": "GreedyLogSum"}, {}),
        ({"one_hot_max_size": 0}, {"max_cat_to_onehot": 1}),
        (
            {"monotone_constraints": "age:1,2:-1"},
            {"monotone_constraints": {"age": 1, 2: -1}},
        ),
        ({"class_weights": "1,3"}, {"class_weight": {0: 1, 1: 3}}),
        ({"cat_features": pd.Index(["a", "b"])}, {"categorical_features": ["a", "b"]}),
        ({"loss_function": "Logloss:border=0.5"}, {"objective": "logistic"}),
        ({"custom_loss": "AUC"}, {"custom_metric": "AUC"}),
    ],
    ids=str,
)
def test_what_means_the_same_is_taken(
    given: dict[str, Any], ours: dict[str, Any]
) -> None:
    assert resolve(given) == resolve(ours)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objective": "binary", "alpha": 0.3}, "it is ambiguous"),
        (
            {"objective": "quantile", "alpha": 0.3, "quantile_alpha": 0.4},
            "it is ambiguous",
        ),
        (
            {"objective": "reg:squarederror", "alpha": 0.3, "reg_alpha": 0.4},
            "it is ambiguous",
        ),
        ({"monotone_constraints": "age:up"}, "write it as .1,0,-1. or age:1,hours:-1"),
        ({"class_weights": "1,heavy"}, "in which 'heavy' is not a finite number"),
        ({"eval_metric": "error@"}, "error@.* is not a finite number"),
        ({"base_score": 1.0}, "base_score=1.0 cannot be a prediction of objective"),
        (
            {"base_score": 0.5, "start": 1},
            "base_score=0.5 and start=1.0 both say where",
        ),
    ],
)
def test_what_might_not_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train(QUICK | given, DATA)


@pytest.mark.parametrize(
    ("objective", "base", "start"),
    [
        ("binary:logistic", 0.5, 0.0),
        ("binary:logistic", 0.8, np.log(4)),
        ("reg:squarederror", 0.5, 0.5),
        ("count:poisson", 2.0, np.log(2)),
    ],
)
def test_a_base_score_is_a_prediction(
    objective: str, base: float, start: float
) -> None:
    model = sw.train(
        {"objective": objective, "base_score": base, "n_estimators": 1}, DATA
    )
    assert model.base == pytest.approx([start], rel=1e-15)


def test_metrics_of_scikit_learn_are_taken_as_they_are() -> None:
    valid = sw.Dataset(X, Y, weight=np.arange(200.0), reference=DATA)
    names = [
        log_loss,
        ("gini", lambda y, p: float(np.abs(y - p).max()), False),
        "logloss",
        "F1:use_weights=true",
        "f1",
    ]
    history = sw.train({**QUICK, "eval_metric": names}, DATA, valid=valid).history[
        "valid"
    ]
    assert [*history] == ["log_loss", "gini", "logloss", "f1"]
    # weighted; their sum rounds 200 times
    assert history["log_loss"] == pytest.approx(history["logloss"], rel=1e-12)


@pytest.mark.parametrize("loss", ["quantile", "expectile", "pinball"])
def test_alpha_is_the_level_of_a_loss_that_has_one(loss: str) -> None:
    level = f"{'expectile' if loss == 'expectile' else 'quantile'}_alpha"
    one, other = (
        sw.train({"objective": loss, "n_estimators": 1, name: 0.9}, DATA)
        for name in ("alpha", level)
    )
    assert one.fields[level] == 0.9 and one.fingerprint() == other.fingerprint()


def test_rounds_may_come_third() -> None:
    assert (
        sw.train(QUICK | {"n_estimators": 2}, DATA).fingerprint()
        == sw.train({"app": "binary"}, DATA, 2).fingerprint()
    )
    assert len(sw.cv({"objective": "logistic"}, DATA, 2)["logloss_mean"]) == 2
    for params, message in (
        ({"num_round": 3}, "are both n_estimators"),
        ({"n_estimators": 3}, "give it once"),
    ):
        with pytest.raises(ParameterError, match=message):
            sw.train(params, DATA, 2)


def test_dir_lists_what_is_public() -> None:
    assert dir(sw) == sorted(sw.__all__)
    assert dir(sw.callback) == sorted(sw.callback.__all__)


def test_a_dataset_knows_the_names_of_the_peers() -> None:
    table = np.column_stack([X, np.arange(200) % 5])
    ours = sw.Dataset(
        table, Y, max_bins=16, categorical_features=[3], feature_names=list("abcd")
    )
    params = {"max_bin": 16, "categorical_feature": "name:d", "num_leaves": 7}
    theirs = sw.Dataset(table, Y, params=params, feature_name=list("abcd"))
    chunks = sw.Dataset.from_chunks(
        [(table, Y)], border_count=15, cat_features=[3], feature_name=list("abcd")
    )
    assert ours.fingerprint() == theirs.fingerprint() == chunks.fingerprint()
    assert (theirs.max_bins, chunks.max_bins) == (16, 16)
    with pytest.raises(
        ParameterError, match="max_bin=16 and max_bins=17 are both max_bins"
    ):
        sw.Dataset(table, Y, max_bin=16, max_bins=17)


def test_columns_of_categories_may_be_given_to_fit() -> None:
    table = np.column_stack([X, np.arange(200) % 5])
    ours = sw.SapwoodClassifier(n_estimators=2, categorical_features=[3]).fit(table, Y)
    for name in ("cat_features", "categorical_feature", "categorical_features"):
        theirs = sw.SapwoodClassifier(n_estimators=2).fit(table, Y, **{name: [3]})
        assert theirs.booster_.to_bytes() == ours.booster_.to_bytes()
    with pytest.raises(ParameterError, match="are both categorical_features"):
        sw.SapwoodClassifier(categorical_features=[2]).fit(table, Y, cat_features=[3])


def test_a_number_of_folds_is_whole() -> None:
    for odd in (2.5, "2", True):
        with pytest.raises(
            ParameterError, match=f"n_folds={odd!r} is not an integer; choose 2..200"
        ):
            sw.cv(QUICK, DATA, n_folds=odd)
    assert (
        sw.cv(QUICK, DATA, n_folds=np.int64(2)).keys()
        == sw.cv(QUICK, DATA, nfold=2).keys()
    )


def test_the_words_of_the_peers_for_folds() -> None:
    """What is the case is taken, what is not is refused."""
    numbers = sw.Dataset(X, X[:, 0])
    groups = sw.Dataset(X, Y, group=np.arange(200) // 4)
    for params, data, by_class in (
        (QUICK, DATA, True),
        ({"n_estimators": 2}, numbers, False),
        (QUICK, groups, False),
    ):
        asked = sw.cv(params, data, stratified=by_class, shuffle=True)
        assert all(
            (asked[name] == values).all()
            for name, values in sw.cv(params, data).items()
        )
        for given in ({"stratified": not by_class}, {"shuffle": False}):
            with pytest.raises(
                ParameterError,
                match=r"is not available: rows are dealt at random, .* or give folds",
            ):
                sw.cv(params, data, **given)
    with pytest.raises(ParameterError, match="shuffle='yes' is neither True nor False"):
        sw.cv(QUICK, DATA, shuffle="yes")  # type: ignore[arg-type]
    with pytest.raises(
        ParameterError,
        match="stratified=True says how folds are dealt, but folds are given",
    ):
        sw.cv(QUICK, DATA, stratified=True, folds=TimeSeriesSplit(3))


@pytest.mark.filterwarnings("error")
def test_a_structured_array_is_a_table() -> None:
    frame = pd.DataFrame(X, columns=list("abc")).assign(
        city=np.where(Y > 0, "Rom", "Oslo")
    )
    records = np.array(
        [*frame.itertuples(index=False)],
        [*((name, "f8") for name in "abc"), ("city", "U4")],
    )
    ours, theirs = (
        sw.SapwoodClassifier(n_estimators=5).fit(table, Y) for table in (frame, records)
    )
    assert ours.booster_.to_bytes() == theirs.booster_.to_bytes()
    other = records[["city", "c", "b", "a"]]
    assert (theirs.predict(other) == ours.predict(frame)).all() and (
        ours.predict(other) == ours.predict(frame)
    ).all()


def test_folds_of_ones_own() -> None:
    expected = sw.cv({**QUICK, "seed": 3}, DATA, n_folds=3)
    fold = splits.folds(3, 3, 200, Y)
    pairs = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    for more in ({"nfold": 3}, {"fold_count": 3}, {"folds": pairs}):
        got = sw.cv({**QUICK, "seed": 3}, DATA, **more)
        assert got.keys() == expected.keys() and all(
            (got[name] == expected[name]).all() for name in got
        )
    by_time = sw.cv(QUICK, DATA, folds=TimeSeriesSplit(3))["logloss_mean"]
    by_hand = []
    for train, test in TimeSeriesSplit(3).split(X):
        rows, rest = (
            sw.Dataset(X[part], Y[part], reference=DATA) for part in (train, test)
        )
        by_hand.append(sw.train(QUICK, rows, valid=rest).history["valid"]["logloss"])
    assert by_time == pytest.approx(np.mean(by_hand, axis=0), rel=1e-14)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (3, "folds=3 is neither a list of pairs"),
        ([], "folds is empty"),
        ([3], "fold 0 is not a pair"),
        (
            [([0], [200])],
            "fold 0 is not a pair .train, test. of positions of 200 rows: index 200",
        ),
        ([([0, 1], [1])], "has a row in both parts"),
        ([([0, 1], [])], "fold 0 is not a pair"),
    ],
)
def test_folds_that_are_none(folds: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.cv(QUICK, DATA, folds=folds)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("best_ntree_limit", "best_round"),
        ("save_raw", r"to_bytes\(\)"),
        ("dump_model", r"to_frame\(\)"),
    ],
)
def test_what_models_of_the_peers_have(name: str, hint: str) -> None:
    booster = sw.train({"n_estimators": 1}, sw.Dataset([[0.0], [1.0]], [0.0, 1.0]))
    with pytest.raises(AttributeError, match=f"a Booster has no '{name}'; use {hint}"):
        getattr(booster, name)
    with pytest.raises(AttributeError, match=r"a Booster has no 'colour'$"):
        booster.colour  # noqa: B018
    with pytest.raises(TypeError, match=r"predict\(\) has no argument 'num_iter'"):
        booster.predict([[0.0]], num_iter=1)
    assert not hasattr(booster, name) and hasattr(booster, "predict")


@pytest.mark.parametrize(
    "other", [X, "model", sw.SapwoodClassifier()], ids=lambda one: type(one).__name__
)
def test_a_reference_is_a_dataset(other: Any) -> None:
    other = sw.train(QUICK, DATA) if isinstance(other, str) else other
    with pytest.raises(
        DataError,
        match=f"reference is a {type(other).__name__}; give the Dataset whose bins",
    ):
        sw.Dataset(X, Y, reference=other)


def test_a_model_of_another_objective_does_not_go_on() -> None:
    binary = sw.train(QUICK, DATA)
    with pytest.raises(
        DataError,
        match="init_model differs in its objective: logistic, where this training has softmax",
    ):
        sw.train(
            {"objective": "softmax", "n_estimators": 2},
            sw.Dataset(X, np.arange(200) % 4),
            init_model=binary,
        )
    estimator = sw.SapwoodClassifier(n_estimators=2).fit(X, Y)
    with pytest.raises(
        ParameterError,
        match="is a SapwoodClassifier; give a Booster of sapwood: that of an estimator is its booster_",
    ):
        sw.train(QUICK, DATA, init_model=estimator)  # type: ignore[arg-type]


def test_a_model_goes_on_from_its_scores_where_bins_differ() -> None:
    binary = sw.train(QUICK, DATA)
    other = RNG.normal(size=(300, 3))
    labels = (other[:, 0] > 0).astype(float)
    with pytest.raises(
        DataError,
        match=r"or train on what the model leaves: init_score=model\.predict\(X, raw=True\)",
    ):
        sw.train(QUICK, sw.Dataset(other, labels), init_model=binary)
    more = sw.train(
        QUICK, sw.Dataset(other, labels, init_score=binary.predict(other, raw=True))
    )
    assert more.n_rounds == 5


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_off_is_no_second_weight(order: int) -> None:
    given = dict([("is_unbalance", False), ("scale_pos_weight", 3)][::order])
    assert (
        resolve(given)["class_weight"]
        == resolve({"scale_pos_weight": 3})["class_weight"]
        is not None
    )
