"""Messages: what is sent arrives, in few bytes; what nobody of ours has sent is
refused.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sapwood.errors import MessageError
from sapwood.holders import messages


@given(arrays(np.int64, st.integers(0, 20), elements=st.integers(-(2**63), 2**63 - 1)))
def test_integers_arrive(values):
    content, width = messages.body(
        messages.message_of("sum", 2**32 + 5, values), "sum", 2**32 + 5, 0
    )
    np.testing.assert_array_equal(
        messages.widened(content, width, values, 0).astype(np.int64), values
    )
    sums = np.arange(len(values)) - 3
    wanted = sums + values  # modulo 2^64, as numpy adds
    messages.add(content, width, sums, 0)
    np.testing.assert_array_equal(sums, wanted)


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([], 1),
        ([127, -128], 1),
        ([128], 2),
        ([-129], 2),
        ([2**15], 4),
        ([-(2**31)], 4),
        ([2**31], 8),
        ([-(2**63), 2**63 - 1], 8),
    ],
)
def test_narrowest_integers(values, width):
    raw = messages.message_of("sum", 7, np.array(values, np.int64))
    content, found = messages.body(raw, "sum", 7, 1)
    assert found == width and len(content) == width * len(values)
    assert raw == messages.message("sum", 7, bytes(content), width)  # the same head
    bits = messages.message_of("max", 7, np.array([1], np.uint64))
    assert messages.body(bits, "max", 7, 1)[1] == 8  # bits of floats


def test_every_damage_is_refused():
    raw = messages.message("sum", 7, b"abcdefgh", 4)
    assert messages.body(raw, "sum", 7, 1) == (b"abcdefgh", 4)
    for end in range(len(raw)):
        with pytest.raises(MessageError):
            messages.body(raw[:end], "sum", 7, 1)
    for at in range(len(raw)):
        for bit in range(8):
            bad = raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :]
            if at == 5:  # the width is checked with the integers
                with pytest.raises(MessageError):
                    messages.widened(
                        *messages.body(bad, "sum", 7, 1), np.zeros(2, np.int64), 1
                    )
            else:
                with pytest.raises(MessageError):
                    messages.body(bad, "sum", 7, 1)
    with pytest.raises(
        MessageError,
        match=r"holder 1 is at call 7 \(sum\), and this one at call 8 \(max\)",
    ):
        messages.body(raw, "max", 8, 1)


@pytest.mark.parametrize("values", [np.zeros(3, np.int64), np.zeros(1, np.uint64)])
def test_other_numbers_of_integers_are_refused(values):
    with pytest.raises(MessageError, match="sent 8 bytes for"):
        messages.widened(memoryview(bytes(8)), 4, values, 0)
    with pytest.raises(MessageError, match="sent 8 bytes for"):
        messages.add(memoryview(bytes(8)), 4, values, 0)


@given(st.lists(st.binary(max_size=9), max_size=5))
def test_lists(parts):
    raw = messages.listed(parts)
    assert messages.parted(memoryview(raw), len(parts), 0) == parts
    for bad in (raw[:-1], raw + b"x", messages.listed([*parts, b""])):
        with pytest.raises(MessageError):
            messages.parted(memoryview(bad), len(parts), 0)
