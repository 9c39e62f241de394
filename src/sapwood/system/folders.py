"""Folders and temporary files of ours: made, marked, cleared.

In: a path. Out: a folder that nobody but this package has filled; or an error, and
nothing is touched.

Only what carries our mark is ever cleared, file by file and by known names. A link is
never followed.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from sapwood.errors import DataError
from sapwood.system.writing import LEFTOVER, NO_FOLLOW, NO_WAIT

MARK = ".sapwood-store"
OPEN_FILES = "/proc/self/fd/"  # where Linux has the open files of a process
MARK_TEXT = "Sapwood has made this folder. It replaces and removes the files that it has put here."


def temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """Make a folder with a name that nobody can foresee; it is removed with the
    object.
    """
    return tempfile.TemporaryDirectory(prefix="sapwood-")


@contextmanager
def own_folder() -> Iterator[Path]:
    """Give a new folder that nobody else can read; it is removed at the end."""
    with temporary_folder() as folder:
        yield Path(folder)


@dataclass(frozen=True)
class TemporaryCopy:
    """A copy of a stream in a file that nobody else can open, where the system allows
    that; it vanishes with us.
    """

    file: BinaryIO
    path: Path

    def remove(self) -> None:
        """Remove the copy."""
        self.file.close()
        if not str(self.path).startswith(OPEN_FILES):
            self.path.unlink(missing_ok=True)


def temporary_copy(stream: BinaryIO, ending: str) -> TemporaryCopy:
    """Copy a stream into a new temporary file."""
    file = tempfile.NamedTemporaryFile(prefix="sapwood-", suffix=ending, delete=False)  # noqa: SIM115  (stays open)
    copy = TemporaryCopy(cast(BinaryIO, file), Path(file.name))
    if os.path.isdir(OPEN_FILES):  # the file needs no name there
        copy.path.unlink()
        copy = TemporaryCopy(copy.file, Path(f"{OPEN_FILES}{file.fileno()}"))
    try:
        shutil.copyfileobj(stream, file)
        file.flush()
    except BaseException:
        copy.remove()
        raise
    return copy


def make_marked(folder: Path) -> None:
    """Make a folder with our mark; one that is there already must be empty or have the
    mark.

    Anything else belongs to somebody else: a folder with other files, a file, a link.
    """
    with suppress(FileExistsError):
        folder.mkdir()
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise DataError(
            f"{folder} is not a folder of Sapwood; move it away, or give another path."
        )
    if os.name == "posix" and status.st_uid != os.geteuid():
        raise DataError(
            f"{folder} belongs to another user; move it away, or give another path."
        )
    if is_marked(folder):
        return
    if any(folder.iterdir()):
        raise DataError(
            f"{folder} holds files that are not of Sapwood, so it is not used; move it away, or give another path."
        )
    with open_inside(folder / MARK, "xb") as file:
        file.write(_mark_of(folder))


def is_marked(folder: Path) -> bool:
    """Whether a folder has our mark, as a file and not as a link."""
    try:
        with open_inside(folder / MARK, "rb") as file:
            return bool(
                stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                and file.read() == _mark_of(folder)
            )
    except OSError:
        return False


def _mark_of(folder: Path) -> bytes:
    """The mark of a folder, which names its place on the disk: a copy from elsewhere,
    or from an archive, has none.
    """
    status = os.lstat(folder)
    return f"{MARK_TEXT}\n{status.st_dev} {status.st_ino}\n".encode()


def check_marked(
    folder: Path, files: Collection[str], numbered: Collection[str]
) -> None:
    """Raise where a folder with our mark holds anything but known files: a link, a
    pipe, a file with a second name.
    """
    expected = {*files, MARK}
    foreign = [
        path
        for path in _paths_inside(folder, numbered)
        if not _is_known(path, folder, expected, numbered)
    ]
    if foreign:
        raise DataError(
            f"{folder} holds {foreign[0].relative_to(folder)}, which is not of Sapwood, so the folder is not used; "
            "move it away, or give another path."
        )


def clear_marked(
    folder: Path,
    files: Collection[str],
    numbered: Collection[str],
    *,
    others: Collection[str] = (),
) -> None:
    """Remove known files of a folder with our mark; raise, and remove nothing, where it
    holds unknown ones.

    Parameters
    ----------
    folder : path
        A folder that `make_marked` has made.
    files : collection of str
        Names of files that may be removed.
    numbered : collection of str
        Names of folders in it, whose files are named by numbers; these are removed too.
    others : collection of str
        Names of files that may be there, and stay.
    """
    if not is_marked(folder):
        raise DataError(
            f"{folder} is not a folder of Sapwood, so nothing in it is removed; give another path."
        )
    check_marked(folder, (*files, *others), numbered)
    for path in _paths_inside(folder, numbered):
        if path.name in files or path.parent != folder or LEFTOVER.fullmatch(path.name):
            path.unlink(missing_ok=True)
    for name in numbered:
        if (folder / name).is_dir():
            (folder / name).rmdir()


def _paths_inside(folder: Path, numbered: Collection[str]) -> list[Path]:
    """What lies in a folder and in its numbered folders; links are not followed."""
    inside = list(folder.iterdir())
    for path in list(inside):
        if path.name in numbered and stat.S_ISDIR(os.lstat(path).st_mode):
            inside += path.iterdir()
    return inside


def _is_known(
    path: Path, folder: Path, expected: Collection[str], numbered: Collection[str]
) -> bool:
    """Whether a path in a marked folder is one that this package makes there."""
    status = os.lstat(path)
    if path.parent == folder and path.name in numbered:
        return stat.S_ISDIR(status.st_mode)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        return False
    if LEFTOVER.fullmatch(path.name):
        return True
    return path.name in expected if path.parent == folder else path.name.isdigit()


def make_inside(folder: Path) -> None:
    """Make a folder in a folder of ours, where there must be none."""
    folder.mkdir()


def open_inside(path: Path, mode: str) -> IO[Any]:
    """Open a file in a folder of ours: no link is followed, and no pipe is waited
    for.
    """
    return open(path, mode, opener=_no_follow)


def _no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | NO_FOLLOW | NO_WAIT, 0o666)


def rename_marked(folder: Path, path: Path) -> None:
    """Give a folder with our mark its final name, which must be free."""
    os.replace(folder, path)
