"""Evaluation rows in device memory: their scores, and metrics that are means over rows,
or `auc`.

In: new trees, names of metrics. Out: the metrics, with the bits of
`metric/functions.py`; only sums are copied to the host. None where a metric is another
one, or where something is not finite: the host says what.
"""

from collections.abc import Mapping, Sequence
from math import frexp, ldexp, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood.device.cuda.binned import Binned
from sapwood.device.cuda.forest import BY_SET
from sapwood.device.cuda.job import links, record
from sapwood.device.cuda.runtime import Runtime

Floats = NDArray[np.float64]
# metrics: name, and its parameter by name
Asked = Sequence[tuple[str, Mapping[str, Any]]]
KINDS = (
    "absolute",
    "squared",
    "scaled",
    "cost_of_two",
    "cost_of_many",
    "cost_between",
    "miss",
    "hit",
    "pinball",
    "poisson",
    "gamma",
)
OF_RANKS = "ranks"
BY_NAME = {
    "mae": "absolute",
    "mse": "squared",
    "rmse": "scaled",
    "error": "miss",
    "accuracy": "hit",
    "pinball": "pinball",
    "poisson": "poisson",
    "gamma": "gamma",
    "brier": "squared",
    "auc": OF_RANKS,
}
DEVIANCES = ("poisson", "gamma")


class Measured:
    """Labels and weights of evaluation rows in device memory."""

    def __init__(self, runtime: Runtime, label: Floats, weight: Floats | None) -> None:
        self.runtime = runtime
        self.n_rows = len(label)
        self._label, self._classes = label, bool(np.isin(label, (0.0, 1.0)).all())
        self._total = float(self.n_rows) if weight is None else _core.weight_sum(weight)
        self.arrays = {"label": runtime.array(np.ascontiguousarray(label, np.float64))}
        if weight is not None:
            count, whole, _ = _core.integer_weights(weight)
            self.arrays["repeats"] = runtime.array(count)
            if not whole:
                self.arrays["real"] = runtime.array(
                    np.ascontiguousarray(weight, np.float64)
                )
        self.arrays["added"] = runtime.zeros(self.n_rows, np.float64)
        self._weight = weight
        self._classified: list[Any] = []
        self._pairs = 0.0  # of rows of two classes, by weight

    def _by_class(self) -> list[Any]:
        """What rows count for, as integers, in class 1 and in class 0, as
        `metric/functions.py` has them.
        """
        if not self._classified:
            given = np.ones(self.n_rows) if self._weight is None else self._weight
            whole = np.rint(np.ldexp(given, 61 - frexp(self._total)[1])).astype(
                np.int64
            )
            each = [
                np.where(self._label > 0, whole, 0),
                np.where(self._label > 0, 0, whole),
            ]
            self._pairs = float(each[0].sum()) * float(each[1].sum())
            self._classified = [self.runtime.array(one) for one in each]
        return self._classified

    def kind(self, name: str, n_outputs: int) -> str | None:
        """What rows add to a metric; None where it is no mean, or where labels do not
        suit it.
        """
        if name in ("logloss", "multi_logloss") and n_outputs == 1:
            return "cost_of_two" if self._classes else "cost_between"
        if name in ("logloss", "multi_logloss"):
            return (
                "cost_of_many"
                if np.isin(self._label, np.arange(n_outputs)).all()
                else None
            )
        found = BY_NAME.get(name)
        if n_outputs > 1:
            return found if found in ("miss", "hit") else None
        suits = {
            "miss": self._classes,
            "hit": self._classes,
            "poisson": (self._label >= 0).all(),
        }
        suits[OF_RANKS] = (
            self._classes
            and self._total > 0.0
            and bool(self._by_class())
            and self._pairs > 0.0
        )
        return (
            found
            if suits.get(found or "", found != "gamma" or (self._label > 0).all())
            else None
        )

    def __call__(
        self,
        asked: Asked,
        link: str,
        score: Any,
        n_outputs: int,
        plane: int,
        rows: Any = None,
    ) -> list[float] | None:
        """The metrics of rows whose scores (n_outputs, plane) are in device memory."""
        kinds = [self.kind(name, n_outputs) for name, _ in asked]
        if (
            None in kinds
            or link not in links()
            or not self.n_rows
            or self._total == 0.0
        ):
            return None
        run, job = self.runtime, np.zeros((), record("MetricJob"))
        if "prediction" not in self.arrays:
            self.arrays["prediction"] = run.zeros((self.n_rows, n_outputs), np.float64)
        results = run.zeros(len(asked) * record("MetricResult").itemsize, np.uint8)
        given = [float(next(iter(more.values()), 0.5)) for _, more in asked]
        places = {**{kind: at for at, kind in enumerate(KINDS)}, OF_RANKS: -1}
        numbers = run.array(np.array([places[str(kind)] for kind in kinds], np.int32))
        parameters = run.array(np.array(given, np.float64))
        job["n_rows"], job["n_outputs"], job["plane"], job["score"] = (
            self.n_rows,
            n_outputs,
            plane,
            run.address(score),
        )
        job["rows"] = 0 if rows is None else run.address(rows)
        job["link"], job["not_negative"] = (
            links().index(link),
            any(kind in DEVIANCES for kind in kinds),
        )
        job["kinds"], job["parameters"], job["results"] = map(
            run.address, (numbers, parameters, results)
        )
        for name, one in self.arrays.items():
            job[name] = run.address(one)
        raw_job = np.ndarray((), f"V{job.nbytes}", job)

        def launch(kernel: str, a: int = 0, b: int = 0) -> None:
            threads, each = run.settings[kernel]
            blocks = max(1, min(run.n_processors * each, -(-self.n_rows // threads)))
            run.launch(kernel, "", (blocks, 1), 0, raw_job, a, b)

        launch("predict_rows_there")
        ranked = (
            run.ranked(self.arrays["prediction"][:, 0], *self._by_class())
            if OF_RANKS in kinds
            else []
        )
        for name, one in zip(("ranked", "ones", "zeros"), ranked, strict=False):
            job[name] = run.address(one)
        for at, kind in enumerate(kinds):
            for one in range(0 if kind == "scaled" else 1, 3):
                launch("measure_rows", at, one)
        found = run.get(results).view(record("MetricResult"))
        tiny = (found["range"] > 0) & (found["range"] < 1 << 52)
        if found["bad"].any() or tiny.any():
            return None
        return [
            self._value(str(kind), one) for kind, one in zip(kinds, found, strict=True)
        ]

    def _value(self, kind: str, result: Any) -> float:
        top = float(result["top"].view(np.float64))
        exponent = max(-960, frexp(top)[1] - (frexp(top)[0] == 0.5)) if top else 0
        total = float((int(result["high"]) << 32) + int(result["low"]))
        total = total / ldexp(1.0, 62 - exponent)
        if kind == OF_RANKS:
            return total / (2 * self._pairs)
        mean = total / self._total
        if kind == "scaled":
            return ldexp(
                1.0, frexp(float(result["range"].view(np.float64)))[1] - 1
            ) * sqrt(mean)
        return 2.0 * mean if kind in DEVIANCES else mean


class EvalScores:
    """The scores of a validation set, (n_outputs, n_rows), to which trees over its
    codes are added.
    """

    runtime: Runtime

    def __init__(
        self, binned: Binned, scores: Floats, label: Floats, weight: Floats | None
    ) -> None:
        self._binned = binned
        self._shape = scores.shape
        self._scores = self.runtime.array(scores)
        self._measured = Measured(self.runtime, label, weight)

    def get(self) -> Floats:
        return self.runtime.get(self._scores)

    def put(self, scores: Floats) -> None:
        self.runtime.put(
            self._scores, np.ascontiguousarray(scores, np.float64).reshape(self._shape)
        )

    def measure(self, asked: Asked, link: str) -> list[float] | None:
        return self._measured(asked, link, self._scores, *self._shape)

    def add(self, tree: Mapping[str, Any], output: int) -> None:
        """Add a tree of constant leaves over the columns of the table."""
        run, job, (column, inner) = (
            self.runtime,
            np.zeros((), record("MetricJob")),
            (tree["column"], tree["left"] > 0),
        )
        bins = np.array([*self._binned.n_bins, 0])
        number = tree["set"]
        nodes = np.zeros(len(column), record("WalkNode"))
        by_set = inner & (number >= 0)
        low = tree["bin"] + 1
        nodes["left"], nodes["column"] = (
            tree["left"],
            np.where(inner, column, 0) | np.where(by_set, BY_SET, 0),
        )
        nodes["low"] = np.where(by_set, number, np.where(inner, low, 0))
        nodes["length"] = np.where(
            inner & ~by_set, bins[column] + ((tree["missing_left"] & 1) == 0) - low, 0
        )
        sets = self._sets(tree, np.flatnonzero(by_set), nodes)
        kept = [
            run.array(one)
            for one in (
                nodes.view(np.uint8),
                np.asarray(tree["value"], np.float64),
                sets,
            )
        ]
        job["nodes"], job["values"], job["sets"] = map(run.address, kept)
        job["n_rows"] = job["plane"] = self._shape[1]
        job["score"], job["planes"] = (
            run.address(self._scores),
            run.address(self._binned.planes),
        )
        raw_job = np.ndarray((), f"V{job.nbytes}", job).copy()
        run.launch(
            "add_tree",
            "",
            (-(-self._shape[1] // run.settings["add_tree"][0]), 1),
            0,
            raw_job,
            output,
            0,
        )

    def _sets(
        self, tree: Mapping[str, Any], here: NDArray[Any], nodes: Any
    ) -> NDArray[np.uint64]:
        """A bit a code for every split by a set: those that go right; the nodes get
        their numbers.
        """
        offset = tree["set_offset"]
        codes = tree["set_code"]
        right = np.ones((len(here) + 1, 256), np.uint8)
        for at, node in enumerate(here):
            own = tree["set"][node]
            right[at, codes[offset[own] : offset[own + 1]]] = 0
            right[at, self._binned.n_bins[tree["column"][node]]] = (
                not tree["missing_left"][node] & 1
            )
            nodes["low"][node] = at
        return np.packbits(right, axis=1, bitorder="little").view(np.uint64)
