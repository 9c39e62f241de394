"""Estimators for scikit-learn: its conventions on the outside, `Dataset`, `train` and `Booster` inside.

In: a table, a target, and parameters as attributes. Out: a fitted estimator around its `booster_`.
"""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sapwood import objective
from sapwood.boost import train
from sapwood.boost.round.callback import Callback
from sapwood.data import ingest
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.device import host
from sapwood.errors import DataError, ParameterError, SapwoodError, suggest
from sapwood.model.booster import COUPLED, CUSTOM, Booster
from sapwood.model.io import encode_classes
from sapwood.params import TABLE, moved, names, peers, resolve
from sapwood.params import Parameter as Row
from sapwood.params.recipes import RECIPES
from sapwood.params.types import Number, class_name

OBJECTIVES = host.objectives()


def _fields() -> Iterator[Row]:
    """The objectives' own parameters as rows like those of the table."""
    for name, about in OBJECTIVES.items():
        for field, (low, high, is_open, default, aliases) in about["fields"].items():
            words = ("above", "below") if is_open else ("at least", "at most")
            limits = f"{words[0]} {low:g}" + (f" and {words[1]} {high:g}" if high < 1e300 else "")
            several = " Several in a list: a prediction for each." if field in objective.LEVELS else ""
            doc = f"Of objective={name!r}, {limits}; None is {default:g}.{several}"
            kind = Number(low, high, low_open=is_open, high_open=is_open)
            yield Row(field, kind, None, doc, tuple(filter(None, aliases.split(","))))


FIELDS = {row.name for row in _fields()}  # of objectives; None is what the objective has
ROWS = {row.name: row for row in (*TABLE, *_fields()) if row.estimator}
PEERS = {alias: row.name for row in ROWS.values() for alias in row.aliases}
VALUES = ("identity", "exp", "expm1", "sigmoid", "sigmoid2")  # links to numbers
OF_TWO = ("0 or 1", "a number from 0 to 1")  # labels of losses that know two classes
PROBABILITIES = ("sigmoid", "sigmoid2", "softmax", "one_vs_all", CUSTOM)
MAX_CLASSES = 65_535

Pair = tuple[Any, Any]  # a table and its target
_E = TypeVar("_E")
_M = TypeVar("_M")


class _Rows(Dataset):
    """A dataset whose errors speak of an estimator's arguments."""

    _called = ("y", "sample_weight")


class _Estimator(BaseEstimator):
    """What both estimators share. Parameters live in the table of `sapwood.params` and nowhere else."""

    booster_: Booster
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(self, **params: Any) -> None:
        self.set_params(**params)  # the others are the class's own: an instance has those that were set by hand

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
        init_score: ArrayLike | None = None,
        group: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        init_score_val: ArrayLike | None = None,
        eval_set: Pair | Sequence[Pair] | None = None,
        callbacks: Sequence[Callback] | None = None,
        init_model: "Booster | _Estimator | None" = None,
        **unknown: Any,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            NumPy, scipy's sparse matrices, pandas, polars, Arrow or lists; NaN is a missing value. Text and categorical
            types are categories, and columns that ``categorical_features`` names.
        y : (n_rows,) or (n_rows, n_outputs) array-like
            The target: finite numbers, or classes of any kind; in several columns numbers, or labels of 0 and 1.
        sample_weight : (n_rows,) array-like, optional
            How many rows each row stands for.
        init_score : (n_rows,) or (n_rows, n_outputs) array-like, optional
            Raw scores to start from; predictions then need those of their rows, or are what the trees add to 0.
        group : (n_rows,) or (n_groups,) array-like, optional
            The group of every row, or sizes of groups of consecutive rows; see ``sampling_unit``.
        X_val, y_val, sample_weight_val, init_score_val : optional
            Validation rows, as in scikit-learn; early stopping watches them.
        eval_set : (X, y) or list of (X, y), optional
            Validation sets, as in the other boosting libraries; early stopping watches the last.
        callbacks : sequence of callables, optional
            As in `sapwood.train`.
        init_model : Booster or fitted estimator, optional
            The model to continue from.
        **unknown
            ``categorical_features``, under any of its names (``cat_features``), may be given here too.

        Returns
        -------
        self
        """
        columns = {name: unknown.pop(name) for name in list(unknown) if names().get(name) == "categorical_features"}
        peers.refuse_arguments(self.fit, unknown, names(), f"the constructor, {type(self).__name__}(...)")
        known = getattr(init_model, "classes_", getattr(init_model, "classes", None))
        if isinstance(init_model, _Estimator):
            check_is_fitted(init_model)
            init_model = init_model.booster_
        self._forget()  # not earlier: the model to continue from may be this one
        settings = resolve({**self._by_hand(), **columns}, fields=objective.field_aliases())
        holdouts = _holdouts(X_val, y_val, sample_weight_val, init_score_val, eval_set)
        bins = {name: settings[name] for name in (*BIN_PARAMS, "n_jobs", "categorical_features", "device")}
        try:
            target = _target(type(self), y)
            label = self._learn_target(target, settings, known)
            data = _Rows(X, label, sample_weight, init_score, group=group, **bins)
            self.n_features_in_ = data.n_columns
            if data.named:
                self.feature_names_in_ = np.array(data.feature_names, object)
            valid = []
            for X_held, y_held, *vectors in holdouts:
                self._check_names(X_held)
                held = _target(type(self), y_held)
                if held.shape[1:] != target.shape[1:]:
                    raise DataError(f"A validation target has the shape {held.shape}, but y has {target.shape}.")
                valid.append(_Rows(X_held, self._encode_target(held), *vectors, reference=data, **bins))
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
        tags.input_tags.sparse = True
        return tags

    def _about(self) -> Mapping[str, Any]:
        """What the core says about the objective; nothing where it is chosen in fit, or the user's own."""
        name = self.objective if self.objective != "auto" else RECIPES.get(self.recipe, {}).get("objective")
        return OBJECTIVES.get(name, {}) if isinstance(name, str) else {}

    def __sklearn_clone__(self) -> Self:
        return type(self)(**{name: clone(value, safe=False) for name, value in vars(self).items() if name in ROWS})

    def _by_hand(self) -> dict[str, Any]:
        """The parameters that were set, to whatever value; a recipe sets any others."""
        own = {name: value for name, value in vars(self).items() if name in ROWS}
        return {name: value for name, value in own.items() if value is not None or name not in FIELDS}

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
        if isinstance(X, np.ndarray) and X.dtype.names:  # which scikit-learn does not know of, and predict looks at
            return
        validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)

    def _learn_target(self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None) -> NDArray[Any]:
        """The target as `train` wants it, of the `known` classes if any are; settles the objective."""
        raise NotImplementedError

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """A validation target in the same terms."""
        return y

    def _finish(self, booster: Booster) -> Booster:
        """What the estimator adds to a model."""
        return booster


def _documented(estimator: type[_E]) -> type[_E]:
    """Give an estimator the defaults of the table, and write it into its docstring."""
    lines = []
    for row in ROWS.values():
        setattr(estimator, row.name, row.default)
        lines.append(f"    {row.name} : {row.type}, default={row.default!r}")
        lines.append(textwrap.fill(row.doc, 112, initial_indent=" " * 8, subsequent_indent=" " * 8))
    estimator.__doc__ = (estimator.__doc__ or "").replace("    {parameters}", "\n".join(lines))
    return estimator


@_documented
class SapwoodRegressor(RegressorMixin, _Estimator):
    """Gradient boosting of decision trees for numbers, one target or several (2-D y).

    A `recipe` sets the parameters that you leave out; what you give goes before it.

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

    def predict(self, X: Any, init_score: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict the target of every row, (n_rows,), or all its targets or quantiles, (n_rows, n_outputs)."""
        return self._booster(X).predict(X, init_score=init_score, n_jobs=self.n_jobs)

    def staged_predict(self, X: Any, init_score: ArrayLike | None = None) -> Iterator[NDArray[np.float64]]:
        """Predict after the first round, the second, and so on."""
        return self._booster(X).staged_predict(X, init_score=init_score, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        about = self._about()
        tags.target_tags.multi_output = not about.get("adaptive", False)
        tags.target_tags.positive_only = about.get("labels") in ("a number above 0", "a number of at least 0")
        return tags

    def _learn_target(self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None) -> NDArray[Any]:
        _choose_objective(settings, "squared_error", "link", VALUES)
        return y


def _has_probabilities(estimator: "SapwoodClassifier") -> bool:
    """Whether the objective gives probabilities; where it does not, scikit-learn hides the methods for the reason."""
    if hasattr(estimator, "booster_"):
        name, link = estimator.booster_.objective, estimator.booster_.link
    else:
        try:
            goal = objective.resolve(resolve({"objective": estimator.objective, "recipe": estimator.recipe}))
        except SapwoodError:
            return True  # "auto" has probabilities, and what is wrong fit will say
        name, link = goal.name, goal.link
    if link not in PROBABILITIES:
        raise AttributeError(
            f"objective={name!r} gives no probabilities (its link is {link!r}); use decision_function or another one."
        )
    return True


_where_probable: Callable[[_M], _M] = available_if(_has_probabilities)


@_documented
class SapwoodClassifier(ClassifierMixin, _Estimator):
    """Gradient boosting of decision trees for classes: strings, booleans, any integers.

    A 2-D y of 0 and 1 has a column for each of several labels that a row may have (multilabel). A `recipe` sets
    the parameters that you leave out; what you give goes before it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    booster_ : sapwood.Booster
        The model: predictions in every form, importances, text, files.
    classes_ : (n_classes_,) ndarray
        The classes, sorted; of several labels, their columns.
    n_classes_ : int
    outputs_2d_ : bool
        Whether y had several labels.
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
    outputs_2d_: bool

    def predict(self, X: Any, init_score: ArrayLike | None = None) -> NDArray[Any]:
        """Predict the most probable class of every row, (n_rows,); of several labels 0 or 1, (n_rows, n_classes_)."""
        booster = self._booster(X)
        raw = booster.link not in PROBABILITIES
        return self._decide(booster.predict(X, raw=raw, init_score=init_score, n_jobs=self.n_jobs))

    @_where_probable
    def predict_proba(self, X: Any, init_score: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict the probability of every class or label, (n_rows, n_classes_); columns follow `classes_`."""
        return self._two_columns(self._booster(X).predict(X, init_score=init_score, n_jobs=self.n_jobs))

    @_where_probable
    def predict_log_proba(self, X: Any, init_score: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict the logarithm of every probability, (n_rows, n_classes_)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, init_score))

    def decision_function(self, X: Any, init_score: ArrayLike | None = None) -> NDArray[np.float64]:
        """Compute raw scores: (n_rows,) of the second of two classes (log-odds, say), or (n_rows, n_classes_)."""
        scores = self._booster(X).predict(X, raw=True, init_score=init_score, n_jobs=self.n_jobs)
        two = scores.ndim == 2 and self.n_classes_ == 2 and not self.outputs_2d_
        return scores[:, 1] - scores[:, 0] if two else scores

    def staged_predict(self, X: Any, init_score: ArrayLike | None = None) -> Iterator[NDArray[Any]]:
        """Predict classes after the first round, the second, and so on."""
        booster = self._booster(X)
        raw = booster.link not in PROBABILITIES
        return map(self._decide, booster.staged_predict(X, raw=raw, init_score=init_score, n_jobs=self.n_jobs))

    @_where_probable
    def staged_predict_proba(self, X: Any, init_score: ArrayLike | None = None) -> Iterator[NDArray[np.float64]]:
        """Predict probabilities after the first round, the second, and so on."""
        return map(self._two_columns, self._booster(X).staged_predict(X, init_score=init_score, n_jobs=self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        labels = self._about().get("labels")
        tags.classifier_tags.multi_class = labels not in OF_TWO
        tags.classifier_tags.multi_label = labels != "a class index"
        return tags

    def _decide(self, p: NDArray[np.float64]) -> NDArray[Any]:
        """Classes from the booster's probabilities, or from raw scores where there are none."""
        if self.n_classes_ == 1:
            return self.classes_.repeat(len(p))
        above = 0.5 if self.booster_.link in PROBABILITIES else 0.0
        if self.outputs_2d_:
            return (p > above).astype(np.int64)
        return self.classes_.take(p > above if p.ndim == 1 else p.argmax(axis=1))

    def _two_columns(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
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
        self.outputs_2d_ = y.ndim == 2
        self.classes_, codes = (np.arange(y.shape[1]), y) if self.outputs_2d_ else _classes(y)
        encode_classes(self.classes_)  # raises now on what could not be saved later
        if known is not None:  # some of them may have no rows
            if not set(self.classes_.tolist()) <= set(known.tolist()):
                has = self.classes_.tolist()
                raise DataError(f"init_model knows the classes {known.tolist()}, but y has {has}; train it anew.")
            self.classes_ = known
            codes = self._encode_target(y)
        self.n_classes_ = len(self.classes_)
        if settings["objective"] == "cross_entropy" and (self.outputs_2d_ or self.n_classes_ <= 2):
            settings["objective"] = "logistic"  # what it is where labels are 0 and 1
        if self.outputs_2d_:
            _choose_objective(settings, "multilabel", "labels", ("0 or 1",))
        elif self.n_classes_ <= 2:
            goal = _choose_objective(settings, "logistic", "labels", ("0 or 1", "a class index"))
            settings["n_classes"] = 2 if goal.link in COUPLED else None
        else:
            _choose_objective(settings, "softmax", "labels", ("a class index",))
            settings["n_classes"] = self.n_classes_
        place = {class_name(one): str(index) for index, one in enumerate(self.classes_.tolist())}
        for name in ("subsample_by_class", "class_weight"):  # of the user's classes: those of train are indices
            if isinstance(settings[name], dict):
                if unknown := [one for one in settings[name] if one not in place]:
                    raise ParameterError(f"{name} has a class {unknown[0]!r}; {suggest(unknown[0], place)}")
                settings[name] = {place[one]: value for one, value in settings[name].items()}
        return codes

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        if self.outputs_2d_:
            return y
        found, codes = _classes(y)
        place = {known: index for index, known in enumerate(self.classes_.tolist())}
        if unseen := [one for one in found.tolist() if one not in place]:
            raise DataError(
                f"A validation target has classes that y has not: {unseen}; y has {self.classes_.tolist()}."
            )
        return np.array([place[one] for one in found.tolist()], np.float64)[codes.astype(np.intp)]

    def _finish(self, booster: Booster) -> Booster:
        return booster if self.outputs_2d_ or self.n_classes_ == 1 else replace(booster, classes=self.classes_)


def _known(estimator: type, params: Mapping[str, Any]) -> None:
    """Raise on a name that is no parameter, with the one that was probably meant."""
    for name, value in params.items():
        if name not in ROWS:
            hint = f"did you mean {PEERS[name]!r}?" if name in PEERS else peers.unknown(name, ROWS, estimator.__name__)
            ours, same = moved(name, value)
            hint = hint if ours == name else f"did you mean {ours}={same!r}?"
            raise ParameterError(f"{estimator.__name__} has no parameter {name!r}; {hint}")


def _choose_objective(
    settings: dict[str, Any], fitting: str, what: str, allowed: tuple[str, ...]
) -> objective.Objective:
    """Put the fitting objective in for "auto"; refuse another whose link or labels do not mean the right thing."""
    if settings["objective"] == "auto":
        settings["objective"] = fitting
    goal = objective.resolve(settings)
    if goal.custom is None and getattr(goal, what) not in allowed:
        by_recipe = settings["objective"] == RECIPES.get(settings["recipe"], {}).get("objective")
        which = f"objective={goal.name!r}" + (f", which recipe={settings['recipe']!r} sets," if by_recipe else "")
        binary = ". Only binary classification is supported by it" if what == "labels" and goal.labels in OF_TWO else ""
        choices = ", ".join(name for name, about in OBJECTIVES.items() if about[what] in allowed)
        auto = "" if by_recipe else "'auto' or "  # which is what the recipe sets
        raise ParameterError(f"{which} does not suit this target{binary}; choose {auto}one of {choices}.")
    return goal


def _holdouts(X: Any, y: Any, weight: Any, init_score: Any, eval_set: Any) -> list[tuple[Any, Any, Any, Any]]:
    """The validation sets as (X, y, weight, init_score), however they were given."""
    if (X is None) != (y is None):
        raise DataError("X_val and y_val belong together; give both or neither.")
    for name, value in (("sample_weight_val", weight), ("init_score_val", init_score)):
        if value is not None and X is None:
            raise DataError(f"{name} belongs to X_val, which was not given.")
    if eval_set is None:
        return [] if X is None else [(X, y, weight, init_score)]
    if X is not None:
        raise DataError("X_val and eval_set are two ways to give validation rows; choose one.")
    pairs = eval_set
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
        pairs = [eval_set]
    if not isinstance(pairs, tuple | list) or not all(isinstance(one, tuple | list) and len(one) == 2 for one in pairs):
        raise DataError("eval_set is neither a pair (X, y) nor a list of such pairs.")
    return [(held, target, None, None) for held, target in pairs]


def _target(estimator: type, y: Any) -> NDArray[Any]:
    """A target as an array, 1-D with scikit-learn's warning where it was a column, 2-D where it has several."""
    if y is None:
        raise DataError(f"{estimator.__name__} requires y to be passed, but the target y is None.")
    if np.ma.is_masked(y):  # the next line would let the values beneath the mask through
        raise DataError("Input y contains masked values; drop those rows.")
    y = y if hasattr(y, "shape") else np.asarray(y)
    several = (len(y.shape) == 2 and y.shape[1] > 1) or np.iscomplexobj(y)  # the latter is refused in few words
    array: NDArray[Any] = ingest.floats(y, "y") if several else column_or_1d(y, warn=True)
    return array


def _classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sorted distinct classes, and every row's index among them."""
    if y.dtype.kind in "biuf":
        native = np.float64 if y.dtype.kind == "f" and y.dtype.itemsize not in (4, 8) else y.dtype.newbyteorder("=")
        found = host.distinct(y.astype(native, copy=False), MAX_CLASSES)
        with np.errstate(invalid="ignore"):
            whole = found is not None and (found[0] % 1 == 0).all()  # infinity % 1 is NaN
        if found is None or not whole:
            ingest.label(y, len(y))  # raises first if what is wrong is a value that is not finite
            raise DataError(
                f"Unknown label type: continuous. y has fractions, or more than {MAX_CLASSES} different numbers: these "
                "are no classes. SapwoodRegressor predicts numbers; of shares from 0 to 1, with "
                "objective='cross_entropy', probabilities."
            )
        return found[0].astype(y.dtype), found[1]
    values = y.tolist()  # a dict of Python objects is several times as fast as sorting every row
    try:
        distinct = set(values)
        if any(map(_is_missing, distinct)):
            row = next(row for row, one in enumerate(values) if _is_missing(one))
            raise DataError(f"Input y contains missing values, the first in row {row}; drop those rows.")
        known = sorted(distinct)
    except TypeError as cause:
        raise DataError(f"Unknown label type: the values of y cannot be sorted ({cause}); use one type.") from cause
    place = {one: index for index, one in enumerate(known)}
    return np.array(known, y.dtype), np.fromiter(map(place.__getitem__, values), np.float64, len(values))


def _is_missing(one: Any) -> bool:
    """Whether a label is None, or NaN, NaT or the NA of pandas, which nothing is equal to."""
    differs = one != one
    return one is None or not isinstance(differs, bool | np.bool_) or bool(differs)
