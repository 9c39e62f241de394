"""A table becomes cuts and codes; chunks, references, files and containers change none
of them.
"""

import copy
import pickle
import re
from hashlib import sha256

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from sapwood.boost import train
from sapwood.data import container
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import KIND, VERSION
from sapwood.errors import DataError, ParameterError
from sapwood.system import writing

NAN, INF = np.nan, np.inf
# Cuts lie half-way between neighbours; the missing value's code follows the last bin's.
X = np.array([[1.0, 5.0], [2.0, NAN], [4.0, 5.0], [NAN, 5.0], [-INF, INF], [INF, -INF]])
LOWEST = -np.finfo(np.float64).max
# beside infinity they are the lowest number, or the neighbour
CUTS = [[LOWEST, 1.5, 3.0, 4.0], [LOWEST, 5.0]]
CODES = [[1, 2, 3, 5, 0, 4], [1, 3, 1, 1, 2, 0]]
Y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
W = np.array([1.0, 2.0, 1.0, 1.0, 0.5, 3.0])
Y2 = np.column_stack([Y, -Y])


def codes(data):
    return [data.binned.codes(j).tolist() for j in range(data.n_columns)]


def assert_same_data(one, other):
    """Everything that a dataset says about itself is equal, to the bit."""
    assert [cuts.tobytes() for cuts in one.cuts] == [
        cuts.tobytes() for cuts in other.cuts
    ]
    assert codes(one) == codes(other)
    for name in ("label", "weight", "init_score"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    for name in (
        "n_rows",
        "n_columns",
        "feature_names",
        "named",
        "max_bins",
        "min_samples_bin",
    ):
        assert getattr(one, name) == getattr(other, name)
    assert one.fingerprint() == other.fingerprint()


@pytest.fixture
def many():
    """400 rows with more distinct values than bins, few distinct values, gaps."""
    rng = np.random.default_rng(7)
    table = np.column_stack(
        [rng.normal(size=400), rng.integers(0, 5, 400), np.exp(rng.normal(size=400))]
    )
    table[rng.random((400, 3)) < 0.1] = NAN
    return table.astype(np.float32)


@pytest.mark.tiny
def test_cuts_and_codes():
    data = Dataset(X, Y, W)
    assert [cuts.tolist() for cuts in data.cuts] == CUTS
    assert codes(data) == CODES
    assert (data.n_rows, data.n_columns, data.max_bins) == (6, 2, 255)
    assert (data.feature_names, data.named) == (("f0", "f1"), False)
    assert_array_equal(data.label, Y)
    assert_array_equal(data.weight, W)
    assert data.init_score is None


def test_without_label():
    data = Dataset(X)
    assert data.label is None and data.weight is None
    assert codes(data) == CODES


def test_rows_of_weight_zero_give_no_cuts():
    data = Dataset([[1], [2], [4]], weight=[1, 0, 1])
    assert data.cuts[0].tolist() == [2.5]
    assert codes(data) == [[0, 0, 1]]


def test_neighbouring_integers_beyond_float32_are_separated():
    data = Dataset(np.array([[16777216], [16777217]]))
    assert codes(data) == [[0, 1]]


def test_max_bins(many):
    data = Dataset(many, max_bins=16)
    assert [len(cuts) for cuts in data.cuts] == [15, 4, 15]
    assert data.max_bins == 16
    wide = Dataset(np.arange(300.0)[:, None], max_bins=65535)
    assert codes(wide) == [list(range(300))]


@pytest.mark.parametrize("max_bins", [1, 0, -5, 65536, 2.5, "255"])
def test_bad_max_bins_raise(max_bins):
    with pytest.raises(ParameterError, match=re.escape(f"max_bins={max_bins!r}")):
        Dataset(X, max_bins=max_bins)


def test_columns_of_one_value_or_none():
    data = Dataset([[3.0, NAN], [3.0, NAN]])
    assert [cuts.tolist() for cuts in data.cuts] == [[], []]
    assert codes(data) == [[0, 0], [1, 1]]


def test_one_row_and_one_column():
    data = Dataset([[3.0]], [1.0])
    assert codes(data) == [[0]]


@pytest.mark.parametrize(
    "table",
    [
        lambda x: pd.DataFrame(x, columns=["a", "b", "c"]),
        lambda x: pd.DataFrame(
            x.astype(np.float64), columns=["a", "b", "c"]
        ).convert_dtypes(),
        lambda x: pl.DataFrame(x, schema=["a", "b", "c"]),
        lambda x: pl.DataFrame(
            x, schema=["a", "b", "c"], nan_to_null=True
        ).with_columns(pl.col("b").cast(pl.Int8)),
        lambda x: pa.table(dict(zip("abc", x.T, strict=True))),
        lambda x: pa.table(
            {n: pa.array(c, from_pandas=True) for n, c in zip("abc", x.T, strict=True)}
        ).slice(0),
    ],
    ids=[
        "pandas",
        "pandas nullable",
        "polars",
        "polars nulls",
        "pyarrow",
        "pyarrow nulls",
    ],
)
def test_every_container_gives_the_same_dataset(many, table):
    assert_same_data(
        Dataset(many, feature_names=["a", "b", "c"], max_bins=64),
        Dataset(table(many), max_bins=64),
    )


def test_threads_change_nothing(many):
    one = Dataset(many, max_bins=64, n_jobs=1)
    for n_jobs in (2, 3):
        assert_same_data(one, Dataset(many, max_bins=64, n_jobs=n_jobs))


def test_changing_the_inputs_changes_nothing():
    table = X.copy()
    label = Y.copy()
    weight = W.copy()
    score = np.ones((6, 2))
    data = Dataset(table, label, weight, score)
    before = data.fingerprint()
    for array in (table, label, weight, score):
        array[:] = 9
    assert data.fingerprint() == before
    assert codes(data) == CODES
    assert_array_equal(data.init_score, np.ones((6, 2)))


def test_arrays_are_read_only():
    data = Dataset(X, Y, W, Y)
    for array in (data.label, data.weight, data.init_score, data.cuts[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_init_score_has_a_column_for_each_output():
    assert Dataset(X, Y, init_score=Y).init_score.tolist() == Y[:, None].tolist()
    assert Dataset(X, Y, init_score=np.ones((6, 3))).init_score.shape == (6, 3)


def test_labels_of_several_columns(tmp_path):
    data = Dataset(X, Y2)
    assert_array_equal(data.label, Y2)
    assert data.label.flags.c_contiguous and not data.label.flags.writeable
    # a single column is no second dimension
    assert_array_equal(Dataset(X, Y2[:, :1]).label, Y)
    assert_same_data(data, Dataset(X, pd.DataFrame(Y2)))
    assert_same_data(
        data,
        Dataset.from_chunks(
            [(X[:2], Y2[:2]), (X[2:2], Y2[2:2]), (X[2:], Y2[2:].tolist())]
        ),
    )
    data.save(tmp_path / "data")
    assert_same_data(data, Dataset.load(tmp_path / "data"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": np.zeros(3)}, "2-D table as data"),
        ({"data": X, "label": Y2.T}, r"inconsistent numbers of samples: \[6, 2\]"),
        ({"data": X, "label": Y2[:, :0]}, r"got one of shape \(6, 0\)"),
        ({"data": X, "label": Y[:5]}, r"inconsistent numbers of samples: \[6, 5\]"),
        (
            {"data": X, "label": [1, 2, NAN, 4, 5, 6]},
            "Input label contains NaN, first in row 2",
        ),
        (
            {"data": X, "label": Y[:5]},
            r"\[6, 5\]. label must have one value for each row",
        ),
        (
            {"data": X, "label": list("abcdef")},
            r"label has dtype .* such as numpy.unique\(label, return_inverse=True\)",
        ),
        (
            {"data": X, "weight": W[:5]},
            r"\[6, 5\]. weight must have one value for each row",
        ),
        ({"data": X, "weight": -W}, "weight is -1.0 in row 0"),
        ({"data": X, "weight": 0 * W}, "The weight of all rows is zero"),
        ({"data": X, "init_score": Y[:5]}, "inconsistent numbers of samples"),
        ({"data": X, "feature_names": ["a"]}, "1 names, but there are 2 columns"),
        ({"data": X, "feature_names": ["a", "a"]}, "'a' more than once"),
    ],
)
def test_bad_input_raises(given, message):
    with pytest.raises(DataError, match=message):
        Dataset(**given)


def test_repr():
    assert (
        repr(Dataset(X))
        == "<sapwood.Dataset of 6 rows and 2 columns of at most 255 bins, with no label>"
    )
    assert repr(Dataset(X, Y, W)).endswith("of at most 255 bins, with label, weight>")


# Reference


def test_reference_gives_cuts_names_and_max_bins():
    first = Dataset(pd.DataFrame(X, columns=["a", "b"]), max_bins=7)
    data = Dataset(
        pd.DataFrame({"b": [9.0, NAN], "a": [3.0, 3.5]}), [1, 2], reference=first
    )
    assert data.feature_names == ("a", "b") and data.named and data.max_bins == 7
    assert [cuts.tolist() for cuts in data.cuts] == CUTS
    assert codes(data) == [[2, 3], [2, 3]]  # 3.0 is not above the cut 3.0


def test_reference_without_names_matches_by_position():
    data = Dataset(pd.DataFrame({"b": [1.0], "a": [2.0]}), reference=Dataset(X))
    assert data.feature_names == ("f0", "f1") and not data.named
    assert codes(data) == [[1], [1]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1.0]}), "Missing: 'b'"),
        (pd.DataFrame({"a": [1.0], "b": [1.0], "c": [1.0]}), "Unknown: 'c'"),
        ([[1.0]], "X has 1 features, but Sapwood is expecting 2 features"),
    ],
)
def test_other_columns_than_the_reference_raise(table, message):
    with pytest.raises(DataError, match=message):
        Dataset(table, reference=Dataset(X, feature_names=["a", "b"]))


# Chunks


@pytest.mark.parametrize(
    "ends", [[400], [1, 2, 400], [0, 133, 133, 257, 400, 400]], ids=str
)
def test_chunks_give_the_same_dataset(many, ends):
    label = np.arange(400.0)
    weight = np.arange(400) % 3
    whole = Dataset(many, label, weight, label, max_bins=64)
    parts = [slice(first, last) for first, last in zip([0, *ends], ends, strict=False)]
    chunks = [(many[part], label[part], weight[part]) for part in parts]
    assert_same_data(
        whole, Dataset.from_chunks(iter(chunks), init_score=label, max_bins=64)
    )


def test_chunks_of_every_container_match_by_name():
    chunks = [
        pd.DataFrame(X[:2], columns=["a", "b"]),
        pl.DataFrame({"b": X[2:3, 1], "a": X[2:3, 0]}),
        pa.table({"a": X[3:4, 0], "b": X[3:4, 1]}),
        X[4:].astype(np.float32),
    ]
    assert_same_data(Dataset(X, feature_names=["a", "b"]), Dataset.from_chunks(chunks))


def test_chunks_with_a_reference_and_names():
    first = Dataset(X, feature_names=["a", "b"])
    data = Dataset.from_chunks(
        [X[:3], X[3:]], feature_names=["a", "b"], reference=first
    )
    assert_same_data(first, data)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([], "got no chunk"),
        ([X[:0], X[:0]], "there are no rows"),
        ([X, X[:, :1]], "X has 1 features"),
        ([(X, Y), X], "chunk 1 has no label"),
        ([(X, Y, W), (X, Y)], "chunk 1 has no weight"),
        (
            [(X, Y), (X, Y[:2])],
            r"the label of chunk 1 must be of shape \(6,\), got \(2,\)",
        ),
        (
            [(X, Y2), (X, Y)],
            r"the label of chunk 1 must be of shape \(6, 2\), got \(6,\)",
        ),
        (
            [(X, Y), (X, Y2)],
            r"the label of chunk 1 must be of shape \(6,\), got \(6, 2\)",
        ),
        ([(X, Y2, Y2)], r"the weight of chunk 0 must be of shape \(6,\), got \(6, 2\)"),
        ([(X, Y2.T)], r"the label of chunk 0 must be of shape \(6, 6\), got \(2, 6\)"),
        ([(X, Y, W, Y)], "not 4 things"),
        ([(X, Y), (X, Y * NAN)], "Input label contains NaN, first in row 6"),
        (
            [X, np.array([["a", "b"]])],
            "column 'f0' is text in one chunk and numbers in another; make text of all",
        ),
        ([X, Y], "2-D table as chunk 1"),
    ],
)
def test_bad_chunks_raise(chunks, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_chunks(chunks)


def test_weights_may_be_zero_in_a_whole_chunk():
    data = Dataset.from_chunks(
        [([[1], [2]], [0, 0], [0, 0]), ([[3], [4]], [0, 0], [1, 1])]
    )
    assert data.cuts[0].tolist() == [3.5]


# Fingerprint


def test_fingerprint_sees_everything_that_training_sees():
    score = np.column_stack([Y, Y])
    changed = X.copy()
    changed[0, 0] = 3.5
    prints = [
        data.fingerprint()
        for data in (
            Dataset(X),
            Dataset(X, Y),
            Dataset(X, weight=Y),
            Dataset(X, Y, Y),
            Dataset(X, init_score=Y),
            Dataset(X, Y + 1),
            Dataset(X, Y2),
            Dataset(X, Y2.reshape(2, 6).T),
            Dataset(X, init_score=score),
            Dataset(X, feature_names=["a", "b"]),
            Dataset(changed),
            Dataset(X[::-1]),
            Dataset(X[:, ::-1]),
            Dataset(X[:5]),
        )
    ]
    assert len(set(prints)) == len(prints)
    assert all(re.fullmatch("[0-9a-f]{64}", text) for text in prints)


def test_fingerprint_sees_no_layout():
    whole = Dataset(X, Y, n_jobs=1).fingerprint()
    assert Dataset(np.asfortranarray(X), Y.tolist(), n_jobs=2).fingerprint() == whole
    assert Dataset(X.astype(np.float32), Y.astype(np.int8)).fingerprint() == whole


# Files


@pytest.fixture
def saved(tmp_path):
    data = Dataset(
        X, Y, W, np.column_stack([Y, -Y]), feature_names=["å", "0" * 64], max_bins=9
    )
    data.save(tmp_path / "data")
    return data, tmp_path / "data"


def test_save_and_load(saved):
    data, path = saved
    assert_same_data(data, Dataset.load(path))


def test_save_and_load_without_extras_and_with_many_bins(tmp_path, many):
    for table, max_bins in (
        (X, 255),
        (many, 255),
        (many, 65535),
        (np.full((3, 2), NAN), 2),
    ):
        data = Dataset(table, max_bins=max_bins)
        data.save(str(tmp_path / "data"))
        assert_same_data(data, Dataset.load(str(tmp_path / "data"), n_jobs=2))


def test_saved_bytes_depend_on_the_content_only(saved, tmp_path):
    path = saved[1]
    Dataset.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_every_truncation_and_every_changed_byte_raises(saved, tmp_path):
    raw = saved[1].read_bytes()
    broken = tmp_path / "broken"
    for place in range(len(raw)):
        for content in (
            raw[:place],
            raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :],
        ):
            broken.write_bytes(content)
            with pytest.raises(DataError):
                Dataset.load(broken)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Dataset.load(tmp_path / "nothing")


LIES = {
    "no rows": {"n_rows": 0},
    "rows are text": {"n_rows": "6"},
    "rows are true": {"n_rows": True},
    "other rows": {"n_rows": 5},
    "no names": {"feature_names": []},
    "fewer names": {"feature_names": ["a"]},
    "equal names": {"feature_names": ["a", "a"]},
    "names are numbers": {"feature_names": [1, 2]},
    "names are text": {"feature_names": "ab"},
    "named is a number": {"named": 1},
    "one bin": {"max_bins": 1},
    "too many bins": {"max_bins": 65536},
    "fewer bins than cuts": {"max_bins": 2},
    "an unknown field": {"more": 1},
    "no cuts": {"cuts": None},
    "no codes": {"codes.1": None},
    "codes of a third column": {"codes.2": np.zeros(6, np.uint8)},
    "cuts descend": {"cuts": np.array([3.0, 1.5])},
    "cuts are equal": {"cuts": np.array([3.0, 3.0])},
    "a cut is missing": {"cuts": np.array([3.0, NAN])},
    "a cut is infinite": {"cuts": np.array([3.0, INF])},
    "cuts are float32": {"cuts": np.array([1.5, 3.0], np.float32)},
    "cuts are a table": {"cuts": np.array([[1.5, 3.0]])},
    "more cuts": {"cuts": np.array([1.5, 3.0, 4.0])},
    "offsets start late": {"offset": np.array([1, 2, 2])},
    "offsets end early": {"offset": np.array([0, 1, 1])},
    "offsets go back": {"offset": np.array([0, 3, 2])},
    "offsets are short": {"offset": np.array([0, 2])},
    "offsets are int32": {"offset": np.array([0, 2, 2], np.int32)},
    "a code is too large": {"codes.0": np.array([0, 1, 2, 6, 0, 2], np.uint8)},
    "codes are int8": {"codes.0": np.zeros(6, np.int8)},
    "codes are uint16": {"codes.0": np.zeros(6, np.uint16)},
    "codes are short": {"codes.0": np.zeros(5, np.uint8)},
    "codes are a table": {"codes.0": np.zeros((6, 1), np.uint8)},
    "a label is missing": {"label": np.array([1, 2, 3, 4, 5, NAN])},
    "labels are short": {"label": np.ones(5)},
    "labels are float32": {"label": np.ones(6, np.float32)},
    "labels have no column": {"label": np.ones((6, 0))},
    "labels have three dimensions": {"label": np.ones((6, 2, 2))},
    "a weight is negative": {"weight": np.array([1.0, 1, 1, 1, 1, -1])},
    "weights are zero": {"weight": np.zeros(6)},
    "scores have no output": {"init_score": np.zeros((6, 0))},
    "a score is infinite": {"init_score": np.full((6, 2), INF)},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_every_lie_under_a_right_digest_raises(saved, tmp_path, lie):
    arrays, fields = container.unpack(saved[1].read_bytes(), KIND, VERSION, DataError)
    for name, value in lie.items():
        if value is None:
            del arrays[name]
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            fields[name] = value
    writing.write(tmp_path / "lie", container.pack(KIND, VERSION, arrays, fields))
    with pytest.raises(DataError):
        Dataset.load(tmp_path / "lie")


def test_lying_offsets_of_arrays_under_a_right_digest_raise(saved, tmp_path):
    raw = saved[1].read_bytes()
    digest = re.search(rb'digest\\":\\"([0-9a-f]{64})', raw)[1]
    for true, lie in (
        (b'"data_offsets":[0,', b'"data_offsets":[1,'),
        (b'"dtype":"F64"', b'"dtype":"F99"'),
    ):
        assert true in raw
        blank = raw.replace(true, lie, 1).replace(digest, b"0" * 64, 1)
        (tmp_path / "lie").write_bytes(
            blank.replace(b"0" * 64, sha256(blank).hexdigest().encode(), 1)
        )
        with pytest.raises(DataError, match="arrays of the file cannot be read"):
            Dataset.load(tmp_path / "lie")


def test_pickle_and_copy_keep_every_bit(saved):
    data, _ = saved
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        assert_same_data(data, other)


@pytest.mark.parametrize(
    "label",
    [
        ["no", "yes"],
        np.array(["no", "yes"]),
        pd.Series(["no", "yes"], dtype="category"),
    ],
)
def test_a_label_of_text_says_what_to_do(label):
    with pytest.raises(
        DataError,
        match=r"labels are numbers, classes their indices.*SapwoodClassifier takes",
    ):
        Dataset([[1.0], [2.0]], label)


def test_a_category_of_0_is_no_zero():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 2)).astype(float)
    y = (X[:, 0] == 0) + (X[:, 1] == 0) + 0.1 * rng.normal(size=200)
    settings = {"categorical_features": [0], "zero_as_missing": True}
    params = {"n_estimators": 3, "min_data_per_group": 1, "cat_smooth": 0}
    renamed = X + np.array([5.0, 0.0])  # no category is called 0
    data = Dataset(X, y, **settings)
    other = Dataset(renamed, y, **settings)
    assert data.n_bins == other.n_bins == [3, 2]
    models = train(params, data), train(params, other)
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(renamed))
    assert models[0].predict(np.array([[0.0, 1.0]])) != models[0].predict(
        np.array([[np.nan, 1.0]])
    )
