"""Curves against scikit-learn's, and intervals against their formula."""

import numpy as np
import pytest
from sklearn import metrics as theirs

from sapwood.errors import DataError
from sapwood.metric import curves

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400).astype(float)
p = np.round(np.clip(0.3 * y + rng.random(400) * 0.7, 0, 1), 2)  # with ties


def test_roc_is_scikit_learn_s() -> None:
    for ours, other in zip(
        curves.roc(y, p), theirs.roc_curve(y, p, drop_intermediate=False), strict=True
    ):
        np.testing.assert_allclose(ours, other)


def test_precision_and_recall_are_scikit_learn_s() -> None:
    recall, precision, threshold = curves.precision_recall(y, p)
    their_precision, their_recall, their_threshold = theirs.precision_recall_curve(y, p)
    np.testing.assert_allclose(threshold[::-1], their_threshold)
    np.testing.assert_allclose(recall[::-1], their_recall[:-1])
    np.testing.assert_allclose(precision[::-1], their_precision[:-1])


def test_calibration_counts_every_row_once() -> None:
    found = curves.calibration(y, p, 8)
    assert found.count.sum() == 400
    assert found.observed @ found.count == pytest.approx(y.sum())
    assert found.predicted @ found.count == pytest.approx(p.sum())
    assert (found.low <= found.observed).all() and (found.observed <= found.high).all()
    constant = curves.calibration(y, np.full(400, 0.25))
    assert constant.count.tolist() == [400] and constant.predicted[0] == 0.25


def test_wilson() -> None:
    low, high = curves.wilson([0, 5], [10, 10])  # as R's prop.test(correct=FALSE)
    np.testing.assert_allclose(
        [low, high], [[0, 0.236593], [0.277533, 0.763407]], atol=1e-6
    )


def test_confusion() -> None:
    assert curves.confusion([0, 1, 1, 2], [0, 1, 2, 2], 3).tolist() == [
        [1, 0, 0],
        [0, 1, 1],
        [0, 0, 1],
    ]


@pytest.mark.parametrize("bad", [np.zeros(400), np.full(400, 2.0), y[:10]])
def test_labels_that_have_no_curve(bad: np.ndarray) -> None:
    with pytest.raises(DataError):
        curves.roc(bad, p)
