"""What the peers' boosters are asked for, under their names, and the peers' arguments
of `predict`.

In: a booster, and arguments of LightGBM's, XGBoost's or CatBoost's `predict`. Out: the
same of ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ParameterError
from sapwood.params import peers
from sapwood.params.types import is_integer
from sapwood.system import kinds

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

Rounds = int | tuple[int, int] | None
# Arguments that change nothing here.
HARMLESS = (
    "validate_features",
    "strict_shape",
    "training",
    "predict_disable_shape_check",
    "verbose",
    "task_type",
    "validate_parameters",
    "data_has_header",
    "approx_contribs",
    "pred_early_stop",
)
THREADS = ("num_threads", "thread_count", "nthread")
CONTRIBUTIONS = ("pred_contrib", "pred_contribs")
TYPES = {
    "rawformulaval": "raw",
    "probability": "prediction",
    "logprobability": "log",
    "class": "class",
}


@dataclass(frozen=True)
class Asked:
    """What a peer's arguments of `predict` ask for."""

    what: str = "prediction"  # or "raw", "leaves", "contributions", "class"
    rounds: Rounds = None
    n_jobs: int | None = None


def asked(predict: Any, n_rounds: int, more: Mapping[str, Any]) -> Asked:
    """Read the peers' arguments of `predict`; one that is not known raises.

    ``n_rounds``: rounds of the model. A range that ends beyond them ends with them, as
    LightGBM's does.
    """
    more = {name: value for name, value in more.items() if name not in HARMLESS}
    n_jobs: Any = next((more.pop(name) for name in THREADS if name in more), None)
    rounds = _rounds(more, n_rounds)
    what = "prediction"
    for names, meaning in (
        (("raw_score", "output_margin"), "raw"),
        (("pred_leaf",), "leaves"),
        (CONTRIBUTIONS, "contributions"),
        (("pred_interactions",), "interactions"),
    ):
        for name in names:
            if more.pop(name, False):
                what = meaning
    if (kind := more.pop("prediction_type", None)) is not None:
        if str(kind).lower() not in TYPES or TYPES[str(kind).lower()] == "log":
            raise ParameterError(
                f"prediction_type={kind!r} is not available; choose RawFormulaVal or Probability."
            )
        what = TYPES[str(kind).lower()]
    if more:
        peers.refuse_arguments(predict, more, {}, "params")
    return Asked(what, rounds, n_jobs if is_integer(n_jobs) and n_jobs > 0 else None)


def _rounds(more: dict[str, Any], n_rounds: int) -> Rounds:
    """The range of rounds among the peers' arguments, which are taken out."""
    start = (
        next(
            (
                more.pop(name)
                for name in ("start_iteration", "ntree_start")
                if name in more
            ),
            0,
        )
        or 0
    )
    end: Any = next(
        (
            more.pop(name)
            for name in ("num_iteration", "ntree_limit", "ntree_end")
            if name in more
        ),
        None,
    )
    if is_integer(end) and end > 0 and start:
        end = start + end  # LightGBM's is a number of rounds
    given = more.pop("iteration_range", None)
    if given is not None:
        start, end = given
    if end is None or (is_integer(end) and end <= 0):
        end = n_rounds
    return (int(start), min(int(end), n_rounds)) if start else min(int(end), n_rounds)


def contributions(
    booster: Booster, X: Any, rounds: Rounds, n_jobs: int | None
) -> NDArray[np.float64]:
    """Shapley values with the base value as the last column, as in LightGBM and
    XGBoost.

    (n_rows, n_columns + 1); with several outputs (n_rows, n_outputs * (n_columns + 1)),
    as in LightGBM.
    """
    if rounds not in (None, booster.n_rounds):
        raise ParameterError(
            "contributions are those of all rounds; leave the range of rounds out."
        )
    found = booster.explain(X, n_jobs=n_jobs)
    base = np.broadcast_to(
        np.expand_dims(found.base_values, 1 if found.values.ndim == 2 else -2),
        _one_more(found.values),
    )
    both = np.concatenate([found.values, base], axis=1)
    return both if both.ndim == 2 else np.swapaxes(both, 1, 2).reshape(len(both), -1)


def interactions(booster: Booster, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
    """Shapley interactions with the base value in the last row and column, (n_rows,
    n_columns + 1, n_columns + 1).
    """
    if booster.n_outputs > 1:
        raise ParameterError(
            "the model has several outputs; use explain(X, interactions=True)."
        )
    found = booster.explain(X, interactions=True, n_jobs=n_jobs)
    both = np.pad(found.values, ((0, 0), (0, 1), (0, 1)))
    both[:, -1, -1] = found.base_values
    return both


def _one_more(values: NDArray[Any]) -> tuple[int, ...]:
    return (len(values), 1, *values.shape[2:])


def _refuse_map(fmap: str) -> None:
    """Raise where XGBoost's file of names of columns is given."""
    if fmap:
        raise ParameterError(
            f"fmap={fmap!r} is not read: the model knows the names of its columns. Leave it out."
        )


class Reads(type):
    """What makes ``Booster(model_file=path)`` read a model, as in LightGBM and
    XGBoost.
    """

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        """A booster of its parts, or that of a file."""
        from sapwood.model import io  # io makes boosters, so it comes after this module

        if "model_file" in fields:
            return io.load(fields["model_file"])
        if "model_str" in fields or len(args) + len(fields) < 2:
            raise TypeError(
                "Booster makes no model of that: sapwood.load(path or bytes) reads one."
            )
        return super().__call__(*args, **fields)


class PeerNames(metaclass=Reads):
    """Names of LightGBM's and XGBoost's boosters, for what ours have under others."""

    best_round: int | None
    feature_names: Any
    history: Mapping[str, Any]

    def __dir__(self) -> list[str]:
        return [
            name
            for name in super().__dir__()
            if not name.startswith("_") or name.endswith("__")
        ]

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        raise NotImplementedError

    @property
    def best_iteration(self) -> int:
        """LightGBM's: how many rounds the model keeps, those up to the best one after
        early stopping.
        """
        return self.n_rounds if self.best_round is None else self.best_round

    def num_trees(self) -> int:
        """LightGBM's: the number of trees."""
        return int(self.trees.n_trees)  # type: ignore[attr-defined]

    def current_iteration(self) -> int:
        """LightGBM's: the number of rounds."""
        return self.n_rounds

    num_boosted_rounds = current_iteration

    def num_feature(self) -> int:
        """The number of columns."""
        return len(self.feature_names)

    num_features = num_feature

    def feature_name(self) -> list[str]:
        """LightGBM's: the names of the columns."""
        return list(self.feature_names)

    def feature_importance(
        self, importance_type: str = "split", iteration: int | None = None
    ) -> NDArray[Any]:
        """LightGBM's: numbers of splits, or sums of its gains (``"gain"``)."""
        if iteration not in (None, -1, 0, self.n_rounds):
            raise ParameterError(
                "importances are those of all rounds; leave iteration out."
            )
        kinds = {"split": "weight", "gain": "lightgbm_gain"}
        found: NDArray[Any] = self.importance(  # type: ignore[attr-defined]
            kinds.get(importance_type, importance_type)
        )
        return found.astype(np.int64) if importance_type == "split" else found

    def get_score(
        self, fmap: str = "", importance_type: str = "weight"
    ) -> dict[str, float]:
        """XGBoost's: importances of the columns that have splits, by name; names are
        those of the model, no file's.
        """
        _refuse_map(fmap)
        kinds = {"gain": "xgboost_gain", "total_gain": "xgboost_total_gain"}
        count = self.importance("weight")  # type: ignore[attr-defined]
        found = self.importance(kinds.get(importance_type, importance_type))  # type: ignore[attr-defined]
        return {
            name: float(v)
            for name, v, n in zip(self.feature_names, found, count, strict=True)
            if n
        }

    def get_fscore(self, fmap: str = "") -> dict[str, float]:
        """XGBoost's: numbers of splits by column."""
        return self.get_score(fmap)

    def trees_to_dataframe(self, fmap: str = "") -> Any:
        """XGBoost's and LightGBM's name of `to_frame`."""
        _refuse_map(fmap)
        return self.to_frame()  # type: ignore[attr-defined]

    def inplace_predict(
        self, data: Any, iteration_range: tuple[int, int] = (0, 0), **more: Any
    ) -> Any:
        """XGBoost's: predict a table; ``predict_type="margin"`` gives raw scores."""
        margin = more.pop("predict_type", "value") == "margin"
        more = {
            name: value
            for name, value in more.items()
            if name not in ("missing", "base_margin") or value is None
        }
        given = {} if not iteration_range[1] else {"iteration_range": iteration_range}
        return self.predict(data, raw=margin, **given, **more)  # type: ignore[attr-defined]

    def evals_result(self) -> Mapping[str, Any]:
        """The metrics of every round, `history`."""
        return self.history

    def save_model(
        self,
        path: str | os.PathLike[str],
        num_iteration: int | None = None,
        *,
        force: bool = False,
    ) -> None:
        """LightGBM's and XGBoost's name of `save`; the name of the file may end in
        anything.
        """
        if num_iteration not in (None, -1, 0, self.n_rounds):
            raise ParameterError("save writes all rounds; leave num_iteration out.")
        kinds.check(path, kinds.MODEL, force=force, endings=kinds.Endings.ANY)
        self.save(path, force=True)  # type: ignore[attr-defined]

    def _as_peers(
        self,
        X: Any,
        raw: bool,
        rounds: Rounds,
        init_score: Any,
        n_jobs: int | None,
        more: Mapping[str, Any],
    ) -> Any:
        """Predict as a peer's arguments ask; leaves are integers."""
        predict: Any = self.predict  # type: ignore[attr-defined]
        wants = asked(predict, self.n_rounds, more)
        rounds = wants.rounds if rounds is None else rounds
        n_jobs = wants.n_jobs if n_jobs is None else n_jobs
        if wants.what == "leaves":
            return self.predict_leaves(X, rounds=rounds, n_jobs=n_jobs)  # type: ignore[attr-defined]
        if wants.what == "contributions":
            return contributions(self, X, rounds, n_jobs)  # type: ignore[arg-type]
        if wants.what == "interactions":
            return interactions(self, X, n_jobs)  # type: ignore[arg-type]
        if wants.what == "class":
            raise ParameterError(
                "a Booster does not predict that; use SapwoodClassifier.predict."
            )
        raw = raw or wants.what == "raw"
        return predict(X, raw=raw, rounds=rounds, init_score=init_score, n_jobs=n_jobs)
