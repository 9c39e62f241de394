"""The common part of all estimators: parameters as attributes, `fit`, and what is asked
of a fitted one.

In: a table, a target, and parameters as attributes. Out: a fitted estimator around its
`booster_`.
"""

from __future__ import annotations

import inspect
import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from sapwood import objective
from sapwood.boost import auto, train
from sapwood.boost.spec import take_callbacks
from sapwood.data.bin_arguments import DERIVED
from sapwood.data.dataset import Dataset
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.data.deferred import Deferred
from sapwood.data.ingest.frames import wrap
from sapwood.errors import DataError, ParameterError
from sapwood.interfaces import intervals, parameters
from sapwood.interfaces import target as targets
from sapwood.interfaces.files import ModelFiles
from sapwood.interfaces.parameters import (
    OBJECTIVES,
    OF_NUMBERS_AND_CLASSES,
    PARAMETERS,
    is_default,
)
from sapwood.interfaces.peer_names import PeerNames, importances
from sapwood.model.booster import Booster
from sapwood.params import Parameter, given_names, names, resolve
from sapwood.params.recipes import RECIPES

# links of a regressor
VALUES = ("identity", "ascending", "exp", "expm1", "sigmoid", "sigmoid2")
OF_TWO = ("0 or 1", "a number from 0 to 1")  # labels of objectives for two classes
# An estimator with one of these trains once, as it says, unless quality is set by hand
# too.
# of these also the default, where it is given
ROUNDS = ("n_estimators", "early_stopping_rounds")
PLAIN = (
    "recipe",
    "n_estimators",
    "early_stopping_rounds",
    "boosting",
    "tree_method",
    "n_parallel_trees",
    "forced_splits",
    "eval_metric",
    "prune_by_validation",
)

# what a Dataset is told
BINS = (*BIN_PARAMS, "n_jobs", "categorical_features", "device", *DERIVED)
BESIDE = {
    "verbose",
    "silent",
    "plot",
    "logging_level",
    "cat_features",
    "categorical_feature",
    "categorical_features",
}

# of every estimator, in its docstring
FITTED = """\
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) ndarray of str
        Present where the training table had names.
    n_iter_ : int
    feature_importances_ : (n_features_in_,) ndarray"""
WATCHED = """\
    best_iteration_ : int
        Present after early stopping.
    evals_result_ : mapping"""  # of those that report validation rows

Pair = tuple[Any, Any]  # a table and its target
E = TypeVar("E", bound="Estimator")


class EstimatorDataset(Dataset):
    """A dataset whose errors speak of an estimator's arguments."""

    _called = ("y", "sample_weight")
    _keeps = False


class AutomaticDataset(EstimatorDataset):
    """The dataset of an automatic fit, which chooses how many bins there are by the
    shape of the table.
    """

    def _fill(
        self,
        chunks: Any,
        known: Any,
        feature_names: Any,
        named: bool,
        bins: Any,
        *more: Any,
        **others: Any,
    ) -> None:
        n_rows = sum(chunk.n_rows for chunk in chunks)
        bins = {
            **bins,
            "max_bins": auto.max_bins(n_rows, len(feature_names), bins["max_bins"]),
        }
        super()._fill(chunks, known, feature_names, named, bins, *more, **others)


def signature(table: Mapping[str, Parameter], *by_place: str) -> inspect.Signature:
    """What scikit-learn, help() and editors read instead of ``**params``; arguments
    `by_place` come first.
    """
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    key = inspect.Parameter.KEYWORD_ONLY
    rows = [table[name] for name in by_place] + [
        row for row in table.values() if row.name not in by_place
    ]
    kinds = [
        (row.name, place if row.name in by_place else key, row.default) for row in rows
    ]
    arguments = [
        inspect.Parameter(name, kind, default=default) for name, kind, default in kinds
    ]
    return inspect.Signature([inspect.Parameter("self", place), *arguments])


class Estimator(ModelFiles, PeerNames, BaseEstimator):
    """The common part of the estimators. Parameters are defined in the table of
    `sapwood.params` only.
    """

    _table: ClassVar[Mapping[str, Parameter]] = OF_NUMBERS_AND_CLASSES
    booster_: Booster
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(self, **params: Any) -> None:
        # defaults are attributes of the class; an instance has only what was set
        self.set_params(**params)

    __init__.__signature__ = signature(OF_NUMBERS_AND_CLASSES)  # type: ignore[attr-defined]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, ours or a peer's, as the constructor does; the
        estimator itself is returned.
        """
        for name, value in parameters.ours(
            type(self), self._table, params, vars(self)
        ).items():
            setattr(self, name, value)
        return self

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        init_score: ArrayLike | None = None,
        group: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        init_score_val: ArrayLike | None = None,
        eval_set: Pair | Sequence[Pair] | None = None,
        callbacks: Sequence[Any] | None = None,
        init_model: Booster | Estimator | None = None,
        **more: Any,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            NumPy, scipy's sparse matrices, pandas, polars, Arrow or lists, or a `Pool`;
            NaN is a missing value. Text and categorical types are categories, and
            columns that ``categorical_features`` names.
        y : (n_rows,) or (n_rows, n_outputs) array-like
            The target, unless a `Pool` has it: finite numbers, or classes of any kind;
            in several columns numbers, or labels of 0 and 1.
        sample_weight : (n_rows,) array-like, optional
            How many rows each row stands for.
        init_score : (n_rows,) or (n_rows, n_outputs) array-like, optional
            Raw scores to start from; predictions then need those of their rows, or are
            what the trees add to 0.
        group : (n_rows,) or (n_groups,) array-like, optional
            The group of every row, or sizes of groups of consecutive rows; see
            ``sampling_unit``.
        X_val, y_val, sample_weight_val, init_score_val : optional
            Validation rows, as in scikit-learn; early stopping watches them.
        eval_set : (X, y) or list of (X, y), optional
            Validation sets; early stopping watches the last that is not (X, y) itself.
            The peers' ``eval_names``, and weights and first scores as lists, go with
            it.
        callbacks : sequence of callables, optional
            As in `sapwood.train`.
        init_model : Booster or fitted estimator, optional
            The model to continue from.
        **more
            ``categorical_features``, ``eval_metric``, ``early_stopping_rounds`` and
            ``verbose``, under any of their names, and ``use_best_model``, for this fit
            alone.

        Returns
        -------
        self
        """
        start = time.monotonic()
        if isinstance(X, Deferred):
            X, y, sample_weight, more = targets.unpacked(X, y, sample_weight, more)
        if X_val is not None and eval_set is not None:
            raise DataError(
                "X_val and eval_set are two ways to give validation rows; choose one."
            )
        sets = targets.peer_sets(more, eval_set)
        init_score = more.pop("base_margin", None) if init_score is None else init_score
        init_model = more.pop("xgb_model", None) if init_model is None else init_model
        now = parameters.of_fit(
            self.fit, more, f"the constructor, {type(self).__name__}(...)"
        )
        holdouts = (
            targets.holdouts(X_val, y_val, sample_weight_val, init_score_val) + sets
        )
        rows = targets.TrainingRows(X, y, sample_weight, init_score, group)
        if self.conformal is not None:
            intervals.fit(
                self,
                rows,
                bool(holdouts) or init_model is not None,
                callbacks,
                now,
                start,
            )
            return self
        return self._fit(rows, holdouts, callbacks, init_model, now, start)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Find the leaf of every row in every tree: ids of nodes, (n_rows, n_trees)."""
        return self._booster(X).predict_leaves(X, n_jobs=self.n_jobs)

    def report(
        self,
        X: Any,
        y: ArrayLike,
        path: Any = None,
        *,
        train: Pair | None = None,
        title: Any = None,
    ) -> str:
        """Make one HTML page about the model and rows it has not seen;
        `sapwood.report.report` has the arguments.
        """
        return self._booster(X).report(X, y, path, train=train, title=title)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the gain of all splits, or what `importance_type`
        asks for, (n_features_in_,).
        """
        return importances(self.booster_, self.importance_type)

    @property
    def n_iter_(self) -> int:
        """Rounds in the model."""
        return self.booster_.n_rounds

    @property
    def best_iteration_(self) -> int:
        """How many rounds early stopping kept; absent where nothing was watched."""
        if self.booster_.best_round is None:
            raise AttributeError(
                "best_iteration_ exists after early stopping only; set early_stopping_rounds."
            )
        return self.booster_.best_round

    @property
    def chosen_(self) -> Any:
        """What an automatic fit has tried and decided, in words and figures; absent
        after a plain fit.
        """
        check_is_fitted(self)
        if self.booster_.chosen is None:
            raise AttributeError(
                "chosen_ exists after an automatic fit only. This one was plain: parameters or arguments of fit said "
                "how to train, or there were too few rows to hold some out."
            )
        return self.booster_.chosen

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "booster_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _objective_info(self) -> Mapping[str, Any]:
        """The core's description of the objective; empty if fit chooses it, or if it is
        a custom one.
        """
        name = (
            self.objective
            if self.objective != "auto"
            else RECIPES.get(self.recipe, {}).get("objective")
        )
        return OBJECTIVES.get(name, {}) if isinstance(name, str) else {}

    def __sklearn_clone__(self) -> Self:
        return type(self)(
            **{
                name: clone(value, safe=False)
                for name, value in vars(self).items()
                if name in self._table
            }
        )

    def _given(self) -> dict[str, Any]:
        """The parameters of a training that the user has set; a recipe or an automatic
        fit may set the others.
        """
        given = parameters.given(self._table, vars(self))
        given.pop("importance_type", None)  # it is for `feature_importances_`
        return given

    def _fit(
        self,
        rows: targets.TrainingRows,
        holdouts: Sequence[targets.Holdout],
        callbacks: Any,
        init_model: Booster | Estimator | None,
        now: Mapping[str, Any],
        start: float,
    ) -> Self:
        """Train since `start`; `now` has the parameters of this fit alone, under any of
        their names.
        """
        known = getattr(init_model, "classes_", getattr(init_model, "classes", None))
        if isinstance(init_model, Estimator):
            check_is_fitted(init_model)
            init_model = init_model.booster_
        self._forget()  # not earlier: the model to continue from may be this one
        named = {names().get(name) for name in now} - {"categorical_features"}
        before = {
            name: value for name, value in self._given().items() if name not in named
        }
        rates, callbacks = take_callbacks({}, callbacks)
        settings = resolve({**before, **now, **rates}, fields=objective.field_aliases())
        bins = {name: settings[name] for name in BINS}
        told = (
            holdouts
            or callbacks
            or now.keys() - BESIDE
            or init_model is not None
            or rows.init_score is not None
        )
        quality = self._automatic(settings, bool(told))
        bins["linear_leaves"] |= quality is not None and _values_fit(rows.X)
        kind = (
            AutomaticDataset
            if quality is not None and "max_bins" not in before
            else EstimatorDataset
        )
        try:
            label = self._learn_target(
                target := targets.target(type(self), rows.y), settings, known
            )
            weight = rows.weight if rows.bin_weight is None else rows.bin_weight
            data: Dataset = kind(
                rows.X, label, weight, rows.init_score, group=rows.group, **bins
            )
            data = data if rows.bin_weight is None else data.with_weight(rows.weight)
            self.n_features_in_ = data.n_given
            if data.named:
                self.feature_names_in_ = np.array(
                    data.feature_names[: data.n_given], object
                )
            n_classes = getattr(self, "n_classes_", 0)
            plain = quality is None or not auto.enough(data, n_classes)
            if plain and quality is not None:
                asked = "quality" in self._given()
                by_hand = given_names({**before, **now})
                settings |= auto.without_holdout(
                    {**settings, "quality": quality}, data, asked, n_classes, by_hand
                )
            data = (
                data.without_values()
                if plain and not settings["linear_leaves"]
                else data
            )
            valid = {
                one.name: data
                if one.X is rows.X and one.y is rows.y
                else self._validation_set(one, target, data, bins)
                for one in holdouts
            }
            if quality is None or plain:
                callbacks = callbacks or auto.deadline.of_plain(
                    settings["time_limit"], start, data
                )
                settings |= {"quality": None, "time_limit": None}
                settings |= {
                    name: now[name] for name in ("use_best_model",) if name in now
                }
                if (
                    settings["early_stopping_rounds"] is not None
                    and "validation_fraction" not in before
                ):
                    # so that train says that rows are held out
                    settings.pop("validation_fraction")
                booster = train(
                    settings,
                    data,
                    valid=valid,
                    callbacks=callbacks,
                    init_model=init_model,
                )
            else:
                booster = self._fit_automatically(settings, data, quality, start)
            self.booster_ = self._finish(booster)
        except BaseException:
            self._forget()
            raise
        return self

    def _automatic(self, settings: Mapping[str, Any], told: bool) -> str | None:
        """The quality of an automatic fit; None where parameters or arguments (`told`)
        say how to train.
        """
        given = self._given()
        asked = "quality" in given
        quality: str | None = settings["quality"] if asked else self.quality
        if asked and quality is not None:
            auto.check(quality, told)
            return quality
        why = ["quality=None"] if asked else ["an argument of fit"] if told else []
        by_hand = [name for name in PLAIN if name in given]
        said = [
            name
            for name in by_hand
            if name in ROUNDS or not is_default(PARAMETERS[name], given[name])
        ]
        why += [f"{name} without quality" for name in said]
        why += (
            []
            if isinstance(settings["objective"], str)
            else ["an objective of your own"]
        )
        if why and self.time_limit is not None:
            raise ParameterError(
                f"time_limit is for an automatic fit, but {why[0]} means a plain one; leave one out."
            )
        return None if why else quality

    def _validation_set(
        self,
        given: targets.Holdout,
        target: NDArray[Any],
        data: Dataset,
        bins: Mapping[str, Any],
    ) -> Dataset:
        """A validation set in the bins of the training data."""
        self._check_names(given.X)
        held = targets.target(type(self), given.y)
        if held.shape[1:] != target.shape[1:]:
            raise DataError(
                f"A validation target has the shape {held.shape}, but y has {target.shape}."
            )
        vectors = given.weight, given.init_score
        return EstimatorDataset(
            given.X, self._encode_target(held), *vectors, reference=data, **bins
        )

    def _fit_automatically(
        self, settings: Mapping[str, Any], data: Dataset, quality: str, start: float
    ) -> Booster:
        """The model of an automatic fit since `start`; `settings` has the objective
        that suits the target.
        """
        own = (*self._given(), "objective", "n_classes")
        given = {name: settings[name] for name in own if name in settings}
        limit = settings["time_limit"]
        return auto.fit(
            given,
            data,
            quality,
            None if limit is None else max(0.0, limit - time.monotonic() + start),
        )

    def _forget(self) -> None:
        """Delete what a fit has set, so that a fit that fails leaves an estimator that
        is not fitted.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _booster(self, X: Any) -> Booster:
        """The model, after a check of the table's column names."""
        if not hasattr(self, "booster_"):
            # raises; not called otherwise, because it takes longer than predicting a
            # row
            check_is_fitted(self)
        few = self.booster_._few_rows
        # the names of a frame that was seen before are right
        if few is None or not few.knows(X):
            self._check_names(X)
        return self.booster_

    def _check_names(self, X: Any) -> None:
        """Raise or warn as scikit-learn does if column names differ from those seen in
        fit.
        """
        # scikit-learn knows no structured arrays, and the model says more of what is no
        # table.
        if (
            not (isinstance(X, np.ndarray) and X.dtype.names)
            and getattr(X, "ndim", 2) == 2
        ):
            try:
                validate_data(
                    self, X, reset=False, skip_check_array=True, ensure_2d=False
                )
            except ValueError:
                wrap(X, "X")  # names that are not unique have the same error as in fit
                raise

    def _learn_target(
        self, y: NDArray[Any], settings: dict[str, Any], known: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Encode the target for `train`, with the `known` classes if given, and choose
        the objective.
        """
        raise NotImplementedError

    def _encode_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Encode a validation target in the same way."""
        return y

    def _finish(self, booster: Booster) -> Booster:
        """Add to the model what only the estimator knows."""
        return booster


def documented(estimator: type[E]) -> type[E]:
    """Set the defaults of an estimator's table as attributes, and write the table into
    its docstring.
    """
    lines = []
    for row in estimator._table.values():
        setattr(estimator, row.name, row.default)
        lines.append(f"    {row.name} : {row.type}, default={row.default!r}")
        lines.append(
            textwrap.fill(
                row.doc, 112, initial_indent=" " * 8, subsequent_indent=" " * 8
            )
        )
    texts = {
        "parameters": "\n".join(lines),
        "attributes": f"{FITTED}\n{WATCHED}",
        "fitted": FITTED,
    }
    for place, text in texts.items():
        estimator.__doc__ = (estimator.__doc__ or "").replace(f"    {{{place}}}", text)
    return estimator


def _values_fit(X: Any) -> bool:
    """Whether the values of a table can be kept beside its bins: it is not sparse, and
    not large.
    """
    shape = getattr(X, "shape", (0, 0))
    return (
        not hasattr(X, "tocsc") and len(shape) == 2 and shape[0] * shape[1] < auto.LARGE
    )


def choose_objective(
    settings: dict[str, Any], fitting: str, what: str, allowed: tuple[str, ...]
) -> objective.Objective:
    """Replace "auto" by the fitting objective; raise if the objective's link or labels
    (`what`) are not allowed.
    """
    if settings["objective"] == "auto":
        settings["objective"] = fitting
    goal = objective.resolve(settings)
    if goal.custom is None and getattr(goal, what) not in allowed:
        by_recipe = settings["objective"] == RECIPES.get(settings["recipe"], {}).get(
            "objective"
        )
        which = f"objective={goal.name!r}" + (
            f", which recipe={settings['recipe']!r} sets," if by_recipe else ""
        )
        binary = (
            ". Only binary classification is supported by it"
            if what == "labels" and goal.labels in OF_TWO
            else ""
        )
        choices = ", ".join(
            name for name, about in OBJECTIVES.items() if about[what] in allowed
        )
        auto = "" if by_recipe else "'auto' or "  # the recipe would set the same again
        raise ParameterError(
            f"{which} does not suit this target{binary}; choose {auto}one of {choices}."
        )
    return goal
