"""`recipe="adaboost"` is AdaBoost: discrete with leaves of +1 and -1 and a step per
tree, else on the exponential loss.

In: three real data sets of two classes. Out: the stumps, weights and scores of
scikit-learn.
"""

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

import datasets
from peers.side_by_side import Array, Rival, Tree, compare
from sapwood import SapwoodClassifier

ROUNDS = 20
DATA = pytest.mark.parametrize("name", ["adult", "magic", "letter"])


def table(name: str) -> tuple[Array, Array]:
    """Rows and labels 0, 1; the letters N to Z are one class."""
    X, y, _ = getattr(datasets, name)()
    return X, (y > 12).astype(np.float64) if name == "letter" else y


@DATA
def test_discrete(name: str) -> None:
    """Its stumps lower the Gini impurity under weights exp(-t s): least squares on t =
    2 y - 1 under these weights.
    """
    X, y = table(name)
    t = 2 * y - 1
    model = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=1), n_estimators=ROUNDS, random_state=0
    ).fit(X, y)
    votes = np.array([2 * stump.predict(X) - 1 for stump in model.estimators_])
    steps = model.estimator_weights_ / 2  # exp(-t s) with s half of its weighted votes
    scores = np.vstack([np.zeros(len(X)), np.cumsum(steps[:, None] * votes, axis=0)])[
        :, :, None
    ]
    rival = Rival(
        [[Tree.of_sklearn(stump)] for stump in model.estimators_],
        list(scores),
        target=lambda s: t[:, None],
        weight=lambda s: np.exp(-t[:, None] * s),
    )
    params = {"recipe": "adaboost", "leaf_estimation": "sign", "line_search": "tree"}
    assert compare(params, X, y, rival, tolerance=1e-9) == 0

    ours = SapwoodClassifier(**params, n_estimators=ROUNDS).fit(X, y)
    trees = ours.booster_.trees
    leaves = trees.value[trees.column < 0].reshape(ROUNDS, 2)
    # where our search ends
    np.testing.assert_allclose(abs(leaves), np.column_stack([steps, steps]), rtol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), model.predict(X))


@DATA
def test_exponential_loss(name: str) -> None:
    """Trees fit the negative gradient, leaves take a Newton step: errors as in
    test_classic, at a rate of 1.
    """
    X, y = table(name)
    t = 2 * y - 1
    model = GradientBoostingClassifier(
        loss="exponential",
        max_depth=1,
        init="zero",
        learning_rate=1,
        n_estimators=ROUNDS,
        random_state=0,
    ).fit(X, y)
    scores = [np.zeros(len(X)), *model.staged_decision_function(X)]
    rival = Rival.of(model, scores, lambda s: t[:, None] * np.exp(-t[:, None] * s))
    assert (
        compare({"recipe": "adaboost", "hessian": "none"}, X, y, rival, tolerance=1e-7)
        == 0
    )
