"""Measure a model by cross-validation.

In: parameters and a `Dataset`. Out: the mean and standard deviation of every metric
over the folds, by round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric, objective
from sapwood.boost import class_weight, offset, splits
from sapwood.boost.arguments import Rows, in_order, peer_arguments, training_rows
from sapwood.boost.session import History, Session, run
from sapwood.boost.spec import make_spec, merge_arguments, take_callbacks
from sapwood.data.dataset import Dataset
from sapwood.data.deferred import Deferred, Pool
from sapwood.errors import ParameterError, suggest
from sapwood.model.text import data_frame

CATBOOST = {  # names of metrics in its tables
    "logloss": "Logloss",
    "multi_logloss": "MultiClass",
    "auc": "AUC",
    "accuracy": "Accuracy",
    "f1": "F1",
    "rmse": "RMSE",
    "mae": "MAE",
    "mape": "MAPE",
    "r2": "R2",
    "poisson": "Poisson",
    "quantile": "Quantile",
}


def cv(
    params: Mapping[str, Any] | Rows,
    data: Rows | Mapping[str, Any] | None = None,
    n_estimators: int | None = None,
    *,
    n_folds: int = 5,
    folds: Any = None,
    stratified: bool | None = None,
    shuffle: bool | None = None,
    callbacks: Sequence[Any] | None = None,
    **more: Any,
) -> Any:
    """Measure a model on rows it was not trained on, fold by fold.

    The folds grow side by side, and early stopping watches the mean over the folds. The
    rows of a fold weigh nothing in its training and nothing is binned again, so the
    cuts come from all rows.

    Parameters
    ----------
    params : mapping
        As in `train`.
    data : Dataset, DMatrix or Pool
        All rows.
    n_estimators : int, optional
        As in `train`.
    n_folds : int
        Number of folds; their sizes differ by at most one row, and so do their shares
        of every class. Where the data has groups, their numbers of whole groups do. The
        peers' ``nfold`` and ``fold_count`` are the same.
    folds : iterable of (rows to train on, rows to measure), or splitter of scikit-learn, optional
        Folds of your own, by positions of rows; ``n_folds`` is not looked at then.
    stratified, shuffle : bool, optional
        The peers' words for how folds are dealt, for which there is no choice: rows, or
        groups, at random (``shuffle=True``), and evenly by class where labels are
        classes and there are no groups (``stratified=True``). Anything else raises, and
        wants ``folds``.
    callbacks : sequence of callables, optional
        As in `train`; they see the means over the folds under the name "cv", and no
        booster.
    **more
        Further parameters, by name.

    Returns
    -------
    dict of str to (n_rounds) float64
        ``rmse_mean`` and ``rmse_std``, and so for every metric, by round; up to the
        best round with early stopping.
        The peers' keys are known too: ``valid rmse-mean``, ``test-rmse-mean``.
        XGBoost's data frame of columns ``test-rmse-mean`` and so on where the data is a
        `DMatrix`, or with ``as_pandas=True``; CatBoost's of a `Pool`.
    """
    n_folds = _peers_folds(more, n_folds)
    params, rows = in_order(params, data, more)
    as_pandas = more.pop("as_pandas", isinstance(rows, Deferred))
    params, callbacks = take_callbacks(
        merge_arguments(cv, params, n_estimators, more), callbacks
    )
    data = training_rows(rows, params)
    for name in ("quality", "time_limit"):
        if params.get(name) is not None:
            raise ParameterError(
                f"{name} is for an automatic fit; give an estimator to scikit-learn's cross_validate."
            )
    spec = make_spec(params, data, callbacks, watched=True, in_cv=True)
    offset.warn_of_rounding(spec.objective, data)
    data = class_weight.with_class_weight(data, spec.factor)
    splits.check_fold_words(
        folds is None, spec.classes, data.group, stratified=stratified, shuffle=shuffle
    )
    counts = splits.folds_of(spec.params, data, spec.classes, n_folds, folds)
    if isinstance(spec.objective.custom, objective.GroupLoss) or any(
        one.ranks for one in spec.metrics
    ):
        splits.check_whole_groups(data, counts)
    sessions = [
        Session(spec, _times(data, trained), trained == 0, _positions(n))
        for trained, n in counts
    ]
    # by metric; one of the user's own may name itself when it is called
    std: dict[str, list[float]] = {}
    history: History = {}

    def evaluate(_: Any) -> dict[str, dict[str, float]]:
        measured = [session.measure()["holdout"] for session in sessions]
        means = {}
        for name in measured[0]:
            values = [by_name[name] for by_name in measured]
            means[name] = fsum(values) / len(values)
            std.setdefault(name, []).append(
                sqrt(fsum((value - means[name]) ** 2 for value in values) / len(values))
            )
        return {"cv": means}

    rounds = zip(*(session.rounds() for session in sessions), strict=True)
    best = run(spec, rounds, evaluate, history, None, data.reduce)
    lists = {
        f"{name}_{what}": of[name]
        for name in std
        for what, of in (("mean", history["cv"]), ("std", std))
    }
    found = Folded({name: np.array(values[:best]) for name, values in lists.items()})
    return (
        found.to_pandas(CATBOOST if isinstance(rows, Pool) else {})
        if as_pandas
        else found
    )


def _peers_folds(more: dict[str, Any], n_folds: int) -> int:
    """The number of folds under a peer's name; that and what changes nothing is taken
    out of the arguments.
    """
    for name in ("nfold", "fold_count"):
        n_folds = more.pop(name, n_folds)
    peer_arguments(more)
    for name in ("return_cvbooster", "eval_train_metric", "show_stdv"):
        if not more.get(name, True) or name == "show_stdv":
            more.pop(name, None)  # as it is anyway
    return n_folds


class Folded(dict[str, NDArray[np.float64]]):
    """The means and deviations of metrics, under our names; those of LightGBM, XGBoost
    and CatBoost are found too.
    """

    def to_pandas(self, words: Mapping[str, str]) -> Any:
        """XGBoost's and CatBoost's form: a data frame with a row for each round;
        `words`: names of metrics.
        """
        names = {key: key.rsplit("_", 1) for key in self}
        found = data_frame(
            {
                f"test-{words.get(name, name)}-{of}": self[key]
                for key, (name, of) in names.items()
            }
        )
        if words:
            found.insert(0, "iterations", range(len(found)))
        return found

    def __missing__(self, key: str) -> NDArray[np.float64]:
        found = re.fullmatch(
            r"(?:(valid|test|train|iterations)[ -])?(.+)[-_](mean|std|stdv)", str(key)
        )
        if found is None or found[1] == "train":
            hint = (
                "cv does not measure the training rows"
                if found
                else suggest(str(key), self)
            )
            raise KeyError(f"{key!r}: {hint}")
        name = found[2].lower()
        ours = f"{metric.PEERS.get(name, name)}_{found[3][:3] if found[3] != 'mean' else 'mean'}"
        if ours not in self:
            raise KeyError(f"{key!r}: {suggest(ours, self)}")
        return self[ours]


def _times(data: Dataset, count: NDArray[np.int64]) -> Dataset:
    """The dataset in which a row counts as often as it is trained on."""
    if count.max() <= 1:
        return data
    times = np.maximum(count, 1).astype(np.float64)  # rows of 0 are held out
    return data.with_weight(times if data.weight is None else times * data.weight)


def _positions(count: NDArray[np.int64]) -> NDArray[Any]:
    """The rows that are measured: a mask, or positions where some are measured more
    than once.
    """
    return count > 0 if count.max() <= 1 else np.repeat(np.arange(len(count)), count)
