"""Files are written whole or not at all, and nothing of anybody else is touched."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sapwood.system import writing
from sapwood.system.writing import write

LEFTOVER = ".sapwood-0123456789abcde{}.part"
OLD_SECONDS = 1


def old_leftover(folder: Path, number: int) -> Path:
    """What a process that was killed long ago has left."""
    path = folder / LEFTOVER.format(number)
    path.write_bytes(b"half")
    os.utime(path, (OLD_SECONDS, OLD_SECONDS))
    return path


def within(seconds: float, work) -> None:
    """Do some work, and fail where it hangs."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"not done after {seconds} s"


def test_the_whole_file_is_replaced(tmp_path):
    path = tmp_path / "naïve file"
    write(path, b"old and long")
    write(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == [path.name]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write(path, b"old")

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_interrupted_block_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write(path, b"old")
    with pytest.raises(KeyboardInterrupt), writing.replacing(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_names_the_path_that_was_given(tmp_path):
    path = tmp_path / "no such folder" / "file"
    with pytest.raises(FileNotFoundError) as error:
        write(path, b"new")
    assert error.value.filename == str(path)


def test_an_error_of_the_block_names_its_own_path(tmp_path):
    missing = tmp_path / "missing"
    with (
        pytest.raises(FileNotFoundError) as error,
        writing.replacing(tmp_path / "file"),
    ):
        missing.read_bytes()
    assert error.value.filename == str(missing)


def test_links_are_followed_and_long_names_work(tmp_path):
    path = tmp_path / ("n" * 250)
    write(path, b"long")
    os.symlink(path, tmp_path / "link")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes() == b"new"


def test_a_link_to_nothing_gets_its_file(tmp_path):
    os.symlink("target", tmp_path / "link")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "folder", b"new")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o640])
def test_the_mode_stays(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


def test_a_new_file_has_the_mode_that_the_user_has_set(tmp_path):
    old = os.umask(0o027)
    try:
        write(tmp_path / "file", b"new")
    finally:
        os.umask(old)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_the_owner_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    write(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write every file
    with pytest.raises(PermissionError):
        write(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_pipe_gets_the_bytes(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write(path, b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert path.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="the system has no /dev/full"
)
def test_a_full_device_raises():
    with pytest.raises(OSError) as error:
        write("/dev/full", b"content")
    assert error.value.errno == errno.ENOSPC
    assert error.value.filename == "/dev/full"


def test_standard_output_goes_on_where_it_stands(tmp_path):
    program = "import sapwood.system.writing as w; print('first', flush=True); w.write('/dev/stdout', b'second\\n')"
    program += "; print('third')"
    with open(tmp_path / "out", "wb") as file:
        subprocess.run(
            [sys.executable, "-c", program], stdout=file, check=True, timeout=60
        )
    assert (tmp_path / "out").read_bytes() == b"first\nsecond\nthird\n"


def test_what_a_killed_process_left_is_removed(tmp_path):
    old_leftover(tmp_path, 1)
    new = tmp_path / LEFTOVER.format(2)
    new.write_bytes(b"half")
    held = old_leftover(tmp_path, 3)
    with open(held, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write(tmp_path / "file", b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted(["file", new.name, held.name])


def test_only_files_with_names_of_this_writer_are_removed(tmp_path):
    for name in (
        ".sapwood-notes.part",
        ".sapwood-0123456789ABCDEF.part",
        "sapwood-0123456789abcdef.part",
    ):
        (tmp_path / name).write_bytes(b"of a user")
        os.utime(tmp_path / name, (OLD_SECONDS, OLD_SECONDS))
    before = sorted(os.listdir(tmp_path))
    write(tmp_path / "file", b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "file"])


def test_a_planted_pipe_does_not_hang_a_write(tmp_path):
    os.mkfifo(tmp_path / LEFTOVER.format(1))
    os.mkfifo(tmp_path / ".sapwood-1.part")
    within(10, lambda: write(tmp_path / "file", b"whole"))
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert (tmp_path / LEFTOVER.format(1)).is_fifo()


def test_a_planted_link_is_not_followed(tmp_path):
    thesis = tmp_path / "thesis.txt"
    thesis.write_bytes(b"years of work")
    os.utime(thesis, (OLD_SECONDS, OLD_SECONDS))
    os.symlink(thesis, tmp_path / LEFTOVER.format(1))
    (tmp_path / LEFTOVER.format(2)).mkdir()
    write(tmp_path / "file", b"whole")
    assert thesis.read_bytes() == b"years of work"
    assert (tmp_path / LEFTOVER.format(1)).is_symlink()
    assert (tmp_path / LEFTOVER.format(2)).is_dir()


def test_names_of_new_files_cannot_be_foreseen(tmp_path):
    names = set()
    for _ in range(3):
        with writing.replacing(tmp_path / "file"):
            names.update(set(os.listdir(tmp_path)) - {"file"})
    assert len(names) == 3
    assert all(writing.LEFTOVER.fullmatch(name) for name in names)
