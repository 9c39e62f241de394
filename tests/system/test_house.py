"""The house keeps its own rules: rooms, sizes, replayed models, and documents that say
what is there.
"""

import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import sapwood
from sapwood import metric
from sapwood.device import host
from sapwood.params import TABLE, resolve

HOUSE = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
# no examples
REFERENCE = {
    f"docs/{name}.md"
    for name in ("ARCHITECTURE", "CONTRIBUTING", "GLOSSARY", "NUMERICS")
}
PAGES = sorted(
    {str(page.relative_to(HOUSE)) for page in HOUSE.glob("docs/**/*.md")} - REFERENCE
)
# No Python; other tests run the commands.
SHELL = {"docs/command_line.md", "docs/api/parameters.md", "docs/defaults_evidence.md"}
SLOW = {page for page in PAGES if page.startswith(("docs/losses/", "docs/peers/"))}
SLOW |= {
    f"docs/{page}.md"
    for page in (
        "convert",
        "ordered",
        "plotting",
        "survival",
        "ranking",
        "intervals",
        "guides",
        "distributions",
    )
}
TARGETS = set(
    re.findall(r"^([a-z-]+):", (HOUSE / "Makefile").read_text(), re.MULTILINE)
)


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HOUSE / "tools"))
    return importlib.import_module("rooms")


TOOLS = [
    ["rooms.py"],
    ["size.py"],
    ["replay.py", "--check"],
    ["combinations.py", "--check"],
    ["docs.py", "--check"],
]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool[0])
def test_tool_has_nothing_to_say(tool: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, HOUSE / "tools" / tool[0], *tool[1:]],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        ("data/new.py", "from sapwood.boost import train", "data imports boost"),
        ("metric.py", "import sapwood.objective", "metric imports objective"),
        (
            "model/new.py",
            "def f():\n    from sapwood.boost import x",
            "model imports boost",
        ),
        ("data/new.py", "from . import ingest", "relative import"),
        ("boost/new.py", "from sapwood._core import Trainer", "only device/ does"),
        ("boost/new.py", "from sapwood.device import cpu", "device.get(name)"),
        ("boost/new.py", "import pandas as pd", "touch table libraries"),
        ("model/text.py", "import polars", "inside the function"),
        ("attic.py", "", "not in the order of rooms"),
    ],
)
def test_rooms_sees_a_wrong_import(
    rooms: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    source: str,
    complaint: str,
) -> None:
    monkeypatch.setattr(rooms, "PACKAGE", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert complaint in str(list(rooms.check_python(path)))


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        ("math/new.h", "#include <cmath>", "includes cmath"),
        ("objective/new.h", '#include "../cpu/pool.h"', "includes ../cpu/pool.h"),
        ("cpu/new.h", "#include <nanobind/nanobind.h>", "only core/bind knows Python"),
        ("cpu/new.cpp", "#pragma omp parallel for", "OpenMP"),
        ("cpu/new.cpp", "double x = std::exp(1.0);", "libm"),
        ("cpu/new.cpp", "std::mt19937 stream;", "hash.h"),
        ("cpu/kernels/new.h", "#include <vector>", "memory that others own"),
        ("records/new.h", "#include <mutex>", "plain values"),
        (
            "bind/new.cpp",
            "std::sort(rows.begin(), rows.end());",
            "what computes stands in cpu/",
        ),
    ],
)
def test_rooms_sees_a_wrong_line(
    rooms: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    source: str,
    complaint: str,
) -> None:
    monkeypatch.setattr(rooms, "CORE", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert complaint in str(list(rooms.check_native(path)))


@pytest.mark.parametrize(
    ("name", "include", "complaint"),
    [
        ("records/new.h", "host/pool.h", "records includes host/pool.h"),
        ("cpu/kernels/new.h", "cpu/data/binned.h", "a later room's"),
        ("cpu/grow/new.h", "cpu/trainer.h", "a later room's"),
        ("cpu/predict/new.cpp", "cpu/grow/growth.h", "a later room's"),
        ("cpu/rows/new.h", "select.h", "not in a room"),
        ("cpu/rows/new.h", "cuda/rows/select.h", "the devices do not know each other"),
        ("cuda/trainer.cpp", "cpu/rows/select.h", "the devices do not know each other"),
        ("cuda/kernels/new.h", "cuda/data/binned.h", "a later room's"),
    ],
)
def test_rooms_sees_a_wrong_include(
    rooms: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    include: str,
    complaint: str,
) -> None:
    monkeypatch.setattr(rooms, "CORE", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(f'#include "{include}"\n#include "math/types.h"\n')
    assert [line for line, _ in rooms.check_native(path)] == [1]
    assert complaint in str(list(rooms.check_native(path)))


@pytest.fixture
def size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(HOUSE / "tools"))
    module = importlib.import_module("size")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


STEPS = "\n".join(["    step();"] * 151)  # 604 tokens
LINES = "\n".join(["    x = 1"] * 200)  # 600 tokens, and the head of the function
MEMBERS = "\n".join(f"    double x{n}, y{n} = 1.0;" for n in range(11))
FIELDS = "\n".join(f"    x{n}: float" for n in range(21))


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        ("new.py", f"def f():\n{LINES}\n", "f has 605 tokens"),
        ("new.py", "x = 1\n" * 1667, "5,001 tokens"),
        ("new.py", f"class A:\n{FIELDS}\n", "A has 21 data members"),
        (
            "new.py",
            "class A:\n    def f(self):\n"
            + "\n".join(f"        self.x{n} = {n}" for n in range(21)),
            "A has 21 data members",
        ),
        ("new.h", f"inline void f() {{\n{STEPS}\n}}\n", "f has 611 tokens"),
        (
            "new.cpp",
            f"namespace n {{\nvoid A::f(int x) const {{\n{STEPS}\n}}\n}}\n",
            "A::f has 615 tokens",
        ),
        (
            "new.cu",
            f"template <class T>\n__global__ void f(T x) {{\n{STEPS}\n}}\n",
            "f has 618 tokens",
        ),
        ("new.h", f"struct A {{\n{MEMBERS}\n}};\n", "A has 22 data members"),
        (
            "new.h",
            f"template <class T>\nclass A : public B<T> {{\n{MEMBERS}\n}};\n",
            "A has 22 data members",
        ),
    ],
)
def test_size_sees_what_is_too_large(
    size: ModuleType, name: str, source: str, complaint: str
) -> None:
    path = size.ROOT / name
    path.write_text(source)
    found = list(size.excesses(path))
    assert len(found) == 1 and complaint in found[0]


@pytest.mark.parametrize(
    ("source", "n_tokens"),
    [
        ("x = 1\n", 3),
        ('"""A docstring."""\nx: dict[str, int] = {}  # a comment\n', 5),
        ("def f(a: int, *, b: str = '') -> list[int]:\n    return g(a)\n", 20),
        ('x = f"{a + 1} and {b}"\n', 11),
    ],
)
def test_comments_docstrings_and_annotations_are_free(
    size: ModuleType, source: str, n_tokens: int
) -> None:
    assert len(size.python_tokens(source)) == n_tokens


def test_size_sees_no_more_than_there_is(size: ModuleType) -> None:
    """Neither values in braces, nor methods, types, constants and the fields of inner
    classes are members.
    """
    inner = (
        "struct Inner {\n"
        + "".join(f"    std::map<int, int> m{n};\n" for n in range(20))
        + "  };\n"
    )
    path = size.ROOT / "new.h"
    path.write_text(
        f"struct A {{\n  {inner}{inner}  Inner a{{1, 2}};\n  std::function<void(int, int)> f = nullptr;\n"
        + "  static constexpr int x = 1, y = 2;\n  using T = int;\n  int g(int, int) const;\n"
        * 9
        + "  int h() const { return {1, 2}; }\n  std::vector<int> b = {1, 2, 3}, c;\n};"
    )
    assert list(size.excesses(path)) == []
    assert [(name, n) for _, name, n in size.native_members(path.read_text())] == [
        ("Inner", 20),
        ("Inner", 20),
        ("A", 4),
    ]


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HOUSE / "tools"))
    return importlib.import_module("replay")


def test_replay_names_the_first_node_that_differs(replay: ModuleType) -> None:
    X = np.arange(200.0).reshape(100, 2)
    data = sapwood.Dataset(X, (X[:, 0] > 60) + 0.1 * (X[:, 0] > 100))
    old = sapwood.train({"n_estimators": 2, "max_leaves": 2}, data)
    same = sapwood.train({"n_estimators": 2, "max_leaves": 2}, data)
    deeper = sapwood.train({"n_estimators": 2, "max_leaves": 3}, data)
    more = sapwood.train({"n_estimators": 3, "max_leaves": 2}, data)
    assert (
        replay.difference(old, same)
        == "the trees are the same; parameters that differ: none"
    )
    assert replay.difference(old, deeper).startswith("tree 0: node ")
    assert (
        replay.difference(old, more)
        == "there were 2 trees and there are 3; those of both are the same"
    )


def test_no_test_file_imports_another_one() -> None:
    for path in (HOUSE / "tests").rglob("*.py"):
        assert not re.search(
            r"^ *(from|import) .*\btest_", path.read_text(), re.MULTILINE
        ), path


def test_no_stray_file_at_the_root() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=HOUSE, capture_output=True, text=True, check=False
    )
    if listed.returncode or not (HOUSE / ".git").exists():
        pytest.skip("not a clone of the repository")
    known = {
        ".ci",
        ".clang-format",
        ".git-blame-ignore-revs",
        ".github",
        ".gitignore",
        "CHANGELOG.md",
        "CMakeLists.txt",
        "LICENSE",
        "Makefile",
    }
    known |= {
        "README.md",
        "SECURITY.md",
        "benchmarks",
        "changes",
        "docs",
        "examples",
        "mkdocs.yml",
        "pyproject.toml",
    }
    known |= {"src", "tests", "tools"}
    assert {name.split("/")[0] for name in listed.stdout.splitlines()} <= known


def test_import_is_light() -> None:
    loaded = "import sys, sapwood; print(*sys.modules)"
    names = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"pandas", "polars", "pyarrow", "matplotlib", "sklearn"} & set(names)


def test_version_is_the_package_s() -> None:
    assert (
        sapwood.__version__
        == importlib.metadata.version("sapwood")
        == PROJECT["version"]
    )


def test_public_names_exist_and_are_documented() -> None:
    for name in sapwood.__all__:
        thing = getattr(sapwood, name)
        if callable(thing):
            assert inspect.getdoc(thing), name


@pytest.mark.parametrize(
    "estimator", ["SapwoodClassifier", "SapwoodRegressor", "SapwoodRanker"]
)
def test_every_parameter_is_documented(estimator: str) -> None:
    doc = inspect.getdoc(getattr(sapwood, estimator)) or ""
    for row in TABLE:
        assert row.doc.endswith("."), row.name
        if row.estimator and (estimator == "SapwoodRanker" or not row.ranking):
            assert re.search(rf"^{row.name} : ", doc, re.MULTILINE), row.name


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "benchmarks/README.md",
        ".ci/run",
        "CHANGELOG.md",
        *sorted(REFERENCE),
        *PAGES,
    ],
)
def test_commands_and_files_named_in_documents_exist(page: str) -> None:
    text = (HOUSE / page).read_text()
    assert (
        set(re.findall(r"(?:^|`|exec )make ([a-z-]+)", text, re.MULTILINE)) <= TARGETS
    )
    for link in re.findall(r"\]\((?!https:)([^)#]+)", text):
        assert (HOUSE / page).parent.joinpath(link).exists(), link
    for path in re.findall(
        r"`((?:src|tests|tools|benchmarks|docs|examples)/[\w./]+)`", text
    ):
        assert (HOUSE / path).exists(), path


@pytest.mark.parametrize("page", ["docs/ARCHITECTURE.md", "docs/GLOSSARY.md"])
def test_sources_named_in_documents_exist(page: str) -> None:
    """Paths below src/sapwood, and those from the root of the project."""
    paths = re.findall(r"`([a-z_]+/[\w./]*)`", (HOUSE / page).read_text())
    assert len(paths) > 50
    assert [
        path
        for path in paths
        if not any((root / path).exists() for root in (HOUSE, HOUSE / "src/sapwood"))
    ] == []


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.nightly if page in SLOW else ())
        for page in ["README.md", *(page for page in PAGES if page not in SHELL)]
    ],
)
def test_examples_run_and_print_what_the_page_says(page: str, tmp_path: Path) -> None:
    """The blocks of a page are one script; what it prints is in the page, as the same
    model is on every machine.
    """
    text = (HOUSE / page).read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    assert code
    if "import jax" in code:
        pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for number in re.findall(r"\d+\.\d+", done.stdout):
        assert number in text, done.stdout


def test_table_of_formulas() -> None:
    """Every file and test of the table exists, and every line runs."""
    text = (HOUSE / "docs/how_it_works.md").read_text()
    rows = [
        line.split(" | ")
        for line in text.splitlines()
        if line.startswith("| ") and "`src/sapwood/" in line
    ]
    assert len(rows) >= 25
    names: dict[str, object] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), names)
    for *_, line in rows:
        exec(line.strip(" |`"), names)


@pytest.mark.nightly
def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the extra docs is not installed")
    line = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        tmp_path,
    ]
    done = subprocess.run(line, cwd=HOUSE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "<math" in (tmp_path / "how_it_works.html").read_text()


def test_table_of_losses() -> None:
    """Every name in a row is one that `objective` takes, and the metric is the
    core's.
    """
    rows = [
        line.split("|")[1:-1]
        for line in (HOUSE / "docs/losses/README.md").read_text().splitlines()
    ]
    found = {}
    for ours, *peers, _, measured in (
        row for row in rows if len(row) == 6 and "`" in row[0]
    ):
        name = ours.strip(" `")
        for other in re.findall(r"`([^`]+)`", " ".join([ours, *peers])):
            assert resolve({"objective": other})["objective"] == name, other
        found[name] = measured.strip(" `")
    assert (
        found
        and found.items()
        <= {name: about["metric"] for name, about in host.objectives().items()}.items()
    )


def test_table_of_metrics() -> None:
    """Every metric is there, with its direction, the predictions it suits, and names
    that lead to it.
    """
    words = {
        "numbers": metric.VALUE,
        "probability": metric.BINARY,
        "classes": metric.CLASSES,
        "guesses": metric.STEP,
    }
    words["scores"] = ("identity",)
    found = set()
    for line in (HOUSE / "docs/metrics.md").read_text().splitlines():
        if not line.startswith("| `") or "eval_metric" in line:
            continue
        ours, _, better, predictions, peers = line.split("|")[1:-1]
        name, _, parameter = ours.strip(" `").partition("@")
        one = metric.METRICS[name]
        assert (better.strip() == "higher", bool(parameter)) == (
            one.higher_is_better,
            one.parameter is not None,
        ), name
        assert {
            link for word in predictions.split(",") for link in words[word.strip()]
        } == set(one.links), name
        for peer in re.findall(r"`([^`]+)`", peers):
            assert (
                metric.resolve(peer, default=name, link=one.links[-1])[0].name == name
            ), peer
        found.add(name)
    assert found == metric.METRICS.keys()


def test_a_new_loss_is_shown_whole() -> None:
    header = HOUSE / "src/sapwood/core/objective/log_cosh.h"
    assert (
        f"```cpp\n{header.read_text()}```"
        in (HOUSE / "docs/losses/README.md").read_text()
    )


def test_required_dependencies_are_the_three() -> None:
    required = {re.split(r"[<>=]", wanted)[0] for wanted in PROJECT["dependencies"]}
    assert required == {"numpy", "scikit-learn", "narwhals"}
