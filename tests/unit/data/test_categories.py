"""Columns of categories: every container gives the same codes, dictionaries are by
count, and what is refused.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sapwood.data import categories, ingest
from sapwood.data.categories import Coded, Dictionary, learn
from sapwood.data.dataset import Dataset
from sapwood.device import host
from sapwood.errors import DataError

VALUES = ["b", "a", None, "a", "c", "a", "b"]
CODES = [1, 0, -1, 0, 2, 0, 1]
OTHERS = ["z", "c", "b", "a", "y"]
NAN = float("nan")


def frame(values, **kwargs):
    return pd.DataFrame({"x": pd.Series(values, **kwargs)})


def pieces(*parts):
    return pa.table(
        {"x": pa.chunked_array([pa.array(part).dictionary_encode() for part in parts])}
    )


TEXTS = {
    "pandas": lambda: frame(VALUES),
    "pandas objects": lambda: frame(
        [NAN if v is None else v for v in VALUES], dtype=object
    ),
    "pandas objects with NA": lambda: frame(
        [pd.NA if v is None else v for v in VALUES], dtype=object
    ),
    "pandas string": lambda: frame(VALUES, dtype="string"),
    "pandas Arrow string": lambda: frame(VALUES, dtype=pd.ArrowDtype(pa.string())),
    "pandas Arrow dictionary": lambda: frame(
        pa.array(VALUES).dictionary_encode(),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ),
    "pandas categories": lambda: frame(pd.Categorical(VALUES)),
    "pandas categories in another order": lambda: frame(
        pd.Categorical(VALUES, categories=OTHERS)
    ),
    "pandas ordered categories": lambda: frame(
        pd.Categorical(VALUES, categories=OTHERS, ordered=True)
    ),
    "pandas many unused categories": lambda: frame(
        pd.Categorical(VALUES, categories=[*map(str, range(500)), *OTHERS])
    ),
    "pandas unused odd categories": lambda: frame(
        pd.Categorical(VALUES, categories=["a", "b", 0.5, 3, "c"])
    ),
    "pandas unused numbers": lambda: frame(
        pd.Categorical(VALUES, categories=["a", 3, "b", "c"])
    ),
    "polars": lambda: pl.DataFrame({"x": VALUES}),
    "polars categories": lambda: pl.DataFrame(
        {"x": VALUES}, schema={"x": pl.Categorical}
    ),
    "polars categories after others": lambda: pl.DataFrame(
        {"x": [*OTHERS, *VALUES]}, schema={"x": pl.Categorical}
    )[5:],
    "polars enum": lambda: pl.DataFrame({"x": VALUES}, schema={"x": pl.Enum(OTHERS)}),
    "Arrow": lambda: pa.table({"x": VALUES}),
    "Arrow large": lambda: pa.table({"x": pa.array(VALUES, pa.large_string())}),
    "Arrow dictionary": lambda: pieces(VALUES),
    "Arrow dictionary in pieces": lambda: pieces(VALUES[:3], VALUES[3:]),
    "Arrow dictionary of bytes": lambda: pa.table(
        {
            "x": pa.DictionaryArray.from_arrays(
                pa.array([2, 3, None, 3, 1, 3, 2], pa.uint8()), OTHERS
            )
        }
    ),
    "Arrow dictionary that holds null": lambda: pa.table(
        {
            "x": pa.DictionaryArray.from_arrays(
                pa.array([0, 1, 3, 1, 2, 1, 0]), pa.array(["b", "a", "c", None])
            )
        }
    ),
    "array of objects": lambda: np.array(VALUES, object)[:, None],
    "array of NumPy's text": lambda: np.array(
        [NAN if v is None else np.str_(v) for v in VALUES], object
    )[:, None],
    "variable text": lambda: np.array(
        [[NAN if v is None else v] for v in VALUES],
        np.dtypes.StringDType(na_object=NAN),
    ),
    "masked text": lambda: np.ma.MaskedArray(
        [[v or "a"] for v in VALUES], [[v is None] for v in VALUES]
    ),
    "rows": lambda: [[v] for v in VALUES],
}


@pytest.mark.parametrize("container", TEXTS)
def test_text_in_every_container(container):
    X = TEXTS[container]()
    read = ingest.read(X, categorical="auto")
    (column,) = read.table
    dictionary = learn([column], None, "x")
    assert dictionary.values == ("a", "b", "c")
    got = ingest.encode(read, {0: dictionary}, "X").table[0]
    assert got.dtype == np.int32
    assert got.tolist() == CODES
    with pytest.raises(DataError, match=r"(column .* of )?X has (dtype|type)"):
        ingest.read(X, categorical=None)


NUMBERS = [7, -1, None, -1, 2**60, -1, 7]
SMALL = [7, -1, None, -1, 3, -1, 7]
INTEGERS = {
    "pandas nullable": (lambda: frame(NUMBERS, dtype="Int64"), 2**60),
    "pandas Arrow": (lambda: frame(NUMBERS, dtype=pd.ArrowDtype(pa.int64())), 2**60),
    "pandas objects": (lambda: frame(NUMBERS, dtype=object), 2**60),
    "pandas floats": (lambda: frame([NAN if v is None else v for v in SMALL]), 3),
    "pandas categories": (lambda: frame(pd.Categorical(NUMBERS)), 2**60),
    "pandas categories of floats": (
        lambda: frame(pd.Categorical([NAN if v is None else float(v) for v in SMALL])),
        3,
    ),
    "polars": (lambda: pl.DataFrame({"x": NUMBERS}), 2**60),
    "Arrow": (lambda: pa.table({"x": NUMBERS}), 2**60),
    "Arrow dictionary": (lambda: pieces(NUMBERS), 2**60),
    "Arrow floats": (lambda: pa.table({"x": pa.array(SMALL, pa.float32())}), 3),
    "masked": (
        lambda: np.ma.MaskedArray(
            [[v or 0] for v in NUMBERS], [[v is None] for v in NUMBERS]
        ),
        2**60,
    ),
    "array of floats": (
        lambda: np.array([[NAN if v is None else v] for v in SMALL]),
        3,
    ),
    "array of half floats": (
        lambda: np.array([[NAN if v is None else v] for v in SMALL], np.float16),
        3,
    ),
    "array of objects": (lambda: np.array(NUMBERS, object)[:, None], 2**60),
    "rows": (lambda: [[v] for v in NUMBERS], 2**60),
}


@pytest.mark.parametrize("container", [name for name in TEXTS if name != "rows"])
def test_no_rows(container):
    """A chunk may be empty."""
    column = ingest.read(TEXTS[container]()[:0], min_rows=0, categorical=[0]).table[0]
    assert Dictionary(("a",)).encode(column, "x").tolist() == []


@pytest.mark.parametrize("container", INTEGERS)
@pytest.mark.parametrize("declared", [[0], [True], {"x": 0}])
def test_integers_in_every_container(container, declared):
    make, third = INTEGERS[container]
    read = ingest.read(make(), categorical=declared)
    dictionary = learn([read.table[0]], None, "x")
    assert dictionary.values == (-1, 7, third)
    assert all(type(value) is int for value in dictionary.values)
    assert ingest.encode(read, {0: dictionary}, "X").table[0].tolist() == CODES


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", ">i4", "i8", "u1", "u8", "f4", "f8", "?"]
)
def test_number_types_are_matched_by_value(dtype):
    column = ingest.read(np.array([[1], [0], [1]], dtype), categorical=[0]).table[0]
    dictionary = learn([column], None, "x")
    assert dictionary.values == (1, 0)
    assert dictionary.encode(column, "x").tolist() == [0, 1, 0]


def test_booleans_are_0_and_1():
    dictionary = Dictionary((1, 0))
    for X in (
        frame([True, False, None], dtype="boolean"),
        frame([True, False, None], dtype=object),
    ):
        assert dictionary.encode(
            ingest.read(X, categorical=["x"]).table[0], "x"
        ).tolist() == [0, 1, -1]
    table = pa.table({"x": [True, False, None]})
    assert dictionary.encode(
        ingest.read(table, categorical=["x"]).table[0], "x"
    ).tolist() == [0, 1, -1]


def test_only_what_is_declared_is_of_categories():
    X = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": ["x", "y"]})
    for declared in (
        ["a", "c"],
        [0, 2],
        [True, False, True],
        {"a": 0, "c": 2},
        np.array([0, 2]),
    ):
        a, b, c = ingest.read(X, categorical=declared).table
        assert isinstance(a, Coded)
        assert b.tolist() == [3, 4]
        assert isinstance(c, Coded)
    a, b, c = ingest.read(X, categorical="auto").table
    assert [isinstance(one, Coded) for one in (a, b, c)] == [False, False, True]
    with pytest.raises(
        DataError, match=r"column 'c' of X has dtype.*as categorical_features must say"
    ):
        ingest.read(X, categorical=["a"])


def test_a_mapping_goes_by_names_where_there_are_names():
    X = pd.DataFrame({"b": [1.5, 2.5], "a": [1, 2]})
    b, a = ingest.read(X, categorical={"a": 0}).table
    assert isinstance(a, Coded)
    assert b.tolist() == [1.5, 2.5]
    a, _ = ingest.read(X.to_numpy()[:, ::-1], categorical={"a": 0}).table
    assert isinstance(a, Coded)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            ["bb"],
            "categorical_features names a column 'bb', which X has not; did you mean 'b'",
        ),
        ([2], r"categorical_features has column 2; X has columns 0\.\.1"),
        ([-1], r"categorical_features has column -1; X has columns 0\.\.1"),
        ([True], "categorical_features marks 1 columns; X has 2"),
    ],
)
def test_wrong_declarations_raise(declared, message):
    with pytest.raises(DataError, match=message):
        ingest.read(pd.DataFrame({"a": [1], "b": [2]}), categorical=declared)


def test_names_that_the_table_has_not_raise():
    with pytest.raises(
        DataError,
        match="names a column 'a', which X has not; the table has no names, so give positions",
    ):
        ingest.read(np.ones((1, 1)), categorical=["a"])
    assert isinstance(
        ingest.read(np.ones((1, 1)), categorical=["a"], names=["a"]).table[0], Coded
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            np.array([[{}]], object),
            "column 0 of X has something that is not a category",
        ),
        (np.array([[b"a"]]), r"column 0 of X has dtype \|S1.*decode"),
        (
            np.array([[b"a"]], object),
            "column 0 of X has b'a' of type bytes: categories are",
        ),
        (
            np.array([["2020-01-01"]], "M8[D]"),
            "column 0 of X has dtype datetime64.*dates and times",
        ),
        (frame(pd.to_datetime(["2020-01-01"])), "column 'x' of X has dtype datetime64"),
        (frame([b"a"], dtype=object), "column 'x' of X has b'a' of type bytes"),
        (pa.table({"x": [b"a"]}), "column 'x' of X has dtype binary.*decode"),
        (pl.DataFrame({"x": [[1]]}), r"column 'x' of X has dtype List"),
    ],
)
def test_what_is_no_category_raises(table, message):
    with pytest.raises(DataError, match=message) as raised:
        ingest.read(table, categorical=[0])
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (np.array([[0.5], [2.0], [0.5]]), ("0.5", "2")),
        (np.array([[1.0], [np.inf], [1.0]]), ("1", "inf")),
        (np.array([[2**63], [1], [2**63]], np.uint64), ("9223372036854775808", "1")),
        (np.array([[2**63], [1], [1]], object), ("1", "9223372036854775808")),
        (np.array([[0.5], [None], [0.5]], object), ("0.5",)),
        (frame(pd.Categorical([0.5, 3.0, 3.0])), ("3", "0.5")),
        (frame(pd.cut([1, 2, 2], 2)), ("(1.5, 2.0]", "(0.999, 1.5]")),
        (
            frame(
                pd.Categorical(
                    pd.to_datetime(["2020-01-01", "2021-01-01", "2021-01-01"])
                )
            ),
            ("2021-01-01 00:00:00", "2020-01-01 00:00:00"),
        ),
    ],
)
def test_categories_of_any_type_are_known_by_their_text(table, values):
    data = Dataset(table, categorical_features=[0])
    assert data.categories[0].values == values
    assert Dataset(table, reference=data).unseen == {}


def test_text_beside_numbers_is_text_with_a_warning():
    for table in (
        np.array([["a"], [1], [2.0]], object),
        frame(pd.Categorical(["a", 1, 2])),
    ):
        with pytest.warns(
            UserWarning,
            match="has both text and numbers: they are read as categories, 1 as '1'",
        ):
            data = Dataset(table)
        assert sorted(data.categories[0].values) == ["1", "2", "a"]
        # numbers alone, by their text
        later = Dataset(np.array([[1], [2], [7]]), reference=data)
        assert later.unseen[0].tolist() == [2]


def test_a_fraction_among_integers_is_unseen():
    data = Dataset(np.array([[1], [2], [2]]), categorical_features=[0])
    assert Dataset(np.array([[1.0], [2.5]]), reference=data).unseen[0].tolist() == [1]


def test_objects_that_are_no_text_stay_numbers():
    """Only text makes a column of objects one of categories; the numbers in it are read
    as ever.
    """
    X = np.array([[1, "a", None], [2.5, "b", True]], object)
    a, b, c = ingest.read(X, categorical="auto").table
    assert a.tolist() == [1.0, 2.5]
    assert isinstance(b, Coded)
    np.testing.assert_array_equal(c, [NAN, 1.0])
    mixed = frame([1, 2.5, None], dtype=object)
    np.testing.assert_array_equal(
        ingest.read(mixed, categorical="auto").table[0], [1.0, 2.5, NAN]
    )


# Dictionaries


def coded(values):
    return categories.of_objects(values, "x")


def test_frequent_values_come_first_and_equal_ones_in_order():
    assert learn([coded(["c", "b", "a", "b", "d", "a", None])], None, "x").values == (
        "a",
        "b",
        "c",
        "d",
    )
    assert learn([coded([10, 9, -3, 9])], None, "x").values == (9, -3, 10)
    assert learn([coded([None, NAN])], None, "x").values == ()
    assert learn([coded(["é", "z", "e", "Z"])], None, "x").values == (
        "Z",
        "e",
        "z",
        "é",
    )


def test_chunks_count_together():
    values = np.random.default_rng(0).integers(0, 50, 2000)
    whole = learn([coded(values.tolist())], None, "x")
    for cuts in ([1000], [1, 2, 3], [0, 700, 700, 1999]):
        parts = [coded(part.tolist()) for part in np.split(values, cuts)]
        assert learn(parts, None, "x") == whole
    with pytest.raises(
        DataError, match="x is text in one chunk and numbers in another"
    ):
        learn([coded(["a"]), coded([1])], None, "x")


def test_weights_are_repetition():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 20, 300)
    weights = rng.integers(0, 4, 300)
    weighted = learn(
        [coded(values.tolist())],
        host.integer_weights(weights.astype(np.float64))[0],
        "x",
    )
    assert weighted == learn([coded(np.repeat(values, weights).tolist())], None, "x")
    parts = [coded(values[:100].tolist()), coded(values[100:].tolist())]
    assert (
        learn(parts, host.integer_weights(weights.astype(np.float64))[0], "x")
        == weighted
    )
    # real weights: sums of fixed point, far beyond what float64 could add exactly
    real = host.integer_weights(np.array([1.0, 1 / 3, 2 / 3 + 2**-29, 0.0]))[0]
    assert learn([coded(["a", "b", "b", "c"])], real, "x").values == ("b", "a")
    large = np.full(2**20, 2**30 - 1, np.int32)
    sums = categories._sums(Coded(np.zeros(2**20, np.int8), ["a"]), large)
    assert sums.tolist() == [2**20 * (2**30 - 1)]


def test_rows_of_no_weight_are_nowhere():
    column = coded(["a", "b", "b"])
    dictionary = learn([column], np.array([1, 0, 0], np.int32), "x")
    assert dictionary.values == ("a",)
    assert dictionary.encode(column, "x").tolist() == [0, -2, -2]


def test_rare_values_share_the_last_bin():
    n = categories.MAX_BINS
    column = categories.of_numbers(
        np.concatenate([np.arange(n + 1000), np.arange(10)]), None, "x"
    )
    dictionary = learn([column], None, "x")
    assert dictionary.values[:12] == (*range(10), 10, 11)
    assert (len(dictionary.values), dictionary.n_bins) == (n + 1000, n)
    codes = dictionary.encode(column, "x")
    assert codes[:n].tolist() == list(range(n))
    assert set(codes[n - 1 : n + 1000].tolist()) == {n - 1}
    unseen = categories.of_numbers(np.array([-5, n + 1000]), None, "x")
    assert dictionary.encode(unseen, "x").tolist() == [-2, -2]
    assert (dictionary.label(5), dictionary.label(n - 1)) == ("5", "(rare ones)")


def test_a_full_dictionary_has_no_rare_values():
    full = Dictionary(tuple(range(categories.MAX_BINS)))
    assert (full.n_bins, full.label(categories.MAX_BINS - 1)) == (
        categories.MAX_BINS,
        str(categories.MAX_BINS - 1),
    )
    assert Dictionary(()).n_bins == 1


def test_text_and_numbers_are_not_matched():
    with pytest.raises(
        DataError,
        match=r"x has numbers, such as 1, but its categories are text, such as 'a'",
    ):
        Dictionary(("a",)).encode(coded([1]), "x")
    with pytest.raises(
        DataError, match=r"x has text, such as '1'.*convert it with astype\(int\)"
    ):
        Dictionary((1,)).encode(coded(["1"]), "x")
    assert Dictionary(("a",)).encode(coded([None]), "x").tolist() == [-1]
    assert Dictionary(()).encode(coded(["a"]), "x").tolist() == [-2]
    # nobody has the number
    assert Dictionary(("a",)).encode(Coded(np.array([-1, -1]), [1]), "x").tolist() == [
        -1,
        -1,
    ]


KEPT = {
    0: Dictionary(("", "ünï \x00\U0001f333\udc80 ", "b")),
    2: Dictionary((2**63 - 1, -(2**63), 0)),
    3: Dictionary(()),
    5: Dictionary(("",)),
}


def test_dictionaries_are_saved_whole():
    arrays = categories.pack(KEPT) | {"other": np.zeros(1)}
    assert categories.unpack(arrays, 6, DataError) == KEPT
    assert list(arrays) == ["other"]
