"""The trees of a large model in few bytes: what repeats, or follows from other numbers, is not in the file.

In: the plain arrays of a model file. Out: other arrays, and what JSON says of them; and back, the same in every bit,
with nothing believed before it is checked.

Of ``offset`` and ``linear_offset`` the differences are stored. Of an array in `OF_SPLITS`, `OF_LEAVES` or `SUMS` the
numbers of these nodes are stored, unless ``whole`` names it: then all are. What is left of an array ``x`` has these
entries in a file, each where it saves bytes:

    x.same             a bit for each tree: its numbers are those of the tree before, as in trees of several outputs
    x.most, x.some     the most frequent number, and a bit for each number that is another one
    x.table, x.code    the different numbers that remain, and of each its place in the table, in as few bits as it needs
    x                  without a table: the numbers that remain

Bits begin with the lowest one of a byte. No general compressor is used: its bytes differ from version to version, and
the same model must have the same bytes everywhere.
"""

from collections.abc import Collection, Mapping, MutableMapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model import linear, trees
from sapwood.model.validate import check_links, require, sealed

MIN_BYTES = 1 << 18  # smaller models are stored as ever: there is little to save, and their fingerprints stay
MAX_TIMES = 16  # arrays have at most so many times the bytes of the file; a model that would be smaller is stored plain
MAX_LEVELS = 256  # of trees whose sums are not stored
MAX_TABLE = 1 << 16
UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
BITS = np.dtype(np.uint8)

OF_SPLITS = {"column": -1, "threshold": 0, "missing_left": 0, "gain": 0, "set": -1}  # and what leaves have
OF_LEAVES = {"value": 0, "linear_offset": 0}  # and what splits have
SUMS = {"cover": 0, "count": 0}  # of leaves: a split has the sum of its children
OF_NODES = {**OF_SPLITS, **OF_LEAVES, **SUMS}
DTYPES = {name: dtype for name, dtype in {**trees.DTYPES, **linear.DTYPES}.items() if not name.startswith("set_")}

Arrays = MutableMapping[str, NDArray[Any]]


class Shape:
    """Where the nodes of each tree begin, which of them are leaves, and which are the children of which."""

    def __init__(self, offset: NDArray[np.int64], left: NDArray[np.int32]) -> None:
        self.offset, self.left, self.leaf = offset, left, left == 0

    def kept(self, name: str) -> NDArray[np.bool_]:
        """The nodes whose numbers are stored."""
        return np.asarray(self.leaf != (name in OF_SPLITS))

    def ends(self, name: str, whole: Collection[str], of_terms: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Where the stored numbers of each tree begin, and the end; those of all trees are one part of `OF_TREES`."""
        if name in trees.OF_TREES:
            return np.array([0, len(self.offset) - 1])
        if name in OF_NODES and name not in whole:
            kept = np.add.reduceat(self.kept(name), self.offset[:-1], dtype=np.int64)
            return np.append(0, np.cumsum(kept))
        return self.offset if name in OF_NODES or name == "left" or of_terms is None else of_terms[self.offset]

    def filled(self, name: str, numbers: NDArray[Any]) -> NDArray[Any]:
        """The numbers of all nodes from those that are stored."""
        whole = np.full(len(self.leaf), OF_NODES[name], numbers.dtype)
        whole[self.kept(name)] = numbers
        if name in SUMS:
            require(len(self.levels) <= MAX_LEVELS, f"trees without stored sums have at most {MAX_LEVELS} levels")
            for splits, children in reversed(self.levels):
                whole[splits] = whole[children] + whole[children + 1]
        return whole

    @cached_property
    def levels(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Splits and their left children, level by level from the roots, until there are too many levels."""
        found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        nodes = roots = self.offset[:-1]
        while len(nodes) and len(found) <= MAX_LEVELS:
            inner = ~self.leaf[nodes]
            splits, roots = nodes[inner], roots[inner]
            children = roots + self.left[splits]
            found.append((splits, children))
            nodes, roots = np.concatenate([children, children + 1]), np.concatenate([roots, roots])
        return found

    def follows(self, name: str, array: NDArray[Any]) -> bool:
        """Whether the numbers of all nodes are those that follow from the stored ones, in every bit."""
        if name in SUMS and len(self.levels) > MAX_LEVELS:
            return False
        return np.array_equal(_bits(self.filled(name, array[self.kept(name)])), _bits(array))


def encode(plain: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """Arrays of few bytes in place of those of a model, and what is said of them; None where little would be saved."""
    given = {name: plain[name] for name in DTYPES if name in plain}
    n_bytes = sum(array.nbytes for array in given.values())
    if n_bytes < MIN_BYTES:
        return None
    shape, of_terms = Shape(given["offset"], given["left"]), given.get("linear_offset")
    given |= {name: np.diff(given[name]) for name in ("offset", "linear_offset") if name in given}
    whole = [name for name in sorted(given.keys() & OF_NODES) if not shape.follows(name, given[name])]
    coded: dict[str, NDArray[Any]] = {}
    for name, array in given.items():
        part = array[shape.kept(name)] if name in OF_NODES and name not in whole else array
        _put(coded, name, part, shape.ends(name, whole, of_terms))
    if n_bytes > MAX_TIMES * sum(array.nbytes for array in coded.values()):
        return None
    n_terms = len(given.get("linear_coef", ()))
    said = {"trees": len(given["offset"]), "nodes": len(shape.left), "terms": n_terms, "whole": whole}
    return {name: array for name, array in plain.items() if name not in given} | coded, said


def decode(arrays: Arrays, said: Any) -> None:
    """Put the plain arrays of a model among the arrays of a file, in place of those that `encode` made."""
    n_trees, n_nodes, n_terms, whole = _checked(said)
    names = [name for name in DTYPES if name in arrays or f"{name}.table" in arrays]
    require({"offset", "left"} <= {*names}, "a compact model has offsets and children")
    require(("linear_offset" in names) == (n_terms > 0), "a compact model has terms where it says so")
    length = dict.fromkeys(trees.OF_TREES, n_trees) | dict.fromkeys(("linear_column", "linear_coef"), n_terms)
    n_bytes = sum(length.get(name, n_nodes) * DTYPES[name].itemsize for name in names)
    if n_bytes > MAX_TIMES * sum(array.nbytes for array in arrays.values()):
        raise ModelFormatError(f"The file says it has {n_nodes} nodes and {n_terms} terms: too many for its size.")
    offset = _summed(_get(arrays, "offset", np.array([0, n_trees])), n_nodes, 1, "trees have all nodes")
    left = _get(arrays, "left", offset)
    check_links(offset, left)
    shape, of_terms = Shape(offset, left), None
    found = {"offset": offset, "left": left}
    for name in sorted(set(names) - {*found}, key=lambda name: name not in OF_NODES):  # first those of nodes
        array = _get(arrays, name, shape.ends(name, whole, of_terms))
        found[name] = shape.filled(name, array) if name in OF_NODES and name not in whole else array
        if name == "linear_offset":
            found[name] = of_terms = _summed(found[name], n_terms, 0, "leaves have all terms")
    arrays.update((name, sealed(array)) for name, array in found.items())


def _checked(said: Any) -> tuple[int, int, int, list[str]]:
    """Numbers of trees, nodes and terms, and the names of arrays that are stored whole."""
    match said:
        case {"trees": int(n_trees), "nodes": int(n_nodes), "terms": int(n_terms), "whole": list(whole)}:
            counts = all(type(n) is int and 0 <= n < 2**40 for n in (n_trees, n_nodes, n_terms))
            if len(said) == 4 and counts and n_trees and all(type(name) is str and name in OF_NODES for name in whole):
                return n_trees, n_nodes, n_terms, whole
    raise ModelFormatError(f"'compact' does not say what a model has: {str(said)[:200]}.")


def _summed(sizes: NDArray[np.int64], total: int, least: int, rule: str) -> NDArray[np.int64]:
    """Offsets from sizes that are not believed: each is from `least` to the total, which is their sum."""
    require((sizes >= least) & (sizes <= total), rule)
    require(float(sizes.sum(dtype=np.float64)) == total, rule)  # floats do not wrap around
    return np.append(0, np.cumsum(sizes))


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """The numbers as unsigned integers, which tell 0 from -0."""
    return np.ascontiguousarray(array).view(UNSIGNED[array.dtype.itemsize])


# ---- One array: written ---------------------------------------------------------------------------------------------


def _put(coded: dict[str, NDArray[Any]], name: str, array: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Store an array; the part of a tree lies between two ends."""
    same, n_numbers = _same(_bits(array), ends), np.diff(ends)
    if int(n_numbers[same].sum()) * array.itemsize > len(same) // 8 + 1:
        coded[f"{name}.same"] = np.packbits(same, bitorder="little")
        array = array[np.repeat(~same, n_numbers)]
    bits = _bits(array)
    table, most = _table(bits)
    some = bits != most
    n_some, size = int(np.count_nonzero(some)), array.itemsize
    # Bytes of all numbers, and of those that are not the most frequent one; each plain, and by a table.
    costs = [len(bits) * size, _cost(len(bits), table, size)]
    costs += [len(bits) // 8 + cost for cost in (n_some * size, _cost(n_some, table, size))]
    best = costs.index(min(costs))
    if best >= 2:
        coded[f"{name}.most"] = most.view(array.dtype)
        coded[f"{name}.some"] = np.packbits(some, bitorder="little")
        array, bits, table = array[some], bits[some], table[table != most]
    if best % 2:
        coded[f"{name}.table"] = table.view(array.dtype)
        coded[f"{name}.code"] = _pack(np.searchsorted(table, bits), _width(table))
    else:
        coded[name] = array


def _cost(n: int, table: NDArray[Any], size: int) -> float:
    """Bytes of so many numbers by a table, each of so many bytes alone."""
    return len(table) * size + n * _width(table) / 8 if len(table) else np.inf


def _same(bits: NDArray[Any], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which trees have the numbers of the tree before, and some."""
    size = np.diff(ends)
    same = np.zeros(len(size), np.bool_)
    same[1:] = (size[1:] == size[:-1]) & (size[1:] > 0)
    size = np.where(same, size, 0)
    if size.any():
        place = np.flatnonzero(np.repeat(same, np.diff(ends)))
        equal = bits[place] == bits[place - np.repeat(size, size)]
        same[same] = np.logical_and.reduceat(equal, np.append(0, np.cumsum(size[same]))[:-1])
    return same


def _table(bits: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different numbers, rising, none where there are too many; and the most frequent one, as an array.

    Both are looked for in a part of many numbers first: that is where a table is mostly given up.
    """
    part = bits[:: max(1, len(bits) // (2 * MAX_TABLE))]
    table, count = np.unique(part, return_counts=True)
    most = table[np.argmax(count)][np.newaxis] if len(table) else np.zeros(1, bits.dtype)
    if len(table) <= MAX_TABLE and len(part) < len(bits):
        table = np.unique(bits)
    return (table if len(table) <= MAX_TABLE else table[:0]), most


def _width(table: NDArray[Any]) -> int:
    """Bits of a place in a table."""
    return max(0, len(table) - 1).bit_length()


def _pack(codes: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Codes of so many bits, one after the other."""
    pairs = codes.astype("<u2").view(np.uint8).reshape(-1, 2)
    return np.packbits(np.unpackbits(pairs, axis=1, count=width, bitorder="little"), bitorder="little")


# ---- One array: read ------------------------------------------------------------------------------------------------


def _get(arrays: Arrays, name: str, ends: NDArray[np.int64]) -> NDArray[Any]:
    """Take an array out of those of a file; the part of a tree lies between two ends."""
    n, size = int(ends[-1]), np.diff(ends)
    if f"{name}.same" not in arrays:
        return _numbers(arrays, name, n)
    same = _unpack(_taken(arrays, f"{name}.same", BITS), 1, len(size), name).astype(np.bool_)
    alike = np.append(False, size[1:] == size[:-1])
    require(~same | alike, f"'{name}' of a tree that is as before has as many numbers")
    stop = np.cumsum(np.where(same, 0, size))  # where the last tree that is stored ends
    numbers = _numbers(arrays, name, int(stop[-1]))
    return np.take(numbers, np.repeat(stop - size - ends[:-1], size) + np.arange(n))


def _numbers(arrays: Arrays, name: str, n: int) -> NDArray[Any]:
    """The numbers of all trees that are not as before."""
    if f"{name}.most" not in arrays:
        return _different(arrays, name, n)
    most = _taken(arrays, f"{name}.most", DTYPES[name])
    require(len(most) == 1, f"'{name}' has one most frequent number")
    some = _unpack(_taken(arrays, f"{name}.some", BITS), 1, n, name).astype(np.bool_)
    numbers = np.full(n, most[0])
    numbers[some] = _different(arrays, name, int(np.count_nonzero(some)))
    return numbers


def _different(arrays: Arrays, name: str, n: int) -> NDArray[Any]:
    """So many numbers, by a table or plain."""
    if f"{name}.table" not in arrays:
        numbers = _taken(arrays, name, DTYPES[name])
        require(len(numbers) == n, f"'{name}' has as many numbers as trees, nodes or terms need")
        return numbers
    table = _taken(arrays, f"{name}.table", DTYPES[name])
    require(0 < len(table) <= MAX_TABLE, f"the table of '{name}' has 1 to {MAX_TABLE} numbers")
    code = _unpack(_taken(arrays, f"{name}.code", BITS), _width(table), n, name)
    require(code < len(table), f"the codes of '{name}' are in its table")
    return np.take(table, code)


def _taken(arrays: Arrays, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of a file, taken out of it; raises where it is not there or of another type."""
    array: NDArray[Any] | None = arrays.pop(name, None)
    if array is None or array.dtype != dtype or array.ndim != 1:
        raise ModelFormatError(f"'{name}' is not a list of {dtype.name}, as a compact model needs.")
    return array


def _unpack(packed: NDArray[np.uint8], width: int, n: int, name: str) -> NDArray[np.uint16]:
    """`n` codes of so many bits."""
    require(len(packed) == (n * width + 7) // 8, f"'{name}' has as many codes as numbers")
    bits = np.unpackbits(packed, count=n * width, bitorder="little").reshape(n, width)
    codes = np.zeros(n, np.uint16)
    for place in range(width):
        codes |= bits[:, place].astype(np.uint16) << place
    return codes
