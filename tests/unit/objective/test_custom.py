"""Objectives of users: the same bytes as the built-in ones they repeat, and clear
errors where they fail.
"""

import traceback
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood as sw
from sapwood import math
from sapwood.errors import ObjectiveError, ParameterError
from sapwood.objective import Custom

Floats = NDArray[np.float64]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 4))
CLASS = (X[:, 0] + RNG.normal(size=400) > 0).astype(float)
VALUE = X[:, 0] - X[:, 1] ** 2 + RNG.normal(size=400)
WHOLE = RNG.integers(0, 4, 400).astype(float)
REAL = RNG.uniform(0.1, 2, 400)


class Logistic:
    """Logistic loss, operation for operation as the core has it."""

    name = "logistic"
    link = "sigmoid"
    metric = "logloss"

    def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
        p = math.sigmoid(score)
        return p - y, np.maximum(p * (1.0 - p), 1e-16)

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        p = sw.metric.mean(y, weight)
        return math.log(p / (1.0 - p))


def bytes_of(
    objective: Any, y: Floats, weight: Floats | None = None, **params: Any
) -> bytes:
    data = sw.Dataset(X, y, weight)
    return sw.train(
        {"objective": objective, "n_estimators": 5, "path_smooth": 0, **params}, data
    ).to_bytes()


@pytest.mark.parametrize("weight", [None, WHOLE, REAL], ids=["none", "whole", "real"])
@pytest.mark.parametrize(
    "params",
    [{}, {"hessian": "none"}, {"leaf_estimation": "gradient"}, {"subsample": 0.7}],
)
def test_a_repeated_objective_trains_the_same_bytes(
    weight: Floats | None, params: dict[str, Any]
) -> None:
    assert bytes_of(Logistic(), CLASS, weight, **params) == bytes_of(
        "logistic", CLASS, weight, **params
    )


@pytest.mark.parametrize("weight", [None, WHOLE, REAL], ids=["none", "whole", "real"])
def test_a_function_of_two_arguments_leaves_weights_to_us(
    weight: Floats | None,
) -> None:
    def squared_error(y: Floats, score: Floats) -> tuple[Floats, Floats]:
        return score - y, np.ones_like(y)

    ours = bytes_of("squared_error", VALUE, weight, start=0.5)
    assert bytes_of(squared_error, VALUE, weight, start=0.5) == ours


@pytest.mark.parametrize(
    "weight",
    [None, np.where(WHOLE > 0, 2.0 ** (WHOLE - 1), 0), REAL],
    ids=["none", "whole", "real"],
)
def test_a_function_of_three_arguments_applies_weights_itself(
    weight: Floats | None,
) -> None:
    """With whole weights the core repeats rows, so ours are taken off again: exact for
    powers of two.
    """

    def squared_error(
        y: Floats, score: Floats, weight: Floats | None
    ) -> tuple[Floats, Floats]:
        w = np.ones_like(y) if weight is None else weight
        return (score - y) * w, w

    mine = sw.train(
        {"objective": squared_error, "n_estimators": 5, "start": 0.0},
        sw.Dataset(X, VALUE, weight),
    )
    ours = sw.train(
        {"objective": "squared_error", "n_estimators": 5, "start": 0.0},
        sw.Dataset(X, VALUE, weight),
    )
    np.testing.assert_allclose(
        mine.predict(X), ours.predict(X), rtol=1e-6 if weight is REAL else 0
    )


def test_several_outputs() -> None:
    class TwoMeans:
        n_outputs = 2

        def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
            assert score.shape == (len(y), 2)
            return score - np.column_stack([y, -y]), np.ones_like(score)

    booster = sw.train(
        {"objective": TwoMeans(), "n_estimators": 20}, sw.Dataset(X, VALUE)
    )
    both = booster.predict(X)
    assert both.shape == (400, 2)
    np.testing.assert_allclose(both[:, 0], -both[:, 1], atol=1e-6)


def test_a_two_column_label() -> None:
    both = np.column_stack([VALUE, CLASS])
    booster = sw.train(
        {"objective": lambda y, s: (s - y, np.ones_like(y)), "n_estimators": 3},
        sw.Dataset(X, both),
    )
    assert booster.predict(X).shape == (400, 2)


def test_leaf_and_link_functions() -> None:
    class Absolute:
        link = staticmethod(lambda score: score * 10)

        def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
            return np.where(score > y, 1.0, -1.0), np.ones_like(y)

        def start(self, y: Floats, weight: Floats | None) -> float:
            return float(np.sort(y)[(len(y) - 1) // 2])

        def leaf(self, y: Floats, score: Floats, weight: Floats | None) -> float:
            return float(np.sort(y - score)[(len(y) - 1) // 2])

    data = sw.Dataset(X, VALUE)
    mine = sw.train(
        {"objective": Absolute(), "n_estimators": 5, "min_samples_leaf": 8}, data
    )
    ours = sw.train({"objective": "absolute_error", "n_estimators": 5}, data)
    np.testing.assert_array_equal(mine.predict(X, raw=True), ours.predict(X))
    np.testing.assert_array_equal(mine.predict(X), 10 * ours.predict(X))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda y, s: (s - y,), "returned a tuple, not"),
        (
            lambda y, s: ((s - y)[:-1], np.ones_like(y)),
            r"a gradient of shape \(399,\); it needs \(400,\)",
        ),
        (lambda y, s: (s - y, np.ones_like(y) * np.nan), "a hessian of nan in row 0"),
        (lambda y, s: (s - y, -np.ones_like(y)), "a negative hessian in row 0"),
        (
            lambda y, s: (np.ma.masked_less(s - y, 0), np.ones_like(y)),
            "a gradient with masked values",
        ),
        (
            lambda y, s: 1 / 0,
            "raised ZeroDivisionError in its derivatives: division by zero",
        ),
    ],
)
def test_what_goes_wrong_is_said(function: Any, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message) as caught:
        bytes_of(function, VALUE)
    if "Zero" in message:
        frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
        assert frames[-1].name == "<lambda>" and frames[-1].filename == __file__


@pytest.mark.parametrize("given", [3, Logistic, object()])
def test_what_is_no_objective(given: Any) -> None:
    with pytest.raises(ParameterError):
        bytes_of(given, VALUE)


@pytest.mark.parametrize(
    "params",
    [{"leaf_estimation": "exact"}, {"line_search": "tree"}, {"ccp_alpha": 0.1}],
)
def test_what_a_custom_objective_cannot_do_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="is your own"):
        bytes_of(Logistic(), CLASS, **params)


class TestLossAlone:
    """Derivatives by jax; torch has the same door."""

    @pytest.fixture(autouse=True)
    def needs_jax(self) -> None:
        pytest.importorskip("jax")

    def test_it_trains_what_the_formulas_train(self) -> None:
        class Poisson:
            link = "exp"

            def loss(self, y: Any, score: Any) -> Any:
                import jax.numpy as jnp

                return jnp.exp(score) - y * score

        counts = RNG.poisson(np.exp(X[:, 0])).astype(float)
        data = sw.Dataset(X, counts)
        mine = sw.train(
            {"objective": Poisson(), "n_estimators": 10, "start": 0.0}, data
        )
        ours = sw.train(
            {
                "objective": "poisson",
                "n_estimators": 10,
                "start": 0.0,
                "min_samples_leaf": 1,
            },
            data,
        )
        np.testing.assert_allclose(mine.predict(X), ours.predict(X), rtol=1e-6)

    def test_two_scores_a_row(self) -> None:
        class Normal:
            """Mean and log of the deviation."""

            n_outputs = 2

            def loss(self, y: Any, score: Any) -> Any:
                import jax.numpy as jnp

                z = (y - score[:, 0]) * jnp.exp(-score[:, 1])
                return score[:, 1] + 0.5 * z * z

        noisy = X[:, 0] + np.where(X[:, 1] > 0, 2.0, 0.2) * RNG.normal(size=400)
        fit = sw.train(
            {"objective": Normal(), "n_estimators": 50}, sw.Dataset(X, noisy)
        ).predict(X)
        assert (
            np.median(fit[X[:, 1] > 0.2, 1]) > np.median(fit[X[:, 1] < -0.2, 1]) + 1.0
        )

    def test_a_loss_that_mixes_rows_is_found_out(self) -> None:
        class Mixed:
            def loss(self, y: Any, score: Any) -> Any:
                return (score - y) ** 2 * score.sum()

        with pytest.raises(ObjectiveError, match="depend on that row only"):
            bytes_of(Mixed(), VALUE, start=1.0)

    def test_a_loss_must_be_one_number_a_row(self) -> None:
        class Total:
            def loss(self, y: Any, score: Any) -> Any:
                return ((score - y) ** 2).sum()

        with pytest.raises(ObjectiveError, match="one number per row"):
            bytes_of(Total(), VALUE)


def test_without_a_library_a_loss_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Squared:
        def loss(self, y: Any, score: Any) -> Any:
            return (score - y) ** 2

    monkeypatch.setattr("sapwood.objective.autodiff.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match="install jax or torch"):
        bytes_of(Squared(), VALUE)


def test_a_name_of_ours_with_another_link_is_marked() -> None:
    def logistic(y: Floats, score: Floats) -> tuple[Floats, Floats]:
        return math.sigmoid(score) - y, np.full_like(y, 0.25)

    booster = sw.train({"objective": logistic, "n_estimators": 2}, sw.Dataset(X, CLASS))
    assert (booster.objective, booster.link) == ("custom_logistic", "identity")
    assert sw.load(booster.to_bytes()).objective == "custom_logistic"


def test_early_stopping_asks_for_a_metric_where_nobody_said_what_a_prediction_is() -> (
    None
):
    params = {
        "objective": lambda y, s: (s - y, np.ones_like(y)),
        "early_stopping_rounds": 2,
        "n_estimators": 3,
    }
    with pytest.raises(ParameterError, match="Early stopping needs eval_metric"):
        sw.train(params, sw.Dataset(X, VALUE))
    assert sw.train({**params, "eval_metric": "rmse"}, sw.Dataset(X, VALUE)).history[
        "holdout"
    ]


def test_validation_labels_have_the_shape_of_the_others() -> None:
    data = sw.Dataset(X, VALUE)
    valid = sw.Dataset(X, np.column_stack([VALUE, VALUE]), reference=data)
    with pytest.raises(
        sw.errors.DataError,
        match=r"has labels of shape \(400, 2\), the training data \(400,\)",
    ):
        sw.train({}, data, valid=valid)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            lambda y, s: (s - y, np.zeros_like(y)),
            ObjectiveError,
            "returned only hessians of 0",
        ),
        (
            lambda y, s: (["a"] * len(y), np.ones_like(y)),
            ObjectiveError,
            "a gradient that is not numeric",
        ),
        (
            lambda y, s: ((s - y) * 1j, np.ones_like(y)),
            ObjectiveError,
            "a gradient that is not numeric",
        ),
        (
            type(
                "O", (), {"grad_hess": lambda self, y, s: (s - y, y * 0 + 1), "link": 3}
            )(),
            ParameterError,
            "link=3",
        ),
        (
            type(
                "O",
                (),
                {"grad_hess": lambda self, y, s: (s - y, y * 0 + 1), "n_outputs": "a"},
            )(),
            ParameterError,
            "n_outputs",
        ),
        (
            type(
                "O",
                (),
                {
                    "grad_hess": lambda self, y, s: (s - y, y * 0 + 1),
                    "leaf": lambda self, y, s, w: None,
                },
            )(),
            ObjectiveError,
            "leaf of objective 'O' returned None",
        ),
    ],
)
def test_more_that_goes_wrong_is_said(
    given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bytes_of(given, VALUE)


def test_a_third_parameter_with_a_default_is_not_for_weights() -> None:
    def pinball(y: Floats, score: Floats, alpha: float = 0.9) -> tuple[Floats, Floats]:
        assert alpha == 0.9
        return np.where(y >= score, -alpha, 1 - alpha), np.ones_like(y)

    bytes_of(pinball, VALUE, REAL)
    bytes_of(lambda *both: (both[1] - both[0], np.ones_like(both[0])), VALUE, REAL)

    def weighted(
        y: Floats, score: Floats, sample_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        assert sample_weight is not None
        return (score - y) * sample_weight, sample_weight

    bytes_of(weighted, VALUE, REAL)


@pytest.mark.parametrize(
    "params", [{"max_delta_step": 0.1}, {"leaf_estimation": "newton"}]
)
def test_a_leaf_function_is_not_overruled_in_silence(params: dict[str, Any]) -> None:
    class Own:
        def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
            return score - y, np.ones_like(y)

        def leaf(self, y: Floats, score: Floats, weight: Floats | None) -> float:
            return 1.0

    with pytest.raises(ParameterError, match="has a leaf function"):
        bytes_of(Own(), VALUE, **params)


def test_a_loss_of_straight_lines_is_refused() -> None:
    pytest.importorskip("jax")

    class Absolute:
        def loss(self, y: Any, score: Any) -> Any:
            return abs(score - y)

    with pytest.raises(ObjectiveError, match="a second derivative of 0 in most rows"):
        bytes_of(Absolute(), VALUE)


def test_derivatives_on_the_arrays_of_a_device_are_those_of_the_host() -> None:
    def by_weight(
        y: np.ndarray, score: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return (score - y) * weight, weight + 0.0 * score

    own = Custom.of(by_weight)
    y, score, weight = (
        np.arange(4.0),
        np.array([[0.5, 1.0, -2.0, 3.0]]),
        np.array([0.0, 1.0, 2.0, 0.5]),
    )
    found, wanted = (
        own.gradients_there(y, score, weight),
        own.gradients(y, score, weight),
    )
    assert all(
        (one == two).all() and one.shape == (1, 4)
        for one, two in zip(found, wanted, strict=True)
    )
    two = Custom.of(lambda y, score: (score, score * 0 + 1))
    assert (
        two.gradients_there(y, np.ones((2, 4)), None)[0]
        == two.gradients(y, np.ones((2, 4)), None)[0]
    ).all()
    for wrong, words in (
        (lambda y, s: (s[:1], s), "of shape"),
        (lambda y, s: (s - y, s * np.nan), "not finite"),
    ):
        with pytest.raises(ObjectiveError, match=words):
            Custom.of(wrong).gradients_there(y, score, None)


def test_n_classes_must_be_the_outputs_that_an_objective_has() -> None:
    class Two(Logistic):
        n_outputs = 2

    with pytest.raises(
        ParameterError, match="n_classes=3, but the objective has n_outputs=2"
    ):
        bytes_of(Two(), CLASS, n_classes=3)
