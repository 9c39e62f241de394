"""Estimators for scikit-learn: its conventions on the outside, `Dataset`, `train` and `Booster` inside.

In: a table, a target, and parameters as attributes. Out: a fitted estimator around its `booster_`.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sapwood.boost import train
from sapwood.boost.callback import Callback
from sapwood.data import ingest
from sapwood.data.dataset import Dataset
from sapwood.device import cpu
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.model.booster import Booster
from sapwood.params import TABLE, resolve

ROWS = {row.name: row for row in TABLE if row.estimator}
PEERS = {alias: row.name for row in ROWS.values() for alias in row.aliases}
MAX_CLASSES = 65_535

Pair = tuple[Any, Any]  # a table and its target
_E = TypeVar("_E")


class _Estimator(BaseEstimator):
    """What both estimators share. Parameters live in the table of `sapwood.params` and nowhere else."""

    booster_: Booster
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(self, **params: Any) -> None:
        _known(type(self), params)
        for name, row in ROWS.items():
            setattr(self, name, params.get(name, row.default))

    # What scikit-learn, help() and editors read instead of **params.
    __init__.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            *(Parameter(row.name, Parameter.KEYWORD_ONLY, default=row.default) for row in ROWS.values()),
        ]
    )

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as the constructor does; the estimator itself is returned."""
        _known(type(self), params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        eval_set: Pair | Sequence[Pair] | None = None,
        callbacks: Sequence[Callback] | None = None,
        init_model: "Booster | _Estimator | None" = None,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            NumPy, pandas, polars, Arrow or lists; NaN is a missing value.
        y : (n_rows,) array-like
            The target: finite numbers, or classes of any kind.
        sample_weight : (n_rows,) array-like, optional
            How many rows each row stands for.
        X_val, y_val, sample_weight_val : optional
            Validation rows, as in scikit-learn; early stopping watches them.
        eval_set : (X, y) or list of (X, y), optional
            Validation sets, as in the other boosting libraries; early stopping watches the last.
        callbacks : sequence of callables, optional
            As in `sapwood.train`.
        init_model : Booster or fitted estimator, optional
            The model to continue from.

        Returns
        -------
        self
        """
        known = getattr(init_model, "classes_", getattr(init_model, "classes", None))
        if isinstance(init_model, _Estimator):
            check_is_fitted(init_model)
            init_model = init_model.booster_
        self._forget()  # not earlier: the model to continue from may be this one
        settings = resolve({name: getattr(self, name) for name in ROWS})
        holdouts = _holdouts(X_val, y_val, sample_weight_val, eval_set)
        bins = {name: settings[name] for name in ("max_bins", "min_samples_bin", "n_jobs")}
        try:
            data = Dataset(X, self._learn_target(_target(type(self), y), settings, known), sample_weight, **bins)
            self.n_features_in_ = data.n_columns
            if data.named:
                self.feature_names_in_ = np.array(data.feature_names, object)
            valid = []
            for X_held, y_held, weight in holdouts:
                self._check_names(X_held)
                label = self._encode_target(_target(type(self), y_held))
                valid.append(Dataset(X_held, label, weight, reference=data, **bins))
            watched = valid if len(valid) != 1 else valid[0]
            booster = train(settings, data, valid=watched, callbacks=callbacks, init_model=init_model)
            self.booster_ = self._finish(booster)
        except BaseException:
            self._forget()
            raise
        return self

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Find the leaf of every row in every tree: ids of nodes, (n_rows, n_trees)."""
        return self._booster(X).predict_leaves(X, n_jobs=self.n_jobs)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the gain of all splits, (n_features_in_,)."""
        return self.booster_.importance("total_gain", normalize=True)

    @property
    def n_iter_(self) -> int:
        """Rounds in the model."""
        return self.booster_.n_rounds

    @property
    def best_iteration_(self) -> int:
        """How many rounds early stopping kept; absent where nothing was watched."""
        if self.booster_.best_round is None:
            raise AttributeError("best_iteration_ exists after early stopping only; set early_stopping_rounds.")
        return self.booster_.best_round

    @property
    def evals_result_(self) -> Mapping[str, Any]:
        """Every metric of every validation set, round by round."""
        return self.booster_.history

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "booster_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _forget(self) -> None:
        """Drop what a fit has set: one that fails leaves an estimator that is not fitted."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _booster(self, X: Any) -> Booster:
        """The model, to be used on a table whose names have passed."""
        if not hasattr(self, "booster_"):
            check_is_fitted(self)  # raises; not called otherwise, because it takes longer than predicting a row
        self._check_names(X)
        return self.booster_

    def _check_names(self, X: Any) -> None:
        """Raise or warn as scikit-learn does where names differ from those seen in fit; look at nothing else."""
        validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)

    def _learn_target(self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None) -> NDArray[Any]:
        """The target as `train` wants it, of the `known` classes if any are; settles the objective."""
        raise NotImplementedError

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """A validation target in the same terms."""
        raise NotImplementedError

    def _finish(self, booster: Booster) -> Booster:
        """What the estimator adds to a model."""
        return booster


def _documented(estimator: type[_E]) -> type[_E]:
    """Write the table of parameters into the docstring of an estimator."""
    lines = []
    for row in ROWS.values():
        lines.append(f"    {row.name} : {row.kind}, default={row.default!r}")
        lines.append(textwrap.fill(row.doc, 112, initial_indent=" " * 8, subsequent_indent=" " * 8))
    estimator.__doc__ = (estimator.__doc__ or "").replace("    {parameters}", "\n".join(lines))
    return estimator


@_documented
class SapwoodRegressor(RegressorMixin, _Estimator):
    """Gradient boosting of decision trees for numbers.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: predictions in every form, importances, text, files.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) ndarray of str
        Present where the training table had names.
    n_iter_ : int
    best_iteration_ : int
        Present after early stopping.
    evals_result_ : mapping
    feature_importances_ : (n_features_in_,) ndarray

    Examples
    --------
    >>> from sapwood import SapwoodRegressor
    >>> SapwoodRegressor(n_estimators=1, learning_rate=1, reg_lambda=0).fit([[0], [1]], [2, 4]).predict([[0], [1]])
    array([2., 4.])
    """

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of every row, (n_rows,)."""
        return self._booster(X).predict(X, n_jobs=self.n_jobs)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predict after the first round, the second, and so on."""
        return self._booster(X).staged_predict(X, n_jobs=self.n_jobs)

    def _learn_target(self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None) -> NDArray[Any]:
        settings["objective"] = _objective(settings["objective"], "squared_error", ("identity", "sigmoid"))
        return y

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        return y


@_documented
class SapwoodClassifier(ClassifierMixin, _Estimator):
    """Gradient boosting of decision trees for classes: strings, booleans, any integers.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: predictions in every form, importances, text, files.
    classes_ : (n_classes_,) ndarray
        The classes, sorted.
    n_classes_ : int
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) ndarray of str
        Present where the training table had names.
    n_iter_ : int
    best_iteration_ : int
        Present after early stopping.
    evals_result_ : mapping
    feature_importances_ : (n_features_in_,) ndarray

    Examples
    --------
    >>> from sapwood import SapwoodClassifier
    >>> SapwoodClassifier(min_child_weight=0).fit([[0], [1]], ["no", "yes"]).predict([[0], [1]])
    array(['no', 'yes'], dtype='<U3')
    """

    classes_: NDArray[Any]
    n_classes_: int

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of every row, (n_rows,)."""
        return self._decide(self._booster(X).predict(X, n_jobs=self.n_jobs))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of every class, (n_rows, n_classes_); columns follow `classes_`."""
        return self._spread(self._booster(X).predict(X, n_jobs=self.n_jobs))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the logarithm of every class's probability, (n_rows, n_classes_)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute raw scores: (n_rows,) log-odds of the second of two classes, or (n_rows, n_classes_)."""
        return self._booster(X).predict(X, raw=True, n_jobs=self.n_jobs)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predict classes after the first round, the second, and so on."""
        return map(self._decide, self._booster(X).staged_predict(X, n_jobs=self.n_jobs))

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predict probabilities after the first round, the second, and so on."""
        return map(self._spread, self._booster(X).staged_predict(X, n_jobs=self.n_jobs))

    def _decide(self, p: NDArray[np.float64]) -> NDArray[Any]:
        """Classes from the booster's probabilities."""
        if self.n_classes_ == 1:
            return self.classes_.repeat(len(p))
        return self.classes_.take(p > 0.5 if p.ndim == 1 else p.argmax(axis=1))

    def _spread(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """One column per class from the booster's probabilities."""
        if self.n_classes_ == 1:
            return np.ones((len(p), 1))
        if p.ndim == 2:
            return p
        both = np.empty((len(p), 2))
        np.subtract(1.0, p, out=both[:, 0])
        both[:, 1] = p
        return both

    def _learn_target(self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None) -> NDArray[Any]:
        self.classes_, codes = _classes(y)
        self.n_classes_ = len(self.classes_)
        if known is not None and known.tolist() != self.classes_.tolist():
            raise DataError(f"init_model knows the classes {known.tolist()}, but y has {self.classes_.tolist()}.")
        if self.n_classes_ <= 2:
            settings["objective"] = _objective(settings["objective"], "logistic", ("sigmoid", "softmax"))
        else:
            settings["objective"] = _objective(settings["objective"], "softmax", ("softmax",))
        settings["n_classes"] = max(2, self.n_classes_)
        return codes

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        found, codes = _classes(y)
        place = {known: index for index, known in enumerate(self.classes_.tolist())}
        if unseen := [one for one in found.tolist() if one not in place]:
            raise DataError(
                f"A validation target has classes that y has not: {unseen}; y has {self.classes_.tolist()}."
            )
        return np.array([place[one] for one in found.tolist()], np.float64)[codes.astype(np.intp)]

    def _finish(self, booster: Booster) -> Booster:
        return replace(booster, classes=self.classes_) if self.n_classes_ > 1 else booster


def _known(estimator: type, params: Mapping[str, Any]) -> None:
    """Raise on a name that is no parameter, with the one that was probably meant."""
    for name in params:
        if name not in ROWS:
            hint = f"did you mean {PEERS[name]!r}?" if name in PEERS else suggest(name, ROWS)
            raise ParameterError(f"{estimator.__name__} has no parameter {name!r}; {hint}")


def _objective(name: str, fitting: str, links: tuple[str, ...]) -> str:
    """The objective to use: the fitting one for "auto", else the given one if its predictions mean the right thing."""
    known = cpu.objectives()
    if name in known and known[name]["link"] not in links:
        choices = ", ".join(other for other in known if known[other]["link"] in links)
        raise ParameterError(f"objective={name!r} does not suit this target; choose 'auto' or one of {choices}.")
    return fitting if name == "auto" else name


def _holdouts(X: Any, y: Any, weight: Any, eval_set: Any) -> list[tuple[Any, Any, Any]]:
    """The validation sets as (X, y, weight), however they were given."""
    if (X is None) != (y is None):
        raise DataError("X_val and y_val belong together; give both or neither.")
    if weight is not None and X is None:
        raise DataError("sample_weight_val is the weight of X_val, which was not given.")
    if eval_set is None:
        return [] if X is None else [(X, y, weight)]
    if X is not None:
        raise DataError("X_val and eval_set are two ways to give validation rows; choose one.")
    single = isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple)
    pairs = [eval_set] if single else list(eval_set)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DataError("eval_set is neither a pair (X, y) nor a list of such pairs.")
    return [(held, target, None) for held, target in pairs]


def _target(estimator: type, y: Any) -> NDArray[Any]:
    """A target as a 1-D array, with scikit-learn's warning where it was a column."""
    if y is None:
        raise DataError(f"{estimator.__name__} requires y to be passed, but the target y is None.")
    if np.ma.is_masked(y):  # the next line would let the values beneath the mask through
        raise DataError("Input y contains masked values; drop those rows.")
    array: NDArray[Any] = column_or_1d(y, warn=True)
    return array


def _classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sorted distinct classes, and every row's index among them."""
    if y.dtype.kind in "biuf":
        native = np.float64 if y.dtype.kind == "f" and y.dtype.itemsize not in (4, 8) else y.dtype.newbyteorder("=")
        found = cpu.distinct(y.astype(native, copy=False), MAX_CLASSES)
        with np.errstate(invalid="ignore"):
            whole = found is not None and (found[0] % 1 == 0).all()  # infinity % 1 is NaN
        if found is None or not whole:
            ingest.label(y, len(y))  # raises first if what is wrong is a value that is not finite
            raise DataError(
                f"Unknown label type: continuous. y has fractions, or more than {MAX_CLASSES} different numbers: these "
                "are no classes. SapwoodRegressor predicts numbers."
            )
        return found[0].astype(y.dtype), found[1]
    values = y.tolist()  # a dict of Python objects is several times as fast as sorting every row
    try:
        known = sorted(set(values))
        missing = any(one is None or one != one for one in known)
    except TypeError as cause:
        raise DataError(f"Unknown label type: the values of y cannot be sorted ({cause}); are some missing?") from cause
    if missing:
        raise DataError("Input y contains missing values; drop those rows.")
    place = {one: index for index, one in enumerate(known)}
    return np.array(known, y.dtype), np.fromiter(map(place.__getitem__, values), np.float64, len(values))
