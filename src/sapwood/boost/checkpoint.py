"""Checkpoints: the trees of a training so far, in a file from which a training that was
killed goes on.

In: what a training is, and its trees as they grow. Out: a file; from it, the trees that
need not be searched again.

A resumed training runs all its rounds again, but takes the splits of the stored rounds
from the file. So every score, statistic and callback is as in a training that was never
killed, and so is the model, byte for byte.

The file is a list of records, to which each `checkpoint_every` rounds add one:

    length (8 bytes) | container of kind "checkpoint": what the training is
    length (8 bytes) | container of kind "checkpoint rounds": its first rounds
    length (8 bytes) | container of kind "checkpoint rounds": the rounds after them
    length (8 bytes) | conta                                   the process was killed here: cut off when resumed
"""

import os
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from typing import Any

from sapwood.boost.round import grown
from sapwood.boost.round.grown import GrownTrees
from sapwood.data import container
from sapwood.device import Tree
from sapwood.errors import CheckpointError
from sapwood.params import defaults
from sapwood.system import writing

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

HEADER = "checkpoint"
ROUNDS = "checkpoint rounds"
VERSION = 1
LENGTH = 8  # bytes before each record


class Checkpoint:
    """A file that follows a training; one training at a time has it open.

    path: the file; made where there is none.
    every: rounds between two writes.
    facts: what the training is, JSON values by name; those of the file must be the
    same.
    rate: the learning rate of a round.
    rounds: numbers of the rounds to come.
    per_call, calls: trees of a call of `Trainer.grow`, and calls of a round.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: int,
        facts: Mapping[str, Any],
        rate: Callable[[int], float],
        rounds: range,
        per_call: int,
        calls: int,
    ) -> None:
        self._path = os.fspath(path)
        self._every = every
        self._rate = rate
        self._rounds = rounds
        self._per_call = per_call
        self._calls = calls
        self._n_done = self._n_stored = 0  # rounds of this run; rounds in the file
        self._file = _open(
            self._path, lambda: _record(container.pack(HEADER, VERSION, {}, facts))
        )
        self._close = weakref.finalize(self, self._file.close)
        try:
            self.grown = GrownTrees(self._read(facts))
        except BaseException:
            self._close()
            raise

    def round_done(self) -> None:
        """Count a round, and write where it is time."""
        self._n_done += 1
        if self._n_done % self._every == 0:
            self.write()

    def write(self) -> None:
        """Add the rounds since the last write to the file."""
        calls = self.grown.take_fresh()
        n_rounds = len(calls) // self._calls  # a round that is not whole is grown again
        if n_rounds == 0:
            return
        first = self._rounds.start + self._n_stored
        rates = [self._rate(index) for index in range(first, first + n_rounds)]
        raw = container.pack(
            ROUNDS,
            VERSION,
            grown.pack(calls[: n_rounds * self._calls]),
            {"first": first, "rates": rates},
        )
        end = self._file.seek(0, os.SEEK_END)
        try:
            _write_all(self._file, _record(raw))
            os.fsync(self._file.fileno())
        except OSError as cause:
            # what is half-written is cut off when the training is resumed
            with suppress(OSError):
                self._file.truncate(end)
            raise OSError(
                cause.errno, cause.strerror or str(cause), self._path
            ) from cause
        self._n_stored += n_rounds

    def close(self) -> None:
        """Write what is left, and leave the file to others."""
        self.write()
        self._close()

    def _read(self, facts: Mapping[str, Any]) -> list[list[Tree]]:
        """The calls of all rounds in the file; what a killed process left half-written
        is cut off.
        """
        raw = self._file.read()
        at = 0
        records: list[bytes] = []
        while at + LENGTH <= len(raw):
            end = at + LENGTH + int.from_bytes(raw[at : at + LENGTH], "little")
            if end > len(raw):
                break
            records.append(raw[at + LENGTH : end])
            at = end
        if not records:
            raise CheckpointError(
                f"{self._path} is not a checkpoint; give another path, or delete it."
            )
        _compare(self._path, self._unpack(records[0], HEADER)[1], facts)
        known: list[list[Tree]] = []
        for place, record in enumerate(records[1:], 1):
            try:
                arrays, fields = self._unpack(record, ROUNDS)
            except CheckpointError:
                if place < len(records) - 1:
                    raise
                at -= LENGTH + len(record)  # half on disk when the machine stopped
                break
            known += self._rounds_of(arrays, fields)
        self._file.truncate(at)
        return known

    def _unpack(
        self, record: bytes, kind: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            return container.unpack(record, kind, VERSION, CheckpointError)
        except CheckpointError as cause:
            raise CheckpointError(
                f"{self._path} is no checkpoint that can be resumed: {cause}"
            ) from cause

    def _rounds_of(
        self, arrays: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> list[list[Tree]]:
        """The calls of the rounds of a record."""
        first = self._rounds.start + self._n_stored
        try:
            calls = grown.unpack(arrays, self._per_call)
            rates, n_rounds = list(fields["rates"]), len(calls) // self._calls
            if (
                len(calls) % self._calls
                or fields["first"] != first
                or len(rates) != n_rounds
            ):
                raise ValueError("rounds are missing")
        except (ValueError, KeyError, TypeError) as cause:
            raise CheckpointError(
                f"{self._path} is damaged: {cause}; delete it and start again."
            ) from cause
        for index in range(first, min(first + n_rounds, self._rounds.stop)):
            if rates[index - first] != self._rate(index):
                there = rates[index - first]
                here = self._rate(index)
                raise CheckpointError(
                    _differs(
                        self._path,
                        [f"learning_rate of round {index} {there!r}, {here!r}"],
                    )
                )
        self._n_stored += n_rounds
        return calls


def _record(raw: bytes) -> bytes:
    return len(raw).to_bytes(LENGTH, "little") + raw


def _write_all(file: FileIO, raw: bytes) -> None:
    """Write all bytes; a file without a buffer may take some of them at a time."""
    rest = memoryview(raw)
    while rest:
        n_written = file.write(rest)
        rest = rest[n_written:]


def _open(path: str, header: Callable[[], bytes]) -> FileIO:
    """The file for reading and writing, locked; made as a whole where there is none, or
    an empty one.
    """
    if writing.is_written_into(path):
        raise CheckpointError(
            f"{path} is a pipe or a device, which cannot be read again; give the path of a file."
        )
    while True:
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            writing.write(path, header())
        # without a buffer, so that what a full disk refuses is not tried again at the
        # end
        file = FileIO(path, "r+b")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            file.close()
            raise CheckpointError(
                f"{path} is in use by another training; give each its own path."
            ) from cause
        if os.path.exists(path) and os.path.samestat(
            os.fstat(file.fileno()), os.stat(path)
        ):
            return file
        file.close()  # another process has replaced it meanwhile


def _compare(path: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Raise where a checkpoint is of another training, and say what differs."""
    if not isinstance(there.get("parameters", {}), dict):
        raise CheckpointError(
            f"{path} is no checkpoint that can be resumed: its parameters have no names."
        )
    flat = [{**of, **of.get("parameters", {})} for of in (there, here)]
    usual = defaults()
    names = [
        name for name in dict.fromkeys((*flat[1], *flat[0])) if name != "parameters"
    ]
    pairs = {name: [of.get(name, usual.get(name)) for of in flat] for name in names}
    if other := [f"{name} {a!r}, {b!r}" for name, (a, b) in pairs.items() if a != b]:
        raise CheckpointError(_differs(path, other))


def _differs(path: str, what: list[str]) -> str:
    listed = "; ".join(what)
    return f"{path} is of another training. There and here: {listed}. Give what it was made with, or another path."
