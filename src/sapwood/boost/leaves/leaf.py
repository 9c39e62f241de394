"""Leaf values beyond one Newton step: further steps, other estimators, line search, and
pruning.

In: a tree just grown, its rows still in the trainer. Out: the tree with its final
splits and values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.boost.leaves import prune
from sapwood.boost.leaves.monotone import clip_to_monotone
from sapwood.boost.round.evaluation import EvalRows
from sapwood.device import Trainer, Tree, elementary, host
from sapwood.errors import ParameterError
from sapwood.objective import Custom, Objective
from sapwood.params import rates

Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats | None]  # labels and weights
DIRECT = ("exact", "sign", "custom", "joint")  # leaf values that are not found by steps
TEN_STEPS = ("logistic", "cross_entropy", "poisson")  # in CatBoost


@dataclass(frozen=True)
class LeafPlan:
    """How leaf values are found once a tree has grown."""

    objective: Objective
    n_outputs: int
    rate: Callable[[int], float]  # the learning rate of a round
    path_smooth: float  # where it is 'auto'
    refits: bool  # whether values change after the one Newton step of the core
    method: str  # newton | gradient | exact | sign | custom | joint
    iterations: int
    penalty: tuple[float, float, float]  # reg_lambda, reg_alpha, max_delta_step
    line_search: bool
    min_gain: float  # of a split, checked once the tree has grown
    ccp_alpha: float
    by_validation: bool
    # monotone constraint of every column; empty where none has one
    direction: Sequence[int]
    # empty leaves of a monotone symmetric tree need values; the core fills
    # 'intermediate'
    fills_empty_leaves: bool
    first_linear: int  # the first round whose leaves may be linear
    # values come from other gradients or rows than the splits (ordered boosting,
    # statistics)
    from_other_rows: bool


def automatic(objective: Objective, params: Mapping[str, Any]) -> dict[str, Any]:
    """What leaf_iterations='auto' means: CatBoost's choice where other parameters allow
    it.

    A user's own objective, whatever its name, takes one step. Returns the parameters
    that this sets.
    """
    name = objective.name if objective.custom is None else ""
    method = params["leaf_estimation"]
    straight = params["line_search"] == "none"
    shared = name == "softmax" and params["multi_strategy"] == "multi_output_tree"
    if shared and method == "auto" and straight and params["reg_alpha"] == 0:
        return {"leaf_iterations": 1, "leaf_estimation": "joint"}
    one_step = params["linear_leaves"] or params["path_smooth"] not in ("auto", 0)
    by_steps = name in TEN_STEPS and method in ("auto", "newton") and not one_step
    return {"leaf_iterations": 10 if by_steps else 1}


def method(objective: Objective, params: Mapping[str, Any]) -> str:
    """How leaf values are found: newton, gradient, exact, sign, custom or joint."""
    own: str = params["leaf_estimation"]
    if own != "auto":
        return own
    if objective.custom is not None and objective.custom.leaf is not None:
        return "custom"
    if objective.leaf == "friedman":  # his exact leaves go with his first-order trees
        return "exact" if params["hessian"] == "none" else "newton"
    return objective.leaf


def make_plan(
    objective: Objective,
    params: Mapping[str, Any],
    n_outputs: int,
    direction: Sequence[int] = (),
    from_other_rows: bool = False,
) -> LeafPlan:
    """Plan what happens to a tree after its growth; ``direction``: the monotone
    constraint of every column, if any.
    """
    how = method(objective, params)
    iterations = params["leaf_iterations"]
    min_gain = params["min_split_gain"] if params["pruning"] == "post" else 0.0
    prunes = min_gain > 0 or params["ccp_alpha"] > 0 or params["prune_by_validation"]
    search = params["line_search"] == "tree"
    closed = (
        isinstance(objective.custom, Custom) and objective.custom.values is not None
    )
    refits = (
        how in DIRECT or iterations > 1 or search or prunes or from_other_rows or closed
    )
    fills = (
        len(direction) > 0
        and params["grow_policy"] == "symmetric"
        and params["monotone_method"] == "basic"
    )
    penalty = params["reg_lambda"], params["reg_alpha"], params["max_delta_step"]
    return LeafPlan(
        objective,
        n_outputs,
        rates(params["learning_rate"]),
        0.0 if refits else objective.path_smooth,
        refits or fills,
        how,
        iterations,
        penalty,
        search,
        min_gain,
        params["ccp_alpha"],
        params["prune_by_validation"],
        direction,
        fills,
        0 if params["boosting"] == "forest" else 1,
        from_other_rows,
    )


def finish_tree(
    trainer: Trainer,
    output: int,
    tree: Tree,
    rate: float,
    plan: LeafPlan,
    judge: EvalRows | None,
    rows: Rows,
) -> Tree:
    """Give a tree its final shape and values.

    ``trainer`` has the leaf of every row, and the scores before the tree. ``tree`` has
    grown with a learning rate of 1. ``judge``: rows whose loss decides which splits
    stay. ``rows``: labels and weights, for a user's leaf function.
    """
    # the new number of each leaf; where it is set, one-step values do not hold
    number = None
    if plan.min_gain > 0:
        tree, number = prune.cut(tree, prune.by_gain(tree, plan.min_gain))
        trainer.relabel_leaves(output, number, _leaf_values(tree))
    if plan.ccp_alpha > 0:
        tree, number = prune.cut(tree, prune.weakest_links(tree, plan.ccp_alpha))
        trainer.relabel_leaves(output, number, _leaf_values(tree))
    if plan.by_validation:
        assert judge is not None
        gone = prune.by_validation(
            tree, *_judged(trainer, output, tree, rate, plan, judge), judge.reduce
        )
        tree, number = prune.cut(tree, gone)
        trainer.relabel_leaves(output, number, _leaf_values(tree))
    value = _leaf_values(tree)
    if plan.method == "custom":
        value = _custom(trainer, output, len(value), plan.objective, *rows)
    elif plan.method == "sign":
        refound = number is not None or plan.from_other_rows
        value = (
            refit(trainer, output, plan) if refound else np.where(value > 0, 1.0, -1.0)
        )
    elif (
        plan.method in ("exact", "joint")
        or plan.iterations > 1
        or number is not None
        or plan.from_other_rows
    ):
        value = refit(trainer, output, plan)
    if (
        isinstance(plan.objective.custom, Custom)
        and plan.objective.custom.values is not None
    ):
        value = plan.objective.custom.values(output, value)
    if plan.direction:
        found = (
            number is not None
            or plan.method in DIRECT
            or plan.iterations > 1
            or plan.from_other_rows
        )
        value = (
            clip_to_monotone(tree, value, plan.direction, cut=found)
            if found or plan.fills_empty_leaves
            else value
        )
    if plan.line_search:
        factor = trainer.line_search(output, value)
        value = (max(factor, 0.0) if plan.direction else factor) * value
    value = rate * value
    tree["value"][tree["left"] == 0] = value
    trainer.relabel_leaves(output, None, value)
    return tree


def refit(trainer: Trainer, output: int, plan: LeafPlan) -> Floats:
    """Find (n_leaves) leaf values at the scores of a trainer, before the learning rate.

    With ``from_other_rows`` a single step is not tested by the loss, as in plain
    boosting.
    """
    iterations = 0 if plan.from_other_rows and plan.iterations == 1 else plan.iterations
    if plan.method == "sign":
        return np.where(
            trainer.refit(output, "newton", iterations, *plan.penalty) > 0, 1.0, -1.0
        )
    return trainer.refit(output, plan.method, iterations, *plan.penalty)


def _leaf_values(tree: Tree) -> Floats:
    """The values of the leaves, in the order of nodes."""
    return np.ascontiguousarray(tree["value"][tree["left"] == 0])


def _custom(
    trainer: Trainer,
    output: int,
    n_leaves: int,
    objective: Objective,
    label: Floats,
    weight: Floats | None,
) -> Floats:
    """Leaf values from a user's function, which is called with the rows of one leaf at
    a time.
    """
    assert isinstance(objective.custom, Custom)
    number = trainer.leaf_ids(output)
    scores = trainer.scores()
    if len(scores) > 1:
        raise ParameterError(
            f"leaf of objective {objective.name!r} needs one score a row; this model has {len(scores)}."
        )
    live = np.ones(len(number), np.bool_) if weight is None else weight > 0
    values = np.zeros(n_leaves)
    for leaf in range(n_leaves):
        rows = np.flatnonzero((number == leaf) & live)
        if len(rows):
            inside = None if weight is None else weight[rows]
            values[leaf] = objective.custom.leaf_value(
                label[rows], scores[0, rows], inside
            )
    return values


def _judged(
    trainer: Trainer,
    output: int,
    tree: Tree,
    rate: float,
    plan: LeafPlan,
    rows: EvalRows,
) -> tuple[Floats, NDArray[np.int32], Callable[[Floats], Floats]]:
    """The step of every node, the leaf of every judging row, and their loss as a
    function of steps.
    """
    left = tree["left"]
    g = np.zeros(len(left))
    h = np.zeros(len(left))
    n_leaves = int((left == 0).sum())
    _, g[left == 0], h[left == 0] = trainer.leaf_loss_sums(output, np.zeros(n_leaves))
    for node in np.flatnonzero(left)[::-1]:
        g[node], h[node] = (
            g[left[node]] + g[left[node] + 1],
            h[left[node]] + h[left[node] + 1],
        )
    reg_lambda, reg_alpha, max_step = plan.penalty
    bend = h + reg_lambda
    step = (
        -np.sign(g)
        * np.maximum(np.abs(g) - reg_alpha, 0.0)
        / np.where(bend > 0, bend, 1.0)
    )
    if max_step > 0:
        step = np.clip(step, -max_step, max_step)
    goal, scores = plan.objective, rows.scores()
    label = rows.centred if rows.centred.ndim == 1 else rows.centred[:, output]
    if goal.labels == "a class index":
        label = (label == output).astype(np.float64)
    score = scores[output]
    # softmax in one score is the logistic loss of its margin to the others
    if not goal.pointwise:
        rest = np.delete(scores, output, axis=0)
        top = rest.max(axis=0)
        total = np.zeros(len(top))
        for other in rest:
            total = total + elementary.exp(other - top)
        score = (score - top) - elementary.log(total)
    label = np.ascontiguousarray(label)

    def loss(steps: Floats) -> Floats:
        values = host.evaluate(goal.core, goal.at(output), score + steps, label)[0]
        return values if rows.weight is None else values * rows.weight

    return rate * step, rows.leaf_ids(tree), loss
