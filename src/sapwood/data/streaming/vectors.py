"""Labels, weights and the like in files: written as rows come, mapped where they are
used.

In: pieces of vectors. Out: files of float64, or int32 for groups, and their shapes.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import ingest
from sapwood.device import host
from sapwood.errors import DataError
from sapwood.system import folders


class VectorFiles:
    """Files of a folder that vectors are appended to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, IO[Any]] = {}
        self._shapes: dict[str, list[int]] = {}
        self._groups: list[NDArray[Any]] = []
        self._largest: dict[str, float] = {}

    def __enter__(self) -> "VectorFiles":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, vectors: Mapping[str, NDArray[Any]]) -> None:
        """Append the rows of a batch."""
        for name, values in vectors.items():
            if name == "group":
                self._groups.append(values)
                continue
            shape = self._shapes.setdefault(name, [0, *values.shape[1:]])
            if list(values.shape[1:]) != shape[1:]:
                raise DataError(
                    f"the {name} has {values.shape[1:]} columns in a batch, and {shape[1:]} before it."
                )
            if name not in self._files:
                self._files[name] = folders.open_inside(self.folder / name, "wb")
            self._files[name].write(np.ascontiguousarray(values).data)
            shape[0] += len(values)
            self._largest[name] = max(
                self._largest.get(name, 0.0), float(np.abs(values).max(initial=0.0))
            )

    def view(self, name: str) -> NDArray[Any]:
        """A vector so far."""
        self._files[name].flush()
        return mapped(self.folder / name, self._shapes[name], np.float64)

    def close(self) -> dict[str, list[int]]:
        """Check what all rows decide together, end the files, and return the shapes of
        all vectors.
        """
        if "label" in self._largest:
            ingest.check_label_size(self._largest["label"], "label")
        if self._largest.get("weight") == 0.0:
            raise DataError(
                "The weight of all rows is zero; at least one weight must be positive."
            )
        if self._groups:
            named = np.concatenate(self._groups)
            groups = ingest.group(named, len(named))
            assert groups is not None
            with folders.open_inside(self.folder / "group", "wb") as file:
                file.write(groups.data)
            self._shapes["group"] = [len(groups)]
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        return self._shapes


def mapped(path: Path, shape: Any, kind: Any) -> NDArray[Any]:
    """An array in a file, read-only, as an array."""
    file = os.open(path, os.O_RDONLY)
    try:
        found: NDArray[Any] = (
            host.mapped(file, os.fstat(file).st_size).view(kind).reshape(shape)
        )
        return found
    finally:
        os.close(file)
