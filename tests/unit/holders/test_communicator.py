"""A communicator: sums, maxima and lists of all holders, whatever their number; and
what they cost.
"""

import numpy as np
import pytest

from sapwood.errors import HolderLostError, MessageError
from sapwood.holders.communicator import FEW
from sapwood.holders.threads import run

LENGTHS = (0, 1, 7, FEW, FEW + 1, 3 * FEW + 5)


def values(rank, n):
    return np.random.default_rng([rank, n]).integers(-(2**40), 2**40, n)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 17, 19])
def test_every_number_of_holders(size):
    def work(holder):
        for n in LENGTHS:
            mine = values(holder.rank, n)
            holder.sum(mine)
            np.testing.assert_array_equal(
                mine, sum(values(rank, n) for rank in range(size))
            )
            top = values(holder.rank, n).view(np.uint64).copy()
            holder.max(top)
            np.testing.assert_array_equal(
                top,
                np.max(
                    [values(rank, n).view(np.uint64) for rank in range(size)], axis=0
                ),
            )
        assert holder.gather(b"x" * holder.rank) == [
            b"x" * rank for rank in range(size)
        ]
        assert holder.gather(b"") == [b""] * size
        given = [bytes([holder.rank]) * to for to in range(size)]
        assert holder.exchange(given) == [
            bytes([source]) * holder.rank for source in range(size)
        ]
        return holder.counts

    counts = run(size, work)
    sent = sum(count.bytes for one in counts for count in one.values())
    assert (sent > 0) == (size > 1)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 17, 19, 33])
@pytest.mark.parametrize(
    "blocks", [[], [5], [1] * 40, [1000, 1, 1, 700, 3, 900], [0, 0, 300, 0]]
)
def test_sums_of_blocks(size, blocks):
    """Every block has one owner, who has its sums; nobody sends all integers more than
    once.
    """
    ends = np.cumsum(blocks).tolist()

    def work(holder):
        mine = values(holder.rank, sum(blocks))
        first, last = holder.sum_blocks(mine, ends)
        whole = sum(values(rank, sum(blocks)) for rank in range(size))
        own = slice(ends[first - 1] if first else 0, ends[last - 1] if last else 0)
        if first < last:
            np.testing.assert_array_equal(mine[own], whole[own])
        count = holder.counts["sum"]
        assert count.bytes <= 8 * len(mine) + 40 * count.messages
        return list(range(first, last))

    assert sorted(block for own in run(size, work) for block in own) == list(
        range(len(blocks))
    )


@pytest.mark.parametrize(("size", "messages"), [(2, 1), (5, 8), (8, 14), (32, 10)])
def test_cost_of_many_integers(size, messages):
    n = 8 * FEW

    def work(holder):
        holder.sum(np.full(n, 100, np.int64))
        return holder.counts["sum"]

    for count in run(size, work):
        assert (count.calls, count.messages, count.integers) == (1, messages, n)
        # nobody sends more than twice its integers, of two bytes
        assert count.bytes <= 2 * 2 * n + 40 * messages


def test_holders_at_different_calls():
    with pytest.raises(MessageError, match="is at call 1"):
        run(
            2,
            lambda holder: (
                holder.sum(np.zeros(1, np.int64)) if holder.rank else holder.gather(b"")
            ),
        )


def test_a_holder_that_fails_or_ends_early_ends_all():
    def fails(holder):
        if holder.rank == 1:
            raise KeyError("mine")
        holder.sum(np.zeros(1, np.int64))

    with pytest.raises(KeyError, match="mine"):
        run(3, fails)
    with pytest.raises(HolderLostError, match="holder 1 has ended"):
        run(3, lambda holder: None if holder.rank == 1 else holder.gather(b""))


def test_a_holder_that_does_not_answer():
    def sleeps(holder):
        if holder.rank:
            holder._link.receive(0)
            holder._link.receive(0)  # the other sends one message only
        else:
            holder._link.send(1, b"")
            holder._link.receive(1)

    with pytest.raises(HolderLostError, match=r"sent nothing for 0\.2 seconds"):
        run(2, sleeps, timeout=0.2)
