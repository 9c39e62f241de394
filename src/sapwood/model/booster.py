"""A trained model: frozen trees and what it takes to read them.

In: any table. Out: predictions, stage by stage if need be, and leaves; the model itself
as bytes.
"""

from __future__ import annotations

import hashlib
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sapwood.data import derived, ingest
from sapwood.data.categories import Dictionary, known
from sapwood.data.crosses import NONE, Crosses
from sapwood.data.deferred import Deferred
from sapwood.data.derived import Plan
from sapwood.data.ingest.few_rows import FewRows
from sapwood.data.sparse import no_zeros
from sapwood.device import Device, Explainer, Forest, arrays, elementary, get, host
from sapwood.device.threads import threads
from sapwood.errors import DataError, ObjectiveError, ParameterError
from sapwood.model import constraint_proof, quantiles, text
from sapwood.model.combinations import Combinations, Labelled
from sapwood.model.consistency import CUSTOM, check_model
from sapwood.model.explain import dependence
from sapwood.model.explain import importance as importances
from sapwood.model.explain import influence as influences
from sapwood.model.explain import shapley as explaining
from sapwood.model.peer_names import PeerNames
from sapwood.model.trees import Trees
from sapwood.params import peers
from sapwood.printable import printable
from sapwood.system import kinds, writing

PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
# with fewer rows one thread is done before a second one has woken up
MIN_PARALLEL_ROWS = 256

Floats = NDArray[np.float64]
# raw scores (n_rows,) or (n_rows, n_outputs) -> predictions, one a row
Link = Callable[[Floats], Floats]
Rounds = int | tuple[int, int] | None
BASE_LAST = "base_last"  # among the params of a model


@dataclass(frozen=True, eq=False, repr=False)
class Booster(PeerNames):
    """A trained model, frozen: what `sapwood.train` returns and `sapwood.load` reads.

    Parameters
    ----------
    trees : Trees
        Round by round, one tree for every output, and so for each of
        `n_parallel_trees`.
    base : (n_outputs,) float64
        Raw score before the first tree.
    objective : str
        Name of the objective: one of the core's, or what a user calls their own.
    fields : mapping of str to float or list of float
        The objective's own parameters; a list has a level for each output.
    link : str
        From raw scores to predictions: the core's name of it, or ``custom`` where
        `transform` does that.
    feature_names : sequence of str
        Name of every column, in training order.
    named : bool
        Whether the training table brought these names, so that tables to predict are
        matched by name.
    params : mapping
        The training parameters that can change predictions.
    categories : mapping of int to Dictionary
        The values of every column of categories, by its position.
    times : tuple of TimeColumn
        The columns of dates and times of a table, and which parts of the calendar they
        get; these are the last of `feature_names`.
    crosses : Crosses
        Columns of numbers that are computed from others before the trees are evaluated;
        they follow those of a table.
    combinations : Combinations
        Columns of categories that are computed from these; they come last.
    classes : ndarray or None
        The classes of a classifier: two for one output, else one per output; one where
        all rows were of one class.
    best_round : int or None
        How many rounds early stopping kept, those up to the best validation score; None
        without early stopping.
    data_fingerprint : str
        Digest of the training data.
    history : mapping
        Metrics by round, for information: not part of the model file.
    chosen : Chosen or None
        What an automatic fit has tried and decided, for information: not part of the
        model file.
    device : Device
        Where predictions and explanations are computed. Not part of the model file.
    transform : callable or None
        The link of a custom objective, from raw scores to predictions. Code is not part
        of the model file: see `with_link`.
    """

    trees: Trees
    _: KW_ONLY
    base: Floats
    objective: str
    fields: Mapping[str, float | list[float]]
    link: str
    feature_names: Sequence[str]
    named: bool
    params: Mapping[str, Any]
    categories: Mapping[int, Dictionary] = field(default_factory=dict)
    times: Plan = ()
    crosses: Crosses = field(default_factory=lambda: NONE)
    combinations: Combinations = field(default_factory=lambda: Combinations.of([]))
    classes: NDArray[Any] | None = None
    best_round: int | None = None
    data_fingerprint: str = ""
    history: Mapping[str, Any] = field(default_factory=dict)
    chosen: Any = None
    device: Device = field(default_factory=get)
    transform: Link | None = None

    def __post_init__(self) -> None:
        frozen = {
            "base": np.array(self.base, np.float64),
            "feature_names": tuple(self.feature_names),
            "fields": MappingProxyType(dict(self.fields)),
            "params": MappingProxyType(dict(self.params)),
            "categories": MappingProxyType(dict(self.categories)),
            "classes": None if self.classes is None else np.array(self.classes),
        }
        for name, value in frozen.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        check_model(self)

    @property
    def n_columns(self) -> int:
        """Columns of numbers and categories: those of a table to predict, and the parts
        of its dates and times.
        """
        return len(self.feature_names)

    @property
    def n_given(self) -> int:
        """Columns of a table to predict."""
        return self.n_columns - derived.n_parts(self.times)

    @property
    def internal_names(self) -> tuple[str, ...]:
        """Names of all columns that trees split: those of a table, crosses, and
        combinations of these.
        """
        names = (*self.feature_names, *self.crosses.names(self.feature_names))
        return (*names, *self.combinations.names(names, self.categories))

    @property
    def n_numbered(self) -> int:
        """Columns of a table and crosses; those of combinations follow."""
        return self.n_columns + len(self.crosses)

    @property
    def n_internal(self) -> int:
        """All columns that trees split."""
        return self.n_numbered + len(self.combinations)

    @cached_property
    def shares(self) -> Floats:
        """How what is said of all columns that trees split is divided among those of a
        table.

        (n_internal, n_columns): the part of a cross or of a combination goes to its
        columns in equal shares.
        """
        shares = self.combinations.shares(self.n_numbered)
        return (
            elementary.matmul(shares, self.crosses.shares(self.n_columns))
            if len(self.crosses)
            else shares
        )

    @property
    def n_outputs(self) -> int:
        """Scores of a row: 1, or one for each target or class where there are
        several.
        """
        return len(self.base)

    @property
    def n_rounds(self) -> int:
        """Rounds of boosting; each has `n_parallel_trees` trees for every output."""
        return self.trees.n_trees // self._per_round

    @property
    def n_parallel_trees(self) -> int:
        """Trees for each output and round."""
        return int(self.params.get("n_parallel_trees", 1))

    @property
    def averaged(self) -> bool:
        """Whether the model is a forest: what its rounds add is divided by their
        number.
        """
        return self.params.get("boosting") == "forest"

    @property
    def base_last(self) -> bool:
        """Whether the base is added after the trees: scores near it would lose their
        digits, so far from 0 it is.
        """
        return self.params.get(BASE_LAST) is True

    @property
    def _trees_first(self) -> bool:
        """Whether scores are the sum of the trees, which begins at 0, and then more."""
        return self.averaged or self.base_last

    @property
    def linear(self) -> bool:
        """Whether some leaves are linear in the columns of their branch."""
        return self.trees.linear is not None

    @property
    def zero_as_missing(self) -> bool:
        """Whether zeros are missing values, in tables to predict too."""
        return bool(self.params.get("zero_as_missing", False))

    def __repr__(self) -> str:
        return (
            f"<sapwood.Booster: {printable(self.objective)}, {self.n_rounds} rounds, {self.trees.n_trees} trees, "
            f"{self.n_columns} columns, {self.n_outputs} outputs>"
        )

    def __getattr__(self, name: str) -> Any:
        hint = f"; use {peers.ATTRIBUTES[name]}." if name in peers.ATTRIBUTES else ""
        raise AttributeError(f"a Booster has no {name!r}{hint}", name=name, obj=self)

    def predict(
        self,
        X: Any,
        *,
        raw: bool = False,
        rounds: Rounds = None,
        init_score: Any = None,
        n_jobs: int | None = None,
        **more: Any,
    ) -> Floats:
        """Predict every row of a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A named table is matched by name, in any order, if the training table had
            names; anything else by position. Categories are matched by value; those
            that training did not see count as missing, except in splits by statistics
            (docs/categories.md).
        raw : bool
            Return raw scores (log-odds, say) instead of predictions.
        rounds : int, (int, int) or None
            The first so many rounds, the rounds ``first .. last - 1``, or all. The base
            score is always included.
        init_score : (n_rows,) or (n_rows, n_outputs), optional
            Raw scores to start from, in place of the base score. A model that was
            trained on an ``init_score`` needs that of these rows: it does not know of
            it, and without it predicts what its trees add to 0.
        n_jobs : int, optional
            Threads; all available ones by default.
        **more
            The peers' arguments: ``raw_score``, ``output_margin``, ``num_iteration``,
            ``iteration_range``, ``pred_leaf``, ``pred_contrib`` and so on.

        Returns
        -------
        (n_rows,) float64, or (n_rows, n_outputs) with several outputs
            Values, probabilities of the second class, or probabilities of every class
            or label.
        """
        if isinstance(X, Deferred):
            init_score = X.init_score if init_score is None else init_score
            return self.predict(
                X.data,
                raw=raw,
                rounds=rounds,
                init_score=init_score,
                n_jobs=n_jobs,
                **more,
            )
        if more:
            as_peers: Floats = self._as_peers(X, raw, rounds, init_score, n_jobs, more)
            return as_peers
        if self.link == CUSTOM and not raw:
            link = self._link()
            return link(
                self.predict(
                    X, raw=True, rounds=rounds, init_score=init_score, n_jobs=n_jobs
                )
            )
        if hasattr(X, "__cuda_array_interface__") or arrays.by_dlpack(X):
            return cast(
                Floats, self._predict_there(X, raw, rounds, init_score, threads(n_jobs))
            )
        # A single row must take microseconds: a plain array of floats goes straight to
        # the core.
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in PLAIN
            and 0 < X.shape[0] < MIN_PARALLEL_ROWS
            and X.shape[1] == len(self.feature_names)
            and X.flags.aligned
            and rounds is init_score is None
            and self._direct
            and (n_jobs is None or threads(n_jobs))  # an invalid n_jobs raises here too
        ):
            return self._predict_few(X, raw)
        if rounds is init_score is n_jobs is None or (
            rounds is init_score is None and threads(n_jobs)
        ):
            few = self._few_rows
            if few is not None and (found := few.read(X)) is not None:
                return self._predict_few(found, raw)
        n_threads = threads(n_jobs)
        columns = self._whole(self._read(X, by_rows=True, min_rows=0), n_threads)
        first, last = self._trees_of(rounds)
        if self._trees_first:
            zeros = np.zeros((columns.n_rows, self.n_outputs))
            total = self._forest.predict(
                columns.table, first, last, True, zeros, n_threads
            )
            scores = self._mean(
                total, last - first, self._start(init_score, columns.n_rows)
            )
            return scores if raw else self._link(n_threads)(scores)
        start = None if init_score is None else self._start(init_score, columns.n_rows)
        return self._forest.predict(columns.table, first, last, raw, start, n_threads)

    def _predict_there(
        self, X: Any, raw: bool, rounds: Rounds, init_score: Any, n_threads: int
    ) -> Any:
        """Predictions of an array in the memory of a GPU, as an array there."""
        predict: Any = getattr(self._forest, "predict_array", None)
        floats = getattr(X, "ndim", 0) == 2 and str(X.dtype).split(".")[-1] in (
            "float32",
            "float64",
        )
        if predict is None or not floats or X.shape[1] != len(self.feature_names):
            raise DataError(
                f"X is in the memory of a GPU; there a model of device='cuda' predicts arrays of shape (n_rows, "
                f"{len(self.feature_names)}), float32 or float64. Copy X to the host, or use such a model."
            )
        init_score = arrays.to_host(init_score)
        if not self._direct:  # categories and zeros are looked at on the host
            here = self.predict(
                arrays.to_host(X),
                raw=raw,
                rounds=rounds,
                init_score=init_score,
                n_jobs=n_threads,
            )
            run = cast(Any, self._forest).runtime
            found = run.array(here)
            run.wait()  # other streams read it
            return found
        start = None if init_score is None else self._start(init_score, len(X))
        found = predict(X, *self._trees_of(rounds), raw, start, self.crosses.parts)
        if found is None:
            raise DataError(
                "X is in the memory of a GPU, where no tree has 65,536 nodes or more; copy X to the host."
            )
        return found

    def predict_leaves(
        self, X: Any, *, rounds: Rounds = None, n_jobs: int | None = None
    ) -> NDArray[np.int32]:
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
        columns = self._whole(self._read(X, by_rows=True, min_rows=0))
        return self._forest.leaves(
            columns.table, *self._trees_of(rounds), threads(n_jobs)
        )

    def staged_predict(
        self,
        X: Any,
        *,
        raw: bool = False,
        init_score: Any = None,
        n_jobs: int | None = None,
    ) -> Iterator[Floats]:
        """Predict after the first round, the second, and so on; each round is computed
        once.

        Parameters
        ----------
        X, raw, init_score, n_jobs
            As in `predict`.

        Yields
        ------
        (n_rows,) or (n_rows, n_outputs) float64
            The same bits as ``predict(X, rounds=1)``, ``predict(X, rounds=2)``, ...
        """
        # Here, not in the generator, so that bad input raises at the call.
        columns = self._whole(self._read(X, by_rows=True, min_rows=0))
        start = self._start(init_score, columns.n_rows)
        n_threads = threads(n_jobs)
        link = np.copy if raw else self._link(n_threads)

        def stages(scores: Floats) -> Iterator[Floats]:
            for first in range(0, self.trees.n_trees, self._per_round):
                last = first + self._per_round
                shaped = self._forest.predict(
                    columns.table, first, last, True, scores, n_threads
                )
                scores = shaped.reshape(-1, self.n_outputs)
                yield link(
                    self._mean(shaped, last, start) if self._trees_first else shaped
                )

        return stages(np.zeros_like(start) if self._trees_first else start)

    def with_link(self, transform: Link) -> Booster:
        """Give a model with a custom link the function back that its file could not
        hold.

        Parameters
        ----------
        transform : callable
            Takes raw scores, (n_rows,) or (n_rows, n_outputs), and returns predictions,
            one a row.

        Returns
        -------
        Booster
            The same model, which now predicts more than raw scores.
        """
        if self.link != CUSTOM:
            raise ParameterError(
                f"the model has the link {self.link!r} already; only a custom link can be given."
            )
        if not callable(transform):
            raise ParameterError(
                f"transform is a {type(transform).__name__}; give a function of raw scores."
            )
        return replace(self, transform=transform)

    # Methods that are functions of other modules, documented there.
    importance = importances.importance
    explain = explaining.explain
    why = explaining.why
    to_shap = explaining.to_shap
    partial_dependence = dependence.partial_dependence
    accumulated_effects = dependence.accumulated_effects
    influence = influences.influence
    check_constraints = constraint_proof.check_constraints
    check_quantiles = quantiles.check_quantiles
    to_text = text.to_text
    to_frame = text.to_frame
    _repr_html_ = text.to_html

    def fingerprint(self) -> str:
        """SHA-256 of `to_bytes`, in hex: equal for equal models, on any machine."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the content of the model file, the same bytes for the same model."""
        from sapwood.model import io  # io makes boosters, so it comes after this module

        return io.encode(self)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model file: whole or not at all, leaving what was there before if
        anything fails.

        Parameters
        ----------
        path : str or path-like
            The file, whose name ends in ``.sapwood`` as a rule.
        force : bool
            Replace a file that is no model, and take a name that ends as other kinds of
            files do.
        """
        kinds.check(path, kinds.MODEL, force=force)
        writing.write(path, self.to_bytes())

    def export(
        self, path: str | os.PathLike[str], *, force: bool = False, **options: Any
    ) -> None:
        """Write the model for other software; docs/convert.md says what each format can
        hold.

        Parameters
        ----------
        path : str or path-like
            Ending in ``.c``: C source that needs nothing else; ``.json``: a model of
            XGBoost; ``.onnx``: ONNX.
        force : bool
            Replace a file that Sapwood has not exported.
        **options
            For C, ``name``: what its functions begin with.
        """
        from sapwood.model.convert import export

        export.export(self, path, force=force, **options)

    def report(
        self, X: Any, y: Any, path: str | os.PathLike[str] | None = None, **more: Any
    ) -> str:
        """Make one HTML page about the model and rows it has not seen;
        `sapwood.report.report` has the arguments.
        """
        from sapwood.report import report

        return report(self, X, y, path, **more)

    def __reduce__(self) -> tuple[Callable[..., Booster], tuple[Any, ...]]:
        from sapwood.model import io

        return io.decode, (
            self.to_bytes(),
            dict(self.history),
            self.transform,
            self.chosen,
        )

    def __getstate__(self) -> dict[str, Any]:
        """What skops writes; pickle and copy go by `__reduce__`."""
        return {"model": self.to_bytes(), "history": dict(self.history)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        from sapwood.model import io

        vars(self).update(vars(io.decode(state["model"], state["history"])))

    @property
    def _per_round(self) -> int:
        """Trees of a round, those of all outputs."""
        return self.n_outputs * self.n_parallel_trees

    @property
    def _divisor(self) -> int:
        """What the sum over all trees is divided by: more than 1 in a forest alone."""
        return max(1, self.n_rounds) if self.averaged else 1

    @cached_property
    def _direct(self) -> bool:
        """Whether plain numbers can go to the core unchanged, and its result is the
        prediction.
        """
        return (
            not self._trees_first and not self.categories and not self.zero_as_missing
        )

    @cached_property
    def _few_rows(self) -> FewRows | None:
        """The reader of a few rows of a data frame; None where the model needs more
        than numbers and codes.
        """
        more = (
            self._trees_first
            or self.zero_as_missing
            or self.times
            or len(self.combinations)
        )
        simple = self.named and not more
        return FewRows(self.feature_names, self.categories) if simple else None

    def _predict_few(self, X: Any, raw: bool) -> Floats:
        """Predict a few rows of numbers and codes, row by row in one array."""
        if len(self.crosses):
            X = np.concatenate([X, self.crosses.values(X).T], axis=1)
        return self._forest.predict(X, 0, -1, raw)

    @cached_property
    def _forest(self) -> Forest:
        """The core's predictor of the trees."""
        link = "identity" if self.link == CUSTOM else self.link
        terms = () if self.trees.linear is None else self.trees.linear.terms
        return self.device.Forest(
            self.n_internal, *self.trees.structure, self.base, link, *terms
        )

    @cached_property
    def _labelled(self) -> dict[int, Labelled]:
        """The meaning of codes, by internal column."""
        return {
            **self.categories,
            **self.combinations.labelled(self.n_numbered, self.categories),
        }

    @cached_property
    def _explainer(self) -> Explainer:
        """The core's explainer of the trees."""
        return explaining.explainer(self)

    def _link(self, n_threads: int = 1) -> Link:
        """The function from raw scores, (n_rows,) or (n_rows, n_outputs), to
        predictions.
        """
        name, n_outputs, transform = self.link, self.n_outputs, self.transform
        if name != CUSTOM:
            return lambda scores: host.link(
                name, scores.reshape(-1, n_outputs), n_threads
            ).reshape(scores.shape)
        if transform is None:
            raise ParameterError(
                f"the link of objective {self.objective!r} is a function, which no model file holds; predict with "
                "raw=True, or give the function: booster.with_link(f)."
            )

        def checked(scores: Floats) -> Floats:
            values = np.asarray(transform(scores.copy()), np.float64)
            if values.shape[:1] != scores.shape[:1]:
                raise ObjectiveError(
                    f"the link of objective {self.objective!r} returned the shape {values.shape} for scores of shape "
                    f"{scores.shape}; it must return one prediction a row."
                )
            return values

        return checked

    def _predict_columns(
        self, columns: Iterable[NDArray[Any]], n_jobs: int | None, raw: bool = False
    ) -> Floats:
        """Predictions of columns that were read before, categories as codes."""
        table = list(columns)
        if self.zero_as_missing:
            table = [
                column if j in self.categories else no_zeros(column)
                for j, column in enumerate(table)
            ]
        return self.predict(
            ingest.Columns(table, None, len(table[0]), len(table)),
            raw=raw,
            n_jobs=n_jobs,
        )

    def _read(self, X: Any, by_rows: bool = False, min_rows: int = 1) -> ingest.Columns:
        """The columns of a table, in the order of training, categories as codes."""
        if isinstance(X, ingest.Columns):  # read before
            return X
        given = self.feature_names[: self.n_given]
        names = given if self.named else None
        categorical = known(derived.coded(self.times, self.categories), names)
        zeros = self.zero_as_missing
        columns = ingest.read(
            X,
            min_rows=min_rows,
            categorical=categorical,
            by_rows=by_rows,
            zero_as_missing=zeros,
            wanted=names,
        )
        if (
            self.times
            and columns.n_columns == self.n_columns
            and derived.is_expanded(columns)
        ):
            names = names and self.feature_names
            return ingest.encode(
                ingest.align(columns, names, self.n_columns), self.categories, "X"
            )
        columns = ingest.align(columns, names, self.n_given)
        wrong = derived.kinds_differ([columns], self.times, self.categories, given)
        return ingest.encode(
            derived.expand(columns, self.times), self.categories, "X", names, wrong
        )

    def _whole(self, columns: ingest.Columns, n_threads: int = 1) -> ingest.Columns:
        """All columns that trees split."""
        return self.combinations.added(
            self.crosses.added(columns, n_threads), self.categories, n_threads
        )

    def _trees_of(self, rounds: Rounds) -> tuple[int, int]:
        """First tree and end of a range of rounds."""
        try:
            pair = (
                (0, self.n_rounds)
                if rounds is None
                else rounds
                if isinstance(rounds, tuple)
                else (0, rounds)
            )
            first, last = map(operator.index, pair)
        except (TypeError, ValueError):
            raise ParameterError(
                f"rounds={rounds!r} is not a range of rounds; give n, (first, last) or None."
            ) from None
        if not 0 <= first <= last <= self.n_rounds:
            raise ParameterError(
                f"rounds={rounds!r} is out of range; the model has {self.n_rounds} rounds."
            )
        return first * self._per_round, last * self._per_round

    def _mean(self, total: Floats, n_trees: int, start: Floats) -> Floats:
        """Scores from the sum of the trees, of a forest from their mean, in the shape
        of the sum.
        """
        divisor = max(1, n_trees // self._per_round) if self.averaged else 1
        return start.reshape(total.shape) + total / divisor

    def _start(self, init_score: Any, n_rows: int) -> Floats:
        """Scores before the first tree, (n_rows, n_outputs): those given, or the
        base.
        """
        scores = ingest.init_score(init_score, n_rows)
        if scores is None:
            return np.tile(self.base, (n_rows, 1))
        if scores.shape[1] != self.n_outputs:
            raise DataError(
                f"init_score has {scores.shape[1]} columns; the model has {self.n_outputs} outputs."
            )
        return scores
