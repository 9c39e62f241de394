"""Stores that someone has changed and signed anew: DataError, whatever they say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sapwood import Dataset
from sapwood.data import container
from sapwood.errors import DataError, SapwoodError

LIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "falling cuts": lambda arrays, fields: arrays.update(
        cuts=arrays["cuts"][::-1].copy()
    ),
    "cuts of another type": lambda arrays, fields: arrays.update(
        cuts=arrays["cuts"].astype(np.int64)
    ),
    "cuts that are not finite": lambda arrays, fields: arrays.update(
        cuts=np.full_like(arrays["cuts"], np.inf)
    ),
    "a shape of nothing": lambda arrays, fields: fields["shapes"].update(label=[]),
    "names that are no text": lambda arrays, fields: fields.update(
        feature_names=[["a"], "b", "c"]
    ),
    "a name twice": lambda arrays, fields: fields.update(feature_names=["a", "a", "c"]),
    "a device that is none": lambda arrays, fields: fields["bins"].update(
        device=["cpu"]
    ),
    "checksums that are a list": lambda arrays, fields: fields.update(checksums=[1]),
    "rows that are none": lambda arrays, fields: fields.update(n_rows=2**62),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_the_head_raise(tmp_path: Path, lie: str) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    folder = tmp_path / "store"
    Dataset.from_batches(lambda: iter([(X, X[:, 0])]), store=folder)
    arrays, fields = container.unpack(
        (folder / "dataset").read_bytes(), "store", 1, DataError
    )
    LIES[lie](arrays, fields)
    (folder / "dataset").write_bytes(container.pack("store", 1, arrays, fields))
    # DataError but for the device, whose error is that of the parameter
    with pytest.raises(SapwoodError):
        Dataset.open(folder)
