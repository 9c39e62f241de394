"""Tables whose bins wait for the training: XGBoost's `DMatrix` and CatBoost's `Pool`,
for programs that have them.

In: a table with its labels. Out: a `Dataset`, in the bins of the training data or with
the parameters of the training.

A `Dataset` is binned at once and keeps no table. What is here keeps the table as it is,
so that a model can predict it, and is read when it is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sapwood.data.dataset import Dataset
from sapwood.errors import ParameterError
from sapwood.params import peers
from sapwood.params.functions import LabelView

# by set_info
SETTABLE = ("label", "weight", "base_margin", "group", "qid", "feature_names")


class Deferred(LabelView):
    """A table with its labels, not binned yet."""

    def __init__(
        self,
        data: Any,
        label: Any = None,
        weight: Any = None,
        init_score: Any = None,
        group: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical_features: Any = None,
    ) -> None:
        super().__init__(label, weight)
        self.data = data
        self.init_score = init_score
        self.group = group
        self.feature_names = feature_names
        self.categorical_features = categorical_features

    def dataset(
        self, params: Mapping[str, Any] | None = None, reference: Dataset | None = None
    ) -> Dataset:
        """The rows in bins: those of the reference, or as the parameters of a training
        say.
        """
        more: dict[str, Any] = (
            {}
            if self.categorical_features is None
            else {"cat_features": self.categorical_features}
        )
        more = more if reference is None else {"reference": reference}
        return Dataset(
            self.data,
            self.label,
            self.weight,
            self.init_score,
            group=self.group,
            feature_names=self.feature_names,
            params=dict(params or {}),
            **more,
        )

    def num_data(self) -> int:
        """The number of rows."""
        return (
            int(np.shape(self.data)[0])
            if hasattr(self.data, "shape")
            else len(self.data)
        )

    num_row = num_data

    def get_label(self) -> Any:
        """The labels as an array."""
        return None if self.label is None else np.asarray(self.label)

    def set_label(self, label: Any) -> None:
        """Set the labels."""
        self.label = label

    def set_weight(self, weight: Any) -> None:
        """Set the weights of rows."""
        self.weight = weight

    def set_base_margin(self, margin: Any) -> None:
        """XGBoost's: set the raw scores that training and predictions start from."""
        self.init_score = margin

    set_baseline = set_base_margin

    def set_group(self, group: Any) -> None:
        """Set the sizes of groups, or the group of every row."""
        self.group = group

    set_group_id = set_group

    def set_info(self, **given: Any) -> None:
        """XGBoost's: set label, weight, base_margin, group or qid."""
        names = {
            "base_margin": "init_score",
            "qid": "group",
            "feature_names": "feature_names",
        }
        _refuse(
            "set_info",
            {name: one for name, one in given.items() if name not in SETTABLE},
            (),
        )
        vars(self).update(
            {
                names.get(name, name): value
                for name, value in given.items()
                if value is not None
            }
        )

    def num_col(self) -> int:
        """The number of columns."""
        return int(np.shape(self.data)[1])


class DMatrix(Deferred):
    """XGBoost's table, for `sapwood.train`, `sapwood.cv` and `Booster.predict`; it is
    binned when it is trained on.

    Parameters
    ----------
    data, label, weight, base_margin, group, qid, feature_names, feature_types,
    enable_categorical
        As in XGBoost; columns of the type ``"c"`` are categories. Missing values are
        NaN.
    **more
        What XGBoost takes besides and has no meaning here: ``nthread``, ``silent``,
        ``missing=nan``, ``ref``.
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        *,
        weight: Any = None,
        base_margin: Any = None,
        feature_names: Sequence[str] | None = None,
        feature_types: Sequence[str] | None = None,
        group: Any = None,
        qid: Any = None,
        enable_categorical: bool = True,
        **more: Any,
    ) -> None:
        missing = more.pop("missing", None)
        if missing is not None and missing == missing:
            raise ParameterError(
                f"missing={missing!r} is not available; NaN is the missing value: put it there first."
            )
        _refuse(
            "DMatrix",
            more,
            (
                "nthread",
                "silent",
                "ref",
                "max_bin",
                "data_split_mode",
                "max_quantile_batches",
            ),
        )
        marked = (
            None
            if feature_types is None
            else [j for j, kind in enumerate(feature_types) if kind == "c"]
        )
        categorical = marked if enable_categorical else []
        super().__init__(
            data,
            label,
            weight,
            base_margin,
            group if qid is None else qid,
            feature_names,
            categorical,
        )


class Pool(Deferred):
    """CatBoost's table, for `sapwood.train`, `sapwood.cv`, `fit` and predictions; it is
    binned when it is trained on.

    Parameters
    ----------
    data, label, cat_features, weight, baseline, group_id, feature_names
        As in CatBoost.
    **more
        ``thread_count``, which has no meaning here.
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        cat_features: Any = None,
        *,
        weight: Any = None,
        baseline: Any = None,
        group_id: Any = None,
        feature_names: Sequence[str] | None = None,
        **more: Any,
    ) -> None:
        _refuse("Pool", more, ("thread_count",))
        super().__init__(
            data, label, weight, baseline, group_id, feature_names, cat_features
        )

    def is_empty_(self) -> bool:
        """Whether there are no rows."""
        return self.num_data() == 0


def _refuse(what: str, more: Mapping[str, Any], harmless: Sequence[str]) -> None:
    """Raise on arguments that mean something which is not here."""
    if odd := [
        name
        for name, value in more.items()
        if name not in harmless and value is not None
    ]:
        hint = peers.ARGUMENTS.get(odd[0], "leave it out, or use sapwood.Dataset.")
        raise ParameterError(f"{what} does not take {', '.join(odd)} here; {hint}")
