"""Children import nothing that lies beside the user's files, and keep their limits."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sapwood.system import child

PLANTED = (
    "catboost",
    "numpy",
    "resource",
    "json",
    "sapwood",
    "sitecustomize",
    "usercustomize",
)
MODEL = "model.cbm"


@pytest.fixture
def downloads(tmp_path):
    """A folder with modules that somebody has planted, each of which says that it was
    executed.
    """
    for name in PLANTED:
        executed = tmp_path / f"{name} was executed"
        (tmp_path / f"{name}.py").write_text(f"open({str(executed)!r}, 'w').close()\n")
    return tmp_path


def executed(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith("was executed")]


def run_in(
    folder: Path, program: str, flag: str = "-P", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, whose modules the parent itself does not see."""
    package = os.fspath(child.PACKAGE_FOLDER)
    start = f"import sys; sys.path.insert(0, {package!r})\n"
    return subprocess.run(
        [sys.executable, flag, "-c", start + program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="session")
def cbm(tmp_path_factory):
    """A model of CatBoost."""
    catboost = pytest.importorskip("catboost")
    path = tmp_path_factory.mktemp("cbm") / MODEL
    X = np.arange(20.0).reshape(10, 2)
    catboost.CatBoostRegressor(
        iterations=2, verbose=False, allow_writing_files=False
    ).fit(X, X[:, 0]).save_model(path)
    return path.read_bytes()


@pytest.mark.parametrize("path", ["", os.pathsep, "."])
def test_reading_a_model_of_catboost_executes_nothing_of_its_folder(
    downloads, cbm, path
):
    (downloads / MODEL).write_bytes(cbm)
    ended = run_in(
        downloads,
        f"import sapwood; print(sapwood.load({MODEL!r}).n_rounds)",
        "-I",
        PYTHONPATH=path,
    )
    assert ended.stdout == "2\n", ended.stderr
    assert executed(downloads) == []


def test_the_doctor_executes_nothing_of_the_folder_it_is_called_in(downloads):
    program = "from sapwood.cli.doctor import _elsewhere; print(_elsewhere('portable'))"
    ended = run_in(downloads, program)
    assert len(ended.stdout.strip()) == 64, ended.stdout + ended.stderr
    assert executed(downloads) == []


def test_a_child_sees_no_path_of_its_parent(downloads, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.fspath(downloads))
    monkeypatch.chdir(downloads)
    monkeypatch.syspath_prepend(os.fspath(downloads))
    printed = child.run("", "print(sys.path)", seconds=60, n_bytes=2**30)
    assert os.fspath(downloads) not in printed
    assert "''" not in printed
    assert executed(downloads) == []


def test_a_child_works_in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = child.run(
        "import os",
        "open('here', 'w').close(); print(os.getcwd())",
        seconds=60,
        n_bytes=2**30,
    )
    assert not os.path.exists(printed.strip())
    assert os.listdir(tmp_path) == []


def test_a_child_that_does_not_end_is_ended():
    start = time.monotonic()
    with pytest.raises(child.ChildError, match="within 1 s"):
        child.run("import time", "time.sleep(60)", seconds=1, n_bytes=2**30)
    assert time.monotonic() - start < 20


def test_a_child_that_takes_too_much_memory_is_ended():
    with pytest.raises(child.ChildError, match="MemoryError"):
        child.run("", "bytes(2**29)", seconds=60, n_bytes=2**26)


def test_a_child_that_is_killed_says_so():
    with pytest.raises(child.ChildError, match="status -9"):
        child.run("import os", "os.kill(os.getpid(), 9)", seconds=60, n_bytes=2**30)


def test_a_child_reads_nothing_from_the_terminal():
    assert (
        child.run("", "print(repr(sys.stdin.read()))", seconds=60, n_bytes=2**30)
        == "''\n"
    )
