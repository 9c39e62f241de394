"""What the tests of devices share."""

import shutil
from typing import Any

import pytest

from device import emulated
from sapwood.device import get
from sapwood.device.cuda import plan
from sapwood.params import types


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device "emulated"."""
    if shutil.which("c++") is None:
        pytest.skip("the emulation needs a C++ compiler")
    emulated.device()
    monkeypatch.setattr(types, "DEVICES", ("cpu", "cuda", "emulated"))


@pytest.fixture
def counted(device: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The runtime of a device "emulated" that counts its memory, and the plan of its
    memory for 3,000 rows.
    """
    emulated.device(emulated.Counted)
    runs = get("emulated").Trainer.runtime  # type: ignore[attr-defined]
    monkeypatch.setattr(plan.Counting, "settings", runs.settings)
    monkeypatch.setattr(plan.Counting, "max_shared", runs.max_shared)
    monkeypatch.setattr(plan, "FEW", 3000)
    return runs
