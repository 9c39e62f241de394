"""Formats that others may write: a seed, a mutator, and what Sapwood does with a
mutant.

In: bytes. Out: whether they were taken; `SapwoodError` where they were refused;
anything else is a find.
"""

import io
import socket
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import mutators
import numpy as np
import pandas as pd
import table_formats

import sapwood as sw
from sapwood.data import derived
from sapwood.errors import SapwoodError
from sapwood.holders import messages
from sapwood.holders.communicator import Communicator
from sapwood.model.booster import Booster

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Format:
    """seeds: names of files of the corpus; mutate: a mutator; use: reads a mutant and
    does all that one may do.
    """

    seeds: tuple[str, ...]
    mutate: Callable[[bytes, Random], bytes]
    use: Callable[[bytes], None]

    def mutant(self, name: str, index: int) -> bytes:
        """A mutant by its number."""
        rng = Random(f"{name} {index}")
        return self.mutate(content(rng.choice(self.seeds)), rng)


def content(name: str, _kept: dict[str, bytes] = {}) -> bytes:  # noqa: B006 (a cache)
    """A file of the corpus."""
    if name not in _kept:
        _kept[name] = (CORPUS / name).read_bytes()
    return _kept[name]


def rows_for(booster: Booster) -> Any:
    """Three rows of the kinds of columns that a model has, some values missing and some
    new to it.
    """
    n = booster.n_columns - derived.n_parts(booster.times)
    numbers = np.random.default_rng(0).normal(size=(3, n))
    numbers[0, 0], numbers[1, -1] = np.nan, np.inf
    if not booster.categories and not booster.times:
        return numbers
    columns: dict[str, Any] = dict(zip(booster.feature_names, numbers.T, strict=False))
    for j, known in booster.categories.items():
        if j < n:
            columns[booster.feature_names[j]] = [None, "new", *known.values[:1], "new"][
                :3
            ]
    for one in booster.times:
        name = booster.feature_names[one.column]
        if one.word == "text":
            columns[name] = ["red wine from the old north", None, ""]
        elif one.word.startswith("times"):
            columns[name] = np.array(
                ["2024-02-29T13", "NaT", "1969-12-31"], "datetime64[s]"
            )
        else:
            columns[name] = [[0.5] * one.length, None, [np.nan] * one.length]
    if not booster.times:
        return columns
    return pd.DataFrame(columns)


def use_model(booster: Booster, number: int) -> None:
    """Predict, explain, and by turns one of what else one may do with a model; what is
    refused, by an error of ours.
    """
    if booster.n_columns > 500 or booster.trees.n_nodes > 5_000:
        return
    rows = rows_for(booster)
    uses: list[Callable[[], object]] = [
        lambda: booster.to_text(),
        lambda: booster.importance("total_gain"),
        lambda: booster.to_frame(),
        lambda: sw.load(booster.to_bytes()),
    ]
    for use in (
        lambda: booster.predict(rows, raw=True, n_jobs=1),
        lambda: booster.explain(rows, n_jobs=1),
        uses[number % len(uses)],
    ):
        with suppress(SapwoodError):
            use()


def model(data: bytes) -> None:
    use_model(sw.load(data), zlib.crc32(data))


def whole(data: bytes) -> None:
    """A file of an estimator that knows more than its trees: curves, or the family of a
    distribution.
    """
    if b"survival" in data:
        survival = sw.SapwoodSurvival.load(data)
        rows = rows_for(survival.booster_)
        survival.predict(rows)
        survival.predict_survival_function(rows)
    else:
        dist = sw.SapwoodDistribution.load(data)
        found = dist.predict_dist(rows_for(dist.booster_))
        found.quantile(0.3), found.cdf(np.zeros(3))


def dataset(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(
        suffix=".sapwood", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as file:
        file.write(data)
        file.flush()
        found = sw.Dataset.load(file.name)
    if found.label is not None and found.n_rows * found.n_columns < 100_000:
        sw.train({"n_estimators": 1, "n_jobs": 1, "max_leaves": 4}, found)


def store(data: bytes) -> None:
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        for name, part in mutators.files_of(data).items():
            Path(folder, name).write_bytes(part)
        found = sw.Dataset.open(folder, n_jobs=1)
        if found.label is not None and found.n_rows * found.n_columns < 100_000:
            sw.train({"n_estimators": 1, "n_jobs": 1, "max_leaves": 4}, found)


CHECKPOINTED = {
    "n_estimators": 6,
    "n_jobs": 1,
    "max_leaves": 4,
    "seed": 5,
    "checkpoint_every": 2,
}


def checkpoint_data() -> sw.Dataset:
    """What the checkpoint of the corpus was trained on."""
    X = np.arange(120.0).reshape(40, 3) % 7
    return sw.Dataset(X, X[:, 0] + X[:, 2])


def checkpoint(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None, delete=False
    ) as file:
        file.write(data)
    try:
        found = sw.train({**CHECKPOINTED, "checkpoint": file.name}, checkpoint_data())
        use_model(found, zlib.crc32(data))
    finally:
        Path(file.name).unlink(missing_ok=True)


def message(data: bytes) -> None:
    try:
        content, width = messages.body(data, "sum", 3, 1)
        messages.widened(content, width, np.arange(5, dtype=np.int64), 1)
        messages.add(content, width, np.arange(5, dtype=np.int64), 1)
    except SapwoodError:
        messages.parted(messages.body(data, "gather", 4, 1)[0], 3, 1)


def mutate_message(data: bytes, rng: Random) -> bytes:
    """A sum or a list of the right length or not, with a checksum that fits or not."""
    if rng.random() < 0.5:
        values = [rng.choice(mutators.INTEGERS) for _ in range(rng.randrange(8))]
        whole = messages.message_of(
            "sum", 3, np.array([x % 2**31 for x in values], np.int64)
        )
        content, width = messages.body(whole, "sum", 3, 1)
        body = (
            mutators.raw(bytes(content), rng) if rng.random() < 0.5 else bytes(content)
        )
        made = messages.message("sum", 3, body, rng.choice((width, width, 0, 3, 255)))
    else:
        made = messages.message(
            "gather", 4, mutators.raw(messages.listed([b"ab", b"", b"c" * 9]), rng)
        )
    return mutators.raw(made, rng) if rng.random() < 0.3 else made


class OneMessage:
    """A link between two holders, over which the other one sends the same bytes again
    and again.
    """

    rank = 0
    size = 2

    def __init__(self, message: bytes) -> None:
        self._message = message

    def send(self, to: int, message: bytes) -> None:
        """Nobody reads it."""

    def receive(self, source: int) -> bytes:
        return self._message


def communicator(data: bytes) -> None:
    """A message of another holder, as an answer to the first call of every verb."""
    calls: list[Callable[[Communicator], object]] = [
        lambda it: it.sum(np.arange(5, dtype=np.int64)),
        lambda it: it.sum_blocks(np.arange(6, dtype=np.int64), [2, 4, 6]),
        lambda it: it.max(np.arange(5, dtype=np.uint64)),
        lambda it: it.gather(b"abc"),
        lambda it: it.exchange([b"a", b"b"]),
    ]
    refused: list[SapwoodError] = []
    for call in calls:
        try:
            call(Communicator(OneMessage(data)))
        except SapwoodError as error:
            refused.append(error)
    if len(refused) == len(calls):
        raise refused[0]


def mutate_first_message(data: bytes, rng: Random) -> bytes:
    """A message of the first call of some verb, with a checksum that fits or not."""
    verb = rng.choice(messages.VERBS)
    if verb in ("sum", "max"):
        values = [
            abs(rng.choice(mutators.INTEGERS)) % 2**63
            for _ in range(rng.choice((3, 5, 5, 5, 6)))
        ]
        made = messages.message_of(
            verb, 1, np.array(values, np.uint64 if verb == "max" else np.int64)
        )
    elif verb == "gather":
        body = messages.listed(
            [rng.randbytes(rng.randrange(9)) for _ in range(rng.choice((0, 1, 1, 2)))]
        )
        made = messages.message(
            verb, 1, mutators.raw(body, rng) if rng.random() < 0.7 else body
        )
    else:
        made = messages.message(
            verb, 1, rng.randbytes(rng.randrange(20)), rng.choice((0, 1, 8, 255))
        )
    return mutators.raw(made, rng) if rng.random() < 0.3 else made


def inlet(data: bytes) -> None:
    """Messages that come over the socket of a worker, until the other side ends."""
    from sapwood.dask.outbox import Inlet

    here, there = socket.socketpair()
    there.setblocking(False)
    with here, there:
        with suppress(BlockingIOError):
            there.send(data)
        there.close()
        reader = Inlet(here)
        while True:
            try:
                message(bytes(reader.read(1.0)))
            except OSError:  # the other side has closed
                return
            except SapwoodError as error:
                if "announced" in str(error) or "no memory" in str(error):
                    raise


def mutate_stream(data: bytes, rng: Random) -> bytes:
    """Messages with their lengths before them; bytes changed, and lengths that are too
    long.
    """
    parts = []
    for _ in range(rng.randrange(1, 5)):
        body = mutate_message(data, rng)
        size = len(body) if rng.random() < 0.8 else abs(rng.choice(mutators.INTEGERS))
        parts.append(size.to_bytes(8, "little") + body)
    stream = b"".join(parts)
    return mutators.raw(stream, rng) if rng.random() < 0.3 else stream


def estimators(data: bytes) -> None:
    """A file that each kind of estimator is asked to load."""
    taken = 0
    for kind in (
        sw.SapwoodRegressor,
        sw.SapwoodClassifier,
        sw.SapwoodRanker,
        sw.SapwoodDistribution,
        sw.SapwoodSurvival,
    ):
        with suppress(SapwoodError):
            found: Any = kind()
            found.load_model(data)
            taken += 1
            if (
                found.booster_.n_columns <= 500
                and found.booster_.trees.n_nodes <= 5_000
            ):
                found.predict(rows_for(found.booster_))
    if not taken:
        raise SapwoodError("no kind of estimator takes the file")


def table(data: bytes, read: Callable[[io.BytesIO], object]) -> None:
    """A table that pyarrow reads and takes for valid, as a data set."""
    import pyarrow as pa

    try:
        found = read(io.BytesIO(data))
        found.validate(full=True)  # type: ignore[attr-defined]
    except (
        pa.ArrowException,
        MemoryError,
        OSError,
        ValueError,
        NotImplementedError,
        TypeError,
        OverflowError,
    ):
        raise SapwoodError("pyarrow refused the file") from None
    if found.nbytes < 10_000_000 and found.num_rows:  # type: ignore[attr-defined]
        data = sw.Dataset(found, np.arange(float(found.num_rows)))  # type: ignore[attr-defined, assignment]
        sw.train({"n_estimators": 1, "n_jobs": 1}, data).predict(found)  # type: ignore[arg-type]


def parquet(data: bytes) -> None:
    import pyarrow.parquet

    table(data, lambda file: pyarrow.parquet.read_table(file, use_threads=False))


def arrow(data: bytes) -> None:
    import pyarrow as pa

    table(data, lambda file: pa.ipc.open_stream(file).read_all())


FORMATS = {
    "sapwood": Format(
        (
            "numbers.sapwood",
            "categories.sapwood",
            "linear.sapwood",
            "derived.sapwood",
            "classes.sapwood",
        )
        + 3 * ("compact.sapwood",),  # most to get wrong
        mutators.of_container,
        model,
    ),
    "whole": Format(
        ("survival.sapwood", "cox.sapwood", "distribution.sapwood"),
        mutators.of_container,
        whole,
    ),
    "dataset": Format(("dataset.sapwood",), mutators.of_container, dataset),
    "store": Format(("store.zip",), mutators.of_store, store),
    "checkpoint": Format(("checkpoint.sapwood",), mutators.of_records, checkpoint),
    "xgboost-json": Format(
        ("xgboost.json", "xgboost_categories.json"), mutators.of_json, model
    ),
    "xgboost-ubjson": Format(
        ("xgboost.json", "xgboost_categories.json"), mutators.of_ubjson, model
    ),
    "lightgbm": Format(("lightgbm.txt",), mutators.of_lines, model),
    "catboost": Format(("catboost.json",), mutators.of_json, model),
    "messages": Format(("numbers.sapwood",), mutate_message, message),
    "arrow": Format(("table.arrow",), mutators.raw, arrow),
    "parquet": Format(("table.parquet",), mutators.raw, parquet),
    "store-files": Format(("store_full.zip",), mutators.of_every_file, store),
    "communicator": Format(("numbers.sapwood",), mutate_first_message, communicator),
    "inlet": Format(("numbers.sapwood",), mutate_stream, inlet),
    "estimators": Format(
        (
            "survival.sapwood",
            "cox.sapwood",
            "distribution.sapwood",
            "classes.sapwood",
            "categories.sapwood",
        ),
        mutators.of_container,
        estimators,
    ),
    "csv": Format(
        ("table.csv",),
        table_formats.of_csv,
        partial(table_formats.read_file, suffix=".csv"),
    ),
    "json-lines": Format(
        ("table.jsonl",),
        table_formats.of_json_lines,
        partial(table_formats.read_file, suffix=".jsonl"),
    ),
    "feather": Format(
        ("table.feather",),
        mutators.raw,
        partial(table_formats.read_file, suffix=".feather"),
    ),
    "report": Format(("reported.csv",), table_formats.of_csv, table_formats.report),
}
