"""Gradients of ranking beside those of XGBoost (but for the hessian), LightGBM and
CatBoost, where rules are the same; whole trees beside those of LightGBM."""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood.device import host

N = 96
SIZE = 12
RNG = np.random.default_rng(3)
LABEL = RNG.integers(0, 4, N).astype(float)
SCORE = RNG.normal(0, 1.2, N)
GROUP = np.repeat(np.arange(N // SIZE), SIZE)
ROW = np.arange(N, dtype=float)[:, None]  # a leaf for each row


def ours(**own: Any) -> Any:
    settings = {
        "metric": "ndcg",
        "truncation": 8,
        "sigma": 1.0,
        "norm": True,
        "score_norm": True,
        "permutations": 1,
        "neighbours": 1,
        "decay": 1.0,
        "seed": 0,
    }
    gain = 2**LABEL - 1
    loss = host.RankLoss(
        "lambdarank", GROUP.astype(np.int32), LABEL, gain, None, None, settings | own
    )
    return loss.gradients(SCORE, 0, 1)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("score_norm", [True, False])
def test_lambdarank_has_the_gradients_of_xgboost(norm: bool, score_norm: bool) -> None:
    """XGBoost's hessian is twice ours."""
    xgb = pytest.importorskip("xgboost")
    g, h = ours(norm=norm, score_norm=score_norm)
    data = xgb.DMatrix(ROW, LABEL, qid=GROUP, base_margin=SCORE)
    for penalty in (0.0, 0.5):
        params = {
            "objective": "rank:ndcg",
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": 8,
            "eta": 1.0,
            "tree_method": "hist",
            "max_bin": 256,
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": 0,
            "min_child_weight": 0,
            "lambda": penalty,
            "nthread": 1,
            "lambdarank_normalization": norm,
            "lambdarank_score_normalization": score_norm,
        }
        model = xgb.train(params, data, 1)
        leaf = model.predict(data, pred_leaf=True).astype(int).ravel()
        value = model.predict(data, output_margin=True).astype(float) - SCORE
        assert len(np.unique(leaf)) > 8
        sums = [np.bincount(leaf, part)[leaf] for part in (g, h)]
        np.testing.assert_allclose(
            value, -sums[0] / (2 * sums[1] + penalty), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("norm", [True, False])
def test_lambdarank_has_the_gradients_of_lightgbm(norm: bool) -> None:
    """LightGBM sums in float32, and takes the sigmoid from a table of 2^20 steps."""
    lgb = pytest.importorskip("lightgbm")
    g, h = ours(norm=norm, score_norm=norm)
    params = {
        "objective": "lambdarank",
        "lambdarank_truncation_level": 8,
        "lambdarank_norm": norm,
        "learning_rate": 1.0,
        "num_leaves": N,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.3,
        "min_data_in_bin": 1,
        "num_threads": 1,
        "verbose": -1,
    }
    for penalty in (0.0, 0.5):
        data = lgb.Dataset(ROW, LABEL, group=[SIZE] * (N // SIZE), init_score=SCORE)
        model = lgb.train(params | {"lambda_l2": penalty}, data, 1)
        leaf = model.predict(ROW, pred_leaf=True).astype(int).ravel()
        assert len(np.unique(leaf)) > 8
        sums = [np.bincount(leaf, part)[leaf] for part in (g, h)]
        np.testing.assert_allclose(
            model.predict(ROW, raw_score=True),
            -sums[0] / (sums[1] + penalty),
            rtol=2e-4,
            atol=1e-5,
        )


def test_trees_of_lightgbm() -> None:
    """Where rules coincide, the trees do: scores start apart, so that no tie is broken
    by the order of rows, and leaves have a minimum of hessians only, for LightGBM
    guesses counts of rows from hessians."""
    lgb = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(5)
    n = 2000
    X = rng.integers(0, 40, (n, 6)).astype(float)
    group = np.repeat(np.arange(n // 20), 20)
    label = np.digitize(
        X[:, 0] / 20 + X[:, 1] * X[:, 2] / 800 + rng.normal(0, 0.7, n), [0.5, 1.5, 2.5]
    ).astype(float)
    start = rng.normal(0, 0.3, n)
    params = {
        "objective": "lambdarank",
        "num_leaves": 12,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 1.0,
        "num_threads": 1,
        "verbose": -1,
        "min_data_in_bin": 1,
    }
    theirs = lgb.train(
        params, lgb.Dataset(X, label, group=[20] * (n // 20), init_score=start), 15
    )
    data = sapwood.Dataset(
        X, label, group=group, init_score=start, recipe="lightgbm", min_samples_bin=1
    )
    own = {
        "max_leaves": 12,
        "min_samples_leaf": 1,
        "min_child_weight": 1.0,
        "n_estimators": 15,
        "min_samples_bin": 1,
    }
    mine = sapwood.train({"recipe": "lightgbm", "objective": "lambdarank", **own}, data)
    np.testing.assert_allclose(
        mine.predict(X, init_score=np.zeros(n)),
        theirs.predict(X, raw_score=True),
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.parametrize("name", ["PairLogit", "QueryRMSE"])
def test_other_losses_have_the_gradients_of_catboost(name: str) -> None:
    """One step from the same scores: CatBoost's leaves are sums of gradients over sums
    of hessians.
    """
    catboost = pytest.importorskip("catboost")
    loss = {"PairLogit": "pair_logit", "QueryRMSE": "query_rmse"}[name]
    settings = {
        "metric": "ndcg",
        "truncation": N,
        "sigma": 1.0,
        "norm": False,
        "score_norm": False,
        "permutations": 1,
        "neighbours": 1,
        "decay": 1.0,
        "seed": 0,
    }
    rows = host.RankLoss(
        loss, GROUP.astype(np.int32), LABEL, LABEL, None, None, settings
    )
    g, h = rows.gradients(SCORE, 0, 1)
    bits = np.arange(N)[:, None] >> np.arange(7) & 1
    pool = catboost.Pool(bits, LABEL, group_id=GROUP, baseline=SCORE)
    model = catboost.CatBoost(
        {
            "loss_function": name,
            "iterations": 1,
            "learning_rate": 1.0,
            "depth": 7,
            "l2_leaf_reg": 1e-9,
            "verbose": 0,
            "leaf_estimation_iterations": 1,
            "leaf_estimation_method": "Newton",
            "thread_count": 1,
            "random_strength": 0,
            "bootstrap_type": "No",
            "boosting_type": "Plain",
            "leaf_estimation_backtracking": "No",
        }
    ).fit(pool)
    leaf = model.calc_leaf_indexes(catboost.Pool(bits)).ravel()
    assert len(np.unique(leaf)) > N // 2
    sums = [np.bincount(leaf, part)[leaf] for part in (g, h)]
    value = model.predict(bits, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(
        value - value.mean(), (v := -sums[0] / sums[1]) - v.mean(), rtol=1e-4, atol=1e-4
    )
