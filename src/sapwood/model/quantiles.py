"""Can the quantiles of a model cross: a proof that they cannot, or a row where they do.

In: a model of several quantiles. Out: a verdict.
"""

from typing import TYPE_CHECKING

import numpy as np

from sapwood.errors import ParameterError
from sapwood.model.constraint_proof import Verdict

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

TRIED = 20_000  # rows that are looked at where there is no proof


def check_quantiles(booster: "Booster") -> Verdict:
    """Prove that no row there can be has quantiles that cross, or show one that has.

    Returns
    -------
    Verdict
        True if it is proven: predictions are sorted (models of ``quantiles=[...]``), or
        the largest score that one level can have is not above the smallest of the next.
        ``rows`` has a row whose quantiles cross, where one was found.
    """
    levels = booster.fields.get("quantile_alpha")
    if not isinstance(levels, list):
        raise ParameterError(
            "check_quantiles is for a model of several quantiles; this one has not several levels."
        )
    if booster.link == "ascending":
        return Verdict(True, "the predictions of a row are its scores, sorted.")
    trees = booster.trees
    order = np.argsort(levels, kind="stable")
    if trees.linear is None:
        base = np.repeat(booster.base[:, None], 2, axis=1)
        ends = np.zeros_like(base) if booster.base_last else base
        for tree in range(trees.n_trees):
            nodes = slice(trees.offset[tree], trees.offset[tree + 1])
            value = trees.value[nodes][trees.left[nodes] == 0]
            ends[trees.output[tree]] += value.min(), value.max()
        ends = base + ends if booster.base_last else ends
        if (ends[order[:-1], 1] <= ends[order[1:], 0]).all():
            return Verdict(
                True,
                "the largest score of each level is not above the smallest of the next.",
            )
    if booster.categories or len(booster.crosses):
        return Verdict(None, "columns of categories are not searched for a row.")
    rng = np.random.default_rng(0)
    rows = np.zeros((TRIED, booster.n_columns))
    for column in range(booster.n_columns):
        cuts = np.unique(
            trees.threshold[(trees.column == column) & np.isfinite(trees.threshold)]
        )
        if len(cuts):
            rows[:, column] = rng.choice(np.append(cuts, cuts[-1] + 1.0), TRIED)
    wrong = (np.diff(booster.predict(rows)[:, order], axis=1) < 0).any(axis=1)
    if wrong.any():
        return Verdict(
            False, "quantiles cross in this row.", rows[wrong.argmax()][None]
        )
    return Verdict(None, f"neither proven, nor refuted by {TRIED:,} rows.")
