"""Sums, maxima and lists over the holders of rows, made of messages from one holder to
another.

In: a `Link`. Out: a `sapwood.reduce.Reduce`, and counts of what it has sent.

Few integers are doubled: in step k each holder exchanges all of them with the one 2^k
ranks away, and after log2(n) steps every holder has the sums of all. Many integers are
cut into as many blocks as there are holders: each holder adds up one block and sends
the sums to all others, so that nobody sends more than twice its integers. Or the
holders keep the sums of their own blocks, and send nothing back (`sum_blocks`).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sapwood.holders import messages
from sapwood.holders.messages import Integers

FEW = 4096  # integers that are doubled rather than cut into blocks
# holders whose blocks go straight to each other; more of them halve and double
MAX_DIRECT = 16


class Link(Protocol):
    """Carries messages between holders, in the order in which they were sent. The few
    functions of a communicator.
    """

    rank: int  # which holder this is
    size: int  # how many there are

    def send(self, to: int, message: bytes) -> None:
        """Hand over a message for another holder. Returns before the other has received
        it.
        """

    def receive(self, source: int) -> bytes | memoryview:
        """The next message of another holder, which the next call may overwrite.

        Raises `HolderLostError` within bounded time where the other is gone.
        """


@dataclass
class Count:
    """What one verb has cost this holder."""

    calls: int = 0
    messages: int = 0  # sent
    bytes: int = 0  # sent
    integers: int = 0  # of all calls, before any packing


class Communicator:
    """A `sapwood.reduce.Reduce` over a link. All holders make the same calls in the
    same order; others raise.
    """

    def __init__(self, link: Link) -> None:
        self.rank, self.size, self._link = link.rank, link.size, link
        self.counts = {verb: Count() for verb in messages.VERBS}
        self._call = 0

    def sum(self, values: NDArray[np.int64]) -> None:
        """Replace integers by their sums over all holders."""
        assert values.dtype == np.int64
        self._reduce("sum", values)

    def sum_blocks(
        self, values: NDArray[np.int64], ends: Sequence[int]
    ) -> tuple[int, int]:
        """Replace integers of some blocks by their sums; which ones. The holders own
        about equally many integers.
        """
        assert values.dtype == np.int64
        self._begin("sum", len(values))
        own = _Values(self, "sum", values)
        places = [0, *ends]
        if self.size > MAX_DIRECT:
            return self._halve(own, places)
        firsts = [
            *(
                bisect_left(ends, len(values) * holder // self.size)
                for holder in range(self.size)
            ),
            len(ends),
        ]
        self._scatter(
            own,
            [slice(places[first], places[last]) for first, last in pairwise(firsts)],
        )
        return firsts[self.rank], firsts[self.rank + 1]

    def max(self, values: NDArray[np.uint64]) -> None:
        """Replace integers by their maxima over all holders."""
        assert values.dtype == np.uint64
        self._reduce("max", values)

    def gather(self, mine: bytes) -> list[bytes]:
        """What every holder gave, in the order of holders."""
        self._begin("gather", 0)
        # those of holders rank, rank + 1, ...
        found = [bytes(mine)]
        n = self.size
        while len(found) < n:
            step = len(found)
            self._send(
                "gather", (self.rank - step) % n, messages.listed(found[: n - step])
            )
            source = (self.rank + step) % n
            content, _ = self._receive("gather", source)
            found += messages.parted(content, min(step, n - step), source)
        return found[n - self.rank :] + found[: n - self.rank]

    def exchange(self, parts: Sequence[bytes]) -> list[bytes]:
        """What every holder gave to this one, in their order; ``parts`` has one for
        each holder.
        """
        assert len(parts) == self.size
        self._begin("exchange", 0)
        others = self._others()
        for other in others:
            self._send("exchange", other, parts[other])
        found = {
            other: bytes(self._receive("exchange", other)[0])
            for other in reversed(others)
        }
        return [found.get(holder, parts[self.rank]) for holder in range(self.size)]

    def _begin(self, verb: str, n: int) -> None:
        self._call += 1
        self.counts[verb].calls += 1
        self.counts[verb].integers += n

    def _send(self, verb: str, to: int, body: bytes) -> None:
        self._hand_over(verb, to, messages.message(verb, self._call, body))

    def _hand_over(self, verb: str, to: int, raw: bytes) -> None:
        count = self.counts[verb]
        count.messages += 1
        count.bytes += len(raw)
        self._link.send(to, raw)

    def _receive(self, verb: str, source: int) -> tuple[memoryview, int]:
        return messages.body(self._link.receive(source), verb, self._call, source)

    def _reduce(self, verb: str, values: Integers) -> None:
        self._begin(verb, len(values))
        few = len(values) <= FEW or self.size == 2
        if few or self.size > MAX_DIRECT:
            self._halve_and_double(_Values(self, verb, values), doubled=few)
        else:
            self._cut(_Values(self, verb, values))

    def _cut(self, values: "_Values") -> None:
        """Each holder adds up one block, and sends it to all others."""
        n = self.size
        rank = self.rank
        ends = [values.size * k // n for k in range(n + 1)]
        blocks = [slice(ends[k], ends[k + 1]) for k in range(n)]
        self._scatter(values, blocks)
        others = self._others()
        for other in others:
            values.send(other, blocks[rank])
        for other in reversed(others):
            values.take(other, blocks[other])

    def _scatter(self, values: "_Values", blocks: Sequence[slice]) -> None:
        """Each holder adds up the block of its rank."""
        others = self._others()
        for other in others:
            values.send(other, blocks[other])
        for other in reversed(others):
            values.join(other, blocks[self.rank])

    def _others(self) -> list[int]:
        """The other holders, from the next one on."""
        return [(self.rank + step) % self.size for step in range(1, self.size)]

    def _halve(self, values: "_Values", places: Sequence[int]) -> tuple[int, int]:
        """Exchange halves of halves, cut between blocks, with holders 2^k ranks away;
        the blocks that are left.

        Holders beyond the largest power of two give their integers to others, and own
        no block.
        """
        rank = self.rank
        power = 1 << (self.size.bit_length() - 1)
        whole = slice(0, values.size)
        first = 0
        last = len(places) - 1
        bit = 1
        if rank >= power:
            values.send(rank - power, whole)
            return 0, 0
        if rank < self.size - power:
            values.join(rank + power, whole)
        while bit < power:
            other = rank ^ bit
            middle = min(
                last, bisect_left(places, (places[first] + places[last]) // 2, first)
            )
            mine, theirs = ((first, middle), (middle, last))[
                :: 1 if rank < other else -1
            ]
            values.send(other, slice(places[theirs[0]], places[theirs[1]]))
            values.join(other, slice(places[mine[0]], places[mine[1]]))
            (first, last), bit = mine, 2 * bit
        return first, last

    def _halve_and_double(self, values: "_Values", doubled: bool) -> None:
        """Exchange all integers (``doubled``), or first halves of halves and then back,
        with holders 2^k ranks away.

        Holders beyond the largest power of two give their integers to others first, and
        get the sums at the end.
        """
        rank = self.rank
        power = 1 << (self.size.bit_length() - 1)
        whole = slice(0, values.size)
        extra = self.size - power
        if rank >= power:
            values.send(rank - power, whole)
            values.take(rank - power, whole)
            return
        if rank < extra:
            values.join(rank + power, whole)
        own = whole
        halved = list[tuple[int, slice, slice]]()
        bit = 1
        while bit < power:
            other = rank ^ bit
            middle = (own.start + own.stop) // 2
            low = slice(own.start, middle)
            high = slice(middle, own.stop)
            mine, theirs = (
                (own, own) if doubled else (low, high) if rank < other else (high, low)
            )
            values.send(other, theirs)
            values.join(other, mine)
            halved.append((other, mine, theirs))
            own = mine
            bit = 2 * bit
        for other, mine, theirs in reversed([] if doubled else halved):
            values.send(other, mine)
            values.take(other, theirs)
        if rank < extra:
            values.send(rank + power, whole)


@dataclass
class _Values:
    """The integers of one call."""

    of: Communicator
    verb: str
    values: Integers

    @property
    def size(self) -> int:
        return len(self.values)

    def send(self, to: int, part: slice) -> None:
        self.of._hand_over(
            self.verb,
            to,
            messages.message_of(self.verb, self.of._call, self.values[part]),
        )

    def join(self, source: int, part: slice) -> None:
        """Add what another holder sends to a part, or take the maxima."""
        values = self.values[part]
        if self.verb == "sum":
            messages.add(*self.of._receive(self.verb, source), values, source)
        else:
            np.maximum(values, self._received(source, part), out=values)

    def take(self, source: int, part: slice) -> None:
        """Replace a part by what another holder sends."""
        self.values[part] = self._received(source, part)

    def _received(self, source: int, part: slice) -> Integers:
        content, width = self.of._receive(self.verb, source)
        return messages.widened(content, width, self.values[part], source)
