"""Formats that others may write: a seed, a mutator, and what Sapwood does with a mutant.

In: bytes. Out: whether they were taken; `SapwoodError` where they were refused; anything else is a find.
"""

import io
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import mutators
import numpy as np
import pandas as pd

import sapwood as sw
from sapwood.data import derived
from sapwood.errors import SapwoodError
from sapwood.holders import messages
from sapwood.model.booster import Booster

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Format:
    """seeds: names of files of the corpus; mutate: a mutator; use: reads a mutant and does all that one may do."""

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
    """Three rows of the kinds of columns that a model has, some values missing and some new to it."""
    n = booster.n_columns - derived.n_parts(booster.times)
    numbers = np.random.default_rng(0).normal(size=(3, n))
    numbers[0, 0], numbers[1, -1] = np.nan, np.inf
    if not booster.categories and not booster.times:
        return numbers
    columns: dict[str, Any] = dict(zip(booster.feature_names, numbers.T, strict=False))
    for j, known in booster.categories.items():
        if j < n:
            columns[booster.feature_names[j]] = [None, "new", *known.values[:1], "new"][:3]
    for one in booster.times:
        name = booster.feature_names[one.column]
        if one.word == "text":
            columns[name] = ["red wine from the old north", None, ""]
        elif one.word.startswith("times"):
            columns[name] = np.array(["2024-02-29T13", "NaT", "1969-12-31"], "datetime64[s]")
        else:
            columns[name] = [[0.5] * one.length, None, [np.nan] * one.length]
    if not booster.times:
        return columns
    return pd.DataFrame(columns)


def use_model(booster: Booster, number: int) -> None:
    """Predict, explain, and by turns one of what else one may do with a model; what is refused, by an error of ours."""
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
    """A file of an estimator that knows more than its trees: curves, or the family of a distribution."""
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
    with tempfile.NamedTemporaryFile(suffix=".sapwood", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        file.write(data)
        file.flush()
        found = sw.Dataset.load(file.name)
    if found.label is not None and found.n_rows * found.n_columns < 100_000:
        sw.train({"n_estimators": 1, "n_jobs": 1, "max_leaves": 4}, found)


def store(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for name, part in mutators.files_of(data).items():
            Path(folder, name).write_bytes(part)
        found = sw.Dataset.open(folder, n_jobs=1)
        if found.label is not None and found.n_rows * found.n_columns < 100_000:
            sw.train({"n_estimators": 1, "n_jobs": 1, "max_leaves": 4}, found)


CHECKPOINTED = {"n_estimators": 6, "n_jobs": 1, "max_leaves": 4, "seed": 5, "checkpoint_every": 2}


def checkpoint_data() -> sw.Dataset:
    """What the checkpoint of the corpus was trained on."""
    X = np.arange(120.0).reshape(40, 3) % 7
    return sw.Dataset(X, X[:, 0] + X[:, 2])


def checkpoint(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None, delete=False) as file:
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
        whole = messages.message_of("sum", 3, np.array([x % 2**31 for x in values], np.int64))
        content, width = messages.body(whole, "sum", 3, 1)
        body = mutators.raw(bytes(content), rng) if rng.random() < 0.5 else bytes(content)
        made = messages.message("sum", 3, body, rng.choice((width, width, 0, 3, 255)))
    else:
        made = messages.message("gather", 4, mutators.raw(messages.listed([b"ab", b"", b"c" * 9]), rng))
    return mutators.raw(made, rng) if rng.random() < 0.3 else made


def table(data: bytes, read: Callable[[io.BytesIO], object]) -> None:
    """A table that pyarrow reads and takes for valid, as a data set."""
    import pyarrow as pa

    try:
        found = read(io.BytesIO(data))
        found.validate(full=True)  # type: ignore[attr-defined]
    except (pa.ArrowException, MemoryError, OSError, ValueError, NotImplementedError, TypeError, OverflowError):
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
        ("numbers.sapwood", "categories.sapwood", "linear.sapwood", "derived.sapwood", "classes.sapwood")
        + 3 * ("compact.sapwood",),  # most to get wrong
        mutators.of_container,
        model,
    ),
    "whole": Format(("survival.sapwood", "cox.sapwood", "distribution.sapwood"), mutators.of_container, whole),
    "dataset": Format(("dataset.sapwood",), mutators.of_container, dataset),
    "store": Format(("store.zip",), mutators.of_store, store),
    "checkpoint": Format(("checkpoint.sapwood",), mutators.of_records, checkpoint),
    "xgboost-json": Format(("xgboost.json", "xgboost_categories.json"), mutators.of_json, model),
    "xgboost-ubjson": Format(("xgboost.json", "xgboost_categories.json"), mutators.of_ubjson, model),
    "lightgbm": Format(("lightgbm.txt",), mutators.of_lines, model),
    "catboost": Format(("catboost.json",), mutators.of_json, model),
    "messages": Format(("numbers.sapwood",), mutate_message, message),
    "arrow": Format(("table.arrow",), mutators.raw, arrow),
    "parquet": Format(("table.parquet",), mutators.raw, parquet),
}
