"""The trainer of the device: the rows of one training set and the trees grown on them.

In: codes, labels, weights, parameters. Out: trees, which stay in device memory until they are read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.binned import LANES, Binned
from sapwood.device.cuda.hosted import Hosted
from sapwood.device.cuda.job import record
from sapwood.device.cuda.runtime import ROW_KERNELS, Runtime
from sapwood.device.cuda.trees import Finished
from sapwood.errors import ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
MAX_NODES = 65_536  # node ids of rows have 16 bits
PRECISIONS = ("auto", "narrow", "wide")
ROWS, TREE_COLUMNS, LEVEL_COLUMNS, NODE_COLUMNS, RANDOM_CUT = 2, 3, 4, 5, 20  # purposes of core/math/hash.h
TILE_SUMS = 256 * LANES
HISTOGRAM_BYTES = 2 * TILE_SUMS * 4
PARTITION, ONE_HOT, SET_WORDS = 1, 2, 4  # kinds of columns of categories; words of a set of codes
SEARCH_BLOCKS = 4  # of the search, that a multiprocessor has at a time
STEP_BYTES, PART_BYTES = 16, 20  # of a node in find_leaves: what rows walk through, what they add


class Trainer(Hosted):
    """Labels, scores and gradients of one training set; `_core.pyi` says what each method takes and returns."""

    runtime: Runtime
    min_rows = 256  # rows of a block, where there are few

    def __init__(
        self,
        binned: Binned,
        label: Floats,
        weight: Floats | None,
        objective: str,
        fields: Mapping[str, float | list[float]],
        n_outputs: int,
        n_threads: int,
    ) -> None:
        facts = _core.objectives()[objective]
        self._binned, self._objective, self._n_outputs, self._n = binned, objective, n_outputs, binned.n_rows
        self._host_arguments = (label, weight, objective, fields, n_outputs, n_threads)
        self._arrays: dict[str, Any] = {}
        self._job = np.zeros((), record("Job"))
        self._raw_job = np.ndarray((), f"V{self._job.nbytes}", self._job)  # the same bytes: CuPy need not read fields
        self._turn = np.zeros((), record("Turn"))
        self._numbers: list[Ints | None] = [None] * n_outputs  # node of each leaf, where leaves are not nodes
        self._pending = [False] * n_outputs
        self._last: dict[Any, Any] = {"sampler": ("uniform", {}, None, None), "onehot": []}
        self._graphs: dict[Any, Any] = {}
        self._finished: Finished | None = None
        self._shape: tuple[Any, ...] = ()
        self._rules = "plain"  # what the search must look at
        self._start_hosted()
        self._set_rows(label, weight, facts, fields)

    # ---- Memory -----------------------------------------------------------------------------------------------------

    def _keep(self, name: str, values: Any) -> None:
        """Keep an array alive, and its address in the job."""
        self._arrays[name] = values
        self._job[name] = 0 if values is None else self.runtime.address(values)

    def _make(self, name: str, shape: Any, kind: Any) -> None:
        self._keep(name, self.runtime.zeros(shape, kind))

    def _make_records(self, name: str, n: int, kind: str) -> None:
        self._make(name, n * record(kind).itemsize, np.uint8)

    def _set_rows(
        self, label: Floats, weight: Floats | None, facts: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> None:
        run, job, n, k = self.runtime, self._job, self._n, self._n_outputs
        job["n"], job["n_outputs"], job["n_columns"] = n, k, len(self._binned.cuts)
        places = self._binned.places
        bins = np.array([0 if column < 0 else self._binned.n_bins[column] for column in places], np.int32)
        self._keep("n_bins", run.array(bins))
        self._keep("column_of", run.array(places))
        job["n_tiles"] = len(places) // LANES
        job["min_rows"] = self.min_rows
        job["histogram_size"] = job["n_tiles"] * TILE_SUMS
        self._keep("label", run.array(np.ascontiguousarray(label, np.float64)))
        job["label_plane"] = n if len(label) > 1 else 0
        job["total_repeats"], job["max_repeats"], job["counts_by_hessian"], job["n_live"] = n, 1, 1, n
        job["all_rows"] = 1
        if weight is not None:
            self._set_weights(weight)
        names = list(facts["fields"])
        values = np.zeros((k, len(names) + 1))
        for at, name in enumerate(names):
            values[:, at] = fields[name]
        job["n_fields"] = len(names) + 1
        self._keep("field", run.array(values))
        self._make("score", (k, n), np.float64)
        self._make("packed", (k, n), np.int32)
        self._make("leaf_pairs", (k, n, 2), np.int32)
        self._make("leaf", (k, n), np.uint16)
        self._make_records("output", k, "Output")
        output = np.zeros(k, record("Output"))
        output["narrow"]["bits"], output["wide"]["bits"] = 14, 30
        run.put(self._arrays["output"], output.view(np.uint8))
        self._make_records("growth", 1, "Growth")
        self._make_records("turn", 1, "Turn")

    def _set_weights(self, weight: Floats) -> None:
        run, job = self.runtime, self._job
        count, whole, shift = _core.integer_weights(weight)
        self._keep("repeats", run.array(count))
        unit = whole and count.max(initial=0) <= 1
        live = int(np.count_nonzero(count))
        job["repeated"], job["weight_shift"] = whole and not unit, shift
        job["total_repeats"] = int(count.sum(dtype=np.int64)) if whole else live
        job["max_repeats"] = int(count.max(initial=1)) if job["repeated"] else 1
        job["counts_by_hessian"], job["n_live"] = whole, live
        if not whole:
            self._keep("weight", run.array(weight))
        elif live < self._n:
            self._keep("weight", run.array((count > 0).astype(np.float64)))
        self._last["zeros"] = live < self._n

    def _upload(self) -> None:
        """Send the turn, where it has changed."""
        raw = self._turn.tobytes()
        if self._last.get("turn") != raw:
            self.runtime.put(self._arrays["turn"], np.frombuffer(raw, np.uint8))
            self._last["turn"] = raw

    # ---- Launches ---------------------------------------------------------------------------------------------------

    def _launch(
        self, kernel: str, a: int = 0, b: int = 0, grid: tuple[int, int] | None = None, shared: int = 0
    ) -> None:
        run = self.runtime
        threads, each = run.settings[kernel]
        if grid is None:
            most = max(1, run.n_processors * each)
            grid = (max(1, min(most, -(-self._n // threads))) if each else 1, 1)
        variant = f"{self._objective} {self._last['sampler'][0]}" if kernel in ROW_KERNELS else self._rules
        run.launch(kernel, variant, grid, shared, self._raw_job, a, b)

    def _repeat(self, key: Any, work: Callable[[], None]) -> None:
        """Do some launches: as they are the first time, then captured as a graph, which is replayed."""
        self._upload()
        key = key, self._job.tobytes()  # a graph has the job in it
        found = self._graphs.get(key, 0)
        if callable(found):
            found()
        elif found == 0:
            work()
            self._graphs[key] = 1
        else:
            graph = self.runtime.capture(work)
            self._graphs[key] = graph or work
            (graph or work)()

    # ---- Scores and gradients ---------------------------------------------------------------------------------------

    def start(self) -> Floats:
        """The constant scores (n_outputs) that minimise the loss, from the core on the host."""
        return _core.Trainer(self._binned.for_start, *self._host_arguments).start()

    def fill_scores(self, start: Floats) -> None:
        self._forget_values()
        for k, value in enumerate(start):
            self.runtime.fill(self._arrays["score"][k], float(value))

    def set_scores(self, scores: Floats) -> None:
        self._forget_values()
        self.runtime.put(self._arrays["score"], np.ascontiguousarray(scores, np.float64))

    def scores(self, rows: NDArray[np.int32] | None = None) -> Floats:
        self._flush()
        if rows is None:
            return self.runtime.get(self._arrays["score"])
        return np.ascontiguousarray(self.runtime.take(self._arrays["score"].T, rows).T)  # only those are copied

    def _forget_values(self) -> None:
        """No values wait to be added to the scores, and the host's scores are old."""
        self._changed()
        self._pending = [False] * self._n_outputs
        self._last["hosted"] = False

    def _flush(self) -> None:
        if self._last.get("hosted"):
            assert self._host is not None
            self.set_scores(self._host.scores())
        if any(self._pending):
            self._changed()
        for k, pending in enumerate(self._pending):
            if pending:
                self._upload()
                self._launch("add_values", k)
        self._pending = [False] * self._n_outputs

    def gradients(
        self,
        precision: str,
        unit_search: bool = False,
        unit_leaf: bool = False,
        gradient: Floats | None = None,
        hessian: Floats | None = None,
    ) -> list[str]:
        """As the core's; the precision stays on the device, so the list is empty."""
        job = self._job
        self._changed()
        self._last["gradients"] = (precision, unit_search, unit_leaf, gradient, hessian)
        job["precision"], job["unit_search"], job["unit_leaf"] = PRECISIONS.index(precision), unit_search, unit_leaf
        if unit_search and not unit_leaf and "search_pairs" not in self._arrays:
            self._make("search_pairs", (self._n_outputs, self._n, 2), np.int32)
        for name, values in (("given_g", gradient), ("given_h", hessian)):
            if values is None:
                self._job[name] = 0
                continue
            if self._arrays.get(name) is None:
                self._make(name, (self._n_outputs, self._n), np.float64)
            self._job[name] = self.runtime.address(self._arrays[name])
            self.runtime.put(self._arrays[name], np.ascontiguousarray(values, np.float64))
        pending = all(self._pending) and not self._last.get("hosted")
        if not pending:
            self._flush()
        self._pending = [False] * self._n_outputs

        if self._last.get("unused"):  # gradients that no tree has used: their largest would stay
            self._launch("forget_gradients")
        self._last["unused"] = True

        def work() -> None:
            self._launch("gradient_pass", 0, pending)
            self._launch("gradient_pass", 1, grid=(2 * self.runtime.n_processors, 1))

        self._repeat(("gradients", pending), work)
        return []

    def set_sampler(
        self,
        name: str,
        fields: Mapping[str, float],
        subsample_by_row: Floats | None = None,
        group: Ints | None = None,
    ) -> None:
        self._last["sampler"] = (name, fields, subsample_by_row, group)
        for field, values in (("row_subsample", subsample_by_row), ("row_group", group)):
            self._keep(field, None if values is None else self.runtime.array(values))
        self._last["reweights"] = name != "uniform"
        if not self._last["reweights"]:
            return
        n, k = self._n, self._n_outputs
        self._keep("sampler_field", self.runtime.array(np.array([*fields.values(), 0.0])))
        self._make_records("sampling", 1, "Sampling")
        self._make_records("reweighted", k, "Output")
        self._make("norms", n, np.uint32)
        self._make("digits", (2048, 2), np.int64)
        self._make("factor", n, np.float64)
        self._make("reweighted_packed", (k, n), np.int32)
        self._make("reweighted_leaf", (k, n, 2), np.int32)

    def sample(self, seed: int, round: int, subsample: float | None) -> int:
        """As the core's; the number of rows stays on the device, so that of all rows is returned."""
        self._changed()
        self._last["sample"] = (seed, round, subsample)
        job, turn = self._job, self._turn
        reweights = self._last.get("reweights", False)
        takes_all = subsample is None or (not reweights and subsample >= 1.0 and self._last["sampler"][2] is None)
        self._last["reweighted"] = reweights and not takes_all
        zeros = self._last.get("zeros", False)
        job["all_rows"], job["draws"] = takes_all and not zeros, not takes_all
        if job["all_rows"]:
            return int(self._n)
        job["subsample"] = 1.0 if subsample is None else subsample
        turn["sample_key"], turn["tie_key"] = key(seed, ROWS, round, 0), key(seed, ROWS, round, 1)
        if "in_sample" not in self._arrays:
            self._make("in_sample", self._n, np.uint8)
            self._make("sample", self._n, np.uint32)

        if self._last["reweighted"] and self._job["search_pairs"] and "reweighted_search" not in self._arrays:
            self._make("reweighted_search", (self._n_outputs, self._n, 2), np.int32)
        by_norm = self._last["sampler"][0] in ("goss", "mvs")

        def work() -> None:
            self._launch("forget_sample")
            passes = [(digit, ties) for ties in (False, True) for digit in range(3) if by_norm]
            for digit, ties in passes if self._last["reweighted"] else ():
                self._launch("count_norms", digit, ties)
                self._launch("choose_norm", digit, ties)
            self._launch("draw_rows")
            for one in range(2 if self._last["reweighted"] else 0):
                self._launch("reweigh", one)
            if self._last["reweighted"]:
                self._launch("end_reweigh")

        self._repeat("sample", work)
        return int(self._n)

    # ---- Growth -----------------------------------------------------------------------------------------------------

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
        assert not forced and not (any(monotone) and intermediate), "boost/compatibility.py refuses them"
        n = len(self._binned.places)
        groups_of = np.zeros(n, np.uint64)
        for at, columns in enumerate(groups):
            groups_of[list(columns)] |= np.uint64(1 << at)
        self._keep("groups_of", self.runtime.array(groups_of) if len(groups) else None)
        direction = np.zeros(n, np.int8)
        direction[: len(monotone)] = monotone
        self._keep("direction", self.runtime.array(direction) if len(monotone) else None)

    def set_split_preference(
        self, cosine: bool, weight: Sequence[float], penalty: Sequence[float], used: Sequence[int]
    ) -> None:
        assert not cosine and not weight and not penalty, "boost/compatibility.py refuses them"

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
        """Grow a tree for every output; the trees are read from the device once someone looks at them."""
        together = multi_output and self._n_outputs > 1
        assert not random_strength and not prefix_ends and not together, "boost/compatibility.py refuses them"
        if "codes" not in self._arrays:  # the rows of a model whose trees grow on other columns never get here
            self._keep("codes", self._binned.tiles)
            self._keep("planes", self._binned.planes)
        self._set_limits(policy, limits)
        self._flush()
        self._turn["learning_rate"], self._turn["tree"] = limits["learning_rate"], tree
        self._turn["column_keys"] = [key(seed, one) for one in (TREE_COLUMNS, LEVEL_COLUMNS, NODE_COLUMNS)]
        self._turn["cut_key"] = key(seed, RANDOM_CUT)
        assert self._finished is not None
        self._finished.make_room(self._n_outputs)

        def work() -> None:
            for k in range(self._n_outputs):
                self._grow_one(k)

        self._last["unused"] = False
        kept = self._use_reweighted() if self._last.get("reweighted") else {}
        self._repeat(("grow", bool(self._job["all_rows"]), *self._shape), work)
        for name, value in kept.items():
            self._job[name] = value
        self._numbers = [None] * self._n_outputs
        self._new_leaves(range(self._n_outputs))
        trees = []
        for k in range(self._n_outputs):
            trees.append(self._finished.take())
            self._last["tree", k] = trees[-1]
        return trees

    def _use_reweighted(self) -> dict[str, int]:
        """Growth reads the rows of a sample that count more or less; returns what the job had before."""
        own = {"packed": "reweighted_packed", "leaf_pairs": "reweighted_leaf", "output": "reweighted"}
        if self._job["search_pairs"]:
            own["search_pairs"] = "reweighted_search"
        kept = {name: int(self._job[name]) for name in (*own, "counts_by_hessian")}
        for name, other in own.items():
            self._job[name] = self._job[other]
        self._job["counts_by_hessian"] = 0
        return kept

    def _set_limits(self, policy: str, limits: Mapping[str, float]) -> None:
        depth, leaves = int(limits["max_depth"]), int(limits["max_leaves"])
        for name in ("min_child_weight", "min_samples_leaf", "reg_lambda", "reg_alpha", "min_split_gain",
                     "max_delta_step", "path_smooth"):  # fmt: skip
            self._job[name] = limits[name]
        self._set_categories(limits)
        self._last["counts"] = self._min_samples(limits["min_samples_leaf"]) > 1 or bool(self._job["counts_nodes"])
        rules = limits["reg_alpha"] or limits["max_delta_step"] or self._job["direction"] or self._job["extra_trees"]
        shares = [limits[name] for name in ("colsample_bytree", "colsample_bylevel", "colsample_bynode")]
        self._job["colsample_bytree"], self._job["colsample_bylevel"], self._job["colsample_bynode"] = shares
        self._last["columns"] = min(shares) < 1.0 or self._arrays.get("groups_of") is not None
        words = ("" if rules else "plain", "counts" if self._last["counts"] else "",
                 "columns" if self._last["columns"] else "", "categories" if self._job["category"] else "",
                 "narrow" if 0 < self._job["n_columns"] % LANES <= LANES // 2 else "",
                 policy)  # fmt: skip
        self._rules = " ".join(words)
        shape = (policy, depth, leaves, self._rules)
        if shape == self._shape:
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
        self._make_tree_memory(most, depth, policy == "leafwise")

    def _set_categories(self, limits: Mapping[str, float]) -> None:
        """Which columns are of categories, and how they are split."""
        if not any(self._binned.is_category):
            return
        for name in ("max_cat_threshold", "cat_smooth", "cat_l2", "min_data_per_group"):
            self._job[name] = limits[name]
        kinds = np.zeros(len(self._binned.places), np.uint8)
        for column, is_category in enumerate(self._binned.is_category):
            few = self._binned.n_bins[column] <= limits["max_cat_to_onehot"]
            kinds[column] = 0 if not is_category else ONE_HOT if few or column in self._last["onehot"] else PARTITION
        if self._last.get("kinds") != kinds.tobytes():
            self._last["kinds"] = kinds.tobytes()
            self._keep("category", self.runtime.array(kinds))
        self._job["counts_nodes"] = bool((kinds == PARTITION).any()) and bool(self._job["repeats"])

    def _min_samples(self, given: float) -> float:
        """The minimum rows of a leaf; 0 stands for the objective's own, which the gradients leave on the device."""
        if given:
            return given
        if "own" not in self._last:
            found = self.runtime.get(self._arrays["output"]).view(record("Output"))
            self._last["own"] = float(found["own_min_samples"].max())
        return float(self._last["own"])

    def _make_tree_memory(self, leaves: int, depth: int, leafwise: bool) -> None:
        job, k = self._job, self._n_outputs
        nodes = job["max_nodes"] = max(2, 2 * leaves)
        batch = 1 if leafwise else max(1, leaves // 2)
        slots = max(1, leaves // 2) if depth and not leafwise and leaves == 1 << depth else leaves
        self._graphs.clear()
        job["n_store"] = size = max(128, 4 * k)
        self._make_records("trees", size * int(nodes), "TreeNode")
        self._make("tree_sizes", size, np.int32)
        if job["category"]:
            self._make("sets", (nodes, SET_WORDS), np.uint64)
            self._make("tree_sets", (size, nodes, SET_WORDS), np.uint64)
        self._finished = Finished(self.runtime, self._arrays, self._binned, size, bool(job["symmetric"]))
        self._make("node_value", (k, nodes), np.float64)
        self._make_records("nodes", int(nodes), "Node")
        self._make("leaf_sums", (nodes, 16), np.int64)
        steps = self._last["steps"] = self._plan(leaves, depth, leafwise)
        for name, n, kind in (("levels", len(steps) + 2, "Level"), ("batch", batch + 1, "BatchItem"),
                              ("items", batch + 1, "BuildItem")):  # fmt: skip
            self._make_records(name, n, kind)
        for name in ("n_left", "n_right", "arrived"):
            self._make(name, 2 * (batch + 1), np.int32)
        self._make_records("lists", 2 * self._n, "Listed")
        self._make_records("histograms", slots * int(job["histogram_size"]), "Sums")
        if self._last["counts"]:
            self._make("counts", slots * int(job["histogram_size"]), np.int64)
        blocks = int(job["n_columns"]) * 256 // self.runtime.settings["choose_level"][0]
        job["n_found"] = blocks if job["symmetric"] else int(job["n_columns"])
        self._make_records("found", (1 if job["symmetric"] else 2 * (batch + 1)) * int(job["n_found"]), "Found")
        self._keep("allowed", None)
        if self._last["columns"]:
            self._make("allowed", (2 * (batch + 1), int(job["n_tiles"])), np.uint32)
        if job["symmetric"]:
            self._make("level_scores", (max(1, leaves // 2), len(self._binned.places), 2, 256), np.float64)
            self._make("root_missing", len(self._binned.places), np.int64)
            self._make("root_range", (len(self._binned.places), 2), np.int32)
            self._make("root_below", (len(self._binned.places), 256), np.int64)
            self._make_records("steps", len(self._binned.places) * 256, "CodeStep")
            self._make("n_steps", (len(self._binned.places), 2), np.int32)
        room = (self.runtime.max_shared - 16384) // 2 - int(nodes) * STEP_BYTES  # two blocks share a multiprocessor
        copies = 32
        while copies and (copies * nodes * PART_BYTES > room or job["repeats"]):
            copies //= 2
        job["leaf_copies"] = copies

    def _plan(self, leaves: int, depth: int, leafwise: bool) -> list[int]:
        """The largest number of nodes that each step after the root may split."""
        if leafwise:
            return [1] * (leaves - 2)
        most = 1
        steps: list[int] = []
        while most < leaves and (not depth or len(steps) < depth - 1):
            steps.append(most)
            most *= 2
        return steps if depth else steps + [leaves // 2] * leaves  # without a depth a level may have one node

    def _grow_one(self, k: int) -> None:
        run, job, steps = self.runtime, self._job, self._last["steps"]
        tiles, columns, nodes = int(job["n_tiles"]), int(job["n_columns"]), int(job["max_nodes"])
        self._launch("begin", k, grid=(max(1, min(run.n_processors, tiles * 8)), 1))
        blocks = max(1, run.n_processors * run.settings["histogram"][1] // tiles)
        blocks = min(blocks, -(-self._n // self.min_rows))
        for step, n_nodes in enumerate((0, *steps)):
            if n_nodes:
                self._launch("partition", k, step)
            self._launch("histogram", k, step, (blocks, tiles), HISTOGRAM_BYTES)
            children = max(1, 2 * n_nodes)
            each = -(-children * columns // (SEARCH_BLOCKS * run.n_processors))  # columns of a block
            searched = children, -(-columns // each)
            if self._last["columns"]:
                self._launch("choose_columns", k, step, (children, 1), 8 * tiles)
            if job["symmetric"]:
                self._launch("score_level", k, step, searched)
                self._launch("choose_level", k, step, (int(job["n_found"]), 1))
            else:
                self._launch("search", k, step, searched)
        last = len(steps) + 1
        self._launch("find_leaves", k, last, None, nodes * (STEP_BYTES + int(job["leaf_copies"]) * PART_BYTES))
        self._launch("finish_tree", k, last)

    def copy_settings(self, other: "Trainer") -> None:
        self._keep("direction", other._arrays.get("direction"))
        self._job["extra_trees"], self._last["onehot"] = other._job["extra_trees"], other._last["onehot"]
        self.set_sampler(*other._last["sampler"][:2])

    # ---- The tree last grown ----------------------------------------------------------------------------------------

    def _leaf_nodes(self, output: int) -> Ints | None:
        """The node of each leaf, or None where rows have leaf ids themselves."""
        if self._numbers[output] is not None:
            return None
        return np.flatnonzero(self._last["tree", output]["left"] == 0).astype(np.int32)

    def leaf_ids(self, output: int) -> Ints:
        ids = self.runtime.get(self._arrays["leaf"][output]).astype(np.int32)
        nodes = self._leaf_nodes(output)
        if nodes is None:
            return ids
        number = np.zeros(int(self._job["max_nodes"]), np.int32)
        number[nodes] = np.arange(len(nodes), dtype=np.int32)
        return number[ids]

    def set_leaf_ids(self, output: int, leaf_id: Ints, n_leaves: int) -> None:
        self._flush()
        self.runtime.put(self._arrays["leaf"][output], leaf_id.astype(np.uint16))
        self._numbers[output] = np.arange(n_leaves, dtype=np.int32)
        self._new_leaves([output])
        if n_leaves > self._job["max_nodes"]:  # no tree has grown here, or smaller ones
            self._job["max_nodes"], self._shape = n_leaves, ()
            self._make("node_value", (self._n_outputs, n_leaves), np.float64)

    def relabel_leaves(self, output: int, new_id: Ints | None, value: Floats) -> None:
        if new_id is not None:
            self.set_leaf_ids(output, new_id[self.leaf_ids(output)], len(value))
        nodes = self._leaf_nodes(output)
        self._last["values", output] = value
        values = np.zeros(int(self._job["max_nodes"]))
        values[np.arange(len(value)) if nodes is None else nodes] = value
        self.runtime.put(self._arrays["node_value"][output], values)

    def _n_leaves(self, output: int) -> int:
        numbers = self._numbers[output]
        return len(np.flatnonzero(self._last["tree", output]["left"] == 0) if numbers is None else numbers)

    def add_scores(self, output: int) -> None:
        if self._adds_linear[output]:
            assert self._host is not None
            self._host.add_scores(output)
            self._last["hosted"] = True
        else:
            self._pending[output] = True


def key(*coordinates: int) -> int:
    """core/math/hash.h's key, or its beginning."""
    mask, h = (1 << 64) - 1, 0
    for value in coordinates:
        x = (h + 0x9E3779B97F4A7C15 * (value + 1)) & mask
        x ^= x >> 30
        x = x * 0xBF58476D1CE4E5B9 & mask
        x ^= x >> 27
        x = x * 0x94D049BB133111EB & mask
        h = x ^ x >> 31
    return h
