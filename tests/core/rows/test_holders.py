"""Rows dealt to several holders: scores, gradients, samples and leaf values are those
of one holder, bit for bit.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from law.holders import Holder, deal, run
from sapwood import _core

Floats = NDArray[np.float64]
Facts = dict[str, Any]

SAMPLERS: dict[str, tuple[dict[str, float], float | None]] = {
    "uniform": ({}, 0.4),
    "all": ({}, None),
    "goss": ({"top_rate": 0.2, "other_rate": 0.1}, 1.0),
    "mvs": ({"mvs_reg": -1.0}, 0.3),
    "bayesian": ({"bagging_temperature": 1.0}, 1.0),
}
OBJECTIVES: dict[str, tuple[dict[str, float], int]] = {
    "squared_error": ({}, 1),
    "logistic": ({}, 1),
    "quantile": ({"quantile_alpha": 0.3}, 1),
    "huber": ({"huber_delta": 0.7}, 1),
    "adaptive_huber": ({"huber_quantile": 0.9}, 1),
    "softmax": ({}, 3),
}
WEIGHTS = ["none", "whole", "zero or one", "real"]
N_LEAVES = 7


def labels(objective: str, n: int, rng: np.random.Generator) -> Floats:
    """Labels that the objective takes; many are equal, so that gradients are tied."""
    if objective == "softmax":
        return rng.integers(3, size=n).astype(np.float64)
    if objective == "logistic":
        return rng.integers(2, size=n).astype(np.float64)
    return np.round(rng.normal(size=n), 1)


def weights(kind: str, n: int, rng: np.random.Generator) -> Floats | None:
    """Weights of a kind; but for "none" some are zero."""
    if kind == "none":
        return None
    whole = rng.integers(0, 2 if kind == "zero or one" else 5, size=n).astype(
        np.float64
    )
    return whole * rng.random(n) if kind == "real" else whole


class Task:
    """A table, and what trainers of its rows are made from."""

    def __init__(self, objective: str, weight: str, n: int = 300) -> None:
        rng = np.random.default_rng(5)
        self.n = n
        self.objective = objective
        self.fields, self.n_outputs = OBJECTIVES[objective]
        self.X = rng.normal(size=(n, 3))
        self.X[rng.random((n, 3)) < 0.1] = np.nan
        self.cuts = _core.cuts([self.X], None, 63, 1, 1)
        self.label, self.weight = labels(objective, n, rng), weights(weight, n, rng)
        self.leaf = rng.integers(N_LEAVES, size=n).astype(np.int32)

    def trainer(
        self, rows: slice, holder: Holder | None, n_threads: int = 2
    ) -> _core.Trainer:
        """A trainer of some rows, in two chunks where there are two rows."""
        middle = (rows.start + rows.stop) // 2
        chunks = [
            part
            for part in (slice(rows.start, middle), slice(middle, rows.stop))
            if part.start < part.stop
        ]
        positions = [] if holder is None else [part.start for part in chunks]
        binned = _core.Binned(
            [self.X[part] for part in chunks],
            self.cuts,
            n_threads,
            reduce=holder,
            positions=positions,
        )
        weight = (
            None if self.weight is None else np.ascontiguousarray(self.weight[rows])
        )
        label = np.ascontiguousarray(self.label[rows])[None]
        return _core.Trainer(
            binned,
            label,
            weight,
            self.objective,
            self.fields,
            self.n_outputs,
            n_threads,
        )


def facts_of(task: Task, sampler: str, rows: slice, holder: Holder | None) -> Facts:
    """Three rounds on leaves that are given; everything a trainer says on the way."""
    fields, subsample = SAMPLERS[sampler]
    trainer = task.trainer(rows, holder)
    facts: Facts = {"start": trainer.start()}
    trainer.fill_scores(facts["start"])
    trainer.set_sampler("uniform" if sampler == "all" else sampler, fields)
    methods = [
        "newton",
        "gradient",
        "exact",
        *(["joint"] if task.n_outputs > 1 else []),
    ]
    for number in range(3):
        facts[f"precision {number}"] = trainer.gradients(
            "auto", unit_search=number == 1
        )
        facts[f"sampled {number}"] = trainer.sample(7, number, subsample)
        for output in range(task.n_outputs):
            trainer.set_leaf_ids(
                output, np.ascontiguousarray(task.leaf[rows]), N_LEAVES
            )
        for output in range(task.n_outputs):
            at = f"{number} {output}"
            facts[f"sums {at}"] = np.array(
                trainer.leaf_loss_sums(output, np.linspace(-1, 1, N_LEAVES))
            )
            for method in methods:
                facts[f"{method} {at}"] = trainer.refit(
                    output, method, 3, 1.0, 0.1, 0.0
                )
            facts[f"factor {at}"] = trainer.line_search(output, facts[f"newton {at}"])
            trainer.relabel_leaves(output, None, 0.5 * facts[f"newton {at}"])
        for output in range(task.n_outputs):
            trainer.add_scores(output)
    facts["scores"] = trainer.scores()
    return facts


def assert_same(one: Facts, dealt: list[Facts]) -> None:
    """What is by row adds up to what one holder has; all else every holder has
    alike.
    """
    for name, value in one.items():
        if name == "scores":
            np.testing.assert_array_equal(
                np.concatenate([facts[name] for facts in dealt], axis=1), value
            )
        elif name.startswith("sampled"):
            assert sum(facts[name] for facts in dealt) == value, name
        else:
            for facts in dealt:
                np.testing.assert_array_equal(facts[name], value, err_msg=name)


@pytest.mark.parametrize("n_holders", [1, 2, 3])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("objective", "weight"),
    [
        (objective, WEIGHTS[(i + j) % 4])
        for i, objective in enumerate(OBJECTIVES)
        for j in (0, 1)
    ],
)
def test_rounds_are_those_of_one_holder(
    objective: str, weight: str, sampler: str, n_holders: int
) -> None:
    task = Task(objective, weight)
    parts = deal(task.n, n_holders)
    dealt = run(
        n_holders, lambda holder: facts_of(task, sampler, parts[holder.rank], holder)
    )
    assert_same(facts_of(task, sampler, slice(0, task.n), None), dealt)


@pytest.mark.parametrize("sampler", ["goss", "mvs", "uniform"])
def test_tables_of_many_tasks(sampler: str) -> None:
    task = Task("logistic", "whole", 40_000)
    # one holder has a single row
    parts = [slice(0, 33_000), slice(33_000, 33_001), slice(33_001, 40_000)]
    dealt = run(3, lambda holder: facts_of(task, sampler, parts[holder.rank], holder))
    assert_same(facts_of(task, sampler, slice(0, task.n), None), dealt)


@pytest.mark.parametrize("sampler", ["uniform", "goss", "mvs", "bayesian"])
@pytest.mark.parametrize("weight", ["none", "whole", "real"])
def test_the_same_rows_are_sampled(sampler: str, weight: str) -> None:
    task = Task("squared_error", weight)
    # a leaf for each row: its hessian is the row's weight
    task.leaf = np.arange(task.n, dtype=np.int32)

    def sampled(rows: slice, holder: Holder | None) -> Floats:
        fields, subsample = SAMPLERS[sampler]
        trainer = task.trainer(rows, holder)
        trainer.fill_scores(np.zeros(1))
        trainer.set_sampler(sampler, fields)
        trainer.gradients("auto")
        trainer.sample(3, 1, subsample)
        trainer.set_leaf_ids(0, np.ascontiguousarray(task.leaf[rows]), task.n)
        return trainer.leaf_loss_sums(0, np.zeros(task.n))[2]

    one = sampled(slice(0, task.n), None)
    assert (one > 0).sum() > 0 and (sampler == "bayesian" or (one > 0).sum() < task.n)
    parts = deal(task.n, 3)
    for dealt in run(3, lambda holder: sampled(parts[holder.rank], holder)):
        np.testing.assert_array_equal(dealt, one)


@pytest.mark.parametrize("sampler", ["goss", "mvs"])
@pytest.mark.parametrize("why", ["its gradients are small", "its rows have no weight"])
def test_a_holder_without_sampled_rows(sampler: str, why: str) -> None:
    task = Task("squared_error", "none")
    parts = deal(task.n, 3)
    if why == "its gradients are small":
        task.label[parts[1]] = 1e-300
    else:
        task.weight = np.ones(task.n)
        task.weight[parts[1]] = 0.0

    def facts(rows: slice, holder: Holder | None) -> Facts:
        trainer = task.trainer(rows, holder)
        trainer.fill_scores(np.zeros(1))
        fields = (
            {"top_rate": 0.3, "other_rate": 1e-9}
            if sampler == "goss"
            else {"mvs_reg": 0.0}
        )
        trainer.set_sampler(sampler, fields)
        out: Facts = {
            "precision": trainer.gradients("auto"),
            "sampled": trainer.sample(0, 0, 0.2),
        }
        trainer.set_leaf_ids(0, np.ascontiguousarray(task.leaf[rows]), N_LEAVES)
        for method in ("newton", "gradient", "exact"):
            out[method] = trainer.refit(0, method, 2, 0.0, 0.0, 0.0)
        return out

    dealt = run(3, lambda holder: facts(parts[holder.rank], holder))
    assert dealt[1]["sampled"] == 0
    assert_same(facts(slice(0, task.n), None), dealt)


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sampler", ["all", "uniform", "goss"])
@pytest.mark.parametrize("weight", ["none", "whole", "real"])
def test_linear_leaves(weight: str, sampler: str, wide: bool, standard: bool) -> None:
    task = Task("logistic", weight)
    # leaves 4.. have no rows in the last holder
    task.leaf[task.n // 2 :] = np.minimum(task.leaf[task.n // 2 :], 3)
    table = np.ascontiguousarray(task.X, np.float64 if wide else np.float32)
    offset = np.arange(N_LEAVES + 1, dtype=np.int64) * 2
    column = np.tile(np.array([0, 2], np.int32), N_LEAVES)

    def terms(rows: slice, holder: Holder | None) -> Facts:
        fields, subsample = SAMPLERS[sampler]
        trainer = task.trainer(rows, holder)
        trainer.fill_scores(trainer.start())
        trainer.set_sampler("uniform" if sampler == "all" else sampler, fields)
        trainer.gradients("auto")
        trainer.sample(7, 0, subsample)
        trainer.set_table(table[rows])
        bounds = trainer.standardise(None) if standard else np.empty(0)
        trainer.set_leaf_ids(0, np.ascontiguousarray(task.leaf[rows]), N_LEAVES)
        parts = trainer.fit_linear(
            0, offset, column, np.zeros((1, N_LEAVES)), 0.3, 1.0, 0.1, 0.1
        )[0]
        trainer.add_scores(0)
        return {
            "offset": parts[0],
            "column": parts[1],
            "coef": parts[2],
            "bounds": bounds,
            "scores": trainer.scores(),
        }

    one = terms(slice(0, task.n), None)
    assert len(one["coef"]) > N_LEAVES
    for n_holders in (1, 2, 3):
        parts = deal(task.n, n_holders)
        assert_same(
            one,
            run(
                n_holders, lambda holder, parts=parts: terms(parts[holder.rank], holder)
            ),
        )


@pytest.mark.parametrize("kind", [None, "whole", "real", "too large to be whole"])
def test_exact_sums(kind: str | None) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=101) * 10.0 ** rng.integers(-9, 9, size=101)
    weight = (
        None
        if kind is None
        else weights(kind.split()[0] if kind in WEIGHTS else "whole", 101, rng)
    )
    if kind == "too large to be whole":
        # 40 rows of a holder could repeat, all of them together cannot
        weight[:] = 2.0**20 - 1
        weight = np.tile(weight, 40)
        x = np.tile(x, 40)
    one = (
        _core.exact_sum(x, weight),
        _core.weight_sum(np.ones(len(x)) if weight is None else weight),
    )

    def sums(holder: Holder) -> tuple[float, float]:
        rows = deal(len(x), 3)[holder.rank]
        own = None if weight is None else np.ascontiguousarray(weight[rows])
        ones = np.ones(rows.stop - rows.start) if own is None else own
        values = np.ascontiguousarray(x[rows])
        return _core.exact_sum(values, own, reduce=holder), _core.weight_sum(
            ones, reduce=holder
        )

    assert run(3, sums) == [one] * 3


def test_gradients_that_are_not_finite_stop_all_holders() -> None:
    task = Task("squared_error", "none")
    parts = deal(task.n, 2)

    def message(holder: Holder) -> str:
        trainer = task.trainer(parts[holder.rank], holder)
        trainer.set_scores(np.full((1, 150), np.inf if holder.rank == 0 else 0.0))
        with pytest.raises(OverflowError) as caught:
            trainer.gradients("auto")
        return str(caught.value)

    assert run(2, message) == ["the gradients are no longer finite"] * 2
