"""Hostile names of columns, categories, classes, titles and files: every output shows
them, and none obeys them.
"""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import unicodedata
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.data.progress import Sight
from sapwood.errors import SapwoodError

NAMES = [
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x9b2J",
    "over\rwritten",
    "back\b\b\b\bspace",
    "nul\x00byte",
    "\x7fdelete",
    "\u202egnp.exe",
    "\u2066isolate\u2069",
    "\u2028separator",
    "\u200bzero\ufeffwidth",
    "{{FOOT}}",
    "{{BODY}}",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- ",
    "*/ int evil(void) { return 1; } /*",
    "??/",
    '"]; evil [label="',
    "[link=http://evil.example]markup[/link]",
    "=cmd|'/c calc'!A1",
    "%s%n%d",
    "{0.__class__.__mro__}",
    "\\N{BULLET}\\x41\\",
    "x" * 10_000,
    " ",
    "__proto__",
    "e\u0301",
    "\u00e9",
    "line\r\nbreak\n",
    "$\\frac{$",
    "error: forged\nerror: line",
]
FORBIDDEN_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
FORBIDDEN = set(
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\u061c\u200e\u200f"
)
VOID = {"meta", "link", "img", "br", "input", "hr"}
N_ROWS = 340


def assert_shows_no_command(text: str, lines: bool = True) -> None:
    allowed = "\n\t" if lines else ""
    found = [
        one
        for one in set(text)
        if one not in allowed
        and (unicodedata.category(one) in FORBIDDEN_CATEGORIES or one in FORBIDDEN)
    ]
    assert not found, [hex(ord(one)) for one in found]


class Elements(HTMLParser):
    """The elements of a page, their attributes and its text; raises where one is not
    closed.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self.texts: list[str] = []
        self.scripts = 0
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.values += [value or "" for _, value in attrs]
        self.scripts += tag == "script"
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:50]}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """A column of numbers by each name, and one of categories that have the names."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=N_ROWS) for name in NAMES}
    table = pd.DataFrame(columns)
    table.columns = pd.Index(NAMES, dtype=object)
    table["category"] = pd.Series(
        rng.permutation(NAMES * (N_ROWS // len(NAMES))), dtype=object
    )
    return table


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> Any:
    """A regressor of which every column is part."""
    y = sum(
        (frame[name] for name in NAMES), frame["category"].str.len().clip(upper=20) / 10
    )
    params = {
        "n_estimators": 60,
        "max_depth": 4,
        "min_samples_leaf": 3,
        "categorical_features": ["category"],
    }
    return sw.SapwoodRegressor(**params).fit(frame, y)


@pytest.fixture(scope="module")
def labels(frame: pd.DataFrame) -> Any:
    return np.asarray(sum(frame[name] for name in NAMES))


@pytest.fixture(scope="module")
def classifier(frame: pd.DataFrame) -> Any:
    """A classifier of classes that have the first names."""
    codes = pd.qcut(frame[NAMES[0]], 5, labels=False)
    y = np.array([NAMES[12 + code] for code in codes], object)
    return sw.SapwoodClassifier(n_estimators=4, min_samples_leaf=3).fit(
        frame[NAMES[:6]], y
    ), y


def test_text_of_trees_and_reasons_shows_no_command(
    model: Any, frame: pd.DataFrame
) -> None:
    text = model.booster_.to_text()
    assert_shows_no_command(text)
    assert r"\x1b[31mred" in text
    assert (
        text.count("\n")
        == model.booster_.trees.n_nodes + 2 * model.booster_.trees.n_trees - 1
    )
    for row in range(20):
        reasons = model.booster_.why(frame[row : row + 1], n=8)
        assert_shows_no_command(reasons)
        assert reasons.count("\n") <= 9
    assert_shows_no_command(repr(model.booster_), lines=False)


def test_text_of_classes_shows_no_command(classifier: Any, frame: pd.DataFrame) -> None:
    fitted, _ = classifier
    assert_shows_no_command(fitted.booster_.why(frame[NAMES[:6]][:1]))


def test_what_an_automatic_fit_says_shows_no_command(
    frame: pd.DataFrame, labels: Any, capsys: Any
) -> None:
    fitted = sw.SapwoodRegressor(quality="fast", verbose=1).fit(
        frame[NAMES[:4]], labels
    )
    assert_shows_no_command(str(fitted.chosen_))
    printed = capsys.readouterr()
    assert_shows_no_command(printed.out + printed.err)


@pytest.mark.filterwarnings("ignore:Some columns are of little use")
@pytest.mark.parametrize("name", NAMES)
def test_progress_errors_and_warnings_show_no_command(
    name: str, frame: pd.DataFrame, capsys: Any
) -> None:
    table = pd.DataFrame(np.column_stack([np.zeros(N_ROWS), frame[NAMES[1]]]))
    table.columns = pd.Index([name, "other"], dtype=object)
    data = sw.Dataset(table[["other"]], frame[NAMES[0]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = sw.SapwoodRegressor(n_estimators=2).fit(table, frame[NAMES[0]])
        sw.train(
            {"n_estimators": 2},
            data,
            valid={name: data},
            callbacks=[sw.callback.progress()],
        )
    for one in caught:
        assert_shows_no_command(str(one.message), lines=False)
    assert "little use" in str(caught[0].message)
    printed = capsys.readouterr()
    assert_shows_no_command(printed.out + printed.err)
    assert printed.out.count("\n") == 2
    attempts = [
        lambda: fitted.predict(table.rename(columns={name: "another"})),
        lambda: sw.SapwoodRegressor(monotone_constraints={name + "?": 1}).fit(
            table, frame[NAMES[0]]
        ),
        lambda: sw.load(name),
        lambda: sw.train({name: 1}, data),
        lambda: fitted.booster_.importance(name),
    ]
    for attempt in attempts:
        with pytest.raises((SapwoodError, ValueError, OSError)) as error:
            attempt()
        if isinstance(error.value, SapwoodError):
            assert_shows_no_command(str(error.value), lines=False)


def test_the_report_holds_no_foreign_element(
    model: Any, frame: pd.DataFrame, labels: Any
) -> None:
    plain = pd.DataFrame({f"c{j}": frame[name] for j, name in enumerate(NAMES)})
    kind = {"n_estimators": 5, "min_samples_leaf": 3}
    usual = Elements(
        sw.SapwoodRegressor(**kind)
        .fit(plain, labels)
        .report(plain, labels, train=(plain, labels))
    )
    for title in NAMES:
        page = model.booster_.report(frame[:40], labels[:40], title=title)
        assert_shows_no_command(page)
        found = Elements(page)
        assert found.tags <= usual.tags | {"small", "strong"}
        assert found.attributes <= usual.attributes
        assert found.scripts == 1
    page = model.booster_.report(frame, labels, train=(frame, labels), title="{{BODY}}")
    found = Elements(page)
    assert found.texts.count("{{BODY}}") >= 2
    assert page.count("The page loads nothing from anywhere") == 1
    assert not [value for value in found.values if value.startswith("javascript:")]


def test_the_report_of_classes_holds_no_foreign_element(
    classifier: Any, frame: pd.DataFrame
) -> None:
    fitted, y = classifier
    page = fitted.report(frame[NAMES[:6]], y, title=NAMES[14])
    assert_shows_no_command(page)
    found = Elements(page)
    assert found.scripts == 1
    assert "img" not in found.tags


def test_what_notebooks_show_holds_no_foreign_element(
    model: Any, classifier: Any, frame: pd.DataFrame
) -> None:
    shown = [
        model.booster_,
        classifier[0].booster_,
        sw.Dataset(frame),
        model.booster_.explain(frame[:30]),
    ]
    for one in shown:
        page = one._repr_html_()
        assert_shows_no_command(page)
        found = Elements(page)
        assert found.tags <= {"div", "strong", "table", "tr", "td", "em", "span"}
        assert found.attributes <= {"style"}


def test_the_c_source_compiles_and_has_every_name_as_a_string(
    model: Any, tmp_path: Path
) -> None:
    source = tmp_path / "model.c"
    model.booster_.export(source)
    assert_shows_no_command(source.read_text())
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    assert compiler is not None
    main = (
        "#include <stdio.h>\n"
        f"extern const char* const model_features[{len(NAMES) + 1}];\n"
        f"int main(void) {{ for (int j = 0; j < {len(NAMES)}; j++) puts(model_features[j]); return 0; }}\n"
    )
    (tmp_path / "main.c").write_text(main)
    files = [str(source), str(tmp_path / "main.c")]
    warned = ["-std=c99", "-Wall", "-Werror", "-trigraphs"]
    subprocess.run(
        [compiler, *warned, *files, "-o", str(tmp_path / "run"), "-lm"], check=True
    )
    printed = subprocess.run(
        [tmp_path / "run"], capture_output=True, check=True
    ).stdout.decode()
    # C ends a string at NUL
    wanted = "".join(name.partition("\0")[0] + "\n" for name in NAMES)
    assert printed == wanted


def test_onnx_is_valid_and_keeps_the_categories(model: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    model.booster_.export(path)
    read = onnx.load(str(path))
    onnx.checker.check_model(read)
    kept = json.loads({one.key: one.value for one in read.metadata_props}["categories"])
    assert set(next(iter(kept.values()))) == set(NAMES)


def test_xgboost_json_keeps_the_names(
    frame: pd.DataFrame, labels: Any, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    sw.train({"n_estimators": 2}, sw.Dataset(frame[NAMES], labels)).export(path)
    assert path.read_bytes().isascii()
    document = json.loads(path.read_text())
    assert document["learner"]["feature_names"] == NAMES


def test_a_file_of_ours_keeps_names_categories_and_classes(
    model: Any, classifier: Any, tmp_path: Path
) -> None:
    path = tmp_path / "model.sapwood"
    model.booster_.save(path)
    read = sw.load(path)
    assert read.feature_names == (*NAMES, "category")
    assert set(read.categories[len(NAMES)].values) == set(NAMES)
    classes = sw.load(classifier[0].booster_.to_bytes()).classes
    assert set(classes.tolist()) == set(NAMES[12:17])


def test_frames_of_nodes_keep_the_names(model: Any) -> None:
    features = set(model.booster_.to_frame()["feature"].dropna())
    assert features <= {*NAMES, "category"}
    assert len(features) > len(NAMES) // 2


@pytest.mark.filterwarnings("ignore:Glyph")
def test_plots_draw_names_as_plain_text(
    model: Any, classifier: Any, frame: pd.DataFrame
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    told = model.booster_.explain(frame[:60])
    fitted, y = classifier
    few = frame[NAMES[:6]]
    one_class = str(y[0])
    plots = [
        lambda: sw.plot.importance(model, max_columns=60),
        lambda: sw.plot.beeswarm(told, max_columns=60),
        lambda: sw.plot.waterfall(told, max_columns=60),
        lambda: sw.plot.tree(model),
        lambda: sw.plot.partial_dependence(model, frame[:30], "category"),
        lambda: sw.plot.partial_dependence(model, frame[:30], [NAMES[0], "category"]),
        lambda: sw.plot.category_effects(model, frame[:30], "category"),
        *[
            lambda name=name: sw.plot.dependence(told, name, "category")
            for name in NAMES
        ],
        lambda: sw.plot.calibration(fitted, few, y, output=one_class),
        lambda: sw.plot.roc(fitted, few, y, output=one_class),
        lambda: sw.plot.precision_recall(fitted, few, y, output=one_class),
        lambda: sw.plot.confusion_matrix(fitted, few, y),
        lambda: sw.plot.tree(fitted),
        lambda: sw.plot.beeswarm(fitted.booster_.explain(few), output=one_class),
        lambda: sw.plot.waterfall(fitted.booster_.explain(few), output=one_class),
    ]
    for draw in plots:
        figure = draw().figure
        figure.canvas.draw()  # a formula that cannot be read would raise here
        for text in figure.findobj(matplotlib.text.Text):
            assert_shows_no_command(text.get_text())
            assert len(text.get_text()) < 400
            assert text.get_text().count("$") == text.get_text().count(r"\$")
        plt.close(figure)


@pytest.mark.parametrize("name", NAMES)
def test_live_progress_obeys_no_markup(name: str) -> None:
    pytest.importorskip("rich")
    from sapwood.cli.show import _Lines, _Live

    live = _Live()
    output = io.StringIO()
    live.bar.live.console.file = output
    live.title = name
    with live:
        live.see(Sight(name, 1, 10, {name: 0.5}))
    assert "\x1b]" not in output.getvalue()
    assert_shows_no_command(live.bar.tasks[0].description, lines=False)
    assert_shows_no_command(
        live.best.text(Sight(name, 1, 10, {name: 0.5})), lines=False
    )
    rendered = live.bar.columns[0].render(live.bar.tasks[0])
    assert rendered.plain == live.bar.tasks[0].description
    lines = _Lines()
    lines.title = name
    assert_shows_no_command(lines.named(Sight(name, 1, 10, {})), lines=False)


# ---- The command line ----------------------------------------------------------------


@dataclass
class Ended:
    """What a command has printed, and its status."""

    status: int
    stdout: str
    stderr: str


def run(*arguments: object, folder: Path) -> Ended:
    """Run a command in this process, as the program does."""
    from sapwood.cli.app import run as run_command

    out, error = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True)
        for _ in range(2)
    )
    before = sys.argv
    sys.argv = ["sapwood", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(error), chdir(folder):
            status = run_command()
    finally:
        sys.argv = before
    ended = Ended(status, *(one.buffer.getvalue().decode() for one in (out, error)))  # type: ignore[attr-defined]
    assert "Traceback" not in ended.stderr
    assert "not foreseen" not in ended.stderr
    return ended


@pytest.fixture(scope="module")
def folder(
    frame: pd.DataFrame, labels: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A table in Parquet, whose columns and cells are hostile, and a model of it."""
    path = tmp_path_factory.mktemp("hostile")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = {name: frame[name] for name in NAMES} | {
        "category": frame["category"].tolist(),
        "target": labels,
    }
    table["klass"] = [NAMES[12 + row % 5] for row in range(N_ROWS)]
    parquet.write_table(pyarrow.table(table), path / "data.parquet")
    drop = ["--drop", "klass"]
    made = run(
        "train",
        "data.parquet",
        "-t",
        "target",
        *drop,
        "--rounds",
        20,
        "-o",
        "m.sapwood",
        folder=path,
    )
    assert made.status == 0, made.stderr
    drop = ["--drop", "target"]
    made = run(
        "train",
        "data.parquet",
        "-t",
        "klass",
        *drop,
        "--rounds",
        3,
        "-o",
        "c.sapwood",
        folder=path,
    )
    assert made.status == 0, made.stderr
    return path


@pytest.mark.parametrize(
    "line",
    [
        (
            "train",
            "data.parquet",
            "-t",
            "target",
            "--drop",
            "klass",
            "--quality",
            "fast",
            "--time-limit",
            "3",
        ),
        (
            "train",
            "data.parquet",
            "-t",
            "klass",
            "--drop",
            "target",
            "--rounds",
            "3",
            "--folds",
            "2",
        ),
        ("evaluate", "m.sapwood", "data.parquet", "-t", "target"),
        ("evaluate", "c.sapwood", "data.parquet", "-t", "klass"),
        ("explain", "m.sapwood", "data.parquet", "--row", "0"),
        ("explain", "m.sapwood", "data.parquet", "--top", "60"),
        ("inspect", "m.sapwood", "--top", "60"),
        ("inspect", "c.sapwood"),
        ("inspect", "m.sapwood", "--tree", "0"),
        (
            "report",
            "m.sapwood",
            "--data",
            "data.parquet",
            "-t",
            "target",
            "-o",
            "r.html",
        ),
        ("report", "m.sapwood", "--data", "data.parquet", "-o", "r.html"),
    ],
)
def test_commands_print_no_command_of_a_terminal(
    folder: Path, line: tuple[str, ...]
) -> None:
    for more in ((), ("--json",)):
        ended = run(*line, *more, folder=folder)
        assert_shows_no_command(ended.stdout + ended.stderr)
        if more:
            text = ended.stdout or ended.stderr
            assert text.isascii()
            json.loads(text)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in NAMES
        if "\0" not in name and "/" not in name and len(name) < 200
    ],
)
def test_file_names_reach_the_terminal_as_text(folder: Path, name: str) -> None:
    lines = [
        ("inspect", name),
        ("inspect", "m.sapwood", name),
        ("predict", "m.sapwood", f"{name}.csv"),
        ("train", "data.parquet", "-t", name + "?", "--drop", "klass"),
    ]
    for line in lines:
        ended = run(*line, folder=folder)
        assert ended.status
        assert_shows_no_command(ended.stdout + ended.stderr)
        assert not re.search(r"^error: line", ended.stderr, re.MULTILINE)


def test_a_written_file_with_a_hostile_name_is_named_as_text(folder: Path) -> None:
    for name in ("\x1b[31mred.csv", "two\nlines.csv"):
        ended = run("predict", "m.sapwood", "data.parquet", "-o", name, folder=folder)
        assert ended.status == 0, ended.stderr
        assert_shows_no_command(ended.stdout + ended.stderr)
        assert ended.stdout.count("\n") == 1


def test_predictions_in_csv_keep_names_and_classes(folder: Path) -> None:
    ended = run(
        "predict",
        "c.sapwood",
        "data.parquet",
        "--proba",
        "--keep",
        "category",
        "-o",
        "p.csv",
        folder=folder,
    )
    assert ended.status == 0, ended.stderr
    with open(folder / "p.csv", newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    assert header[:2] == ["category", "prediction"]
    assert {row[0] for row in rows} == set(NAMES)
    assert {row[1] for row in rows} <= set(NAMES[12:17])
    assert set(header[2:]) == {f"probability_{name}" for name in NAMES[12:17]}


def test_predictions_in_json_lines_are_ascii_and_keep_names(folder: Path) -> None:
    ended = run(
        "predict",
        "c.sapwood",
        "data.parquet",
        "--keep",
        "category",
        "-o",
        "p.jsonl",
        folder=folder,
    )
    assert ended.status == 0, ended.stderr
    raw = (folder / "p.jsonl").read_bytes()
    assert raw.isascii()
    assert {json.loads(line)["category"] for line in raw.decode().splitlines()} == set(
        NAMES
    )
