"""SapwoodRanker: groups in every form, the peers' names, weights, pairs, positions,
validation, degenerate data.
"""

import pickle
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

import sapwood
from sapwood import SapwoodRanker, metric
from sapwood.boost.auto.ranking import candidates
from sapwood.errors import DataError, ParameterError
from sapwood.objective import GroupLoss

PLAIN: dict[str, Any] = {"n_estimators": 12, "min_samples_leaf": 5, "n_jobs": 2}


def rows(
    n: int = 900, n_groups: int = 60, seed: int = 0
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A table whose first columns say how relevant a row is, labels 0..4, and groups
    that are not in order.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(2)
    y = np.clip(
        np.digitize(X[:, 0] + X[:, 1] + rng.normal(0, 0.5, n), [0, 0.8, 1.6, 2.4]), 0, 4
    ).astype(float)
    return X, y, rng.integers(0, n_groups, n)


X, Y, GROUP = rows()
SCORE = SapwoodRanker(**PLAIN).fit(X, Y, GROUP).predict(X)


def test_learns_an_order() -> None:
    assert (
        metric.ndcg(Y, SCORE, group=GROUP)
        > metric.ndcg(Y, X[:, 0], group=GROUP)
        > metric.ndcg(Y, X[:, 3], group=GROUP)
    )


@pytest.mark.parametrize(
    "objective", ["lambdarank", "rank_xendcg", "query_rmse", "pair_logit", "yetirank"]
)
def test_every_loss_learns_and_is_saved(objective: str) -> None:
    model = SapwoodRanker(objective=objective, **PLAIN).fit(X, Y, GROUP)
    assert model.score(X, Y, GROUP) > 0.85
    assert (
        sapwood.load(model.booster_.to_bytes()).predict(X) == model.predict(X)
    ).all()
    assert (
        pickle.loads(pickle.dumps(clone(model).fit(X, Y, GROUP))).predict(X)
        == model.predict(X)
    ).all()


@pytest.mark.parametrize("ranking_metric", ["map", "mrr", "err"])
def test_every_metric_learns(ranking_metric: str) -> None:
    for objective in ("lambdarank", "yetirank"):
        model = SapwoodRanker(
            objective=objective, ranking_metric=ranking_metric, **PLAIN
        ).fit(X, Y, GROUP)
        assert model.score(X, Y, GROUP) > 0.8


def test_groups_of_any_type_and_in_any_form_are_one() -> None:
    names = np.array([f"q{one}" for one in GROUP])
    for group in (
        names,
        GROUP.astype(float),
        names.astype(object),
        pd.Series(names),
        pl.Series(names),
    ):
        assert (SapwoodRanker(**PLAIN).fit(X, Y, group).predict(X) == SCORE).all()
    order = np.argsort(GROUP, kind="stable")
    sizes = np.bincount(GROUP)
    assert (
        SapwoodRanker(**PLAIN).fit(X[order], Y[order], group=sizes).predict(X) == SCORE
    ).all()
    for name in ("qid", "group_id"):
        assert (
            SapwoodRanker(**PLAIN).fit(X, Y, **{name: names}).predict(X) == SCORE
        ).all()


def test_groups_are_a_column_of_the_table() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    plain = SapwoodRanker(**PLAIN).fit(frame, Y, GROUP).predict(frame)
    for table in (frame.assign(query=GROUP), pl.from_pandas(frame.assign(query=GROUP))):
        model = SapwoodRanker(**PLAIN).fit(table, Y, group="query")
        assert model.n_features_in_ == 5
        assert (model.predict(table) == plain).all()
        assert (model.predict(frame) == plain).all()
        assert model.score(table, Y) == model.score(frame, Y, GROUP)
    with pytest.raises(DataError, match="no column 'quer'"):
        SapwoodRanker(**PLAIN).fit(frame.assign(query=GROUP), Y, group="quer")
    with pytest.raises(DataError, match="no names"):
        SapwoodRanker(**PLAIN).fit(X, Y, group="query")


@pytest.mark.parametrize(
    "objective", ["lambdarank", "rank_xendcg", "query_rmse", "pair_logit", "yetirank"]
)
def test_shuffled_rows_have_the_same_trees(objective: str) -> None:
    """The law of ranking: the order of rows in a group changes no byte of the trees;
    labels are sorted in the file.
    """
    first = np.lexsort((-Y, GROUP))
    shuffled = first.copy()
    rng = np.random.default_rng(1)
    for one in np.unique(GROUP):
        mine = np.flatnonzero(GROUP[first] == one)
        shuffled[mine] = rng.permutation(first[mine])
    models = [
        SapwoodRanker(objective=objective, **PLAIN)
        .fit(X[order], Y[order], GROUP[order])
        .booster_
        for order in (first, shuffled)
    ]
    for name in ("column", "threshold", "value", "gain", "cover"):
        np.testing.assert_array_equal(*(getattr(model.trees, name) for model in models))


def test_weights_of_groups_are_weights_of_their_rows() -> None:
    numbers = np.unique(GROUP, return_inverse=True)[1]
    first = list(dict.fromkeys(numbers.tolist()))
    # by order of first rows
    share = np.random.default_rng(2).integers(1, 4, len(first)).astype(float)
    by_row = share[np.argsort(first)][numbers]
    wanted = SapwoodRanker(**PLAIN).fit(X, Y, GROUP, by_row).predict(X)
    assert (wanted != SCORE).any()
    assert (SapwoodRanker(**PLAIN).fit(X, Y, GROUP, share).predict(X) == wanted).all()
    assert (
        SapwoodRanker(**PLAIN).fit(X, Y, GROUP, group_weight=share).predict(X) == wanted
    ).all()
    named = dict(zip(dict.fromkeys(GROUP.tolist()), share, strict=True))
    assert (
        SapwoodRanker(**PLAIN).fit(X, Y, GROUP, group_weight=named).predict(X) == wanted
    ).all()


def test_a_group_of_weight_0_is_not_there() -> None:
    kept = GROUP != 3
    wanted = SapwoodRanker(**PLAIN).fit(X, Y, GROUP, np.where(kept, 1.0, 0.0)).booster_
    alone = SapwoodRanker(**PLAIN).fit(X[kept], Y[kept], GROUP[kept]).booster_
    np.testing.assert_array_equal(wanted.trees.value, alone.trees.value)
    one_row = np.ones(len(X))
    one_row[7] = 0
    wanted = SapwoodRanker(**PLAIN).fit(X, Y, GROUP, one_row).booster_
    alone = (
        SapwoodRanker(**PLAIN)
        .fit(np.delete(X, 7, 0), np.delete(Y, 7), np.delete(GROUP, 7))
        .booster_
    )
    np.testing.assert_array_equal(wanted.trees.value, alone.trees.value)


def test_pairs_of_the_user() -> None:
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, len(X), (4000, 2))
    pairs = pairs[Y[pairs[:, 0]] > Y[pairs[:, 1]]]
    model = SapwoodRanker(objective="pair_logit", **PLAIN).fit(X, Y, pairs=pairs)
    score = model.predict(X)
    assert (score[pairs[:, 0]] > score[pairs[:, 1]]).mean() > 0.75
    share = np.ones(len(pairs))
    assert (
        SapwoodRanker(**PLAIN).fit(X, Y, pairs=pairs, pairs_weight=share).predict(X)
        == score
    ).all()
    share[::2] = 3
    assert (
        SapwoodRanker(**PLAIN).fit(X, Y, pairs=pairs, pairs_weight=share).predict(X)
        != score
    ).any()
    with pytest.raises(DataError, match="two groups"):
        SapwoodRanker(**PLAIN).fit(X, Y, GROUP, pairs=pairs)
    with pytest.raises(ParameterError, match="pair_logit"):
        SapwoodRanker(objective="lambdarank", **PLAIN).fit(X, Y, GROUP, pairs=pairs)
    with pytest.raises(DataError, match=r"rows 0\.\.899"):
        SapwoodRanker(**PLAIN).fit(X, Y, pairs=[[0, 900]])


def test_the_bias_of_positions_is_learned() -> None:
    """Clicks fall with the position; rows that were shown first are not better."""
    rng = np.random.default_rng(6)
    n = 6000
    size = 10
    table = rng.normal(size=(n, 3))
    group = np.arange(n) // size
    position = np.arange(n) % size
    table[:, 2] = position + rng.normal(0, 2.0, n)  # a column that knows the position
    clicked = (
        rng.random(n) < 1 / (1 + np.exp(-(2 * table[:, 0] - 0.6 * position)))
    ).astype(float)
    fresh = rng.normal(size=(2000, 3)) * [1, 1, 0] + [0, 0, 4.5]
    fresh[:, 2] += rng.uniform(-4.5, 4.5, 2000)
    slopes = []
    for more in ({}, {"position": position}):
        model = SapwoodRanker(
            objective="lambdarank", n_estimators=60, max_leaves=8
        ).fit(table, clicked, group, **more)
        score = model.predict(fresh)
        slopes.append(
            np.polyfit(fresh[:, 2], score, 1)[0] / np.polyfit(fresh[:, 0], score, 1)[0]
        )
    assert slopes[0] < -0.2
    assert abs(slopes[1]) < abs(slopes[0]) / 3
    with pytest.raises(ParameterError, match="position"):
        SapwoodRanker(objective="query_rmse", **PLAIN).fit(
            X, Y, GROUP, position=np.zeros(len(X))
        )
    with pytest.raises(ParameterError, match="give position"):
        SapwoodRanker(position_bias_regularization=1.0, **PLAIN).fit(X, Y, GROUP)


def test_validation_sets_have_groups() -> None:
    more = {"early_stopping_rounds": 5, **PLAIN}
    model = SapwoodRanker(eval_at=[1, 3], **more).fit(
        X, Y, GROUP, eval_set=[(X, Y)], eval_group=[GROUP]
    )
    assert list(model.evals_result_["valid"]) == ["ndcg@1", "ndcg@3"]
    again = SapwoodRanker(eval_at=[1, 3], **more).fit(
        X, Y, GROUP, X_val=X, y_val=Y, group_val=GROUP
    )
    assert again.evals_result_ == model.evals_result_
    kept = model.best_iteration_
    assert model.evals_result_["valid"]["ndcg@1"][kept - 1] == metric.ndcg(
        Y, model.predict(X), group=GROUP, at=1
    )
    with pytest.raises(DataError, match="eval_group"):
        SapwoodRanker(**more).fit(X, Y, GROUP, eval_set=(X.copy(), Y))


def test_whole_groups_are_held_out_sampled_and_dealt_to_folds() -> None:
    data = sapwood.Dataset(X, Y, group=GROUP)
    params = {
        "objective": "lambdarank",
        "early_stopping_rounds": 3,
        "subsample": 0.5,
        "sampling_unit": "group",
        **PLAIN,
    }
    booster = sapwood.train(params, data)
    assert list(booster.history) == ["holdout"]
    found = sapwood.cv({"objective": "lambdarank", **PLAIN}, data, n_folds=3)
    assert found["ndcg@10_mean"][-1] > 0.8
    sapwood.cv({"objective": "lambdarank", **PLAIN}, data, folds=GroupKFold(3))
    with pytest.raises(ParameterError, match="splits a group"):
        sapwood.cv({"objective": "lambdarank", **PLAIN}, data, folds=KFold(3))


def test_groups_by_the_names_of_the_peers() -> None:
    whole = (
        SapwoodRanker(objective="lambdarank", **PLAIN)
        .fit(X, Y, group=GROUP)
        .booster_.to_bytes()
    )
    for name in ("qid", "group_id"):
        assert (
            SapwoodRanker(objective="lambdarank", **PLAIN)
            .fit(X, Y, **{name: GROUP})
            .booster_.to_bytes()
            == whole
        )
    top = int(Y.max()) + 1
    listed = SapwoodRanker(
        objective="lambdarank", label_gain=[2**k - 1 for k in range(top)], **PLAIN
    )
    plain = (
        SapwoodRanker(objective="lambdarank", label_gain="exp", **PLAIN)
        .fit(X, Y, GROUP)
        .predict(X)
    )
    assert (listed.fit(X, Y, GROUP).predict(X) == plain).all()


def test_names_of_the_peers() -> None:
    names: dict[str, dict[str, Any]] = {
        "lightgbm": {
            "objective": "lambdarank",
            "lambdarank_truncation_level": 12,
            "lambdarank_norm": False,
        },
        "xgboost": {
            "objective": "rank:ndcg",
            "lambdarank_num_pair_per_sample": 12,
            "ranking_norm": "none",
        },
        "catboost": {"objective": "LambdaMart:metric=ndcg;top=12;norm=false"},
        "ours": {
            "objective": "lambdarank",
            "truncation_level": 12,
            "ranking_norm": "none",
        },
    }
    data = sapwood.Dataset(X, Y, group=GROUP)
    found = {
        name: sapwood.train({**own, **PLAIN}, data).predict(X)
        for name, own in names.items()
    }
    for name, prediction in found.items():
        assert (prediction == found["ours"]).all(), name
    by_map = sapwood.train({"objective": "rank:map", **PLAIN}, data)
    assert by_map.params["ranking_metric"] == "map"
    yeti = sapwood.train(
        {"objective": "YetiRank:mode=NDCG;permutations=3;num_neighbors=2", **PLAIN},
        data,
    )
    assert (yeti.params["noisy_permutations"], yeti.params["ranking_metric"]) == (
        3,
        "ndcg",
    )
    assert sapwood.train(
        {"objective": "rank_xendcg", "eval_metric": "NDCG:top=5;type=Exp", **PLAIN},
        data,
    )


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"objective": "query_rmse", "truncation_level": 5}, "lambdarank"),
        ({"objective": "lambdarank", "noisy_permutations": 5}, "yetirank"),
        ({"objective": "lambdarank", "ranking_metric": "classic"}, "classic"),
        ({"objective": "squared_error", "label_gain": "exp"}, "for ranking"),
        ({"objective": "lambdarank", "leaf_iterations": 2}, "whole groups"),
        ({"objective": "lambdarank", "boosting": "ordered"}, "whole groups"),
        ({"objective": "lambdarank", "label_gain": [0, 1]}, "longer list"),
        ({"objective": "lambdarank", "eval_metric": "ndcg@0"}, "too small"),
        ({"objective": "stochasticrank"}, "not available"),
    ],
)
def test_what_does_not_go_together_raises(params: dict[str, Any], match: str) -> None:
    with pytest.raises((ParameterError, DataError), match=match):
        sapwood.train({**params, "n_estimators": 2}, sapwood.Dataset(X, Y, group=GROUP))


def test_degenerate_data() -> None:
    def fit(X: Any, y: Any, group: Any, **more: Any) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return SapwoodRanker(**{**PLAIN, **more}).fit(X, y, group).predict(X)

    for objective in (
        "lambdarank",
        "rank_xendcg",
        "query_rmse",
        "pair_logit",
        "yetirank",
    ):
        # one group
        assert fit(X, Y, np.full(len(X), "one"), objective=objective).std() > 0
        # groups of one row
        assert not fit(X, Y, np.arange(len(X)), objective=objective).any()
        # equal labels
        assert np.isfinite(
            fit(X, np.full(len(X), 2.0), GROUP, objective=objective)
        ).all()
        # labels that are not whole
        assert fit(X, Y / 4, GROUP, objective=objective).std() > 0
        doubled = np.repeat(np.arange(len(X)), 2)
        assert np.isfinite(
            fit(X[doubled], Y[doubled], GROUP[doubled], objective=objective)
        ).all()
    # labels too large for 2^label have the gain of the label
    assert fit(X, Y + 30, GROUP).std() > 0
    with pytest.raises(DataError, match="label -1 in row"):
        fit(X, Y - 1, GROUP)
    with pytest.raises(DataError, match="needs groups"):
        SapwoodRanker(**PLAIN).fit(X, Y)
    with pytest.raises(DataError, match="group"):
        sapwood.train({"objective": "lambdarank"}, sapwood.Dataset(X, Y))
    with pytest.raises(DataError, match="sizes"):
        SapwoodRanker(**PLAIN).fit(X, Y, group=[3, 4])
    with pytest.raises(TypeError, match="one argument"):
        SapwoodRanker(**PLAIN).fit(X, Y, group=GROUP, qid=GROUP)
    with pytest.raises(ParameterError, match="there is no loss of groups"):
        GroupLoss("lambda")


def test_an_automatic_fit_is_the_mean_of_losses_and_folds() -> None:
    model = SapwoodRanker(quality="fast", random_state=1).fit(X, Y, GROUP)
    assert model.score(X, Y, GROUP) > 0.9
    assert len(model.chosen_.tried) == 3
    assert {one.part for one in model.chosen_.tried} == {1 / 3}


def test_an_automatic_fit_takes_losses_that_suit_the_groups() -> None:
    def names(
        sizes: list[int], quality: str = "balanced", large: bool = False, **given: Any
    ) -> list[str]:
        return [one.name for one in candidates(given, np.array(sizes), quality, large)]

    assert names([20] * 30) == ["pair_logit", "squared_error"]
    # pairs of all rows would be too many
    assert names([100_000]) == ["lambdarank", "squared_error"]
    assert names([20] * 30, "fast") == ["pair_logit"]
    assert names([20] * 30, large=True) == ["lambdarank"]
    assert names([100_000], objective="pair_logit") == ["pair_logit"]


def test_other_losses_do_not_take_parameters_of_ranking() -> None:
    with pytest.raises(
        ParameterError, match="'truncation_level'; it is for SapwoodRanker"
    ):
        sapwood.SapwoodRegressor(truncation_level=3)
    with pytest.raises(ParameterError, match="lambdarank"):
        sapwood.train(
            {"truncation_level": 3, "objective": "squared_error"}, sapwood.Dataset(X, Y)
        )


def test_chunks_and_threads_change_no_byte() -> None:
    params = {"objective": "yetirank", **PLAIN}
    whole = sapwood.train(
        {**params, "n_jobs": 1}, sapwood.Dataset(X, Y, group=GROUP)
    ).to_bytes()
    for ends in ([0, 5, 900], [0, 300, 301, 900]):
        parts = [(X[a:b], Y[a:b]) for a, b in pairwise(ends)]
        for n_jobs in (2, 3, 7):
            data = sapwood.Dataset.from_chunks(parts, group=GROUP)
            assert sapwood.train({**params, "n_jobs": n_jobs}, data).to_bytes() == whole


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([0.0, 0.0, np.nan, 1.0], "no value in row 2"),
        (np.array(["a", "a", None, "b"], object), "no value in row 2"),
        (np.array(["a", "a", 1, 2], object), "cannot be compared"),
        (
            np.array(
                ["2024-01-01", "NaT", "2024-01-01", "2024-01-02"], "datetime64[D]"
            ),
            "no value in row 1",
        ),
    ],
)
def test_rows_without_a_group_are_refused(names, message) -> None:
    with pytest.raises(DataError, match=message):
        SapwoodRanker(n_estimators=2).fit(
            np.arange(8.0).reshape(4, 2), [0, 1, 0, 1], group=names
        )


def test_an_arrow_table_with_its_groups() -> None:
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "q": GROUP})
    model = SapwoodRanker(**PLAIN).fit(table, Y, group="q")
    assert np.array_equal(
        model.predict(table), model.predict(table.drop_columns(["q"]))
    )
    assert model.score(table, Y) == model.score(table, Y, qid=GROUP) > 0.5


def test_what_was_chosen_is_said_truly() -> None:
    said = str(SapwoodRanker(quality="fast").fit(X, Y, GROUP).chosen_)
    assert (
        "each of 900 rows was held out from 1 of 3 models" in said
        and "each row is in 2 of them" in said
    )


def test_pairs_alone() -> None:
    pairs = np.argsort(-X[:, 0], kind="stable")[:80].reshape(-1, 2)
    for params in ({}, PLAIN):  # automatic and plain
        model = SapwoodRanker(**params).fit(X, pairs=pairs)
        assert (np.diff(model.predict(X)[pairs], axis=1) < 0).mean() > 0.9
    with pytest.raises(DataError, match="pair 0 is row 3 twice"):
        SapwoodRanker(**PLAIN).fit(X, Y, GROUP, pairs=[(3, 3)])


@pytest.mark.parametrize("params", [{}, PLAIN], ids=["automatic", "plain"])
@pytest.mark.parametrize(
    ("label", "group"),
    [(np.zeros(900), GROUP), (np.ones(900), GROUP), (Y, np.arange(900) + 5)],
)
def test_nothing_to_rank_is_said(
    params: dict[str, Any], label: Any, group: Any
) -> None:
    with pytest.warns(UserWarning, match="no group has rows of different labels"):
        assert not SapwoodRanker(**params).fit(X, label, group).predict(X).any()


def test_arguments_that_are_refused() -> None:
    with pytest.raises(DataError, match="y has no rows"):
        SapwoodRanker().fit(X[:0], Y[:0], [])
    with pytest.raises(DataError, match="position has no value in row 0"):
        SapwoodRanker(**PLAIN).fit(X, Y, GROUP, position=np.full(len(Y), np.nan))
    with pytest.raises(ParameterError, match=r"unknown; .*lambdarank.*yetirank"):
        SapwoodRanker(objective="zzz").fit(X, Y, GROUP)
    with pytest.raises(NotFittedError):
        SapwoodRanker().score(X, Y, GROUP)
    for asked, words in (
        ({"gain": "bad"}, "gain='bad'"),
        ({"at": 0}, "at=0"),
        ({"at": [1, 3]}, "at="),
    ):
        with pytest.raises(ParameterError, match=words):
            metric.ndcg(Y, SCORE, group=GROUP, **asked)
    with pytest.raises(DataError, match="predict_dist"):
        metric.nll(Y, SCORE)
    # LightGBM's list in a string
    given = SapwoodRanker(label_gain="0,1,3,7,15", **PLAIN).fit(X, Y, GROUP)
    assert given.booster_.params["label_gain"] == [0, 1, 3, 7, 15]


@pytest.mark.parametrize(
    "given", [{"has_time": True}, {"validation_fraction": 0.3}], ids=str
)
def test_an_automatic_fit_refuses_how_single_trainings_hold_groups_out(
    given: dict[str, Any],
) -> None:
    with pytest.raises(
        ParameterError, match="is not for an automatic fit of a ranking"
    ):
        SapwoodRanker(quality="fast", **given).fit(X, Y, GROUP)


def test_an_automatic_fit_keeps_its_time() -> None:
    model = SapwoodRanker(quality="fast", time_limit=1e-3).fit(X, Y, GROUP)
    assert {one.rounds for one in model.chosen_.tried} == {1}


def test_an_automatic_fit_prints_what_it_tries_and_refuses_a_checkpoint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    SapwoodRanker(quality="fast", verbose=1).fit(X, Y, GROUP)
    assert len(capsys.readouterr().out.splitlines()) == 3  # a line for each fold
    with pytest.raises(ParameterError, match="checkpoint follows a single training"):
        SapwoodRanker(quality="fast", checkpoint="never").fit(X, Y, GROUP)
