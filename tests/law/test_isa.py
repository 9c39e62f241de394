"""The law over instruction sets: one model, byte for byte, on every path that this
machine has.
"""

import pytest

from law.tasks import every_task, expected, train
from sapwood import _core


@pytest.mark.filterwarnings("ignore:sampling='goss' takes all rows")
@every_task()
def test_instruction_sets(name: str, isa: str) -> None:
    assert _core.isa() == isa
    assert train(name).fingerprint() == expected(name)
