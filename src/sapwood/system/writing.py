"""The one writer of files.

In: a path, and bytes. Out: the file with the old content or with the new one, whole,
whenever the program ends.

The promise to a user:

- A regular file is replaced as a whole; after a crash at any moment it is the old file or the new one.
- A link stays a link: the file that it points to is replaced.
- A replaced file keeps its mode and, where the system allows it, its owner.
- A pipe or a device is written into.
- Nothing is left behind, not even by a process that was killed: the next write into the folder clears it away.
"""

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LEFTOVER = re.compile(r"\.sapwood-[0-9a-f]{16}\.part")
# a younger file may belong to a process that has not locked it yet
LEFTOVER_SECONDS = 60.0
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)
# Paths of files that this process has open already.
OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(0|[1-9][0-9]*)")
STANDARD_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


def write(path: str | os.PathLike[str], raw: bytes) -> None:
    """Write a file as a whole; see the promise above."""
    with replacing(path) as file:
        file.write(raw)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a file to write into, which takes the place of the path when the block ends,
    and vanishes if it fails.
    """
    given = os.fspath(path)
    target = Path(os.path.realpath(given))
    beside = target.with_name(f".sapwood-{secrets.token_hex(8)}.part")
    try:
        old = _status(given)
        if is_written_into(given):
            with os.fdopen(_open_to_write_into(given), "wb") as file:
                yield file
            return
        with _replaced(target, beside, old) as file:
            yield file
    except OSError as cause:
        if cause.filename not in (
            None,
            given,
            os.fspath(target),
            os.fspath(beside),
            os.fspath(target.parent),
        ):
            raise  # the block failed at a file of its own
        raise OSError(cause.errno, cause.strerror or str(cause), given) from cause


def is_written_into(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe or a device, which is written into, and not a file,
    which is replaced.
    """
    if _open_descriptor(os.fspath(path)) is not None:
        return True
    status = _status(path)
    return (
        status is not None
        and not stat.S_ISREG(status.st_mode)
        and not stat.S_ISDIR(status.st_mode)
    )


def _open_descriptor(path: str) -> int | None:
    """The number of the open file that a path such as /dev/stdout means; None for every
    other path.
    """
    match = OPEN_FILE.fullmatch(path)
    return int(match[1]) if match else STANDARD_STREAMS.get(path)


def _open_to_write_into(path: str) -> int:
    """Open a pipe or a device; an open file goes on where it stands."""
    descriptor = _open_descriptor(path)
    return os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What lies at a path, or at the end of its links; None where nothing does."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


@contextmanager
def _replaced(
    target: Path, beside: Path, old: os.stat_result | None
) -> Iterator[BinaryIO]:
    """Give a new file beside the target, which gets the target's name at the end."""
    if old is not None:
        _check_replaceable(target, old)
    remove_leftovers(target.parent)
    try:
        with _created(beside, old) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # elsewhere an open file cannot be renamed
                os.replace(beside, target)
        if os.name != "posix":
            os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    sync_folder(target.parent)


def _check_replaceable(target: Path, old: os.stat_result) -> None:
    """Raise for a folder, and for a file that may not be written: a replacement would
    ignore its mode.
    """
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(
            errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target)
        )
    if not os.access(target, os.W_OK):
        raise PermissionError(
            errno.EACCES, os.strerror(errno.EACCES), os.fspath(target)
        )


@contextmanager
def _created(path: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    """Create a file that nobody else has; it has the mode and the owner of the old
    one.
    """
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o666
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, mode), "w+b") as file:
        # for as long as the file is open: no other process takes it for a leftover
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        if old is not None and os.name == "posix":
            _keep_owner(file.fileno(), old)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode) & 0o777)
        yield file


def _keep_owner(descriptor: int, old: os.stat_result) -> None:
    """Give a file its old owner and group, as far as the system allows it."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) == (old.st_uid, old.st_gid):
        return
    for user, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(OSError):
            os.fchown(descriptor, user, group)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes of this user have left in a folder while they wrote.

    Such a file has a name that only this module gives, is a regular file, and is locked
    by nobody. It is opened without waiting and without following links, so neither a
    pipe nor a link that somebody has planted does harm.
    """
    if os.name != "posix":
        return
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if LEFTOVER.fullmatch(entry.name)]
        for name in names:
            _remove_leftover(folder / name)


def _remove_leftover(path: Path) -> None:
    with suppress(OSError):
        if not _is_own_file(os.lstat(path)):
            return
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | NO_WAIT)
        try:
            status = os.fstat(descriptor)
            if (
                not _is_own_file(status)
                or time.time() - status.st_mtime <= LEFTOVER_SECONDS
            ):
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


def _is_own_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def sync_folder(folder: Path) -> None:
    """Put the names of a folder on disk: a rename is safe only then."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that one may write into and not list
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
