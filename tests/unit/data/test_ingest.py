"""Every container gives the same columns; everything else raises an error that says
what and where.
"""

import datetime
import subprocess
import sys
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from sapwood.data import ingest
from sapwood.data.dataset import Dataset
from sapwood.data.ingest.refusals import names_differ
from sapwood.errors import DataError

NAN = np.nan
# Three rows, four columns, each number exact in every type used below.
VALUES = np.array(
    [[1.5, 2.0, 1.0, NAN], [-0.5, 7.0, 0.0, 3.0], [np.inf, -4.0, 1.0, 8.0]]
)
COLUMNS = {
    "real": [1.5, -0.5, np.inf],
    "whole": [2, 7, -4],
    "flag": [True, False, True],
    "gaps": [None, 3, 8],
}
NAMES = tuple(COLUMNS)


class Stream:
    """Anything with an Arrow stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class ArrayOnly:
    """Anything that NumPy can convert and nothing else."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return VALUES


def structured() -> np.ndarray:
    """The table as an array with a field for each column, one of them not aligned."""
    fields = list(zip(NAMES, ("f8", ">i4", "?", "f4"), strict=True))
    return np.array([tuple(row) for row in VALUES], fields)


def chunked() -> pa.Table:
    """The table as the middle of a longer one, in chunks, one of them empty."""
    whole = pa.table(
        {name: [values[0], *values, values[0]] for name, values in COLUMNS.items()}
    )
    part = whole.slice(1, 3)
    return pa.concat_tables([part.slice(0, 1), part.slice(1, 0), part.slice(1, 2)])


TABLES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).astype(
        {"real": "Float64", "whole": "Int64", "flag": "boolean", "gaps": "Int64"}
    ),
    "pandas object": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas arrow": lambda: pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "pyarrow": lambda: pa.table(COLUMNS),
    "pyarrow chunked": chunked,
    "record batch": lambda: pa.table(COLUMNS).to_batches()[0],
    "reader": lambda: pa.table(COLUMNS).to_reader(),
    "stream": lambda: Stream(pa.table(COLUMNS)),
    "structured": structured,
    "structured, strided": lambda: np.repeat(structured(), 2)[::2],
    "structured, masked": lambda: np.ma.array(
        structured(), mask=[(False,) * 3 + (np.isnan(v),) for v in VALUES[:, 3]]
    ),
    "records": lambda: structured().view(np.recarray),
}
ARRAYS = {
    "C order": lambda: VALUES,
    "F order": lambda: np.asfortranarray(VALUES),
    "strided": lambda: np.repeat(np.repeat(VALUES, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda: np.ascontiguousarray(VALUES[::-1, ::-1])[::-1, ::-1],
    "big endian": lambda: VALUES.astype(">f8"),
    "float16": lambda: VALUES.astype(np.float16),
    "float32": lambda: VALUES.astype(np.float32),
    "longdouble": lambda: VALUES.astype(np.longdouble),
    "unaligned": lambda: (
        np.frombuffer(b"x" + VALUES.tobytes(), dtype=np.uint8)[1:]
        .view(np.float64)
        .reshape(3, 4)
    ),
    "object": lambda: np.array(
        [[None if np.isnan(v) else v for v in row] for row in VALUES], dtype=object
    ),
    "object with NA": lambda: np.array(
        [[pd.NA if np.isnan(v) else v for v in row] for row in VALUES], dtype=object
    ),
    "masked": lambda: np.ma.array(
        np.where(np.isnan(VALUES), 99.0, VALUES), mask=np.isnan(VALUES)
    ),
    "list": lambda: [[None if np.isnan(v) else v for v in row] for row in VALUES],
    "tuple of arrays": lambda: tuple(VALUES),
    "matrix": lambda: VALUES.view(np.matrix),
    "array interface": lambda: ArrayOnly(),
}


def dense(columns: ingest.Columns) -> np.ndarray:
    """What was read as one float64 table, after checking that the core could have read
    it.
    """
    arrays = columns.table if isinstance(columns.table, list) else [columns.table]
    for array in arrays:
        assert type(array) is np.ndarray
        assert array.dtype.isnative and array.flags.aligned
        assert array.dtype.kind in "biu" or array.dtype in (np.float32, np.float64)
    table = (
        np.column_stack(columns.table)
        if isinstance(columns.table, list)
        else columns.table
    )
    assert table.shape == (columns.n_rows, columns.n_columns)
    return table.astype(np.float64)


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables(make):
    columns = ingest.read(make())
    assert columns.names == NAMES
    assert_array_equal(dense(columns), VALUES)


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_arrays(make):
    columns = ingest.read(make())
    assert columns.names is None
    assert_array_equal(dense(columns), VALUES)


@pytest.mark.parametrize(
    "dtype",
    [
        "?",
        "i1",
        "u1",
        "i2",
        "u2",
        "i4",
        "u4",
        "i8",
        "u8",
        "f2",
        "f4",
        "f8",
        ">i4",
        ">u8",
    ],
)
def test_number_types(dtype):
    given = np.array([[0, 1], [1, 1]], dtype=dtype)
    assert_array_equal(dense(ingest.read(given)), [[0, 1], [1, 1]])


def test_memmap_and_read_only_arrays_are_not_copied(tmp_path):
    VALUES.tofile(tmp_path / "values")
    mapped = np.memmap(
        tmp_path / "values", dtype=np.float64, mode="r", shape=VALUES.shape
    )
    columns = ingest.read(mapped)
    assert_array_equal(dense(columns), VALUES)
    assert np.shares_memory(columns.table, mapped)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize(
    "cut", [np.s_[:, :], np.s_[::2, ::-3]], ids=["whole", "strided"]
)
def test_native_arrays_are_not_copied(dtype, cut):
    given = np.ones((6, 6), dtype=dtype)[cut]
    columns = ingest.read(given)
    assert np.shares_memory(columns.table, given)
    assert columns.table.strides == given.strides


def test_frames_of_floats_are_not_copied():
    frame = pd.DataFrame(np.ones((4, 3)), columns=list("abc"))
    for name, column in zip("abc", ingest.read(frame).table, strict=True):
        assert np.shares_memory(column, frame[name].to_numpy())
    series = pl.Series("a", [1.0, 2.0])
    assert np.shares_memory(ingest.read(series.to_frame()).table[0], series.to_numpy())


def test_masked_array_without_mask_and_of_integers():
    assert_array_equal(dense(ingest.read(np.ma.array([[1, 2]]))), [[1, 2]])
    assert_array_equal(
        dense(ingest.read(np.ma.array([[1, 2]], mask=[[False, True]]))), [[1, NAN]]
    )


def test_lazy_frame_is_collected_with_a_note():
    with pytest.warns(UserWarning, match="X is lazy .*collected"):
        columns = ingest.read(pl.DataFrame(COLUMNS).lazy())
    assert_array_equal(dense(columns), VALUES)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": pa.nulls(2)}),
        pl.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": [pd.NA, pd.NA]}),
        pa.table({"a": pa.array([None, None], pa.bool_())}),
        pl.DataFrame({"a": pl.Series([None, None], dtype=pl.Int8)}),
    ],
    ids=[
        "Arrow null",
        "polars null",
        "pandas None",
        "pandas NA",
        "Arrow bool",
        "polars Int8",
    ],
)
def test_columns_of_only_missing_values(table):
    assert_array_equal(dense(ingest.read(table)), [[NAN], [NAN]])


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": [Decimal("1.5"), None]}),
        pl.DataFrame({"a": [Decimal("1.5"), None]}),
        pa.table({"a": pa.array([1.5, None], pa.float16())}),
        pl.DataFrame({"a": [1.5, None]}, schema={"a": pl.Float32}),
        pd.DataFrame({"a": pd.array([1.5, None], dtype="Float32")}),
        pd.DataFrame({"a": np.array([1.5, NAN], dtype=">f4")}),
    ],
    ids=[
        "Arrow decimal",
        "polars decimal",
        "Arrow half",
        "polars Float32",
        "pandas Float32",
        "pandas big endian",
    ],
)
def test_other_reals(table):
    assert_array_equal(dense(ingest.read(table)), [[1.5], [NAN]])


# Names


def test_integer_names_are_no_names():
    assert ingest.read(pd.DataFrame(VALUES)).names is None
    assert ingest.read(pd.DataFrame(VALUES, columns=[7, 5, 3, 1])).names is None


def test_names_are_plain_strings():
    names = ingest.read(pd.DataFrame([[1.0]], columns=[np.str_("a")])).names
    assert names == ("a",) and type(names[0]) is str


def test_mixed_names_raise_as_in_scikit_learn():
    with pytest.raises(
        TypeError,
        match=r"only supported if all input features have string names.*\['int', 'str'\]",
    ):
        ingest.read(pd.DataFrame([[1, 2]], columns=["a", 1]))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([[1], [2]], names=["a", "a"]),
        pa.record_batch([[1], [2]], names=["a", "a"]),
    ],
    ids=["pandas", "table", "record batch"],
)
def test_duplicate_names_raise(table):
    with pytest.raises(DataError, match=r"unique(.|\n)*'a'"):
        ingest.read(table)


def test_rename():
    columns = ingest.rename(ingest.read([[1, 2]]), ["a", "b"])
    assert columns.names == ("a", "b")
    assert ingest.rename(columns, ["a", "b"]).names == ("a", "b")
    with pytest.raises(DataError, match="differ from the names of the table"):
        ingest.rename(columns, ["b", "a"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "1 names, but there are 2 columns"),
        (["a", "a"], "'a' more than once"),
        (["a", 1], "sequence of strings"),
        ("ab", "sequence of strings"),
    ],
)
def test_bad_names_raise(names, message):
    with pytest.raises(DataError, match=message):
        ingest.rename(ingest.read([[1, 2]]), names)


# Refused tables


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pd.DataFrame({"x": [1], "c": pd.Categorical(["a"])}),
            r"column 'c' of X has dtype category.*categories",
        ),
        (
            pd.DataFrame({"c": pd.Categorical([1, 2])}),
            r"column 'c' of X has dtype category.*categories",
        ),
        (pd.DataFrame({"s": ["a"]}), r"column 's' of X has dtype (str|object).*text"),
        (
            pd.DataFrame({"s": pd.Series(["1.5"], dtype=object)}),
            r"column 's' of X has dtype object with str.*text",
        ),
        (
            pd.DataFrame({"z": [1j]}),
            r"column 'z' of X has dtype complex128.*Complex data not supported",
        ),
        (
            pd.DataFrame({"p": pd.arrays.SparseArray(["a"])}),
            r"column 'p' of X has dtype",
        ),
        (
            pd.DataFrame({"d": pd.period_range("2020", periods=1)}),
            r"column 'd' of X has dtype period.*to_timestamp",
        ),
        (
            pd.DataFrame({0: [1], 1: ["a"]}),
            r"column 1 of X has dtype (str|object).*text",
        ),
        (pl.DataFrame({"s": ["a"]}), r"column 's' of X has dtype String.*text"),
        (
            pl.DataFrame({"c": ["a"]}, schema={"c": pl.Categorical}),
            r"column 'c' of X has dtype Categorical.*categ",
        ),
        (
            pl.DataFrame({"c": ["a"]}, schema={"c": pl.Enum(["a"])}),
            r"column 'c' of X has dtype Enum.*categories",
        ),
        (
            pl.DataFrame({"l": [["a"]]}),
            r"column 'l' of X has a list in row 0 that is not of numbers",
        ),
        (
            pl.DataFrame({"s": [{"a": 1}]}),
            r"column 's' of X has dtype Struct.*nested values",
        ),
        (
            pl.DataFrame({"i": [1]}, schema={"i": pl.Int128}),
            r"column 'i' of X has dtype Int128.*convert it to numbers",
        ),
        (
            pa.table({"c": pa.array(["a"]).dictionary_encode()}),
            r"column 'c' of X has dtype dictionary.*categories",
        ),
        (
            pa.table({"s": pa.array(["a"], pa.large_string())}),
            r"column 's' of X has dtype large_string.*text",
        ),
        (np.array([["a"]]), r"X has dtype <U1.*text"),
        (np.array([[b"a"]]), r"X has dtype \|S1.*text"),
        (np.array([[1j]]), r"X has dtype complex128.*Complex data not supported"),
        (
            np.zeros((1, 1), dtype=[("a", "f8")]),
            r"X has dtype .*a structured array is a table if it is 1-D",
        ),
        (
            np.zeros(1, [("a", "f8", 2)]),
            r"column 'a' of X has \(2,\) values a row; part it into columns",
        ),
        (
            np.zeros(1, [("a", [("b", "f8")])]),
            r"column 'a' of X has dtype .*a structured array is a table if",
        ),
        (np.zeros(1, [("a", "S1")]), r"column 'a' of X has dtype .*text"),
        (
            np.array([[1, "a"]], dtype=object),
            r"column 1 of X has dtype object with str.*text",
        ),
        (
            np.array([[1, 1j]], dtype=object),
            r"column 1 of X has dtype object with complex.*Complex data not supported",
        ),
        (
            [[1, 2], [3, datetime.date(2020, 1, 1)]],
            r"column 1 of X has dtype object with date.*dates and times",
        ),
        (
            scipy.sparse.csr_array(np.eye(2) * 1j),
            r"X has dtype complex128.*Complex data not supported",
        ),
    ],
)
def test_what_is_no_number_raises_with_its_column_and_dtype(table, message):
    with pytest.raises(DataError, match=message):
        ingest.read(table)


def test_objects_raise_the_type_error_that_scikit_learn_checks():
    given = np.array([[1.0, 2.0], [{"foo": "bar"}, 2.0]], dtype=object)
    with pytest.raises(
        TypeError, match=r"column 0 of X.*argument must be .* string.* number"
    ):
        ingest.read(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            np.zeros(3),
            r"2-D table as X, got a 1-D array of shape \(3,\)\. Reshape your data",
        ),
        ([1, 2], r"got a 1-D array of shape \(2,\)\. Reshape your data"),
        (np.array(1.0), r"0-D array of shape \(\)\. Reshape your data"),
        (
            1.0,
            r"X is a float, which is not a table; give an array, .* or an Arrow table\.$",
        ),
        (None, "X is a NoneType, which is not a table"),
        ("abc", "X is a str, which is not a table"),
        (
            np.zeros((2, 2, 2)),
            r"got a 3-D array of shape \(2, 2, 2\)\. Reshape your data",
        ),
        (pd.Series([1]), r"got a series \(Series\)\. Reshape your data"),
        (pl.Series([1]), r"got a series \(Series\)\. Reshape your data"),
        (pa.chunked_array([[1]]), r"got a series \(ChunkedArray\)\. Reshape your data"),
        ([[1, 2], [3]], r"X cannot be read as an array.*same length"),
        (
            np.zeros((0, 3)),
            r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\.",
        ),
        (
            np.zeros((12, 0)),
            r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\.",
        ),
        (
            pd.DataFrame(index=range(3)),
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required\.",
        ),
        (
            pl.DataFrame({"a": []}),
            r"0 sample\(s\) \(shape=\(0, 1\)\) while a minimum of 1 is required\.",
        ),
        (
            Stream(pa.chunked_array([[1]])),
            r"X \(Stream\) cannot be read as a stream of Arrow tables",
        ),
    ],
)
def test_wrong_shapes_raise(given, message):
    with pytest.raises(DataError, match=message):
        ingest.read(given)


def test_a_dataset_is_no_table():
    with pytest.raises(
        DataError,
        match=r"X is a Dataset, which is not a table.*: a Dataset keeps bins only, so the one it",
    ):
        ingest.read(Dataset([[1.0]]))


def test_a_spent_stream_raises():
    reader = pa.table(COLUMNS).to_reader()
    ingest.read(reader)
    with pytest.raises(DataError, match="a stream can be read once"):
        ingest.read(reader)


def test_errors_use_the_given_name():
    with pytest.raises(DataError, match="X_val"):
        ingest.read(np.zeros(3), what="X_val")


# Integers that float64 cannot hold


@pytest.mark.parametrize("value", [2**53, -(2**53), 2**60, 2**62 + 2**40, -(2**63)])
def test_exact_integers_pass(value):
    assert_array_equal(
        dense(ingest.read(np.array([[0, value]]))), [[0.0, float(value)]]
    )
    assert_array_equal(
        dense(ingest.read(pl.DataFrame({"a": [value, None]}))), [[float(value)], [NAN]]
    )
    assert_array_equal(
        dense(ingest.read(np.array([[value]], dtype=object))), [[float(value)]]
    )


@pytest.mark.parametrize(
    "value", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63) + 1, 2**60 + 1]
)
def test_integers_that_float64_rounds_raise(value):
    for where, table in {
        "column 1 of X": np.array([[0, value], [0, 0]]),
        "column 0 of X": np.array([[value]], dtype=object),
        "column 'a' of X": pd.DataFrame({"a": [value]}),
        "column 'b' of X": pd.DataFrame({"b": pd.array([value, None], dtype="Int64")}),
        "column 'c' of X": pl.DataFrame({"c": [None, value]}),
        "column 'd' of X": pa.table({"d": [value, None]}),
    }.items():
        with pytest.raises(
            DataError,
            match=where + r" has numbers that float64 cannot hold exactly.*2\*\*53",
        ):
            ingest.read(table)


def test_large_unsigned_integers():
    assert_array_equal(
        dense(ingest.read(np.array([[2**63]], dtype=np.uint64))), [[2.0**63]]
    )
    for value in (2**53 + 1, 2**64 - 1):
        with pytest.raises(
            DataError, match="column 0 of X has numbers that float64 cannot hold"
        ):
            ingest.read(np.array([[value]], dtype=np.uint64))


def test_masked_integers_need_not_fit():
    given = np.ma.array([[2**53 + 1], [3]], mask=[[True], [False]])
    assert_array_equal(dense(ingest.read(given)), [[NAN], [3.0]])


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="longdouble is float64 here"
)
def test_longdouble_that_float64_rounds_raises():
    with pytest.raises(
        DataError, match="column 1 of X has numbers that float64 cannot hold"
    ):
        ingest.read(np.array([[1, np.longdouble(1) / 3]]))


# Align


def frame(*names):
    return ingest.read(pd.DataFrame({name: [float(ord(name))] for name in names}))


def test_align_reorders_by_name():
    columns = ingest.align(frame("c", "a", "b"), ["a", "b", "c"], 3)
    assert columns.names == ("a", "b", "c")
    assert_array_equal(dense(columns), [[97.0, 98.0, 99.0]])


def test_align_reorders_a_named_array_without_a_copy():
    given = np.array([[1.0, 2.0]])
    columns = ingest.align(ingest.rename(ingest.read(given), ["b", "a"]), ["a", "b"], 2)
    assert_array_equal(dense(columns), [[2.0, 1.0]])
    assert all(np.shares_memory(column, given) for column in columns.table)


def test_align_leaves_the_right_order_alone():
    columns = frame("a", "b")
    assert ingest.align(columns, ["a", "b"], 2) is columns


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a", r"Missing: 'b'\. Pass"),
        ("abc", r"training\. Unknown: 'c'\. Pass"),
        ("ac", r"Missing: 'b'\. Unknown: 'c'\."),
        ("abcdefgh", r"Unknown: 'c', 'd', 'e', 'f', 'g', \.\.\.\."),
    ],
)
def test_align_names_what_is_missing_or_unknown(given, message):
    with pytest.raises(DataError, match=message):
        ingest.align(frame(*given), ["a", "b"], 2)


@pytest.mark.parametrize(
    ("columns", "names"),
    [(ingest.read([[1, 2]]), ["a", "b", "c"]), (frame("b", "a"), None)],
    ids=["input without names", "model without names"],
)
def test_align_by_position(columns, names):
    assert ingest.align(columns, names and names[:2], 2) is columns
    with pytest.raises(
        DataError, match=r"X has 2 features, but \w+ is expecting 3 features as input"
    ):
        ingest.align(columns, names, 3)


# Labels, weights, scores


@pytest.mark.parametrize(
    "given",
    [
        [1, 2],
        (1, 2),
        np.array([1, 2], dtype=">i2"),
        pd.Series([1, 2], index=[5, 4]),
        pd.Series([1, 2], dtype="Int64"),
        pd.DataFrame({"y": [1, 2]}),
        pl.Series([1, 2]),
        pa.array([1, 2]),
        pa.chunked_array([[1], [2]]),
        pa.table({"y": [1, 2]}),
        np.array([1, 2], dtype=object),
        np.array([[1], [2]]),
    ],
)
def test_labels_and_scores_of_every_container(given):
    values = ingest.label(given, 2)
    assert values.dtype == np.float64 and values.shape == (2,)
    assert_array_equal(values, [1.0, 2.0])
    assert_array_equal(ingest.init_score(given, 2), [[1.0], [2.0]])


@pytest.mark.parametrize(
    "given",
    [
        [[1, 2], [3, 4]],
        np.asfortranarray([[1, 2], [3, 4]]),
        np.array([[True, 2], [3, 4]], dtype=object),
        pd.DataFrame({"a": [1, 3], "b": [2, 4]}, index=[5, 4]),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pa.table({"a": [1, 3], "b": [2, 4]}),
    ],
)
def test_labels_of_several_columns(given):
    values = ingest.label(given, 2)
    assert values.dtype == np.float64 and values.flags.c_contiguous
    assert_array_equal(values, [[1.0, 2.0], [3.0, 4.0]])


def test_vectors_are_copies():
    given = np.array([1.0, 2.0])
    for values in (
        ingest.label(given, 2),
        ingest.weight(given, 2),
        ingest.init_score(given, 2),
    ):
        assert not np.shares_memory(values, given)
    assert not np.shares_memory(ingest.label(table := np.eye(2), 2), table)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([1.0, NAN, NAN], r"y contains NaN, first in row 1\b"),
        ([1.0, 2.0, -np.inf], r"y contains infinity, first in row 2\b"),
        ([1.0, None, 2.0], r"y contains NaN, first in row 1\b"),
        (pl.Series([1, 2, None]), r"y contains NaN, first in row 2\b"),
        ([1, 2], r"inconsistent numbers of samples: \[3, 2\]"),
        (np.zeros((2, 3)), r"inconsistent numbers of samples: \[3, 2\]"),
        ([[1.0, 2.0], [3.0, 4.0], [5.0, NAN]], r"y contains NaN, first in row 2\b"),
        (
            np.zeros((3, 0)),
            r"y should be a 1d array, or a 2d one .* got one of shape \(3, 0\)",
        ),
        (
            np.zeros((3, 2, 1)),
            r"y should be a 1d array, or a 2d one .* got one of shape \(3, 2, 1\)",
        ),
        (1.0, r"y should be a 1d array, or a 2d one .* got one of shape \(\)"),
        (["a", "b", "c"], r"y has dtype <U1.*labels are numbers"),
        (np.array([1j, 1, 1]), "y has dtype complex128.*Complex data not supported"),
        (scipy.sparse.csr_array(np.eye(3)), "y is sparse"),
        ([2**53 + 1, 0, 0], "y has numbers that float64 cannot hold"),
    ],
)
def test_bad_labels_raise(given, message):
    with pytest.raises(DataError, match=message):
        ingest.label(given, 3)


def test_labels_beyond_float32():
    assert ingest.label([1e300], 1)[0] == 1e300


def test_labels_whose_squares_vanish_raise():
    with pytest.raises(
        DataError,
        match=r"y is at most 2e-310 in size; squares of numbers below 1e-150 are 0. Scale",
    ):
        ingest.label([1e-310, -2e-310, 0.0], 3)
    assert ingest.label([1e-310, 1.0], 2).tolist() == [1e-310, 1.0]
    assert ingest.label([0.0, 0.0], 2).tolist() == [0.0, 0.0]


def test_good_weights():
    assert ingest.weight(None, 3) is None
    assert_array_equal(ingest.weight(pd.Series([0, 1, 2]), 3), [0.0, 1.0, 2.0])
    assert_array_equal(ingest.weight([True, False], 2), [1.0, 0.0])
    assert_array_equal(ingest.weight([1e100, 0.0], 2), [1e100, 0.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, NAN, 1.0], r"sample_weight contains NaN, first in row 1\b"),
        ([1.0, 1.0, np.inf], r"sample_weight contains infinity, first in row 2\b"),
        (
            [1.0, -0.5, -1.0],
            r"sample_weight is -0\.5 in row 1; weights must not be negative",
        ),
        (
            [1.0, 1.0, 1e101],
            r"sample_weight is 1e\+101 in row 2; numbers beyond 1e\+100 overflow",
        ),
        (
            [0.0, 0.0, 0.0],
            "The sample_weight of all rows is zero; at least one weight must be positive",
        ),
        ([1.0, 1.0], r"inconsistent numbers of samples: \[3, 2\]"),
        (2.0, r"sample_weight must be a 1-D array of length 3, got one of shape \(\)"),
    ],
)
def test_bad_weights_raise(given, message):
    with pytest.raises(DataError, match=message):
        ingest.weight(given, 3)


def test_good_scores():
    assert ingest.init_score(None, 2) is None
    assert ingest.init_score([], 0).shape == (0, 1)
    scores = ingest.init_score(np.asfortranarray([[1, 2, 3], [4, 5, 6]]), 2)
    assert scores.flags.c_contiguous
    assert_array_equal(scores, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"inconsistent numbers of samples: \[2, 1\]"),
        ([[1.0, 2.0], [1.0, NAN]], r"init_score contains NaN, first in row 1\b"),
        (
            [[1.0, 2.0], [1.0, -1e151]],
            r"init_score is -1e\+151 in row 1; numbers beyond 1e\+150 overflow",
        ),
        (np.zeros((2, 0)), r"init_score must be of shape .* got \(2, 0\)"),
        (np.zeros((2, 1, 1)), r"init_score must be of shape .* got \(2, 1, 1\)"),
    ],
)
def test_bad_scores_raise(given, message):
    with pytest.raises(DataError, match=message):
        ingest.init_score(given, 2)


def test_reading_arrays_loads_no_table_library():
    script = (
        "import sys; from sapwood.data import ingest; ingest.read([[1.0]]); ingest.label([1.0], 1);"
        "assert not {'pandas', 'polars', 'pyarrow', 'narwhals'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("dtypes", ["f4", "f8", "f4 f8", "f4 i8 u1 ?"])
def test_frames_of_numbers(dtypes):
    """Read at once or column by column: the columns of each frame, with their types."""
    kinds = [np.dtype(kind) for kind in dtypes.split()]
    wanted = [np.arange(7).astype(kinds[j % len(kinds)]) for j in range(5)]
    wanted[0][2] = np.nan
    found = ingest.read(
        pd.DataFrame({f"c{j}": column for j, column in enumerate(wanted)})
    )
    assert found.names == ("c0", "c1", "c2", "c3", "c4")
    for column, one in zip(found.table, wanted, strict=True):
        assert column.dtype == one.dtype
        assert_array_equal(column, one)


def test_names_of_many_columns_are_compared_in_linear_time():
    names = [f"column{place}" for place in range(20_000)]
    begin = time.process_time()
    assert names_differ(names, names[::-1]) == ""
    assert "Missing: 'column0'. Unknown: 'other'." in names_differ(
        [*names[1:], "other"], names
    )
    assert time.process_time() - begin < 1.0  # sets made anew for each name took 40 s
