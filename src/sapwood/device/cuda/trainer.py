"""The trainer of the device: the rows of one training set and the trees grown on them.

In: codes, labels, weights, parameters. Out: trees, which stay in device memory until
they are read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.binned import LANES, Binned
from sapwood.device.cuda.copies import Sample
from sapwood.device.cuda.evaluating import Asked, Measured
from sapwood.device.cuda.growing import MAX_BESIDE, TILE_SUMS, Growing
from sapwood.device.cuda.hosted import Hosted
from sapwood.device.cuda.job import record
from sapwood.device.cuda.lines import Lines
from sapwood.device.cuda.records import key

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
PRECISIONS = ("auto", "narrow", "wide")
ROWS = 2  # a purpose of core/math/hash.h


class Trainer(Hosted, Growing, Lines):
    """Labels, scores and gradients of one training set; `_core.pyi` says what each
    method takes and returns.
    """

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
        self.runtime = self.runtime.lane(self)
        self._binned = binned
        self._n_outputs = n_outputs
        self._host_arguments = (label, weight, objective, fields, n_outputs, n_threads)
        self._pending = [False] * n_outputs
        self._start_records(binned.n_rows, objective)
        self._start_growing()
        self._start_hosted()
        self._start_lines()
        self._adapts = facts["adaptive"]
        self._set_rows(label, weight, facts, fields)

    def _set_rows(
        self,
        label: Floats,
        weight: Floats | None,
        facts: Mapping[str, Any],
        fields: Mapping[str, Any],
    ) -> None:
        run = self.runtime
        job = self._job
        n = self._n
        k = self._n_outputs
        job["n"], job["n_outputs"], job["n_columns"] = n, k, len(self._binned.cuts)
        places = self._binned.places
        bins = np.array(
            [0 if column < 0 else self._binned.n_bins[column] for column in places],
            np.int32,
        )
        self._keep("n_bins", run.array(bins))
        self._keep("column_of", run.array(places))
        job["n_tiles"] = len(places) // LANES
        job["min_rows"], job["node_cost"] = self.min_rows, self.node_cost
        job["histogram_size"] = job["n_tiles"] * TILE_SUMS
        self._keep("label", run.array(np.ascontiguousarray(label, np.float64)))
        job["label_plane"] = n if len(label) > 1 else 0
        (
            job["total_repeats"],
            job["max_repeats"],
            job["counts_by_hessian"],
            job["n_live"],
        ) = n, 1, 1, n
        job["all_rows"] = job["n_copies"] = 1
        if weight is not None:
            self._set_weights(weight)
        names = list(facts["fields"])
        values = np.zeros((k, len(names) + 1))
        for at, name in enumerate(names):
            values[:, at] = fields[name]
        job["n_fields"] = len(names) + 1
        self._keep("field", run.array(values))
        self._make("score", (k, n), np.float64)
        if k > 1:
            self._make("row_totals", (2, n), np.float64)
        self._make("packed", (k, n), np.int32)
        self._make("leaf_pairs", (k, n, 2), np.int32)
        self._make("leaf", (k, n), np.uint16)
        self._make_records("output", k, "Output")
        output = np.zeros(k, record("Output"))
        output["narrow"]["bits"], output["wide"]["bits"] = 14, 30
        run.put(self._arrays["output"], output.view(np.uint8))
        job["all_output"] = job["output"]
        self._make_records("growth", max(k, MAX_BESIDE), "Growth")
        self._make_records("turn", 1, "Turn")

    def _set_weights(self, weight: Floats) -> None:
        run = self.runtime
        job = self._job
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
        self._last["zeros"], self._last["weighs"] = live < self._n, not unit

    # ---- Scores and gradients --------------------------------------------------------

    def start(self) -> Floats:
        """The constant scores (n_outputs) that minimise the loss, from the core on the
        host.
        """
        return _core.Trainer(self._binned.for_start, *self._host_arguments).start()

    def fill_scores(self, start: Floats) -> None:
        self._forget_values()
        for k, value in enumerate(start):
            self.runtime.fill(self._arrays["score"][k], float(value))

    def set_scores(self, scores: Floats) -> None:
        self._forget_values()
        self.runtime.put(
            self._arrays["score"], np.ascontiguousarray(scores, np.float64)
        )

    def scores(self, rows: NDArray[np.int32] | None = None) -> Floats:
        self._flush()
        if rows is None:
            return self.runtime.get(self._arrays["score"])
        # only those are copied
        return np.ascontiguousarray(self.runtime.take(self._arrays["score"].T, rows).T)

    def measure(
        self, rows: Ints, label: Floats, weight: Floats | None, asked: Asked, link: str
    ) -> list[float] | None:
        """Metrics of some rows, which are the same in every call; None where the host
        finds them.
        """
        self._flush()
        if "measured" not in self._last:
            self._last["measured"] = (
                Measured(self.runtime, label, weight),
                self.runtime.array(rows),
            )
        measured, there = self._last["measured"]
        found: list[float] | None = measured(
            asked, link, self._arrays["score"], self._n_outputs, self._n, there
        )
        return found

    def arrays_there(
        self, label: Floats, weight: Floats | None
    ) -> tuple[Any, Any, Any]:
        """A user's labels, the scores (n_outputs, n_rows) and a user's weights, in
        device memory.
        """
        self._flush()
        if "theirs" not in self._last:
            self._last["theirs"] = [
                None if one is None else self.runtime.array(one)
                for one in (label, weight)
            ]
        self.runtime.wait()
        there, weight_there = self._last["theirs"]
        return there, self._arrays["score"].reshape(-1, self._n), weight_there

    def _forget_values(self) -> None:
        """No values wait to be added to the scores, and the host's scores are old."""
        self._changed()
        self._copies.forget()
        self._pending = [False] * self._n_outputs

    def _flush(self) -> None:
        if any(self._pending):
            self._changed()
            self._copies.forget()
        for k, pending in enumerate(self._pending):
            if pending:
                self._upload()
                self._launch("add_values", k, self._place(k))
        self._pending = [False] * self._n_outputs

    def gradients(
        self,
        precision: str,
        unit_search: bool = False,
        unit_leaf: bool = False,
        gradient: Any = None,
        hessian: Any = None,
    ) -> list[str]:
        """As the core's; the precision stays on the device, so the list is empty."""
        job = self._job
        if self._copies.have_gradients(
            (precision, unit_search, unit_leaf) if gradient is None else None
        ):
            return []
        self._changed()
        self._last["gradients"] = (
            precision,
            unit_search,
            unit_leaf,
            gradient is not None,
        )
        job["precision"], job["unit_search"], job["unit_leaf"] = (
            PRECISIONS.index(precision),
            unit_search,
            unit_leaf,
        )
        if unit_search and not unit_leaf and "search_pairs" not in self._arrays:
            self._make("search_pairs", (self._n_outputs, self._n, 2), np.int32)
        # one field of the objective is a quantile of the errors, which the core on the
        # host finds
        if self._adapts:
            fields = self._with_gradients().fields()
            self.runtime.put(
                self._arrays["field"], fields.reshape(self._arrays["field"].shape)
            )
        for name, values in (("given_g", gradient), ("given_h", hessian)):
            if values is None:
                self._job[name] = 0
                continue
            if self._arrays.get(name) is None:
                self._make(name, (self._n_outputs, self._n), np.float64)
            self._job[name] = self.runtime.address(self._arrays[name])
            if isinstance(values, np.ndarray):
                self.runtime.put(
                    self._arrays[name], np.ascontiguousarray(values, np.float64)
                )
            else:
                self.runtime.copy(self._arrays[name], self.runtime.foreign(values))
        pending = all(self._pending) and self._copy == 0
        if not pending:
            self._flush()
        self._pending = [False] * self._n_outputs

        # gradients that no tree has used: their largest would stay
        if self._last.get("unused"):
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
        for field, values in (
            ("row_subsample", subsample_by_row),
            ("row_group", group),
        ):
            self._keep(field, None if values is None else self.runtime.array(values))
        self._last["reweights"] = name != "uniform"
        if not self._last["reweights"]:
            return
        self._keep(
            "sampler_field", self.runtime.array(np.array([*fields.values(), 0.0]))
        )

    def expect(self, samples: Sequence[Sample], first_tree: int) -> None:
        """The next calls of `gradients`, `sample` and `grow` are for copies of a round,
        on the scores of now.

        samples: what `sample` will be given for each; first_tree: what `grow` will be
        given for the first of them. The trees of the others follow. The core has no
        such method: it grows what it is asked for.
        """
        self._flush()
        self._copies.expect(samples, first_tree)

    def sample(self, seed: int, round: int, subsample: float | None) -> int:
        """As the core's; the number of rows stays on the device, so that of all rows is
        returned.
        """
        if any(self._pending):
            self._flush()
        self._changed()
        self._last["sample"], self._copy = (own := (seed, round, subsample)), 0
        if self._copies.next_is(own):
            self._last["waits"] = own
        else:
            self._last.pop("waits", None)
            self._draw([own])
        return int(self._n)

    def _draw(self, samples: Sequence[Sample]) -> None:
        """Draw the samples of copies that grow side by side; all of them take all rows,
        or none does.
        """
        job, turn, subsample = self._job, self._turn, samples[0][2]
        reweights = self._last.get("reweights", False)
        takes_all = subsample is None or (
            not reweights and subsample >= 1.0 and self._last["sampler"][2] is None
        )
        self._last["reweighted"] = reweights and not takes_all
        zeros = self._last.get("zeros", False)
        job["all_rows"], job["draws"], job["n_copies"] = (
            takes_all and not zeros,
            not takes_all,
            len(samples),
        )
        if job["all_rows"] and len(samples) == 1:
            return
        job["subsample"] = 1.0 if subsample is None else subsample
        for place, (seed, round, _) in enumerate(samples):
            turn["sample_key"][place], turn["tie_key"][place] = (
                key(seed, ROWS, round, what) for what in (0, 1)
            )
        if not job["all_rows"]:
            self._make_samples(len(samples))
        by_norm = self._last["sampler"][0] in ("goss", "mvs")
        n = len(samples)

        def work() -> None:
            self._launch("forget_sample")
            if job["all_rows"]:
                return
            passes = [
                (digit, ties) for ties in (False, True) for digit in range(3) if by_norm
            ]
            for digit, ties in passes if self._last["reweighted"] else ():
                self._launch("count_norms", digit, ties, n_beside=n)
                self._launch("choose_norm", digit, ties, n_beside=n)
            self._launch("draw_rows", n_beside=n)
            for one in range(2 if self._last["reweighted"] else 0):
                self._launch("reweigh", one, n_beside=n)
            if self._last["reweighted"]:
                self._launch("end_reweigh")

        self._repeat("sample", work)

    def _make_samples(self, n_copies: int) -> None:
        """Memory for the samples of so many copies."""
        reweighted = bool(self._last["reweighted"])
        known = self._last.get("samples")
        wanted = n_copies, reweighted, reweighted and bool(self._job["search_pairs"])
        most = wanted if known is None else tuple(map(max, wanted, known))
        if most == known:
            return
        self._last["samples"] = most
        n = self._n
        n_copies = most[0]
        k = most[0] * self._n_outputs
        self._make("in_sample", (n_copies, n), np.uint8)
        self._make("sample", (n_copies, n), np.uint32)
        if most[1]:
            self._make_records("sampling", n_copies, "Sampling")
            self._make_records("reweighted", k, "Output")
            self._make("norms", n, np.uint32)
            self._make("digits", (n_copies, 2048, 2), np.int64)
            self._make("factor", (n_copies, n), np.float64)
            self._make("reweighted_packed", (k, n), np.int32)
            self._make("reweighted_leaf", (k, n, 2), np.int32)
        if most[2]:
            self._make("reweighted_search", (k, n, 2), np.int32)

    def copy_settings(self, other: "Trainer") -> None:
        other.runtime.wait()
        for name in ("direction", "forced", "feature_weight"):
            self._keep(name, other._arrays.get(name))
        self._job["cosine"] = other._job["cosine"]
        self._job["extra_trees"], self._last["onehot"] = (
            other._job["extra_trees"],
            other._last["onehot"],
        )
        self.set_sampler(*other._last["sampler"][:2])

    # ---- The tree last grown ---------------------------------------------------------

    def _leaf_nodes(self, output: int) -> Ints | None:
        """The node of each leaf, or None where rows have leaf ids themselves."""
        if self._numbers[output] is not None:
            return None
        return np.flatnonzero(self._last["tree", output]["left"] == 0).astype(np.int32)

    def leaf_ids(self, output: int) -> Ints:
        ids = self.runtime.get(self._arrays["leaf"][self._place(output)]).astype(
            np.int32
        )
        nodes = self._leaf_nodes(output)
        if nodes is None:
            return ids
        number = np.zeros(int(self._job["max_nodes"]), np.int32)
        number[nodes] = np.arange(len(nodes), dtype=np.int32)
        return number[ids]

    def set_leaf_ids(self, output: int, leaf_id: Ints, n_leaves: int) -> None:
        self._flush()
        self.runtime.put(
            self._arrays["leaf"][self._place(output)], leaf_id.astype(np.uint16)
        )
        self._numbers[output] = np.arange(n_leaves, dtype=np.int32)
        self._new_leaves([output])
        if n_leaves > self._job["max_nodes"]:  # no tree has grown here, or smaller ones
            self._job["max_nodes"], self._shape = n_leaves, ()
            self._make(
                "node_value", (self._n_beside * self._n_outputs, n_leaves), np.float64
            )

    def relabel_leaves(self, output: int, new_id: Ints | None, value: Floats) -> None:
        if new_id is not None:
            self.set_leaf_ids(output, new_id[self.leaf_ids(output)], len(value))
        nodes = self._leaf_nodes(output)
        self._last["values", output] = value
        values = np.zeros(int(self._job["max_nodes"]))
        values[np.arange(len(value)) if nodes is None else nodes] = value
        self.runtime.put(self._arrays["node_value"][self._place(output)], values)

    def add_later(self, output: int) -> None:
        """Add the output's tree to scores of their own, which `take_later` puts in the
        place of those of now.
        """
        if self._arrays.get("later") is None:
            self._arrays["later"] = self.runtime.zeros(
                (self._n_outputs, self._n), np.float64
            )
        if not self._last.get("adds_later"):
            self._flush()
            self.runtime.copy(self._arrays["later"], self._arrays["score"])
        self._last["adds_later"], kept = True, int(self._job["score"])
        if self._lines[output] is not None:
            return self._add_lines(output, self._arrays["later"])
        self._job["score"] = self.runtime.address(self._arrays["later"])
        self._launch("add_values", output, self._place(output))
        self._job["score"] = kept

    def take_later(self) -> None:
        """Go on with the scores that `add_later` has made."""
        self._forget_values()
        self._last["adds_later"] = False
        self.runtime.copy(self._arrays["score"], self._arrays["later"])

    def _n_leaves(self, output: int) -> int:
        numbers = self._numbers[output]
        return len(
            np.flatnonzero(self._last["tree", output]["left"] == 0)
            if numbers is None
            else numbers
        )

    def add_scores(self, output: int) -> None:
        self._copies.forget()
        if self._lines[output] is None:
            self._pending[output] = True
        else:
            self._changed()
            self._add_lines(output, self._arrays["score"])
