"""Sources that can be read only once are copied to disk first, batch by batch, and read
from there.

In: a source. Out: another one that has the same batches.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sapwood.data import container, ingest
from sapwood.data.categories import Coded
from sapwood.data.ingest.sources import Source
from sapwood.data.progress import tell
from sapwood.data.streaming.reading import Batch, Kept, Reader, Request
from sapwood.data.times import Times
from sapwood.errors import DataError
from sapwood.system import folders, writing

FOLDER = "spool"
KIND = "spool"


def copy(request: Request, folder: Path) -> Source:
    """Copy all batches of a source into a folder."""
    folders.make_inside(folder / FOLDER)
    n_rows = n_batches = 0
    for batch in Reader(request).batches("copying rows"):
        writing.write(folder / FOLDER / f"{n_batches}", _pack(batch))
        n_batches += 1
        n_rows += batch.columns.n_rows
    what = request.source.what
    identity = {"spool": n_batches}

    def read() -> Iterator[Kept]:
        for k in range(n_batches):
            yield _unpack((folder / FOLDER / f"{k}").read_bytes())

    tell("copying rows", n_rows, n_rows, {})
    return Source(read, what, identity, once=True, n_rows=n_rows)


def _pack(batch: Batch) -> bytes:
    arrays: dict[str, Any] = {
        f"vector.{name}": values for name, values in batch.vectors.items()
    }
    kinds: list[Any] = []
    for j, one in enumerate(batch.columns.dense().as_columns()):
        if isinstance(one, Coded):
            kinds.append(["categories", list(one.values)])
            arrays[f"{j}"] = one.codes.astype(np.int32)
        elif isinstance(one, Times):
            kinds.append(["times", one.zone])
            arrays[f"{j}"] = one.microseconds
        else:
            kinds.append(["numbers", None])
            arrays[f"{j}"] = one
    groups = arrays.get("vector.group")
    if groups is not None and groups.dtype.kind in "OUST":
        arrays.pop("vector.group")
        kinds.append(["group", [str(one) for one in groups.tolist()]])
    fields = {
        "kinds": json.dumps(kinds),
        "names": batch.columns.names,
        "n_rows": batch.columns.n_rows,
    }
    return container.pack(KIND, 1, arrays, fields)


def _unpack(raw: bytes) -> Kept:
    arrays, fields = container.unpack(raw, KIND, 1, DataError)
    vectors = {
        name[7:]: values
        for name, values in arrays.items()
        if name.startswith("vector.")
    }
    table: list[Any] = []
    for j, (kind, more) in enumerate(json.loads(fields["kinds"])):
        if kind == "group":
            vectors["group"] = np.array(more)
        elif kind == "categories":
            table.append(Coded(arrays[f"{j}"], more))
        else:
            table.append(
                Times(arrays[f"{j}"], more) if kind == "times" else arrays[f"{j}"]
            )
    names = fields["names"]
    columns = ingest.Columns(
        table, names and tuple(names), fields["n_rows"], len(table)
    )
    return Kept(columns, vectors)
