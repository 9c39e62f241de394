"""Arrays of other libraries in the memory of a GPU are known by what they say of
themselves.
"""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sapwood.device import arrays


class Told:
    """An array that tells its device through DLPack."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.kind < 0:
            raise BufferError("no word for it")
        return self.kind, 0


@pytest.mark.parametrize(
    ("kind", "there"), [(1, False), (2, True), (13, True), (10, False), (-1, False)]
)
def test_dlpack_says_where_an_array_is(kind: int, there: bool) -> None:
    assert arrays.by_dlpack(Told(kind)) == arrays.is_there(Told(kind)) == there


@pytest.mark.parametrize("values", [np.zeros(3), [1.0], None, "text"])
def test_what_is_here_stays_as_it_is(values: Any) -> None:
    assert not arrays.is_there(values)
    assert arrays.to_host(values) is values


def test_an_array_that_has_dlpack_alone_is_copied_by_cupy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = np.arange(3.0)
    fake = SimpleNamespace(
        from_dlpack=lambda values: SimpleNamespace(get=lambda: copied)
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    assert arrays.to_host(Told(2)) is copied
