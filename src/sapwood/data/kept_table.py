"""The table of a `Dataset`, kept until its first training, in case that one wants other
bins.

LightGBM bins a table when training begins. So its users write parameters of bins into
the ``params`` of `train`, and make validation sets without a reference. A `Dataset` is
binned at once; what is here bins the rows again.

In: what a `Dataset` was made of, and the parameters or the data of a training. Out: the
same rows in other bins.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sapwood import params as parameters
from sapwood.data.bin_arguments import DERIVED, usual
from sapwood.data.dataset_file import BIN_PARAMS

if TYPE_CHECKING:
    from sapwood.data.dataset import Dataset

# what the params of a training may say of bins
ASKED = (*BIN_PARAMS, "categorical_features", "device", *DERIVED)


class KeptTable:
    """The arguments of a `Dataset`; after the first training only the rows in other
    bins, if it made any.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments: Mapping[str, Any] | None = arguments
        self._made: tuple[Any, Dataset] | None = None

    @property
    def has_reference(self) -> bool:
        """Whether the bins are those of other data."""
        return (
            self._arguments is not None and self._arguments.get("reference") is not None
        )

    @property
    def told(self) -> set[str]:
        """The parameters of bins that were given with the table itself."""
        known = parameters.names()
        defaults = usual()
        given = {
            known[name]: value
            for name, value in (self._arguments or {}).items()
            if name in known
        }
        return {
            name
            for name, value in given.items()
            if name not in defaults or value is not defaults[name]
        }

    def again(self, asked: Any, **changed: Any) -> "Dataset | None":
        """The rows with other arguments, made once; None where the table is gone.
        ``asked``: what they depend on.
        """
        from sapwood.data.dataset import Dataset  # which is built on this module

        if self._made is not None and _same(self._made[0], asked):
            return self._made[1]
        if self._arguments is None:
            return None
        made = Dataset(**{**self._arguments, **changed})
        made.kept = None
        self._made = asked, made
        return made

    def used(self) -> None:
        """Let go of the table: training begins."""
        if self._arguments is not None and self._arguments.get("free_raw_data", True):
            self._arguments = None


def of(arguments: Mapping[str, Any]) -> KeptTable | None:
    """What a dataset is made of; None where the table can be read only once."""
    table = arguments["data"]
    return (
        KeptTable(arguments)
        if hasattr(table, "shape") or isinstance(table, list | tuple | Mapping)
        else None
    )


def for_training(data: "Dataset", params: Mapping[str, Any]) -> "Dataset":
    """The training rows: in other bins where the parameters name some that the data was
    not told.
    """
    kept = data.kept
    known = parameters.names()
    told = set() if kept is None else kept.told
    asked = {
        name: value
        for name, value in params.items()
        if known.get(name) in ASKED and known[name] not in told
    }
    found = None
    if kept is not None and asked and not kept.has_reference:
        wanted = parameters.resolve(asked)
        has = {name: getattr(data, name) for name in BIN_PARAMS} | {
            "device": data.device.name
        }
        given = {known[name] for name in asked}
        others = any(
            name in given and wanted[name] != value for name, value in has.items()
        )
        others = others or any(wanted[name] != "auto" for name in DERIVED)
        if others or isinstance(wanted["categorical_features"], list):
            found = kept.again(asked, params={**asked, **(_own(kept))})
    if kept is not None:
        kept.used()
    return data if found is None else found


def for_validation(data: "Dataset", training: "Dataset") -> "Dataset":
    """Validation rows in the bins of the training data, where they can still be binned
    again.
    """
    found = None
    if data.kept is not None:
        if not same_bins(data, training):
            found = data.kept.again(
                training.cuts,
                reference=training,
                categorical_features="auto",
                params=None,
            )
        data.kept.used()
    return data if found is None else found


def same_bins(one: "Dataset", other: "Dataset") -> bool:
    """Whether two datasets have the same columns, cuts, crosses and categories."""
    same = len(one.cuts) == len(other.cuts) and all(
        map(np.array_equal, one.cuts, other.cuts)
    )
    same = same and one.crosses == other.crosses and one.categories == other.categories
    return same and one.feature_names == other.feature_names


def _own(kept: KeptTable) -> Mapping[str, Any]:
    """LightGBM's ``params`` of the dataset itself."""
    own = (kept._arguments or {}).get("params") or {}
    return own if isinstance(own, Mapping) else {}


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, dict) and one == other)
