"""A store: a folder with the codes of a table, its labels and what was learned of it.

In: a folder. Out: the attributes of a `Dataset` whose codes are mapped from it; damage
raises `DataError`.

    dataset   names, cuts, dictionaries, checksums: a container (`data/container.py`)
    codes     the codes, as training reads them: blocks of columns row by row, then planes column by column
    label, weight, init_score, group   vectors by row
"""

import json
import os
import stat
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import categories, container, derived, ingest
from sapwood.data import crosses as crossing
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.data.streaming.first_pass import Learned
from sapwood.data.streaming.vectors import mapped
from sapwood.device import Device, get, host
from sapwood.errors import DataError

KIND = "store"
VERSION = 1
HEAD = "dataset"
CODES = "codes"
TYPES = {
    "label": np.float64,
    "weight": np.float64,
    "init_score": np.float64,
    "group": np.int32,
}
GROUP_BYTES = 32 << 20  # of codes that are written together, and have one checksum


@dataclass
class Head:
    """What the file `dataset` of a store says."""

    learned: Learned
    bins: dict[str, Any]  # the parameters of `BIN_PARAMS`, and device
    request: Any  # what it was made from and how, a JSON value
    # which columns share a slot: the layout of the codes
    slots: list[list[int]] = field(default_factory=list)
    group_rows: int = 0  # rows of `codes` that have one checksum
    # of `codes`, a group of rows each; of vectors
    checksums: dict[str, list[int]] = field(default_factory=dict)
    unseen: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    fingerprint: str | None = None  # None: the store is not complete

    def pack(self) -> bytes:
        """The head as its file has it."""
        found = self.learned
        arrays: dict[str, NDArray[Any]] = {
            "cuts": np.concatenate(found.cuts),
            "offset": np.cumsum([0, *map(len, found.cuts)], dtype=np.int64),
            **categories.pack(found.categories),
            **{f"unseen.{j}": rows for j, rows in self.unseen.items()},
        }
        fields = {
            "feature_names": found.names,
            "named": found.named,
            "n_rows": found.n_rows,
            "missing": found.missing,
            "times": derived.encode(found.times),
            "shapes": found.shapes,
            "digests": found.digests,
            "bins": self.bins,
            "request": self.request,
            "slots": self.slots,
            "group_rows": self.group_rows,
            "checksums": self.checksums,
            "fingerprint": self.fingerprint,
        }
        return container.pack(KIND, VERSION, arrays, fields)

    @classmethod
    def unpack(cls, raw: bytes) -> "Head":
        """The head of a file; anything that `pack` did not write raises `DataError`."""
        arrays, fields = container.unpack(raw, KIND, VERSION, DataError)
        try:
            n = len(fields["feature_names"])
            known = categories.unpack(arrays, n, DataError)
            unseen = {
                j: rows
                for j in known
                if (rows := arrays.pop(f"unseen.{j}", None)) is not None
            }
            offset = arrays["offset"].tolist()
            cuts = [arrays["cuts"][first:last] for first, last in pairwise(offset)]
            learned = Learned(
                tuple(fields["feature_names"]),
                fields["named"],
                fields["n_rows"],
                cuts,
                known,
                fields["missing"],
                derived.decode(fields["times"]),
                fields["shapes"],
                fields["digests"],
            )
            sizes = (
                len(cuts) == len(learned.missing) == n
                and offset[0] == 0
                and offset[-1] == len(arrays["cuts"])
            )
            bins = fields["bins"]
            sizes = (
                sizes
                and set(bins) == {*BIN_PARAMS, "device"}
                and set(learned.shapes) <= set(TYPES)
            )
            sizes = sizes and all(
                shape[0] == learned.n_rows for shape in learned.shapes.values()
            )
            sizes = sizes and all(
                length >= 1 for shape in learned.shapes.values() for length in shape
            )
            names = learned.names
            texts = all(type(one) is str for one in names) and len(set(names)) == n > 0
            if (
                not sizes
                or not texts
                or type(learned.n_rows) is not int
                or type(learned.named) is not bool
            ):
                raise ValueError("its parts do not fit together")
            if flaw := derived.flaw(learned.times, n, known):
                raise ValueError(f"it breaks the rule '{flaw}'")
            head = cls(
                learned, bins, fields["request"], fields["slots"], fields["group_rows"]
            )
            head.checksums, head.unseen, head.fingerprint = (
                fields["checksums"],
                unseen,
                fields["fingerprint"],
            )
            return head
        except (LookupError, TypeError, ValueError, AttributeError) as cause:
            raise DataError(f"the file is not the head of a store: {cause}.") from cause

    @property
    def n_categories(self) -> list[int]:
        """Of each column; 0 for numbers."""
        known = self.learned.categories
        return [
            known[j].n_bins if j in known else 0 for j in range(len(self.learned.names))
        ]

    def encoder(self, held: int) -> Any:
        """What makes codes of `held` rows at a time."""
        found = self.learned
        return host.Encoder(
            found.cuts, self.n_categories, found.missing, found.n_rows, held
        )


def rows_together(places: Sequence[tuple[int, int]]) -> int:
    """Rows whose codes are written together."""
    most = GROUP_BYTES // max(1, sum(row_bytes for _, row_bytes in places))
    return max(4096, min(1 << 18, most // 4096 * 4096))


def read_head(folder: Path, name: str = HEAD) -> Head:
    """The head of a store; `DataError` where there is none, or a damaged one."""
    if not folder.is_dir() or not (folder / name).is_file():
        raise DataError(
            f"{folder} is not a store of Sapwood; make one with Dataset.from_files or from_batches."
        )
    try:
        return Head.unpack((folder / name).read_bytes())
    except DataError as cause:
        raise DataError(f"{folder}: {cause}") from cause


def attributes(folder: Path, head: Head, n_threads: int) -> dict[str, Any]:
    """The attributes of the `Dataset` that a folder holds."""
    found = head.learned
    for name, shape in found.shapes.items():
        _check_size(folder / name, int(np.prod(shape)) * np.dtype(TYPES[name]).itemsize)
    vectors: dict[str, Any] = dict.fromkeys(TYPES)
    for name, shape in found.shapes.items():
        vectors[name] = mapped(folder / name, shape, TYPES[name])
    device: Device = get(head.bins["device"])
    n_categories = head.n_categories
    places, size = head.encoder(1).places(found.n_rows)
    del places
    _check_size(folder / CODES, size)
    file = os.open(folder / CODES, os.O_RDONLY)
    try:
        binned = host.stored(
            file, size, found.cuts, n_categories, found.missing, found.n_rows
        )
    finally:
        os.close(file)
    for array in found.cuts:
        array.flags.writeable = False
    return {
        **{name: head.bins[name] for name in BIN_PARAMS},
        **vectors,
        "n_rows": found.n_rows,
        "n_columns": len(found.names),
        "n_total": found.n_rows,
        "reduce": None,
        "positions": (),
        "feature_names": found.names,
        "named": found.named,
        "device": device,
        "_n_threads": n_threads,
        "categories": dict(found.categories),
        "crosses": crossing.NONE,
        "unseen": head.unseen,
        "cuts": list(found.cuts),
        "n_bins": [
            n or len(own) + 1 for n, own in zip(n_categories, found.cuts, strict=True)
        ],
        "binned": binned,
        "values": None,
        "times": found.times,
    }


def verify(folder: Path, head: Head, binned: Any, n_threads: int) -> None:
    """Compare every byte of a store with its checksums; `DataError` where one
    differs.
    """
    found = head.learned
    encoder = head.encoder(1)
    places, size = encoder.places(found.n_rows)
    if encoder.slots != head.slots:
        raise DataError(
            f"{folder} was made by a version of Sapwood that lays codes out otherwise; make it anew."
        )
    sums = checksums(folder, head, places, size)
    for name, wanted in head.checksums.items():
        if sums.get(name) != wanted:
            raise DataError(
                f"{folder} is damaged: the checksums of {name!r} do not match. Make the store anew."
            )
    if set(sums) != set(head.checksums):
        raise DataError(
            f"{folder} is damaged: it lacks checksums. Make the store anew."
        )
    if not _padded_with_zeros(folder, found.n_rows, places, size):
        raise DataError(
            f"{folder} is damaged: {CODES!r} has bytes between its codes. Make the store anew."
        )
    if not host.codes_fit(binned, n_threads):
        raise DataError(
            f"{folder} is not valid: it has codes beyond those of its columns."
        )
    host.release_pages()


def _padded_with_zeros(
    folder: Path, n_rows: int, places: Sequence[tuple[int, int]], size: int
) -> bool:
    """Whether all bytes of the codes that belong to no row are 0."""
    at = 0
    with open(folder / CODES, "rb") as file:
        for offset, row_bytes in [*sorted(places), (size, 0)]:
            while at < offset:
                piece = os.pread(file.fileno(), min(1 << 20, offset - at), at)
                if not piece or any(piece):
                    return False
                at += len(piece)
            at = offset + n_rows * row_bytes
    return True


def checksums(
    folder: Path, head: Head, places: Sequence[tuple[int, int]], size: int
) -> dict[str, list[int]]:
    """Of the codes, a group of rows each, and of the vectors."""
    found = head.learned
    step = max(1, int(head.group_rows))
    sums: dict[str, list[int]] = {CODES: []}
    with open(folder / CODES, "rb") as file:
        for first in range(0, found.n_rows, step):
            sums[CODES].append(
                group_sum(file.fileno(), places, first, min(step, found.n_rows - first))
            )
    for name in found.shapes:
        sums[name] = [file_sum(folder / name)]
    return sums


def group_sum(file: int, places: Sequence[tuple[int, int]], first: int, n: int) -> int:
    """The checksum of some rows' codes."""
    total = 0
    for offset, row_bytes in places:
        total = zlib.crc32(
            os.pread(file, n * row_bytes, offset + first * row_bytes), total
        )
    return total


def file_sum(path: Path) -> int:
    """The checksum of a file."""
    total = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total = zlib.crc32(block, total)
    return total


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, as files have them."""
    return bool(json.loads(json.dumps(one)) == json.loads(json.dumps(other)))


def _check_size(path: Path, size: int) -> None:
    try:
        status = path.stat()
    except OSError as cause:
        raise DataError(
            f"{path.parent} is damaged: it has no file {path.name!r}."
        ) from cause
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path} is damaged: it is not a file. Make the store anew.")
    found = status.st_size
    if found != size:
        raise DataError(
            f"{path} is damaged: it has {found:,} bytes, and should have {size:,}. Make the store anew."
        )


def parts(columns: ingest.Columns, head: Head) -> Any:
    """The table of a batch as the core encodes it."""
    expanded = derived.expand(columns, head.learned.times)
    return ingest.encode(
        expanded, head.learned.categories, "data", head.learned.names
    ).table
