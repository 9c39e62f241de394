"""What all boosting loops share: rows, plans, and the trees of one round.

In: a trainer whose scores are set, parameters, evaluation rows. Out: trees that are not
yet added to any score.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import objective
from sapwood.boost.categories.encoded_training import EncodedTraining
from sapwood.boost.leaves import leaf, linear
from sapwood.boost.leaves.monotone import clip_to_monotone
from sapwood.boost.round import growth, sampling
from sapwood.boost.round.evaluation import EvalRows, apply
from sapwood.boost.round.grown import SPLITS, GrownTrees
from sapwood.data.dataset import Dataset
from sapwood.device import Trainer, Tree, host
from sapwood.device.threads import threads
from sapwood.errors import CheckpointError

Floats = NDArray[np.float64]
# the bodies and tails of several models one after the other, and their ends
Models = tuple[Trainer, list[int]]
# the trees of a round; factors on the trees of all rounds so far, or 1
Step = tuple[list[Tree], Floats | None]


@dataclass(frozen=True)
class Training:
    """One training."""

    trainer: Trainer  # training rows with the scores of the model so far
    params: Mapping[str, Any]  # resolved
    # the objective, and what happens to a tree after its growth
    leaf_plan: leaf.LeafPlan
    # labels and weights of the training rows, for what the core does not do itself
    rows: leaf.Rows
    # validation rows; the loops keep their scores up to date
    eval_rows: Sequence[EvalRows]
    # (n_rows, n_columns) reals behind the bins; leaves are linear where given
    values: NDArray[Any] | None = None
    # (3 * n_columns) of columns in linear leaves of standard units, empty in raw units
    bounds: Floats = field(default_factory=lambda: np.empty(0))
    # what trees grow on, if not on the columns of the data
    encoded: EncodedTraining | None = None
    # the training rows, where splits are chosen by models of some of them
    data: Dataset | None = None
    # rows of positive weight, of all holders; random_strength depends on it
    n_live: int = 1
    # trees of an earlier run, and where new ones are kept for a later one
    grown: GrownTrees | None = None

    @cached_property
    def _limits(self) -> tuple[str, dict[str, float]]:
        return growth.limits(self.params, self.leaf_plan.path_smooth)

    @property
    def growers(self) -> Sequence[Trainer]:
        """Trainers that trees grow on, one for each permutation."""
        return (
            [self.trainer] * self.params["n_permutations"]
            if self.encoded is None
            else self.encoded.growers
        )

    @property
    def tables(self) -> Sequence[Dataset]:
        """The data behind these trainers."""
        if self.encoded is not None:
            return self.encoded.tables
        assert self.data is not None
        return [self.data] * int(self.params["n_permutations"])

    def permutation_of(self, index: int) -> int:
        """The permutation that a round uses, of `n_permutations`."""
        n: int = self.params["n_permutations"]
        return (
            0
            if n == 1
            else int(host.draw(self.params["random_state"], host.TURN, index, 0, 1)[0])
            % n
        )

    def foresee(self, rounds: Sequence[int], n_copies: int) -> None:
        """Tell a device that these rounds, each with its copies, come next, all on the
        scores of now.

        It may grow their trees side by side. It is not told where the gradients of one
        copy may differ from those of another, or the noise on their splits.
        """
        there = getattr(self.trainer, "expect", None)
        plan = self.leaf_plan
        alike = self.encoded is None and plan.objective.custom is None
        alike = alike and (len(rounds) == 1 or self.params["random_strength"] == 0)
        if there is not None and alike and len(rounds) * n_copies > 1:
            samples = [
                sampling.draw_of(self.params, index, plan.rate, copy)
                for index in rounds
                for copy in range(n_copies)
            ]
            there(samples, rounds[0] * n_copies * plan.n_outputs)

    def grow_round(
        self,
        index: int,
        copy: int = 0,
        rate: float | None = None,
        models: Callable[[], Models] | None = None,
    ) -> list[Tree]:
        """Grow a tree for every output: gradients, a sample of rows, splits, leaf
        values.

        index: int; number of the round.
        copy: int; which of the `n_parallel_trees` of the round: each has its own draws.
        rate: float, optional; factor on the values; the learning rate of the round by
        default.
        models: callable, optional; returns the rows of the prefix models that choose
        the splits in ordered boosting. Returns list of Tree: shrunk, and not yet added
        to any score.
        """
        (policy, limits), plan, seed = (
            self._limits,
            self.leaf_plan,
            self.params["random_state"],
        )
        number = index * self.params["n_parallel_trees"] + copy
        rate = plan.rate(index) if rate is None else rate
        if self.encoded is not None:
            self.encoded.refresh(index)
        grower, ends = (
            (self.growers[self.permutation_of(index)], [])
            if models is None
            else models()
        )
        objective.gradients(plan.objective, grower, self.params, index, *self.rows)
        grower.sample(*sampling.draw_of(self.params, index, plan.rate, copy))
        limits = {**limits, "learning_rate": 1.0 if plan.refits else rate}
        strength = growth.random_strength(self.params, index, rate, self.n_live)
        together = self.params["multi_strategy"] == "multi_output_tree"
        trees = self._known_trees(grower, bool(ends))
        if trees is None:
            sketch = (
                {"sketch": self.params["sketch_outputs"]}
                if together and self.params["sketch_outputs"]
                else {}
            )
            trees = grower.grow(
                policy,
                limits,
                seed,
                number * plan.n_outputs,
                strength,
                together,
                ends,
                **sketch,
            )
            if self.grown is not None:
                self.grown.add(trees)
        if models is not None:
            self._set_thresholds(trees, self.tables[self.permutation_of(index)])
        if self.encoded is not None:
            trees = self.encoded.assign_rows(trees, grower, self.trainer)
        if models is not None:
            for output, tree in enumerate(trees):
                self._node_statistics(tree, output)
        return self._finished(trees, index, rate)

    def _known_trees(self, grower: Trainer, ordered: bool) -> list[Tree] | None:
        """The trees that an earlier run has grown in this place, as the grower's own;
        None where there are none.

        Trees of ordered boosting get their rows later: they grow on those of several
        models.
        """
        trees = None if self.grown is None else self.grown.next_known()
        for output, tree in enumerate(trees or ()):
            if not ordered:
                splits: dict[str, Any] = {name: dict(tree)[name] for name in SPLITS}
                try:
                    grower.restore(output, **splits, value=tree["value"])
                except ValueError as cause:
                    raise CheckpointError(
                        f"the checkpoint has a tree that does not fit the data: {cause}."
                    ) from cause
        return trees

    def replay_round(self, index: int, trees: Sequence[Tree]) -> list[Tree]:
        """The trees of a round with the values of the training's rows at this place in
        the model; splits stay.

        On the rows that they have grown on, all of them in every round, they get the
        same bits again.
        """
        (_, limits), plan, rate = (
            self._limits,
            self.leaf_plan,
            self.leaf_plan.rate(index),
        )
        objective.gradients(
            plan.objective, self.trainer, self.params, index, *self.rows
        )
        self.trainer.sample(self.params["random_state"], index, None)
        limits = {**limits, "learning_rate": 1.0 if plan.refits else rate}
        found: list[Tree] = []
        together = self.params["multi_strategy"] == "multi_output_tree"
        for output, tree in enumerate(trees):
            if output == 0 or not together:
                splits: dict[str, Any] = {name: dict(tree)[name] for name in SPLITS}
                replayed = self.trainer.replay(
                    output,
                    len(trees) if together else output + 1,
                    **splits,
                    limits=limits,
                )
            value, cover, count = replayed[output if together else 0]
            is_leaf = tree["left"] == 0
            if plan.direction:
                value[is_leaf] = clip_to_monotone(
                    tree, value[is_leaf], plan.direction, cut=True
                )
                self.trainer.relabel_leaves(output, None, value[is_leaf])
            found.append(
                {
                    **tree,
                    "value": np.where(is_leaf, value, 0.0),
                    "cover": cover,
                    "count": count,
                }
            )
        return self._finished(found, index, rate)

    def add_scores(self, trees: Sequence[Tree]) -> None:
        """Add the trees of a round to the scores of all rows."""
        for output, tree in enumerate(trees):
            self.trainer.add_scores(output)
            for rows in self.eval_rows:
                rows.add(tree, output)

    def _finished(self, trees: list[Tree], index: int, rate: float) -> list[Tree]:
        """Trees with their final values, and with linear terms where leaves are
        linear.
        """
        plan = self.leaf_plan
        if plan.refits:
            judge = self.eval_rows[-1] if self.eval_rows else None
            trees = [
                leaf.finish_tree(
                    self.trainer, output, tree, rate, plan, judge, self.rows
                )
                for output, tree in enumerate(trees)
            ]
        if self.values is not None and index >= plan.first_linear:
            # the trees have grown on other gradients than those of the model
            if self.encoded is not None:
                objective.gradients(
                    plan.objective, self.trainer, self.params, index, *self.rows
                )
                self.trainer.sample(0, 0, None)
            # trees of the same splits
            size = (
                len(trees)
                if self.params["multi_strategy"] == "multi_output_tree"
                else 1
            )
            for output in range(0, len(trees), size):
                linear.fit(
                    self.trainer,
                    output,
                    trees[output : output + size],
                    rate,
                    self.params,
                    self.bounds,
                )
        if self.encoded is not None:
            self.encoded.update_scores(plan, rate, trees)
        return trees

    def _set_thresholds(self, trees: Sequence[Tree], table: Dataset) -> None:
        """Thresholds for trees that have grown on codes, and their leaves for the rows
        of the model.
        """
        for output, tree in enumerate(trees):
            for node in np.flatnonzero(tree["bin"] >= 0):
                tree["threshold"][node] = np.append(
                    table.cuts[tree["column"][node]], np.inf
                )[tree["bin"][node]]
            is_leaf = tree["left"] == 0
            number = np.cumsum(is_leaf, dtype=np.int32) - 1
            if self.encoded is None:
                reach = apply(table, tree, threads(self.params["n_jobs"]))
                self.trainer.set_leaf_ids(output, number[reach], int(is_leaf.sum()))

    def _node_statistics(self, tree: Tree, output: int) -> None:
        """Fill in cover and count of a tree that has grown on other rows, from the rows
        of the model.
        """
        left = tree["left"]
        weight = self.rows[1]
        leaf = self.trainer.leaf_ids(output)
        n_leaves = int((left == 0).sum())
        counts, _, shift = (
            (np.ones(len(leaf), np.int32), True, 0)
            if weight is None
            else host.integer_weights(weight)
        )
        total = np.zeros(n_leaves, np.int64)
        np.add.at(total, leaf, counts)
        tree["count"][left == 0] = np.ldexp(total.astype(np.float64), -shift)
        tree["cover"][left == 0] = self.trainer.leaf_loss_sums(
            output, np.zeros(n_leaves)
        )[2]
        for node in np.flatnonzero(left)[::-1]:
            for name in (tree["count"], tree["cover"]):
                name[node] = name[left[node]] + name[left[node] + 1]

    def leaf_ids(self, tree: Tree, output: int) -> NDArray[np.int32]:
        """The leaf (node) that each training row comes to in the tree just grown for an
        output.
        """
        return np.flatnonzero(tree["left"] == 0).astype(np.int32)[
            self.trainer.leaf_ids(output)
        ]

    def tree_output(self, tree: Tree, output: int) -> Floats:
        """What the tree just grown for an output adds to the score of each training
        row.
        """
        return linear.tree_output(
            tree,
            self.leaf_ids(tree, output),
            self.values,
            threads(self.params["n_jobs"]),
        )
