"""The command line as people and scripts use it: a terminal, pipes, Ctrl-C, other
processes.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PROGRAM = [sys.executable, "-m", "sapwood"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4000, 6)), columns=list("abcdef"))
    X["y"] = X["a"] * X["b"] + rng.normal(0, 0.1, 4000)
    path = tmp_path_factory.mktemp("line") / "data.csv"
    X.to_csv(path, index=False)
    return path


def test_results_go_to_stdout_and_the_rest_to_stderr(
    table: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.sapwood"
    line = [
        *PROGRAM,
        "train",
        table,
        "--target",
        "y",
        "-o",
        model,
        "--rounds",
        "20",
        "--json",
    ]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (
        done.returncode == 0
        and done.stderr == ""
        and json.loads(done.stdout)["model"] == str(model)
    )
    head = subprocess.Popen(
        [*PROGRAM, "predict", model, table],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert head.stdout is not None and head.stderr is not None
    assert head.stdout.readline() == b'"prediction"\n'
    head.stdout.close()  # as `head` does
    head.wait(30)
    assert b"Traceback" not in head.stderr.read()
    head.stderr.close()


@pytest.mark.nightly
def test_a_terminal_sees_progress_and_then_the_result(table: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    line = [
        "-m",
        "sapwood",
        "train",
        str(table),
        "-t",
        "y",
        "-p",
        "n_estimators=3000",
        "-p",
        "early_stopping_rounds=500",
    ]
    child = pexpect.spawn(
        sys.executable, line, encoding="utf-8", timeout=120, dimensions=(24, 150)
    )
    child.expect("task: regression")
    child.expect(r"training .*/3000 .*/s .*rmse \d.*best \d")
    child.expect("constant guess")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.nightly
def test_elsewhere_a_line_every_few_seconds(table: Path) -> None:
    line = [
        *PROGRAM,
        "train",
        table,
        "-t",
        "y",
        "--rounds",
        "60000",
        "--time-limit",
        "1",
        "-p",
        "max_depth=8",
    ]
    done = subprocess.run(
        [*PROGRAM, "train", table, "-t", "y", "--rounds", "5000"],
        capture_output=True,
        text=True,
    )
    assert (
        done.returncode == 0 and "\r" not in done.stderr and "\x1b" not in done.stderr
    )
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 2 and "time_limit is for an automatic fit" in done.stderr


@pytest.mark.nightly
def test_ctrl_c_ends_it_and_writes_nothing(table: Path, tmp_path: Path) -> None:
    line = [
        *PROGRAM,
        "train",
        table,
        "-t",
        "y",
        "--rounds",
        "1000000",
        "-o",
        tmp_path / "m.sapwood",
    ]
    child = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None and child.stderr.readline()  # it has begun
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130 and "interrupted" in err and "Traceback" not in err
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_doctor_checks_the_promise() -> None:
    done = subprocess.run(
        [*PROGRAM, "doctor", "--json"], capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert (
        done.returncode == 0
        and found["promise_kept"] is True
        and found["packages"]["numpy"]
    )


@pytest.mark.nightly
def test_a_time_limit_holds_roughly(table: Path) -> None:
    start = time.monotonic()
    line = [
        *PROGRAM,
        "train",
        table,
        "-t",
        "y",
        "--quality",
        "best",
        "--time-limit",
        "3",
        "--json",
    ]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (
        done.returncode == 0
        and json.loads(done.stdout)["seconds"] < 12
        and time.monotonic() - start < 40
    )


@pytest.mark.nightly
def test_tune_with_optuna(table: Path) -> None:
    pytest.importorskip("optuna")
    line = [
        *PROGRAM,
        "tune",
        table,
        "-t",
        "y",
        "--trials",
        "7",
        "--folds",
        "2",
        "-p",
        "n_estimators=40",
    ]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (
        done.returncode == 0
        and "search: Optuna" in done.stderr
        and "best of" in done.stdout
    )
