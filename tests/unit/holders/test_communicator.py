"""A communicator: sums, maxima and lists of all holders, whatever their number; and what they cost."""

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
            np.testing.assert_array_equal(mine, sum(values(rank, n) for rank in range(size)))
            top = values(holder.rank, n).view(np.uint64).copy()
            holder.max(top)
            np.testing.assert_array_equal(
                top, np.max([values(rank, n).view(np.uint64) for rank in range(size)], axis=0)
            )
        assert holder.gather(b"x" * holder.rank) == [b"x" * rank for rank in range(size)]
        assert holder.gather(b"") == [b""] * size
        given = [bytes([holder.rank]) * to for to in range(size)]
        assert holder.exchange(given) == [bytes([source]) * holder.rank for source in range(size)]
        return holder.counts

    counts = run(size, work)
    sent = sum(count.bytes for one in counts for count in one.values())
    assert (sent > 0) == (size > 1)


@pytest.mark.parametrize(("size", "messages"), [(2, 1), (5, 8), (8, 14), (32, 10)])
def test_cost_of_many_integers(size, messages):
    n = 8 * FEW

    def work(holder):
        holder.sum(np.full(n, 100, np.int64))
        return holder.counts["sum"]

    for count in run(size, work):
        assert (count.calls, count.messages, count.integers) == (1, messages, n)
        assert count.bytes <= 2 * 2 * n + 40 * messages  # nobody sends more than twice its integers, of two bytes


def test_holders_at_different_calls():
    with pytest.raises(MessageError, match="is at call 1"):
        run(2, lambda holder: holder.sum(np.zeros(1, np.int64)) if holder.rank else holder.gather(b""))


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
