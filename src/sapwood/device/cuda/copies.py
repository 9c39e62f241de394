"""Copies of a round: trees that grow on the same scores, each copy with a sample of
rows of its own.

In: the samples and numbers of the trees that will be asked for. Out: which of them grow
side by side, and those that have grown already.
"""

from collections.abc import Sequence
from typing import Any

# seed, round, subsample: as `Trainer.sample` takes them
Sample = tuple[int, int, float | None]


class Copies:
    """The copies that are asked for next, one after the other, while the scores stay as
    they are.
    """

    def __init__(self, n_outputs: int) -> None:
        self._n_outputs = n_outputs
        self.most = 1  # copies that were told at once
        self.forget()

    def forget(self) -> None:
        """Nothing is known about what comes."""
        self._samples: list[Sample] = []
        # number of the first copy's first tree; those of all copies follow each other
        self._first_tree = 0
        self._asked = -1  # the copy whose sample was asked for last
        # of their gradients, once these are found
        self._rules: tuple[Any, ...] | None = None
        # trees of copies that have grown side by side
        self._ready: list[list[Any]] = []
        self._ready_at = 0  # the first of these copies
        self._grown_as: tuple[Any, ...] = ()

    def expect(self, samples: Sequence[Sample], first_tree: int) -> None:
        """What the next calls of `sample` and `grow` will be given."""
        self.forget()
        self._samples = list(samples)
        self._first_tree = first_tree
        self.most = max(self.most, len(self._samples))

    def have_gradients(self, rules: tuple[Any, ...] | None) -> bool:
        """Whether the gradients by these rules are found already, by an earlier copy;
        None: someone gives others.
        """
        known = rules is not None and self._rules == rules
        if self._rules is not None and not known:
            self.forget()
        if self._samples:
            self._rules = rules
        return known

    def next_is(self, sample: Sample) -> bool:
        """Whether this is the sample of the next copy: it is drawn once its trees are
        asked for.
        """
        self._asked += 1
        if self._asked < len(self._samples) and self._samples[self._asked] == sample:
            return True
        self.forget()
        return False

    def batch(self, tree: int, most: int) -> list[Sample]:
        """The samples of the copies that grow with that of this tree; empty where it
        was not told.
        """
        at = self._asked
        if at < 0 or tree != self._first_tree + at * self._n_outputs:
            self.forget()
            return []
        alike = [
            sample
            for sample in self._samples[at : at + most]
            if sample[2] == self._samples[at][2]
        ]
        return alike if alike == self._samples[at : at + len(alike)] else alike[:1]

    def keep(self, copies: list[list[Any]], grown_as: tuple[Any, ...]) -> None:
        """Keep the trees of copies that have grown side by side, that of the last
        sample first.
        """
        self._ready = copies
        self._ready_at = self._asked
        self._grown_as = grown_as

    def take(
        self, tree: int, grown_as: tuple[Any, ...]
    ) -> tuple[int, list[Any]] | None:
        """The copy of this tree, if it has grown already: its place among those side by
        side, and its trees.
        """
        place = self._asked - self._ready_at
        own = tree == self._first_tree + self._asked * self._n_outputs
        return (
            (place, self._ready[place])
            if own and place < len(self._ready) and self._grown_as == grown_as
            else None
        )


def even(n: int, most: int) -> int:
    """The size of batches of at most `most` that n things make, all of one size but the
    last.
    """
    return -(-n // -(-n // most))
