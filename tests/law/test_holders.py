"""Rows dealt to several holders give the bytes of one holder: every task of the
registry, or a refusal in words.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sapwood
from law.holders import Holder, run
from law.rows import Rows, numbers
from law.tasks import TASKS, rows_of, train
from sapwood import Booster, Dataset
from sapwood.errors import ParameterError

# rows and holders -> the chunks of each holder
Deal = Callable[[int, int], list[list[slice]]]


def uneven(n_rows: int, n_holders: int) -> list[list[slice]]:
    """One range each, in the proportions 1 : 2 : 3 : ..."""
    ends = [
        n_rows * k * (k + 1) // (n_holders * (n_holders + 1))
        for k in range(n_holders + 1)
    ]
    return [[slice(a, b)] for a, b in pairwise(ends)]


def interleaved(n_rows: int, n_holders: int) -> list[list[slice]]:
    """Holder k has chunks k, k + n, ..."""
    ends = [n_rows * k // (3 * n_holders) for k in range(3 * n_holders + 1)]
    chunks = [slice(a, b) for a, b in pairwise(ends)]
    return [chunks[k::n_holders] for k in range(n_holders)]


def hold(holder: Holder, rows: Rows, mine: list[slice], **arguments: Any) -> Dataset:
    """The data set of one holder."""
    X, y, w = rows
    parts = [(X[one], y[one], None if w is None else w[one]) for one in mine]
    return Dataset.dealt(parts, holder, [one.start for one in mine], **arguments)


def dealt(
    rows: Rows,
    params: dict[str, Any],
    data: dict[str, Any],
    n: int,
    deal: Deal,
    crosses: Sequence[Any] = (),
) -> bytes:
    """The bytes of the model that n holders train; all of them have the same."""
    chunks = deal(len(rows[1]), n)

    def train(holder: Holder) -> bytes:
        mine = hold(holder, rows, chunks[holder.rank], **data)
        mine = mine.with_crosses(crosses) if crosses else mine
        return sapwood.train({**params, "n_jobs": 1}, mine).to_bytes()

    found = run(n, train)
    assert len(set(found)) == 1
    return found[0]


DEALS: list[tuple[int, Deal]] = [
    (2, uneven),
    (3, uneven),
    (5, uneven),
    (3, interleaved),
]
ORDER_OF_ROWS = ("ordered", "both")  # encodings that need one order of all rows


def refused(name: str) -> bool:
    """Whether a task needs one order of all rows, or sorts them, or has crosses."""
    params = TASKS[name].params
    data = TASKS[name].data
    statistics = params.get("category_encoding") in ORDER_OF_ROWS
    one_place = data.get("tree_method") == "exact" or bool(TASKS[name].crosses)
    return params.get("boosting") == "ordered" or one_place or statistics


def every_deal() -> pytest.MarkDecorator:
    """Every task with every deal; by day one deal for each task, in turn."""
    params = []
    for at, (name, task) in enumerate(TASKS.items()):
        for nth, (n, deal) in enumerate(DEALS):
            marks = () if task.daily and nth == at % len(DEALS) else pytest.mark.nightly
            params.append(
                pytest.param(
                    name, n, deal, marks=marks, id=f"{name}-{n}-{deal.__name__}"
                )
            )
    return pytest.mark.parametrize(("name", "n", "deal"), params)


@pytest.mark.filterwarnings("ignore:sampling='goss' takes all rows")
@every_deal()
def test_holders(name: str, n: int, deal: Deal) -> None:
    task = TASKS[name]
    rows = rows_of(name)
    if refused(name):
        with pytest.raises(ParameterError, match="dealt to several holders"):
            dealt(rows, {**task.params}, {**task.data}, n, deal, task.crosses)
    elif task.params.get("category_encoding") == "auto":
        # what would be ordered statistics is not, and that is said
        params = {
            name: value
            for name, value in task.params.items()
            if name != "n_permutations"
        }
        with pytest.warns(
            UserWarning, match="where a default fit in memory uses 'ordered'"
        ):
            found = dealt(rows, {**params}, {**task.data}, n, deal)
        params["category_encoding"] = sapwood.load(found).params["category_encoding"]
        assert not {"ordered", "both"}.intersection(
            params["category_encoding"].values()
        )
        assert (
            found
            == sapwood.train(
                {**params, "n_jobs": 1}, Dataset(*rows, **task.data)
            ).to_bytes()
        )
    else:
        assert (
            dealt(rows, {**task.params}, {**task.data}, n, deal)
            == train(name, 1).to_bytes()
        )


SMALL = {"n_estimators": 12, "max_depth": 3, "learning_rate": 0.5}
EVALUATED: dict[str, dict[str, Any]] = {
    "stopping": {"early_stopping_rounds": 2},
    "classes": {
        "early_stopping_rounds": 2,
        "objective": "softmax",
        "eval_metric": ["logloss", "auc", "accuracy"],
    },
    "pruned": {
        "early_stopping_rounds": 3,
        "objective": "logistic",
        "prune_by_validation": True,
    },
    "rate": {"learning_rate": "auto", "objective": "logistic"},
    "by class": {
        "objective": "logistic",
        "subsample_by_class": {0: 0.5},
        "class_weight": "sqrt_balanced",
    },
    "random strength": {"random_strength": 1.0, "recipe": "catboost"},
}


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("kind", EVALUATED)
def test_what_boosting_decides(kind: str, n: int) -> None:
    params = {**SMALL, **EVALUATED[kind]}
    rows = numbers(params.get("objective", "squared_error"), 900, "real")
    whole = sapwood.train({**params, "n_jobs": 1}, Dataset(*rows))
    assert dealt(rows, params, {}, n, interleaved) == whole.to_bytes()


def test_validation_sets_and_folds() -> None:
    rows, more = numbers("logistic", 900, "whole"), numbers("logistic", 500)
    params = {
        **SMALL,
        "objective": "logistic",
        "eval_metric": ["logloss", "auc"],
        "n_jobs": 1,
    }
    data = Dataset(*rows)
    model = sapwood.train(
        params, data, valid=Dataset(*more, reference=data), early_stopping_rounds=2
    )
    measured = sapwood.cv(params, data, n_folds=4)

    def train(holder: Holder) -> tuple[Booster, dict[str, Any]]:
        mine = hold(holder, rows, interleaved(900, holder.size)[holder.rank])
        valid = hold(
            holder, more, uneven(500, holder.size)[holder.rank], reference=mine
        )
        found = sapwood.train(params, mine, valid=valid, early_stopping_rounds=2)
        return found, sapwood.cv(params, mine, n_folds=4)

    for found, by_fold in run(3, train):
        assert found.to_bytes() == model.to_bytes() and found.history == model.history
        for name, values in measured.items():
            np.testing.assert_array_equal(by_fold[name], values)


@pytest.mark.parametrize(
    ("policy", "limits", "most"),
    [
        # one by one there would be 34
        ("leafwise", {"max_depth": None, "max_leaves": 31}, 22),
        ("leafwise", {"max_depth": 3}, 12),
        ("depthwise", {"max_depth": 3}, 7),
        ("symmetric", {"max_depth": 3}, 7),
    ],
)
def test_threads_of_holders(policy: str, limits: dict[str, Any], most: int) -> None:
    """Holders with other numbers of threads agree on the nodes whose sums travel
    together, in few calls.
    """
    rows = numbers("squared_error", 3_000)
    params = {**SMALL, "grow_policy": policy, **limits}

    def train(holder: Holder) -> tuple[bytes, float]:
        mine = hold(holder, rows, interleaved(3_000, holder.size)[holder.rank])
        before = holder.counts["sum"].calls
        model = sapwood.train({**params, "n_jobs": 1 + holder.rank}, mine)
        return model.to_bytes(), (holder.counts["sum"].calls - before) / model.n_rounds

    found = run(3, train)
    assert {model for model, _ in found} == {
        sapwood.train({**params, "n_jobs": 1}, Dataset(*rows)).to_bytes()
    }
    assert max(calls for _, calls in found) <= most


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {"max_leaves": 31},
        {"max_leaves": 31, "min_samples_leaf": 30},
        {"max_leaves": 31, "subsample": 0.7},
        {"max_leaves": 100},  # more leaves than masks have
        {
            "max_leaves": 31,
            "monotone_constraints": [1] * 3 + [0] * 17,
            "monotone_method": "intermediate",
        },
        {"grow_policy": "depthwise", "max_depth": 6},
        {"grow_policy": "symmetric", "max_depth": 6},
        {
            "objective": "softmax",
            "max_leaves": 15,
            "multi_strategy": "multi_output_tree",
        },
    ],
)
def test_rows_that_stay_in_place(params: dict[str, Any], n: int) -> None:
    """Some splits take few rows away; of others, each side lies on another holder.
    Hessians differ from rows.
    """
    rng = np.random.default_rng(0)
    X = (rng.random((4_000, 20)) < np.geomspace(0.01, 0.4, 20)).astype(float)
    X[:, :3] = rng.normal(size=(4_000, 3))
    X[:, 3] = rng.random(4_000) < 0.1
    X = X[np.argsort(X[:, 0])]
    y = (
        X @ np.r_[1, 1, 1, 8, np.linspace(2, 0.2, 16)] + rng.logistic(size=4_000) > 3
    ).astype(float)
    rows: Rows = (
        X,
        y + (X[:, 19] if params.get("objective") == "softmax" else 0.0),
        None,
    )
    params = {
        "objective": "logistic",
        "n_estimators": 6,
        "learning_rate": 0.8,
        **params,
    }
    whole = sapwood.train({**params, "n_jobs": 1}, Dataset(*rows)).to_bytes()
    assert (
        dealt(rows, params, {}, n, uneven)
        == dealt(rows, params, {}, n, interleaved)
        == whole
    )


@pytest.mark.parametrize("n", [2, 3, 7, pytest.param(18, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "params",
    [
        {"max_leaves": 9, "subsample": 0.8},
        {"grow_policy": "depthwise", "max_depth": 3, "colsample_bytree": 0.95},
        # rows are counted: no owners
        {"objective": "logistic", "max_leaves": 6, "min_samples_leaf": 20},
    ],
)
def test_wide_data(params: dict[str, Any], n: int) -> None:
    """Columns have owners, who search them, where there are many sums and more than two
    holders.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 300))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 7] * X[:, 201] + X[:, 299])
    rows: Rows = X, (y > 0).astype(float) if "objective" in params else y, None
    params = {**params, "n_estimators": 3}
    owned: list[int] = []

    def train(holder: Holder) -> bytes:
        real = holder.sum_blocks
        holder.sum_blocks = lambda *given: owned.append(holder.rank) or real(*given)  # type: ignore[method-assign]
        mine = hold(holder, rows, uneven(600, n)[holder.rank])
        return sapwood.train({**params, "n_jobs": 1 + holder.rank % 2}, mine).to_bytes()

    assert set(run(n, train)) == {
        sapwood.train({**params, "n_jobs": 1}, Dataset(*rows)).to_bytes()
    }
    assert (len(set(owned)) == n) == (n > 2 and "objective" not in params)


def test_a_callback_of_one_holder_stops_all() -> None:
    rows = numbers("squared_error", 300)

    def train(holder: Holder) -> int:
        data = hold(holder, rows, uneven(300, holder.size)[holder.rank])
        stop = (
            (lambda view: view.index == 4) if holder.rank == 1 else (lambda view: False)
        )
        return sapwood.train({**SMALL, "n_jobs": 1}, data, callbacks=[stop]).n_rounds

    assert run(3, train) == [5, 5, 5]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"boosting": "ordered"}, "boosting='ordered' needs one order of all rows"),
        (
            {"objective": lambda y, score: (score - y, np.ones_like(y))},
            "is your own, and sees the rows of one holder",
        ),
        (
            {"eval_metric": lambda y, p: 0.0, "early_stopping_rounds": 2},
            "eval_metric has a function",
        ),
    ],
)
def test_refusals(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        dealt(numbers("squared_error", 300), params, {}, 2, uneven)
