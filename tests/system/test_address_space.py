"""Under a limit of the address space a first call works, or raises MemoryError: nothing
ends the process or hangs.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sapwood
from sapwood.system import address_space

# Sets the limit so many megabytes above what the process has after `import sapwood`,
# and calls something for the first time. Exit status 3: MemoryError.
CHILD = """
import resource, sys
import sapwood

kind, megabytes, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X = [[float((7 * i * (j + 1)) % 31) for j in range(4)] for i in range(300)]
y = [float(row[0] > row[1]) for row in X]


def limit():
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize() + megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def train(table):
    sapwood.train({"n_estimators": 3, "objective": "logistic"}, sapwood.Dataset(table, label=y))


def call():
    if kind == "classifier":
        limit()
        sapwood.SapwoodClassifier(n_estimators=3).fit(X, y).predict(X)
    elif kind == "regressor":
        limit()
        sapwood.SapwoodRegressor(quality="fast").fit(X, y).predict(X)
    elif kind == "fit after the import":
        estimator = sapwood.SapwoodClassifier()
        limit()
        estimator.fit(X, y).predict(X)
    elif kind == "train":
        limit()
        train(X)
    elif kind == "load":
        limit()
        sapwood.load(folder + "/model").predict(X)
    elif kind == "predict":
        model = sapwood.load(folder + "/model")
        limit()
        model.predict(X)
    elif kind == "command line":
        sys.argv = ["sapwood", "train", folder + "/table.csv", "-t", "y", "--quality", "fast"]
        from sapwood.cli import main

        limit()
        main()
    else:
        library = __import__(kind)
        columns = {f"c{j}": [row[j] for row in X] for j in range(4)}
        table = library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)
        limit()
        train(table)


try:
    call()
except MemoryError:
    sys.exit(3)
"""
KINDS = (
    "classifier",
    "regressor",
    "fit after the import",
    "train",
    "load",
    "predict",
    "pandas",
    "polars",
    "pyarrow",
    "command line",
)
BY_DAY = {
    ("classifier", 40),
    ("classifier", 200),
    ("classifier", 450),
    ("train", 60),
    ("load", 120),
    ("pandas", 0),
    ("command line", 60),
}
CASES = [
    pytest.param(
        kind,
        megabytes,
        marks=() if (kind, megabytes) in BY_DAY else pytest.mark.nightly,
    )
    for kind in KINDS
    for megabytes in sorted(
        {*range(0, 620, 20), *(most for name, most in BY_DAY if name == kind)}
    )
]
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="address space is measured on Linux"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("address_space")
    X = [[float((7 * i * (j + 1)) % 31) for j in range(4)] for i in range(300)]
    y = [float(row[0] > row[1]) for row in X]
    sapwood.train(
        {"n_estimators": 3, "objective": "logistic"}, sapwood.Dataset(X, label=y)
    ).save(path / "model")
    lines = [",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)]
    (path / "table.csv").write_text("\n".join(["a,b,c,d,y", *lines]))
    return path


@pytest.mark.parametrize(("kind", "megabytes"), CASES)
def test_a_first_call_works_or_raises_memory_error(
    folder: Path, kind: str, megabytes: int
) -> None:
    child = [sys.executable, "-c", CHILD, kind, str(megabytes), str(folder)]
    done = subprocess.run(child, capture_output=True, text=True, timeout=60)
    if kind == "command line" and done.returncode == 1:
        assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    else:
        assert done.returncode in (0, 3), done.stderr


def test_libraries_that_are_loaded_need_no_space() -> None:
    import sklearn.base  # noqa: F401

    assert address_space.needed_bytes(estimators=True, n_threads=64) == 0


def test_blas_has_one_thread_where_there_is_no_space_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setattr(address_space, "blas_threads", lambda: 64)
    monkeypatch.setattr(
        address_space, "needed_bytes", lambda estimators, n_threads: 100 * n_threads
    )
    monkeypatch.setattr(address_space, "free_bytes", lambda: 150)
    with address_space.loading():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_a_library_that_gets_no_memory_raises_memory_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(address_space, "free_bytes", lambda: 1 << 40)
    with (
        pytest.raises(MemoryError, match="the address space is limited"),
        address_space.loading(),
    ):
        raise ImportError("libx.so: failed to map segment from shared object")


def test_a_missing_library_raises_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_space, "free_bytes", lambda: 1 << 40)
    with pytest.raises(ImportError, match="no such library"), address_space.loading():
        raise ImportError("no such library")
