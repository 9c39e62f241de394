"""A transformer for scikit-learn: categories to ordered target statistics.

In: a table of categories, labels. Out: numbers, in which no training row meets its own
label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from sapwood.data import target_statistics
from sapwood.data.categories import MISSING, UNSEEN
from sapwood.data.target_statistics import Statistic, Target
from sapwood.device.threads import threads
from sapwood.errors import DataError, warn
from sapwood.params.types import Choice, Integer, flag, seed

TARGETS = Choice(
    ("auto", "classes", "numbers"),
    {"binary": "classes", "multiclass": "classes", "continuous": "numbers"},
)
MAX_CLASSES = 100  # with more distinct numbers target_type='auto' warns


class OrderedTargetEncoder(TransformerMixin, BaseEstimator):
    """Encode categories by statistics of the labels, without target leakage.

    A new row has (sum over the training rows of its category + prior) / (their number +
    1), where the sum is that of labels of a class, or of places between the lowest and
    the highest label. In `fit_transform` a row has the same from the rows before it in
    a random order, so that its own label is not part of it (Prokhorenkova et al. 2018).
    The order depends on the seed and on positions only. Missing values are a category;
    an unseen one has the prior.

    Parameters
    ----------
    statistic : {'auto', 'mean', 'borders', 'buckets', 'counter'}
        What is summed: labels ('mean'), whether they lie above each border ('borders':
        one column for each), between two ('buckets'), or just the rows ('counter').
        'auto' is borders for classes, mean for numbers.
    priors : sequence of float
        From 0 to 1; one column for each.
    target_type : {'auto', 'classes', 'numbers'}
        What labels are, also under scikit-learn's names binary, multiclass and
        continuous; 'auto' looks at them as scikit-learn does: whole numbers are
        classes.
    n_borders : int
        Maximum number of borders between numeric labels; classes have one border less
        than there are classes.
    has_time : bool
        Rows are in order of time: the order of the table is used instead of a random
        one.
    random_state : int or None
        Seed of the order; None is 0.
    n_jobs : int or None
        Threads; they change no result.

    Attributes
    ----------
    tables_ : list of sapwood.data.target_statistics.Table
        Of every column.
    categories_ : list of ndarray
        Of every column, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the table had names.

    Examples
    --------
    >>> from sapwood import OrderedTargetEncoder
    >>> encoder = OrderedTargetEncoder(has_time=True)
    >>> encoder.fit_transform([["a"], ["b"], ["a"], ["a"]], [1, 0, 0, 1]).ravel().tolist()
    [0.5, 0.5, 0.75, 0.5]
    >>> encoder.transform([["a"], ["c"]]).ravel().tolist()
    [0.625, 0.5]
    """

    def __init__(
        self,
        statistic: str = "auto",
        priors: Sequence[float] = (0.5,),
        target_type: str = "auto",
        n_borders: int = 1,
        has_time: bool = False,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.statistic = statistic
        self.priors = priors
        self.target_type = target_type
        self.n_borders = n_borders
        self.has_time = has_time
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Count the labels of every category.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
            Categories: strings, numbers or any objects that can be sorted.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as the row twice; rows of weight 0 are encoded as new
            ones.

        Returns
        -------
        self
        """
        self._count(X, y, sample_weight)
        return self

    def fit_transform(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Count the labels of every category, and encode each row from those before it.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        (n_rows, n_values) float64
        """
        codes, target, weight = self._count(X, y, sample_weight)
        has_time = flag.check(f"has_time={self.has_time!r}", self.has_time)
        number = seed.check(f"random_state={self.random_state!r}", self.random_state)
        order = target_statistics.permutation(
            number, 0, target.n_rows, weight, has_time
        )
        sizes = [table.n_codes for table in self.tables_]
        statistics = self.tables_[0].statistics
        values = target_statistics.ordered(
            codes, sizes, target, statistics, order, threads(self.n_jobs)
        )
        return np.ascontiguousarray(np.concatenate(list(values)).T)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Encode new rows.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)

        Returns
        -------
        (n_rows, n_values) float64
        """
        check_is_fitted(self)
        if getattr(X, "ndim", 2) != 2:
            raise DataError(
                f"X has {X.ndim} dimension(s), not 2. Reshape your data: rows, then columns."
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        codes = self._ranks.transform(X).T
        return np.ascontiguousarray(
            np.concatenate(
                [table(code) for table, code in zip(self.tables_, codes, strict=True)]
            ).T
        )

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Name the columns that come out: those that go in, numbered where each becomes
        several.
        """
        check_is_fitted(self)
        names = self._ranks.get_feature_names_out(input_features)
        n = len(self.tables_[0].values())
        return np.array(
            [f"{name}_{k}" if n > 1 else name for name in names for k in range(n)],
            dtype=object,
        )

    def _count(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[list[target_statistics.Codes], Target, target_statistics.Floats | None]:
        """Fit: codes of every column, labels, weights."""
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: statistics are those of labels."
            )
        validate_data(self, X, skip_check_array=True)
        self._ranks = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=UNSEEN,
            encoded_missing_value=MISSING,
            dtype=np.int32,
        ).fit(X)
        codes = [np.ascontiguousarray(code) for code in self._ranks.transform(X).T]
        self.categories_ = self._ranks.categories_
        weight = (
            None
            if sample_weight is None
            else column_or_1d(sample_weight, dtype=np.float64)
        )
        check_consistent_length(codes[0], y, weight)
        target = self._target(column_or_1d(y, warn=True), weight)
        kind = self.statistic
        if kind == "auto":
            kind = "borders" if self._classes else "mean"
        statistics = [Statistic(kind, tuple(self.priors))]
        self.tables_ = [
            target_statistics.table(code, len(found), target, statistics)
            for code, found in zip(codes, self.categories_, strict=True)
        ]
        return codes, target, weight

    def _target(
        self, y: NDArray[Any], weight: target_statistics.Floats | None
    ) -> Target:
        """Labels with their borders; classes are numbered."""
        kind = TARGETS.check(f"target_type={self.target_type!r}", self.target_type)
        self._classes = (
            type_of_target(y, input_name="y") in ("binary", "multiclass")
            if kind == "auto"
            else kind == "classes"
        )
        if self._classes:
            classes, index = np.unique(y, return_inverse=True)
            if kind == "auto" and len(classes) > MAX_CLASSES and y.dtype.kind in "iuf":
                warn(
                    f"y has {len(classes):,} different whole numbers, which are taken for classes; choose "
                    "target_type='continuous' if they are numbers, 'multiclass' if not."
                )
            return Target(
                index.astype(np.float64),
                np.arange(0.5, len(classes) - 1, dtype=np.float64),
                weight,
            )
        try:
            label: target_statistics.Floats = y.astype(np.float64)
        except (TypeError, ValueError) as cause:
            raise DataError(
                "labels are not numbers; choose target_type='classes'."
            ) from cause
        n_borders = Integer(1, 65534).check(
            f"n_borders={self.n_borders!r}", self.n_borders
        )
        return Target(
            label, target_statistics.label_borders(label, n_borders, weight), weight
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.categorical = tags.input_tags.string = (
            tags.input_tags.allow_nan
        ) = True
        tags.transformer_tags.preserves_dtype = []
        return tags
