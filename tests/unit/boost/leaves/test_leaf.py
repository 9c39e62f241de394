"""Leaves beyond one Newton step, the step of a tree, learning rates, starts,
pruning.
"""

from typing import Any

import numpy as np
import pytest

import sapwood as sw
from sapwood.boost.leaves import prune
from sapwood.errors import ParameterError

RNG = np.random.default_rng(11)
X = RNG.normal(size=(600, 5))
SIGNAL = X[:, 0] + np.sin(3 * X[:, 1])
Y = SIGNAL + RNG.standard_t(2, size=600)
CLASS = (SIGNAL + RNG.normal(size=600) > 0).astype(float)
DATA = {
    "squared_error": Y,
    "absolute_error": Y,
    "logistic": CLASS,
    "poisson": RNG.poisson(np.exp(SIGNAL / 2)).astype(float),
}


def loss(booster: sw.Booster, y: Any) -> float:
    raw = booster.predict(X, raw=True)
    return float(
        sw.device.host.evaluate(booster.objective, dict(booster.fields), raw, y)[
            0
        ].mean()
    )


def one_tree(name: str, **params: Any) -> sw.Booster:
    given = {
        "objective": name,
        "n_estimators": 1,
        "learning_rate": 1,
        "max_leaves": 8,
        "reg_lambda": 0,
        "path_smooth": 0,
    }
    return sw.train({**given, **params}, sw.Dataset(X, DATA[name]))


@pytest.mark.parametrize("name", DATA)
def test_more_iterations_never_lose_and_exact_is_their_end(name: str) -> None:
    """On one structure: the same splits, since they do not depend on leaf values in the
    first tree.
    """
    losses = [
        loss(one_tree(name, leaf_estimation="newton", leaf_iterations=n), DATA[name])
        for n in (2, 3, 10)
    ]
    exact = loss(one_tree(name, leaf_estimation="exact"), DATA[name])
    assert losses == sorted(losses, reverse=True)
    assert exact <= losses[-1] + 1e-12


@pytest.mark.parametrize("name", DATA)
def test_the_step_of_a_tree_is_the_best_one(name: str) -> None:
    plain = one_tree(name, line_search="tree", leaf_estimation="gradient")
    best = loss(plain, DATA[name])
    raw = plain.predict(X, raw=True)
    base = plain.base[0]
    for factor in (0.9, 0.99, 1.01, 1.1):
        moved = base + factor * (raw - base)
        other = sw.device.host.evaluate(name, dict(plain.fields), moved, DATA[name])[
            0
        ].mean()
        assert best <= other + 1e-15


def test_sign_leaves_are_plus_and_minus_one() -> None:
    booster = one_tree("logistic", leaf_estimation="sign")
    assert set(booster.trees.value[booster.trees.left == 0]) == {-1.0, 1.0}


def test_learning_rates_by_round() -> None:
    def values(rate: Any) -> Any:
        params = {"n_estimators": 3, "learning_rate": rate, "start": 0.0}
        return sw.train(params, sw.Dataset(X, Y)).to_bytes()

    assert (
        values([0.5, 0.25, 0.125])
        == values(lambda index: 0.5 ** (index + 1))
        == values(np.array([0.5, 0.25, 0.125]))
    )
    fixed = sw.train({"n_estimators": 3, "learning_rate": 0.3}, sw.Dataset(X, Y))
    listed = sw.train({"n_estimators": 3, "learning_rate": [0.3] * 3}, sw.Dataset(X, Y))
    np.testing.assert_array_equal(fixed.trees.value, listed.trees.value)
    with pytest.raises(
        ParameterError, match="learning_rate has 2 values; the model will have 3 rounds"
    ):
        values([0.1, 0.1])
    with pytest.raises(ParameterError, match=r"learning_rate\(1\)=-1 is too small"):
        values(lambda index: 1 if index == 0 else -1)


def test_a_schedule_goes_on_where_a_model_ended() -> None:
    data = sw.Dataset(X, Y)
    rate = [0.4, 0.3, 0.2, 0.1]
    half = sw.train({"n_estimators": 2, "learning_rate": rate}, data)
    whole = sw.train({"n_estimators": 2, "learning_rate": rate}, data, init_model=half)
    assert (
        whole.to_bytes()
        == sw.train({"n_estimators": 4, "learning_rate": rate}, data).to_bytes()
    )


def test_starts() -> None:
    at = sw.train({"n_estimators": 1, "start": 2.5}, sw.Dataset(X, Y))
    assert at.base.tolist() == [2.5]
    both = sw.train(
        {"n_estimators": 1, "start": [1, 2]}, sw.Dataset(X, np.column_stack([Y, Y]))
    )
    assert both.base.tolist() == [1.0, 2.0]
    with pytest.raises(ParameterError, match=r"start=\[1\.0, 2\.0\] has 2 values"):
        sw.train({"n_estimators": 1, "start": [1, 2]}, sw.Dataset(X, Y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"leaf_estimation": "exact", "leaf_iterations": 3},
            "leaf_iterations=3 is for leaf_estimation newton or gradient",
        ),
        (
            {"leaf_estimation": "exact", "path_smooth": 3},
            "path_smooth=3 needs leaves of one Newton step",
        ),
        ({"prune_by_validation": True}, "needs rows to judge by"),
        ({"prune_by_validation": 1}, "prune_by_validation=1 is neither True nor False"),
        ({"learning_rate": [0.1, "b"]}, "is not a finite number"),
        ({"recipe": "classics"}, "did you mean 'classic'"),
    ],
)
def test_what_does_not_combine(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train(params, sw.Dataset(X, Y))


class TestPruning:
    """Splits that are taken back."""

    def test_alpha_shrinks_trees_to_their_root(self) -> None:
        data = sw.Dataset(X, Y)
        sizes = [
            sw.train(
                {"n_estimators": 1, "ccp_alpha": alpha, "reg_lambda": 0}, data
            ).trees.n_nodes
            for alpha in (0.0, 1e-3, 1e-2, 1e-1, 1e9)
        ]
        assert (
            sizes == sorted(sizes, reverse=True)
            and len(set(sizes)) > 2
            and sizes[-1] == 1
        )

    def test_the_cut_tree_is_the_old_one_seen_from_above(self) -> None:
        data = sw.Dataset(X, Y)
        trainer_tree = sw.train({"n_estimators": 1, "max_leaves": 20}, data)
        nodes = {
            name: getattr(trainer_tree.trees, name)
            for name in ("column", "left", "gain", "count", "value", "threshold")
        }
        nodes |= {
            "bin": np.zeros_like(nodes["column"]),
            "missing_left": trainer_tree.trees.missing_left,
            "cover": nodes["count"],
            "set": np.full_like(nodes["column"], -1),
            "set_offset": np.zeros(1, np.int64),
            "set_code": np.empty(0, np.int32),
        }
        gone = np.zeros(len(nodes["left"]), np.bool_)
        gone[np.flatnonzero(nodes["left"])[3]] = True
        tree, number = prune.cut(nodes, gone)  # type: ignore[arg-type]
        assert (
            len(number) == (nodes["left"] == 0).sum()
            and number.max() + 1 == (tree["left"] == 0).sum()
        )
        sums = np.bincount(number, nodes["count"][nodes["left"] == 0])
        np.testing.assert_array_equal(sums, tree["count"][tree["left"] == 0])

    @pytest.mark.parametrize("name", ["squared_error", "logistic", "softmax"])
    def test_a_validation_set_takes_back_splits_that_do_not_help(
        self, name: str
    ) -> None:
        noise = RNG.normal(size=(600, 5))
        y = {
            "squared_error": Y,
            "logistic": CLASS,
            "softmax": np.digitize(SIGNAL, [-1, 1]).astype(float),
        }[name]
        train = sw.Dataset(np.hstack([X, noise])[:300], y[:300])
        held = np.hstack([X, noise])[300:]
        valid = sw.Dataset(held, y[300:], reference=train)
        params = {
            "objective": name,
            "n_estimators": 10,
            "max_leaves": 31,
            "reg_lambda": 0,
            "path_smooth": 0,
        }
        full = sw.train(params, train, valid=valid)
        pruned = sw.train({**params, "prune_by_validation": True}, train, valid=valid)
        assert pruned.trees.n_nodes < 0.6 * full.trees.n_nodes
        last = [
            next(iter(model.history["valid"].values()))[-1] for model in (full, pruned)
        ]
        assert last[1] < last[0]

    @pytest.mark.parametrize(
        "params",
        [
            {"ccp_alpha": 0.01},
            {"prune_by_validation": True, "early_stopping_rounds": 50},
        ],
    )
    @pytest.mark.parametrize("leaf", ["newton", "exact", "gradient"])
    def test_bytes_do_not_depend_on_threads(
        self, params: dict[str, Any], leaf: str
    ) -> None:
        big = np.tile(X, (30, 1)) + RNG.normal(size=(18000, 5)) * 0.1
        data = sw.Dataset(big, np.tile(Y, 30))
        given = {
            "objective": "huber",
            "n_estimators": 3,
            "leaf_estimation": leaf,
            **params,
        }
        assert (
            len(
                {
                    sw.train({**given, "n_jobs": n}, data).to_bytes()
                    for n in (1, 2, 3, 7)
                }
            )
            == 1
        )


@pytest.mark.parametrize("name", ["absolute_error", "poisson", "quantile", "fair"])
@pytest.mark.parametrize(
    "params",
    [
        {"line_search": "tree"},
        {"leaf_estimation": "exact"},
        {"leaf_iterations": 3, "leaf_estimation": "newton"},
    ],
)
def test_law_of_leaves(name: str, params: dict[str, Any]) -> None:
    """More than one piece of rows: the same bytes on any number of threads, with real
    weights and a sample.
    """
    big = np.tile(X, (30, 1))
    y = np.abs(np.tile(Y, 30))
    weight = RNG.uniform(0, 2, len(y))
    data = sw.Dataset(big, y, weight)
    given = {"objective": name, "n_estimators": 2, "subsample": 0.8, **params}
    assert (
        len({sw.train({**given, "n_jobs": n}, data).to_bytes() for n in (1, 2, 3, 7)})
        == 1
    )


def test_leaves_of_quantiles_have_rows_in_both_tails() -> None:
    def least(**params: Any) -> float:
        booster = sw.train(
            {"n_estimators": 1, "max_leaves": None, **params}, sw.Dataset(X, Y)
        )
        return float(booster.trees.count[booster.trees.left == 0].min())

    assert (
        least(objective="squared_error") < 8 <= least(objective="absolute_error") < 16
    )
    assert 40 <= least(objective="quantile", quantile_alpha=0.1) < 80
    assert least(objective="quantile", quantile_alpha=0.1, min_samples_leaf=1) < 8


def test_huber_has_friedmans_leaves_in_friedmans_trees() -> None:
    data = sw.Dataset(X, Y)
    values = {
        (hessian, leaf): sw.train(
            {"objective": "huber", "hessian": hessian, "leaf_estimation": leaf}, data
        ).trees.value.tobytes()
        for hessian in ("auto", "none")
        for leaf in ("auto", "newton", "exact")
    }
    assert values["auto", "auto"] == values["auto", "newton"] != values["auto", "exact"]
    assert values["none", "auto"] == values["none", "exact"] != values["none", "newton"]


def test_steps_where_they_can_be_had() -> None:
    """leaf_iterations='auto' gives way to what wants one step, and to losses of one's
    own, whatever their name.
    """

    def poisson(y: Any, score: Any) -> tuple[Any, Any]:
        return score - y, np.ones(len(y))

    data = sw.Dataset(X, CLASS)
    recipe = {"recipe": "catboost", "n_estimators": 2, "min_samples_bin": 32}
    cases: list[tuple[dict[str, Any], int]] = [
        ({"objective": "poisson"}, 10),
        ({"objective": "logistic"}, 10),
        ({"objective": "squared_error"}, 1),
        ({"objective": "logistic", "path_smooth": 1.0}, 1),
        ({"objective": "logistic", "leaf_iterations": 3}, 3),
        ({"objective": poisson}, 1),
    ]
    for given, steps in cases:
        assert sw.train(recipe | given, data).params["leaf_iterations"] == steps, given


def test_a_row_far_above_its_mean_does_not_stand_alone() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 6))
    y = rng.poisson(np.exp(x[:, 0] + x[:, 1] * x[:, 2])).astype(float)
    y[0] = 4000
    predicted = sw.train(
        {"objective": "poisson", "n_estimators": 100}, sw.Dataset(x, y)
    ).predict(x)
    assert (
        predicted.max() < 2 * y.max()
    )  # Newton's step of that row alone is y over its mean, on the scale of logarithms
    usual = y < 50
    assert np.corrcoef(predicted[usual], y[usual])[0, 1] > 0.8
