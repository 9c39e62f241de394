"""Tables in files, as the command line reads them, and rows that are reported.

In: bytes of a mutant. Out: nothing where they were read; `SapwoodError` where they were
refused.
"""

import io
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import mutators
import numpy as np
import pandas as pd

import sapwood as sw
from sapwood.errors import DataError, SapwoodError
from sapwood.model.booster import Booster

SHARED_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
# of a table that is trained on
MAX_BYTES = 1_000_000
MAX_COLUMNS = 300
CELLS = [str(one) for one in mutators.FLOATS + mutators.INTEGERS] + mutators.TEXTS
CELLS += [
    "1.7e308",
    "-1.7e308",
    "5e-324",
    "=1+1",
    '"',
    "a\x00b",
    "\x1b[2J",
    "2024-02-30",
    "12:00",
    "TRUE",
    "NA",
]
N_REPORTED = 40  # rows


def of_csv(data: bytes, rng: Random) -> bytes:
    """A CSV file: cells, columns and lines changed, left out and doubled, or its
    bytes.
    """
    if rng.random() < 0.3:
        return mutators.raw(data, rng)
    lines = [line.split(b",") for line in data.split(b"\n")]
    for _ in range(rng.choice((1, 2, 8, 60))):
        line = rng.choice(lines)
        at = rng.randrange(len(line))
        what = rng.randrange(12)
        if what <= 7:
            line[at] = rng.choice(CELLS).encode(errors="surrogatepass")
        elif what == 8:
            line.insert(at, line[at])
        elif what == 9 and len(line) > 1:
            del line[at]
        elif what == 10:
            lines.insert(rng.randrange(len(lines)), list(line))
        else:
            column = rng.choice(CELLS).encode(errors="surrogatepass")
            for other in lines[1:]:
                other[at % len(other)] = column
    return b"\n".join(b",".join(line) for line in lines)


def of_json_lines(data: bytes, rng: Random) -> bytes:
    """JSON lines: the structure of some lines changed, or the bytes."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 2, 8))):
        at = rng.randrange(len(lines))
        if rng.random() < 0.05:
            depth = rng.choice((3, 60, 70, 1_000, 50_000))
            lines[at] = b'{"a":' * depth + b"1" + b"}" * depth
        elif lines[at].startswith(b"{"):
            # of a line that another turn has made deep
            with suppress(ValueError, RecursionError):
                lines[at] = mutators.of_json(lines[at], rng)
    return b"\n".join(lines)


def read_file(data: bytes, suffix: str) -> None:
    """A file as a whole and in batches, and a training on it."""
    from sapwood.cli import tables

    with tempfile.NamedTemporaryFile(suffix=suffix, dir=SHARED_MEMORY) as file:
        file.write(data)
        file.flush()
        path = Path(file.name)
        with suppress(SapwoodError):
            for batch in tables.batches(path, 7, ["town"], ["a"]):
                if batch.nbytes > MAX_BYTES:
                    break
        try:
            table = tables.read(path)
        except SapwoodError as error:
            # Arrow believes the sizes that a file claims, and is refused the memory
            raise error from None
    if table.nbytes > MAX_BYTES or table.num_columns > MAX_COLUMNS:
        return
    label = np.arange(float(table.num_rows))
    booster = sw.train({"n_estimators": 1, "n_jobs": 1}, sw.Dataset(table, label))
    booster.predict(table)


@cache
def reported() -> tuple[Booster, Any]:
    """A model, and the rows that a mutant changes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_REPORTED, 3)), columns=list("abc"))
    frame["y"] = frame["a"] + rng.normal(0, 0.1, N_REPORTED)
    data = sw.Dataset(frame[["a", "b", "c"]], frame["y"], linear_leaves=True)
    params = {
        "n_estimators": 3,
        "max_leaves": 4,
        "min_samples_leaf": 3,
        "n_jobs": 1,
        "linear_leaves": True,
    }
    return sw.train(params, data), frame


def report(data: bytes) -> None:
    """A report of numbers of any size; a warning of NumPy's is a find."""
    booster, trained = reported()
    try:
        found = pd.read_csv(io.BytesIO(data))
        numbers = found.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    except Exception as cause:  # the words of another library about a file that is none
        raise DataError("pandas refused the file") from cause
    if numbers.shape[1] < 4:
        raise DataError("the mutant has too few columns")
    rows = pd.DataFrame(numbers[:, :3], columns=["a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        booster.report(
            rows,
            numbers[:, 3],
            train=(trained[["a", "b", "c"]], trained["y"]),
            title="{{BODY}}",
        )
