"""Metrics of ranks: conventions of the libraries, weights, empty groups, names."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from sapwood import metric
from sapwood.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(40), 9)
Y = RNG.choice(4, 360, p=[0.6, 0.2, 0.1, 0.1]).astype(float)
S = RNG.normal(size=360).round(1)


def by_group(function: Any) -> float:
    return float(
        np.mean(
            [function(Y[one == GROUP], S[one == GROUP]) for one in np.unique(GROUP)]
        )
    )


def test_ndcg_is_that_of_scikit_learn() -> None:
    expected = by_group(lambda y, s: ndcg_score([y], [s], k=5) if y.any() else 0.0)
    assert metric.ndcg(Y, S, group=GROUP, at=5, convention="sklearn") == pytest.approx(
        expected, rel=1e-12
    )


def test_ndcg_and_map_are_those_of_lightgbm() -> None:
    lgb = pytest.importorskip("lightgbm")
    data = lgb.Dataset(
        np.zeros((360, 1)), Y, group=np.full(40, 9), init_score=S, free_raw_data=False
    )
    seen: dict[str, Any] = {}
    params = {
        "objective": "lambdarank",
        "metric": ["ndcg", "map"],
        "eval_at": [3, 5],
        "verbose": -1,
        "num_leaves": 2,
    }
    lgb.train(
        params, data, 1, valid_sets=[data], callbacks=[lgb.record_evaluation(seen)]
    )
    for at in (3, 5):
        ours = metric.ndcg(Y, S, group=GROUP, at=at, convention="lightgbm")
        assert ours == pytest.approx(seen["training"][f"ndcg@{at}"][0], abs=1e-9)
        ours = metric.map_at(Y, S, group=GROUP, at=at, convention="lightgbm")
        assert ours == pytest.approx(seen["training"][f"map@{at}"][0], abs=1e-9)


def test_ndcg_is_that_of_catboost() -> None:
    pytest.importorskip("catboost")
    from catboost.utils import eval_metric

    for kind, gain in (("Base", "linear"), ("Exp", "exp")):
        (theirs,) = eval_metric(Y, S, f"NDCG:top=5;type={kind}", group_id=GROUP)
        ours = metric.ndcg(Y, S, group=GROUP, at=5, gain=gain, convention="catboost")
        assert ours == pytest.approx(theirs, abs=1e-9)
    (theirs,) = eval_metric((Y > 0).astype(float), S, "MRR:top=4", group_id=GROUP)
    assert metric.mrr(
        Y > 0, S, group=GROUP, at=4, convention="catboost"
    ) == pytest.approx(theirs, abs=1e-9)
    (theirs,) = eval_metric(Y / 4, S, "ERR:top=6", group_id=GROUP)
    ours = metric.err(
        Y / 4, S, group=GROUP, at=6, gain="linear", ties="pessimistic", empty=0
    )
    assert ours == pytest.approx(theirs, abs=1e-9)
    (theirs,) = eval_metric(Y, S, "RecallAt:top=3", group_id=GROUP)
    assert metric.recall_at(
        Y, S, group=GROUP, at=3, convention="catboost"
    ) == pytest.approx(theirs, abs=1e-9)


def test_empty_groups_and_weights() -> None:
    y = [1.0, 0, 0, 0]
    s = [2.0, 1, 1, 2]
    group = ["a", "a", "b", "b"]
    assert metric.ndcg(y, s, group=group) == 1.0
    assert metric.ndcg(y, [1.0, 2, 0, 0], group=group, empty=0) == pytest.approx(
        0.5 / np.log2(3)
    )
    assert metric.ndcg(
        y, [1.0, 2, 0, 0], [1, 1, 3, 3], group=group, empty=1
    ) == pytest.approx((1 / np.log2(3) + 3) / 4)
    with pytest.raises(DataError, match="no group has a relevant row"):
        metric.ndcg([0.0, 0], [1.0, 2], group=[1, 1])
    with pytest.raises(DataError, match="below 0"):
        metric.ndcg([0.0, -1], [1.0, 2], group=[1, 1])
    with pytest.raises(ParameterError, match="convention"):
        metric.ndcg([0.0, 1], [1.0, 2], group=[1, 1], convention="light")


def test_order_of_rows_and_groups_changes_no_bit() -> None:
    order = RNG.permutation(360)
    weight = RNG.integers(0, 4, 40)[GROUP].astype(float)
    for one in metric.RANKS.values():
        both = [
            one(Y[at], S[at], weight[at], None, GROUP[at])
            for at in (np.arange(360), order)
        ]
        assert both[0] == both[1], one.name


def test_names() -> None:
    (one,) = metric.resolve("ndcg@3-", default="rmse", link="identity")
    assert one.name == "ndcg@3-"
    assert one(Y, S, None, None, GROUP) == metric.ndcg(Y, S, group=GROUP, at=3, empty=0)
    (one,) = metric.resolve("PrecisionAt:top=4", default="rmse", link="identity")
    assert one.name == "precision_at@4"
    with pytest.raises(ParameterError, match="takes places"):
        metric.resolve("ndcg@depth=4", default="rmse", link="identity")
