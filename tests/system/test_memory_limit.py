"""A memory_limit is a promise: the process stays below it with the same model, or an
error says what is needed.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import sapwood
from sapwood import Dataset
from sapwood.device import host
from sapwood.errors import MemoryLimitError, ParameterError

N_ROWS = 800_000
N_COLUMNS = 6
# Trains under a limit that the cost of the training names, and prints the peak of
# resident memory and the model.
CHILD = """
import sys, sapwood
params, limit = eval(sys.argv[2]), sys.argv[3]
free = sapwood.Dataset.open(sys.argv[1], verify=False)
cost = sapwood.estimate_cost(params, free)
limit = int({"least": 1.05 * cost.least, "between": (cost.least + cost.fast) / 2, "fast": 1.05 * cost.fast}[limit])
data = sapwood.Dataset.open(sys.argv[1], memory_limit=limit, verify=False)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
model = sapwood.train(params, data)
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print(limit, peak, model.fingerprint())
"""
PARAMS: dict[str, dict[str, Any]] = {
    "plain": {"objective": "squared_error"},
    "classes": {"objective": "softmax"},
    "vectors": {"objective": "softmax", "multi_strategy": "multi_output_tree"},
    "quantile": {"objective": "quantile"},
    "uniform": {"objective": "squared_error", "subsample": 0.5},
    "goss": {"objective": "squared_error", "sampling": "goss", "learning_rate": 1.0},
    "mvs": {"objective": "squared_error", "sampling": "mvs", "subsample": 0.4},
    "bayesian": {"objective": "squared_error", "sampling": "bayesian"},
    "stopping": {
        "objective": "squared_error",
        "early_stopping_rounds": 2,
        "validation_fraction": 0.1,
    },
    "weights": {"objective": "softmax", "class_weight": "balanced"},
    "symmetric": {"objective": "squared_error", "grow_policy": "symmetric"},
    "depthwise": {
        "objective": "squared_error",
        "grow_policy": "depthwise",
        "max_depth": 8,
    },
    "leaves": {"objective": "squared_error", "max_leaves": 255},
}
BY_DAY = {("plain", "between")}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("limit") / "store"

    def batches() -> Iterator[tuple[Any, Any]]:
        for k in range(8):
            X = (
                np.random.default_rng(k)
                .normal(size=(N_ROWS // 8, N_COLUMNS))
                .astype(np.float32)
            )
            yield (
                X,
                np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-1.0, 0.0, 1.0]).astype(
                    float
                ),
            )

    Dataset.from_batches(batches, store=path)
    yield path


CASES = [
    pytest.param(
        kind, limit, marks=() if (kind, limit) in BY_DAY else pytest.mark.nightly
    )
    for kind in PARAMS
    for limit in ("least", "between", "fast")
]


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="resident memory is measured on Linux",
)
@pytest.mark.parametrize(("kind", "limit"), CASES)
def test_resident_memory_stays_below_the_limit(
    store: Path, kind: str, limit: str
) -> None:
    params = {**PARAMS[kind], "n_estimators": 2, "n_jobs": 2}
    child = [sys.executable, "-c", CHILD, str(store), repr(params), limit]
    out = subprocess.run(
        child, capture_output=True, text=True, check=True
    ).stdout.split()
    most = int(out[0])
    peak = int(out[1])
    model = out[2]
    assert peak <= most
    assert (
        model == sapwood.train(params, Dataset.open(store, verify=False)).fingerprint()
    )
    # nothing is left behind
    assert sorted(one.name for one in store.parent.iterdir()) == ["store"]


# Reads files under a limit; prints the peak of resident memory, and the fingerprint of
# the data or the error.
READS = """
import sys, sapwood
from sapwood.errors import MemoryLimitError
try:
    found = sapwood.Dataset.from_files(sys.argv[1], "y", store=sys.argv[2], memory_limit=int(sys.argv[3]), n_jobs=2)
    said = found.fingerprint()
except MemoryLimitError as error:
    said = str(error)
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print(peak, said)
"""


def write(folder: Path, kind: str) -> None:
    """A file, or two, of many numbers, of few values, of text, of many columns."""
    rng = np.random.default_rng(0)

    def save(
        k: int, columns: dict[str, Any], how: str = "parquet", **more: Any
    ) -> None:
        n = len(next(iter(columns.values())))
        table = pa.table({**columns, "y": rng.integers(0, 2, n).astype(float)})
        if how == "parquet":
            parquet.write_table(table, folder / f"{k}.parquet", **more)
        elif how == "feather":
            feather.write_feather(table, folder / f"{k}.feather", **more)
        else:
            csv.write_csv(table, folder / f"{k}.csv")

    if kind == "codes":  # the store is larger than the limit
        for k in range(2):
            columns = {
                f"c{j}": rng.integers(0, 120, 1_000_000, dtype=np.int8)
                for j in range(100)
            }
            save(k, columns, row_group_size=1 << 16)
    elif kind == "groups":
        # large row groups, whose columns have dictionaries that were given up
        save(
            0,
            {f"c{j}": rng.normal(size=1_000_000) for j in range(12)},
            row_group_size=1_000_000,
        )
    elif kind == "wide":
        save(
            0,
            {f"c{j}": rng.normal(size=10_000) for j in range(600)},
            row_group_size=10_000,
        )
    elif kind == "names":
        save(
            0, {"c": np.arange(3_000_000).astype(str), "d": rng.normal(size=3_000_000)}
        )
    else:
        columns = {f"c{j}": rng.normal(size=400_000) for j in range(30)}
        save(
            0,
            columns,
            kind.split(",")[0],
            **({"chunksize": 400_000} if "whole" in kind else {}),
        )


@pytest.mark.nightly
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="resident memory is measured on Linux",
)
@pytest.mark.parametrize(
    ("kind", "limit", "kept"),
    [
        ("codes", 300, True),
        ("codes", 170, False),
        ("groups", 260, True),
        ("feather", 260, True),
        ("feather, whole", 260, False),
        ("csv", 260, True),
        ("wide", 500, True),
        ("wide", 200, False),
        ("names", 260, False),
    ],
)
def test_resident_memory_stays_below_the_limit_while_files_are_read(
    tmp_path: Path, kind: str, limit: int, kept: bool
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder, kind)
    child = [
        sys.executable,
        "-c",
        READS,
        str(folder),
        str(tmp_path / "store"),
        str(limit * 1_000_000),
    ]
    out = subprocess.run(child, capture_output=True, text=True, check=True).stdout
    peak, said = out.split(" ", 1)
    assert int(peak) <= limit * 1_000_000, (int(peak) / 1e6, said)
    if kept:
        assert said.strip() == Dataset.from_files(folder, "y").fingerprint()
    else:
        assert "needs at least" in said and "Raise it" in said
        assert not (tmp_path / "store").exists()


def test_a_limit_that_is_too_small(store: Path) -> None:
    for given in (500, "20MB"):
        with pytest.raises(
            MemoryLimitError,
            match=r"this process has [0-9.]+ [MG]B already; .* a unit .*: '500MB'",
        ):
            Dataset.open(store, memory_limit=given, verify=False)
    data = Dataset.open(
        store, memory_limit=host.resident_bytes() + 2_000_000, verify=False
    )
    with pytest.raises(
        MemoryLimitError, match=r"needs at least [0-9.]+ [MG]B .* Raise the limit, or"
    ):
        sapwood.train({"n_estimators": 1}, data)
    assert sapwood.estimate_cost({}, data).least > 20e6


def test_what_cannot_be_limited(store: Path) -> None:
    data = Dataset.open(store, memory_limit="4GB", verify=False)
    with pytest.raises(ParameterError, match="cv trains the models of all folds"):
        sapwood.cv({}, data)
    with pytest.raises(ParameterError, match="several models side by side"):
        sapwood.train({"quality": "fast"}, data)
    with pytest.raises(ParameterError, match="permutations of all rows"):
        sapwood.train({"boosting": "ordered"}, data)


def test_many_categories_under_a_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.normal(size=600), "k": rng.choice([f"v{i}" for i in range(50)], 600)}
    )
    X.assign(y=X.a > 0).to_parquet(tmp_path / "0.parquet")
    Dataset.from_files(tmp_path / "0.parquet", "y", store=tmp_path / "store")
    data = Dataset.open(tmp_path / "store", memory_limit="4GB")
    params = {"objective": "logistic", "n_estimators": 3}
    with pytest.warns(
        UserWarning,
        match="'partition' is used for 'k', where a default fit in memory uses 'ordered'",
    ):
        found = sapwood.train(params, data)
    same = {**params, "category_encoding": "partition"}
    own = sapwood.train(same, Dataset(X, label=X.a > 0))
    assert sapwood.train(same, data).to_bytes() == own.to_bytes()
    np.testing.assert_array_equal(found.predict(X), own.predict(X))
    with pytest.raises(ParameterError, match="keeps statistics of all rows in memory"):
        sapwood.train({**params, "category_encoding": "ordered"}, data)


@pytest.mark.parametrize("wrong", ["much", 0, -1, True, "2 XB", 1.5])
def test_sizes_that_are_none(store: Path, wrong: Any) -> None:
    with pytest.raises(ParameterError, match="is no size"):
        Dataset.open(store, memory_limit=wrong)


def test_cost_of_a_table_that_is_not_read_yet() -> None:
    small, large = (
        sapwood.estimate_cost({}, n_rows=n, n_columns=20) for n in (10_000, 10_000_000)
    )
    assert small.disk < large.disk and large.least < large.fast < large.memory
    assert large.disk == 2 * 10_000_000 * 20 + 8 * 10_000_000
    with pytest.raises(ParameterError, match="needs the data, or n_rows"):
        sapwood.estimate_cost({})
    with pytest.raises(ParameterError, match="n_rows=-1 is not a size"):
        sapwood.estimate_cost({}, n_rows=-1, n_columns=5)
    with pytest.raises(
        ParameterError, match="n_rows=5 is for a table that is not read yet"
    ):
        sapwood.estimate_cost({}, Dataset([[1.0], [2.0]], label=[0, 1]), n_rows=5)
