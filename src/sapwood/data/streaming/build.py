"""From a source to a store: both passes, where the folder is, and what an interrupted
build has left.

In: a `Request` and a path. Out: a complete store under that path, or an error and
nothing under it.
"""

import errno
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.data.streaming import spool, store
from sapwood.data.streaming.first_pass import digest, learn
from sapwood.data.streaming.limits import make_room
from sapwood.data.streaming.reading import Batch, Reader, Request
from sapwood.data.streaming.store import CODES, HEAD, Head
from sapwood.errors import DataError
from sapwood.system import folders, writing

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

# files of a build that is not complete
LEARNED = "learned"
JOURNAL = "journal"
LOCK = "lock"
# all files of a store, complete or not, but for the lock
FILES = (HEAD, CODES, *store.TYPES, LEARNED, JOURNAL)


def unfinished(path: Path) -> Path:
    """Where a store is built before it gets its name."""
    return path.with_name(f"{path.name}.building")


def asked_for(request: Request) -> Any:
    """What a store is made from and how, a JSON value."""
    taken = {
        name: column if isinstance(column, str) else list(column)
        for name, column in request.taken.items()
    }
    categorical = request.categorical
    return {
        "bins": {name: request.bins[name] for name in (*BIN_PARAMS, "date_features")},
        "source": request.source.identity,
        "what": request.source.what,
        "taken": taken,
        "names": None if request.feature_names is None else list(request.feature_names),
        "categories": categorical
        if isinstance(categorical, str | None | dict)
        else list(categorical),
        "reference": None
        if request.reference is None
        else request.reference.fingerprint(),
    }


def build(request: Request, path: Path, finish: Any) -> None:
    """Make a store, or complete one that an earlier call began.

    ``finish`` gets the folder and the head, and returns the fingerprint of the data.
    """
    folder = unfinished(path)
    if not path.parent.is_dir():
        raise DataError(
            f"there is no folder {path.parent} to make the store {path.name} in."
        )
    asked = asked_for(request)
    with _full_disk(path):
        folders.make_marked(folder)
        folders.check_marked(folder, (*FILES, LOCK), (spool.FOLDER,))
        with _locked(folder):
            head = _begun(folder, asked)
            if head is None:
                folders.clear_marked(folder, FILES, (spool.FOLDER,), others=(LOCK,))
                once = request.source.once
                if once:
                    request = replace(request, source=spool.copy(request, folder))
                bins = {name: request.bins[name] for name in (*BIN_PARAMS, "device")}
                head = Head(learn(request, folder), bins, asked)
                if not once:  # else there is nothing to go on with
                    writing.write(folder / LEARNED, head.pack())
            _encode(request, folder, head)
            head.fingerprint = finish(folder, head)
            writing.write(folder / HEAD, head.pack())
            folders.clear_marked(
                folder, (LEARNED, JOURNAL, LOCK), (spool.FOLDER,), others=FILES
            )
            folders.rename_marked(folder, path)
    writing.sync_folder(path.parent)


def _begun(folder: Path, asked: Any) -> Head | None:
    """What an interrupted build of the same store has learned; None: there was none."""
    if asked["source"] is None:  # nothing says that it is the same source
        return None
    try:
        head = store.read_head(folder, LEARNED)
    except DataError:
        return None
    return head if store.same(head.request, asked) else None


@contextmanager
def _full_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        if cause.errno == errno.ENOSPC:
            free = shutil.disk_usage(path.parent).free
            raise OSError(
                errno.ENOSPC,
                f"the disk is full: the store {path} is not complete ({free:,} bytes are free). Make room and call "
                "this again: the build goes on from where it stopped",
            ) from cause
        if cause.filename is None:
            raise OSError(
                cause.errno, cause.strerror or str(cause), str(path)
            ) from cause
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else builds in this folder."""
    with folders.open_inside(folder / LOCK, "ab") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as cause:
                raise DataError(
                    f"another process builds {folder} now; wait for it, or give another path."
                ) from cause
        yield


class _Writer:
    """The file of codes, a group of rows at a time."""

    def __init__(self, folder: Path, head: Head, limit: int | None) -> None:
        found = head.learned
        self.places, size = head.encoder(1).places(found.n_rows)
        self.step, self.n_rows = store.rows_together(self.places), found.n_rows
        make_room(
            limit,
            min(self.step, found.n_rows) * sum(bytes for _, bytes in self.places),
            "coding rows",
        )
        self.encoder = head.encoder(min(self.step, found.n_rows))
        head.slots = self.encoder.slots
        head.group_rows = self.step
        with folders.open_inside(folder / CODES, "ab"):  # makes the file
            pass
        self.codes = folders.open_inside(folder / CODES, "r+b")
        self.file = self.codes.fileno()
        os.posix_fallocate(self.file, 0, size)
        os.ftruncate(self.file, size)
        self.journal = folders.open_inside(folder / JOURNAL, "a+")
        self.sums = self._written()
        self.held = 0  # rows in the encoder

    def _written(self) -> list[int]:
        """The checksums of the groups that an earlier build has written, as far as the
        file has them.
        """
        self.journal.seek(0)
        sums: list[int] = []
        for line in self.journal.read().split("\n")[:-1]:
            first = len(sums) * self.step
            n = min(self.step, self.n_rows - first)
            if (
                not line.isdigit()
                or n <= 0
                or store.group_sum(self.file, self.places, first, n) != int(line)
            ):
                break
            sums.append(int(line))
        self.journal.truncate(0)
        self.journal.writelines(f"{one}\n" for one in sums)
        self.journal.flush()
        return sums

    def add(self, table: Any, batch: Batch, n_threads: int) -> None:
        """Encode the rows of a batch that are not yet written."""
        at = max(0, self.done - batch.first)
        while at < batch.columns.n_rows:
            n = min(self.step - self.held, batch.columns.n_rows - at)
            if batch.first + at + n > self.n_rows:
                raise changed("it has more rows")
            if not self.encoder.fill(table, at, n, self.held, n_threads):
                raise changed("a column has missing values that it had not")
            self.held += n
            at += n
            if self.held == self.step or self.done + self.held == self.n_rows:
                self._flush()

    @property
    def done(self) -> int:
        """Rows that are written."""
        return min(self.n_rows, len(self.sums) * self.step)

    def _flush(self) -> None:
        total = 0
        first = self.done
        for (offset, row_bytes), piece in zip(
            self.places, self.encoder.bytes(self.held), strict=True
        ):
            total = zlib.crc32(piece, total)
            _write(self.file, piece, offset + first * row_bytes)
        self.sums.append(total)
        self.held = 0
        self.journal.write(f"{total}\n")
        self.journal.flush()

    def close(self) -> None:
        """End the files."""
        os.fsync(self.file)
        self.codes.close()
        self.journal.close()


def changed(how: str) -> DataError:
    """The error of a source that is not the same in both passes."""
    return DataError(
        f"the source has changed between two passes over it: {how}. Start again when it is complete."
    )


def _write(file: int, piece: NDArray[np.uint8], at: int) -> None:
    view = memoryview(piece.data)
    while len(view):
        n = os.pwrite(file, view, at)
        view = view[n:]
        at = at + n


def _encode(request: Request, folder: Path, head: Head) -> None:
    """The second pass: codes of all rows."""
    found = head.learned
    writer = _Writer(folder, head, request.memory_limit)
    try:
        reader = Reader(request)
        unseen: dict[int, list[NDArray[np.int64]]] = {j: [] for j in found.categories}
        digests: dict[str, int] = {}
        n_rows = 0
        for batch in reader.batches("coding rows", found.n_rows):
            table = store.parts(batch.columns, head)
            for j, rows in unseen.items():
                new = np.flatnonzero(table[j] == categories.UNSEEN)
                if len(new):
                    rows.append(new + batch.first)
            if found.digests:
                digest(digests, batch.columns, batch)
            writer.add(table, batch, request.n_threads)
            n_rows += batch.columns.n_rows
        if n_rows != found.n_rows:
            raise changed(f"it had {found.n_rows:,} rows and has {n_rows:,}")
        if any(
            digests.get(name) != value
            for name, value in found.digests.items()
            if name in digests
        ):
            raise changed("its values differ")
        if (
            any(unseen.values())
            and request.reference is None
            and "weight" not in found.shapes
        ):
            raise changed("it has categories that it had not")
        head.unseen = {j: np.concatenate(rows) for j, rows in unseen.items() if rows}
        head.checksums = {
            CODES: writer.sums,
            **{name: [store.file_sum(folder / name)] for name in found.shapes},
        }
    finally:
        writer.close()
