"""The estimator of rankings: groups of rows, ordered by score.

In: a table, labels that say how relevant rows are, and the group of every row. Out:
scores that order a group.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted

from sapwood import metric
from sapwood.boost import auto, train
from sapwood.data import ingest
from sapwood.data.dataset import Dataset
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.interfaces.estimator import (
    VALUES,
    Estimator,
    EstimatorDataset,
    choose_objective,
    documented,
    signature,
)
from sapwood.interfaces.parameters import PARAMETERS
from sapwood.interfaces.target import Holdout
from sapwood.model.booster import Booster
from sapwood.objective import GroupLoss
from sapwood.params import Parameter

GROUPS = ("group", "qid", "group_id")  # LightGBM's name, XGBoost's, CatBoost's
VALID_GROUPS = ("eval_group", "eval_qid", "group_val")


@documented
class SapwoodRanker(Estimator):
    """Gradient boosting of decision trees for rankings: rows are ordered inside groups.

    A `recipe` sets the parameters that you leave out; what you give goes before it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: predictions in every form, importances, text, files.
    {attributes}

    Examples
    --------
    >>> from sapwood import SapwoodRanker
    >>> ranker = SapwoodRanker(n_estimators=10, min_child_weight=0)
    >>> score = ranker.fit([[0], [1], [0], [1]], [0, 1, 0, 2], group=["a", "a", "b", "b"]).predict([[0], [1]])
    >>> bool(score[1] > score[0])
    True
    """

    _table: ClassVar[Mapping[str, Parameter]] = PARAMETERS

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)

    __init__.__signature__ = signature(PARAMETERS)  # type: ignore[attr-defined]

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike | None = None,
        group: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        group_weight: Any = None,
        pairs: ArrayLike | None = None,
        pairs_weight: ArrayLike | None = None,
        position: ArrayLike | None = None,
        eval_group: Any = None,
        **more: Any,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As in `SapwoodRegressor.fit`.
        y : (n_rows,) array-like
            Labels of at least 0: how relevant a row is in its group. With ``pairs``
            they may be left out.
        group : (n_rows,) or (n_groups,) array-like, or str
            The group of every row, by any name and in any order; sizes of groups of
            consecutive rows; or the name of a column of X, which is then no feature.
            XGBoost's ``qid`` and CatBoost's ``group_id`` are the same.
        sample_weight : (n_rows,) or (n_groups,) array-like, optional
            Weights of rows; where it has a value for each group, weights of groups in
            the order of their first rows.
        group_weight : (n_groups,) array-like or mapping, optional
            Weights of groups in the order of their first rows, or by the name of the
            group. They multiply those of rows.
        pairs, pairs_weight : (n_pairs, 2) and (n_pairs,) array-like, optional
            Positions of rows, the winner first, for objective='pair_logit'; the weight
            of each pair.
        position : (n_rows,) array-like, optional
            Where every row was shown when its label was observed: its bias is learned
            and left out of predictions.
        eval_group : array-like, str or list of these, optional
            The groups of each validation set, as ``group``; also called ``eval_qid``
            and ``group_val``.
        **more
            As in `SapwoodRegressor.fit`: init_score, X_val, y_val, sample_weight_val,
            eval_set, callbacks, init_model.

        Returns
        -------
        self
        """
        group = _one_name(GROUPS, group, more)
        eval_group = _one_name(VALID_GROUPS, eval_group, more)
        column = group if isinstance(group, str) else None
        if column is not None:
            group, X = ingest.take_column(X, column)
        if y is None and pairs is not None:
            y = np.zeros(_num_samples(X))
        n_rows = len(np.asarray(y)) if y is not None else 0
        if n_rows == 0:
            raise DataError("SapwoodRanker needs labels: y has no rows.")
        numbers = None if group is None else ingest.group(group, n_rows)
        if numbers is None and pairs is None:
            raise DataError(
                "SapwoodRanker needs groups: give group, the group of every row or the name of a column."
            )
        weight = _weights(sample_weight, group_weight, group, numbers, n_rows)
        self._extra = {
            "pairs": pairs,
            "pairs_weight": pairs_weight,
            "position": position,
        }
        self._column = column
        self._eval_groups = _eval_groups(eval_group, more)
        try:
            super().fit(X, y, weight, group=numbers, **more)
        finally:
            del self._extra, self._eval_groups, self._column
        if column is not None:
            self.group_column_ = column
        return self

    def predict(
        self, X: Any, init_score: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Compute the score of every row, (n_rows,): only the order inside a group
        means something.
        """
        X = self._without_group(X)
        return self._booster(X).predict(X, init_score=init_score, n_jobs=self.n_jobs)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        group: Any = None,
        sample_weight: ArrayLike | None = None,
        **more: Any,
    ) -> float:
        """NDCG of the first 10 places, the mean over groups (see
        `sapwood.metric.ndcg`); `group` as in `fit`.
        """
        check_is_fitted(self)
        group = _one_name(GROUPS, group, more)
        if more:
            raise TypeError(
                f"score has no argument {next(iter(more))!r}; {suggest(next(iter(more)), GROUPS)}"
            )
        group = getattr(self, "group_column_", None) if group is None else group
        if isinstance(group, str):
            group, X = ingest.take_column(X, group)
        rule = self.booster_.params.get("label_gain", "auto")
        return metric.ndcg(y, self.predict(X), sample_weight, group=group, gain=rule)

    def _without_group(self, X: Any) -> Any:
        """The table without the column of groups, which it may have or lack."""
        column = getattr(self, "group_column_", None)
        if column is None or column not in _names(X):
            return X
        return ingest.take_column(X, column)[1]

    def _learn_target(
        self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Choose the objective, with pairs or positions of the user."""
        extra = {
            name: value for name, value in self._extra.items() if value is not None
        }
        if settings["objective"] == "auto":
            settings["objective"] = "pair_logit" if "pairs" in extra else "lambdarank"
        choose_objective(settings, "lambdarank", "link", VALUES)
        if extra:
            if not isinstance(settings["objective"], str):
                raise ParameterError(
                    f"{next(iter(extra))} is for an objective of ranking, by its name."
                )
            settings["objective"] = GroupLoss(settings["objective"], **extra)
        return y

    def _validation_set(
        self,
        given: Holdout,
        target: NDArray[Any],
        data: Dataset,
        bins: Mapping[str, Any],
    ) -> Dataset:
        """A validation set, with its groups."""
        X, group = given.X, self._eval_groups.get(id(given.X), self._column)
        if group is None:
            raise DataError(
                "A validation set of a ranking needs its groups; give eval_group."
            )
        if isinstance(group, str):
            group, X = ingest.take_column(X, group)
        elif self._column is not None and self._column in _names(X):
            X = ingest.take_column(X, self._column)[1]
        self._check_names(X)
        return EstimatorDataset(
            X,
            given.y,
            given.weight,
            given.init_score,
            group=group,
            reference=data,
            **bins,
        )

    def _fit_automatically(
        self, settings: Mapping[str, Any], data: Dataset, quality: str, start: float
    ) -> Booster:
        """The mean of models of several losses and folds of groups, unless an objective
        was given.
        """
        given = {name: settings[name] for name in self._given() if name in settings}
        limit = settings["time_limit"]
        if self.objective != "auto" or any(
            value is not None for value in self._extra.values()
        ):
            given["objective"] = settings["objective"]
        for name in ("has_time", "validation_fraction"):
            if name in given and given[name] != self._table[name].default:
                raise ParameterError(
                    f"{name}={given[name]!r} is not for an automatic fit of a ranking, which deals groups to folds at "
                    "random; set quality=None for one training, or leave it out."
                )
        # nothing that folds of groups could tell
        if data.group is None or not _differ(data.label, data.group):
            until = auto.deadline.of_plain(limit, start, data)
            return train(
                {**settings, "quality": None, "time_limit": None},
                data.without_values(),
                callbacks=until,
            )
        return auto.rank(
            given,
            data,
            quality,
            None if limit is None else max(0.0, limit - time.monotonic() + start),
        )


def _names(X: Any) -> list[Any]:
    """The names of a table's columns; Arrow's tables call them otherwise."""
    return list(getattr(X, "column_names", getattr(X, "columns", ())))


def _differ(label: Any, group: NDArray[np.int32]) -> bool:
    """Whether a group has rows of different labels."""
    order = np.argsort(group, kind="stable")
    label = label[order]
    group = group[order]
    return bool(((label[1:] != label[:-1]) & (group[1:] == group[:-1])).any())


def _one_name(names: Sequence[str], first: Any, more: dict[str, Any]) -> Any:
    """The argument that may have one of several names."""
    found = {name: more.pop(name) for name in names if more.get(name) is not None}
    found |= {} if first is None else {names[0]: first}
    if len(found) > 1:
        raise TypeError(
            f"{' and '.join(found)} are names of one argument; give one of them."
        )
    return next(iter(found.values()), None)


def _eval_groups(given: Any, more: Mapping[str, Any]) -> dict[int, Any]:
    """The groups of each validation set, by the identity of its table."""
    if given is None:
        return {}
    sets = more.get("eval_set")
    if sets is None and more.get("X_val") is None:
        raise DataError(
            "eval_group is for validation rows, and there are none: give eval_set, or X_val and y_val."
        )
    if sets is None:
        return {id(more.get("X_val")): given}
    if isinstance(sets, tuple) and len(sets) == 2 and not isinstance(sets[0], tuple):
        sets = [sets]
    several = (
        isinstance(given, list | tuple)
        and len(given) == len(sets)
        and not np.isscalar(given[0])
    )
    groups = list(given) if several else [given]
    if len(groups) != len(sets):
        raise DataError(
            f"eval_set has {len(sets)} validation sets, but eval_group is for {len(groups)}."
        )
    return {id(X): group for (X, _), group in zip(sets, groups, strict=True)}


def _weights(
    sample: Any,
    of_groups: Any,
    group: Any,
    numbers: NDArray[np.int32] | None,
    n_rows: int,
) -> NDArray[np.float64] | None:
    """The weight of every row, from those of rows and of groups."""
    n_groups = 0 if numbers is None else int(numbers.max()) + 1
    weight = None if sample is None else ingest.floats(sample, "sample_weight")
    if weight is not None and numbers is not None and len(weight) == n_groups != n_rows:
        weight = weight[numbers]
    if of_groups is None:
        return weight
    if numbers is None:
        raise DataError("group_weight needs groups; give group.")
    if isinstance(of_groups, Mapping):
        names = list(dict.fromkeys(np.asarray(group).tolist()))
        if missing := [name for name in names if name not in of_groups]:
            raise DataError(f"group_weight lacks the group {missing[0]!r}.")
        of_groups = [of_groups[name] for name in names]
    factor = ingest.floats(of_groups, "group_weight")
    if factor.shape != (n_groups,):
        raise DataError(
            f"group_weight has the shape {factor.shape}; there are {n_groups} groups."
        )
    return factor[numbers] if weight is None else factor[numbers] * weight
