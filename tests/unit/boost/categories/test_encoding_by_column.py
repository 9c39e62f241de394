"""Categories column by column: which encoding, which statistics, of several labels; the
reference bit for bit.
"""

from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood import Booster, Dataset
from sapwood.errors import ParameterError
from spec import reference
from spec.encoded_rows import BORDERS, SMALL, N, rows
from spec.helpers import assert_bits
from spec.reference import encoded_training, target_statistics

PLAIN = {
    name: value
    for name, value in SMALL.items()
    if name not in ("model_size_reg", "category_encoding")
}
SETS = {"cat_smooth": 1.0, "cat_l2": 0.0, "min_data_per_group": 1}
KINDS: dict[str, list[Any]] = {
    "logistic": [("buckets", (0.25, 1.0)), "counter"],
    "softmax": ["counter", ("buckets", [0.5])],
    "squared_error": [("borders", [0.0, 0.5]), ("mean", [1.0])],
}


def trained(y: Any = None, objective: str = "logistic", **params: Any) -> Booster:
    X, label = rows(objective)
    data = Dataset(
        X, label if y is None else y, categorical_features=[1, 2, 3], min_samples_bin=1
    )
    return sapwood.train(PLAIN | SETS | {"objective": objective} | params, data)


@pytest.mark.parametrize("objective", BORDERS)
@pytest.mark.parametrize("policy", ["leafwise", "symmetric"])
def test_reference(policy: str, objective: str) -> None:
    """One column by statistics of its own, one split by sets, one by one against the
    rest.
    """
    X, y = rows(objective)
    how = {
        "category_encoding": {1: "ordered", "f3": "partition", 2: "onehot"},
        "statistics": {1: KINDS[objective]},
    }
    booster = trained(None, objective, grow_policy=policy, **how)
    data = Dataset(X, y, categorical_features=[1, 2, 3], min_samples_bin=1)
    code = data.binned.codes(1).astype(np.int32)
    kept = [X[:, 0].astype(np.float64)]
    kept += [data.binned.codes(j).astype(np.float64) for j in (2, 3)]
    w = reference.weights(None, N)
    borders = (
        np.array(BORDERS[objective])
        if BORDERS[objective]
        else reference.cuts(y, w, 2, 1)
    )
    tables = []
    for which in range(3):
        order = target_statistics.order(7, which, None, N)
        found = []
        for kind, priors in [
            one if isinstance(one, tuple) else (one, [0.0]) for one in KINDS[objective]
        ]:
            if kind == "counter":
                total = np.bincount(code)
                found.append(total[code] / (total.max() + 1.0))
                continue
            each = [
                target_statistics.statistic(code, y, kind, prior, borders, None, order)
                for prior in priors
            ]
            found += [one[mass] for mass in range(len(each[0])) for one in each]
        tables.append(np.array([*kept, *found]).T)
    numbers = objective == "squared_error"
    cut = [reference.cuts(kept[0], w, 255, 1), np.empty(0), np.empty(0)]
    cut += [
        reference.cuts(x, w, 255, 1) if numbers else np.arange(1, 16) / 16
        for x in tables[0].T[3:]
    ]
    told = {
        name: value
        for name, value in (PLAIN | SETS).items()
        if name in reference.DEFAULTS
    }
    told |= {
        "objective": objective,
        "grow_policy": policy,
        "seed": 7,
        "max_cat_to_onehot": 4,
    }
    kinds = {"n_categories": [0, data.n_bins[2], data.n_bins[3]] + [0] * (len(cut) - 3)}
    expected, _ = encoded_training.train(lambda *_: (tables, cut, kinds), y, told, None)
    for name in ("left", "value", "gain", "cover", "count"):
        assert_bits(
            getattr(booster.trees, name),
            np.concatenate([tree[name] for tree in expected]),
            name,
        )
    column = np.array([0, 2, 3] + [1] * (len(cut) - 3) + [-1])
    assert (
        booster.trees.column.tolist()
        == column[np.concatenate([tree["column"] for tree in expected])].tolist()
    )
    assert {1, 2, 3} <= set(booster.trees.column.tolist())


def test_words_for_some_columns_and_for_all() -> None:
    def trees(**params: Any) -> bytes:
        found = trained(**params).trees
        return b"".join(
            getattr(found, name).tobytes()
            for name in ("column", "value", "set", "set_code")
        )

    alone = {"n_permutations": 1, "path_smooth": 0.0}
    assert trees(
        category_encoding={1: "onehot", 2: "onehot", 3: "onehot"}, **alone
    ) == trees(category_encoding="onehot", **alone)
    assert trees(category_encoding={"f3": "onehot"}, **alone) == trees(
        max_cat_to_onehot=7, **alone
    )
    assert trees(category_encoding={"f3": "onehot"}, **alone) != trees(**alone)
    assert trees(category_encoding={1: "both", 2: "both", 3: "both"}) == trees(
        category_encoding="both"
    )
    usual = [("borders", [0, 0.5, 1]), ("counter", [0])]
    assert trees(category_encoding="both", statistics=usual) == trees(
        category_encoding="both"
    )
    assert trees(category_encoding="ordered", statistics=["counter"]) != trees(
        category_encoding="ordered"
    )
    recipe = {"recipe": "catboost", "learning_rate": 0.3, "n_permutations": 2}
    # the others as the recipe says
    assert trees(category_encoding={1: "ordered"}, **recipe) == trees(**recipe)
    assert trained(category_encoding={1: "ordered"}).params["category_encoding"] == {
        "f1": "ordered"
    }


def test_columns_that_are_split_by_sets_are_not_joined() -> None:
    booster = trained(
        category_encoding={1: "ordered", 2: "ordered"},
        max_combination=3,
        n_estimators=17,
    )
    found = list(booster.combinations.sources())
    assert any(len(own) > 1 for own in found) and all(
        column != 3 for own in found for column, _ in own
    )


def test_several_labels() -> None:
    """Each has statistics of its own: the second of two equal ones never beats the
    first.
    """
    X, y = rows("squared_error")
    how: dict[str, Any] = {"objective": "squared_error", "category_encoding": "ordered"}
    one = trained(y, **how)
    two = trained(np.array([y, y]).T, **how)
    assert_bits(
        two.trees.value[two.trees.output.repeat(np.diff(two.trees.offset)) == 0],
        one.trees.value,
        "values",
    )
    chunks = [(X[a:b], np.array([y, y]).T[a:b]) for a, b in ((0, 50), (50, N))]
    data = Dataset.from_chunks(
        chunks, categorical_features=[1, 2, 3], min_samples_bin=1
    )
    assert {
        sapwood.train(PLAIN | SETS | how | {"n_jobs": n}, data).fingerprint()
        for n in (1, 3)
    } == {two.fingerprint()}


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"category_encoding": {0: "ordered"}},
            "category_encoding names 'f0', which is not a categorical column",
        ),
        (
            {"category_encoding": {"city": "ordered"}},
            "category_encoding names the column 'city', which is unknown",
        ),
        ({"category_encoding": {1: "woe"}}, "category_encoding={1: 'woe'} is unknown"),
        ({"category_encoding": {1: 3}}, "is not a string"),
        (
            {"statistics": ["mean"]},
            r"statistics=\['mean'\] is for category_encoding='ordered' or 'both'",
        ),
        (
            {"category_encoding": "ordered", "statistics": "mean"},
            "is not a list of statistics",
        ),
        (
            {"category_encoding": "ordered", "statistics": []},
            "is not a list of statistics",
        ),
        ({"category_encoding": "ordered", "statistics": ["woe"]}, "'woe' is unknown"),
        ({"category_encoding": "ordered", "statistics": [7]}, "is not a string"),
        (
            {"category_encoding": "ordered", "statistics": ["mean", "mean"]},
            "every kind once",
        ),
        (
            {"category_encoding": "ordered", "statistics": [("mean", 0.5)]},
            "a list of priors",
        ),
        (
            {"category_encoding": "ordered", "statistics": [("mean", [2])]},
            "prior 2 is too large",
        ),
        (
            {"category_encoding": "ordered", "statistics": {0: ["mean"]}},
            "statistics names 'f0', which is not a cat",
        ),
        ({"simple_ctr": "Borders"}, "use statistics, for example"),
    ],
)
def test_refusals(params: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        trained(**{"n_permutations": 1} | params)
