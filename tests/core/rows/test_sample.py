"""Which rows a sampler takes: exact thresholds, expectations over many rounds, and what
is refused.
"""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Dataset, _core
from sapwood.errors import DataError, ParameterError
from sapwood.params import resolve

Floats = NDArray[np.float64]


# ---- Thresholds and expectations -----------------------------------------------------


def trainer_of(
    X: Floats, y: Floats, sampler: str, fields: dict[str, float]
) -> _core.Trainer:
    """A trainer of squared error whose gradients are minus the labels."""
    trainer = _core.Trainer(
        _core.Binned([X], _core.cuts([X], None, 65535, 1, 2), 2),
        y[None],
        None,
        "squared_error",
        {},
        1,
        2,
    )
    trainer.fill_scores(np.zeros(1))
    trainer.set_sampler(sampler, fields)
    return trainer


LIMITS = {
    "max_depth": 0,
    "max_leaves": 0,
    "min_child_weight": 0.0,
    "min_samples_leaf": 1,
    "reg_lambda": 0.0,
    "reg_alpha": 0.0,
    "min_split_gain": 0.0,
    "max_delta_step": 0.0,
    "path_smooth": 0.0,
    "learning_rate": 1.0,
    "colsample_bytree": 1.0,
    "colsample_bylevel": 1.0,
    "colsample_bynode": 1.0,
    "max_cat_to_onehot": 4,
    "max_cat_threshold": 32,
    "cat_smooth": 10.0,
    "cat_l2": 10.0,
    "min_data_per_group": 100,
}


def test_goss_keeps_exactly_the_top_rows() -> None:
    y = np.random.default_rng(0).normal(size=1000)
    trainer = trainer_of(
        np.arange(1000.0)[:, None], y, "goss", {"top_rate": 0.2, "other_rate": 0.1}
    )
    trainer.gradients("wide")
    asked = trainer.sample(7, 0, 1.0)
    # no limits: a leaf for every row that was asked
    tree = trainer.grow("depthwise", LIMITS, 7, 0)[0]
    leaf = trainer.leaf_ids(0)
    cover = tree["cover"][tree["left"] == 0]
    assert len(cover) == asked and set(cover) == {1.0, 8.0}
    top = np.argsort(-np.abs(y))[:200]
    assert (cover[leaf[top]] == 1).all() and len(set(leaf[top])) == 200 == (
        cover == 1
    ).sum()
    assert abs((cover == 8).sum() - 100) < 4 * np.sqrt(100 * 0.9)


def test_of_equal_gradients_goss_keeps_its_share() -> None:
    y = np.where(np.arange(1000) % 2, 1.0, -1.0)
    trainer = trainer_of(
        np.arange(1000.0)[:, None], y, "goss", {"top_rate": 0.2, "other_rate": 0.1}
    )
    trainer.gradients("auto")
    others = trainer.sample(0, 0, 1.0) - 200
    assert abs(others - 100) < 4 * np.sqrt(100 * 0.9)


def test_a_sampler_may_be_set_once_gradients_are_there() -> None:
    y = np.random.default_rng(0).normal(size=1000)
    goss = ("goss", {"top_rate": 0.2, "other_rate": 0.1})
    mvs = ("mvs", {"mvs_reg": 0.5})
    # the row pass leaves sizes for goss, which are not those of mvs
    for before, after in ((goss, mvs), (mvs, goss)):
        first = trainer_of(y[:, None], y, *after)
        late = trainer_of(y[:, None], y, *before)
        first.gradients("auto"), late.gradients("auto")
        late.set_sampler(*after)
        assert late.sample(3, 1, 0.3) == first.sample(3, 1, 0.3)
        grown = [
            one.grow("leafwise", LIMITS | {"max_leaves": 8}, 3, 1)[0]
            for one in (first, late)
        ]
        for name in ("column", "bin", "value", "cover"):
            np.testing.assert_array_equal(grown[0][name], grown[1][name])


def test_after_a_weighed_sample_all_rows_may_be_asked_again() -> None:
    y = np.random.default_rng(0).normal(size=1000)
    first, late = (
        trainer_of(y[:, None], y, "goss", {"top_rate": 0.2, "other_rate": 0.1})
        for _ in range(2)
    )
    late.gradients("auto")
    late.sample(3, 0, 1.0)
    # the row pass leaves narrow words out where it expects another weighed sample
    for one in (first, late):
        one.gradients("auto")
        assert one.sample(3, 1, None) == 1000
    grown = [
        one.grow("leafwise", LIMITS | {"max_leaves": 8}, 3, 1)[0]
        for one in (first, late)
    ]
    for name in ("column", "bin", "value", "cover"):
        np.testing.assert_array_equal(grown[0][name], grown[1][name])


SAMPLERS: list[tuple[str, dict[str, float], float]] = [
    ("goss", {"top_rate": 0.2, "other_rate": 0.1}, 1.0),
    ("mvs", {"mvs_reg": -1.0}, 0.3),
    ("mvs", {"mvs_reg": 0.5}, 0.3),
    ("bayesian", {"bagging_temperature": 1.0}, 1.0),
]


@pytest.mark.parametrize(("name", "fields", "share"), SAMPLERS)
def test_sums_are_right_on_average(
    name: str, fields: dict[str, float], share: float
) -> None:
    y = np.random.default_rng(1).gamma(1.0, size=500) - 0.5
    # one leaf: its value is -G / H, its cover H
    trainer = trainer_of(np.zeros((500, 1)), y, name, fields)
    found = []
    for round in range(400):
        trainer.gradients("auto")
        rows = trainer.sample(3, round, share)
        tree = trainer.grow("leafwise", LIMITS, 3, round)[0]
        found.append((tree["value"][0] * tree["cover"][0], tree["cover"][0], rows))
    mean = np.mean(found, axis=0)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(400)
    size = {"goss": 150, "mvs": 150, "bayesian": 500}[name]
    for got, expected, deviation in zip(mean, (y.sum(), 500, size), error, strict=True):
        assert abs(got - expected) <= 3 * deviation + 1e-6 * 500


def test_temperature_0_is_no_sampling() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = rng.normal(size=300)
    models = [
        sapwood.train(
            {"n_estimators": 3, "precision": "wide", **params}, Dataset(X, label=y)
        ).trees
        for params in ({}, {"sampling": "bayesian", "bagging_temperature": 0.0})
    ]
    assert models[0].value.tobytes() == models[1].value.tobytes()


# ---- Rounds, classes, groups ---------------------------------------------------------


def counts(data: Dataset, **params: Any) -> list[float]:
    """Rows of the root of every tree."""
    trees = sapwood.train(
        {"max_leaves": 2, "min_child_weight": 0, **params}, data
    ).trees
    return [float(trees.count[at]) for at in trees.offset[:-1]]


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(4)
    y = (rng.random(2000) < 0.3).astype(np.float64)
    return Dataset(np.column_stack([y, rng.normal(size=2000)]), label=y)


def test_goss_warms_up(data: Dataset) -> None:
    found = counts(data, sampling="goss", learning_rate=0.25, n_estimators=6)
    assert found[:4] == [2000] * 4 and max(found[4:]) < 800
    scheduled = counts(
        data,
        sampling="goss",
        learning_rate=lambda round: 0.5 if round else 1.0,
        n_estimators=4,
    )
    assert scheduled[:2] == [2000] * 2 and max(scheduled[2:]) < 800
    first = sapwood.train(
        {"sampling": "goss", "learning_rate": 0.5, "n_estimators": 3}, data
    )
    again = sapwood.train(
        {"sampling": "goss", "learning_rate": 0.5, "n_estimators": 2},
        data,
        init_model=first,
    )
    whole = sapwood.train(
        {"sampling": "goss", "learning_rate": 0.5, "n_estimators": 5}, data
    )
    assert again.trees.value.tobytes() == whole.trees.value.tobytes()


def test_goss_warms_up_whatever_the_number_of_trees(data: Dataset) -> None:
    found = counts(
        data, sampling="goss", learning_rate=0.5, n_estimators=4, n_parallel_trees=2
    )
    assert found[:4] == [2000] * 4 and max(found[4:]) < 800


@pytest.mark.parametrize(
    "given", [{"learning_rate": 0.25}, {"eta": [0.1, 0.25, 0.2, 0.25]}], ids=str
)
def test_goss_that_never_draws_says_so(data: Dataset, given: dict[str, Any]) -> None:
    with pytest.warns(
        UserWarning,
        match="takes all rows in its first 1 / learning_rate rounds, and there are 4 in all",
    ):
        first = sapwood.train({"sampling": "goss", "n_estimators": 4, **given}, data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sapwood.train(
            {"sampling": "goss", "n_estimators": 1, "learning_rate": 0.25},
            data,
            init_model=first,
        )


def test_rounds_share_a_draw(data: Dataset) -> None:
    found = counts(data, subsample=0.5, subsample_freq=3, n_estimators=9)
    assert [len(set(found[at : at + 3])) for at in (0, 3, 6)] == [1] * 3 and len(
        set(found)
    ) == 3


def test_classes_have_shares_of_their_own(data: Dataset) -> None:
    y = data.label
    assert y is not None
    params = {
        "objective": "logistic",
        "max_leaves": 2,
        "n_estimators": 1,
        "neg_bagging_fraction": 0.1,
    }
    # column 0 is the class
    tree = sapwood.train(params | {"pos_bagging_fraction": 0.9}, data).trees
    for rows, share, found in (
        (y == 0, 0.1, tree.count[1]),
        (y == 1, 0.9, tree.count[2]),
    ):
        assert abs(found - share * rows.sum()) < 4 * np.sqrt(
            rows.sum() * share * (1 - share)
        )
    names = np.where(y == 1, "yes", "no")
    X = np.column_stack([y, y])
    model = sapwood.SapwoodClassifier(
        n_estimators=1, max_leaves=2, subsample_by_class={"no": 0.1, "yes": 0.9}
    )
    assert model.fit(X, names).booster_.trees.count.tolist() == tree.count.tolist()
    with pytest.raises(
        ParameterError,
        match="subsample_by_class has a class 'maybe'; choose one of no, yes",
    ):
        model.set_params(subsample_by_class={"maybe": 0.5}).fit(X, names)


def test_whole_groups_are_in_or_out() -> None:
    sizes = 2 ** np.arange(8)
    y = np.random.default_rng(5).normal(size=255)
    by_size, by_name = (
        Dataset(y[:, None], label=y, group=group)
        for group in (sizes, np.repeat(list("hgfedcba"), sizes))
    )
    assert (
        by_size.group is not None and by_size.group.tolist() == by_name.group.tolist()
    )  # type: ignore[union-attr]
    params = {"subsample": 0.5, "sampling_unit": "group", "n_estimators": 40}
    assert counts(by_size, **params) == counts(by_name, **params)
    drawn = [_core.draw(0, 2, round, 0, 8) < np.uint64(2**63) for round in range(40)]
    assert counts(by_size, **params) == [float(sizes[groups].sum()) for groups in drawn]


def test_groups_are_saved(tmp_path: Any) -> None:
    data = Dataset(np.zeros((4, 1)), label=np.zeros(4), group=["a", "b", "a", "c"])
    assert data.group is not None and data.group.tolist() == [0, 1, 0, 2]
    data.save(tmp_path / "data")
    again = Dataset.load(tmp_path / "data")
    assert (
        again.fingerprint()
        == data.fingerprint()
        != Dataset(np.zeros((4, 1)), label=np.zeros(4)).fingerprint()
    )


@pytest.mark.parametrize(
    "group", [[1, 1, 1, 1], [3, 2], [5, -1], [1.5, 2.5], [[1, 3]], [1, 1, 1, 1, 0]]
)
def test_bad_groups(group: list[Any]) -> None:
    with pytest.raises(DataError, match="group"):
        Dataset(np.zeros((4, 1)), group=group)


# ---- Names and refusals --------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({"boosting": "goss"}, {"sampling": "goss"}),
        ({"data_sample_strategy": "bagging"}, {"sampling": "uniform"}),
        ({"sampling_method": "gradient_based"}, {"sampling": "mvs"}),
        (
            {"bootstrap_type": "Bernoulli", "subsample": 0.5},
            {"sampling": "uniform", "subsample": 0.5},
        ),
        ({"bootstrap_type": "MVS"}, {"sampling": "mvs"}),
        ({"bootstrap_type": "Bayesian"}, {"sampling": "bayesian"}),
        ({"bootstrap_type": "No"}, {"sampling": "none"}),
        (
            {"bagging_freq": 5, "subsample": 0.5},
            {"subsample_freq": 5, "subsample": 0.5},
        ),
        (
            {"bagging_by_query": True, "subsample": 0.5},
            {"sampling_unit": "group", "subsample": 0.5},
        ),
        ({"sampling_unit": "Object"}, {"sampling_unit": "row"}),
        (
            {"pos_bagging_fraction": 0.5, "neg_bagging_fraction": 0.1},
            {"subsample_by_class": {1: 0.5, 0: 0.1}},
        ),
        ({"mvs_reg": None}, {"mvs_reg": "auto"}),
    ],
    ids=str,
)
def test_names_of_the_peers(given: dict[str, Any], ours: dict[str, Any]) -> None:
    assert resolve(given) == resolve(ours)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sampling": "gos"}, "sampling='gos' is unknown; did you mean 'goss'"),
        (
            {"sampling": "goss", "subsample": 0.5},
            "subsample=0.5 is for sampling='mvs' or 'uniform', not for 'goss'",
        ),
        (
            {"goss_alpha": 0.3},
            "goss_alpha=0.3 .top_rate. is for sampling='goss', not for 'uniform'; set that, or",
        ),
        (
            {"sampling": "bayesian", "subsample": 0.5},
            "subsample=0.5 is for sampling='mvs' or 'uniform', not for 'bayes",
        ),
        (
            {"bootstrap_type": "No", "subsample": 0.5},
            "subsample=0.5 is for sampling='mvs' or 'uniform', not for 'none'",
        ),
        ({"sampling": "mvs"}, "set subsample below 1"),
        (
            {"sampling": "goss", "bagging_freq": 2},
            "bagging_freq=2 .subsample_freq. needs a draw that does not look",
        ),
        (
            {"sampling": "mvs", "subsample": 0.5, "sampling_unit": "group"},
            "sampling_unit='group' needs a draw that",
        ),
        (
            {"sampling": "goss", "top_rate": 0.8, "other_rate": 0.3},
            "are more than all rows",
        ),
        (
            {"sampling": "goss", "subsample_by_class": {0: 0.1}},
            "choose sampling='uniform' and sampling_unit='row'",
        ),
        ({"bagging_freq": -1}, "bagging_freq=-1 .*is too small; choose 1 or more"),
        ({"pos_bagging_fraction": 1.5}, "1.5 is too large"),
        ({"subsample_by_class": {}}, "is not a dict of fractions"),
        (
            {"pos_bagging_fraction": 0.5, "subsample_by_class": {1: 0.6}},
            "are both subsample_by_class",
        ),
        (
            {"subsample_by_class": {0: 0.1}, "objective": "squared_error"},
            "needs labels that are classes",
        ),
        (
            {"subsample_by_class": {2: 0.1}, "objective": "logistic"},
            "has a class '2'; choose one of 0, 1",
        ),
        ({"bagging_temperature": -1.0}, "bagging_temperature=-1.0 is too small"),
    ],
    ids=str,
)
def test_refusals(data: Dataset, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sapwood.train(params, data)


def test_groups_must_be_there(data: Dataset) -> None:
    with pytest.raises(DataError, match="sampling_unit='group' needs groups"):
        sapwood.train({"sampling_unit": "group", "subsample": 0.5}, data)


def test_the_core_refuses_too() -> None:
    trainer = trainer_of(np.zeros((3, 1)), np.zeros(3), "uniform", {})
    for name, fields, share, unit in (
        ("nobody", {}, None, None),
        ("goss", {"top_rate": 0.2}, None, None),
        ("goss", {"top_rate": 0.2, "other_rate": np.inf}, None, None),
        ("uniform", {"subsample": 0.5}, None, None),
        ("uniform", {}, np.ones(2), None),
        ("uniform", {}, None, np.zeros(4, np.int32)),
        ("mvs", {"mvs_reg": 0.1}, None, np.zeros(3, np.int32)),
    ):
        with pytest.raises(ValueError):
            trainer.set_sampler(name, fields, share, unit)
