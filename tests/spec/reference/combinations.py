"""NUMERICS, Combinations, in NumPy: tuples of states, told apart one by one, and the
splits that nominate them.

Columns, and trees as they have grown, enter; combinations, their tuples, and the
weights of their columns leave.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec import reference
from spec.reference.real import exp, log

Floats = NDArray[np.float64]
Sources = tuple[tuple[int, float], ...]

PLACES = 8


class Combining:
    """What trees over columns of sources make of combinations; `columns` has codes
    (missing last) or numbers.
    """

    def __init__(
        self,
        columns: list[Floats],
        n_categories: list[int],
        live: Any,
        most: int,
        reg: float,
    ) -> None:
        self.columns = columns
        self.n_categories = n_categories
        self.live = live
        self.most = most
        self.reg = reg
        self.present: list[Sources] = []
        self.tried: set[Sources] = set()
        self.used: set[Sources] = set()

    def tuples(self, sources: Sources) -> list[tuple[int, ...]]:
        """The states of every row."""
        states = []
        for column, threshold in sources:
            x = self.columns[column]
            states.append(
                x
                if self.n_categories[column]
                else np.where(np.isnan(x), 2, x > threshold)
            )
        return list(zip(*(state.astype(int).tolist() for state in states), strict=True))

    def known(self, sources: Sources) -> list[tuple[int, ...]]:
        """The tuples that count, in order: their places are codes."""
        return sorted(
            {
                one
                for one, counts in zip(self.tuples(sources), self.live, strict=True)
                if counts
            }
        )

    def codes(self, sources: Sources) -> NDArray[np.int32]:
        """Of every row; one more than there are where no row that counts has its
        tuple.
        """
        known = self.known(sources)
        return np.array(
            [
                known.index(one) if one in known else len(known)
                for one in self.tuples(sources)
            ],
            np.int32,
        )

    def behind(self, tree: reference.Tree, node: int, origin: list[Sources]) -> Sources:
        """What a split asks for; nothing where it parts missing values from numbers."""
        own = origin[tree["column"][node]]
        if len(own) == 1 and not self.n_categories[own[0][0]]:
            threshold = float(tree["threshold"][node])
            return ((own[0][0], threshold),) if threshold < np.inf else ()
        return own

    def renew(self, trees: list[reference.Tree], origin: list[Sources]) -> None:
        """After 1, 2, 4, ... rounds, by the trees since the last time."""
        credit: dict[Sources, float] = {}
        gain: dict[Sources, float] = {}
        for tree in trees:
            parent = {
                int(tree["left"][u]) + side: u
                for u in np.flatnonzero(tree["left"])
                for side in (0, 1)
            }
            for node in np.flatnonzero(tree["left"]).tolist():
                own = self.behind(tree, node, origin)
                above = set[Sources]()
                at = node
                while at in parent:
                    at = parent[at]
                    above.add(self.behind(tree, at, origin))
                if not own:
                    continue
                gain[own] = gain.get(own, 0.0) + float(tree["gain"][node])
                for other in above - {()}:
                    both = tuple(sorted({*own, *other}))
                    columns = [column for column, _ in both]
                    fits = 2 <= len(both) <= self.most and len(set(columns)) == len(
                        columns
                    )
                    if fits and any(self.n_categories[column] for column in columns):
                        credit[both] = credit.get(both, 0.0) + float(tree["gain"][node])
        stay = sorted(
            (one for one in self.present if gain.get(one, 0.0) > 0),
            key=lambda one: (-gain[one], one),
        )
        fresh = sorted(
            (one for one in credit if one not in self.tried),
            key=lambda one: (-credit[one], one),
        )
        fresh = fresh[: PLACES - min(len(stay), PLACES // 2)]
        self.tried |= set(fresh)
        stay = stay[: PLACES - len(fresh)]
        self.present = [one for one in self.present if one in stay] + fresh

    def weights(
        self, singles: list[int], n_values: int, n_first: int
    ) -> list[float] | None:
        """Of all columns, `n_first` of which are no combinations; `singles`: sizes of
        columns of statistics.
        """
        if not self.present:
            return None
        sizes = [len(self.known(one)) for one in self.present]
        most = max(*singles, *sizes)
        found = [1.0] * n_first
        for one, size in zip(self.present, sizes, strict=True):
            weight = exp(
                np.array([-self.reg * float(log(np.array([1.0 + size / most]))[0])])
            )
            found += [1.0 if one in self.used else float(weight[0])] * n_values
        return found
