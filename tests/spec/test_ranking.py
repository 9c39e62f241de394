"""Losses and metrics of groups: the core equals the reference; gradients are those of
the stated losses.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sapwood.device import host
from spec.reference import ranking

Floats = NDArray[np.float64]
USUAL: dict[str, Any] = {
    "metric": "ndcg",
    "truncation": 30,
    "sigma": 1.0,
    "norm": True,
    "score_norm": True,
    "permutations": 3,
    "neighbours": 2,
    "decay": 0.85,
    "seed": 7,
}
NUMERIC = 1e-7


def group(n: int, seed: int, ties: bool) -> tuple[Floats, Floats]:
    """Scores and labels of one group."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1.5, n)
    return (score.round(0) if ties else score), rng.choice(
        5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05]
    ).astype(float)


def core(
    kind: str,
    score: Floats,
    label: Floats,
    gain: Floats,
    weight: Floats | None = None,
    **own: Any,
) -> Any:
    numbers = np.zeros(len(score), np.int32)
    key = host.draw(1, 2, 3, 4, len(score))
    loss = host.RankLoss(kind, numbers, label, gain, weight, key, USUAL | own)
    return loss.gradients(score, 5, 1)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("truncation", [3, 30])
@pytest.mark.parametrize("norm", [(True, True), (False, False), (True, False)])
@pytest.mark.parametrize("n", [2, 9, 40])
def test_lambdarank_equals_the_reference(
    ties: bool, truncation: int, norm: tuple[bool, bool], n: int
) -> None:
    score, label = group(n, n + truncation, ties)
    own = {
        "truncation": truncation,
        "sigma": 1.3,
        "norm": norm[0],
        "score_norm": norm[1],
    }
    expected = ranking.pairs(score, label, 2**label - 1, metric="ndcg", **own)
    for got, wanted in zip(
        core("lambdarank", score, label, 2**label - 1, **own), expected, strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("metric", ["map", "mrr", "err"])
def test_other_metrics_weigh_pairs_by_their_swaps(metric: str, ties: bool) -> None:
    score, label = group(14, 3, ties)
    gain = (2**label - 1) / 2**5 if metric == "err" else (label > 0.5).astype(float)
    own = {"truncation": 6, "sigma": 1.0, "norm": True, "score_norm": True}
    expected = ranking.pairs(score, label, gain, metric=metric, **own)
    for got, wanted in zip(
        core("lambdarank", score, label, gain, metric=metric, **own),
        expected,
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("ties", [False, True])
def test_pair_logit_equals_the_reference(ties: bool) -> None:
    score, label = group(33, 8, ties)
    own = {"truncation": 33, "sigma": 0.7, "norm": True, "score_norm": True}
    expected = ranking.pairs(score, label, label, metric="unit", **own)
    for got, wanted in zip(
        core("pair_logit", score, label, label, **own), expected, strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def differences(loss: Any, score: Floats) -> Floats:
    """Central differences of a loss, of fourth order."""
    step = 1e-3
    out = np.zeros(len(score))
    for row in range(len(score)):
        at = [
            loss(score + k * step * (np.arange(len(score)) == row))
            for k in (-2, -1, 1, 2)
        ]
        out[row] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
    return out


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("score_norm", [False, True])
def test_lambdarank_is_the_gradient_of_its_weighted_pairs(
    ties: bool, score_norm: bool
) -> None:
    """The weights of pairs are those of the round: expected changes of NDCG over all
    orders of equal scores.
    """
    score, label = group(12, 4, ties)
    gain = 2**label - 1
    own = {"truncation": 5, "sigma": 1.1, "norm": False, "score_norm": score_norm}
    weights = list(ranking.pair_weights(score, gain, 5, score_norm))
    g, h = core("lambdarank", score, label, gain, **own)
    np.testing.assert_allclose(
        g, differences(lambda s: ranking.loss(s, weights, 1.1), score), atol=NUMERIC
    )
    again = [core_slope(score, weights, 1.1, row) for row in range(len(score))]
    np.testing.assert_allclose(h, again, atol=NUMERIC)


def core_slope(score: Floats, weights: Any, sigma: float, row: int) -> float:
    """The second derivative of the loss of pairs in one score."""
    total = 0.0
    for i, j, w in weights:
        if row in (i, j):
            p = 1 / (1 + np.exp(sigma * (score[i] - score[j])))
            total += sigma**2 * w * p * (1 - p)
    return total


@pytest.mark.parametrize("ties", [False, True])
def test_softmax_and_centred_losses_are_their_differences(ties: bool) -> None:
    score, label = group(15, 5, ties)
    share = (2**label - 0.5) / (2**label - 0.5).sum()
    g, h = core("rank_xendcg", score, label, 2**label - 1)
    np.testing.assert_allclose(
        g,
        differences(lambda s: -(share * (s - np.logaddexp.reduce(s))).sum(), score),
        atol=NUMERIC,
    )
    p = np.exp(score) / np.exp(score).sum()
    np.testing.assert_allclose(h, p * (1 - p), rtol=1e-12)
    weight = np.random.default_rng(2).integers(1, 5, 15) / 4.0

    def squares(s: Floats) -> float:
        rest = s - label
        return float(
            (weight * (rest - np.average(rest, weights=weight)) ** 2).sum() / 2
        )

    g, h = core("query_rmse", score, label, label, weight)
    np.testing.assert_allclose(g * weight, differences(squares, score), atol=NUMERIC)
    assert (h == 1).all()


def test_pairs_of_the_user_are_their_differences() -> None:
    score, label = group(10, 6, True)
    rng = np.random.default_rng(1)
    winner, loser = np.array(
        [rng.choice(10, 2, replace=False) for _ in range(25)], np.int32
    ).T
    weight = rng.random(25)
    loss = host.RankLoss(
        "pair_logit", np.zeros(10, np.int32), label, label, None, None, USUAL
    )
    loss.set_pairs(np.ascontiguousarray(winner), np.ascontiguousarray(loser), weight)
    weights = list(zip(winner, loser, weight, strict=True))
    g, h = loss.gradients(score, 0, 1)
    np.testing.assert_allclose(
        g, differences(lambda s: ranking.loss(s, weights, 1.0), score), atol=NUMERIC
    )
    np.testing.assert_allclose(
        h, [core_slope(score, weights, 1.0, row) for row in range(10)], atol=NUMERIC
    )


@pytest.mark.parametrize("metric", ["classic", "ndcg", "map", "mrr", "err"])
def test_yetirank_sums_to_nothing_and_depends_on_keys_only(metric: str) -> None:
    score, label = group(30, 9, False)
    gain = label / 5 if metric == "err" else label
    key = host.draw(1, 2, 3, 4, 30)

    def of(rows: NDArray[np.intp], round_: int) -> Any:
        made = (label[rows], gain[rows], None, key[rows], USUAL | {"metric": metric})
        return host.RankLoss("yetirank", np.zeros(30, np.int32), *made).gradients(
            score[rows], round_, 1
        )

    g, h = of(np.arange(30), 0)
    assert abs(g.sum()) < 1e-12
    assert (h >= 0).all()
    assert g.any()
    assert g[label > 0.5].sum() < 0
    shuffled = np.random.default_rng(0).permutation(30)
    for one, two in zip((g, h), of(shuffled, 0), strict=True):
        np.testing.assert_array_equal(one[shuffled], two)
    assert (of(np.arange(30), 1)[0] != g).any()


@pytest.mark.parametrize(
    "kind", ["lambdarank", "rank_xendcg", "query_rmse", "pair_logit"]
)
@pytest.mark.parametrize("ties", [False, True])
def test_order_of_rows_and_threads_change_no_bit(kind: str, ties: bool) -> None:
    rng = np.random.default_rng(3)
    n = 40_000
    numbers = rng.integers(0, 900, n).astype(np.int32)
    label = rng.integers(0, 4, n).astype(float)
    score = rng.normal(size=n).round(1 if ties else 9)
    weight = rng.integers(0, 3, n) / 2.0
    loss = host.RankLoss(kind, numbers, label, 2**label - 1, weight, None, USUAL)
    g, h = loss.gradients(score, 0, 1)
    assert g.any()
    assert not g[weight == 0].any()
    order = rng.permutation(n)
    parts = [
        np.ascontiguousarray(one[order])
        for one in (numbers, label, 2**label - 1, weight)
    ]
    again = host.RankLoss(kind, *parts, None, USUAL)
    for n_threads in (1, 2, 3, 7):
        for one, two in zip(
            (g, h),
            again.gradients(np.ascontiguousarray(score[order]), 0, n_threads),
            strict=True,
        ):
            np.testing.assert_array_equal(one[order], two)


@pytest.mark.parametrize("name", ["ndcg", "map", "mrr", "err", "precision", "recall"])
@pytest.mark.parametrize("top", [1, 3, 20])
def test_metrics_average_over_orders_of_equal_scores(name: str, top: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        score = rng.integers(0, 2, 5).astype(float)
        label = np.append(1.0, rng.integers(0, 3, 4))
        gain = (2**label - 1) / 8 if name == "err" else 2**label - 1
        (value,) = host.Groups(np.zeros(5, np.int32)).measure(
            name, gain, score, top, "average"
        )
        assert value == pytest.approx(
            ranking.expected(name, score, gain, top), rel=1e-12
        )
        orders = [gain[list(order)] for order in ranking._orders(score)]
        worst = min(ranking.measure(name, one, top) for one in orders)
        (value,) = host.Groups(np.zeros(5, np.int32)).measure(
            name, gain, score, top, "pessimistic"
        )
        assert value == pytest.approx(worst, rel=1e-12)


def test_a_group_of_a_hundred_thousand_rows() -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    label = rng.integers(0, 5, n).astype(float)
    score = np.zeros(n)
    for kind, metric in (
        ("lambdarank", "ndcg"),
        ("lambdarank", "map"),
        ("lambdarank", "err"),
        ("rank_xendcg", "ndcg"),
    ):
        gain = (
            (2**label - 1) / 32
            if metric == "err"
            else (label > 0).astype(float)
            if metric == "map"
            else 2**label - 1
        )
        g, h = core(kind, score, label, gain, metric=metric)
        assert np.isfinite(g).all()
        assert (h >= 0).all()
        assert g[label == 4].mean() < g[label == 0].mean()
    (value,) = host.Groups(np.zeros(n, np.int32)).measure(
        "err", (2**label - 1) / 32, score, 10, "average"
    )
    assert 0 < value < 1
