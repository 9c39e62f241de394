"""Which training rows made a prediction what it is.

In: a model, rows, and the rows it was trained on. Out: how each score would move if a
training row counted more.

LeafInfluence (Sharchilev et al. 2018) at a single point: trees keep their shape and
rounds their gradients, so a training row moves only the leaves it lies in. A node of
count n, sums G and H and Newton step v' = -G / (H + l) has the value v = (n v' + s u) /
(n + s), where u is its parent's and s is `path_smooth`; a row of gradient g and hessian
h moves it by

    dv = n / (n + s) * -(g + v' h) / (H + l) + s (v' - u) / (n + s)^2 + s / (n + s) * du

Where categories are statistics, training rows are taken to lie where the model predicts
them to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import ingest
from sapwood.device import host
from sapwood.errors import ParameterError
from sapwood.model.explain.shapley import refuse_linear
from sapwood.model.trees import Trees
from sapwood.params import defaults
from sapwood.params.constraints import encodings

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def influence(
    booster: Booster,
    X: Any,
    X_train: Any,
    y_train: Any,
    *,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Floats:
    """Say how the score of each row would move if a training row counted more
    (LeafInfluence).

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Rows to explain.
    X_train, y_train, sample_weight : table, labels and weights
        What the model was trained on.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    (n_rows, n_train) float64
        The derivative of raw scores by the weight of each training row; the trees keep
        their shape, and every
        round its gradients.
    """
    _check(booster)
    # a model omits some parameters that have their defaults
    params = defaults() | dict(booster.params)
    words = encodings(params, booster.feature_names)
    many = {
        j
        for j, known in booster.categories.items()
        if known.n_bins > params["max_cat_to_onehot"]
    }
    # leaf values are computed after the tree
    afresh = any(words[j] in ("ordered", "both") for j in many)
    # columns whose splits cost cat_l2
    sets = set() if afresh else {j for j in many if words[j] != "onehot"}
    smooth = 0.0 if afresh else params["path_smooth"]
    if smooth == "auto":
        smooth = host.objectives()[booster.objective]["path_smooth"]
    n_rows = booster._read(X_train).n_rows
    label = ingest.label(y_train, n_rows)
    w = ingest.weight(sample_weight, n_rows)
    w = np.ones(n_rows) if w is None else w
    asked, trained = (
        booster.predict_leaves(table, n_jobs=n_jobs) for table in (X, X_train)
    )
    scores = np.full(n_rows, booster.base[0])
    if booster.base_last:  # errors are all that counts, and these are exact
        label = label - booster.base[0]
        scores = np.zeros(n_rows)
    # of one output
    fields = {
        name: one for name, one in booster.fields.items() if not isinstance(one, list)
    }
    result = np.zeros((len(asked), n_rows))
    for t in range(booster.trees.n_trees):
        tree = booster.trees.slice(t, t + 1)
        _, g, h = host.evaluate(booster.objective, fields, scores, label)
        paths = _paths(tree)
        along = paths[trained[:, t]]
        penalty = np.full(tree.n_nodes, float(params["reg_lambda"]))
        for node in np.flatnonzero(tree.set >= 0):
            if tree.column[node] in sets:
                penalty[tree.left[node] : tree.left[node] + 2] += params["cat_l2"]
        steps = _steps(
            tree, along, (w * g, w * h, w), penalty, params["reg_alpha"], float(smooth)
        )
        for row, path in enumerate(paths[asked[:, t]]):
            moved = np.zeros(n_rows)
            for depth, node in enumerate(path[path >= 0]):
                by_g, by_h, alone, by_parent = steps[:, node]
                moved = by_parent * moved + np.where(
                    along[:, depth] == node, by_g * g + by_h * h + alone, 0.0
                )
            result[row] += booster.params["learning_rate"] * moved
        scores += tree.value[trained[:, t]]
    return result


def _paths(tree: Trees) -> Integers:
    """Nodes from the root to each node, (n_nodes, depth), -1 after the node itself."""
    depth = tree.depth()
    paths = np.full((tree.n_nodes, depth.max() + 1), -1)
    paths[0, 0] = 0
    for node in np.flatnonzero(tree.left):  # parents come first
        for child in (tree.left[node], tree.left[node] + 1):
            paths[child] = paths[node]
            paths[child, depth[child]] = child
    return paths


def _steps(
    tree: Trees,
    along: Integers,
    sums: tuple[Floats, ...],
    penalty: Floats,
    alpha: float,
    smooth: float,
) -> Floats:
    """By node: how its value changes with a row's gradient, hessian and presence, and
    with its parent's value.
    """
    lies = along >= 0
    G, H, n = (
        np.bincount(
            along[lies], np.broadcast_to(x[:, None], along.shape)[lies], tree.n_nodes
        )
        for x in sums
    )
    total = H + penalty
    filled = total > 0
    inverse = np.where(filled, 1.0 / np.where(filled, total, 1.0), 0.0)
    step = -np.sign(G) * np.maximum(np.abs(G) - alpha, 0.0) * inverse
    inverse = np.where(np.abs(G) > alpha, inverse, 0.0) if alpha else inverse
    share = np.ones(tree.n_nodes)
    pull = np.zeros(tree.n_nodes)
    value = step.copy()
    if smooth:
        share[1:], pull[1:] = n[1:] / (n[1:] + smooth), smooth / (n[1:] + smooth)
    alone = np.zeros(tree.n_nodes)
    for node in np.flatnonzero(tree.left):
        for child in (tree.left[node], tree.left[node] + 1):
            value[child] = share[child] * step[child] + pull[child] * value[node]
            if smooth:
                alone[child] = (
                    pull[child] * (step[child] - value[node]) / (n[child] + smooth)
                )
    return np.stack([-share * inverse, -share * step * inverse, alone, pull])


def _check(booster: Booster) -> None:
    """Raise unless leaf values are one Newton step on all rows."""
    refuse_linear(booster.trees, "the influence of training rows")
    if "reg_alpha" not in booster.params:
        raise ParameterError(
            "the influence of training rows depends on how a model was trained: one of another library has none."
        )
    params = defaults() | dict(booster.params)
    about = host.objectives().get(booster.objective)
    newton = about is not None and (
        params["leaf_estimation"] == "newton"
        or (
            params["leaf_estimation"] == "auto"
            and about["leaf"] != "exact"
            and params["hessian"] != "none"
        )
    )
    fits = {
        "one output": booster.n_outputs == 1,
        "no combinations of columns": not len(booster.combinations),
        "a built-in objective with leaves of one Newton step": newton
        and params["leaf_iterations"] == 1,
        "boosting='plain' without parallel trees": params["boosting"] == "plain"
        and booster.n_parallel_trees == 1,
        "no sampling of rows": params["subsample"] == 1.0
        and params["sampling"] == "uniform",
        "no line search, pruning, max_delta_step or monotone_constraints": params[
            "line_search"
        ]
        == "none"
        and not params["ccp_alpha"]
        and not params["prune_by_validation"]
        and params["pruning"] == "pre"
        and not params["max_delta_step"]
        and not params["monotone_constraints"],
        "one learning_rate for all rounds": isinstance(
            params["learning_rate"], float | int
        ),
    }
    for what, fine in fits.items():
        if not fine:
            raise ParameterError(
                f"the influence of training rows is for models with {what}."
            )
