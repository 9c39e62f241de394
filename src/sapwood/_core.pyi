"""The native core: arrays in, arrays out; argument checks and nothing decided."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

# A 2-D array (any strides) or a list of 1-D columns; float32/64, any integer, bool; native byte order. Nothing is copied.
type Table = NDArray[Any] | Sequence[NDArray[Any]]

class Tree(TypedDict):
    """One grown tree as flat arrays over its nodes; children follow parents; a node's right child is left + 1."""

    column: NDArray[np.int32]  # -1 in leaves
    bin: NDArray[np.int32]  # codes <= bin go left; -1 in leaves
    threshold: NDArray[np.float64]  # x <= threshold goes left; 0 in leaves
    missing_left: NDArray[np.uint8]
    left: NDArray[np.int32]  # 0 in leaves
    value: NDArray[np.float64]  # shrunk leaf value; 0 in splits
    gain: NDArray[np.float64]  # 0 in leaves
    cover: NDArray[np.float64]  # sum of hessians
    count: NDArray[np.float64]  # sum of weights, as repetition

def cuts(chunks: Sequence[Table], weight: NDArray[np.float64] | None, max_bins: int, n_threads: int) -> list[NDArray[np.float64]]:
    """Cut points of every column (NUMERICS 3); the chunks are consecutive rows of one table."""

class Binned:
    """A table as codes: row-major groups for histograms, columns for partitions. Immutable."""

    def __init__(self, chunks: Sequence[Table], cuts: Sequence[NDArray[np.float64]], n_threads: int) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_chunks(self) -> int: ...
    @property
    def n_bytes(self) -> int: ...
    def codes(self, column: int) -> NDArray[np.uint8] | NDArray[np.uint16]: ...  # (n_rows), a copy

class Trainer:
    """Labels, scores and gradients of one training set, and the trees grown on them."""

    def __init__(
        self,
        binned: Binned,
        label: NDArray[np.float64],  # (n_rows): value, 0/1, or class index
        weight: NDArray[np.float64] | None,
        objective: str,
        fields: Mapping[str, float],
        n_outputs: int,
        n_threads: int,
    ) -> None: ...
    def start(self) -> NDArray[np.float64]: ...  # (n_outputs) the constant that minimises the loss
    def fill_scores(self, start: NDArray[np.float64]) -> None: ...  # every row the same
    def set_scores(self, scores: NDArray[np.float64]) -> None: ...  # (n_outputs, n_rows)
    def scores(self) -> NDArray[np.float64]: ...  # (n_outputs, n_rows), a copy
    def gradients(self, precision: str) -> list[str]: ...  # all outputs, to fixed point; the precision of each
    def sample(self, seed: int, round: int, subsample: float) -> int: ...  # choose the rows of this round; how many
    def grow(
        self, output: int, policy: str, limits: Mapping[str, float], seed: int, tree: int
    ) -> Tree: ...  # limits: see GROW_LIMITS
    def add_scores(self, output: int) -> None: ...  # the leaf values of the tree just grown

def apply(
    binned: Binned, column: NDArray[np.int32], bin: NDArray[np.int32], missing_left: NDArray[np.uint8], left: NDArray[np.int32], n_threads: int
) -> NDArray[np.int32]:
    """The leaf (node id) of every row of a binned table in one tree."""

class Forest:
    """A frozen model for prediction. The constructor checks every index."""

    def __init__(
        self,
        n_columns: int,
        offset: NDArray[np.int64],  # (n_trees + 1) first node of each tree
        output: NDArray[np.int32],  # (n_trees) which score a tree adds to
        column: NDArray[np.int32],
        threshold: NDArray[np.float64],
        missing_left: NDArray[np.uint8],
        left: NDArray[np.int32],  # within the tree
        value: NDArray[np.float64],
        base: NDArray[np.float64],  # (n_outputs)
        link: str,  # identity | sigmoid | softmax
    ) -> None: ...
    def predict(
        self, table: Table, first: int = 0, last: int = -1, raw: bool = False, init_score: NDArray[np.float64] | None = None, n_threads: int = 1
    ) -> NDArray[np.float64]: ...  # (n_rows) for one output, else (n_rows, n_outputs); trees first..last-1; init_score (n_rows, n_outputs) replaces base
    def leaves(self, table: Table, first: int, last: int, n_threads: int) -> NDArray[np.int32]: ...  # (n_rows, last-first) node ids

def objectives() -> dict[str, dict[str, Any]]: ...  # name -> {doc, link, metric, path_smooth, fields: {name: (low, high, default)}}
def growers() -> dict[str, str]: ...  # name -> doc
def link(name: str, raw: NDArray[np.float64], n_threads: int = 1) -> NDArray[np.float64]: ...  # (n_rows, n_outputs), same shape out
def exact_sum(values: NDArray[np.float64], weight: NDArray[np.float64] | None, n_threads: int = 1) -> float: ...
def weight_sum(weight: NDArray[np.float64], n_threads: int = 1) -> float: ...
def distinct(values: NDArray[Any], limit: int) -> tuple[NDArray[Any], NDArray[np.uint8] | NDArray[np.int32]] | None:
    """Sorted distinct values of a numeric array and every element's index among them; None beyond `limit` of them."""

def draw(seed: int, purpose: int, a: int, b: int, n: int) -> NDArray[np.uint64]: ...  # draw(key(seed, purpose, a, b), i), i = 0..n-1
def math(name: str, x: NDArray[np.float64]) -> NDArray[np.float64]: ...  # exp log log1p expm1 sigmoid
def isa() -> str: ...  # the path in use: portable | avx2 | avx512
def set_isa(name: str) -> None: ...  # "auto" or a path this machine has; SAPWOOD_ISA does the same at import
def n_workers() -> int: ...  # threads the pool has started in this process
