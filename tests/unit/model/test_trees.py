from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sapwood import Dataset, train
from sapwood.errors import ModelFormatError
from sapwood.model import Booster, Trees
from sapwood.model.trees import DTYPES, SETS

# and of trees; test_categories.py has lies about sets
OF_NODES = [name for name in DTYPES if name not in SETS[1:]]


def arrays(trees: Trees) -> dict[str, np.ndarray]:
    return {name: getattr(trees, name).copy() for name in DTYPES}


def assert_equal(a: Trees, b: Trees) -> None:
    for name in DTYPES:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), strict=True)


def test_of_lays_trees_end_to_end(regressor: Booster) -> None:
    trees = regressor.trees
    assert (trees.n_trees, trees.n_nodes) == (2, 8)
    assert trees.offset.tolist() == [0, 5, 8]
    assert trees.output.tolist() == [0, 0]
    assert trees.column.tolist() == [0, -1, 1, -1, -1, 1, -1, -1]
    assert trees.left.tolist() == [1, 0, 3, 0, 0, 1, 0, 0]
    assert trees.threshold.tolist() == [30.0, 0, np.inf, 0, 0, 100.0, 0, 0]
    assert trees.missing_left.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert trees.value.tolist() == [0, 1.5, 0, -2.0, 4.0, 0, 0.25, -0.5]
    assert trees.depth().tolist() == [0, 1, 1, 2, 2, 0, 1, 1]


def test_arrays_are_read_only_and_our_own(regressor: Booster) -> None:
    given = arrays(regressor.trees)
    trees = Trees(**given)
    given["value"][1] = 99.0
    assert trees.value[1] == 1.5
    for name in DTYPES:
        with pytest.raises(ValueError, match="read-only"):
            getattr(trees, name)[0] = 1


def test_a_slice_has_the_sets_it_uses_alone() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {
            "c": pd.Categorical(rng.integers(0, 40, 600)),
            "d": pd.Categorical(rng.integers(0, 9, 600)),
        }
    )
    y = rng.normal(size=40)[x["c"].cat.codes] + rng.normal(size=9)[x["d"].cat.codes]
    model = train({"n_estimators": 6, "category_encoding": "ordered"}, Dataset(x, y))
    trees = model.trees
    parts = [trees.slice(k, k + 1) for k in range(trees.n_trees)]
    for one in parts:
        assert (
            len(one.set_offset) - 1
            == len(np.unique(one.set[one.set >= 0]))
            < len(trees.set_offset) - 1
        )
    joined = replace(model, trees=Trees.concat(parts))
    np.testing.assert_array_equal(joined.predict(x), model.predict(x))
    assert_equal(Trees.concat(parts).with_shared_sets(), trees)


def test_slice_and_concat_undo_each_other(regressor: Booster) -> None:
    trees = regressor.trees
    second = trees.slice(1, 2)
    assert (second.offset.tolist(), second.value.tolist()) == (
        [0, 3],
        [0.0, 0.25, -0.5],
    )
    assert np.shares_memory(second.value, trees.value)
    assert_equal(Trees.concat([trees.slice(0, 1), second]), trees)
    assert_equal(Trees.concat([trees, trees.slice(2, 2)]), trees)
    assert_equal(Trees.concat([]), Trees.of([]))


def test_no_trees_are_valid() -> None:
    Trees.of([]).validate(n_columns=1, n_outputs=3)


def put(name: str, index: int, value: float):
    def change(a: dict[str, np.ndarray]) -> None:
        a[name][index] = value

    return change


def cast(name: str, dtype: str):
    return lambda a: a.update({name: a[name].astype(dtype)})


def shape(name: str, *newshape: int):
    return lambda a: a.update({name: a[name].reshape(newshape)})


def shorten(name: str):
    return lambda a: a.update({name: a[name][:-1]})


def lengthen(name: str):
    return lambda a: a.update({name: np.append(a[name], a[name][-1:])})


def together(*changes):
    def change(a: dict[str, np.ndarray]) -> None:
        for one in changes:
            one(a)

    return change


# nodes of tree 0: 0 split, 1 leaf, 2 split, 3 leaf, 4 leaf; of tree 1: 5 split, 6 leaf,
# 7 leaf
LIES = {
    **{f"{name} as float32": (cast(name, "float32"), name) for name in DTYPES},
    **{
        f"{name} of two dimensions": (shape(name, 1, -1), f"'{name}' is a 2-d")
        for name in DTYPES
    },
    **{
        f"{name} too short": (
            shorten(name),
            "has 7 nodes|'column' has 7|one offset more",
        )
        for name in OF_NODES
    },
    **{
        f"{name} too long": (
            lengthen(name),
            "has 9 nodes|'column' has 9|one offset more",
        )
        for name in OF_NODES
    },
    "no offsets": (
        lambda a: a.update(offset=a["offset"][:0], output=a["output"][:0]),
        "one offset more",
    ),
    "offset starts late": (put("offset", 0, 1), "from 0 to"),
    "offset ends early": (put("offset", 2, 7), "from 0 to"),
    "offset ends late": (put("offset", 2, 9), "from 0 to"),
    "offset stands still": (put("offset", 1, 0), "rise strictly"),
    "offset falls": (put("offset", 1, 9), "rise strictly"),
    "offset wraps around": (put("offset", 1, -(2**63)), "rise strictly"),
    "offset is huge": (put("offset", 1, 2**63 - 1), "rise strictly"),
    "output out of range": (put("output", 1, 1), "one tree per output"),
    "output negative": (put("output", 0, -1), "one tree per output"),
    "child is the parent": (put("left", 2, 2), "follow their parent"),
    "child before the parent": (put("left", 2, 1), "follow their parent"),
    "child negative": (put("left", 2, -3), "follow their parent"),
    "right child beyond the tree": (put("left", 2, 4), "within their tree"),
    "child in the next tree": (put("left", 0, 5), "within their tree"),
    "child far away": (put("left", 0, 2**31 - 1), "within their tree"),
    "two parents": (put("left", 0, 3), "one parent"),
    "orphans": (together(put("left", 2, 0), put("column", 2, -1)), "one parent"),
    "split without a column": (put("column", 0, -1), "only they, have column -1"),
    "leaf with a column": (put("column", 1, 0), "only they, have column -1"),
    "column beyond the table": (put("column", 0, 2), "below 2"),
    "column below -1": (put("column", 0, -2), "below 2"),
    "missing_left is 2": (put("missing_left", 0, 2), "0 or 1, at most 3 by a set"),
    "threshold NaN": (put("threshold", 0, np.nan), "NaN or -inf"),
    "threshold NaN in a leaf": (put("threshold", 1, np.nan), "NaN or -inf"),
    "threshold -inf": (put("threshold", 0, -np.inf), "NaN or -inf"),
    "everything goes left": (put("missing_left", 2, 1), "missing values right"),
    **{
        f"{name} is {number}": (put(name, 1, number), f"'{name}' is finite")
        for name in ("value", "gain", "cover", "count")
        for number in (np.nan, np.inf, -np.inf)
    },
    "cover negative": (put("cover", 1, -1.0), "negative"),
    "count negative": (put("count", 0, -1.0), "negative"),
    "split with a value": (put("value", 0, 1.0), "value of a split"),
    "leaf with a gain": (put("gain", 1, 1.0), "'gain' of a leaf"),
    "leaf with a threshold": (put("threshold", 1, 1.0), "'threshold' of a leaf"),
    "leaf with a direction": (put("missing_left", 1, 1), "'missing_left' of a leaf"),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_raises(regressor: Booster, lie: str) -> None:
    change, message = LIES[lie]
    given = arrays(regressor.trees)
    Trees(**given).validate(n_columns=2, n_outputs=1)
    change(given)
    with pytest.raises(ModelFormatError, match=message):
        Trees(**given).validate(n_columns=2, n_outputs=1)


def test_trees_must_fill_whole_rounds(regressor: Booster, classifier: Booster) -> None:
    with pytest.raises(ModelFormatError, match="multiple of the number of outputs"):
        regressor.trees.validate(n_columns=2, n_outputs=3)
    classifier.trees.validate(n_columns=2, n_outputs=3)
    with pytest.raises(
        ModelFormatError, match="one tree per output, in order', first at position 2"
    ):
        classifier.trees.validate(n_columns=2, n_outputs=2)


def test_validation_is_linear() -> None:
    """A degenerate tree of 400,000 nodes, each split hanging on the last one, is
    checked at once.
    """
    n = 200_000
    split = np.arange(2 * n + 1) % 2 == 0
    split[-1] = False
    zero = np.zeros(2 * n + 1)
    left = np.where(split, np.arange(2 * n + 1) + 1, 0).astype(np.int32)
    chain = Trees(
        offset=np.array([0, 2 * n + 1]),
        output=np.zeros(1, np.int32),
        column=np.where(split, 0, -1).astype(np.int32),
        threshold=zero,
        missing_left=zero.astype(np.uint8),
        left=left,
        value=zero,
        gain=zero,
        cover=zero,
        count=zero,
    )
    chain.validate(n_columns=1, n_outputs=1)
