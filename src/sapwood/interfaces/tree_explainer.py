"""`shap.TreeExplainer` for models of Sapwood, which the shap package does not know.

In: a model, and rows in any form it takes. Out: what shap's explainer returns, in its
shapes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import derived
from sapwood.device import elementary
from sapwood.errors import ParameterError, suggest
from sapwood.interfaces.estimator import Estimator
from sapwood.model.booster import Booster
from sapwood.model.explain.shapley import Explanation

Floats = NDArray[np.float64]
OUTPUTS = {
    "raw": "raw",
    "probability": "probability",
    "predict_proba": "probability",
    "log_loss": "loss",
}
PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")


class TreeExplainer:
    """Exact Shapley values of a model under the names of `shap.TreeExplainer`: write
    ``sw.`` for ``shap.``.

    `Booster.explain` computes them, for categories, linear leaves and crosses too. The
    shap package is needed by ``explainer(X)`` alone, which makes a `shap.Explanation`
    for its plots.

    Parameters
    ----------
    model : Booster or fitted estimator
    data : table, optional
        Rows to compare with (interventional values); without, values follow the
        training rows down the trees.
    model_output : {"raw", "probability", "log_loss"}
        What is explained; all but raw scores need `data`.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}
        'auto': interventional where there is `data`. With 'tree_path_dependent', `data`
        is not used.
    feature_names : sequence of str, optional
        Names for plots, in place of the model's.

    Attributes
    ----------
    expected_value : float, or (n_outputs,) float64
        The score where no column is known; for "log_loss" it depends on the labels, and
        is not there.

    Examples
    --------
    >>> import sapwood as sw
    >>> model = sw.SapwoodRegressor(n_estimators=5).fit([[0, 1], [1, 0]] * 20, [1.0, 3.0] * 20)
    >>> sw.TreeExplainer(model).shap_values([[0, 1], [1, 0]]).shape
    (2, 2)
    """

    def __init__(
        self,
        model: Any,
        data: Any = None,
        model_output: str = "raw",
        feature_perturbation: str = "auto",
        feature_names: Any = None,
    ) -> None:
        found = model.booster_ if isinstance(model, Estimator) else model
        if not isinstance(found, Booster):
            raise ParameterError(
                f"a {type(model).__name__} is no model of Sapwood; shap.TreeExplainer may know it."
            )
        if model_output not in OUTPUTS:
            raise ParameterError(
                f"model_output={model_output!r} is unknown; {suggest(str(model_output), OUTPUTS)}"
            )
        if feature_perturbation not in PERTURBATIONS:
            raise ParameterError(
                f"feature_perturbation={feature_perturbation!r} is unknown; "
                f"{suggest(str(feature_perturbation), PERTURBATIONS)}"
            )
        if feature_perturbation == "interventional" and data is None:
            raise ParameterError(
                "interventional values compare with rows: give data=(some training rows)."
            )
        self.model = found
        self.space = OUTPUTS[model_output]
        self.data = None if feature_perturbation == "tree_path_dependent" else data
        self.data_feature_names = list(
            found.feature_names[: found.n_given]
            if feature_names is None
            else feature_names
        )
        if self.space != "loss":
            self.expected_value = self._expected()

    def shap_values(self, X: Any, y: Any = None, **more: Any) -> Floats:
        """Shapley values, (n_rows, n_columns), or (n_rows, n_columns, n_outputs) with
        several outputs.

        ``tree_limit``, ``approximate`` and ``check_additivity`` are accepted where they
        ask for what is: all trees, exact values.
        """
        return self._explain(X, y, more).values

    def shap_interaction_values(self, X: Any, y: Any = None, **more: Any) -> Floats:
        """Effects of columns and of pairs, (n_rows, n_columns, n_columns), and outputs
        last where there are several.
        """
        return self._explain(X, y, more, interactions=True).values

    def __call__(
        self, X: Any, y: Any = None, *, interactions: bool = False, **more: Any
    ) -> Any:
        """A `shap.Explanation`, for the plots of that package; values of a table keep
        their form, such as text.
        """
        found = self._explain(X, y, more, interactions=interactions).to_shap()
        found.feature_names = self.data_feature_names
        if hasattr(X, "to_numpy"):
            found.data, found.display_data = X.to_numpy(), X.to_numpy()
        return found

    def _explain(
        self, X: Any, y: Any, more: dict[str, Any], interactions: bool = False
    ) -> Explanation:
        """The explanation of `Booster.explain`, after a check of arguments that change
        nothing here.
        """
        harmless = {
            "tree_limit": (None, -1),
            "approximate": (False,),
            "check_additivity": (True, False),
        }
        for name, value in more.items():
            if value not in harmless.get(name, ()):
                raise ParameterError(
                    f"{name}={value!r} is not available; values are exact and of all trees."
                )
        told = self.model.explain(
            X, background=self.data, space=self.space, y=y, interactions=interactions
        )
        if not self.model.times:
            return told
        # what the parts of a date or a text add is the column's
        values = told.values
        n = self.model.n_given
        for axis in (1, 2) if interactions else (1,):
            by_part = np.moveaxis(values, axis, -1)
            by_column = elementary.matmul(
                by_part, derived.shares(self.model.times, self.model.n_columns)
            )
            values = np.moveaxis(by_column, -1, axis)
        return replace(
            told,
            values=values,
            data=told.data[:, :n],
            feature_names=told.feature_names[:n],
        )

    def _expected(self) -> Any:
        """The base value, which is the same for all rows: that of a row without a
        value.
        """
        empty = np.full((1, self.model.n_given), np.nan)
        base = self.model.explain(
            empty, background=self.data, space=self.space
        ).base_values[0]
        return base if self.model.n_outputs > 1 else float(base)
