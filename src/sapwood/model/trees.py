"""The trees of a model as flat frozen arrays over all their nodes.

In: trees as the core grew them, or arrays from a file. Out: read-only arrays, checked
to be trees before use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model.linear import Linear, joined_offsets
from sapwood.model.validate import check_links, check_types, freeze, require, sealed
from sapwood.params.types import MAX_SCORE

DTYPES: dict[str, np.dtype[Any]] = {
    "offset": np.dtype(np.int64),
    "output": np.dtype(np.int32),
    "column": np.dtype(np.int32),
    "threshold": np.dtype(np.float64),
    "missing_left": np.dtype(np.uint8),
    "left": np.dtype(np.int32),
    "value": np.dtype(np.float64),
    "gain": np.dtype(np.float64),
    "cover": np.dtype(np.float64),
    "count": np.dtype(np.float64),
    "set": np.dtype(np.int32),
    "set_offset": np.dtype(np.int64),
    "set_code": np.dtype(np.int32),
}
OF_TREES = ("offset", "output")
SETS = ("set", "set_offset", "set_code")  # only models with categories have any
OF_NODES = tuple(name for name in DTYPES if name not in (*OF_TREES, *SETS[1:]))


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees one after the other; node ids count from 0 within a tree.

    ::

        offset     0           3                   8      first node of each tree, and the end
        node       0   1   2   0   1   2   3   4
        column     4  -1  -1   2   7  -1  -1  -1          -1 marks a leaf
        left       1   0   0   1   3   0   0   0          the right child is left + 1
        set        0  -1  -1  -1   1  -1  -1  -1          -1: by the threshold; several nodes may share a set

        set_offset     0           2           3          first code of each set, and the end
        set_code       0   5       1                      rising within a set
    """

    offset: NDArray[np.int64]  # (n_trees + 1)
    output: NDArray[np.int32]  # (n_trees) the score a tree adds to
    column: NDArray[np.int32]  # (n_nodes) from here on; -1 in leaves
    # x <= threshold goes left; +inf: every value left, missing right; 0 in leaves
    threshold: NDArray[np.float64]
    # bit 0: missing goes left; bit 1: unseen categories go the other way; 0 in leaves
    missing_left: NDArray[np.uint8]
    left: NDArray[np.int32]  # 0 in leaves
    value: NDArray[np.float64]  # 0 in splits
    gain: NDArray[np.float64]  # 0 in leaves
    cover: NDArray[np.float64]  # sum of hessians
    count: NDArray[np.float64]  # sum of weights
    # index of the set that goes left
    set: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    # (n_sets + 1)
    set_offset: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    # of all sets
    set_code: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    linear: Linear | None = None  # the terms of linear leaves, where there are any

    def __post_init__(self) -> None:
        if not len(self.set):  # not given: no split by a set
            object.__setattr__(self, "set", np.full(len(self.column), -1, np.int32))
        freeze(self, DTYPES)

    @property
    def structure(self) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:
        """The arrays that the core reads, in its order."""
        splits = self.column, self.threshold, self.missing_left, self.left, self.value
        return (
            self.offset,
            self.output,
            *splits,
            self.set,
            self.set_offset,
            self.set_code,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.offset) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return len(self.column)

    @classmethod
    def of(cls, grown: Sequence[tuple[Mapping[str, Any], int]]) -> "Trees":
        """Freeze trees of the core, in the order they were grown, each with the output
        that it adds to.
        """
        parts: list[dict[str, Any]] = [dict(tree) for tree, _ in grown]
        sizes = [len(part["column"]) for part in parts]
        nodes = {
            name: _joined([part[name] for part in parts], name)
            for name in OF_NODES
            if name not in SETS
        }
        nodes |= _joined_sets([tuple(part[name] for name in SETS) for part in parts])
        output = np.array([output for _, output in grown], DTYPES["output"])
        linear = Linear.of(
            [
                (part.get("linear"), size)
                for part, size in zip(parts, sizes, strict=True)
            ]
        )
        return cls(
            offset=np.cumsum([0, *sizes], dtype=DTYPES["offset"]),
            output=output,
            linear=linear,
            **nodes,
        )

    @classmethod
    def concat(cls, parts: Sequence["Trees"]) -> "Trees":
        """All trees of several `Trees`, in order."""
        sizes = [np.zeros(1, np.int64), *(np.diff(part.offset) for part in parts)]
        names = [name for name in ("output", *OF_NODES) if name not in SETS]
        arrays = {
            name: _joined([getattr(part, name) for part in parts], name)
            for name in names
        }
        arrays |= _joined_sets(
            [(part.set, part.set_offset, part.set_code) for part in parts]
        )
        linear = Linear.of(
            [
                (None if part.linear is None else part.linear.terms, part.n_nodes)
                for part in parts
            ]
        )
        return cls(offset=np.cumsum(np.concatenate(sizes)), linear=linear, **arrays)

    def slice(self, first: int, last: int) -> "Trees":
        """The trees ``first .. last - 1``, and the sets that they use; the arrays are
        views, not copies.

        Sets are copied where some of those before the last are not used.
        """
        start = self.offset[first]
        end = self.offset[last]
        nodes = {name: getattr(self, name)[start:end] for name in OF_NODES}
        nodes |= self._used_sets(nodes["set"])
        offset = self.offset[first : last + 1] - start
        linear = self.linear and self.linear.slice(start, end)
        return Trees(
            offset=offset, output=self.output[first:last], linear=linear, **nodes
        )

    def grown(self, tree: int) -> dict[str, NDArray[Any]]:
        """The arrays of one tree as the core grew it, with its own sets alone; without
        terms and bins.
        """
        nodes = slice(self.offset[tree], self.offset[tree + 1])
        arrays = {name: getattr(self, name)[nodes] for name in OF_NODES}
        return arrays | self._used_sets(arrays["set"])

    def _used_sets(self, number: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """The sets of some nodes, in their order, and the numbers of nodes counted over
        them.
        """
        used = (
            np.unique(number[number >= 0]) if len(self.set_offset) > 1 else number[:0]
        )
        n_sets = int(used[-1]) + 1 if len(used) else 0
        if len(used) == n_sets:
            offset = self.set_offset[: n_sets + 1]
            return {
                "set": number,
                "set_offset": offset,
                "set_code": self.set_code[: offset[-1]],
            }
        begin = self.set_offset[used]
        size = self.set_offset[used + 1] - begin
        ends = np.append(0, np.cumsum(size))
        place = np.repeat(begin - ends[:-1], size) + np.arange(ends[-1])
        counted = np.where(number < 0, number, np.searchsorted(used, number)).astype(
            np.int32
        )
        return {"set": counted, "set_offset": ends, "set_code": self.set_code[place]}

    def times(self, factor: NDArray[np.float64]) -> "Trees":
        """The same trees, the values and terms of each multiplied by its factor."""
        of_nodes = np.repeat(factor, np.diff(self.offset))
        return replace(
            self,
            value=of_nodes * self.value,
            linear=self.linear and self.linear.times(of_nodes),
        )

    def with_shared_sets(self) -> "Trees":
        """The same trees, in which sets that are equal are one."""
        place: dict[bytes, int] = {}
        sets = [
            self.set_code[a:b]
            for a, b in zip(self.set_offset[:-1], self.set_offset[1:], strict=True)
        ]
        number = np.array(
            [place.setdefault(one.tobytes(), len(place)) for one in sets], np.int32
        )
        if len(place) == len(sets):
            return self
        del place  # a copy of all codes, while memory is short
        own = [sets[first] for first in np.unique(number, return_index=True)[1]]
        return replace(
            self,
            set=np.append(number, np.int32(-1))[self.set],
            set_offset=np.cumsum([0, *map(len, own)], dtype=np.int64),
            set_code=np.concatenate([np.empty(0, np.int32), *own]),
        )

    def codes(self, node: int) -> NDArray[np.int32]:
        """The codes that go left at a node of all nodes, whose split is by a set."""
        return self.set_code[
            self.set_offset[self.set[node]] : self.set_offset[self.set[node] + 1]
        ]

    @property
    def new_left(self) -> NDArray[np.bool_]:
        """By node: whether unseen categories go left."""
        return np.asarray((self.missing_left & 1) != (self.missing_left >> 1))

    def depth(self) -> NDArray[np.int32]:
        """Depth of every node, 0 in the roots, level by level."""
        start = np.repeat(self.offset[:-1], np.diff(self.offset))
        depth = np.zeros(self.n_nodes, np.int32)
        level = self.offset[:-1]
        while len(level):
            splits = level[self.left[level] > 0]
            left = start[splits] + self.left[splits]
            level = np.concatenate([left, left + 1])
            depth[left] = depth[left + 1] = depth[splits] + 1
        return depth

    def validate(
        self,
        n_columns: int,
        n_outputs: int,
        n_bins: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Check that the arrays are trees, whatever wrote them, in time linear in their
        size.

        n_bins: mapping of int to int; bins of the columns of categories, which alone
        are split by sets of codes.
        """
        check_types(self, DTYPES)
        for name in OF_NODES:
            if len(getattr(self, name)) != self.n_nodes:
                raise ModelFormatError(
                    f"'{name}' has {len(getattr(self, name))} nodes, 'column' has {self.n_nodes}."
                )
        if len(self.offset) != len(self.output) + 1:
            raise ModelFormatError(
                f"{len(self.output)} trees need one offset more; there are {len(self.offset)}."
            )
        # compared, not subtracted: huge offsets would wrap around
        rising = self.offset[1:] > self.offset[:-1]
        require(
            self.offset[0] == 0 and self.offset[-1] == self.n_nodes,
            "offsets go from 0 to the number of nodes",
        )
        require(rising, "offsets rise strictly")
        rounds, rest = divmod(self.n_trees, n_outputs)
        require(
            rest == 0,
            f"the number of trees ({self.n_trees}) is a multiple of the number of outputs ({n_outputs})",
        )
        require(
            self.output == np.tile(np.arange(n_outputs), rounds),
            "each round has one tree per output, in order",
        )
        check_links(self.offset, self.left)
        self._validate_numbers(n_columns)
        self._validate_sets(n_columns, n_bins)
        if self.linear is not None:
            self.linear.validate(self.left == 0, n_columns, list(n_bins))

    def _validate_numbers(self, n_columns: int) -> None:
        """Every number is one that training can produce."""
        leaf = self.left == 0
        require((self.column == -1) == leaf, "leaves, and only they, have column -1")
        require(
            (self.column >= -1) & (self.column < n_columns),
            f"columns are below {n_columns}",
        )
        require(
            self.missing_left <= np.where(self.set >= 0, 3, 1),
            "'missing_left' is 0 or 1, at most 3 by a set",
        )
        require(self.threshold > -np.inf, "no threshold is NaN or -inf")
        require(
            (self.threshold < np.inf) | (self.missing_left == 0),
            "a threshold of +inf sends missing values right",
        )
        for name in ("value", "gain", "cover", "count"):
            require(np.isfinite(getattr(self, name)), f"every '{name}' is finite")
        require(abs(self.value) <= MAX_SCORE, f"no 'value' is above {MAX_SCORE:g}")
        require(
            (self.cover >= 0) & (self.count >= 0), "no 'cover' or 'count' is negative"
        )
        require(leaf | (self.value == 0), "the value of a split is 0")
        for name in ("gain", "threshold", "missing_left"):
            require(~leaf | (getattr(self, name) == 0), f"'{name}' of a leaf is 0")

    def _validate_sets(self, n_columns: int, n_bins: Mapping[int, int]) -> None:
        """Columns of categories, and only they, are split by sets, of codes that they
        have.
        """
        offset = self.set_offset
        code = self.set_code
        by_set = self.set >= 0
        whole = len(offset) > 0 and offset[0] == 0 and offset[-1] == len(code)
        require(whole, "offsets of sets go from 0 to the codes")
        require(offset[1:] >= offset[:-1], "offsets of sets do not fall")
        require(
            (self.set >= -1) & (self.set < len(offset) - 1),
            f"sets are below {len(offset) - 1}",
        )
        begins = np.zeros(len(code) + 1, bool)
        begins[offset[:-1]] = True
        require(begins[1:-1] | (code[1:] > code[:-1]), "the codes of a set rise")
        require(code >= 0, "no code of a set is negative")
        # the last is that of leaves
        bins = np.array([n_bins.get(column, 0) for column in range(n_columns)] + [0])
        require(
            by_set == (bins[self.column] > 0),
            "columns of categories, and no others, are split by sets",
        )
        require(
            ~by_set | (self.threshold == 0), "the threshold of a split by a set is 0"
        )
        some = offset[1:] > offset[:-1]
        highest = np.full(len(some), -1)
        highest[some] = code[offset[1:][some] - 1]
        require(
            highest[self.set[by_set]] < bins[self.column[by_set]],
            "the codes of a set are bins of its column",
        )


def _joined(parts: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    """Join parts into one read-only array of the name's dtype; it is empty if there are
    none.
    """
    return sealed(
        np.concatenate([np.empty(0, DTYPES[name]), *parts], dtype=DTYPES[name])
    )


def _joined_sets(parts: Sequence[tuple[NDArray[Any], ...]]) -> dict[str, NDArray[Any]]:
    """The sets of several parts, each (set, set_offset, set_code), counted over all of
    them.
    """
    sets, offsets, codes = zip(*parts, strict=True) if parts else ((), (), ())
    # sets of other parts
    before = np.cumsum(
        [0, *(len(offset) - 1 for offset in offsets)], dtype=DTYPES["set"]
    )[:-1]
    joined = np.concatenate([np.empty(0, DTYPES["set"]), *sets], dtype=DTYPES["set"])
    joined[joined >= 0] += np.repeat(before, [len(one) for one in sets])[joined >= 0]
    return {
        "set": sealed(joined),
        "set_offset": joined_offsets(offsets),
        "set_code": _joined(codes, "set_code"),
    }
