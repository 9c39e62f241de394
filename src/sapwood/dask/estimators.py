"""The estimators of scikit-learn's kind on a Dask cluster.

In: Dask collections. Out: fitted estimators with the model of a plain fit in memory;
predictions as arrays of Dask.
"""

from collections.abc import Sequence
from typing import Any, Self

import dask
import numpy as np
from distributed import Client, get_client
from numpy.typing import NDArray

from sapwood import objective
from sapwood.boost.round.callback import Callback
from sapwood.dask import parts
from sapwood.dask.prediction import mapped
from sapwood.dask.training import TIMEOUT, show_warnings, start_training
from sapwood.errors import DataError, ParameterError
from sapwood.interfaces import parameters
from sapwood.interfaces import target as targets
from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor
from sapwood.params import names, resolve


class _OnDask:
    """The part of both estimators that knows Dask."""

    local: type  # the estimator for data in memory

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as the constructor does; the estimator itself is
        returned.
        """
        for name in ("client", "timeout"):
            if name in params:
                raise ParameterError(
                    f"{name} is an argument of fit, not a parameter: fit(X, y, {name}=...)."
                )
        return super().set_params(**params)  # type: ignore[misc, no-any-return]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        eval_set: Any = None,
        callbacks: Sequence[Callback] | None = None,
        init_model: Any = None,
        client: Client | None = None,
        timeout: float = TIMEOUT,
        **more: Any,
    ) -> Self:
        """Train on Dask collections.

        Parameters
        ----------
        X : dask DataFrame, dask Array, or list of delayed tables or futures
            The rows; they stay where they lie.
        y, sample_weight : Series or Array of Dask, or list of delayed arrays or futures
            The target, and how many rows each row stands for, with the partitions of X.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation rows.
        eval_set : (X, y) or list of such pairs, optional
            The same in another way, or several of them, with the peers' ``eval_names``
            and lists of weights.
        callbacks : sequence of callables, optional
            They run on every worker.
        init_model : Booster or fitted estimator, optional
            The model to continue from.
        client : distributed.Client, optional
            The cluster; the current client by default. With an asynchronous client, the
            result must be awaited.
        timeout : float
            Seconds after which a worker that does not answer counts as lost.
        **more
            ``categorical_features``, ``eval_metric``, ``early_stopping_rounds`` and
            ``verbose``, under any of their names, for this fit alone.

        Returns
        -------
        self
            With an asynchronous client, an awaitable of it.
        """
        for what, given in (("X", X), ("y", y)):
            if not isinstance(given, list | tuple) and not parts.on_cluster(given):
                raise DataError(
                    f"{what} is a {type(given).__name__}, and {type(self).__name__} takes collections of Dask; data in "
                    f"memory is for {self.local.__name__}."
                )
        if X_val is not None and eval_set is not None:
            raise DataError(
                "X_val and eval_set are two ways to give validation rows; choose one."
            )
        sets = targets.holdouts(
            X_val, y_val, sample_weight_val, None
        ) + targets.peer_sets(more, eval_set)
        if any(one.init_score is not None for one in sets):
            raise DataError(
                "first scores of validation sets are for data in memory; leave them out."
            )
        now = parameters.of_fit(
            self.fit, more, f"the constructor, {type(self).__name__}(...)"
        )
        client = get_client() if client is None else client
        said: list[str] | None = None if client.asynchronous else []
        found: Self = client.sync(
            self._fit_on,
            client,
            X,
            y,
            sample_weight,
            sets,
            callbacks,
            init_model,
            timeout,
            now,
            said,
        )
        show_warnings(said)
        return found

    async def _fit_on(
        self: Any,
        client: Client,
        X: Any,
        y: Any,
        weight: Any,
        holdouts: Sequence[targets.Holdout],
        callbacks: Sequence[Callback] | None,
        init_model: Any,
        timeout: float,
        now: dict[str, Any],
        said: list[str] | None,
    ) -> Any:
        known = getattr(init_model, "classes_", getattr(init_model, "classes", None))
        init_model = getattr(init_model, "booster_", init_model)
        given = self._given()
        if given.get("quality") is not None:
            raise ParameterError(
                f"quality={given['quality']!r} is for data in memory; on Dask a fit is a plain one."
            )
        named = {names().get(name) for name in now}
        given = {
            name: value for name, value in given.items() if name not in named
        } | now
        settings = resolve(given, fields=objective.field_aliases()) | {"quality": None}
        settings |= {name: now[name] for name in ("use_best_model",) if name in now}
        self._forget()
        y = await self._targets(client, X, y, settings, known)
        valid = {
            one.name: (one.X, self._encoded(one.y, one.X), one.weight)
            for one in holdouts
        }
        booster = await start_training(
            client, settings, X, y, weight, valid, callbacks, init_model, timeout, said
        )
        self.n_features_in_ = booster.n_columns
        if booster.named:
            self.feature_names_in_ = np.array(booster.feature_names, object)
        self.booster_ = self._finish(booster)
        return self

    async def _targets(
        self: Any, client: Client, X: Any, y: Any, settings: dict[str, Any], known: Any
    ) -> Any:
        self._learn_target(np.zeros(1), settings, known)
        return y

    def _encoded(self, y: Any, X: Any) -> Any:
        return y

    def to_local(self: Any) -> Any:
        """Make the estimator for data in memory that has the same model."""
        found = self.local()
        vars(found).update(vars(self))
        return found

    def _map(self: Any, method: str, X: Any, **more: Any) -> Any:
        """A method for Dask collections, block by block; for data in memory as it
        is.
        """
        local = self.to_local()
        return (
            mapped(local, method, X, more)
            if parts.on_cluster(X)
            else getattr(local, method)(X, **more)
        )

    def predict(self, X: Any, **more: Any) -> Any:
        """Predict the target of every row: an array of Dask for Dask collections.

        ``more``: the peers' arguments, as in `Booster.predict`.
        """
        return self._map("predict", X, **more)

    def score(
        self: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        client: Client | None = None,
    ) -> Any:
        """The score of the estimator for data in memory. Predictions and targets come
        to the client, rows do not.

        With an asynchronous client, the result must be awaited.
        """
        if not parts.on_cluster(X):
            return self.to_local().score(X, y, sample_weight)
        client = get_client() if client is None else client
        return client.sync(self._score_on, client, X, y, sample_weight)

    async def _score_on(
        self: Any, client: Client, X: Any, y: Any, weight: Any
    ) -> float:
        local = self.to_local()
        columns = [
            mapped(local, "predict", parts.blocks(X, "X"), {}),
            parts.blocks(y, "y", X),
        ]
        columns += [] if weight is None else [parts.blocks(weight, "sample_weight", X)]
        found = [await client.gather(client.compute(one)) for one in columns]
        predicted, *given = (
            np.concatenate([np.asarray(part) for part in one]) for one in found
        )
        local.predict = lambda X: predicted
        return float(local.score(None, *given))


class DaskSapwoodRegressor(_OnDask, SapwoodRegressor):  # type: ignore[misc]
    """`sapwood.SapwoodRegressor` on a Dask cluster: parameters and attributes are the
    same.

    A fit is a plain one (``quality=None``), and has the bytes of such a fit in memory.
    """

    local = SapwoodRegressor


class DaskSapwoodClassifier(_OnDask, SapwoodClassifier):  # type: ignore[misc]
    """`sapwood.SapwoodClassifier` on a Dask cluster: parameters and attributes are the
    same.

    A fit is a plain one (``quality=None``), and has the bytes of such a fit in memory.
    """

    local = SapwoodClassifier

    async def _targets(
        self, client: Client, X: Any, y: Any, settings: dict[str, Any], known: Any
    ) -> Any:
        distinct = dask.delayed(_distinct, name="sapwood-classes")
        found = await client.gather(
            client.compute([distinct(one) for one in parts.blocks(y, "y", X)])
        )
        several = next((one for one in found if one.ndim == 2), None)
        classes = (
            np.concatenate([one for one in found if len(one)] or found)
            if several is None
            else several
        )
        self._learn_target(classes, settings, known)
        return self._encoded(y, X)

    def _encoded(self, y: Any, X: Any) -> Any:
        if self.outputs_2d_:
            return y
        encode = dask.delayed(_codes, name="sapwood-labels")
        return [encode(self.classes_, one) for one in parts.blocks(y, "y", X)]

    def predict_proba(self, X: Any, **more: Any) -> Any:  # type: ignore[override]
        """Predict the probability of every class: an array of Dask for Dask
        collections.
        """
        return self._map("predict_proba", X, **more)

    def decision_function(self, X: Any) -> Any:  # type: ignore[override]
        """Compute raw scores: an array of Dask for Dask collections."""
        return self._map("decision_function", X)


def _distinct(y: Any) -> NDArray[Any]:
    """The classes of a partition; of several labels, a row of as many."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        return np.zeros((1, values.shape[1]))
    return targets.classes(values.ravel())[0] if values.size else values.ravel()


def _codes(classes: NDArray[Any], y: Any) -> NDArray[np.float64]:
    """The index of every row's class."""
    model = SapwoodClassifier()
    model.classes_ = classes
    model.outputs_2d_ = False
    values = np.asarray(y).ravel()
    return np.asarray(
        model._encode_target(values) if len(values) else np.empty(0), np.float64
    )
