"""Crosses: columns of numbers that a dataset makes of two others, of any rows, in any
container, by any threads.
"""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from sapwood.data import container
from sapwood.data.crosses import DTYPES, KINDS, Crosses
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import KIND, VERSION
from sapwood.errors import DataError, ParameterError

RNG = np.random.default_rng(3)
N = 600
ALL = [
    ("difference", "a", "b"),
    ("product", "a", "b"),
    ("ratio", "a", "b"),
    ("ratio", 1, 0),
    ("product", 0, 0),
    ("centred", "a", "town"),
    ("centred", 1, "kind"),
]


def table(n: int = N) -> pd.DataFrame:
    """Numbers with zeros, missing and infinite ones; text with missing ones; integers
    as categories.
    """
    a = RNG.normal(size=n).astype(np.float32)
    b = RNG.integers(-3, 4, n).astype(np.float32)
    a[::17], a[5], a[6] = np.nan, np.inf, -np.inf
    town = np.where(
        RNG.random(n) < 0.1, None, RNG.choice(np.array(list("uvwxyz"), object), n)
    )
    return pd.DataFrame(
        {"a": a, "b": b, "town": town, "kind": pd.Categorical(RNG.integers(0, 3, n))}
    )


X = table()
Y = RNG.normal(size=N)
DATA = Dataset(X, Y, linear_leaves=True)


def expected(
    X: pd.DataFrame, kind: str, left: int | str, right: int | str, known: pd.DataFrame
) -> NDArray[Any]:
    """A cross by its definition, one row after the other."""
    a, b = (X[one] if isinstance(one, str) else X.iloc[:, one] for one in (left, right))
    mean: dict[Any, float] = {}
    whole = 0.0
    if kind == "centred":
        x = known[a.name].to_numpy(float)
        groups = [None if pd.isna(one) else one for one in known[b.name].tolist()]
        finite = [
            (one, v)
            for one, v in zip(groups, x.tolist(), strict=True)
            if math.isfinite(v)
        ]
        whole = math.fsum(v for _, v in finite) / len(finite)
        for group in set(groups):
            own = [v for one, v in finite if one == group]
            mean[group] = math.fsum(own) / len(own) if own else whole
    rows = []
    for left_value, right_value in zip(a.to_numpy(float), b.tolist(), strict=True):
        with np.errstate(all="ignore"):
            x = np.float64(left_value)
            z = right_value
            if kind == "centred":
                value = x - mean.get(None if pd.isna(z) else z, whole)
            else:
                z = np.float64(z)
                value = (
                    x - z
                    if kind == "difference"
                    else x * z
                    if kind == "product"
                    else x / z
                )
            rounded = np.float32(value)
        rows.append(rounded if np.isfinite(rounded) else np.float32(np.nan))
    return np.array(rows, np.float32)


@pytest.mark.parametrize("cross", ALL)
def test_values(cross: tuple[str, Any, Any]) -> None:
    data = DATA.with_crosses([cross])
    assert data.values is not None
    found = data.values[:, -1].astype(np.float32)
    assert_array_equal(found, expected(X, *cross, X))
    new = table(200)
    new.loc[:9, "town"], new.loc[3, "a"] = "never seen", 1e30
    values = Dataset(new, reference=data).values
    assert values is not None
    assert_array_equal(values[:, -1].astype(np.float32), expected(new, *cross, X))


def test_what_is_too_large_for_float32_is_missing() -> None:
    table = np.array([[1e30, 1e30, 2.0], [2.0, 3.0, 1e300], [1e-30, 1e-30, 1.0]])
    data = Dataset(table, linear_leaves=True).with_crosses(
        [("product", 0, 1), ("difference", 0, 2)]
    )
    assert data.values is not None
    assert_array_equal(
        data.values[:, 3:], [[np.nan, np.float32(1e30)], [6, np.nan], [0, -1]]
    )


def test_the_rest_stays() -> None:
    weight = RNG.random(N) + 0.1
    score = RNG.normal(size=N)
    group = np.arange(N) // 4
    one = Dataset(
        X, Y, weight, score, group=group, max_bins=20, linear_leaves=True, n_jobs=2
    )
    two = one.with_crosses(ALL)
    names = (
        "a - b",
        "a * b",
        "a / b",
        "b / a",
        "a * a",
        "a - mean(a by town)",
        "b - mean(b by kind)",
    )
    assert two.feature_names == (*X.columns, *names) and two.named
    assert (two.n_columns, len(two.crosses), len(one.crosses)) == (11, 7, 0)
    assert "(7 crosses)" in repr(two) and "cross" not in repr(one)
    assert two.categories == one.categories and two.unseen == one.unseen
    for j in range(one.n_columns):
        assert_array_equal(two.binned.codes(j), one.binned.codes(j))
        assert_array_equal(two.cuts[j], one.cuts[j])
    for name in ("label", "weight", "init_score", "group"):
        assert_array_equal(getattr(two, name), getattr(one, name))
    assert one.values is not None and two.values is not None
    assert_array_equal(two.values[:, :4], one.values)
    assert two.values.dtype == np.float32 and not two.values.flags.writeable
    alone = Dataset(two.values[:, 4:], None, weight, max_bins=20)  # cut as any column
    for j in range(7):
        assert_array_equal(two.cuts[4 + j], alone.cuts[j])
        assert_array_equal(two.binned.codes(4 + j), alone.binned.codes(j))


def test_constant_leaves() -> None:
    data = DATA.with_crosses(ALL, linear_leaves=False)
    assert data.values is None and not data.linear_leaves
    whole = DATA.with_crosses(ALL)
    assert all(map(np.array_equal, data.cuts, whole.cuts))
    assert (
        Dataset(X, Y, reference=data).fingerprint()
        == data.fingerprint()
        != whole.fingerprint()
    )


def test_given_again() -> None:
    data = DATA.with_crosses(ALL)
    assert DATA.with_crosses(data.crosses).fingerprint() == data.fingerprint()
    assert (
        data.crosses
        == DATA.with_crosses(ALL).crosses
        != DATA.with_crosses(ALL[:-1]).crosses
    )
    assert DATA.with_crosses([]).fingerprint() == DATA.fingerprint()


CONTAINERS: dict[str, Any] = {
    "polars": pl.from_pandas,
    "arrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "other order": lambda X: X[["town", "b", "kind", "a"]],
    "float64": lambda X: X.astype({"a": float, "b": float}),
    "integers": lambda X: X.astype({"b": "Int16"}),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers(kind: str) -> None:
    wanted = DATA.with_crosses(ALL)
    again = Dataset(CONTAINERS[kind](X), Y, reference=wanted)
    assert again.fingerprint() == wanted.fingerprint()
    if kind != "other order":
        # pandas alone says that its integers are categories
        pairs = [one for one in ALL if "kind" not in one]
        table = CONTAINERS[kind](X[["a", "b", "town"]])
        plain = Dataset(X[["a", "b", "town"]], Y, linear_leaves=True).with_crosses(
            pairs
        )
        assert (
            Dataset(table, Y, linear_leaves=True).with_crosses(pairs).fingerprint()
            == plain.fingerprint()
        )


def test_chunks_and_arrays() -> None:
    array = RNG.normal(size=(500, 3))
    pairs = [("ratio", 0, 1), ("product", "f1", 2)]
    whole = Dataset(array, linear_leaves=True).with_crosses(pairs)
    parts = [array[:1], array[1:300], array[300:]]
    assert (
        Dataset.from_chunks(parts, linear_leaves=True).with_crosses(pairs).fingerprint()
        == whole.fingerprint()
    )
    for table in (array, np.asfortranarray(array), array.tolist(), pd.DataFrame(array)):
        assert Dataset(table, reference=whole).fingerprint() == whole.fingerprint()
    assert (
        Dataset.from_chunks(parts, reference=whole).fingerprint() == whole.fingerprint()
    )
    with pytest.raises(ParameterError, match="data is sparse"):
        Dataset(scipy.sparse.csr_array(array), reference=whole)


def test_zero_as_missing() -> None:
    array = RNG.integers(-2, 3, (200, 2)).astype(float)
    data = Dataset(array, linear_leaves=True, zero_as_missing=True).with_crosses(
        [("difference", 0, 1)]
    )
    assert data.values is not None
    some = np.where(array == 0, np.nan, array)
    # a difference of 0 is a number
    assert_array_equal(data.values[:, 2], some[:, 0] - some[:, 1])
    assert Dataset(array, reference=data).fingerprint() == data.fingerprint()


@given(st.integers(0, 10**6), st.integers(1, 400), st.integers(-300, 300))
def test_neither_order_nor_threads_matter(seed: int, n: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-8, 9, n) * 10.0**exponent
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "z": x[::-1],
            "c": rng.choice(list("abc"), n),
        }
    )
    pairs = [("centred", "x", "c"), ("product", "x", "z"), ("ratio", "z", "x")]
    data = Dataset(frame, linear_leaves=True, n_jobs=1).with_crosses(pairs)
    for n_jobs in (2, 3, 7):
        again = Dataset(frame, linear_leaves=True, n_jobs=n_jobs).with_crosses(pairs)
        assert again.fingerprint() == data.fingerprint()
    order = rng.permutation(n)
    other = Dataset(frame.iloc[order], linear_leaves=True).with_crosses(pairs)
    assert other.crosses == data.crosses
    assert data.values is not None and other.values is not None
    assert other.values.tobytes() == data.values[order].tobytes()
    finite = frame.x[np.isfinite(frame.x)]
    tolerance = 1e-15 * np.abs(finite).max() if len(finite) else 0.0
    # so that sums of the largest numbers do not overflow
    unit = 2.0**-16 if exponent > 0 else 1.0
    for code, name in enumerate(data.categories[2].values):
        own = finite[frame.c[finite.index] == name]
        rows = own if len(own) else finite
        wanted = math.fsum(rows * unit) / max(1, len(rows)) / unit
        assert data.crosses.cross_mean[code] == pytest.approx(
            wanted, rel=1e-15, abs=tolerance
        )


def test_files(tmp_path: Path) -> None:
    for data in (DATA.with_crosses(ALL), DATA.with_crosses(ALL, linear_leaves=False)):
        data.save(tmp_path / "data")
        for again in (
            Dataset.load(tmp_path / "data"),
            pickle.loads(pickle.dumps(data)),
        ):
            assert (
                again.fingerprint() == data.fingerprint()
                and again.crosses == data.crosses
            )
            assert again.feature_names == data.feature_names
            assert Dataset(X, Y, reference=again).fingerprint() == data.fingerprint()


ONE = {name: getattr(DATA.with_crosses(ALL).crosses, name) for name in DTYPES}
LIES: dict[str, dict[str, Any]] = {
    "kind": {"cross_kind": np.full(7, len(KINDS), np.uint8)},
    "another kind": {"cross_kind": np.append(ONE["cross_kind"][:-1], np.uint8(0))},
    "type": {"cross_left": ONE["cross_left"].astype(np.int64)},
    "dimensions": {"cross_mean": ONE["cross_mean"][None]},
    "below 0": {"cross_left": np.append(ONE["cross_left"][:-1], np.int32(-1))},
    "beyond": {"cross_right": np.append(ONE["cross_right"][:-1], np.int32(4))},
    "a cross of a cross": {
        "cross_left": np.append(ONE["cross_left"][:-1], np.int32(5))
    },
    "categories": {"cross_left": np.append(ONE["cross_left"][:-1], np.int32(2))},
    "too few": {"cross_left": ONE["cross_left"][:-1]},
    "no offset": {"cross_offset": ONE["cross_offset"][:0]},
    "offsets": {"cross_offset": ONE["cross_offset"][::-1].copy()},
    "too few means": {"cross_mean": ONE["cross_mean"][:-1]},
    "infinite mean": {"cross_mean": np.append(ONE["cross_mean"][:-1], np.inf)},
    "twice": {"cross_kind": np.append(ONE["cross_kind"][1:2], ONE["cross_kind"][1:])},
    "one is missing": {"cross_mean": None},
}


@pytest.mark.parametrize("lie", LIES)
def test_hostile_files(lie: str, tmp_path: Path) -> None:
    arrays, fields = container.unpack(
        DATA.with_crosses(ALL)._pack(), KIND, VERSION, DataError
    )
    arrays = {
        name: one for name, one in (arrays | LIES[lie]).items() if one is not None
    }
    (tmp_path / "data").write_bytes(container.pack(KIND, VERSION, arrays, fields))
    with pytest.raises(DataError, match="not a valid dataset"):
        Dataset.load(tmp_path / "data")


def test_other_names_in_a_file(tmp_path: Path) -> None:
    arrays, fields = container.unpack(
        DATA.with_crosses(ALL)._pack(), KIND, VERSION, DataError
    )
    fields["feature_names"][-1] = "b - mean"
    (tmp_path / "data").write_bytes(container.pack(KIND, VERSION, arrays, fields))
    with pytest.raises(DataError, match="crosses have their own names"):
        Dataset.load(tmp_path / "data")


def test_names_are_unique() -> None:
    frame = pd.DataFrame(RNG.normal(size=(9, 4)), columns=["a", "b - c", "a - b", "c"])
    data = Dataset(frame, linear_leaves=True).with_crosses(
        [("difference", 0, 1), ("difference", 2, 3)]
    )
    assert data.feature_names[4:] == ("a - b - c", "(a - b - c)")


@pytest.mark.parametrize(
    ("crosses", "message"),
    [
        (
            [("sum", "a", "b")],
            "kind 'sum' is unknown; choose one of centred, difference, product, ratio",
        ),
        ([("ratios", "a", "b")], "did you mean 'ratio'"),
        ([("ratio", "aa", "b")], "a cross names the column 'aa'; did you mean 'a'"),
        ([("ratio", 0, 4)], r"a cross names column 4; the data has columns 0\.\.3"),
        ([("ratio", 0.0, 1)], "a cross names column 0.0"),
        ([("ratio", 0)], r"\('ratio', 0\) is no cross; give \(kind, left, right\)"),
        ([("ratio", "a", "town")], "crosses are of numbers"),
        ([("centred", "a", "b")], "of a number by a category"),
        ([("centred", "town", "kind")], "crosses are of numbers"),
        ([("ratio", "a", "b"), ("ratio", 0, 1)], "no cross is there twice"),
        (Crosses.of([(0, 0, 9, np.empty(0))]), "sources of crosses are below 4"),
    ],
)
def test_no_such_cross(crosses: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DATA.with_crosses(crosses)


def test_refusals() -> None:
    with pytest.raises(
        DataError,
        match="needs the values of the table; make the data with linear_leaves=True",
    ):
        Dataset(X).with_crosses(ALL)
    with pytest.raises(DataError, match="has crosses already"):
        DATA.with_crosses(ALL).with_crosses([("ratio", 1, 0)])
    with pytest.raises(ParameterError, match="tree_method='exact'"):
        Dataset(X[["a", "b"]], tree_method="exact").with_crosses(ALL[:1])
    with pytest.raises(
        DataError, match=r"X has 11 features, but Sapwood is expecting 4"
    ):
        Dataset(np.zeros((3, 11)), reference=DATA.with_crosses(ALL))
