"""`recipe="classic"` is scikit-learn's gradient boosting: the same parts of the rows in
every tree, the same scores.

In: seven real data sets, every loss of scikit-learn. Out: agreement, tree by tree.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

import datasets
from peers.side_by_side import Array, Rival, compare
from sapwood import SapwoodClassifier, SapwoodRegressor

ROUNDS = 20
LEVEL = 0.9  # of the quantile loss and of Huber's delta: scikit-learn's alpha
DEPTH = {"max_depth": 3}
LEAVES = {"max_leaf_nodes": 8, "max_depth": None}  # best first
# rounds, of the 20; in the others every tree parts the rows as scikit-learn's does
MOST_TIES = 4

# Scikit-learn's words for our objectives, where they differ.
LOSS = {"adaptive_huber": "huber", "logistic": "log_loss", "softmax": "log_loss"}
FIELDS = {
    "adaptive_huber": {"huber_quantile": LEVEL},
    "quantile": {"quantile_alpha": LEVEL},
}


def without_missing(name: str) -> tuple[Array, Array]:
    """Rows and labels; scikit-learn's trees take missing values, but its boosting does
    not.
    """
    X, y, _ = getattr(datasets, name)()
    return X[:, ~np.isnan(X).any(axis=0)], y


def clipped(residual: Array) -> Array:
    """Residuals cut at Huber's delta, the lower quantile of their size."""
    delta = np.quantile(abs(residual), LEVEL, method="inverted_cdf")
    return residual.clip(-delta, delta)


# What trees are fitted to: the negative gradient. Where a score is the label itself,
# scikit-learn sides with y > s.
TARGET: dict[str, Callable[[Array, Array], Array]] = {
    "squared_error": lambda y, s: y - s,
    "absolute_error": lambda y, s: np.where(s > y, -1.0, 1.0),
    "adaptive_huber": lambda y, s: clipped(y - s),
    "quantile": lambda y, s: np.where(s > y, LEVEL - 1, LEVEL),
    "logistic": lambda y, s: y - expit(s),
    "exponential": lambda y, s: (2 * y - 1) * np.exp((1 - 2 * y) * s),
    "softmax": lambda y, s: (y == np.arange(s.shape[1])) - softmax(s, axis=1),
}
START: dict[str, Callable[[Array], Any]] = {  # of the classes' shares
    "logistic": lambda share: logit(share[1]),
    "exponential": lambda share: logit(share[1]) / 2,
    "softmax": np.log,
}


def regressor(objective: str, X: Array, y: Array, **params: Any) -> Rival:
    """Scikit-learn's model; with weights it takes lower medians and quantiles for its
    start too, as for its leaves.
    """
    loss = LOSS.get(objective, objective)
    model = GradientBoostingRegressor(
        loss=loss, alpha=LEVEL, n_estimators=ROUNDS, random_state=0, **params
    )
    model.fit(X, y, np.ones(len(y)))
    scores = [model.init_.predict(X), *model.staged_predict(X)]
    return Rival.of(model, scores, lambda s: TARGET[objective](y[:, None], s))


def classifier(objective: str, X: Array, y: Array, **params: Any) -> Rival:
    """Scikit-learn's model; its scores of several classes start centred, ours at the
    logarithms of their shares.
    """
    loss = LOSS.get(objective, objective)
    model = GradientBoostingClassifier(
        loss=loss, n_estimators=ROUNDS, random_state=0, **params
    ).fit(X, y)
    start = START[objective](model.init_.class_prior_)
    shift = start.mean() if objective == "softmax" else 0.0
    scores = [
        np.full((len(y), np.size(start)), start),
        *(s + shift for s in model.staged_decision_function(X)),
    ]
    return Rival.of(model, scores, lambda s: TARGET[objective](y[:, None], s))


def ours(objective: str, **params: Any) -> dict[str, Any]:
    """The same settings in our words."""
    recipe = {"recipe": "classic", "objective": objective, "learning_rate": 0.1}
    return {**recipe, **FIELDS.get(objective, {}), **params}


@pytest.mark.parametrize(
    "name", ["california_housing", "wine_quality", "bike_sharing", "protein"]
)
def test_regressor_out_of_the_box(name: str) -> None:
    X, y = without_missing(name)
    predicted = SapwoodRegressor(recipe="classic").fit(X, y).predict(X)
    expected = GradientBoostingRegressor(random_state=0).fit(X, y).predict(X)
    # 100 rounds; see test_regressor
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-8 * np.ptp(y))


@pytest.mark.parametrize("name", ["adult", "magic"])
def test_classifier_out_of_the_box(name: str) -> None:
    X, y = without_missing(name)
    predicted = SapwoodClassifier(recipe="classic").fit(X, y).predict_proba(X)
    expected = GradientBoostingClassifier(random_state=0).fit(X, y).predict_proba(X)
    # see test_classifier
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-8)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("shape", [DEPTH, LEAVES], ids=["depth", "leaves"])
@pytest.mark.parametrize(
    "objective", ["squared_error", "absolute_error", "adaptive_huber", "quantile"]
)
@pytest.mark.parametrize(
    "name", ["california_housing", "wine_quality", "bike_sharing", "protein"]
)
def test_regressor(name: str, objective: str, shape: dict[str, Any]) -> None:
    """A residual of 31 bits is off by 2^-30 of the range of y at most; 20 leaf values
    times 0.1 add two such errors.
    """
    X, y = without_missing(name)
    rival = regressor(objective, X, y, **shape)
    assert (
        compare(ours(objective, **shape), X, y, rival, tolerance=2e-9 * np.ptp(y))
        <= MOST_TIES
    )


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("shape", [DEPTH, LEAVES], ids=["depth", "leaves"])
@pytest.mark.parametrize(
    ("name", "objective", "tolerance"),
    [
        ("adult", "logistic", 1e-8),
        ("adult", "exponential", 1e-8),
        ("magic", "logistic", 1e-8),
        ("magic", "exponential", 1e-8),
        ("letter", "softmax", 1e-6),
    ],
)
def test_classifier(
    name: str, objective: str, tolerance: float, shape: dict[str, Any]
) -> None:
    """The error of a gradient, 2^-31, is divided by a leaf's mean hessian: 0.1 or so,
    of 26 classes rather 0.001.
    """
    X, y = without_missing(name)
    rival = classifier(objective, X, y, **shape)
    assert compare(ours(objective, **shape), X, y, rival, tolerance) <= MOST_TIES


@pytest.mark.parametrize(
    ("name", "objective", "alpha"),
    [
        ("protein", "squared_error", 0.4),
        ("bike_sharing", "absolute_error", 0.01),
        ("magic", "logistic", 0.002),
    ],
)
def test_pruned(name: str, objective: str, alpha: float) -> None:
    """Weakest-link pruning by `ccp_alpha`, which is a mean square of the gradients in
    both libraries.
    """
    X, y = without_missing(name)
    rival = (classifier if objective in START else regressor)(
        objective, X, y, **DEPTH, ccp_alpha=alpha
    )
    leaves = [(tree.left < 0).sum() for (tree,) in rival.trees]
    # every tree lost some, and not all the same number
    assert min(leaves) < max(leaves) < 8
    assert (
        compare(
            ours(objective, **DEPTH, ccp_alpha=alpha),
            X,
            y,
            rival,
            tolerance=1e-8 * np.ptp(y),
        )
        == 0
    )


def test_comparison_can_fail() -> None:
    X, y = without_missing("protein")
    rival = regressor("squared_error", X, y, **DEPTH)
    with pytest.raises(AssertionError, match="rows are split"):
        compare(
            ours("squared_error", **DEPTH, min_samples_leaf=20),
            X,
            y,
            rival,
            tolerance=1e300,
        )
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        compare(
            ours("squared_error", **DEPTH, reg_lambda=0.01),
            X,
            y,
            rival,
            tolerance=2e-9 * np.ptp(y),
        )
