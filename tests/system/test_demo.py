"""The first minute: the tables of examples/ and their description, the demo, and the
installation before it.
"""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge

import datasets
from sapwood.cli import tables

HOUSE = Path(__file__).resolve().parents[2]
EXAMPLES = HOUSE / "examples"
PAGE = (EXAMPLES / "README.md").read_text()
MAX_BYTES = 500_000
SCREEN = (25, 80)  # lines, columns
N_LINES_OF_INSTALLATION = 3  # where the output is no terminal
TABLES = {"bike_sharing": ("rentals", 17_379), "bank_marketing": ("subscribed", 41_188)}


def module(path: Path) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def section(name: str) -> str:
    """What the page says about a table."""
    return PAGE.partition(f"## {name}.csv.gz")[2].partition("\n## ")[0]


# ---- The tables ----------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_whole_and_small(name: str) -> None:
    table = datasets.example(name)
    assert {len(column) for column in table.values()} == {TABLES[name][1]}
    assert all(
        value.strip() == value != "" for column in table.values() for value in column
    )
    assert (EXAMPLES / f"{name}.csv.gz").stat().st_size < MAX_BYTES


@pytest.mark.parametrize("name", TABLES)
def test_the_page_describes_each_column(name: str) -> None:
    cells = " ".join(
        line.split("|")[1]
        for line in section(name).splitlines()
        if line.startswith("| ")
    )
    assert set(re.findall(r"`(\w+)`", cells)) == set(datasets.example(name))


@pytest.mark.parametrize("name", TABLES)
def test_the_page_says_source_licence_rows_and_changes(name: str) -> None:
    target, n_rows = TABLES[name]
    text = section(name)
    assert (
        "https://doi.org/10.24432/" in text
        and "To be cited as: " in text
        and "What was changed: " in text
    )
    assert f"{n_rows:,} " in text and f"target is `{target}`" in " ".join(text.split())
    assert "https://creativecommons.org/licenses/by/4.0/" in PAGE


@pytest.mark.parametrize("name", TABLES)
def test_the_command_line_reads_a_table_as_it_is(name: str) -> None:
    text = datasets.example(name)
    table = tables.read(EXAMPLES / f"{name}.csv.gz")
    assert table.column_names == list(text)
    for column, values in text.items():
        is_number = all(re.fullmatch(r"-?[\d.]+", value) for value in values)
        assert (str(table[column].type) in ("int64", "double")) == is_number, column


# ---- The demo ------------------------------------------------------------------------


def test_the_demo_imports_only_what_make_demo_installs() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    installed = {
        re.split(r"[><=;]", one)[0]
        for one in project["dependencies"] + project["optional-dependencies"]["cli"]
    }
    names = {"sklearn": "scikit-learn"}
    for node in ast.walk(ast.parse((EXAMPLES / "demo.py").read_text())):
        modules = (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        )
        modules += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        for name in (
            {one.partition(".")[0] for one in modules}
            - sys.stdlib_module_names
            - {"sapwood"}
        ):
            assert names.get(name, name) in installed


class ByThreads(BaseEstimator):
    """A model that depends on the number of threads, as that of other libraries may."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> "ByThreads":
        content = b"model of %d threads" % (self.n_jobs or 0)
        self.booster_ = SimpleNamespace(
            to_bytes=lambda: content, fingerprint=lambda: ""
        )
        self.chosen_ = SimpleNamespace(tried=())
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def test_the_demo_fails_where_threads_change_the_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    demo = module(EXAMPLES / "demo.py")
    with pytest.raises(SystemExit, match="another model"):
        demo.show(
            "Bikes",
            "bike_sharing",
            "rentals",
            ByThreads(),
            DummyRegressor(),
            Ridge(),
            demo.bike_scores,
        )
    assert "byte for byte" not in capsys.readouterr().out


@pytest.mark.nightly
def test_the_demo_fits_on_a_screen_and_what_it_says_holds() -> None:
    reports = [HOUSE / "build" / "demo" / f"{name}.html" for name in TABLES]
    for report in reports:
        report.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "demo.py"],
        capture_output=True,
        text=True,
        cwd=HOUSE,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    lines = done.stdout.splitlines()
    assert (
        len(lines) + N_LINES_OF_INSTALLATION <= SCREEN[0]
        and max(map(len, lines)) <= SCREEN[1]
    )
    assert not re.search("warning|Traceback|None|nan", done.stdout)

    def scores(label: str) -> list[list[float]]:
        """The two scores of a model, for either table."""
        return [
            [float(word) for word in line.split()[-2:]]
            for line in lines
            if line.startswith(f"    {label}")
        ]

    guess, linear, sapwood = (
        scores("a constant guess"),
        scores("scikit-learn's"),
        scores("Sapwood"),
    )
    assert len(guess) == len(linear) == len(sapwood) == 2
    assert all(
        mine < peer < none
        for mine, peer, none in zip(sapwood[0], linear[0], guess[0], strict=True)
    )
    assert sapwood[1][0] < linear[1][0] < guess[1][0]  # log loss
    assert sapwood[1][1] > linear[1][1] > guess[1][1] == 0.5  # AUC
    assert done.stdout.count("On 1, 2 and all threads: one model, byte for byte") == 2
    for report in reports:
        assert (
            report.stat().st_size > 100_000 and f"build/demo/{report.name}" in lines[-2]
        )
    command = lines[-1].removeprefix("Next: .venv/bin/sapwood ").split()
    assert (
        command[0] == "train"
        and (HOUSE / command[1]).exists()
        and command[3] == TABLES["bank_marketing"][0]
    )


# ---- The installation ----------------------------------------------------------------

COMPILES = """
for step in range(1, 51):
    print(f'  [{step}/50] Building CXX object CMakeFiles/_core.dir/a.cpp.o', flush=True)
"""
FAILS = (
    COMPILES
    + """
print('  FAILED: a.cpp.o')
print("  a.cpp:1:2: error: no such thing")
raise SystemExit(3)
"""
)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/install.py with a log of its own, to be run with another program in place
    of pip.
    """
    tool = module(HOUSE / "tools" / "install.py")
    monkeypatch.setattr(tool, "LOG", tmp_path / "install.log")
    monkeypatch.setattr(sys, "argv", ["install.py", "."])
    return tool


def test_an_installation_says_how_long_it_may_take_and_how_far_it_is(
    install: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(install, "PIP", [sys.executable, "-c", COMPILES])
    assert install.main() == 0
    first, half, last = capsys.readouterr().out.splitlines()
    assert "takes about a minute" in first
    assert re.fullmatch(r"  \d+:\d\d  compiling the C\+\+ core, 25 of 50 steps", half)
    assert re.fullmatch(r"Installed in \d+:\d\d minutes\.", last)
    assert len((install.LOG).read_text().splitlines()) == 50


def test_an_installation_that_fails_shows_the_error_and_keeps_the_exit_status(
    install: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(install, "PIP", [sys.executable, "-c", FAILS])
    assert install.main() == 3
    said = capsys.readouterr()
    assert "Installed" not in said.out
    assert said.err.splitlines()[:2] == [
        "  FAILED: a.cpp.o",
        "  a.cpp:1:2: error: no such thing",
    ]
    assert str(install.LOG) in said.err


def test_a_terminal_has_one_line_that_is_kept_up_to_date(
    install: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = COMPILES.replace("print(", "import time; time.sleep(0.01); print(")
    monkeypatch.setattr(install, "PIP", [sys.executable, "-c", slow])
    monkeypatch.setattr(install, "REDRAWN_EVERY", 0.01)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert install.main() == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 2 and said.count("\r") > 5
    assert re.search(
        r"\r  0:0\d  compiling the C\+\+ core, \d+ of 50 steps \.\.\.\033\[K", said
    )
