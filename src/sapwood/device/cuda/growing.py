"""The growth of trees on the device: limits and constraints, the memory of a tree, the
launches of its steps.

In: the limits of a training. Out: trees, which stay in device memory until they are
read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sapwood.device.cuda.binned import LANES, Binned
from sapwood.device.cuda.copies import Copies, Sample, even
from sapwood.device.cuda.job import record
from sapwood.device.cuda.records import Records, key
from sapwood.device.cuda.trees import Finished
from sapwood.errors import ParameterError

MAX_NODES = 65_536  # node ids of rows have 16 bits
# purposes of core/math/hash.h
TREE_COLUMNS = 3
LEVEL_COLUMNS = 4
NODE_COLUMNS = 5
RANDOM_CUT = 20
RANDOM_STRENGTH = 41
SKETCH = 43
TILE_SUMS = 256 * LANES
HISTOGRAM_BYTES = 2 * TILE_SUMS * 4
# kinds of columns of categories; words of a set of codes
PARTITION = 1
ONE_HOT = 2
SET_WORDS = 4
SEARCH_BLOCKS = 4  # of the search, that a multiprocessor has at a time
LIST_BYTES = 16  # of a row in both row lists
# of a row, where copies have their own
LEAF_BYTES = 2
SAMPLE_BYTES = 5
FACTOR_BYTES = 8
WORD_BYTES = 4
PAIR_BYTES = 8
# of trees that grow side by side, at most
BESIDE_BYTES = 1 << 30
MAX_BESIDE = 32
# of a symmetric level whose candidates are scored and compared by one launch
WHOLE_NODES = 2
MAX_RECORDERS = 8
# of a node in find_leaves: what rows walk through, what they add
STEP_BYTES = 16
PART_BYTES = 20


class Growing(Records):
    """The part of a trainer that grows trees; `_core.pyi` says what each method takes
    and returns.
    """

    _binned: Binned
    _n_outputs: int
    min_rows = 256  # rows of a block, where there are few
    node_cost = 1024  # what a node costs a block besides its rows, in rows

    def _start_growing(self) -> None:
        self._finished: Finished | None = None
        self._shape: tuple[Any, ...] = ()
        self._beside = 1  # trees of a round that grow side by side
        self._n_beside = 1  # copies of a round that do
        self._copies = Copies(self._n_outputs)
        self._copy = 0  # the one that was asked for last, among those side by side
        self._n_planned = self._n  # rows that their memory is planned for
        # node of each leaf, where leaves are not nodes
        self._numbers: list[Any] = [None] * self._n_outputs

    # What the trainer has.
    def _flush(self) -> None:
        raise NotImplementedError

    def _new_leaves(self, outputs: Iterable[int]) -> None:
        raise NotImplementedError

    def _draw(self, samples: Sequence[Sample]) -> None:
        raise NotImplementedError

    def set_constraints(
        self,
        monotone: Sequence[int],
        intermediate: bool,
        groups: Sequence[Sequence[int]],
        extra_trees: bool,
        forced: Sequence[Sequence[int]],
        onehot: Sequence[int],
    ) -> None:
        self._job["extra_trees"] = extra_trees
        self._last["onehot"] = list(onehot)
        assert not (any(monotone) and intermediate), "boost/compatibility.py refuses it"
        self._keep(
            "forced",
            self.runtime.array(np.array(forced, np.int32)) if len(forced) else None,
        )
        n = len(self._binned.places)
        groups_of = np.zeros(n, np.uint64)
        for at, columns in enumerate(groups):
            groups_of[list(columns)] |= np.uint64(1 << at)
        self._keep("groups_of", self.runtime.array(groups_of) if len(groups) else None)
        direction = np.zeros(n, np.int8)
        direction[: len(monotone)] = monotone
        self._keep(
            "direction", self.runtime.array(direction) if len(monotone) else None
        )

    def set_split_preference(
        self,
        cosine: bool,
        weight: Sequence[float],
        penalty: Sequence[float],
        used: Sequence[int],
    ) -> None:
        self._job["cosine"] = cosine
        for name, values in (("feature_weight", weight), ("first_use", penalty)):
            self._keep(
                name,
                self.runtime.array(np.array(values, np.float64))
                if len(values)
                else None,
            )
        if len(penalty):
            self._make("used", (2, int(self._job["n_tiles"])), np.uint32)
            self._mark_used(list(used))

    def _mark_used(self, columns: Any) -> None:
        """Trees use these columns: their first use costs nothing any more."""
        if not self._job["first_use"]:
            return
        bits = np.zeros(int(self._job["n_tiles"]) * LANES, np.uint8)
        bits[columns] = 1
        known = self.runtime.get(self._arrays["used"])
        self.runtime.put(
            self._arrays["used"],
            known | np.packbits(bits, bitorder="little").view(np.uint32),
        )

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
    ) -> list[Any]:
        """Grow a tree for every output; the trees are read from the device once someone
        looks at them.

        Of copies that were told, those that fit side by side grow with the first of
        them.
        """
        grown_as = (policy, dict(limits), seed, random_strength, multi_output, sketch)
        known = self._copies.take(tree, grown_as)
        if known is not None:
            return self._take_copy(*known)
        together = multi_output and self._n_outputs > 1
        assert not prefix_ends, "boost/compatibility.py refuses it"
        # the rows of a model whose trees grow on other columns never get here
        if "codes" not in self._arrays:
            self._keep("codes", self._binned.tiles)
            self._keep("planes", self._binned.planes)
            self._binned.runtime.wait()  # they are made in another stream
        n_sums = sketch if together and sketch < self._n_outputs else 0
        self._job["one_tree"], self._job["sketched"], self._job["n_sums"] = (
            together,
            n_sums > 0,
            n_sums,
        )
        self._job["n_joint"] = n_sums or (self._n_outputs if together else 1)
        self._job["noisy"], self._turn["random_strength"] = (
            random_strength > 0.0,
            random_strength,
        )
        self._set_limits(policy, limits)
        self._flush()
        self._turn["learning_rate"], self._turn["tree"] = limits["learning_rate"], tree
        self._turn["column_keys"] = [
            key(seed, one) for one in (TREE_COLUMNS, LEVEL_COLUMNS, NODE_COLUMNS)
        ]
        for name, purpose in (
            ("cut_key", RANDOM_CUT),
            ("sketch_key", SKETCH),
            ("noise_key", RANDOM_STRENGTH),
        ):
            self._turn[name] = key(seed, purpose)
        waits = self._last.pop("waits", None)  # a sample that is not drawn yet
        told = [] if waits is None else self._copies.batch(tree, self._n_beside)
        if waits is not None:
            self._draw(told or [waits])
        copies = self._grow_copies(max(1, len(told)), together)
        if told:
            self._copies.keep(copies, grown_as)
        return self._take_copy(0, copies[0])

    def _grow_copies(self, n_copies: int, together: bool) -> list[list[Any]]:
        """Grow the trees of copies whose samples are drawn; together: those of all
        outputs have the same splits.
        """
        assert self._finished is not None
        n_trees, self._job["n_copies"] = n_copies * self._n_outputs, n_copies
        self._finished.make_room(n_trees)

        def work() -> None:
            if not together:
                for k in range(0, n_trees, self._beside):
                    n = min(self._beside, n_trees - k)
                    self._grow_some(k, n)
                    self._finish(k, n)
                return
            kept = self._sketch() if self._job["n_sums"] else {}
            self._grow_some(0)
            self._restore(kept)
            for k in range(self._n_outputs):
                self._finish(k)

        self._last["unused"] = False
        if self._job["noisy"]:
            self._repeat("noise", self._sum_noise)
        kept = self._use_reweighted() if self._last.get("reweighted") else {}
        self._repeat(("grow", bool(self._job["all_rows"]), *self._shape), work)
        self._restore(kept)
        return [
            [self._finished.take() for _ in range(self._n_outputs)]
            for _ in range(n_copies)
        ]

    def _take_copy(self, place: int, trees: list[Any]) -> list[Any]:
        """The trees of a copy are now those last grown."""
        self._copy = place
        self._numbers = [None] * self._n_outputs
        self._new_leaves(range(self._n_outputs))
        for k, tree in enumerate(trees):
            self._last["tree", k] = tree
        return trees

    def _place(self, output: int) -> int:
        """Where an output's tree is among those of all copies that have grown side by
        side.
        """
        return self._copy * self._n_outputs + output

    def _sum_noise(self) -> None:
        for k in range(self._n_outputs):
            self._launch("sum_noise", k)

    def _use(self, own: Mapping[str, str]) -> dict[str, int]:
        """Kernels read other arrays in the place of these; returns what the job had
        before.
        """
        kept = {name: int(self._job[name]) for name in own}
        for name, other in own.items():
            self._job[name] = self._job[other]
        return kept

    def _restore(self, kept: Mapping[str, int]) -> None:
        for name, value in kept.items():
            self._job[name] = value

    def _use_reweighted(self) -> dict[str, int]:
        """Growth reads the rows of a sample that count more or less."""
        own = {
            "packed": "reweighted_packed",
            "leaf_pairs": "reweighted_leaf",
            "output": "reweighted",
        }
        if self._job["search_pairs"]:
            own["search_pairs"] = "reweighted_search"
        kept = self._use(own) | {
            name: int(self._job[name])
            for name in ("counts_by_hessian", "own_gradients")
        }
        self._job["counts_by_hessian"], self._job["own_gradients"] = 0, 1
        return kept

    def _sketch(self) -> dict[str, int]:
        """Growth reads a few sums of the gradients of all outputs."""
        by_sample = self._last.get("reweighted", False)
        self._launch("begin_sketch")
        for one in range(2):
            self._launch("sketch_rows", one, by_sample)
        self._launch("end_sketch")
        return self._use(
            {
                "packed": "sketch_packed",
                "search_pairs": "sketch_pairs",
                "output": "sketch_output",
            }
        )

    def _set_limits(self, policy: str, limits: Mapping[str, float]) -> None:
        depth = int(limits["max_depth"])
        leaves = int(limits["max_leaves"])
        for name in (
            "min_child_weight",
            "min_samples_leaf",
            "reg_lambda",
            "reg_alpha",
            "min_split_gain",
            "max_delta_step",
            "path_smooth",
        ):
            self._job[name] = limits[name]
        self._set_categories(limits)
        self._last["counts"] = self._min_samples(
            limits["min_samples_leaf"]
        ) > 1 or bool(self._job["counts_nodes"])
        rules = limits["reg_alpha"] or limits["max_delta_step"] or self._job["cosine"]
        rules = rules or any(
            self._job[name] for name in ("direction", "extra_trees", "forced")
        )
        ranked = any(
            self._job[name]
            for name in ("cosine", "noisy", "feature_weight", "first_use")
        )
        shares = [
            limits[name]
            for name in ("colsample_bytree", "colsample_bylevel", "colsample_bynode")
        ]
        (
            self._job["colsample_bytree"],
            self._job["colsample_bylevel"],
            self._job["colsample_bynode"],
        ) = shares
        self._last["columns"] = (
            min(shares) < 1.0 or self._arrays.get("groups_of") is not None
        )
        joint, self._last["ranked"] = int(self._job["n_joint"]), ranked
        found = {
            "plain": not rules,
            "counts": self._last["counts"],
            "columns": self._last["columns"],
            "categories": bool(self._job["category"]),
            "joint": joint > 1,
            "ranked": ranked,
            "narrow": 0 < self._job["n_columns"] % LANES <= LANES // 2,
        }
        words = [*(word for word, holds in found.items() if holds), policy]
        self._rules = " ".join(words)
        of_trees = (
            joint,
            int(self._job["n_sums"]),
            int(self._job["one_tree"]),
            self._copies.most,
        )
        shape = (policy, depth, leaves, self._rules, *of_trees)
        if shape == self._shape:
            self._rules = self._beside_rules() + self._rules
            return
        most = leaves if leaves else self._n
        if depth and depth < 17:
            most = min(most, 1 << depth)
        if 2 * most > MAX_NODES:
            raise ParameterError(
                f"trees of up to {most} leaves do not grow on device={self.runtime.name!r}; set max_leaves or "
                f"max_depth so that there are at most {MAX_NODES // 2}, or use device='cpu'."
            )
        self._shape, job = shape, self._job
        job["max_depth"], job["max_leaves"] = depth, leaves
        job["leafwise"], job["symmetric"] = policy == "leafwise", policy == "symmetric"
        job["node_cost"] = self.node_cost // 2 if job["symmetric"] else self.node_cost
        self._make_tree_memory(most, depth, policy == "leafwise")
        self._rules = self._beside_rules() + self._rules

    def _beside_rules(self) -> str:
        """What kernels must know of trees side by side."""
        return "beside " * (self._beside > 1) + "copies " * (self._n_beside > 1)

    def _set_categories(self, limits: Mapping[str, float]) -> None:
        """Which columns are of categories, and how they are split."""
        if not any(self._binned.is_category):
            return
        for name in ("max_cat_threshold", "cat_smooth", "cat_l2", "min_data_per_group"):
            self._job[name] = limits[name]
        kinds = np.zeros(len(self._binned.places), np.uint8)
        for column, is_category in enumerate(self._binned.is_category):
            few = self._binned.n_bins[column] <= limits["max_cat_to_onehot"]
            kinds[column] = (
                0
                if not is_category
                else ONE_HOT
                if few or column in self._last["onehot"]
                else PARTITION
            )
        if self._last.get("kinds") != kinds.tobytes():
            self._last["kinds"] = kinds.tobytes()
            self._keep("category", self.runtime.array(kinds))
        self._job["counts_nodes"] = bool((kinds == PARTITION).any()) and bool(
            self._job["repeats"]
        )

    def _min_samples(self, given: float) -> float:
        """The minimum rows of a leaf; 0 stands for the objective's own, which the
        gradients leave on the device.
        """
        if given:
            return given
        if "own" not in self._last:
            found = self.runtime.get(self._arrays["output"]).view(record("Output"))
            self._last["own"] = float(found["own_min_samples"].max())
        return float(self._last["own"])

    def _make_tree_memory(self, leaves: int, depth: int, leafwise: bool) -> None:
        job = self._job
        k = self._n_outputs
        joint = int(self._job["n_joint"])
        nodes = job["max_nodes"] = max(2, 2 * leaves)
        self._graphs.clear()
        job["n_store"] = size = max(128, 4 * k)
        self._make_records("trees", size * int(nodes), "TreeNode")
        self._make("tree_sizes", size, np.int32)
        if job["category"]:
            self._make("tree_sets", (size, nodes, SET_WORDS), np.uint64)
        self._finished = Finished(
            self.runtime, self._arrays, self._binned, size, bool(job["symmetric"])
        )
        self._last["steps"] = self._plan(leaves, depth, leafwise)
        job["n_items"] = (1 if leafwise else max(1, leaves // 2)) + 1
        job["n_slots"] = (
            max(1, leaves // 2)
            if depth and not leafwise and leaves == 1 << depth
            else leaves
        )
        blocks = int(job["n_columns"]) * 256 // self.runtime.settings["choose_level"][0]
        job["n_found"] = blocks if job["symmetric"] else int(job["n_columns"])
        parts = self._bytes_of_tree() | (
            self._bytes_of_level(max(1, leaves // 2)) if job["symmetric"] else {}
        )
        job["allowed"] = job["counts"] = 0
        self._beside, self._n_beside = self._trees_beside(parts)
        self._make_each(parts, self._beside)
        self._make("node_value", (self._n_beside * k, nodes), np.float64)
        if self._n_beside > 1:
            self._make("leaf", (self._n_beside * k, self._n), np.uint16)
        if job["symmetric"] and joint > 1:
            n = len(self._binned.places)
            self._make("joint_scores", (n, 2, 256), np.float64)
            self._make("joint_norms", (n, 2, 256), np.float64)
            self._make("side_weights", (max(1, leaves // 2), n, 2, 256, 2), np.float64)
            self._make_records("level_split", 1, "LevelSplit")
        if job["n_sums"]:
            self._make_sketch_memory(int(job["n_sums"]))
        # two blocks share a multiprocessor
        room = (self.runtime.max_shared - 16384) // 2 - int(nodes) * STEP_BYTES
        copies = 32
        while copies and (
            copies * nodes * PART_BYTES > room or self._last.get("weighs")
        ):
            copies //= 2
        job["leaf_copies"] = copies
        warps = self.runtime.settings["find_leaves"][0] // LANES
        job["n_recorders"] = min(MAX_RECORDERS, -(-(int(job["n_items"]) - 1) // warps))

    def _trees_beside(self, parts: Mapping[str, int]) -> tuple[int, int]:
        """How many trees of a round grow side by side, in the same launches, and of how
        many copies of it they are: as many as fit, in batches of one size."""
        if self._job["one_tree"]:
            return 1, 1
        k = self._n_outputs
        wanted = 1 if self._job["first_use"] else self._copies.most
        each = sum(parts.values()) + (self._n_planned - self._n) * LIST_BYTES
        free = min(BESIDE_BYTES, self.runtime.free() // 2)
        copies = min(
            wanted,
            MAX_BESIDE // k,
            free // (k * each + self._n_planned * self._bytes_of_copy()),
        )
        if copies > 1:
            copies = even(wanted, copies)
            return copies * k, copies
        return even(k, max(1, min(k, MAX_BESIDE, free // each))), 1

    def _bytes_of_copy(self) -> int:
        """What a copy of a round has of its own for every row, besides what its trees
        have.
        """
        k = self._n_outputs
        found = k * LEAF_BYTES + SAMPLE_BYTES
        if self._last.get("reweights"):
            found += FACTOR_BYTES + k * (
                WORD_BYTES + PAIR_BYTES * (2 if self._job["search_pairs"] else 1)
            )
        return found

    def _bytes_of_tree(self) -> dict[str, int]:
        """What a tree has of its own while it grows."""
        job = self._job
        joint = int(self._job["n_joint"])
        items = int(self._job["n_items"])
        nodes = int(job["max_nodes"])
        tiles = int(job["n_tiles"])
        sums = int(job["n_slots"] * job["histogram_size"])
        found = {
            "nodes": joint * nodes * record("Node").itemsize,
            "leaf_sums": (self._n_outputs if job["one_tree"] else 1) * nodes * 16 * 8,
            "levels": (len(self._last["steps"]) + 2) * record("Level").itemsize,
            "batch": items * record("BatchItem").itemsize,
            "items": joint * items * record("BuildItem").itemsize,
            **dict.fromkeys(("n_left", "n_right", "arrived"), 2 * items * 4),
            "lists": self._n * LIST_BYTES,
            "histograms": joint * sums * record("Sums").itemsize,
            "found": (1 if job["symmetric"] else 2 * items)
            * int(job["n_found"])
            * record("Found").itemsize,
        }
        if self._last["counts"]:
            found["counts"] = sums * 8
        if self._last["columns"]:
            found["allowed"] = 2 * items * tiles * 4
        if job["first_use"]:
            found["path"] = nodes * tiles * 4
        if job["category"]:
            found["sets"] = nodes * SET_WORDS * 8
        return found

    def _bytes_of_level(self, nodes: int) -> dict[str, int]:
        """The same of a symmetric tree besides; nodes: of its largest level."""
        n = len(self._binned.places)
        names = (
            ("level_scores", "level_norms")
            if self._job["cosine"]
            else ("level_scores",)
        )
        return {
            **dict.fromkeys(names, nodes * n * 2 * 256 * 8),
            "root_missing": n * 8,
            "root_range": n * 2 * 4,
            "root_below": n * 256 * 8,
            "steps": n * 256 * record("CodeStep").itemsize,
            "n_steps": n * 2 * 4,
        }

    def _make_sketch_memory(self, n_sums: int) -> None:
        self._make("sketch_factor", (n_sums, self._n_outputs), np.float64)
        self._make("sketch_real", (n_sums + 1, self._n), np.float64)
        self._make_records("sketch_output", n_sums, "Output")
        self._make("sketch_packed", (n_sums, self._n), np.int32)
        self._make("sketch_pairs", (n_sums, self._n, 2), np.int32)

    def _plan(self, leaves: int, depth: int, leafwise: bool) -> list[int]:
        """The largest number of nodes that each step after the root may split."""
        if leafwise:
            return [1] * (leaves - 2)
        most = 1
        steps: list[int] = []
        while most < leaves and (not depth or len(steps) < depth - 1):
            steps.append(most)
            most *= 2
        # without a depth a level may have one node
        return steps if depth else steps + [leaves // 2] * leaves

    def _grow_some(self, k: int, n: int = 1) -> None:
        """The steps of the trees of n outputs side by side, but the last one. k: the
        first of them
        """
        run = self.runtime
        job = self._job
        steps = self._last["steps"]
        tiles = int(job["n_tiles"])
        columns = int(job["n_columns"])
        joint = int(job["n_joint"])
        self._launch(
            "begin", k, grid=(max(1, min(run.n_processors, tiles * 8)), 1), n_beside=n
        )
        blocks = max(
            1, run.n_processors * run.settings["histogram"][1] // (tiles * joint * n)
        )
        blocks = min(blocks, -(-self._n // self.min_rows))
        for step, n_nodes in enumerate((0, *steps)):
            if n_nodes:
                self._launch("partition", k, step, n_beside=n)
            self._launch(
                "histogram", k, step, (blocks, tiles * joint), HISTOGRAM_BYTES, n
            )
            children = max(1, 2 * n_nodes)
            # columns of a block
            each = -(-children * columns * n // (SEARCH_BLOCKS * run.n_processors))
            # the best of every column is compared
            each = 1 if self._last["ranked"] else min(each, columns)
            if self._last["columns"]:
                self._launch("choose_columns", k, step, (children, 1), 8 * tiles, n)
            self._search(k, step, (children, -(-columns // each)), n)

    def _search(self, k: int, step: int, grid: tuple[int, int], n: int) -> None:
        """Search the children of a step: a block has some columns of a node."""
        joint = int(self._job["n_joint"])
        found = (int(self._job["n_found"]), 1)
        if not self._job["symmetric"]:
            self._launch(
                "search_joint" if joint > 1 else "search", k, step, grid, n_beside=n
            )
        elif joint == 1 and self._scores_at_once(grid[0], n):
            whole = (1, int(self._job["n_columns"]))
            self._launch(
                "score_whole_level", k, step, whole, n_beside=n, n_groups=grid[0]
            )
        elif joint == 1:
            self._launch("score_level", k, step, grid, n_beside=n)
            if step:  # the root's candidates are compared at once
                self._launch("choose_level", k, step, (found[0] + 1, 1), n_beside=n)
        else:
            for output in range(joint):
                self._launch("score_joint", output, step, grid)
                self._launch("add_joint", output, step, found)
            self._launch("choose_joint", 0, step, found)
            self._launch("take_level", 0, step)

    def _scores_at_once(self, n_nodes: int, n: int) -> bool:
        """Whether a block has a column of all nodes of a symmetric level: there are
        few, and all blocks run at once.
        """
        blocks = int(self._job["n_columns"]) * n_nodes * n
        most = self.runtime.n_processors * self.runtime.settings["score_whole_level"][1]
        return (
            1 < n_nodes <= WHOLE_NODES and blocks <= most and not self._job["category"]
        )

    def _finish(self, k: int, n: int = 1) -> None:
        """The last step of these trees, the leaves of rows, values."""
        last = len(self._last["steps"]) + 1
        nodes = int(self._job["max_nodes"])
        shared = nodes * (STEP_BYTES + int(self._job["leaf_copies"]) * PART_BYTES)
        self._launch(
            "find_leaves",
            k,
            last,
            None,
            shared,
            n,
            n_more=int(self._job["n_recorders"]),
        )
        self._launch("finish_tree", k, last, n_beside=n)
