"""Held-out rows and folds: exact counts, drawn by position and seed alone."""

import numpy as np
import pytest

import sapwood
from sapwood.boost import splits
from sapwood.device import host
from sapwood.errors import DataError, ParameterError


@pytest.mark.parametrize(
    ("n_rows", "fraction", "count"),
    [(10, 0.1, 1), (10, 0.25, 3), (3, 0.01, 1), (1000, 0.3, 300)],
)
def test_as_many_rows_as_asked_for_are_held_out(
    n_rows: int, fraction: float, count: int
) -> None:
    mask = splits.holdout(5, fraction, n_rows)
    draws = host.draw(5, host.HOLDOUT, 0, 0, n_rows)
    assert mask.sum() == count and draws[mask].max() < draws[~mask].min()


def test_another_seed_holds_out_other_rows() -> None:
    assert (splits.holdout(1, 0.5, 100) != splits.holdout(2, 0.5, 100)).any()


def test_rows_of_weight_zero_are_nowhere() -> None:
    weight = np.array([0.0, 1.0, 0.0, 2.0, 0.5, 0.0])
    mask = splits.holdout(0, 0.4, 6, weight)
    assert mask.sum() == 1 and not mask[weight == 0].any()


def test_something_must_be_left_to_train_on() -> None:
    with pytest.raises(DataError, match="leaves none to train on"):
        splits.holdout(0, 0.1, 1)
    with pytest.raises(DataError, match="of 1 rows of positive weight"):
        splits.holdout(0, 0.1, 3, np.array([0.0, 1.0, 0.0]))


def test_folds_differ_by_at_most_one_row() -> None:
    fold = splits.folds(0, 3, 11)
    assert sorted(np.bincount(fold)) == [3, 4, 4]
    assert (fold != splits.folds(1, 3, 11)).any()


@pytest.mark.parametrize("n_folds", [1, 12])
def test_as_many_folds_as_rows_at_most(n_folds: int) -> None:
    with pytest.raises(
        ParameterError,
        match=rf"n_folds={n_folds} does not suit 11 rows; choose 2\.\.11",
    ):
        splits.folds(0, n_folds, 11)


def test_every_class_gives_its_share() -> None:
    classes = np.repeat([0.0, 1.0, 2.0], [700, 250, 50])
    mask = splits.holdout(3, 0.1, 1000, None, classes)
    assert mask.sum() == 100
    np.testing.assert_allclose(
        np.bincount(classes[mask].astype(int)), [70, 25, 5], atol=1
    )
    fold = splits.folds(3, 5, 1000, classes)
    for one in range(3):
        assert np.ptp(np.bincount(fold[classes == one])) <= 1
    assert (fold != splits.folds(4, 5, 1000, classes)).any()


def test_groups_stay_together() -> None:
    rng = np.random.default_rng(0)
    group = np.unique(rng.integers(0, 60, 1000), return_inverse=True)[1].astype(
        np.int32
    )
    sizes = np.bincount(group)
    mask = splits.holdout(3, 0.2, 1000, group=group)
    by_group = np.bincount(group, mask)
    assert set(by_group / sizes) == {0.0, 1.0}
    assert 200 <= mask.sum() < 200 + sizes.max()
    fold = splits.folds(3, 7, 1000, group=group)
    # one fold a group
    assert len(np.unique(np.stack([group, fold]), axis=1).T) == len(sizes)
    assert np.ptp(np.bincount(fold[np.unique(group, return_index=True)[1]])) <= 1
    assert (mask != splits.holdout(4, 0.2, 1000, group=group)).any()
    assert (fold != splits.folds(4, 7, 1000, group=group)).any()


@pytest.mark.parametrize("sizes", [(598, 1, 1), (500, 100), (20, 560, 20)])
def test_a_group_of_most_rows_is_trained_on(sizes: tuple[int, ...]) -> None:
    group = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    for seed in range(6):
        mask = splits.holdout(seed, 0.2, 600, group=group)
        assert mask.any()
        assert not mask[group == np.argmax(sizes)].any()
    # in time the last group is held out, large or not
    assert splits.holdout(0, 0.2, 600, group=group, last=True)[-1]


def test_groups_of_no_weight_are_nowhere() -> None:
    group = np.repeat(np.arange(4, dtype=np.int32), 5)
    weight = np.where(group == 2, 0.0, 1.0)
    weight[0] = 0.0
    for seed in range(20):
        mask = splits.holdout(seed, 0.3, 20, weight, None, group)
        assert not mask[weight == 0].any() and len({*group[mask]}) == 1
        assert mask.sum() == (weight[group == group[mask][0]] > 0).sum()


def test_some_group_must_be_left() -> None:
    group = np.zeros(10, np.int32)
    with pytest.raises(
        DataError, match="of 1 groups with rows of positive weight leaves none"
    ):
        splits.holdout(0, 0.1, 10, group=group)
    with pytest.raises(
        ParameterError, match=r"n_folds=3 does not suit 2 groups; choose 2\.\.2"
    ):
        splits.folds(0, 3, 10, group=np.repeat(np.arange(2, dtype=np.int32), 5))


def test_training_holds_out_whole_groups() -> None:
    """What tells groups apart helps inside them only: held-out rows of known groups
    would hide that.
    """
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(50), 20)
    X = rng.normal(size=(1000, 3))
    X[:, 0] = group
    y = rng.normal(size=50)[group] + 0.1 * rng.normal(size=1000)
    params = {"n_estimators": 40, "early_stopping_rounds": 10, "min_samples_leaf": 1}
    for groups, low in ((None, True), (group, False)):
        data = sapwood.Dataset(X, y, group=groups)
        assert (sapwood.train(params, data).history["holdout"]["rmse"][-1] < 0.5) == low
        assert (sapwood.cv({"n_estimators": 40}, data)["rmse_mean"][-1] < 0.5) == low
