"""The trees of a training so far.

In: the trees of each round, as the core grew them. Out: the trees of the first rounds,
frozen.
"""

from sapwood.boost.round.training import Floats, Step
from sapwood.device import Tree
from sapwood.model.trees import Trees

# Trees that are frozen at once: a device waits for its trees then; as grown, a small
# one takes twice the memory.
BLOCK = 64
SHARED = 16  # where sets are shared: as grown, each tree has its own sets of many codes


class TreeStore:
    """The rounds of a training; all have the same number of trees, output after output.

    shared: bool; whether sets of categories that are equal are kept once, as the model
    will have them.
    """

    def __init__(self, n_outputs: int, shared: bool = False) -> None:
        self._n_outputs = n_outputs
        self._n_trees = 0
        self._shared = shared
        self._block = SHARED if shared else BLOCK
        self._blocks: list[Trees] = []
        self._fresh: list[tuple[Tree, int]] = []
        # after each round, of all rounds so far; None where they are 1
        self._weights: list[Floats | None] = []

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return len(self._weights)

    def add(self, step: Step) -> None:
        """Add a round."""
        trees, weights = step
        self._fresh.extend(
            (tree, at % self._n_outputs) for at, tree in enumerate(trees)
        )
        self._weights.append(weights)
        self._n_trees += len(trees)
        if len(self._fresh) >= self._block:
            self._freeze()

    def trees(self, n_rounds: int) -> Trees:
        """The trees of the first rounds, times their factors after the last of these
        rounds.
        """
        self._freeze()
        if n_rounds == 0:
            return Trees.of([])
        each = self._n_trees // self.n_rounds
        weights = self._weights[n_rounds - 1]
        if n_rounds == self.n_rounds:
            self._blocks = [Trees.concat(self._blocks)]
        found = (
            self._blocks[0]
            if n_rounds == self.n_rounds
            else self._first(n_rounds * each)
        )
        return found if weights is None else found.times(weights.repeat(each))

    def _first(self, n_trees: int) -> Trees:
        """A copy of the first trees."""
        parts = list[Trees]()
        left = n_trees
        for block in self._blocks:
            parts += (
                [block.slice(0, left) if left < block.n_trees else block]
                if left
                else []
            )
            left = max(0, left - block.n_trees)
        # with the sets that they use alone
        return Trees.concat(parts).slice(0, n_trees)

    def _freeze(self) -> None:
        if self._fresh:
            block = Trees.of(self._fresh)
            self._fresh = []
            self._blocks.append(block.with_shared_sets() if self._shared else block)
