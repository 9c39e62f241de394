"""What the tests of devices share."""

import shutil

import pytest

from device import emulated
from sapwood.params import types


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device "emulated"."""
    if shutil.which("c++") is None:
        pytest.skip("the emulation needs a C++ compiler")
    emulated.device()
    monkeypatch.setattr(types, "DEVICES", ("cpu", "cuda", "emulated"))
