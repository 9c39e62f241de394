"""NUMERICS, Categories by statistics, in NumPy: every order is a table of its own, with
scores of its own.

Codes of categories, numbers, labels and parameters enter; trees over numbers, and the
tables they are read by, leave.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import reference as ref
from spec.reference import target_statistics
from spec.reference.losses import OBJECTIVES, margin
from spec.reference.ordered import TURN

Floats = NDArray[np.float64]
# a table for each order, cuts, parameters of columns
Now = tuple[list[Floats], list[Floats], dict[str, Any]]
PRIORS = (0.0, 0.5, 1.0)


def statistics(
    code: NDArray[np.int32],
    y: Floats,
    borders: list[float],
    weight: Floats | None,
    order: Any,
) -> list[Floats]:
    """What stands for a column of categories, each row from those before it: by masses,
    then priors; then frequency.
    """
    kind = "borders" if borders else "mean"
    edges = np.array(borders)
    count = ref.weights(weight, len(y))
    found = [
        target_statistics.statistic(code, y, kind, prior, edges, weight, order)
        for prior in PRIORS
    ]
    by_mass = [one[mass] for mass in range(len(found[0])) for one in found]
    total = np.bincount(code, count.count * 2.0**-count.shift)
    return [*by_mass, total[code] / (total.max() + 1.0)]


def train(
    renew: Callable[[int, list[ref.Tree]], Now],
    y: Floats,
    params: dict[str, Any],
    weight: Floats | None,
) -> tuple[list[ref.Tree], Floats]:
    """Trees over the columns of the tables, one table for each order, and the start
    scores (n_outputs).

    Values of leaves come from the last table, splits from the others in turn. `renew`
    says before every round, by its number and the trees so far, what trees grow on now.
    """
    w = ref.weights(weight, len(y))
    p = ref.DEFAULTS | params | {"count_unit": math.ldexp(1.0, w.shift)}
    goal = OBJECTIVES[p["objective"]]
    label = ref.planes(p["objective"], y)
    base = ref.start(goal, (), label, w)
    every = np.arange(len(y))
    trees = []
    scores: list[Floats] = []
    for round in range(p["n_estimators"]):
        tables, cut, more = renew(round, trees)
        p = p | more
        scores = scores or [np.repeat(base[:, None], len(y), axis=1) for _ in tables]
        codes = [
            [
                ref.codes(x, c)
                if not n
                else np.where(np.isnan(x), n, x).astype(np.int64)
                for x, c, n in zip(table.T, cut, p["n_categories"], strict=True)
            ]
            for table in tables
        ]
        turn = int(ref.draw(p["seed"], TURN, round, 0, np.array([0]))[0]) % (
            len(tables) - 1
        )
        grown = []
        for output, (g, h) in enumerate(
            zip(*ref.gradients(p["objective"], (), scores[turn], label), strict=True)
        ):
            q = ref.quantise(
                g, h, w, ref.BITS[ref.search_precision(g, h, w, p["precision"])]
            )
            index = round * len(label) + output
            grown.append(
                ref.grow(
                    every, codes[turn], cut, q, ref.quantise(g, h, w, 30), p, index
                )
            )
        for table, own in zip(tables, scores, strict=True):
            before = own.copy()
            for output, tree in enumerate(grown):
                ends = tree["column"] < 0
                number = (np.cumsum(ends) - 1)[ref.leaves(tree, table)]
                along = (
                    margin(before, output)
                    if p["objective"] == "softmax"
                    else before[output]
                )
                r = ref.Rows(goal, (), along, label[output], number, int(ends.sum()), w)
                _, G, H = ref.leaf_sums(r, np.zeros(r.n_leaves))
                with np.errstate(all="ignore"):
                    step = np.where(
                        H + p["reg_lambda"] == 0, 0.0, -G / (H + p["reg_lambda"])
                    )
                tree["value"][ends] = p["learning_rate"] * step
                own[output] += tree["value"][ends][number]
        trees += grown
    return trees, base
