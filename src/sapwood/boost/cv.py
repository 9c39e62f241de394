"""Measure a model by cross-validation.

In: parameters and a `Dataset`. Out: the mean and standard deviation of every metric over the folds, by round.
"""

import re
from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric, objective
from sapwood.boost import class_weight, splits
from sapwood.boost.arguments import Rows, in_order, peer_arguments
from sapwood.boost.session import History, Session, run
from sapwood.boost.spec import make_spec, merge_arguments, take_callbacks
from sapwood.data.dataset import Dataset
from sapwood.data.deferred import Deferred
from sapwood.errors import ParameterError, suggest


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
) -> "Folded":
    """Measure a model on rows it was not trained on, fold by fold.

    The folds grow side by side, and early stopping watches the mean over the folds. The rows of a fold weigh nothing in
    its training and nothing is binned again, so the cuts come from all rows.

    Parameters
    ----------
    params : mapping
        As in `train`.
    data : Dataset, DMatrix or Pool
        All rows.
    n_estimators : int, optional
        As in `train`.
    n_folds : int
        Number of folds; their sizes differ by at most one row, and so do their shares of every class. Where the data
        has groups, their numbers of whole groups do. The peers' ``nfold`` and ``fold_count`` are the same.
    folds : iterable of (rows to train on, rows to measure), or splitter of scikit-learn, optional
        Folds of your own, by positions of rows; ``n_folds`` is not looked at then.
    stratified, shuffle : bool, optional
        The peers' words for how folds are dealt, for which there is no choice: rows, or groups, at random
        (``shuffle=True``), and evenly by class where labels are classes and there are no groups (``stratified=True``).
        Anything else raises, and wants ``folds``.
    callbacks : sequence of callables, optional
        As in `train`; they see the means over the folds under the name "cv", and no booster.
    **more
        Further parameters, by name.

    Returns
    -------
    dict of str to (n_rounds) float64
        ``rmse_mean`` and ``rmse_std``, and so for every metric, by round; up to the best round with early stopping.
        The peers' keys are known too: ``valid rmse-mean``, ``test-rmse-mean``.
    """
    for name in ("nfold", "fold_count"):
        n_folds = more.pop(name, n_folds)
    peer_arguments(more)
    for name in ("as_pandas", "return_cvbooster", "eval_train_metric", "show_stdv"):
        if not more.get(name, True) or name == "show_stdv":
            more.pop(name, None)  # as it is anyway
    params, rows = in_order(params, data, more)
    params, callbacks = take_callbacks(merge_arguments(cv, params, n_estimators, more), callbacks)
    data = rows.dataset(params) if isinstance(rows, Deferred) else rows
    for name in ("quality", "time_limit"):
        if params.get(name) is not None:
            raise ParameterError(f"{name} is for an automatic fit; give an estimator to scikit-learn's cross_validate.")
    spec = make_spec(params, data, callbacks, watched=True, in_cv=True)
    data = class_weight.with_class_weight(data, spec.factor)
    splits.check_fold_words(folds is None, spec.classes, data.group, stratified=stratified, shuffle=shuffle)
    counts = splits.folds_of(spec.params, data, spec.classes, n_folds, folds)
    if isinstance(spec.objective.custom, objective.GroupLoss) or any(one.ranks for one in spec.metrics):
        splits.check_whole_groups(data, counts)
    sessions = [Session(spec, _times(data, trained), trained == 0, _positions(n)) for trained, n in counts]
    std: dict[str, list[float]] = {one.name: [] for one in spec.metrics}
    history: History = {}

    def evaluate(_: Any) -> dict[str, dict[str, float]]:
        measured = [session.measure()["holdout"] for session in sessions]
        means = {}
        for name, deviations in std.items():
            values = [by_name[name] for by_name in measured]
            means[name] = fsum(values) / len(values)
            deviations.append(sqrt(fsum((value - means[name]) ** 2 for value in values) / len(values)))
        return {"cv": means}

    rounds = zip(*(session.rounds() for session in sessions), strict=True)
    best = run(spec, rounds, evaluate, history, None, data.reduce)
    lists = {f"{name}_{what}": of[name] for name in std for what, of in (("mean", history["cv"]), ("std", std))}
    return Folded({name: np.array(values[:best]) for name, values in lists.items()})


class Folded(dict[str, NDArray[np.float64]]):
    """The means and deviations of metrics, under our names; those of LightGBM, XGBoost and CatBoost are found too."""

    def __missing__(self, key: str) -> NDArray[np.float64]:
        found = re.fullmatch(r"(?:(valid|test|train|iterations)[ -])?(.+)[-_](mean|std|stdv)", str(key))
        if found is None or found[1] == "train":
            hint = "cv does not measure the training rows" if found else suggest(str(key), self)
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
    """The rows that are measured: a mask, or positions where some are measured more than once."""
    return count > 0 if count.max() <= 1 else np.repeat(np.arange(len(count)), count)
