"""Models of XGBoost and LightGBM side by side with ours, tree by tree, on their
training rows.

In: parameters of Sapwood and a fitted model of a peer. Out: how many rounds a tie
decided; an AssertionError where the trees part the rows otherwise, or leaf values or
scores differ.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import xgboost

import sapwood
from peers.side_by_side import Array, Difference, Side, Tree, differences

# scores (n_rows, n_outputs) -> gradients, hessians
Gradients = Callable[[Array], tuple[Array, Array]]
# gradients, hessians, node -> best score a peer finds
Finds = Callable[[Array, Array, Difference], float]

# has its own bin, as in exact trees
EVERY_VALUE: dict[str, Any] = {"max_bins": 65535, "min_samples_bin": 1}

# Peers keep gradients, and XGBoost gains, in float32: two scores of a node tie within a
# few of its rounding errors.
TIE = 1e-6


def xgboost_trees(model: xgboost.Booster) -> list[dict[str, Any]]:
    """Every tree of a model as its JSON has it."""
    trees: list[dict[str, Any]] = json.loads(model.save_raw("json"))["learner"][
        "gradient_booster"
    ]["model"]["trees"]
    return trees


class Peer(NamedTuple):
    """A fitted model of a peer."""

    trees: list[list[Tree]]  # by round and output
    scores: list[Array]  # (n_rows, n_outputs) before the first round, and after each

    @classmethod
    def of_xgboost(
        cls,
        params: Mapping[str, Any],
        X: Array,
        y: Array,
        weight: Array | None,
        rounds: int,
    ) -> "Peer":
        data = xgboost.DMatrix(X, y, weight=weight, nthread=1)
        model = xgboost.train({"nthread": 1, "max_bin": 65535, **params}, data, rounds)
        trees = [Tree.of_xgboost(tree) for tree in xgboost_trees(model)]
        scores = [
            model.predict(data, output_margin=True, iteration_range=(0, i))
            .reshape(len(X), -1)
            .astype(np.float64)
            for i in range(1, rounds + 1)
        ]
        n = scores[0].shape[1]
        by_round = [trees[i : i + n] for i in range(0, len(trees), n)]
        start = scores[0] - np.stack([tree.values(X) for tree in by_round[0]], axis=1)
        return cls(by_round, [start, *scores])

    @classmethod
    def of_lightgbm(
        cls,
        params: Mapping[str, Any],
        X: Array,
        y: Array,
        weight: Array | None,
        rounds: int,
        start: float,
    ) -> "Peer":
        every_value = {
            "max_bin": 65535,
            "min_data_in_bin": 1,
            "bin_construct_sample_cnt": len(X),
        }
        settings = {
            "num_threads": 1,
            "verbose": -1,
            "deterministic": True,
            **every_value,
            **params,
        }
        n = params.get("num_class", 1)
        scores = [np.full((len(X), n), start)]
        # its trees hold no start then
        data = lightgbm.Dataset(X, y, weight=weight, init_score=scores[0].ravel())
        model = lightgbm.train(settings, data, rounds)
        trees = [Tree.of_lightgbm(tree) for tree in model.dump_model()["tree_info"]]
        by_round = [trees[i : i + n] for i in range(0, len(trees), n)]
        for one in by_round:
            scores.append(
                scores[-1] + np.stack([tree.values(X) for tree in one], axis=1)
            )
        return cls(by_round, scores)


def compare(
    params: Mapping[str, Any],
    X: Array,
    y: Array,
    weight: Array | None,
    peer: Peer,
    gradients: Gradients,
    tolerance: float,
    from_start: bool = True,
    finds: Finds | None = None,
) -> tuple[int, float]:
    """Train the model of a peer and hold both side by side, as `side_by_side.compare`
    does.

    Parameters
    ----------
    params, X, y
        As `side_by_side.compare` takes them.
    weight : (n_rows) float64 or None
        The weights of the rows.
    peer : Peer
        What to agree with.
    gradients : callable
        Gradients and hessians at some scores, by which ties are told.
    tolerance : float
        Largest difference of a leaf value or a score.
    from_start : bool
        Whether both find the same start score; else ours begins at the peer's.
    finds : callable, optional
        Where the peer does not look at every candidate: the best it finds. A better
        split of ours is as good as a tie.

    Returns
    -------
    n_ties : int
        How many rounds had a tie; every tree of all others parts the rows as the peer's
        does.
    worst : float
        The largest difference there was.
    """
    done = 0
    ties = 0
    worst = 0.0
    w = np.ones(len(y)) if weight is None else weight
    while done < len(peer.trees):
        start = peer.scores[done] if done or not from_start else None
        data = sapwood.Dataset(
            X, label=y, weight=weight, init_score=start, **EVERY_VALUE
        )
        booster = sapwood.train(
            {
                **params,
                **EVERY_VALUE,
                "n_estimators": len(peer.trees) - done,
                "n_jobs": 1,
            },
            data,
        )
        n_outputs = len(peer.trees[0])
        for index, scores in enumerate(
            booster.staged_predict(X, raw=True, init_score=start)
        ):
            g, h = gradients(peer.scores[done])
            same = True
            for k, theirs in enumerate(peer.trees[done]):
                ours = Tree.of_sapwood(booster, index * n_outputs + k)
                if not agree(X, ours, theirs, g[:, k] * w, h[:, k] * w, params, finds):
                    same = False
                    continue
                worst = max(
                    worst, float(np.abs(ours.values(X) - theirs.values(X)).max())
                )
            done += 1
            if not same:
                ties += 1
                break
            worst = max(
                worst,
                float(np.abs(scores.reshape(len(X), -1) - peer.scores[done]).max()),
            )
            assert worst <= tolerance, (
                f"after round {done} leaf values or scores differ by {worst:g} > {tolerance:g}"
            )
    return ties, worst


def agree(
    X: Array,
    ours: Tree,
    theirs: Tree,
    g: Array,
    h: Array,
    params: Mapping[str, Any],
    finds: Finds | None = None,
) -> bool:
    """Whether two trees part the rows alike; raise unless each node where they do not
    is a tie of two splits.
    """
    same = True
    for node in differences(X, ours, theirs):
        mine, other = (
            split_score(g[node.rows], h[node.rows], side, params)
            for side in (node.mine, node.other)
        )
        tie = abs(mine - other) <= TIE * max(mine, other)
        if not tie and finds is not None and mine > other:
            found = finds(g, h, node)
            tie = abs(found - other) <= TIE * max(found, other)
        assert tie, (
            f"{len(node.rows)} rows are split with a score of {mine!r}, by the peer with {other!r}"
        )
        same = False
    return same


def split_score(g: Array, h: Array, side: Side, params: Mapping[str, Any]) -> float:
    """What the best steps of the children take off twice the penalised loss; of the
    node itself for no split.

    G^2 / (H + lambda), G after the soft threshold, unless `max_delta_step` cuts the
    step.
    """
    total = 0.0
    most = params.get("max_delta_step", 0.0) or np.inf
    for part in [np.ones(len(g), np.bool_)] if side is None else [side, ~side]:
        t = max(abs(float(g[part].sum())) - params.get("reg_alpha", 0.0), 0.0)
        b = float(h[part].sum()) + params.get("reg_lambda", 1.0)
        step = min(t / b, most)
        total += step * (2 * t - b * step)
    return total
