"""The native core: arrays in, arrays out; argument checks and nothing decided."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from sapwood.reduce import Reduce

type Floats = NDArray[np.float64]
type Ints = NDArray[np.int32]
type Longs = NDArray[np.int64]
type Bytes = NDArray[np.uint8]

# Of linear leaves, by leaf or node: offsets (n + 1), columns (-1: the constant, which
# comes first), coefficients, and of every column its lowest and highest value in a line
# and that of missing ones (empty in raw units).
type Terms = tuple[Longs, Ints, Floats, Floats]

# A 2-D array (any strides) or a list of 1-D columns; float32/64, any integer, bool;
# native byte order. Never copied.
# Or sparse: a sapwood.data.sparse.Sparse, or SparseColumn columns among the others.
type Table = NDArray[Any] | Sequence[Any] | Sparse

class Sparse(Protocol):
    """Entries in the order of rows or of columns."""

    @property
    def by_rows(self) -> bool: ...

class Tree(TypedDict):
    """One grown tree as flat arrays over its nodes; children follow parents; a node's
    right child is left + 1.
    """

    column: Ints  # -1 in leaves
    bin: Ints  # codes <= bin go left; -1 in leaves
    threshold: Floats  # x <= threshold goes left; 0 in leaves
    missing_left: Bytes
    left: Ints  # 0 in leaves
    value: Floats  # shrunk leaf value; 0 in splits
    gain: Floats  # 0 in leaves
    cover: Floats  # sum of hessians
    count: Floats  # sum of weights, as repetition
    # of a category split (threshold 0, bin -1): which set of codes goes left; else -1
    set: Ints
    set_offset: Longs  # (n_sets + 1) into set_code
    set_code: Ints  # rising within a set
    linear: NotRequired[Terms]  # of its nodes; not from the core

EVERY_VALUE: int  # as max_bins: a bin for every value, however many

def cuts(
    chunks: Sequence[Table],
    weight: Floats | None,
    max_bins: int,
    min_samples_bin: int,
    n_threads: int,
    reduce: Reduce | None = None,
    positions: Sequence[int] = (),
) -> list[Floats]:
    """Cut points of every column (NUMERICS 3); the chunks are consecutive rows of one
    table, or of this holder.
    """

SAMPLE_ROWS: int  # rows by which a column with more than max_bins values is cut
MIN_BIN_BUDGET: int  # bins that min_samples_bin leaves to such a column
UNSEEN: int  # the code of a category that training did not see
MAX_LEAF_IDS: int  # leaves of a tree whose rows can have leaf ids

class Binned:
    """A table as codes: row-major groups for histograms, planes for partitions.
    Immutable.

    Exact: 32-bit codes in planes, all chunks as one. Fuse: columns with few codes share
    slots, which changes no sum;
    None: where that is faster.
    """

    def __init__(
        self,
        chunks: Sequence[Table],
        cuts: Sequence[Floats],
        n_threads: int,
        exact: bool = False,
        # of columns that hold int32 codes, negative where missing; else 0
        n_categories: Sequence[int] | None = None,
        fuse: bool | None = None,
        # over the holders of rows; None: all rows are here
        reduce: Reduce | None = None,
        # of each chunk's first row among the rows of all holders
        positions: Sequence[int] = (),
    ) -> None: ...
    @staticmethod
    def of_codes(
        # (n_rows) each; missing values: the number of bins
        columns: Iterable[NDArray[np.uint8] | NDArray[np.uint16]],
        cuts: Sequence[Floats],
        n_categories: Sequence[int],
        has_missing: Sequence[int],
        n_rows: int,
        grows: bool,  # trees will grow on it; without that it takes half the memory
        n_threads: int,
    ) -> Binned:
        """A table whose codes are known; columns come one after the other, and none is
        kept.
        """
    n_rows: int
    n_total: int  # rows of all holders
    chunk_sizes: list[int]  # rows of each chunk
    n_columns: int
    n_chunks: int
    n_bytes: int
    slots: list[list[int]]  # the columns of every slot
    has_lists: bool  # some columns are sparse
    has_missing: list[bool]  # by column
    def codes(self, column: int) -> Bytes | NDArray[np.uint16] | NDArray[np.uint32]:
        """Codes of a column, (n_rows), a copy."""
    def codes_of_rows(
        self, column: int, start: int, n: int
    ) -> Bytes | NDArray[np.uint16]:
        """Codes of a column in consecutive rows, a copy."""
    # (columns) the code of most rows where `listed` has the column, or -1
    def listed_defaults(self) -> list[int]: ...
    def listed(
        self, n_threads: int
    ) -> tuple[Ints, NDArray[np.uint16], Longs, NDArray[np.uint32], NDArray[np.uint16]]:
        """Columns in which most rows have one code: which, that code, offsets into rows
        and codes of the other rows.
        """

class CutSketch:
    """The cuts of a table that streams by in chunks of consecutive rows: those of the
    whole table.
    """

    def __init__(self, n_columns: int, max_bins: int) -> None: ...
    def add(self, table: Table, weight: Floats | None, n_threads: int) -> None: ...
    def cuts(self, min_samples_bin: int, n_threads: int) -> list[Floats]: ...
    missing: list[bool]  # by column: whether some value is
    n_rows: int
    integral: bool  # whether weights so far are small integers

class Encoder:
    """The codes of some rows of a table at a time, `held` at most, as a file of
    `n_rows` rows has them.
    """

    def __init__(
        self,
        cuts: Sequence[Floats],
        n_categories: Sequence[int],
        missing: Sequence[bool],  # by column: whether some value is
        n_rows: int,
        held: int,
    ) -> None: ...
    def fill(self, table: Table, start: int, n: int, to: int, n_threads: int) -> bool:
        """Encode rows of a table into rows from `to` on; False: a column has missing
        values and should not.
        """
    def places(self, n_rows: int) -> tuple[list[tuple[int, int]], int]:
        """Where each block and plane begins in a file of so many rows, the bytes of a
        row; the size of the file.
        """
    # the first n rows of each block and plane
    def bytes(self, n: int) -> list[Bytes]: ...
    slots: list[list[int]]

def stored(
    file: int,  # a descriptor
    n_bytes: int,
    cuts: Sequence[Floats],
    n_categories: Sequence[int],
    missing: Sequence[bool],
    n_rows: int,
) -> Binned:
    """A table whose codes are mapped from a file."""

# the bytes of a file; its pages can go
def mapped(file: int, n_bytes: int) -> Bytes: ...

# whether no code is beyond those of its column
def codes_fit(binned: Binned, n_threads: int) -> bool: ...
def resident_bytes() -> int: ...  # of this process; 0 where the system does not tell
def release_pages() -> None: ...  # of all mapped files
def touch(n_bytes: int) -> None: ...  # of mapped files, about to be read
def set_resident_limit(n_bytes: int) -> None: ...  # 0: none

# where large arrays are put; None: in memory
def set_scratch(folder: str | None) -> None: ...

class Trainer:
    """Labels, scores and gradients of one training set, and the trees grown on them."""

    def __init__(
        self,
        binned: Binned,
        label: Floats,  # (1 or n_outputs, n_rows): values, 0/1, or class indices
        weight: Floats | None,
        objective: str,
        fields: Mapping[str, float | list[float]],  # a list: a value for each output
        n_outputs: int,
        n_threads: int,
    ) -> None: ...
    # the constant scores (n_outputs) that minimise the loss
    def start(self) -> Floats: ...
    # every row the same scores (n_outputs)
    def fill_scores(self, start: Floats) -> None: ...
    def set_scores(self, scores: Floats) -> None: ...  # scores (n_outputs, n_rows)
    # a copy of scores (n_outputs, n_rows), or of some rows
    def scores(self, rows: Ints | None = None) -> Floats: ...
    def gradients(
        self,
        precision: str,
        unit_search: bool = False,
        unit_leaf: bool = False,
        gradient: Floats | None = None,
        hessian: Floats | None = None,
    ) -> list[str]:
        """All outputs, to fixed point; the precision of each. unit_*: hessians of 1 in
        the search, in leaf values.

        The objective's own, or those given, both (n_outputs, n_rows) and before
        weights. After a sample by gradients the precision is the last one's, until
        `sample` says who is asked.
        """
    def set_constraints(
        self,
        # by column: -1 decreasing, 0 free, 1 increasing; empty: all are free
        monotone: Sequence[int],
        intermediate: bool,
        # columns that may share a path, every column in one; empty: all may
        groups: Sequence[Sequence[int]],
        extra_trees: bool,
        # (column, bin, place of what follows left, right); -1: nothing
        forced: Sequence[Sequence[int]],
        onehot: Sequence[int],  # columns that are split one category against the rest
    ) -> None:
        """Which splits trees may have, beyond their limits (NUMERICS, constraints)."""
    def set_sampler(
        self,
        name: str,
        fields: Mapping[str, float],
        subsample_by_row: Floats | None = None,  # (n_rows) instead of subsample
        group: Ints | None = None,  # (n_rows) whole groups are in the sample or not
    ) -> None:
        """Choose the sampler of later rounds; before this it is "uniform"."""
    def sample(self, seed: int, round: int, subsample: float | None) -> int:
        """Sample the rows of this round, after `gradients`; None takes all rows.
        Returns how many of this process.
        """
    def set_split_preference(
        self,
        cosine: bool,
        weight: Sequence[float],
        penalty: Sequence[float],
        used: Sequence[int],
    ) -> None:
        """What splits are compared by (NUMERICS, Comparing splits): weights and
        penalties of columns, or none, and the columns that trees before the first have
        used."""

    def grow(
        self,
        policy: str,
        limits: Mapping[str, float],
        seed: int,
        tree: int,
        random_strength: float = 0.0,
        multi_output: bool = False,
        prefix_ends: Sequence[int] = (),
        sketch: int = 0,
    ) -> list[Tree]:
        """Grow a tree for every output on its gradients, which growth overwrites.

        `tree` is the number of the first tree. random_strength is in units of the
        gradients' noise scale. With `multi_output` all trees have the same splits.
        prefix_ends: for ordered boosting, where each body and each
        tail ends among the rows; the trees then have splits but no leaf values
        (NUMERICS, Ordered boosting). sketch: how many random sums of the gradients
        `multi_output` searches its splits by; 0: those of all outputs.
        """
    def copy_settings(self, other: Trainer) -> None:
        """Copy constraints, split preference and sampler of a trainer with the same
        columns, except what is by row.
        """
    def leaf_ids(self, output: int) -> Ints:
        """Leaf of every row (n_rows) in the tree last grown; ids count the leaves in
        the order of nodes.
        """
    def replay(
        self,
        first: int,
        end: int,
        column: Ints,
        bin: Ints,
        missing_left: Bytes,
        left: Ints,
        set: Ints,
        set_offset: Longs,
        set_code: Ints,
        limits: Mapping[str, float],
    ) -> list[tuple[Floats, Floats, Floats]]:
        """By output from `first` up to `end`: the value, cover and count that growth
        would give each node of a tree.

        They are those at the gradients of all rows: call `gradients` first. The tree is
        then that of these outputs, as if it had just grown.
        """
    def restore(
        self,
        output: int,
        column: Ints,
        bin: Ints,
        missing_left: Bytes,
        left: Ints,
        set: Ints,
        set_offset: Longs,
        set_code: Ints,
        value: Floats,
    ) -> None:
        """Make a tree that has grown on these rows before the output's tree again, with
        these values of its leaves.
        """
    def leaf_loss_sums(
        self, output: int, step: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Loss, gradient and hessian of each leaf at score + step[leaf] (NUMERICS
        8).
        """
    def refit(
        self,
        output: int,
        method: str,
        iterations: int,
        reg_lambda: float,
        reg_alpha: float,
        max_delta_step: float,
    ) -> Floats:
        """A new value for each of its leaves, before shrinkage; with 0 iterations by
        one step that is not tested.

        The method is newton, gradient, exact, or joint: of all outputs, found when the
        first is asked for.
        """
    def fields(self) -> Floats:
        """(n_outputs * (n_fields + 1)) parameters of the objective, each output's with
        the one that adapts.
        """
    def line_search(self, output: int, value: Floats) -> float:
        """The factor on the leaf values that minimises the loss."""
    def set_leaf_ids(self, output: int, leaf_id: Ints, n_leaves: int) -> None:
        """Assign every row (n_rows) to a leaf of a tree grown elsewhere, before `refit`
        and `relabel_leaves`.
        """
    def assign_rows(
        self,
        output: int,
        table: Binned,
        column: Ints,
        bin: Ints,
        missing_left: Bytes,
        left: Ints,
        set: Ints,
        set_offset: Longs,
        set_code: Ints,
    ) -> None:
        """The same, found here: the tree splits the codes of another table of these
        rows.
        """
    def relabel_leaves(self, output: int, new_id: Ints | None, value: Floats) -> None:
        """Set new leaf values; with `new_id` (by old leaf id) leaves are merged
        first.
        """
    def set_table(self, table: NDArray[Any]) -> None:
        """The values that lines read, (n_rows, n_columns) float32 or float64, row by
        row: linear leaves need them.
        """
    def standardise(self, bounds: Floats | None) -> Floats:
        """Give linear leaves standard units: bounds (3 * n_columns) found, or those of
        a model to continue.
        """
    def units(self) -> Floats:
        """(n_columns) the units that `standardise` has found; 0: the column has no
        coefficients.
        """
    def set_linear(
        self, output: int, offset: Longs, column: Ints, coef: Floats, bounds: Floats
    ) -> None:
        """Set terms of its leaves that another trainer has found; `add_scores` adds by
        them.
        """
    def fit_linear(
        self,
        first: int,
        offset: Longs,  # (n_leaves + 1)
        column: Ints,  # of each leaf, rising
        value: Floats,  # (n_outputs, n_leaves) shrunk
        rate: float,
        reg_lambda: float,
        linear_lambda: float,
        linear_smooth: float,
    ) -> list[tuple[Longs, Ints, Floats]]:
        """By output from `first` on: terms for each leaf, shrunk (NUMERICS, Linear
        leaves); `add_scores` adds by them.

        Several outputs must have the same leaves.
        """
    # add the leaf values of the tree just grown
    def add_scores(self, output: int) -> None: ...

def evaluate(
    objective: str, fields: Mapping[str, float], score: Floats, label: Floats
) -> tuple[Floats, Floats, Floats]:
    """Loss, gradient and hessian of every row, by a pointwise objective."""

def apply(
    binned: Binned,
    column: Ints,
    bin: Ints,
    missing_left: Bytes,
    left: Ints,
    set: Ints,
    set_offset: Longs,
    set_code: Ints,
    n_threads: int,
) -> Ints:
    """The leaf (node id) of every row of a binned table in one tree."""

def branches(left: Ints, column: Ints, set: Ints) -> tuple[Longs, Ints]:
    """The columns of the splits by thresholds above each leaf of a tree, rising:
    offsets (n_leaves + 1), columns.
    """

def linear_values(
    table: NDArray[Any],
    node: Ints,
    value: Floats,
    offset: Longs,
    column: Ints,
    coef: Floats,
    bounds: Floats,  # (3 * n_columns), or empty
    n_threads: int,
) -> Floats:
    """What each row (n_rows) gets from its node in one tree: values and terms are of
    nodes.
    """

class Forest:
    """A frozen model for prediction. The constructor checks every index."""

    def __init__(
        self,
        n_columns: int,
        offset: Longs,  # (n_trees + 1) first node of each tree
        output: Ints,  # (n_trees) which score a tree adds to
        column: Ints,
        threshold: Floats,
        missing_left: Bytes,
        left: Ints,  # within the tree
        value: Floats,
        set: Ints,  # as in Tree, but counted over all trees
        set_offset: Longs,
        set_code: Ints,
        base: Floats,  # (n_outputs)
        link: str,  # of core/math/types.h
        linear_offset: Longs | None = None,  # (n_nodes + 1) terms of nodes
        linear_column: Ints | None = None,
        linear_coef: Floats | None = None,
        linear_bounds: Floats | None = None,  # (3 * n_columns), or empty
    ) -> None: ...
    def predict(
        self,
        table: Table,
        first: int = 0,
        last: int = -1,
        raw: bool = False,
        init_score: Floats | None = None,
        n_threads: int = 1,
    ) -> Floats:
        """Trees first .. last - 1: (n_rows) for one output, else (n_rows, n_outputs);
        init_score replaces base.
        """
    def leaves(self, table: Table, first: int, last: int, n_threads: int) -> Ints:
        """Node ids, (n_rows, last - first)."""

class Explainer:
    """The trees of a model, ready to be explained. The constructor checks every
    index.
    """

    def __init__(
        self,
        n_columns: int,
        n_outputs: int,
        offset: Longs,  # as in Forest
        output: Ints,
        column: Ints,
        threshold: Floats,
        missing_left: Bytes,
        left: Ints,
        value: Floats,
        set: Ints,  # (n_nodes) which set of categories goes left, or -1
        set_offset: Longs,  # (n_sets + 1)
        set_code: Ints,
        weight: Floats,  # (n_nodes) how much of the data a node has seen
        linear_offset: Longs | None = None,  # as in Forest
        linear_column: Ints | None = None,
        linear_coef: Floats | None = None,
        linear_bounds: Floats | None = None,
    ) -> None: ...
    max_path_columns: int  # on the path of a leaf
    def expected(self) -> Floats: ...  # the mean of each tree by weight, (n_trees)
    # FlatPaths of core/cpu/predict/shap_paths.h, points, point_weights
    def paths(self) -> dict[str, NDArray[Any]]: ...
    def explain(
        self,
        table: Table,
        background: Table | None,
        pairs: bool,
        first: int,
        last: int,
        n_threads: int,
    ) -> Floats:
        """Shapley values of trees first .. last - 1, (n_rows, n_outputs, n_columns).

        Of pairs (n_rows, n_outputs, n_columns, n_columns): half of every interaction
        above the diagonal, else 0.
        """

def objectives() -> dict[str, dict[str, Any]]:
    """By name: what core/math/loss.h lists, and fields {name: (low, high, open,
    default, aliases)}.
    """

def growers() -> dict[str, str]: ...  # by name: doc
def samplers() -> dict[str, dict[str, Any]]:
    """By name: doc, fields, takes_subsample, by_gradient (reads gradients), reweights
    (rows get sample weights).
    """

def link(name: str, raw: Floats, n_threads: int = 1) -> Floats:
    """Predictions from raw scores, both (n_rows, n_outputs)."""

def exact_sum(
    values: Floats,
    weight: Floats | None,
    n_threads: int = 1,
    reduce: Reduce | None = None,
) -> float: ...
def weight_sum(
    weight: Floats, n_threads: int = 1, reduce: Reduce | None = None
) -> float: ...
def integer_weights(
    weight: Floats, reduce: Reduce | None = None
) -> tuple[Ints, bool, int]:
    """What every row counts for (NUMERICS 2): C, whether that is W, a repetition, and
    s: C reads C / 2^s.
    """

def distinct(
    values: NDArray[Any], limit: int
) -> tuple[NDArray[Any], Bytes | Ints] | None:
    """Sorted distinct values of a numeric array and every element's index among them;
    None beyond `limit` of them.
    """

class RankLoss:
    """A loss of the rows of a training, in groups (NUMERICS, ranking)."""

    def __init__(
        self,
        kind: str,
        group: Ints,  # (n_rows) from 0
        label: Floats,
        gain: Floats,
        weight: Floats | None,  # rows of weight 0 are in no group
        key: NDArray[np.uint64] | None,  # of each row's content, for noise
        settings: Mapping[str, Any],
    ) -> None: ...
    def set_pairs(self, winner: Ints, loser: Ints, weight: Floats) -> None: ...
    def gradients(
        self, score: Floats, round: int, n_threads: int = 1
    ) -> tuple[Floats, Floats]: ...

class Groups:
    """The rows of every group."""

    def __init__(self, group: Ints) -> None: ...
    def measure(
        self,
        name: str,
        gain: Floats,
        score: Floats,
        top: int,
        ties: str,
        n_threads: int = 1,
    ) -> Floats:
        """A metric of every group; NaN where none of its rows is relevant."""

# Purposes of the draws that Python makes, of core/math/hash.h.
HOLDOUT: int
FOLDS: int
DROPS: int
TURN: int
PERMUTE: int
SAGE: int

def draw(seed: int, purpose: int, a: int, b: int, n: int) -> NDArray[np.uint64]:
    """draw(key(seed, purpose, a, b), i) for i = 0 .. n - 1 (NUMERICS 1)."""

def checksum(bytes: bytes | bytearray | memoryview) -> int:
    """64 bits that another content has too with a probability of about 2^-64."""

def message_of(begin: bytes, call: int, values: NDArray[np.int64]) -> bytes:
    """A message of integers, in 1, 2, 4 or 8 bytes each, as few as hold all of them, in
    the order of the machine.

    ``begin`` comes first; then width, call, length and checksum.
    """

def add_narrow(
    values: NDArray[np.int64], bytes: bytes | bytearray | memoryview, width: int
) -> None:
    """Add integers of 1, 2, 4 or 8 bytes to some others, in place."""

def share_threads(change: int) -> int:
    """A training beside others begins (1) or ends (-1); how many there are. Each takes
    its part of the threads.
    """

def trim_heap() -> None:
    """Return what the heap keeps of freed blocks to the system."""

def hash_order(seed: int, which: int, count: Ints | None, n: int) -> Ints:
    """The rows whose count is not 0, by (draw(key(seed, 40, which, 0), row), row)."""

def encode(
    codes: Sequence[Ints],
    n_codes: Sequence[int],
    mass: Longs,
    count: Ints | None,
    order: Ints,
    mass_unit: float,
    count_unit: float,
    priors: Sequence[float],
    n_threads: int,
    cuts: Sequence[Floats] | None = None,  # of every value, in their order, at most 254
) -> Any:
    """Ordered target statistics, (n_columns, n_masses, n_priors, n_rows), of masses
    (n_masses, n_rows).

    float64; with cuts uint8: of each value the number of cuts below it.
    """

def sum_by_code(codes: Ints, n_codes: int, mass: Longs, count: Ints | None) -> Longs:
    """(n_masses + 1, n_codes + 1) what the rows of each code add up to, last what they
    count for; missing is last.
    """

def combine(
    table: Table,
    offset: Longs,  # (n + 1) first source of each combination, and the end
    column: Ints,
    n_codes: Ints,  # of each source: categories; 0 for a number
    threshold: Floats,
    key_offset: Longs,  # (n + 1)
    key: Longs,  # rising within each
    n_threads: int,
) -> Ints:
    """The code of every combination and row, (n, n_rows); -1 where its key is none of
    those given.
    """

def cross(
    table: Table,
    kind: Bytes,  # (n) 0 difference, 1 product, 2 ratio, 3 centred
    left: Ints,
    right: Ints,
    offset: Longs,  # (n + 1) first mean of each cross, and the end
    # of a centred one: by code, then that of missing and that of unseen categories
    mean: Floats,
    n_threads: int,
) -> NDArray[np.float32]:
    """The number of every cross and row, (n, n_rows); NaN where it is not finite."""

# exp, expm1, log, log1p, sigmoid, softplus or tanh, elementwise
def math(name: str, x: Floats) -> Floats: ...
def isa() -> str: ...  # the path in use: portable, avx2 or avx512

# take "auto" or a path this machine has; SAPWOOD_ISA does the same at import
def set_isa(name: str) -> None: ...
def n_workers() -> int: ...  # threads the pool has started in this process
