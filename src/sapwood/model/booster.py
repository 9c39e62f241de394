"""A trained model: frozen trees and what it takes to read them.

In: any table. Out: predictions, leaves, importances; the model itself as text, frame or bytes.
"""

import hashlib
import math
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import ingest
from sapwood.device import cpu
from sapwood.errors import DataError, ModelFormatError, ParameterError, suggest
from sapwood.model import text
from sapwood.model.trees import Trees

PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
FEW_ROWS = 256  # below, one thread: the work is over before a second one has woken up

Rounds = int | tuple[int, int] | None

# kind -> the measure summed over the splits on a column (None counts them), and whether to take the average
IMPORTANCES: dict[str, tuple[str | None, bool]] = {
    "gain": ("gain", True),
    "total_gain": ("gain", False),
    "weight": (None, False),
    "split": (None, False),
    "frequency": (None, False),
    "cover": ("cover", True),
    "total_cover": ("cover", False),
}


@dataclass(frozen=True, eq=False, repr=False)
class Booster:
    """A trained model, frozen: what `sapwood.train` returns and `sapwood.load` reads.

    Parameters
    ----------
    trees : Trees
        One tree per output and round, round by round.
    base : (n_outputs,) float64
        Raw score before the first tree.
    objective : str
        Name of the objective.
    fields : mapping of str to float
        The objective's own parameters.
    link : str
        From raw scores to predictions: ``identity``, ``sigmoid`` or ``softmax``.
    feature_names : sequence of str
        Name of every column, in training order.
    named : bool
        Whether the training table brought these names, so that tables to predict are matched by name.
    params : mapping
        The training parameters that can change predictions.
    classes : ndarray or None
        The classes of a classifier: two for one output, else one per output.
    best_round : int or None
        How many rounds early stopping kept, those up to the best validation score; None without early stopping.
    data_fingerprint : str
        Digest of the training data.
    history : mapping
        Metrics by round, for information: no part of the model file.
    """

    trees: Trees
    _: KW_ONLY
    base: NDArray[np.float64]
    objective: str
    fields: Mapping[str, float]
    link: str
    feature_names: Sequence[str]
    named: bool
    params: Mapping[str, Any]
    classes: NDArray[Any] | None = None
    best_round: int | None = None
    data_fingerprint: str = ""
    history: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frozen = {
            "base": np.array(self.base, np.float64),
            "feature_names": tuple(self.feature_names),
            "fields": MappingProxyType(dict(self.fields)),
            "params": MappingProxyType(dict(self.params)),
            "classes": None if self.classes is None else np.array(self.classes),
        }
        for name, value in frozen.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        _validate(self)

    @property
    def n_columns(self) -> int:
        """Columns of a table to predict."""
        return len(self.feature_names)

    @property
    def n_outputs(self) -> int:
        """Scores of a row: 1, or the number of classes when there are more than two."""
        return len(self.base)

    @property
    def n_rounds(self) -> int:
        """Rounds of boosting; each has `n_outputs` trees."""
        return self.trees.n_trees // self.n_outputs

    def __repr__(self) -> str:
        return (
            f"<sapwood.Booster: {self.objective}, {self.n_rounds} rounds, {self.trees.n_trees} trees, "
            f"{self.n_columns} columns, {self.n_outputs} outputs>"
        )

    def predict(
        self,
        X: Any,
        *,
        raw: bool = False,
        rounds: Rounds = None,
        init_score: Any = None,
        n_jobs: int | None = None,
    ) -> NDArray[np.float64]:
        """Predict every row of a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A named table is matched by name, in any order, if the training table had names; anything else by position.
        raw : bool
            Return raw scores (log-odds, say) instead of predictions.
        rounds : int, (int, int) or None
            The first so many rounds, the rounds ``first .. last - 1``, or all. The base score is always included.
        init_score : (n_rows,) or (n_rows, n_outputs), optional
            Raw scores to start from, in place of the base score.
        n_jobs : int, optional
            Threads; all available ones by default.

        Returns
        -------
        (n_rows,) float64, or (n_rows, n_outputs) with several outputs
            Values, probabilities of the second class, or probabilities of every class.
        """
        # A single row must take microseconds: a plain array of floats goes straight to the core.
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in PLAIN
            and 0 < X.shape[0] < FEW_ROWS
            and X.shape[1] == len(self.feature_names)
            and X.flags.aligned
            and rounds is init_score is None
            and (n_jobs is None or cpu.threads(n_jobs))  # a wrong number raises though one thread will do
        ):
            return self._forest.predict(X, 0, -1, raw)
        columns = self._read(X)
        first, last = self._trees_of(rounds)
        start = None if init_score is None else self._start(init_score, columns.n_rows)
        return self._forest.predict(columns.table, first, last, raw, start, cpu.threads(n_jobs))

    def predict_leaves(self, X: Any, *, rounds: Rounds = None, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Find the leaf of every row in every tree.

        Parameters
        ----------
        X, rounds, n_jobs
            As in `predict`.

        Returns
        -------
        (n_rows, n_trees) int32
            Ids of nodes, as in `to_frame`; trees in the order of training.
        """
        columns = self._read(X)
        return self._forest.leaves(columns.table, *self._trees_of(rounds), cpu.threads(n_jobs))

    def staged_predict(
        self,
        X: Any,
        *,
        raw: bool = False,
        init_score: Any = None,
        n_jobs: int | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Predict after the first round, the second, and so on; each round is computed once.

        Parameters
        ----------
        X, raw, init_score, n_jobs
            As in `predict`.

        Yields
        ------
        (n_rows,) or (n_rows, n_outputs) float64
            The same bits as ``predict(X, rounds=1)``, ``predict(X, rounds=2)``, ...
        """
        columns = self._read(X)  # here, not in the generator: bad input raises at the call
        start = self._start(init_score, columns.n_rows)
        n_threads = cpu.threads(n_jobs)

        def stages(scores: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
            shape = (-1,) if self.n_outputs == 1 else (-1, self.n_outputs)
            for first in range(0, self.trees.n_trees, self.n_outputs):
                flat = self._forest.predict(columns.table, first, first + self.n_outputs, True, scores, n_threads)
                scores = flat.reshape(-1, self.n_outputs)
                yield (scores.copy() if raw else cpu.link(self.link, scores, n_threads)).reshape(shape)

        return stages(start)

    def importance(self, kind: str = "gain", *, normalize: bool = False) -> NDArray[np.float64]:
        """Measure how much each column was used.

        Parameters
        ----------
        kind : str
            ``gain`` and ``cover``: average over the splits on a column; ``total_gain`` and ``total_cover``: their sum;
            ``weight``, also called ``split`` or ``frequency``: the number of splits.
        normalize : bool
            Divide by the sum over all columns.

        Returns
        -------
        (n_columns,) float64
            0 for a column without a split.
        """
        if kind not in IMPORTANCES:
            raise ParameterError(f"importance kind {kind!r} is unknown; {suggest(str(kind), IMPORTANCES)}")
        measure, averaged = IMPORTANCES[kind]
        splits = self.trees.column >= 0
        column = self.trees.column[splits]
        measured = None if measure is None else getattr(self.trees, measure)[splits]
        # bincount adds in the order of the nodes: the same bits everywhere
        result = np.bincount(column, measured, self.n_columns).astype(np.float64)
        if averaged:
            result /= np.maximum(np.bincount(column, minlength=self.n_columns), 1)
        return result / (result.sum() or 1.0) if normalize else result

    def to_text(self, tree: int | None = None) -> str:
        """Show one tree, or all, as indented text; the branch of rows that fulfil a condition comes first."""
        if tree is not None and not 0 <= tree < self.trees.n_trees:
            raise ParameterError(f"tree={tree} does not exist; choose 0..{self.trees.n_trees - 1}, or None for all.")
        which = range(self.trees.n_trees) if tree is None else [tree]
        return "\n".join(text.tree_text(self.trees, index, self.n_outputs, self.feature_names) for index in which)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return every node as a row of a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}
            The library to make the frame with.

        Returns
        -------
        data frame
            Columns tree, round, output, node, depth, feature, threshold, missing ("left" or "right"), left, right,
            value, gain, cover, count. Leaves have no feature and missing (None), no threshold and gain (NaN), and
            children -1; splits have no value (NaN).
        """
        return text.frame(self.trees, self.n_outputs, self.feature_names, backend)

    def fingerprint(self) -> str:
        """SHA-256 of `to_bytes`, in hex: equal for equal models, on any machine."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the content of the model file, the same bytes for the same model."""
        from sapwood.model import io  # io makes boosters, so it comes after this module

        return io.encode(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: whole or not at all, leaving what was there before if anything fails."""
        from sapwood.model import io

        io.save(self, path)

    def __reduce__(self) -> tuple[Callable[..., "Booster"], tuple[Any, ...]]:
        from sapwood.model import io

        return io.decode, (self.to_bytes(), dict(self.history))

    @cached_property
    def _forest(self) -> cpu.Forest:
        """The trees as the core predicts with them."""
        t = self.trees
        return cpu.Forest(
            self.n_columns,
            t.offset,
            t.output,
            t.column,
            t.threshold,
            t.missing_left,
            t.left,
            t.value,
            self.base,
            self.link,
        )

    def _read(self, X: Any) -> ingest.Columns:
        """The columns of a table, in the order of training."""
        return ingest.align(ingest.read(X), self.feature_names if self.named else None, self.n_columns)

    def _trees_of(self, rounds: Rounds) -> tuple[int, int]:
        """First tree and end of a range of rounds."""
        try:
            pair = (0, self.n_rounds) if rounds is None else rounds if isinstance(rounds, tuple) else (0, rounds)
            first, last = map(operator.index, pair)
        except (TypeError, ValueError):
            raise ParameterError(f"rounds={rounds!r} is no range of rounds; give n, (first, last) or None.") from None
        if not 0 <= first <= last <= self.n_rounds:
            raise ParameterError(f"rounds={rounds!r} is out of range; the model has {self.n_rounds} rounds.")
        return first * self.n_outputs, last * self.n_outputs

    def _start(self, init_score: Any, n_rows: int) -> NDArray[np.float64]:
        """Scores before the first tree, (n_rows, n_outputs): those given, or the base."""
        scores = ingest.init_score(init_score, n_rows)
        if scores is None:
            return np.tile(self.base, (n_rows, 1))
        if scores.shape[1] != self.n_outputs:
            raise DataError(f"init_score has {scores.shape[1]} columns; the model has {self.n_outputs} outputs.")
        return scores


def _validate(booster: Booster) -> None:
    """Raise unless the parts of a model fit together; whoever made it, nothing is used before this has passed."""
    known = cpu.objectives()
    if booster.objective not in known:
        raise ModelFormatError(f"objective {booster.objective!r} is unknown; {suggest(booster.objective, known)}")
    about = known[booster.objective]
    if booster.link != about["link"]:
        raise ModelFormatError(f"objective {booster.objective} has link {about['link']}, not {booster.link!r}.")
    if set(booster.fields) != set(about["fields"]) or not all(map(math.isfinite, booster.fields.values())):
        raise ModelFormatError(
            f"fields {dict(booster.fields)} are not the finite {list(about['fields'])} of the objective."
        )
    if not booster.feature_names or len(set(booster.feature_names)) < booster.n_columns:
        raise ModelFormatError("feature_names must be one different name for each of at least one column.")
    if booster.base.ndim != 1 or not booster.n_outputs or not np.isfinite(booster.base).all():
        raise ModelFormatError(f"base must be one finite score for each output; it is {booster.base}.")
    if booster.link != "identity" and (booster.link == "softmax") != (booster.n_outputs > 1):
        raise ModelFormatError(f"link {booster.link} does not fit {booster.n_outputs} outputs.")
    booster.trees.validate(booster.n_columns, booster.n_outputs)
    if booster.best_round is not None and not 0 <= booster.best_round <= booster.n_rounds:
        raise ModelFormatError(f"best_round={booster.best_round} is beyond the {booster.n_rounds} rounds of the model.")
    if booster.classes is not None:
        n_classes = max(booster.n_outputs, 2)
        fit = booster.classes.shape == (n_classes,) and len(set(booster.classes.tolist())) == n_classes
        if booster.link == "identity" or not fit:
            raise ModelFormatError(f"{booster.objective} has {n_classes} different classes, not {booster.classes}.")
