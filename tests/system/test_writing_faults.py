"""Kills and faults of disks while files are written: the old file or the new one, never
neither.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from sapwood.system.writing import LEFTOVER

FAULTS = Path(__file__).parent / "faults"
sys.path.insert(0, str(FAULTS))
import writers  # noqa: E402

KILLS = {
    "predict": ".csv",
    "explain": ".csv",
    "convert": ".c",
    "report": ".html",
    "train": ".sapwood",
}
N_KILLS = 20  # of each command


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A table and models, which everybody may read."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made)
        path.chmod(0o755)
        writers.prepare(path)
        yield path


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that another user may reach; that of pytest belongs to one user
    alone.
    """
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def sapwood(*words: str) -> "subprocess.Popen[str]":
    program = "import sys; from sapwood.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def leftovers(path: Path) -> list[str]:
    return [name for name in os.listdir(path) if LEFTOVER.fullmatch(name)]


# ---- kill -9 -------------------------------------------------------------------------


def kill_while_writing(
    words: list[str], path: Path, share: float, seconds: float
) -> bool:
    """Kill a command at a share of the time that it takes to write; whether it was
    writing when it was killed.
    """
    process = sapwood(*words)
    while process.poll() is None and not leftovers(path.parent):
        time.sleep(0.0005)
    time.sleep(share * seconds)
    was_writing = bool(leftovers(path.parent)) and process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return was_writing


def seconds_to_write(words: list[str], path: Path) -> float:
    """How long the new file of a command is there before it gets its name."""
    process = sapwood(*words)
    first = last = 0.0
    while process.poll() is None:
        if leftovers(path.parent):
            last = time.monotonic()
            first = first or last
        time.sleep(0.0005)
    _, err = process.communicate()
    assert process.returncode == 0, err
    return last - first


def check_kills(folder: Path, tmp_path: Path, name: str, times: int) -> int:
    """Kill a command while it replaces an old file; how often it was writing just
    then.
    """
    path = tmp_path / f"out{KILLS[name]}"
    words = writers.command(name, folder, path)
    seconds = seconds_to_write(words, path)
    old = path.read_bytes()
    draw = Random(name)
    hits = 0
    for _ in range(times):
        hits += kill_while_writing(words, path, draw.random(), seconds)
        assert same_file(path.read_bytes(), old)
        for name_ in leftovers(tmp_path):
            os.utime(tmp_path / name_, (1, 1))
    process = sapwood(*words)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert os.listdir(tmp_path) == [path.name]
    assert same_file(path.read_bytes(), old)
    return hits


def test_a_killed_prediction_leaves_the_old_table(folder: Path, tmp_path: Path) -> None:
    assert check_kills(folder, tmp_path, "predict", 3) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(KILLS))
def test_a_killed_command_leaves_the_old_file(
    folder: Path, tmp_path: Path, name: str
) -> None:
    print(
        f"{name}: {check_kills(folder, tmp_path, name, N_KILLS)} of {N_KILLS} kills hit the writing"
    )


# ---- Faults of disks -----------------------------------------------------------------


def write_in_child(
    name: str,
    folder: Path,
    path: Path,
    user: str = "",
    before: Callable[[], object] | None = None,
) -> "subprocess.Popen[bytes]":
    """Write by a function of Python in a child: as another user, or where something is
    done before.
    """
    return subprocess.Popen(
        [
            sys.executable,
            str(FAULTS / "writers.py"),
            name,
            str(folder),
            str(path),
            user,
        ],
        preexec_fn=before,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def error_of(process: "subprocess.Popen[bytes]") -> str:
    """The last line of a child's error."""
    _, err = process.communicate(timeout=120)
    lines = err.decode(errors="replace").strip().splitlines()
    return lines[-1] if process.returncode else ""


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))


def old_file(folder: Path, path: Path, name: str) -> bytes:
    """Make the file that a writer will replace, and return its bytes."""
    error = error_of(write_in_child(name, folder, path))
    assert not error, error
    return path.read_bytes()


def same_file(new: bytes, old: bytes) -> bool:
    """Whether two files have the same beginning and end; a report says in its middle
    how many seconds it took.
    """
    return new[:10_000] == old[:10_000] and new[-1000:] == old[-1000:]


ENDINGS = {"save": ".sapwood", "export": ".c", "html": ".html", "dataset": ".sapwood"}
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user"
)
DAILY = ("save",)
WRITERS = [
    pytest.param(name, marks=() if name in DAILY else pytest.mark.nightly)
    for name in ENDINGS
]


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(
    folder: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"out{ENDINGS[name]}"
    old = old_file(folder, path, name)
    error = error_of(write_in_child(name, folder, path, before=limit_files))
    assert "OSError" in error and str(path) in error, error
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_nothing_new(
    folder: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"out{ENDINGS[name]}"
    error = error_of(write_in_child(name, folder, path, before=limit_files))
    assert "OSError" in error and str(path) in error, error
    assert os.listdir(tmp_path) == []


@AS_ROOT
@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_is_read_only_leaves_the_old_file(
    folder: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"out{ENDINGS[name]}"
    old = old_file(folder, path, name)
    path.chmod(0o666)
    tmp_path.chmod(0o555)
    error = error_of(write_in_child(name, folder, path, "nobody"))
    assert "PermissionError" in error and str(path) in error, error
    assert path.read_bytes() == old


@AS_ROOT
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_another_user_that_is_read_only_stays(
    folder: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"out{ENDINGS[name]}"
    old = old_file(folder, path, name)
    path.chmod(0o444)
    tmp_path.chmod(0o777)
    error = error_of(write_in_child(name, folder, path, "nobody"))
    assert "PermissionError" in error, error
    assert path.read_bytes() == old


@AS_ROOT
@pytest.mark.parametrize("name", WRITERS)
def test_the_leftover_of_another_user_stays(
    folder: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"out{ENDINGS[name]}"
    leftover = tmp_path / ".sapwood-0123456789abcdef.part"
    leftover.write_bytes(b"of root")
    os.utime(leftover, (1, 1))
    tmp_path.chmod(0o777)
    assert not error_of(write_in_child(name, folder, path, "nobody"))
    assert leftover.read_bytes() == b"of root"
    assert path.stat().st_uid == writers.NOBODY


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_stays_a_link(folder: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"out{ENDINGS[name]}"
    old = old_file(folder, path, name)
    (tmp_path / "elsewhere").mkdir()
    path.rename(tmp_path / "elsewhere" / "real")
    path.symlink_to(Path("elsewhere") / "real")
    (tmp_path / "elsewhere" / "real").chmod(0o640)
    assert not error_of(write_in_child(name, folder, path))
    assert path.is_symlink()
    assert same_file((tmp_path / "elsewhere" / "real").read_bytes(), old)
    assert (tmp_path / "elsewhere" / "real").stat().st_mode & 0o777 == 0o640
    assert not leftovers(tmp_path) and not leftovers(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_gets_the_file(folder: Path, tmp_path: Path, name: str) -> None:
    old = old_file(folder, tmp_path / f"old{ENDINGS[name]}", name)
    path = tmp_path / f"out{ENDINGS[name]}"
    os.mkfifo(path)
    process = write_in_child(name, folder, path)
    raw = path.read_bytes()
    assert not error_of(process)
    assert same_file(raw, old)
    assert path.is_fifo()


@pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="the system has no /dev/full"
)
@pytest.mark.parametrize(
    "name", [param for param in WRITERS if param.values[0] != "export"]
)
def test_a_full_device_raises(folder: Path, name: str) -> None:
    error = error_of(write_in_child(name, folder, Path("/dev/full")))
    assert "OSError" in error and "/dev/full" in error, error


@pytest.mark.parametrize("name", WRITERS)
def test_planted_pipes_do_not_hang(folder: Path, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / ".sapwood-1.part")
    os.mkfifo(tmp_path / ".sapwood-0123456789abcdef.part")
    assert not error_of(write_in_child(name, folder, tmp_path / f"out{ENDINGS[name]}"))


@pytest.mark.parametrize("name", ["store", "checkpoint"])
def test_a_full_disk_names_the_path(folder: Path, tmp_path: Path, name: str) -> None:
    error = error_of(write_in_child(name, folder, tmp_path / "out", before=limit_files))
    assert "out" in error, error


@pytest.mark.parametrize("name", ["store", "checkpoint"])
def test_a_pipe_in_the_place_of_a_store_or_checkpoint_is_refused(
    folder: Path, tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / "out")
    error = error_of(write_in_child(name, folder, tmp_path / "out"))
    assert "out" in error and "Error" in error, error
    assert (tmp_path / "out").is_fifo()
