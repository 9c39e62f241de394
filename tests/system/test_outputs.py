"""What is a user's is never replaced by something else: a walk over every command and
function that writes.
"""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.cli.app import run
from sapwood.errors import ParameterError
from sapwood.report import report

ROWS = 60
# Every command that writes: its line, with OUT for the output, and the endings that an
# output may have.
COMMANDS = {
    "train": ("train table.csv -t y --rounds 2 -q -o OUT", (".sapwood",)),
    "holdout": (
        "train table.csv -t y --rounds 2 -q --save-holdout OUT",
        (".csv", ".tsv", ".parquet", ".jsonl"),
    ),
    "predict": (
        "predict model.sapwood table.csv -q -o OUT",
        (".csv", ".tsv", ".feather", ".jsonl"),
    ),
    "explain": ("explain model.sapwood table.csv -q -o OUT", (".csv", ".parquet")),
    "report": ("report model.sapwood --data table.csv -t y -q -o OUT", (".html",)),
    "convert": (
        "convert model.sapwood -q -o OUT",
        (".sapwood", ".c", ".json", ".onnx"),
    ),
    "tune": ("tune table.csv -t y --trials 1 --folds 2 -q -o OUT", (".toml",)),
}
CASES = [
    (name, ending) for name, (_, endings) in COMMANDS.items() for ending in endings
]
Call = Callable[[str], SimpleNamespace]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and a model of a user, in which commands are called."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"a": rng.normal(size=ROWS).round(4), "b": rng.normal(size=ROWS).round(4)}
    )
    rows["y"] = (rows["a"] + rng.normal(size=ROWS)).round(4)
    rows.to_csv(tmp_path / "table.csv", index=False)
    model = sw.train({"n_estimators": 3}, sw.Dataset(rows[["a", "b"]], rows["y"]))
    model.save(tmp_path / "model.sapwood")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Call:
    """Run a command in this process."""

    def do(line: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["sapwood", *line.split()])
        capfd.readouterr()
        status = run()
        out, err = capfd.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return do


def line_of(command: str, output: str) -> str:
    return COMMANDS[command][0].replace("OUT", output)


@pytest.mark.parametrize(("command", "ending"), CASES)
def test_a_table_of_a_user_stays_whatever_its_name_is(
    call: Call, folder: Path, command: str, ending: str
) -> None:
    mine = b"id,name,amount\n1,Ann,20\n2,Bob,30\n"
    victim = folder / f"victim{ending}"
    victim.write_bytes(mine)
    ended = call(line_of(command, victim.name))
    assert ended.status == 2, ended.out + ended.err
    assert "--force" in ended.err
    assert victim.read_bytes() == mine


@pytest.mark.parametrize(
    "command",
    [name for name in COMMANDS if name not in ("holdout", "predict", "explain")],
)
def test_a_name_that_ends_like_a_table_is_refused(
    call: Call, folder: Path, command: str
) -> None:
    ended = call(line_of(command, "churn.csv"))
    assert ended.status == 2, ended.out + ended.err
    assert not (folder / "churn.csv").exists()


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("train", "convert")]
)
def test_a_model_stays(call: Call, folder: Path, command: str) -> None:
    model = (folder / "model.sapwood").read_bytes()
    os.link(folder / "model.sapwood", folder / "precious.sapwood")
    ended = call(line_of(command, "precious.sapwood"))
    assert ended.status in (1, 2), ended.out + ended.err
    assert (folder / "precious.sapwood").read_bytes() == model


@pytest.mark.parametrize(("command", "ending"), CASES)
def test_a_folder_stays(call: Call, folder: Path, command: str, ending: str) -> None:
    (folder / f"mine{ending}").mkdir()
    (folder / f"mine{ending}" / "thesis.txt").write_text("years of work")
    ended = call(line_of(command, f"mine{ending}"))
    assert ended.status in (1, 2), ended.out + ended.err
    assert (folder / f"mine{ending}" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize("force", ["", " --force"])
@pytest.mark.parametrize("how", ["same", "link", "hard link"])
def test_an_input_is_no_output(
    call: Call, folder: Path, command: str, force: str, how: str
) -> None:
    taken = "model.sapwood" if command == "convert" else "table.csv"
    before = (folder / taken).read_bytes()
    output = taken
    if how != "same":
        output = f"other{Path(taken).suffix}"
        (os.symlink if how == "link" else os.link)(taken, folder / output)
    ended = call(line_of(command, output) + force)
    assert ended.status == 2, ended.out + ended.err
    assert (folder / taken).read_bytes() == before


@pytest.mark.parametrize(("command", "ending"), CASES)
def test_the_same_command_may_be_repeated(
    call: Call, folder: Path, command: str, ending: str
) -> None:
    for _ in range(2):
        ended = call(line_of(command, f"result{ending}"))
        assert ended.status == 0, ended.err
    assert (folder / f"result{ending}").stat().st_size > 0


@pytest.mark.parametrize(("command", "ending"), CASES)
def test_force_replaces_a_file_of_another_kind(
    call: Call, folder: Path, command: str, ending: str
) -> None:
    (folder / f"old{ending}").write_bytes(b"old")
    ended = call(line_of(command, f"old{ending}") + " --force")
    assert ended.status == 0, ended.err
    assert not (folder / f"old{ending}").read_bytes().startswith(b"old")


def test_held_out_rows_do_not_replace_other_rows_with_the_same_columns(
    call: Call, folder: Path
) -> None:
    rows = (folder / "table.csv").read_text().splitlines()
    (folder / "test.csv").write_text("\n".join(rows[:10]) + "\n")
    before = (folder / "test.csv").read_bytes()
    ended = call(line_of("holdout", "test.csv"))
    assert ended.status == 2
    assert (folder / "test.csv").read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        "predict model.sapwood - -q -o table.csv --force",
        "train - -t y -q -o table.csv --force",
    ],
)
def test_standard_input_is_no_output(folder: Path, line: str) -> None:
    before = (folder / "table.csv").read_bytes()
    with open(folder / "table.csv", "rb") as file:
        program = "from sapwood.cli import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", program, *line.split()],
            stdin=file,
            capture_output=True,
            text=True,
        )
    assert ended.returncode == 2, ended.stderr
    assert "standard input" in ended.stderr
    assert (folder / "table.csv").read_bytes() == before


def test_a_checkpoint_is_no_other_output(call: Call, folder: Path) -> None:
    ended = call(
        "train table.csv -t y --rounds 2 --quality none -p checkpoint=x.sapwood -o x.sapwood"
    )
    assert ended.status == 2
    assert not (folder / "x.sapwood").exists()


@pytest.mark.parametrize(
    "line",
    [
        "explain model.sapwood table.csv --row 1 -o x.csv",
        "tune table.csv -t y --trials 1 --time-limit nan",
        "tune table.csv -t y --trials 1 --time-limit 0",
        "train table.csv -t y --seed -1",
        "predict model.sapwood table.csv -o x.csv.gz --force",
        "predict model.sapwood table.csv --batch-size 99999999999999999999",
        f"train table.csv -t y -p seed={'9' * 6000}",
    ],
)
def test_what_cannot_be_done_is_refused(call: Call, folder: Path, line: str) -> None:
    before = sorted(os.listdir(folder))
    ended = call(line)
    assert ended.status == 2, ended.out + ended.err
    assert "not foreseen" not in ended.err
    assert sorted(os.listdir(folder)) == before


def test_a_name_that_no_force_can_change_is_not_offered_one(
    call: Call, folder: Path
) -> None:
    assert "--force" not in call("predict model.sapwood table.csv -o x.csv.gz").err


@pytest.mark.parametrize("force", ["no", 1, None, [0]])
def test_force_is_true_or_false(folder: Path, force: object) -> None:
    (folder / "mine.sapwood").write_bytes(b"mine")
    with pytest.raises(ParameterError, match="force"):
        writers(folder)["Booster.save"][0](folder / "mine.sapwood", force=force)
    assert (folder / "mine.sapwood").read_bytes() == b"mine"


def test_an_onnx_model_of_others_stays(folder: Path) -> None:
    (folder / "mine.onnx").write_bytes(b"onnx by me, in the folder sapwood")
    with pytest.raises(ParameterError):
        writers(folder)["Booster.export to ONNX"][0](folder / "mine.onnx")


def test_predictions_reach_a_pipe(call: Call, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    ended = call(line_of("predict", "pipe"))
    assert ended.status == 0, ended.err
    assert os.read(reader, 1 << 16).startswith(b'"prediction"\n')
    os.close(reader)
    assert (folder / "pipe").is_fifo()


# ---- Python --------------------------------------------------------------------------


def writers(folder: Path) -> dict[str, tuple[Callable[..., object], str]]:
    """Every function of Python that writes a file, and an ending of its output."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    y = X[:, 0] + rng.normal(size=ROWS)
    data = sw.Dataset(X, y)
    booster = sw.train({"n_estimators": 2}, data)
    model = sw.SapwoodRegressor(n_estimators=2).fit(X, y)
    normal = sw.SapwoodDistribution(n_estimators=2).fit(X, y)
    return {
        "Booster.save": (booster.save, ".sapwood"),
        "Booster.save_model": (booster.save_model, ".sapwood"),
        "Booster.export to C": (booster.export, ".c"),
        "Booster.export to JSON": (booster.export, ".json"),
        "Booster.export to ONNX": (booster.export, ".onnx"),
        "Booster.report": (
            lambda path, **more: booster.report(X, y, path, **more),
            ".html",
        ),
        "report": (lambda path, **more: report(booster, X, y, path, **more), ".html"),
        "Dataset.save": (data.save, ".sapwood"),
        "SapwoodRegressor.save_model": (model.save_model, ".sapwood"),
        "SapwoodDistribution.save": (normal.save, ".sapwood"),
        "SapwoodDistribution.save_model": (normal.save_model, ".sapwood"),
    }


NAMES = list(writers(Path()))


@pytest.mark.parametrize("name", NAMES)
def test_python_replaces_nothing_of_another_kind(folder: Path, name: str) -> None:
    write, ending = writers(folder)[name]
    victim = folder / f"victim{ending}"
    victim.write_bytes(b"id,name\n1,Ann\n")
    with pytest.raises(ParameterError, match="force=True"):
        write(victim)
    assert victim.read_bytes() == b"id,name\n1,Ann\n"
    write(victim, force=True)
    assert not victim.read_bytes().startswith(b"id,name")
    write(victim)  # a file of the same kind is replaced


@pytest.mark.parametrize(
    "name", [name for name in NAMES if not name.endswith("save_model")]
)
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx", ".py"])
def test_python_refuses_names_of_other_kinds(
    folder: Path, name: str, ending: str
) -> None:
    write, _ = writers(folder)[name]
    with pytest.raises(ParameterError):
        write(folder / f"new{ending}")
    assert not (folder / f"new{ending}").exists()


def test_a_model_does_not_replace_a_dataset(folder: Path) -> None:
    writers(folder)["Dataset.save"][0](folder / "x.sapwood")
    with pytest.raises(ParameterError, match="not a model"):
        writers(folder)["Booster.save"][0](folder / "x.sapwood")


def test_every_function_that_writes_is_walked() -> None:
    """Public functions with an argument that is a path to write to: new ones belong
    into `writers`.
    """
    classes = [
        value for name in sw.__all__ if inspect.isclass(value := getattr(sw, name))
    ]
    found = set()
    for owner in classes:
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if (
                not name.startswith("_")
                and "path" in inspect.signature(method).parameters
            ):
                found.add(name)
    readers = {"load_model"}
    assert found - readers == {"save", "save_model", "export", "report"}
