"""Model files of estimators: written, read back, and refused where they are of another
kind.

In: a path. Out: an estimator that predicts what the saved one did.
"""

from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sapwood.errors import ModelFormatError, warn
from sapwood.interfaces.kinds import WORDS, estimators_of
from sapwood.model.booster import Booster
from sapwood.model.io import load
from sapwood.objective.ranking import LOSSES
from sapwood.system import kinds


class ModelFiles:
    """`save_model` and `load_model`, XGBoost's and CatBoost's."""

    booster_: Booster
    objective: Any

    def save_model(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the `booster_` to a file that `load_model` and `sapwood.load` read.

        The name of the file may end in anything. A file that is no model is replaced
        with `force` only.
        """
        check_is_fitted(self, "booster_")
        self.booster_.save_model(path, force=force)
        if hasattr(self, "calibration_"):
            warn(
                "the file has no calibration of intervals: call calibrate after loading, or pickle."
            )

    def load_model(self, path: Any) -> Self:
        """Become the estimator of a model file, in any format that `sapwood.load`
        reads.

        A file of another kind of estimator raises: scores are no predictions.
        """
        booster = load(path)
        suited = estimators_of(booster)
        own = {one.__name__ for one in type(self).__mro__}
        same = (
            booster.objective in LOSSES
            and getattr(self, "objective", None) == booster.objective
        )
        if not same and own.isdisjoint(suited):
            mine = next(
                (WORDS[name] for name in WORDS if name in own), "of this kind"
            ).replace("a ", "no ", 1)
            raise ModelFormatError(
                f"the file has {WORDS[suited[0]]} (objective {booster.objective!r}), {mine}: read it with "
                f"{suited[0]}().load_model(path), or its trees alone with sapwood.load(path)."
            )
        found = self._of_file(booster)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(found, booster_=booster, n_features_in_=booster.n_given)
        if booster.named:
            vars(self)["feature_names_in_"] = np.array(
                booster.feature_names[: booster.n_given], object
            )
        return self

    def _of_file(self, booster: Booster) -> dict[str, Any]:
        """The attributes that an estimator has beside its model."""
        if not is_classifier(self):
            return {}
        known = booster.classes
        classes: NDArray[Any] = (
            np.arange(max(2, booster.n_outputs)) if known is None else np.asarray(known)
        )
        return {
            "classes_": classes,
            "n_classes_": len(classes),
            "outputs_2d_": booster.objective == "multilabel",
        }


class WholeFiles(ModelFiles):
    """`save` and `load` of estimators whose model file has all that they know."""

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model file, as `Booster.save` does; `load` reads it."""
        kinds.check(path, kinds.MODEL, force=force)
        self.save_model(path, force=force)

    @classmethod
    def load(cls, source: Any) -> Self:
        """Read a model file: an estimator that predicts what the saved one did.

        Parameters that say what was learned are those of the file, the others the
        defaults.
        """
        return cls().load_model(source)
