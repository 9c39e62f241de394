"""Gradients of lambdarank beside those of XGBoost, whose rules are the same but for the hessian."""

from typing import Any

import numpy as np
import pytest

from sapwood.device import host

N, SIZE = 96, 12
RNG = np.random.default_rng(3)
LABEL = RNG.integers(0, 4, N).astype(float)
SCORE = RNG.normal(0, 1.2, N)
GROUP = np.repeat(np.arange(N // SIZE), SIZE)
ROW = np.arange(N, dtype=float)[:, None]  # a leaf for each row


def ours(**own: Any) -> Any:
    settings = {
        "metric": "ndcg", "truncation": 8, "sigma": 1.0, "norm": True, "score_norm": True, "permutations": 1,
        "neighbours": 1, "decay": 1.0, "seed": 0,
    }  # fmt: skip
    gain = 2**LABEL - 1
    loss = host.RankLoss("lambdarank", GROUP.astype(np.int32), LABEL, gain, None, None, settings | own)
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
            "objective": "rank:ndcg", "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 8, "eta": 1.0,
            "tree_method": "hist", "max_bin": 256, "grow_policy": "lossguide", "max_depth": 0, "max_leaves": 0,
            "min_child_weight": 0, "lambda": penalty, "nthread": 1,
            "lambdarank_normalization": norm, "lambdarank_score_normalization": score_norm,
        }  # fmt: skip
        model = xgb.train(params, data, 1)
        leaf = model.predict(data, pred_leaf=True).astype(int).ravel()
        value = model.predict(data, output_margin=True).astype(float) - SCORE
        assert len(np.unique(leaf)) > 10
        sums = [np.bincount(leaf, part)[leaf] for part in (g, h)]
        np.testing.assert_allclose(value, -sums[0] / (2 * sums[1] + penalty), rtol=1e-4, atol=1e-5)
