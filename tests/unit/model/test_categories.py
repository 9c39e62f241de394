"""Models with columns of categories: predictions, text, files, proofs, and what they
refuse.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sapwood.data import container
from sapwood.data.categories import Dictionary
from sapwood.device import cpu
from sapwood.errors import DataError, ModelFormatError
from sapwood.model import Booster, Trees, load
from sapwood.model.trees import DTYPES
from unit.model.handmade import CHOICES, grown, leaf

AGE, CITY, SIZE = ([row[place] for row in CHOICES] for place in range(3))
ANSWERS = [row[5] for row in CHOICES]
TABLES = {
    "pandas text": pd.DataFrame(
        {"age": AGE, "city": CITY, "size": pd.array(SIZE, "Int64")}
    ),
    "pandas objects": pd.DataFrame(
        {"age": AGE, "city": CITY, "size": SIZE}, dtype=object
    ),
    "pandas categories": pd.DataFrame(
        {
            "age": AGE,
            "city": pd.Categorical(
                CITY, categories=["x", "Zürich", "Bern", "Paris", "Oslo", "bern", "Rom"]
            ),
            "size": pd.Categorical(
                SIZE, categories=[2**61, 7, 2**60, 5, -1], ordered=True
            ),
        }
    ),
    "polars text": pl.DataFrame({"age": AGE, "city": CITY, "size": SIZE}),
    "polars categories": pl.DataFrame(
        {"age": AGE, "city": CITY, "size": SIZE},
        schema_overrides={"city": pl.Categorical},
    ),
    "arrow": pa.table({"age": AGE, "city": CITY, "size": SIZE}),
    "arrow dictionary": pa.table(
        {"age": AGE, "city": pa.array(CITY).dictionary_encode(), "size": SIZE}
    ),
    "other order": pl.DataFrame({"size": SIZE, "age": AGE, "city": CITY}),
    "rows": [list(row[:3]) for row in CHOICES],
    "array of objects": np.array([row[:3] for row in CHOICES], object),
}


@pytest.mark.parametrize("table", TABLES)
def test_predictions_by_hand(chooser: Booster, table: str) -> None:
    X = TABLES[table]
    np.testing.assert_array_equal(chooser.predict(X), ANSWERS)
    np.testing.assert_array_equal(
        chooser.predict_leaves(X), [row[3:5] for row in CHOICES]
    )
    *_, last = chooser.staged_predict(X)
    np.testing.assert_array_equal(last, ANSWERS)


def test_one_row_is_predicted_as_in_a_table(chooser: Booster) -> None:
    for place, row in enumerate(CHOICES):
        assert chooser.predict([list(row[:3])]) == ANSWERS[place]
        assert (
            chooser.predict(TABLES["pandas categories"].iloc[place : place + 1])
            == ANSWERS[place]
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"city": [1]},
            "column 'city' of X has numbers, such as 1, but its categories are text, such as 'Rom'",
        ),
        (
            {"size": ["7"]},
            "column 'size' of X has text, such as '7', but its categories are numbers, such as 7",
        ),
        (
            {"age": ["old"]},
            "column 'age' of X has dtype .*text can only be of categories",
        ),
        (
            {"age": pd.Categorical(["old"])},
            "column 'age' of X has dtype category.*can only be of categories",
        ),
        (
            {"city": pd.to_datetime(["2020-01-01"])},
            "column 'city' of X has dtype datetime",
        ),
        (
            {"city": [1], "size": ["7"], "age": pd.to_datetime(["2020-01-01"])},
            "(?s)'age' had numbers in training, and has times now.*column 'city' of X has numbers.*column 'size' of X",
        ),
        (
            {"city": [["Rom"]]},
            "column 'city' of X has something that is not a category",
        ),
    ],
)
def test_what_cannot_be_matched_raises(
    chooser: Booster, change: dict[str, Any], message: str
) -> None:
    good = {"age": [1.0], "city": ["Rom"], "size": [7]}
    assert chooser.predict(pd.DataFrame(good)) == 11.5
    with pytest.raises(DataError, match=message):
        chooser.predict(pd.DataFrame(good | change))


def test_a_column_of_only_missing_values_has_any_type(chooser: Booster) -> None:
    for nothing in (
        pd.Series([None], dtype=object),
        pd.Series([np.nan]),
        pd.Series([None], dtype="string"),
    ):
        assert (
            chooser.predict(
                pd.DataFrame({"age": [31.0], "city": nothing, "size": nothing})
            )
            == 19.0
        )
    assert (
        chooser.predict(
            pa.table({"age": [31.0], "city": pa.nulls(1), "size": pa.nulls(1)})
        )
        == 19.0
    )


# Random trees against a walk from the root

N_COLUMNS = 5


def random_tree(
    rng: np.random.Generator, n_splits: int, n_codes: int
) -> dict[str, np.ndarray]:
    """Columns 0 to 2 by sets of codes, the others by thresholds."""
    nodes = [leaf(rng.normal())]
    open_ends = [0]
    for _ in range(n_splits):
        at = open_ends.pop(rng.integers(len(open_ends)))
        column = int(rng.integers(N_COLUMNS))
        nodes[at] = {
            "column": column,
            "missing_left": int(rng.integers(4 if column < 3 else 2)),
            "left": len(nodes),
        }
        if column < 3:
            # others may be alone on the left
            size = rng.integers(not nodes[at]["missing_left"], min(n_codes, 40))
            nodes[at]["codes"] = sorted(rng.choice(n_codes, size=size, replace=False))
        else:
            nodes[at]["threshold"] = float(rng.integers(-3, 3))
        open_ends += [len(nodes), len(nodes) + 1]
        nodes += [leaf(rng.normal()), leaf(rng.normal())]
    return grown(*nodes)


def symmetric_tree(
    rng: np.random.Generator, depth: int, n_codes: int
) -> dict[str, np.ndarray]:
    """The same split, and the same set, in all nodes of a level."""
    levels = [
        sorted(rng.choice(n_codes, size=rng.integers(1, n_codes), replace=False))
        for _ in range(depth)
    ]
    nodes = []
    for level in range(depth):
        column = level % N_COLUMNS
        same = {
            "column": column,
            "missing_left": level % (4 if column < 3 else 2),
            "set": level if column < 3 else -1,
        }
        nodes += [
            {**same, "left": 2 * node + 1}
            for node in range(2**level - 1, 2 ** (level + 1) - 1)
        ]
    tree = grown(*nodes, *(leaf(rng.normal()) for _ in range(2**depth)))
    tree["set_offset"] = np.cumsum([0, *map(len, levels)], dtype=np.int64)
    tree["set_code"] = np.concatenate(levels, dtype=np.int32, casting="unsafe")
    return tree


def walk(trees: Trees, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores and leaves, from each node to its children; codes of -1 are missing, of -2
    new.
    """
    scores = np.zeros(len(X))
    leaves = np.zeros((len(X), trees.n_trees), np.int32)
    for t, first in enumerate(trees.offset[:-1]):
        at = np.full(len(X), first)
        for node in range(first, trees.offset[t + 1]):
            here = at == node
            if not trees.left[node]:
                leaves[here, t] = node - first
                scores[here] += trees.value[node]
                continue
            x = X[:, trees.column[node]]
            side = trees.missing_left[node] in (1, 3)
            if trees.set[node] >= 0:
                new = trees.missing_left[node] in (1, 2)
                left = np.where(
                    x == -1, side, np.where(x == -2, new, np.isin(x, trees.codes(node)))
                )
            else:
                left = np.where(np.isnan(x), side, x <= trees.threshold[node])
            at = np.where(here, first + trees.left[node] + ~left, at)
    return scores, leaves


@pytest.mark.pairwise
@pytest.mark.parametrize("n_codes", [2, 60, 253, 254, 255, 5000, 65534])
@pytest.mark.parametrize("shape", ["random", "symmetric"])
def test_random_trees_predict_as_a_walk_from_the_root(
    isa: str, n_codes: int, shape: str
) -> None:
    rng = np.random.default_rng(n_codes)
    if shape == "symmetric":
        trees = Trees.of([(symmetric_tree(rng, 1 + t, n_codes), 0) for t in range(6)])
    else:
        trees = Trees.of([(random_tree(rng, 3 * t, n_codes), 0) for t in range(8)])
    known = {c: Dictionary(tuple(range(n_codes))) for c in range(3)}
    model = Booster(
        trees,
        base=np.zeros(1),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=list("abcde"),
        named=False,
        params={},
        categories=known,
    )
    X = np.where(
        np.arange(N_COLUMNS) < 3,
        rng.integers(0, n_codes, (600, 5)),
        rng.integers(-4, 4, (600, 5)) * 1.0,
    )
    X[:, :3][rng.random((600, 3)) < 0.2] = -1
    X[:, :3][rng.random((600, 3)) < 0.2] = -2
    scores, leaves = walk(trees, X)
    given = X.copy()
    given[:, :3][X[:, :3] == -1] = np.nan
    given[:, :3][X[:, :3] == -2] = n_codes + 7  # no category of theirs
    for n_rows in (1, 47, 48, 600):
        for n_jobs in (1, 3):
            np.testing.assert_array_equal(
                model.predict(given[:n_rows], n_jobs=n_jobs), scores[:n_rows]
            )
        np.testing.assert_array_equal(
            model.predict_leaves(given[:n_rows]), leaves[:n_rows]
        )


# Text

TEXT = """\
tree 0 (round 0, output 0)
  0: city in {'Rom', 'Oslo'} or missing  [gain 5.0, cover 9.0, count 9.0]
    1: value 1.0  [cover 4.0, count 4.0]
    2: size in {-1}  [gain 1.0, cover 5.0, count 5.0]
      3: value 2.0  [cover 2.0, count 2.0]
      4: value 4.0  [cover 3.0, count 3.0]
"""


def test_text_shows_categories(chooser: Booster) -> None:
    assert chooser.to_text(0) == TEXT
    many = grown(
        {"column": 1, "left": 1, "codes": list(range(20))}, leaf(1.0), leaf(2.0)
    )
    wide = replace(
        chooser,
        trees=Trees.of([(many, 0)]),
        categories={1: Dictionary(tuple(f"v{i}" for i in range(30)))},
    )
    alone = grown(
        {"column": 1, "left": 1, "codes": [], "missing_left": 1}, leaf(1.0), leaf(2.0)
    )
    assert (
        "0: city is missing  ["
        in replace(chooser, trees=Trees.of([(alone, 0)])).to_text()
    )
    for sides, words in ((0, "in {}"), (2, "is new"), (3, "is missing, not new")):
        told = replace(
            chooser,
            trees=Trees.of(
                [(alone | {"missing_left": np.array([sides, 0, 0], np.uint8)}, 0)]
            ),
        )
        assert f"0: city {words}  [" in told.to_text()
        if sides > 1:
            assert told.to_frame("polars")["new"].to_list() == [
                "left" if sides == 2 else "right",
                None,
                None,
            ]
    assert (
        "city in {'v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', ... 20 in all}"
        in wide.to_text()
    )


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frame_shows_categories(chooser: Booster, backend: str) -> None:
    frame = chooser.to_frame(backend)
    lists = [
        None if one is None else list(one) for one in frame["categories"].to_list()
    ]
    nothing = [None] * 2
    wanted = [
        ["Rom", "Oslo"],
        None,
        ["-1"],
        *nothing,
        None,
        None,
        ["Bern", "Oslo", "Zürich"],
        *nothing,
    ]
    assert lists == wanted
    assert np.isnan(frame["threshold"].to_numpy()[[0, 2, 7]]).all()
    assert frame["threshold"][5] == 30.0


# Trees and files


def arrays(trees: Trees) -> dict[str, np.ndarray]:
    return {name: getattr(trees, name).copy() for name in DTYPES}


def test_sets_count_over_all_trees(chooser: Booster) -> None:
    trees = chooser.trees
    assert trees.set.tolist() == [0, -1, 1, -1, -1, -1, -1, 2, -1, -1]
    assert trees.set_offset.tolist() == [0, 2, 3, 6]
    assert trees.set_code.tolist() == [0, 2, 1, 1, 2, 3]
    assert trees.codes(7).tolist() == [1, 2, 3]
    twice = Trees.concat([trees, trees])
    assert twice.set.tolist()[10:] == [3, -1, 4, -1, -1, -1, -1, 5, -1, -1]
    assert twice.codes(17).tolist() == [1, 2, 3]
    assert trees.slice(1, 2).codes(2).tolist() == [1, 2, 3]
    model = replace(chooser, trees=Trees.concat([trees.slice(1, 2), trees.slice(0, 1)]))
    np.testing.assert_array_equal(model.predict(TABLES["arrow"]), ANSWERS)


def put(name: str, index: int, value: float) -> Any:
    return lambda a: a[name].__setitem__(index, value)


def swap(name: str, value: list[int]) -> Any:
    return lambda a: a.update({name: np.array(value, DTYPES[name])})


def both(offset: list[int], code: list[int]) -> Any:
    return lambda a: (swap("set_offset", offset)(a), swap("set_code", code)(a))


SET_LIES: dict[str, tuple[Any, str]] = {
    "set beyond the sets": (put("set", 0, 3), "sets are below 3"),
    "set below -1": (put("set", 0, -2), "sets are below 3"),
    "a leaf with a set": (put("set", 1, 0), "no others, are split by sets"),
    "a number split by a set": (put("set", 5, 0), "no others, are split by sets"),
    "a category split by a threshold": (
        put("set", 0, -1),
        "no others, are split by sets",
    ),
    "a threshold beside a set": (
        put("threshold", 0, 1.0),
        "threshold of a split by a set",
    ),
    "no offsets": (swap("set_offset", []), "offsets of sets go from 0"),
    "offsets start late": (put("set_offset", 0, 1), "offsets of sets go from 0"),
    "offsets end early": (put("set_offset", 3, 5), "offsets of sets go from 0"),
    "offsets end late": (put("set_offset", 3, 7), "offsets of sets go from 0"),
    "offsets fall": (put("set_offset", 2, 1), "offsets of sets do not fall"),
    "offsets wrap around": (
        put("set_offset", 1, -(2**63)),
        "offsets of sets do not fall",
    ),
    "offsets are huge": (
        put("set_offset", 1, 2**63 - 1),
        "offsets of sets do not fall",
    ),
    "too few codes": (swap("set_code", [0, 2, 1, 1, 2]), "offsets of sets go from 0"),
    "codes fall": (swap("set_code", [2, 0, 1, 1, 2, 3]), "codes of a set rise"),
    "a code twice": (swap("set_code", [2, 2, 1, 1, 2, 3]), "codes of a set rise"),
    "a negative code": (put("set_code", 2, -1), "no code of a set is negative"),
    "a code beyond the column": (put("set_code", 5, 4), "bins of its column"),
    "a code of another column": (put("set_code", 2, 3), "bins of its column"),
}


@pytest.mark.parametrize("lie", SET_LIES)
def test_every_lie_about_sets_raises(chooser: Booster, lie: str) -> None:
    change, message = SET_LIES[lie]
    given = arrays(chooser.trees)
    bins = {1: 4, 2: 3}
    Trees(**given).validate(3, 1, bins)
    change(given)
    with pytest.raises(ModelFormatError, match=message):
        Trees(**given).validate(3, 1, bins)


def test_files_hold_categories(chooser: Booster) -> None:
    raw = chooser.to_bytes()
    back = load(raw)
    assert back.to_bytes() == raw
    assert dict(back.categories) == dict(chooser.categories)
    np.testing.assert_array_equal(back.predict(TABLES["arrow"]), ANSWERS)
    assert b'"version":2' in raw.replace(b"\\", b"")
    other = replace(
        chooser,
        categories={
            **chooser.categories,
            1: Dictionary(("Rom", "Bern", "Oslo", "Genf")),
        },
    )
    assert other.fingerprint() != chooser.fingerprint()


def test_the_format_with_categories_is_the_one_that_was_released(
    chooser: Booster,
) -> None:
    assert (
        chooser.fingerprint()
        == "12612ebb7c533fab4148eb0bd7bc64bef661ebad2665384664485012d000f1d2"
    )


def ends(*places: int) -> Any:
    return lambda a: a.update({"category.1.end": np.array(places)})


FILE_LIES: dict[str, Any] = {
    "no dictionary": lambda a: a.pop("category.1"),
    "no dictionaries": lambda a: [
        a.pop(name) for name in list(a) if name.startswith("category")
    ],
    "no sets": lambda a: [a.pop(name) for name in ("set", "set_offset", "set_code")],
    "no set": lambda a: a.pop("set"),
    "a dictionary of a column of numbers": lambda a: a.update(
        {"category.0": np.arange(3)}
    ),
    "a dictionary of no column": lambda a: a.update({"category.3": np.arange(3)}),
    "ends of no text": lambda a: a.update({"category.0.end": np.arange(3)}),
    "ends of integers": lambda a: a.update({"category.2.end": np.arange(3)}),
    "text without ends": lambda a: a.pop("category.1.end"),
    "integers of another type": lambda a: a.update({"category.2": np.arange(3.0)}),
    "integers of two dimensions": lambda a: a.update(
        {"category.2": a["category.2"][None]}
    ),
    "an integer twice": lambda a: a["category.2"].__setitem__(0, -1),
    "a text twice": lambda a: (
        a.update({"category.1": np.frombuffer(b"aabc", np.uint8)})
        or ends(1, 2, 3, 4)(a)
    ),
    "fewer values than codes": lambda a: a.update({"category.2": a["category.2"][:1]}),
    "text that is no UTF-8": lambda a: a["category.1"].__setitem__(0, 0xFF),
    "ends that fall": ends(3, 2, 11, 18),
    "ends that are negative": ends(-3, 7, 11, 18),
    "ends that end early": ends(3, 7, 11, 17),
    "ends that end late": ends(3, 7, 11, 19),
    "ends of another type": lambda a: a.update(
        {"category.1.end": a["category.1.end"].astype(np.int32)}
    ),
    "ends within a letter": ends(3, 7, 13, 18),
}


@pytest.mark.parametrize("lie", FILE_LIES)
def test_every_lie_about_dictionaries_raises(chooser: Booster, lie: str) -> None:
    parts, fields = container.unpack(chooser.to_bytes(), "model", 2, ModelFormatError)
    parts = {name: array.copy() for name, array in parts.items()}
    load(container.pack("model", 2, parts, fields))
    FILE_LIES[lie](parts)
    with pytest.raises(ModelFormatError):
        load(container.pack("model", 2, parts, fields))


# Proofs


def test_constraints_beside_categories(chooser: Booster) -> None:
    """Up to 30 the second tree adds 0.5, above it -1, or 8 in Rom."""
    rising = replace(chooser, params={"monotone_constraints": {"age": 1}})
    verdict = rising.check_constraints().monotone["age"]
    assert verdict.holds is False
    assert verdict.rows is not None
    assert verdict.rows[0, 1] in ("Bern", "Oslo", "Zürich")
    assert np.diff(chooser.predict(verdict.rows)) < 0
    trees = arrays(chooser.trees)
    trees["value"][8] = 0.75  # instead of -1: now age raises the score in every city
    assert replace(rising, trees=Trees(**trees)).check_constraints()
    assert rising.check_constraints().interaction is None


def test_categories_have_no_order(chooser: Booster) -> None:
    assert (
        replace(chooser, params={"monotone_constraints": {"city": 1}})
        .check_constraints()
        .monotone["city"]
        .holds
        is None
    )


CORE_LIES: dict[str, tuple[Any, str]] = {
    "codes fall": SET_LIES["codes fall"],
    "a negative code": SET_LIES["a negative code"],
    "a code beyond all columns": (
        put("set_code", 5, 65_534),
        "codes of a set must rise",
    ),
    "offsets fall": SET_LIES["offsets fall"],
    "offsets end late": SET_LIES["offsets end late"],
    "no such set": (put("set", 0, 3), "a set that is not there"),
    "both ways": (put("set", 7, -1), "by sets and by thresholds"),
}


@pytest.mark.parametrize("lie", CORE_LIES)
def test_the_core_checks_sets_itself(chooser: Booster, lie: str) -> None:
    """Whatever let them through: no index goes astray."""
    names = (
        "offset",
        "output",
        "column",
        "threshold",
        "missing_left",
        "left",
        "value",
        "set",
        "set_offset",
        "set_code",
    )
    given = arrays(chooser.trees)
    cpu.Forest(3, *(given[name] for name in names), np.zeros(1), "identity")
    CORE_LIES[lie][0](given)
    with pytest.raises(ValueError, match=r"set|codes"):
        cpu.Forest(3, *(given[name] for name in names), np.zeros(1), "identity")


def test_the_core_takes_any_number_for_a_code(chooser: Booster) -> None:
    """Codes out of nowhere go right, those below 0 are missing."""
    odd = np.array([-1.0, np.nan, -np.inf, 3.0, 4.0, 1e18, np.inf, 65_534.0, 0.0, 2.0])
    rows = np.column_stack([np.full(10, 31.0), odd, np.zeros(10)])
    left = np.isin(np.arange(10), [0, 1, 2, 8, 9])  # in the first tree
    for n in (10, 1000):
        table = np.resize(rows, (n, 3)) if n > 10 else rows
        assert ((chooser._forest.leaves(table, 0, 1, 1)[:10, 0] == 1) == left).all()
        first = chooser._forest.predict(table, 0, 1, True)
        np.testing.assert_array_equal(first[:10], np.where(left, 11.0, 14.0))
