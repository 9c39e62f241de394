"""Training: what enters, what is refused, early stopping, and going on from a model."""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood import Dataset, cv, train
from sapwood.boost import splits
from sapwood.errors import DataError, DivergedError, ParameterError

rng = np.random.default_rng(7)
X = rng.standard_normal((300, 3)).round(2)
X[rng.random(300) < 0.1, 1] = np.nan
Y = X[:, 0] ** 2 + np.isnan(X[:, 1]) + 0.3 * rng.standard_normal(300)
LABELS = {
    "squared_error": Y,
    "logistic": (Y > 1).astype(float),
    "softmax": np.digitize(Y, [0.3, 1.5]).astype(float),
}
DATA = Dataset(X, Y)


def parts(n_train: int = 200, label: Any = Y) -> tuple[Dataset, Dataset]:
    """Training rows, and the rest in their bins."""
    data = Dataset(X[:n_train], label[:n_train])
    return data, Dataset(X[n_train:], label[n_train:], reference=data)


# --------------------------------------------------------------------------------------
# the model
@pytest.mark.parametrize("objective", LABELS)
def test_a_model_learns_and_knows_where_it_comes_from(objective: str) -> None:
    data = Dataset(X, LABELS[objective], feature_names=["a", "b", "c"], max_bins=64)
    booster = train(
        {
            "objective": objective,
            "eta": 0.3,
            "iterations": 8,
            "num_leaves": 4,
            "seed": 3,
        },
        data,
    )
    assert (booster.n_rounds, booster.n_outputs) == (
        8,
        3 if objective == "softmax" else 1,
    )
    assert (booster.objective, booster.feature_names, booster.named) == (
        objective,
        ("a", "b", "c"),
        True,
    )
    assert booster.data_fingerprint == data.fingerprint()
    kept = {
        "learning_rate": 0.3,
        "max_leaves": 4,
        "random_state": 3,
        "max_bins": 64,
        "objective": objective,
    }
    assert kept.items() <= booster.params.items()
    assert booster.best_round is None and booster.history == {}
    metric = (
        sapwood.train({**booster.params, "n_estimators": 20}, data, valid=data)
        .history["valid"]
        .popitem()[1]
    )
    assert metric == sorted(metric, reverse=True) and metric[-1] < 0.9 * metric[0]


def test_without_an_objective_it_is_squared_error() -> None:
    assert train({"n_estimators": 1}, DATA).params["objective"] == "squared_error"


def test_the_number_of_classes_can_be_given() -> None:
    data = Dataset(X, LABELS["softmax"])
    assert train(
        {"objective": "multiclass", "num_class": 5, "n_estimators": 2}, data
    ).predict(X).shape == (300, 5)


def test_params_are_not_changed() -> None:
    params = {"eta": 0.3, "n_estimators": 2, "objective": "RMSE"}
    train(params, DATA)
    assert params == {"eta": 0.3, "n_estimators": 2, "objective": "RMSE"}


def test_the_model_does_not_depend_on_how_it_was_watched_or_on_threads() -> None:
    data, held = parts()
    params = {"n_estimators": 5, "subsample": 0.7, "colsample_bynode": 0.7}
    plain = train({**params, "n_jobs": 1}, data)
    watched = train(
        {**params, "n_jobs": 3, "eval_metric": "mae"},
        data,
        valid=held,
        callbacks=[lambda view: None],
    )
    assert plain.to_bytes() == watched.to_bytes()


# --------------------------------------------------------------------------------------
# validation
def test_validation_scores_are_those_of_the_model() -> None:
    for objective, label in LABELS.items():
        data, held = parts(label=label)
        booster = train(
            {
                "objective": objective,
                "n_estimators": 6,
                "eval_metric": lambda y, p, w: p.ravel()[5],
            },
            data,
            valid=held,
        )
        at = [staged.ravel()[5] for staged in booster.staged_predict(X[200:])]
        assert booster.history == {"valid": {"<lambda>": at}}


def test_sets_have_names() -> None:
    data, held = parts()
    params = {"n_estimators": 1, "eval_metric": ["mae", "rmse"]}
    assert list(train(params, data, valid=[held, data]).history) == [
        "valid_0",
        "valid_1",
    ]
    history = train(params, data, valid={"late": held, "train": data}).history
    assert {name: list(lists) for name, lists in history.items()} == {
        "late": ["mae", "rmse"],
        "train": ["mae", "rmse"],
    }
    assert train(params, data, valid=[]).history == {}


def test_validation_weights_count() -> None:
    data, held = parts()
    weight = np.arange(100) % 3.0
    weighted = Dataset(X[200:], Y[200:], weight, reference=data)
    repeated = Dataset(
        np.repeat(X[200:], weight.astype(int), axis=0),
        np.repeat(Y[200:], weight.astype(int)),
        reference=data,
    )
    booster = train({"n_estimators": 3}, data, valid=[weighted, repeated, held])
    first, second, third = (lists["rmse"] for lists in booster.history.values())
    assert first == second != third


# --------------------------------------------------------------------------------------
# early stopping
def test_the_last_set_and_the_first_metric_decide() -> None:
    data, held = parts()
    params = {
        "n_estimators": 300,
        "eta": 0.5,
        "early_stopping_rounds": 4,
        "eval_metric": ["mae", "rmse"],
    }
    booster = train(params, data, valid=[data, held])
    mae = booster.history["valid_1"]["mae"]
    assert booster.best_round == booster.n_rounds == int(np.argmin(mae)) + 1
    assert len(mae) == booster.best_round + 4 < 300
    assert (
        booster.to_bytes()
        != train({**params, "n_estimators": booster.best_round}, data).to_bytes()
    )
    whole = train({"n_estimators": booster.best_round, "eta": 0.5}, data)
    assert (whole.predict(X) == booster.predict(X)).all()


def test_all_rounds_without_a_better_one_keep_the_best() -> None:
    data, held = parts()
    booster = train(
        {"n_estimators": 30, "eta": 0.5, "early_stopping_rounds": 100}, data, valid=held
    )
    rmse = booster.history["valid"]["rmse"]
    assert len(rmse) == 30 and booster.n_rounds == int(np.argmin(rmse)) + 1 < 30


def test_without_a_set_some_rows_are_held_out() -> None:
    params = {
        "n_estimators": 40,
        "eta": 0.5,
        "early_stopping_rounds": 3,
        "validation_fraction": 0.2,
        "seed": 11,
    }
    booster = train(params, DATA)
    held = splits.holdout(11, 0.2, 300)
    assert held.sum() == 60 and list(booster.history) == ["holdout"]
    without = train(
        {"n_estimators": booster.n_rounds, "eta": 0.5},
        Dataset(X[~held], Y[~held], reference=DATA),
    )
    assert (without.predict(X) == booster.predict(X)).all()
    error = booster.predict(X)[held] - Y[held]
    assert booster.history["holdout"]["rmse"][booster.best_round - 1] == pytest.approx(
        np.sqrt(np.mean(error**2))
    )


def test_weights_hold_for_held_out_rows_too() -> None:
    weight = rng.integers(0, 3, 300).astype(float)
    params = {
        "n_estimators": 3,
        "early_stopping_rounds": 3,
        "eval_metric": lambda y, p, w: float(w.sum()),
    }
    held = splits.holdout(0, 0.1, 300, weight)
    assert (
        train(params, Dataset(X, Y, weight)).history["holdout"]["<lambda>"]
        == [weight[held].sum()] * 3
    )


# --------------------------------------------------------------------------------------
# going on
@pytest.mark.parametrize("objective", LABELS)
@pytest.mark.parametrize("policy", ["leafwise", "depthwise", "symmetric"])
def test_ten_rounds_and_ten_more_are_twenty(objective: str, policy: str) -> None:
    data, held = parts(label=LABELS[objective])
    params = {
        "objective": objective,
        "grow_policy": policy,
        "subsample": 0.6,
        "colsample_bytree": 0.7,
        "max_depth": 3,
    }
    whole = train({**params, "n_estimators": 20}, data, valid=held)
    half = train({**params, "n_estimators": 10}, data, valid=held)
    more = train({**params, "n_estimators": 10}, data, valid=held, init_model=half)
    assert more.to_bytes() == whole.to_bytes()
    (tail,), (all_rounds,) = (
        more.history["valid"].values(),
        whole.history["valid"].values(),
    )
    assert tail == all_rounds[10:]


def test_a_model_goes_on_with_other_parameters_and_rows() -> None:
    data, held = parts()
    half = train({"n_estimators": 3}, data)
    more = train({"n_estimators": 2, "eta": 0.9, "max_depth": 2}, held, init_model=half)
    assert more.n_rounds == 5
    assert (more.predict(X, rounds=3) == half.predict(X)).all()


def test_early_stopping_counts_the_rounds_of_the_whole_model() -> None:
    data, held = parts()
    half = train({"n_estimators": 5, "eta": 0.5}, data)
    more = train(
        {"n_estimators": 200, "eta": 0.5, "early_stopping_rounds": 3},
        data,
        valid=held,
        init_model=half,
    )
    assert (
        more.best_round
        == more.n_rounds
        == 5 + int(np.argmin(more.history["valid"]["rmse"])) + 1
    )


def test_a_model_of_other_cuts_cannot_go_on() -> None:
    half = train({"n_estimators": 3}, Dataset(X + 0.001, Y))
    with pytest.raises(DataError, match="where the data has no cut"):
        train({"n_estimators": 3}, DATA, init_model=half)


@pytest.mark.parametrize(
    ("params", "what"),
    [
        (
            {"objective": "logistic"},
            "differs in its objective: squared_error, where this training has logistic",
        ),
        ({"objective": "softmax", "n_classes": 2}, "differs in its objective"),
    ],
)
def test_a_model_of_another_kind_cannot_go_on(
    params: dict[str, Any], what: str
) -> None:
    with pytest.raises(DataError, match=what):
        train(
            params,
            Dataset(X, LABELS["logistic"]),
            init_model=train({"n_estimators": 1}, DATA),
        )


def test_classes_go_on_as_they_are() -> None:
    """Some may have no rows this time; there cannot be more of them."""
    data = Dataset(X, np.arange(len(X)) % 4)
    model = train({"objective": "softmax", "n_estimators": 2}, data)
    for classes in ([0, 1, 2], [0, 3]):
        label = np.resize(classes, len(X))
        more = train(
            {"n_estimators": 1}, Dataset(X, label, reference=data), init_model=model
        )
        assert (more.n_outputs, more.n_rounds) == (4, 3)
        same = train(
            {"n_estimators": 1, "n_classes": 4},
            Dataset(X, label, reference=data),
            init_model=model,
        )
        assert more.fingerprint() == same.fingerprint()
        absent = np.setdiff1d(range(4), classes)
        assert (more.predict(X)[:, absent] < model.predict(X)[:, absent]).all()
    with pytest.raises(
        DataError,
        match=r"init_model has the classes 0\.\.3, but a label is 4; train it anew",
    ):
        train(
            {"n_estimators": 1},
            Dataset(X, np.arange(len(X)) % 5, reference=data),
            init_model=model,
        )


def test_only_a_booster_can_go_on() -> None:
    with pytest.raises(
        ParameterError, match="init_model is a int; give a Booster of sapwood"
    ):
        train({}, DATA, init_model=3)  # type: ignore[arg-type]


def test_a_model_of_other_columns_cannot_go_on() -> None:
    with pytest.raises(DataError, match="differs in its columns"):
        train(
            {},
            Dataset(X, Y, feature_names=["a", "b", "c"]),
            init_model=train({"n_estimators": 1}, DATA),
        )


# --------------------------------------------------------------------------------------
# first scores
def test_an_init_score_is_where_scores_start() -> None:
    start = 3 * X[:, 0]
    booster = train({"n_estimators": 5}, Dataset(X, Y, init_score=start))
    assert (booster.base == 0).all()
    shifted = train(
        {"n_estimators": 5}, Dataset(X, Y - start, init_score=np.zeros(300))
    )
    assert booster.predict(X, init_score=start) == pytest.approx(
        start + shifted.predict(X), abs=1e-6
    )
    constant = train(
        {"n_estimators": 5}, Dataset(X, Y, init_score=np.full(300, DATA.label.mean()))
    )
    assert constant.predict(X) + DATA.label.mean() == pytest.approx(
        train({"n_estimators": 5}, DATA).predict(X), abs=1e-6
    )


def test_a_validation_set_starts_at_its_own() -> None:
    data = Dataset(X, Y, init_score=X[:, 0])
    held = Dataset(X, Y, init_score=2 * X[:, 0], reference=data)
    booster = train(
        {"n_estimators": 4, "eval_metric": lambda y, p, w: p[7]}, data, valid=held
    )
    expected = [p[7] for p in booster.staged_predict(X, init_score=2 * X[:, 0])]
    assert booster.history["valid"]["<lambda>"] == expected
    more = train(
        {"n_estimators": 2, "eval_metric": lambda y, p, w: p[7]},
        data,
        valid=held,
        init_model=booster,
    )
    assert more.to_bytes() == train({"n_estimators": 6}, data).to_bytes()


# --------------------------------------------------------------------------------------
# refused
@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"max_dept": 3}, ParameterError, "did you mean 'max_depth'"),
        ({"objective": "logistik"}, ParameterError, "did you mean 'logistic'"),
        ({"grow_policy": "leafwize"}, ParameterError, "did you mean 'leafwise'"),
        ({"eval_metric": "rmze"}, ParameterError, "did you mean 'rmse'"),
        ({"n_jobs": 0}, ParameterError, "n_jobs=0"),
        (
            {"grow_policy": "symmetric", "max_depth": None},
            ParameterError,
            "needs a depth",
        ),
        (
            {"num_class": 3},
            ParameterError,
            "n_classes=3 is not for objective='squared_error'",
        ),
        (
            {"max_bins": 63},
            ParameterError,
            "max_bins=63, but the data was made with 255",
        ),
        ({"objective": "binary"}, DataError, "is not 0 or 1"),
        (
            {
                "recipe": "catboost",
                "min_samples_bin": 32,
                "monotone_constraints": {0: 1},
            },
            ParameterError,
            r"score_function='cosine' \(that of recipe='catboost'\), .*; set score_function='l2'",
        ),
    ],
)
def test_bad_parameters(
    params: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(params, DATA)


def test_parameters_are_checked_before_the_data() -> None:
    with pytest.raises(ParameterError, match="eta=-1"):
        train({"eta": -1}, "no data at all")  # type: ignore[arg-type]


def test_bad_data() -> None:
    with pytest.raises(
        DataError,
        match=r"data is a ndarray; make it with sapwood.Dataset\(X, label=y\)",
    ):
        train({}, X)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no label"):
        train({}, Dataset(X))
    with pytest.raises(
        DataError, match="init_score has 2 columns; objective='squared_error' needs 1"
    ):
        train({}, Dataset(X, Y, init_score=np.zeros((300, 2))))


def test_bad_validation_sets() -> None:
    data, held = parts()
    gone = Dataset(X[200:], Y[200:])
    train({"n_estimators": 1}, gone)  # its table was kept until here
    with pytest.raises(
        DataError,
        match=r"'valid' has other columns, cuts or categories; make it with Dataset\(\.\.\., reference=data\)",
    ):
        train({}, data, valid=gone)
    with pytest.raises(DataError, match="'valid_1' has no label"):
        train({}, data, valid=[held, Dataset(X[200:], reference=data)])
    for valid, kind in (
        ((X, Y), "'valid_0' is a ndarray"),
        ([(X, Y)], "'valid_0' is a tuple"),
        (X, "'valid' is a nd"),
    ):
        with pytest.raises(
            DataError,
            match=rf"{kind}.*; make it with Dataset\(X, label=y, reference=data\)",
        ):
            train({}, data, valid=valid)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="both have an init_score, or neither"):
        train(
            {},
            data,
            valid=Dataset(X[200:], Y[200:], init_score=Y[200:], reference=data),
        )
    few = Dataset(X[:200], LABELS["softmax"][:200] % 2)
    unseen = Dataset(X[200:], LABELS["softmax"][200:], reference=few)
    with pytest.raises(DataError, match="label 2 in row"):
        train({"objective": "softmax"}, few, valid=unseen)


def test_too_few_rows_to_hold_any_out() -> None:
    with pytest.raises(DataError, match="leaves none to train on"):
        train({"early_stopping_rounds": 2}, Dataset(X[:1], Y[:1]))


def test_bad_callbacks() -> None:
    for callbacks, odd in (([print, "stop"], "'stop'"), (3, "3"), (0, "0")):
        with pytest.raises(
            ParameterError,
            match=f"callbacks must be a list of callables, {odd} is none; see",
        ):
            train({}, DATA, callbacks=callbacks)  # type: ignore[arg-type]


def test_it_says_why_no_tree_was_split() -> None:
    with pytest.warns(
        UserWarning,
        match="the hessians sum to 1, and min_child_weight=1 wants that much",
    ):
        train({"n_estimators": 2}, Dataset(X, Y, np.ones(len(Y)) / len(Y)))


@pytest.mark.parametrize("where", ["init_score", "init_model"])
def test_scores_start_in_one_place(where: str) -> None:
    data = Dataset(X, Y, init_score=Y) if where == "init_score" else Dataset(X, Y)
    model = train({"n_estimators": 1}, data) if where == "init_model" else None
    with pytest.raises(ParameterError, match=f"{where}.* both say where scores start"):
        train({"n_estimators": 1, "start": 1.0}, data, init_model=model)


def test_cv_does_not_prune_by_the_rows_it_measures() -> None:
    with pytest.raises(
        ParameterError, match="would prune by the rows it is measured on"
    ):
        cv({"prune_by_validation": True}, Dataset(X, Y))


def test_gains_that_overflow_are_a_training_that_diverged() -> None:
    rng = np.random.default_rng(9)  # a step along signs that no row stops
    X = rng.normal(size=(26, 3))
    y = (rng.random(26) < 0.5).astype(float)
    params = {
        "objective": "exponential",
        "leaf_estimation": "gradient",
        "line_search": "tree",
        "subsample": 0.6,
        "grow_policy": "depthwise",
        "max_depth": 2,
        "min_child_weight": 0,
        "learning_rate": 0.5,
        "n_estimators": 4,
        "precision": "narrow",
        "random_state": 1,
    }
    with pytest.raises(
        DivergedError,
        match="the gains of splits are no longer finite; try a smaller learning_rate",
    ):
        sapwood.train(params, Dataset(X, label=y))
