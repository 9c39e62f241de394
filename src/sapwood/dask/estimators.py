"""The estimators of scikit-learn's kind on a Dask cluster.

In: Dask collections. Out: fitted estimators with the model of a plain fit in memory; predictions as arrays of Dask.
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
from sapwood.dask.training import TIMEOUT, start_training
from sapwood.errors import ParameterError
from sapwood.interfaces import target as targets
from sapwood.interfaces.sklearn import SapwoodClassifier, SapwoodRegressor
from sapwood.params import resolve


class _OnDask:
    """The part of both estimators that knows Dask."""

    local: type  # the estimator for data in memory

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
            The same in another way, or several of them.
        callbacks : sequence of callables, optional
            They run on every worker.
        init_model : Booster or fitted estimator, optional
            The model to continue from.
        client : distributed.Client, optional
            The cluster; the current client by default. With an asynchronous client, the result must be awaited.
        timeout : float
            Seconds after which a worker that does not answer counts as lost.

        Returns
        -------
        self
            With an asynchronous client, an awaitable of it.
        """
        client = get_client() if client is None else client
        return client.sync(  # type: ignore[no-any-return]
            self._fit_on, client, X, y, sample_weight,
            targets.holdouts(X_val, y_val, sample_weight_val, None) + targets.peer_sets({}, eval_set), callbacks,
            init_model, timeout,
        )  # fmt: skip

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
    ) -> Any:
        known = getattr(init_model, "classes_", getattr(init_model, "classes", None))
        init_model = getattr(init_model, "booster_", init_model)
        given = self._given()
        if given.get("quality") is not None:
            raise ParameterError(f"quality={given['quality']!r} is for data in memory; on Dask a fit is a plain one.")
        settings = resolve(given, fields=objective.field_aliases()) | {"quality": None}
        self._forget()
        y = await self._targets(client, X, y, settings, known)
        valid = {one.name: (one.X, self._encoded(one.y, one.X), one.weight) for one in holdouts}
        booster = await start_training(client, settings, X, y, weight, valid, callbacks, init_model, timeout)
        self.n_features_in_ = booster.n_columns
        if booster.named:
            self.feature_names_in_ = np.array(booster.feature_names, object)
        self.booster_ = self._finish(booster)
        return self

    async def _targets(self: Any, client: Client, X: Any, y: Any, settings: dict[str, Any], known: Any) -> Any:
        self._learn_target(np.zeros(1), settings, known)
        return y

    def _encoded(self, y: Any, X: Any) -> Any:
        return y

    def to_local(self: Any) -> Any:
        """Make the estimator for data in memory that has the same model."""
        found = self.local()
        vars(found).update(vars(self))
        return found

    def _map(self: Any, method: str, X: Any) -> Any:
        """A method for Dask collections, block by block; for data in memory as it is."""
        local = self.to_local()
        if hasattr(X, "dask") or (isinstance(X, list | tuple) and len(X) and hasattr(X[0], "key")):
            return mapped(local, method, X, {})
        return getattr(local, method)(X)

    def predict(self, X: Any) -> Any:
        """Predict the target of every row: an array of Dask for Dask collections."""
        return self._map("predict", X)


class DaskSapwoodRegressor(_OnDask, SapwoodRegressor):  # type: ignore[misc]
    """`sapwood.SapwoodRegressor` on a Dask cluster: parameters and attributes are the same.

    A fit is a plain one (``quality=None``), and has the bytes of such a fit in memory.
    """

    local = SapwoodRegressor


class DaskSapwoodClassifier(_OnDask, SapwoodClassifier):  # type: ignore[misc]
    """`sapwood.SapwoodClassifier` on a Dask cluster: parameters and attributes are the same.

    A fit is a plain one (``quality=None``), and has the bytes of such a fit in memory.
    """

    local = SapwoodClassifier

    async def _targets(self, client: Client, X: Any, y: Any, settings: dict[str, Any], known: Any) -> Any:
        distinct = dask.delayed(_distinct, name="sapwood-classes")
        found = await client.gather(client.compute([distinct(one) for one in parts.blocks(y, "y", X)]))
        several = next((one for one in found if one.ndim == 2), None)
        classes = np.concatenate([one for one in found if len(one)] or found) if several is None else several
        self._learn_target(classes, settings, known)
        return self._encoded(y, X)

    def _encoded(self, y: Any, X: Any) -> Any:
        if self.outputs_2d_:
            return y
        encode = dask.delayed(_codes, name="sapwood-labels")
        return [encode(self.classes_, one) for one in parts.blocks(y, "y", X)]

    def predict_proba(self, X: Any) -> Any:  # type: ignore[override]
        """Predict the probability of every class: an array of Dask for Dask collections."""
        return self._map("predict_proba", X)

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
    model.classes_, model.outputs_2d_ = classes, False
    values = np.asarray(y).ravel()
    return np.asarray(model._encode_target(values) if len(values) else np.empty(0), np.float64)
