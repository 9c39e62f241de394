"""Purposes of draws: one number each, and Python's are those of the core."""

import re
from pathlib import Path

from sapwood.device import host

HASH = Path(__file__).parents[3] / "src" / "sapwood" / "core" / "math" / "hash.h"


def test_all_different():
    header = HASH.read_text()
    body = header[header.index("enum Purpose") : header.index("};")].splitlines()[1:]
    numbers = {}
    last = 0
    for line in body:
        name, number = re.match(r"  (\w+)(?: = (\d+))?", line).groups()
        last = numbers[name] = int(number or last + 1)
    assert len(set(numbers.values())) == len(numbers) == len(body)
    for name in ("HOLDOUT", "FOLDS", "DROPS", "TURN", "PERMUTE", "SAGE"):
        assert getattr(host, name) == numbers[name]
