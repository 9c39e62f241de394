"""The law over chunks: one model, byte for byte, from one table or from consecutive
pieces of it.
"""

import pytest

from law.tasks import every_task, expected, rows_of, train


@pytest.mark.filterwarnings("ignore:sampling='goss' takes all rows")
@every_task()
def test_chunks(name: str) -> None:
    n = len(rows_of(name)[1])
    ends = [1, n // 29, n // 29 + 2, n - n // 10]  # a chunk of one row, one of two
    assert train(name, 2, ends).fingerprint() == expected(name)
